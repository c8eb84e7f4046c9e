"""The lines of a ledger: the chain, strictness, chunks cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats import ledger as lines
from tcc_certs.formats.codec import blake, encode
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.formats.ledger_schema import check_record, size, text
from tcc_certs.replay import validate
from tcc_certs.replay.records import body_of
from tests.oracle_ledger.artifacts import canonical, small
from tests.oracle_ledger.writer import chained, reference_ledger, reference_records


def read(*chunks: bytes) -> LedgerReader:
    reader = LedgerReader(chunks)
    for _ in reader:
        pass
    return reader


def refused(*chunks: bytes) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read(*chunks)
    return caught.value


def test_a_line_ends_in_the_hash_of_the_head_before_and_of_its_own_bytes():
    line, head = seal({"b": 1, "a": "x"}, FIRST_HEAD)
    due = blake(bytes(32) + b'{"a":"x","b":1}')
    assert head == due
    assert line == b'{"a":"x","b":1,"~":"%s"}\n' % due.hex().encode()


def test_a_line_of_an_empty_record_is_canonical():
    line, head = seal({}, FIRST_HEAD)
    assert line == canonical({"~": head.hex()}) + b"\n"


def test_chunks_may_be_cut_anywhere():
    data = reference_ledger(small())
    whole = list(LedgerReader([data]))
    for length in (1, 2, 7, 100, 4096):
        chunks = [data[at : at + length] for at in range(0, len(data), length)]
        assert list(LedgerReader(chunks)) == whole
    assert whole == reference_records(small())


def test_the_tail_without_a_line_feed_is_kept_apart():
    first, head = seal({"a": 1}, FIRST_HEAD)
    reader = read(first, b'{"b"', b":")
    assert (reader.records, reader.head, reader.tail) == (1, head, b'{"b":')


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"[]",
        b"1",
        b'{"a":1}',
        b'{"a":1.5,"~":"00"}',
        b'{"a":null,"~":"00"}',
        b'{"a":1,"a":1,"~":"00"}',
        b'{"a":"\xff","~":"00"}',
        b'{"a":"\\u0041","~":"00"}',
        b'{"b":1, "~":"00"}',
        b'{"~":"00","b":1}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_a_whole_line_that_is_not_a_canonical_object_is_refused(line):
    first, _ = seal({"a": 1}, FIRST_HEAD)
    refusal = refused(first + line + b"\n")
    assert refusal.code is Code.LEDGER_LINE
    assert refusal.path.startswith("line 2")


def test_a_line_that_does_not_follow_is_refused():
    first, head = seal({"a": 1}, FIRST_HEAD)
    second, _ = seal({"a": 2}, head)
    loose, _ = seal({"a": 2}, FIRST_HEAD)
    assert refused(first + loose).code is Code.LEDGER_CHAIN
    assert refused(first + first + second).code is Code.LEDGER_CHAIN
    assert refused(second).path == "line 1: ~"


def test_a_link_that_is_no_text_is_refused():
    assert refused(b'{"~":1}\n').code is Code.LEDGER_CHAIN


def test_carriage_returns_are_no_line_ends():
    first, _ = seal({"a": 1}, FIRST_HEAD)
    assert refused(first[:-1] + b"\r\n").code is Code.LEDGER_LINE


def test_nesting_and_length_are_declined_not_suffered(monkeypatch):
    assert refused(b'{"a":' + b"[" * 100_000 + b"\n").code is Code.LIMIT
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    assert refused(b"x" * 101).code is Code.LIMIT
    assert refused(b"x" * 60, b"x" * 60 + b"\n").code is Code.LIMIT
    assert refused(b"x" * 99 + b"\n").code is Code.LEDGER_LINE


def test_every_record_of_a_run_has_the_schema():
    kinds = [
        check_record(record, number)
        for number, record in enumerate(reference_records(small(), top=3, alpha="0.5"), 1)
    ]
    assert sorted(set(kinds)) == ["close", "expand", "leaf", "node", "open"]


@pytest.mark.parametrize("kind", ["open", "node", "expand", "leaf", "close"])
def test_every_field_of_every_kind_is_held_to_its_form(kind):
    record = next(r for r in reference_records(small()) if r["kind"] == kind)
    for name in record:
        for bad in (True, -1, 1.5, [1], {"a": 1}, ["x"], "\u0661", "1e3", "-0", "01", ""):
            if type(record[name]) is type(bad) is str and name in ("kind", "ctx_repr"):
                continue
            changed = {**record, name: bad}
            if (name != "kind" and _is_free_text(name, bad)) or (name, bad) == ("state", [1]):
                continue
            with pytest.raises(Rejected) as caught:
                check_record(changed, 7)
            assert caught.value.code is Code.LEDGER_SCHEMA
            assert caught.value.path == f"line 7: {name}"


@pytest.mark.parametrize("state", [[], [2, 1], [1, 1], [-1], ["1"], [True], "1", -1, 1.5])
def test_a_list_of_states_increases_and_is_not_empty(state):
    record = next(r for r in reference_records(small()) if "state" in r)
    assert check_record({**record, "state": [0, 3]}, 7) == "node"
    with pytest.raises(Rejected) as caught:
        check_record({**record, "state": state}, 7)
    assert (caught.value.code, caught.value.path) == (Code.LEDGER_SCHEMA, "line 7: state")


@pytest.mark.parametrize("kind", ["guard", "call"])
def test_a_kind_of_a_later_version_is_declined(kind):
    with pytest.raises(Rejected) as caught:
        check_record({"kind": kind}, 7)
    assert caught.value.code is Code.UNKNOWN_FEATURE


def _is_free_text(name: str, bad: object) -> bool:
    """Texts that the schema leaves to the replay."""
    free = {
        "schema", "grammar", "grammar_version", "prf_domain", "mode", "claim_type", "race", "keys",
        "recipe", "privacy_scope", "winner", "call", "stop", "law", "kind",
    }  # fmt: skip
    return name in free and isinstance(bad, str)


def test_the_writer_of_the_tests_chains_as_the_reader_does():
    assert read(chained([{"a": 1}, {"b": 2}])).records == 2


def test_a_line_says_a_record_by_its_bytes():
    data, _ = seal({"kind": "node", "step": 1}, FIRST_HEAD)
    (line,) = LedgerReader([data]).lines()
    assert line.body == body_of({"step": 1, "kind": "node"})
    assert line.body != body_of({"kind": "node", "step": True})
    assert line.kind == "node"
    assert dict(line) == {"kind": "node", "step": 1}


# What the records that are made as bytes have: ids, numbers as text, a whole number, True.
_TEXTS = st.from_regex(r"[0-9a-z.-]{0,40}", fullmatch=True)
_OTHERS = {"step": st.integers(0, 1 << 40), "dead_end": st.just(True)}
_FIELDS = dict.fromkeys(("U", "W", "key_raw", "node_id", "phi_after", "winner"), _TEXTS)


@given(st.fixed_dictionaries({"kind": _TEXTS}, optional=_FIELDS | _OTHERS), st.randoms())
def test_the_body_of_a_record_is_its_canonical_text(record, rng):
    members = list(record.items())
    rng.shuffle(members)
    assert body_of(dict(members)) == encode(record)


def test_a_line_that_is_not_canonical_is_no_part_of_the_prefix_once_it_is_looked_into():
    first, head = seal({"a": 1}, FIRST_HEAD)
    body = b'{"b": 2}'
    second = body[:-1] + b',"~":"%s"}' % blake(head + body).hex().encode()
    reader = LedgerReader([first + second + b"\n"])
    found = list(reader.lines())
    assert reader.records == 2
    with pytest.raises(Rejected) as caught:
        len(found[1])
    assert caught.value.code is Code.LEDGER_LINE
    assert (reader.records, reader.head) == (1, head)


def test_a_valid_ledger_is_parsed_where_it_says_something_new_alone(monkeypatch):
    parsed, seen = lines.parsed, []

    def counted(line, number, **told):
        seen.append(number)
        return parsed(line, number, **told)

    artifact, ledger = small(), reference_ledger(small())
    monkeypatch.setattr(lines, "parsed", counted)
    assert validate(ledger, artifact).verdict == 0
    assert seen == [1, ledger.count(b"\n")]


def test_a_record_has_the_fields_of_its_kind_and_no_other():
    record = {"kind": "recovered", "dropped_bytes": 5, "records": 7}
    assert check_record(record, 8) == "recovered"
    for other, place, expected in (
        ({**record, "zzz": 1}, "line 8: zzz", "no such field"),
        ({"kind": "recovered", "records": 7}, "line 8: dropped_bytes", "the field"),
        ({**record, "records": -1}, "line 8: records", "an integer of at least 0"),
    ):
        with pytest.raises(Rejected) as refusal:
            check_record(other, 8)
        assert (refusal.value.code, refusal.value.path) == ("L103", place)
        assert expected in refusal.value.expected


@pytest.mark.parametrize(
    ("kind", "code"), [("zzz", "L103"), (7, "L103"), (None, "L103"), (["node"], "L103"),
                       ("call", "D101"), ("guard", "D101")],
)  # fmt: skip
def test_a_kind_is_one_of_those_that_there_are(kind, code):
    with pytest.raises(Rejected) as refusal:
        check_record({"kind": kind}, 3)
    assert (refusal.value.code, refusal.value.path) == (code, "line 3: kind")


def test_a_text_and_a_size_are_read_as_such_or_refused():
    record = {"a": "x", "b": 3, "c": True}
    assert (text(record, "a"), size(record, "b")) == ("x", 3)
    for read, name in ((text, "b"), (text, "zzz"), (size, "a"), (size, "c"), (size, "zzz")):
        with pytest.raises(Rejected) as refusal:
            read(record, name)
        assert (refusal.value.code, refusal.value.path) == ("L103", name)


def test_a_record_without_members_is_a_line_as_any_other():
    line, head = seal({}, FIRST_HEAD)
    after, _ = seal({"a": 1}, head)
    assert list(LedgerReader([line + after])) == [{}, {"a": 1}]
    with pytest.raises(Rejected) as refusal:
        list(LedgerReader([seal({}, head)[0]]))
    assert refusal.value.code == "L102"


def test_a_line_without_a_kind_is_one_of_no_kind():
    records = reference_records(small())
    forged = [*records[:2], {"zzz": 1}, *records[2:]]
    found = validate(chained(forged), small()).findings
    assert [(f.code, f.line, f.field) for f in found] == [("L103", 3, "kind")]


def test_what_follows_the_last_line_may_be_as_long_as_a_line(monkeypatch):
    line, _ = seal({"a": 1}, FIRST_HEAD)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", len(line))
    reader = LedgerReader([line, b"x" * len(line)])
    assert list(reader) == [{"a": 1}]
    assert reader.tail == b"x" * len(line)
    for longer in (b"x" * (len(line) + 1), b"x" * len(line) + b"\n"):
        with pytest.raises(Rejected) as refusal:
            list(LedgerReader([line, longer]))
        assert (refusal.value.code, refusal.value.path) == ("D201", "line 2")


def test_a_line_as_long_as_may_be_is_taken_with_others_behind_it(monkeypatch):
    first, head = seal({"a": 1}, FIRST_HEAD)
    second, _ = seal({"b": 2}, head)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", len(first))
    assert list(LedgerReader([first + second])) == [{"a": 1}, {"b": 2}]
    assert list(LedgerReader([first[:9], first[9:] + second])) == [{"a": 1}, {"b": 2}]
