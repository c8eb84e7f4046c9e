"""Certificates of exact questions (docs/spec/proof.md): the lists of states that the kernel checks.

:mod:`tcc_certs.proof.moves` decides what has to be tried at a state and where it leads, so a list
that is closed here is closed in the kernel.  Lists that look at one key at a time are tried first:
they are short, and a question that all of them show is proved; otherwise the whole space is
searched.  Cost: a move of the kernel and a canonical form for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.core.mentions import is_timed
from tcc_certs.core.model import Core, SumMonitor
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode, large
from tcc_certs.proof import sides
from tcc_certs.proof.check import FORMAT, core_digest
from tcc_certs.proof.compared import Fact, Part, State, held_tokens, renamed
from tcc_certs.proof.histories import Past
from tcc_certs.proof.moves import System
from tcc_certs.proof.question import statement_core
from tcc_certs.proof.replay import Replay, SessionCall
from tcc_certs.proof.states import most_of
from tcc_certs.values.canonical import json_text
from tcc_certs.values.declared import FlagType, NumberType, TextType, text_of
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.writing import WitnessSession, fields_of_call

MAX_WITHOUT_PLANS = 5000  # states of a list that leaves plans aside
MAX_FORMS = 1 << 18  # facts whose canonical form is kept
MAX_OF_ONE = 200  # the same, with one monitor of the left alone


class TimedSystem(System):
    """The kernel's system, with a check of the time, as one state may take all of it.

    A call has up to 20,000 choices of the elements of its lists, and choices that the left side
    refuses are no moves.

    Attributes:
        check_time: raises `OpenQuestion` P507 when the time is over.
    """

    check_time: Callable[[], None] = staticmethod(lambda: None)

    def _elements_chosen(self, *given: Any) -> Iterator[Past]:
        for one in super()._elements_chosen(*given):
            self.check_time()
            yield one


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedQuestion:
    """A question, as a certificate states it."""

    kind: str
    text: str | None
    artifacts: tuple[Artifact, ...]
    policy: Any = None  # of a statement of version 1.2 its JSON, whose words the text is

    def sides(self, *, listed: bool = False, bare: bool = False) -> tuple[sides.Side, sides.Side]:
        """The two sides of the question.

        Args:
            listed, bare: see `compared_cores`.

        Raises:
            Rejected: D101 the kernel does not know a form; T102 it cannot read the statement.
        """
        cores = sides.compared_cores([of.core for of in self.artifacts], listed=listed, bare=bare)
        left, *rest = map(_side, self.artifacts, cores)
        right: sides.Side = left
        if self.kind == "implies":
            right = rest[0]
        elif self.text is not None:
            core = statement_core(left.core, self.kind, self.text, self.policy)
            right = sides.statement_side(core)
        return left, right

    def system(self, *, listed: bool = False, bare: bool = False) -> TimedSystem:
        """The part of the sides that closed lists compare.

        Args:
            listed, bare: see `compared_cores`.

        Raises:
            Rejected: D101 the kernel does not know a form; T102 it cannot read the statement.
        """
        return TimedSystem(*self.sides(listed=listed, bare=bare))

    def head(self, proof: str, **more: Any) -> dict[str, Any]:
        """The first line of the certificate."""
        question = {"kind": self.kind, **({} if self.text is None else {"text": self.text})}
        if self.policy is not None:
            question["policy"] = self.policy
        return {
            "format": FORMAT,
            "format_version": "1.0",
            "question": question,
            "proof": proof,
            "cores": [core_digest(one.file) for one in self.artifacts],
            **more,
        }


def _side(artifact: Artifact, core: Core) -> sides.Side:
    calls, relaxed = core_calls(artifact), artifact.manifest.relaxed
    return sides.grammar_side(core, artifact.automaton, calls, relaxed)


@dataclass(slots=True)
class Closed:
    """A closed list of states with its steps: for each state its line of the proof.

    There are many steps per state; a line takes a tenth of the memory of its numbers.
    """

    part: Part
    states: list[State]
    first: list[Any]  # where the start is; where a session is given something one for each choice
    steps: list[bytes]

    def lines(self) -> Iterator[Any]:
        """The list as a proof contains it: values, and lines that are already written."""
        for left, right, facts, sums in self.states:
            spans = [[large(low), large(high)] for low, high in sums]
            yield [_place(left), _place(right), [[*f[:2], list(f[2]), f[3]] for f in facts], spans]
        yield self.first
        yield from self.steps


def _place(place: Any) -> list[Any]:
    return [list(place[0]), [list(pair) for pair in place[1]]]


def closed(
    system: TimedSystem,
    part: Part,
    *,
    ends: bool = True,
    begin: State | None = None,
    max_states: int,
    check_time: Callable[[], None],
) -> Closed | None:
    """The states that calls lead to from the start; None if the right side may refuse one.

    Raises:
        OpenQuestion: P503 there are more than `max_states`; P507.
    """
    system.check_time = check_time
    number: dict[State, int] = {}
    found = Closed(part=part, states=[], first=[], steps=[])
    forms = _Forms(len(system.atoms))

    def row(state: State) -> list[int]:
        made, names = forms.of(state) if part.tracked is None else (state, ())
        at = number.get(made)
        if at is None:
            if len(number) >= max_states:
                raise OpenQuestion("P503", f"more than {max_states} states")
            at = number[made] = len(number)
            found.states.append(made)
        return [at, *(held_tokens(state[2]) if part.tracked is not None else names)]

    starts = system.starts(part) if begin is None else [begin]
    rows = [row(state) for state in starts]
    each = begin is None and part.tracked is None and system.given
    found.first = rows if each else rows[0]
    for state in found.states:
        check_time()
        finishes = ends and part.plans and system.ends(part, state, 0)
        if finishes and not system.ends(part, state, 1):
            return None
        steps = []
        for move in system.moves(part, state):
            if move.state is None:
                return None
            steps.append(row(move.state))
        found.steps.append(encode(steps))
    return found


class _Forms:
    """Canonical forms; they depend on facts alone, which recur in many states."""

    def __init__(self, atoms: int) -> None:
        self._atoms = atoms
        self._known: dict[tuple[Fact, ...], tuple[tuple[Fact, ...], Sequence[int]]] = {}
        self._facts: dict[Fact, Fact] = {}  # each once: states have most in common

    def of(self, state: State) -> tuple[State, Sequence[int]]:
        """See :func:`canonical`."""
        left, right, facts, sums = state
        if not facts:
            return state, ()
        known = self._known.get(facts)
        if known is None:
            made, row = canonical(state, self._atoms)
            if len(self._known) >= MAX_FORMS:
                self._known.clear()
                self._facts.clear()
            once = self._facts.setdefault
            known = self._known[facts] = tuple([once(fact, fact) for fact in made[2]]), row
        return (left, right, known[0], sums), known[1]


def canonical(state: State, atoms: int) -> tuple[State, Sequence[int]]:
    """A state with its tokens renamed from the least on in each atom, and the new names in order.

    Colours are refined by the facts that a token occurs in; tokens that remain equal are taken in
    the order in which they come.
    """
    facts = state[2]
    tokens = held_tokens(facts)
    if not tokens:
        return state, ()
    colours = {token: token % atoms for token in tokens}
    classes = len(set(colours.values()))
    while classes < len(tokens):
        signs: dict[int, list[Any]] = {token: [] for token in tokens}
        for side, slot, key, value in facts:
            sign = [(0, colours[p], "") if isinstance(p, int) else (1, 0, p) for p in key]
            for place, part in enumerate(key):
                if isinstance(part, int):
                    signs[part].append((side, slot, value, place, sign))
        whole = {token: (colours[token], sorted(rows)) for token, rows in signs.items()}
        order = sorted(tokens, key=lambda token: whole[token])
        rank, last = -1, None
        for token in order:
            if whole[token] != last:
                rank, last = rank + 1, whole[token]
            colours[token] = rank
        if rank + 1 == classes:
            break
        classes = rank + 1
    taken: dict[int, int] = {}
    names: dict[int, int] = {}
    for token in sorted(tokens, key=lambda token: (colours[token], token)):
        atom = token % atoms
        names[token] = atom + atoms * taken.get(atom, 0)
        taken[atom] = taken.get(atom, 0) + 1
    row = [names[token] for token in tokens]
    if row == tokens:
        return state, row
    return (state[0], state[1], renamed(facts, names), state[3]), row


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """The proof by lists that look at one key at a time, or by the whole space."""

    lists: tuple[Closed, ...]
    keys: str

    @property
    def states(self) -> int:
        """Number of states."""
        return sum(len(one.states) for one in self.lists)

    def certificate(self, asked: ProvedQuestion, proof: str) -> bytes:
        """The certificate, as a file."""
        parts = [
            {
                "keys": self.keys,
                "states": len(one.states),
                "uses": sorted(one.part.uses),
                **({} if one.part.walked else {"plans": False}),
            }
            for one in self.lists
        ]
        return _file(asked.head(proof, parts=parts), [one.lines() for one in self.lists])


def by_keys(
    system: TimedSystem, *, max_states: int, check_time: Callable[[], None]
) -> Keyed | None:
    """Lists that look at one key at a time; None if one of them is not closed.

    Raises:
        OpenQuestion: P503, P507.
    """
    every = _monitors(system)
    for keys in ("each", "call"):
        lists = []
        for part in system.parts(every, call=keys == "call"):
            made = _without_plans(system, part, max_states, check_time) or closed(
                system, part, max_states=max_states, check_time=check_time
            )
            if made is None:
                break
            lists.append(made)
        else:
            return Keyed(lists=tuple(lists), keys=keys)
        if len(lists) == 0:  # no key helps with what it is not about
            return None
    return None


def _without_plans(
    system: TimedSystem, part: Part, max_states: int, check_time: Callable[[], None]
) -> Closed | None:
    """The list of a part in which any call may come at any time; None if not closed, or long.

    Raises:
        OpenQuestion: P507.
    """
    if part.plans or part.rule is None:
        return None
    right, left = system.right, system.left
    asked = {right.core.tools[tool].name for tool in right.monitored[part.rule]}
    tries = [
        (frozenset({number}), MAX_OF_ONE)
        for number, tools in enumerate(left.monitored)
        if any(left.core.tools[tool].name in asked for tool in tools)
    ]
    for uses, few in [*tries, (part.uses, MAX_WITHOUT_PLANS)]:
        trying = replace(part, uses=uses, walked=False)
        try:
            found = closed(system, trying, max_states=min(max_states, few), check_time=check_time)
        except OpenQuestion as left_open:
            if left_open.code == "P507":
                raise
            continue
        if found is not None:
            return found
    return None


def by_all(
    system: TimedSystem, *, bare: bool = False, max_states: int, check_time: Callable[[], None]
) -> Keyed | None:
    """The list of the whole space; None if it is not closed.

    Args:
        bare: leave out the left side's statements of version 1.2.

    Raises:
        OpenQuestion: P503, P507.
    """
    part = Part(tracked=None, rule=None, uses=_monitors(system))
    made = closed(system, part, max_states=max_states, check_time=check_time)
    return None if made is None else Keyed(lists=(made,), keys="bare" if bare else "all")


def _monitors(system: TimedSystem) -> frozenset[int]:
    every = system.left.core.monitors
    return frozenset(range(sum(not isinstance(one, SumMonitor) for one in every)))


def shown(asked: ProvedQuestion, proof: str, session: WitnessSession) -> bytes | None:
    """The certificate that is a session; None if the kernel declines it."""
    try:
        left, right = asked.sides()
        sides.ensure_one_session(left, right)
    except Rejected:
        return None
    lines = list(_calls(asked.artifacts[0], session))
    if any(is_timed(one.policy) for one in (*left.policies, *right.policies)):
        for line, call in zip(lines, session.calls, strict=True):
            line.append(call.at_ms or 0)
    given = _given(asked.artifacts[0], session)
    return _file(asked.head(proof, calls=len(lines), ends=session.ends, **given), [lines])


def finishing(
    asked: ProvedQuestion, system: TimedSystem, *, max_states: int, check_time: Callable[[], None]
) -> bytes | None:
    """The certificate that every session can be finished; None if there is none.

    Raises:
        OpenQuestion: P503, P507.
    """
    if system.lists:  # the kernel takes none
        return None
    part = Part(tracked=None, rule=None, uses=_monitors(system))
    made = closed(system, part, ends=False, max_states=max_states, check_time=check_time)
    if made is None:
        return None
    forms = _Forms(len(system.atoms))
    starts = [forms.of(most_of(state)) for state in made.states]
    order = list(dict.fromkeys(state for state, _ in starts))
    known, into = set(order), dict[State, list[tuple[State, int, list[int]]]]()
    for state in order:
        check_time()
        for at, move in enumerate(system.moves(part, state)):
            surely = system.surely(state, move)
            if surely is None:
                continue
            to, row = forms.of(surely)
            into.setdefault(to, []).append((state, at, list(row)))
            if to not in known:
                if len(known) >= max_states:
                    raise OpenQuestion("P503", f"more than {max_states} states")
                known.add(to)
                order.append(to)
    place: dict[State, int] = {}
    lines: list[Any] = []
    todo: list[State] = []

    def add(state: State, step: list[Any]) -> None:
        if state not in place:
            place[state] = len(place)
            todo.append(state)
            lines.append(next(Closed(part, [state], [], []).lines()))
            lines.append(step)

    for state in order:
        if system.ends(part, state, 0):
            add(state, [])
    for to in todo:
        for before, at, row in into.get(to, ()):
            add(before, [at, [place[to], *row]])
    if any(state not in place for state, _ in starts):
        return None
    rows = [[place[state], *row] for state, row in starts]
    head = asked.head("proved", states=len(made.states), ends=len(place))
    return _file(head, [made.lines(), lines, [rows]])


def stuck(
    asked: ProvedQuestion,
    system: TimedSystem,
    session: WitnessSession,
    *,
    max_states: int,
    check_time: Callable[[], None],
) -> bytes | None:
    """The certificate that a session cannot be finished; None if there is none.

    Raises:
        OpenQuestion: P503, P507.
        Rejected: the calls are no session.
    """
    part = Part(tracked=None, rule=None, uses=_monitors(system))
    calls = list(_calls(asked.artifacts[0], session))
    given = _given(asked.artifacts[0], session)
    replay = Replay(system.left, system.left, dict(given.get("given", ())))
    for tool, listed, opened in calls:
        made = SessionCall(
            tool=tool,
            listed=tuple([(a, b) for a, b in listed]),
            opened=tuple([(a, b) for a, b in opened]),
        )
        if replay.refuses(made):
            return None
    found = closed(
        system,
        part,
        ends=False,
        begin=replay.state(system),
        max_states=max_states,
        check_time=check_time,
    )
    if found is None or any(system.ends(part, state, 0) for state in found.states):
        return None
    head = asked.head("refuted", states=len(found.states), calls=len(calls), **given)
    return _file(head, [calls, found.lines()])


def _calls(artifact: Artifact, session: WitnessSession) -> Iterator[Any]:
    tools = {tool.name: tool for tool in artifact.core.tools}
    for call in session.calls:
        tool = tools[call.tool]
        types = {p.name: p.type for p in (*tool.opened, *tool.answers)}
        listed, opened = fields_of_call(tool, call)
        texts = sorted([n, _written(types[n], v)] for n, v in opened.items())
        yield [tool.name, sorted(map(list, listed.items())), texts]


def _given(artifact: Artifact, session: WitnessSession) -> dict[str, Any]:
    """The member of a head that says what a session is given, where its grammar asks for that."""
    types = {one.name: one.type for one in artifact.core.given}
    pairs = sorted([name, _written(types[name], v)] for name, v in session.given.items())
    return {"given": pairs} if types else {}


def _written(kind: Any, value: Any) -> str:
    match kind:
        case TextType():
            return str(value)
        case NumberType() | FlagType():
            return text_of(value) or ""
    return json_text(value).decode()


def _file(head: Any, parts: Sequence[Any]) -> bytes:
    lines = [encode(head)]
    for part in parts:
        lines += [line if isinstance(line, bytes) else encode(line) for line in part]
    return b"\n".join(lines) + b"\n"
