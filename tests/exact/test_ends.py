"""Which sessions can be finished: the kernel alone has ends where brute force has, or fewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

import tcc
from tcc.library import artifact_of
from tcc_runtime.exact import certificate
from tests.exact.test_pairs import FORMS, ONCE, SAYS, SUM


def finishes(text: str) -> bool:
    """Whether the kernel has a list with ends."""
    made = artifact_of(tcc.compile_text(f'grammar g version "1"\n{text}'))
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(made,))
    more: Any = {"max_states": 500, "check_time": lambda: None}
    return certificate.finishing(of, of.system(), **more) is not None


def can(lets: Callable[[Sequence[Any]], bool], values: Sequence[Any], calls: int) -> bool:
    """Whether each session of at most so many calls with these values can have so many."""

    def goes_on(session: tuple[Any, ...]) -> bool:
        more = [(*session, one) for one in values]
        return len(session) == calls or any(lets(one) and goes_on(one) for one in more)

    begun = [one for size in range(calls + 1) for one in product(values, repeat=size)]
    return all(goes_on(one) for one in begun if lets(one))


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("says", [(), (ONCE,), (SUM,), (SUM, ONCE)])
@pytest.mark.parametrize(
    "form",
    ["; x: integer 0 .. 3", "; x: integer 1 .. 2", "; x: number 0 .. 2", '; x: text ~ "p|z"',
     "; x: flag"],
)  # fmt: skip
def test_so_many_calls_can_be_made(form: str, says: tuple[str, ...], calls: int) -> None:
    if SUM in says and "number" not in form and "integer" not in form:
        return
    due = can(lambda session: all(SAYS[say](session) for say in says), FORMS[form], calls)
    # Of many numbers one that is compared counts as the greatest, which may be too much.
    unknown = len(says) == 2 and "number" in form and calls > 1
    lines = [f"tool a({form})", f"plan = a{{{calls},{calls}}}", *says, ""]
    assert finishes("\n".join(lines)) == (due and not unknown)


NONE = 'text min 3 max 9 ~ "a"'  # has no value
LONG = 'text min 500 max 600 ~ "a*b"'  # nobody counts its values
OLDER = "forbid a within 1 h before c\n"
YOUNGER = "require b within 1 h before c\n"
ROWS = [
    (f"tool a(; x?: {NONE})\nplan = a\n", True),
    (f"tool a(; x: {NONE})\nplan = a\n", False),
    (f"tool a(; y: flag, x: {NONE})\nplan = a\n", False),
    (f"tool a(; x: {NONE}, y: flag)\nplan = a\n", False),
    (f"tool a gives (; x: {NONE})\nplan = a\n", False),
    ("tool a gives (; x: flag)\nplan = a\n", True),
    (f"tool a gives (; x?: {NONE})\nplan = a\n", True),
    (f"tool a(; y: {NONE}) gives (; x: flag)\nplan = a\n", False),
    (f"tool a(; x: {LONG})\nplan = a\n", False),
    (f"tool a(; x: {LONG})\nplan = a\nforbid a before a same x\n", False),
    ("tool a(; x: text max 9)\nplan = a\nforbid a before a same x\n", True),
    # What is left to a sum is enough for the least, and what is compared may be the greatest.
    ("tool a(; x: integer 1 .. 9)\nplan = a a\nlimit sum(a.x) <= 9\n", False),
    ("tool a(; x: integer 1 .. 8)\nplan = a a\nlimit sum(a.x) <= 9\n", True),
    ("tool a(; x: number 0.5 .. 1)\nplan = a a\nlimit sum(a.x) <= 1.5\n", True),
    ("tool a(; x: number 0.5 .. 1)\nplan = a a\nlimit sum(a.x) <= 1.4\n", False),
    ("tool a(; x: integer 0 .. 90)\nplan = a\nlimit sum(a.x) <= 89\nforbid a before a same x\n",
     False),
    ("tool a(; x: integer 0 .. 90)\nplan = a\nlimit sum(a.x) <= 90\nforbid a before a same x\n",
     True),
    (f"tool a(; x: {NONE}, n: integer 1 .. 2)\nplan = a\nlimit sum(a.n) <= 9\n", False),
    # Two calls may have been made at one time, so no time is between them.
    (f"tool a\ntool b\ntool c\nplan = a b c\n{OLDER}{YOUNGER}", False),
    (f"tool a\ntool c\nplan = a c\n{OLDER}", True),
    (f"tool b\ntool c\nplan = b c\n{YOUNGER}", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "due"), ROWS)
def test_ends_are_known(text: str, due: bool) -> None:
    assert finishes(text) == due
