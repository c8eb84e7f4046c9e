"""From a grammar to its minimal automaton and to the file, compared with OpenFst and automata-lib.

The front end has a separate table and is left out on both sides.  Ours starts from the resolved
core, the peers from a Python program that builds acceptors.  "Automaton" ends at the minimal
automaton.  "File" adds counts, race counts, bounds, digests and writing to disk.  "Checked" adds
the pure kernel's check of the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import dfa, openfst
from benchmarks.cores import core_of
from benchmarks.family import THREE_HUNDRED, TWELVE, Shape
from benchmarks.measure import head, machine, ratio, row, side_by_side
from tcc_certs.formats.artifact import read_artifact, unpack_limbs
from tcc_certs.formats.codec import encode
from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import core_json, read_core
from tcc_compiler.automata.constraint.apply import constrain
from tcc_compiler.automata.letters import Letters, join_calls, partition
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.automata.table import Table
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tcc_compiler.relax.attempts import kept_parts
from tcc_compiler.resources import Guard

ROOMY = Options(max_states=10_000_000)
UNCHECKED = Options(max_states=10_000_000, check=lambda _: None)
# With at least this many edges the slower programs would take minutes, and are left out.
_LONG = 1_000_000
COLUMNS = ("tools", "states", "edges", "automaton", "file", "checked", "OpenFst", "as written",
           "at once", "automata-lib", "automaton / OpenFst", "file / OpenFst", "as written",
           "at once", "automata-lib")  # fmt: skip


def minimal(core: Core) -> tuple[Table, Letters]:
    """Return the minimal automaton of a core, and its letters."""
    kept = join_calls(core)
    letters = partition(kept, kept_parts(core, ()))
    guard = Guard(ROOMY)
    guard.enter("the plan expression", "plan")
    found = constrain(kept, letters, explore(kept, letters, guard), guard)
    if not isinstance(found, Table):
        raise ValueError("the plans are not finitely many")
    return found, letters


def core_bytes(shape: Shape) -> bytes:
    """Return the bytes of the core of a shape's grammar."""
    return encode(core_json(core_of(shape.text())))


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head(*COLUMNS)
    for shape in (*TWELVE, *THREE_HUNDRED):
        with tempfile.TemporaryDirectory() as folder:
            yield compared(shape, Path(folder, "family.tcca"))


def compared(shape: Shape, path: Path) -> str:
    """Return the row of one shape by every program; check that all answers are equal."""
    data = core_bytes(shape)
    core = read_core(data)
    found, letters = minimal(core)
    sizes = np.array([len(group) for group in letters.calls])
    edges = int(sizes[found.letter].sum())
    programs: dict[str, Callable[[], Any]] = {
        "automaton": lambda: minimal(core),
        "file": lambda: written(data, UNCHECKED, path),
        "OpenFst": lambda: openfst.best_order(shape),
    }
    if edges < _LONG:
        programs["as written"] = lambda: openfst.written_order(shape)
        programs["at once"] = lambda: openfst.at_once(shape)
        programs["checked"] = lambda: written(data, ROOMY, path)
    if edges < _LONG // 2:
        programs["automata-lib"] = lambda: dfa.best_order(shape)
    times, results = side_by_side(
        programs,
        15 if edges < 20_000 else 3 if edges < _LONG // 5 else 1,
        lambda: path.unlink(missing_ok=True),
    )
    check_equal(results)
    ours = [str(times[name]) if name in times else "" for name in ("automaton", "file", "checked")]
    peers = ("OpenFst", "as written", "at once", "automata-lib")
    theirs = [str(times[name]) if name in times else "not run" for name in peers]
    ratios = [ratio(times[name], times["automaton"]) if name in times else "" for name in peers]
    ratios.insert(1, ratio(times["OpenFst"], times["file"]))
    return row(shape.tools, found.states, edges, *ours, *theirs, *ratios)


def written(data: bytes, options: Options, path: Path) -> bytes:
    """Compile a core, write the artifact to disk, and return its bytes."""
    artifact = compile_core(data, options).artifact
    if artifact is None:
        raise ValueError("the compiler refuses the core")
    path.write_bytes(artifact)
    return artifact


def check_equal(results: dict[str, Any]) -> None:
    """Check that all programs found the same numbers of states and of plans."""
    file = read_artifact(results["file"], digests=False)
    due = (file.manifest.states, unpack_limbs(file.columns["plans"])[-1])
    found = {"automaton": (results["automaton"][0].states, due[1])}
    for name in ("OpenFst", "as written", "at once"):
        if name in results:
            found[name] = (results[name].num_states(), openfst.plans(results[name]))
    if "automata-lib" in results:
        peer = results["automata-lib"]
        found["automata-lib"] = (len(peer.states), peer.cardinality())
    wrong = {name: answer for name, answer in found.items() if answer != due}
    if wrong:
        raise ValueError(f"answers differ from {due}: {wrong}")
