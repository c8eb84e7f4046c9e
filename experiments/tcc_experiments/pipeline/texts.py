"""The texts of the corpus, from packages that are installed: nothing is downloaded or typed in.

Three shelves hold answers: CODATA's constants and the conversions of units (scipy.constants), and
the descriptions of data sets (scikit-learn).  A fourth, Python's own help topics, holds none: it is
there to be found by mistake.  A table in a description is read row by row, each number with the
head of its column.  Cost: some tenths of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from tcc_experiments.pipeline.errors import bring

CATEGORIES = ("constants", "units", "datasets")
_UNIT = re.compile(r"^``(\w+)``\s+(.*?)\s*$", re.MULTILINE)
_RULE = re.compile(r"^=+( =+)+$")
_FIELD = re.compile(r"^:([A-Z][^:]*): *(.*)$")
_LONGEST = 1500  # characters of a passage: longer paragraphs are cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A passage of the corpus.

    Attributes:
        shelf: one of the categories, or ``python``.
        title: what it is about.
        body: what it says.
    """

    shelf: str
    title: str
    body: str


def all_texts() -> Iterator[Text]:
    """Every passage, in an order that the packages alone decide.

    Raises:
        MissingExtra: a package is not installed.
    """
    yield from _constants()
    yield from _units()
    yield from _datasets()
    yield from _topics()


def _constants() -> Iterator[Text]:
    table = bring("scipy.constants").physical_constants
    for name in sorted(table):
        value, unit, uncertainty = table[name]
        said = f"{name} = {value!r} {unit}".strip()
        yield Text(
            shelf="constants", title=name, body=f"{said}, standard uncertainty {uncertainty!r}."
        )


def _units() -> Iterator[Text]:
    constants = bring("scipy.constants")
    for name, about in sorted(set(_UNIT.findall(constants.__doc__ or ""))):
        value = getattr(constants, name)
        if not about.startswith(":math:"):
            said = re.sub(r" :math:`[^`]*`", "", re.sub(r"\s{2,}", ", ", about))
            yield Text(shelf="units", title=said, body=f"{name} = {value!r}.")


def _datasets() -> Iterator[Text]:
    bring("sklearn")
    folder = files("sklearn.datasets.descr")
    for entry in sorted(folder.iterdir(), key=lambda found: found.name):
        if entry.name.endswith(".rst"):
            yield from _description(entry.read_text(encoding="utf-8"))


def _description(text: str) -> Iterator[Text]:
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
                yield Text(shelf="datasets", title=title, body=body)
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


def _topics() -> Iterator[Text]:
    from pydoc_data.topics import topics

    for name in sorted(topics):
        for paragraph in topics[name].split("\n\n"):
            said = " ".join(paragraph.split())
            if said:
                yield Text(shelf="python", title=f"Python: {name}", body=said[:_LONGEST])
