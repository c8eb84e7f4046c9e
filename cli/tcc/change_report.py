"""A comparison for people and for pull requests: text, Markdown, workflow commands of GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tcc import screen
from tcc.annotations import command
from tcc.differing import amount_text, change_text
from tcc.found import Found, Place
from tcc.written import statement_line
from tcc_certs.core.enforced import shortened
from tcc_runtime.questions.comparison import Amounts, Comparison
from tcc_runtime.questions.difference import OneSided

_SAID = {
    "equal": "the plans are the same",
    "narrower": "plans were taken away, none was added",
    "wider": "plans were added, none was taken away",
    "incomparable": "plans were added, and others taken away",
}


def headline(found: Comparison) -> str:
    """The verdict in a line."""
    if found.verdict is None:
        return f"undecided: only bounds are known ({found.reason})"
    return f"{found.verdict}: {_SAID[found.verdict]}"


def rows(found: Comparison) -> Iterator[tuple[str, str]]:
    """What there is to say, name and text; what did not change is left out."""
    most = "" if found.counts == "exact" else "at most "
    for name, side, because in (
        ("added", found.added, found.because_added),
        ("removed", found.removed, found.because_removed),
    ):
        yield name, f"{most}{screen.big(side.plans)} plans"
        yield from _witnesses(side)
        for statement in because:
            yield "  by a change of", statement_line(statement)
    yield "common", f"{most}{screen.big(found.common)} plans"
    if found.calls is not None:
        for name, texts in (
            ("new calls", found.calls.added),
            ("calls gone", found.calls.removed),
            ("amounts", tuple(map(_amounts, found.calls.amounts))),
        ):
            if texts:
                yield name, shortened(texts)
    for change in (*found.monitors, *found.opened):
        what = "added" if change.old is None else "removed" if change.new is None else "changed"
        kind = "monitor" if change.of == "monitor" else "parameter"
        yield f"{kind} {what}", f"{change_text(change)} ({change.sense})"


def _witnesses(side: OneSided) -> Iterator[tuple[str, str]]:
    for name, plan in (("shortest", side.shortest), ("cheapest", side.cheapest)):
        if plan is not None:
            yield f"  {name}", " ".join(plan) or "(the empty plan)"


def _amounts(found: Amounts) -> str:
    changed = [
        f"{name} {amount_text(name, old)} -> {amount_text(name, new)}"
        for name, old, new in found.changes
    ]
    return f"{found.call}: {', '.join(changed)}"


def print_text(found: Comparison, breaking: bool) -> None:
    """For a terminal."""
    (screen.bad if breaking else screen.good)(headline(found))
    screen.print_fields(rows(found))


def print_markdown(found: Comparison, breaking: bool) -> None:
    """For a comment under a pull request."""
    screen.say(f"### {'Breaking' if breaking else 'Not breaking'}: {_quoted(headline(found))}")
    screen.say("")
    screen.say("| what | how |")
    screen.say("| --- | --- |")
    for name, text in rows(found):
        screen.say(f"| {name.strip()} | {_quoted(text)} |")


def _quoted(text: str) -> str:
    """Text in which nothing is Markdown: marks that mean something are escaped."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|&~-])", r"\\\1", text)


def print_github(found: Comparison, breaking: bool, new: Path) -> None:
    """One workflow command, at the new grammar."""
    level = "error" if breaking else "notice"
    screen.say(command(level, _lines(found), "tcc diff", Place(file=str(new))))


def broken_findings(found: Comparison, breaking: bool, new: Path) -> list[Found]:
    """A breaking change as a finding about the new grammar; none where it breaks nothing."""
    if not breaking:
        return []
    return [Found(code="TCC860", message=_lines(found), place=Place(file=str(new)))]


def _lines(found: Comparison) -> str:
    return "\n".join([headline(found), *(f"{name.strip()}: {text}" for name, text in rows(found))])
