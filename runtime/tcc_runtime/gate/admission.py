"""Admission of a call: whether it may be made, and how it begins.

The checks are made in the order of docs/spec/session.md, section 8: the tool, its arguments, the
statements, the plan.  Then comes the model that makes the call.  The gate writes the record of an
admitted call before the session changes.
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

_MOST_BEHIND: Final = 60_000  # the most milliseconds by which the clock may lag the last record

# Decisions; they have no effect.


class Permitted(Struct, frozen=True, gc=False):
    """A call that may be made.

    Attributes:
        offer: the tool and the listed arguments of the call, as the automaton knows them.
        call: the call as statements see it, with the states of all arguments.
        opened: the ledger entries of its open arguments, by name.
        approvals: the ids of the approvals that the call uses.
    """

    offer: Offer
    call: Call
    opened: Mapping[str, Json]
    approvals: tuple[str, ...] = ()


class Held(Struct, frozen=True, gc=False):
    """A call that nothing refuses, but that a person has to approve.

    Attributes:
        offer, call: see :class:`Permitted`.
        asked: the text of the call and the digests of its open arguments: equal calls share a
            question.
        opened: the entries of its open arguments for the `ask` record, by name.
        statement: the number of the `ask` statement.
        question: the open question about the call; None: no question is open, so the gate asks.
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
    """Decide a call: return it if it is allowed or needs a person, else return the refusal.

    The function records nothing, and does not look at the account.

    Args:
        clock: returns UTC milliseconds since 1970.
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
    """Decide a call that only `ask` statements refuse, by the verdicts of persons.

    Args:
        asks: the numbers of the `ask` statements that apply.

    Returns:
        A `Decision` with R209 if a person denied the call.  `Held` if a question is open or has to
        be asked.  `Permitted` if each statement has an approval.
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
    """Return the decision R211 on a call that a person has to approve."""
    text = session.policy.texts[found.statement]
    because = [statement_reason(session.policy, found.statement)]
    return decision(
        session, Code.PENDING, text, offer=found.offer, statement=found.statement,
        because=lambda: because, at_ms=found.call.at_ms,
    )  # fmt: skip


def _refused(
    session: Session, call: Call, asked: Asked, refusals: Sequence[Refusal]
) -> Decision | None:
    """Return the refusal of a call by a statement, the plan or the positions, or None.

    Args:
        refusals: the statements that refuse the call.  Those of `ask` statements are ignored.
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
    """Return whether the recorded call `seq` has this tool and these arguments.

    Listed arguments are compared by value, and open arguments by the digests in the ledger.
    """
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
    """Return the call of a permit if it may begin now, and the digest of the caller's id (or None).

    Records refusals and questions, but not the call.

    Args:
        sync: whether to wait until a new question is on the disk.

    Raises:
        Refused: the call is not allowed.
        AlreadyDone: the session has a call with this id.
        Pending: a person has to decide about the call.
        NotYet: the decision depends on the outcome of a call under way.
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
    """Ask a person about a call, unless its question is open; or return a refusal.

    In a shadow session the refusal is R211, because such a session asks no person.

    Raises:
        Pending: a person has to decide.
        NotYet: the outcome of a call under way may make the question unnecessary.
        Refused: R306: the question cannot be written.
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
    """Return the refusal of a call by a limit across sessions; None: the limits have room.

    Only looks: the account does not count the call.  R306 if the account cannot be read.
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
    """Count an allowed call in the account; None: no limit across sessions counts the call.

    Args:
        known: an earlier count of this call.  It is returned if the draws are the same; otherwise
            it is taken back first.

    Raises:
        Refused: R306: the account cannot be used.
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
    """Require that the limits across sessions had room for a counted call.

    Raises:
        Refused: R202: a limit has no room.
        NotYet: a limit has no room, but a call under way may give some back.
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
    """Return whether a call under way counts in the account, so that its failure would give room
    back.
    """
    return any(session.made.of(seq).drawn is not None for seq in session.under_way)


def no_room(session: Session, limit: int, found: Permitted | Held) -> Decision:
    """Return the refusal R202 of a call for which a limit across sessions has no room.

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
    """Decide the call of a permit, record it and begin it.  The caller has the turn.

    Args:
        sync: whether to wait until the record is on the disk.
        above: the parent's side of the call, whose budget chooses the model.
        counting: the count of the call in the account, if the caller has made it; None: count it
            here.

    Raises:
        Refused: the call is not allowed.
        AlreadyDone: the session has a call with this id.
        Pending: a person has to decide about the call.
        NotYet: the decision depends on the outcome of a call under way.
        BindingError: a model makes the call but the caller takes no model, or the reverse.
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
        counting.recorded = True  # the record may be on the disk from here on
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
    # added before the turn is passed on, so that the thread that passes it finds the ticket
    access.pending.add(ticket)
    access.followed()
    ticket.began = access.clock()
    permit.admitted(seq, key, ticket, model)


def _require_bound(access: Access, tool: str, takes_model: bool) -> None:
    """Require that the caller takes a model exactly if a model makes the calls of the tool.

    Raises:
        BindingError: otherwise.
    """
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
    """Return whether an allowed call must wait because of the calls under way."""
    session, executions, offer = access.session, access.follower.executions, found.offer
    if session.waits(offer, access.records_before_next()):
        return True
    tools = {offer.tool, *[session.made.of(seq).offer.tool for seq in session.under_way]}
    return executions is not None and any(map(executions.makes, tools))


def _execution(access: Access, found: Permitted, tool: str) -> ModelCall | None:
    """Reserve the cost of an allowed call and choose its model; None: no model makes calls of its
    tool.

    Raises:
        Refused: R205: the account has too little for every model.
        Rejected: see :func:`admit`.
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
    """Return the keyed digest that the ledger has of the caller's id.

    Raises:
        Refused: R106: the id is no text.
        AlreadyDone: the session has a call with this id.
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
