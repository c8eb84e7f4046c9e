"""A fast decider, which gives the same answers as the definition in
:mod:`tcc_certs.policy.meaning`.

:class:`FastPolicy` and :class:`FastHistory` take the places of
:class:`tcc_certs.policy.meaning.Policy` and :class:`tcc_certs.policy.history.DictHistory`.
Conditions are compiled once to closures.  Each source has an index by its keys, with the positions,
sums and values of its elements.  If its filter compares an element with the decided call, the index
also sorts these elements, or groups them by value.  So the cost of most decisions does not depend
on the number of calls.
"""

from tcc_runtime.gate.decide.history import FastHistory, Tally
from tcc_runtime.gate.decide.policy import FastPolicy

__all__ = ["FastHistory", "FastPolicy", "Tally"]
