"""The texts of prefixes, ``ctx_repr``.

Normative text: docs/spec/ledger.md, section 3.  A prefix shows its last three calls, so those of
the children of a node are known by its last two and the call.
Cost: a look-up; memory: 2^16 texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.formats.codec import encode
from tcc_certs.replay.records import REPR_BYTES, REPR_CALLS, clipped
from tcc_certs.replay.tree import Node

_MOST = 1 << 16


class PrefixTexts:
    """The texts that were asked for of late.

    Attributes:
        kept: how many there are.
    """

    def __init__(self) -> None:
        self.kept = 0
        self._found: dict[tuple[str, ...], Below] = {}

    def below(self, node: Node, may_stop: bool) -> Below:
        """The texts of the children of a node; of the leaf too where there is one."""
        parent = node.parent
        before: tuple[str, ...] = ()
        if parent is not None:
            before = (node.call,) if parent.parent is None else (parent.call, node.call)
        found = self._found.get(before)
        if found is None:
            if self.kept > _MOST:
                self._found.clear()
                self.kept = 0
            found = self._found[before] = Below(self, before)
        if may_stop:
            found[None] = member(node.calls(REPR_CALLS))
        return found


class Below(dict[bytes | None, str]):
    """The ``ctx_repr`` members of the children of a node, by call, each on up to its key.

    None: that of the leaf, which has the calls of the node and is made for each node.
    """

    def __init__(self, owner: PrefixTexts, before: tuple[str, ...]) -> None:
        super().__init__()
        self._owner = owner
        self._before = before
        raw = " ".join([*before, ""])
        self._stem = encode(raw).decode()[:-1]
        self._room = REPR_BYTES - len(raw.encode())

    def __missing__(self, call: bytes | None) -> str:
        text = (call or b"").decode()
        if len(text.encode()) <= self._room:  # nothing is cut
            found = f'","ctx_repr":{self._stem}{encode(text).decode()[1:]},"key_raw":"'
        else:
            found = member([*self._before, text])
        self[call] = found
        self._owner.kept += 1
        return found


def member(calls: Sequence[str]) -> str:
    """The end of the member before, ``ctx_repr`` after these calls, and the name of the next."""
    return f'","ctx_repr":{encode(clipped(calls)).decode()},"key_raw":"'
