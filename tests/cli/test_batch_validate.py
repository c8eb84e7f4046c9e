"""``tcc batch --validate``: every ledger of a folder, and every result beside its ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc import batches as folders
from tcc.batches import PartDamaged, parquet, rows as ndjson
from tcc.batches.rows import RunRow
from tcc_certs.privacy.atoms_file import atoms_of
from tests.cli.batches import Here, lines, settings
from tests.cli.conftest import Tcc

FORMATS = ["ndjson", "parquet"]


def made(artifact: Path, out: Path, form: Any = "ndjson") -> Path:
    """Seven runs in parts of three."""
    library.batch(
        library.load(artifact), settings(7), out, executor=Here(), shard_size=3, part_format=form
    )
    return out


def rewrite(out: Path, number: int, form: str, change: Any) -> None:
    """A part with other rows, under a seal that is right for them."""
    path = out / f"part-{number:08d}.{form}"
    module = parquet if form == "parquet" else ndjson
    rows = [change(row) for row in module.read(path)]
    with path.open("wb") as file:
        module.write(file, rows, folders.read(out).identity, "0" * 64)


def found(artifact: Path, out: Path, **more: Any) -> library.BatchValidation:
    return library.validate_batch(out, artifact, executor=Here(), **more)


@pytest.mark.parametrize("form", FORMATS)
def test_a_whole_batch_is_valid(tcc: Tcc, artifact: Path, tmp_path: Path, form: Any) -> None:
    out = made(artifact, tmp_path / "out", form)
    command = ("batch", artifact, "--validate", "--out", out)
    ended = tcc(*command, "--processes", 2, "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json["verdict"] == "VALID"
    assert ended.json["verdicts"] == {"valid": 7}
    assert ended.json["claims"] == {"RunWiseExact": 7}
    assert ended.json["findings"] == []
    assert "VALID: 7 ledgers hold" in tcc(*command, "--processes", 1).out


@pytest.mark.parametrize("name", ["research", "support_refund"])
def test_results_with_atoms_and_ranges_are_those_of_their_ledgers(
    tmp_path: Path, name: str
) -> None:
    grammar = Path(__file__).parents[2] / "grammars" / f"{name}.tcg"
    opened = library.compile_file(grammar)
    library.save(opened, tmp_path / "a.tcca")
    atoms = atoms_of([{"mechanism": "laplace", "scale": "2", "sensitivity": "1"}])
    asked = [
        *settings(1, atoms=atoms),
        *settings(1, 2, top=3, max_expansions=2),
        *settings(1, 3, mode="fallback"),
        *settings(1, 4, truncate=6),
    ]
    library.batch(opened, asked, tmp_path / "out", executor=Here())
    report = found(tmp_path / "a.tcca", tmp_path / "out")
    assert (report.findings, report.verdicts) == ((), {"VALID": 4})


def other_ledger(row: RunRow) -> RunRow:
    if row.number != 5 or row.ledger is None:
        return row
    changed = row.ledger.replace(b'"mode":"exact"', b'"mode":"surrogate"', 1)
    return replace(row, ledger=changed)


def other_plan(row: RunRow) -> RunRow:
    if row.number != 5:
        return row
    told = row.fields
    told["plans"][0]["cost"] = "0"
    return replace(row, fields=told, run=json.dumps(told))


def other_head(row: RunRow) -> RunRow:
    if row.number != 5:
        return row
    told = row.fields | {"ledger_head": "0" * 64}
    return replace(row, fields=told, run=json.dumps(told))


def no_ledger(row: RunRow) -> RunRow:
    return row if row.number != 5 else replace(row, ledger=None)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("change", "code", "field", "verdict"),
    [
        (other_ledger, None, None, "INVALID"),
        (other_plan, "TCC812", "plans", "INVALID"),
        (other_head, "TCC812", "ledger_head", "INVALID"),
        (no_ledger, "TCC811", "ledger", "INCOMPLETE"),
    ],
)
def test_one_run_that_does_not_hold_is_found_by_its_number(
    artifact: Path, tmp_path: Path, form: Any, change: Any, code: str, field: str, verdict: str
) -> None:
    out = made(artifact, tmp_path / "out", form)
    rewrite(out, 2, form, change)
    report = found(artifact, out)
    assert report.word == verdict
    assert report.verdicts == {verdict: 1, "VALID": 6}
    first = report.findings[0]
    assert (first.run, first.file) == (5, f"part-00000002.{form}")
    if code is not None:
        assert (first.code, first.field) == (code, field)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("how", ["cut", "of another shard", "none"])
def test_a_part_that_is_damaged_or_missing_is_a_finding(
    tcc: Tcc, artifact: Path, tmp_path: Path, form: Any, how: str
) -> None:
    out = made(artifact, tmp_path / "out", form)
    path = out / f"part-00000002.{form}"
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif how == "none":
        path.unlink()
    else:
        path.write_bytes((out / f"part-00000001.{form}").read_bytes())
    ended = tcc("batch", artifact, "--validate", "--out", out, "--processes", 1, "--json")
    assert ended.code == (2 if how == "none" else 1)
    assert ended.json["runs"] == 7
    assert [item["code"] for item in ended.json["findings"]] == ["TCC811"]
    assert ended.json["findings"][0]["file"] == path.name
    shown = tcc("batch", artifact, "--validate", "--out", out, "--processes", 1)
    assert f"{path.name}: TCC811 part: expected a part" in shown.out


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_part_of_another_batch_is_a_finding(
    artifact: Path, tmp_path: Path, form: Any, number: int
) -> None:
    more = {"executor": Here(), "shard_size": 3, "part_format": form, "started_ms": 7}
    for name, first in (("out", 1), ("other", 11)):
        library.batch(library.load(artifact), settings(7, first), tmp_path / name, **more)
    part = f"part-{number:08d}.{form}"
    (tmp_path / "out" / part).write_bytes((tmp_path / "other" / part).read_bytes())
    report = found(artifact, tmp_path / "out")
    (one,) = report.findings
    assert (report.word, one.code, one.file) == ("INVALID", "TCC811", part)
    assert one.found == "it is a part of another batch"


def doubled(row: RunRow) -> RunRow:
    return row if row.number != 5 else replace(row, number=4)


def left_out(row: RunRow) -> RunRow:
    return row if row.number != 5 else replace(row, number=6)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", [doubled, left_out])
def test_rows_that_are_doubled_or_missing_are_a_finding(
    artifact: Path, tmp_path: Path, form: Any, change: Any
) -> None:
    out = made(artifact, tmp_path / "out", form)
    rewrite(out, 2, form, change)
    (one,) = found(artifact, out).findings
    assert one.code == "TCC811" and one.found.endswith("stands in the place of run 5")


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"[]",
        b'{"number": 4}',
        b'{"number": true, "ledger": "x"}',
        b'{"number": 4.0, "ledger": "x"}',
        b'{"number": %s}' % (b"9" * 5000),
        b'{"number": 4, "ledger": {"a": []}}',
        b'{"number": 4, "ledger": "\\ud800"}',
        b'{"number": 4, "\\ud800": NaN, "ledger": "x"}',
        *(b'{"number": 4, "plans": %s%s}' % (b"[" * n, b"]" * n) for n in (900, 2000, 100_000)),
        b'{"number": 4, "plans": ',
        b"\xff\xfe",
        b"\x00",
    ],
    ids=lambda line: line[:30].hex(),
)
def test_hostile_rows_are_findings(artifact: Path, tmp_path: Path, line: bytes) -> None:
    out = made(artifact, tmp_path / "out")
    path = out / "part-00000002.ndjson"
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([line + b"\n", *rows[1:]]))
    report = found(artifact, out)
    assert report.word in ("INVALID", "INCOMPLETE")
    assert {one.file for one in report.findings} == {path.name}
    assert report.verdicts["VALID"] >= 4


@pytest.mark.parametrize("depth", [*range(150, 1000, 50), 1500, 5000, 20_000])
def test_a_row_of_any_depth_is_read_or_damaged(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "part"
    path.write_bytes(b'{"number": 1, "a": %s%s}\n{}\n' % (b"[" * depth, b"]" * depth))
    with pytest.raises(PartDamaged):
        list(ndjson.read(path))


def test_a_head_that_names_very_many_parts_takes_no_longer(artifact: Path, tmp_path: Path) -> None:
    out = made(artifact, tmp_path / "out")
    head = (out / "batch.json").read_bytes()
    (out / "batch.json").write_bytes(head.replace(b'"runs":7', b'"runs":9007199254740991'))
    report = found(artifact, out)
    assert (report.word, report.runs) == ("INVALID", 9007199254740991)  # part 3 has one run
    assert report.verdicts["VALID"] == 7
    assert len(report.findings) == 100 and report.more > 10**15
    # And the parts that are there are sealed for another head.
    assert [one.found for one in report.findings][:2] == ["it is a part of another batch"] * 2


def test_plain_folders_are_validated_too(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    asked = lines(tmp_path / "asked", settings(4))
    out = tmp_path / "out"
    assert tcc("batch", artifact, "--requests", asked, "--out", out, "--processes", 1).code == 0
    assert found(artifact, out).verdicts == {"VALID": 4}
    results = out / "runs.ndjson"
    whole = results.read_bytes()
    results.write_bytes(whole.replace(b'"cost": "', b'"cost": "9', 1))
    report = found(artifact, out)
    assert (report.word, report.findings[0].code) == ("INVALID", "TCC812")
    results.write_bytes(whole[:-9])
    assert found(artifact, out).findings[0].code == "TCC811"
    results.write_bytes(whole)
    ledger = out / "00000002.ledger"
    ledger.write_bytes(ledger.read_bytes()[:-1])
    assert found(artifact, out).findings[0].file == "00000002.ledger"
    ledger.unlink()
    report = found(artifact, out)
    assert (report.word, report.findings[0].run) == ("INCOMPLETE", 2)


def test_a_folder_of_another_artifact_or_without_ledgers_is_declined(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    out = made(artifact, tmp_path / "out")
    other = tmp_path / "other.tcca"
    library.save(
        library.compile_text("""grammar g version "1"

