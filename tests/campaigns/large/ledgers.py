"""Ledgers of longer runs, closed where they may not be, with blocks doubled and long lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tcc_certs.kernel import CheckedArtifact
from tests.campaigns.large import drawn_size, texts
from tests.oracle_ledger.writer import reference_records

Records = list[dict[str, Any]]
STOPS = (
    "bound", "exhausted", "max_expansions", "max_seconds", "interrupted", "precision", "guard",
)  # fmt: skip


def closed_early(
    artifacts: Mapping[str, CheckedArtifact], runs: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[tuple[Records, Records]]:
    """Runs that a person ends, rightly closed, each with what would have followed.

    One for each pop of each run, so with a close that is right in every place where one may stand.
    """
    found = []
    for of, told in runs:
        if "interrupt_after" in told:
            continue
        whole = reference_records(artifacts[of], **told)
        pops = sum(record["kind"] in ("expand", "leaf", "draw") for record in whole)
        for after in range(pops):
            records = reference_records(artifacts[of], **{**told, "interrupt_after": after})
            same = len(records) - 1
            if records[-1]["stop"] == "interrupted" and records[:same] == whole[:same]:
                found.append((records, whole[same:]))
    return found


def carried_on(rng: Random, closed: tuple[Records, Records]) -> Records:
    """A ledger that goes on behind its close: with its run, with a part of it, with anything."""
    records, following = closed
    at = rng.randrange(len(following) + 1)
    close = {**records[-1], "stop": rng.choice((*STOPS, records[-1]["stop"]))}
    more = rng.choice(
        (following, following[:at], following[at:], [close], [*following[:at], close], records[1:])
    )
    last = close if rng.random() < 0.2 else records[-1]
    return [*records[:-1], last, *more]


def blocks(rng: Random, records: Records) -> Records:
    """A block of records doubled, moved, dropped or said very often."""
    at, other = rng.randrange(len(records) + 1), rng.randrange(len(records) + 1)
    low, high = min(at, other), max(at, other)
    block = records[low:high]
    often = rng.choice((1, 1, 3, 2000 // (len(block) + 1)))
    return rng.choice(
        (
            records[:high] + block * often + records[high:],
            records[:low] + records[high:] + block,
            records[:low] + records[high:],
            records[:low] + block[::-1] + records[high:],
        )
    )


def recovered(rng: Random, records: Records) -> Records:
    """Resumed, very often."""
    at = rng.randrange(1, len(records) + 1)
    number = drawn_size(rng, 16, 1024)
    again = [
        {"kind": "recovered", "dropped_bytes": step * 7, "records": at + step}
        for step in range(number)
    ]
    return records[:at] + again + records[at:]


def long_member(rng: Random, records: Records) -> Records:
    """One member of one record is a very long text, list or number."""
    at = rng.randrange(len(records))
    record = dict(records[at])
    name = rng.choice([*record, "beacon", "client_nonce", "guards", "x"])
    size = drawn_size(rng, 1 << 10, 1 << 17)
    old = record.get(name)
    record[name] = rng.choice(
        (
            texts.escaped(rng, size),
            rng.choice(("00", "9", "-9.")) * size,
            "é" * size,
            [old if isinstance(old, (str, int)) else "a"] * (size // 10),
            [[]] * (size // 10),
            {f"{step}": step for step in range(size // 10)},
            10**999,
        )
    )
    return [*records[:at], record, *records[at + 1 :]]


def hostile_line(rng: Random, lines: Sequence[bytes]) -> bytes:
    """A line that is hostile JSON, in the place of one, or behind the last without its end."""
    at = rng.randrange(len(lines) + 1)
    line = texts.hostile(rng, drawn_size(rng, 1 << 10, 1 << 18))
    if rng.random() < 0.3:
        return b"".join([*lines[:at], line])
    return b"".join([*lines[:at], line, b"\n", *lines[at + 1 :]])
