"""What an editor offers and shows where policies are written: words, fields, attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc.editor.answers import Held, hover_text
from tcc_certs.policy.kinds import Kinds
from tcc_compiler.editing.completion import completion
from tcc_compiler.editing.project import Project, read_project
from tcc_compiler.editing.words import NotedKinds
from tcc_compiler.syntax.tree import tokens_of
from tests.compiler.names.corpus import SHIPPED

DECLARED = """grammar g version "1"

given user: text, `desk no`: text, tier: gold | silver

shape contact (mail: text, phone?: text)

tool get_order(order: text)
  gives (status: open | closed | *, owner: text at "/user/id", by: object contact)
tool cancel(reason: late | wrong, order: text, items: list max 9 of (id: text), urgent: flag)
tool pay(order: text, amount: number 0 .. 500, currency: text "EUR" | "USD") gives contact
tool `not`
tool `count`(n: integer)

given customer from get_order.owner

let writes = cancel | pay
let row(i) = last(cancel.items(id = i))
before cancel require last(get_order(same order)).owner = session.user
before cancel(row(order).id = session.customer) require no cancel
"""
BLOCK = "before pay {\n  let o = last(get_order(same order))\n  "


def read(tail: str) -> Project:
    project = read_project(DECLARED + tail, None, "g.tcg")
    assert project is not None
    return project


def offered(tail: str) -> tuple[list[str], list[str]]:
    """The names and the words that are offered behind a text."""
    text = DECLARED + tail
    _, offers = completion(text, len(text), read(tail))
    names = [one.text for one in offers if one.sort != "word"]
    return names, [one.text for one in offers if one.sort == "word"]


@pytest.mark.parametrize(
    ("tail", "names"),
    [
        ("before ", "writes get_order cancel pay not `count`"),
        ("after ", "writes get_order cancel pay not `count`"),
        ("forbid pay(amount ~ ", ""),
        ("limit count(", "writes get_order cancel pay `not` `count`"),
        ("limit sum(pay.", "amount"),
        ("before pay require get_order(same ", "order"),
        ("before pay require last(get_order(same order)).", "order status owner by"),
        ("before pay require last(get_order(same order)).by.", "mail phone"),
        ("before pay require session.", "user desk no tier customer"),
        ("before pay require this.", "order amount currency"),
        ("before cancel require items.", "id"),
        ("before pay require last(get_order).status = ", "open closed order currency row"),
        ("before cancel require reason = ", "late wrong order row"),
        ("before pay require currency = ", '"EUR" "USD" order row'),
        ("before pay require session.tier = ", "gold silver order currency row"),
        ("before pay require amount <= ", "row"),
        ("before pay require get_order(order = ", "status owner by row this.order this.currency"),
        ("before pay require no ", "writes get_order cancel pay not `count` row"),
        ("finally require ", "writes get_order cancel pay `not` `count` row"),
        (BLOCK + "require o.", "order status owner by"),
        ("limit count(pay) per ", "order amount currency row"),
        ("given x from ", "get_order cancel pay not count"),
        ("given x from get_order.", "order status owner by"),
        ("let ", ""),
        ("tool x gives ", "contact"),
        ("plan = ", "get_order cancel pay not count writes row"),
        ("plan = cancel(", "reason"),
        ("plan = cancel(reason=", "late wrong"),
    ],
)
def test_exactly_these_names_fit(tail: str, names: str) -> None:
    found, _ = offered(tail)
    assert " ".join(found).replace("`desk no`", "desk no") == names


@pytest.mark.parametrize(
    ("tail", "some", "none"),
    [
        ("before pay ", {"require", "ask"}, {"before"}),
        ("before pay require ", {"last", "count", "session", "every", "no", "unused"}, {"it"}),
        ("before pay require get_order(", {"same", "this", "it", "not"}, {"require"}),
        ("finally require pay(", {"it", "not"}, {"same", "this", "unused"}),
        ("before pay require get_order ", {"since", "within", "because", "or"}, {"same", "before"}),
        ("before pay require get_order within ", {"30 d", "1 h"}, {"no"}),
        ("before cancel require reason ", {"in", "not", "and", "or"}, {"require"}),
        ("before cancel require urgent = ", {"true", "false"}, {"no", "every"}),
        ("before pay require amount <= ", {"match", "sum", "session"}, {"no", "every", "same"}),
        ("before pay require count(", {"any", "pairs", "distinct"}, {"no", "last"}),
        (BLOCK, {"require", "let"}, {"before", "tool"}),
        ("limit ", {"depth", "price", "count", "sum"}, {"match"}),
        ("limit count(cancel) ", {"<=", "per"}, set()),
        ("limit count(cancel) <= 3 ", {"in", "across", "because"}, {"per"}),
        ("expect always ", {"before", "forbid"}, {"tool", "plan"}),
        ("tool t(a: ", {"list", "time", "date", "text", "object"}, {"before"}),
        ("tool t(a?: text ", {"or", "at"}, set()),
        ("", {"given", "let", "shape", "pass", "before", "finally"}, set()),
        ("pass ", {"resources", "prompts", "input"}, set()),
        ("pass prompts, ", {"resources", "input"}, {"prompts"}),
    ],
)
def test_these_words_fit_and_these_do_not(tail: str, some: set[str], none: set[str]) -> None:
    _, words = offered(tail)
    assert some <= set(words)
    assert not none & set(words)


def test_only_these_methods_of_the_resolver_are_noted() -> None:
    """A method of the same name that the resolver gets later would be replaced in silence."""
    inherited = {name for kind in Kinds.__mro__[:-1] for name in vars(kind)}
    assert set(vars(NotedKinds)) & inherited - {"__doc__", "__init__", "__module__"} == {
        "_apply", "_charge", "_compare", "_declared", "_ensure_summed", "_form", "_get", "_open",
        "_same", "_set_named", "_thing", "_word",
    }  # fmt: skip


def test_a_name_in_backticks_that_is_not_closed_is_completed_from_its_backtick() -> None:
    text = DECLARED + "before pay require `n"
    start, offers = completion(text, len(text), read(""))
    assert text[start:] == "`n"
    assert "`not`" in [one.text for one in offers]


def test_every_offered_name_is_one_that_the_compiler_takes_there() -> None:
    """The offers behind ``before pay require`` and in a filter, each read in its place."""
    for tail, rest in (
        ("before pay require no ", ""),
        ("before pay require get_order(status = ", ")"),
        ("before cancel require reason = ", ""),
        ("before pay require last(get_order(same order)).", " != null"),
    ):
        names, _ = offered(tail)
        for name in [one for one in names if one != "row"]:
            project = read(f"{tail}{name}{rest}\n")
            assert project.whole
            place = project.at(len(DECLARED + tail) + len(name) - 1)
            assert place is not None, (tail, name)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_each_name_and_word_of_a_shipped_policy_is_offered_at_its_place(path: Path) -> None:
    text = path.read_text("utf-8")
    project = read_project(text, path, "g.tcg")
    assert project is not None
    names = [
        one.region for one in project.occurrences
        if one.region.source == 0 and not one.defines and one.kind not in ("file", "state")
    ]  # fmt: skip
    words = [
        token
        for one in project.statements
        if one.number == 0
        for token in tokens_of(one.tree)
        if token.kind == token.text and token.text.isalpha() and token.text not in ONCE
    ]
    assert len(names) > 3 or not project.words.stated
    for one in (*names, *words):
        begun, offers = completion(text[: one.start], one.start, project)
        found = {offer.text.removeprefix("session.") for offer in offers}
        found |= {offer.text.partition(" ")[2] for offer in offers}  # the unit of `30 d`
        assert begun == one.start
        assert text[one.start : one.end] in found, (text[: one.start].splitlines()[-1], found)


ONCE = ("grammar", "currency", "plan", "start", "goal")  # statements that the grammar has


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("owner", 'owner: text at "/user/id"'),
        ("items", "items: list max 9 of (id: text)"),
        ("customer", "given customer from get_order.owner"),
        ("user", "given user: text, `desk no`: text, tier: gold | silver"),
        ("row", "let row(i) = last(cancel.items(id = i))"),
    ],
)
def test_each_place_of_a_name_shows_its_declaration(word: str, shown: str) -> None:
    project = read("")
    text = project.sources[0].text
    places = [o for o in project.occurrences if text[o.region.start : o.region.end] == word]
    assert len(places) >= 2
    for place in places:
        said = hover_text(project, place.region.start)
        assert said is not None and shown in said


def test_a_statement_is_shown_in_words_with_its_place_and_the_fields_in_scope() -> None:
    statement = "before pay require last(get_order(same order)).owner = session.user"
    project = read(f'{statement} because "Only own orders."\n')
    text = project.sources[0].text
    held = {statement: Held(place="gate", part=None)}
    said = hover_text(project, text.rindex("require"), None, held)
    assert said == (
        "A call of `pay` is allowed only if `owner` of the last call of `get_order` with the same "
        "`order` is the session's `user`.\n\nBecause: *Only own orders\\.*\n\n"
        "Place: **gate**, held by the gate: it decides each call"
    )
    inside = hover_text(project, text.rindex("same"), None, held)
    assert inside is not None
    assert "Fields in scope: `order: text`, `status: open | closed | *`" in inside
    assert "behind `this.`: `order: text`, `amount: number 0 .. 500`" in inside


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_each_word_of_a_shipped_policy_is_found(path: Path) -> None:
    """Every name of a condition means something: none is left without an occurrence."""
    text = path.read_text("utf-8")
    project = read_project(text, path, "g.tcg")
    assert project is not None
    known = {(o.region.source, o.region.start) for o in project.occurrences}
    for tree, _ in project.words.stated:
        todo = [tree]
        while todo:
            one = todo.pop()
            todo += one.trees()
            token = one.parts[0]
            if one.kind != "name" or token.text in SPECIAL:  # type: ignore[union-attr]
                continue
            assert (0, one.start) in known, text[one.start : one.end + 20]


SPECIAL = (
    "this", "it", "session", "now", "any", "null", "true", "false", "last", "count", "sum", "min",
    "max", "distinct", "pairs", "hour", "weekday", "day", "depth", "price", "cost", "latency",
    "epsilon", "left", "right",
)  # fmt: skip
