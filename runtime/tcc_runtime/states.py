"""What a run knows of calls and states, made once for each one that it touches.

Text: docs/spec/race.md, sections 3 to 5.  A node's state is a set of states of the automaton: one
where the automaton is deterministic; else all those that its prefix may have led to, made as far as
the run goes and shared by all nodes with one set.  All nodes of all runs over one artifact with one
recipe, one inflation and one rounding share them.  Cost: the edges of the members, the first time
that a set is expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_runtime.artifact.counts import cost_bound, race_counts, residual_bound
from tcc_runtime.artifact.load import Artifact

_MOST_STATES = 1 << 18
_NANO_PLACES = 9
DIGEST: Final = '"ctx_digest":"'
PLACED: Final = '","tie_token":'


class WeightedCall:
    """A call as the race uses it.

    Attributes:
        index: its number in the artifact.
        text, raw: canonical text, and its UTF-8 bytes.
        named: of the record of a node that it leads to, from the member `call` to the digest.
        cost_low, cost_high: nano-units.
        numerator: W; the weight is W / 2^F.
    """

    __slots__ = ("cost_high", "cost_low", "index", "named", "numerator", "raw", "text")

    def __init__(self, artifact: Artifact, index: int) -> None:
        self.index = index
        self.text: str = artifact.texts[index]
        self.raw = self.text.encode()
        self.named = f'"call":{encode_basestring(self.text)},{DIGEST}'
        self.cost_low = artifact.cost_low[index]
        self.cost_high = artifact.cost_high[index]
        self.numerator = artifact.weight[index]


class State:
    """A set of states as a node meets it; what an expansion needs is made by :meth:`open`.

    Attributes:
        members: their numbers in the artifact, increasing; one in a deterministic artifact.
        shown: `members` as a ledger has them.
        count: m, the race count in units of 2^-scale.
        scale: F d, d the greatest rank of a member.
        residual: the residual part of M, Q31.32.
        cost_ahead: least that the calls from here on cost, by the recipe, nano-units.
        plans: N, where it is below 2^64; else None.
        counted, placed: of the record of a node here, its start with the member `N` (or `Nub`), and
            from the end of the parent's id to the index.
        accepts: whether `stop` is a child.
        edges: (call, target), in call order; set by :meth:`open`.
        cumulative: running sums of the children's masses, `stop` last; set by :meth:`open`.
        slack: the count less the sum of the masses: the phantom mass; set by :meth:`open`.
        complete: no child is without mass; set by :meth:`open`.
        sound: no two children are one, and no rank is too great; set by :meth:`open`.
    """

    __slots__ = (
        "_tables",
        "accepts",
        "complete",
        "cost_ahead",
        "count",
        "counted",
        "cumulative",
        "edges",
        "members",
        "opened",
        "placed",
        "plans",
        "residual",
        "scale",
        "shown",
        "slack",
        "sound",
    )

    accepts: bool
    cost_ahead: int
    count: int
    counted: str
    members: tuple[int, ...]
    placed: str
    plans: str | None
    residual: int
    scale: int
    shown: str

    def __init__(self, tables: Tables, members: tuple[int, ...]) -> None:
        bits, ranks = tables.artifact.manifest.fraction_bits, tables.ranks
        self._tables = tables
        self.members = members
        if len(members) == 1:
            self.scale = bits * ranks[members[0]]
            self.count = tables.count(members[0])
        else:
            rank = max([ranks[q] for q in members])
            self.scale = bits * rank
            self.count = sum([tables.count(q) << bits * (rank - ranks[q]) for q in members])
        self.opened = False
        self.edges: tuple[tuple[WeightedCall, State], ...] = ()
        self.cumulative: list[int] = []
        self.slack = 0
        self.complete = self.sound = False

    def __getattr__(self, name: str) -> object:
        # Most states are never asked for more than their count, by the states above them; what an
        # unset slot is to hold is made when somebody wants it.
        make = _LATER.get(name)
        if make is None:
            raise AttributeError(name)
        found = make(self._tables, self)
        setattr(self, name, found)
        return found

    def open(self) -> None:
        """Makes the children: their calls, states and masses.

        A child by a has the mass W(a) 2^(F (d - 1 - d(target))) m(target) in units of m; in an
        unverified artifact a rank may be too great for that, and then the state is not sound.

        Raises:
            Rejected: C401, certificates that were taken on trust do not hold in this state.
        """
        if self.opened:
            return
        tables = self._tables
        bits = tables.artifact.manifest.fraction_bits
        steps = tables.artifact.steps(self.members)
        self.edges = tuple([(tables.call(a), tables.state(q)) for a, q in steps])
        shifts = [self.scale - bits - target.scale for _, target in self.edges]
        masses = [
            call.numerator * target.count << max(0, shift)
            for (call, target), shift in zip(self.edges, shifts, strict=True)
        ]
        if self.accepts:
            masses.append(1 << self.scale)
        self.cumulative = list(accumulate(masses))
        self.slack = self.count - sum(masses)
        self.complete = min(masses, default=1) > 0
        distinct = len({call.raw for call, _ in self.edges}) == len(self.edges)
        self.sound = distinct and min(shifts, default=0) >= 0
        if tables.trusted:
            self._require_sound(tables)
        self.opened = True

    def _require_sound(self, tables: Tables) -> None:
        """Refuses what no kernel can have passed: nothing may be claimed of a race over it.

        A kernel has shown this of every state, so it can only fail where the certificates are
        taken on the word of whoever gave a digest.
        """
        off = self.slack < 0 or (tables.exact and self.slack > 0)
        if off or not self.complete or not self.sound:
            bound = "" if tables.exact else " or more"
            expected = f"the sum of distinct children of positive mass{bound}"
            raise Rejected(Code.RACE_COUNT, f"race_count[{self.shown}]", expected, self.count)


Edge: TypeAlias = "tuple[Any, ...]"
# The child that is drawn first, None where it is a phantom, and the rate of the others, None where
# there are none.
First: TypeAlias = "tuple[Edge | None, Any]"


class View:
    """A state as a rung sees it, its children as far as they were asked for.

    Edges are tuples: 0x01 and the text of the call, or 0x02 and nothing, which the digest of the
    child is made of; the call, None for `stop`; the view that it leads to, None for `stop`; then
    the rung's own numbers.

    Attributes:
        state: the state.
        opened: whether the following were made.
        size: how many children there are.
        bounds: ``bounds[j]`` is the least n with n m >= 2^65 (mass_0 + .. + mass_j), so the winner
            of a word x is the first j with 2x + 1 < bounds[j].
        edges: of the children by place, None until one is asked for.
        firsts: the same with the rate of the others, by the place that is drawn first.
    """

    __slots__ = ("bounds", "edges", "firsts", "opened", "size", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.opened = False
        self.size = 0
        self.bounds: list[int] = []
        self.edges: list[Edge | None] = []
        self.firsts: list[First | None] = []

    def open(self) -> None:
        """Makes what an expansion needs."""
        state = self.state
        state.open()
        count, masses = state.count, state.cumulative
        self.size = len(masses)
        # Without a count, which only an unverified artifact may have, nothing is drawn.
        self.bounds = [-((-mass << 65) // count) for mass in masses] if count > 0 else []
        self.edges = [None] * self.size
        self.firsts = [None] * (self.size + 1)
        self.opened = True

    def left(self, place: int) -> tuple[int, int]:
        """The mass of what is left after the first draw, and how many children it has."""
        state = self.state
        masses = state.cumulative
        if place == self.size:
            return state.count - state.slack, place
        return state.count - masses[place] + (masses[place - 1] if place else 0), self.size - 1


def _shown(tables: Tables, state: State) -> str:
    return str(list(state.members)).replace(" ", "") if tables.sets else str(state.members[0])


def _plans(tables: Tables, state: State) -> str | None:
    plans = sum(map(tables.artifact.plans, state.members))
    return str(plans) if plans < 1 << 64 else None


def _counted(tables: Tables, state: State) -> str:
    name = "N" if tables.artifact.manifest.counts == "exact" else "Nub"
    return "{" if state.plans is None else f'{{"{name}":"{state.plans}",'


_LATER: Final[dict[str, Callable[[Tables, State], object]]] = {
    "accepts": lambda tables, state: any(map(tables.artifact.accepts, state.members)),
    "cost_ahead": lambda tables, state: min(map(tables.cost_ahead, state.members)),
    "counted": _counted,
    "placed": lambda tables, state: f'","state":{state.shown}{PLACED[1:]}',
    "plans": _plans,
    "residual": lambda tables, state: max(map(tables.residual, state.members)),
    "shown": _shown,
}


class Tables:
    """Calls by number and states by set, each made when it is first asked for.

    Attributes:
        artifact: where they come from.
        count: m of a state of the artifact.
        ranks: d of the states of the artifact.
        residual: the residual part of M of a state of the artifact.
        cost_ahead: least that the calls from a state on cost, by the recipe, nano-units.
        sets: whether a node may have more than one state.
        trusted: whether every certificate of the artifact is said to hold.
        exact: whether a count has to be the sum of the masses, not a bound of it.
        beta, unit: a cost in nano-units times beta, over unit, is beta times the cost.
        views: what rungs and races have made of them, by the name of who did.
    """

    def __init__(
        self, artifact: Artifact, recipe: str, inflate: str = "1", bits: int | None = None
    ) -> None:
        self.artifact: Final[Artifact] = artifact
        self.count: Final[Callable[[int], int]] = race_counts(artifact, inflate, bits)
        self.ranks: Final[Sequence[int]] = artifact.automaton.rank
        self.residual: Final[Callable[[int], int]] = residual_bound(artifact, recipe)
        self.cost_ahead: Final[Callable[[int], int]] = cost_bound(artifact, recipe)
        self.sets: Final[bool] = artifact.nondeterministic
        self.trusted: Final[bool] = artifact.verified
        own = inflate == "1" and bits is None
        self.exact: Final[bool] = artifact.manifest.counts == "exact" and own
        beta, places = artifact.manifest.beta
        self.beta: Final[int] = beta
        self.unit: Final[int] = 10 ** (places + _NANO_PLACES)
        self.views: dict[str, object] = {}
        self._calls: dict[int, WeightedCall] = {}
        self._states: dict[tuple[int, ...], State] = {}

    @property
    def size(self) -> int:
        """How many states were made."""
        return len(self._states)

    def call(self, index: int) -> WeightedCall:
        """The call of that number."""
        found = self._calls.get(index)
        if found is None:
            found = self._calls[index] = WeightedCall(self.artifact, index)
        return found

    def state(self, members: tuple[int, ...]) -> State:
        """The state of these members."""
        found = self._states.get(members)
        if found is None:
            found = self._states[members] = State(self, members)
        return found


def tables_of(artifact: Artifact, recipe: str, inflate: str, bits: int | None = None) -> Tables:
    """The tables of an artifact, a recipe, an inflation and a rounding, kept with the artifact."""
    name = f"tables.{recipe}.{inflate}.{bits}"
    found = artifact.kept.get(name)
    # Of many runs over a large artifact, the states that all of them touch may be too many to keep.
    if not isinstance(found, Tables) or found.size > _MOST_STATES:
        found = artifact.kept[name] = Tables(artifact, recipe, inflate, bits)
    return found
