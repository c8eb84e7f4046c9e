"""The nondeterministic graph of the plan expression: positions, each with a stack of nodes.

A position is a call pattern that may be read next, and a stack of nodes to read after it. Stacks
are shared lists and interned, so equal stacks have one number. If nothing is left to read, nothing
is pushed (tail calls). So right recursion and plain rules keep the stacks bounded. A counted repeat
is one stack entry, with the rest of its bounds. The operands of `&` and `-` advance together, each
as a state set of its own; such a position holds one set for each operand.
A state set is a sorted tuple of positions, and whether the word so far is complete. Sets are
interned, too; :mod:`tcc_compiler.automata.regular.determinise` walks over them.
Everything is made on demand, when it is reached. There is no Python recursion, however deep an
expression is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from tcc_compiler.automata.regular.nodes import NodeKind, Nodes
from tcc_compiler.resources import Guard

BOTTOM = 0
_DONE = -1
_MOVED = 4  # how many steps moving an operand counts as
Key: TypeAlias = "tuple[int, int]"
SetValue: TypeAlias = "tuple[bool, tuple[int, ...]]"


class Network:
    """Interned stacks, positions and state sets over a node table.

    Attributes:
        sets: [sets], (complete, positions). Set 0 is the dead set.
        least: [sets], a lower bound on the weight of the words that complete the set.
        room: how many stacks, positions, members of sets and moves were made.
        calls: how many positions read a call directly, not through operands.
    """

    def __init__(self, nodes: Nodes, patterns: Sequence[Sequence[int]], guard: Guard) -> None:
        """Begin with the dead set; `patterns` has the letters of each pattern, see `Letters`."""
        self._nodes = nodes
        self._patterns = patterns
        self._guard = guard
        # Stacks: the top node, the stack below, and the least weight of the whole stack.
        self._top = [_DONE]
        self._below = [BOTTOM]
        self._stack_least = [0]
        self._stacks: dict[Key, int] = {}
        # Positions: a pattern and a stack, or (node, operand sets) and a stack.
        self._head: list[int | tuple[int, tuple[int, ...]]] = []
        self._stack: list[int] = []
        self.position_least: list[int] = []
        self._positions: dict[tuple[object, int], int] = {}
        self.sets: list[SetValue] = [(False, ())]
        self.least: list[int | None] = [None]
        # The same as `least`, for words of at least one more call.
        self._least_reading: list[int | None] = [None]
        self._sets: dict[SetValue, int] = {(False, ()): 0}
        self._closures: dict[Key, SetValue] = {}
        self._steps: dict[int, dict[int, int]] = {0: {}}
        self._unions: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.room = 0
        self.calls = 0

    def initial(self, node: int) -> int:
        """Return the state set before the first call of `node`."""
        self._close([(node, BOTTOM)])
        return self._start_set(node)

    def _start_set(self, node: int) -> int:
        complete, positions = self._closures[(node, BOTTOM)]
        return self.intern(complete or self._nodes.nullable[node], positions)

    def step(self, number: int) -> dict[int, int]:
        """Return the next set for each letter; letters are increasing, dead sets are left out."""
        todo = [number]
        while todo:
            top = todo[-1]
            missing = [] if top in self._steps else self._advance(top)
            if missing:
                todo.extend(missing)
            else:
                todo.pop()
        return self._steps[number]

    def intern(self, complete: bool, positions: tuple[int, ...]) -> int:
        """Return the number of a state set; `positions` must be increasing."""
        value = (complete, positions)
        number = self._sets.get(value)
        if number is None:
            self._sets[value] = number = len(self.sets)
            self.sets.append(value)
            weights = [self.position_least[position] for position in positions]
            reading = min(weights) if weights else None
            self._least_reading.append(reading)
            self.least.append(0 if complete else reading)
            self.room += 1 + len(positions)
            self._guard.room(self.room)
        return number

    # Advancing by one call.

    def _advance(self, number: int) -> list[int]:
        """Find the next sets of set `number`, or return the operand sets to step first."""
        missing: list[int] = []
        resumed: dict[int, list[int]] = {}
        moved: dict[int, list[int]] = {}
        self._guard.work(len(self.sets[number][1]))
        for position in self.sets[number][1]:
            head, stack = self._head[position], self._stack[position]
            if isinstance(head, int):
                for letter in self._patterns[head]:
                    resumed.setdefault(letter, []).append(stack)
                continue
            missing += [part for part in head[1] if part not in self._steps]
            if not missing:
                self._advance_operands(head, stack, resumed, moved)
        if missing:
            return missing
        self._close([(_DONE, stack) for stacks in resumed.values() for stack in stacks])
        found: dict[int, int] = {}
        for letter in sorted(resumed.keys() | moved.keys()):
            target = self._union(tuple(resumed.get(letter, ())), tuple(moved.get(letter, ())))
            if target:
                found[letter] = target
        self._steps[number] = found
        self.room += len(found)
        self._guard.room(self.room)
        return []

    def _advance_operands(
        self,
        head: tuple[int, tuple[int, ...]],
        stack: int,
        resumed: dict[int, list[int]],
        moved: dict[int, list[int]],
    ) -> None:
        """Advance the operands of a `&` or `-` together, by each letter that the first can read."""
        node, parts = head
        for letter, after in self._move_operands(node, parts):
            self.room += 1
            if self.complete(node, after):
                resumed.setdefault(letter, []).append(stack)
            position = self._operands(node, after, stack)
            if position is not None:
                moved.setdefault(letter, []).append(position)

    def complete(self, node: int, parts: tuple[int, ...]) -> bool:
        """Return whether a `&` or `-` is complete with its operands at these sets."""
        values = [self.sets[part][0] for part in parts]
        if self._nodes.kind[node] is NodeKind.BOTH:
            return all(values)
        return values[0] and not any(values[1:])

    def step_operands(
        self, node: int, parts: tuple[int, ...]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the next operand sets of a `&` or `-`: (letter, sets), letters increasing."""
        for part in parts:
            self.step(part)
        yield from self._move_operands(node, parts)

    def _move_operands(
        self, node: int, parts: tuple[int, ...]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        both = self._nodes.kind[node] is NodeKind.BOTH
        for letter, first in self._steps[parts[0]].items():
            after = (first, *(self._steps[part].get(letter, 0) for part in parts[1:]))
            self._guard.work(_MOVED * len(after))
            if not both or all(after):
                yield letter, after

    def _operands(self, node: int, parts: tuple[int, ...], stack: int) -> int | None:
        """Return the position of these operand sets; None if they can read no further call."""
        needed = parts if self._nodes.kind[node] is NodeKind.BOTH else parts[:1]
        if not all(self.sets[part][1] for part in needed):
            return None
        least = max(self._least_reading[part] or 0 for part in needed)
        return self._position((node, parts), stack, least)

    def _union(self, stacks: tuple[int, ...], moved: tuple[int, ...]) -> int:
        """Return the set of all positions in `moved` and in the closures of `stacks`."""
        key = (stacks, moved)
        number = self._unions.get(key)
        if number is None:
            due = [self._closures[(_DONE, stack)] for stack in stacks]
            complete = any(done for done, _ in due)
            members = set(moved).union(*[positions for _, positions in due])
            self._guard.work(sum([len(positions) for _, positions in due]))
            self._unions[key] = number = self.intern(complete, tuple(sorted(members)))
        return number

    # Closures: what can be read next.

    def _close(self, keys: Iterable[Key]) -> None:
        """Find the closures of `keys`, and of the operands that they start."""
        todo = [key for key in keys if key not in self._closures]
        while todo:
            key = todo[-1]
            missing = [] if key in self._closures else self._reach(key)
            if missing:
                todo.extend(missing)
            else:
                todo.pop()

    def _reach(self, key: Key) -> list[Key]:
        """Find the positions that are reached from `key` without a call.

        A key is a node to start and the stack below it; or _DONE and a stack, where all above the
        stack is complete. Return the operands whose closures have to be found first.
        """
        nodes = self._nodes
        kinds, parts_of, nullable, least = nodes.kind, nodes.parts, nodes.nullable, nodes.least
        complete = False
        found: set[int] = set()
        missing: list[Key] = []
        seen = {key}
        todo = [key]
        steps = 0
        # This loop of determinising looks at every node, so it avoids function calls.
        while todo:
            node, stack = todo.pop()
            more: list[Key] = []
            if node == _DONE:
                if stack == BOTTOM:
                    complete = True
                    continue
                top, below = self._top[stack], self._below[stack]
                more = [(top, below), (_DONE, below)] if nullable[top] else [(top, below)]
            elif least[node] is None:
                continue
            elif (kind := kinds[node]) is NodeKind.CALL:
                found.add(self._position(nodes.pattern[node], stack, least[node] or 0))
            elif kind is NodeKind.PAIR:
                first, rest = parts_of[node]
                more = [(first, self._push(rest, stack))]
                if nullable[first]:
                    more.append((rest, stack))
            elif kind is NodeKind.ALT or kind is NodeKind.RULE:
                more = [(part, stack) for part in parts_of[node]]
            elif kind is NodeKind.REPEAT:
                more = [(parts_of[node][0], self._push(nodes.rest(node), stack))]
            elif kind is not NodeKind.EMPTY:
                starts = [(part, BOTTOM) for part in parts_of[node]]
                missing += [start for start in starts if start not in self._closures]
                if not missing:
                    sets = tuple(self._start_set(part) for part in parts_of[node])
                    position = self._operands(node, sets, stack)
                    found |= set() if position is None else {position}
            for item in more:
                if item not in seen:
                    seen.add(item)
                    todo.append(item)
            steps += 1
            if not steps & 255:
                self._guard.tick(256)
                self._guard.room(self.room + len(seen))
        self._guard.tick(steps & 255)
        if not missing:
            self._closures[key] = (complete, tuple(sorted(found)))
            self.room += 1 + len(found)
            self._guard.room(self.room)
        return missing

    def _push(self, node: int, stack: int) -> int:
        """Return `stack` with `node` on top, or `stack` itself if `node` is the empty sequence."""
        if node == self._nodes.empty:
            return stack
        key = (node, stack)
        number = self._stacks.get(key)
        if number is None:
            self._stacks[key] = number = len(self._top)
            self._top.append(node)
            self._below.append(stack)
            self._stack_least.append((self._nodes.least[node] or 0) + self._stack_least[stack])
            self.room += 1
            self._guard.room(self.room)
        return number

    def _position(self, head: int | tuple[int, tuple[int, ...]], stack: int, least: int) -> int:
        key = (head, stack)
        number = self._positions.get(key)
        if number is None:
            self._positions[key] = number = len(self._head)
            self._head.append(head)
            self._stack.append(stack)
            self.position_least.append(least + self._stack_least[stack])
            self.calls += isinstance(head, int)
            self.room += 1
            self._guard.room(self.room)
        return number
