"""Opening an artifact: checked or not, mapped, read where it is touched."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.container import read_container
from tcc_runtime.artifact.load import load
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import tables_of
from tests.oracle.cores import make_core
from tests.runtime.graphs import build, chain_rows, free_core, vec_core, vec_rows

SEED = bytes(32)


@pytest.fixture(scope="module")
def vec() -> bytes:
    return build(vec_core(), vec_rows())


def test_bytes_and_a_mapped_file_give_the_same_run(vec, tmp_path):
    path = tmp_path / "vec.tcca"
    path.write_bytes(vec)
    runs = [
        search(load(source, verify=verify), Settings(seed=SEED, race="coupled"))
        for source in (vec, path)
        for verify in (True, False)
    ]
    assert (runs[0], runs[1]) == (runs[2], runs[3])
    # What nobody verified is run all the same, and claims nothing.
    assert runs[0].claim_type == "RunWiseExact"
    assert runs[1] == replace(runs[0], claim_type="NoCert", verified=False)


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "empty.tcca"
    path.write_bytes(b"")
    for verify in (True, False):
        with pytest.raises(Rejected) as refusal:
            load(path, verify=verify)
        assert refusal.value.code == Code.HEADER_LENGTH


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.tcca")


def test_every_cut_is_refused(vec):
    for size in range(0, len(vec), 7):
        with pytest.raises(Rejected):
            load(vec[:size])


def flipped(data: bytes, column: str, at: int = 0) -> bytes:
    """One bit of a column turned over, no digest mended."""
    place = 8 + int.from_bytes(data[:8], "little") + at
    for name, tensor in read_container(data).items():
        if name == column:
            break
        place += len(tensor.data)
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_verification_is_what_reads_a_column_that_no_run_touches(vec):
    broken = flipped(vec, "core")
    assert search(load(broken, verify=False), Settings(seed=SEED, race="coupled")).stop == "bound"
    with pytest.raises(Rejected) as refusal:
        load(broken)
    assert refusal.value.code == Code.COLUMN_DIGEST


@pytest.mark.parametrize(
    ("column", "at", "code"),
    [
        ("edge_target", 4 * 6 + 3, Code.TARGET_ORDER),  # the high byte of an edge of the root
        ("edge_call", 4 * 6 + 3, Code.EDGE_RANGE),
        ("edge_start", 8 * 5 + 3, Code.EDGE_START),  # where the root's edges end
        ("call_text", 0, Code.JSON_SYNTAX),
    ],
)
def test_an_unverified_artifact_that_leads_nowhere_is_refused_where_it_is_read(
    vec, column, at, code
):
    with pytest.raises(Rejected) as refusal:
        search(load(flipped(vec, column, at), verify=False), Settings(seed=SEED, race="coupled"))
    assert refusal.value.code == code


def test_an_artifact_known_by_its_digest_is_opened_without_checking_it_again(
    vec, tmp_path, monkeypatch
):
    path = tmp_path / "vec.tcca"
    path.write_bytes(vec)
    due = load(path)
    monkeypatch.setattr("tcc_runtime.artifact.load.check", lambda *_: pytest.fail("checked again"))
    known = load(path, checked=due.digest.hex())
    assert search(known, Settings(seed=SEED, race="coupled")) == search(
        due, Settings(seed=SEED, race="coupled")
    )
    assert search(known, Settings(seed=SEED, race="coupled")).claim_type == "RunWiseExact"


def test_another_artifact_than_the_one_that_was_checked_is_refused(vec):
    with pytest.raises(Rejected) as refused:
        load(vec, checked="0" * 64)
    assert (refused.value.code, refused.value.path) == (Code.PIN, "artifact digest")


@pytest.mark.parametrize("name", ["plans", "edge_target", "core", "state_digest"])
def test_a_known_digest_does_not_let_a_changed_column_through(vec, name):
    digest = load(vec).digest.hex()
    tensor = read_container(vec)[name]
    at = vec.index(bytes(tensor.data)) + len(tensor.data) - 1
    changed = vec[:at] + bytes([vec[at] ^ 1]) + vec[at + 1 :]
    with pytest.raises(Rejected) as refused:
        load(changed, checked=digest)
    assert refused.value.code == Code.COLUMN_DIGEST


def test_without_verification_a_known_digest_raises_no_claim(vec):
    artifact = load(vec, verify=False, checked=load(vec).digest.hex())
    assert search(artifact, Settings(seed=SEED, race="coupled")).claim_type == "NoCert"


def test_a_large_artifact_is_checked_in_bulk_with_the_same_answer(vec, monkeypatch):
    due = search(load(vec), Settings(seed=SEED, race="coupled"))
    broken = vec[:-1] + bytes([vec[-1] ^ 1])
    monkeypatch.setattr("tcc_runtime.artifact.load._LARGE", 0)
    monkeypatch.setattr("tcc_runtime.artifact.load.check", lambda *_: pytest.fail("not in bulk"))
    assert search(load(vec), Settings(seed=SEED, race="coupled")) == due
    with pytest.raises(Rejected, match="M203"):
        load(broken)


def test_a_run_makes_only_the_states_and_calls_that_it_meets():
    rng = random.Random(1)
    costs = [rng.randrange(10**9) for _ in range(8)]
    rows = wide_rows(rng, 8, 40, 15)
    artifact = load(build(free_core(costs, 40), rows))
    assert artifact.manifest.states > 500
    search(artifact, Settings(seed=SEED, race="coupled"))
    assert len(tables_of(artifact, "r2", "1")._states) < artifact.manifest.states / 2


def wide_rows(rng, calls, layers, width):
    """Layers whose rows differ: each takes four calls of all."""
    rows = [(True, [])]
    last = [0]
    for _ in range(layers - 1):
        first = len(rows)
        for _ in range(width):
            some = sorted(rng.sample(range(calls), 4))
            rows.append((False, [(a, rng.choice(last)) for a in some]))
        last = list(range(first, len(rows)))
    rows.append((False, [(a, rng.choice(last)) for a in range(calls)]))
    return rows


def test_an_automaton_of_the_empty_plan_alone_runs():
    core = make_core(tools=[], calls=[], plan=["empty"])
    run = search(load(build(core, [(True, [])])), Settings(seed=SEED, race="coupled"))
    assert (run.claim_type, run.expansions, run.leaves) == ("RunWiseExact", 1, 1)
    assert [(plan.calls, plan.cost) for plan in run.plans] == [((), "0")]


def test_neither_lark_nor_networkx_is_imported(vec, tmp_path):
    path = tmp_path / "vec.tcca"
    path.write_bytes(vec)
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tcc_runtime.artifact.load import load
        from tcc_runtime.artifact.plans import cheapest_plan, plans_by_depth
        from tcc_runtime.ledger.recorder import Recorder
        from tcc_runtime.run import search
        from tcc_runtime.settings.settings import Settings
        from tcc_runtime.ledger.sinks import HashOnly

        artifact = load(Path(sys.argv[1]))
        search(artifact, Settings(seed=bytes(32)), Recorder(HashOnly(), started_ms=0))
        plans_by_depth(artifact), cheapest_plan(artifact)
        banned = {"lark", "networkx", "tcc_compiler", "tcc", "numpy", "click", "rich"}
        sys.exit(sorted(banned & {name.partition(".")[0] for name in sys.modules}) or 0)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_chain_builder_makes_valid_artifacts():
    rows = chain_rows(random.Random(3), 3, 6, 2)
    assert load(build(free_core([1, 2, 3], 6), rows)).verified
