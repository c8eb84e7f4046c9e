"""The automaton against random cores with listed arguments and answers.

The oracle lists plans; the part that strict leaves is found there by taking plans out one by one.
"""

from __future__ import annotations

import random

import pytest

from tcc_certs.policy.nodes import Limit, Owe, Require
from tests.certs.test_corecheck_strict import free_plans, verdict
from tests.oracle.cores import random_later_core
from tests.oracle.plans import plans


def agree_and_differ(rng: random.Random, rounds: int) -> tuple[int, int, dict[str, int]]:
    """Random cores: the plans that the oracle lists are VALID, one more or less is refused."""
    valid, cut, refused = 0, 0, dict.fromkeys(("C901", "G101", "G102"), 0)
    for _ in range(rounds):
        data, core = random_later_core(rng)
        due = plans(core, 3)
        if not due:
            continue
        assert verdict(data, due) == "VALID", data
        valid += 1
        free = {word for word in free_plans(core) if word not in set(due)}
        cut += bool(free)
        for _ in range(3):
            forged = set(due)
            choice = rng.random()
            if choice < 0.4 and len(due) > 1:
                forged.remove(rng.choice(due))
            elif choice < 0.8 and free:
                forged |= set(rng.sample(sorted(free), rng.randint(1, len(free))))
            else:
                forged.add(tuple(rng.randrange(len(core.calls)) for _ in range(rng.randint(0, 3))))
            if forged != set(due):
                refused[verdict(data, sorted(forged))] += 1
    return valid, cut, refused


def test_random_cores_agree_with_the_oracle_and_with_nothing_else() -> None:
    valid, cut, refused = agree_and_differ(random.Random(11), 90)
    print(f"{valid} artifacts valid, {cut} of them cut, {refused} forged ones refused")
    assert valid > 40 and cut > 2 and min(refused.values()) > 2


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_many_random_cores_agree_with_the_oracle(seed: int) -> None:
    agree_and_differ(random.Random(seed), 1000)


def test_random_cores_have_every_feature() -> None:
    rng = random.Random(11)
    cores = [random_later_core(rng)[1] for _ in range(300)]
    assert sum(any(tool.strict for tool in core.tools) for core in cores) > 100
    for kind in (Limit, Owe, Require):
        assert sum(any(isinstance(s, kind) for s in core.statements) for core in cores) > 50
    assert sum(any(isinstance(s, Limit) and s.field for s in core.statements) for core in cores) > 5
