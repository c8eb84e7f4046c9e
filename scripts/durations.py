"""Writes tests/durations.json from a run of all tests: which are slow, and what the rest takes.

    python -m pytest -n auto --junitxml=times.xml
    scripts/test --quick --junitxml=lane.xml      # with a change of each package in turn
    python scripts/durations.py times.xml lane.xml..

A test is slow where it takes more than 0.2 s with any of its parameters.  In a lane nothing slow
has made what the tests of a file share, and the first of them that is not slow has to: a file takes
what it took there, where that is more.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW = 0.2  # seconds


def durations(
    times: dict[str, float], lanes: Sequence[dict[str, float]] = ()
) -> dict[str, dict[str, float]]:
    """Slow tests and the seconds of one; of each file the seconds of the others.

    Args:
        times: seconds by ``path::test[parameters]``, of a run of all tests.
        lanes: the same of runs without the slow ones.
    """
    most: dict[str, float] = {}
    for name, took in times.items():
        test = name.partition("[")[0]
        most[test] = max(most.get(test, 0.0), took)
    slow = {test: round(took, 1) for test, took in sorted(most.items()) if took > SLOW}
    files: dict[str, float] = {}
    for told in (times, *lanes):
        here: dict[str, float] = {}
        for name, took in sorted(told.items()):
            if name.partition("[")[0] not in slow:
                path = name.partition("::")[0]
                here[path] = here.get(path, 0.0) + took
        for path, took in here.items():
            files[path] = max(files.get(path, 0.0), took)
    return {"slow": slow, "files": {path: round(took, 1) for path, took in sorted(files.items())}}


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
    whole, *lanes = (read(Path(name)) for name in sys.argv[1:])
    told = durations(whole, lanes)
    path = ROOT / "tests" / "durations.json"
    path.write_text(json.dumps(told, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
