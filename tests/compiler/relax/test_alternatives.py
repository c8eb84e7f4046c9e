"""Past a limit nothing is dropped unasked: an error, the ways on, and what each would take."""

from __future__ import annotations

from itertools import count

import pytest

from tcc_certs.kernel import check
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import Compiled, compile_text

HEAD = 'grammar g version "1"\n'
TOOLS = "".join(
    f"tool t{i} {{ cost 0.{i + 1} price {i % 5 + 1} latency {7 * i + 3} ms }}\n" for i in range(6)
)
SUMS = TOOLS + "limit depth <= 12\nlimit price <= 30\nlimit latency <= 300 ms\nplan = any*\n"
BEFORE = TOOLS + "plan = any*\nlimit depth <= 30\nbefore t1 require t0\n"
LATE = "tool a\ntool b\nplan = (a | b)* a (a | b){12}\nlimit depth <= 20\n"


def compiled(text: str, **options: object) -> Compiled:
    return compile_text(HEAD + text, Options(**options))  # type: ignore[arg-type]


def declined(text: str, **options: object) -> Diagnostic:
    found = compiled(text, **options)
    assert found.artifact is None
    (diagnostic,) = found.diagnostics
    assert diagnostic.severity == "error"
    return diagnostic


GUARDED = [
    (SUMS, {"max_states": 400}, "TCC403"),
    (SUMS, {"max_states": 80}, "TCC403"),
    (SUMS, {"count_bits": 20}, "TCC407"),
    (SUMS.replace("price <= 30", "price <= 3000"), {"max_states": 80}, "TCC403"),
    (LATE, {"max_states": 500}, "TCC403"),
    (BEFORE, {"max_states": 40}, "TCC403"),
]


@pytest.mark.parametrize(("text", "limit", "code"), GUARDED)
def test_a_limit_is_an_error_that_says_what_auto_would_take(
    text: str, limit: dict[str, int], code: str
) -> None:
    found = declined(text, **limit)
    auto = compiled(text, **limit, relax=("auto",))
    assert found.code == code
    assert auto.artifact is not None
    assert [d.code for d in auto.diagnostics] == ["TCC411"] * len(auto.diagnostics)
    manifest = check(auto.artifact).file.manifest
    assert manifest.counts == "upper"
    fits = f"it takes {manifest.states} states"
    assert found.hint is not None and found.hint.endswith(fits) and "`--relax auto`" in found.hint
    assert found.notes[-1].message.startswith("this fits: ")
    assert found.notes[-1].message.endswith(fits)


@pytest.mark.parametrize(("text", "limit", "code"), GUARDED)
@pytest.mark.parametrize("names", [(), ("latency",)])
def test_no_limit_ever_leaves_an_artifact_with_bounds_that_nobody_asked_for(
    text: str, limit: dict[str, int], code: str, names: tuple[str, ...]
) -> None:
    if names and "latency <=" not in text:
        return
    found = compiled(text, **limit, relax=names)
    if found.artifact is None:
        assert [d.code for d in found.diagnostics] == [code]
        return
    assert names and len(check(found.artifact).file.manifest.relaxed) == 1


def test_each_attempt_is_a_note_at_its_statement() -> None:
    found = declined(SUMS, max_states=80)
    assert found.message == "`limit price <= 30` takes more than 80 states"
    first, last = found.notes
    assert first.message == (
        "too large as well: `limit price <= 30` left to the run (also by "
        "--relax 'limit price <= 30'), counts are upper bounds: "
        "`limit latency <= 300 ms` takes more than 80 states"
    )
    assert last.message == (
        "this fits: `limit price <= 30` and `limit latency <= 300 ms` left to the run (also by "
        "--relax 'limit price <= 30' --relax 'limit latency <= 300 ms'), counts are upper bounds; "
        "it takes 13 states"
    )
    assert [note.span.line for note in found.notes if note.span] == [9, 10]


def test_the_names_that_are_told_make_the_artifact_that_auto_makes() -> None:
    named = compiled(
        SUMS, max_states=80, relax=("limit latency <= 300 ms", "limit price <= 30")
    ).artifact
    assert named == compiled(SUMS, max_states=80, relax=("auto",)).artifact
    assert named is not None


def test_what_is_relaxed_already_is_not_told_as_a_way_on() -> None:
    found = declined(SUMS, max_states=80, relax=("latency",))
    assert found.hint is not None and "latency" not in found.hint
    assert "`limit price <= 30` left to the run (also by --relax 'limit price <= 30')" in found.hint


def test_rounding_and_keeping_apart_are_told_as_what_they_are() -> None:
    rounded = declined(SUMS, count_bits=20).hint
    assert rounded is not None
    assert "race counts rounded up to 20 bits (also by --round-counts 20)" in rounded
    apart = declined(LATE, max_states=500).hint
    assert apart is not None
    assert "state sets kept apart, derivations are counted in place of plans" in apart


def test_where_nothing_fits_that_is_said() -> None:
    found = declined("tool a\nplan = a{500}\n", max_states=100)
    assert found.hint is not None and found.hint.endswith("no way of relaxing it fits these limits")


def test_where_no_time_is_left_the_way_is_told_and_not_tried() -> None:
    asked = count()
    found = declined(SUMS, timeout=8.0, clock=lambda: float(next(asked)))
    assert found.code == "TCC404"
    assert found.hint is not None and "was not found out in the time there was" in found.hint
    assert [note.message.split(":")[0] for note in found.notes] == ["not tried for want of time"]


def test_what_is_wrong_with_a_grammar_has_no_ways_on() -> None:
    for text in ("tool a\ntool b\nplan = a* b\n", "tool a\nplan = a\nlimit depth <= 0\n"):
        found = declined(text)
        said = [found.hint or "", *(note.message for note in found.notes)]
        assert not any("relax" in text for text in said)


def test_the_same_words_each_time() -> None:
    assert declined(SUMS, max_states=80) == declined(SUMS, max_states=80)
