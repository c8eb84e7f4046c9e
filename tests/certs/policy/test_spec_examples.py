"""The examples of the specifications: of cores run by the definition, and of digests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from tcc_certs.formats.codec import encode
from tcc_certs.policy import reader
from tcc_certs.policy.course import Course
from tcc_certs.policy.nodes import NODES, Node, json_of, statement_text, text_of

PAGES = Path(__file__).parents[3] / "docs" / "spec"
PAGE = (PAGES / "core.md").read_text("utf-8")
SESSION_PAGE = (PAGES / "session.md").read_text("utf-8")
BLOCKS = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)]
CORES = [block for block in BLOCKS if "schema" in block]
EXAMPLES = [block for block in BLOCKS if "session" in block]
DESK = next(core for core in CORES if core["grammar"]["name"] == "desk")
GIVEN = {"customer": "c-1"}
[NODE_LINES] = re.findall(r"^```nodes\n(.*?)^```$", PAGE, re.M | re.S)


def desk_with(example: dict[str, Any]) -> bytes:
    """The core of the examples with the lets and statements of one."""
    lets = {"lets": example["lets"]} if "lets" in example else {}
    return encode(DESK | lets | {"statements": example["statements"]})


def node_of(value: Any) -> Node:
    """The node that a JSON list writes down."""
    kind = NODES[value[0]]
    members: list[Any] = []
    for letter, member in zip(kind.SHAPE, value[1:], strict=False):
        if letter in "NS":
            rest = value[1 + len(members) :]
            members.append(tuple([node_of(part) if letter == "N" else part for part in rest]))
        else:
            members.append(node_of(member) if letter == "n" else member)
    return kind(*members)


def test_every_block_is_a_core_or_an_example() -> None:
    assert len(CORES) == 2
    assert len(BLOCKS) == len(CORES) + len(EXAMPLES)
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("core", CORES, ids=lambda core: core["grammar"]["name"])
def test_the_cores_are_read_and_written_alike(core: dict[str, Any]) -> None:
    assert encode(reader.core_json(reader.read_core(encode(core)))) == encode(core)


def test_nodes_have_their_json_and_their_text() -> None:
    tags = set()
    for line in NODE_LINES.splitlines():
        value, end = json.JSONDecoder().raw_decode(line)
        node = node_of(value)
        assert json_of(node) == value
        assert text_of(node) == line[end:].strip()
        tags |= set(re.findall(r'\["([^"]+)"', line[:end]))
    assert tags >= NODES.keys()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["texts"][0])
@pytest.mark.parametrize("indexed", [False, True], ids=["list", "dict"])
def test_examples_have_their_texts_and_verdicts(example: dict[str, Any], indexed: bool) -> None:
    policy = reader.read_policy(desk_with(example))
    assert [statement_text(one) for one in policy.core.statements] == example["texts"]
    course = Course(policy, GIVEN, indexed=indexed)
    for number, step in enumerate(example["session"]):
        for _ in range(step.get("times", 1)):
            assert verdict(course, step) == step.get("verdict", step.get("finish")), (number, step)


def verdict(course: Course, step: dict[str, Any]) -> str | None:
    """Take a step; the verdict of a call or an end."""
    at_ms = step.get("at_ms", 0)
    if "finish" in step:
        return "R204" if course.unmet(at_ms) else "allowed"
    if "resolve" in step:
        call = course.history.calls[step["resolve"] - 1]
        course.record(call, step["outcome"], step.get("answer"))
        return None
    refusals = course.check(step["call"], step["arguments"], at_ms)
    if refusals:
        return refusals[0].code
    call = course.call(step["call"], step["arguments"], at_ms)
    if "outcome" in step:
        course.record(call, step["outcome"], step.get("answer", {}))
    return "allowed"


def test_digests_and_macs_of_the_example() -> None:
    [block] = re.findall(r"^```text\n(key .*?)^```$", SESSION_PAGE, re.M | re.S)
    shown = dict(re.split(" +", line, maxsplit=1) for line in block.splitlines())
    key, previous = bytes.fromhex(shown.pop("key")), bytes.fromhex(shown.pop("previous"))
    # "MAC key" has a space in its name.
    name, derived = shown.pop("MAC").split()
    mac_key = blake3(key, derive_key_context="tcc.session/2 record key").digest()
    assert (name, derived) == ("key", mac_key.hex())
    commitment = blake3(key, derive_key_context="tcc.session/2 digest key")
    assert shown.pop("commitment") == commitment.hexdigest()
    record = b"mac" + previous + shown.pop("record").encode()
    assert shown.pop("mac") == blake3(record, key=mac_key).digest(16).hex()
    assert len(shown) == 8
    for value, digest in shown.items():
        assert digest == blake3(value.encode(), key=key).hexdigest()
