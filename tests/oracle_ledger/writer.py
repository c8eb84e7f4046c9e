"""A reference run: plays any race in 400 bits of MPFR and writes its ledger.

Slow and plain.  With the validator it shares digests, formats and the line writer, and neither its
arithmetic, nor its walk, nor its records, nor its order of checks; with the runtime formats alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tcc_certs.formats.codec import blake, encode, format_decimal
from tcc_certs.formats.ledger import FIRST_HEAD, format_q32, format_q64, seal
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import (
    child_context,
    leaf_digest,
    opening_salt,
    race_key,
    root_context,
    seed_commitment,
    uniform,
    uuid7,
)
from tcc_certs.race.enclosures import call_residual
from tests.oracle_ledger.brute import Masses, States
from tests.oracle_ledger.numbers import (
    Real,
    arrival_word,
    exponential,
    heuristic,
    log_sum,
    minus_log,
    nearest,
    plus,
    times,
)

Word = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a reference run is told."""

    seed: bytes = bytes(32)
    committed: bytes | None = None  # the seed of the commitment, where it is another one
    salt: bytes | None = None
    started_ms: int = 1_700_000_000_000
    mode: str | None = None  # None: exact where it can be
    race: str = "coupled"
    keys: str = "finalized"
    recipe: str = "r2"
    inflate: str = "1"
    tau: str = "1"
    truncate: int | None = None
    after: tuple[str, ...] = ()  # calls before the run
    beacon: bytes | None = None
    nonce: bytes | None = None
    top: int = 1
    alpha: str = "0"
    eta: str = "1"
    count_bits: int = 0
    max_expansions: int | None = None
    interrupt_after: int | None = None
    silent: bool = False  # claims nothing from the start
    overrun: int = 0  # pops past the stop rule, for forgers
    allow_all: bool = False  # pushes forbidden children, for forgers
    withhold: bool = False
    header: tuple[tuple[str, Any], ...] = ()  # fields of `open` to overwrite


@dataclass(frozen=True, kw_only=True)
class Left:
    """What was drawn of a node's children, in the rest race."""

    digest: bytes
    step: int = 0
    gone: tuple[int, ...] = ()
    phantom: bool = True
    barren: bool = True


@dataclass(frozen=True, kw_only=True)
class Item:
    """A frontier item; with `left` what a node has left, `t` that of its next draw."""

    digest: bytes
    calls: Word
    states: States | None
    key: int
    parent: Item | None = None
    won: bool = False
    t: Real | None = None  # known once it is realised
    value: int = 0
    left: Left | None = None


