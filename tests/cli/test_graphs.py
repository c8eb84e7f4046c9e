"""Artifacts as graphs of networkx: what they say, that they come back, and the prefix DAG."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import tcc as library
from tcc.pictures import graph
from tcc.pictures.graph import sizes
from tcc_certs.errors import Code, Rejected
from tcc_certs.race.digest import child_context, leaf_digest
from tcc_runtime.analysis.graph import graph_of
from tcc_runtime.artifact.plans import enumerate_plans
from tests.analysis.drawn import exact, nondeterministic, relaxed
from tests.cli.conftest import GRAMMARS, Tcc

ALL = sorted(path.stem for path in GRAMMARS.glob("*.tcg"))
SMALL = ("question_answering", "support_refund", "research")
LARGE = [pytest.param(name, marks=pytest.mark.campaign) for name in ALL if name not in SMALL]
RANGES = """grammar costs version "2"

tool look(at: "a b" | c | 5 | true) {
  cost 0.1 .. 0.3
  cost 1.123456789 when at = c
  price 2
  latency 1 s
  epsilon 0.25
}
tool `the end` { cost 9007199.254740993 }

plan = look{0,3} `the end`?
"""
OPTIONAL = """grammar optional version "1"

tool edit(a?: x, b?: 1) { cost 0.5 price 3 latency 2 ms epsilon 0.1 }

plan = edit edit(a=x)?
"""
LEFT_TO_A_RUN = """grammar left version "1"

tool a { price 1 }
tool b { price 2 }

plan = (a | b)*

limit depth <= 5
limit price <= 6
"""


def small(name: str) -> library.Artifact:
    return library.compile_file(GRAMMARS / f"{name}.tcg")


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_what_comes_out_as_a_graph_comes_back_with_the_same_root(name: str) -> None:
    artifact = small(name)
    graph = artifact.to_networkx()
    again = library.compile_graph(graph)
    # S(root) binds every plan below the root, with the low and the high costs of its calls.
    assert again.manifest.root == artifact.manifest.root
    assert again.plans(again.root) == artifact.plans(artifact.root)
    assert nx.utils.nodes_equal(again.to_networkx().nodes(data=True), graph.nodes(data=True))


def test_optional_parameters_and_amounts_come_back() -> None:
    artifact = library.compile_text(OPTIONAL)
    again = library.compile_graph(artifact.to_networkx())
    assert again.manifest.root == artifact.manifest.root
    assert list(again.texts) == ["edit", "edit(a=x)", "edit(a=x,b=1)", "edit(b=1)"]
    assert nx.utils.edges_equal(
        again.to_networkx().edges(data=True), artifact.to_networkx().edges(data=True)
    )


def test_ranges_of_cost_and_costs_that_no_float_has_come_back() -> None:
    artifact = library.compile_text(RANGES)
    graph = artifact.to_networkx()
    again = library.compile_graph(graph)
    assert again.manifest.root == artifact.manifest.root
    assert list(again.cost_high) == list(artifact.cost_high) != list(artifact.cost_low)
    (end,) = {data["cost"] for *_, data in graph.edges(data=True) if data["tool"] == "the end"}
    assert end == 9007199.254740993


def test_a_decimal_that_no_float_says_is_its_text() -> None:
    text = """grammar g version "1"

tool a { cost 9007199254.740993123 }

