"""Absolute POSIX paths in normal form, and whether a path is under a directory.

Normative text: docs/spec/core.md, section 3.  The normal form is computed from the text alone: no
file system is read, so symbolic links are not resolved.  Cost: linear in the text.
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.values.canonical import utf8

MOST = 4096  # most characters


def normal(text: str) -> str:
    """Return the normal form of an absolute path: no ``.``, no ``..``, no empty component.

    Raises:
        Rejected: R105: `text` is relative, has a NUL or is too long; R106: it has a lone surrogate.
    """
    utf8(text, "value")
    if not text.startswith("/"):
        raise Rejected(Code.OPEN_VALUE, "value", "an absolute path, such as /srv/out", text)
    ensure("\0" not in text, Code.OPEN_VALUE, "value", "a path without NUL", text)
    ensure(len(text) <= MOST, Code.OPEN_VALUE, "value", f"at most {MOST} characters", len(text))
    names: list[str] = []
    for name in text.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def is_under(path: str, directory: str) -> bool:
    """Return whether a path is a directory or inside it; both are in normal form."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
