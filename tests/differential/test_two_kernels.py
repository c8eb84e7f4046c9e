"""The two kernels agree on every artifact and every mutant: verdict, code, place, what was due.

The vectorised kernel hands over what it does not show, so their findings are equal wherever it does
not say VALID by mistake; :func:`shown` looks at what it says by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

import tcc as library
from tcc_certs import kernel as pure
from tcc_certs.call_rules import check_calls
from tcc_certs.errors import Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.container import write_container
from tcc_certs.rounded import round_up
from tcc_runtime.fastcheck import counts, kernel as fast, spans as room
from tcc_runtime.fastcheck.counts import Rounded
from tcc_runtime.fastcheck.spans import column
from tests.campaigns import seeds
from tests.certs.rules.test_minimal import _digest, automaton
from tests.forgery.artifacts import Forge, Mutant, column_mutants, manifest_mutants
from tests.forgery.test_artifact_forgeries import KINDS, answering, twenty
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import depth, letters, make_core, random_core, random_later_core
from tests.oracle.examples import example
from tests.oracle.network import build_network
from tests.oracle.plans import plans, words as words_of

# One state a rank, and counts as wide as the automaton is deep.
NARROW = 'grammar g version "1"\ntool a\ntool b\nplan = (a | b){0,%d}\n'


def verdict(kernel: object, data: bytes) -> tuple[str, ...]:
    try:
        checked = kernel.check(data)  # type: ignore[attr-defined]
    except Rejected as refusal:
        return refusal.code.value, refusal.path, refusal.expected, refusal.found
    return (
        "VALID",
        str(list(checked.plans)),
        str(list(checked.race_count)),
        str(checked.core_calls),
    )


def shown(data: bytes) -> bool:
    """Whether the vectorised kernel would answer VALID by itself."""
    file = read_artifact(data)
    return fast.holds(file, check_calls(file))


def agree(mutants: Iterable[Mutant]) -> int:
    """How many mutants both kernels answer alike, none of those refused being shown."""
    total = 0
    for mutant in mutants:
        due = verdict(pure, mutant.data)
        assert verdict(fast, mutant.data) == due, (mutant.field, mutant.how)
        total += 1
    return total


@pytest.fixture(params=[1, 5, 1 << 15])
def edges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Sizes of spans: of a state each, of a few, of all."""
    monkeypatch.setattr(room, "_EDGES", request.param)
    size: int = request.param
    return size


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_valid_artifact_of_any_kind_is_shown_without_being_handed_over(
    kind: str, edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = KINDS[kind]
    due = verdict(pure, data)
    monkeypatch.setattr(pure, "check", lambda *_, **__: pytest.fail("handed over"))
    assert verdict(fast, data) == due
    assert due[0] == "VALID"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_long_messages_have_the_same_digests(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_LONG", 0)
    assert shown(KINDS[kind])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_mutants_of_any_kind_get_one_finding(kind: str) -> None:
    mutants = [*column_mutants(KINDS[kind]), *manifest_mutants(KINDS[kind])]
    some = random.Random(kind).sample(mutants, min(25, len(mutants)))
    assert agree(some) == len(some)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_mutant_of_any_kind_gets_one_finding(kind: str, edges: int) -> None:
    total = agree(column_mutants(KINDS[kind])) + agree(manifest_mutants(KINDS[kind]))
    print(f"{total} mutants of {kind}, spans of {edges} edges: the kernels agree")


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(20))
def test_every_mutant_of_twenty_artifacts_gets_one_finding(number: int) -> None:
    data = twenty()[number]
    total = agree(column_mutants(data)) + agree(manifest_mutants(data))
    print(f"{total} mutants of artifact {number}: the kernels agree")


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(len(seeds.artifacts())))
def test_every_mutant_of_a_seed_of_the_fuzzing_gets_one_finding(number: int) -> None:
    data = seeds.artifacts()[number]
    total = agree(column_mutants(data)) + agree(manifest_mutants(data))
    print(f"{total} mutants of seed {number}: the kernels agree")


def test_deep_automata_of_few_states_a_rank_take_calls_in_proportion_to_their_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = {n: library.compile_text(NARROW % n) for n in (200, 800, 1600)}
    calls, cut = [0], counts._window
    monkeypatch.setattr(
        counts, "_window", lambda *given: calls.__setitem__(0, calls[0] + 1) or cut(*given)
    )
    took = {}
    for n, artifact in made.items():
        data = write_container(artifact.file.columns)
        calls[0] = 0
        assert list(fast.check(data).race_count) == list(pure.check(data).race_count)
        took[n] = calls[0]
    assert took[1600] <= 2.5 * took[800] + 2**15, took
    assert all(calls <= 2**15 + 4 * n for n, calls in took.items()), took


