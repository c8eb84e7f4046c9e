"""Pictures: bounded, the same every time, no part on another, and hostile texts are texts."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest

import tcc as library
from tcc.pictures import (
    MOST_ARROWS,
    MOST_CALLS,
    MOST_CELLS,
    Picture,
    cells,
    picture_of,
    picture_of_prefixes,
    short,
)
from tcc.pictures.graph import unroll
from tcc.pictures.svg import FORMATS, crossings, drawn, layered, ordered, placed
from tests.cli.conftest import GRAMMARS, Tcc

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script </script x",
    "</title></svg><img src=x onerror=alert(1)>",
    '"]; evil [label="',
    'a"] --> b["c',
    "\\N \\G \\l \\",
    "&lt;b&gt; &amp; &#60;",
    "]]> <!-- --> %% `code` #35; #quot; |x|",
    "${alert(1)} {{x}} <%= x %>",
    "\u202e\u2066\u0007\u2028\uffff\ufffe\x7f",
    "end",
    "漢字" * 40,
    "x" * 4000,
)


def hostile_graph() -> library.Artifact:
    """A plan of hostile calls: as names of tools, where they may be, and as values."""
    graph: Any = nx.MultiDiGraph(name="hostile")
    graph.add_node(0, start=True)
    for at, text in enumerate(HOSTILE):
        quoted = json.dumps(text, ensure_ascii=False)
        graph.add_edge(at, at + 1, call=f"say(text={quoted})")
        if len(text) <= 128 and text.isprintable() and "`" not in text:
            graph.add_edge(at, at + 1, call=f"{quoted}({quoted}=1)")
    graph.nodes[len(HOSTILE)]["goal"] = True
    return library.compile_graph(graph)


def pictures(artifact: library.Artifact) -> list[Picture]:
    whole = picture_of(artifact, 200)
    return [whole, picture_of_prefixes(artifact, unroll(artifact, 3, 1000), 3)]


@pytest.fixture(scope="module")
def hostile() -> list[Picture]:
    return pictures(hostile_graph())


def shown(picture: Picture) -> list[str]:
    """Every line that stands in a box or on an arrow."""
    return [line for part in (*picture.boxes, *picture.arrows) for line in part.lines]


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z0-9_]+|->|[={}\[\];,]', re.DOTALL)


def dot_statements(text: str) -> list[list[str]]:
    """The statements of a digraph as their tokens; nothing but white space is between two."""
    tokens, at = [], 0
    for found in TOKEN.finditer(text):
        assert text[at : found.start()].isspace() or at == found.start()
        at = found.end()
        tokens.append(found[0])
    assert text[at:] == "\n" and [tokens[0], tokens[2], tokens[-1]] == ["digraph", "{", "}"]
    statements: list[list[str]] = [[]]
    for token in tokens[3:-1]:
        if token == ";":
            statements.append([])
        else:
            statements[-1].append(token)
    assert statements.pop() == []
    return statements


def dot_lines(quoted: str) -> tuple[str, ...]:
    """The lines of a label as Graphviz has them: escapes, then entities."""
    assert quoted[0] == quoted[-1] == '"'
    parts = re.findall(r"\\.|[^\\]", quoted[1:-1])
    text = "".join({"\\n": "\n", "\\\\": "\\", '\\"': '"'}.get(part, part) for part in parts)
    assert re.search(r"&(?!amp;)", text) is None
    return tuple(text.replace("&amp;", "&").split("\n"))


def test_hostile_names_stand_in_dot_as_text(hostile: list[Picture]) -> None:
    for picture in hostile:
        statements = dot_statements(drawn(picture, "dot"))
        assert [found[0] for found in statements[:3]] == ["graph", "node", "edge"]
        boxes = statements[3 : 3 + len(picture.boxes)]
        edges = statements[3 + len(picture.boxes) :]
        assert [(found[0], dot_lines(found[4])) for found in boxes] == [
            (box.name, box.lines) for box in picture.boxes
        ]
        names = [box.name for box in picture.boxes]
        assert [(*found[:3], dot_lines(found[6])) for found in edges] == [
            (names[arrow.source], "->", names[arrow.target], arrow.lines)
            for arrow in picture.arrows
        ]


def test_hostile_names_stand_in_mermaid_as_numbers(hostile: list[Picture]) -> None:
    text = r'"((?:[A-Za-z0-9 _.,=():/+*^-]|#[0-9]+;|<br/>)*)"'
    forms = (
        r"  %% (?:[A-Za-z0-9 _.,=():/+*^-]|#[0-9]+;)*",
        rf"  [a-z][0-9]+(?:\[{text}\]|\(\[{text}\]\))(?::::[a-z]+)?",
        rf"  [a-z][0-9]+ -->\|{text}\| [a-z][0-9]+",
        r"  classDef [a-z]+ [a-z0-9:#, -]+",
    )
    for picture in hostile:
        lines = drawn(picture, "mermaid").splitlines()
        assert lines[0] == "flowchart LR"
        for line in lines[1:]:
            assert any(re.fullmatch(form, line) for form in forms), line
        labels = [re.findall(text, line)[0] for line in lines if "-->|" in line]
        told = [tuple(map(from_numbers, label.split("<br/>"))) for label in labels]
        assert told == [arrow.lines for arrow in picture.arrows]


def from_numbers(text: str) -> str:
    return re.sub("#([0-9]+);", lambda found: chr(int(found[1])), text)


def test_hostile_names_stand_in_svg_as_text(hostile: list[Picture]) -> None:
    known = {"svg", "title", "style", "rect", "text", "defs", "marker", "path", "g"}
    for picture in hostile:
        root = ElementTree.fromstring(drawn(picture, "svg"))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} == known
        for element in root.iter():
            assert not any(name.startswith("on") or "href" in name for name in element.attrib)
        texts = [element.text for element in root.iter(f"{SVG}text") if not element.get("class")]
        assert sorted(map(str, texts)) == sorted(shown(picture))


class Page(HTMLParser):
    """The tags of a page, and what stands in its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data


