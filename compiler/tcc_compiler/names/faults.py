"""From a fault of certs, which names a node, to a diagnostic at the author's text.

The text to write instead comes from the fault.  Where the fault has none, the code's entry in
`_HINTS` has one.  Cost: constant for each fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.kinds import Fault
from tcc_compiler.language.diagnostics import Report, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.names.nodes import Spans

_WORK = "name the inner parts by tools, fields or lists of fewer values, or split the statement"
_CODES: Mapping[str, str] = {"D201": "TCC314"}  # a bound of work of certs, as the compiler names it


def report_fault(fault: Fault, statement: Region, spans: Spans, core: Core, report: Report) -> None:
    """Report a fault.

    Args:
        statement: the place of the statement, for a node that has no place of its own.
        spans: the regions of nodes by their ids.
    """
    region = spans.get(id(fault.node), statement)
    message = _sentence(fault.message)
    hint = f"write: {fault.instead}" if fault.instead else _hint(fault, core)
    report.error(_CODES.get(fault.code, fault.code), region, message, hint)


def _sentence(message: str) -> str:
    """A message of certs as a diagnostic has it: no full stop, a small letter first."""
    text = message.rstrip(".")
    return text[:1].lower() + text[1:] if re.match("[A-Z][a-z ]", text) else text


def _hint(fault: Fault, core: Core) -> str:
    named = _HINTS.get(fault.code)
    return (named(fault, core) if named else None) or _FALLBACK.get(fault.code, "")


def _word(fault: Fault) -> str:
    node = fault.node
    if isinstance(node, n.Word | n.Get | n.Session):
        return node.name
    return node.names[0] if isinstance(node, n.Same) else ""


def _fields(core: Core) -> list[str]:
    fields = [one.name for tool in core.tools for one in (*tool.arguments, *tool.answers)]
    return list(dict.fromkeys(fields))


def _unknown_name(fault: Fault, core: Core) -> str | None:
    """The nearest name, or the names there are."""
    if isinstance(fault.node, n.Session):
        known = [one.name for one in core.given]
        what = "`given` declares"
    else:
        known = [*core.tool_of, *[let.name for let in core.lets]]
        what = "the names are"
        word = _word(fault)
        if word in _fields(core):
            return f"`{word}` is a field, and needs a comparison here: {word} = value"
        near = suggest(word, [*known, *_fields(core)])
        if near is not None:
            return near
    return suggest(_word(fault), known) or (f"{what} {some(known)}" if known else None)


def _unknown_field(fault: Fault, core: Core) -> str | None:
    word = _word(fault)
    return suggest(word, [one for one in _fields(core) if one != word])


def _unknown_value(fault: Fault, core: Core) -> str | None:
    node = fault.node
    word = node.name if isinstance(node, n.Word) else node.value if isinstance(node, n.Text) else ""
    listed = fault.message.rpartition("none of ")[2].rstrip(".").split(", ")
    return suggest(word, listed) if word else None


def _unfit(fault: Fault, core: Core) -> str | None:
    for pattern, hint in _UNFIT.items():
        if re.search(pattern, fault.message):
            return hint
    return None


_UNFIT: Mapping[str, str] = {
    "answer of the call being decided": "name the answer of an earlier call: last(TOOL(..)).field;"
    " or restrict a later call",
    "belongs in a clause of `before`": "write it in: before CALLS require ..",
    "needs a key": "write: unused C(same key)",
    "cannot be combined with `since`": "take `since` away: `unused` starts after the last use",
    "use no other calls": "compare arguments, attributes of the session and constants",
    "compared by `count`": "write: last(C).field, count(C) <= 3, or x in C.field",
    "set of calls belongs here": "write a tool, a | b, any - a, or a `let` of these",
    "has no fields": "look at earlier calls: finally require C(field = value)",
    "every value, or `else`": "add an arm, or: else: TERM",
    "defined by itself": "define it by other names",
    "This set has no tool": "take less away",
    "the parentheses of a filter": "write it inside C(..)",
    "order and no sum": "compare numbers, times or dates",
    "no time and no order": "write the window at the calls: C.field within 30 d",
    "does not fit here": "a set of calls is compared by last(C).field, count(C) or x in C.field",
    "is no condition": "compare it: x = value",
}
_HINTS: Mapping[str, Callable[[Fault, Core], str | None]] = {
    "TCC202": _unknown_name,
    "TCC204": _unknown_field,
    "TCC205": _unknown_value,
    "TCC225": _unfit,
}
_FALLBACK: Mapping[str, str] = {
    "TCC204": "name a field that every tool of the set has",
    "TCC205": "write one of its values, or a name that is declared",
    "TCC225": "see `tcc explain TCC225` for what may be where",
    "TCC490": "a later release has this form",
    "D201": _WORK,
}
