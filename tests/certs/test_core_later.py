"""Core 1.1: one change to a core that has all of it, refused at its place, or still read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tcc_certs.core.derived import call_text
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_certs.policy.atoms import atom_document
from tests.oracle.cores import call, depth, make_core

Document = dict[str, Any]
SELECT_A = {"tool": 0, "where": []}
FAR = 1 << 64


ATOM = "core.tools[0].models[0].atom"


def atomic(mechanism: str, **members: Any) -> Document:
    """A model that carries an atom."""
    amounts = {"price": 1, "latency_ms": 1, "epsilon": 1}
    return {"name": "m", **amounts, "atom": {"mechanism": mechanism, **members}}


def later_core() -> Document:
    """A core with every member of 1.1."""
    tools = [
        {
            "name": "ask-it",
            "params": [
                {"name": "a", "values": ["", "1", "2.5"]},
                {"name": "plan", "values": ["x", "true", '"true"', '"tool"', '""']},
                {"name": "out", "values": ["no", "yes"], "observed": True},
            ],
            "open": [
                {"name": "t", "type": "text", "min": 1, "max": 9, "pattern": "[a-z]+"},
                {"name": "i", "type": "integer", "low": "0", "high": "9"},
                {"name": "n", "type": "number"},
                {"name": "f", "type": "flag"},
                {"name": "j", "type": "json", "max": 100},
                {"name": "o", "type": "text", "min": 0, "max": 0, "optional": True},
            ],
            "strict": True,
        },
        {
            "name": "do",
            "params": [{"name": "k", "values": ["x", "y"]}],
            "open": [
                {"name": "n", "type": "number", "low": "0", "high": "0.5"},
                {"name": "t", "type": "text", "min": 0, "max": 65536},
                {"name": "f", "type": "flag"},
            ],
            "errors": "failed",
        },
    ]
    calls = [
        call(0, [a, p, o]) for a in range(3) for p in range(5) for o in range(2)
    ]  # fmt: skip
    calls += [call(1, [k]) for k in range(2)]
    texts = {encode(c): text for c, text in zip(calls, _texts(tools, calls), strict=True)}
    calls = sorted(calls, key=lambda c: texts[encode(c)].encode())
    ask, do, yes = _sets(calls)
    return decode(
        make_core(
            tools=tools,
            calls=calls,
            plan=["call", ask | do],
            limits=[
                depth(3),
                {"kind": "sum", "of": {"tool": 0, "param": 0}, "op": "<=", "value": 12_500_000_000},
            ],
            requires=[["before", ask, do], ["before", yes, do], ["each", ask, do]],
            forbids=[["before", do, ask], ["with", ask, do]],
            monitors=monitors(),
        ),
        "core",
    )


def monitors() -> list[Any]:
    do = {"tool": 1, "where": [[0, [1]]]}
    whole = {"tool": 1, "where": []}
    yes = {"tool": 0, "where": [[2, [1]]]}
    found = [
        {"kind": "require", "order": "before", "first": yes, "second": whole, "same": [["t", "t"]]},
        {
            "kind": "require", "order": "each", "first": SELECT_A, "second": whole,
            "same": [["f", "f"], ["i", "n"], ["plan", "k"]],
        },
        {
            "kind": "forbid", "order": "before", "first": do, "second": SELECT_A,
            "same": [["n", "i"]],
        },
        {"kind": "forbid", "order": "with", "first": SELECT_A, "second": do, "same": [["n", "n"]]},
        {"kind": "sum", "tool": 1, "param": "n", "value": "100.25"},
        {"kind": "uses", "of": do, "per": "t", "value": 2},
    ]  # fmt: skip
    return sorted(found, key=encode)


def _texts(tools: list[Any], calls: list[Any]) -> list[str]:
    """Canonical texts, written once more."""
    found = []
    for number, values, *_ in calls:
        tool = tools[number]
        there = []
        for param, index in zip(tool["params"], values, strict=True):
            name = '"plan"' if param["name"] == "plan" else param["name"]
            if param["values"][index] != "":
                there.append(f"{name}={param['values'][index]}")
        name = '"ask-it"' if tool["name"] == "ask-it" else tool["name"]
        found.append(name + (f"({','.join(there)})" if there else ""))
    return found


def _sets(calls: list[Any]) -> tuple[set[int], set[int], set[int]]:
    ask = {i for i, c in enumerate(calls) if c[0] == 0}
    do = {i for i, c in enumerate(calls) if c[0] == 1}
    yes = {i for i in ask if calls[i][1][2] == 1}
    return ask, do, yes


def test_everything_is_read() -> None:
    core = read_core(encode(later_core()))
    ask, do = core.tools
    assert [p.name for p in ask.parameters] == ["a", "plan", "out"]
    assert [(p.optional, p.observed) for p in ask.parameters] == [
        (True, False), (False, False), (False, True),
    ]  # fmt: skip
    assert [p.name for p in ask.opened] == ["t", "i", "n", "f", "j", "o"]
    assert [p.optional for p in ask.opened] == [False] * 5 + [True]
    assert (ask.strict, ask.errors_failed, do.strict, do.errors_failed) == (
        True, False, False, True,
    )  # fmt: skip
    texts = [c.text for c in core.calls]
    assert texts == sorted(texts, key=str.encode)
    assert '"ask-it"("plan"="",out=no)' in texts
    assert '"ask-it"(a=2.5,"plan"="tool",out=yes)' in texts
    assert core.limit_texts == ("depth<=3", 'sum("ask-it".a)<=12.5')
    assert core.limits[1].parameter == (0, 0)
    assert sorted(m.text for m in core.monitors) == [
        'forbid "ask-it" with do(k=y) same n',
        'forbid do(k=y) before "ask-it" same n = i',
        "limit sum(do.n) <= 100.25",
        "limit uses(do(k=y)) per t <= 2",
        'require "ask-it" before each do same f, i = n, "plan" = k',
        'require "ask-it"(out=yes) before do same t',
    ]


def test_an_observed_value_may_be_left_out_of_a_text_and_what_is_absent_is() -> None:
    core = read_core(encode(later_core()))
    ask = core.tools[0]
    assert call_text(ask, (0, 0, 1)) == '"ask-it"("plan"=x,out=yes)'
    assert call_text(ask, (2, 0, 1), observed=False) == '"ask-it"(a=2.5,"plan"=x)'
    alone = [{"name": "t", "params": [{"name": "p", "values": ["", "1"]}]}]
    core = read_core(make_core(tools=alone, calls=[call(0, [0]), call(0, [1])], plan=["empty"]))
    assert [c.text for c in core.calls] == ["t", "t(p=1)"]


Change = Callable[[Document], object]


def at(*path: Any, value: Any) -> Change:
    """Put `value` at the place; None takes the member away."""

    def change(core: Document) -> None:
        inner: Any = core
        for key in path[:-1]:
            inner = inner[key]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value

    return change


def opened(place: int, /, **members: Any) -> Change:
    """Members of an open parameter of the first tool changed, or with None taken away."""

    def change(core: Document) -> None:
        item = core["tools"][0]["open"][place]
        for name, value in members.items():
            item[name] = value
        core["tools"][0]["open"][place] = {k: v for k, v in item.items() if v is not None}

    return change


def monitor(kind: str, order: str = "", /, **members: Any) -> Change:
    """Members of one monitor changed, which then is the first."""

    def change(core: Document) -> None:
        found = [m for m in core["monitors"] if (m["kind"], m.get("order", "")) == (kind, order)]
        item = found[0]
        item.update(members)
        for name in [name for name, value in members.items() if value is None]:
            del item[name]
        # What is wrong in it is found before the order of all of them is looked at.
        core["monitors"].sort(key=lambda one: one is not item)

    return change


def tool(number: int, /, **members: Any) -> Change:
    def change(core: Document) -> None:
        core["tools"][number].update(members)

    return change


def _shadow(core: Document) -> int:
    """Where the plain `before` stands that goes with the `each` among the monitors."""
    (each,) = [r for r in core["requires"] if r[0] == "each"]
    return core["requires"].index(["before", *each[1:]])


OPEN = "core.tools[0].open"
M = "core.monitors[0]"
A1 = {"tool": 0, "where": [[0, [1]]]}
ABSENT = {"tool": 0, "where": [[0, [0]]]}
SEEN = {"tool": 0, "where": [[2, [0]]]}
REFUSED: list[tuple[Change, str]] = [
    # The version is what is used.
    (at("version", value=[1, 0]), "core.version"),
    # Tools.
    (tool(0, strict=False), "core.tools[0].strict"),
    (tool(0, strict=1), "core.tools[0].strict"),
    (tool(1, strict=True), "core.tools[1].strict"),
    (tool(1, errors="done"), "core.tools[1].errors"),
    (tool(1, errors=True), "core.tools[1].errors"),
    (tool(0, name=""), "core.tools[0].name"),
    (tool(0, name="a" * 129), "core.tools[0].name"),
    (tool(0, name="a\nb"), "core.tools[0].name"),
    (tool(0, name="a\u202eb"), "core.tools[0].name"),
    (tool(0, name=7), "core.tools[0].name"),
    (tool(0, **{"in": "a-b", "out": "x"}), "core.tools[0].in"),
    (tool(0, models=[{"name": "a-b", "price": 1, "latency_ms": 1, "epsilon": 1}]),
     "core.tools[0].models[0].name"),
    # Atoms of models.
    (tool(0, models=[atomic("laplace", scale="2.0", sensitivity="1")]), ATOM),
    (tool(0, models=[atomic("laplace", scale="2", sensitivity="1", times=1)]), ATOM),
    (tool(0, models=[atomic("laplace", scale="0", sensitivity="1")]), f"{ATOM}.scale"),
    (tool(0, models=[atomic("laplace", scale="2")]), ATOM),
    (tool(0, models=[atomic("laplace", scale="2", sensitivity="1", more="1")]), ATOM),
    (tool(0, models=[atomic("normal")]), f"{ATOM}.mechanism"),
    (tool(0, models=[atomic("randomized_response", probability="1.5", choices=2)]),
     f"{ATOM}.probability"),
    (tool(0, models=[atomic("rdp", points=[["2", "0.1"], ["2", "0.2"]])]), f"{ATOM}.points[1]"),
    # Listed, optional and observed parameters.
    (at("tools", 0, "params", 2, "observed", value=False), "core.tools[0].params[2].observed"),
    (at("tools", 0, "params", 2, "observed", value=1), "core.tools[0].params[2].observed"),
    (at("tools", 0, "params", 0, "observed", value=True), "core.tools[0].params[1]"),
    (lambda core: core["tools"][0]["params"].reverse(), "core.tools[0].params[1]"),
    (at("tools", 0, "params", 1, "name", value=""), "core.tools[0].params[1].name"),
    (at("tools", 0, "params", 1, "name", value="a"), "core.tools[0].params"),
    (at("tools", 0, "params", 1, "name", value="t"), "core.tools[0].params"),
    (at("tools", 0, "params", 0, "values", value=[""]), "core.tools[0].params[0].values[0]"),
    (at("tools", 0, "params", 0, "values", value=["1", ""]), "core.tools[0].params[0].values[1]"),
    (at("tools", 0, "params", 0, "values", value=["", ""]), "core.tools[0].params[0].values[1]"),
    (at("tools", 0, "params", 2, "values", value=["", "x"]), "core.version"),
    # Values have one text.
    (at("tools", 0, "params", 1, "values", 0, value='"x"'), "core.tools[0].params[1].values[0]"),
    (at("tools", 0, "params", 1, "values", 0, value="tool"), "core.tools[0].params[1].values[0]"),
    (at("tools", 0, "params", 1, "values", 0, value="a-b"), "core.tools[0].params[1].values[0]"),
    (at("tools", 0, "params", 1, "values", 0, value="1.50"), "core.tools[0].params[1].values[0]"),
    (at("tools", 0, "params", 1, "values", 0, value="true"), "core.tools[0].params[1].values"),
    # Open parameters.
    (tool(0, open=[]), OPEN),
    (tool(0, open={}), OPEN),
    (tool(0, open=["t"]), f"{OPEN}[0].type"),
    (opened(0, type="string"), f"{OPEN}[0].type"),
    (opened(0, type=None), f"{OPEN}[0].type"),
    (opened(0, type=["text"]), f"{OPEN}[0].type"),
    (opened(0, name=None), f"{OPEN}[0]"),
    (opened(0, name=""), f"{OPEN}[0].name"),
    (opened(0, name="i"), "core.tools[0].params"),
    (opened(0, more=1), f"{OPEN}[0]"),
    (opened(0, optional=False), f"{OPEN}[0].optional"),
    (opened(0, min=None), f"{OPEN}[0]"),
    (opened(0, max=None), f"{OPEN}[0]"),
    (opened(0, min=10), f"{OPEN}[0].max"),
    (opened(0, min=-1), f"{OPEN}[0].min"),
    (opened(0, min=True), f"{OPEN}[0].min"),
    (opened(0, max=2**20 + 1), f"{OPEN}[0].max"),
    (opened(0, pattern=1), f"{OPEN}[0].pattern"),
    (opened(0, pattern="("), f"{OPEN}[0].pattern character 2"),
    (opened(0, pattern="(ab){501}"), f"{OPEN}[0].pattern"),
    (opened(0, low="0"), f"{OPEN}[0]"),
    (opened(1, low=None), f"{OPEN}[1].high"),
    (opened(1, high=None), f"{OPEN}[1].high"),
    (opened(1, low="10"), f"{OPEN}[1].high"),
    (opened(1, low="0.5"), f"{OPEN}[1].low"),
    (opened(1, low="00"), f"{OPEN}[1].low"),
    (opened(1, low="-0"), f"{OPEN}[1].low"),
    (opened(1, low=0), f"{OPEN}[1].low"),
    (opened(1, high=str(FAR)), f"{OPEN}[1].high"),
    (opened(1, low=str(-(2**63) - 1)), f"{OPEN}[1].low"),
    (opened(1, high="9" * 401), f"{OPEN}[1].high"),
    (opened(1, pattern="a"), f"{OPEN}[1]"),
    (opened(2, low="0.50", high="1"), f"{OPEN}[2].low"),
    (opened(2, low="1e3", high="2000"), f"{OPEN}[2].low"),
    (opened(2, low="0.1", high="0." + "1" * 30), f"{OPEN}[2].high"),
    (opened(3, min=0), f"{OPEN}[3]"),
    (opened(4, max=None), f"{OPEN}[4]"),
    (opened(4, max=2**20 + 1), f"{OPEN}[4].max"),
    (opened(4, min=0), f"{OPEN}[4]"),
    # Limits on sums.
    (at("limits", 1, "op", value=">="), "core.limits[1].op"),
    (at("limits", 1, "of", value={"tool": 0, "param": 1}), "core.limits[1].of"),
    (at("limits", 1, "of", value={"tool": 0, "param": 3}), "core.limits[1].of"),
    (at("limits", 1, "of", value={"tool": 2, "param": 0}), "core.limits[1].of"),
    (at("limits", 1, "of", value={"tool": 0, "where": []}), "core.limits[1].of"),
    (at("limits", 1, "of", value=None), "core.limits[1]"),
    (at("limits", 1, "value", value=-1), "core.limits[1].value"),
    (at("limits", 1, "value", value=str(FAR)), "core.limits[1].value"),
    (at("limits", 0, "of", value={"tool": 0, "param": 0}), "core.limits[0]"),
    (at("limits", 1, value={"kind": "uses", "of": ABSENT, "op": "<=", "value": 1}),
     "core.limits[1].of"),
    # Orders.
    (at("requires", 2, 0, value="every"), "core.requires[2]"),
    (at("requires", 0, 0, value="each"), "core.requires[1]"),
    (at("forbids", 0, value=["before", 0, 0, 0]), "core.forbids[0]"),
    (at("forbids", 0, value=["before", 0, 9]), "core.forbids[0]"),
    (at("forbids", 0, value=["zzz", 0, 0]), "core.forbids[0]"),
    # Monitors.
    (at("monitors", value=[]), "core.monitors"),
    (at("monitors", value={}), "core.monitors"),
    (at("monitors", 0, value="x"), f"{M}.kind"),
    (at("monitors", 0, value={"kind": "allow"}), f"{M}.kind"),
    (lambda core: core["monitors"].reverse(), "core.monitors[1]"),
    (lambda core: core["monitors"].insert(1, core["monitors"][0]), "core.monitors[1]"),
    (monitor("require", "each", order="after"), f"{M}.order"),
    (monitor("require", "each", order="with"), f"{M}.order"),
    (monitor("forbid", "with", order="each"), f"{M}.order"),
    (monitor("forbid", "with", order=1), f"{M}.order"),
    (monitor("require", "each", first=None), M),
    (monitor("require", "each", more=1), M),
    (monitor("require", "each", first={"tool": 2, "where": []}), f"{M}.first"),
    (monitor("require", "each", first=ABSENT), f"{M}.first"),
    (monitor("require", "each", second=SEEN, same=[["t", "t"]]), f"{M}.second"),
    (monitor("forbid", "with", first=SEEN), f"{M}.first"),
    (monitor("forbid", "before", second=SEEN), f"{M}.second"),
    (monitor("require", "each", same=[]), f"{M}.same"),
    (monitor("require", "each", same="t"), f"{M}.same"),
    (monitor("require", "each", same=["t"]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["t", 1]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["t", "zz"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["zz", "t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["plan", "k"]]), f"{M}.same"),
    (monitor("require", "each", same=[["plan", "t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["t", "k"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["t", "n"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["f", "n"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["j", "t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["o", "t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["a", "k"], ["t", "t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["out", "k"], ["t", "t"]]), f"{M}.same[0]"),
    (monitor("require", "each", same=[["t", "t"], ["f", "f"]]), f"{M}.same[1]"),
    (monitor("require", "each", same=[["f", "f"], ["f", "f"]]), f"{M}.same[1]"),
    (monitor("sum", tool=2), f"{M}.tool"),
    (monitor("sum", param="t"), f"{M}.param"),
    (monitor("sum", param="k"), f"{M}.param"),
    (monitor("sum", param=1), f"{M}.param"),
    (monitor("sum", tool=0, param="n"), f"{M}.param"),
    (monitor("sum", value="1.50"), f"{M}.value"),
    (monitor("sum", value="-1"), f"{M}.value"),
    (monitor("sum", value=1), f"{M}.value"),
    (monitor("sum", more=1), M),
    (at("tools", 1, "open", 0, "low", value="-1"), "core.monitors[4].param"),
    (lambda core: core["requires"].pop(_shadow(core)), "core.monitors[2]"),
    (monitor("uses", per="k"), f"{M}.per"),
    (monitor("uses", per="zz"), f"{M}.per"),
    (monitor("uses", of=SEEN, per="t"), f"{M}.of"),
    (monitor("uses", of=SELECT_A, per="j"), f"{M}.per"),
    (monitor("uses", of=SELECT_A, per="o"), f"{M}.per"),
    (monitor("uses", value=-1), f"{M}.value"),
    (monitor("uses", value=str(FAR)), f"{M}.value"),
    (monitor("uses", per=None), M),
]  # fmt: skip
READ: list[Change] = [
    lambda core: core.update(monitors=[{
        "kind": "forbid", "order": "before", "first": SEEN, "second": SELECT_A,
        "same": [["i", "i"]],
    }]),
    tool(0, errors="failed"),
    opened(0, pattern=None),
    opened(0, min=9),
    opened(0, max=2**20),
    opened(5, max=2**20),
    opened(1, low="9"),
    opened(1, low="-5", high=str(2**53 + 1)),
    opened(1, low=str(-(2**63)), high=str(FAR - 1)),
    opened(2, low="-0.5", high="0.1"),
    opened(4, max=0),
    opened(4, optional=True),
    opened(4, name="j" * 128),
    at("limits", 1, "value", value=0),
    at("limits", 1, "value", value=str(FAR - 1)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_is_refused_at_its_place(number: int) -> None:
    change, path = REFUSED[number]
    core = copy.deepcopy(later_core())
    change(core)
    with pytest.raises(Rejected) as refusal:
        read_core(encode(core))
    assert (refusal.value.code, refusal.value.path) == ("C801", path), refusal.value


@pytest.mark.parametrize("number", range(len(READ)))
def test_is_read(number: int) -> None:
    core = copy.deepcopy(later_core())
    READ[number](core)
    read_core(encode(core))


def test_monitors_that_would_take_hours_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    # Call sets of 30 and 2 calls; four times as many calls as a core may have are looked at.
    core = later_core()
    core["monitors"] = [m for m in core["monitors"] if m.get("order") == "each"]
    for most, code in ((8, None), (7, "D201")):
        monkeypatch.setattr("tcc_certs.core.opened.MAX_CALLS", most)
        if code is None:
            read_core(encode(core))
            continue
        with pytest.raises(Rejected) as refusal:
            read_core(encode(core))
        assert (refusal.value.code, refusal.value.path) == (code, "core.monitors")


def test_a_core_has_no_pattern_that_takes_too_long_to_check() -> None:
    for most, fine in ((1162, True), (1163, False)):
        core = later_core()
        text = core["tools"][0]["open"][0]
        assert text["name"] == "t"
        text |= {"max": most, "pattern": "[ab]*a[ab]{900}"}
        if fine:
            read_core(encode(core))
            continue
        with pytest.raises(Rejected) as refused:
            read_core(encode(core))
        assert (refused.value.code, refused.value.path) == (
            "C801",
            "core.tools[0].open[0].pattern",
        )


@pytest.mark.parametrize(
    "atom",
    [
        {"mechanism": "randomized_response", "probability": "0.75", "choices": 2},
        {"mechanism": "gaussian", "sigma": "0.5", "sensitivity": "1", "times": 3},
        {"mechanism": "laplace", "scale": "2", "sensitivity": "1"},
        {"mechanism": "rdp", "points": [["1.5", "0"], ["2", "0.1"]]},
    ],
)
def test_a_model_that_carries_an_atom_is_of_version_1_1_alone(atom: Document) -> None:
    model = {"name": "m", "price": 1, "latency_ms": 1, "epsilon": 1}
    plain = {"name": "a", "params": []}
    core = decode(
        make_core(
            tools=[{**plain, "models": [model]}],
            calls=[[0, [], 0, 1, 0, 0, 0]],
            plan=["call", {0}],
            limits=[depth(1)],
        ),
        "core",
    )
    assert read_core(encode(core)).tools[0].models[0].atom is None
    core["tools"][0]["models"][0]["atom"] = atom
    with pytest.raises(Rejected) as refused:
        read_core(encode({**core, "version": [1, 0]}))
    assert (refused.value.code.value, refused.value.path) == ("C801", "core.version")
    found = read_core(encode({**core, "version": [1, 1]})).tools[0].models[0].atom
    assert found is not None
    assert atom_document(found) == atom
