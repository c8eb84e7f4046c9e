"""What is compiled is a core that certs reads back, with the author's statements in it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.plans import Alt, Diff, Empty, OneCall, Repeat, RuleRef, Seq
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType
from tcc_certs.values.fields import DateType, Field, ListType, NullableType, RecordType, TimeType
from tcc_compiler.names.compile import Compiled, compile_file, compile_source
from tests.compiler.names.corpus import DESK, SHIPPED

GRAMMARS = [path for path in SHIPPED if "shared" not in path.parts]


def compiled(text: str) -> Compiled:
    found = compile_source(text)
    shown = [(one.code, one.message, one.span) for one in found.diagnostics]
    assert found.core is not None, shown
    assert not shown
    return found


def core_of(text: str) -> Core:
    core = compiled(text).core
    assert core is not None
    return core


def reread(core: Core) -> Core:
    return read_core(encode(core_json(core)))


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.stem)
def test_certs_reads_the_core_of_a_shipped_grammar(path: Path) -> None:
    found = compile_file(path)
    assert found.core is not None, [(one.code, one.message) for one in found.diagnostics]
    assert reread(found.core) == found.core
    numbers = [place for place in found.places if isinstance(place, int)]
    assert numbers == list(range(len(found.core.statements)))


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.stem)
def test_the_canonical_texts_compile_to_the_same_core(path: Path) -> None:
    """The statements of a grammar may be replaced by what every listing shows of them."""
    found = compile_file(path)
    assert found.core is not None
    core = found.core
    if not core.statements:
        return
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("#", " #"))]
    source = "".join(kept)
    first = _first_policy(source)
    statements = [n.definition_text(let) for let in core.lets] + [
        _with_reason(one) for one in core.statements
    ]
    end = _after_policies(source)
    again = compile_source(source[:first] + "\n".join(statements) + "\n" + source[end:], path=path)
    assert again.core is not None, [(one.code, one.message) for one in again.diagnostics]
    assert again.core.statements == core.statements
    assert again.core.lets == core.lets


_POLICIES = ("let ", "before ", "finally ", "forbid ", "after ", "limit ")
_OTHERS = ("accept ", "reject ", "expect ", "plan ", "rule ", "start ", "goal ", "pass ")


def _first_policy(source: str) -> int:
    at = 0
    for line in source.splitlines(keepends=True):
        if line.startswith(_POLICIES):
            return at
        at += len(line)
    return at


def _after_policies(source: str) -> int:
    """The start of the first statement after the last policy statement."""
    at = end = 0
    policy = False
    for line in source.splitlines(keepends=True):
        if line.startswith(_POLICIES):
            policy = True
        elif line.startswith(_OTHERS):
            policy = False
        at += len(line)
        if policy:
            end = at
    return end


def _with_reason(statement: n.Statement) -> str:
    text = n.statement_text(statement)
    if statement.because is None:
        return text
    reason = f"because {n.quoted(statement.because)}"
    return f"{text[:-2]} {reason} }}" if text.endswith(" }") else f"{text} {reason}"


HEAD = 'grammar g version "1"\n'


def test_fields_are_those_that_are_declared() -> None:
    core = core_of(
        HEAD
        + """\
