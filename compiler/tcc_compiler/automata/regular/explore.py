"""The automaton of the plan expression, by whichever way of determinising stays small.

Ways are tried in turn under growing caps: the subset construction, the same with one layer for each
depth (with a limit on depth), and, where rules also stand in themselves, the words of each part by
depth; so the work is within a constant factor of the best one.  Recursion that needs a bound on
depth and has none is examined first (:mod:`tcc_compiler.automata.regular.finiteness`).  Where
determinising takes too many states, the automaton of partial derivatives can be used instead: it is
small, and nondeterministic.
"""

from __future__ import annotations

from math import lcm

from tcc_certs.core.model import Core, Limit
from tcc_compiler.automata.letters import Letters, letter_amounts
from tcc_compiler.automata.machine import Machine
from tcc_compiler.automata.regular.determinise import (
    Driver,
    determinise,
    determinise_by_depth,
    follow,
)
from tcc_compiler.automata.regular.explore import bounded_machine
from tcc_compiler.automata.regular.network import Network
from tcc_compiler.automata.regular.nodes import Nodes, build, grows
from tcc_compiler.resources import CompileRefused, Guard

_FIRST_CAP = 1 << 13
_GROWTH = 8
_ENTRIES = 8  # of the tables of bounded words, for each state of a cap


def explore(core: Core, letters: Letters, guard: Guard) -> Machine:
    """The machine of the plan expression; not trimmed.

    It has every plan that meets the limits, and no word that the expression does not derive.
    Words that break a limit may be missing.

    Raises:
        Refused: TCC401 and TCC406 for unbounded recursion, TCC403, TCC404.
    """
    driver = find_driver(core, letters, guard)
    nodes, root = _nodes(core, letters, driver, guard)
    if grows(nodes) and not (driver and driver.depth):
        return _explore_recursion(core, letters, nodes, root, driver, guard)
    return _take_turns(nodes, letters, root, driver, guard)


def explore_partial(core: Core, letters: Letters, guard: Guard) -> Machine:
    """The nondeterministic machine of the plan expression's partial derivatives; not trimmed.

    It has the plans of :func:`explore`, each once for every way of deriving it.

    Raises:
        Refused: TCC401 and TCC406 for unbounded recursion, TCC403, TCC404.
    """
    driver = find_driver(core, letters, guard)
    nodes, root = _nodes(core, letters, driver, guard, as_written=True)
    if grows(nodes) and not (driver and driver.depth):
        bound = _longest(core, letters, nodes, root, guard)
        if bound is not None:
            driver = depth_driver(letters, bound, f"plans of at most {bound} calls")
            nodes, root = _nodes(core, letters, driver, guard, as_written=True)
        elif driver is None or grows(nodes, freely=True):
            raise _undecided()
    from tcc_compiler.automata.regular.determinise import Partials

    return follow(Partials(nodes, letters.patterns, guard), root, driver, guard)


def _nodes(
    core: Core, letters: Letters, driver: Driver | None, guard: Guard, as_written: bool = False
) -> tuple[Nodes, int]:
    weights = driver.weights if driver else [1] * len(letters.calls)
    nodes, root = build(
        core,
        [[weights[letter] for letter in pattern] for pattern in letters.patterns],
        guard,
        as_written,
    )
    _check_least(nodes.least[root], driver, guard)
    return nodes, root


def _check_least(least: int | None, driver: Driver | None, guard: Guard) -> None:
    """Refuse at once where the shortest or lightest plan is out of reach."""
    if least is None or (driver and least > driver.bound):
        within = f" within `{driver.text}`" if driver and least is not None else ""
        raise CompileRefused(
            "TCC402",
            f"there is no plan: the plan expression derives none{within}",
            hint="take statements away until plans appear",
            place="plan",
        )
    if driver is None or driver.depth:
        # As many states as the shortest plan has calls, at least.
        guard.states(least)


