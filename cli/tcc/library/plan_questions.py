"""Questions about plans: `tcc.why`, `tcc.cheapest`, `tcc.sample`; and the output of `tcc diff`.

``why`` finds a smallest set of statements that forbids a sequence of calls, and the nearest plan.
:func:`with_reasons` uses the same search to explain a failing ``accept`` line.  Statements have
their text and place in the file if the grammar was compiled in this process.
Cost: the bounded cost of :mod:`tcc_runtime.analysis`; `with_reasons` explains only the first lines.
"""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from tcc.library import Given, artifact_of
from tcc.library.expecting import session_line
from tcc.library.proving import TIMEOUT, gate_of
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.nodes import Forbid, Require, statement_text, text_of
from tcc_certs.values.places import listed_states
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_runtime.analysis.blame import Blame, blame
from tcc_runtime.analysis.draws import UNIFORM, draws
from tcc_runtime.analysis.graph import PlanGraph, graph_of, nearest_plan
from tcc_runtime.analysis.statements import StatementPlace, Written, WrittenStatement, statements_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.plans import cheapest_in
from tcc_runtime.artifact.root import read_calls, typed_calls
from tcc_runtime.gate.remedies import Remedies

if TYPE_CHECKING:
    from tcc.outputs import PlanJson, StatementJson, questions as documents
    from tcc_compiler.language.source import Span
    from tcc_compiler.pipeline import Compiled
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcc import screen
from tcc.findings import Place, ReportedFinding, command
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.errors import clip
from tcc_certs.policy.listing import shortened
from tcc_runtime.analysis.comparison import CallChange, Comparison, compare
from tcc_runtime.analysis.difference import OneSided
from tcc_runtime.analysis.gate_changes import Change
from tcc_runtime.analysis.sessions import Open, SessionChanges, Side, session_changes


