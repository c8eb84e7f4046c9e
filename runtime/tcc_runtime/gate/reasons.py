"""Why a call or an end is refused: statements of the grammar, found when somebody asks.

A statement is named where the call would be allowed without it; where no single one decides, the
first smallest set of several without all of which it would be.  The plan is named only where it
refuses by itself.  Where telling takes too much work the reason is `undecided`: nothing innocent is
ever named.  After unknown outcomes it is what forbids in one run of outcomes that they may have
had.

Each statement is stepped along with the calls of a session by itself: the plan's term, the state of
the signatures, a flag a require or forbid, a sum a limit.  From there a core that leaves statements
out is entered in the middle (:class:`_Without`), so that no question walks the calls again.
Text: docs/gate.md.  Semantics of the statements: docs/spec/core.md, section 5.
Cost: a step of all statements for each call, in batches of 128 as the session goes on, so that no
question has a long history to catch up with; then for each set of statements that is tried a
look-up, or a walk ahead the first time, within a bound of work.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import combinations
from operator import add
from typing import Final, TypeAlias

from tcc_certs.core.enforced import EnforcedTexts, enforced
from tcc_certs.core.model import Core, ForbidNext, OneCall, Repeat, Require
from tcc_certs.corecheck.duties import (
    BROKEN,
    Duties,
    DutyState,
    Flag,
    Routes,
    flags_of,
    watched_patterns,
)
from tcc_certs.corecheck.letters import WorkBudget, alphabet_of
from tcc_certs.corecheck.outlook import FAR, Forecast
from tcc_certs.corecheck.residuals import Drain, Meters, Residuals
from tcc_certs.corecheck.terms import Derivatives, Term
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.session.machine import Offer, Place, agrees
from tcc_certs.session.records import REFUSALS
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.session import Made, Session

_BUILD: Final = 2_000_000  # units of work for the statements of a core, once
_STEPS: Final = 60_000  # for one set of statements that is tried
_ALL_STEPS: Final = 300_000  # for one question
_MOST_TRIALS: Final = 600  # sets of statements for one question
_MOST_KEPT: Final = 60_000  # residuals of all sets, and terms, until they are made anew
_APART: Final = 128  # calls between two places of a session that are kept

_UNDECIDED: Final = "which statements forbid it takes more work to tell than a reason is worth"
_NOWHERE: Final = "an outcome that may have led where nothing goes on"

Mask: TypeAlias = int  # a set of statements; bit 0 is the plan
Standing: TypeAlias = "tuple[int, tuple[int, ...]]"  # a control, and the sum of each meter so far
Ways: TypeAlias = "dict[Place, Standing]"
_PLAN: Final = 1


def reasons(
    session: Session,
    made: int,
    code: Code,
    place: str,
    offer: Offer | None,
    *,
    resolved: int,
    under_way: Sequence[int],
) -> list[Reason]:
    """What forbids a call of `offer`, or an end where that is None, after the first `made` calls.

    Args:
        code: of the refusal.
        place: the monitor, where it is one.
        resolved: how many outcomes were resolved by then; what was told later was unknown.
        under_way: the numbers of those that were.
    """
    if code in (Code.MONITOR_FORBIDS, Code.MANY_EARLIER) or (code is Code.MAY_NOT_FINISH and place):
        return [{"kind": "monitor", "text": place}]
    planned = code in (Code.NOT_PLANNED, Code.STATEMENT_FORBIDS) and offer is not None
    if not planned and code is not Code.MAY_NOT_FINISH:
        return [{"kind": "gate", "text": REFUSALS[code]}]
    with _LOCK:
        try:
            return _asked(session, made, offer, resolved, under_way)
        except Rejected:
            return [{"kind": "undecided", "text": _UNDECIDED}]


_LOCK: Final = threading.Lock()  # what is kept with an artifact is that of all its sessions


def keep_up(session: Session) -> None:
    """Step the statements along with a session that has gone on by a batch of calls.

    Where a reason of another session is being found, the next call does it.
    """
    trail = session.trail
    behind = len(session.made) - (trail.at if isinstance(trail, _Trail) else 0)
    if behind >= _APART and _LOCK.acquire(blocking=False):
        try:
            _trail_of(session).keep_up()
        except Rejected:
            pass  # a reason is then undecided, and says so
        finally:
            _LOCK.release()


def _trail_of(session: Session) -> _Trail:
    statements = _statements_of(session.policy.artifact)
    trail = session.trail
    if not isinstance(trail, _Trail) or trail.statements is not statements:
        trail = session.trail = _Trail(session, statements)
    statements.work.allow(_BUILD)
    return trail


def _asked(
    session: Session, made: int, offer: Offer | None, resolved: int, under_way: Sequence[int]
) -> list[Reason]:
    trail = _trail_of(session)
    statements = trail.statements
    key = made, None if offer is None else offer.text, resolved, under_way
    found = trail.told.get(key)
    if found is None:
        ways = trail.ways(made, resolved, under_way)
        found = trail.told[key] = _found(session, statements, ways, offer)
    return list(found)


def _found(
    session: Session, statements: _Statements, ways: Ways, offer: Offer | None
) -> list[Reason]:
    machine = session.policy.machine
    for place in sorted(ways):
        if offer is None and not machine.accepts(place):
            chosen: Mask | None = statements.unmet(ways[place])
        elif offer is not None and not session.policy.leads_on(place, offer):
            chosen = statements.blamed(ways[place], statements.letters(offer))
        else:
            continue
        if not chosen:
            return [{"kind": "undecided", "text": _UNDECIDED}]
        return [reason for bit, reason in statements.named if bit & chosen]
    return [{"kind": "unknown", "text": _NOWHERE}]


def _statements_of(artifact: Artifact) -> _Statements:
    """The statements of an artifact's core, kept with it until they have grown too large."""
    found = artifact.kept.get("reasons")
    if isinstance(found, Rejected):
        raise found
    if not isinstance(found, _Statements) or found.is_large():
        try:
            found = artifact.kept["reasons"] = _Statements(artifact)
        except Rejected as error:
            artifact.kept["reasons"] = error
            raise
    return found


