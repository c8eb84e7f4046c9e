"""Outcomes, what is held after them, and how a session ends."""

from __future__ import annotations

import copy
import pickle
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_runtime.errors import SettingsError
from tests.gate.conftest import validated
from tests.gate.grammars import LONG, ORDERED, SHOP, artifact, bytes_of, do, gate

STEPS = """grammar g version "1"

tool t gives (r: yes | no)
tool a

plan = t(r=yes) a | t(r=no) | t(r=yes) t(r=yes) a | t(r=yes) t(r=no) | a
"""

TAKES = """grammar g version "1"

tool buy
tool look

plan = (buy | look){0,40}

limit count(buy) <= 40
"""


def test_done_goes_on_and_failed_stays() -> None:
    session = gate(ORDERED)
    with session.call("a") as permit:
        permit.failed("no connection")
    assert [found.tool for found in session.allowed()] == ["a"]
    do(session, "a")
    assert session.tools() == ("b", "c") and not session.may_finish
    assert [(one.seq, one.outcome) for one in session.history] == [(1, "failed"), (2, "done")]


def test_what_a_block_leaves_untold_is_unknown() -> None:
    session = gate(ORDERED)
    with session.call("a"):
        pass
    assert session.history[0].outcome == "unknown" and session.allowed() == ()
    found = session.check("b")
    assert (found.code, found.because) == (
        "R201", [{"kind": "plan", "text": "plan", "because": None}],
    )  # fmt: skip
    session.resolve(1, "done")
    assert session.tools() == ("b", "c")


def test_an_error_is_unknown_and_goes_on_to_the_caller() -> None:
    session = gate(ORDERED)
    with pytest.raises(KeyError), session.call("a"):
        raise KeyError("the tool broke")
    assert session.history[0].outcome == "unknown"
    session.resolve(1, "failed")
    with pytest.raises(KeyError), session.call("a") as permit:
        permit.done()
        raise KeyError("after it was told")
    assert session.tools() == ("b", "c")


def test_an_outcome_is_told_once_inside_the_block() -> None:
    session = gate(LONG)
    permit = session.call("b")
    for use in (permit.done, permit.failed, permit.unknown, lambda: permit.key, lambda: permit.seq):
        with pytest.raises(RuntimeError, match="block"):
            use()
    with permit:
        permit.done()
        with pytest.raises(RuntimeError, match="told already"):
            permit.failed()
    with pytest.raises(RuntimeError, match="left"):
        permit.done()
    with pytest.raises(RuntimeError, match="one call"), permit:
        pytest.fail("a permit is for one call")
    assert [one.outcome for one in session.history] == ["done"]


def test_observed_values_choose_the_edge() -> None:
    session = gate(STEPS)
    do(session, "t", observed={"r": "yes"})
    assert session.tools() == ("a", "t") and not session.may_finish
    do(session, "t", result={"r": "no", "more": 1})
    assert session.may_finish and session.allowed() == ()
    assert [one.observed for one in session.history] == [{"r": "yes"}, {"r": "no"}]


@pytest.mark.parametrize(
    "told", [{}, {"result": "no"}, {"observed": {"r": "maybe"}}, {"observed": {"r": None}},
             {"result": {"r": "yes"}, "observed": {}}, {"result": [("r", "yes")]}]
)  # fmt: skip
def test_an_answer_that_is_none_of_the_tool_is_any_of_them(
    told: dict[str, Any], tmp_path: Path
) -> None:
    session = gate(STEPS, ledger=tmp_path / "s.ledger")
    with session.call("t") as permit:
        permit.done(**told)
    assert permit.unforeseen and permit.outcome == "done"
    assert not session.may_finish and session.allowed() == ()
    with pytest.raises(tcc.Refused, match="R201"):  # after `no` nothing follows
        do(session, "a")
    with pytest.raises(tcc.Refused, match="R204"):
        session.finish()
    session.finish(abandon=True)
    found = validated(tmp_path / "s.ledger")
    assert (found.claim_type, found.checked["unforeseen"]) == ("ConformantPrefix", 1)


