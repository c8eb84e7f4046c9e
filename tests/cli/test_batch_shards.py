"""A batch in shards: the same bytes by whatever engine, however often it was cut off."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tcc as library
from tcc import batches as folders
from tcc.batches import Batch, PartDamaged, parquet, rows as ndjson
from tcc.batches.making import canonical, shards
from tcc.library.running import run_fields
from tcc_certs.errors import escaped_json
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_runtime.errors import WorkerLost
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.cli.batches import Here, lines, parts, settings
from tests.cli.conftest import Tcc

FORMATS = ["ndjson", "parquet"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> library.Artifact:
    grammar = Path(__file__).parents[2] / "grammars" / "support_refund.tcg"
    path = tmp_path_factory.mktemp("artifact") / "support.tcca"
    library.save(library.compile_file(grammar), path)
    return library.load(path)


def here(opened: library.Artifact, asked: Any, out: Path, **more: Any) -> library.BatchDone:
    """In this process, shards of three."""
    return library.batch(
        opened, asked, out, executor=Here(), **{"shard_size": 3, "started_ms": 7} | more
    )


def test_the_ledger_of_a_row_is_quoted_as_json_whatever_stands_in_it() -> None:
    rng = random.Random(5)
    texts = [chr(code) for code in range(0x300)] + ["\u2028", "\ufeff", "\U0001f600", "\\n", '\\"']
    for _ in range(300):
        texts.append("".join(rng.choices(' "\\\n\t\x7fabc{}[]:,\xe9', k=rng.randint(0, 30))))
    for text in texts:
        said = escaped_json(json.dumps(text, ensure_ascii=False)).encode()
        row = ndjson.RunRow(number=3, fields={"a": 1}, run='{"a": 1}', ledger=text.encode())
        line = b'{"number": 3, "a": 1, "ledger": ' + said + b"}\n"
        for before in (b"", b"one that was longer" * 40):
            assert _rendered(row, before) == line
    bare = ndjson.RunRow(number=3, fields={"a": 1}, run='{"a": 1}', ledger=None)
    assert _rendered(bare, b"before") == b'{"number": 3, "a": 1}\n'


def _rendered(row: ndjson.RunRow, before: bytes) -> bytes:
    """The line of a row, in the place of another one."""
    line = bytearray(before)
    ndjson._render(row, line)
    return bytes(line)


def test_the_result_of_a_row_is_the_json_of_its_fields(opened: library.Artifact) -> None:
    for asked in (*settings(4), *settings(2, 9, top=3, race="coupled")):
        run = search(opened, asked)
        named = replace(run, after=("\u2028 \x7f\xad\x1f", 'read(part="\\u202e")', "\U0001f600"))
        for each in (run, named):
            row = ndjson.row_of(7, each, None)
            assert row.run == escaped_json(json.dumps(row.fields, ensure_ascii=False))
            assert json.loads(row.run) == row.fields == run_fields(each)


@pytest.mark.parametrize("form", FORMATS)
def test_one_process_four_threads_and_this_process_make_the_same_bytes(
    opened: library.Artifact, tmp_path: Path, form: Any
) -> None:
    asked = [*settings(8), *settings(2, 9, top=3, race="coupled")]
    here(opened, asked, tmp_path / "here", part_format=form)
    due = parts(tmp_path / "here")
    ending = "parquet" if form == "parquet" else "ndjson"
    assert list(due) == [".lock", "batch.json", *(f"part-{n:08d}.{ending}" for n in range(1, 5))]
    more: dict[str, Any] = {"shard_size": 3, "part_format": form, "started_ms": 7}
    for processes in (1, 4):
        library.batch(opened, asked, tmp_path / str(processes), processes=processes, **more)
        assert parts(tmp_path / str(processes)) == due
    with ThreadPoolExecutor(3) as threads:
        library.batch(opened, asked, tmp_path / "threads", executor=threads, **more)
    assert parts(tmp_path / "threads") == due


def test_an_executor_of_the_standard_library_makes_them_too(
    opened: library.Artifact, tmp_path: Path
) -> None:
    import multiprocessing

    here(opened, settings(4), tmp_path / "here")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        library.batch(
            opened, settings(4), tmp_path / "pool", executor=executor, shard_size=3, started_ms=7
        )
    assert parts(tmp_path / "pool") == parts(tmp_path / "here")


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_the_results_and_ledgers_of_runs_alone(
    opened: library.Artifact, tmp_path: Path, form: Any
) -> None:
    asked = settings(4, top=2)
    here(opened, asked, tmp_path / "out", part_format=form)
    module = parquet if form == "parquet" else ndjson
    names = sorted((tmp_path / "out").glob("part-*"))
    rows = [row for name in names for row in module.read(name)]
    assert [row.number for row in rows] == [1, 2, 3, 4]
    for row, each in zip(rows, asked, strict=True):
        ledger = tmp_path / "alone"
        run = library.search(
            opened, seed=each.seed, top=2, ledger=ledger, overwrite=True, started_ms=7
        )
        due = library.to_json(run)
        assert row.fields == {name: due[name] for name in due if not name.startswith("format")}
        assert row.ledger == ledger.read_bytes()


def test_columns_can_be_filtered_by_any_reader_of_parquet(
    opened: library.Artifact, tmp_path: Path
) -> None:
    here(opened, settings(3), tmp_path / "out", part_format="parquet")
    table = pq.read_table(tmp_path / "out" / "part-00000001.parquet")
    assert table["claim_type"].to_pylist() == ["RunWiseExact"] * 3
    assert table["seed"].to_pylist() == [each.seed.hex() for each in settings(3)]
    ledger = table["ledger"][1].as_py()
    assert opened.path is not None
    assert library.validate(ledger, opened.path).head == table["ledger_head"][1].as_py()


def test_a_second_time_nothing_is_made_and_nothing_changes(
    opened: library.Artifact, tmp_path: Path
) -> None:
    first = here(opened, settings(7), tmp_path / "out")
    before = parts(tmp_path / "out")
    again = here(opened, settings(7), tmp_path / "out", started_ms=None)
    assert (first.made, first.kept, first.certified) == (3, 0, 7)
    assert (again.made, again.kept, again.redone, again.certified) == (0, 3, 0, 7)
    assert parts(tmp_path / "out") == before


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("how", ["cut", "altered", "emptied", "of another shard", "a link to it"])
def test_a_part_that_is_not_as_it_was_written_is_made_again(
    opened: library.Artifact, tmp_path: Path, form: Any, how: str
) -> None:
    here(opened, settings(7), tmp_path / "out", part_format=form)
    due = parts(tmp_path / "out")
    name = f"part-00000002.{form}"
    path = tmp_path / "out" / name
    whole = due[name]
    if how == "a link to it":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").write_bytes(whole[:-1])
    else:
        data = {
            "cut": whole[: len(whole) // 2],
            "altered": whole.replace(b"RunWiseExact", b"RunWiseExakt", 1),
            "emptied": b"",
            "of another shard": due[f"part-00000001.{form}"],
        }[how]
        if how == "altered" and form == "parquet":
            middle = len(whole) // 2
            data = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.write_bytes(data)
    done = here(opened, settings(7), tmp_path / "out", part_format=form)
    assert (done.made, done.kept, done.redone) == (0, 2, 1)
    assert parts(tmp_path / "out") == due


@pytest.mark.parametrize("form", FORMATS)
def test_a_part_of_other_runs_under_the_seal_of_the_shard_is_made_again(
    opened: library.Artifact, tmp_path: Path, form: Any
) -> None:
    here(opened, settings(7), tmp_path / "out", part_format=form)
    due = parts(tmp_path / "out")
    module = parquet if form == "parquet" else ndjson
    path = tmp_path / "out" / f"part-00000002.{form}"
    rows, batch = list(module.read(path)), folders.read(tmp_path / "out")
    (shard,) = (each for each in shards(batch, settings(7)) if each.number == 2)
    doubled = [rows[0], replace(rows[0], number=5), rows[2]]
    for other in (doubled, [rows[0], rows[2], rows[1]], rows[:2], [*rows, rows[0]]):
        with path.open("wb") as file:
            module.write(file, other, batch.identity, shard.inputs)
        done = here(opened, settings(7), tmp_path / "out", part_format=form)
        assert (done.made, done.kept, done.redone) == (0, 2, 1)
        assert parts(tmp_path / "out") == due


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_in_the_place_of_a_part_leads_to_is_not_written(
    opened: library.Artifact, tmp_path: Path, overwrite: bool, there: bool
) -> None:
    here(opened, settings(7), tmp_path / "out")
    due, path = parts(tmp_path / "out"), tmp_path / "out" / "part-00000002.ndjson"
    path.unlink()
    path.symlink_to(tmp_path / "mine")
    if there:
        (tmp_path / "mine").write_bytes(b"kept")
    here(opened, settings(7), tmp_path / "out", overwrite=overwrite)
    assert parts(tmp_path / "out") == due and not path.is_symlink()
    assert (tmp_path / "mine").exists() == there
    assert not there or (tmp_path / "mine").read_bytes() == b"kept"


@pytest.mark.parametrize("name", ["part-00000002.ndjson", "batch.json", ".lock"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing"])
@pytest.mark.sampled(4)
def test_what_is_no_file_in_the_place_of_one_is_named(
    tcc: Tcc, artifact: Path, tmp_path: Path, name: str, kind: str
) -> None:
    asked = lines(tmp_path / "asked", settings(4))
    command = ("batch", artifact, "--requests", asked, "--out", tmp_path / "out")
    command = (*command, "--processes", 1, "--shard-size", 2)
    assert tcc(*command).code == 0
    path = tmp_path / "out" / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nothing")
    ended = tcc(*command)
    if (name, kind) in ((".lock", "pipe"), ("part-00000002.ndjson", "link to nothing")):
        assert ended.code == 0
    else:
        assert ended.code == 2 and path.name in ended.err and "Traceback" not in ended.err
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_every_byte_of_a_part_counts_or_changes_nothing_that_is_read(
    opened: library.Artifact, tmp_path: Path, form: Any
) -> None:
    here(opened, settings(2), tmp_path / "out", part_format=form)
    path = tmp_path / "out" / f"part-00000001.{form}"
    module = parquet if form == "parquet" else ndjson
    whole, due = path.read_bytes(), list(module.read(path))
    refused = tried = 0
    for at in range(0, len(whole), 1 + len(whole) // 400):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        tried += 1
        try:
            assert list(module.read(path)) == due
        except PartDamaged:
            refused += 1
    # The rest is the name of what wrote a Parquet file, and fields that nobody reads.
    assert refused > (0.9 if form == "parquet" else 0.999) * tried


def test_rows_under_the_seal_of_others_are_refused(
    opened: library.Artifact, tmp_path: Path
) -> None:
    here(opened, settings(3), tmp_path / "out", part_format="parquet")
    path = tmp_path / "out" / "part-00000001.parquet"
    sealed = {b"tcc.batch.part": pq.read_metadata(path).metadata[b"tcc.batch.part"]}
    whole = pq.read_table(path)

    def put(rows: pa.Table) -> None:
        with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata(sealed)

    put(whole)
    assert len(list(parquet.read(path))) == 3
    for other in (whole.slice(0, 2), whole.take([1, 0, 2]), whole.drop_columns(["seed"])):
        put(other)
        with pytest.raises(PartDamaged):
            list(parquet.read(path))
    column = pa.array([b"x", b"y", b"z"], pa.binary())
    at = whole.schema.get_field_index("ledger")
    put(whole.set_column(at, "ledger", column))
    with pytest.raises(PartDamaged, match="its rows are not those of its seal"):
        list(parquet.read(path))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"asked": settings(8)}, "its requests is"),
    ({"asked": settings(7, top=2)}, "its requests is"),
    ({"shard_size": 4}, "its shard_size is 3, and not 4"),
    ({"part_format": "parquet"}, "its part_format is ndjson, and not parquet"),
    ({"ledgers": False}, "its ledgers is True, and not False"),
    ({"started_ms": 8}, "its started_ms is 7, and not 8"),
]


@pytest.mark.parametrize(("other", "what"), REFUSED)
def test_a_folder_of_another_batch_is_refused_and_left_as_it_is(
    opened: library.Artifact, tmp_path: Path, other: dict[str, Any], what: str
) -> None:
    here(opened, settings(7), tmp_path / "out")
    before = parts(tmp_path / "out")
    more = {name: value for name, value in other.items() if name != "asked"}
    asked = other.get("asked", settings(7))
    with pytest.raises(library.BatchError, match=what) as refused:
        here(opened, asked, tmp_path / "out", **more)
    assert refused.value.code == "TCC802"
    assert parts(tmp_path / "out") == before
    done = here(opened, asked, tmp_path / "out", overwrite=True, **more)
    assert (done.made, done.kept, done.redone) == (done.batch.parts, 0, 0)


def test_a_batch_of_another_artifact_is_refused(opened: library.Artifact, tmp_path: Path) -> None:
    here(opened, settings(2), tmp_path / "out")
    other = library.compile_text("""grammar g version "1"

