"""The first rung: enclosures by the processor's floating-point numbers, for runs without a ledger.

Text: docs/spec/race.md, section 21.  A run without a ledger only compares keys.  So a key is stored
as a floating-point number with a bound of its error.  The exact key is computed for an open
comparison, for each leaf found, and for the items left at the end.

For a node v with state q let tau(v) = n(q) t(v).  With the share p = w(a) n(target) / n(q) of a
child u,

    tau(u) = p tau(v), plus E(x) if u did not win
    key(u) = level - beta*C - ln tau(u)

with level = residual part of M + ln n of its state, 0 at a leaf.  So a child costs a few operations
on numbers of moderate size, however large or small the counts are.
Cost: two logarithms of the processor for a drawn arrival, none for a winner.

Error analysis.  The platform's `log` and `log1p` are assumed to be right to 44 bits; good ones are
right to 52.  An item stores minus the key as well as tau, because a winner only adds to the key.
tau itself matters only if an E is added to it.  E is at least 2^-65, so a tau that underflows loses
nothing.

Let D be the root's rank, F the fraction bits, B the bits of the root's race count m.  Every other m
is at most the root's, because masses are whole multiples of the targets' counts.  So abs(ln n) <= L
= max(F D, B) ln 2. ln t lies between -(L + F D ln 2 + 46) and L + ln(4 * draws), so abs(ln tau) <=
3 L + 128.  A residual of a call is at most beta abs(c) + 45 in size.  Let G be more than beta times
the cost of any prefix; then a level is at most L + G + 45 D.  Let S be more than the sum of the
greatest sizes of a level, of beta times a cost, and of ln tau.

- tau: a share is one correctly rounded division, and a child's tau is one more product.  A draw
  adds positive numbers: E, right to 44 bits, times a number right to 53.  So d calls and j draws on
  a path leave a relative error of at most (2d + 3j + 2) 2^-53 + 2^-44.
- beta*C - level: d sums of numbers right to 2^-44 S in all, 2^-53 S each.
- minus the key: these two and a logarithm, 2^-44 S.  Along winners instead: d more sums of numbers
  that are right to 2^-44 S in all.

With d <= 4096 the total is less than 2^-38 S + j 2^-51 S.  The rounding to Q64.64 is far below it.
j is at most the number of draws of the run so far.
"""

from __future__ import annotations

from math import frexp, inf, log, log1p
from typing import Any, Final

from blake3 import blake3

from tcc_runtime.artifact.constraints import Held
from tcc_runtime.item import Item, NodeRemainder
from tcc_runtime.numbers.rung import Path, Rung
from tcc_runtime.states import Edge, State, Tables, View

# Members after the common ones: tau; beta*C - level, and minus the key, in units of Q64.64.
TAU, BASE, NEAR = range(9, 12)
LN2 = log(2)
UNIT: Final = 2.0**64  # unit of the numbers that are compared with keys, Q64.64
LARGEST: Final = 2.0**900  # greatest arrival; greater ones go to the next rung
_DRAW = 2.0**-51
_DRAWS = 1 << 13  # draws that one bound allows for
_WIDEST = 900  # greatest size in bits of the factor of an E

# E of a word x is -log1p((x + 1/2) DOWN) if x < HALF, else -log((WORDS - x - 1/2) / 2^64). Each
# form is the accurate one in its half.
HALF: Final = 1 << 63
WORDS: Final = 1 << 64
DOWN: Final = -(2.0**-64)
ACROSS: Final = 2.0**-64


def exponential(word: int) -> float:
    """Return E of a PRF word; relatively right to 44 bits at both ends."""
    return -(log1p((word + 0.5) * DOWN) if word < HALF else log((WORDS - word - 0.5) * ACROSS))


def log_ratio(mantissa: int, exponent: int) -> float:
    """Return ln(mantissa / 2^exponent) of a positive integer; large parts cancel as integers."""
    size = mantissa.bit_length()
    drop = max(0, size - 64)
    fraction, power = frexp(mantissa >> drop)
    return log(fraction) + (power + drop - exponent) * LN2


class FloatView(View):
    """View of a state; `level` is the residual part of M, and ln n."""

    __slots__ = ("level",)

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.level = state.residual / (1 << 32) + log_ratio(state.count, state.scale)


class _Views(dict[State, FloatView]):
    """Views by state, stored with the tables."""


