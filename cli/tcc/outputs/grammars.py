"""Documents about a grammar or its artifact: compile, inspect, count, lint, fmt, graph and others.

Graphs are written by networkx (:mod:`tcc.pictures.graph`); their declarations give schemas alone.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from tcc.outputs import (
    CodeText,
    CountKind,
    Decimal,
    DiagnosticJson,
    Digits,
    DocumentPart,
    EnforcedJson,
    Hex32,
    Output,
    Placed,
    SpanJson,
    Whole,
    like,
    one_of,
)


class DeclaredToolJson(DocumentPart, frozen=True, kw_only=True):
    """A tool with open or observed parameters, or with rules for its errors."""

    name: str
    open: list[str] | UnsetType = UNSET
    observed: list[str] | UnsetType = UNSET
    strict: Literal[True] | UnsetType = UNSET
    errors: Annotated[str, one_of("failed")] | UnsetType = UNSET


class _DescribedOutput(Output, frozen=True, kw_only=True):
    """What an artifact contains; each command has its own order of the optional members."""

    grammar: str
    version: str
    digest: Hex32
    root_state: Hex32
    counts: CountKind
    plans: Digits
    race_count: Digits | None
    states: Whole
    edges: Whole
    calls: Whole
    max_depth: Whole
    min_cost: Decimal
    min_cost_plan: list[str] | None
    tilt: Whole
    beta: Decimal
    nondeterministic: bool
    round_counts: Whole | None
    relaxed: list[str]
    enforced: EnforcedJson
    tools: list[DeclaredToolJson] | UnsetType = UNSET
    monitors: list[str] | UnsetType = UNSET
    given: list[str] | UnsetType = UNSET
    lets: list[str] | UnsetType = UNSET
    passed: list[str] | UnsetType = UNSET


class InspectOutput(_DescribedOutput, frozen=True, kw_only=True):
    """An artifact: its identity, its counts, and what it declares."""

    document: ClassVar[str] = "inspect"
    diagnostics: list[DiagnosticJson] | UnsetType = UNSET
    plans_by_depth: list[Digits] | UnsetType = UNSET


class CompileOutput(_DescribedOutput, frozen=True, kw_only=True):
    """An artifact that was just compiled, with the warnings of its grammar."""

    document: ClassVar[str] = "compile"
    plans_by_depth: list[Digits] | UnsetType = UNSET
    config: str | UnsetType = UNSET
    diagnostics: list[DiagnosticJson] | UnsetType = UNSET


class GrammarTestJson(DocumentPart, frozen=True, kw_only=True):
    """The tests of one grammar."""

    grammar: str
    passed: bool
    examples: Whole
    expectations: Whole
    diagnostics: list[DiagnosticJson]


class TestOutput(Output, frozen=True, kw_only=True):
    """The tests of all grammars."""

    document: ClassVar[str] = "test"
    passed: bool
    grammars: list[GrammarTestJson]
    diagnostics: list[DiagnosticJson]


class CountOutput(Output, frozen=True, kw_only=True):
    """The number of plans."""

    document: ClassVar[str] = "count"
    plans: Digits
    counts: CountKind
    left_to_run: list[str]
    plans_by_depth: list[Digits] | UnsetType = UNSET


class EnumerateOutput(Output, frozen=True, kw_only=True):
    """The first plans, and whether these are all."""

    document: ClassVar[str] = "enumerate"
    plans: list[list[str]]
    counts: CountKind
    total: Digits
    left_to_run: list[str]
    complete: bool


class RelatedJson(DocumentPart, frozen=True, kw_only=True):
    """Another place that belongs to a lint."""

    message: str
    place: SpanJson | None


class FixJson(DocumentPart, frozen=True, kw_only=True):
    """A range of text and its replacement."""

    file: str
    line: Placed
    column: Placed
    end_line: Placed
    end_column: Placed
    text: str


class LintJson(DocumentPart, frozen=True, kw_only=True):
    """A lint or an error of a grammar."""

    code: CodeText
    level: Annotated[str, one_of("error", "warning")]
    severity: Annotated[str, one_of("error", "warning")]
    message: str
    place: SpanJson | None
    related: list[RelatedJson]
    hint: str | UnsetType = UNSET
    fix: list[FixJson] | UnsetType = UNSET


class SkippedJson(DocumentPart, frozen=True, kw_only=True):
    """A lint that does not apply to a grammar, and why."""

    code: CodeText
    why: str


class LintedJson(DocumentPart, frozen=True, kw_only=True):
    """The outcome for one grammar."""

    grammar: str
    clean: bool
    config: str | None
    mended: bool
    skipped: list[SkippedJson]


class LintOutput(Output, frozen=True, kw_only=True):
    """The lints of all grammars."""

    document: ClassVar[str] = "lint"
    findings: list[LintJson]
    undecided: list[LintJson]
    grammars: list[LintedJson]


class LayoutJson(DocumentPart, frozen=True, kw_only=True):
    """The layout of one file."""

    file: str
    changed: bool
    diagnostics: list[DiagnosticJson]
    error: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET
    text: str | UnsetType | None = UNSET


class FmtOutput(Output, frozen=True, kw_only=True):
    """The layouts of all files."""

    document: ClassVar[str] = "fmt"
    changed: Whole
    files: list[Annotated[dict[str, Any], like(LayoutJson)]]


class InitOutput(Output, frozen=True, kw_only=True):
    """The files that were written, and the next steps."""

    document: ClassVar[str] = "init"
    grammar: str
    written: list[str]
    next: list[str]


class SkeletonWarningJson(DocumentPart, frozen=True, kw_only=True):
    """A part of a schema that was not carried over."""

    code: CodeText
    place: str
    message: str


class ImportOutput(Output, frozen=True, kw_only=True):
    """A grammar made from tools."""

    document: ClassVar[str] = "import"
    tools: Whole
    diagnostics: list[SkeletonWarningJson]
    grammar: str


class GraphHeadJson(DocumentPart, frozen=True, kw_only=True):
    """The attributes of a graph: those of its artifact."""

    name: str
    version: str
    digest: Hex32
    root: Whole
    root_state: Hex32
    counts: CountKind
    plans: Digits
    states: Whole
    edges: Whole
    calls: Whole
    max_depth: Whole
    min_cost: float | Decimal
    beta: Decimal
    tilt: Whole
    nondeterministic: bool
    relaxed: str


class UnrolledHeadJson(GraphHeadJson, frozen=True, kw_only=True):
    """The attributes of an unrolled graph."""

    depth: Whole


class GraphStateJson(DocumentPart, frozen=True, kw_only=True):
    """A state of the automaton."""

    id: Whole
    start: bool
    accept: bool
    rank: Whole
    plans: Digits
    cost_to_go: float | Decimal
    residual_to_go: int | Decimal
    state_digest: Hex32
    race_count: Digits | UnsetType = UNSET
    race_mantissa: Digits | UnsetType = UNSET
    race_exponent: int | Decimal | UnsetType = UNSET


class GraphPrefixJson(DocumentPart, frozen=True, kw_only=True):
    """A prefix of plans."""

    id: Whole
    kind: Annotated[str, one_of("node", "cut", "leaf")]
    prefix: str
    depth: Whole
    state: Whole
    accept: bool
    plans: Digits
    cost: float | Decimal
    cost_to_go: float | Decimal
    rank: Whole
    context: Hex32
    leaf_id: Hex32 | UnsetType = UNSET


class GraphEdgeJson(DocumentPart, frozen=True, kw_only=True):
    """An edge: the call that is made."""

    source: Whole
    target: Whole
    key: str
    call: str
    tool: str
    arguments: str
    cost: float | Decimal
    price: int | Decimal
    latency_ms: int | Decimal
    epsilon: float | Decimal
    race_weight: int | Decimal
    cost_high: float | Decimal | UnsetType = UNSET


class GraphStopJson(DocumentPart, frozen=True, kw_only=True):
    """An edge to the leaf where a plan stops."""

    source: Whole
    target: Whole
    key: str
    stop: Literal[True]


class GraphOutput(Output, frozen=True, kw_only=True):
    """The shared graph of an artifact, as networkx node-link JSON."""

    document: ClassVar[str] = "graph"
    directed: Literal[True]
    multigraph: Literal[True]
    graph: GraphHeadJson
    nodes: list[GraphStateJson]
    edges: list[GraphEdgeJson]


class UnrollOutput(Output, frozen=True, kw_only=True):
    """The unrolled part of the prefix DAG, as networkx node-link JSON."""

    document: ClassVar[str] = "unroll"
    directed: Literal[True]
    multigraph: Literal[True]
    graph: UnrolledHeadJson
    nodes: list[GraphPrefixJson]
    edges: list[Annotated[Any, like(GraphEdgeJson, GraphStopJson)]]
