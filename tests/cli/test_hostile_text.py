"""Text out of files reaches the terminal as text: no control character, no line of its own.

Every command, and the kernel's own verbs, are given artifacts, grammars, graphs, ledgers, requests,
quotes and paths that hold a line feed with a verdict after it, escape sequences, marks of the
writing direction, and the markup of a library that draws.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tcc_certs.__main__ import main as kernel
from tcc_certs.errors import is_plain
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tests.cli.conftest import Ended, Tcc
from tests.forgery.artifacts import Forge

FORGED = "VALID: forged"
EVIL = (
    f"x\n{FORGED}\r{FORGED}\x1b[2J\x1b]0;t\x07\x1b[35m\x9b31m\x7f\u202e\u2066\u200f\u061c\u2028{FORGED}"
    f"\u2029\x0b\x0c\x1c\x85{FORGED}[bold red]{FORGED}[/]"
)
_STYLES = re.compile(r"\x1b\[(?:0|1|2|3[123])m")  # what the commands themselves write
_IN_GRAMMAR = json.dumps(EVIL)  # a string of the language is a string of JSON
SEED = "11" * 32


@pytest.fixture(autouse=True)
def _as_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stripped because the output is no terminal."""
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_, **__: False)


def harmless(ended: Ended) -> Ended:
    """The same, where nothing of what was given steers the terminal or looks like a verdict."""
    for text in (ended.out, ended.err):
        shown = _STYLES.sub("", text)
        for line in shown.split("\n"):
            assert is_plain(line), repr(line)
            assert not line.lstrip().startswith(FORGED), line
            if not line.lstrip().startswith('"'):  # a name of its own, in JSON
                assert not re.match(r"\W*VALID: forged", line), line
    return ended


