"""The ledger as bytes: canonical, chained, whole lines, and honest about a disk that fails."""

from __future__ import annotations

import errno
import json
import os
from copy import copy
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from tcc_certs.formats.codec import blake, encode
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.race.digest import uuid7
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError
from tcc_runtime.item import LEFT
from tcc_runtime.ledger.lines import Contexts, _cut, node_id, stamp_of
from tcc_runtime.ledger.recorder import Recorder, open_line
from tcc_runtime.ledger.sinks import HashOnly, LedgerFile, MemorySink
from tcc_runtime.ledger.steps import open_record
from tcc_runtime.run import search
from tcc_runtime.settings.modes import terms_of
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import tables_of
from tests.oracle.cores import call, depth, make_core
from tests.runtime.graphs import build, free_core, vec_core, vec_rows

SETTINGS = Settings(seed=bytes(range(32)), race="coupled", top=12)
FREE = [(True, []), *((True, [(a, q) for a in range(3)]) for q in range(6))]


@pytest.fixture(scope="module")
def artifact():
    return load(build(vec_core(), vec_rows()))


def run_into(sink, artifact, settings=SETTINGS, **options):
    return search(artifact, settings, Recorder(sink, started_ms=1_700_000_000_000, **options))


def memory(artifact, settings=SETTINGS, **options) -> bytes:
    sink = MemorySink()
    run_into(sink, artifact, settings, **options)
    return bytes(sink.data)


def test_every_line_is_what_the_canonical_writer_writes(artifact):
    head = bytes(32)
    for line in memory(artifact).splitlines(keepends=True):
        record = json.loads(line)
        assert line == encode(record) + b"\n"
        link = record.pop("~")
        head = blake(head + encode(record))
        assert link == head.hex()


def test_the_head_does_not_depend_on_the_sink(artifact, tmp_path):
    path = tmp_path / "run.ndjson"
    kept = MemorySink()
    heads = {run_into(sink, artifact).ledger_head for sink in (HashOnly(), kept, LedgerFile(path))}
    assert heads == {json.loads(bytes(kept.data).splitlines()[-1])["~"]}
    assert path.read_bytes() == bytes(kept.data)


def test_the_run_id_binds_the_header(artifact):
    record = json.loads(memory(artifact).splitlines()[0])
    link, run_id = record.pop("~"), record.pop("run_id")
    assert link
    assert run_id == uuid7(1_700_000_000_000, blake(encode(record)))


@pytest.mark.parametrize("version", ["plain", "run_limits", '","run_limits":{"', "\u00e9\u2028\\"])
def test_open_is_what_the_canonical_writer_makes_of_its_record(version, monkeypatch):
    artifact = load(build(vec_core(), vec_rows()))
    manifest = replace(artifact.manifest, version=version)
    monkeypatch.setattr(Artifact, "manifest", manifest)
    told = [
        {},
        {"top": 3},
        {"top": 3, "max_expansions": 9, "max_seconds": 2.5},
        {"beacon": b"one"},
        {"beacon": b"two", "client_nonce": b"n"},
        {"mode": "surrogate", "inflate": "1.5", "race": "rest"},
        {"mode": "fallback", "tau": "0.25"},
        {"opening_salt": bytes(32)},
        {},
    ]
    for number, options in enumerate(told * 2):
        settings = Settings(seed=bytes([number]) * 32, **options)
        terms = terms_of(artifact, settings)
        record = open_record(artifact, terms, settings.commitment, number)
        record["run_id"] = uuid7(number, blake(encode(record)))
        assert open_line(artifact, terms, settings.commitment, number) == encode(record)


def test_the_seed_is_in_close_unless_withheld(artifact):
    close = json.loads(memory(artifact).splitlines()[-1])
    assert close["seed"] == SETTINGS.seed.hex()
    assert len(close["opening_salt"]) == 64
    withheld = json.loads(memory(artifact, withhold=True).splitlines()[-1])
    assert {"seed", "opening_salt"}.isdisjoint(withheld)


def test_a_given_salt_changes_the_commitment_and_stands_in_close(artifact):
    salted = memory(artifact, replace(SETTINGS, opening_salt=bytes(32))).splitlines()
    plain = memory(artifact).splitlines()
    assert json.loads(salted[-1])["opening_salt"] == bytes(32).hex()
    commitments = [json.loads(lines[0])["seed_commitment"] for lines in (salted, plain)]
    assert commitments[0] != commitments[1]


@pytest.mark.parametrize("options", [{"started_ms": -1}, {"started_ms": 1 << 48}])
def test_a_time_that_no_uuid_holds_is_refused(options):
    with pytest.raises(ValueError, match="started_ms"):
        Recorder(HashOnly(), **options)