tool a

plan = a{1,3}
""")
    with pytest.raises(library.BatchError, match=r"TCC802: .* its artifact is"):
        here(other, settings(2), tmp_path / "out")


@pytest.mark.parametrize("head", [b"", b"{", b"[]\n", b"{}", b'{"runs":1}\n', b"[" * 100_000])
def test_a_damaged_head_is_named_and_not_overwritten(
    opened: library.Artifact, tmp_path: Path, head: bytes
) -> None:
    here(opened, settings(2), tmp_path / "out")
    (tmp_path / "out" / "batch.json").write_bytes(head)
    with pytest.raises(library.BatchError, match=r"batch\.json: TCC804"):
        here(opened, settings(2), tmp_path / "out")
    assert (tmp_path / "out" / "batch.json").read_bytes() == head


HEAD = Batch(
    artifact="0" * 64,
    verified=True,
    requests="1" * 64,
    runs=5,
    shard_size=2,
    part_format="ndjson",
    ledgers=True,
    started_ms=1,
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"runs":5', b'"runs":-5'),
        (b'"runs":5', b'"runs":"5"'),
        (b'"shard_size":2', b'"shard_size":0'),
        (b'"ledgers":true', b'"ledgers":1'),
        (b"0" * 64, b"0" * 63),
        (b"ndjson", b"csv"),
        (b'"1.0"', b'"2.0"'),
    ],
)
def test_a_head_with_a_value_out_of_its_range_is_refused(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    path = tmp_path / "batch.json"
    path.write_bytes(HEAD.head())
    assert folders.read(tmp_path) == HEAD
    path.write_bytes(HEAD.head().replace(old, new))
    with pytest.raises(library.BatchError, match="TCC804"):
        folders.read(tmp_path)


def test_two_batches_at_once_do_not_write_one_folder(
    opened: library.Artifact, tmp_path: Path
) -> None:
    with folders.hold(tmp_path / "out"), pytest.raises(library.BatchError, match="TCC803"):
        here(opened, settings(2), tmp_path / "out")
    assert here(opened, settings(2), tmp_path / "out").made == 1


def test_what_a_killed_writer_left_is_taken_away(opened: library.Artifact, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    left = tmp_path / "out" / ".part-00000001.ndjson.0123456789abcdef"
    left.write_bytes(b"half")
    (tmp_path / "out" / "mine.txt").write_bytes(b"kept")
    here(opened, settings(2), tmp_path / "out")
    assert not left.exists()
    assert (tmp_path / "out" / "mine.txt").read_bytes() == b"kept"


def test_a_worker_that_does_not_see_the_folder_says_so(
    opened: library.Artifact, tmp_path: Path
) -> None:
    class Elsewhere(Here):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            (tmp_path / "out" / "batch.json").unlink(missing_ok=True)
            return super().submit(fn, *args, **kwargs)

    with pytest.raises(library.BatchError, match="TCC805"):
        library.batch(opened, settings(2), tmp_path / "out", executor=Elsewhere())


def test_requests_that_change_between_both_readings_are_named(tmp_path: Path) -> None:
    from blake3 import blake3

    asked = settings(5)
    hasher = blake3(b"".join(canonical(each) for each in asked))
    batch = Batch(
        artifact="0" * 64,
        verified=True,
        requests=hasher.hexdigest(),
        runs=5,
        shard_size=2,
        part_format="ndjson",
        ledgers=True,
        started_ms=1,
    )
    assert [shard.first for shard in shards(batch, asked)] == [1, 3, 5]
    for other in (asked[:4], [*asked, asked[0]], asked[::-1], asked * 10):
        with pytest.raises(library.BatchError, match="TCC806"):
            list(shards(batch, other))


def test_the_digest_of_a_shard_tells_every_setting_apart() -> None:
    base = settings(1)[0]
    one = {"seed": base.seed}
    others: list[dict[str, Any]] = [
        {"top": 2},
        {"mode": "surrogate"},
        {"inflate": "2"},
        {"truncate": 3},
        {"max_expansions": 5},
        {"max_seconds": 1.5},
        {"max_seconds": 2},
        {"nonce": b"1"},
        {"after": ("a", "b")},
        {"after": ("a b",)},
        {"opening_salt": bytes(32)},
        {"raw_input_dependent": True},
        {"delta": "0.1"},
        {"atoms": atoms_of([{"mechanism": "laplace", "scale": "2", "sensitivity": "1"}])},
        {"atoms": atoms_of([{"mechanism": "laplace", "scale": "3", "sensitivity": "1"}])},
    ]
    texts = {canonical(base)}
    for other in others:
        if "nonce" in other:
            other = {"client_nonce": other["nonce"]}
        texts.add(canonical(Settings(**one, **other)))
    assert len(texts) == len(others) + 1


def test_no_more_shards_are_under_way_than_twice_the_workers(
    opened: library.Artifact, tmp_path: Path
) -> None:
    taken: list[int] = []
    waiting: list[int] = []

    class Watched(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            taken.append(args[3].number)
            future = super().submit(fn, *args, **kwargs)
            waiting.append(1)
            future.add_done_callback(lambda _: waiting.pop())
            assert len(waiting) <= 4
            return future

    with Watched(2) as executor:
        library.batch(opened, settings(20), tmp_path / "o", executor=executor, shard_size=1)
    assert taken == list(range(1, 21))


KILLED = """
import sys, tcc
from tests.cli.batches import settings
tcc.batch(tcc.load(sys.argv[1]), settings(200, top=8), sys.argv[2], processes=2, shard_size=10,
          started_ms=7, part_format=sys.argv[3])
