"""The fast version of the definition, which gives the same answers.

:class:`FastPolicy` and :class:`FastHistory` take the places of
:class:`tcc_certs.policy.meaning.Policy` and :class:`tcc_certs.policy.history.DictHistory`.
Conditions are compiled once to closures.  Each source has an index by its keys, with the positions,
sums and values of its elements.  If its filter compares an element with the decided call, its index
also has these elements in order, or by their values.  So most decisions cost the same however many
calls there were.
"""

from tcc_runtime.gate.decide.history import FastHistory, Tally
from tcc_runtime.gate.decide.policy import FastPolicy

__all__ = ["FastHistory", "FastPolicy", "Tally"]
