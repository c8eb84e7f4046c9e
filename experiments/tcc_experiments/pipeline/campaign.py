"""All questions in all modes, with what is kept of them.

The folder that is filled: ``corpus.db``; ``categories.json``, the noisy categories that came out;
``tilt-0.tcca`` and ``tilt-8.tcca``; ``ledgers/``, of each question and mode the ledgers of its
searches and of its session, with the session's key.
Cost: some 30 ms a question and mode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tcc_experiments.model import Row
from tcc_experiments.pipeline.baseline import looped
from tcc_experiments.pipeline.corpus import Corpus, build
from tcc_experiments.pipeline.modes import MODES, Mode, plans
from tcc_experiments.pipeline.noise import privatised
from tcc_experiments.pipeline.questions import Question, all_questions
from tcc_experiments.pipeline.runs import answered, warm_up
from tcc_experiments.pipeline.texts import all_texts
from tcc_runtime.ledger.outputs import write_whole

OnQuestion = Callable[[int, int], None]
CORPUS, CATEGORIES, LEDGERS = "corpus.db", "categories.json", "ledgers"


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
        write_whole(folder / CATEGORIES, json.dumps(told, indent=1).encode() + b"\n")
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
