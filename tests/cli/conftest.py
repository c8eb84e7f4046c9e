"""Running the command line in this process: arguments in, exit code and both streams out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tcc.main import main
from tcc_runtime import workers
from tcc_runtime.workers import number_of
from tests.cli.documents import check_printed

_VERDICT = re.compile(r'^([^:\n]+: )?VALID\b|"verdict": ?"VALID"', re.MULTILINE)
GRAMMARS = Path(__file__).parents[2] / "grammars"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


Tcc = Callable[..., Ended]


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of these tests starts one process unless it gives a number: starting takes long."""
    monkeypatch.setattr(workers, "number_of", lambda n: number_of(1 if n is None else n))


@pytest.fixture
def tcc(capfd: pytest.CaptureFixture[str]) -> Tcc:
    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(exit_.value.code, int)
        check_printed([str(argument) for argument in arguments], out)
        # No command that fails gives the verdict VALID; a text that it quotes may have the word.
        assert exit_.value.code == 0 or _VERDICT.search(out) is None, out
        return Ended(code=exit_.value.code, out=out, err=err)

    return run


@pytest.fixture(scope="session")
def grammar() -> Path:
    return GRAMMARS / "support_refund.tcg"


@pytest.fixture(scope="session")
def compiled(grammar: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The artifact of the grammar, compiled once for all tests."""
    path = tmp_path_factory.mktemp("compiled") / "support.tcca"
    with pytest.raises(SystemExit) as exit_:
        main(["compile", str(grammar), "-o", str(path), "--output-format", "github"])
    assert exit_.value.code == 0
    return path.read_bytes()


@pytest.fixture
def artifact(compiled: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "support.tcca"
    path.write_bytes(compiled)
    return path


@pytest.fixture
def ledger(tcc: Tcc, artifact: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run.ledger"
    assert tcc("run", artifact, "--seed", "11" * 32, "--top", 2, "--ledger", path).code == 0
    return path
