"""The records of many steps of a recorded run, rendered at once.

Format: docs/spec/ledger.md, section 3; :mod:`tcc_runtime.lines` and :mod:`tcc_runtime.rest_lines`
have the definition, and a test holds the bytes equal.  The lines of some steps wait until there are
enough of them: to draw for a while and then to render for a while is quicker than to change between
the two at each step.
Cost: a line the formatting of its numbers and its hash; memory: some 200 lines.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Sequence
from typing import TypeAlias

from tcc_runtime.arrivals import DROP, HALF
from tcc_runtime.entries import Item, above, of
from tcc_runtime.lines import context_text, leaf_line, q64_text
from tcc_runtime.recorder import Recorder

# What was popped, the word and the place that were drawn from it, the children that were pushed,
# what is left, and whether it is a dead end.
Popped: TypeAlias = "tuple[Item, int, int, Sequence[Item], Item | None, bool]"
_MOST_LINES = 192
_WHOLE = (1 << 64) - 1
_TENS = 10**20
_CENTRE = 1 << 63
_TIE = (1 << 43) - 1  # a fraction that is a multiple of 2^43 may stand between two texts
_MOST_CONTEXTS = 1 << 12
_VARIANT = {ord(f"{digit:x}"): b"89ab"[digit & 3 : (digit & 3) + 1] for digit in range(16)}
# Members stand in the order of their names.
_NUMBERS = b'"key_raw":"%b%d.%020d","kind":"%b","neg_log_t":"%b%d.%020d"'
_NODE = b'{%b%b%b"ctx_digest":"%b","ctx_repr":%b,%b,"node_id":"%b","parent_id":"%b"%b%d}'
_REST = b'{"U":"%d",%b,"node_id":"%b","step":%d}'
_ROOT = b'{%b"U":"%d","ctx_digest":"%b","ctx_repr":"",%b,"node_id":"%b"%b}'
_EXPAND = b'{"W":"%d","kind":"expand","node_id":"%b","winner":"%d"}'


class Batch:
    """The lines that wait.

    Args:
        recorder: takes them.
        single: the member `N` or `Nub` of a leaf's record.

    Attributes:
        arrivals: -ln t, published, of the items whose own numbers left it open.
    """

    def __init__(self, recorder: Recorder, single: bytes) -> None:
        self._recorder = recorder
        self._single = single
        self._stamp = recorder.stamp.encode()
        self._steps: list[Popped] = []
        self._size = 0
        self._contexts: dict[bytes, bytes] = {}
        self.arrivals: dict[bytes, int] = {}

    def add(self, step: Popped, lines: int) -> None:
        """Takes a step, of about so many lines."""
        self._steps.append(step)
        self._size += lines
        if self._size >= _MOST_LINES:
            self.flush()

    def root(self, root: Item) -> None:
        """Takes the root."""
        page, text = root[6], hexlify(root[1])
        counted, placed = (b"", b"") if page is None else (page.counted, page.placed)
        numbers, name = self._numbers(root, b"node"), self._name(text)
        placed = placed.removesuffix(b',"tie_token":')
        self._recorder.lines([_ROOT % (counted, root[11], text, numbers, name, placed)])
        self.arrivals.clear()

    def leaf(self, leaf: Item, word: int, incumbent: int | None) -> None:
        """Takes a leaf that is popped: U_P is `word`, B* after it `incumbent`."""
        self.flush()
        name = self._name(hexlify(leaf[1])).decode()
        self._recorder.lines([leaf_line(-leaf[0], name, word, incumbent)])

    def flush(self) -> None:
        """Writes what waits.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        # Taken out first: what an exception cuts short is never written twice.
        steps, self._steps, self._size = self._steps, [], 0
        if steps:
            self._recorder.lines(self._rendered(steps))
            self.arrivals.clear()

    def _rendered(self, steps: list[Popped]) -> list[bytes]:
        """The lines of some steps; one loop, as most of a line's cost is in its calls."""
        lines: list[bytes] = []
        stamp, contexts, single, numbers = self._stamp, self._contexts, self._single, self._numbers
        known: Item | None = None  # the node whose node_id and last two calls these are:
        name = before = b""
        for item, word, place, children, rest, dead in steps:
            page, left = item[6], item[7]
            node = item if left is None else of(item)
            # The child that was rendered last is mostly the one that is popped next.
            if node is not known:
                known, name, before = node, self._name(hexlify(node[1])), _calls(node, 2)
            parent = name
            if left is None and page is not None and place < page.size:
                lines.append(_EXPAND % (word, parent, place))
            else:
                lines.append(_popped_line(item, word, parent, place, dead))
            step = None
            for known in children:
                step, page, text = known[10], known[6], hexlify(known[1])
                if step is None or page is None:
                    calls = _calls(node, 3)
                    counted, call, placed = single, b'"call":"stop",', b',"tie_token":'
                else:
                    calls = b"%b %b" % (before, step.raw) if before else step.raw
                    counted, call, placed = page.counted, step.named, page.placed
                name = b"%b%b-%b%b-%b" % (
                    stamp, text[13:16], _VARIANT[text[16]], text[17:20], text[20:32],
                )  # fmt: skip
                lines.append(
                    _NODE
                    % (
                        counted, b"" if known[11] < 0 else b'"U":"%d",' % known[11], call, text,
                        contexts.get(calls) or self._context(calls), numbers(known, b"node"), name,
                        parent, placed, known[9],
                    )
                )  # fmt: skip
            if rest is not None:
                left = rest[7]
                number = left[1] if isinstance(left, tuple) else 1
                lines.append(_REST % (rest[11], numbers(rest, b"rest"), parent, number))
            if step is not None:
                last = node[10]
                before = step.raw if last is None else b"%b %b" % (last.raw, step.raw)
        return lines

    def _numbers(self, item: Item, kind: bytes) -> bytes:
        """The members of a record from `key_raw` to `neg_log_t`."""
        key, log = -item[0], HALF - item[4] >> DROP
        if self.arrivals:
            log = self.arrivals.get(item[1], log)
        left = right = b""
        if key < 0:
            left, key = b"-", -key
        if log < 0:
            right, log = b"-", -log
        first, second = key & _WHOLE, log & _WHOLE
        if first & _TIE and second & _TIE:
            return _NUMBERS % (
                left, key >> 64, (first * _TENS + _CENTRE) >> 64, kind,
                right, log >> 64, (second * _TENS + _CENTRE) >> 64,
            )  # fmt: skip
        return b'"key_raw":"%b%b","kind":"%b","neg_log_t":"%b%b"' % (
            left, q64_text(key).encode(), kind, right, q64_text(log).encode(),
        )  # fmt: skip

    def _name(self, text: bytes) -> bytes:
        """The node_id of a digest in hex; tcc_runtime.lines has the definition."""
        variant = _VARIANT[text[16]]
        return b"%b%b-%b%b-%b" % (self._stamp, text[13:16], variant, text[17:20], text[20:32])

    def _context(self, calls: bytes) -> bytes:
        """`ctx_repr`, of calls that it was not asked for of late."""
        if len(self._contexts) >= _MOST_CONTEXTS:
            self._contexts.clear()
        found = self._contexts[calls] = context_text(calls).encode()
        return found


def _popped_line(item: Item, word: int, name: bytes, place: int, dead: bool) -> bytes:
    """`expand` or `draw`."""
    page, left = item[6], item[7]
    winner = b"phantom" if page is None or place == page.size else b"%d" % place
    end = b'"dead_end":true,' if dead else b""
    if left is None:
        return b'{"W":"%d",%b"kind":"expand","node_id":"%b","winner":"%b"}' % (
            word, end, name, winner,
        )  # fmt: skip
    return b'{"W":"%d",%b"kind":"draw","node_id":"%b","step":%d,"winner":"%b"}' % (
        word, end, name, left[1] if isinstance(left, tuple) else 1, winner,
    )  # fmt: skip


def _calls(node: Item, most: int) -> bytes:
    """The last calls of a prefix, at most `most`, one space between."""
    calls: list[bytes] = []
    step: Item | None = node
    while step is not None and step[10] is not None and len(calls) < most:
        calls.append(step[10].raw)
        step = above(step)
    return b" ".join(reversed(calls))
