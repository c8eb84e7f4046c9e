"""Arguments of a call as they are now: what a gate decides on and what a tool gets are one thing.

Objects and lists inside of arguments may be somebody's who goes on changing them, in another
thread say.  Whoever runs a tool takes a copy first, and hands that one to the gate and to the tool.
Text: docs/gate.md.  Cost: linear in the arguments.
"""

from __future__ import annotations

from typing import Any, Final

from tcc_certs.values.canonical import MAX_DEPTH

_DEPTH: Final = MAX_DEPTH + 1  # what is deeper is no value, and the gate refuses it


def snapshot(value: Any, depth: int = _DEPTH) -> Any:
    """A copy of a JSON value down to its texts and numbers; what has no such form stays."""
    if depth <= 0:
        return value
    # One step of the interpreter takes the members; only then are they gone through.
    if isinstance(value, dict):
        return {name: snapshot(item, depth - 1) for name, item in dict(value).items()}
    if isinstance(value, list):
        return [snapshot(item, depth - 1) for item in list(value)]
    if type(value) is tuple:
        return tuple([snapshot(item, depth - 1) for item in value])
    return value
