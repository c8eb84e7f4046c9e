"""What changed from an old grammar or artifact to a new one: `tcc.diff`, and its JSON fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tcc import screen
from tcc.written import Given, artifact_of, statement_fields, written_of
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.questions.comparison import Amounts, Comparison, compare
from tcc_runtime.questions.difference import OneSided
from tcc_runtime.questions.gate_changes import Change


def diff(old: Given, new: Given) -> Comparison:
    """What changed from `old` to `new`: plans, exactly and listing none, and all else of the core.

    Args:
        old, new: artifacts, or files of artifacts or grammars.

    Returns:
        the verdict on `new`, numbers and witnesses, and what else changed.

    Raises:
        CompileError: a grammar was refused, or a limit was reached.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    return compare_written(artifact_of(old), artifact_of(new))


def compare_written(old: Artifact, new: Artifact) -> Comparison:
    """Compare two artifacts; statements as they were written, where that is known."""
    return compare(old, new, written_of(old), written_of(new))


def comparison_fields(found: Comparison) -> dict[str, Any]:
    """The JSON fields of ``diff``."""
    fields: dict[str, Any] = {
        "verdict": found.verdict,
        "plans": found.plans,
        "counts": found.counts,
        "added": screen.decimal(found.added.plans),
        "removed": screen.decimal(found.removed.plans),
        "common": screen.decimal(found.common),
        "witnesses": {"added": _witnesses(found.added), "removed": _witnesses(found.removed)},
        "because": {
            "added": [statement_fields(statement) for statement in found.because_added],
            "removed": [statement_fields(statement) for statement in found.because_removed],
        },
        "calls": None,
        "monitors": _changes(found.monitors),
        "open": _changes(found.opened),
        "members": [asdict(change) for change in found.members],
    }
    if found.calls is not None:
        fields["calls"] = {
            "added": list(found.calls.added),
            "removed": list(found.calls.removed),
            "amounts": [amounts.call for amounts in found.calls.amounts],
        }
        fields["amounts"] = [_amounts(amounts) for amounts in found.calls.amounts]
    if found.reason is not None:
        fields["reason"] = str(found.reason)
    return fields


def _witnesses(side: OneSided) -> dict[str, list[str] | None]:
    return {
        "shortest": None if side.shortest is None else list(side.shortest),
        "cheapest": None if side.cheapest is None else list(side.cheapest),
    }


def _changes(changes: Sequence[Change]) -> dict[str, Any]:
    """By kind: texts where something is on one side alone, both sides where it is on both."""
    changed = [
        {"name": c.name, "old": c.old, "new": c.new, "sense": c.sense}
        for c in changes
        if c.old is not None and c.new is not None
    ]
    return {
        "added": [change_text(c) for c in changes if c.old is None],
        "removed": [change_text(c) for c in changes if c.new is None],
        "changed": changed,
    }


def change_text(change: Change) -> str:
    """What was added or removed, or how it changed, in a line."""
    parts = [text for text in (change.old, change.new) if text is not None]
    said = " became ".join(parts)
    alone = change.of == "monitor" or (change.of == "statement" and len(parts) == 1)
    return said if alone else f"{change.name}: {said}"


def _amounts(found: Amounts) -> dict[str, Any]:
    changed = {
        name: {"old": amount_text(name, old), "new": amount_text(name, new)}
        for name, old, new in found.changes
    }
    return {"call": found.call, **changed}


def amount_text(name: str, amount: Sequence[int]) -> str:
    """A cost, a price, a latency or an epsilon as decimal text; a range with its ends."""
    places = 9 if name in ("cost", "epsilon") else 0
    ends = dict.fromkeys(format_decimal(end, places) for end in amount)
    return " .. ".join(ends)
