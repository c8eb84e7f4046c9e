"""The graphs of the experiments, written as grammars and compiled.

Suite A: balanced trees, every edge a call of its own.  Suite B: layered graphs whose nodes share
what follows them; compiled, the children of each prefix part its plans.  Costs are drawn uniformly
from 0..1, in thousandths.  Cost: the compiler's.
"""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file, compile_text
from tcc_experiments.model import random_of
from tcc_runtime.artifact.load import Artifact, load

FOLDER = Path(__file__).parent / "grammars"


class GrammarError(ValueError):
    """A grammar of an experiment does not compile: a mistake of ours."""


def compiled(text: str, beta: str = "1", tilt: int = 0) -> Artifact:
    """The artifact of a grammar's text.

    Raises:
        Refused: it has errors.
    """
    made = compile_text(text, Options(beta=beta, tilt=tilt))
    if made.artifact is None:
        raise GrammarError(made.diagnostics[0].message)
    return load(made.artifact)


def compiled_file(name: str, beta: str = "1", tilt: int = 0) -> Artifact:
    """The artifact of one of the grammars beside this file.

    Raises:
        Refused: it has errors.
    """
    made = compile_file(FOLDER / name, Options(beta=beta, tilt=tilt))
    if made.artifact is None:
        raise GrammarError(made.diagnostics[0].message)
    return load(made.artifact)


@lru_cache(maxsize=8)
def suite(name: str, depth: int, number: int, tilt: int = 0) -> Artifact:
    """A graph of suite ``A`` or ``B``; the same costs at every tilt."""
    rng = random_of(f"suite {name}", depth, number)
    make = balanced_tree if name == "A" else partition_graph
    return compiled(make(rng, depth, 3), tilt=tilt)


def balanced_tree(rng: random.Random, depth: int, branching: int) -> str:
    """All plans have `depth` calls; each prefix has `branching` calls that no other has."""
    tools, rules = [], []
    level = ["n"]
    for left in range(depth, 0, -1):
        below = []
        for node in level:
            parts = []
            for child in range(branching):
                name = f"{node}_{child}"
                tools.append(f"tool t{name} {{ cost {cost(rng)} }}")
                parts.append(f"t{name} {name}" if left > 1 else f"t{name}")
                below.append(name)
            rules.append(f"rule {node} = {' | '.join(parts)}")
        level = below
    return _grammar("tree", tools, rules, "n")


def partition_graph(rng: random.Random, layers: int, branching: int) -> str:
    """Layers of `branching` + 1 nodes; each takes one to `branching` calls to nodes of the next.

    The calls are of a pool of twice `branching`; the node that starts takes `branching`.
    """
    pool = [f"t{i}" for i in range(2 * branching)]
    tools = [f"tool {name} {{ cost {cost(rng)} }}" for name in pool]
    rules = []
    for layer in range(layers):
        for at in range(branching + 1 if layer else 1):
            wide = branching if layer == 0 else rng.randint(1, branching)
            parts = []
            for name in sorted(rng.sample(pool, wide)):
                to = rng.randrange(branching + 1)
                parts.append(f"{name} n{layer + 1}_{to}" if layer + 1 < layers else name)
            rules.append(f"rule n{layer}_{at} = {' | '.join(parts)}")
    return _grammar("partition", tools, rules, "n0_0")


def cost(rng: random.Random) -> str:
    """A cost in 0..1, in thousandths."""
    return f"{rng.randrange(1001) / 1000:.3f}"


def any_of(costs: list[str], least: int, most: int, name: str = "star") -> str:
    """``any{least,most}`` over calls a0, a1, .. of those costs."""
    tools = [f"tool a{i} {{ cost {value} }}" for i, value in enumerate(costs)]
    return _grammar(name, tools, [], f"any{{{least},{most}}}")


def _grammar(name: str, tools: list[str], rules: list[str], plan: str) -> str:
    return "\n".join([f'grammar {name} version "1"', *tools, *rules, f"plan = {plan}", ""])
