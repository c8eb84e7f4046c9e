"""Page of a session: the agent's calls, the refused calls with reasons, and the current state.

The :mod:`tcc.pages.transcript` of the session comes from records that the same command validated.
Size: at most `_FIRST` and `_LAST` events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tcc.pages import (
    Html,
    Mood,
    Page,
    Section,
    Verdict,
    badge,
    call,
    code,
    element,
    joined,
    left_out,
    moment,
    note,
    table,
)
from tcc.pages.artifact_page import statement_table
from tcc.pages.record_table import ShownRecords, field, records_section, whole
from tcc.pages.transcript import Transcript, TranscriptEvent
from tcc_certs.errors import clip
from tcc_certs.session import SessionValidation
from tcc_runtime.artifact.load import Artifact

_FIRST: Final = 300
_LAST: Final = 100
_NEXT: Final = 60
_MOODS: dict[str, Mood] = {
    "done": "good",
    "failed": "bad",
    "unknown": "doubtful",
    "open": "doubtful",
}


def session_page(
    artifact: Artifact,
    told: Transcript,
    kept: ShownRecords,
    found: SessionValidation,
    verdict: Verdict,
) -> Page:
    """Build the page of a session.

    Args:
        told: the transcript of the records that `found` validated.
        kept: the first and the last records.
        found: the validation of the ledger.
    """
    events = list(told.events)
    sections = [
        _shows(found),
        _calls(events),
        _refusals(events),
        _stands(told),
        records_section(kept),
    ]
    return Page(
        kind="session",
        title=f"{clip(artifact.manifest.grammar)} {clip(artifact.manifest.version)}",
        verdict=verdict,
        facts=_facts(told, events),
        sections=sections,
    )


def _facts(told: Transcript, events: Sequence[TranscriptEvent]) -> list[tuple[str, object]]:
    made = [event for event in events if event.kind == "call"]
    outcomes = Counter(event.outcome for event in made)
    shown = ", ".join(f"{number} {name}" for name, number in sorted(outcomes.items()))
    started = whole(told.header, "started_ms")
    refused = sum(event.kind == "refusal" for event in events)
    return [
        ("began", "" if started is None else moment(started)),
        ("calls made", f"{len(made)}{': ' if shown else ''}{shown}"),
        ("calls refused", refused),
        ("ended", "yes" if told.ended else "no"),
        *[(f"given {name}", code(value)) for name, value in sorted(told.given.items())],
        ("session", code(field(told.header, "session_id"))),
        ("artifact", code(field(told.header, "artifact"))),
    ]


def _shows(found: SessionValidation) -> Section:
    asserted = [element("li", text) for text in found.asserted]
    parts: list[object] = [
        element(
            "p", "Claim: ", element("b", found.claim_type), ". ", _CLAIMS.get(found.claim_type, "")
        ),
    ]
    if found.statements:
        parts += [
            element("h3", "Statements that decided each call"),
            statement_table(found.statements),
        ]
    if asserted:
        parts += [
            element("h3", "What nobody can see from the ledger, and its writer answers for"),
            element("ul", *asserted),
        ]
    return Section(name="shows", title="What this shows", body=joined(parts))


_CLAIMS = {
    "Conformant": "Every recorded call was allowed, and the session ended where a plan ends.",
    "ConformantPrefix": "Every recorded call was allowed; where a plan ends it has not ended.",
    "NoClaim": "Nothing is claimed.",
}


def _calls(events: Sequence[TranscriptEvent]) -> Section:
    """Return the section of all events in order, refusals included."""
    shown = [*events[:_FIRST], *events[max(_FIRST, len(events) - _LAST) :]]
    rows = [_row(event) for event in shown]
    names = ("no.", "what", "with", "outcome", "ms", "states")
    body = (
        table(names, rows, label="Calls in order", numbers="no. ms")
        if rows
        else element("p", "Nothing happened.")
    )
    return Section(
        name="calls",
        title="What happened",
        lead="In order. States are those that the session may have been in, before and after.",
        body=joined(
            [element("div", body, data_rows=True), left_out(len(rows), len(events), "events")]
        ),
    )


def _row(event: TranscriptEvent) -> tuple[object, ...]:
    way = f"{states(event.before)} \u2192 {states(event.after)}"
    path = element("span", way, class_="states")
    if event.kind == "refusal":
        why = joined([badge("refused", "bad"), " ", code(event.outcome), " ", *_reason(event)])
        return ("", call(event.tool, wrong=True), "", why, "", path)
    given = [element("div", code(f"{name}: {value}")) for name, value in event.opened.items()]
    if event.kind == "ask":
        asks = joined([badge("asked", "doubtful"), " ", event.who, " ", *_reason(event)])
        return ("", call(event.why), joined(given[:20]), asks, "", path)
    if event.kind == "approval":
        return ("", call(event.text), f"by {event.who}", event.outcome, "", path)
    if event.kind == "end":
        return ("", element("b", "end"), event.text, "", "", path)
    if event.kind in ("budget", "asked"):
        took = ", ".join([f"{name} {amount}" for name, amount in event.took.items()])
        return ("", element("b", event.kind), event.text, took, "", "")
    outcome = badge(clip(event.outcome, 60), _MOODS.get(event.outcome, "doubtful"))
    came = [joined([" ", code(f"{name}={value}")]) for name, value in event.observed.items()]
    if event.kind == "resolve":
        what: Html = joined([element("em", "told later: "), call(event.text)])
    else:
        by = [" by ", code(event.model)] if event.model else []
        what = joined([call(event.text), *by])
    ms = "" if event.ms is None else event.ms
    return (event.seq or "", what, joined(given[:20]), joined([outcome, *came[:20]]), ms, path)


def _refusals(events: Sequence[TranscriptEvent]) -> Section:
    """Return the section that counts the refusals by tool, code and reason."""
    refusals = [event for event in events if event.kind == "refusal"]
    first: dict[tuple[str, str, str, str], TranscriptEvent] = {}
    counted = Counter[tuple[str, str, str, str]]()
    for event in refusals:
        key = event.tool, event.outcome, event.text, _made(event)
        first.setdefault(key, event)
        counted[key] += 1
    rows = [
        (call(first[key].tool), number, code(first[key].outcome), joined(_reason(first[key])))
        for key, number in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    ]
    shown = rows[:50]
    body = (
        table(("tool", "times", "code", "why"), shown, label="Refusals", numbers="times")
        if rows
        else element("p", "Nothing was refused.")
    )
    return Section(
        name="refusals",
        title="What was refused, and why",
        lead="A refused call was not made; the agent was told what was allowed instead.",
        body=joined([body, left_out(len(shown), len(rows), "kinds of refusals")]),
    )


def _reason(event: TranscriptEvent) -> list[object]:
    """Return the reason for a refusal or a question: the author's text, then the statement."""
    if event.statement is None:
        return [event.text, _made(event)]
    because = [event.because, " "] if event.because else []
    return [*because, code(event.text), _made(event)]


def _made(event: TranscriptEvent) -> str:
    return "; made all the same" if event.made else ""


def _stands(told: Transcript) -> Section:
    follow = [call(text) for text in told.allowed_next[:_NEXT]]
    more = len(told.allowed_next) - len(follow)
    may = (
        "It has ended."
        if told.ended
        else "It may end here."
        if told.may_finish
        else "It may not end here."
    )
    parts: list[object] = [
        element("p", "It may be in ", element("b", states(told.states)), ". ", may),
    ]
    if follow:
        parts.append(element("p", "May come next: ", joined(follow, " ")))
    if more > 0:
        parts.append(note(f"and {more} more"))
    return Section(name="stands", title="Where it stands", body=joined(parts))


def states(numbers: Sequence[int]) -> str:
    """Return states for people, at most eight of them."""
    shown = ["nowhere" if state < 0 else str(state) for state in numbers[:8]]
    more = [f"{len(numbers) - 8} more"] if len(numbers) > 8 else []
    return " | ".join([*shown, *more]) or "none"
