"""Writes tests/durations.json from a run of all tests: slow tests, and seconds of the others.

    python -m pytest -n auto --junitxml=times.xml
    scripts/test --quick --junitxml=lane.xml      # with a change of each package in turn
    python scripts/durations.py times.xml lane.xml..

A test is slow if it takes more than 0.2 s with any of its parameters.  In the quick lane slow tests
do not run, so the first other test of a file has to create shared fixtures.  The seconds of a file
are therefore the greatest of those in all given runs.
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
    """Return the seconds of each slow test, and for each file the seconds of its other tests.

    Args:
        times: seconds by ``path::test[parameters]``, from a run of all tests.
        lanes: the same, from runs without slow tests.
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
    """Return the seconds of each test in a file that pytest wrote with ``--junitxml``."""
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
