"""What a ledger says of privacy is what its atoms come to, and never more: each field has its code.

The account is made again here from the records, with nothing of the replay's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.atoms import Exact
from tcc_certs.privacy.accountant import epsilon_text, stated, total_of
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import AnswerError, SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pricing.quotes import Answer, Question
from tcc_runtime.resume import resume
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.forgery.test_range_forgeries import (
    GAUSSIAN,
    LAPLACE,
    RESPONSE,
    SEED,
    STARTED,
    Records,
    honest,
    ranges,
)
from tests.oracle.cores import depth, letters, make_core
from tests.oracle_ledger.writer import chained, with_run_id
from tests.runtime.graphs import build

PRIVATE = ("router_rdp_eps", "alpha_selected", "eps_delta")


def probed(question: Question) -> Answer | None:
    """Nothing by the model that is free; else a cost, exactly."""
    if question.model == "guess":
        return None
    return Answer(low=question.high, high=question.high, latency_ms=1)


def written(told: dict[str, Any], atoms: bool = True, quoter: Any = None) -> tuple[Any, Records]:
    data, checked = ranges(atoms=atoms)
    return checked, honest(data, {"seed": SEED, **told}, quoter or probed)


def code_of(checked: Any, records: Records) -> str:
    sealed = [with_run_id(records[0]), *records[1:]]
    found = validate(chained(sealed), checked)
    return "" if found.verdict == 0 else found.findings[0].code.value


def at(records: Records, kind: str, field: str) -> int:
    return next(i for i, r in enumerate(records) if r["kind"] == kind and field in r)


def changed(records: Records, number: int, **fields: Any) -> Records:
    kept = {name: value for name, value in fields.items() if value is not None}
    gone = {name for name, value in fields.items() if value is None}
    record = {name: value for name, value in records[number].items() if name not in gone}
    return [*records[:number], {**record, **kept}, *records[number + 1 :]]


def test_every_sum_is_that_of_the_atoms_before_it() -> None:
    def asked(question: Question) -> Answer | None:
        if question.model == "guess":
            return Answer(low=question.low, high=question.high - 1, latency_ms=9)
        return Answer(low=question.low, high=question.low, latency_ms=1, epsilon=0)

    told = {"top": 9, "delta": "0.000001", "atoms": atoms_of([RESPONSE])}
    checked, records = written(told, quoter=asked)
    assert code_of(checked, records) == ""
    listed = list(records[0]["atoms"])
    refined = [r for r in records if r["kind"] == "refine"]
    assert sum("atom" in r for r in refined) > 1
    for record in [*refined, records[-1]]:
        listed += [record["atom"]] if "atom" in record else []
        due = stated(total_of(atoms_of(listed)), Exact(1, 6))
        assert record["eps_delta"] == {"delta": "0.000001", "eps": epsilon_text(due.epsilon)}
        assert record["alpha_selected"] == due.alpha
        assert record["router_rdp_eps"] == epsilon_text(due.rdp)


@pytest.mark.parametrize("kind", ["budget", "refine", "close"])
@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("router_rdp_eps", "0.0000000001", "L705"),
        ("alpha_selected", "1.5", "L706"),
        ("eps_delta", {"delta": "0.00001", "eps": "0.0000000001"}, "L707"),
        ("eps_delta", {"delta": "0.1", "eps": "0.0000000001"}, "L707"),
        ("router_rdp_eps", None, "L103"),
        ("alpha_selected", None, "L103"),
        ("eps_delta", None, "L103"),
        ("router_rdp_eps", "0.5", "L103"),
        ("alpha_selected", "Pure", "L103"),
        ("eps_delta", {"eps": "0.0000000001"}, "L103"),
        ("eps_delta", {"delta": "0.00001", "eps": "-0.0000000001"}, "L103"),
    ],
)
def test_a_forged_statement_has_its_code(kind: str, field: str, value: Any, code: str) -> None:
    checked, records = written({"top": 3})
    forged = changed(records, at(records, kind, field), **{field: value})
    assert code_of(checked, forged) == code


def test_an_atom_that_is_hidden_or_made_up_is_refused() -> None:
    checked, records = written({"top": 3})
    number = at(records, "refine", "atom")
    assert code_of(checked, changed(records, number, atom=None)) == "L708"
    # A weaker one is another answer, and then its sums are not those that stand there.
    weaker = changed(records, number, atom={**LAPLACE, "scale": "1000"})
    assert code_of(checked, weaker) in {"L704", "L705", "L706", "L707"}
    for wrong in ({**LAPLACE, "scale": "8.0"}, {**LAPLACE, "scale": "0"}, {"mechanism": "x"}):
        assert code_of(checked, changed(records, number, atom=wrong)) == "L103"
    plain, others = written({"top": 2}, atoms=False)
    number = at(others, "refine", "epsilon")
    assert code_of(plain, changed(others, number, atom=LAPLACE)) == "L708"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"delta": None}, "L201"),
        ({"delta": "0"}, "L201"),
        ({"delta": "1"}, "L201"),
        ({"delta": "1.5"}, "L201"),
        ({"delta": "0.10"}, "L103"),
        ({"delta": 1}, "L103"),
        ({"atoms": []}, "L103"),
        ({"atoms": {}}, "L103"),
        ({"atoms": [{"mechanism": "laplace"}]}, "L103"),
        ({"atoms": [{**RESPONSE, "probability": "1.5"}]}, "L103"),
        ({"atoms": [{**RESPONSE, "times": 1}]}, "L103"),
        ({"privacy_scope": "all_is_private"}, "D101"),
    ],
)
def test_a_header_that_no_run_has_is_refused(fields: dict[str, Any], code: str) -> None:
    checked, records = written({"top": 2, "atoms": atoms_of([RESPONSE])})
    assert code_of(checked, changed(records, 0, **fields)) == code


def test_atoms_of_the_input_cannot_be_left_out_or_weakened() -> None:
    checked, records = written({"top": 2, "atoms": atoms_of([RESPONSE, LAPLACE])})
    fewer = code_of(checked, changed(records, 0, atoms=[RESPONSE]))
    assert fewer in {"L704", "L705", "L706", "L707"}
    assert code_of(checked, changed(records, 0, delta="0.01")) in {"L704", "L706", "L707"}


def test_a_run_over_points_states_the_atoms_of_its_input() -> None:
    checked, data, records = points_run({"atoms": atoms_of([GAUSSIAN]), "delta": "0.001"})
    assert "delta" not in points_run({})[2][0]
    due = stated(total_of(atoms_of([GAUSSIAN])), Exact(1, 3))
    close = records[-1]
    assert close["eps_delta"] == {"delta": "0.001", "eps": epsilon_text(due.epsilon)}
    assert "epsilon_used" not in close
    assert validate(data, checked).verdict == 0
    forged = changed(records, len(records) - 1, eps_delta={"delta": "0.001", "eps": "0.0000000000"})
    assert code_of(checked, forged) == "L707"
    gone = changed(changed(records, 0, atoms=None), len(records) - 1, **dict.fromkeys(PRIVATE))
    assert code_of(checked, gone) == "L201"


def points_run(told: dict[str, Any]) -> tuple[Any, bytes, Records]:
    artifact, data = points_artifact()
    sink = MemorySink()
    search(load(data), Settings(seed=SEED, **told), Recorder(sink, started_ms=STARTED))
    records = [json.loads(line) for line in sink.data.splitlines()]
    return artifact, bytes(sink.data), [{k: v for k, v in r.items() if k != "~"} for r in records]


def points_artifact() -> tuple[Any, bytes]:
    parts = letters(2, cost=[10**8, 2 * 10**8])
    core = make_core(**parts, plan=["repeat", ["call", {0, 1}], 0, 2], statements=[depth(2)])
    rows = [(True, []), (True, [(0, 0), (1, 0)]), (True, [(0, 1), (1, 1)])]
    data = build(core, rows, tilt=8)
    return check(data), data


def test_a_run_that_depends_on_raw_input_claims_nothing_and_states_nothing() -> None:
    checked, records = written({"top": 2, "raw_input_dependent": True})
    assert code_of(checked, records) == ""
    assert records[0]["privacy_scope"] == "raw_input_dependent"
    assert (records[0]["claim_type"], records[-1]["claim_type"]) == ("NoCert", "NoCert")
    assert not any(name in record for record in records for name in PRIVATE)
    assert code_of(checked, changed(records, 0, claim_type="RunWiseExact")) == "L609"
    # One that says no more that it does would have had to state what it took.
    assert code_of(checked, changed(records, 0, privacy_scope="post_processing_only")) == "L103"
    assert code_of(checked, changed(records, 0, atoms=[LAPLACE])) == "L201"
    said = {"eps_delta": {"delta": "0.00001", "eps": "0.1000000000"}}
    assert code_of(checked, changed(records, len(records) - 1, **said)) == "L103"


def test_a_whole_ledger_that_claims_though_it_depends_on_raw_input_is_refused() -> None:
    checked, records = written({"top": 2}, atoms=False)
    assert records[0]["claim_type"] == "RunWiseExact"
    assert code_of(checked, changed(records, 0, privacy_scope="raw_input_dependent")) == "L609"


def test_the_cap_is_held_against_the_converted_epsilon_not_a_sum() -> None:
    # The probe is the cheaper one: it takes Laplace noise of scale 8 and an epsilon of 0.01.
    cheap = {"top": 9, "price_weight": "1000", "epsilon_weight": "0"}
    _, free = written(cheap)
    spent = [r for r in free if r["kind"] == "refine" and "atom" in r]
    assert all(r["atom"] == LAPLACE for r in spent)
    total = free[-1]["eps_delta"]["eps"]
    pure = len(spent) * 0.135
    assert float(total) < pure
    assert free[-1]["alpha_selected"] != "pure"
    between = f"{(float(total) + pure) / 2:.4f}".rstrip("0")
    checked, capped = written({**cheap, "epsilon_cap": between})
    assert not any("BudgetFail" in r.get("guards", ()) for r in capped)
    assert code_of(checked, capped) == ""
    low = f"{float(total) / 2:.4f}".rstrip("0")
    checked, cut = written({**cheap, "epsilon_cap": low})
    assert any("BudgetFail" in r.get("guards", ()) for r in cut)
    assert float(cut[-1]["epsilon_used"]) <= float(low)
    assert code_of(checked, cut) == ""


_LAPLACE = atoms_of([LAPLACE])[0]


def test_input_that_has_taken_more_than_the_cap_leaves_nothing_to_ask_with() -> None:
    checked, records = written({"top": 2, "epsilon_cap": "0.5", "atoms": atoms_of([RESPONSE])})
    events = [r["budget_event"] for r in records if r["kind"] == "budget"]
    assert events == ["exhausted"]
    assert code_of(checked, records) == ""


def test_an_answer_may_name_an_atom_only_where_one_is_counted() -> None:
    def asked(question: Question) -> Answer:
        return Answer(low=question.low, high=question.low, atom=_LAPLACE)

    with pytest.raises(AnswerError):
        written({"top": 2}, atoms=False, quoter=asked)
    _, records = written({"top": 2, "delta": "0.01"}, atoms=False, quoter=asked)
    assert records[-1]["eps_delta"]["delta"] == "0.01"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"delta": "0"}, "delta"),
        ({"delta": "1"}, "delta"),
        ({"delta": "1.1"}, "delta"),
        ({"delta": "1e-5"}, "delta"),
        ({"raw_input_dependent": 1}, "raw_input_dependent"),
        ({"raw_input_dependent": True, "atoms": (_LAPLACE,)}, "atoms"),
    ],
)
def test_settings_that_go_together_with_nothing_are_refused(
    told: dict[str, Any], field: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        written(told)
    assert refused.value.field == field


def test_a_delta_without_anything_to_count_is_refused() -> None:
    with pytest.raises(SettingsError) as refused:
        points_run({"delta": "0.1"})
    assert refused.value.field == "delta"


def test_runs_without_atoms_have_none_of_these_fields() -> None:
    new = {"atoms", "delta", "atom", *PRIVATE}
    for atoms, told in ((False, {"top": 3}), (False, {"epsilon_cap": "1"})):
        _, records = written(told, atoms=atoms)
        assert not any(new & record.keys() for record in records)


def test_a_run_with_atoms_is_resumed(tmp_path: Any) -> None:
    data, checked = ranges(atoms=True)
    told = {"top": 9, "delta": "0.0001", "atoms": atoms_of([RESPONSE]), "epsilon_cap": "9"}
    path = tmp_path / "run.ledger"
    records = honest(data, {"seed": SEED, **told}, probed)
    whole = chained(records)
    assert validate(whole, checked).verdict == 0
    for lines in (1, 8, 14, len(records) - 1):
        path.write_bytes(b"".join(whole.splitlines(keepends=True)[:lines]))
        resume(load(data), path, SEED, quoter=probed)
        again = path.read_bytes()
        assert validate(again, checked).verdict == 0
        assert again.count(b'"atom":') == whole.count(b'"atom":') > 1


def test_a_fallback_over_points_states_its_atoms_too() -> None:
    checked, data, records = points_run({"mode": "fallback", "atoms": atoms_of([LAPLACE])})
    assert records[-1]["eps_delta"]["delta"] == "0.00001"
    assert validate(data, checked).verdict == 0


def test_a_ledger_names_the_rule_that_its_atoms_are_added_up_by() -> None:
    checked, records = written({"top": 3, "atoms": atoms_of([GAUSSIAN])})
    assert records[0]["accounting"] == "pld"
    assert code_of(checked, records) == ""
    assert code_of(checked, changed(records, 0, accounting=None)) == "L201"
    assert code_of(checked, changed(records, 0, accounting="renyi")) == "D101"
    assert code_of(checked, changed(records, 0, accounting=1)) == "L103"
    plain, others = written({"top": 2}, atoms=False)
    assert "accounting" not in others[0]
    assert code_of(plain, changed(others, 0, accounting="pld")) == "L201"


def test_a_ledger_of_two_relations_of_neighbours_is_refused() -> None:
    sampled = {"mechanism": "subsampled_gaussian", "rate": "0.1", "sigma": "2", "sensitivity": "1"}
    checked, _, records = points_run({"atoms": atoms_of([sampled])})
    assert code_of(checked, records) == ""
    assert code_of(checked, changed(records, 0, atoms=[sampled, LAPLACE])) == "E104"
    with pytest.raises(Rejected) as refused:
        points_run({"atoms": atoms_of([sampled, LAPLACE])})
    assert refused.value.code.value == "E104"
    # Models that may be asked are looked at before anybody is.
    with pytest.raises(Rejected) as refused:
        written({"top": 2, "atoms": atoms_of([sampled])})
    assert refused.value.code.value == "E104"
