"""Published numbers: each rounded once, with more precision where an enclosure does not decide.

Text: docs/spec/race.md, section 7.  Cost: a few integer operations; once in 2^60 numbers or so the
arrivals of a whole path again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from tcc_certs.formats.decimals import divide_nearest
from tcc_certs.formats.fixed import Q64_MAX, Q64_MIN
from tcc_runtime.errors import Undecided
from tcc_runtime.load import Artifact
from tcc_runtime.node import Node
from tcc_runtime.numbers import LAST_BITS, Real, Reals, clamped, units

TimeAt: TypeAlias = "Callable[[Node, Reals, int], Real]"
_Answer = TypeVar("_Answer")
_NANO_PLACES = 9


class Rounding:
    """The published numbers of one race.

    Args:
        artifact: beta, and the fraction bits of the weights.
        reals: the working precision.
        time_at: t of a node at another precision; its third argument is the fraction bits.
        units_of: the relative error of a node's t, in units of 2^-p.
    """

    __slots__ = ("_beta", "_bits", "_reals", "_time_at", "_unit", "_units_of")

    def __init__(
        self,
        artifact: Artifact,
        reals: Reals,
        time_at: TimeAt,
        units_of: Callable[[Node], int] = lambda node: units(node.depth),
    ) -> None:
        beta, places = artifact.manifest.beta
        self._beta = beta
        self._unit: int = 10 ** (places + _NANO_PLACES)
        self._bits = artifact.manifest.fraction_bits
        self._reals = reals
        self._time_at = time_at
        self._units_of = units_of

    def push(self, node: Node) -> None:
        """Publishes -ln t and the key of a node about to be pushed.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        exact = self._numbers(node)
        node.neg_log_t, node.key = exact
        node.clamp = max(exact) > Q64_MAX or min(exact) < Q64_MIN
        if node.clamp:
            node.neg_log_t, node.key = clamped(exact[0]), clamped(exact[1])

    def anchor(self, node: Node) -> None:
        """Publishes the key that the parent's arrival gives; -ln t stays open.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        _, exact = self._numbers(node)
        node.neg_log_t = None
        node.key = clamped(exact)
        node.clamp = node.key != exact

    def realise(self, node: Node) -> None:
        """Publishes -ln t of a node that is popped, and the value of a leaf; its key stays.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        log, value = self._numbers(node)
        node.neg_log_t = clamped(log)
        node.clamp = node.neg_log_t != log
        if node.state is None:
            node.value = clamped(value)
            node.clamp |= node.value != value

    def bounded(self, node: Node, residual: int) -> int:
        """-beta * (cost of the prefix + `residual` nano-units), rounded; not clamped."""
        return divide_nearest(-self._beta * (node.cost + residual) << 64, self._unit)

    def scored(self, node: Node, noise: Callable[[Reals], tuple[int, int]]) -> int:
        """-beta * cost + noise, rounded; not clamped.

        Args:
            noise: a real with S fractional bits and a bound of its error, at any precision.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """

        def attempt(reals: Reals) -> int:
            value, error = noise(reals)
            score = ((-self._beta * node.cost) << reals.shift) // self._unit
            return reals.nearest(score + value, error, error + 1)

        return self.decided(attempt)

    def arrival_word(self, leaf: Node) -> int:
        """U_P = floor(2^64 (1 - e^-t)) of a leaf.

        Raises:
            Undecided: 4096 bits do not decide it.
        """
        try:
            return self._reals.arrival_word(leaf.time, self._units_of(leaf))
        except Undecided:
            return self._again(
                lambda reals: reals.arrival_word(
                    self._time_at(leaf, reals, self._bits), self._units_of(leaf)
                )
            )

    def decided(self, attempt: Callable[[Reals], _Answer]) -> _Answer:
        """What `attempt` gives at the least precision at which it decides.

        Raises:
            Undecided: 4096 bits are not enough.
        """
        try:
            return attempt(self._reals)
        except Undecided:
            return self._again(attempt)

    def _numbers(self, node: Node) -> tuple[int, int]:
        try:
            return self._rounded(node, self._reals, node.log, node.log_error)
        except Undecided:
            return self._again(lambda reals: self._rounded_at(node, reals))

    def _rounded(self, node: Node, reals: Reals, log: int, error: int) -> tuple[int, int]:
        shift = reals.shift
        bound = ((-self._beta * node.cost) << shift) // self._unit
        if node.state is not None:
            bound += node.state.residual << (shift - 32)
        return reals.nearest(-log, error, error), reals.nearest(bound - log, error, error + 1)

    def _rounded_at(self, node: Node, reals: Reals) -> tuple[int, int]:
        log = reals.log(self._time_at(node, reals, self._bits))
        return self._rounded(node, reals, log, reals.log_error(log, self._units_of(node)))

    def _again(self, attempt: Callable[[Reals], _Answer]) -> _Answer:
        bits = 2 * self._reals.bits
        while True:
            try:
                return attempt(Reals(min(bits, LAST_BITS)))
            except Undecided:
                if bits >= LAST_BITS:
                    raise
                bits *= 2
