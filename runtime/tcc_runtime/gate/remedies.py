"""What a refused call lacks: the relation that failed, and what would do.

Of a statement of version 1.2 that refuses a call the relations are named by which it does, and of a
``require`` the alternatives; of an argument the values, the bounds or the pattern that it has to be
of.  What was seen is kept when a call is refused, and told when somebody asks.
Text: docs/gate.md.  Definition: tests/gate/test_remedies.py.
Cost: of a refusal by a statement references to the calls that it looked at, 128 at most for each
alternative; the relations of these when it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from tcc_certs.core.derived import selection_text
from tcc_certs.core.enforced import place_text, type_text
from tcc_certs.core.model import Core, OrderMonitor, PolicyMonitor, Tool
from tcc_certs.errors import Code, clip
from tcc_certs.formats.codec import written

if TYPE_CHECKING:
    from tcc_certs.core.policies import Alternative, Tree
    from tcc_certs.session.alternatives import Alt, Pool
    from tcc_certs.session.machine import Course
    from tcc_certs.session.relations import Event
    from tcc_certs.values.places import State

More: TypeAlias = "Callable[[], Mapping[str, str]]"  # members of a reason: relation, remedy
_SHOWN: Final = 24  # values, names
_WIDEST: Final = 1000

# Arguments.


def argument_remedy(core: Core, tool: Tool | None, code: Code, name: str) -> Mapping[str, str]:
    """What would do in place of an argument that is refused.

    Args:
        tool: None: the grammar has no such tool.
        code: R101 to R105.
        name: the argument's.
    """
    if tool is None:
        return _told(_some([written(one.name) for one in core.tools]))
    if code is Code.UNDECLARED_ARGUMENT:
        return _told(_some(list(_arguments(tool))) or "no arguments")
    for listed in tool.parameters:
        if listed.name == name and not listed.observed:
            values = _some([text for text in listed.values if text], " | ")
            return _told(f"{written(name)}: {values}{place_text(name, listed.at)}")
    for one in tool.opened:
        if one.name == name:
            kind = type_text(one.type) + " or null" * one.null
            return _told(f"{written(name)}: {kind}{place_text(name, one.at)}")
    return {}


def _arguments(tool: Tool) -> Iterator[str]:
    for listed in tool.parameters:
        if listed.at is None and not listed.observed:
            yield written(listed.name) + "?" * listed.optional
    for one in tool.opened:
        if one.at is None:
            yield written(one.name) + "?" * one.optional


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return between.join([*texts[:_SHOWN], *more])


def _told(remedy: str) -> Mapping[str, str]:
    return {"remedy": clip(remedy, _WIDEST)}


# Statements.


def statement_remedy(core: Core, text: str) -> Mapping[str, str]:
    """What would do before a call that the statement of that text refuses."""
    found = next((one for one in core.monitors if one.text == text), None)
    if isinstance(found, OrderMonitor) and found.kind == "require":
        same = [a if a == b else f"{a} = {b}" for a, b in _written(found.same)]
        return _told(f"{selection_text(found.first, core.tools)} same {', '.join(same)}")
    if not isinstance(found, PolicyMonitor):
        return {}
    from tcc_certs.core.policies import Ban, Need, Owe
    from tcc_certs.core.wording import Wording

    say = Wording([tool.name for tool in core.tools])
    match found.policy:
        case Need(alternatives=some):
            return _told(say.alternatives(some))
        case Ban(unless=unless) if unless:
            return _told(say.alternatives(unless))
        case Owe():
            return _told(say.owed(found.policy))
    return {}


def _written(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(written(one), written(other)) for one, other in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What an alternative was asked about.

    Attributes:
        calls: earlier calls of its tools, latest first, each once; used: those that do not help
            any more.
    """

    of: Alternative
    calls: Sequence[Event]
    used: frozenset[int]


