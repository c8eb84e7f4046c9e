"""Tools of agent frameworks behind a gate: one module per framework, imported on use.

For other frameworks use :meth:`tcc.Gate.wrap`.  Documentation: docs/frameworks.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from tcc_runtime.errors import BindingError
from tcc_runtime.gate.answers import ToolAnswer, answer_of
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import errors_failed, raised, refusal_text

GateSource: TypeAlias = "Gate | Callable[[Any], Gate]"
# For a call that waits for a person: the framework stops and asks (interrupt), or the model gets
# the question as a text (tell).
WhenPending: TypeAlias = Literal["interrupt", "tell"]


def of_one_artifact(source: GateSource) -> GateSource:
    """Wrap a source of gates so that it raises if two of its gates have different artifacts."""
    if isinstance(source, Gate):
        return source
    digest: bytes | None = None

    def found(context: Any) -> Gate:
        nonlocal digest
        gate = source(context)
        if isinstance(gate, Gate):
            digest = digest or gate.artifact.digest
            if gate.artifact.digest != digest:
                raise BindingError("gate", "the gate for this context holds to another artifact")
        return gate

    return found


def gate_of(source: GateSource, context: object, tool: str) -> Gate:
    """Return the gate that decides a call: `source` itself, or its result for the context.

    Raises:
        BindingError: `source` has no gate for the context, so the tool must not run.
    """
    if isinstance(source, Gate):
        return source
    if context is None:
        raise BindingError(tool, "it was run without a context, which says whose gate decides")
    try:
        found = source(context)
    except BindingError:
        raise
    except Exception as error:  # the user's function may raise anything
        said = f"no gate for this context: {type(error).__name__}"
        raise BindingError(tool, said) from error
    if not isinstance(found, Gate):
        raise BindingError(tool, f"for this context there is {type(found).__name__}, no gate")
    return found


def require_tools(source: GateSource, names: list[str]) -> None:
    """Check that the grammar has every tool, if the gate is already known.

    Raises:
        BindingError: the grammar has no such tool, or a name is repeated.
    """
    known = {one.name for one in source.artifact.core.tools} if isinstance(source, Gate) else None
    for at, name in enumerate(names):
        if known is not None and name not in known:
            raise BindingError(name, "the grammar has no such tool")
        if name in names[:at]:
            raise BindingError(name, "it is given twice")


async def made(
    gate: Gate,
    tool: str,
    arguments: Any,
    run: Callable[[Any], Awaitable[Any]],
    *,
    ref: str | None,
    read: Callable[[Any], ToolAnswer] = answer_of,
) -> Any:
    """Make a call inside a permit, and return its result.

    Args:
        gate: the gate that decides.
        tool: the name of the tool in the grammar.
        arguments: JSON values by name; anything else is refused with R106.
        run: runs the tool with the copy of the arguments that the gate decided on.
        ref: the framework's id of the call.
        read: extracts the tool's answer from the framework's result.

    Returns:
        the result of the tool, or a :class:`Refusal` (a text for the model) if the call is refused
        or waits for a person.
    """
    failing = errors_failed(gate.artifact)
    permit = gate.call(tool, arguments, ref=ref, takes_model=False)
    try:
        async with permit:
            try:
                result = await run(permit.arguments)
            except BaseException as error:
                raised(permit, tool, error, failing)
                raise
            permit.done(result, read(result))
            return result
    except Refused as refusal:
        if permit.outcome is not None:  # the refusal is of a nested call inside the tool
            raise
        return Refusal(refusal_text(refusal))
    except Pending as question:
        if permit.outcome is not None:
            raise
        return Refusal(pending_text(question), question)


def pending_text(question: Pending) -> str:
    """Return the text for a model about a call that waits for a person."""
    return f"Not called. {question}."


class Refusal(str):
    """A text for the model, in place of the result of a call that was not made.

    Attributes:
        question: the question that the call waits for; None if the call is refused.
    """

    question: Pending | None

    def __new__(cls, text: str, question: Pending | None = None) -> Refusal:
        """Create the text, with the question that the call waits for."""
        made = super().__new__(cls, text)
        made.question = question
        return made
