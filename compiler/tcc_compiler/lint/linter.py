"""All lints of a grammar on one page: a grammar in, findings out.

Start reading at :func:`lint_frontend`. Rules that need the text alone run first, then those on the
automaton of the plans, then redundancy; all within the limits on states and time. A rule that
exceeds them is reported as undecided (TCC715).
Specification: docs/lint.md. Cost: that of compiling, and of :mod:`tcc_compiler.lint.redundancy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcc_certs.core.reader import core_of, decode_core
from tcc_compiler.automata.table import Table
from tcc_compiler.counting import used_calls
from tcc_compiler.frontend import Frontend
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source
from tcc_compiler.lint import declarations, expectations, policies, redundancy, unused
from tcc_compiler.lint.finding import LintFinding
from tcc_compiler.lint.plans import PlanAutomata, SourceStatement, Subset, source_statements
from tcc_compiler.lint.statements import StatementRules
from tcc_compiler.options import Options
from tcc_compiler.resolve.program import Program
from tcc_compiler.resources import CompileRefused, Timer

OF_AUTOMATA = ("TCC701", "TCC703", "TCC704", "TCC705", "TCC706", "TCC712")


@frozen
class Lints:
    """Findings of all rules, before comments and configuration allow some.

    Attributes:
        findings: in no order.
        undecided: rules that the limits left undecided.
    """

    findings: tuple[LintFinding, ...]
    undecided: tuple[Diagnostic, ...]
    undecided_codes: frozenset[str]


def lint_frontend(front: Frontend, options: Options, timer: Timer) -> Lints:
    """The lints of a grammar that the front end has read without errors."""
    linter = _Linter(front, options, timer)
    linter.run()
    return Lints(
        findings=tuple(linter.findings),
        undecided=tuple(linter.undecided),
        undecided_codes=frozenset(linter.undecided_codes),
    )


class _Linter:
    def __init__(self, front: Frontend, options: Options, timer: Timer) -> None:
        if front.core is None or front.program is None:
            raise ValueError("only a grammar without errors has lints")
        self.findings: list[LintFinding] = []
        self.undecided: list[Diagnostic] = []
        self.undecided_codes: set[str] = set()
        self._front = front
        self._program: Program = front.program
        self._sources: Sequence[Source] = tuple(front.sources.values())
        self._core = core_of(decode_core(front.core))
        self._stated: tuple[SourceStatement, ...] = source_statements(
            front, self._core, expanded=True
        )
        self._options = options
        self._timer = timer

    def run(self) -> None:
        """Run every rule, the quick ones first."""
        root = self._sources[0]
        self.findings += unused.unused_rules(self._program, root)
        self.findings += declarations.missing_costs(self._program, self._sources)
        self.findings += declarations.bare_words(self._program, self._sources)
        self.findings += policies.policy_lints(self._program, self._sources)
        found, complete = expectations.vacuous_examples(self._core, self._front.examples)
        self.findings += found
        if not complete:
            self._leave_undecided(
                ("TCC711",), "there are too many `accept` and `reject` lines to compare"
            )
        self.findings += expectations.vacuous_expects(self._core, self._front.expects)
        self._within_limits((*OF_AUTOMATA, "TCC707"), self._automata)

    def _within_limits(self, codes: Sequence[str], look: Callable[[], None]) -> None:
        try:
            look()
        except CompileRefused as refusal:
            if refusal.code not in ("TCC401", "TCC405", "TCC414", "TCC415"):
                self._leave_undecided(codes, refusal.message)

    def _leave_undecided(self, codes: Sequence[str], why: str) -> None:
        self.undecided_codes.update(codes)
        self.undecided.append(
            Diagnostic(
                code="TCC715",
                severity="warning",
                message=f"not decided: {', '.join(codes)}: {why}",
                span=None,
                hint="raise --max-states or --timeout",
            )
        )

    def _automata(self) -> None:
        plans = PlanAutomata(self._core, self._options, self._timer)
        signed = self._core.start is not None
        every = Subset(parts=(*plans.limits, *plans.orders), signed=signed)
        full = plans.remaining(every)
        if full is None:
            self.findings += redundancy.contradictory(
                plans, self._stated, self._program, self._sources
            )
        elif isinstance(full, Table):
            self._plans(plans, full)

    def _plans(self, plans: PlanAutomata, full: Table) -> None:
        table = plans.with_answers(full)
        used = frozenset(used_calls(table, plans.letters))
        self.findings += unused.unused_calls(self._program, self._core, used, self._sources[0])
        self.findings += declarations.unanswered_calls(
            self._program, plans.core, plans.letters, table, self._sources
        )
        statements = StatementRules(plans, self._stated, self._program, self._sources)
        self.findings += statements.findings(full, table)
        for text, why in statements.undecided:
            self._leave_undecided(("TCC704", "TCC705", "TCC706"), f"{text}: {why}")
