"""Lints over monitors: TCC704 and TCC705 for statements that a gate enforces, TCC707 and TCC716.

A statement is redundant if every session of the grammar without it is one with it: the grammar is
compiled once more without the statement, and everything that only the statement contributes (its
shadow in the automaton, too) is gone.  A refutation needs no shortest session, so sessions over a
few values are tried first; what is reported is proved over all values (:mod:`tcc.library.proving`).
Specification: docs/lint.md.  Cost: a compilation and at most `MOST_STATES` states for each
statement; for TCC716 the same for each tool that no short search calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tcc.library import CompileError, check_for_use
from tcc.library.blaming import Blaming, never_finishes, without
from tcc.library.proving import lets_through, prove
from tcc.library.question_statement import statement_core
from tcc_certs.core.mentions import is_across
from tcc_certs.core.model import Core, PolicyMonitor, SumMonitor, Tool
from tcc_certs.core.policies import Ban, Count, Need, Policy
from tcc_certs.formats.codec import decode, written
from tcc_certs.values.declared import NumberType
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.replay import refused_at
from tcc_runtime.exact.search import included, reached_tools, some_session
from tcc_runtime.exact.sides import OfPlans, side_of, statement_side
from tcc_runtime.exact.system import System
from tcc_runtime.exact.writing import WitnessSession

if TYPE_CHECKING:
    from tcc_compiler.frontend import Frontend
    from tcc_compiler.language.source import Region
    from tcc_compiler.lint.finding import LintFinding
    from tcc_compiler.lint.plans import SourceStatement
    from tcc_compiler.options import Options

MOST_STATES: Final = 5_000  # for a question
_FEW_STATES: Final = (400, 3_000)  # for a search over a few values, first and then
_FEW: Final = (1, 2, 8)  # values of an atom
_OVER = "P507"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorLints:
    """Findings, and what remained open: codes of lints, each with the reason."""

    findings: tuple[LintFinding, ...]
    undecided: tuple[tuple[str, str], ...]


def monitor_lints(
    front: Frontend,
    artifact: Artifact,
    options: Options,
    seconds: float | None,
    told: set[tuple[int, int]],
) -> MonitorLints:
    """The lints of a grammar that compiles.

    Args:
        seconds: for all lints; None: only the limit on states.
        told: line and column of statements of the grammar's own file that have a finding already.
    """
    if not artifact.core.monitors:
        return MonitorLints(findings=(), undecided=())
    return _Lints(front, artifact, options, seconds).run(told)


class _Lints:
    def __init__(
        self, front: Frontend, artifact: Artifact, options: Options, seconds: float | None
    ) -> None:
        self._front = front
        self._sources = tuple(front.sources.values())
        self._artifact = artifact
        self._options = options
        self._end = None if seconds is None else time.monotonic() + seconds
        self._findings: list[LintFinding] = []
        self._undecided: list[tuple[str, str]] = []

    def run(self, told: set[tuple[int, int]]) -> MonitorLints:
        """Every statement that a gate holds, then the tools."""
        from tcc_compiler.lint.plans import later_statements, source_statements

        core = self._artifact.core
        data = decode(bytes(self._artifact.file.columns["core"].data), "core")
        later = later_statements(self._front, core, data)
        for item in (*source_statements(self._front, core), *later):
            if any(isinstance(m, PolicyMonitor) and is_across(m.policy) for m in item.monitors):
                continue  # other sessions use it up, however little one of them does
            if item.monitors and self._sources[0].place(item.region.start) not in told:
                found = len(self._findings)
                self._statement(item)
                if len(self._findings) == found:
                    self._parts(item)
        self._tools()
        self._finish()
        return MonitorLints(findings=tuple(self._findings), undecided=tuple(self._undecided))

    def _left(self) -> float | None:
        return None if self._end is None else max(0.001, self._end - time.monotonic())

    def _check(self) -> None:
        if self._end is not None and time.monotonic() > self._end:
            raise OpenQuestion(_OVER, "the time of --timeout is over")

    # Statements.

    def _statement(self, item: SourceStatement) -> None:
        from tcc_compiler.lint.finding import statement_text

        code = "TCC704" if item.is_limit else "TCC705"
        text = statement_text(self._sources, item.region)
        try:
            without = self._without(item)
            if without is None or not self._implied(without, item):
                return
        except OpenQuestion as left:
            self._undecided.append((code, f"{text}: {left.why} ({left.code})"))
            return
        message = f"{text} is redundant: every session meets it without it"
        self._find(code, message, item.region, "take it out, or say in a comment why it stays")

    def _without(self, item: SourceStatement) -> Artifact | None:
        """The grammar without a statement; None where it has too many plans to be one.

        Raises:
            OpenQuestion: P503, it does not compile within the limits.
        """
        options = replace(self._options, check=check_for_use, timeout=self._left())
        try:
            return without(self._front, (item,), options)
        except CompileError as error:
            if {one.code for one in error.diagnostics} & {"TCC401"}:  # infinitely many plans
                return None
            raise OpenQuestion("P503", "without it the grammar does not compile") from None

    def _implied(self, without: Artifact, item: SourceStatement) -> bool:
        """Whether every session of the grammar without a statement meets it.

        Raises:
            OpenQuestion: any code.
        """
        for monitor in item.monitors:
            if self._refuted(without, monitor.text):
                return False
        for monitor in item.monitors:
            found = prove(without, monitor.text, max_states=MOST_STATES, timeout=self._left())
            if found.verdict == "undecided":
                raise OpenQuestion(found.codes[0], found.whys[0])
            if not found.proved:
                return False
        if _same_plans(without, self._artifact):
            return True
        # Its shadow cuts plans, and with them beginnings that no monitor refuses.
        left = self._left()
        found = prove(without, implies=self._artifact, max_states=MOST_STATES, timeout=left)
        if found.verdict == "undecided":
            raise OpenQuestion(found.codes[0], found.whys[0])
        return found.proved

    def _refuted(self, artifact: Artifact, text: str) -> bool:
        """Whether a session over a few values does not meet a statement; it is replayed."""
        for states in _FEW_STATES:
            for system, core in self._narrowed(artifact, text):
                session = self._some_session(system, states)
                if session is None or not lets_through(artifact, session):
                    continue
                if refused_at(statement_side(core), session) is not None:
                    return True
        return False

    def _some_session(self, system: System, states: int) -> WitnessSession | None:
        try:
            return some_session(system, max_states=states, check_time=self._check)
        except OpenQuestion as left:
            if left.code == _OVER:
                raise
            return None

    def _narrowed(self, artifact: Artifact, text: str | None) -> Iterator[tuple[System, Core]]:
        """The grammar over a few values beside a statement, or beside itself."""
        wide = artifact.core if text is None else statement_core(artifact.core, text, text)[0]
        tries = [(few, core) for few in _FEW for core in _narrow_cores(artifact.core, wide)]
        if text is not None and any(isinstance(one, SumMonitor) for one in wide.monitors):
            tries.reverse()  # many greatest values break a sum
        for few, core in tries:
            try:
                left = right = side_of(core, OfPlans(artifact))
                if text is not None:
                    right = statement_side(replace(wide, tools=core.tools))
                system = System(left, right)
                for atom in system.atoms:
                    atom.keep(few)
            except OpenQuestion:
                continue
            yield system, wide

    def _parts(self, item: SourceStatement) -> None:
        """Alternatives and conditions of statements of 1.2 without which nothing changes."""
        code = "TCC704" if item.is_limit else "TCC705"
        for monitor in item.monitors:
            if not isinstance(monitor, PolicyMonitor):
                continue
            for what, policy, wider in _less(monitor.policy):
                try:
                    idle = self._is_idle(monitor, policy, wider=wider)
                except OpenQuestion as left:
                    self._undecided.append(
                        (code, f"{what} of `{monitor.text}`: {left.why} ({left.code})")
                    )
                    return
                if idle:
                    message = f"{what} of `{monitor.text}` changes nothing: no session needs it"
                    self._find(code, message, item.region, "take it out, or say why it stays")

    def _is_idle(self, monitor: PolicyMonitor, policy: Policy, *, wider: bool) -> bool:
        """Whether the grammar with a statement that has a part less has the same sessions.

        Args:
            wider: whether it lets more through than the statement of the grammar.

        Raises:
            OpenQuestion: any code.
        """
        core = self._artifact.core
        less = PolicyMonitor(policy=policy, text=monitor.text)
        left, asked = core, less
        if wider:
            others = [less if one is monitor else one for one in core.monitors]
            left, asked = replace(core, monitors=tuple(others)), monitor
        bare = replace(core, limits=(), requires=(), forbids=(), monitors=(asked,))
        found = included(
            lambda: System(side_of(left, OfPlans(self._artifact)), statement_side(bare)),
            lambda session: True,  # it has times: something of the part is needed
            max_states=MOST_STATES,
            check_time=self._check,
        )
        if found.holds is None:
            raise OpenQuestion(found.codes[0], found.whys[0])
        return found.holds

    # Tools.

    def _tools(self) -> None:
        """TCC716, of tools that plans call."""
        core, called = self._artifact.core, set[int]()
        used = self._used()
        try:
            for system, _ in self._narrowed(self._artifact, None):
                called |= reached_tools(system, _FEW_STATES[-1], self._check)[0]
                if used <= called:
                    return
            for tool in sorted(used - called):
                self._tool(core.tools[tool])
        except OpenQuestion as left:
            self._undecided.append(("TCC716", f"{left.why} ({left.code})"))

    def _used(self) -> set[int]:
        """The tools that a plan calls; others are unused (TCC701)."""
        calls = {call.text: call.tool for call in self._artifact.core.calls}
        return {calls[text] for text in self._artifact.texts}

    def _tool(self, tool: Tool) -> None:
        program = self._front.program
        name = written(tool.name)
        found = prove(self._artifact, reachable=name, max_states=MOST_STATES, timeout=self._left())
        if found.verdict == "undecided":
            raise OpenQuestion(found.codes[0], f"whether `{name}` can be called: {found.whys[0]}")
        if found.verdict == "proved" or program is None:
            return
        region = program.tools[tool.name].name.region
        message = f"no session calls `{name}`: monitors refuse it wherever a plan has it"
        self._find("TCC716", message, region, f'`tcc why G --reachable "{name}"` says by what')

    # The end.

    def _finish(self) -> None:
        """TCC707: statements with which no session can finish, though plans do."""
        try:
            if self._refuted(self._artifact, never_finishes(self._artifact)):
                return
        except OpenQuestion as left:
            self._undecided.append(("TCC707", f"{left.why} ({left.code})"))
            return
        blaming = Blaming(
            self._front,
            self._artifact,
            self._options,
            max_states=MOST_STATES,
            seconds=self._left(),
        )
        try:
            found = blaming.blamed(None)
        except OpenQuestion as left:
            self._undecided.append(("TCC707", f"{left.why} ({left.code})"))
            return
        if found.verdict == "undecided":
            why = "whether a session can finish was not decided"
            self._undecided.append(("TCC707", f"{why} ({found.codes[0]})"))
        if found.verdict != "impossible" or not found.because:
            return
        from tcc_compiler.lint.finding import statement_text

        *others, last = found.because
        texts = [statement_text(self._sources, one.region) for one in found.because]
        if not others:
            message = f"{texts[-1]} lets no session finish"
        elif len(others) == 1:
            message = f"{texts[-1]} and {texts[0]} let no session finish together"
        else:
            message = (
                f"{texts[-1]} and {len(others)} other statements let no session finish together"
            )
        hint = "change one of them; `tcc why G --finish` asks again"
        self._find("TCC707", message, last.region, hint, [one.region for one in others])

    def _find(
        self,
        code: str,
        message: str,
        region: Region,
        hint: str,
        others: Sequence[Region] = (),
    ) -> None:
        from tcc_compiler.language.diagnostics import Diagnostic, Note
        from tcc_compiler.lint.finding import LintFinding

        diagnostic = Diagnostic(
            code=code,
            severity="warning",
            message=message,
            span=self._sources[region.source].span(region),
            hint=hint,
            notes=tuple(
                Note(
                    message="it cannot stand with this",
                    span=self._sources[other.source].span(other),
                )
                for other in others
            ),
        )
        self._findings.append(LintFinding(diagnostic=diagnostic))


def _less(policy: Policy) -> Iterator[tuple[str, Policy, bool]]:
    """What a part of a statement is called, the statement without it, and whether that is wider."""
    if isinstance(policy, Count) and policy.where:
        yield "the condition", replace(policy, where=()), False
    if not isinstance(policy, Need | Ban):
        return
    wider = isinstance(policy, Ban)
    for at, one in enumerate(policy.alternatives):
        rest = (*policy.alternatives[:at], *policy.alternatives[at + 1 :])
        if rest:
            yield f"alternative {at + 1}", replace(policy, alternatives=rest), wider
        if one.where and one.calls is not None:
            rest = (
                *policy.alternatives[:at],
                replace(one, where=()),
                *policy.alternatives[at + 1 :],
            )
            what = f"the condition of alternative {at + 1}"
            yield what, replace(policy, alternatives=rest), not wider
    if isinstance(policy, Ban) and policy.unless:
        yield "`unless`", replace(policy, unless=()), False


def _same_plans(one: Artifact, other: Artifact) -> bool:
    """Whether two artifacts have the same automaton and the same calls, and leave nothing else."""
    of = [
        {name: bytes(column.data) for name, column in each.file.columns.items() if name != "core"}
        for each in (one, other)
    ]
    return of[0] == of[1] and one.manifest.relaxed == other.manifest.relaxed


def _narrow_cores(core: Core, asked: Core) -> Iterator[Core]:
    """The core with one value of each parameter that is added up: its least, then its greatest."""
    monitors = (*core.monitors, *asked.monitors)
    summed = {(one.tool, one.parameter) for one in monitors if isinstance(one, SumMonitor)}
    if not summed:
        yield core
        return
    picks: tuple[Callable[[Fraction, Fraction], int], ...] = (
        lambda low, high: -(-low.numerator // low.denominator),
        lambda low, high: high.numerator // high.denominator,
    )
    for pick in picks:
        tools = []
        for at, tool in enumerate(core.tools):
            fields = []
            for one in tool.opened:
                kind = one.type
                if (at, one.name) in summed and isinstance(kind, NumberType) and kind.low:
                    value = pick(Fraction(kind.low), Fraction(kind.high or kind.low))
                    if Fraction(kind.low) <= value <= Fraction(kind.high or kind.low):
                        kind = NumberType(whole=True, low=str(value), high=str(value))
                fields.append(replace(one, type=kind))
            tools.append(replace(tool, opened=tuple(fields)))
        yield replace(core, tools=tuple(tools))
