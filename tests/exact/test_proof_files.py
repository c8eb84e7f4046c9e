"""Files of proofs that nobody wrote with care: what is no proof, and what asks for much."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc_certs.errors import Rejected
from tcc_certs.proof import check, moves, parts, question
from tcc_certs.proof.atoms import atoms_of
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.compared import Part
from tcc_certs.values.declared import TextType
from tcc_runtime.exact import certificate
from tests.cli.conftest import (
    Tcc,
    tcc as tcc_command,  # noqa: F401 - a fixture
)
from tests.exact.test_proofs import (
    PAIRS,
    SHOP,
    STATEMENT,
    ask,
    asked,
    by_all,
    changed_at,
    code_of,
    file_of,
    lines_of,
)


@pytest.fixture(scope="module")
def whole() -> tuple[list[Any], list[bytes]]:
    return by_all(SHOP + "forbid find before find same user\n", STATEMENT)


def test_any_byte_changed_keeps_question_and_verdict_or_is_refused() -> None:
    rng = random.Random(4)
    for text, more in (
        (STATEMENT, {}),
        ("never find before refund", {}),
        (None, {"finishable": True}),
    ):
        found, artifacts = asked(SHOP, text, **more)
        data = found.certificate
        assert data is not None
        question = lines_of(data)[0]["question"]
        for _ in range(150):
            at = rng.randrange(len(data))
            forged = bytearray(data)
            forged[at] = rng.choice(b'0123456789[]{},"az \n\xff')
            report = check_proof(bytes(forged), artifacts)
            if report.verdict == 0:
                assert (dict(report.question), report.proof) == (question, found.verdict)


def test_members_of_other_types_are_refused(whole: tuple[list[Any], list[bytes]]) -> None:
    rng = random.Random(5)
    lines, artifacts = whole
    for _ in range(400):
        copy = json.loads(json.dumps(lines))
        place: Any = copy
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = rng.choice(list(keys))
            if isinstance(place[key], (list, dict)) and place[key] and rng.random() < 0.8:
                place = place[key]
                continue
            break
        place[key] = rng.choice(
            ["", "x", 0, 1, 2, -1, 2**53 - 1, "9" * 400, [], {}, [[]], True, [0, 0, [0], 1]]
        )
        report = check_proof(file_of(copy), artifacts)
        if report.verdict == 0:
            assert report.question == lines[0]["question"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "T101"),
        (b"\n", "B101"),
        (b"[]\n", "T101"),
        (b"[" * 2000 + b"\n", "D201"),
        (b'{"format":"tcc.proof"}\n', "D102"),
        (b"1" * (1 << 24) + b"1\n", "D201"),
    ],
)
def test_what_is_no_proof_is_refused(data: bytes, code: str) -> None:
    assert code_of(data, [artifact_bytes(tcc.compile_text(SHOP))]) == code


def test_the_work_that_a_file_asks_for_is_bounded(
    whole: tuple[list[Any], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, artifacts = whole
    data, steps = file_of(lines), check_proof(file_of(lines), artifacts).checked["steps"]
    with monkeypatch.context() as patch:
        patch.setattr(moves, "MAX_TRIED", 8 * steps)
        assert code_of(data, artifacts) == "VALID"
        patch.setattr(moves, "FACTS", 1 / 16)  # as if states had many
        assert code_of(data, artifacts) == "D201"
    calls = 3  # of the core; the question names two patterns
    monkeypatch.setattr(question, "MAX_NAMED", 2 * calls - 1)
    assert code_of(changed_at(lines, lambda copy: ask(copy, "forbid any any")), artifacts) == "D201"
    assert code_of(changed_at(lines, lambda copy: ask(copy, "forbid any")), artifacts) != "D201"


def test_types_of_one_sort_and_their_patterns_are_few() -> None:
    few = [TextType(most=most) for most in range(1, 25)]
    assert len(atoms_of("text", few, ())) == 24
    with pytest.raises(Rejected) as refusal:
        atoms_of("text", [*few, TextType(most=25)], ())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "types")
    # Each doubles the states of the product: what is in each is not known then.
    long = [TextType(pattern=f"[ab]*a[ab]{{{at}}}") for at in range(4, 13)]
    assert {(one.least, one.most) for one in atoms_of("text", long[:8], ())} == {(0, None)}
    with pytest.raises(Rejected) as refusal:
        atoms_of("text", long, ())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "types")


@pytest.mark.parametrize("states", [-1, True, "1"])
def test_counts_are_whole_numbers(whole: tuple[list[Any], list[bytes]], states: object) -> None:
    lines, artifacts = whole
    forged = changed_at(lines, lambda copy: copy[0]["parts"][0].update(states=states))
    assert code_of(forged, artifacts) == "T101"
    session, given = asked(SHOP, "never find")
    assert session.certificate is not None
    lines = lines_of(session.certificate)
    lines[0]["calls"] = states
    assert code_of(file_of(lines), given) == "T101"


def test_sizes_and_ends_are_looked_at(
    whole: tuple[list[Any], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, artifacts = whole
    data = file_of(lines)
    assert code_of(data[:-1], artifacts) == "T101"
    other = changed_at(lines, lambda copy: copy[0].update(format="tcc.session"))
    assert code_of(other, artifacts) == "T101"
    monkeypatch.setattr(check, "MAX_PROOF_BYTES", len(data) - 1)
    assert code_of(data, artifacts) == "D201"


def test_the_number_of_artifacts_is_that_of_the_question() -> None:
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    assert code_of(found.certificate, artifacts * 2) == "T104"
    assert code_of(found.certificate, []) == "T104"
    other = artifact_bytes(tcc.compile_text(PAIRS))
    assert code_of(found.certificate, [other]) == "T103"


def test_the_command_writes_and_checks(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    grammar_file, artifact, proof = tmp_path / "s.tcg", tmp_path / "s.tcca", tmp_path / "p.tccp"
    grammar_file.write_text(SHOP, "utf-8")
    assert tcc_command("compile", grammar_file, "-o", artifact).code == 0
    assert tcc_command("prove", grammar_file, STATEMENT, "-o", proof).code == 0
    found = tcc_command("check", proof, "--artifact", artifact, "--json")
    assert (found.code, found.json["verdict"], found.json["proof"]) == (0, "VALID", "proved")
    assert found.json["question"] == {"kind": "statement", "text": STATEMENT}
    proof.write_bytes(proof.read_bytes().replace(b"order", b"other"))
    found = tcc_command("check", proof, "--artifact", artifact, "--json")
    assert (found.code, found.json["findings"][0]["code"]) == (1, "T102")
    proof.write_bytes(b'{"format":"tcc.proof","format_version":"9"}\n')
    assert tcc_command("check", proof, "--artifact", artifact).code == 2


def at_bound(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, ask_it: Callable[[], str]
) -> int:
    """The least value of a limit that lets it pass; one less is a limit that is met."""
    most = 1
    monkeypatch.setattr(place, name, most)
    while ask_it() == "D201":
        most += 1
        monkeypatch.setattr(place, name, most)
    return most


def test_limits_let_what_is_at_them_pass(
    whole: tuple[list[Any], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, artifacts = whole
    data = file_of(lines)
    with monkeypatch.context() as patch:
        patch.setattr(check, "MAX_PROOF_BYTES", len(data))
        assert code_of(data, artifacts) == "VALID"
    size = lines[0]["parts"][0]["states"]
    with monkeypatch.context() as patch:
        patch.setattr(check, "MAX_PROOF_STATES", size)
        assert code_of(data, artifacts) == "VALID"
        patch.setattr(check, "MAX_PROOF_STATES", size - 1)
        assert code_of(data, artifacts) == "D201"

    # A file without states meets nothing but the calls of its start.
    artifact = tcc.compile_text(
        """grammar g version "1"

