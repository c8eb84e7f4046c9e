"""Page of a run: the verdict, the plans found, the course of the search, and the rest.

All content comes from records that the same command validated.  For an invalid ledger only the
findings are shown.
Memory: the frontier, as in the run itself, and a bounded number of points, plans and records.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field as member
from typing import Final

from tcc import screen
from tcc.pages import (
    Html,
    Page,
    Section,
    Series,
    Thinned,
    Verdict,
    badge,
    call,
    calls,
    code,
    element,
    fact_list,
    joined,
    left_out,
    line_chart,
    moment,
    note,
    numbered,
    scrolled,
    table,
    under,
)
from tcc.pages.record_table import ShownRecords, field, number, records_section, whole
from tcc_certs.errors import clip
from tcc_certs.formats.ledger import Record
from tcc_certs.race.digest import child_context, leaf_digest
from tcc_runtime.artifact.load import Artifact

_EXPANDED: Final = 100
_CHILDREN: Final = 12
_PLANS: Final = 10
_LONGEST: Final = 200  # calls of a plan whose path is shown
_DEEPEST: Final = 30  # nested choices
_OPEN: Final = 4  # nested choices that are expanded when the page opens


@dataclass(slots=True, kw_only=True)
class TreeNode:
    """A node of the search that is shown.

    Attributes:
        call: the call that leads to the node; '' for the root.
        key: the key of the node, decimal text.
        leaf: whether the node is a complete plan.
        expanded: the number of its expansion, from 1; 0 if it was not expanded.
        value: the value of a leaf that was popped, else ''.
        place: the place among the best plans if the node is the leaf of one, else 0.
        left_out: the number of children that are not shown.
        children: the children that are shown.
    """

    call: str
    key: str
    leaf: bool = False
    expanded: int = 0
    value: str = ""
    place: int = 0
    left_out: int = 0
    children: list[TreeNode] = member(default_factory=list)


def ways_of(plans: Sequence[Record], root: bytes) -> dict[str, int]:
    """Return the digests (hex) of the nodes on the paths to the best plans.

    Args:
        plans: the plans of the close record, best first.
        root: the context digest D of the node where the run began.

    Returns:
        the place of the plan for its leaf, and 0 for the other nodes.
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


def tree_of(records: Iterable[Record], ways: dict[str, int]) -> TreeNode | None:
    """Return the root of the shown part of the search tree, or None if no node was pushed."""
    root: TreeNode | None = None
    kept: dict[str, TreeNode] = {}
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


def _node(record: Record, ways: dict[str, int]) -> TreeNode:
    text = field(record, "call")
    return TreeNode(
        call=text,
        key=field(record, "key_raw"),
        leaf=text == "stop" and "state" not in record,
        place=ways.get(field(record, "ctx_digest"), 0),
    )


def _fits(parent: TreeNode, digest: str, ways: dict[str, int]) -> bool:
    return digest in ways or (parent.expanded <= _EXPANDED and len(parent.children) < _CHILDREN)


def tree_section(root: TreeNode, expansions: int) -> Section:
    """Return the section with the tree of expansions."""
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


def _drawn(root: TreeNode) -> Html:
    """Return nested lists; written as a loop, because a plan may have thousands of choices."""
    parts: list[object] = [Html("<ul>")]
    todo: list[tuple[TreeNode | None, int]] = [(None, 0), (root, 0)]
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
            parts.append(element("li", _tree_row(chain), " ", _left_out(more) if more else ""))
        else:
            start = '<details class="print" open>' if depth < _OPEN else '<details class="print">'
            parts += [Html("<li>"), Html(start), element("summary", _tree_row(chain)), Html("<ul>")]
            parts.append(_waiting_row(end))
            todo.append((None, depth + 1))
            todo += [(child, depth + 1) for child in reversed(below)]
    return joined(parts)


def _waits(node: TreeNode) -> bool:
    return not node.expanded and not node.value and not node.children


def _waiting_row(end: TreeNode) -> Html:
    """Return the children that were not expanded, in one row, in call order."""
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


def _name(node: TreeNode) -> Html:
    if not node.call:
        return element("b", "root")
    return badge("stop") if node.leaf else call(node.call)


