"""Tokens and comments of grammar texts, read by an expression of the tests, and put elsewhere."""

from __future__ import annotations

import random
import re

_PART = re.compile(
    r'\s+|(#[^\n]*)|("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|->|\.\.|<=|>=|==|!=|!~|.)',
    re.DOTALL,
)
_BLANKS = (" ", "  ", "\t", "\n", "\r\n", "\n\n", " \n \n\n ")


def parts_of(text: str) -> list[str]:
    """The tokens and the comments of a text, in order; comments without space at their end."""
    found = []
    for match in _PART.finditer(text):
        comment, token = match.groups()
        if comment is not None:
            found.append(comment.rstrip())
        elif token is not None:
            found.append(token)
    return found


def comments_of(text: str) -> list[str]:
    """The comments alone."""
    return [part for part in parts_of(text) if part.startswith("#")]


def strewn(text: str, rng: random.Random) -> str:
    """The text without comments, with other white space between its tokens."""
    tokens = [part for part in parts_of(text) if not part.startswith("#")]
    return rng.choice(("", *_BLANKS)) + "".join(token + rng.choice(_BLANKS) for token in tokens)


def commented(text: str, rng: random.Random, share: float) -> str:
    """The text with comments between any of its tokens, behind them and on lines of their own."""
    made = []
    for number, token in enumerate(parts_of(text)):
        while rng.random() < share:
            start = rng.choice((" ", "", "\n", "\n\n", "\n  "))
            made.append(
                f'{start}#{rng.choice(("", " ", "!"))}c{number} {{ " ){" " * rng.randint(0, 2)}\n'
            )
        made.append(token + rng.choice((" ", "\n")))
    return "".join(made)


def moved(text: str, rng: random.Random) -> str:
    """Other white space between the tokens, each comment where it is: on its line, or its own."""
    made = []
    for line in re.split(r"(\n)", text):
        if line == "\n" or "#" in line or not line.strip():
            made.append(line if "#" not in line else line + " " * rng.randint(0, 2))
        else:
            made.append(rng.choice(("", " ", "\t")) + line + rng.choice(("", " ", "\r")))
    return "".join(made)
