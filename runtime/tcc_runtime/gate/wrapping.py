"""Plain functions behind a gate, and the parts that all guards share: outcomes and texts of
refusals.

The function runs inside the block of a permit, with copies of the arguments that were decided on.
Text: docs/frameworks.md.  Cost: that of the gate's decision and records.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from tcc_certs.policy.core import Tool as GrammarTool
from tcc_certs.policy.plans import executing
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import BindingError, Failed
from tcc_runtime.gate.answers import answer_of
from tcc_runtime.gate.arguments import is_member, snapshot
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.permit import Permit
from tcc_runtime.gate.refusals import Allowed, Refused

KEY: Final = "idempotency_key"
MODEL: Final = "model"
_TOLD: Final = 20  # calls that a refusal lists for a model
_GENERATORS: Final = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class Guarding(Protocol):
    """The interface of a gate that a guard needs."""

    @property
    def artifact(self) -> Artifact:
        """The artifact that the session enforces."""

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ref: str | None = None,
        takes_model: bool | None = None,
    ) -> Permit:
        """Return a permit for one call; see :meth:`tcc.Gate.call`."""


# Texts for a model.


def refusal_text(refusal: Refused) -> str:
    """Return a text for a model: the refused call, the reasons, and the calls that are allowed
    now.
    """
    said, reasons = str(refusal), refusal.because
    texts = [one["because"] or one["text"] or "" for one in reasons]
    parts = [f"Refused, and not called: {said}."]
    others = [text for text in dict.fromkeys(texts) if text not in said]
    if others:
        parts.append(f"Also: {' '.join([text.removesuffix('.') + '.' for text in others])}")
    remedies = dict.fromkeys([str(one["remedy"]) for one in reasons if one.get("remedy")])
    if remedies:
        parts.append(f"What would be allowed: {'; '.join(remedies)}.")
    parts.append(allowed_text(refusal.allowed_next))
    return " ".join(parts)


def allowed_text(allowed: Sequence[Allowed]) -> str:
    """Return a sentence for a model with the allowed calls, at most twenty of them."""
    told = [_shown(one) for one in allowed[:_TOLD]]
    if len(allowed) > _TOLD:
        told.append(f"and {len(allowed) - _TOLD} more")
    return f"Allowed now: {', '.join(told) or 'nothing'}."


def _shown(one: Allowed) -> str:
    given = [f"{name}={json.dumps(value, default=str)}" for name, value in one.arguments.items()]
    return f"{one.tool}({', '.join(given)})"


# Outcomes of calls.


def errors_failed(artifact: Artifact) -> frozenset[str]:
    """Return the names of the tools with `errors mean failed`."""
    return frozenset([tool.name for tool in artifact.core.tools if tool.errors_failed])


def raised(permit: Permit, tool: str, error: BaseException, failing: Collection[str]) -> None:
    """Report a tool that raised an exception: failed, or nothing, so that the outcome is unknown.

    It is failed if the exception is `Failed`; or if the tool's errors mean failed, except for a
    TimeoutError.

    Args:
        tool: the name of the tool.
        failing: the names of the tools with `errors mean failed`.
    """
    if permit.outcome is not None:
        return
    if isinstance(error, Failed):  # by raising `Failed` the owner states that nothing happened
        permit.failed(type(error).__name__)
    elif tool in failing and isinstance(error, Exception) and not isinstance(error, TimeoutError):
        # The model reads the error.
        permit.failed(type(error).__name__, answered=True)


# Plain functions.


def wrap(
    gate: Guarding,
    function: Callable[..., Any],
    *,
    name: str | None = None,
    injected: Sequence[str] = (),
    observe: Callable[[Any], Mapping[str, object]] | None = None,
    refused: Callable[[Refused], Any] | None = None,
    pending: Callable[[Pending], Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that runs `function` only if the gate allows the call.

    Args:
        name: the name of the tool in the grammar; None: the function's own name.
        injected: parameters that a framework fills in, and that are no arguments of the call.
        observe: returns the values of the answer from the function's result; None: they are read
            from the result (:func:`tcc_runtime.gate.answers.answer_of`).
        refused: returns the result of a refused call; None raises `Refused`.
        pending: returns the result of a call that waits for a person; None raises `Pending`.

    Raises:
        BindingError: the grammar has no such tool, the function is a generator, or a parameter
            cannot be passed by name.
    """
    tool = getattr(function, "__name__", "") if name is None else name
    declared = next((one for one in gate.artifact.core.tools if one.name == tool), None)
    if declared is None:
        raise BindingError(tool, "the grammar has no such tool")
    wrapped = _Wrapped(gate, function, declared, injected, observe)
    is_task = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )

    @functools.wraps(function)
    async def in_task(*args: Any, **keywords: Any) -> Any:
        given, arguments = wrapped.bound(args, keywords)
        try:
            permit = wrapped.permit(arguments)
            async with permit:
                return await wrapped.made_in_task(permit, given)
        except Refused as refusal:
            if refused is None or permit.outcome is not None:
                raise
            return refused(refusal)
        except Pending as question:
            if pending is None or permit.outcome is not None:
                raise
            return pending(question)

    @functools.wraps(function)
    def in_thread(*args: Any, **keywords: Any) -> Any:
        given, arguments = wrapped.bound(args, keywords)
        try:
            permit = wrapped.permit(arguments)
            with permit:
                return wrapped.made(permit, given)
        except Refused as refusal:
            if refused is None or permit.outcome is not None:
                raise
            return refused(refusal)
        except Pending as question:
            if pending is None or permit.outcome is not None:
                raise
            return pending(question)

    found: Any = in_task if is_task else in_thread
    found.__signature__ = wrapped.shown
    for hidden in (KEY, MODEL):
        if hidden in wrapped.filled:
            found.__annotations__ = {
                key: kind for key, kind in found.__annotations__.items() if key != hidden
            }
    result: Callable[..., Any] = found
    return result