shape point (x: integer, y?: number -1.5 .. 2)
given role: "a b" | c, who?: text at "/name/x", name: json
given at_first from t.when | t.day
tool t(k: 1 | -2.50 | "x" | true | "true", r: 1..3, o?: a | b, l: text min 1 max 3 ~ "a+",
       e: text "EUR" | USD, i: integer 0 .. 18446744073709551615, f: flag, j: json max 9,
       p: list min 1 distinct of (x: text, y?: flag), q: list of (text or null),
       s: object point, n: text or null, u?: text or null)
  gives point (when: time utc, day: date "+02:00", `a b`?: text, v?: yes | null | *) : a -> b {
  doc "Says." bind mcp "s" "t" errors mean failed ~ "E.*" parallel quotes same
}
start a
goal b
"""
    )
    tool = core.tools[0]
    types = {one.name: one.type for one in (*tool.arguments, *tool.answers)}
    values = {one.name: one.values for one in (*tool.arguments, *tool.answers) if one.values}
    assert values == {
        "k": ("1", "-2.5", "x", "true", '"true"'), "r": ("1", "2", "3"), "o": ("a", "b"),
        "v": ("yes", "null", "*"),
    }  # fmt: skip
    assert types["l"] == TextType(least=1, most=3, pattern="a+")
    assert types["e"] == TextType(among=("EUR", "USD"), most=3)
    assert types["i"] == NumberType(whole=True, low="0", high="18446744073709551615")
    assert types["f"] == FlagType()
    assert types["j"] == JsonType(most=9)
    inner = (Field(name="x", steps=("x",), type=TextType()),
             Field(name="y", steps=("y",), type=FlagType(), optional=True))  # fmt: skip
    assert types["p"] == ListType(of=RecordType(fields=inner), least=1, distinct=True)
    assert types["q"] == ListType(of=NullableType(of=TextType()))
    assert isinstance(types["s"], RecordType)
    assert types["n"] == types["u"] == NullableType(of=TextType())
    assert types["when"] == TimeType(zone=0)
    assert types["day"] == DateType(zone=120)
    assert [one.name for one in tool.answers] == ["x", "y", "when", "day", "a b", "v"]
    nulls = {one.name: one.null for one in (*tool.arguments, *tool.answers) if one.optional}
    assert nulls == {"o": False, "u": False, "y": True, "a b": True, "v": False}
    assert (tool.doc, tool.bind, tool.error_text) == ("Says.", ("mcp", "s", "t"), "E.*")
    assert tool.errors_failed
    assert tool.parallel
    assert tool.quotes_same
    assert core.given[-1] == Learned(name="at_first", sources=(("t", "when"), ("t", "day")))
    assert [one.steps for one in core.given if isinstance(one, Field)] == [
        ("role",), ("name", "x"), ("name",),
    ]  # fmt: skip
    assert (core.start, core.goals) == ("a", ("b",))
    assert reread(core) == core


def test_the_plan_side() -> None:
    found = compiled(
        HEAD
        + """\
tool b(k: 1 | 2) { cost 0.5 cost 1 .. 2 when k = 2 latency (10 + 5 * k) * 1 ms price k }
tool a
tool c
let few = a | c
rule r = b(k=1) few?
plan = (r{1,2} - a) | any - few | ()
pass resources, input
accept b(k=1) a
reject c | a*
expect plans = 3
expect min_cost <= 0.5
expect reachable a
expect implies "other.tcg"
expect always before a require b
"""
    )
    core = found.core
    assert core is not None
    calls = [(one.text, one.cost_low, one.cost_high, one.price, one.latency) for one in core.calls]
    half = 500_000_000
    assert calls == [
        ("a", 0, 0, 0, 0), ("b(k=1)", half, half, 1, 15), ("b(k=2)", 2 * half, 4 * half, 2, 20),
        ("c", 0, 0, 0, 0),
    ]  # fmt: skip
    sets = {name: core.patterns.index(ranges) for name, ranges in {
        "any": ((0, 4),), "a": ((0, 1),), "c": ((3, 4),), "b1": ((1, 2),),
    }.items()}  # fmt: skip
    few = Alt((OneCall(sets["a"]), OneCall(sets["c"])))
    assert core.rules == {"r": Seq((OneCall(sets["b1"]), Repeat(few, 0, 1)))}
    # `|` binds tighter than `-`.
    without = Diff(Repeat(RuleRef("r"), 1, 2), (OneCall(sets["a"]),))
    assert core.plan == Diff(Alt((without, OneCall(sets["any"]))), (Alt((*few.items, Empty())),))
    assert core.passed == ("input", "resources")
    accept, reject = found.examples
    assert (accept.accept, reject.accept) == (True, False)
    assert accept.plans == Seq((OneCall(1), OneCall(0)))
    assert accept.patterns == (((0, 1),), ((1, 2),))
    assert isinstance(reject.plans, Alt)
    assert [(one.what, one.op, one.value) for one in found.expects] == [
        ("plans", "=", 3), ("min_cost", "<=", half), ("reachable", None, 0), ("implies", None, 0),
        ("always", None, 0),
    ]  # fmt: skip
    assert [one.text for one in found.expects][2:] == [
        "reachable a", 'implies "other.tcg"', "always before a require b",
    ]  # fmt: skip
    assert [n.statement_text(s) for s in found.expects[4].statements] == ["before a require b"]
    assert reread(core) == core


def test_without_a_plan_every_sequence_is_one() -> None:
    core = core_of(HEAD + "tool a\ntool b\n")
    assert core.plan == Repeat(OneCall(0), 0, None)
    assert core.patterns == (((0, 2),),)
    assert core.statements == ()


def test_each_clause_of_a_block_is_a_statement_with_the_lets_that_it_uses() -> None:
    found = compiled(
        HEAD
        + """\
