"""Large grammars: each shape is the size in bytes, about, in one dimension of the language."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.campaigns.large import drawn_size, texts
from tests.campaigns.mutate import mutate_bytes

HEAD = 'grammar g version "1"\n'
TOOLS = "tool a\ntool b\ntool c(k: 1..3)\n"
END = "limit depth <= 4\n"
MOST = 1 << 17
_WORDS = """
( ) { } , : | = + - * ? & -> .. <= >= == grammar tool rule plan limit require forbid accept
expect any when before owe since a b c cost depth count 1 0.5 2..9 c(k=1) a{0,9} {3} {2,} "x"
"""


def long_text(rng: Random, size: int) -> str:
    """One string: a doc, a version, a value, a name of a server."""
    text = texts.quoted(rng, size)
    return rng.choice(
        (
            f"{HEAD}tool a {{ doc {text} }}\nplan = a\n",
            f"grammar g version {text}\ntool a\nplan = a\n",
            f"{HEAD}tool a(k: {text} | x)\nplan = a\n",
            f'{HEAD}tool a {{ bind mcp {text} "t" }}\nplan = a\n',
        )
    )


def long_name(rng: Random, size: int) -> str:
    """One name, used here and there."""
    name = rng.choice("az_A") * size
    other = rng.choice(("", "a"))
    return f"{HEAD}tool {name}\nplan = {name} {name}?\naccept {name}{other}\n"


def long_number(rng: Random, size: int) -> str:
    """A number of many digits, where numbers stand."""
    number = rng.choice("109") * rng.choice((999, 1000, 1001, size))
    tail = rng.choice(("", "." + number))
    return rng.choice(
        (
            f"{HEAD}tool a {{ cost {number}{tail} }}\nplan = a\n",
            f"{HEAD}tool a {{ cost 0.{number} * 0.{number} * 3 }}\nplan = a\n",
            f"{HEAD}tool a\nplan = a*\nlimit depth <= {number}\n",
            f"{HEAD}tool a\nplan = a{{{number}}}\n",
            f"{HEAD}tool a(k: 1..{number})\nplan = a\n",
            f"{HEAD}tool a(k: {number} | {number}{tail})\nplan = a(k={number})\n",
            f"{HEAD}tool a\nplan = a\nexpect plans <= {number}\nlimit price <= {number}\n",
        )
    )


def long_line(rng: Random, size: int) -> str:
    """A whole grammar, or all of its plan, on one line."""
    joint = rng.choice((" ", " | ", " & ", " - ", "? ", "* | ", "{0,2} "))
    plan = joint.join(rng.choice(("a", "b", "c", "c(k=1)", "any", "()")) for _ in range(size // 6))
    text = HEAD + TOOLS + f"plan = {plan}\n" + END
    return text.replace("\n", " ") if rng.random() < 0.5 else text


def deep_plan(rng: Random, size: int) -> str:
    """Parentheses and repeats inside each other."""
    depth = min(size // 8, rng.choice((20, 198, 200, 201, 1000, 50_000)))
    start, close = rng.choice(
        (("(", ")"), ("(a ", ")"), ("(a | ", "){0,2}"), ("(a? ", ")?"), ("(b - (", "))"), ("(", ""))
    )
    return f"{HEAD}{TOOLS}plan = {start * depth}a{close * depth}\n{END}"


def stacked(rng: Random, size: int) -> str:
    """Postfix operators and signs on top of each other."""
    depth = min(size, rng.choice((100, 199, 201, 50_000)))
    mark = rng.choice(("?", "*", "+", "{0,2}", "{2}", "?*+"))
    sign = rng.choice(("-", "+", "-(", "(", "1 + ", "2 * "))
    ends = ")" * depth if "(" in sign else ""
    return rng.choice(
        (
            f"{HEAD}{TOOLS}plan = a{mark * depth}\n{END}",
            f"{HEAD}tool a {{ cost {sign * depth}1{ends} }}\nplan = a\n",
        )
    )


def chained_rules(rng: Random, size: int) -> str:
    """Rules that use each other, forwards, backwards, twice, or in a circle."""
    number = size // 22
    body = rng.choice(
        ("a r{}", "r{}", "r{} r{}", "r{} | a", "(a r{})?", "b | a r{} r{}", "r{}{{0,2}}")
    )
    lines = [f"rule r{at} = {body.replace('{}', str(at + 1))}\n" for at in range(number)]
    lines = [line.replace("{{", "{").replace("}}", "}") for line in lines]
    lines.append(f"rule r{number} = {rng.choice(('a', 'r0', '()', 'a r0'))}\n")
    if rng.random() < 0.5:
        lines.reverse()
    return f"{HEAD}{TOOLS}plan = r0\n{END}{''.join(lines)}"


def many_tools(rng: Random, size: int) -> str:
    """Tools with every attribute, all of them in the plan or not."""
    number = size // 60 + 1
    more = rng.choice(
        ("", " { cost 1.5 price 2 }", "(k: x | y) { cost 1 when k = x }", " : p -> q")
    )
    tools = "".join(f"tool t{at:05}{more}\n" for at in range(number))
    plan = rng.choice(("any", "any{2}", " | ".join(f"t{at:05}" for at in range(number))))
    return f"{HEAD}{tools}plan = {plan}\nlimit depth <= 2\n"


def many_statements(rng: Random, size: int) -> str:
    """Requires, forbids, limits and examples, thousands of them over many calls."""
    some = rng.choice((2, 9, 200))
    tools = f"tool t(k: 1..{some})\ntool u\n"
    lines = []
    for at in range(size // 45 + 1):
        one, other = at % some + 1, rng.randrange(some) + 1
        both = f"{one} | {other}" if one != other else f"{one}"
        lines.append(
            rng.choice(
                (
                    f"before t(k={other}) require t(k={one})\n",
                    f"after t(k={other}) owe t(k={one})\n",
                    f"before t(k={other}) require no t(k={one}) since any - t(k={one})\n",
                    f"before t(k={other}) require no t(k={one})\n",
                    f"limit count(t(k={one})) <= {other}\n",
                    f"finally require count(t(k={both})) >= 0\n",
                    f"accept t(k={one}) t(k={other})\nreject u\n",
                    f"expect plans >= {at}\n",
                )
            )
        )
    return f"{HEAD}{tools}plan = t* u?\n{END}{''.join(lines)}"


def many_whens(rng: Random, size: int) -> str:
    """One tool with very many values, amounts, conditions and models."""
    number = size // 30 + 1
    kind = rng.choice(("cost", "price", "latency", "epsilon"))
    unit = " ms" if kind == "latency" else ""
    whens = "".join(f"  {kind} {at}{unit} when k = {at}\n" for at in range(number))
    models = "".join(f"  model m{at} {{ price {at} }}\n" for at in range(number))
    body = rng.choice((whens, models, whens + models))
    return f"{HEAD}tool a(k: 0..{number}) {{\n{body}}}\nplan = a\n"


def many_values(rng: Random, size: int) -> str:
    """Domains whose product is large, or is past what is allowed; patterns that name many."""
    number = size // 8 + 1
    listed = " | ".join(f"v{at}" for at in range(number))
    wide = ", ".join(f"p{at}: 0..{rng.choice((1, 9, 99))}" for at in range(min(number, 40)))
    return rng.choice(
        (
            f"{HEAD}tool a(k: {listed})\nplan = a\n",
            f"{HEAD}tool a(k: {listed})\nplan = a(k={listed}) a(k=v0)\n",
            f"{HEAD}tool a({wide}) {{ cost p0 * p1 + p2 }}\nplan = a\n",
            f"{HEAD}tool a(k: 0..{number}, m: 0..9) {{ cost k * m + 0.5 * k }}\nplan = a(k=1)\n",
            f"{HEAD}tool a(k: {number}..0)\nplan = a\n",
        )
    )


def long_sum(rng: Random, size: int) -> str:
    """Arithmetic of very many terms."""
    joint = rng.choice((" + ", " - ", " * ", " + k * ", "*-"))
    sums = joint.join(rng.choice(("1", "k", "0.5", "2")) for _ in range(size // 6))
    return f"{HEAD}tool a(k: 0..{rng.choice((0, 3, 300))}) {{ cost {sums} }}\nplan = a\n"


def long_examples(rng: Random, size: int) -> str:
    """An example of very many calls."""
    word = " ".join(rng.choice(("a", "b", "c", "c(k=2)")) for _ in range(size // 3))
    kind = rng.choice(("accept", "reject"))
    return f"{HEAD}{TOOLS}plan = any*\n{END}{kind} {word}\n"


def blank(rng: Random, size: int) -> str:
    """Comments, empty lines, uses: what means nothing, or has no file."""
    piece = rng.choice(("\n", "# x\n", "#", " ", "\r\n", "\t", 'use "x.tcg"\n', "\ufeff", "\x00"))
    return HEAD + piece * (size // len(piece)) + "tool a\nplan = a\n"


def any_words(rng: Random, size: int) -> str:
    """Tokens in any order."""
    words = _WORDS.split()
    return HEAD + " ".join(rng.choice(words) for _ in range(size // 4))


SHAPES: tuple[Callable[[Random, int], str], ...] = (
    long_text, long_name, long_number, long_line, deep_plan, stacked, chained_rules, many_tools,
    many_statements, many_whens, many_values, long_sum, long_examples, blank, any_words,
)  # fmt: skip


def large_grammar(rng: Random) -> bytes:
    """The text of a grammar of 1 KB to 128 KB; one in three has bytes edited on top."""
    size = drawn_size(rng, 1 << 10, MOST)
    data = rng.choice(SHAPES)(rng, size).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        return mutate_bytes(rng, data, [data], [b"(", b'"', b"\\", b" a ", b"{9999}", b"\n"])
    return data
