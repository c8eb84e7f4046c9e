"""Two estimates from the plan expression: whether there are finitely many plans, and a large rule.

`stays_finite`: infinitely many plans need an unbounded repetition or a recursive rule. If each
round adds to a sum with an upper limit that is kept, the rounds are bounded. The answer "yes" is
certain. The answer "no" may be wrong, because other statements may forbid such a repetition.
`find_large_rule`: an innermost rule among those whose own automaton is already large.
Cost: linear in the expressions, at worst times the nesting. Some thousand state sets for each of at
most `_MOST_RULES` rules, inner rules first, until one is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tcc_certs.policy.core import Core
from tcc_certs.policy.expressions import walk
from tcc_certs.policy.plans import RuleRef
from tcc_compiler.automata.constraint.statements import sums_of
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.regular.determinise import Driver, determinise
from tcc_compiler.automata.regular.explore import find_driver
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import NodeKind, Nodes, build
from tcc_compiler.automata.table import components
from tcc_compiler.options import Options
from tcc_compiler.resources import CompileRefused, Guard


def stays_finite(core: Core, letters: Letters, guard: Guard) -> bool:
    """Return whether `core`, with the statements of `letters`, surely has finitely many plans."""
    free = _free_letters(core, letters)
    if not free:
        return True
    nodes, _ = build(core, [[1] * len(pattern) for pattern in letters.patterns], guard)
    heads = [not free.isdisjoint(pattern) for pattern in letters.patterns]
    words = _free_words(nodes, heads)
    return not _may_repeat(nodes, words)


def _free_letters(core: Core, letters: Letters) -> set[int]:
    """Return the letters that add nothing to any sum."""
    free = set(range(len(letters.calls)))
    for one in sums_of(core, letters):
        if min(one.amounts, default=0) >= 0:
            free -= {letter for letter, amount in enumerate(one.amounts) if amount}
    return free


def _free_words(nodes: Nodes, heads: Sequence[bool]) -> list[bool]:
    """Return [nodes], whether a node may derive a word of one or more free letters.

    Args:
        heads: [patterns], whether a pattern has a free letter.
    """
    users: list[list[int]] = [[] for _ in nodes.kind]
    for node, parts in enumerate(nodes.parts):
        for part in parts:
            users[part].append(node)
    derives = [False] * len(users)
    todo = [
        n for n, kind in enumerate(nodes.kind) if kind is NodeKind.CALL and heads[nodes.pattern[n]]
    ]
    while todo:
        node = todo.pop()
        if derives[node]:
            continue
        derives[node] = True
        todo += [
            user for user in users[node] if not derives[user] and _is_free(nodes, user, derives)
        ]
    return derives


def _is_free(nodes: Nodes, node: int, derives: Sequence[bool]) -> bool:
    parts = nodes.parts[node]
    match nodes.kind[node]:
        case NodeKind.PAIR:
            passed = [derives[part] or nodes.nullable[part] for part in parts]
            return all(passed) and any(derives[part] for part in parts)
        case NodeKind.BOTH:
            return all(derives[part] for part in parts)
        case NodeKind.DIFF:
            return derives[parts[0]]
        case _:
            return any(derives[part] for part in parts)


def _may_repeat(nodes: Nodes, words: Sequence[bool]) -> bool:
    """Return whether a part can be repeated without end by free letters alone."""
    endless = (
        words[nodes.parts[node][0]]
        for node, kind in enumerate(nodes.kind)
        if kind is NodeKind.REPEAT and nodes.high[node] is None
    )
    return any(endless) or _recurs(nodes, words)


def _recurs(nodes: Nodes, words: Sequence[bool]) -> bool:
    """Return whether a node can contain itself and otherwise only free letters."""
    steps = [_free_steps(nodes, node, words) for node in range(len(nodes.kind))]
    inside: Callable[[int], Sequence[int]] = steps.__getitem__
    return any(
        len(part) > 1 or part[0] in steps[part[0]] for part in components(len(steps), inside)
    )


def _free_steps(nodes: Nodes, node: int, words: Sequence[bool]) -> list[int]:
    """Return the parts of `node` next to which the empty word or free letters may be."""
    parts = nodes.parts[node]
    if nodes.kind[node] is not NodeKind.PAIR:
        return list(parts)
    free = [words[part] or nodes.nullable[part] for part in parts]
    return [part for part, other in zip(parts, reversed(free), strict=True) if other]


_MOST_RULES = 32
_CAP = 1 << 12


def find_large_rule(
    core: Core, letters: Letters, options: Options | None = None, allowed: float | None = None
) -> str | None:
    """Return a rule that is too large by itself; None if there is none, or time ran out.

    Args:
        options: only the clock is used.
        allowed: the seconds for the search; None for no limit.
    """
    names = list(core.rules)[:_MOST_RULES]
    if not names:
        return None
    guard = Guard(replace(options or Options(), max_states=16 * _CAP, progress=None), allowed)
    try:
        return _first_large(core, letters, names, guard)
    except CompileRefused:  # time ran out, so no rule can be named
        return None


def _first_large(core: Core, letters: Letters, names: list[str], guard: Guard) -> str | None:
    """Return the first of `names` with more state sets than the cap, inner rules first.

    The node table is built once for all rules.

    Raises:
        CompileRefused: TCC404, no time is left.
    """
    driver = find_driver(core, letters, guard)
    weights = driver.weights if driver else [1] * len(letters.calls)
    inner_first = sorted(names, key=lambda name: len(_rules_in(core, name)))
    try:
        nodes = Nodes([[weights[letter] for letter in p] for p in letters.patterns], guard)
        rules = nodes.add_rules(core.rules)
        nodes.settle()
    except CompileRefused as refusal:
        _pass_on(refusal)
        return inner_first[0]
    network = Network(nodes, letters.patterns, guard)
    large = (name for name in inner_first if _is_large(network, rules[name], driver, guard))
    return next(large, None)


def _is_large(network: Network, rule: int, driver: Driver | None, guard: Guard) -> bool:
    try:
        return determinise(network, network.initial(rule), driver, _CAP, guard) is None
    except CompileRefused as refusal:
        _pass_on(refusal)
        return True


def _pass_on(refusal: CompileRefused) -> None:
    """Raise the refusal again if it is a timeout."""
    if refusal.code == "TCC404":
        raise refusal


def _rules_in(core: Core, name: str) -> set[str]:
    """Return the names of the rules that `name` reaches."""
    reached: set[str] = set()
    todo = [name]
    while todo:
        for part in walk(core.rules[todo.pop()]):
            if isinstance(part, RuleRef) and part.name not in reached:
                reached.add(part.name)
                todo.append(part.name)
    return reached
