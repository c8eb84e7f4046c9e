"""A reference run: plays an exact race by the definitions of tcc_certs.race and writes a ledger.

Slow and plain.  It shares the definitions and the line writer with the validator, and neither its
walk, nor its records, nor its order of checks; with the runtime it shares nothing but formats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tcc_certs.codec import encode
from tcc_certs.digest import (
    blake,
    child_context,
    leaf_digest,
    opening_salt,
    race_key,
    root_context,
    seed_commitment,
    uniform,
    uuid7,
)
from tcc_certs.fixed import format_decimal, format_q32, format_q64
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.ledger import FIRST_HEAD, seal
from tcc_certs.race import Arrival, Published, arrive, child_masses, leaf_uniform, publish, winner
from tcc_certs.weights import call_residual


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a reference run is told."""

    seed: bytes = bytes(32)
    committed: bytes | None = None  # the seed of the commitment, where it is another one
    salt: bytes | None = None
    started_ms: int = 1_700_000_000_000
    recipe: str = "r2"
    top: int = 1
    alpha: str = "0"
    eta: str = "1"
    count_bits: int = 0
    max_expansions: int | None = None
    interrupt_after: int | None = None
    overrun: int = 0  # pops past the stop rule, for forgers
    withhold: bool = False
    header: tuple[tuple[str, Any], ...] = ()  # fields of `open` to overwrite


@dataclass(frozen=True, kw_only=True)
class Item:
    """A frontier item."""

    digest: bytes
    calls: tuple[int, ...]
    state: int | None
    arrival: Arrival
    published: Published
    weight: int = 1


