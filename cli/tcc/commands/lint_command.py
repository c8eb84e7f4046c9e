"""``tcc lint``: reports what grammars say to no effect, or probably mean otherwise."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from tcc import options, screen
from tcc.files import STDIN, files_of
from tcc.findings import of_diagnostics, print_diagnostics, print_found
from tcc.library.linting import Linted, finding_json, keeps_core, lint_file, note_json, note_of
from tcc.opening import OutOfTime, at_most, config_of, options_of
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_runtime.ledger.outputs import write_whole

_UNREAD = "TCC110"  # the file cannot be read


@click.command("lint")
@click.argument("grammars", nargs=-1, required=True, type=options.GivenPath(path_type=Path))
@click.option("--fix", is_flag=True, help="apply the safe fixes, which change no decision")
@click.option("--diff", "as_diff", is_flag=True, help="show the safe fixes, and write nothing")
@options.config_options
@options.compile_options
@options.format_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammars: tuple[Path, ...],
    fix: bool,
    as_diff: bool,
    output_format: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Report what GRAMMARS say to no effect, or probably mean otherwise (docs/lint.md).

    GRAMMARS are files, folders with .tcg files, or - for standard input.
    Exit code 0: no findings; what remained open is a note. 1: findings. 2: a file that cannot be
    read.
    """
    if fix and as_diff:
        raise click.UsageError("--fix and --diff exclude each other", ctx)
    shown = options.chosen(output_format, as_json)
    if as_diff and shown != "text":
        raise click.UsageError(f"--diff is text, and {shown} another format", ctx)
    results: list[tuple[Path, Linted, bool]] = []
    if fix and STDIN in grammars:
        raise click.UsageError("standard input cannot be mended; --diff shows what would be", ctx)
    for path in files_of(grammars):
        mine = dict(given)
        config = config_of(mine, path, output_format=shown)
        options.fill(mine, config.compile)
        limits = options_of(mine)
        linted, changed = _linted(path, limits, config), False
        if fix or as_diff:
            changed = _mend(path, linted, limits, write=fix)
            if changed and fix:
                linted = _linted(path, limits, config)
        results.append((path, linted, changed))
    if shown == "json":
        _print_json(results)
    elif shown != "text":
        every = [one for _, linted, _ in results for one in of_diagnostics(_said(linted))]
        sources = {name: one for _, linted, _ in results for name, one in linted.sources.items()}
        print_found(every, shown, sources)
    elif not as_diff:
        for path, linted, changed in results:
            _print(path, linted, changed)
    ctx.exit(_code(results, as_diff=as_diff))


def _linted(path: Path, limits: Options, config: options.Config) -> Linted:
    """Return the lints of a file; at the timeout, interrupt even work that reads no clock."""
    from tcc_compiler.pass_diagnostics import refusal_diagnostic
    from tcc_compiler.resources import out_of_time

    try:
        with at_most(limits.timeout):
            return lint_file(path, limits, config)
    except OutOfTime:
        left = refusal_diagnostic(out_of_time(limits.timeout or 0.0, "the lints"), {})
        return Linted(findings=(), notes=(note_of(left),), sources={}, config=config.path)


def _code(results: list[tuple[Path, Linted, bool]], *, as_diff: bool) -> int:
    """Return the exit code; findings precede unreadable files, and with --diff fixes are
    findings."""
    if any(changed if as_diff else linted.findings for _, linted, changed in results):
        return FINDINGS
    unread = any(
        note.diagnostic.code == _UNREAD for _, linted, _ in results for note in linted.notes
    )
    return DECLINED if unread else CLEAN


def _mend(path: Path, linted: Linted, limits: Options, *, write: bool) -> bool:
    """Write or show the fixes of a grammar; return whether there are any."""
    before, after = linted.text, linted.fixed
    if before is None or after is None or before == after:
        return False
    try:
        with at_most(limits.timeout):
            keeps = keeps_core(linted, path)
    except OutOfTime:
        keeps = False
    if not keeps:
        screen.warn(f"{path}: not mended: it was not shown that all decisions stay the same")
        return False
    for finding in linted.findings:
        if finding.diagnostic.code == "TCC704" and finding.fix:
            screen.say(f"{path}: removed: {finding.diagnostic.message}", err=True)
    if not write:
        _show(path, before, after)
        return True
    write_whole(path, after.encode())
    return True


def _show(path: Path, before: str, after: str) -> None:
    name = str(path)
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    )
    for line in lines:
        screen.say_lines(line.removesuffix("\n").removesuffix("\r"))


def _said(linted: Linted) -> list[Diagnostic]:
    found = [finding.diagnostic for finding in linted.findings]
    return [*found, *[note.diagnostic for note in linted.notes]]


def _print(path: Path, linted: Linted, changed: bool) -> None:
    print_diagnostics("lint", _said(linted), linted.sources, "text")
    if changed:
        screen.say(f"{path}: mended")
    if linted.clean:
        screen.good(f"{path}: clean")


def _print_json(results: list[tuple[Path, Linted, bool]]) -> None:
    from tcc.outputs.grammars import LintedJson, LintOutput, SkippedJson

    output = LintOutput(
        findings=[
            finding_json(finding, linted.sources)
            for _, linted, _ in results
            for finding in linted.findings
        ],
        notes=[note_json(note) for _, linted, _ in results for note in linted.notes],
        grammars=[
            LintedJson(
                grammar=str(path),
                clean=linted.clean,
                config=None if linted.config is None else str(linted.config),
                mended=changed,
                skipped=[SkippedJson(code=code, why=why) for code, why in linted.skipped],
            )
            for path, linted, changed in results
        ],
    )
    screen.print_output(output)
