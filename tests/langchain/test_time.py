"""Checkpoints: travelling back, resuming elsewhere, and checkpoints of another session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tcc.langchain import ForeignHead, TccMiddleware
from tcc_runtime.gate.gate import Gate
from tests.langchain.world import ASKED, LOOK, REFUND, World, answers, called

ROOT = Path(__file__).parents[2]
THREAD: Any = {"configurable": {"thread_id": "1"}}


def agent_of(world: World, saver: InMemorySaver, **more: Any) -> Any:
    return world.agent(
        [[LOOK], [REFUND]],
        middleware=[TccMiddleware(world.gate)],
        checkpointer=saver,
        **more,
    )


@pytest.mark.parametrize("stored", [False, True])
def test_from_every_older_checkpoint_no_call_is_made_twice(world: World, stored: bool) -> None:
    agent = agent_of(world, InMemorySaver(), results={} if stored else None)
    agent.invoke(ASKED, THREAD)
    assert world.names == ["look", "refund"]
    older = [found.config for found in agent.get_state_history(THREAD) if found.next]
    assert len(older) > 6
    for config in older:
        state = agent.invoke(None, config)
        assert world.names == ["look", "refund"]
        said = answers(state)
        assert {message.status for message in said} <= (
            {"success"} if stored else {"success", "error"}
        )
        if stored:
            assert [message.text for message in said] == ["look done", "refund done"]
    assert world.outcomes == ["done", "done"]


def test_a_call_that_is_edited_in_an_older_checkpoint_is_decided_on_now(world: World) -> None:
    agent = agent_of(world, InMemorySaver(), results={})
    agent.invoke(ASKED, THREAD)
    before = next(
        found
        for found in agent.get_state_history(THREAD)
        if found.next == ("tools",) and len(found.values["messages"]) == 4
    )
    for ref, code in ((REFUND["id"], "R304"), ("id-new", "R201")):
        worse = called("refund", ref, part="full", order="ord-2", amount=400)
        last = before.values["messages"][-1]
        message = AIMessage(content="", tool_calls=[worse], id=last.id)
        agent.invoke(None, agent.update_state(before.config, {"messages": [message]}))
        assert world.refused[-1] == code
    assert world.names == ["look", "refund"]


def test_another_object_takes_the_session_up(world: World) -> None:
    saver = InMemorySaver()
    agent_of(world, saver, interrupt_before=["tools"]).invoke(ASKED, THREAD)
    assert world.names == []
    world.reopen()
    agent = agent_of(world, saver)
    agent.invoke(None, THREAD)
    assert world.names == ["look", "refund"]
    kept = next(iter(saver.list(THREAD))).checkpoint["channel_values"]
    assert kept["tcc_head"] == world.gate.head


@pytest.mark.parametrize("at", ["model", "tools"])
def test_a_checkpoint_of_another_session_is_refused(
    worlds: Callable[..., World], world: World, at: str
) -> None:
    from tests.langchain.world import SHOP

    saver = InMemorySaver()
    agent_of(
        world, saver, interrupt_before=[at], interrupt_after=["TccMiddleware.before_model"]
    ).invoke(ASKED, THREAD)
    if at == "tools":
        agent_of(world, saver, interrupt_before=["tools"]).invoke(None, THREAD)
    other = worlds(SHOP)
    with pytest.raises(ForeignHead, match="another session"):
        agent_of(other, saver).invoke(None if at == "tools" else ASKED, THREAD)
    assert (other.names, other.outcomes) == ([], [])


def test_a_ledger_that_was_put_back_is_refused(world: World, tmp_path: Path) -> None:
    saver = InMemorySaver()
    agent_of(world, saver).invoke(ASKED, THREAD)
    world.gate.close()
    lines = world.ledger.read_bytes().splitlines(keepends=True)
    whole = b"".join(lines)
    world.ledger.write_bytes(b"".join(lines[:3]))
    world.gate = Gate(world.path, ledger=world.ledger, durable=False)
    with pytest.raises(ForeignHead):
        agent_of(world, saver).invoke(ASKED, THREAD)
    world.gate.close()
    world.ledger.write_bytes(whole)
    world.reopen()
    agent_of(world, saver).invoke(ASKED, THREAD)
    assert world.names == ["look", "refund"]


def test_the_head_is_an_ancestor_or_not(world: World) -> None:
    heads = [world.gate.head]
    world.agent([[LOOK], [REFUND]]).invoke(ASKED)
    heads.append(world.gate.head)
    world.reopen()
    assert all(world.gate.is_ancestor(head) for head in heads)
    for wrong in ("", "x", "00" * 32, heads[0][:-2], heads[0] + "00", None, 5):
        assert not world.gate.is_ancestor(wrong)  # type: ignore[arg-type]
    alone = Gate(world.artifact)
    assert alone.is_ancestor(alone.head) and not alone.is_ancestor(heads[0])


PROGRAM = """
import json, os, sys
from pathlib import Path
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tcc.langchain import TccMiddleware
from tcc_runtime.gate.gate import Gate
from tests.langchain.test_time import THREAD, dumped, loaded
from tests.langchain.world import ASKED, LOOK, REFUND, World

