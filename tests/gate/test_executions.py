"""Which model makes a call, against a plain list; caps that run out; sessions that are reopened."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.spending import account, exact_delta
from tcc_runtime.errors import AnswerError, ResumeError, SettingsError
from tests.oracle_session.writer import KEY

Records = list[dict[str, Any]]
HEAD = 'grammar desk version "1"\n'
DESK = HEAD + (
    "tool look\n"
    "tool answer {\n"
    "  model fast { price 1 latency 50 ms execute { price 2 latency 300 ms } }\n"
    "  model deep { price 9 latency 100 ms execute }\n"
    "  model asked { price 0 }\n"
    "}\n"
    "plan = (look | answer){0,20}\n"
)


class Clock:
    """A clock that is told what time it is."""

    def __init__(self) -> None:
        self.now = 1000

    def __call__(self) -> int:
        return self.now


def opened(artifact: Any, path: Path | None = None, clock: Clock | None = None) -> library.Gate:
    told = {"ledger": path, "durable": False, "key": KEY, "nonce": bytes(16)}
    return library.Gate(artifact, clock=clock or Clock(), **told)


def records(path: Path) -> Records:
    return [json.loads(line) for line in path.read_text().splitlines()]


def verdict(path: Path, artifact: Any, tmp_path: Path) -> Any:
    library.save(artifact, tmp_path / "a.tcca")
    return library.validate(path, tmp_path / "a.tcca", key=KEY)


class Plain:
    """The rule of session.md, section 8, over a plain list of what was done."""

    def __init__(self, models: list[tuple[int, int, int]], caps: tuple[Any, Any]) -> None:
        self.models, self.caps = models, caps
        self.made: list[tuple[int, int, int, bool]] = []  # model, price, latency, done

    def expected(self, model: int) -> tuple[int, int]:
        seen = sorted(latency for by, _, latency, _ in self.made if by == model)
        latency = seen[ceil(Fraction(95 * len(seen), 100)) - 1] if seen else self.models[model][1]
        return self.models[model][0], ceil(Fraction(12 * latency, 10))

    def choice(self) -> int | None:
        spent = [sum(made[at] for made in self.made) for at in (1, 2)]
        best: tuple[Any, int] | None = None
        for model in range(len(self.models)):
            price, latency = self.expected(model)
            used = zip((price, latency), spent, self.caps, strict=True)
            if any(cap is not None and more + so_far > cap for more, so_far, cap in used):
                continue
            tried = [made for made in self.made if made[0] == model]
            gain = Fraction(1 + sum(made[3] for made in tried), 1 + len(tried))
            burden = price + Fraction(latency, 1000) + Fraction(self.models[model][2], 10**9)
            merit = (burden == 0, gain / burden if burden else 0, gain, -burden, -model)
            if best is None or merit > best[0]:
                best = merit, model
        return None if best is None else best[1]


@pytest.mark.parametrize("seed", range(12))
def test_the_choice_is_that_of_a_plain_list(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    amounts = [
        (rng.choice((0, 1, 1, 2, 7)), rng.choice((0, 5, 5, 100)), rng.choice((0, 0, 10**8)))
        for _ in range(rng.randint(1, 4))
    ]
    models = [
        f"model m{at} {{ execute {{ price {price} latency {latency} ms "
        f"epsilon {'0.1' if epsilon else '0'} }} }}"
        for at, (price, latency, epsilon) in enumerate(amounts)
    ]
    artifact = library.compile_text(
        HEAD + f"tool answer {{ {' '.join(models)} }}\nplan = answer{{0,20}}\n"
    )
    caps = rng.choice((None, 6, 25)), rng.choice((None, 90, 400))
    plain, clock, path = Plain(amounts, caps), Clock(), tmp_path / "s"
    gate = opened(artifact, path, clock)
    gate.budget(price_cap=caps[0], sla_ms=caps[1])
    for _ in range(20):
        due = plain.choice()
        if due is None:
            with pytest.raises(library.Refused, match="R205"):
                gate.call("answer").__enter__()
            assert gate.check("answer").code == "R205"
            break
        outcome = rng.choice(("done", "done", "failed", "unknown"))
        price = rng.choice((None, None, 0, 3))
        took = None if price is None else library.Took(price=price)
        latency = rng.choice((0, 5, 40, 200))
        with gate.call("answer") as permit:
            assert permit.model == f"m{due}"
            clock.now += latency
            getattr(permit, outcome)(took=took)
        paid = amounts[due][0] if price is None else price
        plain.made.append((due, paid, latency, outcome == "done"))
        if rng.random() < 0.3:  # what comes next follows from the ledger alone
            gate.close()
            gate = opened(artifact, path, clock)
    gate.finish()
    found = verdict(path, artifact, tmp_path)
    assert (found.verdict, found.claim_type) == (0, "Conformant"), found.findings
    said = [record["execute"]["model_id"] for record in records(path) if record["kind"] == "call"]
    assert said == [f"m{by}" for by, *_ in plain.made]


def test_a_session_without_a_budget_is_as_one_of_tools_without_models(tmp_path: Path) -> None:
    artifact, path = library.compile_text(DESK), tmp_path / "s"
    gate = opened(artifact, path)
    with gate.call("answer") as permit:
        assert permit.model == ""
        permit.done()
    gate.finish()
    assert [sorted(record) for record in records(path)[1:3]] == [
        ["call", "key", "kind", "mac", "open", "seq", "states", "~"],
        ["kind", "mac", "ms", "outcome", "seq", "~"],
    ]
    assert gate.spent is None and gate.budget_left == {}
    assert verdict(path, artifact, tmp_path).claim_type == "Conformant"


def test_caps_that_run_out_refuse_the_call_and_no_other(tmp_path: Path) -> None:
    artifact, path = library.compile_text(DESK), tmp_path / "s"
    gate = opened(artifact, path)
    gate.budget(price_cap=5)
    for left in ("3", "1"):
        with gate.call("answer") as permit:
            permit.done()
        assert gate.budget_left == {"price": left}
    with pytest.raises(library.Refused) as refused:
        gate.call("answer").__enter__()
    assert (refused.value.code, refused.value.place) == ("R205", "budget")
    with gate.call("look") as permit:
        permit.done()
    assert records(path)[-3]["kind"] == "refusal" and records(path)[-3]["code"] == "R205"
    gate.finish()
    assert verdict(path, artifact, tmp_path).claim_type == "Conformant"


def test_what_a_call_took_beyond_what_was_expected_is_the_end_of_the_budget(tmp_path) -> None:
    artifact, path = library.compile_text(DESK), tmp_path / "s"
    gate = opened(artifact, path)
    gate.budget(price_cap=5)
    with gate.call("answer") as permit:
        permit.done(took=library.Took(price=8, latency_ms=4))
    assert gate.budget_left == {"price": "-3"}
    assert gate.check("answer").code == "R205"
    gate.finish()
    assert verdict(path, artifact, tmp_path).claim_type == "Conformant"


def test_a_call_that_nobody_ended_took_all_that_was_expected(tmp_path: Path) -> None:
    artifact, path = library.compile_text(DESK), tmp_path / "s"
    gate = opened(artifact, path)
    gate.budget(price_cap=5, sla_ms=10_000)
    with gate.call("answer"):
        left = tmp_path / "left"
        left.write_bytes(path.read_bytes())  # as a process leaves it that was killed
    path = left
    gate = opened(artifact, path)
    assert gate.budget_left == {"price": "3", "latency_ms": "9640"}
    last = records(path)[-1]
    assert (last["outcome"], last["took"]["latency"]) == ("unknown", "360")
    gate.resolve(1, "done")
    gate.finish()
    assert verdict(path, artifact, tmp_path).claim_type == "Conformant"


def test_a_session_has_one_budget(tmp_path: Path) -> None:
    artifact, path = library.compile_text(DESK), tmp_path / "s"
    gate = opened(artifact, path)
    assert gate.budget(price_cap=5) is True
    assert gate.budget(price_cap=5) is False
    with pytest.raises(ResumeError, match="budget"):
        gate.budget(price_cap=6)
    gate.close()
    again = opened(artifact, path)
    with pytest.raises(ResumeError, match="budget"):
        again.budget()
    assert again.budget(price_cap=5) is False
    with pytest.raises(SettingsError, match="price_cap"):
        opened(artifact).budget(price_cap=-1)


def test_hostile_amounts_are_refused_where_they_are_said() -> None:
    for told in ({"price": -1}, {"latency_ms": 1.5}, {"epsilon": "a"}, {"price": 1 << 64}):
        with pytest.raises(AnswerError):
            library.Took(**told)
    gate = opened(library.compile_text(DESK))
    gate.budget(price_cap=5)
    atom = {"mechanism": "laplace", "scale": "2", "sensitivity": "1"}
    with gate.call("answer") as permit, pytest.raises(SettingsError, match="atom"):
        permit.done(took=library.Took(atom=atom))
    assert permit.outcome == "unknown" and gate.budget_left == {"price": "3"}


def test_atoms_of_calls_are_composed_with_those_of_the_input(tmp_path: Path) -> None:
    model = "model m { execute { atom laplace(4, 1) } }"
    artifact = library.compile_text(HEAD + f"tool a {{ {model} }}\nplan = a{{0,9}}\n")
    path = tmp_path / "s"
    gate = opened(artifact, path)
    gate.budget(epsilon_cap="1", delta="0.00001")
    used: list[int] = []
    while gate.check("a"):
        with gate.call("a") as permit:
            permit.done()
        used.append(gate.spent.epsilon_used)
    item = {"mechanism": "laplace", "scale": "4", "sensitivity": "1"}
    sums = [account(exact_delta("0.00001"), atoms_of([item] * n), True).nano for n in range(1, 6)]
    assert used == sums[:4] and sums[3] <= 10**9 < sums[4]
    gate.finish()
    found = verdict(path, artifact, tmp_path)
    assert (found.verdict, found.claim_type) == (0, "Conformant"), found.findings
    last = [record["took"] for record in records(path) if "took" in record][-1]
    assert last["eps_delta"]["delta"] == "0.00001" and last["eps_delta"]["eps"].startswith("0.999")
    assert last["left"] == {"epsilon": f"0.000{10**9 - used[-1]}"}
    assert last["atom"] == item


def test_one_history_has_one_ledger(tmp_path: Path) -> None:
    artifact = library.compile_text(DESK)
    for name in ("one", "two"):
        clock = Clock()
        gate = opened(artifact, tmp_path / name, clock)
        gate.budget(price_cap=50, margin="0.5")
        for latency in (7, 1, 300):
            with gate.call("answer") as permit:
                clock.now += latency
                permit.done()
        gate.finish()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert verdict(tmp_path / "one", artifact, tmp_path).claim_type == "Conformant"
