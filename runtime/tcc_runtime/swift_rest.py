"""An unrecorded run of the rest race: the children of a node drawn one at a time.

Text: docs/spec/race.md, sections 18 and 21.
Cost: an expansion or a draw three hashes and two logarithms of the processor, whatever the number
of children; one push of what is left.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappush
from math import log, log1p

from tcc_certs.race.digest import REST_ARRIVAL, REST_WINNER, WINNER, rest_place
from tcc_runtime.gauges import UNIT
from tcc_runtime.guards import Stop
from tcc_runtime.items import LAST, LEAF, WHOLE, Item, Left, left_after_first
from tcc_runtime.rest_item import Pool
from tcc_runtime.swift import ACROSS, DOWN, HALF, OFTEN, TINY, UNHELD, WORDS, Swift, exponential

_WINNER, _AGAIN = bytes((WINNER,)), bytes((REST_WINNER,))
_LEFT, _FIRST = bytes((REST_ARRIVAL,)), (1).to_bytes(4, "little")
from_bytes = int.from_bytes


class SwiftRest(Swift):
    """One unrecorded run of the rest race."""

    def _step(self, item: Item) -> Stop | None:
        return self._walk(item) if item[LAST] == WHOLE else self._redraw(item)

    def _walk(self, item: Item) -> Stop | None:
        """Expands a node, and winners below it that nothing exceeds."""
        # One loop with everything in locals: it is what such a run does nearly all of its time.
        keyed, plain, heap, interrupted = self._keyed, self._plain, self._heap, self._interrupted
        rekey, draw, word = keyed.reset, keyed.update, keyed.digest
        restart, name, named = plain.reset, plain.update, plain.digest
        alone = self._follow is None and len(self.best) < self._top
        capped = self._late is not None or self._cap is not None
        _, digest, tau, base, index, _, source, code, lift = item
        if index == LEAF or isinstance(lift, Left):
            raise ValueError("only a node is expanded")
        gauges, expansions = self._gauges, self.expansions
        gauge, records = gauges.table[index], self._records
        number = len(records)
        low, most, error = base + log(tau) * UNIT - lift, gauges.most, self._error()
        stop: Stop | None = None
        while True:
            if capped:
                stop = self._refused(expansions)
            if not expansions & OFTEN and expansions >= UNHELD and interrupted():
                stop = Stop.INTERRUPTED
            if stop is not None:
                heappush(heap, (low - error, digest, tau, base, index, WHOLE, source, code, lift))
                break
            if not gauge.opened:
                gauge.open()
            state = gauge.state
            rekey()
            draw(_WINNER + digest)
            line = (2 * from_bytes(word(8), "little") + 1) * state.count >> 65
            place, children = bisect_right(state.cumulative, line), gauge.children
            expansions += 1
            if place == len(children):
                # A phantom has won; what is left are all the children.
                self.expansions = expansions
                node: Item = (0.0, digest, tau, base, index, place, source, code, 0.0)
                self._leave(node, 0.0 if lift else tau, 1, state.cumulative[-1], None)
                return None
            child = children[place]
            if child is None:
                child = gauge.child(place)
            if gauges.most > most:
                most, error = gauges.most, self._error()
            raw, step, share, delta, target, inverse = child
            if inverse:
                rekey()
                draw(_LEFT + digest + _FIRST)
                x = from_bytes(word(8), "little")
                more = log1p((x + 0.5) * DOWN) if x < HALF else log((WORDS - x - 0.5) * ACROSS)
                # A tau that was lifted is nothing beside any E.
                later = more * -inverse if lift else tau - more * inverse
                key = base + log(later) * UNIT - error
                node = (key, digest, later, base, index, place, source, code, 0.0)
                heappush(heap, node)
            else:
                node = (0.0, digest, tau, base, index, place, source, code, 0.0)
            tau *= share
            low += delta
            base += step
            if tau < TINY:
                tau, lift = self._lift(tau, lift)
                error = self._error()
            records.append(node)
            source, code = number, place
            number += 1
            restart()
            if target is None or raw is None:
                name(b"\x02" + digest)
                digest = named()
                entry = (low - error, digest, tau, base, LEAF, WHOLE, source, code, lift)
                heappush(heap, entry)
                break
            name(b"\x01" + digest + raw)
            digest, gauge, index = named(), target, target.index
            if not alone or (heap and low + error >= heap[0][0]):
                heappush(heap, (low - error, digest, tau, base, index, WHOLE, source, code, lift))
                break
        self.expansions = expansions
        return stop

    def _redraw(self, item: Item) -> Stop | None:
        """Draws again from what is left of a node."""
        if self._late is not None and self._late():
            heappush(self._heap, item)
            return Stop.MAX_SECONDS
        _, name, tau, base, index, last, _, _, left = item
        gauge = self._gauges.table[index]
        state = gauge.state
        size = len(state.cumulative)
        if isinstance(left, Left):
            digest, step, mass, pool = left.digest, left.step, left.mass, left.pool
        else:
            digest, step, mass = name, 1, left_after_first(state, last)
            pool = Pool(state.cumulative)
        if last < size:
            pool.take(last)
        self._draws += 1
        number = len(self._records)
        self._records.append(item)
        keyed = self._keyed
        keyed.reset()
        keyed.update(_AGAIN + rest_place(digest, step))
        place = pool.find((2 * from_bytes(keyed.digest(8), "little") + 1) * mass >> 65)
        remaining = size - len(pool.drawn)
        if place < size:
            raw, more, share, _, target, _ = gauge.child(place)
            plain = self._plain
            plain.reset()
            plain.update(b"\x02" + digest if raw is None else b"\x01" + digest + raw)
            self._push(plain.digest(), share * tau, base + more, target, number, ~place)
            mass -= pool.mass(place)
            remaining -= 1
        else:
            mass -= state.slack
        if remaining:
            rest = (
                0.0,
                name,
                tau,
                base,
                index,
                place,
                number,
                0,
                Left(digest, step + 1, mass, pool),
            )
            self._leave(rest, tau, step + 1, mass, digest)
        return None

    def _leave(self, node: Item, tau: float, step: int, mass: int, digest: bytes | None) -> None:
        """Pushes what is left of a node at a step, all but its arrival and its key."""
        _, name, _, base, index, last, source, code, left = node
        place = rest_place(name if digest is None else digest, step)
        keyed = self._keyed
        keyed.reset()
        keyed.update(_LEFT + place)
        x = from_bytes(keyed.digest(8), "little")
        gauges = self._gauges
        later = tau + exponential(x) * gauges.inverse(gauges.table[index].state.count, mass)
        low = base + log(later) * UNIT - self._error()
        named = name if digest is None else place
        heappush(self._heap, (low, named, later, base, index, last, source, code, left))
