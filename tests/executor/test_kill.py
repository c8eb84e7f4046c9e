"""An execution killed anywhere, and its ledger reopened: nothing twice, nothing out of order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc as library
from tcc_runtime.artifact.plans import contains
from tests import forking
from tests.executor.grammars import PLAIN, SHOP
from tests.forking import environment

TWICE = "\n".join(
    line.replace("plan = find", "plan = find find").replace("| find", "| find find")
    for line in SHOP.splitlines()
)


def ran(artifact: Path, ledger: Path, log: Path, at: int, mode: str) -> tuple[int, str]:
    told = (str(artifact), str(ledger), str(log), str(at), mode)
    ended = forking.run(["-m", "tests.executor.killed", *told], env=environment())
    assert ended.returncode in (0, -9), ended.stderr
    return ended.returncode, ended.stdout


def has_ended(ledger: Path) -> bool:
    """Whether the session's last whole record is its end."""
    lines = ledger.read_bytes().splitlines() if ledger.exists() else []
    return bool(lines) and lines[-1].startswith(b'{"abandoned":')


def logged(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.parametrize("mode", ["key", "plain"])
@pytest.mark.parametrize("text", [PLAIN, TWICE])
@pytest.mark.sampled(2)
def test_killed_at_some_steps_and_reopened(text: str, mode: str, tmp_path: Path) -> None:
    killed_and_reopened(text, mode, tmp_path, 11)


@pytest.mark.campaign
@pytest.mark.parametrize("mode", ["key", "plain"])
@pytest.mark.parametrize("text", [PLAIN, TWICE])
def test_killed_at_each_step_and_reopened_campaign(text: str, mode: str, tmp_path: Path) -> None:
    killed_and_reopened(text, mode, tmp_path, 1)


def killed_and_reopened(text: str, mode: str, tmp_path: Path, stride: int) -> None:
    artifact = tmp_path / "a.tcca"
    library.save(library.compile_text(text), artifact)
    opened = library.load(artifact)
    whole = tmp_path / "whole"
    code, out = ran(artifact, whole, tmp_path / "whole.log", 0, mode)
    assert code == 0 and json.loads(out)["stop"] == "finished"
    events = json.loads(out)["events"]
    assert events > 11
    kills, first = 0, 1 + ((mode == "key") + 2 * (text is PLAIN)) % stride
    for at in sorted({*range(first, events + 1, stride), events}):
        ledger, log = tmp_path / f"{at}", tmp_path / f"{at}.log"
        code, _ = ran(artifact, ledger, log, at, mode)
        kills += code == -9
        for again in (at % 7 + 1, 0):  # killed once more on the way
            if code == -9 and not has_ended(ledger):
                code, _ = ran(artifact, ledger, log, again, mode)
        assert has_ended(ledger), at
        done = logged(log)
        texts = [{name: value for name, value in line.items() if name != "key"} for line in done]
        if mode == "plain":
            made = texts
        else:
            # A call that was made again has its own key, and nothing came between.
            keys = [line["key"] for line in done]
            firsts = list(dict.fromkeys(keys))
            assert sorted(keys, key=firsts.index) == keys
            made = [texts[keys.index(key)] for key in firsts]
            assert all(texts[n] == texts[keys.index(key)] for n, key in enumerate(keys))
        session = [json.loads(line) for line in ledger.read_text().splitlines()]
        calls = {record["seq"]: record for record in session if record["kind"] == "call"}
        ended = {r["seq"]: r for r in session if r["kind"] in ("outcome", "resolve")}
        kept = [calls[seq]["call"] for seq in sorted(calls) if ended[seq]["outcome"] == "done"]
        assert [line["tool"] for line in made] == [call.partition("(")[0] for call in kept]
        assert session[-1]["kind"] == "end" and session[-1]["abandoned"] is False
        word = [call if "check" not in call else call[:-1] + ",answer=no)" for call in kept]
        assert contains(opened, word)
    # How long a plan is, the key of its session says.
    assert kills > (events - first) // stride // 2
