"""Every command: its exit codes, what people read, and the JSON fields that programs rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import GRAMMARS, Tcc

INSPECT_FIELDS = {
    "format",
    "format_version",
    "grammar",
    "version",
    "digest",
    "root_state",
    "counts",
    "nondeterministic",
    "cyclic",
    "round_counts",
    "plans",
    "race_count",
    "states",
    "edges",
    "calls",
    "max_depth",
    "min_cost",
    "min_cost_plan",
    "plans_by_depth",
    "tilt",
    "beta",
    "relaxed",
    "statements",
    "enforced",
}


def test_compile_and_inspect_print_the_same_fields(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    made = tcc("compile", grammar, "-o", tmp_path / "a.tcca", "--json").json
    seen = tcc("inspect", tmp_path / "a.tcca", "--json").json
    assert set(made) == set(seen) == INSPECT_FIELDS
    assert (made.pop("format"), seen.pop("format")) == ("tcc.compile", "tcc.inspect")
    # An artifact has no lines of a source.
    assert all(one.pop("line") for one in made["statements"])
    assert {one.pop("line") for one in seen["statements"]} == {None}
    assert made == seen
    assert seen["plans"] == "22763234" and sum(map(int, seen["plans_by_depth"])) == 22763234
    assert seen["min_cost"] == "0.3" and len(seen["plans_by_depth"]) == seen["max_depth"] + 1


def test_compile_writes_beside_the_grammar_by_default(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text("""grammar g version "1"

tool a

