"""Nothing follows a close: at every line of honest ledgers of every mode, a correct `close` of
every stop that is legal there, the rest kept, is refused at the first line after it.

The seed is known (in `close`), handed to the validator, or withheld altogether; the chain is sealed
anew, so only the order of the records can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.replay import validate
from tcc_certs.replay.closing import close_record, possible_stops
from tcc_certs.replay.findings import Findings
from tcc_certs.replay.header_check import logged_seed
from tcc_certs.replay.validation import RunReplay, Trust
from tests.forgery import test_ledger_forgeries as points, test_range_forgeries as ranges
from tests.oracle_ledger.writer import chained

Records = list[dict[str, Any]]
SEALED = ("seed", "opening_salt")
NAMES = [("points", name) for name in points.NAMES] + [("ranges", name) for name in ranges.RUNS]


def honest(group: str, name: str) -> tuple[CheckedArtifact, Records]:
    """A run; one of them was resumed on the way."""
    if group == "points":
        return points.forged_run(name)
    artifact, _, records = ranges.forged_run(name)
    return artifact, records


def closes(artifact: CheckedArtifact, records: Records) -> Iterator[tuple[int, str, dict]]:
    """How many records stand before a close, its stop, and the close: all that are correct."""
    ledger = chained(records)
    replay, reader = RunReplay(Findings()), LedgerReader([ledger])
    replay.trust = Trust(
        artifact=artifact, seed=logged_seed([ledger]), opening=None, beacon=None, nonce=None,
        counts=None,
    )  # fmt: skip
    lines = islice(reader.unverified(), len(records) - 1)  # all but the close that it has
    for number, line in enumerate(lines, 1):
        replay.step(reader, line)
        run = replay.run
        # Before the root nothing has to come first but a downgrade by counts.
        if run is not None and (run.awaits is None or (not run.nodes and run.awaits == "node")):
            for stop in possible_stops(run):
                yield number, stop, close_record(run, stop, replay.trust.seed, tail=False)


def without_seed(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in SEALED}


@pytest.mark.parametrize(("group", "name"), NAMES, ids=[f"{g} {n}" for g, n in NAMES])
@pytest.mark.sampled(18)
def test_no_record_passes_after_a_correct_close(group, name):
    artifact, records = honest(group, name)
    seed = bytes.fromhex(records[-1]["seed"])
    salt = bytes.fromhex(records[-1]["opening_salt"])
    handed = {"seed": seed, "opening_salt": salt}
    tried = 0
    for at, stop, close in closes(artifact, records):
        assert validate(chained([*records[:at], close]), artifact).verdict == 0, (at, stop)
        rest = records[at:]
        known = chained([*records[:at], close, *rest])
        bare = [without_seed(record) for record in [*records[:at], close, *rest]]
        for ledger, given in ((known, {}), (chained(bare), handed), (chained(bare), {})):
            found = validate(ledger, artifact, **given)
            last = found.findings[-1]
            tried += 1
            if not given and ledger is not known and last.code == "D302":
                # No replay gets past a downgrade with leaves that have no logged uniform.
                assert (found.verdict, records[last.line - 1]["kind"]) == (2, "downgrade")
                assert last.line <= at
                continue
            assert (found.verdict, found.claim_upheld) == (1, False), (at, stop)
            assert (last.code, last.line, last.field) == ("L104", at + 2, "kind"), (at, stop)
            assert last.expected == "nothing after close"
            if ledger is known or given:
                assert len(found.findings) == 1
    assert tried >= 3 * (len(records) // 8), tried


def test_lines_after_a_close_are_not_even_held_against_a_record():
    artifact, records = honest("points", "rest top3")
    for extra in records[1:]:
        found = validate(chained([*records, extra, extra]), artifact)
        assert found.verdict == 1
        assert (found.findings[-1].code, found.findings[-1].line) == ("L104", len(records) + 1)
