"""Cores with strict tools: the same without strict, and sisters of calls."""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.policy.core import Core
from tests.oracle.plans import answers


def without_strict(core: Core) -> Core:
    """The core with no tool strict."""
    return replace(core, tools=tuple([replace(tool, strict=False) for tool in core.tools]))


def sisters(core: Core, number: int) -> list[int]:
    """The calls that differ from `number` in listed answers only; -1 where the core has none."""
    every = replace(core, tools=tuple([replace(tool, strict=True) for tool in core.tools]))
    return answers(every, number)
