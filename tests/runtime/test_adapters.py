"""Adapters: what is one, what makes another, and everything that is refused."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from safetensors.numpy import load_file, save_file

from tcc_certs.errors import Rejected
from tcc_runtime.adapters import registry as folders
from tcc_runtime.adapters.adapter import adapters_of
from tcc_runtime.adapters.registry import CONFIG, WEIGHTS, folder_id, read_registry
from tests.runtime import adapters as peft


def refused(folder: Path) -> str:
    with pytest.raises(Rejected) as refusal:
        folder_id(folder)
    return str(refusal.value.code)


def by_the_text(folder: Path) -> str:
    """The identity as docs/adapters.md has it, from what safetensors loads."""

    def number(value: int) -> bytes:
        return value.to_bytes(8, "little")

    def sized(data: bytes) -> bytes:
        return number(len(data)) + data

    config = json.loads((folder / CONFIG).read_text())
    config["target_modules"].sort()
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    hasher = blake3(derive_key_context="tcc.adapter/1.0 adapter id")
    hasher.update(sized(text.encode()))
    loaded = load_file(folder / WEIGHTS)
    hasher.update(number(len(loaded)))
    for name in sorted(loaded):
        array = loaded[name]
        hasher.update(sized(name.encode()) + sized({"float16": b"F16"}[str(array.dtype)]))
        hasher.update(number(array.ndim) + b"".join(map(number, array.shape)))
        hasher.update(blake3(array.tobytes()).digest())
    return hasher.hexdigest()


def test_the_identity_is_the_one_of_the_text(tmp_path):
    made = peft.folder(tmp_path / "a")
    assert folder_id(made) == by_the_text(made)


def test_the_order_in_the_files_and_what_a_writer_adds_are_no_part_of_it(tmp_path):
    first = folder_id(peft.folder(tmp_path / "a"))
    rng = random.Random(1)
    for round_ in range(10):
        config = list(peft.CONFIG.items())
        rng.shuffle(config)
        config = {**dict(config), "target_modules": ["v_proj", "q_proj"]}
        weights = list(peft.tensors().items())
        rng.shuffle(weights)
        made = peft.folder(tmp_path / str(round_), config, dict(weights))
        save_file(dict(weights), made / WEIGHTS, metadata={"format": "pt", "by": str(round_)})
        (made / "README.md").write_text("a card")
        assert folder_id(made) == first


CHANGES: Mapping[str, Any] = {
    "scale": {"lora_alpha": 16},
    "dropout": {"lora_dropout": 0.1},
    "bias": {"bias": "all"},
    "one member more": {"use_rslora": True},
    "base": {"base_model_name_or_path": "models/other"},
}


@pytest.mark.parametrize("how", CHANGES)
def test_another_configuration_is_another_adapter(how, tmp_path):
    first = folder_id(peft.folder(tmp_path / "a"))
    made = peft.folder(tmp_path / "b", {**peft.CONFIG, **CHANGES[how]})
    assert folder_id(made) not in (first, "")


def test_any_bit_of_any_tensor_its_name_type_and_shape_make_another_adapter(tmp_path):
    found = {folder_id(peft.folder(tmp_path / "a"))}
    weights = peft.tensors()
    name = sorted(weights)[0]
    for at in range(16):
        changed = {key: value.copy() for key, value in weights.items()}
        flat = changed[name].view(np.uint16).reshape(-1)
        flat[at] ^= 1 << at
        found.add(folder_id(peft.folder(tmp_path / "b", weights=changed)))
    # The same bytes, of another type.
    other = {**weights, name: weights[name].view(np.uint16)}
    found.add(folder_id(peft.folder(tmp_path / "b", weights=other)))
    more = {**weights, "extra": np.zeros(0, np.float32)}
    found.add(folder_id(peft.folder(tmp_path / "b", weights=more)))
    more = {**weights, "extra": np.zeros((0, 1), np.float32)}
    found.add(folder_id(peft.folder(tmp_path / "b", weights=more)))
    assert len(found) == 20


def test_what_is_missing_or_no_file_is_refused(tmp_path):
    assert refused(tmp_path / "none") == "A103"
    for name in (CONFIG, WEIGHTS):
        made = peft.folder(tmp_path / name)
        (made / name).unlink()
        assert refused(made) == "A103"
        (made / name).mkdir()
        assert refused(made) == "A103"
        (made / name).rmdir()
        os.mkfifo(made / name)  # nobody writes to it: it would be waited for
        assert refused(made) == "A103"


def test_a_file_cut_anywhere_or_with_any_byte_turned_is_refused_or_another_adapter(tmp_path):
    made = peft.folder(tmp_path / "a")
    first = folder_id(made)
    whole = (made / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = random.Random(3)
    for size in [0, 1, 7, 8, 9, header - 1, header, len(whole) - 1, *rng.sample(range(header), 40)]:
        (made / WEIGHTS).write_bytes(whole[:size])
        assert refused(made) == "A104", size
    for at in [*range(8), *rng.sample(range(8, len(whole)), 200)]:
        turned = bytearray(whole)
        turned[at] ^= 1 << rng.randrange(8)
        (made / WEIGHTS).write_bytes(turned)
        try:
            assert folder_id(made) != first, at
        except Rejected as refusal:
            assert refusal.code in ("A104", "A105")


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"7", b"\xff", b"{}", b"[" * 100_000,
        b'{"peft_type":"LORA","peft_type":"LORA","r":4}',
        b'{"peft_type":"LORA","r":4,"lora_alpha":NaN}',
        b'{"r":' + b"9" * 5000 + b"}",
        b'{"peft_type":7}',
        b'{"peft_type":"LORA","lora_alpha":8}',
        b'{"peft_type":"LORA","r":0,"lora_alpha":8}',
        b'{"peft_type":"LORA","r":true,"lora_alpha":8}',
        b'{"peft_type":"LORA","r":4,"lora_alpha":true}',
        b'{"peft_type":"LORA","r":4,"lora_alpha":-1}',
        b'{"x":"' + b"a" * (1 << 20) + b'"}',
    ],
)  # fmt: skip
def test_a_configuration_that_is_none_is_refused(text, tmp_path):
    made = peft.folder(tmp_path / "a")
    (made / CONFIG).write_bytes(text)
    assert refused(made) == "A104"


@pytest.mark.parametrize(
    ("config", "weights"),
    [
        ({"r": 8}, peft.tensors()),
        ({}, peft.tensors(rank=2)),
        ({"target_modules": ["q_proj"]}, peft.tensors()),
        ({"target_modules": ["q_proj", "v_proj", "o_proj"]}, peft.tensors()),
        ({"target_modules": []}, peft.tensors()),
        ({}, {name: value for name, value in peft.tensors().items() if "lora_A" in name}),
        ({}, {"other": np.zeros(3, np.float32)}),
        ({}, {}),
    ],
)
def test_a_lora_whose_parts_do_not_go_together_is_refused(config, weights, tmp_path):
    assert refused(peft.folder(tmp_path / "a", {**peft.CONFIG, **config}, weights)) == "A105"


def test_ranks_by_pattern_targets_by_expression_and_other_methods_are_taken(tmp_path):
    other = {**peft.tensors(), **peft.tensors(rank=8, layers=1)}
    patterned = {**peft.CONFIG, "rank_pattern": {"layers.0": 8}}
    made = [
        peft.folder(tmp_path / "a", patterned, other),
        peft.folder(tmp_path / "b", {**peft.CONFIG, "target_modules": "all-linear"}),
        peft.folder(
            tmp_path / "c", {"peft_type": "IA3"}, {"x.ia3_l": np.zeros((1, 4), np.float32)}
        ),
    ]
    assert len({folder_id(one) for one in made}) == 3


def test_a_header_that_is_longer_than_any_is_refused_at_once(tmp_path):
    made = peft.folder(tmp_path / "a")
    (made / WEIGHTS).write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    assert refused(made) == "A104"


# The registry.


def two(tmp_path: Path) -> dict[str, dict[str, str]]:
    other = {**peft.CONFIG, "r": 2}
    return {
        "b-lora": peft.entry(folder_id(peft.folder(tmp_path / "b-lora"))),
        "a-lora": peft.entry(
            folder_id(peft.folder(tmp_path / "deep" / "a", other, peft.tensors(rank=2))),
            folder="deep/a", tier="large", eps_train="6", delta_train="0",
        ),
    }  # fmt: skip


def test_a_registry_is_read_in_order_of_names(tmp_path):
    entries = two(tmp_path)
    found = read_registry(peft.registry(tmp_path / "adapters.toml", entries))
    assert [(item.name, item.tier, item.eps_train) for item in found] == [
        ("a-lora", "large", "6"), ("b-lora", "small", "2.5"),
    ]  # fmt: skip


def registry_refusal(path: Path) -> str:
    with pytest.raises(Rejected) as refusal:
        read_registry(path)
    return str(refusal.value.code)


def test_a_folder_that_is_altered_gone_or_another_is_refused(tmp_path):
    entries = two(tmp_path)
    path = peft.registry(tmp_path / "adapters.toml", entries)
    config = tmp_path / "b-lora" / CONFIG
    kept = config.read_text()
    config.write_text(kept.replace('"lora_alpha": 8', '"lora_alpha": 9'))
    assert registry_refusal(path) == "A106"
    config.unlink()
    assert registry_refusal(path) == "A103"
    config.write_text(kept)
    assert len(read_registry(path)) == 2
    peft.registry(path, {"b-lora": {**entries["b-lora"], "folder": "deep/a"}})
    assert registry_refusal(path) == "A106"


@pytest.mark.parametrize(
    "members",
    [
        {"id": "00"}, {"id": "G" * 64}, {"eps_train": "-1"}, {"eps_train": "1e3"},
        {"delta_train": "1.5"}, {"delta_train": "2"}, {"delta_train": ""}, {"tier": ""},
        {"tier": "a\\u0007"}, {"dp_cert_id": "x" * 300}, {"more": "1"}, {"folder": ""},
    ],
)  # fmt: skip
def test_an_entry_that_is_none_is_refused(members, tmp_path):
    entries = two(tmp_path)
    path = tmp_path / "adapters.toml"
    peft.registry(path, {"b-lora": {**entries["b-lora"], **members}})
    assert registry_refusal(path) == "A101"


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\xff", b"format = 7", b'format = "tcc.adapters/2.0"', b"[" * 50_000,
        b'format = "tcc.adapters/1.0"\nadapters = 7', b'format = "tcc.adapters/1.0"\nmore = 1',
        b'format = "tcc.adapters/1.0"\n[adapters]\na = 1',
        b'format = "tcc.adapters/1.0"\n[adapters.a]\nid = "x"', b"#" * (1 << 20) + b"#",
    ],
)  # fmt: skip
def test_a_file_that_is_no_registry_is_refused(text, tmp_path):
    path = tmp_path / "adapters.toml"
    path.write_bytes(text)
    assert registry_refusal(path) == "A101"


def test_a_registry_without_entries_has_none(tmp_path):
    assert read_registry(peft.registry(tmp_path / "adapters.toml", {})) == ()


def test_a_name_that_a_grammar_has_and_the_registry_not_is_refused(tmp_path):
    import tcc

    text = """grammar g version "1"

