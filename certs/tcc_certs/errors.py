"""The one error of the trusted kernel; its codes are those of :mod:`tcc_certs.codes`."""

from __future__ import annotations

from tcc_certs.codes import Code as Code
from tcc_certs.plain import escaped


class Rejected(Exception):
    """An input is refused: which rule, where, what was expected and what was there.

    Args:
        code: the rule that fired.
        path: the place, such as ``race_count[17]`` or ``line 4: key_raw``.
        expected: what the rule requires, in a form for people.
        found: what the input holds, in a form for people.
    """

    def __init__(self, code: Code, path: str, expected: object, found: object) -> None:
        self.code = code
        self.path = escaped(path)
        self.expected = clip(expected)
        self.found = clip(found)
        super().__init__(
            f"{code.value} at {self.path}: expected {self.expected}, found {self.found}"
        )

    def __reduce__(self) -> tuple[type[Rejected], tuple[Code, str, str, str]]:
        return Rejected, (self.code, self.path, self.expected, self.found)


def clip(value: object, width: int = 200) -> str:
    """``str(value)`` for a message: on one line, cut in the middle past `width` characters."""
    # A huge integer is named by its size: its decimal text could take minutes to make.
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    # What steers a terminal, or cannot be printed, is escaped: the value is out of a hostile file.
    text = escaped(str(value))
    return text if len(text) <= width else f"{text[: width - 40]} ... {text[-32:]}"


def require(expected: object, found: object, code: Code, path: str) -> None:
    """Refuse with `code` at `path` unless `found` equals `expected`.

    Raises:
        Rejected: the two differ.
    """
    if found != expected:
        raise Rejected(code, path, expected, found)


def ensure(holds: bool, code: Code, path: str, expected: object, found: object) -> None:
    """Refuse with `code` at `path` unless `holds`.

    Raises:
        Rejected: `holds` is false.
    """
    if not holds:
        raise Rejected(code, path, expected, found)
