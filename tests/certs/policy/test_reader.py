"""The reader of cores: round trips, one red case for each rule, and hostile bytes."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.reader import core_json, read_core, read_policy
from tests.certs.policy.drawn import cores, mutated
from tests.certs.policy.examples import desk, everything
from tests.doubling import processor_time

GONE = object()


def plain(core: Core) -> Any:
    """The JSON of a core as lists and dicts that can be changed."""
    return json.loads(encode(core_json(core)))


def changed(document: Any, pointer: str, value: object) -> Any:
    """A document with another value at a pointer; `GONE` takes it away, ``-`` appends."""
    document = copy.deepcopy(document)
    steps = pointer.split("/")[1:]
    at = document
    for step in steps[:-1]:
        at = at[int(step)] if isinstance(at, list) else at[step]
    last = steps[-1]
    if last == "-":
        at.append(value)
    elif value is GONE:
        del at[int(last) if isinstance(at, list) else last]
    else:
        at[int(last) if isinstance(at, list) else last] = value
    return document


def refusal(data: bytes) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read_core(data)
    return caught.value


def place_of(document: Any) -> tuple[str, str]:
    """The code and the pointer with which a document is refused."""
    found = refusal(encode(document))
    return found.code.value, found.path


def with_statements(*statements: n.Statement, **members: Any) -> Any:
    return plain(replace(desk(), statements=statements, **members))


def requiring(then: n.Node, **members: Any) -> Any:
    return with_statements(n.Require(on=n.Word("refund"), then=then, **members))


# Round trips.


@pytest.mark.parametrize("core", [desk(), everything()], ids=["desk", "everything"])
def test_a_core_is_read_as_it_was_written(core: Core) -> None:
    data = encode(core_json(core))
    found = read_core(data)
    assert found == core
    assert encode(core_json(found)) == data


@settings(max_examples=20)
@given(cores())
def test_drawn_cores_are_read_as_they_were_written(core: Core) -> None:
    data = encode(core_json(core))
    found = read_core(data)
    assert found == core
    assert encode(core_json(found)) == data


def test_the_example_keeps_its_text() -> None:
    found = read_core(encode(core_json(desk())))
    texts = [n.statement_text(statement) for statement in found.statements]
    assert texts[1] == (
        "before refund require amount <= 100 or unused approve(same (order, amount), answer = yes)"
    )
    assert texts[2] == (
        "limit sum(refund.amount) per order <= last(find_order(same order)).total across sessions"
    )


def test_an_answer_that_may_be_left_out_may_be_null() -> None:
    owner = {"name": "owner", "optional": True}
    text: dict[str, Any] = {"kind": "text", "min": 0, "max": 9}
    found = {}
    for name, declared in {
        "text": {"type": text},
        "null": {"type": {"kind": "or null", "of": text}},
        "listed": {"values": ["a", "b"]},
        "listed null": {"values": ["a", "null"]},
    }.items():
        document = changed(plain(desk()), "/tools/0/gives/0", {**owner, **declared})
        document["statements"] = []
        document["calls"] = []
        document["patterns"] = [[]]
        core = read_core(encode(document))
        found[name] = core.tools[0].answers[0].null
    assert found == {"text": True, "null": False, "listed": True, "listed null": False}
    document = changed(plain(desk()), "/tools/3/fields/0/optional", True)
    assert not read_core(encode(document)).tools[3].arguments[0].null


# One red case for each rule.  Of each: what is changed, to what, the code, and the pointer.

NAME = "n" * 129
AT = "/statements/1/then"  # amount <= 100 or unused approve(..)
TEXT = "/tools/1/fields/0/type"  # order: text
TYPE = "/tools/1/fields/1/type"  # amount: number 0 .. 10000
RULES: dict[str, tuple[str, object, str, str]] = {
    # The document.
    "another schema": ("/schema", "tcc.core/3", "D102", "/schema"),
    "no schema": ("/schema", GONE, "D102", "/schema"),
    "a member that nobody knows": ("/more", 1, "C801", ""),
    "no tools": ("/tools", GONE, "C801", ""),
    "the grammar's name": ("/grammar/name", "a b", "C801", "/grammar/name"),
    "the grammar's version": ("/grammar/version", "\u202e", "C801", "/grammar/version"),
    # Tools and fields.
    "a tool twice": ("/tools/1/name", "find_order", "C801", "/tools/1/name"),
    "a name without characters": ("/tools/1/name", "", "C801", "/tools/1/name"),
    "a long name": ("/tools/4/name", NAME, "C801", "/tools/4/name"),
    "a hidden character": ("/tools/4/name", "a\u200bb", "C801", "/tools/4/name"),
    "a backtick": ("/tools/4/name", "a`b", "C801", "/tools/4/name"),
    "a field twice": ("/tools/0/gives/0/name", "order", "C801", "/tools/0/gives/0/name"),
    "no fields in a list": ("/tools/4/fields", [], "C801", "/tools/4/fields"),
    "type and values": ("/tools/1/fields/0/values", ["a"], "C801", "/tools/1/fields/0"),
    "neither": (TEXT, GONE, "C801", "/tools/1/fields/0"),
    "no value": ("/tools/0/gives/2/values", [], "C801", "/tools/0/gives/2/values"),
    "a value twice": ("/tools/0/gives/2/values/1", "open", "C801", "/tools/0/gives/2/values/1"),
    "a value in quotes": (
        "/tools/0/gives/2/values/1", '"open"', "C801", "/tools/0/gives/2/values/1",
    ),
    "an absent value": ("/tools/0/gives/2/values/0", "", "C801", "/tools/0/gives/2/values/0"),
    "another value first": ("/tools/0/gives/2/values/0", "*", "C801", "/tools/0/gives/2/values/0"),
    "another value of an argument": (
        "/tools/3/fields/-", {"name": "k", "values": ["a", "*"]}, "C801",
        "/tools/3/fields/1/values/1",
    ),
    "a number that no double is": (
        "/tools/0/gives/2/values/0", "0.12345678901234567891", "C801", "/tools/0/gives/2/values/0",
    ),
    "optional is true": ("/tools/3/fields/0/optional", False, "C801", "/tools/3/fields/0/optional"),
    "a place that is the member": ("/tools/3/fields/0/at", "/message", "C801",
                                   "/tools/3/fields/0/at"),
    "no pointer": ("/tools/3/fields/0/at", "a", "C801", "/tools/3/fields/0/at"),
    "a place in no argument": ("/tools/3/fields/0/at", "/a/b", "C801", "/tools/3/fields/0/at"),
    "many values": ("/tools/0/gives/0/at", "/a/*", "C801", "/tools/0/gives/0/at"),
    "bind": ("/tools/4/bind", {"kind": "http"}, "C801", "/tools/4/bind/kind"),
    "strict": ("/tools/4/strict", True, "C801", "/tools/4/strict"),
    "error_text": ("/tools/4/error_text", "a.*", "C801", "/tools/4/error_text"),
    "in without out": ("/tools/4/in", "a", "C801", "/tools/4/out"),
    # Types.
    "a kind of type": (f"{TEXT}/kind", "uri", "C801", f"{TEXT}/kind"),
    "a union of one type": (
        TEXT, {"kind": "or", "of": [{"kind": "flag"}]}, "C801", f"{TEXT}/of",
    ),
    "a union with json": (
        TEXT, {"kind": "or", "of": [{"kind": "flag"}, {"kind": "json", "max": 9}]}, "C801",
        f"{TEXT}/of",
    ),
    "a union inside a list whose strings are alike": (
        TEXT,
        {"kind": "list", "min": 0, "max": 9, "of":
         {"kind": "or", "of": [{"kind": "path"}, {"kind": "url"}]}},
        "C801", f"{TEXT}",
    ),
    "a relative directory": (
        TEXT, {"kind": "path", "under": "srv"}, "C801", f"{TEXT}/under",
    ),
    "a directory in another form": (
        TEXT, {"kind": "path", "under": "/srv/"}, "C801", f"{TEXT}/under",
    ),
    "a scope in another form": (
        TEXT, {"kind": "url", "under": "https://H/"}, "C801", f"{TEXT}/under",
    ),
    "a scope with a query": (
        TEXT, {"kind": "url", "under": "https://h/?q"}, "C801", f"{TEXT}/under",
    ),
    "sizes": (f"{TEXT}/min", 70000, "C801", f"{TEXT}/max"),
    "a pattern": (
        f"{TEXT}/pattern", "a(", "C801", f"{TEXT}/pattern",
    ),
    "one end of a range": (f"{TYPE}/low", GONE, "C801", f"{TYPE}/high"),
    "a range that falls": (f"{TYPE}/high", "-1", "C801", f"{TYPE}/high"),
    "a number with zeros": (f"{TYPE}/high", "1.0", "C801", f"{TYPE}/high"),
    "an integer of 65 bits": (
        TYPE,
        {"kind": "integer", "low": "0", "high": "18446744073709551616"}, "C801",
        f"{TYPE}/high",
    ),
    "utc in another way": (
        TYPE, {"kind": "time", "zone": "+00:00"}, "C801",
        f"{TYPE}/zone",
    ),
    "a date in utc": (
        TYPE, {"kind": "date", "zone": "utc"}, "C801",
        f"{TYPE}/zone",
    ),
    "a list of many": (
        TYPE,
        {"kind": "list", "min": 0, "max": 1001, "of": {"kind": "flag"}}, "C801",
        f"{TYPE}/max",
    ),
    "null of null": (
        TYPE,
        {"kind": "or null", "of": {"kind": "or null", "of": {"kind": "flag"}}}, "C801",
        f"{TYPE}/of",
    ),
    "a member twice": (
        TYPE,
        {"kind": "object", "fields": [{"name": "a", "values": ["x"]}] * 2}, "C801",
        f"{TYPE}/fields/1/name",
    ),
    "a text twice": (
        TYPE, {"kind": "text", "among": ["a", "a"]}, "C801",
        f"{TYPE}/among/1",
    ),
    # Plans.
    "a call of no tool": ("/calls/0/0", 5, "C801", "/calls/0/0"),
    "a call without values": ("/calls/0/1", [], "C801", "/calls/0/1"),
    "a value that the field lacks": ("/calls/0/1/0", 2, "C801", "/calls/0/1/0"),
    "calls in another order": ("/calls/0/1/0", 0, "C801", "/calls/1"),
    "costs that fall": ("/calls/0/2", 1, "C801", "/calls/0/3"),
    "a range of calls": ("/patterns/0/0", [0, 9], "C801", "/patterns/0/0"),
    "a pattern that no plan names": ("/patterns/-", [[1, 2]], "C801", "/patterns/1"),
    "a plan": ("/plan/0", "any", "C801", "/plan"),
    "a rule that no plan names": ("/rules/-", ["r", ["empty"]], "C801", "/rules"),
    "a rule's name": ("/rules/-", ["r r", ["empty"]], "C801", "/rules/0/0"),
    "a start without a goal": ("/start", "a", "C801", "/goals"),
    "pass": ("/pass", ["tools"], "C801", "/pass/0"),
    # Attributes and lets.
    "an attribute twice": ("/given/-", {"name": "customer", "values": ["a"]}, "C801",
                           "/given/1/name"),
    "another value of an attribute": ("/given/-", {"name": "k", "values": ["a", "*"]}, "C801",
                                      "/given/1/values/1"),
    "an attribute of no tool": ("/given/-", {"name": "o", "from": [["find", "owner"]]}, "C801",
                                "/given/1/from/0/0"),
    "an attribute of no field": ("/given/-", {"name": "o", "from": [["reply", "owner"]]}, "C801",
                                 "/given/1/from/0/1"),
    "an attribute of two types": (
        "/given/-", {"name": "o", "from": [["find_order", "owner"], ["find_order", "total"]]},
        "C801", "/given/1",
    ),
    "a let twice": ("/lets", [{"name": "a", "is": ["any"]}] * 2, "C801", "/lets/1/name"),
    "a parameter twice": (
        "/lets", [{"name": "a", "parameters": ["p", "p"], "is": ["any"]}], "C801",
        "/lets/0/parameters/1",
    ),
    "a let that means nothing": (
        "/lets", [{"name": "a", "is": ["name", "b"]}], "C801", "/lets/0/is",
    ),
    "a let of itself": (
        "/lets", [{"name": "a", "is": ["name", "b"]}, {"name": "b", "is": ["name", "a"]}], "C801",
        "/lets/0",
    ),
    # Statements.
    "a kind of statement": ("/statements/0/kind", "monitor", "C801", "/statements/0/kind"),
    "a filter in the set": (
        "/statements/5/on", ["where", ["name", "reply"], ["b", True]], "C801", "/statements/5/on",
    ),
    "an empty filter": ("/statements/5/if", [], "C801", "/statements/5/if"),
    "a filter of the end": (
        "/statements/0", {"kind": "require", "on": "end", "if": [["b", True]], "lets": [],
                          "then": ["b", True]}, "C801", "/statements/0/if",
    ),
    "no lets": ("/statements/0/lets", GONE, "C801", "/statements/0"),
    "a let that is not used": (
        "/statements/1/lets", [{"name": "o", "is": ["any"]}], "C801", "/statements/1/lets/0",
    ),
    "a hidden reason": ("/statements/0/because", "a\u2066", "C801", "/statements/0/because"),
    "a scope": ("/statements/2/scope", "day", "C801", "/statements/2/scope"),
    "no scope": ("/statements/3/scope", GONE, "C801", "/statements/3"),
    "a window": ("/statements/3/within", "30  d", "C801", "/statements/3/within"),
    "a window of a part": ("/statements/3/within", "0.0001 s", "C801", "/statements/3/within"),
    "a total of nothing": ("/statements/6/what", "uses", "C801", "/statements/6/what"),
    "a total as a text": ("/statements/6/most", "400", "C801", "/statements/6/most"),
    "a total below 0": ("/statements/6/most", -1, "C801", "/statements/6/most"),
    "a part of a call": ("/statements/6/most", "0.5", "C801", "/statements/6/most"),
    "true as a total": ("/statements/6/most", True, "C801", "/statements/6/most"),
    # Nodes.
    "no node": (AT, {"and": []}, "C801", AT),
    "a node without a tag": (AT, [], "C801", AT),
    "a tag that is a number": (AT, [1], "C801", AT),
    "an unknown tag": (f"{AT}/2/1", ["xor", ["b", True]], "C801", f"{AT}/2/1/0"),
    "a member too many": (f"{AT}/1/2", ["name", "amount", "b"], "C801", f"{AT}/1/2"),
    "a member too few": (f"{AT}/1/2", ["name"], "C801", f"{AT}/1/2"),
    "no conditions": (f"{AT}/2/1", ["where", ["name", "approve"]], "C801", f"{AT}/2/1"),
    "an `or` of one": (AT, ["or", ["b", True]], "C801", AT),
    "an `and` of one": (AT, ["and", ["b", True]], "C801", AT),
    "a union of one": (AT, ["no", ["|", ["name", "reply"]]], "C801", f"{AT}/1"),
    "an operator": (f"{AT}/1/1", "==", "C801", f"{AT}/1/1"),
    "an operator of a range": (
        AT, ["between", "<", ["name", "amount"], ["n", "1"], ["n", "2"]], "C801", f"{AT}/1",
    ),
    "a function": (AT, ["call", "avg", ["name", "reply"]], "C801", f"{AT}/1"),
    "arguments of a function": (
        AT, ["compare", "<", ["call", "pairs", ["name", "a"]], ["n", "1"]], "C801", f"{AT}/2",
    ),
    "a unit": (AT, ["no", ["within", ["name", "reply"], "1", "w"]], "C801", f"{AT}/1/3"),
    "a part of a millisecond": (
        AT, ["no", ["within", ["name", "reply"], "0.5", "ms"]], "C801", f"{AT}/1/2",
    ),
    "a duration below 0": (
        AT, ["no", ["within", ["name", "reply"], "-1", "s"]], "C801", f"{AT}/1/2",
    ),
    "a decimal with zeros": (f"{AT}/1/3/1", "1.50", "C801", f"{AT}/1/3/1"),
    "a zero below 0": (f"{AT}/1/3/1", "-0", "C801", f"{AT}/1/3/1"),
    "an exponent": (f"{AT}/1/3/1", "1e3", "C801", f"{AT}/1/3/1"),
    "digits of another script": (f"{AT}/1/3/1", "1\u0661", "C801", f"{AT}/1/3/1"),
    "4,001 digits": (f"{AT}/1/3/1", "1" * 4001, "C801", f"{AT}/1/3/1"),
    "a number as JSON": (f"{AT}/1/3/1", 100, "C801", f"{AT}/1/3/1"),
    "a flag as a text": (AT, ["b", "true"], "C801", f"{AT}/1"),
    "minus a number": (f"{AT}/1/3", ["neg", ["n", "5"]], "C801", f"{AT}/1/3/0"),
    "a long word": (f"{AT}/1/2/1", NAME, "C801", f"{AT}/1/2/1"),
    "a word with a backtick": (f"{AT}/1/2/1", "a`", "C801", f"{AT}/1/2/1"),
    "a hidden word": (f"{AT}/1/2/1", "a\n", "C801", f"{AT}/1/2/1"),
    "a long field": (AT, ["get", ["this"], NAME], "C801", f"{AT}/2"),
    "a long attribute": (AT, ["session", NAME], "C801", f"{AT}/1"),
    "same without names": (f"{AT}/2/1/2", ["same"], "C801", f"{AT}/2/1/2"),
    "same with a long name": (f"{AT}/2/1/2", ["same", "order", NAME], "C801", f"{AT}/2/1/2/2"),
    "same in a clause": (AT, ["same", "order"], "C801", AT),
    "same in an `and`": (
        f"{AT}/2/1/2", ["and", ["same", "order"], ["b", True]], "C801", f"{AT}/2/1/2/1/0",
    ),
    "an arm outside a match": (AT, ["else", ["b", True]], "C801", f"{AT}/0"),
    "an arm in an `or`": (f"{AT}/1", ["else", ["b", True]], "C801", f"{AT}/1/0"),
    "a match without arms": (AT, ["match", ["name", "amount"], ["b", True]], "C801", f"{AT}/2/0"),
    "a sum as the value of an arm": (
        AT, ["match", ["name", "amount"], ["arm", ["n", "1"], ["+", ["n", "1"], ["n", "2"]]]],
        "C801", f"{AT}/2/2/0",
    ),
    # Kinds.
    "a name of nothing": (f"{AT}/1/2/1", "amounts", "C801", f"{AT}/1/2"),
    "a field that a tool lacks": (f"{AT}/2/1/2", ["same", "message"], "C801", f"{AT}/2/1/2"),
    "a value that the field does not have": (f"{AT}/2/1/3/3", ["name", "maybe"], "C801",
                                             f"{AT}/2/1/3/3"),
    "a bare value in quotes": (f"{AT}/2/1/3/3", ["s", "yes"], "C801", f"{AT}/2/1/3/3"),
    "a bare value in quotes on the left": (
        f"{AT}/2/1/3", ["compare", "=", ["s", "yes"], ["name", "answer"]], "C801",
        f"{AT}/2/1/3/2",
    ),
    "a pattern that is none": ("/statements/5/if/0/3/1", "a{", "C801", "/statements/5/if/0/3"),
    "under beside a text": ("/statements/5/if/0/1", "under", "C801", "/statements/5/if/0/2"),
    "host of a text": (
        AT, ["compare", "=", ["call", "host", ["name", "order"]], ["s", "a"]], "C801",
        f"{AT}/2/2",
    ),
    "a mistake beside null": (AT, ["compare", "=", ["null"], ["name", "x"]], "C801", f"{AT}/3"),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_its_code_and_its_place(name: str) -> None:
    pointer, value, code, place = RULES[name]
    document = changed(plain(desk()), pointer, value)
    assert place_of(document) == (code, place)


def test_names_that_are_equal_in_normal_form_are_one_name() -> None:
    document = changed(plain(desk()), "/tools/3/name", "caf\u00e9")
    document["statements"] = []
    assert place_of(changed(document, "/tools/4/name", "cafe\u0301")) == ("C801", "/tools/4/name")


def test_null_that_a_let_is_called_is_two_things() -> None:
    document = requiring(n.Compare("=", n.Null(), n.Word("order")))
    document["lets"] = [{"name": "null", "is": ["n", "1"]}]
    assert place_of(document) == ("C801", "/statements/0/then/2")


def test_the_pattern_says_at_which_character_it_is_wrong() -> None:
    document = changed(plain(desk()), f"{TEXT}/pattern", "ab(")
    found = refusal(encode(document))
    assert found.path == f"{TEXT}/pattern"
    assert "character" in found.expected


# Texts and words beside listed fields.


def _answer(node: n.Node) -> n.Node:
    return n.Where(n.Word("approve"), (n.Compare("=", n.Word("answer"), node),))


def test_a_value_in_the_body_of_a_let_is_a_text() -> None:
    good = n.Definition(name="good", body=n.Text("yes"))
    both = n.Definition(name="both", body=n.Union((n.Text("yes"), n.Text("no"))))
    for let in (good, both):
        read_core(encode(requiring(_answer(n.Word(let.name)), lets=(let,))))
        document = requiring(_answer(n.Word(let.name)))
        document["lets"] = [n.definition_json(let)]
        read_core(encode(document))
    word = n.Definition(name="good", body=n.Word("yes"))
    place = "/statements/0/lets/0/is"
    assert place_of(requiring(_answer(n.Word("good")), lets=(word,))) == ("C801", place)


def test_a_text_that_is_no_value_at_another_use_stays_a_text() -> None:
    """A bare word would mean nothing beside the owner, which is any text."""
    let = n.Definition(
        name="is_yes", parameters=("x",), body=n.Compare("=", n.Word("x"), n.Text("yes"))
    )

    def use(of: n.Node) -> n.Node:
        return n.Where(n.Word("is_yes"), (of,))

    answer = n.Get(n.Apply("last", (n.Word("approve"),)), "answer")
    owner = n.Get(n.Apply("last", (n.Word("find_order"),)), "owner")
    read_core(encode(requiring(n.And((use(answer), use(owner))), lets=(let,))))
    place = "/statements/0/lets/0/is/3"
    assert place_of(requiring(use(answer), lets=(let,))) == ("C801", place)


def test_records_of_several_tools_have_the_members_that_all_have() -> None:
    text = {"kind": "text", "min": 0, "max": 9}
    number = {"kind": "number"}

    def gives(**members: Any) -> list[Any]:
        fields = [{"name": name, "type": kind} for name, kind in members.items()]
        return [{"name": "box", "type": {"kind": "object", "fields": fields}}]

    document = plain(desk())
    document["tools"] = [
        {"name": "a", "gives": gives(x=text, y=text)},
        {"name": "b", "gives": gives(x=text, z=number)},
    ]
    document |= {"calls": [], "patterns": [[]], "given": [{"name": "o", "from": [["a", "box"]]}]}
    both = ["|", ["name", "a"], ["name", "b"]]
    box = ["get", ["call", "last", both], "box"]

    def using(of: Any, name: str) -> Any:
        then = ["compare", "=", ["get", of, name], ["s", "u"]]
        statement = {"kind": "require", "on": ["name", "a"], "lets": [], "then": then}
        return {**document, "statements": [statement]}

    read_core(encode(using(box, "x")))
    rows = ["|", ["get", ["name", "a"], "box"], ["get", ["name", "b"], "box"]]
    read_core(encode(using(["call", "last", rows], "x")))
    read_core(encode(using(["session", "o"], "y")))
    document["given"][0]["from"].append(["b", "box"])
    read_core(encode(using(["session", "o"], "x")))
    for of in (box, ["call", "last", rows], ["session", "o"]):
        for name in ("y", "z"):
            assert place_of(using(of, name)) == ("C801", "/statements/0/then/2")
    document["tools"][1]["gives"] = gives(x=number)
    document["given"][0]["from"].pop()
    assert place_of(using(box, "x")) == ("C801", "/statements/0/then/2/1")


# Hostile bytes.


def quickly(data: bytes) -> tuple[str, str]:
    """The code and pointer of a refusal that takes less than a second."""
    found = refusal(data)
    assert processor_time(lambda: refusal(data), 1) < 1
    return found.code.value, found.path


def raw(pointer: str, text: str) -> bytes:
    """The example with other bytes at a pointer."""
    mark = "MARK"
    return encode(changed(plain(desk()), pointer, mark)).replace(b'"MARK"', text.encode())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "B101"),
        (b"\xff\xfe", "B101"),
        (encode(plain(desk())).replace(b"desk", b"d\xffk", 1), "B101"),
        (encode(plain(desk())) + b" ", "B102"),
        (encode(plain(desk())).replace(b'"plan":', b'"plan":1,"plan":', 1), "B102"),
        (encode(plain(desk())).replace(b"desk", b"d\\u0065sk", 1), "B102"),
        (raw("/statements/1/then/1/3/1", "1.5"), "B103"),
        (raw("/statements/1/then/1/3/1", "null"), "B103"),
        (raw("/statements/1/then/1/3/1", "9" * 10**6), "B103"),
        (raw("/statements/1/then", "[" * 10**5 + "]" * 10**5), "D201"),
        (raw("/statements/1/then", '["not",' * 10**5 + '["b",true]' + "]" * 10**5), "D201"),
        (raw("/statements/1/then", '{"a":' * 10**5 + "1" + "}" * 10**5), "D201"),
        (b"[" * 10**6, "D201"),
        (b"[]", "C801"),
        (b'"tcc.core/2"', "C801"),
        (b'{"schema":["tcc.core/2"]}', "D102"),
    ],
)
def test_wrong_bytes_are_refused_quickly(data: bytes, code: str) -> None:
    assert quickly(data)[0] == code


def test_an_error_of_the_bytes_has_the_pointer_of_the_document() -> None:
    found = refusal(encode(plain(desk())) + b" ")
    assert (found.path, str(found)[:5]) == ("", "B102:")
    assert "byte" in found.expected


def nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = ["not", inside]
    return inside


def test_nodes_nest_as_deeply_as_the_bound() -> None:
    then = ["compare", "=", ["name", "order"], ["s", "a"]]
    for depth, expected in ((78, ""), (79, "D201"), (90, "D201"), (800, "D201")):
        document = changed(plain(desk()), AT, nested(depth, then))
        if not expected:
            read_core(encode(document))
            continue
        code, place = quickly(encode(document))
        assert code == expected
        assert place in (AT + "/1" * 79 + "/2", AT + "/1" * 80)


@pytest.mark.parametrize("inside", [["x", "n"], ["not"], [], {}, 1])
def test_a_value_of_another_form_is_shown_however_deep(inside: Any) -> None:
    for _ in range(850):
        inside = [inside]
    for pointer in ("/statements/1/then", "/plan", "/rules", "/tools/0", "/grammar/name", "/calls"):
        document = changed(plain(desk()), pointer, inside)
        assert quickly(encode(document))[0] in ("C801", "D201")


def test_a_number_of_a_million_digits() -> None:
    for digits in ("9" * 10**6, "0." + "0" * 10**6 + "1", "-" * 10**6):
        assert quickly(raw("/statements/1/then/1/3/1", f'"{digits}"')) == ("C801", AT + "/1/3/1")
        within = ["no", ["within", ["name", "reply"], digits, "d"]]
        document = changed(plain(desk()), AT, within)
        assert quickly(encode(document)) == ("C801", AT + "/1/2")
        for total in ("depth", "cost"):
            document = changed(plain(desk()), "/statements/6/most", digits)
            document["statements"][6]["what"] = total
            assert quickly(encode(document)) == ("C801", "/statements/6/most")


def test_a_million_characters_in_a_name_and_in_a_pattern() -> None:
    long = "a" * 10**6
    assert quickly(raw(AT + "/1/2/1", f'"{long}"')) == ("C801", AT + "/1/2/1")
    found = quickly(raw("/statements/5/if/0/3/1", f'"{long}"'))
    assert found == ("C801", "/statements/5/if/0/3")


def test_lets_that_double_are_declined() -> None:
    lets: list[Any] = [{"name": "a0", "is": ["+", ["n", "1"], ["n", "1"]]}]
    for at in range(1, 60):
        inner = ["name", f"a{at - 1}"]
        lets.append({"name": f"a{at}", "is": ["+", inner, inner]})
    found = quickly(encode(changed(plain(desk()), "/lets", lets)))
    assert found[0] == "D201"
    assert found[1].startswith("/lets/0/is")


def test_lets_in_a_long_chain_are_declined() -> None:
    lets: list[Any] = [{"name": "a0", "is": ["n", "1"]}]
    lets += [{"name": f"a{at}", "is": ["name", f"a{at - 1}"]} for at in range(1, 3000)]
    for declared in (lets, lets[::-1]):
        assert quickly(encode(changed(plain(desk()), "/lets", declared)))[0] == "D201"
    circle = [*lets, {"name": "b", "is": ["name", "b"]}]
    assert quickly(encode(changed(plain(desk()), "/lets", circle))) == ("C801", "/lets/3000")


def test_many_lets_of_a_block_and_parameters_are_declined() -> None:
    lets = tuple([n.Definition(name=f"a{at}", body=n.Number("1")) for at in range(1000)])
    used = [n.Compare("=", n.Word(let.name), n.Number("1")) for let in lets]
    document = requiring(n.And(tuple(used)), lets=lets)
    assert quickly(encode(document)) == ("D201", "/statements/0")
    names = tuple([f"p{at}" for at in range(1000)])
    let = n.Definition(name="f", parameters=names, body=n.Flag(True))
    then = n.Where(n.Word("f"), tuple([n.Number("1")] * 1000))
    assert quickly(encode(requiring(then, lets=(let,)))) == ("D201", "/statements/0/then/1")


def test_statements_that_expand_one_let_again_and_again_are_declined() -> None:
    body = n.Or(tuple([n.Compare("=", n.Number("1"), n.Number("2"))] * 4000))
    statement = n.Require(on=n.Word("refund"), then=n.Word("big"))
    core = replace(
        desk(), lets=(n.Definition(name="big", body=body),), statements=(statement,) * 3000
    )
    found = refusal(encode(core_json(core)))
    assert found.code.value == "D201"
    assert found.path.startswith("/statements/")


def test_a_comparison_of_many_values_is_declined() -> None:
    values = n.Union(tuple([n.Text(f"a{at}") for at in range(5000)]))
    document = requiring(n.Compare("=", n.Word("order"), values))
    assert quickly(encode(document)) == ("D201", "/statements/0/then/3/4096")


def test_many_tools_are_declined() -> None:
    document = plain(desk())
    document["tools"] += [{"name": f"t{at}"} for at in range(1 << 14)]
    assert quickly(encode(document)) == ("D201", "/tools")


def test_types_nest_as_deeply_as_the_bound() -> None:
    kind: dict[str, Any] = {"kind": "flag"}
    for _ in range(15):
        kind = {"kind": "list", "min": 0, "max": 9, "of": kind}
    place = "/tools/3/fields/0/type"
    document = changed(plain(desk()), place, kind)
    document["statements"] = []
    read_core(encode(document))
    deeper = {"kind": "list", "min": 0, "max": 9, "of": kind}
    document = changed(document, place, deeper)
    assert quickly(encode(document)) == ("D201", place + "/of" * 16)


# Anything else: only refusals come out.


@settings(max_examples=50)
@given(cores(), mutated())
def test_only_refusals_come_out(core: Core, change: Any) -> None:
    data = encode(change(plain(core)))
    try:
        policy = read_policy(data)
    except Rejected as found:
        assert found.path == "" or found.path.startswith("/")
        return
    assert isinstance(policy, Policy)
    assert encode(core_json(policy.core)) == data


def test_a_core_that_is_cut_or_has_another_byte_is_refused() -> None:
    data = encode(plain(desk()))
    rng = random.Random(1)
    for _ in range(300):
        at = rng.randrange(len(data))
        for wrong in (data[:at], data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]):
            with suppress(Rejected):
                read_core(wrong)
