"""Runs of the library: one, many, and the expected number of expansions of one.

The clock is read and randomness drawn only where arguments of :func:`search` and :func:`runs`
leave the time or the seed open.  The settings of a run stand here by name for type checkers; the
fields of :class:`tcc_runtime.settings.settings.Settings` are the table; a test compares the two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from tcc import files
from tcc.compilation import Given, artifact_of, require_known
from tcc_runtime.outcome import Progress, Run
from tcc_runtime.settings.settings import TABLE, Ask, Keys, Mode, Race, Settings

if TYPE_CHECKING:
    from tcc_runtime.account.account import Account
    from tcc_runtime.pricing.quotes import Quoter
    from tcc_runtime.settings.predict import Estimate, Prediction

_NAMED = tuple(option for option in TABLE if option.name != "seed")


class SettingsByName(TypedDict, total=False):
    """Settings of a run by name; omitted ones keep their defaults."""

    mode: Mode | None
    top: int
    recipe: Literal["r1", "r2"]
    keys: Keys | None
    race: Race | None
    inflate: str
    truncate: int | None
    tau: str
    alpha: str
    eta: str
    max_expansions: int | None
    max_seconds: float | None
    count_bits: int
    ask: Ask | None
    price_cap: int | None
    sla_ms: int | None
    epsilon_cap: str | None
    price_weight: str
    latency_weight: str
    epsilon_weight: str
    margin: str | None
    delta: str | None
    raw_input_dependent: bool
    opening_salt: bytes | None
    beacon: bytes | None
    client_nonce: bytes | None
    after: Sequence[str]


def search(
    artifact: Given,
    *,
    seed: bytes | None = None,
    ledger: str | Path | None = None,
    overwrite: bool = False,
    started_ms: int | None = None,
    on_expand: Callable[[Progress], bool | None] | None = None,
    quoter: Quoter | None = None,
    adapters: str | Path | None = None,
    atoms: Sequence[Mapping[str, Any]] = (),
    account: Account | None = None,
    **settings: Unpack[SettingsByName],
) -> Run:
    """Find the best plans of one realised race, and prove that no other is better.

    Args:
        artifact: from :func:`load` or :func:`compile_file`; or a file of one, or of a grammar.
        seed: 32 bytes; the race is a function of it and of the artifact. None draws one.
        ledger: a new file for the record of the run; None keeps none.
        overwrite: replace a ledger that is there.
        started_ms: UTC milliseconds for the ledger; None asks the clock.
        on_expand: called after each expansion; returning True ends the run.
        quoter: is asked what calls cost whose cost is a range: any callable from a
            :class:`~tcc_runtime.pricing.quotes.Question` to an
            :class:`~tcc_runtime.pricing.quotes.Answer`.
        adapters: the registry of adapters that models run with, each held to its folder; a run
            with a ledger and a quoter needs one where models name adapters.
        atoms: the mechanisms that privatised the input before the run, as docs/privacy.md has
            them: ``{"mechanism": "laplace", "scale": "2", "sensitivity": "1"}``.
        account: that asking draws on, as other runs, threads and processes do; the run needs a
            ledger then.
        settings: those of :class:`tcc_runtime.settings.settings.Settings`, by name: ``top``,
            ``mode``, ``max_expansions``, ``max_seconds`` and so on.

    Raises:
        tcc_certs.errors.Rejected: E101 to E104, an atom is none.
        TypeError: there is no setting of that name.
        tcc_runtime.errors.SettingsError: a setting is out of its range.
        tcc_runtime.errors.LedgerError: the ledger cannot be written.
        tcc_runtime.errors.AnswerError: the quoter gave something that is no answer.
        tcc_certs.errors.Rejected: A101 to A107, of the registry and its adapters; K101 to K106, of
            the account.
    """
    from tcc_certs.privacy.atoms_file import atoms_of
    from tcc_runtime.adapters.registry import read_registry
    from tcc_runtime.ledger.recorder import Recorder
    from tcc_runtime.ledger.sinks import LedgerFile
    from tcc_runtime.search import search as run

    require_known("search", settings, _NAMED)
    artifact = artifact_of(artifact)
    known = None if adapters is None else read_registry(Path(adapters))
    handed = atoms_of(list(atoms))
    chosen = Settings(seed=os.urandom(32) if seed is None else seed, atoms=handed, **settings)
    if ledger is None:
        asking: dict[str, Any] = {"quoter": quoter, "adapters": known, "account": account}
        return run(artifact, chosen, on_expand=on_expand, **asking)
    started = time.time_ns() // 1_000_000 if started_ms is None else started_ms
    recorder = Recorder(LedgerFile(Path(ledger), overwrite=overwrite), started_ms=started)
    return run(
        artifact,
        chosen,
        recorder,
        on_expand,
        quoter=quoter,
        adapters=known,
        account=account,
    )


def predict(artifact: Given, **settings: Unpack[SettingsByName]) -> Prediction | None:
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
    from tcc_runtime.settings.predict import predict as predicted

    require_known("predict", settings, _NAMED)
    return predicted(artifact_of(artifact), Settings(seed=bytes(32), **settings))


def estimate(artifact: Given, **settings: Unpack[SettingsByName]) -> Estimate | None:
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
    from tcc_runtime.settings.predict import estimate as estimated

    require_known("estimate", settings, _NAMED)
    return estimated(artifact_of(artifact), Settings(seed=bytes(32), **settings))


def runs(
    artifact: Given,
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
        artifact: from :func:`load` or :func:`compile_file`; or a file of one, or of a grammar.
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
    from tcc_runtime.pool import RunRequest
    from tcc_runtime.pool import runs as pooled

    require_known("runs", settings, _NAMED)
    artifact = artifact_of(artifact)
    started = time.time_ns() // 1_000_000 if started_ms is None else started_ms
    requests = (
        RunRequest(
            settings=Settings(seed=seed, **settings),
            ledger=None if ledgers is None else files.ledger_name(Path(ledgers), number),
            started_ms=started,
            overwrite=overwrite,
        )
        for number, seed in enumerate(seeds, 1)
    )
    return pooled(artifact, requests, processes=processes or os.cpu_count() or 1)
