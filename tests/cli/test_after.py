"""`tcc run --after`, and its like in the library and in batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc as library
from tcc_runtime.artifact.root import CallTextError, read_calls, typed_calls as calls_in
from tcc_runtime.errors import AfterRefused

SEED = "11" * 32
AFTER = "classify find_customer(by=email)"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("", ()),
        ("  ", ()),
        ("a", ("a",)),
        (" a  b(k=1)\tc\n", ("a", "b(k=1)", "c")),
        ("a( k = 1 ,\n b = 2 ) c", ("a( k = 1 ,\n b = 2 )", "c")),
        ("a (k=1) c", ("a (k=1)", "c")),
        ("a(k=1)b", ("a(k=1)", "b")),
        ("a(k=1 b(j=2) ) (", ("a(k=1 b", "(", "j=2", ")", ")", "(")),
        ('a(x="p q") b', ('a(x="p q")', "b")),
        (r'a(x="p\" q",y="\\") "odd name"(z=1)', (r'a(x="p\" q",y="\\")', '"odd name"(z=1)')),
        ('a(x="no end b', ('a(x="no end b',)),
        ('a "\\', ("a", '"\\')),
        ('""" a', ('""" a',)),
    ],
)
def test_calls_are_told_apart(text: str, calls: tuple[str, ...]) -> None:
    assert calls_in(text) == calls


def test_hostile_texts_take_no_time() -> None:
    for text in ('"' * 200_001, '"\\' * 100_000, "a " * 100_000, '"a b' * 50_001):
        assert " ".join(calls_in(text)).replace(" ", "") == text.replace(" ", "")


def test_a_run_after_calls_that_were_made(tcc, artifact: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "run.ledger"
    told = ("run", artifact, "--after", AFTER, "--seed", SEED, "--top", 2, "--ledger", ledger)
    ended = tcc(*told)
    assert ended.code == 0
    assert f"after {AFTER}:" in ended.out.splitlines()
    assert "RunWiseExact: no plan after these calls but these 2 could have" in ended.out
    found = tcc("run", artifact, "--after", AFTER, "--seed", SEED, "--top", 2, "--json").json
    assert found["after"] == AFTER.split()
    said = library.search(
        library.load(artifact), seed=bytes.fromhex(SEED), top=2, after=AFTER.split()
    )
    assert [plan["calls"] for plan in found["plans"]] == [list(plan.calls) for plan in said.plans]
    assert all(not plan.calls[0].startswith("classify") for plan in said.plans)
    ended = tcc("validate", ledger, "--artifact", artifact)
    assert ended.code == 0
    assert "claim upheld: no plan after the 2 calls made but these 2 could" in ended.out
    document = tcc("validate", ledger, "--artifact", artifact, "--json").json
    assert (document["after"], document["claim_upheld"]) == (AFTER.split(), True)


def test_without_calls_nothing_is_said_of_them(tcc, artifact: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "run.ledger"
    ended = tcc("run", artifact, "--after", " ", "--seed", SEED, "--ledger", ledger, "--json")
    assert ended.code == 0 and "after" not in ended.json
    assert b'"after"' not in ledger.read_bytes()
    assert "after" not in tcc("validate", ledger, "--artifact", artifact, "--json").json


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (
            "refund(part=full)",
            "expected one of classify as call 1 (TCC901), found refund(part=full)",
        ),
        ("classify escalate", "call 2 (TCC901), found escalate"),
        (f"{AFTER} classify", "call 3 (TCC901), found classify"),
        ("classify x1", "call 2 (TCC901), found x1"),
        ("classify find_customer( by = )", "a value: a name, a number or a text in quotes"),
        ("classify \x1b[31m", "a name, a number, a text in quotes, or one of ( ) , ="),
    ],
)
def test_no_prefix_of_a_plan_is_bad_usage(tcc, artifact: Path, after: str, said: str) -> None:
    ended = tcc("run", artifact, "--after", after)
    assert ended.code == 2
    assert "Invalid value for --after" in ended.err and said in ended.err
    assert "\x1b" not in ended.err
    with pytest.raises((AfterRefused, CallTextError)):
        library.search(library.load(artifact), after=list(calls_in(after)))


def test_the_code_is_explained(tcc) -> None:
    assert tcc("explain", "TCC901").out.startswith("TCC901: no prefix of a plan")


def test_an_interrupted_run_goes_on(tcc, artifact: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "run.ledger"
    told = ("run", artifact, "--seed", SEED, "--ledger", ledger)
    assert tcc(*told, "--after", AFTER).code == 0
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: len(whole) // 2])
    ended = tcc(*told, "--resume", "--json")
    assert ended.code == 0 and ended.json["after"] == AFTER.split()
    assert tcc("validate", ledger, "--artifact", artifact).code == 0


def test_the_opening_binds_the_calls(tcc, artifact: Path) -> None:
    told = ("run", artifact, "--seed", SEED, "--opening-only")
    first, second = tcc(*told), tcc(*told, "--after", AFTER)
    assert first.code == second.code == 0 and first.out != second.out


def test_a_batch_takes_calls_that_were_made(tcc, artifact: Path, tmp_path: Path) -> None:
    requests, out = tmp_path / "requests", tmp_path / "out"
    after = AFTER.split()
    requests.write_text(
        json.dumps({"seed": SEED, "after": after}) + "\n" + json.dumps({"seed": SEED}) + "\n"
    )
    assert tcc("batch", artifact, "--requests", requests, "--out", out).code == 0
    first, second = map(json.loads, (out / "runs.ndjson").read_text().splitlines())
    assert first["after"] == after and "after" not in second
    for number in (1, 2):
        assert tcc("validate", out / f"{number:08}.ledger", "--artifact", artifact).code == 0
    for wrong, said in (
        ("classify", "after: a list of texts is needed"),
        ([1], "after: a list of texts is needed"),
    ):
        requests.write_text(json.dumps({"seed": SEED, "after": wrong}) + "\n")
        ended = tcc("batch", artifact, "--requests", requests, "--out", out, "--overwrite")
        assert ended.code == 2 and said in ended.err
    requests.write_text(json.dumps({"seed": SEED, "after": ["reply(tone=warm)"]}) + "\n")
    ended = tcc("batch", artifact, "--requests", requests, "--out", out, "--overwrite")
    assert ended.code == 2 and "TCC901" in ended.err


def test_the_library_takes_lists_and_pools(artifact: Path) -> None:
    opened = library.load(artifact)
    with pytest.raises(TypeError, match="takes list or tuple for 'after', not str"):
        library.search(opened, after=AFTER)  # type: ignore[arg-type]
    after = AFTER.split()
    made = list(library.runs(opened, [bytes(32), bytes([1]) * 32], processes=2, after=after))
    assert [run.after for run in made] == [tuple(after)] * 2
    assert made[0].plans == library.search(opened, seed=bytes(32), after=tuple(after)).plans
    assert library.predict(opened, after=after).upper < library.predict(opened).upper


TYPED = """grammar g version "1"

