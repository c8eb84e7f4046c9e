"""C8: C801 (more of it in test_core), C802, and M303."""

import pytest

from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example

AMOUNTS = ["call_price", "call_latency_ms", "call_epsilon"]


@pytest.mark.parametrize("member", ["name", "version"])
def test_rejects_another_grammar(member: str) -> None:
    forge = Forge(example()).member("grammar", member, value="other")
    assert refusal(forge) == ("C802", f"manifest.grammar.{member}")


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("column", AMOUNTS)
def test_rejects_an_amount_that_is_not_the_cores(column: str, at: int) -> None:
    forge = Forge(example())
    value = forge.values(column)[at]
    assert refusal(forge.set(column, at, value + 1)) == ("C802", f"{column}[{at}]")


@pytest.mark.parametrize(("place", "column"), [(2, "low"), (3, "high")])
def test_rejects_a_core_with_other_costs(place: int, column: str) -> None:
    forge = Forge(example())
    core = forge.text("core")
    core["calls"][0][place] += 1 if column == "high" else -1
    assert refusal(forge.put_text("core", core)) == ("C802", f"call_cost_{column}[0]")


def test_rejects_tools_that_are_not_the_cores() -> None:
    forge = Forge(example())
    tools = forge.text("tools")
    tools[0]["doc"] = "does something else"
    assert refusal(forge.put_text("tools", tools)) == ("M303", "tools")


def test_rejects_a_tool_left_out() -> None:
    forge = Forge(example())
    assert refusal(forge.put_text("tools", forge.text("tools")[1:])) == ("M303", "tools")


def test_rejects_a_core_that_breaks_its_schema() -> None:
    forge = Forge(example())
    core = forge.text("core")
    core["extra"] = 1
    assert refusal(forge.put_text("core", core)) == ("C801", "core")


def test_rejects_a_call_that_the_core_does_not_have() -> None:
    forge = Forge(example())
    core = forge.text("core")
    core["tools"][2]["name"] = "d"
    assert refusal(forge.put_text("core", core)) == ("C802", "call_text[3]")
