"""All lints of a grammar that compiles: findings on its text, its statements and its automaton.

Start reading at :func:`lint_compiled`. A rule that reaches a limit is undecided (TCC715).
Specification: docs/lint.md. Cost: linear in the text, the calls and the automaton.
"""

from __future__ import annotations

from tcc_compiler.counting import used_calls
from tcc_compiler.expectations import Built
from tcc_compiler.frontend import Compiled as Frontend
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.lint import (
    approvals,
    declarations,
    exclusions,
    expectations,
    sources,
    unused,
    values,
)
from tcc_compiler.lint.declared import Declared
from tcc_compiler.lint.finding import LintFinding, LintNote
from tcc_compiler.lint.policies import Policy

OF_AUTOMATA = frozenset({"TCC701", "TCC703", "TCC712"})


@frozen
class Lints:
    """The findings of all rules, before comments and configuration allow some.

    Attributes:
        findings: in no order.
        undecided: notes on the rules that a limit left undecided.
        undecided_codes: the codes of these rules, and of the rules that need an automaton if the
            compilation did not make one.
        head: the offset of the `grammar` statement.
        dead: tools that statements exclude (TCC746).
    """

    findings: tuple[LintFinding, ...]
    undecided: tuple[LintNote, ...]
    undecided_codes: frozenset[str]
    head: int
    dead: tuple[str, ...] = ()


def lint_compiled(front: Frontend, built: Built | None) -> Lints:
    """Return the lints of a grammar without errors in its text.

    Args:
        front: the result of the front end.
        built: the automaton and the counts; None if the compilation reached a limit.
    """
    core = front.core
    if core is None:
        raise ValueError("only a grammar without errors has lints")
    declared = Declared(front.sources)
    policy = Policy(core, front.places)
    findings = [
        *unused.unused_rules(core, declared),
        *declarations.missing_costs(declared),
        *declarations.bare_words(declared),
        *declarations.counted_errors(policy),
        *expectations.vacuous_expects(core, front.expects),
    ]
    groups, dead = exclusions.excluded(policy)
    findings += [
        *approvals.approvals(policy),
        *sources.sources(policy),
        *values.values(policy),
        *exclusions.unnamed(policy, declared),
        *groups,
    ]
    undecided: list[LintNote] = []
    codes = set[str]()
    examples, complete = expectations.vacuous_examples(core, front.examples)
    findings += examples
    if not complete:
        why = "there are too many `accept` and `reject` lines to compare"
        undecided.append(_undecided("TCC711", why))
        codes.add("TCC711")
    if built is None:
        codes |= OF_AUTOMATA
    else:
        used = frozenset(used_calls(built.table, built.letters))
        findings += unused.unused_calls(core, declared, used, dead)
        if built.table.nondeterministic:
            undecided.append(_undecided("TCC712", "the automaton is not deterministic"))
            codes.add("TCC712")
        else:
            findings += declarations.unanswered_calls(core, built.letters, built.table, declared)
    return Lints(
        findings=tuple(findings),
        undecided=tuple(undecided),
        undecided_codes=frozenset(codes),
        dead=tuple(sorted(dead)),
        head=min([tree.start for tree in declared.of_kind("header")], default=0),
    )


def _undecided(code: str, why: str) -> LintNote:
    diagnostic = Diagnostic(
        code="TCC715",
        severity="note",
        message=f"not decided: {code}: {why}",
        span=None,
        hint="raise --max-states or --timeout",
    )
    return LintNote(diagnostic=diagnostic, question=code, missing=why)