tool a

plan = a{1,3}
"""),
        other,
    )
    ended = tcc("batch", other, "--validate", "--out", out)
    assert ended.code == 2 and "TCC802" in ended.err
    pinned = tcc("batch", artifact, "--validate", "--out", out, "--pin", "00" * 32)
    assert pinned.code == 1 and "P101" in pinned.err
    opened = library.load(artifact)
    library.batch(opened, settings(1), tmp_path / "bare", executor=Here(), ledgers=False)
    ended = tcc("batch", artifact, "--validate", "--out", tmp_path / "bare")
    assert ended.code == 2 and "TCC804" in ended.err
    (tmp_path / "empty").mkdir()
    ended = tcc("batch", artifact, "--validate", "--out", tmp_path / "empty")
    assert ended.code == 2 and "TCC804" in ended.err


@pytest.mark.parametrize(
    "options",
    [
        ["--validate", "--requests", "A"],
        ["--validate", "--shard-size", "2"],
        ["--pin", 64 * "0", "--requests", "A"],
        [],
    ],
)
def test_options_of_the_other_task_are_refused(
    tcc: Tcc, artifact: Path, tmp_path: Path, options: list[str]
) -> None:
    named = [str(artifact) if word == "A" else word for word in options]
    ended = tcc("batch", artifact, "--out", tmp_path / "out", *named)
    assert ended.code == 2
    assert not (tmp_path / "out").exists()
