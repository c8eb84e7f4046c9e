"""Why a call or an end is refused: statements of the grammar, found when somebody asks.

A statement is named where the call would be allowed without it; where no single one decides, the
first smallest set of several without all of which it would be.  The plan is named only where it
refuses by itself.  Where telling takes too much work the reason is `undecided`: nothing innocent is
ever named.  After unknown outcomes it is what forbids in one run of outcomes that they may have
had.

Each statement is stepped along with the calls of a session by itself: the plan's term, the state of
the signatures, a flag a require or forbid, a sum a limit.  From there a core that leaves statements
out is entered in the middle (:mod:`tcc_runtime.gate.reasons.without`), so that no question walks
the calls again.
Text: docs/gate.md.  Semantics of the statements: docs/spec/core.md, section 5.
Cost: a step of all statements for each call, in batches of 128 as the session goes on, so that no
question has a long history to catch up with; then for each set of statements that is tried a
look-up, or a walk ahead the first time, within a bound of work.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, TypeAlias

from tcc_certs.core.enforced import EnforcedTexts, enforced
from tcc_certs.core.model import Core, ForbidNext, OneCall, Repeat, Require
from tcc_certs.corecheck.duties import BROKEN, DutyState, Routes, flags_of, watched_patterns
from tcc_certs.corecheck.letters import WorkBudget, alphabet_of
from tcc_certs.corecheck.outlook import FAR, Forecast
from tcc_certs.corecheck.terms import Derivatives, Term
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.session.machine import Offer, Place, agrees
from tcc_certs.session.records import REFUSALS
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.reasons.without import PLAN, Mask, Standing, Without, told_apart
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.session import APART, Made, Session

_BUILD: Final = 2_000_000  # units of work for the statements of a core, once
_STEPS: Final = 60_000  # for one set of statements that is tried
_ALL_STEPS: Final = 300_000  # for one question
_MOST_TRIALS: Final = 600  # sets of statements for one question
_MOST_KEPT: Final = 60_000  # residuals of all sets, and terms, until they are made anew

_UNDECIDED: Final = "which statements forbid it takes more work to tell than a reason is worth"
_NOWHERE: Final = "an outcome that may have led where nothing goes on"

Ways: TypeAlias = "dict[Place, Standing]"


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

    Where a reason of another session is being found, the next call does it.  Callers have the lock
    of the session, which who is told a reason has not: where it is now is looked at here alone.
    """
    if _LOCK.acquire(blocking=False):
        try:
            trail = _trail_of(session)
            trail.keep_up()
            session.due = trail.at + APART
        except Rejected:  # a reason is then undecided, and says so
            session.due = len(session.made) + APART
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
    session: Session, statements: StatementsAlong, ways: Ways, offer: Offer | None
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


def _statements_of(artifact: Artifact) -> StatementsAlong:
    """The statements of an artifact's core, kept with it until they have grown too large."""
    found = artifact.kept.get("reasons")
    if isinstance(found, Rejected):
        raise found
    if not isinstance(found, StatementsAlong) or found.is_large():
        try:
            found = artifact.kept["reasons"] = StatementsAlong(artifact)
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

    def __init__(self, session: Session, statements: StatementsAlong) -> None:
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
        held = self._session.held
        known = len(held) == 1 and not self._session.lost
        self._follow(self._settled(), held[0] if known else None)

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

    def _follow(self, settled: int, here: Place | None = None) -> None:
        """Follow the session; `here`: where it is now, if that is one place."""
        all_made = len(self._session.made)
        if self.at < settled:
            self.told.clear()
        while self.at < settled:
            until = min(settled, self.at - self.at % APART + APART)
            self._ways = self._then(
                self._ways, self.at, until, (), here if until == all_made else None
            )
            self.at = until
            if until % APART == 0:
                self._marks.append((until, self._ways))

    def _then(
        self,
        ways: Ways,
        first: int,
        last: int,
        unknown: set[int] | tuple[()],
        here: Place | None = None,
    ) -> Ways:
        """The places after the calls from `first` to before `last`.

        Args:
            here: the one that they lead to, where they are all that was made and are known.
        """
        session, statements = self._session, self.statements
        statements.work.allow(_BUILD)
        word = _word(session.made[first:last]) if len(ways) == 1 and not unknown else None
        if word is not None:  # nearly always
            ((place, standing),) = ways.items()
            found = here or self._place(place, word)
            return {} if found is None else {found: statements.after(standing, word)}
        step = session.policy.machine.step
        for at in range(first, last):
            known = session.made[at]
            calls = _may_be(known, at in unknown)
            after: Ways = {}
            for place, standing in ways.items():
                for call in calls:
                    target = place if call is None else step(place, call)
                    if target is not None and target not in after:
                        after[target] = (
                            standing if call is None else statements.after(standing, (call,))
                        )
            ways = after
        return ways

    def _place(self, place: Place, word: Sequence[int]) -> Place | None:
        """Where calls that were done lead; None: nowhere."""
        step, found = self._session.policy.machine.step, place
        for call in word:
            after = step(found, call)
            if after is None:
                return None
            found = after
        return found


