"""``tcc test``: checks the tests of grammars, and whether they notice mutants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc import opening, options, screen
from tcc.files import compile_given
from tcc.findings import ReportedFinding, as_object, of_diagnostics, print_diagnostics, print_found
from tcc.library import only_guards
from tcc.screen import CLEAN, DECLINED, FINDINGS

if TYPE_CHECKING:
    from tcc.library.mutation import Judged
    from tcc.outputs.grammars import GrammarTestJson
    from tcc_compiler.language.source import Source
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled


@click.command("test")
@click.argument("grammars", nargs=-1, required=True, type=options.GivenPath(path_type=Path))
@click.option("--mutants", is_flag=True, help="also check that the tests notice changed statements")
@click.option(
    "--question-timeout",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="with --mutants: limit on each question about a mutant, in seconds",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    help="with --mutants: limit on all mutants of a grammar, in seconds",
)
@options.config_options
@options.compile_options
@options.format_option
@opening.watch_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammars: tuple[Path, ...],
    mutants: bool,
    question_timeout: float,
    budget: float,
    output_format: str,
    watching: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Check the accept, reject and expect lines and the recorded sessions of GRAMMARS.

    Sessions of G.tcg are recorded in G.allowed.jsonl and G.refused.jsonl. Exit code 1: a test does
    not hold. With --mutants each statement is changed in turn, and the tests have to notice it;
    exit code 1: a mutant survived. --watch checks the tests again whenever a grammar, or a file
    that it uses, changes; the exit code is that of the last check.
    """
    shown = options.chosen(output_format, as_json)
    if mutants and (watching or shown not in ("text", "json")):
        raise click.UsageError("--mutants is for --format text and json, without --watch", ctx)

    def options_for(path: Path) -> Options:
        mine = dict(given)
        options.fill(mine, opening.config_of(mine, path, output_format=shown).compile)
        return opening.options_of(mine)

    if mutants:
        ctx.exit(_test_mutants(grammars, options_for, shown, question_timeout, budget))

    def work(see: opening.See) -> int:
        return _test(grammars, options_for, shown, see)

    if not watching:
        ctx.exit(work(lambda compiled: None))
    opening.require_watchable(grammars, shown)
    ctx.exit(opening.watch(grammars, work))


def _test(
    grammars: Sequence[Path], options_for: Callable[[Path], Options], shown: str, see: opening.See
) -> int:
    """Compile and test each grammar, report, and return the exit code.

    Text is printed for each grammar, every other format as one report at the end.
    """
    results: list[GrammarTestJson] = []
    found: list[ReportedFinding] = []
    sources: dict[str, Source] = {}
    worst = CLEAN
    for path in grammars:
        compiled, sessions = _tested(path, compile_given(path, options_for(path)))
        see(compiled)
        worst = max(worst, _exit(compiled))
        if shown == "json":
            results.append(_json_of(path, compiled, sessions))
        if compiled.diagnostics:
            found += of_diagnostics(compiled.diagnostics)
            sources |= compiled.sources
        if shown == "text":
            _say(path, compiled, sessions)
    if shown == "json":
        from tcc.outputs.grammars import TestOutput

        every = [as_object(one) for one in found]
        output = TestOutput(passed=worst == CLEAN, grammars=results, diagnostics=every)
        screen.print_output(output)
    elif shown != "text":
        print_found(found, shown, sources)
    return worst


def _tested(path: Path, compiled: Compiled) -> tuple[Compiled, int]:
    """Add the reasons of failed examples, and test the recorded sessions of a grammar.

    Returns:
        the compiled grammar, without its artifact if a recorded session fails; and the number of
        recorded sessions.
    """
    if compiled.unmet:
        from tcc.library.plan_questions import with_reasons

        compiled = replace(compiled, diagnostics=with_reasons(compiled))
    from tcc.library.recorded import diagnostics_of, sources_of

    sources = sources_of(path)
    if compiled.artifact is None or not sources:
        return compiled, 0
    from tcc_runtime.artifact.load import load

    artifact = load(compiled.artifact, checked=compiled.checked)
    sessions, found = diagnostics_of(path, artifact)
    changed = replace(
        compiled,
        artifact=None if found else compiled.artifact,
        diagnostics=(*compiled.diagnostics, *found),
        sources={**compiled.sources, **sources},
    )
    return changed, sessions


def _exit(compiled: Compiled) -> int:
    if compiled.artifact is not None:
        return CLEAN
    return DECLINED if only_guards(compiled.diagnostics) else FINDINGS


def _say(path: Path, compiled: Compiled, sessions: int) -> None:
    print_diagnostics("test", compiled.diagnostics, compiled.sources, "text")
    if compiled.artifact is not None:
        screen.good(f"{path}: {_verdict(compiled, sessions)}")


