"""Page of an artifact: its plans, its statements, and how they were checked.

All content comes from an artifact whose certificates were checked.  The functions of `tcc
cheapest`, `tcc sample`, `tcc why` and `tcc diff` provide plans and reasons.
Cost: these functions, and a picture of at most `_STATES` states.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tcc import screen
from tcc.describe import bounds_plans, calls_text, describe, plans_text
from tcc.library.plan_questions import Picked, cheapest, compare_written, headline, rows, sample
from tcc.pages import (
    Html,
    Mood,
    Page,
    Section,
    Verdict,
    badge,
    bar_chart,
    calls,
    code,
    element,
    grouped,
    joined,
    left_out,
    note,
    numbered,
    scrolled,
    table,
    under,
)
from tcc.pages.near_misses import near_miss_section, near_misses
from tcc.pictures import picture_of
from tcc.pictures.svg import svg_text
from tcc_certs.errors import Rejected, clip
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.listing import ListedStatement, listed_statements
from tcc_certs.policy.nodes import definition_text
from tcc_certs.policy.plans import Call
from tcc_certs.policy.type_texts import name_text, place_text, type_text
from tcc_certs.values.fields import Field
from tcc_runtime.analysis.statements import PlanTexts
from tcc_runtime.artifact.load import Artifact

MOST_STATEMENTS: Final = 200
_HELD: Mapping[str, tuple[str, Mood]] = {
    "automaton": ("automaton", "good"),
    "both": ("automaton and gate", "doubtful"),
    "gate": ("gate", "doubtful"),
}
_LEFT: tuple[str, Mood] = ("run", "doubtful")


def statements_section(core: Core, relaxed: Collection[int], *, cyclic: bool = False) -> Section:
    """Return the section of statements, each with the place that enforces it."""
    listed = listed_statements(core, relaxed, cyclic=cyclic)
    lets = [element("div", code(definition_text(let))) for let in core.lets[:MOST_STATEMENTS]]
    names = [element("h3", "Names in these statements"), *lets] if lets else []
    rest = left_out(len(lets), len(core.lets), "names")
    return Section(
        name="statements",
        title="What the grammar says",
        lead=_LEAD,
        body=joined([statement_table(listed), *names, rest]),
    )


def statement_table(listed: Sequence[ListedStatement]) -> Html:
    """Return the first 200 statements, each with its reason and the place that enforces it."""
    rows = [_statement_row(one) for one in listed[:MOST_STATEMENTS]]
    body = table(("statement", "held by"), rows, label="Statements")
    return joined([body, left_out(len(rows), len(listed), "statements")])


_LEAD = (
    "The automaton allows no plan that breaks a statement that it holds. A run keeps the "
    "statements that are left to it. The gate decides every call by all statements; some depend "
    "on values or times that no plan has, and only the gate holds these."
)


def _statement_row(one: ListedStatement) -> tuple[object, ...]:
    parts: list[object] = []
    if one.because is not None:
        parts.append(element("div", one.because))
    parts.append(element("div", code(one.text)))
    if one.holds is not None and not one.relaxed:
        parts.append(element("div", "The automaton holds: ", code(one.holds)))
    return joined(parts), badge(*(_LEFT if one.relaxed else _HELD[one.place]))


def plan_section(core: Core) -> Section:
    """Return the section with the plan expression, the rules, the start and the goals."""
    texts = PlanTexts(core)
    lines = [f"plan = {texts.expression(core.plan)}"]
    lines += [f"rule {name} = {texts.expression(body)}" for name, body in core.rules.items()]
    if core.start is not None:
        lines += [f"start {core.start}", f"goal {' | '.join(core.goals)}"]
    lines += [f"strict {name_text(tool.name)}" for tool in core.tools if tool.strict]
    shown = [element("div", code(clip(line, _WIDEST))) for line in lines[:MOST_STATEMENTS]]
    return Section(
        name="plan",
        title="The shape of a plan",
        lead="A plan is a sequence of calls of this shape that satisfies every statement.",
        body=joined([*shown, left_out(len(shown), len(lines), "rules")]),
    )


_WIDEST: Final = 2000


# The state diagram: the picture of `tcc graph`, embedded as an image.  An image runs no script and
# loads nothing, whatever texts it contains, and it follows the light or dark mode.

_STATES: Final = 14


def diagram_section(artifact: Artifact) -> Section:
    """Return the section with a diagram of the states nearest to the root."""
    picture = picture_of(artifact, _STATES)
    drawn = base64.b64encode(svg_text(picture).encode("utf-8")).decode("ascii")
    label = f"State diagram of {picture.title}"
    image = element("img", src=f"data:image/svg+xml;base64,{drawn}", alt=label, class_="picture")
    left_out = f"Shown: {picture.left_out}." if picture.left_out is not None else ""
    more = "tcc graph A --format html is a page to look around in."
    return Section(
        name="states",
        title="State diagram",
        lead="A state is everything that may still follow; an arrow has the calls that lead on.",
        body=joined([scrolled(image, label), note(f"{left_out} {more}".strip())]),
    )


# The table of tools: their fields, the costs of their calls, their signatures.

MOST_TOOLS: Final = 100
_MOST_VALUES: Final = 12


def tools_section(core: Core) -> Section:
    """Return the section of the tools, in the order of the grammar."""
    by_tool: dict[int, list[Call]] = {}
    for call in core.calls:
        by_tool.setdefault(call.tool, []).append(call)
    rows = [_row(tool, by_tool.get(at, [])) for at, tool in enumerate(core.tools[:MOST_TOOLS])]
    names = ("tool", "fields", "calls", "cost", "price", "latency")
    lead = (
        "Plans distinguish the calls of a tool by the values of its listed fields. Cost is what a "
        "search makes small; price is in the grammar's unit, latency in milliseconds."
    )
    return Section(
        name="tools",
        title="Tools",
        lead=lead,
        body=joined(
            [
                table(names, rows, label="Tools", numbers="calls cost price latency"),
                left_out(len(rows), len(core.tools), "tools"),
            ]
        ),
    )


def _row(tool: Tool, made: Sequence[Call]) -> tuple[object, ...]:
    marks = [badge("strict")] if tool.strict else []
    if tool.takes is not None or tool.gives is not None:
        marks.append(
            element("span", f"{tool.takes or ''} \u2192 {tool.gives or ''}", class_="note")
        )
    name = joined([element("b", code(name_text(tool.name))), *marks], " ")
    fields = [_field(one, "") for one in tool.arguments]
    fields += [_field(one, " answered by the tool") for one in tool.answers]
    low = min((call.cost_low for call in made), default=0)
    high = max((call.cost_high for call in made), default=0)
    return (
        name,
        joined([element("div", field) for field in fields]) if fields else element("em", "none"),
        len(made),
        _span(format_decimal(low, 9), format_decimal(high, 9)),
        _span(*_least_and_most([call.price for call in made])),
        _span(*_least_and_most([call.latency for call in made])),
    )


def _field(field: Field, said: str) -> Html:
    name = code(f"{name_text(field.name)}{'?' * field.optional}")
    if field.type is not None:
        kind = code(f"{type_text(field.type)}{place_text(field)}")
        return joined([name, ": ", kind, element("i", said)])
    values = [clip(value, 60) for value in field.values if value]
    more = len(values) - _MOST_VALUES
    text = " | ".join(values[:_MOST_VALUES]) + (f" | and {more} more" if more > 0 else "")
    return joined([name, ": ", element("span", text), element("i", said)])


def _least_and_most(amounts: Sequence[int]) -> tuple[str, str]:
    return (str(min(amounts, default=0)), str(max(amounts, default=0)))


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} \u2013 {high}"


_PLANS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The inputs of an artifact's page.

    Attributes:
        artifact: the artifact.
        verdict: the verdict on it.
        since: an older artifact to compare with, or None.
    """

    artifact: Artifact
    verdict: Verdict
    since: Artifact | None = None


