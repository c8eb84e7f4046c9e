"""Agents at random: models, middleware and time travel that try everything, against the ledger."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from tcc.langchain import TccMiddleware
from tests.langchain.world import ASKED, SHOP, Scripted, World, called

THREAD: Any = {"configurable": {"thread_id": "1"}}
LOOSE = SHOP.replace("plan = look refund?", "plan = look{1,3} (refund look){0,2}").replace(
    "limit count(delete)", "limit sum(refund.amount) <= 600\nlimit count(delete)"
)


def drawn(chance: random.Random) -> dict[str, Any]:
    """A tool call, now and then with an id that was there before."""
    name = chance.choice(["look", "refund", "refund", "delete", "none"])
    arguments = {
        "look": {"by": chance.choice(["email", "phone", "post"])},
        "refund": {
            "part": chance.choice(["half", "full"]),
            "order": chance.choice(["ord-1", "ord-2", "x"]),
            "amount": chance.choice([100, 400, 501, "3"]),
        },
    }.get(name, {})
    return called(name, f"id-{chance.randrange(40)}", **arguments)


class Meddles(AgentMiddleware[Any, Any, Any]):
    """Rewrites calls, makes them twice, or makes others instead."""

    def __init__(self, chance: random.Random, tools: list[Any]) -> None:
        super().__init__()
        self._chance, self._tools = chance, {tool.name: tool for tool in tools}

    def _requests(self, request: Any) -> list[Any]:
        chance = self._chance
        if chance.random() < 0.4:
            call = {**drawn(chance), "id": request.tool_call["id"]}
            if call["name"] in self._tools:
                request = request.override(tool_call=call, tool=self._tools[call["name"]])
        return [request] * chance.choice([1, 1, 2])

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return [handler(one) for one in self._requests(request)][-1]

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return [await handler(one) for one in self._requests(request)][-1]


@pytest.mark.parametrize(
    "seed", [*range(6), *[pytest.param(n, marks=pytest.mark.campaign) for n in range(6, 200)]]
)
@pytest.mark.sampled(3)
def test_whatever_is_tried_the_ledger_has_it_and_the_grammar_allows_it(
    worlds: Callable[[str], World], tmp_path: Path, seed: int
) -> None:
    chance, world = random.Random(seed), worlds(LOOSE)
    results: dict[str, Any] | None = {} if seed % 2 else None
    saver = InMemorySaver()

    def agent() -> Any:
        script = [[drawn(chance) for _ in range(chance.randrange(1, 4))] for _ in range(5)]
        from langchain.agents import create_agent

        from tcc.langchain import guard

        guarded = guard(world.tools(), world.gate, results=results)
        middleware = [Meddles(chance, guarded), TccMiddleware(world.gate)]
        return create_agent(
            Scripted(script=script), guarded, middleware=middleware, checkpointer=saver
        )

    def run(given: Any, config: Any) -> None:
        if seed % 3 == 0:
            asyncio.run(agent().ainvoke(given, config))
        else:
            agent().invoke(given, config)

    run(ASKED, THREAD)
    for round_ in range(6):
        if round_ == 3:
            world.reopen()
        older = list(agent().get_state_history(THREAD))
        found = chance.choice([one for one in older if one.next] or older)
        config = found.config
        if chance.random() < 0.3:
            message = AIMessage(content="", tool_calls=[drawn(chance)])
            config = agent().update_state(config, {"messages": [message]}, as_node="model")
        run(None, config)
    made = [text(name, given) for name, given in world.done]
    assert made == [one.call for one in world.gate.history]
    assert set(world.outcomes) <= {"done"} and "delete" not in world.names
    assert sum(given["amount"] for name, given in world.done if name == "refund") <= 600
    assert world.refused, "nothing was tried that is not allowed"


def text(name: str, given: dict[str, Any]) -> str:
    """The canonical text of what was done, of its listed arguments."""
    shown = given.get("by") or given.get("part")
    return f"{name}({'by' if name == 'look' else 'part'}={shown})" if shown else name
