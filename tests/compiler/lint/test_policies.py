"""Lints of answers and of conditions on open fields, asked of the text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.lint.policies import policy_lints

DESKS = Path(__file__).parents[3] / "grammars"
HEAD = """grammar g version "1"

tool a(kind: x | y, id: text max 9, to: text ~ "[A-Z]{3}", n: number 0 .. 50,
       rows: list min 1 max 3 of (id: text, n: number), ids: list of text at "/rows/*/id")
  gives (s: open | closed | *, owner: text at "/user/id", total: integer 0 .. 9,
         code: text ~ "[0-9]+", at?: time utc)
tool b(id: text max 9, n: number 60 .. 90)

limit depth <= 9
"""


def found(text: str) -> list[tuple[str, str]]:
    """The code of each lint, and the text that it stands at."""
    front = read_grammar_text(text)
    assert front.program is not None
    assert not front.diagnostics, [item.message for item in front.diagnostics]
    sources = tuple(front.sources.values())
    spans = [(one.diagnostic.code, one.diagnostic) for one in policy_lints(front.program, sources)]
    lines = text.split("\n")
    shown = []
    for code, item in spans:
        assert item.span is not None
        line = lines[item.span.line - 1]
        end = item.span.end_column if item.span.end_line == item.span.line else None
        at = line[item.span.column - 1 : None if end is None else end - 1]
        shown.append((code, item.message if code == "TCC718" else at))
    return shown


ALL = (
    "require last a same id where seen.owner = session.user, seen.total <= 3, seen.code = id,"
    " now <= seen.at + 1 h, every seen.rows as r (r.id in seen.ids) before b\n"
    "given user: text\n"
)


def test_a_field_that_nothing_compares_is_named() -> None:
    assert found(HEAD + ALL) == []
    assert found(HEAD) == [
        ("TCC718", "nothing compares `owner`, `total`, `code`, `at`, `ids` of `a`")
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "before b require a(owner = this.id)",
        "require a where seen.owner = id before b",
        "let o = a.owner",
        "let o(id) = a\nbefore b require o(id).owner = id",
        "forbid b before b unless a where seen.owner = id",
        "after b owe a(owner = this.id)",
    ],
)
def test_each_of_these_compares_it(statement: str) -> None:
    messages = [text for code, text in found(HEAD + statement + "\n") if code == "TCC718"]
    assert messages == ["nothing compares `total`, `code`, `at`, `ids` of `a`"]


@pytest.mark.parametrize(
    ("condition", "never"),
    [
        ('seen.s = "opn"', False),  # what is not listed is any text
        ('seen.kind = "z"', True),
        ('seen.kind in ("z", "w")', True),
        ('seen.kind not in ("x", "y", "z")', True),
        ('seen.kind in ("x", "w")', False),
        ('seen.to = "AB"', True),
        ('seen.to = "ABC"', False),
        ('seen.to in ("ab", "ABCD")', True),
        ('seen.id = "0123456789"', True),
        ("seen.n > 50", True),
        ("seen.n >= 50", False),
        ("seen.n = 51", True),
        ("seen.n < 0", True),
        ("seen.n = n", True),
        ("seen.n >= n", True),
        ("seen.n <= n", False),
        ("seen.n + 10 >= n", False),
        ("seen.n + 9 >= n", True),
        ("2 * seen.n - n > 40", True),
        ("max(seen.n, 70) < n", False),
        ("max(seen.n, 90) < n", True),
        ("count(seen.rows) = 4", True),
        ("count(seen.rows) < 1", True),
        ("count(seen.rows) = 3", False),
        ('count(seen.ids ~ "a") < 1', False),
        ("count(seen.ids) > 1000", True),
        ('seen.kind !~ "[xy]"', True),
        ('seen.kind ~ "z"', True),
        ('seen.kind ~ "x"', False),
        ('seen.kind? = "z"', False),
        ('some seen.rows as r (seen.kind = "z")', True),
        ('every seen.rows as r (seen.kind = "z")', False),
        ("now <= seen.at + 24 h", False),
    ],
)
def test_conditions_that_no_values_meet(condition: str, never: bool) -> None:
    shown = found(f"{HEAD}require a where {condition} before b\n")
    assert [text for code, text in shown if code == "TCC719"] == ([condition] if never else [])


def test_an_attribute_from_any_text_is_named() -> None:
    shown = found(HEAD + "let o = a.owner or a.code\nlet p = a.to or b.id\nlet q(id) = a\n")
    assert [text for code, text in shown if code == "TCC720"] == ["owner"]


@pytest.mark.parametrize("name", ["airline_desk", "shop_desk"])
def test_what_is_found_in_two_desks(name: str) -> None:
    shown = found((DESKS / f"{name}.tcg").read_text("utf-8"))
    assert {code for code, _ in shown} <= {"TCC718", "TCC720", "TCC725"}
    print(shown)
