"""``tcc fmt``: rewrites grammars in their canonical layout.

A layout differs from its file only in white space.  Two lines therefore correspond if the same
number of other characters precedes them, and a unified difference needs no search.  Cost: linear in
the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from tcc import screen
from tcc.files import STDIN, files_of, read_stdin
from tcc.findings import as_json, print_diagnostics
from tcc.library import GUARDS
from tcc.options import GivenPath, json_option
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.errors import escaped
from tcc_compiler.language.source import read_bytes
from tcc_compiler.layout.format import Formatted, format_bytes
from tcc_runtime.ledger.outputs import write_whole

if TYPE_CHECKING:
    from tcc.outputs.grammars import FmtOutput


@click.command("fmt")
@click.argument("grammars", nargs=-1, required=True, type=GivenPath(path_type=Path))
@click.option(
    "--check", "checking", is_flag=True, help="write nothing; exit code 1 if a file would change"
)
@click.option("--diff", "differing", is_flag=True, help="as --check, and show what would change")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammars: tuple[Path, ...],
    checking: bool,
    differing: bool,
    as_json: bool,
) -> None:
    """Format GRAMMARS: files, folders with .tcg files, or - for standard input.

    Files are rewritten in place; standard input is printed formatted. Tokens and comments stay as
    they are, so the meaning does not change. A file with a syntax error is left unchanged: exit
    code 1.
    """
    quiet = as_json or differing or STDIN in grammars
    layouts = []
    for path in files_of(grammars):
        layout = laid_out(path)
        if not (checking or differing or path is STDIN):
            layout = written(layout)
        layouts.append(layout)
        if not as_json:
            _tell(layout, checking=checking, differing=differing)
    if as_json:
        screen.print_output(_output(layouts, differing))
    elif not quiet:
        _summary(layouts, checking)
    found = FINDINGS if checking or differing else CLEAN
    ctx.exit(max((_ending(layout, found) for layout in layouts), default=CLEAN))


def _ending(layout: Layout, found: int) -> int:
    return layout.failed or (found if layout.changed else CLEAN)


def _tell(layout: Layout, *, checking: bool, differing: bool) -> None:
    """Print the result for one file as text."""
    source = layout.made.source
    if layout.made.diagnostics:
        found = layout.made.diagnostics
        print_diagnostics("fmt", found, {source.name: source}, "text")
    elif layout.refused is not None:
        screen.say(f"Error: {layout.refused}", err=True)
    elif differing:
        screen.say_text(layout.difference())
    elif checking:
        if layout.changed:
            screen.say(f"would reformat {layout.path}")
    elif layout.path is STDIN:
        screen.say_text(layout.made.text or "")
    elif layout.changed:
        screen.say(f"reformatted {layout.path}")


def _summary(layouts: Iterable[Layout], checking: bool) -> None:
    fine = [layout for layout in layouts if not layout.failed]
    changed = sum(layout.changed for layout in fine)
    verb = "would change" if checking else "changed"
    screen.say(f"{changed} {verb}, {len(fine) - changed} as they should be", err=True)


def _output(layouts: Iterable[Layout], differing: bool) -> FmtOutput:
    from tcc.outputs.grammars import FmtOutput

    files = []
    for layout in layouts:
        fields = layout.fields()
        if differing:
            fields["diff"] = layout.difference()
        if layout.path is STDIN:
            fields["text"] = layout.made.text
        files.append(fields)
    return FmtOutput(changed=sum(bool(fields["changed"]) for fields in files), files=files)


Line: TypeAlias = tuple[str, str]  # ' ', '-' or '+', and a line with its line end
_CONTEXT = 3


def unified(old: str, new: str, name: str) -> str:
    """Return the unified difference from `old` to `new`, or '' if they are equal.

    Args:
        old, new: texts with the same characters in the same order, except for white space.
        name: the name of the file, for the head of the difference.
    """
    hunks = "".join(_hunks(_ordered(_compared(_lines(old), _lines(new)))))
    return f"--- {name}\n+++ {name}\n{hunks}" if hunks else ""


def _lines(text: str) -> list[str]:
    """Split a text into lines with their ends; only LF ends a line."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    i = j = before_old = before_new = 0  # lines read, and other characters than space in them
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and before_old == before_new and old[i] == new[j]:
            yield " ", old[i]
            before_old += _size(old[i])
            before_new = before_old
            i, j = i + 1, j + 1
        elif j == len(new) or (i < len(old) and _first(old[i], new[j], before_old - before_new)):
            yield "-", old[i]
            before_old += _size(old[i])
            i += 1
        else:
            yield "+", new[j]
            before_new += _size(new[j])
            j += 1


