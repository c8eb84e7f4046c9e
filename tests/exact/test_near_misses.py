"""A statement that is a little stronger than the policy is never proved."""

from __future__ import annotations

import pytest

import tcc

HEAD = """# lint: allow TCC709 a test needs no costs
grammar near version "1"
given g: text
tool look(k: text, n: integer 0 .. 9) gives (v: yes | no, m: integer 0 .. 9) {
  errors mean failed
}
tool act(k: text, n: integer 0 .. 9, z?: text, f?: path, u?: url)
tool over
limit depth <= 40
"""
PAIRS = (
    ("before act require look(v = yes)", "before act require look(v = no)"),
    ("before act require look", "before act require look(v = yes)"),
    ("before act require look(v = yes)", "before act require look(same k, v = yes)"),
    ("before act require no look(v = yes)", "before act require no look"),
    ("before act require look", "before act require look since over"),
    ("before act require no look since over", "before act require no look"),
    ("before act require look within 2 h", "before act require look within 1 h"),
    ("before act require no look within 1 h", "before act require no look within 2 h"),
    ("before act require count(look) >= 2", "before act require count(look(v = yes)) >= 2"),
    ("before act require count(look(v = yes)) <= 2", "before act require count(look) <= 2"),
    ("before act require count(look) <= 2", "before act require count(look) <= 1"),
    ("before act require last(look).v = yes", "before act require every look(v = yes)"),
    ("before act require last(look).m >= 1", "before act require last(look).m > 1"),
    ("before act require last(look).m >= n", "before act require last(look(same k)).m >= n"),
    ("before act require every look(v = yes)", "before act require look"),
    ("before act require z = k", "before act require z = session.g"),
    ("before act require z != null", "before act require z = k"),
    ("before act require n < 5", "before act require n < 4"),
    ("before act require n != 5", "before act require n < 5"),
    ("before act require look or over", "before act require over"),
    ("before act(n > 3) require over", "before act require over"),
    ("limit count(act) per k <= 3 in session", "limit count(act) <= 3 in session"),
    ("limit count(act) per k <= 3 in session", "limit count(act) per k <= 3 across sessions"),
    ("limit count(act(n > 0)) <= 1 in session", "limit count(act) <= 1 in session"),
    ("limit count(act within 1 h) <= 1 in session", "limit count(act within 2 h) <= 1 in session"),
    ("limit count(act) <= 2 in session", "limit count(act) <= 1 in session"),
    ("limit count(act) <= 2 in session", "limit count(act | look) <= 2 in session"),
    ("limit sum(act.n) <= 3 in session", "limit count(act) <= 3 in session"),
    ("limit count(act) per k <= 1 in session", "before act require no act"),
    ("limit count(look) per k <= 1 in session", "before look require no look(same k)"),
    ("finally require look", "finally require look(v = yes)"),
    ("after act owe look", "after act owe look(v = yes)"),
    ("after act(n > 3) owe look", "after act owe look"),
    ("before look require over", "before act require over"),
    # Broken only while the outcome of `over` is unknown: both outcomes satisfy the question.
    ("before act require look", "before act require look since over or over"),
    ("before look require no over", "before act require no look since over or no over"),
    ("after act owe look within 1 h", "after act owe look within 30 m"),
    ("after act owe look", "after act owe look within 1 h"),
    ("after act owe look(same k) within 1 h", "after act owe look(same k, v = yes) within 1 h"),
    ("after act(n > 3) owe look within 1 h", "after act(n > 2) owe look within 1 h"),
    ('before act(n > 3) ask "boss"', 'before act(n > 2) ask "boss"'),
    ('before act ask "boss" within 2 h', 'before act ask "boss" within 1 h'),
    ('before act ask "boss"', 'before act ask "chief"'),
    ('before act(n > 3) ask "boss"', "before act require n <= 3"),
    ('before act require f under "/srv"', 'before act require f under "/srv/out"'),
    ('before act require f not under "/srv/out"', 'before act require f not under "/srv"'),
    ('before act require f under "/srv"', 'before act require f under "/srv/"  and f != "/srv"'),
    (
        'before act require u under "https://*.a.example/x/y"',
        'before act require u not under "https://b.a.example/x"',
    ),
    (
        'before act require u under "https://*.a.example/x"',
        'before act require u under "https://b.a.example/x"',
    ),
)


@pytest.mark.parametrize(("policy", "question"), PAIRS)
@pytest.mark.sampled(20)
def test_a_stronger_statement_is_not_proved(policy: str, question: str) -> None:
    artifact = tcc.compile_text(f"{HEAD}{policy}\n")
    assert tcc.prove(artifact, question, timeout=2).verdict != "proved"
    assert tcc.prove(artifact, policy, timeout=5).verdict == "proved"


IMPLIED = (
    ("after act owe look within 1 h", "after act owe look within 2 h"),
    ("after act owe look within 1 h", "after act owe look"),
    ("after act(n > 3) owe look(v = yes) within 1 h", "after act(n > 5) owe look within 1 h"),
    ('before act(n > 3) ask "boss"\nbefore act(n <= 3) ask "boss"', 'before act ask "boss"'),
    ('before act ask "boss" within 1 h', 'before act(n > 3) ask "boss" within 2 h'),
    ('before act require f under "/srv/out"', 'before act require f under "/srv"'),
    ('before act require f under "/srv/out"', 'before act require f not under "/etc"'),
    ('before act require f = "/srv/a/b"', 'before act require f under "/srv"'),
    ('before act require k = "abc" | "abd"', 'before act require k ~ "ab."'),
    ('before act require k ~ "ab."', 'before act require k != "x"'),
    (
        'before act require u under "https://a.example/x/y"',
        'before act require u under "https://*.example/x"',
    ),
    (
        'before act require u under "https://a.example/x"',
        'before act require u not under "https://b.example/x"',
    ),
)


@pytest.mark.parametrize(("policy", "question"), IMPLIED)
def test_a_weaker_statement_is_proved(policy: str, question: str) -> None:
    artifact = tcc.compile_text(f"{HEAD}{policy}\n")
    assert tcc.prove(artifact, question, timeout=10).verdict == "proved"
