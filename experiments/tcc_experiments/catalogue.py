"""The experiments, in the order of the paper."""

from __future__ import annotations

from tcc_experiments import (
    adapters,
    adversarial,
    arithmetic,
    diameter,
    distribution,
    fallback,
    ledger,
    pareto,
    request,
    soundness,
    stress,
    suites,
    tightness,
    tilt,
    truncation,
)
from tcc_experiments.model import Experiment
from tcc_experiments.pipeline import experiment as pipeline

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        suites,
        adversarial,
        soundness,
        distribution,
        tightness,
        stress,
        tilt,
        diameter,
        truncation,
        fallback,
        ledger,
        pareto,
        adapters,
        pipeline,
        request,
        arithmetic,
    )
}