def test_a_recorder_writes_one_ledger(artifact):
    recorder = Recorder(MemorySink(), started_ms=0)
    search(artifact, SETTINGS, recorder)
    with pytest.raises(ValueError, match="one ledger"):
        search(artifact, SETTINGS, recorder)


def test_texts_beyond_ascii_and_long_prefixes_stay_canonical():
    values = ['"æ\\"\\\\\\n"', '"' + "ü" * 30 + '"', '"\u2028\x7f😀"']
    core = make_core(
        tools=[{"name": "t", "fields": [{"name": "p", "values": values}]}],
        calls=[call(0, (i,)) for i in sorted(range(3), key=lambda i: values[i].encode())],
        plan=["repeat", ["call", {0, 1, 2}], 0],
        statements=[depth(2)],
    )
    edges = [(0, 0), (1, 0), (2, 0)]
    rows = [(True, []), (True, edges), (True, [(a, 1) for a, _ in edges])]
    found = load(build(core, rows))
    ledger = memory(found)
    assert len(list(LedgerReader([ledger]))) == len(ledger.splitlines())
    shown = [json.loads(line).get("ctx_repr", "") for line in ledger.splitlines()]
    assert max(len(text.encode()) for text in shown) <= 48
    assert any(text.startswith("ü") for text in shown)


def test_a_prefix_shows_its_last_three_calls_and_a_leaf_those_of_its_prefix():
    rows = [(True, [])] + [(False, [(0, q), (1, q)]) for q in range(5)]
    ledger = memory(load(build(free_core([1, 2], 5), rows)))
    nodes = [json.loads(line) for line in ledger.splitlines()]
    nodes = {node["node_id"]: node for node in nodes if node["kind"] == "node"}
    for node in nodes.values():
        calls, step = [], node
        while "parent_id" in step:
            calls += [step["call"]] * (step["call"] != "stop")
            step = nodes[step["parent_id"]]
        assert node["ctx_repr"] == " ".join(calls[:3][::-1])


@given(st.text(max_size=70))
def test_a_cut_keeps_the_end_and_whole_characters(text):
    raw = text.encode()
    cut = _cut(raw).encode()
    assert raw.endswith(cut)
    assert len(cut) == len(raw) if len(raw) <= 48 else 45 <= len(cut) <= 48


@given(st.binary(min_size=32, max_size=32), st.integers(0, (1 << 48) - 1))
def test_node_ids_are_uuids_of_time_and_digest(digest, started_ms):
    found = node_id(stamp_of(started_ms), digest.hex())
    assert found == uuid7(started_ms, digest)


def test_an_existing_ledger_is_not_touched(artifact, tmp_path):
    path = tmp_path / "run.ndjson"
    path.write_bytes(b"mine")
    with pytest.raises(LedgerError) as refusal:
        run_into(LedgerFile(path), artifact)
    assert refusal.value.errno == errno.EEXIST
    assert path.read_bytes() == b"mine"


def test_overwriting_puts_a_new_file_in_place(artifact, tmp_path):
    path = tmp_path / "run.ndjson"
    path.write_bytes(b"old")
    with path.open("rb") as other:
        run_into(LedgerFile(path, overwrite=True), artifact)
        assert other.read() == b"old"
    assert path.read_bytes() == memory(artifact)


def test_a_folder_that_is_not_there_is_a_ledger_error(artifact, tmp_path):
    with pytest.raises(LedgerError) as refusal:
        run_into(LedgerFile(tmp_path / "none" / "run.ndjson"), artifact)
    assert refusal.value.errno == errno.ENOENT


def test_short_writes_are_continued(artifact, tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:97])))
    path = tmp_path / "run.ndjson"
    run_into(LedgerFile(path), artifact)
    assert path.read_bytes() == memory(artifact)


@pytest.mark.parametrize("failing", range(4))
def test_a_full_disk_ends_the_run_and_the_prefix_stays(artifact, tmp_path, monkeypatch, failing):
    write, calls = os.write, iter(range(100))

    def full(fd, data):
        if next(calls) >= failing:
            raise OSError(errno.ENOSPC, "no space left")
        return write(fd, bytes(data[:800]))

    monkeypatch.setattr(os, "write", full)
    path = tmp_path / "run.ndjson"
    with pytest.raises(LedgerError) as refusal:
        run_into(LedgerFile(path), artifact)
    assert (refusal.value.errno, refusal.value.path) == (errno.ENOSPC, str(path))
    monkeypatch.undo()
    kept = path.read_bytes()
    assert memory(artifact).startswith(kept)
    reader = LedgerReader([kept])
    assert len(list(reader)) == kept.count(b"\n")