def diff(old: Given, new: Given, *, timeout: float = TIMEOUT) -> Comparison:
    """Compare two grammars: their plans (exactly, without listing them), sessions, and all else.

    Args:
        old, new: artifacts, or files of artifacts or grammars.
        timeout: seconds for the questions about sessions.

    Raises:
        CompileError: a grammar was refused, or a limit was reached.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    return compare_written(artifact_of(old), artifact_of(new), timeout)


def compare_written(old: Artifact, new: Artifact, timeout: float = TIMEOUT) -> Comparison:
    """Compare two artifacts; show statements as written in the grammars, where these are known."""
    found = compare(old, new, written_of(old), written_of(new))
    sides = [Side(artifact=one, gate=gate_of(one)) for one in (old, new)]
    plans = (found.added, found.removed) if found.plans is not None else (None, None)
    return found.with_sessions(session_changes(sides[0], sides[1], *plans, timeout=timeout))


def diff_output(found: Comparison, breaking: bool) -> documents.DiffOutput:
    """Return the JSON document of ``diff``."""
    from tcc.outputs import optional, questions as documents

    calls = found.calls
    return documents.DiffOutput(
        verdict=found.verdict,
        plans=found.plans,
        counts=found.counts,
        added=_number(found.added.plans),
        removed=_number(found.removed.plans),
        common=_number(found.common),
        witnesses=documents.BothWitnessesJson(
            added=_witnesses(found.added), removed=_witnesses(found.removed)
        ),
        because=documents.BothReasonsJson(
            added=[statement_json(statement) for statement in found.because_added],
            removed=[statement_json(statement) for statement in found.because_removed],
        ),
        calls=None
        if calls is None
        else documents.CallChangesJson(
            added=list(calls.added),
            removed=list(calls.removed),
            amounts=[amounts.call for amounts in calls.amounts],
        ),
        statements=_changes(found.statements),
        fields=_changes(found.fields),
        members=[
            documents.MemberChangeJson(of=c.of, name=c.name, old=c.old, new=c.new, sense=c.sense)
            for c in found.members
        ],
        amounts=optional(
            None if calls is None else [_amounts(amounts) for amounts in calls.amounts]
        ),
        reason=optional(None if found.reason is None else str(found.reason)),
        sessions=_sessions(found.sessions),
        breaking=breaking,
    )


def _sessions(found: SessionChanges | None) -> documents.SessionChangesJson:
    from tcc.outputs import optional, questions as documents

    if found is None:
        return documents.SessionChangesJson(verdict=None, added=None, removed=None, open=[])
    sides: dict[str, Any] = {}
    for name, shown in (("added", found.added), ("removed", found.removed)):
        sides[name] = None
        if shown is not None:
            calls = shown.session.json()
            sides[name] = [documents.SessionCallJson(**call) for call in calls]
            sides[f"{name}_given"] = dict(shown.session.given)
            sides[f"{name}_ends"] = shown.session.ends
            sides[f"{name}_because"] = shown.refused_by
    missing = "; ".join(map(open_text, found.open))
    opened = [
        documents.OpenQuestionJson(statement=one.statement or None, missing=one.missing)
        for one in found.open
    ]
    return documents.SessionChangesJson(
        verdict=found.verdict, open=opened, missing=optional(missing or None), **sides
    )


def open_text(found: Open) -> str:
    """Return an open question as one line."""
    return f"`{found.statement}`: {found.missing}" if found.statement else found.missing


def _number(plans: int | None) -> str | None:
    return None if plans is None else screen.decimal(plans)


def _witnesses(side: OneSided) -> documents.WitnessesJson:
    from tcc.outputs import questions as documents

    return documents.WitnessesJson(
        shortest=None if side.shortest is None else list(side.shortest),
        cheapest=None if side.cheapest is None else list(side.cheapest),
    )


def _changes(changes: Sequence[Change]) -> documents.ChangesJson:
    """Group changes: texts that only one side has, and pairs of texts that differ."""
    from tcc.outputs import questions as documents

    return documents.ChangesJson(
        added=[change_text(c) for c in changes if c.old is None],
        removed=[change_text(c) for c in changes if c.new is None],
        changed=[
            documents.ChangedJson(name=c.name, old=c.old, new=c.new, sense=c.sense)
            for c in changes
            if c.old is not None and c.new is not None
        ],
    )


def change_text(change: Change) -> str:
    """Return a change as one line: the added or removed text, or `OLD became NEW`."""
    parts = [text for text in (change.old, change.new) if text is not None]
    said = " became ".join(parts)
    return said if change.of == "statement" else f"{change.name}: {said}"


def _amounts(found: CallChange) -> documents.CallAmountsJson:
    from tcc.outputs import questions as documents

    changed: dict[str, Any] = {
        name: documents.AmountJson(old=amount_text(name, old), new=amount_text(name, new))
        for name, old, new in found.changes
    }
    return documents.CallAmountsJson(call=found.call, **changed)


def amount_text(name: str, amount: Sequence[int]) -> str:
    """Return a cost, price, latency or epsilon as decimal text; a range as `LOW .. HIGH`."""
    places = 9 if name in ("cost", "epsilon") else 0
    ends = dict.fromkeys(format_decimal(end, places) for end in amount)
    return " .. ".join(ends)


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
# Names for kinds of changed members; other kinds keep their own names.
_KINDS = {"open": "field", "values": "values of"}


def headline(found: Comparison) -> str:
    """Return the verdict of a comparison as one line."""
    if found.verdict is None:
        return f"undecided: only bounds are known ({found.reason})"
    said = _SAID[found.plans or "equal"]
    if found.verdict != found.plans:
        said = f"{said}; {_SAID_BESIDE[found.verdict]}"
    return f"{found.verdict}: {said}"


def rows(found: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report, name and text; unchanged parts have no row."""
    most = "" if found.counts == "exact" else "at most "
    for name, side, because in (
        ("added", found.added, found.because_added),
        ("removed", found.removed, found.because_removed),
    ):
        yield name, _plans_text(side, most)
        yield from _witness_rows(side)
        for statement in because:
            yield "  by a change of", statement_line(statement)
    if found.common is not None:
        yield "common", f"{most}{screen.big(found.common)} plans"
    if found.calls is not None:
        for name, texts in (
            ("new calls", found.calls.added),
            ("calls gone", found.calls.removed),
            ("amounts", tuple(map(_amounts_text, found.calls.amounts))),
        ):
            if texts:
                yield name, shortened(texts)
    if found.sessions is not None:
        yield from _session_rows(found.sessions)
    for change in (*found.statements, *found.fields, *found.members):
        what = "added" if change.old is None else "removed" if change.new is None else "changed"
        kind = _KINDS.get(change.of, change.of)
        yield f"{kind} {what}", f"{clip(change_text(change), _WIDEST)} ({change.sense})"