class _Trail:
    """Where a session stands in each statement.

    Attributes:
        at: how many calls of the session were stepped through.
        statements: of its artifact.
        told: reasons for what was asked since the session went on.
    """

    __slots__ = ("_marks", "_resolved", "_session", "_ways", "at", "statements", "told")

    def __init__(self, session: Session, statements: _Statements) -> None:
        self.statements = statements
        self.told: dict[object, list[Reason]] = {}
        self._session = session
        self._ways: Ways = {session.policy.machine.start[0]: statements.start}
        self.at = 0
        self._marks: list[tuple[int, Ways]] = [(0, self._ways)]
        self._resolved = 0

    def ways(self, made: int, resolved: int, under_way: Sequence[int]) -> Ways:
        """For each place a run of outcomes that leads there, as was known then."""
        session = self._session
        told_late = session.resolved[resolved:]
        unknown = {at for at in told_late if at < made} | {seq - 1 for seq in under_way}
        self._take_back()
        settled = min([made, *unknown])
        if self.at <= settled and not told_late:
            self._follow(min(settled, self._settled()))
            return self._then(self._ways, self.at, made, unknown)
        first = min([settled, *unknown])
        at, ways = next(mark for mark in reversed(self._marks) if mark[0] <= first)
        return self._then(ways, at, made, unknown)

    def keep_up(self) -> None:
        """Follow the session, but for what lies behind a call that is under way."""
        self._take_back()
        self._follow(self._settled())

    def _settled(self) -> int:
        """How many calls there are before the first that is under way now."""
        session = self._session
        return min([len(session.made), *[seq - 1 for seq in session.under_way]])

    def _take_back(self) -> None:
        """Forget the places behind a call whose outcome was resolved since."""
        new = self._session.resolved[self._resolved :]
        first = min(new, default=self.at)
        self._resolved += len(new)
        if first < self.at:
            while self._marks[-1][0] > first:
                self._marks.pop()
            self.at, self._ways = self._marks[-1]
            self.told.clear()

    def _follow(self, settled: int) -> None:
        if self.at < settled:
            self.told.clear()
        while self.at < settled:
            until = min(settled, self.at - self.at % _APART + _APART)
            self._ways = self._then(self._ways, self.at, until, ())
            self.at = until
            if until % _APART == 0:
                self._marks.append((until, self._ways))

    def _then(self, ways: Ways, first: int, last: int, unknown: set[int] | tuple[()]) -> Ways:
        """The places after the calls from `first` to before `last`."""
        step, stepped = self._session.policy.machine.step, self.statements.step
        self.statements.work.allow(_BUILD)
        for at in range(first, last):
            known = self._session.made[at]
            calls = _may_be(known, at in unknown)
            after: Ways = {}
            for place, standing in ways.items():
                for call in calls:
                    target = place if call is None else step(place, call)
                    if target is not None and target not in after:
                        after[target] = standing if call is None else stepped(standing, call)
            ways = after
        return ways


