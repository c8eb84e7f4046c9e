"""What all tests share: the flag that writes golden files again, Ctrl-C as a terminal has it."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import settings

# A shell starts what runs in the background with SIGINT ignored, and children inherit that: tests
# of what Ctrl-C does would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# By default Python looks for cycles after each 700 new objects: a tenth of all processor time.
gc.set_threshold(200_000, 20, 50)

# What an example takes is no part of what is tested, and a busy machine makes any of them slow.
settings.register_profile("tcc", deadline=None)
settings.load_profile("tcc")


_DURATIONS = Path(__file__).parent / "durations.json"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests, which took more than 0.2 s when timed last; leave out cases of samples."""
    slow = frozenset(json.loads(_DURATIONS.read_text(encoding="utf-8"))["slow"])
    alike: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in slow:
            item.add_marker("slow")
        if item.get_closest_marker("sampled") is not None:
            alike[name].append(item)
    if alike and not os.environ.get("TCC_ALL_CASES"):
        left_out = {id(item) for cases in alike.values() for item in _left_out(cases)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
        items[:] = [item for item in items if id(item) not in left_out]
    _spread(items)


def _spread(items: list[pytest.Item]) -> None:
    """Put the files of servers evenly among the others: other workers compute while one waits."""
    files: dict[bool, list[list[pytest.Item]]] = {True: [], False: []}
    for path, found in groupby(items, lambda item: item.path):
        files["mcp" in path.parts].append([*found])
    places: list[tuple[float, bool, list[pytest.Item]]] = []
    for waits, group in files.items():
        count = sum(map(len, group))
        before = 0
        for file in group:
            places.append(((before + len(file) / 2) / count, waits, file))
            before += len(file)
    items[:] = [item for *_, file in sorted(places, key=lambda one: one[:2]) for item in file]


def _left_out(cases: list[pytest.Item]) -> list[pytest.Item]:
    """The cases of a test that are not in its sample, which is spaced evenly."""
    marker = cases[0].get_closest_marker("sampled")
    most = len(cases) if marker is None else min(marker.args[0], len(cases))
    kept = {at * len(cases) // most for at in range(most)}
    return [case for at, case in enumerate(cases) if at not in kept]


def pytest_collection_finish() -> None:
    """What is there by now stays: no look for cycles goes through it again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected part of golden files from what the code does now",
    )
