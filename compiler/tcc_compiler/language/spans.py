"""Places in source texts: a region inside the compiler, a span for people.

A region is cheap (three integers) and stands on every token and tree node; a span is what a
diagnostic shows.  Lines and columns count from 1, columns in characters, ends are exclusive.
"""

from __future__ import annotations

from typing import NamedTuple

from tcc_compiler.frozen import frozen


class Region(NamedTuple):
    """Characters `start` to `end` of the source with number `source` (0 is the root file)."""

    source: int
    start: int
    end: int

    def to(self, other: Region) -> Region:
        """From the start of this region to the end of `other`, in the same source."""
        return Region(self.source, self.start, other.end)


@frozen
class Span:
    """A range of a file in lines and columns.

    Attributes:
        file: the name that the file was read under.
        line, column: the first character, from 1; columns in characters.
        end_line, end_column: just past the last character.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
