"""The calls of an artifact of which the world chooses a part.

A search treats the value of an observed parameter as its own choice; what it assumed so is to be
said with each plan.  Text: docs/spec/race.md, section 9.
Cost: a look for one word in the tools; where it is there, that of reading the core, once.
"""

from __future__ import annotations

from tcc_runtime.artifact.load import Artifact

# Canonical JSON escapes quotes, so no text holds this.
_MARK = b'"observed":true'


def observed_calls(artifact: Artifact) -> frozenset[str]:
    """The canonical texts of the calls with an observed parameter; kept with the artifact.

    Raises:
        Rejected: an unverified artifact has no core.
    """
    found = artifact.kept.get("observed_calls")
    if not isinstance(found, frozenset):
        found = artifact.kept["observed_calls"] = _observed_calls(artifact)
    return found


def _observed_calls(artifact: Artifact) -> frozenset[str]:
    if _MARK not in bytes(artifact.file.columns["tools"].data):
        return frozenset()
    core = artifact.core
    asked = [any(parameter.observed for parameter in tool.parameters) for tool in core.tools]
    return frozenset([call.text for call in core.calls if asked[call.tool]])
