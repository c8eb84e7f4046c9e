"""Documents that judge or identify: check, validate, session, sign, verify, pin, account, error.

The documents of a checked artifact and a validated ledger are made by `tcc_certs.verbs`, which runs
without msgspec; their declarations give schemas alone.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType, field

from tcc.outputs import (
    ClaimType,
    CodeText,
    Decimal,
    DiagnosticJson,
    DocumentPart,
    EnforcedJson,
    EpsilonDeltaJson,
    Hex16,
    Hex32,
    LineFindingJson,
    Order,
    Output,
    RuleFindingJson,
    Whole,
    like,
    one_of,
)

Judged = Annotated[str, one_of("VALID", "INVALID", "DECLINED")]
Replayed = Annotated[str, one_of("VALID", "INVALID", "DECLINED", "INCOMPLETE")]
SessionClaim = Annotated[str, one_of("Conformant", "ConformantPrefix", "NoClaim")]
NotRead = Annotated[str, one_of("")]
NothingJson = Annotated[dict[str, Any], Meta(max_length=0)]


class CheckOutput(Output, frozen=True, kw_only=True):
    """The verdict on one artifact."""

    document: ClassVar[str] = "check"
    verdict: Judged
    findings: list[RuleFindingJson]
    checked: dict[str, Whole]
    digest: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
    enforced: Annotated[Any, like(EnforcedJson, NothingJson)]


class CheckedQuestionJson(DocumentPart, frozen=True, kw_only=True):
    """The question of a proof, as far as it could be read."""

    kind: Annotated[str, one_of("statement", "reachable", "implies", "finishable")] | UnsetType = (
        UNSET
    )
    text: str | UnsetType = UNSET


class CheckedProofOutput(Output, frozen=True, kw_only=True):
    """The verdict on the proof of an exact question."""

    document: ClassVar[str] = "check"
    verdict: Judged
    question: CheckedQuestionJson
    proof: Annotated[str, one_of("proved", "refuted", "")]
    findings: list[RuleFindingJson]
    checked: dict[str, Whole]


class CheckedArtifactJson(DocumentPart, frozen=True, kw_only=True):
    """The verdict on one of several artifacts."""

    artifact: str
    verdict: Judged
    findings: list[RuleFindingJson]
    checked: dict[str, Whole]
    digest: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
    enforced: Annotated[Any, like(EnforcedJson, NothingJson)]


class CheckedFolderOutput(Output, frozen=True, kw_only=True):
    """The verdicts on several artifacts, and on their pins."""

    document: ClassVar[str] = "check"
    verdict: Judged
    artifacts: list[Annotated[dict[str, Any], like(CheckedArtifactJson)]]
    findings: list[DiagnosticJson]


class KappaJson(DocumentPart, frozen=True, kw_only=True):
    """Kappa of the nodes, a diagnostic (ledger.md, section 10)."""

    nodes: Whole
    tightened: Whole
    mean: Decimal


class PrivacyJson(DocumentPart, frozen=True, kw_only=True):
    """The privacy of the atoms that were spent."""

    privacy_scope: Annotated[str, one_of("post_processing_only")]
    atoms: Whole
    router_rdp_eps: Decimal
    alpha_selected: Order
    eps_delta: EpsilonDeltaJson


class RawPrivacyJson(DocumentPart, frozen=True, kw_only=True):
    """The scope of a run that depends on its raw input."""

    privacy_scope: Annotated[str, one_of("raw_input_dependent")]


class RunValidationOutput(Output, frozen=True, kw_only=True):
    """The verdict on the ledger of a run."""

    document: ClassVar[str] = "validate"
    verdict: Replayed
    claim_upheld: bool
    findings: list[LineFindingJson]
    checked: dict[str, Whole]
    ledger_head: Hex32
    summary: str
    # Empty for a ledger that was not read as far as its claim.
    claim_type: Annotated[Any, like(ClaimType, NotRead)]
    kappa: KappaJson
    after: list[str] | UnsetType = UNSET
    privacy: Annotated[Any, like(PrivacyJson, RawPrivacyJson)] | UnsetType = UNSET


class SessionValidationOutput(Output, frozen=True, kw_only=True):
    """The verdict on the ledger of a session."""

    document: ClassVar[str] = "validate"
    verdict: Replayed
    claim_upheld: bool
    findings: list[LineFindingJson]
    checked: dict[str, Whole]
    ledger_head: Hex32
    summary: str
    claim_type: SessionClaim
    asserted: list[str]
    monitors: list[str]


class LockedPinJson(DocumentPart, frozen=True, kw_only=True):
    """A pinned artifact."""

    digest: Hex32
    grammar: str
    version: str
    source: str | UnsetType = UNSET
    source_core: Hex32 | UnsetType = UNSET


class PinOutput(Output, frozen=True, kw_only=True):
    """The pins of a lock file."""

    document: ClassVar[str] = "pin"
    lock: str
    artifacts: dict[str, Annotated[dict[str, str], like(LockedPinJson)]]


class AdapterIdOutput(Output, frozen=True, kw_only=True):
    """The identity of one adapter."""

    document: ClassVar[str] = "adapters"
    folder: str
    adapter_id: Hex32


class AdapterJson(DocumentPart, frozen=True, kw_only=True):
    """An adapter of the registry."""

    name: str
    tier: str
    adapter_id: Hex32
    dp_cert_id: str
    eps_train: Decimal
    delta_train: Decimal


class AdaptersOutput(Output, frozen=True, kw_only=True):
    """The adapters of a registry."""

    document: ClassVar[str] = "adapters"
    adapters: list[Annotated[dict[str, Any], like(AdapterJson)]]


class AmountsJson(DocumentPart, frozen=True, kw_only=True):
    """Amounts of an account."""

    price: Decimal
    latency_ms: Decimal
    epsilon: Decimal


class CappedAmountsJson(DocumentPart, frozen=True, kw_only=True):
    """Amounts of an account, of what is capped alone."""

    price: Decimal | UnsetType = UNSET
    latency_ms: Decimal | UnsetType = UNSET
    epsilon: Decimal | UnsetType = UNSET


class AccountOutput(Output, frozen=True, kw_only=True):
    """An account: caps, what was spent, and what is reserved."""

    document: ClassVar[str] = "account"
    id: Hex32
    lease_ms: Whole
    caps: Annotated[dict[str, str], like(CappedAmountsJson)]
    spent: Annotated[dict[str, str], like(AmountsJson)]
    held: Annotated[dict[str, str], like(AmountsJson)]
    left: Annotated[dict[str, str], like(CappedAmountsJson)]
    reservations: dict[str, Whole]


class ShownArgumentsJson(DocumentPart, frozen=True, kw_only=True):
    """The arguments that a session's ledger shows."""

    show: list[str]


