"""One change to a core that has something of everything: refused at its place, or still read."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tests.certs.test_core import full_core

MODEL = {"name": "m", "price": 1, "latency_ms": 1, "epsilon": 1}
CALL = [0, [], 0, 0, 0, 0, 0]
FAR = 2**63


def tool(**members: Any) -> list[Any]:
    """The tools of the core, and one more that owns no call."""
    return [*full_core()["tools"], {"name": "c", "params": [], **members}]


def params(*values: Any) -> list[Any]:
    return tool(params=[{"name": "k", "values": list(values)}])


def calls(*first: Any) -> list[Any]:
    return [list(first), *full_core()["calls"][1:]]


def patterns(*first: Any) -> list[Any]:
    return [list(first), *full_core()["patterns"][1:]]


def depth(**members: Any) -> list[Any]:
    return [{"kind": "depth", "op": "<=", "value": 3, **members}]


def uses(where: Any, **members: Any) -> list[Any]:
    limit = {"kind": "uses", "of": {"tool": 1, "where": where}, "op": "<=", "value": 1}
    return [{**limit, **members}]


def plan(*item: Any) -> list[Any]:
    """The plan of the core, or the expression: all patterns and rules stay in use."""
    return ["alt", [list(item), full_core()["plan"][1][0], full_core()["plan"][1][1]]]


ALL = ["call", 1]
REFUSED: list[tuple[str, Any, str]] = [
    ("tools", tool(params=[{"name": "k", "values": ["1"]}] * 2), "core.tools[2].params"),
    ("tools", tool(name="b"), "core.tools[2]"),
    ("tools", tool(name="c d"), "core.version"),
    ("tools", tool(more=1), "core.tools[2]"),
    ("tools", tool(params={}), "core.tools[2].params"),
    ("tools", tool(**{"in": "x"}), "core.tools[2].out"),
    ("tools", tool(out="x"), "core.tools[2].out"),
    ("tools", tool(**{"in": "x y", "out": "x"}), "core.tools[2].in"),
    ("tools", tool(**{"in": "x", "out": "x y"}), "core.tools[2].out"),
    ("tools", params(), "core.tools[2].params[0].values"),
    ("tools", params("1", "1"), "core.tools[2].params[0].values"),
    ("tools", params("1.0"), "core.tools[2].params[0].values[0]"),
    ("tools", params("x", "-0"), "core.tools[2].params[0].values[1]"),
    ("tools", params("a b"), "core.tools[2].params[0].values[0]"),
    ("tools", params('"\\u0041"'), "core.tools[2].params[0].values[0]"),
    ("tools", params('"a'), "core.tools[2].params[0].values[0]"),
    ("tools", params(1), "core.tools[2].params[0].values[0]"),
    ("tools", tool(params=[{"name": "k"}]), "core.tools[2].params[0]"),
    ("tools", tool(params=[{"name": "1", "values": ["1"]}]), "core.version"),
    ("tools", tool(doc=1), "core.tools[2].doc"),
    ("tools", tool(quotes="other"), "core.tools[2].quotes"),
    ("tools", tool(bind={"kind": "x", "server": "s", "tool": "t"}), "core.tools[2].bind.kind"),
    ("tools", tool(bind={"kind": "mcp", "server": "s", "tool": 1}), "core.tools[2].bind.tool"),
    ("tools", tool(bind={"kind": "python", "server": "s"}), "core.tools[2].bind"),
    ("tools", tool(bind="mcp"), "core.tools[2].bind"),
    ("tools", tool(models=[]), "core.tools[2].models"),
    ("tools", tool(models=[{**MODEL, "price": -1}]), "core.tools[2].models[0].price"),
    ("tools", tool(models=[{**MODEL, "name": "1"}]), "core.tools[2].models[0].name"),
    ("tools", tool(models=[{**MODEL, "adapter": 1}]), "core.tools[2].models[0].adapter"),
    ("tools", tool(models=[{**MODEL, "more": 1}]), "core.tools[2].models[0]"),
    ("calls", calls(*CALL[:6]), "core.calls[0] members"),
    ("calls", calls(*CALL, 0), "core.calls[0] members"),
    ("calls", calls(2, *CALL[1:]), "core.calls[0]"),
    ("calls", calls(0, [0], *CALL[2:]), "core.calls[0] values"),
    ("calls", calls(1, [3], *CALL[2:]), "core.calls[0]"),
    ("calls", calls(0, [], 1, 0, 0, 0, 0), "core.calls[0]"),
    ("calls", calls(0, [], 0, str(FAR), 0, 0, 0), "core.calls[0]"),
    ("calls", calls(0, [], str(-FAR - 1), 0, 0, 0, 0), "core.calls[0]"),
    ("calls", calls(0, [], 0, 0, -1, 0, 0), "core.calls[0]"),
    ("calls", calls(0, [], 0, 0, 0, -1, 0), "core.calls[0]"),
    ("calls", calls(0, [], 0, 0, 0, 0, str(2 * FAR)), "core.calls[0]"),
    ("calls", calls(1, [1], 0, 0, 0, 0, 0), "core.calls[1]"),
    ("patterns", patterns([0, 0]), "core.patterns[0]"),
    ("patterns", patterns([0, 5]), "core.patterns[0]"),
    ("patterns", patterns([0, 1], [1, 2]), "core.patterns[0]"),
    ("patterns", patterns([0, 1, 2]), "core.patterns[0] range"),
    ("patterns", patterns([0, 2]), "core.patterns[1]"),
    ("patterns", [*full_core()["patterns"], [[2, 3]]], "core.patterns[3]"),
    ("rules", [["r", ALL, ALL]], "core.rules[0] members"),
    ("rules", [["r r", ALL]], "core.rules[0]"),
    ("rules", [["r", ALL], ["r", ALL]], "core.rules[1]"),
    ("rules", [["q", ALL], ["r", ALL]], "core.rules unreached"),
    ("rules", [], "core.rules"),
    ("plan", plan("repeat", ALL, 2, 1), "core.plan"),
    ("plan", plan("repeat", ALL, 0, True), "core.plan"),
    ("plan", plan("repeat", ALL), "core.plan"),
    ("plan", plan("seq", [ALL]), "core.plan"),
    ("plan", plan("alt", [ALL, ALL]), "core.plan"),
    ("plan", plan("diff", ["diff", ALL, [ALL]], [ALL]), "core.plan"),
    ("plan", plan("diff", ALL, []), "core.plan"),
    ("plan", plan("call", 3), "core.plan"),
    ("plan", plan("rule", 1), "core.plan"),
    ("plan", plan(["call"], 0), "core.plan"),
    ("limits", depth(value=-1), "core.limits[0].value"),
    ("limits", depth(value=str(2 * FAR)), "core.limits[0].value"),
    ("limits", depth(op=">="), "core.limits[0].op"),
    ("limits", depth(kind="width"), "core.limits[0].kind"),
    ("limits", depth(of={"tool": 0, "where": []}), "core.limits[0]"),
    ("limits", [*depth(), *depth()], "core.limits[1]"),
    ("limits", uses([], op="=="), "core.limits[0].op"),
    ("limits", uses([], of={"tool": 2, "where": []}), "core.limits[0].of"),
    ("limits", uses([], of={"tool": 1}), "core.limits[0].of"),
    ("limits", uses([[1, [0]]]), "core.limits[0].of"),
    ("limits", uses([[0, [0], 0]]), "core.limits[0].of entry"),
    ("limits", uses([[0, []]]), "core.limits[0].of"),
    ("limits", uses([[0, [3]]]), "core.limits[0].of"),
    ("limits", uses([[0, [1, 0]]]), "core.limits[0].of[1]"),
    ("limits", uses([[0, [0]], [0, [1]]]), "core.limits[0].of[1]"),
    ("requires", [["before", 0, 1, 2]], "core.requires[0] members"),
    ("requires", [["before", 0, 3]], "core.requires[0]"),
    ("requires", [["beside", 0, 1]], "core.requires[0]"),
    ("requires", [["before", 1, 0], ["before", 1, 0]], "core.requires[1]"),
    ("forbids", [["next", []]], "core.forbids[0]"),
    ("forbids", [["next", [3]]], "core.forbids[0]"),
    ("forbids", [["next", 0]], "core.forbids[0]"),
    ("forbids", [["with", 1, 0]], "core.forbids[0]"),
    ("forbids", [["with", 0, 1, 2]], "core.forbids[0]"),
    ("forbids", [["with", 0, 3]], "core.forbids[0]"),
    ("forbids", [["with", 0, 1], ["with", 0, 1]], "core.forbids[1]"),
    ("goals", ["y", "x"], "core.goals[1]"),
    ("goals", ["x", "x"], "core.goals[1]"),
    ("goals", [], "core.goals"),
    ("goals", ["x y"], "core.goals"),
    ("goals", None, "core.goals"),
    ("start", None, "core.goals"),
    ("start", "x y", "core.start"),
    ("grammar", {"name": "g"}, "core.grammar"),
    ("grammar", {"name": "g", "version": 1}, "core.grammar.version"),
    ("grammar", {"name": "g g", "version": "1"}, "core.grammar.name"),
    ("format", "tcc.cor", "core.format"),
    ("version", [1, -1], "core.version"),
    ("version", [1, 0, 0], "core.version"),
    ("version", [True, 0], "core.version"),
    ("version", "1.0", "core.version"),
    ("more", 1, "core"),
    ("tools", None, "core"),
]
READ: list[tuple[str, Any]] = [
    ("tools", tool(params=[{"name": n, "values": ["1"]} for n in "kl"])),
    ("tools", tool(models=[{**MODEL, "price": 0}, MODEL])),
    ("tools", params("-0.5", "0", "x1", '"\\\\"', "-12")),
    ("calls", calls(0, [], str(-FAR), str(FAR - 1), str(2 * FAR - 1), 0, 0)),
    ("calls", calls(0, [], 5, 5, 0, 0, 0)),
    ("patterns", patterns([0, 1], [2, 4])),
    ("plan", plan("repeat", ALL, 2, 2)),
    ("plan", plan("repeat", ALL, 2**53 - 1)),
    ("limits", depth(value=0)),
    ("limits", [{"kind": "cost", "op": "<=", "value": -1}]),
    ("limits", uses([[0, [2]]], value=0)),
    ("limits", uses([[0, [0, 1]]], op=">=")),
    ("requires", []),
    ("forbids", [["with", 1, 1]]),
    ("goals", ["x"]),
]


def changed(member: str, value: Any) -> bytes:
    core = full_core()
    core[member] = value
    if value is None:
        del core[member]
    return encode(core)


@pytest.mark.parametrize(("member", "value", "path"), REFUSED)
def test_is_refused_at_its_place(member: str, value: Any, path: str) -> None:
    with pytest.raises(Rejected) as refusal:
        read_core(changed(member, value))
    assert (refusal.value.code, refusal.value.path) == ("C801", path)


@pytest.mark.parametrize(("member", "value"), READ)
def test_is_read(member: str, value: Any) -> None:
    read_core(changed(member, value))


def test_calls_past_their_number_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, declined in ((4, False), (3, True)):
        monkeypatch.setattr("tcc_certs.core.reader.MAX_CALLS", most)
        if declined:
            with pytest.raises(Rejected, match=r"D201 at core\.calls"):
                read_core(encode(full_core()))
        else:
            read_core(encode(full_core()))
