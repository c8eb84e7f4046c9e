"""The modes of the table, and the artifacts that they search.

All of them see the same grammar, seed and noisy category.  The published surrogate needs an
untilted race, so the rows that are compared are untilted; one more has the tilt that a compilation
has by default.  Cost: two compilations a process, less than a second each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tcc_certs.formats.container import write_container
from tcc_certs.kernel import CheckedArtifact, check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tcc_experiments.graphs import GrammarError
from tcc_runtime.artifact.load import Artifact, load

GRAMMAR = Path(__file__).with_name("numeric_answers.tcg")
BETA = "4"
INFLATE = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A row of the table.

    Attributes:
        name: as it is shown.
        slug: as it stands in names of files.
        tilt: of the artifact.
        settings: of the searches.
    """

    name: str
    slug: str
    tilt: int
    settings: Mapping[str, Any]


EXACT = Mode(name="Exact", slug="exact", tilt=0, settings={"race": "coupled"})
TILTED = Mode(name="Exact, tilt 8", slug="tilted", tilt=8, settings={"race": "coupled"})
SURROGATE = Mode(
    name="Surrogate, coupled",
    slug="surrogate",
    tilt=0,
    settings={"mode": "surrogate", "inflate": INFLATE, "race": "coupled"},
)
PRINTED = Mode(
    name="Surrogate, as printed (literal)",
    slug="printed",
    tilt=0,
    settings={"mode": "surrogate", "inflate": INFLATE, "race": "literal"},
)
FALLBACK = Mode(name="Fallback", slug="fallback", tilt=0, settings={"mode": "fallback"})
MODES = (EXACT, TILTED, SURROGATE, PRINTED, FALLBACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPlans:
    """An artifact, as a run and as a validator have it."""

    artifact: Artifact
    data: bytes
    checked: CheckedArtifact


@cache
def plans(tilt: int) -> CompiledPlans:
    """The grammar of the pipeline, compiled and checked.

    Raises:
        Refused: it has errors.
    """
    made = compile_file(GRAMMAR, Options(beta=BETA, tilt=tilt))
    if made.artifact is None:
        raise GrammarError(made.diagnostics[0].message)
    artifact = load(made.artifact)
    data = write_container(artifact.file.columns)
    return CompiledPlans(artifact=artifact, data=data, checked=check(data))
