"""What the runtime raises besides ``Rejected``: settings, answers, roundings, ledgers at fault."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final


def mismatch(expected: object, found: object) -> str:
    """What was expected and what was found, as messages say it."""
    return f"expected {expected}, found {found}"


class SettingsError(ValueError):
    """A setting of a run is out of its range.

    Args:
        field: the setting.
        expected: what it may be.
        found: what was given.
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
    """What a session is given is not what its grammar declares.

    Args:
        code: R102, R103, R105 or R106.
        name: the attribute.
        expected: what it may be.
        found: what it is, but for its value.
    """

    def __init__(self, code: str, name: str, expected: str, found: str) -> None:
        self.code, self.name = code, name
        self._why = expected, found
        super().__init__("given", f"{name}: {expected}", f"{found} ({code})")

    def __reduce__(self) -> tuple[type[GivenRefused], tuple[str, str, str, str]]:  # type: ignore[override]
        return GivenRefused, (self.code, self.name, *self._why)


class AfterRefused(SettingsError):
    """The calls that a run is to go on from are no prefix of a plan.

    Args:
        place: of the first one that may not stand there, from 1.
        call: that one.
        allowed: some calls that might, in order.
        number: how many there are.

    Attributes:
        code: of the catalogue of diagnostics.
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
    """What a quoter answered is no answer at all.

    Args:
        field: the part of the answer.
        expected: what it may be.
        found: what it was.
    """

    def __init__(self, field: str, expected: str, found: object) -> None:
        self.field = field
        self.expected = expected
        self.found = str(found)[:80]
        super().__init__(f"{field} of an answer: {mismatch(expected, self.found)}")

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, str, str]]:
        return AnswerError, (self.field, self.expected, self.found)


class Undecided(ArithmeticError):
    """A rounding that the greatest working precision does not decide; the run stops there."""


class LedgerError(OSError):
    """The ledger can no longer be written.  The file, if there is one, keeps what was written.

    Args:
        path: the ledger.
        cause: what the operating system said.
    """

    def __init__(self, path: str, cause: OSError) -> None:
        self.path = path
        self.cause = cause
        super().__init__(cause.errno, f"the ledger cannot be written: {cause.strerror}", path)

    def __reduce__(self) -> tuple[type[LedgerError], tuple[str, OSError]]:
        return LedgerError, (self.path, self.cause)


class OutputRefused(OSError):
    """A name that is to be written is that of something else than a regular file.

    Args:
        path: the name.
        kind: what is there.

    Attributes:
        code: of the catalogue of diagnostics.
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
    """A process that made runs ended before it answered.

    Args:
        how: what is known of its end.
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
    """A ledger that is not the one of the run that should go on.

    Args:
        path: the place in the ledger.
        expected: what the run would have written there.
        found: what stands there.
    """

    def __init__(self, path: str, expected: object, found: object) -> None:
        self.path = path
        self.expected = str(expected)[:200]
        self.found = str(found)[:200]
        super().__init__(f"{path}: {mismatch(self.expected, self.found)}")


class SessionEnded(ResumeError):
    """The session of the ledger has ended."""


class NotCarried(ResumeError):
    """A session whose records lack something that another artifact needs."""


class GivenOtherwise(ResumeError):
    """A session that was given something else when it began."""


OWN_MODEL: Final = (
    "models make its calls, and it has a parameter of its own called 'model': call that one"
    " otherwise"
)
NEEDS_MODEL: Final = "models make its calls: its function needs a parameter 'model'"


class Failed(Exception):
    """Raised by a tool whose call is known not to have happened."""


class BindingError(ValueError):
    """Nothing can be called for a tool.

    Args:
        name: of the tool, or of a server.
        what: why.
    """

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        super().__init__(f"{name[:80]!r}: {what}")


class ServerError(RuntimeError):
    """A server of the Model Context Protocol that cannot be started, or is not understood."""


class ServerDrift(RuntimeError):
    """A server's tools are not those that were locked, or not those that the grammar names.

    Args:
        findings: one sentence for each tool.
    """

    def __init__(self, findings: tuple[str, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(findings))
