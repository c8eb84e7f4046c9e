"""Sessions as a whole: what is allowed, where it may end, what is claimed and what is asserted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.formats.artifact import Relaxed
from tcc_certs.kernel import check
from tcc_certs.session import SessionValidation, validate
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import at_most, call, make_core
from tests.oracle_session.desk import desk
from tests.oracle_session.writer import KEY, SessionWriter, named, sealed

FIND, HALF = {"kind": "order"}, {"part": "half"}


def first(found: SessionValidation) -> tuple[str, int, str]:
    """Code, line and field of the first finding."""
    item = found.findings[0]
    return item.code.value, item.line, item.field


def refunding(**options: Any) -> SessionWriter:
    """A session that has found and refunded."""
    writer = SessionWriter(desk(), **options)
    writer.call("find", FIND, id="o-1")
    writer.done({"name": "x"})
    writer.call("refund", HALF, amount=1.5, order="o-1")
    return writer


def test_a_session_that_ends_where_a_plan_ends_is_conformant() -> None:
    writer = refunding()
    writer.done()
    writer.call("close", ref="id-1")
    writer.done()
    writer.end()
    found = validate(writer.ledger(), desk())
    assert (found.verdict, found.word, found.claim_type) == (0, "VALID", "Conformant")
    assert found.claim_upheld and not found.findings
    assert found.checked == {"calls": 3, "outcomes": 3, "refusals": 0, "unknown": 0}
    assert found.monitors == tuple(m.text for m in desk().core.monitors)
    known = validate(writer.ledger(), desk(), key=KEY)
    assert (known.claim_type, known.summary) == ("Conformant", found.summary)
    told = "that every record is its writer's: MACs show it to who has the key"
    assert set(found.asserted) - set(known.asserted) == {told}
    assert validate(iter([writer.ledger()[:100], writer.ledger()[100:]]), desk()) == found


def test_a_session_without_an_end_is_a_prefix() -> None:
    writer = refunding()
    found = validate(writer.ledger(), desk())
    assert (found.verdict, found.word) == (2, "INCOMPLETE")
    assert first(found) == ("D301", 5, "end")
    assert (found.claim_type, found.claim_upheld) == ("ConformantPrefix", False)
    assert found.checked["unknown"] == 1
    assert found.head in found.findings[0].found


def test_an_abandoned_session_is_a_prefix() -> None:
    writer = refunding()
    writer.unknown()
    writer.end(abandoned=True)
    found = validate(writer.ledger(), desk())
    assert (found.verdict, found.claim_type, found.checked["unknown"]) == (0, "ConformantPrefix", 1)


def test_what_is_asserted() -> None:
    writer = refunding(show=["refund.amount"])
    writer.failed()
    writer.call("close")
    writer.unknown()
    writer.refusal("find", "R201")
    writer.resolve(3, "done")
    writer.end()
    told = "\n".join(validate(writer.ledger(), desk()).asserted)
    for due in (
        "every call was recorded", "1 calls said to have failed", "1 outcomes said later",
        "1 refusals", "values of find.id", "values of refund.order", "the key is not known",
    ):  # fmt: skip
        assert due in told
    assert "sum" not in told and "refund.note" not in told
    known = "\n".join(validate(writer.ledger(), desk(), key=KEY).asserted)
    assert "the key is not known" not in known and "values of find.id" in known
    hidden = refunding()
    hidden.done()
    assert "limit sum(refund.amount) <= 600.5: the values are not shown" in (
        validate(hidden.ledger(), desk()).asserted
    )


def test_unknown_outcomes_have_to_be_allowed_for() -> None:
    writer = SessionWriter(desk())
    writer.call("close")
    writer.unknown()
    open_end = sealed([*writer.records, {"kind": "end", "abandoned": False}])
    assert first(validate(open_end, desk())) == ("S305", 4, "abandoned")
    again = SessionWriter(desk())
    again.call("close")
    again.unknown()
    again.call("close")  # after the first one nothing may follow
    assert first(validate(again.ledger(), desk())) == ("S301", 4, "call")
    writer.resolve(1, "done")
    writer.end()
    assert validate(writer.ledger(), desk()).claim_type == "Conformant"


def test_a_call_without_outcome_is_unknown() -> None:
    writer = SessionWriter(desk())
    writer.call("close")
    taken_back = SessionWriter(desk())
    taken_back.call("close")
    taken_back.resolve(1, "failed")
    taken_back.call("close")
    taken_back.resolve(2, "done")
    taken_back.end()
    assert validate(taken_back.ledger(), desk()).claim_type == "Conformant"
    records = writer.records
    for abandoned in (False, True):  # since 1.1 each has its outcome before the end
        ended = sealed([*records, {"kind": "end", "abandoned": abandoned}])
        assert first(validate(ended, desk())) == ("L104", 3, "kind")
    older = [{k: v for k, v in one.items() if k != "mac"} for one in records]
    older[0] = named({**older[0], "schema": "tcc.session/1.0"})
    ended = sealed([*older, {"kind": "end", "abandoned": False}])
    assert first(validate(ended, desk())) == ("S305", 3, "abandoned")
    found = validate(sealed([*older, {"kind": "end", "abandoned": True}]), desk())
    assert (found.claim_type, found.checked["unknown"]) == ("ConformantPrefix", 1)


def test_an_unforeseen_answer_is_any_that_is_listed() -> None:
    writer = SessionWriter(desk())
    writer.call("run")
    writer.done(unforeseen=True)
    writer.call("run")
    writer.done(result="pass")
    writer.call("close")
    writer.done()
    found = validate(writer.ledger(), desk())
    assert (found.word, found.claim_type) == ("INCOMPLETE", "ConformantPrefix")
    assert "that 1 answers that are not known were some that are listed" in found.asserted
    assert found.checked["unforeseen"] == 1
    writer.refusal("close", "R302")  # as releases wrote it whose sessions it ended
    writer.end(abandoned=True)
    found = validate(writer.ledger(), desk())
    assert (found.verdict, found.claim_type) == (0, "ConformantPrefix")
    called = SessionWriter(desk())
    called.call("run")
    called.done(unforeseen=True)
    called.call("close")
    assert first(validate(called.ledger(), desk())) == ("S301", 4, "call")


def lonely() -> Any:
    """Plans: ``run(result=pass) close?``: the answer `fail` leads nowhere."""
    result = {"name": "result", "values": ["fail", "pass"], "observed": True}
    tools = [{"name": "close", "params": []}, {"name": "run", "params": [result]}]
    core = make_core(
        tools=tools, calls=[call(0), call(1, [0]), call(1, [1])], plan=["call", {0, 1, 2}]
    )
    return check(build(core, [(2,), (2, 0), (0,)]))


def test_an_answer_that_leads_nowhere_ends_all_claims() -> None:
    artifact = lonely()
    writer = SessionWriter(artifact)
    writer.call("run")
    writer.done(result="fail")
    found = validate(writer.ledger(), artifact)
    assert (found.word, found.claim_type) == ("INCOMPLETE", "NoClaim")
    ended = sealed([*writer.records, {"kind": "end", "abandoned": False}])
    assert first(validate(ended, artifact)) == ("S305", 4, "abandoned")


def test_while_an_answer_may_lead_nowhere_nothing_is_allowed() -> None:
    artifact = lonely()
    writer = SessionWriter(artifact)
    writer.call("run")
    writer.unknown()
    assert -1 in writer.brute.places()
    stuck = [*writer.records]
    writer.call("close")
    assert writer.records[-1]["states"][0] == -1
    assert first(validate(writer.ledger(), artifact)) == ("S301", 4, "call")
    resolved = [*stuck, {"kind": "resolve", "seq": 1, "outcome": "failed"}]
    done = {"kind": "resolve", "seq": 1, "outcome": "done", "observed": {"result": "fail"}}
    assert validate(sealed(resolved), artifact).claim_type == "ConformantPrefix"
    assert validate(sealed([*stuck, done]), artifact).claim_type == "NoClaim"


def test_statements_left_to_the_run_are_held() -> None:
    core = make_core(
        tools=[{"name": "a", "params": []}],
        calls=[call(0, price=2)],
        plan=["call", {0}],
        limits=[at_most("price", 3)],
    )
    artifact = check(build(core, [(), (0,), (0, 0)], relaxed=Relaxed(limits=(0,))))
    writer = SessionWriter(artifact)
    writer.call("a")
    writer.done()
    one = list(writer.records)
    writer.call("a")
    assert first(validate(writer.ledger(), artifact)) == ("S303", 4, "call")
    ended = validate(sealed([*one, {"kind": "end", "abandoned": False}]), artifact)
    assert ended.claim_type == "Conformant"


def test_a_nondeterministic_artifact_is_at_sets_of_states() -> None:
    core = make_core(
        tools=[{"name": name, "params": []} for name in "abc"],
        calls=[call(0), call(1), call(2)],
        plan=["call", {0, 1, 2}],
    )
    left, right = Node(children={1: Node(accept=True)}), Node(children={2: Node(accept=True)})
    root = Node(children={0: left}, twins=[(0, right)])
    artifact = check(build_graph(core, root, nondeterministic=True))
    writer = SessionWriter(artifact)
    writer.call("a")
    writer.done()
    writer.call("c")
    writer.records[-1]["states"] = [1, 2]
    writer.done()
    writer.end()
    assert validate(writer.ledger(), artifact).claim_type == "Conformant"
    unknown = SessionWriter(artifact)
    unknown.call("a")
    unknown.unknown()
    unknown.call("c")
    unknown.records[-1]["states"] = [1, 2, 3]
    assert first(validate(unknown.ledger(), artifact)) == ("S301", 4, "call")


def test_too_many_places_are_refused() -> None:
    """A chain of optional calls: after 63 unknown ones 64 states may be held, and no more."""
    core = make_core(tools=[{"name": "a", "params": []}], calls=[call(0)], plan=["call", {0}])
    artifact = check(build(core, [(0,) * size for size in range(80)]))
    writer = SessionWriter(artifact)
    writer.brute = _Chain(artifact)  # type: ignore[assignment]
    for _ in range(64):
        writer.call("a")
        writer.unknown()
    found = validate(writer.ledger(), artifact)
    assert first(found) == ("S304", 128, "call")
    writer.records = writer.records[:-2]
    writer.resolve(1, "failed")
    found = validate(writer.ledger(), artifact)
    assert (found.word, found.checked["unknown"]) == ("INCOMPLETE", 62)


def test_late_outcomes_may_not_ask_for_endless_work(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SessionWriter(desk(4))
    writer.call("find", FIND, id="o-1")
    writer.unknown()
    for order in ("o-2", "o-3"):
        writer.call("find", FIND, id=order)
        writer.done()
    writer.resolve(1, "done")
    assert validate(writer.ledger(), desk(4)).claim_type == "ConformantPrefix"
    monkeypatch.setattr("tcc_certs.session.machine.MAX_REFOLDED", 1)
    found = validate(writer.ledger(), desk(4))
    assert (found.word, found.claim_type) == ("DECLINED", "NoClaim")
    assert first(found) == ("D201", 8, "resolve")


class _Chain:
    """The states of a chain of unknown calls."""

    def __init__(self, artifact: Any) -> None:
        self.session: list[Any] = []
        self._root = artifact.automaton.root

    def places(self) -> set[int]:
        return set(range(self._root - len(self.session), self._root + 1))


@pytest.mark.parametrize("seed", range(120))
def test_a_session_is_allowed_what_every_resolution_allows(seed: int) -> None:
    rng = random.Random(seed)
    artifact = desk(4)
    show = rng.sample(["find.id", "refund.amount", "refund.order"], rng.randint(0, 3))
    if rng.random() < 0.8 and "refund.amount" not in show:
        show.append("refund.amount")
    writer = SessionWriter(artifact, show=show)
    for _ in range(9):
        tool, listed, opened = _random_call(rng)
        did = writer.did(tool, listed, opened)
        planned = writer.brute.planned(did)
        forbidding = writer.brute.forbidding(did, () if "refund.amount" in show else (2,))
        kept = list(writer.records)
        writer.call(tool, listed, **opened)
        found = validate(writer.ledger(), artifact, key=KEY if rng.random() < 0.5 else None)
        if planned and forbidding is None:
            assert found.word == "INCOMPLETE", found
            _settle(rng, writer, tool)
        else:
            code = "S302" if planned else "S301"
            assert first(found) == (code, len(writer.records), "call"), found
            writer.records = kept
            writer.brute.session.pop()
        unknown = [i for i, d in enumerate(writer.brute.session, 1) if d.outcome == "unknown"]
        if unknown and (rng.random() < 0.3 or len(unknown) > 3):
            seq = rng.choice(unknown)
            done = rng.random() < 0.5
            ran = writer.core.tools[writer.brute.session[seq - 1].tool].name == "run"
            answer = {"result": rng.choice(["pass", "fail"])} if done and ran else {}
            writer.resolve(seq, "done" if done else "failed", **answer)
        ends = validate(sealed([*writer.records, {"kind": "end", "abandoned": False}]), artifact)
        if writer.brute.may_finish():
            assert ends.claim_type == "Conformant", ends
        else:
            assert first(ends)[0] == "S305", ends


def _random_call(rng: random.Random) -> tuple[str, dict[str, str], dict[str, Any]]:
    order = rng.choice(["o-1", "o-2"])
    match rng.choice(["find", "find", "refund", "refund", "run", "send-mail", "close"]):
        case "find":
            return "find", {"kind": rng.choice(["order", "order", "person"])}, {"id": order}
        case "refund":
            part = rng.choice([{}, {"part": "full"}, {"part": "half"}])
            amount = rng.choice([0, 0.1, 300, 300.25])
            return "refund", part, {"amount": amount, "order": order}
        case "send-mail":
            return "send-mail", {}, {"about": order}
        case name:
            return name, {}, {}


def _settle(rng: random.Random, writer: SessionWriter, tool: str) -> None:
    kind = rng.choice(["done", "done", "failed", "unknown"])
    if kind == "done":
        writer.done(**_answer(rng, tool))
    elif kind == "failed":
        writer.failed()
    else:
        writer.unknown()


def _answer(rng: random.Random, tool: str) -> dict[str, Any]:
    return {"result": rng.choice(["pass", "fail"])} if tool == "run" else {}
