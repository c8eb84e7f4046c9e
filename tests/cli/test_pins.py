"""`tcc.lock`: what is pinned is what is there, or it is refused, with a code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tests.cli.conftest import GRAMMARS, Tcc

PINNED = ("a.tcca", "sub/b.tcca")


SMALL = """grammar small version "2"

tool a { cost 1 }

plan = a{1,2}
"""


@pytest.fixture
def folder(tcc: Tcc, compiled: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two artifacts, both pinned."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.tcca").write_bytes(compiled)
    library.save(library.compile_text(SMALL), "sub/b.tcca")
    assert tcc("pin", *PINNED).code == 0
    return tmp_path


def codes(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(found["code"], found["file"]) for found in document["findings"]]


def test_a_lock_is_one_text_whatever_the_order_of_pinning(tcc: Tcc, folder: Path) -> None:
    lock = folder / "tcc.lock"
    text = lock.read_text()
    digest = tcc("inspect", "a.tcca", "--json").json["digest"]
    assert json.loads(text)["artifacts"]["a.tcca"] == {
        "digest": digest, "grammar": "support_refund", "version": "1.0.0",
    }  # fmt: skip
    lock.unlink()
    for name in reversed(PINNED):
        assert tcc("pin", name).code == 0
    assert lock.read_text() == text and text.endswith("}\n")


def test_what_is_pinned_passes_all_or_by_name(tcc: Tcc, folder: Path) -> None:
    every = tcc("check", "--locked", "--json")
    assert (every.code, every.json["verdict"], every.json["findings"]) == (0, "VALID", [])
    assert [one["artifact"] for one in every.json["artifacts"]] == list(PINNED)
    one = tcc("check", "--locked", "--core", folder / "sub" / "b.tcca", "--json").json
    assert [found["checked"]["pairs"] > 0 for found in one["artifacts"]] == [True]


def test_a_lock_is_found_from_anywhere_by_its_name(
    tcc: Tcc, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "sub")
    assert tcc("check", "--locked", "b.tcca").code == 1  # there is no lock in this folder
    assert tcc("check", "--locked", "--lock", "../tcc.lock", "b.tcca").code == 0
    assert tcc("check", "--locked", "--lock", "../tcc.lock").code == 0


def test_another_artifact_in_its_place_is_refused(tcc: Tcc, folder: Path) -> None:
    tcc("compile", GRAMMARS / "support_refund.tcg", "-o", "a.tcca", "--beta", "3")
    assert tcc("check", "a.tcca").code == 0  # its certificates hold
    ended = tcc("check", "--locked", "--json")
    assert (ended.code, codes(ended.json)) == (1, [("TCC843", "a.tcca")])
    said = ended.json["findings"][0]["message"]
    pinned = json.loads((folder / "tcc.lock").read_text())["artifacts"]["a.tcca"]["digest"]
    there = tcc("inspect", "a.tcca", "--json").json["digest"]
    start = "it is not the artifact that tcc.lock pins as a.tcca: "
    assert said == f"{start}digest pinned {pinned}, found {there}"
    other = tcc("check", "--locked", "sub/b.tcca")
    assert other.code == 0


@pytest.mark.parametrize("member", ["digest", "grammar", "version"])
def test_every_member_of_a_pin_counts(tcc: Tcc, folder: Path, member: str) -> None:
    lock = folder / "tcc.lock"
    document = json.loads(lock.read_text())
    document["artifacts"]["a.tcca"][member] = "0" * 64
    lock.write_text(json.dumps(document))
    ended = tcc("check", "--locked", "--json")
    assert (ended.code, codes(ended.json)) == (1, [("TCC843", "a.tcca")])
    said = ended.json["findings"][0]["message"]
    assert said.startswith(
        f"it is not the artifact that tcc.lock pins as a.tcca: {member} pinned 0"
    )


def test_what_is_not_pinned_or_not_there_is_refused(tcc: Tcc, folder: Path) -> None:
    (folder / "c.tcca").write_bytes((folder / "a.tcca").read_bytes())
    ended = tcc("check", "--locked", "c.tcca", "--json")
    assert (ended.code, codes(ended.json)) == (1, [("TCC842", "c.tcca")])
    (folder / "a.tcca").unlink()
    ended = tcc("check", "--locked", "--json")
    assert (ended.code, codes(ended.json)) == (1, [("TCC844", "a.tcca")])
    assert tcc("pin", "--remove", "a.tcca").code == 0
    assert tcc("check", "--locked").code == 0
    assert tcc("pin", "--remove", "a.tcca").code == 2


def test_a_broken_artifact_is_a_finding_and_is_not_pinned(tcc: Tcc, folder: Path) -> None:
    path = folder / "a.tcca"
    path.write_bytes(path.read_bytes()[:-1])
    ended = tcc("check", "--locked", "--json")
    assert ended.code == 1 and ended.json["artifacts"][0]["findings"][0]["code"] == "B205"
    (folder / "c.tcca").write_bytes(b"x")
    unpinned = tcc("check", "--locked", "c.tcca", "--json")
    assert unpinned.code == 1 and codes(unpinned.json) == [("TCC842", "c.tcca")]
    before = (folder / "tcc.lock").read_bytes()
    refused = tcc("pin", "a.tcca", "--json")
    assert refused.code == 1 and refused.json["findings"][0]["code"] == "B205"
    assert (folder / "tcc.lock").read_bytes() == before
    assert tcc("pin", GRAMMARS / "support_refund.tcg").code in (1, 2)


def malformed(lock: dict[str, Any]) -> dict[str, bytes]:
    pin = lock["artifacts"]["a.tcca"]

    def with_pins(artifacts: object) -> bytes:
        return json.dumps({**lock, "artifacts": artifacts}).encode()

    text = json.dumps(lock)
    return {
        "empty": b"",
        "no JSON": b"{",
        "no object": b"[]",
        "deep": b"[" * 100000,
        "no UTF-8": b'{"\xff":1}',
        "another schema": json.dumps({**lock, "schema": "tcc.lock/1"}).encode(),
        "a member more": json.dumps({**lock, "more": 1}).encode(),
        "a member less": json.dumps({"schema": "tcc.lock/2"}).encode(),
        "pins that are none": with_pins([]),
        "a pin that is none": with_pins({"a.tcca": "x"}),
        "a pin with more": with_pins({"a.tcca": {**pin, "more": 1}}),
        "a pin without a digest": with_pins({"a.tcca": {"grammar": "g", "version": "1"}}),
        "a digest that is none": with_pins({"a.tcca": {**pin, "digest": "0" * 63}}),
        "a digest in capitals": with_pins({"a.tcca": {**pin, "digest": "A" * 64}}),
        "a version that is none": with_pins({"a.tcca": {**pin, "version": 1}}),
        "an absolute path": with_pins({"/etc/passwd": pin}),
        "a path that leaves": with_pins({"../a.tcca": pin}),
        "a path that goes round": with_pins({"sub/../a.tcca": pin}),
        "a path of two forms": with_pins({"./a.tcca": pin}),
        "a hidden character": with_pins({"a\u202e.tcca": pin}),
        "a pin twice": text.replace('"a.tcca": {', '"a.tcca": {}, "a.tcca": {', 1).encode(),
        "a digest twice": text.replace('"digest"', '"digest": "", "digest"', 1).encode(),
        "more behind": text.encode() + b" x",
    }


@pytest.mark.parametrize("kind", malformed({"artifacts": {"a.tcca": {}}}))
def test_a_malformed_lock_passes_nothing_and_is_not_written_over(
    tcc: Tcc, folder: Path, kind: str
) -> None:
    lock = folder / "tcc.lock"
    data = malformed(json.loads(lock.read_text()))[kind]
    lock.write_bytes(data)
    for command in (("check", "--locked"), ("check", "--locked", "a.tcca"), ("pin", "a.tcca")):
        ended = tcc(*command)
        assert ended.code == 1 and "TCC841" in ended.out + ended.err, command
    ended = tcc("check", "--locked", "--json")
    assert codes(ended.json) == [("TCC841", "tcc.lock")] and ended.json["artifacts"] == []
    assert lock.read_bytes() == data


@pytest.mark.parametrize("kind", ["missing", "a folder", "a dangling link"])
def test_a_lock_that_is_not_there_passes_nothing(tcc: Tcc, folder: Path, kind: str) -> None:
    lock = folder / "tcc.lock"
    lock.unlink()
    if kind == "a folder":
        lock.mkdir()
    if kind == "a dangling link":
        lock.symlink_to("nowhere")
    ended = tcc("check", "--locked", "a.tcca")
    assert ended.code == 1 and "TCC841" in ended.out
    if kind != "missing":
        assert tcc("pin", "a.tcca").code == 1


def test_paths_outside_of_the_lock_s_folder_are_refused(tcc: Tcc, folder: Path) -> None:
    for command in (("pin",), ("check", "--locked")):
        ended = tcc(*command, "--lock", "sub/tcc.lock", "a.tcca")
        assert ended.code == 1 and "TCC841" in ended.out + ended.err


def test_several_artifacts_are_checked_without_a_lock_too(tcc: Tcc, folder: Path) -> None:
    (folder / "tcc.lock").unlink()
    assert [one["verdict"] for one in tcc("check", *PINNED, "--json").json["artifacts"]] == [
        "VALID", "VALID",
    ]  # fmt: skip
    (folder / "sub/b.tcca").write_bytes(b"x")
    ended = tcc("check", *PINNED, "--json")
    assert (ended.code, ended.json["verdict"]) == (1, "INVALID")
    assert tcc("check").code == 2 and tcc("check", *PINNED, "--pin", "0" * 64).code == 2


SOURCE = """grammar small version "2"

