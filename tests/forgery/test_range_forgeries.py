"""No forged ledger of a run over ranges is valid: every field, every record, every order.

What a model answered and what it took is taken from the ledger, so a change of it may describe
another honest run.  It counts as one only where the runtime, given those answers and the header's
settings, writes that ledger byte for byte.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.replay import validate
from tcc_runtime.account.account import Granted
from tcc_runtime.account.amounts import AccountAmounts, Remainder, caps_of
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pricing.drawing import RecordedAnswers, Told, answer_of, told_of
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.forgery.mutants import Mutant, Records, field_mutants, line_mutants
from tests.oracle.cores import depth, letters, make_core
from tests.oracle_ledger.writer import chained
from tests.runtime.graphs import build
from tests.runtime.ranged import Unreliable

SEED = bytes([2]) * 32
STARTED = 1_700_000_000_000
MODELS = [
    {"name": "guess", "price": 0, "latency_ms": 5, "epsilon": 0},
    {"name": "probe", "price": 2, "latency_ms": 40, "epsilon": 10**7},
    {"name": "quote", "price": 3, "latency_ms": 90, "epsilon": 0},
]
ADAPTERS = (
    Adapter(name="small", adapter_id="0a" * 32, tier="S", dp_cert_id="cert-1", eps_train="2.5",
            delta_train="0.000001"),
    Adapter(name="large", adapter_id="0b" * 32, tier="L", dp_cert_id="cert-2", eps_train="6",
            delta_train="0"),
)  # fmt: skip
RESPONSE = {"mechanism": "randomized_response", "probability": "0.75", "choices": 2}
LAPLACE = {"mechanism": "laplace", "scale": "8", "sensitivity": "1"}
GAUSSIAN = {"mechanism": "gaussian", "sigma": "4", "sensitivity": "1", "times": 2}
ATOMIC = [
    MODELS[0],
    {**MODELS[1], "atom": LAPLACE},
    {**MODELS[2], "atom": GAUSSIAN},
]
OF_QUALITY = [
    {**model, "quality": quality}
    for model, quality in zip(MODELS, ("0.05", "0.999999999", "1"), strict=True)
]
STRIDE = 59


@cache
def ranges(
    tilt: int = 8,
    same: bool = True,
    network: bool = False,
    atoms: bool = False,
    adapted: bool = False,
    guessed: bool = False,
) -> tuple[bytes, CheckedArtifact]:
    """Two letters of at most two calls, both costs ranges, one with three models."""
    parts = letters(2, cost=[3 * 10**8, 10**9], high=[15 * 10**8, 11 * 10**8])
    first, second = parts["tools"]
    promise = {"quotes": "same"} if same else {}
    models = ATOMIC if atoms else OF_QUALITY if guessed else MODELS
    names = ["small", "large"] if adapted else []
    adapted_ones = [{**model, "adapter": name} for model, name in zip(models, names, strict=False)]
    models = adapted_ones + models[len(names) :]
    parts["tools"] = [{**first, "models": models, **promise}, {**second, "quotes": "same"}]
    plan = ["repeat", ["call", {0, 1}], 0, 2]
    core = make_core(**parts, plan=plan, statements=[depth(2)])
    rows = [(True, []), (True, [(0, 0), (1, 0)])]
    rows.append((True, [(0, 0), (0, 1), (1, 1)] if network else [(0, 1), (1, 1)]))
    data = build(core, rows, tilt=tilt, nondeterministic=network)
    return data, check(data)


LITERAL = {"mode": "surrogate", "race": "literal", "keys": "anchored"}
RUNS: dict[str, tuple[dict, dict]] = {
    "leaf": ({}, {"top": 2}),
    "node": ({"same": False}, {"top": 3, "ask": "node", "keys": "anchored"}),
    "rest": ({}, {"race": "rest", "top": 2, "ask": "node"}),
    "sets": ({"network": True}, {"top": 2, "truncate": 1, "recipe": "r1"}),
    "literal": ({"tilt": 0}, LITERAL),
    "fallback": ({}, {"mode": "fallback", "top": 2, "tau": "2"}),
    "budget": ({}, {"top": 4, "price_cap": 5, "sla_ms": 400, "epsilon_cap": "0.5"}),
    "budget rest": ({}, {"top": 4, "price_cap": 4, "race": "rest"}),
    "overspent": ({}, {"top": 6, "sla_ms": 300}),
    "never": ({}, {"top": 2, "ask": "never"}),
    "down": ({}, {"top": 3, "count_bits": 12, "ask": "node"}),
    "capped": ({}, {"max_expansions": 2, "top": 3, "alpha": "0.2", "eta": "0.9"}),
    "adapted": ({"adapted": True}, {"top": 3, "ask": "node"}),
    "weights": (
        {},
        {"top": 3, "price_weight": "7", "latency_weight": "0.5", "epsilon_weight": "0"},
    ),
    "atoms": ({"atoms": True}, {"top": 9, "delta": "0.000001"}),
    "atoms of the input": ({}, {"top": 2, "atoms": atoms_of([RESPONSE, LAPLACE])}),
    "atoms capped": ({"atoms": True}, {"top": 9, "epsilon_cap": "1.5", "ask": "node"}),
    "margin": ({}, {"top": 6, "margin": "0.4", "ask": "node"}),
    "account": ({}, {"top": 4, "account": {"price": 9, "epsilon": "0.5"}}),
    "account refuses": ({}, {"top": 9, "margin": "0.25", "account": {"price": 7}}),
    "account of atoms": ({"atoms": True}, {"top": 9, "account": {"epsilon": "1.5"}}),
    "quality": ({"guessed": True}, {"top": 4, "ask": "node", "margin": "0.3"}),
    "quality rest": ({"guessed": True, "same": False}, {"top": 3, "race": "rest"}),
    "raw input": ({"atoms": True}, {"top": 2, "raw_input_dependent": True}),
}


@cache
def forged_run(name: str) -> tuple[CheckedArtifact, bytes, Records]:
    """A run's artifact, its bytes, and its records."""
    shape, told = RUNS[name]
    data, checked = ranges(**shape)
    rng = random.Random(name)
    quoter = Unreliable(rng, honest=name != "leaf")
    records = honest(data, {"seed": SEED, **told}, _leaning(quoter) if "atoms" in shape else quoter)
    return checked, data, records


