"""Many statements over two tools, beside plans of several shapes.

Exhaustive where random cores are thin: the check forgets differences that no later call can reveal,
so some shapes leave calls behind.
"""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tests.oracle.build import build
from tests.oracle.cores import count_at_least, count_at_most, letters, make_core
from tests.oracle.plans import plans

SETS = ({0}, {1}, {0, 1})
A, B = (["call", {i}] for i in range(2))


def maybe(part: Any) -> list[Any]:
    return ["repeat", part, 0, 1]


SHAPES: dict[str, Any] = {
    "anything": ["repeat", ["call", {0, 1}], 0, 3],
    "a then b": ["seq", [A, B]],
    "each once in turn": ["seq", [maybe(A), maybe(B), maybe(A)]],
    "a run, then the other": ["seq", [["repeat", A, 0, 2], ["repeat", B, 0, 2]]],
    "either kind alone": ["alt", [["repeat", A, 0, 3], ["repeat", B, 0, 3]]],
}
FORMS = ("before", "after", "each", "never before", "never with", "never next", "never")
STATEMENTS: list[Any] = [
    *([form, x, y] for form in FORMS for x in SETS for y in SETS),
    *(count_at_most({0}, n) for n in range(4)),
    *(count_at_least({0}, n) for n in range(1, 4)),
]


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_each_statement_means_what_the_oracle_says(shape: str) -> None:
    for statement in STATEMENTS:
        data = make_core(**letters(2), plan=SHAPES[shape], statements=[statement])
        words = plans(read_core(data), 4)
        if words:
            check_core(check(build(data, words, tilt=0)))
        free = plans(read_core(make_core(**letters(2), plan=SHAPES[shape])), 4)
        if words != free:  # the statement binds: without it there are other plans
            with pytest.raises(Rejected) as refusal:
                check_core(check(build(data, free, tilt=0)))
            assert refusal.value.code in ("G101", "G102"), statement
