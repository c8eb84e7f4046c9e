"""Deliberate mistakes in what has to be tried: brute force finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tcc_certs.proof import compared, moves
from tcc_certs.proof.sides import Side
from tcc_runtime.exact import search, system
from tests.exact.test_brute import ask

Patch = Callable[[pytest.MonkeyPatch], None]


def atoms_dropped(patch: pytest.MonkeyPatch) -> None:
    """All values of a sort but those of one atom are forgotten."""
    for place in (compared, system):
        whole = place.atoms_of
        patch.setattr(place, "atoms_of", lambda *given, whole=whole: whole(*given)[:1])


def shared_keys_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A value that is remembered never comes again."""

    def other(self: Any, part: Any, kind: Any, held: Any) -> Iterator[Any]:
        most = max([0, *held])
        return (
            tokens
            for tokens in choices(self, part, kind, held)
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
    patch.setattr("tcc.library.proving.by_keys", lambda *given, **more: None)


def sums_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What calls add is not added."""
    patch.setattr(moves.System, "_summed", lambda self, sums, kind, tokens: (sums, ""))


def finish_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A statement owes nothing at an end."""
    accepts = Side.accepts
    patch.setattr(Side, "accepts", lambda self, place: self.machine is None or accepts(self, place))


@pytest.mark.parametrize(
    "mistake",
    [
        atoms_dropped,
        shared_keys_forgotten,
        one_kind_of_key,
        intervals_joined,
        sums_forgotten,
        finish_forgotten,
    ],
    ids=lambda one: one.__name__,
)
def test_a_mistake_is_found(monkeypatch: pytest.MonkeyPatch, mistake: Patch) -> None:
    mistake(monkeypatch)
    assert found_by(range(400)) is not None


def found_by(seeds: Sequence[int]) -> int | None:
    """The first seed that shows it."""
    for seed in seeds:
        try:
            ask(seed, {})
        except AssertionError:
            return seed
    return None
