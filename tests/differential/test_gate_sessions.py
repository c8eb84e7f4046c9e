"""The gate against brute force, the reference writer and the validator, over random sessions.

What the gate allows is what every resolution of the unknown outcomes allows; what it writes is,
record by record, what a plain writer writes; and the validator, which runs the gate's own machine,
finds nothing in it.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tcc_certs.session import validate
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tests.oracle.build import build
from tests.oracle_session.desk import desk, desk_core, desk_plans
from tests.oracle_session.writer import KEY, NONCE, SessionWriter

STARTED = 1_700_000_000_000


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk") / "desk.tcca"
    path.write_bytes(build(desk_core(), desk_plans(4)))
    return path


def random_call(rng: random.Random) -> tuple[str, dict[str, str], dict[str, Any]]:
    """A tool, its listed and its open arguments."""
    order = rng.choice(["o-1", "o-2"])
    match rng.choice(["find", "find", "refund", "refund", "run", "send-mail", "close"]):
        case "find":
            return "find", {"kind": rng.choice(["order", "order", "person"])}, {"id": order}
        case "refund":
            part = rng.choice([{}, {"part": "full"}, {"part": "half"}])
            amount = rng.choice([0, 0.1, 300, 300.25, 5e-324, 1e2])
            more = rng.choice([{}, {"note": "é\n\u2028"}])
            return "refund", part, {"amount": amount, "order": order, **more}
        case "send-mail":
            more = rng.choice([{}, {"corps é": {"b": [1.5, None], "a": "\x01"}}, {"urgent": True}])
            return "send-mail", {}, {"about": order, **more}
        case name:
            return name, {}, {}


def due_code(writer: SessionWriter, did: Any) -> str | None:
    """Why brute force refuses a call."""
    if not writer.brute.planned(did):
        return "R201"
    return None if writer.brute.forbidding(did) is None else "R202"


@pytest.mark.parametrize("seed", range(60))
def test_a_random_session(seed: int, artifact: Path, tmp_path: Path) -> None:
    rng = random.Random(seed)
    ledger = tmp_path / "s.ledger"
    names = ["find.id", "refund.order", '"send-mail"."corps é"']
    show = ["refund.amount", *rng.sample(names, rng.randint(0, 3))]
    options: dict[str, Any] = {"ledger": ledger, "key": KEY, "durable": False, "nonce": NONCE}
    gate = Gate(artifact, show=show, clock=lambda: STARTED, **options)
    writer = SessionWriter(desk(4), show=show, started_ms=STARTED)
    for _ in range(10):
        tool, listed, opened = random_call(rng)
        did = writer.did(tool, listed, opened)
        due = due_code(writer, did)
        assert gate.check(tool, {**listed, **opened}).allowed is (due is None)
        if due is not None:
            with pytest.raises(Refused) as refused, gate.call(tool, {**listed, **opened}):
                raise AssertionError("it is not made")
            assert refused.value.code == due
            writer.refusal(tool, due)
        else:
            ref = rng.choice([None, f"id-{len(writer.records)}"])
            with gate.call(tool, {**listed, **opened}, ref=ref) as permit:
                writer.call(tool, listed, ref=ref, **opened)
                settle(rng, permit, writer, tool)
        resolve(rng, gate, writer)
        assert gate.may_finish is writer.brute.may_finish()
        if rng.random() < 0.1:  # reopened
            gate.close()
            gate = Gate(artifact, show=show, **options)
    finish = writer.brute.may_finish()
    gate.finish(abandon=not finish)
    writer.end(abandoned=not finish)
    data = ledger.read_bytes()
    assert list(map(plain, data.splitlines())) == [told(record) for record in writer.records]
    found = validate(data, desk(4), key=KEY)
    assert not found.findings
    lost = writer.brute.places() == {-1}
    assert found.claim_type == (
        "Conformant" if finish else "NoClaim" if lost else "ConformantPrefix"
    )
    assert found.head == gate.head


def settle(rng: random.Random, permit: Any, writer: SessionWriter, tool: str) -> None:
    """An outcome, told to both."""
    kind = rng.choice(["done", "done", "failed", "unknown"])
    if kind == "failed":
        permit.failed("no")
        writer.failed()
    elif kind == "unknown":
        permit.unknown("no")
        writer.unknown()
    elif tool == "run":
        result = rng.choice(["pass", "pass", "fail"])
        permit.done({"result": result})
        writer.done({"result": result}, result=result)
    else:
        value = rng.choice([None, "x", {"b": 1, "a": [True]}])
        permit.done(value)
        writer.done(value)


def resolve(rng: random.Random, gate: Gate, writer: SessionWriter) -> None:
    """Now and then an unknown outcome is known."""
    unknown = [i for i, did in enumerate(writer.brute.session, 1) if did.outcome == "unknown"]
    if not unknown or (rng.random() > 0.3 and len(unknown) < 4):
        return
    seq = rng.choice(unknown)
    outcome = rng.choice(["done", "failed"])
    ran = writer.core.tools[writer.brute.session[seq - 1].tool].name == "run"
    answer = {"result": rng.choice(["pass", "fail"])} if ran and outcome == "done" else {}
    gate.resolve(seq, outcome, observed=answer or None)
    writer.resolve(seq, outcome, **answer)


def plain(line: bytes) -> dict[str, Any]:
    """A record without its link, its MAC and its time."""
    found: dict[str, Any] = json.loads(line)
    del found["~"], found["mac"]
    return told(found)


def told(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "ms"}
