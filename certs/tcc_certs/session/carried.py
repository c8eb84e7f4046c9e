"""A session goes on under another artifact: what its earlier records are for the new artifact.

Normative text: docs/spec/session.md, section 5.  The calls that were made are not decided again.
Their records are read as the new artifact would have written them; then they are its history, which
decides later calls.  Where a record lacks something that the new artifact needs of an argument, the
session does not fit.  Where it lacks something of an answer, this answer is unknown.

Cost: linear in the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.policy.core import Tool
from tcc_certs.policy.uses import Uses
from tcc_certs.session.entries import Entries, Unfit, fitted_answers, fitted_arguments
from tcc_certs.session.machine import Offer, SessionMachine

# Members of a header that follow from the artifact.
OF_ARTIFACT = (
    "artifact", "constants", "grammar", "grammar_version", "root_state", "statements",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """An artifact as records of its sessions are read."""

    machine: SessionMachine
    uses: Uses

    def entries(self, shown: frozenset[tuple[str, str]]) -> Entries:
        """The forms of the entries of a session.

        Args:
            shown: pairs of a tool and an open field.
        """
        return Entries(self.machine.core, self.uses, shown)


class Carrier:
    """Makes records of an artifact from those of earlier artifacts.

    Args:
        due: the artifact.
        shown: as of :class:`Entries`.
    """

    def __init__(self, due: Reading, shown: frozenset[tuple[str, str]]) -> None:
        self._due, self._shown = due, shown
        self._entries = due.entries(shown)
        self._had, self._had_entries = due, self._entries
        self._tools: dict[int, tuple[Tool, Mapping[str, Any]]] = {}  # without a known outcome

    def use(self, had: Reading) -> None:
        """The next records are those of another artifact."""
        self._had, self._had_entries = had, had.entries(self._shown)

    def given(self, found: Json) -> dict[str, Json]:
        """The entries of what the session was given.

        Raises:
            Rejected: S218.
        """
        entries = found if isinstance(found, dict) else {}
        had = self._had.uses.given
        try:
            return fitted_arguments(self._due.uses.given, had, entries)
        except Unfit as error:
            raise _unfit(f"session.{error}", "what the new artifact reads", "less") from None

    def record(self, kind: str, record: Record) -> Record | None:
        """A record as the artifact would have it; None: it has no effect there.

        Args:
            record: its members have their form.

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
        domains = {field.name: field.values for field in new.listed}
        for name, values in _unlisted(old, had):
            if domains.get(name) != values:
                raise _unfit(f"call: {name}", "the listed values of the new artifact", text)
        try:
            record["open"] = fitted_arguments(
                self._entries.arguments(new.name),
                self._had_entries.arguments(old.name),
                record["open"],
            )
        except Unfit as error:
            expected = "what the new artifact reads of this argument"
            raise _unfit(f"open: {new.name}.{error}", expected, "less") from None
        forms = self._had_entries.answers(old.name)
        listed = {field.name: field.values for field in old.answers if field.type is None}
        self._tools[record["seq"]] = new, {"forms": forms, "listed": listed}

    def _outcome(self, record: dict[str, Any]) -> None:
        seq, outcome = record["seq"], record["outcome"]
        if "took" in record or seq not in self._tools:
            raise _unfit("outcome", "the outcome of a call that no model made", seq)
        tool, had = self._tools[seq]
        if outcome != "unknown":
            del self._tools[seq]
        if outcome != "done":
            if "answered" in record and not tool.errors_failed:
                raise _unfit("answered", f"a tool with errors, in the new artifact: {tool.name}", 1)
            return
        record.pop("unforeseen", None)
        found, observed = record.pop("observed", {}), {}
        listed = [field for field in tool.answers if field.type is None]
        for field in listed:
            same = had["listed"].get(field.name) == field.values
            value = found.get(field.name)
            if value is not None and (same or (value not in ("", "*") and value in field.values)):
                observed[field.name] = value
        if listed:
            record["observed"] = observed
            if len(observed) < len(listed):
                record["unforeseen"] = True
        due = self._entries.answers(tool.name)
        answers = fitted_answers(due, had["forms"], record.pop("answers", {}))
        if answers:
            record["answers"] = answers


def _unlisted(tool: Tool, offer: Offer) -> list[tuple[str, tuple[str, ...]]]:
    """The listed arguments of a call whose value is not listed, with their listed values."""
    pairs = zip(tool.listed, offer.values, strict=False)
    return [
        (field.name, tuple(field.values))
        for field, at in pairs
        if at >= field.optional and field.values[at - field.optional] == "*"
    ]


def _unfit(path: str, expected: str, found: object) -> Rejected:
    return Rejected(Code.SESSION_CARRIED, path, expected, found)
