"""Documents of runs: run, exec, batch, epsilon, demo, experiments."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from tcc import outputs


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
    """The result of a run, and its claim."""

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
    """The amounts that an execution spent, and the remaining amounts."""

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
            "finished", "unknown", "unforeseen", "failed", "refused", "pending", "budget", "no_plan"
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
    """A claim of the paper, and the measured result."""

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
