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
        # Of one length no other session is looked for: there is one with three calls.
        (UNLESS, {"statement": "never refund after find same order"}, "undecided", ("P501",), None),
        (SHOP, {"finishable": True}, "undecided", ("P501",), None),
        (SHOP, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"implies": SHOP.replace("<= 50", "<= 60")}, "proved", (), None),
        (SHOP, {"implies": SHOP.replace("<= 50", "<= 15")}, "refuted", (), 2),
        (SHOP, {"implies": OTHER}, "undecided", ("P501",), None),
        (TIMED, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"implies": TIMED}, "undecided", ("P501",), None),
        (LAST, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"statement": ALTERNATIVES}, "undecided", ("P501",), None),
    ],
)
def test_statements_of_a_left_side_may_be_left_aside(
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
    # A session would have to be replayed with the statements that the kernel does not know.
    assert (data is None) == (verdict == "undecided" or calls is not None)
    if data is not None:
        report = check_proof(data, [artifact_bytes(one) for one in artifacts])
        assert (report.verdict, report.proof) == (0, "proved")


def test_a_session_over_statements_that_are_not_known_is_declined() -> None:
    """Without them it may be one that the gate refuses: so is every answer that needs all."""
    plain, later = (
        tcc.compile_text(
            SHOP.replace("require find same order or approve same order before refund\n", "")
        ),
        tcc.compile_text(SHOP),
    )
    for asked in ({"statement": "never refund"}, {"finishable": True}):
        found = tcc.prove(plain, **asked)
        assert found.certificate is not None
        head, _, rest = found.certificate.partition(b"\n")
        of, digest = (certificate.core_digest(one.file).encode() for one in (plain, later))
        report = check_proof(head.replace(of, digest) + b"\n" + rest, [artifact_bytes(later)])
        assert report.finding is not None
        assert (report.verdict, report.finding.code.value) == (2, "D101")


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
    """The same words about other tools say something else."""
    mine = tcc.compile_text(SHOP)
    for text in (OTHER, SHOP.replace("tool find(; order: text max 9)", "tool find(; order: text)")):
        of = certificate.Asked(kind="implies", text=None, artifacts=(mine, tcc.compile_text(text)))
        with pytest.raises(Rejected) as refusal:
            of.system(forgets=True)
        assert refusal.value.code.value == "D101"


def test_spans_of_time_are_left_aside_until_a_session_needs_them() -> None:
    late = SHOP.replace("before refund\n", "before refund\nforbid find within 1 h before refund\n")
    found = tcc.prove(tcc.compile_text(late), "never refund after find same order")
    assert (found.verdict, found.codes) == ("undecided", ("P502",))


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
    """The same statements, of which the search knows those of 1.1 alone."""
    compare = test_brute.same

    def same(found: Any, *more: Any) -> None:
        if found.codes != ("P501",):
            compare(found, *more)

    monkeypatch.setattr(brute.Say, "text", property(in_alternatives))
    monkeypatch.setattr(test_brute, "same", same)
    tally: dict[str, int] = {}
    for seed in range(first, first + 20):
        for found, artifacts in test_brute.ask(seed, tally):
            data = found.certificate
            if data is not None:
                report = check_proof(data, [artifact_bytes(one) for one in artifacts])
                assert report.finding is None, (seed, found)
    assert tally["sessions shown"] > 10
