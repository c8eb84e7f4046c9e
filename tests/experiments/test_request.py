"""A private request from end to end, and the adapter that is trained for it."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from tcc_certs.errors import Rejected
from tcc_experiments import digits, request
from tcc_experiments.model import random_of
from tcc_runtime.adapters.registry import folder_id, read_registry

# Of the weights, on any machine.
IDENTITY = "fcbe2c1829c46f8d6d7c647f6b3c2118a1cf7652f1a5c985131726f9576b4fd4"


def test_the_adapter_has_the_same_bytes_everywhere(tmp_path: Path) -> None:
    assert folder_id(digits.write_adapter(tmp_path / digits.ADAPTER)) == IDENTITY


def test_what_is_read_from_the_folder_is_what_was_trained(tmp_path: Path) -> None:
    a, b = digits.tuned()
    folder = digits.write_adapter(tmp_path / digits.ADAPTER)
    assert (digits.read_adapter(folder) == b @ a // (1 << 16)).all()


def test_no_gradient_of_an_image_is_longer_than_the_clip() -> None:
    known, base = digits.digits(), digits.prototypes()
    a, b = digits.tuned()
    for at in range(known.private.start, known.private.start + 100):
        one = slice(at, at + 1)
        # Weights far from any minimum have long gradients.
        for scale in (1, 50):
            found = digits._clipped_sum(
                base, a * scale, b * scale, known.sketches[one], known.classes[one]
            )
            assert sum(value * value for value in found.tolist()) <= (1 << 16) ** 2


def test_no_sketch_is_longer_than_the_norm() -> None:
    sketches = digits.digits().sketches[:, :16]
    assert int((sketches**2).sum(axis=1).max()) <= digits.NORM**2
    assert request.atom(10)["sensitivity"] == str(2 * digits.NORM)


def test_noise_is_the_discrete_gaussian() -> None:
    rng, trials, deviation = random_of("test/noise", 0), 40_000, 3
    counted = Counter(digits.discrete_gaussian(rng, deviation) for _ in range(trials))
    weights = {x: math.exp(-(x**2) / (2 * deviation**2)) for x in range(-40, 41)}
    whole = sum(weights.values())
    cells = [x for x in weights if trials * weights[x] / whole >= 10]
    chi = sum(
        (counted[x] - trials * weights[x] / whole) ** 2 / (trials * weights[x] / whole)
        for x in cells
    )
    assert chi < len(cells) + 4 * math.sqrt(2 * len(cells))


def test_shares_of_classes_are_those_of_the_softmax() -> None:
    found = np.array([[0, 1 << 16, -(1 << 16), 3 << 16]])
    shares = digits.softmax(found)[0] / (1 << 16)
    exact = np.exp(found[0] / (1 << 16))
    assert np.abs(shares - exact / exact.sum()).max() < 1e-4


def test_the_certificate_of_training_is_what_training_comes_to() -> None:
    with request.trained() as (adapters, folder):
        assert adapters[0].name == digits.ADAPTER
        registry = folder.parent / "adapters.toml"
        less = Decimal(digits.EPSILON_TRAIN) - Decimal("0.01")
        text = registry.read_text()
        registry.write_text(text.replace(f'"{digits.EPSILON_TRAIN}"', f'"{less}"'))
        with pytest.raises(Rejected, match="A107"):
            read_registry(registry)


def test_every_search_of_a_request_states_the_same_epsilon_and_its_session_conforms() -> None:
    rows = [row for number in (1, 20) for row in request.work(
        {"deviation": 20, "from": number, "to": number + 2})]  # fmt: skip
    assert {row["claim"] for row in rows} == {"Conformant"}
    assert all(row["same_epsilon"] for row in rows)
    assert len({row["epsilon"] for row in rows}) == 1
    assert sum(int(row["searches"] or 0) for row in rows) > len(rows)
    assert sum(int(row["tuned"] or 0) for row in rows) > 0
    assert sum(int(row["prototypes"] or 0) for row in rows) > 0
    found = request.conclude([*rows, *[{**row, "deviation": 10} for row in rows],
                              *[{**row, "deviation": 40} for row in rows]])  # fmt: skip
    assert len(found.table("request")) == 3


def test_noise_of_a_request_is_the_same_when_it_is_made_again() -> None:
    assert (request.noisy(3, 20) == request.noisy(3, 20)).all()
    assert (request.noisy(3, 20) != request.noisy(4, 20)).any()
