"""The temporal policies that AWS published for Amazon Bedrock AgentCore, asked as policies.

Source: "Banking Assistant: Temporal Policies Sample" in awslabs/amazon-bedrock-agentcore-samples.
Each statement is asked whether the others imply it, and whether the calls that it speaks of can
happen.  A statement that is implied has no use, and calls that cannot happen are a contradiction.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc.library.proving import gate_of
from tcc_certs.policy.nodes import Total, statement_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tcc_runtime.analysis.twins import differing
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.exact.values import Session, SessionCall

DATA = Path(__file__).parents[1] / "data" / "policies"
NAMES = ("agentcore_banking", "agentcore_portfolio")
RATE = "limit count(transfer_funds within 5 m) <= 5 in session"


@cache
def policy(name: str) -> Artifact:
    return library.compile_file(DATA / f"{name}.tcg")


@cache
def without(name: str, text: str) -> Artifact:
    """The policy without one of its statements."""
    core = policy(name).core
    left = tuple([one for one in core.statements if statement_text(one) != text])
    assert len(left) == len(core.statements) - 1
    made = compile_core(replace(core, statements=left), Options())
    assert made.artifact is not None
    return load(made.artifact, checked=made.checked)


STATEMENTS = [
    (name, statement_text(one))
    for name in NAMES
    for one in policy(name).core.statements
    if not isinstance(one, Total)
]


def test_the_sample_has_seventeen_statements() -> None:
    assert len(STATEMENTS) == 17


@pytest.mark.parametrize(("name", "text"), [one for one in STATEMENTS if one[1] != RATE])
def test_no_statement_is_implied_by_the_others(name: str, text: str) -> None:
    found = library.prove(without(name, text), text, timeout=60)
    assert found.verdict == "refuted"


def test_the_rate_limit_is_not_implied_by_the_daily_total() -> None:
    # Six transfers of 1 stay below the total.  The engine leaves this question open.
    name = "agentcore_banking"
    found = differing(policy(name), without(name, RATE), about=policy(name).core.statements[4:5])
    assert found is not None
    session, is_allowed = found
    refusal = gate_of(policy(name))(session)
    assert refusal is not None and RATE in refusal.text and not is_allowed
    assert gate_of(without(name, RATE))(session) is None


@pytest.mark.parametrize(
    ("name", "calls", "verdict"),
    [
        *[(name, tool.name, "reachable") for name in NAMES for tool in policy(name).core.tools],
        ("agentcore_banking", "transfer_funds(amount > 10000)", "reachable"),
        ("agentcore_banking", "transfer_funds(amount = 59999)", "reachable"),
        ("agentcore_banking", "transfer_funds(amount >= 60000)", "unreachable"),
        ("agentcore_portfolio", "execute_trade(cost > 25000)", "reachable"),
        ("agentcore_portfolio", "execute_trade(action = SELL, cost < 0)", "reachable"),
    ],
)  # fmt: skip
def test_which_calls_can_happen(name: str, calls: str, verdict: str) -> None:
    assert library.prove(policy(name), reachable=calls, timeout=60).verdict == verdict


def test_a_sale_makes_room_for_a_purchase_above_the_cap() -> None:
    # Sales have negative costs, and the cap adds up all costs of 24 hours.
    def call(tool: str, answer: Any, **arguments: Any) -> SessionCall:
        return SessionCall(tool=tool, arguments=arguments, outcome="done", answer=answer, at_ms=1)

    def trade(action: str, cost: int) -> SessionCall:
        asked = {"action": action, "portfolio_id": "p", "symbol": "s", "shares": 1, "cost": cost}
        return call("execute_trade", None, **asked)

    prepared = (
        call("get_client_profile", {"portfolioIds": ["p"]}, client_id="c"),
        call("get_market_price", None, symbol="s"),
        call("approve_trade", None, trade_request_id="t", approved_by="a"),
    )
    replay = gate_of(policy("agentcore_portfolio"))
    refusal = replay(Session(given={}, calls=(*prepared, trade("BUY", 60001))))
    assert refusal is not None and "sum(execute_trade.cost within 24 h) < 60000" in refusal.text
    sold = (*prepared[:2], trade("SELL", -1000), prepared[2], trade("BUY", 60001))
    assert replay(Session(given={}, calls=sold)) is None


@pytest.mark.parametrize(
    ("name", "statement", "verdict"),
    [
        ("agentcore_banking", "before transfer_funds require get_account_balance", "proved"),
        # The look-up names the account in its answer, which may be another one.
        ("agentcore_banking",
         "before transfer_funds require get_account_balance(account_id = this.to_account)",
         "refuted"),
        # Nothing says which transfer a person approved, or whose price was read.
        ("agentcore_banking",
         "before transfer_funds(amount > 10000) require approve_transfer(notes = this.memo)",
         "refuted"),
        ("agentcore_portfolio", "before execute_trade require get_market_price(same symbol)",
         "refuted"),
        ("agentcore_portfolio", "before execute_trade require get_market_price within 1 m",
         "proved"),
        ("agentcore_portfolio", "before rebalance_portfolio require get_client_profile", "proved"),
        ("agentcore_portfolio",
         "before rebalance_portfolio require get_client_profile within 10 m", "proved"),
    ],
)  # fmt: skip
def test_what_an_owner_would_ask(name: str, statement: str, verdict: str) -> None:
    assert library.prove(policy(name), statement, timeout=60).verdict == verdict


def test_the_status_of_an_approval_is_no_argument_of_its_tool() -> None:
    # The published approval gate matches `input.status`, so no large trade is ever permitted.
    text = (DATA / "agentcore_portfolio.tcg").read_text("utf-8")
    changed = text.replace("approve_trade since", 'approve_trade(status = "approved") since')
    with pytest.raises(library.CompileError) as caught:
        library.compile_text(changed)
    assert [one.code for one in caught.value.diagnostics] == ["TCC202"]
