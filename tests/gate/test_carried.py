"""A session goes on under another artifact: its earlier calls are its history."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.session.files import file_name
from tcc_runtime.errors import LedgerError, NotCarried, ResumeError
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.session.recovery import reading_of
from tests.gate.grammars import artifact, bytes_of

TOOLS = """grammar desk version "1"

tool find(order: text max 20) gives (status: text, total: number)
tool refund(order: text max 20, amount: number 0 .. 500)
tool note(kind: mail | chat)
"""
OLD = TOOLS + "limit sum(refund.amount) <= 1000\nbefore refund require find(same order)\n"
NEW = TOOLS + "limit sum(refund.amount) <= 100\nbefore refund require find(same order)\n"


def call(gate: tcc.Gate, tool: str, answer: Any = None, **arguments: Any) -> None:
    with gate.call(tool, arguments) as permit:
        permit.done(answer)


def store(folder: Path, text: str, **more: Any) -> tcc.Sessions:
    return tcc.Sessions(artifact(text), folder / "store", durable=False, reload=True, **more)


def moved(folder: Path, old: str, new: str, use: Callable[[tcc.Gate], None]) -> tcc.Gate:
    """The gate of a session under `new`, after calls under `old`."""
    with store(folder, old).open() as gate:
        use(gate)
    return store(folder, new, moves=True).get(gate.session_id)


def validated(folder: Path, gate: tcc.Gate, *texts: str, key: bool = True) -> Any:
    sessions = tcc.Sessions.of(folder / "store")
    ledger = folder / "store" / f"{gate.session_id}.ledger"
    first, *others = [bytes_of(artifact(text)) for text in texts]
    known = sessions.key_of(gate.session_id) if key else None
    return tcc.validate(ledger, first, others=others, key=known)


def refunds(gate: tcc.Gate) -> None:
    call(gate, "find", {"status": "open", "total": 90}, order="a")
    call(gate, "refund", order="a", amount=90)


def test_earlier_calls_count_under_the_new_policy(tmp_path: Path) -> None:
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        assert gate.artifact.digest == artifact(NEW).digest
        assert gate.check("refund", {"order": "a", "amount": 11}).code == "R202"
        assert gate.check("refund", {"order": "b", "amount": 1}).code == "R202"
        call(gate, "refund", order="a", amount=10)
        gate.finish()
    for key in (True, False):
        for texts in ((OLD, NEW), (NEW, OLD)):
            found = validated(tmp_path, gate, *texts, key=key)
            assert (found.word, found.claim_type) == ("VALID", "Conformant"), found
            assert (found.checked["calls"], found.checked["artifacts"]) == (3, 2)
            assert any("1000" in one.text for one in found.statements) is False


def test_a_call_that_the_new_policy_would_have_refused_stays_made(tmp_path: Path) -> None:
    stricter = TOOLS + "limit sum(refund.amount) <= 20\nforbid note\n"
    with moved(tmp_path, OLD, stricter, refunds) as gate:
        assert gate.check("refund", {"order": "a", "amount": 1}).code == "R202"
        assert gate.check("note", {"kind": "mail"}).code == "R202"
        assert gate.check("find", {"order": "b"}).allowed
        gate.finish()
    assert validated(tmp_path, gate, OLD, stricter).word == "VALID"


def test_the_ledger_names_the_artifact_of_each_file(tmp_path: Path) -> None:
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        gate.finish()
    found = validated(tmp_path, gate, OLD)
    assert (found.word, found.findings[-1].code) == ("INVALID", "S217")
    found = validated(tmp_path, gate, NEW)
    assert (found.word, found.findings[-1].code) == ("INVALID", "L202")
    other = TOOLS + "forbid note\n"
    assert validated(tmp_path, gate, OLD, other).findings[-1].code == "S217"


def test_a_pin_names_the_artifact_of_the_last_file(tmp_path: Path) -> None:
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        gate.finish()
    ledger = tmp_path / "store" / f"{gate.session_id}.ledger"
    for text, word in ((NEW, "VALID"), (OLD, "INVALID")):
        pin = artifact(text).digest.hex()
        found = tcc.validate(
            ledger, bytes_of(artifact(OLD)), others=[bytes_of(artifact(NEW))], pin=pin
        )
        assert found.word == word, found


def test_three_policies_in_one_session(tmp_path: Path) -> None:
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        call(gate, "refund", order="a", amount=5)
    with store(tmp_path, OLD, moves=True).get(gate.session_id) as gate:
        call(gate, "refund", order="a", amount=400)
        gate.finish()
    assert validated(tmp_path, gate, OLD, NEW).word == "VALID"


def test_a_child_of_a_moved_session_goes_on_with_a_proof_about_the_new_policy(
    tmp_path: Path,
) -> None:
    helper = TOOLS + "limit sum(refund.amount) <= 50\nbefore refund require find(same order)\n"
    child, ledger = artifact(helper), tmp_path / "helper.session"
    new = NEW.replace("tool note", "tool extra\ntool note")
    proofs = [tcc.prove(child, implies=artifact(text)).proof for text in (OLD, new)]

    def use(parent: tcc.Gate) -> None:
        with tcc.Gate(child, ledger=ledger, parent=parent, proof=proofs[0]) as gate:
            refund_of(gate, 20)

    def refund_of(gate: tcc.Gate, amount: int) -> None:
        call(gate, "find", {"status": "open", "total": 90}, order="a")
        call(gate, "refund", order="a", amount=amount)

    with moved(tmp_path, OLD, new, use) as parent:
        with pytest.raises(Rejected, match="T102"):
            tcc.Gate(child, ledger=ledger, parent=parent, proof=proofs[0])
        with tcc.Gate(child, ledger=ledger, parent=parent, proof=proofs[1]) as gate:
            refund_of(gate, 25)
            gate.finish()
        call(parent, "refund", order="a", amount=55)
        call(parent, "extra")
        parent.finish()
    sessions = tcc.Sessions.of(tmp_path / "store")
    above = tmp_path / "store" / f"{parent.session_id}.ledger"
    artifacts = [bytes_of(artifact(text)) for text in (OLD, new)]

    def judged(*named: bytes) -> Any:
        return tcc.validate(
            ledger, child, key=sessions.key_of(parent.session_id), parent=above,
            parent_artifact=named[0], parent_others=named[1:],
        )  # fmt: skip

    assert judged(*artifacts).word == "VALID"
    assert judged(*reversed(artifacts)).word == "VALID"
    assert judged(artifacts[1]).findings[-1].code == "S501"


@pytest.mark.parametrize(
    ("new", "place"),
    [
        (OLD.replace("tool note(kind: mail | chat)\n", ""), "call"),
        (OLD.replace("mail | chat", "letter | chat"), "call"),
        (OLD.replace("order: text max 20)", "order: text max 20, by: text)", 1), "open"),
        (
            TOOLS + 'before note require no find(order = "x" and order ~ "a.*")\n',
            "open: find.order",
        ),
        (TOOLS + "before note require no find within 1 h\n", "at_ms"),
        (TOOLS + "plan = note find\n", "call"),
    ],
    ids=["tool", "value", "argument", "pattern", "time", "plan"],
)
def test_records_that_lack_what_the_new_policy_needs_do_not_fit(
    new: str, place: str, tmp_path: Path
) -> None:
    def use(gate: tcc.Gate) -> None:
        call(gate, "find", {"status": "open", "total": 90}, order="a")
        call(gate, "note", kind="mail")

    with store(tmp_path, OLD).open() as gate:
        use(gate)
    path = tmp_path / "store" / f"{gate.session_id}.ledger"
    before = path.read_bytes()
    with pytest.raises(ResumeError) as error:
        store(tmp_path, new, moves=True).get(gate.session_id)
    assert f": {place}" in str(error.value) and "S218" in str(error.value), error.value
    assert path.read_bytes() == before
    assert not file_name(path, 1).exists()


def test_an_answer_that_was_not_recorded_is_unknown(tmp_path: Path) -> None:
    new = TOOLS + 'before refund require last(find(same order)).status = "open"\n'

    def use(gate: tcc.Gate) -> None:
        call(gate, "find", {"status": "open", "total": 90}, order="a")

    with moved(tmp_path, OLD, new, use) as gate:
        assert gate.check("refund", {"order": "a", "amount": 1}).code == "R202"
        call(gate, "find", {"status": "open", "total": 90}, order="a")
        call(gate, "refund", order="a", amount=1)
        gate.finish()
    assert validated(tmp_path, gate, OLD, new).word == "VALID"


def test_a_call_under_way_is_waited_for(tmp_path: Path) -> None:
    with store(tmp_path, OLD).open() as gate, gate.call("note", {"kind": "mail"}) as permit:
        with pytest.raises(LedgerError, match="somebody else has its lock"):
            store(tmp_path, NEW, moves=True, wait=False).get(gate.session_id)
        permit.done()
    with store(tmp_path, NEW, moves=True).get(gate.session_id) as gate:
        assert gate.artifact.digest == artifact(NEW).digest


def test_a_parallel_call_under_way_is_waited_for(tmp_path: Path) -> None:
    text = OLD.replace("chat)", "chat) { parallel }")
    reading, ledger = reading_of(policy_of(artifact(text))), tmp_path / "l"
    with tcc.Gate(artifact(text), ledger=ledger, durable=False) as gate:
        with gate.call("note", {"kind": "mail"}) as permit:
            before = ledger.read_bytes()
            with pytest.raises(LedgerError, match="a call is under way"):
                gate.carry_over(artifact(NEW), lambda _: reading, wait=False)
            assert ledger.read_bytes() == before
            permit.done()
        gate.carry_over(artifact(NEW), lambda _: reading, wait=False)
    assert file_name(ledger, 1).exists()


def test_the_other_gate_of_a_moved_session_allows_nothing(tmp_path: Path) -> None:
    sessions = store(tmp_path, OLD)
    with sessions.open() as gate:
        store(tmp_path, NEW, moves=True).get(gate.session_id).close()
        with pytest.raises(tcc.Refused) as refused:
            gate.call("note", {"kind": "mail"}).__enter__()
        assert refused.value.code == "R306"


ASKS = TOOLS + 'before note ask "boss"\nbefore refund require find(same order)\n'


def test_questions_and_approvals_of_the_old_policy_end(tmp_path: Path) -> None:
    asks = ASKS.replace('ask "boss"', 'ask "head" within 3 h')
    pending = []

    def use(gate: tcc.Gate) -> None:
        for kind in ("mail", "chat"):
            with pytest.raises(tcc.Pending) as asked:
                gate.call("note", {"kind": kind}).__enter__()
            pending.append(asked.value.id)
        gate.approve(pending[0], who="ann")

    with moved(tmp_path, ASKS, asks, use) as gate:
        assert gate.pending == ()
        with pytest.raises(tcc.VerdictError):
            gate.approve(pending[1], who="ann")
        with pytest.raises(tcc.Pending) as asked:
            gate.call("note", {"kind": "mail"}).__enter__()
        assert asked.value.who == "head"
        gate.approve(asked.value.id, who="eve")
        call(gate, "note", kind="mail")
        gate.finish()
    assert validated(tmp_path, gate, ASKS, asks).word == "VALID"


def sealed(records: Sequence[dict[str, Any]]) -> tuple[bytes, str]:
    """The lines of records, chained anew, and the hash of the last one."""
    head, lines = FIRST_HEAD, []
    for record in records:
        line, head = seal(record, head)
        lines.append(line)
    return b"".join(lines), head.hex()


def test_no_policy_takes_over_while_a_call_is_under_way(tmp_path: Path) -> None:
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        gate.finish()
    first = tmp_path / "store" / f"{gate.session_id}.ledger"
    paths = first, first.with_name(f"{first.name}.1")
    old, new = ([dict(one) for one in LedgerReader((path.read_bytes(),))] for path in paths)
    outcome = old.pop(-2)  # of the last call, before `roll`
    assert (outcome["kind"], old[-1]["kind"]) == ("outcome", "roll")
    data, head = sealed(old)
    new[0]["continues"] = head
    paths[0].write_bytes(data)
    paths[1].write_bytes(sealed([new[0], outcome, *new[1:]])[0])
    found = validated(tmp_path, gate, OLD, NEW, key=False).findings[-1]
    assert (found.code, found.field, found.expected) == ("L104", "kind", "no call under way")


def test_files_of_a_moved_session_cannot_be_forged(tmp_path: Path) -> None:
    """Sealed anew without the key: whoever has the key sees it, everybody sees what must follow."""
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        call(gate, "refund", order="a", amount=5)
        gate.finish()
    second = tmp_path / "store" / f"{gate.session_id}.ledger.1"
    whole = second.read_bytes()
    for change, code in (
        ({"statements": []}, "S103"),
        ({"grammar": "other"}, "S101"),
        ({"nonce": "0" * 32}, "S217"),
        ({"continues": "0" * 64}, "S217"),
    ):
        records = [dict(record) for record in LedgerReader((whole,))]
        records[0] |= change
        second.write_bytes(sealed(records)[0])
        found = validated(tmp_path, gate, OLD, NEW, key=False)
        assert (found.word, found.findings[0].code) == ("INVALID", code), found
        assert validated(tmp_path, gate, OLD, NEW).findings[0].code in (code, "S205")


def carried(
    folder: Path, old: str, new: str, tool: str, arguments: dict[str, Any], answer: Any = None
) -> str:
    """Return why a session with one call cannot go on under `new`; empty if it can."""

    def use(gate: tcc.Gate) -> None:
        call(gate, tool, answer, **arguments)

    try:
        moved(folder, old, new, use).close()
    except NotCarried as error:
        return str(error).split(" expected ")[0]
    return ""


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("kind?: text", "kind?: mail | chat", "mail"),
        ("kind: json", 'kind: json, sort?: text at "/kind/sort"', {"sort": "x"}),
        ('kind: json, sort: text at "/kind/a"', 'kind: json, sort: text at "/kind/b"', None),
        ("kind: text or null", "kind: text", None),
        ("kind: date", 'kind: date "+01:00"', "2026-01-01"),
    ],
    ids=["listed", "inside", "elsewhere", "null", "zone"],
)
def test_an_argument_that_the_new_policy_reads_otherwise_does_not_fit(
    old: str, new: str, value: Any, tmp_path: Path
) -> None:
    texts = [f'grammar g version "1"\ntool a({one})\n' for one in (old, new)]
    value = {"a": "x", "b": "y"} if '"/kind/a"' in old else value
    place = "sort" if "sort" in new else "kind"
    assert f"open: a.{place}: S218" in carried(tmp_path, *texts, "a", {"kind": value})


def test_an_answer_at_another_place_is_unknown(tmp_path: Path) -> None:
    text = """grammar g version "1"
