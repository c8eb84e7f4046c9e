"""Writes tests/durations.json from a run of all tests: which are slow, and what the rest takes.

    python -m pytest -n auto --junitxml=times.xml && python scripts/durations.py times.xml

A test is slow where it takes more than 0.2 s with any of its parameters.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW = 0.2  # seconds


def durations(times: dict[str, float]) -> dict[str, dict[str, float]]:
    """Slow tests and the seconds of one; of each file the seconds of the others.

    Args:
        times: seconds by ``path::test[parameters]``.
    """
    most: dict[str, float] = {}
    for name, took in times.items():
        test = name.partition("[")[0]
        most[test] = max(most.get(test, 0.0), took)
    slow = {test: round(took, 1) for test, took in sorted(most.items()) if took > SLOW}
    files: dict[str, float] = {}
    for name, took in sorted(times.items()):
        if name.partition("[")[0] not in slow:
            path = name.partition("::")[0]
            files[path] = files.get(path, 0.0) + took
    return {"slow": slow, "files": {path: round(took, 1) for path, took in files.items()}}


def read(path: Path) -> dict[str, float]:
    """The seconds of each test in a file that pytest wrote with ``--junitxml``."""
    found: dict[str, float] = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        module = case.get("classname", "").split(".")
        file = next(
            "/".join(module[:n]) + ".py"
            for n in range(len(module), 0, -1)
            if (ROOT / ("/".join(module[:n]) + ".py")).is_file()
        )
        found[f"{file}::{case.get('name')}"] = float(case.get("time", 0))
    return found


if __name__ == "__main__":
    told = durations(read(Path(sys.argv[1])))
    path = ROOT / "tests" / "durations.json"
    path.write_text(json.dumps(told, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
