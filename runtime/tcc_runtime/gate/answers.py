"""Answers of tools, read alike at every door: value, texts and outcome.

A door removes what its own library puts around an answer.  This module decides the rest: results of
MCP, blocks of content, objects of Pydantic, and texts that are JSON.
Text: docs/spec/session.md, section 16.
Cost: linear in the answer.  Texts are compared only for a tool with `errors mean failed ~`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias

from tcc_certs.values.text_pattern import MAX_STEPS, pattern_of
from tcc_runtime.gate.arguments.json_reader import answer_in, texts_in

Outcome: TypeAlias = Literal["done", "failed", "unknown"]

TOLD_ERROR: Final = "the tool answered with an error"
UNDECIDED: Final = "its text is too long to tell whether it is an error"
MIXED: Final = "a part of its answer is an error"


class ErrorMeaning(Protocol):
    """A tool, as far as its errors are concerned."""

    @property
    def errors_failed(self) -> bool:
        """True if an error means that nothing happened."""

    @property
    def error_text(self) -> str | None:
        """The pattern of texts that are errors."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """An answer of a tool; made by :func:`answer_of`.

    Attributes:
        value: holds the answers that a grammar declares; `UNREADABLE` if none of them is known.
        shown: the texts and JSON values that a model can read.
        error: whether the answer is marked as an error; None if a part of it is.
    """

    value: Any
    shown: tuple[Any, ...]
    error: bool | None = False


_ABSENT: Final = object()
_MEMBERS: Final = frozenset(
    {
        "content", "isError", "is_error", "meta", "_meta", "resultType", "result_type",
        "structuredContent", "structured_content",
    }
)  # fmt: skip
# An object that has `content` but none of these members may come from any tool, not only MCP.
_MARKS: Final = frozenset({"isError", "is_error", "structuredContent", "structured_content"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
# Blocks that a model does not read as a text.
_MEDIA: Final = frozenset(
    {"audio", "file", "image", "image_url", "input_file", "input_image", "video"}
)
# The members of a block that holds a text.  An object with another member is an answer of the tool
# itself: its text must not replace its members.
_OF_TEXT: Final = frozenset({"type", "text", "resource", "annotations", "_meta", "meta"})
_OF_TEXT_IN_LISTS: Final = _OF_TEXT | {
    "cache_control", "citations", "extras", "id", "index", "logprobs",
}  # fmt: skip
_PLAIN: Final = frozenset({str, bool, int, float, type(None), dict, list, tuple})
_BLOCKS: Final = _TEXTS | _MEDIA | {"document", "resource", "resource_link", "search_result"}


def answer_of(
    said: Any,
    *more: Any,
    structured: Any = None,
    value: Any = _ABSENT,
    error: bool | None = False,
    blocks: bool = False,
) -> ToolAnswer:
    """Read the answer that a tool returned.

    The value is the structured content.  Without it, it is the only text, parsed as JSON if
    possible; or `said`, if there is not exactly one text.  Several blocks without structured
    content have no members.

    Args:
        said: the returned value: a result of MCP, a list of blocks of content, one block, a text,
            or any value.
        more: further values that a model reads.
        structured: the structured content that came with `said`.
        value: replaces the value that the function would read.
        error: whether the answer is marked as an error; None if a part of it is.
        blocks: whether `said` is a list of blocks, whatever their types are.
    """
    said = _opened(said)
    if _is_result(said):
        error = error if error is not False else bool(said.get("isError") or said.get("is_error"))
        structured = _first(said, "structuredContent", "structured_content")
        said, blocks = said.get("content") or [], True
    parts = _parts(said, blocks)
    if value is _ABSENT:
        text = parts[0] if parts is not None and len(parts) == 1 else said
        if structured is not None:
            value = structured
        elif isinstance(text, str):
            value = answer_in(str.__str__(text))  # a text, whatever type is derived from it
        else:
            value = said if parts is None else {}
    shown = [said] if parts is None else parts
    for one in map(_opened, more):
        others = _parts(one, blocks=False)
        shown += [one] if others is None else others
    return ToolAnswer(value, tuple(shown if structured is None else [*shown, structured]), error)


def outcome_of(tool: ErrorMeaning, answer: ToolAnswer) -> tuple[Outcome, str]:
    """Return the outcome of a call with this answer, and the reason if the call is not done.

    A failed call counts as answered: its caller has read the error.
    """
    if answer.error is not False:
        failed = answer.error and tool.errors_failed
        return ("failed" if failed else "unknown"), TOLD_ERROR
    if tool.error_text is None or not tool.errors_failed:
        return "done", ""
    reason = _error_in(tool.error_text, answer.shown)
    if reason is None:
        return "done", ""
    return ("failed" if reason is TOLD_ERROR else "unknown"), reason


def matched(source: str, text: str) -> bool | None:
    """Return whether all of a text matches; None if the match takes too many steps."""
    return _matcher(source)(text)


# The forms of answers.


def _opened(value: Any) -> Any:
    """Return the members of an object of Pydantic; any other value as it is."""
    kind = type(value)
    if kind in _PLAIN or not hasattr(kind, "__pydantic_fields__"):
        return value
    try:
        return value.model_dump()
    except Exception:  # noqa: BLE001  # its class is the owner's, and the call was made
        return value


def _first(members: Mapping[str, Any], *names: str) -> Any:
    return next((members[name] for name in names if members.get(name) is not None), None)


def _is_result(value: Any) -> bool:
    """Return whether a value has the form of a tool result of MCP."""
    if type(value) is not dict or not value or not value.keys() <= _MEMBERS:
        return False
    content = value.get("content")
    if content is None:
        structured = _first(value, "structuredContent", "structured_content")
        return isinstance(structured, dict) or True in (value.get("isError"), value.get("is_error"))
    if type(content) is list and content:
        return all(map(_is_block, content))
    return isinstance(content, list | str) and not _MARKS.isdisjoint(value)


def _is_block(value: Any, members: frozenset[str] = _OF_TEXT_IN_LISTS) -> bool:
    """Return whether a value is a block of content.

    Args:
        members: the member names that a block with a text may have.
    """
    value = _opened(value)
    if type(value) is not dict:
        return False
    kind = value.get("type")
    if type(kind) is not str or kind not in _BLOCKS:
        return False
    if kind in _TEXTS:
        return isinstance(value.get("text"), str) and value.keys() <= members
    return kind != "resource" or value.keys() <= members


def _parts(said: Any, blocks: bool) -> list[Any] | None:
    """Return the readable parts of blocks of content; None if `said` has no such blocks."""
    if blocks and isinstance(said, list | tuple):
        return [part for one in said for part in _read(_opened(one))]
    if isinstance(said, list | tuple) and said and all(map(_is_block, said)):
        return [part for one in said for part in _read(_opened(one))]
    return _read(said) if _is_block(said, _OF_TEXT) else None


def _read(block: Any) -> list[Any]:
    """Return the readable parts of a block: none or one."""
    if type(block) is not dict:
        return [block]
    kind = block.get("type")
    if kind in _TEXTS and isinstance(block.get("text"), str):
        return [block["text"]]
    if kind == "resource" and isinstance(block.get("resource"), dict):
        text = block["resource"].get("text")
        return [text] if isinstance(text, str) else []
    if kind in _MEDIA:
        return []
    return [{name: value for name, value in block.items() if name != "type"}]


# The texts in an answer.

_Match = Callable[[str], bool | None]


@lru_cache(maxsize=64)
def _matcher(source: str) -> _Match:
    pattern = pattern_of(source)
    longest = MAX_STEPS // pattern.size

    def match(text: str) -> bool | None:
        if len(text) <= longest:
            return pattern.matches(text)
        return None if pattern.begins(text[:longest]) else False

    return match


def _error_in(source: str, shown: tuple[Any, ...]) -> str | None:
    """Return why an answer with these parts is not done; None if it is.

    An answer is an error if all of its parts are texts that match.  Null is ignored.
    """
    match = _matcher(source)
    if len(shown) == 2 and _says_the_same(match, *shown):
        return TOLD_ERROR
    seen = set[bool]()
    for verdict in _verdicts(match, shown):
        if verdict is None:
            return UNDECIDED
        seen.add(verdict)
        if len(seen) > 1:
            return MIXED
    return TOLD_ERROR if seen == {True} else None


def _says_the_same(match: _Match, text: Any, structured: Any) -> bool:
    """Return whether a matching text is the JSON of the structured content."""
    if not isinstance(text, str) or not match(text):
        return False
    try:
        return bool(answer_in(str.__str__(text)) == structured)
    except RecursionError:
        return False


def _verdicts(match: _Match, shown: tuple[Any, ...]) -> Iterator[bool | None]:
    """Yield whether each text matches (None if unsure), and False for each other value."""
    for part in shown:
        if _is_foreign(part):
            try:
                yield match(str(part))  # as a framework shows it to a model
            except Exception:  # noqa: BLE001  # its class is the owner's
                yield None
            continue
        for leaf in _leaves(part):
            if isinstance(leaf, str):
                yield from _of_text(match, str.__str__(leaf))
            else:
                yield False


def _of_text(match: _Match, text: str) -> Iterator[bool | None]:
    """Yield whether a text matches; if not, and the text is JSON, whether each text in it does."""
    found = match(text)
    try:
        inside = texts_in(text) if found is False else None
    except RecursionError:
        yield None
        return
    leaves = list(_leaves(inside))
    if not leaves:
        yield found
    for leaf in leaves:
        yield match(leaf) if isinstance(leaf, str) else False


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the values in nested lists and objects, without null.  Each list is visited once."""
    held: list[Any] = [value]
    known: dict[int, Any] = {}
    while held:
        one = _opened(held.pop())
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list | tuple | Mapping):
            if id(one) not in known:
                known[id(one)] = one
                held.extend(one.values() if isinstance(one, Mapping) else one)
        elif one is not None:
            yield one


def _is_foreign(value: Any) -> bool:
    return type(value) not in _PLAIN and not isinstance(value, str | Mapping | list | tuple)