tool a gives (kind: text, state: on | off)
tool b
before b require a(kind = "x" and state = on)
"""
    new = text.replace("kind: text", 'kind: text at "/sort"')

    def use(gate: tcc.Gate) -> None:
        call(gate, "a", {"kind": "x", "state": "on"})
        assert gate.check("b").allowed

    with moved(tmp_path, text, new, use) as gate:
        assert gate.check("b").code == "R202"
        call(gate, "a", {"sort": "x", "state": "on"})
        assert gate.check("b").allowed


def test_an_attribute_is_not_learned_from_a_later_answer(tmp_path: Path) -> None:
    """The first order was looked up when the ledger had no status."""
    learns = 'given state from find.status\nbefore refund require session.state = "open"\n'
    new = TOOLS + learns
    answer = {"status": "shut", "total": 1}
    found = carried(tmp_path, OLD, new, "find", {"order": "a"}, answer)
    assert "answers: find.status: S218" in found


def test_a_late_outcome_is_read_by_the_artifact_of_its_own_file(tmp_path: Path) -> None:
    """Three policies.  The second one has another pattern when the outcome becomes known."""
    first, second = [
        TOOLS + f'before refund require find(status ~ "{one}.*")\n' for one in ("open", "shut")
    ]

    def use(gate: tcc.Gate) -> None:
        with gate.call("find", {"order": "a"}) as permit:
            permit.unknown()

    with moved(tmp_path, first, second, use) as gate:
        gate.resolve(1, "done", {"status": "shut", "total": 1})
        assert gate.check("refund", {"order": "a", "amount": 1}).allowed
    with store(tmp_path, first, moves=True).get(gate.session_id) as gate:
        assert gate.check("refund", {"order": "a", "amount": 1}).code == "R202"
        gate.finish(abandon=True)
    assert validated(tmp_path, gate, first, second).word == "VALID"


@pytest.mark.parametrize("name", ["continues", "grammar", "statements"])
def test_a_first_record_without_a_member_is_a_finding(name: str, tmp_path: Path) -> None:
    with moved(tmp_path, OLD, NEW, refunds) as gate:
        gate.finish()
    second = tmp_path / "store" / f"{gate.session_id}.ledger.1"
    record = dict(next(iter(LedgerReader((second.read_bytes(),)))))
    del record[name]
    second.write_bytes(seal(record, FIRST_HEAD)[0])
    found = validated(tmp_path, gate, OLD, NEW, key=False)
    code = "S217" if name == "continues" else "L103"
    assert [one.code for one in found.findings] == [code], found


def test_a_constant_has_one_digest_in_all_files(tmp_path: Path) -> None:
    old, new = [TOOLS + f'forbid find(order = "x"){one}\n' for one in ("", "\nforbid note")]
    with moved(tmp_path, old, new, lambda gate: call(gate, "find", {}, order="a")) as gate:
        gate.finish()
    second = tmp_path / "store" / f"{gate.session_id}.ledger.1"
    records = [dict(record) for record in LedgerReader((second.read_bytes(),))]
    records[0]["constants"] = ["0" * 64]
    head, lines = FIRST_HEAD, []
    for record in records:
        line, head = seal(record, head)
        lines.append(line)
    second.write_bytes(b"".join(lines))
    found = validated(tmp_path, gate, old, new, key=False)
    assert (found.word, found.findings[0].code, found.findings[0].field) == (
        "INVALID", "S205", "constants",
    )  # fmt: skip


def test_a_pin_holds_for_a_session_that_has_not_ended(tmp_path: Path) -> None:
    gate = moved(tmp_path, OLD, NEW, refunds)
    gate.close()
    ledger, pin = tmp_path / "store" / f"{gate.session_id}.ledger", artifact(OLD).digest.hex()
    found = tcc.validate(ledger, bytes_of(artifact(OLD)), others=[bytes_of(artifact(NEW))], pin=pin)
    assert (found.word, found.claim_type) == ("INVALID", "NoClaim"), found


def test_two_gates_that_move_a_session_at_once_move_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one moves it after this one has read which artifact it has."""
    with store(tmp_path, OLD).open() as gate:
        refunds(gate)
    first, other = store(tmp_path, NEW, moves=True), store(tmp_path, NEW, moves=True)
    look = first._headers
    moves = iter([lambda: other.get(gate.session_id).close()])

    def looks(path: Path) -> Any:
        found = look(path)
        next(moves, lambda: None)()
        return found

    monkeypatch.setattr(first, "_headers", looks)
    with first.get(gate.session_id) as again:
        assert again.artifact.digest == artifact(NEW).digest
    path = tmp_path / "store" / f"{gate.session_id}.ledger"
    assert file_name(path, 1).exists() and not file_name(path, 2).exists()


