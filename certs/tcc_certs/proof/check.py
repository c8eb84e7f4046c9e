"""A proof, checked from its first line to its last (docs/spec/proof.md, sections 2 and 3).

What a list shows: Closed.v: a_closed_list_proves_inclusion, every_session_can_be_finished.
Cost: linear in the steps of the file; one state in memory for each state of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tcc_certs.core.mentions import is_across, is_timed
from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.artifact import ArtifactFile
from tcc_certs.formats.codec import Json, blake, decode
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.proof import sides
from tcc_certs.proof.compared import Part, State
from tcc_certs.proof.moves import System
from tcc_certs.proof.question import statement_core
from tcc_certs.proof.replay import Replay, SessionCall
from tcc_certs.proof.states import Renamed, StateReader, most_of, whole

FORMAT = "tcc.proof"
MAX_PROOF_BYTES = 1 << 28
MAX_PROOF_STATES = 1 << 20
MAX_STAMP = 1 << 62  # ms


# The file.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """The verdict on a proof.

    Attributes:
        verdict: 0 VALID, 1 INVALID, 2 DECLINED.  question: its kind and its text.
        proof: ``proved`` or ``refuted``; empty where that is not known.
        finding: the rule that failed.
        checked: states, steps and calls.
    """

    verdict: int
    question: Mapping[str, str]
    proof: str
    finding: Rejected | None
    checked: Mapping[str, int]


_CODE = Code.PROOF_FORM


def read_proof(path: Path) -> bytes:
    """The bytes of a proof, one too many where it is too large.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as handle:
        return handle.read(MAX_PROOF_BYTES + 1)


def check_proof(data: bytes, artifacts: Sequence[bytes]) -> ProofReport:
    """Whether the verdict of a proof follows from it and these artifacts; never an exception.

    Args:
        data: the proof.
        artifacts: in the order of the question.
    """
    proof = _Check()
    try:
        proof.run(data, artifacts)
    except Rejected as refusal:
        return ProofReport(
            verdict=2 if refusal.code.declines else 1,
            question=proof.question,
            proof=proof.proof,
            finding=refusal,
            checked={},
        )
    return ProofReport(
        verdict=0, question=proof.question, proof=proof.proof, finding=None, checked=proof.checked
    )


_VERDICTS = ("VALID", "INVALID", "DECLINED")


def proof_lines(proof: ProofReport) -> list[str]:
    """The verdict on a proof in plain words."""
    asked = " ".join(proof.question.values()) or "no question"
    counts = ", ".join(f"{count} {name}" for name, count in proof.checked.items())
    if proof.finding is None:
        return [f"VALID: {proof.proof}: {asked} ({counts})"]
    return [f"{_VERDICTS[proof.verdict]}: {asked}", str(proof.finding)]


def proof_document(proof: ProofReport) -> dict[str, Json]:
    """A report on a proof as the JSON document ``tcc.check`` 1.0."""
    found = proof.finding
    fields: dict[str, Json] = {}
    if found is not None:
        fields = {"code": found.code.value, "path": found.path}
        fields |= {"expected": found.expected, "found": found.found}
    return {
        "format": "tcc.check",
        "format_version": "1.0",
        "verdict": _VERDICTS[proof.verdict],
        "question": dict(proof.question),
        "proof": proof.proof,
        "findings": [fields] if fields else [],
        "checked": dict(proof.checked),
    }


