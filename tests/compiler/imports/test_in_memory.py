"""Graphs of networkx in memory: any objects as nodes and values end in a core or in a code."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Any, NoReturn

import networkx as nx
import numpy as np
import pytest

from tcc_compiler.imports.graph_grammar import read_graph, read_networkx
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file, compile_graph


def fails(*_: object) -> NoReturn:
    raise ZeroDivisionError("a foreign method was called")


class Hostile:
    """Fails wherever it is asked anything, but for its place in a dict."""

    __repr__ = __str__ = __bool__ = __len__ = __iter__ = __lt__ = __float__ = __index__ = fails
    __eq__ = fails
    __hash__ = object.__hash__


class HostileText(str):
    """A text whose every method of its own fails."""

    __slots__ = ()
    __repr__ = __str__ = __len__ = __getitem__ = __lt__ = __format__ = fails
    __hash__ = str.__hash__
    __eq__ = str.__eq__


class HostileNumber(int):
    """An integer whose every method of its own fails."""

    __repr__ = __str__ = __index__ = __int__ = __bool__ = bit_length = fails
    __hash__ = int.__hash__
    __eq__ = int.__eq__


class Named(enum.StrEnum):
    """Texts as constants."""

    START = "start here"


def graph(**attributes: object) -> nx.MultiDiGraph[Any]:
    """Two nodes and an edge; attributes of that edge."""
    made: Any = nx.MultiDiGraph()
    made.add_node("a", start=True)
    made.add_node("b", goal=True)
    made.add_edge("a", "b", **{"call": "go(n=1)", **attributes})
    return made


def codes(given: Any) -> list[str]:
    result = read_networkx(given)
    assert (result.core is None) == bool(result.diagnostics)
    return [found.code for found in result.diagnostics]


@pytest.mark.parametrize("node", [Hostile(), (1, 2), 1.5, True, b"x", frozenset(), 1 << 300])
def test_a_node_that_is_neither_text_nor_integer_is_refused(node: object) -> None:
    given = graph()
    given.add_node(node)
    assert codes(given) == ["TCC603"]


@pytest.mark.parametrize("given", [None, [], Hostile(), nx.Graph, {"nodes": []}])
def test_what_is_no_graph_is_refused(given: object) -> None:
    assert codes(given) == ["TCC603"]


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_an_undirected_graph_is_refused(kind: Any) -> None:
    assert codes(kind(graph())) == ["TCC603"]


def test_two_nodes_of_one_id_are_refused() -> None:
    class Other(str):
        __slots__ = ()
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    given = graph()
    given.add_node(Other("a"))
    result = read_networkx(given)
    assert [(d.code, d.message) for d in result.diagnostics] == [
        ("TCC603", 'two nodes have the id "a"')
    ]


@pytest.mark.parametrize("value", [Hostile(), [], {}, None, b"1", 1j, np.array([1]), np.str_])
@pytest.mark.parametrize(
    ("name", "code"),
    [("cost", "TCC604"), ("cost_high", "TCC604"), ("price", "TCC604"), ("call", "TCC606")],
)
def test_a_value_of_another_type_is_refused(name: str, code: str, value: object) -> None:
    assert codes(graph(**{name: value})) == [code]


@pytest.mark.parametrize(("name", "code"), [("start", "TCC604"), ("goal", "TCC604")])
def test_a_flag_of_another_type_is_refused(name: str, code: str) -> None:
    given = graph()
    given.nodes["b"][name] = Hostile()
    assert code in codes(given)


@pytest.mark.parametrize("name", ["name", "version", "depth"])
def test_an_attribute_of_the_graph_of_another_type_is_refused(name: str) -> None:
    given = graph()
    given.graph[name] = Hostile()
    assert codes(given) == ["TCC604"]


def test_attributes_that_mean_nothing_are_not_looked_at() -> None:
    given = graph(colour=Hostile())
    given.nodes["a"]["colour"] = given.graph["colour"] = Hostile()
    assert codes(given) == []


def test_subclasses_are_what_they_are_a_kind_of() -> None:
    plain = graph(cost=0.5, price=3)
    given: Any = nx.MultiDiGraph()
    given.add_node(HostileText("a"), start=np.bool_(True))
    given.add_node(HostileText("b"), goal=True)
    call = HostileText("go(n=1)")
    price = HostileNumber(3)
    given.add_edge("a", "b", call=call, cost=np.float64(0.5), price=price, epsilon=np.int64(0))
    assert codes(given) == []
    assert read_networkx(given).core == read_networkx(plain).core


def test_members_of_an_enum_of_texts_are_texts() -> None:
    given = nx.relabel_nodes(graph(), {"a": Named.START})
    plain = nx.relabel_nodes(graph(), {"a": "start here"})
    assert read_networkx(given).core == read_networkx(plain).core


def test_a_cost_that_is_a_range_has_both_ends(tmp_path: Path) -> None:
    given = graph(cost="0.1", cost_high=0.75)
    core = read_networkx(given).core
    assert core is not None
    call = core.calls[0]
    assert (call.cost_low, call.cost_high) == (100_000_000, 750_000_000)
    assert codes(graph(cost=1, cost_high=0.5)) == ["TCC309"]


def test_edges_that_name_one_call_agree_in_both_ends() -> None:
    given = graph(cost=1, cost_high=2)
    given.add_edge("a", "b", call="go(n=1)", cost=1)
    assert codes(given) == ["TCC608"]


def test_a_cycle_without_a_limit_is_refused_and_with_one_is_not() -> None:
    given = graph()
    given.add_edge("b", "b", call="again")
    refused = compile_graph(given, Options())
    assert refused.artifact is None
    assert [d.code for d in refused.diagnostics] == ["TCC401"]
    given.graph["depth"] = 3
    assert compile_graph(given, Options()).artifact is not None


def test_a_graph_has_the_bytes_that_it_has_as_a_file(tmp_path: Path) -> None:
    given = graph(cost=0.5, cost_high="0.75", latency_ms=3)
    given.add_edge("b", "a", call="back", epsilon=0.000000001)
    given.graph |= {"depth": 5, "version": "2.1"}
    made = compile_graph(given, Options(), "my graph").artifact
    assert made is not None
    text = json.dumps(nx.node_link_data(given, edges="edges"))
    (tmp_path / "my graph.json").write_text(text)
    nx.write_graphml(given, tmp_path / "my graph.graphml")
    for name in ("my graph.json", "my graph.graphml"):
        assert compile_file(tmp_path / name, Options()).artifact == made
    again = nx.node_link_graph(json.loads(text), edges="edges")
    assert compile_graph(again, Options(), "my graph").artifact == made


def test_both_readers_of_node_link_agree(tmp_path: Path) -> None:
    given = nx.DiGraph(graph(cost=2))
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(given, edges="links")))
    assert read_graph(tmp_path / "g.json").core == read_networkx(given, "g").core


def test_the_time_of_reading_is_limited() -> None:
    refused = compile_graph(graph(), Options(timeout=0.0))
    assert refused.artifact is None
    assert [d.code for d in refused.diagnostics] == ["TCC404"]
