"""The validator to be read agrees with the definition, and refuses every forgery in its scope."""

from __future__ import annotations

import ast
import contextlib
import io
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.container import write_container
from tcc_certs.kernel import check
from tcc_certs.replay import validate as definition
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tcc_runtime.artifact.load import load
from tests import forking
from tests.campaigns.blocks import cases
from tests.differential.test_ledgers import runtime_ledger, settings
from tests.forgery.artifacts import column_mutants, core_mutants, manifest_mutants
from tests.forgery.mutants import field_mutants, line_mutants
from tests.forgery.test_artifact_forgeries import kinds
from tests.forking import environment
from tests.oracle.build import build
from tests.oracle.cores import random_core
from tests.oracle.examples import example
from tests.oracle.plans import plans
from tests.oracle_ledger import artifacts
from tests.oracle_ledger.upper import drawn_upper
from tests.oracle_ledger.writer import chained, reference_ledger, reference_records
from tests.oracle_session.shapes import shape, shop
from tests.oracle_session.writer import sealed

TOP = Path(__file__).parents[2]
SCRIPT = TOP / "reference" / "validate.py"
GOLDEN = TOP / "tests" / "golden" / "ledgers"
sys.path.insert(0, str(SCRIPT.parent))
import validate as small  # noqa: E402

VALID, INVALID, OUT = 0, 1, 2


def said(tmp_path: Path, ledger: bytes, artifact: bytes) -> tuple[int, str]:
    """The exit code, and the line that is written."""
    (tmp_path / "l").write_bytes(ledger)
    (tmp_path / "a").write_bytes(artifact)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = small.main([str(tmp_path / "l"), str(tmp_path / "a")])
    return code, text.getvalue()


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The artifact of many ledgers is taken apart once."""

    def keep(data: bytes) -> None:
        kept = small.check_artifact(data)
        monkeypatch.setattr(small, "check_artifact", lambda _: kept)

    return keep


def raw(name: str, **told: Any) -> bytes:
    """The bytes of one of the artifacts of the ledger tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts, "check", lambda data: data)
        found: bytes = getattr(artifacts, name).__wrapped__(**told)
    return found


