"""One small grammar that tests share: twelve plans, two tools, costs, prices, limits.

Its counts are known from outside: `plans == 12`, and at 8 bits of tilt m(root) == 7828619807.
"""

from __future__ import annotations

from functools import cache

from tcc_certs.policy.reader import read_core
from tests.oracle.build import build
from tests.oracle.cores import at_most, call, depth, make_core
from tests.oracle.plans import plans

PLANS = 12
RACE_COUNT = 7828619807  # at tilt 8


def example_core() -> bytes:
    """``a b? c? | b{1,2}`` with depth <= 3 and price <= 5."""
    some_b = ["call", {1, 2}]
    return make_core(
        name="vec",
        version="1.0",
        tools=[
            {"name": "a"},
            {"name": "b", "fields": [{"name": "k", "values": ["1", "2"]}]},
            {"name": "c"},
        ],
        calls=[
            call(0, cost=300_000_000),
            call(1, [0], cost=100_000_000),
            call(1, [1], cost=200_000_000),
            call(2, cost=1_250_000_000, price=2),
        ],
        plan=[
            "alt",
            [
                ["seq", [["call", {0}], ["repeat", some_b, 0, 1], ["repeat", ["call", {3}], 0, 1]]],
                ["repeat", some_b, 1, 2],
            ],
        ],
        statements=[depth(3), at_most("price", 5)],
    )


@cache
def example(tilt: int = 8) -> bytes:
    """Its artifact."""
    core = example_core()
    return build(core, plans(read_core(core), 4), tilt=tilt)
