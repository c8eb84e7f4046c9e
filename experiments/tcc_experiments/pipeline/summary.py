"""An extractive summariser: the number of each quantity, with the words that it stands behind.

A number of a passage is told by the words of the title, by those before the first number of its
sentence, and by those right before it.  It is the quantity's where these have every word of the
phrase that is not a common one, and fewer others than these; the fewest others win, then the
earlier passage.  It makes nothing up, and knows no synonym: what no passage says in these words is
not found.
Cost: linear in the passages, times the quantities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tcc_experiments.pipeline.codes import Code
from tcc_experiments.pipeline.corpus import query_words
from tcc_experiments.pipeline.errors import PipelineError
from tcc_experiments.pipeline.reading import read_question

MOST_PASSAGES = 80
LONGEST_PASSAGE = 2000  # characters
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
_SENTENCE = re.compile(r"(?<=[.;])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A number of a passage.

    Attributes:
        number: as it stands there.
        words: what it is told by.
        sentence: where it stands.
    """

    number: str
    words: frozenset[str]
    sentence: str


def summarise(question: str, passages: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The numbers that a question needs, each with its sentence.

    Args:
        question: in the forms of :func:`read_question`.
        passages: objects with ``title`` and ``body``.

    Returns:
        ``found``: ``all`` or ``some``; ``facts``: of each quantity that was found its ``quantity``,
        ``number`` and ``sentence``; ``missing``: the other quantities.

    Raises:
        PipelineError: X202, X203: the question, or the passages, are no such thing.
    """
    asked = read_question(question)
    said = [one for passage in _passages(passages) for one in _numbers(*passage)]
    facts, missing = list[dict[str, str]](), list[str]()
    for quantity in asked.quantities:
        best = _best(frozenset(map(_stem, query_words(quantity))), said)
        if best is None:
            missing.append(quantity)
        else:
            facts.append({"quantity": quantity, "number": best.number, "sentence": best.sentence})
    return {"found": "some" if missing else "all", "facts": facts, "missing": missing}


def _passages(given: Sequence[Mapping[str, object]]) -> list[tuple[str, str]]:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MOST_PASSAGES:
        due = f"a list of at most {MOST_PASSAGES} passages"
        raise PipelineError(Code.PASSAGES, "passages", due, type(given).__name__)
    found = []
    for at, passage in enumerate(given):
        title = passage.get("title") if isinstance(passage, Mapping) else None
        body = passage.get("body") if isinstance(passage, Mapping) else None
        if not isinstance(title, str) or not isinstance(body, str):
            due = "an object with the texts title and body"
            raise PipelineError(Code.PASSAGES, f"passages[{at}]", due, type(passage).__name__)
        if len(title) + len(body) > LONGEST_PASSAGE:
            due, long = f"at most {LONGEST_PASSAGE} characters", len(title) + len(body)
            raise PipelineError(Code.PASSAGES, f"passages[{at}]", due, long)
        found.append((title, body))
    return found


def _numbers(title: str, body: str) -> Iterator[Said]:
    about = _words(title)
    for sentence in _SENTENCE.split(body):
        head: frozenset[str] | None = None
        before = 0
        for match in _NUMBER.finditer(sentence):
            told = _words(sentence[before : match.start()])
            head = told if head is None else head
            yield Said(number=match[0], words=about | head | told, sentence=sentence)
            before = match.end()


def _best(wanted: frozenset[str], said: Sequence[Said]) -> Said | None:
    """The number that has every word, with the fewest others; the first of equals."""
    fitting = [one for one in said if wanted <= one.words and len(one.words - wanted) < len(wanted)]
    return min(fitting, key=lambda one: len(one.words - wanted), default=None)


def _words(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in query_words(text) if not word.isdigit())


def _stem(word: str) -> str:
    """A word without its plural."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
