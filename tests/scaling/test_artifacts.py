"""What is done with an artifact, in each dimension in which it may be hostile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.errors import Code, Rejected
from tcc_certs.kernel import check
from tcc_certs.limits import MAX_WRITTEN_BYTES
from tcc_certs.replay import validate
from tcc_certs.replay.kappa import Kappa, handed_counts, own_counts
from tcc_certs.replay.language import read_language, root_of
from tcc_certs.replay.races.children import MAX_KEPT, Listing
from tcc_certs.replay.tree import slots
from tcc_certs.statements import residual_constraints
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact import counts as counting
from tcc_runtime.artifact.constraints import constraints_of
from tcc_runtime.artifact.counts import race_counts
from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import enumerate_plans, plans_by_depth
from tcc_runtime.run import search
from tcc_runtime.settings.modes import MOST_WRITTEN, opening_digest, terms_of
from tcc_runtime.settings.predict import predict
from tcc_runtime.settings.settings import Settings
from tests.differential.test_ledgers import runtime_ledger
from tests.scaling.measure import MOST, growth, peak, swelling

HEAD = 'grammar g version "1"\n'


def _compiled(text: str, **options: object) -> bytes:
    found = compile_text(HEAD + text, Options(**options))
    assert found.artifact is not None, found.diagnostics
    return found.artifact


@cache
def _deep(n: int) -> bytes:
    """Rounded counts of n * 128 bits at the root."""
    text = f"tool a {{cost 1}}\ntool s {{cost 9}}\nplan = s | a{{{n}}} a{{{n}}}"
    return _compiled(text, tilt=64, round_counts=8)


@cache
def _path(n: int) -> bytes:
    """The same, and one plan, which a run goes down call by call."""
    return _compiled(f"tool a {{cost 1}}\nplan = a{{{n}}} a{{{n}}}", tilt=64, round_counts=8)


def _tools(n: int) -> str:
    return "".join(f"tool t{i} {{cost {i % 7}}}\n" for i in range(n)) + "tool z {cost 1}\n"


def _any(n: int) -> str:
    return "plan = (" + "|".join(f"t{i}" for i in range(n)) + "|z){0,3}\n"


@cache
def _wide(n: int) -> bytes:
    """Exact counts, n calls at the root."""
    return _compiled(_tools(n) + _any(n))


STATEMENTS: dict[str, Callable[[int], str]] = {
    "require": lambda i: f"before z require t{i}\n",
    "owe": lambda i: f"after t{i} owe z\n",
    "count": lambda i: f"limit count(t{i}) <= 1\n",
    "cost": lambda i: f"limit cost <= {i}\n",
    "price": lambda i: f"limit price <= {i}\n",
}


@cache
def _relaxed(n: int, kind: str) -> bytes:
    """n statements of a kind over n calls, all of them left to the run."""
    statements = "".join(map(STATEMENTS[kind], range(n)))
    return _compiled(_tools(n) + _any(n) + statements, relax=(kind,))


def test_kappa_of_rounded_counts_does_not_write_exact_ones_out():
    def prepare(n):
        checked = check(_deep(n))
        language = read_language(checked)
        return lambda: own_counts(checked, language)

    assert swelling(prepare, 500) < MOST
    assert growth(prepare, 100) < MOST


@pytest.mark.parametrize("kind", STATEMENTS)
@pytest.mark.sampled(2)
def test_statements_times_calls_are_never_listed(kind):
    def replayed(n):
        checked = check(_relaxed(n, kind))
        return lambda: residual_constraints(checked, 3)

    def enforced(n):
        artifact = load(_relaxed(n, kind))
        assert artifact.core
        return lambda: constraints_of(artifact, None)

    for prepare in (replayed, enforced):
        assert swelling(prepare, 300) < MOST
        assert growth(prepare, 50) < MOST


@pytest.mark.parametrize("kind", [kind for kind in STATEMENTS if kind != "cost"])
@pytest.mark.sampled(2)
def test_the_children_of_a_node_cost_what_they_are_and_not_what_the_statements_are(kind):
    def replayed(n):
        constraints = residual_constraints(check(_relaxed(n, kind)), 3)
        return lambda: [constraints.step(constraints.start, call) for call in range(n)]

    def enforced(n):
        constraints = constraints_of(load(_relaxed(n, kind)), None)
        assert constraints is not None
        return lambda: [constraints.step(constraints.start, call) for call in range(n)]

    for prepare in (replayed, enforced):
        assert swelling(prepare, 300) < MOST
        assert growth(prepare, 50) < MOST


def test_the_check_against_the_core_keeps_nothing_for_each_pair_of_calls():
    def prepare(n):
        checked = check(_relaxed(n, "require"))
        return lambda: check_core(checked)

    assert swelling(prepare, 100) < MOST


def test_handed_counts_cost_a_search_a_child():
    def prepare(n):
        checked = check(_wide(n))
        language = read_language(checked)
        kappa = Kappa(language, handed_counts(checked, checked, language), root_of(checked))
        listed = Listing(language).children(language.root)
        children = slots(listed, residual_constraints(checked, 3), ())
        return lambda: [kappa.step(kappa.root, child) for child in children]

    assert growth(prepare, 100) < MOST


def test_plans_by_depth_and_the_first_plans_of_a_deep_artifact():
    def depths(n):
        artifact = load(_deep(n))
        return lambda: plans_by_depth(artifact)

    def first(n):
        artifact = load(_deep(n))
        return lambda: list(enumerate_plans(artifact, 2))

    for prepare in (depths, first):
        assert growth(prepare, 100) < MOST
        assert swelling(prepare, 100) < MOST


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_a_replay_over_rounded_counts_does_not_write_them_out(race):
    def prepare(n):
        ledger = runtime_ledger(load(_path(n)), seed=bytes(32), race=race)

        def work():
            found = validate(ledger, check(_path(n)))
            assert (found.verdict, found.claim_type) == (0, "RunWiseSurrogate")

        return work

    assert swelling(prepare, 150) < MOST


def test_a_run_that_would_write_too_much_out_is_refused_before_it_starts():
    large, fits = load(_path(6000)), load(_path(5000))
    told = Settings(seed=bytes(32))

    def refused():
        for entry in (search, predict, opening_digest):
            with pytest.raises(Rejected) as refusal:
                entry(large, told)
            assert (refusal.value.code, refusal.value.path) == (Code.LIMIT, "race_exponent")

    refused()
    assert peak(refused) < 1 << 22
    assert terms_of(fits, told).claim == "RunWiseSurrogate"
    assert MOST_WRITTEN == MAX_WRITTEN_BYTES


@pytest.mark.parametrize("size, factor", [(6000, (2, 0)), (60, (1 << 10**8, 0))])
def test_inflated_counts_that_would_take_too_much_are_declined(size, factor):
    checked = check(_path(size))

    def declined():
        with pytest.raises(Rejected) as refusal:
            read_language(checked, factor)
        assert (refusal.value.code, refusal.value.path) == (Code.LIMIT, "inflate")

    declined()
    assert peak(declined) < 1 << 28


def test_what_is_written_out_is_no_more_than_was_said(monkeypatch):
    monkeypatch.setattr(counting, "_FEW_BYTES", -1)
    rng = Random(1)
    for _ in range(20):
        data = _path(rng.randrange(1, 40)) if rng.random() < 0.5 else _wide(rng.randrange(1, 40))
        artifact, inflate = load(data), rng.choice(["1", "1.5", "1000000"])
        counts = race_counts(artifact, inflate)
        states = range(artifact.manifest.states)
        rounded = artifact.manifest.round_counts is not None
        held = 0
        for q in states:
            children = len(artifact.edges(q)) + artifact.accepts(q)
            more = counts(q).bit_length() - (0 if rounded else artifact.count_bits(q))
            held += (2 + children) * more
        assert held >> 3 <= counting.written_bytes(artifact, inflate)


def test_children_with_large_masses_are_not_all_kept():
    listing = Listing(read_language(check(_path(600)), (2, 0)))
    held = []
    for q in range(1, 1200):
        listing.children((q,))
        held.append(sum(found.room for found in listing._found.values()))
    assert max(held) <= MAX_KEPT
    assert listing.children((1199,)).room > 1
