"""The transcript of a session: its events, its states, and the calls that may follow.

The validator (:func:`tcc_certs.session.validate`) passes each valid record to a :class:`Teller`,
which turns it into an event.  Check the verdict of the validation before using a transcript.
Cost: constant for a record.  The calls that may follow take the edges of the current states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.nodes import statement_text
from tcc_certs.session.machine import Positions
from tcc_certs.session.records import REFUSALS
from tcc_certs.session.replay import ReplayedSession
from tcc_certs.values.places import UNKNOWN, Digested, State, decimal_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.policy import policy_of

_NOTHING: Final[Mapping[str, str]] = {}  # shared by events and never changed


class TranscriptEvent(NamedTuple):
    """A record of a session.

    Attributes:
        kind: the kind of the record; ``call`` combines a call and its outcome.
        seq: the number of the call; None for a refusal and an end.
        text: the call, the statement that refuses or asks, or how the session ended.  For a refusal
            without a statement, the meaning of its code.
        outcome: the outcome of a call or a `resolve`, ``open`` if none was recorded; the code of a
            refusal; the verdict of an approval.
        opened: the open arguments: the value if the ledger shows it, else the start of its digest.
        observed: the returned values, shown like open arguments.  A list of digests is shown by its
            number of elements, an unknown value as ``unknown``.
        before, after: the states that the session may have been in.
        took: the price, latency and epsilon that the call or a search took.
        ms: milliseconds from the call to its outcome; None if there is no outcome.
        why: the meaning of a refusal's code; for a question, the call.
        made: for a refusal in a shadow session, whether the call was made.
        tool: the tool of a refusal or a question.
        statement: the number of the statement that refuses or asks, or None.
        because: the reason that the author of that statement gives.
        model: the model that made the call; '' if none was chosen.
        who: the person who reported a later outcome or decided; '' if the record has none.
        at_ms: the time of that, or of the decision about a call; None if the record has none.
        learned: the attributes of the session that this event made known.
    """

    kind: str
    seq: int | None
    text: str
    outcome: str
    opened: Mapping[str, str]
    observed: Mapping[str, str]
    before: Sequence[int]
    after: Sequence[int]
    took: Mapping[str, str]
    ms: int | None = None
    why: str = ""
    made: bool = False
    tool: str = ""
    statement: int | None = None
    because: str = ""
    model: str = ""
    who: str = ""
    at_ms: int | None = None
    learned: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A session as its ledger records it.

    Attributes:
        header: the first record.
        events: the events of the other records, in order.
        states: the states that the session may be in now.
        may_finish: whether the session may end here.
        ended: whether the session has ended.
        allowed_next: canonical texts of the calls that plans allow next.
        learned: the attributes that the session has learned: the value if it is known, else the
            start of its digest.
    """

    header: Record
    events: Sequence[TranscriptEvent]
    states: Sequence[int]
    may_finish: bool
    ended: bool
    allowed_next: Sequence[str]
    learned: Mapping[str, str]

    @property
    def given(self) -> Mapping[str, str]:
        """The attributes given at the start: values if shown, else the start of their digests."""
        return _shown(self.header.get("given", {}))


