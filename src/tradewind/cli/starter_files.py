"""Writes the files that a new search starts from. Nothing is overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from tradewind.cli.exits import UsageFault

_FILES = ("tradewind.toml", "train.py")


def write_starter(folder: Path) -> Iterator[Path]:
    """Write the files into a folder, and return their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageFault(f"{folder} must be a folder, but it is a file") from None
    for name in _FILES:
        if (folder / name).exists() or (folder / name).is_symlink():
            raise UsageFault(
                f"{folder / name} exists already, and nothing was written: give another folder, "
                "or remove it"
            )
    texts = files("tradewind.cli") / "starter"
    written: list[Path] = []
    try:
        for name in _FILES:
            with open(folder / name, "x", encoding="utf-8") as file:
                written.append(folder / name)
                file.write((texts / name).read_text(encoding="utf-8"))
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    return iter(written)
