"""Names: what may be one, the reserved words, and how a name is written in canonical texts.

Normative text: docs/spec/core.md, section 2.  An identifier that is no reserved word stands bare;
every other name stands as a canonical JSON string, so no two names have one text.
Cost: linear in the name.
"""

from __future__ import annotations

import re

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.plain import is_plain

STATEMENT_WORDS = (
    "grammar", "use", "tool", "rule", "plan", "start", "goal", "limit", "require", "forbid",
    "accept", "reject", "expect",
)  # fmt: skip
RESERVED = frozenset((*STATEMENT_WORDS, "version", "any", "when", "before", "after", "with"))
MAX_NAME = 128  # code points

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Whether `text` is a letter or ``_``, then letters, digits and ``_``, all of ASCII."""
    return _IDENTIFIER.fullmatch(text) is not None


def is_bare(name: str) -> bool:
    """Whether a name stands in canonical texts without quotes."""
    return is_identifier(name) and name not in RESERVED


def written(name: str) -> str:
    """A name as canonical texts have it: bare where it may be, else in quotes."""
    return name if is_bare(name) else encode(name).decode()


def read_name(value: Json, path: str, code: Code, *_: object) -> str:
    """The name of a tool or of a parameter.

    Raises:
        Rejected: `code` at `path`.
    """
    if not isinstance(value, str):
        raise Rejected(code, path, "a text", value)
    size = len(value)
    ensure(1 <= size <= MAX_NAME, code, path, f"a name of 1 to {MAX_NAME} characters", size)
    ensure(is_plain(value), code, path, "no control or hidden characters", value)
    return value
