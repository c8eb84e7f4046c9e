"""Where each kind of statement, and each comment, stands; and what hostile texts come to."""

from __future__ import annotations

import pytest

from tcc_compiler.format import text as module
from tcc_compiler.format.lines import DEEPEST
from tcc_compiler.format.text import LayoutError, format_bytes, format_source
from tcc_compiler.language.source import MAX_SOURCE_BYTES, Unreadable, source_of
from tests.compiler.format.reading import comments_of
from tests.scaling.measure import MOST, growth, swelling

HEAD = 'grammar g version "1"\n'


def formatted(text: str) -> str:
    made = format_source(source_of(text, "x.tcg"))
    assert made.text is not None, made.diagnostics
    return made.text


LAID_OUT = {
    "a short tool on one line": (
        'tool a ( k :1|2,e?:x|"y" ; t:text~"z" max 3,n?:integer -1..+5)gives(r:yes|no):s->t{'
        "cost -k*( 2+ -k )price 1}",
        'tool a(k: 1 | 2, e?: x | "y"; t: text ~ "z" max 3, n?: integer -1 .. +5) gives (r: yes | no)\n'
        "    : s -> t {\n  cost -k * (2 + -k)\n  price 1\n}\n",
    ),
    "an attribute a line where a tool is long": (
        f'tool a {{ doc "{"d" * 60}" cost 1 .. 2 when k = 1|-2 latency 2 s model m {{ price 1 latency 3 ms }} strict }}',
        f'tool a {{\n  doc "{"d" * 60}"\n  cost 1 .. 2 when k = 1 | -2\n  latency 2 s\n'
        "  model m { price 1 latency 3 ms }\n  strict\n}\n",
    ),
    "nothing in braces": ("tool a {\n\n} tool b{model m{ }}", "tool a {}\ntool b { model m {} }\n"),
    "statements of one kind together": (
        HEAD + "tool a plan=a+ limit depth<=3 limit price<=4 require a before a forbid a a\n\n"
        "forbid a accept a reject ( ) expect plans>=1",
        HEAD + "\ntool a\n\nplan = a+\n\nlimit depth <= 3\nlimit price <= 4\n\n"
        "require a before a\nforbid a a\nforbid a\n\naccept a\nreject ()\n\nexpect plans >= 1\n",
    ),
    "operators": (
        "rule r=( )|a ( k = 1|2 ,e=-5)-b & any {2,}( c ?|d*){1 , 2}",
        "rule r = () | a(k=1|2, e=-5) - b & any{2,} (c? | d*){1,2}\n",
    ),
    "words in their place": (
        "limit uses(a(k=1))per t<=2 limit sum(a . x)<=0.5 limit latency<=5 s start s goal s|t\n"
        "require a before each b same p,q=r forbid a before b currency\"E\"",
        "limit uses(a(k=1)) per t <= 2\nlimit sum(a.x) <= 0.5\nlimit latency <= 5 s\n\n"
        'start s\ngoal s | t\n\nrequire a before each b same p, q = r\nforbid a before b\n\ncurrency "E"\n',
    ),
    "long sequences are filled": (
        "accept " + "look(k=1) " * 12,
        f"accept {' '.join(['look(k=1)'] * 9)}\n       {' '.join(['look(k=1)'] * 3)}\n",
    ),
    "a line for each operand of the loosest operator": (
        f"plan = {'x' * 40} | ({'y' * 40} | {'z' * 40} - {'w' * 30})* | v",
        f"plan = {'x' * 40}\n     | ({'y' * 40} | {'z' * 40}\n       - {'w' * 30})*\n     | v\n",
    ),
    "empty": ("", ""),
    "blank": (" \n\t\r\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LAID_OUT)
def test_the_layout_of(name: str) -> None:
    text, due = LAID_OUT[name]
    assert formatted(text) == due
    assert formatted(due) == due


COMMENTED = {
    "of the file, of a statement, at the end": (
        "\n\n# file\n\n\n\n# tool\ntool a#behind  \n\n# next\nplan = a # end\n\n\n#last",
        "# file\n\n# tool\ntool a  #behind\n\n# next\nplan = a  # end\n\n#last\n",
    ),
    "only comments": ("#a\n\n\n#b\n\n", "#a\n\n#b\n"),
    "a paragraph of an author": (
        "limit depth <= 1\n# why\nlimit cost <= 1\n\n# how\nlimit price <= 1\n\nlimit epsilon <= 1",
        "limit depth <= 1\n# why\nlimit cost <= 1\n\n# how\nlimit price <= 1\nlimit epsilon <= 1\n",
    ),
    "the end of a paragraph": (
        "tool a\n# end of the tools\n\nplan = a",
        "tool a\n# end of the tools\n\nplan = a\n",
    ),
    "inside a tool": (
        "tool a(k: 1 # one\n | 2) # two\n{ # first\n\n # cost\n\n cost 1 # low\n # end\n }# after",
        "tool a(k: 1  # one\n        | 2)  # two\n  {  # first\n  # cost\n  cost 1  # low\n"
        "  # end\n}  # after\n",
    ),
    "inside an expression": (
        "plan = a # first\n| b\n# third\n| (c # d\n e)",
        "plan = a  # first\n     | b\n     # third\n     | (c  # d\n         e)\n",
    ),
    "inside arguments, a limit and an example": (
        "plan = a(k=1 # one\n|2)\nlimit # what\ndepth <= 3\naccept a # then\n b",
        "plan = a(k=1  # one\n         |2)\n\nlimit  # what\n    depth <= 3\n\n"
        "accept a  # then\n       b\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMENTED)
def test_the_comments(name: str) -> None:
    text, due = COMMENTED[name]
    assert formatted(text) == due
    assert formatted(due) == due
    assert comments_of(due) == comments_of(text)


def test_every_error_of_syntax_has_its_place_and_there_is_no_text() -> None:
    made = format_source(source_of("tool a {\nlimit deep <= 3\nplan = (a", "x.tcg"))
    assert made.text is None
    found = [(d.code, d.span and (d.span.line, d.span.column)) for d in made.diagnostics]
    assert found == [("TCC101", (1, 9)), ("TCC101", (2, 7)), ("TCC101", (3, 10))]


def test_what_only_the_meaning_forbids_is_laid_out() -> None:
    assert formatted("plan=b tool a   tool a") == "plan = b\n\ntool a\ntool a\n"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"tool \xff", "TCC108"),
        (b"tool a\0", "TCC108"),
        (b"\xef\xbb\xbftool a", "TCC109"),
        (b"#" * (MAX_SOURCE_BYTES + 1), "TCC107"),
        (b"tool a " * (1 << 17), "TCC107"),
        (b"plan = " + b"(" * 201 + b"a" + b")" * 201, "TCC106"),
        (Unreadable(code="TCC110", message="no file"), "TCC110"),
    ],
)
def test_bytes_that_are_no_grammar_have_a_code(data: bytes | Unreadable, code: str) -> None:
    made = format_bytes(data, "x.tcg")
    assert made.text is None
    assert code in [d.code for d in made.diagnostics]


HOSTILE = {
    "a long string": f'tool a {{ doc "{"x" * (1 << 20)}" }}\n',
    "a long comment": f"tool a  # {'x' * (1 << 20)}\n",
    "a long name": f"plan = {'x' * (1 << 20)}\n",
    "deep parentheses": f"plan = {'(' * 200}a{' | b)' * 200}\n",
    "deep signs": f"tool a {{ cost {'-' * 200}1 }}\n",
    "blank lines": "tool a" + "\n" * (1 << 20),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_has_an_answer(name: str) -> None:
    once = formatted(HOSTILE[name])
    assert formatted(once) == once


def test_deep_nesting_does_not_make_a_text_long() -> None:
    text = "plan = " + f"{'a' * 8} (" * 199 + "b | " * 3_000 + "b" + ")" * 199
    assert len(formatted(text)) < len(text) + 3_001 * (DEEPEST + 200 * 2)
    lines = formatted(text).splitlines()
    assert max(len(line) - len(line.lstrip()) for line in lines) == DEEPEST


SIZES = {
    "tools": lambda n: "".join(f"tool t{i} {{cost {i}}}\n" for i in range(n)),
    "values": lambda n: f"tool a(k: {'|'.join(f'v{i}' for i in range(n))})",
    "choices": lambda n: "plan = " + "|".join(f"a{i}" for i in range(n)),
    "sequence": lambda n: "plan = " + "a " * n,
    "groups": lambda n: "plan = " + "(a | b) " * n,
    "nested groups": lambda n: "plan = " + ("(" * 5 + "a" + ")" * 5) * n,
    "differences": lambda n: "plan = a" + " - a a" * n,
    "arguments": lambda n: f"plan = a({', '.join(f'k{i}=1|2' for i in range(n))})",
    "attributes": lambda n: f"tool a {{ {'cost 1 when k = 2 ' * n}}}",
    "models": lambda n: f"tool a {{ {'model m { price 1 } ' * n}}}",
    "comments": lambda n: "tool a # c\n# d\n" * n,
    "comments inside": lambda n: "plan = a\n" + "# c\n| b # d\n" * n,
    "one gap": lambda n: "tool a" + " # c\n" * n,
}


@pytest.mark.parametrize("name", SIZES)
def test_twice_the_text_takes_twice_the_steps_and_bytes(name: str) -> None:
    def work(n: int):
        source = source_of(SIZES[name](n), "x.tcg")
        return lambda: format_source(source)

    assert growth(work, 30) < MOST
    assert swelling(work, 150) < MOST


def test_other_tokens_than_the_text_s_are_never_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "lines_of", lambda elements: "tool b")
    with pytest.raises(LayoutError):
        formatted("tool a")
    monkeypatch.setattr(module, "lines_of", lambda elements: "tool a # more")
    with pytest.raises(LayoutError):
        formatted("tool a")