@pytest.fixture
def verb(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """The kernel's own command line."""

    def run(*arguments: object) -> Ended:
        try:
            code = kernel([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = int(str(ended.code))
        out, err = capfd.readouterr()
        return Ended(code=code, out=out, err=err)

    return run


@pytest.fixture
def grammar_text() -> str:
    """A grammar whose strings hold what they may."""
    return (
        f'grammar g version "1"\n'
        f"tool a(k: {_IN_GRAMMAR} | plain) {{ cost 1 doc {_IN_GRAMMAR} "
        f"bind mcp {_IN_GRAMMAR} {_IN_GRAMMAR} }}\n"
        "plan = a{1,2}\n"
    )


@pytest.fixture
def evil(tcc: Tcc, grammar_text: str, tmp_path: Path) -> Path:
    """An artifact with such texts in its calls."""
    source = tmp_path / "evil.tcg"
    source.write_text(grammar_text, encoding="utf-8")
    ended = harmless(tcc("compile", source, "-o", tmp_path / "evil.tcca"))
    assert ended.code == 0, ended.err
    return tmp_path / "evil.tcca"


def test_a_whole_life_of_hostile_calls(
    tcc: Tcc, verb: Callable[..., Ended], evil: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "run.ledger"
    run = ("run", evil, "--seed", SEED, "--top", 3)
    requests = tmp_path / "requests"
    requests.write_text(json.dumps({"seed": SEED, "top": 2}) + "\n")
    seen = 0
    for command in (
        ("inspect", evil),
        ("inspect", evil, "--core"),
        ("count", evil),
        ("enumerate", evil),
        ("check", evil, "--core"),
        ("check", evil, "--source", tmp_path / "evil.tcg"),
        ("test", tmp_path / "evil.tcg"),
        (*run, "--ledger", ledger, "--overwrite"),
        (*run, "--opening-only"),
        ("validate", ledger, "--artifact", evil),
        ("batch", evil, "--requests", requests, "--out", tmp_path / "out", "--overwrite"),
    ):
        bare = (command[0] == "inspect" and "--core" in command) or "--opening-only" in command
        for more in ((),) if bare else ((), ("--json",)):
            ended = harmless(tcc(*command, *more))
            assert ended.code == 0, (command, ended.err)
            seen += "VALID: forged" in ended.out
            if more:
                json.loads(ended.out)
    assert seen >= 6  # it was there to be shown
    for line in (tmp_path / "out" / "runs.ndjson").read_text().splitlines():
        assert is_plain(line)
    for command in (("check", evil, "--core"), ("validate", ledger, "--artifact", evil)):
        for more in ((), ("--json",)):
            assert harmless(verb(*command, *more)).code == 0


FORGERIES = [
    ("grammar", "version"), ("grammar", "name"), ("counts",), ("format",), ("root",),
    ("critical",), ("options", "beta"), ("columns", "core"), ("leaf_policy", "name"),
    ("leaf_policy", "root", "name"), ("version",),
]  # fmt: skip


@pytest.mark.parametrize("path", FORGERIES, ids=str)
@pytest.mark.parametrize("listed", [False, True])
def test_a_manifest_says_nothing_of_its_own(
    tcc: Tcc,
    verb: Callable[..., Ended],
    artifact: Path,
    ledger: Path,
    tmp_path: Path,
    path: tuple[str, ...],
    listed: bool,
) -> None:
    forge = Forge(artifact.read_bytes())
    forge.member(*path, value=[EVIL] if listed else EVIL)
    bad = tmp_path / "bad.tcca"
    bad.write_bytes(forge.seal(digests=path[0] != "columns"))
    requests = tmp_path / "requests"
    requests.write_text(json.dumps({"seed": SEED}) + "\n")
    for command in (
        ("inspect", bad),
        ("count", bad),
        ("enumerate", bad),
        ("check", bad, "--core"),
        ("check", bad, "--kernel", "fast"),
        ("run", bad, "--seed", SEED),
        ("run", bad, "--seed", SEED, "--no-verify"),
        ("batch", bad, "--requests", requests, "--out", tmp_path / "out"),
        ("validate", ledger, "--artifact", bad),
    ):
        for more in ((), ("--json",)):
            ended = harmless(tcc(*command, *more))
            assert ended.code in (1, 2) or "--no-verify" in command, (command, ended)
    for command in (("check", bad), ("validate", ledger, "--artifact", bad)):
        for more in ((), ("--json",)):
            assert harmless(verb(*command, *more)).code in (1, 2)


def test_a_member_of_any_name_is_named_in_escapes(
    tcc: Tcc, verb: Callable[..., Ended], artifact: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.tcca"
    evil = "".join(c for c in EVIL if c.isascii())
    bad.write_bytes(Forge(artifact.read_bytes()).member(evil, value=1).seal())
    ended = harmless(tcc("check", bad))
    assert ended.code == 1 and "'x\\nVALID" in ended.out
    assert harmless(verb("check", bad)).code == 1


def test_no_field_of_a_ledger_says_anything_of_its_own(
    tcc: Tcc, verb: Callable[..., Ended], artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    records = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    kinds: set[tuple[str, str]] = set()
    bad = tmp_path / "bad.ledger"
    tried = 0
    for at, record in enumerate(records):
        record.pop("~")
        for name in [*record, "zzz"]:
            if (record["kind"], name) in kinds:
                continue
            kinds.add((record["kind"], name))
            head, lines = FIRST_HEAD, []
            for place, other in enumerate(records):
                kept = {key: value for key, value in other.items() if key != "~"}
                if place == at:
                    kept[name] = EVIL
                line, head = seal(kept, head)
                lines.append(line)
            bad.write_bytes(b"".join(lines))
            ended = harmless(tcc("validate", bad, "--artifact", artifact))
            assert ended.code in (1, 2), name
            tried += 1
            if tried % 7 == 0:
                for more in ((), ("--json",)):
                    assert harmless(verb("validate", bad, "--artifact", artifact, *more)).code
                harmless(tcc("validate", bad, "--artifact", artifact, "--json"))
                resumed = ("run", artifact, "--seed", SEED, "--ledger", bad, "--resume")
                assert harmless(tcc(*resumed)).code in (1, 2)
    assert tried > 50
    for data in (EVIL.encode(), EVIL.encode() + b"\n", b'{"' + EVIL.encode() + b'":1}\n'):
        bad.write_bytes(data)
        assert harmless(tcc("validate", bad, "--artifact", artifact)).code in (1, 2)
        assert harmless(verb("validate", bad, "--artifact", artifact)).code in (1, 2)


RAW = "".join(c for c in EVIL if c not in "\n\0")  # where a line feed would end the token
GRAMMARS = {
    "version": f"grammar g version {_IN_GRAMMAR}\ntool a\nplan = a",
    "comment": f'grammar g version "1"\ntool a\nplan = b # {RAW}',
    "string": f'grammar g version "1"\ntool a {{ doc "{RAW}" }}\nplan = a',
    "bare": f'grammar g version "1"\ntool a\nplan = a {RAW}',
    "name": f'grammar {RAW} version "1"\ntool a\nplan = a',
    "use": f'grammar g version "1"\nuse {_IN_GRAMMAR}\ntool a\nplan = a',
    "value": f'grammar g version "1"\ntool a(k: {_IN_GRAMMAR} | {_IN_GRAMMAR})\nplan = a',
    "unknown value": f'grammar g version "1"\ntool a(k: b)\nplan = a(k={_IN_GRAMMAR})',
    "bind": f'grammar g version "1"\ntool a {{ bind python {_IN_GRAMMAR} }}\nplan = a',
    "rejects": (
        f'grammar g version "1"\ntool a(k: {_IN_GRAMMAR})\nplan = a\nreject a(k={_IN_GRAMMAR})'
    ),
    "tabs": 'grammar g version "1"\n\ttool\ta\n\tplan\t=\tb\n',
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_diagnostic_shows_the_source_and_nothing_happens(
    tcc: Tcc, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(GRAMMARS[name], encoding="utf-8")
    for output_format in ("text", "json", "sarif", "github"):
        ended = harmless(tcc("compile", source, "--output-format", output_format))
        assert ended.code == 1, ended.err
        if output_format in ("json", "sarif"):
            json.loads(ended.out)
        harmless(tcc("test", source, "--output-format", output_format))
    for command in ("inspect", "run", "check", "count", "enumerate"):
        assert harmless(tcc(command, source)).code in (1, 2)
    assert harmless(tcc("compile", source, "--json")).code == 1


def test_carets_stand_below_what_is_shown(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(
        'grammar g version "1"\ntool a { doc "\u202e" }\n\tplan =\tb # \x1b\n', "utf-8"
    )
    lines = harmless(tcc("compile", source)).err.split("\n")
    at = next(number for number, line in enumerate(lines) if "plan" in line)
    shown, carets = lines[at : at + 2]
    assert shown[carets.index("^")] == "b"
    assert shown.endswith("# \\x1b")


def node_link(**changes: object) -> dict[str, object]:
    nodes = [{"id": "a", "start": True, "goal": True}, {"id": "b", "goal": True}]
    links = [{"source": "a", "target": "b"}]
    return {"directed": True, "graph": {}, "nodes": nodes, "links": links, **changes}


GRAPHS: dict[str, object] = {
    "version": node_link(graph={"version": EVIL}),
    "long version": node_link(graph={"version": "1" * 1025}),
    "name": node_link(graph={"name": EVIL}),
    "id": node_link(nodes=[{"id": EVIL, "start": True, "goal": True}]),
    "twice": node_link(nodes=[{"id": EVIL}, {"id": EVIL}]),
    "source": node_link(links=[{"source": EVIL, "target": "b"}]),
    "call": node_link(links=[{"source": "a", "target": "b", "call": EVIL}]),
    "amount": node_link(links=[{"source": "a", "target": "b", "call": "a", "cost": EVIL}]),
    "member": node_link(nodes=[{"id": "a", EVIL: 1, "tool": EVIL, "start": True, "goal": True}]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_says_nothing_of_its_own(tcc: Tcc, tmp_path: Path, name: str) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GRAPHS[name], ensure_ascii=False), encoding="utf-8")
    ended = harmless(tcc("compile", path))
    assert ended.code == 1
    if name.endswith("version"):
        assert "TCC315" in ended.err
    graphml = tmp_path / "g.graphml"
    text = (
        EVIL.translate({c: f"&#{c};" for c in (10, 13)}).replace("\x1b", "").replace("[", "&#91;")
    )
    graphml.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
        f'<node id="{text}"/><node id="{text}"/></graph></graphml>',
        encoding="utf-8",
    )
    assert harmless(tcc("compile", graphml)).code == 1


@pytest.mark.parametrize(
    "line",
    [EVIL, "{" + json.dumps(EVIL) + ":1}", json.dumps({"seed": SEED, EVIL: 1}),
     json.dumps({"seed": EVIL}), json.dumps({"seed": SEED, "mode": EVIL}),
     json.dumps({"seed": SEED, "tau": EVIL})],
)  # fmt: skip
def test_requests_say_nothing_of_their_own(
    tcc: Tcc, artifact: Path, tmp_path: Path, line: str
) -> None:
    requests = tmp_path / "requests"
    requests.write_text(line + "\n", encoding="utf-8")
    for more in ((), ("--json",)):
        command = ("batch", artifact, "--requests", requests, "--out", tmp_path / "out")
        assert harmless(tcc(*command, *more)).code == 2


@pytest.mark.parametrize(
    "field", ["format", "version", "quotes", "call", "tool", "model", "cost", EVIL]
)
def test_quotes_say_nothing_of_their_own(
    tcc: Tcc, artifact: Path, tmp_path: Path, field: str
) -> None:
    entry = {"tool": "a", "cost": "1"}
    book: dict[str, object] = {"format": "tcc.quotes", "version": "1.0", "quotes": [entry]}
    if field in ("call", "tool", "model", "cost"):
        entry[field] = EVIL
    else:
        book[field] = EVIL
    path = tmp_path / "book"
    path.write_text(json.dumps(book), encoding="utf-8")
    for more in ((), ("--json",)):
        ended = harmless(tcc("run", artifact, "--quotes", path, "--seed", SEED, *more))
        assert ended.code in (1, 2)


def test_a_path_says_nothing_of_its_own(
    tcc: Tcc, verb: Callable[..., Ended], artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    name = EVIL.replace("/", "")[:60]
    here, missing = tmp_path / name, tmp_path / f"{name}-"
    here.write_bytes(artifact.read_bytes())
    log = tmp_path / f"{name}.ledger"
    log.write_bytes(ledger.read_bytes()[:-40])
    source = tmp_path / f"{name}.tcg"
    source.write_text('grammar g version "1"\ntool a\nplan = b')
    for command in (
        ("inspect", here), ("check", here), ("count", here), ("enumerate", here),
        ("run", here, "--seed", SEED, "--ledger", missing), ("validate", log, "--artifact", here),
        ("validate", missing, "--artifact", here), ("inspect", missing), ("check", missing),
        ("compile", source), ("compile", missing), ("test", source), ("explain", EVIL), (EVIL,),
        ("run", here, f"--{EVIL}"), ("run", here, "--tau", EVIL), ("inspect", log),
        ("check", here, "--source", source), ("compile", source, "-o", here / "below"),
        ("run", here, "--ledger", here / "below"), ("experiments", EVIL),
        ("run", here, "--mode", EVIL),
        ("batch", here, "--requests", log, "--out", tmp_path / "out"),
    ):  # fmt: skip
        for more in ((), ("--json",)):
            harmless(tcc(*command, *more))
    for command in (
        ("check", here), ("check", missing), ("validate", log, "--artifact", here), (EVIL,),
        ("validate", missing, "--artifact", here), ("check", here, EVIL), ("check", tmp_path),
    ):  # fmt: skip
        harmless(verb(*command))


def test_an_error_that_nobody_foresaw_says_nothing_of_its_own(
    tcc: Tcc, verb: Callable[..., Ended], artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(EVIL)

    monkeypatch.setenv("TCC_TRACEBACK", "1")
    monkeypatch.setattr("tcc.opening.load", broken)
    assert harmless(tcc("inspect", artifact)).code == 3
    monkeypatch.setattr("tcc_certs.verbs.check.check_artifact", broken)
    assert harmless(verb("check", artifact)).code == 3
