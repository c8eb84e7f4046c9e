"""Validates the ledger of a session with its artifact, and derives the claim that it proves.

Normative text: docs/spec/session.md.  The checks, in this order:

1.  The artifact: its certificates, by the kernel.
2.  Each line: canonical JSON that is chained to the previous line.
3.  The members of each record (:mod:`tcc_certs.session.records`).
4.  The header, which names the artifact; then the MAC of each record, if the key is known.
5.  Each record against the earlier records (:mod:`tcc_certs.session.replay`).  This includes the
   values of calls (:mod:`tcc_certs.session.entries`), and each call by the definition of the
   core (:mod:`tcc_certs.policy.meaning`) and the automaton (:mod:`tcc_certs.session.machine`).
6.  The end: the last record, and the claim.

Cost: linear in the ledger, and the decisions of its calls.  If a file names another artifact, the
files before it are read once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import encode, written
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, Line, Record
from tcc_certs.formats.ledger_schema import text
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.kept import kept_policy_of
from tcc_certs.policy.uses import Uses
from tcc_certs.replay.findings import DECLINED, INVALID, VALID, Finding, Findings
from tcc_certs.session import records
from tcc_certs.session.carried import OF_ARTIFACT, Carrier, Reading
from tcc_certs.session.machine import SessionMachine
from tcc_certs.session.replay import ReplayedSession, Statements, Tally
from tcc_certs.values.canonical import RecordMacs

if TYPE_CHECKING:
    from tcc_certs.policy.core import Core
    from tcc_certs.policy.listing import ListedStatement

CONFORMANT = "Conformant"
CONFORMANT_PREFIX = "ConformantPrefix"
NO_CLAIM = "NoClaim"

Tell: TypeAlias = "Callable[[Record, ReplayedSession], None]"
Ledger: TypeAlias = "bytes | Iterable[bytes]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionValidation:
    """The result of :func:`validate`.

    Attributes:
        verdict: 0 valid, 1 invalid, 2 declined or incomplete.
        claim_type: ``Conformant``, ``ConformantPrefix`` or ``NoClaim``.
        asserted: statements that the ledger makes but cannot prove.
        checked: the numbers of calls, outcomes and refusals by kind.  If several artifacts decided
            one after the other, also the number of artifacts.
        findings: in the order of the lines, at most 100.
        head: the chain's head after the verified prefix of the last file, hex.
        summary: the result in plain words.
        lines: the number of lines that were read of each file.  Findings number the lines of all
            files together.
        core: the core of the artifact; None before the first record.
    """

    verdict: int
    claim_type: str
    asserted: tuple[str, ...]
    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    head: str
    summary: str
    lines: tuple[int, ...] = ()
    core: Core | None = field(default=None, repr=False, compare=False)

    @property
    def statements(self) -> tuple[ListedStatement, ...]:
        """The statements that decided each call, with their places; computed at each access."""
        from tcc_certs.policy.listing import listed_statements

        return () if self.core is None else listed_statements(self.core)

    @property
    def claim_upheld(self) -> bool:
        """True if the ledger is valid and has a claim."""
        return self.verdict == VALID and self.claim_type != NO_CLAIM

    @property
    def word(self) -> str:
        """The verdict as a word; INCOMPLETE if the ledger only lacks its end."""
        if self.verdict == DECLINED and any(f.code is Code.INCOMPLETE for f in self.findings):
            return "INCOMPLETE"
        return ("VALID", "INVALID", "DECLINED")[self.verdict]


def validate(
    ledger: Ledger,
    artifact: bytes | CheckedArtifact,
    *,
    more: Sequence[Ledger] = (),
    others: Sequence[bytes | CheckedArtifact] = (),
    pin: str | None = None,
    key: bytes | None = None,
    tell: Tell | None = None,
) -> SessionValidation:
    """Validate the ledger of a session with its artifact.

    Args:
        ledger: the whole file, or chunks of it.  With `others` they are read several times.
        artifact: the artifact that decided the calls of the session.
        more: the files that continue the ledger, in order.  If a file is missing or out of order,
            all files are read once more to explain this.
        others: further artifacts in any order, if the files of the ledger name several.
        pin: the digest that the artifact must have, hex; with `others`, the artifact of the last
            file.
        key: the key of the session, 32 bytes.  With it, digests, idempotency keys and MACs are
            derived.
        tell: a function that is called after each record that does not end the replay.

    Returns:
        a verdict for any bytes.  Only errors of `tell` and of reading chunks are raised.
    """
    findings = Findings()
    files, lines, head = (ledger, *more), list[int](), FIRST_HEAD
    try:
        known = [_checked(artifact, None if others else pin)]
        known += [_checked(one, None) for one in others]
        if pin is not None:
            found = named_in(files[-1], known).file.digest.hex()
            ensure(found == pin, Code.PIN, "artifact", pin, found)
    except Rejected as refusal:
        findings.refuse(refusal, 0)
        return conclude(findings, None, FIRST_HEAD)
    replay = ledger_replay(files, known, key)
    artifacts = 1
    try:
        for number, file in enumerate(files, 1):
            before_it, replay = replay, replay_of(replay, files, number, known, key)
            artifacts += replay is not before_it
            reader = LedgerReader(_chunks(file))
            before = replay.line
            try:
                _read(replay, reader, tell, last=number == len(files))
            finally:
                head = reader.head
                lines.append(replay.line - before)
    except Rejected as refusal:
        if refusal.code is Code.SESSION_CONTINUES and refusal.path == "continues":
            refusal = _misplaced(files, len(lines), refusal)
        replay.findings.refuse(refusal, replay.line)
    result = conclude(replay.findings, replay.session, head, lines)
    if artifacts == 1:
        return result
    return replace(result, checked={**result.checked, "artifacts": artifacts})


def ledger_replay(
    files: Sequence[Ledger], artifacts: Sequence[CheckedArtifact], key: bytes | None
) -> SessionReplay:
    """Return the replay that reads the first file of a ledger.

    Args:
        artifacts: the artifacts of all files.  If the first file names none of them, the first
            artifact reads it.
        key: the key of the session, if it is known.
    """
    found = named_in(files[0], artifacts)
    return SessionReplay(found, machine_of(found), key)


def replay_of(
    replay: SessionReplay,
    files: Sequence[Ledger],
    number: int,
    artifacts: Sequence[CheckedArtifact],
    key: bytes | None,
) -> SessionReplay:
    """Return the replay that reads a file.

    If the file names another known artifact than the previous file, this is a new replay.  It has
    read all earlier files again, and takes over the findings of `replay`.  Otherwise `replay`
    itself is returned.

    Args:
        replay: the replay that read the earlier files; :meth:`SessionReplay.roll` was called after
            each.
        files: all files of the ledger.
        number: the number of the file, from 1.

    Raises:
        Rejected: a record ends the new replay.  S218: the session does not fit the artifact.  S205:
            a constant has different digests.
    """
    if number == 1 or len(artifacts) == 1:
        return replay
    by_digest = {one.file.digest.hex(): one for one in artifacts}
    target = _header_in(files[number - 1])
    found = by_digest.get(str(target.get("artifact")))
    if found is None or found.file.digest == replay.artifact.file.digest:
        return replay
    readings = {
        digest: Reading(machine_of(one), statements_of(one).uses)
        for digest, one in by_digest.items()
    }
    next_one = SessionReplay(found, machine_of(found), key, target=target, earlier=readings.get)
    next_one.follow(files[: number - 1])
    # The previous replay has the findings about earlier records. All others are about the header.
    known, line = replay.findings.items, replay.line + 1
    more = [one for one in next_one.findings.items if one not in known]
    next_one.findings.items[:] = [*known, *[replace(one, line=line) for one in more]]
    return next_one


def _chunks(file: Ledger) -> Iterable[bytes]:
    return (file,) if isinstance(file, bytes) else file


def _header_in(file: Ledger) -> Record:
    """Return the first record of a file; empty if it is no `session` record."""
    with suppress(Rejected, StopIteration):
        record = next(LedgerReader(_chunks(file)).lines()).record
        if records.check_record(record, 1) == "session":
            return record
    return {}


def named_in(file: Ledger, artifacts: Sequence[CheckedArtifact]) -> CheckedArtifact:
    """Return the artifact that the first record of a file names, or the first artifact."""
    named = _header_in(file).get("artifact") if len(artifacts) > 1 else None
    return next((one for one in artifacts if one.file.digest.hex() == named), artifacts[0])


def _misplaced(files: Sequence[Ledger], number: int, refusal: Rejected) -> Rejected:
    """Return the refusal of a file that does not continue the previous file, with the reason.

    Args:
        number: the number of the file, from 1.
    """
    for other, file in enumerate(files, 1):
        reader = LedgerReader(_chunks(file))
        with suppress(Rejected):
            for _ in reader.lines():
                pass
        if reader.records and reader.head.hex() == refusal.found:
            too = f", as file {other + 1} does" if other < number else ""
            why = f"file {number} continues file {other}{too}"
            break
    else:
        why = f"the file that file {number} continues is missing"
    found = f"{refusal.found}: {why}"
    return Rejected(refusal.code, refusal.path, refusal.expected, found)


def _read(replay: SessionReplay, reader: LedgerReader, tell: Tell | None, *, last: bool) -> None:
    """Read the records of a file, and check its end.

    Raises:
        Rejected: a record ends the replay.  D301: the ledger has no end.  S217: the file does not
            end with `roll`, but another file follows.
    """
    for line in reader.unverified():
        previous = reader.head
        body = reader.body(line)
        plain = records.plain_record(body)
        if plain is None:
            record = Line(reader, line, previous, body).record
            replay.next(record, "", previous, body, None)
        else:
            record, rest = plain
            replay.next(record, str(record["kind"]), previous, body, rest)
        if tell is not None and replay.session is not None:
            tell(record, replay.session)
    if replay.rolled and not last and not reader.tail:
        replay.roll(reader.head)
        return
    ended = replay.session is not None and replay.session.ended
    if ended and last and not reader.tail:
        return
    replay.line += 1
    if (ended or replay.rolled) and reader.tail:
        raise Rejected(Code.LEDGER_ORDER, "line", "nothing after the last record", reader.tail[:40])
    known = f"{reader.records} verified records, head {reader.head.hex()}"
    if reader.tail:
        known += f", then {len(reader.tail)} bytes without an LF"
    if not last:
        expected = "no file after the end" if ended else "a roll record, as another file follows"
        raise Rejected(Code.SESSION_CONTINUES, "file", expected, known)
    raise Rejected(Code.INCOMPLETE, "end", "an end record", known)


class SessionReplay:
    """Replays the records of a session one after the other.

    Args:
        statements: the object that decides statements; None: the definition.
        target: the header from which this artifact decides, if earlier files have another artifact.
            Earlier records are carried without a decision (:mod:`tcc_certs.session.carried`).
        earlier: a function from a digest (hex) to an artifact of earlier files; None: not known.

    Attributes:
        artifact: the artifact that reads the records.
        findings: the findings so far.
        session: None before the first record.
        line: the number of the last record, over all files.
        rolled: whether the last record was `roll`.
    """

    def __init__(
        self,
        artifact: CheckedArtifact,
        machine: SessionMachine,
        key: bytes | None,
        statements: Statements | None = None,
        *,
        target: Record | None = None,
        earlier: Callable[[str], Reading | None] = lambda _: None,
    ) -> None:
        self.findings = Findings()
        self.session: ReplayedSession | None = None
        self.line = 0
        self.rolled = False
        self.artifact, self._machine, self._key = artifact, machine, key
        self._statements = statements_of(artifact) if statements is None else statements
        self._mac = None if key is None else RecordMacs(key)
        self._first: Record = {}
        self._roll: str | None = None  # the hash of the roll before the next file, hex
        self._target, self._earlier = target, earlier
        self._carrier: Carrier | None = None

    def roll(self, head: bytes) -> None:
        """Continue the ledger in another file.

        Args:
            head: the hash of the last record, which is a `roll`.
        """
        self.rolled, self._roll = False, head.hex()

    def follow(self, files: Iterable[Ledger]) -> None:
        """Read the files before the next file; the last of them may lack its `roll`.

        Raises:
            Rejected: a record ends the replay.
        """
        for file in files:
            reader = LedgerReader(_chunks(file))
            for line in reader.unverified():
                previous = reader.head
                body = reader.body(line)
                self.step(Line(reader, line, previous, body), previous, body)
            if self.rolled:
                self.roll(reader.head)

    def step(self, record: Record, previous: bytes, body: bytes | None = None) -> Record:
        """Process a record.

        Args:
            record: a record, or a line that is parsed only if its bytes have an unusual form.
            previous: the hash of the previous record in this file.
            body: its canonical bytes without the link, if the caller has them.

        Returns:
            the record.  A record of an earlier artifact is rewritten for this artifact; its kind is
            '' if it has no effect.

        Raises:
            Rejected: the record ends the replay; L101 the line is not canonical.
        """
        plain = records.plain_record(body) if body is not None else None
        if plain is not None:
            record, rest = plain
            return self.next(record, str(record["kind"]), previous, body, rest)
        if isinstance(record, Line):
            record = record.record
        return self.next(record, "", previous, body, None)

    def next(
        self, record: Record, kind: str, previous: bytes, body: bytes | None, rest: bytes | None
    ) -> Record:
        """Process a record, and return the same as :meth:`step`.

        Args:
            kind: the kind of a record whose members were checked; '' if they are to be checked
                here.
            previous: the hash of the previous record in this file.
            body: its canonical bytes without the link, if they are known.
            rest: `body` without the MAC, if it is known.

        Raises:
            Rejected: the record ends the replay.
        """
        self.line += 1
        if self.session is None or self._roll is not None:
            found = record.get("kind")
            ensure(found == "session", Code.LEDGER_ORDER, "kind", "session", found)
            if self.session is None:
                schema = record.get("schema")
                known = schema == records.SCHEMA or not isinstance(schema, str)
                ensure(known, Code.UNKNOWN_VERSION, "schema", records.SCHEMA, schema)
        elif self.session.ended or self.rolled:
            expected = f"nothing after {'end' if self.session.ended else 'roll'}"
            raise Rejected(Code.LEDGER_ORDER, "kind", expected, record.get("kind"))
        kind = kind or records.check_record(record, self.line)
        if self.session is None:
            return self._begin(record, lambda: self._check_mac(record, previous, body, rest))
        if self._mac is not None:
            self._check_mac(record, previous, body, rest)
        if self._roll is not None:
            self._continue(record, self._roll)
            return record
        if kind == "roll":
            self.rolled = True
        elif self._carrier is None:
            self.session.step(kind, record, self.line)
        else:
            return self._carry(self.session, self._carrier, kind, record)
        return record

    def _begin(self, record: Record, check_mac: Callable[[], None]) -> Record:
        """Process the first record of the first file."""
        header, target = record, self._target
        if target is not None:
            reading = Reading(self._machine, self._statements.uses)
            expected = "a session without a parent"
            ensure("parent" not in record, Code.SESSION_CARRIED, "parent", expected, "a parent")
            shown = records.shown_of(record, self._machine.core)
            self._carrier = Carrier(reading, target, shown)
            self._use(self._carrier, record)
            header = {name: value for name, value in target.items() if name != "given"}
            if reading.uses.given:
                header["given"] = self._carrier.given(record.get("given", {}))
        found = records.read_header(header, self.artifact, self._key, self.findings, record)
        check_mac()
        self._first = record
        self.session = ReplayedSession(self._machine, self._statements, found, self.findings)
        self.session.carries = self._carrier is not None
        ensure(
            "continues" not in record, Code.SESSION_CONTINUES, "continues",
            "the first file of the ledger", record.get("continues"),
        )  # fmt: skip
        return header

    def _use(self, carrier: Carrier, header: Record) -> None:
        """Read the next records by the artifact that a header names.

        Raises:
            Rejected: L202: the artifact is not known.
        """
        digest = text(header, "artifact")
        had = self._earlier(digest)
        if had is None:
            expected = "an artifact that is given for this ledger"
            raise Rejected(Code.LEDGER_ARTIFACT, "artifact", expected, digest)
        carrier.use(had, header)

    def _carry(
        self, session: ReplayedSession, carrier: Carrier, kind: str, record: Record
    ) -> Record:
        """Process a record of a file under another artifact.

        Raises:
            Rejected: S218: the session does not fit this artifact.
        """
        try:
            found = carrier.record(kind, record)
            if found is None:
                session.passed_over(kind, record)
                return {"kind": "", "at_ms": record.get("at_ms", "")}
            session.step(kind, found, self.line)
            return found
        except Rejected as refusal:
            if refusal.code is Code.SESSION_CARRIED:
                raise
            expected = f"{refusal.expected} ({refusal.code.value})"
            raise Rejected(Code.SESSION_CARRIED, refusal.path, expected, refusal.found) from refusal

    def _continue(self, record: Record, head: str) -> None:
        """Check the first record of a further file, and choose the artifact for the next records.

        Its members equal the members of the first file, except the MAC and `continues`.  While
        records are carried, members that follow from the artifact may differ, because
        :meth:`_begin` has checked the target's members.  At the target, this artifact begins to
        decide.

        Args:
            head: the hash of the `roll` before it, hex.

        Raises:
            Rejected: S217 a member differs, or the file continues another record.  L104 a call is
                under way at the target.  L202 the artifact is not known.  S205 constants contradict
                each other.
        """
        own = [records.MAC, "continues"]
        if self._carrier is not None and record["artifact"] != self._first["artifact"]:
            own += OF_ARTIFACT
        first, again = [
            {name: value for name, value in one.items() if name not in own}
            for one in (self._first, record)
        ]
        for name in sorted({*first, *again}):
            expected, found = first.get(name, "no member"), again.get(name, "no member")
            if name == "artifact" and found != expected:
                found = f"{found}: the policy changed in the session; name all its artifacts"
            ensure(found == expected, Code.SESSION_CONTINUES, name, expected, found)
        continues = record.get("continues")
        ensure(continues == head, Code.SESSION_CONTINUES, "continues", head, continues)
        self._roll = None
        if self._carrier is None or self.session is None:
            return
        if self._target is not None and continues == self._target.get("continues"):
            under_way = list(self.session.open)
            ensure(not under_way, Code.LEDGER_ORDER, "kind", "no call under way", under_way)
            self.session.carries, self._carrier, self._first = False, None, record
        else:
            self._use(self._carrier, record)

    def _check_mac(
        self, record: Record, previous: bytes, body: bytes | None, rest: bytes | None
    ) -> None:
        """Check the MAC of a record, if the key is known.

        Args:
            body: its canonical bytes without the link, if they are known.
            rest: `body` without the MAC, if it is known.

        Raises:
            Rejected: S205: the MAC is wrong, which ends the replay.
        """
        if self._mac is None:
            return
        found = text(record, records.MAC)
        if rest is None:
            # Quotes are escaped in texts. So these bytes, if they occur once, are the member
            # itself.
            member = b'"mac":"%s"' % found.encode()
            if body is not None and body.count(member) == 1 and member + b"," in body:
                rest = body.replace(member + b",", b"")
            else:
                rest = encode(
                    {name: value for name, value in record.items() if name != records.MAC}
                )
        same = self._mac.same(previous, rest, bytes.fromhex(found))
        expected = "the MAC of this record under the key"
        ensure(same, Code.SESSION_DIGEST, records.MAC, expected, found)


def machine_of(artifact: CheckedArtifact) -> SessionMachine:
    """Return the session machine of an artifact."""
    return SessionMachine(artifact.core, artifact.automaton, artifact.core_calls)


def statements_of(artifact: CheckedArtifact) -> Statements:
    """Return the statements of an artifact, decided by the definition.

    Computed once for each artifact.
    """
    found = artifact.kept.get("session statements")
    if not isinstance(found, Statements):
        policy = kept_policy_of(artifact.core)
        uses = Uses(artifact.core, policy.rules)
        found = Statements(policy=policy, history=policy.history, uses=uses)
        artifact.kept["session statements"] = found
    return found


def _checked(artifact: bytes | CheckedArtifact, pin: str | None) -> CheckedArtifact:
    if isinstance(artifact, bytes):
        return check(artifact, pin=pin)
    return artifact


# The verdict.


def conclude(
    findings: Findings, session: ReplayedSession | None, head: bytes, lines: Sequence[int] = ()
) -> SessionValidation:
    """Return the result for these findings and this session.

    Args:
        head: the chain's head after the verified prefix of the last file.
        lines: the number of lines that were read of each file.
    """
    claim = _claim(findings, session)
    tally = Tally() if session is None else session.tally
    checked = {
        "calls": tally.calls,
        "outcomes": tally.outcomes,
        "refusals": tally.refusals,
        "unknown": 0 if session is None else _unknown(session),
    }
    if tally.unforeseen:
        checked["unforeseen"] = tally.unforeseen
    if tally.asked:
        checked["asked"] = tally.asked
    return SessionValidation(
        verdict=findings.verdict,
        claim_type=claim,
        asserted=() if session is None or claim == NO_CLAIM else tuple(_asserted(session)),
        checked=checked,
        findings=tuple(findings.items),
        head=head.hex(),
        summary=_summary(findings, session, claim),
        lines=tuple(lines),
        core=None if session is None else session.core,
    )


def _unknown(session: ReplayedSession) -> int:
    return session.tally.unknown + len(session.open)


def _claim(findings: Findings, session: ReplayedSession | None) -> str:
    if session is None or session.lost or findings.verdict == INVALID or session.header.shadow:
        return NO_CLAIM
    if findings.verdict == VALID:
        return CONFORMANT_PREFIX if session.abandoned else CONFORMANT
    incomplete = all(item.code is Code.INCOMPLETE for item in findings.items)
    return CONFORMANT_PREFIX if incomplete else NO_CLAIM


def _asserted(session: ReplayedSession) -> Iterator[str]:
    """Yield the statements that the ledger makes but cannot prove."""
    tally, reader, header = session.tally, session.reader, session.header
    if tally.calls:
        yield "every call was recorded, and every outcome and answer is true"
    if tally.failed > tally.answered:
        yield f"{tally.failed - tally.answered} failed calls had no effect"
    if tally.answered:
        yield f"{tally.answered} calls that were answered with an error changed nothing"
    if tally.unforeseen:
        yield f"unknown answers of {tally.unforeseen} calls were listed, or values of their type"
    if tally.resolved:
        yield f"{tally.resolved} outcomes that became known later are true"
    if tally.asked:
        yield (f"{tally.approved} approvals and {tally.denied} denials come from the named persons")
    if tally.refusals:
        yield f"{tally.refusals} refusals had these tools and codes"
    if header.given:
        names = ", ".join([f"session.{written(name)}" for name in sorted(header.given)])
        yield f"the session was given {names}"
    if session.core.passed:
        yield f"passed: {', '.join(session.core.passed)} (unread; the ledger has nothing of it)"
    if tally.calls and session.timed:
        yield "times"
    if session.across.drawn:
        yield (
            f"{session.across.drawn} calls had room under limits across sessions: account "
            f"{session.across.account} shows it (--account)"
        )
    executions = session.makers.executions
    if executions is not None and executions.made:
        yield f"the named models made {executions.made} calls, which took the stated amounts"
    if executions is not None and executions.asked_times:
        yield f"the stated amounts of {executions.asked_times} searches"
    met = dict(reader.met())
    hidden = sorted(name for name, form in met.items() if not form.value)
    for name in hidden:
        yield f"values of {name}, which are not shown, have their type and limits"
    marked = [name for name in hidden if met[name].has_marks]
    if marked:
        yield f"texts of {', '.join(marked)} match patterns as stated"
    if header.key is not None:
        return
    if met:
        yield "digests are those of the values: the key is not known"
    if header.constants:
        yield "digests of constants are those of the constants: the key is not known"
    yield "idempotency keys and MACs come from the holder of the key: it is not known"


def _summary(findings: Findings, session: ReplayedSession | None, claim: str) -> str:
    if findings.verdict == VALID and session is not None:
        return _valid_text(session, claim)
    first = findings.items[0]
    what = f"line {first.line}, {first.field}: expected {first.expected}, found {first.found}"
    if findings.verdict == INVALID:
        return f"invalid ({len(findings.items)} findings); first {first.code}, {what}"
    if any(item.code is Code.INCOMPLETE for item in findings.items):
        if session is None:
            return f"incomplete: there is no whole line that ends in an LF; {first.found}"
        if session.header.shadow:
            return f"incomplete, no claim: {_in_shadow(session)}; {first.found}"
        so_far = "no plan continues after an answer" if session.lost else "it conforms so far"
        return f"incomplete: there is no end record; {so_far}; {first.found}"
    return f"declined: {first.code}, {what}"


def _in_shadow(session: ReplayedSession) -> str:
    return f"a shadow session made {session.tally.shadowed} calls that the policy refuses"


def _valid_text(session: ReplayedSession, claim: str) -> str:
    if session.header.shadow:
        return f"valid, no claim: {_in_shadow(session)}"
    if claim == NO_CLAIM:
        return "valid, no claim: no plan continues after an answer"
    unknown = _unknown(session)
    whatever = f", whatever its {unknown} unknown outcomes were" if unknown else ""
    if claim == CONFORMANT_PREFIX:
        return f"claim upheld: every recorded call was allowed{whatever}; the session was abandoned"
    return (
        "claim upheld: every recorded call was allowed, and the session ended where it may "
        f"finish{whatever}"
    )
