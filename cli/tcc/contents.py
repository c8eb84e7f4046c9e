"""Contents of a core as lines for people: tools, plans, attributes, names, and words explained.

Cost: linear in the core; at most `_LISTED` lines of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcc_certs.errors import clip
from tcc_certs.policy import nodes
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.nodes import (
    Ask,
    Forbid,
    Limit,
    Node,
    Owe,
    Require,
    Total,
    definition_text,
    walk,
)
from tcc_certs.policy.type_texts import field_text, name_text, place_text, tool_text
from tcc_runtime.analysis.statements import PlanTexts


def declared_lines(core: Core, whole: bool) -> list[str]:
    """Return lines about the tools, plans, attributes and names that a core declares.

    Args:
        whole: whether to include the tools and the shape of plans.
    """
    found: list[str] = []
    for title, texts in (
        ("tools", [text for tool in core.tools for text in _tool_lines(tool)] if whole else []),
        ("shape of plans", _plan_texts(core) if whole else []),
        ("attributes of a session", [_attribute_text(one) for one in core.given]),
        ("names in statements", [definition_text(one).removeprefix("let ") for one in core.lets]),
        ("zones", zone_texts(core)),
        ("passed to tools and not recorded", core.passed),
    ):
        if texts:
            found += [f"{title}:", *[f"  {clip(text, _LONGEST)}" for text in texts[:_LISTED]]]
            if len(texts) > _LISTED:
                found.append(f"  and {len(texts) - _LISTED} more lines")
    return found


def zone_texts(core: Core) -> list[str]:
    """Return a line for each time zone that statements name, with its recorded range."""
    return [] if core.zones is None else [core.zones.text(name) for name in core.zones.of]


_LISTED = 400  # lines
_LONGEST = 2000


def _tool_lines(tool: Tool) -> list[str]:
    marks = "; strict" * tool.strict + "; errors mean failed" * tool.errors_failed
    return [tool_text(tool) + marks, *([] if tool.doc is None else [f"  {tool.doc}"])]


def _plan_texts(core: Core) -> list[str]:
    """Return the plan, the rules, the start and the goals as lines; none if the plan is `any*`."""
    texts = PlanTexts(core)
    lines = [f"plan = {texts.expression(core.plan)}"]
    lines += [f"rule {name} = {texts.expression(body)}" for name, body in core.rules.items()]
    if core.start is not None:
        lines += [f"start {core.start}", f"goal {' | '.join(core.goals)}"]
    return [] if lines == ["plan = any*"] else lines


_WORDS: Mapping[str, str] = {
    "before C require X": "a call of C is refused unless X is known to be true",
    "forbid C(F)": "a call of C is refused unless F is known to be false",
    "same f": "the field f equals the f of the call that is decided",
    "this": "the call that is decided",
    "it": "the element that the filter looks at",
    "session.x": "an attribute of the session",
    "now": "the time of the decision",
    "last(C)": "the latest call or element of C",
    "C since S": "the calls of C after the latest call of S",
    "C within D": "the calls of C that were decided at most D ago",
    "unused C": "the calls of C after the last call of the `before` set with the same key; "
    "so each of them serves one call",
    "every C(F)": "F holds for each element of C; C may be empty",
    "pairs(a, b)": "the elements of two lists by position, as `left` and `right`",
    'x ~ "p"': "the pattern p matches all of x",
    "limit count(C) <= n": "a call of C is refused if it would be more than the n-th; calls that "
    "failed do not count, and `sum(C.f)` adds up a field",
    "limit depth": "how many calls a session has",
    "per X": "for each value of X by itself",
    "across sessions": "counted over all sessions that share an account",
    "owe": "the session may not end before such a call is made",
    "*": "of a field of a tool: every other value",
    'at "/p"': "where a field is in the JSON of a call or an answer",
    "errors mean failed": "after an error of the tool nothing has happened",
    "strict": "plans go on after each answer of the tool",
}


def word_lines(core: Core) -> list[str]:
    """Return one explanation for each word of the language that a core uses; empty if none."""
    used: set[str] = set()
    for node in [*_nodes(core), *[let.body for let in core.lets]]:
        used |= {_word_of(part) for part in walk(node)}
    for one in core.statements:
        used |= {"before C require X"} if isinstance(one, Require) and one.on else set()
        used |= {"forbid C(F)"} if isinstance(one, Forbid) and one.where else set()
        used |= {"owe"} if isinstance(one, Owe) else set()
        used |= {"limit depth"} if isinstance(one, Total) and one.what == "depth" else set()
        if isinstance(one, Limit):
            used |= {"limit count(C) <= n"} | ({"per X"} if one.per else set())
            used |= {"across sessions"} if one.scope == "across" else set()
            used |= set() if one.within is None else {"C within D"}
    for tool in core.tools:
        fields = [*tool.arguments, *tool.answers]
        used |= {"*"} if any("*" in field.values for field in fields) else set()
        used |= {'at "/p"'} if any(map(place_text, fields)) else set()
        used |= {"errors mean failed"} if tool.errors_failed else set()
        used |= {"strict"} if tool.strict else set()
    known = [f"  {word}: {text}" for word, text in _WORDS.items() if word in used]
    return ["words:", *known] if known else []


def _nodes(core: Core) -> Iterator[Node]:
    for one in core.statements:
        match one:
            case Require():
                yield from (*one.where, *[let.body for let in one.lets], one.then)
            case Ask() | Forbid():
                yield from one.where
            case Owe():
                yield from (*one.where, *one.pays)
            case Limit():
                yield from (*one.where, *one.per, one.most)


def _word_of(node: Node) -> str:
    match node:
        case nodes.Apply(function="last"):
            return "last(C)"
        case nodes.Apply(function="pairs"):
            return "pairs(a, b)"
        case nodes.Compare(operator="~" | "!~"):
            return 'x ~ "p"'
    return _WORD_OF.get(type(node), "")


_WORD_OF: Mapping[type[Node], str] = {
    nodes.Same: "same f", nodes.This: "this", nodes.It: "it", nodes.Session: "session.x",
    nodes.Now: "now", nodes.Since: "C since S", nodes.Within: "C within D",
    nodes.Unused: "unused C", nodes.Every: "every C(F)",
}  # fmt: skip


def _attribute_text(one: Given) -> str:
    if not isinstance(one, Learned):
        return f"session.{field_text(one)}"
    sources = [f"{name_text(tool)}.{name_text(field)}" for tool, field in one.sources]
    return f"session.{name_text(one.name)}: the first known value of {' or '.join(sources)}"
