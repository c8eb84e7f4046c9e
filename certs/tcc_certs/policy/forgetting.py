"""Finds the calls of a session that later decisions need.

A gate or a validator may remove all other calls.  It then decides each later call as before, apart
from the bounds of work (docs/spec/core.md, section 9.16).  A settled call is needed in three cases:

- A statement counts or sums a source, and the call is in the window of the source.
- Another source has the call in its window, and no later call looks the same.  Two calls look the
  same if they have the same tool and outcome, and equal states of all fields that statements use.
- The call has an open obligation, or it pays while an older obligation is open.

Two calls that look the same are equally sure in a source.  Each mark and each window that admits
the earlier call admits the later call.  So a source without the earlier call has the same last,
least and greatest element, and `every` has the same value.

Cost: one pass over the remaining calls each time their number has doubled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Rule, Source
from tcc_certs.policy.history import FAILED, LOST, OPEN, Call
from tcc_certs.policy.kinds import walk

FIRST = 1 << 10  # calls that a history has before the first search
NEVER, ALWAYS = -1 << 62, 1 << 62  # windows that contain no call, and every call


def next_look(kept: int) -> int:
    """Return the number of calls at which a history is searched again."""
    return max(FIRST, 2 * kept)


@dataclass(slots=True)
class _Need:
    """The calls of a tool that statements need.

    Attributes:
        counted: the longest window of the sources that are counted or summed, in milliseconds.
        looked: the longest window of all other sources, in milliseconds.
        names: the fields of the tool that statements use.
        pays: the numbers of the `owe` statements that its calls pay.
    """

    counted: int = NEVER
    looked: int = NEVER
    names: dict[str, None] = field(default_factory=dict)
    pays: list[int] = field(default_factory=list)


class Forgetting:
    """Finds the calls that later decisions need.

    Args:
        rules: the rules of a core's statements.
        fields: by tool, the names of its fields.
    """

    def __init__(self, rules: Sequence[Rule], fields: Mapping[str, frozenset[str]]) -> None:
        self._fields = fields
        self._needs = {tool: _Need() for tool in fields}
        for number, rule in enumerate(rules):
            self._rule(number, rule)

    def needed(
        self, calls: Sequence[Call], now_ms: int, debts: Mapping[int, Iterable[Call]]
    ) -> list[Call]:
        """Return the calls that later decisions need, in order.

        Args:
            calls: all calls of the history, in order.
            now_ms: the caller makes no later decision before this time.
            debts: by the number of an `owe`, the first calls of its open debts.
        """
        firsts = {number: [call.at for call in found] for number, found in debts.items()}
        owing = {at for found in firsts.values() for at in found}
        oldest = {number: min(found) for number, found in firsts.items() if found}
        latest: set[tuple[Any, ...]] = set()
        needed = []
        for call in reversed(calls):
            if self._is_needed(call, now_ms, oldest, latest) or call.at in owing:
                needed.append(call)
        needed.reverse()
        return needed

    def _is_needed(
        self, call: Call, now_ms: int, oldest: Mapping[int, int], latest: set[tuple[Any, ...]]
    ) -> bool:
        if call.outcome in (OPEN, LOST):
            return True
        if call.outcome == FAILED:
            return False
        need, age = self._needs[call.tool], now_ms - call.at_ms
        is_paying = any(oldest.get(number, call.at) < call.at for number in need.pays)
        is_last = False
        if need.looked >= age or is_paying:
            looks = (call.tool, call.outcome, *[call.state(name) for name in need.names])
            is_last = looks not in latest
            latest.add(looks)
        return is_last or need.counted >= age

    # Needs of statements.

    def _rule(self, number: int, rule: Rule) -> None:
        parts = (*rule.where, *rule.paying, *rule.per, rule.then, rule.most)
        sources = list(_sources(parts))
        tools = {tool: None for source, _ in sources for tool in _tools(source)}
        tools |= dict.fromkeys(rule.pays)
        element = forms.Element(0)  # in an `owe`, the first call, which is kept anyway
        names = {form.name for form in walk(parts) if isinstance(form, forms.Get)
                 and form.of != element}  # fmt: skip
        for form in walk(parts):
            if isinstance(form, Source):
                names |= {key.name for key in form.keys}
        names |= {key.name for key in rule.keys}
        for tool in tools:
            used = sorted(names & self._fields[tool])
            self._needs[tool].names |= dict.fromkeys(used)
        for source, is_counted in sources:
            window = ALWAYS if source.within is None else source.within
            for tool in _tools(source):
                need = self._needs[tool]
                if is_counted:
                    need.counted = max(need.counted, window)
                else:
                    need.looked = max(need.looked, window)
        for tool in rule.pays:
            self._needs[tool].pays.append(number)


def _tools(source: Source) -> Iterable[str]:
    return source.base.tools if isinstance(source.base, forms.Calls) else ()


def _sources(parts: object) -> Iterable[tuple[Source, bool]]:
    """Yield the sources of calls inside forms, and whether each is counted or summed."""
    for form in walk(parts):
        if isinstance(form, forms.Count | forms.Sum):
            yield from ((source, True) for source in _collected(form.of))
        elif isinstance(form, Source):
            yield form, False


def _collected(source: Source) -> Iterable[Source]:
    """Yield the sources of calls whose elements or rows are the elements of a source."""
    match source.base:
        case forms.Calls():
            yield source
        case forms.Rows(of):
            yield from _collected(of)
        case forms.Merged(parts):
            for part in parts:
                yield from _collected(part)
