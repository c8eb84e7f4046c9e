"""Exact questions about values in lists of answers and arguments, and about their elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes, artifact_of
from tcc.library.proving import artifact_side
from tcc.library.question_statement import statement_core
from tcc_certs.core.model import PolicyMonitor
from tcc_certs.core.policies import Need
from tcc_certs.errors import Rejected
from tcc_certs.proof import moves
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.compared import Part
from tcc_certs.proof.fields import Uncovered
from tcc_certs.proof.spoken import Spoken
from tcc_runtime.exact import certificate, system
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.search import included
from tcc_runtime.exact.sides import statement_side
from tcc_runtime.exact.system import System
from tests.exact.test_proofs import changed_at, code_of, lines_of

ONCE = "limit uses(find) <= 1\n"
BASE = """grammar g version "1"

tool find gives (members: list of text max 9)
tool pay(to: list max 3 of text max 9, one: text max 9)

limit depth <= 3
"""
IN = "require find where one in seen.members before pay\n"
ALL = "require find where every to in seen.members before pay\n"
OF_TO = "require pay where one in to\n"


@pytest.mark.parametrize(
    ("statements", "asked", "verdict"),
    [
        # What is looked for in a list that is remembered.
        (IN, IN, "proved"),
        (IN, "require find before pay", "proved"),
        (IN, "never pay", "refuted"),
        ('require pay where one = "x"\n', "never pay", "refuted"),
        ('require pay where one = "x"\n', 'require pay where one = "x"', "proved"),
        (IN, 'require find where "x" in seen.members before pay', "refuted"),
        (f'{IN}require pay where one = "x"\n', 'require find where "x" in seen.members before pay',
         "proved"),
        (IN, "forbid find where one not in seen.members before pay", "refuted"),
        (f"{IN}forbid find where one in seen.members before pay\n", "never pay", "proved"),
        # The same value may be in one list and not in the other.
        (f"{IN}forbid last find where one in seen.members before pay\n", "never pay", "refuted"),
        (f"{IN}limit uses(find) <= 1\nforbid last find where one in seen.members before pay\n",
         "never pay", "proved"),
        # Lists whose elements are gone through.
        (ALL + OF_TO, IN, "proved"),
        (ALL, IN, "refuted"),
        (ALL + OF_TO, "require find where some seen.members as a (a = one) before pay", "proved"),
        (f'{ALL}require find where every seen.members ~ "[a-c]*" before pay\n',
         'require pay where every to ~ "[a-z]*"', "refuted"),  # another find than the one of to
        (f'{ALL}{ONCE}require find where every seen.members ~ "[a-c]*" before pay\n',
         'require pay where every to ~ "[a-z]*"', "proved"),
        (f'{ALL}{ONCE}require find where every seen.members in ("a", "b") before pay\n',
         'require pay where every to in ("a", "b", "c")', "proved"),
        (ALL, "require pay where some to as a (a = one)", "refuted"),
        (ALL, "require find where every seen.members in to before pay", "refuted"),
        (f"{ALL}require pay where every to = one\n", "require find where one not in to before pay",
         "refuted"),
        # An empty list: nothing is in it, and each of its elements is anything.
        ('require pay where every to = "a", every to = "b"\n',
         'forbid pay where "a" in to before pay', "proved"),
        ('require pay where every to = "a", every to = "b"\n', "require pay where one not in to",
         "proved"),
        # Elements that go on together, and apart.
        (("require find where every to in seen.members before pay\n"
         "forbid pay where every to in seen.to before pay\n"
         "require pay where some to as a (a != one)\n"),
         "limit uses(pay) <= 1", "refuted"),
    ],
)  # fmt: skip
def test_questions_about_lists_are_decided_and_proved(
    statements: str, asked: str, verdict: str
) -> None:
    made = tcc.compile_text(BASE + statements)
    found = tcc.prove(made, asked.strip())
    assert (found.verdict, found.codes) == (verdict, ()), (found.whys, found.session)
    assert found.certificate is not None
    report = check_proof(found.certificate, [artifact_bytes(made)])
    assert (report.verdict, report.proof) == (0, verdict), report.finding


def test_a_grammar_with_lists_implies_and_does_not_imply_another() -> None:
    made = [tcc.compile_text(BASE + text) for text in (ALL + OF_TO, IN, "")]
    for one, other, verdict in ((0, 1, "proved"), (1, 0, "refuted"), (2, 1, "refuted")):
        found = tcc.prove(made[one], implies=made[other])
        assert (found.verdict, found.codes) == (verdict, ())
        assert found.certificate is not None
        both = [artifact_bytes(made[at]) for at in (one, other)]
        assert check_proof(found.certificate, both).verdict == 0
    diff = tcc.prove(made[2], implies=made[0])
    assert diff.session is not None
    assert [call.tool for call in diff.session.calls] == ["pay"]


def test_a_session_has_lists_of_as_many_elements_as_their_types_have() -> None:
    text = BASE.replace("members: list of", "members: list min 3 max 4 distinct of")
    made = tcc.compile_text(f'{text}{IN}require find where one = "x" before pay\n')
    found = tcc.prove(made, "never pay")
    assert found.session is not None
    answer = found.session.calls[0].answer
    assert answer is not None and len(answer["members"]) == 3 and "x" in answer["members"]


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("require find where one in seen.members before pay",
         "require find where every seen.members = one before pay"),
        ("require find where some seen.members as a (a in to) before pay",
         "require find where every seen.members in to before pay"),
    ],
)  # fmt: skip
def test_a_list_of_one_element_has_no_other_one(held: str, asked: str) -> None:
    """What is left of a summary is an element beside the value that was taken from it."""
    text = BASE.replace("members: list of", "members: list min 1 max 1 of")
    made = tcc.compile_text(f"{text}{held}\n")
    found = tcc.prove(made, asked)
    assert found.proved and found.certificate is not None
    assert check_proof(found.certificate, [artifact_bytes(made)]).verdict == 0
    wider = tcc.compile_text(f"{text.replace('max 1', 'max 2')}{held}\n")
    assert tcc.prove(wider, asked).verdict == "refuted"


def test_what_a_gate_may_be_unsure_of_is_left_open() -> None:
    """Each pattern alone is asked of all calls; both ask more than a gate asks for a decision."""
    texts = "tool a(; x: text max 16000)\ntool b\nplan = any*\nlimit depth <= 64\n"
    says = [f'seen.x ~ "[a-z]{{60}}{end}"' for end in ("a", "b")]
    for where, left_open in ((says[0], False), (", ".join(says), True)):
        text = f'grammar g version "1"\n{texts}require a where {where} before b\n'
        artifact = artifact_of(tcc.compile_text(text))
        asked = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(artifact,))
        side = artifact_side(artifact)
        if not left_open:
            assert len(asked.system().kinds) == len(System(side, side).kinds) == 2
            continue
        with pytest.raises(Rejected, match="ask too much") as declined:
            asked.system()
        assert declined.value.code.value == "D101"
        with pytest.raises(OpenQuestion, match="ask too much") as refusal:
            System(side, side)
        assert refusal.value.code == "P501"


def test_a_pattern_of_elements_is_asked_of_all_of_them_wherever_it_stands() -> None:
    """No words of the language put it behind a `?`; a core may."""
    text = "tool a(; m: list of text max 16000)\ntool b(; m: list of text max 16000)\n"
    where = 'some seen.m as e (e ~ "[a-z]{60}")'
    text = f'grammar g version "1"\n{text}plan = any*\nlimit depth <= 9\n'
    core = artifact_of(tcc.compile_text(f"{text}require a where {where} before b")).core
    (monitor,) = core.monitors
    assert isinstance(monitor, PolicyMonitor) and isinstance(monitor.policy, Need)
    (one,) = monitor.policy.alternatives
    ((word, lists, (relation,)),) = one.where
    maybe = replace(one, where=((word, lists, (("?", relation),)),))
    for alternative in (one, maybe):
        policy = replace(monitor.policy, alternatives=(alternative,))
        with pytest.raises(Uncovered, match="ask too much"):
            Spoken().read(core, policy, 8)


MANY = f"""{BASE}require pay where every to in ({", ".join(f'"c{n}"' for n in range(15))})
""".replace("list max 3", "list")


def test_the_time_ends_inside_of_a_state() -> None:
    """A call has 20,000 choices of elements: one state takes seconds."""
    artifact = artifact_of(tcc.compile_text(MANY))
    core, policy = statement_core(
        artifact.core, text := 'limit uses(pay where "q" in to) <= 1', text
    )
    left = [100]

    def clock() -> None:
        left[0] -= 1
        if left[0] % 100 == 0:
            raise OpenQuestion("P507", "over")

    right = statement_side(core)
    found = included(lambda: System(artifact_side(artifact), right), check_time=clock)
    assert found.codes == ("P507",) and found.states < 3
    words = core.monitors[0].text
    asked = certificate.ProvedQuestion(
        kind="statement", text=words, artifacts=(artifact,), policy=policy
    )
    with pytest.raises(OpenQuestion, match="P507"):
        certificate.by_all(asked.system(), max_states=10, check_time=clock)


def test_a_thousand_constants_beside_a_list_are_no_bug() -> None:
    many = [", ".join([f'"c{at}x{n}"' for n in range(120)]) for at in range(10)]
    says = [f"require pay where one in ({some})\n" for some in many]
    text = BASE.replace("members: list of", "members: list max 1 of")
    artifact = artifact_of(tcc.compile_text(text + "".join(says)))
    asked = "forbid find where every seen.members = one before pay"
    core, policy = statement_core(artifact.core, asked, asked)
    found = tcc.prove(artifact, asked, timeout=1)
    assert found.proved or found.codes
    of = certificate.ProvedQuestion(
        kind="statement", text=core.monitors[0].text, artifacts=(artifact,), policy=policy
    )
    system_of = of.system()
    part = Part(tracked=None, rule=None, uses=frozenset())
    (start,) = system_of.starts(part)
    assert sum(1 for _ in system_of.moves(part, start)) > 1200


def test_a_call_with_too_many_choices_hides_no_other_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(system, "MAX_MOVES", 500)
    text = f"{MANY}tool last\n"
    made = tcc.compile_text(text)
    found = tcc.prove(made, "never last")
    assert found.session is not None and [call.tool for call in found.session.calls] == ["last"]
    assert tcc.prove(made, 'limit uses(pay where "q" in to) <= 2').codes == ("P503",)
    monkeypatch.setattr(system, "MAX_ELEMENTS", 100)  # in all
    few = tcc.compile_text(f"{BASE}{ALL}{OF_TO}")
    assert tcc.prove(few, IN.strip()).codes == ("P503",)
    path = tmp_path / "g.tcg"
    path.write_text(text, "utf-8")
    assert not any("TCC716" in one.message for one in tcc.lint(path).undecided)


def test_what_is_proved_without_a_statement_has_a_proof_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the grammar's own statement the kernel would go through all lists of elements."""
    monkeypatch.setattr(moves, "MAX_CHOICES", 500)
    monkeypatch.setattr(system, "MAX_MOVES", 500)
    made = artifact_of(tcc.compile_text(MANY))
    found = tcc.prove(made, 'limit uses(pay where one = "q") <= 3')
    assert found.proved and found.certificate is not None
    assert code_of(found.certificate, [artifact_bytes(made)]) == "VALID"
    # What the kernel leaves open has none.
    monkeypatch.setattr(moves, "MAX_CHOICES", 1)
    with pytest.raises(OpenQuestion, match=r"P503.*D201"):
        assert found.certificate


