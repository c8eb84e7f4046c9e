"""Values that a ledger shows: the extracted checker takes what ``tcc_certs`` takes, or declines.

Of every type texts just inside and just outside of it, and texts made from these by chance; digests
that are not of their values; sums over numbers that are shown.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import tcc as library
from tcc.library import artifact_bytes
from tcc_certs.kernel import check
from tests.checker.test_sessions import Records, differing, program
from tests.oracle_session.writer import SessionWriter, named, sealed

pytestmark = pytest.mark.skipif(
    program() is None, reason="no extracted checker (scripts/proofs --checker), and no node"
)

TEXT = r"""grammar g version "1"

tool a(plain: text min 1 max 5, number: number -2.5 .. 1000, whole: integer, flag: flag, json: json,
       coded: text ~ "[a-c]{2,3}x?[0-9]*", worded: text ~ "\\w+-\\d{2}", deep?: text ~ "(ab|c)+",
       sum: number 0 .. 20)

pass resources, input

plan = a{0,9}

limit sum(a.sum) <= 10.75
"""
SHOWN = ("plain", "number", "whole", "flag", "json", "coded", "worded", "deep", "sum")
KINDS = {"number": "n", "whole": "n", "sum": "n", "flag": "b", "json": "j"}
GOOD: dict[str, Any] = {
    "plain": "x", "number": "1", "whole": "-7", "flag": "true", "json": "null",
    "coded": "ab", "worded": "a-12", "sum": "2.5",
}  # fmt: skip
TEXTS: dict[str, tuple[str, ...]] = {
    "plain": ("", "x", "12345", "123456", "ééééé", "éééééé", "\U0001f600" * 5, "a\nb", '"\\'),
    "number": (
        "0", "-0", "1", "-2.5", "-2.50", "-2.51", "1000", "1000.0", "1000.1", "01", ".5", "0.5",
        "5.", "1e2", "+1", "", "-", "1 ", "999.999999999999", "999.9999999999999", "0.1", "1,5",
        "123456789012345678", "٣",
    ),
    "whole": (
        "0", "-7", "7.5", "1" + "0" * 22, "1" + "0" * 21 + "1", "9007199254740993", "007", "1.0",
        "18446744073709551615", "18446744073709551616", "-9223372036854775808",
        "-9223372036854775809",
    ),
    "flag": ("true", "false", "True", "1", ""),
    "json": (
        "null", "true", "[]", "{}", "[1,2]", "[1, 2]", "[1,]", "[,1]", '{"a":1}', '{"a":1,"a":1}',
        '{"b":1,"a":2}', '{"a":1,"b":2}', '{"a":{"a":[{}]}}', '"x"', '"\\u0041"', '"\\n"', '"\\/"',
        '"\\u000a"', '"\\u001f"', '"é"', '"\\"', "1.50", "1.5", "-0", "1e3", "nul", '{"a"}', "[1}",
        "[" * 64 + "]" * 64, "[" * 65 + "]" * 65, "", " ", '{"":0}', '{"z":0,"é":1}', "[1]]",
        '{"é":0,"z":1}', '["\\ud800"]', '"\\u00-a"', '"\\u00"2a"', '"\\u001g"', '"\\u00/f"',
        "0.30000000000000004", "1234567890123456",
        "[18446744073709551615]", "[18446744073709551616]",
    ),
    "coded": (
        "ab", "a", "abc", "abca", "abx", "abcx0123", "abxx", "ab9", "xab", "ab\n", "aé",
        "ca" + "7" * 300,
    ),
    "worded": ("a-12", "-12", "a_Z9-00", "a-1", "a-123", "é-12", "a-12 "),
    "deep": ("ab", "abc", "d"),
    "sum": ("0", "10.75", "10.76", "10.7500000000001", "2.5", "-1", "0.00000000000000000000000001"),
}  # fmt: skip


@cache
def artifact() -> bytes:
    return artifact_bytes(library.compile_text(TEXT))


def ledger(calls: list[dict[str, str]], digests: dict[tuple[int, str], str] | None = None) -> bytes:
    """A session of these calls, each value as the text that the ledger shows."""
    return sealed(written(calls, digests or {}))


def written(calls: list[dict[str, str]], digests: dict[tuple[int, str], str]) -> Records:
    checked = check(artifact())
    show = sorted(f"a.{name}" for name in SHOWN)
    writer = SessionWriter(checked, show=show)
    root = checked.file.manifest.states - 1
    records: Records = list(writer.records)
    for at, values in enumerate(calls, 1):
        opened = {}
        for name, text in sorted(values.items()):
            kind = KINDS.get(name, "s")
            made = digests.get((at, name)) or _digest(kind, text)
            opened[name] = {"digest": made, "type": kind, "value": text}
        states = [root - at + 1]
        records.append({
            "kind": "call", "seq": at, "call": "a", "open": opened, "states": states,
            "key": f"{at:032x}",
        })  # fmt: skip
        records.append({"kind": "outcome", "seq": at, "outcome": "done", "ms": 1})
    records.append({"kind": "end", "abandoned": True})
    return records


def _digest(kind: str, text: str) -> str:
    from blake3 import blake3

    return blake3(kind.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()


def mutated(rng: random.Random, text: str) -> str:
    """A text with a character or two changed, left out or added."""
    found = list(text)
    for _ in range(rng.randint(1, 2)):
        at = rng.randint(0, len(found))
        some = rng.choice('0123456789-.,:"\\[]{} abcxyz_eutrfn\u00e9')
        found[at : at + rng.randint(0, 1)] = [some] * rng.randint(0, 1)
    return "".join(found)


def cases(rng: random.Random, many: int) -> Iterator[bytes]:
    for name, texts in TEXTS.items():
        chosen = [*texts, *(mutated(rng, rng.choice(texts)) for _ in range(many))]
        for text in chosen:
            yield ledger([{**GOOD, name: text}])


@pytest.mark.parametrize("many", [15, pytest.param(3000, marks=pytest.mark.campaign)])
def test_values_of_every_type_are_taken_alike(many: int) -> None:
    found, lines = differing(artifact(), list(cases(random.Random(5), many)))
    assert found == []
    assert lines["VALID: ConformantPrefix"] > 40, lines
    assert lines["REJECTED: a value that is not of its type"] > 60, lines
    assert lines["DECLINED: a pattern of texts that are shown"] > 10, lines  # it has a group


def test_whole_numbers_of_64_bits_are_decided() -> None:
    ends = ("9007199254740993", "18446744073709551615", "-9223372036854775808")
    ledgers = [ledger([{**GOOD, "whole": text, "json": f"[{text}]"}]) for text in ends]
    found, lines = differing(artifact(), ledgers)
    assert found == []
    assert lines == {"VALID: ConformantPrefix": len(ends)}


def test_digests_are_those_of_the_values() -> None:
    """Two values with one digest, or with one half of it; one value with two."""
    one, other = {**GOOD, "plain": "x"}, {**GOOD, "plain": "y", "sum": "3"}
    same, half = "ab" * 32, "ab" * 16 + "cd" * 16
    made = [
        {}, {(1, "plain"): same}, {(1, "plain"): same, (2, "plain"): same},
        {(1, "plain"): same, (2, "plain"): half}, {(1, "flag"): same}, {(1, "whole"): same.upper()},
        {(1, "plain"): same, (1, "coded"): same}, {(2, "sum"): same[:-1]},
    ]  # fmt: skip
    ledgers = [ledger([one, other], digests) for digests in made]
    found, lines = differing(artifact(), ledgers)
    assert found == []
    assert lines == {
        "VALID: ConformantPrefix": 2, "REJECTED: digests that are not those of the values": 4,
        "REJECTED: open arguments": 2,
    }  # fmt: skip


def test_sums_over_values_that_are_shown_are_added_up() -> None:
    sums = [("10.75",), ("10", "0.75"), ("10", "0.76"), ("5.5", "5.25"), ("5.5", "5.2500000001")]
    ledgers = [ledger([{**GOOD, "sum": x} for x in one]) for one in sums]
    for one in (("10", "unknown"), ("10", "failed"), ("0.75", "unknown")):
        records = written([{**GOOD, "sum": "10"}, {**GOOD, "sum": one[0]}], {})
        records[4]["outcome"] = "done"
        records[2]["outcome"] = one[1]
        root = records[1]["states"][0]
        records[3]["states"] = [root - 1, root] if one[1] == "unknown" else [root]
        ledgers.append(sealed(records))
    found, lines = differing(artifact(), ledgers)
    assert found == []
    assert lines["VALID: ConformantPrefix"] == 5 and lines["REJECTED: a monitor"] == 3, lines


def test_what_is_shown_is_said_by_the_first_record_alone() -> None:
    ledgers = []
    for show in ([], ["a.plain"], ["a.plain", "a.flag"], ["a.flag", "a.plain"], ["a.other"], [1]):
        for values in ({}, {"plain": "x"}):
            records = written([{}], {})
            records[0]["arguments"] = {"show": show}
            records[0] = named({k: v for k, v in records[0].items() if k != "session_id"})
            opened = {name: {"digest": "00" * 32} for name in GOOD}
            for name, text in values.items():
                opened[name] = {"digest": "01" * 32, "type": "s", "value": text}
            records[1]["open"] = opened
            ledgers.append(sealed(records))
    found, lines = differing(artifact(), ledgers)
    assert found == []
    assert lines["VALID: ConformantPrefix"] == 2, lines
