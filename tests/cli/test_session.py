"""``tcc session show``: a person can follow a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc.commands import session_command
from tests.cli.conftest import Tcc

GRAMMAR = """grammar shop version "1"

tool approve(order: text)
tool refund(part: half | full, order: text)
tool check gives (result: pass | fail)

plan = any{0,6}

before refund require approve(same order)
before refund(part = full) require check(result = pass)
"""


@pytest.fixture
def played(tmp_path: Path) -> tuple[Path, Path]:
    artifact, ledger = library.compile_text(GRAMMAR), tmp_path / "s.ledger"
    library.save(artifact, tmp_path / "a.tcca")
    gate = library.Gate(artifact, ledger=ledger, show=["refund.order"], clock=lambda: 1000)
    with gate.call("approve", {"order": "17"}) as permit:
        permit.done()
    with gate.call("check") as permit:
        permit.done(observed={"result": "fail"})
    with pytest.raises(library.Refused), gate.call("refund", {"part": "full", "order": "17"}):
        pass
    with gate.call("refund", {"part": "half", "order": "17"}):
        pass
    gate.resolve(3, "done")
    gate.close()
    return ledger, tmp_path / "a.tcca"


def test_a_session_is_told(tcc: Tcc, played: tuple[Path, Path]) -> None:
    ended = tcc("session", "show", played[0], "--artifact", played[1])
    assert ended.code == 0
    for text in (
        "of shop 1", "began", "1970-01-01T00:00:01.000+00:00", "approve [order: #",
        "check: done, result=fail, 0 ms",
        "refused refund: R202, before refund(part = full) require check(result = pass)",
        "refund(part=half) [order: 17]: unknown", "3 was done", "may follow", "ConformantPrefix",
        "INCOMPLETE", "may end     yes",
    ):  # fmt: skip
        assert text in ended.out, text


def test_a_session_is_told_to_programs(tcc: Tcc, played: tuple[Path, Path]) -> None:
    ended = tcc("session", "show", played[0], "--artifact", played[1], "--json")
    found = ended.json
    assert (found["format"], found["may_finish"], found["ended"]) == ("tcc.session", True, False)
    kinds = [event["kind"] for event in found["events"]]
    assert kinds == ["call", "call", "refusal", "call", "resolve"]
    assert (found["events"][2]["outcome"], found["events"][2]["statement"]) == ("R202", 1)
    assert found["events"][1]["observed"] == {"result": "fail"}
    assert "refund(part=half)" in found["allowed_next"]
    assert found["events"][-1]["after"] == found["states"]


def test_what_is_no_session_is_not_told(
    tcc: Tcc, played: tuple[Path, Path], tmp_path: Path
) -> None:
    ledger, artifact = played
    data = ledger.read_bytes()
    bad = tmp_path / "bad"
    for content, code in (
        (data.replace(b"refund(part=half)", b"refund(part=full)"), 1),
        (b"", 2),
    ):
        bad.write_bytes(content)
        ended = tcc("session", "show", bad, "--artifact", artifact)
        assert ended.code == code and "internal" not in ended.err
    artifact_of_another = tmp_path / "b.tcca"
    library.save(library.compile_text(GRAMMAR.replace("{0,6}", "{0,5}")), artifact_of_another)
    assert tcc("session", "show", ledger, "--artifact", artifact_of_another).code == 1


def test_a_cut_session_is_told_as_far_as_it_goes(tcc: Tcc, played: tuple[Path, Path]) -> None:
    ledger, artifact = played
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:4]) + lines[4][:-20])
    ended = tcc("session", "show", ledger, "--artifact", artifact)
    assert ended.code == 0 and "check: open" in ended.out


def test_a_session_is_told_of_the_bytes_that_were_validated(
    tcc: Tcc, played: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the ledger is by then: here its first line ends behind the validation."""
    ledger, artifact = played
    begun = ledger.read_bytes().splitlines()[0]
    ledger.write_bytes(begun)
    whole = session_command.validate

    def grows(*given: Any, **more: Any) -> Any:
        found = whole(*given, **more)
        ledger.write_bytes(begun + b"\n")
        return found

    monkeypatch.setattr(session_command, "validate", grows)
    ended = tcc("session", "show", ledger, "--artifact", artifact)
    assert ended.code == 2 and "internal" not in ended.err, ended


GIVEN = """grammar desk version "1"

given user: text, team?: text

tool look
tool refund(user: text)

plan = any{0,6}

before refund require look within 5 m
before refund require user = session.user
"""