def test_after_an_unforeseen_answer_what_all_answers_allow_is_allowed(tmp_path: Path) -> None:
    text = """grammar g version "1"

tool t gives (r: yes | no)
tool a
tool b
"""
    text += "plan = t(r=yes) (a | b) | t(r=no) a\n"
    session = gate(text, ledger=tmp_path / "s.ledger")
    do(session, "t", observed={"r": "maybe"})
    assert session.tools() == ("a",)
    with pytest.raises(ValueError, match="an outcome is unknown: resolve it first"):
        session.word()
    session.close()
    session = gate(text, ledger=tmp_path / "s.ledger")
    assert session.tools() == ("a",) and session.history[0].unforeseen
    do(session, "a")
    session.finish()
    found = validated(tmp_path / "s.ledger")
    assert (found.claim_type, found.checked["unforeseen"]) == ("Conformant", 1)


def test_an_answer_without_an_edge_ends_it(tmp_path: Path) -> None:
    session = gate("""grammar g version "1"

tool t gives (r: yes | no)

plan = t(r=yes){1,2}
""")
    with session.call("t") as permit:
        permit.done(observed={"r": "no"})
    assert permit.unforeseen
    assert session.check("t").code == "R201"


def test_after_unknown_what_all_states_allow_is_allowed() -> None:
    session = gate(STEPS)
    with session.call("t"):
        pass
    # Before: a, t. After yes: a, t. After no: nothing.
    assert session.allowed() == () and not session.may_finish
    session.resolve(1, "done", {"r": "yes"})
    assert session.tools() == ("a", "t")


def test_an_unknown_call_may_have_had_an_answer_that_leads_nowhere(tmp_path: Path) -> None:
    text = """grammar g version "1"

tool t gives (r: yes | no)
tool a

plan = (t(r=yes) | a){0,5}
"""
    session = gate(text, ledger=tmp_path / "s.ledger")
    with session.call("t"):
        pass
    assert session.allowed() == () and not session.may_finish
    found = session.check("a")
    assert (found.code, found.because[0]["kind"]) == ("R201", "gate")
    session.resolve(1, "failed")
    do(session, "a")


def test_more_than_64_states_are_refused() -> None:
    plain = gate("""grammar g version "1"

tool a

plan = a{0,100}
""")
    for _ in range(63):
        with plain.call("a"):
            pass
    with pytest.raises(tcc.Refused, match="R301"):
        do(plain, "a")
    plain.resolve(7, "failed")
    do(plain, "a")