tool a { price 3 }

plan = a{1,3}

limit price <= 9
"""
TIGHT = SOURCE.replace("<= 9", "<= 8")


@pytest.fixture
def made(tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An artifact, pinned with the grammar beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.tcg").write_text(SOURCE)
    assert tcc("compile", "g.tcg", "-o", "g.tcca").code == 0
    assert tcc("pin", "g.tcca").code == 0
    return tmp_path


def pin_of(folder: Path) -> dict[str, str]:
    return json.loads((folder / "tcc.lock").read_text())["artifacts"]["g.tcca"]


def test_a_pin_has_the_source_beside_and_the_digest_of_its_core(tcc: Tcc, made: Path) -> None:
    from blake3 import blake3

    core = bytes(library.load("g.tcca").file.columns["core"].data)
    pin = pin_of(made)
    assert (pin["source"], pin["source_core"]) == ("g.tcg", blake3(core).hexdigest())
    assert json.loads((made / "tcc.lock").read_text())["schema"] == "tcc.lock/2"
    assert tcc("pin", "g.tcca", "--json").json["artifacts"]["g.tcca"] == pin


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TIGHT, "limit price <= 8"),
        (SOURCE.replace("plan = a{1,3}", "plan = a{1,2}"), "plan = any{1,2}"),
        (SOURCE.replace("limit price <= 9", ""), "limit price <= 9"),
        (SOURCE.replace("{ price 3 }", "{ price 3 errors mean failed }"), "errors a"),
        (SOURCE.replace('"2"', '"3"'), "grammar version"),
        ("grammar (", "it has errors: TCC"),
        (None, "it is gone"),
    ],
)
def test_a_source_that_says_another_thing_is_a_finding(
    tcc: Tcc, made: Path, text: str | None, said: str
) -> None:
    source = made / "g.tcg"
    source.unlink() if text is None else source.write_text(text)
    for names in ((), ("g.tcca",)):
        ended = tcc("check", "--locked", *names, "--json")
        assert (ended.code, codes(ended.json)) == (1, [("TCC845", "g.tcg")])
        assert said in ended.json["findings"][0]["message"]
    assert "TCC845" in tcc("check", "--locked").out
    assert tcc("check", "--locked", "--output-format", "github").out.startswith(
        "::error file=g.tcg"
    )
    before = (made / "tcc.lock").read_bytes()
    again = tcc("pin", "g.tcca", "--json")
    [refused] = again.json["diagnostics"]
    assert (again.code, refused["code"], refused["file"]) == (1, "TCC845", "g.tcg")
    assert said in refused["message"] and "--no-source" in again.err
    assert (made / "tcc.lock").read_bytes() == before
    assert tcc("pin", "g.tcca", "--no-source").code == 0  # who says so pins it without
    assert "source" not in pin_of(made)


def test_one_source_that_differs_keeps_all_from_being_pinned(tcc: Tcc, made: Path) -> None:
    (made / "h.tcg").write_text(SOURCE)
    assert tcc("compile", "h.tcg", "-o", "h.tcca").code == 0
    (made / "g.tcg").write_text(TIGHT)
    for lock in ("tcc.lock", "new.lock"):
        before = (made / lock).read_bytes() if (made / lock).exists() else None
        for names in (("h.tcca", "g.tcca"), ("g.tcca", "h.tcca")):
            ended = tcc("pin", *names, "--lock", lock, "--output-format", "github")
            assert ended.code == 1 and ended.out.startswith("::error file=g.tcg,title=TCC845::")
        assert (made / lock).exists() is (before is not None)
        assert before is None or (made / lock).read_bytes() == before


def test_comments_and_layout_of_the_source_pass(tcc: Tcc, made: Path) -> None:
    (made / "g.tcg").write_text("# said\n" + SOURCE.replace("\n", "\n\n") + "accept a\n")
    assert tcc("check", "--locked").code == 0


def test_a_file_that_the_source_uses_counts(tcc: Tcc, made: Path) -> None:
    (made / "tools.tcg").write_text("tool a { price 3 }\n")
    (made / "g.tcg").write_text(SOURCE.replace("tool a { price 3 }", 'use "tools.tcg"'))
    assert tcc("check", "--locked").code == 0  # the same core, made of two files
    (made / "tools.tcg").write_text("tool a { price 2 }\n")
    assert codes(tcc("check", "--locked", "--json").json) == [("TCC845", "g.tcg")]


def core_of(path: str) -> str:
    from blake3 import blake3

    return blake3(bytes(library.load(path).file.columns["core"].data)).hexdigest()


def test_compiled_anew_and_pinned_it_passes(tcc: Tcc, made: Path) -> None:
    before = core_of("g.tcca")
    (made / "g.tcg").write_text(TIGHT)
    assert tcc("compile", "g.tcg", "-o", "g.tcca").code == 0
    ended = tcc("check", "--locked", "--json")
    assert codes(ended.json) == [("TCC843", "g.tcca"), ("TCC845", "g.tcg")]
    # Artifact and source agree: what differs is the pin, of which the lock has a digest alone.
    assert ended.json["findings"][1]["message"] == (
        "it is not the source that tcc.lock pins for g.tcca: "
        f"source_core pinned {before}, found {core_of('g.tcca')}"
    )
    assert "compile" not in ended.json["findings"][1]["hint"]
    assert tcc("pin", "g.tcca").code == tcc("check", "--locked").code == 0


def test_of_a_source_that_changed_twice_both_differences_are_named(tcc: Tcc, made: Path) -> None:
    """The artifact is of a second text, the pin of the first, and the source has a third."""
    (made / "g.tcg").write_text(TIGHT)
    assert tcc("compile", "g.tcg", "-o", "g.tcca").code == 0
    (made / "g.tcg").write_text(TIGHT.replace("<= 8", "<= 7"))
    said = tcc("check", "--locked", "--json").json["findings"][1]["message"]
    for text in ("the artifact has limit price <= 8", "the source limit price <= 7"):
        assert text in said
    assert "source_core pinned " in said and "tcc.lock" in said
    (made / "g.tcg").write_text(SOURCE)  # as it was pinned: the artifact alone is another one
    said = tcc("check", "--locked", "--json").json["findings"][1]["message"]
    assert said.startswith("g.tcca was not compiled from it: the artifact has limit price <= 8")
    assert "source_core" not in said


def test_cores_that_differ_in_nothing_that_has_a_name_are_named_by_digest(
    tcc: Tcc, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcc_runtime.analysis.comparison.core_changes", lambda *_: [])
    (made / "g.tcg").write_text(TIGHT)
    for said in (
        tcc("check", "--locked", "--json").json["findings"][0]["message"],
        tcc("pin", "g.tcca", "--json").json["diagnostics"][0]["message"],
    ):
        assert f"the artifact's core is {core_of('g.tcca')}, the source's " in said


def test_which_source_is_pinned(tcc: Tcc, made: Path) -> None:
    (made / "sub").mkdir()
    (made / "g.tcg").rename(made / "sub/h.tcg")
    assert tcc("pin", "g.tcca").code == 1  # the one that is pinned is gone
    assert tcc("pin", "g.tcca", "--source", "sub/h.tcg").code == 0
    assert pin_of(made)["source"] == "sub/h.tcg" and tcc("check", "--locked").code == 0
    assert tcc("pin", "g.tcca").code == 0
    assert pin_of(made)["source"] == "sub/h.tcg"  # it stays
    assert tcc("pin", "g.tcca", "--no-source").code == 0
    assert "source" not in pin_of(made) and tcc("check", "--locked").code == 0
    for wrong in (
        ("--source", "sub/h.tcg", "--no-source"), ("--source", "sub/h.tcg", "--remove"),
        ("--source", "none.tcg"), ("g.tcca", "--source", "sub/h.tcg"),
    ):  # fmt: skip
        assert tcc("pin", "g.tcca", *wrong).code == 2
    other = made.parent / "outside.tcg"
    other.write_text(SOURCE)
    assert tcc("pin", "g.tcca", "--source", other).code == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": None}, {"source_core": None}, {"source": "/etc/passwd"}, {"source": "../g.tcg"},
        {"source": 1}, {"source_core": "0"}, {"source_core": "A" * 64}, {"source": ""},
    ],
)  # fmt: skip
def test_a_malformed_source_passes_nothing(tcc: Tcc, made: Path, wrong: dict[str, Any]) -> None:
    lock = made / "tcc.lock"
    document = json.loads(lock.read_text())
    pin = {**document["artifacts"]["g.tcca"], **wrong}
    document["artifacts"]["g.tcca"] = {k: v for k, v in pin.items() if v is not None}
    lock.write_text(json.dumps(document))
    assert codes(tcc("check", "--locked", "--json").json) == [("TCC841", "tcc.lock")]
    assert tcc("pin", "g.tcca").code == 1


def test_another_source_is_named_by_what_differs(tcc: Tcc, made: Path) -> None:
    for text, expected, found in (
        (TIGHT, "limit price <= 8", "limit price <= 9"),
        (SOURCE + "before a require count(a) < 3", "before a require count(a) < 3", "nothing"),
        (SOURCE.replace("price 3", "price 2"), "other amounts", "amounts of 1 calls, a first"),
    ):
        (made / "g.tcg").write_text(text)
        [refused] = tcc("check", "g.tcca", "--source", "g.tcg", "--json").json["findings"]
        assert (refused["code"], refused["expected"], refused["found"]) == ("G201", expected, found)
        assert "byte" not in refused["path"]


@pytest.mark.parametrize("kernel", ["pure", "fast"])
def test_the_core_of_a_source_is_compared_to_the_byte(
    tcc: Tcc, made: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    arguments = ("check", "g.tcca", "--source", "g.tcg", "--kernel", kernel, "--json")
    assert tcc(*arguments).json["findings"] == []
    core = bytes(library.load(made / "g.tcca").file.columns["core"].data)
    other = core[:40] + b"?" + core[41:]
    monkeypatch.setattr("tcc.library._core_in", lambda _: other)
    monkeypatch.setattr("tcc.library._naming_statements", lambda report, *_: report)
    [refused] = tcc(*arguments).json["findings"]
    assert (refused["code"], refused["path"]) == ("G201", "core byte 40")