class GivenJson(DocumentPart, frozen=True, kw_only=True):
    """An attribute that a session was given, as far as its ledger has it."""

    digest: Hex32
    type: str | UnsetType = UNSET
    value: str | UnsetType = UNSET
    of: list[Any] | UnsetType = UNSET
    like: str | UnsetType = UNSET


class SessionHeaderJson(DocumentPart, frozen=True, kw_only=True):
    """The head of a session's ledger."""

    schema: str
    session_id: str
    started_ms: Whole
    nonce: Hex16
    artifact: Hex32
    grammar: str
    grammar_version: str
    root_state: Hex32
    monitors: list[str]
    arguments: ShownArgumentsJson
    key_commitment: Hex32
    constants: list[Hex32] | UnsetType = UNSET
    given: dict[str, GivenJson] | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    principal: Hex32 | UnsetType = UNSET
    shadow: bool | UnsetType = UNSET
    mac: Hex16 | UnsetType = UNSET


class SessionEventJson(DocumentPart, frozen=True, kw_only=True):
    """An event of a session, with the monitors' states before and after."""

    kind: Annotated[str, one_of("call", "refusal", "resolve", "budget", "asked", "end")]
    seq: Whole | UnsetType = UNSET
    text: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    ms: Whole | UnsetType = UNSET
    why: str | UnsetType = UNSET
    before: list[int]
    after: list[int]
    opened: dict[str, str] | UnsetType = UNSET
    observed: dict[str, str] | UnsetType = UNSET
    model: str | UnsetType = UNSET
    took: dict[str, Decimal] | UnsetType = UNSET
    who: str | UnsetType = UNSET
    at_ms: Whole | UnsetType = UNSET
    learned: dict[str, str] | UnsetType = UNSET