def test_only_unknown_calls_are_resolved() -> None:
    session = gate(STEPS)
    do(session, "t", observed={"r": "yes"})
    with session.call("t"), pytest.raises(ValueError, match="no unknown call 2"):
        session.resolve(2, "failed")
    for seq, outcome, observed in (
        (1, "done", {"r": "yes"}), (0, "done", None), (3, "failed", None), (2, "unknown", None),
        (2, "done", None), (2, "done", {"r": "maybe"}), (2, "failed", {"r": "yes"}),
        (True, "done", {}), ("2", "done", None),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            session.resolve(seq, outcome, observed)  # type: ignore[arg-type]
    session.resolve(2, "done", {"r": "no"})
    with pytest.raises(ValueError):
        session.resolve(2, "failed")
    assert session.may_finish


def test_a_late_answer_resolves_while_another_call_is_under_way(tmp_path: Path) -> None:
    session = gate(LONG, ledger=tmp_path / "s.ledger")
    with session.call("b"):
        pass
    with session.call("b") as permit:
        session.resolve(1, "done")
        permit.done()
    session.finish()
    assert validated(tmp_path / "s.ledger").claim_type == "Conformant"


def test_the_end(tmp_path: Path) -> None:
    session = gate(ORDERED, ledger=tmp_path / "s.ledger")
    with pytest.raises(tcc.Refused, match="R204") as refused:
        session.finish()
    assert refused.value.because == [{"kind": "plan", "text": "plan", "because": None}]
    for tool in "ac":
        do(session, tool)
    assert session.may_finish
    session.finish()
    assert not session.may_finish and session.tools() == ()
    for attempt in (session.finish, lambda: do(session, "a"), lambda: session.resolve(1, "done")):
        with pytest.raises(tcc.Refused, match="R303"):
            attempt()
    assert session.check("a").code == "R303"
    found = validated(tmp_path / "s.ledger")
    assert (found.word, found.claim_type) == ("VALID", "Conformant")
    assert found.head == session.head


def test_an_id_is_one_call(tmp_path: Path) -> None:
    session = gate(LONG, ledger=tmp_path / "s.ledger")
    with session.call("b", ref="call-1") as permit:
        permit.done({"sent": True})
    with pytest.raises(tcc.AlreadyDone) as again, session.call("a", {"x": 1}, ref="call-1"):
        pytest.fail("it is not made again")
    assert (again.value.code, again.value.seq, again.value.outcome) == ("R304", 1, "done")
    session.close()
    taken = gate(LONG, ledger=tmp_path / "s.ledger")
    with pytest.raises(tcc.AlreadyDone), taken.call("b", ref="call-1"):
        pytest.fail("it is not made again")
    for ref in ("\ud800", 7, b"call-2"):
        with pytest.raises(tcc.Refused, match="R106: b: ref"), taken.call("b", ref=ref):  # type: ignore[arg-type]
            pytest.fail("no id")
    assert "call-1" not in (tmp_path / "s.ledger").read_text()


def _keys_of_three_calls(**settings: Any) -> list[str]:
    session = gate(LONG, key=bytes(32), clock=lambda: 7, **settings)
    keys = []
    for _ in range(3):
        with session.call("b") as permit:
            keys.append(permit.key)
            permit.done()
    return keys


def test_keys_differ_by_call_and_by_session_of_one_key_and_millisecond() -> None:
    keys = [key for _ in range(50) for key in _keys_of_three_calls()]
    assert len(set(keys)) == 150 and all(len(key) == 32 for key in keys)
    assert _keys_of_three_calls(nonce=bytes(16)) == _keys_of_three_calls(nonce=bytes(16))


@pytest.mark.parametrize("nonce", [b"", bytes(15), bytes(17), "00" * 16, 5])
def test_a_nonce_is_sixteen_bytes(nonce: Any) -> None:
    with pytest.raises(SettingsError, match="nonce"):
        gate(LONG, nonce=nonce)


def test_equal_sessions_have_equal_bytes(tmp_path: Path) -> None:
    ledgers = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.ledger"
        ticks = iter(range(1000, 2000, 7))
        session = gate(
            SHOP, ledger=path, key=bytes(range(32)), clock=ticks.__next__, nonce=bytes(16)
        )
        do(session, "take", {"n": 3, "at": 0.25, "flag": True}, result={"ok": [1, 2.5]})
        with pytest.raises(tcc.Refused):
            do(session, "merge")
        session.finish()
        ledgers.append(path.read_bytes())
        assert not path.with_name(f"{name}.ledger.key").exists()
    assert ledgers[0] == ledgers[1]


def test_remaining_counts_what_may_have_been_taken() -> None:
    text = """grammar g version "1"

tool a(x: 1 | 2) { price 3 cost 0.5 * x latency 20 ms epsilon 0.1 }
tool t gives (r: yes | no) { price 1 price 7 when r = no }

plan = (a | t){0,9}

limit depth <= 8
limit price <= 20
limit cost <= 4
limit epsilon <= 0.35
limit latency <= 100 ms
limit count(a(x = 2)) <= 2
limit sum(a.x) <= 5
"""
    session = gate(text)
    names = list(session.remaining)
    assert names == [line for line in text.splitlines() if line.startswith("limit")]
    assert list(session.remaining.values()) == [8, 20, 4, Decimal("0.35"), 100, 2, 5]
    do(session, "a", {"x": 2})
    with session.call("t"):
        pass
    with session.call("a", {"x": 1}) as permit:
        permit.failed()
    assert list(session.remaining.values()) == [6, 10, 3, Decimal("0.25"), 80, 1, 3]
    session.resolve(2, "done", {"r": "yes"})
    assert session.remaining["limit price <= 20"] == 16


def test_a_plan_goes_on_from_where_the_session_is() -> None:
    session = gate(ORDERED)
    do(session, "a")
    run = session.plan(seed=bytes(32), top=2)
    assert run.claim_type == "RunWiseExact"
    assert sorted(plan.calls for plan in run.plans) == [("b", "c"), ("c",)]
    with session.call("b"):
        pass
    with pytest.raises(ValueError, match="resolve"):
        session.plan()


def test_a_gate_is_neither_copied_nor_sent() -> None:
    session = gate(ORDERED)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            attempt(session)


def test_refusals_travel_between_processes() -> None:
    session = gate(ORDERED)
    with pytest.raises(tcc.Refused) as refused:
        do(session, "b")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.code, str(again)) == (refused.value.code, str(refused.value))
    assert again.because == refused.value.because and again.allowed_next == session.allowed()
    with session.call("a", ref="x") as permit:
        permit.done()
    with pytest.raises(tcc.AlreadyDone) as done, session.call("a", ref="x"):
        pytest.fail("never")
    known = pickle.loads(pickle.dumps(done.value))
    assert (known.seq, known.outcome) == (1, "done")