plan = a{1,2}
""")
    assert tcc("compile", source).code == 0
    assert (tmp_path / "g.tcca").stat().st_mode & 0o777 == 0o644
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["g.tcca", "g.tcg"]


def test_a_wrong_grammar_ends_with_one_and_leaves_no_file(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text('grammar g version "1"\ntool search\nplan = serch\nlimit depth <= 0.5\n')
    ended = tcc("compile", source)
    assert ended.code == 1 and "did you mean 'search'?" in ended.err and "2 errors" in ended.err
    assert not (tmp_path / "g.tcca").exists()


@pytest.mark.parametrize("text", ['grammar g version "1"\ntool a\nplan = b', "grammar (", "", "\0"])
@pytest.mark.parametrize("output_format", ["json", "sarif"])
def test_findings_stay_json_however_broken_the_grammar(
    tcc: Tcc, tmp_path: Path, text: str, output_format: str
) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(text)
    ended = tcc("test", source, "--output-format", output_format)
    document = json.loads(ended.out)
    assert ended.code == 1
    if output_format == "sarif":
        [run] = document["runs"]
        assert document["version"] == "2.1.0" and run["results"]
        rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
        assert {result["ruleId"] for result in run["results"]} == rules
    else:
        assert document["diagnostics"][0]["code"].startswith("TCC")


def test_github_findings_are_workflow_commands(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text('grammar g version "1"\ntool a\nplan = b\n')
    ended = tcc("compile", source, "--output-format", "github")
    assert ended.out.startswith(f"::error file={source},line=3,") and ",title=TCC202::" in ended.out


def test_tilt_and_beta_reach_the_artifact(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    tcc("compile", grammar, "-o", tmp_path / "a", "--tilt", 0, "--beta", "2.5")
    seen = tcc("inspect", tmp_path / "a", "--json").json
    assert (seen["tilt"], seen["beta"], seen["race_count"]) == (0, "2.5", seen["plans"])


@pytest.mark.parametrize("beta", ["-1", "x", "1e3", "1.50"])
def test_a_beta_that_is_no_decimal_is_bad_usage(tcc: Tcc, grammar: Path, beta: str) -> None:
    ended = tcc("compile", grammar, f"--beta={beta}")
    assert ended.code == 2 and "--beta" in ended.err


@pytest.mark.parametrize("guard", [("--max-states", 3), ("--timeout", 0)])
def test_a_guard_of_the_compiler_ends_with_two(
    tcc: Tcc, grammar: Path, tmp_path: Path, guard: tuple[object, ...]
) -> None:
    ended = tcc("compile", grammar, "-o", tmp_path / "a", *guard)
    assert ended.code == 2 and "TCC40" in ended.err


def test_counts_that_are_too_wide_become_bounds_with_a_warning(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    asked = ("compile", grammar, "-o", tmp_path / "a", "--count-bits", 4)
    assert tcc(*asked).code == 2
    ended = tcc(*asked, "--relax", "auto")
    assert ended.code == 0 and "CountFail" in ended.err
    assert tcc("inspect", tmp_path / "a", "--json").json["counts"] == "upper"
    run = tcc("run", tmp_path / "a", "--json")
    assert (run.code, run.json["claim_type"]) == (0, "RunWiseSurrogate")


def test_check_says_what_was_checked(tcc: Tcc, artifact: Path, grammar: Path) -> None:
    ended = tcc("check", artifact, "--core", "--source", grammar, "--json")
    report = ended.json
    assert (ended.code, report["verdict"], report["findings"]) == (0, "VALID", [])
    assert report["checked"]["states"] == 38 and report["checked"]["edges"] == 338
    assert tcc("check", artifact, "--pin", report["digest"]).code == 0


def test_check_refuses_another_source_and_another_pin(tcc: Tcc, artifact: Path) -> None:
    other = tcc("check", artifact, "--source", GRAMMARS / "sql_analyst.tcg", "--json")
    assert (other.code, other.json["findings"][0]["code"]) == (1, "G201")
    pinned = tcc("check", artifact, "--pin", "00" * 32, "--json")
    assert (pinned.code, pinned.json["findings"][0]["code"]) == (1, "P101")


def test_check_refuses_a_flipped_bit_and_a_cut(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    data = bytearray(artifact.read_bytes())
    bad = tmp_path / "bad.tcca"
    data[len(data) // 2] ^= 4
    bad.write_bytes(data)
    assert tcc("check", bad).code == 1
    bad.write_bytes(artifact.read_bytes()[:-1])
    assert "B205" in tcc("check", bad).out
    bad.write_bytes(b"")
    assert tcc("run", bad).code == 1


def test_run_prints_the_fields_of_a_certified_run(tcc: Tcc, artifact: Path) -> None:
    ended = tcc("run", artifact, "--seed", "00" * 32, "--json")
    run = ended.json
    assert ended.code == 0 and run["claim_type"] == "RunWiseExact" and run["mode"] == "exact"
    assert run["seed"] == "00" * 32 and len(run["ledger_head"]) == 64
    assert set(run["plans"][0]) == {"calls", "cost", "value", "leaf_id"}
    assert tcc("run", artifact, "--seed", "00" * 32, "--json").json["plans"] == run["plans"]


def test_run_predicts_its_expansions_and_warns_of_a_cap_below_them(
    tcc: Tcc, artifact: Path
) -> None:
    ended = tcc("run", artifact)
    told = [line for line in ended.out.splitlines() if "expansions" in line]
    assert told[0].startswith("predicted") and told[1].endswith("predicted), 1 leaves")
    fields = tcc("run", artifact, "--json", "--race", "rest").json
    known = fields["predicted_expansions"]
    assert 1 <= known["lower"] <= known["upper"] < 100
    capped = tcc("run", artifact, "--max-expansions", 2)
    assert "--max-expansions is 2" in capped.err and capped.code == 2
    assert "predicted" not in tcc("run", artifact, "--no-predict").out
    assert "predicted_expansions" not in tcc("run", artifact, "--top", 2, "--json").json
    asked = tcc("run", artifact, "--top", 2, "--predict")
    assert asked.err == "no prediction: it is known for one plan alone\n" and asked.code == 0


def test_run_compiles_a_grammar_on_the_spot(tcc: Tcc, artifact: Path, grammar: Path) -> None:
    seed = ("--seed", "22" * 32, "--json")
    assert tcc("run", grammar, *seed).json["plans"] == tcc("run", artifact, *seed).json["plans"]


def test_a_capped_run_ends_with_two_and_a_valid_ledger(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "capped"
    ended = tcc("run", artifact, "--max-expansions", 2, "--ledger", ledger)
    assert ended.code == 2 and "NoCert" in ended.out
    validated = tcc("validate", ledger, "--artifact", artifact, "--json")
    assert (validated.code, validated.json["claim_upheld"]) == (0, False)


def test_validate_upholds_the_claim(tcc: Tcc, artifact: Path, ledger: Path) -> None:
    ended = tcc("validate", ledger, "--artifact", artifact, "--json")
    found = ended.json
    assert (ended.code, found["verdict"], found["claim_upheld"]) == (0, "VALID", True)
    assert found["claim_type"] == "RunWiseExact" and found["findings"] == []
    assert found["checked"]["nodes"] > 10 and set(found["kappa"]) == {"nodes", "tightened", "mean"}
    assert "claim upheld" in tcc("validate", ledger, "--artifact", artifact).out


def test_validate_tells_a_cut_ledger_from_a_forged_one(
    tcc: Tcc, artifact: Path, ledger: Path
) -> None:
    data = ledger.read_bytes()
    ledger.write_bytes(b"".join(data.splitlines(keepends=True)[:-1]))
    assert tcc("validate", ledger, "--artifact", artifact).code == 2
    ledger.write_bytes(data.replace(b'"kind":"leaf"', b'"kind":"lea f"', 1))
    assert tcc("validate", ledger, "--artifact", artifact).code == 1


def test_a_withheld_seed_has_to_be_handed_in(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "withheld"
    tcc("run", artifact, "--seed", "33" * 32, "--withhold-seed", "--ledger", ledger)
    assert tcc("validate", ledger, "--artifact", artifact).code == 2
    assert tcc("validate", ledger, "--artifact", artifact, "--seed", "33" * 32).code == 0
    assert tcc("validate", ledger, "--artifact", artifact, "--seed", "34" * 32).code == 1


def test_a_ledger_is_not_overwritten_unasked(tcc: Tcc, artifact: Path, ledger: Path) -> None:
    before = ledger.read_bytes()
    ended = tcc("run", artifact, "--ledger", ledger)
    assert ended.code == 2 and "--overwrite" in ended.err and ledger.read_bytes() == before
    assert tcc("run", artifact, "--ledger", ledger, "--overwrite").code == 0


def test_count_and_enumerate_agree(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text("""grammar g version "1"

