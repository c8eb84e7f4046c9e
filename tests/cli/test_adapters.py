"""Adapters on the command line: identity, registry, runs that name them, ledgers held to them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tcc as library
from tcc_certs.errors import Rejected
from tcc_runtime.pricing.quotes import point
from tests.runtime import adapters as peft

SEED = "11" * 32
GRAMMAR = """grammar g version "1"

tool look(how: fast | deep) {
  cost 1 .. 2
  quotes same
  model small { latency 10 ms adapter "lora-s" }
  model large { price 2 latency 90 ms adapter "lora-l" }
}
tool done { cost 0.1 }

plan = look{1,3} done
"""
BOOK = {
    "format": "tcc.quotes", "version": "1.0",
    "quotes": [
        {"tool": "look", "model": "small", "low": "1.2", "high": "1.9", "latency_ms": 11},
        {"tool": "look", "model": "large", "cost": "1.5", "latency_ms": 80},
    ],
}  # fmt: skip


@pytest.fixture
def house(tcc, tmp_path) -> Path:
    (tmp_path / "g.tcg").write_text(GRAMMAR)
    (tmp_path / "book.json").write_text(json.dumps(BOOK))
    assert tcc("compile", tmp_path / "g.tcg", "-o", tmp_path / "g.tcca").code == 0
    other = {**peft.CONFIG, "lora_alpha": 32}
    ids = {
        "lora-s": tcc("adapters", "id", peft.folder(tmp_path / "lora-s")).out.strip(),
        "lora-l": tcc("adapters", "id", peft.folder(tmp_path / "lora-l", other)).out.strip(),
    }
    peft.registry(
        tmp_path / "adapters.toml", {name: peft.entry(found) for name, found in ids.items()}
    )
    return tmp_path


def run(tcc, house, *more):
    told = ("--quotes", house / "book.json", "--seed", SEED, "--top", 3, *more)
    return tcc("run", house / "g.tcca", *told)


def ledger_of(tcc, house) -> Path:
    ledger = house / "run.ledger"
    told = ("--adapters", house / "adapters.toml", "--ledger", ledger)
    assert run(tcc, house, *told).code == 0
    return ledger


def test_a_registry_is_held_to_its_folders(tcc, house):
    found = tcc("adapters", "check", house / "adapters.toml", "--json")
    assert (found.code, [item["name"] for item in found.json["adapters"]]) == (
        0, ["lora-l", "lora-s"],
    )  # fmt: skip
    assert "VALID: 2 adapters" in tcc("adapters", "check", house / "adapters.toml").out


def test_a_ledger_names_the_adapter_of_each_model_that_was_asked(tcc, house):
    ledger = ledger_of(tcc, house)
    records = [json.loads(line) for line in ledger.read_text().splitlines()]
    ids = {item["name"]: item["adapter_id"] for item in records[0]["adapters"]}
    asked = [record for record in records if record["kind"] in ("budget", "refine")]
    assert {record["model_id"] for record in asked} == {"small", "large"}
    for record in asked:
        assert record["adapter_id"] == ids["lora-" + record["model_id"][0]]
        assert record["dp_cert_id"] == "cert-1"
        assert (record["eps_train"], record["delta_train"]) == ("2.5", "0.000001")
    told = ("--artifact", house / "g.tcca", "--json")
    found = tcc("validate", ledger, *told, "--adapters", house / "adapters.toml")
    assert (found.code, found.json["claim_upheld"]) == (0, True)


def test_a_run_that_keeps_a_ledger_needs_a_registry(tcc, house):
    found = run(tcc, house, "--ledger", house / "no.ledger")
    assert found.code == 1
    assert "A102" in found.err and "look, model" in found.err
    assert not (house / "no.ledger").exists()
    run_ = library.search(
        library.load(house / "g.tcca"), seed=bytes(32), quoter=lambda _: point("1.5")
    )
    assert run_.claim_type == "RunWiseExact"


def test_where_nobody_is_asked_no_adapter_is_named(tcc, house):
    ledger = house / "run.ledger"
    told = ("--seed", SEED, "--adapters", house / "adapters.toml", "--ledger", ledger)
    assert tcc("run", house / "g.tcca", *told).code == 2  # nobody to ask: nothing is claimed
    assert "adapters" not in json.loads(ledger.read_text().splitlines()[0])
    assert tcc("validate", ledger, "--artifact", house / "g.tcca").code == 0


def test_an_adapter_that_was_altered_since_is_refused(tcc, house):
    config = house / "lora-s" / "adapter_config.json"
    config.write_text(config.read_text().replace("0.05", "0.06"))
    found = run(tcc, house, "--adapters", house / "adapters.toml")
    assert (found.code, "A106" in found.err) == (1, True)


def test_a_ledger_of_another_registry_is_refused_where_it_is_asked_for(tcc, house):
    ledger = ledger_of(tcc, house)
    text = (house / "adapters.toml").read_text()
    for changed in (text.replace('"2.5"', '"3"'), text.replace("cert-1", "cert-9", 1)):
        (house / "other.toml").write_text(changed)
        told = ("--artifact", house / "g.tcca", "--adapters", house / "other.toml", "--json")
        found = tcc("validate", ledger, *told)
        assert (found.code, found.json["verdict"], found.json["claim_upheld"]) == (
            1,
            "INVALID",
            False,
        )
        assert {item["code"] for item in found.json["findings"]} == {"A201"}
    # A registry that is none.
    (house / "other.toml").write_text("")
    found = tcc("validate", ledger, *told)
    assert (found.code, "A101" in found.err) == (1, True)


def test_a_run_is_resumed_with_the_adapters_that_it_had(tcc, house):
    ledger = ledger_of(tcc, house)
    whole = ledger.read_bytes()
    lines = whole.splitlines(keepends=True)
    told = ("--resume", "--ledger", ledger)
    for kept in (2, len(lines) // 2):
        ledger.write_bytes(b"".join(lines[:kept]))
        assert run(tcc, house, *told, "--adapters", house / "adapters.toml").code == 0
        assert ledger.read_bytes().splitlines()[:kept] == whole.splitlines()[:kept]
        assert tcc("validate", ledger, "--artifact", house / "g.tcca").code == 0
    ledger.write_bytes(b"".join(lines[:2]))
    text = (house / "adapters.toml").read_text()
    (house / "adapters.toml").write_text(text.replace('"2.5"', '"3"'))
    found = run(tcc, house, *told, "--adapters", house / "adapters.toml")
    assert found.code == 2
    assert "adapters" in found.err or "run_id" in found.err
    assert ledger.read_bytes() == b"".join(lines[:2])


def test_without_safetensors_the_extra_is_named(tcc, house, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for told in (("id", house / "lora-s"), ("check", house / "adapters.toml")):
        found = tcc("adapters", *told)
        assert (found.code, "pip install 'tcc[adapters]'" in found.err) == (2, True)


def test_the_library_takes_the_registry_by_its_path(house):
    artifact = library.load(house / "g.tcca")
    told = {"seed": bytes(32), "quoter": lambda _: point("1.5"), "ledger": house / "l.ledger"}
    run_ = library.search(artifact, adapters=house / "adapters.toml", **told)
    assert run_.claim_type == "RunWiseExact"
    held = {"adapters": house / "adapters.toml"}
    assert library.validate(house / "l.ledger", house / "g.tcca", **held).claim_upheld
    (house / "lora-l" / "adapter_model.safetensors").unlink()
    with pytest.raises(Rejected, match="A103"):
        library.search(artifact, adapters=house / "adapters.toml", **told)


TRAINING = {
    "mechanism": '"subsampled_gaussian"', "noise_multiplier": '"1"', "sampling_rate": '"0.01"',
    "steps": "1000",
}  # fmt: skip
DUE = "2.1077530755"  # at a delta of 0.00001


def trained(house: Path, epsilon: str, delta: str = "0.00001", **members: str | None) -> Path:
    """A registry of one adapter that says how it was trained; None takes a member away."""
    told = {name: value for name, value in (TRAINING | members).items() if value is not None}
    registry = house / "trained.toml"
    found = peft.folder(house / "lora-s") if not (house / "lora-s").exists() else house / "lora-s"
    from tcc_runtime.adapters.registry import folder_id

    peft.registry(registry, {"lora-s": peft.entry(folder_id(found))})
    text = registry.read_text().replace('"2.5"', f'"{epsilon}"').replace('"0.000001"', f'"{delta}"')
    lines = [text, '[adapters."lora-s".training]', *(f"{key} = {told[key]}" for key in told)]
    registry.write_text("\n".join(lines) + "\n")
    return registry


@pytest.mark.parametrize(
    ("epsilon", "delta", "code"),
    [
        (DUE, "0.00001", 0), ("9", "0.00001", 0), ("2.1077530754", "0.00001", 1),
        ("0", "0.00001", 1), (DUE, "0.000001", 1), (DUE, "0", 1), (DUE, "1", 1),
    ],
)  # fmt: skip
def test_an_epsilon_is_held_to_its_training(tcc, house, epsilon, delta, code):
    found = tcc("adapters", "check", trained(house, epsilon, delta), "--json")
    assert found.code == code
    if code:
        assert found.json["findings"][0]["code"] == "A107"
    assert "A107" in tcc("explain", "A107").out


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"noise_multiplier": "1.0", "sampling_rate": "0.01"}, 0),
        ({"noise_multiplier": "1"}, 0),
        ({"steps": '"1000"'}, 0),
        ({"noise_multiplier": "0.9"}, "A107"),
        ({"sampling_rate": "1e-2", "steps": "1001"}, "A107"),
        ({"steps": "1000000000"}, "A107"),
        ({"noise_multiplier": '"0.000000000000000001"'}, "A107"),
        ({"sampling_rate": "1"}, "A107"),
        ({"steps": None}, "A101"),
        ({"clip": '"1"'}, "A101"),
        ({"mechanism": '"gaussian"'}, "A101"),
        ({"mechanism": "[]"}, "A101"),
        ({"noise_multiplier": '"0"'}, "A101"),
        ({"noise_multiplier": "nan"}, "A101"),
        ({"noise_multiplier": "inf"}, "A101"),
        ({"noise_multiplier": "1e-300"}, "A101"),
        ({"noise_multiplier": "true"}, "A101"),
        ({"sampling_rate": '"1.1"'}, "A101"),
        ({"sampling_rate": "-0.1"}, "A101"),
        ({"steps": "0"}, "A101"),
        ({"steps": "1.5"}, "A101"),
        ({"steps": "1000000001"}, "A101"),
    ],
)
def test_a_training_has_its_form(tcc, house, members, code):
    found = tcc("adapters", "check", trained(house, DUE, **members), "--json")
    assert found.code == int(bool(code))
    if code:
        assert found.json["findings"][0]["code"] == code


def test_a_training_is_a_table(tcc, house):
    registry = trained(house, DUE)
    text = registry.read_text()
    registry.write_text(text[: text.index('[adapters."lora-s".training]')] + 'training = "none"\n')
    found = tcc("adapters", "check", registry, "--json")
    assert (found.code, found.json["findings"][0]["code"]) == (1, "A101")


def test_a_run_is_refused_whose_adapter_was_trained_with_less_noise(tcc, house):
    registry = house / "adapters.toml"
    lines = [f"{key} = {TRAINING[key]}" for key in TRAINING]
    with registry.open("a") as file:
        file.write("\n".join(['[adapters."lora-s".training]', *lines]).replace('"1"', '"0.1"'))
    found = run(tcc, house, "--adapters", registry, "--ledger", house / "no.ledger")
    assert found.code == 1
    assert "A107" in found.err