def test_what_no_kernel_has_passed_is_not_held_to() -> None:
    data = bytes_of(artifact(ORDERED))
    with pytest.raises(SettingsError, match="artifact"):
        tcc.Gate(tcc.load(data, verify=False))


def test_settings_of_a_gate(tmp_path: Path) -> None:
    for wrong in ({"key": b"short"}, {"key": "k" * 32}, {"show": ["refund.part"]}, {"show": ["x"]}):
        with pytest.raises(SettingsError):
            gate(SHOP, **wrong)
    with pytest.raises(SettingsError, match="clock"):
        gate(SHOP, clock=lambda: -1)
    path = tmp_path / "a.tcca"
    tcc.save(artifact(ORDERED), path)
    opened = tcc.Gate(path, checked=artifact(ORDERED).digest.hex())
    assert opened.tools() == ("a",)
    assert tcc.Gate(str(path)).artifact.digest == artifact(ORDERED).digest


def test_statements_that_are_left_to_the_run_are_held() -> None:
    text = ORDERED.replace("plan = a b c | a c", "plan = any{0,4}") + "before c require a\n"
    relaxed = tcc.compile_text(text, relax=["require"])
    assert relaxed.relaxed == (0,)
    session = tcc.Gate(relaxed)
    found = session.check("c")
    assert (found.code, found.because) == (
        "R202",
        [
            {
                "kind": "require",
                "text": "before c require a",
                "because": None,
                "relation": "a",
                "remedy": "a",
            }
        ],
    )
    do(session, "a")
    assert session.check("c").allowed


@pytest.mark.parametrize("seed", range(4))
def test_what_limits_leave_is_the_same_whenever_it_is_asked(seed: int) -> None:
    """A gate that is asked after each step, one that is asked at the end, and a sum over calls."""
    rng = random.Random(seed)
    often, once = gate(TAKES), gate(TAKES)
    outcomes: list[str] = []
    for _ in range(12):
        unknown = [at for at, outcome in enumerate(outcomes) if outcome == "unknown"]
        if unknown and rng.random() < 0.4:
            at, told = rng.choice(unknown), rng.choice(["done", "failed"])
            for one in (often, once):
                one.resolve(at + 1, told)  # type: ignore[arg-type]
            outcomes[at] = told
        else:
            outcomes.append(rng.choice(["done", "failed", "unknown"]))
            for one in (often, once):
                with one.call("buy") as permit:
                    getattr(permit, outcomes[-1])()
        left = 40 - sum(outcome != "failed" for outcome in outcomes)
        assert often.remaining == {"limit count(buy) <= 40": left}
    assert once.remaining == often.remaining