def _may_be(known: Made, unknown: bool) -> Sequence[int | None]:
    """The calls of the artifact that one may have been; None: that it did not happen."""
    if unknown or known.outcome == "unknown":
        return (None, *known.offer.calls.values())
    if known.outcome == "failed":
        return (None,)
    told = known.observed or ()
    return [call for one, call in known.offer.calls.items() if agrees(one, told)]


class _Work(WorkBudget):
    """Units of work, counted anew for each thing that is tried."""

    __slots__ = ()

    def allow(self, units: int) -> None:
        """So many from here on."""
        self._left = units

    def left(self) -> int:
        """How many are left."""
        return max(0, self._left)


class _Statements:
    """The statements of a core, and how a call changes where a session stands in each.

    Attributes:
        named: for each statement its bit and the reason that names it, in order.
        start: where a session stands before its first call.
        work: what may be spent on a question.
        left_to_run: the statements that an automaton does not hold: nothing is looked ahead for.
    """

    def __init__(self, artifact: Artifact) -> None:
        core, self.work = artifact.core, _Work(_BUILD)
        self._artifact = artifact
        self._core = core = _told_apart(core)
        self.alphabet = alphabet_of(core, self.work)
        self.flags = flags_of(core, self.alphabet)
        self.routes = Routes(core, self.alphabet.letters)
        self._watched = watched_patterns(core)
        self.planned = self._terms_of(core)
        every = replace(core, rules={}, plan=Repeat(OneCall(len(core.patterns) - 1), 0, None))
        self.free = self._terms_of(every)
        self._number(artifact.core, artifact.relaxed)
        self._controls: dict[tuple[Term, DutyState], int] = {}
        self.controls: list[tuple[Term, DutyState]] = []
        self._steps: list[dict[int, int]] = []
        zero = DutyState(self.routes.start, (0,) * len(self.flags))
        none = (0,) * len(self.alphabet.bounds)
        self.start: Standing = self._control(self.planned[0].plan, zero), none
        self._letter_of: dict[int, int] = {}
        self._letters: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
        self._cores: dict[Mask, _Without] = {}

    def _terms_of(self, core: Core) -> tuple[Derivatives, Forecast]:
        terms = Derivatives(core, self.alphabet, self.work)
        return terms, Forecast(terms, self.alphabet, self._watched, self.work)

    def _number(self, core: Core, relaxed: Relaxed | None) -> None:
        """A bit for each statement, in the order of the texts."""
        texts = iter(enforced(core, None).automaton)
        self.named: list[tuple[Mask, Reason]] = []

        def bit(kind: str, text: str, remedy: str = "") -> Mask:
            more = {"remedy": remedy} if remedy else {}
            self.named.append((1 << len(self.named), {"kind": kind, "text": text, **more}))
            return self.named[-1][0]

        bit("plan", next(texts))
        signed = core.start is not None
        self.signed = bit("start", f"{next(texts)} {next(texts)}") if signed else 0
        tools = [at for at, tool in enumerate(core.tools) if tool.strict]
        self.strict = {at: bit("strict", next(texts)) for at in tools}
        limits = [(limit, bit("limit", next(texts))) for limit in core.limits]
        say = EnforcedTexts(core)
        duties = [bit("require", next(texts), _remedy(say, one)) for one in core.requires]
        self.duties = [*duties, *(bit("forbid", next(texts)) for _ in core.forbids)]
        # The first meter is the depth, whatever the number of its limits.
        self.depths = [(limit.value, of) for limit, of in limits if limit.kind == "depth"]
        rest = [(limit, of) for limit, of in limits if limit.kind != "depth"]
        self.meters = [of for _, of in rest]
        self._bounds = [-limit.value if limit.least else limit.value for limit, _ in rest]
        self._most = [FAR if limit.least else limit.value for limit, _ in rest]
        left = Relaxed() if relaxed is None else relaxed
        first = len(core.requires)
        self.left_to_run = sum(
            [
                *(limits[at][1] for at in left.limits),
                *(self.duties[at] for at in left.requires),
                *(self.duties[first + at] for at in left.forbids),
            ]
        )
        self.every = (1 << len(self.named)) - 1

    def is_large(self) -> bool:
        """Whether so much is kept that it is to be made anew."""
        return len(self.planned[0].nodes) + len(self.controls) > _MOST_KEPT + len(self._letters)

    # Where a session stands.

    def _control(self, term: Term, state: DutyState) -> int:
        number = self._controls.setdefault((term, state), len(self.controls))
        if number == len(self.controls):
            self.work.spend(4 + len(state.flags))
            self.controls.append((term, state))
            self._steps.append({})
        return number

    def step(self, standing: Standing, call: int) -> Standing:
        """After a call of the artifact."""
        letter = self._letter_of.get(call)
        if letter is None:
            letter = self.alphabet.letter_of[core_calls(self._artifact)[call]]
            self._letter_of[call] = letter
        return self._step(standing, letter)

    def _step(self, standing: Standing, letter: int) -> Standing:
        control, sums = standing
        after = self._steps[control].get(letter)
        if after is None:
            after = self._steps[control][letter] = self._stepped(control, letter)
        weights = self.alphabet.letters[letter].weights
        return after, tuple(map(add, sums, weights))

    def _stepped(self, control: int, letter: int) -> int:
        """What is broken stays broken."""
        term, state = self.controls[control]
        after = self.planned[0].derivative(term, self.alphabet.letters[letter].group)
        pairs = zip(self.flags, state.flags, strict=True)
        flags = tuple([s if s == BROKEN else flag.step(s, letter) for flag, s in pairs])
        return self._control(after, DutyState(self.routes.move(state.place, letter), flags))

    def letters(self, offer: Offer) -> tuple[int, ...]:
        """Those of an offer's calls in the core, also of such as no plan of the artifact has."""
        listed = tuple([value for value in offer.values if value is not None])
        key = offer.tool, listed
        if key not in self._letters:
            found: dict[tuple[int, ...], dict[int, None]] = {}
            split = len(listed)
            for call, letter in zip(self._core.calls, self.alphabet.letter_of, strict=True):
                if call.tool == offer.tool:
                    found.setdefault(call.values[:split], {})[letter] = None
            self._letters[key] = ()
            for values, letters in found.items():
                self._letters[offer.tool, values] = tuple(letters)
        return self._letters[key]

    # What the statements say.

    def broken(self, standing: Standing) -> Mask:
        """The statements that nothing goes on with by themselves, as far as is seen at once."""
        control, sums = standing
        term, state = self.controls[control]
        found = _PLAN if self.planned[1].of(term) is None else 0
        if state.place == BROKEN or self.routes.least_calls[state.place] == FAR:
            found |= self.signed
        for flag, of in zip(state.flags, self.duties, strict=True):
            if flag == BROKEN:
                found |= of
        for most, of in self.depths:
            found |= of * (sums[0] > most)
        for total, most, of in zip(sums[1:], self._most, self.meters, strict=True):
            found |= of * (total > most)
        return found

    def unmet(self, standing: Standing) -> Mask:
        """The statements that do not let a plan end here: each by itself, so it is all of them."""
        control, sums = standing
        term, state = self.controls[control]
        found = self.broken(standing)
        if not self.planned[0].nullable[term]:
            found |= _PLAN
        if state.place == BROKEN or self.routes.least_calls[state.place]:
            found |= self.signed
        for flag, value, of in zip(self.flags, state.flags, self.duties, strict=True):
            if value != BROKEN and not flag.met(value):
                found |= of
        for total, most, of in zip(sums[1:], self._bounds, self.meters, strict=True):
            found |= of * (total > most)
        return found

    def blamed(self, standing: Standing, letters: Sequence[int]) -> Mask | None:
        """What keeps every call of `letters` from being made here; None where that is not told."""
        if not letters:
            return _PLAN
        trial = _Trial(self, standing, letters)
        found = _smallest(trial, [bit for bit, _ in self.named[1:]])
        if sum([len(core.stops) for core in self._cores.values()]) > _MOST_KEPT:
            self._cores.clear()
        return found

    def left(self, out: Mask) -> _Without:
        """The core without these statements, and without those that are left to the run."""
        out |= self.left_to_run
        found = self._cores.get(out)
        if found is None:
            if len(self._cores) > _MOST_TRIALS:
                self._cores.clear()
            found = self._cores[out] = _Without(self, out)
        return found

    def sisters(self, letter: int, out: Mask) -> tuple[int, ...] | None:
        """The letters of all answers to a strict call, where its tool is not left out."""
        one = self.alphabet.letters[letter]
        if one.sisters is None or self.strict[self._core.calls[one.calls[0]].tool] & out:
            return None
        return one.sisters

    def bounds(self, out: Mask) -> tuple[int | None, ...]:
        """The most of each meter; None where its limits are left out."""
        depths = [most for most, of in self.depths if not of & out]
        pairs = zip(self._bounds, self.meters, strict=True)
        return (min(depths, default=None), *(None if of & out else most for most, of in pairs))