tool a(x: text)
tool b(x: text, n: number)
before a {
  let o = last(b(same x))
  let twice = o.n * 2
  require o.n > 1 because "Why."
  require twice > 3
  let late = count(b)
  require late < 3 and b
}
"""
    )
    assert found.core is not None
    assert [n.statement_text(one) for one in found.core.statements] == [
        "before a { let o = last(b(same x))  require o.n > 1 }",
        "before a { let o = last(b(same x))  let twice = o.n * 2  require twice > 3 }",
        "before a { let late = count(b)  require late < 3 and b }",
    ]
    assert [one.because for one in found.core.statements] == ["Why.", None, None]
    assert [found.places[at].line for at in range(3)] == [7, 8, 10]


def test_listed_values_are_bare_in_a_core() -> None:
    """A quoted value is the bare word, unless the word would mean something else."""
    core = core_of(
        HEAD
        + """\
tool a(x: text)
tool b(s: open | "a b" | x | a | "1") gives (x: text)
let good = "open"
before a require b(s = "open", s != "a b" | "1")
before a require b(s = good)
before a require b(s = "x" | "a")
before a require match last(b).s { "open": 1, "a b": 2, "x": 3, else: 4 } > 2
"""
    )
    assert [n.statement_text(one) for one in core.statements] == [
        'before a require b(s = open, s != "a b" | "1")',
        "before a require b(s = good)",
        'before a require b(s = "x" | a)',
        'before a require match last(b).s { open: 1, "a b": 2, "x": 3, else: 4 } > 2',
    ]
    assert n.definition_text(core.lets[0]) == 'let good = "open"'
    assert reread(core) == core


def test_an_author_may_write_strings_as_in_patterns() -> None:
    core = core_of(HEAD + 'tool a(x: text)\nforbid a(x = "\\d+\\.x\\"\\\\\\u0041")\n')
    statement = core.statements[0]
    assert isinstance(statement, n.Forbid)
    assert statement.where[0] == n.Compare("=", n.Word("x"), n.Text('\\d+\\.x"\\A'))
    assert reread(core) == core


def test_used_files_have_tools_and_shapes(tmp_path: Path) -> None:
    (tmp_path / "tools.tcg").write_text(
        "shape point (x: integer)\ntool far(p: object point)\n", "utf-8"
    )
    (tmp_path / "bad.tcg").write_text("tool near\nlimit depth <= 3\n", "utf-8")
    main = tmp_path / "main.tcg"
    main.write_text(HEAD + 'use "tools.tcg"\ntool here gives point\nforbid far\n', "utf-8")
    core = compile_file(main).core
    assert core is not None
    assert [tool.name for tool in core.tools] == ["here", "far"]
    main.write_text(HEAD + 'use "bad.tcg"\n', "utf-8")
    found = compile_file(main)
    assert [(one.code, one.span and one.span.file) for one in found.diagnostics] == [
        ("TCC224", str(tmp_path / "bad.tcg"))
    ]
    main.write_text(HEAD + 'use "main.tcg"\nuse "../x.tcg"\nuse "no.tcg"\n', "utf-8")
    codes = [one.code for one in compile_file(main).diagnostics]
    assert codes == ["TCC223", "TCC222", "TCC221"]


def test_the_order_of_tools_does_not_change_statements() -> None:
    rng = random.Random(1)
    lines = DESK.splitlines(keepends=True)
    tools = [at for at, line in enumerate(lines) if line.startswith("tool ") and "find" not in line]
    for _ in range(5):
        order = rng.sample(tools, len(tools))
        moved = {at: lines[other] for at, other in zip(tools, order, strict=True)}
        text = "".join([moved.get(at, line) for at, line in enumerate(lines)])
        assert core_of(text).statements == core_of(DESK).statements


def test_what_cannot_be_read_has_a_code(tmp_path: Path) -> None:
    assert [one.code for one in compile_file(tmp_path / "no.tcg").diagnostics] == ["TCC110"]
    (tmp_path / "a.tcg").write_bytes(b"\xff\xfe")
    assert [one.code for one in compile_file(tmp_path / "a.tcg").diagnostics] == ["TCC109"]
    (tmp_path / "b.tcg").write_bytes(b"grammar \xff")
    assert [one.code for one in compile_file(tmp_path / "b.tcg").diagnostics] == ["TCC108"]
    assert [one.code for one in compile_source('{"a": 1}').diagnostics] == ["TCC101"]
    assert [one.code for one in compile_source("").diagnostics] == ["TCC213"]
    assert [one.code for one in compile_source("tool a\n").diagnostics] == ["TCC213"]
    assert [one.code for one in compile_source(HEAD).diagnostics] == ["TCC214"]
