"""`tcc lint` and `tcc.toml`: levels, allowances, fixes, and what was left open."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

import tcc as library
from tcc.configuration import read_config
from tcc.options import ConfigError
from tcc_compiler.lint.linter import lint_compiled
from tcc_compiler.names.compile import compile_source
from tests.cli.conftest import GRAMMARS, Tcc

HEAD = """grammar g version "1"

tool a { cost 1 }
tool b { cost 2 }
"""
IDLE = HEAD + "rule r = a\nplan = a b\nexpect plans >= 1\n"


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    path = tmp_path / "g.tcg"
    path.write_text(IDLE, "utf-8")
    return path


# Shipped grammars with statements that the engine neither derives from others nor refutes in time.
OPEN = {"airline_desk", "database_agent", "purchasing", "shop_desk"}


@pytest.mark.parametrize("path", sorted(GRAMMARS.glob("*.tcg")), ids=lambda path: path.stem)
def test_the_shipped_grammars_are_clean_within_5_s(tcc: Tcc, path: Path) -> None:
    start = time.process_time()
    ended = tcc("lint", path, "--json")
    assert time.process_time() - start < 5
    assert (ended.json["findings"], ended.code) == ([], 0)
    for note in ended.json["notes"]:  # questions about all sessions that stay open
        assert (note["code"], note["level"]) == ("TCC715", "note")
        assert note["question"] in ("TCC704", "TCC746") and note["statement"] and note["missing"]
    assert not ended.json["notes"] or path.stem in OPEN
    assert ended.json["grammars"][0]["clean"] is True


def test_a_lint_is_a_finding_with_its_place(tcc: Tcc, idle: Path) -> None:
    idle.write_text(HEAD + "plan = a b\naccept a b\naccept a b\n", "utf-8")
    ended = tcc("lint", idle, "--json")
    assert ended.code == 1
    assert (ended.json["format"], ended.json["format_version"]) == ("tcc.lint", "1.0")
    (found,) = ended.json["findings"]
    assert (found["code"], found["level"], found["place"]["line"]) == ("TCC711", "warning", 7)
    assert found["related"][0]["place"]["line"] == 6


def test_a_grammar_without_plans_has_the_compilers_error(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(HEAD + "plan = a{3}\nlimit depth <= 2\n", "utf-8")
    ended = tcc("lint", path, "--json")
    (found,) = ended.json["findings"]
    assert (ended.code, found["code"], found["level"]) == (1, "TCC402", "error")


def test_what_limits_leave_open_is_a_note_and_exit_code_0(tcc: Tcc, idle: Path) -> None:
    idle.write_text(HEAD + "plan = (a | b){1,30}\nbefore b require a\n", "utf-8")
    ended = tcc("lint", idle, "--json", "--max-states", 8)
    assert (ended.code, ended.json["findings"]) == (0, [])
    (note,) = ended.json["notes"]
    assert (note["code"], note["level"], note["statement"]) == ("TCC403", "note", None)
    assert "states" in note["missing"]
    assert ended.json["grammars"][0]["clean"] is False


def test_an_expectation_that_is_not_decided_is_a_note_and_no_finding(tcc: Tcc, idle: Path) -> None:
    idle.write_text(HEAD + "plan = a b\nexpect always before b require a\n", "utf-8")
    ended = tcc("lint", idle, "--json")
    assert (ended.code, ended.json["findings"]) == (0, [])
    (note,) = ended.json["notes"]
    assert (note["code"], note["place"]["line"]) == ("TCC506", 6)
    assert (note["statement"], note["question"]) == ("always before b require a", "always")
    assert note["missing"] == "the gate refuses each session that was tried: `plan`"
    assert tcc("lint", idle).err.splitlines()[-1] == "1 note"


POLICY = """grammar g version "1"

tool approve(order: text, amount: number) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500)
tool reply(message: text)