def _remedy(say: EnforcedTexts, one: Require) -> str:
    """The calls of which one has to come first."""
    if one.order == "after":
        return ""
    return say.of(ForbidNext((one.first,))).removeprefix("forbid ")


class _Trial:
    """One call that is refused, and whether a core that leaves statements out allows it.

    Attributes:
        forced: the statements that forbid it by themselves, as far as is seen at once.
    """

    def __init__(self, statements: _Statements, here: Standing, letters: Sequence[int]) -> None:
        self._statements = statements
        self._after = {letter: statements._step(here, letter) for letter in letters}
        self._here = here
        self._broken = {letter: statements.broken(s) for letter, s in self._after.items()}
        self._left = _ALL_STEPS
        self._trials = _MOST_TRIALS
        self.forced = statements.every
        for broken in self._broken.values():
            self.forced &= broken

    def allows(self, out: Mask) -> bool | None:
        """Whether it is allowed without `out`; None where that takes too much work to tell."""
        work = self._statements.work
        if self._left <= 0 or self._trials <= 0:
            return None
        self._trials -= 1
        allowed = min(_STEPS, self._left)
        work.allow(allowed)
        try:
            return any(self._goes(letter, out) for letter in self._after)
        except Rejected:
            return None
        finally:
            self._left -= allowed - work.left()

    def _goes(self, letter: int, out: Mask) -> bool:
        if self._broken[letter] & ~out:
            return False
        statements = self._statements
        left = statements.left(out)
        sisters = statements.sisters(letter, out)
        if sisters is None:
            return left.lives(self._after[letter])
        # A strict call is made only where a plan goes on after each of its answers.
        held = ~(out | statements.left_to_run)
        others = [statements._step(self._here, sister) for sister in sisters]
        return bool(others) and all(
            not statements.broken(s) & held and left.lives(s) for s in others
        )


