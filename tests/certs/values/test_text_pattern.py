"""Patterns of texts: RE2 is the oracle; what is refused is refused with its place."""

from __future__ import annotations

import random
import re
import time

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.values.text_pattern import like_of, likes_of, parse
from tcc_certs.values.text_syntax import MAX_STEPS, ensure_quick

re2 = pytest.importorskip("re2")

ATOMS = [
    *"abc0 -_", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\.", "\\-", "[a-c]", "[^a]",
    "[^\\d]", "[\\w-]", "[^\\D]", "[-a]", "[^-a0]", "\\n", "é", "[à-ý]", "[^\\w\\s]", "[\\]\\\\]",
    "[--0]", "[^\\d\\D]", "[.*]", "\\v", "😀",
]  # fmt: skip
QUANTIFIERS = ["*", "+", "?", "{2}", "{0}", "{1,}", "{0,2}", "{2,3}", "{0,}", "{3}"]
CHARS = "abc0 -_.\né5zÿ😀\v]\\\t"


def pattern(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return rng.choice(ATOMS)
    if kind < 0.6:
        return pattern(rng, depth - 1) + pattern(rng, depth - 1)
    if kind < 0.75:
        return f"({pattern(rng, depth - 1)}|{pattern(rng, depth - 1)})"
    if kind < 0.8:
        return f"(?:{pattern(rng, depth - 1)}|)"
    return f"({pattern(rng, depth - 1)}){rng.choice(QUANTIFIERS)}"


@pytest.mark.parametrize("seed", range(40))
def test_it_matches_what_re2_matches(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        source = pattern(rng, rng.randint(1, 5))
        source = f"{rng.choice(['', '', '^'])}{source}{rng.choice(['', '', '$'])}"
        ours, oracle = parse(source), re2.compile(f"(?s){source}")
        for _ in range(20):
            text = "".join(rng.choice(CHARS) for _ in range(rng.randint(0, 8)))
            assert ours.matches(text) == (oracle.fullmatch(text) is not None), (source, text)


@pytest.mark.parametrize("seed", range(10))
def test_a_pattern_that_ignores_case_matches_what_re2_matches(seed: int) -> None:
    rng = random.Random(500 + seed)
    for _ in range(100):
        source = pattern(rng, rng.randint(1, 4))
        ours, oracle = parse(f"(?i){source}"), re2.compile(f"(?si){source}")
        for _ in range(20):
            text = "".join(rng.choice("ABCabcÉé0 -_.\nÿŸK") for _ in range(rng.randint(0, 8)))
            assert ours.matches(text) == (oracle.fullmatch(text) is not None), (source, text)


def test_letters_differ_only_in_case_where_re2_says_so() -> None:
    letters = [chr(code) for code in (*range(0x80, 0x590, 7), 0x4B, 0x73, 0x131, 0x130, 0x3C2)]
    others = [chr(code) for code in (*range(0x590), 0x2126, 0x212A, 0x212B, 0x1E9E)]
    for letter in filter(str.isalpha, letters):
        ours, oracle = parse(f"(?i){letter}"), re2.compile(f"(?i){letter}")
        found = [other for other in others if ours.matches(other)]
        assert found == [other for other in others if oracle.fullmatch(other)], letter


@pytest.mark.parametrize("seed", range(20))
def test_what_is_taken_means_what_it_means_in_re2(seed: int) -> None:
    """Any text of marks: it is refused, or RE2 takes it too, and for the same texts."""
    rng = random.Random(1000 + seed)
    taken = 0
    for _ in range(1500):
        source = "".join(rng.choice("ab-^$.[]{}()|*+?\\d:1,") for _ in range(rng.randint(1, 7)))
        try:
            ours = parse(source)
        except Rejected as refusal:
            assert refusal.code == "C801"
            continue
        taken += 1
        oracle = re2.compile(f"(?s){source}")
        for text in ("", "a", "b", "-", "1", "ab", "aa", "ab-", "^", ",", "a1", "[", ":", "\n"):
            assert ours.matches(text) == (oracle.fullmatch(text) is not None), (source, text)
    assert taken > 100


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("a(?=b)", 3), ("a(?i)b", 3), ("(?I)a", 2), ("(a)\\1", 5), ("a*?", 3), ("a**", 3),
        ("a{2}+", 5),
        ("a{2", 4), ("a{3,2}", 7), ("a{,3}", 3), ("{", 2), ("a]", 3), ("*a", 2), ("a|*", 4),
        ("(a", 3), ("a)", 2), ("[a", 3), ("[]a]", 2), ("[^]a]", 3), ("[b-a]", 5), ("[a-\\d]", 6),
        ("[!-\\d]", 6), ("[a-c-e]", 5), ("[[:alpha:]]", 2), ("\\pL", 3), ("\\x41", 3), ("\\", 3),
        ("\\b", 3), ("a^", 3), ("a$b", 3), ("(^a)", 3), ("(a$)", 3), ("a|^b", 4), ("^*", 3),
        ("a{1001}", 7), ("a\x00", 1), ("a\u200d", 1), ("\ud800", 1), ("\\Qa", 3), ("(?P<n>a)", 2),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_at_its_place(source: str, place: int) -> None:
    with pytest.raises(Rejected) as refused:
        parse(source, "core.tools[0]")
    assert refused.value.code == "C801"
    found = re.fullmatch(r"core\.tools\[0\] character ([0-9]+)", refused.value.path)
    assert found is not None
    assert abs(int(found[1]) - place) <= 1


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("a{1000}", True), ("a{999}bc", False), ("(a{10}){100}", True), ("(a{10}){101}", False),
        ("(a|b){1000}", True), ("(ab|c){334}", False), ("((((){1000}){1000}){1000}){1000}", True),
        ("((((|(|)){1000}){1000}){1000}){1000}", True),
        ("(((a?){1000})?)?", True), ("a{1000,}", True), ("(a{0}b){1000}", True),
        ("(" * 100 + "a" + ")" * 100, True), ("(" * 101 + "a" + ")" * 101, False),
        ("[" + "a" * 4094 + "]", True), ("[" + "a" * 4095 + "]", False),
    ],
)  # fmt: skip
def test_how_large_a_pattern_may_be(source: str, holds: bool) -> None:
    if holds:
        parse(source)
        return
    with pytest.raises(Rejected) as refused:
        parse(source)
    assert refused.value.code == "C801"


