"""The automaton against its core: at every prefix both allow the same, to the end.

Walks the automaton and, beside it, the residual of the core: a term of :mod:`tcc_certs.residual`
and what the limits, signatures, requires and forbids still ask.  A pair agrees when both may stop
or neither (G101), when every call with an edge goes on to a pair that agrees, and when no call
without an edge can still finish (G102); the residuals after such calls are searched until none is
left, and none of them may stop.  The automaton is finite, its states are alive and distinct (C1 to
C6), so when all pairs agree its plans are the core's, no more and no fewer; that calls cost the
same is C8.  Statements that the artifact relaxed are left out of the core.  A nondeterministic
artifact is the graph of the core's partial derivatives: that graph is made again, and its root must
have the same digest (G103).  Cost: pairs times letters; past a bound the check declines (D201).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.grammar import Core
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.limits import MAX_CORE_PAIRS, MAX_CORE_STEPS
from tcc_certs.manifest import Relaxed
from tcc_certs.residual.budget import Budget
from tcc_certs.residual.letters import Alphabet
from tcc_certs.residual.network import network_of
from tcc_certs.residual.residuals import Residuals

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreReport:
    """What was compared: pairs of a state and a residual, and residuals shown to have no plan.

    Of a nondeterministic artifact: residuals with a plan, of which its graph is made, and others.
    """

    pairs: int
    dead: int


def check_core(
    checked: CheckedArtifact, *, pairs: int = MAX_CORE_PAIRS, steps: int = MAX_CORE_STEPS
) -> CoreReport:
    """The automaton of `checked` is that of its core.

    Args:
        checked: an artifact whose certificates hold.
        pairs: the most pairs and dead residuals that are looked at.
        steps: the most units of work.

    Raises:
        Rejected: G101 where one may stop and the other may not, G102 where a call is allowed by
            one alone, G103 a nondeterministic graph that is not the core's, D201 past a bound.
    """
    core = _enforced(checked.core, checked.file.manifest.relaxed)
    if not checked.file.manifest.nondeterministic:
        return _Walk(checked, core, pairs, Budget(steps)).run()
    network = network_of(core, pairs, Budget(steps))
    due, found = network.root.hex(), checked.file.manifest.root.hex()
    require(due, found, Code.CORE_DERIVATIVES, "state_digest of the root")
    return CoreReport(pairs=network.live, dead=network.dead)


def _enforced(core: Core, relaxed: Relaxed | None) -> Core:
    """The core without what was relaxed."""
    if relaxed is None:
        return core

    def kept(statements: Sequence[S], left_out: Sequence[int]) -> tuple[S, ...]:
        return tuple(s for index, s in enumerate(statements) if index not in left_out)

    return replace(
        core,
        limits=kept(core.limits, relaxed.limits),
        requires=kept(core.requires, relaxed.requires),
        forbids=kept(core.forbids, relaxed.forbids),
    )


class _Walk:
    """One walk: the pairs met so far, each with the pair and the letter that it was met by."""

    def __init__(self, checked: CheckedArtifact, core: Core, most: int, budget: Budget) -> None:
        self._core = core
        self._automaton = checked.automaton
        self._most = most
        self._residuals = Residuals(core, budget)
        self._alphabet = self._residuals.alphabet
        self._rows = _Rows(checked.automaton, self._alphabet, checked.core_calls, checked.calls)
        self._origin: list[tuple[int, int]] = []  # by pair: the pair before, the letter

    def run(self) -> CoreReport:
        """Every pair that the root leads to, then every residual that must be dead."""
        first = self._residuals.first
        root = self._automaton.root
        if first is None:
            raise Rejected(Code.CORE_ACCEPT, f"state {root}", "a core with a plan", "none")
        todo = [(root, first)]
        seen = {todo[0]}
        self._origin.append((-1, -1))
        dead: dict[int, int] = {}  # residual -> the pair that it was met from
        at = 0
        while at < len(todo):
            q, residual = todo[at]
            self._check_stop(q, residual, at)
            row = self._rows.of(q)
            for letter, following in self._residuals.whole(residual):
                targets = row.get(letter)
                if targets is None:
                    if following is not None:
                        dead.setdefault(following, at)
                    continue
                if following is None:
                    raise self._differs(q, at, letter, "no edge", "an edge")
                for target in targets:
                    if (target, following) not in seen:
                        seen.add((target, following))
                        todo.append((target, following))
                        self._origin.append((at, letter))
            self._count(len(todo) + len(dead))
            at += 1
        return CoreReport(pairs=len(todo), dead=self._search_dead(dead, todo))

    def _search_dead(self, found: dict[int, int], pairs: Sequence[tuple[int, int]]) -> int:
        """All that the `found` residuals lead to; none may stop."""
        todo = list(found)
        at = 0
        while at < len(todo):
            residual = todo[at]
            origin = found[residual]
            if self._residuals.may_stop(residual):
                due = "an edge: the core has a plan by a call that has none"
                path = self._place(pairs[origin][0], origin)
                raise Rejected(Code.CORE_NEXT_CALL, path, due, "no edge")
            for _, following in self._residuals.whole(residual):
                if following is not None and following not in found:
                    found[following] = origin
                    todo.append(following)
            self._count(len(pairs) + len(todo))
            at += 1
        return len(todo)

    def _count(self, met: int) -> None:
        ensure(met <= self._most, Code.LIMIT, "core", f"at most {self._most} pairs", "more")

    def _check_stop(self, q: int, residual: int, at: int) -> None:
        due = self._residuals.may_stop(residual)
        if due != bool(self._automaton.accept[q]):
            words = ("goes on", "may stop")
            raise Rejected(Code.CORE_ACCEPT, self._place(q, at), words[due], words[not due])

    def _differs(self, q: int, at: int, letter: int, due: str, found: str) -> Rejected:
        call = self._core.calls[self._alphabet.letters[letter].calls[0]].text
        return Rejected(
            Code.CORE_NEXT_CALL, self._place(q, at), f"{due} with {call}", f"{found} with {call}"
        )

    def _place(self, q: int, at: int) -> str:
        """The state, and the calls by which it was reached."""
        calls = []
        while at > 0:
            at, letter = self._origin[at]
            calls.append(self._core.calls[self._alphabet.letters[letter].calls[0]].text)
        return f"state {q} after [{' '.join(reversed(calls))}]"


class _Rows:
    """The edges of a state by letter, each row made once."""

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
        self._made: dict[int, Mapping[int, Sequence[int]]] = {}

    def of(self, q: int) -> Mapping[int, Sequence[int]]:
        """Letter -> the targets of its calls; a letter has edges for all its calls or for none.

        Raises:
            Rejected: G102 where some calls of a letter have an edge and others have not.
        """
        row = self._made.get(q)
        if row is None:
            row = self._made[q] = self._make(q)
        return row

    def _make(self, q: int) -> Mapping[int, Sequence[int]]:
        targets: dict[int, list[int]] = {}
        for call, target in self._automaton.edges(q):
            targets.setdefault(self._letter_of[call], []).append(target)
        for call, _ in self._automaton.edges(q):
            letter = self._letter_of[call]
            due, found = self._sizes[letter], len(targets[letter])
            text = f"{due} edges, for each call like {self._texts[call]}"
            ensure(due == found, Code.CORE_NEXT_CALL, f"state {q}", text, found)
        return {letter: sorted(set(found)) for letter, found in targets.items()}
