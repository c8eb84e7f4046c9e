"""Graphs as grammars: both kinds, both formats, any order; and what they mean."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.codec import encode
from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import core_json, read_core
from tcc_compiler.imports.graph_grammar import parse_call, read_graph, read_networkx
from tcc_compiler.names.compile import Compiled
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text

STATES: dict[str, Any] = {
    "directed": True,
    "multigraph": True,
    "graph": {"name": "qa", "version": "1.2", "depth": 4},
    "nodes": [
        {"id": "asked", "start": True},
        {"id": 2},
        {"id": "2", "accept": True},
        {"id": "lost"},
        {"id": "unreached", "goal": True},
    ],
    "links": [
        {"source": "asked", "target": 2, "call": "search(k=5,e=\"a b\")", "cost": 0.1, "price": 1},
        {"source": "asked", "target": 2, "call": "search(k=10.0,e=x)", "cost": "0.25"},
        {"source": 2, "target": 2, "call": "search(k=10,e=x)", "cost": 0.25},
        {"source": 2, "target": "2", "call": "answer", "epsilon": 0.5, "latency_ms": 20},
        {"source": 2, "target": "lost", "call": "give_up"},
    ],
}  # fmt: skip
STATES_TEXT = """grammar qa version "1.2"

tool search(k: 5 | 10, e: x | "a b") { cost 0.1 cost 0.25 when k = 10 price 1 when k = 5 }
tool answer { epsilon 0.5 latency 20 ms }
tool give_up

rule read = answer | search(k=10, e=x) read
plan = (search(k=5, e="a b") | search(k=10, e=x)) read

limit depth <= 4
"""
TOOLS: dict[str, Any] = {
    "directed": True,
    "nodes": [
        {"id": "search", "start": True, "cost": 1},
        {"id": 7, "tool": "rank(by=date)", "start": True, "goal": True},
        {"id": "write", "goal": True, "price": 3},
    ],
    "edges": [
        {"source": "search", "target": 7},
        {"source": 7, "target": "write"},
        {"source": "search", "target": "write"},
    ],
}


def result_of(document: dict[str, Any], folder: Path, name: str = "graph.json") -> Compiled:
    path = folder / name
    path.write_text(json.dumps(document), "utf-8")
    result = read_graph(path)
    assert [item.message for item in result.diagnostics] == []
    assert result.core is not None
    assert read_core(encode(core_json(result.core))) == result.core
    return result


def shuffled(document: dict[str, Any], seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    copy = {**document}
    for key in ("nodes", "edges", "links"):
        if key in copy:
            copy[key] = rng.sample(copy[key], len(copy[key]))
    return copy


def root_of(core: Core) -> bytes:
    artifact = compile_core(core, Options()).artifact
    assert artifact is not None
    return read_artifact(artifact).manifest.root


def test_a_graph_of_states_means_what_the_grammar_means(tmp_path: Path) -> None:
    result = result_of(STATES, tmp_path)
    assert result.core is not None
    artifact = compile_text(STATES_TEXT, Options()).artifact
    assert artifact is not None
    assert root_of(result.core) == read_artifact(artifact).manifest.root
    found = result.core
    assert (found.name, found.version) == ("qa", "1.2")
    assert list(found.limit_texts) == ["limit depth <= 4"]
    assert [call.text for call in found.calls] == [
        "answer", "give_up", 'search(k=10,e=x)', 'search(k=5,e="a b")',
    ]  # fmt: skip


def test_a_graph_of_tools_means_what_the_grammar_means(tmp_path: Path) -> None:
    result = result_of(TOOLS, tmp_path, "my-tools.2.json")
    assert result.core is not None
    found = result.core
    assert (found.name, found.version) == ("my_tools_2", "1")
    text = """grammar g version "1"

tool search { cost 1 }
tool rank(by: `date`)
tool write { price 3 }