def test_mutants_of_a_deep_automaton_get_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_FREE_LIMBS", 0)
    data = write_container(library.compile_text(NARROW % 60).file.columns)
    some = random.Random(60).sample([*column_mutants(data)], 20)
    assert agree(some) == len(some)


def test_what_the_fuzzing_starts_from_and_kept_is_answered_alike() -> None:
    found = [*seeds.artifacts(), *seeds.kept("artifact"), *twenty()]
    verdicts = [verdict(pure, data) for data in found]
    assert [verdict(fast, data) for data in found] == verdicts
    assert len({due[0] for due in verdicts}) > 5


def test_artifacts_of_random_cores_are_answered_alike() -> None:
    rng = random.Random(6)
    agreed = 0
    for number in range(25):
        data, core = random_core(rng, 3)
        words = plans(core, 3)
        if not words:
            continue
        tilt = rng.choice((0, 3, 8, 64))
        made = (
            build_network(data, 3, tilt=tilt) if number % 3 == 0 else build(data, words, tilt=tilt)
        )
        if made is None:
            continue
        assert verdict(fast, made) == verdict(pure, made)
        agreed += agree(rng.sample(list(column_mutants(made)), 10))
    assert agreed > 50


def test_artifacts_of_strict_tools_are_answered_alike(edges: int) -> None:
    rng = random.Random(15)
    verdicts: Counter[str] = Counter()
    while verdicts["C901"] < 10 or verdicts["VALID"] < 10:
        data, core = random_later_core(rng)
        words = plans(core, 3)
        rules = {name: words_of(core, body, {}, 3) for name, body in core.rules.items()}
        free = sorted(words_of(core, core.plan, rules, 3)) or [()]
        for chosen in (words, free):
            if chosen:
                made = build(data, chosen, tilt=0)
                due = verdict(pure, made)
                assert verdict(fast, made) == due
                verdicts[due[0]] += 1
    file = read_artifact(KINDS["strict"])
    assert fast.holds(file, check_calls(file))


