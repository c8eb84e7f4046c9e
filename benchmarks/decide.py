"""The cost of a decision, compared with `json.loads` of the text of its call.

The policies are from the README and from the tutorial's shop, without plans and with larger limits.
A session finds an order, asks its owner (in the shop) and refunds it, with new arguments in each
call.  A decision computes the refusals and the draws of a call, its place in the history, and its
outcome.  It includes no plan, no ledger and no reading of arguments.
The whole gate: `check` of a call, and a call with its outcome, through `tcc.Gate` without a ledger.
Reading: the states of the arguments of a refund, from a dict.
Processor time; medians of 9 batches of 300 calls after the stated history, and ratios within a
batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

import tcc
from benchmarks.measure import head, row
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import answer_states, argument_states
from tcc_certs.policy.history import DONE, Call, DictHistory
from tcc_certs.policy.meaning import Policy
from tcc_certs.values.places import State
from tcc_compiler.names.compile import compile_source
from tcc_runtime.gate.arguments import FieldReader
from tcc_runtime.gate.decide import FastHistory, FastPolicy

HISTORIES = (100, 1_000, 10_000, 100_000)
BATCH, BATCHES = 300, 9
README = """grammar desk version "1"
tool find_order(order: text ~ "ord-[0-9]+")
tool refund(part: half | full, order: text ~ "ord-[0-9]+", amount: number 0 .. 500)
limit depth <= 1000000000
limit count(refund) <= 1000000000
before refund require find_order(same order)
limit sum(refund.amount) <= 1000000000
"""
SHOP = """grammar shop version "1"
tool find_order(order: text ~ "ord-[0-9]{1,8}")
tool ask_owner(order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)
    gives (decision: yes | no)
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)
before refund {
  require find_order(same order)
  require unused ask_owner(same (order, amount), decision = yes)
          and last(ask_owner(same (order, amount))).decision = yes
}
limit sum(refund.amount) <= 1000000000
limit depth <= 1000000000
"""


class Asked(NamedTuple):
    """A call as its caller writes it, with the states of its arguments and answers."""

    tool: str
    arguments: dict[str, Any]
    states: Mapping[str, State]
    answers: Mapping[str, State]

    @property
    def text(self) -> str:
        """The call as JSON."""
        return json.dumps({"tool": self.tool, "arguments": self.arguments})


def table() -> Iterator[str]:
    """Yield all tables, in Markdown."""
    yield from head("us a call", *(f"after {n}" for n in HISTORIES))
    for name, text in (("README", README), ("shop", SHOP)):
        core = _core(text)
        yield from _decisions(name, core, FastPolicy(core), FastHistory(core, {}), HISTORIES)
    defined = Policy(core), DictHistory(core, {})
    yield from _decisions("shop, the definition", core, *defined, HISTORIES[:2])
    yield ""
    yield from _whole_gates()
    yield ""
    yield from _reading(core)


def _whole_gates() -> Iterator[str]:
    yield from head("the whole gate, us", *(f"after {n}" for n in HISTORIES))
    depth = HISTORIES[-1] + 10_000
    for name, policy in (("README", README), ("shop", SHOP)):
        text = policy.replace("depth <= 1000000000", f"depth <= {depth}")
        text = text.replace("limit count(refund) <= 1000000000\n", "")
        artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
        yield from _whole_gate(name, artifact)


def _whole_gate(name: str, artifact: tcc.Artifact) -> Iterator[str]:
    gate, core, made = tcc.Gate(artifact), artifact.core, 0
    checks: list[tuple[str, str]] = []
    made_calls: list[tuple[str, str]] = []
    for size in HISTORIES:
        _gate_seconds(gate, list(_calls(core, made, size - made)))
        made = size
        checked, called = [], []
        for _ in range(BATCHES):
            calls = list(_calls(core, made, BATCH))
            made += BATCH
            load = _load(calls)
            check, call = _gate_seconds(gate, calls)
            checked.append((check, load))
            called.append((call, load))
        checks.append(_medians(checked))
        made_calls.append(_medians(called))
    for what, found in (("check", checks), ("call and outcome", made_calls)):
        yield row(f"{name}, {what}", *(took for took, _ in found))
        yield row(f"{name}, {what}, times json.loads", *(ratio for _, ratio in found))


def _medians(batches: list[tuple[float, float]]) -> tuple[str, str]:
    took = median([took for took, _ in batches]) / BATCH * 1e6
    return f"{took:.1f}", f"{median([took / load for took, load in batches]):.1f}"


def _gate_seconds(gate: tcc.Gate, calls: list[Asked]) -> tuple[float, float]:
    """Return the seconds of all checks, and of all calls with their outcomes.

    The calls of each tool are first checked and then made, so that every checked call is allowed.
    """
    check = call = 0.0
    for tool in [one.name for one in gate.artifact.core.tools]:
        some = [asked for asked in calls if asked.tool == tool]
        answer = {"decision": "yes"} if tool == "ask_owner" else None
        begin = time.process_time()
        allowed = [gate.check(asked.tool, asked.arguments).allowed for asked in some]
        checked = time.process_time()
        for asked in some:
            with gate.call(asked.tool, asked.arguments) as permit:
                permit.done(answer)
        call += time.process_time() - checked
        check += checked - begin
        if not all(allowed):
            raise ValueError("a call is refused")
    return check, call


def _core(text: str) -> Core:
    core = compile_source(text).core
    if core is None:
        raise ValueError("the policy has errors")
    return core


def _decisions(
    name: str, core: Core, policy: Any, history: Any, sizes: tuple[int, ...]
) -> Iterator[str]:
    took, ratios = [], []
    for size in sizes:
        made = len(history.calls)
        _decide(policy, history, list(_calls(core, made, size - made)))
        batches = []
        for _ in range(BATCHES):
            calls = list(_calls(core, len(history.calls), BATCH))
            batches.append((_decide(policy, history, calls), _load(calls)))
        took.append(f"{median([decide for decide, _ in batches]) / BATCH * 1e6:.2f}")
        ratios.append(f"{median([decide / load for decide, load in batches]):.1f}")
    yield row(name, *took)
    yield row(f"{name}, times json.loads", *ratios)


def _calls(core: Core, made: int, count: int) -> Iterator[Asked]:
    """Yield the next calls of a session."""
    names = [tool.name for tool in core.tools]
    for at in range(made, made + count):
        turn, which = divmod(at, len(names))
        name, order, amount = names[which], f"ord-{turn}", turn % 400 + 1
        arguments: dict[str, Any] = {"order": order}
        if name != "find_order":
            arguments["amount"] = amount
        if name == "refund":
            arguments = {"part": "half", **arguments}
        tool = core.tool_of[name]
        answers = answer_states(tool, {"decision": "yes"})
        yield Asked(name, arguments, argument_states(tool, arguments), answers)


def _decide(policy: Any, history: Any, calls: list[Asked]) -> float:
    begin = time.process_time()
    for tool, _, states, answers in calls:
        call = Call(tool, len(history.calls), 0, states)
        if policy.refusals(history, call, 0):
            raise ValueError("a call is refused")
        history.add(call, policy.draws(history, call, 0))
        history.record(call, DONE, answers)
    return time.process_time() - begin


def _load(calls: list[Asked]) -> float:
    texts = [call.text for call in calls]
    begin = time.process_time()
    for text in texts:
        json.loads(text)
    return time.process_time() - begin


def _reading(core: Core) -> Iterator[str]:
    tool = core.tool_of["refund"]
    reader = FieldReader(tool.arguments)
    yield from head("reading the arguments of a refund", "us", "times json.loads")
    batches: dict[str, list[tuple[float, float]]] = {"definition": [], "gate": []}
    for at in range(BATCHES):
        calls = [call for call in _calls(core, at * 3 * BATCH, 3 * BATCH) if call.tool == "refund"]
        load = _load(calls)
        for name, read in (("definition", _defined(tool)), ("gate", reader.read)):
            begin = time.process_time()
            for call in calls:
                read(call.arguments)
            batches[name].append((time.process_time() - begin, load))
    for name, found in batches.items():
        took = median([read for read, _ in found]) / BATCH * 1e6
        yield row(name, f"{took:.2f}", f"{median([read / load for read, load in found]):.1f}")


def _defined(tool: Any) -> Any:
    return lambda arguments: argument_states(tool, arguments)
