"""The nondeterministic shared graph: positions of the plan expression, with their remainders.

A position is a call pattern that may be read next and a stack of nodes that are due after it.
Stacks are shared lists and interned, so equal ones are one number.  Nothing is pushed where
nothing is left to do (tail calls), so right recursion and plain rules keep the stacks bounded; a
counted repeat is one stack entry with the remainder of its bounds.  The operands of `&` and `-`
run beside each other as state sets of their own: such a position holds one set for each operand.
A state set is a sorted tuple of positions and whether the word so far is complete; sets are
interned too, and :mod:`tcc_compiler.automata.regular.determinise` walks over them.
Made on demand: only what is reached exists.  No Python recursion, whatever the depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from tcc_compiler.automata.regular.nodes import NodeKind, Nodes
from tcc_compiler.resources import Guard

BOTTOM = 0
_DONE = -1
_MOVED = 4  # steps that moving an operand is as dear as
Key: TypeAlias = "tuple[int, int]"
SetValue: TypeAlias = "tuple[bool, tuple[int, ...]]"


class Network:
    """Interned stacks, positions and state sets over a node table.

    Attributes:
        sets: [sets], (complete, positions); set 0 is the dead one.
        least: [sets], a lower bound on the weight of what completes the set's words.
        room: how much was made: stacks, positions, members of sets, moves.
        calls: how many positions read a call themselves, and not operands for it.
    """

    def __init__(self, nodes: Nodes, patterns: Sequence[Sequence[int]], guard: Guard) -> None:
        """Args: patterns: the letters of each pattern, as :class:`letters.Letters` has them."""
        self._nodes = nodes
        self._patterns = patterns
        self._guard = guard
        # Stacks: the top node, the stack below, and the least weight of the whole.
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
        # The same where at least one more call is read.
        self._least_reading: list[int | None] = [None]
        self._sets: dict[SetValue, int] = {(False, ()): 0}
        self._closures: dict[Key, SetValue] = {}
        self._steps: dict[int, dict[int, int]] = {0: {}}
        self._unions: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.room = 0
        self.calls = 0

    def initial(self, node: int) -> int:
        """The state set before the first call of `node`."""
        self._close([(node, BOTTOM)])
        return self._start_set(node)

    def _start_set(self, node: int) -> int:
        complete, positions = self._closures[(node, BOTTOM)]
        return self.intern(complete or self._nodes.nullable[node], positions)

    def step(self, number: int) -> dict[int, int]:
        """Where a state set goes: letter -> set, letters increasing, dead sets left out."""
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
        """The number of a state set; `positions` increasing."""
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

    # Moving over one call.

    def _advance(self, number: int) -> list[int]:
        """Find where set `number` goes, or return the operand sets to step first."""
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
        """Move the operands of a `&` or `-` together over every letter that the first can read."""
        node, parts = head
        for letter, after in self._move_operands(node, parts):
            self.room += 1
            if self.complete(node, after):
                resumed.setdefault(letter, []).append(stack)
            position = self._operands(node, after, stack)
            if position is not None:
                moved.setdefault(letter, []).append(position)

    def complete(self, node: int, parts: tuple[int, ...]) -> bool:
        """Whether a `&` or `-` is complete with its operands at these sets."""
        values = [self.sets[part][0] for part in parts]
        if self._nodes.kind[node] is NodeKind.BOTH:
            return all(values)
        return values[0] and not any(values[1:])

    def step_operands(
        self, node: int, parts: tuple[int, ...]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Where the operand sets of a `&` or `-` go: pairs (letter, sets), letters increasing."""
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
        """The position of these operand sets, None where no further call can be read."""
        needed = parts if self._nodes.kind[node] is NodeKind.BOTH else parts[:1]
        if not all(self.sets[part][1] for part in needed):
            return None
        least = max(self._least_reading[part] or 0 for part in needed)
        return self._position((node, parts), stack, least)

    def _union(self, stacks: tuple[int, ...], moved: tuple[int, ...]) -> int:
        """The set of everything that can follow when one of `stacks` is due, and of `moved`."""
        key = (stacks, moved)
        number = self._unions.get(key)
        if number is None:
            due = [self._closures[(_DONE, stack)] for stack in stacks]
            complete = any(done for done, _ in due)
            members = set(moved).union(*[positions for _, positions in due])
            self._guard.work(sum([len(positions) for _, positions in due]))
            self._unions[key] = number = self.intern(complete, tuple(sorted(members)))
        return number

    # What can be read next.

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

        A key is a node to start and the stack below it, or _DONE and a stack: what stood above
        the stack is complete.  Returns the operands whose closures have to be found first.
        """
        nodes = self._nodes
        kinds, parts_of, nullable, least = nodes.kind, nodes.parts, nodes.nullable, nodes.least
        complete = False
        found: set[int] = set()
        missing: list[Key] = []
        seen = {key}
        todo = [key]
        steps = 0
        # The one loop of determinising that looks at every node: hence no calls that can be spared.
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
        """`stack` with `node` due first; nothing is pushed for the empty sequence."""
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
