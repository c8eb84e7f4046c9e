"""The records of many steps, rendered at once.

Format: docs/spec/ledger.md, section 3; a test holds the bytes equal to the canonical writer's.  The
lines of some steps wait until there are enough of them: to draw for a while and then to render for
a while is quicker than to change between the two at each step.
Cost: a line the formatting of its numbers and its hash; memory: some 200 lines.
"""

from __future__ import annotations

from binascii import hexlify
from json.encoder import encode_basestring
from typing import TypeAlias

from tcc_certs.formats.codec import Json, encode
from tcc_runtime.guards import Descent, Guard
from tcc_runtime.item import (
    EDGE,
    ID,
    LEFT,
    ORDER,
    SOURCE,
    VIEW,
    WORD,
    Item,
    above,
    node_of,
    step_of,
)
from tcc_runtime.ledger.lines import VARIANT, Marks, clamp_members, context_text, node_id, q64_text
from tcc_runtime.ledger.records import descent_members
from tcc_runtime.races.race import Race, Step, clamps
from tcc_runtime.states import Call

Waiting: TypeAlias = "tuple[Step, Descent | None]"
_MOST_CONTEXTS = 1 << 12
_WHOLE = (1 << 64) - 1
_TENS = 10**20
_CENTRE = 1 << 63
_TIE = (1 << 43) - 1  # a fraction that is a multiple of 2^43 may stand between two texts
# Members stand in the order of their names.
_NUMBERS = [  # by the signs of the two
    [
        b'"key_raw":"%b%%d.%%020d","kind":"%%b","neg_log_t":"%b%%d.%%020d"' % (key, log)
        for log in (b"", b"-")
    ]
    for key in (b"", b"-")
]
_NODE = (
    b'{%b%b%b%b"ctx_digest":"%b","ctx_repr":%b,%b%b,"node_id":"%b","parent_id":"%b"%b'
    b',"tie_token":%d}'
)
_EXPAND = b'{"W":"%d","kind":"expand","node_id":"%b","winner":"%d"}'
_REST = b'{"U":"%d",%b%b%b,"node_id":"%b","step":%d}'
_ROOT = b'{%b%b%b"ctx_digest":"%b","ctx_repr":"",%b%b,"node_id":"%b"%b}'