def test_what_an_answer_lacks_is_not_shown_by_the_other_equations(
    edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = answering()
    made = build(core, [(0,), (1, 0), (1, 2), (2, 2)], tilt=0)
    assert verdict(pure, made)[:2] == ("C901", "edge_call[1]")
    assert verdict(fast, made) == verdict(pure, made)
    monkeypatch.setattr(fast, "answered", lambda *_: True)
    assert verdict(fast, made)[0] == "VALID"


def chain(
    length: int, tilt: int, cost: int, beta: str = "1", round_counts: int | None = None
) -> bytes:
    """Counts that are wide: two calls at every step, one that skips to the end."""
    end = node = Node(accept=True)
    for at in range(length):
        node = Node(children={0: node, 1: node, 2: end}, accept=at % 3 == 0)
    letter = letters(3, cost=[0, cost, 2 * cost])
    plan = ["repeat", ["call", {0, 1, 2}], 0]
    core = make_core(**letter, plan=plan, statements=[depth(length)])
    return build_graph(core, node, tilt=tilt, beta=beta, round_counts=round_counts)


WIDE = [
    (70, 0, 0, "1"),  # plans of two limbs, race counts the same
    (70, 8, 10**9, "1"),  # race counts of many limbs
    (40, 8, 10**9, "20"),  # weights of more than 31 bits: in pieces
    (40, 20, 10**9, "30"),
    (30, 64, 10**9, "1"),  # F = 64, the widest weights
    (200, 1, 7 * 10**8, "1"),
]


@pytest.mark.parametrize(("length", "tilt", "cost", "beta"), WIDE)
def test_wide_counts_are_shown_digit_by_digit(
    length: int, tilt: int, cost: int, beta: str, edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = chain(length, tilt, cost, beta)
    due = verdict(pure, data)
    assert due[0] == "VALID"
    monkeypatch.setattr(pure, "check", lambda *_, **__: pytest.fail("handed over"))
    assert shown(data)
    assert verdict(fast, data) == due


@pytest.mark.parametrize("length", range(59, 65))
def test_counts_that_nearly_fill_a_limb_are_shown(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = chain(length, 0, 0)
    due = verdict(pure, data)
    assert due[0] == "VALID"
    with monkeypatch.context() as alone:
        alone.setattr(pure, "check", lambda *_, **__: pytest.fail("handed over"))
        assert verdict(fast, data) == due
    for at in (1, -2, -1):
        value = Forge(data).values("plans")[at]
        for bit in (0, 31, 32, 63):
            forged = Forge(data).set("plans", at, value ^ 1 << bit).seal()
            due = verdict(pure, forged)
            assert due[0] == "C301"
            assert verdict(fast, forged) == due


def test_counts_that_are_right_but_for_what_a_limb_cannot_hold_are_found_by_both() -> None:
    forge = Forge(chain(66, 0, 0))
    low = forge.values("plans")[::2]
    forged = forge.put("plans", low, shape=(len(low), 1)).seal()
    due = verdict(pure, forged)
    assert due[0] == "C301"
    assert verdict(fast, forged) == due


@pytest.mark.parametrize(("length", "tilt", "cost", "beta"), WIDE)
def test_a_bit_of_a_wide_count_is_missed_nowhere(
    length: int, tilt: int, cost: int, beta: str
) -> None:
    rng = random.Random(length)
    data = chain(length, tilt, cost, beta)
    for _ in range(20):
        forge = Forge(data)
        name = rng.choice([name for name in ("plans", "race_count") if name in forge.columns])
        raw = bytearray(forge.columns[name][2])
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        forge.columns[name][2] = bytes(raw)
        sealed = forge.seal()
        due = verdict(pure, sealed)
        assert due[0] in ("C301", "C401")
        assert verdict(fast, sealed) == due


def with_a_limb(name: str) -> Forge:
    forge = Forge(example())
    rows = [limb for count in forge.values(name) for limb in (count, 0)]
    return forge.put(name, rows, shape=(len(rows) // 2, 2))


def with_plans_again() -> Forge:
    forge = Forge(example(tilt=0))
    forge.columns["race_count"] = list(forge.columns["plans"])
    return forge


ROWS = [(1, []), (0, [(0, 0), (1, 0)]), (1, [(0, 0), (1, 0)])]
WHOLE = {
    "plans too wide": ("C302", with_a_limb("plans")),
    "race counts too wide": ("C402", with_a_limb("race_count")),
    "race counts that repeat the plans": ("C402", with_plans_again()),
    "no race counts": ("C401", Forge(example())),
    "a state that nothing reaches": ("C603", automaton([ROWS[0], *sorted(ROWS[1:], key=_digest)])),
    "two states without edges": ("C602", automaton([(1, []), (1, []), (0, [(0, 0), (1, 1)])])),
    "a call on no edge": ("C605", automaton([(1, []), (0, [(1, 0)])])),
    "one state alone": ("C605", automaton([(1, [])])),
    "another root": ("M102", Forge(example()).member("root", value="0" * 64)),
    "another greatest cost": ("C503", Forge(example()).member("cost_max", value=7)),
}
del WHOLE["no race counts"][1].columns["race_count"]


@pytest.mark.parametrize("name", WHOLE)
def test_what_only_the_whole_artifact_shows_is_found_by_both(name: str) -> None:
    code, forge = WHOLE[name]
    data = forge.seal()
    due = verdict(pure, data)
    assert due[0] == code
    assert verdict(fast, data) == due


@pytest.mark.parametrize("swap", [False, True])
def test_states_in_and_out_of_order_are_told_apart(swap: bool) -> None:
    rows: list[tuple[int, list[tuple[int, int]]]] = [(1, []), (0, [(0, 0)]), (1, [(0, 0)])]
    rows[1:] = sorted(rows[1:], key=_digest, reverse=swap)
    data = automaton([*rows, (0, [(0, 1), (1, 2)])]).seal()
    due = verdict(pure, data)
    assert due[0] == ("C602" if swap else "VALID")
    assert verdict(fast, data) == due
    assert shown(data) is not swap


def test_a_pin_and_a_broken_column_are_refused_by_both() -> None:
    data = bytearray(example())
    for one in (pure, fast):
        with pytest.raises(Rejected, match="P101"):
            one.check(bytes(data), pin="0" * 64)
    data[-1] ^= 1
    assert verdict(fast, bytes(data)) == verdict(pure, bytes(data))
    assert verdict(pure, bytes(data))[0] == "M203"


@pytest.mark.parametrize("bits", [1, 2, 7, 31, 32, 33, 62, 63])
@pytest.mark.parametrize(("length", "tilt", "cost", "beta"), WIDE)
@pytest.mark.sampled(16)
def test_rounded_counts_are_shown_in_bulk_and_no_change_of_one_is(
    length: int, tilt: int, cost: int, beta: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = chain(length, tilt, cost, beta, bits)
    due = verdict(pure, data)
    assert due[0] == "VALID"
    with monkeypatch.context() as alone:
        alone.setattr(pure, "check", lambda *_, **__: pytest.fail("handed over"))
        assert verdict(fast, data) == due
    rng = random.Random(bits)
    found = column(read_artifact(data), "race_mantissa")
    for at in rng.sample(range(len(found)), 3):
        name = rng.choice(("race_mantissa", "race_exponent"))
        value = Forge(data).values(name)[at]
        for other in {value + 1, max(0, value - 1), value * 2} - {value}:
            forged = Forge(data).set(name, at, other).seal()
            due = verdict(pure, forged)
            assert due[0] == "C401"
            assert verdict(fast, forged) == due


@pytest.mark.parametrize("bits", [1, 3, 30, 63])
def test_a_rounded_sum_is_shown_exactly_where_it_is_the_one_due(bits: int) -> None:
    # Terms far apart and close by: one state, its targets any counts, what is due as defined.
    rng = random.Random(bits)
    shown_at_all = 0
    for _ in range(300):
        size, deepest = rng.randrange(1, 6), rng.choice((1, 2, 3, 40))
        factor = rng.choice((1, 8, 64))
        mantissa = [rng.randrange(1 << bits - 1, 1 << bits) for _ in range(size)]
        exponent = [rng.choice((0, rng.randrange(5), rng.randrange(200))) for _ in range(size)]
        rank = sorted(rng.randrange(deepest) for _ in range(size))
        weight = [rng.choice((1, 2, rng.randrange(1, 1 << 63))) for _ in range(size)]
        accepts = rng.randrange(2)
        up = factor * (deepest - 1)
        terms = [
            (w * m, up - factor * d + e)
            for w, m, d, e in zip(weight, mantissa, rank, exponent, strict=True)
        ]
        due = round_up([*terms, (accepts, factor * deepest)], bits)
        for found in (due, *near(due, bits)):
            state = Rounded(
                mantissa=np.array([*mantissa, found[0]], np.uint64),
                exponent=np.array([*exponent, found[1]], np.uint32),
                rank=np.array([*rank, deepest], np.uint32),
                weight=np.array(weight, np.uint64),
                fraction_bits=factor,
                bits=bits,
            )
            held = state.held(one(size), np.array([0] * size + [accepts], np.uint8))
            assert found == due or not held
            shown_at_all += held
    assert shown_at_all == 300


def near(pair: tuple[int, int], bits: int) -> list[tuple[int, int]]:
    """Other pairs: one more, one less, another exponent; the same number said otherwise."""
    m, e = pair
    low, most = 1 << bits - 1, (1 << bits) - 1
    around = [(m + 1, e), (m - 1, e), (m, e + 1), (m, max(0, e - 1)), (2 * m, max(0, e - 1))]
    around += [(low, e + 1), (most, max(0, e - 1)), (0, 0), (m, 0), (m, e + 64), (m, 2**32 - 1)]
    return [other for other in around if other != pair]


def one(size: int) -> room.StateSpan:
    """A span of one state, of edges to all states before it, each by a call of its own."""
    every = np.arange(size)
    return room.StateSpan(
        first=size,
        last=size + 1,
        starts=np.array([0]),
        ends=np.array([size - 1]),
        degree=size,
        source=np.zeros(size, np.intp),
        calls=every,
        targets=every,
    )


@pytest.mark.parametrize("left", [0, 1, 2**32 - 1, 2**63, 2**64 - 1, 0x123456789ABCDEF0])
@pytest.mark.parametrize("right", [0, 1, 2**32 + 1, 2**63 - 1, 2**64 - 1])
def test_two_words_and_a_shift_are_what_integers_make_of_them(left: int, right: int) -> None:
    high, low = counts._product(np.array([left], np.uint64), np.array([right], np.uint64))
    assert int(high[0]) << 64 | int(low[0]) == left * right
    for lift in (*range(-200, 200), -(2**40), 2**40):
        exact = left * right << max(0, min(lift, 300) + 64) >> max(0, min(300, -lift - 64))
        parts = counts._scaled(high, low, np.array([lift]))
        assert parts[3] == (exact < 1 << 128), lift
        if parts[3]:
            assert int(parts[0][0]) << 64 | int(parts[1][0]) == exact, lift
            back = exact << max(0, min(300, -lift - 64)) >> max(0, min(lift, 300) + 64)
            assert bool(parts[2][0]) == (back != left * right), lift
