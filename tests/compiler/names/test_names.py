"""What a word may be, and that no later declaration changes it silently."""

from __future__ import annotations

import pytest

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.kinds import Kinds
from tcc_compiler.names.compile import compile_source
from tests.compiler.names.corpus import DESK
from tests.compiler.names.random_nodes import NAMES

WORDS = sorted({*NAMES, *n.FUNCTIONS, "use", "tool", "grammar", "gives", "finally", "at", "s", "h"})


def core_of(text: str) -> Core:
    found = compile_source(text)
    assert found.core is not None, [(one.code, one.message) for one in found.diagnostics]
    return found.core


@pytest.mark.parametrize("name", WORDS)
def test_any_name_works_for_a_tool_a_field_a_let_and_an_attribute(name: str) -> None:
    """The text has backticks where the canonical text has them, and nowhere else."""
    word = n.Word(name)
    statements: list[n.Statement] = [
        n.Require(on=word, then=n.Compare("=", word, n.Text("x"))),
        n.Require(
            on=word,
            then=n.Compare(
                "=", n.Apply("count", (n.Where(n.Word(name), (n.Same((name,)),)),)), n.Number("2")
            ),
        ),
        n.Forbid(on=word, where=(n.Compare("=", n.Word(name), n.Session(name)),)),
        n.Limit(of=word, per=(n.Word(name),), most=n.Number("3"), scope="session"),
        n.Limit(of=word, field="amount", most=n.Number("3")),
        n.Require(on=word, then=n.Compare("=", n.Get(n.This(), name), n.Text("y"))),
    ]
    declared = n.text_of(n.Session(name)).partition(".")[2]  # bare, if it is an identifier
    tool = n.text_of(word) if name in n.FUNCTIONS else _tool(name)
    text = f"""\
grammar g version "1"
given {declared}: text
tool {tool}({declared}: text, amount: number 0 .. 9) gives ({declared}_2: text)
"""
    text = text.replace(f"{declared}_2", "answer")
    text += "\n".join([n.statement_text(one) for one in statements]) + "\n"
    assert core_of(text).statements == tuple(statements)


def _tool(name: str) -> str:
    return n.text_of(n.Minus(n.Word(name), n.Word("x"))).removesuffix(" - x")


@pytest.mark.parametrize("name", ["any", "this", "it", "session", "now", "null", "true", "false"])
def test_a_tool_or_let_with_a_taken_name_is_declared_in_backticks(name: str) -> None:
    head = 'grammar g version "1"\ntool a\n'
    for text in (f"tool {name}\n", f"let {name} = a\n"):
        found = compile_source(head + text)
        assert [one.code for one in found.diagnostics] == ["TCC111"]
        assert found.diagnostics[0].hint == f"write `{name}`"
    core_of(head + f"tool `{name}`\nforbid `{name}`\n")


ADDED = (
    "tool {0}",
    "tool zz({0}: text)",
    "tool zz({0}: pending | sent)",
    "tool zz gives ({0}: text)",
    "let {0} = 3",
    "let {0} = approve",
    "let {0} = approve(answer = yes)",
    "let {0}(x) = x",
    "let zz({0}) = {0}",
    "given {0}: text",
    "given {0} from find_order.owner",
    "rule {0} = reply",
    "shape {0} (a: text)",
)
POLICY = """\
let early = refund | reply
let seen = last(find_order(same order))
let holds(c) = c.total > 3
before refund require seen.status = open and holds(seen)
before early require find_order
before refund require every find_order(status = open | delivered)
finally require count(early) <= 3
after approve(answer = yes) owe refund(same order)
"""


# Declared twice, of two meanings, a rule named like a tool; or what was added is circular itself,
# or a `let` above is no set any more.
ERRORS = {"TCC201", "TCC234", "TCC206", "TCC207", "TCC225"}


def rules_of(core: Core) -> list[Rule]:
    kinds = Kinds(core)
    return [kinds.rule(one) for one in core.statements]


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.sampled(5)
def test_a_declaration_at_the_end_changes_no_meaning_above(added: str) -> None:
    text = DESK.replace("before any require no hand_over\n", "") + POLICY
    before = core_of(text)
    rules = rules_of(before)
    names = {node.name for node in _nodes(before) if isinstance(node, n.Word | n.Get)}
    assert {"open", "early", "seen", "order", "refund", "total", "c"} <= names
    for name in sorted(names):
        found = compile_source(text + added.format(name) + "\n")
        if found.core is None:
            codes = {one.code for one in found.diagnostics}
            assert codes <= ERRORS, (name, codes)
        else:
            assert rules_of(found.core)[: len(rules)] == rules, name


def _nodes(core: Core) -> list[n.Node]:
    roots: list[n.Node] = [let.body for let in core.lets]
    for one in core.statements:
        for member in ("on", "of", "then", "after", "calls", "most"):
            value = getattr(one, member, None)
            roots += [value] if isinstance(value, n.Node) else []
        roots += [*getattr(one, "where", ()), *getattr(one, "per", ())]
        roots += [let.body for let in getattr(one, "lets", ())]
    return [node for root in roots for node in n.walk(root)]


@pytest.mark.parametrize(
    ("block", "codes"),
    [
        ("let x = foo  require login", ["TCC202"]),
        ("let a = amount  let b = a + foo  require a < 3", ["TCC202"]),
        ("let a = amount  let b = a + 1  require login  require a < 3", []),
    ],
)
def test_a_let_of_a_block_is_checked_although_no_clause_uses_it(
    block: str, codes: list[str]
) -> None:
    head = 'grammar g version "1"\ntool login\ntool pay(amount: number 0 .. 5)\nlimit depth <= 4\n'
    found = compile_source(f"{head}before pay {{ {block} }}\n")
    assert [one.code for one in found.diagnostics] == codes