def test_hostile_names_stand_in_a_page_as_text(hostile: list[Picture]) -> None:
    for picture in hostile:
        text = drawn(picture, "html")
        assert "<" not in text.split('id="data">')[1].split("</script>")[0]
        page = Page(text)
        assert page.tags.count("script") == 2 and "img" not in page.tags
        assert page.tags.count("svg") == 1
        names = {name for name, _ in page.attributes}
        assert not {name for name in names if name.startswith("on")} | (names & {"src", "href"})
        said = json.loads(page.scripts[0])
        assert said.keys() == {box.name for box in picture.boxes} | {
            f"a{number}" for number in range(len(picture.arrows))
        }
        for number, arrow in enumerate(picture.arrows):
            assert said[f"a{number}"]["calls"] == list(arrow.calls or arrow.lines)


def test_a_page_loads_nothing_and_runs_one_script() -> None:
    text = drawn(picture_of(hostile_graph(), 200), "html")
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    for word in ("@import", "url(http", "fetch(", "XMLHttpRequest", "innerHTML", "eval("):
        assert word not in text


def test_what_is_drawn_and_written_is_the_same_whatever_the_hash_seed() -> None:
    code = (
        "from tcc.pictures.graph import FORMATS as GRAPHS, graph_text\n"
        "from tests.cli.test_pictures import FORMATS, drawn, hostile_graph, pictures\n"
        "artifact = hostile_graph()\n"
        "for picture in pictures(artifact):\n"
        "    for form in FORMATS: print(drawn(picture, form))\n"
        "for form in GRAPHS: print(graph_text(artifact.to_networkx(), form, 'graph'))\n"
    )
    found = set()
    for seed in ("0", "1"):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, check=True,
        )  # fmt: skip
        found.add(ended.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("name", ["support_refund", "question_answering", "research"])
def test_nothing_in_a_drawing_lies_on_anything_else(name: str) -> None:
    artifact = library.compile_file(GRAMMARS / f"{name}.tcg")
    for picture in pictures(artifact):
        root = ElementTree.fromstring(drawn(picture, "svg"))
        width, height = int(root.attrib["width"]), int(root.attrib["height"])
        places = []
        for group in root.iter(f"{SVG}g"):
            if "class" not in group.attrib:
                continue
            rect = group.find(f"{SVG}rect")
            assert rect is not None
            x, y, w, h = (int(rect.attrib[side]) for side in ("x", "y", "width", "height"))
            assert min(x, y) >= 0 and x + w <= width and y + h <= height
            places.append((x, y, x + w, y + h))
        assert len(places) == len(picture.boxes) + len(picture.arrows)
        for a, b in combinations(sorted(places), 2):
            assert a[2] <= b[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)


def test_sources_stand_left_of_their_targets() -> None:
    picture = picture_of(library.compile_file(GRAMMARS / "support_refund.tcg"), 200)
    sizes = [(10, 10)] * len(picture.boxes)
    arrows = [(arrow.source, arrow.target) for arrow in picture.arrows]
    found = layered(sizes, arrows, [(10, 10)] * len(arrows))
    places = placed(found, ordered(found))
    for source, target in arrows:
        assert source < target and places.left[source] + 10 < places.left[target]


def test_crossings_are_those_that_are_counted_one_by_one() -> None:
    rng = random.Random(3)
    for _ in range(50):
        boxes = rng.randint(2, 12)
        pairs = [pair for pair in combinations(range(boxes), 2) if rng.random() < 0.4]
        found = layered([(5, 5)] * boxes, pairs, [(5, 5)] * len(pairs))
        for order in (found.layers, ordered(found)):
            due = 0
            for upper, lower in pairwise(order):
                place = {item: at for at, item in enumerate(lower)}
                lines = [
                    (at, place[end]) for at, item in enumerate(upper) for end in found.after[item]
                ]
                due += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(lines, 2))
            assert crossings(found, order) == due
        assert crossings(found, ordered(found)) <= crossings(found, found.layers)


