"""What an editor offers and shows where policies are written: words, fields, attributes."""

from __future__ import annotations

import pytest

from tcc.editor.answers import hover_text
from tcc_compiler.editing.completion import completion
from tcc_compiler.editing.project import Project, read_project

DECLARED = """grammar g version "1"

given user: text, `desk no`: text

tool get_order(order: text) gives (status: open | closed | *, owner: text at "/user/id")
tool cancel(reason: late | wrong, order: text, items: list max 9 of (id: text))

given customer from get_order.owner

let row(i) = last(cancel.items(id = i))
before cancel require last(get_order(same order)).owner = session.user
before cancel(row(order).id = session.customer) require no cancel
"""


def read(tail: str) -> Project:
    project = read_project(DECLARED + tail, None, "g.tcg")
    assert project is not None
    return project


@pytest.mark.parametrize(
    ("tail", "sort", "texts"),
    [
        ("before ", "tool", {"get_order", "cancel"}),
        ("before ", "let", {"row"}),
        ("before cancel ", "word", {"require", "ask"}),
        ("before cancel require ", "word", {"last", "count", "session", "every", "no", "unused"}),
        ("before cancel require ", "parameter", {"reason", "order", "items"}),
        ("before cancel require get_order(", "parameter", {"order", "status", "owner"}),
        ("before cancel require get_order(", "word", {"same", "this", "it"}),
        ("before cancel require get_order ", "word", {"since", "within", "because", "or", "and"}),
        ("before cancel require reason ", "word", {"in", "not", "and", "or"}),
        ("before cancel require reason = ", "value", {"late", "wrong"}),
        ("before cancel require last(get_order(same order)).", "parameter", {"status", "owner"}),
        ("before cancel require session.", "attribute", {"user", "`desk no`", "customer"}),
        ("limit ", "word", {"depth", "price", "count", "sum"}),
        ("limit count(cancel) <= 3 ", "word", {"in", "across", "because"}),
        ("limit sum(cancel.", "parameter", {"reason", "order", "items"}),
        ("after ", "tool", {"get_order", "cancel"}),
        ("given x from ", "tool", {"get_order", "cancel"}),
        ("given x from get_order.", "parameter", {"order", "status", "owner"}),
        ("let x = ", "tool", {"get_order", "cancel"}),
        ("tool t(a: ", "word", {"list", "time", "date", "text", "object"}),
        ("tool t(a?: text ", "word", {"or", "at"}),
        ("", "word", {"given", "let", "shape", "pass", "before", "finally"}),
        ("pass ", "word", {"resources", "prompts", "input"}),
        ("pass prompts, ", "word", {"resources", "input"}),
    ],
)
def test_what_may_come_next(tail: str, sort: str, texts: set[str]) -> None:
    text = DECLARED + tail
    _, offers = completion(text, len(text), read(tail))
    found = {offer.text for offer in offers if offer.sort == sort}
    assert texts <= found, found
    assert sort != "attribute" or texts == found, found


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("owner", 'owner: text at "/user/id"'),
        ("items", "items: list max 9 of (id: text)"),
        ("customer", "given customer from get_order.owner"),
        ("user", "given user: text, `desk no`: text"),
        ("row", "let row(i) = last(cancel.items(id = i))"),
    ],
)
def test_each_place_of_a_name_shows_its_declaration(word: str, shown: str) -> None:
    project = read("")
    text = project.sources[0].text
    places = [o for o in project.occurrences if text[o.region.start : o.region.end] == word]
    assert len(places) >= 2
    for place in places:
        said = hover_text(project, place, None)
        assert said is not None and shown in said
