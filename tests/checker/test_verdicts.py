"""The extracted checker says what ``tcc_certs`` says, of honest and of forged artifacts."""

from __future__ import annotations

import pytest

from tests.checker.verdicts import CHECKER, NOT_YET, compared, forged, said
from tests.oracle.examples import example

pytestmark = pytest.mark.skipif(
    not CHECKER.exists(), reason="no extracted checker: scripts/proofs --checker builds it"
)


def test_an_honest_artifact_is_valid() -> None:
    [line] = said([example()])
    assert line.startswith("VALID: ") and "12 plans" in line


def test_no_verdict_of_a_forgery_differs_where_the_checker_has_the_rule() -> None:
    pairs = list(compared(forged(example(), 400)))
    assert [pair for pair in pairs if not pair.agree and pair.certs not in NOT_YET] == []
    assert sum(pair.extracted == "REJECTED" for pair in pairs) > 200
