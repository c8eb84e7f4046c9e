"""The kernel, its verdicts, and the command line."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tcc_certs.__main__ import main
from tcc_certs.errors import Rejected
from tcc_certs.formats.artifact import read_artifact, unpack_limbs
from tcc_certs.kernel import check
from tcc_certs.report import check_artifact
from tests.forgery.artifacts import Forge
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import call, depth, letters, make_core, random_core
from tests.oracle.examples import PLANS, RACE_COUNT, example
from tests.oracle.plans import plans

CERTS = Path(__file__).parents[2] / "certs"


def test_the_example_counts_what_is_known_of_it() -> None:
    checked = check(example())
    assert (checked.plans[-1], checked.race_count[-1]) == (PLANS, RACE_COUNT)
    assert list(checked.file.columns["call_weight"].items()) == [759, 927, 838, 293]
    assert checked.calls == ("a", "b(k=1)", "b(k=2)", "c")
    assert check(example(tilt=0)).race_count == check(example(tilt=0)).plans


def test_artifacts_of_random_cores_are_valid_and_count_their_plans() -> None:
    rng = random.Random(11)
    done = 0
    for _ in range(150):
        data, core = random_core(rng)
        words = plans(core, 5)
        if words:
            tilt, beta = rng.choice((0, 1, 8, 64)), rng.choice(("0", "0.25", "1", "12"))
            checked = check(build(data, words, beta, tilt))
            assert checked.plans[-1] == len(words)
            done += 1
    assert done > 50


def test_the_empty_plan_alone_is_an_artifact() -> None:
    core = make_core(**letters(1), plan=["empty"])
    checked = check(build(core, [()]))
    assert (checked.automaton.states, checked.plans[-1], checked.calls) == (1, 1, ())
    report = check_artifact(build(core, [()]), core=True)
    assert report.verdict == 0 and report.checked["states"] == 1 and report.checked["pairs"] == 1


def test_counts_of_thousands_of_bits_are_checked() -> None:
    node = Node(accept=True)
    for _ in range(300):
        node = Node(accept=True, children=dict.fromkeys(range(4), node))
    plan = ["repeat", ["call", {0, 1, 2, 3}], 0]
    core = make_core(**letters(4, cost=[1, 2, 3, 4]), plan=plan, statements=[depth(300)])
    data = build_graph(core, node)
    checked = check(data)
    assert checked.plans[-1] == sum(4**k for k in range(301))
    assert checked.race_count[-1].bit_length() > 2400
    forge = Forge(data)
    rows = forge.values("race_count")
    rows[-1] += 1  # the greatest limb of the last state
    with pytest.raises(Rejected, match="C401"):
        check(forge.put("race_count", rows).seal())


def test_texts_beyond_ascii_order_by_their_bytes() -> None:
    # Code points order as UTF-8 does, UTF-16 would not: U+FFFD against U+1F600.
    values = ['"\ufffd"', '"\U0001f600"']
    tools = [{"name": "t", "fields": [{"name": "k", "values": values}]}]
    core = make_core(tools=tools, calls=[call(0, [0]), call(0, [1])], plan=["call", {0, 1}])
    assert check(build(core, [(0,), (1,)])).plans[-1] == 2


def test_a_pin_is_held_to() -> None:
    digest = read_artifact(example()).digest.hex()
    assert check(example(), pin=digest).file.digest.hex() == digest
    with pytest.raises(Rejected) as refusal:
        check(example(tilt=0), pin=digest)
    assert refusal.value.code == "P101"


def test_reading_without_digests_takes_a_changed_column() -> None:
    forge = Forge(example()).set("plans", 0, 7)
    data = forge.seal(digests=False)
    assert unpack_limbs(read_artifact(data, digests=False).columns["plans"])[0] == 7
    with pytest.raises(Rejected, match="M203"):
        read_artifact(data)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"schema": "tcc.artifact/3"}, "D102"),
        ({"critical": ["sets"]}, "D101"),
        ({"schema": "tcc.artifact/3", "another": 1}, "D102"),
        ({"version": [1, 0]}, "M101"),
        ({"counts": "upper"}, "M102"),
    ],
)
def test_later_artifacts_are_declined(members: dict[str, object], code: str) -> None:
    forge = Forge(example())
    forge.manifest.update(members)
    report = check_artifact(forge.seal())
    assert report.findings[0].code == code
    assert report.verdict == (2 if code.startswith("D") else 1)


def test_valid_says_how_much_was_checked() -> None:
    report = check_artifact(example(), core=True)
    assert report.verdict == 0 and not report.findings
    assert dict(report.checked) == {
        "states": 5, "edges": 9, "calls": 4, "counts": 10, "bounds": 10, "pairs": 5, "dead": 0,
    }  # fmt: skip
    assert str(report.checked["states"]) in report.summary


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\xff" * 64, b"{}", example()[:-1]])
def test_bytes_of_any_kind_get_a_verdict(data: bytes) -> None:
    report = check_artifact(data)
    assert report.verdict == 1 and len(report.findings) == 1


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "a.tcca"
    path.write_bytes(example())
    return path


def test_the_command_prints_a_verdict(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(artifact), "--core"]) == 0
    assert capsys.readouterr().out.startswith("VALID: ")


def test_the_command_prints_json(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact.write_bytes(Forge(example()).set("plans", -1, 13).seal())
    assert main(["check", str(artifact), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "INVALID" and document["format"] == "tcc.check"
    assert document["findings"][0]["code"] == "C301"
    assert document["findings"][0]["expected"] == "12"


def test_the_command_declines_what_it_cannot_read(tmp_path: Path) -> None:
    assert main(["check", str(tmp_path / "none.tcca")]) == 2
    assert main(["check", str(tmp_path)]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["check"])


def test_the_command_reports_its_own_errors_as_such(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tcc_certs.verbs.check.check_artifact", lambda *_, **__: 1 // 0)
    with pytest.raises(SystemExit) as end:
        main(["check", str(artifact)])
    assert end.value.code == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_kernel_runs_alone(artifact: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tcc_certs", "check", str(artifact), "--core"],
        env={"PYTHONPATH": str(CERTS), "PATH": "", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("VALID: ")


@pytest.mark.parametrize(("module", "code"), [("blake3", 2), ("tcc_certs.formats.codec", 1)])
def test_without_blake3_nothing_is_judged(module: str, code: int) -> None:
    """It is DECLINED, no verdict; a file of its own that is missing is not to be mended so."""
    program = (
        "import runpy, sys\n"
        f"sys.modules[{module!r}] = None\n"
        "sys.argv = ['tcc-certs', 'check', 'a.tcca']\n"
        "runpy.run_module('tcc_certs', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == code and not done.stdout
    said = "tcc-certs: DECLINED: blake3 is not installed: pip install blake3\n"
    assert (done.stderr == said) == (module == "blake3")
