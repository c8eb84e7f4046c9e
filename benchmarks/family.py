"""A family of growing tool grammars: gathering, steps, refining and an end, under four limits.

There are twelve roles.  Each role has one tool, or twenty-five tools that differ in price and cost.
A shape says how often the parts repeat and how loose the limits are.  The programs for other
libraries (:mod:`benchmarks.openfst`, :mod:`benchmarks.dfa`) are built from the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROLES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One grammar of the family.

    Attributes:
        tools: the number of tools, 12 or 300.
        gather, steps: how often the parts may repeat.
        depth, price, uses: the bounds of the limits.
    """

    tools: int
    gather: int
    steps: int
    depth: int
    price: int
    uses: int

    def names(self, *roles: int) -> list[str]:
        """Return the names of the tools with these roles."""
        each = self.tools // ROLES
        return [f"t{role:02d}_{at:02d}" for role in roles for at in range(each)]

    def prices(self) -> dict[str, int]:
        """Return the price of each tool, in cents."""
        each = self.tools // ROLES
        return {
            f"t{role:02d}_{at:02d}": 1 + (role * 5 + at) % 7
            for role in range(ROLES)
            for at in range(each)
        }

    def limited(self) -> list[str]:
        """Return the tools whose uses are limited."""
        return [self.names(0)[0], self.names(4)[0]]

    def text(self) -> str:
        """Return the text of the grammar."""
        each = self.tools // ROLES
        last = f"({_any(self.names(10))}) ({_any(self.names(11))})"
        lines = ['grammar family version "1"']
        for number, (name, price) in enumerate(self.prices().items()):
            role, at = divmod(number, each)
            tenths = 1 + (role * 7 + at * 3) % 10
            lines.append(f"tool {name} {{ cost {tenths // 10}.{tenths % 10} price {price} }}")
        lines += [
            f"rule gather = ({_any(self.names(0, 1, 2))}){{1,{self.gather}}}",
            f"rule step = ({_any(self.names(3))}) ({_any(self.names(4, 5))})?",
            f"rule refine = ({_any(self.names(6))}) ({_any(self.names(7, 8))}){{0,2}}",
            f"rule finish = ({_any(self.names(9))}) | {last}",
            f"plan = gather step{{0,{self.steps}}} refine{{0,{self.steps}}} finish",
            f"limit depth <= {self.depth}",
            f"limit price <= {self.price}",
        ]
        lines += [f"limit count({name}) <= {self.uses}" for name in self.limited()]
        return "\n".join(lines) + "\n"


def _any(names: Sequence[str]) -> str:
    return " | ".join(names)


def shape(tools: int, gather: int, steps: int, depth: int, price: int, uses: int) -> Shape:
    """Return a shape from its numbers in order."""
    return Shape(tools=tools, gather=gather, steps=steps, depth=depth, price=price, uses=uses)


# About 10^3, 10^4, 10^5 and 10^6 minimal states.
TWELVE = (
    shape(12, 6, 4, 16, 40, 2),
    shape(12, 10, 8, 30, 80, 3),
    shape(12, 18, 16, 50, 160, 3),
    shape(12, 36, 30, 100, 370, 4),
)
# With 300 tools, 10^6 states would have 10^8 edges over calls, too many for a file.
THREE_HUNDRED = (
    shape(300, 4, 3, 12, 24, 2),
    shape(300, 8, 6, 19, 54, 2),
    shape(300, 14, 10, 36, 124, 3),
)
