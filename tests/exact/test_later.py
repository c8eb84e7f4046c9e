"""Exact questions about grammars of language 1.2: what is left aside, and what is not decided."""

from __future__ import annotations

from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.proof.check import check_proof
from tcc_runtime.exact import certificate
from tests.exact import brute, test_brute

SHOP = """grammar g version "1"
tool find(; order: text max 9)
tool approve(; order: text max 9)
tool refund(; order: text max 9, amount: integer 0 .. 20)
plan = (find | approve | refund){0,3}
require find same order or approve same order before refund
limit sum(refund.amount) <= 50
forbid approve before find same order
"""
ALTERNATIVES = "require find same order or approve same order before refund"
TIMED = SHOP + "limit uses(refund) <= 2 within 1 h\n"
LONGER = SHOP.replace("{0,3}", "{0,4}")
LIMIT = "limit uses(refund) <= 2 within 1 h\n"
OTHER = SHOP.replace("find same order or approve same order", "approve same order or find")
LAST = SHOP.replace("limit sum", "require last find same order before approve\nlimit sum")
UNLESS = SHOP.replace(
    "require find same order or approve same order before refund",
    "forbid find same order before refund unless approve same order",
)


@pytest.mark.parametrize(
    ("text", "asked", "verdict", "codes", "calls"),
    [
        (SHOP, {"statement": "limit sum(refund.amount) <= 50"}, "proved", (), None),
        (SHOP, {"statement": "never approve before find same order"}, "proved", (), None),
        (SHOP, {"statement": "never refund"}, "refuted", (), 2),
        (SHOP, {"statement": "never find"}, "refuted", (), 1),
        (SHOP, {"reachable": "refund"}, "proved", (), 2),
        (UNLESS, {"statement": "never refund after find same order"}, "refuted", (), 3),
        (SHOP, {"finishable": True}, "proved", (), None),
        (SHOP, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"implies": SHOP.replace("<= 50", "<= 60")}, "proved", (), None),
        (SHOP, {"implies": SHOP.replace("<= 50", "<= 15")}, "refuted", (), 2),
        (SHOP, {"implies": OTHER}, "proved", (), None),
        (OTHER, {"implies": SHOP}, "refuted", (), 2),
        (TIMED, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"implies": TIMED}, "proved", (), None),
        (LONGER, {"implies": LONGER + LIMIT}, "refuted", (), 4),
        (LONGER + LIMIT, {"statement": "limit uses(refund) <= 2 within 30 m"}, "proved", (), None),
        (LONGER + LIMIT, {"statement": "limit uses(refund) <= 2 within 2 h"}, "refuted", (), 4),
        (LONGER + LIMIT, {"statement": "limit uses(refund) <= 2"}, "refuted", (), 4),
        (TIMED, {"finishable": True}, "proved", (), None),
        (LAST, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"statement": ALTERNATIVES}, "proved", (), None),
        (
            LAST,
            {"statement": "require find same order or find same order before approve"},
            "proved",
            (),
            None,
        ),
    ],
)
def test_statements_of_language_1_2_are_decided(
    text: str, asked: dict[str, Any], verdict: str, codes: tuple[str, ...], calls: int | None
) -> None:
    artifacts = [tcc.compile_text(text)]
    if "implies" in asked:
        asked = {"implies": tcc.compile_text(asked["implies"])}
        artifacts.append(asked["implies"])
    found = tcc.prove(artifacts[0], **asked)
    shown = None if found.session is None else len(found.session.calls)
    assert (found.verdict, found.codes, shown) == (verdict, codes, calls), found.whys
    data = found.certificate
    assert data is not None
    report = check_proof(data, [artifact_bytes(one) for one in artifacts])
    assert (report.verdict, report.proof) == (0, verdict), report.finding


