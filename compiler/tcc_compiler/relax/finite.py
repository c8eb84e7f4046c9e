"""Whether the plans stay finitely many without some limits: a look at the expression alone.

What can go on for ever is an unbounded repeat, or a rule that comes back to itself.  Every round of
it has to add to some upper limit that is kept, and then there are only so many rounds.  The answer
"yes" is certain; "no" may be too careful, since what other statements forbid is not looked at.
Cost: linear in the expressions, times the nesting at worst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcc_certs.core.model import Core
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters, letter_amounts
from tcc_compiler.machine import components
from tcc_compiler.regular.nodes import Kind, Nodes, build


def stays_finite(core: Core, letters: Letters, guard: Guard) -> bool:
    """Whether `core`, with the limits that it has, surely has finitely many plans."""
    free = _free_letters(core, letters)
    if not free:
        return True
    nodes, _ = build(core, [[1] * len(pattern) for pattern in letters.patterns], guard)
    heads = [not free.isdisjoint(pattern) for pattern in letters.patterns]
    words = _free_words(nodes, heads)
    return not _may_go_round(nodes, words)


def _free_letters(core: Core, letters: Letters) -> set[int]:
    """The letters that add nothing to any upper limit."""
    free = set(range(len(letters.calls)))
    for limit in core.limits:
        amounts = letter_amounts(core, letters, limit)
        if not limit.least and min(amounts, default=0) >= 0:
            free -= {letter for letter, amount in enumerate(amounts) if amount}
    return free


def _free_words(nodes: Nodes, heads: Sequence[bool]) -> list[bool]:
    """[nodes], whether a node may derive a word of free letters, one at least.

    Args:
        heads: [patterns], whether a pattern has a free letter.
    """
    users: list[list[int]] = [[] for _ in nodes.kind]
    for node, parts in enumerate(nodes.parts):
        for part in parts:
            users[part].append(node)
    found = [False] * len(users)
    todo = [n for n, kind in enumerate(nodes.kind) if kind is Kind.CALL and heads[nodes.pattern[n]]]
    while todo:
        node = todo.pop()
        if found[node]:
            continue
        found[node] = True
        todo += [user for user in users[node] if not found[user] and _is_free(nodes, user, found)]
    return found


def _is_free(nodes: Nodes, node: int, found: Sequence[bool]) -> bool:
    parts = nodes.parts[node]
    match nodes.kind[node]:
        case Kind.PAIR:
            passed = [found[part] or nodes.nullable[part] for part in parts]
            return all(passed) and any(found[part] for part in parts)
        case Kind.BOTH:
            return all(found[part] for part in parts)
        case Kind.DIFF:
            return found[parts[0]]
        case _:
            return any(found[part] for part in parts)


def _may_go_round(nodes: Nodes, words: Sequence[bool]) -> bool:
    """Whether something can be repeated for ever with free letters alone."""
    endless = (
        words[nodes.parts[node][0]]
        for node, kind in enumerate(nodes.kind)
        if kind is Kind.REPEAT and nodes.high[node] is None
    )
    return any(endless) or _recurs(nodes, words)


def _recurs(nodes: Nodes, words: Sequence[bool]) -> bool:
    """Whether a node comes back to itself beside free letters alone."""
    steps = [_free_steps(nodes, node, words) for node in range(len(nodes.kind))]
    inside: Callable[[int], Sequence[int]] = steps.__getitem__
    return any(
        len(part) > 1 or part[0] in steps[part[0]] for part in components(len(steps), inside)
    )


def _free_steps(nodes: Nodes, node: int, words: Sequence[bool]) -> list[int]:
    """The parts of `node` beside which nothing, or free letters alone, may stand."""
    parts = nodes.parts[node]
    if nodes.kind[node] is not Kind.PAIR:
        return list(parts)
    free = [words[part] or nodes.nullable[part] for part in parts]
    return [part for part, other in zip(parts, reversed(free), strict=True) if other]
