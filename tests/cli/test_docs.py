"""The pages show real outputs: the demo's, and those of every fenced example."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import tcc as library
from tcc.configuration import read_config
from tcc.main import COMMANDS
from tcc_compiler.language.catalogue import CATALOGUE
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.pricing.quotes import read_quotes
from tests.cli.conftest import Tcc
from tests.forking import launcher
from tests.langchain.world import LARGE, SAID, Scripted

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# These have tests of their own: tests/docs/test_language.py and
# tests/certs/policy/test_spec_examples.py.
OWN = {ROOT / "docs" / "spec" / f"{name}.md" for name in ("core", "language", "session")}
RUN = [page for page in PAGES if page not in OWN]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADER = 'grammar example version "1"\nstart question\ngoal notes\n'


def fenced(page: Path) -> list[tuple[str, str]]:
    """The language and the text of every fenced block of a page."""
    return FENCED.findall(page.read_text("utf-8"))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout to the examples, to be written in."""
    shutil.copytree(ROOT / "grammars", tmp_path / "grammars")
    (tmp_path / "certs").symlink_to(ROOT / "certs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same_every_time(text: str) -> str:
    """Without what the clock makes: how long compiling took, and the head of a ledger."""
    text = re.sub(r"\(\d+\.\d\d s\)", "(TIME)", text)
    return re.sub(r"head [0-9a-f]{64}", "head HEAD", text)


def demo_shown() -> str:
    """The section of docs/planning.md that shows what scripts/demo prints."""
    page = (ROOT / "docs" / "planning.md").read_text("utf-8")
    return page.split("## A larger grammar")[1].split("\n## ")[0]


def test_the_demo_prints_what_its_page_shows(tcc: Tcc, checkout: Path) -> None:
    (checkout / "out").mkdir()
    tour = demo_shown()
    lines = [line[4:] for line in tour.splitlines() if line.startswith("    ")]
    shown = "\n".join(lines).split("$ tcc ")[1:]
    assert [text.split()[0] for text in shown] == ["compile", "check", "run", "validate"]
    for text in shown:
        command, _, due = text.partition("\n")
        ended = tcc(*shlex.split(command))
        assert ended.code == 0
        assert same_every_time(ended.out) == same_every_time(due.rstrip()) + "\n"


def test_the_demo_runs_the_commands_that_its_page_shows() -> None:
    demo = (ROOT / "scripts" / "demo").read_text("utf-8")
    told = re.findall(r"^    \$ tcc (.*)$", demo_shown(), re.MULTILINE)
    shown = re.findall(r"^show (.*)$", demo, re.MULTILINE)
    seed = "0" * 63 + "1"
    assert [line.replace('"$seed"', seed).replace('"$out/', "out/").replace('"', "")
            for line in shown] == told  # fmt: skip


@cache
def research() -> library.Artifact:
    """What the examples of Python call `artifact`."""
    return library.compile_file(ROOT / "grammars" / "research.tcg")


def run_tcg(text: str, _: dict[str, Any]) -> None:
    """A whole grammar, or statements of one, without errors."""
    whole = text if re.search("^grammar ", text, re.MULTILINE) else HEADER + text
    assert compile_text(whole, Options()).diagnostics == ()


def run_python(text: str, names: dict[str, Any]) -> None:
    exec(compile(text, "example", "exec"), names)


def run_json(text: str, _: dict[str, Any]) -> None:
    """A book of quotes; the shell example that follows reads it from `quotes.json`."""
    read_quotes(text.encode(), library.compile_file("grammars/research.tcg"))
    Path("quotes.json").write_text(text, "utf-8")


def run_sh(text: str, _: dict[str, Any]) -> None:
    """Each command as it stands, with `tcc` and `python` those of the test."""
    # Programs that the examples start find the interpreter of the test, too.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": path}
    shell = (
        f'tcc() {{ {shlex.join(launcher("tcc"))} "$@"; }}\n'
        f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    )
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell + text],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


def run_yaml(text: str, _: dict[str, Any]) -> None:
    """A workflow that uses the action, or a configuration of pre-commit: with what they have."""
    found = yaml.safe_load(text)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    if "repos" in found:
        told = {hook["id"] for hook in found["repos"][0]["hooks"]}
        assert told <= {hook["id"] for hook in hooks}
        return
    steps = [step for job in found["jobs"].values() for step in job["steps"]]
    [used] = [step for step in steps if step["uses"].startswith("OWNER/tcc@")]
    assert set(used["with"]) <= set(inputs)


def run_toml(text: str, _: dict[str, Any]) -> None:
    """A `tcc.toml` that is taken as it is."""
    Path("shown.toml").write_text(text, "utf-8")
    read_config(Path("shown.toml"))


RUNNERS = {
    "toml": run_toml,
    "tcg": run_tcg,
    "python": run_python,
    "json": run_json,
    "sh": run_sh,
    "yaml": run_yaml,
}


# tests/docs/test_shown.py runs these and compares their output; test_policy_page.py runs the last.
SHOWN = {"README.md", "tutorial.md", "auditing.md", "planning.md", "policies.md"}


@pytest.mark.parametrize(
    "page",
    [page for page in RUN if page.name not in SHOWN],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_fenced_example_runs(page: Path, checkout: Path) -> None:
    if page.name == "errors.md":
        # Examples of errors: the tests of the catalogue, which makes the page, compile each.
        examples = [entry.example.rstrip() for entry in CATALOGUE.values() if entry.example]
        assert [text.rstrip() for _, text in fenced(page)] == examples
        return
    # What an example says that it has from elsewhere.
    names: dict[str, Any] = {
        "provider": SimpleNamespace(price_of=lambda call: "0.5"),
        "artifact": research(),
    }
    if page.name == "langgraph.md":
        names |= {"model": Scripted(script=SAID), "large": Scripted(script=LARGE)}
    for language, text in fenced(page):
        assert language in RUNNERS, f"{page.name}: an example without a language: {text[:60]}"
        Path("run.ledger").unlink(missing_ok=True)
        RUNNERS[language](text, names)


def test_the_page_on_ci_names_every_input_of_the_action() -> None:
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    told = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert told == list(yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"])


def test_the_documents_have_examples_of_every_language() -> None:
    pages = [page for page in RUN if page.name != "policies.md"]
    assert {language for page in pages for language, _ in fenced(page)} == RUNNERS.keys()


def test_indented_commands_are_commands_that_there_are() -> None:
    for page in PAGES:
        for command in re.findall(r"^    (?:\$ )?tcc (\w+)", page.read_text("utf-8"), re.MULTILINE):
            assert command in COMMANDS, f"{page.name}: tcc {command}"
