"""What plans keep of the statements of language 1.2.

Normative text: docs/spec/language.md, section 7.  What speaks of listed fields alone is written out
here: where one set of calls before another says it, as a `require` or a `forbid` of the core; else
as plans that are taken away, a regular expression of the words that break the statement.  Of what
whoever makes the calls holds, the automaton keeps a part: some call that a `require` asks for.
Cost: the groups of calls that a statement tells apart, pair by pair, at most MAX_PAIRS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tcc_certs.policy.plans import CallSet
from tcc_certs.formats.codec import Json, encode
from tcc_compiler.frozen import frozen
from tcc_compiler.language.source import Region
from tcc_compiler.resolve.calls import CallList, Chosen, members
from tcc_compiler.resolve.decided import Sides, Value, both, fields_in, truth, value_of
from tcc_compiler.resolve.policies import PolicyPart, ResolvedPolicy

MAX_PAIRS = 1 << 18  # of groups of calls, for one statement


@frozen
class Expanded:
    """Statements of the core, and what is taken away from the plans or asked of them.

    Attributes:
        cuts: words that are no plans, as the core writes them, but with call sets for numbers.
        asked: what plans have to be too, likewise.
        used: the call sets in these.
        beside: statements that plans are cut by and that whoever makes the calls holds, too.
    """

    requires: list[tuple[str, CallSet, CallSet, Region]] = field(default_factory=list)
    forbids: list[tuple[str, tuple[CallSet, ...], Region]] = field(default_factory=list)
    cuts: list[tuple[Json, Region]] = field(default_factory=list)
    asked: list[tuple[Json, Region]] = field(default_factory=list)
    used: set[CallSet] = field(default_factory=set)
    beside: list[ResolvedPolicy] = field(default_factory=list)


class TooManyPairs(Exception):
    """A statement tells too many groups of calls apart, at this region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        super().__init__(region)


def expand(policies: Sequence[ResolvedPolicy], call_list: CallList) -> Expanded:
    """The statements written out.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
        TooManyPairs: a statement would compare too many calls.
    """
    found = Expanded()
    for policy in policies:
        expander = _Expander(policy, call_list, found)
        if policy.held:
            expander.shadow()
        else:
            before = len(found.cuts)
            expander.run()
            if len(found.cuts) > before and expander.forbids_after_errors():
                # No automaton knows of a call that failed: after an error that was read the
                # statement is held call by call.
                found.beside.append(policy)
    return found


@frozen(eq=False)
class _Group:
    """Calls that a statement does not tell apart.

    Attributes:
        values: of the fields that it names.
    """

    calls: frozenset[int]
    tool: str
    values: Mapping[str, Value]


@frozen
class _Sets:
    """What an alternative says of the calls before those of one group.

    Attributes:
        sure, may: calls of which its conditions and keys hold, or may.
        same, like: calls of the set's tools whose keys are equal, or may be.
    """

    sure: frozenset[int]
    may: frozenset[int]
    same: frozenset[int]
    like: frozenset[int]


