"""How deep a JSON value is nested, told without recursion.

Cost: linear in the value.
"""

from __future__ import annotations

from typing import Any


def is_deeper(value: Any, most: int) -> bool:
    """Whether more than `most` lists and objects stand in one another."""
    level = _inside([value])
    for _ in range(most):
        if not level:
            return False
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> list[Any]:
    held = value.values() if isinstance(value, dict) else value
    return [inner for inner in held if isinstance(inner, dict | list)]
