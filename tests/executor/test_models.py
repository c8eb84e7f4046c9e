"""Plans done by models: real functions, a real server, budgets that searches and calls share."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_certs.errors import Rejected
from tcc_runtime.adapters.registry import folder_id
from tcc_runtime.errors import BindingError, ResumeError, SettingsError
from tcc_runtime.pricing.quotes import Answer, Question, point
from tests.forking import launcher
from tests.oracle_session.writer import KEY
from tests.runtime.adapters import entry, folder, registry

SERVER = Path(__file__).with_name("model_server.py")
HEAD = 'grammar desk version "1"\n'
DESK = HEAD + (
    "tool find(by: email | phone) { cost 0.1 }\n"
    "tool answer {\n"
    "  model fast { price 1 latency 50 ms execute { price 2 latency 300 ms } }\n"
    "  model deep { price 9 latency 100 ms execute }\n"
    "}\n"
    "plan = find answer{3} find\n"
)
RANGED = HEAD + (
    "tool read { cost 0.2 .. 0.9 quotes same\n"
    "  model probe { price 4 latency 5 ms execute { price 3 } } }\n"
    "plan = read{2}\n"
)


def artifact(text: str, tmp_path: Path) -> Any:
    found = library.compile_text(text)
    library.save(found, tmp_path / "a.tcca")
    return found


def opened(found: Any, path: Path) -> library.Gate:
    now = iter(range(1000, 10**6, 7))
    told = {"ledger": path, "durable": False, "key": KEY, "nonce": bytes(16)}
    return library.Gate(found, clock=lambda: next(now), **told)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Tools:
    """A tool that fails under a model that is told to, and notes who made its calls."""

    def __init__(self, *fail: str, took: library.Took | None = None) -> None:
        self.fail, self.took, self.by = fail, took, list[str]()

    def answer(self, model: str) -> Any:
        self.by.append(model)
        if model in self.fail:
            raise library.Failed(model)
        return {"by": model} if self.took is None else self.took

    def all(self) -> dict[str, Any]:
        return {"find": lambda by: None, "answer": self.answer}

    def read(self) -> dict[str, Any]:
        return {"read": self.answer}


def test_the_cheapest_model_that_fits_makes_each_call(tmp_path: Path) -> None:
    made, path, tools = artifact(DESK, tmp_path), tmp_path / "s", Tools()
    found = library.execute(None, tools.all(), gate=opened(made, path), price_cap=20)
    assert (found.stop, tools.by) == ("finished", ["fast"] * 3)
    assert [one.model for one in found.calls] == ["", "fast", "fast", "fast", ""]
    assert found.spent is not None and found.spent.price == 6 and found.left == {"price": "14"}
    told = library.validate(path, tmp_path / "a.tcca")
    assert told.claim_type == "Conformant"
    assert "the named models made 3 calls, which took the stated amounts" in told.asserted


def test_a_model_whose_calls_fail_sinks_and_the_next_one_is_tried(tmp_path: Path) -> None:
    made, path, tools = artifact(DESK, tmp_path), tmp_path / "s", Tools("fast")
    found = library.execute(None, tools.all(), gate=opened(made, path), retries=20)
    assert found.stop == "finished"
    # 1 / 2.36 a gain at first; a failure halves it, then thirds it: below 1 / 9.12 at last.
    assert tools.by == ["fast"] * 4 + ["deep"] * 3
    assert library.validate(path, tmp_path / "a.tcca").claim_type == "Conformant"


def test_a_budget_that_runs_out_in_the_middle_ends_it_there(tmp_path: Path) -> None:
    made, path, tools = artifact(DESK, tmp_path), tmp_path / "s", Tools()
    found = library.execute(None, tools.all(), gate=opened(made, path), price_cap=5)
    assert (found.stop, tools.by) == ("budget", ["fast", "fast"])
    assert found.reason == "R205: no model that may make it fits what is left: answer"
    assert records(path)[-1] == {**records(path)[-1], "code": "R205", "tool": "answer"}
    again = library.execute(None, tools.all(), gate=opened(made, path), price_cap=5)
    assert (again.stop, tools.by) == ("budget", ["fast", "fast"])
    with pytest.raises(ResumeError, match="budget"):
        library.execute(None, tools.all(), gate=opened(made, path), price_cap=50)
    told = library.validate(path, tmp_path / "a.tcca")
    assert (told.word, told.claim_type) == ("INCOMPLETE", "ConformantPrefix")


def test_what_a_tool_says_that_it_took_counts(tmp_path: Path) -> None:
    made, path = artifact(DESK, tmp_path), tmp_path / "s"
    tools = Tools(took=library.Took({"by": "x"}, price=10, latency_ms=1))
    found = library.execute(None, tools.all(), gate=opened(made, path), price_cap=20)
    assert (found.stop, found.spent.price, found.spent.latency) == ("budget", 20, 2)
    assert found.results[2] == {"by": "x"}
    assert library.validate(path, tmp_path / "a.tcca").word == "INCOMPLETE"


def test_what_searches_ask_is_gone_for_the_calls(tmp_path: Path) -> None:
    made, path, tools = artifact(RANGED, tmp_path), tmp_path / "s", Tools()
    asked: list[Question] = []

    def quoter(question: Question) -> Answer:
        asked.append(question)
        return point("0.5")

    run = tmp_path / "s"
    found = library.execute(None, tools.read(), gate=opened(made, run), quoter=quoter, price_cap=12)
    assert (found.stop, len(asked), tools.by) == ("budget", 2, ["probe"])  # 2 * 4 + 3, and 3 more
    said = next(record for record in records(path) if record["kind"] == "asked")
    assert (said["price"], said["left"]) == ("8", {"price": "4"})
    told = library.validate(path, tmp_path / "a.tcca")
    assert told.word == "INCOMPLETE" and "the stated amounts of 1 searches" in told.asserted


def test_what_the_run_before_it_asked_counts_once(tmp_path: Path) -> None:
    made, path, tools = artifact(RANGED, tmp_path), tmp_path / "s", Tools()
    run = library.search(made, seed=bytes(32), quoter=lambda _: point("0.5"))
    for _ in range(2):
        found = library.execute(run, tools.read(), gate=opened(made, path), price_cap=11)
        assert (found.stop, tools.by, found.left) == ("budget", ["probe"], {"price": "0"})
    assert [record["price"] for record in records(path) if record["kind"] == "asked"] == ["8"]


def test_a_plan_from_a_gate_counts_too(tmp_path: Path) -> None:
    made = artifact(RANGED, tmp_path)
    gate = opened(made, tmp_path / "s")
    gate.budget(price_cap=11)
    with pytest.raises(SettingsError, match="price_cap: expected that of the budget, 11, found 5"):
        gate.plan(price_cap=5)
    run = gate.plan(seed=bytes(32), quoter=lambda _: point("0.5"))
    assert run.claim_type == "RunWiseExact" and gate.budget_left == {"price": "3"}
    # There is no model left that fits: the search says so, and claims nothing.
    assert "BudgetFail" in gate.plan(seed=bytes(32), quoter=lambda _: point("0.5")).guards
    assert gate.budget_left == {"price": "3"}


def test_functions_have_to_take_the_model(tmp_path: Path) -> None:
    made = artifact(DESK, tmp_path)
    for function in (lambda: None, lambda **given: None):
        gate = library.Gate(made)
        with pytest.raises(BindingError, match="needs a parameter 'model'"):
            library.execute(None, {**Tools().all(), "answer": function}, gate=gate)
        assert gate.history == ()
    own = library.compile_text(HEAD + "tool a(model: x | y) { model m { execute } }\nplan = a")
    with pytest.raises(BindingError, match="a parameter of its own called 'model'"):
        library.execute(None, {"a": lambda model: None}, gate=library.Gate(own))


def test_limits_of_nothing_are_refused() -> None:
    plain = library.compile_text(HEAD + "tool a\nplan = a")
    for told in ({"price_cap": 1}, {"delta": "0.1"}, {"margin": "0.5"}):
        with pytest.raises(SettingsError, match="no cost is a range and no model makes calls"):
            library.execute(None, {"a": lambda: None}, gate=library.Gate(plain), **told)


def test_a_call_of_a_model_is_not_made_again(tmp_path: Path) -> None:
    made, path = artifact(DESK, tmp_path), tmp_path / "s"

    def answer(model: str, idempotency_key: str) -> None:
        raise OSError("the line is dead")

    told = {"find": lambda by: None, "answer": answer}
    found = library.execute(None, told, gate=opened(made, path))
    assert found.stop == "unknown" and found.reason.endswith("another call is not reserved")
    assert [record["kind"] for record in records(path)][-2:] == ["call", "outcome"]
    tools = Tools()
    found = library.execute(
        None, tools.all(), gate=opened(made, path), resolve=lambda _: ("failed", None)
    )
    assert (found.stop, tools.by) == ("finished", ["fast"] * 3)
    assert library.validate(path, tmp_path / "a.tcca").claim_type == "Conformant"


def test_one_history_has_one_ledger(tmp_path: Path) -> None:
    made = artifact(DESK, tmp_path)
    for name in ("one", "two"):
        library.execute(None, Tools().all(), gate=opened(made, tmp_path / name), price_cap=9)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_server_is_told_the_model(tmp_path: Path) -> None:
    text = DESK.replace("tool answer {", 'tool answer { bind mcp "desk" "answer"')
    text = text.replace("{ cost 0.1 }", '{ cost 0.1 bind mcp "desk" "find" }')
    made, log, path = artifact(text, tmp_path), tmp_path / "log", tmp_path / "s"
    servers = {"desk": launcher("sdk", str(SERVER), str(log))}
    found = library.execute(None, gate=opened(made, path), servers=servers, price_cap=20)
    assert found.stop == "finished", found.reason
    said = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one.get("tcc/model") for one in said] == [None, "fast", "fast", "fast", None]
    assert len({one["tcc/idempotency-key"] for one in said}) == 5
    assert library.validate(path, tmp_path / "a.tcca").claim_type == "Conformant"


def test_adapters_stand_in_the_ledger_and_are_held_to_the_registry(tmp_path: Path) -> None:
    text = DESK.replace("model fast {", 'model fast { adapter "small"')
    made, path = artifact(text, tmp_path), tmp_path / "s"
    with pytest.raises(Rejected, match="A102"):
        library.execute(None, Tools().all(), gate=library.Gate(made), adapters=())
    name = folder_id(folder(tmp_path / "small"))
    listed = registry(tmp_path / "adapters.toml", {"small": entry(name)})
    library.execute(None, Tools().all(), gate=opened(made, path), adapters=listed)
    said = next(one["execute"] for one in records(path) if "execute" in one)
    assert said["adapter_id"] == name
    told = library.validate(path, tmp_path / "a.tcca", adapters=listed)
    assert told.claim_type == "Conformant"
    registry(tmp_path / "adapters.toml", {"small": entry(name, dp_cert_id="another")})
    told = library.validate(path, tmp_path / "a.tcca", adapters=listed)
    assert (told.verdict, told.claim_type) == (1, "NoClaim")
    assert (told.findings[0].code, told.findings[0].line) == ("A201", 2)


def draw(folder: str, name: str) -> None:
    """A process that does plans until the account has no more."""
    made = library.load(f"{folder}/a.tcca")
    account = library.Account(f"{folder}/account", must_exist=True)
    for number in range(20):
        ledger = Path(folder) / f"{name}{number}"
        gate = library.Gate(made, ledger=ledger, durable=False)
        found = library.execute(None, Tools().all(), gate=gate, account=account)
        if found.stop == "budget":
            return


def test_two_processes_draw_on_one_account(tmp_path: Path) -> None:
    artifact(DESK, tmp_path)
    account = library.Account(tmp_path / "account", price=50)
    context = get_context("spawn")
    names = ("one", "two")
    workers = [context.Process(target=draw, args=(str(tmp_path), name)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    # A call takes 2 cents by the cheapest model and 9 by the other: all but one cent can go.
    sums = account.statement().sums
    assert 49 <= sums.spent.price <= 50 and sums.held.price == 0
    spent = 0
    for name in names:
        for path in sorted(tmp_path.glob(f"{name}[0-9]*")):
            if path.suffix:
                continue
            told = library.validate(path, tmp_path / "a.tcca", account=account)
            assert told.word in ("VALID", "INCOMPLETE"), told.findings
            took = [one["took"] for one in records(path) if "took" in one]
            spent += int(took[-1]["price_spent"]) if took else 0
    assert spent == sums.spent.price


def test_a_ledger_that_drew_otherwise_than_the_account_has_it_is_refused(tmp_path: Path) -> None:
    made, path = artifact(DESK, tmp_path), tmp_path / "s"
    account = library.Account(tmp_path / "account", price=50)
    other = library.Account(tmp_path / "other", price=50)
    library.execute(None, Tools().all(), gate=opened(made, path), account=account)
    told = library.validate(path, tmp_path / "a.tcca", account=other)
    assert [(one.code, one.line, one.field) for one in told.findings] == [("K201", 2, "account")]
    name = records(path)[4]["execute"]["reservation"]
    with closing(sqlite3.connect(tmp_path / "account")) as database, database:
        database.execute("UPDATE reservation SET took_price = '1' WHERE id = ?", (name,))
        database.execute("UPDATE account SET spent_price = '5'")
    told = library.validate(path, tmp_path / "a.tcca", account=account)
    assert [(one.code, one.line) for one in told.findings] == [("K201", 6)]
    assert (told.verdict, told.claim_type) == (1, "NoClaim")
