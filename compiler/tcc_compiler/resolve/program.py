"""The statements of a grammar and of the files that it uses, each name with its one definition.

Normative text: docs/spec/language.md, section 4.  A used file lies, with symbolic links resolved,
in the folder of the root file or below it; it is read once, however many use it.
Cost: that of parsing the files, and linear in the statements; no recursion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from tcc_certs.errors import hidden_in
from tcc_certs.limits import MAX_VERSION_BYTES
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast, source
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.syntax.parse import parse
from tcc_compiler.language.syntax.tokens import kept_words, may_keep
from tcc_compiler.language.syntax.words import OPENERS

_ONE = {
    "goal": "write one 'goal' statement: goal A | B",
    "plan": "write one 'plan' statement: plan = A | B",
}
MAX_LABEL = 128  # characters of the label of a currency
_D = TypeVar("_D", ast.ToolStatement, ast.RuleStatement)
_S = TypeVar(
    "_S",
    ast.GrammarStatement,
    ast.CurrencyStatement,
    ast.PlanStatement,
    ast.StartStatement,
    ast.GoalStatement,
)


@frozen
class Program:
    """A grammar's statements by kind.

    Attributes:
        broken: names whose definition has an error; nothing is said about their uses.
        gaps: keywords of the statements that have an error.
        incomplete: a used file is missing, or a text is no statement, so that unknown names are no
            errors of their own.
    """

    grammar: ast.GrammarStatement | None
    currency: ast.CurrencyStatement | None
    tools: Mapping[str, ast.ToolStatement]
    rules: Mapping[str, ast.RuleStatement]
    plan: ast.PlanStatement | None
    start: ast.StartStatement | None
    goal: ast.GoalStatement | None
    limits: Sequence[ast.LimitStatement]
    requires: Sequence[ast.RequireStatement]
    forbids: Sequence[ast.ForbidStatement]
    examples: Sequence[ast.ExampleStatement]
    expects: Sequence[ast.ExpectStatement]
    exacts: Sequence[ast.ExactStatement]
    policies: Sequence[ast.PolicyStatement]
    monitors: Sequence[ast.MonitorStatement]
    givens: Sequence[ast.GivenStatement]
    lets: Sequence[ast.LetStatement]
    passes: Sequence[ast.PassStatement]
    broken: frozenset[str]
    gaps: frozenset[str]
    incomplete: bool


def program_of(gathered: Gathered, report: Report) -> Program:
    """Sort the statements; what is defined twice, or misplaced, is reported."""
    statements = (*gathered.root, *gathered.used)
    broken = [statement for statement in statements if isinstance(statement, ast.Broken)]
    gaps = frozenset(statement.keyword for statement in broken)
    tools = _defined([s for s in statements if isinstance(s, ast.ToolStatement)], "tool", report)
    rules = _defined([s for s in statements if isinstance(s, ast.RuleStatement)], "rule", report)
    for name, rule in rules.items():
        if name in tools:
            report.error(
                "TCC206", rule.name.region, f"{quote(name)} is a tool; a rule needs another name",
                "rename the rule",
                notes=[("the tool", tools[name].name.region)],
            )  # fmt: skip
    program = Program(
        grammar=_once(
            [s for s in statements if isinstance(s, ast.GrammarStatement)], "grammar", report
        ),
        currency=_once(
            [s for s in statements if isinstance(s, ast.CurrencyStatement)], "currency", report
        ),
        tools=tools,
        rules=rules,
        plan=_once([s for s in statements if isinstance(s, ast.PlanStatement)], "plan", report),
        start=_once([s for s in statements if isinstance(s, ast.StartStatement)], "start", report),
        goal=_once([s for s in statements if isinstance(s, ast.GoalStatement)], "goal", report),
        limits=[s for s in statements if isinstance(s, ast.LimitStatement)],
        requires=[s for s in statements if isinstance(s, ast.RequireStatement)],
        forbids=[s for s in statements if isinstance(s, ast.ForbidStatement)],
        examples=[s for s in statements if isinstance(s, ast.ExampleStatement)],
        expects=[s for s in statements if isinstance(s, ast.ExpectStatement)],
        exacts=[s for s in statements if isinstance(s, ast.ExactStatement)],
        policies=[s for s in statements if isinstance(s, ast.PolicyStatement)],
        monitors=[s for s in statements if isinstance(s, ast.MonitorStatement)],
        givens=[s for s in statements if isinstance(s, ast.GivenStatement)],
        lets=[s for s in statements if isinstance(s, ast.LetStatement)],
        passes=[s for s in statements if isinstance(s, ast.PassStatement)],
        broken=frozenset(name.text for statement in broken for name in statement.names),
        gaps=gaps,
        incomplete=gathered.incomplete or "use" in gaps or not gaps <= set(OPENERS),
    )
    _check_head(gathered.root, program, report)
    if program.currency is not None:
        _check_label(program.currency, report)
    return program


def _check_label(currency: ast.CurrencyStatement, report: Report) -> None:
    """The label of a currency is shown as it is."""
    label = currency.label
    hidden = hidden_in(label.value)
    if not 1 <= len(label.value) <= MAX_LABEL:
        message = f"a label has 1 to {MAX_LABEL} characters"
    elif hidden is not None:
        message = f"the label holds U+{ord(hidden):04X}, a control or hidden character"
    else:
        return
    report.error("TCC315", label.region, message, 'say what one unit of price is: "EUR/1000"')


def _defined(statements: Sequence[_D], what: str, report: Report) -> dict[str, _D]:
    definitions: dict[str, _D] = {}
    for statement in statements:
        first = definitions.setdefault(statement.name.text, statement)
        if first is not statement:
            report.error(
                "TCC201",
                statement.name.region,
                f"{what} {quote(statement.name.text)} is defined twice",
                "take one of them away, or give it another name",
                notes=[("first defined here", first.name.region)],
            )
    return definitions


def _once(statements: Sequence[_S], what: str, report: Report) -> _S | None:
    for other in statements[1:]:
        hint = _ONE.get(what, "take one of them away")
        report.error(
            "TCC212", other.region, f"a second '{what}' statement", hint,
            notes=[("the first is here", statements[0].region)],
        )  # fmt: skip
    return statements[0] if statements else None


def _check_head(root: Sequence[ast.Statement], program: Program, report: Report) -> None:
    """The grammar statement comes first."""
    hint = 'begin with: grammar NAME version "1.0"'
    first = root[0] if root else None
    if isinstance(first, ast.GrammarStatement):
        version = first.version
        fault = version_fault(version.value)
        if fault is not None:
            report.error("TCC315", version.region, *fault)
        return
    if isinstance(first, ast.Broken) and first.keyword not in OPENERS:
        return
    if program.grammar is not None:
        report.error(
            "TCC213", program.grammar.region, "the 'grammar' statement is the first of the file",
            "move it to the beginning",
        )  # fmt: skip
    elif "grammar" not in program.gaps:
        message = "there is no 'grammar' statement"
        if not root:
            message = "this grammar is empty: it has no statement"
            hint += ", then its tools and a plan; `tcc explain TCC213` has one to start from"
        report.error("TCC213", source.Region(0, 0, 0), message, hint)


# `use` statements: which files are read, and in what order.

MAX_FILES = 256
_MOST_CIRCLE = 8
# A path and the most bytes that are taken: an editor has texts that no file holds yet.
Read: TypeAlias = Callable[[Path, int], bytes | source.Unreadable]
_SEEK = "the path is relative to the file with this `use`"


@frozen
class Gathered:
    """The statements of a grammar with those of the files that it uses.

    Attributes:
        root: the statements of the root file.
        used: the statements of the other files, in the order of their reading.
        incomplete: a file could not be read, so unknown names may be defined there.
    """

    root: tuple[ast.Statement, ...]
    used: tuple[ast.Statement, ...]
    incomplete: bool


def gather(
    sources: list[source.Source], report: Report, read: Read = source.read_bytes
) -> Gathered:
    """Parse ``sources[0]`` and whatever it uses; the sources read are appended to `sources`.

    Args:
        read: gives the bytes of a used file.
    """
    loader = _Loader(sources, report, read)
    text = sources[0].text
    if "use" not in text or not may_keep(text):
        root = parse(sources[0], 0, report)
        loader.follow(root)
        return Gathered(root=root, used=tuple(loader.used), incomplete=loader.incomplete)
    # Names that a used file declares are names in the root as well.
    root = parse(sources[0], 0, Report([sources[0]]))
    loader.follow(root)
    kept = frozenset[str]().union(*(kept_words(source.text) for source in sources[1:]))
    root = parse(sources[0], 0, report, kept)
    return Gathered(root=root, used=tuple(loader.used), incomplete=loader.incomplete)


def _uses(statements: tuple[ast.Statement, ...]) -> Iterator[ast.UseStatement]:
    return (statement for statement in statements if isinstance(statement, ast.UseStatement))


def asked_for(source: source.Source) -> tuple[Path, ...]:
    """The files that a source names, whether they are there or not, and whether they may be read.

    For who wants to know when one of them has changed.
    """
    folder = source.folder if source.path is None else source.path.parent
    if folder is None:
        return ()
    statements = parse(source, 0, Report([source]))
    return tuple(folder / use.path.value for use in _uses(statements))


class _Loader:
    """Reads files depth first.

    Invariant: `path` holds the numbers of the files from the root to the one that is being
    followed; `numbers` has the number of every file that was opened, by its resolved path, and
    `entered` the `use` by which each was.
    """

    def __init__(self, sources: list[source.Source], report: Report, read: Read) -> None:
        self.sources = sources
        self.read = read
        self.report = report
        self.used: list[ast.Statement] = []
        self.incomplete = False
        root = sources[0]
        self.left = source.MAX_SOURCE_BYTES - len(root.text.encode("utf-8", "replace"))
        self.folder = root.folder if root.path is None else root.path.parent
        self.numbers: dict[Path, int] = {}
        self.entered: dict[int, source.Region] = {}
        if root.path is not None:
            self.numbers[Path(os.path.realpath(root.path))] = 0

    def follow(self, root: tuple[ast.Statement, ...]) -> None:
        """Read everything that the statements of the root use."""
        stack = [(0, _uses(root))]
        while stack:
            number, uses = stack[-1]
            use = next(uses, None)
            if use is None:
                stack.pop()
                continue
            target = self._target(number, use)
            known = self.numbers.get(target) if target is not None else None
            if target is None or known is not None:
                self._check_cycle([n for n, _ in stack], known, use)
                continue
            opened = self._open(target, use)
            if opened is not None:
                stack.append((len(self.sources) - 1, _uses(opened)))

    def _target(self, number: int, use: ast.UseStatement) -> Path | None:
        """The resolved path of a used file, None where it is refused."""
        name, region = use.path.value, use.path.region
        if self.folder is None:
            message = "a text that comes from no file can use none"
            self._refuse("TCC222", region, message, "write its tools into the text")
            return None
        if Path(name).is_absolute():
            message = "the path of a used file is relative to the file that uses it"
            hint = "put it in the folder of the grammar or below, and write its name alone"
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
            message = f"{quote(name)} lies outside the folder of the grammar"
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
        self.incomplete = True
        self.report.error(code, region, message, hint, notes)

    def _check_cycle(self, path: list[int], known: int | None, use: ast.UseStatement) -> None:
        if known is None or known not in path:
            return
        around = path[path.index(known) :]
        circle = [self.sources[n].name for n in (*around, known)]
        if len(circle) > _MOST_CIRCLE:
            circle[_MOST_CIRCLE - 2 : -2] = [".."]
        hint = "take this `use` away, and move what both files need into a file of its own"
        if len(around) == 1:
            hint = "take this `use` away: a file has its own tools"
        notes = [
            (f"{self.sources[n].name} is used here", self.entered[n])
            for n in around[1 : _MOST_CIRCLE - 1]
        ]
        message = f"files use each other in a circle: {' -> '.join(circle)}"
        self._refuse("TCC223", use.path.region, message, hint, notes)

    def _open(self, target: Path, use: ast.UseStatement) -> tuple[ast.Statement, ...] | None:
        region = use.path.region
        if len(self.sources) >= MAX_FILES:
            self._refuse("TCC107", region, f"more than {MAX_FILES} files", "join some of them")
            return None
        data = self.read(target, self.left)
        if isinstance(data, source.Unreadable):
            problem = source.too_large() if data.code == "TCC107" else data
            code = "TCC221" if problem.code == "TCC110" else problem.code
            message = f"{quote(use.path.value)}: {problem.message}"
            hint = problem.hint if code != "TCC221" else None
            self._refuse(code, region, message, hint or _SEEK)
            return None
        self.left -= len(data)
        text = source.decode(data)
        if isinstance(text, source.Unreadable):
            message = f"{quote(use.path.value)}: {text.message}"
            self._refuse(text.code, region, message, text.hint or _SEEK)
            return None
        name = Path(self.sources[0].name).parent / target.relative_to(self.folder or target)
        self.sources.append(source.source_of(text, str(name), target))
        self.numbers[target] = len(self.sources) - 1
        self.entered[len(self.sources) - 1] = region
        statements = parse(self.sources[-1], len(self.sources) - 1, self.report)
        self._take(statements)
        return statements

    def _take(self, statements: tuple[ast.Statement, ...]) -> None:
        for statement in statements:
            if not isinstance(statement, ast.ToolStatement | ast.UseStatement | ast.Broken):
                self.report.error(
                    "TCC224",
                    statement.region,
                    "a used file has 'tool' and 'use' statements and no others",
                    "move it to the grammar, or take it away",
                )
            else:
                self.used.append(statement)


# Which texts may be the version of a grammar, or of a graph.


def version_fault(text: str) -> tuple[str, str] | None:
    """What is wrong with the text of a version, and a hint; None where nothing is."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_VERSION_BYTES:
        message = f"the version takes more than {MAX_VERSION_BYTES} bytes"
        return message, "it stands in the head of every ledger"
    hidden = hidden_in(text)
    if hidden is not None:
        message = f"the version holds U+{ord(hidden):04X}, a control or hidden character"
        return message, "leave it out: a version is shown on terminals and in logs"
    return None
