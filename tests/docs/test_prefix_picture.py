"""The picture of the prefix DAG, and what docs/spec/artifact.md, section 8, says of its nodes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from scripts.prefix_picture import GRAMMAR, picture

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.race.digest import child_context, root_context
from tests.property.grammars import random_grammar

ROOT = Path(__file__).parents[2]


def test_the_picture_is_that_of_the_code() -> None:
    drawn = (ROOT / "docs" / "paper" / "prefix.svg").read_text("utf-8")
    assert drawn == picture(), "python scripts/prefix_picture.py docs/paper/prefix.svg"


def test_the_numbers_of_a_node_are_those_of_its_state_in_every_context() -> None:
    """And its children partition its plans; its name is the digest of the calls before it."""
    shared = 0
    texts = [GRAMMAR, (ROOT / "grammars" / "support_refund.tcg").read_text("utf-8")]
    texts += [
        random_grammar(seed, limits=2, requires=1, forbids=1, parameters=2) for seed in range(40)
    ]
    for text in texts:
        try:
            artifact = tcc.compile_text(text)
            prefixes: Any = artifact.prefix_dag(3, limit=3000)
        except (tcc.CompileError, Rejected):
            continue
        states, contexts = defaultdict(set), dict[int, bytes]()
        for node, data in prefixes.nodes(data=True):
            parents = list(prefixes.predecessors(node))
            if not parents:
                contexts[node] = root_context(artifact.manifest.root_document)
            if data["kind"] == "leaf":
                continue
            for parent in parents:
                call = data["prefix"].removeprefix(prefixes.nodes[parent]["prefix"]).strip()
                contexts[node] = child_context(contexts[parent], call.encode())
            assert data["context"] == contexts[node].hex()
            told = data["plans"], data["accept"], data["rank"], data["cost_to_go"]
            states[data["state"]].add(told)
            if data["kind"] == "node":
                below = [prefixes.nodes[child]["plans"] for child in prefixes.successors(node)]
                assert sum(map(int, below)) == int(data["plans"])
        assert all(len(numbers) == 1 for numbers in states.values())
        shared += len(contexts) > len(states)
    assert shared >= 5
