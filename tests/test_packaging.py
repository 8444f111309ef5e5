"""What the package says about itself is the same in every file. `make dist` checks the rest."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import tradewind as tw

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def as_on_an_index(text: str) -> str:
    """The README as the package shows it: with the substitutions of pyproject.toml."""
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for rule in hook["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_all_files_agree_on_the_version_and_the_licence() -> None:
    assert PROJECT["project"]["version"] == tw.__version__ == CITATION["version"]
    assert PROJECT["project"]["license"] == CITATION["license"] == "MIT"
    assert PROJECT["project"]["urls"]["Source"] == CITATION["repository-code"]


def test_the_workflow_tests_every_python_that_the_package_names() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_the_workflow_runs_targets_that_exist() -> None:
    steps = [step.get("run", "") for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    targets = {run.removeprefix("make ") for run in steps if run.startswith("make ")}
    assert {"check", "demo", "docs", "dist"} <= targets
    assert all(re.search(rf"^{target}:.*## ", MAKEFILE, re.MULTILINE) for target in targets)
    assert ".ci/run" in steps


def test_the_workflow_trusts_no_version_that_others_can_move() -> None:
    used = [
        step["uses"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "uses" in step
    ]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_every_extra_is_installed_for_the_tests_and_explained_in_the_readme() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    explained = set(
        re.findall(r"`([a-z]+)`", "".join(re.findall(r"^\| (`[a-z]+`.*?) \|", readme, re.M)))
    )
    for name in extras.keys() - {"test", "docs", "dev", "bench"}:
        assert set(extras[name]) <= set(extras["test"]), name
        assert name in explained
    assert set(extras["bench"]) <= set(extras["test"])


def test_the_readme_of_the_package_has_no_local_links() -> None:
    text = as_on_an_index((ROOT / "README.md").read_text(encoding="utf-8"))
    assert not re.findall(r"\]\((?!https?:|#)[^)]+\)", text)
    assert not re.findall(r'(?:src|srcset|href)="(?!https?:|#)', text)


def test_links_within_the_readme_lead_to_a_heading() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            "[a](docs/a.md#b)",
            "[a](https://github.com/tradewind-ml/tradewind/blob/main/docs/a.md#b)",
        ),
        (
            "![a](a.png)",
            "![a](https://raw.githubusercontent.com/tradewind-ml/tradewind/main/a.png)",
        ),
        ("[here](#below)", "[here](#below)"),
        ("[out](https://a.org/b)", "[out](https://a.org/b)"),
    ],
)
def test_a_link_of_the_readme_leads_to_the_repository(written: str, shown: str) -> None:
    assert as_on_an_index(written) == shown


def test_the_files_that_users_of_the_repository_look_for_exist_and_are_not_empty() -> None:
    for name in ("CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"):
        assert (ROOT / name).stat().st_size > 200, name
