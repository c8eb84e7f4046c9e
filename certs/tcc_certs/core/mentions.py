"""What a statement of version 1.2 names: fields, attributes, look-ups, the clock, other sessions.

Normative text: docs/spec/core.md, section 7.  Whoever holds statements in a session or proves
something of them asks; reading a core does not.  Cost: linear in the statement.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcc_certs.core.policies import Alternative, Apart, Ban, Count, Need, Owe, Policy, Total, Tree


def _alternatives(policy: Need | Ban) -> tuple[Alternative, ...]:
    """What a call is looked up for, and what lifts that."""
    return policy.alternatives + (policy.unless if isinstance(policy, Ban) else ())


def trees_of(policy: Policy) -> Tree:
    """The terms and relations of a statement."""
    match policy:
        case Need() | Ban():
            parts = _alternatives(policy)
            keys = [term for one in parts for _, term in one.same]
            return (*keys, *[one.where for one in parts])
        case Apart() | Owe():
            return tuple([term for _, term in policy.same])
        case Count():
            return policy.where, policy.per
        case Total():
            return (policy.per,)


def _nodes(tree: object) -> Iterator[Tree]:
    """Every tree in a tree, itself among them; a text is none, whatever it says."""
    if isinstance(tree, tuple) and tree[:1] != ("s",):
        yield tree
        for part in tree:
            yield from _nodes(part)


def fields_compared(policy: Policy) -> tuple[Tree, frozenset[str]]:
    """A set with every tool that a statement names, and the names of all fields it may compare."""
    sets: list[Tree] = []
    names: set[str] = set()
    match policy:
        case Need() | Ban():
            parts = _alternatives(policy)
            sets = [policy.of, *[one.calls for one in parts if one.calls is not None]]
            names.update(name for one in parts for name, _ in one.same)
        case Apart(one=first, other=last, same=same) | Owe(first=first, of=last, same=same):
            sets = [first, last]
            names.update(name for name, _ in same)
        case Count():
            sets = [policy.of]
        case Total():
            sets = [("calls", policy.tool, ())]
            names.add(policy.parameter)
    nodes = _nodes(trees_of(policy))
    names.update(node[1] for node in nodes if node[:1] in (("own",), ("seen",)))
    return ("or", tuple(sets)), frozenset(names)


def looks_named(policy: Policy) -> frozenset[tuple[str, str]]:
    """The look-ups that a statement makes: the name of each, and of the field."""
    nodes = _nodes(trees_of(policy))
    return frozenset([(node[1], node[3]) for node in nodes if node[:1] == ("look",)])


def attributes_named(policy: Policy) -> frozenset[str]:
    """The attributes of the session that a statement speaks of."""
    return frozenset([node[1] for node in _nodes(trees_of(policy)) if node[:1] == ("session",)])


def is_across(policy: Policy) -> bool:
    """Whether other sessions draw on what a statement allows."""
    return isinstance(policy, Count | Total) and policy.across


def is_timed(policy: Policy) -> bool:
    """Whether a statement looks at the clock."""
    windowed = _alternatives(policy) if isinstance(policy, Need | Ban) else [policy]
    timed = any(getattr(one, "within", None) is not None for one in windowed)
    return timed or ("now",) in _nodes(trees_of(policy))