tool a(x: text ~ "p|q", y: text ~ "p|q")

plan = a
"""
    )
    text = "limit uses(a) per x <= 1"
    of = certificate.ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))

    def choices() -> str:
        try:
            made = of.system()
            part = Part(tracked=None, rule=None, uses=frozenset())
            list(made.moves(part, made.starts(part)[0]))
        except Rejected as refusal:
            return refusal.code.value
        return "fine"

    # Only x is compared, and of an atom that is not held one value stands for all.
    assert at_bound(monkeypatch, moves, "MAX_CHOICES", choices) == 1
    both = """grammar g version "1"

tool a(x: text ~ "p|q", y: text ~ "p|q")

plan = a a
"""
    of = certificate.ProvedQuestion(
        kind="statement",
        text="forbid a before a same x = y",
        artifacts=(tcc.compile_text(both),),
    )
    assert at_bound(monkeypatch, moves, "MAX_CHOICES", choices) == 2  # equal, or not
    assert at_bound(monkeypatch, moves, "MAX_TRIED", choices) == 2


def test_lists_for_keys_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = """grammar g version "1"

tool a(x: text)

plan = a

limit count(a) per x <= 1 in session
"""
    two = one + "forbid a before a same x\n"

    def system_of(text: str) -> moves.System:
        mine = (tcc.compile_text(one), tcc.compile_text(text))
        return certificate.ProvedQuestion(kind="implies", text=None, artifacts=mine).system()

    for text, most in ((one, 2), (two, 3)):
        made = system_of(text)
        monkeypatch.setattr(parts, "MAX_PARTS", most)
        assert len(made.parts(frozenset())) == most
        monkeypatch.setattr(parts, "MAX_PARTS", most - 1)
        with pytest.raises(Rejected) as refusal:
            made.parts(frozenset())
        assert refusal.value.code.value == "D201"
