"""Nothing is relaxed unasked, by no command; and each says what is enforced where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import GRAMMARS, Tcc

TEXT = """grammar g version "1"

tool a { cost 0.1 price 3 }
tool b { cost 0.2 price 7 }
tool c { cost 0.3 price 11 }

plan = any{0,9}

limit depth <= 8
limit price <= 40
before b require a
before c require no c since any - c
"""
NEIGHBOURS = "before c require no c since any - c"
SMALL = ("--max-states", 20)
ON_GRAMMARS: list[tuple[object, ...]] = [
    ("run", "GRAMMAR"),
    ("run", "GRAMMAR", "--json"),
    ("test", "GRAMMAR"),
    ("test", "GRAMMAR", "--json"),
    ("count", "GRAMMAR"),
    ("count", "GRAMMAR", "--json"),
    ("enumerate", "GRAMMAR"),
    ("inspect", "GRAMMAR"),
    ("inspect", "GRAMMAR", "--json"),
    ("batch", "GRAMMAR", "--requests", "REQUESTS", "--out", "OUT"),
    ("compile", "GRAMMAR", "-o", "OUT"),
    ("compile", "GRAMMAR", "-o", "OUT", "--json"),
]
ON_ARTIFACTS: list[tuple[object, ...]] = [
    ("run", "ARTIFACT"),
    ("count", "ARTIFACT"),
    ("enumerate", "ARTIFACT"),
    ("inspect", "ARTIFACT"),
    ("batch", "ARTIFACT", "--requests", "REQUESTS", "--out", "OUT"),
]
COMPILE_OPTIONS: list[tuple[object, ...]] = [
    ("--relax", "price"),
    ("--relax", "auto"),
    ("--round-counts", 4),
    ("--beta", "2"),
    ("--tilt", 3),
    ("--max-states", 100),
    ("--timeout", 5),
    ("--count-bits", 6400),
]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, object]:
    """What stands for the words in capitals."""
    grammar, requests = tmp_path / "g.tcg", tmp_path / "requests.ndjson"
    grammar.write_text(TEXT, "utf-8")
    requests.write_text(json.dumps({"seed": "00" * 32}) + "\n", "utf-8")
    exact, relaxed = tmp_path / "exact.tcca", tmp_path / "relaxed.tcca"
    library.save(library.compile_text(TEXT), exact)
    library.save(library.compile_text(TEXT, relax=["price", NEIGHBOURS]), relaxed)
    return {
        "GRAMMAR": grammar,
        "REQUESTS": requests,
        "OUT": tmp_path / "out",
        "ARTIFACT": exact,
        "RELAXED": relaxed,
    }


def named(words: tuple[object, ...], paths: dict[str, object]) -> list[object]:
    return [paths.get(str(word), word) for word in words]


@pytest.mark.parametrize("words", ON_GRAMMARS, ids=lambda words: " ".join(map(str, words)))
def test_past_a_limit_every_command_ends_with_two_and_the_ways_on(
    tcc: Tcc, paths: dict[str, object], words: tuple[object, ...]
) -> None:
    ended = tcc(*named(words, paths), *SMALL)
    assert ended.code == 2
    said = ended.out + ended.err
    assert "TCC403" in said and "--relax auto" in said and "left to the run" in said
    assert not Path(str(paths["OUT"])).exists()
    if "--json" in words:
        assert json.loads(ended.out)["format"] == f"tcc.{words[0]}"
    relaxed = tcc(*named(words, paths), *SMALL, "--relax", "auto")
    assert relaxed.code == 0, relaxed.err
    assert "TCC411" in relaxed.out + relaxed.err


@pytest.mark.parametrize("option", COMPILE_OPTIONS, ids=lambda words: str(words[0]))
@pytest.mark.parametrize("words", ON_ARTIFACTS, ids=lambda words: str(words[0]))
def test_an_option_of_the_compiler_is_never_ignored_on_an_artifact(
    tcc: Tcc, paths: dict[str, object], words: tuple[object, ...], option: tuple[object, ...]
) -> None:
    ended = tcc(*named(words, paths), *option)
    if words[0] == "run" and option[0] == "--count-bits":
        # This is an option of the run as well.
        assert ended.code == 0
        return
    assert ended.code == 2
    assert f"{option[0]} is for compiling a grammar, and this is an artifact" in ended.err
    assert not Path(str(paths["OUT"])).exists()


def test_the_ways_on_are_in_the_json_too(tcc: Tcc, paths: dict[str, object]) -> None:
    ended = tcc("compile", paths["GRAMMAR"], *SMALL, "--json")
    (found,) = ended.json["diagnostics"]
    assert (ended.code, found["code"], found["severity"]) == (2, "TCC403", "error")
    assert found["notes"][-1]["message"].startswith("this fits: ")
    assert found["notes"][-1]["line"] in range(7, 14)


ENFORCED = {
    "automaton": ["limit depth <= 8", "before b require a"],
    "gate": [],
    "run": ["limit price <= 40", NEIGHBOURS],
}


def test_check_and_inspect_say_what_is_enforced_where(tcc: Tcc, paths: dict[str, object]) -> None:
    for command in ("check", "inspect"):
        found = tcc(command, paths["RELAXED"], "--json").json
        assert found["enforced"] == ENFORCED
        assert [one["text"] for one in found["statements"] if one.get("relaxed")] == ENFORCED["run"]
        text = tcc(command, paths["RELAXED"]).out
        assert "    automaton  limit depth <= 8\n    run        limit price <= 40\n" in text
        assert f"    run        {NEIGHBOURS}\n" in text
        assert "    run " not in tcc(command, paths["ARTIFACT"]).out
    text = tcc("inspect", paths["RELAXED"]).out
    assert "         1  at most 2\n" in text and "plans       at most " in text
    exact = tcc("inspect", paths["ARTIFACT"], "--json").json["enforced"]
    assert exact["run"] == [] and "limit price <= 40" in exact["automaton"]


STATED = """grammar g version "1"