def _pairs(lines: list[Any]) -> list[Any]:
    """The facts of the last history, of the first state that has some."""
    groups = {fact[0] for line in lines[1:] if len(line) == 4 for fact in line[2]}
    states = list(lines[1 : 1 + lines[0]["parts"][0]["states"]])
    return next(
        facts
        for line in states
        if (facts := [fact for fact in line[2] if fact[0] == max(groups) and len(fact[2]) == 2])
    )


FORGED: list[tuple[str, Callable[[list[Any]], object], tuple[str, ...]]] = [
    ("a pair less", lambda x: _of(x).pop(-1), ("T203", "T204")),
    ("a pair of one", lambda x: _pairs(x)[0][2].pop(), ("T101",)),
    ("a pair twice", lambda x: _pairs(x)[0].__setitem__(3, 2), ("T101",)),
    ("a pair of a tool", lambda x: _pairs(x)[0].__setitem__(1, 1 << 12), ("T101",)),
    ("a pair of what is left out", lambda x: _pairs(x)[0].__setitem__(1, 1), ("T101",)),
    ("a text in a list", lambda x: _pairs(x)[0][2].__setitem__(1, "x"), ("T101",)),
    ("an element of another atom", lambda x: _pairs(x)[0][2].__setitem__(1, 99), ("T203", "T204")),
    ("a list in itself", lambda x: _pairs(x)[0][2].__setitem__(1, _pairs(x)[0][2][0]),
     ("T203", "T204")),
]  # fmt: skip


def _of(lines: list[Any]) -> list[Any]:
    """The facts of the first state that has a pair."""
    fact = _pairs(lines)[0]
    return next(line[2] for line in lines[1:] if len(line) == 4 and fact in line[2])


@pytest.mark.parametrize(("name", "forge", "codes"), FORGED)
def test_a_forged_list_of_elements_is_refused(
    name: str, forge: Callable[[list[Any]], object], codes: tuple[str, ...]
) -> None:
    proof, given = _proof_with_pairs()
    assert code_of(changed_at(lines_of(proof), forge), given) in codes


@cache
def _proof_with_pairs() -> tuple[bytes, list[bytes]]:
    """A proof about which values are elements of which lists, and what it is about."""
    artifact = artifact_of(tcc.compile_text(BASE + ALL + OF_TO))
    found = tcc.prove(artifact, IN.strip())
    assert found.proved and found.certificate is not None
    given = [artifact_bytes(artifact)]
    assert code_of(found.certificate, given) == "VALID"
    return found.certificate, given
