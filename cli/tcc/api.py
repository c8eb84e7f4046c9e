"""The library: the same work as the commands, as calls.

Everything here takes and gives values; nothing prints, and nothing reads the clock or draws
randomness but :func:`search`, where its arguments leave the seed or the time open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from tcc import files
from tcc.keywords import SettingsByName, require_known
from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact, mapped
from tcc_runtime.artifact.load import load as _load
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.outcome import Progress, Run

if TYPE_CHECKING:
    from tcc_certs.kernel import CheckedArtifact
    from tcc_certs.replay import Validation
    from tcc_certs.report import Report
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled
    from tcc_runtime.asking.quotes import Quoter
    from tcc_runtime.terms.estimate import Estimate
    from tcc_runtime.terms.predict import Prediction


# From so many bytes on the fast kernel checks what is used, as in `tcc_runtime.artifact.load`.
LARGE = 1 << 21


class CompileError(Exception):
    """A grammar was refused.

    Args:
        diagnostics: everything that was found, in the order of the places.

    Attributes:
        declined: whether nothing is wrong with it: a limit of the compilation was reached, and the
            diagnostics name the ways on.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        self.declined = only_guards(self.diagnostics)
        first = next((d for d in self.diagnostics if d.severity == "error"), None)
        super().__init__("the grammar was refused" if first is None else first.message)


# Diagnostics that say nothing of the grammar: a limit was reached, or the file cannot be read.
GUARDS = frozenset({"TCC110", "TCC403", "TCC404", "TCC407"})


def only_guards(diagnostics: Sequence[Diagnostic]) -> bool:
    """Whether every error among them is a limit that was reached, or a file that is not there."""
    return {d.code for d in diagnostics if d.severity == "error"} <= GUARDS


def compile_file(
    path: str | Path,
    *,
    beta: str = "1",
    tilt: int = 8,
    max_states: int | None = None,
    timeout: float | None = None,
    count_bits: int | None = None,
    relax: Sequence[str] = (),
    round_counts: int | None = None,
) -> Artifact:
    """Compile a grammar file (``.tcg``) or a graph (``.graphml``, node-link ``.json``).

    Args:
        path: the file.
        beta: inverse temperature, an exact decimal, at least 0.
        tilt: bits of the weights, 0 .. 64; 0 is the race without weights.
        max_states: most states on the way.
        timeout: most seconds.
        count_bits: most bits of the number of plans.
        relax: statements to leave to the run: ``price``, ``latency``, ``cost``, ``epsilon``,
            ``uses``, ``sum``, ``depth``, ``require``, ``forbid``, or canonical texts of limits; and
            ``auto``: past one of the limits above, compile to bounds in place of counts.
            Nothing is relaxed that is not asked for here.
        round_counts: round race counts up to so many bits, 1 .. 63.

    Returns:
        the artifact, with the compiler's warnings in `diagnostics`.

    Raises:
        CompileError: the grammar was refused, or a limit was reached; it carries the diagnostics.
    """
    from tcc_compiler.pipeline import compile_file as compiled

    options = options_of(beta, tilt, max_states, timeout, count_bits, relax, round_counts)
    return opened(compiled(Path(path), replace(options, check=check_for_use)))


def compile_text(
    text: str,
    *,
    beta: str = "1",
    tilt: int = 8,
    max_states: int | None = None,
    timeout: float | None = None,
    count_bits: int | None = None,
    relax: Sequence[str] = (),
    round_counts: int | None = None,
) -> Artifact:
    """Compile the text of a grammar; see :func:`compile_file`."""
    from tcc_compiler.pipeline import compile_text as compiled

    options = options_of(beta, tilt, max_states, timeout, count_bits, relax, round_counts)
    return opened(compiled(text, replace(options, check=check_for_use)))


def options_of(
    beta: str,
    tilt: int,
    max_states: int | None,
    timeout: float | None,
    count_bits: int | None,
    relax: Sequence[str],
    round_counts: int | None,
) -> Options:
    """The compiler's options; `max_states` None is its own limit.

    The pipeline checks every certificate of what it has compiled, once.  Here that is left to the
    fast kernel: the pure one would take longer than the compiler itself.
    """
    from tcc_compiler.options import Options
    from tcc_runtime.fastcheck.kernel import check as fast

    options = Options(
        check=fast,
        beta=beta,
        tilt=tilt,
        timeout=timeout,
        count_bits=count_bits,
        # One name is a sequence of names, too.
        relax=(relax,) if isinstance(relax, str) else tuple(relax),
        round_counts=round_counts,
    )
    return options if max_states is None else replace(options, max_states=max_states)


def check_for_use(data: bytes) -> CheckedArtifact:
    """Check every certificate of an artifact that is about to be used (docs/trust.md).

    As :func:`load` does: by the pure kernel, and by the fast one where the file is large.

    Raises:
        tcc_certs.errors.Rejected: the first rule that fails.
    """
    if len(data) < LARGE:
        from tcc_certs.kernel import check

        return check(data)
    from tcc_runtime.fastcheck.kernel import check as fast

    return fast(data)


