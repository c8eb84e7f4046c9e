"""Tools of agent frameworks behind a gate: a module a framework, imported where it is used.

What has no module here takes :meth:`tcc.Gate.wrap`.  Text: docs/frameworks.md.
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
# What happens to a call that waits for a person: the framework stops and asks, or the model reads
# the question.
WhenPending: TypeAlias = Literal["interrupt", "tell"]


def of_one_artifact(source: GateSource) -> GateSource:
    """The same source, whose gates all hold to the artifact of the first."""
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
    """The gate of a call: the one that was given, or that of the framework's context.

    Raises:
        BindingError: there is none for the context; then the tool is not run.
    """
    if isinstance(source, Gate):
        return source
    if context is None:
        raise BindingError(tool, "it was run without a context, which says whose gate decides")
    try:
        found = source(context)
    except BindingError:
        raise
    except Exception as error:  # the function is its owner's
        said = f"no gate for this context: {type(error).__name__}"
        raise BindingError(tool, said) from error
    if not isinstance(found, Gate):
        raise BindingError(tool, f"for this context there is {type(found).__name__}, no gate")
    return found


def require_tools(source: GateSource, names: list[str]) -> None:
    """Holds tools to a grammar that is known.

    Raises:
        BindingError: the grammar has no such tool, or it is given twice.
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
        arguments: JSON values by name; anything else is refused with R106.
        run: runs the tool with the copy of the arguments that was decided on.
        ref: the framework's id of the call.
        read: the answer in a result, without what the framework puts around it.

    Returns:
        the result of the tool; or a :class:`Refusal`, a text for the model: the call is refused, or
        waits for a person.
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
        if permit.outcome is not None:  # of something else that the tool asked for inside
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
    """A text for the model about a call that was not made, in place of a result.

    Attributes:
        question: what the call waits for; None: it is refused.
    """

    question: Pending | None

    def __new__(cls, text: str, question: Pending | None = None) -> Refusal:
        """A text about a call."""
        made = super().__new__(cls, text)
        made.question = question
        return made
