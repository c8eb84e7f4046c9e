"""Comparison of an old grammar or artifact with a new one: `tcc.diff`, its JSON, text and Markdown.

:func:`diff_output` gives the JSON; :func:`rows` what is shown to people, on a terminal, in a
comment under a pull request, or as a workflow command of GitHub.  Unchanged parts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcc import screen
from tcc.compilation import Given, artifact_of
from tcc.findings import Found, Place, command
from tcc.questions import statement_json, statement_line, written_of
from tcc_certs.core.enforced import shortened
from tcc_certs.errors import clip
from tcc_certs.formats.texts import format_decimal
from tcc_runtime.analysis.comparison import CallChange, Comparison, compare
from tcc_runtime.analysis.difference import OneSided
from tcc_runtime.analysis.gate_changes import Change
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    from tcc.outputs.plans import CallAmountsJson, ChangesJson, DiffOutput, WitnessesJson


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


def diff_output(found: Comparison, breaking: bool) -> DiffOutput:
    """The document of ``diff``."""
    from tcc.outputs import plans
    from tcc.outputs.parts import optional

    calls = found.calls
    return plans.DiffOutput(
        verdict=found.verdict,
        plans=found.plans,
        counts=found.counts,
        added=screen.decimal(found.added.plans),
        removed=screen.decimal(found.removed.plans),
        common=screen.decimal(found.common),
        witnesses=plans.BothWitnessesJson(
            added=_witnesses(found.added), removed=_witnesses(found.removed)
        ),
        because=plans.BothReasonsJson(
            added=[statement_json(statement) for statement in found.because_added],
            removed=[statement_json(statement) for statement in found.because_removed],
        ),
        calls=None
        if calls is None
        else plans.CallChangesJson(
            added=list(calls.added),
            removed=list(calls.removed),
            amounts=[amounts.call for amounts in calls.amounts],
        ),
        monitors=_changes(found.monitors),
        open=_changes(found.opened),
        members=[
            plans.MemberChangeJson(of=c.of, name=c.name, old=c.old, new=c.new, sense=c.sense)
            for c in found.members
        ],
        amounts=optional(
            None if calls is None else [_amounts(amounts) for amounts in calls.amounts]
        ),
        reason=optional(None if found.reason is None else str(found.reason)),
        breaking=breaking,
    )


def _witnesses(side: OneSided) -> WitnessesJson:
    from tcc.outputs.plans import WitnessesJson

    return WitnessesJson(
        shortest=None if side.shortest is None else list(side.shortest),
        cheapest=None if side.cheapest is None else list(side.cheapest),
    )


def _changes(changes: Sequence[Change]) -> ChangesJson:
    """By kind: texts where something is on one side alone, both sides where it is on both."""
    from tcc.outputs.plans import ChangedJson, ChangesJson

    return ChangesJson(
        added=[change_text(c) for c in changes if c.old is None],
        removed=[change_text(c) for c in changes if c.new is None],
        changed=[
            ChangedJson(name=c.name, old=c.old, new=c.new, sense=c.sense)
            for c in changes
            if c.old is not None and c.new is not None
        ],
    )


def change_text(change: Change) -> str:
    """What was added or removed, or how it changed, in a line."""
    parts = [text for text in (change.old, change.new) if text is not None]
    said = " became ".join(parts)
    alone = change.of == "monitor" or (change.of == "statement" and len(parts) == 1)
    return said if alone else f"{change.name}: {said}"


def _amounts(found: CallChange) -> CallAmountsJson:
    from tcc.outputs.plans import AmountJson, CallAmountsJson

    changed: dict[str, Any] = {
        name: AmountJson(old=amount_text(name, old), new=amount_text(name, new))
        for name, old, new in found.changes
    }
    return CallAmountsJson(call=found.call, **changed)


def amount_text(name: str, amount: Sequence[int]) -> str:
    """A cost, a price, a latency or an epsilon as decimal text; a range with its ends."""
    places = 9 if name in ("cost", "epsilon") else 0
    ends = dict.fromkeys(format_decimal(end, places) for end in amount)
    return " .. ".join(ends)


_WIDEST = 1000
_SAID = {
    "equal": "the plans are the same",
    "narrower": "plans were taken away, none was added",
    "wider": "plans were added, none was taken away",
    "incomparable": "plans were added, and others taken away",
}
_SAID_BESIDE = {
    "narrower": "less is let through",
    "wider": "more is let through",
    "incomparable": "what is let through, or done, is not the same",
    "cost": "amounts are others",
    "other": "what else changed lets the same through",
}
# How a change of a member is named; others by the member's own name.
_KINDS = {"open": "parameter", "observed": "parameter", "values": "values of"}


def headline(found: Comparison) -> str:
    """The verdict in a line."""
    if found.verdict is None:
        return f"undecided: only bounds are known ({found.reason})"
    said = _SAID[found.plans or "equal"]
    if found.verdict != found.plans:
        said = f"{said}; {_SAID_BESIDE[found.verdict]}"
    return f"{found.verdict}: {said}"


def rows(found: Comparison) -> Iterator[tuple[str, str]]:
    """What there is to say, name and text; what did not change is left out."""
    most = "" if found.counts == "exact" else "at most "
    for name, side, because in (
        ("added", found.added, found.because_added),
        ("removed", found.removed, found.because_removed),
    ):
        yield name, f"{most}{screen.big(side.plans)} plans"
        yield from _witness_rows(side)
        for statement in because:
            yield "  by a change of", statement_line(statement)
    yield "common", f"{most}{screen.big(found.common)} plans"
    if found.calls is not None:
        for name, texts in (
            ("new calls", found.calls.added),
            ("calls gone", found.calls.removed),
            ("amounts", tuple(map(_amounts_text, found.calls.amounts))),
        ):
            if texts:
                yield name, shortened(texts)
    for change in (*found.monitors, *found.opened, *found.members):
        what = "added" if change.old is None else "removed" if change.new is None else "changed"
        if change.of == "statement":
            what = {"added": "new", "removed": "gone"}[what]
        kind = _KINDS.get(change.of, change.of)
        yield f"{kind} {what}", f"{clip(change_text(change), _WIDEST)} ({change.sense})"


def _witness_rows(side: OneSided) -> Iterator[tuple[str, str]]:
    for name, plan in (("shortest", side.shortest), ("cheapest", side.cheapest)):
        if plan is not None:
            yield f"  {name}", " ".join(plan) or "(the empty plan)"


def _amounts_text(found: CallChange) -> str:
    changed = [
        f"{name} {amount_text(name, old)} -> {amount_text(name, new)}"
        for name, old, new in found.changes
    ]
    return f"{found.call}: {', '.join(changed)}"


def print_text(found: Comparison, breaking: bool) -> None:
    """For a terminal."""
    (screen.bad if breaking else screen.good)(headline(found))
    screen.print_fields(rows(found))


def print_markdown(found: Comparison, breaking: bool) -> None:
    """For a comment under a pull request."""
    screen.say(f"### {'Breaking' if breaking else 'Not breaking'}: {_quoted(headline(found))}")
    screen.say("")
    screen.say("| what | how |")
    screen.say("| --- | --- |")
    for name, text in rows(found):
        screen.say(f"| {name.strip()} | {_quoted(text)} |")


# What GitHub makes a mention or a link of in a comment: names, issues, commits, addresses, emoji.
_LINKED = re.compile(
    r"@|#\w|\bgh-\d|\bwww\.|://|:[+\w-]+:|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])|"
    r"\b(?:mailto|xmpp):|!\d|\[\^",
    re.IGNORECASE,
)


def _quoted(text: str) -> str:
    """Text in which nothing is Markdown, nobody is mentioned and nothing is linked.

    GitHub looks for mentions and references after Markdown was rendered, where an escape is no
    longer seen; in code it looks for none.
    """
    if _LINKED.search(text) is None:
        return re.sub(r"([\\`*_{}\[\]<>()#+!|&~-])", r"\\\1", text)
    # A comment ends what looks like an address to Markdown itself, which knows no element of code.
    inner = re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", text)
    inner = re.sub(r"(&#(?:46|47|58|64);)", r"\1<!-- -->", inner)
    return f"<code>{inner}</code>"


def print_github(found: Comparison, breaking: bool, new: Path) -> None:
    """One workflow command, at the new grammar."""
    level = "error" if breaking else "notice"
    screen.say(command(level, _lines(found), "tcc diff", Place(file=str(new))))


def broken_findings(found: Comparison, breaking: bool, new: Path) -> list[Found]:
    """A breaking change as a finding about the new grammar; none where it breaks nothing."""
    if not breaking:
        return []
    return [Found(code="TCC860", message=_lines(found), place=Place(file=str(new)))]


def _lines(found: Comparison) -> str:
    return "\n".join([headline(found), *(f"{name.strip()}: {text}" for name, text in rows(found))])