def _chain(node: TreeNode) -> list[TreeNode]:
    """Return a node and the nodes below it, as long as each has exactly one child."""
    found = [node]
    while len(found[-1].children) == 1 and not found[-1].left_out:
        found.append(found[-1].children[0])
    return found


def _tree_row(chain: Sequence[TreeNode]) -> Html:
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
    """Cut a number to four decimal places, for people; the records have all of them."""
    whole, point, digits = number.partition(".")
    return f"{whole}{point}{digits[:4]}".replace("-", "\u2212")


# The story of a run: collected in one pass over its records.

Item = tuple[str, int]  # a node's id, and the step of its remainder; 0 for the node itself
_MOST_PLANS: Final = 50


@dataclass(slots=True, kw_only=True)
class Waiting:
    """An item of the frontier."""

    key: str
    prefix: str
    call: str
    state: str
    plans: str


@dataclass(slots=True, kw_only=True)
class Story:
    """A run as its ledger records it.

    Attributes:
        header: the first record.
        close: the last record, if it is a close record.
        frontier: the items that were pushed and not popped.
        keys: (pop, key of the popped item), before any downgrade.
        values: (pop, value) of the leaves, before any downgrade.
        incumbents: (pop, k-th best value so far), before any downgrade.
        last: the item popped last, with its node's id.
        pops, leaves, asked: the numbers of pops, leaves and questions about costs.
        downgraded: whether the run was downgraded to fallback.
        guards: the names of guards that fired, in order, each once.
        kept: the first and the last records.
    """

    header: Record = member(default_factory=dict)
    close: Record | None = None
    frontier: dict[Item, Waiting] = member(default_factory=dict)
    keys: Thinned = member(default_factory=Thinned)
    values: Thinned = member(default_factory=lambda: Thinned(200))
    incumbents: Thinned = member(default_factory=Thinned)
    last: tuple[str, Waiting] | None = None
    pops: int = 0
    leaves: int = 0
    asked: int = 0
    downgraded: bool = False
    guards: list[str] = member(default_factory=list)
    kept: ShownRecords = member(default_factory=ShownRecords)

    @property
    def plans(self) -> list[Record]:
        """The best plans of the close record, at most 50."""
        found = None if self.close is None else self.close.get("plans")
        listed = found if isinstance(found, list) else []
        return [plan for plan in listed[:_MOST_PLANS] if isinstance(plan, dict)]

    @property
    def plans_total(self) -> int:
        """The number of plans in the close record."""
        found = None if self.close is None else self.close.get("plans")
        return len(found) if isinstance(found, list) else 0


def told(records: Iterable[Record]) -> Story:
    """Collect the story of a run from its records."""
    story = Story()
    for record in records:
        story.kept.add(record)
        _take(story, record)
    return story


def _take(story: Story, record: Record) -> None:
    kind, name = field(record, "kind"), field(record, "node_id")
    step = whole(record, "step") or 0
    guards = record.get("guards")
    for guard in guards if isinstance(guards, list) else ():
        if isinstance(guard, str) and guard not in story.guards:
            story.guards.append(guard)
    match kind:
        case "open":
            story.header = record
        case "node" | "rest":
            story.frontier[name, step] = _waiting(story, record, name)
        case "requeue":
            if (name, step) in story.frontier:
                story.frontier[name, step].key = field(record, "key_raw")
        case "expand" | "draw" | "leaf":
            _popped(story, record, (name, step))
        case "refine":
            story.asked += 1
        case "downgrade" if field(record, "mode") == "fallback":
            story.downgraded = True
        case "close":
            story.close = record


def _waiting(story: Story, record: Record, name: str) -> Waiting:
    prefix = field(record, "ctx_repr")
    # The remainder of a node is pushed right after the pop of that node.
    if field(record, "kind") == "rest" and story.last is not None and story.last[0] == name:
        prefix = story.last[1].prefix
    return Waiting(
        key=field(record, "key_raw"),
        prefix=prefix,
        call=field(record, "call"),
        state=field(record, "state"),
        plans=field(record, "N") or field(record, "Nub"),
    )


