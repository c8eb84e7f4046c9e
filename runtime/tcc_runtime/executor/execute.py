"""Executes a plan: each of its calls through the gate, one after the other.

Text: docs/execute.md.  The record of a call is on disk before the tool is called.  If this process
is killed, the outcome of the call is unknown, and the caller is asked for it before anything else
happens.  A call is repeated only with its own key, and only for a tool that is idempotent by key.
The open arguments of a call come from the caller and are copied before the gate decides on them.
One budget pays for the quotes of the searches and for the calls of models (docs/budgets.md).

A call ends as done, failed, or unknown.  A function that is no coroutine runs in a thread of its
own: past its deadline it cannot be stopped, and nothing waits for it.  Servers start before the
first call and end after the last one; the MCP SDK is imported only where there is a server.  An
answer with `isError` is an error; whether it means that nothing happened is for the grammar to say.
Cost: that of the gate and of the tools; a thread for each call of a plain function; a process for
each server; a record of the session ledger for the budget.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias

from tcc_certs.policy.atoms import Atom
from tcc_certs.policy.plans import executing
from tcc_certs.replay.amounts import SpentAmounts
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import BindingError, Failed, SettingsError
from tcc_runtime.executor.binding import Bindings, Bound, Function
from tcc_runtime.executor.course import ExecutionStop, PlanCourse, PlanStep
from tcc_runtime.gate.answers import Outcome, ToolAnswer, answer_of, outcome_of
from tcc_runtime.gate.arguments import is_kept, plain, snapshot
from tcc_runtime.gate.budget import adapters_in, atoms_in
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.inspection import Happened
from tcc_runtime.gate.permit import Took
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import KEY, MODEL
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.quotes import Quoter

# Calls a tool with a deadline: in this process, or on an MCP server over stdio.


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """How a call ended.

    Attributes:
        outcome: as the gate is told.
        result: what came back, of a call that is done.
        answer: what that says.
        read: whether it failed with an answer.
        reason: why it is not known to be done, for who asked for the call: a tool's words may
            quote its arguments.
        logged: the same in words of our own, for logs.
        took: what it took, as it says; None: it says nothing.
    """

    outcome: Outcome
    result: object = None
    answer: ToolAnswer | None = None
    read: bool = False
    reason: str = ""
    logged: str = ""
    took: Took | None = None


async def called(
    bound: Bound, arguments: Mapping[str, Any], key: str, deadline: float | None, model: str = ""
) -> CallResult:
    """Calls a tool and waits for what comes back, `deadline` seconds at most."""
    given = {**arguments, KEY: key} if bound.takes_key else dict(arguments)
    if bound.takes_model:
        given[MODEL] = model
    try:
        async with asyncio.timeout(deadline):
            result = bound.function(**given) if bound.in_task else await _in_thread(bound, given)
            if inspect.isawaitable(result):
                result = await result
    except Failed as error:
        return CallResult(outcome="failed", reason=str(error), logged=type(error).__name__)
    except TimeoutError as error:
        # The deadline's or the tool's own: whether it has happened is not known either way.
        reason = "the deadline has passed" if str(error) == "" else str(error)
        return CallResult(outcome="unknown", reason=reason, logged=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises says the same
        return _raised("failed" if bound.errors_failed else "unknown", error)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # sys.exit() of a tool does not end us
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        return _raised("unknown", error)
    took = result if isinstance(result, Took) else None
    told = result if took is None else took.result
    answer = answer_of(told.answer if isinstance(told, ServerAnswer) else told)
    outcome, logged = outcome_of(bound, answer)
    if isinstance(told, ServerAnswer):
        told, reason = told.result, f"{logged}: {told.text}"
    else:
        reason = logged
    if outcome != "done":
        read = outcome == "failed"
        return CallResult(outcome=outcome, reason=reason, logged=logged, took=took, read=read)
    return CallResult(outcome="done", result=told, answer=answer, took=took)


def _raised(outcome: Outcome, error: BaseException) -> CallResult:
    name = type(error).__name__
    return CallResult(outcome=outcome, reason=f"{name}: {error}", logged=name)


def _is_cancelled() -> bool:
    """Whether somebody cancels this task; a tool may raise the same error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _in_thread(bound: Bound, given: Mapping[str, Any]) -> Any:
    """What a plain function gives back; a thread that nobody waits for any more dies with us."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: object = None
        raised: BaseException | None = None
        try:
            result = context.run(bound.function, **given)
        except (StopIteration, GeneratorExit) as error:  # which no future, no coroutine takes
            raised = RuntimeError(f"the tool raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            raised = error
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(tell, result, raised)
            except RuntimeError:  # the loop was closed just now
                return

    threading.Thread(target=work, daemon=True, name="tcc-tool").start()
    return await future


# MCP servers of an execution.


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server answered.

    Attributes:
        answer: the result of MCP, as the SDK has it.
        result: its structured content, else the texts of its content.
        text: the start of these texts, for a message.
    """

    answer: Any
    result: Any
    text: str


