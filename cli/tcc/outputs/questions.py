"""Documents of questions about plans: why, prove, diff, cheapest, sample, mine, replay."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from tcc import outputs


class WhyOutput(outputs.Output, frozen=True, kw_only=True):
    """The answer to the question whether calls are a plan, with the reasons if they are not."""

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


class QuestionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A question about all sessions."""

    kind: Annotated[str, outputs.one_of("statement", "reachable", "implies", "finishable")]
    text: str | UnsetType = UNSET


class SessionCallJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A call of a session, as `tcc replay` reads it; the last call has no outcome."""

    tool: str
    arguments: dict[str, Any]
    outcome: Annotated[str, outputs.one_of("done", "failed", "unknown", "answered")] | UnsetType = (
        UNSET
    )
    answer: Any = UNSET
    at_ms: outputs.Whole | UnsetType = UNSET


class WhySessionsOutput(outputs.Output, frozen=True, kw_only=True):
    """The answer to a question about all sessions, with the reasons if no session is possible."""

    document: ClassVar[str] = "why"
    verdict: Annotated[str, outputs.one_of("reachable", "unreachable", "undecided")]
    reachable: str | UnsetType = UNSET
    session: list[SessionCallJson] | UnsetType = UNSET
    given: dict[str, Any] | UnsetType = UNSET
    because: list[outputs.StatementJson]
    missing: str | UnsetType = UNSET


class ProveOutput(outputs.Output, frozen=True, kw_only=True):
    """The answer to a question about all sessions."""

    document: ClassVar[str] = "prove"
    question: QuestionJson
    verdict: Annotated[
        str, outputs.one_of("proved", "refuted", "reachable", "unreachable", "undecided")
    ]
    session: list[SessionCallJson] | UnsetType = UNSET
    given: dict[str, Any] | UnsetType = UNSET
    used: list[str]
    rounds: outputs.Whole
    states: outputs.Whole
    seconds: float
    missing: str | UnsetType = UNSET


class WitnessesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Plans that only one side has."""

    shortest: list[str] | None
    cheapest: list[str] | None


class BothWitnessesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Plans that were added, and plans that were removed."""

    added: WitnessesJson
    removed: WitnessesJson


class BothReasonsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The statements that caused added and removed plans."""

    added: list[outputs.StatementJson]
    removed: list[outputs.StatementJson]


class ChangedJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A statement or a field that is on both sides, but different."""

    name: str
    old: str
    new: str
    sense: outputs.Sense


class ChangesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Changes of statements, or of fields."""

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


class OpenQuestionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A question about sessions that stayed open; without a statement, it is about plans."""

    statement: str | None
    missing: str


class SessionChangesJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The comparison of sessions, with an added and a removed session as examples.

    The gate of NEW allows `added`, and the gate of OLD refuses it. `added_given` has the attributes
    of that session, and `added_because` the statement that refuses it. `added_ends` says whether
    OLD refuses only its end. `removed` and its members are the reverse.
    """

    verdict: Annotated[str, outputs.one_of("equal", "wider", "narrower", "incomparable")] | None
    added: list[SessionCallJson] | None
    added_given: dict[str, Any] | UnsetType = UNSET
    added_ends: bool | UnsetType = UNSET
    added_because: str | UnsetType = UNSET
    removed: list[SessionCallJson] | None
    removed_given: dict[str, Any] | UnsetType = UNSET
    removed_ends: bool | UnsetType = UNSET
    removed_because: str | UnsetType = UNSET
    open: list[OpenQuestionJson]
    missing: str | UnsetType = UNSET


class DiffOutput(outputs.Output, frozen=True, kw_only=True):
    """The difference of two grammars or artifacts."""

    document: ClassVar[str] = "diff"
    verdict: outputs.Sense | None
    plans: Annotated[str, outputs.one_of("equal", "narrower", "wider", "incomparable")] | None
    counts: outputs.CountKind
    added: outputs.Digits | None
    removed: outputs.Digits | None
    common: outputs.Digits | None
    witnesses: BothWitnessesJson
    because: BothReasonsJson
    calls: CallChangesJson | None
    statements: ChangesJson
    fields: ChangesJson
    members: list[MemberChangeJson]
    amounts: list[CallAmountsJson] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    sessions: SessionChangesJson
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
    """The calls that an artifact would have refused in recorded sessions.

    `refused_sessions` is the number of sessions with a refused call. `counted_per_session` lists
    the limits across sessions, because the replay counts each session separately.
    """

    document: ClassVar[str] = "replay"
    sessions: outputs.Whole
    calls: outputs.Whole
    refused: outputs.Whole
    refused_sessions: outputs.Whole
    statements: list[ReplayedStatementJson]
    counted_per_session: list[str]
