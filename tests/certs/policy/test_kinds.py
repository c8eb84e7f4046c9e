"""What words mean and what fits where: mistakes have a code, and right forms are accepted."""

from __future__ import annotations

import pytest

from tcc_certs.policy import plans as model
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_certs.policy.nodes import (
    AnyTool,
    Apply,
    Arm,
    Between,
    Compare,
    Definition,
    Else,
    Every,
    Forbid,
    Get,
    It,
    Limit,
    Match,
    No,
    Null,
    Number,
    Or,
    Require,
    Same,
    Since,
    Text,
    This,
    Times,
    Union,
    Unused,
    Where,
    Within,
    Word,
    text_of,
)  # fmt: skip
from tcc_certs.values.declared import FlagType, NumberType, TextType
from tcc_certs.values.fields import DateType, Field, ListType, RecordType

PRICE = Field(name="price", steps=("price",), type=NumberType(whole=False))
ITEMS = ListType(of=RecordType(fields=(PRICE,)))
AMOUNT = NumberType(whole=False, low="0", high="9")


def field(name: str, kind: object = None, values: tuple[str, ...] = ()) -> Field:
    return Field(name=name, steps=(name,), type=kind, values=values)  # type: ignore[arg-type]


TOOLS = (
    Tool(
        name="find",
        arguments=(field("k", TextType()),),
        answers=(field("ok", FlagType()), field("items", ITEMS), field("day", DateType())),
    ),
    Tool(
        name="book",
        arguments=(
            field("k", TextType()), field("nights", values=("1", "2", "5")),
            field("amount", AMOUNT), field("to", ListType(of=TextType())),
        ),
    ),
)  # fmt: skip


def rule(then: object, *lets: Definition, on: str = "book") -> object:
    statement = Require(on=Word(on), then=then)  # type: ignore[arg-type]
    core = Core(
        name="g", version="1", tools=TOOLS, rules={}, plan=model.Empty(), lets=lets,
        statements=(statement,),
    )  # fmt: skip
    kinds = Kinds(core)
    kinds.check_lets()
    return kinds.rule(statement)


FIND = Where(Word("find"), (Same(("k",)),))
LAST = Apply("last", (FIND,))


def code(then: object, *lets: Definition) -> str:
    with pytest.raises(Fault) as fault:
        rule(then, *lets)
    return fault.value.code


def test_a_parameter_may_be_the_element_or_the_call() -> None:
    holds = Definition(
        name="holds", parameters=("c",),
        body=Every(Where(Get(This(), "to"), (Compare("=", Get(Word("c"), "k"), It()),))),
    )  # fmt: skip
    assert rule(Where(Word("find"), (Where(Word("holds"), (It(),)),)), holds)
    key = Definition(
        name="key", parameters=("c",), body=Compare("=", Get(Word("c"), "k"), Text("x"))
    )
    assert rule(Where(Word("key"), (This(),)), key)


def test_elements_of_a_list_have_no_calls_that_modifiers_speak_of() -> None:
    prices = Get(Get(LAST, "items"), "price")
    assert code(Compare(">", Apply("sum", (Within(prices, "1", "d"),)), Number("1"))) == "TCC225"
    assert code(Compare(">", Apply("sum", (Since(prices, Word("find")),)), Number("1"))) == "TCC225"
    rows = Get(Get(Word("find"), "items"), "price")
    assert rule(Compare(">", Apply("sum", (Within(rows, "1", "d"),)), Number("1")))


def test_a_filter_whose_fields_no_tool_has_together_leaves_no_set() -> None:
    either = Or((Compare("=", Word("amount"), Number("1")), Word("ok")))
    assert code(No(Where(AnyTool(), (either,)))) == "TCC225"
    assert rule(No(Where(AnyTool(), (Word("ok"),))))
    forbid = Forbid(on=AnyTool(), where=(either,))
    core = Core(
        name="g", version="1", tools=TOOLS, rules={}, plan=model.Empty(), statements=(forbid,)
    )  # fmt: skip
    with pytest.raises(Fault) as fault:
        Kinds(core).rule(forbid)
    assert fault.value.code == "TCC225"


def test_the_last_flag_is_compared_and_is_no_condition() -> None:
    assert code(Apply("last", (Get(Word("find"), "ok"),))) == "TCC236"
    assert code(LAST) == "TCC236"
    assert rule(Get(LAST, "ok"))


def test_an_order_of_a_listed_number_takes_any_constant() -> None:
    assert rule(Compare("<", Word("nights"), Number("3")))
    assert code(Compare("=", Word("nights"), Number("3"))) == "TCC205"