_SESSIONS = {
    "equal": "equal: both gates allow the same sessions",
    "wider": "wider: the new gate allows more sessions",
    "narrower": "narrower: the new gate allows fewer sessions",
    "incomparable": "incomparable: each gate allows sessions that the other one refuses",
}


def _session_rows(found: SessionChanges) -> Iterator[tuple[str, str]]:
    yield "sessions", _SESSIONS[found.verdict] if found.verdict else "not decided"
    for name, side, shown in (
        ("added session", "old", found.added),
        ("removed session", "new", found.removed),
    ):
        if shown is not None:
            yield f"  {name}", session_line(shown.session)
            yield f"  {side} gate refuses it", shown.refused_by
    for one in found.open:
        yield "  not decided", open_text(one)


def _plans_text(side: OneSided, most: str) -> str:
    if side.plans is not None:
        return f"{most}{screen.big(side.plans)} plans"
    return "no plans" if side.shortest is None else "plans, not counted"


def _witness_rows(side: OneSided) -> Iterator[tuple[str, str]]:
    for name, plan in (("shortest", side.shortest), ("cheapest", side.cheapest)):
        if plan is not None:
            yield f"  {name}", " ".join(plan) or "(the empty plan)"


def _amounts_text(found: CallChange) -> str:
    changed = [
        f"{name} {amount_text(name, old)} -> {amount_text(name, new)}"
        for name, old, new in found.changes
    ]
    return f"{found.call}: {', '.join(changed)}"


def print_text(found: Comparison, breaking: bool) -> None:
    """Print a comparison for a terminal."""
    (screen.bad if breaking else screen.good)(headline(found))
    screen.print_fields(rows(found))


_HEADS: Final = {CLEAN: "Not breaking", FINDINGS: "Breaking", DECLINED: "Not known"}
_LEVELS: Final = {CLEAN: "notice", FINDINGS: "error", DECLINED: "warning"}


def print_markdown(found: Comparison, code: int) -> None:
    """Print a comparison for a comment on a pull request; `code` is the exit code."""
    screen.say(f"### {_HEADS[code]}: {_quoted(headline(found))}")
    screen.say("")
    screen.say("| what | how |")
    screen.say("| --- | --- |")
    for name, text in rows(found):
        screen.say(f"| {name.strip()} | {_quoted(text)} |")


# Texts that GitHub turns into mentions or links: names, issues, commits, addresses, emoji.
_LINKED = re.compile(
    r"@|#\w|\bgh-\d|\bwww\.|://|:[+\w-]+:|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])|"
    r"\b(?:mailto|xmpp):|!\d|\[\^",
    re.IGNORECASE,
)


def _quoted(text: str) -> str:
    """Return a text that GitHub shows literally, without Markdown, mentions or links.

    GitHub looks for mentions and references after it has rendered Markdown, so backslashes do not
    prevent them.  It does not look inside code, so such a text becomes a code element.
    """
    if _LINKED.search(text) is None:
        return re.sub(r"([\\`*_{}\[\]<>()#+!|&~-])", r"\\\1", text)
    # HTML comments break up addresses, which GitHub's Markdown would link even inside the element.
    inner = re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", text)
    inner = re.sub(r"(&#(?:46|47|58|64);)", r"\1<!-- -->", inner)
    return f"<code>{inner}</code>"


def print_github(found: Comparison, code: int, new: Path) -> None:
    """Print one workflow command about the new grammar; `code` is the exit code."""
    screen.say(command(_LEVELS[code], _lines(found), "tcc diff", Place(file=str(new))))


def broken_findings(found: Comparison, breaking: bool, new: Path) -> list[ReportedFinding]:
    """Return a breaking change as a finding about the new grammar; empty if nothing breaks."""
    if not breaking:
        return []
    return [ReportedFinding(code="TCC860", message=_lines(found), place=Place(file=str(new)))]


