"""One page of peers: each with its version and the command, compared with tcc in the same process.

``python -m benchmarks peers`` prints the page; ``python -m benchmarks.peers NAME..`` prints the
rows of those names.  Programs take turns, and the least processor time of each counts.  Over stdio
it is the median wall clock beyond a direct call.  A row says if its package is not installed.
fastmcp and dogwood-py need separate environments, because they require other versions:
`TCC_FASTMCP` and `TCC_DOGWOOD` name their Pythons.

A row compares the same question, but not the same answer: Cedar, Rego, Casbin and a schema decide a
request without a history, while tcc decides by the whole session.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import tcc
from benchmarks.gate import ARGUMENTS, GRAMMAR
from benchmarks.measure import head, machine, row

ROUNDS = 5
_DECISIONS = 2_000  # decisions of tcc that are timed together
REGO = """package desk
default allow := false
allow if { input.tool == "refund"; input.amount <= 500 }
"""
CASBIN = """
[request_definition]
r = sub, act, amount
[policy_definition]
p = sub, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.act == p.act && r.amount <= 500
"""
CEDAR = 'permit(principal, action == Action::"refund", resource) when {context.amount <= 500};'
SCHEMA = {
    "type": "object",
    "properties": {
        "part": {"enum": ["half", "full"]},
        "order": {"type": "string", "pattern": "^ord-[0-9]{1,8}$"},
        "amount": {"type": "number", "minimum": 0, "maximum": 500},
    },
    "required": ["part", "order", "amount"],
    "additionalProperties": False,
}

SHOP = """grammar shop version "1"

tool approve(kind: cart, user: text max 40, cart: text max 40)
tool checkout(kind: cart, user: text max 40, cart: text max 40)

limit depth <= EVENTS
before checkout require approve(same (user, cart)) within 1 h
"""

# A row: the work, tcc's figure, the peer's figure, and how many times faster tcc is.
Row: TypeAlias = "tuple[str, str, str, str]"


def table(names: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head("peer", "version", "work", "ours", "peer", "ours is faster by", "command")
    for name, (package, rows) in PEERS.items():
        if names and name not in names:
            continue
        command = f"`python -m benchmarks.peers {name}`"
        try:
            known = _version(package)
            for what, ours, theirs, by in rows():
                yield row(name, known, what, ours, theirs, by, command)
        except (ImportError, PackageNotFoundError):
            yield row(name, "not installed", "", "", "", "", command)


def _version(package: str) -> str:
    """Return the version of a package, in its own environment if it has one."""
    own = {"fastmcp": "TCC_FASTMCP", "dogwood-py": "TCC_DOGWOOD"}.get(package)
    if own is None:
        return version(package)
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    return _said(own, "-c", asked).strip()


def _said(own: str, *arguments: str) -> str:
    """Run the Python of a separate environment, and return its output.

    Raises:
        ImportError: the environment variable `own` is not set.
    """
    python = os.environ.get(own)
    if python is None:
        raise ImportError(own)
    command = [python, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _least(*programs: Callable[[], Any]) -> list[float]:
    """Run programs in turn; return the least processor time of each."""
    times = [float("inf")] * len(programs)
    for _ in range(ROUNDS):
        for at, program in enumerate(programs):
            begin = time.process_time()
            program()
            times[at] = min(times[at], time.process_time() - begin)
    return times


def _times(ours: float, theirs: float) -> str:
    return f"{theirs / ours:.1f}x"


def _automata(peer: str) -> Iterator[Row]:
    """Yield the rows about a family of tool grammars, up to the minimal automaton."""
    from benchmarks.compile import core_bytes, minimal
    from benchmarks.family import THREE_HUNDRED, TWELVE
    from tcc_certs.policy.reader import read_core

    if peer == "OpenFst":
        from benchmarks import openfst

        program: Callable[[Any], Any] = openfst.best_order
        shapes = (TWELVE[2], THREE_HUNDRED[2])
    else:
        from benchmarks import dfa

        program, shapes = dfa.best_order, (TWELVE[1],)
    for shape in shapes:
        core = read_core(core_bytes(shape))
        states = minimal(core)[0].states
        ours, theirs = _least(partial(minimal, core), partial(program, shape))
        what = f"{shape.tools} tools, {states:,} states, to the minimal automaton"
        yield what, f"{ours:.3f} s", f"{theirs:.3f} s", _times(ours, theirs)


def _draws() -> Iterator[Row]:
    """Sixteen plans without replacement; tcc's have a certificate."""
    from benchmarks.search import chances_of, grammar, unique_randomizer
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import compile_text
    from tcc_runtime.artifact.load import load
    from tcc_runtime.run import search
    from tcc_runtime.settings.settings import Settings

    data = compile_text(grammar(32, (5, 5)), Options(beta="4", tilt=12)).artifact
    if data is None:
        raise ValueError("the grammar is refused")
    artifact = load(data)
    chances = chances_of(artifact)

    def ours() -> None:
        for seed in range(8):
            search(artifact, Settings(seed=seed.to_bytes(32, "big"), top=16, race="rest"))

    def theirs() -> None:
        for seed in range(8):
            unique_randomizer(chances, 16, seed)

    ours()
    mine, other = (seconds / 8 * 1e3 for seconds in _least(ours, theirs))
    what = "16 plans of 32 calls without replacement, no ledger"
    yield what, f"{mine:.2f} ms", f"{other:.2f} ms", _times(mine, other)


