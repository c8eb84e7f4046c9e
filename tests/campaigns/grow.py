"""A corpus by coverage: atheris looks for inputs that reach what no other does; few are kept.

    pip install '.[fuzz]'
    python -m tests.campaigns.grow artifact --seconds 600 --out fuzz-corpus
    python -m tests.campaigns.grow artifact --keep --out fuzz-corpus

The first grows a folder, from the seeds, with the mutations of tests/campaigns/targets.py.  The
second copies from it into `corpus/` the least that passes from line to line wherever all of it
does and the seeds do not, the shortest files first.  What is in `corpus/` are seeds from then on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

# Not imported from seeds.py: what is to be instrumented may not be imported before.
CORPUS = Path(__file__).parent / "corpus"
READERS = {
    "artifact": "tcc_certs", "ledger": "tcc_certs", "session": "tcc_certs",
    "grammar": "tcc_compiler",
}  # fmt: skip
Step = tuple[str, int, int]


def grow(name: str, seconds: int, out: Path, most: int) -> None:
    """Run atheris; it ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=[READERS[name]]):
        from tests.campaigns.targets import TARGETS
    target = TARGETS[name]()
    out.mkdir(parents=True, exist_ok=True)
    for at, data in enumerate(target.seeds):
        (out / f"seed-{at}").write_bytes(data)

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        return target.mutate(Random(seed), data)[:size]

    told = [sys.argv[0], f"-max_total_time={seconds}", f"-max_len={most}", "-timeout=20"]
    atheris.Setup([*told, f"-artifact_prefix={out}-", str(out)], target.read, custom_mutator=mutate)
    atheris.Fuzz()


def steps(read: Callable[[bytes], object], data: bytes, package: str) -> frozenset[Step]:
    """Which line followed which, in the files of a package, while `data` was read."""
    found: set[Step] = set()
    inside: dict[str, bool] = {}

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in inside:
            inside[name] = f"/{package}/" in name
        if not inside[name]:
            return None
        last = 0

        def line(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line

    sys.settrace(enter)
    try:
        read(data)
    finally:
        sys.settrace(None)
    return frozenset(found)


def least(
    known: Iterable[frozenset[Step]], more: Sequence[tuple[bytes, frozenset[Step]]]
) -> list[bytes]:
    """Some of `more` that take every step that all of it takes; none that adds nothing."""
    seen = set().union(*known)
    kept = []
    left = sorted(more, key=lambda item: (len(item[0]), item[0]))
    while left:
        # Greedy: the one that adds most, the shortest of those.
        best = max(range(len(left)), key=lambda at: (len(left[at][1] - seen), -at))
        data, found = left.pop(best)
        if found <= seen:
            break
        kept.append(data)
        seen |= found
        left = [item for item in left if not item[1] <= seen]
    return kept


def keep(name: str, out: Path) -> None:
    """Copy the least of a grown folder into the corpus."""
    from tests.campaigns.targets import TARGETS

    target, package = TARGETS[name](), READERS[name]
    for data in target.seeds:
        target.read(data)  # what is made at the first use only is no reason to keep a file
    known = [steps(target.read, data, package) for data in target.seeds]
    grown = sorted({path.read_bytes() for path in out.iterdir()} - set(target.seeds))
    kept = least(known, [(data, steps(target.read, data, package)) for data in grown])
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.iterdir()))
    for at, data in enumerate(kept):
        (folder / f"{number + at:03}").write_bytes(data)
    size = sum(map(len, kept))
    print(f"{len(grown)} grown, {len(kept)} kept, {size} bytes")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=sorted(READERS))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--length", type=int, default=8192, help="the most bytes of an input")
    parser.add_argument("--out", type=Path, default=Path("fuzz-corpus"))
    parser.add_argument("--keep", action="store_true")
    told = parser.parse_args()
    if told.keep:
        keep(told.target, told.out)
    else:
        grow(told.target, told.seconds, told.out, told.length)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