def _leaning(quoter: Unreliable):
    """One whose free model knows nothing, so that those with atoms are asked."""
    return lambda question: None if question.model == "guess" else quoter(question)


class Open:
    """An account in memory; somebody else takes a cent whenever it is asked."""

    def __init__(self, **caps) -> None:
        self.id = "0c" * 32
        self.caps = caps_of(caps.get("price"), caps.get("latency_ms"), caps.get("epsilon"))
        self._spent, self._held, self._others = AccountAmounts(), AccountAmounts(), AccountAmounts()

    def reserve(self, name: str, run: str, amounts: AccountAmounts) -> Granted:
        self._others = self._others.plus(AccountAmounts(1))
        if not self._left.holds(amounts):
            return Granted(granted=False, left=self._left)
        self._held = amounts
        return Granted(granted=True, left=self._left)

    def begin(self, name: str) -> None:
        pass

    def settle(self, name: str, took: AccountAmounts) -> Remainder:
        self._spent, self._held = self._spent.plus(took), AccountAmounts()
        return self._left

    @property
    def _left(self) -> Remainder:
        return self.caps.left(self._spent.plus(self._held).plus(self._others))


class Transcript:
    """An account that says again what a ledger has of one."""

    def __init__(self, header: dict[str, Any], told: list[Told]) -> None:
        named = header["account"]
        self.id = named["id"]
        self.caps = caps_of(named.get("price"), named.get("latency_ms"), named.get("epsilon"))
        self._told = iter(told)

    def reserve(self, name: str, run: str, amounts: AccountAmounts) -> Granted:
        told = next(self._told)
        granted = told.event == "reserve"
        if (granted and told.left.overdrawn) or (not granted and told.left.holds(amounts)):
            raise SettingsError("account", "what an account can say", told)
        return Granted(granted=granted, left=told.left)

    def begin(self, name: str) -> None:
        pass

    def settle(self, name: str, took: AccountAmounts) -> Remainder:
        return next(self._told).left


def honest(
    data: bytes, told: dict[str, Any], quoter, adapters: Sequence[Adapter] = ADAPTERS
) -> Records:
    """What the runtime writes."""
    sink = MemorySink()
    started, account = told.pop("started_ms", STARTED), told.pop("account", None)
    if isinstance(account, dict):
        account = Open(**account)
    search(
        load(data),
        Settings(**{"race": "coupled", **told}),
        Recorder(sink, started_ms=started),
        quoter=quoter,
        adapters=adapters,
        account=account,
    )
    records = [json.loads(line) for line in sink.data.splitlines()]
    return [{k: v for k, v in record.items() if k != "~"} for record in records]


