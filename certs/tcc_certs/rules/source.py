"""C7 and C8, leaf ids and source: what the artifact says of its core is what the core says.

With the root context document every leaf's digest, and so every uniform of a race, follows from the
grammar's name, version and limits and from the calls; the policy's name and version are held to by
:mod:`tcc_certs.formats.manifest` (C701).  That the automaton is the core's is more than C8, and for
:mod:`tcc_certs.corecheck.check`.  Cost: linear in the core's calls, tools and limits.
"""

from __future__ import annotations

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.hashes import root_document
from tcc_certs.formats.manifest import Manifest, Relaxed
from tcc_certs.formats.schema import as_list
from tcc_certs.rules.calls import CallTable

_MISMATCH = Code.CORE_MISMATCH


def check_leaf_ids(manifest: Manifest, core: Core) -> None:
    """J is that of the core's name, version and limits.

    Raises:
        Rejected: C702.
    """
    expected = encode(root_document(core.name, core.version, core.limit_texts))
    found = encode(manifest.root_document)
    require(expected.decode(), found.decode(), Code.ROOT_CONTEXT, "manifest.leaf_policy.root")


def check_source(manifest: Manifest, table: CallTable, core: Core) -> tuple[int, ...]:
    """For each call of the artifact its index in the core, where it is the same call.

    Raises:
        Rejected: C802 the grammar's name or version, or a call that the core does not have so.
    """
    require(core.name, manifest.grammar, _MISMATCH, "manifest.grammar.name")
    require(core.version, manifest.version, _MISMATCH, "manifest.grammar.version")
    number = {call.text: index for index, call in enumerate(core.calls)}
    found = []
    for i, text in enumerate(table.texts):
        ensure(text in number, _MISMATCH, f"call_text[{i}]", "a call of the core", text)
        call = core.calls[number[text]]
        require(call.cost_low, table.cost_low[i], _MISMATCH, f"call_cost_low[{i}]")
        require(call.cost_high, table.cost_high[i], _MISMATCH, f"call_cost_high[{i}]")
        require(call.price, table.price[i], _MISMATCH, f"call_price[{i}]")
        require(call.latency, table.latency[i], _MISMATCH, f"call_latency_ms[{i}]")
        require(call.epsilon, table.epsilon[i], _MISMATCH, f"call_epsilon[{i}]")
        found.append(number[text])
    return tuple(found)


def check_relaxed(relaxed: Relaxed | None, core: Core) -> None:
    """What is relaxed are statements of the core, a limit on costs only where no cost is negative.

    A run adds up what a call may cost at most and looks at no later call: with a negative cost, a
    sum past the limit could still come back below it.

    Raises:
        Rejected: C803.
    """
    if relaxed is None:
        return
    sizes = {
        "forbids": (relaxed.forbids, len(core.forbids)),
        "limits": (relaxed.limits, len(core.limits)),
        "requires": (relaxed.requires, len(core.requires)),
    }
    for name, (indices, size) in sizes.items():
        for index in indices:
            path = f"manifest.relaxed.{name}"
            ensure(index < size, Code.RELAXED, path, f"an index below {size}", index)
    costs = any(core.limits[index].kind == "cost" for index in relaxed.limits)
    least = min((call.cost_low for call in core.calls), default=0)
    holds = not costs or least >= 0
    ensure(holds, Code.RELAXED, "manifest.relaxed.limits", "no limit on negative costs", least)


def check_tools(column: bytes, tools: Json, owners: set[int]) -> None:
    """The column ``tools`` holds those tool objects of the core that own a call, word for word.

    Args:
        column: its bytes.
        tools: the member ``tools`` of the core.
        owners: indices of the tools that own a call of the artifact.

    Raises:
        Rejected: M303.
    """
    items = as_list(tools, "core.tools", Code.CORE_SCHEMA)
    expected = encode([tool for index, tool in enumerate(items) if index in owners])
    ensure(
        expected == column, Code.TOOL_TABLE, "tools", "the core's tools that own a call", "others"
    )
