"""Which version of the core says something: 1.1 exactly where something is used that 1.0 lacks.

Normative text: docs/spec/core.md, section 1.  A writer and a reader take the version from here, so
that one grammar has one core.  Cost: linear in the parameters and the statements.
"""

from __future__ import annotations

from tcc_certs.core.model import Core, ForbidBefore, Tool
from tcc_certs.core.models import HALF, Model
from tcc_certs.formats.names import is_bare


def minor_version(core: Core) -> int:
    """1 where `core` has a feature of version 1.1, else 0."""
    new = (
        bool(core.monitors)
        or any(map(_is_new, core.tools))
        or any(limit.kind == "sum" for limit in core.limits)
        or any(statement.order == "each" for statement in core.requires)
        or any(isinstance(statement, ForbidBefore) for statement in core.forbids)
    )
    return int(new)


def _is_new_model(model: Model) -> bool:
    """Whether a model has a member that version 1.0 does not know."""
    return model.atom is not None or model.execute is not None or model.quality != HALF


def _is_new(tool: Tool) -> bool:
    """Whether a tool has a member, a value or a name that version 1.0 does not know."""
    parameters = tool.parameters
    return (
        bool(tool.opened)
        or tool.strict
        or tool.errors_failed
        or any(map(_is_new_model, tool.models))
        or not is_bare(tool.name)
        or any(p.observed or p.optional or not is_bare(p.name) for p in parameters)
    )
