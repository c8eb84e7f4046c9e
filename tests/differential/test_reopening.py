"""A gate reopens a ledger exactly if the validator finds only that it has not ended.

One member of each ledger is changed, and the ledger is sealed again with the key.  The validator,
the gate's follower and a gate on a file read the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.container import write_container
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session import validate
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.policy import Policy, policy_of
from tcc_runtime.gate.session.recovery import Follower
from tests.campaigns.blocks import cases
from tests.forgery.test_session_forgeries import Records, mutants
from tests.oracle_session.shapes import shape, shop
from tests.oracle_session.writer import KEY, named, sealed
from tests.property.open_grammars import random_open_grammar

NAMES = ("hidden", "shown", "open")
VALUES: dict[str, tuple[Any, ...]] = {
    "text": ("a", "b\n", "é"), "integer": (0, 1, 7), "number": (0.5, 2, 1e2),
    "flag": (True, False), "json": (None, {"b": [1], "a": "x"}),
}  # fmt: skip


@cache
def shop_artifact() -> Artifact:
    return load(bytes(write_container(shop().file.columns)))


def followed(data: bytes, policy: Policy) -> str:
    """Why a ledger is not reopened; empty: it is reopened."""
    follower, reader = Follower(policy, KEY), LedgerReader([data])
    previous = reader.head
    try:
        for line in reader.lines():
            news = News(record=line.record, previous=previous, body=line.body, own=False)
            follower.apply(news)
            previous = reader.head
    except (ResumeError, Rejected) as error:
        return str(error)
    return ""


def sealed_again(records: Records, at: int, field: str) -> bytes:
    """The ledger sealed with the key; a header that was changed gets the id that follows."""
    started = records[0].get("started_ms")
    whole = isinstance(started, int) and 0 <= started < 1 << 48
    if at == 0 and field != "session_id" and whole:
        records = [named(records[0]), *records[1:]]
    return sealed(records)


def check_agreement(data: bytes, policy: Policy, artifact: CheckedArtifact, what: object) -> bool:
    """The ledger is refused exactly if there is a finding other than that it has not ended."""
    found = validate(data, artifact, key=KEY)
    wrong = [item for item in found.findings if item.code is not Code.INCOMPLETE]
    why = followed(data, policy)
    assert bool(why) == bool(wrong), (what, why, wrong)
    if wrong:
        assert why.startswith(f"line {wrong[0].line}: ") and wrong[0].code.value in why, what
    return bool(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_every_forgery_of_the_session_forgeries(name: str) -> None:
    policy = policy_of(shop_artifact())
    refused = taken = 0
    forgeries = list(mutants(shape(name)))
    count = min(cases(120, 250), len(forgeries))
    for at, field, forged in random.Random(name).sample(forgeries, count):
        data = sealed_again(forged, at, field)
        wrong = check_agreement(data, policy, shop(), (at, field))
        refused, taken = refused + wrong, taken + (not wrong)
    assert refused > 50 and taken > 1


def test_records_left_out_repeated_and_moved() -> None:
    policy = policy_of(shop_artifact())
    for name in NAMES:
        records = list(shape(name))
        for at in range(1, len(records)):
            for forged in (
                [*records[: at + 1], *records[at:]],
                [*records[:at], *records[at : at + 2][::-1], *records[at + 2 :]],
                [*records[:at], *records[at + 1 :]],
                records[:at],
            ):
                check_agreement(sealed(forged), policy, shop(), (name, at))


def grammars(count: int) -> Iterator[tuple[int, Artifact, Any]]:
    """Random grammars that compile, with plans of at most five calls."""
    seed = 0
    while count:
        seed += 1
        drawn = random_open_grammar(seed)
        try:
            artifact = tcc.compile_text(drawn.text + "plan = any{0,5}\n")
        except tcc.CompileError:
            continue
        count -= 1
        yield seed, artifact, drawn


def played(artifact: Artifact, drawn: Any, path: Path, rng: random.Random) -> Records:
    """The records of a session of random calls, without their MACs."""
    opened = {tool.name: tool.opened for tool in drawn.tools}
    shown = [
        name
        for tool in artifact.core.tools
        for name in [
            f"{tcc_name(tool.name)}.{tcc_name(given.name)}"
            for given in tool.arguments
            if given.type is not None
        ]
        if rng.random() < 0.5
    ]
    gate = tcc.Gate(artifact, ledger=path, key=KEY, durable=False, show=shown)
    for _ in range(8):
        choices = gate.allowed()
        if not choices:
            break
        chosen = rng.choice(choices)
        more = {name: rng.choice(VALUES[kind]) for name, kind in opened[chosen.tool]}
        try:
            with gate.call(chosen.tool, {**chosen.arguments, **more}) as permit:
                rng.choice((permit.done, permit.done, permit.failed, permit.unknown))()
        except tcc.Refused:
            continue
        if gate.history[-1].outcome == "unknown" and rng.random() < 0.5:
            gate.resolve(permit.seq, "failed")
    gate.close()
    records = [dict(record) for record in LedgerReader([path.read_bytes()])]
    for record in records:
        del record["mac"]
    return records


def tcc_name(name: str) -> str:
    from tcc_certs.formats.codec import written

    return written(name)


def test_random_grammars_with_each_member_altered(tmp_path: Path) -> None:
    refused = taken = 0
    for seed, artifact, drawn in grammars(5):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}"
        records = played(artifact, drawn, path, rng)
        policy = policy_of(artifact)
        checked = check(write_container(artifact.file.columns))
        assert followed(path.read_bytes(), policy) == ""
        assert sealed(records) == path.read_bytes(), "the gate's MACs are those of the text"
        drawn_mutants = list(mutants(records))
        for at, field, forged in rng.sample(drawn_mutants, min(150, len(drawn_mutants))):
            data = sealed_again(forged, at, field)
            wrong = check_agreement(data, policy, checked, (seed, at, field))
            refused, taken = refused + wrong, taken + (not wrong)
            if rng.random() < 0.05:
                path.write_bytes(data)
                try:
                    tcc.Gate(artifact, ledger=path, key=KEY, durable=False).close()
                except (ResumeError, Rejected):
                    assert wrong or b'"kind":"end"' in data
                    assert path.read_bytes() == data
                else:
                    assert not wrong
    assert refused > 200 and taken > 3


def test_no_late_outcome_is_taken_that_no_validator_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate refuses a late outcome exactly where the ledger with its record is declined."""
    for module in ("tcc_certs.session.machine", "tcc_runtime.gate.session_access.changes"):
        monkeypatch.setattr(f"{module}.MAX_REFOLDED", 4)
    artifact = tcc.compile_text("""grammar g version "1"

tool a

plan = any{0,60}
""")
    refused = [_declined(random.Random(seed), artifact, tmp_path / f"{seed}") for seed in range(5)]
    assert sum(refused) > 5


