"""The page of a graph in a real browser, and DOT in the real Graphviz."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc.pictures import picture_of, picture_of_prefixes
from tcc.pictures.graph import unroll
from tcc.pictures.svg import drawn
from tests.cli.conftest import GRAMMARS
from tests.cli.test_pictures import hostile_graph, pictures, shown

pytestmark = pytest.mark.browser

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1400,900",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


@pytest.fixture
def support() -> library.Artifact:
    return library.compile_file(GRAMMARS / "support_refund.tcg")


def view(driver: Any) -> list[float]:
    """Left, top, width and height of what is seen."""
    svg = driver.find_element("css selector", "#picture svg")
    return [float(part) for part in svg.get_dom_attribute("viewBox").split()]


def press(driver: Any, keys: str) -> None:
    driver.find_element("tag name", "body").send_keys(keys)


def opened(driver: Any, folder: Path, text: str) -> None:
    """Open a page; what it says to the console is a failure."""
    path = folder / "page.html"
    path.write_text(text, "utf-8")
    driver.get_log("browser")
    driver.get(path.as_uri())
    assert driver.get_log("browser") == []


def test_pointing_at_a_box_and_an_arrow_tells_what_they_are(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    opened(driver, tmp_path, drawn(picture_of(support, 200), "html"))
    details = driver.find_element("id", "details")
    assert details.text == "Point at a box or an arrow."
    root = driver.find_element("css selector", f"#q{support.root} rect")
    ActionChains(driver).move_to_element(root).perform()
    assert f"state {support.root}, 22 763 234 plans" in details.text
    assert details.text.endswith("most calls to come\n12\nleast cost to come\n0.3")
    press(driver, "0")
    label = driver.find_element("css selector", "#a0 rect")
    ActionChains(driver).move_to_element(label).perform()
    assert details.text == f"from state {support.root} to state 36\nclassify"
    assert driver.get_log("browser") == []


def test_keys_move_and_zoom_and_show_all_of_it(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    opened(driver, tmp_path, drawn(picture_of(support, 200), "html"))
    begun = view(driver)
    press(driver, "+")
    near = view(driver)
    assert near[2] == pytest.approx(begun[2] * 0.8)
    assert near[0] + near[2] / 2 == pytest.approx(begun[0] + begun[2] / 2)
    press(driver, "-")
    assert view(driver) == pytest.approx(begun)
    press(driver, "\ue014")  # the right arrow
    assert view(driver)[0] == pytest.approx(begun[0] + begun[2] / 10)
    press(driver, "0")
    whole = view(driver)
    assert whole[:2] == [0, 0] and whole[2] > begun[2]
    driver.find_element("id", "nearer").click()
    assert view(driver)[2] == pytest.approx(whole[2] * 0.8)


def test_dragging_moves_the_drawing_with_the_pointer(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    opened(driver, tmp_path, drawn(picture_of(support, 200), "html"))
    frame = driver.find_element("id", "picture")
    before = view(driver)
    ActionChains(driver).move_to_element(frame).click_and_hold().move_by_offset(
        -100, 40
    ).release().perform()
    after = view(driver)
    assert after[0] > before[0] and after[1] < before[1] and after[2:] == before[2:]


def test_a_call_is_found_and_gone_through(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    picture = picture_of(support, 200)
    opened(driver, tmp_path, drawn(picture, "html"))
    press(driver, "/")
    search = driver.switch_to.active_element
    assert search.get_attribute("id") == "search"
    search.send_keys("GIVE_voucher(")
    hits = [
        f"a{number}"
        for number, arrow in enumerate(picture.arrows)
        if any("give_voucher(" in call for call in arrow.calls)
    ]
    found = driver.find_elements("css selector", ".arrow.hit")
    assert [hit.get_attribute("id") for hit in found] == hits
    assert driver.find_element("id", "found").text == f"{len(hits)} arrow{'s' * (len(hits) > 1)}"
    assert "give_voucher(cents=500)" in driver.find_element("id", "details").text
    box = driver.find_element("css selector", f"#{hits[0]} rect").rect
    frame = driver.find_element("id", "picture").rect
    assert frame["x"] <= box["x"] <= frame["x"] + frame["width"]
    assert frame["y"] <= box["y"] <= frame["y"] + frame["height"]
    search.send_keys("no such call")
    assert driver.find_element("id", "found").text == "0 arrows"
    search.send_keys("\ue00c")  # escape
    assert driver.find_elements("css selector", ".arrow.hit") == []


def test_boxes_are_reached_by_the_keyboard(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    opened(driver, tmp_path, drawn(picture_of(support, 200), "html"))
    driver.find_element("id", "picture").send_keys("\ue004")  # tab
    assert driver.switch_to.active_element.get_attribute("id") == f"q{support.root}"
    assert f"state {support.root}," in driver.find_element("id", "details").text


def test_hostile_names_run_nothing_and_are_shown(driver: Any, tmp_path: Path) -> None:
    for picture in pictures(hostile_graph()):
        opened(driver, tmp_path, drawn(picture, "html"))
        press(driver, "0")
        texts = driver.execute_script(
            "return [...document.querySelectorAll('svg text')].map(text => text.textContent)"
        )
        assert sorted(texts) == sorted(shown(picture))
        assert driver.execute_script("return document.scripts.length") == 2
        assert driver.execute_script("return document.images.length") == 0
        for number in range(len(picture.arrows)):
            told = driver.execute_script(
                "const part = document.getElementById(arguments[0]);"
                "part.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));"
                "return [...document.querySelectorAll('#details li')].map(li => li.textContent)",
                f"a{number}",
            )
            assert told == list(picture.arrows[number].calls or picture.arrows[number].lines)
        assert driver.get_log("browser") == []


@pytest.mark.parametrize(("scheme", "ground"), [("light", "246, 248, 251"), ("dark", "15, 19, 24")])
def test_the_page_follows_the_colours_that_are_asked_for(
    driver: Any, tmp_path: Path, support: library.Artifact, scheme: str, ground: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened(driver, tmp_path, drawn(picture_of(support, 200), "html"))
    colour = driver.find_element("tag name", "body").value_of_css_property("background-color")
    assert ground in colour
    ink, paper = (
        driver.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", *asked
        )
        for asked in (("svg .box text", "fill"), ("svg .box rect", "fill"))
    )
    assert abs(brightness(ink) - brightness(paper)) > 120
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def brightness(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_paper_shows_the_drawing_alone(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    opened(driver, tmp_path, drawn(picture_of(support, 200), "html"))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not driver.find_element("id", "tools").is_displayed()
    assert not driver.find_element("id", "details").is_displayed()
    assert driver.find_element("css selector", "#picture svg").is_displayed()
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_large_tree_of_prefixes_opens(
    driver: Any, tmp_path: Path, support: library.Artifact
) -> None:
    prefixes = unroll(support, 5, 10_000)
    opened(driver, tmp_path, drawn(picture_of_prefixes(support, prefixes, 5), "html"))
    assert len(driver.find_elements("css selector", ".box")) == len(prefixes) > 500


@pytest.fixture
def dot() -> str:
    found = shutil.which("dot")
    if found is None:
        pytest.fail("no dot: Debian has it in the package graphviz")
    return found


def test_graphviz_reads_what_is_written(dot: str) -> None:
    support = library.compile_file(GRAMMARS / "support_refund.tcg")
    for picture in (*pictures(hostile_graph()), *pictures(support)):
        ended = subprocess.run(
            [dot, "-Tjson0"], input=drawn(picture, "dot").encode(), capture_output=True
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        graph = json.loads(ended.stdout)
        names = [item["name"] for item in graph["objects"]]
        assert names == [box.name for box in picture.boxes]
        ends = [(edge["tail"], edge["head"]) for edge in graph["edges"]]
        assert sorted(ends) == sorted((arrow.source, arrow.target) for arrow in picture.arrows)


def test_graphviz_shows_hostile_names_as_they_are(dot: str) -> None:
    picture = picture_of(hostile_graph(), 200)
    ended = subprocess.run(
        [dot, "-Tsvg"], input=drawn(picture, "dot").encode(), capture_output=True, check=True
    )
    from xml.etree import ElementTree

    root = ElementTree.fromstring(ended.stdout)
    texts = {
        str(text.text).replace("\xa0", " ")
        for text in root.iter("{http://www.w3.org/2000/svg}text")
    }
    for line in shown(picture):
        assert line in texts