def test_a_failing_fsync_ends_the_run(artifact, tmp_path, monkeypatch):
    def broken(_fd):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(LedgerError) as refusal:
        run_into(LedgerFile(tmp_path / "run.ndjson"), artifact)
    assert refusal.value.errno == errno.EIO


def test_no_file_stays_open(artifact, tmp_path, monkeypatch):
    opened, closed = [], []
    true_open, true_close = os.open, os.close
    monkeypatch.setattr(os, "open", lambda *a, **k: opened.append(true_open(*a, **k)) or opened[-1])
    monkeypatch.setattr(os, "close", lambda fd: closed.append(fd) or true_close(fd))

    def fail(_progress):
        raise ZeroDivisionError

    recorder = Recorder(LedgerFile(tmp_path / "a"), started_ms=0)
    with pytest.raises(ZeroDivisionError):
        search(artifact, SETTINGS, recorder, fail)
    run_into(LedgerFile(tmp_path / "b"), artifact)
    assert set(opened) <= set(closed)
    # What was written before the error is a prefix that reads well.
    assert len(list(LedgerReader([(tmp_path / "a").read_bytes()]))) > 2


@pytest.mark.parametrize(("every", "least", "most"), [(10**6, 3, 3), (5, 10, 60), (0, 40, 99)])
def test_fsync_at_open_at_close_and_when_the_time_has_passed(
    tmp_path, monkeypatch, every, least, most
):
    # One of them is the folder's.
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    seconds = iter(range(10**6))
    sink = LedgerFile(tmp_path / "a", sync_ms=every, clock=lambda: next(seconds) / 1000)
    sink.open()
    sink.sync()
    for _ in range(80):
        sink.write(b"{}\n")
    sink.sync()
    sink.close()
    assert least <= len(synced) <= most
    assert (tmp_path / "a").read_bytes() == b"{}\n" * 80


def test_a_recorder_may_look_at_each_step_before_it_is_written(artifact):
    class Told(Recorder):
        expanded = 0

        def step(self, step, descent):
            self.expanded += step[0][LEFT] is None
            super().step(step, descent)

    sink = MemorySink()
    recorder = Told(sink, started_ms=1_700_000_000_000)
    assert search(artifact, SETTINGS, recorder).expansions == recorder.expanded > 0
    assert bytes(sink.data) == memory(artifact)


def test_of_contexts_some_thousand_are_kept(artifact):
    calls = tables_of(artifact, "R1", "1").call
    kept, one = Contexts(), calls(0)
    others = [replaced(one, f"t{number}") for number in range(100)]
    for first in others:
        for second in others:
            assert kept.of((first, second, one)) == f'"{first.text} {second.text} {one.text}"'
            assert len(kept[(second, first)]) < 2 and len(kept) <= 4096
    one_place = kept[()]
    for number in range(9999):
        assert one_place[replaced(one, f"t{number}")] == f'"t{number}"'
        assert kept[()] is one_place or len(kept) == 1


def replaced(one, text):
    """The same call under another text."""
    other = copy(one)
    other.text = text
    return other


def test_lines_wait_for_each_other_but_not_for_long(artifact):
    class Grouped(MemorySink):
        def __init__(self):
            super().__init__()
            self.groups = []

        def write(self, lines):
            self.groups.append(lines.count(b"\n"))
            super().write(lines)

    artifacts = {cost: load(build(free_core([cost] * 3, 6), FREE)) for cost in (0, 10**9)}
    # In the last run hundreds of leaves are popped in a row.
    for cost, mode, top, least in (
        (10**9, None, 12, 1),
        (10**9, None, 300, 4),
        (0, "fallback", 9999, 10),
    ):
        sink, settings = Grouped(), replace(SETTINGS, top=top, mode=mode, tau="1000")
        run_into(sink, artifacts[cost], settings)
        first, root, *steps, last = sink.groups
        assert (first, root, last) == (1, 1, 1)
        # A leaf waits as a step does; the last one that goes in may have all children of a node.
        assert len(steps) >= least and max(steps) < 192 + 2 + 4
        assert sum(sink.groups) == sink.data.count(b"\n") > 192 * (least - 1)
    # One that is followed is told of a step when its records are written.
    sizes = []
    kept = MemorySink()
    told = lambda _: sizes.append(len(kept.data))  # noqa: E731
    run = search(artifact, SETTINGS, Recorder(kept, started_ms=0), told)
    assert len(set(sizes)) == len(sizes) >= run.expansions
