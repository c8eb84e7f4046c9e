"""The tools of the pipeline on real texts, and on input that is not meant well."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tcc_experiments.pipeline.corpus import Corpus, all_texts, build
from tcc_experiments.pipeline.desk import Desk, calculate, summarise
from tcc_experiments.pipeline.errors import PipelineError
from tcc_experiments.pipeline.policy import read_question


def refused(error: pytest.ExceptionInfo[PipelineError]) -> tuple[str, str]:
    return str(error.value.code), error.value.place


def test_the_same_texts_make_the_same_file(corpus: Corpus, tmp_path: Path) -> None:
    assert build(tmp_path / "again.db", all_texts()) == corpus.digest
    assert corpus.size > 3000


def test_the_best_passage_is_the_one_about_it(corpus: Corpus) -> None:
    assert corpus.search("Faraday constant", 5, "constants")[0].title == "Faraday constant"
    found = corpus.search("mean petal length of iris plants", 5, "datasets")
    assert "petal length: Min 1.0, Max 6.9, Mean 3.76, SD 1.76, Class Correlation 0.9490." in [
        p.body for p in found
    ]
    assert corpus.search("with statement context manager", 1)[0].title.startswith("Python: ")
    assert corpus.search("with statement context manager", 5, "units") == []


@pytest.mark.parametrize(
    "query",
    ['"', 'mass" OR "x', "NEAR(mass proton)", "title : mass*", "mass AND NOT -proton", "m^"],
)
def test_what_is_syntax_to_the_index_is_plain_words(corpus: Corpus, query: str) -> None:
    if query == '"':
        with pytest.raises(PipelineError) as error:
            corpus.search(query, 5)
        assert refused(error) == ("X201", "query")
    else:
        assert len(corpus.search(query, 5)) == 5


def test_a_query_that_nothing_has_finds_nothing(corpus: Corpus) -> None:
    assert corpus.search("zyzzyva", 20) == []
    assert summarise("What is the proton mass?", [])["missing"] == ["the proton mass"]


@pytest.mark.parametrize(
    ("query", "k"), [("", 5), ("the of a", 5), ("x" * 401, 5), ("mass", 0), ("mass", 21), ("\0", 5)]
)
def test_a_query_out_of_range_is_refused(corpus: Corpus, query: str, k: int) -> None:
    with pytest.raises(PipelineError) as error:
        corpus.search(query, k)
    assert refused(error) == ("X201", "query")


def test_a_corpus_that_is_missing_or_altered_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    missing, altered, other = (tmp_path / name for name in ("missing", "altered", "other"))
    with pytest.raises(PipelineError) as error:
        Corpus(missing)
    assert refused(error) == ("X101", str(missing))
    with pytest.raises(PipelineError) as error:
        Corpus(tmp_path)
    assert refused(error) == ("X101", str(tmp_path))
    shutil.copy(corpus.path, altered)
    with sqlite3.connect(altered) as base:
        base.execute("UPDATE passages SET body = 'proton mass = 1 kg' WHERE title = 'proton mass'")
    base.close()
    with pytest.raises(PipelineError) as error:
        Corpus(altered, corpus.digest)
    assert refused(error) == ("X102", str(altered))
    other.write_bytes(b"no database at all" * 100)
    with pytest.raises(PipelineError) as error:
        Corpus(other)
    assert refused(error) == ("X102", str(other))


@pytest.mark.parametrize("where", range(8192, 1_000_000, 97_001))
def test_a_corpus_with_a_page_overwritten_answers_or_is_refused(
    corpus: Corpus, tmp_path: Path, where: int
) -> None:
    data = bytearray(corpus.path.read_bytes())
    data[where : where + 4096] = b"\xa5" * 4096
    path = tmp_path / "damaged.db"
    path.write_bytes(data)
    try:
        with closing(Corpus(path)) as damaged:
            damaged.search("proton mass of the iris plants", 20)
    except PipelineError as error:
        assert error.code == "X102"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 + 2 * 3", 7), ("(4.2e1) / (2)", 21), ("-2 ** 2", -4), ("+1.5 - -1.5", 3), (" 1", 1),
     ("2 ** 0.5", 2**0.5), ("-" * 150 + "1", 1), ("(" * 90 + "1" + ")" * 90, 1)],
)  # fmt: skip
def test_arithmetic_is_worked_out(text: str, value: float) -> None:
    assert calculate(text) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [("9**9**9", "X303"), ("9.9**9**9**9**9", "X303"), ("1/0", "X303"), ("1e308*10", "X303"),
     ("1e999", "X303"), ("0 ** -1", "X303"),
     ("(-8) ** 0.5", "X302"), ("x", "X302"), ("pi", "X302"), ("(1).real", "X302"),
     ("(1).__class__", "X302"), ("__import__('os')", "X302"), ("'a' * 9", "X302"),
     ("[1][0]", "X302"), ("1 if 1 else 2", "X302"), ("lambda: 1", "X302"), ("1; 2", "X302"),
     ("1\n2", "X302"), ("1 << 99", "X302"), ("1 // 2", "X302"), ("7 % 4", "X302"), ("~1", "X302"),
     ("True", "X302"), ("1j", "X302"), ("1 < 2", "X302"), ("a := 1", "X302"), ("", "X302"),
     ("\0", "X302"), ("(", "X302"), ("max(1, 2)", "X302"), ("f'{1}'", "X302"), ("None", "X302"),
     ("1" + "0" * 200, "X301")],
)  # fmt: skip
def test_what_is_no_arithmetic_or_has_no_value_is_refused(text: str, code: str) -> None:
    with pytest.raises(PipelineError) as error:
        calculate(text)
    assert refused(error) == (code, "expression")
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("text", "quantities", "expression"),
    [
        ("What is the ratio of A to B?", ("A", "B"), "{1} / {2}"),
        ("How many yards are there in one mile?", ("one mile", "one yards"), "{1} / {2}"),
        ("What is the range of hue?", ("max hue", "min hue"), "{1} - {2}"),
        ("What is A times B divided by C?", ("A", "B", "C"), "{1} * {2} / {3}"),
        ("find the sum of A and B", ("A", "B"), "{1} + {2}"),
        ("A?", ("A",), "{1}"),
    ],
)
def test_a_question_is_read(text: str, quantities: tuple[str, ...], expression: str) -> None:
    asked = read_question(text)
    assert (asked.quantities, asked.expression) == (quantities, expression)


@pytest.mark.parametrize("text", ["", "  ", "x" * 401, "a" + " plus a" * 7])
def test_a_question_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(PipelineError) as error:
        read_question(text)
    assert refused(error) == ("X202", "question")


def test_a_number_is_taken_from_the_sentence_that_has_the_words() -> None:
    passages = [
        {"title": "proton-electron mass ratio", "body": "proton-electron mass ratio = 1836.1."},
        {"title": "proton mass", "body": "proton mass = 1.67e-27 kg, standard uncertainty 5e-37."},
        {"title": "Iris plants dataset", "body": "petal length: Min 1.0, Max 6.9, Mean 3.76."},
    ]
    found = summarise("What is the proton mass?", passages)
    assert (found["found"], found["missing"]) == ("all", [])
    assert [fact["number"] for fact in found["facts"]] == ["1.67e-27"]
    found = summarise("What is the range of petal length of iris plants?", passages)
    assert [fact["number"] for fact in found["facts"]] == ["6.9", "1.0"]
    assert summarise("What is the muon mass?", passages)["found"] == "some"


@pytest.mark.parametrize(
    ("passages", "place"),
    [("text", "passages"), ([{}] * 81, "passages"), ([1], "passages[0]"),
     ([{"title": "a", "body": "b"}, {"title": 1, "body": "b"}], "passages[1]"),
     ([{"title": "a", "body": "b" * 2001}], "passages[0]")],
)  # fmt: skip
def test_passages_that_are_none_are_refused(passages: object, place: str) -> None:
    with pytest.raises(PipelineError) as error:
        summarise("What is A?", passages)  # type: ignore[arg-type]  # what a stranger may send
    assert refused(error) == ("X203", place)


def test_a_shelf_has_to_be_named_and_known(corpus: Corpus) -> None:
    desk = Desk(corpus)
    for call in (lambda: desk.route("attic"), lambda: desk.retrieve("shelf", 5, "mass")):
        with pytest.raises(PipelineError) as error:
            call()
        assert error.value.code == "X401"
