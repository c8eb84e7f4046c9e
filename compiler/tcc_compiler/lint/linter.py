"""All lints of a grammar on one page: what is known of it in, findings out.

Start reading at :func:`lint_frontend`.  Specification: docs/lint.md.
Cost: the text alone, then the automaton of the plans, then that of `biting`; all within the limits
on states and time.  What was not decided within them is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcc_certs.core.reader import core_of, decode_core
from tcc_compiler.automata.table import Table
from tcc_compiler.counting.count import used_calls
from tcc_compiler.frontend import Frontend
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source
from tcc_compiler.lint.asked import unanswered_calls
from tcc_compiler.lint.certain import certain_examples, certain_expects
from tcc_compiler.lint.finding import Finding
from tcc_compiler.lint.idle import Statements, contradictory
from tcc_compiler.lint.plans import Kept, Plans
from tcc_compiler.lint.shape import bare_words, missing_costs
from tcc_compiler.lint.statements import Stated, stated_of
from tcc_compiler.lint.usage import unused_calls, unused_rules
from tcc_compiler.options import Options
from tcc_compiler.resolve.program import Program
from tcc_compiler.resources.refusal import Refused
from tcc_compiler.resources.timer import Timer

OF_AUTOMATA = ("TCC701", "TCC703", "TCC704", "TCC705", "TCC706", "TCC712")


@frozen
class Lints:
    """What was found, before anything is allowed.

    Attributes:
        findings: in no order.
        undecided: what the limits left open.
    """

    findings: tuple[Finding, ...]
    undecided: tuple[Diagnostic, ...]
    undecided_codes: frozenset[str]


def lint_frontend(front: Frontend, options: Options, timer: Timer) -> Lints:
    """The lints of a grammar that the front end has read without errors."""
    linter = _Linter(front, options, timer)
    linter.run()
    return Lints(
        findings=tuple(linter.findings),
        undecided=tuple(linter.undecided),
        undecided_codes=frozenset(linter.open_codes),
    )


class _Linter:
    def __init__(self, front: Frontend, options: Options, timer: Timer) -> None:
        if front.core is None or front.program is None:
            raise ValueError("only a grammar without errors has lints")
        self.findings: list[Finding] = []
        self.undecided: list[Diagnostic] = []
        self.open_codes: set[str] = set()
        self._front = front
        self._program: Program = front.program
        self._sources: Sequence[Source] = tuple(front.sources.values())
        self._core = core_of(decode_core(front.core))
        self._stated: tuple[Stated, ...] = stated_of(front, self._core)
        self._options = options
        self._timer = timer

    def run(self) -> None:
        """Every lint, the quick ones first."""
        root = self._sources[0]
        self.findings += unused_rules(self._program, root)
        self.findings += missing_costs(self._program, self._sources)
        self.findings += bare_words(self._program, self._sources)
        found, complete = certain_examples(self._core, self._front.examples)
        self.findings += found
        if not complete:
            self._leave_open(
                ("TCC711",), "there are too many `accept` and `reject` lines to compare"
            )
        self.findings += certain_expects(self._core, self._front.expects)
        self._within_limits((*OF_AUTOMATA, "TCC707"), self._automata)

    def _within_limits(self, codes: Sequence[str], look: Callable[[], None]) -> None:
        try:
            look()
        except Refused as refusal:
            if refusal.code not in ("TCC401", "TCC405", "TCC414", "TCC415"):
                self._leave_open(codes, refusal.message)

    def _leave_open(self, codes: Sequence[str], why: str) -> None:
        self.open_codes.update(codes)
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
        plans = Plans(self._core, self._options, self._timer)
        signed = self._core.start is not None
        every = Kept(parts=(*plans.limits, *plans.orders), signed=signed)
        full = plans.left(every)
        if full is None:
            self.findings += contradictory(plans, self._stated, self._program, self._sources)
        elif isinstance(full, Table):
            self._plans(plans, full)

    def _plans(self, plans: Plans, full: Table) -> None:
        table = plans.answered(full)
        used = frozenset(used_calls(table, plans.letters))
        self.findings += unused_calls(self._program, self._core, used, self._sources[0])
        self.findings += unanswered_calls(
            self._program, plans.core, plans.letters, table, self._sources
        )
        statements = Statements(plans, self._stated, self._program, self._sources)
        self.findings += statements.findings(full, table)
        for text, why in statements.undecided:
            self._leave_open(("TCC704", "TCC705", "TCC706"), f"{text}: {why}")
