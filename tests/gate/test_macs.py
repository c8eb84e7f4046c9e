"""Records under the session's key: what a stranger who has the file, but not the key, can do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import tcc
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import check
from tcc_certs.session import SessionValidation, validate
from tcc_certs.session.machine import Course
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.journal import ledger_file
from tcc_runtime.gate.session.records import Writer, parts_of
from tests.gate.grammars import LONG, artifact, bytes_of, do, gate
from tests.oracle_session.writer import mac_of, sealed

GRAMMAR = """grammar desk version "1"

tool ask(order: text) gives (observed: yes | no)
tool refund(order: text)
tool search(k: 1 | 2)

plan = any{0,9}

before refund require ask(same order, observed = yes)
"""
ORDER = {"order": "o-1"}
Records = list[dict[str, Any]]


def refused(path: Path, answer: str = "no") -> Path:
    """A session in which the refund is not allowed: the answer was no."""
    session = gate(GRAMMAR, ledger=path, durable=False)
    do(session, "ask", ORDER, observed={"observed": answer})
    do(session, "search", {"k": 1})
    with session.call("search", {"k": 2}) as permit:
        permit.unknown()
    assert session.check("refund", ORDER).allowed is (answer == "yes")
    session.close()
    return path


def key_of(path: Path) -> bytes:
    return bytes.fromhex(path.with_name(f"{path.name}.key").read_text().strip())


def records_of(path: Path) -> Records:
    return [dict(record) for record in LedgerReader([path.read_bytes()])]


def judged(path: Path, *, key: bool) -> SessionValidation:
    given = key_of(path) if key else None
    return validate(path.read_bytes(), check(bytes_of(artifact(GRAMMAR))), key=given)


def yes(records: Records) -> Records:
    """Another answer, and the states that follow from it."""
    with TemporaryDirectory() as folder:
        other = records_of(refused(Path(folder, "s"), "yes"))
    names = ("observed", "states")
    return [
        {**mine, **{name: theirs[name] for name in names if name in theirs}}
        for mine, theirs in zip(records, other, strict=True)
    ]


def without(at: int) -> Callable[[Records], Records]:
    return lambda records: [*records[:at], *records[at + 1 :]]


def as_another(records: Records) -> Records:
    """Under MACs of a key of the stranger's."""
    return [{n: v for n, v in record.items() if n != "mac"} for record in yes(records)]


FORGERIES: dict[str, tuple[Callable[[Records], Records], int]] = {
    "another answer": (yes, 3),
    "another answer, under another key's MACs": (as_another, 1),
    "another time": (lambda records: [*records[:2], {**records[2], "ms": 7}, *records[3:]], 3),
    "another outcome": (lambda r: [*r[:6], {**r[6], "outcome": "failed"}], 7),
    "a MAC of another record": (lambda r: [*r[:4], {**r[4], "mac": r[2]["mac"]}, *r[5:]], 5),
    "a refusal more": (
        lambda r: [*r, {"kind": "refusal", "tool": "ask", "code": "R105", "mac": "0" * 32}], 8,
    ),
    "a resolve more": (
        lambda r: [*r, {"kind": "resolve", "seq": 3, "outcome": "failed", "mac": r[6]["mac"]}], 8,
    ),
    "an end": (lambda r: [*r, {"kind": "end", "abandoned": True, "mac": r[6]["mac"]}], 8),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGERIES)
def test_a_stranger_without_the_key_changes_no_record(what: str, tmp_path: Path) -> None:
    path = refused(tmp_path / "forged")
    forge, line = FORGERIES[what]
    path.write_bytes(data := sealed(forge(records_of(path)), key=os.urandom(32)))
    with pytest.raises(ResumeError, match=f"line {line}: mac: S205"):
        gate(GRAMMAR, ledger=path, durable=False)
    assert path.read_bytes() == data
    known = judged(path, key=True)
    first = known.findings[0]
    assert (first.code, first.line, first.field) == ("S205", line, "mac")
    assert (known.word, known.claim_type) == ("INVALID", "NoClaim")
    # Who has no key cannot tell, and says so.
    blind = judged(path, key=False)
    assert blind.word in ("INCOMPLETE", "VALID")
    assert (
        "idempotency keys and MACs come from the holder of the key: it is not known"
        in blind.asserted
    )


def test_with_the_key_records_are_not_asserted(tmp_path: Path) -> None:
    path = refused(tmp_path / "s.ledger")
    assert not [told for told in judged(path, key=True).asserted if "MACs" in told]


def test_a_record_without_a_mac_or_with_a_short_one_is_none(tmp_path: Path) -> None:
    path = refused(tmp_path / "forged")
    records = records_of(path)
    for mac in ("", "0" * 31, "0" * 33, "G" * 32, 7):
        path.write_bytes(sealed([*records[:3], {**records[3], "mac": mac}, *records[4:]]))
        with pytest.raises(ResumeError, match="line 4: mac: L103"):
            gate(GRAMMAR, ledger=path)
        assert judged(path, key=False).findings[0].code == "L103"


