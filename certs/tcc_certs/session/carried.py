"""Rewrites earlier records of a session for another artifact, under which the session continues.

Normative text: docs/spec/session.md, section 5.  Calls that were made are not decided again.  Their
records are rewritten as the new artifact would have written them.  So they are its history, and
later calls depend on them.  If a record lacks something that the new artifact needs of an argument,
the session does not fit.  If it lacks something of an answer, this answer is unknown.

Cost: linear in the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.policy.core import Learned, Tool
from tcc_certs.policy.uses import Uses
from tcc_certs.session.entries import Entries, Unfit, fitted_answers, fitted_arguments
from tcc_certs.session.machine import SessionMachine
from tcc_certs.values.fields import Field
from tcc_certs.values.places import State

# Members of a header that follow from the artifact.
OF_ARTIFACT = (
    "artifact", "constants", "grammar", "grammar_version", "root_state", "statements",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """An artifact, prepared for reading the records of its sessions."""

    machine: SessionMachine
    uses: Uses

    def entries(self, shown: frozenset[tuple[str, str]]) -> Entries:
        """Return the forms of the entries of a session.

        Args:
            shown: pairs of a tool and an open field.
        """
        return Entries(self.machine.core, self.uses, shown)


class Carrier:
    """Rewrites records of earlier artifacts for one artifact.

    Args:
        due: this artifact.
        target: the first record of the first file that names it.
        shown: pairs of a tool and an open field whose values are shown.
    """

    def __init__(self, due: Reading, target: Record, shown: frozenset[tuple[str, str]]) -> None:
        self._due, self._shown = due, shown
        self._entries = due.entries(shown)
        self._had, self._had_entries = due, self._entries
        # by call number, the tool; only calls without a known outcome
        self._tools: dict[int, Tool] = {}
        learned = [one for one in due.machine.core.given if isinstance(one, Learned)]
        self._sources = {source for one in learned for source in one.sources}
        self._digests: dict[State, Json] = {}  # constants of all artifacts
        self._constants: dict[Json, State] = {}
        self._agree(self._entries, target)

    def use(self, had: Reading, header: Record) -> None:
        """Read the next records by another artifact, which this header names.

        Raises:
            Rejected: S205: a constant has different digests, or two constants have the same digest.
        """
        self._had, self._had_entries = had, had.entries(self._shown)
        self._agree(self._had_entries, header)

    def _agree(self, entries: Entries, header: Record) -> None:
        """Check that each constant has the same digest in all headers.

        Raises:
            Rejected: S205.
        """
        digests = header.get("constants")
        listed = digests if isinstance(digests, list) else []
        for state, digest in zip(entries.constants, listed, strict=False):
            known = self._digests.setdefault(state, digest)
            ensure(known == digest, Code.SESSION_DIGEST, "constants", known, digest)
            same = self._constants.setdefault(digest, state) == state
            ensure(same, Code.SESSION_DIGEST, "constants", "different digests", digest)

    def given(self, found: Json) -> dict[str, Json]:
        """Return the entries of the session's attributes, as the new artifact needs them.

        Raises:
            Rejected: S218: an entry lacks something that the new artifact needs.
        """
        old, new = [
            [one for one in of.machine.core.given if isinstance(one, Field)]
            for of in (self._had, self._due)
        ]
        entries = found if isinstance(found, dict) else {}
        try:
            _check_places(old, new)
            return fitted_arguments(self._due.uses.given, self._had.uses.given, entries)
        except Unfit as error:
            raise _unfit(f"session.{error}", "what the new artifact reads", "less") from None

    def record(self, kind: str, record: Record) -> Record | None:
        """Return a record as the new artifact would have it; None: it has no effect there.

        Args:
            record: a record whose members are well formed.

        Raises:
            Rejected: S218: the session does not fit the artifact.
        """
        if kind in ("budget", "asked"):
            raise _unfit("kind", "a session without models that make calls", kind)
        if kind not in ("call", "outcome", "resolve"):
            return None
        found = dict(record)
        if self._due.uses.timed:
            if "at_ms" not in record:
                raise _unfit("at_ms", "times, which the new artifact reads", "none")
        elif "who" not in record:
            found.pop("at_ms", None)
        if kind == "call":
            self._call(found)
        else:
            self._outcome(found)
        return found

    def _call(self, record: dict[str, Any]) -> None:
        for name in ("approvals", "states"):
            record.pop(name, None)
        text = record["call"]
        had, due = self._had.machine.offer(text), self._due.machine.offer(text)
        if had is None or due is None or "execute" in record:
            raise _unfit("call", "a call of the new artifact", text)
        old, new = self._had.machine.core.tools[had.tool], self._due.machine.core.tools[due.tool]
        try:
            _check_places(old.arguments, new.arguments)
            record["open"] = fitted_arguments(
                self._entries.arguments(new.name),
                self._had_entries.arguments(old.name),
                record["open"],
            )
        except Unfit as error:
            expected = "what the new artifact reads of this argument"
            raise _unfit(f"open: {new.name}.{error}", expected, "less") from None
        self._tools[record["seq"]] = new

    def _outcome(self, record: dict[str, Any]) -> None:
        seq, outcome = record["seq"], record["outcome"]
        if "took" in record or seq not in self._tools:
            raise _unfit("outcome", "the outcome of a call that no model made", seq)
        tool = self._tools[seq]
        if outcome != "unknown":
            del self._tools[seq]
        if outcome == "done":
            try:
                self._answer(tool, record)
            except Unfit as error:
                expected = "an answer that the new artifact learns an attribute from"
                raise _unfit(f"answers: {tool.name}.{error}", expected, "less") from None
        elif "answered" in record and not tool.errors_failed:
            raise _unfit("answered", f"a tool with errors, in the new artifact: {tool.name}", 1)

    def _answer(self, tool: Tool, record: dict[str, Any]) -> None:
        """Rewrite the answers of a done call, in place.

        An answer is kept if both artifacts read it alike and the new artifact has its value.  Other
        answers become unknown.

        Args:
            tool: the tool of the new artifact.

        Raises:
            Unfit: an attribute is learned from an answer that becomes unknown here.  Otherwise a
                later answer could give it another value.
        """
        record.pop("unforeseen", None)
        old = {one.name: one for one in self._had.machine.core.tool_of[tool.name].answers}
        alike = {one.name for one in tool.answers if _is_alike(old.get(one.name), one)}
        learned = {name for of, name in self._sources if of == tool.name}
        found, observed = record.pop("observed", {}), {}
        listed = [field for field in tool.answers if field.type is None]
        for field in listed:
            name = field.name
            value = found.get(name) if name in alike else None
            same = name in alike and old[name].values == field.values
            if value is not None and (same or (value not in ("", "*") and value in field.values)):
                observed[name] = value
            elif name in learned and not (same and value is None):
                raise Unfit(name)
        if listed:
            record["observed"] = observed
            if len(observed) < len(listed):
                record["unforeseen"] = True
        forms = self._had_entries.answers(tool.name)
        answers = fitted_answers(
            self._entries.answers(tool.name),
            {name: form for name, form in forms.items() if name in alike},
            record.pop("answers", {}),
            learned,
        )
        if answers:
            record["answers"] = answers


def _is_alike(had: Field | None, due: Field) -> bool:
    """Return whether two fields have the same place, and are both listed or both open."""
    if had is None or (had.type is None) != (due.type is None):
        return False
    return (had.steps, had.null) == (due.steps, due.null)


def _check_places(had: Sequence[Field], due: Sequence[Field]) -> None:
    """Check that `had` has each field of `due` at the same place, or has nothing at its place.

    Raises:
        Unfit: `had` has another field there, or has this field elsewhere.
    """
    names = {one.name: one for one in had}
    for field in due:
        if _is_alike(names.get(field.name), field):
            continue
        if field.name in names or any(_overlap(one.steps, field.steps) for one in had):
            raise Unfit(field.name)


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one place lies inside the other; the step `*` matches every step."""
    pairs = zip(one, other, strict=False)
    return all(step == beside or "*" in (step, beside) for step, beside in pairs)


def _unfit(path: str, expected: str, found: object) -> Rejected:
    return Rejected(Code.SESSION_CARRIED, path, expected, found)
