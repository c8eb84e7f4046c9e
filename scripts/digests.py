"""Prints digests of artifacts and ledgers, and epsilons; they are the same on every platform.

    python scripts/digests.py                # print them
    python scripts/digests.py --with FILE    # compare them with FILE; exit code 1 if any differs

``--artifacts DIR`` keeps the compiled artifacts in DIR, and uses the artifacts that are already
there.  So a machine that cannot run the compiler can still run and validate.  The sources have to
be importable.  ``tests/golden/digests.txt`` has the expected digests.  ``scripts/platforms`` runs
this program with another C library and on other processors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blake3 import blake3

from tcc_certs.kernel import check
from tcc_certs.privacy.accountant import epsilon_text, stated, total_of
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.spending import exact_delta
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
GRAMMARS = ("coding_agent", "support_refund", "sql_analyst")
# Options of the compiler, and settings of the runs over the resulting artifacts.
EVERY: tuple[dict[str, Any], ...] = (
    {},
    {"race": "coupled", "top": 3},
    {"race": "coupled", "keys": "anchored", "recipe": "r1"},
    {"mode": "surrogate", "inflate": "1.7", "top": 2},
    {"count_bits": 12},
    {"mode": "fallback", "tau": "0.7", "top": 5},
    {"mode": "fallback", "recipe": "r1", "max_expansions": 40},
    {"truncate": 6, "alpha": "0.01", "eta": "0.5"},
    {"beacon": b"beacon", "client_nonce": b"nonce"},
)
KINDS: dict[str, tuple[dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "exact": ({"beta": "8"}, EVERY),
    "untilted": ({"tilt": 0, "beta": "0.5"}, ({"race": "literal", "max_expansions": 200},)),
    "rounded": ({"round_counts": 20, "beta": "3.25"}, ({"top": 2}, {"race": "coupled"})),
    "relaxed": ({"relax": ("require", "count"), "beta": "8"}, ({"top": 2, "max_expansions": 300},)),
}
ATOMS: dict[str, list[dict[str, Any]]] = {
    "losses": [
        {"mechanism": "randomized_response", "probability": "0.75", "choices": 2, "times": 4},
        {"mechanism": "laplace", "scale": "10", "sensitivity": "1", "times": 30},
        {"mechanism": "gaussian", "sigma": "8", "sensitivity": "1"},
    ],
    "orders": [
        {"mechanism": "discrete_gaussian", "sigma": "6.5", "sensitivity": 1},
        {"mechanism": "rdp", "points": [["2", "0.01"], ["8", "0.04"], ["32", "0.16"]]},
    ],
    "gaussians": [{"mechanism": "gaussian", "sigma": "3", "sensitivity": "1", "times": 7}],
}


def artifact_of(grammar: str, kind: str, folder: Path | None) -> bytes:
    """Return the artifact of a grammar, compiled with the options of a kind."""
    file = None if folder is None else folder / f"{grammar}.{kind}.tcca"
    if file is not None and file.is_file():
        return file.read_bytes()
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import compile_file

    source = ROOT / "grammars" / f"{grammar}.tcg"
    data = compile_file(source, Options(**KINDS[kind][0])).artifact
    if data is None:
        raise SystemExit(f"{grammar}, {kind}: refused")
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return data


def digests(folder: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield the name and digest of each artifact and ledger, and the name and value of each
    epsilon.

    Raises:
        SystemExit: a grammar is refused, or a ledger is not valid.
    """
    for grammar in GRAMMARS:
        for kind, (_, runs) in KINDS.items():
            data = artifact_of(grammar, kind, folder)
            yield f"{grammar}.{kind}.tcca", blake3(data).hexdigest()
            artifact, checked = load(data), check(data)
            for number, told in enumerate(runs):
                sink = MemorySink()
                settings = Settings(seed=bytes([number + 1]) * 32, **told)
                search(artifact, settings, Recorder(sink, started_ms=1_700_000_000_000))
                ledger = bytes(sink.data)
                if validate(ledger, checked).verdict:
                    raise SystemExit(f"{grammar}, {kind}, {told}: not valid")
                yield f"{grammar}.{kind}.{number}.ledger", blake3(ledger).hexdigest()
    for name, atoms in ATOMS.items():
        bound = stated(total_of(atoms_of(atoms)), exact_delta("0.000001"))
        yield f"{name}.epsilon", f"{epsilon_text(bound.epsilon)} {bound.alpha}"


def main(arguments: list[str]) -> int:
    """Print the digests, or compare them with a file; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="expected", type=Path)
    parser.add_argument("--artifacts", type=Path)
    options = parser.parse_args(arguments)
    lines = [f"{name} {digest}" for name, digest in digests(options.artifacts)]
    if options.expected is None:
        sys.stdout.write("\n".join(lines) + "\n")
        return 0
    expected = options.expected.read_text("utf-8").splitlines()
    different = sorted(set(lines) ^ set(expected))
    answer = "\n".join(different) or f"{len(lines)} digests are those of {options.expected}"
    sys.stdout.write(f"{answer}\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
