"""Patterns of JSON Schema in the dialect of open texts: the same texts match."""

from __future__ import annotations

import random
import re

import pytest

from tcc_certs.values.text_pattern import parse
from tcc_compiler.imports.patterns import dialect_of


@pytest.mark.parametrize(
    ("pattern", "made"),
    [
        ("^abc$", "abc"),
        ("abc", ".*abc.*"),
        ("^a", "a.*"),
        ("^a$|b", "a|.*b.*"),
        ("^(a|b)$", "(?:a|b)"),
        ("(^a$|^b$)", "a|b"),
        ("^ord-[0-9]+$", "ord-[0-9]+"),
        ("^\\w+?$", "[0-9A-Z_a-z]+"),
        ("^[^\\s/]{1,39}$", None),
        ("^.$", "[^\\n\\r]"),
        ("^[\\s\\S]*$", ".*"),
        ("^\\x41\\u0042\\u{43}$", "ABC"),
        ("^(?<year>[0-9]{4})-\\/$", "(?:[0-9]{4})-/"),
        ("^[\\w.-]+$", "[\\--\\.0-9A-Z_a-z]+"),
        ("^a{2}{3}$", None),
        ("(?=a)b", None),
        ("(?!a)b", None),
        ("(?<=a)b", None),
        ("(a)\\1", None),
        ("\\bword\\b", None),
        ("\\p{L}", None),
        ("^[\\x00-\\x1f]$", None),
        ("a^b", None),
        ("(", None),
        (")", None),
        ("[", None),
        ("*", None),
        ("[]", None),
        ("^(a$|b)c", None),
        ("^(" * 100, None),
        ("^a{1001}$", None),
        ("x" * 5000, None),
        ("", ".*.*"),
    ],
)
def test_patterns(pattern: str, made: str | None) -> None:
    if pattern == "^[^\\s/]{1,39}$":
        found = dialect_of(pattern)
        assert found is not None
        assert parse(found).matches("a-b")
        assert not parse(found).matches("a b")
        return
    assert dialect_of(pattern) == made


ATOMS = [
    "a",
    "b",
    "0",
    ".",
    "\\d",
    "\\w",
    "\\s",
    "\\D",
    "[ab]",
    "[^a]",
    "[a-c0]",
    "\\.",
    "\\-",
    "-",
]
MARKS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"]


def expression(random_: random.Random, depth: int = 2) -> str:
    def piece() -> str:
        if depth and random_.random() < 0.3:
            group = random_.choice(["(%s)", "(?:%s)", "(?P<x>%s)".replace("P<x>", ":")])
            return group % expression(random_, depth - 1) + random_.choice(MARKS)
        return random_.choice(ATOMS) + random_.choice(MARKS)

    def alternative() -> str:
        return "".join(piece() for _ in range(random_.randint(0, 3)))

    return "|".join(alternative() for _ in range(random_.choice([1, 1, 2])))


def test_random_patterns_match_what_the_interpreters_own_do() -> None:
    random_ = random.Random(7)
    texts = [
        "",
        "a",
        "b",
        "ab",
        "0",
        "a0",
        "-",
        ".",
        "ba-",
        " ",
        "\t",
        "c",
        "aab",
        "00b",
        "a.b",
        "\n",
    ]
    translated = 0
    for _ in range(1500):
        inner = expression(random_)
        pattern = random_.choice(["%s", "^%s", "%s$", "^%s$", "^(%s)$", "^(?:%s)$"]) % inner
        made = dialect_of(pattern)
        if made is None:
            continue
        translated += 1
        # ECMAScript's dot leaves out a carriage return, too; its $ is the very end.
        theirs = pattern.replace("$", "\\Z") if pattern.endswith("$") else pattern
        oracle = re.compile(theirs, re.ASCII)
        for text in texts:
            assert parse(made).matches(text) == bool(oracle.search(text)), (pattern, made, text)
    assert translated > 1000
