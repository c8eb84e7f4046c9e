"""One adapter that is really trained: low-rank weights for digits, by DP-SGD, with a fixed seed.

    python experiments/train_digits.py [FOLDER]

writes the folder `digits-lora`, as PEFT writes one, and its registry `adapters.toml` with what was
run: noise multiplier, sampling rate and steps, and the epsilon that follows.  What lies in
`tcc_experiments/trained` was made by it.  The data are the 8 by 8 digits that scikit-learn brings
along; every fifth is kept to test with.

The same bytes come out on every machine: sums and products are those of integers, randomness is
SHAKE-256 of the seed, and what floating point does beside (exponential, logarithm, cosine, root) is
rounded to a grid that is coarser than its errors.  So the seed is known, and with it the noise: the
training shows what the accounting is of, and protects nobody.
Cost: some seconds.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_certs.core.atoms import Codes, Exact, read_atom
from tcc_certs.errors import Code
from tcc_certs.privacy.accountant import epsilon_text, stated, total_of
from tcc_runtime.adapters.folder import CONFIG, WEIGHTS, folder_id

Whole: TypeAlias = "NDArray[np.int64]"

NAME: Final = "digits-lora"
TRAINED: Final = Path(__file__).parent / "tcc_experiments" / "trained"
SEED: Final = b"tcc.experiments digits-lora 1"
RANK, CLASSES, FEATURES = 8, 10, 64
NOISE: Final = "1.5"  # standard deviations of the noise, in clipping norms
RATE: Final = 32  # one record in so many is taken, each on its own
STEPS: Final = 400
BATCH: Final = 45  # how many gradients are meant to be in a sum: not how many there are
DELTA: Final = Exact(1, 5)
_PLACES = 16  # weights are whole in units of 2^-16
_FINE = 19  # gradients in units of 2^-19
_CLIP = 0.999999  # a little below 1, for what a quotient is rounded by
_LEARN = 2  # of the mean gradient
_SAVED = 10  # bits behind the point


class Noise:
    """Random numbers out of SHAKE-256: the same everywhere."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._used = seed, 0

    def words(self, count: int) -> Whole:
        """Integers below 2^32."""
        self._used += 1
        name = self._seed + self._used.to_bytes(8, "little")
        return np.frombuffer(hashlib.shake_256(name).digest(4 * count), "<u4").astype(np.int64)

    def normal(self, count: int, scale: float) -> Whole:
        """Normal numbers, rounded to integers (Box and Muller)."""
        radius, turn = (self.words(2 * count).reshape(2, count) + 0.5) / 2.0**32
        values = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * turn)
        return np.rint(scale * values).astype(np.int64)