def opened(compiled: Compiled) -> Artifact:
    """The artifact of a compilation.

    The pipeline has checked every certificate of its bytes, by the `check` of its options; here
    only the digests are checked again, which show that these are the same bytes.

    Raises:
        CompileError: there is none.
    """
    if compiled.artifact is None:
        raise CompileError(compiled.diagnostics)
    artifact = _load(compiled.artifact, checked=compiled.checked)
    artifact.diagnostics = compiled.diagnostics
    return artifact


def load(
    source: str | Path | bytes, *, verify: bool = True, checked: str | None = None
) -> Artifact:
    """Open an artifact, a file or its bytes; by default every certificate is checked first.

    Args:
        source: a file, which is mapped and must not be changed while in use, or bytes.
        verify: False opens at once, whatever the size; a run over it claims nothing.
        checked: the digest of an artifact whose certificates were checked before, hex; it is
            opened as soon as its bytes are shown to have that digest.

    Raises:
        tcc_certs.errors.Rejected: the artifact is refused or declined, or is not the one that was
            checked.
        OSError: the file cannot be read.
    """
    data = source if isinstance(source, bytes) else Path(source)
    return _load(data, verify=verify, checked=checked)


def save(artifact: Artifact, path: str | Path) -> None:
    """Write an artifact; after a crash at any moment the old file is there or the new one.

    Raises:
        tcc_runtime.errors.OutputRefused: something that is no regular file is there.
        OSError: it cannot be written.
    """
    # A container has one byte string: written again, these columns are the bytes that were read.
    write_whole(Path(path), write_container(artifact.file.columns))


