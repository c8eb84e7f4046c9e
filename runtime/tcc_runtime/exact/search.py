"""The search over the sessions of two sides: breadth first, states up to a renaming of tokens.

Every question is a question about inclusion: a statement is the right side, and for ``reachable``
the right side is the statement that no call of the pattern is made.  The question is refuted by the
first state at which the left side may end and the right side may not, or by the first call that the
right side refuses.  Each level is searched completely, so a session that is found is a shortest
one.  If no level has one, the question is proved.
An imperfect canonical form repeats states but does no harm: it is only a renaming within atoms.  A
session is written with concrete values, and has to be replayed before it is shown.
Cost: states times moves; memory: one state and one move each.
No theorem is claimed: tests/exact compares with brute force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

from tcc_certs.core.mentions import is_across
from tcc_certs.session.monitors.keyed import Key
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.compared import Token
from tcc_runtime.exact.sides import Items, OfPlans
from tcc_runtime.exact.system import Move, State, System, held_tokens
from tcc_runtime.exact.writing import Ends, Renaming, SessionWriter, WitnessSession
from tcc_runtime.process import collection_put_off

MAX_STATES = 200_000
MOST_ACROSS = 5_000  # of those beside a limit across sessions
MAX_REPLAYS = 200  # of sessions of one length that may be none
_MOST_EDGES = 1 << 21  # of pairs that are held at once: 200 MB
_MOST_ROWS = 1 << 14  # of the right side that are kept, where plans alone decide


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Result of a search.

    Attributes:
        holds: whether no session refutes the question; None: undecided.
        session: a shortest session that does.
        codes: why it is undecided.
        whys: the same in words.
        states: the number of states that were searched.
        loose: whether the search included traces that no session has.
        bare: whether the left side was searched without its statements of version 1.2.
    """

    holds: bool | None
    session: WitnessSession | None = None
    codes: tuple[str, ...] = ()
    whys: tuple[str, ...] = ()
    states: int = 0
    loose: bool = False
    bare: bool = False


@dataclass(slots=True)
class _Met:
    """A state, and how the search first reached it."""

    state: State
    before: int
    move: Move | None
    renaming: Renaming


