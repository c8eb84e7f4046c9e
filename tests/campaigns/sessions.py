"""Ledgers of sessions for the fuzzer: bytes edited, records edited and chained again.

A session that the validator upholds is decided once more by the definition over a plain list, and
has to be upheld by it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

from blake3 import blake3

from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy.history import ListHistory
from tcc_certs.session import validate
from tcc_certs.session.validation import SessionReplay, machine_of, statements_of
from tests.campaigns.large import ledgers as large_ledgers
from tests.campaigns.mutate import TOKENS, mutate_bytes, mutate_json
from tests.forgery.test_execution_forgeries import (
    artifact as with_models,
    session as made_by_models,
)
from tests.oracle_session.asking import asking
from tests.oracle_session.shapes import NAMES, shape, shop
from tests.oracle_session.writer import KEY, named, sealed

_WORDS = [b'"done"', b'"failed"', b'"unknown"', b'"kind":"resolve"', b'"abandoned":true', b"-1"]
MOST_RECORDS = 60  # of a session that the plain list goes through


def known() -> list[bytes]:
    """Well-formed sessions, and sessions that are broken in each way that has its own code."""
    honest = [sealed(shape(name)) for name in NAMES]
    records = [dict(record) for record in shape("hidden")]
    broken = [
        [*records[:1], {**records[1], "seq": 2}],
        [*records[:1], {**records[1], "call": "none"}],
        [*records[:1], {**records[1], "states": [0]}],
        [named({**records[0], "grammar": "other"})],
        [*records[:3], {**records[3], "open": {}}],
        [*records[:3], {**records[3], "seq": 3}, {**records[4], "seq": 3}, records[7]],
    ]
    return [*honest, *map(sealed, broken), honest[0][:-40], sealed(by_models())]


def by_models() -> list[dict[str, Any]]:
    """The records of a session whose calls models make, within a budget and an account."""
    return [dict(record) for record in made_by_models()[0]]


def longer() -> list[tuple[list[dict[str, Any]], bytes]]:
    """A session of many calls that failed, and many that were refused."""
    first, call = (dict(record) for record in shape("hidden")[:2])
    del call["ref"]
    records = [first]
    for seq in range(1, 401):
        key = blake3(b"key" + seq.to_bytes(8, "little"), key=KEY).digest(16).hex()
        records.append({**call, "seq": seq, "key": key})
        at_ms = call["at_ms"]
        records.append(
            {"kind": "outcome", "seq": seq, "outcome": "failed", "ms": seq, "at_ms": at_ms}
        )
        records.append({"kind": "refusal", "tool": "pay", "code": "R202", "statement": 1})
    records.append({"kind": "end", "abandoned": True, "at_ms": at_ms})
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
    """The verdict, or the first code; the definition over a list upholds what is upheld."""
    chunks = [data[i : i + 200] for i in range(0, len(data), 200)] if len(data) % 8 == 0 else data
    artifact = artifact_of(data)
    found = validate(chunks, artifact, key=KEY if len(data) % 3 == 0 else None)
    if found.findings:
        return found.findings[0].code.value
    if not upheld(data, artifact):
        raise AssertionError(f"upheld, but not by the definition: {found.claim_type}")
    return f"verdict {found.verdict} {found.claim_type}"


def artifact_of(data: bytes) -> CheckedArtifact:
    """The artifact that the first line names; else that of the shop."""
    artifacts: list[CheckedArtifact] = [with_models(), asking()]
    for artifact in artifacts:
        if artifact.file.digest.hex().encode() in data[:2000]:
            return artifact
    return shop()


def upheld(data: bytes, artifact: CheckedArtifact) -> bool:
    """Whether the definition over a plain list finds nothing, either."""
    if data.count(b"\n") > MOST_RECORDS:
        return True
    plain = replace(statements_of(artifact), policy=artifact.policy, history=ListHistory)
    replay = SessionReplay(artifact, machine_of(artifact), None, plain)
    reader = LedgerReader((data,))
    for line in reader.lines():
        replay.step(line, line.previous, line.body)
    return not replay.findings.items
