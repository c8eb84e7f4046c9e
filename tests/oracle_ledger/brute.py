"""The truth of a run by listing every leaf: its arrival and value in 400 bits of MPFR.

Phantoms, forbidden children, inflated counts and sets of states are included.  The code follows
docs/spec/race.md: the definition decides whole words by the relaxed statements, and masses are
fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

import gmpy2

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import child_context, leaf_digest, race_key, root_context, uniform
from tests.oracle.network import without
from tests.oracle.plans import Word, allows

_BITS = 400
States = tuple[int, ...]
Children = Sequence[tuple[int | None, States | None, Fraction]]


def rounded_up(number: Fraction, bits: int) -> int:
    """The least integer of at most so many bits, and zeros behind them, that is not below."""
    up = 0
    while ceil(number / 2**up) >= 2**bits:
        up += 1
    return ceil(number / 2**up) * 2**up


class Masses:
    """An artifact as fractions: weights, counts and children of sets of states."""

    def __init__(
        self, artifact: CheckedArtifact, inflate: str = "1", round_to: int | None = None
    ) -> None:
        manifest, columns = artifact.file.manifest, artifact.file.columns
        self.artifact = artifact
        bits = manifest.fraction_bits
        self.beta = Fraction(manifest.beta[0], 10 ** manifest.beta[1])
        self.weight = [Fraction(w, 2**bits) for w in columns["call_weight"].items()]
        self.low = list(columns["call_cost_low"].items())
        self.rank = list(artifact.automaton.rank)
        self.unit = [2 ** (bits * d) for d in self.rank]
        self.rate: list[Fraction] = []
        for q, count in enumerate(artifact.race_count):
            least = Fraction(artifact.automaton.accept[q])
            for call, target in artifact.automaton.edges(q):
                least += self.weight[call] * self.rate[target]
            more = Fraction(ceil(Fraction(inflate) * count), self.unit[q])
            rate = max(more, least)
            if round_to is not None:
                rate = Fraction(rounded_up(rate * self.unit[q], round_to), self.unit[q])
            self.rate.append(rate)

    @property
    def root(self) -> States:
        return (self.artifact.automaton.root,)

    def n(self, states: States | None) -> Fraction:
        """The race count of a set; 1 at a leaf."""
        return Fraction(1) if states is None else sum((self.rate[q] for q in states), Fraction(0))

    def children(self, states: States) -> list[tuple[int | None, States | None, Fraction]]:
        """(call, states, mass) in canonical order; the stop leaf last."""
        automaton = self.artifact.automaton
        pairs = {pair for q in states for pair in automaton.edges(q)}
        found: list[tuple[int | None, States | None, Fraction]] = []
        for call in sorted({call for call, _ in pairs}):
            to = tuple(sorted(target for other, target in pairs if other == call))
            found.append((call, to, self.weight[call] * self.n(to)))
        if any(automaton.accept[q] for q in states):
            found.append((None, None, Fraction(1)))
        return found

    def allows(self, word: Word, stop: bool, truncate: int | None = None) -> bool:
        """Whether the statements that are left to the run allow a prefix, or a whole plan."""
        core, relaxed = self.artifact.core, self.artifact.file.manifest.relaxed
        if truncate is not None and len(word) > truncate:
            return False
        left_out = [at for at in range(len(core.statements)) if at not in relaxed]
        named = tuple(self.artifact.core_calls[call] for call in word)
        return allows(without(core, left_out), named, ends=stop)


def leaf_values(
    artifact: CheckedArtifact,
    seed: bytes,
    inflate: str = "1",
    truncate: int | None = None,
    race: str = "coupled",
    round_to: int | None = None,
) -> list[tuple[gmpy2.mpfr, tuple[str, ...]]]:
    """Every plan with its value, best first; for languages of at most some hundred plans."""
    with gmpy2.context(gmpy2.get_context(), precision=_BITS):
        listing = _Listing(Masses(artifact, inflate, round_to), seed, truncate, race)
        return sorted(listing.all(), reverse=True)


class _Listing:
    def __init__(self, masses: Masses, seed: bytes, truncate: int | None, race: str) -> None:
        self.masses = masses
        self.arrivals = {"coupled": self.coupled, "rest": self.rest}[race]
        self.truncate = truncate
        self.root = root_context(masses.artifact.file.manifest.root_document)
        self.key = race_key(seed, self.root)

    def exponential(self, purpose: int, digest: bytes, rate: Fraction) -> gmpy2.mpfr:
        odd = 2 * uniform(self.key, purpose, digest) + 1
        return -gmpy2.log1p(-gmpy2.mpfr(odd) / gmpy2.mpfr(2) ** 65) / number(rate)

    def all(self) -> Iterator[tuple[gmpy2.mpfr, tuple[str, ...]]]:
        masses = self.masses
        first = self.exponential(1, self.root, masses.n(masses.root))
        todo = [(masses.root, self.root, first, ())]
        while todo:
            states, digest, t, calls = todo.pop()
            children = masses.children(states)
            arrivals = self.arrivals(states, digest, t, children)
            for (call, to, _), arrival in zip(children, arrivals, strict=True):
                word = calls if call is None else (*calls, call)
                if not masses.allows(word, call is None, self.truncate):
                    continue
                if to is None:
                    yield self.value(calls, arrival), self.texts(calls)
                else:
                    todo.append((to, self.name(digest, call), arrival, word))

    def name(self, digest: bytes, call: int | None) -> bytes:
        """D or L of a child."""
        if call is None:
            return leaf_digest(digest)
        return child_context(digest, self.masses.artifact.calls[call].encode())

    def weight(self, call: int | None) -> gmpy2.mpfr:
        return number(Fraction(1) if call is None else self.masses.weight[call])

    def coupled(
        self, states: States, digest: bytes, t: gmpy2.mpfr, children: Children
    ) -> list[gmpy2.mpfr]:
        """race.md, section 5."""
        x = uniform(self.key, 2, digest)
        places = range(len(children))
        won = first(places, children, x, self.masses.n(states))
        found = []
        for place, (call, to, _) in enumerate(children):
            arrival = self.weight(call) * t
            if place != won:
                arrival += self.exponential(3, self.name(digest, call), self.masses.n(to))
            found.append(arrival)
        return found

    def rest(
        self, states: States, digest: bytes, t: gmpy2.mpfr, children: Children
    ) -> list[gmpy2.mpfr]:
        """race.md, section 18: all draws of a node."""
        left, found = list(range(len(children))), dict[int, gmpy2.mpfr]()
        phantom = self.masses.n(states) - sum((mass for _, _, mass in children), Fraction(0))
        step = 0
        while left:
            mark = digest + step.to_bytes(4, "little")
            x = uniform(self.key, 5, mark) if step else uniform(self.key, 2, digest)
            won = first(left, children, x, phantom + total(left, children))
            if won is None:
                phantom = Fraction(0)
            else:
                left.remove(won)
                found[won] = self.weight(children[won][0]) * t
            step += 1
            if left:
                mark = digest + step.to_bytes(4, "little")
                t = t + self.exponential(6, mark, phantom + total(left, children))
        return [found[place] for place in range(len(children))]

    def value(self, calls: Word, arrival: gmpy2.mpfr) -> gmpy2.mpfr:
        cost = Fraction(sum(self.masses.low[c] for c in calls), 10**9)
        return number(-self.masses.beta * cost) - gmpy2.log(arrival)

    def texts(self, calls: Word) -> tuple[str, ...]:
        return tuple(self.masses.artifact.calls[c] for c in calls)


def total(places: Sequence[int], children: Children) -> Fraction:
    """Their masses together."""
    return sum((children[place][2] for place in places), Fraction(0))


def first(places: Sequence[int], children: Children, x: int, mass: Fraction) -> int | None:
    """The first of `places` whose running sum exceeds the share of `mass` that `x` says."""
    edge = Fraction(0)
    for place in places:
        edge += children[place][2]
        if Fraction(2 * x + 1, 2**65) * mass < edge:
            return place
    return None


def number(value: Fraction) -> gmpy2.mpfr:
    return gmpy2.mpfr(value.numerator) / gmpy2.mpfr(value.denominator)


def rounded(value: gmpy2.mpfr) -> int:
    """To Q64.64, to nearest."""
    with gmpy2.context(gmpy2.get_context(), precision=_BITS):
        return int(gmpy2.rint_round(value * gmpy2.mpfr(2) ** 64))
