"""Questions about plans: `tcc.why`, `tcc.cheapest`, `tcc.sample`.

``why`` names a smallest set of statements that forbids a sequence of calls, and the nearest plan;
the same search explains an ``accept`` line that does not hold (:func:`with_reasons`).  Statements
come as they were written, with their places, where the grammar was compiled in this process.
Cost: that of :mod:`tcc_runtime.analysis`, bounded; `with_reasons` explains the first lines alone.
"""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from tcc.compilation import Given, artifact_of
from tcc_certs.formats.texts import format_decimal
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_runtime.analysis.blame import Blame, blame
from tcc_runtime.analysis.draws import UNIFORM, draws
from tcc_runtime.analysis.graph import PlanGraph, graph_of, nearest_plan
from tcc_runtime.analysis.statements import StatementPlace, Written, WrittenStatement, statements_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.plans import cheapest_in
from tcc_runtime.artifact.root import read_calls, typed_calls

if TYPE_CHECKING:
    from tcc.outputs.parts import PlanJson, StatementJson
    from tcc.outputs.plans import WhyOutput
    from tcc_compiler.language.source import Span
    from tcc_compiler.pipeline import Compiled


def written_of(artifact: Artifact) -> Mapping[str, Written]:
    """The statements as they were written, by place; nothing for an artifact from a file."""
    from tcc_compiler.pipeline import Compiled

    compiled = artifact.kept.get("written")
    return written_in(compiled) if isinstance(compiled, Compiled) else {}


def written_in(compiled: Compiled) -> Mapping[str, Written]:
    """The statements of a grammar that was compiled as they were written, by place."""
    return {
        name: Written(text=compiled.sources[span.file].statement(span), place=_place(span))
        for name, span in compiled.places.items()
        if span.file in compiled.sources
    }


def _place(span: Span) -> StatementPlace:
    return StatementPlace(file=span.file, line=span.line, column=span.column)


def statement_json(statement: WrittenStatement) -> StatementJson:
    """A statement that is blamed, as JSON."""
    from tcc.outputs.parts import PlaceJson, StatementJson

    at = statement.place
    place = None if at is None else PlaceJson(file=at.file, line=at.line, column=at.column)
    return StatementJson(kind=statement.kind, text=statement.text, place=place)


