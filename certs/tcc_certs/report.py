"""The verdict on an artifact: the numbers of checked items, or the first rule that failed.

The verdict is 0 VALID, 1 INVALID or 2 DECLINED (a later version, or a feature or limit that the
kernel does not support).  VALID always says how much was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from tcc_certs.errors import Code, Rejected, require
from tcc_certs.formats.artifact import (
    CYCLIC,
    GATE,
    NONDETERMINISTIC,
    RELAXED,
    ROUNDED,
    read_artifact,
)
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.listing import (
    ListedStatement,
    listed_statements,
    relaxed_texts,
    shortened,
    statement_lines,
)
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.reader import core_digest, read_core

if TYPE_CHECKING:
    from tcc_certs.corecheck.check import CoreReport
    from tcc_certs.policy.core import Core

VALID, INVALID, DECLINED = 0, 1, 2
VERDICTS = ("VALID", "INVALID", "DECLINED")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """A rule that failed: its code, the place, the expected value and the value found."""

    code: Code
    path: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The verdict on an artifact.

    Attributes:
        verdict: 0, 1 or 2.
        lines: the verdict in plain words.
        findings: the first rule that failed; none if the verdict is VALID.  If every certificate
            holds but an exact artifact was required: one finding for each feature that is not
            exact.
        checked: the numbers of states, edges, calls, counts and bounds that hold.  A core check
            adds the numbers of :class:`CoreReport`.  Empty unless VALID.
        digest: the artifact digest in hex; empty unless VALID.
        statements: the statements of the core, each with its place; None unless every certificate
            holds.
    """

    verdict: int
    lines: tuple[str, ...]
    findings: tuple[RuleFinding, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    statements: tuple[ListedStatement, ...] | None = None

    @property
    def summary(self) -> str:
        """The verdict in plain words, as one or more lines."""
        return "\n".join(self.lines)


def check_artifact(
    data: bytes | memoryview,
    *,
    core: bool = False,
    pin: str | None = None,
    exact: bool = False,
    kernel: Callable[..., CheckedArtifact] = check,
) -> CheckReport:
    """The verdict on the artifact in `data`; it never raises, whatever the bytes are.

    Args:
        data: the whole file.
        core: also check that the automaton has the plans of its core.
        pin: the required artifact digest in lower-case hex.
        exact: refuse an artifact with a critical feature, such as relaxed statements or rounded
            counts.
        kernel: the function that checks the certificates.  With a function other than the trusted
            one the verdict is only as reliable as that function.
    """
    try:
        checked = kernel(data, pin=pin)
        compared = _compare(checked) if core else None
    except Rejected as refusal:
        return _refused(refusal)
    manifest = checked.file.manifest
    statements = listed_statements(checked.core, manifest.relaxed, cyclic=manifest.cyclic)
    if exact and checked.file.manifest.critical:
        return _not_exact(checked, statements)
    return _valid(checked, compared, statements)


def is_proof(data: bytes | memoryview) -> bool:
    """Return whether bytes begin like a proof of an exact question.

    No artifact or ledger begins like this.
    """
    return bytes(data[:14]) == b'{"arguments":['


def report_proof(
    data: bytes,
    artifact: bytes | memoryview,
    implies: bytes | memoryview | None = None,
    *,
    pin: str | None = None,
) -> CheckReport:
    """Return the verdict on a proof about the core of an artifact; a refusal is a verdict.

    Args:
        data: the proof.
        artifact: the whole file.  Its core is read.  If the proof uses the automaton, the other
            certificates are checked, too.  For such a proof of `implies` or of ends, the automaton
            must also have the plans of the core.
        implies: another artifact, the whole file.  The proof has to show that every session of the
            first core is a session of the core of this artifact.
        pin: the digest that the first artifact must have, in hex.
    """
    from tcc_certs.proof.check import check_proof
    from tcc_certs.proof.implication import check_implication
    from tcc_certs.proof.plans import Plan

    @cache
    def whole() -> CheckedArtifact:
        return check(artifact)

    def plan() -> Plan:
        found = whole()
        return Plan(found.core, found.automaton, found.core_calls, found.omitted)

    try:
        core = _core_in(artifact, pin)
        other = None if implies is None else _core_in(implies)
        if other is None:
            checked = check_proof(data, core, plan)
        else:
            checked = check_implication(data, core, other, plan)
        if checked.of_plans and (other is not None or checked.question.kind == "finishable"):
            _compare(whole())  # these two claims are about plans of the core
    except Rejected as refusal:
        return _refused(refusal)
    texts = [statement_text(one) for one in checked.question.statements]
    of = "artifact" if checked.of_plans else "core"
    says = {
        "statement": f"every session of this {of} satisfies",
        "implies": f"every session of this {of} satisfies each of",
        "reachable": f"no session of this {of} has a call of",
        "finishable": "every session of this artifact can be finished",
    }[checked.question.kind]
    asked = [text.removeprefix("forbid ") if checked.question.kind == "reachable" else text
             for text in texts]  # fmt: skip
    if other is None:
        lines = [f"VALID: {says} {'; '.join(asked)}".rstrip()]
    else:
        lines = [f"VALID: every session of {core.name} satisfies the policy of {other.name}"]
        lines += [f"the core of {other.name}: {core_digest(other)}"]
        lines += [f"each satisfies {text}" for text in texts]
    lines += [f"by {statement_text(core.statements[number])}" for number in checked.used]
    counted = {"arguments": checked.arguments, "steps": checked.steps}
    return CheckReport(verdict=VALID, lines=tuple(lines), checked=counted, digest=core_digest(core))


def _core_in(artifact: bytes | memoryview, pin: str | None = None) -> Core:
    """Return the core of an artifact; its other certificates are not checked.

    Raises:
        Rejected: the file is not an artifact, has another digest than `pin`, or has a core that is
            not well formed.
    """
    file = read_artifact(artifact)
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    return read_core(bytes(file.columns["core"].data))


def _compare(checked: CheckedArtifact) -> CoreReport:
    """Compare the automaton with the core.

    The module is loaded only for this check, so other checks need not trust it.
    """
    from tcc_certs.corecheck.check import check_core

    return check_core(checked)


def _refused(refusal: Rejected) -> CheckReport:
    verdict = DECLINED if refusal.code.declines else INVALID
    lines = (f"{VERDICTS[verdict]}: {refusal}",)
    return CheckReport(verdict=verdict, lines=lines, findings=(_finding(refusal),))


def _finding(of: Rejected) -> RuleFinding:
    return RuleFinding(code=of.code, path=of.path, expected=of.expected, found=of.found)


def _not_exact(checked: CheckedArtifact, statements: tuple[ListedStatement, ...]) -> CheckReport:
    manifest = checked.file.manifest
    texts = shortened(relaxed_texts(checked.core, manifest.relaxed))
    rounded = manifest.round_counts
    reasons = {
        CYCLIC: ("critical", "plans of bounded length", "plans have no bound"),
        GATE: ("critical", "counts of plans and of a race", "bounds of plans alone"),
        NONDETERMINISTIC: ("critical", "one path a plan", "derivations are counted"),
        RELAXED: (
            RELAXED,
            "every statement held by the automaton",
            f"left to the run: {texts}",
        ),
        ROUNDED: ("options.round_counts", "exact race counts", f"rounded up to {rounded} bits"),
    }
    findings = []
    for path, expected, found in map(reasons.__getitem__, manifest.critical):
        refusal = Rejected(Code.NOT_EXACT, f"manifest.{path}", expected, found)
        findings.append(_finding(refusal))
    said = "; ".join([f"{item.path}: {item.found}" for item in findings])
    line = f"INVALID: its certificates hold, but it is not exact ({Code.NOT_EXACT}): {said}"
    return CheckReport(
        verdict=INVALID, lines=(line,), findings=tuple(findings), statements=statements
    )


def _valid(
    checked: CheckedArtifact, compared: CoreReport | None, statements: tuple[ListedStatement, ...]
) -> CheckReport:
    manifest = checked.file.manifest
    counted = {"states": manifest.states, "edges": manifest.edges, "calls": manifest.calls}
    if manifest.cyclic:
        counted["splits"] = manifest.states - 1
    else:
        # Two counts for each state (plans and race count) and two bounds (cost and residual to go).
        # A gate has only the plans.
        counted["counts"] = (2 - manifest.gate) * manifest.states
        counted["bounds"] = 2 * manifest.states
    names = {"counts": "suffix counts (SuffixCountDP)"}
    did = ", ".join(f"{number} {names.get(name, name)}" for name, number in counted.items())
    lines = [f"VALID: {did} of {manifest.grammar} {manifest.version} hold"]
    if manifest.cyclic:
        lines.append(
            "its plans have no bound, so it has no counts: " + ", ".join(manifest.critical)
        )
    elif manifest.critical:
        lines.append(f"its counts are upper bounds: {', '.join(manifest.critical)}")
    lines += statement_lines(statements)
    if compared is None:
        lines.append("consistent; that it is the automaton of its core was not asked")
    else:
        counted |= compared.counted
        lines.append(compared.line(manifest.nondeterministic))
    return CheckReport(
        verdict=VALID,
        checked=counted,
        digest=checked.file.digest.hex(),
        lines=tuple(lines),
        statements=statements,
    )
