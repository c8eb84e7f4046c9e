"""What tests of batches in shards share: requests, folders and their bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcc_runtime.terms.settings import Settings


def settings(count: int, first: int = 1, **more: Any) -> list[Settings]:
    return [
        Settings(seed=number.to_bytes(32, "big"), **more) for number in range(first, first + count)
    ]


def lines(path: Path, asked: Sequence[Settings]) -> Path:
    path.write_text(
        "".join(json.dumps({"seed": each.seed.hex(), "top": each.top}) + "\n" for each in asked)
    )
    return path


def parts(folder: Path) -> dict[str, bytes]:
    """Everything in the folder of a batch by its name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
