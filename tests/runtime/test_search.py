"""The loop: why it stops, what it then claims, which guard fires, and how it may be ended."""

from __future__ import annotations

import os
import random
import signal
import threading
from dataclasses import replace

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.formats.ledger_schema import check_record
from tcc_compiler.artifact import pack, pack_texts, write_artifact
from tcc_experiments.evidence import q64_of
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import SettingsError
from tcc_runtime.guards import CountKind, counts_of
from tcc_runtime.ledger.lines import Marks
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.numbers.rung import Precision
from tcc_runtime.pricing.quotes import Answer
from tcc_runtime.run import QUICKEST, Engine, search
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import build, chain_rows, free_core, vec_core, vec_rows

SEED = bytes(range(32))


def vec(**options) -> bytes:
    return build(vec_core(), vec_rows(), **options)


def changed(data: bytes, columns=(), **manifest) -> bytes:
    """Another artifact of the same frame, with digests in order and certificates broken."""
    file = read_artifact(data)
    raw = {name: bytes(t.data) for name, t in file.columns.items() if name != "manifest"}
    return write_artifact(replace(file.manifest, **manifest), {**raw, **dict(columns)})


def recorded(artifact, on_expand=None, engine=QUICKEST, **options):
    """A run, and the records of its ledger, each read strictly."""
    ledger = MemorySink()
    run = search(
        artifact,
        Settings(**{"seed": SEED, "race": "coupled", **options}),
        Recorder(ledger, started_ms=9),
        on_expand,
        engine=engine,
    )
    records = list(LedgerReader([bytes(ledger.data)]))
    for line, record in enumerate(records, 1):
        check_record(record, line)
    return run, records


def q64(text: str) -> int:
    return q64_of(text)


def test_all_plans_exhaust_the_frontier():
    run, records = recorded(load(vec()), top=12)
    assert (run.stop, run.claim_type, run.leaves) == ("exhausted", "RunWiseExact", 12)
    assert (run.frontier_key, run.gap) == (None, None)
    assert records[-1]["stop"] == "exhausted"


def test_more_plans_than_there_are_is_all_of_them():
    run, _ = recorded(load(vec()), top=13)
    assert (run.stop, run.claim_type, len(run.plans)) == ("exhausted", "RunWiseExact", 12)


def test_a_bound_stop_leaves_no_key_above_the_incumbent():
    run, _ = recorded(load(vec()), top=2)
    assert (run.stop, run.claim_type) == ("bound", "RunWiseExact")
    assert q64(run.frontier_key) <= q64(run.plans[-1].value)
    assert q64(run.gap) == q64(run.frontier_key) - q64(run.plans[-1].value)


def test_one_seed_has_one_ledger_and_another_seed_another():
    first, _ = recorded(load(vec()))
    second, _ = recorded(load(vec()))
    other = search(
        load(vec()), Settings(seed=bytes(32), race="coupled"), Recorder(MemorySink(), started_ms=9)
    )
    assert first == second
    assert first.ledger_head != other.ledger_head


def test_without_a_recorder_the_run_is_the_same_but_for_the_head():
    run, _ = recorded(load(vec()))
    bare = search(load(vec()), Settings(seed=SEED, race="coupled"))
    assert bare == replace(run, ledger_head=None)


def test_progress_falls_to_the_stop():
    seen = []
    run, _ = recorded(load(vec()), seen.append, top=3)
    assert [p.expansions for p in seen] == list(range(1, run.expansions + 1))
    bounds = [p.bound for p in seen]
    assert bounds == sorted(bounds, reverse=True)
    assert seen[0].incumbent is None
    assert seen[0].gap is None


def test_a_cap_on_expansions():
    run, records = recorded(load(vec()), top=12, max_expansions=4)
    assert (run.stop, run.claim_type, run.expansions) == ("max_expansions", "NoCert", 4)
    assert run.guards == ("CapExceeded",)
    assert records[-1]["guards"] == ["CapExceeded"]
    assert records[0]["run_limits"] == {"max_expansions": 4}


