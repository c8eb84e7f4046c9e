"""Statements, values and sums in messages of lints.

Cost: constant each; what is long is cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Limit
from tcc_certs.formats.decimals import format_decimal
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region

_MOST = 60
_MOST_LISTED = 6


def statement_text(sources: Sequence[Source], region: Region) -> str:
    """A statement as it was written, on one line between backquotes."""
    source = sources[region.source]
    text = " ".join(source.statement(source.span(region)).split())
    return f"`{text if len(text) <= _MOST else text[: _MOST - 3] + '...'}`"


def sum_text(limit: Limit, amount: int) -> str:
    """A sum in the unit of a limit."""
    match limit.kind:
        case "depth":
            return f"{amount} call{'' if amount == 1 else 's'}"
        case "uses":
            return f"{amount} use{'' if amount == 1 else 's'}"
        case "price":
            return f"a price of {amount}"
        case "latency":
            return f"{amount} ms"
        case _:
            return f"{limit.kind} {format_decimal(amount, 9)}"


def listed(names: Sequence[str]) -> str:
    """Names between quotes, the first of them where there are many."""
    shown = ", ".join(f"`{name[:_MOST]}`" for name in names[:_MOST_LISTED])
    rest = len(names) - _MOST_LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown
