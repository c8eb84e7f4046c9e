"""Statements of 1.2 that are held call by call: the core has those of the definition."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tcc_certs.core.policies import POLICIES, read_policy
from tcc_certs.errors import Code, Rejected
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.resolve import resolver
from tests.oracle_policies import language as l
from tests.oracle_policies.core import Writer, fields_of
from tests.oracle_policies.drawn import FORMS, Draw
from tests.oracle_policies.meaning import is_listed
from tests.oracle_policies.writer import text_of

HELD = (l.Require, l.Forbid, l.Apart, l.Owed, l.Uses, l.Sum)
OLD = frozenset(FORMS - {"look"})


def _drawn(seed: int) -> l.Grammar:
    grammar = Draw(f"cores {seed}", OLD).grammar()
    return replace(grammar, tools=tuple(sorted(grammar.tools, key=lambda tool: tool.name)))


@pytest.mark.parametrize("seed", range(80))
def test_the_core_has_the_statements(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "READ_MINOR", 2)
    grammar = _drawn(seed)
    # What plans are cut by is declined where errors count; that is no matter of the core's text.
    grammar = replace(grammar, tools=tuple(replace(one, errors=False) for one in grammar.tools))
    front = read_grammar_text(text_of(grammar))
    assert front.core is not None, [item.message for item in front.diagnostics]
    fields, writer, path = fields_of(grammar), Writer(grammar), "monitors"
    written = [m for m in json.loads(front.core).get("monitors", ()) if m["kind"] in POLICIES]
    found = [read_policy(one, path, Code.CORE_SCHEMA, fields) for one in written]
    due, errors = [], []
    for one in grammar.statements:
        # What is written out into the plans is held beside them where an error may be read.
        if isinstance(one, l.Forbid) and is_listed(one, grammar):
            errors.append(read_policy(writer.statement(one), path, Code.CORE_SCHEMA, fields))
        least = isinstance(one, l.Uses) and one.least
        if isinstance(one, HELD) and not is_listed(one, grammar) and not least:
            due.append(read_policy(writer.statement(one), path, Code.CORE_SCHEMA, fields))
    assert all(one in due or one in errors for one in found)
    missing = [one for one in due if one not in found]
    # What section 5 can say is written as there.
    assert len(missing) <= sum(
        one["kind"] not in POLICIES for one in json.loads(front.core).get("monitors", ())
    )


@pytest.mark.parametrize("seed", range(80))
def test_nothing_of_it_is_let_through(seed: int) -> None:
    grammar = _drawn(seed)
    front = read_grammar_text(text_of(grammar))
    codes = {str(item.code) for item in front.diagnostics}
    if front.core is None:
        assert codes == {"TCC228"}
    else:
        from tcc_certs.core.reader import read_core

        assert read_core(front.core).name == "g"


def test_a_reader_declines_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcc_certs.core.reader import read_core

    monkeypatch.setattr(resolver, "READ_MINOR", 2)
    text = 'grammar g version "1"\nlet since(k) = a\ntool a(k: 1 | 2)\nplan = a?\n'
    front = read_grammar_text(text)
    assert front.core is not None
    with pytest.raises(Rejected) as refusal:
        read_core(front.core)
    assert refusal.value.code == "D102"
