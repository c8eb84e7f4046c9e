"""Execution of a plan: its calls go through the gate, one after another.

Text: docs/execute.md.  The record of a call is on disk before the tool is called.  If the process
is killed, the outcome of the call is unknown, and the next execution first asks the caller for it.
A call is repeated only with the same key, and only if its tool acts once for each key.  The caller
supplies the open arguments of a call; they are copied before the gate decides.  One budget pays for
the quotes of searches and for the calls of models (docs/budgets.md).

A call ends as done, failed or unknown.  A plain function runs in its own thread.  After its
deadline it cannot be stopped, and its result is ignored.  Servers start before the first call and
end after the last call.  An answer with `isError` is an error; the grammar says whether an error
means that nothing happened.  Cost: the gate and the tools; a thread for each call of a plain
function; a process for each server.
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
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.budget import adapters_in, atoms_in
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.inspection import Happened
from tcc_runtime.gate.permit import Took
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import KEY, MODEL
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.quotes import Quoter

# Calls of tools with a deadline: in this process, or on an MCP server over stdio.


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The end of a call.

    Attributes:
        outcome: the outcome for the gate.
        result: the result of a call that is done.
        answer: the answer in the result.
        read: whether the call failed with an answer that the agent may read.
        reason: why the call is not done, for the caller; it may contain arguments.
        logged: the same for logs, without words of the tool.
        took: the amounts that the tool states; None: none.
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
    """Call a tool and wait for its result, at most `deadline` seconds."""
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
        # Raised by the deadline or by the tool: in both cases the outcome is not known.
        reason = "the deadline has passed" if str(error) == "" else str(error)
        return CallResult(outcome="unknown", reason=reason, logged=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        return _raised("failed" if bound.errors_failed else "unknown", error)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # sys.exit() of a tool does not end this process
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
    """Return whether this task is being cancelled.  A tool may raise the same error."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _in_thread(bound: Bound, given: Mapping[str, Any]) -> Any:
    """Run a plain function in a daemon thread and return its result."""
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
        except (StopIteration, GeneratorExit) as error:  # futures do not accept these
            raised = RuntimeError(f"the tool raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - the waiting task raises it
            raised = error
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(tell, result, raised)
            except RuntimeError:  # the loop was closed meanwhile
                return

    threading.Thread(target=work, daemon=True, name="tcc-tool").start()
    return await future


# MCP servers of an execution.


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer of a server.

    Attributes:
        answer: the result of the MCP SDK.
        result: its structured content, else the texts of its content.
        text: the beginning of these texts, for a message.
    """

    answer: Any
    result: Any
    text: str


class ExecutionServers:
    """The servers of one execution.

    Args:
        commands: the command of each server by its name in the grammar.
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
        """Return whether a server with this name was started."""
        return server in self._clients

    async def call(
        self, server: str, tool: str, arguments: dict[str, Any], key: str, model: str
    ) -> ServerAnswer:
        """Call a tool of a server.

        Key and model are in `_meta`, because they are no arguments of the tool.

        Raises:
            Failed: the server would get a rounded number; nothing was called.
            KeyError: no server has this name.
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
    """Return all arguments of a call: those of the plan, and a copy of those of the caller.

    Raises:
        TypeError: the caller gave no mapping, or an argument that the plan chooses.
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
        raise TypeError(f"{step.tool} has no open argument {str(listed[0])[:80]!r}")
    return {**step.arguments, **snapshot(dict(opened))}


# The budget of an execution: limits, weights and an account.

_WEIGHTS: Final = ("price_weight", "latency_weight", "epsilon_weight")
_LIMITS: Final = ("price_cap", "sla_ms", "epsilon_cap", "margin", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Funds:
    """The budget of an execution.

    Attributes:
        atoms: the mechanisms that privatised the input.
        adapters: the known adapters; None: adapters are not checked.
        account: the account that pays, if any.
    """

    atoms: tuple[Atom, ...] = ()
    adapters: tuple[Adapter, ...] | None = None
    account: Account | None = None


def settle_budget(
    gate: Gate, run: Run | None, funds: Funds, quoted: bool, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Set the budget of the session, and return the settings of searches.

    Args:
        run: the run before the execution.  The cost of its questions counts if the budget is new.
        quoted: whether the caller passed a quoter.

    Raises:
        SettingsError: a limit was given, but no question and no model can cost anything.
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
    """Require that limits have a purpose: questions (costs are ranges), or models that make
    calls.
    """
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
    """Return the settings of a search, which gets the budget only if it may ask questions."""
    if artifact.fixed_costs:
        return {name: value for name, value in settings.items() if name not in _LIMITS}
    return {**settings, "atoms": funds.atoms, **gate.limits}


Deadline: TypeAlias = "float | Mapping[str, float] | None"
# The outcome of a call that was unknown: done or failed, and the answer if it is done.
Known: TypeAlias = "tuple[str, Mapping[str, Any] | None]"
Resolve: TypeAlias = "Callable[[Happened], Known | str | None]"
PLAN_REFUSED = ("R201", "R202", "R203", "R205", "R207", "R208", "R209")


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Result of an execution.

    Attributes:
        stop: the kind of its end, see :class:`tcc_runtime.executor.course.ExecutionStop`.
        reason: the reason of its end in words.
        calls: the last calls of the session, at most 1,000.
        results: the results of the calls that this execution made, by number.
        runs: the runs that were followed, in order.
        spent: the cost of questions and calls of models in this session; None without a budget.
        left: the remainder of each cap, as a text.
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
        """True if a plan was completed and the session ended."""
        return self.stop == "finished"


def execute(
    run: Run | None = None, tools: Mapping[str, Function] | None = None, **told: Any
) -> Execution:
    """Execute a plan and wait for its end; see :func:`execute_in_task` for the arguments.

    Raises:
        RuntimeError: an event loop runs in this thread; await :func:`execute_in_task` there.
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
    """Execute the best plan of a run, call by call, through a gate.

    If models may execute, a model makes each call of their tools.  One budget pays for these calls,
    for the questions of all searches and for the questions of `run` (docs/budgets.md).

    Args:
        run: a result of :func:`tcc.search` over the artifact of the gate; None: a search from the
            root.
        tools: functions by tool name; the grammar binds the other tools.
        gate: the gate of the session; a reopened session continues where it ended.
        arguments: the open arguments by tool, or a function that takes a :class:`PlanStep`.
        deadline: the seconds for a call, for all tools or by tool name; None: no deadline.
        retries: how many calls in a row may fail; each failure begins a new search.
        resolve: returns the outcome of an unknown call, or None if it does not know it.
        once: the names of tools that act once for each key.
        servers: commands of MCP servers by their names in the grammar.
        seed: the seed of searches; None: derived from the key of the session.
        quoter, settings: options of searches, see :func:`tcc.search`.  Caps, weights, margin and
            delta also apply to the models that make calls.
        atoms: the mechanisms that privatised the input (docs/privacy.md).
        adapters: a registry of adapters, or its content.
        account: an account that pays for questions and calls, shared with other sessions and runs.

    Raises:
        ResumeError: the session began with another budget.
        AnswerError: the quoter returned a value that is no answer.
        Rejected: A101 to A107: the registry; E101 to E104: the atoms; K101 to K106: the account.
        BindingError: a tool has no function; no call was made for it.
        Refused: the arguments do not fit the tool, or the session cannot continue.
        ValueError: the run does not belong to this session.
        SettingsError: see :func:`tcc.search`.
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
        self._left = retries  # how often calls may be repeated
        self._reason = ""
        self._bound = 0  # the number of runs whose tools are bound

    async def to_the_end(self, resolve: Resolve | None) -> ExecutionStop:
        """Make the calls until the course ends."""
        while True:
            seq = self._course.unknown()
            if seq is not None:
                if self._told(seq, resolve) or await self._again(seq):
                    continue
                happened = self._gate.happened(seq)
                why = f": {self._reason}" if self._reason else ""
                return ExecutionStop(kind="unknown", reason=f"call {seq}, {happened.call}{why}")
            step = self._course.next()
            if isinstance(step, ExecutionStop):
                return step
            if self._bound < len(self._course.runs):
                # A missing function must be found before the first call, not half-way.
                self._bound = len(self._course.runs)
                for tool in self._course.tools():
                    self._bindings.of(tool)
            held = await self._make(step)
            if held is not None:
                return held

    async def _make(self, step: PlanStep) -> ExecutionStop | None:
        """Make the call of a step; return the end of the execution if a person has to decide."""
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
            if refusal.code not in PLAN_REFUSED:
                raise
            self._course.refuse(step, refusal.code)
        except Pending as pending:
            return ExecutionStop(kind="pending", reason=str(pending))
        return None

    def _told(self, seq: int, resolve: Resolve | None) -> bool:
        """Resolve a call if the owner knows its outcome; return whether it was resolved."""
        said = None if resolve is None else resolve(self._gate.happened(seq))
        if said is None:
            return False
        outcome, observed = (said, None) if isinstance(said, str) else said
        self._gate.resolve(seq, _known(outcome), observed)
        return True

    async def _again(self, seq: int) -> bool:
        """Repeat a call with its key if its tool acts once for each key; return whether to
        continue.
        """
        step, gate = self._course.made_step(seq), self._gate
        bound = self._bindings.of(step.tool)
        if gate.happened(seq).model:
            self._reason = "a model made it, and the budget for another call is not reserved"
            return False
        if not bound.once or self._left <= 0:
            return False
        given = await arguments_of(step, self._arguments)
        if not gate.is_call(seq, step.tool, given):
            self._reason = "its open arguments have changed, so it is not repeated"
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
        except ValueError as error:  # the tool does not declare such an answer
            self._reason, self._left = str(error), 0
            return False
        if done:
            self._course.results[seq] = ended.result
        return True

    def _seconds(self, tool: str) -> float | None:
        return self._deadline.get(tool) if isinstance(self._deadline, Mapping) else self._deadline


def _known(outcome: str) -> Any:
    if outcome not in ("done", "failed"):
        raise ValueError(f"a resolved outcome is 'done' or 'failed', not {outcome!r}")
    return outcome


def _check_deadline(deadline: Deadline) -> None:
    for seconds in deadline.values() if isinstance(deadline, Mapping) else (deadline,):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise SettingsError("deadline", "more than 0 seconds", seconds)
