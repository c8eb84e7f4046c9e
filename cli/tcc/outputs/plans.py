"""Documents about plans and runs: why, diff, cheapest, sample, run, exec, batch, experiments."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from tcc import outputs


class SessionCallJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A call of a session: its arguments, and its answer if the tool gives one.

    Attributes:
        at_ms: since the first call, where a statement has a span of time.
    """

    tool: str
    arguments: dict[str, Any]
    answer: dict[str, Any] | UnsetType = UNSET
    at_ms: outputs.Whole | UnsetType = UNSET


class SessionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A shortest session that decides a question.

    Attributes:
        given: what the session is given, where its grammar asks for that.
    """

    calls: list[SessionCallJson]
    ends: Annotated[str, outputs.one_of("call", "finish", "stuck")]
    given: dict[str, Any] | UnsetType = UNSET


class WhyOutput(outputs.Output, frozen=True, kw_only=True):
    """Whether a sequence is a plan, and if not, why."""

    document: ClassVar[str] = "why"
    allowed: bool
    position: outputs.Whole
    may_stop: bool
    allowed_next: list[str]
    because: list[outputs.StatementJson]
    smallest: bool
    nearest: list[str] | None
    others: list[list[outputs.StatementJson]] | UnsetType = UNSET
    hint: str | UnsetType = UNSET


class WhySessionsOutput(outputs.Output, frozen=True, kw_only=True):
    """Whether a session ends in a call of a pattern, or can finish, and if not, why."""

    document: ClassVar[str] = "why"
    verdict: Annotated[str, outputs.one_of("possible", "impossible", "undecided")]
    reachable: str | UnsetType = UNSET
    session: SessionJson | None
    because: list[outputs.StatementJson]
    smallest: bool
    codes: list[str]


class QuestionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An exact question."""

    kind: Annotated[str, outputs.one_of("statement", "reachable", "implies", "finishable")]
    text: str | UnsetType = UNSET


class ProveOutput(outputs.Output, frozen=True, kw_only=True):
    """The answer to an exact question."""

    document: ClassVar[str] = "prove"
    question: QuestionJson
    verdict: Annotated[str, outputs.one_of("proved", "refuted", "undecided")]
    session: SessionJson | None
    codes: list[str]
    states: outputs.Whole


class WitnessesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Plans that one side alone has."""

    shortest: list[str] | None
    cheapest: list[str] | None


class BothWitnessesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Plans that were added, and plans that were removed."""

    added: WitnessesJson
    removed: WitnessesJson


class BothReasonsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The statements to which added and removed plans are due."""

    added: list[outputs.StatementJson]
    removed: list[outputs.StatementJson]


class ChangedJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A monitor or a parameter that is on both sides, but different."""

    name: str
    old: str
    new: str
    sense: outputs.Sense


class ChangesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Changes of monitors, or of open parameters."""

    added: list[str]
    removed: list[str]
    changed: list[ChangedJson]


class MemberChangeJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A changed member of the core."""

    of: str
    name: str
    old: str | None
    new: str | None
    sense: outputs.Sense


class CallChangesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Changes of the alphabet of calls."""

    added: list[str]
    removed: list[str]
    amounts: list[str]


class AmountJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An amount of a call, before and after."""

    old: str
    new: str


class CallAmountsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The changed amounts of one call."""

    call: str
    cost: AmountJson | UnsetType = UNSET
    price: AmountJson | UnsetType = UNSET
    latency: AmountJson | UnsetType = UNSET
    epsilon: AmountJson | UnsetType = UNSET


class SessionChangesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The sessions that were added, and those that were removed: a shortest one of each."""

    verdict: Annotated[str, outputs.one_of("equal", "wider", "narrower", "incomparable")] | None
    added: SessionJson | None
    removed: SessionJson | None
    codes: list[str]


class DiffOutput(outputs.Output, frozen=True, kw_only=True):
    """The difference of two grammars or artifacts."""

    document: ClassVar[str] = "diff"
    verdict: outputs.Sense | None
    plans: Annotated[str, outputs.one_of("equal", "narrower", "wider", "incomparable")] | None
    counts: Annotated[str, outputs.one_of("exact", "upper")]
    added: outputs.Digits
    removed: outputs.Digits
    common: outputs.Digits
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


