"""The adapter that was trained: its registry holds, and the same bytes come out again."""

from __future__ import annotations

import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tcc_runtime.adapters.registry import read_registry

pytest.importorskip("safetensors")
SCRIPT = Path(__file__).parents[2] / "experiments" / "train_digits.py"
spec = spec_from_file_location("train_digits", SCRIPT)
assert spec is not None and spec.loader is not None
training = module_from_spec(spec)
spec.loader.exec_module(training)


def test_its_registry_is_valid_and_says_what_was_run() -> None:
    (known,) = read_registry(training.TRAINED / "adapters.toml")
    assert known.name == training.NAME
    (entry,) = tomllib.loads((training.TRAINED / "adapters.toml").read_text())["adapters"].values()
    assert entry["training"] == training.training()
    assert float(entry["eps_train"]) == float(training.epsilon())


def test_it_is_trained_again_to_the_byte(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    down, up = training.train()
    training.write(tmp_path, down, up)
    names = ("adapters.toml", "digits-lora/adapter_config.json")
    for name in (*names, "digits-lora/adapter_model.safetensors"):
        assert (tmp_path / name).read_bytes() == (training.TRAINED / name).read_bytes(), name
    assert training.accuracy(down, up) > 0.75


def test_no_record_moves_the_sum_by_more_than_the_clipping_norm() -> None:
    pytest.importorskip("sklearn")
    import numpy as np

    pixels, digits = training.data()
    noise = training.Noise(b"a start")
    down = noise.normal(training.RANK * training.FEATURES, 2.0**16).reshape(training.RANK, -1)
    up = noise.normal(training.CLASSES * training.RANK, 2.0**16).reshape(training.CLASSES, -1)
    norms = []
    for at in range(50):
        alone = training._clipped_sum(down, up, pixels[at : at + 1], digits[at : at + 1])
        norms.append(float(np.sqrt((alone.astype(float) ** 2).sum())) / 2.0**19)
    assert max(norms) <= 1
    assert max(norms) > 0.99
    whole = training._clipped_sum(down, up, pixels[:50], digits[:50])
    less = training._clipped_sum(down, up, pixels[1:50], digits[1:50])
    assert float(np.sqrt(((whole - less).astype(float) ** 2).sum())) <= 2.0**19


def test_its_noise_is_normal() -> None:
    import numpy as np

    drawn = training.Noise(b"some").normal(200_000, 1000.0)
    assert abs(float(np.mean(drawn))) < 10
    assert abs(float(np.std(drawn)) - 1000) < 10
    assert abs(float((abs(drawn) < 1000).mean()) - 0.6827) < 0.005
