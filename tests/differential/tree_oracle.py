"""Every plan and every number of one realised race, in every mode, in decimal arithmetic.

Its input is an automaton written down row by row, deterministic or not, with counts that are exact,
rounded or inflated, and a predicate for the plans that a run may find.  It walks all prefixes and
uses nothing of the project: digests, weights, counts, winners and logarithms are its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from math import ceil

from blake3 import blake3

Q64 = 2**64
Plan = tuple[str, ...]
Row = tuple[bool, Sequence[tuple[str, int]]]
States = tuple[int, ...]


@dataclass(kw_only=True)
class Tree:
    """An automaton and what its race depends on; costs in nano-units, the last row is the root."""

    rows: Sequence[Row]
    cost: dict[str, int]
    name: str = "g"
    version: str = "1"
    limits: Sequence[str] = ()
    beta: str = "1"
    tilt: int = 8
    inflate: str = "1"
    round_bits: int | None = None
    allowed: Callable[[Plan], bool] = lambda plan: True
    after: Plan = ()  # calls before the race; those of its plans are what follows


@dataclass
class Numbers:
    """Q64.64 integers by digest; leaves as (value, L, plan), best first."""

    coupled: list[tuple[int, bytes, Plan]] = field(default_factory=list)
    rest: list[tuple[int, bytes, Plan]] = field(default_factory=list)
    rest_log: dict[bytes, int] = field(default_factory=dict)
    rest_keys: dict[bytes, int] = field(default_factory=dict)
    literal: list[tuple[int, bytes, Plan]] = field(default_factory=list)
    fallback: list[tuple[int, bytes, Plan]] = field(default_factory=list)
    finalized: dict[bytes, int] = field(default_factory=dict)
    anchored: dict[bytes, int] = field(default_factory=dict)
    neg_log_t: dict[bytes, int] = field(default_factory=dict)
    literal_log: dict[bytes, int] = field(default_factory=dict)
    bounds: dict[bytes, int] = field(default_factory=dict)


class Oracle:
    """One race; `numbers` holds all of it.

    Args:
        races: which of coupled, rest, literal, fallback are computed.
    """

    def __init__(
        self,
        tree: Tree,
        seed: bytes,
        tau: str = "1",
        races: Sequence[str] = ("coupled", "literal", "fallback"),
        digits: int = 60,
    ) -> None:
        self.tree = tree
        self.races = races
        self.numbers = Numbers()
        self.rank: list[int] = []
        for _, edges in tree.rows:
            self.rank.append(max((1 + self.rank[q] for _, q in edges), default=0))
        document = {
            "grammar": tree.name,
            "limits": sorted(set(tree.limits)),
            "version": tree.version,
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.root = blake3(b"tcc.ctx.root.v1\0" + text.encode()).digest()
        self.start: States = (len(tree.rows) - 1,)
        for made in tree.after:
            edges = [edge for q in self.start for edge in tree.rows[q][1]]
            self.start = tuple(sorted({target for call, target in edges if call == made}))
            self.root = blake3(b"\x01" + self.root + made.encode()).digest()
        extracted = hmac.new(self.root, seed, hashlib.sha256).digest()
        self.key = hmac.new(extracted, b"tcc.race.v1\x01", hashlib.sha256).digest()
        with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
            self.beta = Decimal(tree.beta)
            self.tau = Decimal(tau)
            self._weigh()
            self._count()
            self._walk()
            if "rest" in races:
                self._walk_rest()
        for leaves in (
            self.numbers.coupled,
            self.numbers.rest,
            self.numbers.literal,
            self.numbers.fallback,
        ):
            leaves.sort(key=lambda leaf: (-leaf[0], leaf[1]))

    def _weigh(self) -> None:
        tree = self.tree
        costs = {call: Decimal(c) / 10**9 for call, c in tree.cost.items()}
        bits = 0
        if tree.tilt:
            top = (self.beta * max(costs.values(), default=Decimal(0))).exp()
            bits = next((b for b in range(tree.tilt, 64) if 2 ** (b - tree.tilt) >= top), 64)
        self.bits = bits
        self.weight, self.residual = {}, {}
        for call, cost in costs.items():
            whole = 1
            if tree.tilt:
                near = (2**bits * (-self.beta * cost).exp()).to_integral_value(ROUND_HALF_EVEN)
                whole = max(1, min(2**63 - 1, int(near)))
            self.weight[call] = Fraction(whole, 2**bits)
            log = real(self.weight[call]).ln()
            exact = (-self.beta * cost - log) * 2**32
            self.residual[call] = int(exact.to_integral_value(ROUND_CEILING))

    def _count(self) -> None:
        """n of every row, as it is and as the run uses it, and the best residual and cost to go."""
        self.exact: list[Fraction] = []
        self.used: list[Fraction] = []
        self.residual_to_go: list[int] = []
        self.cost_to_go: list[int] = []
        factor = Fraction(self.tree.inflate)
        for q, (accept, edges) in enumerate(self.tree.rows):
            unit = Fraction(1, 2 ** (self.bits * self.rank[q]))

            def total(counts: Sequence[Fraction], accept=accept, edges=edges) -> Fraction:
                return accept + sum((self.weight[a] * counts[p] for a, p in edges), Fraction(0))

            stored = total(self.exact)
            if self.tree.round_bits is not None:
                stored = rounded(int(stored / unit), self.tree.round_bits) * unit
            self.exact.append(stored)
            self.used.append(max(ceil(factor * stored / unit) * unit, total(self.used)))
            stop = [0] if accept else []
            to_go = [self.residual[a] + self.residual_to_go[p] for a, p in edges]
            self.residual_to_go.append(max(stop + to_go))
            to_go = [self.tree.cost[a] + self.cost_to_go[p] for a, p in edges]
            self.cost_to_go.append(min(stop + to_go))

    def count(self, states: States) -> Fraction:
        return sum((self.used[q] for q in states), Fraction(0))

    def word(self, purpose: int, identity: bytes) -> int:
        block = blake3(bytes([purpose]) + identity, key=self.key).digest(8)
        return int.from_bytes(block, "little")

    def tail_of(self, purpose: int, identity: bytes) -> Decimal:
        """1 - U."""
        return 1 - (Decimal(self.word(purpose, identity)) + Decimal("0.5")) / Q64

    def exponential(self, purpose: int, identity: bytes) -> Decimal:
        return -self.tail_of(purpose, identity).ln()

    def _walk(self) -> None:
        states = self.start
        first = self.exponential(1, self.root) / real(self.count(states))
        self._publish(self.root, 0, states, first, None)
        todo = [((), 0, self.root, states, first, first)]
        while todo:
            todo += self._expand(*todo.pop())

    def _expand(self, prefix, cost, digest, states, t, literal):
        children = self._children(digest, states)
        total, x = self.count(states), self.word(2, digest)
        running, winner = Fraction(0), None
        for place, (_, _, mass, _) in enumerate(children):
            running += mass
            if winner is None and (2 * x + 1) * total < 2**65 * running:
                winner = place
        for place, (call, identity, mass, targets) in enumerate(children):
            weight = self.weight[call] if call else Fraction(1)
            anchor = real(weight) * t
            arrival = anchor
            if place != winner:
                arrival += self.exponential(3, identity) / real(mass / weight)
            if not call:
                self._leaf(prefix, cost, identity, arrival, anchor)
                continue
            spent = cost + self.tree.cost[call]
            self._publish(identity, spent, targets, arrival, anchor)
            own = literal
            if "literal" in self.races:
                own = self.exponential(3, identity) / real(self.count(targets))
                self.numbers.literal_log[identity] = near(-own.ln())
            yield (*prefix, call), spent, identity, targets, arrival, own

    def _walk_rest(self) -> None:
        """The rest race: every child of every node, in order of arrival."""
        states = self.start
        first = self.exponential(1, self.root) / real(self.count(states))
        self._note_rest(self.root, 0, states, first)
        todo = [((), 0, self.root, states, first)]
        while todo:
            prefix, cost, digest, states, t = todo.pop()
            children = self._children(digest, states)
            left = [(place, child[2]) for place, child in enumerate(children)]
            phantom = self.count(states) - sum((mass for _, mass in left), Fraction(0))
            step = 0
            while left:
                mark = digest + step.to_bytes(4, "little")
                x = self.word(5, mark) if step else self.word(2, digest)
                total = phantom + sum((mass for _, mass in left), Fraction(0))
                running, won = Fraction(0), None
                for place, mass in left:
                    running += mass
                    if (2 * x + 1) * total < 2**65 * running:
                        won = place
                        break
                if won is None:
                    phantom = Fraction(0)
                else:
                    left = [(place, mass) for place, mass in left if place != won]
                    call, identity, _, targets = children[won]
                    weight = self.weight[call] if call else Fraction(1)
                    arrival = real(weight) * t
                    if call:
                        spent = cost + self.tree.cost[call]
                        self._note_rest(identity, spent, targets, arrival)
                        todo.append(((*prefix, call), spent, identity, targets, arrival))
                    else:
                        self._rest_leaf(prefix, cost, identity, arrival)
                step += 1
                if left:
                    mark = digest + step.to_bytes(4, "little")
                    total = phantom + sum((mass for _, mass in left), Fraction(0))
                    t += self.exponential(6, mark) / real(total)
                    self._note_rest(blake3(b"\x03" + mark).digest(), cost, states, t)

    def _note_rest(self, digest, cost, states, t) -> None:
        most = self.score(cost) + Decimal(max(self.residual_to_go[q] for q in states)) / 2**32
        self.numbers.rest_log[digest] = near(-t.ln())
        self.numbers.rest_keys[digest] = near(most - t.ln())

    def _rest_leaf(self, prefix, cost, digest, t) -> None:
        self.numbers.rest_log[digest] = near(-t.ln())
        self.numbers.rest_keys[digest] = value = near(self.score(cost) - t.ln())
        if self.tree.allowed((*self.tree.after, *prefix)):
            self.numbers.rest.append((value, digest, prefix))

    def _children(self, digest: bytes, states: States):
        found: dict[str, set[int]] = {}
        for q in states:
            for call, target in self.tree.rows[q][1]:
                found.setdefault(call, set()).add(target)
        children = []
        for call in sorted(found, key=str.encode):
            targets = tuple(sorted(found[call]))
            identity = blake3(b"\x01" + digest + call.encode()).digest()
            children.append((call, identity, self.weight[call] * self.count(targets), targets))
        if any(self.tree.rows[q][0] for q in states):
            children.append((None, blake3(b"\x02" + digest).digest(), Fraction(1), ()))
        return children

    def score(self, cost: int) -> Decimal:
        return -self.beta * cost / 10**9

    def _publish(self, digest, cost, states, arrival, anchor) -> None:
        numbers, log = self.numbers, -arrival.ln()
        most = self.score(cost) + Decimal(max(self.residual_to_go[q] for q in states)) / 2**32
        numbers.neg_log_t[digest] = near(log)
        numbers.finalized[digest] = near(most + log)
        numbers.anchored[digest] = near(most - (anchor or arrival).ln())
        least = cost + min(self.cost_to_go[q] for q in states)
        numbers.bounds[digest] = near(self.score(least))

    def _leaf(self, prefix, cost, digest, arrival, anchor) -> None:
        numbers, score = self.numbers, self.score(cost)
        numbers.neg_log_t[digest] = near(-arrival.ln())
        numbers.finalized[digest] = value = near(score - arrival.ln())
        numbers.anchored[digest] = near(score - anchor.ln())
        if not self.tree.allowed((*self.tree.after, *prefix)):
            return
        numbers.coupled.append((value, digest, prefix))
        if "literal" in self.races:
            value = near(score - self.exponential(4, digest).ln())
            numbers.literal.append((value, digest, prefix))
        if "fallback" in self.races:
            tail = self.tail_of(4, digest)
            gumbel = -(-(1 - tail).ln()).ln()
            value = near(gumbel / self.tau + score - (-tail.ln()).ln())
            numbers.fallback.append((value, digest, prefix))


def real(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def near(value: Decimal) -> int:
    return int((value * Q64).to_integral_value(ROUND_HALF_EVEN))


def rounded(value: int, bits: int) -> int:
    """The least m * 2^e of at most `bits` bits that is no less than `value`."""
    drop = max(0, value.bit_length() - bits)
    return -(-value >> drop) << drop