def test_a_gate_without_the_artifact_of_the_store_moves_nothing(tmp_path: Path) -> None:
    stale = store(tmp_path, OLD, moves=True)
    with stale.open() as gate:
        refunds(gate)
    store(tmp_path, NEW, moves=True).get(gate.session_id).close()
    with stale.get(gate.session_id) as gate:
        assert gate.artifact.digest == artifact(NEW).digest
    assert not file_name(tmp_path / "store" / f"{gate.session_id}.ledger", 2).exists()


def test_a_last_file_without_a_line_has_no_effect(tmp_path: Path) -> None:
    """The system has crashed before the disk had the file."""
    gate = moved(tmp_path, OLD, NEW, refunds)
    gate.close()
    file_name(tmp_path / "store" / f"{gate.session_id}.ledger", 1).write_bytes(b"")
    with store(tmp_path, NEW, moves=True).get(gate.session_id) as gate:
        gate.finish()
    assert validated(tmp_path, gate, OLD, NEW).word == "VALID"


def test_draws_on_an_account_before_and_after(tmp_path: Path) -> None:
    account = tcc.Account(tmp_path / "a.account")
    across = TOOLS + "limit sum(refund.amount) <= 100 across sessions\n"
    texts = (OLD, across, across + "forbid note\n", TOOLS)
    with store(tmp_path, OLD).open() as gate:
        refunds(gate)
    with store(tmp_path, across, moves=True, account=account).get(gate.session_id) as gate:
        assert gate.check("refund", {"order": "a", "amount": 11}).code == "R202"
        with gate.call("refund", {"order": "a", "amount": 10}) as permit:
            permit.unknown()
    sessions = store(tmp_path, texts[2], moves=True, account=account)
    with sessions.open() as other, sessions.get(gate.session_id) as gate:
        assert other.check("refund", {"order": "a", "amount": 91}).code == "R202"
        gate.resolve(3, "failed")
        assert other.check("refund", {"order": "a", "amount": 100}).allowed
    with store(tmp_path, TOOLS, moves=True, account=account).get(gate.session_id) as gate:
        gate.finish()
    ledger = tmp_path / "store" / f"{gate.session_id}.ledger"
    first, *others = [bytes_of(artifact(text)) for text in texts]
    found = tcc.validate(ledger, first, others=others, account=account)
    assert (found.word, found.checked["artifacts"]) == ("VALID", 4), found