def test_a_date_is_compared_with_the_text_of_a_date_or_a_time() -> None:
    day = Get(LAST, "day")
    assert rule(Compare("<", day, Text("2026-01-31")))
    assert rule(Compare("<", day, Text("2026-01-31T10:00:00Z")))
    assert code(Compare("<", day, Text("soon"))) == "TCC205"
    assert rule(Compare("!=", day, Null()))


def test_unused_belongs_in_a_clause_of_before() -> None:
    assert rule(Unused(FIND))
    core = Core(name="g", version="1", tools=TOOLS, rules={}, plan=model.Empty())
    limit = Limit(of=Word("book"), most=Apply("count", (Where(Unused(FIND), ()),)))  # type: ignore[arg-type]
    with pytest.raises(Fault) as fault:
        Kinds(core).rule(limit)
    assert fault.value.code == "TCC225"


def fault(then: object, *lets: Definition) -> tuple[str, str]:
    with pytest.raises(Fault) as found:
        rule(then, *lets)
    return found.value.code, found.value.instead


def test_a_let_with_parameters_fits_only_before_its_arguments() -> None:
    paid = Definition(name="paid", parameters=("n",), body=Compare("<", Word("n"), Number("5")))
    assert fault(Word("paid"), paid) == ("TCC202", "paid(n)")


def test_listed_values_after_in_are_written_with_an_equals_sign() -> None:
    values = Union((Number("1"), Number("2")))
    found = fault(Compare("in", Word("nights"), values))
    assert found == ("TCC225", "nights = 1 | 2")


def test_a_text_on_the_left_is_read_as_a_time() -> None:
    assert rule(Compare("<", Text("2026-01-31"), Get(LAST, "day")))


def test_a_let_of_a_block_is_checked_although_no_clause_uses_it() -> None:
    statement = Require(
        on=Word("book"), lets=(Definition(name="x", body=Word("nothing")),), then=FIND
    )
    core = Core(name="g", version="1", tools=TOOLS, rules={}, plan=model.Empty())
    with pytest.raises(Fault) as found:
        Kinds(core).rule(statement)
    assert found.value.code == "TCC202"


def test_a_comparison_of_a_field_with_itself_shows_the_other_call() -> None:
    equal = Where(Word("find"), (Compare("=", Word("k"), Word("k")),))
    unequal = Where(Word("find"), (Compare("!=", Word("k"), Word("k")),))
    assert fault(equal) == ("TCC231", "same k")
    assert fault(unequal) == ("TCC231", "k != this.k")


def test_a_let_may_be_applied_inside_its_own_argument() -> None:
    double = Definition(name="e", parameters=("p",), body=Times(Word("p"), Number("2")))
    twice = Where(Word("e"), (Where(Word("e"), (Word("amount"),)),))
    assert rule(Compare("=", twice, Number("4")), double)
    circle = Definition(name="e", parameters=("p",), body=Where(Word("e"), (Word("p"),)))
    assert code(Compare("=", twice, Number("4")), circle) == "TCC225"


def test_the_terms_of_a_match_beside_a_listed_field_are_its_values() -> None:
    arms = (Arm(Number("2"), (Number("1"),)), Else(Number("5")))
    assert rule(Compare("=", Word("nights"), Match(Word("amount"), arms)))
    wrong = (Arm(Number("3"), (Number("1"),)), Else(Number("5")))
    assert code(Compare("=", Word("nights"), Match(Word("amount"), wrong))) == "TCC205"


def test_a_parameter_may_have_the_name_of_its_let_where_it_is_a_field() -> None:
    found = Where(Word("find"), (Compare("=", Word("k"), Word("v")),))
    named = Definition(name="k", parameters=("v",), body=Apply("last", (found,)))
    assert rule(Get(Where(Word("k"), (Text("x"),)), "ok"), named)


def test_hidden_characters_of_a_constant_are_escaped_in_its_text() -> None:
    assert text_of(Text("a\u202eb\n")) == '"a\\u202eb\\n"'


def test_texts_have_no_order_and_arms_have_the_kind_of_the_term() -> None:
    assert code(Compare("<", Text("a"), Text("b"))) == "TCC225"
    assert code(Between("in", Text("a"), Text("b"), Text("c"))) == "TCC225"
    arms = (Arm(Number("2"), (Text("1"),)), Else(Number("5")))
    assert code(Compare("=", Number("2"), Match(Word("amount"), arms))) == "TCC225"
