"""A delegated session beside the session of its parent: each call of the one is a call of both.

Normative text: docs/spec/session.md, section 10.  Both ledgers are validated first, with the key
that they have in common; then the child's calls are looked for in the parent's ledger, by the ids
that a gate gives them there.
Cost: that of both validations, and linear in the calls of both ledgers, which are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import LedgerReader, Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay.findings import DECLINED, INVALID, VALID, Findings
from tcc_certs.session import validation
from tcc_certs.session.machine import Offer
from tcc_certs.values.canonical import canonical, digest, json_text, reference_digest
from tcc_certs.values.declared import FlagType, JsonType, NumberType, OpenType, TextType, json_of

PLAIN_ANSWERS = (TextType, NumberType, FlagType)  # whose digests hang on the value alone


def link(session_id: str, seq: int, attempt: int) -> str:
    """The id that a parent's ledger has for a call of a child.

    Args:
        session_id: the child's.
        attempt: how many calls of that number the parent has that the child has no record of:
            its gate was killed between the two records, or its own record could not be written.
    """
    return f"{session_id}/{seq}" + (f"/{attempt}" if attempt else "")


def same_call(
    sides: tuple[tuple[Core, Offer, Mapping[str, Json]], tuple[Core, Offer, Mapping[str, Json]]],
    key: bytes,
) -> bool:
    """Whether two records have one call: its tool, and all of its arguments.

    A value that is listed on one side and open on the other is the same where its digest is.

    Args:
        sides: of each the core, the call without its open arguments, and these as recorded.
        key: of the digests of both.
    """
    (core, offer, _), (other, beside, _) = sides
    if core.tools[offer.tool].name != other.tools[beside.tool].name:
        return False
    first, second = [_values(*side) for side in sides]
    if first.keys() != second.keys():
        return False
    return all(_same(first[name], second[name], key) for name in first)


@dataclass(frozen=True, slots=True)
class _Value:
    """A listed value by its text, or the digest of an open one of a type."""

    text: str
    type: OpenType | None


def _values(core: Core, offer: Offer, opened: Mapping[str, Json]) -> dict[str, _Value]:
    tool, found = core.tools[offer.tool], dict[str, _Value]()
    for parameter, at in zip(tool.parameters, offer.values, strict=True):
        if at is not None and parameter.values[at]:
            found[parameter.name] = _Value(parameter.values[at], None)
    for one in tool.opened:
        entry = opened.get(one.name)
        if isinstance(entry, dict):
            found[one.name] = _Value(str(entry.get("digest")), one.type)
    return found


def _same(one: _Value, other: _Value, key: bytes) -> bool:
    if (one.type is None) == (other.type is None):
        return one.text == other.text
    listed, opened = (one, other) if one.type is None else (other, one)
    value = json_of(listed.text)
    if isinstance(opened.type, JsonType):
        kind, data = b"j", json_text(value)
    else:
        kind, data = canonical(value)
    return digest(key, kind, data).hex() == opened.text


# The two ledgers.


@dataclass(slots=True, kw_only=True)
class _Call:
    offer: Offer
    opened: Mapping[str, Json]
    line: int
    outcome: str = "unknown"
    unforeseen: bool = False  # `observed` is what is known of the answer, and not all of it
    observed: Mapping[str, Json] = field(default_factory=dict)
    answers: Mapping[str, Json] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Ledger:
    """What a validated ledger has of its calls."""

    core: Core
    header: Record
    calls: list[_Call] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)


def validate_delegated(
    ledger: bytes | Iterable[bytes],
    artifact: bytes,
    parent: bytes | Iterable[bytes],
    parent_artifact: bytes,
    *,
    key: bytes,
    pin: str | None = None,
) -> validation.SessionValidation:
    """The validation of a child's ledger, held to that of its parent.

    Args:
        ledger, artifact: the child's.
        parent, parent_artifact: those of the session that its header names.
        key: 32 bytes, of both.
        pin: the digest of the child's artifact, hex.

    Returns:
        that of the child; with S501 to S503 at the child's lines where the parent's ledger does
        not have its calls, and INVALID or DECLINED where the parent's own does not hold.
    """
    found = validation.validate(ledger, artifact, pin=pin, key=key)
    if not _holds(found):
        return found
    above = validation.validate(parent, parent_artifact, key=key)
    findings = Findings()
    try:
        if not _holds(above):
            declines = above.verdict == DECLINED and above.word != "INCOMPLETE"
            code = Code.LIMIT if declines else Code.SESSION_PARENT
            raise Rejected(code, "parent", "a ledger that claims something", above.summary)
        child = _read(ledger, check(artifact))
        _compare(child, _read(parent, check(parent_artifact)), key, findings)
    except Rejected as refusal:
        findings.refuse(refusal, 1)
    if not findings.items:
        more = "each call is one of its parent's session, too"
        return replace(found, summary=f"{found.summary}; {more}")
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
    """A session that has not ended holds as far as it goes."""
    if found.verdict == VALID:
        return found.claim_type != validation.NO_CLAIM
    return found.word == "INCOMPLETE" and found.claim_type == validation.CONFORMANT_PREFIX


def _read(ledger: bytes | Iterable[bytes], artifact: CheckedArtifact) -> _Ledger:
    machine = validation.machine_of(artifact)
    records: Iterator[Record] = iter(
        LedgerReader((ledger,) if isinstance(ledger, bytes) else iter(ledger))
    )
    found = _Ledger(core=artifact.core, header=next(records))
    for line, record in enumerate(records, 2):
        kind = record["kind"]
        if kind == "call":
            offer, opened = machine.offer(text(record, "call")), record["open"]
            if offer is None or not isinstance(opened, dict):
                raise Rejected(Code.SESSION_CALL, "call", "a call of the artifact", record["call"])
            if "ref" in record:
                found.named[text(record, "ref")] = len(found.calls)
            found.calls.append(_Call(offer=offer, opened=opened, line=line))
        elif kind in ("outcome", "resolve"):
            call = found.calls[size(record, "seq") - 1]
            call.outcome, call.unforeseen = text(record, "outcome"), "unforeseen" in record
            observed = record.get("observed")
            call.observed = observed if isinstance(observed, dict) else {}
            answers = record.get("answers")
            call.answers = answers if isinstance(answers, dict) else {}
    return found


def _compare(child: _Ledger, parent: _Ledger, key: bytes, findings: Findings) -> None:
    named, due = child.header.get("parent", "no parent"), parent.header["session_id"]
    if named != due:
        findings.add(Code.SESSION_PARENT, 1, "parent", due, named)
        return
    session_id, last = text(child.header, "session_id"), -1
    for seq, call in enumerate([*child.calls, None], 1):
        places = list(_places(parent, session_id, seq, key))
        made = None if call is None else places[-1] if places else None
        line = child.calls[-1].line + 1 if call is None and child.calls else 2
        line = line if call is None else call.line
        for at in places:
            # What the child has no record of was not permitted.
            if at != made and parent.calls[at].outcome not in ("unknown", "failed"):
                expected, where = "a call of the child", f"line {parent.calls[at].line} of it"
                findings.add(Code.SESSION_DELEGATED, line, "parent", expected, where)
        if call is None:
            return
        if made is None:
            expected = f"call {seq} in the parent's ledger"
            findings.add(Code.SESSION_DELEGATED, line, "parent", expected, "none")
            continue
        beside = parent.calls[made]
        sides = (child.core, call.offer, call.opened), (parent.core, beside.offer, beside.opened)
        if not same_call(sides, key):
            found = f"{clip(beside.offer.text, 80)} at line {beside.line} of it"
            findings.add(Code.SESSION_DELEGATED, line, "call", "the parent's call", found)
        elif made <= last:
            where = f"line {beside.line} of it"
            findings.add(Code.SESSION_DELEGATED, line, "parent", "calls in one order", where)
        elif not (_settles(call, beside) and _answers_agree(child.core, call, parent.core, beside)):
            found = f"{beside.outcome} at line {beside.line} of it"
            findings.add(Code.SESSION_SETTLED, line, "outcome", call.outcome, found)
        last = max(last, made)


def _places(parent: _Ledger, session_id: str, seq: int, key: bytes) -> Iterator[int]:
    """The parent's calls that a child's gate recorded for a number, the one that was made last."""
    attempt = 0
    while True:
        at = parent.named.get(reference_digest(key, link(session_id, seq, attempt)).hex())
        if at is None:
            return
        yield at
        attempt += 1


def _settles(call: _Call, beside: _Call) -> bool:
    """Whether both outcomes may be of one call: what one does not know, the other may."""
    if "unknown" in (call.outcome, beside.outcome):
        return True
    one, other = call.observed, beside.observed
    if call.outcome == beside.outcome and (call.unforeseen or beside.unforeseen):
        return all(one[name] == other[name] for name in one.keys() & other.keys())
    return (call.outcome, one) == (beside.outcome, other)


def _answers_agree(core: Core, call: _Call, other: Core, beside: _Call) -> bool:
    """Whether the open answers that both have are the same, as far as their digests say.

    An answer at another place, or of another type that is written otherwise, is another value.
    """
    mine, theirs = [
        {one.name: one for one in of.tools[made.offer.tool].answers}
        for of, made in ((core, call), (other, beside))
    ]
    return all(
        _one_value(call.answers[name], beside.answers[name])
        for name in call.answers.keys() & beside.answers.keys() & mine.keys() & theirs.keys()
        if mine[name].at == theirs[name].at and _alike(mine[name].type, theirs[name].type)
    )


def _alike(one: object, other: object) -> bool:
    """Whether the same values of two types have the same digests."""
    return one == other or (type(one) is type(other) and isinstance(one, PLAIN_ANSWERS))


def _one_value(one: Json, other: Json) -> bool:
    """Whether two entries may stand for one value: what one has not is not compared."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return True
    return all(
        one[name] == other[name] for name in ("digest", "of") if name in one and name in other
    )
