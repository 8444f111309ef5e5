"""The report as text: what may run in it, and how data stands in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from tests.browser.sample import page_data
from tradewind.charts.page import ASSETS, SCRIPTS, asset, embedded, stylesheet, write_page
from tradewind.charts.palette import PALETTES, Theme, css_variables

DATA = page_data(12)


def policy(page: str) -> dict[str, str]:
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert found is not None
    rules = (rule.strip().split(" ", 1) for rule in found.group(1).split(";"))
    return {name: value.strip("'") for name, value in rules}


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_only_the_one_script_and_the_one_style_are_allowed() -> None:
    page = write_page(DATA, title="A study")
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    rules = policy(page)
    assert rules["default-src"] == "none"
    assert rules["style-src"] == digest(style)
    assert rules["script-src"] == digest(script)
    assert rules["base-uri"] == rules["form-action"] == "none"


def test_the_data_can_be_read_back_from_the_page() -> None:
    hostile = {"a": "</script><script>alert(1)</script>", "b": "\u2028\u2029&<!--", "c": "\ud800é"}
    page = write_page(hostile, title="A study")
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert json.loads(text) == hostile
    assert not set(text) & set("<>&\u2028\u2029")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_know_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded({"value": value})


def test_a_title_is_text() -> None:
    title = "</title><script>x</script> {{body}} \udc80 “é”"
    page = write_page(DATA, title=title)
    assert "<title>&lt;/title&gt;&lt;script&gt;x&lt;/script&gt; {{body}} ? “é”</title>" in page
    page.encode("utf-8")


def test_data_cannot_name_a_part_of_the_skeleton() -> None:
    page = write_page({"format": 1, "name": "{{title}} {{head}}"}, title="mine")
    assert page.count("<style>") == 1
    assert '"{{title}} {{head}}"' in page


def test_the_same_data_gives_the_same_page() -> None:
    assert write_page(DATA, title="a") == write_page(DATA, title="a")


def test_the_page_refers_to_no_other_place() -> None:
    page = write_page(DATA, title="A study")
    addresses = set(re.findall(r"https?://[^\s\"')]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG elements


def test_the_report_without_data_is_small() -> None:
    assert len(write_page({"format": 1}, title="x")) < 200_000


def test_every_asset_can_be_had_by_name_and_nothing_else() -> None:
    for name in ASSETS:
        assert asset(name)
    for name in ("live.js", "../page.py", "", "style.css/"):
        with pytest.raises(ValueError, match="the page consists of"):
            asset(name)


def test_the_skeleton_of_the_dashboard_has_no_inline_code() -> None:
    skeleton = asset("page.html").decode()
    assert re.findall(r'<script src="/assets/([\w.]+)" defer></script>', skeleton) == [*SCRIPTS]
    assert "<style" not in skeleton
    assert re.search(r"<[^>]* (style|on\w+)=", skeleton) is None
    assert "{{" not in skeleton


def test_scripts_neither_evaluate_nor_write_markup() -> None:
    text = "".join(asset(name).decode() for name in SCRIPTS)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text
    assert re.search(r"\bnew Function\b|setAttribute\(\"style\"|javascript:", text) is None


def test_scripts_are_short_enough_to_read() -> None:
    for name in SCRIPTS:
        lines = asset(name).decode().splitlines()
        assert len(lines) <= 400, name
        assert max(map(len, lines)) <= 170, name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_come_from_the_palette(theme: Theme) -> None:
    for name, colour in css_variables(theme).items():
        assert stylesheet().count(f"{name}: {colour};") == 2, "once as chosen, once as asked for"
    assert "/*" not in stylesheet().partition("body {")[0].partition("*/")[2]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_and_texts_stand_out_from_the_page(theme: Theme) -> None:
    colours = dict(re.findall(r"--(\w+): (#\w{6});", rules(theme)))
    for ground in (colours["page"], colours["card"], colours["sunken"]):
        assert contrast(colours["text"], ground) >= 7
        assert contrast(colours["soft"], ground) >= 4.5
        assert contrast(colours["link"], ground) >= 4.5
    for role, colour in PALETTES[theme].roles.items():
        least = 2.9 if role == "muted" else 3.0
        assert contrast(colour, colours["page"]) >= least, role
    assert contrast(PALETTES[theme].roles["bad"], colours["page"]) >= 4.5
    assert contrast(PALETTES[theme].roles["chosen"], colours["card"]) >= 4.5


def rules(theme: Theme) -> str:
    start = {"light": ":root {", "dark": ':root[data-theme="dark"] {'}[theme]
    return stylesheet().partition(start)[2].partition("}")[0]
