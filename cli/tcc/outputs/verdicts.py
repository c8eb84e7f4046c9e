"""Documents that judge or identify: check, validate, session, sign, verify, pin, account, error.

`tcc_certs.verbs`, which runs without msgspec, creates the documents of checked artifacts and
validated ledgers.  Their declarations here only give schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType, field

from tcc import outputs

Judged = Annotated[str, outputs.one_of("VALID", "INVALID", "DECLINED")]
Replayed = Annotated[str, outputs.one_of("VALID", "INVALID", "DECLINED", "INCOMPLETE")]
SessionClaim = Annotated[str, outputs.one_of("Conformant", "ConformantPrefix", "NoClaim")]
NotRead = Annotated[str, outputs.one_of("")]
NothingJson = Annotated[dict[str, Any], Meta(max_length=0)]


class CheckOutput(outputs.Output, frozen=True, kw_only=True):
    """The verdict on one artifact."""

    document: ClassVar[str] = "check"
    verdict: Judged
    findings: list[outputs.RuleFindingJson]
    checked: dict[str, outputs.Whole]
    digest: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
    enforced: Annotated[Any, outputs.like(outputs.EnforcedJson, NothingJson)]
    statements: list[outputs.ListedStatementJson]


class CheckedArtifactJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The verdict on an artifact, if several are checked.

    HOLDS: this artifact passes, but the command fails because of another one. INVALID without
    findings: the certificates hold, but the artifact or its source differs from its pin.
    """

    artifact: str
    verdict: Annotated[str, outputs.one_of("VALID", "HOLDS", "INVALID", "DECLINED")]
    findings: list[outputs.RuleFindingJson]
    checked: dict[str, outputs.Whole]
    digest: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
    enforced: Annotated[Any, outputs.like(outputs.EnforcedJson, NothingJson)]
    statements: list[outputs.ListedStatementJson]


class CheckedFolderOutput(outputs.Output, frozen=True, kw_only=True):
    """The verdicts on several artifacts, and on their pins."""

    document: ClassVar[str] = "check"
    verdict: Judged
    artifacts: list[Annotated[dict[str, Any], outputs.like(CheckedArtifactJson)]]
    findings: list[outputs.DiagnosticJson]


class KappaJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Kappa of the nodes, a diagnostic (ledger.md, section 10)."""

    nodes: outputs.Whole
    tightened: outputs.Whole
    mean: outputs.Decimal


class PrivacyJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The privacy of the atoms that were spent."""

    privacy_scope: Annotated[str, outputs.one_of("post_processing_only")]
    atoms: outputs.Whole
    router_rdp_eps: outputs.Decimal
    alpha_selected: outputs.Order
    eps_delta: outputs.EpsilonDeltaJson


class RawPrivacyJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The scope of a run that depends on its raw input."""

    privacy_scope: Annotated[str, outputs.one_of("raw_input_dependent")]


class RunValidationOutput(outputs.Output, frozen=True, kw_only=True):
    """The verdict on the ledger of a run."""

    document: ClassVar[str] = "validate"
    verdict: Replayed
    claim_upheld: bool
    findings: list[outputs.LineFindingJson]
    checked: dict[str, outputs.Whole]
    ledger_head: outputs.Hex32
    summary: str
    # Empty if the ledger was not read as far as its claim.
    claim_type: Annotated[Any, outputs.like(outputs.ClaimType, NotRead)]
    kappa: KappaJson
    after: list[str] | UnsetType = UNSET
    privacy: Annotated[Any, outputs.like(PrivacyJson, RawPrivacyJson)] | UnsetType = UNSET


class SessionValidationOutput(outputs.Output, frozen=True, kw_only=True):
    """The verdict on the ledger of a session."""

    document: ClassVar[str] = "validate"
    verdict: Replayed
    claim_upheld: bool
    findings: list[outputs.LineFindingJson]
    checked: dict[str, outputs.Whole]
    ledger_head: outputs.Hex32
    summary: str
    claim_type: SessionClaim
    asserted: list[str]
    statements: list[outputs.ListedStatementJson]
    # The number of lines of each file; findings count lines through all files.
    lines: list[outputs.Whole]


class LockedPinJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A pinned artifact."""

    digest: outputs.Hex32
    grammar: str
    version: str
    source: str | UnsetType = UNSET
    source_core: outputs.Hex32 | UnsetType = UNSET


