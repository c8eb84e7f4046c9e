"""The messages of a real agent, scripted and not guarded, are a trace that `tcc replay` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import messages_to_dict
from langchain_core.tools import tool

import tcc as library
from tcc.traces import read_traces
from tcc.traces.replaying import replay
from tests.langchain.world import ASKED, LOOK, REFUND, SHOP, Scripted, called


def test_what_an_unguarded_agent_did_is_held_to_a_grammar(tmp_path: Path) -> None:
    @tool
    def look(by: str) -> str:
        """Look."""
        return "found"

    @tool
    def refund(part: str, order: str, amount: float) -> str:
        """Refund."""
        return "paid"

    twice = called("refund", "again", part="full", order="ord-2", amount=900)
    script: list[Any] = [[LOOK], [REFUND, twice], [called("refund", "lost", order=3)]]
    agent: Any = create_agent(Scripted(script=script), [look, refund])
    state = agent.invoke(ASKED)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(messages_to_dict(state["messages"])))
    artifact = library.compile_text(SHOP)
    found = replay(artifact, read_traces(path), values=True)
    assert (found.sessions, found.calls, found.refused) == (1, 4, 2)
    assert {(one.code, one.examples[0].position) for one in found.statements} == {
        ("R105", 3),
        ("R103", 4),
    }
