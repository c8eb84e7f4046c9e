"""Checks a proof: each step of its arguments, and that they are all that the question needs.

A proof names steps and searches for nothing.  An argument is a tree in preorder.  A step adds
a formula or a call, splits on a literal, or closes its branch for a reason.  The kernel derives
every formula and every fact from the core and the question (:mod:`tcc_certs.proof.rules`), so
a file chooses only which of them it uses.  Normative text: docs/spec/proof.md.
Cost: linear in the steps, each at most linear in the statement that it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, decode
from tcc_certs.formats.schema import as_object
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.reader import core_digest
from tcc_certs.proof import rules
from tcc_certs.proof.ground import Ground
from tcc_certs.proof.plans import Plan, Plans, most_counted, walk_of
from tcc_certs.proof.questions import Question, Unsupported, begun, parts_of, question_of, rules_of
from tcc_certs.proof.reasons import (
    Fact,
    Variable,
    evaluated,
    fact_at_most,
    fact_between,
    facts_about,
    facts_of,
    is_contradiction,
    most_before,
    renamed,
    renaming,
    value_of,
)
from tcc_certs.proof.rules import Wrong, made
from tcc_certs.proof.scene import Formula, Scene, calls_in, contradicts

SCHEMA = "tcc.proof/2"
MAX_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedProof:
    """A proof that holds.

    Attributes:
        question: what it proves.
        used: the numbers of the statements of the core that it used, increasing.
        of_plans: whether it used the automaton of the artifact.
        arguments, steps: how many it has.
    """

    question: Question
    used: tuple[int, ...]
    of_plans: bool
    arguments: int
    steps: int


def check_proof(data: bytes, core: Core, plan: Callable[[], Plan] | None = None) -> CheckedProof:
    """Check a proof about a core, or about an artifact, and return its question and statements.

    Args:
        plan: makes the automaton of the artifact, for a proof that uses it.

    Raises:
        Rejected: B1xx the bytes are no canonical JSON.  D102 the schema is unknown.  D201 a limit
            is exceeded.  T101 the file has another form.  T102 no proof can be about the question.
            T103 the proof is about another core.  T104 the arguments are not those of the question.
            T105 a step does not hold.
    """
    ensure(len(data) <= MAX_BYTES, Code.LIMIT, "", f"{MAX_BYTES} bytes", len(data))
    value = decode(data, "")
    schema = value.get("schema") if isinstance(value, dict) else None
    ensure(schema == SCHEMA, Code.UNKNOWN_VERSION, "schema", SCHEMA, schema)
    members = ["schema", "core", "question", "arguments"]
    item = as_object(value, "", Code.PROOF_SCHEMA, members, [])
    digest = core_digest(core)
    ensure(item["core"] == digest, Code.PROOF_CORE, "core", digest, item["core"])
    question = question_of(item["question"])
    found = rules_of(question, core)
    policy = policy_of(core)
    plans = Plans(plan)
    if question.kind == "finishable":
        _check_ends(plans)
    try:
        parts = parts_of(found, policy, plans)
    except Unsupported as why:
        raise Rejected(Code.PROOF_QUESTION, "question", "a statement of a session", why) from None
    arguments = item["arguments"]
    if not isinstance(arguments, list):
        raise Rejected(Code.PROOF_SCHEMA, "arguments", "a list", arguments)
    ensure(
        len(arguments) == len(parts), Code.PROOF_ARGUMENT, "arguments", len(parts), len(arguments)
    )
    used: set[int] = set()
    steps = 0
    for number, (part, argument) in enumerate(zip(parts, arguments, strict=True)):
        path = f"arguments[{number}]"
        item = as_object(argument, path, Code.PROOF_SCHEMA, ["tool", "statements", "steps"], [])
        tool = part.tool or ""
        ensure(item["tool"] == tool, Code.PROOF_ARGUMENT, f"{path}.tool", tool, item["tool"])
        scene, formulas = begun(policy, found[part.statement], question.kind, part.tool)
        argued = Argument(scene, formulas, path, plans)
        steps += argued.run(item["steps"])
        ensure(item["statements"] == sorted(argued.used), Code.PROOF_ARGUMENT, f"{path}.statements",
               sorted(argued.used), item["statements"])  # fmt: skip
        used |= argued.used
    return CheckedProof(
        question=question,
        used=tuple(sorted(used)),
        of_plans=plans.is_used,
        arguments=len(parts),
        steps=steps,
    )


def _check_ends(plans: Plans) -> None:
    """Check that every session can be finished: this needs no argument.

    Raises:
        Rejected: T105.
    """
    from tcc_certs.proof.ends import open_reason  # imported lazily: it makes tables of statements

    try:
        reason = open_reason(plans.get())
    except Wrong:
        reason = "the proof needs an artifact"
    ensure(not reason, Code.PROOF_STEP, "question", "sessions that can be finished", reason)


class _Branch(NamedTuple):
    """An open branch: the sizes of the lists where it began, and the function that begins it."""

    formulas: int
    actors: int
    trail: int
    begin: Callable[[], None]


class Argument:
    """The state of an argument while its steps are followed.

    Attributes:
        truths: of literals, by their numbers.
        used: the statements that were used.
    """

    def __init__(
        self, scene: Scene, formulas: Sequence[Formula], path: str, plans: Plans | None = None
    ) -> None:
        self.scene = scene
        self._plans = Plans(None) if plans is None else plans
        self.formulas = list(formulas)
        self.truths: dict[int, bool] = {}
        self.used: set[int] = set()
        self._trail: list[int] = []
        self._open: list[_Branch] = []
        self._path = path
        self._closes: Mapping[str, Callable[..., bool]] = {
            "formula": self._formula,
            "both": self._both,
            "equal": self._equal,
            "sum": self._sum,
            "plan": self._plan,
        }
        self._adds: Mapping[str, Callable[..., Formula]] = {
            "use": self._use,
            "settled": lambda call, statement: self._settled(call, statement),
            "at": lambda number, call: rules.at(scene, self.literal(number), self._actor(call)),
            "domain": lambda number, at: rules.domain(scene, self.literal(number), _number(at)),
            "count": lambda number, at: rules.count(scene, self.literal(number), _number(at)),
            "include": lambda one, other: rules.include(
                scene, self.literal(one), self.literal(other)
            ),
            "nested": lambda one, other: rules.nested(
                scene, self.literal(one), self.literal(other)
            ),
            "leads": lambda *calls: rules.leads(scene, *map(self._call, calls)),
            "distinct": lambda *calls: rules.distinct(scene, *map(self._call, calls)),
            "ordered": lambda *calls: rules.ordered(scene, *map(self._call, calls)),
        }

    def run(self, steps: Json) -> int:
        """Follow the steps of an argument, and return how many there are.

        Raises:
            Rejected: T105 a step does not hold, or a branch is left open.
        """
        if not isinstance(steps, list):
            raise Rejected(Code.PROOF_SCHEMA, f"{self._path}.steps", "a list", steps)
        closed = False
        for number, step in enumerate(steps):
            path = f"{self._path}.steps[{number}]"
            ensure(not closed, Code.PROOF_STEP, path, "the end of the argument", step)
            try:
                closed = self.follow(step)
            except (Wrong, TypeError, IndexError, KeyError, ValueError, RecursionError):
                raise Rejected(Code.PROOF_STEP, path, "a step that holds", step) from None
        ensure(
            closed, Code.PROOF_STEP, f"{self._path}.steps", "a closed argument", "an open branch"
        )
        return len(steps)

    def follow(self, step: Any) -> bool:
        """Follow a step, and return whether the argument is closed.

        Raises:
            Wrong, TypeError, IndexError, KeyError, ValueError, RecursionError: it does not hold.
        """
        if not isinstance(step, list):
            raise Wrong
        name, *given = step
        if name == "split":
            (number,) = given
            self.literal(number)
            self._branches(
                [lambda: self._assign(number, True), lambda: self._assign(number, False)]
            )
            return False
        if name == "witness":
            return self._witness(*given)
        if name == "first":
            (call,) = given
            entered = rules.first(self.scene, self._call(call))
            self.formulas += rules.entered(self.scene, entered)
            return False
        if name in rules.LEMMAS:
            (number,) = given
            self.formulas.append(rules.LEMMAS[name](self.scene, self.literal(number)))
            return False
        if name in self._adds:
            self.formulas.append(self._adds[name](*given))
            return False
        if not self._closes[name](*given):
            raise Wrong
        return self._close()

    # Branches.

    def _branches(self, begins: Sequence[Callable[[], None]]) -> None:
        sizes = len(self.formulas), len(self.scene.actors), len(self._trail)
        for begin in reversed(begins[1:]):
            self._open.append(_Branch(*sizes, begin))
        begins[0]()

    def _close(self) -> bool:
        if not self._open:
            return True
        branch = self._open.pop()
        del self.formulas[branch.formulas :]
        del self.scene.actors[branch.actors :]
        for number in self._trail[branch.trail :]:
            del self.truths[number]
        del self._trail[branch.trail :]
        branch.begin()
        return False

    def _assign(self, number: int, truth: bool) -> None:
        if number in self.truths:
            raise Wrong
        self.truths[number] = truth
        self._trail.append(number)

    def _witness(self, number: Any) -> bool:
        literal = self.literal(number)
        truth = self.truths[number]
        found = rules.cases(self.scene, literal, truth)
        if not found:
            return self._close()

        def begin(case: rules.Case) -> None:
            call = rules.enter(self.scene, case)
            if call is not None and case.tool is not None:
                self.formulas += rules.entered(self.scene, call)
            self.formulas.append(rules.witness(self.scene, literal, case, call))

        self._branches([lambda case=case: begin(case) for case in found])  # type: ignore[misc]
        return False

    # References in steps.

    def literal(self, number: Any) -> Ground:
        """Return the literal of a number; the branch has all its calls."""
        literal = self.scene.literals[_number(number)]
        if any(call >= len(self.scene.actors) for call in calls_in(literal)):
            raise Wrong
        return literal

    def _actor(self, number: Any) -> int:
        if _number(number) >= len(self.scene.actors):
            raise Wrong
        return int(number)

    def _call(self, number: Any) -> int:
        if self.scene.actors[self._actor(number)].base is not None:
            raise Wrong
        return int(number)

    def _use(self, call: Any, statement: Any) -> Formula:
        self.used.add(_number(statement))
        return rules.use(self.scene, self._call(call), statement)

    def _settled(self, call: Any, statement: Any) -> Formula:
        self.used.add(_number(statement))
        return rules.settled(self.scene, statement, self._call(call))

    # Reasons.

    def _formula(self, number: Any) -> bool:
        return value_of(self.formulas[_number(number)], self.truths) is False

    def _both(self, one: Any, other: Any) -> bool:
        wanted = contradicts(self.literal(one))
        found = None if wanted is None else self.scene.number(wanted)
        return self.truths[one] and self.truths[other] and found == other

    def _equal(self, equalities: Any, *named: Any) -> bool:
        """That a literal is evaluated otherwise, or two literals are one, with equal terms."""
        literals = [self.literal(number) for number in equalities]
        if not all(
            one[0] == "eq" and self.truths[at] for one, at in zip(literals, equalities, strict=True)
        ):
            return False
        names, clash = renaming(literals)
        if not named:
            return clash
        terms: list[Ground] = [term for one in literals for term in one[1:]]
        known = {names.get(term, term) for term in terms}
        one = renamed(self.literal(named[0]), names)
        if len(named) == 1:
            found = evaluated(one, known)
            return found is not None and found is not self.truths[named[0]]
        _, second = named
        return one == renamed(self.literal(second), names) and (
            self.truths[named[0]] is not self.truths[second]
        )

    def _sum(self, facts: Any) -> bool:
        found = [(self._fact(*named), Fraction(_number(factor))) for *named, factor in facts]
        return is_contradiction(self.scene, found)

    def _plan(self, calls: Any, literals: Any) -> bool:
        """That the automaton has no path with calls that were made, and what literals say."""
        scene = self.scene
        chain = [self._call(call) for call in calls]
        needed = [made(scene, call) for call in chain[:-1]]
        needed += [scene.before(*pair) for pair in pairwise(chain)]
        if any(value_of(formula, self.truths) is not True for formula in needed):
            return False
        named = [(self.literal(number), self.truths[number]) for number in literals]
        plan = self._plans.get()
        return plan.path(walk_of(plan, scene, chain, named)) is None

    def _fact(self, name: Any, *given: Any) -> Fact:
        if name == "literal":
            number, at = given
            return facts_of(self.scene, self.literal(number), self.truths[number])[_number(at)]
        if name == "about":
            variable, at = given
            return facts_about(self.scene, self._variable(variable))[_number(at)]
        if name == "between":
            one, other = map(self._variable, given)
            fact = fact_between(self.scene, one, other)
            if fact is not None:
                return fact
        if name == "plan":
            one, numbers = self._variable(given[0]), given[1]
            named = [(self.literal(number), self.truths[number]) for number in numbers]
            return fact_at_most(one, most_counted(self._plans.get(), self.scene, one, named))
        if name == "total":
            one, statement = self._variable(given[0]), _number(given[1])
            self.used.add(statement)
            return fact_at_most(one, most_before(self.scene, one, statement))
        raise Wrong

    def _variable(self, named: Any) -> Variable:
        """A variable of a fact that a literal states."""
        number, truth, at, place = named
        fact = facts_of(self.scene, self.literal(number), bool(_number(truth)))[_number(at)]
        return list(fact.terms)[_number(place)]


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise Wrong
    return value