def test_a_large_artifact_is_drawn_in_part_and_says_so(tcc: Tcc, tmp_path: Path) -> None:
    grammar = GRAMMARS / "github_triage.tcg"
    states = tcc("inspect", grammar, "--json").json["states"]
    for output_format in FORMATS:
        path = tmp_path / f"p.{output_format}"
        ended = tcc("graph", grammar, "--format", output_format, "--show", 20, "-o", path)
        assert ended.code == 0
        assert f"the first 20 of {states:,} states".replace(",", " ") in ended.err
        if output_format != "mermaid":
            assert "more state" in path.read_text("utf-8")


def test_a_picture_with_too_many_arrows_shows_fewer_states() -> None:
    # From each node to every later one: 60 states have 1770 arrows.
    graph: Any = nx.MultiDiGraph(name="dense")
    for source, target in combinations(range(60), 2):
        graph.add_edge(source, target, call=f"go(to={target})")
    graph.nodes[0]["start"] = graph.nodes[59]["goal"] = True
    artifact = library.compile_graph(graph)
    picture = picture_of(artifact, 200)
    assert len(picture.arrows) <= MOST_ARROWS
    assert picture.left_out == "the first 30 of 60 states, nearest to the root first; and 30 more"
    ElementTree.fromstring(drawn(picture, "svg"))


def test_an_arrow_of_very_many_calls_names_their_tools() -> None:
    calls = " | ".join(f"t{tool}" for tool in range(6))
    tools = "\n".join(f"tool t{tool}(n: 0..199)" for tool in range(6))
    artifact = library.compile_text(f'grammar wide version "1"\n{tools}\nplan = {calls}')
    (found,) = picture_of(artifact, 200).arrows
    assert found.lines == ("t0 (200 calls)", "t1 (200 calls)", "t2 (200 calls)", "and 3 more tools")
    assert (len(found.calls), found.more) == (MOST_CALLS, 1200 - MOST_CALLS)


def test_a_long_text_is_cut_to_its_cells() -> None:
    for text in ("x" * 1000, "漢" * 1000, "\u202e" * 1000, "a\n" * 1000, "漢字" + "x" * 60):
        assert cells(short(text)) <= MOST_CELLS and short(text).endswith("…")
    assert short("漢" * 22) == "漢" * 22
    assert short("a\nb\x00") == "a\\nb\\x00"


def test_states_where_a_plan_may_stop_have_two_borders() -> None:
    artifact = library.compile_text("""grammar g version "1"

tool a

plan = a{0,2}
""")
    picture = picture_of(artifact, 200)
    assert [box.accept for box in picture.boxes] == [True] * 3
    assert drawn(picture, "dot").count("peripheries=2") == 3
    assert drawn(picture, "svg").count('class="inner"') == 3
    assert drawn(picture, "mermaid").count('(["') == 3


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("p.dot", "digraph"),
        ("p.gv", "digraph"),
        ("p.mmd", "flowchart"),
        ("p.svg", "<?xml"),
        ("p.HTML", "<!DOCTYPE"),
        ("p.graphml", "<graphml"),
        ("p.json", "{"),
        ("p.txt", "digraph"),
    ],
)
def test_the_ending_of_the_output_says_the_format(
    tcc: Tcc, artifact: Path, tmp_path: Path, name: str, begins: str
) -> None:
    assert tcc("graph", artifact, "-o", tmp_path / name).code == 0
    assert (tmp_path / name).read_text("utf-8").startswith(begins)


def test_what_is_printed_is_what_is_written(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    for output_format in (*FORMATS, "graphml"):
        tcc("graph", artifact, "--format", output_format, "-o", tmp_path / "p")
        printed = tcc("graph", artifact, "--format", output_format).out
        assert printed == (tmp_path / "p").read_text("utf-8")