class PinOutput(outputs.Output, frozen=True, kw_only=True):
    """The pins of a lock file."""

    document: ClassVar[str] = "pin"
    lock: str
    artifacts: dict[str, Annotated[dict[str, str], outputs.like(LockedPinJson)]]


class AdapterIdOutput(outputs.Output, frozen=True, kw_only=True):
    """The identity of one adapter."""

    document: ClassVar[str] = "adapters"
    folder: str
    adapter_id: outputs.Hex32


class AdapterJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An adapter of the registry."""

    name: str
    tier: str
    adapter_id: outputs.Hex32
    dp_cert_id: str
    eps_train: outputs.Decimal
    delta_train: outputs.Decimal


class AdaptersOutput(outputs.Output, frozen=True, kw_only=True):
    """The adapters of a registry."""

    document: ClassVar[str] = "adapters"
    adapters: list[Annotated[dict[str, Any], outputs.like(AdapterJson)]]


class AmountsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Amounts of an account."""

    price: outputs.Decimal
    latency_ms: outputs.Decimal
    epsilon: outputs.Decimal


class CappedAmountsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """Amounts of an account that have a cap."""

    price: outputs.Decimal | UnsetType = UNSET
    latency_ms: outputs.Decimal | UnsetType = UNSET
    epsilon: outputs.Decimal | UnsetType = UNSET


class AccountOutput(outputs.Output, frozen=True, kw_only=True):
    """An account: its caps, the spent amounts and the reserved amounts."""

    document: ClassVar[str] = "account"
    id: outputs.Hex32
    lease_ms: outputs.Whole
    caps: Annotated[dict[str, str], outputs.like(CappedAmountsJson)]
    spent: Annotated[dict[str, str], outputs.like(AmountsJson)]
    held: Annotated[dict[str, str], outputs.like(AmountsJson)]
    left: Annotated[dict[str, str], outputs.like(CappedAmountsJson)]
    reservations: dict[str, outputs.Whole]


class ShownArgumentsJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The arguments that a session's ledger shows."""

    show: list[str]


class GivenJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An attribute that a session was given, as far as its ledger has it."""

    digest: outputs.Hex32
    type: str | UnsetType = UNSET
    value: str | UnsetType = UNSET
    of: list[Any] | UnsetType = UNSET
    like: str | UnsetType = UNSET


class SessionHeaderJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The head of a session's ledger."""

    schema: str
    session_id: str
    started_ms: outputs.Whole
    nonce: outputs.Hex16
    artifact: outputs.Hex32
    grammar: str
    grammar_version: str
    root_state: outputs.Hex32
    statements: list[str]
    arguments: ShownArgumentsJson
    key_commitment: outputs.Hex32
    constants: list[outputs.Hex32] | UnsetType = UNSET
    given: dict[str, GivenJson] | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    principal: outputs.Hex32 | UnsetType = UNSET
    shadow: bool | UnsetType = UNSET
    mac: outputs.Hex16 | UnsetType = UNSET


class SessionEventJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An event of a session, with the states that it held before and after."""

    kind: Annotated[
        str,
        outputs.one_of("call", "refusal", "resolve", "budget", "asked", "ask", "approval", "end"),
    ]
    seq: outputs.Whole | UnsetType = UNSET
    text: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    ms: outputs.Whole | UnsetType = UNSET
    why: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    made: bool | UnsetType = UNSET
    # For a refusal: null if no statement refused, or if its author gave no reason.
    statement: outputs.Whole | UnsetType | None = UNSET
    because: str | UnsetType | None = UNSET
    before: list[int]
    after: list[int]
    opened: dict[str, str] | UnsetType = UNSET
    observed: dict[str, str] | UnsetType = UNSET
    model: str | UnsetType = UNSET
    took: dict[str, outputs.Decimal] | UnsetType = UNSET
    who: str | UnsetType = UNSET
    at_ms: outputs.Whole | UnsetType = UNSET
    learned: dict[str, str] | UnsetType = UNSET


class SessionOutput(outputs.Output, frozen=True, kw_only=True):
    """A session: its events, and what may come next."""

    document: ClassVar[str] = "session"
    session: Annotated[dict[str, Any], outputs.like(SessionHeaderJson)]
    events: list[Annotated[dict[str, Any], outputs.like(SessionEventJson)]]
    states: list[int]
    may_finish: bool
    ended: bool
    allowed_next: list[str]
    learned: dict[str, str] | UnsetType = UNSET
    claim_type: SessionClaim
    ledger_head: outputs.Hex32
    summary: str


class StoredSessionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A session of a store."""

    id: str
    started_ms: outputs.Whole
    calls: outputs.Whole
    unknown: outputs.Whole
    pending: outputs.Whole
    state: Annotated[str, outputs.one_of("live", "spent", "ended", "abandoned")]