tool a { cost 1 .. 2 model m { adapter "b-lora" } model n { adapter "c-lora" } }

plan = a
"""
    core = tcc.compile_text(text).core
    known = read_registry(peft.registry(tmp_path / "adapters.toml", two(tmp_path)))
    with pytest.raises(Rejected) as refusal:
        adapters_of(core, known)
    assert (refusal.value.code, refusal.value.path) == ("A102", "a, model n")
    core = tcc.compile_text(text.replace("c-lora", "b-lora")).core
    assert [item.name for item in adapters_of(core, known)] == ["b-lora"]


@pytest.mark.parametrize("offsets", [5, "ab", {"a": 1}, [0], [0, 0, 0], [0, True]])
def test_a_file_that_is_swapped_between_both_readers_is_refused(offsets, tmp_path, monkeypatch):
    """safetensors opens the path again: what it takes is not what is read here."""
    made = peft.folder(tmp_path / "a", {"peft_type": "X"}, {"a": np.zeros(1, np.uint8)})
    good = (made / WEIGHTS).read_bytes()
    header = json.dumps({"a": {"dtype": "U8", "shape": [1], "data_offsets": offsets}}).encode()
    (made / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + b"\1")
    take = folders._known_to_safetensors

    def swapped(path: Path) -> Any:
        (tmp_path / "new").write_bytes(good)
        (tmp_path / "new").replace(path)
        return take(path)

    monkeypatch.setattr(folders, "_known_to_safetensors", swapped)
    assert refused(made) == "A104"


@pytest.mark.parametrize("how", ["swapped", "written to", "gone"])
def test_a_file_that_is_changed_while_it_is_read_is_refused(how, tmp_path, monkeypatch):
    made = peft.folder(tmp_path / "a")
    path, take = made / WEIGHTS, folders._known_to_safetensors

    def changed(path: Path) -> Any:
        found, data = take(path), path.read_bytes()
        if how == "swapped":
            (tmp_path / "new").write_bytes(data)
            (tmp_path / "new").replace(path)
        elif how == "written to":
            path.write_bytes(data[:-1] + b"\xff" + b"more")
        else:
            path.unlink()
        return found

    monkeypatch.setattr(folders, "_known_to_safetensors", changed)
    assert refused(made) == "A104"
    assert path.exists() == (how != "gone")


@pytest.mark.parametrize("side", ["lora_A", "lora_B"])
def test_a_module_with_two_matrices_of_a_side_is_refused(side, tmp_path):
    """The second one's rank would be looked at by nobody."""
    weights = peft.tensors()
    name = f"base_model.model.layers.0.q_proj.{side}"
    weights[f"{name}.default.weight"] = np.zeros((9, 9), np.float16)
    assert refused(peft.folder(tmp_path / "a", weights=weights)) == "A105"


@pytest.mark.parametrize(
    "text",
    [
        "a." * 100_000 + "a = 1",
        "[" + "a." * 100_000 + "a]",
        "\n".join("a." * 65 + f"b{i} = 1" for i in range(7_000)),
        "adapters = [0x" + "f" * 6_000 + "]",
        "a = " + "{a = " * 100_000,
    ],
    ids=["a long key", "a long head", "many keys", "an endless integer", "deep"],
)
def test_a_registry_that_would_take_for_ever_is_refused_at_once(text, tmp_path):
    path = tmp_path / "adapters.toml"
    path.write_text('format = "tcc.adapters/1.0"\n' + text + "\n")
    start = time.process_time()
    with pytest.raises(Rejected) as refusal:
        read_registry(path)
    assert str(refusal.value.code) == "A101"
    assert time.process_time() - start < 2


def test_a_registry_that_is_no_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(Rejected) as refusal:
            read_registry(path)
        assert (refusal.value.code, refusal.value.expected) == ("A101", "a regular file")