class _Expander:
    """One statement."""

    def __init__(self, policy: ResolvedPolicy, call_list: CallList, found: Expanded) -> None:
        self.policy = policy
        self.call_list = call_list
        self.found = found
        self.every = frozenset(range(len(call_list.calls)))
        self.pairs = 0

    def run(self) -> None:
        policy = self.policy
        if policy.order == "next":
            chain = tuple(call_set(self._members(part.calls)) for part in policy.parts)
            if all(chain):
                self.found.forbids.append(("next", chain, policy.region))
        elif policy.kind == "uses":
            self._uses()
        else:
            self._orders()

    def forbids_after_errors(self) -> bool:
        """Whether a call that it forbids others after may fail with an error that was read."""
        if self.policy.kind != "forbid":
            return False
        met = {
            self.call_list.calls[at].tool
            for p in self.policy.parts
            for at in self._members(p.calls)
        }
        return any("errors" in self.call_list.tools[tool].extras for tool in met)

    def shadow(self) -> None:
        """What the automaton keeps of a `require`: some call of its sets before each of B."""
        policy = self.policy
        needs = policy.kind == "require" and policy.order in ("before", "each")
        if not needs or any(part.calls is None for part in policy.parts):
            return
        helps = frozenset[int]().union(*(self._members(part.calls) for part in policy.parts))
        own = self._members(policy.own)
        if own:
            self.found.requires.append(("before", call_set(helps), call_set(own), policy.region))

    def _members(self, chosen: Chosen | None) -> frozenset[int]:
        return self.every if chosen is None else members(chosen, self.call_list)

    def _groups(self, calls: Iterable[int], names: set[str]) -> list[_Group]:
        """Some calls, by their tools and the values of some fields."""
        places = {
            tool: [(name, found.places[name]) for name in sorted(names) if name in found.places]
            for tool, found in self.call_list.tools.items()
        }
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in sorted(calls):
            call = self.call_list.calls[number]
            key = (call.tool, *(call.values[place] for _, place in places[call.tool]))
            groups.setdefault(key, []).append(number)
        made: list[_Group] = []
        for numbers in groups.values():
            call = self.call_list.calls[numbers[0]]
            parameters = self.call_list.tools[call.tool].parameters
            values = {
                name: value_of(
                    parameters[place].values[call.values[place]], parameters[place].values
                )
                for name, place in places[call.tool]
            }
            made.append(_Group(calls=frozenset(numbers), tool=call.tool, values=values))
        return made

    # Orders.

    def _orders(self) -> None:
        policy = self.policy
        every = (*policy.parts, *policy.unless)
        relations = [one for part in every for one in (*part.relations, *part.where)]
        own = {name for one in relations for name in fields_in(one, "own")}
        seen = {name for one in relations for name in fields_in(one, "seen")}
        # By what they ask for: calls of one group have the same words before them.
        alike: dict[tuple[_Sets, ...], list[_Group]] = {}
        pools = [self._groups(self._pool(part), seen) for part in every]
        for group in self._groups(self._members(policy.own), own):
            sets = tuple(
                self._sets(part, pool, group) for part, pool in zip(every, pools, strict=True)
            )
            alike.setdefault(sets, []).append(group)
        for sets, groups in alike.items():
            mine = frozenset[int]().union(*(group.calls for group in groups))
            count = len(policy.parts)
            self._order(sets[:count], sets[count:], mine, alike)

    def _pool(self, part: PolicyPart) -> frozenset[int]:
        """The calls of the set's tools."""
        tools = part.calls.tools if part.calls is not None else ()
        return frozenset(place for tool in tools for place in self.call_list.places[tool])

    def _sets(self, part: PolicyPart, pool: Sequence[_Group], own: _Group) -> _Sets:
        self.pairs += len(pool)
        if self.pairs > MAX_PAIRS:
            raise TooManyPairs(self.policy.region)
        inside = self._members(part.calls)
        sure: set[int] = set()
        may: set[int] = set()
        same: set[int] = set()
        like: set[int] = set()
        for group in pool:
            sides = _sides(group, own)
            keys = both([truth(one, sides) for one in part.relations])
            if keys is not False:
                like |= group.calls
                held = both([keys, *(truth(one, sides) for one in part.where)])
                if held is not False:
                    may |= group.calls & inside
                if held:
                    sure |= group.calls & inside
            if keys:
                same |= group.calls
        return _Sets(
            sure=frozenset(sure), may=frozenset(may), same=frozenset(same), like=frozenset(like)
        )

    def _order(
        self,
        sets: tuple[_Sets, ...],
        lifts: tuple[_Sets, ...],
        own: frozenset[int],
        alike: Mapping[tuple[_Sets, ...], Sequence[_Group]],
    ) -> None:
        """What the statement says of the calls of one group."""
        policy = self.policy
        simple = not lifts and all(
            not part.last and part.least == 1 for part in (*policy.parts, *policy.unless)
        )
        if policy.kind == "forbid":
            held = frozenset[int]().union(*(one.may for one in sets))
            if policy.order == "with" or simple:
                if held:
                    chain = (call_set(held), call_set(own))
                    self.found.forbids.append((policy.order, chain, policy.region))
                return
            self._cut(_alt([self._held(i, sets[i], lifts) for i in range(len(sets))]), own)
            return
        if policy.order == "after" or (simple and policy.order == "before"):
            helps = frozenset[int]().union(*(one.sure for one in sets))
            self.found.requires.append(
                (policy.order, call_set(helps), call_set(own), policy.region)
            )
            return
        if policy.order == "each":
            helped = [self._unused(number, sets[number], alike) for number in range(len(sets))]
        else:
            helped = [self._helped(part, one) for part, one in zip(policy.parts, sets, strict=True)]
        self._cut(_less(_all(self), [_alt(helped)]), own)

    def _cut(self, before: Json, own: frozenset[int]) -> None:
        """No plan has one of some words, and then one of these calls."""
        if own:
            words = _seq([before, self.call(own), _all(self)])
            self.found.cuts.append((words, self.policy.region))

    def call(self, calls: frozenset[int]) -> Json:
        """One call of a set, with the set in place of its number; of none no plan."""
        made = call_set(calls)
        self.found.used.add(made)
        placeholder: Any = made
        return ["call", placeholder]

    def _helped(self, part: PolicyPart, sets: _Sets) -> Json:
        """The words behind which an alternative surely holds."""
        every = _all(self)
        if part.last:
            if part.least > 1:
                return _none(self)
            return _seq([every, self.call(sets.sure), self._without(sets.like)])
        one = _seq([every, self.call(sets.sure)])
        return _seq([_repeat(one, part.least), every])

    def _without(self, calls: frozenset[int]) -> Json:
        """Any calls but these."""
        return ["repeat", self.call(self.every - calls), 0]

    def _held(self, number: int, sets: _Sets, lifts: Sequence[_Sets]) -> Json:
        """The words behind which an alternative of a `forbid` may hold of calls not lifted."""
        part = self.policy.parts[number]
        every = _all(self)
        behind: Json = every
        if part.last:
            if part.least > 1:
                return _none(self)
            behind = self._without(sets.same)
        elif part.least > 1:
            more = _seq([every, self.call(sets.may)])
            behind = _seq([_repeat(more, part.least - 1), every])
        lifted = [
            self._helped(one, found) for one, found in zip(self.policy.unless, lifts, strict=True)
        ]
        return _seq([every, self.call(sets.may), _less(behind, lifted) if lifted else behind])

    def _unused(
        self, number: int, sets: _Sets, alike: Mapping[tuple[_Sets, ...], Sequence[_Group]]
    ) -> Json:
        """The words with a call that an alternative holds of and that has served no call since."""
        part = self.policy.parts[number]
        every = _all(self)
        # Calls by the groups of B that they may serve.
        served: dict[tuple[int, ...], set[int]] = {}
        others = [
            (found[number], frozenset[int]().union(*(group.calls for group in groups)))
            for found, groups in alike.items()
        ]
        for call in sets.sure:
            key = tuple(i for i, (found, _) in enumerate(others) if call in found.may)
            if not any(call in others[i][1] for i in key):  # it does not serve behind itself
                served.setdefault(key, set()).add(call)
        words: list[Json] = []
        if part.least > 1 and (part.last or len(served) > 1):
            if part.last:
                return _none(self)
            raise TooManyPairs(self.policy.region)
        for key, calls in served.items():
            taking = frozenset[int]().union(*(others[i][1] for i in key))
            if not part.last:
                one = _seq([self.call(frozenset(calls)), self._without(taking)])
                words.append(_seq([every, _repeat(one, part.least)]))
                continue
            # A later call of the same keys ends it; one of B takes it while it is the latest.
            taken = [
                _seq([self._without(others[i][0].same), self.call(others[i][1]), every])
                for i in key
            ]
            free = self._without(sets.like)
            words.append(
                _seq([every, self.call(frozenset(calls)), _less(free, taken) if taken else free])
            )
        return _alt(words) if words else _none(self)

    # Limits.

    def _uses(self) -> None:
        policy = self.policy
        (part,) = policy.parts
        named = {name for one in (*part.where, *policy.per) for name in fields_in(one, "own")}
        counted: dict[tuple[object, ...], set[int]] = {}
        unsure: set[int] = set()  # without a value of what is counted by
        every = _all(self)
        for group in self._groups(self._members(part.calls), named):
            sides = _sides(None, group)
            held = both([truth(one, sides) for one in part.where])
            if held is False or (held is None and policy.order == ">="):
                continue
            key = tuple(sides[one[0], one[1]] if one[0] == "own" else one for one in policy.per)
            if None in key:
                unsure |= group.calls
            else:
                counted.setdefault(key, set()).update(group.calls)
        if policy.order == ">=":
            asked = self._times(frozenset(counted.get((), ())), policy.most)
            self.found.asked.append((_seq([asked, every]), policy.region))
            return
        # A call without a value may be one of each, and all others may be with it.
        whole = frozenset(unsure.union(*counted.values()))
        turns = [(frozenset(calls | unsure), frozenset(calls)) for calls in counted.values()]
        for calls, last in [*turns, (whole, frozenset(unsure))]:
            if last:
                words = [self._times(calls, policy.most), every, self.call(last), every]
                self.found.cuts.append((_seq(words), policy.region))

    def _times(self, calls: frozenset[int], times: int) -> Json:
        """So many of them, with anything before each; of none no pattern is used."""
        if times == 0:
            return ["empty"]
        return _repeat(_seq([_all(self), self.call(calls)]), times)


