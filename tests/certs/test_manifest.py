"""The manifest and the set of columns: what is there, of which type, in which range."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.artifact import read_artifact, read_manifest
from tcc_certs.formats.codec import blake
from tcc_certs.formats.container import read_container, write_container
from tcc_certs.kernel import check
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example, example_core
from tests.oracle.network import build_relaxed

M = "manifest"


@pytest.mark.parametrize(
    ("path", "value", "due"),
    [
        (("schema",), "tcc.artifact/1", ("D102", "manifest.schema")),
        (("schema",), "tcc.core/2", ("D102", "manifest.schema")),
        (("schema",), 2, ("D102", "manifest.schema")),
        (("format",), "tcca", ("M101", M)),
        (("version",), [1, 0], ("M101", M)),
        (("critical",), "", ("M101", "manifest.critical")),
        (("critical",), [1], ("M101", "manifest.critical")),
        (("critical",), {}, ("M101", "manifest.critical")),
        (("critical",), ["zzz"], ("D101", "manifest.critical")),
        (("counts",), "upper", ("M102", "manifest.counts")),
        (("grammar",), "vec", ("M101", "manifest.grammar")),
        (("grammar",), {"name": "vec"}, ("M101", "manifest.grammar")),
        (("grammar", "name"), 1, ("M101", "manifest: name")),
        (("options", "more"), 1, ("M101", "manifest.options")),
        (("options", "round_counts"), 5, ("M101", "manifest.options")),
        (("options", "beta"), 1, ("M101", "manifest: beta")),
        (("options", "beta"), "-1", ("M102", "manifest.options.beta")),
        (("options", "beta"), "1.0", ("M102", "manifest.options.beta")),
        (("options", "tilt"), -1, ("M102", "manifest: tilt")),
        (("options", "tilt"), 65, ("M102", "manifest: tilt")),
        (("options", "tilt"), True, ("M101", "manifest: tilt")),
        (("options", "fraction_bits"), 65, ("M102", "manifest: fraction_bits")),
        (("states",), 0, ("M102", "manifest: states")),
        (("states",), (1 << 32) + 1, ("M102", "manifest: states")),
        (("edges",), -1, ("M102", "manifest: edges")),
        (("calls",), -1, ("M102", "manifest: calls")),
        (("states",), "5", ("M101", "manifest: states")),
        (("root",), "zz", ("M101", "manifest.root")),
        (("root",), 5, ("M101", "manifest.root")),
        (("root",), "A" * 64, ("M101", "manifest.root")),
        (("cost_max",), 1.5, ("B103", M)),
        (("cost_max",), "12", ("M102", "manifest.cost_max")),
        (("leaf_policy", "name"), "tcc.other", ("C701", "manifest.leaf_policy.name")),
        (("leaf_policy", "version"), 2, ("C701", "manifest.leaf_policy.version")),
        (("leaf_policy", "version"), True, ("C701", "manifest.leaf_policy.version")),
        (("leaf_policy", "root"), [], ("M101", "manifest.leaf_policy.root")),
        (("relaxed",), [0], ("M101", M)),
        (("zzz",), 1, ("M101", M)),
        (("grammar", "name"), "a b", ("M102", "manifest.grammar.name")),
        (("grammar", "name"), "a\nVALID", ("M102", "manifest.grammar.name")),
        (("grammar", "version"), "1\nVALID", ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "1\x1b[2J", ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "1\x7f", ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "1\x9b", ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "1\u202e", ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "1\u2028", ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "1" * 1025, ("M102", "manifest.grammar.version")),
        (("grammar", "version"), "é" * 513, ("M102", "manifest.grammar.version")),
    ],
)  # fmt: skip
def test_refuses_a_member(path: tuple[str, ...], value: Any, due: tuple[str, str]) -> None:
    assert refusal(Forge(example()).member(*path, value=value)) == due


@pytest.mark.parametrize("value", [[], "columns", None])
def test_refuses_columns_that_are_no_object(value: Any) -> None:
    forge = Forge(example()).member("columns", value=value)
    code = "B103" if value is None else "M101"
    assert refusal(forge.seal(digests=False))[0] == code


@pytest.mark.parametrize("value", ["00", 7, "G" * 64])
def test_refuses_a_digest_that_is_none(value: Any) -> None:
    forge = Forge(example()).member("columns", "core", value=value)
    assert refusal(forge.seal(digests=False)) == ("M101", "manifest.columns.core")


def test_the_bounds_of_options_are_legal() -> None:
    for name in ("tilt", "fraction_bits"):
        for value in (0, 64):
            forge = Forge(example()).member("options", name, value=value)
            assert getattr(read_artifact(forge.seal()).manifest, name) == value
    forge = Forge(example()).member("options", "beta", value="0")
    assert read_artifact(forge.seal()).manifest.beta == (0, 0)


def test_the_greatest_sizes_are_legal_in_a_manifest() -> None:
    forge = Forge(example()).member("edges", value=1 << 32)
    assert refusal(forge) == ("M202", "header.edge_call.shape")
    forge = Forge(example()).member("states", value=1)
    assert refusal(forge) == ("M202", "header.accept.shape")


def test_a_manifest_that_is_no_object_is_refused() -> None:
    with pytest.raises(Rejected, match="M101 at manifest:"):
        read_manifest(b"[]")


def test_columns_and_their_names_agree() -> None:
    forge = Forge(example())
    forge.manifest["columns"]["more"] = forge.manifest["columns"]["core"]
    assert refusal(forge.seal(digests=False)) == ("M201", "manifest.columns")
    forge = Forge(example())
    forge.columns["more"] = ["U8", (1,), b"\0"]
    assert refusal(forge) == ("M201", "header")
    forge = Forge(example())
    del forge.columns["plans"]
    assert refusal(forge) == ("M201", "header")


def test_types_shapes_and_digests_are_held_to() -> None:
    forge = Forge(example())
    forge.columns["rank"][0] = "U8"
    forge.columns["rank"][2] = bytes(5)
    assert refusal(forge) == ("M202", "header.rank.dtype")
    forge = Forge(example())
    forge.columns["plans"][1] = (5,)
    assert refusal(forge) == ("M202", "header.plans.shape")
    forge = Forge(example())
    raw = forge.columns["core"][2]
    forge.columns["core"][2] = raw[:-1] + b" "
    assert refusal(forge.seal(digests=False)) == ("M203", "manifest.columns.core")
    with pytest.raises(Rejected) as caught:
        check(forge.seal(digests=False))
    # Both digests as they stand in the manifest, in hex.
    assert caught.value.expected == forge.manifest["columns"]["core"]
    assert caught.value.found == blake(forge.columns["core"][2]).hex()


def test_relaxed_statements_are_a_list_of_numbers() -> None:
    data = build_relaxed(example_core(), (1,), 4)
    for value in ({"limits": [1]}, 1, "1"):
        assert refusal(Forge(data).member("relaxed", value=value))[0] == "M101"
    forge = Forge(data).member("relaxed", value=[1 << 32])
    assert refusal(forge) == ("M101", "manifest.relaxed")


def test_a_manifest_without_a_schema_is_of_another_version() -> None:
    forge = Forge(example())
    del forge.manifest["schema"]
    assert refusal(forge) == ("D102", "manifest.schema")


def test_no_manifest_is_no_artifact() -> None:
    tensors = read_container(example())
    del tensors["manifest"]
    with pytest.raises(Rejected, match="M201 at header: expected a manifest"):
        read_artifact(write_container(tensors))