def artifact_page(known: Known) -> Page:
    """Build the page of an artifact."""
    artifact = known.artifact
    fields = describe(artifact)
    sections = [] if artifact.cyclic else [_numbers(artifact, fields)]
    sections.append(tools_section(artifact.core))
    sections.append(plan_section(artifact.core))
    relaxed = artifact.manifest.relaxed
    sections.append(statements_section(artifact.core, relaxed, cyclic=artifact.cyclic))
    if not artifact.cyclic:
        sections += [diagram_section(artifact), *_plans(artifact)]
    if known.since is not None:
        sections.append(_change(known.since, artifact))
    return Page(
        kind="artifact",
        title=f"{clip(fields['grammar'])} {clip(fields['version'])}",
        verdict=known.verdict,
        facts=_facts(artifact, fields),
        sections=sections,
    )


def _facts(artifact: Artifact, fields: dict[str, Any]) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("plans", plans_text(artifact)),
        ("calls", calls_text(fields)),
        ("least cost", fields["min_cost"]),
        ("states", f"{screen.big(fields['states'])}, {screen.big(fields['edges'])} edges"),
        ("race", f"tilt {fields['tilt']}, beta {fields['beta']}"),
        ("digest", code(fields["digest"])),
    ]
    if not artifact.cyclic:
        return facts
    return [fact for fact in facts if fact[0] not in ("least cost", "race")]


