"""Kinds: what each word of a statement means, and whether each node may be where it is.

:class:`Kinds` turns the statements of a core into rules of :mod:`tcc_certs.policy.forms`: words are
resolved, and `let`, `same`, `unused` and `forbid` are expanded.  A mistake raises a
:class:`Fault`, which names the node.  The reader of cores and the compiler both use this package,
so a word has one meaning.  Normative text: docs/spec/core.md, section "Kinds".

Each module reads one family of nodes, in a class that extends the class of the module before it:
`work`, `words`, `sources`, `terms`, `comparisons`, `statements`.  The kinds of terms are in
`values`, the results of reading a node in `things`, and the walks over forms in `parts`.

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
