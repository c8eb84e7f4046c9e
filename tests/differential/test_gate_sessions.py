"""The gate against a plain writer and the validator, over random sessions.

The writer decides by the definition over a list of values.  The gate allows the same calls, refuses
with the same codes, and writes the same records; the validator finds nothing in them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tcc_certs.formats.container import write_container
from tcc_certs.policy.history import DONE, FAILED
from tcc_certs.session import validate
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tests.oracle_session.shapes import ANSWER, GIVEN, shop
from tests.oracle_session.writer import KEY, NONCE, START_MS, SessionWriter


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return load(bytes(write_container(shop().file.columns)))


def random_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A tool and its arguments."""
    order = rng.choice(["o-1", "o-2", "é\n\u2028"])
    match rng.choice(["look", "look", "pay", "pay", "pay", "close"]):
        case "look":
            return "look", {"order": order}
        case "pay":
            fee = rng.choice([0, 0.1, 5, 9.5, 60, 5e-324, 1e1])
            more: dict[str, Any] = rng.choice([{}, {"kind": "eco"}, {"urgent": True}])
            more |= rng.choice([{}, {}, {"memo": None}, {"memo": "m"}])
            cards = rng.choice([[], ["a1"], ["a1", "c3"], ["b2"], ["zz"]])
            return "pay", {"order": order, "fee": fee, "cards": cards, **more}
    return "close", {}


def random_answer(rng: random.Random, tool: str) -> Any:
    """A result: it may lack an answer, or have one of another type."""
    if tool != "look":
        return rng.choice([None, "x", {"b": 1, "a": [True]}])
    rows = rng.choice([[], [{"sku": "bad", "kind": "big"}], ANSWER["rows"], "none"])
    changes: dict[str, Any] = rng.choice(
        [{}, {}, {"by": "bob"}, {"by": 7}, {"note": None}, {"state": "gone"}, {"total": 5}]
    )
    answer = {**ANSWER, "rows": rows, **changes}
    for name in rng.sample(sorted(answer), rng.choice((0, 0, 0, 1))):
        del answer[name]
    return answer


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(24)
def test_a_random_session(seed: int, artifact: Artifact, tmp_path: Path) -> None:
    rng = random.Random(seed)
    ledger = tmp_path / "s.ledger"
    names = ["look.by", "look.order", "look.rows", "pay.cards", "pay.memo"]
    show = rng.sample(names, rng.randint(0, 5))
    given: dict[str, Any] = rng.choice([GIVEN, {"owner": "ann", "teams": ["t"]}])
    clock = Clock()
    options: dict[str, Any] = {"ledger": ledger, "key": KEY, "durable": False, "clock": clock}
    gate = Gate(artifact, show=show, nonce=NONCE, given=given, **options)
    writer = SessionWriter(shop(), show=show, given=given)
    for _ in range(12):
        clock.now = writer.now = clock.now + rng.choice((0, 1000, 86_400_000))
        tool, arguments = random_call(rng)
        refused = writer.check(tool, **arguments).refused
        assert gate.check(tool, arguments).allowed is (refused is None)
        if refused is not None:
            with pytest.raises(Refused) as refusal, gate.call(tool, arguments):
                raise AssertionError("the call is not made")
            assert refusal.value.code == refused.code
            statement = {} if refused.statement is None else {"statement": refused.statement}
            writer.refusal(tool, refused.code.value, **statement)
        else:
            ref = rng.choice([None, f"id-{len(writer.records)}"])
            with gate.call(tool, arguments, ref=ref) as permit:
                writer.call(tool, ref=ref, **arguments)
                settle(rng, permit, writer, tool)
        resolve(rng, gate, writer)
        assert gate.may_finish is writer.course.may_finish(writer.now)
        if rng.random() < 0.15:
            gate.close()
            gate = Gate(artifact, **options)
    finish = writer.course.may_finish(writer.now)
    gate.finish(abandon=not finish)
    writer.end(abandoned=not finish)
    data = ledger.read_bytes()
    assert list(map(plain, data.splitlines())) == [told(record) for record in writer.records]
    found = validate(data, shop(), key=KEY)
    assert not found.findings
    lost = writer.course.lost
    assert found.claim_type == (
        "Conformant" if finish else "NoClaim" if lost else "ConformantPrefix"
    )
    assert found.head == gate.head


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START_MS

    def __call__(self) -> int:
        return self.now


def settle(rng: random.Random, permit: Any, writer: SessionWriter, tool: str) -> None:
    """An outcome, for both."""
    match rng.choice(["done", "done", "done", "failed", "unknown"]):
        case "failed":
            permit.failed("no")
            writer.failed()
        case "unknown":
            permit.unknown("no")
            writer.unknown()
        case _:
            answer = random_answer(rng, tool)
            permit.done(answer)
            writer.done(answer)


def resolve(rng: random.Random, gate: Gate, writer: SessionWriter) -> None:
    """Now and then an unknown outcome becomes known."""
    calls = writer.course.history.calls
    unknown = [call.at + 1 for call in calls if call.outcome == "unknown"]
    if not unknown or (rng.random() > 0.3 and len(unknown) < 4):
        return
    seq = rng.choice(unknown)
    if rng.random() < 0.5:
        gate.resolve(seq, "failed")
        writer.resolve(seq, FAILED)
        return
    answer = {"state": "open"} if calls[seq - 1].tool == "look" else None
    gate.resolve(seq, "done", observed=answer)
    writer.resolve(seq, DONE, answer)


def plain(line: bytes) -> dict[str, Any]:
    """A record without its link and its MAC."""
    found: dict[str, Any] = json.loads(line)
    del found["~"], found["mac"]
    return told(found)


def told(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("ms", "result")}
