"""Handwritten digits, read by a model that has an adapter trained under differential privacy.

The images are scikit-learn's.  A sketch of one is its 16 sums of 2 by 2 pixels less a public mean,
clipped to a norm.  The model scores a sketch by the class means of 150 public images; its adapter
is a low-rank addition to the scores, trained from scratch on 1,247 private images by DP-SGD:
Poisson sampling, the gradient of each image clipped, noise on their sum.

All of it is done in integers, so that the weights are the same bytes on any machine, and so that
nothing of the privacy is lost to rounding: clipped gradients are integer vectors of a norm that is
held to exactly, and the noise is the discrete Gaussian.  The moments of the likelihood ratio of a
discrete Gaussian and itself moved by an integer are those of the Gaussian, so the certificate of
the subsampled Gaussian is one of this training.  The seed is published: what is shown is the
method, the noise itself hides nothing from who reads this file.
Source: Abadi et al., Deep learning with differential privacy (2016); Canonne, Kamath and Steinke,
The discrete Gaussian for differential privacy (2020).
Cost: 200 steps of some 80 images, seconds.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tcc_experiments.figures import MissingMatplotlib
from tcc_experiments.model import random_of

NORM: Final = 40  # of a sketch, in sums of pixels
PUBLIC: Final = 150
TESTED: Final = 400
RANK: Final = 16
STEPS: Final = 200
AVERAGED: Final = 100  # the last steps, whose mean is the adapter
RATE: Final = "0.0625"
NOISE_MULTIPLIER: Final = "2"
DELTA_TRAIN: Final = "0.00001"
EPSILON_TRAIN: Final = "2.2"
ADAPTER: Final = "digits-lora"

_ONE: Final = 1 << 16  # weights and scores have 16 bits behind the point
_UNIT: Final = 64  # what a sketch is divided by; a constant input of 1
_CLIP: Final = _ONE  # the norm of one image's gradient
_CLASSES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Digits:
    """Sketches and their classes, in the order of the data set.

    Attributes:
        sketches: images by 17 integers, the last of them the constant input.
        classes: 0 .. 9.
    """

    sketches: Any
    classes: Any

    @property
    def public(self) -> slice:
        """The images that anybody may see."""
        return slice(0, PUBLIC)

    @property
    def tested(self) -> slice:
        """The images of requests; no model has seen them."""
        return slice(PUBLIC, PUBLIC + TESTED)

    @property
    def private(self) -> slice:
        """The images that the adapter is trained on."""
        return slice(PUBLIC + TESTED, None)


@lru_cache(maxsize=1)
def digits() -> Digits:
    """The data set as sketches.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    try:
        import numpy as np

        found = import_module("sklearn.datasets").load_digits()
    except ImportError:
        raise MissingMatplotlib from None
    images = found.data.astype(np.int64).reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16)
    mean = images[:PUBLIC].sum(axis=0) // PUBLIC
    centred = images - mean
    norms = [max(NORM, _norm_above(row)) for row in centred.tolist()]
    # Towards zero, so that no sketch is longer than the norm.
    clipped = np.sign(centred) * (np.abs(centred) * NORM // np.array(norms)[:, None])
    constant = np.full((len(clipped), 1), _UNIT, dtype=np.int64)
    return Digits(sketches=np.hstack([clipped, constant]), classes=found.target.astype(np.int64))


def _norm_above(row: list[int]) -> int:
    squares = sum(value * value for value in row)
    return math.isqrt(squares - 1) + 1 if squares else 0


@lru_cache(maxsize=1)
def prototypes() -> Any:
    """The model without an adapter, 10 by 17: how near a sketch is to each class's mean."""
    import numpy as np

    known = digits()
    rows = []
    for digit in range(_CLASSES):
        mine = known.sketches[known.public][known.classes[known.public] == digit]
        total, count = mine[:, :16].sum(axis=0), len(mine)
        # 4 <c, x> - 2 <c, c>, c and x in units: the least squared distance is the greatest score.
        slope = 4 * total * _ONE // (count * _UNIT)
        offset = -2 * int((total**2).sum()) * _ONE // (count * _UNIT) ** 2
        rows.append(np.append(slope, offset))
    return np.stack(rows)


def scores(weights: Any, sketches: Any) -> Any:
    """How much speaks for each class, images by 10, with 16 bits behind the point."""
    return sketches @ weights.T // _UNIT


@lru_cache(maxsize=1)
def tuned() -> tuple[Any, Any]:
    """The adapter: A, rank by 17, and B, 10 by rank; their product is added to the prototypes."""
    import numpy as np

    known, base, rng = digits(), prototypes(), random_of("digits/train", 0)
    sketches, classes = known.sketches[known.private], known.classes[known.private]
    a = np.array([[rng.randrange(-_ONE // 2, _ONE // 2 + 1) for _ in range(17)]
                  for _ in range(RANK)])  # fmt: skip
    b = np.zeros((_CLASSES, RANK), dtype=np.int64)
    chosen_below, due = _threshold(RATE), _expected(RATE, len(classes))
    deviation = int(NOISE_MULTIPLIER) * _CLIP
    of_a, of_b = np.zeros_like(a), np.zeros_like(b)
    for step in range(STEPS):
        taken = [at for at in range(len(classes)) if rng.getrandbits(64) < chosen_below]
        gradient = _clipped_sum(base, a, b, sketches[taken], classes[taken])
        noise = np.array([discrete_gaussian(rng, deviation) for _ in range(len(gradient))])
        moved = (gradient + noise) // due
        b -= moved[: b.size].reshape(b.shape)
        a -= moved[b.size :].reshape(a.shape)
        if step >= STEPS - AVERAGED:
            of_a += a
            of_b += b
    return of_a // AVERAGED, of_b // AVERAGED


def _threshold(rate: str) -> int:
    exact = Decimal(rate) * (1 << 64)
    return int(exact)


def _expected(rate: str, images: int) -> int:
    return int(Decimal(rate) * images)


def _clipped_sum(base: Any, a: Any, b: Any, sketches: Any, classes: Any) -> Any:
    """The sum of the images' gradients, B's and then A's, each of norm at most the clip."""
    import numpy as np

    inner = sketches @ a.T // _UNIT  # images by rank
    found = scores(base, sketches) + (inner @ b.T // _ONE)
    wrong = softmax(found)
    wrong[np.arange(len(classes)), classes] -= _ONE
    back = wrong @ b // _ONE  # images by rank
    of_b = wrong[:, :, None] * inner[:, None, :] // _ONE
    of_a = back[:, :, None] * sketches[:, None, :] // _UNIT
    whole = np.concatenate([of_b.reshape(len(classes), -1), of_a.reshape(len(classes), -1)], axis=1)
    norms = np.array([max(_CLIP, _norm_above(row)) for row in whole.tolist()], dtype=np.int64)
    return (np.sign(whole) * (np.abs(whole) * _CLIP // norms[:, None])).sum(axis=0)


def softmax(found: Any) -> Any:
    """Shares of the classes, of 2^16, rounded down."""
    import numpy as np

    below = (found.max(axis=1, keepdims=True) - found) * 64 // _ONE
    powers = _powers()[np.minimum(below, len(_powers()) - 1)]
    return powers * _ONE // powers.sum(axis=1, keepdims=True)


@lru_cache(maxsize=1)
def _powers() -> Any:
    """e^(-i/64) of 2^32, down to nothing; Decimal rounds its exponentials correctly."""
    import numpy as np

    with localcontext() as context:
        context.prec = 30
        values = [int((-Decimal(i) / 64).exp() * (1 << 32)) for i in range(64 * 23)]
    return np.array(values, dtype=np.int64)


def discrete_gaussian(rng: random.Random, deviation: int) -> int:
    """An integer x with probability proportional to e^(-x^2 / (2 deviation^2)), exactly."""
    scale = deviation + 1
    while True:
        found = _laplace(rng, scale)
        # The rejection of Canonne, Kamath and Steinke, Algorithm 3, with sigma^2 = deviation^2.
        gap = abs(found) * scale - deviation * deviation
        if _happens(rng, gap * gap, 2 * (deviation * scale) ** 2):
            return found


def _laplace(rng: random.Random, scale: int) -> int:
    """An integer x with probability proportional to e^(-|x| / scale)."""
    while True:
        below = rng.randrange(scale)
        if not _happens(rng, below, scale):
            continue
        whole = 0
        while _happens(rng, 1, 1):
            whole += 1
        size, negative = below + scale * whole, rng.getrandbits(1)
        if size or not negative:
            return -size if negative else size


def _happens(rng: random.Random, above: int, below: int) -> bool:
    """True with probability e^(-above / below), exactly, for any quotient of at least 0."""
    while above > below:
        if not _happens(rng, 1, 1):
            return False
        above -= below
    trials = 1
    while rng.randrange(below * trials) < above:
        trials += 1
    return trials % 2 == 1


def write_adapter(folder: Path) -> Path:
    """The adapter in a folder; its weights are exact in single precision."""
    import numpy as np

    a, b = tuned()
    weights = {
        f"base_model.model.scores.{side}.weight": (matrix / _ONE).astype(np.float32)
        for side, matrix in (("lora_A", a), ("lora_B", b))
    }
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["scores"]}
    return write_folder(folder, config, weights)


def write_folder(folder: Path, config: Mapping[str, Any], weights: Mapping[str, Any]) -> Path:
    """A new folder as PEFT writes one.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError:
        raise MissingMatplotlib from None
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(config))
    save_file(dict(weights), folder / "adapter_model.safetensors")
    return folder


def read_adapter(folder: Path) -> Any:
    """What the adapter of a folder adds to the scores: 10 by 17."""
    import numpy as np
    from safetensors.numpy import load_file

    weights = load_file(folder / "adapter_model.safetensors")
    a, b = (
        np.rint(weights[f"base_model.model.scores.{side}.weight"].astype(np.float64) * _ONE)
        .astype(np.int64)
        for side in ("lora_A", "lora_B")
    )  # fmt: skip
    return b @ a // _ONE
