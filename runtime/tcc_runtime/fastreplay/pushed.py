"""The records of what is pushed: ``node`` and ``rest``, made as texts and compared.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, sections 5, 8 and 18.  The
expected text is made with its link, and compared with the line.  Where the numbers of
:mod:`tcc_runtime.fastreplay.estimates` leave a rounding open, those of the definition are taken.  A
line that is not that text is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappush

from blake3 import blake3

from tcc_certs.errors import Rejected
from tcc_certs.formats.fixed import Q64_MAX, Q64_MIN, digits_q64
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.race.arrivals import WORD, Arrival
from tcc_certs.race.digest import RESIDUAL, REST_ARRIVAL, Uniforms, uuid7
from tcc_certs.race.published import publish
from tcc_certs.replay.run import Run
from tcc_runtime.fastreplay.estimates import (
    FULL,
    KEYED,
    LOGS,
    SLACK,
    WON,
    Estimate,
    estimated,
    slack,
    spread,
)
from tcc_runtime.fastreplay.items import Entry, Item, arrival_of, settled
from tcc_runtime.fastreplay.logarithm import UNIT_BITS, log_of, times_log_two
from tcc_runtime.fastreplay.prefix_texts import PrefixTexts
from tcc_runtime.fastreplay.rows import Child, Remainder, Row

_ROUND = UNIT_BITS - WORD
_ULP, _HALF, _BELOW = 1 << _ROUND, 1 << _ROUND - 1, (1 << _ROUND) - 1
_LAST = (1 << WORD + 1) - 1  # 1 - U = (_LAST - 2x) / 2^65
_WHOLE = times_log_two(WORD + 1)  # E = _WHOLE - ln(_LAST - 2x), in units
_RESIDUAL, _REST = bytes((RESIDUAL,)), bytes((REST_ARRIVAL,))
_LEFT = b"\x03"  # as in tcc_certs.race.digest.rest_digest
# Digits of a Q64.64 number are str(number * 5^20 / 2^44, rounded), but for what digits_q64 does of
# a number within 1 of 0, and of a tie, which no number is with a one in its last 43 bits.
_FIVES, _DROP, _ONE, _MINUS_ONE = 5**20, 44, 1 << WORD, -1 << WORD
_HALF_DIGIT, _TIE = 1 << _DROP - 1, (1 << _DROP - 1) - 1
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class Pushes:
    """Takes the lines of what is pushed, and pushes it.

    Attributes:
        line: the last that was taken; None: there was none.
        ahead: an item that is not in the heap yet, as it is nearly always the next to be popped.
        reader: whose head the next link follows from.
        plain, keyed: an unkeyed hasher in any state, and the run's keyed one.
        stamp: what every UUID of the run starts with.
        texts: of prefixes.
    """

    def __init__(
        self,
        reader: LedgerReader,
        run: Run,
        heap: list[Entry],
        key: Uniforms,
        texts: PrefixTexts,
    ) -> None:
        self.line: bytes | None = None
        self.ahead: Entry | None = None
        self.reader = reader
        self._run = run
        self._heap = heap
        self.plain = blake3()
        self.keyed = key.hasher
        self.stamp = uuid7(run.header.started_ms, bytes(32))[:15]
        self._named = self._won = b"", ""  # of the node that was popped; of its winner
        self._kappa_known = run.kappa.passed(0)
        self._passed = self._leaves = 0  # that the run has not been told of
        self.texts = texts

    def meets(self, text: str) -> bool:
        """Whether the line is `text`, an object up to its closing brace, and its link."""
        reader, plain = self.reader, self.plain
        plain.reset()
        plain.update(reader.head + f"{text}}}".encode())
        head = plain.digest()
        if self.line != f'{text},"~":"{head.hex()}"}}'.encode():
            return False
        reader.head = head
        reader.records += 1
        return True

    def settle(self) -> None:
        """Every item is in the heap."""
        if self.ahead is not None:
            heappush(self._heap, self.ahead)
            self.ahead = None

    def tell(self) -> None:
        """Tells the run how many nodes were passed."""
        run = self._run
        run.nodes += self._passed
        run.leaf_nodes += self._leaves
        run.kappa.passed(self._passed)
        self._passed = self._leaves = 0

    def name(self, digest: bytes) -> str:
        """The UUID of a node with this digest; see :func:`tcc_certs.race.digest.uuid7`."""
        if digest is not self._named[0]:
            won = digest is self._won[0]
            self._named = self._won if won else (digest, self._name(digest.hex()))
        return self._named[1]

    def _name(self, h: str) -> str:
        return f"{self.stamp}{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"

    def children(
        self,
        node: Item,
        estimate: Estimate,
        base: int,
        rows: Sequence[Row],
        won: int | None,
        lines: Iterator[bytes],
    ) -> int:
        """Takes a line for each child of a popped node; how many of them had the expected bytes.

        The one loop that nearly all lines of a ledger go through, hence in one piece.

        Args:
            estimate: of the node's arrival.
            base: -beta * C of the node in units, rounded down.
            won: position of the winner.

        Raises:
            Rejected: as the reader.
        """
        reader, heap, plain, keyed = self.reader, self._heap, self.plain, self.keyed
        name = self.name(node.digest)
        stamp, texts = self.stamp, self.texts.below(node, rows[-1][1] is None)
        tau, loss, neg, won_error = estimate[0], slack(estimate), estimate[2], estimate[3] + WON
        inner, outer = b"\x01" + node.digest, b"\x02" + node.digest
        line, head, done = None, reader.head, 0
        try:
            for (
                (child, suffix, share, level, lean, lift, opening, middle, closing),
                line,
            ) in zip(rows, lines, strict=False):
                plain.reset()
                plain.update(outer if suffix is None else inner + suffix)
                digest = plain.digest()
                time = share * tau >> UNIT_BITS
                if child.position == won:
                    x, minus_log, error, uniform = None, neg + lean, won_error, ""
                else:
                    keyed.reset()
                    keyed.update(_RESIDUAL + digest)
                    x = int.from_bytes(keyed.digest(8), "little")
                    time += _WHOLE - log_of(_LAST - 2 * x)
                    minus_log, bits = level - log_of(time), time.bit_length()
                    # This is spread(time, loss), in place for the time that a call takes.
                    error = (loss << (FULL - bits if bits < FULL else 1)) + LOGS
                    uniform = f'"U":"{x}",'
                # Both roundings hold for every number within `error`, so for the right one.
                error += KEYED
                low = minus_log + _HALF
                key = low + base + lift
                most = _ULP - error
                exact = None
                if error <= low & _BELOW <= most and error <= key & _BELOW <= most:
                    low >>= _ROUND
                    key >>= _ROUND
                else:
                    exact, low, key = self._exactly(node, child, x)
                if not Q64_MIN <= key <= Q64_MAX:  # -ln t never comes near these ends
                    break
                h = digest.hex()
                k, n = (
                    str(key * _FIVES + _HALF_DIGIT >> _DROP),
                    str(low * _FIVES + _HALF_DIGIT >> _DROP),
                )
                if _ONE > key > _MINUS_ONE or not key & _TIE:
                    k = digits_q64(key)
                if _ONE > low > _MINUS_ONE or not low & _TIE:
                    n = digits_q64(low)
                text = (
                    f"{opening}{uniform}{middle}{h}{texts[suffix]}{k[:-20]}.{k[-20:]}"
                    f'","kind":"node","neg_log_t":"{n[:-20]}.{n[-20:]}","node_id":"{stamp}{h[13:16]}-'
                    f'{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}","parent_id":"{name}{closing}'
                )
                plain.reset()
                plain.update(head)
                plain.update(f"{text}}}".encode())
                link = plain.digest()
                if line != f'{text},"~":"{link.hex()}"}}'.encode():
                    break
                head = link
                if exact is None:
                    entry = -key, digest, node, child, x, time, loss, minus_log, error
                else:
                    entry = -key, digest, node, child, x, *estimated(exact)
                heappush(heap, entry)
                done += 1
            else:
                line = None  # the lines or the children are at their end
        finally:  # also where the reader refuses the next line
            self.line = line
            reader.head = head
            reader.records += done
            self._passed += done
            self._leaves += done > 0 and rows[done - 1][1] is None
            if not self._kappa_known:
                for row in rows[:done]:
                    self._run.kappa.note_beside(row[0].place.states)
        return done

    def _exactly(
        self, node: Item, born: Child | Remainder, x: int | None
    ) -> tuple[Arrival, int, int]:
        """What is published of something that `node` pushes, where an estimate leaves it open.

        Returns:
            its arrival, -ln t and the key, each rounded once; a key beyond its range where one had
            to be clamped, or stays open, which is for the definition to say.
        """
        language, recipe = self._run.language, self._run.header.recipe
        arrival = arrival_of(settled(node).arrival, born, x)
        states, cost = node.states, node.cost_low
        if isinstance(born, Child):
            states, cost = born.place.states, cost + born.step.cost_low
        try:
            published = publish(arrival, language.bound(recipe, states, cost))
        except Rejected:
            return arrival, 0, Q64_MAX + 1
        if published.clamped:
            return arrival, 0, Q64_MAX + 1
        return arrival, published.neg_log_t, published.key

    def drawn(
        self,
        node: Item,
        name: str,
        estimate: Estimate,
        base: int,
        ahead: int,
        rest: Remainder,
        lines: Iterator[bytes],
    ) -> int:
        """Takes a line for the child that a draw gave and one for what it left, where there are.

        As :meth:`children`; in one piece, as nearly all lines of the rest race go through it.

        Args:
            name: UUID of the node.
            estimate: of the arrival of the draw.
            base: -beta * C of the node in units, rounded down.
            ahead: what M of the node is above that.
            rest: what is left; the child is in it.

        Returns:
            how many of these lines had the expected bytes.

        Raises:
            Rejected: as the reader.
        """
        reader, plain = self.reader, self.plain
        tau, error, neg, won_error = estimate
        context, loss, done = node.digest, error + (tau >> UNIT_BITS) + SLACK, 0  # its slack
        if rest.row:
            ((child, suffix, share, _, lean, lift, opening, middle, closing),) = rest.row
            self.line = line = next(lines, None)
            plain.reset()
            plain.update(b"\x02" + context if suffix is None else b"\x01" + context + suffix)
            digest = plain.digest()
            minus_log, error = neg + lean, won_error + (WON + KEYED)
            low = minus_log + _HALF
            key = low + base + lift
            most = _ULP - error
            exact = None
            if error <= low & _BELOW <= most and error <= key & _BELOW <= most:
                low >>= _ROUND
                key >>= _ROUND
            else:
                exact, low, key = self._exactly(node, child, None)
            if not Q64_MIN <= key <= Q64_MAX:
                return done
            h = digest.hex()
            k, n = (
                str(key * _FIVES + _HALF_DIGIT >> _DROP),
                str(low * _FIVES + _HALF_DIGIT >> _DROP),
            )
            if _ONE > key > _MINUS_ONE or not key & _TIE:
                k = digits_q64(key)
            if _ONE > low > _MINUS_ONE or not low & _TIE:
                n = digits_q64(low)
            below = f"{self.stamp}{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"
            text = (
                f"{opening}{middle}{h}{self.texts.below(node, suffix is None)[suffix]}"
                f'{k[:-20]}.{k[-20:]}","kind":"node","neg_log_t":"{n[:-20]}.{n[-20:]}",'
                f'"node_id":"{below}","parent_id":"{name}{closing}'
            )
            plain.reset()
            plain.update(reader.head + f"{text}}}".encode())
            link = plain.digest()
            if line != f'{text},"~":"{link.hex()}"}}'.encode():
                return done
            reader.head = link
            reader.records += 1
            self._won = digest, below
            if exact is None:
                time = share * tau >> UNIT_BITS
                self.ahead = -key, digest, node, child, None, time, loss, minus_log, error
            else:
                self.ahead = -key, digest, node, child, None, *estimated(exact)
            self._passed += 1
            if suffix is None:
                self._leaves += 1
            if not self._kappa_known:
                self._run.kappa.note_beside(child.place.states)
            done = 1
        if rest.entering is not None:
            number, step, share, level = rest.entering
            self.line = line = next(lines, None)
            place = context + step
            keyed = self.keyed
            keyed.reset()
            keyed.update(_REST + place)
            x = int.from_bytes(keyed.digest(8), "little")
            time = (share * tau >> UNIT_BITS) + _WHOLE - log_of(_LAST - 2 * x)
            minus_log, error = level - log_of(time), spread(time, loss) + KEYED
            low = minus_log + _HALF
            key = low + base + ahead
            most = _ULP - error
            exact = None
            if error <= low & _BELOW <= most and error <= key & _BELOW <= most:
                low >>= _ROUND
                key >>= _ROUND
            else:
                exact, low, key = self._exactly(node, rest, x)
            if not Q64_MIN <= key <= Q64_MAX:
                return done
            k, n = (
                str(key * _FIVES + _HALF_DIGIT >> _DROP),
                str(low * _FIVES + _HALF_DIGIT >> _DROP),
            )
            if _ONE > key > _MINUS_ONE or not key & _TIE:
                k = digits_q64(key)
            if _ONE > low > _MINUS_ONE or not low & _TIE:
                n = digits_q64(low)
            text = (
                f'{{"U":"{x}","key_raw":"{k[:-20]}.{k[-20:]}","kind":"rest",'
                f'"neg_log_t":"{n[:-20]}.{n[-20:]}","node_id":"{name}","step":{number}'
            )
            plain.reset()
            plain.update(reader.head + f"{text}}}".encode())
            link = plain.digest()
            if line != f'{text},"~":"{link.hex()}"}}'.encode():
                return done
            reader.head = link
            reader.records += 1
            plain.reset()
            plain.update(_LEFT + place)
            digest = plain.digest()
            if exact is None:
                entry = -key, digest, node, rest, x, time, loss, minus_log, error
            else:
                entry = -key, digest, node, rest, x, *estimated(exact)
            heappush(self._heap, entry)
            done += 1
        return done
