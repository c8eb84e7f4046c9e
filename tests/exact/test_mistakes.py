"""Deliberate mistakes in what has to be tried: brute force finds each.

A row of a mistake has the seed at which the search for it begins: the first one that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from tcc.library.proving import prove
from tcc_certs.proof import compared, moves, rules
from tcc_certs.proof.histories import Histories
from tcc_certs.proof.lists import Elements
from tcc_certs.proof.sides import Side
from tcc_runtime.exact import compared as searched, search, system
from tests.exact import test_brute_later as later
from tests.exact.test_brute import ask
from tests.oracle_policies import language as l

Patch = Callable[[pytest.MonkeyPatch], None]


def atoms_dropped(patch: pytest.MonkeyPatch) -> None:
    """All values of a sort but those of one atom are forgotten."""
    for place in (compared, searched):
        whole = place.atoms_of
        patch.setattr(place, "atoms_of", lambda *given, whole=whole: whole(*given)[:1])


def shared_keys_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A value that is remembered never comes again."""

    def other(self: Any, part: Any, kind: Any, held: Any, summaries: Any) -> Iterator[Any]:
        most = max([0, *held])
        return (
            tokens
            for tokens in choices(self, part, kind, held, summaries)
            if part.tracked is None
            and len({t for t in tokens if t is not None}) == len(tokens)
            and not any(t in held for t in tokens if t is not None and t <= most)
        )

    choices = moves.System._choices
    patch.setattr(moves.System, "_choices", other)


def one_kind_of_key(patch: pytest.MonkeyPatch) -> None:
    """Of the keys that are asked about only the first."""
    keys = moves.System._keys
    patch.setattr(moves.System, "_keys", lambda self, monitor, call: keys(self, monitor, call)[:1])


def intervals_joined(patch: pytest.MonkeyPatch) -> None:
    """States with other sums are one."""
    seen: dict[Any, Any] = {}

    def joined(state: search.State) -> Any:
        found, names = canonical(state)
        bare = found.left, found.right, found.mine, found.other
        return seen.setdefault((id(seen), bare), found), names

    canonical = search.canonical
    patch.setattr(search, "canonical", joined)
    add = search._Search.add

    def cleared(self: Any, state: Any, before: int, move: Any) -> Any:
        if before < 0:
            seen.clear()
        return add(self, state, before, move)

    patch.setattr(search._Search, "add", cleared)
    patch.setattr("tcc_runtime.exact.certificate.by_keys", lambda *given, **more: None)


def sums_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What calls add is not added."""
    patch.setattr(moves.System, "_summed", lambda self, sums, kind, tokens: (sums, ""))


def finish_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A statement owes nothing at an end."""
    accepts = Side.accepts
    patch.setattr(Side, "accepts", lambda self, place: self.machine is None or accepts(self, place))


