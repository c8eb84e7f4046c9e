"""The validator: replays a ledger against its artifact and says what was shown.

Start at :mod:`tcc_certs.replay.validation`: the order of the checks, on one page.  It is loaded
when it is asked for: a session is judged with a few files of this package, and none of its
arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcc_certs.replay.findings import Finding, Validation
    from tcc_certs.replay.validation import validate

__all__ = ["Finding", "Validation", "validate"]


def __getattr__(name: str) -> object:
    if name == "validate":
        from tcc_certs.replay.validation import validate

        return validate
    if name in __all__:
        from tcc_certs.replay import findings

        found: object = getattr(findings, name)
        return found
    raise AttributeError(f"module 'tcc_certs.replay' has no attribute {name!r}")