def data() -> tuple[Whole, Whole]:
    """Pixels from -8 to 8, and digits."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return pixels.astype(np.int64) - 8, digits.astype(np.int64)


def train() -> tuple[Whole, Whole]:
    """The two matrices, in units of 2^-16."""
    pixels, digits = data()
    kept = np.arange(len(digits)) % 5 != 0
    pixels, digits = pixels[kept], digits[kept]
    noise = Noise(SEED)
    down = noise.normal(RANK * FEATURES, 2.0**_PLACES / 8).reshape(RANK, FEATURES)
    up = np.zeros((CLASSES, RANK), np.int64)
    for _ in range(STEPS):
        taken = noise.words(len(digits)) % RATE == 0
        total = _clipped_sum(down, up, pixels[taken], digits[taken])
        total += noise.normal(len(total), float(NOISE) * 2.0**_FINE)
        step = _LEARN * total // (BATCH << _FINE - _PLACES)
        down = down - step[: down.size].reshape(down.shape)
        up = up - step[down.size :].reshape(up.shape)
    return down, up


def _clipped_sum(down: Whole, up: Whole, pixels: Whole, digits: Whole) -> Whole:
    """The sum of the gradients of each record, none longer than 1, in units of 2^-19."""
    hidden = pixels @ down.T >> 3
    wrong = _shares(hidden @ up.T) - (np.eye(CLASSES, dtype=np.int64)[digits] << _PLACES)
    back = wrong @ up >> _PLACES
    of_down = back[:, :, None] * pixels[:, None, :]
    of_up = wrong[:, :, None] * hidden[:, None, :] >> 2 * _PLACES - _FINE
    records = np.concatenate([of_down.reshape(len(digits), -1), of_up.reshape(len(digits), -1)], 1)
    norms = np.sqrt((records * records).sum(1).astype(np.float64))
    share = np.minimum(1.0, _CLIP * 2.0**_FINE / np.maximum(norms, 1.0))
    clipped: Whole = np.trunc(records * share[:, None]).astype(np.int64)
    return clipped.sum(0)


def _shares(scores: Whole) -> Whole:
    """The softmax of scores in units of 2^-32, in units of 2^-16."""
    above = (scores - scores.max(1, keepdims=True)) / 2.0 ** (2 * _PLACES)
    weights = np.rint(np.exp(above) * 2.0**30).astype(np.int64)
    return (weights << _PLACES) // weights.sum(1, keepdims=True)


def accuracy(down: Whole, up: Whole) -> float:
    """The share of the digits that were kept apart which are told right."""
    pixels, digits = data()
    apart = np.arange(len(digits)) % 5 == 0
    told = ((pixels[apart] @ down.T >> 3) @ up.T).argmax(1)
    return float((told == digits[apart]).mean())


def training() -> Mapping[str, Any]:
    """What was run, as a registry has it."""
    rate = f"{1 / RATE:.10f}".rstrip("0")
    return {
        "mechanism": "subsampled_gaussian",
        "noise_multiplier": NOISE,
        "sampling_rate": rate,
        "steps": STEPS,
    }


def epsilon() -> str:
    """What that comes to at the delta."""
    of = training()
    atom = {
        "mechanism": of["mechanism"], "rate": of["sampling_rate"],
        "sigma": of["noise_multiplier"], "sensitivity": "1", "times": of["steps"],
    }  # fmt: skip
    found = read_atom(atom, "training", Codes(Code.ATOMS, Code.ATOM_VALUE))
    return epsilon_text(stated(total_of([found]), DELTA).epsilon)


def write(folder: Path, down: Whole, up: Whole) -> None:
    """The adapter's folder and its registry."""
    from safetensors.numpy import save_file

    (folder / NAME).mkdir(parents=True, exist_ok=True)
    config = {
        "base_model_name_or_path": None, "bias": "none", "lora_alpha": RANK, "lora_dropout": 0.0,
        "peft_type": "LORA", "r": RANK, "target_modules": ["classifier"],
    }  # fmt: skip
    (folder / NAME / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    drop = _PLACES - _SAVED
    sides = {"lora_A": down, "lora_B": up}
    weights = {
        f"base_model.model.classifier.{side}.weight": (
            (matrix + (1 << drop - 1) >> drop) / 2.0**_SAVED
        ).astype(np.float32)
        for side, matrix in sides.items()
    }
    save_file(weights, folder / NAME / WEIGHTS)
    lines = ['format = "tcc.adapters/1.0"', "", f"[adapters.{NAME}]"]
    lines += [f'id = "{folder_id(folder / NAME)}"', 'tier = "Tiny"']
    lines += ['dp_cert_id = "digits-lora-training"', f'eps_train = "{epsilon().rstrip("0")}"']
    lines += [f'delta_train = "{DELTA.text}"', "", f"[adapters.{NAME}.training]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in training().items()]
    (folder / "adapters.toml").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Train, write, and say how good it is."""
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else TRAINED
    down, up = train()
    write(folder, down, up)
    told = f"epsilon {epsilon()} at delta {DELTA.text}, accuracy {accuracy(down, up):.3f}"
    sys.stdout.write(f"{folder}: {told}\n")


if __name__ == "__main__":
    main()