@dataclass(slots=True, kw_only=True)
class _Search:
    system: System
    max_states: int
    check_time: Callable[[], None]
    met: list[_Met] = field(default_factory=list)
    known: dict[State, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.system.check_time = self.check_time

    def add(self, state: State, before: int, move: Move | None) -> int | None:
        """The number of a state, if it is new."""
        found, renaming = canonical(state)
        if found in self.known:
            return None
        if len(self.met) >= self.max_states:
            raise OpenQuestion("P503", f"more than {self.max_states} states")
        self.known[found] = len(self.met)
        self.met.append(_Met(found, before, move, renaming))
        return len(self.met) - 1


def _never() -> None:
    """The check of a search without a time limit."""


def _not_replayed(session: WitnessSession) -> bool:
    """Nobody has replayed it."""
    return False


def included(
    make: Callable[[], System],
    real: Callable[[WitnessSession], bool] = _not_replayed,
    *,
    max_states: int = MAX_STATES,
    check_time: Callable[[], None] = _never,
) -> SearchResult:
    """Whether every session of the left side is one of the right.

    Args:
        make: makes the two sides.
        real: whether a session replays; called if the system is loose.
        check_time: raises `OpenQuestion` P507 when the time is over.
    """
    search: _Search | None = None
    try:
        search = _Search(system=make(), max_states=max_states, check_time=check_time)
        return _of_one_session(search, partial(_included, search, real))
    except OpenQuestion as left:
        states = 0 if search is None else len(search.met)
        return SearchResult(holds=None, codes=(left.code,), whys=(left.why,), states=states)


def _of_one_session(search: _Search, decided: Callable[[], SearchResult]) -> SearchResult:
    """What is decided; of a limit across sessions only that some session breaks the question.

    The search is cut after few states: to go through all of them would prove nothing.
    """
    wide = [one.text for one in search.system.right.policies if is_across(one.policy)]
    if not wide:
        return decided()
    search.max_states = min(search.max_states, MOST_ACROSS)
    found: SearchResult | None = None
    try:
        found = decided()
    except OpenQuestion as left:
        if left.code != "P503":
            raise
    if found is None or found.holds:
        raise OpenQuestion("P501", f"{wide[0]!r} hangs on what other sessions have used")
    return found


def _included(search: _Search, real: Callable[[WitnessSession], bool]) -> SearchResult:
    system = search.system
    if is_plain(system) and not system.forgot:
        with collection_put_off(True):  # of the pairs that were met none is garbage
            return _included_plans(search)
    level, lists = _begun(search), system.elements.fields
    while level:
        after: list[int] = []
        tried = 0
        for at, move, ends in _shown(search, level, after):
            session = _written(search, at, move, ends)
            if session is not None and (
                not (system.loose or system.forgot or system.histories.windows or lists)
                or real(session)
            ):
                return SearchResult(holds=False, session=session, states=len(search.met))
            tried += 1
            if tried == MAX_REPLAYS:
                break
        if tried and system.forgot:
            raise OpenQuestion(*system.forgot)
        if tried and lists:
            raise OpenQuestion("P501", "a session that was found may have too many elements")
        if tried and system.histories.windows:
            raise OpenQuestion("P502", "a session that was found cannot be given times")
        if tried:
            raise OpenQuestion("P504", f"{_added(system)} added up and compared")
        level = after
    return SearchResult(holds=True, states=len(search.met))


def _begun(search: _Search) -> list[int]:
    """The numbers of the states before the first call."""
    numbers = [search.add(state, -1, move) for move, state in search.system.starts()]
    return [number for number in numbers if number is not None]


def _added(system: System) -> str:
    """The fields that are added up and compared, in words."""
    names = [name for kind in system.kinds for _, at, name in kind.sums if at is not None]
    return f"{' and '.join(dict.fromkeys(names))} is"


def _shown(
    search: _Search, level: Sequence[int], after: list[int]
) -> Iterator[tuple[int, Move | None, Ends]]:
    """Where sessions of one length end that the right side has not; `after` has the next level."""
    system = search.system
    for at in level:
        state = search.met[at].state
        if system.ends(state, 0) and not system.ends(state, 1):
            yield at, None, "finish"
    for at in level:
        search.check_time()
        for move in system.moves(search.met[at].state):
            if move.state is None:
                yield at, move, "call"
                continue
            number = search.add(move.state, at, move)
            if number is not None:
                after.append(number)


def some_session(
    system: System, *, max_states: int, check_time: Callable[[], None] = _never
) -> WitnessSession | None:
    """A session of the left side that the right side refuses; not always a shortest one.

    None if none is found. States at which the right side remembers more and has added up more come
    first, because the calls that a limit refuses come last.

    Raises:
        OpenQuestion: P507, and whatever a move raises.
    """
    search = _Search(system=system, max_states=max_states, check_time=check_time)
    heap = [(0, 0, at) for at in _begun(search)]
    while heap:
        check_time()
        _, depth, at = heappop(heap)
        state = search.met[at].state
        if system.ends(state, 0) and not system.ends(state, 1):
            return _written(search, at, None, "finish")
        for move in system.moves(state):
            if move.state is None:
                return _written(search, at, move, "call")
            if len(search.met) >= max_states:
                return None
            number = search.add(move.state, at, move)
            if number is not None:
                more = sum(count for _, count in move.state.other)
                more += sum(
                    span[1]
                    for of, span in zip(system.sums, move.state.sums, strict=True)
                    if of.caps[1] is not None
                )
                heappush(heap, (-more, depth + 1, number))
    return None


def finishable(
    make: Callable[[], System],
    *,
    max_states: int = MAX_STATES,
    check_time: Callable[[], None] = _never,
) -> SearchResult:
    """Whether every session of a grammar, which is both sides, can be continued to an end."""
    search: _Search | None = None
    try:
        search = _Search(system=make(), max_states=max_states, check_time=check_time)
        return _of_one_session(search, partial(_finishable, search))
    except OpenQuestion as left:
        states = 0 if search is None else len(search.met)
        return SearchResult(holds=None, codes=(left.code,), whys=(left.why,), states=states)


def _finishable(search: _Search) -> SearchResult:
    """Of a state those sessions are looked at whose sums are greatest: what they can do, all can.

    An interval says that some session goes on, and the question is about each: so from every state
    the way to an end is looked for with its greatest sums, to which each call adds its least.
    """
    system = search.system
    if system.elements.fields:
        raise OpenQuestion("P501", "lists are compared: not each may have the elements it takes")
    _begun(search)
    at = 0
    while at < len(search.met):
        search.check_time()
        for move in system.moves(search.met[at].state):
            if move.state is not None:
                search.add(move.state, at, move)
        at += 1
    most = [_pointed(one.state, 1) for one in search.met]
    good = _ending(search, most)
    for at, state in enumerate(most):
        if state not in good:
            session = _written(search, at, None, "stuck")
            if session is None:
                raise OpenQuestion("P502", "a session that was found cannot be given times")
            return SearchResult(
                holds=False, session=session, states=len(search.met), loose=system.loose
            )
    return SearchResult(holds=True, states=len(search.met), loose=system.loose)


def _ending(search: _Search, starts: Sequence[State]) -> set[State]:
    """The states, of sums that are points, from which an end can be reached."""
    system, into = search.system, dict[State, list[State]]()
    order = list(dict.fromkeys(starts))
    known = set(order)
    for state in order:
        search.check_time()
        if len(known) > search.max_states:
            raise OpenQuestion("P503", f"more than {search.max_states} states")
        for move in system.moves(state):
            if move.state is None:
                continue
            to = canonical(_pointed(move.state, 0))[0]
            into.setdefault(to, []).append(state)
            if to not in known:
                known.add(to)
                order.append(to)
    todo = [state for state in order if system.ends(state, 0)]
    good = set(todo)
    for to in todo:
        for before in into.get(to, ()):
            if before not in good:
                good.add(before)
                todo.append(before)
    return good


def _pointed(state: State, end: int) -> State:
    """A state whose sums are the least, 0, or the greatest, 1, of their intervals."""
    return replace(state, sums=tuple([(span[end], span[end]) for span in state.sums]))


def reached_tools(
    system: System, max_states: int, check_time: Callable[[], None]
) -> tuple[set[int], bool]:
    """The tools of the left side that some session calls, and whether these are all of them.

    Raises:
        OpenQuestion: any code but P503.
    """
    search = _Search(system=system, max_states=max_states, check_time=check_time)
    _begun(search)
    found: set[int] = set()
    at = 0
    while at < len(search.met):
        check_time()
        try:
            for move in system.moves(search.met[at].state):
                found.add(system.left.core.calls[move.call].tool)
                if len(found) == len(system.left.core.tools):
                    return found, True
                if move.state is not None:
                    search.add(move.state, at, move)
        except OpenQuestion as many:
            if many.code != "P503":
                raise
            return found, False
        at += 1
    return found, True


# Canonical forms.


def canonical(state: State) -> tuple[State, Renaming]:
    """A state with its tokens numbered from 0 in each atom, in an order of their facts.

    Colours are refined by the facts that a token occurs in; tokens that remain equal are taken in
    the order in which they come.
    """
    tokens = list(held_tokens([state.mine, state.other, state.later]))
    if not tokens:
        return state, {}
    memories = (state.mine, state.other, state.later)
    facts: list[Any] = [(at, *fact) for at, memory in enumerate(memories) for fact in memory]
    colours: dict[Token, int] = dict.fromkeys(tokens, 0)
    classes = 0
    while True:
        signs: dict[Token, list[Any]] = {token: [] for token in tokens}
        for side, (rule, key), value in facts:
            row = (side, rule, value, tuple([_sign(part, colours) for part in key]))
            for place, part in enumerate(key):
                if isinstance(part, tuple):
                    signs[part].append((place, row))
        whole = {token: (token[0], colours[token], sorted(found)) for token, found in signs.items()}
        order = sorted(tokens, key=lambda token: whole[token])
        number, last = -1, None
        for token in order:
            if whole[token] != last:
                number, last = number + 1, whole[token]
            colours[token] = number
        if number + 1 in (classes, len(tokens)):
            break
        classes = number + 1
    order = sorted(tokens, key=lambda token: (colours[token], token))
    counts: dict[int, int] = {}
    renaming: Renaming = {}
    for token in order:
        at = counts.get(token[0], 0)
        renaming[token] = (token[0], at)
        counts[token[0]] = at + 1
    made = State(
        state.left,
        state.right,
        _renamed(state.mine, renaming),
        _renamed(state.other, renaming),
        state.sums,
        _renamed(state.later, renaming),
    )
    return made, renaming


def _sign(part: object, colours: Mapping[Token, int]) -> tuple[int, int, str]:
    if isinstance(part, tuple):
        return part[0], colours[part], ""
    return -1, 0, str(part)


def _renamed(memory: Items, renaming: Renaming) -> Items:
    def key_of(key: Key) -> Key:
        return tuple([renaming[part] if isinstance(part, tuple) else part for part in key])

    return frozenset(((rule, key_of(key)), value) for (rule, key), value in memory)


# Sessions with values.


def _written(search: _Search, at: int, last: Move | None, ends: Ends) -> WitnessSession | None:
    """The session that leads to a state, and on by a move, with concrete values; None: no times."""
    path: list[_Met] = []
    while at >= 0 and search.met[at].move is not None:
        path.append(search.met[at])
        at = search.met[at].before
    path.reverse()
    moves = [(one.move, one.renaming) for one in path if one.move is not None]
    if last is not None:
        moves.append((last, {}))
    return SessionWriter(search.system, moves).session(ends)


# Grammars whose plans alone decide: no memories, no tokens.


def is_plain(system: System) -> bool:
    """Whether a state of both sides is a pair of states of their automata, and nothing else."""
    sides = (system.left, system.right)
    return (
        all(isinstance(side.walk, OfPlans) and side.walk.is_plain for side in sides)
        and not any(side.core.monitors for side in sides)
        and not any(tool.opened for side in sides for tool in side.core.tools)
    )


def _included_plans(search: _Search) -> SearchResult:
    """What :func:`_included` says, of the same sessions in the same order, a call in a microsecond.

    States are pairs of numbers: the left state times a width, and the right one.
    """
    system, left, right = search.system, search.system.left.walk, search.system.right.walk
    if not (isinstance(left, OfPlans) and isinstance(right, OfPlans)):
        raise TypeError("plans are needed")
    other = [_beside(system, call) for call in range(len(system.left.core.calls))]
    at_once = _in_arrays(search, left, right, other)
    if at_once is not None:
        return at_once
    width = right.start[0][0] + 1
    start = left.start[0][0] * width + right.start[0][0]
    known = {start: (-1, -1)}  # the pair before it, and the call between
    level = [start]
    rows: dict[int, Mapping[int, int]] = {}

    def written(pair: int, call: int | None, ends: Ends) -> SearchResult:
        path = [] if call is None else [call]
        while pair != start:
            pair, before = known[pair]
            path.append(before)
        return _refuted(system, path[::-1], ends, len(known))

    while level:
        for pair in level:
            q, p = divmod(pair, width)
            if left.ends(q) and not right.ends(p):
                return written(pair, None, "finish")
        after: list[int] = []
        for pair in level:
            try:
                search.check_time()
            except OpenQuestion as late:
                return replace(_open(late), states=len(known))
            q, p = divmod(pair, width)
            theirs = rows.get(p)
            if theirs is None:
                if len(rows) >= _MOST_ROWS:
                    rows.clear()
                theirs = rows[p] = dict(right.row(p))
            for call, target in left.row(q):
                to = theirs.get(other[call], -1)
                if to < 0:
                    return written(pair, call, "call")
                found = target * width + to
                if found not in known:
                    if len(known) >= search.max_states:
                        full = OpenQuestion("P503", f"more than {search.max_states} states")
                        return replace(_open(full), states=len(known))
                    known[found] = (pair, call)
                    after.append(found)
        level = after
    return SearchResult(holds=True, states=len(known))


def _in_arrays(
    search: _Search, left: OfPlans, right: OfPlans, other: Sequence[int]
) -> SearchResult | None:
    """The same of large artifacts, whose pairs are gone through all at once; None: not of these."""
    if not (left.artifact.is_wide and right.artifact.is_wide):
        return None
    from tcc_runtime.artifact import pairs  # numpy

    beside = [right.mine(other[call]) for call in left.numbers]
    sides = left.artifact, right.artifact
    found = pairs.pairs_of(*sides, beside, _MOST_EDGES, search.max_states)
    if found is None:
        return None
    states = len(found.codes)
    try:
        search.check_time()
    except OpenQuestion as late:
        return replace(_open(late), states=states)
    session = pairs.shortest_session(found, *sides)
    if session is None:
        return SearchResult(holds=True, states=states)
    calls, finishes = session
    path = [left.numbers[call] for call in calls]
    return _refuted(search.system, path, "finish" if finishes else "call", states)


def _refuted(system: System, path: Sequence[int], ends: Ends, states: int) -> SearchResult:
    """What a sequence of calls of the left side's core shows."""
    moves: list[tuple[Move, Renaming]] = [
        (Move(call=call, tokens=(), state=None), {}) for call in path
    ]
    session = SessionWriter(system, moves).session(ends)
    return SearchResult(holds=False, session=session, states=states)


def _open(left: OpenQuestion) -> SearchResult:
    return SearchResult(holds=None, codes=(left.code,), whys=(left.why,))


def _beside(system: System, call: int) -> int:
    """The right side's call for a call of the left; -1: it has none."""
    kind = system.kinds[system.left.core.calls[call].tool]
    if kind.refused or kind.tool.name not in system.right.tools:
        return -1
    found = system.pair(call, kind, ())
    return -1 if found is None else found
