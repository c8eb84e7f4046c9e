"""Writes arguments as the steps of a proof.

The writer follows its own steps with the kernel's :class:`tcc_certs.proof.check.Argument`, because
the numbers of literals, formulas and calls are those of the kernel.  So it returns checked steps.
Cost: that of checking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcc_certs.formats.codec import Json, encode
from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import core_digest
from tcc_certs.proof import rules
from tcc_certs.proof.check import SCHEMA, Argument
from tcc_certs.proof.ground import Ground, rewritten
from tcc_certs.proof.plans import Plans
from tcc_certs.proof.questions import Question, question_json
from tcc_certs.proof.scene import Formula, Scene
from tcc_runtime.exact.engine import Key


def written(
    scene: Scene,
    start: Sequence[Formula],
    tree: tuple[Any, ...],
    literals: Sequence[Ground],
    plans: Plans,
) -> tuple[list[Json], list[int]]:
    """Return the steps of an argument, and the statements that they use.

    Args:
        scene: a new scene of the question, and `start` its formulas.
        literals: of the scene of the search.
    """
    argument = Argument(scene, start, "argument", plans)
    writer = _Writer(argument, literals)
    todo: list[tuple[Any, tuple[Key, ...], Mapping[int, int]]] = [
        (tree, tuple([("start", at) for at in range(len(start))]), {0: 0})
    ]
    while todo:
        one, keys, calls = todo.pop()
        writer.keys, writer.calls = keys, calls
        match one:
            case ("close", reason):
                writer.close(reason)
            case ("split", literal, yes, no):
                writer.step("split", writer.literal(literal))
                todo += [(no, keys, calls), (yes, keys, calls)]
            case ("add", key, inner):
                writer.step(*writer.named(key))
                todo.append((inner, (*keys, key), calls))
            case ("first", call, entered, inner):
                after = {**calls, entered: len(scene.actors)}
                writer.step("first", calls[call])
                keys = (*keys, *[("entered", entered, at) for at in range(3)])
                todo.append((inner, keys, after))
            case ("witness", literal, call, inners):
                number = writer.literal(literal)
                found = rules.cases(scene, scene.literals[number], argument.truths[number])
                after = {**calls, call: len(scene.actors)}
                writer.step("witness", number)
                entries = []
                for case, inner in zip(found, inners, strict=True):
                    more: tuple[Key, ...] = (("witness", call, literal),)
                    if case.tool is not None:
                        more = (*[("entered", call, at) for at in range(3)], *more)
                    is_new = case.tool is not None or case.base is not None
                    entries.append((inner, (*keys, *more), after if is_new else calls))
                todo += reversed(entries)
    return writer.steps, sorted(argument.used)


class _Writer:
    """Numbers as the kernel has them.

    Attributes:
        keys: of the formulas of the branch, in order.
        calls: the kernel's number of each call of the search.
    """

    def __init__(self, argument: Argument, literals: Sequence[Ground]) -> None:
        self.steps: list[Json] = []
        self.keys: tuple[Key, ...] = ()
        self.calls: Mapping[int, int] = {}
        self._argument, self._literals = argument, literals

    def step(self, *step: Any) -> None:
        """Add a step, and follow it."""
        self.steps.append(list(step))
        self._argument.follow(list(step))

    def literal(self, number: int) -> int:
        """The kernel's number of a literal."""

        def leaf(part: Ground, _: int) -> Ground | None:
            return (part[0], self.calls[part[1]]) if part[0] in ("call", "item") else None

        found = self._argument.scene.number(rewritten(self._literals[number], leaf))
        if found is None:
            raise KeyError(self._literals[number])
        return found

    def named(self, key: Key) -> Key:
        """A step with the kernel's numbers."""
        match key:
            case ("use" | "settled", call, statement):
                return key[0], self.calls[call], statement
            case ("at", literal, call):
                return "at", self.literal(literal), self.calls[call]
            case ("domain" | "count", literal, at):
                return key[0], self.literal(literal), at
            case ("include" | "nested", one, other):
                return key[0], self.literal(one), self.literal(other)
            case ("ordered" | "distinct" | "leads", *calls):
                return key[0], *[self.calls[call] for call in calls]
        return key[0], self.literal(key[1])

    def close(self, reason: tuple[Any, ...]) -> None:
        """Add the step of a reason."""
        match reason:
            case ("formula", key):
                self.step("formula", self.keys.index(key))
            case ("both", one, other):
                self.step("both", self.literal(one), self.literal(other))
            case ("equal", equalities, *named):
                numbers = [self.literal(one) for one in equalities]
                self.step("equal", numbers, *[self.literal(one) for one in named])
            case ("sum", facts):
                self.step("sum", [self._fact(*fact) for fact in facts])
            case ("plan", calls, literals):
                chain = [self.calls[call] for call in calls]
                self.step("plan", chain, [self.literal(one) for one in literals])

    def _fact(self, name: str, *given: Any) -> list[Json]:
        match name:
            case "literal":
                number, at, factor = given
                return [name, self.literal(number), at, factor]
            case "about" | "total":
                variable, at, factor = given
                return [name, self._variable(variable), at, factor]
            case "plan":
                variable, literals, factor = given
                numbers = [self.literal(one) for one in literals]
                return [name, self._variable(variable), numbers, factor]
        one, other, factor = given
        return [name, self._variable(one), self._variable(other), factor]

    def _variable(self, variable: tuple[int, int, int, int]) -> list[Json]:
        number, truth, at, place = variable
        return [self.literal(number), truth, at, place]


def proof_bytes(core: Core, question: Question, arguments: Sequence[Mapping[str, Json]]) -> bytes:
    """The bytes of a proof."""
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "core": core_digest(core),
        "question": question_json(question),
        "arguments": list(arguments),
    }
    return encode(document)
