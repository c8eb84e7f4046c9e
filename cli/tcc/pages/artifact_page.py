"""Page of an artifact: what it allows, what it forbids, and how that was shown.

Everything comes from the artifact, whose certificates were checked before; plans and reasons come
from the code of `tcc cheapest`, `tcc sample`, `tcc why` and `tcc diff`.
Cost: that of these questions, and of a picture of at most `_STATES` states.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tcc import screen
from tcc.describe import bounds_plans, describe
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
from tcc_certs.core import model
from tcc_certs.core.type_texts import type_text
from tcc_certs.errors import Rejected, clip
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.formats.codec import format_decimal, written
from tcc_runtime.analysis.statements import StatementTexts
from tcc_runtime.artifact.load import Artifact

Where = Literal["automaton", "run", "gate"]
MOST_STATEMENTS: Final = 200
_WORDS: dict[Where, tuple[str, Mood]] = {
    "automaton": ("automaton", "good"),
    "run": ("run", "doubtful"),
    "gate": ("gate", "doubtful"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A statement, in words."""

    sentence: Html
    text: str
    where: Where


def statements_section(core: model.Core, relaxed: Relaxed | None) -> Section:
    """All statements as sentences."""
    said = list(_all(core, Relaxed() if relaxed is None else relaxed))
    rows = [
        (one.sentence, code(one.text), badge(*_WORDS[one.where])) for one in said[:MOST_STATEMENTS]
    ]
    body = table(("what holds", "as it is written", "enforced by"), rows, label="Statements")
    return Section(
        name="statements",
        title="What the grammar says",
        lead=_LEAD,
        body=joined([body, left_out(len(rows), len(said), "statements")]),
    )


_LEAD = (
    "The automaton allows no plan that breaks what it enforces. What is left to the run is looked "
    "at by every run, and by who asks for plans. What is left to the gate depends on values that "
    "no plan has: it is held where calls are made, and only there."
)


def _all(core: model.Core, relaxed: Relaxed) -> Iterator[Said]:
    texts = StatementTexts(core)
    plan = f"plan = {texts.expression(core.plan)}"
    yield _held("A plan has this shape; the rules below are its parts.", plan)
    for name, body in core.rules.items():
        rule = f"rule {written(name)} = {texts.expression(body)}"
        yield _held(joined(["Where ", code(written(name)), " is named, this may stand."]), rule)
    if core.start is not None:
        yield _held(
            joined(["A plan begins with ", code(core.start), " in hand."]), f"start {core.start}"
        )
        goals = " | ".join(core.goals)
        yield _held(joined(["It may end with ", code(goals), " in hand."]), f"goal {goals}")
    for tool in core.tools:
        if tool.strict:
            name = written(tool.name)
            sentence = joined(
                [code(name), " is called only where a plan goes on after every answer it may give."]
            )
            yield _held(sentence, f"strict {name}")
    for at, limit in enumerate(core.limits):
        yield _said(_limit(core, limit), texts.limit(limit), at in relaxed.limits)
    for at, require in enumerate(core.requires):
        left = at in relaxed.requires
        yield _said(_require(require, texts), texts.require(require), left)
    for at, forbid in enumerate(core.forbids):
        yield _said(_forbid(forbid, texts), texts.forbid(forbid), at in relaxed.forbids)
    for monitor in core.monitors:
        yield Said(sentence=_monitor(core, monitor), text=monitor.text, where="gate")
    for tool in core.tools:
        for opened in tool.opened:
            name = f"{written(tool.name)}.{written(opened.name)}"
            kind = type_text(opened.type)
            may = "may be left out; given, it is" if opened.optional else "is always given, and is"
            yield Said(
                sentence=joined([code(name), f" {may} ", code(kind), "."]),
                text=f"{name}{'?' if opened.optional else ''}: {kind}",
                where="gate",
            )


def _held(sentence: object, text: str) -> Said:
    return Said(sentence=joined([sentence]), text=text, where="automaton")


def _said(sentence: Html, text: str, left: bool) -> Said:
    return Said(sentence=sentence, text=text, where="run" if left else "automaton")