class ExecutionServers:
    """The servers of one execution.

    Args:
        commands: of each by its name in the grammar.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self._commands = commands
        self._stack = AsyncExitStack()
        self._clients: dict[str, Any] = {}

    async def __aenter__(self) -> ExecutionServers:
        try:
            for name in self._commands:
                self._clients[name] = await self._start(name)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def has(self, server: str) -> bool:
        """Whether there is a server of that name."""
        return server in self._clients

    async def call(
        self, server: str, tool: str, arguments: dict[str, Any], key: str, model: str
    ) -> ServerAnswer:
        """Call a tool.

        Key and model go in `_meta`: they are no arguments of the tool, and a server that does not
        know them may ignore them.

        Raises:
            Failed: a number has more digits than the server would get; nothing is called.
            KeyError: there is no such server.
        """
        if not is_kept(arguments):
            raise Failed(f"{tool}: a number of which the server would get another one")
        meta = {"tcc/idempotency-key": key, **({"tcc/model": model} if model else {})}
        answer = await self._clients[server].call_tool(tool, plain(arguments), meta=meta)
        texts = [part.text for part in answer.content if getattr(part, "type", "") == "text"]
        structured = answer.structured_content
        result = texts if structured is None else structured
        return ServerAnswer(answer, result, " ".join(texts)[:200])

    async def _start(self, name: str) -> Any:
        command = self._commands[name]
        if isinstance(command, str) or not command:
            raise BindingError(name, "a command is a list of texts, not empty")
        try:
            from mcp import Client, StdioServerParameters
        except ImportError:
            said = "MCP servers need the extra: pip install 'tcc[mcp]'"
            raise BindingError(name, said) from None
        told = StdioServerParameters(command=command[0], args=list(command[1:]))
        return await self._stack.enter_async_context(Client(told))


# Executes a plan.

# Open arguments of calls.

Opened: TypeAlias = "Mapping[str, Any]"
Source: TypeAlias = (
    "Mapping[str, Opened] | Callable[[PlanStep], Opened | Awaitable[Opened | None] | None]"
)


async def arguments_of(step: PlanStep, source: Source | None) -> dict[str, Any]:
    """All arguments of a call: the plan's, and a copy of those of the caller.

    Raises:
        TypeError: the caller gave no mapping, or an argument that the plan decides.
    """
    opened: Any = None
    if callable(source):
        opened = source(step)
        if inspect.isawaitable(opened):
            opened = await opened
    elif source is not None:
        opened = source.get(step.tool)
    if opened is None:
        opened = {}
    if not isinstance(opened, Mapping):
        raise TypeError(f"{step.tool}: open arguments are a mapping, not {type(opened).__name__}")
    listed = [name for name in opened if name not in step.opened]
    if listed:
        raise TypeError(f"{step.tool} has no open parameter {str(listed[0])[:80]!r}")
    return {**step.arguments, **snapshot(dict(opened))}


# Budget of an execution: limits, weights and the account that is drawn on.

_WEIGHTS: Final = ("price_weight", "latency_weight", "epsilon_weight")
_LIMITS: Final = ("price_cap", "sla_ms", "epsilon_cap", "margin", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Funds:
    """What an execution is handed beside its settings.

    Attributes:
        atoms: what privatised the input.
        adapters: of a registry; None: nothing is said of any.
        account: that is drawn on.
    """

    atoms: tuple[Atom, ...] = ()
    adapters: tuple[Adapter, ...] | None = None
    account: Account | None = None


def settle_budget(
    gate: Gate, run: Run | None, funds: Funds, quoted: bool, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of searches, once the session has its budget, where there is one.

    Args:
        run: that goes before; what its asks took counts where the budget is new.
        quoted: whether there is somebody to ask.

    Raises:
        SettingsError: a limit of nothing: nobody is asked, and no model makes calls.
        ResumeError: the session has another budget.
    """
    limits = {name: settings[name] for name in _LIMITS if settings.get(name) is not None}
    artifact = gate.artifact
    makes = any(executing(tool.models) for tool in artifact.core.tools)
    needed = bool(makes or limits or funds.atoms or funds.account)
    if not makes:
        _require_something(artifact, limits, funds, quoted)
    if needed and settings.get("raw_input_dependent") and ("delta" in limits or funds.atoms):
        found = "raw_input_dependent"
        raise SettingsError("delta", "none, as nothing is stated of raw input", found)
    if needed:
        weights = {name: settings[name] for name in _WEIGHTS if name in settings}
        new = gate.budget(
            atoms=funds.atoms,
            adapters=funds.adapters,
            account=funds.account,
            **weights,
            **limits,
        )
        if new and run is not None:
            gate.searched(run, None)
    return _searching(artifact, gate, funds, settings)


