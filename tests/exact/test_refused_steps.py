"""Each condition of a rule of proofs: one step that this condition alone refuses.

The literals and sources are written by hand, so no search is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import tcc
from tcc.library.proving import read_statements
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.nodes import Definition, Word
from tcc_certs.policy.reader import core_digest
from tcc_certs.proof import check, plans, rules
from tcc_certs.proof.check import SCHEMA, Argument, check_proof
from tcc_certs.proof.ground import MISSING, constant
from tcc_certs.proof.plans import Plan, Plans, walk_of
from tcc_certs.proof.questions import Question, begun, question_json, rules_of
from tcc_certs.proof.reasons import fact_at_most
from tcc_certs.proof.rules import Case, Wrong
from tcc_certs.proof.scene import MAX_ACTORS, Scene
from tcc_runtime.exact.planned import plan_of

TEXT = """# lint: allow TCC709 a test needs no costs
grammar steps version "1"
given g: text
tool look(k: text, m: 1 | 2) gives (v: yes | no, w: text) { errors mean failed }
tool test gives (v: yes | no)
tool act(k: text, n: integer 0 .. 9, y: number or null, x: number or null, to: list of text,
         rows: list of (sku: text, price: number 0 .. 100), other: list of (sku: text))
tool over
plan = look{1,2} test act over?
after act owe over
before act require look
limit count(act) <= 3 in session
limit depth <= 40
"""


@cache
def artifact() -> tcc.Artifact:
    return tcc.compile_text(TEXT)


@cache
def plan() -> Plan:
    return plan_of(artifact())


def question(text: str, kind: str = "statement") -> Question:
    return Question(kind=kind, statements=read_statements(artifact().core, text))


def scene_of(text: str = "before act require over", tool: str | None = "act") -> Scene:
    """The scene of a call that breaks a statement, with an earlier `look` as call 1."""
    core = artifact().core
    scene, _ = begun(policy_of(core), rules_of(question(text), core)[0], "statement", tool)
    scene.enter("look", 0)
    return scene


ACT, LOOK = ("call", 0), ("call", 1)
K, N, G = ("get", ACT, "k"), ("get", ACT, "n"), ("attr", "g")
ROWS_OF, ANSWER, OTHERS = ("get", ACT, "rows"), ("get", LOOK, "v"), ("get", ACT, "other")
ONE = constant(("n", 1))
ELEMENT = ("bound", 0)


def source(base: Any, *conditions: Any, within: Any = None, marks: Any = ()) -> tuple[Any, ...]:
    return "source", ACT, base, conditions, within, marks


LOOKS = source(("calls", ("look",)))
NAMED = source(
    ("calls", ("look",)), ("compare", "=", ("get", ELEMENT, "v"), (constant(("s", "yes")),))
)
ROWS = source(("rows", LOOKS, ("get", ELEMENT, "w"), None))
ITEMS = ("items", ("get", ACT, "to"), None)
IS_A = ("compare", "=", ELEMENT, (constant(("s", "a")),))
LAST_ROW = ("truth", ("compare", "=", ("last", ROWS), (ONE,)), False, True)
Rule = Callable[[Scene], object]

REFUSED: dict[str, Rule] = {
    "a last row has no witness": lambda s: rules.cases(s, LAST_ROW, False),
    "a witness is a call": lambda s: rules.witness(s, ("some", LOOKS, False), Case(None, 0), None),
    "the question is no statement of the policy": lambda s: rules.use(s, 0, -1),
    "no such statement": lambda s: rules.use(s, 0, 99),
    "the first call has its tool": lambda s: rules.leads(s, 1, 0),
    "the call is no first one": lambda s: rules.leads(s, 1, s.enter("look", 0)),
    "the first call has another tool": lambda s: rules.leads(s, s.enter_like(1), 0),
    "a last row is no call": lambda s: rules.at(s, LAST_ROW, 1),
    "null is no comparison": lambda s: rules.knows(s, ("null", K)),
    "rows left are not equal or different": lambda s: rules.sure(s, ("eq", ROWS_OF, K)),
    "rows right are not equal or different": lambda s: rules.sure(s, ("eq", K, ROWS_OF)),
    "an answer left may be missing": lambda s: rules.sure(s, ("same", ANSWER, K)),
    "an answer right may be missing": lambda s: rules.sure(s, ("same", K, ANSWER)),
    "rows left are not the same or not": lambda s: rules.sure(s, ("same", ROWS_OF, K)),
    "rows right are not the same or not": lambda s: rules.sure(s, ("same", K, ROWS_OF)),
    "texts have no order": lambda s: rules.apart(s, ("eq", K, G)),
    "a number and a time have no order": lambda s: rules.apart(s, ("eq", N, ("time", ACT))),
    "null left has no order": lambda s: rules.apart(s, ("eq", ("get", ACT, "y"), N)),
    "null right has no order": lambda s: rules.apart(s, ("eq", N, ("get", ACT, "y"))),
    "a comparison has two operands": lambda s: rules.domain(s, ("eq", ANSWER, ONE), 2),
    "a constant has no domain": lambda s: rules.domain(s, ("eq", ONE, ANSWER), 0),
    "a comparison says nothing of null": lambda s: rules.absent(s, ("eq", K, ONE)),
    "the time has no declaration": lambda s: rules.absent(s, ("null", ("time", ACT))),
    "an answer may be unknown": lambda s: rules.absent(s, ("null", ANSWER)),
    "rows may be unsure": lambda s: rules.absent(s, ("null", ROWS_OF)),
    "there is one count": lambda s: rules.count(s, ("le", ("count", LOOKS, False), ONE), 1),
    "a comparison has no source": lambda s: rules.counts(s, ("latest", LOOKS, False, LOOK)),
    "rows are no calls": lambda s: rules.counts(s, ("some", ROWS, False)),
    "calls of one tool are not distinct": lambda s: rules.distinct(s, 1, s.enter("look", 0)),
    "one source is under no": lambda s: rules.include(
        s, ("some", LOOKS, False), ("some", LOOKS, True)
    ),
    "the other source is smaller": lambda s: rules.include(
        s, ("some", LOOKS, False), ("some", NAMED, False)
    ),
    "no bound": lambda s: fact_at_most(("high", ("count", LOOKS, False)), None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_rule_does_not_apply(name: str) -> None:
    scene = scene_of()
    with pytest.raises(Wrong):
        REFUSED[name](scene)


def test_an_obligation_is_settled_at_the_end_of_the_session() -> None:
    scene = scene_of("after act owe over", None)
    call = scene.enter("act", 0)
    assert rules.settled(scene, 0, call) is not True
    for statement, of in ((-1, call), (99, call), (1, call), (0, 0)):
        with pytest.raises(Wrong):
            rules.settled(scene, statement, of)
    with pytest.raises(Wrong):
        rules.first(scene, 0)
    scene = scene_of()
    with pytest.raises(Wrong):
        rules.settled(scene, 0, scene.enter("act", 0))


def test_the_first_operand_has_a_domain() -> None:
    scene = scene_of()
    assert rules.domain(scene, ("eq", ANSWER, ONE), 0) is not True
    assert rules.count(scene, ("le", ("count", LOOKS, False), ONE), 0) is not True
    assert rules.use(scene, 0, 0) is True


# Steps of an argument, each refused with its code and place.


def refused_at(scene: Scene, *steps: Any) -> tuple[Code, str]:
    """Where an argument is refused that begins with a formula that closes every branch."""
    with pytest.raises(Rejected) as refused:
        Argument(scene, [False], "argument").run(list(steps))
    return refused.value.code, refused.value.path


def number_of(scene: Scene, *literal: Any) -> int:
    formula = scene.lit(*literal)
    assert isinstance(formula, tuple)
    return int(formula[1])


def step(at: int) -> tuple[Code, str]:
    return Code.PROOF_STEP, f"argument.steps[{at}]"


def test_nothing_follows_the_end_of_an_argument() -> None:
    assert refused_at(scene_of(), ["formula", 0], ["formula", 0]) == step(1)
    assert refused_at(scene_of()) == (Code.PROOF_STEP, "argument.steps")


@pytest.mark.parametrize("wrong", ["x", 5, {}, [], [["formula"], 0], ["other", 0], ["formula", 1]])
def test_a_step_has_a_form(wrong: Any) -> None:
    assert refused_at(scene_of(), wrong) == step(0)


def test_the_steps_are_a_list() -> None:
    with pytest.raises(Rejected) as refused:
        Argument(scene_of(), [], "argument").run({})
    assert (refused.value.code, refused.value.path) == (Code.PROOF_SCHEMA, "argument.steps")


def test_a_step_names_numbers_from_0() -> None:
    scene = scene_of()
    some = number_of(scene, "some", LOOKS, False)
    for wrong in (-1, False, "0"):
        assert refused_at(scene, ["formula", wrong]) == step(0)
        assert refused_at(scene, ["at", some, wrong]) == step(0)


def test_first_calls_and_lemmas_are_followed_by_other_steps() -> None:
    scene = scene_of()
    some = number_of(scene, "some", LOOKS, False)
    steps = [["first", 1], ["leads", 2, 1], ["counts", some], ["formula", 0]]
    assert Argument(scene, [False], "argument").run(steps) == len(steps)


def test_a_literal_is_split_once() -> None:
    scene = scene_of()
    one = number_of(scene, "some", LOOKS, False)
    assert refused_at(scene, ["split", one], ["split", one]) == step(1)


@pytest.mark.parametrize(
    "given",
    [["use", 2, 0], ["first", 2], ["leads", 2, 0], ["distinct", 2, 1], ["ordered", 1, 2, 0]],
)
def test_an_element_of_a_list_is_no_call(given: Any) -> None:
    scene = scene_of()
    assert scene.enter_element(ITEMS) == 2
    assert refused_at(scene, given) == step(0)


def test_only_a_condition_about_members_says_something_of_an_element() -> None:
    scene = scene_of()
    element = scene.enter_element(ITEMS)
    some = "some", source(ITEMS, IS_A), False
    assert rules.at(scene, some, element) is not True
    with pytest.raises(Wrong):
        rules.at(scene, ("latest", LOOKS, False, LOOK), element)
    assert rules.cases(scene, some, True)
    with pytest.raises(Wrong):
        rules.cases(scene, some, False)


def test_every_literal_about_calls_says_something_of_a_call() -> None:
    scene = scene_of()
    later = scene.enter("look", 0)
    assert rules.at(scene, ("latest", LOOKS, False, LOOK), later) is not True


def test_a_call_that_may_be_in_a_source_is_the_witness_that_it_is_not_empty() -> None:
    scene = scene_of()
    none = "none", LOOKS, False
    expected = scene.member(LOOKS, 1, False, False, False)
    assert rules.witness(scene, none, Case("look", 0), 1) == expected


@pytest.mark.parametrize("base", [("items", MISSING, None), ("items", ("last", LOOKS), None)])
def test_a_list_that_may_be_missing_has_no_count(base: Any) -> None:
    with pytest.raises(Wrong):
        rules.counts(scene_of(), ("some", source(base), False))


def test_a_call_of_a_closed_branch_is_gone() -> None:
    scene = scene_of()
    some, done = number_of(scene, "some", LOOKS, False), number_of(scene, "done", ("call", 2))
    begin = ["split", some], ["witness", some]
    assert refused_at(scene, *begin, ["split", done], ["formula", 9]) == step(3)
    scene = scene_of()
    assert number_of(scene, "some", LOOKS, False) == some
    assert number_of(scene, "done", ("call", 2)) == done
    assert refused_at(scene, *begin, ["formula", 0], ["split", done]) == step(3)


def test_a_branch_has_a_number_of_calls() -> None:
    assert refused_at(scene_of(), *[["first", 1]] * 2000) == step(MAX_ACTORS - 2)
    # A closed branch gives its calls back.
    scene = scene_of()
    some = number_of(scene, "some", LOOKS, False)
    entered = [["first", 1]] * (MAX_ACTORS - 2)
    assert refused_at(scene, ["split", some], *entered, ["formula", 0], *entered, ["x"]) == step(
        2 * MAX_ACTORS - 2
    )


EQ, NE = ("eq", K, G), ("ne", K, G)
ONE_IS_TWO, ONE_IS_NOT_TWO = ("eq", ONE, constant(("n", 2))), ("ne", ONE, constant(("n", 2)))
K_IS, G_IS = ("eq", K, constant(("s", "a"))), ("eq", G, constant(("s", "a")))
G_IS_B = ("eq", G, constant(("s", "b")))


@pytest.mark.parametrize(
    ("name", "literals", "equalities", "holds"),
    [
        ("both", {EQ: True, NE: True}, None, True),
        ("both", {EQ: False, NE: True}, None, False),
        ("both", {EQ: True, NE: False}, None, False),
        ("both", {EQ: True, K_IS: True}, None, False),
        ("equal", {}, {ONE_IS_TWO: True}, True),
        ("equal", {}, {ONE_IS_TWO: False}, False),
        ("equal", {}, {ONE_IS_NOT_TWO: True}, False),
        ("equal", {ONE_IS_TWO: True}, {}, True),
        ("equal", {ONE_IS_TWO: False}, {}, False),
        ("equal", {EQ: True}, {}, False),
        ("equal", {K_IS: True, G_IS: False}, {EQ: True}, True),
        ("equal", {K_IS: True, G_IS: True}, {EQ: True}, False),
        ("equal", {K_IS: True, G_IS: False}, {}, False),
        ("equal", {K_IS: True, G_IS_B: False}, {EQ: True}, False),
    ],
)
def test_a_reason_closes_a_branch(name: str, literals: Any, equalities: Any, holds: bool) -> None:
    scene = scene_of()
    argument = Argument(scene, [], "argument")
    given: list[Any] = []
    if equalities is not None:
        given.append([number_of(scene, *one) for one in equalities])
    given += [number_of(scene, *one) for one in literals]
    for literal, truth in {**literals, **(equalities or {})}.items():
        argument.truths[number_of(scene, *literal)] = truth
    if holds:
        assert argument.follow([name, *given])
    else:
        with pytest.raises(Wrong):
            argument.follow([name, *given])


@pytest.mark.parametrize("outcome", ["failed", "answered"])
def test_a_call_that_may_have_had_no_effect_is_on_no_path(outcome: str) -> None:
    scene = scene_of()
    argument = Argument(scene, [], "argument", Plans(plan))
    for one in ("failed", "answered"):
        argument.truths[number_of(scene, one, LOOK)] = False
    tested = number_of(scene, "some", of_test(), False)
    argument.truths[tested] = False
    assert argument.follow(["plan", [1, 0], [tested]])
    del argument.truths[number_of(scene, outcome, LOOK)]
    with pytest.raises(Wrong):
        argument.follow(["plan", [1, 0], [tested]])


# Walks.


def walk(*named: Any, chain: Any = (0,)) -> plans.Walk:
    return walk_of(plan(), scene_of(), chain, named)


def of_test(*conditions: Any, **others: Any) -> tuple[Any, ...]:
    return source(("calls", ("test",)), *conditions, **others)


YES = ("compare", "=", ("get", ELEMENT, "v"), (constant(("s", "yes")),))
MARKED = of_test(marks=(LOOKS,))
UNUSED: dict[str, Any] = {
    "no call": ((), []),
    "the last call is another": ((1,), []),
    "two fields": ((0,), [(("eq", ANSWER, ("get", LOOK, "m")), True)]),
    "no field": ((0,), [(("eq", G, ONE), True)]),
    "an unknown field": ((0,), [(("eq", ("get", LOOK, "zz"), ONE), True)]),
    "an open field": ((0,), [(("eq", K, ONE), True)]),
    "no empty source": ((0,), [(("some", of_test(), False), True)]),
    "no full source": ((0,), [(("none", of_test(), False), False)]),
    "a later call": ((1, 0), [(("latest", of_test(), False, LOOK), False)]),
    "a later mark": ((1, 0), [(("clear", of_test(), LOOK, False, True), False)]),
    "a payment": ((0,), [(("paid", 0, ACT, ACT), True)]),
    "rows": ((0,), [(("none", ROWS, False), True)]),
    "a window": ((0,), [(("none", of_test(within=5), False), True)]),
    "two marks": ((0,), [(("none", of_test(marks=(LOOKS, NAMED)), False), True)]),
    "a mark of rows": ((0,), [(("none", of_test(marks=(ROWS,)), False), True)]),
    "a mark with a mark": ((0,), [(("none", of_test(marks=(MARKED,)), False), True)]),
    "two answered sources": (
        (0,),
        [(("some", of_test(YES), False), False), (("some", NAMED, False), False)],
    ),
    "two sources with marks": (
        (0,),
        [(("none", MARKED, False), True), (("none", of_test(YES, marks=(LOOKS,)), False), True)],
    ),
}


@pytest.mark.parametrize("name", UNUSED)
def test_a_literal_that_a_walk_cannot_use(name: str) -> None:
    chain, named = UNUSED[name]
    with pytest.raises(Wrong):
        walk(*named, chain=chain)


def test_a_walk_has_one_answered_source_and_one_with_a_mark() -> None:
    assert walk((("some", of_test(YES), False), False)).avoided[0].is_answered
    assert walk((("none", MARKED, False), True)).avoided[0].marks


def test_a_source_before_another_call_is_in_no_walk() -> None:
    earlier = "source", LOOK, ("calls", ("test",)), (), None, ()
    with pytest.raises((Wrong, ValueError)):
        walk((("none", earlier, False), True))


# The automaton, and its limits.


def document(asked: Question, arguments: Any = ()) -> dict[str, Any]:
    """A proof as JSON."""
    return {"schema": SCHEMA, "core": core_digest(artifact().core),
            "question": question_json(asked), "arguments": list(arguments)}  # fmt: skip


def document_code(proof: dict[str, Any], make: Any = None) -> Code | None:
    """The code with which the kernel refuses a proof; None: it accepts it."""
    try:
        check_proof(encode(proof), artifact().core, make)
    except Rejected as refused:
        return refused.code
    return None


def proof_code(asked: Question, make: Any, arguments: Any = ()) -> Code | None:
    return document_code(document(asked, arguments), make)


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("schema", "tcc.proof/1", Code.UNKNOWN_VERSION),
        ("core", "00" * 32, Code.PROOF_CORE),
        ("arguments", {}, Code.PROOF_SCHEMA),
    ],
)
def test_a_proof_is_about_its_core(member: str, value: Any, code: Code) -> None:
    proof = document(question("limit depth <= 40"))
    assert document_code(proof) is None
    assert document_code({**proof, member: value}) is code


def test_a_proof_has_so_many_bytes_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = document(question("limit depth <= 40"))
    size = len(encode(proof))
    for most, code in ((size, None), (size - 1, Code.LIMIT)):
        monkeypatch.setattr(check, "MAX_BYTES", most)
        assert document_code(proof) is code


@pytest.mark.parametrize(
    ("text", "make", "code"),
    [
        ("limit depth <= 40", None, None),
        ("limit depth <= 39", None, Code.PROOF_QUESTION),
        ("limit depth <= 5", plan, None),
        ("limit depth <= 4", plan, Code.PROOF_QUESTION),
    ],
)
def test_a_total_is_one_of_the_policy_or_of_the_plans(text: str, make: Any, code: Any) -> None:
    assert proof_code(question(text), make) is code


def fresh_plan() -> Plan:
    return Plan(plan().core, plan().automaton, plan().core_calls)


def test_lemmas_look_at_so_many_edges_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = fresh_plan()
    assert plans.is_total_of_plans(fresh, "depth", "5")
    looked_at = plans.MAX_EDGES - fresh.edges_left
    for most, code in ((looked_at, None), (looked_at - 1, Code.LIMIT)):
        monkeypatch.setattr(plans, "MAX_EDGES", most)
        assert proof_code(question("limit depth <= 5"), fresh_plan) is code


def test_an_automaton_has_so_many_bits_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = len(plan().core_calls) * len(plan().automaton.edge_call)
    for most, code in ((bits, None), (bits - 1, Code.LIMIT)):
        monkeypatch.setattr(plans, "MAX_BITS", most)
        assert proof_code(question("limit depth <= 5"), fresh_plan) is code


def test_a_proof_without_an_automaton_has_no_plans() -> None:
    with pytest.raises(Wrong):
        Plans(None).get()


def test_a_reachable_question_is_about_calls() -> None:
    asked = question("before act require over", "reachable")
    assert proof_code(asked, None) is Code.PROOF_SCHEMA
    none = Question(kind="statement", statements=())
    assert proof_code(none, None) is Code.PROOF_SCHEMA


def test_the_lets_of_a_question_are_checked() -> None:
    circle = Definition(name="c", body=Word(name="c"))
    asked = question("limit depth <= 40")
    assert proof_code(replace(asked, lets=()), None) is None
    assert proof_code(replace(asked, lets=(circle,)), None) is Code.PROOF_QUESTION


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("tool", "over", Code.PROOF_ARGUMENT),
        ("statements", [], Code.PROOF_ARGUMENT),
        ("steps", [], Code.PROOF_STEP),
        ("steps", {}, Code.PROOF_SCHEMA),
    ],
)
def test_an_argument_is_about_its_tool(member: str, value: Any, code: Code) -> None:
    asked = question("before act require look")
    steps = [["split", 0], ["formula", 0], ["use", 0, 1], ["formula", 1]]
    true = {"tool": "act", "statements": [1], "steps": steps}
    assert proof_code(asked, None, [true]) is None
    assert proof_code(asked, None, [{**true, member: value}]) is code
    assert proof_code(asked, None, []) is Code.PROOF_ARGUMENT
    assert proof_code(asked, None, [true, true]) is Code.PROOF_ARGUMENT


def test_sessions_that_cannot_be_finished_are_no_proof() -> None:
    asked = Question(kind="finishable", statements=())
    assert proof_code(asked, None) is Code.PROOF_STEP
