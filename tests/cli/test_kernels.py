"""``tcc check --kernel``: two kernels, one answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tcc.main import cli
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


def answer(path: Path, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["check", str(path), "--json", *options])
    return done.exit_code, done.output


@pytest.mark.parametrize("broken", [False, True])
def test_both_kernels_give_one_document(tmp_path: Path, broken: bool) -> None:
    forge = Forge(example())
    if broken:
        forge.set("plans", -1, 7)
    path = tmp_path / "a.tcca"
    path.write_bytes(forge.seal())
    due = answer(path, "--kernel", "pure")
    assert due[0] == int(broken)
    assert answer(path, "--kernel", "fast") == due
    assert answer(path, "--kernel", "fast", "--core")[0] == due[0]
