"""Verdicts of the extracted checker, many files a process, beside those of ``tcc_certs``.

    python -m tests.checker.verdicts ARTIFACT..     forges each, prints how often which verdicts met

Where the two differ about VALID the field is printed, and the exit code is 1, but for fields in
:data:`NOT_YET`: rules of which the checker has no theorem yet.  The table there is exact.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from tcc.library.second_checker import NoChecker, under_node, verdicts
from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tests.forgery.artifacts import Mutant, column_mutants, core_mutants, manifest_mutants

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "proofs" / "checker" / "build" / "check"
SCRIPT = ROOT / "cli" / "tcc" / "pages" / "proved.js"
CHUNK = 500
# Not covered (proofs/checker/README.md): nearest weights, the schema of the core, texts of limits.
NEAREST = "M302"
NOT_YET = frozenset({NEAREST, "C801", "C702"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both verdicts of a file: VALID or a code of ``tcc_certs``; VALID, REJECTED or DECLINED."""

    field: str
    how: str
    certs: str
    extracted: str

    @property
    def agree(self) -> bool:
        """Whether both say VALID or neither does."""
        return (self.certs == "VALID") == (self.extracted == "VALID")


def program() -> list[str] | None:
    """What runs the checker: the one that was built, else node with the committed JavaScript."""
    if CHECKER.exists():
        return [str(CHECKER)]
    try:
        return under_node(SCRIPT)
    except NoChecker:
        return None


def said(files: Sequence[bytes], command: Sequence[str] | None = None) -> list[str]:
    """The line of the extracted checker of each file."""
    return verdicts(files, program() if command is None else command)


def judged(data: bytes) -> str:
    """VALID, or the code of the finding of ``tcc_certs``."""
    try:
        check(data)
    except Rejected as refusal:
        return refusal.code.value
    return "VALID"


def compared(mutants: Iterable[Mutant]) -> Iterator[Pair]:
    """Both verdicts of each forgery."""
    kept = list(mutants)
    for first in range(0, len(kept), CHUNK):
        chunk = kept[first : first + CHUNK]
        for mutant, line in zip(chunk, said([mutant.data for mutant in chunk]), strict=True):
            yield Pair(
                field=mutant.field,
                how=mutant.how,
                certs=judged(mutant.data),
                extracted=line.split(":")[0],
            )


def forged(data: bytes, most: int, seed: int = 7, *, core: bool = True) -> list[Mutant]:
    """At most `most` sealed forgeries of an artifact, some flips and cuts, and itself.

    Args:
        core: whether its core is changed, too.
    """
    draw = random.Random(seed)
    mutants = list(chain(column_mutants(data), manifest_mutants(data)))
    mutants += core_mutants(data) if core else ()
    draw.shuffle(mutants)
    del mutants[most:]
    for _ in range(most // 20):
        at, raw = draw.randrange(len(data)), bytearray(data)
        raw[at] ^= 1 << draw.randrange(8)
        mutants.append(Mutant(field="flip", how=f"byte {at}", make=partial(bytes, raw)))
    for _ in range(most // 100):
        size = draw.randrange(len(data))
        mutants.append(Mutant(field="cut", how=f"to {size}", make=partial(bytes, data[:size])))
    return [*mutants, Mutant(field="none", how="", make=partial(bytes, data))]


def main(names: Sequence[str]) -> int:
    """Compares forgeries of artifacts; 1 where a verdict differs that may not."""
    table: Counter[tuple[str, str]] = Counter()
    wrong = []
    for name in names:
        for pair in compared(forged(Path(name).read_bytes(), 6000)):
            table[pair.certs, pair.extracted] += 1
            if not pair.agree and pair.certs not in NOT_YET:
                wrong.append(pair)
    for (certs, extracted), count in sorted(table.items()):
        print(f"{certs:8} {extracted:9} {count}")
    for pair in wrong[:20]:
        print(pair)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