def test_a_proof_over_statements_that_the_core_has_not_is_another_one() -> None:
    """A session of the grammar without a statement is none of the one with it."""
    plain, later = (tcc.compile_text(SHOP.replace(f"{ALTERNATIVES}\n", "")), tcc.compile_text(SHOP))
    for asked in ({"statement": "never refund"}, {"finishable": True}):
        found = tcc.prove(plain, **asked)
        assert found.certificate is not None
        head, _, rest = found.certificate.partition(b"\n")
        of, digest = (certificate.core_digest(one.file).encode() for one in (plain, later))
        report = check_proof(head.replace(of, digest) + b"\n" + rest, [artifact_bytes(later)])
        assert report.finding is not None
        assert report.verdict == 1 and report.finding.code.value in ("T101", "T202", "T203", "T301")


@pytest.mark.parametrize(
    "tool",
    [
        "tool a gives (s: ok | *)",
        "tool a gives (s?: ok | bad)",
        "tool a gives (; s: text max 9)",
        "tool a(; x?: text max 9 or null)",
        "tool a { parallel\n}",
    ],
)
def test_tools_of_a_later_version_are_declined_by_the_kernel(tool: str) -> None:
    """No statement says so: the version of the core is all that tells them from those of 1.1."""
    made = tcc.compile_text(f'grammar g version "1"\n{tool}\nplan = a{{0,2}}\n')
    digest = certificate.core_digest(made.file)
    for kind, text in (("implies", None), ("statement", "never a"), ("finishable", None)):
        head = {"format": "tcc.proof", "format_version": "1.0", "proof": "proved"}
        asked = {"kind": kind, "text": text} if text else {"kind": kind}
        sides = [made, made] if kind == "implies" else [made]
        line = {**head, "question": asked, "cores": [digest] * len(sides), "parts": []}
        data = encode(line) + b"\n"
        found = check_proof(data, [artifact_bytes(one) for one in sides]).finding
        assert found is not None and (found.code.value, found.path) == ("D101", "core")


def test_what_the_other_side_holds_is_forgotten_only_if_it_is_the_same() -> None:
    """The same words about other tools say something else, and no key is asked about alone."""
    mine = tcc.compile_text(SHOP)
    for text in (OTHER, SHOP.replace("tool find(; order: text max 9)", "tool find(; order: text)")):
        of = certificate.Asked(kind="implies", text=None, artifacts=(mine, tcc.compile_text(text)))
        with pytest.raises(Rejected) as refusal:
            of.system(listed=True, keyed=True).parts(frozenset())
        assert refusal.value.code.value == "D101"


def test_a_session_has_times_where_a_statement_has_a_span() -> None:
    late = SHOP.replace("before refund\n", "before refund\nforbid find within 1 h before refund\n")
    found = tcc.prove(tcc.compile_text(late), "never refund after find same order")
    assert found.verdict == "refuted" and found.session is not None
    assert [call.at_ms for call in found.session.calls] == [0, 3_600_001]


def in_alternatives(say: brute.Say) -> str:
    """A statement as language 1.2 has it: one alternative, said twice."""
    same = ", ".join(f"{x} = {y}" for x, y in say.same)
    either = f"{say.a} same {same} or {say.a} same {same}"
    match say.word:
        case "require" if same:
            return f"require {either} before {say.b}"
        case "each" if same:
            return f"require {either} before each {say.b}"
        case "before" if same:
            return f"forbid {either} before {say.b}"
    return PLAIN(say)


PLAIN = brute.Say.text.fget


@pytest.mark.parametrize("first", [0, 20, 40])
def test_what_is_decided_is_as_brute_force_says(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The same statements, told in the words of 1.2."""
    monkeypatch.setattr(brute.Say, "text", property(in_alternatives))
    tally: dict[str, int] = {}
    for seed in range(first, first + 20):
        for found, artifacts in test_brute.ask(seed, tally):
            data = found.certificate
            if data is not None:
                report = check_proof(data, [artifact_bytes(one) for one in artifacts])
                assert report.finding is None, (seed, found)
    assert tally["sessions shown"] > 10
