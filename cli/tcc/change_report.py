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
from tcc_certs.errors import clip
from tcc_runtime.questions.comparison import Amounts, Comparison
from tcc_runtime.questions.difference import OneSided

_WIDEST = 1000
_SAID = {
    "equal": "the plans are the same",
    "narrower": "plans were taken away, none was added",
    "wider": "plans were added, none was taken away",
    "incomparable": "plans were added, and others taken away",
}
_SAID_BESIDE = {
    "narrower": "less is let through",
    "wider": "more is let through",
    "incomparable": "what is let through, or done, is not the same",
    "cost": "amounts are others",
    "other": "what else changed lets the same through",
}
# How a change of a member is named; others by the member's own name.
_KINDS = {"open": "parameter", "observed": "parameter", "values": "values of"}


def headline(found: Comparison) -> str:
    """The verdict in a line."""
    if found.verdict is None:
        return f"undecided: only bounds are known ({found.reason})"
    said = _SAID[found.plans or "equal"]
    if found.verdict != found.plans:
        said = f"{said}; {_SAID_BESIDE[found.verdict]}"
    return f"{found.verdict}: {said}"


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
    for change in (*found.monitors, *found.opened, *found.members):
        what = "added" if change.old is None else "removed" if change.new is None else "changed"
        if change.of == "statement":
            what = {"added": "new", "removed": "gone"}[what]
        kind = _KINDS.get(change.of, change.of)
        yield f"{kind} {what}", f"{clip(change_text(change), _WIDEST)} ({change.sense})"


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


# What GitHub makes a mention or a link of in a comment: names, issues, commits, addresses, emoji.
_LINKED = re.compile(
    r"@|#\w|\bgh-\d|\bwww\.|://|:[+\w-]+:|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])|"
    r"\b(?:mailto|xmpp):|!\d|\[\^",
    re.IGNORECASE,
)


def _quoted(text: str) -> str:
    """Text in which nothing is Markdown, nobody is mentioned and nothing is linked.

    GitHub looks for mentions and references after Markdown was rendered, where an escape is no
    longer seen; in code it looks for none.
    """
    if _LINKED.search(text) is None:
        return re.sub(r"([\\`*_{}\[\]<>()#+!|&~-])", r"\\\1", text)
    # A comment ends what looks like an address to Markdown itself, which knows no element of code.
    inner = re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", text)
    inner = re.sub(r"(&#(?:46|47|58|64);)", r"\1<!-- -->", inner)
    return f"<code>{inner}</code>"


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