def _limit(core: model.Core, limit: model.Limit) -> Html:
    amount = f"{limit.value}"
    match limit.kind:
        case "depth":
            return joined([f"A plan has at most {_times(limit.value, 'call')}."])
        case "uses":
            counted = code(limit.text.partition("(")[2].rpartition(")")[0])
            most = "at least" if limit.least else "at most"
            return joined(["A plan calls ", counted, f" {most} {_times(limit.value, 'time')}."])
        case "price":
            return joined([f"The prices of its calls add up to at most {amount} units of price."])
        case "latency":
            return joined([f"The latencies of its calls add up to at most {amount} ms."])
        case "sum" if limit.parameter is not None:
            tool = core.tools[limit.parameter[0]]
            name = f"{written(tool.name)}.{written(tool.parameters[limit.parameter[1]].name)}"
            most = format_decimal(limit.value, 9)
            return joined(["The values of ", code(name), f" in a plan add up to at most {most}."])
        case kind:
            most = format_decimal(limit.value, 9)
            return joined([f"The {kind} of a plan is at most {most}."])


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _require(of: model.Require, texts: StatementTexts) -> Html:
    first, second = code(texts.pattern(of.first)), code(texts.pattern(of.second))
    match of.order:
        case "before":
            return joined(
                ["Every call of ", second, " has a call of ", first, " somewhere before it."]
            )
        case "after":
            return joined(
                ["Every call of ", second, " has a call of ", first, " somewhere after it."]
            )
        case "each":
            return joined(
                [
                    "Every call of ",
                    second,
                    " has a call of ",
                    first,
                    " of its own: one since the ",
                    second,
                    " before it.",
                ]
            )


def _forbid(of: model.Forbid, texts: StatementTexts) -> Html:
    match of:
        case model.ForbidNext(patterns):
            if len(patterns) == 1:
                return joined(["No plan calls ", code(texts.pattern(patterns[0])), "."])
            row = joined(
                [code(texts.pattern(pattern)) for pattern in patterns[:8]],
                ", directly followed by ",
            )
            return joined(["No plan has ", row, " and so on." if len(patterns) > 8 else "."])
        case model.ForbidBefore(first, second):
            first_text, second_text = code(texts.pattern(first)), code(texts.pattern(second))
            return joined(
                ["No call of ", first_text, " comes anywhere before a call of ", second_text, "."]
            )
        case model.ForbidWith(first, second):
            first_text, second_text = code(texts.pattern(first)), code(texts.pattern(second))
            return joined(
                ["No plan has both a call of ", first_text, " and a call of ", second_text, "."]
            )


def _monitor(core: model.Core, of: model.Monitor) -> Html:
    match of:
        case model.SumMonitor(tool=tool, parameter=parameter, value=value):
            name = f"{written(core.tools[tool].name)}.{written(parameter)}"
            return joined(
                ["The values of ", code(name), f" in a session add up to at most {value}."]
            )
        case model.UsesMonitor(calls=calls, per=per, value=value):
            name = written(core.tools[calls.tool].name)
            return joined(
                [
                    "With one value of ",
                    code(per),
                    ", ",
                    code(name),
                    f" is called at most {_times(value, 'time')}.",
                ]
            )
        case model.OrderMonitor():
            return _order(core, of)
        case model.PolicyMonitor(text=text):
            return joined(["Held call by call: ", code(text), "."])


def _order(core: model.Core, of: model.OrderMonitor) -> Html:
    first = code(written(core.tools[of.first.tool].name))
    second = code(written(core.tools[of.second.tool].name))
    pairs = [a if a == b else f"{a} = {b}" for a, b in of.same]
    same = joined(["the same ", joined([code(pair) for pair in pairs], ", ")])
    if of.kind == "forbid":
        way = "together with" if of.order == "with" else "before"
        return joined(["No call of ", first, f" {way} a call of ", second, " with ", same, "."])
    own = ", one for each" if of.order == "each" else ""
    return joined(
        ["Every call of ", second, " has a call of ", first, " before it with ", same, f"{own}."]
    )


