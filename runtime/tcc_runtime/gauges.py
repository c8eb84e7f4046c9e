"""What an unrecorded run knows of states: the race's exact numbers as floating-point ones.

Text: docs/spec/race.md, section 21.  Of a node v with state q let tau(v) = n(q) t(v).  Then, with
the share p = w(a) n(target) / n(q) of a child u,

    tau(u) = p tau(v), and E(x) on top where u did not win;   key(u) = level - beta*C - ln tau(u)

with level = residual part of M + ln n of its state, 0 at a leaf.  So a child costs a few operations
on numbers of moderate size, however great or small the counts are.
Cost: a child, the first time that it is drawn, a few divisions of integers and a logarithm.
"""

from __future__ import annotations

from math import frexp, log
from threading import Lock
from typing import TypeAlias

from tcc_runtime.tables import Call, State, Tables

LN2 = log(2)
UNIT = 2.0**64  # of the numbers that are compared with keys, Q64.64
LEAST = 2.0**-900  # of a share or an arrival that is told from 0
_WIDEST = 900  # bits of what an E is multiplied by


class Unfit(Exception):
    """A number left the range that the error analysis covers; a recorded run has no such range."""


# Of a child: the bytes that its digest adds to its parent's (None at `stop`); what it adds to
# beta*C - level, in units of Q64.64; its share; what it adds to minus the key where it wins; the
# gauge of its state (None at `stop`); and n over what is left of it without the child (0: no other
# child is).
Child: TypeAlias = "tuple[bytes | None, float, float, float, Gauge | None, float]"


class Gauge:
    """A state's numbers, each within a few units of the last place of the terms it is made of.

    Attributes:
        state: what they are the numbers of.
        index: its number in :attr:`Gauges.table`.
        level: the residual part of M, and ln n.
        children: in canonical order, None until :meth:`child` makes one; empty until :meth:`open`.
        calls: of the children, None for `stop`; set by :meth:`open`.
        made: all of them, where :meth:`complete` was called; else empty.
    """

    __slots__ = ("_gauges", "calls", "children", "index", "level", "made", "opened", "state")

    def __init__(self, state: State, index: int, gauges: Gauges) -> None:
        self.state = state
        self.index = index
        self.level = state.residual / (1 << 32) + log_ratio(state.count, state.scale)
        self.children: list[Child | None] = []
        self.calls: list[Call | None] = []
        self.made: list[Child] = []
        self.opened = False
        self._gauges = gauges

    def open(self) -> None:
        """Makes room for the children."""
        if self.opened:
            return
        state = self.state
        state.open(self._gauges.tables)
        self.calls = [call for call, _ in state.edges]
        if state.accepts:
            self.calls.append(None)
        self.children = [None] * len(self.calls)
        self.opened = True

    def child(self, place: int) -> Child:
        """The child at `place` of an opened state.

        Raises:
            Unfit: next to nothing is left without it.
        """
        found = self.children[place]
        if found is None:
            found = self.children[place] = self._made(place)
        return found

    def complete(self) -> None:
        """Makes all children."""
        self.open()
        self.made = [self.child(place) for place in range(len(self.children))]

    def _made(self, place: int) -> Child:
        state, gauges = self.state, self._gauges
        masses, total = state.cumulative, state.count
        mass = masses[place] - (masses[place - 1] if place else 0)
        raw, cost, target = None, 0.0, None
        if place < len(state.edges):
            call, there = state.edges[place]
            raw, target = call.raw, gauges.of(there)
            cost = gauges.beta * call.cost_low
        share = mass / total
        step = cost + self.level - (target.level if target is not None else 0.0)
        inverse = gauges.inverse(total, total - mass) if len(masses) > 1 else 0.0
        # A share of next to nothing is no arrival of its own: whoever meets its winner gives up.
        delta = step + (log(share) if share > LEAST else 0.0)
        return raw, step * UNIT, share, delta * UNIT, target, inverse


class Gauges:
    """Gauges by state, each made when it is first asked for; kept with the tables.

    Attributes:
        tables: where the states come from.
        table: by number.
        beta: of a nano-unit.
        unit: what a cost in nano-units times the digits of beta is divided by.
        root: the gauge of the root.
        most: the greatest level in size so far.
    """

    def __init__(self, tables: Tables) -> None:
        beta, places = tables.artifact.manifest.beta
        self.tables = tables
        self.unit: int = 10 ** (places + 9)
        self.beta: float = beta / self.unit
        self.most = 0.0
        self.table: dict[int, Gauge] = {}
        self._found: dict[State, Gauge] = {}
        self._lock = Lock()
        self.root = self.of(tables.state((tables.artifact.root,)))

    def of(self, state: State) -> Gauge:
        """The gauge of a state of the tables."""
        found = self._found.get(state)
        if found is None:
            with self._lock:
                found = self._found.get(state)
                if found is None:
                    found = Gauge(state, len(self.table), self)
                    # Whoever meets the gauge has to find the rest already there.
                    self.most = max(self.most, abs(found.level))
                    self.table[found.index] = found
                    self._found[state] = found
        return found

    def inverse(self, total: int, left: int) -> float:
        """``total / left``.

        Raises:
            Unfit: it is beyond the numbers of an unrecorded run.
        """
        if total.bit_length() - left.bit_length() > _WIDEST:
            raise Unfit
        return total / left


def gauges_of(tables: Tables) -> Gauges:
    """The gauges of these tables, kept with the artifact as long as they are."""
    kept = tables.artifact.kept
    found = kept.get("gauges")
    if not isinstance(found, Gauges) or found.tables is not tables:
        found = kept["gauges"] = Gauges(tables)
    return found


def log_ratio(mantissa: int, exponent: int) -> float:
    """ln(mantissa / 2^exponent), of a positive integer; large parts cancel as integers."""
    size = mantissa.bit_length()
    drop = max(0, size - 64)
    fraction, power = frexp(mantissa >> drop)
    return log(fraction) + (power + drop - exponent) * LN2
