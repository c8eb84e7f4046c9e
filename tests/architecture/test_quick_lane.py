"""The fast lane runs the tests of what was touched, and of what stands on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts import durations, quick

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("certs/tcc_certs/kernel.py", set(quick.PACKAGES["certs"])),
        ("compiler/tcc_compiler/pipeline.py", {"tcc_compiler", "tcc_experiments", "tcc"}),
        ("runtime/tcc_runtime/search.py", {"tcc_runtime", "tcc_experiments", "tcc"}),
        ("cli/tcc/main.py", {"tcc"}),
        ("docs/gate.md", set()),
    ],
)
def test_what_stands_on_a_package_is_concerned(name: str, packages: set[str]) -> None:
    assert (ROOT / name).is_file()
    assert quick.concerned([name]) == packages


def test_files_are_chosen_by_what_they_import() -> None:
    seconds = json.loads(quick.DURATIONS.read_text())["files"]
    run, late = quick.chosen(["compiler/tcc_compiler/pipeline.py"], seconds)
    assert any(name.startswith("tests/compiler/") for name in [*run, *late])
    for name in [*run, *late]:
        assert quick.imported(ROOT / name) & quick.concerned(["compiler/x"])
    assert quick.chosen(["docs/gate.md"], seconds) == ([], [])
    touched = "tests/architecture/test_sources.py"
    assert quick.chosen([touched], seconds) == ([touched], [])


def test_what_there_is_no_time_for_is_told() -> None:
    every = {path.relative_to(ROOT).as_posix(): 1e9 for path in (ROOT / "tests").rglob("test_*.py")}
    run, late = quick.chosen(["certs/tcc_certs/kernel.py"], every)
    assert not run and len(late) > 100


def test_a_test_is_slow_with_its_slowest_parameters() -> None:
    times = {"a.py::test_x[1]": 0.1, "a.py::test_x[2]": 0.3, "a.py::test_y": 0.2, "b.py::z": 0.04}
    told = durations.durations(times)
    assert told == {"slow": {"a.py::test_x": 0.3}, "files": {"a.py": 0.2, "b.py": 0.0}}


def test_a_file_takes_what_its_first_test_makes_where_no_slow_one_has() -> None:
    times = {"a.py::test_x": 0.3, "a.py::test_y": 0.1, "b.py::z": 0.2}
    told = durations.durations(times, [{"a.py::test_y": 0.4}, {"b.py::z": 0.1}])
    assert told == {"slow": {"a.py::test_x": 0.3}, "files": {"a.py": 0.4, "b.py": 0.2}}
