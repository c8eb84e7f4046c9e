"""``tcc session``: what an agent did, told from the ledger of its session."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.library.validation import validate
from tcc.opening import require_artifact, require_ledger
from tcc.options import digest_option, input_option, json_option, ledger_argument, pin_option
from tcc.screen import CLEAN
from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import LedgerReader, Record
from tcc_certs.session import SessionValidation
from tcc_certs.verbs.validate import session_document
from tcc_runtime.artifact.load import load
from tcc_runtime.gate.transcript import Event, Transcript, transcript_of

_INCOMPLETE = 2
_MOST_NEXT = 12


@click.group("session")
def command() -> None:
    """Look at the ledger of a session."""


@command.command("show")
@ledger_argument
@input_option("--artifact", "the artifact that the session is held to", required=True)
@pin_option
@digest_option("--key", "of the session's digests")
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    /,
    ledger: Path,
    artifact: Path,
    pin: bytes | None,
    key: bytes | None,
    as_json: bool,
) -> None:
    """Tell the session in LEDGER: its calls, its refusals, and what may come next.

    The ledger is validated first; one that does not conform is not told.
    """
    require_artifact(artifact)
    require_ledger(ledger)
    pinned = None if pin is None else pin.hex()
    found = validate(ledger, artifact, pin=pinned, key=key)
    if not isinstance(found, SessionValidation):
        raise click.ClickException(f"{ledger} is no ledger of a session; see tcc validate")
    if found.word not in ("VALID", "INCOMPLETE") or not found.checked or not _lines(ledger):
        said = f"{found.word}: {found.summary}"
        if as_json:
            from tcc.outputs.verdicts import ErrorOutput

            findings: Any = session_document(found)["findings"]
            screen.print_output(ErrorOutput(error=said, findings=list(findings)))
        else:
            screen.bad(said)
        ctx.exit(found.verdict)
    try:
        told = transcript_of(load(artifact, verify=False), _records(ledger))
    except Rejected as refusal:
        raise click.ClickException(f"{artifact}: {refusal}") from None
    if as_json:
        _print_document(told, found)
    else:
        _print(told, found)
    # A session that goes on is no finding.
    ctx.exit(CLEAN)


def _lines(ledger: Path) -> bool:
    with ledger.open("rb") as file:
        return file.readline(1 << 24).endswith(b"\n")


def _records(ledger: Path) -> Iterator[Record]:
    with ledger.open("rb") as file:
        yield from LedgerReader(iter(lambda: file.read(1 << 16), b""))


def _print_document(told: Transcript, found: SessionValidation) -> None:
    from tcc.outputs.verdicts import SessionOutput

    events = [
        {name: value for name, value in _members(event).items() if value not in (None, "", {})}
        for event in told.events
    ]
    header = {name: value for name, value in told.header.items() if name != "kind"}
    output = SessionOutput(
        session=header,
        events=events,
        states=list(told.states),
        may_finish=told.may_finish,
        ended=told.ended,
        allowed_next=list(told.allowed_next),
        claim_type=found.claim_type,
        ledger_head=found.head,
        summary=found.summary,
    )
    screen.print_output(output)


def _members(event: Event) -> dict[str, Any]:
    return {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}


def _print(told: Transcript, found: SessionValidation) -> None:
    header = told.header
    started = datetime.fromtimestamp(int(str(header["started_ms"])) / 1000, UTC)
    screen.say(f"session {header['session_id']} of {header['grammar']} {header['grammar_version']}")
    screen.print_fields(
        [("began", started.isoformat(timespec="milliseconds")), ("artifact", header["artifact"])]
    )
    for event in told.events:
        screen.say(_line(event))
    allowed = [*told.allowed_next[:_MOST_NEXT]]
    if len(told.allowed_next) > _MOST_NEXT:
        allowed.append(f"and {len(told.allowed_next) - _MOST_NEXT} more")
    screen.print_fields(
        [
            ("may be in", _states(told.states)),
            ("may follow", ", ".join(allowed) or "nothing"),
            ("may end", "has ended" if told.ended else "yes" if told.may_finish else "no"),
            ("claim", found.claim_type),
            ("head", found.head),
        ]
    )
    say = screen.doubtful if found.verdict == _INCOMPLETE or not found.claim_upheld else screen.good
    say(f"{found.word}: {found.summary}")


def _line(event: Event) -> str:
    way = f"{_states(event.before)} -> {_states(event.after)}"
    told = "".join(f", {name}={value}" for name, value in event.observed.items())
    if event.kind == "refusal":
        return f"     refused {event.text}: {event.outcome}, {event.why}"
    if event.kind == "resolve":
        return f"     {event.seq} was {event.outcome}{told}: {way}"
    if event.kind == "end":
        return f"     end, {event.text}"
    if event.kind in ("budget", "asked"):
        return f"     {event.kind}: {event.text}{_took(event)}"
    opened = "; ".join(f"{name}: {value}" for name, value in event.opened.items())
    took = "" if event.ms is None else f", {event.ms} ms"
    given = f" [{opened}]" if opened else ""
    by = f" by {event.model}" if event.model else ""
    came = f"{event.outcome}{told}{took}{_took(event)}"
    return f"{event.seq:>4} {event.text}{given}{by}: {came}: {way}"


def _took(event: Event) -> str:
    if not event.took:
        return ""
    units = (("price", "{} cents"), ("latency", "{} ms"), ("epsilon", "epsilon {}"))
    parts = [unit.format(event.took[name]) for name, unit in units if name in event.took]
    return f", took {', '.join(parts)}"


def _states(states: Sequence[int]) -> str:
    return "|".join("nowhere" if state < 0 else str(state) for state in states)
