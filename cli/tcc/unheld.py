"""A ledger that replays, and is not as a registry or an account has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tcc_certs.replay.findings import INVALID, VALID, Findings

if TYPE_CHECKING:
    from tcc_certs.replay import Validation
    from tcc_certs.session import SessionValidation

Found = TypeVar("Found", "Validation", "SessionValidation")


def passed(found: Validation | SessionValidation) -> bool:
    """Whether there is something to hold: a session may go on, and be held as far as it goes."""
    return found.verdict == VALID or (
        found.word == "INCOMPLETE" and found.claim_type == "ConformantPrefix"
    )


def unheld(found: Found, findings: Findings, summary: str) -> Found:
    """The validation with these findings; it upholds nothing."""
    if not findings.items:
        return found
    items = (*found.findings, *findings.items)
    # All of them may decline: there was more to compare than a reader takes.
    word = "invalid" if findings.verdict == INVALID else "declined"
    fields: dict[str, object] = {"verdict": findings.verdict, "findings": items}
    fields["summary"] = f"{word}: {summary}"
    # A session's claim says by itself whether it is upheld.
    fields |= {"claim_upheld": False} if hasattr(found, "kappa") else {"claim_type": "NoClaim"}
    return replace(found, **fields)  # type: ignore[arg-type]  # fields of either
