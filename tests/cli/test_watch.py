"""`--watch`: what makes it begin again, and how it ends; in a real process too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from tcc.opening import EVERY, See, watch
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tests.cli.conftest import Tcc

GOOD = 'grammar g version "1"\nuse "t.tcg"\nplan = a\naccept a\n'
TOOLS = "tool a\n"


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    (tmp_path / "t.tcg").write_text(TOOLS)
    path = tmp_path / "g.tcg"
    path.write_text(GOOD)
    return path


class World:
    """A compilation that is watched, with a clock of its own: each look carries out one step."""

    def __init__(self, grammar: Path, *steps: Callable[[], object]) -> None:
        self.grammar = grammar
        # A change is seen at one look, and at the next that it is over.
        self.steps = [look for step in steps for look in (step, idle)]
        self.codes: list[int] = []
        self.looks: list[float] = []
        self.during: Callable[[], object] = lambda: None

    def work(self, see: See) -> int:
        compiled = compile_file(self.grammar, Options())
        self.during()
        see(compiled)
        self.codes.append(CLEAN if compiled.artifact is not None else FINDINGS)
        return self.codes[-1]

    def sleep(self, seconds: float) -> None:
        self.looks.append(seconds)
        if not self.steps:
            raise KeyboardInterrupt
        self.steps.pop(0)()

    def run(self) -> int:
        return watch([self.grammar], self.work, sleep=self.sleep, clock=lambda: "00:00:00")


def idle() -> None:
    """Nothing happens."""


def test_it_begins_again_when_the_grammar_or_what_it_uses_has_changed(grammar: Path) -> None:
    used = grammar.parent / "t.tcg"
    world = World(
        grammar,
        idle,
        lambda: grammar.write_text(GOOD.replace("plan = a", "plan = b")),
        idle,
        lambda: used.write_text("tool a\ntool b"),
        lambda: grammar.write_text(GOOD.replace("plan = a", "plan = a | b")),
        idle,
    )
    assert world.run() == CLEAN
    # An accept line that fails is a finding, as is a name that there is not.
    assert world.codes == [CLEAN, FINDINGS, FINDINGS, CLEAN]
    assert set(world.looks) == {EVERY}


def test_a_file_that_is_being_written_is_read_when_it_is_done(grammar: Path) -> None:
    world = World(grammar)
    parts = [GOOD[:place] for place in range(0, 20, 4)]
    world.steps = [lambda part=part: grammar.write_text(part) for part in [*parts, GOOD + "#"]]
    world.steps += [idle, idle]
    assert world.run() == CLEAN
    assert world.codes == [CLEAN, CLEAN]


def test_a_file_that_is_written_all_the_time_is_read_in_between(grammar: Path) -> None:
    world = World(grammar)
    world.steps = [lambda n=n: grammar.write_text(GOOD + "#" * n) for n in range(1, 40)]
    assert world.run() == CLEAN
    assert len(world.codes) == 1 + 39 // 11


def test_nothing_is_done_while_nothing_changes(grammar: Path) -> None:
    world = World(grammar, *[idle] * 50)
    assert world.run() == CLEAN
    assert world.codes == [CLEAN]


def test_a_file_that_vanishes_is_waited_for(grammar: Path) -> None:
    used = grammar.parent / "t.tcg"
    world = World(
        grammar,
        used.unlink, idle, lambda: used.write_text(TOOLS), idle,
        grammar.unlink, idle, lambda: grammar.write_text(GOOD),
    )  # fmt: skip
    assert world.run() == CLEAN
    assert world.codes == [CLEAN, FINDINGS, CLEAN, FINDINGS, CLEAN]


def test_a_file_that_was_never_there_is_waited_for(grammar: Path) -> None:
    used = grammar.parent / "t.tcg"
    used.unlink()
    world = World(grammar, idle, lambda: used.write_text(TOOLS))
    assert world.run() == CLEAN
    assert world.codes == [FINDINGS, CLEAN]
    grammar.unlink()
    world = World(grammar, idle, lambda: grammar.write_text(GOOD))
    assert world.run() == CLEAN
    assert world.codes == [FINDINGS, CLEAN]


def test_a_file_that_is_replaced_by_one_of_its_size_and_time_has_changed(grammar: Path) -> None:
    def replace() -> None:
        was = grammar.stat()
        other = grammar.with_name("other")
        other.write_text(GOOD.replace("plan = a", "plan = b"))
        os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
        other.rename(grammar)

    world = World(grammar, replace)
    assert world.run() == FINDINGS
    assert world.codes == [CLEAN, FINDINGS]


@pytest.mark.parametrize("file", ["g.tcg", "t.tcg"])
def test_a_change_while_it_works_is_not_lost(file: str, grammar: Path) -> None:
    path = grammar.parent / file
    world = World(grammar, idle)

    def change() -> None:
        if not world.codes:
            path.write_text("tool b # another")

    world.during = change
    assert world.run() == FINDINGS
    assert world.codes == [CLEAN, FINDINGS]


def test_a_file_that_cannot_be_read_is_not_tried_over_and_over(grammar: Path) -> None:
    (grammar.parent / "t.tcg").unlink()
    (grammar.parent / "t.tcg").mkdir()
    world = World(grammar, *[idle] * 5)
    assert world.run() == FINDINGS
    assert world.codes == [FINDINGS]


def test_an_error_of_the_command_is_said_and_it_goes_on(
    grammar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endings: Iterator[Exception] = iter(
        [
            click.ClickException("cannot write x"),
            OSError(5, "broken", "y"),
            click.exceptions.Exit(7),
        ]
    )

    def work(see: See) -> int:
        see(compile_file(grammar, Options()))
        raise next(endings)

    world = World(grammar, lambda: grammar.write_text("1"), lambda: grammar.write_text("22"))
    assert watch([grammar], work, sleep=world.sleep, clock=lambda: "") == 7
    said = capsys.readouterr().err
    assert "Error: cannot write x\n" in said and "Error: y: broken\n" in said


def test_interrupted_before_there_is_a_result_it_ends_with_2(grammar: Path) -> None:
    def work(_: See) -> int:
        raise KeyboardInterrupt

    assert watch([grammar], work) == DECLINED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compile", "-", "-o", "x", "--watch"), "--watch is for files"),
        (("test", "-", "--watch"), "--watch is for files"),
        (("compile", "g.tcg", "--watch", "--json"), "json is one document"),
        (("test", "g.tcg", "--watch", "--output-format", "sarif"), "sarif is one document"),
    ],
)
def test_what_cannot_be_watched_is_refused(arguments: tuple[str, ...], said: str, tcc: Tcc) -> None:
    ended = tcc(*arguments)
    assert ended.code == 2 and said in ended.err


class Watching:
    """A real `tcc .. --watch`, whose output is read line by line."""

    def __init__(self, *arguments: object) -> None:
        path = os.pathsep.join(str(Path(at).resolve()) for at in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tcc", *map(str, arguments), "--watch"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip

    def until(self, end: str) -> str:
        """What it says up to the line that begins so."""
        said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said += line
            if line.startswith(end):
                return said
        raise AssertionError(said)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def started() -> Iterator[Callable[..., Watching]]:
    running: list[Watching] = []

    def start(*arguments: object) -> Watching:
        running.append(Watching(*arguments))
        return running[-1]

    signal.alarm(120)
    yield start
    signal.alarm(0)
    for one in running:
        one.process.kill()
        one.process.wait()
        assert one.process.stdout is not None
        one.process.stdout.close()


def test_a_real_compile_makes_the_artifact_anew(
    grammar: Path, started: Callable[..., Watching]
) -> None:
    made = grammar.with_suffix(".tcca")
    one = started("compile", grammar)
    assert f"compiled {grammar} to {made}" in one.until("watching 2 files")
    first = made.read_bytes()
    grammar.write_text(GOOD.replace("plan = a", "plan = a?"))
    one.until("watching 2 files")
    second = made.read_bytes()
    assert second != first
    grammar.write_text("plan = (")
    assert "error[TCC114]" in one.until("watching 2 files")
    assert made.read_bytes() == second
    assert one.interrupt() == FINDINGS


def test_a_real_test_tells_each_result_and_ends_with_the_last(
    grammar: Path, started: Callable[..., Watching]
) -> None:
    one = started("test", grammar)
    said = one.until("watching 2 files")
    held = f"{grammar}: 1 example and 0 expectations hold"
    assert time.strftime("[%H:")[:2] == said[:2] and held in said
    away = grammar.rename(grammar.with_suffix(".away"))
    assert "error[TCC110]" in one.until("watching 2 files")
    away.rename(grammar)
    assert held in one.until("watching 2 files")
    assert one.interrupt() == CLEAN