def numbered(expression: Json, numbers: Mapping[CallSet, int]) -> Json:
    """An expression with the number of each call set."""
    if not isinstance(expression, list):
        return expression
    if expression[:1] == ["call"]:
        made: Any = expression[1]
        return ["call", numbers[made]]
    return [numbered(part, numbers) for part in expression]


def narrowed(plan: Json, cuts: Sequence[Json], asked: Sequence[Json]) -> Json:
    """The plans that are what is asked too, without those that are cut; each is given once."""
    parts = _distinct(asked)
    if parts:
        inner = plan[1] if isinstance(plan, list) and plan[0] == "and" else [plan]
        plan = ["and", [*(inner if isinstance(inner, list) else []), *parts]]
    others = _distinct(cuts)
    if not others:
        return plan
    if isinstance(plan, list) and plan[0] == "diff" and isinstance(plan[2], list):
        return ["diff", plan[1], [*plan[2], *others]]
    return ["diff", plan, others]


def _distinct(expressions: Sequence[Json]) -> list[Json]:
    found = {encode(one): one for one in expressions}
    return [found[key] for key in sorted(found)]


def _sides(seen: _Group | None, own: _Group) -> Sides:
    sides = {("own", name): value for name, value in own.values.items()}
    if seen is not None:
        sides |= {("seen", name): value for name, value in seen.values.items()}
    return sides


# Expressions, in the one form that the core has of them.


def _all(expander: _Expander) -> Json:
    return ["repeat", expander.call(expander.every), 0]


def _none(expander: _Expander) -> Json:
    return expander.call(frozenset())


def _seq(parts: Sequence[Json]) -> Json:
    flat: list[Json] = []
    for part in parts:
        inner = part[1] if isinstance(part, list) and part[0] == "seq" else [part]
        flat += inner if isinstance(inner, list) else []
    return ["seq", flat] if len(flat) > 1 else flat[0]


def _alt(parts: Sequence[Json]) -> Json:
    flat: list[Json] = []
    for part in parts:
        inner = part[1] if isinstance(part, list) and part[0] == "alt" else [part]
        flat += [one for one in (inner if isinstance(inner, list) else []) if one not in flat]
    return ["alt", flat] if len(flat) > 1 else flat[0]


def _less(base: Json, others: Sequence[Json]) -> Json:
    return ["diff", base, list(others)]


def _repeat(one: Json, times: int) -> Json:
    return one if times == 1 else ["repeat", one, times, times]


def call_set(numbers: Iterable[int]) -> CallSet:
    """The ranges of some calls."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return tuple(ranges)