class Reference:
    """One run over one artifact."""

    def __init__(self, artifact: CheckedArtifact, plan: Plan) -> None:
        self.artifact = artifact
        manifest, columns = artifact.file.manifest, artifact.file.columns
        self.exact = manifest.counts == "exact"
        mode = plan.mode or ("exact" if self.exact and plan.inflate == "1" else "surrogate")
        self.plan = plan = replace(plan, mode=mode)
        self.masses = Masses(artifact, plan.inflate)
        self.beta = self.masses.beta
        self.low = self.masses.low
        self.high = list(columns["call_cost_high"].items())
        self.ahead = list(columns["residual_to_go"].items())
        self.cheapest = list(columns["cost_to_go"].items())
        self.rank = self.masses.rank
        self.bits = manifest.fraction_bits
        self.root = root_context(manifest.root_document)
        self.before, self.start = self.led(plan.after)
        self.longest = max(self.rank[q] for q in self.start)
        self.rounds = mode != "fallback" and 0 < plan.count_bits < self.width()
        if self.rounds:
            self.masses = Masses(artifact, plan.inflate, min(plan.count_bits, 63))
        self.truncate = self.longest if plan.truncate is None else min(plan.truncate, self.longest)
        residuals = [
            call_residual(manifest.beta, cost, weight, self.bits)
            for cost, weight in zip(self.low, columns["call_weight"].items(), strict=True)
        ]
        self.step = max([0, *residuals])
        self.header = self.make_header()
        self.key = race_key(plan.seed, self.race_salt())
        self.regime = "fallback" if mode == "fallback" else plan.race
        self.claim = self.header["claim_type"]
        self.records: list[dict[str, Any]] = [self.header]
        if self.rounds:
            self.claim = {"RunWiseExact": "RunWiseSurrogate"}.get(self.claim, self.claim)
            self.records.append(
                {
                    "kind": "downgrade",
                    "mode": "surrogate",
                    "claim_type": self.claim,
                    "guards": ["CountFail"],
                }
            )

    def width(self) -> int:
        """The bits of the widest count that the run may meet."""
        counts = self.artifact.race_count
        if self.plan.inflate == "1" and self.artifact.file.manifest.round_counts is not None:
            return max(counts.mantissa[q].bit_length() for q in self.start)
        unit = 2 ** (self.bits * self.depth_left(self.start))
        return (self.masses.n(self.start) * unit).numerator.bit_length()

    def led(self, after: tuple[str, ...]) -> tuple[Word, States]:
        """The calls before the run by number, and where they lead; folds the root's context."""
        word: list[int] = []
        states = set(self.masses.root)
        for text in after:
            call = self.artifact.calls.index(text)
            edges = [edge for q in states for edge in self.artifact.automaton.edges(q)]
            states = {target for other, target in edges if other == call}
            self.root = child_context(self.root, text.encode())
            word.append(call)
        return tuple(word), tuple(sorted(states))

    # What the numbers are.

    def word(self, purpose: int, digest: bytes) -> int:
        return uniform(self.key, purpose, digest)

    def score(self, calls: Word, more: int = 0) -> Fraction:
        return -self.beta * Fraction(sum(self.low[c] for c in calls) + more, 10**9)

    def bound(self, states: States | None, calls: Word) -> Fraction:
        if states is None:
            return self.score(calls)
        if self.plan.recipe == "r2":
            ahead = max(self.ahead[q] for q in states)
        else:
            ahead = self.depth_left(states) * self.step
        return self.score(calls) + Fraction(ahead, 1 << 32)

    def depth_left(self, states: States) -> int:
        return max(self.rank[q] for q in states)

    def weight(self, item: Item) -> Fraction:
        return Fraction(1) if item.states is None else self.masses.weight[item.calls[-1]]

    def fallback_key(self, item: Item) -> int:
        if item.states is None:
            x = self.word(4, item.digest)
            return heuristic(x, self.score(item.calls), Fraction(self.plan.tau))
        least = min(self.cheapest[q] for q in item.states)
        if self.plan.recipe == "r1":
            least = self.depth_left(item.states) * min([0, *self.low])
        return nearest(self.score(item.calls, least))

    def name(self, digest: bytes) -> str:
        return uuid7(self.plan.started_ms, digest)

    def texts(self, calls: Word) -> list[str]:
        return [self.artifact.calls[c] for c in calls]

    # Pushes.

    def push(self, item: Item, place: int) -> Item:
        """The item with its key, and its `node` record."""
        record: dict[str, Any] = {
            "kind": "node",
            "node_id": self.name(item.digest),
            "ctx_digest": item.digest.hex(),
            "ctx_repr": self.shown(item.calls),
        }
        plans = 1
        if item.states is not None:
            plans = sum(self.artifact.plans[q] for q in item.states)
            many = self.artifact.file.manifest.nondeterministic
            record["state"] = list(item.states) if many else item.states[0]
        if plans < 2**64:
            record["N" if self.exact else "Nub"] = str(plans)
        if item.parent is not None:
            call = "stop" if item.states is None else self.texts(item.calls)[-1]
            record |= {"parent_id": self.name(item.parent.digest), "call": call, "tie_token": place}
        item = self.keyed(item, record)
        record["key_raw"] = format_q64(item.key)
        self.records.append(record)
        return item

    def keyed(self, item: Item, record: dict[str, Any]) -> Item:
        if self.regime == "fallback":
            if item.states is None:
                record["U"] = str(self.word(4, item.digest))
            return replace(item, key=self.fallback_key(item))
        bound = self.bound(item.states, item.calls)
        realised = self.regime == "rest" or self.plan.keys == "finalized"
        if item.parent is None or (self.regime != "literal" and realised):
            item = self.realised(item, record)
            return replace(item, key=minus_log(item.t, bound), value=minus_log(item.t, bound))
        return replace(item, key=minus_log(times(self.weight(item), item.parent.t), bound))

    def realised(self, item: Item, record: dict[str, Any]) -> Item:
        """The item with its arrival; the record gets its uniform and -ln t."""
        if item.parent is None:
            x = self.word(1, item.digest)
            t = exponential(x, self.masses.n(item.states))
        elif self.regime == "literal":
            x = self.word(4 if item.states is None else 3, item.digest)
            t = exponential(x, self.masses.n(item.states))
        else:
            x, t = None, times(self.weight(item), item.parent.t)
            if not item.won:
                x = self.word(3, item.digest)
                t = plus(t, exponential(x, self.masses.n(item.states)))
        if x is not None:
            record["U"] = str(x)
        record["neg_log_t"] = format_q64(minus_log(t))
        return replace(item, t=t)

    def shown(self, calls: Word) -> str:
        shown = " ".join(self.texts(calls)[-3:])
        while len(shown.encode()) > 48:
            shown = shown[1:]
        return shown

    # Pops.

    def expand(self, item: Item) -> list[Item]:
        record: dict[str, Any] = {"kind": "expand", "node_id": self.name(item.digest)}
        self.records.append(record)
        if self.regime != "fallback" and item.t is None:
            item = self.realised(item, record)
        if self.regime == "rest":
            self.note_phi(item, record)
            return self.draw(item, Left(digest=item.digest), record)
        children = self.masses.children(item.states)
        allowed = [self.allowed(item, call) for call, _, _ in children]
        won = self.draw_winner(item, children, allowed, record)
        if not any(allowed):
            record["dead_end"] = True
        self.note_phi(item, record)
        found = []
        for place, (call, to, _) in enumerate(children):
            if not allowed[place]:
                continue
            found.append(self.push(self.child(item, call, to, place == won), place))
        return found

    def child(self, item: Item, call: int | None, to: States | None, won: bool) -> Item:
        digest = leaf_digest(item.digest)
        if call is not None:
            digest = child_context(item.digest, self.artifact.calls[call].encode())
        return Item(
            digest=digest, calls=self.after(item, call), states=to, key=0, parent=item, won=won
        )

    # The rest race.

    def pop_left(self, item: Item) -> list[Item]:
        """What a node has left is the greatest item."""
        left = item.left
        record: dict[str, Any] = {
            "kind": "draw", "node_id": self.name(left.digest), "step": left.step,
        }  # fmt: skip
        self.records.append(record)
        node = replace(item, digest=left.digest, left=None)
        if self.regime == "rest":
            return self.draw(node, left, record)
        found = []
        for place, (call, to, _) in enumerate(self.masses.children(node.states)):
            if place not in left.gone and self.allowed(node, call):
                found.append(self.push(self.child(node, call, to, False), place))
        if left.barren and not found:
            record["dead_end"] = True
        return found

    def allowed(self, item: Item, call: int | None) -> bool:
        word, most = self.before + self.after(item, call), len(self.before) + self.truncate
        return self.plan.allow_all or self.masses.allows(word, call is None, most)

    def draw(self, item: Item, left: Left, record: dict[str, Any]) -> list[Item]:
        children = self.masses.children(item.states)
        here = [place for place in range(len(children)) if place not in left.gone]
        total = self.left_mass(item, children, left)
        mark = left.digest + left.step.to_bytes(4, "little")
        x = self.word(5, mark) if left.step else self.word(2, left.digest)
        won = self.first(x, total, [(place, children[place][2]) for place in here])
        found = []
        record |= {"W": str(x), "winner": "phantom"}
        if won is not None and self.allowed(item, children[won][0]):
            record["winner"] = str(won)
            call, to, _ = children[won]
            found.append(self.push(self.child(item, call, to, True), won))
        left = Left(
            digest=left.digest,
            step=left.step + 1,
            gone=left.gone if won is None else (*left.gone, won),
            phantom=left.phantom and won is not None,
            barren=left.barren and not found,
        )
        if len(left.gone) < len(children):
            found.append(self.push_left(item, children, left))
        elif left.barren:
            record["dead_end"] = True
        return found

    def first(self, x: int, total: Fraction, masses: list[tuple[int, Fraction]]) -> int | None:
        edge = Fraction(0)
        for place, mass in masses:
            edge += mass
            if Fraction(2 * x + 1, 2**65) * total < edge:
                return place
        return None

    def left_mass(self, item: Item, children: list, left: Left) -> Fraction:
        gone = sum((children[place][2] for place in left.gone), Fraction(0))
        whole = sum((mass for _, _, mass in children), Fraction(0))
        return self.masses.n(item.states) - gone if left.phantom else whole - gone

    def push_left(self, item: Item, children: list, left: Left) -> Item:
        mark = left.digest + left.step.to_bytes(4, "little")
        x = self.word(6, mark)
        t = plus(item.t, exponential(x, self.left_mass(item, children, left)))
        key = minus_log(t, self.bound(item.states, item.calls))
        self.records.append(
            {
                "kind": "rest",
                "node_id": self.name(left.digest),
                "step": left.step,
                "U": str(x),
                "neg_log_t": format_q64(minus_log(t)),
                "key_raw": format_q64(key),
            }
        )
        return replace(item, digest=blake(b"\x03" + mark), key=key, t=t, left=left)

    def after(self, item: Item, call: int | None) -> Word:
        return item.calls if call is None else (*item.calls, call)

    def draw_winner(self, item, children, allowed, record) -> int | None:
        if self.regime != "coupled":
            return None
        x = self.word(2, item.digest)
        edge, won = Fraction(0), None
        for place, (_, _, mass) in enumerate(children):
            edge += mass
            if won is None and Fraction(2 * x + 1, 2**65) * self.masses.n(item.states) < edge:
                won = place if allowed[place] else -1
        if won == -1:
            won = None
        record |= {"W": str(x), "winner": "phantom" if won is None else str(won)}
        return won

    def note_phi(self, item: Item, record: dict[str, Any]) -> None:
        alpha = Fraction(self.plan.alpha)
        if not item.calls or not alpha:
            return
        before, after = self.phi(item.calls[:-1], alpha), self.phi(item.calls, alpha)
        record |= {
            "phi_before": format_q32(round(before * 2**32)),
            "phi_after": format_q32(round(after * 2**32)),
            "delta_phi": format_q32(round((after - before) * 2**32)),
        }
        if after - before > -Fraction(self.plan.eta):
            record["guards"] = ["AcyclicityFail"]
            if self.claim != "NoCert":
                record["claim_type"] = self.claim = "NoCert"

    def phi(self, calls: Word, alpha: Fraction) -> Fraction:
        return self.longest - len(calls) + alpha * Fraction(sum(self.high[c] for c in calls), 10**9)

    def take(self, leaf: Item) -> Item:
        """The leaf with its value, and its record."""
        record: dict[str, Any] = {"kind": "leaf", "node_id": self.name(leaf.digest)}
        self.records.append(record)
        if self.regime == "fallback":
            leaf = replace(leaf, value=leaf.key)
            word = self.word(4, leaf.digest)
        else:
            if leaf.t is None:
                leaf = self.realised(leaf, record)
                leaf = replace(leaf, value=minus_log(leaf.t, self.score(leaf.calls)))
            word = arrival_word(leaf.t)
            if self.regime == "literal":
                word = self.word(4, leaf.digest)
        record |= {"V": format_q64(leaf.value), "U_P": str(word)}
        return leaf

    # The search.

    def run(self) -> list[dict[str, Any]]:
        root = Item(digest=self.root, calls=(), states=self.start, key=0)
        self.frontier, self.leaves = [self.push(root, 0)], []
        self.expansions = pops = over = 0
        while True:
            self.frontier.sort(key=lambda i: (-i.key, i.digest))
            self.rank_leaves()
            ending = self.ending(pops)
            if ending == ("downgrade", None):  # of a test's own guard
                self.downgrade()
                continue
            if ending and (ending[0] != "bound" or over == self.plan.overrun):
                break
            over += bool(ending)
            item, pops = self.frontier.pop(0), pops + 1
            if item.states is None:
                self.leaves.append(self.take(item))
                self.rank_leaves()
                if self.incumbent is not None:
                    self.records[-1]["incumbent"] = format_q64(self.incumbent)
            elif item.left:
                self.frontier += self.pop_left(item)
            else:
                self.frontier += self.expand(item)
                self.expansions += 1
        self.write_close(*ending)
        return self.records

    def rank_leaves(self) -> None:
        ranked = sorted(self.leaves, key=lambda i: (-i.value, i.digest))
        self.best = ranked[: self.plan.top]
        full = len(self.best) == self.plan.top
        self.incumbent = self.best[-1].value if full else None

    def ending(self, pops: int) -> tuple[str, str | None] | None:
        if not self.frontier:
            return "exhausted", None
        top = self.frontier[0]
        if self.incumbent is not None and top.key <= self.incumbent:
            return "bound", None
        if pops == self.plan.interrupt_after:
            return "interrupted", None
        if top.states is None or top.left:
            return None
        if self.expansions == self.plan.max_expansions:
            return "max_expansions", "CapExceeded"
        return None

    def downgrade(self) -> None:
        self.records.append(
            {
                "kind": "downgrade",
                "mode": "fallback",
                "claim_type": "NoCert",
                "guards": ["CountFail"],
            }
        )
        self.regime, self.claim = "fallback", "NoCert"
        self.leaves = [replace(leaf, value=self.fallback_key(leaf)) for leaf in self.leaves]
        self.frontier = [replace(i, key=self.fallback_key(i)) for i in self.frontier]

    # First and last record.

    def make_header(self) -> dict[str, Any]:
        manifest, plan = self.artifact.file.manifest, self.plan
        committed = plan.seed if plan.committed is None else plan.committed
        salt = opening_salt(committed) if plan.salt is None else plan.salt
        caps = {} if plan.max_expansions is None else {"max_expansions": plan.max_expansions}
        if plan.silent or plan.mode == "fallback" or plan.race == "literal":
            claim = "NoCert"
        elif self.truncate < self.longest:
            claim = "TruncationOnly"
        else:
            claim = {"exact": "RunWiseExact", "surrogate": "RunWiseSurrogate"}[plan.mode]
        record = {
            "kind": "open",
            "schema": "tcc.ledger/2",
            "started_ms": plan.started_ms,
            "artifact": self.artifact.file.digest.hex(),
            "grammar": manifest.grammar,
            "grammar_version": manifest.version,
            "root_state": manifest.root.hex(),
            "seed_commitment": seed_commitment(committed, salt).hex(),
            "prf_domain": "tcc.race.v1",
            "mode": plan.mode,
            "claim_type": claim,
            "race": plan.race,
            "keys": plan.keys,
            "recipe": plan.recipe,
            "tilt": manifest.tilt,
            "beta": format_decimal(*manifest.beta),
            "inflate": plan.inflate,
            "tau": plan.tau,
            "alpha": plan.alpha,
            "eta": plan.eta,
            "top": plan.top,
            "truncate": self.truncate,
            "count_bits": plan.count_bits,
            "run_limits": caps,
            "privacy_scope": "post_processing_only",
        }
        if plan.beacon is not None:
            record["beacon"] = plan.beacon.hex()
        if plan.nonce is not None:
            record["client_nonce"] = plan.nonce.hex()
        if plan.after:
            record["after"] = list(plan.after)
        return with_run_id({**record, **dict(plan.header)})

    def race_salt(self) -> bytes:
        if self.plan.beacon is None and self.plan.nonce is None:
            return self.root
        data = b"tcc.salt.v1\x00" + self.root + opening_of(self.header, self.rounds)
        for part in (self.plan.beacon or b"", self.plan.nonce or b""):
            data += len(part).to_bytes(4, "little") + part
        return blake(data)

    def write_close(self, stop: str, guard: str | None) -> None:
        top = self.frontier[0] if self.frontier else None
        record: dict[str, Any] = {
            "kind": "close",
            "stop": stop,
            "claim_type": self.claim if stop in ("bound", "exhausted") else "NoCert",
            "plans": [
                {
                    "calls": self.texts(item.calls),
                    "cost": format_decimal(sum(self.low[c] for c in item.calls), 9),
                    "leaf_id": item.digest.hex(),
                    "value": format_q64(item.value),
                }
                for item in self.best
            ],
            "expansions": self.expansions,
            "leaves": len(self.leaves),
            "law": "softmax" if self.regime in ("coupled", "rest") else "none",
        }
        if top is not None:
            record["frontier_key"] = format_q64(top.key)
            if self.incumbent is not None:
                record["gap"] = format_q64(top.key - self.incumbent)
        if self.regime == "fallback":
            nodes = [r for r in self.records if r["kind"] == "node"]
            record["materialised"] = sum("state" not in r for r in nodes)
        if self.truncate < self.longest:
            record["tail_lse"] = format_q64(log_sum(self.longer()))
        if guard:
            record["guards"] = [guard]
        if not self.plan.withhold:
            salt = opening_salt(self.plan.seed) if self.plan.salt is None else self.plan.salt
            record |= {"seed": self.plan.seed.hex(), "opening_salt": salt.hex()}
        self.records.append(record)

    def longer(self) -> list[Fraction]:
        """The scores of the derivations of more calls than the cut, one by one."""
        found: list[Fraction] = []
        todo: list[tuple[int, Word]] = [(state, ()) for state in self.start]
        while todo:
            state, calls = todo.pop()
            if self.artifact.automaton.accept[state] and len(calls) > self.truncate:
                found.append(self.score(calls))
            edges = self.artifact.automaton.edges(state)
            todo += [(target, (*calls, call)) for call, target in edges]
        return found


def opening_of(header: dict[str, Any], rounds: bool = False) -> bytes:
    """O, of a header."""
    names = "artifact beta inflate keys mode race recipe seed_commitment tau tilt top truncate"
    names += " after" if "after" in header else ""
    names += " count_bits" if rounds else ""
    return blake(b"tcc.open.v1\x00" + encode({name: header[name] for name in names.split()}))


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
