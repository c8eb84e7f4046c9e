"""What bounds a subtree apart from the race: the residual part of M(v), by recipe.

Text: docs/spec/race.md, section 8.  M(v) = -beta C(prefix) + residual, the residual Q31.32 and a
function of the state alone.  Cost: R2 reads a column; R1 takes one logarithm for each distinct
cost of a call, once per artifact.
"""

from __future__ import annotations

from collections.abc import Callable

from tcc_certs.race.weights import call_residual
from tcc_runtime.artifact.load import Artifact


def residual_bound(artifact: Artifact, recipe: str) -> Callable[[int], int]:
    """The function from a state to the residual part of its M, Q31.32."""
    if recipe == "r2":
        return artifact.residual_to_go
    envelope = step_envelope(artifact)

    def per_step(q: int) -> int:
        return artifact.rank(q) * envelope

    return per_step


def step_envelope(artifact: Artifact) -> int:
    """max(0, the largest residual of any call), Q31.32."""
    beta, bits = artifact.manifest.beta, artifact.manifest.fraction_bits
    distinct = sorted(set(zip(artifact.cost_low, artifact.weight, strict=True)))
    return max([0, *(call_residual(beta, cost, weight, bits) for cost, weight in distinct)])
