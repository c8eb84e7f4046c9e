"""Two grammars beside each other: the kernel alone closes a list exactly where nothing is lost.

It has ends of sessions where there are some, or fewer.  Forms of a field have few values here, all
of them listed, so that every session of two calls is gone through.  Certificates are written by the
kernel's own moves: a kernel that loses one agrees with itself, and not with this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import pytest

import tcc
from tcc.library import artifact_of
from tcc_certs.errors import Rejected
from tcc_runtime.exact import certificate


def made(text: str) -> Any:
    """The artifact of a grammar."""
    return artifact_of(tcc.compile_text(text))


def answer(way: Callable[..., Any], mine: Any, theirs: Any, *, bare: bool = False) -> str:
    """Whether the kernel has a closed list, or the code with which it declines."""
    of = certificate.ProvedQuestion(kind="implies", text=None, artifacts=(mine, theirs))
    try:
        system = of.system(listed=True, bare=bare)
        found = way(system, max_states=500, check_time=lambda: None)
    except Rejected as declined:
        return declined.code.value
    return "none" if found is None else "closed"


# Forms of a field.

OUT = None  # the field is left out
NUMBERS = [0, 0.5, 1, 1.5, 2, 3]
VALUES = [OUT, "p", "q", "z", "far", *NUMBERS, -1, True, False]
FORMS: dict[str, Sequence[Any]] = {
    "": [OUT],
    "x: p | q": ["p", "q"],
    "x?: p | q": [OUT, "p", "q"],
    "x: 1 | 2": [1, 2],
    "x: p | 1": ["p", 1],
    "; x: text min 1 max 9": ["p", "q", "z", "far"],
    "; x?: text min 1 max 9": [OUT, "p", "q", "z", "far"],
    '; x: text ~ "p|z"': ["p", "z"],
    "; x: integer 0 .. 3": [0, 1, 2, 3],
    "; x: integer": [-1, 0, 1, 2, 3],
    "; x: integer 1 .. 2": [1, 2],
    "; x: number 0 .. 2": [0, 0.5, 1, 1.5, 2],
    "; x?: number 0 .. 2": [OUT, 0, 0.5, 1, 1.5, 2],
    "; x: flag": [True, False],
    "; x: json": VALUES[1:],
}


def _each(holds: Callable[[Any], bool]) -> Callable[[Sequence[Any]], bool]:
    return lambda session: all(holds(one) for one in session)


def _once(session: Sequence[Any]) -> bool:
    if OUT in session:
        return len(session) < 2  # it is not sure what that is the same as
    return len({(type(one) is bool, one) for one in session}) == len(session)


ONCE = "forbid a before a same x"
USES = "limit uses(a) per x <= 1"
SUM = "limit sum(a.x) <= 3"
SAYS: dict[str, Callable[[Sequence[Any]], bool]] = {
    ONCE: _once,
    USES: _once,
    SUM: lambda session: sum(one or 0 for one in session) <= 3,
    'require a where x = "p"': _each(lambda one: one == "p"),
    'require a where x ~ "[pq]"': _each(lambda one: one in ("p", "q")),
    "require a where x <= 1": _each(lambda one: one is not OUT and one <= 1),
}
SOME = [(), *[(say,) for say in SAYS], (SUM, ONCE)]


@dataclass(frozen=True, kw_only=True)
class Side:
    form: str
    says: tuple[str, ...]

    @property
    def text(self) -> str:
        of = f"({self.form})" if self.form else ""
        return "\n".join(['grammar g version "1"', f"tool a{of}", "plan = a{0,2}", *self.says, ""])

    def having(self, *kinds: str) -> Side:
        """The same with those of its statements that begin so."""
        return Side(form=self.form, says=tuple(say for say in self.says if say.startswith(kinds)))

    def lets(self, session: Sequence[Any]) -> bool:
        values = [(type(one) is bool, one) for one in FORMS[self.form]]
        fine = all((type(one) is bool, one) in values for one in session)
        return fine and all(SAYS[say](session) for say in self.says)


@cache
def sides() -> list[tuple[Side, Any]]:
    """Each that is a grammar."""
    found = []
    for form, says in product(FORMS, SOME):
        side = Side(form=form, says=says)
        try:
            found.append((side, made(side.text)))
        except tcc.CompileError:
            continue
    return found


@cache
def through(side: Side) -> frozenset[int]:
    """The sessions that it lets through, by their numbers."""
    every = (one for size in range(3) for one in product(VALUES, repeat=size))
    return frozenset(number for number, one in enumerate(every) if side.lets(one))


def compared(mine: Side, theirs: Side) -> bool:
    """Whether the pair is asked about: not all that two statements may be are beside each other."""
    json = "; x: json"
    if json in (mine.form, theirs.form) and mine.form[:1] == ";" and mine.form != theirs.form:
        return False  # a text is not known to be short enough for such a value
    if not mine.says or not theirs.says:
        return True
    same = [[say[:7] for say in side.says] for side in (mine, theirs)]
    return same[0] == same[1] or {mine.says, theirs.says} < {(ONCE,), (SUM,), (SUM, ONCE)}


def by_keys_due(mine: Side, theirs: Side) -> str:
    """What lists for one key say: statements of 1.2 of the left are left aside, and its sums."""
    later = theirs.having("require").says
    if later and (theirs.form, later) != (mine.form, mine.having("require").says):
        return "D101"
    monitors = "forbid", "limit uses"
    opened = [side.form[:1] == ";" for side in (mine, theirs)]
    # Monitors of the left count where the key is of values that are tracked, or listed.
    some = mine.having("limit sum", *([] if opened[0] else monitors))
    alone = mine.having(*(["nothing"] if opened == [True, False] else monitors))
    sums = through(some) <= through(theirs.having("limit sum"))
    return ("none", "closed")[sums and through(alone) <= through(theirs.having(*monitors))]


# By the form of the left how many pairs are declined.
DECLINED = {
    "": 0,
    "x: p | q": 12,
    "x?: p | q": 12,
    "x: 1 | 2": 27,
    "x: p | 1": 15,
    "; x: text min 1 max 9": 16,
    "; x?: text min 1 max 9": 16,
    '; x: text ~ "p|z"': 16,
    "; x: integer 0 .. 3": 3,
    "; x: integer": 54,
    "; x: integer 1 .. 2": 3,
    "; x: number 0 .. 2": 11,
    "; x?: number 0 .. 2": 81,
    "; x: flag": 16,
    "; x: json": 6,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_field_hold_what_they_hold(form: str) -> None:
    declined = 0
    for (mine, of_mine), (theirs, of_theirs) in product(sides(), sides()):
        if mine.form != form or not compared(mine, theirs):
            continue
        both = mine.text, theirs.text
        due = ("none", "closed")[through(mine) <= through(theirs)]
        if USES not in (*mine.says, *theirs.says):  # they are for lists about one key
            found = answer(certificate.by_all, of_mine, of_theirs)
            assert found in (due, "D101"), both
            declined += found == "D101"
        keyed = answer(certificate.by_keys, of_mine, of_theirs, bare=True)
        assert keyed in (by_keys_due(mine, theirs), "D101"), both
    assert declined == DECLINED[form]


# What can be finished: the kernel has ends where there are some, or fewer.


def finishes(text: str) -> bool:
    """Whether the kernel has a list with ends."""
    artifact = made(f'grammar g version "1"\n{text}')
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(artifact,))
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