def test_a_cap_that_is_not_reached_changes_nothing():
    free, _ = recorded(load(vec()))
    capped = search(
        load(vec()), Settings(seed=SEED, race="coupled", max_expansions=free.expansions)
    )
    assert capped == replace(free, ledger_head=None)


def test_a_cap_on_time():
    ticks = iter(range(1000))
    ledger = MemorySink()
    run = search(
        load(vec()),
        Settings(seed=SEED, race="coupled", top=12, max_seconds=3),
        Recorder(ledger, started_ms=0),
        clock=lambda: float(next(ticks)),
    )
    # One look at the clock at the start, one before each expansion.
    assert (run.stop, run.claim_type, run.expansions) == ("max_seconds", "NoCert", 2)
    assert run.guards == ("Timeout",)
    assert b'"run_limits":{"max_ms":3000}' in bytes(ledger.data)


def test_the_callback_ends_a_run():
    run, records = recorded(load(vec()), lambda p: p.expansions == 3, top=12)
    assert (run.stop, run.claim_type, run.expansions) == ("interrupted", "NoCert", 3)
    assert records[-1]["stop"] == "interrupted"
    assert "guards" not in records[-1]


def test_a_keyboard_interrupt_in_the_callback_ends_a_run():
    def press(_progress):
        raise KeyboardInterrupt

    run, records = recorded(load(vec()), press, top=12)
    assert (run.stop, run.expansions, records[-1]["kind"]) == ("interrupted", 1, "close")


def test_ctrl_c_ends_a_run_between_two_steps_and_the_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    assert before is signal.default_int_handler
    run, records = recorded(
        load(vec()), lambda p: os.kill(os.getpid(), signal.SIGINT) if p.expansions == 2 else None
    , top=12)  # fmt: skip
    assert (run.stop, run.claim_type, run.expansions) == ("interrupted", "NoCert", 2)
    assert records[-1]["kind"] == "close"
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_somebody_is_asked_ends_the_run_after_the_answer():
    core = free_core([10**9, 5], 2, highs=[2 * 10**9, 5])
    artifact = load(build(core, [(True, []), (False, [(0, 0), (1, 0)])]))

    def pressing(question):
        os.kill(os.getpid(), signal.SIGINT)
        return Answer(low=question.low, high=question.low, price=7)

    run = search(artifact, Settings(seed=SEED, race="coupled", top=2), quoter=pressing)
    assert (run.stop, run.claim_type, run.spent.price) == ("interrupted", "NoCert", 7)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_in_another_thread_leaves_signals_alone():
    found = []
    thread = threading.Thread(target=lambda: found.append(recorded(load(vec()))))
    thread.start()
    thread.join(30)
    assert found[0] == recorded(load(vec()))