def test_what_a_stranger_can_do_is_what_the_text_says(tmp_path: Path) -> None:
    """Records cut off the end, and an older copy, are a session that might have been."""
    path = refused(tmp_path / "s.ledger")
    whole = path.read_bytes()
    session = gate(GRAMMAR, ledger=path, durable=False)
    kept = session.head
    session.close()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    cut = gate(GRAMMAR, ledger=path, durable=False)
    assert len(cut.history) == 2 and not cut.is_ancestor(kept)
    cut.close()
    path.write_bytes(whole)
    again = gate(GRAMMAR, ledger=path, durable=False)
    assert again.is_ancestor(kept)


def test_what_was_written_here_is_read_again_before_what_others_wrote(tmp_path: Path) -> None:
    """A record of one's own that was rewritten in place is found when another one has written."""
    path = tmp_path / "s"
    one = gate(LONG, ledger=path, durable=False)
    do(one, "a", {"x": 1})
    other = gate(LONG, ledger=path, durable=False)
    do(other, "a", {"x": 2})
    do(one, "b")
    assert [made.call for made in one.history] == ["a(x=1)", "a(x=2)", "b"]
    data = path.read_bytes()
    at = data.index(b'"call":"b"')
    path.write_bytes(data[:at] + b'"call":"c"' + data[at + 10 :])
    with pytest.raises(tcc.Refused, match="R306"):
        do(other, "b")
    do(one, "b")  # nobody else has written: it does not look
    assert one.check("b").allowed


def test_nothing_waits_for_the_disk_where_it_is_not_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _, name=name: synced.append(name))
    monkeypatch.setattr(ledger_file, "_sync", lambda _: synced.append("_sync"))
    path = tmp_path / "s.ledger"
    session = gate(LONG, ledger=path, durable=False)
    do(session, "b")
    session.close()
    with path.open("ab") as file:
        file.write(b'{"torn')
    session = gate(LONG, ledger=path, durable=False)
    with session.call("b"):
        pass
    session.resolve(2, "failed")
    session.finish()
    assert synced == []
    assert key_of(path) and path.with_name("s.ledger.key").stat().st_mode & 0o777 == 0o600
    gate(LONG, ledger=tmp_path / "d.ledger").close()
    assert len(synced) >= 4  # the ledger's name, the key, its name, the first record


def test_reopening_what_was_unknown_and_resolved_is_linear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in steps: of the gate's course, and of the validator's."""

    def played(count: int, *, late: bool) -> int:
        path = tmp_path / f"{count} {late}.ledger"
        session = gate(LONG, ledger=path, durable=False)
        for _ in range(count):
            with session.call("b") as permit:
                pass
            if not late:
                session.resolve(permit.seq, "done")
        for seq in reversed(range(1, count + 1)) if late else ():
            session.resolve(seq, "done")
        session.close()
        steps.clear()
        gate(LONG, ledger=path, durable=False).close()
        return len(steps)

    steps: list[int] = []
    inner = Course._catch_up

    def counted(self: Course) -> None:
        steps.extend([1] * (len(self._steps) - len(self._before)))
        inner(self)

    monkeypatch.setattr(Course, "_catch_up", counted)
    for late, counts in ((False, (20, 40, 80)), (True, (15, 30, 60))):
        one, two, four = (played(count, late=late) for count in counts)
        assert four - two <= 2 * (two - one) + 8, (late, one, two, four)
        assert four <= 6 * counts[-1], (late, four)


def test_a_check_while_a_call_is_under_way_leaves_no_trace() -> None:
    session = gate(GRAMMAR)
    do(session, "ask", ORDER, observed={"observed": "yes"})
    with session.call("refund", ORDER) as permit:
        for _ in range(3):
            assert session.check("refund", ORDER).allowed
        permit.failed()
    assert session.check("refund", ORDER).allowed


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "end", "abandoned": True},
        {"kind": "call", "call": 'a("kind":"call")', "open": {"mac": {"digest": "kind"}}, "seq": 1},
        {"kind": "outcome", "observed": {"kind": "outcome", "mac": "x"}, "ms": 1},
        {"kind": "refusal", "code": '"kind":"refusal"', "tool": "t"},
        {"kind": "budget", "controller": {"kind": "budget"}},
        {"kind": "asked", "atoms": [{"kind": "asked"}], "latency": "1", "price": "2"},
        {"kind": "session", "arguments": {"show": []}, "key_commitment": "0", "nonce": "0"},
    ],
    ids=lambda record: str(record["kind"]),
)
def test_a_record_with_its_mac_is_canonical(record: dict[str, Any]) -> None:
    """Wherever in it the words stand that it is put together by."""
    key, previous = bytes(range(32)), bytes(range(32, 64))
    written = Writer(key, "").sealed(parts_of(record), previous)
    assert written == encode({**record, "mac": mac_of(record, previous, key)})
