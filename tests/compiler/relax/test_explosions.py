"""Expressions whose state sets multiply compile to nondeterministic artifacts, in little time."""

from __future__ import annotations

import pytest

from tcc_certs.kernel import check
from tcc_compiler.automata.table import Machine
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_compiler.resources import Guard

HEAD = """grammar g version "1"

tool a { cost 1 price 1 }
tool b { cost 2 price 3 }
tool c
"""
AUTO = Options(relax=("auto",))
LATE = "(a | b)* a (a | b){30}"


def compiled(text: str, **options: object) -> tuple[bytes, tuple[Diagnostic, ...]]:
    found = compile_text(HEAD + text, Options(relax=("auto",), **options))  # type: ignore[arg-type]
    assert found.artifact is not None, found.diagnostics
    return found.artifact, found.diagnostics


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"plan = {LATE}\nlimit depth <= 60\n", 6),
        (f"rule other = c c\nrule late = {LATE}\nplan = late | other\nlimit depth <= 60\n", 7),
        (f"rule late = {LATE}\nrule outer = c late\nplan = outer?\nlimit depth <= 60\n", 6),
        (f"plan = ({LATE}) & any*\nlimit depth <= 60\n", 6),
    ],
)
def test_an_explosion_is_blamed_on_its_rule(text: str, line: int) -> None:
    data, (warning,) = compiled(text, max_states=10_000)
    manifest = check(data).file.manifest
    assert (manifest.critical, manifest.counts) == (("nondeterministic",), "upper")
    assert (warning.code, warning.severity) == ("TCC411", "warning")
    assert warning.message.startswith("CountFail: the plan expression ")
    assert warning.span is not None and warning.span.line == line


def test_derivations_are_counted() -> None:
    data, _ = compiled(f"plan = {LATE}\nlimit depth <= 60\n", max_states=40_000)
    checked = check(data)
    # Before the marked a stand any n calls, and 30 after it; every place of it is a derivation.
    assert checked.plans[-1] == sum(2**n * 2**30 for n in range(30))
    assert checked.automaton.rank[-1] == 60


def test_what_is_left_explodes_too_and_is_relaxed() -> None:
    text = f"plan = {LATE}\nlimit depth <= 60\nlimit price <= 100\n"
    data, warnings = compiled(text, max_states=40_000)
    assert check(data).file.manifest.critical == ("nondeterministic",)
    small, found = compiled(text, max_states=700)
    manifest = check(small).file.manifest
    assert manifest.critical == ("nondeterministic", "relaxed")
    assert [d.code for d in found] == ["TCC411"] * len(found)
    assert len(found) == len(warnings) + 1 == 2
    assert found[1].span is not None and found[1].span.line == 8


def test_small_machines_are_determinised_whatever_the_ratio() -> None:
    data, warnings = compiled("plan = (a | b)* a (a | b){9}\nlimit depth <= 14\n")
    assert warnings == ()
    assert check(data).file.manifest.counts == "exact"


def test_what_is_taken_off_has_to_be_determinised() -> None:
    text = f"{HEAD}plan = any{{0,60}} - ({LATE})\nlimit depth <= 60\n"
    found = compile_text(text, Options(max_states=2_000, relax=("auto",)))
    assert [d.code for d in found.diagnostics] == ["TCC403"]
    assert found.diagnostics[0].message.startswith("the plan expression takes more than")


def test_partial_derivatives_that_are_deterministic_count_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"{HEAD}plan = any{{0,9}} - ((a | b)* a (a | b){{6}})\n"
    exact = compile_text(text, AUTO)
    assert exact.diagnostics == ()
    monkeypatch.setattr("tcc_compiler.automata.regular.explore._FIRST_CAP", 16)
    monkeypatch.setattr("tcc_compiler.resources._MANY_SETS", 32)
    monkeypatch.setattr("tcc_compiler.resources._MANY_SETS_PER_POSITION", 1)
    assert compile_text(text, AUTO) == exact
    # So does an expression that multiplies and cannot be kept apart either.
    monkeypatch.setattr("tcc_compiler.pipeline.explore_partial", _too_large)
    assert compile_text(text, AUTO) == exact


def _too_large(_core: object, _letters: object, guard: Guard) -> Machine:
    guard.states(guard.max_states + 1)
    raise AssertionError


def test_state_sets_that_multiply_are_seen_early() -> None:
    _, (warning,) = compiled(f"plan = {LATE}\nlimit depth <= 60\n")
    assert "multiplies: 65" in warning.message and "state sets over 19 positions" in warning.message


def test_patience_is_an_option() -> None:
    text = f"{HEAD}plan = {LATE}\nlimit depth <= 60\n"
    found = compile_text(text, Options(max_states=9000))
    assert found.artifact is None
    assert [d.code for d in found.diagnostics] == ["TCC403"]
