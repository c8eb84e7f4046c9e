"""One small grammar with everything that sessions are about: a help desk.

Plans: ``any*`` of at most three finds, refunds, mails and test runs that end in ``close``; after a
test run that failed comes another one.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from tcc_certs.formats.codec import encode
from tcc_certs.kernel import CheckedArtifact, check
from tests.oracle.build import build
from tests.oracle.cores import call, make_core

TOOLS: list[dict[str, Any]] = [
    {"name": "close", "params": []},
    {
        "name": "find",
        "params": [{"name": "kind", "values": ["order", "person"]}],
        "open": [
            {"name": "id", "type": "text", "min": 1, "max": 20, "pattern": "[a-z]+-[0-9]{1,4}"}
        ],
    },
    {
        "name": "refund",
        "params": [{"name": "part", "values": ["", "full", "half"]}],
        "open": [
            {"name": "amount", "type": "number", "low": "0", "high": "500"},
            {"name": "note", "type": "text", "min": 0, "max": 200, "optional": True},
            {"name": "order", "type": "text", "min": 0, "max": 20},
        ],
    },
    {
        "name": "run",
        "params": [{"name": "result", "values": ["fail", "pass"], "observed": True}],
    },
    {
        "name": "send-mail",
        "params": [],
        "open": [
            {"name": "about", "type": "text", "min": 0, "max": 20},
            {"name": "corps é", "type": "json", "max": 100, "optional": True},
            {"name": "urgent", "type": "flag", "optional": True},
        ],
    },
]
CALLS = [
    call(4), call(0), call(1, [0]), call(1, [1]), call(2, [0]), call(2, [1]), call(2, [2]),
    call(3, [0]), call(3, [1]),
]  # fmt: skip
MAIL, CLOSE, FIND, PERSON, REFUND, FULL, HALF, FAIL, PASS = range(9)
ALL_FINDS, ALL_REFUNDS = {FIND, PERSON}, {REFUND, FULL, HALF}


def select(tool: int, *where: Any) -> dict[str, Any]:
    """A selection."""
    return {"tool": tool, "where": list(where)}


MONITORS: list[dict[str, Any]] = [
    {
        "kind": "require", "order": "before", "first": select(1, [0, [0]]), "second": select(2),
        "same": [["id", "order"]],
    },
    {
        "kind": "forbid", "order": "before", "first": select(4), "second": select(2),
        "same": [["about", "order"]],
    },
    {"kind": "sum", "tool": 2, "param": "amount", "value": "600.5"},
    {"kind": "uses", "of": select(2, [0, [1, 2]]), "per": "order", "value": 1},
]  # fmt: skip


def desk_core(monitors: Any = MONITORS, **more: Any) -> bytes:
    """The core."""
    return make_core(
        name="desk",
        version="1.1",
        tools=TOOLS,
        calls=CALLS,
        plan=["call", set(range(9))],
        requires=[["before", {FIND}, ALL_REFUNDS], ["before", ALL_FINDS, ALL_REFUNDS]],
        monitors=sorted(monitors, key=encode),
        **more,
    )


def desk_plans(most: int) -> list[tuple[int, ...]]:
    """The plans, as call indices."""
    found = []
    for size in range(most + 1):
        for word in product([i for i in range(9) if i != CLOSE], repeat=size):
            fails = [i for i, c in enumerate(word) if c == FAIL]
            if all(i + 1 < size and word[i + 1] in (FAIL, PASS) for i in fails):
                found.append((*word, CLOSE))
    return found


@cache
def desk(most: int = 3) -> CheckedArtifact:
    """Its artifact."""
    return check(build(desk_core(), desk_plans(most)))
