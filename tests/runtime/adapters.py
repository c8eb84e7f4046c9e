"""Folders as PEFT writes them, written by safetensors itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

CONFIG: Mapping[str, Any] = {
    "base_model_name_or_path": "models/tiny",
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "r": 4,
    "lora_alpha": 8,
    "lora_dropout": 0.05,
    "bias": "none",
    "inference_mode": True,
    "modules_to_save": None,
    "rank_pattern": {},
    "target_modules": ["q_proj", "v_proj"],
}


def tensors(rank: int = 4, layers: int = 2, modules: Sequence[str] = ("q_proj", "v_proj")) -> Any:
    """The matrices of a LoRA adapter, half precision."""
    rng = np.random.default_rng(7)
    return {
        f"base_model.model.layers.{layer}.{module}.{side}.weight": rng.standard_normal(
            shape
        ).astype(np.float16)
        for layer in range(layers)
        for module in modules
        for side, shape in (("lora_A", (rank, 16)), ("lora_B", (16, rank)))
    }


def folder(
    path: Path, config: Mapping[str, Any] = CONFIG, weights: Mapping[str, Any] | None = None
) -> Path:
    """An adapter's folder."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "adapter_config.json").write_text(json.dumps(config, indent=2))
    save_file(dict(tensors() if weights is None else weights), path / "adapter_model.safetensors")
    return path


def registry(path: Path, entries: Mapping[str, Mapping[str, str]]) -> Path:
    """A registry of these entries."""
    lines = ['format = "tcc.adapters/1.0"']
    for name, members in entries.items():
        lines += ["", f"[adapters.{name}]"]
        lines += [f'{member} = "{value}"' for member, value in members.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def entry(identity: str, **members: str) -> dict[str, str]:
    """An entry of a registry."""
    certified = {"tier": "small", "dp_cert_id": "cert-1", "eps_train": "2.5"}
    return {"id": identity, **certified, "delta_train": "0.000001", **members}
