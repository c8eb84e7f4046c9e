"""The artifact that the relays of these tests hold a server to."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc
from tests.mcp.speaking import GRAMMAR


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.tcca"
    tcc.save(tcc.compile_text(GRAMMAR), path)
    return path