def _word(made: Sequence[Made]) -> list[int] | None:
    """The calls of the artifact that were done; None where that is not known of each."""
    word: list[int] = []
    for known in made:
        if known.outcome == "done":
            call = known.offer.calls.get(known.observed or ())
            if call is None:
                return None
            word.append(call)
        elif known.outcome == "unknown":
            return None
    return word


def _may_be(known: Made, unknown: bool) -> Sequence[int | None]:
    """The calls of the artifact that one may have been; None: that it did not happen."""
    if unknown or known.outcome == "unknown":
        return (None, *known.offer.calls.values())
    if known.outcome == "failed":
        return (None,)
    told = known.observed or ()
    if None not in told:
        call = known.offer.calls.get(told)
        return () if call is None else (call,)
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


class StatementsAlong:
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
        self._core = core = told_apart(core)
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
        self._cores: dict[Mask, Without] = {}

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

    def after(self, standing: Standing, word: Sequence[int]) -> Standing:
        """After calls of the artifact."""
        known = self._letter_of
        for call in set(word).difference(known):
            known[call] = self.alphabet.letter_of[core_calls(self._artifact)[call]]
        return self.stepped(standing, [known[call] for call in word])

    def stepped(self, standing: Standing, letters: Sequence[int]) -> Standing:
        """After calls of these letters."""
        control, sums = standing
        steps = self._steps
        for letter in letters:
            after = steps[control].get(letter)
            if after is None:
                after = steps[control][letter] = self._stepped(control, letter)
            control = after
        for letter, times in Counter(letters).items():
            weights = self.alphabet.letters[letter].weights
            sums = tuple([a + times * b for a, b in zip(sums, weights, strict=True)])
        return control, sums

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
        found = PLAN if self.planned[1].of(term) is None else 0
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
            found |= PLAN
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
            return PLAN
        trial = _Trial(self, standing, letters)
        found = _smallest(trial, [bit for bit, _ in self.named[1:]])
        if sum([len(core.stops) for core in self._cores.values()]) > _MOST_KEPT:
            self._cores.clear()
        return found

    def left(self, out: Mask) -> Without:
        """The core without these statements, and without those that are left to the run."""
        out |= self.left_to_run
        found = self._cores.get(out)
        if found is None:
            if len(self._cores) > _MOST_TRIALS:
                self._cores.clear()
            found = self._cores[out] = Without(self, out)
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

    def __init__(self, statements: StatementsAlong, here: Standing, letters: Sequence[int]) -> None:
        self._statements = statements
        self._after = {letter: statements.stepped(here, (letter,)) for letter in letters}
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
        others = [statements.stepped(self._here, (sister,)) for sister in sisters]
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
    if not forced & PLAN:
        alone = trial.allows(sum(statements))
        sure = sure and alone is not None
        forced |= 0 if alone else PLAN
    others = [one for one in statements if not one & forced]
    for size in range(0 if forced else 2, len(others) + 1) if sure else ():
        for more in combinations(others, size):
            allowed = trial.allows(forced | sum(more))
            if allowed is not False:
                return forced | sum(more) if allowed else None
    return None
