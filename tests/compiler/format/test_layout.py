"""What is no grammar has no layout, and any text has an answer in time that follows its length."""

from __future__ import annotations

import pytest

from tcc_compiler.format import text as module
from tcc_compiler.format.text import DEEPEST, LayoutError, format_bytes, format_source
from tcc_compiler.language.source import MAX_SOURCE_BYTES, Unreadable, source_of
from tests.scaling.measure import MOST, growth, swelling


def formatted(text: str) -> str:
    made = format_source(source_of(text, "x.tcg"))
    assert made.text is not None, made.diagnostics
    return made.text


@pytest.mark.parametrize("text", ["", " \n\t\r\n"])
def test_no_statement_and_no_comment_is_an_empty_text(text: str) -> None:
    assert formatted(text) == ""


def test_every_error_of_syntax_has_its_place_and_there_is_no_text() -> None:
    made = format_source(source_of("tool a {\nlimit deep <= 3\nplan = (a", "x.tcg"))
    assert made.text is None
    found = [(d.code, d.span and (d.span.line, d.span.column)) for d in made.diagnostics]
    assert found == [("TCC114", (1, 8)), ("TCC101", (2, 7)), ("TCC114", (3, 8))]


def test_what_only_the_meaning_forbids_is_laid_out() -> None:
    assert formatted("plan=b tool a   tool a") == "plan = b\n\ntool a\ntool a\n"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"tool \xff", "TCC108"),
        (b"tool a\0", "TCC108"),
        (b"\xef\xbb\xbftool a", "TCC109"),
        (b"#" * (MAX_SOURCE_BYTES + 1), "TCC107"),
        (b"tool a " * (1 << 17), "TCC107"),
        (b"plan = " + b"(" * 201 + b"a" + b")" * 201, "TCC106"),
        (Unreadable(code="TCC110", message="no file"), "TCC110"),
    ],
)
def test_bytes_that_are_no_grammar_have_a_code(data: bytes | Unreadable, code: str) -> None:
    made = format_bytes(data, "x.tcg")
    assert made.text is None
    assert code in [d.code for d in made.diagnostics]


HOSTILE = {
    "a long string": f'tool a {{ doc "{"x" * (1 << 20)}" }}\n',
    "a long comment": f"tool a  # {'x' * (1 << 20)}\n",
    "a long name": f"plan = {'x' * (1 << 20)}\n",
    "deep parentheses": f"plan = {'(' * 200}a{' | b)' * 200}\n",
    "deep signs": f"tool a {{ cost {'-' * 200}1 }}\n",
    "blank lines": "tool a" + "\n" * (1 << 20),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_has_an_answer(name: str) -> None:
    once = formatted(HOSTILE[name])
    assert formatted(once) == once


def test_deep_nesting_does_not_make_a_text_long() -> None:
    text = "plan = " + f"{'a' * 8} (" * 199 + "b | " * 3_000 + "b" + ")" * 199
    assert len(formatted(text)) < len(text) + 3_001 * (DEEPEST + 200 * 2)
    lines = formatted(text).splitlines()
    assert max(len(line) - len(line.lstrip()) for line in lines) == DEEPEST


SIZES = {
    "tools": lambda n: "".join(f"tool t{i} {{cost {i}}}\n" for i in range(n)),
    "values": lambda n: f"tool a(k: {'|'.join(f'v{i}' for i in range(n))})",
    "choices": lambda n: "plan = " + "|".join(f"a{i}" for i in range(n)),
    "sequence": lambda n: "plan = " + "a " * n,
    "groups": lambda n: "plan = " + "(a | b) " * n,
    "nested groups": lambda n: "plan = " + ("(" * 5 + "a" + ")" * 5) * n,
    "differences": lambda n: "plan = a" + " - a a" * n,
    "arguments": lambda n: f"plan = a({', '.join(f'k{i}=1|2' for i in range(n))})",
    "attributes": lambda n: f"tool a {{ {'cost 1 when k = 2 ' * n}}}",
    "models": lambda n: f"tool a {{ {'model m { price 1 } ' * n}}}",
    "comments": lambda n: "tool a # c\n# d\n" * n,
    "comments inside": lambda n: "plan = a\n" + "# c\n| b # d\n" * n,
    "one gap": lambda n: "tool a" + " # c\n" * n,
}


@pytest.mark.parametrize("name", SIZES)
def test_twice_the_text_takes_twice_the_steps_and_bytes(name: str) -> None:
    def work(n: int):
        source = source_of(SIZES[name](n), "x.tcg")
        return lambda: format_source(source)

    assert growth(work, 30) < MOST
    assert swelling(work, 150) < MOST


def test_other_tokens_than_the_text_s_are_never_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "lines_of", lambda elements: "tool b")
    with pytest.raises(LayoutError):
        formatted("tool a")
    monkeypatch.setattr(module, "lines_of", lambda elements: "tool a # more")
    with pytest.raises(LayoutError):
        formatted("tool a")
