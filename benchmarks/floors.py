"""Further operations, each compared with a floor or a peer in the same process, in turn.

``python -m benchmarks floors`` prints every row, ``python -m benchmarks.floors NAME..`` some rows.
Each row has its own process.  In it the work and its floor or peer take turns, and the least
processor time of each counts.  The durable row uses the median of wall clock, because it waits for
a disk.  Memory is the peak of a process that does only that work.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from benchmarks.measure import head, machine, peak, row

GRAMMARS = Path(__file__).parents[1] / "grammars"
SESSION = """grammar session version "1"

tool read
tool write

limit depth <= 30000
limit count(write) <= 3
"""
DESK = """grammar desk version "1"

tool note(kind: call | mail)
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)

limit depth <= CALLS
limit count(refund) <= 1
"""
CALLS = 100_000
ROUNDS = 5
_PART = 2_000  # calls of a gate that are timed together

# A row: the work, its figure, the figure of the floor or peer, the goal, and whether it is reached.
Row: TypeAlias = "tuple[str, str, str, str, bool]"


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head("work", "ours", "floor or peer", "to reach", "reached")
    for name in ROWS:
        for cells in _apart(name):
            *texts, reached = cells
            yield row(*texts, "yes" if reached else "**no**")


def _apart(name: str, *more: str) -> Any:
    """Run a row in a new process, and return its output."""
    command = [sys.executable, "-m", "benchmarks.floors", "--json", name, *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def least(
    programs: Mapping[str, Callable[[], Any]],
    rounds: int = ROUNDS,
    before: Callable[[], Any] = lambda: None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """Run programs in turn; return the least processor time and the last result of each.

    Args:
        before: runs before each program and is not timed.
    """
    times: dict[str, float] = dict.fromkeys(programs, float("inf"))
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, program in programs.items():
            results.pop(name, None)
            before()
            gc.collect()
            begin = _used()
            results[name] = program()
            times[name] = min(times[name], _used() - begin)
    return times, results


def _used() -> float:
    """Return the processor time of this process and of its finished children."""
    return time.process_time() + sum(os.times()[2:4])


def narrow() -> Iterator[Row]:
    """Deep session policies with few calls, to the minimal automaton and to a checked file."""
    import pynini

    from benchmarks.compile import minimal, written
    from benchmarks.cores import core_of
    from tcc_certs.formats.codec import encode
    from tcc_certs.policy.reader import core_json
    from tcc_compiler.options import Options
    from tcc_runtime.fastcheck.kernel import check

    def counter(bound: int, *labels: int) -> Any:
        found = pynini.Fst()
        found.add_states(bound + 1)
        found.set_start(0)
        for state in range(bound + 1):
            found.set_final(state)
            for label in (1, 2):
                to = state + (label in labels)
                if to <= bound:
                    found.add_arc(state, pynini.Arc(label, label, 0, to))
        return found

    def peer() -> Any:
        uses = counter(3, 2).arcsort("ilabel")
        return pynini.intersect(counter(30_000, 1, 2), uses).minimize()

    core = core_of(SESSION)
    data = encode(core_json(core))
    options = Options(max_states=10**7, purpose="gate", check=check)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "deep.tcca")
        times, found = least(
            {
                "peer": peer,
                "automaton": lambda: minimal(core),
                "file": lambda: written(data, options, path),
            }
        )
    states = found["automaton"][0].states
    if states != found["peer"].num_states():
        raise ValueError("the automata differ")
    ratio = times["peer"] / times["automaton"]
    what = f"2 tools, depth 30,000, {states:,} states"
    yield (f"{what}: to the automaton", f"{times['automaton']:.3f} s",
           f"OpenFst {times['peer']:.3f} s ({ratio:.2f}x)", "1.5x ahead", ratio >= 1.5)  # fmt: skip
    each = times["file"] / states * 1e6
    yield f"{what}: to a checked artifact", f"{each:.1f} us a state", "", "4 us", each <= 4


def deep() -> Iterator[Row]:
    """Yield the rows about artifacts for gates: sizes by depth, and three tools at depth 10^5."""
    import tcc

    def size(tools: int, depth: int) -> int:
        names = "".join(f"tool t{at}\n" for at in range(tools))
        text = f'grammar deep version "1"\n{names}plan = any*\nlimit depth <= {depth}\n'
        artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
        tcc.save(artifact, path)
        return path.stat().st_size

    depths = (1_000, 10_000, 30_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "deep.tcca")
        sizes = [size(2, depth) for depth in depths]
        three = size(3, 100_000)
    each = [size / depth for size, depth in zip(sizes, depths, strict=True)]
    cells = ", ".join(f"{size / 1e6:.2f}" for size in sizes)
    yield ("`any*` of 2 tools, depth 10^3, 10^4, 3*10^4, for a gate", f"{cells} MB",
           "", "linear", each[-1] <= 1.05 * each[0])  # fmt: skip
    yield ("3 tools, depth 10^5, for a gate", f"{three / 1e6:.1f} MB",
           "", "compiles", True)  # fmt: skip


def wide() -> Iterator[Row]:
    """10^5 states to the file, compared with OpenFst to the automaton."""
    from benchmarks import openfst
    from benchmarks.compile import UNCHECKED, core_bytes, written
    from benchmarks.family import THREE_HUNDRED, TWELVE

    for shape, rounds in ((TWELVE[2], ROUNDS), (THREE_HUNDRED[2], 3)):
        data = core_bytes(shape)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "wide.tcca")

            def file(data: bytes = data, path: Path = path) -> int:
                return len(written(data, UNCHECKED, path))

            times, _ = least(
                {"peer": lambda shape=shape: openfst.best_order(shape), "file": file},  # type: ignore[misc]
                rounds,
                lambda path=path: path.unlink(missing_ok=True),  # type: ignore[misc]
            )
        ratio = times["peer"] / times["file"]
        yield (f"10^5 states to the file, {shape.tools} tools", f"{times['file']:.3f} s",
               f"OpenFst {times['peer']:.3f} s ({ratio:.1f}x)", "4x", ratio >= 4)  # fmt: skip


def session() -> Iterator[Row]:
    """Yield the rows about a session of 10^5 calls: validated, reopened, reported."""
    import orjson

    import tcc
    from tcc.commands.report_command import of_ledger
    from tcc.library.validation import validate as validate_files
    from tcc.pages import page_bytes
    from tcc_certs.kernel import check
    from tcc_certs.session.validation import validate

    with tempfile.TemporaryDirectory() as name:
        compiled, ledger = Path(name, "desk.tcca"), Path(name, "session.ledger")
        make_session(compiled, ledger)
        artifact, checked = tcc.load(compiled), check(compiled.read_bytes())
        key = bytes.fromhex(Path(f"{ledger}.key").read_text())
        data = ledger.read_bytes()

        def validated() -> None:
            found = validate(data, checked, key=key)
            if found.claim_type != "ConformantPrefix":
                raise ValueError(found.summary)

        def floor() -> None:
            for line in data.splitlines():
                orjson.dumps(orjson.loads(line))

        def reopen() -> None:
            tcc.Gate(artifact, ledger=ledger, durable=False).close()

        def files() -> None:
            validate_files(ledger, compiled.read_bytes(), key=key)

        def report() -> None:
            page_bytes(of_ledger(ledger, compiled.read_bytes(), {"key": key}).page)

        times, _ = least(
            {
                "floor": floor,
                "validate": validated,
                "reopen": reopen,
                "files": files,
                "report": report,
            },
            3,
        )
        grown = _apart("validated", str(compiled), str(ledger))
    us = {what: seconds / CALLS * 1e6 for what, seconds in times.items()}
    floor_text = f"orjson {us['floor']:.1f} us a call"
    yield ("validate a session of 10^5 calls", f"{us['validate']:.1f} us a call", floor_text,
           "35 us", us["validate"] <= 35)  # fmt: skip
    yield "the same: memory", f"{grown:.0f} MB", "", "150 MB", grown <= 150
    yield ("reopen a session of 10^5 calls", f"{us['reopen']:.1f} us a call", floor_text,
           "20 us", us["reopen"] <= 20)  # fmt: skip
    # Both times include reading the files and checking the artifact.
    over = times["report"] - times["files"]
    yield ("report of it", f"{times['report']:.2f} s", f"tcc validate {times['files']:.2f} s",
           "validate + 1 s", over <= 1)  # fmt: skip


def make_session(compiled: Path, ledger: Path, calls: int = CALLS) -> None:
    """Write an artifact for gates, and the ledger of a session of `calls` calls."""
    import tcc

    text = DESK.replace("CALLS", str(calls + 8))
    artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
    tcc.save(artifact, compiled)
    with tcc.Gate(artifact, ledger=ledger, durable=False) as gate:
        _notes(gate, calls)


def _notes(gate: Any, calls: int) -> None:
    for _ in range(calls):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.done()


def validated(compiled: str, ledger: str) -> float:
    """Return the peak memory of a validation in megabytes, as in `tcc-certs validate --key`."""
    from tcc_certs.kernel import check
    from tcc_certs.session.validation import validate
    from tcc_certs.verbs.validate import LedgerInput

    key = bytes.fromhex(Path(f"{ledger}.key").read_text())
    validate(LedgerInput(Path(ledger)), check(Path(compiled).read_bytes()), key=key)
    return peak() / 1e6


def gate() -> Iterator[Row]:
    """Yield the rows about `gate.call` and `done`: no ledger file, a ledger on tmpfs, durable."""
    import tcc

    artifact = tcc.compile_text(DESK.replace("CALLS", "40000"), purpose="gate", max_states=10**7)
    shared = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as memory,
        tempfile.TemporaryDirectory() as folder,
        tcc.Gate(artifact) as plain,
        tcc.Gate(artifact, ledger=Path(memory, "l"), durable=False) as on_tmpfs,
        tcc.Gate(artifact, ledger=Path(folder, "l")) as durable,
    ):
        base = sqlite3.connect(":memory:", isolation_level=None)
        base.execute("create table calls (at integer primary key, tool text, arguments text)")

        def inserts() -> None:
            for _ in range(_PART):
                base.execute(
                    "insert into calls (tool, arguments) values (?, ?)",
                    ("note", json.dumps({"kind": "mail"})),
                )

        times, _ = least(
            {
                "floor": inserts,
                "plain": lambda: _notes(plain, _PART),
                "tmpfs": lambda: _notes(on_tmpfs, _PART),
            },
            7,
        )
        us = {what: seconds / _PART * 1e6 for what, seconds in times.items()}
        floor = f"SQLite insert {us['floor']:.1f} us"
        yield ("`gate.call` and `done`, no ledger file", f"{us['plain']:.1f} us", floor, "18 us",
               us["plain"] <= 18)  # fmt: skip
        yield ("the same, a ledger on tmpfs", f"{us['tmpfs']:.1f} us", floor, "24 us",
               us["tmpfs"] <= 24)  # fmt: skip
        synced, called = [], []
        with Path(folder, "floor").open("wb", buffering=0) as file:
            for _ in range(300):
                begin = time.perf_counter()
                file.write(bytes(600))
                os.fdatasync(file.fileno())
                middle = time.perf_counter()
                _notes(durable, 1)
                synced.append(middle - begin)
                called.append(time.perf_counter() - middle)
        one, ours = (median(found) * 1e3 for found in (synced, called))
        base.close()
    yield ("a durable call", f"{ours:.2f} ms", f"one fdatasync {one:.2f} ms ({ours / one:.2f}x)",
           "one fdatasync: within 1.5x", ours <= 1.5 * one)  # fmt: skip


def batch() -> Iterator[Row]:
    """Yield the rows about a run in a batch, compared with plain loops of the same runs.

    The first loop keeps each ledger in memory, and its artifact was read before.  The second loop
    begins as a worker does, with an artifact that was not read before.  The third loop writes the
    same files as a batch: each ledger to a file, and the run's fields as a line of JSON.  Workers
    load modules from cached bytecode, as where `tcc` is installed.
    """
    import tcc
    from tcc.batches.rows import row_of
    from tcc_runtime.artifact.load import load
    from tcc_runtime.ledger.recorder import Recorder
    from tcc_runtime.ledger.sinks import LedgerFile, MemorySink
    from tcc_runtime.run import search
    from tcc_runtime.settings.settings import Settings

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = 2_000  # enough that the start of the worker matters little
    asked = [Settings(seed=at.to_bytes(32, "little"), top=4) for at in range(runs)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.tcca")
        tcc.save(tcc.compile_file(GRAMMARS / "coding_agent.tcg", beta="1"), path)
        artifact = tcc.load(path)
        turn = iter(range(1 << 20))

        def plain(over: Any = artifact) -> None:
            for settings in asked:
                search(over, settings, Recorder(MemorySink(), started_ms=0))

        def unread() -> None:
            plain(load(path, checked=artifact.digest.hex()))

        def kept() -> None:
            out = Path(folder, str(next(turn)))
            out.mkdir()
            with (out / "runs.ndjson").open("wb") as results:
                for at, settings in enumerate(asked):
                    sink = LedgerFile(out / f"{at}.ledger")
                    run = search(artifact, settings, Recorder(sink, started_ms=0))
                    results.write(row_of(at, run, None).run.encode() + b"\n")

        def rows(many: int = runs) -> None:
            out = Path(folder, str(next(turn)))
            tcc.batch(artifact, asked[:many], out, shard_size=500, started_ms=0, processes=1)

        programs = {
            "plain": plain,
            "unread": unread,
            "kept": kept,
            "batch": rows,
            "start": lambda: rows(1),
        }
        times, _ = least(programs, 2)
    us = {what: seconds / runs * 1e6 for what, seconds in times.items()}
    floor = (
        f"plain loop {us['plain']:.0f} us, of an artifact that nobody has read {us['unread']:.0f}, "
        f"with files {us['kept']:.0f}"
    )
    yield ("a batch row", f"{us['batch']:.0f} us ({us['start']:.0f} of it a batch of one run)",
           floor, "950 us, or 1.1 of the loop",
           us["batch"] <= max(950, 1.1 * us["plain"]))  # fmt: skip


def lints() -> Iterator[Row]:
    """Lint and diff of 10^5 states, compared with compiling."""
    import tcc
    from benchmarks.family import TWELVE
    from tcc.library.plan_questions import diff

    shape, options = TWELVE[2], {"max_states": 10**7}
    text = shape.text()
    narrower = text.replace(f"limit depth <= {shape.depth}", f"limit depth <= {shape.depth - 1}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "family.tcg")
        file.write_text(text)
        one, other = (tcc.compile_text(each, **options) for each in (text, narrower))
        times, _ = least(
            {
                "compile": lambda: tcc.compile_text(text, **options),
                "lint": lambda: tcc.lint(file, **options),
                "diff": lambda: diff(one, other),
            },
            3,
        )
    for name in ("lint", "diff"):
        ratio = times[name] / times["compile"]
        yield (f"{name}, 10^5 states", f"{times[name]:.2f} s ({ratio:.1f}x)",
               f"compile {times['compile']:.2f} s", "3x compile", ratio <= 3)  # fmt: skip


def core() -> Iterator[Row]:
    """Yield the row about `check --core` of github_triage, compared with `check`."""
    from tcc_certs.corecheck.check import check_core
    from tcc_certs.kernel import check
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import compile_file

    data = compile_file(GRAMMARS / "github_triage.tcg", Options()).artifact
    if data is None:
        raise ValueError("github_triage is refused")
    times, _ = least(
        {"check": lambda: check(data), "core": lambda: check_core(check(data))}, 2 * ROUNDS
    )
    ratio = times["core"] / times["check"]
    yield ("`check --core`, github_triage", f"{times['core'] * 1e3:.0f} ms ({ratio:.1f}x)",
           f"check {times['check'] * 1e3:.0f} ms", "4x", ratio <= 4)  # fmt: skip


def editor() -> Iterator[Row]:
    """Yield the rows about a keystroke in a grammar of 2,000 lines, over stdio; wall clock."""
    from benchmarks.editor import measured, most

    for paused, when in ((False, "typed on"), (True, "after a pause")):
        for name, times in measured(paused).items():
            goal = 50 if name == "completion" else 100
            half, nearly = median(times) * 1e3, most(times) * 1e3
            yield (f"editor, 2,000 lines, {when}: {name}",
                   f"median {half:.0f} ms, 95 % {nearly:.0f} ms", "", f"{goal} ms",
                   nearly <= goal)  # fmt: skip


def startup() -> Iterator[Row]:
    """Yield the rows about `tcc compile` of four lines, compared with an empty process."""
    from benchmarks.startup import GRAMMAR

    with tempfile.TemporaryDirectory() as folder:
        grammar = Path(folder, "g.tcg")
        grammar.write_text(GRAMMAR)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        commands = {
            "floor": ["-c", "pass"],
            "ours": ["-m", "tcc", "compile", str(grammar)],
        }
        wall = dict.fromkeys(commands, float("inf"))
        cpu = dict.fromkeys(commands, float("inf"))
        for _ in range(15):
            for name, arguments in commands.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                begin = time.perf_counter()
                subprocess.run(
                    [sys.executable, *arguments], env=environment, capture_output=True, check=True
                )
                wall[name] = min(wall[name], time.perf_counter() - begin)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                cpu[name] = min(cpu[name], used)
    yield ("`tcc compile` of four lines", f"{wall['ours']:.3f} s, processor {cpu['ours']:.3f}",
           f"`python -c pass` {wall['floor']:.3f} s", "0.25 s", wall["ours"] <= 0.25)  # fmt: skip


ROWS: dict[str, Callable[[], Iterator[Row]]] = {
    "narrow": narrow,
    "deep": deep,
    "wide": wide,
    "session": session,
    "gate": gate,
    "batch": batch,
    "lints": lints,
    "core": core,
    "editor": editor,
    "startup": startup,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--json"]:
        name, *more = sys.argv[2:]
        found: Any = validated(*more) if name == "validated" else list(ROWS[name]())
        print(json.dumps(found))
    else:
        for name in sys.argv[1:]:
            for cells in _apart(name):
                print(row(*cells), flush=True)
