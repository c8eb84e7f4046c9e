"""The transcript of a session: what happened, where it went, what may follow.

Its records are gone through by the validator's own steps (:mod:`tcc_certs.session`), and each that
passes makes an event.  Whoever shows it has validated the ledger with its key, pin and end.
Cost: that of the steps; what may follow, the edges of the states that may be held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.session.records import REFUSALS
from tcc_certs.session.replay import ReplayedSession
from tcc_certs.session.validation import SessionReplay
from tcc_certs.values.places import State, decimal_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.policy import Policy, policy_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEvent:
    """A record of a session.

    Attributes:
        kind: that of the record; ``call`` stands for a call with its outcome.
        seq: of the call that it is about; None of a refusal and of an end.
        text: the call, the tool that was refused, or how it ended.
        outcome: of a call or what it was resolved to, ``open`` where none was recorded; the code
            of a refusal.
        ms: from the call to its outcome; None where there is none.
        why: of a refusal.
        opened: open arguments: the value where it is shown, else the start of its digest.
        observed: the values that came back; of open answers as of arguments, of a list of digests
            how many elements it has, ``unknown`` of one that is not known.
        before, after: the states that the session may have been in.
        model: that made a call; empty where none was chosen.
        took: what its call, or a search, took: price, latency and epsilon.
        who: of an outcome that was said later, who said it; empty where the record does not say.
        at_ms: when that was, or when a call was decided; None where the record does not say.
        learned: attributes of the session that were not known before.
    """

    kind: str
    seq: int | None
    text: str
    outcome: str
    ms: int | None = None
    why: str = ""
    opened: Mapping[str, str]
    observed: Mapping[str, str]
    before: Sequence[int]
    after: Sequence[int]
    model: str = ""
    took: Mapping[str, str]
    who: str = ""
    at_ms: int | None = None
    learned: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A session as its ledger has it.

    Attributes:
        header: its first record.
        events: the others, in order.
        states: those that it may be in now.
        may_finish, ended: whether it may end here; whether it has.
        allowed_next: canonical texts of the calls that plans allow next.
        learned: what `let` has of it by now: the value where it is known, else the start of its
            digest.
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
        """What the session was given: the value where it is shown, else the start of its digest."""
        return _shown(self.header.get("given", {}))


def transcript_of(artifact: Artifact, records: Iterable[Record]) -> Transcript:
    """The session of a ledger that was validated against the artifact.

    Raises:
        ValueError: there is no record.
        Rejected: a record is none that follows.
    """
    policy = policy_of(artifact)
    teller = _Teller(policy)
    header: Record | None = None
    for record in records:
        header = header or record
        teller.tell(record)
    if header is None:
        raise ValueError("a session has a record")
    teller.leave_open()
    session = teller.session
    over = session.ended or session.lost
    offers = () if over else policy.next_offers(session.course.held)
    return Transcript(
        header=header,
        events=teller.events,
        states=teller.states(),
        may_finish=not session.ended and session.course.may_finish(),
        ended=session.ended,
        allowed_next=[offer.text for offer in offers],
        learned=teller.learned,
    )


class _Teller:
    """Takes the validator through records, and makes events of them."""

    def __init__(self, policy: Policy) -> None:
        self.events: list[TranscriptEvent] = []
        self._replay = SessionReplay(policy.checked(), policy.machine, None)
        self._open: dict[int, tuple[Record, Sequence[int]]] = {}
        self._calls: dict[int, str] = {}  # their texts by number
        self._lets = [one.name for one in policy.core.lets]
        self.learned: dict[str, str] = {}

    @property
    def session(self) -> ReplayedSession:
        """Where it is.

        Raises:
            ValueError: there was no header.
        """
        if self._replay.session is None:
            raise ValueError("a session has a record")
        return self._replay.session

    def states(self) -> Sequence[int]:
        """The states that it may be in, before the first call that is under way."""
        for _, before in self._open.values():
            return before
        course = self.session.course
        return course.machine.shown(course.held)

    def tell(self, record: Record) -> None:
        """Follow one record."""
        kind = str(record["kind"])
        if kind == "session":
            self._replay.step(record, b"")
            return
        if kind == "end":
            self.leave_open()
        elif kind == "resolve" and int(str(record["seq"])) in self._open:
            self._settle(int(str(record["seq"])), "open")
        before = self.states()
        if kind == "call" and self._open:
            before = self.session.course.machine.shown(self.session.course.held)
        self._replay.step(record, b"")
        if kind == "call":
            self._open[int(str(record["seq"]))] = record, before
            self._calls[int(str(record["seq"]))] = str(record["call"])
        elif kind == "outcome":
            self._outcome(record)
        else:
            self._tell(kind, record, before)
        known = self.session.course.attributes if self._lets else {}
        new = {name for name in self._lets if name in known and name not in self.learned}
        if new:
            found = {name: _state_text(known[name]) for name in sorted(new)}
            self.learned |= found
            self.events[-1] = replace(self.events[-1], learned=found)

    def leave_open(self) -> None:
        """A call without an outcome is unknown."""
        for seq in list(self._open):
            self._settle(seq, "open")

    def _tell(self, kind: str, record: Record, before: Sequence[int]) -> None:
        """Of a record that is no call's."""
        code = str(record.get("code", ""))
        match kind:
            case "resolve":
                seq, outcome = int(str(record["seq"])), str(record["outcome"])
                told = _answered(record)
                self._add(kind, seq, self._calls[seq], outcome, before=before, observed=told)
                if "who" in record:
                    who, at_ms = str(record["who"]), int(str(record.get("at_ms", 0)))
                    self.events[-1] = replace(self.events[-1], who=who, at_ms=at_ms)
            case "budget":
                self._add(kind, None, _terms(record), "")
            case "asked":
                self._add(kind, None, "a search asked what calls cost", "", took=_took(record))
            case "refusal":
                why = next((text for known, text in REFUSALS.items() if known == code), "")
                why += "; made all the same" if "made" in record else ""
                self._add(kind, None, str(record["tool"]), code, why=why)
            case _:
                abandoned = record["abandoned"] is True
                self._add("end", None, "abandoned" if abandoned else "where a plan ends", "")

    def _outcome(self, record: Record) -> None:
        outcome, ms = str(record["outcome"]), record["ms"]
        self._settle(
            int(str(record["seq"])),
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
        seq, execute = record["seq"], record.get("execute")
        self._add(
            "call",
            seq if isinstance(seq, int) else None,
            str(record["call"]),
            shown,
            ms=ms,
            before=before,
            opened=_shown(record["open"]),
            observed=told,
            model=str(execute["model_id"]) if isinstance(execute, dict) else "",
            took=took,
        )
        at_ms = record.get("at_ms")
        if isinstance(at_ms, int):
            self.events[-1] = replace(self.events[-1], at_ms=at_ms)

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
    ) -> None:
        states = self.states()
        event = TranscriptEvent(
            kind=kind,
            seq=seq,
            text=text,
            outcome=outcome,
            ms=ms,
            why=why,
            opened=opened or {},
            observed=observed or {},
            before=states if before is None else before,
            after=states,
            model=model,
            took=took or {},
        )
        self.events.append(event)


def _texts(value: Json | None) -> Mapping[str, str]:
    return {name: str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _answered(record: Record) -> Mapping[str, str]:
    """What came back: observed values, and what the ledger has of open answers."""
    return {**_texts(record.get("observed")), **_shown(record.get("answers", {}))}


def _shown(opened: Json) -> Mapping[str, str]:
    """Of each open argument or answer what the ledger shows."""
    found: dict[str, str] = {}
    for name, item in opened.items() if isinstance(opened, dict) else ():
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
    members = value if isinstance(value, dict) else {}
    return {name: str(members[name]) for name in ("price", "latency", "epsilon") if name in members}


def _terms(record: Record) -> str:
    """The caps of a budget."""
    named = {"price_cap": "price", "sla_ms": "latency", "epsilon_cap": "epsilon"}
    caps = [f"{shown} at most {record[name]}" for name, shown in named.items() if name in record]
    account = record.get("account")
    drawn = [f"account {account['id']}"] if isinstance(account, dict) else []
    return ", ".join([*caps, *drawn]) or "no caps"