class CheapestOutput(outputs.Output, frozen=True, kw_only=True):
    """The cheapest plans."""

    document: ClassVar[str] = "cheapest"
    plans: list[outputs.PlanJson]


class SampleOutput(outputs.Output, frozen=True, kw_only=True):
    """Plans that were drawn at random."""

    document: ClassVar[str] = "sample"
    law: Annotated[str, outputs.one_of("uniform", "softmax")]
    beta: outputs.Decimal | UnsetType = UNSET
    seed: Annotated[str, Meta(pattern="^([0-9a-f]{2})+$")]
    plans: list[outputs.PlanJson]


class PamJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The perturbed value of a plan and its rank; no certificate covers them."""

    value: outputs.Decimal
    rank: outputs.Whole


class RunPlanJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A plan that a run found."""

    calls: list[str]
    cost: outputs.Decimal
    cost_high: outputs.Decimal | UnsetType = UNSET
    value: outputs.Decimal
    leaf_id: outputs.Hex32
    assumed: list[str] | UnsetType = UNSET
    pam: PamJson | UnsetType = UNSET


class PredictionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An enclosure of the mean number of expansions."""

    lower: float
    upper: float


class EstimateJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An estimate of the number of expansions, from plans that were drawn."""

    lower: float
    upper: float | None
    drawn: outputs.Whole
    kept: outputs.Whole


