"""What is in an artifact, as the fields that ``inspect`` and ``compile`` show."""

from __future__ import annotations

from typing import Any

import click

from tcc import screen
from tcc_certs.fixed import format_decimal
from tcc_runtime.load import Artifact
from tcc_runtime.plans import cheapest_plan, plans_by_depth

_CHEAP = 5_000_000


def describe(artifact: Artifact, *, by_depth: bool = False) -> dict[str, Any]:
    """The JSON fields; `plans_by_depth` where it is cheap, or where `by_depth` asks for it."""
    manifest, root = artifact.manifest, artifact.root
    depth = artifact.rank(root)
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
        "min_cost_plan": list(cheapest_plan(artifact)),
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "relaxed": [],
    }
    if by_depth or depth * manifest.edges <= _CHEAP:
        fields["plans_by_depth"] = [screen.decimal(n) for n in plans_by_depth(artifact)]
    return fields


def print_description(artifact: Artifact, fields: dict[str, Any]) -> None:
    """The same for people."""
    plan = " ".join(fields["min_cost_plan"]) or "(the empty plan)"
    rows: list[tuple[str, object]] = [
        ("grammar", f"{fields['grammar']} {fields['version']}"),
        ("plans", f"{screen.big(artifact.plans(artifact.root))} ({fields['counts']})"),
        ("states", f"{screen.big(fields['states'])}, {screen.big(fields['edges'])} edges"),
        ("calls", f"{fields['calls']}, at most {fields['max_depth']} in a plan"),
        ("cheapest", f"{fields['min_cost']}: {plan}"),
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