def test_an_error_in_the_callback_reaches_the_caller():
    def fail(_progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        recorded(load(vec()), fail)


def test_counts_that_are_bounds_after_all_go_on_as_surrogate_and_claim_nothing():
    for inflate in ("1.7", "1.01"):
        run, records = recorded(load(vec(inflate=inflate), verify=False))
        assert (run.mode, run.claim_type, run.guards) == ("surrogate", "NoCert", ("CountFail",))
        assert run.stop.certifies
        lowered = [record for record in records if record["kind"] == "downgrade"]
        due = {"kind": "downgrade", "mode": "surrogate", "claim_type": "NoCert"}
        assert lowered == [{**due, "guards": ["CountFail"]}]


def trusted(data: bytes):
    """Opened on the word of whoever says that these bytes were checked, which here is false."""
    return load(data, checked=load(data, verify=False).digest.hex())


def miscounted() -> list[tuple[bytes, int]]:
    """Artifacts that no kernel passes, each with a state whose count is wrong."""
    plain = vec(tilt=0)
    plans = read_artifact(plain).columns["plans"].items().tolist()
    root = len(plans) - 1

    def told(plans: list[int], at: int) -> tuple[bytes, int]:
        return changed(plain, {"plans": pack("plans", plans)}.items()), at

    return [
        told([*plans[:-1], plans[-1] + 1], root),
        told([*plans[:-1], plans[-1] - 1], root),
        told([0, *plans[1:]], 3),
        (changed(vec(), {"call_text": pack_texts(["a", "b(k=1)", "b(k=1)", "c"])}.items()), root),
        (vec(inflate="1.7"), 2),
    ]


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(5))
def test_counts_that_no_kernel_passes_are_refused_whoever_says_they_were_checked(number, race):
    # In each of the three ways to run: step by step, unrecorded, recorded.
    data, state = miscounted()[number]
    told = {"race": race, "top": 12}
    for run in (
        lambda: recorded(trusted(data), **told, count_bits=64),
        lambda: recorded(trusted(data), **told),
        lambda: search(trusted(data), Settings(seed=SEED, **told)),
    ):
        with pytest.raises(Rejected) as refusal:
            run()
        assert refusal.value.code == Code.RACE_COUNT
        assert refusal.value.path == f"race_count[{state}]"


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_no_run_over_an_unverified_artifact_claims_anything(race):
    # Soundness of the rest race wants masses and counts right in states that no run visits.
    for data in [vec(), vec(tilt=0), *(data for data, _ in miscounted())]:
        for options in ({}, {"count_bits": 64}, {"mode": "surrogate", "inflate": "1.7"}):
            told = {"race": race, "top": 2, **options}
            artifact = load(data, verify=False)
            run, records = recorded(artifact, **told)
            assert run.claim_type == records[0]["claim_type"] == "NoCert"
            assert search(artifact, Settings(seed=SEED, **told)).claim_type == "NoCert"


def test_a_count_that_is_too_small_ends_the_run():
    file = read_artifact(vec(tilt=0))
    plans = file.columns["plans"].items().tolist()
    plans[-1] -= 1
    broken = changed(vec(tilt=0), {"plans": pack("plans", plans)}.items())
    run, _ = recorded(load(broken, verify=False))
    assert (run.stop, run.guards) == ("guard", ("CountFail",))


def test_a_root_without_a_count_is_refused():
    broken = changed(vec(tilt=0), {"plans": bytes(8 * 5)}.items())
    with pytest.raises(Rejected) as refusal:
        recorded(load(broken, verify=False))
    assert refusal.value.code == Code.RACE_COUNT


def test_a_child_without_a_count_ends_in_fallback():
    file = read_artifact(vec(tilt=0))
    plans = file.columns["plans"].items().tolist()
    broken = changed(vec(tilt=0), {"plans": pack("plans", [0, *plans[1:]])}.items())
    run, records = recorded(load(broken, verify=False), top=12)
    assert (run.mode, run.stop, run.leaves) == ("fallback", "exhausted", 12)
    assert [r["guards"] for r in records if r["kind"] == "downgrade"] == [["CountFail"]]


def test_two_children_of_one_name_end_the_run():
    names = ["a", "b(k=1)", "b(k=1)", "c"]
    broken = changed(vec(), {"call_text": pack_texts(names)}.items())
    run, _ = recorded(load(broken, verify=False), top=12)
    assert (run.stop, run.claim_type, run.guards) == ("guard", "NoCert", ("CountFail",))


def test_a_count_over_count_bits_goes_on_as_surrogate_and_claims_what_it_did():
    artifact = load(vec())
    bits = artifact.race_count(artifact.root).bit_length()
    for told, claim in ((bits, "RunWiseExact"), (bits - 1, "RunWiseSurrogate")):
        run, records = recorded(artifact, count_bits=told)
        assert (run.claim_type, run.law, str(run.stop)) == (claim, "softmax", "bound")
        assert run.guards == (() if told == bits else ("CountFail",))
    assert run.mode == "surrogate"
    assert [record["kind"] for record in records[:3]] == ["open", "downgrade", "node"]
    due = {"kind": "downgrade", "mode": "surrogate", "claim_type": "RunWiseSurrogate"}
    assert records[1] == {**due, "guards": ["CountFail"]}


