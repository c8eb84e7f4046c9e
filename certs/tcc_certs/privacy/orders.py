"""The orders at which curves are computed and added up: one fixed set, for every run and file.

Normative text: docs/spec/privacy.md, section 3.  Why these: with alpha - 1 of four significant bits
two neighbours are never further apart than 9/8, and an order that is off the best one by that
raises what is minimised by some thousandths; from 2^-7 to 2^20 that covers epsilons from 10^-4 to
10^4 and beyond.  The others are those at which curves are commonly published (tenths up to 10.9,
integers up to 64, four powers of two), so that such points are used as they are.
Cost: none; made once.
"""

from __future__ import annotations

from fractions import Fraction

from tcc_certs.core.atoms import Exact

_FINEST, _COARSEST = -7, 20


def _all_orders() -> tuple[Exact, ...]:
    found = {
        1 + Fraction(m, 8) * Fraction(2) ** e
        for e in range(_FINEST, _COARSEST)
        for m in range(8, 16)
    }
    found.add(Fraction(1 + 2**_COARSEST))
    found.update(1 + Fraction(tenths, 10) for tenths in range(1, 100))
    found.update(map(Fraction, (*range(2, 65), 128, 256, 512, 1024)))
    return tuple(_decimal(order) for order in sorted(found))


def _decimal(order: Fraction) -> Exact:
    places = 0
    while order.denominator > 1:
        order, places = order * 10, places + 1
    return Exact(order.numerator, places)


ORDERS = _all_orders()
