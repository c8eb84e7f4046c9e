"""Pages in a browser: what a person sees, in light, dark, narrow and on paper; by keys, without
scripts; and nothing that a file says is done.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Browser
from tests.browser.pages import make

NAMES = (
    "artifact", "run", "session", "ended", "forged", "evil-artifact", "evil-run", "evil-forged",
)  # fmt: skip
WORDS = {"forged": "INVALID", "evil-forged": "INVALID"}
TAB, ENTER, RIGHT, END = "\ue004", "\ue007", "\ue014", "\ue010"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make(tmp_path_factory.mktemp("pages"))


def verdict(browser: Browser) -> str:
    return str(browser.script("return document.getElementById('verdict').innerText"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens_quietly_and_asks_for_nothing(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name])
    assert verdict(browser) == WORDS.get(name, "VALID")
    assert browser.driver.title.startswith(verdict(browser) + ": ")
    assert browser.console() == []
    addresses = browser.requests()
    assert addresses[0] == pages[name].as_uri()
    assert all(address.startswith("data:") for address in addresses[1:]), addresses


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_a_file_says_is_done(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name])
    browser.script("for (const one of document.querySelectorAll('details')) one.open = true")
    found = browser.script(
        "return [window.evil ?? null, document.scripts.length, document.styleSheets.length,"
        " document.querySelectorAll('iframe,base,object,embed,form').length"
        " + document.querySelectorAll('img:not([src^=\"data:image/svg\"])').length,"
        " [...document.querySelectorAll('*')].filter(one => [...one.attributes]"
        "   .some(attribute => attribute.name.startsWith('on'))).length]"
    )
    assert found == [None, 1, 1, 0, 0]
    if name in ("evil-artifact", "evil-run", "session"):
        assert "<script>window.evil=1</script>" in browser.script("return document.body.innerText")


def test_the_policy_stops_what_escaping_would_let_through(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    # A page into which markup got all the same: the second line of defence holds by itself.
    page = tmp_path / "broken.html"
    text = pages["run"].read_text("utf-8")
    evil = (
        "<script>window.evil=1</script><img src='http://127.0.0.1:9/x' onerror='window.evil=1'>"
        "<svg onload='window.evil=1'></svg>"
    )
    page.write_text(text.replace("</header>", f"</header>{evil}"), "utf-8")
    browser.open(page)
    assert browser.script("return window.evil ?? null") is None
    assert any("Content Security Policy" in said for said in browser.console())
    # Its own script runs still.
    assert browser.script("return document.querySelectorAll('input[type=search]').length") == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [400, 320, 1200])
def test_no_width_makes_the_page_scroll_sideways(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.emulate(width=width)
    browser.open(pages[name])
    browser.script("for (const one of document.querySelectorAll('details')) one.open = true")
    wide, tall = browser.script(
        "const root = document.documentElement; return [root.scrollWidth, root.scrollHeight]"
    )
    assert wide <= width and tall > 300


@pytest.mark.parametrize("name", ["artifact", "run", "session", "forged"])
def test_light_and_dark_can_be_read(browser: Browser, pages: dict[str, Path], name: str) -> None:
    bright = {}
    for dark in (False, True):
        browser.emulate(dark=dark)
        browser.open(pages[name])
        picture = browser.picture()
        bright[dark] = sum(picture.convert("L").resize((1, 1)).getpixel((0, 0)) for _ in range(1))
        assert len(picture.getcolors(1 << 24)) > 100  # something is drawn
        assert browser.script(CONTRASTS) == []
    assert bright[False] > 220 and bright[True] < 60


# Texts whose contrast with what is behind them is below 4.5 (WCAG 2.1, 1.4.3), first of each kind.
CONTRASTS = """
const light = (color) => {
  const [r, g, b] = color.match(/[0-9.]+/g).map(Number).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "rgb(255, 255, 255)";
};
const found = [];
for (const one of document.querySelectorAll("body *:not(svg *, script)")) {
  if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
  const style = getComputedStyle(one);
  const pair = [light(style.color), light(behind(one))].sort((x, y) => y - x);
  const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
  if (ratio < 4.5) found.push([one.tagName, one.className, ratio]);
}
return found.slice(0, 5);
"""


def test_rows_are_reached_and_opened_by_keys(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["run"])
    browser.press(TAB)
    assert browser.script("return document.activeElement.className") == "skip"
    browser.press(ENTER, TAB)
    assert browser.script("return document.activeElement.closest('main') !== null")
    browser.script("document.querySelector('#records input').focus()")
    opened = "return document.querySelectorAll('#records details[open]').length"
    assert browser.script(opened) == 0
    browser.press(TAB, TAB, TAB, ENTER)  # past the two buttons, to the first group
    assert browser.script(opened) == 1
    browser.press(TAB, ENTER)  # its first row
    assert browser.script(opened) == 2
    assert "seed_commitment" in browser.script(
        "return document.activeElement.parentElement.innerText"
    )
    outline = browser.script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_rows_are_filtered_and_groups_opened(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["run"])
    field = "document.querySelector('#records input')"
    browser.script(f"{field}.focus()")
    browser.press(*"leaf")
    shown = browser.script(
        "return [...document.querySelectorAll('#records details.row')]"
        ".filter(row => row.checkVisibility()).map(row => row.textContent)"
    )
    assert len(shown) >= 6 and all("leaf" in text.lower() for text in shown)
    browser.script(f"{field}.value = ''; {field}.dispatchEvent(new Event('input'))")
    hidden = "return document.querySelectorAll('#records [hidden]').length"
    assert browser.script(hidden) == 0


def test_a_chart_is_read_by_keys(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["run"])
    browser.script("document.querySelector('#keys svg.chart').focus()")
    said = "return document.querySelector('#keys .readout').innerText"
    browser.press(RIGHT)
    first = browser.script(said)
    browser.press(RIGHT)
    assert first.startswith("pop 1: -") and browser.script(said).startswith("pop 2: -")
    browser.press(END)
    assert browser.script(said).startswith("pop ") and browser.script(said) != first


def test_the_page_says_as_much_without_scripts(
    start: Callable[..., Browser], browser: Browser, pages: dict[str, Path]
) -> None:
    plain = start(scripts=False)
    for name in ("artifact", "run", "session"):
        browser.open(pages[name])
        plain.open(pages[name])
        assert plain.driver.find_elements("css selector", "input[type=search]") == []
        assert verdict(browser) == plain.driver.find_element("id", "verdict").text
        for part in ("header", "nav"):
            due = browser.driver.find_element("css selector", part).text
            assert plain.driver.find_element("css selector", part).text == due
        titles = [one.text for one in plain.driver.find_elements("css selector", "h2")]
        assert titles == [one.text for one in browser.driver.find_elements("css selector", "h2")]


def test_paper_has_no_controls_and_no_colour_behind(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.emulate(dark=True, media="print")
    browser.open(pages["run"])
    shown = browser.script(
        "return ['nav', '.tools', '#verdict', 'h2'].map("
        "name => document.querySelector(name).checkVisibility())"
    )
    assert shown == [False, False, True, True]
    assert browser.script("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert browser.script(CONTRASTS) == []
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 10_000


CHECKED = (
    "const box = document.getElementById(arguments[0]);"
    "return [box.className, box.querySelector('strong').innerText,"
    " box.querySelector('.said p').innerText]"
)
ARTIFACT = "proved-verdict"
NOW = "Checked by a proved program, in this browser, just now: "


def holding(page: Path, name: str, change: Callable[[bytes], bytes], out: Path) -> Path:
    """The page with another artifact in the element of this id."""
    text = page.read_text("utf-8")
    element = re.search(f'<data value="([^"]*)" hidden id="{name}"', text)
    assert element is not None
    held = base64.b64encode(change(base64.b64decode(element[1]))).decode()
    out.write_text(text[: element.start(1)] + held + text[element.end(1) :], "utf-8")
    return out


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("name", ["session", "ended", "going-on", "declined", "evil-artifact"])
def test_a_proved_program_checks_the_file_in_the_page(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name])
    style, word, said = browser.script(CHECKED, ARTIFACT)
    assert (style, word) == ("verdict good", "VALID")
    assert said.startswith(f"{NOW}C1 to C6, C8 and C9 of ")


@pytest.mark.parametrize("at", [9, 5000, -1])
@pytest.mark.parametrize("name", ["evil-artifact", "ended"])
def test_one_flipped_byte_turns_the_page_red(
    browser: Browser, pages: dict[str, Path], tmp_path: Path, name: str, at: int
) -> None:
    out = tmp_path / "flipped.html"
    page = holding(pages[name], "proved-file", lambda data: flipped(data, at), out)
    browser.open(page)
    style, word, said = browser.script(CHECKED, ARTIFACT)
    assert (style, word) == ("verdict bad", "INVALID")
    assert said.startswith("The artifact in this page does not hold.")
    assert verdict(browser) == "INVALID"
    assert browser.driver.title.startswith("INVALID: ")
    assert browser.console() == []


def test_another_artifact_in_the_page_is_not_the_one_it_is_about(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    kept: list[bytes] = []
    holding(pages["session"], "proved-file", lambda data: kept.append(data) or data, tmp_path / "a")
    out = tmp_path / "swapped.html"
    browser.open(holding(pages["evil-artifact"], "proved-file", lambda _: kept[0], out))
    style, word, said = browser.script(CHECKED, ARTIFACT)
    assert (style, word) == ("verdict bad", "INVALID") and "is another than" in said


def test_an_artifact_past_two_megabytes_says_so(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["artifact"])
    said = browser.script("return document.getElementById('proved').innerText")
    assert "nothing is checked here. tcc check --kernel proved checks it." in said
    assert browser.script("return document.getElementById('proved-file')") is None
