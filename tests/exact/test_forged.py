"""The kernel refuses forged proofs, each with its code."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.container import write_container
from tcc_certs.proof.check import MAX_BYTES, check_proof
from tcc_certs.report import report_proof

TEXT = """# lint: allow TCC709 a test needs no costs
grammar shop version "1"
given customer: text
tool find(order: text) gives (owner: text, total: number 0 .. 1000)
tool approve(order: text, amount: number 0 .. 1000) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500)
tool pack(order: text, rows: list min 1 of (sku: text, price: number 0 .. 100))
tool over
before refund require last(find(same order)).owner = session.customer
before refund require amount <= 100 or unused approve(same (order, amount), answer = yes)
before approve require find(same order)
before pack require rows(sku = this.order, price <= match session.customer { "c": 5, else: 3 })
before pack require every rows(price > 2)
limit count(refund) per order <= 3 in session
before any require no over
limit depth <= 40
"""
QUESTIONS = (
    "before refund require find(same order)",
    "before refund(amount > 100) require find(same order) and approve(same order)",
    "limit count(refund(amount > 5)) per order <= 4 in session",
    "before refund require find(owner = session.customer)",
    "before approve require no over",
    "before refund require amount <= 500",
    "before pack require rows(sku = this.order, price > 2, price <= 5)",
)
Document = dict[str, Any]


@cache
def compiled() -> tcc.Artifact:
    return tcc.compile_text(TEXT)


@cache
def proved() -> list[bytes]:
    found = [tcc.prove(compiled(), text) for text in QUESTIONS]
    assert [one.verdict for one in found] == ["proved"] * len(QUESTIONS)
    return [one.proof or b"" for one in found]


@pytest.fixture
def artifact() -> tcc.Artifact:
    return compiled()


@pytest.fixture
def proofs() -> list[bytes]:
    return proved()


def code_of(document: Document, artifact: tcc.Artifact) -> Code | None:
    """The code with which the kernel refuses a document; None: it accepts it."""
    try:
        check_proof(encode(document), artifact.core)
    except Rejected as refusal:
        return refusal.code
    return None


def test_each_proof_is_accepted(artifact: tcc.Artifact, proofs: list[bytes]) -> None:
    for proof in proofs:
        assert code_of(json.loads(proof), artifact) is None
        report = report_proof(proof, write_container(artifact.file.columns))
        assert report.verdict == 0 and report.lines[0].startswith("VALID: every session")


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("schema", "tcc.proof/3", Code.UNKNOWN_VERSION),
        ("core", "00" * 32, Code.PROOF_CORE),
        ("question", {"kind": "statement", "statements": []}, Code.PROOF_SCHEMA),
        ("question", {"kind": "maybe", "statements": []}, Code.PROOF_SCHEMA),
        ("arguments", [], Code.PROOF_ARGUMENT),
        ("arguments", {}, Code.PROOF_SCHEMA),
    ],
)
def test_another_member_is_refused(
    artifact: tcc.Artifact, proofs: list[bytes], member: str, value: Any, code: Code
) -> None:
    assert code_of({**json.loads(proofs[0]), member: value}, artifact) is code


def test_the_question_cannot_be_exchanged(artifact: tcc.Artifact, proofs: list[bytes]) -> None:
    documents = [json.loads(proof) for proof in proofs]
    for one in documents:
        for other in documents:
            if one["question"] != other["question"]:
                forged = {**one, "question": other["question"]}
                assert code_of(forged, artifact) is not None


def test_no_step_can_be_left_out_or_repeated(artifact: tcc.Artifact, proofs: list[bytes]) -> None:
    for proof in proofs:
        document = json.loads(proof)
        for argument in document["arguments"]:
            steps = list(argument["steps"])
            for at in range(len(steps)):
                argument["steps"] = steps[:at] + steps[at + 1 :]
                assert code_of(document, artifact) is not None
            argument["steps"] = [*steps, steps[-1]]
            assert code_of(document, artifact) is Code.PROOF_STEP
            argument["steps"] = steps


def changes(step: list[Any]) -> list[list[Any]]:
    """The step with one number changed, or another name."""
    found: list[list[Any]] = []

    def put(path: list[int], value: Any) -> None:
        copy = json.loads(json.dumps(step))
        inside = copy
        for at in path[:-1]:
            inside = inside[at]
        inside[path[-1]] = value
        found.append(copy)

    def walk(part: Any, path: list[int]) -> None:
        for at, one in enumerate(part):
            if isinstance(one, list):
                walk(one, [*path, at])
            elif isinstance(one, int):
                for value in (one + 1, one - 1, 99, "x", True):
                    put([*path, at], value)

    walk(step, [])
    names = "split", "formula", "both", "equal", "sum", "use", "at", "witness", "first", "other"
    return [*found, *[[name, *step[1:]] for name in names if name != step[0]], [], [step[0]]]


def test_a_changed_step_proves_nothing_else(artifact: tcc.Artifact, proofs: list[bytes]) -> None:
    """A changed step may hold by chance, but then the same question stays proved."""
    refused = kept = 0
    for proof in proofs:
        document = json.loads(proof)
        for argument in document["arguments"]:
            steps = list(argument["steps"])
            for at, step in enumerate(steps):
                for changed in changes(step):
                    argument["steps"] = [*steps[:at], changed, *steps[at + 1 :]]
                    code = code_of(document, artifact)
                    refused += code in (Code.PROOF_STEP, Code.PROOF_ARGUMENT)
                    kept += code is None
            argument["steps"] = steps
    assert refused > 10 * kept


FALSE = (
    "before refund require approve(same order)",
    "before refund require amount <= 400",
    "limit count(refund) per order <= 2 in session",
    "before approve require no find(owner = session.customer)",
    "forbid refund(amount > 100)",
)


@pytest.mark.parametrize("text", FALSE)
def test_no_argument_of_a_true_statement_fits_a_false_one(
    artifact: tcc.Artifact, proofs: list[bytes], text: str
) -> None:
    from tcc.library.proving import read_statements
    from tcc_certs.proof.questions import Question, question_json

    question = Question(kind="statement", statements=read_statements(artifact.core, text))
    for proof in proofs:
        document = json.loads(proof)
        for argument in document["arguments"]:
            for tool in ("refund", "approve"):
                forged = {**document, "question": question_json(question),
                          "arguments": [{**argument, "tool": tool}]}  # fmt: skip
                assert code_of(forged, artifact) in (Code.PROOF_STEP, Code.PROOF_ARGUMENT)


def refuse(change: Callable[[Document], None], proof: bytes, artifact: tcc.Artifact) -> Code | None:
    document = json.loads(proof)
    change(document)
    return code_of(document, artifact)


def test_used_statements_are_those_that_were_used(
    artifact: tcc.Artifact, proofs: list[bytes]
) -> None:
    def more(document: Document) -> None:
        document["arguments"][0]["statements"].append(4)

    def none(document: Document) -> None:
        document["arguments"][0]["statements"] = []

    assert refuse(more, proofs[0], artifact) is Code.PROOF_ARGUMENT
    assert refuse(none, proofs[0], artifact) is Code.PROOF_ARGUMENT


def test_a_literal_about_a_call_that_is_not_there_is_refused(
    artifact: tcc.Artifact, proofs: list[bytes]
) -> None:
    def split(document: Document) -> None:
        document["arguments"][0]["steps"].insert(0, ["split", 10_000])

    assert refuse(split, proofs[1], artifact) is Code.PROOF_STEP


def test_another_core_is_refused(proofs: list[bytes]) -> None:
    other = tcc.compile_text(TEXT.replace("<= 3 in", "<= 4 in"))
    assert code_of(json.loads(proofs[0]), other) is Code.PROOF_CORE


def numbers(step: list[Any]) -> list[list[int]]:
    """The places of the numbers of a step."""
    found: list[list[int]] = []

    def walk(part: Any, path: list[int]) -> None:
        for at, one in enumerate(part):
            if isinstance(one, list):
                walk(one, [*path, at])
            elif isinstance(one, int):
                found.append([*path, at])

    walk(step, [])
    return found


def test_a_number_of_a_step_is_no_flag_and_not_negative(
    artifact: tcc.Artifact, proofs: list[bytes]
) -> None:
    tried = 0
    for proof in proofs:
        document = json.loads(proof)
        for argument in document["arguments"]:
            for step in argument["steps"]:
                for path in numbers(step):
                    inside = step
                    for at in path[:-1]:
                        inside = inside[at]
                    before = inside[path[-1]]
                    for value in (bool(before) if before in (0, 1) else -1, -1, -2):
                        inside[path[-1]] = value
                        assert code_of(document, artifact) is Code.PROOF_STEP, (step, value)
                        tried += 1
                    inside[path[-1]] = before
    assert tried > 100


class Long(bytes):
    """Bytes of a few characters that say another length."""

    said = 0

    def __len__(self) -> int:
        return self.said


@pytest.mark.parametrize(("more", "code"), [(0, Code.UNKNOWN_VERSION), (1, Code.LIMIT)])
def test_a_proof_has_at_most_so_many_bytes(artifact: tcc.Artifact, more: int, code: Code) -> None:
    proof = Long(b"{}")
    proof.said = MAX_BYTES + more
    with pytest.raises(Rejected) as caught:
        check_proof(proof, artifact.core)
    assert caught.value.code is code
