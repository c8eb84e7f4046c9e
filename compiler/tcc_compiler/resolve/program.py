"""The statements sorted by kind, each name with the one statement that defines it.

Normative text: docs/spec/language.md, section 4.  Cost: linear in the statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tcc_certs.plain import hidden_in
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.statements import (
    Broken,
    CurrencyStatement,
    ExampleStatement,
    ExpectStatement,
    ForbidStatement,
    GoalStatement,
    GrammarStatement,
    LimitStatement,
    PlanStatement,
    RequireStatement,
    RuleStatement,
    StartStatement,
    Statement,
    ToolStatement,
)
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.words import OPENERS
from tcc_compiler.resolve.files import Gathered
from tcc_compiler.resolve.versions import version_fault

_ONE = {
    "goal": "write one 'goal' statement: goal A | B",
    "plan": "write one 'plan' statement: plan = A | B",
}
MAX_LABEL = 128  # characters of the label of a currency
_D = TypeVar("_D", ToolStatement, RuleStatement)
_S = TypeVar(
    "_S", GrammarStatement, CurrencyStatement, PlanStatement, StartStatement, GoalStatement
)


@frozen
class Program:
    """A grammar's statements by kind.

    Attributes:
        broken: names whose definition has an error; nothing is said about their uses.
        gaps: keywords of the statements that have an error.
        incomplete: a used file is missing, or a text is no statement, so that unknown names are no
            errors of their own.
    """

    grammar: GrammarStatement | None
    currency: CurrencyStatement | None
    tools: Mapping[str, ToolStatement]
    rules: Mapping[str, RuleStatement]
    plan: PlanStatement | None
    start: StartStatement | None
    goal: GoalStatement | None
    limits: Sequence[LimitStatement]
    requires: Sequence[RequireStatement]
    forbids: Sequence[ForbidStatement]
    examples: Sequence[ExampleStatement]
    expects: Sequence[ExpectStatement]
    broken: frozenset[str]
    gaps: frozenset[str]
    incomplete: bool


def program_of(gathered: Gathered, report: Report) -> Program:
    """Sort the statements; what is defined twice, or misplaced, is reported."""
    statements = (*gathered.root, *gathered.used)
    broken = [statement for statement in statements if isinstance(statement, Broken)]
    gaps = frozenset(statement.keyword for statement in broken)
    tools = _defined([s for s in statements if isinstance(s, ToolStatement)], "tool", report)
    rules = _defined([s for s in statements if isinstance(s, RuleStatement)], "rule", report)
    for name, rule in rules.items():
        if name in tools:
            report.error(
                "TCC206", rule.name.region, f"{quote(name)} is a tool; a rule needs another name",
                "rename the rule",
                notes=[("the tool", tools[name].name.region)],
            )  # fmt: skip
    program = Program(
        grammar=_once(
            [s for s in statements if isinstance(s, GrammarStatement)], "grammar", report
        ),
        currency=_once(
            [s for s in statements if isinstance(s, CurrencyStatement)], "currency", report
        ),
        tools=tools,
        rules=rules,
        plan=_once([s for s in statements if isinstance(s, PlanStatement)], "plan", report),
        start=_once([s for s in statements if isinstance(s, StartStatement)], "start", report),
        goal=_once([s for s in statements if isinstance(s, GoalStatement)], "goal", report),
        limits=[s for s in statements if isinstance(s, LimitStatement)],
        requires=[s for s in statements if isinstance(s, RequireStatement)],
        forbids=[s for s in statements if isinstance(s, ForbidStatement)],
        examples=[s for s in statements if isinstance(s, ExampleStatement)],
        expects=[s for s in statements if isinstance(s, ExpectStatement)],
        broken=frozenset(name.text for statement in broken for name in statement.names),
        gaps=gaps,
        incomplete=gathered.incomplete or "use" in gaps or not gaps <= set(OPENERS),
    )
    _check_head(gathered.root, program, report)
    if program.currency is not None:
        _check_label(program.currency, report)
    return program


def _check_label(currency: CurrencyStatement, report: Report) -> None:
    """The label of a currency is shown as it is."""
    label = currency.label
    hidden = hidden_in(label.value)
    if not 1 <= len(label.value) <= MAX_LABEL:
        message = f"a label has 1 to {MAX_LABEL} characters"
    elif hidden is not None:
        message = f"the label holds U+{ord(hidden):04X}, a control or hidden character"
    else:
        return
    report.error("TCC315", label.region, message, 'say what one unit of price is: "EUR/1000"')


def _defined(statements: Sequence[_D], what: str, report: Report) -> dict[str, _D]:
    definitions: dict[str, _D] = {}
    for statement in statements:
        first = definitions.setdefault(statement.name.text, statement)
        if first is not statement:
            report.error(
                "TCC201",
                statement.name.region,
                f"{what} {quote(statement.name.text)} is defined twice",
                "take one of them away, or give it another name",
                notes=[("first defined here", first.name.region)],
            )
    return definitions


def _once(statements: Sequence[_S], what: str, report: Report) -> _S | None:
    for other in statements[1:]:
        hint = _ONE.get(what, "take one of them away")
        report.error(
            "TCC212", other.region, f"a second '{what}' statement", hint,
            notes=[("the first is here", statements[0].region)],
        )  # fmt: skip
    return statements[0] if statements else None


def _check_head(root: Sequence[Statement], program: Program, report: Report) -> None:
    """The grammar statement comes first."""
    hint = 'begin with: grammar NAME version "1.0"'
    first = root[0] if root else None
    if isinstance(first, GrammarStatement):
        version = first.version
        fault = version_fault(version.value)
        if fault is not None:
            report.error("TCC315", version.region, *fault)
        return
    if isinstance(first, Broken) and first.keyword not in OPENERS:
        return
    if program.grammar is not None:
        report.error(
            "TCC213", program.grammar.region, "the 'grammar' statement is the first of the file",
            "move it to the beginning",
        )  # fmt: skip
    elif "grammar" not in program.gaps:
        message = "there is no 'grammar' statement"
        if not root:
            message = "this grammar is empty: it has no statement"
            hint += ", then its tools and a plan; `tcc explain TCC213` has one to start from"
        report.error("TCC213", Region(0, 0, 0), message, hint)
