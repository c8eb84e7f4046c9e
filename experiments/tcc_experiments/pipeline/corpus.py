"""The corpus: a file of SQLite with an FTS5 index, ranked by BM25.

A query is taken as words, each in quotation marks, so that nothing in it is syntax.  The file is
opened read-only; its BLAKE3 digest is what a record names, and what a server is held to.  Equal
ranks go by the number of the passage.
Cost: to build, some tenths of a second; a query, less than a millisecond.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from tcc_experiments.pipeline.codes import Code
from tcc_experiments.pipeline.errors import PipelineError
from tcc_experiments.pipeline.texts import Text

MOST_PASSAGES = 20
LONGEST_QUERY = 400  # characters
_MOST_BYTES = 1 << 28  # of a file
_WORDS = 40  # of a query: more are left out
_COMMON = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "does", "for", "from", "have", "how"),
        *("in", "is", "it", "its", "many", "of", "on", "or", "that", "the", "there", "this"),
        *("to", "was", "what", "when", "which", "with"),
    )
)
_WORD = re.compile(r"\w+")
_SELECT = """
SELECT number, title, body FROM passages
WHERE passages MATCH ? {shelf} ORDER BY bm25(passages, 0.0, 0.0, 2.0, 1.0), rowid LIMIT ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One passage that a query found.

    Attributes:
        number: in the corpus, from 1.
    """

    number: int
    title: str
    body: str


class Corpus:
    """An open corpus.

    Args:
        path: of its file.
        digest: what the file's BLAKE3 has to be, hex; None takes any.

    Raises:
        PipelineError: X101, there is no such file; X102, it is another one or no corpus.
    """

    def __init__(self, path: Path, digest: str | None = None) -> None:
        self.path = path
        self.digest = _digest(path)
        if digest is not None and digest != self.digest:
            raise PipelineError(Code.CORPUS_ALTERED, str(path), f"digest {digest}", self.digest)
        try:
            self._base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True,
                                         check_same_thread=False)  # fmt: skip
            self.size = int(self._base.execute("SELECT count(*) FROM passages").fetchone()[0])
        except sqlite3.Error as error:
            raise _altered(path, error) from None

    def close(self) -> None:
        """Lets the file go."""
        self._base.close()

    def search(self, query: str, k: int, shelf: str | None = None) -> list[Passage]:
        """The best passages for a query, best first; none where no word of it is known.

        Args:
            query: any text.
            k: how many at most, 1 .. 20.
            shelf: look there alone; None looks everywhere.

        Raises:
            PipelineError: X201, the query has no words, is too long, or k is out of range; X102.
        """
        if len(query) > LONGEST_QUERY or not 1 <= k <= MOST_PASSAGES:
            due = f"at most {LONGEST_QUERY} characters, and k from 1 to {MOST_PASSAGES}"
            raise PipelineError(Code.QUERY, "query", due, f"{len(query)} characters, k = {k}")
        words = query_words(query)[:_WORDS]
        if not words:
            raise PipelineError(Code.QUERY, "query", "a text with words", query)
        match = " OR ".join(f'"{word}"' for word in words)
        told: list[str | int] = [match, k] if shelf is None else [match, shelf, k]
        statement = _SELECT.format(shelf="" if shelf is None else "AND shelf = ?")
        try:
            rows = self._base.execute(statement, told).fetchall()
            return [Passage(number=int(n), title=str(t), body=str(b)) for n, t, b in rows]
        except (sqlite3.Error, ValueError) as error:
            raise _altered(self.path, error) from None


def query_words(text: str) -> list[str]:
    """The words of a text that may tell one passage from another, each once, in order."""
    found = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return [word for word in found if word not in _COMMON]


def build(path: Path, texts: Iterable[Text]) -> str:
    """Writes a corpus to a new file; its digest.

    Raises:
        OSError: it cannot be written, or is there.
    """
    path.touch(exist_ok=False)
    base = sqlite3.connect(path)
    try:
        base.execute(
            "CREATE VIRTUAL TABLE passages USING fts5("
            "number UNINDEXED, shelf UNINDEXED, title, body, tokenize = 'porter unicode61')"
        )
        rows = ((at, t.shelf, t.title, t.body) for at, t in enumerate(texts, 1))
        with base:
            base.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
            base.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        base.execute("VACUUM")
    finally:
        base.close()
    return _digest(path)


def _digest(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        found = "too large a file" if path.is_file() else "no such file"
        raise PipelineError(Code.CORPUS_MISSING, str(path), "the file of a corpus", found)
    try:
        return str(blake3(path.read_bytes()).hexdigest())
    except OSError as error:
        found = error.strerror or str(error)
        raise PipelineError(Code.CORPUS_MISSING, str(path), "the file of a corpus", found) from None


def _altered(path: Path, error: Exception) -> PipelineError:
    return PipelineError(Code.CORPUS_ALTERED, str(path), "a corpus with its index", error)