def test_a_node_deeper_than_the_roots_rank_ends_the_run():
    broken = changed(vec(tilt=0), {"rank": bytes(4 * 5)}.items())
    run, _ = recorded(load(broken, verify=False))
    assert (run.stop, run.claim_type, run.guards) == ("guard", "NoCert", ("CapExceeded",))
    assert run.expansions == 1


def test_a_clamped_key_costs_the_claim():
    huge = changed(vec(tilt=0), beta=(10**30, 0))
    run, records = recorded(load(huge, verify=False))
    assert (run.claim_type, run.guards) == ("NoCert", ("NumClamp",))
    assert run.stop.certifies
    marked = [record for record in records if "guards" in record]
    assert marked
    assert all(record["guards"] == ["NumClamp"] for record in marked)
    assert all(record["key_raw"].startswith("-9223372036854775808.") for record in marked)
    # A run that claims nothing from the start has nothing to lower.
    assert records[0]["claim_type"] == "NoCert"
    assert not any("claim_type" in record for record in marked)


def test_a_child_that_is_the_first_to_be_clamped_takes_the_claim_down(monkeypatch):
    # Of an unverified artifact nothing is claimed from the start, and no other has such a key.
    monkeypatch.setattr("tcc_runtime.ledger.recorder.Marks", lambda *_: Marks())
    data = build(free_core([10**9], 2), [(True, []), (True, [(0, 0)])], tilt=0)
    huge = load(changed(data, beta=(10**30, 0)), verify=False)
    for options in ({}, {"race": "rest"}, {"keys": "anchored"}, {"mode": "fallback"}):
        _, records = recorded(huge, **{"top": 9, **options})
        marked = [record for record in records if "guards" in record]
        assert (marked[0]["kind"], marked[0]["call"]) == ("node", "a")
        assert [record.get("claim_type") for record in marked] == [
            "NoCert", *[None] * (len(marked) - 1)
        ]  # fmt: skip


def test_a_potential_that_falls_too_little_costs_the_claim():
    # Costs 0.3, 0.1, 0.2, 1.25: with alpha 0.5 the steps are -0.85, -0.95, -0.9, -0.375;
    # -0.9 is no dyadic number, its exact fall is eta.
    run, records = recorded(load(vec()), top=12, alpha="0.5", eta="0.9")
    assert (run.stop, run.claim_type) == ("exhausted", "NoCert")
    assert run.guards == ("AcyclicityFail",)
    steps = {
        record["delta_phi"]: record.get("guards", [])
        for record in records
        if record["kind"] == "expand" and "delta_phi" in record
    }
    assert steps == {
        "-0.8500000001": ["AcyclicityFail"],
        "-0.9500000000": [],
        "-0.8999999999": [],
        "-0.3750000000": ["AcyclicityFail"],
    }


def test_a_potential_that_falls_enough_changes_no_claim():
    run, records = recorded(load(vec()), top=12, alpha="0.08", eta="0.9")
    assert (run.claim_type, run.guards) == ("RunWiseExact", ())
    first = next(record for record in records if "phi_before" in record)
    assert first["phi_before"] == "3.0000000000"


def test_without_alpha_no_potential_is_written():
    _, records = recorded(load(vec()))
    assert not any("phi_before" in record for record in records)


@pytest.mark.parametrize("numbers", ["fixed", "mpfr"])
def test_an_undecided_rounding_ends_the_run(numbers):
    # Of integers every number is open, and 97 bits decide none.
    engine = Engine(numbers=numbers, precision=Precision(error=1 << 47, first=97, last=97))
    run, records = recorded(load(vec()), engine=engine)
    assert (run.stop, run.claim_type, run.guards) == ("precision", "NoCert", ())
    assert records[-1]["stop"] == "precision"


def test_an_undecided_comparison_ends_a_run_that_nobody_records():
    precision = Precision(margin=1.0, error=1 << 47, first=97, last=97)
    told = []
    settings = Settings(seed=SEED, race="coupled", top=12)
    engine = Engine(numbers="floats", precision=precision)
    run = search(load(vec()), settings, None, lambda p: told.append(p.expansions), engine=engine)
    assert (run.stop, run.claim_type, run.frontier_key) == ("precision", "NoCert", None)
    # The step after which the greatest item is not known is made, and nobody is told.
    assert told == list(range(1, run.expansions))


