"""No forged artifact is valid: single-field mutants re-sealed, bit flips, truncations, swaps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tests.forgery.artifacts import Forge, Mutant, column_mutants, core_mutants, manifest_mutants
from tests.oracle.build import build
from tests.oracle.cores import at_most, call, depth, letters, make_core, random_core
from tests.oracle.examples import example, example_core
from tests.oracle.network import build_network, build_relaxed
from tests.oracle.plans import plans

# What may refuse a change of one item: the rule about the column, or one that the item's new
# meaning breaks before it.
EXPECTED = {
    "accept": "C103 C301",
    "call_cost_high": "M301 C503 C601",
    "call_cost_low": "M301 M302 C501 C502 C504 C601",
    "call_epsilon": "C802",
    "call_latency_ms": "C802",
    "call_price": "C802",
    "call_weight": "M302",
    "cost_to_go": "C501",
    "edge_call": "C101 C102 C401 C501 C502 C601",
    "edge_start": "C102 C104 C201 C202 C301",
    "edge_target": "C102 C201 C202 C301 C401 C501 C502 C601",
    "plans": "C301",
    "plans_exponent": "C301",
    "plans_mantissa": "C301",
    "race_count": "C401",
    "race_exponent": "C401",
    "race_mantissa": "C401",
    "rank": "C202",
    "residual_to_go": "C502",
    "state_digest": "C601",
    "calls": "M101 M102 M202",
    "cost_max": "M101 M102 C503",
    "counts": "M101 M102",
    "critical": "M101 M102 M201 C102 D101",
    "edges": "M101 M102 M202",
    "schema": "D102",
    "grammar": "M101",
    "grammar.name": "M101 M102 C802",
    "grammar.version": "M101 C802",
    "leaf_policy": "M101",
    "leaf_policy.name": "M101 C701",
    "leaf_policy.version": "M101 C701",
    "leaf_policy.root": "M101 C702",
    "leaf_policy.root.grammar": "C702",
    "leaf_policy.root.limits": "C702",
    "leaf_policy.root.version": "C702",
    "options": "M101",
    "options.beta": "M101 M102 M302 C502",
    "options.fraction_bits": "M101 M102 M302",
    "options.tilt": "M101 M102 M302",
    "options.round_counts": "M101 M102 C401",
    "relaxed": "M101",
    "root": "M101 M102",
    "states": "M101 M102 M202",
    "zzz": "M101",
    "grammar.zzz": "M101",
    "options.zzz": "M101",
    "leaf_policy.zzz": "M101",
    "leaf_policy.root.zzz": "C702",
}


def refuse_all(mutants: Iterable[Mutant]) -> Counter[str]:
    """How many mutants each code refused; fails at the first that is valid or has a wrong code."""
    found: Counter[str] = Counter()
    for mutant in mutants:
        try:
            check(mutant.data)
        except Rejected as refusal:
            code = refusal.code.value
            assert code in EXPECTED[mutant.field].split(), (mutant.field, mutant.how, code)
            found[code] += 1
        else:
            pytest.fail(f"valid: {mutant.field} {mutant.how}")
    return found


def kinds() -> dict[str, bytes]:
    """An artifact of every kind."""
    core, relaxed = example_core(), (1,)
    found = {
        "exact": example(8),
        "without weights": example(0),
        "relaxed": build_relaxed(core, relaxed, 4),
        "rounded": build(core, plans(read_core(core), 4), round_counts=4),
        "rounded without weights": build(core, plans(read_core(core), 4), tilt=0, round_counts=2),
        "nondeterministic": build_network(ambiguous(), 3, tilt=8),
        "all": build_network(ambiguous(), 3, (1,), round_counts=3),
        "strict": build(answering(), plans(read_core(answering()), 3)),
        "for a gate": build(core, plans(read_core(core), 4), gate=True),
        "strict, for a gate": build(answering(), plans(read_core(answering()), 3), gate=True),
    }
    return {name: data for name, data in found.items() if data is not None}


def answering() -> bytes:
    """A strict tool, of which one call was cut; a plan has one more call by either answer."""
    key, result = {"name": "k", "values": ["1", "2"]}, {"name": "r", "values": ["no", "yes"]}
    tools = [{"name": "a"}, {"name": "t", "fields": [key], "gives": [result], "strict": True}]
    calls = [call(0, cost=10**9), *(call(1, [k, r]) for k in range(2) for r in range(2))]
    some = ["repeat", ["call", {0, 1, 2, 3}], 0]
    return make_core(tools=tools, calls=calls, plan=["seq", [some, ["call", {0, 2}]]],
                     statements=[depth(3)])  # fmt: skip


def ambiguous() -> bytes:
    """``(a|b)* a (a|b)*`` with limits: a graph whose states have edges of one call."""
    some = ["repeat", ["call", {0, 1}], 0]
    return make_core(
        **letters(2, cost=[300_000_000, 10**9], price=[1, 2]),
        plan=["seq", [some, ["call", {0}], some]],
        statements=[depth(3), at_most("price", 4)],
    )


KINDS = kinds()


def test_no_single_item_of_a_column_can_change() -> None:
    found = refuse_all(column_mutants(KINDS["exact"]))
    print(f"{found.total()} mutants of columns refused: {dict(sorted(found.items()))}")
    assert found.total() > 500


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"exact"}))
def test_no_single_item_of_a_column_can_change_in_any_kind(kind: str) -> None:
    mutants = random.Random(kind).sample(list(column_mutants(KINDS[kind])), 150)
    print(f"{refuse_all(mutants).total()} mutants of columns of {kind} refused")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_item_of_any_kind_can_change(kind: str) -> None:
    found = refuse_all(column_mutants(KINDS[kind]))
    print(f"{found.total()} mutants of columns refused: {dict(sorted(found.items()))}")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_single_member_of_the_manifest_can_change(kind: str) -> None:
    found = refuse_all(manifest_mutants(KINDS[kind]))
    print(f"{found.total()} mutants of the manifest refused: {dict(sorted(found.items()))}")
    assert found.total() > 90


def test_no_word_of_the_core_can_change_without_the_core_check_seeing_it() -> None:
    found: Counter[str] = Counter()
    for mutant in core_mutants(example()):
        try:
            check_core(check(mutant.data))
        except Rejected as refusal:
            found[refusal.code.value] += 1
        else:
            pytest.fail(f"valid: {mutant.field} {mutant.how}")
    print(f"{found.total()} mutants of the core refused: {dict(sorted(found.items()))}")
    assert found["G101"] and found["G102"] and found["C801"] and found["C802"]


def test_mutants_of_random_artifacts_are_refused() -> None:
    rng = random.Random(20)
    total = 0
    for _ in range(12):
        data, core = random_core(rng, 3)
        words = plans(core, 3)
        if words:
            mutants = list(column_mutants(build(data, words, tilt=rng.choice((0, 8)))))
            total += refuse_all(rng.sample(mutants, min(60, len(mutants)))).total()
    print(f"{total} mutants of random artifacts refused")
    assert total > 150


def test_every_truncation_is_refused() -> None:
    data = example()
    for size in range(len(data)):
        with pytest.raises(Rejected):
            check(data[:size])
    with pytest.raises(Rejected, match="B205"):
        check(data + b"\0")


def refuse_flips(bits: range) -> None:
    data = bytearray(example())
    for at in range(len(data)):
        for bit in bits:
            data[at] ^= 1 << bit
            with pytest.raises(Rejected):
                check(bytes(data))
            data[at] ^= 1 << bit


def test_a_bit_flip_in_any_byte_is_refused() -> None:
    refuse_flips(range(1))


def twenty() -> list[bytes]:
    """Small artifacts of all kinds, and of random cores."""
    rng = random.Random(20)
    found = list(KINDS.values())
    while len(found) < 20:
        data, core = random_core(rng, 2)
        words = plans(core, 2)
        if words:
            made = build_network(data, 2) if len(found) % 2 else build(data, words)
            found.append(made or example())
    return found


def said_otherwise(data: bytes, forged: bytes) -> bool:
    """Whether a valid artifact says but another beta, or other statements as relaxed.

    Where no call has a cost, every beta makes the same weights; and what is relaxed is for the
    check against the core.  Such an artifact has a digest of its own.
    """
    due, found = check(data).file.manifest, check(forged).file.manifest
    return replace(found, beta=due.beta, relaxed=due.relaxed) == due


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(20))
def test_every_bit_flip_and_truncation_of_twenty_artifacts_is_refused(number: int) -> None:
    whole = twenty()[number]
    pin = read_artifact(whole).digest.hex()
    data = bytearray(whole)
    others = 0
    for at in range(len(data)):
        with pytest.raises(Rejected):
            check(bytes(data[:at]))
        for bit in range(8):
            data[at] ^= 1 << bit
            try:
                check(bytes(data))
            except Rejected:
                pass
            else:
                assert said_otherwise(whole, bytes(data)), (at, bit)
                with pytest.raises(Rejected, match="P101"):
                    check(bytes(data), pin=pin)
                others += 1
            data[at] ^= 1 << bit
    flips = 8 * len(data) - others
    print(f"{len(data)} truncations, {flips} bit flips refused, {others} flips by the pin alone")


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(20))
def test_every_mutant_of_twenty_artifacts_is_refused(number: int) -> None:
    data = twenty()[number]
    found: Counter[str] = Counter()
    for mutant in (*column_mutants(data), *manifest_mutants(data)):
        try:
            check(mutant.data)
        except Rejected as refusal:
            found[refusal.code.value] += 1
        else:
            assert said_otherwise(data, mutant.data), (mutant.field, mutant.how)
            found["by the pin alone"] += 1
    print(f"{found.total()} mutants: {dict(sorted(found.items()))}")


@pytest.mark.parametrize("name", sorted(Forge(example()).columns))
def test_a_column_left_out_is_refused(name: str) -> None:
    forge = Forge(example())
    del forge.columns[name]
    with pytest.raises(Rejected) as refusal:
        check(forge.seal())
    optional = name == "race_count"
    assert refusal.value.code == (Code.RACE_COUNT if optional else Code.COLUMN_SET)


def test_a_column_too_many_is_refused() -> None:
    forge = Forge(example())
    forge.columns["zzz"] = ["U8", (1,), b"\0"]
    with pytest.raises(Rejected) as refusal:
        check(forge.seal())
    assert refusal.value.code == Code.COLUMN_SET


@pytest.mark.parametrize("name", sorted(Forge(example()).columns))
def test_a_column_that_is_not_the_one_in_the_manifest_is_refused(name: str) -> None:
    forge = Forge(example())
    raw = forge.columns[name][2]
    forge.columns[name][2] = raw[:-1] + bytes([raw[-1] ^ 1])
    with pytest.raises(Rejected) as refusal:
        check(forge.seal(digests=False))
    assert (refusal.value.code, refusal.value.path) == ("M203", f"manifest.columns.{name}")


@pytest.mark.parametrize("name", sorted(Forge(example()).columns))
def test_a_column_of_another_artifact_is_refused(name: str) -> None:
    other_core = make_core(**letters(3, cost=[1, 2, 3]), plan=["repeat", ["call", {0, 1, 2}], 1, 2])
    other = Forge(build(other_core, [(a,) for a in range(3)]))
    forge = Forge(example())
    forge.columns[name] = other.columns[name]
    with pytest.raises(Rejected):
        check(forge.seal())


@pytest.mark.parametrize("name", sorted(Forge(example()).columns))
def test_another_shape_or_type_is_refused(name: str) -> None:
    dtype, shape, raw = Forge(example()).columns[name]
    for other in ((dtype, (*shape, 1), raw), ("U8", (len(raw), 1), raw), ("I64", (0,), b"")):
        forge = Forge(example())
        forge.columns[name] = list(other)
        with pytest.raises(Rejected) as refusal:
            check(forge.seal())
        expected = Code.COLUMN_SHAPE if len(other[1]) < 3 else Code.TENSOR_LAYOUT
        assert refusal.value.code == expected


@pytest.mark.campaign
def test_every_bit_flip_of_a_column_is_refused_though_sealed() -> None:
    names = sorted(Forge(example()).columns)
    for name in names:
        raw = Forge(example()).columns[name][2]
        for at in range(len(raw)):
            for bit in range(8):
                forge = Forge(example())
                flipped = raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :]
                forge.columns[name][2] = flipped
                with pytest.raises(Rejected):
                    checked = check(forge.seal())
                    if name == "core":
                        check_core(checked)


def test_the_untouched_artifact_is_valid() -> None:
    # What every refusal above stands against.
    for tilt in (0, 8):
        data = example(tilt)
        assert Forge(data).seal() == data
        assert check_core(check(data)).pairs > 0
    assert example_core() == Forge(example()).columns["core"][2]
