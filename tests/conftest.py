"""What all tests share: the flag that writes golden files again, Ctrl-C as a terminal has it."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# A shell starts what runs in the background with SIGINT ignored, and children inherit that: tests
# of what Ctrl-C does would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What an example takes is no part of what is tested, and a busy machine makes any of them slow.
settings.register_profile("tcc", deadline=None)
settings.load_profile("tcc")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected part of golden files from what the code does now",
    )
