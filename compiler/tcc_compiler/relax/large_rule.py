"""Which rule makes the determinised plan expression too large, so that a warning can name it.

It is an innermost rule among those whose own automaton is already large.
Cost: linear in the expressions, and a few thousand state sets for each of at most `_MOST_RULES`
rules; inner ones are looked at first, and none after one that is too large.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.core.expressions import walk
from tcc_certs.core.model import Core, RuleRef
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.regular.determinise import Driver, determinise
from tcc_compiler.automata.regular.explore import find_driver
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import Nodes
from tcc_compiler.options import Options
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.refusal import Refused

_MOST_RULES = 32
_CAP = 1 << 12


def find_large_rule(
    core: Core, letters: Letters, options: Options | None = None, allowed: float | None = None
) -> str | None:
    """The name of that rule; None where no rule is too large by itself, or time ran out.

    Args:
        options: whose clock is looked at.
        allowed: seconds for it, None for no limit.
    """
    names = list(core.rules)[:_MOST_RULES]
    if not names:
        return None
    guard = Guard(replace(options or Options(), max_states=16 * _CAP, progress=None), allowed)
    try:
        return _first_large(core, letters, names, guard)
    except Refused:  # out of time: of no rule is anything said
        return None


def _first_large(core: Core, letters: Letters, names: list[str], guard: Guard) -> str | None:
    """The first of `names` with more state sets than the cap; inner ones stand before outer ones.

    The node table is built once for all.

    Raises:
        Refused: TCC404 there is no time left.
    """
    driver = find_driver(core, letters, guard)
    weights = driver.weights if driver else [1] * len(letters.calls)
    inner_first = sorted(names, key=lambda name: len(_rules_in(core, name)))
    try:
        nodes = Nodes([[weights[letter] for letter in p] for p in letters.patterns], guard)
        rules = nodes.add_rules(core.rules)
        nodes.settle()
    except Refused as refusal:
        _pass_on(refusal)
        return inner_first[0]
    network = Network(nodes, letters.patterns, guard)
    large = (name for name in inner_first if _is_large(network, rules[name], driver, guard))
    return next(large, None)


def _is_large(network: Network, rule: int, driver: Driver | None, guard: Guard) -> bool:
    try:
        return determinise(network, network.initial(rule), driver, _CAP, guard) is None
    except Refused as refusal:
        _pass_on(refusal)
        return True


def _pass_on(refusal: Refused) -> None:
    """Raise it again where it is about the time."""
    if refusal.code == "TCC404":
        raise refusal


def _rules_in(core: Core, name: str) -> set[str]:
    """The rules that `name` reaches."""
    reached: set[str] = set()
    todo = [name]
    while todo:
        for part in walk(core.rules[todo.pop()]):
            if isinstance(part, RuleRef) and part.name not in reached:
                reached.add(part.name)
                todo.append(part.name)
    return reached
