"""All questions in all modes: searched, executed call by call through a gate, recorded, validated.

The first call names the shelf, that is the category of the question, privatised by OpenDP with
randomised response (the truth with probability 0.8). OpenDP takes no seed, so drawn categories are
kept, and a repeated run reads them from the record. The search continues from that call and sees
nothing else of the question; its ledger names the mechanism. Where a tool's answer is not the one
that the plan assumed, another search continues from the calls made. That one depends on the
question itself: its ledger says so, and claims nothing.
The folder that is filled: ``corpus.db``; ``categories.json``, the noisy categories; ``tilt-0.tcca``
and ``tilt-8.tcca``; ``ledgers/``, for each question and mode the ledgers of its searches and of its
session, with the session's key.
Cost: some 30 ms a question and mode.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.replay import Validation, validate as replay
from tcc_certs.session.validation import validate as go_through
from tcc_certs.verbs.validate import LedgerInput as Lines
from tcc_experiments.model import Row, seed_of
from tcc_experiments.pipeline.comparison import looped
from tcc_experiments.pipeline.corpus import CATEGORIES, Corpus, all_texts, build
from tcc_experiments.pipeline.desk import Desk
from tcc_experiments.pipeline.errors import PipelineCode, PipelineError, bring
from tcc_experiments.pipeline.modes import MODES, CompiledPlans, Mode, plans
from tcc_experiments.pipeline.policy import ScriptedPolicy
from tcc_experiments.pipeline.questions import Question, all_questions
from tcc_runtime.executor.course import PlanStep
from tcc_runtime.executor.execute import Execution, execute
from tcc_runtime.gate.gate import Gate
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.outcome import Run
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

PROBABILITY = "0.8"
_MOST_BYTES = 1 << 20
DELTA = "0.000001"
ATOM: Mapping[str, str | int] = {
    "mechanism": "randomized_response",
    "probability": PROBABILITY,
    "choices": len(CATEGORIES),
}


def privatised(category: str) -> str:
    """A category in the place of the true one, drawn anew each time.

    Raises:
        PipelineError: X401, it is none of the three: OpenDP would take it for any.
        MissingExtra: OpenDP is not installed.
    """
    if category not in CATEGORIES:
        due = f"one of {', '.join(CATEGORIES)}"
        raise PipelineError(PipelineCode.CATEGORY, "category", due, category)
    return str(_mechanism()(category))


def spent() -> float:
    """The epsilon that OpenDP itself states for one category."""
    return float(_mechanism().map(1))


@cache
def _mechanism() -> Any:
    opendp = bring("opendp.prelude")
    opendp.enable_features("contrib")
    return opendp.m.make_randomized_response(list(CATEGORIES), prob=float(PROBABILITY))


def read_record(path: Path) -> dict[str, str]:
    """The noisy categories of an earlier run, by question.

    Raises:
        PipelineError: X402, the file is no record.
        OSError: it cannot be read.
    """
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise PipelineError(PipelineCode.RECORD, str(path), "a file of at most 1 MiB", "none")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise PipelineError(PipelineCode.RECORD, str(path), "JSON", error) from None
    if not isinstance(found, dict):
        due = "an object from questions to categories"
        raise PipelineError(PipelineCode.RECORD, str(path), due, type(found).__name__)
    for name, value in found.items():
        if not isinstance(value, str) or value not in CATEGORIES:
            due = f"one of {', '.join(CATEGORIES)}"
            raise PipelineError(PipelineCode.RECORD, f"{path}: {name[:40]}", due, value)
    return found


STARTED_MS = 0  # the ledgers of runs do not tell when they were made


class NotReplayed(RuntimeError):
    """A search that was followed is another one when it is made again: a mistake of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRun:
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


def answered(
    question: Question, noisy: str, mode: Mode, corpus: Corpus, folder: Path
) -> QuestionRun:
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
    return QuestionRun(
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
    search(plans(mode.tilt).artifact, settings, Recorder(MemorySink(), started_ms=STARTED_MS))


def _recorded(found: CompiledPlans, settings: Settings, path: Path) -> tuple[Run, float]:
    """A search, its ledger written, and its milliseconds without the disk."""
    sink = MemorySink()
    began = time.perf_counter()
    run = search(found.artifact, settings, Recorder(sink, started_ms=STARTED_MS))
    ended = time.perf_counter()
    write_whole(path, sink.data)
    return run, 1000 * (ended - began)


def _later(mode: Mode) -> dict[str, Any]:
    """Settings of searches that depend on what the tools answered."""
    return {**mode.settings, "raw_input_dependent": True}


def _done(
    question: Question,
    noisy: str,
    run: Run,
    mode: Mode,
    found: CompiledPlans,
    corpus: Corpus,
    path: Path,
) -> Execution:
    """The plan, done."""
    desk, policy = Desk(corpus), ScriptedPolicy(question.text)

    def opened(step: PlanStep) -> dict[str, Any]:
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
    name: str, tool: Callable[..., dict[str, object]], policy: ScriptedPolicy
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


OnQuestion = Callable[[int, int], None]
CORPUS, CATEGORIES_FILE, LEDGERS = "corpus.db", "categories.json", "ledgers"


def chosen(number: int | None) -> tuple[Question, ...]:
    """That many questions, spread over all of them; None takes all.

    Raises:
        MissingExtra: a package is not installed.
    """
    every = all_questions()
    if number is None or number >= len(every):
        return every
    return tuple(every[at * len(every) // number] for at in range(number))


def campaign(
    folder: Path,
    questions: Sequence[Question],
    modes: Sequence[Mode] = MODES,
    noisy: Mapping[str, str] | None = None,
    on_question: OnQuestion = lambda done, total: None,
) -> list[Row]:
    """Answers questions in modes and by the loop without a plan; one row for each.

    Args:
        folder: takes what is kept; there, and empty.
        questions: in their order.
        modes: of the table.
        noisy: categories of an earlier run, by question; those that it lacks, or all, are drawn.
        on_question: told how many questions are done, and how many there are.

    Raises:
        OSError: something cannot be written.
        MissingExtra: a package is not installed.
    """
    corpus = made_corpus(folder)
    try:
        (folder / LEDGERS).mkdir()
        for tilt in sorted({mode.tilt for mode in modes}):
            write_whole(folder / f"tilt-{tilt}.tcca", plans(tilt).data)
        told = {q.name: (noisy or {}).get(q.name) or privatised(q.category) for q in questions}
        write_whole(folder / CATEGORIES_FILE, json.dumps(told, indent=1).encode() + b"\n")
        for mode in modes:
            warm_up(mode)
        rows: list[Row] = []
        for done, question in enumerate(questions):
            on_question(done, len(questions))
            rows += _rows(question, told[question.name], modes, corpus, folder / LEDGERS)
        on_question(len(questions), len(questions))
        return rows
    finally:
        corpus.close()


def made_corpus(folder: Path) -> Corpus:
    """Builds the corpus of a folder, and opens it by its digest.

    Raises:
        OSError: it cannot be written.
        MissingExtra: a package is not installed.
    """
    path = folder / CORPUS
    return Corpus(path, build(path, all_texts()))


def _rows(
    question: Question, noisy: str, modes: Sequence[Mode], corpus: Corpus, folder: Path
) -> Iterator[Row]:
    for mode in modes:
        yield answered(question, noisy, mode, corpus, folder).row()
    yield looped(question, noisy, corpus)
