"""C9 in bulk: where a strict call has an edge, every answer that it may get has one.

The calls of a state are distinct (C1), so it is enough to count them.
Cost: a sort of the strict edges of each span, and nothing where no tool is strict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcc_certs.core.answers import Answers
from tcc_certs.formats.artifact import ArtifactFile
from tcc_runtime.fastcheck.spans import spans


def answered(file: ArtifactFile, answers: Answers, core_calls: Sequence[int]) -> bool:
    """Whether C9 is shown to hold in every state.

    Args:
        file: C1 to C6 hold of it, and it is deterministic.
        core_calls: for each call of the artifact its index in the core.
    """
    group = np.array(answers.group, np.int64)[np.array(core_calls, np.intp)]
    expected = np.array(answers.size, np.int64)
    for span in spans(file):
        groups = span.at_calls(group)
        strict = groups >= 0
        keys = span.source[strict] * len(expected) + groups[strict]
        found, edges = np.unique(keys, return_counts=True)
        if bool((edges != expected[found % len(expected)]).any()):
            return False
    return True
