"""The kernel asked alone: it closes a list of states exactly where a search finds no session.

The certificates that are tested elsewhere are written by the kernel's own moves.  So a kernel that
misses a move, or lets one through, agrees with itself; here it has to agree with the search, which
has moves of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import tcc
from tcc.library.proving import Proof
from tcc_certs.errors import Rejected
from tcc_runtime.exact import certificate
from tcc_runtime.exact.certificate import ProvedQuestion
from tests.exact import test_brute, test_fields, test_later, test_lists

MOST = 5000  # states


def asked_of(found: Proof, artifacts: tuple[tcc.Artifact, ...]) -> ProvedQuestion:
    """The question that a certificate answers."""
    assert found.certificate is not None
    of = json.loads(found.certificate.splitlines()[0])["question"]
    return ProvedQuestion(
        kind=of["kind"], text=of.get("text"), artifacts=artifacts, policy=of.get("policy")
    )


def closes(asked: ProvedQuestion) -> bool:
    """Whether a list of the kernel is closed, by any of the ways to make one that it has."""
    more: dict[str, Any] = {"max_states": MOST, "check_time": lambda: None}
    if asked.kind == "finishable":
        return certificate.finishing(asked, asked.system(), **more) is not None
    ways: list[tuple[bool, Callable[..., Any]]] = [
        (False, certificate.by_all),
        (True, certificate.by_all),
        (True, certificate.by_keys),
    ]
    found = []
    for bare, way in ways:
        try:
            found.append(way(asked.system(listed=True, bare=bare), **more) is not None)
        except Rejected as declined:
            assert declined.code.value == "D101"
    return any(found)


def ensure_alone(found: Proof, artifacts: tuple[tcc.Artifact, ...]) -> None:
    """The kernel alone says what was found."""
    if found.verdict != "undecided":
        assert closes(asked_of(found, artifacts)) == (found.session is None), found


def rows_of(test: Any) -> list[Any]:
    """The rows that a test is asked for."""
    return next(list(mark.args[1]) for mark in test.pytestmark if mark.name == "parametrize")


@pytest.mark.parametrize(
    ("statements", "asked", "verdict"),
    rows_of(test_lists.test_questions_about_lists_are_decided_and_proved),
)
def test_of_lists(statements: str, asked: str, verdict: str) -> None:
    made = tcc.compile_text(test_lists.BASE + statements)
    found = tcc.prove(made, asked.strip())
    assert found.verdict == verdict
    ensure_alone(found, (made,))


@pytest.mark.parametrize(
    ("text", "asked", "verdict", "codes", "calls"),
    rows_of(test_later.test_statements_of_language_1_2_are_decided),
)
def test_of_language_1_2(
    text: str, asked: dict[str, Any], verdict: str, codes: Any, calls: Any
) -> None:
    artifacts = [tcc.compile_text(text)]
    if "implies" in asked:
        artifacts.append(tcc.compile_text(asked["implies"]))
        asked = {"implies": artifacts[1]}
    found = tcc.prove(artifacts[0], **asked)
    assert found.verdict == verdict
    ensure_alone(found, tuple(artifacts))


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    rows_of(test_fields.test_tools_whose_fields_differ_as_they_may_are_decided),
)
def test_of_fields(mine: str, theirs: str, verdict: str) -> None:
    both = [tcc.compile_text(f"{test_fields.NEWER}{text}\n{test_fields.ENDS}")
            for text in (mine, theirs)]  # fmt: skip
    found = tcc.prove(both[0], implies=both[1])
    assert found.verdict == verdict
    ensure_alone(found, tuple(both))


@pytest.mark.parametrize(
    "statement",
    ["limit uses(pay) per x <= 1", "forbid pay before pay same x", "limit uses(pay) per x <= 2"],
)
@pytest.mark.parametrize("of", ["text", "number", "flag"])
def test_of_a_value_that_one_side_may_leave_out(statement: str, of: str) -> None:
    """No state is the worse for a call that the other side has not: the call itself is."""
    text = 'grammar g version "1"\ntool pay(; {}: {})\nplan = pay{{0,1}}\n{}\n'
    may, has_to = (tcc.compile_text(text.format(name, of, statement)) for name in ("x?", "x"))
    found = tcc.prove(may, implies=has_to)
    assert found.verdict == "refuted"
    assert found.session is not None
    assert [call.arguments for call in found.session.calls] == [{}]
    ensure_alone(found, (may, has_to))
    back = tcc.prove(has_to, implies=may)
    assert back.verdict == "proved"
    ensure_alone(back, (has_to, may))


@pytest.mark.parametrize("seed", range(0, 120, 10))
def test_of_random_grammars(seed: int) -> None:
    for at in range(seed, seed + 10):
        for found, artifacts in test_brute.ask(at, {}):
            ensure_alone(found, artifacts)
