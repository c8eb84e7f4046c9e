"""The statements of a grammar as sentences, each with what enforces it.

Meanings: docs/spec/language.md, sections 7 and 8.  The statement itself stands beside its sentence,
and is what holds.
Cost: linear in the core; what is shown is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from tcc.pages.blocks import badge, code, left_out, table
from tcc.pages.frame import Mood, Section
from tcc.pages.markup import Html, joined
from tcc_certs.core.enforced import type_text
from tcc_certs.core.model import (
    Core,
    Forbid,
    ForbidBefore,
    ForbidNext,
    ForbidWith,
    Limit,
    Monitor,
    OrderMonitor,
    Require,
    SumMonitor,
    UsesMonitor,
)
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.manifest import Relaxed
from tcc_certs.formats.names import written
from tcc_runtime.questions.texts import Texts

Where = Literal["automaton", "run", "gate"]
MOST: Final = 200
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


def statements_section(core: Core, relaxed: Relaxed | None) -> Section:
    """All statements as sentences."""
    said = list(_all(core, Relaxed() if relaxed is None else relaxed))
    rows = [(one.sentence, code(one.text), badge(*_WORDS[one.where])) for one in said[:MOST]]
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


def _all(core: Core, relaxed: Relaxed) -> Iterator[Said]:
    texts = Texts(core)
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


def _limit(core: Core, limit: Limit) -> Html:
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


def _require(of: Require, texts: Texts) -> Html:
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


def _forbid(of: Forbid, texts: Texts) -> Html:
    match of:
        case ForbidNext(patterns):
            if len(patterns) == 1:
                return joined(["No plan calls ", code(texts.pattern(patterns[0])), "."])
            row = joined(
                [code(texts.pattern(pattern)) for pattern in patterns[:8]],
                ", directly followed by ",
            )
            return joined(["No plan has ", row, " and so on." if len(patterns) > 8 else "."])
        case ForbidBefore(first, second):
            first_text, second_text = code(texts.pattern(first)), code(texts.pattern(second))
            return joined(
                ["No call of ", first_text, " comes anywhere before a call of ", second_text, "."]
            )
        case ForbidWith(first, second):
            first_text, second_text = code(texts.pattern(first)), code(texts.pattern(second))
            return joined(
                ["No plan has both a call of ", first_text, " and a call of ", second_text, "."]
            )


def _monitor(core: Core, of: Monitor) -> Html:
    match of:
        case SumMonitor(tool=tool, parameter=parameter, value=value):
            name = f"{written(core.tools[tool].name)}.{written(parameter)}"
            return joined(
                ["The values of ", code(name), f" in a session add up to at most {value}."]
            )
        case UsesMonitor(calls=calls, per=per, value=value):
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
        case OrderMonitor():
            return _order(core, of)


def _order(core: Core, of: OrderMonitor) -> Html:
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
