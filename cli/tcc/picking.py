"""Plans for people who want one, and no race: `tcc.cheapest`, `tcc.sample`, and their fields."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from tcc.written import Given, artifact_of
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.artifact.plans import cheapest_in
from tcc_runtime.questions.draws import UNIFORM, draws
from tcc_runtime.questions.graph import graph_of

Law = Literal["uniform", "softmax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A plan and what it costs.

    Attributes:
        calls: canonical texts.
        cost: the sum of the low costs, exact decimal text.
    """

    calls: tuple[str, ...]
    cost: str


def cheapest(source: Given, n: int = 1) -> list[Picked]:
    """The `n` plans of least cost (fewer where there are fewer), ties in call order.

    Args:
        source: an artifact, or a file of one or of a grammar.

    Raises:
        ValueError: `n` is negative.
        CompileError, OSError: the file is refused, or cannot be read.
        tcc_certs.errors.Rejected: the artifact is refused; D201 it is too large to be unfolded.
    """
    _require_count(n)
    graph = graph_of(artifact_of(source))
    found = () if graph.root is None else cheapest_in(graph, graph.root, n)
    return [Picked(calls=calls, cost=format_decimal(cost, 9)) for cost, calls in found]


def sample(
    source: Given, n: int = 1, *, law: Law = "uniform", seed: bytes | None = None
) -> list[Picked]:
    """`n` plans, drawn independently and with replacement; none where there is no plan.

    Args:
        source: an artifact, or a file of one or of a grammar.
        law: ``uniform``: every plan alike; ``softmax``: by e^(-beta cost), exactly, at the
            artifact's beta and low costs, whatever its tilt.
        seed: any bytes; the same give the same plans. None: others each time.

    Raises:
        ValueError: `n` is negative, or there is no such law.
        CompileError, OSError: the file is refused, or cannot be read.
        tcc_certs.errors.Rejected: the artifact is refused; D201 it is too large to be unfolded,
            D202 a draw stays open at the greatest precision.
    """
    _require_count(n)
    if law not in ("uniform", "softmax"):
        raise ValueError(f"a law is uniform or softmax, not {law!r}")
    artifact = artifact_of(source)
    beta = UNIFORM if law == "uniform" else artifact.manifest.beta
    graph = graph_of(artifact)
    price = dict(zip(graph.texts, graph.cost_low, strict=True))
    drawn = draws(graph, beta, secrets.token_bytes(32) if seed is None else seed)
    return [
        Picked(calls=calls, cost=format_decimal(sum(map(price.__getitem__, calls)), 9))
        for calls in islice(drawn, n)
    ]


def _require_count(n: int) -> None:
    if n < 0:
        raise ValueError(f"a number of plans is needed, not {n}")


def plan_fields(found: Picked) -> dict[str, Any]:
    """A plan in the JSON of ``cheapest`` and ``sample``."""
    return {"calls": list(found.calls), "cost": found.cost}