def _popped(story: Story, record: Record, item: Item) -> None:
    story.pops += 1
    was = story.frontier.pop(item, None)
    story.last = None if was is None else (item[0], was)
    if field(record, "kind") == "leaf":
        story.leaves += 1
    # After a downgrade the search uses other keys, which the ledger does not record.
    if story.downgraded:
        return
    if was is not None and (at := number(was.key)) is not None:
        story.keys.add(story.pops, at, was.key)
    if (value := number(field(record, "V"))) is not None:
        story.values.add(story.pops, value, field(record, "V"))
    if (best := number(field(record, "incumbent"))) is not None:
        story.incumbents.add(story.pops, best, field(record, "incumbent"))


_FRONTIER: Final = 25
_SETTINGS: Final = (
    "mode", "claim_type", "race", "keys", "recipe", "top", "beta", "tilt", "inflate", "tau",
    "alpha", "eta", "truncate", "count_bits", "privacy_scope", "run_id", "seed_commitment",
)  # fmt: skip
_SPENT: Final = ("price_spent", "price_cap", "latency_ms", "sla_ms", "epsilon_used", "epsilon_cap")


def run_page(artifact: Artifact, read: Callable[[], Iterator[Record]], verdict: Verdict) -> Page:
    """Build the page of a run.

    Args:
        read: returns the validated records from the start, each time it is called.

    Raises:
        tcc.pages.record_table.Changed: the ledger has changed since it was validated.
    """
    story = told(read())
    tree = tree_of(read(), ways_of(story.plans, _begin(artifact, story.header)))
    sections = [*_found(story), *_charts(story)]
    if tree is not None:
        sections.append(tree_section(tree, _expansions(story)))
    sections += [_frontier(story), _settings(story), records_section(story.kept)]
    return Page(
        kind="run",
        title=f"{clip(artifact.manifest.grammar)} {clip(artifact.manifest.version)}",
        verdict=verdict,
        facts=_facts(story),
        sections=sections,
    )


def _begin(artifact: Artifact, header: Record) -> bytes:
    """Return the context digest of the node where the run began, after the calls in `after`."""
    digest = artifact.root_digest
    after = header.get("after")
    for text in after if isinstance(after, list) else ():
        digest = child_context(digest, str(text).encode())
    return digest


def _expansions(story: Story) -> int:
    stated = None if story.close is None else whole(story.close, "expansions")
    return stated if stated is not None else story.pops - story.leaves


def _facts(story: Story) -> list[tuple[str, object]]:
    close = story.close or {}
    started = whole(story.header, "started_ms")
    rows: list[tuple[str, object]] = [
        ("began", "" if started is None else moment(started)),
        ("mode", field(story.header, "mode")),
        (
            "search",
            f"{screen.big(_expansions(story))} expansions, {screen.big(story.leaves)} leaves",
        ),
        ("stopped by", _STOPS.get(field(close, "stop"), field(close, "stop")) or "no close record"),
    ]
    if gap := field(close, "gap"):
        rows.append(("gap", short(gap)))
    if story.guards:
        rows.append(("guards", clip(", ".join(story.guards))))
    if story.asked:
        rows.append(("asked", f"{story.asked} times what a call costs"))
    return [*rows, ("artifact", code(field(story.header, "artifact")))]


_STOPS = {
    "bound": "proof: nothing left can win",
    "exhausted": "everything was looked at",
    "max_expansions": "the limit on expansions",
    "max_seconds": "the time limit",
    "interrupted": "a person",
    "precision": "the limit of precision",
}


def _found(story: Story) -> Iterator[Section]:
    items = [_plan(plan) for plan in story.plans]
    after = story.header.get("after")
    made = [str(text) for text in after] if isinstance(after, list) else []
    begin = joined([element("p", "After these calls: ", calls(made))]) if made else ""
    nothing = (
        "No plan was found." if story.close is not None else "The ledger has no close record yet."
    )
    yield Section(
        name="plans",
        title="The plans it found",
        lead="Best first. A value is -beta * cost, less the logarithm of the arrival in this race.",
        body=joined(
            [
                begin,
                numbered(items) if items else element("p", nothing),
                left_out(len(items), story.plans_total, "plans"),
            ]
        ),
    )


def _plan(plan: Record) -> Html:
    listed = plan.get("calls")
    texts = [str(text) for text in listed] if isinstance(listed, list) else []
    high = field(plan, "cost_high")
    cost = field(plan, "cost") + (f" to {high}" if high else "")
    return joined(
        [
            calls(texts),
            under(
                element("b", f"cost {cost}"),
                f", value {short(field(plan, 'value'))}, {len(texts)} calls",
            ),
        ]
    )


