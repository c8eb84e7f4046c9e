"""Whether every session of one core is a session of another one, as a question about statements.

A proof speaks of statements.  So everything else that decides about a call has to be equal in both
cores: the fields and errors of tools, the attributes of sessions, the records of zones, and plans.
Text: docs/spec/proof.md, section 6.  Cost: linear in the two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import policy_of, totals_of
from tcc_certs.policy.nodes import Node, Total, Word, roots_of, statement_text, walk
from tcc_certs.proof.check import CheckedProof, check_proof
from tcc_certs.proof.plans import Plan
from tcc_certs.proof.questions import Question, rules_of


def implication(core: Core, other: Core) -> Question:
    """Return the question whether every session of `core` is a session of `other`.

    A statement of `other` that restricts calls only of tools that `core` lacks is left out.

    Raises:
        Rejected: T102: the cores differ in something that no statement says; `expected` names it.
    """
    differs = difference(core, other)
    ensure(not differs, Code.PROOF_QUESTION, "question", f"the same {differs}", "another one")
    mine = core.tool_of.keys()
    rules = policy_of(other).rules
    statements = tuple(
        [
            statement
            for statement, rule in zip(other.statements, rules, strict=True)
            if rule.kind == "owe" or rule.tools is None or rule.tools & mine
        ]
    )
    lets = {let.name: let for let in other.lets}
    used: set[str] = set()
    left = [word for one in statements for word in _words(roots_of(one))]
    while left:
        name = left.pop()
        lacks = name in other.tool_of and name not in mine
        expected = f"tool `{name}`, which a statement names; `forbid {name}` refuses its calls"
        ensure(not lacks, Code.PROOF_QUESTION, "question", f"the same {expected}", "none")
        if name in lets and name not in used:
            used.add(name)
            left += _words([lets[name].body])
    question = Question(
        kind="implies",
        statements=statements,
        lets=tuple([let for let in other.lets if let.name in used]),
    )
    try:
        rules_of(question, core)
    except Rejected as why:  # for example, only a tool that `core` lacks has a field of `any`
        raise Rejected(Code.PROOF_QUESTION, "question", "the same tools", why.found) from None
    return question


def check_implication(
    data: bytes, core: Core, other: Core, plan: Callable[[], Plan] | None = None
) -> CheckedProof:
    """Check a proof that every session of `core` is a session of `other`.

    Args:
        plan: makes the automaton of the artifact of `core`, for a proof that uses it.

    Raises:
        Rejected: as of `check_proof`; T102 also if the proof is about other statements than those
            of `other`.
    """
    wanted = implication(core, other)
    checked = check_proof(data, core, plan)
    expected = "; ".join(map(statement_text, wanted.statements)) or "no statements"
    ensure(checked.question == wanted, Code.PROOF_QUESTION, "question", expected,
           f"{checked.question.kind} of others")  # fmt: skip
    return checked


def _words(roots: Iterable[Node]) -> Iterator[str]:
    return (part.name for root in roots for part in walk(root) if isinstance(part, Word))


def difference(core: Core, other: Core) -> str:
    """Return what keeps sessions of two cores from being compared by statements, or ''."""
    for tool in core.tools:
        twin = other.tool_of.get(tool.name)
        if twin is None:
            return f"tool `{tool.name}`"
        if (tool.arguments, tool.answers) != (twin.arguments, twin.answers):
            return f"fields of `{tool.name}`"
        if (tool.errors_failed, tool.error_text) != (twin.errors_failed, twin.error_text):
            return f"`errors mean failed` of `{tool.name}`"
    if core.given != other.given:
        return "attributes of sessions"
    zones = {} if core.zones is None else core.zones.of
    for name, zone in ({} if other.zones is None else other.zones.of).items():
        if zones.get(name) != zone:
            return f"record of the zone {name}"
    if not is_any(other) and _plans(core) != _plans(other):
        return "plans"
    calls = {call.text: totals_of(call) for call in other.calls}
    lacking = [call.text for call in core.calls if call.text not in calls]
    if lacking:
        return f"call `{lacking[0]}`"
    has_totals = any(isinstance(one, Total) and one.what != "depth" for one in other.statements)
    if has_totals and any(calls[call.text] != totals_of(call) for call in core.calls):
        return "amounts of calls"
    return ""


def _plans(core: Core) -> object:
    """All that plans of a core follow from, but its statements."""
    tools = [(tool.name, tool.takes, tool.gives, tool.strict) for tool in core.tools]
    return core.plan, core.rules, core.patterns, core.calls, core.start, core.goals, tools


def is_any(core: Core) -> bool:
    """Return whether the plan of a core is ``any*``, without a signature or strict tools."""
    is_signed = core.start is not None or bool(core.goals)
    return not (is_signed or core.has_plan or any(tool.strict for tool in core.tools))


__all__ = ["check_implication", "difference", "implication", "is_any"]
