"""Searches for an argument that no call breaks a statement.

The search is a tableau.  It starts with the formulas of the statements on the deciding call, splits
on literals, and closes branches for the reasons that the kernel knows
(:mod:`tcc_certs.proof.reasons`).  A branch without a contradiction grows: a lemma about its
literals, a statement of one of its calls, or a witness.  A witness is an earlier call, or an
element of a list, that has to exist.  Witnesses have generations, and a search has a bound on them.
A branch that nothing can grow is a *model*: a list of calls with their literals, of which
:mod:`tcc_runtime.exact.drafts` tries to make a session.

A closed branch says which literals it needs, so a split that its first half does not need is
dropped (backjumping), and so is every formula that no reason names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tcc_certs.proof import rules
from tcc_certs.proof.ground import Ground, parts, picks
from tcc_certs.proof.plans import Step
from tcc_certs.proof.reasons import value_of
from tcc_certs.proof.rules import Wrong
from tcc_certs.proof.scene import MAX_ACTORS, Formula, Scene, calls_in, contradicts
from tcc_runtime.exact.planned import Paths, SearchedPlan
from tcc_runtime.exact.theory import Theory

Key: TypeAlias = "tuple[Any, ...]"  # names a formula: the step that adds it
MAX_MODELS = 40  # of a search, before it gives up
MAX_PARTIAL = 4  # models of a search that lack calls


class OutOfTime(Exception):
    """The time or the number of steps of a question is over."""


class Deeper(Exception):
    """A branch needs witnesses beyond the bound of the search."""


@dataclass(frozen=True, slots=True)
class Closed:
    """An argument about a branch.

    Attributes:
        tree: ``("close", reason)``, ``("split", literal, yes, no)``, ``("add", step, inner)``,
            ``("first", call, first call, inner)`` or ``("witness", literal, call, inner trees)``.
        needs: the literals of the branch whose truths it needs.
        formulas: the keys of the formulas of the branch that it names.
        names: the literals that its steps name, and its calls as ``-1 - call``.
    """

    tree: tuple[Any, ...]
    needs: frozenset[int]
    formulas: frozenset[Key]
    names: frozenset[int]


@dataclass(slots=True)
class Model:
    """A branch that nothing can grow.

    Attributes:
        truths: of the literals, by their numbers.
        is_whole: whether it has all calls that it needs.
        path: some of its calls in their order, and a path of the automaton that has them.
    """

    scene: Scene
    truths: dict[int, bool]
    is_whole: bool = True
    path: tuple[tuple[int, ...], list[Step]] | None = None


@dataclass(slots=True)
class Search:
    """One search.

    Args:
        start: what holds of the deciding call.
        statements: the numbers of the statements that arguments may use.
        most: generations of witnesses.
        on_model: called with each model; it raises to end the search.
        tick: called often; it raises `OutOfTime`.
        plan: the automaton; None: arguments may not use it.

    Attributes:
        steps: how many branches were looked at.
        is_deeper: whether a branch needs more witnesses than it may have.
    """

    scene: Scene
    start: Sequence[Formula]
    statements: Sequence[int]
    most: int
    on_model: Callable[[Model], None]
    tick: Callable[[], None]
    plan: SearchedPlan | None = None
    steps: int = 0
    models: int = 0
    partial: int = 0
    is_deeper: bool = False
    theory: Theory = field(init=False)
    paths: Paths | None = field(init=False, default=None)
    truths: dict[int, bool] = field(default_factory=dict)
    generation: list[int] = field(default_factory=lambda: [0])
    _known: set[int] = field(default_factory=set)
    _done: set[Key] = field(default_factory=set)
    _order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.theory = Theory(self.scene, self.statements, self.plan)
        if self.plan is not None:
            self.paths = Paths(self.plan, self.scene)

    def run(self) -> Closed | None:
        """Return an argument; None: a branch stays open.

        Raises:
            OutOfTime, Deeper: the search was cut.
        """
        formulas = [(("start", at), formula) for at, formula in enumerate(self.start)]
        for _, formula in formulas:
            self._know(formula)
        closed = self._solve(formulas, [])
        if closed is None and self.is_deeper:
            raise Deeper
        return closed

    # Branches.

    def _solve(self, active: list[tuple[Key, Formula]], fresh: list[int]) -> Closed | None:
        """Search a branch.

        Args:
            active: its formulas that may not be true yet.
            fresh: the literals that were assigned since the theory looked last.
        """
        self.steps += 1
        self.tick()
        forced: list[tuple[int, Key, frozenset[int]]] = []
        closed: Closed | None = None
        fresh = list(fresh)
        while closed is None:
            closed, active, moved = self._propagate(active, forced, fresh)
            if closed is None and fresh:
                closed = self._conflict(fresh)
                fresh = []
            if not moved:
                break
        if closed is None:
            closed = self._decide(active)
        for literal, key, why in reversed(forced):
            truth = self.truths.pop(literal)
            self._order.pop()
            if closed is not None and literal in closed.needs:
                other = Closed(
                    ("close", ("formula", key)), why | {literal}, frozenset([key]), frozenset()
                )
                closed = _split(literal, truth, closed, other)
        return closed

    def _propagate(
        self,
        active: list[tuple[Key, Formula]],
        forced: list[tuple[int, Key, frozenset[int]]],
        fresh: list[int],
    ) -> tuple[Closed | None, list[tuple[Key, Formula]], bool]:
        left, moved = [], False
        for key, formula in active:
            value = value_of(formula, self.truths)
            if value is True:
                continue
            if value is False:
                why = _why_false(formula, self.truths)
                return (
                    Closed(("close", ("formula", key)), why, frozenset([key]), frozenset()),
                    active,
                    moved,
                )
            left.append((key, formula))
            unit = _forced(formula, self.truths)
            if unit is not None:
                literal, truth = unit
                self.truths[literal] = not truth
                why = _why_false(formula, self.truths) - {literal}
                self._assign(literal, truth)
                forced.append((literal, key, why))
                fresh.append(literal)
                moved = True
        return None, left, moved

    def _assign(self, literal: int, truth: bool) -> None:
        self.truths[literal] = truth
        self._order.append(literal)

    def _conflict(self, fresh: Sequence[int]) -> Closed | None:
        found = self.theory.conflict(self.truths, fresh)
        if found is None:
            return None
        reason, needs, names = found
        return Closed(("close", reason), needs, frozenset(), names | needs)

    def _decide(self, active: list[tuple[Key, Formula]]) -> Closed | None:
        for _, formula in active:
            literal = _first_open(formula, self.truths)
            if literal is not None:
                return self._split(literal, active)
        return self._grow(active)

    def _split(self, literal: int, active: list[tuple[Key, Formula]]) -> Closed | None:
        found: dict[bool, Closed | None] = {}
        first = self.scene.literals[literal][0] not in _LATER
        for truth in (first, not first):
            self._assign(literal, truth)
            closed = self._solve(active, [literal])
            del self.truths[literal]
            self._order.pop()
            if closed is not None and literal not in closed.needs:
                return closed
            found[truth] = closed
        yes, no = found[True], found[False]
        if yes is None or no is None:
            return None
        return _split(literal, True, yes, no)

    # Growth.

    def _grow(self, active: list[tuple[Key, Formula]]) -> Closed | None:
        if len(self.scene.actors) == MAX_ACTORS:
            raise Deeper
        for makes in (self._lemmas, self._instances, self._uses):
            steps = [step for step in makes() if step not in self._done]
            if steps:
                return self._add(steps, active)
        closed = self._without_path()
        if closed is not None:
            return closed
        looped = self._looped()
        if looped is not None:
            return self._first(looped, active)
        left: list[Key] = []
        deeper = False
        for step in self._witnesses():
            if step in self._done:
                continue
            if self._generation_after(step[1]) > self.most:
                deeper = deeper or not self._is_met(step[1])
            elif self._is_met(step[1]):
                left.append(step)
            else:
                return self._witness(step, active)
        self._model(deeper)
        if left:
            return self._witness(left[0], active)
        return None

    def _without_path(self) -> Closed | None:
        """The argument that the automaton has no path for the branch."""
        found = None if self.paths is None else self.paths.conflict(self.truths)
        if found is None:
            return None
        names = found.why | {-1 - call for call in found.chain}
        return Closed(
            ("close", ("plan", found.chain, found.literals)), found.why, frozenset(), names
        )

    def _model(self, deeper: bool) -> None:
        """Hand over the branch as a model.

        Raises:
            Deeper: there were enough of them, and this branch needs more witnesses.
        """
        self.is_deeper = self.is_deeper or deeper
        if deeper:
            self.partial += 1
            if not self.most or self.partial > MAX_PARTIAL:
                raise Deeper
        else:
            self.models += 1
            if self.models > MAX_MODELS:
                raise Deeper
        path = None if self.paths is None else self.paths.path(self.truths)
        self.on_model(Model(self.scene, dict(self.truths), not deeper, path))

    def _is_met(self, number: int) -> bool:
        """Return whether a call or an element of the branch surely is a witness of a literal."""
        scene = self.scene
        literal = scene.literals[number]
        truth = self.truths[number]
        for case in rules.cases(scene, literal, truth):
            for call, actor in enumerate(scene.actors):
                is_call = case.tool is not None and case.view in actor.above
                if actor.base != case.base or actor.tool != case.tool or is_call == bool(case.base):
                    continue
                if literal[0] == "some":
                    formula = scene.member(literal[1], call, literal[2], True, False)
                else:
                    formula = rules.witness(scene, literal, case, call)
                if value_of(formula, self.truths) is True:
                    return True
        return False

    def _add(self, steps: Sequence[Key], active: list[tuple[Key, Formula]]) -> Closed | None:
        added: list[tuple[Key, frozenset[int]]] = []
        active = list(active)
        for step in dict.fromkeys(steps):
            self._done.add(step)
            try:
                formula = self._formula(step)
            except Wrong:
                added.append((step, frozenset()))
                continue
            added.append((step, self._know(formula)))
            if formula is not True:
                active.append((step, formula))
        closed = self._solve(active, [])
        for step, new in reversed(added):
            self._done.discard(step)
            self._known -= new
            if closed is not None:
                closed = _added(step, new, closed)
        return closed

    def _formula(self, step: Key) -> Formula:
        """The formula that a step adds, as the kernel makes it."""
        scene, literals = self.scene, self.scene.literals
        match step:
            case ("use", call, statement):
                return rules.use(scene, call, statement)
            case ("settled", call, statement):
                return rules.settled(scene, statement, call)
            case ("at", literal, call):
                return rules.at(scene, literals[literal], call)
            case ("domain", literal, at):
                return rules.domain(scene, literals[literal], at)
            case ("count", literal, at):
                return rules.count(scene, literals[literal], at)
            case ("include", one, other):
                return rules.include(scene, literals[one], literals[other])
            case ("nested", one, other):
                return rules.nested(scene, literals[one], literals[other])
            case ("ordered", *calls):
                return rules.ordered(scene, *calls)
            case ("distinct", *calls):
                return rules.distinct(scene, *calls)
            case ("leads", *calls):
                return rules.leads(scene, *calls)
            case (name, literal):
                return rules.LEMMAS[name](scene, literals[literal])
        raise TypeError(step)

    def _know(self, formula: Formula) -> frozenset[int]:
        """Note the literals of a formula, and return those that are new in the branch."""
        new = frozenset(_literals(formula)) - self._known
        self._known |= new
        return new

    def _generation_after(self, number: int) -> int:
        """The generation of the witness of a literal: of an element, that of its list."""
        literal = self.scene.literals[number]
        before = max((self.generation[call] for call in calls_in(literal)), default=0)
        is_call = literal[0] not in ("some", "none") or literal[1][2][0] == "calls"
        return before + (is_call or any(part[0] == "item" for part in parts(literal)))

    def _witness(self, step: Key, active: list[tuple[Key, Formula]]) -> Closed | None:
        literal = step[1]
        ground = self.scene.literals[literal]
        generation = self._generation_after(literal)
        self._done.add(step)
        call = len(self.scene.actors)
        trees: list[tuple[Any, ...]] = []
        needs, names = {literal}, {literal}
        formulas: set[Key] = set()
        result: Closed | None = None
        is_open = False
        for case in rules.cases(self.scene, ground, self.truths[literal]):
            added: list[tuple[Key, Formula]] = []
            number = rules.enter(self.scene, case)
            if number is not None:
                self.generation.append(generation)
            if case.tool is not None:
                added += [
                    (("entered", call, at), formula)
                    for at, formula in enumerate(rules.entered(self.scene, call))
                ]
            added.append(
                (("witness", call, literal), rules.witness(self.scene, ground, case, number))
            )
            new = frozenset[int]().union(*[self._know(formula) for _, formula in added])
            closed = self._solve([*active, *added], [])
            self._known -= new
            if number is not None:
                self.scene.actors.pop()
                self.generation.pop()
            if closed is None:
                is_open = True
                continue
            own = {key for key, _ in added}
            if not own & closed.formulas and not self._mentions(closed, call, new):
                result = closed  # it does not need the witness
                break
            trees.append(closed.tree)
            needs |= closed.needs - new
            formulas |= closed.formulas - own
            names |= closed.names - new
        self._done.discard(step)
        if result is not None or is_open:
            return result
        return Closed(
            ("witness", literal, call, trees),
            frozenset(needs),
            frozenset(formulas),
            frozenset(names),
        )

    def _looped(self) -> int | None:
        """A call with an earlier one of its tool, if the first call of the tool is not there."""
        actors = self.scene.actors
        firsts = {actor.tool for actor in actors if actor.is_first}
        for actor in actors:
            if actor.tool in firsts or actor.is_first:
                continue
            for other in sorted(actor.above):
                if actors[other].tool == actor.tool:
                    return other
        return None

    def _first(self, call: int, active: list[tuple[Key, Formula]]) -> Closed | None:
        """Search with the first call of a tool."""
        added: list[tuple[Key, Formula]] = []
        number = rules.first(self.scene, call)
        self.generation.append(self.generation[call])
        for at, formula in enumerate(rules.entered(self.scene, number)):
            added.append((("entered", number, at), formula))
        new = frozenset[int]().union(*[self._know(formula) for _, formula in added])
        closed = self._solve([*active, *added], [])
        self._known -= new
        self.scene.actors.pop()
        self.generation.pop()
        if closed is None:
            return None
        own = {key for key, _ in added}
        if not own & closed.formulas and not self._mentions(closed, number, new):
            return closed
        return Closed(
            ("first", call, number, closed.tree),
            closed.needs - new,
            closed.formulas - own,
            closed.names - new | {-1 - call},
        )

    def _mentions(self, closed: Closed, call: int, new: frozenset[int]) -> bool:
        """Return whether an argument names a call, or a literal that came with it."""
        named = closed.names | closed.needs
        if named & new or -1 - call in named:
            return True
        return any(call in calls_in(self.scene.literals[one]) for one in named if one >= 0)

    # What may be added.

    def _lemmas(self) -> Iterator[Key]:
        """Lemmas about the literals of the branch."""
        literals = self.scene.literals
        sources: dict[int, Ground] = {}
        scopes: dict[int, Ground] = {}
        limited: set[Ground] = set()  # calls that a limit counts for
        for number in list(self._order):
            truth, literal = self.truths[number], literals[number]
            tag = literal[0]
            if tag in ("eq", "ne", "lt", "le", "match", "unmatch"):
                operands = rules.operands(literal)
                if truth and not all(map(self.scene.is_exact, operands)):
                    yield "knows", number
                if tag in ("eq", "ne"):
                    if not truth:
                        yield "sure", number
                        yield from self._domains(number, operands)
                    if (tag == "ne") == truth and self.scene.kind(literal[1]) is not None:
                        yield "apart", number
                if tag in ("lt", "le"):
                    for at, _ in enumerate(_counts(literal)):
                        yield "count", number, at
                    limited |= {part[2] for part in parts(literal) if part[0] == "counted"}
            elif tag in ("under", "outside"):
                scopes[number] = literal
                if truth and not all(map(self.scene.is_exact, rules.operands(literal))):
                    yield "knows", number
                yield "scoped", number
            elif tag in ("same", "differ"):
                yield "same", number
                yield "sure", number
            elif tag in ("null", "nonnull"):
                yield "absent", number
            elif tag in ("some", "none"):
                sources[number] = literal
                yield "filled", number
            elif tag == "truth" and truth and picks(literal[1]):
                yield "missing", number
        for number, literal in scopes.items():
            for other, second in scopes.items():
                if number != other and literal[1] == second[1]:
                    yield "nested", number, other
        for number, literal in sources.items():
            if literal[1][1] in limited:
                yield "counts", number
                yield "polarity", number
            for other, second in sources.items():
                if number == other:
                    continue
                if literal[1] == second[1]:
                    yield "polarity", number
                elif literal[2] == second[2] and rules.includes(literal[1], second[1]):
                    yield "include", number, other

    def _domains(self, number: int, operands: Sequence[Ground]) -> Iterator[Key]:
        if operands[0][0] == "const" or operands[1][0] == "const":
            for at, term in enumerate(operands):
                if term[0] != "const" and self.scene.declared(term) is not None:
                    yield "domain", number, at

    def _instances(self) -> Iterator[Key]:
        """What universal literals say of the calls of the branch."""
        actors = self.scene.actors
        calls = range(1, len(actors))
        for one, actor in enumerate(actors):
            for call in range(len(actors)) if actor.is_first else ():
                if call != one and actors[call].tool == actor.tool:
                    yield "leads", one, call
        for number in list(self._order):
            truth, literal = self.truths[number], self.scene.literals[number]
            if literal[0] == "before" and not truth:
                one, two = literal[1][1], literal[2][1]
                if self.scene.actors[one].tool != self.scene.actors[two].tool:
                    yield "distinct", one, two
            if not _is_universal(literal, truth):
                continue
            base = literal[1][2] if literal[0] in ("some", "none") else ()
            for call in calls:
                if actors[call].base == (base if base[:1] in (("items",), ("pairs",)) else None):
                    yield "at", number, call
        orders = [self.scene.literals[one] for one in self._order if self.truths[one]
                  and self.scene.literals[one][0] == "before"]  # fmt: skip
        for _, (_, one), (_, two) in orders:
            for three, actor in enumerate(actors):
                if actor.base is None and three != one and three != two:
                    yield "ordered", one, two, three
            yield "ordered", one, two, one

    def _uses(self) -> Iterator[Key]:
        """The statements of the policy on the calls of the branch."""
        for call, actor in enumerate(self.scene.actors):
            for statement in self.statements if actor.base is None else ():
                rule = self.scene.rules[statement]
                if actor.tool is None:
                    if rule.tools is None and rule.then is not None:
                        yield "use", call, statement
                elif rule.tools is not None and actor.tool in rule.tools:
                    is_timed = rule.kind == "owe" and rule.within is not None
                    if rule.kind in ("require", "forbid", "limit") or is_timed:
                        yield "use", call, statement
                    if rule.kind == "owe" and self.scene.actors[0].tool is None and call:
                        yield "settled", call, statement

    def _witnesses(self) -> Iterator[Key]:
        for number in list(self._order):
            literal, truth = self.scene.literals[number], self.truths[number]
            try:
                rules.cases(self.scene, literal, truth)
            except Wrong:
                continue
            yield "witness", number


# Literals that need another call if they are true, and outcomes that few sessions need.
_LATER = frozenset({"some", "known", "failed", "answered", "paid"})


def _is_universal(literal: Ground, truth: bool) -> bool:
    match literal[0]:
        case "none" | "clear" | "latest" | "timely":
            return truth
        case "some" | "paid":
            return not truth
        case "truth":
            return truth and bool(picks(literal[1]))
    return False


def _counts(literal: Ground) -> list[Ground]:
    return [part for part in parts(literal) if part[0] == "count" and not part[2]]


def _split(literal: int, truth: bool, closed: Closed, other: Closed) -> Closed:
    """The argument that a literal has either truth; `closed` is for `truth`."""
    yes, no = (closed, other) if truth else (other, closed)
    return Closed(
        ("split", literal, yes.tree, no.tree),
        (yes.needs | no.needs) - {literal},
        yes.formulas | no.formulas,
        yes.names | no.names | {literal},
    )


def _added(step: Key, new: frozenset[int], closed: Closed) -> Closed:
    """The argument with a step before it, if the step is needed."""
    if step not in closed.formulas and not (closed.names | closed.needs) & new:
        return closed
    names = closed.names - new | calls_named(step)
    if step[0] in ("at", "domain", "count", "include", "nested") or step[0] in rules.LEMMAS:
        numbers = step[1:3] if step[0] in ("include", "nested") else step[1:2]
        names |= frozenset(numbers)
    return Closed(("add", step, closed.tree), closed.needs - new, closed.formulas - {step}, names)


def calls_named(step: Key) -> frozenset[int]:
    """The calls that a step names, each as a number below 0."""
    match step:
        case ("use" | "settled", call, _) | ("at", _, call):
            return frozenset([-1 - call])
        case ("ordered" | "distinct" | "leads", *calls):
            return frozenset([-1 - call for call in calls])
    return frozenset()


# Formulas.


def _literals(formula: Formula) -> Iterator[int]:
    stack: list[Any] = [formula]
    while stack:
        one = stack.pop()
        if isinstance(one, bool):
            continue
        if one[0] == "lit":
            yield one[1]
        else:
            stack += one[1]


def _why_false(formula: Formula, truths: dict[int, bool]) -> frozenset[int]:
    """Literals whose truths make a formula false."""
    if isinstance(formula, bool):
        return frozenset()
    tag, inner, *_ = formula
    if tag == "lit":
        return frozenset([inner])
    if tag == "or":
        return frozenset().union(*[_why_false(part, truths) for part in inner])
    return next(_why_false(part, truths) for part in inner if value_of(part, truths) is False)


def _forced(formula: Formula, truths: dict[int, bool]) -> tuple[int, bool] | None:
    """A literal that has one truth if a formula is true."""
    if isinstance(formula, bool):
        return None
    tag, inner, *sign = formula
    if tag == "lit":
        return None if inner in truths else (inner, sign[0])
    left = [part for part in inner if value_of(part, truths) is None]
    if tag == "or":
        return _forced(left[0], truths) if len(left) == 1 else None
    for part in left:
        found = _forced(part, truths)
        if found is not None:
            return found
    return None


def _first_open(formula: Formula, truths: dict[int, bool]) -> int | None:
    return next((one for one in _first(formula, truths)), None)


def _first(formula: Formula, truths: dict[int, bool]) -> Iterator[int]:
    if isinstance(formula, bool) or value_of(formula, truths) is not None:
        return
    tag, inner, *_ = formula
    if tag == "lit":
        yield inner
        return
    for part in inner:
        yield from _first(part, truths)


__all__ = ["Closed", "Deeper", "Model", "OutOfTime", "Search", "contradicts"]
