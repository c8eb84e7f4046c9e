"""The compiler against brute force on random cores: operators nested freely, rules recursive
through `&` and `-`, and cores without a limit on depth, whose finiteness has to be decided.
"""

from __future__ import annotations

import random

import pytest

from tcc_certs.formats.codec import decode, encode
from tcc_certs.kernel import check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.oracle.build import build
from tests.oracle.cores import depth, random_core
from tests.oracle.plans import plans

_MOST_WORDS = 2000


def without_depth(data: bytes) -> bytes:
    """The core without its limits on depth."""
    value = dict(decode(data, "core"))
    value["statements"] = [one for one in value["statements"] if one.get("what") != "depth"]
    return encode(value)


def with_depth(data: bytes, most: int) -> bytes:
    """The core with one limit on depth."""
    value = dict(decode(without_depth(data), "core"))
    value["statements"] = [depth(most), *value["statements"]]
    return encode(value)


def compare_core(seed: int) -> None:
    rng = random.Random(seed)
    data, core = random_core(rng, rng.choice((2, 3, 4)))
    options = Options(beta=rng.choice(("0", "1", "0.5")), tilt=rng.choice((0, 3, 8)))
    result = compile_core(data, options)
    listed = plans(core, 4)
    if listed:
        assert result.artifact == build(data, listed, options.beta, options.tilt), data
    else:
        assert [d.code for d in result.diagnostics] == ["TCC402"], data


def compare_unbounded(seed: int) -> str:
    """A core without a limit on depth against itself with generous ones."""
    options = Options(max_states=20_000, purpose="run")
    data = without_depth(random_core(random.Random(seed), 3)[0])
    result = compile_core(data, options)
    code = result.diagnostics[0].code if result.diagnostics else "ok"
    if result.artifact is not None:
        checked = check(result.artifact)
        top = checked.automaton.rank[-1]
        bounded = check(compile_core(with_depth(data, top + 3), options).artifact or b"")
        assert bounded.file.manifest.root == checked.file.manifest.root, data
        if len(checked.core.calls) ** (top + 1) <= _MOST_WORDS:
            tilt = checked.file.manifest.tilt
            assert result.artifact == build(data, plans(checked.core, top + 1), tilt=tilt), data
    elif code == "TCC401":
        found = [compile_core(with_depth(data, most), options) for most in (20, 40)]
        if not any(d.code == "TCC403" for each in found for d in each.diagnostics):
            few, many = (check(each.artifact).plans[-1] if each.artifact else 0 for each in found)
            assert few < many, data
    elif code == "TCC402":
        found = [compile_core(with_depth(data, 9), options)]
        assert {d.code for each in found for d in each.diagnostics} <= {"TCC402", "TCC403"}, data
    return code


def test_random_cores_give_the_bytes_that_brute_force_gives() -> None:
    for seed in range(60):
        compare_core(seed)


def test_finiteness_without_a_limit_on_depth_is_what_depth_shows() -> None:
    codes = [compare_unbounded(seed) for seed in range(25)]
    assert {"ok", "TCC401", "TCC402"} <= set(codes)


@pytest.mark.campaign
def test_many_random_cores() -> None:
    for seed in range(10_000, 15_000):
        compare_core(seed)


@pytest.mark.campaign
def test_many_unbounded_cores() -> None:
    for seed in range(10_000, 11_000):
        compare_unbounded(seed)