def _explore_recursion(
    core: Core, letters: Letters, nodes: Nodes, root: int, driver: Driver | None, guard: Guard
) -> Machine:
    network = Network(nodes, letters.patterns, guard)
    cap = min(_FIRST_CAP, guard.max_states // 8)
    machine = determinise(network, network.initial(root), driver, cap, guard)
    if machine is not None:
        return machine
    bound = _longest(core, letters, nodes, root, guard)
    if bound is not None:
        driver = depth_driver(letters, bound, f"plans of at most {bound} calls")
        nodes, root = _nodes(core, letters, driver, guard)
        return _take_turns(nodes, letters, root, driver, guard)
    if driver is None or grows(nodes, freely=True):
        raise _undecided()
    return _take_turns(nodes, letters, root, driver, guard, network)


def _longest(core: Core, letters: Letters, nodes: Nodes, root: int, guard: Guard) -> int | None:
    from tcc_compiler.automata.regular.finiteness import longest_plan  # for recursion alone

    return longest_plan(core, letters, nodes, root, guard)


def _undecided() -> CompileRefused:
    return CompileRefused(
        "TCC406",
        "it could not be decided whether the recursion of the rules gives finitely many plans",
        hint="add `limit depth <= N`",
        place="plan",
    )


def _take_turns(
    nodes: Nodes,
    letters: Letters,
    root: int,
    driver: Driver | None,
    guard: Guard,
    network: Network | None = None,
) -> Machine:
    """Try one way after the other under growing caps; `network` if there is one already."""
    network = network or Network(nodes, letters.patterns, guard)
    first = network.initial(root)
    cap = min(_FIRST_CAP, guard.max_states)
    depth = driver.bound if driver and driver.depth else None
    nested = depth is not None and grows(nodes)
    while True:
        machine = None
        if depth is not None and nested:
            machine = bounded_machine(nodes, root, letters.patterns, depth, _ENTRIES * cap, guard)
        if machine is None:
            machine = determinise(network, first, driver, cap, guard)
        if machine is None and depth is not None:
            machine = determinise_by_depth(network, first, depth, cap, guard)
        if machine is not None:
            return machine
        guard.growth(len(network.sets), network.calls)
        if cap == guard.max_states:
            guard.states(cap + 1)
        cap = min(cap * _GROWTH, guard.max_states)


def find_driver(core: Core, letters: Letters, guard: Guard) -> Driver | None:
    """The limit on depth where there is one, else all other upper limits together.

    A plan that meets each limit meets their sum, each weighed so that its own bound counts the
    same.  A limit on cost counts where no cost is negative.
    Cost: letters times limits, by the clock of `guard`.

    Raises:
        Refused: TCC404.
    """
    depths = [limit.value for limit in core.limits if limit.kind == "depth"]
    if depths:
        return depth_driver(letters, min(depths), f"limit depth <= {min(depths)}")
    upper_limits: list[tuple[Limit, list[int]]] = []
    for limit in core.limits:
        guard.tick(1 + len(letters.calls))
        amounts = letter_amounts(core, letters, limit)
        if not limit.least and min(amounts, default=0) >= 0:
            upper_limits.append((limit, amounts))
    if not upper_limits:
        return None
    whole = lcm(*(max(1, limit.value) for limit, _ in upper_limits))
    bound = whole * len(upper_limits)
    weights = [0] * len(letters.calls)
    for limit, amounts in upper_limits:
        guard.tick(1 + len(amounts))
        for letter, amount in enumerate(amounts):
            # One call above the limit is above the sum too.
            alone = bound + 1 if amount > limit.value else amount * (whole // max(1, limit.value))
            weights[letter] += alone
    text = " and ".join(f"limit {limit.text}" for limit, _ in upper_limits[:4])
    return Driver(weights=weights, bound=bound, text=text, depth=False)


def depth_driver(letters: Letters, bound: int, text: str) -> Driver:
    """The driver of a bound on the number of calls."""
    return Driver(weights=[1] * len(letters.calls), bound=bound, text=text, depth=True)