class _Wrapped:
    """A function behind a gate, and its signature.

    Attributes:
        filled: the parameters that the gate fills in: ``idempotency_key``, ``model``.
        shown: the signature for callers, without these parameters.
    """

    def __init__(
        self,
        gate: Guarding,
        function: Callable[..., Any],
        declared: GrammarTool,
        injected: Sequence[str],
        observe: Callable[[Any], Mapping[str, object]] | None,
    ) -> None:
        self._gate = gate
        self._function = function
        self._tool = declared.name
        self._injected = frozenset(injected)
        self._observe = observe
        self._failing = errors_failed(gate.artifact)
        own = {one.name: one.optional for one in declared.arguments if is_member(one)}
        self._required = frozenset(name for name, optional in own.items() if not optional)
        called = type(function).__call__
        if any(is_one(one) for is_one in _GENERATORS for one in (function, called)):
            raise BindingError(self._tool, "a generator runs when its call is over: wrap no such")
        signature = inspect.signature(function)
        parameters = signature.parameters
        foreign = sorted(self._injected & own.keys())
        if foreign:
            raise BindingError(self._tool, f"{foreign[0]!r} is declared, and it is injected")
        for one in parameters.values():
            unnamed = one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL)
            if unnamed and one.name not in self._injected:
                raise BindingError(self._tool, f"its parameter {one.name!r} has no name to call by")
        self.filled = frozenset(
            name
            for name in (KEY, MODEL)
            if name in parameters
            and name not in own
            and name not in self._injected
            and (name == KEY or executing(declared.models))
        )
        self._signature = signature
        kept = [one for one in parameters.values() if one.name not in self.filled]
        self.shown = signature.replace(parameters=kept)
        taken = parameters.get(MODEL) if MODEL in self.filled else None
        self._takes_model = (
            False if taken is None else True if taken.default is taken.empty else None
        )

    def bound(
        self, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[inspect.BoundArguments, dict[str, Any]]:
        """Return the bound arguments for the function, and the arguments of the call as a gate
        decides them.

        Raises:
            TypeError: the arguments do not fit the signature.
        """
        given = self.shown.bind(*args, **keywords)
        arguments: dict[str, Any] = {}
        for name, one in self.shown.parameters.items():
            if name in self._injected:
                continue
            if one.kind is one.VAR_KEYWORD:
                if name in given.arguments:
                    given.arguments[name] = snapshot(given.arguments[name])
                    arguments |= given.arguments[name]
            elif name in given.arguments:
                arguments[name] = given.arguments[name] = snapshot(given.arguments[name])
            elif name in self._required and one.default is not one.empty:
                arguments[name] = given.arguments[name] = snapshot(one.default)
        return given, arguments

    def permit(self, arguments: Mapping[str, Any]) -> Permit:
        """Return a permit for the call, which is not entered yet."""
        return self._gate.call(self._tool, arguments, takes_model=self._takes_model)

    def made(self, permit: Permit, given: inspect.BoundArguments) -> Any:
        """Run the function, report the outcome, and return the result."""
        try:
            args, keywords = self._filled(given, permit)
            result = self._function(*args, **keywords)
            self._require_over(permit, result)
        except BaseException as error:
            raised(permit, self._tool, error, self._failing)
            raise
        self._done(permit, result)
        return result

    async def made_in_task(self, permit: Permit, given: inspect.BoundArguments) -> Any:
        """See :meth:`made`; for a coroutine function."""
        try:
            args, keywords = self._filled(given, permit)
            result = await self._function(*args, **keywords)
            self._require_over(permit, result)
        except BaseException as error:
            raised(permit, self._tool, error, self._failing)
            raise
        self._done(permit, result)
        return result

    def _filled(
        self, given: inspect.BoundArguments, permit: Permit
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments for the function, with the parameters that the gate fills in."""
        whole = inspect.BoundArguments(self._signature, given.arguments)
        if KEY in self.filled:
            whole.arguments[KEY] = permit.key
        if MODEL in self.filled and permit.model:
            whole.arguments[MODEL] = permit.model
        return whole.args, whole.kwargs

    def _require_over(self, permit: Permit, result: Any) -> None:
        """Refuse a result that keeps running after the call, because its effect would be unknown.

        Raises:
            TypeError: the result is an awaitable or a generator.
        """
        awaitable = inspect.isawaitable(result)
        if not awaitable and not inspect.isgenerator(result) and not inspect.isasyncgen(result):
            return
        permit.unknown("it is not over with its call")
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            result.close()
        if awaitable:
            raise TypeError(f"{self._tool}: a function that gives an awaitable is to be async")
        raise TypeError(f"{self._tool}: a generator runs when its call is over: wrap no such")

    def _done(self, permit: Permit, result: Any) -> None:
        answer = answer_of(result)
        if self._observe is not None:
            answer = replace(answer, value=dict(self._observe(result)))
        permit.done(result, answer)
