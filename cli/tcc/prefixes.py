"""A prefix of a plan on the command line: canonical calls with spaces between them.

It is how `tcc run` prints a plan.  A space in a quoted value is no end of a call.
Cost: linear in the text.
"""

from __future__ import annotations

import re

# A quoted part, in which a backslash takes the next character with it; one that has no end goes on
# to the end of the text, and no call has that name.
_CALL = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*(?:"|\\?\Z))+', re.DOTALL)


def calls_in(text: str) -> tuple[str, ...]:
    """The calls of a prefix, first to last."""
    return tuple(_CALL.findall(text))