tool a
tool b(k: 1 | 2)

plan = a? b{0,2}
""")
    assert tcc("count", source).out == "14\n"
    assert tcc("count", source, "--by-depth").out == "0\t1\n1\t3\n2\t6\n3\t4\n"
    plans = tcc("enumerate", source).out.splitlines()
    assert len(plans) == len(set(plans)) == 14 and plans[:2] == ["()", "a"]
    cut = tcc("enumerate", source, "--limit", 3, "--json")
    assert cut.code == 0 and cut.json["total"] == "14" and len(cut.json["plans"]) == 3


def test_every_grammar_to_copy_passes_its_own_test(tcc: Tcc) -> None:
    ended = tcc("test", *sorted(GRAMMARS.glob("*.tcg")))
    assert ended.code == 0, ended.err
    assert len(ended.out.splitlines()) >= 6


def test_a_failed_example_ends_with_one(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text("""grammar g version "1"

tool a

plan = a

reject a

expect plans = 2
""")
    ended = tcc("test", source)
    assert ended.code == 1 and f"{source}:7:" in ended.err and f"{source}:9:" in ended.err


def test_bad_usage_ends_with_two(tcc: Tcc, artifact: Path) -> None:
    assert tcc("cout", "x").code == 2
    assert tcc("check", "no such file").code == 2
    assert tcc("run", artifact, "--seed", "00").code == 2
    assert tcc("run", artifact, "--top", 0).code == 2
    assert tcc("run", artifact, "--eta", "0").code == 2
    assert tcc("explain", "TCC999").code == 2


def test_explain_gives_a_page(tcc: Tcc) -> None:
    assert tcc("explain", "tcc201").out.startswith("TCC201: ")


def test_a_bug_of_ours_ends_with_three_and_no_traceback(
    tcc: Tcc, artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcc.commands import count_command

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    monkeypatch.setattr(count_command.command, "callback", broken)
    ended = tcc("count", artifact)
    assert ended.code == 3 and "bug in tcc" in ended.err and "Traceback" not in ended.err


def test_importing_the_library_pulls_in_nothing_heavy() -> None:
    code = "import sys, tcc; print(sorted({m.split('.')[0] for m in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"lark", "networkx", "gmpy2", "rich", "click", "numpy", "tcc_compiler", "tcc_runtime"}
    assert not heavy & set(json.loads(out.stdout.replace("'", '"')))


def test_help_imports_no_command() -> None:
    code = (
        "import sys\nfrom tcc.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith(('tcc.commands.', 'lark', 'gmpy2'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"


def test_the_version_is_told_without_anything_heavy() -> None:
    code = (
        "import json, sys\nfrom tcc.main import main\ntry: main(['--version'])\n"
        "except SystemExit: pass\n"
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"lark", "networkx", "gmpy2", "rich", "numpy", "blake3"}
    ours = {"tcc_certs", "tcc_compiler", "tcc_runtime", "tcc_experiments"}
    assert not (heavy | ours) & set(json.loads(out.stdout.splitlines()[-1]))


def test_surrogate_mode_claims_less_and_finds_the_same_plan(tcc: Tcc, artifact: Path) -> None:
    seed = ("--seed", "44" * 32, "--json")
    exact = tcc("run", artifact, *seed).json
    surrogate = tcc("run", artifact, "--mode", "surrogate", *seed).json
    assert surrogate["claim_type"] == "RunWiseSurrogate"
    assert surrogate["plans"] == exact["plans"]


@pytest.mark.parametrize(
    "options",
    [
        ("--mode", "surrogate", "--inflate", "1.7"),
        ("--mode", "surrogate", "--keys", "anchored"),
        ("--mode", "fallback", "--tau", "2"),
        ("--truncate", 5),
        ("--beacon", "abcd", "--nonce", "01"),
        ("--count-bits", 3),
    ],
)
def test_every_mode_writes_a_ledger_that_validates(
    tcc: Tcc, artifact: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    ledger = tmp_path / "mode"
    run = tcc("run", artifact, *options, "--ledger", ledger, "--json")
    found = tcc("validate", ledger, "--artifact", artifact, "--json")
    assert found.code == 0, found.out
    assert found.json["claim_type"] == run.json["claim_type"]
    assert (run.code == 0) == found.json["claim_upheld"]


def test_pam_values_rank_the_plans_and_claim_nothing(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    asked = ("run", artifact, "--seed", "44" * 32, "--top", 3)
    ledgers = [tmp_path / "plain", tmp_path / "pam"]
    plain = tcc(*asked, "--json", "--ledger", ledgers[0]).json
    ranked = tcc(*asked, "--json", "--pam", "--ledger", ledgers[1]).json
    assert ranked["pam_claim"] == "NoCert"
    assert sorted(plan["pam"]["rank"] for plan in ranked["plans"]) == [1, 2, 3]
    values = [float(plan["pam"]["value"]) for plan in ranked["plans"]]
    by = sorted(ranked["plans"], key=lambda plan: plan["pam"]["rank"])
    assert [float(plan["pam"]["value"]) for plan in by] == sorted(values, reverse=True)
    bare = [{name: plan[name] for name in plan if name != "pam"} for plan in ranked["plans"]]
    assert bare == plain["plans"]
    assert (ranked["claim_type"], "pam_claim" in plain) == (plain["claim_type"], False)
    told = tcc(*asked, "--pam").out
    assert told.count("PaM ") == 3 and "rank 1: NoCert" in told
    assert "PaM" not in tcc(*asked).out


def test_the_opening_binds_settings_before_beacon_and_nonce(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    seed = ("--seed", "55" * 32)
    opening = tcc("run", artifact, *seed, "--opening-only").out.strip()
    public = ("--beacon", "0102", "--nonce", "ff")
    ledger = tmp_path / "opened"
    assert tcc("run", artifact, *seed, *public, "--ledger", ledger).code == 0
    held = ("validate", ledger, "--artifact", artifact, *public, "--opening")
    assert tcc(*held, opening).code == 0
    assert tcc(*held, "00" * 32).code == 1


def test_a_cut_run_is_resumed_to_the_same_result(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    seed, ledger = ("--seed", "66" * 32), tmp_path / "cut"
    whole = tcc("run", artifact, *seed, "--top", 3, "--ledger", ledger, "--json").json
    data = ledger.read_bytes()
    ledger.write_bytes(data[: len(data) // 2])
    again = tcc("run", artifact, *seed, "--resume", "--ledger", ledger, "--json")
    assert again.code == 0 and again.json["plans"] == whole["plans"]
    assert tcc("validate", ledger, "--artifact", artifact).code == 0
    assert tcc("run", artifact, "--resume", "--ledger", ledger).code == 2
    wrong = tcc("run", artifact, "--seed", "67" * 32, "--resume", "--ledger", ledger)
    assert wrong.code == 2 and "Traceback" not in wrong.err
