"""What all tests share: the flag that writes golden files again."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected part of golden files from what the code does now",
    )
