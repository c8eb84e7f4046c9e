"""What is relaxed when a guard fires: the costliest statement that may be, the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from tcc_certs.formats.artifact import Manifest
from tcc_certs.kernel import check
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import parts_of
from tcc_compiler.automata.letters import partition
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import Nodes
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import Compiled, compile_text
from tcc_compiler.relax import estimates
from tcc_compiler.relax.estimates import find_large_rule

HEAD = 'grammar g version "1"\n'
TOOLS = "".join(
    f"tool t{i} {{ cost 0.{i + 1} price {i % 5 + 1} latency {7 * i + 3} ms }}\n" for i in range(6)
)


SUMS = TOOLS + "limit depth <= 12\nlimit price <= 30\nlimit latency <= 300 ms\n"


def compiled(text: str, **options: object) -> Compiled:
    """Compiled with bounds where it takes them."""
    return asked_for_nothing(text, relax=("auto",), **options)


def asked_for_nothing(text: str, **options: object) -> Compiled:
    plan = "" if "plan =" in text else "plan = any*\n"
    return compile_text(HEAD + text + plan, Options(**options))  # type: ignore[arg-type]


def relaxed(found: Compiled) -> list[str]:
    """The texts of the statements that were relaxed."""
    assert found.artifact is not None, found.diagnostics
    checked = check(found.artifact)
    return [parts_of(checked.core)[number].text for number in checked.file.manifest.relaxed]


def lines(found: Compiled) -> list[tuple[str, int]]:
    return [(d.code, d.span.line if d.span else 0) for d in found.diagnostics]


def test_the_statement_that_adds_most_states_goes_first() -> None:
    found = compiled(SUMS, max_states=400)
    assert relaxed(found) == ["limit latency <= 300 ms"]
    assert lines(found) == [("TCC411", 10)]
    message = found.diagnostics[0].message
    assert message == (
        "CountFail: `limit latency <= 300 ms` takes more than 400 states (404 states reached); it "
        "takes 147 states to 404: `limit latency <= 300 ms` is relaxed, counts are upper bounds, "
        "and a run enforces it"
    )
    assert found.diagnostics[0].hint is not None
    assert "leave --relax auto out" in found.diagnostics[0].hint


def test_an_earlier_statement_is_blamed_where_it_made_the_states() -> None:
    found = compiled(SUMS, max_states=200)
    assert relaxed(found) == ["limit price <= 30"]
    assert lines(found) == [("TCC411", 9)]
    assert "`limit price <= 30` is behind it and takes 13 states to 147" in (
        found.diagnostics[0].message
    )


def test_relaxing_goes_on_until_it_fits() -> None:
    found = compiled(SUMS, max_states=80)
    assert relaxed(found) == ["limit price <= 30", "limit latency <= 300 ms"]
    assert [code for code, _ in lines(found)] == ["TCC411", "TCC411"]


def test_a_limit_that_keeps_the_plans_finite_stays() -> None:
    text = "tool a { price 1 }\ntool free\nlimit depth <= 30\nlimit price <= 20\n"
    found = compiled(text, max_states=40)
    assert relaxed(found) == ["limit price <= 20"]
    # With depth alone nothing may go.
    found = compiled("tool a\nlimit depth <= 30\n", max_states=20)
    assert found.artifact is None
    assert [d.code for d in found.diagnostics] == ["TCC403"]


def test_depth_goes_where_price_is_enough() -> None:
    text = "tool a { price 1 }\ntool b { price 2 }\nplan = (a | b)*\nlimit depth <= 9000\n"
    found = compiled(text + "limit price <= 40\n", max_states=2000)
    assert relaxed(found) == ["limit depth <= 9000"]


def test_requires_and_forbids_are_relaxed_and_named() -> None:
    tools = "".join(f"tool t{i}\n" for i in range(16))
    requires = "".join(f"before t{2 * i + 1} require t{2 * i}\n" for i in range(8))
    found = compiled(tools + requires + "limit depth <= 12\n", max_states=600)
    assert found.artifact is not None
    named = relaxed(found)
    assert named and all(text.startswith("before t") for text in named)
    for diagnostic in found.diagnostics:
        assert diagnostic.message.startswith("CountFail: `limit depth <= 12` takes more than 600")
        assert "`before t" in diagnostic.message
        assert diagnostic.span is not None and 18 <= diagnostic.span.line <= 25


def test_a_limit_on_negative_costs_is_never_relaxed() -> None:
    text = "tool a { cost 0.001 }\ntool b { cost -0.37 }\ntool c { cost 0.77 }\n"
    text += "limit depth <= 12\nlimit cost <= 3\n"
    found = compiled(text, max_states=60)
    assert found.artifact is None
    assert [d.code for d in found.diagnostics] == ["TCC403"]
    assert compiled(text.replace("-0.37", "0.37"), max_states=60).artifact is not None


def test_nothing_is_relaxed_unasked() -> None:
    text = TOOLS + "limit depth <= 12\nlimit price <= 30\n"
    found = asked_for_nothing(text, max_states=80)
    assert found.artifact is None
    assert lines(found) == [("TCC403", 9)]
    # Nor where something else was asked for.
    named = asked_for_nothing(text + "limit count(t1) <= 2\n", max_states=80, relax=("count",))
    assert named.artifact is None
    assert lines(named) == [("TCC403", 9)]


def test_too_many_bits_round_the_race_counts() -> None:
    found = compiled(TOOLS + "limit depth <= 60\n", count_bits=40)
    assert found.artifact is not None
    manifest = check(found.artifact).file.manifest
    assert (manifest.critical, manifest.round_counts) == (("rounded",), 40)
    assert lines(found) == [("TCC411", 0)]
    assert "156 bits, more than 40" in found.diagnostics[0].message
    wide = compiled(TOOLS + "limit depth <= 60\n", count_bits=100).artifact
    assert wide is not None and check(wide).file.manifest.round_counts == 63


def test_time_that_runs_out_relaxes_and_leaves_time_for_it() -> None:
    asked = count()
    found = compiled(SUMS, timeout=8.0, clock=lambda: min(7.0, float(next(asked))))
    assert len(relaxed(found)) == 1 and lines(found)[0][0] == "TCC411"
    # Of what the user gave, though the exact attempt had a part of it only.
    assert "the time limit of 8 s ran out at `limit" in found.diagnostics[0].message


def test_the_pass_is_named_where_no_time_is_left() -> None:
    asked = count()
    found = compiled(SUMS, timeout=8.0, clock=lambda: float(next(asked)))
    assert found.artifact is None
    assert [d.code for d in found.diagnostics] == ["TCC404"]
    assert "ran out at `limit" in found.diagnostics[0].message


def test_the_large_rule_is_looked_for_in_one_reading_of_the_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Once a rule, a chain of 20,000 rules took minutes, whatever the time limit.
    calls = []
    taken_in = Nodes.add_rules
    monkeypatch.setattr(Nodes, "add_rules", lambda *told: calls.append(1) or taken_in(*told))
    chain = "".join(f"rule r{at} = a r{at + 1}\n" for at in range(30)) + "rule r30 = a\n"
    core = core_of("tool a\n" + chain + "plan = r0\n")
    assert find_large_rule(core, partition(core, ())) is None
    assert len(calls) == 1


DOUBLED = "tool a\n" + "".join(f"rule r{at:02} = r{at + 1:02} r{at + 1:02}\n" for at in range(30))
DOUBLED += "rule r30 = a?\nplan = r00\nlimit depth <= 20\n"


def test_of_a_chain_of_large_rules_one_alone_is_gone_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = []
    asked = estimates._is_large
    monkeypatch.setattr(
        estimates, "_is_large", lambda *told: refused.append(found := asked(*told)) or found
    )
    core = core_of(DOUBLED)
    name = find_large_rule(core, partition(core, parts_of(core)))
    assert name is not None and refused.count(True) == 1


def test_the_large_rule_is_not_looked_for_beyond_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, look = [0], Network._reach
    monkeypatch.setattr(
        Network, "_reach", lambda *told: steps.__setitem__(0, steps[0] + 1) or look(*told)
    )
    asked = count()
    options = Options(timeout=1.0, clock=lambda: float(next(asked)))
    core = core_of(DOUBLED)
    # Of a rule that was not gone through nothing is said, large or not.
    assert find_large_rule(core, partition(core, parts_of(core)), options, 0.5) is None
    assert (
        steps[0] < 100
    )  # the small rules inside; a large one takes 10^6 steps and a look each 256
    found = asked_for_nothing(DOUBLED, timeout=8.0, clock=lambda: float(next(asked)))
    assert found.artifact is None
    assert [d.code for d in found.diagnostics] == ["TCC404"]


def core_of(text: str) -> Core:
    found = read_grammar_text(HEAD + text).core
    assert found is not None
    return found


def test_no_clock_is_asked_without_a_time_limit() -> None:
    def clock() -> float:
        raise AssertionError

    text = TOOLS + "limit depth <= 12\nlimit price <= 30\n"
    assert compiled(text, max_states=80, clock=clock).artifact is not None


def test_progress_is_told_a_few_times_a_second() -> None:
    ticks = count()
    told: list[tuple[str, int]] = []
    text = TOOLS + "limit depth <= 24\nlimit price <= 48\nlimit count(t1) <= 2\n"
    options = {"progress": lambda name, states: told.append((name, states))}
    found = compiled(text, clock=lambda: 0.15 * next(ticks), **options)
    assert found.artifact == compiled(text).artifact
    # Asked every 0.15 s and told every 0.2 s at most: at every second look.
    assert 2 <= len(told) <= next(ticks) // 2
    assert ("`limit price <= 48`" in dict(told)) and max(states for _, states in told) > 100


@pytest.mark.parametrize("most", [30, 80, 300])
def test_the_same_choice_on_every_run_and_hash_seed(most: int) -> None:
    text = HEAD + SUMS
    text += "before t1 require t0\nbefore t3 require no t2\nbefore t2 require no t3\n"
    text += "before t5 require no t4 since any - t4\nlimit count(t1) <= 1\n"
    text += "plan = any*\n"
    here = compile_text(text, Options(max_states=most, relax=("auto",)))
    assert here.artifact is not None
    program = (
        "import sys; from tcc_compiler.options import Options;"
        "from tcc_compiler.pipeline import compile_text;"
        "found = compile_text(sys.argv[1], Options(max_states=int(sys.argv[2]), relax=('auto',)));"
        ""
        "sys.stdout.buffer.write(found.artifact + repr(found.diagnostics).encode())"
    )
    root = Path(__file__).parents[3]
    paths = os.pathsep.join(str(root / name) for name in ("certs", "compiler"))
    for seed in ("0", "77"):
        out = subprocess.run(
            [sys.executable, "-c", program, text, str(most)],
            env={"PYTHONPATH": paths, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        assert out == here.artifact + repr(here.diagnostics).encode()


def manifest_of(found: Compiled) -> Manifest:
    assert found.artifact is not None
    return check(found.artifact).file.manifest


def test_the_first_guard_is_told_where_nothing_helps() -> None:
    found = compiled("tool a\nplan = a{500}\n", max_states=100)
    assert [(d.code, d.severity) for d in found.diagnostics] == [("TCC403", "error")]
    assert found.diagnostics[0].message == "the plan expression takes more than 100 states"


def test_warnings_stand_after_those_of_the_front_end_and_fail_nothing() -> None:
    text = (
        TOOLS + "limit depth <= 12\nlimit price <= 30\naccept t0 t1\nreject t4 t4 t4 t4 t4 t4 t4\n"
    )
    found = compiled(text, max_states=80)
    assert manifest_of(found).critical == ("relaxed",)
    kinds: list[Diagnostic] = list(found.diagnostics)
    assert [d.severity for d in kinds] == ["warning"]
