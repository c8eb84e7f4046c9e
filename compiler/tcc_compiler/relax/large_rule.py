"""Which rule makes the determinised plan expression too large, so that a warning can name it.

It is an innermost rule among those whose own automaton is already large.
Cost: linear in the expressions, and a few thousand state sets for each of at most `_MOST_RULES`
rules.
"""

from __future__ import annotations

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


def find_large_rule(core: Core, letters: Letters) -> str | None:
    """The name of that rule; None where no rule is too large by itself."""
    names = list(core.rules)[:_MOST_RULES]
    large = _large(core, letters, names) if names else []
    inner = {name: _rules_in(core, name) for name in large}
    for name in large:
        if not any(other in inner[name] for other in large if other != name):
            return name
    return large[0] if large else None


def _large(core: Core, letters: Letters, names: list[str]) -> list[str]:
    """Those of `names` with more state sets than the cap; the node table is built once for all."""
    guard = Guard(Options(max_states=16 * _CAP))
    driver = find_driver(core, letters, guard)
    weights = driver.weights if driver else [1] * len(letters.calls)
    try:
        nodes = Nodes([[weights[letter] for letter in p] for p in letters.patterns], guard)
        rules = nodes.add_rules(core.rules)
        nodes.settle()
    except Refused:
        return names
    network = Network(nodes, letters.patterns, guard)
    return [name for name in names if _is_large(network, rules[name], driver, guard)]


def _is_large(network: Network, rule: int, driver: Driver | None, guard: Guard) -> bool:
    try:
        return determinise(network, network.initial(rule), driver, _CAP, guard) is None
    except Refused:
        return True


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
