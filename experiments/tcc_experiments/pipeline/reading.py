"""What a question asks: the quantities that it names, and what is to be done with them.

A question is in controlled English: "What is A?", "the ratio of A to B", "the difference between A
and B", "the sum of A and B", "the range of A", "How many A are there in B?", and quantities joined
by plus, minus, times and divided by, with the usual precedence.  Whatever is in no such form is one
quantity.  Cost: linear in the question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcc_experiments.pipeline.codes import Code
from tcc_experiments.pipeline.errors import PipelineError

LONGEST_QUESTION = 400  # characters
MOST_QUANTITIES = 6
_SIGNS = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}
_JOINT = re.compile(r" (plus|minus|times|divided by) ")
_FORMS = (
    (re.compile(r"the ratio of (.+) to (.+)"), "{1} / {2}"),
    (re.compile(r"the difference between (.+) and (.+)"), "{1} - {2}"),
    (re.compile(r"the sum of (.+) and (.+)"), "{1} + {2}"),
    (re.compile(r"the product of (.+) and (.+)"), "{1} * {2}"),
)
_RANGE = re.compile(r"the range of (.+)")
_HOW_MANY = re.compile(r"how many (.+) are there in (.+)", re.IGNORECASE)
_WHAT = re.compile(r"(?:what is|give|find) (.+)", re.IGNORECASE)
_HOLE = re.compile(r"\{([1-9])\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is looked for.

    Attributes:
        quantities: each is a phrase, to be found in a passage with its number.
        expression: arithmetic over ``{1}``, ``{2}``, .., the numbers of the quantities.
    """

    quantities: tuple[str, ...]
    expression: str

    def filled(self, numbers: list[str]) -> str:
        """The expression with numbers in the place of the quantities."""
        return _HOLE.sub(lambda hole: f"({numbers[int(hole[1]) - 1]})", self.expression)


def read_question(text: str) -> Asked:
    """What a question asks.

    Raises:
        PipelineError: X202, it is empty, too long or names too many quantities.
    """
    if not text.strip() or len(text) > LONGEST_QUESTION:
        due = f"1 to {LONGEST_QUESTION} characters"
        raise PipelineError(Code.QUESTION, "question", due, f"{len(text)} characters")
    asked = _asked(" ".join(text.split()).rstrip("?. "))
    if len(asked.quantities) > MOST_QUANTITIES:
        due, found = f"at most {MOST_QUANTITIES} quantities", len(asked.quantities)
        raise PipelineError(Code.QUESTION, "question", due, found)
    return asked


def _asked(text: str) -> Asked:
    if found := _HOW_MANY.fullmatch(text):
        return Asked(quantities=(found[2], f"one {found[1]}"), expression="{1} / {2}")
    if found := _WHAT.fullmatch(text):
        text = found[1]
    for form, expression in _FORMS:
        if found := form.fullmatch(text):
            return Asked(quantities=(found[1], found[2]), expression=expression)
    if found := _RANGE.fullmatch(text):
        both = (f"max {found[1]}", f"min {found[1]}")
        return Asked(quantities=both, expression="{1} - {2}")
    parts = _JOINT.split(text)
    signs = [_SIGNS[joint] for joint in parts[1::2]]
    holes = [f"{{{at}}}" for at in range(1, len(signs) + 2)]
    joined = "".join(f" {sign} {hole}" for sign, hole in zip(signs, holes[1:], strict=True))
    return Asked(quantities=tuple(parts[::2]), expression=holes[0] + joined)