class RunOutput(outputs.Output, frozen=True, kw_only=True):
    """The result of a run, and what it claims."""

    document: ClassVar[str] = "run"
    mode: Annotated[str, outputs.one_of("exact", "surrogate", "fallback")]
    claim_type: outputs.ClaimType
    law: Annotated[str, outputs.one_of("softmax", "run_wise_only", "none")]
    stop: Annotated[
        str,
        outputs.one_of(
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
    pam_claim: Annotated[str, outputs.one_of("NoCert")] | UnsetType = UNSET
    expansions: outputs.Whole
    predicted_expansions: PredictionJson | UnsetType = UNSET
    estimated_expansions: EstimateJson | UnsetType = UNSET
    leaves: outputs.Whole
    materialised: outputs.Whole | UnsetType = UNSET
    tail_lse: outputs.Decimal | UnsetType = UNSET
    frontier_key: outputs.Decimal | UnsetType = UNSET
    gap: outputs.Decimal | UnsetType = UNSET
    guards: list[str]
    seed: outputs.Hex32
    ledger_head: outputs.Hex32 | UnsetType = UNSET
    price_spent: outputs.Whole | UnsetType = UNSET
    latency_ms: outputs.Whole | UnsetType = UNSET
    epsilon_used: outputs.Decimal | UnsetType = UNSET
    router_rdp_eps: outputs.Decimal | UnsetType = UNSET
    alpha_selected: outputs.Order | UnsetType = UNSET
    eps_delta: outputs.EpsilonDeltaJson | UnsetType = UNSET


class OpeningOutput(outputs.Output, frozen=True, kw_only=True):
    """The opening digest of a run, before it is made."""

    document: ClassVar[str] = "run"
    opening: outputs.Hex32


class EpsilonOutput(outputs.Output, frozen=True, kw_only=True):
    """The composition of a list of atoms."""

    document: ClassVar[str] = "epsilon"
    epsilon: outputs.Decimal
    delta: outputs.Decimal
    alpha: outputs.Order
    rdp: outputs.Decimal
    atoms: outputs.Whole
    orders: list[Annotated[list[outputs.Decimal], Meta(min_length=2, max_length=2)]]


class MadeCallJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A call that an execution made."""

    seq: outputs.Whole
    call: str
    outcome: Annotated[str, outputs.one_of("done", "failed", "unknown", "open")]
    observed: dict[str, str] | UnsetType = UNSET
    model: str | UnsetType = UNSET


class SearchClaimJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The claim of one search of an execution."""

    claim_type: outputs.ClaimType
    after: list[str]


class BudgetJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """What an execution spent, and what is left."""

    price_spent: outputs.Decimal
    latency_ms: outputs.Decimal
    epsilon_used: outputs.Decimal
    router_rdp_eps: outputs.Decimal | UnsetType = UNSET
    alpha_selected: outputs.Order | UnsetType = UNSET
    eps_delta: outputs.EpsilonDeltaJson | UnsetType = UNSET
    left: dict[str, outputs.Decimal]


class ExecOutput(outputs.Output, frozen=True, kw_only=True):
    """An execution: its calls, and why it stopped."""

    document: ClassVar[str] = "exec"
    stop: Annotated[
        str,
        outputs.one_of(
            "finished", "unknown", "unforeseen", "failed", "refused", "budget", "no_plan"
        ),
    ]
    reason: str
    calls: list[MadeCallJson]
    ledger_head: outputs.Hex32
    searches: list[SearchClaimJson]
    budget: Annotated[dict[str, Any], outputs.like(BudgetJson)] | UnsetType = UNSET


class BatchOutput(outputs.Output, frozen=True, kw_only=True):
    """A batch without shards."""

    document: ClassVar[str] = "batch"
    runs: outputs.Whole
    certified: outputs.Whole
    out: str


class ShardedBatchOutput(BatchOutput, frozen=True, kw_only=True):
    """A batch in shards."""

    parts: outputs.Whole
    made: outputs.Whole
    kept: outputs.Whole
    redone: outputs.Whole
    started_ms: outputs.Whole


class BatchFindingJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A ledger or a part of a batch that is not valid."""

    run: outputs.Whole
    line: outputs.Whole
    code: outputs.CodeText
    file: str
    field: str
    expected: str
    found: str


class BatchValidationOutput(outputs.Output, frozen=True, kw_only=True):
    """The validation of every ledger of a batch."""

    document: ClassVar[str] = "batch"
    verdict: Annotated[str, outputs.one_of("VALID", "INVALID", "INCOMPLETE")]
    out: str
    runs: outputs.Whole
    verdicts: dict[str, outputs.Whole]
    claims: dict[str, outputs.Whole]
    findings: list[BatchFindingJson]
    more_findings: outputs.Whole


class DemoOutput(outputs.Output, frozen=True, kw_only=True):
    """The measurements of the demonstration."""

    document: ClassVar[str] = "demo"
    modes: list[dict[str, outputs.Cell]]
    queries: list[dict[str, outputs.Cell]]
    valid: bool


class PaperClaimJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A claim of the paper beside what was measured."""

    claim: str
    found: str
    verdict: Annotated[
        str, outputs.one_of("holds", "does not hold", "differs because", "not in the paper")
    ]
    because: str


class DifferingCellJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A cell of a table that differs from earlier results."""

    table: str
    row: outputs.Whole
    column: str
    here: str
    there: str


class ExperimentsOutput(outputs.Output, frozen=True, kw_only=True):
    """The outcome of experiments."""

    document: ClassVar[str] = "experiments"
    size: Annotated[str, outputs.one_of("quick", "full")]
    findings: dict[str, list[PaperClaimJson]]
    differing: list[DifferingCellJson] | UnsetType = UNSET


class SecondsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The time that an experiment takes, by size."""

    quick: outputs.Whole
    full: outputs.Whole


class ExperimentJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An experiment."""

    name: str
    title: str
    paper: list[str]
    seconds: SecondsJson


class ExperimentListOutput(outputs.Output, frozen=True, kw_only=True):
    """The list of experiments."""

    document: ClassVar[str] = "experiments"
    experiments: list[ExperimentJson]


class ReplayedCallJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A recorded call that would have been refused; its values are digests unless asked for."""

    session: str
    call: str
    position: outputs.Placed


class ReplayedStatementJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A statement, or another reason, that refuses recorded calls."""

    text: str
    code: outputs.CodeText
    count: outputs.Placed
    examples: list[ReplayedCallJson]


class MinedRelationJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A relation that held in every recorded session: a statement, or a comment."""

    text: str
    calls: outputs.Placed
    written: bool


class MineOutput(outputs.Output, frozen=True, kw_only=True):
    """A first grammar out of recorded sessions, and how many of them it admits."""

    document: ClassVar[str] = "mine"
    sessions: outputs.Whole
    calls: outputs.Whole
    admitted: outputs.Whole
    held_out: outputs.Whole | None
    relations: list[MinedRelationJson]
    grammar: str


class ReplayOutput(outputs.Output, frozen=True, kw_only=True):
    """What an artifact would have refused in recorded sessions."""

    document: ClassVar[str] = "replay"
    sessions: outputs.Whole
    calls: outputs.Whole
    refused: outputs.Whole
    statements: list[ReplayedStatementJson]
