"""What all tests share: the flag that writes golden files again, Ctrl-C as a terminal has it."""

from __future__ import annotations

import gc
import json
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A shell starts what runs in the background with SIGINT ignored, and children inherit that: tests
# of what Ctrl-C does would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What an example takes is no part of what is tested, and a busy machine makes any of them slow.
settings.register_profile("tcc", deadline=None)
settings.load_profile("tcc")


_DURATIONS = Path(__file__).parent / "durations.json"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what took more than 0.2 s when the tests were timed last."""
    slow = frozenset(json.loads(_DURATIONS.read_text(encoding="utf-8"))["slow"])
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker("slow")


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
