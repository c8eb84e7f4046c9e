"""The plans of a core with listed fields only, straight from docs/spec/core.md, section 5.

Exponential on purpose: an expression is the set of its words up to a length, and the definition of
statements decides each word as a session.  Nothing here knows automata, residuals or states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import accumulate, product

from tcc_certs.policy.core import Core
from tcc_certs.policy.history import DONE, Call, ListHistory
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.plans import (
    Alt,
    Both,
    Diff,
    Empty,
    Expr,
    OneCall,
    Repeat,
    RuleRef,
    Seq,
    members,
)
from tcc_certs.values.places import State, listed_states

Word = tuple[int, ...]
Words = frozenset[Word]


def plans(core: Core, max_len: int) -> list[Word]:
    """Every plan of at most `max_len` calls, as call indices of the core, sorted."""
    rules: dict[str, Words] = dict.fromkeys(core.rules, frozenset())
    # A round settles at least one more (length, rule) pair, as no rule is left-recursive.
    for _ in range((max_len + 1) * (len(rules) + 1) + 1):
        now = {name: words(core, body, rules, max_len) for name, body in core.rules.items()}
        if now == rules:
            break
        rules = now
    found = words(core, core.plan, rules, max_len)
    return sorted(strict_part(core, [word for word in found if meets_all(core, word)]))


def strict_part(core: Core, found: Iterable[Word]) -> set[Word]:
    """The largest subset of the words in which plans continue after each answer of a strict call.

    Words with a strict call that has an answer without a continuation are removed until none is
    left to remove.
    """
    part = set(found)
    while True:
        begun = {word[:at] for word in part for at in range(len(word) + 1)}
        keep = {
            word
            for word in part
            if all(
                (*word[:at], answer) in begun
                for at, call in enumerate(word)
                for answer in answers(core, call)
            )
        }
        if keep == part:
            return part
        part = keep


def answers(core: Core, call: int) -> list[int]:
    """The sisters of a call of a strict tool; -1 for a sister that the core does not have."""
    made = core.calls[call]
    tool = core.tools[made.tool]
    if not tool.strict:
        return [call]
    number = {(c.tool, c.values): index for index, c in enumerate(core.calls)}
    arguments = [field for field in tool.arguments if field.type is None]
    choices = [
        range(len(field.values) + field.optional) if at >= len(arguments) else [made.values[at]]
        for at, field in enumerate(tool.listed)
    ]
    return [number.get((made.tool, values), -1) for values in product(*choices)]


def words(core: Core, expr: Expr, rules: Mapping[str, Words], most: int) -> Words:
    """The words of an expression of at most `most` calls."""

    def of(part: Expr) -> Words:
        return words(core, part, rules, most)

    match expr:
        case Empty():
            return frozenset({()})
        case OneCall(pattern):
            chosen = members(core.patterns[pattern])
            return frozenset((c,) for c in chosen) if most else frozenset()
        case RuleRef(name):
            return rules[name]
        case Seq(items):
            found: Words = frozenset({()})
            for item in items:
                found = _after(found, of(item), most)
            return found
        case Alt(items):
            return frozenset().union(*map(of, items))
        case Both(items):
            return of(items[0]).intersection(*map(of, items[1:]))
        case Diff(base, minus):
            return of(base).difference(*map(of, minus))
        case Repeat(body, low, high):
            return _repeated(of(body), low, high, most)


def _after(left: Words, right: Words, most: int) -> Words:
    return frozenset(x + y for x in left for y in right if len(x) + len(y) <= most)


def _repeated(body: Words, low: int, high: int | None, most: int) -> Words:
    # A word of at most `most` calls has at most `most` non-empty rounds; empty rounds fill up.
    found: Words = frozenset()
    layer: Words = frozenset({()})
    for times in range(most + 1):
        filled = () in body
        if (times >= low or filled) and (high is None or times <= high):
            found |= layer
        layer = _after(layer, body - {()}, most)
    return found


def meets_all(core: Core, word: Word) -> bool:
    """Whether the word meets every restriction except the expression."""
    return _signatures_hold(core, word) and allows(core, word)


def _totals_hold(core: Core, word: Word) -> bool:
    """Whether no prefix exceeds a total; in a plan the amounts of all calls are known."""
    calls = [core.calls[index] for index in word]
    for one in core.statements:
        if isinstance(one, Total):
            most = Fraction(one.most) * (10**9 if one.what in ("cost", "epsilon") else 1)
            amounts = [1 if one.what == "depth" else getattr(call, _AMOUNTS[one.what])
                       for call in calls]  # fmt: skip
            if any(total > most for total in accumulate(amounts)):
                return False
    return True


_AMOUNTS = {"price": "price", "latency": "latency", "cost": "cost_high", "epsilon": "epsilon"}


def allows(core: Core, word: Word, *, ends: bool = True) -> bool:
    """Whether statements allow a session of these calls, all done, and that it `ends` there."""
    if not _totals_hold(core, word):
        return False
    policy, history = policy_of(core), ListHistory(core, {})
    for at, index in enumerate(word):
        call, answers = _made(core, index, at)
        if policy.refusals(history, call, 0):
            return False
        history.add(call, policy.draws(history, call, 0))
        history.record(call, DONE, answers)
    return not (ends and policy.unmet(history, 0))


def _made(core: Core, index: int, at: int) -> tuple[Call, dict[str, State]]:
    """A call of plans as the definition has it, and its answers."""
    made = core.calls[index]
    tool = core.tools[made.tool]
    states = {
        field.name: listed_states(field)[value]
        for field, value in zip(tool.listed, made.values, strict=True)
    }
    arguments = {field.name: states[field.name] for field in tool.arguments}
    answers = {field.name: states[field.name] for field in tool.answers}
    return Call(tool.name, at, 0, arguments), answers


def _signatures_hold(core: Core, word: Word) -> bool:
    if core.start is None:
        return True
    state = core.start
    for index in word:
        tool = core.tools[core.calls[index].tool]
        if tool.takes is not None:
            if tool.takes != state:
                return False
            assert tool.gives is not None
            state = tool.gives
    return state in core.goals
