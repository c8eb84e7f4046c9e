"""What an unrecorded run knows of states: the race's exact numbers as floating-point ones.

Text: docs/spec/race.md, section 21.  Of a node v with state q let tau(v) = n(q) t(v).  Then, with
the share p = w(a) n(target) / n(q) of a child u,

    tau(u) = p tau(v), and E(x) on top where u did not win;   key(u) = level - beta*C - ln tau(u)

with level = residual part of M + ln n of its state, 0 at a leaf.  So a child costs two logarithms
of numbers of moderate size, however great or small the counts are.
Cost: one pass over the edges of a state, the first time that one of its nodes is expanded.
"""

from __future__ import annotations

from math import frexp, log
from typing import TypeAlias

from tcc_runtime.tables import State, Tables

LN2 = log(2)
MARGIN = 2.0**-40
_SIZE = 512.0  # more than the logarithm of a tau that was not lifted, and 4

# Of a child: the bytes that its digest adds to its parent's, cost in nano-units, share, level,
# gauge of its state, and n over what is left of it without the child (0: nothing is).  Of `stop`:
# None, 0, share, 0, None.
Child: TypeAlias = "tuple[bytes | None, int, float, float, Gauge | None, float]"


class Gauge:
    """A state's numbers, each within a few units of the last place of the terms it is made of.

    Attributes:
        state: what they are the numbers of.
        level: the residual part of M, and ln n.
        children: in canonical order; empty until :meth:`open`.
        error: bounds that of a key of a child, or of what is left, whose prefix costs nothing.
    """

    __slots__ = ("children", "error", "level", "opened", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.level = state.residual / (1 << 32) + log_ratio(state.count, state.scale)
        self.opened = False
        self.children: list[Child] = []
        self.error = 0.0

    def open(self, gauges: Gauges) -> None:
        """Makes the children."""
        state = self.state
        state.open(gauges.tables)
        total, before = state.count, 0
        children: list[Child] = []
        for (call, target), running in zip(state.edges, state.cumulative, strict=False):
            gauge = gauges.of(target)
            mass, before = running - before, running
            child = (
                call.raw,
                call.cost_low,
                mass / total,
                gauge.level,
                gauge,
                _inverse(mass, total),
            )
            children.append(child)
        if state.accepts:
            mass = state.cumulative[-1] - before
            children.append((None, 0, mass / total, 0.0, None, _inverse(mass, total)))
        levels = [abs(self.level), *(abs(child[3]) for child in children)]
        self.children = children
        self.error = MARGIN * (_SIZE + max(levels))
        self.opened = True


class Gauges:
    """Gauges by state, each made when it is first asked for; kept with the tables.

    Attributes:
        tables: where the states come from.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._found: dict[State, Gauge] = {}

    def of(self, state: State) -> Gauge:
        """The gauge of a state of the tables."""
        found = self._found.get(state)
        if found is None:
            found = self._found[state] = Gauge(state)
        return found


def gauges_of(tables: Tables) -> Gauges:
    """The gauges of these tables, kept with the artifact as long as they are."""
    kept = tables.artifact.kept
    found = kept.get("gauges")
    if not isinstance(found, Gauges) or found.tables is not tables:
        found = kept["gauges"] = Gauges(tables)
    return found


def _inverse(mass: int, total: int) -> float:
    return total / (total - mass) if total > mass else 0.0


def log_ratio(mantissa: int, exponent: int) -> float:
    """ln(mantissa / 2^exponent), of a positive integer; large parts cancel as integers."""
    size = mantissa.bit_length()
    drop = max(0, size - 64)
    fraction, power = frexp(mantissa >> drop)
    return log(fraction) + (power + drop - exponent) * LN2
