"""The automaton against its core: at every prefix both allow the same calls and ends.

The walk goes through the automaton and, beside it, through the residuals of the core
(:mod:`tcc_certs.corecheck.residuals`): a term, the states of the tables of statements, and the
remainders of sums.  A pair agrees if both may stop or neither (G101), every call with an edge leads
to a pair that agrees, and no call without an edge can still finish (G102).  The walk searches the
residuals after such calls, and none of them may stop.  The automaton is finite and its states are
alive and distinct (C1 to C6).  So if all pairs agree, its plans are exactly those of the core; C8
shows that the calls are the same.  A call of a strict tool may lack an edge although it could
finish, if strict requires it (:mod:`tcc_certs.corecheck.graphs`).  Relaxed statements are omitted,
and so is what an automaton with cycles leaves to the gate.
A nondeterministic artifact is the graph of the partial derivatives of its core: the check builds
this graph again, and its root must have the same digest (G103).
Normative text: docs/spec/artifact.md, section 9.
Cost: pairs times letters; the check declines above a bound (D201).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.corecheck.graphs import StrictCut, derivative_graph
from tcc_certs.corecheck.letters import Alphabet, WorkBudget
from tcc_certs.corecheck.residuals import Moves, Residuals
from tcc_certs.errors import Code, Rejected, require
from tcc_certs.formats.artifact import Automaton
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.limits import MAX_CORE_PAIRS, MAX_CORE_STEPS
from tcc_certs.policy.places import StatementPart, parts_of

EdgeRow: TypeAlias = "dict[int, Sequence[int]]"  # letter -> targets


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreReport:
    """What was compared: pairs of a state and a residual, and residuals shown to have no plan.

    Of a nondeterministic artifact: residuals with a plan, of which its graph is made, and others.

    Attributes:
        cut: residuals with a plan, behind calls that strict cut; None where no tool is strict.
    """

    pairs: int
    dead: int
    cut: int | None = None

    @property
    def counted(self) -> Mapping[str, int]:
        """The numbers by name."""
        found = {"pairs": self.pairs, "dead": self.dead}
        return found if self.cut is None else {**found, "cut": self.cut}

    def line(self, nondeterministic: bool) -> str:
        """What was shown, for people."""
        if nondeterministic:
            return (
                f"it is the graph of its core's partial derivatives: {self.pairs} residuals make"
                f" it, {self.dead} have no plan"
            )
        cut = "" if self.cut is None else f", {self.cut} stand behind calls that strict cut"
        return (
            f"it is the automaton of its core: {self.pairs} pairs of a state and a residual"
            f" agree, {self.dead} residuals have no plan{cut}"
        )


def check_core(
    checked: CheckedArtifact, *, pairs: int = MAX_CORE_PAIRS, steps: int = MAX_CORE_STEPS
) -> CoreReport:
    """Check that the automaton of an artifact is that of its core.

    Args:
        checked: an artifact whose certificates hold.
        pairs: the most pairs and dead residuals that are looked at.
        steps: the most units of work.

    Raises:
        Rejected: G101 one may stop and the other may not; G102 only one allows a call; G103 a
            nondeterministic graph that is not that of the core; D201 a bound is exceeded.
    """
    omitted = checked.omitted
    parts = [part for part in parts_of(checked.core) if part.number not in omitted]
    if not checked.file.manifest.nondeterministic:
        return _Walk(checked, parts, pairs, WorkBudget(steps)).run()
    graph = derivative_graph(checked.core, parts, pairs, WorkBudget(steps))
    expected, found = graph.root.hex(), checked.file.manifest.root.hex()
    require(expected, found, Code.CORE_DERIVATIVES, "state_digest of the root")
    return CoreReport(pairs=graph.live, dead=graph.dead)


class _Walk:
    """One walk: the pairs that it has reached, each with the pair and the letter before it."""

    def __init__(
        self,
        checked: CheckedArtifact,
        parts: Sequence[StatementPart],
        most: int,
        budget: WorkBudget,
    ) -> None:
        self._core = checked.core
        self._automaton = checked.automaton
        self._most = most
        self._budget = budget
        self._residuals = Residuals(checked.core, parts, budget)
        self._alphabet = self._residuals.alphabet
        self._edges = LetterEdges(
            checked.automaton, self._alphabet, checked.core_calls, checked.calls
        )
        self._rows: dict[int, EdgeRow] = {}
        self._origin: list[int] = []  # by pair: the pair before and the letter, as one number

    def run(self) -> CoreReport:
        """Look at each pair that the root leads to, then at each residual that must be dead."""
        first = self._residuals.first
        root = self._automaton.root
        if first is None:
            raise Rejected(Code.CORE_ACCEPT, f"state {root}", "a core with a plan", "none")
        residuals, rows, accept = self._residuals, self._rows, self._automaton.accept
        stops, lefts, controls = residuals.stops, residuals.left, residuals.control
        states, letters = len(accept), len(self._alphabet.letters)
        todo = [first * states + root]  # a pair is one number
        seen = set(todo)
        self._origin.append(0)
        dead: dict[int, int] = {}  # residual -> the pair that it was met from
        spans = Spans(residuals, states)
        spans.add(root, first)
        cut = StrictCut(residuals) if self._alphabet.strict else None
        for at, pair in enumerate(todo):  # grows as it is read
            residual, q = divmod(pair, states)
            if spans.inside(q, residual):
                continue
            if stops[residual] != accept[q]:
                raise self._stops_otherwise(q, residual, at)
            row = rows.get(q) or self._row(q)
            left = lefts[residual]
            moves = controls[residual].moves or residuals.moves(residual)
            followed, lacks = 0, False
            for letter, arrivals in moves:
                following = arrivals[left]
                if following is None:
                    continue
                if letter not in row:
                    dead.setdefault(following, at)
                    lacks = True
                    continue
                followed += 1
                for target in row[letter]:
                    pair = following * states + target
                    if pair not in seen:
                        seen.add(pair)
                        todo.append(pair)
                        self._origin.append(at * letters + letter)
                        spans.add(target, following)
            if followed < len(row):
                raise self._superfluous(q, at, left, moves)
            if cut is not None and lacks:
                cut.note(residual, row, at)
            self._count(len(todo) + len(dead), 1 + len(moves))
        if cut is None:
            return CoreReport(pairs=len(todo), dead=self._search_dead(dead, states, todo))
        return self._search_cut(cut, states, todo)

    def _search_dead(self, found: dict[int, int], states: int, pairs: Sequence[int]) -> int:
        """All that the `found` residuals lead to; none may stop."""
        todo = list(found)
        for residual in todo:  # grows as it is read
            origin = found[residual]
            if self._residuals.stops[residual]:
                raise self._lacking(pairs[origin] % states, origin)
            left = self._residuals.left[residual]
            moves = self._residuals.moves(residual)
            for _, arrivals in moves:
                following = arrivals[left]
                if following is not None and following not in found:
                    found[following] = origin
                    todo.append(following)
            self._count(len(pairs) + len(todo), 1 + len(moves))
        return len(todo)

    def _search_cut(self, cut: StrictCut, states: int, pairs: Sequence[int]) -> CoreReport:
        """All that the calls without an edge lead to: behind each of them one has no plan left."""
        cut.explore(lambda met, steps: self._count(len(pairs) + met, steps))
        origin = cut.unjustified()
        if origin is not None:
            raise self._lacking(pairs[origin] % states, origin)
        return CoreReport(pairs=len(pairs), dead=cut.dead, cut=cut.live)

    def _lacking(self, q: int, at: int) -> Rejected:
        expected = "an edge: the core has a plan by a call that has none"
        return Rejected(Code.CORE_NEXT_CALL, self._place(q, at), expected, "no edge")

    def _count(self, met: int, steps: int) -> None:
        self._budget.spend(steps)
        if met > self._most:
            raise Rejected(Code.LIMIT, "core", f"at most {self._most} pairs", "more")

    def _row(self, q: int) -> EdgeRow:
        row = self._rows[q] = self._edges.of(q)
        return row

    def _stops_otherwise(self, q: int, residual: int, at: int) -> Rejected:
        expected = self._residuals.stops[residual]
        words = ("goes on", "may stop")
        return Rejected(Code.CORE_ACCEPT, self._place(q, at), words[expected], words[not expected])

    def _superfluous(self, q: int, at: int, left: int, moves: Moves) -> Rejected:
        """The first letter, group by group, with an edge after which the core has no plan."""
        allowed = {letter for letter, arrivals in moves if arrivals[left] is not None}
        edges = [n for group in self._alphabet.by_group for n in group if n in self._rows[q]]
        call = self._text(next(letter for letter in edges if letter not in allowed))
        place = self._place(q, at)
        return Rejected(Code.CORE_NEXT_CALL, place, f"no edge with {call}", f"an edge with {call}")

    def _text(self, letter: int) -> str:
        """A call of `letter`."""
        return self._core.calls[self._alphabet.letters[letter].calls[0]].text

    def _place(self, q: int, at: int) -> str:
        """The state, and the calls by which it was reached."""
        calls = []
        while at > 0:
            at, letter = divmod(self._origin[at], len(self._alphabet.letters))
            calls.append(self._text(letter))
        return f"state {q} after [{' '.join(reversed(calls))}]"


class LetterEdges:
    """The edges of a state by letter: calls that a core treats alike have edges all or none."""

    def __init__(
        self,
        automaton: Automaton,
        alphabet: Alphabet,
        core_calls: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        self._automaton = automaton
        self._texts = texts
        self._letter_of = [alphabet.letter_of[call] for call in core_calls]
        self._sizes = [len(letter.calls) for letter in alphabet.letters]

    def of(self, q: int) -> EdgeRow:
        """Letter -> the targets of its calls; a letter has edges for all its calls or for none.

        Raises:
            Rejected: G102 where some calls of a letter have an edge and others have not.
        """
        letter_of, sizes = self._letter_of, self._sizes
        targets: dict[int, list[int]] = {}
        edges = list(self._automaton.edges(q))
        for call, target in edges:
            letter = letter_of[call]
            if letter in targets:
                targets[letter].append(target)
            else:
                targets[letter] = [target]
        row: EdgeRow = {}
        for letter, found in targets.items():
            expected = sizes[letter]
            if len(found) != expected:
                like = next(call for call, _ in edges if self._letter_of[call] == letter)
                text = f"{expected} edges, for each call like {self._texts[like]}"
                raise Rejected(Code.CORE_NEXT_CALL, f"state {q}", text, len(found))
            row[letter] = found if expected == 1 else sorted(set(found))
        return row


class Spans:
    """Pairs of a state and a residual that need no look, as they lie between two others.

    The more a control's limits have left, the more plans it has: its residuals differ in nothing
    else.  So of all pairs of one state and one control those with the least and those with the most
    left settle the others: where both have just the plans of the state, so has what lies between.
    This holds for the plans of each length, so cycles change nothing.
    A pair is inside when one that was met has no more left on any meter, and another no less; both
    are others.  The least and the greatest of the pairs met are inside of nothing, so each pair
    that is passed over lies between two that are looked at; by induction over the length of a plan
    it agrees when they do.

    Cost: a comparison of what is left, for each pair but the first of its state and control.
    """

    def __init__(self, residuals: Residuals, states: int) -> None:
        self._residuals = residuals
        self._states = states
        # By control and state, what the two ends have left; one pair alone has no upper end.
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def add(self, q: int, residual: int) -> None:
        """The pair was met."""
        left = self._residuals.left[residual]
        key = self._residuals.control[residual].number * self._states + q
        low = self._low.setdefault(key, left)
        if low != left:
            high = self._high.setdefault(key, low)
            if self._residuals.no_more(left, low):
                self._low[key] = left
            elif self._residuals.no_more(high, left):
                self._high[key] = left

    def inside(self, q: int, residual: int) -> bool:
        """Whether the pair lies between two others."""
        key = self._residuals.control[residual].number * self._states + q
        high = self._high.get(key)
        if high is None:
            return False
        low, left = self._low[key], self._residuals.left[residual]
        no_more = self._residuals.no_more
        return left not in (low, high) and no_more(low, left) and no_more(left, high)
