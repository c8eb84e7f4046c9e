"""Every pair of what runs and sessions may be given, through every door: honest ones validate.

What a run or a session is given stands in its ledger, and each option of `validate` holds a part of
it to something outside.  So each pair goes through each door that has it, with every option of
`validate` that applies; a door that does not have it says so, and does nothing.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

import tcc as library
from tcc.langchain import build_graph, guard
from tcc_runtime.adapters.registry import folder_id, read_registry
from tcc_runtime.gate.budget import adapters_in, atoms_in
from tcc_runtime.pricing.quotes import point
from tcc_runtime.resume import resume
from tests.mcp.speaking import Relayed
from tests.runtime.adapters import entry, folder, registry

SEED = bytes(range(32))
GIVEN = ("account", "adapters", "after", "atoms", "budget", "margin", "resume", "session")
PAIRS = [frozenset(pair) for pair in combinations(GIVEN, 2)]
LISTS: list[list[dict[str, Any]]] = [
    [{"mechanism": "laplace", "scale": "8", "sensitivity": "1"}],
    [{"mechanism": "gaussian", "sigma": "4", "sensitivity": "1", "times": 3}],
    [
        {"mechanism": "randomized_response", "probability": "0.75", "choices": 2},
        {"mechanism": "laplace", "scale": "2", "sensitivity": "1"},
    ],
]
GRAMMAR = """grammar pairs version "1"
tool find {
  cost 0.2 .. 0.9
  quotes same
  model probe { price 4 latency 5 ms epsilon 0.01 ADAPTER execute { price 3 } }
  model quote { price 9 atom laplace(9, 1) execute }
}
plan = find{2,4}
"""
HALF_WAY = 2


def _named(value: Any) -> str:
    return "-".join(sorted(value)) if isinstance(value, frozenset) else str(value)


class Given:
    """What a pair comes to, in a folder of its own."""

    def __init__(self, at: Path, pair: frozenset[str], atoms: int = 0) -> None:
        self.at, self.pair, self.ledger = at, pair, at / "ledger"
        adapter = 'adapter "small"' if "adapters" in pair else ""
        self.artifact = library.compile_text(GRAMMAR.replace("ADAPTER", adapter))
        self.path = at / "a.tcca"
        library.save(self.artifact, self.path)
        self.atoms = LISTS[atoms] if "atoms" in pair else []
        self.account = self.registry = None
        if "account" in pair:
            self.account = library.Account(at / "account", price=500, epsilon="50")
        if "adapters" in pair:
            name = folder_id(folder(at / "small"))
            self.registry = registry(at / "adapters.toml", {"small": entry(name)})
        self.settings: dict[str, Any] = {}
        if "margin" in pair:
            self.settings["margin"] = "0.5"
        if "budget" in pair:
            self.settings |= {"price_cap": 400, "sla_ms": 10**6, "epsilon_cap": "40"}

    @property
    def held(self) -> dict[str, Any]:
        """The options of `validate` that apply."""
        return {"account": self.account, "adapters": self.registry}

    def validated(self) -> Any:
        found = library.validate(self.ledger, self.path, **self.held)
        assert found.verdict == 0 or found.word == "INCOMPLETE", found.findings
        return found

    def budget(self, gate: library.Gate) -> None:
        gate.budget(
            atoms=atoms_in(self.atoms),
            adapters=adapters_in(self.registry),
            account=self.account,
            **self.settings,
        )

    def gate(self) -> library.Gate:
        return library.Gate(self.artifact, ledger=self.ledger, durable=False)


def cut(ledger: Path) -> None:
    """Leaves a ledger behind its first answer, with half of the next line."""
    lines = ledger.read_bytes().splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if b'"kind":"refine"' in line)
    ledger.write_bytes(b"".join(lines[: last + 1]) + lines[last + 1][:9])


@pytest.mark.parametrize("pair", [p for p in PAIRS if "session" not in p], ids=_named)
@pytest.mark.sampled(10)
def test_a_search_with_a_pair_validates(tmp_path: Path, pair: frozenset[str]) -> None:
    for atoms in range(len(LISTS) if "atoms" in pair else 1):
        at = tmp_path / str(atoms)
        at.mkdir()
        given = Given(at, pair, atoms)
        after = {"after": ("find",)} if "after" in pair else {}
        told = {"quoter": lambda _: point("0.5"), "account": given.account}
        library.search(
            given.artifact, seed=SEED, ledger=given.ledger, atoms=given.atoms, top=2,
            adapters=given.registry, **told, **after, **given.settings,
        )  # fmt: skip
        if "resume" in pair:
            whole = given.ledger.read_bytes()
            cut(given.ledger)
            known = None if given.registry is None else read_registry(given.registry)
            resume(given.artifact, given.ledger, SEED, adapters=known, **told)
            assert len(given.ledger.read_bytes().splitlines()) == len(whole.splitlines()) + 1
        assert given.validated().claim_upheld


@pytest.mark.parametrize("pair", [p for p in PAIRS if "session" not in p], ids=_named)
@pytest.mark.sampled(10)
def test_a_run_with_a_pair_validates(tcc: Any, tmp_path: Path, pair: frozenset[str]) -> None:
    given = Given(tmp_path, pair)
    book = {"tool": "find", "model": "probe", "cost": "0.5"}
    quotes = {"format": "tcc.quotes", "version": "1.0", "quotes": [book]}
    (tmp_path / "book").write_text(json.dumps(quotes))
    (tmp_path / "atoms").write_text(json.dumps(given.atoms))
    told: list[object] = ["run", given.path, "--seed", SEED.hex(), "--ledger", given.ledger]
    told += ["--quotes", tmp_path / "book"]
    handed: list[object] = []
    for name in ("account", "adapters"):
        path = given.registry if name == "adapters" else tmp_path / "account"
        handed += [f"--{name}", path] if name in pair else []
    more: list[object] = ["--atoms", tmp_path / "atoms"] if "atoms" in pair else []
    more += ["--after", "find"] if "after" in pair else []
    more += ["--margin", "0.5"] if "margin" in pair else []
    more += ["--price-cap", 400, "--epsilon-cap", 40] if "budget" in pair else []
    assert tcc(*told, *handed, *more).code == 0
    if "resume" in pair:
        cut(given.ledger)
        assert tcc(*told, *handed, "--resume").code == 0
    found = tcc("validate", given.ledger, "--artifact", given.path, *handed)
    assert found.code == 0, found.out


@pytest.mark.parametrize("pair", PAIRS, ids=_named)
@pytest.mark.sampled(10)
def test_an_execution_with_a_pair_validates(tmp_path: Path, pair: frozenset[str]) -> None:
    given, made = Given(tmp_path, pair), list[str]()

    def find(model: str) -> None:
        made.append(model)
        if "resume" in pair and len(made) == HALF_WAY:
            raise OSError("the line is dead")

    def go_on() -> Any:
        with given.gate() as gate:
            return library.execute(
                None, {"find": find}, gate=gate, quoter=lambda _: point("0.5"), seed=SEED,
                atoms=given.atoms, adapters=given.registry, account=given.account,
                resolve=lambda _: ("failed", None), **given.settings,
            )  # fmt: skip

    if "after" in pair:
        with given.gate() as gate, gate.call("find") as permit:
            permit.done()
    if "resume" in pair:
        with given.gate() as gate:
            given.budget(gate)
            with gate.call("find"):
                pass
    found = go_on()
    assert found.stop == "finished", found.reason
    assert given.validated().claim_type == "Conformant"


def tools(made: list[str]) -> list[BaseTool]:
    @tool
    def find(model: str) -> str:
        """Find."""
        made.append(model)
        return "found"

    return [find]


@pytest.mark.parametrize("door", ["guard", "build_graph"])
@pytest.mark.parametrize("pair", PAIRS, ids=_named)
@pytest.mark.sampled(14)
def test_guarded_tools_with_a_pair_validate(
    tmp_path: Path, pair: frozenset[str], door: str
) -> None:
    given, made = Given(tmp_path, pair), list[str]()
    if "after" in pair:
        with given.gate() as gate, gate.call("find") as permit:
            permit.done()
    for _ in range(2 if "resume" in pair else 1):
        with given.gate() as gate:
            given.budget(gate)
            if door == "guard" or ("resume" in pair and not made):
                guard(tools(made), gate)[0].invoke({})
            else:
                graph = build_graph(
                    given.artifact, tools(made), gate=gate, seed=SEED,
                    quoter=lambda _: point("0.5"), adapters=given.registry,
                )  # fmt: skip
                assert graph.invoke({})["stop"] == "finished"
    found = given.validated()
    assert found.claim_type == ("Conformant" if door == "build_graph" else "ConformantPrefix")
    assert made and set(made) <= {"probe", "quote"}


FIND = {"name": "find", "inputSchema": {"type": "object", "properties": {}}}
BUDGETED = frozenset(("account", "adapters", "atoms", "budget", "margin"))


@pytest.mark.parametrize("pair", PAIRS, ids=_named)
@pytest.mark.sampled(7)
def test_a_relay_with_a_pair_validates(tmp_path: Path, pair: frozenset[str]) -> None:
    """What a relay is given stands in the session that it reopens: it has no options for it."""
    given = Given(tmp_path, pair)
    given.ledger = tmp_path / "s.ledger"
    with given.gate() as gate:
        if pair & BUDGETED:
            given.budget(gate)
        if "after" in pair:
            with gate.call("find") as permit:
                permit.done()
    for _ in range(2 if "resume" in pair else 1):
        with Relayed(tmp_path, given.path, env={"TOOLS": json.dumps([FIND])}) as relay:
            relay.greet()
            answer = relay.call("find")
    if "account" in pair:  # a relay has no hand on the account that the session draws from
        assert answer["structuredContent"]["code"] == "R205"
        assert "R205: find: account: " in answer["content"][0]["text"]
    assert len(relay.executed) == (0 if "account" in pair else 2 if "resume" in pair else 1)
    given.validated()


BATCH = {
    "atoms": {"atoms": LISTS[0]},
    "after": {"after": ["find"]},
    "margin": {"margin": "0.5"},
    "budget": {"price_cap": 4},
    "account": {"account": "a"},
    "adapters": {"adapters": "a"},
    "session": {"session": "a"},
}


@pytest.mark.parametrize("pair", PAIRS, ids=_named)
@pytest.mark.sampled(7)
def test_a_batch_has_a_pair_or_says_that_it_has_not(
    tcc: Any, tmp_path: Path, pair: frozenset[str]
) -> None:
    given = Given(tmp_path, pair - {"adapters"})
    asked = {"seed": SEED.hex()}
    for name in sorted(pair - {"resume"}):
        asked |= BATCH[name]
    (tmp_path / "asked").write_text(json.dumps(asked) + "\n" + json.dumps(asked) + "\n")
    # Over ranges nobody is there to be asked, and no run claims anything.
    known = GRAMMAR.replace("0.2 .. 0.9", "0.5").replace("  quotes same\n", "")
    library.save(library.compile_text(known.replace("ADAPTER", "")), tmp_path / "known.tcca")
    refused = [next(iter(BATCH[name])) for name in pair - {"after", "atoms", "resume"}]
    for artifact, certified in ((given.path, 0), (tmp_path / "known.tcca", 2)):
        out = tmp_path / f"out{certified}"
        told = ("batch", artifact, "--requests", tmp_path / "asked", "--out", out, "--json")
        told = (*told, "--processes", 1, "--shard-size", 1)
        ended = tcc(*told)
        if refused:
            due = [f"asked:1: TCC902: there is no setting '{name}'" for name in refused]
            assert ended.code == 2 and any(one in ended.err for one in due), ended.err
            assert not out.exists()
            continue
        assert (ended.code, ended.json["certified"]) == (0 if certified else 2, certified)
        if "resume" in pair:
            part = out / "part-00000002.ndjson"
            part.write_bytes(part.read_bytes()[:-9])
            again = tcc(*told)
            assert (again.code, again.json["kept"], again.json["redone"]) == (ended.code, 1, 1)
        found = tcc("batch", artifact, "--out", out, "--validate", "--processes", 1, "--json")
        assert (found.code, found.json["verdicts"]) == (0, {"valid": 2}), found.out
        assert found.json["findings"] == []


@pytest.mark.parametrize("atoms", range(len(LISTS)))
def test_an_account_that_lacks_the_reservations_is_refused(tmp_path: Path, atoms: int) -> None:
    given = Given(tmp_path, frozenset(("account", "atoms")), atoms)
    told = {"quoter": lambda _: point("0.5"), "account": given.account, "atoms": given.atoms}
    library.search(given.artifact, seed=SEED, ledger=given.ledger, **told)
    assert given.validated().claim_upheld
    with closing(sqlite3.connect(tmp_path / "account")) as database, database:
        database.execute("DELETE FROM reservation")
    found = library.validate(given.ledger, given.path, account=given.account)
    assert {one.code for one in found.findings} == {"K201"}


def test_a_planned_route_asks_within_the_budget_of_its_session(tmp_path: Path) -> None:
    given, made, asked = Given(tmp_path, frozenset(("session", "resume"))), list[str](), list[str]()

    def quoter(question: Any) -> Any:
        asked.append(question.model)
        return point("0.5")

    with given.gate() as gate:
        gate.budget(price_cap=7)
        graph = build_graph(given.artifact, tools(made), gate=gate, seed=SEED, quoter=quoter)
        assert graph.invoke({})["stop"] == "refused"
        assert gate.spent is not None and gate.spent.price == 7
    # One ask and one call of `probe`; another ask would be one over what the calls are held to.
    assert (asked, made) == (["probe"], ["probe"])
    given.validated()
