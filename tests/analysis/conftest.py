"""The command line, for questions that are asked there."""

from __future__ import annotations

from tests.cli.conftest import tcc

__all__ = ["tcc"]
