"""``validate L --artifact A``: check the ledger of a run or session against its artifact.

The first line of the ledger tells which of the two it is.  Source: docs/spec/ledger.md and
docs/spec/session.md.  Cost: the cost of :func:`tcc_certs.replay.validate` or
:func:`tcc_certs.session.validate`.  The ledger is read in chunks, so memory never has all of it.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tcc_certs.formats.codec import Json
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.verbs.answer import VerbResult, misused, regular

if TYPE_CHECKING:
    from tcc_certs.replay import Finding, Validation
    from tcc_certs.session import SessionValidation

VERB = "validate"
_CHUNK = 1 << 20
_OF_RUNS = ("seed", "opening_salt", "opening", "beacon", "nonce", "counts")
_OF_SESSIONS = ("key", "parent", "parent_artifact")


class LedgerInput:
    """The bytes of a ledger file in chunks; each iteration begins at the start of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as handle:
            while chunk := handle.read(_CHUNK):
                yield chunk


def is_session(ledger: bytes | Iterable[bytes]) -> bool:
    """Return whether the first line of a ledger says that it is the ledger of a session.

    Args:
        ledger: all bytes, or chunks of them; only the chunks of the first line are read.
    """
    first = b""
    for chunk in (ledger,) if isinstance(ledger, bytes) else ledger:
        first += chunk[: MAX_LINE_BYTES - len(first)]
        if b"\n" in chunk or len(first) >= MAX_LINE_BYTES:
            break
    # inside a JSON string the quotes would be escaped
    return b'"schema":"tcc.session/' in first.partition(b"\n")[0]


def add(parser: ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("ledger", type=Path, help="the ledger of a run or of a session")
    parser.add_argument(
        "more",
        type=Path,
        nargs="*",
        help="of a session: the files that continue it, in order (else LEDGER.1, LEDGER.2 ..)",
    )
    parser.add_argument(
        "--artifact", type=Path, required=True, action="append",
        help="the artifact that was run; repeatable, if the policy of a session changed",
    )  # fmt: skip
    parser.add_argument("--pin", type=_digest, metavar="HEX64", help="digest of that artifact")
    parser.add_argument(
        "--seed", type=_digest, metavar="HEX64", help="the seed, where the ledger withholds it"
    )
    parser.add_argument(
        "--opening-salt", type=_digest, metavar="HEX64", help="of the seed's commitment"
    )
    parser.add_argument(
        "--opening",
        type=_digest,
        metavar="HEX64",
        help="the opening that was handed out before beacon and nonce were known",
    )
    parser.add_argument("--beacon", type=_octets, metavar="HEX", help="the public randomness")
    parser.add_argument("--nonce", type=_octets, metavar="HEX", help="the client's own nonce")
    parser.add_argument(
        "--counts", type=Path, help="an artifact with exact counts of the same core, for kappa"
    )
    parser.add_argument("--key", type=_digest, metavar="HEX64", help="of a session's digests")
    parser.add_argument(
        "--parent", type=Path, help="the ledger of the session that this one is a part of"
    )
    parser.add_argument(
        "--parent-artifact", type=Path, action="append",
        help="the artifact of that session; repeatable, if its policy changed",
    )  # fmt: skip


def run(arguments: Namespace) -> VerbResult:
    """Validate the ledger that the arguments name and return the verdict.

    Raises:
        OSError: a file cannot be read.
    """
    session = is_session(LedgerInput(regular(arguments.ledger)))
    stray = [name for name in (_OF_RUNS if session else _OF_SESSIONS) if getattr(arguments, name)]
    if stray:
        options = [f"--{name.replace('_', '-')}" for name in stray]
        return misused(options, f"the ledger of a {'session' if session else 'run'}")
    if (arguments.more or len(arguments.artifact) > 1) and not session:
        return misused(["more files or artifacts"], "the ledger of a run")
    if session:
        from tcc_certs.verbs.session import run as run_session

        return run_session(arguments)
    from tcc_certs.replay import validate

    found = validate(
        LedgerInput(regular(arguments.ledger)),
        regular(arguments.artifact[0]).read_bytes(),
        pin=arguments.pin,
        seed=octets(arguments.seed),
        opening_salt=octets(arguments.opening_salt),
        opening=octets(arguments.opening),
        beacon=octets(arguments.beacon),
        nonce=octets(arguments.nonce),
        counts=regular(arguments.counts).read_bytes() if arguments.counts else None,
    )
    return VerbResult(
        exit_code=found.verdict, lines=list(validation_lines(found)), document=document(found)
    )


def document(found: Validation) -> dict[str, Json]:
    """The validation of a run as the JSON document ``tcc.validate`` 1.0."""
    return {
        "format": f"tcc.{VERB}",
        "format_version": "1.0",
        "verdict": found.word,
        "claim_type": found.claim_type,
        **({"after": list(found.after)} if found.after else {}),
        "claim_upheld": found.claim_upheld,
        "findings": finding_documents(found.findings),
        "checked": found.checked,
        "kappa": found.kappa,
        **({} if found.privacy is None else {"privacy": found.privacy}),
        "ledger_head": found.head,
        "summary": found.summary,
    }


def finding_documents(findings: Sequence[Finding]) -> list[Json]:
    """Findings in the form that the JSON document of a validation has."""
    return [{**asdict(finding), "code": finding.code.value} for finding in findings]


def validation_lines(found: Validation | SessionValidation) -> Iterator[str]:
    """The findings and the verdict as lines for people."""
    for finding in found.findings:
        yield (
            f"{finding.code.value} line {finding.line} {finding.field}: "
            f"expected {finding.expected}, found {finding.found}"
        )
    checked = ", ".join(f"{count} {name}" for name, count in found.checked.items())
    yield f"{found.word}: {found.summary} ({checked})"


def _digest(text: str) -> str:
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ArgumentTypeError("64 lower-case hex digits are needed")
    return text


def _octets(text: str) -> str:
    if not text or len(text) % 2 or set(text) - set("0123456789abcdef"):
        raise ArgumentTypeError("lower-case hex digits of whole bytes are needed")
    return text


def octets(text: str | None) -> bytes | None:
    """The bytes of an option in hex; None if the option is not given."""
    return None if text is None else bytes.fromhex(text)
