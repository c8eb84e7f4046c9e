"""A session told from its ledger: what happened, where it went, what may follow.

The ledger is taken at its word: whoever shows it has validated it (:mod:`tcc_certs.session`).
Cost: linear in the ledger; what may follow, the edges of the states that may be held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.session.refusals import REFUSALS
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.policy import Policy, policy_of
from tcc_runtime.gate.session import Made, Outcome, Session
from tcc_runtime.gate.tools import Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
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
        observed: the values that came back.
        before, after: the states that the session may have been in.
        model: that made a call; empty where none was chosen.
        took: what its call, or a search, took: price, latency and epsilon.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """A session as its ledger has it.

    Attributes:
        header: its first record.
        events: the others, in order.
        states: those that it may be in now.
        may_finish, ended: whether it may end here; whether it has.
        allowed_next: canonical texts of the calls that plans allow next.
    """

    header: Record
    events: Sequence[Event]
    states: Sequence[int]
    may_finish: bool
    ended: bool
    allowed_next: Sequence[str]


def retell(artifact: Artifact, records: Iterable[Record]) -> Retold:
    """The session of a ledger that was validated against the artifact.

    Raises:
        ValueError: there is no record.
    """
    policy = policy_of(artifact)
    teller = _Teller(policy)
    header: Record | None = None
    for record in records:
        if header is None:
            header = record
        else:
            teller.tell(record)
    if header is None:
        raise ValueError("a session has a record")
    teller.leave_open()
    session = teller.session
    over = session.ended or session.unforeseen
    groups = () if over else policy.next_groups(session.places)
    return Retold(
        header=header,
        events=teller.events,
        states=session.states(),
        may_finish=not session.ended and session.may_finish(),
        ended=session.ended,
        allowed_next=[group.text for group in groups],
    )


class _Teller:
    """Follows records, and makes events of them."""

    def __init__(self, policy: Policy) -> None:
        self.session = Session(policy)
        self.events: list[Event] = []
        self._policy = policy
        self._call: tuple[Record, Sequence[int]] | None = None

    def tell(self, record: Record) -> None:
        """Follow one record."""
        kind, session = record["kind"], self.session
        if kind == "call":
            self.leave_open()
            self._call = record, session.states()
            group = self._policy.by_text(str(record["call"]))
            if group is None:
                raise ValueError("a call of the grammar")
            session.begin(group, None)
        elif kind == "outcome":
            self._outcome(record)
        elif kind == "resolve":
            self._resolve(record)
        elif kind == "budget":
            self._add("budget", None, _terms(record), "")
        elif kind == "asked":
            self._add("asked", None, "a search asked what calls cost", "", took=_took(record))
        elif kind == "refusal":
            code = str(record["code"])
            why = next((text for known, text in REFUSALS.items() if known == code), "")
            self._add("refusal", None, str(record["tool"]), code, why=why)
        else:
            self.leave_open()
            session.ended = True
            ending = "abandoned" if record["abandoned"] is True else "where a plan ends"
            self._add("end", None, ending, "")

    def leave_open(self) -> None:
        """A call without an outcome is unknown."""
        if self._call is not None:
            self._settle("unknown", "open", None, None, False, {}, {})

    def _outcome(self, record: Record) -> None:
        outcome = _outcome_of(record)
        made, told = self.session.made[-1], _texts(record.get("observed"))
        unforeseen = record.get("unforeseen") is True
        indices = self._indices(made, told) if outcome == "done" and not unforeseen else None
        ms = record["ms"]
        shown = f"{outcome}, unforeseen" if unforeseen else str(outcome)
        after = ms if isinstance(ms, int) else None
        self._settle(outcome, shown, after, indices, unforeseen, told, _took(record.get("took")))

    def _settle(
        self,
        outcome: Outcome,
        shown: str,
        ms: int | None,
        indices: Indices | None,
        unforeseen: bool,
        told: Mapping[str, str],
        took: Mapping[str, str],
    ) -> None:
        if self._call is None:
            return
        record, before = self._call
        self._call = None
        self.session.settle(outcome, indices, unforeseen)
        seq, opened, execute = record["seq"], record["open"], record.get("execute")
        self._add(
            "call",
            seq if isinstance(seq, int) else None,
            str(record["call"]),
            shown,
            ms=ms,
            before=before,
            opened=_shown(opened),
            observed=told,
            model=str(execute["model_id"]) if isinstance(execute, dict) else "",
            took=took,
        )

    def _resolve(self, record: Record) -> None:
        seq, told = record["seq"], _texts(record.get("observed"))
        number = seq if isinstance(seq, int) else len(self.session.made)
        made = self.session.made[number - 1]
        outcome, before = _outcome_of(record), self.session.states()
        indices = self._indices(made, told) if outcome == "done" else None
        self.session.resolve(number, outcome, indices)
        self._add("resolve", number, made.group.text, outcome, before=before, observed=told)

    def _indices(self, made: Made, told: Mapping[str, str]) -> Indices:
        table = self._policy.table(made.group.tool)
        return tuple(param.values.index(told[param.name]) for param in table.observed)

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
        states = self.session.states()
        event = Event(
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


def _outcome_of(record: Record) -> Outcome:
    outcome = record["outcome"]
    return "done" if outcome == "done" else "failed" if outcome == "failed" else "unknown"


def _texts(value: Json | None) -> Mapping[str, str]:
    return {name: str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _shown(opened: Json) -> Mapping[str, str]:
    """Of each open argument what the ledger shows."""
    found: dict[str, str] = {}
    for name, item in opened.items() if isinstance(opened, dict) else ():
        members = item if isinstance(item, dict) else {}
        digest = f"#{str(members.get('digest', ''))[:12]}"
        found[name] = str(members.get("value", digest))
    return found


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