def test_precision_is_added_until_every_rounding_is_decided():
    artifact = load(vec())
    due = search(artifact, Settings(seed=SEED, race="coupled", top=12))
    engine = Engine(numbers="mpfr", precision=Precision(first=98))
    assert search(artifact, Settings(seed=SEED, race="coupled", top=12), engine=engine) == due


def test_a_range_that_nobody_is_asked_about_leads_to_fallback():
    core = free_core([10**9, 5], 2, highs=[2 * 10**9, 5])
    rows = [(True, []), (False, [(0, 0), (1, 0)])]
    run = search(load(build(core, rows)), Settings(seed=SEED, race="coupled", top=2))
    assert (run.mode, run.claim_type, run.guards) == ("fallback", "NoCert", ("BudgetFail",))
    assert [(plan.cost, plan.cost_high) for plan in run.plans if plan.calls == ("a",)] == [
        ("1", "2")
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", bytes(31)),
        ("mode", "best"),
        ("race", "sum"),
        ("keys", "late"),
        ("inflate", "0.99"),
        ("inflate", "1.0"),
        ("truncate", -1),
        ("tau", "0"),
        ("opening_salt", bytes(31)),
        ("beacon", b""),
        ("client_nonce", bytes((1 << 16) + 1)),
        ("recipe", "r3"),
        ("top", 0),
        ("max_expansions", 0),
        ("max_seconds", 0.0),
        ("max_seconds", float("nan")),
        ("count_bits", -1),
        ("alpha", "-1"),
        ("alpha", "1e3"),
        ("eta", "0"),
        ("eta", "1.01"),
        ("eta", "1.0"),
    ],
)
def test_a_setting_out_of_range_is_named(field, value):
    with pytest.raises(SettingsError) as refusal:
        Settings(**{"seed": SEED, field: value})
    assert refusal.value.field == field


def layered(seed: int, calls: int, layers: int, width: int):
    """961 states for 64 layers of 15: rows of four calls out of many, costs 0 to 1."""
    rng = random.Random(seed)
    costs = [rng.randrange(10**9) for _ in range(calls)]
    rows, last = [(True, [])], [0]
    for _ in range(layers - 1):
        first = len(rows)
        for _ in range(width):
            some = sorted(rng.sample(range(calls), 4))
            rows.append((False, [(a, rng.choice(last)) for a in some]))
        last = list(range(first, len(rows)))
    rows.append((False, [(a, rng.choice(last)) for a in range(calls)]))
    return free_core(costs, layers), rows


@pytest.mark.parametrize(("tilt", "most"), [(8, 80), (12, 66)])
def test_a_tilted_race_walks_almost_straight_down(tilt, most):
    core, rows = layered(2, 20, 64, 15)
    artifact = load(build(core, rows, tilt=tilt))
    assert artifact.manifest.states > 900
    runs = [search(artifact, Settings(seed=bytes([n]) * 32, race="coupled")) for n in range(20)]
    assert all(run.expansions >= 65 for run in runs)
    assert sum(run.expansions for run in runs) / len(runs) <= most


def test_an_untilted_race_pays_for_depth():
    rng = random.Random(4)
    core = free_core([rng.randrange(10**9) for _ in range(3)], 8)
    rows = chain_rows(rng, 3, 8, 3)
    mean = {}
    for tilt in (0, 8):
        artifact = load(build(core, rows, tilt=tilt))
        runs = [search(artifact, Settings(seed=bytes([n]) * 32, race="coupled")) for n in range(40)]
        mean[tilt] = sum(run.expansions for run in runs) / len(runs)
    assert mean[8] < 11 < mean[0]


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
def test_a_value_that_is_clamped_costs_the_claim(keys):
    huge = changed(vec(tilt=0), beta=(10**30, 0))
    run, records = recorded(load(huge, verify=False), keys=keys, top=12)
    assert (run.claim_type, run.guards) == ("NoCert", ("NumClamp",))
    marked = {record["kind"] for record in records if "guards" in record}
    assert marked == ({"node"} if keys == "finalized" else {"node", "leaf"})


