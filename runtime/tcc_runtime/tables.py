"""What a run knows of calls and states, made once for each one that it touches.

Text: docs/spec/race.md, sections 3 and 5.  Shared by all nodes of all runs over one artifact with
one recipe.  Cost: a state's own edges, the first time that it is expanded.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from tcc_runtime.keys import residual_bound
from tcc_runtime.load import Artifact
from tcc_runtime.numbers import FIRST_BITS, Real, Reals


class Call:
    """A call as the race uses it.

    Attributes:
        text, raw: canonical text, and its UTF-8 bytes.
        cost_low, cost_high: nano-units.
        numerator: W; the weight is W / 2^F.
        weight: w, exact.
        log, log_error: ln w in units of 2^-S and a bound of its error.
    """

    __slots__ = (
        "cost_high",
        "cost_low",
        "log",
        "log_error",
        "numerator",
        "raw",
        "text",
        "weight",
    )

    def __init__(self, artifact: Artifact, index: int, reals: Reals) -> None:
        bits = artifact.manifest.fraction_bits
        self.text: str = artifact.texts[index]
        self.raw = self.text.encode()
        self.cost_low = artifact.cost_low[index]
        self.cost_high = artifact.cost_high[index]
        self.numerator = artifact.weight[index]
        self.weight: Real = reals.scaled(self.numerator, bits)
        unit = self.numerator == 1 << bits
        self.log = 0 if unit else reals.log(self.weight)
        self.log_error = 0 if unit else reals.log_error(self.log, 0)


class State:
    """A state as a node meets it; what an expansion needs besides is made by :meth:`open`.

    Attributes:
        number: its number in the artifact.
        count: m, the race count in units of 2^-scale.
        scale: F d.
        rate: n = m / 2^scale.
        residual: the residual part of M, Q31.32.
        plans: N, where it is below 2^64; else None.
        accepts: whether `stop` is a child.
        edges: (call, target), in call order; set by :meth:`open`.
        cumulative: running sums of the children's masses, `stop` last; set by :meth:`open`.
        faithful: the masses add up to the count, and no two children are one.
    """

    __slots__ = (
        "accepts",
        "count",
        "cumulative",
        "edges",
        "faithful",
        "number",
        "opened",
        "plans",
        "rate",
        "residual",
        "scale",
    )

    def __init__(self, tables: Tables, number: int) -> None:
        artifact = tables.artifact
        self.number = number
        self.count = artifact.race_count(number)
        self.scale = artifact.manifest.fraction_bits * artifact.rank(number)
        self.rate: Real = tables.reals.scaled(self.count, self.scale)
        self.residual = tables.residual(number)
        plans = artifact.plans(number)
        self.plans = str(plans) if plans < 1 << 64 else None
        self.accepts = artifact.accepts(number)
        self.opened = False
        self.edges: tuple[tuple[Call, State], ...] = ()
        self.cumulative: list[int] = []
        self.faithful = False

    def open(self, tables: Tables) -> None:
        """Makes the children: their calls, states and masses.

        A child by a has the mass W(a) 2^(F (d - 1 - d(target))) m(target) in units of m; in an
        unverified artifact a rank may be too great for that, and then the state is not faithful.
        """
        if self.opened:
            return
        bits = tables.artifact.manifest.fraction_bits
        self.edges = tuple(
            (tables.call(a), tables.state(q)) for a, q in tables.artifact.edges(self.number)
        )
        shifts = [self.scale - bits - target.scale for _, target in self.edges]
        masses = [
            call.numerator * target.count << max(0, shift)
            for (call, target), shift in zip(self.edges, shifts, strict=True)
        ]
        if self.accepts:
            masses.append(1 << self.scale)
        self.cumulative = list(accumulate(masses))
        distinct = len({call.raw for call, _ in self.edges}) == len(self.edges)
        adds_up = self.cumulative[-1:] == [self.count] and min(masses) > 0
        self.faithful = adds_up and distinct and min(shifts, default=0) >= 0
        self.opened = True


class Tables:
    """Calls and states by number, each made when it is first asked for.

    Attributes:
        artifact: where they come from.
        reals: the working precision of their numbers.
    """

    def __init__(self, artifact: Artifact, recipe: str, bits: int = FIRST_BITS) -> None:
        self.artifact: Final = artifact
        self.reals: Final = Reals(bits)
        self.residual: Final = residual_bound(artifact, recipe)
        self._calls: dict[int, Call] = {}
        self._states: dict[int, State] = {}

    def call(self, index: int) -> Call:
        """The call of that number."""
        found = self._calls.get(index)
        if found is None:
            found = self._calls[index] = Call(self.artifact, index, self.reals)
        return found

    def state(self, number: int) -> State:
        """The state of that number."""
        found = self._states.get(number)
        if found is None:
            found = self._states[number] = State(self, number)
        return found


def tables_of(artifact: Artifact, recipe: str) -> Tables:
    """The tables of an artifact and a recipe, made once and kept with the artifact."""
    name = f"tables.{recipe}"
    found = artifact.kept.get(name)
    if not isinstance(found, Tables):
        found = artifact.kept[name] = Tables(artifact, recipe)
    return found
