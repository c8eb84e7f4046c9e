"""Tables of statements allow what the definition allows, or more where a choice was needed."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tcc_certs.policy import nodes, plans as model
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.course import Course
from tcc_certs.policy.history import DONE
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.nodes import Node, Statement, Word
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.tables import Letter
from tcc_certs.values.declared import NumberType
from tcc_certs.values.fields import Field
from tests.certs.policy.examples import letters_of


def listed(name: str, *values: str, optional: bool = False) -> Field:
    return Field(name=name, steps=(name,), values=values, optional=optional)


AMOUNT = Field(name="open", steps=("open",), type=NumberType(whole=True, low="0", high="3"))
TOOLS = (
    Tool(name="a", arguments=(listed("k", "x", "y"),), answers=(listed("r", "p", "q"),)),
    Tool(name="b", arguments=(listed("k", "x", "y", optional=True), listed("n", "0", "1", "2"))),
    Tool(name="c", arguments=(AMOUNT,)),
)


def calls() -> tuple[model.Call, ...]:
    found = []
    for number, tool in enumerate(TOOLS):
        sizes = [len(one.values) + one.optional for one in tool.listed]
        for values in product(*map(range, sizes)):
            found.append(
                model.Call(
                    text=f"{tool.name}{values}", tool=number, values=values, cost_low=0,
                    cost_high=0, price=0, latency=0, epsilon=0,
                )
            )  # fmt: skip
    return tuple(found)


class Draw:
    """Random statements over the listed fields, and now and then over the open one."""

    def __init__(self, seed: int, opened: bool) -> None:
        self.rng, self.opened = random.Random(seed), opened

    def statement(self) -> Statement:
        rng = self.rng
        kind = rng.choice(["require"] * 5 + ["forbid", "finally", "owe", "limit", "sum"])
        on = rng.choice("abc")
        where = self.filter(on, None) if rng.random() < 0.3 else ()
        match kind:
            case "require":
                return nodes.Require(on=Word(on), where=where, then=self.condition(2, on))
            case "forbid":
                return nodes.Forbid(on=Word(on), where=where)
            case "finally":
                return nodes.Require(on=None, then=self.condition(2, None))
            case "owe":
                other = rng.choice("ab")
                pays = self.filter(other, on) if rng.random() < 0.5 else ()
                return nodes.Owe(after=Word(on), where=where, calls=Word(other), pays=pays)
            case "sum":
                return nodes.Limit(of=Word("b"), field="n", most=self.number("b", ()))
        per = (Word("k"),) if on in "ab" and rng.random() < 0.5 else ()
        scope = "session" if per else None
        return nodes.Limit(of=Word(on), where=where, per=per, most=self.number(on, ()), scope=scope)

    def number(self, _on: str, _more: object) -> Node:
        return nodes.Number(str(self.rng.randint(0, 3)))

    def filter(self, of: str, on: str | None) -> tuple[Node, ...]:
        rng = self.rng
        choices: list[Node] = []
        if of in "ab":
            choices.append(
                nodes.Compare(rng.choice(["=", "!="]), Word("k"), Word(rng.choice("xy")))
            )
        if of in "ab" and on in ("a", "b"):
            choices.append(nodes.Same(("k",)))
        if of == "a" and on is not None:
            choices.append(nodes.Compare("=", Word("r"), Word(rng.choice("pq"))))
        if of == "b":
            op = rng.choice(["<", ">=", "=", "!="])
            choices.append(nodes.Compare(op, Word("n"), nodes.Number(str(rng.randint(0, 2)))))
        if of == "c" and self.opened:
            choices.append(nodes.Compare("<", Word("open"), nodes.Number("2")))
        return tuple(rng.sample(choices, min(len(choices), rng.randint(1, 2))))

    def source(self, on: str | None) -> Node:
        rng = self.rng
        of = rng.choice("aabbc")
        found: Node = Word(of)
        filtered = self.filter(of, on or "-") if rng.random() < 0.7 else ()
        if filtered:
            found = nodes.Where(found, filtered)
        if rng.random() < 0.1:
            found = nodes.Minus(nodes.AnyTool(), found)
        if rng.random() < 0.4:
            mark = rng.choice("abc")
            more = self.filter(mark, on or "-") if rng.random() < 0.5 else ()
            found = nodes.Since(found, nodes.Where(Word(mark), more) if more else Word(mark))
        return found

    def condition(self, depth: int, on: str | None) -> Node:
        rng = self.rng
        kind = rng.random()
        if depth and kind < 0.3:
            parts = (self.condition(depth - 1, on), self.condition(depth - 1, on))
            return nodes.And(parts) if rng.random() < 0.5 else nodes.Or(parts)
        if depth and kind < 0.4:
            return nodes.Not(self.comparison(on))
        if kind < 0.55:
            return self.source(on)
        if kind < 0.7:
            return nodes.No(self.source(on))
        if kind < 0.78:
            of = rng.choice("ab")
            return nodes.Every(nodes.Where(Word(of), self.filter(of, on or "-")))
        return self.comparison(on)

    def comparison(self, on: str | None) -> Node:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            op = rng.choice(["<", "<=", "=", ">=", ">"])
            count = nodes.Apply("count", (self.source(on),))
            return nodes.Compare(op, count, nodes.Number(str(rng.randint(1, 3))))
        if kind < 0.5:
            count = nodes.Apply("count", (self.source(on),))
            return nodes.Between("in", count, nodes.Number("1"), nodes.Number("2"))
        if kind < 0.75:
            of = rng.choice("ab")
            last = nodes.Apply("last", (nodes.Where(Word(of), self.filter(of, on or "-")),))
            return nodes.Compare(
                rng.choice(["=", "!="]), nodes.Get(last, "k"), Word(rng.choice("xy"))
            )
        if kind < 0.85:
            total = nodes.Apply("sum", (nodes.Get(Word("b"), "n"),))
            return nodes.Compare(rng.choice(["<", ">="]), total, nodes.Number("2"))
        if on == "b":
            return nodes.Compare("<", Word("n"), nodes.Number("2"))
        if on == "c" and self.opened:
            return nodes.Compare("<", Word("open"), nodes.Number("2"))
        return nodes.Compare("=", nodes.Text("u"), nodes.Text("u"))


def plays(course: Course, word: tuple[Letter, ...], opened: int) -> bool:
    """Whether the definition allows a plan whose open argument always has one value."""
    for letter in word:
        tool = course.policy.core.tool_of[letter.tool]
        values = {name: state[1] for name, state in letter.states.items() if state[0] != "none"}
        answers = {one.name for one in tool.answers}
        arguments = {name: value for name, value in values.items() if name not in answers}
        if tool.name == "c":
            arguments["open"] = opened
        if course.check(letter.tool, arguments):
            return False
        call = course.call(letter.tool, arguments)
        course.record(call, DONE, {name: values[name] for name in answers})
    return not course.unmet()


def cases(seeds: range, opened: bool) -> None:
    table_of = calls()
    held = exact = 0
    for seed in seeds:
        draw = Draw(seed, opened)
        statement = draw.statement()
        core = Core(
            name="g", version="1", tools=TOOLS, calls=table_of, rules={}, plan=model.Empty(),
            statements=(statement,),
        )  # fmt: skip
        try:
            policy = Policy(core)
        except Fault:
            continue
        letters = letters_of(core)
        (part,) = parts_of(core)
        place = part.place
        held += place != "gate"
        exact += place == "automaton"
        rng = random.Random(seed)
        for _ in range(12):
            word = tuple(rng.randrange(len(letters)) for _ in range(rng.randint(0, 5)))
            state: int | None = part.start
            for at in word:
                state = None if state is None else part.step(state, part.class_of[at])
            allowed = state is not None and part.accepts(state)
            said = [
                plays(Course(policy), tuple(letters[at] for at in word), opened_as)
                for opened_as in (0, 3)
            ]
            text = nodes.statement_text(statement)
            names = [letters[at] for at in word]
            if any(said):
                assert allowed, (seed, text, names)
            if place == "automaton":
                assert allowed == said[0] == said[1], (seed, text, names)
    assert held > len(seeds) // 8 and exact > len(seeds) // 8


@pytest.mark.parametrize("block", range(4))
def test_tables_over_listed_fields_are_exact_and_others_allow_more(block: int) -> None:
    cases(range(block * 150, block * 150 + 150), opened=block % 2 == 1)


@pytest.mark.campaign
def test_tables_of_many_statements() -> None:
    cases(range(1000, 11000), opened=True)