def test_it_has_at_most_440_lines_and_imports_the_standard_library_and_blake3() -> None:
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 440
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names - {"blake3"} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("ledger", "code"),
    [("exact-2.ndjson", VALID), ("rest-2.ndjson", VALID), ("forged", INVALID), ("none", OUT)],
)
def test_the_exit_code_is_0_valid_1_invalid_2_out_of_scope(
    ledger: str, code: int, tmp_path: Path
) -> None:
    file = GOLDEN / ledger
    if ledger == "forged":
        file = tmp_path / ledger
        file.write_bytes((GOLDEN / "rest-2.ndjson").read_bytes().replace(b"0.7254", b"0.7255"))
    paths = [str(file), str(GOLDEN / "exact-2.tcca")]
    ended = subprocess.run([sys.executable, str(SCRIPT), *paths], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (code, "")
    assert ended.stdout.split()[0] == ("VALID", "INVALID", "OUT")[code]


def honest(rng: random.Random) -> tuple[bytes, bytes, dict[str, Any]]:
    """A ledger of the runtime and its artifact, random in all that is in scope."""
    while True:
        core, read = random_core(rng)
        words = plans(read, 4)
        if 1 <= len(words) <= 200:
            break
    beta, rounded = rng.choice(["0", "0.5", "1", "3.25", "0.001"]), rng.random() < 0.25
    features = {"round_counts": rng.choice([1, 3, 40, 63])} if rounded else {}
    data = build(core, words, beta=beta, tilt=rng.choice([0, 1, 8, 16, 40, 64]), **features)
    told: dict[str, Any] = {"seed": rng.randbytes(32), "top": rng.choice([1, 2, 5, 1000])}
    told["race"] = rng.choice(["coupled", "rest"])
    told["mode"] = "surrogate" if rounded else rng.choice(["exact", "surrogate"])
    if told["mode"] == "surrogate":
        told["inflate"] = rng.choice(["1", "1.7", "3", "1.000001", "12345.678"])
    if rng.random() < 0.3:
        told["count_bits"] = rng.randint(1, 70)
    if rng.random() < 0.3:
        told["max_expansions"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        told |= {"raw_input_dependent": True}
    if rng.random() < 0.3:
        artifact, after, q = load(data), [], load(data).root
        while (edges := artifact.edges(q)) and rng.random() < 0.6:
            call, q = rng.choice(edges)
            after.append(artifact.texts[call])
        told["after"] = tuple(after)
    return runtime_ledger(load(data), **told), data, told


def test_honest_ledgers_of_random_grammars_and_seeds_are_valid(tmp_path: Path) -> None:
    rng = random.Random(23)
    claims, seen = set(), Counter[bytes]()
    for _ in range(120):
        ledger, data, told = honest(rng)
        code, text = said(tmp_path, ledger, data)
        due = definition(ledger, check(data))
        assert (
            (code, text.split()[1]) == (due.verdict, due.claim_type) == (VALID, due.claim_type)
        ), told
        claims.add(due.claim_type)
        kinds = (b'"kind":"rest"', b'"kind":"draw"', b'"phantom"', b'"CountFail"', b'"Nub"')
        seen.update(kind for kind in kinds if kind in ledger)
    assert claims == {"RunWiseExact", "RunWiseSurrogate", "NoCert"}
    assert len(seen) == 5 and min(seen.values()) >= 5


def test_no_valid_ledger_is_called_invalid(tmp_path: Path) -> None:
    """Of any mode, race and artifact: a form that the program does not read is out of scope."""
    rng, codes = random.Random(24), Counter[int]()
    for at in range(80):
        data = raw("small" if at % 4 else "tiny") if at % 2 else drawn_upper(rng).data
        checked, loaded = check(data), load(data)
        for _ in range(3):
            told = settings(rng, checked)
            code, text = said(tmp_path, runtime_ledger(loaded, **told), data)
            assert code in (VALID, OUT), (told, text)
            assert "Error" not in text, (told, text)
            codes[code] += 1
    assert codes[VALID] >= 10 and codes[OUT] >= 100


def tcc(folder: Path, *arguments: str) -> None:
    forking.run(arguments, env=environment(), cwd=folder).check_returncode()


def test_the_ledgers_of_the_command_line_are_read(tmp_path: Path) -> None:
    """The default run, Surrogate with bounds, an artifact with rounded counts."""
    grammar = str(TOP / "grammars" / "coding_agent.tcg")
    tcc(tmp_path, "compile", grammar, "--beta", "8", "-o", "exact.tcca")
    tcc(tmp_path, "compile", grammar, "--beta", "8", "--round-counts", "20", "-o", "rounded.tcca")
    for name, options, claim in (
        ("exact", ["--top", "3", "--seed", "0" * 63 + "1"], "RunWiseExact"),
        ("exact", ["--mode", "surrogate", "--inflate", "2"], "RunWiseSurrogate"),
        ("exact", ["--race", "coupled", "--inflate", "2"], "RunWiseSurrogate"),
        ("rounded", [], "RunWiseSurrogate"),
    ):
        tcc(tmp_path, "run", f"{name}.tcca", *options, "--ledger", "l", "--overwrite")
        files = [(tmp_path / file).read_bytes() for file in ("l", f"{name}.tcca")]
        assert said(tmp_path, *files) == (VALID, f"VALID {claim}\n")


def test_a_ledger_with_a_cut_is_out_of_scope_and_not_invalid(tmp_path: Path) -> None:
    grammar = str(TOP / "grammars" / "support_refund.tcg")
    tcc(tmp_path, "compile", grammar, "-o", "a.tcca")
    data = (tmp_path / "a.tcca").read_bytes()
    for more in ([], ["--mode", "surrogate", "--inflate", "2"], ["--race", "coupled"]):
        tcc(tmp_path, "run", "a.tcca", "--truncate", "2", *more, "--ledger", "l", "--overwrite")
        assert said(tmp_path, (tmp_path / "l").read_bytes(), data) == (OUT, "OUT OF SCOPE a cut\n")


def test_the_ledger_of_a_session_gets_an_answer_of_its_own(tmp_path: Path) -> None:
    data = (GOLDEN / "exact-2.tcca").read_bytes()
    for artifact in (data, bytes(write_container(shop().file.columns))):
        code, text = said(tmp_path, sealed(shape("hidden")), artifact)
        assert code == OUT and "the ledger of a session" in text and "tcc-certs" in text


@pytest.mark.parametrize(
    "name", ["coding_agent", "purchasing", "support_refund", "question_answering"]
)
@pytest.mark.sampled(2)
def test_runs_over_the_projects_grammars_are_valid(name: str, tmp_path: Path, once: Any) -> None:
    compiled = compile_file(TOP / "grammars" / f"{name}.tcg", Options())
    data = compiled.artifact
    assert data is not None
    artifact = load(data)
    if artifact.cost_low != artifact.cost_high or artifact.manifest.critical:
        pytest.skip("out of scope")
    once(data)
    for number in range(3):
        ledger = runtime_ledger(artifact, seed=bytes([number]) * 32, top=1 + number)
        assert said(tmp_path, ledger, data)[0] == VALID


SCOPE = {
    "top1": ("small", {}),
    "capped": ("small", {"max_expansions": 2}),
    "top3": ("small", {"top": 3}),
    "exhausted": ("tiny", {"top": 40, "max_expansions": 50}),
    "after": ("small", {"after": ("b",), "top": 3}),
    "silent": ("tiny", {"silent": True}),
    "rest": ("small", {"race": "rest", "top": 2}),
    "rest exhausted": ("tiny", {"race": "rest", "top": 40, "mode": "surrogate", "inflate": "1.7"}),
    "surrogate": ("small", {"mode": "surrogate", "inflate": "3", "top": 3}),
    "rounds": ("small", {"count_bits": 3, "top": 2}),
    "interrupted": ("tiny", {"interrupt_after": 3, "top": 9}),
}
# What takes a ledger out of scope: other settings, fields of other rules, a seed that is not there.
OUTSIDE = re.compile(
    "another mode|features|ranges|a cut|withheld|without its end|clamped|do not decide|"
    "another kind|of a session|for a gate|other columns"
)


@pytest.mark.parametrize("name", SCOPE)
@pytest.mark.sampled(2)
def test_the_forgeries_of_every_field_and_line_are_refused_as_by_the_definition(
    name: str, tmp_path: Path, once: Any
) -> None:
    kind, told = SCOPE[name]
    data, artifact = raw(kind), getattr(artifacts, kind)()
    once(data)
    records = reference_records(artifact, **told)
    if name == "top3":
        records.insert(4, {"kind": "recovered", "dropped_bytes": 5, "records": 4})
    assert said(tmp_path, chained(records), data)[0] == VALID
    tried, apart = 0, 0
    forged = [*list(field_mutants(records))[::29], *list(line_mutants(records))[::9]]
    for mutant in forged:
        due = definition(mutant.data, artifact)
        code, text = said(tmp_path, mutant.data, data)
        if code == OUT:
            assert OUTSIDE.search(text), text
            apart += 1
            continue
        # What the definition declines, as another version's, is refused here.
        assert code == (due.verdict and INVALID), (mutant.how, mutant.field, due.findings, text)
        tried += code == INVALID
    assert tried >= 20
    print(f"{name}: {tried} forgeries refused, {apart} out of scope")


def test_the_forgeries_of_an_artifact_are_refused(tmp_path: Path) -> None:
    tried = 0
    for data in (example(), kinds()["strict"], raw("tiny")):
        ledger = runtime_ledger(load(data), seed=bytes(32))
        assert said(tmp_path, ledger, data)[0] in (VALID, OUT)
        mutants = [*column_mutants(data), *manifest_mutants(data)]
        for mutant in mutants[:: 1 + len(mutants) // 80]:
            code, text = said(tmp_path, ledger, mutant.data)
            assert code == INVALID or (code == OUT and OUTSIDE.search(text)), (mutant, text)
            tried += code == INVALID
    assert tried > 100


def test_the_core_says_the_calls_their_amounts_and_the_limits(tmp_path: Path) -> None:
    data, told = example(), {}
    ledger = runtime_ledger(load(data), seed=bytes(32))
    for mutant in core_mutants(data):
        try:
            check(mutant.data)
        except Rejected as error:
            told.setdefault(error.code.value, []).append(mutant)
    for code in ("C802", "C702"):
        for mutant in told.get(code, []):
            assert said(tmp_path, ledger, mutant.data)[0] == INVALID


def test_hostile_files_end_in_a_line_and_a_code(tmp_path: Path) -> None:
    rng = random.Random(5)
    ledger, data = (
        (GOLDEN / "exact-2.ndjson").read_bytes(),
        (GOLDEN / "exact-2.tcca").read_bytes(),
    )
    for number in range(80):
        files = [bytearray(ledger), bytearray(data)]
        chosen = files[number % 2]
        for _ in range(rng.choice([1, 3])):
            at = rng.randrange(len(chosen))
            chosen[at] ^= 1 << rng.randrange(8)
        if number % 5 == 0:
            del chosen[rng.randrange(len(chosen)) :]
        code, text = said(tmp_path, bytes(files[0]), bytes(files[1]))
        assert code in (INVALID, OUT) and text.count("\n") == 1
    deep = b'{"a":' + b"[" * 100_000 + b"\n"
    for first, second in ((b"", b""), (deep, data), (ledger, deep), (b"\xff\n" * 9, data)):
        assert said(tmp_path, first, second)[0] in (INVALID, OUT)


def test_a_cut_ledger_is_not_valid(tmp_path: Path, once: Any) -> None:
    data = raw("tiny")
    once(data)
    ledger = reference_ledger(artifacts.tiny(), top=3)
    for end in range(0, len(ledger), cases(149, 37)):
        assert said(tmp_path, ledger[:end], data)[0] in (INVALID, OUT)