@pytest.mark.parametrize(
    ("mistake", "first"),
    [
        (atoms_dropped, 17),
        (shared_keys_forgotten, 0),
        (one_kind_of_key, 65),
        (intervals_joined, 227),
        (sums_forgotten, 54),
        (finish_forgotten, 8),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_mistake_is_found(monkeypatch: pytest.MonkeyPatch, mistake: Patch, first: int) -> None:
    mistake(monkeypatch)
    assert found_by(range(first, first + 400)) is not None


def found_by(seeds: Sequence[int], ask: Callable[[int, dict[str, int]], Any] = ask) -> int | None:
    """The first seed that shows it."""
    for seed in seeds:
        try:
            ask(seed, {})
        except AssertionError:
            return seed
    return None


# Of statements of version 1.2.


def values_never_come_again(patch: pytest.MonkeyPatch) -> None:
    """Of the values that are remembered none is chosen again."""
    checked, found = moves.System._choices, system.System._choices
    patch.setattr(
        moves.System,
        "_choices",
        lambda self, part, kind, held, summaries: checked(self, part, kind, (), summaries),
    )
    patch.setattr(
        system.System,
        "_choices",
        lambda self, kind, held: found(self, kind, replace(held, tokens={})),
    )


def time_stands_still(patch: pytest.MonkeyPatch) -> None:
    """No time goes by between calls."""
    patch.setattr(Histories, "advances", lambda self, past: iter([(True, past)]))


def windows_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A call is remembered whatever its age."""
    whole = Histories.__init__

    def made(self: Any, *given: Any) -> None:
        whole(self, *given)
        self._offsets = (0,) * len(self._offsets)

    patch.setattr(Histories, "__init__", made)


def ages_joined(patch: pytest.MonkeyPatch) -> None:
    """All calls leave a span together."""
    ages = Histories._ages

    def joined(self: Any, now: Sequence[int]) -> Iterator[tuple[int, ...]]:
        return (some for some in ages(self, now) if len(set(some)) == 1)

    patch.setattr(Histories, "_ages", joined)


def order_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Which of two calls came first is nothing."""
    patch.setattr(rules, "_in_order", lambda policy: False)


def counts_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Calls with the same fields are one."""
    patch.setattr(rules, "_alike", lambda policy: 1)


def debts_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Nothing is owed at an end."""
    patch.setattr(Histories, "owes", lambda self, *given: False)


def calls_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Of each history the last call is all that is known."""
    settled = Histories._settled
    patch.setattr(Histories, "_settled", lambda self, *given: settled(self, *given)[-1:])


def learned_too_late(patch: pytest.MonkeyPatch) -> None:
    """What a session learns is what it was told last."""
    patch.setattr(
        Histories,
        "_learned",
        lambda self, past, made: (
            self._attributes_entry(
                {
                    **self._attributes_of(past),
                    **{
                        at: dict(made.parts)[name]
                        for at, one in enumerate(self.attributes)
                        for tool, name in one.sources
                        if tool == made.tool and name in dict(made.parts)
                    },
                }
            ),
        ),
    )


def given_nothing(patch: pytest.MonkeyPatch) -> None:
    """Of what a session is given the first choice is all."""
    starts = system.System.starts
    patch.setattr(system.System, "starts", lambda self: islice(starts(self), 1))


def answers_known_early(patch: pytest.MonkeyPatch) -> None:
    """The answers of a call are known when it is decided."""
    refused = Histories.refused
    patch.setattr(
        Histories,
        "refused",
        lambda self, past, made, uses, side: refused(
            self, past, replace(made, answers=frozenset()), uses, side
        ),
    )


def learned_for_calls_before(patch: pytest.MonkeyPatch) -> None:
    """What a session has learned is known of the calls before, too."""
    events = Histories._events

    def made(self: Any, rule: Any, group: Any, entries: Any, now: Any) -> Iterator[Any]:
        for event in events(self, rule, group, entries, now):
            if event is not None:
                event.session = self._session(rule, now.known)
            yield event

    patch.setattr(Histories, "_events", made)


def in_no_list_before(patch: pytest.MonkeyPatch) -> None:
    """A value that comes anew is in no list that is remembered."""
    patch.setattr(Elements, "_brought", lambda self, now, *given: iter([now]))


def in_no_new_list(patch: pytest.MonkeyPatch) -> None:
    """No value that is live is in a list that a call brings."""
    listed = Elements._listed
    patch.setattr(Elements, "_listed", lambda self, now, many, _: listed(self, now, many, ()))


def no_other_elements(patch: pytest.MonkeyPatch) -> None:
    """A list has no elements but values that are live."""
    patch.setattr(Elements, "_summary", lambda self, *given: None)


def elements_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Which values are in lists is forgotten after each call."""
    patch.setattr(Elements, "kept", lambda self, pairs, held: ([], []))


def in_all_or_none(patch: pytest.MonkeyPatch) -> None:
    """A value that comes anew is in all lists that are remembered, or in none of them."""
    brought = Elements._brought

    def alike(self: Any, now: Any, one: Any, lists: Any, beside: Any) -> Iterator[Any]:
        for way in brought(self, now, one, lists, beside):
            if len({(many, one) in way.pairs for many in lists}) < 2:
                yield way

    patch.setattr(Elements, "_brought", alike)


def summaries_stay(patch: pytest.MonkeyPatch) -> None:
    """A value of a summary is never the last one of it."""
    brought = Elements._brought

    def stays(self: Any, now: Any, *given: Any) -> Iterator[Any]:
        for way in brought(self, now, *given):
            there = {one for _, one in way.pairs}
            if all(summary in there for _, summary in way.taken[len(now.taken) :]):
                yield way

    patch.setattr(Elements, "_brought", stays)


def summaries_merged(patch: pytest.MonkeyPatch) -> None:
    """Summaries of an atom become one, whatever lists they are in."""
    kept = Elements.kept

    def merged(self: Any, pairs: Any, held: Any) -> Any:
        looked, joined = kept(self, pairs, held)
        first: dict[int, Any] = {}
        for one in self.summaries(looked, held):
            like = first.setdefault(self.atom_of(one), one)
            joined += [] if like == one else [(one, like)]
        away = {one for one, _ in joined}
        return [pair for pair in looked if pair[1] not in away], joined

    patch.setattr(Elements, "kept", merged)


def lists_shorter(patch: pytest.MonkeyPatch) -> None:
    """A list in which a value is found has room for an element less than its type says."""

    def room(self: Any, now: Any, one: Any) -> bool:
        mine = [many for many, other in now.pairs if other == one]
        return all(self._size(now, many) < self._kind(many).most for many in mine)

    patch.setattr(Elements, "_have_room", room)


@pytest.mark.parametrize(
    ("mistake", "first"),
    [(in_all_or_none, 5), (summaries_stay, 0), (summaries_merged, 26), (lists_shorter, 16)],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_mistake_about_several_lists_is_found(
    monkeypatch: pytest.MonkeyPatch, mistake: Patch, first: int
) -> None:
    mistake(monkeypatch)

    def asked(seed: int, tally: dict[str, int]) -> None:
        later.ask(seed, tally, "members")

    assert found_by(range(first, first + 400), asked) is not None


@pytest.mark.parametrize(
    ("mistake", "first"),
    [
        (in_no_list_before, 298),
        (in_no_new_list, 0),
        (no_other_elements, 57),
        (elements_forgotten, 0),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_mistake_about_lists_is_found(
    monkeypatch: pytest.MonkeyPatch, mistake: Patch, first: int
) -> None:
    mistake(monkeypatch)

    def asked(seed: int, tally: dict[str, int]) -> None:
        later.ask(seed, tally, "lists")

    assert found_by(range(first, first + 400), asked) is not None


@pytest.mark.parametrize(
    ("mistake", "first"),
    [
        (learned_too_late, 81),
        (given_nothing, 93),
        (atoms_dropped, 1),
        (answers_known_early, 133),
        (learned_for_calls_before, 56),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_mistake_about_fields_is_found(
    monkeypatch: pytest.MonkeyPatch, mistake: Patch, first: int
) -> None:
    mistake(monkeypatch)
    told = mistake in (answers_known_early, learned_for_calls_before)

    def asked(seed: int, tally: dict[str, int]) -> None:
        later.ask(seed, tally, "told" if told else "fields")

    assert found_by(range(first, first + 400), asked) is not None


@pytest.mark.parametrize(
    ("mistake", "timed", "first"),
    [
        (atoms_dropped, False, 16),
        (values_never_come_again, False, 0),
        (order_forgotten, False, 164),
        (counts_forgotten, False, 83),
        (debts_forgotten, False, 5),
        (calls_forgotten, False, 42),
        (time_stands_still, True, 4),
        (windows_forgotten, True, 4),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_mistake_about_later_statements_is_found(
    monkeypatch: pytest.MonkeyPatch, mistake: Patch, timed: bool, first: int
) -> None:
    mistake(monkeypatch)

    def asked(seed: int, tally: dict[str, int]) -> None:
        later.ask(seed, tally, "timed" if timed else "later")

    assert found_by(range(first, first + 400), asked) is not None


def test_calls_that_leave_a_span_one_by_one_are_not_all_of_an_age(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One call before the last is inside of the span, and the one before that is not."""
    calls = [l.Pattern(tool=name) for name in "abc"]
    span = [l.Alternative(calls=one, within=3) for one in calls]
    made = l.Grammar(
        tools=tuple([l.Tool(name=name) for name in "abc"]),
        statements=(
            l.Depth(most=3),
            l.Require(alternatives=(span[0],), before=calls[2], monitor=True),
            l.Forbid(alternatives=(span[1],), before=calls[2], monitor=True),
            l.Require(alternatives=(span[1],), before=calls[0], monitor=True),
        ),
    )
    artifact = later.compiled(made)
    assert artifact is not None and later.brute.reaches(made, "c") == 3
    found = prove(artifact, reachable="c")
    assert found.session is not None
    assert [call.at_ms for call in found.session.calls] == [0, 1, 4]
    ages_joined(monkeypatch)
    assert prove(artifact, reachable="c").verdict == "refuted"