def _first(old: str, new: str, ahead: int) -> bool:
    """Return whether to list the old line before the new one.

    Args:
        ahead: how many more characters of the old text were read than of the new one.
    """
    if ahead:
        return ahead < 0
    return not old.strip() or bool(new.strip())


def _size(line: str) -> int:
    return sum(len(part) for part in line.split())


def _ordered(lines: Iterator[Line]) -> Iterator[Line]:
    """Move added lines after removed ones, between two unchanged lines."""
    coming: list[Line] = []
    for sign, text in lines:
        if sign == "+":
            coming.append((sign, text))
            continue
        if sign == " ":
            yield from coming
            coming.clear()
        yield sign, text
    yield from coming


def _hunks(lines: Iterator[Line]) -> Iterator[str]:
    """Yield hunks: changed lines with up to three unchanged lines around them."""
    hunk: list[Line] = []
    start = [1, 1]
    at = [1, 1]
    same = 0  # unchanged lines at the end of the hunk
    for sign, text in lines:
        hunk.append((sign, text))
        same = same + 1 if sign == " " else 0
        changed = same < len(hunk)
        if not changed and same > _CONTEXT:
            del hunk[0]
            start = [start[0] + 1, start[1] + 1]
        elif changed and same > 2 * _CONTEXT:
            yield _hunk(hunk[: -same + _CONTEXT], start)
            kept = hunk[-_CONTEXT:]
            hunk = kept
            same = _CONTEXT
            start = [at[0] - _CONTEXT + 1, at[1] - _CONTEXT + 1]
        at = [at[0] + (sign != "+"), at[1] + (sign != "-")]
    if same < len(hunk):
        yield _hunk(hunk[: len(hunk) - max(0, same - _CONTEXT)], start)


def _hunk(lines: Sequence[Line], start: Sequence[int]) -> str:
    sizes = [sum(sign != other for sign, _ in lines) for other in "+-"]
    # As in diff: a side without lines has the number of the line before it.
    places = [f"{at - (size == 0)},{size}" for at, size in zip(start, sizes, strict=True)]
    body = "".join(
        f"{sign}{text}" if text.endswith("\n") else f"{sign}{text}\n\\ No newline at end of file\n"
        for sign, text in lines
    )
    return f"@@ -{places[0]} +{places[1]} @@\n{body}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A file and its layout.

    Attributes:
        path: the file.
        made: the layout, or the diagnostics of a file with errors.
        refused: the reason why the file could not be written, else None.
    """

    path: Path
    made: Formatted
    refused: str | None = None

    @property
    def changed(self) -> bool:
        """Return whether the layout differs from the file."""
        return self.made.text is not None and self.made.text != self.made.source.text

    @property
    def failed(self) -> int:
        """The exit code for errors: 0 without errors, 2 for a limit or a failed write, else 1."""
        if self.refused is not None:
            return DECLINED
        codes = {diagnostic.code for diagnostic in self.made.diagnostics}
        return CLEAN if not codes else DECLINED if codes <= GUARDS else FINDINGS

    def difference(self) -> str:
        """Return the unified difference from the file to its layout, or '' if they are equal."""
        if not self.changed or self.made.text is None:
            return ""
        return unified(self.made.source.text, self.made.text, escaped(str(self.path)))

    def fields(self) -> dict[str, Any]:
        """Return the members of the file's JSON object."""
        found = [as_json(diagnostic) for diagnostic in self.made.diagnostics]
        fields = {"file": str(self.path), "changed": self.changed, "diagnostics": found}
        return fields | ({} if self.refused is None else {"error": self.refused})


def laid_out(path: Path) -> Layout:
    """Read a file, or standard input, and format it."""
    data = read_stdin() if path is STDIN else read_bytes(path)
    return Layout(path=path, made=format_bytes(data, str(path)))


def written(layout: Layout) -> Layout:
    """Write a changed layout to its file atomically; return the layout with any write error."""
    if not layout.changed or layout.made.text is None:
        return layout
    try:
        write_whole(layout.path, layout.made.text.encode())
    except OSError as error:
        said = f"cannot write {layout.path}: {error.strerror or error}"
        return Layout(path=layout.path, made=layout.made, refused=said)
    return layout
