"""What a gate is opened with: an artifact whose certificates hold, and what its ledger shows.

Text: docs/gate.md.  Cost: the check of an artifact that is given by its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.records import shown_name


def opened(artifact: Artifact | str | Path, checked: str | None) -> Artifact:
    """The artifact, or that in a file, checked.

    Raises:
        Rejected: it is refused.
        SettingsError: its certificates were never checked.
    """
    found = artifact if isinstance(artifact, Artifact) else load(Path(artifact), checked=checked)
    if not found.verified:
        raise SettingsError("artifact", "one whose certificates were checked", "verify=False")
    return found


def shown_of(policy: Policy, show: Sequence[str]) -> tuple[str, ...]:
    """The open parameters that are shown, sorted; those that are added up among them.

    Raises:
        SettingsError: one is none of the artifact's.
    """
    tools = policy.core.tools
    known = {shown_name(tool.name, given.name) for tool in tools for given in tool.opened}
    foreign = sorted(set(show) - known)
    if foreign:
        raise SettingsError("show", "open parameters as tool.parameter", foreign[0])
    added = policy.monitors.added.items()
    expected = {shown_name(tools[tool].name, name) for tool, names in added for name in names}
    return tuple(sorted({*show, *expected}))
