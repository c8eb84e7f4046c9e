"""Results as JSON values (:func:`tcc.to_json`), and the contents of an artifact as text.

``inspect`` and ``compile`` show the same fields.  Fields about open arguments, answers, errors,
attributes and `let`s appear only if the core declares some.  Modules of results are imported on
use.  Cost: linear in the tools.  Plans are counted by depth only if that is cheap or requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tcc import screen
from tcc.contents import declared_lines, word_lines, zone_texts
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.listing import (
    ListedStatement,
    enforced_json,
    listed_statements,
    relaxed_texts,
    shortened,
    statement_lines,
    statements_json,
)
from tcc_certs.policy.nodes import definition_text
from tcc_certs.policy.plans import OneCall, Repeat
from tcc_certs.policy.type_texts import field_text, name_text
from tcc_runtime.artifact.load import Artifact, CompilerDiagnostic
from tcc_runtime.artifact.plans import cheapest_plan, plans_by_depth

if TYPE_CHECKING:
    from tcc.library.plan_questions import Why
    from tcc_certs.replay import Validation
    from tcc_certs.report import CheckReport
    from tcc_certs.session import SessionValidation
    from tcc_runtime.analysis.comparison import Comparison
    from tcc_runtime.outcome import Run

Result: TypeAlias = (
    "Run | Artifact | CheckReport | Validation | SessionValidation | Comparison | Why"
)


def to_json(result: Result) -> dict[str, Any]:
    """Return a result as dicts, lists, texts, numbers and None, as ``json.dumps`` takes them.

    Args:
        result: a run, an artifact, the report of a check or a validation, a comparison, or an
            answer to why.  Each gives the document of its command with ``--json``: ``run``,
            ``inspect``, ``check``, ``validate``, ``diff``, ``why``.

    Returns:
        an object whose first members are ``format`` and ``format_version``.  Numbers that may
        exceed 2^53 are texts.

    Raises:
        TypeError: `result` has none of these types.
    """
    from tcc.library.plan_questions import Why, diff_output, why_output
    from tcc.library.running import run_fields
    from tcc.outputs.grammars import InspectOutput
    from tcc_certs.replay import Validation
    from tcc_certs.report import CheckReport
    from tcc_certs.session import SessionValidation
    from tcc_certs.verbs.check import document as check_document
    from tcc_certs.verbs.session import session_document
    from tcc_certs.verbs.validate import document as run_document
    from tcc_runtime.analysis.comparison import Comparison
    from tcc_runtime.outcome import Run

    match result:
        case Run():
            name, fields = "run", run_fields(result)
        case Artifact():
            name, fields = "inspect", InspectOutput(**describe(result)).as_fields()
        case CheckReport():
            name, fields = "check", dict(check_document(result))
        case Validation():
            name, fields = "validate", dict(run_document(result))
        case Comparison():
            name, fields = "diff", diff_output(result, breaking=False).as_fields()
            del fields["breaking"]  # the command adds which changes are breaking
        case Why():
            name, fields = "why", why_output(result).as_fields()
        case SessionValidation():
            name, fields = "validate", dict(session_document(result))
        case _:
            raise TypeError(
                f"a run, an artifact or a report is needed, not {type(result).__name__}"
            )
    return screen.headed(name, fields)


_CHEAP = 5_000_000


def statements_of(artifact: Artifact) -> tuple[ListedStatement, ...]:
    """Return the statements of an artifact's core."""
    return listed_statements(artifact.core, artifact.relaxed, cyclic=artifact.cyclic)


def lines_of(artifact: Artifact) -> list[int | None]:
    """Return the line of each statement, or an empty list for an artifact loaded from a file."""
    compiled = artifact.kept.get("written")
    places: Mapping[Any, Any] = getattr(compiled, "places", {})
    if not places:
        return []
    spans = [places.get(number) for number in range(len(artifact.core.statements))]
    return [None if span is None else span.line for span in spans]


