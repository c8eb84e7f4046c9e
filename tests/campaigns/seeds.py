"""Small well-formed inputs of every kind: what the fuzzers start from.

They are small on purpose: an input is read in a fraction of a millisecond, so that millions are.
Between them they have every mode and every feature that an artifact, a ledger or a grammar can
have.  What coverage-guided runs found worth keeping stands beside them, in `corpus/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.reader import read_core
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pricing.quotes import Answer, Question, Quoter
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.forgery.test_range_forgeries import RUNS as BUDGETED, forged_run, ranges
from tests.oracle.build import build
from tests.oracle.cores import at_most, call, count_at_most, depth, letters, make_core, random_core
from tests.oracle.network import build_network, build_relaxed, without
from tests.oracle.plans import plans
from tests.oracle_ledger.upper import Shape, upper
from tests.oracle_ledger.writer import reference_records

CORPUS = Path(__file__).parent / "corpus"
_ONE = make_core(**letters(1), plan=["call", {0}])
_PAIR = make_core(
    **letters(2, cost=[300_000_000, 1_250_000_000], price=[1, 0]),
    plan=["repeat", ["call", {0, 1}], 0, 2],
    statements=[depth(2), at_most("price", 1)],
)
_MANY = make_core(
    tools=[
        {"name": "a", "fields": [{"name": "k", "values": ["1", "2"]}], "doc": "d"},
        {"name": "b"},
    ],
    calls=[
        call(0, [0], cost=1, high=2, price=1, latency=3, epsilon=4),
        call(0, [1], cost=5),
        call(1, cost=-7, high=0),
    ],
    rules={"r": ["alt", [["call", {0}], ["call", {2}]]]},
    plan=[
        "diff",
        ["and", [["repeat", ["rule", "r"], 0, 2], ["repeat", ["call", {0, 1, 2}], 0]]],
        [["seq", [["call", {0}], ["call", {0}]]]],
    ],
    statements=[
        at_most("cost", 9),
        depth(2),
        *(at_most(kind, 9) for kind in ("epsilon", "latency", "price")),
        count_at_most({0, 1}, 1),
        ["before", {0, 1}, {2}],
        ["after", {0, 1}, {2}],
        ["never next", {2}, {2}],
    ],
)


def artifacts() -> list[bytes]:
    """Artifacts of a few states each: every feature, widths of one limb and of more."""
    other = make_core(**letters(2), plan=["alt", [["call", {0}], ["call", {1}]]])
    deep = make_core(**letters(1), plan=["repeat", ["call", {0}], 0, 5], statements=[depth(5)])
    made = [
        build(_ONE, [(0,)], tilt=0),
        build(_PAIR, plans(read_core(_PAIR), 2)),
        build(_PAIR, plans(read_core(_PAIR), 2), beta="0.5", round_counts=3),
        build(_MANY, plans(read_core(_MANY), 2), tilt=1),
        build(deep, plans(read_core(deep), 5), tilt=16),
        build(make_core(**letters(1), plan=["empty"]), [()]),
        build_relaxed(_PAIR, (1,), 2, tilt=1),
        build_network(_MANY, 2),
        build_network(_PAIR, 2, (1,), round_counts=2),
        # Faultless, and not of their cores: what the check against the core is for.
        build(other, [(0,)]), build(other, [(0,), (1,), (0, 1)]), build(_ONE, [(0,), ()]),
        build_network(make_core(**letters(1), plan=["repeat", ["call", {0}], 1, 2]), 1),
    ]  # fmt: skip
    rng = Random(1)
    drawn = (random_core(rng, 2) for _ in range(9))
    made += [build(data, found, tilt=0) for data, core in drawn if (found := plans(core, 2))]
    private = [ranges(atoms=True)[0], ranges(adapted=True)[0]]
    return [*(data for data in made if data is not None), *ranged().values(), *private]


def raced() -> Mapping[str, CheckedArtifact]:
    """The artifacts that the ledgers are of."""
    line = make_core(
        **letters(1, cost=[300_000_000]),
        plan=["repeat", ["call", {0}], 0, 2],
        statements=[depth(2)],
    )
    fork = make_core(**letters(2, cost=[0, -100_000_000]), plan=["call", {0, 1}])
    # One cent at most, left to the run: of a dear call and a free one the dear one is forbidden.
    dear = make_core(
        **letters(2, cost=[0, 250_000_000], price=[2, 1]),
        plan=["call", {0, 1}],
        statements=[depth(2), at_most("price", 1)],
    )
    twice = make_core(
        **letters(1, cost=[5], price=[1]),
        plan=["repeat", ["call", {0}], 1, 2],
        statements=[depth(2), at_most("price", 1)],
    )
    left = (1,)
    over = plans(without(read_core(twice), left), 2)
    made = {
        "line": build(line, plans(read_core(line), 2)),
        "fork": build(fork, plans(read_core(fork), 1), tilt=0),
        "relaxed": build_relaxed(dear, left, 2),
        "many": upper(twice, over, Shape(relaxed=left, split=1, round_counts=3)),
        "exact": build(dear, plans(read_core(dear), 2)),
        "words": words(),
    }
    return {name: check(data) for name, data in {**made, **ranged()}.items()}


def ranged() -> Mapping[str, bytes]:
    """Artifacts of two calls whose costs are ranges: quotes by a model, or the same to all."""
    made = {}
    for name, more in (
        ("asked", {"models": [{"name": "m", "price": 2, "latency_ms": 9, "epsilon": 10**7}]}),
        ("same", {"quotes": "same"}),
    ):
        told = letters(2, cost=[0, 250_000_000], high=[500_000_000, 750_000_000])
        told["tools"] = [{**tool, **more} for tool in told["tools"]]
        core = make_core(**told, plan=["call", {0, 1}], statements=[depth(1)])
        made[name] = build(core, plans(read_core(core), 1), tilt=0)
    return made


def words() -> bytes:
    """The artifact of all words of at most four of three letters: what longer ledgers are of."""
    costs = [100_000_000, 700_000_000, 250_000_000]
    core = make_core(
        **letters(3, cost=costs), plan=["repeat", ["call", {0, 1, 2}], 0, 4], statements=[depth(4)]
    )
    return build(core, plans(read_core(core), 4))


def quoted(data: bytes, low: int, high: int, **told: Any) -> list[dict[str, Any]]:
    """The records of a run of the runtime whose quoter answers a part of what it is asked."""

    def quoter(question: Question) -> Answer:
        span = question.high - question.low
        return Answer(
            low=question.low + low * span // 8, high=question.low + high * span // 8, latency_ms=3
        )

    return recorded(data, quoter, **{"race": "coupled", **told})


def recorded(data: bytes, quoter: Quoter | None, **told: Any) -> list[dict[str, Any]]:
    """The records of a run of the runtime, without their chain."""
    sink = MemorySink()
    settings = Settings(**{"seed": bytes(32), **told})
    search(load(data), settings, Recorder(sink, started_ms=1_700_000_000_000), quoter=quoter)
    records = [json.loads(line) for line in bytes(sink.data).splitlines()]
    return [{k: v for k, v in record.items() if k != "~"} for record in records]


BEACON, NONCE = b"beacon", b"nonce"
RUNS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("fork", {}), ("fork", {"top": 9}), ("fork", {"mode": "surrogate"}),
    ("fork", {"keys": "anchored"}), ("fork", {"mode": "fallback", "tau": "2"}),
    ("fork", {"beacon": BEACON, "nonce": NONCE}), ("fork", {"withhold": True}),
    ("fork", {"inflate": "2"}), ("fork", {"recipe": "r1"}), ("line", {}), ("line", {"top": 3}),
    ("line", {"truncate": 1}), ("line", {"truncate": 1, "mode": "surrogate"}),
    ("line", {"max_expansions": 1}), ("line", {"interrupt_after": 1}),
    ("line", {"alpha": "2", "eta": "0.5", "top": 2}), ("line", {"count_bits": 9, "top": 3}),
    ("fork", {"race": "literal", "keys": "anchored", "mode": "surrogate"}),
    ("line", {"silent": True}), ("relaxed", {}), ("relaxed", {"keys": "anchored", "top": 2}),
    ("relaxed", {"mode": "fallback"}), ("many", {}), ("many", {"keys": "anchored"}),
    ("fork", {"race": "rest"}), ("fork", {"race": "rest", "top": 3}),
    ("line", {"race": "rest", "truncate": 1}), ("relaxed", {"race": "rest"}),
    ("many", {"race": "rest", "inflate": "2"}),
)  # fmt: skip


_QUOTED: Sequence[tuple[str, int, int, Mapping[str, Any]]] = (
    ("asked", 3, 3, {}), ("asked", 2, 5, {"ask": "node"}), ("asked", 8, 8, {"top": 3}),
    ("asked", 3, 3, {"price_cap": 1}), ("asked", 3, 3, {"sla_ms": 2}),
    ("asked", 3, 3, {"epsilon_cap": "0.005"}), ("asked", 0, 9, {}),
    ("asked", 3, 3, {"ask": "never"}),
    ("same", 3, 3, {}), ("same", 3, 3, {"race": "rest"}), ("same", 1, 4, {"keys": "anchored"}),
    ("same", 8, 8, {"mode": "fallback"}), ("asked", 3, 3, {"price_weight": "0.25", "sla_ms": 99}),
)  # fmt: skip


def ledgers(artifacts: Mapping[str, CheckedArtifact]) -> list[list[dict[str, Any]]]:
    """The records of short runs: every mode, race, key, stop and guard; two resumed."""
    made = [[dict(r) for r in reference_records(artifacts[of], **told)] for of, told in RUNS]
    resumed = {"kind": "recovered", "dropped_bytes": 5, "records": 2}
    made += [quoted(ranged()[of], low, high, **told) for of, low, high, told in _QUOTED]
    made += [[*records[:2], resumed, *records[2:]] for records in (made[0], made[9])]
    return made


def budgeted() -> list[tuple[CheckedArtifact, list[dict[str, Any]]]]:
    """Runs that ask within caps, with their artifacts: atoms, adapters, margins, accounts."""
    return [(checked, records) for checked, _, records in map(forged_run, BUDGETED)]


_LONGER: Sequence[Mapping[str, Any]] = (
    {"race": "rest", "top": 60}, {"top": 40}, {"keys": "anchored", "top": 30},
    {"mode": "fallback", "top": 20}, {"race": "rest", "truncate": 3, "top": 20},
    {"race": "rest", "mode": "surrogate", "inflate": "1.7", "top": 20},
)  # fmt: skip


def longer() -> list[list[dict[str, Any]]]:
    """The records of runs of the runtime with some hundred lines, in most modes."""
    return [recorded(words(), None, **told) for told in _LONGER]


GRAMMARS: Sequence[bytes] = tuple(
    b'grammar g version "1"\n' + rest
    for rest in (
        b"tool a\nplan = a\n",
        b"tool a\ntool b\nplan = a b? | b{1,2}\nlimit depth <= 3\n",
        (
            b"tool a\ntool b\nlimit depth <= 2\nlimit cost <= 1.5\n"
            b"before b require a\nbefore a require no a since any - a\nafter b owe a\n"
            b"expect plans <= 9\n"
        ),
        (
            b'tool a(k: 1..2, m: x | "y") { cost 0.5 + 0.1 * k cost 2 when m = x }\n'
            b"plan = a(k=1)+ & any{0,3} - a\nlimit depth <= 3\nlimit count(a(k = 2)) <= 2\n"
        ),
        (
            b'tool a : p -> q { doc "d" price 2 latency 3 ms bind mcp "s" "t" }\n'
            b"rule r = a | a r\nplan = r a*\nstart p\ngoal q\naccept a\nreject ()\n"
            b"limit price <= 4\n"
        ),
        (
            b'tool a { quotes same model m { price 1 epsilon 0.5 adapter "z" } }\n'
            b"rule r = a s\nrule s = (r | a)?\nplan = r\nlimit latency <= 3 s\n"
            b"limit epsilon <= 1\n"
        ),
        (
            b"tool a { cost 0.1 .. 0.9\nmodel m { price 1 atom laplace(8, 1) times 2 }\n"
            b'model n { epsilon 0.5 atom rdp(2, 0.1, 4, 0.25) adapter "z" } }\nplan = a\n'
        ),
    )
)


def kept(target: str) -> list[bytes]:
    """The corpus of a target: small files that guided runs found, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]
