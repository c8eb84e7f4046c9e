"""What conditions and statements mean, fact by fact."""

from __future__ import annotations

from tests.certs.policy.told import Told

BASE = """
tool x(k: text, n?: number)
tool a(k: text, n?: number) gives (r?: text, m?: number)
"""


# Filters on `any`.


def test_every_of_any_is_false_for_a_call_without_the_field() -> None:
    told = Told(BASE + "tool plain")
    assert told.truth('every any(k = "1")', k="1") is True
    told.done("a", k="1")
    assert told.truth('every any(k = "1")', k="1") is True
    told.done("plain")
    assert told.truth('every any(k = "1")', k="1") is False
    assert told.truth('any(k = "2")', k="1") is False
    assert told.truth('any(not k = "1")', k="1") is False
