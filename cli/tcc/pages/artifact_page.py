"""The page of an artifact: what it allows, what it forbids, and what shows that.

Everything comes from the artifact, whose certificates were checked before; plans and reasons from
the same rooms as `tcc cheapest`, `tcc sample`, `tcc why` and `tcc diff`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tcc import screen
from tcc.change_report import headline, rows
from tcc.describe import bounds_plans, describe
from tcc.differing import compare_written
from tcc.pages.blocks import badge, calls, code, grouped, note, numbered, table, under
from tcc.pages.charts import bar_chart
from tcc.pages.diagram import diagram_section
from tcc.pages.frame import Page, Section, Verdict
from tcc.pages.markup import Html, element, joined
from tcc.pages.near_misses import near_miss_section, near_misses
from tcc.pages.sentences import statements_section
from tcc.pages.tools import tools_section
from tcc.picking import Picked, cheapest, sample
from tcc_certs.errors import Rejected, clip
from tcc_runtime.artifact.load import Artifact

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
