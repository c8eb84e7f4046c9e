"""Rendering: carets, windows on long lines, nothing that moves the cursor."""

from __future__ import annotations

from tcc_compiler.language.diagnostics import Diagnostic, Note, render, suggest
from tcc_compiler.language.source import Span, source_of


def at(line: int, column: int, end_line: int, end_column: int) -> Span:
    return Span(file="f", line=line, column=column, end_line=end_line, end_column=end_column)


def shown(text: str, span: Span | None) -> list[str]:
    item = Diagnostic(code="TCC000", message="m", span=span)
    return render(item, {"f": source_of(text, "f")}).splitlines()


def test_a_span_over_lines_is_marked_to_the_end_of_the_first() -> None:
    assert shown("abc\ndef\n", at(1, 2, 2, 2)) == ["f:1:2: error[TCC000]: m", "1 | abc", "  |  ^^"]


def test_an_empty_span_gets_one_caret() -> None:
    assert shown("abc", at(1, 4, 1, 4))[2] == "  |    ^"


def test_no_place_and_an_unknown_file_have_no_line() -> None:
    assert shown("abc", None) == ["error[TCC000]: m"]
    item = Diagnostic(code="TCC000", message="m", span=at(1, 1, 1, 2), severity="warning")
    assert render(item, {}) == "f:1:1: warning[TCC000]: m"


def test_a_place_past_the_text_is_shown_without_failing() -> None:
    assert shown("abc", at(9, 9, 9, 10))[1] == "9 |"


def test_long_lines_are_cut_around_the_place() -> None:
    head, line, carets = shown("x" * 5000 + "HERE" + "y" * 5000, at(1, 5001, 1, 5005))
    assert head == "f:1:5001: error[TCC000]: m"
    assert len(line) < 180
    assert line[carets.index("^") : carets.rindex("^") + 1] == "HERE"


def test_control_characters_do_not_get_out() -> None:
    item = Diagnostic(
        code="TCC000",
        message="\x1b[31m",
        span=at(1, 1, 1, 2),
        hint="\u202e",
        notes=(Note(message="\x07\u2028"),),
    )
    text = render(item, {"f": source_of("\x1b\x9b\u200f\r\n", "f")})
    assert not set(text) & set("\x1b\x9b\x07\u200f\u202e\u2028")


def test_suggestions_are_close_and_bounded() -> None:
    assert suggest("rerenk", ["search", "rerank"]) == "did you mean 'rerank'?"
    assert suggest("zebra", ["search", "rerank"]) is None
    assert suggest("x" * 1000, ["x" * 999]) is None