def _numbers(artifact: Artifact, fields: dict[str, Any]) -> Section:
    bound = bounds_plans(artifact)
    count = grouped(fields["plans"])
    said = f"{'At most ' if bound else ''}{count} plans."
    kind = badge("upper bound", "doubtful") if bound else badge("exact", "good")
    parts: list[object] = [element("p", element("b", said), " ", kind)]
    by_depth = fields.get("plans_by_depth")
    if by_depth is not None and len(by_depth) > 1:
        parts += [element("h3", "Plans by their number of calls"), _by_depth(by_depth, bound)]
    if fields["relaxed"]:
        parts.append(
            note("Left to the run: ", joined([code(text) for text in fields["relaxed"][:20]], ", "))
        )
    return Section(
        name="numbers",
        title="How many plans there are",
        lead="Counted by a local equation at each state, which the verdict above has checked.",
        body=joined(parts),
    )


def _by_depth(counts: list[str], bound: bool) -> Html:
    """Return a bar chart and a table of plans by number of calls.

    A bar is as high as its number has digits, because the number may have thousands.
    """
    shown = counts[:200]
    most = "at most " if bound else ""
    bars = [
        (
            str(at),
            0.0 if count == "0" else _digits(count),
            f"{at} calls: {most}{screen.big_text(count)} plans",
        )
        for at, count in enumerate(shown)
    ]
    rows = [(at, f"{most}{grouped(count)}") for at, count in enumerate(shown) if count != "0"]
    listed = element(
        "details",
        element("summary", "The numbers"),
        table(("calls", "plans"), rows, label="Plans by number of calls", numbers="calls plans"),
    )
    label = "Plans by their number of calls; a bar is as high as its number has digits"
    return joined(
        [bar_chart(bars, across="calls in a plan", label=label), note(f"{label}."), listed]
    )


def _digits(count: str) -> float:
    """Return roughly the decimal logarithm of a positive number, for the height of a bar."""
    return len(count) - 1 + int(count[:3].ljust(3, "0")) / 1000 + 0.05


def _plans(artifact: Artifact) -> Iterator[Section]:
    try:
        cheap = cheapest(artifact, _PLANS)
        drawn = sample(artifact, _PLANS, seed=artifact.digest)
        missed = near_misses(artifact, [plan.calls for plan in (*cheap, *drawn)])
    except Rejected as refusal:
        body = element("p", f"Not shown: {refusal}.")
        yield Section(name="plans", title="Plans", body=body)
        return
    yield Section(
        name="plans",
        title="Plans it allows",
        lead="The cheapest, and some drawn at random, each plan as likely as any other.",
        body=joined(
            [
                element("h3", "The cheapest"),
                _listed(cheap),
                element("h3", "Drawn at random"),
                _listed(drawn),
                note("The draw follows from the digest: the same artifact shows the same plans."),
            ]
        ),
    )
    yield near_miss_section(missed)


def _listed(plans: list[Picked]) -> Html:
    if not plans:
        return element("p", "There is no plan.")
    return numbered(
        joined(
            [
                calls(plan.calls),
                under(element("b", f"cost {plan.cost}"), f", {len(plan.calls)} calls"),
            ]
        )
        for plan in plans
    )


def _change(old: Artifact, new: Artifact) -> Section:
    found = compare_written(old, new)
    said = element("p", element("b", f"{headline(found)}."))
    listed = [(name.strip(), clip(value, 400)) for name, value in rows(found)]
    mood = "bad" if found.breaks() else "good"
    word = "may allow more" if found.breaks() else "allows nothing more"
    return Section(
        name="change",
        title="Change since the older one",
        lead=joined(["Compared with the artifact ", code(old.digest.hex()), "."]),
        body=joined(
            [
                said,
                element("p", badge(word, "bad" if mood == "bad" else "good")),
                table(("what", "how"), listed, label="Changes"),
            ]
        ),
    )