def listed_of(artifact: Artifact) -> list[Any]:
    """Return the JSON member `statements` of an artifact's documents."""
    return statements_json(statements_of(artifact), lines_of(artifact))


def describe(artifact: Artifact, *, by_depth: bool = False) -> dict[str, Any]:
    """Return the JSON fields that describe an artifact.

    Args:
        by_depth: whether to add `plans_by_depth` even if counting is expensive.

    Raises:
        Rejected: D204, `by_depth` is true and the artifact has cycles.
    """
    manifest = artifact.manifest
    if by_depth:
        artifact.require_bounded()
    statements = statements_of(artifact)
    fields: dict[str, Any] = {
        "grammar": manifest.grammar,
        "version": manifest.version,
        "digest": artifact.digest.hex(),
        "root_state": manifest.root.hex(),
        "counts": manifest.counts,
        "plans": None,
        "race_count": None,
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "max_depth": artifact.core.depth,
        "min_cost": None,
        "min_cost_plan": None,
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "nondeterministic": manifest.nondeterministic,
        "cyclic": manifest.cyclic,
        "round_counts": manifest.round_counts,
        "relaxed": list(relaxed_texts(artifact.core, manifest.relaxed)),
        "enforced": enforced_json(statements),
        "statements": listed_of(artifact),
        **declared(artifact.core),
    }
    if artifact.diagnostics:
        fields["diagnostics"] = [diagnostic_fields(said) for said in artifact.diagnostics]
    return fields if manifest.cyclic else fields | _figures(artifact, by_depth)


def _figures(artifact: Artifact, by_depth: bool) -> dict[str, Any]:
    """Return the fields of counts and costs, which only artifacts without cycles have."""
    root, cheapest = artifact.root, cheapest_plan(artifact)
    depth = artifact.rank(root)
    fields: dict[str, Any] = {
        "plans": screen.decimal(artifact.plans(root)),
        "race_count": None if artifact.manifest.gate else screen.decimal(artifact.race_count(root)),
        "max_depth": depth,
        "min_cost": format_decimal(artifact.cost_to_go(root), 9),
        "min_cost_plan": None if cheapest is None else list(cheapest),
    }
    if by_depth or depth * artifact.manifest.edges <= _CHEAP:
        fields["plans_by_depth"] = [screen.decimal(n) for n in plans_by_depth(artifact)]
    return fields


def plans_text(artifact: Artifact) -> str:
    """Return the number of plans for people, such as `12 345` or `at most 1.23 * 10^20`."""
    if artifact.cyclic:
        return "without a bound" if artifact.core.depth is None else "not counted"
    plans = screen.big(artifact.plans(artifact.root))
    return f"at most {plans}" if bounds_plans(artifact) else plans


def calls_text(fields: Mapping[str, Any]) -> str:
    """Return the number of calls, and the most calls in a plan, for people."""
    most, calls = fields["max_depth"], fields["calls"]
    return (
        f"{calls}, any number in a plan" if most is None else f"{calls}, at most {most} in a plan"
    )


def bounds_plans(artifact: Artifact) -> bool:
    """Return whether the artifact's plan counts are upper bounds instead of exact numbers."""
    manifest = artifact.manifest
    return manifest.nondeterministic or bool(manifest.relaxed) or manifest.gate


def diagnostic_fields(said: CompilerDiagnostic) -> dict[str, Any]:
    """Return a diagnostic of the compiler as the JSON object that every command uses."""
    fields = {"code": said.code, "severity": said.severity, "message": said.message}
    return fields | ({} if said.hint is None else {"hint": said.hint})


def _counts(fields: dict[str, Any]) -> str:
    """Describe the kind of counts for people, and say why they are bounds."""
    reasons = ["derivations are counted"] if fields["nondeterministic"] else []
    if fields["cyclic"]:
        return "none (for a gate: plans have no bound)"
    if fields["race_count"] is None:
        reasons.append("for a gate: no race counts, and plans rounded up")
    if fields["relaxed"]:
        reasons.append(f"left to the run: {shortened(tuple(fields['relaxed']))}")
    if fields["round_counts"] is not None:
        reasons.append(f"race counts rounded up to {fields['round_counts']} bits")
    if fields["counts"] == "exact":
        return "exact suffix counts (SuffixCountDP)"
    return f"{fields['counts']} ({'; '.join(reasons)})"


