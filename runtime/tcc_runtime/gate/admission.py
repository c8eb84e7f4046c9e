"""Admission of a call: whether it may be made, and how it begins.

The order of the questions is that of docs/spec/session.md, section 8: the tool, its arguments, the
statements, the plan; then the model that makes it.  A call that is admitted has its record written
before its session goes on.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger_schema import MAX_TIME
from tcc_certs.policy.history import Call
from tcc_certs.policy.meaning import Refusal, shown
from tcc_certs.session.across import AcrossDraw
from tcc_certs.session.approvals import Asked as Subject, Question, asked_of
from tcc_certs.session.machine import Offer
from tcc_runtime.account.windows import Counting
from tcc_runtime.errors import NEEDS_MODEL, BindingError
from tcc_runtime.gate.arguments import Asked
from tcc_runtime.gate.asking import verdicts
from tcc_runtime.gate.asking.questions import pending_of, reason_of
from tcc_runtime.gate.budget import ModelCall
from tcc_runtime.gate.dead_ends import plan_reasons
from tcc_runtime.gate.permit import Permit, Ticket
from tcc_runtime.gate.reasons import refusal_reasons, statement_reason
from tcc_runtime.gate.refusals import AlreadyDone, Decision, Refused, argument_reason
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.session.records import parts_of
from tcc_runtime.gate.session.recovery import Follower
from tcc_runtime.gate.session_access import Access, decision

if TYPE_CHECKING:
    from tcc_runtime.gate.delegation import Above

_MOST_BEHIND: Final = 60_000  # milliseconds that the clock may be behind the last record

# Decisions; they have no effect.


class Permitted(Struct, frozen=True, gc=False):
    """A call that may be made.

    Attributes:
        offer: of its text.
        call: as the definition knows it.
        opened: the entries of its open arguments.
        approvals: the ids of the approvals that let it through.
    """

    offer: Offer
    call: Call
    opened: Mapping[str, Json]
    approvals: tuple[str, ...] = ()


class Held(Struct, frozen=True, gc=False):
    """A call that nothing refuses, and that a person has to decide about.

    Attributes:
        offer, call: as of :class:`Permitted`.
        asked: the call as questions name it.
        opened: the entries of its open arguments for a question.
        statement: the number of the `ask` statement.
        question: the open question; None: a person is asked now.
    """

    offer: Offer
    call: Call
    asked: Subject
    opened: Mapping[str, Json]
    statement: int
    question: Question | None


def decide(
    follower: Follower, tool: object, arguments: object, clock: Callable[[], int]
) -> Permitted | Held | Decision:
    """The call if it is allowed, or if a person has to decide about it; else the refusal.

    Args:
        clock: UTC ms.
    """
    session = follower.session
    policy = session.policy
    follower.values.forget()
    if session.ended:
        return decision(session, Code.ENDED)
    at_ms = 0
    if policy.timed:
        now = clock()
        at_ms = session.at(now)
        if at_ms > MAX_TIME:
            return decision(session, Code.NOT_WRITTEN, "clock")
        if now < session.last_ms - _MOST_BEHIND:
            return decision(session, Code.CLOCK_BEHIND, "clock")
    table = policy.tables.named(tool)
    if table is None:
        because = argument_reason(policy.core, None, Code.UNKNOWN_TOOL, "")
        return decision(session, Code.UNKNOWN_TOOL, because=lambda: [because], at_ms=at_ms)
    asked = table.read(arguments)
    if not isinstance(asked, Asked):
        code, name = asked
        because = argument_reason(policy.core, table.tool, code, name)
        return decision(session, code, clip(name, 80), because=lambda: [because], at_ms=at_ms)
    try:
        opened, states = follower.values.arguments(asked)
    except Rejected as refusal:
        because = argument_reason(policy.core, table.tool, refusal.code, refusal.path)
        return decision(session, refusal.code, refusal.path, because=lambda: [because], at_ms=at_ms)
    call = session.course.call(table.tool.name, states, at_ms)
    refusals = policy.decider.refusals(session.course.history, call, at_ms)
    refused = _refused(session, call, asked, refusals)
    if refused is not None:
        return refused
    if asked.offer is None:
        raise AssertionError("a call that the artifact has not is refused")
    makers = follower.executions
    if makers is not None and makers.makes(table.number) and makers.choice(table.number) is None:
        return decision(session, Code.NO_MODEL, "budget", offer=asked.offer, at_ms=at_ms)
    if not refusals:
        return Permitted(asked.offer, call, opened)
    asks = [one.statement for one in refusals]
    return _asked(follower, asks, call, asked.offer, opened)


def _asked(
    follower: Follower, asks: Sequence[int], call: Call, offer: Offer, opened: Mapping[str, Json]
) -> Permitted | Held | Decision:
    """What persons have decided about a call that nothing else refuses.

    Args:
        asks: the `ask` statements that apply.
    """
    session = follower.session
    policy, at_ms = session.policy, call.at_ms
    entries = follower.values.question(call.tool, call.arguments, opened)
    asked = asked_of(call.tool, offer.text, entries)
    standing = session.questions.standing(asks, asked, at_ms)
    if standing.denied is not None:
        number = standing.denied.statement
        reason = statement_reason(policy, number)
        said = reason_of(standing.denied)
        because = [{**reason, "reason": said} if said else reason]
        return decision(
            session, Code.DENIED, policy.texts[number], offer=offer, statement=number,
            because=lambda: because, at_ms=at_ms,
        )  # fmt: skip
    if standing.waiting is not None:
        number = standing.waiting.statement
        return Held(offer, call, asked, entries, number, standing.waiting)
    if standing.due is not None:
        return Held(offer, call, asked, entries, standing.due, None)
    return Permitted(offer, call, opened, standing.approvals)


def pending_decision(session: Session, found: Held) -> Decision:
    """The decision on a call that a person has to decide about."""
    text = session.policy.texts[found.statement]
    because = [statement_reason(session.policy, found.statement)]
    return decision(
        session, Code.PENDING, text, offer=found.offer, statement=found.statement,
        because=lambda: because, at_ms=found.call.at_ms,
    )  # fmt: skip


def _refused(
    session: Session, call: Call, asked: Asked, refusals: Sequence[Refusal]
) -> Decision | None:
    """The refusal of a call by statements, the plan, or the positions; None: there is none.

    Args:
        refusals: the statements that refuse it; `ask` statements are left aside.
    """
    offer = asked.offer
    course, policy, at_ms = session.course, session.policy, call.at_ms
    found = [one for one in refusals if one.code != Code.PENDING]
    if found:
        first = found[0]
        because = refusal_reasons(session, call, asked.states, [one.statement for one in found])
        return decision(
            session, Code(first.code), policy.texts[first.statement], offer=offer,
            statement=first.statement, because=lambda: because, at_ms=at_ms,
        )  # fmt: skip
    code = None if offer is None else policy.machine.look(course.held, offer).code
    if offer is None or code is Code.NOT_PLANNED:
        tool = policy.machine.tools[call.tool]
        chosen = policy.machine.listed(tool).chosen(call.arguments)
        calls = [at for _, at in policy.calls_of(tool, chosen)]
        return decision(
            session, Code.NOT_PLANNED, offer=offer, at_ms=at_ms,
            because=partial(plan_reasons, session, len(session.made), calls),
        )  # fmt: skip
    if code is not None:
        return decision(session, code, offer=offer, at_ms=at_ms)
    return None


def is_call(follower: Follower, seq: int, tool: object, arguments: object) -> bool:
    """Whether a call of the session has these arguments: by its text and by its digests."""
    session = follower.session
    table = session.policy.tables.named(tool)
    made = session.made.get(seq)
    if made is None or table is None:
        return False
    asked = table.read(arguments)
    if not isinstance(asked, Asked) or asked.offer is not made.offer:
        return False
    try:
        opened, states = follower.values.arguments(asked)
    except Rejected:
        return False
    if not opened:
        return states == made.call.arguments
    return _digests(opened) == _digests(made.opened)


def _digests(opened: Mapping[str, Json]) -> dict[str, object]:
    return {
        name: item.get("digest") if isinstance(item, dict) else None
        for name, item in opened.items()
    }


# Calls that begin.  Callers have the turn, the lock of the file and that of the session.


def admitted(access: Access, permit: Permit, *, sync: bool) -> tuple[Permitted, str | None]:
    """A call that may begin now, and the reference of the caller's id.

    Only refusals and questions are recorded.

    Args:
        sync: whether to wait until the disk has a question.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        Pending: a person has to decide about it.
        NotYet: it has to wait for an outcome of a call that is under way.
    """
    tool, session = permit.tool, access.session
    reference = None if permit.ref is None else _reference(access, tool, permit.ref)
    found = decide(access.follower, tool, permit.arguments, access.clock)
    if isinstance(found, Held) and found.question is not None and verdicts.take(access):
        found = decide(access.follower, tool, permit.arguments, access.clock)
    if isinstance(found, Held):
        found = _ask(access, found, tool, sync=sync)
    if not isinstance(found, Permitted):
        code = found.code
        if code is not None and session.may_come(code, found.statement, found.offer):
            access.not_yet(tool)
        access.record_refusal(found, tool)
        raise Refused(found, tool)
    if session.under_way and _waits(access, found):
        access.not_yet(tool)
    return found, reference


def _ask(access: Access, found: Held, tool: str, *, sync: bool) -> Decision:
    """Ask a person about a call, unless its question is open; or return the refusal.

    Raises:
        Pending: a person has to decide.
        NotYet: an outcome of a call under way may show that no person has to.
        Refused: R202, R306, R309.
    """
    session = access.session
    refused = no_room_for(access, found)
    if refused is not None:
        if _may_get_room(session):
            access.not_yet(tool)
        return refused
    if access.home.shadow:
        return pending_decision(session, found)
    if session.may_come(Code.PENDING, found.statement, found.offer):
        access.not_yet(tool)
    verdicts.watch(access)
    pending = pending_of(found.question)
    if pending is not None:
        raise pending.again()
    questions, now = session.questions, found.call.at_ms
    if questions.is_full(now):
        return decision(session, Code.MANY_QUESTIONS, offer=found.offer, at_ms=now)
    record = questions.record(found.statement, found.asked, found.opened, now)
    trouble = access.put(lambda: parts_of(record), sync=sync)
    if trouble is not None:
        access.broken(trouble, tool)
    pending = access.follower.ask(record)
    session.note_time(now)
    access.follower.values.keep()
    access.followed()
    raise pending.again(is_new=True)


def no_room_for(access: Access, found: Permitted | Held) -> Decision | None:
    """The refusal of a call by a limit across sessions; None: it has room.

    The account does not count the call.
    """
    if access.across is None:
        return None
    session = access.session
    draws = access.across.draws(session.course, found.call)
    try:
        lacks = access.across.lacks(draws, found.call.at_ms or access.clock())
    except Rejected as error:
        return decision(session, Code.NOT_WRITTEN, clip(error, 200))
    return None if lacks is None else no_room(session, lacks.limit.number, found)


def counted(access: Access, found: Permitted, known: Counting | None = None) -> Counting | None:
    """A call that is allowed, counted across sessions; None: it draws nothing.

    Args:
        known: what was counted for it already; if its draws are others, that is given back.

    Raises:
        Refused: R306 the account cannot be asked.
    """
    session, across = access.session, access.across
    if across is None:
        return None
    draws = across.draws(session.course, found.call)
    if known is not None and known.draws == draws:
        return known
    if known is not None:
        across.forget(access.follower, known)
    if not draws:
        return None
    now = found.call.at_ms if session.policy.timed else access.clock()
    try:
        return across.count(access.follower, len(session.made) + 1, draws, now)
    except Rejected as error:
        raise Refused(decision(session, Code.NOT_WRITTEN, clip(error, 200))) from error


def _has_room(access: Access, counting: Counting, found: Permitted, tool: str) -> None:
    """Whether the limits across sessions have room for a call.

    Raises:
        Refused: R202 one has none; NotYet: a call under way may give some back.
    """
    draw, session = counting.found, access.session
    if not isinstance(draw, AcrossDraw):
        return
    if _may_get_room(session):
        access.not_yet(tool)
    refused = no_room(session, draw.limit.number, found)
    access.record_refusal(refused, tool)
    raise Refused(refused, tool)


def _may_get_room(session: Session) -> bool:
    """Whether a call under way has drawn on an account, and may give it back."""
    return any(session.made.of(seq).drawn is not None for seq in session.under_way)


def no_room(session: Session, limit: int, found: Permitted | Held) -> Decision:
    """The refusal of a call for which a limit across sessions has no room.

    Args:
        limit: the number of the statement.
    """
    policy = session.policy
    values = {name: shown(state) for name, state in found.call.arguments.items()}
    arguments = policy.remedies.arguments(limit, found.call.tool, values)
    reason = statement_reason(policy, limit, arguments=arguments)
    return decision(
        session, Code.STATEMENT_REFUSES, policy.texts[limit], offer=found.offer, statement=limit,
        because=lambda: [reason], at_ms=found.call.at_ms,
    )  # fmt: skip


def admit(
    access: Access,
    permit: Permit,
    ticket: Ticket,
    *,
    sync: bool,
    counting: Counting | None = None,
    above: Above | None = None,
) -> None:
    """The call of a permit begins, in a turn.

    Args:
        above: the parent's side of the call, whose budget chooses the model.
        counting: what was counted for it across sessions; None: that is still to be done.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        Pending: a person has to decide about it.
        NotYet: it has to wait for an outcome of a call that is under way.
        BindingError: what is called is not told the model that makes it, or has none to be told.
        Rejected: K101, K103, K104, K106 of the account.
    """
    tool, follower, session = permit.tool, access.follower, access.session
    if permit.takes_model is not None and above is None:
        _require_bound(access, tool, permit.takes_model)
    found, reference = admitted(access, permit, sync=sync)
    seq, offer = len(session.made) + 1, found.offer
    across = execute = execution = None
    if access.across is not None:
        counting = counted(access, found, counting)
        if counting is not None:
            _has_room(access, counting, found, tool)
            across = counting.record()
    executions, model = follower.executions, "" if above is None else above.model(ticket)
    if executions is not None:
        try:
            execution = _execution(access, found, tool)
        except BaseException:
            if counting is not None and access.across is not None:
                access.across.forget(follower, counting)
            raise
        if execution is not None:
            execute, model = executions.fields(execution), execution.choice.model.name
    key = follower.writer.call_key(seq)
    if counting is not None:
        counting.recorded = True  # from here on: what the disk has is not known
    trouble = access.put(
        lambda: follower.writer.call(
            seq,
            offer.text,
            found.opened,
            session.course.states(),
            key=key,
            reference=reference,
            at_ms=found.call.at_ms if session.policy.timed else None,
            across=across,
            approvals=found.approvals,
            execute=execute,
        ),
        sync=sync,
    )
    if trouble is not None:
        if executions is not None and execution is not None:
            with suppress(Rejected):
                executions.give_back(execution)
        access.broken(trouble, tool)
    line = access.journal.records
    made = session.begin(
        found.call,
        offer,
        line=line,
        opened=found.opened,
        model=model,
        approvals=found.approvals,
        has_ref=reference is not None,
    )
    follower.values.keep()
    if across is not None:
        follower.drew(made, across)
    if executions is not None and execution is not None:
        executions.begin(execution)
    if reference is not None:
        follower.refs[reference] = seq
    ticket.begin(seq)
    access.pending.add(ticket)  # first: who leaves the turn finds it
    access.followed()
    ticket.began = access.clock()
    permit.admitted(seq, key, ticket, model)


def _require_bound(access: Access, tool: str, takes_model: bool) -> None:
    """A model that the ledger names is one that whoever makes the call was told."""
    table, executions = access.policy.tables.named(tool), access.follower.executions
    if table is None:
        return
    made = executions is not None and executions.makes(table.number)
    if made and not takes_model:
        raise BindingError(tool, NEEDS_MODEL)
    if takes_model and not made:
        said = "its parameter 'model' has no default, and no model is chosen"
        raise BindingError(tool, f"{said}: begin a budget, with gate.budget(..)")


def _waits(access: Access, found: Permitted) -> bool:
    """Whether a call that is allowed may not begin beside those that are under way."""
    session, executions, offer = access.session, access.follower.executions, found.offer
    if session.waits(offer, access.records_before_next()):
        return True
    tools = {offer.tool, *[session.made.of(seq).offer.tool for seq in session.under_way]}
    return executions is not None and any(map(executions.makes, tools))


def _execution(access: Access, found: Permitted, tool: str) -> ModelCall | None:
    """The model that makes a call that is allowed; None: calls of its tool are made by none.

    Raises:
        Refused: R205 the account has too little for any; Rejected: as :func:`admit`.
    """
    executions, number = access.follower.executions, found.offer.tool
    if executions is None or not executions.makes(number):
        return None
    execution = executions.reserve(number)
    if execution is None:
        refused = decision(access.session, Code.NO_MODEL, "account", offer=found.offer)
        access.record_refusal(refused, tool)
        raise Refused(refused, tool)
    return execution


def _reference(access: Access, tool: str, ref: str) -> str:
    """What stands for the caller's id.

    Raises:
        Refused: R106 it is no text; AlreadyDone: the session has it.
    """
    try:
        if type(ref) is not str:
            raise Rejected(Code.NO_VALUE, "ref", "a text", type(ref).__name__)
        reference = access.follower.writer.reference(ref)
    except Rejected as refusal:
        found = decision(access.session, refusal.code, "ref")
        access.record_refusal(found, tool)
        raise Refused(found, tool) from None
    seq = access.follower.refs.get(reference)
    if seq is None:
        return reference
    found = decision(access.session, Code.ALREADY_DONE, "ref")
    access.record_refusal(found, tool)
    error = AlreadyDone(found, tool)
    error.seq, error.outcome = seq, access.session.made.outcome(seq)
    raise error
