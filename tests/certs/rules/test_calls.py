"""The table of calls: M301, M302."""

import pytest

from tcc_certs.kernel import check
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


def test_rejects_texts_out_of_order() -> None:
    forge = Forge(example())
    texts = forge.text("call_text")
    assert refusal(forge.put_text("call_text", texts[::-1])) == ("M301", "call_text[1]")


def test_rejects_a_text_twice() -> None:
    forge = Forge(example())
    texts = forge.text("call_text")
    texts[3] = texts[2]
    assert refusal(forge.put_text("call_text", texts)) == ("M301", "call_text[3]")


def test_rejects_a_table_of_another_length() -> None:
    forge = Forge(example())
    texts = forge.text("call_text")
    assert refusal(forge.put_text("call_text", [*texts, "z"])) == ("M301", "call_text length")


def test_rejects_a_text_that_is_no_text() -> None:
    forge = Forge(example())
    assert refusal(forge.put_text("call_text", ["a", 1, "c", "d"])) == ("M301", "call_text[1]")


def test_rejects_a_table_that_is_not_canonical_json() -> None:
    forge = Forge(example())
    raw = forge.columns["call_text"][2] + b" "
    assert refusal(forge.put_text("call_text", raw))[0] == "B102"


@pytest.mark.parametrize("at", [0, 3])
def test_rejects_a_cost_interval_upside_down(at: int) -> None:
    forge = Forge(example())
    low = forge.values("call_cost_low")[at]
    assert refusal(forge.set("call_cost_high", at, low - 1)) == ("M301", f"call_cost_high[{at}]")


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("at", [0, 3])
def test_rejects_a_weight_off_by_one(at: int, step: int) -> None:
    forge = Forge(example())
    weight = forge.values("call_weight")[at]
    assert refusal(forge.set("call_weight", at, weight + step)) == ("M302", f"call_weight[{at}]")


def test_rejects_fraction_bits_of_another_tilt() -> None:
    forge = Forge(example()).member("options", "fraction_bits", value=11)
    assert refusal(forge) == ("M302", "manifest: fraction_bits")


def test_declines_more_calls_than_the_kernel_takes() -> None:
    forge = Forge(example()).member("calls", value=(1 << 20) + 1)
    size = (1 << 20) + 1
    for name in list(forge.columns):
        if name.startswith("call_") and name != "call_text":
            forge.columns[name][1:] = [(size,), bytes(8 * size)]
    assert refusal(forge) == ("D201", "manifest: calls")


def test_declines_more_calls_than_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = len(Forge(example()).values("call_price"))
    monkeypatch.setattr("tcc_certs.call_rules.MAX_CALLS", calls)
    check(example())
    monkeypatch.setattr("tcc_certs.call_rules.MAX_CALLS", calls - 1)
    assert refusal(example()) == ("D201", "manifest: calls")
