"""Arrivals to some eighty bits: the numbers and the bounds of their errors.

Normative text: docs/spec/race.md, sections 5, 8 and 18.  What is published of an arrival is rounded
once, so whoever knows it to 2^-80 knows nearly always how it is rounded; where he does not, the
definition (:mod:`tcc_certs.race.published`) goes on.  A *unit* is 2^-96, as in
:mod:`tcc_runtime.fastreplay.logarithm`.

An estimate of an arrival t with count n is (tau, e, neg, f): n * t lies within e units of tau, and
-ln t within f units of neg, ends left out.  Let v be a node with the estimate (tau, e, neg, f), u a
child of it by a call of weight w, p = w * n(u) / n(v) the child's share of the mass of v, at most
1.  By the recursion

    n(u) t(u) = p * n(v) t(v)         the winner, and -ln t(u) = -ln t(v) - ln w
    n(u) t(u) = p * n(v) t(v) + E     every other; -ln t(u) = ln n(u) - ln(n(u) t(u))

and the same with what is left of a node, R, for u: w = 1, and mass(R) for n(u).

- p in units rounded down, times tau: short by less than tau / 2^96, and by 1 where the product is
  rounded; p times e is at most e.  E is a constant and a logarithm: off by less than LOG_ERROR + 2.
  So e of u is at most e + tau / 2^96 + LOG_ERROR + 4: :func:`slack`.
- -ln w is off by less than LOG_ERROR + 2, so a winner's f is f + LOG_ERROR + 2.
- Where tau(u) has b bits, e of u is a relative error of at most e / 2^(b-1) of it, and moves the
  logarithm by at most 1.01 times as much, so by less than e * 2^(98-b) units: :func:`spread`, which
  takes no less than 2e.  (Where e / 2^(b-1) is no small number f exceeds 2^50, and then no
  rounding is decided.)  ln tau(u) adds LOG_ERROR, ln n(u) LOG_ERROR + 5.

Cost: a conversion takes a logarithm of an enclosure; all else is a few additions.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_certs.race.arrivals import BASE_BITS, Arrival, neg_log
from tcc_runtime.fastreplay.logarithm import LOG_ERROR, MAX_BITS, UNIT_BITS

Estimate: TypeAlias = "tuple[int, int, int, int]"

WON = LOG_ERROR + 2  # what f grows by from a node to the winner
KEYED = 2  # what M of a child is off by: two summands, each rounded down
SLACK = LOG_ERROR + 5
# A tau or an e of so much leaves what the analysis and the logarithm allow for the children.
GREATEST, WIDEST = 1 << MAX_BITS - 2, 1 << 40
LOGS = 2 * LOG_ERROR + 5
FULL = UNIT_BITS + 2


def slack(estimate: Estimate) -> int:
    """The e of the children of a node with this estimate, or of what is left of it."""
    return estimate[1] + (estimate[0] >> UNIT_BITS) + SLACK


def spread(tau: int, error: int) -> int:
    """The f of a child that did not win, or of what is left: from its tau, above 0, and its e."""
    bits = tau.bit_length()
    return (error << (FULL - bits if bits < FULL else 1)) + LOGS


def estimated(arrival: Arrival) -> Estimate:
    """The estimate of an arrival of the definition, from its enclosure."""
    low, high, scale = arrival.enclose(BASE_BITS)
    drop = scale + arrival.unit - UNIT_BITS
    least, most = low * arrival.count, high * arrival.count
    if drop >= 0:
        tau, above = least >> drop, (most >> drop) + 1
    else:
        tau, above = least << -drop, most << -drop
    log_low, log_high = neg_log(arrival, BASE_BITS)
    extra = BASE_BITS - UNIT_BITS
    neg = log_low >> extra
    return tau, above - tau + 1, neg, (log_high >> extra) - neg + 2