class StepLines:
    """Renders the steps of one run.

    Args:
        stamp: the start of every node_id.
        single: the member `N` or `Nub` of a leaf's record.
        marks: whether the claim was lowered.
    """

    def __init__(
        self,
        stamp: bytes,
        single: bytes,
        marks: Marks,
    ) -> None:
        self._stamp = stamp
        self._single = single
        self._marks = marks
        self._tie, self._most = _TIE, _MOST_CONTEXTS
        self._contexts: dict[bytes, bytes] = {}
        self._named: dict[Call, bytes] = {}

    def root(self, race: Race, root: Item) -> bytes:
        """The root's `node`."""
        state, text = root[VIEW].state, hexlify(root[ID])
        word = b"" if root[WORD] is None else b'"U":"%d",' % root[WORD]
        claim, guards, numbers = self._published(race, root, b"node")
        name = node_id(self._stamp, text)
        return _ROOT % (
            state.counted, word, claim, text, guards, numbers, name, state.placed,
        )  # fmt: skip

    def lines(self, race: Race, steps: list[Waiting]) -> list[bytes]:
        """The lines of some steps of one race; one loop, as most of a line's cost is in calls."""
        lines: list[bytes] = []
        stamp, tie, late, shown = self._stamp, self._tie, race.late, race.shown
        contexts, names, single = self._contexts, self._named, self._single
        known: Item | None = None  # the node whose node_id and last two calls these are:
        name = before = b""
        for step, descent in steps:
            item, drawn, winner, children, rest, dead = step
            node = item if item[3] is None else node_of(item)
            # The child that was rendered last is mostly the one that is popped next.
            if known is None or node[1] is not known[1]:
                known, name, before = node, node_id(stamp, hexlify(node[1])), _calls(node, 2)
            parent, edge = name, None
            if winner is None or dead or late or descent is not None or item is not node:
                lines.append(self._popped(race, step, descent, parent))
            else:
                lines.append(_EXPAND % (drawn, parent, winner))
            pushed: Item | None = None
            for pushed in children:
                word = pushed[7]
                own = b"" if word is None or word < 0 else b'"U":"%d",' % word
                log, bits = shown(pushed)
                key = -pushed[0]
                edge, view, text, claim, guards = pushed[6], pushed[2], hexlify(pushed[1]), b"", b""
                if bits or not key & tie:
                    claim, guards, numbers = self._published(race, pushed, b"node")
                elif late or log is None:
                    first, sign = abs(key), b"-" if key < 0 else b""
                    part = ((first & _WHOLE) * _TENS + _CENTRE) >> 64
                    numbers = b'"key_raw":"%b%d.%020d","kind":"node"' % (sign, first >> 64, part)
                elif not log & tie:
                    claim, guards, numbers = self._published(race, pushed, b"node")
                else:
                    first, second = abs(key), abs(log)
                    numbers = _NUMBERS[key < 0][log < 0] % (
                        first >> 64, ((first & _WHOLE) * _TENS + _CENTRE) >> 64, b"node",
                        second >> 64, ((second & _WHOLE) * _TENS + _CENTRE) >> 64,
                    )  # fmt: skip
                if view is None:
                    calls, counted, placed, named = _calls(node, 3), single, b"", b'"call":"stop",'
                else:
                    call, state = edge[2], view.state
                    calls = b"%b %b" % (before, call.raw) if before else call.raw
                    counted, placed = state.counted, state.placed
                    named = names.get(call) or self._name(call)
                name = b"%b%b-%b%b-%b" % (
                    stamp, text[13:16], VARIANT[text[16]], text[17:20], text[20:32],
                )  # fmt: skip
                lines.append(
                    _NODE
                    % (
                        counted, own, named, claim, text, contexts.get(calls) or
                        self._context(calls), guards, numbers, name, parent, placed, pushed[5],
                    )
                )  # fmt: skip
            if rest is not None:
                log, bits = shown(rest)
                key, left, claim, guards = -rest[0], rest[3], b"", b""
                if bits or log is None or not (key & tie and log & tie):
                    claim, guards, numbers = self._published(race, rest, b"rest")
                else:
                    first, second = abs(key), abs(log)
                    numbers = _NUMBERS[key < 0][log < 0] % (
                        first >> 64, ((first & _WHOLE) * _TENS + _CENTRE) >> 64, b"rest",
                        second >> 64, ((second & _WHOLE) * _TENS + _CENTRE) >> 64,
                    )  # fmt: skip
                number = 1 if type(left) is int else left.step
                lines.append(_REST % (rest[7], claim, guards, numbers, parent, number))
            if pushed is not None:
                known = pushed
            if edge is not None and edge[2] is not None:
                last = node[6]
                before = edge[2].raw if last is None else b"%b %b" % (last[2].raw, edge[2].raw)
        return lines

    def leaf(self, race: Race, leaf: Item, word: int, incumbent: int | None) -> bytes:
        """`leaf`: U_P is `word`, B* after it `incumbent`."""
        own = claim = guards = shown = b""
        if race.late:
            own, shown = _realised(race, leaf)
            if clamps(race, leaf, popped=True):
                claim, guards = clamp_members(self._marks)
        best = b"" if incumbent is None else b'"incumbent":"%b",' % q64_text(incumbent).encode()
        value, name = q64_text(-leaf[ORDER]).encode(), node_id(self._stamp, hexlify(leaf[ID]))
        return b'{%b"U_P":"%d","V":"%b",%b%b%b"kind":"leaf",%b"node_id":"%b"}' % (
            own, word, value, claim, guards, best, shown, name,
        )  # fmt: skip

    def _popped(self, race: Race, step: Step, descent: Descent | None, name: bytes) -> bytes:
        """`expand` or `draw`."""
        item, drawn, winner, _, _, dead = step
        word = won = b""
        if drawn is not None:
            word = b'"W":"%d",' % drawn
            won = b',"winner":"phantom"' if winner is None else b',"winner":"%d"' % winner
        end = b'"dead_end":true,' if dead else b""
        left = item[LEFT]
        if left is not None:
            number = step_of(left)
            return b'{%b%b"kind":"draw","node_id":"%b","step":%d%b}' % (
                word, end, name, number, won,
            )  # fmt: skip
        own = claim = guards = shown = b""
        late = race.late and item[SOURCE] is not None
        if late:
            own, shown = _realised(race, item)
        clamp = late and clamps(race, item, popped=True)
        if descent is not None:
            return self._descended(step, descent, name, own, shown, clamp)
        if clamp:
            claim, guards = clamp_members(self._marks)
        return b'{%b%b%b%b%b"kind":"expand",%b"node_id":"%b"%b}' % (
            own, word, claim, end, guards, shown, name, won,
        )  # fmt: skip

    def _descended(
        self, step: Step, descent: Descent, name: bytes, own: bytes, shown: bytes, clamp: bool
    ) -> bytes:
        """`expand`, with Phi."""
        _, drawn, winner, _, _, dead = step
        word = won = b""
        if drawn is not None:
            word = b'"W":"%d",' % drawn
            won = b',"winner":"phantom"' if winner is None else b',"winner":"%d"' % winner
        phi = descent_members(descent)
        fired = [Guard.CLAMP] * clamp
        fired += [Guard.ACYCLICITY] * descent.fails + [Guard.CLAMP] * descent.clamp
        members = self._marks.guards(fired, clamp or descent.fails)
        claim = _member("claim_type", members)
        return b"{%b%b%b%b%b%b%b%b%b%b%b%b}" % (
            own, word, claim, b'"dead_end":true,' if dead else b"", _member("delta_phi", phi),
            _member("guards", members), b'"kind":"expand",', shown,
            b'"node_id":"%b",' % name, _member("phi_after", phi),
            _member("phi_before", phi)[:-1], won,
        )  # fmt: skip

    def _published(self, race: Race, item: Item, kind: bytes) -> tuple[bytes, bytes, bytes]:
        """The members `claim_type` and `guards`, and those from `key_raw` to `neg_log_t`."""
        log, bits = race.shown(item)
        claim = guards = b""
        if bits and clamps(race, item, popped=False):
            claim, guards = clamp_members(self._marks)
        key = self._text(-item[0])
        if log is None or (race.late and item[SOURCE] is not None):
            return claim, guards, b'"key_raw":"%b","kind":"%b"' % (key, kind)
        return claim, guards, b'"key_raw":"%b","kind":"%b","neg_log_t":"%b"' % (
            key, kind, self._text(log),
        )  # fmt: skip

    def _text(self, value: int) -> bytes:
        """A number of Q64.64."""
        if not value & self._tie:
            return q64_text(value).encode()
        size = abs(value)
        sign = b"-" if value < 0 else b""
        return b"%b%d.%020d" % (sign, size >> 64, ((size & _WHOLE) * _TENS + _CENTRE) >> 64)

    def _name(self, call: Call) -> bytes:
        """The member `call` of a record."""
        found = self._named[call] = f'"call":{encode_basestring(call.text)},'.encode()
        return found

    def _context(self, calls: bytes) -> bytes:
        """`ctx_repr`, of calls that it was not asked for of late."""
        if len(self._contexts) >= self._most:
            self._contexts.clear()
        found = self._contexts[calls] = context_text(calls).encode()
        return found


def _member(name: str, members: dict[str, Json]) -> bytes:
    """A member with a comma after it; nothing where it is not there."""
    return b"" if name not in members else b'"%b":%b,' % (name.encode(), encode(members[name]))


def _realised(race: Race, item: Item) -> tuple[bytes, bytes]:
    """The members `U` and `neg_log_t` of an item that was realised when it was popped."""
    word, log = item[WORD], race.shown(item)[0]
    own = b"" if word is None or word < 0 else b'"U":"%d",' % word
    return own, b"" if log is None else b'"neg_log_t":"%b",' % q64_text(log).encode()


def _calls(node: Item, most: int) -> bytes:
    """The last calls of a prefix, at most `most`, one space between."""
    calls: list[bytes] = []
    step: Item | None = node
    while step is not None and step[EDGE] is not None and len(calls) < most:
        calls.append(step[EDGE][2].raw)
        step = above(step)
    return b" ".join(reversed(calls))
