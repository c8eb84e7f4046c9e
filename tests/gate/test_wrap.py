"""Plain functions behind a gate, and the definitions of the tools that may be called now."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import tcc
from tcc.integrations import claude_agent, gate_of, of_one_artifact
from tcc_runtime.errors import SettingsError

DESK = """grammar desk version "1"

tool find(by: mail | phone, who: text max 80) gives (seen: yes | no)
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)
tool probe(what?: disk | net) { errors mean failed }

plan = (probe | find){0,4} refund?

before refund(part = full) require find(by = mail)
"""


@pytest.fixture(scope="module")
def artifact() -> Any:
    return tcc.compile_text(DESK)


@pytest.fixture
def gate(artifact: Any) -> Iterator[tcc.Gate]:
    with tcc.Gate(artifact, durable=False) as found:
        yield found


def outcomes(gate: tcc.Gate) -> list[tuple[str, str]]:
    return [(one.call, one.outcome) for one in gate.history]


def test_a_function_runs_where_the_gate_lets_it_and_else_raises(gate: tcc.Gate) -> None:
    ran = []

    def refund(order: str, amount: float, part: str = "full") -> dict[str, float]:
        ran.append((part, order, amount))
        return {"sent": amount}

    guarded = gate.wrap(refund)
    with pytest.raises(tcc.Refused) as refused:
        guarded("ord-1", 3)
    assert (refused.value.code, ran) == ("R202", [])
    assert guarded("ord-1", amount=3, part="half") == {"sent": 3}
    assert ran == [("half", "ord-1", 3)]
    assert outcomes(gate) == [("refund(part=half)", "done")]


def test_a_default_is_decided_on_where_the_grammar_wants_a_value(gate: tcc.Gate) -> None:
    async def find(who: str, by: str = "mail") -> dict[str, str]:
        return {"seen": "yes"}

    assert asyncio.run(gate.wrap(find)("ann")) == {"seen": "yes"}
    assert outcomes(gate) == [("find(by=mail)", "done")]
    assert gate.history[0].observed == {"seen": "yes"}


def test_errors_are_what_the_grammar_says_of_the_tool(gate: tcc.Gate) -> None:
    def probe(what: str = "disk") -> None:
        raise {"disk": OSError, "net": TimeoutError}[what]

    guarded = gate.wrap(probe)
    with pytest.raises(OSError, match=r"^$"):
        guarded()
    with pytest.raises(TimeoutError):
        guarded(what="net")
    # Left out by the caller, and optional in the grammar: absent, whatever the function does then.
    assert outcomes(gate) == [("probe", "failed"), ("probe(what=net)", "unknown")]


def test_a_function_gets_what_was_decided_on(gate: tcc.Gate) -> None:
    given = {"what": "disk"}

    def probe(**more: Any) -> Any:
        return more

    assert gate.wrap(probe)(**given) == {"what": "disk"}
    with pytest.raises(tcc.Refused) as refused:
        gate.wrap(probe)(what="disk", other=1)
    assert refused.value.code == "R102"


def test_what_a_framework_fills_in_is_no_argument(gate: tcc.Gate) -> None:
    def probe(context: object, idempotency_key: str) -> tuple[object, int]:
        return context, len(idempotency_key)

    guarded = gate.wrap(probe, injected=["context"])
    assert list(inspect.signature(guarded).parameters) == ["context"]
    here = object()
    found = guarded(here)
    assert found[0] is here
    assert found[1] > 16


def test_a_refusal_may_be_a_text_for_a_model(gate: tcc.Gate) -> None:
    guarded = gate.wrap(lambda: None, name="refund", refused=lambda refusal: refusal.code)
    assert guarded() == "R103"


def test_refuses_functions_whose_calls_it_could_not_hold(gate: tcc.Gate) -> None:
    def refund(*orders: str) -> None: ...

    def probe() -> Iterator[int]:
        yield 1

    async def inner() -> None: ...

    for function, said in ((refund, "orders"), (probe, "generator")):
        with pytest.raises(tcc.BindingError, match=said):
            gate.wrap(function)
    with pytest.raises(tcc.BindingError, match="no such tool"):
        gate.wrap(inner)

    class Called:
        def __call__(self) -> Iterator[int]:
            yield 1

    with pytest.raises(tcc.BindingError, match="generator"):
        gate.wrap(Called(), name="probe")


def test_what_goes_on_behind_its_call_is_unknown(gate: tcc.Gate) -> None:
    # Its errors mean that nothing happened; what is still to run is no error of it.
    ran = []

    async def inner() -> None:
        ran.append(1)

    async def begun() -> None:
        tasks = []

        def probe() -> Any:
            tasks.append(asyncio.ensure_future(inner()))
            return tasks[0]

        with pytest.raises(TypeError, match="to be async"):
            gate.wrap(probe)()
        await tasks[0]

    asyncio.run(begun())
    assert (ran, outcomes(gate)) == ([1], [("probe", "unknown")])
    with pytest.raises(TypeError, match="to be async"):
        gate.wrap(lambda: inner(), name="probe")()
    with pytest.raises(TypeError, match="generator"):
        gate.wrap(lambda: (one for one in ran), name="probe")()
    assert outcomes(gate) == [("probe", "unknown")] * 3


def test_the_key_may_stand_before_the_arguments(gate: tcc.Gate) -> None:
    def refund(idempotency_key: str, part: str, order: str, amount: float) -> str:
        return f"{part} {order} {amount} {len(idempotency_key) > 16}"

    assert gate.wrap(refund)("half", "ord-1", 3) == "half ord-1 3 True"
    assert outcomes(gate) == [("refund(part=half)", "done")]


def test_definitions_are_narrowed_to_what_is_allowed_now(gate: tcc.Gate) -> None:
    known = [{"type": "function", "function": {"name": "refund", "description": "Pay back."}}]
    found = {one["function"]["name"]: one for one in gate.allowed_tools("openai", known)}
    assert list(found) == ["find", "probe", "refund"]
    refund = found["refund"]
    assert refund["type"] == "function"
    assert refund["function"]["description"] == "Pay back."
    assert refund["function"]["parameters"]["properties"]["part"] == {"enum": ["half"]}
    assert refund["function"]["parameters"]["required"] == ["part", "order", "amount"]
    assert found["probe"]["function"]["parameters"].get("required", []) == []
    with gate.call("find", {"by": "mail", "who": "ann"}) as permit:
        permit.done({"seen": "no"})
    after = {one["name"]: one for one in gate.allowed_tools("anthropic")}
    assert after["refund"]["input_schema"]["properties"]["part"] == {"enum": ["half", "full"]}
    assert set(after["refund"]) == {"name", "description", "input_schema"}
    flat = gate.allowed_tools("openai-responses")[0]
    assert set(flat) == {"type", "name", "description", "parameters"}
    assert set(gate.allowed_tools("mcp")[0]) == {"name", "description", "inputSchema"}
    with pytest.raises(SettingsError, match="api: expected one of openai, openai-responses"):
        gate.allowed_tools("other")


def test_a_list_that_stays_is_narrowed_by_a_choice(gate: tcc.Gate) -> None:
    names = ["find", "probe", "refund"]
    assert gate.tool_choice("openai") == {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [{"type": "function", "function": {"name": name}} for name in names],
        },
    }
    responses = gate.tool_choice("openai-responses")
    assert isinstance(responses, dict)
    assert responses["tools"] == [{"type": "function", "name": name} for name in names]
    with gate.call("refund", {"part": "half", "order": "ord-1", "amount": 1}) as permit:
        permit.done()
    assert gate.allowed_tools("openai") == []
    assert gate.tool_choice("openai") == "none"
    with pytest.raises(SettingsError, match="api: expected openai or openai-responses"):
        gate.tool_choice("anthropic")


def asked(hooks: claude_agent._Hooks, identity: str, tool: Any, given: Any) -> Any:
    return hooks.before({"tool_name": tool, "tool_input": given}, identity, None)


def is_denied(answer: dict[str, Any]) -> bool:
    return bool(answer.get("hookSpecificOutput", {}).get("permissionDecision") == "deny")


def test_a_hook_denies_whatever_goes_wrong(gate: tcc.Gate) -> None:
    # The agent runs the tool where a hook raises, and where it gives no answer in time.
    def names(tool: str) -> str:
        return {"mcp__desk__probe": "probe", "probe": "probe"}[tool]

    async def whole() -> None:
        hooks = claude_agent._Hooks(gate, names, 0.05)
        for number, (tool, given) in enumerate((("Bash", {}), ([], {}), ("probe", None))):
            answer = await asked(hooks, f"c{number}", tool, given)
            assert is_denied(answer) == (given is not None)
            await hooks.stopped(None, None, None)
        assert is_denied(await hooks.before({}, "c8", None))
        with gate.call("find", {"by": "mail", "who": "ann"}):
            assert is_denied(await asked(hooks, "c9", "mcp__desk__probe", {}))
        assert not is_denied(await asked(hooks, "c10", "mcp__desk__probe", {}))
        await hooks.stopped(None, None, None)

    asyncio.run(asyncio.wait_for(whole(), 20))
    assert [one.call for one in gate.history] == ["probe", "find(by=mail)", "probe"]


def test_a_callable_gives_gates_of_one_artifact(gate: tcc.Gate) -> None:
    source = of_one_artifact(lambda context: context)
    assert gate_of(source, gate, "probe") is gate
    other = tcc.compile_text("""grammar other version "1"

tool probe()

plan = probe
""")
    foreign = tcc.Gate(other, durable=False)
    with foreign, pytest.raises(tcc.BindingError, match="another artifact"):
        gate_of(source, foreign, "probe")
    for context, said in ((None, "without a context"), ("x", "str, no gate")):
        with pytest.raises(tcc.BindingError, match=said):
            gate_of(source, context, "probe")
