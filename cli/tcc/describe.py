"""What is in an artifact, as the fields that ``inspect`` and ``compile`` show."""

from __future__ import annotations

from typing import Any

from tcc import screen
from tcc.declared import declared, declared_rows
from tcc_certs.core.enforced import enforced, shortened
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.artifact.load import Artifact, Diagnostic
from tcc_runtime.artifact.plans import cheapest_plan, plans_by_depth

_CHEAP = 5_000_000


def describe(artifact: Artifact, *, by_depth: bool = False) -> dict[str, Any]:
    """The JSON fields; `plans_by_depth` where it is cheap, or where `by_depth` asks for it."""
    manifest, root = artifact.manifest, artifact.root
    depth = artifact.rank(root)
    cheapest = cheapest_plan(artifact)
    where = enforced(artifact.core, artifact.relaxed)
    fields: dict[str, Any] = {
        "grammar": manifest.grammar,
        "version": manifest.version,
        "digest": artifact.digest.hex(),
        "root_state": manifest.root.hex(),
        "counts": manifest.counts,
        "plans": screen.decimal(artifact.plans(root)),
        "race_count": screen.decimal(artifact.race_count(root)),
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "max_depth": depth,
        "min_cost": format_decimal(artifact.cost_to_go(root), 9),
        "min_cost_plan": None if cheapest is None else list(cheapest),
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "nondeterministic": manifest.nondeterministic,
        "round_counts": manifest.round_counts,
        "relaxed": list(where.run),
        "enforced": {
            "automaton": list(where.automaton),
            "gate": list(where.gate),
            "run": list(where.run),
        },
        **declared(artifact.core),
    }
    if artifact.diagnostics:
        fields["diagnostics"] = [diagnostic_fields(said) for said in artifact.diagnostics]
    if by_depth or depth * manifest.edges <= _CHEAP:
        fields["plans_by_depth"] = [screen.decimal(n) for n in plans_by_depth(artifact)]
    return fields


def bounds_plans(artifact: Artifact) -> bool:
    """Whether the artifact's numbers of plans are bounds from above."""
    return artifact.nondeterministic or artifact.relaxed is not None


def left_to_run(artifact: Artifact) -> list[str]:
    """The statements that no count or bound of the artifact knows of."""
    return list(enforced(artifact.core, artifact.relaxed).run)


def diagnostic_fields(said: Diagnostic) -> dict[str, Any]:
    """What the compiler said, as the JSON object that every command uses."""
    fields = {"code": said.code, "severity": said.severity, "message": said.message}
    return fields | ({} if said.hint is None else {"hint": said.hint})


def _counts(fields: dict[str, Any]) -> str:
    """Which kind of counts, and why they are bounds where they are."""
    reasons = ["derivations are counted"] if fields["nondeterministic"] else []
    if fields["relaxed"]:
        reasons.append(f"left to the run: {shortened(tuple(fields['relaxed']))}")
    if fields["round_counts"] is not None:
        reasons.append(f"race counts rounded up to {fields['round_counts']} bits")
    return f"{fields['counts']} ({'; '.join(reasons)})" if reasons else str(fields["counts"])


def print_description(artifact: Artifact, fields: dict[str, Any]) -> None:
    """The same for people."""
    cheapest, plans = fields["min_cost_plan"], screen.big(artifact.plans(artifact.root))
    if cheapest is None:
        least = f"at least {fields['min_cost']}"
    else:
        least = f"{fields['min_cost']}: {' '.join(cheapest) or '(the empty plan)'}"
    gate = fields["enforced"]["gate"]
    rows: list[tuple[str, object]] = [
        ("grammar", f"{fields['grammar']} {fields['version']}"),
        ("plans", f"at most {plans}" if bounds_plans(artifact) else plans),
        ("counts", _counts(fields)),
        ("states", f"{screen.big(fields['states'])}, {screen.big(fields['edges'])} edges"),
        ("enforced", f"by the automaton: {shortened(tuple(fields['enforced']['automaton']))}"),
        *(
            [("", f"by a run alone: {shortened(tuple(fields['relaxed']))}")]
            if fields["relaxed"]
            else []
        ),
        *([("", f"where calls are made: {shortened(tuple(gate))}")] if gate else []),
        *declared_rows(fields),
        ("calls", f"{fields['calls']}, at most {fields['max_depth']} in a plan"),
        ("cheapest", least),
        ("race", f"tilt {fields['tilt']}, beta {fields['beta']}"),
        ("root state", fields["root_state"]),
        ("digest", fields["digest"]),
    ]
    screen.print_fields(rows)
    if "plans_by_depth" in fields:
        most = "at most " if bounds_plans(artifact) else ""
        screen.say("  plans by number of calls")
        for calls, count in enumerate(fields["plans_by_depth"]):
            if count != "0":
                screen.say(f"  {calls:>10}  {most}{screen.big_text(count)}")
