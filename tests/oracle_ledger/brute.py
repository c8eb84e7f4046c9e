"""The truth of a run by listing every leaf: its arrival and value in 400 bits of MPFR."""

from __future__ import annotations

from fractions import Fraction

import gmpy2

from tcc_certs.digest import child_context, leaf_digest, race_key, root_context, uniform
from tcc_certs.kernel import CheckedArtifact

_BITS = 400


def leaf_values(artifact: CheckedArtifact, seed: bytes) -> list[tuple[gmpy2.mpfr, tuple[str, ...]]]:
    """Every plan with its value, best first; for languages of at most some hundred plans."""
    with gmpy2.context(gmpy2.get_context(), precision=_BITS):
        return sorted(_Listing(artifact, seed).all(), reverse=True)


class _Listing:
    def __init__(self, artifact: CheckedArtifact, seed: bytes) -> None:
        manifest, columns = artifact.file.manifest, artifact.file.columns
        self.artifact = artifact
        self.beta = Fraction(manifest.beta[0], 10 ** manifest.beta[1])
        bits = manifest.fraction_bits
        self.weight = [Fraction(w, 2**bits) for w in columns["call_weight"].items()]
        self.low = list(columns["call_cost_low"].items())
        rank = artifact.automaton.rank
        self.rate = [Fraction(m, 2 ** (bits * rank[q])) for q, m in enumerate(artifact.race_count)]
        self.root = root_context(manifest.root_document)
        self.key = race_key(seed, self.root)

    def exponential(self, purpose: int, digest: bytes, rate: Fraction) -> gmpy2.mpfr:
        odd = 2 * uniform(self.key, purpose, digest) + 1
        return -gmpy2.log1p(-gmpy2.mpfr(odd) / gmpy2.mpfr(2) ** 65) / number(rate)

    def all(self):
        root = self.artifact.automaton.root
        first = self.exponential(1, self.root, self.rate[root])
        todo = [(root, self.root, first, ())]
        while todo:
            state, digest, t, calls = todo.pop()
            edges = list(self.artifact.automaton.edges(state))
            children = [(self.weight[c], self.rate[p], c, p) for c, p in edges] + [
                (Fraction(1), Fraction(1), None, None)
            ] * self.artifact.automaton.accept[state]
            x = uniform(self.key, 2, digest)
            edge, won = Fraction(0), None
            for place, (w, n, _, _) in enumerate(children):
                edge += w * n
                if won is None and Fraction(2 * x + 1, 2**65) * self.rate[state] < edge:
                    won = place
            for place, (w, n, call, target) in enumerate(children):
                if call is None:
                    name = leaf_digest(digest)
                else:
                    name = child_context(digest, self.artifact.calls[call].encode())
                arrival = number(w) * t
                if place != won:
                    arrival += self.exponential(3, name, n)
                if target is None:
                    yield self.value(calls, arrival), self.texts(calls)
                else:
                    todo.append((target, name, arrival, (*calls, call)))

    def value(self, calls, arrival) -> gmpy2.mpfr:
        cost = Fraction(sum(self.low[c] for c in calls), 10**9)
        return number(-self.beta * cost) - gmpy2.log(arrival)

    def texts(self, calls) -> tuple[str, ...]:
        return tuple(self.artifact.calls[c] for c in calls)


def number(value: Fraction) -> gmpy2.mpfr:
    return gmpy2.mpfr(value.numerator) / gmpy2.mpfr(value.denominator)


def rounded(value: gmpy2.mpfr) -> int:
    """To Q64.64, to nearest."""
    with gmpy2.context(gmpy2.get_context(), precision=_BITS):
        return int(gmpy2.rint_round(value * gmpy2.mpfr(2) ** 64))
