"""Kinds: the meaning of each word of a statement, and whether each node is allowed at its place.

:class:`Kinds` turns the statements of a core into rules of :mod:`tcc_certs.policy.forms`.  It
resolves words, and expands `let`, `same`, `unused` and `forbid`.  A mistake raises :class:`Fault`,
which names the node.  The reader of cores and the compiler both use this package, so a word means
the same for both.  Normative text: docs/spec/core.md, section "Kinds".

Each module reads a family of nodes, in a class that extends the class of the module before it:
`work`, `words`, `sources`, `terms`, `comparisons`, `statements`.  `values` has the kinds of terms,
`things` the results of reading a node, and `parts` the walks over forms.

Cost: linear in the expanded statement, which has at most `MAX_EXPANDED` nodes.  All statements
together take at most `MAX_WORK` steps, and `WORK_PER_NODE` more for each node of the core.  Sets of
tools are bit masks.
"""

from __future__ import annotations

from tcc_certs.policy.kinds.parts import conjuncts, keys_in, walk
from tcc_certs.policy.kinds.statements import Kinds
from tcc_certs.policy.kinds.things import Fault
from tcc_certs.policy.kinds.values import Kind
from tcc_certs.policy.kinds.work import MAX_EXPANDED

__all__ = ["MAX_EXPANDED", "Fault", "Kind", "Kinds", "conjuncts", "keys_in", "walk"]
