"""Ledgers of sessions for the fuzzer: bytes edited, records edited and chained again.

What passes is read once more by brute force: a session that the validator upholds and brute force
does not is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

from blake3 import blake3

from tcc_certs.session import validate
from tests.campaigns.large import ledgers as large_ledgers
from tests.campaigns.mutate import TOKENS, mutate_bytes, mutate_json
from tests.forgery.test_execution_forgeries import (
    artifact as with_models,
    session as made_by_models,
)
from tests.oracle_session.brute import Brute, Did
from tests.oracle_session.desk import desk
from tests.oracle_session.shapes import NAMES, shape
from tests.oracle_session.writer import KEY, named, quoted, sealed

_WORDS = [b'"done"', b'"failed"', b'"unknown"', b'"kind":"resolve"', b'"abandoned":true', b"-1"]
MOST_UNKNOWN, MOST_RECORDS = 5, 60  # of a session that brute force goes through


def known() -> list[bytes]:
    """Well-formed sessions, and such that are broken in each way that has a code of its own."""
    honest = [sealed(shape(name)) for name in NAMES]
    records = [dict(record) for record in shape("plain hidden")]
    broken = [
        [*records[:1], {**records[1], "seq": 2}],
        [*records[:1], {**records[1], "call": "none"}],
        [*records[:1], {**records[1], "states": [0]}],
        [named({**records[0], "grammar": "other"})],
        [*records[:3], {**records[3], "open": {}}],
        [*records[:3], {**records[5], "seq": 2}, {**records[6], "seq": 2}, records[7]],
    ]
    return [*honest, *map(sealed, broken), honest[0][:-40], sealed(by_models())]


def by_models() -> list[dict[str, Any]]:
    """The records of a session whose calls models make, within a budget and an account."""
    return [dict(record) for record in made_by_models()[0]]


def longer() -> list[tuple[list[dict[str, Any]], bytes]]:
    """A session of many calls that failed, and many that were refused."""
    first, call = (dict(record) for record in shape("plain hidden")[:2])
    records = [first]
    for seq in range(1, 401):
        key = blake3(b"key" + seq.to_bytes(8, "little"), key=KEY).digest(16).hex()
        records.append({**call, "seq": seq, "key": key})
        records.append({"kind": "outcome", "seq": seq, "outcome": "failed", "ms": seq})
        records.append({"kind": "refusal", "tool": "refund", "code": "R202"})
    records.append({"kind": "end", "abandoned": True})
    return [(records, sealed(records))]


def rechained(rng: Random, records: Sequence[Any]) -> bytes:
    """The chain over records of any shape."""
    from tests.campaigns.targets import chained

    head = records[0] if records else {}
    if isinstance(head, dict) and rng.random() < 0.9:
        with suppress(TypeError, ValueError, LookupError, AttributeError, OverflowError):
            records = [named(head), *records[1:]]
    return b"".join(chained(records, 0))


def mutate(rng: Random, data: bytes, others: Sequence[bytes], donors: Sequence[Any]) -> bytes:
    """A session that is nearly the one in `data`."""
    from tests.campaigns.targets import taken_apart

    found = None if rng.random() < 0.3 else taken_apart(data)
    if not found:
        return mutate_bytes(rng, data, others, [*TOKENS, *_WORDS])
    records = list(found[0])
    at = rng.randrange(len(records))
    match rng.randrange(9):
        case 0:
            del records[at]
        case 1:
            records.insert(at, rng.choice(donors))
        case 2:
            records[at] = rng.choice(donors)
        case 3:
            records = records[:at]
        case 4:
            records[at : at + 2] = records[at : at + 2][::-1]
        case _:
            records[at] = mutate_json(rng, records[at], donors)
    return rechained(rng, records)


def large(rng: Random, sessions: Sequence[tuple[list[dict[str, Any]], bytes]]) -> bytes:
    """A long session, changed; or a line of it that is hostile."""
    records, data = rng.choice(sessions)
    if rng.random() < 0.3:
        return large_ledgers.hostile_line(rng, data.splitlines(keepends=True))
    change = rng.choice((large_ledgers.blocks, large_ledgers.long_member))
    return rechained(rng, change(rng, list(records)))


def read(data: bytes) -> str:
    """The verdict, or the first code; what is upheld has to be believed by brute force, too."""
    chunks = [data[i : i + 200] for i in range(0, len(data), 200)] if len(data) % 8 == 0 else data
    models = with_models().file.digest.hex().encode() in data[:2000]
    artifact = with_models() if models else desk()
    found = validate(chunks, artifact, key=KEY if len(data) % 3 == 0 else None)
    if found.findings:
        return found.findings[0].code.value
    # Any calls are a plan of that artifact; its choices are held to a plain list in tests/gate.
    if not models and not believed(data, found.claim_type):
        raise AssertionError(f"upheld, and not believed: {found.claim_type}")
    return f"verdict {found.verdict} {found.claim_type}"


def believed(data: bytes, claim: str) -> bool:
    """Whether brute force finds every call allowed, and the end where it is claimed."""
    records = [json.loads(line) for line in data.splitlines()]
    shown = records[0]["arguments"]["show"]
    brute = Brute(desk())
    unknown = sum(record.get("outcome") == "unknown" for record in records)
    if unknown > MOST_UNKNOWN or len(records) > MOST_RECORDS:
        return True
    for record in records[1:]:
        if record["kind"] == "call":
            did = _did(brute, record)
            hidden = () if "refund.amount" in shown else (2,)
            if not brute.planned(did) or brute.forbidding(did, hidden) is not None:
                return False
            brute.session.append(did)
        elif record["kind"] in ("outcome", "resolve"):
            did = brute.session[record["seq"] - 1]
            did.outcome = record["outcome"]
            if did.outcome == "done" and "unforeseen" not in record:
                observed = record.get("observed", {})
                did.answer = tuple(["fail", "pass"].index(text) for text in observed.values())
    ends = records[-1] == {**records[-1], "kind": "end", "abandoned": False}
    return (brute.may_finish() if ends else True) and (claim == "Conformant") == ends


def _did(brute: Brute, record: dict[str, Any]) -> Did:
    for number, tool in enumerate(brute.core.tools):
        for at in range(len(tool.parameters[0].values) if tool.parameters else 1):
            values: tuple[int | None, ...] = ()
            text = quoted(tool.name)
            for param in tool.parameters:
                values = (None if param.observed else at,)
                if not param.observed and param.values[at]:
                    text += f"({param.name}={param.values[at]})"
            if text == record["call"]:
                opened = {name: _value(item) for name, item in record["open"].items()}
                return Did(tool=number, values=values, opened=opened)
    raise AssertionError(record["call"])


def _value(item: dict[str, str]) -> Any:
    """The number that is shown; else what stands for the value."""
    return json.loads(item["value"]) if item.get("type") == "n" else item["digest"]