folder, crash = Path(sys.argv[1]), sys.argv[2] == "crash"


class Killed(World):
    def did(self, name, arguments):
        with (folder / "deeds").open("a") as file:
            file.write(name + "\\n")
        if crash and name == "refund":
            dumped(saver, folder / "saved")
            os._exit(9)
        return f"{name} done"


saver = InMemorySaver(serde=JsonPlusSerializer())
if (folder / "saved").exists():
    loaded(saver, folder / "saved")
world = Killed(folder)
agent = world.agent([[LOOK], [REFUND]], middleware=[TccMiddleware(world.gate)], checkpointer=saver)
state = agent.invoke(None if (folder / "saved").exists() else ASKED, THREAD)
print(json.dumps([message.status for message in state["messages"] if message.type == "tool"]))
dumped(saver, folder / "saved")
"""


def dumped(saver: InMemorySaver, path: Path) -> None:
    """A saver's memory as a file: its values are bytes of its own serialiser already."""
    import pickle

    plain = {
        thread: {space: dict(found) for space, found in spaces.items()}
        for thread, spaces in saver.storage.items()
    }
    path.write_bytes(pickle.dumps((plain, dict(saver.writes), dict(saver.blobs))))


def loaded(saver: InMemorySaver, path: Path) -> None:
    """The reverse."""
    import pickle

    storage, writes, blobs = pickle.loads(path.read_bytes())
    for thread, spaces in storage.items():
        saver.storage[thread].update(spaces)
    saver.writes.update(writes)
    saver.blobs.update(blobs)


# Python 3.14 warns of what a package of LangChain's calls while it loads.
_OF_OTHERS = "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"
WARNINGS = ("-W", "error", "-W", _OF_OTHERS)


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.sampled(1)
def test_a_process_that_was_killed_inside_a_tool(world: World, strict: str) -> None:
    folder = world.ledger.parent
    world.gate.close()
    world.ledger.unlink()
    world.ledger.with_name(f"{world.ledger.name}.key").unlink()
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {
        **os.environ,
        "LANGGRAPH_STRICT_MSGPACK": strict,
        "PYTHONPATH": ":".join(sys.path),
    }

    def run(how: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *WARNINGS, str(program), str(folder), how],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            cwd=ROOT,
        )

    assert run("crash").returncode == 9
    again = run("go on")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == ["success", "error"]
    assert "allow" not in again.stderr  # nothing that the serialiser had to let through
    assert (folder / "deeds").read_text().split() == ["look", "refund"]
    world.gate = Gate(world.path, ledger=world.ledger, durable=False)
    assert world.outcomes == ["done", "unknown"] and world.refused == ["R304"]


def test_what_is_kept_is_plain(world: World) -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    state = agent_of(world, saver).invoke(ASKED, THREAD)
    assert "tcc_head" not in state
    found = next(iter(saver.list(THREAD)))
    assert found.checkpoint["channel_values"]["tcc_head"] == world.gate.head