def _smallest(trial: _Trial, statements: Sequence[Mask]) -> Mask | None:
    """Each single statement that is enough to leave out; else the first smallest set of several."""
    forced = trial.forced
    if trial.allows(0) is not False:
        return None
    sure = True
    if not forced & (forced - 1):  # one at most, so that a single statement may be enough
        singles = [forced] if forced else statements
        said = [(one, trial.allows(one)) for one in singles]
        enough = sum([one for one, allowed in said if allowed])
        if enough:
            return enough
        sure = all(allowed is False for _, allowed in said)
    if not forced & _PLAN:
        alone = trial.allows(sum(statements))
        sure = sure and alone is not None
        forced |= 0 if alone else _PLAN
    others = [one for one in statements if not one & forced]
    for size in range(0 if forced else 2, len(others) + 1) if sure else ():
        for more in combinations(others, size):
            allowed = trial.allows(forced | sum(more))
            if allowed is not False:
                return forced | sum(more) if allowed else None
    return None


def _told_apart(core: Core) -> Core:
    """The core with a call set for each strict tool, which no letter mixes, and one of all."""
    size = len(core.calls)
    calls: dict[int, list[tuple[int, int]]] = {
        at: [] for at, tool in enumerate(core.tools) if tool.strict
    }
    for number, call in enumerate(core.calls):
        if call.tool in calls:
            calls[call.tool].append((number, number + 1))
    sets = [tuple(found) for found in calls.values()]
    return replace(core, patterns=(*core.patterns, *sets, ((0, size),)))