class Teller:
    """Turns the records of a session into events, one after the other, as they are validated."""

    def __init__(self) -> None:
        self._header: Record | None = None
        self._events: list[TranscriptEvent] = []
        self._session: ReplayedSession | None = None
        self._held: Positions | None = None  # after the last record, without a call under way
        self._states: Sequence[int] = ()  # the same as the numbers in records
        self._parallel = False
        self._open: dict[int, tuple[Record, Sequence[int]]] = {}
        self._calls: dict[int, str] = {}  # the texts of calls, by number
        self._attributes: Sequence[str] = ()  # the attributes that the session learns
        self._learned: dict[str, str] = {}
        self._asked: dict[str, Record] = {}  # the questions, by id

    @property
    def began(self) -> bool:
        """Return whether a record was added, that is, whether the ledger has a complete line."""
        return self._header is not None and self._session is not None

    def transcript(self, artifact: Artifact) -> Transcript:
        """Return the transcript of the records so far.

        Args:
            artifact: the artifact that the ledger was validated against.

        Raises:
            ValueError: no record was added.
        """
        session = self._session
        if self._header is None or session is None:
            raise ValueError("a session has a record")
        self._leave(list(self._open))
        over = session.ended or session.lost
        offers = () if over else policy_of(artifact).next_offers(session.course.held)
        return Transcript(
            header=self._header,
            events=self._events,
            states=self._now(),
            may_finish=not session.ended and session.course.may_finish(session.last_ms),
            ended=session.ended,
            allowed_next=[offer.text for offer in offers],
            learned=self._learned,
        )

    def _now(self) -> Sequence[int]:
        """Return the states before the first call that is under way, else the current states."""
        for _, before in self._open.values():
            return before
        return self._states

    def tell(self, record: Record, session: ReplayedSession) -> None:
        """Add a record, and the session after it."""
        kind = record["kind"]
        if kind == "call":
            seq = _seq(record)
            self._open[seq] = record, self._states
            self._calls[seq] = str(record["call"])
            # Computed now only if another call may begin before this one ends.
            if self._parallel:
                self._look(session)
            return
        if kind == "session" and self._header is None:
            self._header, self._session = record, session
            given = session.core.given
            self._attributes = [one.name for one in given if isinstance(one, Learned)]
            self._parallel = any(tool.parallel for tool in session.core.tools)
        elif kind == "end":
            self._leave(list(self._open))
        elif kind == "resolve":
            self._leave([_seq(record)])
        before = self._now()
        self._look(session)
        if kind == "outcome":
            self._outcome(record)
        elif kind not in ("session", "roll"):
            self._tell(str(kind), record, before, session)
        if self._attributes:
            self._learn(session)

    def _look(self, session: ReplayedSession) -> None:
        held = session.course.held
        if held is not self._held:
            self._held, self._states = held, session.machine.shown(held)

    def _leave(self, seqs: Sequence[int]) -> None:
        """Add the events of calls that have no outcome (yet); their outcome is ``open``."""
        left = [seq for seq in seqs if seq in self._open]
        if left and not self._parallel:
            self._states = self._unknown(self._open[left[0]][0])
        for seq in left:
            self._settle(seq, "open")

    def _unknown(self, call: Record) -> Sequence[int]:
        """Return the states after the only call under way, for every outcome that it may have."""
        if self._session is None or self._held is None:
            return self._states
        machine = self._session.machine
        offer = machine.offer(str(call["call"]))
        return self._states if offer is None else machine.shown(machine.unknown(self._held, offer))

    def _learn(self, session: ReplayedSession) -> None:
        found = {}
        for name in self._attributes:
            state = UNKNOWN if name in self._learned else session.course.history.attribute(name)
            if state != UNKNOWN:
                found[name] = _state_text(state)
        if found:
            self._learned |= found
            if self._events:
                self._events[-1] = self._events[-1]._replace(learned=found)

    def _tell(
        self, kind: str, record: Record, before: Sequence[int], session: ReplayedSession
    ) -> None:
        """Add the event of a record that is neither a call nor its outcome."""
        code = str(record.get("code", ""))
        match kind:
            case "resolve":
                seq, outcome = _seq(record), str(record["outcome"])
                said = "who" in record
                self._add(
                    kind,
                    seq,
                    self._calls[seq],
                    outcome,
                    before=before,
                    observed=_answered(record),
                    who=str(record["who"]) if said else "",
                    at_ms=int(str(record.get("at_ms", 0))) if said else None,
                )
            case "budget":
                self._add(kind, None, _terms(record), "")
            case "asked":
                self._add(kind, None, "a search asked what calls cost", "", took=_took(record))
            case "refusal":
                why = next((text for known, text in REFUSALS.items() if known == code), "")
                self._state(kind, record, code, why, session.core)
            case "ask":
                self._asked[str(record["id"])] = record
                self._state(kind, record, "", str(record["call"]), session.core)
            case "approval":
                asked = self._asked[str(record["id"])]
                text, at_ms = str(asked["call"]), int(str(record["at_ms"]))
                verdict, who = str(record["verdict"]), str(record["who"])
                self._add(kind, None, text, verdict, who=who, at_ms=at_ms)
            case _:
                abandoned = record["abandoned"] is True
                self._add("end", None, "abandoned" if abandoned else "where a plan ends", "")

    def _state(self, kind: str, record: Record, code: str, why: str, core: Core) -> None:
        """Add the event of a refusal or a question, with the text of its statement."""
        tool, number = str(record["tool"]), record.get("statement")
        statement = core.statements[number] if isinstance(number, int) else None
        text = why if statement is None else statement_text(statement)
        because = "" if statement is None else statement.because or ""
        opened = _shown(record.get("open"))
        self._add(kind, None, text, code, why=why, who=str(record.get("who", "")), opened=opened)
        self._events[-1] = self._events[-1]._replace(
            tool=tool,
            statement=number if isinstance(number, int) else None,
            because=because,
            made="made" in record,
        )

    def _outcome(self, record: Record) -> None:
        outcome, ms = str(record["outcome"]), record["ms"]
        self._settle(
            _seq(record),
            f"{outcome}, unforeseen" if record.get("unforeseen") is True else outcome,
            ms if isinstance(ms, int) else None,
            _answered(record),
            _took(record.get("took")),
        )

    def _settle(
        self,
        number: int,
        shown: str,
        ms: int | None = None,
        told: Mapping[str, str] | None = None,
        took: Mapping[str, str] | None = None,
    ) -> None:
        if number not in self._open:
            return
        record, before = self._open.pop(number)
        execute, at_ms = record.get("execute"), record.get("at_ms")
        self._add(
            "call",
            number,
            str(record["call"]),
            shown,
            ms=ms,
            before=before,
            opened=_shown(record["open"]),
            observed=told,
            model=str(execute["model_id"]) if isinstance(execute, dict) else "",
            took=took,
            at_ms=at_ms if isinstance(at_ms, int) else None,
        )

    def _add(
        self,
        kind: str,
        seq: int | None,
        text: str,
        outcome: str,
        *,
        ms: int | None = None,
        why: str = "",
        before: Sequence[int] | None = None,
        opened: Mapping[str, str] | None = None,
        observed: Mapping[str, str] | None = None,
        model: str = "",
        took: Mapping[str, str] | None = None,
        who: str = "",
        at_ms: int | None = None,
    ) -> None:
        states = self._now()
        event = TranscriptEvent(
            kind=kind,
            seq=seq,
            text=text,
            outcome=outcome,
            ms=ms,
            why=why,
            opened=opened or _NOTHING,
            observed=observed or _NOTHING,
            before=states if before is None else before,
            after=states,
            model=model,
            took=took or _NOTHING,
            who=who,
            at_ms=at_ms,
        )
        self._events.append(event)