def statement_line(statement: WrittenStatement) -> str:
    """The same for people, in a line."""
    text = " ".join(statement.text.split())
    if statement.place is None:
        return text
    place = statement.place
    return f"{text}  ({place.file}:{place.line}:{place.column})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Whether a sequence of calls is a plan, and if not, why.

    Attributes:
        calls: what was asked about.
        allowed: whether it is a plan; of a prefix, whether a plan begins with it.
        position: the index of the first call that cannot be there; the number of calls where all
            of them can.
        may_stop: whether a plan may end before the call at `position`.
        allowed_next: the calls that can be at `position`, canonical texts.
        because: a smallest set of statements without which it would be possible; empty where it is
            allowed, and where the call is none of the grammar's.
        others: all other smallest sets, where they were asked for.
        smallest: whether it is known that no smaller set will do; False past a bound of work.
        nearest: an allowed plan (or prefix) with the fewest edits; None where there is none, or it
            is too far to be found.
        hint: what may have been meant by a call that the grammar has not.
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
    """Whether `plan` is a plan of `source`, and if not, which statements forbid it.

    Args:
        source: an artifact, or a file of one or of a grammar; of a grammar, and of an artifact
            compiled in this process, the statements come with their places.
        plan: calls, written as a grammar writes patterns; a text has spaces between them.
        prefix: ask whether a plan begins so.
        every: find all smallest sets of statements to blame.

    Raises:
        CompileError: the grammar was refused.
        tcc_runtime.artifact.root.CallTextError: TCC904, a text is no call.
        tcc_certs.errors.Rejected: the artifact is refused; D201 it is too large to be unfolded.
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
    """How many of the calls can be taken, and the state after them; None where there is no plan."""
    q = graph.root
    for position, text in enumerate(calls):
        ahead = [] if q is None else graph.edges(q)
        after = next((target for call, target in ahead if graph.texts[call] == text), None)
        if after is None:
            return position, q
        q = after
    return len(calls), q


def _hint(artifact: Artifact, calls: Sequence[str], position: int) -> str | None:
    """What to say of a call that the grammar has not; None where it has it."""
    if position == len(calls):
        return None
    known = [call.text for call in artifact.core.calls]
    asked = calls[position]
    if asked in known:
        return None
    near = difflib.get_close_matches(asked, known[:_MOST_CALLS], n=1)
    meant = f": did you mean {near[0]}?" if near else ""
    return f"the grammar has no call {asked}{meant}"


_MOST_CALLS = 4096  # that a misspelt one is compared with


def _blamed(artifact: Artifact, calls: Sequence[str], ends: bool, every: bool) -> Blame:
    core = artifact.core
    number = {call.text: index for index, call in enumerate(core.calls)}
    statements = statements_of(core, written_of(artifact))
    word = [number[text] for text in calls]
    return blame(core, statements, word, ends=ends, every=every)


def why_output(found: Why) -> WhyOutput:
    """The document of ``why``."""
    from tcc.outputs.parts import optional
    from tcc.outputs.plans import WhyOutput

    others = [[statement_json(one) for one in chosen] for chosen in found.others]
    return WhyOutput(
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
    """The diagnostics of a compilation; of the first lines that do not hold, with the reasons."""
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
                message=f"forbidden by `{' '.join(one.text.split())}`",
                span=None if one.place is None else spans.get(one.place),
            )
            for one in chosen[:_MOST_NOTES]
        ]
        if len(chosen) > _MOST_NOTES:
            notes.append(Note(message=f"and by {len(chosen) - _MOST_NOTES} more"))
        explained[id(unmet.diagnostic)] = replace(unmet.diagnostic, notes=tuple(notes))
    return tuple(explained.get(id(said), said) for said in compiled.diagnostics)


Law = Literal["uniform", "softmax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A plan and what it costs.

    Attributes:
        calls: canonical texts.
        cost: the sum of the low costs, exact decimal text.
    """

    calls: tuple[str, ...]
    cost: str


def cheapest(source: Given, n: int = 1) -> list[Picked]:
    """The `n` plans of least cost (fewer where there are fewer), ties in call order.

    Args:
        source: an artifact, or a file of one or of a grammar.

    Raises:
        ValueError: `n` is negative.
        CompileError, OSError: the file is refused, or cannot be read.
        tcc_certs.errors.Rejected: the artifact is refused; D201 it is too large to be unfolded.
    """
    _require_count(n)
    graph = graph_of(artifact_of(source))
    found = () if graph.root is None else cheapest_in(graph, graph.root, n)
    return [Picked(calls=calls, cost=format_decimal(cost, 9)) for cost, calls in found]


def sample(
    source: Given, n: int = 1, *, law: Law = "uniform", seed: bytes | None = None
) -> list[Picked]:
    """`n` plans, drawn independently and with replacement; none where there is no plan.

    Args:
        source: an artifact, or a file of one or of a grammar.
        law: ``uniform``: every plan alike; ``softmax``: by e^(-beta cost), exactly, at the
            artifact's beta and low costs, whatever its tilt.
        seed: any bytes; the same give the same plans. None: others each time.

    Raises:
        ValueError: `n` is negative, or there is no such law.
        CompileError, OSError: the file is refused, or cannot be read.
        tcc_certs.errors.Rejected: the artifact is refused; D201 it is too large to be unfolded,
            D202 a draw stays open at the greatest precision.
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
    """A plan in the JSON of ``cheapest`` and ``sample``."""
    from tcc.outputs.parts import PlanJson

    return PlanJson(calls=list(found.calls), cost=found.cost)
