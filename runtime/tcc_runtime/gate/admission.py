"""Admission of a call: whether it may be made, and how it begins.

Whether a call may be made is asked in this order: the tool, its arguments, the plans, the monitors;
then what it draws across sessions, and the model that makes it.  A call that is admitted has its
record written before its session goes on.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 6.
Cost: a decision is linear in the arguments, and a few look-ups for the rest, whatever was called
before; beginning is a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from tcc_certs.core.across import Draw
from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger_schema import MAX_TIME
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.values.places import State
from tcc_runtime.account.windows import Counting
from tcc_runtime.errors import NEEDS_MODEL, BindingError
from tcc_runtime.gate.arguments import Asked
from tcc_runtime.gate.budget import ModelCall
from tcc_runtime.gate.permit import Permit, Ticket
from tcc_runtime.gate.refusals import AlreadyDone, Decision, Refused, argument_remedy, why
from tcc_runtime.gate.session.recovery import Follower
from tcc_runtime.gate.session_access import Access, decision

# Decisions; they have no effect.


class Permitted(Struct, frozen=True, gc=False):
    """A call that may be made.

    Attributes:
        asked: which.
        seen: as monitors see it; states: its fields, for statements of version 1.2.
        opened: what a record has of its open arguments; None: nobody has asked yet.
        at_ms: when it was decided; None where no statement looks at the clock.
    """

    asked: Asked
    seen: Sequence[Seen] = ()
    opened: Mapping[str, Json] | None = None
    states: Mapping[str, State] | None = None
    at_ms: int | None = None


def decide(
    follower: Follower,
    tool: object,
    arguments: object,
    clock: Callable[[], int],
    *,
    kept: bool = True,
) -> Permitted | Decision:
    """The call, where it is allowed; else the refusal.

    Args:
        clock: UTC ms; a time before that of the last call counts as that.
        kept: whether a call that is allowed may be made; else nothing is remembered of it.
    """
    reading = follower.session.reading
    known = 0 if reading is None else len(reading.marks)
    found = _decided(follower, tool, arguments, clock)
    if reading is not None and not (kept and isinstance(found, Permitted)):
        reading.forget(known)
    return found


def _decided(
    follower: Follower, tool: object, arguments: object, clock: Callable[[], int]
) -> Permitted | Decision:
    session = follower.session
    if session.ended:
        return decision(session, Code.ENDED, "")
    table = session.policy.tables.named(tool)
    if table is None:
        more = partial(argument_remedy, session.policy.core, None, Code.UNKNOWN_TOOL, "")
        return decision(session, Code.UNKNOWN_TOOL, "", more=more)
    asked = table.read(arguments)
    if not isinstance(asked, Asked):
        more = partial(argument_remedy, session.policy.core, table.tool, *asked)
        return decision(session, asked[0], clip(asked[1], 80), more=more)
    policy, offer = session.policy, asked.offer
    machine = policy.machine
    seen: Sequence[Seen] = ()
    opened = states = at_ms = None
    if machine.statements is not None or offer.tool in machine.monitors.compared:
        try:
            opened = follower.writer.opened(asked)
        except Rejected as refusal:
            return decision(session, refusal.code, refusal.path)
        states = session.fields(offer, opened)
        seen = machine.monitors.read(offer.tool, offer.values, opened)
    if machine.statements is not None and machine.statements.timed:
        at_ms = max(clock(), session.stamp)
        if at_ms > MAX_TIME:
            return decision(session, Code.NOT_WRITTEN, "clock")
    refused = session.course.refuses(offer, seen, states, at_ms or 0)
    if refused is not None:
        code, text = refused
        if code in (Code.MONITOR_FORBIDS, Code.MANY_EARLIER):
            at = len(session.made) + 1, offer.tool, states, at_ms or 0
            return decision(session, code, text, asked, why(session.course, text, *at))
        return decision(session, code, text, asked)
    made_by = follower.executions
    if made_by is not None and made_by.makes(offer.tool) and made_by.choice(offer.tool) is None:
        return decision(session, Code.NO_MODEL, "budget", asked)
    return Permitted(asked, seen, opened, states, at_ms)


def is_call(follower: Follower, seq: int, tool: object, arguments: object) -> bool:
    """Whether a call of the session has these arguments: by its text, and digest by digest."""
    session = follower.session
    table = session.policy.tables.named(tool)
    if not 1 <= seq <= len(session.made) or table is None:
        return False
    asked, made = table.read(arguments), session.made[seq - 1]
    if not isinstance(asked, Asked) or asked.offer is not made.offer:
        return False
    expected = {given[0]: follower.writer.digest(given) for given in asked.opened}
    found = {
        name: item.get("digest") if isinstance(item, dict) else None
        for name, item in made.opened.items()
    }
    return expected == found


# Calls that begin.  Callers have the turn, the lock of the file and that of the session.


def admitted(access: Access, permit: Permit) -> tuple[Permitted, str | None]:
    """A call that may begin now, and what stands for the caller's id; only a refusal is recorded.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        NotYet: it has to wait for an outcome of a call that is under way.
    """
    tool, session = permit.tool, access.session
    reference = None if permit.ref is None else _reference(access, tool, permit.ref)
    deciding = _decided if session.reading is None else decide
    found = deciding(access.follower, tool, permit.arguments, access.clock)
    if not isinstance(found, Permitted):
        code, offer = found.code, found.offer
        if code is not None and offer is not None and session.may_come(code, found.place, offer):
            access.not_yet(tool)
        if code is not Code.NOT_WRITTEN:  # no record can say when that was
            access.record_refusal(found, tool)
        raise Refused(found, tool)
    if session.under_way and _waits(access, found):
        access.not_yet(tool)
    return found, reference


def counted(access: Access, found: Permitted, known: Counting | None = None) -> Counting | None:
    """A call that is allowed, counted across sessions; None: it draws nothing.

    Args:
        known: what was counted for it already; of other draws it is given back.

    Raises:
        Refused: R306 the account cannot be asked.
    """
    session, across = access.session, access.across
    draws = drawn(access, found)
    if known is not None and known.draws == draws:
        return known
    if across is None or not draws:
        return None
    if known is not None:
        across.forget(access.follower, known)
    now = access.clock() if found.at_ms is None else found.at_ms
    try:
        return across.count(access.follower, len(session.made) + 1, draws, now)
    except Rejected as error:
        raise Refused(decision(session, Code.NOT_WRITTEN, clip(error, 200))) from error


def drawn(access: Access, found: Permitted) -> tuple[Draw, ...]:
    """What a call that is allowed draws on an account."""
    across, given = access.across, access.follower.given
    if across is None:
        return ()
    course, opened = access.session.course, found.opened or {}
    return across.draws(course, found.asked.offer, found.states, opened, given)


def _has_room(access: Access, counting: Counting, found: Permitted, tool: str) -> None:
    """Whether the limits across sessions have room for a call.

    Raises:
        Refused: R202 one has none; NotYet: a call under way may give some back.
    """
    draw, session = counting.found, access.session
    if not isinstance(draw, Draw):
        return
    if any(session.made[seq - 1].drawn is not None for seq in session.under_way):
        access.not_yet(tool)
    refused = decision(session, Code.MONITOR_FORBIDS, draw.limit.text, found.asked)
    access.record_refusal(refused, tool)
    raise Refused(refused, tool)


def admit(
    access: Access,
    permit: Permit,
    ticket: Ticket,
    *,
    sync: bool,
    counting: Counting | None = None,
    chosen: Callable[[Ticket], str] | None = None,
) -> None:
    """The call of a permit begins, in a turn.

    Args:
        counting: what was counted for it across sessions; None: that is still to be done.
        chosen: the model that the parent has chosen for it; None: there is no parent.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        NotYet: it has to wait for an outcome of a call that is under way.
        BindingError: what is called is not told the model that makes it, or has none to be told.
        Rejected: K101, K103, K104, K106 of the account.
    """
    tool, follower, session = permit.tool, access.follower, access.session
    if chosen is None and permit.takes_model is not None:
        _require_bound(access, tool, permit.takes_model)
    found, reference = admitted(access, permit)
    asked, seq = found.asked, len(session.made) + 1
    across = execute = execution = None
    if access.across is not None:
        counting = counted(access, found, counting)
        if counting is not None:
            _has_room(access, counting, found, tool)
            across = counting.record()
    executions, model = follower.executions, ""
    if executions is not None:
        try:
            execution = _execution(access, found, tool)
        except BaseException:
            if counting is not None and access.across is not None:
                access.across.forget(follower, counting)
            raise
        if execution is not None:
            execute, model = executions.fields(execution), execution.choice.model.name
    opened = found.opened
    if opened is None:
        opened = follower.writer.opened(asked) if asked.opened else {}
    parts, key = follower.writer.call(
        seq,
        asked.offer,
        opened,
        session.policy.machine.shown(session.course.held),
        reference=reference,
        at_ms=found.at_ms,
        across=across,
        execute=execute,
    )
    if counting is not None:
        counting.recorded = True  # from here on: what the disk has is not known
    trouble = access.put(parts, sync=sync)
    if trouble is not None:
        if executions is not None and execution is not None:
            with suppress(Rejected):
                executions.give_back(execution)
        access.broken(trouble, tool)
    line, at_ms = access.journal.records, found.at_ms or 0
    made = session.begin(asked.offer, found.seen, found.states, line, at_ms, opened, model)
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
    permit.admitted(seq, key, ticket, model if chosen is None else chosen(ticket))


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
    session, executions, offer = access.session, access.follower.executions, found.asked.offer
    if session.waits(offer, access.journal.records):
        return True
    tools = {offer.tool, *[session.made[seq - 1].offer.tool for seq in session.under_way]}
    return executions is not None and any(map(executions.makes, tools))


def _execution(access: Access, found: Permitted, tool: str) -> ModelCall | None:
    """The model that makes a call that is allowed; None: calls of its tool are made by none.

    Raises:
        Refused: R205 the account has too little for any; Rejected: as :func:`admit`.
    """
    executions, number = access.follower.executions, found.asked.offer.tool
    if executions is None or not executions.makes(number):
        return None
    execution = executions.reserve(number)
    if execution is None:
        refused = decision(access.session, Code.NO_MODEL, "account", found.asked)
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
    error.seq, error.outcome = seq, access.session.made[seq - 1].outcome
    raise error
