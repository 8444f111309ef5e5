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

ROOT = Path(__file__).parents[1]
NOT_WANTED = re.compile(r"\.(db|pyc|log)$|/\.|__pycache__")
LARGEST = 2_000_000  # bytes of a wheel

NAMES = """
import tradewind as tw
for name in tw.__all__:
    getattr(tw, name)
print(len(tw.__all__), "public names of version", tw.__version__)
"""

# What an extra is for says which one.
EXTRAS = """
import sys
import tradewind as tw

study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
study.optimize(lambda trial: {"value": trial.params["x"], "cost": 1.0}, n_trials=3)
study.report("extras.html")                                       # needs none
figure = study.plot.frontier()
for extra, use in {
    "pandas": study.to_frame,
    "plot": figure.to_plotly,
    "plot ": figure.to_image,
    "postgres": lambda: tw.list_studies("postgresql://localhost/none"),
    "dask": lambda: study.optimize(len, n_trials=1, runner=tw.runners.DaskRunner("tcp://x:1")),
    "ray": lambda: study.optimize(len, n_trials=1, runner=tw.runners.RayRunner()),
    "mlflow": tw.integrations.MLflow,
    "tensorboard": lambda: tw.integrations.TensorBoard("runs"),
    "dashboard": lambda: __import__("tradewind.dashboard").dashboard.serve,
    "text": lambda: tw.models.TextCNN(),
    "trees": lambda: tw.models.TreeRanker().fit([[0.0], [1.0]], [0, 1], [1, 1]),
}.items():
    try:
        use()
    except ImportError as error:
        assert f"tradewind[{extra.strip()}]" in str(error), (extra, str(error))
    else:
        sys.exit(f"what needs the extra {extra!r} works without it")
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
    sources = (path for path in (ROOT / "src").rglob("*") if path.is_file())
    wanted = {path.relative_to(ROOT / "src").as_posix() for path in sources}
    wanted = {name for name in wanted if not NOT_WANTED.search(name)}
    found = {name for name in names if ".dist-info/" not in name}
    complain_of(wheel, wanted - found, "lacks")
    complain_of(wheel, found - wanted, "should not have")
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
    """It has every file of the repository, so that its tests run."""
    with tarfile.open(source) as archive:
        found = {it.name.partition("/")[2] for it in archive.getmembers() if it.isfile()}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        print(f"{source.name} is not compared with a repository: {listed.stderr.strip()}")
        return
    wanted = set(listed.stdout.splitlines())
    complain_of(source, wanted - found, "lacks")
    complain_of(source, found - wanted - {"PKG-INFO"}, "should not have")


def complain_of(package: Path, names: set[str], what: str) -> None:
    if names:
        sys.exit(f"{package.name} {what} {', '.join(sorted(names)[:10])}")


def try_wheel(wheel: Path, empty: Path) -> None:
    environment = empty / "environment"
    venv.create(environment, with_pip=True)
    python, tradewind = (str(environment / "bin" / name) for name in ("python", "tradewind"))
    run(python, "-m", "pip", "install", "--quiet", str(wheel), cwd=empty)
    run(python, "-m", "pip", "check", cwd=empty)
    for name, script in {"names.py": NAMES, "extras.py": EXTRAS}.items():
        (empty / name).write_text(script, encoding="utf-8")
        run(python, "-W", "error", name, cwd=empty)
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
