"""The tree of expansions: the first of them, and the ways to the best plans, as nested lists.

Calls that follow each other without a choice stand in one row.  A second pass over the records
picks the nodes; what is left out is said where it would stand.
Memory and size: bounded by `_EXPANDED`, `_CHILDREN` and the best plans shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as member
from typing import Final

from tcc.pages.markup import Html, Section, badge, call, element, joined, note, scrolled
from tcc.pages.records import field
from tcc_certs.formats.ledger import Record
from tcc_certs.race.digest import child_context, leaf_digest

_EXPANDED: Final = 100
_CHILDREN: Final = 12
_PLANS: Final = 10
_LONGEST: Final = 200  # calls of a plan whose way is kept
_DEEPEST: Final = 30  # choices one below the other
_OPEN: Final = 4  # of these are open from the start


@dataclass(slots=True, kw_only=True)
class Node:
    """A node that is shown.

    Attributes:
        expanded: the how-manieth expansion it was; 0 where it was none.
        value: of a leaf that was popped.
        left_out: children that are not shown.
    """

    call: str
    key: str
    leaf: bool = False
    expanded: int = 0
    value: str = ""
    place: int = 0
    left_out: int = 0
    children: list[Node] = member(default_factory=list)


def ways_of(plans: Sequence[Record], root: bytes) -> dict[str, int]:
    """The digests of the nodes on the ways to the best plans, hex, with the best place of them.

    Args:
        root: D of the node that the run began at.
    """
    found: dict[str, int] = {}
    for place, plan in enumerate(plans[:_PLANS], 1):
        calls = plan.get("calls")
        texts = [text for text in calls if isinstance(text, str)] if isinstance(calls, list) else []
        if len(texts) > _LONGEST:
            continue
        digest = root
        for text in texts:
            digest = child_context(digest, text.encode())
            found.setdefault(digest.hex(), 0)
        found[leaf_digest(digest).hex()] = place
    return found


def tree_of(records: Iterable[Record], ways: dict[str, int]) -> Node | None:
    """The root of what is shown; None where no node was pushed."""
    root: Node | None = None
    kept: dict[str, Node] = {}
    expansions = 0
    for record in records:
        kind, name = field(record, "kind"), field(record, "node_id")
        if kind == "expand":
            expansions += 1
            if name in kept:
                kept[name].expanded = expansions
        elif kind == "leaf" and name in kept:
            kept[name].value = field(record, "V")
        elif kind == "node":
            parent = kept.get(field(record, "parent_id"))
            node = _node(record, ways)
            if root is None:
                root = kept[name] = node
            elif parent is not None and _fits(parent, field(record, "ctx_digest"), ways):
                parent.children.append(node)
                kept[name] = node
            elif parent is not None:
                parent.left_out += 1
    return root


def _node(record: Record, ways: dict[str, int]) -> Node:
    text = field(record, "call")
    return Node(
        call=text,
        key=field(record, "key_raw"),
        leaf=text == "stop" and "state" not in record,
        place=ways.get(field(record, "ctx_digest"), 0),
    )


def _fits(parent: Node, digest: str, ways: dict[str, int]) -> bool:
    return digest in ways or (parent.expanded <= _EXPANDED and len(parent.children) < _CHILDREN)


def tree_section(root: Node, expansions: int) -> Section:
    """The tree."""
    shown = min(expansions, _EXPANDED)
    more = (
        note(
            f"The children of the first {shown} of {expansions} expansions are shown, at most "
            f"{_CHILDREN} of each, and the ways to the best plans."
        )
        if expansions > shown
        else ""
    )
    return Section(
        name="tree",
        title="Tree of expansions",
        lead=_LEAD,
        body=joined(
            [scrolled(element("div", _drawn(root), class_="tree"), "Tree of expansions"), more]
        ),
    )


_LEAD = (
    "Where the search went: each row goes on until there was a choice. The key of a row bounds the "
    "value of every plan below it, which is why what waits was not looked into."
)


def _drawn(root: Node) -> Html:
    """Nested lists, made without recursion: a plan may have thousands of choices."""
    parts: list[object] = [Html("<ul>")]
    todo: list[tuple[Node | None, int]] = [(None, 0), (root, 0)]
    while todo:
        node, depth = todo.pop()
        if node is None:
            parts.append(Html("</ul></details></li>") if depth else Html("</ul>"))
            continue
        chain = _chain(node)
        end = chain[-1]
        below = [child for child in end.children if not _waits(child)]
        if not end.children or (depth >= _DEEPEST and below):
            more = len(end.children) + end.left_out
            parts.append(element("li", _row(chain), " ", _left_out(more) if more else ""))
        else:
            start = '<details class="print" open>' if depth < _OPEN else '<details class="print">'
            parts += [Html("<li>"), Html(start), element("summary", _row(chain)), Html("<ul>")]
            parts.append(_waiting(end))
            todo.append((None, depth + 1))
            todo += [(child, depth + 1) for child in reversed(below)]
    return joined(parts)


def _waits(node: Node) -> bool:
    return not node.expanded and not node.value and not node.children


def _waiting(end: Node) -> Html:
    """The children that were not looked into, in one row, in call order."""
    found = [child for child in end.children if _waits(child)]
    if not found and not end.left_out:
        return Html("")
    shown = [
        element("span", _name(child), " ", element("span", short(child.key), class_="key"))
        for child in found
    ]
    mark = badge("waiting", "doubtful") if found else ""
    more = _left_out(end.left_out) if end.left_out else ""
    return element("li", joined([mark, *shown, more], " "))


def _left_out(number: int) -> Html:
    return element("span", f"{number} more, left out here", class_="key")


def _name(node: Node) -> Html:
    if not node.call:
        return element("b", "root")
    return badge("stop") if node.leaf else call(node.call)


def _chain(node: Node) -> list[Node]:
    """A node, and those below it as long as each is the only one."""
    found = [node]
    while len(found[-1].children) == 1 and not found[-1].left_out:
        found.append(found[-1].children[0])
    return found


def _row(chain: Sequence[Node]) -> Html:
    arrow = element("span", "\u2192", class_="arrow", aria_hidden="true")
    shown = [_name(node) for node in chain]
    end = chain[-1]
    expanded = [node.expanded for node in chain if node.expanded]
    marks: list[object] = []
    if end.place and end.leaf:
        marks.append(badge(f"plan {end.place}", "good"))
    elif end.value:
        marks.append(badge("plan found"))
    elif not end.expanded:
        marks.append(badge("waiting", "doubtful"))
    if expanded:
        many = len(expanded) > 1
        said = f"expansions {expanded[0]} to {expanded[-1]}" if many else f"expansion {expanded[0]}"
        marks.append(element("span", said, class_="key"))
    marks.append(element("span", f"key {short(end.key)}", class_="key"))
    return joined([joined(shown, joined([" ", arrow, " "])), *marks], " ")


def short(number: str) -> str:
    """A number with four digits behind its point, for people; the records have all of them."""
    whole, point, digits = number.partition(".")
    return f"{whole}{point}{digits[:4]}".replace("-", "\u2212")
