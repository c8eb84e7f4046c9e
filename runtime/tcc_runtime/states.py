"""Calls and states as a run uses them, each created at its first use.

Text: docs/spec/race.md, sections 3 to 5.  A node's state is a set of states of the automaton.  In a
deterministic automaton, the set has one state.  Otherwise it has all states that the node's prefix
may have led to.  Sets are created as far as the run goes, and nodes with the same set share it.
All runs over one artifact with the same recipe, inflation and rounding share the sets.
Cost: the edges of the members, the first time that a set is expanded.
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
        named: part of the record of its target node, from the member `call` to the digest.
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
    """A set of automaton states; :meth:`open` creates the members that an expansion needs.

    Attributes:
        members: their numbers in the artifact, increasing; one in a deterministic artifact.
        shown: `members` in the form of a ledger.
        count: m, the race count in units of 2^-scale.
        scale: F d, d the greatest rank of a member.
        residual: the residual part of M, Q31.32.
        cost_ahead: least cost of the calls from here on, by the recipe, nano-units.
        plans: N, if it is below 2^64; else None.
        counted, placed: two parts of a node's record: its start with the member `N` (or `Nub`), and
            the part from the end of the parent's id to the index.
        accepts: whether `stop` is a child.
        edges: (call, target), in call order; set by :meth:`open`.
        cumulative: running sums of the children's masses, `stop` last; set by :meth:`open`.
        slack: the count less the sum of the masses: the phantom mass; set by :meth:`open`.
        complete: whether every child has a mass above 0; set by :meth:`open`.
        sound: whether all children are distinct and no rank is too great; set by :meth:`open`.
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
        # Most states are used only for their count, by the states above them. So the value of an
        # unset slot is computed at its first use.
        make = _LATER.get(name)
        if make is None:
            raise AttributeError(name)
        found = make(self._tables, self)
        setattr(self, name, found)
        return found

    def open(self) -> None:
        """Create the children: their calls, states and masses.

        A child by a has the mass W(a) 2^(F (d - 1 - d(target))) m(target) in units of m.  In an
        unverified artifact a rank may be too great for that; the state is then not sound.

        Raises:
            Rejected: C401, certificates that were not checked do not hold in this state.
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
        """Raise Rejected if no kernel can have accepted this state; a race over it may claim
        nothing.

        A kernel has checked every state.  So the check fails only if the certificates were not
        checked because the caller gave the digest of a checked artifact.
        """
        off = self.slack < 0 or (tables.exact and self.slack > 0)
        if off or not self.complete or not self.sound:
            bound = "" if tables.exact else " or more"
            expected = f"the sum of distinct children of positive mass{bound}"
            raise Rejected(Code.RACE_COUNT, f"race_count[{self.shown}]", expected, self.count)


Edge: TypeAlias = "tuple[Any, ...]"
# The edge of the child drawn first, None for a phantom; and the rate of the others, None if no
# others exist.
First: TypeAlias = "tuple[Edge | None, Any]"


class View:
    """A state with a rung's numbers, and its children as far as they are created.

    An edge is a tuple.  Two members make the digest of the child: 0x01 and the text of the call, or
    0x02 and nothing.  Then come the call and the view of the target, both None for `stop`, and the
    rung's own numbers.

    Attributes:
        state: the state.
        opened: whether :meth:`open` has set the following attributes.
        size: number of children.
        bounds: ``bounds[j]`` is the least n with n m >= 2^65 (mass_0 + .. + mass_j), so the winner
            of a word x is the first j with 2x + 1 < bounds[j].
        edges: of the children by place; None until an edge is created.
        firsts: the edge of the child drawn first and the rate of the others, by that child's place.
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
        """Create the members that an expansion needs."""
        state = self.state
        state.open()
        count, masses = state.count, state.cumulative
        self.size = len(masses)
        # Without a count, nothing is drawn; only an unverified artifact may have none.
        self.bounds = [-((-mass << 65) // count) for mass in masses] if count > 0 else []
        self.edges = [None] * self.size
        self.firsts = [None] * (self.size + 1)
        self.opened = True

    def left(self, place: int) -> tuple[int, int]:
        """Return the mass of the remainder after the first draw, and its number of children."""
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
    """Calls by number and states by set, each created at its first use.

    Attributes:
        artifact: their source.
        count: returns m of a state of the artifact.
        ranks: d of the states of the artifact.
        residual: returns the residual part of M of a state of the artifact.
        cost_ahead: returns the least cost of the calls from a state on, by the recipe, nano-units.
        sets: whether a node may have more than one state.
        trusted: whether the certificates count as checked.
        exact: whether a count has to equal the sum of the masses, not only bound it.
        beta, unit: a cost in nano-units times beta, over unit, is beta times the cost.
        views: views of rungs and races, by the name of the owner.
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
        """Number of states created so far."""
        return len(self._states)

    def call(self, index: int) -> WeightedCall:
        """Return the call with that number."""
        found = self._calls.get(index)
        if found is None:
            found = self._calls[index] = WeightedCall(self.artifact, index)
        return found

    def state(self, members: tuple[int, ...]) -> State:
        """Return the state with these members."""
        found = self._states.get(members)
        if found is None:
            found = self._states[members] = State(self, members)
        return found


def tables_of(artifact: Artifact, recipe: str, inflate: str, bits: int | None = None) -> Tables:
    """Return the tables of an artifact, a recipe, an inflation and a rounding; kept with the
    artifact.
    """
    name = f"tables.{recipe}.{inflate}.{bits}"
    found = artifact.kept.get(name)
    # Many runs over a large artifact may use too many states to keep.
    if not isinstance(found, Tables) or found.size > _MOST_STATES:
        found = artifact.kept[name] = Tables(artifact, recipe, inflate, bits)
    return found