class SessionOutput(Output, frozen=True, kw_only=True):
    """A session: its events, and what may come next."""

    document: ClassVar[str] = "session"
    session: Annotated[dict[str, Any], like(SessionHeaderJson)]
    events: list[Annotated[dict[str, Any], like(SessionEventJson)]]
    states: list[int]
    may_finish: bool
    ended: bool
    allowed_next: list[str]
    learned: dict[str, str] | UnsetType = UNSET
    claim_type: SessionClaim
    ledger_head: Hex32
    summary: str


class StoredSessionJson(DocumentPart, frozen=True, kw_only=True):
    """A session of a store."""

    id: str
    started_ms: Whole
    calls: Whole
    unknown: Whole
    state: Annotated[str, one_of("live", "spent", "ended", "abandoned")]


class SessionListOutput(Output, frozen=True, kw_only=True):
    """The sessions of a store, oldest first."""

    document: ClassVar[str] = "session"
    sessions: list[StoredSessionJson]


class ReportOutput(Output, frozen=True, kw_only=True):
    """The page that was written, and the verdict on it."""

    document: ClassVar[str] = "report"
    kind: Annotated[str, one_of("artifact", "run", "session")]
    verdict: Replayed
    summary: str
    output: str


class SubjectDigestJson(DocumentPart, frozen=True, kw_only=True):
    """The digests of a file."""

    blake3: str
    sha256: str


class SubjectJson(DocumentPart, frozen=True, kw_only=True):
    """The file that a statement is about."""

    name: str
    digest: SubjectDigestJson


# What a key's owner signed is theirs: of the predicate no more is promised than its kind.
_PREDICATE = {
    "type": "object",
    "properties": {"kind": {"enum": ["artifact", "ledger", "session"]}},
    "required": ["kind"],
}


class SignedStatementJson(DocumentPart, frozen=True, kw_only=True):
    """An in-toto Statement v1."""

    type_: Annotated[str, one_of("https://in-toto.io/Statement/v1")] = field(name="_type")
    subject: Annotated[list[SubjectJson], Meta(min_length=1, max_length=1)]
    predicate_type: Annotated[str, one_of("urn:tcc:predicate:1.0")] = field(name="predicateType")
    predicate: Annotated[Any, Meta(extra_json_schema=_PREDICATE)]


class SignOutput(Output, frozen=True, kw_only=True):
    """A statement that was signed."""

    document: ClassVar[str] = "sign"
    envelope: str
    keyid: Hex32
    statement: Annotated[dict[str, Any], like(SignedStatementJson)]


class NewKeyOutput(Output, frozen=True, kw_only=True):
    """A key pair that was made."""

    document: ClassVar[str] = "sign"
    private: str
    public: str
    keyid: Hex32


class VerifyOutput(Output, frozen=True, kw_only=True):
    """The verdict on a signed statement."""

    document: ClassVar[str] = "verify"
    verdict: Annotated[str, one_of("VALID", "INVALID")]
    findings: list[DiagnosticJson]
    keyid: Hex32 | None
    file: str | None
    statement: Annotated[dict[str, Any], like(SignedStatementJson)] | None


class ExplainOutput(Output, frozen=True, kw_only=True):
    """The explanation of one code."""

    document: ClassVar[str] = "explain"
    code: CodeText
    text: str


class CodeTitleJson(DocumentPart, frozen=True, kw_only=True):
    """A code and its title."""

    code: CodeText
    title: str


class CodeListOutput(Output, frozen=True, kw_only=True):
    """All codes."""

    document: ClassVar[str] = "explain"
    codes: list[CodeTitleJson]


class ErrorOutput(Output, frozen=True, kw_only=True):
    """What a command prints that cannot do its work."""

    document: ClassVar[str] = "error"
    error: str
    findings: list[Annotated[Any, like(RuleFindingJson, LineFindingJson)]] | UnsetType = UNSET
    diagnostics: list[DiagnosticJson] | UnsetType = UNSET


class SchemaOutput(Output, frozen=True, kw_only=True):
    """The JSON Schemas of documents."""

    document: ClassVar[str] = "schema"
    schemas: dict[str, Annotated[dict[str, Any], Meta(extra_json_schema={"opaque": True})]]
