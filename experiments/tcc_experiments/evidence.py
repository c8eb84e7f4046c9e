"""Runs that are recorded and validated before anything is said of them.

A folder that is set keeps their ledgers and artifacts; without one they are validated all the same,
and forgotten.  Cost: the run's, and the validator's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tcc_certs.formats.codec import Json
from tcc_certs.formats.container import write_container
from tcc_certs.formats.hashes import blake
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import validate
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.asking.quotes import Quoter
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import Memory
from tcc_runtime.outcome import Run
from tcc_runtime.search import search as searched
from tcc_runtime.terms.settings import Settings


class NotShown(RuntimeError):
    """A ledger of ours does not validate: a mistake of ours, and no figure may rest on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run, and the records of its ledger, which was validated."""

    run: Run
    records: Sequence[Mapping[str, Any]]


class _Kept:
    """Where ledgers are kept; of each worker process."""

    folder: Path | None = None


def keep_in(folder: Path | None) -> None:
    """From here on the ledgers of this process are kept there; None keeps none."""
    _Kept.folder = folder


def shown(
    name: str,
    artifact: Artifact,
    settings: Settings,
    *,
    quoter: Quoter | None = None,
    adapters: Sequence[Adapter] = (),
) -> Evidence:
    """A run whose ledger validates.

    Args:
        name: of the experiment and of its numbers, for the file of the ledger.

    Raises:
        NotShown: it does not.
        OSError: it cannot be kept.
    """
    sink = Memory()
    recorder = Recorder(sink, started_ms=0)
    run = searched(artifact, settings, recorder, quoter=quoter, adapters=adapters)
    data = sink.data
    found = validate(data, _checked(artifact))
    if found.verdict or found.claim_type != run.claim_type:
        raise NotShown(f"{name}: {found.summary}")
    if _Kept.folder is not None:
        _keep(_Kept.folder, artifact, name, data)
    records: list[Mapping[str, Json]] = [json.loads(line) for line in data.splitlines()]
    return Evidence(run=run, records=records)


def search(artifact: Artifact, settings: Settings, recorder: Recorder | None = None) -> Run:
    """A run; where ledgers are kept, its ledger is one of them, and was validated.

    Args:
        recorder: what else follows the run; it is made a second time then, the same.

    Raises:
        NotShown: its ledger does not validate.
        OSError: it cannot be kept.
    """
    if _Kept.folder is None:
        return searched(artifact, settings, recorder)
    run = shown("", artifact, settings).run
    return run if recorder is None else searched(artifact, settings, recorder)


def _keep(folder: Path, artifact: Artifact, name: str, data: bytes) -> None:
    """Writes a ledger beside its artifact; one without a name has that of its bytes."""
    kept = folder / f"{artifact.digest.hex()}.tcca"
    if not kept.exists():
        write_whole(kept, write_container(artifact.file.columns))
    named = name.replace("/", "-") or blake(data).hex()
    write_whole(folder / artifact.digest.hex() / f"{named}.ledger", data)


@lru_cache(maxsize=4)
def _checked(artifact: Artifact) -> CheckedArtifact:
    return check(write_container(artifact.file.columns))
