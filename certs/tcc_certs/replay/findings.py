"""The result of a validation: findings, counts, verdict and summary.

A wrong field is a finding, and the replay continues with the expected value.  If the replay cannot
know the next step, it stops (:class:`Rejected`, the last finding).  A finding whose code declines
(D...) does not make a ledger invalid, but prevents the verdict VALID.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json

# The part of a refusal's path about a line: its number, and the field or place in it.
_PLACE = re.compile(r"line ([0-9]+)(?:: | )?(.*)", re.DOTALL)
VALID, INVALID, DECLINED = 0, 1, 2
NO_CERT = "NoCert"
RUN_WISE_EXACT = "RunWiseExact"
RUN_WISE_SURROGATE = "RunWiseSurrogate"
TRUNCATION_ONLY = "TruncationOnly"
MAX_FINDINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A failed check: where, the expected value, and the value found.

    Attributes:
        code: stable code.
        line: 1 for the first record; 0 if the artifact or an argument is at fault.
        field: the name of the field, or the subject of the finding.
    """

    code: Code
    line: int
    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The result of :func:`tcc_certs.replay.validate`.

    Attributes:
        verdict: 0 valid, 1 invalid, 2 declined or incomplete.
        claim_type: the claim that the ledger makes; empty if it was not read that far.
        after: the calls before the run, which its claim takes as made; empty if not read that far.
        claim_upheld: True if the verdict is 0 and the claim is more than NoCert.
        findings: in the order of the lines, at most 100.
        checked: the numbers of records, nodes, expansions and leaves that were replayed.
        kappa: nodes, tightened, and the mean of ln(exact count / used count), Q32.32.  A
            diagnostic.
        head: the chain's head after the verified prefix, hex.
        summary: the result in plain words.
        privacy: the privacy statement of a valid ledger, if it counts atoms or depends on raw
            input.
    """

    verdict: int
    claim_type: str
    claim_upheld: bool
    findings: tuple[Finding, ...]
    checked: Mapping[str, int]
    kappa: Mapping[str, int | str]
    head: str
    summary: str
    after: tuple[str, ...] = ()
    privacy: Mapping[str, Json] | None = None

    @property
    def word(self) -> str:
        """The verdict as a word; INCOMPLETE if the ledger only lacks its end."""
        if self.verdict == DECLINED and any(f.code is Code.INCOMPLETE for f in self.findings):
            return "INCOMPLETE"
        return ("VALID", "INVALID", "DECLINED")[self.verdict]


class Findings:
    """Collects findings in order, and ends the replay at the hundredth."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Finding] = []

    def add(self, code: Code, line: int, field: str, expected: object, found: object) -> None:
        """Add a finding about a wrong field.

        Raises:
            Rejected: D201: this is the hundredth finding.
        """
        self.items.append(
            Finding(code=code, line=line, field=field, expected=clip(expected), found=clip(found))
        )
        if len(self.items) >= MAX_FINDINGS:
            raise Rejected(Code.LIMIT, f"line {line}: findings", f"at most {MAX_FINDINGS}", "more")

    def refuse(self, refusal: Rejected, line: int) -> None:
        """Add the refusal that ended the replay; ignored after a hundred findings."""
        if len(self.items) >= MAX_FINDINGS:
            return
        place = _PLACE.fullmatch(refusal.path)
        self.items.append(
            Finding(
                code=refusal.code,
                line=int(place[1]) if place else line,
                field=(place[2] or "line") if place else refusal.path,
                expected=refusal.expected,
                found=refusal.found,
            )
        )

    @property
    def verdict(self) -> int:
        """0 without findings, 2 if all findings decline, else 1."""
        if not self.items:
            return VALID
        return DECLINED if all(item.code.declines for item in self.items) else INVALID