class SessionListOutput(outputs.Output, frozen=True, kw_only=True):
    """The sessions of a store, oldest first."""

    document: ClassVar[str] = "session"
    sessions: list[StoredSessionJson]


class PendingQuestionJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An open question to a person.

    `arguments` has texts of the open arguments whose values the ledger has, and `hidden` the names
    of the others.  The listed arguments are in `call`.
    """

    id: str
    who: str
    text: str
    expires_ms: outputs.Whole
    asked_ms: outputs.Whole
    tool: str
    call: str
    arguments: dict[str, str]
    hidden: list[str]
    session: str
    ledger: str


class PendingListOutput(outputs.Output, frozen=True, kw_only=True):
    """The open questions of a ledger or of a folder of ledgers."""

    document: ClassVar[str] = "session"
    pending: list[PendingQuestionJson]


class ReportOutput(outputs.Output, frozen=True, kw_only=True):
    """The page that was written, and the verdict on it."""

    document: ClassVar[str] = "report"
    kind: Annotated[str, outputs.one_of("artifact", "run", "session")]
    verdict: Replayed
    summary: str
    output: str


class SubjectDigestJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The digests of a file."""

    blake3: str
    sha256: str


class SubjectJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """The file that a statement is about."""

    name: str
    digest: SubjectDigestJson


# The signer decides what the predicate contains, so the schema promises only its kind.
_PREDICATE = {
    "type": "object",
    "properties": {"kind": {"enum": ["artifact", "ledger", "session"]}},
    "required": ["kind"],
}


class SignedStatementJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """An in-toto Statement v1."""

    type_: Annotated[str, outputs.one_of("https://in-toto.io/Statement/v1")] = field(name="_type")
    subject: Annotated[list[SubjectJson], Meta(min_length=1, max_length=1)]
    predicate_type: Annotated[str, outputs.one_of("urn:tcc:predicate:1.0")] = field(
        name="predicateType"
    )
    predicate: Annotated[Any, Meta(extra_json_schema=_PREDICATE)]


class SignOutput(outputs.Output, frozen=True, kw_only=True):
    """A statement that was signed."""

    document: ClassVar[str] = "sign"
    envelope: str
    keyid: outputs.Hex32
    statement: Annotated[dict[str, Any], outputs.like(SignedStatementJson)]


class NewKeyOutput(outputs.Output, frozen=True, kw_only=True):
    """A key pair that was made."""

    document: ClassVar[str] = "sign"
    private: str
    public: str
    keyid: outputs.Hex32


class VerifyOutput(outputs.Output, frozen=True, kw_only=True):
    """The verdict on a signed statement."""

    document: ClassVar[str] = "verify"
    verdict: Annotated[str, outputs.one_of("VALID", "INVALID")]
    findings: list[outputs.DiagnosticJson]
    keyid: outputs.Hex32 | None
    file: str | None
    statement: Annotated[dict[str, Any], outputs.like(SignedStatementJson)] | None


class ExplainOutput(outputs.Output, frozen=True, kw_only=True):
    """The explanation of one code."""

    document: ClassVar[str] = "explain"
    code: outputs.CodeText
    text: str


class CodeTitleJson(outputs.DocumentPart, frozen=True, kw_only=True):
    """A code and its title."""

    code: outputs.CodeText
    title: str


class CodeListOutput(outputs.Output, frozen=True, kw_only=True):
    """All codes."""

    document: ClassVar[str] = "explain"
    codes: list[CodeTitleJson]


class ErrorOutput(outputs.Output, frozen=True, kw_only=True):
    """The document of a command that fails."""

    document: ClassVar[str] = "error"
    error: str
    findings: (
        list[Annotated[Any, outputs.like(outputs.RuleFindingJson, outputs.LineFindingJson)]]
        | UnsetType
    ) = UNSET
    diagnostics: list[outputs.DiagnosticJson] | UnsetType = UNSET


class SchemaOutput(outputs.Output, frozen=True, kw_only=True):
    """The JSON Schemas of documents."""

    document: ClassVar[str] = "schema"
    schemas: dict[str, Annotated[dict[str, Any], Meta(extra_json_schema={"opaque": True})]]
