"""`action.yml` run as GitHub runs it: its steps by bash, in a checkout with a base and a change."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import tcc as library
from tests.cli.test_formats import read_command
from tests.forking import launcher

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
OLD = """grammar g version "1"

tool a { cost 1 }

plan = a

accept a
"""
WIDER = OLD.replace("plan = a", "plan = a{1,2}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the steps have printed and left.

    Attributes:
        failed: the names of the steps that failed.
        out: what they printed, together.
        summary: the page that GitHub shows under the job.
        outputs: of the action.
        path: what was added to the search path.
    """

    failed: list[str]
    out: str
    summary: str
    outputs: dict[str, str]
    path: str


class Runner:
    """GitHub's runner, as far as a composite action sees it."""

    def __init__(self, folder: Path, checkout: Path, base: str, more: dict[str, str]) -> None:
        given = {name: told.get("default", "") for name, told in ACTION["inputs"].items()}
        assert set(more) <= set(given)
        self._known = {f"inputs.{name}": value for name, value in (given | more).items()}
        self._known |= {"github.action_path": str(ROOT)}
        self._known["github.event.pull_request.base.sha"] = base
        self._checkout, self._temp = checkout, folder / "temp"
        self._temp.mkdir()
        for name in ("path", "output", "summary", "env"):
            (folder / name).touch()
        self._files = {f"GITHUB_{name}": str(folder / name.lower().removeprefix("step_"))
                       for name in ("PATH", "OUTPUT", "STEP_SUMMARY", "ENV")}  # fmt: skip

    def value(self, text: str) -> str:
        """A text with its expressions evaluated: names, and the first of several that is given."""

        def one(found: re.Match[str]) -> str:
            return next((v for n in found[1].split(" || ") if (v := self._known[n])), "")

        return EXPRESSION.sub(one, text)

    def run(self, *, install: bool) -> Job:
        failed, out = [], []
        for step in STEPS:
            if failed and step.get("if") != "${{ !cancelled() }}":
                continue
            if step["name"] == "Install tcc" and not install:
                continue
            ended = self._step(step)
            out.append(ended.stdout)
            if ended.returncode != 0:
                failed.append(step["name"])
                out.append(ended.stderr)
            self._read_outputs(step)
        outputs = {name: self.value(told["value"]) for name, told in ACTION["outputs"].items()}
        summary = Path(self._files["GITHUB_STEP_SUMMARY"]).read_text()
        path = Path(self._files["GITHUB_PATH"]).read_text().strip()
        return Job(failed=failed, out="".join(out), summary=summary, outputs=outputs, path=path)

    def _step(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        script = self._temp / "step.sh"
        script.write_text(step["run"])
        added = Path(self._files["GITHUB_PATH"]).read_text().split()
        environment = os.environ | self._files | {
            "RUNNER_TEMP": str(self._temp),
            "GITHUB_WORKSPACE": str(self._checkout),
            "PATH": os.pathsep.join([*reversed(added), os.environ["PATH"]]),
            **{name: self.value(str(text)) for name, text in step.get("env", {}).items()},
        }  # fmt: skip
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self._checkout, env=environment, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip

    def _read_outputs(self, step: dict[str, Any]) -> None:
        for output in ACTION["outputs"].values():
            for name in EXPRESSION.findall(output["value"]):
                self._known.setdefault(name, "")
        for line in Path(self._files["GITHUB_OUTPUT"]).read_text().splitlines():
            name, _, value = line.partition("=")
            self._known[f"steps.{step.get('id')}.outputs.{name}"] = value


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one grammar, committed; `tcc` is that of this test."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "g.tcg").write_text(OLD)
    commit(folder)
    shims = tmp_path / "bin"
    shims.mkdir()
    (shims / "tcc").write_text(f'#!/bin/sh\nexec {shlex.join(launcher("tcc"))} "$@"\n')
    (shims / "tcc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}{os.pathsep}{os.environ['PATH']}")
    rooms = os.pathsep.join(str(Path(room).resolve()) for room in sys.path if room)
    monkeypatch.setenv("PYTHONPATH", rooms)
    return folder


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


def run(tmp_path: Path, checkout: Path, base: str = "", **more: str) -> Job:
    named = {name.replace("_", "-"): value for name, value in more.items()}
    folder = tmp_path / f"job{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    return Runner(folder, checkout, base, named).run(install=False)


def commands(job: Job) -> list[tuple[str, dict[str, str], str]]:
    return [read_command(line) for line in job.out.splitlines() if line.startswith("::")]


def test_no_input_becomes_part_of_a_script_and_every_expression_is_known() -> None:
    known = {f"inputs.{name}" for name in ACTION["inputs"]}
    known |= {"github.action_path", "github.event.pull_request.base.sha", "!cancelled()"}
    for step in STEPS:
        assert "${{" not in step["run"] and step["shell"] == "bash"
        told = [*step.get("env", {}).values(), step.get("if", "")]
        for text in EXPRESSION.findall(" ".join(told)):
            assert set(text.split(" || ")) <= known, text
    assert all(told["description"] for told in ACTION["inputs"].values())


@pytest.mark.campaign
def test_a_change_that_allows_nothing_new_passes(tmp_path: Path, checkout: Path) -> None:
    base = commit(checkout)
    (checkout / "g.tcg").write_text(OLD + "# said\n")
    commit(checkout)
    job = run(tmp_path, checkout, base)
    assert job.failed == []
    assert [(level, found["title"]) for level, found, _ in commands(job)] == [
        ("notice", "tcc diff")
    ]
    assert job.summary.startswith("### Not breaking: equal")
    log = Path(job.outputs["sarif"])
    assert log.is_file() and '"results": []' in log.read_text()
    assert git(checkout, "worktree", "list").count("\n") == 0  # nothing is left behind


@pytest.mark.campaign
def test_a_change_that_allows_more_fails_with_an_annotation(tmp_path: Path, checkout: Path) -> None:
    base = commit(checkout)
    (checkout / "g.tcg").write_text(WIDER)
    commit(checkout)
    job = run(tmp_path, checkout, base)
    assert job.failed == ["Compare with the base"]
    [(level, found, text)] = commands(job)
    assert (level, found) == ("error", {"file": "g.tcg", "title": "tcc diff"})
    assert text.startswith("wider: ") and "shortest: a a" in text
    assert "### Breaking: wider" in job.summary
    assert run(tmp_path, checkout, base, breaking="narrower").failed == []
    told = run(tmp_path, checkout, base, breaking="none")
    assert told.failed == [] and commands(told) == [] and "wider" in told.summary
    assert run(tmp_path, checkout, "").summary == ""  # a push has no base


def test_whatever_is_wrong_is_annotated_by_one_job(tmp_path: Path, checkout: Path) -> None:
    base = commit(checkout)
    (checkout / "g.tcg").write_text(WIDER)
    (checkout / "sub dir").mkdir()
    (checkout / "sub dir" / "b c.tcg").write_text('grammar g version "1"\ntool a\nplan = b\n')
    library.save(library.compile_text(OLD), checkout / "g.tcca")
    subprocess.run(
        ["tcc", "pin", "g.tcca", "--no-source"], cwd=checkout, check=True, capture_output=True
    )
    library.save(library.compile_text(WIDER), checkout / "g.tcca")
    commit(checkout)
    job = run(tmp_path, checkout, base)
    assert job.failed == [step["name"] for step in STEPS[1:]]
    found = {
        (level, told.get("file"), told["title"], told.get("line"))
        for level, told, _ in commands(job)
    }
    assert found == {
        ("error", "sub dir/b c.tcg", "TCC202", "3"),
        ("error", "g.tcca", "TCC843", None),
        ("error", "g.tcg", "tcc diff", None),
        ("notice", "sub dir/b c.tcg", "tcc diff", None),
    }
    assert "sub%20dir/b%20c.tcg" in Path(job.outputs["sarif"]).read_text()
    assert job.summary.startswith("### Breaking: wider")
    assert git(checkout, "worktree", "list").count("\n") == 0  # nothing is left behind


def test_grammars_are_named_by_pathspecs_and_never_read_as_a_script(
    tmp_path: Path, checkout: Path
) -> None:
    hostile = "$(touch hacked); `touch hacked`\n*.tcg"
    job = run(tmp_path, checkout, grammars=hostile)
    assert job.failed == [] and not (checkout / "hacked").exists()
    none = run(tmp_path, checkout, grammars="nothing")
    assert none.failed == [] and "no grammar matches" in none.out


@pytest.mark.campaign
def test_what_is_pinned_is_checked_where_there_is_a_lock(tmp_path: Path, checkout: Path) -> None:
    assert run(tmp_path, checkout, locked="true").failed == ["Check the pinned artifacts"]
    for command in (("compile", "g.tcg"), ("pin", "g.tcca")):
        subprocess.run(["tcc", *command], cwd=checkout, check=True, capture_output=True)
    assert run(tmp_path, checkout).failed == []
    (checkout / "g.tcca").write_bytes(b"another")
    job = run(tmp_path, checkout)
    assert job.failed == ["Check the pinned artifacts"]
    [(_, found, _)] = commands(job)
    assert found == {"file": "g.tcca", "title": "B201"}
    assert run(tmp_path, checkout, locked="false").failed == []


@pytest.mark.campaign
def test_a_base_that_a_shallow_checkout_has_not_is_fetched(tmp_path: Path, checkout: Path) -> None:
    base = commit(checkout)
    (checkout / "g.tcg").write_text(WIDER)
    commit(checkout)
    git(checkout, "config", "uploadpack.allowAnySHA1InWant", "true")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{checkout}", str(shallow))
    assert run(tmp_path, shallow, base).failed == ["Compare with the base"]


@pytest.mark.campaign
def test_a_base_that_does_not_compile_is_compared_with_nothing(
    tmp_path: Path, checkout: Path
) -> None:
    (checkout / "g.tcg").write_text("grammar (")
    base = commit(checkout)
    (checkout / "g.tcg").write_text(OLD)
    (checkout / "new.tcg").write_text(OLD)  # the base has no such grammar
    commit(checkout)
    job = run(tmp_path, checkout, base)
    assert job.failed == []
    said = [(level, told["file"], text.partition(",")[0]) for level, told, text in commands(job)]
    assert said == [
        ("warning", "g.tcg", "g.tcg does not compile in the base"),
        ("notice", "new.tcg", "added: the base has no grammar to compare it with"),
    ]
    assert "nothing is compared" in job.summary and "added: " in job.summary


def renamed(checkout: Path, old: str, new: str, text: str) -> None:
    (checkout / new).parent.mkdir(parents=True, exist_ok=True)
    (checkout / old).rename(checkout / new)
    (checkout / new).write_text(text)
    commit(checkout)


@pytest.mark.parametrize("new", ["h.tcg", "policies/sub dir/a,b: 100%.tcg"])
def test_a_renamed_grammar_is_compared_with_its_old_name(
    tmp_path: Path, checkout: Path, new: str
) -> None:
    base = commit(checkout)
    renamed(checkout, "g.tcg", new, WIDER)
    job = run(tmp_path, checkout, base)
    assert job.failed == ["Compare with the base"]
    told, found = commands(job)
    assert (told[0], told[1]["file"]) == ("notice", new)
    assert told[2] == "renamed from g.tcg: compared with that"
    assert (found[0], found[1]["file"]) == ("error", new)
    assert found[2].startswith("wider: ")
    assert "renamed from g.tcg" in job.summary and "### Breaking: wider" in job.summary


def test_a_grammar_that_is_renamed_only_is_equal(tmp_path: Path, checkout: Path) -> None:
    base = commit(checkout)
    renamed(checkout, "g.tcg", "policies/g.tcg", OLD)
    # The old name is outside of what is compared, and is found all the same.
    job = run(tmp_path, checkout, base, grammars="policies/*.tcg")
    assert job.failed == [] and "### Not breaking: equal" in job.summary
    assert commands(job)[0][2] == "renamed from g.tcg: compared with that"


def test_added_and_deleted_grammars_are_named(tmp_path: Path, checkout: Path) -> None:
    (checkout / "gone.tcg").write_text(OLD)
    other = """grammar other version "7"

tool z { cost 4 }
tool y { cost 9 }

plan = z y z
"""
    (checkout / "moved.tcg").write_text(other)
    base = commit(checkout)
    (checkout / "gone.tcg").unlink()
    renamed(checkout, "moved.tcg", "archive/moved.tcg", other)
    new = """grammar new version "3"

tool p { price 2 }

plan = p{2,3}

limit price <= 6
"""
    (checkout / "new.tcg").write_text(new)
    commit(checkout)
    job = run(tmp_path, checkout, base, grammars="*.tcg\n:!archive/*.tcg")
    assert job.failed == []
    said = {(level, found["file"], text) for level, found, text in commands(job)
            if found["title"] == "tcc diff" and "file" in found}  # fmt: skip
    lost = "nothing is compared with it"
    assert said >= {
        ("notice", "new.tcg", "added: the base has no grammar to compare it with"),
        ("warning", "gone.tcg", f"deleted: the base has it, and {lost}"),
        ("warning", "moved.tcg", f"deleted: the base has it, and {lost}"),
    }
    for name in ("new.tcg: added", "gone.tcg: deleted", "moved.tcg: deleted"):
        assert name in job.summary
    # Without the exception the folder is matched, and only one grammar is gone.
    every = run(tmp_path, checkout, base)
    assert ("notice", "archive/moved.tcg") in {
        (level, found.get("file")) for level, found, _ in commands(every)
    }
    assert "moved.tcg: deleted" not in every.summary
    # It went where no pattern looks.
    out = run(tmp_path, checkout, base, grammars="moved.tcg")
    [(level, found, text)] = [one for one in commands(out) if "file" in one[1]]
    assert (level, found["file"]) == ("warning", "moved.tcg")
    assert text.startswith("renamed to archive/moved.tcg, which the input grammars does not match")


def test_when_all_grammars_are_deleted_that_is_said(tmp_path: Path, checkout: Path) -> None:
    base = commit(checkout)
    (checkout / "g.tcg").unlink()
    commit(checkout)
    job = run(tmp_path, checkout, base)
    assert "g.tcg: deleted" in job.summary
    assert ("warning", "g.tcg") in {(level, told.get("file")) for level, told, _ in commands(job)}


def test_a_pathspec_that_git_refuses_fails_the_action(tmp_path: Path, checkout: Path) -> None:
    """It matches nothing, and that is not "no grammar"."""
    job = run(tmp_path, checkout, commit(checkout), grammars=":(nonsense)*.tcg")
    assert job.failed == ["Test the grammars", "Compare with the base"]


@pytest.mark.campaign
def test_the_whole_action_with_its_installation(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    base = commit(checkout)
    (checkout / "g.tcg").write_text(WIDER)
    commit(checkout)
    folder = tmp_path / "job"
    folder.mkdir()
    job = Runner(folder, checkout, base, {"python": sys.executable}).run(install=True)
    assert job.failed == ["Compare with the base"], job.out
    installed = Path(job.path) / "tcc"
    assert installed.is_file() and str(installed).startswith(str(folder))


HELD = """grammar g version "1"

tool find(order: text max 9) { cost 1 }
tool refund(order: text max 9, amount: integer 1 .. 20) { cost 1 }

plan = (find | refund){0,3}

before refund require find(same order)
limit sum(refund.amount) <= 30
"""


def test_the_summary_shows_a_statement_that_lets_more_through(
    tmp_path: Path, checkout: Path
) -> None:
    """Plans are the same on both sides: only a limit on open values is higher."""
    (checkout / "g.tcg").write_text(HELD)
    base = commit(checkout)
    (checkout / "g.tcg").write_text(HELD.replace("<= 30", "<= 35"))
    job = run(tmp_path, checkout, base)
    assert job.failed == ["Compare with the base"]
    assert "more is let through" in job.summary
    assert "the new gate allows more sessions" in job.summary
    assert re.search(r"old gate refuses it \| .*limit sum.*30", job.summary)
    assert re.search(r"\| statement changed \| .*30 became .*35 .*wider", job.summary)
    [(kind, message)] = [
        (kind, message)
        for kind, message in map(read_kind, job.out.splitlines())
        if "tcc diff" in kind
    ]
    assert kind.startswith("error") and "more is let through" in message


def read_kind(line: str) -> tuple[str, str]:
    """A workflow command and its text."""
    head, _, text = line.partition("::")[2].partition("::")
    return head, text.replace("%0A", "\n")


def test_an_expectation_about_sessions_fails_the_action(tmp_path: Path, checkout: Path) -> None:
    (checkout / "g.tcg").write_text(HELD + "expect always before find require refund\n")
    job = run(tmp_path, checkout)
    assert job.failed == ["Test the grammars"]
    assert "TCC505" in job.out and "a session breaks the statement" in job.out


@pytest.mark.parametrize(
    ("hook", "text", "code"),
    [
        ("tcc-lint", HELD + "forbid find\n", "TCC701"),
        ("tcc-test", HELD + "expect plans = 3\n", "TCC503"),
        ("tcc-test", HELD + "expect reachable find\n", ""),
        ("tcc-lint", HELD, ""),
    ],
)
def test_a_hook_fails_where_its_command_does(
    tmp_path: Path, checkout: Path, hook: str, text: str, code: str
) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    [entry] = [one["entry"] for one in hooks if one["id"] == hook]
    (checkout / "g.tcg").write_text(text)
    ended = subprocess.run(
        ["bash", "-c", f"{entry} g.tcg"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert ended.returncode == (1 if code else 0), ended.stdout + ended.stderr
    assert code in ended.stdout + ended.stderr