@pytest.mark.parametrize(
    ("source", "text", "matches"),
    [
        ("[a-z]*", "a" * 65536, True),
        ("(a*)*b", "a" * 65536, False),
        ("(a|b)*a(a|b){400}", "ab" * 32768, False),
        ("(ab|cd){0,249}.*", "abcd" * 16384, True),
        ("[^x]*", "".join(map(chr, range(0x3000, 0xD000))), True),
        ("(.*a.*b.*){150}", "ab" * 32768, True),
        ("(a?b?){400}", "b" * 400 + "c", False),
    ],
)
def test_no_pattern_takes_long(source: str, text: str, matches: bool) -> None:
    began = time.perf_counter()
    assert parse(source).matches(text) is matches
    assert time.perf_counter() - began < 5


def test_what_is_kept_of_texts_is_bounded() -> None:
    rng = random.Random(3)
    ours, oracle = parse("(a|b)*a(a|b){60}"), re2.compile("(a|b)*a(a|b){60}")
    for _ in range(200):
        text = "".join(rng.choice("ab") for _ in range(300))
        assert ours.matches(text) == (oracle.fullmatch(text) is not None)
        assert len(ours._sets) <= 1 << 12


@pytest.mark.parametrize(
    ("source", "most", "steps"),
    [
        ("[ab]*a[ab]{900}", 1162, 902 * 1162),
        ("[ab]*a[ab]{14}", 65536, 1 << 20),
        ("(?:[a-z]+-){2}x{12}", 65536, 1 << 20),
        ("[ab]{1000}", 1 << 20, 1_000_000),  # no text that matches is longer
        ("(a?b?){500}", 1 << 20, 1_000_000),
        ("(a*){0}b", 1 << 20, 1),
        ("", 1 << 20, 0),
    ],
)
def test_a_pattern_is_refused_above_the_work_of_one_check(
    source: str, most: int, steps: int
) -> None:
    ensure_quick(source, most, "pattern")
    assert steps <= MAX_STEPS
    grown = f"(?:{source})*"
    if steps > 1:
        with pytest.raises(Rejected) as refused:
            ensure_quick(grown, MAX_STEPS, "here")
        assert (refused.value.code, refused.value.path) == ("C801", "here")


def test_the_bound_is_met_exactly() -> None:
    for source, most in (("[ab]*a[ab]{900}", 1163), ("[ab]*a[ab]{14}", 65537)):
        ensure_quick(source, most - 1, "here")
        with pytest.raises(Rejected) as refused:
            ensure_quick(source, most, "here")
        assert refused.value.path == "here" and refused.value.expected == (
            "at most 1048576 steps a text"
        )


@pytest.mark.parametrize(
    ("source", "head", "free"),
    [
        ("gift_.*", "gift_", ""), (".*", "", ""), ("a[^b]*", "a", "b"), ("[^\\n]*", "", "\n"),
        ("a.+", "a", None), ("a.*b", "a", None), ("(ab|ac).*", "a", None), ("a?b.*", "", None),
        ("ab", "ab", None), ("[a-f]*", "", None), ("a{70}", "a" * 64, None),
    ],
)  # fmt: skip
def test_what_is_known_of_a_pattern_before_a_text_is_read(
    source: str, head: str, free: str | None
) -> None:
    found = parse(source)
    assert (found._head, found._free) == (head, free)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_known_of_it_changes_no_answer(seed: int) -> None:
    rng, known = random.Random(seed), 0
    for _ in range(200):
        source = "".join(rng.choice(["a", "ab", ".*", "[^a]*", "(a|b)", "(a|.)*", "b?", "\\n"])
                         for _ in range(rng.randint(1, 4)))  # fmt: skip
        ours = parse(source)
        known += ours._free is not None or bool(ours._head)
        texts = []
        for _ in range(40):
            text = "".join(rng.choice("aab\nc\x00\U0010ffff`") for _ in range(rng.randint(0, 6)))
            state = ours.set_of(1)
            for char in text:
                state = state[char]
            assert ours.matches(text) is state.accepts, (source, text)
            texts.append(text)
        assert ours.match_each(texts) == list(map(ours.matches, texts))
        assert likes_of(source)(texts) == list(map(like_of(source), texts))
    assert known > 50


def test_of_several_texts_one_that_takes_too_long_is_unsure() -> None:
    texts = ["aab", "a" * MAX_STEPS, "c"]
    assert likes_of("a*b")(texts) == [True, None, False]
    assert likes_of("a*b")([]) == []