def _lines(found: Comparison) -> str:
    return "\n".join([headline(found), *(f"{name.strip()}: {text}" for name, text in rows(found))])


def written_of(artifact: Artifact) -> Mapping[str, Written]:
    """Return the statements as written, by name; empty for an artifact loaded from a file."""
    from tcc_compiler.pipeline import Compiled

    compiled = artifact.kept.get("written")
    return written_in(compiled) if isinstance(compiled, Compiled) else {}


def written_in(compiled: Compiled) -> Mapping[str, Written]:
    """Return the restrictions of a compiled grammar with their places, by name.

    A statement of the core has its canonical text, because a clause of a block alone is no
    statement.
    """
    core, found = compiled.core, {}
    for name, span in compiled.places.items():
        if isinstance(name, int):
            if core is not None:
                text = statement_text(core.statements[name])
                found[f"statement {name}"] = Written(text=text, place=_place(span))
        elif span.file in compiled.sources:
            text = compiled.sources[span.file].statement(span)
            found[name] = Written(text=text, place=_place(span))
    return found


def _place(span: Span) -> StatementPlace:
    return StatementPlace(file=span.file, line=span.line, column=span.column)


def statement_json(statement: WrittenStatement) -> StatementJson:
    """Return a blamed statement as JSON."""
    from tcc.outputs import PlaceJson, StatementJson, optional

    at = statement.place
    place = None if at is None else PlaceJson(file=at.file, line=at.line, column=at.column)
    kind = "plan" if statement.kind in ("signature", "strict") else statement.kind
    return StatementJson(
        kind=kind,
        text=statement.text,
        because=statement.because,
        relation=optional(statement.relation or None),
        remedy=optional(statement.remedy or None),
        place=place,
    )