POOL = (
    "before refund require find(same order)",
    'before refund require last(find(same order)).status = "open"',
    "limit sum(refund.amount) <= 300",
    "limit sum(refund.amount) per order <= 120 in session",
    "limit count(find) <= 4",
    "before refund require amount <= last(find(same order)).total",
    "before note require no refund(amount > 100)",
    'before note require find(order ~ "a.*")',
    "before find require no note(kind = mail)",
    "before refund require count(distinct(find.order)) <= 2",
    "before note require every find(total >= 20)",
    "before note require count(refund) <= 2",
    "after note owe find",
    "before refund require unused find(same order)",
)
NAMES = ("a", "ab", "b")


def drawn_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    tool = rng.choice(("find", "refund", "note"))
    if tool == "note":
        return tool, {"kind": rng.choice(("mail", "chat"))}
    more = {"amount": rng.choice((10, 50, 110))} if tool == "refund" else {}
    return tool, {"order": rng.choice(NAMES), **more}


@pytest.mark.parametrize("show", [True, False], ids=["shown", "digests"])
def test_a_moved_session_decides_as_one_that_began_so(show: bool, tmp_path: Path) -> None:
    """Of calls that both policies allow.  If values were not recorded, it may refuse more."""
    compared = refused = 0
    for seed in range(10):
        rng, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        old, new = ("\n".join((TOOLS, *rng.sample(POOL, 3), "")) for _ in range(2))
        shown = ("find.order", "find.status", "find.total", "refund.amount", "refund.order")
        sessions = store(folder, old, show=shown if show else ())
        with sessions.open() as gate, tcc.Gate(artifact(new), ledger=folder / "l") as direct:
            for _ in range(rng.randrange(9)):
                tool, arguments = drawn_call(rng)
                if not (
                    gate.check(tool, arguments).allowed and direct.check(tool, arguments).allowed
                ):
                    continue
                outcome = rng.choice(("done", "done", "done", "failed", "unknown"))
                answer = {"status": rng.choice(("open", "shut")), "total": rng.choice((9, 60, 200))}
                for one in (gate, direct):
                    with one.call(tool, arguments) as permit:
                        if outcome == "done":
                            permit.done(answer)
                        else:
                            getattr(permit, outcome)()
            try:
                moved_one = store(folder, new, moves=True).get(gate.session_id)
            except NotCarried:
                continue
            with moved_one:
                for _ in range(30):
                    tool, arguments = drawn_call(rng)
                    mine, other = (one.check(tool, arguments).code for one in (moved_one, direct))
                    assert mine == other or (mine and not show), (
                        seed,
                        tool,
                        arguments,
                        mine,
                        other,
                    )
                    compared += 1
                    refused += mine is not None
                assert moved_one.may_finish == direct.may_finish or not show
        found = validated(folder, gate, old, new)
        assert found.word == "INCOMPLETE", found
    assert compared > 150 and compared > refused > 20, (compared, refused)