# The state diagram: the picture of `tcc graph` as an image, which runs no script and fetches
# nothing whatever its texts are, and follows light and dark by itself.

_STATES: Final = 14


def diagram_section(artifact: Artifact) -> Section:
    """The first states, nearest to the root first."""
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


# The table of tools: parameters, what a call costs, signatures.

MOST_TOOLS: Final = 100
_MOST_VALUES: Final = 12


def tools_section(core: model.Core) -> Section:
    """The tools, in the order of the grammar."""
    by_tool: dict[int, list[model.Call]] = {}
    for call in core.calls:
        by_tool.setdefault(call.tool, []).append(call)
    rows = [_row(tool, by_tool.get(at, [])) for at, tool in enumerate(core.tools[:MOST_TOOLS])]
    names = ("tool", "parameters", "calls", "cost", "price", "latency")
    lead = (
        "A call is a tool with one value for each listed parameter. Cost is what a search makes "
        "small; price is in the grammar's unit, latency in milliseconds."
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


def _row(tool: model.Tool, made: Sequence[model.Call]) -> tuple[object, ...]:
    marks = [badge("strict")] if tool.strict else []
    if tool.takes is not None or tool.gives is not None:
        marks.append(
            element("span", f"{tool.takes or ''} \u2192 {tool.gives or ''}", class_="note")
        )
    name = joined([element("b", code(written(tool.name))), *marks], " ")
    parameters = [element("div", part) for part in _parameters(tool)]
    low = min((call.cost_low for call in made), default=0)
    high = max((call.cost_high for call in made), default=0)
    return (
        name,
        joined(parameters) if parameters else element("em", "none"),
        len(made),
        _span(format_decimal(low, 9), format_decimal(high, 9)),
        _span(*_least_and_most([call.price for call in made])),
        _span(*_least_and_most([call.latency for call in made])),
    )


def _parameters(tool: model.Tool) -> Iterator[Html]:
    for parameter in tool.parameters:
        shown = [clip(value, 60) or "(absent)" for value in parameter.values[:_MOST_VALUES]]
        more = len(parameter.values) - len(shown)
        values = " | ".join(shown) + (f" | and {more} more" if more else "")
        said = " answered by the tool" if parameter.observed else ""
        yield joined(
            [code(written(parameter.name)), ": ", element("span", values), element("i", said)]
        )
    for opened in tool.opened:
        optional = "?" if opened.optional else ""
        yield joined(
            [
                code(written(opened.name) + optional),
                ": ",
                code(type_text(opened.type)),
                element("i", " any value of the type"),
            ]
        )


def _least_and_most(amounts: Sequence[int]) -> tuple[str, str]:
    return (str(min(amounts, default=0)), str(max(amounts, default=0)))


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} \u2013 {high}"


_PLANS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a page of an artifact is made from.

    Attributes:
        since: the artifact that it is compared with, if any.
    """

    artifact: Artifact
    verdict: Verdict
    since: Artifact | None = None


def artifact_page(known: Known) -> Page:
    """The whole page."""
    artifact = known.artifact
    fields = describe(artifact)
    sections = [_numbers(artifact, fields), tools_section(artifact.core)]
    sections.append(statements_section(artifact.core, artifact.relaxed))
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
    most = "at most " if bounds_plans(artifact) else ""
    return [
        ("plans", f"{most}{screen.big_text(fields['plans'])}"),
        ("calls", f"{fields['calls']}, at most {fields['max_depth']} in a plan"),
        ("least cost", fields["min_cost"]),
        ("states", f"{screen.big(fields['states'])}, {screen.big(fields['edges'])} edges"),
        ("race", f"tilt {fields['tilt']}, beta {fields['beta']}"),
        ("digest", code(fields["digest"])),
    ]


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
    """Bars are as high as the number has digits: it may have thousands."""
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
    """About the logarithm: digits, and what the first ones are of the next."""
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
    word = "lets more through" if found.breaks() else "lets nothing more through"
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
