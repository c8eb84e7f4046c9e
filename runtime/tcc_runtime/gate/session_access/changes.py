"""Changes of a session other than calls: budget, late outcomes, refusals for outside reasons, the
end.

The caller has the turn, the lock of the file and the lock of the session.  Each change writes its
record first, and then changes the session.
Text: docs/gate.md; docs/budgets.md; docs/spec/session.md, sections 3 to 6.
Cost: one record.  Resolving an outcome is linear in the calls after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.limits import MAX_REFOLDED
from tcc_certs.policy.atoms import Atom
from tcc_certs.policy.history import ANSWERED, DONE, FAILED
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session.carried import OF_ARTIFACT, Reading
from tcc_certs.session.files import files_of
from tcc_runtime.account.account import Account
from tcc_runtime.errors import LedgerError, NotCarried, ResumeError
from tcc_runtime.gate.answers import Outcome
from tcc_runtime.gate.budget import Budget
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.reasons import end_reasons
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session import records
from tcc_runtime.gate.session.recovery import Carried, replay_of
from tcc_runtime.gate.session.values import NO_ANSWERS
from tcc_runtime.gate.session_access import Access, decision
from tcc_runtime.process import collection_put_off

_CHUNK: Final = 1 << 16


def refuse(access: Access, code: Code, tool: str, reason: str) -> Refused:
    """Record the refusal of a call for a reason outside the grammar; return the exception.

    Args:
        reason: the text of the exception; the ledger does not have it.

    Raises:
        Refused: R306: the refusal cannot be recorded.
    """
    session = access.session
    if session.ended:
        code, reason = Code.ENDED, ""
    found = decision(session, code, clip(reason, 400))
    access.record_refusal(found, tool)
    return Refused(found, tool)


def carry_over(access: Access, policy: Policy, earlier: Callable[[str], Reading | None]) -> None:
    """Continue the ledger in a new file under another artifact; afterwards `access` refuses every
    call.

    Args:
        earlier: returns the artifacts of earlier files by their digests; None if unknown.

    Raises:
        NotCarried: the records of the session do not fit the artifact.
        LedgerError: the ledger cannot be read or written.
    """
    journal, follower = access.journal, access.follower
    if not isinstance(journal, InFile):
        raise ResumeError("ledger", "a ledger in a file", "a session in memory")
    own = {name: one for name, one in follower.first.items() if name not in OF_ARTIFACT}
    first = {**own, **records.artifact_members(policy, follower.key)}
    replay = replay_of(policy, follower.key, Carried(first, earlier))
    try:
        with collection_put_off(True):
            replay.follow([_chunks_of(path) for path in files_of(journal.path)])
    except Rejected as refusal:
        replay.findings.refuse(refusal, replay.line)
    except OSError as error:
        raise LedgerError(str(journal.path), error) from error
    for finding in replay.findings.items:
        place = f"line {finding.line}: {finding.field}: {finding.code.value}"
        raise NotCarried(place, finding.expected, finding.found)
    access.roll(first)
    access.fail(LedgerError("ledger", OSError(0, "it continues under another artifact")))


def _chunks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def begin_budget(access: Access, budget: Budget, account: Account | None) -> bool:
    """Begin a budget, within which models make calls; return whether it is new.

    Raises:
        ResumeError: the session has another budget.
        Refused: R303: the session has ended; R306: the record cannot be written.
    """
    follower = access.follower
    if access.session.ended:
        access.refuse(Code.ENDED)
    record, known = budget.record(), follower.executions
    if known is None:
        access.write(record, lambda: follower.begin_budget(budget))
    elif known.budget.record() != record:
        raise ResumeError("budget", known.budget.record(), record)
    if follower.executions is not None:
        follower.executions.account = account
    return known is None


def note_search(access: Access, took: SpentAmounts, atoms: Sequence[Atom]) -> None:
    """Record the cost of a search's questions, if the session has a budget.

    Raises:
        Refused: R303: the session has ended; R306: the record cannot be written.
    """
    executions = access.follower.executions
    if access.session.ended:
        access.refuse(Code.ENDED)
    if executions is not None:
        record = executions.asked_record(took, atoms)
        access.write(record, lambda: executions.asked(took, atoms))


def resolution(
    access: Access,
    seq: int,
    outcome: Outcome,
    observed: Mapping[str, Any] | None,
    who: str | None = None,
    *,
    answered: bool = False,
) -> Callable[[], None]:
    """Check the report of an unknown outcome; return the function that records it.

    Args:
        seq, outcome, observed: the number of the call, ``done`` or ``failed``, and the answers.
        who: the person who reports it; None: the ledger names no person.
        answered: whether the agent has read the error of a call that failed.

    Raises:
        ValueError: the call is not unknown, or an argument is invalid.  Or so many calls follow
            that validators would decline the ledger.
        Refused: R303: the session has ended.  The returned function may raise R306.
    """
    session, follower = access.session, access.follower
    if session.ended:
        access.refuse(Code.ENDED)
    made = follower.unknown(seq) if type(seq) is int else None
    if made is None or outcome not in ("done", "failed"):
        raise ValueError(f"no unknown call {clip(seq, 20)} that can be {clip(outcome, 20)}")
    if outcome == "failed" and observed:
        raise ValueError("observed: nothing, of a call that failed")
    errors_failed = session.policy.core.tools[made.offer.tool].errors_failed
    if answered and not (outcome == "failed" and errors_failed):
        raise ValueError("answered: only of a failed call of a tool with errors mean failed")
    if session.course.repeated(seq) > MAX_REFOLDED:
        # Validators decline such a ledger, and it would never be reopened.
        raise ValueError(f"late outcomes: more than {MAX_REFOLDED} calls to go through again")
    if who is not None and not records.is_name(who):
        raise ValueError(f"who: a text of 1 to {records.MOST_NAME} characters that can be printed")
    answers = NO_ANSWERS
    if outcome == "done":
        answers = follower.values.answers(made.offer.tool, observed)
    if answers.unlisted:
        names = ", ".join(answers.unlisted)
        raise ValueError(f"observed: one of its values for each of {names}")
    at_ms = access.record_time(always=who is not None)
    record = records.resolve_record(seq, outcome, answers, who, at_ms, read=answered)
    known = DONE if outcome == "done" else ANSWERED if answered else FAILED

    def resolved() -> None:
        session.note_time(at_ms)
        session.resolve(seq, known, answers.states)
        follower.values.keep()

    def change() -> None:
        access.write(record, resolved)
        follower.returned(seq)
        access.give_back()

    return change


def finish(access: Access, abandon: bool) -> None:
    """End the session.

    Args:
        abandon: whether to end it even if the policy does not allow the end here.

    Raises:
        Refused: R204: the session may not end here.  R303: it has ended.  R306: the record cannot
            be written.
    """
    session = access.session
    if session.ended:
        access.refuse(Code.ENDED)
    now = session.at(access.clock())
    if not abandon and not session.may_finish(now):
        because = end_reasons(session, now)
        raise Refused(decision(session, Code.MAY_NOT_FINISH, because=lambda: because, at_ms=now))

    def end() -> None:
        session.ended = True

    access.write(records.end_record(abandon, now if access.policy.timed else None), end)
