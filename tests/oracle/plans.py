"""The plans of a core straight from the set semantics of docs/spec/core.md, section 5.

Exponential on purpose: every expression is the set of its words up to a length, every statement a
look at one whole word.  It knows nothing of automata, residuals or states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product

from tcc_certs.core.model import (
    Alt,
    Both,
    Core,
    Diff,
    Empty,
    Expr,
    ForbidBefore,
    ForbidNext,
    OneCall,
    Repeat,
    RuleRef,
    Seq,
    members,
)

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
    """The largest part of the words in which every answer to a strict call goes on.

    While there is a word with a strict call of which some answer begins no word of the part, that
    word is taken out: what is left when there is none is the largest such part.
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
    """The calls that a call may turn out to be; -1 stands for one that the core does not have."""
    made = core.calls[call]
    tool = core.tools[made.tool]
    if not tool.strict:
        return [call]
    number = {(c.tool, c.values): index for index, c in enumerate(core.calls)}
    choices = [
        range(len(param.values)) if param.observed else [value]
        for param, value in zip(tool.parameters, made.values, strict=True)
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
    """Whether the word meets every statement but the expression."""
    return (
        all(_limit_holds(core, limit, word) for limit in core.limits)
        and all(_require_holds(core, statement, word) for statement in core.requires)
        and all(_forbid_holds(core, statement, word) for statement in core.forbids)
        and _signatures_hold(core, word)
    )


def _limit_holds(core, limit, word) -> bool:
    calls = [core.calls[index] for index in word]
    if limit.kind == "uses":
        used = sum(index in set(members(limit.calls)) for index in word)
        return used >= limit.value if limit.least else used <= limit.value
    if limit.kind == "sum":
        return sum(_value(core, call, limit.parameter) for call in calls) <= limit.value
    amount = {
        "depth": len(calls),
        "price": sum(call.price for call in calls),
        "latency": sum(call.latency for call in calls),
        "epsilon": sum(call.epsilon for call in calls),
        "cost": sum(call.cost_high for call in calls),
    }[limit.kind]
    return amount <= limit.value


def _value(core, call, of) -> Fraction:
    tool, place = of
    text = (
        core.tools[tool].parameters[place].values[call.values[place]] if call.tool == tool else ""
    )
    return Fraction(text or "0") * 10**9


def _require_holds(core, statement, word) -> bool:
    first = set(members(core.patterns[statement.first]))
    second = set(members(core.patterns[statement.second]))
    for at, call in enumerate(word):
        others = word[at + 1 :] if statement.order == "after" else word[:at]
        if statement.order == "each":
            since = max((i for i in range(at) if word[i] in second), default=-1)
            others = word[since + 1 : at]
        if call in second and not first.intersection(others):
            return False
    return True


def _forbid_holds(core, statement, word) -> bool:
    if isinstance(statement, ForbidNext):
        chain = [set(members(core.patterns[p])) for p in statement.patterns]
        starts = range(len(word) - len(chain) + 1)
        return not any(all(word[at + i] in chain[i] for i in range(len(chain))) for at in starts)
    first = set(members(core.patterns[statement.first]))
    second = set(members(core.patterns[statement.second]))
    if isinstance(statement, ForbidBefore):
        return not any(
            word[at] in second and first.intersection(word[:at]) for at in range(len(word))
        )
    return not (first.intersection(word) and second.intersection(word))


def _signatures_hold(core, word) -> bool:
    if core.start is None:
        return True
    state = core.start
    for index in word:
        tool = core.tools[core.calls[index].tool]
        if tool.takes is not None:
            if tool.takes != state:
                return False
            state = tool.gives
    return state in core.goals
