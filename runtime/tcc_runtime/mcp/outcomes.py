"""What a server's answer says of a call: done, failed, or that nobody knows.

Only a plain result says that a call was done.  An error may have come before the deed or after it,
so it is unknown, unless the grammar says of the tool that errors mean that it failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tcc_runtime.mcp.wire import Answer, Member


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a call ended.

    Attributes:
        structured: the structured content of the result, None where there is none.
        result: the members of the result, where it goes on to the client.
        reason: why it is not known to be done, in words of our own.
    """

    outcome: Literal["done", "failed", "unknown"]
    structured: Any = None
    result: Mapping[str, Member] | None = None
    reason: str = ""


def unknown(reason: str) -> Ending:
    """Nobody knows, for `reason`."""
    return Ending(outcome="unknown", reason=reason)


def ending_of(answer: Answer, errors_failed: bool) -> Ending:
    """How a call ended that was answered so.

    Args:
        errors_failed: whether the tool says that its errors mean that nothing happened.
    """
    if answer.error is not None:
        return unknown(f"the server answered with error {answer.error[0]}: {answer.error[1]}")
    members = answer.result
    if members is None:
        return unknown("the server answered with a result that is no object")
    kind = members["resultType"].value if "resultType" in members else "complete"
    if kind == "input_required":
        return unknown("the server asks for more, and nothing may be asked here")
    if kind != "complete":
        return unknown("the server answered with a result of an unknown type")
    error = members["isError"].value if "isError" in members else False
    if not isinstance(error, bool) or not _is_content(members.get("content")):
        return unknown("the server answered with a result that is none of a tool")
    structured = members["structuredContent"].value if "structuredContent" in members else None
    if not error:
        return Ending(outcome="done", structured=structured, result=members)
    reason = "the tool answered with an error"
    return Ending(outcome="failed" if errors_failed else "unknown", result=members, reason=reason)


def observed_in(structured: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The observed values among the members of a result's structured content."""
    if not isinstance(structured, dict):
        return {}
    return {name: structured[name] for name in names if name in structured}


def _is_content(member: Member | None) -> bool:
    blocks = None if member is None else member.value
    return isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)
