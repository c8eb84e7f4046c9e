"""Validates a delegated session together with the session of its parent.

Each call of the child is also a call of the parent.  Both ledgers are validated first, with their
common key.  Then each call of the child is looked up in the parent's ledger, by its id there.

Normative text: docs/spec/session.md, section 10.

Cost: both validations, and linear in the calls of both ledgers, which are kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import LedgerReader, Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Core
from tcc_certs.replay.findings import DECLINED, INVALID, VALID, Findings
from tcc_certs.session import validation
from tcc_certs.session.entries import canonical_bytes
from tcc_certs.session.machine import Offer, SessionMachine
from tcc_certs.session.validation import Ledger
from tcc_certs.values.canonical import digest, reference_digest
from tcc_certs.values.declared import FlagType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.places import NONE, State, listed_states


def link(session_id: str, seq: int, attempt: int) -> str:
    """Return the id of a child's call in the parent's ledger.

    Args:
        session_id: the id of the child's session.
        seq: the number of the call in the child's ledger.
        attempt: how many calls with this number the parent has and the child lacks.  This happens
            if the gate was killed between both records, or could not write the child's record.
    """
    return f"{session_id}/{seq}" + (f"/{attempt}" if attempt else "")


Side: TypeAlias = "tuple[Core, Offer, Mapping[str, Json]]"


def same_call(sides: tuple[Side, Side], key: bytes) -> bool:
    """Return whether two records have the same tool and the same arguments.

    A listed value and an open value are the same if their digests are equal.

    Args:
        sides: for each record, the core, the offer, and the recorded open arguments.
        key: the common key of the digests.
    """
    (core, offer, _), (other_core, other, _) = sides
    if core.tools[offer.tool].name != other_core.tools[other.tool].name:
        return False
    first, second = [_values(*side) for side in sides]
    if first.keys() != second.keys():
        return False
    return all(_same(first[name], second[name], key) for name in first)


@dataclass(frozen=True, slots=True)
class _Argument:
    """The state of a listed value, or the digest of an open value."""

    state: State | None
    digest: str = ""


def _values(core: Core, offer: Offer, opened: Mapping[str, Json]) -> dict[str, _Argument]:
    found: dict[str, _Argument] = {}
    listed = iter(offer.values)
    for declared in core.tools[offer.tool].arguments:
        if declared.type is None:
            state = listed_states(declared)[next(listed)]
            if state != NONE:
                found[declared.name] = _Argument(state)
            continue
        entry = opened.get(declared.name)
        if isinstance(entry, dict):
            found[declared.name] = _Argument(None, str(entry.get("digest")))
    return found


def _same(one: _Argument, other: _Argument, key: bytes) -> bool:
    if one.state is not None and other.state is not None:
        return one.state == other.state
    digests = [
        value.digest if value.state is None else digest(key, *canonical_bytes(value.state)).hex()
        for value in (one, other)
    ]
    return digests[0] == digests[1]


# The two ledgers.


@dataclass(slots=True, kw_only=True)
class _Call:
    """A recorded call.

    Attributes:
        core: the core of the artifact under which the call was made.
        answered: whether the agent read the error of a call that failed.
        unforeseen: whether `observed` lacks some of the listed answers.
    """

    core: Core
    offer: Offer
    opened: Mapping[str, Json]
    line: int
    outcome: str = "unknown"
    answered: bool = False
    unforeseen: bool = False
    observed: Mapping[str, Json] = field(default_factory=dict)
    answers: Mapping[str, Json] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Ledger:
    """The calls of a validated ledger.

    Attributes:
        header: the first record.
        named: by the `ref` of a record, the index in `calls`.
    """

    header: Record
    calls: list[_Call] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)


def validate_delegated(
    ledger: Ledger,
    artifact: bytes,
    parent: Ledger,
    parent_artifact: bytes,
    *,
    key: bytes,
    more: Sequence[Ledger] = (),
    parent_more: Sequence[Ledger] = (),
    parent_others: Sequence[bytes] = (),
    pin: str | None = None,
) -> validation.SessionValidation:
    """Validate the ledger of a child together with the ledger of its parent.

    Args:
        ledger, artifact: the ledger and artifact of the child.  Ledgers are iterated twice.
        parent, parent_artifact: the ledger and artifact of the session that the child's header
            names.
        key: the key of both sessions, 32 bytes.
        more, parent_more: the files that continue the ledgers.
        parent_others: further artifacts of the parent, if its policy changed in the session.
        pin: the digest of the child's artifact, hex.

    Returns:
        the validation of the child.  If its ledger holds, findings about the parent are added:
        S501 to S503 at the child's lines, and at line 1 if the parent cannot be validated.
    """
    found = validation.validate(ledger, artifact, more=more, pin=pin, key=key)
    if not _holds(found):
        return found
    above = validation.validate(
        parent, parent_artifact, more=parent_more, others=parent_others, key=key
    )
    findings = Findings()
    try:
        if not _holds(above):
            declines = above.verdict == DECLINED and above.word != "INCOMPLETE"
            code = Code.LIMIT if declines else Code.SESSION_PARENT
            raise Rejected(code, "parent", "a ledger that claims something", above.summary)
        child = _read((ledger, *more), [check(artifact)])
        artifacts = [check(one) for one in (parent_artifact, *parent_others)]
        _compare(child, _read((parent, *parent_more), artifacts), key, findings)
    except Rejected as refusal:
        findings.refuse(refusal, 1)
    if not findings.items:
        added = "each call is a call of its parent's session, too"
        return replace(found, summary=f"{found.summary}; {added}")
    first = findings.items[0]
    word = "invalid" if findings.verdict == INVALID else "declined"
    what = f"line {first.line}, {first.field}: expected {first.expected}, found {first.found}"
    return replace(
        found,
        verdict=findings.verdict,
        claim_type=validation.NO_CLAIM,
        asserted=(),
        findings=(*found.findings, *findings.items),
        summary=f"{word}: {first.code}, {what}",
    )


def _holds(found: validation.SessionValidation) -> bool:
    """Return whether the ledger has a claim; it may lack its end."""
    if found.verdict == VALID:
        return found.claim_type != validation.NO_CLAIM
    return found.word == "INCOMPLETE" and found.claim_type == validation.CONFORMANT_PREFIX


def _read(files: Sequence[Ledger], artifacts: Sequence[CheckedArtifact]) -> _Ledger:
    """Return the header and the calls of a valid ledger.

    Args:
        artifacts: the artifacts that the files name.

    Raises:
        Rejected: D301 there is no record; S202 a call is none of its artifact.
    """
    found: _Ledger | None = None
    line = 0
    for file in files:
        machine = validation.machine_of(validation.named_in(file, artifacts))
        for record in LedgerReader((file,) if isinstance(file, bytes) else iter(file)):
            line += 1
            if found is None:
                found = _Ledger(header=record)
            elif record["kind"] == "call":
                _add(found, machine, record, line)
            elif record["kind"] in ("outcome", "resolve"):
                call = found.calls[size(record, "seq") - 1]
                call.outcome, call.answered = text(record, "outcome"), "answered" in record
                call.unforeseen = "unforeseen" in record
                call.observed = _object(record.get("observed"))
                call.answers = _object(record.get("answers"))
    if found is None:
        raise Rejected(Code.INCOMPLETE, "line", "a session record", "none")
    return found


def _add(ledger: _Ledger, machine: SessionMachine, record: Record, line: int) -> None:
    offer = machine.offer(text(record, "call"))
    if offer is None:
        raise Rejected(Code.SESSION_CALL, "call", "a call of the artifact", record["call"])
    if "ref" in record:
        ledger.named[text(record, "ref")] = len(ledger.calls)
    call = _Call(core=machine.core, offer=offer, opened=_object(record["open"]), line=line)
    ledger.calls.append(call)


def _object(value: Json | None) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _compare(child: _Ledger, parent: _Ledger, key: bytes, findings: Findings) -> None:
    named, expected = child.header.get("parent", "no parent"), parent.header["session_id"]
    if named != expected:
        findings.add(Code.SESSION_PARENT, 1, "parent", expected, named)
        return
    session_id = text(child.header, "session_id")
    last = -1
    for seq, call in enumerate(child.calls, 1):
        places = list(_places(parent, session_id, seq, key))
        _check_unmade(parent, places[:-1], call.line, findings)
        if not places:
            expected = f"call {seq} in the parent's ledger"
            findings.add(Code.SESSION_DELEGATED, call.line, "parent", expected, "none")
            continue
        other = parent.calls[places[-1]]
        where = f"line {other.line} of the parent's ledger"
        sides = (call.core, call.offer, call.opened), (other.core, other.offer, other.opened)
        if not same_call(sides, key):
            what = f"{clip(other.offer.text, 80)} at {where}"
            findings.add(Code.SESSION_DELEGATED, call.line, "call", "the parent's call", what)
        elif places[-1] <= last:
            findings.add(Code.SESSION_DELEGATED, call.line, "parent", "calls in one order", where)
        elif not (_settles(call, other) and _answers_agree(call, other)):
            what = f"{other.outcome} at {where}"
            findings.add(Code.SESSION_SETTLED, call.line, "outcome", call.outcome, what)
        last = max(last, places[-1])
    line = child.calls[-1].line + 1 if child.calls else 2
    after = list(_places(parent, session_id, len(child.calls) + 1, key))
    _check_unmade(parent, after, line, findings)


def _check_unmade(parent: _Ledger, places: Iterable[int], line: int, findings: Findings) -> None:
    """Check that calls that only the parent has were not made, as far as is known."""
    for at in places:
        if parent.calls[at].outcome not in ("unknown", "failed"):
            where = f"line {parent.calls[at].line} of the parent's ledger"
            findings.add(Code.SESSION_DELEGATED, line, "parent", "a call of the child", where)


def _places(parent: _Ledger, session_id: str, seq: int, key: bytes) -> Iterator[int]:
    """Yield the indices of the parent's calls for a call number of the child.

    The last is the real one.
    """
    attempt = 0
    while True:
        at = parent.named.get(reference_digest(key, link(session_id, seq, attempt)).hex())
        if at is None:
            return
        yield at
        attempt += 1


def _settles(call: _Call, other: _Call) -> bool:
    """Return whether both outcomes and listed answers are equal, where both are known."""
    if "unknown" in (call.outcome, other.outcome):
        return True
    mine, theirs = call.observed, other.observed
    if call.outcome == other.outcome and (call.unforeseen or other.unforeseen):
        return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())
    return (call.outcome, call.answered, mine) == (other.outcome, other.answered, theirs)


def _answers_agree(call: _Call, other: _Call) -> bool:
    """Return whether open answers of both, at the same place and type, have equal digests."""
    mine, theirs = [
        {answer.name: answer for answer in made.core.tools[made.offer.tool].answers}
        for made in (call, other)
    ]
    return all(
        _same_digest(call.answers[name], other.answers[name])
        for name in call.answers.keys() & other.answers.keys()
        if mine[name].steps == theirs[name].steps and _alike(mine[name].type, theirs[name].type)
    )


def _alike(one: object, other: object) -> bool:
    """Return whether equal values of two types have equal digests."""
    plain = (TextType, NumberType, FlagType, PathType, UrlType)
    return one == other or (type(one) is type(other) and isinstance(one, plain))


def _same_digest(one: Json, other: Json) -> bool:
    """Return whether two entries have equal digests, or any of them has none."""
    digests = [_object(entry).get("digest") for entry in (one, other)]
    return None in digests or digests[0] == digests[1]
