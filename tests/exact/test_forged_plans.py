"""The kernel refuses forged steps about plans and ends, and bounds its work."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc.library.proving import read_statements
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.policy.meaning import policy_of
from tcc_certs.proof import plans
from tcc_certs.proof.check import Argument, check_proof
from tcc_certs.proof.questions import Question, begun, rules_of
from tcc_certs.proof.rules import Wrong
from tcc_certs.report import check_artifact, report_proof
from tcc_runtime.exact.planned import plan_of
from tests.forgery.artifacts import Forge

TEXT = """# lint: allow TCC709 a test needs no costs
grammar planned version "1"
tool look(m: 1 | 2) gives (v: yes | no)
tool test gives (v: yes | no)
tool edit
tool commit
tool stop
plan = look{1,3} (edit look? edit{0,2} test){1,2} commit? | stop
limit depth <= 12
"""
QUESTIONS = (
    "before commit require edit",
    "before commit require test since edit",
    "before edit require no commit",
    "finally require stop or test",
    "limit count(edit) <= 6 in session",
    "limit count(test) <= 2 in session",
    "before edit require look(m = 1) or look(m = 2)",
)
FALSE = (
    "before commit require look(m = 1)",
    "before commit require test(v = yes)",
    "before commit require test(v = yes) or test(v = no)",
    "before commit require test(v = yes | no)",
    "before commit require every test(v = yes | no)",
    "before edit require no test",
    "finally require commit",
    "limit count(edit) <= 5 in session",
)


@cache
def compiled() -> tcc.Artifact:
    return tcc.compile_text(TEXT)


@cache
def proved() -> list[bytes]:
    found = [tcc.prove(compiled(), text, timeout=30) for text in QUESTIONS]
    assert [one.verdict for one in found] == ["proved"] * len(QUESTIONS)
    return [one.proof or b"" for one in found]


@pytest.fixture
def artifact() -> tcc.Artifact:
    return compiled()


@pytest.fixture
def proofs() -> list[dict[str, Any]]:
    return [json.loads(proof) for proof in proved()]


def code_of(document: dict[str, Any], artifact: tcc.Artifact) -> Code | None:
    try:
        check_proof(encode(document), artifact.core, lambda: plan_of(artifact))
    except Rejected as refusal:
        return refusal.code
    return None


def test_a_proof_of_plans_needs_the_artifact(
    artifact: tcc.Artifact, proofs: list[dict[str, Any]]
) -> None:
    for proof in proofs:
        assert code_of(proof, artifact) is None
        report = report_proof(encode(proof), bytes(artifact_bytes(artifact)))
        assert report.lines[0].startswith("VALID: every session of this artifact satisfies")
        with pytest.raises(Rejected) as refused:
            check_proof(encode(proof), artifact.core)
        assert refused.value.code is Code.PROOF_STEP


@pytest.mark.parametrize("text", FALSE)
def test_a_false_statement_about_plans_is_refuted(artifact: tcc.Artifact, text: str) -> None:
    found = tcc.prove(artifact, text, timeout=30)
    assert found.verdict == "refuted" and found.session is not None


def test_a_question_that_only_an_unknown_outcome_breaks_is_not_proved(
    artifact: tcc.Artifact,
) -> None:
    asked = "before commit require look(m = 2) or edit since look(m = 2)"
    assert tcc.prove(artifact, asked, timeout=3).verdict != "proved"


def test_an_argument_of_another_automaton_does_not_hold(proofs: list[dict[str, Any]]) -> None:
    more = "| stop | look | look commit | edit commit? edit{6,7} | test test test"
    other = tcc.compile_text(TEXT.replace("| stop", more))
    for proof in proofs:
        assert code_of({**proof, "core": core_digest(other)}, other) is Code.PROOF_STEP


def core_digest(artifact: tcc.Artifact) -> str:
    from tcc_certs.policy.reader import core_digest as digest

    return digest(artifact.core)


def changes(step: list[Any]) -> list[list[Any]]:
    """The step with one number changed, left out or added."""
    found: list[list[Any]] = []

    def put(path: list[int], change: Callable[[list[Any], int], None]) -> None:
        copy = json.loads(json.dumps(step))
        inside = copy
        for at in path[:-1]:
            inside = inside[at]
        change(inside, path[-1])
        found.append(copy)

    def walk(part: Any, path: list[int]) -> None:
        for at, one in enumerate(part):
            if isinstance(one, list):
                walk(one, [*path, at])
                put([*path, at], lambda inside, at: inside[at].append(0))
            elif isinstance(one, int):
                for value in (one + 1, one - 1, 10**30, "x", None, True, [one]):
                    put([*path, at], lambda inside, at, value=value: inside.__setitem__(at, value))
                put([*path, at], lambda inside, at: inside.pop(at))

    walk(step, [])
    return found


def test_a_changed_step_about_plans_proves_nothing_false(
    artifact: tcc.Artifact, proofs: list[dict[str, Any]]
) -> None:
    refused = kept = 0
    for proof in proofs:
        document = json.loads(json.dumps(proof))
        for argument in document["arguments"]:
            steps = argument["steps"]
            for at, step in enumerate(steps):
                for changed in changes(step):
                    argument["steps"] = [*steps[:at], changed, *steps[at + 1 :]]
                    code = code_of(document, artifact) if encodable(changed) else Code.PROOF_STEP
                    refused += code is not None
                    kept += code is None
            argument["steps"] = steps
    assert refused > 5 * kept  # a changed step may hold by chance


def encodable(step: list[Any]) -> bool:
    """Return whether canonical JSON has the step: null and large numbers are excluded."""
    try:
        encode({"step": step})
    except Exception:
        return False
    return True


def test_no_proof_fits_a_false_question(
    artifact: tcc.Artifact, proofs: list[dict[str, Any]]
) -> None:
    from tcc_certs.proof.questions import question_json

    for text in FALSE:
        question = Question(kind="statement", statements=read_statements(artifact.core, text))
        for proof in proofs:
            for argument in proof["arguments"]:
                for tool in ("commit", "edit", "look", ""):
                    forged = {**proof, "question": question_json(question),
                              "arguments": [{**argument, "tool": tool}]}  # fmt: skip
                    assert code_of(forged, artifact) in (Code.PROOF_STEP, Code.PROOF_ARGUMENT)


def test_a_call_that_may_have_failed_is_not_on_the_path() -> None:
    """The first `look` may be one that failed, so the plan's only `look` may follow it."""
    artifact = tcc.compile_text(TEXT.replace("look{1,3}", "look").replace("look? edit", "edit"))
    policy = policy_of(artifact.core)
    statements = read_statements(artifact.core, "before edit require no look")
    rule = rules_of(Question(kind="statement", statements=statements), artifact.core)[0]
    scene, formulas = begun(policy, rule, "statement", "edit")
    argument = Argument(scene, formulas, "argument", plans.Plans(lambda: plan_of(artifact)))
    steps = [["split", 0], ["formula", 0], ["witness", 0], ["first", 1], ["ordered", 2, 1, 0]]
    for step in steps:
        argument.follow(step)
    earlier = scene.number(("before", ("call", 2), ("call", 1)))
    argument.follow(["split", earlier])
    with pytest.raises(Wrong):
        argument.follow(["plan", [2, 1, 0], []])
    argument.follow(["split", scene.number(("failed", ("call", 2)))])
    with pytest.raises(Wrong):
        argument.follow(["plan", [2, 1, 0], []])