limit depth <= 40
before refund require unused approve(same order, answer = yes)
"""


def test_a_lint_of_a_policy_names_the_statement_and_what_to_write(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(POLICY, "utf-8")
    ended = tcc("lint", path, "--json")
    (found,) = ended.json["findings"]
    (note,) = ended.json["notes"]
    assert ended.code == 1
    assert (found["code"], found["level"], found["place"]["line"]) == ("TCC742", "warning", 8)
    assert "`approve(same order, answer = yes)`" in found["message"]
    assert found["hint"] == "write: approve(same (order, amount), answer = yes)"
    assert (note["code"], note["level"], note["place"]["line"]) == ("TCC745", "note", 5)
    fixed = POLICY.replace("same order", "same (order, amount)")
    path.write_text(fixed, "utf-8")
    assert tcc("lint", path).code == 0


def test_a_lint_of_a_policy_is_allowed_by_a_comment_and_by_the_configuration(
    tcc: Tcc, tmp_path: Path
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(POLICY.rstrip() + "  # lint: allow TCC742 any amount\n", "utf-8")
    assert tcc("lint", path).code == 0
    path.write_text(POLICY, "utf-8")
    config = tmp_path / "tcc.toml"
    config.write_text('[lint.levels]\nTCC742 = "off"\nTCC745 = "error"\n', "utf-8")
    ended = tcc("lint", path, "--json")
    assert [(f["code"], f["level"]) for f in ended.json["findings"]] == [("TCC745", "error")]
    assert (ended.json["notes"], ended.code) == ([], 1)


@pytest.mark.parametrize("most", [4_000, pytest.param(10_000, marks=pytest.mark.campaign)])
def test_statements_are_linted_in_linear_time(most: int) -> None:
    def seconds(count: int) -> float:
        tools = count // 10
        lines = ['grammar g version "1"', "limit depth <= 9"]
        lines += [f"tool t{at}(id: text, to: text) gives (answer: yes | no)" for at in range(tools)]
        for at in range(count):
            one, other = at % tools, (7 * at + 1) % tools
            lines.append(
                (
                    f"before t{one} require t{other}(same id, answer = yes) since t{one}",
                    f'forbid t{one}(to ~ "x{at}[a-z]")',
                    f"before t{one} | t{other} require no t{other}",
                    "before any require t0 or t1",
                )[at % 4]
            )
        front = compile_source("\n".join(lines) + "\n")
        start = time.process_time()
        assert len(lint_compiled(front, None).findings) > count // 2
        return time.process_time() - start

    few, many = seconds(most // 4), seconds(most)
    assert many < 8 * max(few, 0.2)
    assert many < 20


def test_a_syntax_error_is_a_finding_and_a_missing_file_is_none(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(HEAD + "plan = a ((\n", "utf-8")
    assert tcc("lint", path).code == 1
    assert tcc("lint", tmp_path / "none.tcg").code == 2


def test_the_fixes_keep_the_core_and_the_comments_and_are_made_once(tcc: Tcc, idle: Path) -> None:
    text = HEAD + (
        "tool c(mode: fast) { cost 1 } # quick\n"
        "rule r = (a b) # for later\nplan = a b c\n  rule s = (a)\n"
        "limit depth <= 4 # a ceiling\nbefore b require a\n"
    )
    idle.write_text(text, "utf-8")
    before = library.compile_file(idle).core
    shown = tcc("lint", idle, "--diff")
    assert shown.code == 1
    assert "-  rule s = (a)" in shown.out
    assert idle.read_text("utf-8") == text
    assert tcc("lint", idle, "--fix").code == 0
    assert idle.read_text("utf-8") == HEAD + (
        'tool c(mode: "fast") { cost 1 } # quick\n# for later\nplan = a b c\n'
        "limit depth <= 4 # a ceiling\nbefore b require a\n"
    )
    assert library.compile_file(idle).core == before
    assert tcc("lint", idle, "--diff").code == 0


def test_a_fix_removes_one_of_two_statements_that_imply_each_other(tcc: Tcc, idle: Path) -> None:
    text = HEAD + "plan = a b\nlimit depth <= 9\nbefore b require a\nforbid b(no a)\n"
    idle.write_text(text, "utf-8")
    found = tcc("lint", idle, "--json")
    (finding,) = found.json["findings"]
    assert (finding["code"], finding["place"]["line"]) == ("TCC704", 8)
    assert "it follows from `before b require a`" in finding["message"]
    assert finding["related"][0]["place"]["line"] == 7
    ended = tcc("lint", idle, "--fix")
    assert ended.code == 0 and "removed: `forbid b(no a)`" in ended.err
    assert idle.read_text("utf-8") == text.replace("forbid b(no a)\n", "")


IMPLIED = """# a policy with more statements than it needs
grammar g version "1"

