"""Exceptions of the runtime other than ``Rejected``: settings, answers, roundings, ledgers,
servers.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final


def mismatch(expected: object, found: object) -> str:
    """Return "expected X, found Y" for messages."""
    return f"expected {expected}, found {found}"


class SettingsError(ValueError):
    """A setting is outside its range.

    Args:
        field: the name of the setting.
        expected: a description of the allowed values.
        found: the value that was given.
    """

    def __init__(self, field: str, expected: str, found: object) -> None:
        self.field = field
        self.expected = expected
        self.found = str(found)[:80]
        self.mismatch = mismatch(expected, self.found)
        super().__init__(f"{field}: {self.mismatch}")

    def __reduce__(self) -> tuple[type[SettingsError], tuple[str, str, str]]:
        return SettingsError, (self.field, self.expected, self.found)


class GivenRefused(SettingsError):
    """An attribute of a session is not as its grammar declares it.

    Args:
        code: R102, R103, R104, R105 or R106.
        name: the name of the attribute.
        expected: a description of the allowed values.
        found: a description of the value, without the value itself.
    """

    def __init__(self, code: str, name: str, expected: str, found: str) -> None:
        self.code, self.name = code, name
        self._why = expected, found
        super().__init__("given", f"{name}: {expected}", f"{found} ({code})")

    def __reduce__(self) -> tuple[type[GivenRefused], tuple[str, str, str, str]]:  # type: ignore[override]
        return GivenRefused, (self.code, self.name, *self._why)


class AfterRefused(SettingsError):
    """The calls with which a run shall begin are no prefix of a plan.

    Args:
        place: the position of the first call that is not allowed, from 1.
        call: this call.
        allowed: some calls that are allowed there, in order.
        number: the number of calls that are allowed there.

    Attributes:
        code: the code in the catalogue of diagnostics.
    """

    code = "TCC901"

    def __init__(self, place: int, call: str, allowed: Sequence[str], number: int) -> None:
        self.place = place
        self.call = call
        self.allowed = tuple(allowed)
        self.number = number
        listed = ", ".join(self.allowed) + (", .." if number > len(self.allowed) else "")
        expected = f"one of {listed}" if number else "no further call"
        super().__init__("after", f"{expected} as call {place} ({self.code})", call)

    def __reduce__(self) -> tuple[type[AfterRefused], tuple[int, str, Sequence[str], int]]:  # type: ignore[override]
        return AfterRefused, (self.place, self.call, self.allowed, self.number)


class AnswerError(ValueError):
    """The value that a quoter returned is no answer.

    Args:
        field: the part of the answer.
        expected: a description of the allowed values.
        found: the value.
    """

    def __init__(self, field: str, expected: str, found: object) -> None:
        self.field = field
        self.expected = expected
        self.found = str(found)[:80]
        super().__init__(f"{field} of an answer: {mismatch(expected, self.found)}")

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, str, str]]:
        return AnswerError, (self.field, self.expected, self.found)


class Undecided(ArithmeticError):
    """The greatest working precision does not decide a rounding.  The run stops there."""


class LedgerError(OSError):
    """The ledger can no longer be read or written.  Its file keeps the lines written so far.

    Args:
        path: the ledger.
        cause: the error of the operating system.
    """

    def __init__(self, path: str, cause: OSError) -> None:
        self.path = path
        self.cause = cause
        said = f"the ledger cannot be read or written: {cause.strerror}"
        super().__init__(cause.errno, said, path)

    def __reduce__(self) -> tuple[type[LedgerError], tuple[str, OSError]]:
        return LedgerError, (self.path, self.cause)


class OutputRefused(OSError):
    """An output path names something other than a regular file.

    Args:
        path: the path.
        kind: the kind of the existing file.

    Attributes:
        code: the code in the catalogue of diagnostics.
    """

    code = "TCC801"

    def __init__(self, path: str, kind: str) -> None:
        self.kind = kind
        what = f"{kind} is there, and only a regular file is replaced; name another file"
        super().__init__(errno.EINVAL, f"{self.code}: {what}", path)

    def __reduce__(self) -> tuple[type[OutputRefused], tuple[str, str]]:
        return OutputRefused, (self.filename, self.kind)


class OutputBusy(OSError):
    """Another process writes this file.  Nothing was changed.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(errno.EBUSY, "another run writes it", path)

    def __reduce__(self) -> tuple[type[OutputBusy], tuple[str]]:
        return OutputBusy, (self.filename,)


class WorkerLost(RuntimeError):
    """A worker process ended before it answered.

    Args:
        how: a description of its end.
    """

    def __init__(self, how: str) -> None:
        self.how = how
        super().__init__(f"a worker process was lost: {how}")


class LedgerBusy(LedgerError):
    """Another run writes this ledger, or has written it since it was read.  Nothing was changed.

    Args:
        path: the ledger.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, OSError(errno.EBUSY, "another run writes it"))


class ResumeError(ValueError):
    """A ledger, store or key belongs to another run or session.

    Args:
        path: the place in the ledger.
        expected: the expected value there.
        found: the value there.
    """

    def __init__(self, path: str, expected: object, found: object) -> None:
        self.path = path
        self.expected = str(expected)[:200]
        self.found = str(found)[:200]
        super().__init__(f"{path}: {mismatch(self.expected, self.found)}")


class SessionEnded(ResumeError):
    """The session of the ledger has ended."""


class NotCarried(ResumeError):
    """The records of a session lack values that another artifact needs."""


class GivenOtherwise(ResumeError):
    """The session began with other attributes."""


OWN_MODEL: Final = (
    "models make its calls, and it has a parameter of its own called 'model': call that one"
    " otherwise"
)
NEEDS_MODEL: Final = "models make its calls: its function needs a parameter 'model'"


class Failed(Exception):
    """Raised by a tool to state that its call had no effect."""


class BindingError(ValueError):
    """A tool cannot be called, or cannot be guarded.

    Args:
        name: the name of the tool, or of a server.
        what: the reason.
    """

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        super().__init__(f"{name[:80]!r}: {what}")


class ServerError(RuntimeError):
    """An MCP server cannot be started, or does not follow the protocol."""


class ServerDrift(RuntimeError):
    """The tools of a server differ from the locked ones, or the server lacks a tool of the grammar.

    Args:
        findings: one sentence for each tool.
    """

    def __init__(self, findings: tuple[str, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(findings))