def check(
    artifact: str | Path | bytes,
    *,
    core: bool = False,
    source: str | Path | None = None,
    pin: str | None = None,
    exact: bool = False,
    kernel: Literal["pure", "fast"] = "pure",
) -> Report:
    """Verify the certificates of an artifact.

    Args:
        artifact: a file or bytes.
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

    due = _core_of(source)
    if kernel == "pure":
        return check_artifact(_bytes(artifact), core=core, pin=pin, source=due, exact=exact)
    from tcc_runtime.fastcheck.kernel import check as fast

    data = artifact if isinstance(artifact, bytes) else mapped(Path(artifact))
    return check_artifact(data, core=core, pin=pin, source=due, exact=exact, kernel=fast)


def _core_of(source: str | Path | None) -> bytes | None:
    if source is None:
        return None
    from tcc_compiler.pipeline import read_source

    front = read_source(Path(source))
    if front.core is None:
        raise CompileError(front.diagnostics)
    return front.core


def search(
    artifact: Artifact,
    *,
    seed: bytes | None = None,
    ledger: str | Path | None = None,
    overwrite: bool = False,
    started_ms: int | None = None,
    on_expand: Callable[[Progress], bool | None] | None = None,
    quoter: Quoter | None = None,
    **settings: Unpack[SettingsByName],
) -> Run:
    """Find the best plans of one realised race, and prove that no other is better.

    Args:
        artifact: from :func:`load` or :func:`compile_file`.
        seed: 32 bytes; the race is a function of it and of the artifact. None draws one.
        ledger: a new file for the record of the run; None keeps none.
        overwrite: replace a ledger that is there.
        started_ms: UTC milliseconds for the ledger; None asks the clock.
        on_expand: called after each expansion; returning True ends the run.
        quoter: is asked what calls cost whose cost is a range: any callable from a
            :class:`~tcc_runtime.asking.quotes.Question` to an
            :class:`~tcc_runtime.asking.quotes.Answer`.
        settings: those of :class:`tcc_runtime.terms.settings.Settings`, by name: ``top``, ``mode``,
            ``max_expansions``, ``max_seconds`` and so on.

    Raises:
        TypeError: there is no setting of that name.
        tcc_runtime.errors.SettingsError: a setting is out of its range.
        tcc_runtime.errors.LedgerError: the ledger cannot be written.
        tcc_runtime.errors.AnswerError: the quoter gave something that is no answer.
    """
    from tcc_runtime.ledger.recorder import Recorder
    from tcc_runtime.ledger.sinks import LedgerFile
    from tcc_runtime.search import search as run
    from tcc_runtime.terms.settings import Settings

    require_known("search", settings)
    chosen = Settings(seed=os.urandom(32) if seed is None else seed, **settings)
    if ledger is None:
        return run(artifact, chosen, on_expand=on_expand, quoter=quoter)
    started = time.time_ns() // 1_000_000 if started_ms is None else started_ms
    recorder = Recorder(LedgerFile(Path(ledger), overwrite=overwrite), started_ms=started)
    return run(artifact, chosen, recorder, on_expand, quoter=quoter)


def predict(artifact: Artifact, **settings: Unpack[SettingsByName]) -> Prediction | None:
    """How many expansions a search with these settings takes, on average over all seeds.

    Args:
        artifact: as for :func:`search`.
        settings: those of :func:`search`, without the seed.

    Returns:
        an enclosure of the mean; None where it is not known: for more than one plan, anchored
        keys, cuts, bounds that other plans count in, or beyond the range of floats.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
    """
    from tcc_runtime.terms.predict import predict as predicted
    from tcc_runtime.terms.settings import Settings

    require_known("predict", settings)
    return predicted(artifact, Settings(seed=bytes(32), **settings))


def estimate(artifact: Artifact, **settings: Unpack[SettingsByName]) -> Estimate | None:
    """About how many expansions a search over a relaxed artifact takes, on average over all seeds.

    Args:
        artifact: as for :func:`search`; of one that is exact, :func:`predict` says more.
        settings: those of :func:`search`, without the seed.

    Returns:
        an estimate from plans drawn from the automaton, the same each time; None where it is not
        known: without a race that keys bound, where costs are ranges, or beyond the range of
        floats.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
    """
    from tcc_runtime.terms.estimate import estimate as estimated
    from tcc_runtime.terms.settings import Settings

    require_known("estimate", settings)
    return estimated(artifact, Settings(seed=bytes(32), **settings))


def runs(
    artifact: Artifact,
    seeds: Iterable[bytes],
    *,
    processes: int | None = None,
    ledgers: str | Path | None = None,
    started_ms: int | None = None,
    overwrite: bool = False,
    **settings: Unpack[SettingsByName],
) -> Iterator[Run]:
    """Make one run for each seed, several at a time, and give them in the order of the seeds.

    Each is the run that :func:`search` makes. All processes map one file of the artifact.

    Args:
        artifact: from :func:`load` or :func:`compile_file`.
        seeds: 32 bytes each; taken as they are needed.
        processes: how many at a time; None is one for each processor.
        ledgers: a folder for the ledgers, ``00000001.ledger`` and on; None keeps none.
        started_ms: UTC milliseconds for the ledgers; None asks the clock.
        overwrite: replace ledgers that are there.
        settings: as for :func:`search`, the same for all.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
        tcc_runtime.errors.LedgerError: a ledger cannot be written.
        tcc_runtime.errors.WorkerLost: a process was killed.
        tcc_certs.errors.Rejected: the file of the artifact was changed since it was opened.
    """
    from tcc_runtime.pool import Request
    from tcc_runtime.pool import runs as pooled
    from tcc_runtime.terms.settings import Settings

    require_known("runs", settings)
    started = time.time_ns() // 1_000_000 if started_ms is None else started_ms
    requests = (
        Request(
            settings=Settings(seed=seed, **settings),
            ledger=None if ledgers is None else files.ledger_name(Path(ledgers), number),
            started_ms=started,
            overwrite=overwrite,
        )
        for number, seed in enumerate(seeds, 1)
    )
    return pooled(artifact, requests, processes=processes or os.cpu_count() or 1)


def validate(
    ledger: str | Path | bytes,
    artifact: str | Path | bytes,
    *,
    pin: str | None = None,
    seed: bytes | None = None,
    opening_salt: bytes | None = None,
    opening: bytes | None = None,
    beacon: bytes | None = None,
    nonce: bytes | None = None,
    counts: str | Path | bytes | None = None,
    kernel: str = "pure",
) -> Validation:
    """Derive every number of a ledger again from the artifact and the seed.

    Args:
        ledger: a file (read as a stream) or bytes.
        artifact: a file or bytes; it is checked first.
        pin: the artifact digest that it must have, hex.
        seed: 32 bytes, where the ledger withholds it.
        opening_salt: 32 bytes, where it is not the one that follows from the seed.
        opening: 32 bytes, handed out before beacon and nonce were known.
        beacon, nonce: the public randomness, and the client's own.
        counts: an artifact with exact counts of the same core, for kappa.
        kernel: ``pure`` trusts `tcc_certs` alone; ``fast`` passes lines by a faster reader, and
            leaves to the definition those that this one does not pass.

    Raises:
        OSError: a file cannot be read.
    """
    from tcc_certs.replay import validate as replay
    from tcc_certs.verbs.validate import LedgerFile

    shortcut = None
    if kernel == "fast":
        from tcc_runtime.fastreplay.shortcut import FastReplay

        shortcut = FastReplay()

    return replay(
        ledger if isinstance(ledger, bytes) else LedgerFile(Path(ledger)),
        _bytes(artifact),
        pin=pin,
        seed=seed,
        opening_salt=opening_salt,
        opening=opening,
        beacon=beacon,
        nonce=nonce,
        counts=None if counts is None else _bytes(counts),
        shortcut=shortcut,
    )


def _bytes(source: str | Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else Path(source).read_bytes()
