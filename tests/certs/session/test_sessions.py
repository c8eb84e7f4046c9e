"""Ledgers of sessions as a whole: what is valid, what it claims, and what is asserted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy import nodes
from tcc_certs.session import SessionValidation, approvals, validate
from tcc_certs.session.approvals import Approvals, Asked, Question
from tcc_certs.session.validation import statements_of
from tests.oracle_session.asking import ONE, asked, asking
from tests.oracle_session.writer import KEY, START_MS, SessionWriter, artifact_of, named, sealed

DESK = """grammar desk version "1"
tool find(kind: order | person, id: text) gives (owner: text, state: open | closed | *)
tool refund(part?: full | half, order: text, amount: number 0 .. 500)
tool run gives (result: pass | fail)
tool close
plan = (find | refund | run)* close
limit depth <= 12
before refund require find(id = this.order)
limit sum(refund.amount) <= 600
limit count(refund(part = full | half)) <= 2
limit price <= 100
"""
TIMED = """grammar timed version "1"
tool look(id: text)
tool act(id: text)
limit depth <= 12
before act require look(id = this.id) within 1 h
after act owe look(same id) within 10 m
limit count(act within 1 h) <= 3 in session
"""
OWING = """grammar owing version "1"
tool a
tool b(k: text)
limit depth <= 9
after a owe b
finally require no b(k = "x")
"""
DAY = 86_400_000


def desk() -> CheckedArtifact:
    return artifact_of(DESK)


def first(found: SessionValidation) -> tuple[str, int, str]:
    """Code, line and field of the first finding."""
    item = found.findings[0]
    return item.code.value, item.line, item.field


def judged(writer: SessionWriter, **options: Any) -> SessionValidation:
    return validate(writer.ledger(), writer.artifact, **options)


def refunding(**options: Any) -> SessionWriter:
    """A session in which a refund is under way."""
    writer = SessionWriter(desk(), **options)
    writer.made("find", {"owner": "o", "state": "open"}, kind="order", id="o-1")
    writer.call("refund", part="half", amount=1.5, order="o-1")
    return writer


def closed(writer: SessionWriter) -> SessionWriter:
    writer.made("close")
    writer.end()
    return writer


# Verdicts and claims.


def test_a_session_that_ends_where_it_may_finish_is_conformant() -> None:
    writer = refunding()
    writer.done()
    found = judged(closed(writer))
    assert (found.verdict, found.word, found.claim_type) == (0, "VALID", "Conformant")
    assert found.claim_upheld and not found.findings
    assert found.checked == {"calls": 3, "outcomes": 3, "refusals": 0, "unknown": 0}
    texts = [nodes.statement_text(one) for one in desk().core.statements]
    assert [one.text for one in found.statements] == texts
    chunks = iter([writer.ledger()[:100], writer.ledger()[100:]])
    assert validate(chunks, desk()) == found
    known = judged(writer, key=KEY)
    assert (known.claim_type, known.summary) == ("Conformant", found.summary)


def test_a_session_without_an_end_is_a_prefix() -> None:
    found = judged(refunding())
    assert (found.verdict, found.word) == (2, "INCOMPLETE")
    assert first(found) == ("D301", 5, "end")
    assert (found.claim_type, found.claim_upheld) == ("ConformantPrefix", False)
    assert found.checked["unknown"] == 1
    assert found.head in found.findings[0].found


def test_an_empty_ledger_is_incomplete() -> None:
    for data in (b"", b"{", refunding().ledger()[:50]):
        found = validate(data, desk())
        assert (found.word, first(found)[0], found.claim_type) == ("INCOMPLETE", "D301", "NoClaim")


def test_an_abandoned_session_is_a_prefix() -> None:
    writer = refunding()
    writer.unknown()
    writer.end(abandoned=True)
    found = judged(writer)
    assert (found.verdict, found.claim_type, found.checked["unknown"]) == (0, "ConformantPrefix", 1)


def test_an_answer_that_leads_nowhere_ends_all_claims() -> None:
    artifact = artifact_of(
        'grammar g version "1"\ntool run gives (result: pass | fail)\ntool close\n'
        "plan = run(result = pass) close"
    )
    writer = SessionWriter(artifact)
    writer.made("run", {"result": "fail"})
    assert writer.course.lost
    assert (judged(writer).word, judged(writer).claim_type) == ("INCOMPLETE", "NoClaim")
    nowhere = SessionWriter(artifact)
    nowhere.made("run", {"result": "fail"})
    nowhere.call("close", force=True)
    assert first(judged(nowhere)) == ("S301", 4, "call")
    assert nowhere.records[-1]["states"] == [-1]
    writer.refusal("close", "R201")
    writer.end()
    assert first(judged(writer)) == ("S305", 5, "abandoned")
    writer.records[-1]["abandoned"] = True
    assert (judged(writer).verdict, judged(writer).claim_type) == (0, "NoClaim")


def test_a_shadow_session_claims_nothing() -> None:
    writer = SessionWriter(desk(), shadow=True)
    writer.refusal("refund", "R202", statement=1, made=True)
    found = judged(closed(writer))
    assert (found.verdict, found.claim_type, found.claim_upheld) == (0, "NoClaim", False)
    assert "1 calls that the policy refuses" in found.summary
    plain = SessionWriter(desk())
    plain.refusal("refund", "R202", statement=1, made=True)
    assert first(judged(plain)) == ("S211", 2, "made")


@pytest.mark.parametrize("code", ["R205", "R210", "R304", "R305", "R307", "R308"])
def test_a_shadow_session_makes_only_calls_that_the_policy_refuses(code: str) -> None:
    writer = SessionWriter(desk(), shadow=True)
    writer.refusal("refund", code, made=True)
    assert first(judged(writer))[0] == "S211"


def test_the_verdict_lists_what_is_asserted() -> None:
    writer = refunding(show=["refund.amount"])
    writer.failed()
    writer.made("run", {})  # its answer is not known
    writer.call("close")
    writer.unknown()
    writer.refusal("find", "R201")
    writer.resolve(4, "done", who="ann")
    writer.end()
    told = judged(writer).asserted
    assert told == (
        "every call was recorded, and every outcome and answer is true",
        "1 failed calls had no effect",
        "unknown answers of 1 calls were listed, or values of their type",
        "1 outcomes that became known later are true",
        "1 refusals had these tools and codes",
        "values of find.id, which are not shown, have their type and limits",
        "values of refund.order, which are not shown, have their type and limits",
        "digests are those of the values: the key is not known",
        "idempotency keys and MACs come from the holder of the key: it is not known",
    )
    known = judged(writer, key=KEY).asserted
    assert known == tuple([text for text in told if "the key" not in text])


def test_given_attributes_constants_times_and_marks_are_asserted() -> None:
    artifact = artifact_of(
        'grammar g version "1"\ngiven who: text\ntool a(k: text)\nlimit depth <= 9\n'
        'before a require session.who = "ann" and k ~ "a.*" and hour(now) >= 0'
    )
    writer = SessionWriter(artifact, given={"who": "ann"})
    writer.made("a", k="abc")
    writer.end()
    told = judged(writer).asserted
    assert told[1:] == (
        "the session was given session.who",
        "times",
        "values of a.k, which are not shown, have their type and limits",
        "values of session.who, which are not shown, have their type and limits",
        "texts of a.k match patterns as stated",
        "digests are those of the values: the key is not known",
        "digests of constants are those of the constants: the key is not known",
        "idempotency keys and MACs come from the holder of the key: it is not known",
    )


# Decisions.


def test_a_call_that_a_statement_refuses_ends_the_validation() -> None:
    writer = SessionWriter(desk())
    writer.call("refund", order="o-1", amount=5, force=True)
    found = judged(writer)
    assert first(found) == ("S302", 2, "call")
    assert found.findings[0].expected == (
        "a call that this statement allows: before refund require find(id = this.order)"
    )
    assert found.findings[0].found == "refund: R202"
    assert (found.word, found.claim_type) == ("INVALID", "NoClaim")


def test_sums_count_across_calls() -> None:
    writer = refunding()
    writer.done()
    writer.made("refund", order="o-1", amount=500)
    writer.call("refund", order="o-1", amount=99, force=True)
    assert first(judged(writer)) == ("S302", 8, "call")


def test_unknown_outcomes_count_against_a_call() -> None:
    writer = SessionWriter(desk())
    writer.call("find", kind="order", id="o-1")
    writer.unknown()
    held = writer.ledger()
    writer.call("refund", order="o-1", amount=1, force=True)
    assert first(judged(writer)) == ("S302", 4, "call")
    again = SessionWriter(desk())
    again.call("find", kind="order", id="o-1")
    again.unknown()
    assert again.ledger() == held
    again.resolve(1, "done", {"owner": "o", "state": "other"})
    again.made("refund", order="o-1", amount=1)
    assert judged(closed(again)).claim_type == "Conformant"


def test_a_call_that_no_plan_continues_with_is_refused() -> None:
    writer = SessionWriter(desk())
    writer.made("close")
    writer.call("close", force=True)
    assert first(judged(writer)) == ("S301", 4, "call")


def test_the_end_needs_plans_debts_and_finally() -> None:
    writer = SessionWriter(desk())
    writer.end()
    assert first(judged(writer)) == ("S305", 2, "abandoned")
    unknown = SessionWriter(desk())
    unknown.call("close")
    unknown.unknown()
    unknown.end()
    assert first(judged(unknown)) == ("S305", 4, "abandoned")
    owing = SessionWriter(artifact_of(OWING))
    owing.made("a")
    owing.end()
    assert first(judged(owing)) == ("S305", 4, "abandoned")


@pytest.mark.parametrize(("last", "code"), [("y", ""), ("x", "S305")])
def test_the_end_needs_its_conditions(last: str, code: str) -> None:
    writer = SessionWriter(artifact_of(OWING))
    writer.made("a")
    writer.made("b", k=last)
    writer.end()
    found = judged(writer)
    assert (first(found)[0] if found.findings else "") == code


def test_late_outcomes_compute_a_bounded_number_of_calls_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = SessionWriter(desk())
    writer.call("find", kind="order", id="o-1")
    writer.unknown()
    for order in ("o-2", "o-3"):
        writer.made("find", {"owner": "o", "state": "open"}, kind="order", id=order)
    writer.resolve(1, "done", {"owner": "o", "state": "open"})
    assert judged(writer).claim_type == "ConformantPrefix"
    monkeypatch.setattr("tcc_certs.session.machine.MAX_REFOLDED", 1)
    assert first(judged(writer)) == ("D201", 8, "resolve")
    assert judged(writer).claim_type == "NoClaim"


def test_the_attribute_is_learned_in_the_order_of_the_records() -> None:
    artifact = artifact_of(
        'grammar g version "1"\ngiven user from login.user\n'
        "tool login gives (user: text)\ntool act(user: text)\nlimit depth <= 9\n"
        "before act require user = session.user"
    )
    writer = SessionWriter(artifact)
    writer.call("login")
    writer.unknown()
    writer.made("login", {"user": "bob"})
    writer.resolve(1, "done", {"user": "ann"})
    writer.made("act", user="bob")
    writer.call("act", user="ann", force=True)
    assert first(judged(writer)) == ("S302", 9, "call")


# Times.


def timed() -> SessionWriter:
    writer = SessionWriter(artifact_of(TIMED))
    writer.made("look", id="a")
    writer.now += 60_000
    writer.made("act", id="a")
    return writer


def test_times_decide_windows_and_deadlines() -> None:
    writer = timed()
    writer.now += 600_000
    writer.made("act", id="a")  # 10 m later the debt is not overdue yet
    writer.now += 1
    writer.call("act", id="a", force=True)
    found = judged(writer)
    assert first(found) == ("S302", 8, "call")
    assert found.findings[0].found == "act: R208"


def test_a_session_with_times_has_them_in_each_record() -> None:
    writer = timed()
    writer.made("look", id="a")
    writer.end()
    assert judged(writer).claim_type == "Conformant"
    for at in range(1, len(writer.records)):
        records = json.loads(json.dumps(writer.records))
        del records[at]["at_ms"]
        found = validate(sealed(records), writer.artifact)
        assert first(found) == ("S201", at + 1, "at_ms")
        records[at]["at_ms"] = START_MS - 1
        assert first(validate(sealed(records), writer.artifact)) == ("S201", at + 1, "at_ms")


def test_a_session_without_times_has_none() -> None:
    writer = closed(refunding_done())
    for at in range(1, len(writer.records)):
        records = [*writer.records]
        records[at] = {**records[at], "at_ms": START_MS}
        assert first(validate(sealed(records), desk())) == ("S201", at + 1, "at_ms")


def refunding_done() -> SessionWriter:
    writer = refunding()
    writer.done()
    return writer


def test_a_person_who_resolves_has_a_time() -> None:
    writer = refunding()
    writer.unknown()
    writer.resolve(2, "done", who="ann")
    assert judged(writer).claim_type == "ConformantPrefix"
    lacking = [*writer.records]
    lacking[-1] = {name: one for name, one in lacking[-1].items() if name != "at_ms"}
    assert first(validate(sealed(lacking), desk())) == ("S201", 6, "at_ms")


# Records.


def test_calls_have_numbers_keys_and_references_of_their_own() -> None:
    writer = SessionWriter(desk())
    writer.call("find", kind="order", id="a", ref="id-1")
    writer.done({"owner": "o", "state": "open"})
    writer.call("find", kind="order", id="b", ref="id-2")
    writer.done({"owner": "o", "state": "open"})
    records = writer.records
    assert first(changed(records, 3, seq=3)) == ("S201", 4, "seq")
    assert first(changed(records, 3, key=records[1]["key"])) == ("S208", 4, "key")
    assert first(changed(records, 3, ref=records[1]["ref"])) == ("S208", 4, "ref")
    assert first(changed(records, 3, key="ab" * 16, secret=KEY)) == ("S207", 4, "key")
    assert not changed(records, 3, key="ab" * 16).findings[1:]


def changed(
    records: list[dict[str, Any]], at: int, *, secret: bytes | None = None, **members: Any
) -> SessionValidation:
    """The verdict with other members in a record; None: the member is left out."""
    merged = {**records[at], **members}
    record = {name: value for name, value in merged.items() if value is not None}
    return validate(sealed([*records[:at], record, *records[at + 1 :]]), desk(), key=secret)


CHANGES: list[tuple[int, dict[str, Any], str, str]] = [
    # The call that find(kind=order) is, in a session with an unknown state.
    (1, {"call": "find(kind=zzz)"}, "S202", "call"),
    (1, {"call": "find"}, "S202", "call"),
    (1, {"call": "refund"}, "S203", "open"),
    (1, {"open": {}}, "S203", "open"),
    (1, {"states": [7]}, "S206", "states"),
    (1, {"states": "x"}, "L103", "states"),
    (1, {"across": {"account": "0" * 64, "at_ms": 1, "attempt": 0, "draws": []}}, "S213", "across"),
    (1, {"approvals": ["0" * 32]}, "S216", "approvals"),
    (2, {"seq": 2}, "S201", "seq"),
    (2, {"outcome": "over"}, "L103", "outcome"),
    (2, {"outcome": "failed"}, "S210", "observed"),
    (2, {"outcome": "failed", "observed": None}, "S209", "result"),
    (2, {"outcome": "unknown", "observed": None}, "S209", "result"),
    (2, {"observed": {}}, "S209", "unforeseen"),
    (2, {"observed": None}, "S210", "observed"),
    (2, {"observed": {"state": "none"}}, "S210", "observed"),
    (2, {"observed": {"state": ""}}, "S210", "observed"),
    (2, {"observed": {"owner": "open"}}, "S210", "observed"),
    (2, {"unforeseen": True}, "S209", "unforeseen"),
    (2, {"answers": {"owner": {"digest": "0" * 64}}}, "S210", "answers"),
    (2, {"answers": {}}, "L103", "answers"),
    (2, {"answered": True}, "S209", "answered"),
    (2, {"result": "x"}, "L103", "result"),
    (2, {"took": {}}, "L103", "took"),
    (3, {"execute": {}}, "L103", "execute"),
    (2, {"kind": "call"}, "L103", "ms"),
    (2, {"kind": "session"}, "L103", "ms"),
    (2, {"kind": "tool"}, "L103", "kind"),
    (2, {"mac": "0"}, "L103", "mac"),
    (2, {"mac": None}, "", ""),
    (2, {"note": "x"}, "L103", "note"),
]


@pytest.mark.parametrize(("at", "members", "code", "name"), CHANGES)
def test_members_have_rules(at: int, members: dict[str, Any], code: str, name: str) -> None:
    records = refunding_done().records
    found = changed(records, at, **members)
    if not code:
        assert [item.code for item in found.findings] == ["D301"]  # the MAC is made anew
    else:
        assert first(found)[::2] == (code, name)


def test_an_outcome_follows_its_call_and_a_resolve_an_unknown_outcome() -> None:
    writer = refunding_done()
    twice = [*writer.records, writer.records[-1]]
    assert first(validate(sealed(twice), desk())) == ("L104", 6, "kind")
    resolve = {"kind": "resolve", "seq": 1, "outcome": "failed"}
    assert first(validate(sealed([*writer.records, resolve]), desk())) == ("S212", 6, "seq")
    under_way = [*refunding().records, {**resolve, "seq": 2}]
    assert first(validate(sealed(under_way), desk())) == ("S212", 5, "seq")
    early = [*refunding().records, {"kind": "end", "abandoned": True}]
    assert first(validate(sealed(early), desk())) == ("L104", 5, "kind")


def test_every_listed_answer_of_a_resolve_is_known() -> None:
    writer = SessionWriter(desk())
    writer.call("run")
    writer.unknown()
    resolve = {"kind": "resolve", "seq": 1, "outcome": "done", "observed": {}}
    found = validate(sealed([*writer.records, resolve]), desk())
    assert first(found) == ("S210", 4, "observed")


def test_nothing_follows_the_end() -> None:
    writer = closed(refunding_done())
    more = sealed([*writer.records, {"kind": "refusal", "tool": "find", "code": "R201"}])
    assert first(validate(more, desk())) == ("L104", 9, "kind")
    assert first(validate(writer.ledger() + b"x", desk())) == ("L104", 9, "line")


def test_the_first_record_is_the_header() -> None:
    writer = refunding_done()
    assert first(validate(sealed(writer.records[1:]), desk())) == ("L104", 1, "kind")
    twice = [writer.records[0], *writer.records]
    assert first(validate(sealed(twice), desk())) == ("L104", 2, "kind")


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"tool": "find", "code": "R201"}, ""),
    ({"tool": "unknown tool", "code": "R101"}, ""),
    ({"tool": "refund", "code": "R202", "statement": 1}, ""),
    ({"tool": "refund", "code": "R207", "statement": 2}, ""),
    ({"tool": "find", "code": "R203", "statement": 0}, ""),
    ({"tool": "find", "code": "R101"}, "tool"),
    ({"tool": "unknown tool", "code": "R201"}, "tool"),
    ({"tool": "zzz", "code": "R201"}, "tool"),
    ({"tool": "find", "code": "R204"}, "code"),
    ({"tool": "find", "code": "R211"}, "code"),
    ({"tool": "find", "code": "R303"}, "code"),
    ({"tool": "find", "code": "R306"}, "code"),
    ({"tool": "find", "code": "S301"}, "code"),
    ({"tool": "find", "code": "R205"}, "code"),
    ({"tool": "refund", "code": "R202"}, "statement"),
    ({"tool": "find", "code": "R202", "statement": 1}, "statement"),
    ({"tool": "refund", "code": "R202", "statement": 0}, "statement"),
    ({"tool": "refund", "code": "R202", "statement": 9}, "statement"),
    ({"tool": "refund", "code": "R208", "statement": 1}, "statement"),
    ({"tool": "find", "code": "R201", "statement": 1}, "statement"),
]


@pytest.mark.parametrize(("record", "name"), REFUSALS)
def test_a_refusal_has_a_tool_a_code_and_its_statement(record: dict[str, Any], name: str) -> None:
    found = validate(sealed([*refunding_done().records, {"kind": "refusal", **record}]), desk())
    assert first(found) == (("S211", 6, name) if name else ("D301", 7, "end"))


HEADERS: list[tuple[dict[str, Any], str, str]] = [
    ({"schema": "tcc.session/1.1"}, "D102", "schema"),
    ({"schema": 2}, "L103", "schema"),
    ({"session_id": "018bcfe5-6800-7d70-9cfe-5234117e9177"}, "S102", "session_id"),
    ({"artifact": "0" * 64}, "L202", "artifact"),
    ({"grammar": "other"}, "S101", "grammar"),
    ({"grammar_version": "2"}, "S101", "grammar_version"),
    ({"root_state": "0" * 64}, "S101", "root_state"),
    ({"statements": []}, "S103", "statements"),
    ({"arguments": {"show": ["refund.part"]}}, "S101", "arguments"),
    ({"arguments": {"show": ["refund.order", "find.id"]}}, "S101", "arguments"),
    ({"arguments": {"show": ["find.id", "find.id"]}}, "S101", "arguments"),
    ({"arguments": {}}, "L103", "arguments"),
    ({"constants": ["0" * 64]}, "S101", "constants"),
    ({"given": {}}, "S101", "given"),
    ({"continues": "0" * 64}, "S217", "continues"),
    ({"shadow": False}, "L103", "shadow"),
    ({"key_commitment": "0"}, "L103", "key_commitment"),
]


@pytest.mark.parametrize(("members", "code", "name"), HEADERS)
def test_the_header_follows_from_the_artifact(
    members: dict[str, Any], code: str, name: str
) -> None:
    records = refunding_done().records
    header = {**records[0], **members}
    header = header if "session_id" in members else named(header)
    found = validate(sealed([header, *records[1:]]), desk())
    assert first(found)[::2] == (code, name)


def test_another_key_and_another_mac_are_refused() -> None:
    writer = refunding_done()
    found = judged(writer, key=bytes(32))
    assert [item.code for item in found.findings] == ["S104"]
    for at in range(len(writer.records)):
        records = [*writer.records]
        records[at] = {**records[at], "mac": "0" * 32}
        assert first(validate(sealed(records), desk(), key=KEY)) == ("S205", at + 1, "mac")


# Files.


def rolled() -> SessionWriter:
    writer = SessionWriter(desk())
    writer.made("find", {"owner": "o", "state": "open"}, kind="order", id="o-1")
    writer.call("refund", order="o-1", amount=1)
    writer.roll()
    writer.done()
    writer.roll()
    return closed(writer)


def test_a_ledger_continues_in_other_files() -> None:
    files = rolled().ledgers()
    assert len(files) == 3
    for key in (None, KEY):
        found = validate(files[0], desk(), more=files[1:], key=key)
        assert (found.word, found.claim_type) == ("VALID", "Conformant"), found
        assert found.checked["calls"] == 3
    for end in (1, 2):
        found = validate(files[0], desk(), more=files[1:end])
        assert (found.word, found.claim_type) == ("INCOMPLETE", "ConformantPrefix")


def test_files_are_in_their_order_and_continue_each_other() -> None:
    writer = rolled()
    one, two, three = writer.ledgers()
    assert first(validate(one, desk(), more=[three, two])) == ("S217", 6, "continues")
    assert first(validate(two, desk(), more=[three])) == ("S217", 1, "continues")
    assert first(validate(one, desk(), more=[two, three, three]))[0] == "S217"
    cut = one[: one.rindex(b'{"kind":"roll"')]
    assert first(validate(cut, desk(), more=[two])) == ("S217", 5, "file")
    assert first(validate(one, desk(), more=[two, three, two])) == ("S217", 13, "file")
    assert first(validate(one + two, desk()))[0] == "L102"
    other = [{**writer.files[1][0], "nonce": "0" * 32}, *writer.files[1][1:]]
    assert first(validate(one, desk(), more=[sealed(other)])) == ("S217", 6, "nonce")
    shadow = [{**writer.files[1][0], "shadow": True}, *writer.files[1][1:]]
    assert first(validate(one, desk(), more=[sealed(shadow)])) == ("S217", 6, "shadow")


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ((0, 2), "the file that file 2 continues is missing"),
        ((0, 2, 1), "file 2 continues file 3"),
        ((0, 1, 1), "file 3 continues file 1, as file 2 does"),
    ],
)
def test_a_finding_says_what_is_wrong_with_the_files(order: tuple[int, ...], why: str) -> None:
    files = rolled().ledgers()
    found = validate(files[order[0]], desk(), more=[files[at] for at in order[1:]])
    assert found.findings[0].found.endswith(why), found.findings
    assert found.findings[0].line == sum(found.lines[:-1]) + 1


def test_nothing_follows_a_roll_in_its_file() -> None:
    writer = rolled()
    records = [*writer.files[0], {"kind": "end", "abandoned": True}]
    assert first(validate(sealed(records), desk())) == ("L104", 6, "kind")


# Approvals.

HOUR = 3_600_000
TWO, THREE = "2" * 32, "3" * 32


def test_an_approval_lets_one_call_through() -> None:
    writer = asked()
    writer.now += HOUR
    writer.approval(ONE)
    writer.now += HOUR
    writer.call("pay", approvals=[ONE], id="a", amount=50)
    writer.done()
    writer.end()
    found = judged(writer)
    assert found.claim_type == "Conformant", found
    assert found.checked["asked"] == 1
    assert "1 approvals and 0 denials come from the named persons" in found.asserted
    small = SessionWriter(asking())
    small.made("find", id="a")
    small.made("pay", id="a", amount=10)
    assert judged(small).claim_type == "ConformantPrefix"


UNAPPROVED: list[tuple[str, Callable[[SessionWriter], None]]] = [
    ("no approval", lambda w: w.records.pop()),
    ("denied", lambda w: w.records[-1].update(verdict="denied")),
    ("expired", lambda w: setattr(w, "now", w.now + HOUR + 1)),
]


@pytest.mark.parametrize(("_", "change"), UNAPPROVED)
def test_a_call_without_a_usable_approval_is_refused(
    _: str, change: Callable[[SessionWriter], None]
) -> None:
    writer = asked()
    writer.approval(ONE)
    change(writer)
    writer.call("pay", approvals=[ONE], id="a", amount=50)
    assert first(judged(writer))[::2] == ("S216", "approvals")


def test_an_approval_is_of_exactly_this_call() -> None:
    for arguments in ({"id": "a", "amount": 51}, {"id": "b", "amount": 50}):
        writer = asked()
        writer.approval(ONE)
        writer.made("find", id="b")
        writer.call("pay", approvals=[ONE], **arguments)
        assert first(judged(writer))[::2] == ("S216", "approvals")
    writer = asked()
    writer.approval(ONE)
    writer.call("pay", id="a", amount=50)
    assert first(judged(writer))[::2] == ("S216", "approvals")
    needless = asked()
    needless.approval(ONE)
    needless.call("pay", approvals=[ONE], id="a", amount=5)
    assert first(judged(needless))[::2] == ("S216", "approvals")


def test_an_approval_is_used_unless_the_call_failed() -> None:
    for settle, usable in (
        (lambda w: w.done(), False),
        (lambda w: w.unknown(), False),
        (lambda w: w.failed(answered=True), False),
        (lambda w: w.failed(), True),
    ):
        writer = asked()
        writer.approval(ONE)
        writer.call("pay", approvals=[ONE], id="a", amount=50)
        settle(writer)
        writer.call("pay", approvals=[ONE], id="a", amount=50)
        expected = "D301" if usable else "S216"
        assert first(judged(writer))[0] == expected
    late = asked()
    late.approval(ONE)
    late.call("pay", approvals=[ONE], id="a", amount=50)
    late.unknown()
    late.resolve(2, "failed")
    late.call("pay", approvals=[ONE], id="a", amount=50)
    assert first(judged(late))[0] == "D301"


def test_each_ask_that_applies_needs_an_approval_of_its_own_in_order() -> None:
    writer = asked(100)
    writer.approval(ONE)
    writer.ask("pay", TWO, 3, id="a", amount=100)
    writer.approval(TWO)
    kept = list(writer.records)
    for ids, code in (([ONE, TWO], "D301"), ([TWO, ONE], "S216"), ([ONE], "S216")):
        again = asked(100)
        again.records = list(kept)
        again.call("pay", approvals=ids, id="a", amount=100)
        assert first(judged(again))[0] == code


QUESTIONS: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"statement": 3}, "statement"),
    ({"statement": 1}, "statement"),
    ({"who": "boss"}, "who"),
    ({"expires_ms": START_MS + HOUR - 1}, "expires_ms"),
    ({"tool": "find"}, "tool"),
]


@pytest.mark.parametrize(("members", "name"), QUESTIONS)
def test_a_question_is_the_first_that_is_needed(members: dict[str, Any], name: str) -> None:
    writer = asked(100)
    writer.records[-1] |= members
    assert first(judged(writer))[::2] == (("S214", name) if name else ("D301", "end"))


def test_the_same_call_raises_no_second_question() -> None:
    writer = asked()
    writer.ask("pay", TWO, 2, id="a", amount=50)
    assert first(judged(writer)) == ("S214", 5, "statement")
    twice = asked()
    twice.ask("pay", ONE, 2, id="a", amount=60)
    assert first(judged(twice)) == ("S214", 5, "id")
    later = asked()
    later.now += HOUR + 1
    later.ask("pay", TWO, 2, id="a", amount=50)
    assert first(judged(later))[0] == "D301"


def test_a_denied_call_is_not_asked_about_until_the_question_expires() -> None:
    for wait, code in ((HOUR, "S214"), (HOUR + 1, "D301")):
        writer = asked()
        writer.approval(ONE, "denied")
        writer.now += wait
        writer.ask("pay", TWO, 2, id="a", amount=50)
        assert first(judged(writer))[0] == code


def test_a_question_is_about_a_call_that_nothing_else_refuses() -> None:
    writer = SessionWriter(asking())
    writer.ask("pay", ONE, 2, id="a", amount=50)
    assert first(judged(writer)) == ("S302", 2, "call")


def test_a_verdict_is_the_first_and_in_time() -> None:
    twice = asked()
    twice.approval(ONE)
    twice.approval(ONE, "denied")
    assert first(judged(twice)) == ("S215", 6, "id")
    unknown = asked()
    unknown.approval(TWO)
    assert first(judged(unknown)) == ("S215", 5, "id")
    late = asked()
    late.now += HOUR + 1
    late.approval(ONE)
    assert first(judged(late)) == ("S215", 5, "id")


def test_a_question_without_a_term_is_open_for_seven_days() -> None:
    writer = asked(100)
    writer.approval(ONE)
    writer.ask("pay", TWO, 3, id="a", amount=100)
    assert writer.records[-1]["expires_ms"] == START_MS + 7 * DAY
    assert judged(writer).word == "INCOMPLETE"


def test_an_unused_approval_stays_valid_after_an_expired_one() -> None:
    """Questions that are out of their term are forgotten; one that was given back is not."""
    writer = asked()
    writer.approval(ONE)
    writer.call("pay", approvals=[ONE], id="a", amount=50)
    writer.now += 1
    writer.ask("pay", TWO, 2, id="a", amount=50)  # the approval is used
    writer.failed(2)  # and given back
    writer.ask("pay", THREE, 2, id="a", amount=50)
    assert first(judged(writer))[::2] == ("S214", "statement")


def test_a_denial_stands_beside_an_approval_that_was_given_back() -> None:
    writer = asked()
    writer.approval(ONE)
    writer.call("pay", approvals=[ONE], id="a", amount=50)
    writer.unknown()
    writer.ask("pay", TWO, 2, id="a", amount=50)
    writer.approval(TWO, "denied")
    writer.resolve(2, "failed")
    writer.call("pay", approvals=[ONE], id="a", amount=50)
    assert first(judged(writer))[::2] == ("S216", "approvals")
    anew = asked(100)
    anew.approval(ONE, "denied")
    anew.ask("pay", TWO, 3, id="a", amount=100)
    assert first(judged(anew))[::2] == ("S214", "statement")


def test_so_many_questions_are_open_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "MAX_OPEN", 20)
    writer = asked()
    for number in range(1, 20):
        writer.ask("pay", f"{number:032x}", 2, id="a", amount=50 + number)
    assert first(judged(writer))[0] == "D301"
    writer.ask("pay", "f" * 32, 2, id="a", amount=90)
    assert first(judged(writer)) == ("S214", 24, "id")


def test_memory_follows_the_questions_that_still_count() -> None:
    kept = Approvals(statements_of(asking()).policy.rules)
    for number in range(20_000):
        about = Asked("pay", "pay", ((f"{number}", ""),))
        kept.ask(Question(f"{number:032x}", 2, "lead", about, number * HOUR + HOUR), number * HOUR)
    assert len(kept.questions) < 2048
    assert len(kept.open(number * HOUR)) == 2
