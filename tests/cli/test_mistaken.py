"""A file of another kind is called what it is, and nothing is made beside it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests import forking
from tests.cli.conftest import Ended, Tcc
from tests.forking import environment

ROOT = Path(__file__).parents[2]
SEED = "00" * 31 + "01"
SESSION = "expected the ledger of a session"
ARTIFACT = "g.tcca is an artifact, and no ledger: see `tcc check"


@pytest.fixture
def kinds(tcc, tmp_path: Path) -> dict[str, Path]:
    names = ("g.tcg", "g.tcca", "run", "session", "tools.py")
    found = {name.split(".")[-1].upper(): tmp_path / name for name in names}
    found["TCG"].write_text("""grammar g version "1"

tool a

plan = a
""")
    found["PY"].write_text("def a(): pass")
    assert tcc("compile", found["TCG"], "-o", found["TCCA"]).code == 0
    assert tcc("run", found["TCCA"], "--ledger", found["RUN"], "--seed", SEED).code == 0
    done = tcc("exec", found["TCCA"], "--tools", found["PY"], "--ledger", found["SESSION"])
    assert done.code == 0
    return found


def _ended(tcc: Tcc, words: list[object]) -> Ended:
    """How a command ended; one that speaks with a server has standard streams of its own."""
    if words[0] != "gate" and "--server" not in words:
        return tcc(*words)
    ended = forking.run([*map(str, words)], env=environment())
    return Ended(code=ended.returncode, out=ended.stdout, err=ended.stderr)


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ("gate TCCA --ledger RUN -- cat", 1, f"{SESSION}, found that of a run"),
        ("gate TCCA --ledger PY -- cat", 1, f"{SESSION}, found def a(): pass"),
        ("exec TCCA --tools PY --ledger RUN", 2, f"{SESSION}, found that of a run"),
        (f"run TCCA --ledger SESSION --resume --seed {SEED}", 2, "found that of a session"),
        ("session show RUN --artifact TCCA", 2, "run is no ledger of a session; see tcc validate"),
        ("session show TCCA --artifact TCCA", 2, ARTIFACT),
        ("validate TCCA --artifact TCCA", 2, ARTIFACT),
        ("validate TCG --artifact TCCA", 2, "g.tcg is a grammar, and no ledger"),
        ("validate SESSION --artifact RUN", 2, "run is a ledger, and no artifact: see"),
        ("validate RUN --artifact SESSION", 2, "session is a ledger, and no artifact"),
        ("check SESSION", 2, "session is a ledger, and no artifact"),
        ("run RUN", 2, "run is a ledger, and no artifact"),
        ("gate RUN --ledger NEW -- cat", 2, "run is a ledger, and no artifact"),
    ],
)  # fmt: skip
def test_what_was_given_is_called_what_it_is(tcc, kinds, told: str, code: int, said: str) -> None:
    before = {path: path.read_bytes() for path in kinds.values()}
    folder = kinds["TCG"].parent
    there = sorted(folder.iterdir())
    kinds["NEW"] = folder / "new"
    ended = _ended(tcc, [kinds.get(word, word) for word in told.split()])
    assert ended.code == code and said in ended.err
    assert sorted(folder.iterdir()) == there
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize(
    "told",
    [
        "exec TCCA",
        "exec TCCA --tools PY --deadline 0",
        "exec TCCA --tools PY --once nothing",
        "exec TCCA --tools PY --server a=/no/such/program",
        "gate TCCA -- /no/such/program",
        "gate TCCA -- cat",
    ],
)
@pytest.mark.sampled(3)
def test_a_start_that_was_refused_leaves_nothing(tcc, kinds, told: str) -> None:
    folder = kinds["TCG"].parent
    there = sorted(folder.iterdir())
    words: list[object] = [kinds.get(word, word) for word in told.split()]
    words[2:2] = ["--ledger", folder / "new"]
    assert _ended(tcc, words).code == 2
    assert sorted(folder.iterdir()) == there
    # What was there before stays: an empty file, a key, a session.
    key = folder / "new.key"
    key.write_text("ab" * 32 + "\n")
    (folder / "new").touch()
    assert _ended(tcc, words).code == 2
    assert (folder / "new").read_bytes() == b"" and key.read_text() == "ab" * 32 + "\n"
    for path, name in ((kinds["SESSION"], "new"), (folder / "session.key", "new.key")):
        (folder / name).write_bytes(path.read_bytes())
    assert _ended(tcc, words).code in (1, 2)
    # A gate keeps a session that has ended beside the one that it was to begin.
    kept = [path for path in folder.glob("new*") if path.suffix != ".key"]
    assert [path.read_bytes() for path in kept] == [kinds["SESSION"].read_bytes()]
    assert key.read_bytes() == (folder / "session.key").read_bytes()


@pytest.mark.parametrize(
    "told",
    ["cheapest TCCA -n 0", "sample TCCA -n 0", "enumerate TCCA --limit 0", "run TCCA --top 0"],
)
def test_a_count_of_nothing_is_bad_usage(tcc, kinds, told: str) -> None:
    ended = tcc(*[kinds.get(word, word) for word in told.split()])
    assert ended.code == 2 and "0 is not in the range x>=1" in ended.err


def test_every_hint_at_an_extra_is_right_for_an_installed_wheel() -> None:
    # `pip install 'tcc[mcp]'` adds the extra to the tcc that is installed, from wherever that is.
    # Nothing says that tcc itself can be had from an index by its name.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    hinted = set()
    for folder in ("docs", "cli", "runtime", "experiments", "compiler", "certs", "editors"):
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix in {".md", ".py"}:
                text = path.read_text("utf-8")
                told = set(re.findall(r"(?<![\w.])tcc\[([a-z]+)\]", text))
                assert told <= extras, path
                assert not re.search(r"\.\[[a-z]+\]'?`?\s+from a checkout", text), path
                assert not re.search(r"pip install '?tcc(?![\w\[-])", text), path
                hinted |= told
    assert hinted >= {"adapters", "dask", "experiments", "langgraph", "lsp", "mcp", "sign"}
