"""Check that the automaton of an artifact has exactly the plans of its core.

The check walks through the automaton from its root.  Beside each state it keeps a residual of the
core, which says what may follow (:mod:`tcc_certs.corecheck.residuals`).  A residual consists of a
term, the states of the statement tables and the remainders of the sums.

At each pair of a state and a residual the check compares three things.  Either both may stop, or
neither may (G101).  Each edge of the state must be a call that the residual allows, and the call
leads to the next pair.  If the state has no edge for a call, no plan may follow that call in the
core (G102).  To show this, the check searches all residuals that the call leads to, and none of
them may stop.

The automaton is finite, and C1 to C6 make its states alive and distinct.  So if all pairs agree,
the automaton and the core have the same plans.  C8 shows that their calls are the same.

Strict tools are an exception.  A call that could still finish may lack an edge if strictness
removes it (:mod:`tcc_certs.corecheck.graphs`).  The check leaves out relaxed statements, and the
statements that an automaton with cycles leaves to the gate.

A nondeterministic artifact is the graph of the partial derivatives of its core.  The check builds
this graph again and compares the digests of the roots (G103).

Normative text: docs/spec/artifact.md, section 9.  Cost: the number of pairs times the number of
letters; above a bound the check stops with D201.
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

EdgeRow: TypeAlias = "dict[int, Sequence[int]]"  # from a letter to the targets of its calls


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreReport:
    """How many pairs and residuals the check looked at.

    Attributes:
        pairs: the pairs of a state and a residual that were reached.  For a nondeterministic
            artifact: the residuals that have a plan; they make up its graph.
        dead: the residuals that were shown to have no plan.
        cut: the residuals with a plan that the check reached by a call without an edge; strictness
            removes these plans.  None if no tool is strict.
    """

    pairs: int
    dead: int
    cut: int | None = None

    @property
    def counted(self) -> Mapping[str, int]:
        """The numbers by name: pairs, dead, and cut unless it is None."""
        found = {"pairs": self.pairs, "dead": self.dead}
        return found if self.cut is None else {**found, "cut": self.cut}

    def line(self, nondeterministic: bool) -> str:
        """The result as a sentence for people."""
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
    """Check that the automaton of an artifact has exactly the plans of its core.

    Args:
        checked: an artifact whose certificates hold.
        pairs: how many pairs and residuals without a plan the check may look at.
        steps: how many units of work the check may spend.

    Raises:
        Rejected: G101 the state may stop and its residual may not, or the other way round.  G102
            the state has an edge and the residual has no plan after this call, or the other way
            round.  G103 the digest of a nondeterministic artifact's root is not that of its core's
            graph.  D201 a bound is exceeded.
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
    """One walk over the pairs of an automaton state and a residual.

    For each pair it keeps the pair and the letter by which the walk reached it.
    """

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
        # for each pair: the index of the pair before it times the number of letters, plus the
        # letter
        self._origin: list[int] = []

    def run(self) -> CoreReport:
        """Check all pairs that the root leads to, then the residuals that must have no plan."""
        first = self._residuals.first
        root = self._automaton.root
        if first is None:
            raise Rejected(Code.CORE_ACCEPT, f"state {root}", "a core with a plan", "none")
        residuals, rows, accept = self._residuals, self._rows, self._automaton.accept
        stops, lefts, controls = residuals.stops, residuals.left, residuals.control
        states, letters = len(accept), len(self._alphabet.letters)
        todo = [first * states + root]  # state and residual as one number
        seen = set(todo)
        self._origin.append(0)
        dead: dict[int, int] = {}  # from a residual to the index of the pair that led to it
        spans = Spans(residuals, states)
        spans.add(root, first)
        cut = StrictCut(residuals) if self._alphabet.strict else None
        for at, pair in enumerate(todo):  # the loop appends to todo
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
        """Search all residuals that the `found` ones lead to; return how many there are.

        Raises:
            Rejected: G102 a residual may stop, so its call should have an edge.
        """
        todo = list(found)
        for residual in todo:  # the loop appends to todo
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
        """Search all residuals that calls without an edge lead to, if some tool is strict.

        Raises:
            Rejected: G102 a call has no edge although strictness does not remove it.
        """
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
        """The error for an edge after which the core has no plan.

        It names the first such letter.
        """
        allowed = {letter for letter, arrivals in moves if arrivals[left] is not None}
        edges = [n for group in self._alphabet.by_group for n in group if n in self._rows[q]]
        call = self._text(next(letter for letter in edges if letter not in allowed))
        place = self._place(q, at)
        return Rejected(Code.CORE_NEXT_CALL, place, f"no edge with {call}", f"an edge with {call}")

    def _text(self, letter: int) -> str:
        """The text of the first call of a letter."""
        return self._core.calls[self._alphabet.letters[letter].calls[0]].text

    def _place(self, q: int, at: int) -> str:
        """A state and the calls by which the walk reached it, as text."""
        calls = []
        while at > 0:
            at, letter = divmod(self._origin[at], len(self._alphabet.letters))
            calls.append(self._text(letter))
        return f"state {q} after [{' '.join(reversed(calls))}]"


class LetterEdges:
    """The edges of automaton states, grouped by letter.

    The core does not distinguish the calls of one letter.  So a state must have an edge for each of
    them or for none.
    """

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
        """The targets of the edges of a state, by letter.

        Raises:
            Rejected: G102 some calls of a letter have an edge and others have none.
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
    """Finds pairs that need no comparison because they lie between two others.

    Residuals with one control differ only in the remainders of their sums, and a larger remainder
    allows more plans.  Take a state, a control, and two pairs of them: one with the smallest
    remainders and one with the largest.  If both have exactly the plans of the state, so has every
    pair between them.  The argument holds for the plans of each length, so it also holds for
    automata with cycles.

    A pair is inside if one pair has at most its remainder in every sum and another has at least its
    remainder in every sum.  The pairs at the two ends are never inside, so the walk compares them.
    By induction over the length of a plan, a skipped pair agrees when they do.

    Cost: one comparison of remainders for each pair except the first of its state and control.
    """

    def __init__(self, residuals: Residuals, states: int) -> None:
        self._residuals = residuals
        self._states = states
        # The smallest and the largest remainders by control and state; _high lacks a key with one
        # remainder.
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def add(self, q: int, residual: int) -> None:
        """Record a pair that the walk reached."""
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
        """Return whether other pairs of this state and control lie on both sides of the pair."""
        key = self._residuals.control[residual].number * self._states + q
        high = self._high.get(key)
        if high is None:
            return False
        low, left = self._low[key], self._residuals.left[residual]
        no_more = self._residuals.no_more
        return left not in (low, high) and no_more(low, left) and no_more(left, high)
