"""Build the documentation as a site: `make docs`.

The pages are plain Markdown that reads well on GitHub. This program gathers them in build/docs,
with the benchmarks, the changes and the contributing guide, which live elsewhere in the repository,
and lets Zensical build build/site. Warnings are errors.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = "https://github.com/tradewind-ml/tradewind/blob/main"
MOVED = {  # where a file of the repository is in the site
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/sizes.svg": "sizes.svg",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/decisions": "decisions/index.md",
}
ASSETS = (".md", ".png", ".svg", ".css", ".js")
SHIM = "https://unpkg.com/iframe-worker/shim"  # of the offline plugin; docs/assets has ours
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
FENCE = re.compile(r"^(?P<indent> *)```.*?^(?P=indent)```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]*)-light\.png\)")  # has a sibling for dark pages
OUTPUT = re.compile(r"<!-- output(?:: ([^\n]*?))? -->\n+```text\n")


def place(path: str) -> str | None:
    """Where a file of the repository is in the site; None if it is not part of it."""
    if path in MOVED:
        return MOVED[path]
    inside = path.startswith("docs/") and path.endswith(ASSETS)
    return path.removeprefix("docs/") if inside else None


def relinked(text: str, path: str) -> str:
    """The text of a file of the repository, with links as they are in the site."""
    here = posixpath.dirname(place(path) or "")

    def target(found: re.Match[str]) -> str:
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[1]))
        new = place(wanted)
        return f"{SOURCE}/{wanted}" if new is None else posixpath.relpath(new, here or ".")

    parts, last = [], 0
    for fence in FENCE.finditer(text):  # links in code are code
        parts += [LINK.sub(target, text[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*parts, LINK.sub(target, text[last:])])


def page(text: str, path: str) -> str:
    """The page of the site that a file of the repository becomes."""

    def titled(found: re.Match[str]) -> str:
        return f'```text title="Output{f" ({found[1]})" if found[1] else ""}"\n'

    text = OUTPUT.sub(titled, relinked(text, path))
    both = r"![\1](\2-light.png#only-light)![\1](\2-dark.png#only-dark)"
    return PICTURE.sub(both, text)


def files() -> list[str]:
    """The files of the repository that are in the site, by their paths in the repository."""
    inside = (f.relative_to(ROOT).as_posix() for f in sorted((ROOT / "docs").rglob("*.*")))
    moved = (path for path in MOVED if (ROOT / path).is_file())
    return [path for path in (*inside, *moved) if place(path)]


def decisions() -> list[tuple[str, str]]:
    """The decision records: file and title."""
    found = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    return [(f.name, f.read_text(encoding="utf-8").split("\n")[0].lstrip("# ")) for f in found]


def gather(build: Path) -> None:
    """Write the pages and the configuration of the site into a folder."""
    docs = build / "docs"
    for old in (docs, build / "site", build / ".cache"):
        shutil.rmtree(old, ignore_errors=True)
    for path in files():
        source, target = ROOT / path, docs / str(place(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            target.write_text(page(source.read_text(encoding="utf-8"), path), encoding="utf-8")
        else:
            shutil.copyfile(source, target)
    listed = "".join(f"- [{title}]({name})\n" for name, title in decisions())
    intro = "# Decisions\n\nWhat was decided, why, and what it led to. One page each.\n\n"
    (docs / "decisions" / "index.md").write_text(intro + listed, encoding="utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    entry = re.compile(r"^( *)- decisions/\*\.md$", re.MULTILINE)
    config = entry.sub(
        lambda found: "\n".join(
            f'{found[1]}- "{title}": decisions/{name}' for name, title in decisions()
        ),
        config,
    )
    config = config.replace("[../", f"[{ROOT.as_posix()}/")
    (build / "mkdocs.yml").write_text(config, encoding="utf-8")


def build_site(build: Path) -> str:
    """Build the site of the pages in a folder. Returns the warnings, "" if there are none."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    command += ["--config-file", str(build / "mkdocs.yml")]
    done = subprocess.run(command, cwd=build, capture_output=True, text=True)
    said = COLOUR.sub("", done.stdout + done.stderr)
    for html in sorted((build / "site").rglob("*.html")):
        up = posixpath.relpath(".", html.relative_to(build / "site").parent.as_posix())
        text = html.read_text(encoding="utf-8").replace(SHIM, f"{up}/assets/worker.js")
        html.write_text(text, encoding="utf-8")
    clean = done.returncode == 0 and "Warning" not in said
    return "" if clean else said.split("Traceback")[0] or said


def main() -> None:
    build = ROOT / "build"
    gather(build)
    if warnings := build_site(build):
        sys.exit(f"{warnings}\nThe documentation was not built: see the warnings above.")
    print(f"Open {build / 'site' / 'index.html'} in a browser.")


if __name__ == "__main__":
    main()