def test_a_session_is_told_with_what_it_was_given_and_when(tcc: Tcc, tmp_path: Path) -> None:
    artifact, ledger = library.compile_text(GIVEN), tmp_path / "s.ledger"
    library.save(artifact, tmp_path / "a.tcca")
    given = {"user": "ann", "team": "red"}
    with library.Gate(artifact, ledger=ledger, given=given, clock=lambda: 1000) as gate:
        for tool, arguments in (("look", {}), ("refund", {"user": "ann"})):
            with gate.call(tool, arguments) as permit:
                permit.done()
    ended = tcc("session", "show", ledger, "--artifact", tmp_path / "a.tcca")
    assert ended.code == 0
    for text in (
        "given     team: #", "user: #", "look at 1970-01-01T00:00:01.000+00:00: done",
        "refund [user: #", "] at 1970-01-01T00:00:01.000+00:00: done",
    ):  # fmt: skip
        assert text in ended.out, ended.out
    found = tcc("session", "show", ledger, "--artifact", tmp_path / "a.tcca", "--json").json
    assert list(found["session"]["given"]["user"]) == ["digest"]
    assert [event["at_ms"] for event in found["events"]] == [1000, 1000]
    page = tmp_path / "s.html"
    told = tcc("report", ledger, "--artifact", tmp_path / "a.tcca", "-o", page)
    assert told.code in (0, 2) and "given user" in page.read_text()


ANSWERED = """grammar desk version "1"

given team: list of text

tool look(order: text) gives (state: open | shut, by: text, cards: list of text, fee: number 0 .. 9)
tool pay(order: text, card: text, fee: number 0 .. 9)

plan = any{0,9}

before pay {
  let latest = last(look(same order))
  require card in latest.cards and fee <= latest.fee and latest.by = "ann"
}
before look require order in session.team
"""


def test_a_session_shows_what_its_ledger_has_of_answers(tcc: Tcc, tmp_path: Path) -> None:
    artifact, ledger = library.compile_text(ANSWERED), tmp_path / "s.ledger"
    library.save(artifact, tmp_path / "a.tcca")
    with library.Gate(artifact, ledger=ledger, given={"team": ["o"]}, shadow=True) as gate:
        for answer in ({"state": "open", "by": "ann", "cards": ["a", "b"], "fee": 4}, {}):
            with gate.call("look", {"order": "o"}) as permit:
                permit.done(answer)
        gate.finish()
    told = tcc("session", "show", ledger, "--artifact", tmp_path / "a.tcca", "--json").json
    first, second = [event["observed"] for event in told["events"][:2]]
    assert (first["state"], first["cards"], first["fee"]) == ("open", "2 elements", "4")
    assert first["by"][0] == "#" and len(first["by"]) == 13
    assert second == {"by": "unknown", "cards": "unknown", "fee": "unknown"}
    page = tmp_path / "s.html"
    tcc("report", ledger, "--artifact", tmp_path / "a.tcca", "-o", page)
    assert "2 elements" in page.read_text()


LEARNED = """grammar desk version "1"

given customer from find.user | look.owner
given level from look.level

tool find(mail: text) gives (user: text)
tool look(order: text) gives (owner: text, level: number 0 .. 9)
tool pay(to: text, level: number 0 .. 9)

plan = any{0,9}

before pay require to = session.customer and level <= session.level
"""


def test_a_session_shows_what_it_learned_and_by_which_outcome(tcc: Tcc, tmp_path: Path) -> None:
    artifact, ledger = library.compile_text(LEARNED), tmp_path / "s.ledger"
    library.save(artifact, tmp_path / "a.tcca")
    with library.Gate(artifact, ledger=ledger) as gate:
        for tool, given, answer in (
            ("look", {"order": "o"}, {"owner": "ann", "level": 2.5}),
            ("find", {"mail": "m"}, {"user": "bob"}),
        ):
            with gate.call(tool, given) as permit:
                permit.done(answer)
        with gate.call("find", {"mail": "m"}):
            pass
        gate.resolve(3, "done", {"user": "eve"})
        gate.close()
    ended = tcc("session", "show", ledger, "--artifact", tmp_path / "a.tcca", "--json")
    told = ended.json
    first, *rest = [event.get("learned") for event in told["events"]]
    assert first == told["learned"] and rest == [None, None, None]
    assert (first["level"], first["customer"][0], len(first["customer"])) == ("2.5", "#", 13)
    shown = tcc("session", "show", ledger, "--artifact", tmp_path / "a.tcca").out
    assert f"session.customer={first['customer']}, session.level=2.5" in shown
    assert f"learned     customer: {first['customer']}, level: 2.5" in shown
    with library.Gate(artifact, ledger=tmp_path / "t.ledger", show=["find.user"]) as gate:
        with gate.call("find", {"mail": "m"}):
            pass
        gate.resolve(1, "done", {"user": "eve"})
        gate.close()
    told = tcc(
        "session", "show", tmp_path / "t.ledger", "--artifact", tmp_path / "a.tcca", "--json"
    )
    first, second = [event.get("learned") for event in told.json["events"]]
    assert first is None and second == told.json["learned"] and list(second) == ["customer"]