def test_named_calls_are_in_their_order() -> None:
    at = TEXT.index("plan = ")
    artifact = tcc.compile_text(f"{TEXT[:at]}plan = look edit test commit | stop\n")
    policy = policy_of(artifact.core)
    statements = read_statements(artifact.core, "before commit require no edit or no test")
    rule = rules_of(Question(kind="statement", statements=statements), artifact.core)[0]
    scene, formulas = begun(policy, rule, "statement", "commit")
    argument = Argument(scene, formulas, "argument", plans.Plans(lambda: plan_of(artifact)))
    for step in (["split", 0], ["formula", 0], ["split", 1], ["formula", 0]):
        argument.follow(step)
    argument.follow(["witness", 0])
    argument.follow(["witness", 1])
    for call, outcome in product((1, 2), ("failed", "answered")):
        argument.truths[scene.number((outcome, ("call", call))) or 0] = False
    for chain in ([1, 2, 0], [2, 1, 0], [1, 1, 0], [1], [0, 1], [], [1, 0, 0]):
        with pytest.raises((Wrong, ValueError)):
            argument.follow(["plan", chain, []])


def test_an_unknown_answer_may_have_any_value() -> None:
    at = TEXT.index("plan = ")
    artifact = tcc.compile_text(f"{TEXT[:at]}plan = look edit test commit | stop\n")
    policy = policy_of(artifact.core)
    statements = read_statements(artifact.core, "before commit require every test(v = yes | no)")
    rule = rules_of(Question(kind="statement", statements=statements), artifact.core)[0]
    scene, formulas = begun(policy, rule, "statement", "commit")
    argument = Argument(scene, formulas, "argument", plans.Plans(lambda: plan_of(artifact)))
    for step in (["split", 0], ["formula", 0], ["witness", 0]):
        argument.follow(step)
    answer = "get", ("call", 1), "v"
    compared = [scene.number(("eq", ("const", ("s", one)), answer)) for one in ("yes", "no")]
    assert None not in compared
    false = [scene.number((one, ("call", 1))) for one in ("failed", "answered")]
    argument.truths.update(dict.fromkeys([one or 0 for one in (*compared, *false)], False))
    with pytest.raises(Wrong):
        argument.follow(["plan", [1, 0], compared])