print("finished")
"""


def begun(opened: library.Artifact, out: Path, form: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(opened.path), str(out), form],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
    )


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for path in found for word in path.read_text().split()]


def wait_for_parts(out: Path, number: int, child: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while len(list(out.glob("part-*"))) < number:
        assert time.monotonic() < until and child.poll() is None
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers by /proc")
@pytest.mark.parametrize("form", FORMATS)
def test_a_killed_worker_and_a_killed_batch_lose_nothing(
    opened: library.Artifact, tmp_path: Path, form: Any
) -> None:
    out = tmp_path / "out"
    child = begun(opened, out, form)
    wait_for_parts(out, 2, child)
    os.kill(children(child.pid)[0], signal.SIGKILL)
    wait_for_parts(out, 6, child)
    child.kill()
    child.communicate(timeout=60)
    assert len(list(out.glob("part-*"))) < 20
    done = library.batch(
        opened, settings(200, top=8), out, processes=2, shard_size=10, part_format=form
    )
    assert done.redone == 0 and done.kept >= 6 and done.made + done.kept == 20
    with ThreadPoolExecutor(1) as one:
        library.batch(
            opened,
            settings(200, top=8),
            tmp_path / "due",
            executor=one,
            shard_size=10,
            started_ms=7,
            part_format=form,
        )
    assert parts(out) == parts(tmp_path / "due")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers by /proc")
def test_a_batch_whose_worker_is_killed_goes_on_to_its_end(
    opened: library.Artifact, tmp_path: Path
) -> None:
    child = begun(opened, tmp_path / "out", "ndjson")
    wait_for_parts(tmp_path / "out", 1, child)
    os.kill(children(child.pid)[0], signal.SIGKILL)
    said, _ = child.communicate(timeout=120)
    assert (said, child.returncode) == ("finished\n", 0)
    assert len(list((tmp_path / "out").glob("part-*"))) == 20


def end_of_process(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_shard_that_kills_every_worker_ends_the_batch(
    opened: library.Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcc.batches.making.make_part", end_of_process)
    with pytest.raises(WorkerLost, match="signal 9, 3 times over one piece"):
        library.batch(opened, settings(2), tmp_path / "out", processes=1)


def test_a_broken_executor_of_the_caller_is_an_error_and_not_a_wait(
    opened: library.Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import multiprocessing

    monkeypatch.setattr("tcc.batches.making.make_part", end_of_process)
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(1, mp_context=context)
    with executor, pytest.raises(WorkerLost, match="takes no more work"):
        library.batch(opened, settings(2), tmp_path / "out", executor=executor)


def test_a_full_disk_is_named_and_what_is_finished_stays(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    asked = lines(tmp_path / "asked", [*settings(3), *settings(3, 4, top=40)])
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tcc", "batch", str(artifact), "--requests", str(asked)]
    command += ["--out", str(out), "--processes", "1", "--shard-size", "3"]
    limited = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (100_000, 100_000))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        command, env=environment, preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "part-00000002.ndjson: TCC808: it cannot be written: File too large" in ended.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        ".lock",
        "batch.json",
        "part-00000001.ndjson",
    ]
    again = tcc("batch", artifact, "--requests", asked, "--out", out, "--shard-size", 3, "--json")
    assert again.code == 0
    assert (again.json["made"], again.json["kept"]) == (1, 1)


def test_the_command_makes_and_goes_on(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    asked = lines(tmp_path / "asked", settings(5))
    command = ("batch", artifact, "--requests", asked, "--out", tmp_path / "out", "--processes", 1)
    first = tcc(*command, "--shard-size", 2, "--started-ms", 7, "--json")
    assert first.code == 0
    due = {"runs": 5, "certified": 5, "parts": 3, "made": 3, "kept": 0, "redone": 0}
    assert {name: first.json[name] for name in due} == due
    assert (first.json["format"], first.json["started_ms"]) == ("tcc.batch", 7)
    path = tmp_path / "out" / "part-00000003.ndjson"
    path.write_bytes(path.read_bytes()[:-2])
    again = tcc(*command, "--shard-size", 2, "--json")
    assert again.code == 0
    assert (again.json["kept"], again.json["redone"]) == (2, 1)
    assert "1 of the parts that were there had been cut off or altered" in again.err


def test_a_run_without_a_claim_is_exit_code_2(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    rows = [{"seed": "11" * 32}, {"seed": "22" * 32, "max_expansions": 1}]
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("batch", artifact, "--requests", asked, "--out", tmp_path / "o", "--processes", 1)
    for _ in range(2):
        ended = tcc(*command, "--format", "ndjson", "--no-ledgers", "--json")
        assert (ended.code, ended.json["certified"]) == (2, 1)


def test_a_plain_batch_and_one_in_shards_do_not_share_a_folder(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    asked = lines(tmp_path / "asked", settings(1))
    command = ("batch", artifact, "--requests", asked, "--processes", 1, "--overwrite", "--out")
    assert tcc(*command, tmp_path / "plain").code == 0
    ended = tcc(*command, tmp_path / "plain", "--shard-size", 2)
    assert ended.code == 2 and "TCC802" in ended.err
    assert tcc(*command, tmp_path / "shards", "--shard-size", 2).code == 0
    ended = tcc(*command, tmp_path / "shards")
    assert ended.code == 2 and "TCC802" in ended.err


def test_what_the_artifact_does_not_allow_is_named_before_any_run(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    rows = [{"seed": "11" * 32}, {"seed": "22" * 32, "after": ["nothing"]}]
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    ended = tcc("batch", artifact, "--requests", asked, "--out", out, "--shard-size", 1)
    assert ended.code == 2 and "request 2: TCC902: after: expected one of classify" in ended.err
    assert not out.exists()


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_requests_from_a_table_are_those_of_lines(opened: library.Artifact, tmp_path: Path) -> None:
    seeds = [each.seed for each in settings(4)]
    rows = {
        "seed": [seed.hex() for seed in seeds],
        "top": [1, None, 3, None],
        "max_seconds": [None, 60.0, None, None],
        "after": pa.array([None, None, ["classify"], []], pa.list_(pa.string())),
    }
    by_row = table(tmp_path / "asked.parquet", **rows)
    by_line = tmp_path / "asked"
    asked = [
        {"seed": seeds[0].hex(), "top": 1},
        {"seed": seeds[1].hex(), "max_seconds": 60.0},
        {"seed": seeds[2].hex(), "top": 3, "after": ["classify"]},
        {"seed": seeds[3].hex()},
    ]
    by_line.write_text("".join(json.dumps(row) + "\n" for row in asked))
    here(opened, by_row, tmp_path / "rows")
    here(opened, by_line, tmp_path / "lines")
    assert parts(tmp_path / "rows") == parts(tmp_path / "lines")
    raw = table(tmp_path / "raw.parquet", seed=pa.array(seeds, pa.binary(32)))
    assert [each.seed for each in tcc_requests(raw)] == seeds


def tcc_requests(path: Path) -> list[Settings]:
    from tcc.batches.making import read_file

    return list(read_file(path))


SEED = ["11" * 32]
TABLES: list[tuple[dict[str, Any], str]] = [
    ({"top": [1]}, "TCC903: there is no column 'seed'"),
    ({"seed": SEED, "zzz": [1]}, "TCC903: there is no setting 'zzz'"),
    ({"seed": SEED, "top": ["1"]}, "TCC903: column 'top' is of int64, not of string"),
    ({"seed": SEED, "top": [1.0]}, "TCC903: column 'top' is of int64, not of double"),
    ({"seed": [7]}, "TCC903: column 'seed' is of string, not of int64"),
    ({"seed": SEED, "after": ["a"]}, "TCC903: column 'after' is of list<element: string>"),
    ({"seed": [*SEED, "zz"]}, "parquet:2: TCC902: seed: pairs of hexadecimal digits"),
    ({"seed": [*SEED, None]}, "parquet:2: TCC902: an object with a seed"),
    ({"seed": [*SEED * 2000, "11"]}, "parquet:2001: TCC902: seed: expected 32 bytes"),
    ({"seed": SEED, "top": [0]}, "parquet:1: TCC902: top: expected 1 or more"),
    ({"seed": SEED, "max_seconds": [float("nan")]}, "parquet:1: TCC902: max_seconds"),
]


@pytest.mark.parametrize(("columns", "what"), TABLES)
def test_a_bad_table_is_named_by_its_column_or_row(
    tcc: Tcc, artifact: Path, tmp_path: Path, columns: dict[str, Any], what: str
) -> None:
    asked = table(tmp_path / "asked.parquet", **columns)
    ended = tcc("batch", artifact, "--requests", asked, "--out", tmp_path / "out")
    assert ended.code == 2
    assert what in ended.err
    assert not (tmp_path / "out").exists()


def test_a_table_that_is_cut_off_or_none_is_named(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    asked = table(tmp_path / "asked.parquet", seed=SEED * 10)
    whole = asked.read_bytes()
    for data in (b"", b"PAR1", whole[:-9], whole[len(whole) // 2 :], b"{}\n" * 100):
        asked.write_bytes(data)
        ended = tcc("batch", artifact, "--requests", asked, "--out", tmp_path / "out")
        assert ended.code == 2 and "asked.parquet: TCC903: no Parquet" in ended.err


@pytest.mark.parametrize(
    ("package", "options", "extra"),
    [
        ("pyarrow", ["--format", "parquet"], "parquet"),
        ("distributed", ["--dask", "local"], "dask"),
    ],
)
def test_an_extra_that_is_not_there_is_named(
    tcc: Tcc, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    package: str, options: list[str], extra: str,
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, package, None)
    asked = lines(tmp_path / "asked", settings(1))
    ended = tcc("batch", artifact, "--requests", asked, "--out", tmp_path / "out", *options)
    assert ended.code == 2
    due = f"TCC807: install the extra: pip install 'tcc[{extra}]'"
    assert due in ended.err
