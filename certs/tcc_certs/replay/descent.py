"""The way down of the rest race, where it goes straight: three records a node, in one piece.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, section 18.  A node of the rest
race is expanded, its first draw pushes a child, and what is left goes back; then the child comes
next, more often than not.  So nearly all lines of such a ledger are ``expand``, ``node`` and
``rest``, in this order.  What is due is made and compared as in :mod:`tcc_certs.replay.pushes`.
Where a draw is out of the ordinary (a phantom, a leaf, a node's last child) nothing is done here.
Cost: about 9 us a record, of which two logarithms a node are 1 and the collector is 1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import heappop, heappush, heappushpop

from tcc_certs.digest import REST_ARRIVAL, WINNER, Uniforms
from tcc_certs.fixed import Q64_MAX, Q64_MIN, digits_q64
from tcc_certs.near import UNIT_BITS, near_log, times_log_two
from tcc_certs.race import WORD
from tcc_certs.replay.buds import Entry, left_of
from tcc_certs.replay.children import Child, Remainder
from tcc_certs.replay.draws import slot_at
from tcc_certs.replay.families import Families
from tcc_certs.replay.gauges import FULL, KEYED, LOGS, WON, slack, usable
from tcc_certs.replay.pushes import VARIANT, Pushes
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node
from tcc_certs.replay.turn import expands

_ROUND = UNIT_BITS - WORD
_ULP, _HALF, _BELOW = 1 << _ROUND, 1 << _ROUND - 1, (1 << _ROUND) - 1
_LAST = (1 << WORD + 1) - 1
_WHOLE = times_log_two(WORD + 1)
_WINNER, _REST = bytes((WINNER,)), bytes((REST_ARRIVAL,))
_FIRST = (1).to_bytes(4, "little")  # the step of what a first draw leaves
_WON_ERROR, _LOGS = WON + KEYED, LOGS + KEYED
_NONE = 1 << 128  # above all keys


class Descent:
    """The way down in one ledger."""

    def __init__(self, run: Run, families: Families, pushes: Pushes, key: Uniforms) -> None:
        self._run = run
        self._families = families
        self._pushes = pushes
        self._keyed = key.hasher
        header = run.header
        self._bounded = header.max_expansions is not None or header.count_bits > 0

    def follow(self, lines: Iterator[bytes]) -> bool:
        """Takes the line in hand and the next ones, while they go straight down.

        One loop for nearly all lines of such a ledger, hence in one piece.  The item that is
        expanded is out of the frontier meanwhile: the child that it pushes is mostly the next.

        Returns:
            False where what has been expanded is to be resumed by the run; else nothing is due,
            and the line in hand is that of the top of the frontier.

        Raises:
            Rejected: as the reader.
        """
        run, pushes, keyed = self._run, self._pushes, self._keyed
        at, score = self._families.at, self._families.score
        reader, heap, plain, stamp = pushes.reader, run.frontier.heap, pushes.plain, pushes.stamp
        below, bounded, kappa = pushes.texts.below, self._bounded, run.kappa
        incumbent = run.best.incumbent
        floor = _NONE if incumbent is None else -incumbent
        unnoted = kappa.passed(0)
        line, head = pushes.line, reader.head
        expanded = nodes = rests = 0
        known, name = b"", ""  # a digest, and the UUID of its node
        top: Entry | None = heappop(heap) if heap else None
        try:
            while line is not None and top is not None and top[0] < floor:
                if len(top) == 3:
                    break
                minus_key, digest, parent, born, x, tau, error, neg, neg_error = top
                if not isinstance(born, Child):
                    break
                gauge = (tau, error, neg, neg_error)
                _, _, step, (states, count, _, _, _, _, _) = born
                if states is None or not usable(gauge):
                    break
                family = at(states[0])
                if bounded and not expands(run.header, count, run.expansions + expanded):
                    break
                keyed.reset()
                keyed.update(_WINNER + digest)
                word = int.from_bytes(keyed.digest(8), "little")
                cuts = family.cuts
                won = bisect_right(cuts, word)
                if won == len(cuts):
                    break
                rest = family.without(won)
                _, _, (row,), _, number_left, _, rest_share, rest_level, _, _ = rest
                child, suffix, share, _, lean, lift, opening, middle, closing = row
                if suffix is None or not number_left:
                    break
                if digest is not known:
                    name = pushes.name(digest)
                text = f'{{"W":"{word}","kind":"expand","node_id":"{name}","winner":"{won}"'
                plain.reset()
                plain.update(head + f"{text}}}".encode())
                link = plain.digest()
                if line != f'{text},"~":"{link.hex()}"}}'.encode():
                    break
                head, top = link, None
                expanded += 1
                exact, cost = parent.exact, parent.cost_low + step.cost_low
                node = Node(  # as in tcc_certs.replay.buds
                    digest,
                    parent,
                    step.text,
                    states,
                    parent.depth + 1,
                    cost,
                    parent.cost_high + step.cost_high,
                    step.weight,
                    parent.weight * step.weight,
                    born.position,
                    x is None,
                    (),
                    None if exact is None else states[0],
                    -minus_key,
                    (born, x, tau, error, neg, neg_error),
                )
                line = next(lines, None)

                plain.reset()
                plain.update(b"\x01" + digest + suffix)
                inner = plain.digest()
                base, loss = score(cost), slack(gauge)
                minus_log, wrong = neg + lean, neg_error + _WON_ERROR
                low = minus_log + _HALF
                key, most = low + base + lift, _ULP - wrong
                if not (wrong <= low & _BELOW <= most and wrong <= key & _BELOW <= most):
                    return self._resumed(node, won, rest, True)
                low >>= _ROUND
                key >>= _ROUND
                h, k, n = inner.hex(), digits_q64(key), digits_q64(low)
                inner_name = f"{stamp}{h[13:16]}-{VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"
                text = (
                    f"{opening}{middle}{h}{below(node, False)[suffix]}{k[:-20]}.{k[-20:]}"
                    f'","kind":"node","neg_log_t":"{n[:-20]}.{n[-20:]}","node_id":"{inner_name}"'
                    f',"parent_id":"{name}{closing}'
                )
                plain.reset()
                plain.update(head + f"{text}}}".encode())
                link = plain.digest()
                if line != f'{text},"~":"{link.hex()}"}}'.encode() or not (
                    Q64_MIN <= key <= Q64_MAX
                ):
                    return self._resumed(node, won, rest, True)
                head = link
                nodes += 1
                if not unnoted:
                    kappa.note_beside(child.place.states)
                time = share * tau >> UNIT_BITS
                top = (-key, inner, node, child, None, time, loss, minus_log, wrong)
                line = next(lines, None)

                place = digest + _FIRST
                keyed.reset()
                keyed.update(_REST + place)
                x = int.from_bytes(keyed.digest(8), "little")
                time = (rest_share * tau >> UNIT_BITS) + _WHOLE - near_log(_LAST - 2 * x)
                bits = time.bit_length()
                minus_log = rest_level - near_log(time)
                # This is spread(time, loss), in place for the time that a call takes.
                wrong = (loss << (FULL - bits if bits < FULL else 1)) + _LOGS
                low = minus_log + _HALF
                key, most = low + base + family.ahead, _ULP - wrong
                if not (wrong <= low & _BELOW <= most and wrong <= key & _BELOW <= most):
                    return self._resumed(node, won, rest, False)
                low >>= _ROUND
                key >>= _ROUND
                k, n = digits_q64(key), digits_q64(low)
                text = (
                    f'{{"U":"{x}","key_raw":"{k[:-20]}.{k[-20:]}","kind":"rest","neg_log_t":"'
                    f'{n[:-20]}.{n[-20:]}","node_id":"{name}","step":1'
                )
                plain.reset()
                plain.update(head + f"{text}}}".encode())
                link = plain.digest()
                if line != f'{text},"~":"{link.hex()}"}}'.encode() or not (
                    Q64_MIN <= key <= Q64_MAX
                ):
                    return self._resumed(node, won, rest, False)
                head = link
                rests += 1
                plain.reset()
                plain.update(b"\x03" + place)
                digest = plain.digest()
                heappush(heap, (-key, digest, node, rest, x, time, loss, minus_log, wrong))
                top = heappushpop(heap, top)
                known, name = inner, inner_name
                line = next(lines, None)
        finally:  # also where the reader refuses the next line
            if top is not None:
                heappush(heap, top)
            pushes.line = line
            reader.head = head
            reader.records += expanded + nodes + rests
            run.expansions += expanded
            run.nodes += nodes
            kappa.passed(nodes)
        return True

    def _resumed(self, node: Node, won: int, rest: Remainder, child_due: bool) -> bool:
        run = self._run
        left = left_of(node, rest)
        due = (slot_at(run.language, run.constraints, node, left, won),) if child_due else ()
        run.resume(node, won, due, left)
        return False
