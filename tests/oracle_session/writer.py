"""A writer of session ledgers for tests.

It decides calls as a gate does, by the definition and over values.  Entries come from
:mod:`tcc_certs.session.entries`.  The header, the chain, keys and MACs are written here once more,
by the text of docs/spec/session.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from blake3 import blake3

from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.course import answer_states, argument_states, given_states
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, Call, ListHistory
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.uses import Uses
from tcc_certs.race.digest import uuid7
from tcc_certs.session.entries import Entries, EntryWriter, listed_text
from tcc_certs.session.machine import Course, Decision, Offer
from tcc_certs.session.validation import machine_of
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

KEY = bytes(range(32))
NONCE = bytes.fromhex("5e" * 16)
CONTEXT = "tcc.session/2 digest key"
RECORDS = "tcc.session/2 record key"
START_MS = 1_700_000_000_000
_OUTCOMES = {DONE: "done", FAILED: "failed", ANSWERED: "failed", LOST: "unknown"}


@cache
def artifact_of(text: str) -> CheckedArtifact:
    """The artifact of a grammar, for a gate."""
    compiled = compile_text(text, Options(purpose="gate"))
    assert compiled.artifact is not None, compiled.diagnostics
    return check(compiled.artifact)


class SessionWriter:
    """Writes one session, a record at a time.

    Attributes:
        records: of the current file; files: the records of the files before it.
        course: the session over values.
        now: the time of the next record that has one.
    """

    def __init__(
        self,
        artifact: CheckedArtifact,
        *,
        given: Mapping[str, Any] | None = None,
        show: Sequence[str] = (),
        key: bytes = KEY,
        started_ms: int = START_MS,
        **more: Any,
    ) -> None:
        self.artifact, self.key = artifact, key
        self.core, policy = artifact.core, artifact.policy
        uses = Uses(self.core, policy.rules)
        self.timed = uses.timed
        shown = frozenset([(name.split(".")[0], name.split(".")[1]) for name in show])
        self.entries = Entries(self.core, uses, shown)
        self.writer = EntryWriter(self.entries, key)
        states = given_states(self.core, given or {})
        self.course = Course(machine_of(artifact), policy, ListHistory(self.core, states))
        self.now = started_ms
        manifest = artifact.file.manifest
        header: dict[str, Any] = {
            "kind": "session",
            "schema": "tcc.session/2",
            "started_ms": started_ms,
            "nonce": NONCE.hex(),
            "artifact": artifact.file.digest.hex(),
            "grammar": manifest.grammar,
            "grammar_version": manifest.version,
            "root_state": manifest.root.hex(),
            "statements": [statement_text(one) for one in self.core.statements],
            "arguments": {"show": sorted(show)},
            "key_commitment": blake3(key, derive_key_context=CONTEXT).hexdigest(),
            **more,
        }
        if self.entries.constants:
            header["constants"] = self.writer.constants()
        if states:
            header["given"] = self.writer.given(states)
        self.files: list[list[dict[str, Any]]] = []
        self.records: list[dict[str, Any]] = [named(header)]
        self.open: list[int] = []

    # Calls.

    def check(self, tool: str, **arguments: Any) -> Decision:
        """The decision on a call."""
        return self._decided(tool, arguments)[0]

    def call(
        self, tool: str, *, ref: str | None = None, approvals: Sequence[str] = (),
        across: Mapping[str, Any] | None = None, force: bool = False, **arguments: Any,
    ) -> int:  # fmt: skip
        """A call that is allowed; its number.

        Args:
            force: whether a call that is refused is recorded all the same.
        """
        decision, call, offer = self._decided(tool, arguments)
        assert force or decision.refused is None, decision
        seq = call.at + 1
        record = self._timed(
            {
                "kind": "call",
                "seq": seq,
                "call": offer.text,
                "open": self.writer.arguments(tool, call.arguments),
                "states": self.course.states(),
                "key": self.key_of(seq),
            }
        )
        if ref is not None:
            record["ref"] = blake3(b"ref" + ref.encode(), key=self.key).hexdigest()
        if approvals:
            record["approvals"] = list(approvals)
        if across is not None:
            record["across"] = dict(across)
        self.records.append(record)
        self.course.begin(call, offer)
        self.open.append(seq)
        return seq

    def made(self, tool: str, answer: Any = None, **arguments: Any) -> int:
        """A call that is done."""
        seq = self.call(tool, **arguments)
        self.done(answer)
        return seq

    def _decided(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Decision, Call, Offer]:
        states = argument_states(self.core.tool_of[tool], arguments)
        call = self.course.call(tool, states, self.now if self.timed else 0)
        machine = self.course.machine
        offer = machine.offer_for(machine.tools[tool], states)
        assert offer is not None
        return self.course.decide(call, offer), call, offer

    def key_of(self, seq: int) -> str:
        """The idempotency key of a call."""
        session = bytes.fromhex(self.records[0]["session_id"].replace("-", ""))
        data = b"key" + session + seq.to_bytes(8, "little")
        return blake3(data, key=self.key).hexdigest()[:32]

    # Outcomes.

    def done(self, answer: Any = None, seq: int | None = None) -> None:
        """The outcome of a call, the last one under way by default."""
        record = self._outcome(DONE, seq, answer)
        if answer is not None:
            record["result"] = blake3(b"j" + encode(answer), key=self.key).hexdigest()

    def failed(self, seq: int | None = None, *, answered: bool = False) -> None:
        """A call had no effect."""
        record = self._outcome(ANSWERED if answered else FAILED, seq)
        if answered:
            record["answered"] = True

    def unknown(self, seq: int | None = None) -> None:
        """The outcome of a call is unknown."""
        self._outcome(LOST, seq)

    def _outcome(self, outcome: str, seq: int | None, answer: Any = None) -> dict[str, Any]:
        seq = self.open[-1] if seq is None else seq
        self.open.remove(seq)
        record = self._timed(
            {"kind": "outcome", "seq": seq, "outcome": _OUTCOMES[outcome], "ms": 12}
        )
        states = self._answers(record, seq, outcome, answer)
        self.records.append(record)
        self.course.settle(seq, outcome, states)
        return record

    def resolve(self, seq: int, outcome: str, answer: Any = None, who: str | None = None) -> None:
        """An unknown outcome becomes known."""
        record: dict[str, Any] = {"kind": "resolve", "seq": seq, "outcome": _OUTCOMES[outcome]}
        if outcome == ANSWERED:
            record["answered"] = True
        if who is not None:
            record |= {"who": who, "at_ms": self.now}
        record = self._timed(record)
        states = self._answers(record, seq, outcome, answer)
        self.records.append(record)
        self.course.resolve(seq, outcome, states)

    def _answers(
        self, record: dict[str, Any], seq: int, outcome: str, answer: Any
    ) -> dict[str, State]:
        """Add the answers of a call that is done, and return their states."""
        if outcome != DONE:
            return {}
        tool = self.core.tool_of[self.course.history.calls[seq - 1].tool]
        states = answer_states(tool, answer)
        listed = [field for field in tool.answers if field.type is None]
        if listed:
            record["observed"] = {
                field.name: "" if state == NONE else listed_text(field.values, state)
                for field in listed
                if (state := states[field.name]) != UNKNOWN
            }
            if len(record["observed"]) < len(listed):
                record["unforeseen"] = True
        entries, seen = self.writer.answers(tool.name, states)
        if entries:
            record["answers"] = entries
        return seen

    # Other records.

    def refusal(self, tool: str, code: str, **more: Any) -> None:
        """A call that was not made."""
        self.records.append({"kind": "refusal", "tool": tool, "code": code, **more})

    def ask(self, tool: str, question: str, statement: int, **arguments: Any) -> str:
        """A question about a call; its id."""
        _, call, offer = self._decided(tool, arguments)
        rule = self.course.policy.rules[statement]
        term = 7 * 86_400_000 if rule.within is None else rule.within
        self.records.append(
            {
                "kind": "ask",
                "id": question,
                "statement": statement,
                "who": rule.who,
                "tool": tool,
                "call": offer.text,
                "open": self.writer.arguments(tool, call.arguments),
                "at_ms": self.now,
                "expires_ms": self.now + term,
            }
        )
        return question

    def approval(self, question: str, verdict: str = "approved", who: str = "ann") -> None:
        """A verdict."""
        self.records.append(
            {"kind": "approval", "id": question, "verdict": verdict, "who": who, "at_ms": self.now}
        )

    def end(self, *, abandoned: bool = False) -> None:
        """The end."""
        self.records.append(self._timed({"kind": "end", "abandoned": abandoned}))

    def roll(self) -> None:
        """Continue in another file."""
        self.records.append({"kind": "roll"})
        head = bytes.fromhex(self.lines(self.records)[-1][1])
        self.files.append(self.records)
        self.records = [{**self.files[0][0], "continues": head.hex()}]

    def _timed(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "at_ms": self.now} if self.timed else record

    # Bytes.

    def ledger(self) -> bytes:
        """The bytes of the last file."""
        return sealed(self.records, key=self.key)

    def ledgers(self) -> list[bytes]:
        """The bytes of all files."""
        return [sealed(records, key=self.key) for records in [*self.files, self.records]]

    def lines(self, records: Sequence[Mapping[str, Any]]) -> list[tuple[bytes, str]]:
        """The lines of records, each with its hash."""
        return sealed_lines(records, key=self.key)


def named(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header with the id that follows from it."""
    left_out = ("session_id", "continues", "mac", "~")
    body = {name: value for name, value in header.items() if name not in left_out}
    return {**header, "session_id": uuid7(body["started_ms"], blake3(encode(body)).digest())}


def sealed(
    records: Sequence[Mapping[str, Any]], head: bytes = FIRST_HEAD, key: bytes = KEY
) -> bytes:
    """Records as chained lines; a record without a MAC gets one."""
    return b"".join([line for line, _ in sealed_lines(records, head, key)])


def sealed_lines(
    records: Sequence[Mapping[str, Any]], head: bytes = FIRST_HEAD, key: bytes = KEY
) -> list[tuple[bytes, str]]:
    """The same, each line with its hash in hex."""
    lines = []
    for record in records:
        if "mac" not in record:
            record = {**record, "mac": mac_of(record, head, key)}
        line, head = seal(record, head)
        lines.append((line, head.hex()))
    return lines


def mac_of(record: Mapping[str, Any], previous: bytes, key: bytes = KEY) -> str:
    """The MAC of a record after one with this hash."""
    body = encode({name: value for name, value in record.items() if name not in ("mac", "~")})
    derived = blake3(key, derive_key_context=RECORDS).digest()
    return blake3(b"mac" + previous + body, key=derived).hexdigest()[:32]
