"""How a batch ended, for people and as JSON: its counts, its findings, or why it did not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from tcc import screen
from tcc.batches.errors import BatchError
from tcc.batches.making import BatchDone
from tcc.batches.validating import BatchValidation
from tcc.exits import CLEAN, DECLINED
from tcc.opening import refuse
from tcc_certs.errors import Rejected
from tcc_runtime.errors import WorkerLost


@contextmanager
def endings(artifact: Path) -> Iterator[None]:
    """Inside, what a batch raises becomes what a command says."""
    try:
        yield
    except BatchError as error:
        raise click.ClickException(str(error)) from None
    except WorkerLost as error:
        what = "parts that are finished stay, and the same command goes on from there"
        raise click.ClickException(f"{error}; {what}") from None
    except Rejected as refusal:
        refuse(artifact, refusal)


def print_runs(runs: int, certified: int, out: Path, as_json: bool) -> int:
    """A batch without shards; gives the exit code."""
    _print({"runs": runs, "certified": certified, "out": str(out)}, as_json)
    return CLEAN if certified == runs else DECLINED


def print_done(done: BatchDone, out: Path, as_json: bool) -> int:
    """A batch in shards; gives the exit code."""
    fields = {
        "runs": done.batch.runs,
        "certified": done.certified,
        "out": str(out),
        "parts": done.batch.parts,
        "made": done.made,
        "kept": done.kept,
        "redone": done.redone,
        "started_ms": done.batch.started_ms,
    }
    _print(fields, as_json)
    if done.redone:
        screen.warn(
            f"warning: {done.redone} of the parts that were there had been cut off or altered, "
            "or were of other requests, and were made again"
        )
    return CLEAN if done.certified == done.batch.runs else DECLINED


def print_validation(found: BatchValidation, out: Path, as_json: bool) -> int:
    """What a batch shows; gives the exit code."""
    if as_json:
        fields = {
            "verdict": found.word,
            "out": str(out),
            "runs": found.runs,
            "verdicts": found.verdicts,
            "claims": found.claims,
            "findings": [asdict(item) for item in found.findings],
            "more_findings": found.more,
        }
        screen.print_json("batch", fields)
        return found.verdict
    for item in found.findings:
        where = f"{out / item.file}: run {item.run}, line {item.line}"
        place = where if item.run else str(out / item.file)
        screen.say(
            f"{place}: {item.code} {item.field}: expected {item.expected}, found {item.found}"
        )
    if found.more:
        screen.say(f"and {found.more} more findings")
    screen.print_fields([("runs", found.runs), *_counts(found)])
    say = screen.good if found.verdict == CLEAN else screen.bad
    say(f"{found.word}: {_summary(found)}")
    return found.verdict


def _counts(found: BatchValidation) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [(word.lower(), n) for word, n in found.verdicts.items()]
    return rows + [(f"claim {claim}", number) for claim, number in found.claims.items()]


def _summary(found: BatchValidation) -> str:
    valid = found.verdicts.get("VALID", 0)
    if found.verdict == CLEAN:
        return f"{valid} ledgers hold, and say what the results say"
    return f"{valid} of {found.runs} ledgers hold"


def _print(fields: dict[str, object], as_json: bool) -> None:
    if as_json:
        screen.print_json("batch", fields)
    else:
        screen.print_fields(list(fields.items()))
