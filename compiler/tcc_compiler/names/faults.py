"""Turn a fault of `tcc_certs`, which names a node, into a diagnostic at the author's text.

A fault has a code, the node, the names that fit there, and a word for the exact mistake. They
determine the hint: :data:`_HINTS` by the code, :data:`_ABOUT` by the word.
Cost: linear in the fields of the core, for each fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.kinds import Fault
from tcc_certs.values.fields import Field
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.names.nodes import Spans
from tcc_compiler.names.zones import zone_names

_WORK = "name the inner parts by tools, fields or lists of fewer values, or split the statement"
_CODES: Mapping[str, str] = {"D201": "TCC314"}  # codes of certs that the compiler renames


def report_fault(
    fault: Fault,
    statement: n.Statement | None,
    region: Region,
    spans: Spans,
    core: Core,
    report: Report,
) -> None:
    """Report a fault.

    Args:
        statement: the statement that has it; None for a `let` of the file.
        region: the place to report if the node has no region.
        spans: the regions of nodes by their ids.
    """
    at = spans.get(id(fault.node), region)
    message = _sentence(fault.message)
    hint = f"write: {fault.instead}" if fault.instead else _hint(_Case(fault, core, statement))
    report.error(_CODES.get(fault.code, fault.code), at, message, hint)


def _sentence(message: str) -> str:
    """Return a message of certs in the form of a diagnostic: no full stop, a small first letter."""
    text = message.rstrip(".")
    return text[:1].lower() + text[1:] if re.match("[A-Z][a-z ]", text) else text


@frozen(kw_only=False)
class _Case:
    """A fault with the core and the statement that have it."""

    fault: Fault
    core: Core
    statement: n.Statement | None

    @property
    def word(self) -> str:
        """The name in the faulty node; empty if it has none."""
        node = self.fault.node
        if isinstance(node, n.Word | n.Get | n.Session):
            return node.name
        return node.names[0] if isinstance(node, n.Same) else ""

    @property
    def text(self) -> str:
        """The text of the faulty node; empty for a statement."""
        return n.text_of(self.fault.node) if isinstance(self.fault.node, n.Node) else ""

    def restricted(self) -> list[Tool]:
        """Return the tools that the statement restricts, if it names them one by one."""
        on = getattr(self.statement, "on", None)
        words = on.parts if isinstance(on, n.Union) else (on,)
        names = [one.name for one in words if isinstance(one, n.Word)]
        tools = [self.core.tool_of[name] for name in names if name in self.core.tool_of]
        return tools if len(tools) == len(words) else []


def _hint(case: _Case) -> str:
    by_code = _HINTS.get(case.fault.code)
    return (by_code(case) if by_code else "") or _FALLBACK.get(case.fault.code, "")


def shared_keys(tools: Iterable[Tool], others: Iterable[Tool]) -> list[str]:
    """Return the open arguments that all tools have with equal name and type, in declared order."""
    first, *rest = [*tools, *others]
    types = [{one.name: one.type for one in tool.arguments} for tool in rest]
    return [
        one.name
        for one in first.arguments
        if one.type is not None
        and all(type(known.get(one.name)) is type(one.type) for known in types)
    ]


def _last_of(case: _Case, tool: Tool, name: str) -> str:
    """Return ``last(TOOL(same KEY)).NAME``, with the keys that restricted calls and TOOL share."""
    keys = shared_keys(case.restricted(), [tool]) if case.restricted() else []
    of: n.Node = n.Word(tool.name)
    of = n.Where(of, (n.Same(tuple(keys)),)) if keys else of
    return n.text_of(n.Get(n.Apply("last", (of,)), name))


def _answering(core: Core, name: str) -> Tool | None:
    """Return the first tool with an answer of this name, else the first with such an argument."""
    tools = [tool for tool in core.tools if any(one.name == name for one in tool.answers)]
    tools += [tool for tool in core.tools if any(one.name == name for one in tool.arguments)]
    return tools[0] if tools else None


def _all_fields(core: Core) -> list[str]:
    fields = [one.name for tool in core.tools for one in (*tool.arguments, *tool.answers)]
    return list(dict.fromkeys(fields))


# Names in other languages for functions and sets of this one.
_FUNCTIONS: Mapping[str, str] = {
    "len": "count(LIST)", "length": "count(LIST)", "size": "count(LIST)", "avg": "sum(C.f)",
    "exists": "C, as a condition", "all": "any, for all tools; every C(..), for all elements",
    "lower": "a pattern with (?i), as in f ~ \"(?i)text\"", "contains": "f ~ \".*text.*\"",
    "upper": "a pattern with (?i), as in f ~ \"(?i)text\"", "everything": "any",
}  # fmt: skip


def _listed(core: Core) -> list[Field]:
    fields = [one for tool in core.tools for one in (*tool.arguments, *tool.answers)]
    return [one for one in fields if one.type is None]


# One function for each code; each returns a hint, or an empty text.


def _unknown_name(case: _Case) -> str:
    """Suggest the nearest name, or list the names."""
    word, core = case.word, case.core
    if isinstance(case.fault.node, n.Session):
        known = [one.name for one in core.given]
        return suggest(word, known) or (f"`given` declares {some(known)}" if known else "")
    known = [*core.tool_of, *[let.name for let in core.lets]]
    fields = _all_fields(core)
    if word in fields:
        return f"`{word}` is a field, and needs a comparison here: {word} = value"
    if word in _FUNCTIONS:
        return f"write: {_FUNCTIONS[word]}"
    listed = next((one for one in _listed(core) if word in one.values), None)
    if listed is not None:
        return f"`{word}` is a value; several values are written: {listed.name} = a | {word}"
    near = suggest(word, [*known, *fields])
    return near or (f"the names are {some(known)}" if known else "")


def _unknown_field(case: _Case) -> str:
    """Suggest a similar field, or the calls that have the field, or list all fields."""
    word, known = case.word, case.fault.known
    tool = _answering(case.core, word) if case.fault.about == "calls" else None
    if tool is not None:
        return f"`{tool.name}` has this field; write: {_last_of(case, tool, word)}"
    near = suggest(word, [one for one in known if one != word])
    return near or (f"the fields are {some(known)}" if known else "")


def _unknown_value(case: _Case) -> str:
    node, known = case.fault.node, case.fault.known
    if case.fault.about == "zone":
        return _unknown_zone(node.value if isinstance(node, n.Text) else "")
    if case.fault.about in _LOCATED:
        return f'write: "{_LOCATED[case.fault.about]}"'
    if case.fault.about in ("time", "date"):
        day = "2026-01-31"
        return f'write: "{day}"' if case.fault.about == "date" else f'write: "{day}T12:00:00Z"'
    word = node.name if isinstance(node, n.Word) else node.value if isinstance(node, n.Text) else ""
    return suggest(word, known) or (f"write one of: {some(known, ' | ')}" if known else "")


def _unknown_zone(name: str) -> str:
    if name in zone_names():
        return "a question can only name zones that a statement of the policy names"
    return suggest(name, zone_names()) or 'write a zone such as "Europe/Berlin", or "+02:00"'


def _last_element(case: _Case) -> str:
    """Suggest a field of the last call to compare, or the calls themselves if any one is enough."""
    fault, text = case.fault, case.text
    of = fault.node.arguments[0] if isinstance(fault.node, n.Apply) else None
    either = f", or if any such call is enough: {n.text_of(of)}" if of is not None else ""
    if fault.about == "flag":
        return f"write: {text} = true"
    if fault.about not in ("call", "record"):
        return f"write: {text} = value{either}"
    fields = [
        one
        for tool in case.core.tools
        for one in (*tool.answers, *tool.arguments)
        if one.name in fault.known
    ]
    chosen = next((one for one in fields if one.type is None and len(one.values) > 1), None)
    if chosen is not None:
        return f"write: {text}.{chosen.name} = {_value_of(chosen)}{either}"
    return f"write: {text}.{fault.known[0] if fault.known else 'field'} = value{either}"


def _value_of(field: Field) -> str:
    """Return the first listed value of a field, as a statement writes it."""
    value = next(one for one in field.values if one)
    return value if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*|[0-9.]+", value) else n.quoted(value)


def _two_meanings(case: _Case) -> str:
    word, known = case.word, case.fault.known
    kinds = ["value" if one[:1] == n.quoted("")[:1] else "field" for one in known]
    ways = [f"for the {kind} write: {one}" for kind, one in zip(kinds, known, strict=True)]
    if len(known) < 2:
        rename = f"rename the `let` {word}, or what has its name"
        ways.append(f"else {rename}" if ways else rename)
    return "; ".join(ways)


def _filter_inside(case: _Case) -> str:
    """Suggest one filter for the whole union, or one statement for each part."""
    node = case.fault.node
    if isinstance(node, n.Union):
        whole = [one.of if isinstance(one, n.Where) else one for one in node.parts]
        first = next((one for one in node.parts if isinstance(one, n.Where)), None)
        if first is not None:
            union = n.text_of(n.Where(n.Union(tuple(whole)), first.conditions))
            parts = ", ".join([n.text_of(one) for one in node.parts])
            return f"write: {union}, to filter all of them; or write each alone: {parts}"
    if isinstance(node, n.Where):
        other = f"write `{case.text}` in a statement of its own"
        return f"{other}, or put the filter behind all of the set: (a | b)(FILTER)"
    return "put the filter behind all of the set: (a | b)(FILTER); or write two statements"


def _unfit(case: _Case) -> str:
    hint = _ABOUT.get(case.fault.about)
    return hint(case) if callable(hint) else hint or ""


def _answer(case: _Case) -> str:
    tool = _answering(case.core, case.word)
    of = f"last({tool.name}(..)).{case.word}" if tool else "last(TOOL(..)).field"
    return f"name the answer of an earlier call: {of}; or restrict a later call"


def _key(case: _Case) -> str:
    of = case.fault.node.of if isinstance(case.fault.node, n.Unused) else None
    calls, conditions = (of.of, of.conditions) if isinstance(of, n.Where) else (of, ())
    tool = case.core.tool_of.get(calls.name) if isinstance(calls, n.Word) else None
    keys = shared_keys(case.restricted(), [tool]) if tool and case.restricted() else []
    if not keys or calls is None:
        return "write: unused C(same key)"
    return f"write: {n.text_of(n.Unused(n.Where(calls, (n.Same(tuple(keys)), *conditions))))}"


def _collection(case: _Case) -> str:
    node = case.fault.node
    if isinstance(node, n.Get):
        last = n.text_of(n.Get(n.Apply("last", (node.of,)), node.name))
        return f"write: {last} for the last of them, or: value in {case.text}"
    text = case.text or "C"
    return f"write: last({text}).field, count({text}) <= 3, or value in {text}.field"


def _scalar(case: _Case) -> str:
    if isinstance(case.fault.node, n.Number | n.Text | n.Null):
        return f"several values are written: f = a | {case.text}"
    value = next((one for one in case.fault.known if one), "value")
    return f"write: {case.text} = {value}"


_EXAMPLES: Mapping[str, str] = {
    "text": '"text"', "number": "5", "flag": "true", "time": '"2026-01-31T12:00:00Z"',
    "date": '"2026-01-31"', "span": "30 d", "path": '"/srv/file"', "url": '"https://example.com"',
}  # fmt: skip


def _types(case: _Case) -> str:
    """Suggest a constant of the type of the other side, or membership for a list."""
    wanted, found = case.fault.known
    if wanted == "list":
        return f"a list is compared by an element: {case.text} in LIST"
    if found == "list":
        return f"write: value in {case.text}"
    node = case.fault.node
    if isinstance(node, n.Text) and wanted == "number":
        return f"write the number without quotes: {node.value}"
    if isinstance(node, n.Number) and wanted == "text":
        return f'write it in quotes: "{node.value}"'
    example = _EXAMPLES.get(wanted)
    return f"compare it with a {wanted}" + (f", such as {example}" if example else "")


def _unfit_word(case: _Case) -> str:
    tool = case.core.tool_of.get(case.word)
    if tool is None:
        return "a set of calls is compared by last(C).field, count(C) or x in C.field"
    fields = [*tool.answers, *tool.arguments]
    chosen = next((one for one in fields if one.type is None and len(one.values) > 1), None)
    if chosen is None:
        return f"`{case.word}` is a set of calls; write: count({case.word}) <= 3, say"
    last = _last_of(case, tool, chosen.name)
    return f"`{case.word}` is a set of calls; write: {last} = {_value_of(chosen)}"


def _union(case: _Case) -> str:
    parts = case.fault.node.parts if isinstance(case.fault.node, n.Union) else ()
    return f"for conditions write: {' or '.join([n.text_of(one) for one in parts])}"


_LOCATED = {"path": "/srv/out", "url": "https://example.com/docs"}
_ABOUT: Mapping[str, str | Callable[[_Case], str]] = {
    "answer": _answer,
    "arms": "add an arm, or: else: TERM",
    "both": "take `since` away: `unused` starts after the last use",
    "circle": "define it by other names",
    "collection": _collection,
    "empty": "take less away",
    "end": "look at earlier calls: finally require C(field = value)",
    "it": "write it inside C(..)",
    "key": _key,
    "list": "write the window at the calls: C.field within 30 d",
    "located": 'declare the field as `path` or `url`; for a text write: name ~ "/srv/.*"',
    "mark": "write the set alone, with a filter at most: since S(FILTER); a window comes last: "
    "C since S within 30 d",
    "no_tool": "take a condition away, or filter each tool in a statement of its own",
    "order": "compare numbers, times or dates",
    "same": "write it in C(..), after `before CALLS require`; elsewhere compare with a value",
    "scalar": _scalar,
    "set": "write a tool, a | b, any - a, or a `let` of these",
    "source": "write a set of calls, a field of calls as in find.items, or a list",
    "unfit": _unfit_word,
    "types": _types,
    "union": _union,
    "unused": "write it in: before CALLS require ..",
    "url": "declare the field as `url`",
    "zone": 'write a zone such as "Europe/Berlin", or "+02:00"',
    "values": "compare arguments, attributes of the session and constants",
}
_HINTS: Mapping[str, Callable[[_Case], str]] = {
    "TCC202": _unknown_name,
    "TCC204": _unknown_field,
    "TCC205": _unknown_value,
    "TCC225": _unfit,
    "TCC234": _two_meanings,
    "TCC236": _last_element,
    "TCC241": _filter_inside,
}
_FALLBACK: Mapping[str, str] = {
    "TCC204": "name a field that every tool of the set has",
    "TCC205": "write one of its values, or a name that is declared",
    "TCC225": "see `tcc explain TCC225` for what may be where",
    "TCC231": "compare it with a value, or with a field of the session",
    "D201": _WORK,
}