tool find(order: text max 9) gives (owner: text)
tool refund(order: text max 9, amount: integer 1 .. 20)
tool reply(message: text max 100)

before refund require find(same order)
before refund require find  # a comment that stays
before refund {
  require amount <= 15
  require amount <= 18
}
limit sum(refund.amount) <= 30
limit sum(refund.amount) <= 40
limit sum(refund.amount) per order <= 30 in session
limit count(reply) <= 3
limit count(reply) per message <= 3 across sessions
limit depth <= 12
"""


def test_a_fix_removes_statements_clauses_and_larger_bounds(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(IMPLIED, "utf-8")
    found = tcc("lint", path, "--json")
    lines = [one["place"]["line"] for one in found.json["findings"] if one["code"] == "TCC704"]
    # Line 17 implies line 18 in each session alone, and not in all sessions of an account.
    assert lines == [9, 12, 15, 16]
    tcc("lint", path, "--fix")
    left = path.read_text("utf-8")
    assert "# a comment that stays" in left and "require amount <= 15\n}" in left
    assert "across sessions" in left and "<= 40" not in left
    assert tcc("lint", path).code == 0


def test_a_tool_that_no_session_calls_is_named_with_the_statements(
    tcc: Tcc, tmp_path: Path
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(
        'grammar g version "1"\ntool look(n: integer 0 .. 9)\ntool ship\n'
        "forbid look(n > 4)\nbefore ship require look(n = 5)\nlimit depth <= 9\n",
        "utf-8",
    )
    found = tcc("lint", path, "--json")
    (finding,) = found.json["findings"]
    assert (found.code, finding["code"]) == (1, "TCC746")
    assert "`ship` can never be called" in finding["message"]
    assert "forbid look(n > 4)" in finding["hint"]
    assert "before ship require look(n = 5)" in finding["hint"]


def test_levels_come_from_the_nearest_file(tcc: Tcc, idle: Path) -> None:
    config = idle.parent / "tcc.toml"
    config.write_text('[lint.levels]\nTCC702 = "error"\nTCC711 = "off"\n', "utf-8")
    ended = tcc("lint", idle, "--json")
    assert [(f["code"], f["level"]) for f in ended.json["findings"]] == [("TCC702", "error")]
    assert ended.json["grammars"][0]["config"] == str(config)
    config.write_text(
        '[lint]\nallow = ["TCC702"]\n[lint.per-file]\n"*.tcg" = ["TCC711"]\n', "utf-8"
    )
    assert tcc("lint", idle).code == 0
    assert tcc("lint", idle, "--no-config").code == 1


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ("[lint]\nalow = []\n", "TCC723", 2, "allow"),
        ("[lnt]\n", "TCC723", 1, "lint"),
        ('[lint.levels]\nTCC702 = "loud"\n', "TCC724", 2, "error, warning or off"),
        ('[lint]\nallow = ["TCC799"]\n', "TCC723", 2, "TCC799"),
        ("[compile]\n\nmax-states = 0\n", "TCC724", 3, "at least 1"),
        ("[compile]\nbeta = 0.5\n", "TCC724", 2, '"0.25"'),
        ("[run]\nseed = 'x'\n", "TCC723", 2, "seed"),
        ("[lint\n", "TCC722", 1, "TOML"),
        ("a = " + "[" * 3000, "TCC722", 1, "TOML"),
        ("x" * 70_000, "TCC721", 1, "65536"),
    ],
)
def test_a_wrong_tcc_toml_is_refused_at_its_line(
    tcc: Tcc, idle: Path, text: str, code: str, line: int, said: str
) -> None:
    config = idle.parent / "tcc.toml"
    config.write_text(text, "utf-8")
    ended = tcc("lint", idle)
    assert ended.code == 2
    assert f"{config}:{line}:" in ended.err
    assert f"error[{code}]" in ended.err
    assert said in ended.err
    with pytest.raises(ConfigError):
        read_config(config)


def test_defaults_of_options_give_way_to_the_command_line(tcc: Tcc, idle: Path) -> None:
    config = idle.parent / "tcc.toml"
    config.write_text('[compile]\nbeta = "8"\nmax_states = 5000\n[run]\ntop = 1\n', "utf-8")
    ended = tcc("compile", idle, "--json")
    assert (ended.json["beta"], ended.json["config"]) == ("8", str(config))
    assert tcc("compile", idle, "--json", "--beta", "2").json["beta"] == "2"
    plain = tcc("compile", idle, "--json", "--no-config").json
    assert (plain["beta"], "config" in plain) == ("1", False)
    assert tcc("run", idle, "--json").code == 0
    assert tcc("lint", idle, "--config", config, "--no-config").code == 2


def test_a_long_search_is_told(tcc: Tcc, idle: Path) -> None:
    idle.write_text(HEAD + "plan = (a | b){9}\n", "utf-8")
    (idle.parent / "tcc.toml").write_text("[lint]\nlong-search = 3\n", "utf-8")
    (found,) = tcc("lint", idle, "--json").json["findings"]
    assert (found["code"], found["place"]["line"]) == ("TCC713", 1)


def test_the_library_gives_findings_as_values(idle: Path) -> None:
    linted = library.lint(idle)
    assert [finding.diagnostic.code for finding in linted.findings] == ["TCC702", "TCC711"]
    assert not linted.clean
    assert linted.fixed == HEAD + "plan = a b\nexpect plans >= 1\n"
    with pytest.raises(TypeError, match="max_states"):
        library.lint(idle, max_state=3)  # type: ignore[call-arg]


def test_a_folder_and_standard_input_are_linted_as_fmt_lays_them_out(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """grammar g version "1"

