"""``tcc session``: lists, shows, resolves and ends the sessions of ledgers and stores.

Documentation: docs/sessions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click

from tcc import screen
from tcc.files import is_regular
from tcc.library.validation import validate
from tcc.opening import account_in, refuse, require_artifact, require_ledger
from tcc.options import digest_option, input_option, json_option, pin_option
from tcc.pages.transcript import Teller, Transcript, TranscriptEvent
from tcc.screen import CLEAN, FINDINGS
from tcc_certs.errors import Rejected
from tcc_certs.session import SessionValidation
from tcc_certs.verbs.session import session_document
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate.arguments.json_reader import answer_in
from tcc_runtime.gate.asking.places import Asked, Listed, decide, places_of, questions_in
from tcc_runtime.gate.asking.questions import Verdict, VerdictError
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session.records import is_name, now_ms
from tcc_runtime.gate.store import Sessions, StoredSession, session_id_of

_INCOMPLETE = 2
_MOST_NEXT = 12


_SESSION_ID = click.argument("session_id", metavar="ID")
_account_option = input_option(
    "--account", "account that counts limits across sessions, if the grammar has any"
)
_STORE = click.argument("store", type=click.Path(file_okay=False, path_type=Path))


@click.group("session")
def command() -> None:
    """Show sessions, and settle what only their owner can."""


@contextmanager
def _store_errors(store: Path) -> Iterator[None]:
    """Context manager that reports errors of a store or its sessions, and ends the command."""
    try:
        yield
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint=error.field) from None
    except ResumeError as error:
        screen.say(f"{store}: {error}", err=True)
        raise click.exceptions.Exit(FINDINGS) from None
    except Rejected as refusal:
        refuse(store, refusal)
    except LedgerError as error:
        busy = isinstance(error.cause, BlockingIOError)
        said = "another process has its lock" if busy else error.cause.strerror
        raise click.ClickException(f"{error.path}: {said}") from None


@command.command("list")
@_STORE
@json_option
@click.pass_context
def list_command(ctx: click.Context, /, store: Path, as_json: bool) -> None:
    """List the sessions of STORE, oldest first.

    A session is live, spent (plans allow no further call), ended or abandoned; a live one may have
    pending questions (see tcc session pending). Exit code 1: a ledger is not valid; the other
    sessions are listed.
    """
    found: list[StoredSession] = []
    broken = 0
    with _store_errors(store):
        sessions = Sessions.of(store)
        for session_id in sessions.ids():
            try:
                found.append(sessions.look(session_id))
            except ResumeError as error:
                broken += 1
                screen.say(f"{session_id}: {error}", err=True)
    if as_json:
        from tcc.outputs.verdicts import SessionListOutput, StoredSessionJson

        screen.print_output(
            SessionListOutput(
                sessions=[
                    StoredSessionJson(
                        id=one.id,
                        started_ms=one.started_ms,
                        calls=one.calls,
                        unknown=one.unknown,
                        pending=one.pending,
                        state=one.state,
                    )
                    for one in found
                ]
            )
        )
    else:
        for one in found:
            more = f", {one.unknown} unknown" if one.unknown else ""
            more += f", {one.pending} pending" if one.pending else ""
            screen.say(
                f"{one.id}  {_time(one.started_ms)}  {one.state:<9}  {one.calls} calls{more}"
            )
    ctx.exit(FINDINGS if broken else CLEAN)


@command.command("resolve")
@_STORE
@_SESSION_ID
@click.argument("seq", type=click.IntRange(min=1))
@click.argument("outcome", type=click.Choice(("done", "failed")))
@click.option("--observed", metavar="JSON", help="observed values: a JSON object, by name")
@click.option(
    "--who",
    metavar="NAME",
    required=True,
    help="who reports the outcome; the ledger records the name",
)
@click.option("--answered", is_flag=True, help="the call failed, and the agent has read its error")
@_account_option
def resolve_command(
    store: Path,
    session_id: str,
    seq: int,
    outcome: Literal["done", "failed"],
    observed: str | None,
    who: str,
    answered: bool,
    account: Path | None,
) -> None:
    """Report the outcome of call SEQ of session ID, which was unknown.

    Exit code 1: there is no such session, or no such unknown call. 2: the session is in use.
    """
    if not is_name(who):
        raise click.BadParameter("1 to 255 characters that can be printed", param_hint="--who")
    given = None if observed is None else _object(observed)
    counts = None if account is None else account_in(account)
    with _store_errors(store), Sessions.of(store, account=counts).get(session_id) as gate:
        try:
            turn = gate.try_turn()
            if turn is None:
                raise click.ClickException("a call of this session is under way: try again")
            gate.resolve(seq, outcome, given, turn=turn, who=who, answered=answered)
        except (Refused, ValueError) as error:
            screen.say(f"{session_id}: {error}", err=True)
            raise click.exceptions.Exit(FINDINGS) from None
    screen.say(f"call {seq} of {session_id} is {outcome}")


@command.command("end")
@_STORE
@_SESSION_ID
@click.option("--abandon", is_flag=True, help="end the session even if no plan ends here")
@_account_option
def end_command(store: Path, session_id: str, abandon: bool, account: Path | None) -> None:
    """End session ID; its principal begins another with the next connection.

    Exit code 1: there is no such session, it has ended, or no plan ends here. 2: it is in use.
    """
    counts = None if account is None else account_in(account)
    with _store_errors(store):
        sessions = Sessions.of(store, account=counts)
        with sessions.get(session_id) as gate:
            try:
                turn = gate.try_turn()
                if turn is None:
                    raise click.ClickException("a call of this session is under way: try again")
                gate.finish(abandon=abandon, turn=turn)
            except Refused as refusal:
                more = "" if abandon else " (--abandon ends it all the same)"
                screen.say(f"{session_id}: {refusal}{more}", err=True)
                raise click.exceptions.Exit(FINDINGS) from None
        sessions.forget(session_id)
    screen.say(f"{session_id} {'is abandoned' if abandon else 'has ended'}")


_PLACE = click.argument("place", metavar="PLACE")
_QUESTION = click.argument("question_id", metavar="ID")
_PERSON = click.option(
    "--who", metavar="NAME", required=True, help="name of the person; the ledger records it"
)
_key_option = digest_option("--key", "key of the session, if PLACE is a ledger without its key")


@contextmanager
def _place_errors(place: str) -> Iterator[None]:
    """Context manager that reports errors of a ledger or a folder, and ends the command."""
    try:
        with _store_errors(Path(place)):
            yield
    except (VerdictError, ValueError) as error:
        screen.say(f"{place}: {error}", err=True)
        raise click.exceptions.Exit(FINDINGS) from None


@command.command("pending")
@_PLACE
@json_option
@click.pass_context
def pending_command(ctx: click.Context, /, place: str, as_json: bool) -> None:
    """List the open questions of PLACE: a ledger, or a folder of ledgers.

    Exit code 1: a ledger cannot be read; the questions of the others are listed.
    """
    found: list[tuple[Path, Asked]] = []
    broken = 0
    with _place_errors(place):
        for at in places_of(place):
            try:
                found.append((at.ledger, questions_in(at)))
            except (Rejected, ResumeError, LedgerError) as error:
                broken += 1
                screen.say(f"{at.ledger}: {error}", err=True)
    now = now_ms()
    listed = [(path, asked, one) for path, asked in found for one in asked.open(now)]
    if as_json:
        from tcc.outputs.verdicts import PendingListOutput, PendingQuestionJson

        screen.print_output(
            PendingListOutput(
                pending=[
                    PendingQuestionJson(
                        id=one.pending.id,
                        who=one.pending.who,
                        text=one.pending.text,
                        expires_ms=one.pending.expires_ms,
                        asked_ms=one.pending.asked_ms,
                        tool=one.pending.tool,
                        call=one.call,
                        arguments=dict(one.pending.arguments),
                        hidden=list(one.pending.hidden),
                        session=asked.session_id,
                        ledger=str(path),
                    )
                    for path, asked, one in listed
                ]
            )
        )
    else:
        for path, asked, one in listed:
            _print_question(path, asked, one)
    ctx.exit(FINDINGS if broken else CLEAN)


def _print_question(path: Path, asked: Asked, one: Listed) -> None:
    question = one.pending
    values = [f"{name}={value}" for name, value in question.arguments.items()]
    values += [f"{name} hidden" for name in question.hidden]
    shown = f" [{', '.join(values)}]" if values else ""
    screen.say(f"{question.id}  {question.who}: {one.call}{shown}")
    screen.print_fields(
        [
            ("statement", question.text),
            ("asked", _time(question.asked_ms)),
            ("open until", _time(question.expires_ms)),
            ("session", f"{asked.session_id} in {path}"),
        ]
    )


@command.command("approve")
@_PLACE
@_QUESTION
@_PERSON
@_key_option
def approve_command(place: str, question_id: str, who: str, key: bytes | None) -> None:
    """Approve the call of question ID in PLACE: it may be made once.

    A gate that has the session open takes the verdict. Exit code 1: there is no such question, or
    it has a verdict or has expired. 2: another process has the lock of the ledger.
    """
    _decide(place, question_id, "approved", who, "", key)


@command.command("deny")
@_PLACE
@_QUESTION
@_PERSON
@click.option(
    "--reason",
    metavar="TEXT",
    required=True,
    help="reason for the agent, if a gate has the session open; no ledger records it",
)
@_key_option
def deny_command(place: str, question_id: str, who: str, reason: str, key: bytes | None) -> None:
    """Deny the call of question ID in PLACE: it is refused until the question expires.

    Exit codes: see `tcc session approve`.
    """
    _decide(place, question_id, "denied", who, reason, key)


def _decide(
    place: str, question_id: str, verdict: Verdict, who: str, reason: str, key: bytes | None
) -> None:
    if not is_name(who):
        raise click.BadParameter("1 to 255 characters that can be printed", param_hint="--who")
    with _place_errors(place):
        found = decide(places_of(place, key), question_id, verdict, who, reason)
    screen.say(f"question {question_id} of {found.ledger} is {verdict}")


def _object(given: str) -> dict[str, Any]:
    """Parse the observed values of --observed, a JSON object."""
    found = answer_in(given)
    if not isinstance(found, dict):
        said = "an object of JSON without duplicate members"
        raise click.BadParameter(said, param_hint="--observed")
    return found


@command.command("show")
@click.argument("ledger", metavar="LEDGER|STORE", type=click.Path(exists=True, path_type=Path))
@click.argument("session_id", metavar="[ID]", required=False)
@input_option("--artifact", "artifact that the session is held to; not needed for a store")
@pin_option
@digest_option("--key", "key of the session's digests")
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    /,
    ledger: Path,
    session_id: str | None,
    artifact: Path | None,
    pin: bytes | None,
    key: bytes | None,
    as_json: bool,
) -> None:
    """Show the session in LEDGER, or session ID of STORE: calls, refusals, what may come next.

    The ledger is validated first; a ledger that does not conform is not shown.
    """
    others: list[Path] = []
    if ledger.is_dir() or session_id is not None:
        if session_id is None:
            raise click.UsageError("a session of a store is named by its ID: see tcc session list")
        store = ledger
        with _store_errors(store):
            named = session_id_of(session_id)
            sessions = Sessions.of(store)
            key = sessions.key_of(named) if key is None else key
            if artifact is None:
                artifact, *others = sessions.artifact_paths(named)
        ledger = store / f"{named}.ledger"
    elif artifact is None:
        raise click.UsageError("Missing option '--artifact'.")
    if not is_regular(ledger):
        raise click.BadParameter(f"{str(ledger)!r} is not a regular file", param_hint="LEDGER")
    require_artifact(artifact)
    require_ledger(ledger)
    pinned = None if pin is None else pin.hex()
    teller = Teller()
    found = validate(ledger, artifact, others=others, pin=pinned, key=key, tell=teller.tell)
    if not isinstance(found, SessionValidation):
        raise click.ClickException(f"{ledger} is no ledger of a session; see tcc validate")
    if found.word not in ("VALID", "INCOMPLETE") or not found.checked or not teller.began:
        said = f"{found.word}: {found.summary}"
        if as_json:
            from tcc.outputs.verdicts import ErrorOutput

            findings: Any = session_document(found)["findings"]
            screen.print_output(ErrorOutput(error=said, findings=list(findings)))
        else:
            screen.bad(said)
        ctx.exit(found.verdict)
    try:
        told = teller.transcript(load(artifact, verify=False))
    except Rejected as refusal:
        raise click.ClickException(f"{artifact}: {refusal}") from None
    if as_json:
        _print_document(told, found)
    else:
        _print(told, found)
    # An unfinished session is not an error.
    ctx.exit(CLEAN)


def _print_document(told: Transcript, found: SessionValidation) -> None:
    from tcc.outputs.verdicts import SessionOutput

    events = [_members(event) for event in told.events]
    header = {name: value for name, value in told.header.items() if name != "kind"}
    output = SessionOutput(
        session=header,
        events=events,
        states=list(told.states),
        may_finish=told.may_finish,
        ended=told.ended,
        allowed_next=list(told.allowed_next),
        **({"learned": dict(told.learned)} if told.learned else {}),
        claim_type=found.claim_type,
        ledger_head=found.head,
        summary=found.summary,
    )
    screen.print_output(output)


_NOTHING: tuple[object, ...] = (None, "", {})


def _members(event: TranscriptEvent) -> dict[str, Any]:
    """Return the JSON object of an event without empty members.

    A refusal always has `statement` and `because`, even if they are empty or None.
    """
    found = event._asdict()
    members = {
        name: value for name, value in found.items() if value is not False and value not in _NOTHING
    }
    if event.kind == "refusal":
        members |= {"statement": event.statement, "because": event.because or None}
    return members


def _print(told: Transcript, found: SessionValidation) -> None:
    header = told.header
    screen.say(f"session {header['session_id']} of {header['grammar']} {header['grammar_version']}")
    fields = [("began", _time(int(str(header["started_ms"])))), ("artifact", header["artifact"])]
    given = told.given
    if given:
        fields.append(("given", ", ".join(f"{name}: {value}" for name, value in given.items())))
    screen.print_fields(fields)
    for event in told.events:
        screen.say(_line(event))
    allowed = [*told.allowed_next[:_MOST_NEXT]]
    if len(told.allowed_next) > _MOST_NEXT:
        allowed.append(f"and {len(told.allowed_next) - _MOST_NEXT} more")
    learned = ", ".join(f"{name}: {value}" for name, value in told.learned.items())
    screen.print_fields(
        [
            *([("learned", learned)] if learned else []),
            ("may be in", _states(told.states)),
            ("may follow", ", ".join(allowed) or "nothing"),
            ("may end", "has ended" if told.ended else "yes" if told.may_finish else "no"),
            ("claim", found.claim_type),
            ("head", found.head),
        ]
    )
    say = screen.doubtful if found.verdict == _INCOMPLETE or not found.claim_upheld else screen.good
    say(f"{found.word}: {found.summary}")


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError):  # a ledger may contain times beyond the year 9999
        return f"{ms} ms since 1970"


def _line(event: TranscriptEvent) -> str:
    way = f"{_states(event.before)} -> {_states(event.after)}"
    told = "".join(f", {name}={value}" for name, value in event.observed.items())
    told += "".join(f", session.{name}={value}" for name, value in event.learned.items())
    if event.kind == "refusal":
        return f"     refused {event.tool}: {event.outcome}, {_reason(event)}"
    opened = "; ".join(f"{name}: {value}" for name, value in event.opened.items())
    given = f" [{opened}]" if opened else ""
    if event.kind == "ask":
        return f"     {event.who} is asked about {event.why}{given}: {_reason(event)}"
    if event.kind == "approval":
        return f"     {event.text} is {event.outcome} by {event.who} at {_time(event.at_ms or 0)}"
    if event.kind == "resolve":
        by = f", says {event.who} at {_time(event.at_ms or 0)}" if event.who else ""
        return f"     {event.seq} was {event.outcome}{told}{by}: {way}"
    if event.kind == "end":
        return f"     end, {event.text}"
    if event.kind in ("budget", "asked"):
        return f"     {event.kind}: {event.text}{_took(event)}"
    took = "" if event.ms is None else f", {event.ms} ms"
    by = f" by {event.model}" if event.model else ""
    came = f"{event.outcome}{told}{took}{_took(event)}"
    at = "" if event.at_ms is None else f" at {_time(event.at_ms)}"
    return f"{event.seq:>4} {event.text}{given}{at}{by}: {came}: {way}"


def _reason(event: TranscriptEvent) -> str:
    """Return why a call was refused: the author's reason, then the statement."""
    made = "; made all the same" if event.made else ""
    return f"{event.because} {event.text}".strip() + made


def _took(event: TranscriptEvent) -> str:
    if not event.took:
        return ""
    units = (("price", "{} cents"), ("latency", "{} ms"), ("epsilon", "epsilon {}"))
    parts = [unit.format(event.took[name]) for name, unit in units if name in event.took]
    return f", took {', '.join(parts)}"


def _states(states: Sequence[int]) -> str:
    return "|".join("nowhere" if state < 0 else str(state) for state in states)