class _Check:
    """One proof, from its first line to its last."""

    def __init__(self) -> None:
        self.question: dict[str, str] = {}
        self.proof = ""
        self.checked = {"states": 0, "steps": 0, "calls": 0}
        self._lines: Iterator[bytes] = iter(())
        self._reader = StateReader()
        self._renamed = Renamed([])  # facts of one list
        self._number = 0
        self._policy: Json | None = None  # of a statement of version 1.2
        self._timed = False  # whether calls have their times
        self._listed = False  # whether closed lists show it, and no session

    def run(self, data: bytes, artifacts: Sequence[bytes]) -> None:
        """Check it.

        Raises:
            Rejected: the first rule that fails.
        """
        size = len(data)
        ensure(size <= MAX_PROOF_BYTES, Code.LIMIT, "proof", f"{MAX_PROOF_BYTES} bytes", size)
        ensure(data.endswith(b"\n"), _CODE, "proof", "a line feed at the end", data[-8:])
        self._lines = _split(data)
        head = self._line()
        if not isinstance(head, dict):
            raise Rejected(_CODE, "line 1", "an object", type(head).__name__)
        require(FORMAT, head.get("format"), _CODE, "format")
        require("1.0", head.get("format_version"), Code.UNKNOWN_VERSION, "format_version")
        asked = {"statement": True, "reachable": True, "implies": False, "finishable": False}
        question = schema.as_mapping(head.get("question", ""), "question", _CODE)
        kind = question.get("kind")
        if not isinstance(kind, str) or kind not in asked:
            raise Rejected(_CODE, "question.kind", "a kind of question", kind)
        texts = {"kind", "text"} if asked[kind] else {"kind"}
        if kind == "statement":
            self._policy = question.get("policy")
            texts |= {"policy"} & set(question)
        require(texts, set(question), _CODE, "question")
        self.question = {
            name: schema.as_text(question[name], "question", _CODE)
            for name in sorted(texts - {"policy"})
        }
        proof = schema.as_text(head.get("proof", 0), "proof", _CODE)
        ensure(proof in ("proved", "refuted"), _CODE, "proof", "proved or refuted", proof)
        self.proof = proof
        kind = self.question["kind"]
        self._listed = (proof == "proved") == (kind != "reachable")
        left, right = self._sides(head, artifacts)
        self._timed = any(is_timed(one.policy) for one in (*left.policies, *right.policies))
        if self._listed:
            # What other sessions have used is no part of a list.
            wide = [one.text for one in right.policies if is_across(one.policy)]
            ensure(not wide, Code.UNKNOWN_FEATURE, "core", "limits of one session", wide[:1])
        if kind == "finishable":
            system = System(left, right)
            lists = system.lists  # of some sizes the call may not be there that leads to an end
            ensure(not lists, Code.UNKNOWN_FEATURE, "core", "no lists compared", "some")
            self._finishable(system, head)
        elif self._listed:
            self._included(System(left, right), head)
        else:
            self._shown(left, right, head)
        done = next(self._lines, None) is None
        ensure(done, _CODE, f"line {self._number + 1}", "the end", "more")

    def _sides(
        self, head: Mapping[str, Json], artifacts: Sequence[bytes]
    ) -> tuple[sides.Side, sides.Side]:
        kind = self.question["kind"]
        due = 2 if kind == "implies" else 1
        require(due, len(artifacts), Code.PROOF_ARTIFACTS, "artifacts")
        cores = schema.as_tuple(head.get("cores", ""), "cores", _CODE, due, "digests")
        made = [check(data) for data in artifacts]
        for at, (artifact, core) in enumerate(zip(made, cores, strict=True)):
            found = core_digest(artifact.file)
            require(found, core, Code.PROOF_CORE, f"cores[{at}]")
        seen = sides.compared_cores(
            [of.core for of in made], listed=self._listed, bare=_is_bare(head)
        )
        left, *rest = map(_of_artifact, made, seen)
        if kind in ("implies", "finishable"):
            return left, (rest or [left])[0]
        text = self.question["text"]
        return left, sides.statement_side(statement_core(left.core, kind, text, self._policy))

    def _line(self) -> Json:
        self._number += 1
        raw = next(self._lines, None)
        if raw is None:
            raise Rejected(_CODE, f"line {self._number}", "another line", "the end")
        size = len(raw)
        ensure(size <= MAX_LINE_BYTES, Code.LIMIT, f"line {self._number}", "16 MiB", size)
        return decode(raw, f"line {self._number}")

    # Closed sets.

    def _included(self, system: System, head: Mapping[str, Json]) -> None:
        members = {"format", "format_version", "question", "proof", "cores", "parts"}
        require(members, set(head), _CODE, "line 1")
        given = schema.as_list(head["parts"], "parts", _CODE, 1)
        monitors = len(system.left.core.monitors)
        uses, sizes, unwalked = [], [], set()
        for at, part in enumerate(given):
            entry = schema.as_mapping(part, f"parts[{at}]", _CODE)
            require({"keys", "states", "uses"}, set(entry) - {"plans"}, _CODE, f"parts[{at}]")
            told = entry.get("plans", False)
            ensure(told is False, _CODE, f"parts[{at}].plans", "false", told)
            unwalked.update([at] * ("plans" in entry))
            numbers = [
                schema.as_whole(one, f"parts[{at}].uses", Code.PROOF_USES, monitors)
                for one in schema.as_list(entry["uses"], f"parts[{at}].uses", _CODE)
            ]
            uses.append(frozenset(numbers))
            sizes.append(whole(entry["states"], f"parts[{at}].states"))
        ways = [schema.as_mapping(part, "parts", _CODE)["keys"] for part in given]
        ensure(0 not in unwalked, Code.PROOF_USES, "parts[0].plans", "plans", "none")
        if ways in (["all"], ["bare"]):
            parts = [Part(tracked=None, rule=None, uses=uses[0])]
        else:
            call = "call" in ways
            parts = system.parts(uses, call=call, unwalked=frozenset(unwalked))
            require(["call" if call else "each"] * len(parts), ways, Code.PROOF_USES, "parts")
        total = sum(sizes)
        ensure(total <= MAX_PROOF_STATES, Code.LIMIT, "parts", f"{MAX_PROOF_STATES} states", total)
        for one, size in zip(parts, sizes, strict=True):
            self._closed(system, one, size, ends=True)

    def _closed(
        self, system: System, part: Part, size: int, *, ends: bool, begin: State | None = None
    ) -> list[State]:
        """A list of states that holds the start, and that every call leads into."""
        self._reader.kept.clear()
        self._renamed = Renamed(system.atoms)
        states = [self._state(system, part) for _ in range(size)]
        held, met = part.tracked is not None, set[int]()
        starts = system.starts(part) if begin is None else [begin]
        rows: Sequence[Json] = [self._line()]
        if begin is None and system.given:  # one for each choice; of keys nothing is given
            rows = schema.as_list(rows[0], f"line {self._number}", _CODE)
        where = f"line {self._number}"
        ensure(
            len(starts) == len(rows), Code.PROOF_START, where, f"{len(starts)} starts", len(rows)
        )
        for first, value in zip(starts, rows, strict=True):
            row = _numbers_of(value, where)
            self._leads(system, first, row, states, Code.PROOF_START, held=held)
            met.add(row[0])
        for number, state in enumerate(states):
            # What nothing leads to may hold as many facts as the file has bytes.
            ensure(number in met, Code.PROOF_TARGET, "states", "what a step leads to", number)
            if ends and part.plans and system.ends(part, state, 0):
                fine = system.ends(part, state, 1)
                where = f"line {self._number}"
                ensure(fine, Code.PROOF_FINISH, where, "an end that the other side allows", "none")
            steps = schema.as_list(self._line(), f"line {self._number}", _CODE)
            where, at = f"line {self._number}", 0
            for move in system.moves(part, state):
                if move.state is None:
                    text = system.left.core.calls[move.call].text
                    raise Rejected(Code.PROOF_REFUSED, where, f"{text} to be allowed", move.why)
                if at >= len(steps):
                    raise Rejected(Code.PROOF_STEPS, where, "a step for each call", len(steps))
                row = _numbers_of(steps[at], where)
                self._leads(system, move.state, row, states, Code.PROOF_TARGET, held=held)
                met.add(row[0])
                at += 1
            require(at, len(steps), Code.PROOF_STEPS, where)
            self.checked["steps"] += at
        self.checked["states"] += size
        return states

    def _leads(
        self,
        system: System,
        to: State,
        row: Sequence[int],
        states: Sequence[State],
        code: Code,
        *,
        held: bool = False,
    ) -> None:
        """A state, renamed as a row says, is a listed one; each of its sums is in the interval."""
        where = f"line {self._number}"
        if not row or row[0] >= len(states):
            raise Rejected(code, where, "a listed state", row[:1])
        target = states[row[0]]
        facts = self._renamed.get((to[2], tuple(row[1:])))
        if facts is None:
            facts = self._renamed.put(to[2], row[1:], target[2], where, held=held)
        if to[0] != target[0] or to[1] != target[1] or facts != target[2]:
            raise Rejected(code, where, "the state that the call leads to", f"state {row[0]}")
        for (low, high), (least, most) in zip(to[3], target[3], strict=True):
            if low < least or most < high:
                ends = f"{low} .. {high}", f"{least} .. {most}"
                raise Rejected(Code.PROOF_INTERVAL, where, *ends)

    def _state(self, system: System, part: Part) -> State:
        value = self._line()
        return self._reader.state(value, f"line {self._number}", system, part)

    # Sessions.

    def _shown(self, left: sides.Side, right: sides.Side, head: Mapping[str, Json]) -> None:
        sides.ensure_one_session(left, right)
        members = {"format", "format_version", "question", "proof", "cores", "calls", "ends"}
        given = self._given(left, head, members)
        require(members, set(head), _CODE, "line 1")
        ends = head["ends"]
        ensure(ends in ("call", "finish"), _CODE, "ends", "call or finish", ends)
        calls = self._calls(head)
        mine, theirs = Replay(left, left, given), Replay(right, left, given)
        for at, call in enumerate(calls):
            where = f"call {at + 1}"
            why = mine.refuses(call)
            ensure(why == "", Code.PROOF_SESSION, where, "a call that is let through", why)
            last = at == len(calls) - 1 and ends == "call"
            refused = theirs.refuses(call) != ""
            require(last, refused, Code.PROOF_SHOWS, where)
        if ends == "finish":
            may = mine.accepts and not theirs.accepts
            ensure(may, Code.PROOF_SHOWS, "end", "an end of one side alone", "none")
        else:
            ensure(calls != [], Code.PROOF_SHOWS, "calls", "a call", "none")

    def _given(
        self, left: sides.Side, head: Mapping[str, Json], members: set[str]
    ) -> dict[str, str]:
        """What the session of a proof is given; where its grammar asks for that, it is a member."""
        if not left.core.given:
            return {}
        members.add("given")
        return dict(self._pairs(head.get("given", ""), "given"))

    def _calls(self, head: Mapping[str, Json]) -> list[SessionCall]:
        count = whole(head["calls"], "calls")
        self.checked["calls"] = count
        calls = [self._call() for _ in range(count)]
        onward = all(one.at_ms <= other.at_ms for one, other in pairwise(calls))
        ensure(onward, Code.PROOF_SESSION, "calls", "times that never go back", "others")
        return calls

    def _call(self) -> SessionCall:
        value = self._line()
        where = f"line {self._number}"
        due = 4 if self._timed else 3
        tool, listed, opened, *stamp = schema.as_tuple(value, where, _CODE, due, "members")
        at_ms = schema.as_whole(stamp[0], where, _CODE, MAX_STAMP) if stamp else 0
        return SessionCall(
            tool=schema.as_text(tool, where, _CODE),
            listed=self._pairs(listed, where),
            opened=self._pairs(opened, where),
            at_ms=at_ms,
        )

    def _pairs(self, value: Json, where: str) -> tuple[tuple[str, str], ...]:
        pairs = []
        for item in schema.as_list(value, where, _CODE):
            name, text = schema.as_tuple(item, where, _CODE, 2, "members")
            pairs.append((schema.as_text(name, where, _CODE), schema.as_text(text, where, _CODE)))
        schema.ensure_increasing([name for name, _ in pairs], where, _CODE)
        return tuple(pairs)

    # Finishable.

    def _finishable(self, system: System, head: Mapping[str, Json]) -> None:
        members = {"format", "format_version", "question", "proof", "cores", "states"}
        members |= {"ends" if self.proof == "proved" else "calls"}
        given = {} if self.proof == "proved" else self._given(system.left, head, members)
        require(members, set(head), _CODE, "line 1")
        size = whole(head["states"], "states")
        ensure(size <= MAX_PROOF_STATES, Code.LIMIT, "states", f"{MAX_PROOF_STATES}", size)
        every = frozenset(range(len(system.left.core.monitors)))
        part = Part(tracked=None, rule=None, uses=every)
        if self.proof == "refuted":
            replay = Replay(system.left, system.left, given)
            for at, call in enumerate(self._calls(head)):
                why = replay.refuses(call)
                ensure(why == "", Code.PROOF_SESSION, f"call {at + 1}", "one let through", why)
            states = self._closed(system, part, size, ends=False, begin=replay.state(system))
            for at, state in enumerate(states):
                stuck = not system.ends(part, state, 0)
                ensure(stuck, Code.PROOF_STUCK, f"state {at}", "no end", "an end")
            return
        ways = whole(head["ends"], "ends")
        ensure(ways <= MAX_PROOF_STATES, Code.LIMIT, "ends", f"{MAX_PROOF_STATES}", ways)
        states = self._closed(system, part, size, ends=False)
        good: list[State] = []
        for _ in range(ways):
            good.append(self._nearer(system, part, good))
        rows = schema.as_list(self._line(), f"line {self._number}", _CODE)
        require(len(states), len(rows), Code.PROOF_END, f"line {self._number}")
        for state, row in zip(states, rows, strict=True):
            row = _numbers_of(row, f"line {self._number}")
            self._leads_down(system, most_of(state), row, good)

    def _leads_down(
        self, system: System, to: State, row: Sequence[int], good: Sequence[State]
    ) -> None:
        """Whatever is at a state, and has sums that are no greater, is at a good state."""
        self._leads(system, to, row, _Below(good), Code.PROOF_END)

    def _nearer(self, system: System, part: Part, good: Sequence[State]) -> State:
        """A state from which every session that has no greater sums can be finished."""
        state = self._state(system, part)
        value = self._line()
        where = f"line {self._number}"
        step = schema.as_list(value, where, _CODE)
        if not step:
            ends = system.ends(part, state, 0)
            ensure(ends, Code.PROOF_END, where, "an end", "none")
            return state
        number, row = schema.as_tuple(step, where, _CODE, 2, "members")
        wanted = whole(number, where)
        for at, move in enumerate(system.moves(part, most_of(state))):
            to = system.surely(most_of(state), move) if at == wanted else None
            if to is not None:
                self._leads_down(system, to, _numbers_of(row, where), good)
                return state
        raise Rejected(Code.PROOF_END, where, "a call that can surely be made", wanted)


def _is_bare(head: Mapping[str, Json]) -> bool:
    """Whether lists leave the left's statements of version 1.2 aside."""
    parts = head.get("parts")
    first = parts[0] if isinstance(parts, list) and parts else None
    return isinstance(first, dict) and first.get("keys") != "all"


class _Below(Sequence[State]):
    """States whose intervals begin at no sum: whoever has less can do what they can."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, at: Any) -> Any:
        left, right, facts, sums = self._states[at]
        return left, right, facts, tuple([(0, high) for _, high in sums])


def _numbers_of(value: Json, where: str) -> Sequence[int]:
    row = schema.as_list(value, where, _CODE)
    for one in row:
        if type(one) is not int or one < 0:
            raise Rejected(_CODE, where, "whole numbers", one)
    return row  # type: ignore[return-value]


def _split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        yield data[at:end]
        at = end + 1


def core_digest(file: ArtifactFile) -> str:
    """The digest of an artifact's core, in hex."""
    return blake(file.columns["core"].data).hex()


def _of_artifact(of: CheckedArtifact, core: Core) -> sides.Side:
    return sides.grammar_side(core, of.automaton, of.core_calls, of.file.manifest.relaxed)