def why(
    course: Course,
    text: str,
    seq: int,
    tool: int,
    states: Mapping[str, State] | None,
    stamp: int,
) -> More:
    """What a call that the statement of that text refuses lacks; what is known now is kept.

    Args:
        seq: its number; tool, states, stamp: as it was decided with.
    """
    core = course.machine.core
    found = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
    number = next((at for at, one in enumerate(found) if one.text == text), None)
    statements, memory = course.machine.statements, course.policies
    remedy = partial(statement_remedy, core, text)
    if number is None or statements is None or memory is None or states is None:
        return remedy
    from tcc_certs.core.policies import Ban, Need
    from tcc_certs.core.wording import Wording
    from tcc_certs.session.policies import BanRule
    from tcc_certs.session.relations import Event

    own = Event(at=seq, tool=tool, states=states, stamp=stamp, session=course.attributes)
    policy, rule = found[number].policy, statements.policies.statements[number]
    if not isinstance(policy, Need | Ban):
        return remedy
    pairs = list(zip(policy.alternatives, rule.alternatives, strict=False))
    if isinstance(rule, BanRule):
        against = rule.against(memory, own)
        named = [one.where for (one, _), is_one in zip(pairs, against, strict=True) if is_one]
        told: Callable[[], Sequence[Tree]] = partial(list, next(iter(named), ()))
    else:
        looked = [_looked_at(one, alt, memory.pools[alt.number], own) for one, alt in pairs]
        told = partial(_failed, looked, own)

    def more() -> Mapping[str, str]:
        relations = told()
        say = Wording([tool.name for tool in core.tools])
        said = {"relation": clip(say.relations(relations), _WIDEST)} if relations else {}
        return {**said, **remedy()}

    return more


def _looked_at(of: Alternative, alt: Alt, pool: Pool, own: Event) -> _Looked:
    if alt.alone:
        return _Looked(of=of, calls=(), used=frozenset())
    near = islice(pool.near(alt.key_for(own))[0], alt.most)
    # Those of other keys, too: an equality that is a condition is a part of the key.
    calls = {call.at: call for call in (*near, *islice(pool.latest(), alt.most))}
    used = frozenset([at for at, call in calls.items() if pool.is_used(call)])
    return _Looked(of=of, calls=[calls[at] for at in sorted(calls, reverse=True)], used=used)


def _failed(looked: Sequence[_Looked], own: Event) -> Sequence[Tree]:
    """The fewest relations of one alternative without which it would hold; none where more fails.

    Of an alternative those are its relations that are not sure of the latest calls that have all
    else: its set, its keys, its window.
    """
    found = [one for one in (_failed_of(one, own) for one in looked) if one]
    return min(found, key=len, default=())


def _failed_of(one: _Looked, own: Event) -> Sequence[Tree]:
    from tcc_certs.session.relations import NO_NAMES, compiled_relation

    relations = [(tree, compiled_relation(tree)) for tree in one.of.where]
    calls = [own] if one.of.calls is None else list(_having(one, own))[: one.of.least]
    if len(calls) < one.of.least:
        return ()
    return [
        tree
        for tree, holds in relations
        if any(holds(own, call, NO_NAMES) is not True for call in calls)
    ]


def _having(one: _Looked, own: Event) -> Iterator[Event]:
    """The calls that surely have all but its relations, latest first."""
    from tcc_certs.session.relations import NO_NAMES, both, compiled_set, compiled_term, same

    inside, alternative = compiled_set(one.of.calls or ("any",)), one.of
    due = [(name, compiled_term(term)(own, own, NO_NAMES)) for name, term in alternative.same]
    for call in one.calls:
        if call.answered:
            continue
        equal = both([same(call.states[name], key) for name, key in due])
        if equal is False:
            continue
        late = alternative.within is not None and call.stamp < own.stamp - alternative.within
        if call.done and equal and inside(call) and not late and call.at not in one.used:
            yield call
        if alternative.last:
            return
