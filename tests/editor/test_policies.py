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
        ("require ", "word", {"last", "any", "where"}),
        ("require ", "tool", {"get_order", "cancel"}),
        ("require last get_order ", "word", {"same", "where", "within", "or", "before"}),
        ("require a where ", "word", {"every", "some", "seen", "session", "own", "now", "count",
                                       "max"}),
        ("require get_order where x ", "word", {"in", "not"}),
        ("require get_order before ", "word", {"each", "any"}),
        ("forbid get_order before cancel ", "word", {"unless", "same"}),
        ("limit uses(cancel) <= 3 ", "word", {"within", "across"}),
        ("require get_order where seen.", "parameter", {"order", "status", "owner"}),
        ("require get_order where session.", "attribute", {"user", '"desk no"', "customer"}),
        ("require get_order where ", "attribute", {"row"}),
        ("let x = ", "tool", {"get_order", "cancel"}),
        ("let x = get_order.", "parameter", {"order", "status", "owner"}),
        ("let x = get_order.owner ", "word", {"or"}),
        ("tool t(; a: ", "word", {"list", "time", "date", "text"}),
        ("tool t(; a?: text ", "word", {"or", "at"}),
        ("", "word", {"given", "let", "monitor", "pass"}),
        ("pass ", "word", {"resources", "prompts", "input"}),
        ("pass prompts, ", "word", {"resources", "input"}),
    ],
)  # fmt: skip
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
        ("customer", "let customer = get_order.owner"),
        ("user", 'given user: text, "desk no": text'),
        ("row", "let row(id) = cancel.items"),
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
