"""The next call of an execution: the plan of a run, compared with the history of the session.

Text: docs/execute.md.  The next call depends only on the history, the first run and the seed.  So a
killed execution continues at the same place after its ledger is reopened.  If an answer differs
from the one that the plan assumed, or a call failed, a new search begins from the calls so far.
Cost: a search for each such place; otherwise, for each call, a comparison with each plan of the
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from tcc_certs.errors import Code
from tcc_certs.policy.plans import Call
from tcc_certs.session.machine import Offer
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.refusals import Scalar
from tcc_runtime.outcome import Found, Run
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

_SEED = b"tcc.execute.v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """The next call of an execution.

    Attributes:
        seq: the number of the call in the session.
        call: canonical text, with the listed answers that the plan assumes.
        tool: the name of the tool.
        arguments: the listed arguments, as JSON values by name.
        opened: the names of the open arguments, which the caller supplies.
        results: the results of the earlier calls that this execution made, by number.
    """

    seq: int
    call: str
    tool: str
    arguments: Mapping[str, Scalar]
    opened: tuple[str, ...]
    results: Mapping[int, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStop:
    """The end of an execution.

    Attributes:
        kind: ``finished`` (the plan is complete), ``unknown`` (an outcome is unknown),
            ``unforeseen`` (an answer is not known to the grammar), ``failed`` (too many calls
            failed in a row), ``refused`` (the gate refuses the next call of every plan of the run),
            ``pending`` (a person has to decide about the next call), ``budget`` (no model for the
            call fits the remaining budget) or ``no_plan`` (the search found no plan).
        reason: the reason in words.
    """

    kind: str
    reason: str = ""


class PlanCourse:
    """Chooses the calls of an execution.

    Args:
        run: the first run; None: a search from the root.
        seed: 32 bytes for searches; None: derived from the key of the session.
        retries: how many calls in a row may fail.
        quoter, settings, adapters: options of searches.

    Attributes:
        runs: the runs that were followed, in order.
        results: the results of calls, by number.

    Raises:
        ValueError: `run` begins after calls that the session has not made.
        SettingsError: see :func:`tcc.search`.
    """

    def __init__(
        self,
        gate: Gate,
        run: Run | None,
        *,
        seed: bytes | None,
        retries: int,
        quoter: Quoter | None,
        settings: Mapping[str, Any],
        adapters: Iterable[Adapter] | None = None,
    ) -> None:
        if retries < 0:
            raise SettingsError("retries", "0 or more", retries)
        self._gate = gate
        self._artifact = gate.artifact
        self._core_calls = core_calls(gate.artifact)
        self._quoter, self._settings, self._adapters = quoter, settings, adapters
        self._retries = retries
        self._seed = _seed_of(gate) if seed is None else seed
        self.results: dict[int, object] = {}
        self.runs: list[Run] = []
        self._made: list[str] = []
        self._seen = 0  # calls of the session that were considered
        self._failures = 0
        self._refused: dict[str, str] = {}  # refused calls and their codes
        begun = () if run is None else run.after
        self._skip(begun)
        self._follow(self._search() if run is None else run)

    def _skip(self, begun: Sequence[str]) -> None:
        """Take the calls before the first run from the history."""
        texts = self._gate.word() if begun else ()
        if texts[: len(begun)] != tuple(begun):
            raise ValueError("the run begins after calls that this session has not made")
        for happened in self._gate.kept_history:
            if len(self._made) == len(begun):
                return
            self._seen += 1
            if happened.outcome == "done":
                self._made.append(texts[len(self._made)])

    def unknown(self) -> int | None:
        """Return the number of the first call with an unknown outcome, or None."""
        found = [h.seq for h in self._gate.kept_history if h.outcome in ("unknown", "open")]
        return found[0] if found else None

    def next(self) -> PlanStep | ExecutionStop:
        """Return the next call, or the end of the execution.  All outcomes must be known."""
        history = self._gate.kept_history
        try:
            texts = self._gate.word()
        except ValueError:
            foreign = [one for one in history if one.unforeseen]
            if not foreign:
                raise
            last = foreign[-1]
            return ExecutionStop(kind="unforeseen", reason=f"call {last.seq}: {last.call}")
        for happened in history[self._seen :]:
            self._seen += 1
            self._refused.clear()
            if happened.outcome == "done":
                self._made.append(texts[len(self._made)])
                self._failures = 0
                if not self._fitting():
                    self._follow(self._search())
            else:
                self._failures += 1
                if self._failures <= self._retries:
                    self._follow(self._search())
        if self._failures > self._retries:
            return ExecutionStop(
                kind="failed", reason=f"{self._failures} calls in a row have failed"
            )
        return self._step()

    def tools(self) -> list[str]:
        """Return the tools of the remaining calls of the current plan."""
        core, found = self._artifact.core, list[str]()
        for plan in self._fitting()[:1]:
            for text in plan.calls[len(self._made) - len(self.runs[-1].after) :]:
                call = self._core_call(text)
                if call is not None:
                    found.append(core.tools[call.tool].name)
        return found

    def _core_call(self, text: str) -> Call | None:
        """Return the call of the core with a canonical text; None: the artifact lacks it."""
        index = self._artifact.call_index(text)
        return None if index is None else self._artifact.core.calls[self._core_calls[index]]

    def refuse(self, step: PlanStep, code: str) -> None:
        """Note that the gate refused a step, so that another plan of the run is tried."""
        self._refused[step.call] = code

    def _step(self) -> PlanStep | ExecutionStop:
        fitting = self._fitting()
        if not fitting:
            return ExecutionStop(
                kind="no_plan", reason=f"the search found no plan ({self.runs[-1].stop})"
            )
        at = len(self._made) - len(self.runs[-1].after)
        for plan in fitting:
            if len(plan.calls) == at:
                return ExecutionStop(kind="finished")
            if plan.calls[at] not in self._refused:
                return self._stepped(plan.calls[at])
        refused = " and ".join(sorted(self._refused))
        if Code.NO_MODEL in self._refused.values():
            said = f"{Code.NO_MODEL}: no model that may make it fits what is left: {refused}"
            return ExecutionStop(kind="budget", reason=said)
        return ExecutionStop(kind="refused", reason=f"the gate refuses {refused}")

    def _stepped(self, call: str) -> PlanStep:
        known = self._core_call(call)
        if known is None:
            raise ValueError(f"the run is another artifact's: it has no call {call}")
        machine = policy_of(self._artifact).machine
        arguments = known.values[: machine.listed(known.tool).arguments]
        offer = machine.offers(known.tool)[arguments]
        return self._of(offer, self._gate.call_count + 1, call)

    def made_step(self, seq: int) -> PlanStep:
        """Return the step of a call that was made."""
        call = self._gate.happened(seq).call
        offer = policy_of(self._artifact).machine.offer(call)
        if offer is None:
            raise ValueError(f"call {seq} is no call of the artifact")
        return self._of(offer, seq, call)

    def _of(self, offer: Offer, seq: int, call: str) -> PlanStep:
        table = policy_of(self._artifact).tables.numbered(offer.tool)
        allowed = table.allowed(offer)
        opened = [field.name for field in table.tool.arguments if field.type is not None]
        return PlanStep(
            seq=seq,
            call=call,
            tool=allowed.tool,
            arguments=allowed.arguments,
            opened=tuple(opened),
            results=self.results,
        )

    def _fitting(self) -> list[Found]:
        """Return the plans of the run that begin with the calls made so far, best first."""
        run = self.runs[-1]
        made = tuple(self._made[len(run.after) :])
        return [plan for plan in run.plans if plan.calls[: len(made)] == made]

    def _follow(self, run: Run) -> None:
        self.runs.append(run)

    def _search(self) -> Run:
        """Search the best continuations of the calls made so far."""
        seed = self._seed
        if self._seen:
            seed = blake3(_SEED + seed + self._seen.to_bytes(8, "little")).digest()
        settings = Settings(seed=seed, after=tuple(self._made), **self._settings)
        spent = self._gate.spent
        run = search(
            self._artifact,
            settings,
            quoter=self._quoter,
            adapters=self._adapters,
            spent=spent,
            drawing=self._gate.drawing(),
        )
        self._gate.searched(run, spent)
        return run


def _seed_of(gate: Gate) -> bytes:
    """Return a seed derived from the key of the session, so that only its owner knows it."""
    found: bytes = blake3(_SEED + b"seed" + gate.key_of(1).encode()).digest()
    return found