tool a
tool b

plan = a
"""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "g.tcg").write_text(text)
    found = tcc("lint", tmp_path, "--json")
    assert (found.code, {item["code"] for item in found.json["findings"]} >= {"TCC701"}) == (
        1,
        True,
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    found = tcc("lint", "-", "--json")
    assert found.code == 1
    assert {item["place"]["file"] for item in found.json["findings"]} == {"<stdin>"}
    found = tcc("lint", "-", "--fix")
    assert (found.code, "standard input cannot be mended" in found.err) == (2, True)


@pytest.mark.parametrize(
    "text",
    ["a." * 32_000 + "a = 1", "[lint]\nallow = 0x" + "f" * 6_000,
     "[lint]\nlong-search = [0x" + "f" * 6_000 + "]"],
    ids=["a long key", "an endless integer", "one in a list"],
)  # fmt: skip
def test_a_tcc_toml_that_would_take_for_ever_is_refused_at_once(
    text: str, tcc: Tcc, idle: Path
) -> None:
    (idle.parent / "tcc.toml").write_text(text + "\n")
    start = time.process_time()
    ended = tcc("lint", idle, "--json")
    assert ended.code == 2 and "TCC722" in ended.out + ended.err
    assert time.process_time() - start < 2


@pytest.mark.parametrize("table", ["compile", "run"])
@pytest.mark.parametrize("keys", [("max-states", "max_states"), ("max_states", "max-states")])
def test_an_option_spelled_in_two_ways_is_not_taken_twice(
    tmp_path: Path, table: str, keys: tuple[str, str]
) -> None:
    key = (
        keys if table == "compile" else tuple(name.replace("states", "expansions") for name in keys)
    )
    config = tmp_path / "tcc.toml"
    config.write_text(f"[{table}]\n{key[0]} = 1000\n{key[1]} = 2\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_config(config)
    assert [
        (one.code, one.span.line) for one in caught.value.diagnostics if "twice" in one.message
    ] == [("TCC723", 2)]


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "dangling"])
def test_a_tcc_toml_that_is_no_file_is_told_and_not_passed_over(
    tcc: Tcc, idle: Path, kind: str
) -> None:
    config = idle.parent / "tcc.toml"
    if kind == "fifo":
        os.mkfifo(config)
    elif kind == "folder":
        config.mkdir()
    else:
        config.symlink_to("tcc.toml" if kind == "loop" else "none")
    ended = tcc("lint", idle)
    assert ended.code == 2 and "TCC721" in ended.err


@pytest.mark.parametrize("command", ["compile", "lint", "test", "run"])
@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "dangling", "missing", "device", "big"])
def test_a_config_that_is_no_file_is_a_coded_error_with_its_place(
    tcc: Tcc, idle: Path, kind: str, command: str
) -> None:
    config = idle.parent / "other.toml"
    if kind == "fifo":
        os.mkfifo(config)
    elif kind == "folder":
        config.mkdir()
    elif kind in ("loop", "dangling"):
        config.symlink_to("other.toml" if kind == "loop" else "none")
    elif kind == "device":
        config = Path("/dev/zero")
    elif kind == "big":
        config.write_bytes(b"# " + b"x" * (1 << 16))
    before = sorted(idle.parent.iterdir())
    ended = tcc(command, idle, "--config", config)
    assert ended.code == 2 and ended.err.startswith(f"{config}:1:1: error[TCC721]: "), ended.err
    assert "65536 bytes" in ended.err and "grammar" not in ended.err
    assert sorted(idle.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("a = 1", 1, "TCC723"),
        ("[compile]\nenv = 1", 2, "TCC723"),
        ("[run]\nseed = '00'", 2, "TCC723"),
        ("[run]\nafter = ['a']", 2, "TCC723"),
        ("[compile.tilt]\nx = 1", 1, "TCC724"),
        ("[compile]\ntilt = '3'", 2, "TCC724"),
        ("[compile]\ntilt = true", 2, "TCC724"),
        ("[compile]\ntilt = 1.5", 2, "TCC724"),
        ("[compile]\ntimeout = nan", 2, "TCC724"),
        ("[compile]\ntimeout = 1979-05-27", 2, "TCC724"),
        ("[compile]\nrelax = [['price']]", 2, "TCC724"),
        ("[run]\ntop = 99999999999999999999", 1, "TCC722"),
        ("[run]\nmode = 'none'", 2, "TCC724"),
        ("[lint]\nallow = 'TCC702'", 2, "TCC724"),
        ("[lint.levels]\nTCC702 = 'loud'", 2, "TCC724"),
        ("compile = 3", 1, "TCC724"),
        ("[compile", 1, "TCC722"),
        ("\0", 1, "TCC721"),
    ],
)
def test_an_unknown_key_or_a_wrong_kind_is_a_coded_error_with_its_line(
    tcc: Tcc, idle: Path, text: str, line: int, code: str
) -> None:
    config = idle.parent / "tcc.toml"
    config.write_text(text + "\n")
    for command in ("compile", "lint", "test", "run"):
        ended = tcc(command, idle)
        assert ended.code == 2 and f"{config}:{line}:" in ended.err and code in ended.err
        assert tcc(command, idle, "--no-config").code != 3


def test_the_environment_sets_no_option_and_a_config_expands_nothing(
    tcc: Tcc, idle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tcc("inspect", idle, "--json").json
    for name in ("TCC_TILT", "TCC_COMPILE_TILT", "TCC_INSPECT_TILT", "TILT"):
        monkeypatch.setenv(name, "3")
    for name in ("TCC_CONFIG", "TCC_COMPILE_CONFIG"):
        monkeypatch.setenv(name, "/dev/zero")
    assert tcc("inspect", idle, "--json").json == known
    assert tcc("compile", idle, "--json").json["tilt"] == known["tilt"]
    monkeypatch.setenv("BETA", "2")
    (idle.parent / "tcc.toml").write_text('[compile]\nbeta = "$BETA"\n')
    ended = tcc("compile", idle)
    assert ended.code == 2 and "$BETA" in ended.err