def statement_line(statement: WrittenStatement) -> str:
    """Return a blamed statement as one line for people, with the author's reason first."""
    text = " ".join(statement.text.split())
    if statement.because is not None:
        text = f"{statement.because} {text}"
    if statement.place is None:
        return text
    place = statement.place
    return f"{text}  ({place.file}:{place.line}:{place.column})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer to the question whether calls are a plan, with the reasons if they are not.

    Attributes:
        calls: the calls in the question.
        allowed: whether the calls are a plan; for a prefix, whether a plan begins with them.
        position: the index of the first call that is not possible, or the number of calls.
        may_stop: whether a plan may end before the call at `position`.
        allowed_next: the calls that are possible at `position`, as canonical texts.
        because: a smallest set of statements that have to be removed to allow the calls.  It is
            empty if they are allowed, or if the grammar lacks a call.
        others: all other smallest sets, if requested.
        smallest: whether the sets are known to be smallest; False if the work would exceed a bound.
        nearest: the plan (or prefix) with the fewest edits; None if no plan exists, or all are too
            far away.
        hint: a suggestion for a call that the grammar lacks, or None.
    """

    calls: tuple[str, ...]
    allowed: bool
    position: int
    may_stop: bool
    allowed_next: tuple[str, ...]
    because: tuple[WrittenStatement, ...]
    others: tuple[tuple[WrittenStatement, ...], ...]
    smallest: bool
    nearest: tuple[str, ...] | None
    hint: str | None


def why(
    source: Given,
    plan: str | Sequence[str],
    *,
    prefix: bool = False,
    every: bool = False,
) -> Why:
    """Decide whether `plan` is a plan of `source`, and if not, find the statements that forbid it.

    Args:
        source: an artifact, or the file of an artifact or a grammar.  If the grammar is compiled in
            this process, the statements have their places.
        plan: calls, written as patterns of a grammar; in a text, spaces separate them.
        prefix: whether to ask if a plan begins with these calls.
        every: whether to find all smallest sets of statements to blame.

    Raises:
        CompileError: the grammar was refused.
        tcc_runtime.artifact.root.CallTextError: TCC904, a text is not a call.
        tcc_certs.errors.Rejected: the artifact is refused; D201, it is too large to be unfolded.
        OSError: the file cannot be read.
    """
    artifact = artifact_of(source)
    typed = typed_calls(plan) if isinstance(plan, str) else tuple(plan)
    calls = read_calls(artifact.core, typed, "plan")
    graph = graph_of(artifact)
    position, q = _walked(graph, calls)
    stops = q is not None and graph.accepts(q)
    allowed = position == len(calls) and q is not None and (prefix or stops)
    found = Blame(sets=((),), smallest=True)
    hint = None
    if not allowed:
        hint = _hint(artifact, calls, position)
        if hint is None:
            found = _blamed(artifact, calls[: position + 1], position == len(calls), every)
    return Why(
        calls=calls,
        allowed=allowed,
        position=position,
        may_stop=stops,
        allowed_next=() if q is None else tuple(graph.texts[call] for call, _ in graph.edges(q)),
        because=found.sets[0],
        others=found.sets[1:],
        smallest=found.smallest,
        nearest=calls if allowed else nearest_plan(graph, calls, prefix=prefix),
        hint=hint,
    )


def _walked(graph: PlanGraph, calls: Sequence[str]) -> tuple[int, int | None]:
    """Follow the calls; return how many are possible, and the state after them.

    The state is None if the graph has no plans.
    """
    q = graph.root
    for position, text in enumerate(calls):
        ahead = [] if q is None else graph.edges(q)
        after = next((target for call, target in ahead if graph.texts[call] == text), None)
        if after is None:
            return position, q
        q = after
    return len(calls), q


def _hint(artifact: Artifact, calls: Sequence[str], position: int) -> str | None:
    """Return a message if the grammar lacks the call at `position`, else None."""
    if position == len(calls):
        return None
    known = [call.text for call in artifact.core.calls]
    asked = calls[position]
    if asked in known:
        return None
    near = difflib.get_close_matches(asked, known[:_MOST_CALLS], n=1)
    meant = f": did you mean {near[0]}?" if near else ""
    return f"the grammar has no call {asked}{meant}"


_MOST_CALLS = 4096  # calls that a misspelt call is compared with


def _blamed(artifact: Artifact, calls: Sequence[str], ends: bool, every: bool) -> Blame:
    core = artifact.core
    number = {call.text: index for index, call in enumerate(core.calls)}
    statements = statements_of(core, written_of(artifact))
    word = [number[text] for text in calls]
    found = blame(core, statements, word, ends=ends, every=every)
    if ends:
        return found
    sets = [tuple([_with_remedy(core, one, word[-1]) for one in chosen]) for chosen in found.sets]
    return replace(found, sets=tuple(sets))


def _with_remedy(core: Core, one: WrittenStatement, refused: int) -> WrittenStatement:
    """Add a remedy to a statement: calls that it would allow in place of the refused one."""
    call = core.calls[refused]
    tool, number = core.tools[call.tool], one.part[1]
    rules = policy_of(core).rules
    if one.part[0] != "statements" or tool.name not in (rules[number].tools or ()):
        return one
    values = {
        field.name: listed_states(field)[value]
        for field, value in zip(tool.listed, call.values, strict=True)
    }
    remedies, statement = Remedies(core, rules), core.statements[number]
    match statement:
        case Require(then=then):
            remedy = remedies.require(number, tool.name, ()).text(values)
            return replace(one, relation=text_of(then), remedy=remedy)
        case Forbid(where=where):
            remedy = remedies.forbid(number, tool.name).text(values)
            return replace(one, relation=", ".join(map(text_of, where)), remedy=remedy)
    return one


def why_output(found: Why) -> documents.WhyOutput:
    """Return the JSON document of ``why``."""
    from tcc.outputs import optional, questions as documents

    others = [[statement_json(one) for one in chosen] for chosen in found.others]
    return documents.WhyOutput(
        allowed=found.allowed,
        position=found.position,
        may_stop=found.may_stop,
        allowed_next=list(found.allowed_next),
        because=[statement_json(statement) for statement in found.because],
        smallest=found.smallest,
        nearest=None if found.nearest is None else list(found.nearest),
        others=optional(others or None),
        hint=optional(found.hint),
    )


_EXPLAINED_LINES = 8
_LONGEST_LINE = 500
_MOST_NOTES = 6


def with_reasons(compiled: Compiled) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a compilation; add reasons to the first examples that fail."""
    core = compiled.core
    if core is None or not compiled.unmet:
        return compiled.diagnostics
    statements = statements_of(core, written_in(compiled))
    spans = {
        StatementPlace(file=span.file, line=span.line, column=span.column): span
        for span in compiled.places.values()
    }
    explained = {}
    for unmet in compiled.unmet[:_EXPLAINED_LINES]:
        if len(unmet.word) > _LONGEST_LINE:
            continue
        found = blame(core, statements, unmet.word, ends=unmet.ends, every=False)
        chosen = found.sets[0]
        notes = [
            Note(
                message=_forbidding(one),
                span=None if one.place is None else spans.get(one.place),
            )
            for one in chosen[:_MOST_NOTES]
        ]
        if len(chosen) > _MOST_NOTES:
            notes.append(Note(message=f"and by {len(chosen) - _MOST_NOTES} more"))
        explained[id(unmet.diagnostic)] = replace(unmet.diagnostic, notes=tuple(notes))
    return tuple(explained.get(id(said), said) for said in compiled.diagnostics)


