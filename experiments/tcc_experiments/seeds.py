"""Seeds, all derived from names and numbers: every run of every experiment can be made again."""

from __future__ import annotations

import random

from blake3 import blake3


def seed_of(name: str, *numbers: int) -> bytes:
    """The 32 bytes of the run `numbers` of an experiment."""
    return blake3(f"tcc.experiments.v1/{name}/{'/'.join(map(str, numbers))}".encode()).digest()


def random_of(name: str, *numbers: int) -> random.Random:
    """A generator for the shape and the costs of a graph."""
    return random.Random(seed_of(name, *numbers))