class Floats(Rung):
    """Makes items from enclosures.

    Args:
        most_cost: more than beta times the cost of any prefix.
        margin: error bound of an enclosure, relative to S.
        path: the finer rungs.
    """

    named = False
    clamping = False

    def __init__(self, tables: Tables, most_cost: float, margin: float, path: Path) -> None:
        found = tables.views.get("floats")
        if not isinstance(found, _Views):
            found = tables.views["floats"] = _Views()
        self._views = found
        self._beta = tables.beta / tables.unit
        self._path = path
        artifact = tables.artifact
        rank, bits = artifact.rank(artifact.root), artifact.manifest.fraction_bits
        counts = max(bits * rank, tables.count(artifact.root).bit_length()) * LN2
        level = counts + most_cost + 45.0 * rank
        self._size = UNIT * (level + most_cost + 3 * counts + 128.0)
        self._margin = margin
        self._draws = 0
        self._error = 0.0
        self.width = 0.0
        self._allow()

    def _allow(self) -> None:
        """Raise the error bound, so that it covers further draws; the bound never falls."""
        self._error = self._size * (self._margin + (self._draws + _DRAWS) * _DRAW)
        self.width = 2 * self._error

    def view(self, state: State) -> FloatView:
        """Return the view of a state, with its level."""
        found = self._views.get(state)
        if found is None:
            found = self._views[state] = FloatView(state)
        return found

    def edge(self, view: View, place: int) -> Edge:
        """Create the edge to the child at `place`.

        Members after the common ones: the step of beta*C - level, the share, and the step of minus
        the key for a winner.
        """
        state, source = view.state, self.view(view.state)
        masses, total = state.cumulative, state.count
        mass = masses[place] - (masses[place - 1] if place else 0)
        share = mass / total
        if share > 2.0**-900:
            log_share = log(share)
        else:
            log_share = log_ratio(mass, 0) - log_ratio(total, 0)
        found: Edge
        if place < len(state.edges):
            call, to = state.edges[place]
            target = self.view(to)
            step = self._beta * call.cost_low + source.level - target.level
            numbers = step * UNIT, share, (step + log_share) * UNIT
            found = b"\x01", call.raw, call, target, *numbers
        else:
            numbers = source.level * UNIT, share, (source.level + log_share) * UNIT
            found = b"\x02", b"", None, None, *numbers
        view.edges[place] = found
        return found

    def rate(self, view: View, mass: int) -> Any:
        """Return n over `mass`, and count one more draw."""
        self._draws += 1
        if self._draws % _DRAWS == 0:
            self._allow()
        return _inverse(view, mass)

    def first(
        self,
        view: View | None,
        ident: bytes,
        word: int,
        source: Item | None = None,
        edge: Edge | None = None,
        place: int = 0,
        held: Held | None = None,
    ) -> Item:
        """Create an item with tau = E."""
        tau = exponential(word)
        if source is None or edge is None:
            base = 0.0 if view is None else -self.view(view.state).level * UNIT
        else:
            base = source[BASE] + edge[4]
        near = base + log(tau) * UNIT
        common = view, None, source, place, edge, word, held
        return near - self._error, ident, *common, tau, base, near

    def won(
        self,
        source: Item,
        edge: Edge,
        ident: bytes,
        place: int,
        word: int | None,
        held: Held | None,
    ) -> Item:
        """Create a winner, with two sums and a product."""
        near = source[11] + edge[6]
        return (
            near - self._error, ident, edge[3], None, source, place, edge, word, held,
            source[9] * edge[5], source[10] + edge[4], near,
        )  # fmt: skip

    def lost(
        self, source: Item, edge: Edge, ident: bytes, place: int, word: int, held: Held | None
    ) -> Item:
        """Create a child with a drawn arrival, p tau + E."""
        tau = source[9] * edge[5] - (
            log1p((word + 0.5) * DOWN) if word < HALF else log((WORDS - word - 0.5) * ACROSS)
        )
        base = source[10] + edge[4]
        if tau < LARGEST:
            near = base + log(tau) * UNIT
            return (
                near - self._error, ident, edge[3], None, source, place, edge, word, held,
                tau, base, near,
            )  # fmt: skip
        return self._beyond((0.0, ident, edge[3], None, source, place, edge, word, held, inf, base))

    def after(
        self, source: Item, ident: bytes, left: NodeRemainder | int, word: int, rate: Any
    ) -> Item:
        """Create the remainder of a node, with a drawn arrival, tau + E n / mass."""
        tau = source[9] - rate * (
            log1p((word + 0.5) * DOWN) if word < HALF else log((WORDS - word - 0.5) * ACROSS)
        )
        base = source[10]
        if tau < LARGEST:
            near = base + log(tau) * UNIT
            return (
                near - self._error, ident, source[2], left, source, 0, None, word, source[8],
                tau, base, near,
            )  # fmt: skip
        item = 0.0, ident, source[2], left, source, 0, None, word, source[8], inf, base
        return self._beyond(item)

    def recost(self, item: Item, cost: int) -> Item:
        """Raise ValueError: costs rise by less than the width of an enclosure."""
        raise ValueError("where costs are ranges no enclosure decides whether one has risen")

    def order(self, item: Item) -> Item:
        """Return the item with its exact key and its id.

        Raises:
            Undecided: no precision decides the key.
        """
        if isinstance(item[0], int):
            return item
        return -self._path.published(item)[1], ident_of(item), *item[2:]

    def shown(self, item: Item) -> tuple[int, int]:
        """Return -ln t, computed by a finer rung at each call."""
        return self._path.published(item)[0], 0

    def arrival_word(self, leaf: Item) -> int:
        """Return U_P of a leaf.

        Raises:
            Undecided: no precision decides it.
        """
        return self._path.arrival_word(leaf)

    def _beyond(self, item: Item) -> Item:
        """Return an item whose tau is beyond the range, with the key of the next rung."""
        key = self._path.published(item)[1]
        return (-key, ident_of(item), *item[2:], float(-key))


def ident_of(item: Item) -> bytes:
    """Return the id of an item; the id of a remainder is hashed here."""
    ident: bytes = item[1]
    return ident if len(ident) == 32 else blake3(b"\x03" + ident).digest()


def _inverse(view: View, mass: int) -> float:
    total = view.state.count
    if total.bit_length() - mass.bit_length() > _WIDEST:
        return inf
    return total / mass
