"""Bad input of exact questions: a verdict or a code in the time given, in bounded memory.

Each question is asked by a process of its own, whose processor time and address space are bounded.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc_certs.proof.check import check_proof

SECONDS = 60  # of processor time: far more than is given, so that only a hang meets it
MEMORY = 3 << 30  # of address space, with all that an interpreter and its libraries map

OPEN = {"P501", "P503", "P505", "P507"}

TOOLS = """tool find(; order: text min 1 max 9)
tool refund(; order: text min 1 max 9, user: text max 9, amount: integer 0 .. 200)
"""


def grammar(statements: str = "", tools: str = TOOLS, plan: str = "(find | refund){0,6}") -> str:
    return f'grammar g version "1"\n{tools}plan = {plan}\n{statements}'


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


DRIVER = """
import contextlib, io, json, sys
from tcc.main import main
ended = []
for words in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main(words)
        except SystemExit as end:
            ended.append([end.code, out.getvalue()])
json.dump(ended, sys.stdout)
"""
Ended = tuple[int, dict[str, Any]]


def asked(*commands: Sequence[str | Path]) -> list[Ended]:
    """How each command ends, and its document; all in one process."""
    rooms = os.pathsep.join(str(Path(room).resolve()) for room in sys.path if room)
    words = [[*map(str, command), "--json"] for command in commands]
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER],
        env=os.environ | {"PYTHONPATH": rooms},
        preexec_fn=bounded,
        input=json.dumps(words),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr[-2000:]
    found = json.loads(ended.stdout)
    assert len(found) == len(commands) and all(code in (0, 1, 2) for code, _ in found)
    return [(code, json.loads(out)) for code, out in found]


def written(folder: Path, text: str, name: str = "g.tcg") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_statements_about_what_is_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, grammar())
    refused = [
        ["never nobody"],
        ["never find after nobody"],
        ["--reachable", "nobody"],
        ["--reachable", "find(order=9)"],
        ["limit sum(find.amount) <= 3"],
        ["require find before refund same nothing"],
        ["never \x01"],
        [""],
        ["never " + "(" * 5000],
        ["tool more\nnever find"],
    ]
    for code, document in asked(*(["prove", path, *words] for words in refused)):
        assert (code, document["format"]) == (2, "tcc.error")
    read = [["never " + "find | " * 5000 + "find"], ["limit uses(find) <= " + "9" * 5000]]
    for code, document in asked(*(["prove", path, *words] for words in read)):
        if "verdict" not in document:
            assert (code, document["format"]) == (2, "tcc.error")


PATTERNS = {
    "many states": ('text ~ "(a|b)*a(a|b){18}"', 'text ~ "(a|b)*b(a|b){19}"'),
    "nested counts": ('text ~ "((a{1,30}){1,30}){1,30}"', 'text ~ "((a{1,29}){1,31}){1,30}"'),
    "long classes": ('text ~ "[a-z]{1,900}"', 'text ~ "[b-y]{3,901}"'),
    "overlaps": ('text ~ "(a?){60}a{60}"', 'text ~ "(a|aa)+"'),
    "json beside text": ("json", 'text ~ "x+"'),
}


def test_patterns_made_to_explode(tmp_path: Path) -> None:
    commands = []
    for number, (one, other) in enumerate(PATTERNS.values()):
        texts = []
        for first, second in ((one, other), (other, one)):
            tools = f"tool a(; x: {first})\ntool b(; x: {second})\n"
            text = grammar("require a before b same x\n", tools, "(a | b){0,4}")
            texts.append(written(tmp_path, text, f"{number}-{len(texts)}.tcg"))
        questions = ["forbid a before b same x"], ["--finishable"], ["--implies", texts[1]]
        commands += [["prove", texts[0], *words, "--timeout", "2"] for words in questions]
    for code, document in asked(*commands):
        if "verdict" not in document:
            assert code in (1, 2) and document["diagnostics"]  # it does not compile
        elif document["verdict"] == "undecided":
            assert document["codes"] and set(document["codes"]) <= OPEN


def test_keys_that_cross_end_in_the_time_given(tmp_path: Path) -> None:
    """Eight tools, each beside the next compared by two values: states grow without end."""
    names = "abcdefgh"
    tools = "".join(f"tool {name}(; x: text max 9, y: text max 9)\n" for name in names)
    says = "".join(
        f"require {one} before {other} same x, y\nforbid {other} before {one} same x = y\n"
        for one, other in pairwise(names)
    )
    path = written(tmp_path, grammar(says, tools, f"({' | '.join(names)}){{0,20}}"))
    within = ["--timeout", "2"]
    before = time.monotonic()
    found = asked(
        ["prove", path, "--finishable", *within],
        ["prove", path, "never a after h same x", *within],
        ["prove", path, "--finishable", "--max-states", "50"],
        ["why", path, "--reachable", "h", *within],
        ["diff", path, path, *within],
    )
    assert time.monotonic() - before < 120
    for code, document in found[:3]:
        assert code == {"proved": 0, "refuted": 1, "undecided": 2}[document["verdict"]]
        assert set(document["codes"]) <= OPEN
    assert found[2][1]["codes"] in ([], ["P503"])
    assert found[3][1]["verdict"] in ("possible", "impossible", "undecided")
    assert found[4][0] in (0, 2)


RELAXED = grammar("limit uses(find) <= 2\nforbid refund find\nrequire find before refund\n")
NETWORK = grammar(
    "require find before refund same order\n", plan="(find | refund){0,4} find (find | refund){4}"
)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (RELAXED, {"relax": ("require", "forbid")}),
        (NETWORK, {"relax": ("auto",), "max_states": 30}),
    ],
)
def test_relaxed_and_nondeterministic_plans_have_a_verdict(
    text: str, options: dict[str, Any]
) -> None:
    exact, other = tcc.compile_text(text), tcc.compile_text(text, **options)
    assert other.manifest.nondeterministic or other.manifest.relaxed is not None
    statements = (
        "limit uses(find) <= 2",
        "limit uses(find) >= 1",
        "never find after refund",
        "never find after refund same order",
    )
    for statement in statements:
        due, found = tcc.prove(exact, statement), tcc.prove(other, statement)
        assert found.verdict == due.verdict != "undecided", statement
        assert found.certificate is not None
        report = check_proof(found.certificate, [artifact_bytes(other)])
        assert report.verdict == 0, report.finding
    assert tcc.prove(exact, implies=other).proved
    assert tcc.prove(other, finishable=True).proved


def test_hostile_proofs_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    artifact = tcc.compile_text(grammar("require find before refund same order\n"))
    tcc.save(artifact, tmp_path / "g.tcca")
    found = tcc.prove(artifact, "forbid refund before find same order")
    whole = tcc.prove(artifact, "require find before refund").certificate
    assert found.session is not None and whole is not None
    head, _, rest = whole.partition(b"\n")
    told = json.loads(head)

    def with_head(**more: object) -> bytes:
        return json.dumps({**told, **more}, separators=(",", ":"), sort_keys=True).encode() + b"\n"

    parts = told["parts"]
    many = [{**parts[0], "states": 1 << 40}, *parts[1:]]
    rng = random.Random(1)
    cases = [
        b"",
        b"\n",
        b"[" * 100_000 + b"\n",
        head + b"\n",
        with_head(parts=many) + rest,
        with_head(parts=parts * 100_000) + rest,
        with_head(cores=told["cores"] * 100_000) + rest,
        with_head(question={"kind": "statement", "text": "never " + "find " * 100_000}) + rest,
        with_head(question={"kind": "statement", "text": "limit uses(find) <= " + "9" * 9000})
        + rest,
        head + b"\n" + b"[" + b"9" * 1_000_000 + b"]\n" + rest,
        head + b"\n" + rest * 2000,
        head + b"\n" + bytes(rng.randrange(256) for _ in range(200_000)) + b"\n",
    ]
    for number, data in enumerate(cases):
        (tmp_path / f"{number}.tccp").write_bytes(data)
    paths = [tmp_path / f"{number}.tccp" for number in range(len(cases))]
    artifact_path = tmp_path / "g.tcca"
    found_of = asked(*(["check", path, "--artifact", artifact_path] for path in paths))
    for number, (code, document) in enumerate(found_of):
        assert code in (1, 2), number
        assert document.get("verdict") in ("INVALID", "DECLINED", None), number
