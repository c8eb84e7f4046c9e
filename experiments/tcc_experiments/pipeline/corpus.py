"""The corpus: texts of installed packages in a file of SQLite with an FTS5 index, ranked by BM25.

Nothing is downloaded or typed in. Three shelves hold answers: CODATA's constants and the
conversions of units (scipy.constants), and the descriptions of data sets (scikit-learn). A fourth,
Python's own help topics, holds none and can be found by mistake. A table in a description is read
row by row, each number with the head of its column.
A query is read as words, each in quotation marks, so that nothing in it is syntax. The file is
opened read-only; records and servers name it by its BLAKE3 digest. Equal ranks are ordered by the
number of the passage.
Cost: some tenths of a second to build; less than a millisecond a query.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from blake3 import blake3

from tcc_experiments.pipeline.errors import PipelineCode, PipelineError, bring

CATEGORIES = ("constants", "units", "datasets")
_UNIT = re.compile(r"^``(\w+)``\s+(.*?)\s*$", re.MULTILINE)
_RULE = re.compile(r"^=+( =+)+$")
_FIELD = re.compile(r"^:([A-Z][^:]*): *(.*)$")
_LONGEST = 1500  # characters of a passage: longer paragraphs are cut


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusText:
    """A passage of the corpus.

    Attributes:
        shelf: one of the categories, or ``python``.
        title: what it is about.
        body: what it says.
    """

    shelf: str
    title: str
    body: str


def all_texts() -> Iterator[CorpusText]:
    """Every passage, in an order that the packages alone decide.

    Raises:
        MissingExtra: a package is not installed.
    """
    yield from _constants()
    yield from _units()
    yield from _datasets()
    yield from _topics()


def _constants() -> Iterator[CorpusText]:
    table = bring("scipy.constants").physical_constants
    for name in sorted(table):
        value, unit, uncertainty = table[name]
        said = f"{name} = {value!r} {unit}".strip()
        yield CorpusText(
            shelf="constants", title=name, body=f"{said}, standard uncertainty {uncertainty!r}."
        )


def _units() -> Iterator[CorpusText]:
    constants = bring("scipy.constants")
    for name, about in sorted(set(_UNIT.findall(constants.__doc__ or ""))):
        value = getattr(constants, name)
        if not about.startswith(":math:"):
            said = re.sub(r" :math:`[^`]*`", "", re.sub(r"\s{2,}", ", ", about))
            yield CorpusText(shelf="units", title=said, body=f"{name} = {value!r}.")


def _datasets() -> Iterator[CorpusText]:
    bring("sklearn")
    folder = files("sklearn.datasets.descr")
    for entry in sorted(folder.iterdir(), key=lambda found: found.name):
        if entry.name.endswith(".rst"):
            yield from _description(entry.read_text(encoding="utf-8"))


def _description(text: str) -> Iterator[CorpusText]:
    """The paragraphs, fields and table rows of a description, under the title of its data set."""
    title, paragraph = "", list[str]()
    lines = text.splitlines()
    table = _Table()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        said = _row_or_field(line, table)
        if not title and re.fullmatch(r"-{5,}", below.strip()):
            title = line.strip()
        elif said is None and line.strip() and not _RULE.match(line):
            paragraph.append(line.strip())
            continue
        for body in (" ".join(paragraph)[:_LONGEST], said):
            if body:
                yield CorpusText(shelf="datasets", title=title, body=body)
        paragraph = []


class _Table:
    """A table under way: how many columns its rules have, and the heads of those with numbers."""

    def __init__(self) -> None:
        self._rules = 0
        self._columns = 0
        self._head: list[str] = []

    def rule(self, line: str) -> None:
        """A rule: above the heads, below them, below the last row."""
        self._rules = (self._rules + 1) % 3
        self._columns = len(line.split())

    def row(self, line: str) -> str | None:
        """What a row says; empty of the heads, None where there is no table."""
        if self._rules == 0:
            return None
        if self._rules == 1:
            self._head = line.split(maxsplit=self._columns - 2)
            return ""
        name, _, cells = line.partition(":")
        pairs = zip(self._head, cells.split(), strict=False)
        return f"{name.strip()}: {', '.join(f'{head} {cell}' for head, cell in pairs)}."


def _row_or_field(line: str, table: _Table) -> str | None:
    if _RULE.match(line):
        table.rule(line)
        return None
    row = table.row(line)
    field = _FIELD.match(line)
    return f"{field[1]}: {field[2]}." if row is None and field else row


def _topics() -> Iterator[CorpusText]:
    from pydoc_data.topics import topics

    for name in sorted(topics):
        for paragraph in topics[name].split("\n\n"):
            said = " ".join(paragraph.split())
            if said:
                yield CorpusText(shelf="python", title=f"Python: {name}", body=said[:_LONGEST])


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
            raise PipelineError(
                PipelineCode.CORPUS_ALTERED, str(path), f"digest {digest}", self.digest
            )
        try:
            self._base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True,
                                         check_same_thread=False)  # fmt: skip
        except sqlite3.Error as error:
            raise _altered(path, error) from None
        try:
            self.size = int(self._base.execute("SELECT count(*) FROM passages").fetchone()[0])
        except sqlite3.Error as error:
            self.close()
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
            raise PipelineError(
                PipelineCode.QUERY, "query", due, f"{len(query)} characters, k = {k}"
            )
        words = query_words(query)[:_WORDS]
        if not words:
            raise PipelineError(PipelineCode.QUERY, "query", "a text with words", query)
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


def build(path: Path, texts: Iterable[CorpusText]) -> str:
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
        raise PipelineError(PipelineCode.CORPUS_MISSING, str(path), "the file of a corpus", found)
    try:
        return str(blake3(path.read_bytes()).hexdigest())
    except OSError as error:
        found = error.strerror or str(error)
        raise PipelineError(
            PipelineCode.CORPUS_MISSING, str(path), "the file of a corpus", found
        ) from None


def _altered(path: Path, error: Exception) -> PipelineError:
    return PipelineError(PipelineCode.CORPUS_ALTERED, str(path), "a corpus with its index", error)
