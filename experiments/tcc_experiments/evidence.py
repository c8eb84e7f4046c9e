"""Evidence: recorded runs whose ledgers validate, and traces of what a run pushes.

No figure rests on a run before its ledger is validated. With a folder the ledgers and artifacts are
kept there; without one they are validated all the same, and discarded. Cost: the run's and the
validator's; a list append an item for a trace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tcc_certs.formats.codec import Json, blake, divide_nearest
from tcc_certs.formats.container import write_container
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import validate
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.guards import Descent, SearchGuard
from tcc_runtime.item import ID, ORDER, VIEW, Item
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import HashOnly, MemorySink
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.races.interface import Step
from tcc_runtime.run import search as searched
from tcc_runtime.settings.modes import Claim, Terms
from tcc_runtime.settings.settings import Mode, Settings
from tcc_runtime.states import State


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
    sink = MemorySink()
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


@dataclass(frozen=True, slots=True)
class TracedItem:
    """An item as it was pushed: D or L, its key in units of Q64.64, its state, None at a leaf."""

    digest: bytes
    key: int
    state: State | None


class Trace(Recorder):
    """Keeps every item pushed, and what was popped.

    Attributes:
        pushed: in the order of the pushes.
        popped: digests of nodes expanded and leaves popped.
    """

    def __init__(self) -> None:
        super().__init__(HashOnly(), started_ms=0)
        self.pushed: list[TracedItem] = []
        self.popped: set[bytes] = set()

    def open(self, artifact: Artifact, terms: Terms) -> None:
        """Nothing to keep."""

    def root(self, item: Item) -> None:
        """Keeps the root."""
        self._keep(item)

    def step(self, step: Step, descent: Descent | None) -> None:
        """Keeps the children."""
        self.popped.add(step[0][ID])
        for child in step[3]:
            self._keep(child)

    def leaf(self, leaf: Item, word: int, incumbent: int | None) -> None:
        """Takes the leaf out of the frontier."""
        self.popped.add(leaf[ID])

    def downgrade(self, mode: Mode, claim: Claim, guard: SearchGuard) -> None:
        """Nothing to keep."""

    def close(self, run: Run) -> Run:
        """The run as it is: there is no ledger."""
        return run

    def frontier(self) -> list[TracedItem]:
        """What was pushed and not popped."""
        return [item for item in self.pushed if item.digest not in self.popped]

    def leaves(self) -> list[TracedItem]:
        """The leaves that were popped."""
        return [n for n in self.pushed if n.state is None and n.digest in self.popped]

    def _keep(self, item: Item) -> None:
        view = item[VIEW]
        state = None if view is None else view.state
        self.pushed.append(TracedItem(item[ID], -item[ORDER], state))


def q64_of(text: str) -> int:
    """The Q64.64 number that prints as `text`, which has 20 digits after its point."""
    number = int(text.replace(".", ""))
    nearest = divide_nearest(abs(number) << 64, 10**20)
    return -nearest if number < 0 else nearest
