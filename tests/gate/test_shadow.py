"""Sessions in the shadow: nothing is refused, what would be is recorded, and nothing is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.kernel import check
from tcc_certs.session import SessionValidation, validate
from tcc_runtime.errors import LedgerError, ResumeError
from tests.gate.grammars import ORDERED, artifact, bytes_of, do, gate


def records_of(path: Path) -> list[dict[str, Any]]:
    return [dict(record) for record in LedgerReader([path.read_bytes()])]


def judged(data: bytes) -> SessionValidation:
    return validate(data, check(bytes_of(artifact(ORDERED))))


def shadowed(path: Path) -> Path:
    """A session in which `b` is called first, then a tool that is none; then a plan is done."""
    session = gate(ORDERED, ledger=path, durable=False, shadow=True)
    with session.call("b") as permit:
        assert (permit.shadowed, permit.seq, permit.key) == ("R201", 0, "")
        permit.done({"any": 1})
    with session.call("none", {"x": 1}) as permit:
        assert permit.shadowed
    do(session, "a")
    do(session, "c")
    session.finish()
    return path


def rewritten(path: Path, changed: Any) -> bytes:
    """The ledger without its key: chained anew, the session's name as it is."""
    head, found = FIRST_HEAD, b""
    for record in changed(records_of(path)):
        line, head = seal(encode(record), head)
        found += bytes(line)
    return found


def test_what_would_be_refused_is_made_and_leads_nowhere(tmp_path: Path) -> None:
    records = records_of(shadowed(tmp_path / "s"))
    assert records[0]["shadow"] is True
    made = [(one["tool"], one["code"], one["made"]) for one in records if one["kind"] == "refusal"]
    assert made == [("b", "R201", True), ("unknown tool", "R101", True)]
    assert [one["call"] for one in records if one["kind"] == "call"] == ["a", "c"]
    found = judged((tmp_path / "s").read_bytes())
    assert (found.verdict, found.claim_type, found.claim_upheld) == (0, "NoClaim", False)
    assert found.asserted == ()
    assert "a shadow session made 2 calls that the policy refuses" in found.summary


def test_one_that_goes_on_claims_nothing_either(tmp_path: Path) -> None:
    data = shadowed(tmp_path / "s").read_bytes().splitlines(keepends=True)
    found = judged(b"".join(data[:-1]))
    assert (found.word, found.claim_type) == ("INCOMPLETE", "NoClaim")


def test_in_a_task_too(tmp_path: Path) -> None:
    session = gate(ORDERED, ledger=tmp_path / "s", shadow=True)

    async def run() -> None:
        async with session.call("c") as permit:
            assert permit.shadowed
            permit.failed("whatever")
        async with session.call("a") as permit:
            assert not permit.shadowed
            permit.done()

    asyncio.run(run())
    kinds = [one["kind"] for one in records_of(tmp_path / "s")]
    assert kinds == ["session", "refusal", "call", "outcome"]


def test_a_session_is_reopened_as_it_was_begun(tmp_path: Path) -> None:
    gate(ORDERED, ledger=tmp_path / "a", shadow=True).close()
    with pytest.raises(ResumeError, match="enforced"):
        gate(ORDERED, ledger=tmp_path / "a")
    gate(ORDERED, ledger=tmp_path / "b").close()
    with pytest.raises(ResumeError, match="in the shadow"):
        gate(ORDERED, ledger=tmp_path / "b", shadow=True)
    assert gate(ORDERED, ledger=tmp_path / "a", shadow=True).shadow


def test_a_principal_does_not_leave_a_session_through_the_shadow(tmp_path: Path) -> None:
    store = tcc.Sessions(artifact(ORDERED), tmp_path / "store", False)
    session = store.open(principal="alice")
    do(session, "a")
    session.close()
    other = tcc.Sessions(artifact(ORDERED), tmp_path / "store", False, shadow=True)
    with pytest.raises(ResumeError, match="shadow"):
        other.open(principal="alice")
    begun = other.open(principal="bob")
    begun.close()
    with pytest.raises(ResumeError, match="shadow"):
        store.get(begun.session_id)
    # Who looks after the store has both.
    tcc.Sessions.of(tmp_path / "store").get(begun.session_id).close()
    tcc.Sessions.of(tmp_path / "store").get(session.session_id).close()


def test_what_is_not_the_grammars_word_is_refused(tmp_path: Path) -> None:
    session = gate(ORDERED, ledger=tmp_path / "s", shadow=True)
    with session.call("a", ref="one") as permit:
        permit.done()
    with pytest.raises(tcc.AlreadyDone), session.call("a", ref="one"):
        pytest.fail("a call of that id was made")
    session.finish(abandon=True)
    with pytest.raises(tcc.Refused, match="R303"), session.call("c"):
        pytest.fail("nothing can be recorded any more")


def test_nothing_is_made_that_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = gate(ORDERED, ledger=tmp_path / "s", shadow=True)

    def full(_: Callable[[bytes], bytes]) -> None:
        raise LedgerError("s", OSError(28, "No space left on device"))

    monkeypatch.setattr(session._access.journal, "append", full)
    with pytest.raises(tcc.Refused), session.call("b"):
        pytest.fail("it is made and not recorded")


def test_made_is_of_the_shadow_alone(tmp_path: Path) -> None:
    path = shadowed(tmp_path / "s")

    def enforced(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        del records[0]["shadow"]
        return records

    def of_another_code(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        records[1]["code"] = "R304"
        return records

    def not_true(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        records[1]["made"] = False
        return records

    for changed, codes in (
        (enforced, {"S102", "S211"}),
        (of_another_code, {"S211"}),
        (not_true, {"L103"}),
    ):
        found = judged(rewritten(path, changed))
        assert (found.verdict, found.claim_type) == (1, "NoClaim"), changed
        assert {one.code.value for one in found.findings} <= codes | {"S103"}, found.findings
        assert codes & {one.code.value for one in found.findings}


def test_a_story_says_that_it_was_made(tmp_path: Path) -> None:
    path = shadowed(tmp_path / "s")
    tcc.save(artifact(ORDERED), tmp_path / "a.tcca")
    page = tmp_path / "page.html"
    from tests.mcp.speaking import tcc as run

    assert run("report", str(path), "--artifact", str(tmp_path / "a.tcca"), "-o", str(page))
    assert "made all the same" in page.read_text()
    ended = run("validate", str(path), "--artifact", str(tmp_path / "a.tcca"), "--json")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["claim_type"] == "NoClaim"
