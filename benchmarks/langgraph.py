"""The cost of a decision on a tool call in LangChain: by counting, and by a gate inside the tool.

`ToolCallLimitMiddleware` counts calls in the graph's state and looks at the model's last message.
A gate checks arguments and history against a grammar.  First only decisions, then a tool that does
nothing, plain and guarded, with the ledger in memory.  Medians of 2,000 calls, in turns of 200.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import tcc

CALLS = 2000
TURN = 200
GRAMMAR = """grammar pay version "1"

tool refund(part: half | full, order: text max 2000, amount: number 0 .. 1000)

plan = refund*

limit depth <= 4000
"""
SHORT = {"part": "half", "order": "ord-17", "amount": 3.5}
LONG = {**SHORT, "order": "x" * 1000}


def medians(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median microseconds of each program; they take turns on the same machine."""
    taken: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(CALLS // TURN):
        for name, way in ways.items():
            for _ in range(TURN):
                began = time.perf_counter_ns()
                way()
                taken[name].append(time.perf_counter_ns() - began)
    return {name: median(found) / 1000 for name, found in taken.items()}


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    from langchain.agents.middleware import ToolCallLimitMiddleware
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    from tcc.langchain import guard

    @tool
    def refund(part: str, order: str, amount: float) -> str:
        """Pay back."""
        return "done"

    limit: Any = ToolCallLimitMiddleware(thread_limit=10 * CALLS)
    call = {"name": "refund", "args": SHORT, "id": "1", "type": "tool_call"}
    state = {"messages": [AIMessage(content="", tool_calls=[call])]}
    gate = tcc.Gate(tcc.compile_text(GRAMMAR))
    guarded = guard([refund], gate)[0]
    ways: dict[str, Callable[[], object]] = {
        "`ToolCallLimitMiddleware`: a decision": lambda: limit.after_model(state, None),
        "gate: a decision, 60 bytes": lambda: gate.check("refund", SHORT),
        "gate: a decision, 1 KiB": lambda: gate.check("refund", LONG),
        "a tool of LangChain that does nothing": lambda: refund.invoke(dict(SHORT)),
        "the same, guarded: decided and recorded": lambda: guarded.invoke(dict(SHORT)),
    }
    yield "| | us |"
    yield "| --- | ---: |"
    for name, microseconds in medians(ways).items():
        yield f"| {name} | {microseconds:.1f} |"