tool find(k: 1..3, via: web | "a b" | "1" | true | -2.5, opt?: x) gives (r: yes | no)
tool `odd name`(`p q`: 1 | 2)

plan = (find | `odd name`){0,4}
"""


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("find( via = web, k = 3, r = yes )", "find(k=3,via=web,r=yes)"),
        ("find (k=3,via=web,r=yes,)", "find(k=3,via=web,r=yes)"),
        ('"find"(r="yes", "k"=3.0, via="web")', "find(k=3,via=web,r=yes)"),
        ("find(via=-2.50\n, opt=x,\tr=no, k=+1)", "find(k=1,via=-2.5,opt=x,r=no)"),
        ('find(k=1, via="1", r=no)', 'find(k=1,via="1",r=no)'),
        ('find(k=1, via="true", r=no)', 'find(k=1,via="true",r=no)'),
        ("find(k=1, via=true, r=no)", "find(k=1,via=true,r=no)"),
        ('find(r=no,via="a \\u0062",k=2)', 'find(k=2,via="a b",r=no)'),
        ('"odd name"( "p q" = 2 )', '"odd name"("p q"=2)'),
        ("find()", "find"),
        ("nosuch(b=2, a=1)", "nosuch(b=2,a=1)"),
        ("find(zz=1, k=2)", "find(k=2,zz=1)"),
    ],
)
def test_calls_are_read_as_grammars_write_them(typed: str, canonical: str) -> None:
    core = library.compile_text(TYPED).core
    assert calls_in(typed) == (typed,)
    assert read_calls(core, [typed]) == (canonical,) == read_calls(core, [canonical])


@pytest.mark.parametrize(
    ("typed", "at", "expected"),
    [
        ("", 0, "the name of a tool"),
        ("(k=1)", 0, "the name of a tool"),
        ("3", 0, "the name of a tool"),
        ("find(k)", 6, "`=` and a value"),
        ("find(k=)", 7, "a value: a name, a number or a text in quotes"),
        ("find(k= , via=web)", 8, "a value: a name, a number or a text in quotes"),
        ("find(k=1 via=web)", 9, "`,` or `)`"),
        ("find(k=1|2)", 8, "a name, a number, a text in quotes, or one of ( ) , ="),
        ("find(,)", 5, "a parameter, or `)`"),
        ("find(k=1,,)", 9, "a parameter, or `)`"),
        ("find(k=1", 8, "`,` or `)`"),
        ("find(k=1, k=2)", 10, "each parameter once"),
        ("find(k=1) x", 10, "one call, and a space before the next"),
        ('find(via="a', 9, "a name, a number, a text in quotes, or one of ( ) , ="),
        ('find(via="\\q")', 9, "a text in quotes as JSON has it"),
        ('find(via=-"a")', 9, "a value: a name, a number or a text in quotes"),
        ('find(via="\\ud800")', 9, "a value: a name, a number or a text in quotes"),
    ],
)
def test_what_is_no_call_is_refused_at_its_place(typed: str, at: int, expected: str) -> None:
    with pytest.raises(CallTextError) as refused:
        read_calls(library.compile_text(TYPED).core, [typed])
    assert (refused.value.code, refused.value.at, refused.value.wanted) == ("TCC904", at, expected)
    message, shown, caret = str(refused.value).split("\n")
    assert f"{expected} at character {at + 1} (TCC904)" in message
    assert shown == f"  {typed}" and caret == f"  {' ' * at}^"


def test_every_door_reads_calls_so(tcc, artifact: Path) -> None:
    typed = "classify() find_customer( by = email, )"
    found = tcc("run", artifact, "--after", typed, "--seed", SEED, "--json").json
    assert found["after"] == AFTER.split()
    opened = library.load(artifact)
    calls = ["classify", "find_customer( by = email )"]
    run = library.search(opened, seed=bytes.fromhex(SEED), after=calls)
    assert list(run.after) == AFTER.split()
    told = library.predict(opened, after=calls)
    assert told == library.predict(opened, after=AFTER.split())
    why = library.why(opened, typed, prefix=True)
    assert why.allowed and list(why.calls) == AFTER.split()
    assert tcc("why", artifact, typed, "--prefix").code == 0
    ended = tcc("why", artifact, "classify find_customer(by=)")
    assert ended.code == 2 and "TCC904" in ended.err and "^" in ended.err
    assert tcc("explain", "TCC904").out.startswith("TCC904: a text that is no call")
