"""Mutants of a ledger: every field of every record, changed in the ways that its form allows.

Each is re-sealed: run id where the header changes, and the whole chain.  So what refuses it is a
rule about runs, never the hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle_ledger.writer import chained, with_run_id

Records = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A forged ledger: which record (from 0) and field, and what was done to it."""

    record: int
    field: str
    how: str
    records: Records

    @property
    def data(self) -> bytes:
        return chained(self.records)


def field_mutants(records: Records) -> Iterator[Mutant]:
    """Every single-field mutant of every record."""
    others = {record["kind"]: record for record in records}
    for at, record in enumerate(records):
        for name, value in record.items():
            for how, changed in changes(value):
                if type(changed) is not type(value) or changed != value:
                    yield _mutant(records, at, name, how, {**record, name: changed})
            rest = {key: item for key, item in record.items() if key != name}
            yield _mutant(records, at, name, "removed", rest)
        yield _mutant(records, at, "zzz", "added", {**record, "zzz": "1"})
        for kind in sorted(others):  # a field that another kind, or another record, has
            for name, value in others[kind].items():
                if name not in record:
                    how = f"added from {kind}"
                    yield _mutant(records, at, name, how, {**record, name: value})
        yield _mutant(records, at, "guards", "added", {**record, "guards": ["NumClamp"]})
        if "claim_type" not in record:
            lowered = {**record, "claim_type": "NoCert"}
            yield _mutant(records, at, "claim_type", "added", lowered)


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values of the same form, and of another."""
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, int):
        yield from (("+1", value + 1), ("-1", value - 1), ("as text", str(value)), ("true", True))
    elif isinstance(value, str):
        yield from _text_changes(value)
    elif isinstance(value, list):
        yield "emptied", []
        yield "doubled", value + value
        yield "reversed", value[::-1] if len(value) > 1 else [*value, value]
        for at, item in enumerate(value):
            yield f"[{at}] dropped", value[:at] + value[at + 1 :]
            for how, changed in changes(item):
                yield f"[{at}] {how}", [*value[:at], changed, *value[at + 1 :]]
    elif isinstance(value, dict):
        for name, item in value.items():
            for how, changed in changes(item):
                yield f".{name} {how}", {**value, name: changed}
            yield f".{name} removed", {key: it for key, it in value.items() if key != name}
        yield ".zzz added", {**value, "zzz": 1}


def _text_changes(value: str) -> Iterator[tuple[str, Any]]:
    yield "emptied", ""
    yield "longer", value + "0"
    yield "shorter", value[:-1]
    if value.lstrip("-").replace(".", "", 1).isdigit():
        yield "+1 in the last place", step(value, 1)
        yield "-1 in the last place", step(value, -1)
        yield "negated", value[1:] if value.startswith("-") else f"-{value}"
        yield "as a number", int(value.replace(".", "")) % 2**50
        yield "another", step(value, 12345678901234567)
    elif len(value) in (36, 64) and set(value) <= set("0123456789abcdef-"):
        for at in (0, 13, len(value) - 1):
            other = "1" if value[at] == "0" else "0"
            yield f"digit {at}", value[:at] + other + value[at + 1 :]
        yield "zeros", "".join("-" if c == "-" else "0" for c in value)
        yield "upper case", value.upper()
    else:
        yield "another text", "x" + value
        yield "another case", value.swapcase()


def step(value: str, by: int) -> str:
    """A decimal text with its last place moved."""
    whole, dot, part = value.partition(".")
    moved = int(whole + part) + by
    digits = f"{abs(moved):0{len(part) + 1}d}"
    text = f"{digits[: len(digits) - len(part)]}{dot}{digits[len(digits) - len(part) :]}"
    return f"-{text}" if moved < 0 else text


def _mutant(records: Records, at: int, field: str, how: str, changed: dict[str, Any]) -> Mutant:
    if at == 0 and field != "run_id":
        changed = with_run_id(changed)
    forged = [*records[:at], changed, *records[at + 1 :]]
    return Mutant(record=at, field=field, how=how, records=forged)


def line_mutants(records: Records) -> Iterator[Mutant]:
    """Records dropped, doubled, swapped with the next."""
    for at in range(len(records)):
        kind = records[at]["kind"]
        dropped = records[:at] + records[at + 1 :]
        doubled = [*records[:at], records[at], records[at], *records[at + 1 :]]
        yield Mutant(record=at, field=kind, how="dropped", records=dropped)
        yield Mutant(record=at, field=kind, how="doubled", records=doubled)
        for other in range(at + 1, len(records)):
            if records[at] != records[other]:
                swapped = list(records)
                swapped[at], swapped[other] = records[other], records[at]
                yield Mutant(record=at, field=kind, how=f"swapped with {other}", records=swapped)