def _charts(story: Story) -> Iterator[Section]:
    if not story.keys.points:
        return
    lines = [
        Series(
            name="key of what was popped: nothing left can score more",
            points=story.keys.points,
            style="one",
        )
    ]
    if story.incumbents.points:
        lines.append(
            Series(name="incumbent: the value to beat", points=story.incumbents.points, style="two")
        )
    if story.values.points:
        lines.append(Series(name="a plan was found", points=story.values.points, style="dot"))
    parts: list[object] = [
        line_chart(lines, across="pop", label="Keys over the search", most=story.pops)
    ]
    gap = _gaps(story)
    if gap:
        parts.append(element("h3", "Gap"))
        line = Series(name="key minus the final incumbent", points=gap, style="one")
        parts.append(line_chart([line], across="pop", label="Gap over the search", most=story.pops))
        parts.append(
            note("The search may stop when this is down to nothing: no key is above the incumbent.")
        )
    if story.downgraded:
        parts.append(note("Drawn up to the downgrade to fallback: behind it keys bound nothing."))
    if story.keys.seen > len(story.keys.points):
        parts.append(
            note(f"{len(story.keys.points)} of {screen.big(story.keys.seen)} points are drawn.")
        )
    fallback = field(story.header, "mode") == "fallback"
    lead = (
        "In fallback keys order the search, and bound nothing."
        if fallback
        else "Keys of what is popped fall; the incumbent, once there are enough plans, rises."
    )
    yield Section(name="keys", title="Keys and gap over time", lead=lead, body=joined(parts))


def _gaps(story: Story) -> list[tuple[int, float, str]]:
    """Return the difference of each key and the final incumbent; empty without an incumbent."""
    if story.downgraded or field(story.header, "mode") == "fallback" or not story.incumbents.points:
        return []
    step, final, _ = story.incumbents.points[-1]
    found = [(at, key - final, f"{key - final:.6f}") for at, key, _ in story.keys.points]
    close = story.close or {}
    last = number(field(close, "gap"))
    if last is not None:
        found.append((max(step, story.pops) + 1, last, field(close, "gap")))
    return found


def _frontier(story: Story) -> Section:
    items = list(story.frontier.items())
    best = heapq.nlargest(
        _FRONTIER, enumerate(items), key=lambda pair: (number(pair[1][1].key) or 0.0, -pair[0])
    )
    rows = [_row(item[1], rest=item[0][1] > 0) for _, item in best]
    names: tuple[str, ...] = ("key", "what waits", "behind", "plans below")
    if not any(row[-1] for row in rows):
        names, rows = names[:-1], [row[:-1] for row in rows]
    body = (
        table(names, rows, label="Frontier at the stop")
        if rows
        else element("p", "Nothing: all was looked at.")
    )
    lead = "What was pushed and not looked into when the search stopped, greatest key first."
    if story.downgraded:
        lead += " The keys are those from before the downgrade."
    return Section(
        name="frontier",
        title="Frontier at the stop",
        lead=lead,
        body=joined([body, left_out(len(rows), len(items), "items")]),
    )


def _row(item: Waiting, rest: bool) -> tuple[object, ...]:
    if rest:
        what: object = element("em", "calls not drawn yet")
    else:
        what = code(item.call or "root")
    behind: object = code(item.prefix) if item.prefix else element("em", "the beginning")
    plans = screen.big_text(item.plans) if item.plans.isdecimal() else item.plans
    return (code(short(item.key)), what, behind, plans)


def _settings(story: Story) -> Section:
    close = story.close or {}
    rows = [
        (name, _setting(field(story.header, name))) for name in _SETTINGS if name in story.header
    ]
    rows += [
        (name, _setting(field(close, name))) for name in (*_SPENT, "law", "seed") if name in close
    ]
    return Section(
        name="settings",
        title="Settings and seed",
        lead="What the run was told. The seed was committed to in the first line of the ledger.",
        body=fact_list(rows),
    )


def _setting(value: str) -> object:
    return code(value) if len(value) > 40 else clip(value)
