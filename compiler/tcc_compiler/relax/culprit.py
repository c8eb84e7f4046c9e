"""Which rule makes the determinised plan expression large: the innermost that does so alone.

Cost: a few thousand state sets for each rule, at most `_MOST_RULES` rules.
"""

from __future__ import annotations

from tcc_certs.expressions import walk
from tcc_certs.grammar import Core, RuleRef
from tcc_compiler.determinise import determinise
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
    large = [name for name in list(core.rules)[:_MOST_RULES] if _is_large(core, letters, name)]
    inner = {name: _named(core, name) for name in large}
    for name in large:
        if not any(other in inner[name] for other in large if other != name):
            return name
    return large[0] if large else None


def _is_large(core: Core, letters: Letters, name: str) -> bool:
    driver = find_driver(core, letters)
    weights = driver.weights if driver else [1] * len(letters.calls)
    guard = Guard(Options(max_states=16 * _CAP))
    try:
        nodes = Nodes([[weights[letter] for letter in p] for p in letters.patterns], guard)
        rules = nodes.add_rules(core.rules)
        nodes.settle()
        network = Network(nodes, letters.patterns, guard)
        return determinise(network, network.initial(rules[name]), driver, _CAP, guard) is None
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
