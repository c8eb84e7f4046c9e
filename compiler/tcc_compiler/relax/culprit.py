"""Which rule makes the determinised plan expression large: the innermost that does so alone.

Cost: linear in the expressions, and a few thousand state sets for each of at most `_MOST_RULES`
rules.
"""

from __future__ import annotations

from tcc_certs.core.expressions import walk
from tcc_certs.core.model import Core, RuleRef
from tcc_compiler.determinise import Driver, determinise
from tcc_compiler.explore import find_driver
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters
from tcc_compiler.options import Options
from tcc_compiler.refusal import Refused
from tcc_compiler.regular.network import Network
from tcc_compiler.regular.nodes import Nodes

_MOST_RULES = 32
_CAP = 1 << 12


def find_culprit(core: Core, letters: Letters) -> str | None:
    """The name of that rule; None where no rule is too large by itself."""
    names = list(core.rules)[:_MOST_RULES]
    large = _large(core, letters, names) if names else []
    inner = {name: _named(core, name) for name in large}
    for name in large:
        if not any(other in inner[name] for other in large if other != name):
            return name
    return large[0] if large else None


def _large(core: Core, letters: Letters, names: list[str]) -> list[str]:
    """Those of `names` whose state sets pass the cap; the expressions are taken in once for all."""
    driver = find_driver(core, letters)
    weights = driver.weights if driver else [1] * len(letters.calls)
    guard = Guard(Options(max_states=16 * _CAP))
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


def _named(core: Core, name: str) -> set[str]:
    """The rules that `name` reaches."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for part in walk(core.rules[todo.pop()]):
            if isinstance(part, RuleRef) and part.name not in found:
                found.add(part.name)
                todo.append(part.name)
    return found