def _require_something(
    artifact: Artifact, limits: Mapping[str, Any], funds: Funds, quoted: bool
) -> None:
    """Limits are of asks, where costs are ranges, or of models that make calls."""
    if artifact.fixed_costs:
        for name in limits:
            if name != "delta" or not funds.atoms:
                due = "none, as no cost is a range and no model makes calls"
                raise SettingsError(name, due, limits[name])
    if funds.account is not None and (artifact.fixed_costs or not quoted):
        due = "none, as nobody is asked and no model makes calls"
        raise SettingsError("account", due, funds.account.id)


def _searching(
    artifact: Artifact, gate: Gate, funds: Funds, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What a search is told: of a budget only where it may ask."""
    if artifact.fixed_costs:
        return {name: value for name, value in settings.items() if name not in _LIMITS}
    return {**settings, "atoms": funds.atoms, **gate.limits}


Deadline: TypeAlias = "float | Mapping[str, float] | None"
# Of a call whose outcome is unknown: done or failed, with the observed values of one that is done.
Known: TypeAlias = "tuple[str, Mapping[str, Any] | None]"
Resolve: TypeAlias = "Callable[[Happened], Known | str | None]"
_PLAN_REFUSED = ("R201", "R202", "R203", "R205", "R207", "R208")


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Result of an execution.

    Attributes:
        stop: why it ended: see :class:`tcc_runtime.executor.course.ExecutionStop`.
        reason: the same in words.
        calls: of the session, all of them.
        results: what the calls gave back that this execution made, by their numbers.
        runs: the runs that were followed, in order.
        spent: what asks and calls of models have taken in this session; None without a budget.
        left: of each cap, as a text.
    """

    stop: str
    reason: str
    calls: tuple[Happened, ...]
    results: Mapping[int, object]
    runs: tuple[Run, ...]
    spent: SpentAmounts | None = None
    left: Mapping[str, str] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether a plan was done to its end, and the session has ended there."""
        return self.stop == "finished"


def execute(
    run: Run | None = None, tools: Mapping[str, Function] | None = None, **told: Any
) -> Execution:
    """Does a plan and waits for its end: :func:`execute_in_task`, with the same arguments.

    Raises:
        RuntimeError: an event loop runs in this thread: there, await :func:`execute_in_task`.
    """
    return asyncio.run(execute_in_task(run, tools, **told))


async def execute_in_task(
    run: Run | None = None,
    tools: Mapping[str, Function] | None = None,
    *,
    gate: Gate,
    arguments: Source | None = None,
    deadline: Deadline = None,
    retries: int = 3,
    resolve: Resolve | None = None,
    once: Collection[str] = (),
    servers: Mapping[str, Sequence[str]] | None = None,
    seed: bytes | None = None,
    quoter: Quoter | None = None,
    atoms: Sequence[Mapping[str, Any] | Atom] = (),
    adapters: str | Path | Iterable[Adapter] | None = None,
    account: Account | None = None,
    **settings: Any,
) -> Execution:
    """Does the best plan of a run, call by call, through a gate.

    Where models may execute, one of them makes each call of their tools, within the remainder of
    the budget that the asks of all searches, and of `run`, draw on as well (docs/budgets.md).

    Args:
        run: of :func:`tcc.search` over the gate's artifact; None searches from the root.
        tools: functions by the names of tools; what is missing is what the grammar binds.
        gate: of the session; one that was reopened goes on where it was.
        arguments: the open arguments: by tool, or a callable from a :class:`Step`.
        deadline: seconds for a call: of every tool, or by tool.
        retries: how many calls in a row may fail; each begins a new search.
        resolve: is asked what became of a call whose outcome is unknown; None: it does not know.
        once: tools that do nothing twice for one key.
        servers: commands of MCP servers by the names that the grammar has for them.
        seed: of searches; None takes one that follows from the session's key.
        quoter, settings: of searches, as of :func:`tcc.search`; caps, weights, margin and delta
            are those of the models that make calls, too.
        atoms: the mechanisms that privatised the input before, as docs/privacy.md has them.
        adapters: a registry that models may run with, or what is in one.
        account: that asks and calls draw on, as other sessions and runs do.

    Raises:
        ResumeError: the session was begun with another budget.
        AnswerError: the quoter gives something that is no answer.
        Rejected: A101 to A107, of the registry; E101 to E104, of atoms; K101 to K106, of the
            account.
        BindingError: nothing is bound to a tool; nothing was called for it.
        Refused: arguments are none of the tool's, or the session cannot be gone on with.
        ValueError: the run is no run of this session.
        SettingsError: as of a search.
    """
    _check_deadline(deadline)
    known = adapters_in(adapters)
    funds = Funds(atoms=atoms_in(atoms), adapters=known, account=account)
    searching = settle_budget(gate, run, funds, quoter is not None, settings)
    course = PlanCourse(
        gate,
        run,
        seed=seed,
        retries=retries,
        quoter=quoter,
        settings=searching,
        adapters=known,
    )
    async with ExecutionServers(servers or {}) as remote:
        bindings = Bindings(gate.artifact, tools, once, remote if servers else None)
        doing = _Doing(gate, course, bindings, arguments, deadline, retries)
        stop = await doing.to_the_end(resolve)
    if stop.kind == "finished":
        gate.finish()
    return Execution(
        stop=stop.kind,
        reason=stop.reason,
        calls=gate.history,
        results=dict(course.results),
        runs=tuple(course.runs),
        spent=gate.spent,
        left=gate.budget_left,
    )


class _Doing:
    """An execution under way."""

    def __init__(
        self,
        gate: Gate,
        course: PlanCourse,
        bindings: Bindings,
        arguments: Source | None,
        deadline: Deadline,
        retries: int,
    ) -> None:
        self._gate, self._course, self._bindings = gate, course, bindings
        self._arguments, self._deadline = arguments, deadline
        self._left = retries  # times that calls are made again
        self._reason = ""
        self._bound = 0  # runs whose tools were looked up

    async def to_the_end(self, resolve: Resolve | None) -> ExecutionStop:
        """Call by call, until there is no next one."""
        while True:
            seq = self._course.unknown()
            if seq is not None:
                if self._told(seq, resolve) or await self._again(seq):
                    continue
                happened = self._gate.history[seq - 1]
                why = f": {self._reason}" if self._reason else ""
                return ExecutionStop(kind="unknown", reason=f"call {seq}, {happened.call}{why}")
            step = self._course.next()
            if isinstance(step, ExecutionStop):
                return step
            if self._bound < len(self._course.runs):
                # Before the first call of a plan: it is no use to find out half-way.
                self._bound = len(self._course.runs)
                for tool in self._course.tools():
                    self._bindings.of(tool)
            await self._make(step)

    async def _make(self, step: PlanStep) -> None:
        bound, gate = self._bindings.of(step.tool), self._gate
        given = await arguments_of(step, self._arguments)
        try:
            async with gate.call(step.tool, given) as permit:
                seconds = self._seconds(step.tool)
                ended = await called(bound, permit.arguments, permit.key, seconds, permit.model)
                self._reason = ended.reason
                if ended.outcome == "done":
                    permit.done(ended.result, ended.answer, took=ended.took)
                    self._course.results[permit.seq] = ended.result
                elif ended.outcome == "failed":
                    permit.failed(ended.logged, answered=ended.read)
                else:
                    permit.unknown(ended.logged)
        except Refused as refusal:
            if refusal.code not in _PLAN_REFUSED:
                raise
            self._course.refuse(step, refusal.code)

    def _told(self, seq: int, resolve: Resolve | None) -> bool:
        """Whether the owner knows what became of a call."""
        said = None if resolve is None else resolve(self._gate.history[seq - 1])
        if said is None:
            return False
        outcome, observed = (said, None) if isinstance(said, str) else said
        self._gate.resolve(seq, _known(outcome), observed)
        return True

    async def _again(self, seq: int) -> bool:
        """Makes a call again, with its key, where the tool does nothing twice for one key."""
        step, gate = self._course.made_step(seq), self._gate
        bound = self._bindings.of(step.tool)
        if gate.history[seq - 1].model:
            self._reason = "a model made it, and what it would take again is not reserved"
            return False
        if not bound.once or self._left <= 0:
            return False
        given = await arguments_of(step, self._arguments)
        if not gate.is_call(seq, step.tool, given):
            self._reason = "its open arguments are others now, so it is not made again"
            return False
        self._left -= 1
        ended = await called(bound, given, gate.key_of(seq), self._seconds(step.tool))
        self._reason = ended.reason
        return self._resolved(seq, ended)

    def _resolved(self, seq: int, ended: CallResult) -> bool:
        if ended.outcome == "unknown":
            return self._left > 0
        done = ended.outcome == "done"
        observed = ended.answer.value if done and ended.answer is not None else None
        try:
            self._gate.resolve(seq, ended.outcome, observed)
        except ValueError as error:  # what came back is none of the tool's observed values
            self._reason, self._left = str(error), 0
            return False
        if done:
            self._course.results[seq] = ended.result
        return True

    def _seconds(self, tool: str) -> float | None:
        return self._deadline.get(tool) if isinstance(self._deadline, Mapping) else self._deadline


def _known(outcome: str) -> Any:
    if outcome not in ("done", "failed"):
        raise ValueError(f"what became of a call is done or failed, not {outcome!r}")
    return outcome


def _check_deadline(deadline: Deadline) -> None:
    for seconds in deadline.values() if isinstance(deadline, Mapping) else (deadline,):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise SettingsError("deadline", "more than 0 seconds", seconds)
