"""Checksums of all data that the experiments read: the corpus by shelf, questions, digits, records.

    python -m tcc_experiments.pipeline.checksums                # print them
    python -m tcc_experiments.pipeline.checksums --with FILE    # compare; 1 if any differs

``experiments/checksums.txt`` has those of the published results. A shelf is a function of the
package that its texts come from, so each line names the package and the version that are installed
here. The file of a corpus also depends on the version of SQLite, so it has no line of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from blake3 import blake3

from tcc_experiments.digits import digits
from tcc_experiments.pipeline.corpus import all_texts
from tcc_experiments.pipeline.questions import all_questions

SHELVES = {
    "constants": "scipy",
    "units": "scipy",
    "datasets": "scikit-learn",
    "python": "Python",
}


def checksums() -> dict[str, str]:
    """Each name with its line: how many items, of which version, and the BLAKE3 of the items."""
    shelves: dict[str, list[list[str]]] = {shelf: [] for shelf in SHELVES}
    for text in all_texts():
        shelves[text.shelf].append([text.title, text.body])
    lines = {f"corpus/{shelf}": _line(items, SHELVES[shelf]) for shelf, items in shelves.items()}
    asked = [[q.name, q.category, q.text, repr(q.answer)] for q in all_questions()]
    lines["questions"] = _line(asked, "scipy", "scikit-learn")
    images = digits()
    lines["digits"] = _line(
        [
            [*map(int, row), int(of)]
            for row, of in zip(images.sketches, images.classes, strict=True)
        ],
        "scikit-learn",
    )
    folder = files("tcc_experiments.pipeline")
    for name in ("categories.json", "numeric_answers.tcg"):
        data = (folder / name).read_bytes()
        lines[name] = f"{len(data)} bytes, {blake3(data).hexdigest()}"
    return lines


def _line(items: Iterable[Any], *packages: str) -> str:
    rows = [json.dumps(item, ensure_ascii=False) for item in items]
    digest = blake3("".join(f"{row}\n" for row in rows).encode()).hexdigest()
    versions = [
        f"{name} {platform.python_version() if name == 'Python' else version(name)}"
        for name in packages
    ]
    return f"{len(rows)} items, {' and '.join(versions)}, {digest}"


def main(arguments: list[str]) -> int:
    """Print the checksums, or compare them with those of a file."""
    parser = argparse.ArgumentParser(prog="python -m tcc_experiments.pipeline.checksums")
    parser.add_argument("--with", dest="expected", type=Path)
    options = parser.parse_args(arguments)
    lines = [f"{name}: {line}" for name, line in checksums().items()]
    if options.expected is None:
        sys.stdout.write("\n".join(lines) + "\n")
        return 0
    expected = options.expected.read_text("utf-8").splitlines()
    different = [line for line in lines if line not in expected]
    answer = "\n".join(different) or f"{len(lines)} checksums are those of {options.expected}"
    sys.stdout.write(f"{answer}\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