class Reference:
    """One run over one artifact."""

    def __init__(self, artifact: CheckedArtifact, plan: Plan) -> None:
        self.artifact = artifact
        self.plan = plan
        manifest, columns = artifact.file.manifest, artifact.file.columns
        self.bits = manifest.fraction_bits
        self.beta = Fraction(manifest.beta[0], 10 ** manifest.beta[1])
        self.low = list(columns["call_cost_low"].items())
        self.high = list(columns["call_cost_high"].items())
        self.weight = list(columns["call_weight"].items())
        self.ahead = list(columns["residual_to_go"].items())
        self.rank = list(artifact.automaton.rank)
        residuals = [
            call_residual(manifest.beta, cost, weight, self.bits)
            for cost, weight in zip(self.low, self.weight, strict=True)
        ]
        self.step = max([0, *residuals])
        self.root = root_context(manifest.root_document)
        self.key = race_key(plan.seed, self.root)
        self.records: list[dict[str, Any]] = []

    def bound(self, state: int | None, calls: tuple[int, ...]) -> tuple[int, int]:
        so_far = -self.beta * Fraction(sum(self.low[c] for c in calls), 10**9)
        if state is not None:
            ahead = self.ahead[state] if self.plan.recipe == "r2" else self.rank[state] * self.step
            so_far += Fraction(ahead, 1 << 32)
        return so_far.numerator, so_far.denominator

    def item(self, digest, calls, state, parent, weight, x) -> Item:
        arrival = arrive(
            parent=parent,
            weight=weight,
            fraction_bits=self.bits if parent else 0,
            x=x,
            count=1 if state is None else self.artifact.race_count[state],
            unit=0 if state is None else self.bits * self.rank[state],
        )
        published = publish(arrival, self.bound(state, calls))
        return Item(digest=digest, calls=calls, state=state, arrival=arrival, published=published)

    def name(self, digest: bytes) -> str:
        return uuid7(self.plan.started_ms, digest)

    def texts(self, calls: tuple[int, ...]) -> list[str]:
        return [self.artifact.calls[c] for c in calls]

    def write_node(self, item: Item, parent: bytes | None, place: int, x: int | None) -> None:
        shown = " ".join(self.texts(item.calls)[-3:])
        while len(shown.encode()) > 48:
            shown = shown[1:]
        record = {
            "kind": "node",
            "node_id": self.name(item.digest),
            "ctx_digest": item.digest.hex(),
            "ctx_repr": shown,
            "key_raw": format_q64(item.published.key),
            "neg_log_t": format_q64(item.published.neg_log_t),
        }
        plans = 1 if item.state is None else self.artifact.plans[item.state]
        if plans < 2**64:
            record["N"] = str(plans)
        if item.state is not None:
            record["state"] = item.state
        if x is not None:
            record["U"] = str(x)
        if parent is not None:
            call = "stop" if item.state is None else self.texts(item.calls)[-1]
            record |= {"parent_id": self.name(parent), "call": call, "tie_token": place}
        self.records.append(record)

    def children(self, item: Item) -> list[Item]:
        automaton = self.artifact.automaton
        edges = list(automaton.edges(item.state))
        masses = child_masses(
            self.rank[item.state],
            bool(automaton.accept[item.state]),
            [(self.weight[c], self.rank[p], self.artifact.race_count[p]) for c, p in edges],
            self.bits,
        )
        x = uniform(self.key, 2, item.digest)
        won = winner(x, self.artifact.race_count[item.state], masses)
        self.write_expand(item, x, won)
        found = []
        for place in range(len(masses)):
            call, target = edges[place] if place < len(edges) else (None, None)
            if call is None:
                digest, calls, weight = leaf_digest(item.digest), item.calls, 1 << self.bits
            else:
                digest = child_context(item.digest, self.artifact.calls[call].encode())
                calls, weight = (*item.calls, call), self.weight[call]
            residual = None if place == won else uniform(self.key, 3, digest)
            child = self.item(digest, calls, target, item.arrival, weight, residual)
            self.write_node(child, item.digest, place, residual)
            found.append(child)
        return found

    def write_expand(self, item: Item, x: int, won: int | None) -> None:
        record = {
            "kind": "expand",
            "node_id": self.name(item.digest),
            "W": str(x),
            "winner": "phantom" if won is None else str(won),
        }
        alpha = Fraction(self.plan.alpha)
        if item.calls and alpha:
            before, after = self.phi(item.calls[:-1], alpha), self.phi(item.calls, alpha)
            record |= {
                "phi_before": format_q32(round(before * 2**32)),
                "phi_after": format_q32(round(after * 2**32)),
                "delta_phi": format_q32(round((after - before) * 2**32)),
            }
            if after - before > -Fraction(self.plan.eta):
                record["guards"] = ["AcyclicityFail"]
                if not any("claim_type" in r for r in self.records[1:]):
                    record["claim_type"] = "NoCert"
        self.records.append(record)

    def phi(self, calls: tuple[int, ...], alpha: Fraction) -> Fraction:
        longest = self.rank[self.artifact.automaton.root]
        return longest - len(calls) + alpha * Fraction(sum(self.high[c] for c in calls), 10**9)

    def run(self) -> list[dict[str, Any]]:
        root_state = self.artifact.automaton.root
        self.write_open()
        first = uniform(self.key, 1, self.root)
        root = self.item(self.root, (), root_state, None, 1, first)
        self.write_node(root, None, 0, first)
        frontier, leaves, expansions, pops = [root], [], 0, 0
        incumbent, ending, over = None, None, 0
        while True:
            frontier.sort(key=lambda i: (-i.published.key, i.digest))
            best = sorted(leaves, key=lambda i: (-i.published.key, i.digest))[: self.plan.top]
            incumbent = best[-1].published.key if len(best) == self.plan.top else None
            if leaves and self.records[-1]["kind"] == "leaf" and incumbent is not None:
                self.records[-1]["incumbent"] = format_q64(incumbent)
            ending = self.ending(frontier, incumbent, expansions, pops)
            if ending and (ending[0] != "bound" or over == self.plan.overrun):
                break
            over += bool(ending)
            item, pops = frontier.pop(0), pops + 1
            if item.state is None:
                self.records.append(
                    {
                        "kind": "leaf",
                        "node_id": self.name(item.digest),
                        "V": format_q64(item.published.key),
                        "U_P": str(leaf_uniform(item.arrival)),
                    }
                )
                leaves.append(item)
            else:
                frontier += self.children(item)
                expansions += 1
        self.write_close(ending, frontier, best, incumbent, expansions, len(leaves))
        return self.records

    def ending(self, frontier, incumbent, expansions, pops) -> tuple[str, str | None] | None:
        if not frontier:
            return "exhausted", None
        if incumbent is not None and frontier[0].published.key <= incumbent:
            return "bound", None
        if pops == self.plan.interrupt_after:
            return "interrupted", None
        if frontier[0].state is None:
            return None
        if expansions == self.plan.max_expansions:
            return "max_expansions", "CapExceeded"
        if 0 < self.plan.count_bits < self.artifact.race_count[frontier[0].state].bit_length():
            return "guard", "CountFail"
        return None

    def write_open(self) -> None:
        manifest, plan = self.artifact.file.manifest, self.plan
        committed = plan.seed if plan.committed is None else plan.committed
        salt = opening_salt(committed) if plan.salt is None else plan.salt
        caps = {} if plan.max_expansions is None else {"max_expansions": plan.max_expansions}
        record = {
            "kind": "open",
            "schema": "tcc.ledger/1.0",
            "started_ms": plan.started_ms,
            "artifact": self.artifact.file.digest.hex(),
            "grammar": manifest.grammar,
            "grammar_version": manifest.version,
            "root_state": manifest.root.hex(),
            "seed_commitment": seed_commitment(committed, salt).hex(),
            "prf_domain": "tcc.race.v1",
            "mode": "exact",
            "claim_type": "RunWiseExact",
            "race": "coupled",
            "keys": "finalized",
            "recipe": plan.recipe,
            "tilt": manifest.tilt,
            "beta": format_decimal(*manifest.beta),
            "inflate": "1",
            "tau": "1",
            "alpha": plan.alpha,
            "eta": plan.eta,
            "top": plan.top,
            "truncate": self.rank[self.artifact.automaton.root],
            "count_bits": plan.count_bits,
            "run_limits": caps,
            "privacy_scope": "post_processing_only",
            **dict(plan.header),
        }
        self.records.append(with_run_id(record))

    def write_close(self, ending, frontier, best, incumbent, expansions, leaves) -> None:
        stop, guard = ending
        lowered = any("claim_type" in record for record in self.records[1:])
        certified = stop in ("bound", "exhausted") and not lowered
        record = {
            "kind": "close",
            "stop": stop,
            "claim_type": "RunWiseExact" if certified else "NoCert",
            "plans": [
                {
                    "calls": self.texts(item.calls),
                    "cost": format_decimal(sum(self.low[c] for c in item.calls), 9),
                    "leaf_id": item.digest.hex(),
                    "value": format_q64(item.published.key),
                }
                for item in best
            ],
            "expansions": expansions,
            "leaves": leaves,
            "law": "softmax",
        }
        if frontier:
            record["frontier_key"] = format_q64(frontier[0].published.key)
            if incumbent is not None:
                record["gap"] = format_q64(frontier[0].published.key - incumbent)
        if guard:
            record["guards"] = [guard]
        if not self.plan.withhold:
            salt = opening_salt(self.plan.seed) if self.plan.salt is None else self.plan.salt
            record |= {"seed": self.plan.seed.hex(), "opening_salt": salt.hex()}
        self.records.append(record)


def with_run_id(record: dict[str, Any]) -> dict[str, Any]:
    """The header with the run id that its other fields give."""
    body = {name: value for name, value in record.items() if name != "run_id"}
    started = body.get("started_ms")
    if type(started) is not int or not 0 <= started < 2**48:
        return record
    return {**body, "run_id": uuid7(started, blake(encode(body)))}


def chained(records: list[dict[str, Any]]) -> bytes:
    """Records as the lines of a ledger."""
    head, lines = FIRST_HEAD, []
    for record in records:
        line, head = seal(record, head)
        lines.append(line)
    return b"".join(lines)


def reference_records(artifact: CheckedArtifact, plan: Plan | None = None, **told: Any) -> list:
    """The records of a reference run; `told` are members of :class:`Plan`."""
    return Reference(artifact, replace(plan or Plan(), **told)).run()


def reference_ledger(artifact: CheckedArtifact, plan: Plan | None = None, **told: Any) -> bytes:
    """The ledger of a reference run."""
    return chained(reference_records(artifact, plan, **told))
