"""The canonical text of a node, parsed again, is the same node."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from tcc_certs.policy import nodes as n
from tests.compiler.names.random_nodes import NAMES, definition, from_json, node, statement
from tests.compiler.names.reading import body_of, let_of, statements_of

FEW, MANY = 1000, 100_000
TAKEN = ("this", "it", "session", "now", "any", "null", "true", "false", "match")


def _check_nodes(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        tree = node(rng, rng.randint(1, 4))
        data = json.loads(json.dumps(n.json_of(tree)))
        assert from_json(data) == tree
        text = n.text_of(from_json(data))
        assert body_of(text) == tree, text
        assert n.text_of(body_of(text)) == text


def _check_statements(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        made = statement(rng, rng.randint(1, 3))
        text = n.statement_text(made)
        assert statements_of(text) == [replace(made, because=None)], text
        let = definition(rng, 3, rng.choice(NAMES))
        assert let_of(n.definition_text(let)) == let


def test_random_nodes_come_back() -> None:
    _check_nodes(FEW, 1)


def test_random_statements_come_back() -> None:
    _check_statements(FEW, 2)


@pytest.mark.campaign
def test_many_random_nodes_come_back() -> None:
    _check_nodes(MANY, 3)


@pytest.mark.campaign
def test_many_random_statements_come_back() -> None:
    _check_statements(MANY, 4)


@pytest.mark.parametrize("name", NAMES)
def test_backticks_are_only_where_the_grammar_needs_them(name: str) -> None:
    """Without its backticks, the text of a name is another node, or no text of the language.

    A word that is always taken has backticks everywhere.
    """
    if name in TAKEN:
        assert n.text_of(n.Same((name,))) == f"same `{name}`"
        return
    for tree in (
        n.Word(name),
        n.Compare("=", n.Word(name), n.Word(name)),
        n.Not(n.Word(name)),
        n.No(n.Word(name)),
        n.Minus(n.Word(name), n.Word(name)),
        n.Where(n.Word(name), (n.Word(name), n.Same((name, name)))),
        n.Match(n.Word(name), (n.Arm(n.Word(name), (n.Word(name), n.Word(name))),)),
        n.Get(n.Word("a"), name),
        n.Session(name),
    ):
        text = n.text_of(tree)
        assert body_of(text) == tree
        at = text.find("`")
        while at >= 0:
            end = text.index("`", at + 1)
            bare = text[:at] + text[at + 1 : end] + text[end + 1 :]
            assert _is_other(bare, tree), f"{text} needs no backticks at {at}"
            at = text.find("`", end + 1)


def _is_other(text: str, tree: n.Node) -> bool:
    try:
        return body_of(text) != tree
    except AssertionError:
        return True
