"""What goes wrong in the pipeline, and what each code means, in a sentence.

Text: docs/pipeline.md, the table of codes.  Their letter, X, is of no other code.  Cost: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Code(StrEnum):
    """Codes of the pipeline."""

    CORPUS_MISSING = "X101"
    CORPUS_ALTERED = "X102"
    QUERY = "X201"
    QUESTION = "X202"
    PASSAGES = "X203"
    TOO_LONG = "X301"
    NOT_ARITHMETIC = "X302"
    NO_VALUE = "X303"
    CATEGORY = "X401"
    RECORD = "X402"


TEXTS: Mapping[Code, str] = {
    Code.CORPUS_MISSING: "There is no corpus at this path.",
    Code.CORPUS_ALTERED: "The file is no corpus, or not the one whose digest was given.",
    Code.QUERY: "A query has no words, over 400 characters, or asks for more than 20 passages.",
    Code.QUESTION: "A question is empty, too long, or names more than six quantities.",
    Code.PASSAGES: "The passages to be summarised are none, too many or too long.",
    Code.TOO_LONG: "An expression has more than 200 characters.",
    Code.NOT_ARITHMETIC: "An expression has something in it that is not arithmetic.",
    Code.NO_VALUE: "An expression has no finite real value.",
    Code.CATEGORY: "There is no such shelf or category.",
    Code.RECORD: "The file is no record of categories.",
}
