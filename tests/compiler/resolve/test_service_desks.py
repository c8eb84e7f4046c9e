"""Two policies of service desks are read and checked whole; that core 1.2 is declined is all that
is told of them.  Their recorded sessions wait for a gate that enforces core 1.2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc

DESKS = Path(__file__).parents[2] / "data" / "policies"


@pytest.mark.parametrize("name", ["airline_desk", "shop_desk"])
def test_a_desk_is_read_and_declined_for_its_core_alone(name: str) -> None:
    with pytest.raises(tcc.CompileError) as raised:
        tcc.compile_file(DESKS / f"{name}.tcg")
    assert {one.code for one in raised.value.diagnostics if one.severity == "error"} == {"TCC228"}
    sessions = [json.loads(line) for line in (DESKS / f"{name}.jsonl").read_text().splitlines()]
    assert len(sessions) > 20
