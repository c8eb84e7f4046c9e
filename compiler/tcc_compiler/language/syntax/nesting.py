"""How deeply a statement may be nested: refused at the first node past the limit."""

from __future__ import annotations

from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.tokens import MAX_NESTING


class TooDeep(Exception):
    """Operators are nested past the limit, at this region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        super().__init__(region)


def level(region: Region, *below: int) -> int:
    """The height of a node over others, refused past the limit."""
    height = 1 + max(below, default=0)
    if height > MAX_NESTING:
        raise TooDeep(region)
    return height