def _declined(rng: random.Random, artifact: Artifact, path: Path) -> int:
    """How many late outcomes of a random session were refused, each as it had to be."""
    checked = check(write_container(artifact.file.columns))
    gate, refused = tcc.Gate(artifact, ledger=path, key=KEY, durable=False), 0
    for _ in range(60):
        unknown = [one.seq for one in gate.history if one.outcome == "unknown"]
        if unknown and rng.random() < 0.4:
            seq, outcome = rng.choice(unknown), rng.choice(("done", "failed"))
            before = path.read_bytes()
            told = {"kind": "resolve", "seq": seq, "outcome": outcome}
            found = validate(sealed([*LedgerReader([before]), told]), checked, key=KEY)
            assert {item.code for item in found.findings} <= {Code.INCOMPLETE, Code.LIMIT}
            if any(item.code is Code.LIMIT for item in found.findings):
                refused += 1
                with pytest.raises(ValueError, match="to go through again"):
                    gate.resolve(seq, outcome)
                assert path.read_bytes() == before
            else:
                gate.resolve(seq, outcome)
        elif rng.random() < 0.2:
            gate.close()
            gate = tcc.Gate(artifact, ledger=path, key=KEY, durable=False)
        else:
            with gate.call("a") as permit:
                rng.choice((permit.done, permit.failed, permit.unknown, permit.unknown))()
                gate.check("a")
    gate.close()
    return refused
