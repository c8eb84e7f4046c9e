"""C7, leaf ids: the root context document is the one of the core.

With it every leaf's digest, and so every uniform of a race, follows from the grammar's name,
version and limits and from the calls; replay is deterministic.  The policy's name and version are
held to by :mod:`tcc_certs.manifest` (C701).  Cost: linear in the limits.
"""

from __future__ import annotations

from tcc_certs.codec import encode
from tcc_certs.digest import root_document
from tcc_certs.errors import Code, require
from tcc_certs.grammar import Core
from tcc_certs.manifest import Manifest


def check_leaf_ids(manifest: Manifest, core: Core) -> None:
    """J is that of the core's name, version and limits.

    Raises:
        Rejected: C702.
    """
    due = encode(root_document(core.name, core.version, core.limit_texts))
    found = encode(manifest.root_document)
    require(due.decode(), found.decode(), Code.ROOT_CONTEXT, "manifest.leaf_policy.root")
