"""The race of docs/spec/race.md leaf by leaf, in decimal arithmetic of 70 digits.

It lists every plan, so it serves small grammars.  Its input is a list of plans, not an automaton,
and it uses nothing of the project: digests, weights, counts and logarithms are its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from blake3 import blake3

DIGITS = 70
Q64 = Decimal(2**64)


@dataclass
class Grammar:
    """Plans as tuples of call texts, costs in nano-units."""

    name: str
    version: str
    limits: list[str]
    cost: dict[str, int]
    plans: list[tuple[str, ...]]
    beta: str = "1"
    tilt: int = 8


@dataclass
class Result:
    """Published numbers as Q64.64 integers; leaves by (value descending, L ascending)."""

    leaves: list[tuple[int, bytes, tuple[str, ...]]] = field(default_factory=list)
    keys: dict[bytes, int] = field(default_factory=dict)
    neg_log_t: dict[bytes, int] = field(default_factory=dict)
    words: dict[bytes, int] = field(default_factory=dict)


class Oracle:
    """One realised race; `result` holds all of it."""

    def __init__(self, grammar: Grammar, seed: bytes) -> None:
        self.grammar = grammar
        self.result = Result()
        document = {
            "grammar": grammar.name,
            "limits": sorted(set(grammar.limits)),
            "version": grammar.version,
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        root = blake3(b"tcc.ctx.root.v1\0" + text.encode()).digest()
        extracted = hmac.new(root, seed, hashlib.sha256).digest()
        self.key = hmac.new(extracted, b"tcc.race.v1\x01", hashlib.sha256).digest()
        with localcontext(Context(prec=DIGITS, Emin=-(10**9), Emax=10**9)):
            self._weigh()
            first = self.exponential(1, root)
            self._visit((), root, first / self.real(self.count(())), sorted(grammar.plans))
        self.result.leaves.sort(key=lambda leaf: (-leaf[0], leaf[1]))

    def _weigh(self) -> None:
        grammar, beta = self.grammar, Decimal(self.grammar.beta)
        costs = {call: Decimal(c) / 10**9 for call, c in grammar.cost.items()}
        bits = 0
        if grammar.tilt:
            top = (beta * max(costs.values(), default=Decimal(0))).exp()
            bits = next((b for b in range(grammar.tilt, 64) if 2 ** (b - grammar.tilt) >= top), 64)
        whole = {call: (2**bits * (-beta * c).exp()) for call, c in costs.items()}
        self.weight = {
            call: Fraction(
                max(1, min(2**63 - 1, int(w.to_integral_value(ROUND_HALF_EVEN)))), 2**bits
            )
            if grammar.tilt
            else Fraction(1)
            for call, w in whole.items()
        }
        self.residual = {}
        for call, cost in costs.items():
            exact = -beta * cost - self.real(self.weight[call]).ln()
            self.residual[call] = int((exact * 2**32).to_integral_value(ROUND_CEILING))

    def real(self, value: Fraction) -> Decimal:
        return Decimal(value.numerator) / Decimal(value.denominator)

    def below(self, prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
        size = len(prefix)
        return [plan for plan in self.grammar.plans if plan[:size] == prefix]

    def count(self, prefix: tuple[str, ...]) -> Fraction:
        total = Fraction(0)
        for plan in self.below(prefix):
            mass = Fraction(1)
            for call in plan[len(prefix) :]:
                mass *= self.weight[call]
            total += mass
        return total

    def bound(self, prefix: tuple[str, ...]) -> int:
        rest = [plan[len(prefix) :] for plan in self.below(prefix)]
        return max(sum(self.residual[call] for call in plan) for plan in rest)

    def word(self, purpose: int, identity: bytes) -> int:
        block = blake3(bytes([purpose]) + identity, key=self.key).digest(8)
        self.result.words[bytes([purpose]) + identity] = found = int.from_bytes(block, "little")
        return found

    def exponential(self, purpose: int, identity: bytes) -> Decimal:
        u = (Decimal(self.word(purpose, identity)) + Decimal("0.5")) / Q64
        return -(1 - u).ln()

    def publish(self, digest: bytes, prefix: tuple[str, ...], t: Decimal, bound: int) -> int:
        score = -Decimal(self.grammar.beta) * sum(self.grammar.cost[c] for c in prefix) / 10**9
        self.result.neg_log_t[digest] = int((-t.ln() * Q64).to_integral_value(ROUND_HALF_EVEN))
        exact = score + Decimal(bound) / 2**32 - t.ln()
        self.result.keys[digest] = int((exact * Q64).to_integral_value(ROUND_HALF_EVEN))
        return self.result.keys[digest]

    def _visit(self, prefix, digest, t, plans) -> None:
        self.publish(digest, prefix, t, self.bound(prefix))
        children = self._children(prefix, digest, plans)
        total = sum((mass for _, _, mass, _ in children), Fraction(0))
        x, running, winner = self.word(2, digest), Fraction(0), None
        for place, (_, _, mass, _) in enumerate(children):
            running += mass
            if (2 * x + 1) * total < 2**65 * running:
                winner = place
                break
        for place, (call, identity, mass, some) in enumerate(children):
            weight = self.weight[call] if call else Fraction(1)
            arrival = self.real(weight) * t
            if place != winner:
                arrival += self.exponential(3, identity) / self.real(mass / weight)
            if call:
                self._visit((*prefix, call), identity, arrival, some)
            else:
                value = self.publish(identity, prefix, arrival, 0)
                self.result.leaves.append((value, identity, prefix))

    def _children(self, prefix, digest, plans):
        size = len(prefix)
        found = []
        for call in sorted({p[size] for p in plans if len(p) > size}, key=str.encode):
            some = [p for p in plans if len(p) > size and p[size] == call]
            identity = blake3(b"\x01" + digest + call.encode()).digest()
            mass = self.weight[call] * self.count((*prefix, call))
            found.append((call, identity, mass, some))
        if prefix in plans:
            found.append((None, blake3(b"\x02" + digest).digest(), Fraction(1), []))
        return found