def has_search(core: Core) -> bool:
    """Return whether a search can prefer a plan: there is a cost or a plan expression."""
    if any(tool.models for tool in core.tools):
        return True
    if any(
        call.cost_low or call.cost_high or call.price or call.latency or call.epsilon
        for call in core.calls
    ):
        return True
    match core.plan:
        case Repeat(body=OneCall(pattern=pattern), low=0, high=None):
            return core.patterns[pattern] != ((0, len(core.calls)),)
    return True


def print_description(artifact: Artifact, fields: dict[str, Any], *, whole: bool = False) -> None:
    """Print the fields of `describe` for people.

    A grammar without costs and without a plan has nothing to search, so its rows `counts`,
    `cheapest` and `race` are left out.

    Args:
        whole: also list the tools and the shape of plans, and explain the words of the statements.
    """
    cheapest = fields["min_cost_plan"]
    if cheapest is None:
        least = f"at least {fields['min_cost']}"
    else:
        least = f"{fields['min_cost']}: {' '.join(cheapest) or '(the empty plan)'}"
    rows: list[tuple[str, object]] = [
        ("grammar", f"{fields['grammar']} {fields['version']}"),
        ("plans", plans_text(artifact)),
        ("counts", _counts(fields)),
        ("states", f"{screen.big(fields['states'])}, {screen.big(fields['edges'])} edges"),
        ("calls", calls_text(fields)),
        ("cheapest", least),
        ("race", f"tilt {fields['tilt']}, beta {fields['beta']}"),
        ("root state", fields["root_state"]),
        ("digest", fields["digest"]),
    ]
    if artifact.cyclic or not has_search(artifact.core):
        rows = [row for row in rows if row[0] not in ("counts", "cheapest", "race")]
    screen.print_fields(rows)
    lines = declared_lines(artifact.core, whole) + statement_lines(statements_of(artifact))
    for line in [*lines, *(word_lines(artifact.core) if whole else [])]:
        screen.say(f"  {line}")
    if "plans_by_depth" in fields:
        most = "at most " if bounds_plans(artifact) else ""
        screen.say("  plans by number of calls")
        for calls, count in enumerate(fields["plans_by_depth"]):
            if count != "0":
                screen.say(f"  {calls:>10}  {most}{screen.big_text(count)}")


def declared(core: Core) -> dict[str, Any]:
    """Return the fields `tools`, `given`, `lets`, `passed` and `zones`; leave out empty ones."""
    tools = [fields for fields in map(_tool, core.tools) if len(fields) > 1]
    given = [_given_text(one) for one in core.given]
    lets = [definition_text(one) for one in core.lets]
    passed = list(core.passed)
    zones = zone_texts(core)
    fields = {"tools": tools, "given": given, "lets": lets, "passed": passed, "zones": zones}
    return {name: found for name, found in fields.items() if found}


def _given_text(one: Given) -> str:
    if not isinstance(one, Learned):
        return field_text(one)
    sources = [f"{name_text(tool)}.{name_text(field)}" for tool, field in one.sources]
    return f"{name_text(one.name)} from {' | '.join(sources)}"


def _tool(tool: Tool) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": tool.name}
    parts = {
        "open": [field_text(one) for one in tool.arguments if one.type is not None],
        "observed": [field_text(one) for one in tool.answers if one.type is None],
        "answers": [field_text(one) for one in tool.answers if one.type is not None],
    }
    fields |= {name: texts for name, texts in parts.items() if texts}
    if tool.strict:
        fields["strict"] = True
    if tool.errors_failed:
        fields["errors"] = "failed"
    return fields