OUTSIDE = {"atom", "cost_low", "cost_high", "price", "latency", "epsilon"}  # of a `refine`
RUNS_ON = {"L601", "L602", "L604", "L606", "L607", "L610", "L701", "L702", "L704"}
RACES = {"L501", "L502", "L503", "L504", "L505"} | RUNS_ON
# The codes that may refuse a change of a field; L103 may refuse any.
FIELD_CODES: dict[str, set[str]] = {
    "kind": {"L104", "L601", "L602", "L604", "L607", "L701", "L702", "D101"},
    "controller": {"D101", "L201", "L702", "L604"} | RUNS_ON,
    "run_limits": {"L604", "L607", "L704", "L702"},
    "budget_event": {"L402", "L704", "L709"},
    "model_id": {"L702"},
    "adapter_id": {"L702"},
    "dp_cert_id": {"L702"},
    "eps_train": {"L702"},
    "delta_train": {"L702"},
    "adapters": {"L201", "L702"},
    "dkey_pred": {"L702"},
    "slack": {"L402", "L702"},
    "dkey_margin": {"L710"},
    "reservation": {"L709"},
    "account_left": {"L709", "L702"} | RUNS_ON,
    "account": {"L201", "L203", "L709"},
    "dkey_real": {"L703"},
    "price_spent": {"L704"},
    "latency_ms": {"L704"},
    "epsilon_used": {"L704"},
    "router_rdp_eps": {"L705"},
    "alpha_selected": {"L706"},
    "eps_delta": {"L707"},
    "atom": {"L704", "L705", "L706", "L707", "L708"},
    "price_cap": {"L704"},
    "sla_ms": {"L704"},
    "epsilon_cap": {"L704"},
    "price": {"L704"},
    "latency": {"L704"},
    "epsilon": {"L704"},
    "cost_low": {"L703", "L604", "L609", "L504", "L702"},
    "cost_high": {"L604", "L703", "L609", "L702", "L607", "L601"},
    "call": {"L402", "L702"},
    "ctx_digest": {"L401"},
    "node_id": {"L402", "L601", "L702"},
    "law": {"L610"},
    "plans": {"L610"},
    "step": {"L601", "L402", "L104"},
    "key_raw": {"L504"},
    "guards": {"L604"},
    "claim_type": {"L609"},
}
ANY = {f"L{n}" for n in (*range(201, 204), *range(301, 306), 401, 402, *range(501, 506))} | {
    *(f"L{n}" for n in (*range(601, 612), *range(701, 711))), "D101", "D102", "D302", "L104",
}  # fmt: skip


def another_honest_run(mutant: Mutant, data: bytes) -> bool:
    """Whether the runtime writes this ledger, told its header's settings and its answers."""
    header = mutant.records[0]
    limits = header["run_limits"]
    names = (
        "mode", "race", "keys", "recipe", "top", "inflate", "tau", "alpha", "eta", "count_bits",
    )  # fmt: skip
    told = {name: header[name] for name in names} | dict(header["controller"])
    told |= {name: limits.get(name) for name in ("price_cap", "sla_ms", "epsilon_cap")}
    told |= {"delta": header.get("delta"), "atoms": tuple(atoms_of(header.get("atoms", [])))}
    told["raw_input_dependent"] = header["privacy_scope"] == "raw_input_dependent"
    if header["mode"] != "fallback" and header["race"] != "literal":
        told["truncate"] = header["truncate"]
    told |= {"max_expansions": limits.get("max_expansions"), "started_ms": header["started_ms"]}
    try:
        answers = [answer_of(r, 1) for r in mutant.records if r["kind"] == "refine"]
        if "account" in header:
            said = [told_of(r, 1) for r in mutant.records if "account_left" in r]
            told["account"] = Transcript(header, said)
        adapters = [Adapter(**listed) for listed in header.get("adapters", ())]
        written = honest(data, {"seed": SEED, **told}, RecordedAnswers(answers, None), adapters)
    except (Rejected, ResumeError, SettingsError, StopIteration):
        return False
    return chained(written) == mutant.data


def forge_fields(name: str, stride: int) -> None:
    checked, data, records = forged_run(name)
    assert validate(chained(records), checked).verdict == 0
    tried, other, wrong = 0, [], []
    for mutant in islice(field_mutants(records), len(name) % stride, None, stride):
        tried += 1
        place = f"{mutant.records[mutant.record].get('kind')} {mutant.field}: {mutant.how}"
        found = validate(mutant.data, checked)
        if found.verdict == 0:
            (other if another_honest_run(mutant, data) else wrong).append(place)
            continue
        code = found.findings[0].code.value
        allowed = FIELD_CODES.get(mutant.field, ANY)
        if mutant.field in OUTSIDE or mutant.record == 0:
            allowed = allowed | RACES | ANY
        if code != "L103" and code not in allowed:
            wrong.append(f"{code} {place}")
    print(f"{name}: {tried} mutants, {len(other)} other honest runs: {other[:9]}")
    assert not wrong, wrong[:20]
    assert tried * stride > 900
    assert len(other) <= 20, other


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.sampled(8)
def test_no_single_field_mutant_of_a_run_over_ranges_is_valid(name):
    forge_fields(name, STRIDE)


@pytest.mark.campaign
@pytest.mark.parametrize("name", RUNS)
def test_no_single_field_mutant_of_a_run_over_ranges_is_valid_campaign(name):
    forge_fields(name, 1)


def forge_lines(name: str, stride: int) -> None:
    checked, data, records = forged_run(name)
    mutants = list(islice(line_mutants(records), 0, None, stride))
    survivors = [
        (m.record, m.field, m.how)
        for m in mutants
        if validate(m.data, checked).verdict == 0 and not another_honest_run(m, data)
    ]
    print(f"{name}: {len(mutants)} mutants, {len(survivors)} survivors")
    assert survivors == []


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.sampled(12)
def test_no_record_of_a_run_over_ranges_can_be_dropped_doubled_or_moved(name):
    forge_lines(name, 17)


@pytest.mark.campaign
@pytest.mark.parametrize("name", RUNS)
def test_no_record_of_a_run_over_ranges_can_be_dropped_doubled_or_moved_campaign(name):
    forge_lines(name, 1)
