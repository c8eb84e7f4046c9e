"""Indexes of a core that all readers of nodes share, and the bounds of their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tcc_certs.errors import Rejected
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Condition, Tools
from tcc_certs.policy.kinds.things import Fault, NamedFields, Scope
from tcc_certs.policy.kinds.values import Kind
from tcc_certs.policy.nodes import Definition, Node
from tcc_certs.values import text_syntax

MAX_EXPANDED = 1 << 14  # most nodes of a statement after its lets are expanded
MAX_HEIGHT = 80  # deepest nesting of nodes after lets are expanded
FEW_TOOLS = 64  # most tools of a set that is stored as names
MAX_WORK = 1 << 18
WORK_PER_NODE = 16


class Work:
    """Indexes of a core, and the count of steps that its nodes take.

    Attributes:
        conditions, opened, origins: as in :class:`tcc_certs.policy.kinds.Kinds`.
    """

    def __init__(self, core: Core) -> None:
        self.conditions: dict[int, list[Condition]] | None = None
        self.origins: dict[int, Node] | None = None
        self.opened: dict[int, Definition] = {}
        self._core = core
        self._places = {tool.name: at for at, tool in enumerate(core.tools)}
        self._masks = {name: 1 << at for name, at in self._places.items()}
        self._names = [tool.name for tool in core.tools]
        self._all = (1 << len(core.tools)) - 1
        self._fields: dict[str, NamedFields] = {}
        for at, tool in enumerate(core.tools):
            for answer, declared in ((False, tool.arguments), (True, tool.answers)):
                for one in declared:
                    named = self._fields.get(one.name)
                    if named is None:
                        named = self._fields[one.name] = NamedFields()
                    named.of[at] = (one, answer)
        self._shared: dict[tuple[str, int], Kind] = {}  # by the name and the tools of fields
        self._of_field: dict[int, Kind] = {}  # by the id of a field of the core
        self._lets = {let.name: let for let in core.lets}
        self._learned = {one.name for one in core.given if isinstance(one, Learned)}
        self._shapes: dict[str, str] = {}
        self._sets: dict[int, Tools] = {}
        self._needs: dict[int, int] = {}
        # patterns of the current statement or `let`, with the first node of each
        self._patterns: dict[str, Node] = {}
        self._sound: set[str] = set()  # patterns that were checked
        self._subject: object = None  # the current statement or `let`
        self._left = 0
        self._height = 0
        self._work = 0
        self._allowed = MAX_WORK
        self._restricted: tuple[int, Sequence[tuple[Node, Scope]]] | None = None
        self._bare: set[int] = set()
        self._quoted: set[int] = set()

    def _begin(self, subject: object) -> None:
        """Start a statement or a `let`."""
        self._subject = subject
        self._left = MAX_EXPANDED
        self._height = 0
        self._patterns = {}

    def _end(self) -> None:
        """Finish a statement or a `let`, and check its patterns.

        The check happens here because the call stack is short.
        """
        self._charge(MAX_EXPANDED - self._left)
        for pattern, node in self._patterns.items():
            if pattern in self._sound:
                continue
            try:
                text_syntax.ensure_quick(pattern, 1, "pattern")
            except Rejected as refusal:
                raise Fault("TCC225", node, f"This is no pattern: {refusal.mismatch}.") from None
            self._sound.add(pattern)

    def _charge(self, steps: int) -> None:
        """Count steps of work.

        Raises:
            Fault: D201: all statements together take too many steps.
        """
        self._work += steps
        if self._work <= self._allowed:
            return
        if self._allowed == MAX_WORK:
            self._allowed += WORK_PER_NODE * _size(self._core)
        if self._work > self._allowed:
            message = "The expanded statements are too large for their core."
            raise Fault("D201", self._subject, message)

    def _step(self, node: Node) -> None:
        self._left -= 1
        if self._left < 0:
            raise Fault("D201", node, f"The expanded statement has more than {MAX_EXPANDED} nodes.")
        if self._height > MAX_HEIGHT:
            raise Fault("D201", node, f"Forms are nested more than {MAX_HEIGHT} deep.")

    def _tools(self, mask: int) -> Tools:
        found = self._sets.get(mask)
        if found is None:
            self._charge(1 + mask.bit_length() // 512)
            found = forms.ManyTools(mask, self._places)
            if len(found) <= FEW_TOOLS:
                names, left = [], mask
                while left:
                    names.append(self._names[left.bit_length() - 1])
                    left ^= 1 << left.bit_length() - 1
                found = frozenset(names)
            self._sets[mask] = found
        return found


def _size(core: Core) -> int:
    """Return the number of fields and nodes of a core."""
    found = sum([len(tool.arguments) + len(tool.answers) for tool in core.tools])
    todo: list[Any] = [*core.lets, *core.statements]
    while todo:
        part = todo.pop()
        if isinstance(part, Node):
            found += sum([1 for _ in nodes.walk(part)])
        elif isinstance(part, tuple):
            todo += part
        elif is_dataclass(part):
            todo += [getattr(part, member.name) for member in fields(part)]
    return found