def _decision(what: str, peer: Callable[[], bool]) -> Iterator[Row]:
    """Yield the rows about a decision after 100 calls; the peer has no history."""
    gate = tcc.Gate(tcc.compile_text(GRAMMAR))
    for _ in range(100):
        with gate.call("note", {"kind": "mail"}) as permit:
            permit.done()
    if not (gate.check("refund", ARGUMENTS).allowed and peer()):
        raise ValueError("both allow it")
    some = _DECISIONS // 10

    def ours() -> None:
        for _ in range(_DECISIONS):
            gate.check("refund", ARGUMENTS)

    def theirs() -> None:
        for _ in range(some):
            peer()

    mine, other = _least(ours, theirs)
    mine, other = mine / _DECISIONS * 1e6, other / some * 1e6
    yield what, f"{mine:.1f} us", f"{other:.1f} us", _times(mine, other)


def _cedar() -> Iterator[Row]:
    import cedarpy

    request = {
        "principal": 'User::"agent"', "action": 'Action::"refund"', "resource": 'Order::"17"',
        "context": {"amount": 3},
    }  # fmt: skip
    yield from _decision(
        "a decision; Cedar's without a history",
        lambda: bool(cedarpy.is_authorized(request, CEDAR, []).allowed),
    )


def _rego() -> Iterator[Row]:
    from regopy import Interpreter

    rego = Interpreter()
    rego.add_module("desk", REGO)

    def decide() -> bool:
        rego.set_input({"tool": "refund", "amount": 3})
        told = rego.query("data.desk.allow")  # kept alive while its text is read
        return str(told) == '{"expressions":[true]}'

    yield from _decision("a decision; Rego's without a history", decide)


def _casbin() -> Iterator[Row]:
    import casbin

    model = casbin.Model()
    model.load_model_from_text(CASBIN)
    enforcer = casbin.Enforcer(model)
    enforcer.add_policy("agent", "refund")
    yield from _decision(
        "a decision; Casbin's without a history",
        lambda: bool(enforcer.enforce("agent", "refund", 3)),
    )


def _schema() -> Iterator[Row]:
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(SCHEMA)
    yield from _decision(
        "arguments against a schema; ours decides the call as well",
        lambda: bool(validator.is_valid(ARGUMENTS)),
    )


def _stdio(peer: str) -> Iterator[Row]:
    """Yield the rows about the extra time of a call over stdio; the peers decide nothing."""
    from benchmarks.mcp import measured

    if peer not in (times := measured()[0]):
        raise ImportError(peer)
    base = median(times["direct"])
    theirs = median(times[peer]) - base
    for name in ("tcc gate", "tcc gate --no-durable"):
        ours = median(times[name]) - base
        what = f"an MCP call through a proxy, on top of a direct one; `{name}`"
        yield what, f"{ours * 1e3:.2f} ms", f"{theirs * 1e3:.2f} ms", _times(ours, theirs)


def _dogwood() -> Iterator[Row]:
    """Yield the rows about a checkout that needs an approval of its cart within the hour."""
    script = str(Path(__file__).with_name("beside_dogwood.py"))
    for line in _said("TCC_DOGWOOD", script).splitlines():
        size, told = line.split(": ")
        theirs = float(told.split(", ")[1].split()[0])
        ours = _checkout(int(size)) * 1e6
        what = f"a checkout that needs an approval within the hour, after {int(size):,} events"
        yield what, f"{ours:.1f} us", f"{theirs:.0f} us", _times(ours, theirs)


def _checkout(events: int) -> float:
    """Return the least seconds of a decision about a checkout."""
    text = SHOP.replace("EVENTS", str(events + 8))
    artifact = tcc.compile_text(text, purpose="gate", max_states=10**7)
    shown = [f"{tool}.{name}" for tool in ("approve", "checkout") for name in ("user", "cart")]
    gate = tcc.Gate(artifact, show=shown)
    for at in range(events):
        with gate.call("approve", {"kind": "cart", "user": "ann", "cart": f"c{at}"}) as permit:
            permit.done()
    asked = {"kind": "cart", "user": "ann", "cart": "c5"}
    if not gate.check("checkout", asked).allowed:
        raise ValueError("it was approved")
    if gate.check("checkout", {**asked, "cart": "none"}).allowed:
        raise ValueError("it was not approved")

    def ask() -> None:
        for _ in range(_DECISIONS):
            gate.check("checkout", asked)

    return _least(ask)[0] / _DECISIONS


# For each name, the package whose version is shown, and a function that yields its rows.
PEERS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "OpenFst": ("pynini", partial(_automata, "OpenFst")),
    "automata-lib": ("automata-lib", partial(_automata, "automata-lib")),
    "unique-randomizer": ("unique-randomizer", _draws),
    "cedarpy": ("cedarpy", _cedar),
    "regopy": ("regopy", _rego),
    "pycasbin": ("pycasbin", _casbin),
    "jsonschema-rs": ("jsonschema-rs", _schema),
    "fastmcp": ("fastmcp", partial(_stdio, "fastmcp's proxy")),
    "SDK-gate": ("mcp", partial(_stdio, "gate by the SDK")),
    "dogwood-py": ("dogwood-py", _dogwood),
}


if __name__ == "__main__":
    for line in table(tuple(sys.argv[1:])):
        print(line, flush=True)
