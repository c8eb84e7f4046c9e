"""The library's checks: of an artifact's certificates, and of a ledger against its artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tcc.compilation import CompileError
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact as RuntimeArtifact
from tcc_runtime.artifact.load import mapped
from tcc_runtime.errors import SettingsError
from tcc_runtime.process import collection_put_off

if TYPE_CHECKING:
    from tcc_certs.replay import Validation
    from tcc_certs.report import Report
    from tcc_certs.session import SessionValidation
    from tcc_runtime.account.account import Account

_Found = TypeVar("_Found", "Validation", "SessionValidation")


def check(
    artifact: RuntimeArtifact | str | Path | bytes,
    *,
    core: bool = False,
    source: str | Path | None = None,
    pin: str | None = None,
    exact: bool = False,
    kernel: Literal["pure", "fast"] = "pure",
) -> Report:
    """Verify the certificates of an artifact.

    Args:
        artifact: a file, its bytes, or one that is open.
        core: also walk the automaton beside the residuals of its core.
        source: a grammar file or graph whose core has to be the artifact's, byte for byte.
        pin: the artifact digest that it must have, hex.
        exact: also require that nothing is relaxed: the automaton holds every statement, and
            every count is exact.
        kernel: ``pure`` is the trusted one; ``fast`` evaluates the same equations with numpy.

    Returns:
        the verdict, what was checked and what was found; it never raises for what the bytes hold.

    Raises:
        CompileError: `source` has errors.
        OSError: the artifact cannot be read.
    """
    from tcc_certs.report import check_artifact

    expected = _core_of(source)
    if kernel == "pure":
        held = _bytes(artifact)
        found = check_artifact(held, core=core, pin=pin, source=expected, exact=exact)
        return _naming_statements(found, held, expected)
    from tcc_runtime.fastcheck.kernel import check as fast

    mappable = isinstance(artifact, str | Path)
    data = mapped(Path(artifact)) if mappable else _bytes(artifact)  # type: ignore[arg-type]
    found = check_artifact(data, core=core, pin=pin, source=expected, exact=exact, kernel=fast)
    return _naming_statements(found, data, expected)


def _naming_statements(report: Report, data: Any, expected: bytes | None) -> Report:
    """The report, where its core is another source's with the statement that differs.

    The kernel compares bytes, and says which: what they mean decides nothing, so it is said here.
    """
    if expected is None or Code.CORE_SOURCE not in {finding.code for finding in report.findings}:
        return report
    from tcc_runtime.analysis.comparison import core_changes

    held = bytes(read_artifact(data, digests=False).columns["core"].data)
    changes = core_changes(held, expected)
    if not changes:
        return report
    first, *others = changes
    alike = (c for c in others if (c.of, c.name) == (first.of, first.name) and c.old is None)
    wanted = first.new or next((change.new for change in alike), None)
    where = first.name if first.of == "statement" else f"{first.of} {first.name}"
    refusal = Rejected(
        Code.CORE_SOURCE, f"core: {where}", wanted or "nothing", first.old or "nothing"
    )
    finding = replace(
        report.findings[0], path=refusal.path, expected=refusal.expected, found=refusal.found
    )
    lines = (f"{report.lines[0].partition(':')[0]}: {refusal}", *report.lines[1:])
    return replace(report, findings=(finding,), lines=lines)


def _core_of(source: str | Path | None) -> bytes | None:
    if source is None:
        return None
    from tcc.files import read_given

    front = read_given(source if isinstance(source, Path) else Path(source))
    if front.core is None:
        raise CompileError(front.diagnostics)
    return front.core


def validate(
    ledger: str | Path | bytes,
    artifact: RuntimeArtifact | str | Path | bytes,
    *,
    pin: str | None = None,
    seed: bytes | None = None,
    opening_salt: bytes | None = None,
    opening: bytes | None = None,
    beacon: bytes | None = None,
    nonce: bytes | None = None,
    counts: RuntimeArtifact | str | Path | bytes | None = None,
    key: bytes | None = None,
    adapters: str | Path | None = None,
    account: Account | None = None,
    nodes: Callable[[Mapping[str, Any]], None] | None = None,
) -> Validation | SessionValidation:
    """Derive every number of a run's ledger again, or go through a session's, with the artifact.

    Args:
        ledger: a file (read as a stream) or bytes, of a run or of a session.
        artifact: a file, its bytes, or one that is open; it is checked first.
        pin: the artifact digest that it must have, hex.
        seed: 32 bytes, where the ledger withholds it.
        opening_salt: 32 bytes, where it is not the one that follows from the seed.
        opening: 32 bytes, handed out before beacon and nonce were known.
        beacon, nonce: the public randomness, and the client's own.
        counts: an artifact with exact counts of the same core, for kappa.
        adapters: a registry that the adapters of a run, or of a session's models, have to stand in,
            each held to its folder.
        account: that it drew on: its reservations have to stand there as the ledger has them.
        key: 32 bytes, of a session's digests: those of values that it shows are derived again.
        nodes: is called with kappa and the tightened key of each pushed node: diagnostics, on
            which no verdict rests.

    Raises:
        OSError: a file cannot be read.
        Rejected: A101 to A107, of the registry and its adapters; K101 to K104, of the account.
        SettingsError: what was given is for runs, and this is a session; or the other way round.
    """
    from tcc_certs.replay import validate as replay
    from tcc_certs.session import validate as go_through
    from tcc_certs.verbs.validate import LedgerFile, is_session

    chunks = ledger if isinstance(ledger, bytes) else LedgerFile(Path(ledger))
    if is_session(chunks):
        for_runs = (seed, opening_salt, opening, beacon, nonce, counts, nodes)
        if any(given is not None for given in for_runs):
            expected = "a run, for seed, opening, beacon, nonce, counts and nodes"
            raise SettingsError("ledger", expected, "a session")
        gone = go_through(chunks, _bytes(artifact), pin=pin, key=key)
        return _held(gone, chunks, adapters, account)
    if key is not None:
        raise SettingsError("ledger", "a session, for its key", "a run")

    with collection_put_off(nodes is None):
        found = replay(
            chunks,
            _bytes(artifact),
            pin=pin,
            seed=seed,
            opening_salt=opening_salt,
            opening=opening,
            beacon=beacon,
            nonce=nonce,
            counts=None if counts is None else _bytes(counts),
            tell=nodes,
        )
    return _held(found, chunks, adapters, account)


def _held(
    found: _Found,
    ledger: bytes | Iterable[bytes],
    adapters: str | Path | None,
    account: Account | None,
) -> _Found:
    """The validation, held to a registry and to an account as well."""
    whole = (ledger,) if isinstance(ledger, bytes) else ledger
    if account is not None:
        from tcc.cross_checks import held_to_account

        found = held_to_account(found, whole, account)
    if adapters is None:
        return found
    from tcc.cross_checks import held_to_registry
    from tcc_runtime.adapters.registry import read_registry

    return held_to_registry(found, whole, read_registry(Path(adapters)))


def _bytes(source: RuntimeArtifact | str | Path | bytes) -> bytes:
    if isinstance(source, RuntimeArtifact):
        return write_container(source.file.columns)
    return source if isinstance(source, bytes) else Path(source).read_bytes()
