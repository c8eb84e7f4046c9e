"""An unrecorded run of the coupled race: every child of a node with its own arrival.

Text: docs/spec/race.md, sections 5 and 21.
Cost: a child two hashes, two logarithms of the processor and a push; the winner one hash.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappush
from math import log, log1p

from tcc_certs.race.digest import RESIDUAL, WINNER
from tcc_runtime.gauges import UNIT
from tcc_runtime.guards import Stop
from tcc_runtime.items import LEAF, WHOLE, Item, Left
from tcc_runtime.swift import ACROSS, DOWN, HALF, OFTEN, TINY, UNHELD, WORDS, Swift

_WINNER, _RESIDUAL = bytes((WINNER,)), bytes((RESIDUAL,))
from_bytes = int.from_bytes


class SwiftCoupled(Swift):
    """One unrecorded run of the coupled race."""

    def _step(self, item: Item) -> Stop | None:
        # One loop with everything in locals: it is what such a run does nearly all of its time.
        keyed, plain, heap, interrupted = self._keyed, self._plain, self._heap, self._interrupted
        alone = self._follow is None and len(self.best) < self._top
        capped = self._late is not None or self._cap is not None
        _, digest, tau, base, index, _, _, _, lift = item
        if index == LEAF or isinstance(lift, Left):
            raise ValueError("only a node is expanded")
        gauges, expansions = self._gauges, self.expansions
        gauge, records = gauges.table[index], self._records
        number = len(records)
        low, most, error = base + log(tau) * UNIT - lift, gauges.most, self._error()
        while True:
            stop: Stop | None = None
            if capped:
                stop = self._refused(expansions)
            if not expansions & OFTEN and expansions >= UNHELD and interrupted():
                stop = Stop.INTERRUPTED
            if stop is not None:
                heappush(heap, item)
                break
            if not gauge.made:
                gauge.complete()
            if gauges.most > most:
                most, error = gauges.most, self._error()
            state = gauge.state
            keyed.reset()
            keyed.update(_WINNER + digest)
            line = (2 * from_bytes(keyed.digest(8), "little") + 1) * state.count >> 65
            winner = bisect_right(state.cumulative, line)
            expansions += 1
            records.append(item)
            first = 0.0 if lift else tau  # a tau that was lifted is nothing beside any E
            stem, won = b"\x01" + digest, None
            for place, (raw, step, share, delta, target, _) in enumerate(gauge.made):
                plain.reset()
                plain.update(b"\x02" + digest if raw is None else stem + raw)
                child = plain.digest()
                if place == winner:
                    won = child, step, share, delta, target
                    continue
                keyed.reset()
                keyed.update(_RESIDUAL + child)
                x = from_bytes(keyed.digest(8), "little")
                own = share * first - (
                    log1p((x + 0.5) * DOWN) if x < HALF else log((WORDS - x - 0.5) * ACROSS)
                )
                step += base
                key = step + log(own) * UNIT - error
                index = LEAF if target is None else target.index
                heappush(heap, (key, child, own, step, index, WHOLE, number, ~place, 0.0))
            if won is None:
                break
            digest, step, share, delta, target = won
            tau *= share
            low += delta
            base += step
            if tau < TINY:
                tau, lift = self._lift(tau, lift)
                error = self._error()
            index = LEAF if target is None else target.index
            item = (low - error, digest, tau, base, index, WHOLE, number, winner, lift)
            number += 1
            if target is None or not alone or (heap and low + error >= heap[0][0]):
                heappush(heap, item)
                break
            gauge = target
        self.expansions = expansions
        return stop
