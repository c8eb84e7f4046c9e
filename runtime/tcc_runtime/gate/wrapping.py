"""A plain function behind a gate, and what every guard says of a call: made, failed, refused.

The function runs inside the block of a permit, on copies of the arguments that were decided on.
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
    """What a guard needs of a gate."""

    @property
    def artifact(self) -> Artifact:
        """What the session is held to."""

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ref: str | None = None,
        takes_model: bool | None = None,
    ) -> Permit:
        """A permit for one call."""


# What a model is told.


def refusal_text(refusal: Refused) -> str:
    """What was refused, why, and what is allowed: text that helps a model to go on."""
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
    """The calls that are allowed, as a sentence for a model; the first twenty of them."""
    told = [_shown(one) for one in allowed[:_TOLD]]
    if len(allowed) > _TOLD:
        told.append(f"and {len(allowed) - _TOLD} more")
    return f"Allowed now: {', '.join(told) or 'nothing'}."


def _shown(one: Allowed) -> str:
    given = [f"{name}={json.dumps(value, default=str)}" for name, value in one.arguments.items()]
    return f"{one.tool}({', '.join(given)})"


# Outcomes of calls.


def errors_failed(artifact: Artifact) -> frozenset[str]:
    """The names of the tools whose errors mean that nothing happened."""
    return frozenset([tool.name for tool in artifact.core.tools if tool.errors_failed])


def raised(permit: Permit, tool: str, error: BaseException, failing: Collection[str]) -> None:
    """Report a tool that raised: failed if nothing is known to have happened, else unknown.

    Args:
        failing: the tools whose errors mean that nothing happened.
    """
    if permit.outcome is not None:
        return
    if isinstance(error, Failed):  # the owner's word that nothing happened
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
    """The same function, which runs only where the gate lets the call through.

    Args:
        name: of the grammar's tool; None: the function's own.
        injected: parameters that a framework fills in: no arguments of the call.
        observe: from what the function gives back to the observed values; None: those of its
            answer (:func:`tcc_runtime.gate.answers.answer_of`).
        refused: returns the result of a refused call; None raises `Refused`.
        pending: returns the result of a call that waits for a person; None raises `Pending`.

    Raises:
        BindingError: the grammar has no such tool; or the function is a generator, or takes
            arguments that have no name.
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
    """A function and what is known of it.

    Attributes:
        filled: the parameters that the gate fills in: the key, the model.
        shown: the signature that callers see.
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
        """What the function is run with, and the arguments of the call.

        Raises:
            TypeError: the arguments are not those of the function.
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
        """A permit for the call, not yet entered."""
        return self._gate.call(self._tool, arguments, takes_model=self._takes_model)

    def made(self, permit: Permit, given: inspect.BoundArguments) -> Any:
        """Runs the function, and reports its outcome."""
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
        """As :meth:`made`."""
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
        """What the function is called with: what the gate fills in stands at its own place."""
        whole = inspect.BoundArguments(self._signature, given.arguments)
        if KEY in self.filled:
            whole.arguments[KEY] = permit.key
        if MODEL in self.filled and permit.model:
            whole.arguments[MODEL] = permit.model
        return whole.args, whole.kwargs

    def _require_over(self, permit: Permit, result: Any) -> None:
        """Refuse a result that goes on behind the call: what it does or did is unknown.

        Raises:
            TypeError: it is an awaitable or a generator.
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
