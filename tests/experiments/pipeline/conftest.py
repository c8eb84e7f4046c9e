"""One corpus for all tests of the pipeline, and the questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_experiments.pipeline.campaign import made_corpus
from tcc_experiments.pipeline.corpus import Corpus
from tests.cli.conftest import tcc

__all__ = ["tcc"]  # a fixture of the command line's tests


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return made_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder
