"""One question in one mode: searched, done call by call through a gate, recorded and validated.

The first call tells the shelf, that is the noisy category.  The search goes on from there and sees
nothing else of the question; its ledger names the mechanism that made the noise.  Where a tool's
answer is not the one that the plan assumed, another search goes on from what was made.  That one
depends on the question itself: its ledger says so, and claims nothing.
Cost: some milliseconds a search, and the tools.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.replay import Validation
from tcc_certs.replay import validate as replay
from tcc_certs.session.validation import validate as go_through
from tcc_certs.verbs.validate import LedgerFile as Lines
from tcc_experiments.model import Row
from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.desk import Desk
from tcc_experiments.pipeline.modes import Mode, Plans, plans
from tcc_experiments.pipeline.noise import ATOM, DELTA
from tcc_experiments.pipeline.policy import Policy
from tcc_experiments.pipeline.questions import Question
from tcc_experiments.seeds import seed_of
from tcc_runtime.executor.course import Step
from tcc_runtime.executor.execute import Execution, execute
from tcc_runtime.gate.gate import Gate
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import Memory
from tcc_runtime.outcome import Run
from tcc_runtime.search import search
from tcc_runtime.terms.settings import Settings

STARTED_MS = 0  # the ledgers of runs do not tell when they were made


class NotReplayed(RuntimeError):
    """A search that was followed is another one when it is made again: a mistake of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of a question in a mode; times are in milliseconds.

    Attributes:
        question, category: of the question.
        noisy: the category that the run was told.
        mode: its name.
        expansions, wall_ms: of the first search, its ledger made in the time,
            but not written to the disk.
        slack: how far the greatest key left was above the best value.
        claim: of the first search.
        replay: whether the ledgers of all searches are valid; `claims` how many of them claim
            something.
        session: whether that of the session is.
        kappa_nodes, kappa_tightened, kappa_mean: the validator's; 0 where counts are exact.
        epsilon: what the first ledger states at the delta of the pipeline.
        searches, calls: how many were made.
        stop: of the execution.
        value: the answer; None: none was given.
        right: whether it is the tables'.
    """

    question: str
    category: str
    noisy: str
    mode: str
    expansions: int
    wall_ms: float
    slack: float
    claim: str
    replay: bool
    claims: int
    session: bool
    kappa_nodes: int
    kappa_tightened: int
    kappa_mean: float
    epsilon: str
    searches: int
    calls: int
    stop: str
    value: float | None
    right: bool

    def row(self) -> Row:
        """As a row of a table."""
        return asdict(self)


def answered(question: Question, noisy: str, mode: Mode, corpus: Corpus, folder: Path) -> Answered:
    """Answers a question in a mode, and validates what was recorded.

    Args:
        question: one of the questions.
        noisy: its category as it was privatised.
        mode: of the searches.
        corpus: where the tools look.
        folder: takes the ledgers; nothing of this question and mode is there yet.

    Raises:
        OSError: a ledger cannot be written.
        PipelineError: the corpus was changed.
    """
    found = plans(mode.tilt)
    seed = seed_of(f"pipeline/{question.name}", 0)
    name = f"{question.name}.{mode.slug}"
    began = (f"route(shelf={noisy})",)
    settings = Settings(
        seed=seed, after=began, atoms=atoms_of([dict(ATOM)]), delta=DELTA, **mode.settings
    )
    run, wall_ms = _recorded(found, settings, folder / f"{name}.0.ledger")
    session = folder / f"{name}.session"
    done = _done(question, noisy, run, mode, found, corpus, session)
    for at, later in enumerate(done.runs[1:], 1):
        again = Settings(seed=bytes.fromhex(later.seed), after=later.after, **_later(mode))
        if _recorded(found, again, folder / f"{name}.{at}.ledger")[0].plans != later.plans:
            raise NotReplayed(name)
    verdicts = [
        replay(Lines(folder / f"{name}.{at}.ledger"), found.checked) for at in range(len(done.runs))
    ]
    value = _value(done)
    return Answered(
        question=question.name,
        category=question.category,
        noisy=noisy,
        mode=mode.name,
        expansions=run.expansions,
        wall_ms=wall_ms,
        slack=_slack(run),
        claim=str(run.claim_type),
        replay=all(verdict.verdict == 0 for verdict in verdicts),
        claims=sum(verdict.claim_upheld for verdict in verdicts),
        session=go_through(Lines(session), found.checked).verdict == 0,
        **_kappa(verdicts[0]),
        epsilon=_epsilon(verdicts[0]),
        searches=len(done.runs),
        calls=len(done.calls),
        stop=done.stop,
        value=value,
        right=question.is_right(value),
    )


def warm_up(mode: Mode) -> None:
    """One search that nobody looks at, so that the first that is timed imports nothing."""
    settings = Settings(seed=bytes(32), **mode.settings)
    search(plans(mode.tilt).artifact, settings, Recorder(Memory(), started_ms=STARTED_MS))


def _recorded(found: Plans, settings: Settings, path: Path) -> tuple[Run, float]:
    """A search, its ledger written, and its milliseconds without the disk."""
    sink = Memory()
    began = time.perf_counter()
    run = search(found.artifact, settings, Recorder(sink, started_ms=STARTED_MS))
    ended = time.perf_counter()
    write_whole(path, sink.data)
    return run, 1000 * (ended - began)


def _later(mode: Mode) -> dict[str, Any]:
    """Settings of searches that depend on what the tools answered."""
    return {**mode.settings, "raw_input_dependent": True}


def _done(
    question: Question, noisy: str, run: Run, mode: Mode, found: Plans, corpus: Corpus, path: Path
) -> Execution:
    """The plan, done."""
    desk, policy = Desk(corpus), Policy(question.text)

    def opened(step: Step) -> dict[str, Any]:
        return policy.opened(step.tool, step.arguments)

    with Gate(found.artifact, ledger=path, durable=False) as gate:
        with gate.call("route", {"shelf": noisy}) as permit:
            permit.done(desk.route(noisy))
        return execute(
            run,
            {name: _told(name, tool, policy) for name, tool in desk.tools().items()},
            gate=gate,
            arguments=opened,
            seed=bytes.fromhex(run.seed),
            **_later(mode),
        )


def _told(
    name: str, tool: Callable[..., dict[str, object]], policy: Policy
) -> Callable[..., dict[str, object]]:
    """The tool, whose answers the policy takes note of."""

    def function(**arguments: Any) -> dict[str, object]:
        result = tool(**arguments)
        policy.take(name, result)
        return result

    return function


def _value(done: Execution) -> float | None:
    for seq in sorted(done.results, reverse=True):
        result = done.results[seq]
        if isinstance(result, Mapping) and "value" in result:
            return result["value"] if isinstance(result["value"], float) else None
    return None


def _slack(run: Run) -> float:
    return max(0.0, float(run.gap)) if run.gap is not None else 0.0


def _kappa(verdict: Validation) -> dict[str, Any]:
    told = verdict.kappa
    return {
        "kappa_nodes": int(told["nodes"]),
        "kappa_tightened": int(told["tightened"]),
        "kappa_mean": float(told["mean"]),
    }


def _epsilon(verdict: Validation) -> str:
    stated = (verdict.privacy or {}).get("eps_delta")
    return str(stated["eps"]) if isinstance(stated, Mapping) else ""