class _Free:
    """A require or a forbid that is left out."""

    __slots__ = ()

    def step(self, state: int, letter: int) -> int:
        return 0

    def settle(self, state: int, touched: int) -> int:
        return 0

    def met(self, state: int) -> bool:
        return True


class _Anywhere(Routes):
    """Signatures that are left out: one state, and it is a goal."""

    __slots__ = ()

    def __init__(self) -> None:
        self.start = 0
        self.least_calls = [0]

    def move(self, place: int, letter: int) -> int:
        return place


class _Duties(Duties):
    """The signatures, requires and forbids that are not left out, at their old places."""

    __slots__ = ()

    def __init__(self, flags: Sequence[Flag], routes: Routes) -> None:
        self._flags = tuple(flags)
        self._routes = routes
        self.start = DutyState(routes.start, (0,) * len(self._flags))


class _Without(Residuals):
    """The residuals of a core without some statements, entered where a session stands.

    Nothing of it depends on how the session came there.
    """

    __slots__ = ("_alive", "_kept", "_out", "_rows", "_signed", "_sisters", "_statements")

    def __init__(self, statements: _Statements, out: Mask) -> None:
        work = statements.work
        work.spend(len(statements.named) + len(statements.alphabet.letters))
        self._statements = statements
        self._out = out
        self._budget = work
        self.alphabet = replace(statements.alphabet, bounds=statements.bounds(out))
        self._terms, self._forecast = statements.free if out & _PLAN else statements.planned
        self._partials = None
        self._kept = [not of & out for of in statements.duties]
        flags = [
            flag if kept else _Free()
            for flag, kept in zip(statements.flags, self._kept, strict=True)
        ]
        self._signed = not statements.signed & out
        self._duties = _Duties(flags, statements.routes if self._signed else _Anywhere())
        self._meters = Meters(self.alphabet)
        self._controls = {}
        self._arrivals = {}
        self._begun, self._after, self._tables = {}, {}, {}
        self.control = []
        self.left = []
        self.stops = []
        self.first = None
        self._alive: dict[int, bool] = {}
        self._rows: dict[int, Mapping[int, int]] = {}
        strict = [(at, statements.sisters(at, out)) for at in range(len(self.alphabet.letters))]
        self._sisters = {letter: sisters for letter, sisters in strict if sisters is not None}

    def lives(self, standing: Standing) -> bool:
        """Whether a plan of this core goes on from there, and ends."""
        at = self._entered(standing)
        return at is not None and self._is_alive(at)

    def _entered(self, standing: Standing) -> int | None:
        """The residual of what was called; None where it is seen to have no plan."""
        control, sums = standing
        term, state = self._statements.controls[control]
        term = self._terms.plan if self._out & _PLAN else term
        ahead = self._forecast.of(term)
        pairs = zip(state.flags, self._kept, strict=True)
        flags = tuple([value if kept else 0 for value, kept in pairs])
        place = state.place if self._signed else 0
        if ahead is None:
            return None
        settled = self._duties.settle(DutyState(place, flags), ahead.touched)
        if settled is None:
            return None
        drain = Drain(self._meters, sums, ahead, self._duties.least_calls(settled))
        left = drain[self._meters.start]
        return None if left is None else self._control_of(term, settled)[left]

    def _row(self, at: int) -> Mapping[int, int]:
        """The residuals after each letter."""
        row = self._rows.get(at)
        if row is None:
            left = self.left[at]
            moves = self.moves(at)
            self._budget.spend(len(moves))
            arrived = [(letter, arrivals[left]) for letter, arrivals in moves]
            row = self._rows[at] = {letter: to for letter, to in arrived if to is not None}
        return row

    def _is_alive(self, first: int) -> bool:
        """Whether a plan goes on from a residual, and ends; strict tools are held to.

        What is known to be dead only grows, so this comes to an end.
        """
        while first not in self._alive:
            self._alive.update(dict.fromkeys(self._witness(first), True))
        return self._alive[first]

    def _witness(self, first: int) -> Mapping[int, None]:
        """Residuals each of which goes on to an end among them, and the answers to strict calls.

        Nothing where one of them turns out to be dead.
        """
        found: dict[int, None] = {}
        todo = [first]
        while todo:
            at = todo.pop()
            if at in found or self._alive.get(at):
                continue
            path = self._path(at, found)
            if path is None:
                return {}
            for at, letter in path:
                found[at] = None
                todo.extend([self._row(at)[sister] for sister in self._sisters.get(letter, ())])
        return found

    def _path(self, first: int, found: Mapping[int, None]) -> list[tuple[int, int]] | None:
        """Residuals and letters on the way to an end, those that seem the nearest first.

        Where there is none, all that was met is dead.
        """
        came: dict[int, tuple[int, int, int]] = {first: (-1, -1, 0)}
        todo = [(self._nearest(first), 0, first)]
        while todo:
            at = heappop(todo)[2]
            if self.stops[at] or at in found or self._alive.get(at):
                return self._way(at, came)
            calls = came[at][2] + 1
            for letter, target in self._row(at).items():
                if target not in came and self._stays(at, letter):
                    came[target] = at, letter, calls
                    heappush(todo, (calls + self._nearest(target), len(came), target))
        self._alive.update(dict.fromkeys(came, False))
        return None

    def _way(self, last: int, came: Mapping[int, tuple[int, int, int]]) -> list[tuple[int, int]]:
        way = [(last, -1)]
        before, letter, _ = came[last]
        while before >= 0:
            way.append((before, letter))
            before, letter, _ = came[before]
        return way

    def _nearest(self, at: int) -> int:
        """The fewest calls that its term ends after."""
        ahead = self._forecast.of(self.control[at].term)
        return 0 if ahead is None else ahead.low[0]

    def _stays(self, at: int, letter: int) -> bool:
        """Whether nothing after the letter, or after its sisters, is known to be dead."""
        row, sisters = self._row(at), self._sisters.get(letter)
        if sisters is None:
            return self._alive.get(row[letter]) is not False
        targets = [row.get(sister) for sister in sisters]
        return bool(targets) and all(
            to is not None and self._alive.get(to) is not False for to in targets
        )
