"""What changes a session: a call that begins, its outcome, what is resolved, the end.

Whoever calls these has the turn, the lock of the file and the lock of the session.  Each writes its
record first and then changes the session.
Text: docs/spec/session.md, sections 3 to 5.
Cost: a record; resolving is linear in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tcc_certs.core.atoms import Atom
from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.limits import MAX_REFOLDED
from tcc_certs.session.course import Outcome
from tcc_certs.session.machine import Observed
from tcc_runtime.account.account import Account
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.budget import Budget
from tcc_runtime.gate.decisions import Permitted, decide, decision
from tcc_runtime.gate.executions import Execution
from tcc_runtime.gate.records import (
    end_record,
    observed_texts,
    opened_of,
    outcome_record,
    refusal_record,
    resolve_record,
)
from tcc_runtime.gate.refusals import AlreadyDone, Decision, Refused
from tcc_runtime.gate.shared import Shared
from tcc_runtime.pricing.controller import Spending
from tcc_runtime.pricing.quotes import Answer


def admit(
    shared: Shared, tool: str, arguments: object, ref: str | None, *, sync: bool
) -> tuple[int, str, str]:
    """A call begins: its number, its key, and the model that makes it, empty where none does.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        Rejected: K101, K103, K104, K106 of the account.
    """
    reference = None if ref is None else _reference(shared, tool, ref)
    found = decide(shared.follower, tool, arguments)
    if not isinstance(found, Permitted):
        _record_refusal(shared, found, tool)
        raise Refused(found, tool)
    follower, session = shared.follower, shared.session
    seq = len(session.made) + 1
    executions, execution = follower.executions, _execution(shared, found, tool)
    execute = None
    if executions is not None and execution is not None:
        execute = executions.fields(execution)
    record = follower.writer.call(
        seq, found.asked, session.states(), reference, execute, found.digests
    )
    model = "" if execution is None else execution.choice.model.name

    def begin() -> None:
        made = session.begin(found.asked.offer, found.seen)
        made.opened, made.model = opened_of(record), model
        if executions is not None and execution is not None:
            executions.begin(execution)
        if reference is not None:
            follower.refs[reference] = seq

    try:
        shared.write(record, begin, tool, sync=sync)
    except Refused:
        if executions is not None and execution is not None:
            with suppress(Rejected):
                executions.give_back(execution)
        raise
    return seq, str(record["key"]), model


def _execution(shared: Shared, found: Permitted, tool: str) -> Execution | None:
    """The model that makes a call that is allowed; None: calls of its tool are made by none.

    Raises:
        Refused: R205 the account has too little for any; Rejected: as :func:`admit`.
    """
    executions, number = shared.follower.executions, found.asked.offer.tool
    if executions is None or not executions.makes(number):
        return None
    execution = executions.reserve(number)
    if execution is None:
        refused = decision(shared.session, Code.NO_MODEL, "account", found.asked)
        _record_refusal(shared, refused, tool)
        raise Refused(refused, tool)
    return execution


def _reference(shared: Shared, tool: str, ref: str) -> str:
    """What stands for the caller's id.

    Raises:
        Refused: R106 it is no text; AlreadyDone: the session has it.
    """
    try:
        if type(ref) is not str:
            raise Rejected(Code.NO_VALUE, "ref", "a text", type(ref).__name__)
        reference = shared.follower.writer.reference(ref)
    except Rejected as refusal:
        found = decision(shared.session, refusal.code, "ref")
        _record_refusal(shared, found, tool)
        raise Refused(found, tool) from None
    seq = shared.follower.refs.get(reference)
    if seq is None:
        return reference
    found = decision(shared.session, Code.ALREADY_DONE, "ref")
    _record_refusal(shared, found, tool)
    error = AlreadyDone(found, tool)
    error.seq, error.outcome = seq, shared.session.made[seq - 1].outcome
    raise error


def _record_refusal(shared: Shared, found: Decision, tool: str) -> None:
    """Of an ended session nothing is written any more."""
    if not shared.session.ended:
        known = shared.policy.tool(tool) is not None
        record = refusal_record(tool if known else "", str(found.code))
        shared.try_to_write(record, lambda: None, sync=False)


def settle(
    shared: Shared,
    outcome: Outcome,
    result: object,
    observed: Mapping[str, Any] | None,
    ms: int,
    told: Answer | None = None,
    *,
    sync: bool,
) -> tuple[Outcome, bool]:
    """The outcome of the call under way: as it is kept, and whether it was unforeseen.

    One that cannot be written is unknown, whatever it was.  Where the account cannot be told what
    the call took, it is written all the same, and nothing is allowed any more.

    Args:
        ms: since the call.
        told: what it took, of a call that a model made.
    """
    session, executions = shared.session, shared.follower.executions
    took = None
    if executions is not None and executions.pending is not None:
        took = executions.took(told, ms)
    table = session.policy.table(session.made[-1].offer.tool)
    indices: Observed | None = None
    if outcome == "done":
        indices = table.observe(result if observed is None else observed)
    unforeseen = outcome == "done" and indices is None
    record = outcome_record(
        len(session.made),
        outcome,
        ms,
        observed_texts(table, indices),
        unforeseen,
        shared.follower.writer.result(result),
        None if took is None else _drawn(shared, took),
    )

    def then() -> None:
        if executions is not None and took is not None:
            executions.settle(took, outcome == "done")
        session.settle(outcome, indices, unforeseen)

    if not shared.try_to_write(record, then, sync=sync):
        session.settle("unknown", None, False)
        return "unknown", False
    return outcome, session.unforeseen


def _drawn(shared: Shared, took: Spending) -> Mapping[str, Json] | None:
    """What the record of an outcome says of what a model took; the account is told."""
    executions, left = shared.follower.executions, None
    if executions is None:
        return None
    try:
        left = executions.draw(took)
    except Rejected as error:
        shared.fail_after(error)
    return executions.took_fields(took, left)


def begin_budget(shared: Shared, budget: Budget, account: Account | None) -> bool:
    """Models make calls from here on, within a budget; whether it is a new one.

    Raises:
        ResumeError: the session has another one.
        Refused: R303, R306.
    """
    follower = shared.follower
    if shared.session.ended:
        shared.refuse(Code.ENDED)
    record, known = budget.record(), follower.executions
    if known is None:
        shared.write(record, lambda: follower.begin_budget(budget))
    elif known.budget.record() != record:
        raise ResumeError("budget", known.budget.record(), record)
    if follower.executions is not None:
        follower.executions.account = account
    return known is None


def note_search(shared: Shared, took: Spending, atoms: Sequence[Atom]) -> None:
    """Asks of a search took so much.

    Raises:
        Refused: R303, R306.
    """
    executions = shared.follower.executions
    if shared.session.ended:
        shared.refuse(Code.ENDED)
    if executions is not None:
        record = executions.asked_record(took, atoms)
        shared.write(record, lambda: executions.asked(took, atoms))


def resolve(shared: Shared, seq: int, outcome: Outcome, observed: Mapping[str, Any] | None) -> None:
    """What an unknown outcome turned out to be.

    Raises:
        ValueError: there is no such unknown call, or no such outcome or value; or more calls would
            have to be gone through again than a validator does.
        Refused: R303, R306.
    """
    session = shared.session
    if session.ended:
        shared.refuse(Code.ENDED)
    made = shared.follower.unknown(seq) if type(seq) is int else None
    if made is None or outcome not in ("done", "failed"):
        raise ValueError(f"no unknown call {clip(seq, 20)} that can be {clip(outcome, 20)}")
    table = session.policy.table(made.offer.tool)
    indices = table.observe({} if observed is None else observed) if outcome == "done" else None
    if outcome == "done" and indices is None:
        names = ", ".join(param.name for param in table.observed)
        raise ValueError(f"observed: one of its values for each of {names}")
    if outcome == "failed" and observed:
        raise ValueError("observed: nothing, of a call that failed")
    if session.course.repeated(seq) > MAX_REFOLDED:
        # Validators decline such a ledger, and it would never be taken up again.
        raise ValueError(f"late outcomes: more than {MAX_REFOLDED} calls to go through again")
    record = resolve_record(seq, outcome, observed_texts(table, indices))
    shared.write(record, lambda: session.resolve(seq, outcome, indices))


def finish(shared: Shared, abandon: bool) -> None:
    """The end.

    Raises:
        Refused: R204, R303, R306.
    """
    session = shared.session
    if session.ended:
        shared.refuse(Code.ENDED)
    if not abandon and not session.may_finish():
        shared.refuse(Code.MAY_NOT_FINISH)

    def end() -> None:
        session.ended = True

    shared.write(end_record(abandon), end)