tool a(m: integer 0 .. 9)
tool b gives (t: text)

let late = b
before a {
  let seen = late
  require seen because "b comes first."
  require m < 5 and no a
}
forbid b(last(b).t = "x")
limit depth <= 3
"""


def test_each_statement_is_listed_once_with_its_place(tcc: Tcc, tmp_path: Path) -> None:
    path, made = tmp_path / "g.tcg", tmp_path / "g.tcca"
    path.write_text(STATED, "utf-8")
    compiled = tcc("compile", path, "-o", made, "--json").json["statements"]
    assert compiled == [
        {"text": "before a { let seen = late  require seen }", "because": "b comes first.",
         "place": "automaton", "line": 9},
        {"text": "before a require m < 5 and no a", "because": None, "place": "both",
         "holds": "before a require _ and no a", "line": 10},
        {"text": 'forbid b(last(b).t = "x")', "because": None, "place": "gate", "line": 12},
        {"text": "limit depth <= 3", "because": None, "place": "automaton", "line": 13},
    ]  # fmt: skip
    assert tcc("inspect", path, "--json").json["statements"] == compiled
    known = [{**one, "line": None} for one in compiled]
    assert tcc("inspect", made, "--json").json["statements"] == known
    assert tcc("check", made, "--json").json["statements"] == known
    text = tcc("check", made).out
    assert all(text.count(one["text"]) == 1 for one in compiled)


INEXACT = [
    ({"relax": ["price"]}, ["manifest.relaxed"]),
    ({"relax": ["require"]}, ["manifest.relaxed"]),
    ({"relax": [NEIGHBOURS]}, ["manifest.relaxed"]),
    ({"round_counts": 3}, ["manifest.options.round_counts"]),
    ({"relax": ["depth"], "round_counts": 3},
     ["manifest.relaxed", "manifest.options.round_counts"]),
]  # fmt: skip


@pytest.mark.parametrize("kernel", ["pure", "fast"])
@pytest.mark.parametrize(("options", "places"), INEXACT)
def test_exact_refuses_whatever_is_relaxed(
    tcc: Tcc, tmp_path: Path, options: dict[str, object], places: list[str], kernel: str
) -> None:
    path = tmp_path / "a.tcca"
    library.save(library.compile_text(TEXT, **options), path)  # type: ignore[arg-type]
    ended = tcc("check", path, "--exact", "--kernel", kernel, "--json")
    assert (ended.code, ended.json["verdict"]) == (1, "INVALID")
    assert [(f["code"], f["path"]) for f in ended.json["findings"]] == [("P102", p) for p in places]
    assert tcc("check", path, "--kernel", kernel).code == 0
    assert tcc("check", path, "--exact").out.startswith("INVALID: its certificates hold, but")
    assert library.check(path, exact=True).verdict == 1


def test_exact_refuses_a_nondeterministic_artifact(tcc: Tcc, tmp_path: Path) -> None:
    text = """grammar g version "1"

tool a
tool b

plan = (a | b)* a (a | b){3}

