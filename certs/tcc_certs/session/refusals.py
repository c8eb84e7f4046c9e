"""Why a gate refuses: the codes, and what each of them says in a few words.

Normative text: docs/spec/session.md, section 6.  Values are looked at before plans, plans before
monitors; the first reason is the one that is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code

UNKNOWN_TOOL = "unknown tool"  # stands in records for a name that is not the grammar's

REFUSALS: Mapping[Code, str] = {
    Code.UNKNOWN_TOOL: "the grammar has no such tool",
    Code.UNDECLARED_ARGUMENT: "the tool has no such parameter",
    Code.MISSING_ARGUMENT: "an argument is missing",
    Code.UNLISTED_VALUE: "the value is none of those that are listed",
    Code.OPEN_VALUE: "the value is of another type, or outside its limits",
    Code.NO_VALUE: "the value is none that JSON can hold without loss",
    Code.NOT_PLANNED: "no plan has this call here",
    Code.MONITOR_FORBIDS: "a statement over open parameters forbids it",
    Code.STATEMENT_FORBIDS: "a statement that is left to the run forbids it",
    Code.MAY_NOT_FINISH: "no plan ends here",
    Code.NO_MODEL: "no model that may make the call fits what is left of the budget",
    Code.MANY_STATES: "too many outcomes are unknown",
    Code.UNFORESEEN: "an answer came that no plan foresees: nothing further is allowed",
    Code.ENDED: "the session has ended",
    Code.ALREADY_DONE: "a call of this identity is in the ledger",
    Code.NESTED_CALL: "another call of the same thread or task is not over",
    Code.NOT_WRITTEN: "the ledger cannot be written",
}
# Those that a record of a refusal may have: of a call, in a session that has not ended.
RECORDED = frozenset(REFUSALS) - {Code.MAY_NOT_FINISH, Code.ENDED, Code.NOT_WRITTEN}
