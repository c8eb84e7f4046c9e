"""Documents about plans and runs: why, diff, cheapest, sample, run, exec, batch, experiments."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from tcc.outputs import (
    Cell,
    ClaimType,
    CodeText,
    Decimal,
    Digits,
    DocumentPart,
    EpsilonDeltaJson,
    Hex32,
    Order,
    Output,
    Placed,
    PlanJson,
    Sense,
    StatementJson,
    Whole,
    like,
    one_of,
)


class SessionCallJson(DocumentPart, frozen=True, kw_only=True):
    """A call of a session: its arguments, and its answer if the tool gives one.

    Attributes:
        at_ms: since the first call, where a statement has a span of time.
    """

    tool: str
    arguments: dict[str, Any]
    answer: dict[str, Any] | UnsetType = UNSET
    at_ms: Whole | UnsetType = UNSET


class SessionJson(DocumentPart, frozen=True, kw_only=True):
    """A shortest session that decides a question.

    Attributes:
        given: what the session is given, where its grammar asks for that.
    """

    calls: list[SessionCallJson]
    ends: Annotated[str, one_of("call", "finish", "stuck")]
    given: dict[str, Any] | UnsetType = UNSET


class WhyOutput(Output, frozen=True, kw_only=True):
    """Whether a sequence is a plan, and if not, why."""

    document: ClassVar[str] = "why"
    allowed: bool
    position: Whole
    may_stop: bool
    allowed_next: list[str]
    because: list[StatementJson]
    smallest: bool
    nearest: list[str] | None
    others: list[list[StatementJson]] | UnsetType = UNSET
    hint: str | UnsetType = UNSET


class WhySessionsOutput(Output, frozen=True, kw_only=True):
    """Whether a session ends in a call of a pattern, or can finish, and if not, why."""

    document: ClassVar[str] = "why"
    verdict: Annotated[str, one_of("possible", "impossible", "undecided")]
    reachable: str | UnsetType = UNSET
    session: SessionJson | None
    because: list[StatementJson]
    smallest: bool
    codes: list[str]


class QuestionJson(DocumentPart, frozen=True, kw_only=True):
    """An exact question."""

    kind: Annotated[str, one_of("statement", "reachable", "implies", "finishable")]
    text: str | UnsetType = UNSET


class ProveOutput(Output, frozen=True, kw_only=True):
    """The answer to an exact question."""

    document: ClassVar[str] = "prove"
    question: QuestionJson
    verdict: Annotated[str, one_of("proved", "refuted", "undecided")]
    session: SessionJson | None
    codes: list[str]
    states: Whole


class WitnessesJson(DocumentPart, frozen=True, kw_only=True):
    """Plans that one side alone has."""

    shortest: list[str] | None
    cheapest: list[str] | None


class BothWitnessesJson(DocumentPart, frozen=True, kw_only=True):
    """Plans that were added, and plans that were removed."""

    added: WitnessesJson
    removed: WitnessesJson


class BothReasonsJson(DocumentPart, frozen=True, kw_only=True):
    """The statements to which added and removed plans are due."""

    added: list[StatementJson]
    removed: list[StatementJson]


class ChangedJson(DocumentPart, frozen=True, kw_only=True):
    """A monitor or a parameter that is on both sides, but different."""

    name: str
    old: str
    new: str
    sense: Sense


class ChangesJson(DocumentPart, frozen=True, kw_only=True):
    """Changes of monitors, or of open parameters."""

    added: list[str]
    removed: list[str]
    changed: list[ChangedJson]


class MemberChangeJson(DocumentPart, frozen=True, kw_only=True):
    """A changed member of the core."""

    of: str
    name: str
    old: str | None
    new: str | None
    sense: Sense


class CallChangesJson(DocumentPart, frozen=True, kw_only=True):
    """Changes of the alphabet of calls."""

    added: list[str]
    removed: list[str]
    amounts: list[str]


class AmountJson(DocumentPart, frozen=True, kw_only=True):
    """An amount of a call, before and after."""

    old: str
    new: str


class CallAmountsJson(DocumentPart, frozen=True, kw_only=True):
    """The changed amounts of one call."""

    call: str
    cost: AmountJson | UnsetType = UNSET
    price: AmountJson | UnsetType = UNSET
    latency: AmountJson | UnsetType = UNSET
    epsilon: AmountJson | UnsetType = UNSET


class SessionChangesJson(DocumentPart, frozen=True, kw_only=True):
    """The sessions that were added, and those that were removed: a shortest one of each."""

    verdict: Annotated[str, one_of("equal", "wider", "narrower", "incomparable")] | None
    added: SessionJson | None
    removed: SessionJson | None
    codes: list[str]


class DiffOutput(Output, frozen=True, kw_only=True):
    """The difference of two grammars or artifacts."""

    document: ClassVar[str] = "diff"
    verdict: Sense | None
    plans: Annotated[str, one_of("equal", "narrower", "wider", "incomparable")] | None
    counts: Annotated[str, one_of("exact", "upper")]
    added: Digits
    removed: Digits
    common: Digits
    witnesses: BothWitnessesJson
    because: BothReasonsJson
    calls: CallChangesJson | None
    monitors: ChangesJson
    open: ChangesJson
    members: list[MemberChangeJson]
    amounts: list[CallAmountsJson] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    sessions: SessionChangesJson | UnsetType = UNSET
    breaking: bool


class CheapestOutput(Output, frozen=True, kw_only=True):
    """The cheapest plans."""

    document: ClassVar[str] = "cheapest"
    plans: list[PlanJson]


class SampleOutput(Output, frozen=True, kw_only=True):
    """Plans that were drawn at random."""

    document: ClassVar[str] = "sample"
    law: Annotated[str, one_of("uniform", "softmax")]
    beta: Decimal | UnsetType = UNSET
    seed: Annotated[str, Meta(pattern="^([0-9a-f]{2})+$")]
    plans: list[PlanJson]


class PamJson(DocumentPart, frozen=True, kw_only=True):
    """The perturbed value of a plan and its rank; no certificate covers them."""

    value: Decimal
    rank: Whole


class RunPlanJson(DocumentPart, frozen=True, kw_only=True):
    """A plan that a run found."""

    calls: list[str]
    cost: Decimal
    cost_high: Decimal | UnsetType = UNSET
    value: Decimal
    leaf_id: Hex32
    assumed: list[str] | UnsetType = UNSET
    pam: PamJson | UnsetType = UNSET


class PredictionJson(DocumentPart, frozen=True, kw_only=True):
    """An enclosure of the mean number of expansions."""

    lower: float
    upper: float


class EstimateJson(DocumentPart, frozen=True, kw_only=True):
    """An estimate of the number of expansions, from plans that were drawn."""

    lower: float
    upper: float | None
    drawn: Whole
    kept: Whole


class RunOutput(Output, frozen=True, kw_only=True):
    """The result of a run, and what it claims."""

    document: ClassVar[str] = "run"
    mode: Annotated[str, one_of("exact", "surrogate", "fallback")]
    claim_type: ClaimType
    law: Annotated[str, one_of("softmax", "run_wise_only", "none")]
    stop: Annotated[
        str,
        one_of(
            "bound",
            "exhausted",
            "max_expansions",
            "max_seconds",
            "interrupted",
            "precision",
            "guard",
        ),
    ]
    after: list[str] | UnsetType = UNSET
    plans: list[RunPlanJson]
    pam_claim: Annotated[str, one_of("NoCert")] | UnsetType = UNSET
    expansions: Whole
    predicted_expansions: PredictionJson | UnsetType = UNSET
    estimated_expansions: EstimateJson | UnsetType = UNSET
    leaves: Whole
    materialised: Whole | UnsetType = UNSET
    tail_lse: Decimal | UnsetType = UNSET
    frontier_key: Decimal | UnsetType = UNSET
    gap: Decimal | UnsetType = UNSET
    guards: list[str]
    seed: Hex32
    ledger_head: Hex32 | UnsetType = UNSET
    price_spent: Whole | UnsetType = UNSET
    latency_ms: Whole | UnsetType = UNSET
    epsilon_used: Decimal | UnsetType = UNSET
    router_rdp_eps: Decimal | UnsetType = UNSET
    alpha_selected: Order | UnsetType = UNSET
    eps_delta: EpsilonDeltaJson | UnsetType = UNSET


class OpeningOutput(Output, frozen=True, kw_only=True):
    """The opening digest of a run, before it is made."""

    document: ClassVar[str] = "run"
    opening: Hex32


class EpsilonOutput(Output, frozen=True, kw_only=True):
    """The composition of a list of atoms."""

    document: ClassVar[str] = "epsilon"
    epsilon: Decimal
    delta: Decimal
    alpha: Order
    rdp: Decimal
    atoms: Whole
    orders: list[Annotated[list[Decimal], Meta(min_length=2, max_length=2)]]


class MadeCallJson(DocumentPart, frozen=True, kw_only=True):
    """A call that an execution made."""

    seq: Whole
    call: str
    outcome: Annotated[str, one_of("done", "failed", "unknown", "open")]
    observed: dict[str, str] | UnsetType = UNSET
    model: str | UnsetType = UNSET


class SearchClaimJson(DocumentPart, frozen=True, kw_only=True):
    """The claim of one search of an execution."""

    claim_type: ClaimType
    after: list[str]


class BudgetJson(DocumentPart, frozen=True, kw_only=True):
    """What an execution spent, and what is left."""

    price_spent: Decimal
    latency_ms: Decimal
    epsilon_used: Decimal
    router_rdp_eps: Decimal | UnsetType = UNSET
    alpha_selected: Order | UnsetType = UNSET
    eps_delta: EpsilonDeltaJson | UnsetType = UNSET
    left: dict[str, Decimal]


class ExecOutput(Output, frozen=True, kw_only=True):
    """An execution: its calls, and why it stopped."""

    document: ClassVar[str] = "exec"
    stop: Annotated[
        str, one_of("finished", "unknown", "unforeseen", "failed", "refused", "budget", "no_plan")
    ]
    reason: str
    calls: list[MadeCallJson]
    ledger_head: Hex32
    searches: list[SearchClaimJson]
    budget: Annotated[dict[str, Any], like(BudgetJson)] | UnsetType = UNSET


class BatchOutput(Output, frozen=True, kw_only=True):
    """A batch without shards."""

    document: ClassVar[str] = "batch"
    runs: Whole
    certified: Whole
    out: str


class ShardedBatchOutput(BatchOutput, frozen=True, kw_only=True):
    """A batch in shards."""

    parts: Whole
    made: Whole
    kept: Whole
    redone: Whole
    started_ms: Whole


class BatchFindingJson(DocumentPart, frozen=True, kw_only=True):
    """A ledger or a part of a batch that is not valid."""

    run: Whole
    line: Whole
    code: CodeText
    file: str
    field: str
    expected: str
    found: str


class BatchValidationOutput(Output, frozen=True, kw_only=True):
    """The validation of every ledger of a batch."""

    document: ClassVar[str] = "batch"
    verdict: Annotated[str, one_of("VALID", "INVALID", "INCOMPLETE")]
    out: str
    runs: Whole
    verdicts: dict[str, Whole]
    claims: dict[str, Whole]
    findings: list[BatchFindingJson]
    more_findings: Whole


class DemoOutput(Output, frozen=True, kw_only=True):
    """The measurements of the demonstration."""

    document: ClassVar[str] = "demo"
    modes: list[dict[str, Cell]]
    queries: list[dict[str, Cell]]
    valid: bool


class PaperClaimJson(DocumentPart, frozen=True, kw_only=True):
    """A claim of the paper beside what was measured."""

    claim: str
    found: str
    verdict: Annotated[str, one_of("holds", "does not hold", "differs because", "not in the paper")]
    because: str


class DifferingCellJson(DocumentPart, frozen=True, kw_only=True):
    """A cell of a table that differs from earlier results."""

    table: str
    row: Whole
    column: str
    here: str
    there: str


class ExperimentsOutput(Output, frozen=True, kw_only=True):
    """The outcome of experiments."""

    document: ClassVar[str] = "experiments"
    size: Annotated[str, one_of("quick", "full")]
    findings: dict[str, list[PaperClaimJson]]
    differing: list[DifferingCellJson] | UnsetType = UNSET


class SecondsJson(DocumentPart, frozen=True, kw_only=True):
    """The time that an experiment takes, by size."""

    quick: Whole
    full: Whole


class ExperimentJson(DocumentPart, frozen=True, kw_only=True):
    """An experiment."""

    name: str
    title: str
    paper: list[str]
    seconds: SecondsJson


class ExperimentListOutput(Output, frozen=True, kw_only=True):
    """The list of experiments."""

    document: ClassVar[str] = "experiments"
    experiments: list[ExperimentJson]


class ReplayedCallJson(DocumentPart, frozen=True, kw_only=True):
    """A recorded call that would have been refused; its values are digests unless asked for."""

    session: str
    call: str
    position: Placed


class ReplayedStatementJson(DocumentPart, frozen=True, kw_only=True):
    """A statement, or another reason, that refuses recorded calls."""

    text: str
    code: CodeText
    count: Placed
    examples: list[ReplayedCallJson]


class MinedRelationJson(DocumentPart, frozen=True, kw_only=True):
    """A relation that held in every recorded session: a statement, or a comment."""

    text: str
    calls: Placed
    written: bool


class MineOutput(Output, frozen=True, kw_only=True):
    """A first grammar out of recorded sessions, and how many of them it admits."""

    document: ClassVar[str] = "mine"
    sessions: Whole
    calls: Whole
    admitted: Whole
    held_out: Whole | None
    relations: list[MinedRelationJson]
    grammar: str


class ReplayOutput(Output, frozen=True, kw_only=True):
    """What an artifact would have refused in recorded sessions."""

    document: ClassVar[str] = "replay"
    sessions: Whole
    calls: Whole
    refused: Whole
    statements: list[ReplayedStatementJson]