plan = a
"""
    ((_, _, data),) = library.compile_text(text, beta="0.001").to_networkx().edges(data=True)
    assert data["cost"] == "9007199254.740993123"


def test_every_attribute_is_what_the_artifact_says() -> None:
    artifact = library.compile_text(RANGES)
    graph = artifact.to_networkx()
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.number_of_nodes() == artifact.manifest.states
    assert graph.number_of_edges() == artifact.manifest.edges
    said = graph.graph
    assert (said["name"], said["version"], said["counts"]) == ("costs", "2", "exact")
    assert said["digest"] == artifact.digest.hex()
    assert said["root_state"] == artifact.manifest.root.hex()
    assert said["root"] == artifact.root and graph.in_degree(artifact.root) == 0
    for q, data in graph.nodes(data=True):
        assert data["accept"] == artifact.accepts(q)
        assert data["start"] == (q == artifact.root)
        assert data["plans"] == artifact.plans(q)
        assert data["race_count"] == artifact.race_count(q)
        assert data["rank"] == artifact.rank(q)
        assert Fraction(str(data["cost_to_go"])) * 10**9 == artifact.cost_to_go(q)
        assert data["residual_to_go"] == artifact.residual_to_go(q)
        due = data["accept"] + sum(graph.nodes[p]["plans"] for _, p in graph.out_edges(q))
        assert data["plans"] == due
    assert graph.nodes[artifact.root]["state_digest"] == said["root_state"]
    looks = {data["call"]: data for *_, data in graph.out_edges(artifact.root, data=True)}
    assert looks.keys() == set(artifact.texts)
    assert looks["look(at=c)"] | {"race_weight": 0} == {
        "call": "look(at=c)", "tool": "look", "arguments": '{"at": "c"}', "cost": 1.123456789,
        "price": 2, "latency_ms": 1000, "epsilon": 0.25, "race_weight": 0,
    }  # fmt: skip
    assert looks["look(at=5)"]["cost_high"] == 0.3 and "cost_high" not in looks["look(at=c)"]
    arguments = [json.loads(data["arguments"]) for data in looks.values()]
    assert arguments == [{}, {"at": "a b"}, {"at": 5}, {"at": "c"}, {"at": True}]


def test_edges_are_found_by_their_calls() -> None:
    graph = library.compile_text(RANGES).to_networkx()
    root = graph.graph["root"]
    (after,) = {
        target for _, target, key in graph.out_edges(root, keys=True) if key == "look(at=c)"
    }
    assert graph.edges[root, after, "look(at=c)"]["price"] == 2


def test_rounded_counts_are_not_written_out() -> None:
    path = GRAMMARS / "support_refund.tcg"
    artifact = library.compile_file(path, round_counts=4)
    for q, data in artifact.to_networkx().nodes(data=True):
        assert "race_count" not in data
        assert data["race_mantissa"] << data["race_exponent"] == artifact.race_count(q)


def test_a_graph_of_more_items_than_wanted_is_refused_with_their_number() -> None:
    artifact = small("support_refund")
    size = artifact.manifest.states + artifact.manifest.edges
    assert artifact.to_networkx(limit=size).number_of_nodes() == artifact.manifest.states
    with pytest.raises(Rejected) as refused:
        artifact.to_networkx(limit=size - 1)
    assert (refused.value.code, refused.value.found) == (Code.LIMIT, str(size))


def test_loaded_and_compiled_artifacts_are_of_the_class_with_graphs(tmp_path: Path) -> None:
    artifact = small("support_refund")
    library.save(artifact, tmp_path / "a.tcca")
    for loaded in (
        library.load(tmp_path / "a.tcca"),
        library.load((tmp_path / "a.tcca").read_bytes()),
        library.load(tmp_path / "a.tcca", verify=False),
    ):
        assert type(loaded) is library.Artifact
        assert nx.utils.graphs_equal(loaded.to_networkx(), artifact.to_networkx())


def sinks(graph: nx.MultiDiGraph[Any]) -> list[dict[str, Any]]:
    return [data for node, data in graph.nodes(data=True) if not graph.out_degree(node)]


@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("name", SMALL)
def test_the_ends_of_the_prefix_dag_partition_the_plans(name: str, depth: int) -> None:
    artifact = small(name)
    graph = artifact.prefix_dag(depth, limit=100_000)
    assert sum(data["plans"] for data in sinks(graph)) == artifact.plans(artifact.root)
    assert {data["kind"] for data in sinks(graph)} <= {"leaf", "cut"}
    for node, data in graph.nodes(data=True):
        below = [graph.nodes[child]["plans"] for _, child in graph.out_edges(node)]
        assert not below or sum(below) == data["plans"]
        assert graph.in_degree(node) == (node != 0)
    assert nx.is_arborescence(graph)


@pytest.mark.parametrize("text", [RANGES, LEFT_TO_A_RUN])
def test_a_whole_prefix_dag_is_that_of_the_listed_plans(text: str) -> None:
    artifact = library.compile_text(text)
    plans = list(enumerate_plans(artifact))
    graph = artifact.prefix_dag(100)
    leaves = [data for data in sinks(graph) if data["kind"] == "leaf"]
    assert sorted(data["prefix"] for data in leaves) == sorted(" ".join(plan) for plan in plans)
    prefixes = {plan[:n] for plan in plans for n in range(len(plan) + 1)}
    inner = {plan for plan in plans if plan in {p[:-1] for p in prefixes if p}}
    assert graph.number_of_nodes() == len(prefixes) + len(inner)
    cost = dict(zip(artifact.texts, artifact.cost_low, strict=True))
    by_text = {" ".join(plan): plan for plan in plans}
    for data in leaves:
        plan = by_text[data["prefix"]]
        digest = artifact.root_digest
        for call in plan:
            digest = child_context(digest, call.encode())
        assert data["context"] == digest.hex()
        assert data["leaf_id"] == leaf_digest(digest).hex()
        assert Fraction(str(data["cost"])) * 10**9 == sum(cost[call] for call in plan)
        assert (data["depth"], data["plans"], data["accept"]) == (len(plan), 1, True)


def test_the_prefixes_of_a_relaxed_artifact_are_those_of_its_true_plans() -> None:
    due_of = library.compile_text(LEFT_TO_A_RUN)
    left = library.compile_text(LEFT_TO_A_RUN, relax=["price"])
    assert left.manifest.counts == "upper"
    for depth in range(6):
        due, found = due_of.prefix_dag(depth), left.prefix_dag(depth)
        kept = ("kind", "prefix", "plans", "cost", "rank", "accept", "cost_to_go")
        rows = [
            [[data[name] for name in kept] for _, data in graph.nodes(data=True)]
            for graph in (due, found)
        ]
        assert rows[0] == rows[1]
        assert found.graph["plans"] == due_of.plans(due_of.root)


@pytest.mark.parametrize("kind", [exact, relaxed, nondeterministic])
def test_the_prefixes_of_any_artifact_are_those_of_its_listed_plans(kind: Any) -> None:
    rng = random.Random(7)
    for _ in range(40):
        artifact, plans = kind(rng)
        prefixes = {plan[:n] for plan in plans for n in range(len(plan) + 1)}
        for depth in (0, 1, 2, 9):
            found = graph.unroll(artifact, depth, 10_000)
            places = [node for node in found if node.parent is None or node.call is not None]
            assert sorted(node.prefix for node in places) == sorted(
                " ".join(prefix) for prefix in prefixes if len(prefix) <= depth
            )
            for node in places:
                begins = [plan for plan in plans if " ".join(plan[: node.depth]) == node.prefix]
                assert node.plans == len(begins)
            ends = [node.plans for node in found if node.kind != "node"]
            assert sum(ends) == len(plans)


def test_the_shared_graph_of_a_relaxed_artifact_says_what_is_left_to_a_run() -> None:
    graph = library.compile_text(LEFT_TO_A_RUN, relax=["price"]).to_networkx()
    assert (graph.graph["counts"], graph.graph["relaxed"]) == ("upper", "limit price <= 6")


@pytest.mark.parametrize("name", SMALL)
def test_nodes_are_counted_as_they_would_be_listed(name: str) -> None:
    artifact = small(name)
    counted, whole = sizes(graph_of(artifact), 4)
    assert whole
    for depth, count in enumerate(counted):
        assert len(graph.unroll(artifact, depth, count)) == count
        with pytest.raises(Rejected) as refused:
            graph.unroll(artifact, depth, count - 1)
        assert (refused.value.code, refused.value.found) == (Code.LIMIT, f"{count} nodes")


def test_a_depth_of_10_to_the_20_nodes_is_counted_at_once() -> None:
    artifact = small("coding_agent")
    counted, _ = sizes(graph_of(artifact), 30)
    with pytest.raises(Rejected) as refused:
        artifact.prefix_dag(30)
    assert refused.value.found == f"{counted[30]} nodes" and counted[30] > 10**21
    assert refused.value.expected == f"at most 10000 nodes; depth 5 has {counted[5]}"
    # Deeper than the longest plan there is nothing more.
    assert sizes(graph_of(artifact), 10**9)[0][-1] == counted[30]


def test_counting_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MOST_STEPS", 50)
    with pytest.raises(Rejected) as refused:
        small("support_refund").prefix_dag(9, limit=10)
    assert refused.value.found.startswith("more than ")


def test_long_prefixes_have_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MOST_TEXT", 1000)
    with pytest.raises(Rejected) as refused:
        small("support_refund").prefix_dag(3)
    assert refused.value.expected == "1000 characters of prefixes"


def test_a_negative_depth_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="a depth is 0 or more, not -1"):
        small("research").prefix_dag(-1)


@pytest.mark.parametrize("command", [("graph",), ("unroll", "--depth", 2)])
def test_networkx_reads_what_is_written(
    tcc: Tcc, artifact: Path, tmp_path: Path, command: tuple[object, ...]
) -> None:
    loaded = library.load(artifact)
    due: Any = loaded.to_networkx() if command == ("graph",) else loaded.prefix_dag(2)
    made = tcc(command[0], artifact, *command[1:], "--format", "node-link")
    assert (made.code, made.err) == (0, "")
    found = [nx.node_link_graph(made.json, edges="edges")]
    made = tcc(command[0], artifact, *command[1:], "--json")
    assert (made.json["format"], made.json["format_version"]) == (f"tcc.{command[0]}", "1.0")
    found.append(nx.node_link_graph(made.json, edges="edges"))
    path = tmp_path / "g.graphml"
    assert tcc(command[0], artifact, *command[1:], "-o", path).code == 0
    found.append(nx.read_graphml(path, node_type=int, force_multigraph=True))
    for written in found:
        assert isinstance(written, nx.MultiDiGraph)
        assert [list(written), list(written.edges)] == [list(due), list(due.edges)]
        for node, data in due.nodes(data=True):
            counts = {n: str(data[n]) for n in ("plans", "race_count") if n in data}
            assert written.nodes[node] == data | counts
        for (u, v, key), data in due.edges.items():
            assert written.edges[u, v, key] == data
        assert {n: str(v) for n, v in written.graph.items() if "default" not in n} == {
            n: str(v) for n, v in due.graph.items()
        }


@pytest.mark.parametrize("ending", ["json", "graphml"])
def test_what_graph_writes_is_what_compile_reads(
    tcc: Tcc, artifact: Path, tmp_path: Path, ending: str
) -> None:
    assert tcc("graph", artifact, "-o", tmp_path / f"g.{ending}").code == 0
    assert tcc("compile", tmp_path / f"g.{ending}").code == 0
    again = library.load(tmp_path / "g.tcca")
    assert again.manifest.root == library.load(artifact).manifest.root


HIDDEN = (
    "\ufffe",
    "\uffff",
    "\u202e",
    "\u0085",
    "\u2028",
    "\x7f",
    "\U000e0041",
    "\ufeff",
    "é",
    "]]>",
)


def test_characters_that_files_have_not_come_back(tcc: Tcc, tmp_path: Path) -> None:
    graph: Any = nx.MultiDiGraph(name="odd")
    graph.add_node(0, start=True)
    graph.add_node(1, goal=True)
    for text, other in product(HIDDEN, ("", "\n")):
        value = json.dumps(f"x{text}{other}", ensure_ascii=False)
        graph.add_edge(0, 1, call=f"say(text={value})")
    artifact = library.compile_graph(graph)
    assert artifact.plans(artifact.root) == 2 * len(HIDDEN)
    library.save(artifact, tmp_path / "odd.tcca")
    for ending in ("json", "graphml"):
        assert tcc("graph", tmp_path / "odd.tcca", "-o", tmp_path / f"odd.{ending}").code == 0
        again = library.compile_file(tmp_path / f"odd.{ending}")
        assert again.manifest.root == artifact.manifest.root


def test_unroll_refuses_what_is_too_large_with_its_number(tcc: Tcc, artifact: Path) -> None:
    ended = tcc("unroll", artifact, "--depth", 9, "--json")
    counted, _ = sizes(graph_of(library.load(artifact)), 9)
    (finding,) = ended.json["findings"]
    assert (ended.code, finding["code"]) == (2, "D201")
    assert finding["found"] == f"{counted[9]} nodes"


def test_json_and_another_format_exclude_each_other(tcc: Tcc, artifact: Path) -> None:
    ended = tcc("graph", artifact, "--json", "--format", "svg")
    assert ended.code == 2 and "--json and --format svg exclude each other" in ended.err


def test_what_is_drawn_is_never_replaced(tcc: Tcc, artifact: Path, grammar: Path) -> None:
    before = artifact.read_bytes()
    assert tcc("graph", artifact, "-o", artifact).code == 2
    assert tcc("unroll", artifact, "--depth", 1, "-o", artifact).code == 2
    assert artifact.read_bytes() == before