def _verdict(compiled: Compiled, sessions: int) -> str:
    """Return how many tests hold, and how many are undecided, for people."""
    whole = zip((compiled.examples, compiled.expectations), compiled.undecided, strict=True)
    examples, expectations = (every - undecided for every, undecided in whole)
    text = f"{_counted(examples, 'example')} and {_counted(expectations, 'expectation')} hold"
    if sessions:
        recorded = _counted(sessions, "recorded session")
        text = f"{recorded}, {text}"
    undecided = sum(compiled.undecided)
    verb = "is" if undecided == 1 else "are"
    return f"{text}; {undecided} {verb} not decided" if undecided else text


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _json_of(path: Path, compiled: Compiled, sessions: int) -> GrammarTestJson:
    from tcc.outputs.grammars import GrammarTestJson

    return GrammarTestJson(
        grammar=str(path),
        passed=compiled.artifact is not None,
        examples=compiled.examples,
        expectations=compiled.expectations,
        sessions=sessions,
        undecided=sum(compiled.undecided),
        diagnostics=[as_object(one) for one in of_diagnostics(compiled.diagnostics)],
    )


def _test_mutants(
    grammars: Sequence[Path],
    options_for: Callable[[Path], Options],
    shown: str,
    question_seconds: float,
    budget: float,
) -> int:
    """Test each grammar; if its tests hold, test its mutants too.  Return the exit code."""
    from tcc.files import read_given
    from tcc.library.mutation import judge
    from tcc.library.recorded import read_recorded
    from tcc_compiler.pipeline import compile_frontend
    from tcc_compiler.resources import Timer
    from tcc_runtime.artifact.load import load

    worst = CLEAN
    judged: list[tuple[Path, list[Judged]]] = []
    for path in grammars:
        chosen = options_for(path)
        front = read_given(path)
        compiled, _ = _tested(path, compile_frontend(front, chosen, Timer(chosen)))
        worst = max(worst, _exit(compiled))
        if compiled.artifact is None:
            print_diagnostics("test", compiled.diagnostics, compiled.sources, shown)
            if shown == "json":
                return worst
            continue
        artifact = load(compiled.artifact, checked=compiled.checked)
        mine: list[Judged] = []
        with screen.count_line("mutants", quiet=shown == "json") as on_mutant:
            mine += judge(
                front,
                artifact,
                read_recorded(path),
                chosen,
                question_seconds=question_seconds,
                budget=budget,
                on_mutant=on_mutant,
            )
        judged.append((path, mine))
        if any(one.verdict == "survived" for one in mine):
            worst = max(worst, FINDINGS)
        if shown == "text":
            _say_mutants(path, mine)
    if shown == "json":
        _print_mutants(judged)
    return worst


def _say_mutants(path: Path, judged: Sequence[Judged]) -> None:
    from tcc.library.recorded import file_of
    from tcc.outputs import json_line

    for one in judged:
        if one.verdict in ("killed", "equivalent"):
            continue
        screen.say(f"{one.verdict}: {one.change}")
        screen.say(f"    {one.statement}")
        if one.mutant is not None:
            screen.say(f"    {one.mutant}")
        if one.verdict == "open":
            screen.say(f"  not decided: {one.why}")
        else:
            name = file_of(path, one.expected).name
            screen.say(f"  a test that notices it, a line of {name}:")
            screen.say(json_line(one.line()).decode())
    counts = {word: sum(one.verdict == word for one in judged) for word in _MUTANT_VERDICTS}
    text = ", ".join(f"{number} {word}" for word, number in counts.items())
    line = f"{path}: {_counted(len(judged), 'mutant')}: {text}"
    if counts["survived"]:
        screen.bad(line)
    elif counts["open"]:
        screen.doubtful(line)
    else:
        screen.good(line)


_MUTANT_VERDICTS = ("killed", "survived", "equivalent", "open")


def _print_mutants(judged: Sequence[tuple[Path, Sequence[Judged]]]) -> None:
    from tcc.library.recorded import file_of
    from tcc.outputs import optional
    from tcc.outputs.grammars import MutantsOutput, OpenMutantJson, SurvivorJson
    from tcc.outputs.questions import SessionCallJson

    every = [one for _, mine in judged for one in mine]
    counts = {word: sum(one.verdict == word for one in every) for word in _MUTANT_VERDICTS}
    survived = [
        SurvivorJson(
            grammar=str(path),
            statement=one.statement,
            change=one.change,
            mutant=one.mutant,
            file=file_of(path, one.expected).name,
            session=[SessionCallJson(**call) for call in one.session],
            given=optional(dict(one.given) or None),
            ends=optional(one.ends or None),
        )
        for path, mine in judged
        for one in mine
        if one.verdict == "survived"
    ]
    undecided = [
        OpenMutantJson(
            grammar=str(path),
            statement=one.statement,
            change=one.change,
            mutant=one.mutant,
            missing=one.why,
        )
        for path, mine in judged
        for one in mine
        if one.verdict == "open"
    ]
    screen.print_output(
        MutantsOutput(
            mutants=len(every),
            equivalent=counts["equivalent"],
            open=counts["open"],
            killed=counts["killed"],
            survived=survived,
            undecided=undecided,
        )
    )
