"""Check the packages in `dist/`, as `make dist` leaves them, and try the wheel as a new user would.

The wheel is installed, with what it requires and nothing else, into an empty environment. There,
away from this repository, a study is started from nothing, run, resumed and reported, and every
public name is loaded.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

NEEDED = (  # in the wheel
    "tradewind/__init__.py",
    "tradewind/py.typed",
    "tradewind/charts/assets/page.html",
    "tradewind/charts/assets/style.css",
    "tradewind/charts/assets/page.js",
)
NEEDED_SOURCES = (
    "Makefile",
    "constraints.txt",
    "CHANGELOG.md",
    "CITATION.cff",
    "tests/conftest.py",
)
NOT_WANTED = re.compile(r"\.(db|pyc|log)$|/\.|__pycache__")
LARGEST = 2_000_000  # bytes of a wheel

NAMES = """
import tradewind as tw
for name in tw.__all__:
    getattr(tw, name)
print(len(tw.__all__), "public names of version", tw.__version__)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the packages in dist/ and try the wheel.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    folder = parser.parse_args().folder
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_wheel(wheel)
    check_source(source)
    with tempfile.TemporaryDirectory() as empty:
        try_wheel(wheel.resolve(), Path(empty))
    print(f"{wheel.name} and {source.name} are ready to publish")


def check_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(metadata).decode())
    complain_of(wheel, [name for name in NEEDED if name not in names], "lacks")
    complain_of(wheel, [name for name in names if NOT_WANTED.search(name)], "should not have")
    outside = [name for name in names if not name.startswith(("tradewind/", "tradewind-"))]
    complain_of(wheel, outside, "should not have")
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {LARGEST:,}")
    check_readme(str(about.get_payload()))
    if len(about.get_all("Project-URL", [])) < 4:
        sys.exit(f"{wheel.name} names too few project links")


def check_readme(text: str) -> None:
    """A package index shows the README far from the files that it links to."""
    local = re.findall(r"\]\((?!https?:|#)([^)]+)\)", text)
    local += re.findall(r'(?:src|srcset|href)="(?!https?:|#)([^"]+)"', text)
    if local:
        sys.exit(f"the README of the package links to files that readers do not have: {local}")


def check_source(source: Path) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    complain_of(source, [name for name in NEEDED_SOURCES if name not in names], "lacks")
    complain_of(
        source,
        [n for n in names if NOT_WANTED.search(n) and not n.startswith(("tests/history/", ".ci"))],
        "should not have",
    )


def complain_of(package: Path, names: list[str], what: str) -> None:
    if names:
        sys.exit(f"{package.name} {what} {', '.join(sorted(names)[:10])}")


def try_wheel(wheel: Path, empty: Path) -> None:
    environment = empty / "environment"
    venv.create(environment, with_pip=True)
    python, tradewind = (str(environment / "bin" / name) for name in ("python", "tradewind"))
    run(python, "-m", "pip", "install", "--quiet", str(wheel), cwd=empty)
    run(python, "-m", "pip", "check", cwd=empty)
    run(python, "-W", "error", "-c", NAMES, cwd=empty)
    for arguments in (
        ["--version"],
        ["init", "first"],
        ["run", "first/tradewind.toml", "--trials", "3"],
        ["run", "first/tradewind.toml", "--trials", "6"],
    ):
        run(tradewind, *arguments, cwd=empty)
    (store,) = (empty / "first").glob("*.db")
    run(tradewind, "best", str(store), cwd=empty)
    run(tradewind, "report", str(store), "-o", "report.html", cwd=empty)
    if b"</html>" not in (empty / "report.html").read_bytes():
        sys.exit("the report of the installed wheel is not a whole page")


def run(*command: str, cwd: Path) -> None:
    """Run a command without what the environment of this process would add to it."""
    print("$", " ".join(Path(part).name if "/" in part else part for part in command), flush=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=clean, check=False)
    if done.returncode:
        sys.exit(f"it ended with exit code {done.returncode}")


if __name__ == "__main__":
    main()
