"""What a run reads of an artifact that the kernel has passed, in one place.

Normative text: docs/spec/artifact.md.  Cost: one logarithm a call, for the envelope of recipe R1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.automaton import Automaton
from tcc_certs.digest import root_context
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.weights import call_residual


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """What a run reads of an artifact.

    Attributes:
        automaton: states, edges, acceptance, rank.
        texts: canonical text of each call.
        weight: W of each call; cost_low, cost_high: nano-units.
        plans, race_count: N and m of each state.
        residual_to_go: g of each state, Q31.32.
        fraction_bits, beta: F and beta.
        envelope: max(0, largest r of any call), Q31.32: recipe R1's step.
        root_digest: D(root).
    """

    automaton: Automaton
    texts: Sequence[str]
    weight: Sequence[int]
    cost_low: Sequence[int]
    cost_high: Sequence[int]
    plans: Sequence[int]
    race_count: Sequence[int]
    residual_to_go: Sequence[int]
    fraction_bits: int
    beta: tuple[int, int]
    envelope: int
    root_digest: bytes

    def unit(self, state: int) -> int:
        """The u of a state with n = m / 2^u."""
        return self.fraction_bits * self.automaton.rank[state]


def read_language(artifact: CheckedArtifact) -> Language:
    """The language of an artifact that the kernel has passed."""
    manifest, columns = artifact.file.manifest, artifact.file.columns
    weight = columns["call_weight"].items()
    cost_low = columns["call_cost_low"].items()
    residuals = [
        call_residual(manifest.beta, cost_low[i], weight[i], manifest.fraction_bits)
        for i in range(manifest.calls)
    ]
    return Language(
        automaton=artifact.automaton,
        texts=artifact.calls,
        weight=weight,
        cost_low=cost_low,
        cost_high=columns["call_cost_high"].items(),
        plans=artifact.plans,
        race_count=artifact.race_count,
        residual_to_go=columns["residual_to_go"].items(),
        fraction_bits=manifest.fraction_bits,
        beta=manifest.beta,
        envelope=max([0, *residuals]),
        root_digest=root_context(manifest.root_document),
    )