def test_ends_that_are_not_proved_are_refused(artifact: tcc.Artifact) -> None:
    document = {
        "schema": "tcc.proof/2",
        "core": core_digest(artifact),
        "question": {"kind": "finishable", "statements": []},
        "arguments": [],
    }
    assert code_of(document, artifact) is None
    text = TEXT.replace("look{1,3} (edit", "look(v = yes){1,3} (edit")
    stuck = tcc.compile_text(text)
    assert code_of({**document, "core": core_digest(stuck)}, stuck) is Code.PROOF_STEP
    with pytest.raises(Rejected) as refused:
        check_proof(encode(document), artifact.core)
    assert refused.value.code is Code.PROOF_STEP


OTHER_PLANS = """grammar g version "1"
tool look
tool act
tool over
"""


def with_core(automaton: str, core: str) -> bytes:
    """The artifact of a text with the core of another one."""
    forge = Forge(bytes(artifact_bytes(tcc.compile_text(OTHER_PLANS + automaton))))
    whole = artifact_bytes(tcc.compile_text(OTHER_PLANS + core))
    forge.columns["core"] = Forge(bytes(whole)).columns["core"]
    forged = forge.seal()
    assert check_artifact(forged).verdict == 0
    return forged


def test_ends_of_an_automaton_that_is_not_that_of_its_core_are_not_proved(tmp_path: Path) -> None:
    """Its edge with `act` after `look` breaks the statement, so a gate lets no call through."""
    plans = "plan = (look | over)? act\n"
    whole = f"{plans}before act require over\n"
    proof = tcc.prove(tcc.compile_text(OTHER_PLANS + whole), finishable=True).proof
    forged = tmp_path / "forged.tcca"
    forged.write_bytes(with_core(plans, whole))
    assert proof is not None
    assert [one.code for one in report_proof(proof, forged.read_bytes()).findings] == ["G102"]
    found = tcc.prove(forged, finishable=True)
    assert (found.verdict, found.proof) == ("undecided", None) and "G102" in found.missing
    with tcc.Gate(forged) as gate:
        with gate.call("look") as permit:
            permit.done()
        assert not gate.may_finish and not gate.tools()


def test_a_core_implies_another_one_by_its_own_plans_alone(tmp_path: Path) -> None:
    parent = tcc.compile_text(f"{OTHER_PLANS}before act require look\n")
    child = tmp_path / "child.tcca"
    for core, codes in (("plan = look act\n", []), ("plan = look? act\n", ["G102"])):
        child.write_bytes(with_core("plan = look act\n", core))
        proof = tcc.prove(child, implies=parent).proof
        assert proof is not None
        report = report_proof(proof, child.read_bytes(), bytes(artifact_bytes(parent)))
        assert [one.code for one in report.findings] == codes


@pytest.mark.parametrize("depth", ["", "limit depth <= 3\n"])
def test_a_longer_way_to_an_end_may_be_too_long(depth: str) -> None:
    """The gate refuses each `close`, so a session of two steps has no call left for `a b`."""
    text = """grammar g version "1"
tool step
tool close(left: number 0 .. 9)
tool a
tool b
plan = step* (close | a b)
forbid close(left >= 0)
"""
    artifact = tcc.compile_text(f"{text}{depth}", purpose="gate")
    document = {
        "schema": "tcc.proof/2",
        "core": core_digest(artifact),
        "question": {"kind": "finishable", "statements": []},
        "arguments": [],
    }
    assert artifact.manifest.cyclic
    assert code_of(document, artifact) is (Code.PROOF_STEP if depth else None)
    with tcc.Gate(artifact) as gate:
        for _ in range(2):
            with gate.call("step") as permit:
                permit.done()
        assert gate.check("a").allowed is not bool(depth)
        assert gate.check("close", {"left": 1}).code == "R202"


def test_the_work_of_lemmas_about_plans_is_bounded(
    artifact: tcc.Artifact, proofs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MAX_EDGES", 5)
    assert code_of(proofs[1], artifact) is Code.LIMIT
