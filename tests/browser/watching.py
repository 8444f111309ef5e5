"""What pages do that they should not."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlparse

from playwright.sync_api import Dialog, Page


@dataclass
class Watch:
    """What a page does that it should not: console messages, errors, dialogs, requests."""

    console: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def over(self, page: Page) -> Page:
        page.on("console", lambda it: self.console.append(f"{it.type}: {it.text}"))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismiss)
        return page

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def outside(self) -> list[str]:
        """Requests that leave the page: a file, its own data and blobs may be read."""
        return [
            url for url in self.requests if urlparse(url).scheme not in ("file", "data", "blob")
        ]
