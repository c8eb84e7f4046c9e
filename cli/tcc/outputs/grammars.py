"""Documents about a grammar or its artifact: compile, inspect, count, lint, fmt, graph and others.

networkx writes the graphs (:mod:`tcc.pictures.graph`); their declarations here only give schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from tcc import outputs
from tcc.outputs.questions import SessionCallJson


class DeclaredToolJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A tool with open fields, listed answers, or a rule for its errors."""

    name: str
    open: list[str] | UnsetType = UNSET
    observed: list[str] | UnsetType = UNSET
    answers: list[str] | UnsetType = UNSET
    strict: Literal[True] | UnsetType = UNSET
    errors: Annotated[str, outputs.one_of("failed")] | UnsetType = UNSET


class _DescribedOutput(outputs.Output, frozen=True, kw_only=True):
    """The contents of an artifact; each command has its own order of the optional members."""

    grammar: str
    version: str
    digest: outputs.Hex32
    root_state: outputs.Hex32
    counts: outputs.CountKind
    plans: outputs.Digits | None
    race_count: outputs.Digits | None
    states: outputs.Whole
    edges: outputs.Whole
    calls: outputs.Whole
    max_depth: outputs.Whole | None
    min_cost: outputs.Decimal | None
    min_cost_plan: list[str] | None
    tilt: outputs.Whole
    beta: outputs.Decimal
    nondeterministic: bool
    cyclic: bool
    round_counts: outputs.Whole | None
    relaxed: list[str]
    enforced: outputs.EnforcedJson
    statements: list[outputs.ListedStatementJson]
    tools: list[DeclaredToolJson] | UnsetType = UNSET
    given: list[str] | UnsetType = UNSET
    lets: list[str] | UnsetType = UNSET
    passed: list[str] | UnsetType = UNSET
    zones: list[str] | UnsetType = UNSET


class InspectOutput(_DescribedOutput, frozen=True, kw_only=True):
    """An artifact: its identity, its counts and its declarations."""

    document: ClassVar[str] = "inspect"
    diagnostics: list[outputs.DiagnosticJson] | UnsetType = UNSET
    plans_by_depth: list[outputs.Digits] | UnsetType = UNSET


class CompileOutput(_DescribedOutput, frozen=True, kw_only=True):
    """An artifact that was just compiled, with the warnings of its grammar."""

    document: ClassVar[str] = "compile"
    plans_by_depth: list[outputs.Digits] | UnsetType = UNSET
    config: str | UnsetType = UNSET
    diagnostics: list[outputs.DiagnosticJson] | UnsetType = UNSET


class GrammarTestJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The tests of one grammar.

    Attributes:
        examples, expectations: how many the grammar has.
        sessions: how many recorded sessions it has.
        undecided: how many examples and expectations may or may not hold; a diagnostic names each.
    """

    grammar: str
    passed: bool
    examples: outputs.Whole
    expectations: outputs.Whole
    sessions: outputs.Whole
    undecided: outputs.Whole
    diagnostics: list[outputs.DiagnosticJson]


class TestOutput(outputs.Output, frozen=True, kw_only=True):
    """The tests of all grammars."""

    document: ClassVar[str] = "test"
    passed: bool
    grammars: list[GrammarTestJson]
    diagnostics: list[outputs.DiagnosticJson]


class SurvivorJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A mutant that the tests of its grammar do not notice.

    Attributes:
        mutant: the changed statement; null if the statement was removed.
        file: the file to add the session to; a test with it notices the mutant.
        session, given: a session whose last call the policy and the mutant decide differently.
        ends: true if they decide the end of the session differently instead.
    """

    grammar: str
    statement: str
    change: str
    mutant: str | None
    file: str
    session: list[SessionCallJson]
    given: dict[str, Any] | UnsetType = UNSET
    ends: bool | UnsetType = UNSET


class OpenMutantJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A mutant that some session may notice; whether one does is unknown."""

    grammar: str
    statement: str
    change: str
    mutant: str | None
    missing: str


class MutantsOutput(outputs.Output, frozen=True, kw_only=True):
    """The mutants of all grammars; `mutants` is the sum of the four kinds."""

    document: ClassVar[str] = "test"
    mutants: outputs.Whole
    equivalent: outputs.Whole
    open: outputs.Whole
    killed: outputs.Whole
    survived: list[SurvivorJson]
    undecided: list[OpenMutantJson]


class CountOutput(outputs.Output, frozen=True, kw_only=True):
    """The number of plans."""

    document: ClassVar[str] = "count"
    plans: outputs.Digits
    counts: outputs.CountKind
    left_to_run: list[str]
    plans_by_depth: list[outputs.Digits] | UnsetType = UNSET


class EnumerateOutput(outputs.Output, frozen=True, kw_only=True):
    """The first plans, and whether these are all."""

    document: ClassVar[str] = "enumerate"
    plans: list[list[str]]
    counts: outputs.CountKind
    total: outputs.Digits
    left_to_run: list[str]
    complete: bool


class RelatedJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Another place that belongs to a lint."""

    message: str
    place: outputs.SpanJson | None


class FixJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A range of text and its replacement."""

    file: str
    line: outputs.Placed
    column: outputs.Placed
    end_line: outputs.Placed
    end_column: outputs.Placed
    text: str


class LintJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A lint or an error of a grammar."""

    code: outputs.CodeText
    level: Annotated[str, outputs.one_of("error", "warning", "note")]
    severity: Annotated[str, outputs.one_of("error", "warning", "note")]
    message: str
    place: outputs.SpanJson | None
    related: list[RelatedJson]
    hint: str | UnsetType = UNSET
    fix: list[FixJson] | UnsetType = UNSET


class LintNoteJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A question that was not answered, a limit that was reached, or a remark."""

    code: outputs.CodeText
    level: Annotated[str, outputs.one_of("error", "warning", "note")]
    message: str
    place: outputs.SpanJson | None
    statement: str | None
    question: str | None
    missing: str | None
    hint: str | UnsetType = UNSET


class SkippedJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A lint that does not apply to a grammar, and why."""

    code: outputs.CodeText
    why: str


class LintedJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The outcome for one grammar."""

    grammar: str
    clean: bool
    config: str | None
    mended: bool
    skipped: list[SkippedJson]


class LintOutput(outputs.Output, frozen=True, kw_only=True):
    """The lints of all grammars."""

    document: ClassVar[str] = "lint"
    findings: list[LintJson]
    notes: list[LintNoteJson]
    grammars: list[LintedJson]


class LayoutJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The layout of one file."""

    file: str
    changed: bool
    diagnostics: list[outputs.DiagnosticJson]
    error: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET
    text: str | UnsetType | None = UNSET


class FmtOutput(outputs.Output, frozen=True, kw_only=True):
    """The layouts of all files."""

    document: ClassVar[str] = "fmt"
    changed: outputs.Whole
    files: list[Annotated[dict[str, Any], outputs.like(LayoutJson)]]


class InitOutput(outputs.Output, frozen=True, kw_only=True):
    """The files that were written, and the next steps."""

    document: ClassVar[str] = "init"
    grammar: str
    written: list[str]
    next: list[str]


class SkeletonWarningJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A part of a schema that was not carried over."""

    code: outputs.CodeText
    place: str
    message: str


class ToolChangeJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A difference between a grammar and the tools as they are now."""

    kind: Literal["came", "went", "changed"]
    tool: str
    field: str | None
    old: str | None
    new: str | None


class ImportOutput(outputs.Output, frozen=True, kw_only=True):
    """A grammar made from tools."""

    document: ClassVar[str] = "import"
    tools: outputs.Whole
    diagnostics: list[SkeletonWarningJson]
    grammar: str
    changes: list[ToolChangeJson] | UnsetType = UNSET


class GraphHeadJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The attributes of a graph, which describe its artifact."""

    name: str
    version: str
    digest: outputs.Hex32
    root: outputs.Whole
    root_state: outputs.Hex32
    counts: outputs.CountKind
    plans: outputs.Digits
    states: outputs.Whole
    edges: outputs.Whole
    calls: outputs.Whole
    max_depth: outputs.Whole
    min_cost: float | outputs.Decimal
    beta: outputs.Decimal
    tilt: outputs.Whole
    nondeterministic: bool
    relaxed: str


class UnrolledHeadJson(GraphHeadJson, frozen=True, kw_only=True):
    """The attributes of an unrolled graph."""

    depth: outputs.Whole


class GraphStateJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A state of the automaton."""

    id: outputs.Whole
    start: bool
    accept: bool
    rank: outputs.Whole
    plans: outputs.Digits
    cost_to_go: float | outputs.Decimal
    residual_to_go: int | outputs.Decimal
    state_digest: outputs.Hex32
    race_count: outputs.Digits | UnsetType = UNSET
    race_mantissa: outputs.Digits | UnsetType = UNSET
    race_exponent: int | outputs.Decimal | UnsetType = UNSET


class GraphPrefixJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A prefix of plans."""

    id: outputs.Whole
    kind: Annotated[str, outputs.one_of("node", "cut", "leaf")]
    prefix: str
    depth: outputs.Whole
    state: outputs.Whole
    accept: bool
    plans: outputs.Digits
    cost: float | outputs.Decimal
    cost_to_go: float | outputs.Decimal
    rank: outputs.Whole
    context: outputs.Hex32
    leaf_id: outputs.Hex32 | UnsetType = UNSET


class GraphEdgeJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An edge: the call that is made."""

    source: outputs.Whole
    target: outputs.Whole
    key: str
    call: str
    tool: str
    arguments: str
    cost: float | outputs.Decimal
    price: int | outputs.Decimal
    latency_ms: int | outputs.Decimal
    epsilon: float | outputs.Decimal
    race_weight: int | outputs.Decimal
    cost_high: float | outputs.Decimal | UnsetType = UNSET


class GraphStopJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An edge to the leaf where a plan stops."""

    source: outputs.Whole
    target: outputs.Whole
    key: str
    stop: Literal[True]


class GraphOutput(outputs.Output, frozen=True, kw_only=True):
    """The shared graph of an artifact, as networkx node-link JSON."""

    document: ClassVar[str] = "graph"
    directed: Literal[True]
    multigraph: Literal[True]
    graph: GraphHeadJson
    nodes: list[GraphStateJson]
    edges: list[GraphEdgeJson]


class UnrollOutput(outputs.Output, frozen=True, kw_only=True):
    """The unrolled part of the prefix DAG, as networkx node-link JSON."""

    document: ClassVar[str] = "unroll"
    directed: Literal[True]
    multigraph: Literal[True]
    graph: UnrolledHeadJson
    nodes: list[GraphPrefixJson]
    edges: list[Annotated[Any, outputs.like(GraphEdgeJson, GraphStopJson)]]
