"""What a page tells of a run: one pass over its validated records.

Memory: the frontier, as in the run itself, and a bounded number of points, plans and records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as member
from typing import Final

from tcc.pages.charts import Thinned
from tcc.pages.reading import field, number, whole
from tcc.pages.records import Kept
from tcc_certs.formats.ledger import Record

Item = tuple[str, int]  # a node's id, and the step of what is left of it; 0 of the node itself
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
    """A run as its ledger has it.

    Attributes:
        header, close: its first record, and its last where that is a close.
        frontier: what was pushed and not popped.
        keys: (pop, key of what was popped), before any downgrade.
        values: (pop, value) of leaves, likewise.
        incumbents: (pop, k-th best value so far).
        last: what was popped last, with its node's id.
        pops, leaves, asked: how many.
        guards: names of guards that fired, in order, each once.
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
    kept: Kept = member(default_factory=Kept)

    @property
    def plans(self) -> list[Record]:
        """The best plans, of the close record."""
        found = None if self.close is None else self.close.get("plans")
        listed = found if isinstance(found, list) else []
        return [plan for plan in listed[:_MOST_PLANS] if isinstance(plan, dict)]

    @property
    def plans_total(self) -> int:
        """How many plans the close record has."""
        found = None if self.close is None else self.close.get("plans")
        return len(found) if isinstance(found, list) else 0


def told(records: Iterable[Record]) -> Story:
    """The story of these records."""
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
    # What is left of a node is pushed behind the pop that it is left over from.
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
    # After a downgrade keys are others, which no record has.
    if story.downgraded:
        return
    if was is not None and (at := number(was.key)) is not None:
        story.keys.add(story.pops, at, was.key)
    if (value := number(field(record, "V"))) is not None:
        story.values.add(story.pops, value, field(record, "V"))
    if (best := number(field(record, "incumbent"))) is not None:
        story.incumbents.add(story.pops, best, field(record, "incumbent"))