def _seq(record: Record) -> int:
    found = record["seq"]
    return found if isinstance(found, int) else 0


def _texts(value: Json | None) -> Mapping[str, str]:
    return {name: str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _answered(record: Record) -> Mapping[str, str]:
    """Return the observed values, and the open answers as far as the ledger shows them."""
    observed, answers = record.get("observed"), record.get("answers")
    if observed is None and answers is None:
        return _NOTHING
    return {**_texts(observed), **_shown(answers)}


def _shown(opened: Json | None) -> Mapping[str, str]:
    """Return each open argument or answer as far as the ledger shows it."""
    if not opened or not isinstance(opened, dict):
        return _NOTHING
    found: dict[str, str] = {}
    for name, item in opened.items():
        members = item if isinstance(item, dict) else {}
        elements = members.get("of")
        if "value" in members:
            found[name] = str(members["value"])
        elif "digest" in members:
            found[name] = f"#{str(members['digest'])[:12]}"
        elif isinstance(elements, list):
            found[name] = f"{len(elements)} elements"
        else:
            found[name] = "unknown"
    return found


def _state_text(state: State) -> str:
    kind, value = state
    match kind:
        case "#":
            return f"#{value.hex()[:12]}"
        case "d" if isinstance(value, Digested):
            if value.value is not None:
                return _state_text(value.value)
            return f"#{value.digest[:12]}" if value.digest else "not shown"
        case "l":
            return f"{len(value)} elements"
        case "t":
            return f"{value} ms since 1970"
        case "j":
            return str(value.decode())
        case "b":
            return "true" if value else "false"
        case "*":
            return "not listed"
        case "n" if isinstance(value, Fraction):
            return decimal_of(value)
    return str(value)


def _took(value: Json | None) -> Mapping[str, str]:
    if not isinstance(value, dict):
        return _NOTHING
    return {name: str(value[name]) for name in ("price", "latency", "epsilon") if name in value}


def _terms(record: Record) -> str:
    """Return the caps and the account of a budget as text."""
    named = {"price_cap": "price", "sla_ms": "latency", "epsilon_cap": "epsilon"}
    caps = [f"{shown} at most {record[name]}" for name, shown in named.items() if name in record]
    account = record.get("account")
    drawn = [f"account {account['id']}"] if isinstance(account, dict) else []
    return ", ".join([*caps, *drawn]) or "no caps"
