"""The text of Q64.64: 20 digits, nearest, ties to even, and back again."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN, format_q64
from tcc_experiments.evidence import q64_of
from tcc_runtime.ledger.lines import q64_text

# 2^-64 is 5.42e-20: neighbours differ in the 20th digit.
TEXTS = [
    (0, "0.00000000000000000000"),
    (1, "0.00000000000000000005"),
    (-1, "-0.00000000000000000005"),
    (1 << 64, "1.00000000000000000000"),
    (-(1 << 63), "-0.50000000000000000000"),
    # 2^43 / 2^64 = 2^-21 = 4.76837158203125e-07 has its 21st digit 5 and nothing after it.
    (1 << 43, "0.00000047683715820312"),
    (3 << 43, "0.00000143051147460938"),
    (-(3 << 43), "-0.00000143051147460938"),
    (Q64_MAX, "9223372036854775807.99999999999999999995"),
    (Q64_MIN, "-9223372036854775808.00000000000000000000"),
]


@pytest.mark.parametrize(("number", "text"), TEXTS)
def test_text_is_rounded_to_nearest_with_ties_to_even(number, text):
    assert format_q64(number) == text
    assert q64_text(number) == text


@given(st.integers(Q64_MIN, Q64_MAX - (1 << 63)))
def test_the_text_reads_back_to_the_number(number):
    assert q64_text(number) == format_q64(number)
    assert q64_of(q64_text(number)) == number
