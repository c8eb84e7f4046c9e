"""Part of the context-indexed prefix DAG: every prefix of a plan down to a depth, each once.

A node is a prefix context: the calls so far, and the state that they lead to.  Where a plan may
stop and may go on, stopping is a node of its own, the leaf; so the sinks of the part partition the
plans (docs/pictures.md).  Of an artifact with bounds it is the prefixes of its true plans.
Cost: linear in the nodes, which are counted before any is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.race.digest import child_context, leaf_digest
from tcc_runtime.analysis.graph import PlanGraph, graph_of
from tcc_runtime.artifact.load import Artifact

Kind: TypeAlias = Literal["node", "leaf", "cut"]

MOST_STEPS: Final = 4_000_000  # edges that counting looks at
MOST_TEXT: Final = 1 << 26  # characters of all prefixes together


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A node of the unrolled part.

    Attributes:
        number: its place; the root has 0, parents come before children.
        parent: the number of the node that it is below, None for the root.
        call: the call that leads to it; None for the root, and for stopping.
        kind: `node`, its children are there; `leaf`, a complete plan; `cut`, not followed further.
        prefix: the calls so far, canonical texts with spaces between them.
        depth: how many these are.
        state: where they lead: of an artifact with exact counts its state.
        accept: whether a plan may stop here.
        plans: how many plans begin so (of a leaf: 1).
        cost: of the calls so far, low ends, nano-units.
        cost_to_go: the least that may still come, nano-units.
        rank: the most calls that may still come.
        context: D.  leaf_id: L of a leaf, else None.
    """

    number: int
    parent: int | None
    call: int | None
    kind: Kind
    prefix: str
    depth: int
    state: int
    accept: bool
    plans: int
    cost: int
    cost_to_go: int
    rank: int
    context: bytes
    leaf_id: bytes | None


def sizes(plans: PlanGraph, depth: int) -> tuple[list[int], bool]:
    """How many nodes the part has when it ends at depth 0, 1, .. `depth`; without listing them.

    Returns:
        the numbers, the last one for `depth` or for any greater one; and whether all are there:
        False where they would take more than MOST_STEPS steps, and the last is for a lesser depth.
    """
    found: list[int] = []
    level = {} if plans.root is None else {plans.root: 1}
    before = steps = 0
    while level:
        found.append(before + sum(level.values()))
        if len(found) > depth:
            break
        # Prefixes that are followed, and the leaves of those where a plan may stop, too.
        following = {q: ways for q, ways in level.items() if plans.rank(q)}
        before = found[-1] + sum(ways for q, ways in following.items() if plans.accepts(q))
        level = {}
        for q, ways in following.items():
            row = plans.edges(q)
            steps += len(row)
            if steps > MOST_STEPS:
                return found, False
            for _, target in row:
                level[target] = level.get(target, 0) + ways
    return found, True


def unroll(artifact: Artifact, depth: int, limit: int) -> list[Prefix]:
    """The prefixes of at most `depth` calls, breadth first, siblings in call order.

    Raises:
        ValueError: `depth` is negative.
        Rejected: D201 there are more than `limit`, or their texts are too long; or the plans of an
            artifact with bounds are too many states to unfold.
    """
    if depth < 0:
        raise ValueError(f"a depth is 0 or more, not {depth}")
    plans = graph_of(artifact)
    _require_few(plans, depth, limit)
    made = _Unrolling(artifact, plans, depth)
    return made.nodes


def _require_few(plans: PlanGraph, depth: int, limit: int) -> None:
    counted, whole = sizes(plans, depth)
    if whole and (not counted or counted[-1] <= limit):
        return
    fits = sum(1 for size in counted if size <= limit) - 1
    number = _number(counted[-1])
    there = f"{number} nodes" if whole else f"more than {number} nodes"
    way = f"; depth {fits} has {counted[fits]}" if fits >= 0 else ""
    raise Rejected(Code.LIMIT, f"depth {depth}", f"at most {limit} nodes{way}", there)


def _number(count: int) -> str:
    from tcc.screen import decimal

    return decimal(count)


class _Unrolling:
    """The list as it grows; nodes wait in it until they are followed."""

    def __init__(self, artifact: Artifact, plans: PlanGraph, depth: int) -> None:
        self.nodes: list[Prefix] = []
        self._plans = plans
        self._depth = depth
        self._text = 0
        if plans.root is None:
            return
        self._add(None, None, "", 0, plans.root, 0, artifact.root_digest)
        for node in self.nodes:  # grows while it is gone through
            if node.kind == "node":
                self._follow(node)

    def _follow(self, node: Prefix) -> None:
        plans = self._plans
        if node.accept:
            self._stop(node)
        for call, target in plans.edges(node.state):
            text = plans.texts[call]
            prefix = f"{node.prefix} {text}" if node.prefix else text
            cost = node.cost + plans.cost_low[call]
            context = child_context(node.context, text.encode())
            self._add(node.number, call, prefix, node.depth + 1, target, cost, context)

    def _add(
        self,
        parent: int | None,
        call: int | None,
        prefix: str,
        depth: int,
        state: int,
        cost: int,
        context: bytes,
    ) -> None:
        plans, rank = self._plans, self._plans.rank(state)
        kind: Kind = "leaf" if not rank else "cut" if depth == self._depth else "node"
        self._text += len(prefix)
        if self._text > MOST_TEXT:
            raise Rejected(
                Code.LIMIT, f"depth {self._depth}", f"{MOST_TEXT} characters of prefixes", "more"
            )
        self.nodes.append(
            Prefix(
                number=len(self.nodes),
                parent=parent,
                call=call,
                kind=kind,
                prefix=prefix,
                depth=depth,
                state=state,
                accept=plans.accepts(state),
                plans=plans.plans(state),
                cost=cost,
                cost_to_go=plans.cost_to_go(state),
                rank=rank,
                context=context,
                leaf_id=leaf_digest(context) if kind == "leaf" else None,
            )
        )

    def _stop(self, node: Prefix) -> None:
        """The leaf of a prefix that may also be gone on with."""
        self.nodes.append(
            Prefix(
                number=len(self.nodes),
                parent=node.number,
                call=None,
                kind="leaf",
                prefix=node.prefix,
                depth=node.depth,
                state=node.state,
                accept=True,
                plans=1,
                cost=node.cost,
                cost_to_go=0,
                rank=0,
                context=node.context,
                leaf_id=leaf_digest(node.context),
            )
        )
