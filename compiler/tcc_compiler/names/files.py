"""Read the statements of a grammar and of the files that it uses.

A used file must be in the folder of the root file or below it, after symbolic links are resolved.
It is read once, even if several files use it. Cost: parsing the files; there is no recursion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from tcc_compiler.language import source
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.names.nodes import Builder, Spans
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tokens import string_value
from tcc_compiler.syntax.tree import Tree

MAX_FILES = 256
_MOST_CIRCLE = 8
_MAY_BE_USED = ("tool", "shape", "use")
# Takes a path and the most bytes. An editor passes its own, for texts that are not yet saved.
Read: TypeAlias = Callable[[Path, int], "bytes | source.Unreadable"]
_SEEK = "the path is relative to the file with this `use`"


def gather(
    sources: list[source.Source], report: Report, read: Read = source.read_bytes
) -> tuple[list[Builder], bool]:
    """Parse ``sources[0]`` and all files that it uses; append the sources that were read.

    Returns:
        a builder for each file, in the order of reading, and whether all files could be read.
    """
    loader = _Loader(sources, report, read)
    loader.follow()
    return loader.files, loader.complete


def _uses(file: Builder) -> Iterator[Tree]:
    return iter([tree for tree in file.file.statements if tree.kind == "use"])


def used_files(root: source.Source) -> tuple[Path, ...]:
    """Return the files that a source names, even if they do not exist or may not be read.

    A caller can watch them for changes.
    """
    folder = root.folder if root.path is None else root.path.parent
    if folder is None:
        return ()
    file = parse(root, 0, Report([root]))
    uses = [tree for tree in file.statements if tree.kind == "use"]
    return tuple([folder / string_value(tree.tokens("STRING")[0].text) for tree in uses])


class _Loader:
    """Reads files depth first.

    Invariant: `numbers` has the number of every opened file, by its resolved path. `entered` has
    the `use` by which each was opened.
    """

    def __init__(self, sources: list[source.Source], report: Report, read: Read) -> None:
        self.sources = sources
        self.read = read
        self.report = report
        self.spans: Spans = {}
        self.complete = True
        root = sources[0]
        self.files = [Builder(parse(root, 0, report), report, self.spans)]
        self.left = source.MAX_SOURCE_BYTES - len(root.text.encode("utf-8", "replace"))
        self.folder = root.folder if root.path is None else root.path.parent
        self.numbers: dict[Path, int] = {}
        self.entered: dict[int, source.Region] = {}
        if root.path is not None:
            self.numbers[Path(os.path.realpath(root.path))] = 0

    def follow(self) -> None:
        """Read all files that the root uses, directly or indirectly."""
        stack = [(0, _uses(self.files[0]))]
        while stack:
            number, uses = stack[-1]
            use = next(uses, None)
            if use is None:
                stack.pop()
                continue
            name = string_value(use.tokens("STRING")[0].text)
            region = self.files[number].region(use.tokens("STRING")[0])
            target = self._target(number, name, region)
            known = self.numbers.get(target) if target is not None else None
            if target is None or known is not None:
                self._check_circle([n for n, _ in stack], known, region)
                continue
            opened = self._open(target, name, region)
            if opened is not None:
                stack.append((opened.file.number, _uses(opened)))

    def _target(self, number: int, name: str, region: source.Region) -> Path | None:
        """Return the resolved path of a used file; None if it is refused."""
        if self.folder is None:
            message = "a text that comes from no file can use none"
            self._refuse("TCC222", region, message, "write its tools into the text")
            return None
        if Path(name).is_absolute():
            message = "the path of a used file is relative to the file that uses it"
            hint = "put it in the folder of the grammar or below, and write its relative path"
            self._refuse("TCC222", region, message, hint)
            return None
        here = self.sources[number].path
        try:
            target = Path(os.path.realpath((here.parent if here else self.folder) / name))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._refuse("TCC221", region, f"{quote(name)} cannot be read: {reason}", _SEEK)
            return None
        if not target.is_relative_to(self.folder):
            message = f"{quote(name)} is outside the folder of the grammar"
            self._refuse("TCC222", region, message, "put a copy in that folder or below it")
            return None
        return target

    def _refuse(
        self,
        code: str,
        region: source.Region,
        message: str,
        hint: str,
        notes: Sequence[tuple[str, source.Region]] = (),
    ) -> None:
        self.complete = False
        self.report.error(code, region, message, hint, notes)

    def _check_circle(self, path: Sequence[int], known: int | None, region: source.Region) -> None:
        if known is None or known not in path:
            return
        around = [*path[path.index(known) :]]
        circle = [self.sources[n].name for n in (*around, known)]
        if len(circle) > _MOST_CIRCLE:
            circle[_MOST_CIRCLE - 2 : -2] = [".."]
        hint = "take this `use` away, and move what both files need into a third one"
        if len(around) == 1:
            hint = "take this `use` away: a file has its own tools"
        notes = [
            (f"{self.sources[n].name} is used here", self.entered[n])
            for n in around[1 : _MOST_CIRCLE - 1]
        ]
        message = f"files use each other in a circle: {' -> '.join(circle)}"
        self._refuse("TCC223", region, message, hint, notes)

    def _open(self, target: Path, name: str, region: source.Region) -> Builder | None:
        if len(self.sources) >= MAX_FILES:
            self._refuse("TCC107", region, f"more than {MAX_FILES} files", "join some of them")
            return None
        data = self.read(target, self.left)
        if isinstance(data, source.Unreadable):
            problem = source.too_large() if data.code == "TCC107" else data
            code = "TCC221" if problem.code == "TCC110" else problem.code
            message = f"{quote(name)}: {problem.message}"
            hint = problem.hint if code != "TCC221" else None
            self._refuse(code, region, message, hint or _SEEK)
            return None
        self.left -= len(data)
        text = source.decode(data)
        if isinstance(text, source.Unreadable):
            message = f"{quote(name)}: {text.message}"
            self._refuse(text.code, region, message, text.hint or _SEEK)
            return None
        shown = Path(self.sources[0].name).parent / target.relative_to(self.folder or target)
        number = len(self.sources)
        self.sources.append(source.source_of(text, str(shown), target))
        self.numbers[target] = number
        self.entered[number] = region
        file = Builder(parse(self.sources[-1], number, self.report), self.report, self.spans)
        for tree in file.file.statements:
            if tree.kind not in _MAY_BE_USED:
                message = "a used file has `tool`, `shape` and `use` statements, and no others"
                file.error("TCC224", tree, message, "move it to the grammar, or take it away")
        self.files.append(file)
        return file