plan = search write | search? rank write?
"""
    artifact = compile_text(text, Options()).artifact
    assert artifact is not None
    assert root_of(result.core) == read_artifact(artifact).manifest.root


@pytest.mark.parametrize("document", [STATES, TOOLS], ids=["states", "tools"])
def test_the_order_of_nodes_and_edges_does_not_matter(
    document: dict[str, Any], tmp_path: Path
) -> None:
    first = result_of(document, tmp_path).core
    for seed in range(10):
        assert result_of(shuffled(document, seed), tmp_path).core == first


def test_networkx_writes_what_is_read(tmp_path: Path) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        graph = nx.MultiDiGraph(name="g", version="2", depth=3)
        graph.add_nodes_from(f"n{i}" for i in range(5))
        graph.nodes["n0"]["start"] = True
        graph.nodes["n4"]["goal"] = True
        nx.add_path(graph, [f"n{i}" for i in range(5)], call="go(n=1)", cost=0.1)
        for _ in range(rng.randint(0, 9)):
            call = rng.choice(["go(n=1)", "stop"])
            ends = [f"n{rng.randint(0, 4)}" for _ in range(2)]
            graph.add_edge(*ends, call=call, cost=0.1 if call == "go(n=1)" else 0.30000000000000004)
        _round_trips(graph, tmp_path)


def _round_trips(graph: nx.MultiDiGraph[str], folder: Path) -> None:
    direct = read_networkx(graph)
    if direct.diagnostics:
        # 0.30000000000000004 has 17 digits: refused wherever it stands.
        assert {item.code for item in direct.diagnostics} == {"TCC306"}
        return
    (folder / "g.json").write_text(json.dumps(nx.node_link_data(graph, edges="links")), "utf-8")
    nx.write_graphml(graph, folder / "g.graphml")
    assert read_graph(folder / "g.json").core == direct.core
    assert read_graph(folder / "g.graphml").core == direct.core
    assert direct.core is not None


def test_a_start_that_is_a_goal_stops_at_once(tmp_path: Path) -> None:
    nodes = [{"id": "a", "start": True, "accept": True}]
    edges = [{"source": "a", "target": "a", "call": "x"}]
    document = {"directed": True, "graph": {"depth": 2}, "nodes": nodes, "edges": edges}
    result = result_of(document, tmp_path)
    assert result.core is not None
    assert core_json(result.core)["plan"] == ["rule", "node_0"]
    assert core_json(result.core)["rules"] == [
        ["node_0", ["alt", [["empty"], ["seq", [["call", 0], ["rule", "node_0"]]]]]]
    ]


def test_entities_are_refused_unread(tmp_path: Path) -> None:
    bomb = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(40))
    path = tmp_path / "bomb.graphml"
    for declared in (f'<!ENTITY e0 "x">{bomb}', '<!ENTITY e40 SYSTEM "file:///etc/passwd">', ""):
        path.write_text(f"<!DOCTYPE g [{declared}]><graphml>&e40;</graphml>", "utf-8")
        assert [item.code for item in read_graph(path).diagnostics] == ["TCC602"]


NO_CALLS = (
    *("a(", "a()", "a(k)", "a(k=)", "a(k=1", "a(k=1,)", "a(k=1)b", "a(k=1,k=2)", "a (k=1)", "1a"),
    *("", "a(k=+1)", 'a(k="\\ud800")', 'a(k="\\q")', 'a(k="x)'),
    *(
        "\u00e9",
        "a(k=" + "9" * 500 + ")",
        '""',
        '"a',
        '"a\\u0007"',
        '"a\\u200b"(k=1)',
        'a("k"=1,k=2)',
        '"a`b"',
    ),
    *('"' + "x" * 129 + '"', "x" * 129, 'a(""=1)', 'a("k\\n"=1)', '"\\ud800"', '"a"b', 'a"b"'),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('"a-b"("limit"=5.0,"x"="y",after_=true)', '"a-b"(limit=5,x=y,after_=true)'),
        ('"goal"("k"="true",m="5",n=null)', 'goal(k="true",m="5",n=null)'),
        ('a(model=1,price="goal",any=plan)', "a(model=1,price=goal,any=plan)"),
        ('"\u00e9"(k="",l="\\u00e9")', '"\u00e9"(k="",l="\u00e9")'),
    ],
)
def test_names_in_quotes_are_read(text: str, canonical: str) -> None:
    call = parse_call(text)
    assert call.text == canonical
    assert parse_call(canonical) == call


@pytest.mark.parametrize("text", NO_CALLS)
def test_what_is_no_call_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    nodes = [{"id": 1, "tool": text, "start": True, "goal": True}]
    path.write_text(json.dumps({"directed": True, "nodes": nodes, "edges": []}), "utf-8")
    assert [item.code for item in read_graph(path).diagnostics] == ["TCC606"]


ONE = '{"directed": true, "nodes": [{"id": 1}], '
NO_GRAPHS = (
    *("", "null", "[]", "1e999", '"x"', '{"directed": true}', '{"directed": true, "nodes": {}}'),
    '{"directed": true, "nodes": [1], "edges": []}',
    '{"directed": 1, "nodes": [], "edges": []}',
    '{"directed": true, "nodes": [{"id": null}], "edges": []}',
    '{"directed": true, "nodes": [{"id": true}], "edges": []}',
    '{"directed": true, "nodes": [{"id": ' + "9" * 5000 + '}], "edges": []}',
    '{"directed": true, "nodes": [{"id": ' + "9" * 100 + '}], "edges": []}',
    ONE + '"edges": [[1, 1]]}',
    ONE + '"edges": [{"source": 1}]}',
    ONE + '"edges": [], "graph": []}',
)


@pytest.mark.parametrize("text", NO_GRAPHS)
def test_json_of_another_shape_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(text, "utf-8")
    found = {item.code for item in read_graph(path).diagnostics}
    assert found in ({"TCC601"}, {"TCC603"})


XML = "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'>"
DIRECTED = "<graph edgedefault='directed'>"
NODE = "<node id='a'><data key='k'>{}</data></node></graph></graphml>"
KEY = "<key id='k' for='node' attr.name='cost' attr.type='{}'/>"
NO_GRAPHML = (
    "<graphml/>",
    "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'/>",
    f"{XML}<graph/></graphml>",
    f"{XML}{DIRECTED}<edge source='a'/></graph></graphml>",
    f"{XML}{DIRECTED}{NODE.format(1)}",
    f"{XML}{KEY.format('int')}{DIRECTED}{NODE.format('9' * 5000)}",
    f"{XML}{KEY.format('blob')}{DIRECTED}{NODE.format(1)}",
    f"{XML}<graph edgedefault='undirected'><node id='a'/></graph></graphml>",
)


@pytest.mark.parametrize("body", NO_GRAPHML)
def test_graphml_of_another_shape_is_refused(body: str, tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(body, "utf-8")
    found = {item.code for item in read_graph(path).diagnostics}
    assert found in ({"TCC601"}, {"TCC603"}, {"TCC605"})
