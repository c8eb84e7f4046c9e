"""Parts are run once, in any number of processes, and what is published is the same each time."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest

from tcc import validate
from tcc.main import main
from tcc_experiments.evidence import NotShown
from tcc_experiments.model import Conclusion, Part, ResultTable, Row, Size
from tcc_experiments.pareto import PRICES
from tcc_experiments.results import csv_text, differing, page, sections
from tcc_experiments.runner import EXPERIMENTS, Store, run
from tcc_runtime.ledger.sinks import MemorySink
from tests.cli.documents import check_document

ROOT = Path(__file__).parents[2]
TRUNCATION = EXPERIMENTS["truncation"]
PARTS = len(TRUNCATION.parts(Size.QUICK))
MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def never(part: Part) -> list[Row]:
    raise AssertionError(part)


def test_a_finished_part_is_not_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = run([TRUNCATION], Size.QUICK, store, 1)
    seen: list[tuple[str, int, int]] = []
    again = run(
        [replace(TRUNCATION, work=never)], Size.QUICK, store, 1, lambda *told: seen.append(told)
    )
    assert again == first
    assert seen == [("truncation", PARTS, PARTS)]
    with pytest.raises(AssertionError):
        run([replace(TRUNCATION, work=never, revision=99)], Size.QUICK, store, 1)


def test_a_part_whose_file_is_not_whole_is_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = run([TRUNCATION], Size.QUICK, store, 1)
    damaged = store.path(TRUNCATION, TRUNCATION.parts(Size.QUICK)[0])
    damaged.write_bytes(damaged.read_bytes()[:-3])
    assert run([TRUNCATION], Size.QUICK, store, 1) == first
    assert json.loads(damaged.read_bytes())
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".json"] * PARTS


def test_two_processes_give_the_rows_of_one(tmp_path: Path) -> None:
    one = run([TRUNCATION], Size.QUICK, Store(tmp_path / "1"), 1)
    assert run([TRUNCATION], Size.QUICK, Store(tmp_path / "2"), 2) == one


def test_a_section_takes_the_place_of_the_old_one() -> None:
    before = page({"suites": "## A\n", "ledger": "## B\n"})
    assert sections(before) == {"suites": "## A\n", "ledger": "## B\n"}
    assert sections(page({**sections(before), "ledger": "## C\n"}))["suites"] == "## A\n"


def test_every_part_can_be_a_file_name_of_its_own() -> None:
    store = Store(Path())
    for size in Size:
        paths = [store.path(e, part) for e in EXPERIMENTS.values() for part in e.parts(size)]
        assert len(paths) == len(set(paths))


def told(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return int(str(ended.value.code))


def test_without_matplotlib_the_message_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert told("experiments", "truncation", "--quick", "--out", tmp_path) == 2
    message = capsys.readouterr().err
    assert "pip install 'tcc[experiments]'" in message and "--no-figures" in message
    assert not list(tmp_path.iterdir())
    arguments = ("truncation", "--quick", "--no-figures", "--processes", 1, "--out", tmp_path)
    assert told("experiments", *arguments) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [".parts", "RESULTS.md", "csv"]
    assert "![" not in (tmp_path / "RESULTS.md").read_text("utf-8")


def test_an_experiment_without_a_label_of_the_paper_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told("experiments", "--list") == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for name, experiment in EXPERIMENTS.items():
        assert lines[name].endswith(f"({', '.join(experiment.paper) or 'no label of the paper'})")
    published = sections((ROOT / "experiments" / "RESULTS.md").read_text("utf-8"))
    for name, text in published.items():
        labels = EXPERIMENTS[name].paper
        shown = ", ".join(f"`{label}`" for label in labels) or "no label of the paper"
        assert f"`tcc experiments {name}`; {shown}; size full, " in text, name


def test_the_latex_tables_have_the_cells_of_the_csv_files(tmp_path: Path) -> None:
    names = ("truncation", "arithmetic")
    arguments = (*names, "--quick", "--no-figures", "--latex", "--processes", 1)
    assert told("experiments", *arguments, "--out", tmp_path) == 0
    files = sorted((tmp_path / "latex").iterdir())
    assert {path.stem for path in files} == {path.stem for path in (tmp_path / "csv").iterdir()}
    for path in files:
        text = path.read_text("utf-8")
        table = (tmp_path / "csv" / f"{path.stem}.csv").read_text("utf-8")
        rows = list(csv.reader(table.splitlines()))
        lines = [line for line in text.splitlines() if line.endswith(r" \\")]
        assert len(lines) == len(rows) and r"\label{tab:tcc-" in text
        for line, row in zip(lines, rows, strict=True):
            assert len(re.findall(r"(?<!\\)&", line)) == len(row) - 1
        body = re.sub(r"\\[\\%&$#_{}]|^%.*$", "", text, flags=re.MULTILINE)
        assert body.count("{") == body.count("}")
        assert not re.search(r"[#$_]", body.replace(r"$\pm$", ""))


def test_a_wrong_name_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert told("experiments", "suits") == 2
    assert "there are: suites, adversarial" in capsys.readouterr().err
    assert told("experiments", "--list") == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("suites ")


LABELS = {
    "fig:baselinesA": "suites",
    "fig:baselinesB": "suites",
    "fig:adversarial": "adversarial",
    "fig:tightness": "tightness",
    "fig:nub": "stress",
    "fig:diameter": "diameter",
    "fig:lse-tail": "truncation",
    "fig:pareto": "pareto",
    "tab:overhead": "ledger",
    "tab:adapter-summary": "adapters",
    "tab:adapter-full": "adapters",
    "tab:real-pipeline": "pipeline",
    "thm:fallback": "fallback",
}


def listed(capsys: pytest.CaptureFixture[str], *names: str) -> list[dict[str, Any]]:
    assert told("experiments", *names, "--list", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    check_document(document)
    experiments: list[dict[str, Any]] = document["experiments"]
    return experiments


def test_the_list_has_the_labels_of_the_paper_and_what_each_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = listed(capsys)
    assert [one["name"] for one in every] == list(EXPERIMENTS)
    assert {label: one["name"] for one in every for label in one["paper"]} == LABELS
    for one in every:
        seconds = one["seconds"]
        assert seconds.keys() == {"quick", "full"} and 0 < seconds["quick"] <= seconds["full"]


@pytest.mark.parametrize(("label", "name"), LABELS.items())
def test_a_label_of_the_paper_is_a_name(
    capsys: pytest.CaptureFixture[str], label: str, name: str
) -> None:
    assert [one["name"] for one in listed(capsys, label)] == [name]
    assert [one["name"] for one in listed(capsys, label, name)] == [name]


TIMED = ResultTable(
    name="t",
    caption="",
    rows=[
        {"method": "a", "runs": 10, "mean": 4.5, "+-": 0.2, "share": "1 %", "ms": 1.5},
        {"method": "b", "runs": 10, "mean": 9.0, "+-": 0.0, "share": None, "ms": 2.5},
    ],
    times=("ms",),
)


@pytest.mark.parametrize(
    ("was", "then", "found"),
    [
        ("1.5", "99", []),
        ("4.5,0.2", "4.7,0.2", []),
        ("4.5,0.2", "4.71,0.2", [(1, "mean")]),
        ("4.5,0.2", "4.6,0.05", [(1, "mean"), (1, "+-")]),
        ("4.5,0.2", "4.5,0.41", [(1, "+-")]),
        ("4.5,0.2", "nan,0.2", [(1, "mean")]),
        ("4.5,0.2", "44.5,inf", [(1, "mean"), (1, "+-")]),
        ("9.0,0.0", "9.01,0.0", [(2, "mean")]),
        ("a,10", "a,11", [(1, "runs")]),
        ("1 %", "2 %", [(1, "share")]),
        ("0.0,,", "0.0,0 %,", [(2, "share")]),
        ("b,10,9.0,0.0,,2.5\n", "", [(2, "")]),
        ("2.5\n", "2.5\nc,1,1,1,1,1\n", [(3, "")]),
        ("method,", "name,", [(0, "method"), (0, "name")]),
        ("b,10,9.0,0.0,,2.5", "b", [(2, "runs"), (2, "mean"), (2, "+-")]),
    ],
)
def test_a_table_that_was_published_otherwise_is_told_by_row_and_column(
    tmp_path: Path, was: str, then: str, found: list[tuple[int, str]]
) -> None:
    text = csv_text(TIMED.rows)
    assert text.count(was) == 1
    conclusion = Conclusion(tables=(TIMED,), findings=())
    for folder in (tmp_path, tmp_path / "csv"):
        folder.mkdir(exist_ok=True)
        (folder / "t.csv").write_text(text)
        assert differing(tmp_path, conclusion) == []
        (folder / "t.csv").write_text(text.replace(was, then))
        assert [(d.row, d.column) for d in differing(tmp_path, conclusion)] == found


@pytest.mark.parametrize("data", [None, b"", b"\xff\xfe", b'"' + b"x" * 200_000, b"a\0b,\n"])
def test_a_table_that_is_none_is_told(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "t.csv").write_bytes(data)
    found = differing(tmp_path, Conclusion(tables=(TIMED,), findings=()))
    assert found and all((d.table, d.row) == ("t", 0) or d.row <= 2 for d in found)


def test_an_experiment_is_held_against_what_was_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, before = tmp_path / "out", tmp_path / "before"
    quick = ("experiments", "fig:lse-tail", "--quick", "--no-figures", "--processes", 1)
    assert told(*quick, "--out", out) == 0
    shutil.copytree(out, before)
    assert told(*quick, "--out", out, "--against", before) == 0
    assert "are these, times left out" in capsys.readouterr().out
    table = before / "csv" / "truncation.csv"
    lines = table.read_text().splitlines()
    lines[1] = lines[1].rsplit(",", 1)[0] + ",Maybe"
    table.write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    assert told(*quick, "--out", out, "--against", before) == 1
    assert "truncation.csv: row 1, column bound_M_root_holds:" in capsys.readouterr().out
    assert told(*quick, "--out", out, "--against", before, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    check_document(document)
    assert [(d["row"], d["column"]) for d in document["differing"]] == [(1, "bound_M_root_holds")]
    # Read before it is written anew.
    assert told(*quick, "--out", before, "--against", before) == 1
    assert told(*quick, "--out", before, "--against", before) == 0
    assert told(*quick, "--out", out, "--against", tmp_path / "nowhere") == 2


@pytest.mark.skipif(not MATPLOTLIB, reason="figures need the extra")
def test_figures_have_the_same_bytes_each_time(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tcc_experiments.runner import *;"
        "from tcc_experiments.results import publish; out = Path(sys.argv[1]);"
        "e = EXPERIMENTS['truncation'];"
        "rows = run([e], Size.QUICK, Store(out / '.parts'), 1);"
        "publish(out, e, e.conclude(rows['truncation']), Size.QUICK, True)"
    )
    for name in ("1", "2"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True, timeout=120)
    for end in ("csv/truncation.csv", "figures/truncation.png", "figures/truncation.svg"):
        assert (tmp_path / "1" / end).read_bytes() == (tmp_path / "2" / end).read_bytes()
    svg = (tmp_path / "1/figures/truncation.svg").read_text()
    assert "<dc:date>" not in svg


# tests/experiments/test_request.py has requests of its own, and a part of pareto is run below.
@pytest.mark.parametrize(
    "without", ["request pareto", pytest.param("", marks=pytest.mark.campaign)]
)
def test_a_quick_run_of_everything_finds_what_the_record_says(tmp_path: Path, without: str) -> None:
    figures = [] if MATPLOTLIB else ["--no-figures"]
    names = [name for name in EXPERIMENTS if name not in without.split()]
    command = [sys.executable, "-m", "tcc", "experiments", *names, "--quick", "--json", *figures]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    check_document(found)
    assert (found["format"], found["size"]) == ("tcc.experiments", "quick")
    verdicts = {
        name: [finding["verdict"] for finding in findings]
        for name, findings in found["findings"].items()
    }
    assert list(verdicts) == names
    assert verdicts["soundness"] == ["holds", "does not hold"]
    assert verdicts["adversarial"] == ["holds", "holds"]
    assert verdicts["distribution"] == ["holds", "not in the paper", "does not hold"]
    assert verdicts["truncation"] == ["holds", "does not hold"]
    assert verdicts["fallback"] == ["does not hold", "holds", "differs because"]
    assert verdicts.get("pareto", ["holds"] * 3) == ["holds"] * 3
    assert verdicts["adapters"] == ["holds", "differs because"]
    assert verdicts["pipeline"][:4] == ["holds", "does not hold", "holds", "holds"]
    if MATPLOTLIB:
        drawn = {path.stem for path in (tmp_path / "figures").iterdir()}
        assert drawn == {name for e in names for name in EXPERIMENTS[e].draw}
    check_tables(tmp_path / "csv")


def check_tables(folder: Path) -> None:
    """What the tables have to say at any size."""

    def rows(name: str) -> list[dict[str, str]]:
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")
        return list(csv.DictReader(text.splitlines()))

    for row in rows("suites"):
        ours = row["method"].startswith(("Exact", "Surrogate, coupled"))
        assert not ours or row["missed_runs"] == "0"
    for row in rows("soundness"):
        if row["claim"] == "certified":
            assert (row["violations"], row["differing"]) == ("0", "0")
        else:
            assert int(row["violations"]) > 0
    assert all(row["verdict"].startswith("VALID") for row in rows("ledger"))
    assert [row["appends"] for row in rows("ledger")][:5] == ["6", "24", "31", "68", "203"]
    assert all(row["stop_slack"] == "0.0" for row in rows("diameter"))
    assert all(row["bound_holds"] == "True" for row in rows("truncation"))
    wrong = [row["what"] for row in rows("arithmetic") if row["agrees"] == "False"]
    assert len(wrong) == 9 and {"-ln t(r)", "Key(u2)", "-ln t(v)"} <= set(wrong)
    assert all(row["false_keys"] == "0 %" for row in rows("tightness")[:4])
    assert all(row["popped"] == "1.0" for row in rows("fallback_runtime"))
    for row in rows("fallback"):
        assert (row["beyond"], row["late"], row["popped"]) == ("0.0", "0.0", "1.0")
        assert row["branching"] != "2" or row["beyond_printed"] == "0.0"
    tight = {row["branching"]: row for row in rows("fallback") if row["noise"] == "tight"}
    assert {b: (row["n_int"], row["made"]) for b, row in tight.items()} == {
        "2": ("3.0", "4.0"),
        "3": ("4.0", "9.0"),
    }
    assert {row["trees"] for row in rows("suites")} == {"paper", "stop"}
    told = {row["steps"] for row in rows("soundness") if row["claim"] == "NoCert"}
    assert told == {"1 call and a stop", "2 calls and a stop", "3 calls and a stop"}


def test_every_ledger_of_an_experiment_is_kept_and_valid(tmp_path: Path) -> None:
    one = replace(EXPERIMENTS["pareto"], parts=lambda size: [{"sla": 600, "from": 0, "to": 2}])
    store = Store(tmp_path / "parts")
    first = run([one], Size.QUICK, store, 1)
    assert run([one], Size.QUICK, store, 1, ledgers=tmp_path / "kept") == first
    (artifact,) = (tmp_path / "kept").glob("*.tcca")
    ledgers = sorted((tmp_path / "kept" / artifact.stem).iterdir())
    assert len(ledgers) == 2 * (1 + len(PRICES))
    for ledger in ledgers:
        assert validate(ledger, artifact).verdict == 0
    fallback = replace(EXPERIMENTS["fallback"], parts=lambda size: [SMALL])
    run([fallback], Size.QUICK, store, 1, ledgers=tmp_path / "more")
    assert len(list((tmp_path / "more").glob("*/*.ledger"))) == SMALL["seeds"]


SMALL: Part = {
    "who": "runtime",
    "noise": "G - ln E",
    "branching": 2,
    "graph": 0,
    "seeds": 3,
}


def test_a_run_whose_ledger_does_not_validate_ends_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = MemorySink.write
    monkeypatch.setattr(MemorySink, "write", lambda self, data: honest(self, data[:-2] + b"x\n"))
    fallback = replace(EXPERIMENTS["fallback"], parts=lambda size: [SMALL])
    with pytest.raises(NotShown):
        run([fallback], Size.QUICK, Store(tmp_path), 1, ledgers=tmp_path / "kept")
    assert not list(tmp_path.iterdir())


def test_the_environment_of_the_record_is_pinned_and_is_the_one_of_the_record() -> None:
    folder = Path(__file__).parents[2] / "experiments"
    lines = (folder / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and line[0] != "#")
    made = sections((folder / "RESULTS.md").read_text(encoding="utf-8"))
    for name in ("pareto", "adapters"):
        for package in ("gmpy2", "matplotlib"):
            assert f"{package} {pins[package]}" in made[name]
    text = (folder.parent / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    assert {*extras["pipeline"], "matplotlib>=3.8"} <= {*extras["experiments"]}
    needed = [*project["dependencies"], *extras["experiments"], *extras["pipeline"]]
    assert {_named(text) for text in needed} <= pins.keys()
    # And what those need in turn, where it is installed here.
    for package in pins:
        due = [text for text in _requires(package) if ";" not in text]
        assert {_named(text) for text in due} <= pins.keys(), package


def _requires(package: str) -> list[str]:
    try:
        return requires(package) or []
    except PackageNotFoundError:  # of an extra that is not installed
        return []


def _named(requirement: str) -> str:
    """The name in a requirement, as an index of packages has it."""
    return re.sub("[-_.]+", "-", re.split(r"[<>=; !~(\[]", requirement)[0]).lower()
