"""Letters of strict calls: alike are calls whose sisters are alike, letter by letter.

Then a letter of a strict tool has its sisters as letters, the same for each of its calls, and which
of them go on together is said of letters alone.  Cost: linear in the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.core.derived import strict_groups
from tcc_certs.core.model import Core


def with_sisters(
    core: Core, letter_of: Sequence[int]
) -> tuple[Sequence[int], Mapping[int, tuple[int, ...]]]:
    """Letters parted by their sisters.

    Args:
        letter_of: for each call the letter that it has without regard to sisters.

    Returns:
        for each call its letter; for each letter of strict calls those of all their answers, its
        own among them, increasing, or none where the core lacks some of these calls.
    """
    answers = strict_groups(core)
    if answers is None:
        return letter_of, {}
    calls: list[list[int]] = [[] for _ in answers.size]
    for call, group in enumerate(answers.group):
        if group >= 0:
            calls[group].append(call)
    whole = [len(found) == size for found, size in zip(calls, answers.size, strict=True)]
    kinds: dict[tuple[bool, frozenset[int]], int] = {}
    kind = [
        kinds.setdefault((complete, frozenset([letter_of[call] for call in found])), len(kinds))
        for complete, found in zip(whole, calls, strict=True)
    ]
    number: dict[tuple[int, int], int] = {}
    parted = []
    for letter, group in zip(letter_of, answers.group, strict=True):
        key = (letter, kind[group] if group >= 0 else -1)
        parted.append(number.setdefault(key, len(number)))
    sisters: dict[int, tuple[int, ...]] = {}
    for group, found in enumerate(calls):
        letters = {parted[call] for call in found}
        sisters.update(dict.fromkeys(letters, tuple(sorted(letters)) if whole[group] else ()))
    return parted, sisters