def _forbidding(statement: WrittenStatement) -> str:
    text = f"forbidden by `{' '.join(statement.text.split())}`"
    return text if statement.because is None else f"{statement.because} ({text})"


Law = Literal["uniform", "softmax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A plan and its cost.

    Attributes:
        calls: the calls as canonical texts.
        cost: the sum of the low ends of the calls' costs, as exact decimal text.
    """

    calls: tuple[str, ...]
    cost: str


def cheapest(source: Given, n: int = 1) -> list[Picked]:
    """Return the `n` plans of least cost, cheapest first; all plans if there are fewer.

    Among equal costs shorter plans come first, then plans in call order.

    Args:
        source: an artifact, or the file of an artifact or a grammar.

    Raises:
        ValueError: `n` is negative.
        CompileError, OSError: the file is refused, or cannot be read.
        tcc_certs.errors.Rejected: the artifact is refused; D201, it is too large to be unfolded.
    """
    _require_count(n)
    graph = graph_of(artifact_of(source))
    found = () if graph.root is None else cheapest_in(graph, graph.root, n)
    return [Picked(calls=calls, cost=format_decimal(cost, 9)) for cost, calls in found]


def sample(
    source: Given, n: int = 1, *, law: Law = "uniform", seed: bytes | None = None
) -> list[Picked]:
    """Draw `n` plans, independently and with replacement; return none if there is no plan.

    Args:
        source: an artifact, or the file of an artifact or a grammar.
        law: ``uniform`` draws every plan with the same probability.  ``softmax`` draws in
            proportion to e^(-beta cost), exactly, with the artifact's beta and low costs, whatever
            its tilt.
        seed: any bytes; the same seed draws the same plans.  None draws at random.

    Raises:
        ValueError: `n` is negative, or the law is unknown.
        CompileError, OSError: the file is refused, or cannot be read.
        tcc_certs.errors.Rejected: the artifact is refused; D201, it is too large to be unfolded;
            D202, the greatest precision does not decide a draw.
    """
    _require_count(n)
    if law not in ("uniform", "softmax"):
        raise ValueError(f"a law is uniform or softmax, not {law!r}")
    artifact = artifact_of(source)
    beta = UNIFORM if law == "uniform" else artifact.manifest.beta
    graph = graph_of(artifact)
    price = dict(zip(graph.texts, graph.cost_low, strict=True))
    drawn = draws(graph, beta, secrets.token_bytes(32) if seed is None else seed)
    return [
        Picked(calls=calls, cost=format_decimal(sum(map(price.__getitem__, calls)), 9))
        for calls in islice(drawn, n)
    ]


def _require_count(n: int) -> None:
    if n < 0:
        raise ValueError(f"a number of plans is needed, not {n}")


def plan_json(found: Picked) -> PlanJson:
    """Return a plan in the JSON of ``cheapest`` and ``sample``."""
    from tcc.outputs import PlanJson

    return PlanJson(calls=list(found.calls), cost=found.cost)