limit depth <= 6
"""
    path = tmp_path / "a.tcca"
    library.save(library.compile_text(text, max_states=14, relax="auto"), path)
    ended = tcc("check", path, "--exact", "--json")
    assert ended.code == 1
    assert ended.json["findings"][0]["found"] == "derivations are counted"


def test_exact_is_about_nothing_else(tcc: Tcc, paths: dict[str, object]) -> None:
    assert tcc("check", paths["ARTIFACT"], "--exact", "--core").code == 0
    broken = Path(str(paths["OUT"]))
    data = bytearray(Path(str(paths["RELAXED"])).read_bytes())
    data[-1] ^= 1
    broken.write_bytes(data)
    found = tcc("check", broken, "--exact", "--json").json["findings"]
    # What is broken comes first: of its features nothing is believed.
    assert [f["code"] for f in found] == ["M203"]
    for path in sorted(GRAMMARS.glob("*.tcg"))[:2]:
        made = tcc("compile", path, "-o", broken)
        assert made.code == 0 and tcc("check", broken, "--exact").code == 0


def test_the_kernel_alone_says_the_same(tcc: Tcc, paths: dict[str, object]) -> None:
    root = Path(__file__).parents[2]
    for path, due in ((paths["RELAXED"], 1), (paths["ARTIFACT"], 0)):
        ended = subprocess.run(
            [sys.executable, "-m", "tcc_certs", "check", "--exact", "--json", str(path)],
            capture_output=True,
            cwd=root / "certs",
            check=False,
            timeout=60,
        )
        assert ended.returncode == due
        assert json.loads(ended.stdout) == tcc("check", path, "--exact", "--json").json


def test_no_walk_shows_a_plan_that_breaks_what_is_left_to_the_run(
    tcc: Tcc, paths: dict[str, object]
) -> None:
    due = tcc("enumerate", paths["ARTIFACT"], "--limit", 10**6)
    seen = tcc("enumerate", paths["RELAXED"], "--limit", 10**6)
    assert seen.out == due.out
    counted = tcc("count", paths["RELAXED"], "--json").json
    assert (counted["counts"], counted["left_to_run"]) == ("upper", ENFORCED["run"])
    assert int(counted["plans"]) > len(due.out.splitlines())
    listed = tcc("enumerate", paths["RELAXED"], "--json").json
    assert (listed["counts"], listed["left_to_run"]) == ("upper", ENFORCED["run"])
    assert "left_to_run" in tcc("count", paths["ARTIFACT"], "--json").json


def test_the_library_hands_the_warnings_out(paths: dict[str, object]) -> None:
    made = library.compile_file(str(paths["GRAMMAR"]), max_states=20, relax=["auto"])
    assert {d.code for d in made.diagnostics} == {"TCC411"}
    assert all(d.severity == "warning" and d.message and d.hint for d in made.diagnostics)
    assert library.compile_text(TEXT).diagnostics == ()
    assert library.load(str(paths["RELAXED"])).diagnostics == ()


@pytest.mark.parametrize("limit", [{"max_states": 20}, {"timeout": 0.0}, {"count_bits": 3}])
def test_the_library_raises_past_a_limit_with_the_diagnostics(limit: dict[str, float]) -> None:
    with pytest.raises(library.CompileError) as declined:
        library.compile_text(TEXT, **limit)  # type: ignore[arg-type]
    assert declined.value.declined
    assert declined.value.diagnostics[0].code in ("TCC403", "TCC404", "TCC407")
    with pytest.raises(library.CompileError) as refused:
        library.compile_text('grammar g version "1"\ntool a\nplan = b')
    assert not refused.value.declined


def test_a_run_over_a_relaxed_artifact_says_first_what_it_will_take(
    tcc: Tcc, paths: dict[str, object]
) -> None:
    ended = tcc("run", paths["RELAXED"], "--seed", "00" * 32)
    said = f"the automaton leaves to this run: limit price <= 40, {NEIGHBOURS}: it is estimated"
    assert said in ended.err and "plans drawn from the automaton" in ended.err
    found = tcc("run", paths["RELAXED"], "--seed", "00" * 32, "--json").json["estimated_expansions"]
    assert 1 <= found["lower"] <= found["upper"] and 0 < found["kept"] <= found["drawn"]
    assert library.estimate(library.load(str(paths["RELAXED"]))) is not None
    capped = tcc("run", paths["RELAXED"], "--max-expansions", 1)
    assert "it is likely to end there, without a claim" in capped.err
    batch = tcc("batch", paths["RELAXED"], "--requests", paths["REQUESTS"], "--out", paths["OUT"])
    assert said in batch.err
    exact = tcc("run", paths["ARTIFACT"], "--json")
    assert "estimated_expansions" not in exact.json and exact.err == ""


def test_what_is_not_known_of_a_relaxed_run_is_said_as_well(
    tcc: Tcc, paths: dict[str, object]
) -> None:
    for option, why in (
        (("--mode", "fallback"), "the run has no race that its keys bound"),
        (("--keys", "anchored"), "it is known for finalized keys alone"),
    ):
        ended = tcc("run", paths["RELAXED"], *option)
        assert f"what it takes is not known: {why}; nothing ends it early but" in ended.err
    assert "was not estimated;" in tcc("run", paths["RELAXED"], "--no-predict").err
