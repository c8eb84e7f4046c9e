"""``validate L --artifact A``: a ledger against the artifact that was run.

Source: docs/spec/ledger.md.  Cost: that of :func:`tcc_certs.replay.validate`; the ledger is read in
chunks, twice, and never held whole.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tcc_certs.formats.codec import Json
from tcc_certs.verbs.answer import Answer, regular

if TYPE_CHECKING:
    from tcc_certs.replay import Validation

VERB = "validate"
HELP = "replay a ledger against its artifact"
_CHUNK = 1 << 20


class LedgerFile:
    """The bytes of a ledger's file in chunks, from the start at each iteration."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as handle:
            while chunk := handle.read(_CHUNK):
                yield chunk


def add(parser: ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("ledger", type=Path, help="the ledger (.ndjson)")
    parser.add_argument("--artifact", type=Path, required=True, help="the artifact that was run")
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


def run(arguments: Namespace) -> Answer:
    """The verdict on the ledger that the arguments name.

    Raises:
        OSError: a file cannot be read.
    """
    from tcc_certs.replay import validate

    found = validate(
        LedgerFile(regular(arguments.ledger)),
        regular(arguments.artifact).read_bytes(),
        pin=arguments.pin,
        seed=_bytes(arguments.seed),
        opening_salt=_bytes(arguments.opening_salt),
        opening=_bytes(arguments.opening),
        beacon=_bytes(arguments.beacon),
        nonce=_bytes(arguments.nonce),
        counts=regular(arguments.counts).read_bytes() if arguments.counts else None,
    )
    return Answer(exit_code=found.verdict, lines=list(_lines(found)), document=document(found))


def document(found: Validation) -> dict[str, Json]:
    """A validation as the JSON document ``tcc.validate`` 1.0."""
    return {
        "format": f"tcc.{VERB}",
        "format_version": "1.0",
        "verdict": found.word,
        "claim_type": found.claim_type,
        **({"after": list(found.after)} if found.after else {}),
        "claim_upheld": found.claim_upheld,
        "findings": [
            {
                "code": finding.code.value,
                "line": finding.line,
                "field": finding.field,
                "expected": finding.expected,
                "found": finding.found,
            }
            for finding in found.findings
        ],
        "checked": found.checked,
        "kappa": found.kappa,
        "ledger_head": found.head,
        "summary": found.summary,
    }


def _lines(found: Validation) -> Iterator[str]:
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


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
