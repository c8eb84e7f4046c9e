"""Meters: what each limit of a core has left, and what a call leaves of it.

What is left is a tuple, a number for each meter, FAR once its limit cannot bind any more;
equal tuples are one number.  A :class:`Drain` is the table of one way to use the meters up: a call
of some weights, and the outlook of what follows it.
Cost: the number of limits for each drain and each tuple that comes to it, once.
"""

from __future__ import annotations

from operator import le
from typing import TypeAlias

from tcc_certs.corecheck.letters import Alphabet
from tcc_certs.corecheck.outlook import FAR, Outlook

Left: TypeAlias = "tuple[int, ...]"


class Meters:
    """The meters of one core.

    Attributes:
        left: by number, what is left of each meter.
        start: what is left before the first call.
        ends: for each meter the least and the most that one call or none can weigh.
    """

    __slots__ = ("_drains", "_number", "ends", "left", "start")

    def __init__(self, alphabet: Alphabet) -> None:
        self._number: dict[Left, int] = {}
        self.left: list[Left] = []
        self.start = self.number(tuple(FAR if b is None else b for b in alphabet.bounds))
        none = (0,) * len(alphabet.bounds)
        weights = [none, *(letter.weights for letter in alphabet.letters)]
        self.ends = [(min(column), max(column)) for column in zip(*weights, strict=True)]
        self._drains: dict[tuple[tuple[int, ...], Outlook, int], Drain] = {}

    def number(self, left: Left) -> int:
        """The number of what is left."""
        number = self._number.setdefault(left, len(self.left))
        if number == len(self.left):
            self.left.append(left)
        return number

    def drain(self, weights: tuple[int, ...], ahead: Outlook, least_calls: int) -> Drain:
        """The table of calls of `weights` with `ahead` behind them, of at least so many calls."""
        key = (weights, ahead._replace(touched=0), least_calls)
        found = self._drains.get(key)
        if found is None:
            found = self._drains[key] = Drain(self, weights, ahead, least_calls)
        return found

    def fits(self, left: int, low: tuple[int, ...]) -> bool:
        """Whether words that weigh at least `low` can be within what is left."""
        rows = zip(self.left[left], low, strict=True)
        return all(least <= rest for rest, least in rows)

    def no_more(self, left: int, other: int) -> bool:
        """Whether `left` has on every meter no more than `other`."""
        return all(map(le, self.left[left], self.left[other]))

    def overdrawn(self, left: int) -> bool:
        """Whether a limit is broken if the plan stops here."""
        return any(rest < 0 for rest in self.left[left])


class Drain(dict[int, "int | None"]):
    """By the number of what was left before, of what is left after; None: a limit breaks."""

    __slots__ = ("_depth", "_least_calls", "_meters", "_others")

    def __init__(
        self, meters: Meters, weights: tuple[int, ...], ahead: Outlook, least_calls: int
    ) -> None:
        self._meters = meters
        self._least_calls = least_calls
        rows = list(zip(weights, ahead.low, ahead.high, meters.ends, strict=True))
        self._depth = rows[0]
        self._others = rows[1:]

    def __missing__(self, left: int) -> int | None:
        after = self._after(self._meters.left[left])
        found = self[left] = None if after is None else self._meters.number(after)
        return found

    def _after(self, left: Left) -> Left | None:
        """What is left after the call, forgetting what cannot matter; None where a limit breaks."""
        weight, low, calls, _ = self._depth
        depth = left[0]
        if depth != FAR:
            depth -= weight
            if low > depth:
                return None
            if calls <= depth:
                depth = FAR
            else:
                calls = depth
        if self._least_calls > calls:
            return None
        found = [depth]
        for rest, (weight, low, high, ends) in zip(left[1:], self._others, strict=True):
            if rest != FAR:
                rest -= weight
                # So many calls weigh no less and no more than their number times the ends.
                if rest < low or rest < calls * ends[0]:
                    return None
                if rest >= high or rest >= calls * ends[1]:
                    rest = FAR
            found.append(rest)
        return tuple(found)
