"""The validator of runs: replays a ledger against its artifact and derives what the ledger proves.

Start at :mod:`tcc_certs.replay.validation`, which lists the checks in order.  It is imported
lazily: the validator of sessions needs only a few modules of this package, and none of its
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
