"""What is in an artifact, as the fields that ``inspect`` and ``compile`` show."""

from __future__ import annotations

from typing import Any

import click

from tcc import screen
from tcc_certs.fixed import format_decimal
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.plans import cheapest_plan, plans_by_depth

_CHEAP = 5_000_000


def describe(artifact: Artifact, *, by_depth: bool = False) -> dict[str, Any]:
    """The JSON fields; `plans_by_depth` where it is cheap, or where `by_depth` asks for it."""
    manifest, root = artifact.manifest, artifact.root
    depth = artifact.rank(root)
    cheapest = cheapest_plan(artifact)
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
        "relaxed": relaxed_texts(artifact),
    }
    if by_depth or depth * manifest.edges <= _CHEAP:
        fields["plans_by_depth"] = [screen.decimal(n) for n in plans_by_depth(artifact)]
    return fields


def bounds_plans(artifact: Artifact) -> bool:
    """Whether the artifact's numbers of plans are bounds from above."""
    return artifact.nondeterministic or artifact.relaxed is not None


def relaxed_texts(artifact: Artifact) -> list[str]:
    """What the artifact leaves to a run: limits in canonical text, the rest for people."""
    if artifact.relaxed is None:
        return []
    from tcc_certs.grammar import Limit
    from tcc_compiler.constraint.statements import statement_text
    from tcc_compiler.relax.names import relaxed_statements

    core = artifact.core
    return [
        statement.text if isinstance(statement, Limit) else statement_text(core, statement)
        for statement in relaxed_statements(core, artifact.relaxed)
    ]


def _counts(fields: dict[str, Any]) -> str:
    """Which kind of counts, and why they are bounds where they are."""
    reasons = ["derivations are counted"] if fields["nondeterministic"] else []
    if fields["relaxed"]:
        reasons.append(f"left to the run: {', '.join(fields['relaxed'])}")
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
    rows: list[tuple[str, object]] = [
        ("grammar", f"{fields['grammar']} {fields['version']}"),
        ("plans", f"at most {plans}" if bounds_plans(artifact) else plans),
        ("counts", _counts(fields)),
        ("states", f"{screen.big(fields['states'])}, {screen.big(fields['edges'])} edges"),
        ("calls", f"{fields['calls']}, at most {fields['max_depth']} in a plan"),
        ("cheapest", least),
        ("race", f"tilt {fields['tilt']}, beta {fields['beta']}"),
        ("root state", fields["root_state"]),
        ("digest", fields["digest"]),
    ]
    screen.print_fields(rows)
    if "plans_by_depth" in fields:
        click.echo("  plans by number of calls")
        for calls, count in enumerate(fields["plans_by_depth"]):
            if count != "0":
                click.echo(f"  {calls:>10}  {screen.big_text(count)}")
