"""What statements of version 1.2 keep of a session's calls: by keys, the values that are compared.

A key of which parts are not known may be any that is not surely another one: none that differs in
a part known of both, nor has a value there that the other's field lists where the other is not
listed.  What is kept for a key stands in a bucket by the parts that are known of it and of one that
is asked for, for each *shape* that was asked for: which parts of a key are known.
Normative text: docs/spec/core.md, section 7.
Cost: what is kept, and a key that is asked for, take a look-up for each shape of the others.  The
first of a shape that nobody foresaw goes through all that was kept once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from heapq import merge
from itertools import islice, product, repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

from tcc_certs.core.policies import Fields, Tree
from tcc_certs.session.monitors.keyed import Event, KeyCounts, Undo
from tcc_certs.session.monitors.relations import VAGUE
from tcc_certs.values.places import NONE, UNKNOWN, State

StateKey: TypeAlias = "tuple[State, ...]"
# Of each part True: it is known, False: nothing is known of it, or ``*`` with the listed values;
# empty: all of it is known.
Shape: TypeAlias = "tuple[bool | State, ...]"
MOST_SHAPES: Final = 16
_FORESEEN: Final = 8


def is_vague(key: Iterable[State]) -> bool:
    """Whether a part of a key may be several values."""
    return not VAGUE.isdisjoint([kind for kind, _ in key])


def shape_of(key: StateKey) -> Shape:
    """What is known of a key."""
    if not is_vague(key):
        return ()
    return tuple([part if part[0] == "*" else part[0] not in VAGUE for part in key])


def foreseen(terms: Sequence[Tree], tools: Iterable[int], fields: Fields) -> Sequence[Shape]:
    """The shapes of keys that calls may ask for, as their arguments may be left out."""
    optional = {name for tool in tools for name, one in fields.tools[tool].items() if one.optional}
    parts = [(True, False) if optional & _own(term) else (True,) for term in terms]
    return list(islice(product(*parts), 1, _FORESEEN))


def _own(term: object) -> set[str]:
    """The fields of the call that is decided of which a term speaks."""
    if not isinstance(term, tuple):
        return set()
    if len(term) > 1 and term[0] == "own":
        return {term[1]}
    return set().union(*map(_own, term))


class Near:
    """What was kept for keys, in the order in which it came.

    Args:
        bucket: makes one that is empty, with the methods `append` and `pop` of a list.
        asked: shapes of keys that will be asked for, beside those of which all is known.

    Attributes:
        odd: how much was kept for keys of which a part is not known.
    """

    __slots__ = ("_asked", "_bucket", "_kept", "odd")

    def __init__(self, bucket: Callable[[], Any], asked: Iterable[Shape] = ()) -> None:
        self._bucket = bucket
        self._kept: list[tuple[StateKey, Any]] = []
        # By the shape that is asked for, the shape that was kept, and the parts known of both.
        self._asked: dict[Shape, dict[Shape, dict[StateKey, Any]]] = {(): {}}
        self._asked.update((shape, {}) for shape in asked)
        self.odd = 0

    def keep(self, key: StateKey, entry: Any, undo: Undo) -> None:
        """Keep what has a key."""
        self._kept.append((key, entry))
        shape = shape_of(key)
        self.odd += bool(shape)
        for asked in self._asked if shape or len(self._asked) > 1 else ():
            self._put(asked, key, shape, entry)
        undo.append(self._back)

    def _put(self, asked: Shape, key: StateKey, shape: Shape, entry: Any) -> None:
        known = _known(asked, key, shape)
        if known is None:
            return
        buckets = self._asked[asked].setdefault(shape, {})
        if known not in buckets:
            buckets[known] = self._bucket()
        buckets[known].append(entry)

    def _back(self) -> None:
        """Forget what was kept last: it is the last of each bucket that it is in."""
        key, _ = self._kept.pop()
        shape = shape_of(key)
        self.odd -= bool(shape)
        for asked, groups in self._asked.items():
            known = _known(asked, key, shape)
            if known is not None:
                groups[shape][known].pop()

    def of(self, key: StateKey) -> list[Any]:
        """The buckets of keys that may be this one; those of which all is known for others alone.

        One may be empty.
        """
        shape = shape_of(key)
        if not shape and not self.odd:
            return []
        groups = self._asked.get(shape)
        if groups is None:
            groups = self._begun(shape)
        found = []
        for kept, buckets in groups.items():
            known = _common(key, shape, kept)
            if known is not None and known in buckets:
                found.append(buckets[known])
        return found

    def _begun(self, asked: Shape) -> dict[Shape, dict[StateKey, Any]]:
        """The buckets for a shape that is asked for the first time."""
        if len(self._asked) == MOST_SHAPES:
            del self._asked[next(islice(self._asked, 1, None))]
        self._asked[asked] = {}
        for key, entry in self._kept:
            self._put(asked, key, shape_of(key), entry)
        return self._asked[asked]

    def latest(self) -> Iterator[Any]:
        """All that was kept, the latest first."""
        return (entry for _, entry in reversed(self._kept))


def _known(asked: Shape, key: StateKey, shape: Shape) -> StateKey | None:
    """The parts by which what is kept for a key stands in the buckets of a shape; None: nowhere."""
    return _common(key, shape, asked) if shape or asked else None


def _common(key: StateKey, shape: Shape, other: Shape) -> StateKey | None:
    """The parts of a key that are known of it and of one of another shape; None: it is no such."""
    found = []
    shapes = shape or repeat(True), other or repeat(True)
    for part, mine, theirs in zip(key, *shapes, strict=False):
        if mine is not True or theirs is False:
            continue
        if theirs is True:
            found.append(part)
        elif part in theirs[1]:
            return None
    return tuple(found)


class Counts(KeyCounts):
    """What a statement counts for the keys of which all is known.

    Attributes:
        near: what was counted for others, too, for the first set and for the second.
    """

    __slots__ = ("near",)

    def __init__(self, bucket: Callable[[], Any], asked: Iterable[Iterable[Shape]]) -> None:
        super().__init__()
        self.near = [Near(bucket, shapes) for shapes in asked]


class Tally:
    """Amounts with their stamps; they are summed from the start."""

    __slots__ = ("stamps", "sums")

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.sums: list[int | Fraction] = [0]

    def append(self, amount: tuple[int, int | Fraction]) -> None:
        """An amount with its stamp."""
        self.stamps.append(amount[0])
        self.sums.append(self.sums[-1] + amount[1])

    def pop(self) -> None:
        """Take the last one back."""
        self.stamps.pop()
        self.sums.pop()

    def since(self, least: int | None) -> int | Fraction:
        """What came at that time or later; None: all."""
        return self.sums[-1] - (0 if least is None else self.sums[bisect_left(self.stamps, least)])


class Kept(list[Event]):
    """Calls of one key, in their order.

    Attributes:
        columns: for each condition on a field of theirs, in their order: its kinds, and its values
            where it is one of order, else its states.
        sure: whether they surely are of the set.
    """

    __slots__ = ("columns", "sure")

    def __init__(self, columns: int = 0) -> None:
        super().__init__()
        self.columns: list[tuple[list[str], list[Any]]] = [([], []) for _ in range(columns)]
        self.sure: list[bool] = []

    def add_row(self, states: Sequence[tuple[State, bool]], sure: bool) -> None:
        """What the columns have of the last call: for each its state, and whether orders count."""
        for (kinds, values), ((kind, value), ordered) in zip(self.columns, states, strict=True):
            kinds.append(kind)
            values.append(value if ordered else (kind, value))
        self.sure.append(sure)

    def back(self) -> None:
        """Forget the last call, with its row."""
        self.pop()
        for kinds, values in self.columns:
            kinds.pop()
            values.pop()
        if self.columns:
            self.sure.pop()


class Index:
    """What one relation needs of the calls of one key: an extreme of each kind, or elements.

    Attributes:
        sure: of the calls that surely are of the set; may: of all of them, and elements of those
            that may be.
        lacking: how many calls have no value, or one with a part that is not known.
    """

    __slots__ = ("_most", "lacking", "may", "sure")

    def __init__(self, most: bool) -> None:
        self.sure: dict[State | str, int | Fraction] = {}
        self.may: dict[State | str, int | Fraction] = {}
        self.lacking = 0
        self._most = most

    def add_number(self, state: State, sure: bool, undo: Undo) -> None:
        """A value of which the greatest, or the least, decides."""
        kind, value = state
        if kind not in ("n", "t"):
            self._lack(undo)
            return
        for known in (self.may, self.sure) if sure else (self.may,):
            before = known.get(kind)
            if before is None or (value > before if self._most else value < before):
                known[kind] = value
                undo.append(_back(known, kind, before))

    def add_elements(self, state: State, sure: bool, undo: Undo) -> None:
        """A list in which elements are looked up."""
        new = dict.fromkeys(state[1] if state[0] == "l" else (UNKNOWN,), 1)
        if UNKNOWN in new or NONE in new:
            self._lack(undo)
            return
        name = "sure" if sure else "may"
        known = getattr(self, name)
        if not known:
            setattr(self, name, new)
            undo.append(partial(setattr, self, name, known))
            return
        for item in known.keys() & new.keys():
            del new[item]
        known.update(new)
        undo.append(_all_gone(known, new))

    def _lack(self, undo: Undo) -> None:
        before = self.lacking
        self.lacking = before + 1
        undo.append(lambda: setattr(self, "lacking", before))


def _back(
    known: dict[State | str, int | Fraction], kind: str, before: int | Fraction | None
) -> Callable[[], object]:
    if before is None:
        return lambda: known.pop(kind)
    return lambda: known.__setitem__(kind, before)


def _all_gone(
    known: dict[State | str, int | Fraction], new: Iterable[State]
) -> Callable[[], object]:
    def gone() -> None:
        for item in new:
            del known[item]

    return gone


class Pool:
    """The calls of which an alternative may speak, by their keys.

    Args:
        asked: shapes of keys that calls will ask for.
    """

    __slots__ = ("_all", "by_key", "indices", "odd", "used", "used_odd", "watermark")

    def __init__(self, asked: Iterable[Shape] = ()) -> None:
        self._all = Near(list, asked)
        self.by_key: dict[tuple[State, ...], Kept] = {}
        self.odd: set[int] = set()  # numbers of calls with a part of their key not known
        self.indices: dict[tuple[State, ...], Index] = {}  # of one relation beside the key
        self.used: dict[int, int] = {}  # of `each`: how many calls may have used it
        self.watermark = 0  # of `each`: calls up to this number count as used
        self.used_odd = 0  # of `each`: of those in `odd` they do up to this number

    def add(self, call: Event, key: tuple[State, ...], undo: Undo, columns: int = 0) -> Kept | None:
        """Keep a call, with those of its key where all of that is known; these have columns."""
        self._all.keep(key, call, undo)
        if is_vague(key):
            self.odd.add(call.at)
            undo.append(lambda: self.odd.remove(call.at))
            return None
        kept = self.by_key.get(key)
        if kept is None:
            kept = self.by_key[key] = Kept(columns)
        kept.append(call)
        undo.append(kept.back)
        return kept

    def use_older(self, at: int, undo: Undo, *, every: bool) -> None:
        """Calls up to that number may have been used: all, or those with a part of their key not
        known, of which another key may be the key, too."""
        if every:
            before, self.watermark = self.watermark, at
            undo.append(lambda: setattr(self, "watermark", before))
        elif self.odd:
            before, self.used_odd = self.used_odd, at
            undo.append(lambda: setattr(self, "used_odd", before))

    def is_used(self, call: Event) -> bool:
        """Of `each`: whether a later call may have used it."""
        at = call.at
        odd = at <= self.used_odd and at in self.odd
        return odd or at <= self.watermark or bool(self.used.get(at, 0))

    def latest(self) -> Iterator[Event]:
        """All calls, latest first."""
        return self._all.latest()

    def is_exact(self, key: tuple[State, ...]) -> bool:
        """Whether the calls near a key have it, all of them."""
        return not self.odd and not is_vague(key)

    def near(self, key: tuple[State, ...]) -> Iterator[Event]:
        """Calls whose key is not surely another one, latest first."""
        kept = self.by_key.get(key, ())
        if self.is_exact(key):
            return reversed(kept)
        found = map(reversed, (kept, *self._all.of(key)))
        return merge(*found, key=attrgetter("at"), reverse=True)