@pytest.mark.parametrize(
    "told", [{"mode": "surrogate"}, {"keys": "anchored"}, {"mode": "fallback"}, {"truncate": 2}]
)
def test_a_potential_that_falls_too_little_is_seen_in_every_mode(told):
    run, records = recorded(load(vec()), top=12, alpha="0.5", eta="0.9", **told)
    assert (run.claim_type, run.guards) == ("NoCert", ("AcyclicityFail",))
    assert run.stop.certifies
    fired = [record for record in records if record.get("guards") == ["AcyclicityFail"]]
    assert {record["kind"] for record in fired} == {"expand"}
    lowered = [record for record in fired if "claim_type" in record]
    assert len(lowered) == (0 if told.get("mode") == "fallback" else 1)


def test_an_alpha_that_leaves_q32_clamps_phi():
    run, records = recorded(load(vec()), top=12, alpha="9" * 30)
    assert run.guards == ("AcyclicityFail", "NumClamp")
    steps = [record for record in records if "delta_phi" in record]
    assert {record["delta_phi"] for record in steps} == {"2147483647.9999999998"}  # 2^31 less 2^-32


@pytest.mark.parametrize("told", [{}, {"keys": "anchored"}, {"mode": "surrogate"}])
def test_a_downgrade_in_mid_run_keeps_what_was_found(told):
    artifact = load(vec())
    free, _ = recorded(artifact, top=12, **told)
    widths = sorted({artifact.race_count(q).bit_length() for q in range(artifact.manifest.states)})
    starts = set()
    for most in widths:

        def counts(state, most=most):
            return CountKind.NONE if state.count.bit_length() <= most else counts_of(state)

        run, records = recorded(artifact, engine=Engine(counts=counts), top=12, **told)
        kinds = [record["kind"] for record in records]
        if "downgrade" not in kinds:
            continue
        starts.add(kinds.index("downgrade"))
        assert (run.mode, run.claim_type, run.stop) == ("fallback", "NoCert", "exhausted")
        assert {plan.calls for plan in run.plans} == {plan.calls for plan in free.plans}
        due = search(artifact, Settings(seed=SEED, race="coupled", top=12, mode="fallback"))
        assert run.plans == due.plans
    assert len(starts) > 1


def test_the_time_and_the_expansions_of_a_fallback_run_are_capped():
    run, _ = recorded(load(vec()), top=12, mode="fallback", max_expansions=2)
    assert (run.stop, run.guards) == ("max_expansions", ("CapExceeded",))
    run, _ = recorded(load(vec()), lambda p: p.expansions == 2, top=12, mode="fallback")
    assert run.stop == "interrupted"


def test_a_downgrade_gives_the_leaves_found_so_far_their_fallback_value():
    # Plans a, b c, b c a; where b c leads there is no count, which the expansion of b meets.
    rows = [(True, []), (True, [(0, 0)]), (False, [(2, 1)]), (False, [(0, 0), (1, 2)])]
    good = build(free_core([1, 2, 3], 3), rows, tilt=0)
    plans = read_artifact(good).columns["plans"].items().tolist()
    broken = changed(good, {"plans": pack("plans", [plans[0], 0, *plans[2:]])}.items())
    found_before = 0
    for number in range(20):
        told = Settings(seed=bytes([number]) * 32, race="coupled", top=3)
        ledger = MemorySink()
        run = search(load(broken, verify=False), told, Recorder(ledger, started_ms=9))
        assert (run.mode, run.guards) == ("fallback", ("CountFail",))
        assert run.plans == search(load(good), replace(told, mode="fallback")).plans
        head = bytes(ledger.data).partition(b'"kind":"downgrade"')[0]
        found_before += b'"kind":"leaf"' in head
    assert found_before > 3
