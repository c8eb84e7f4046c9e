"""The kernel and the search take time linear in the statements of a question."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import tcc
from tcc_certs.policy.reader import core_bytes, read_core
from tcc_certs.proof.check import check_proof
from tests.doubling import doubles


@cache
def many(size: int) -> tuple[tcc.Artifact, bytes]:
    """A policy with two statements about each of its tools, and a proof that it implies itself."""
    lines = ["# lint: allow TCC709 a test needs no costs", 'grammar many version "1"']
    lines.append("tool look(k: text) gives (v: yes | no)")
    lines += [f"tool t{at}(k: text, n: integer 0 .. 9)" for at in range(size)]
    for at in range(size):
        lines.append(f"before t{at} require look(same k, v = yes)")
        lines.append(f"before t{at} require n <= {at % 9}")
    artifact = tcc.compile_text("\n".join(lines) + "\n", purpose="gate")
    found = tcc.prove(artifact, implies=artifact, timeout=100)
    assert found.proof is not None and len(found.used) == 2 * size
    return artifact, found.proof


def test_the_kernel_takes_time_linear_in_the_statements() -> None:
    def work(size: int) -> Callable[[], object]:
        artifact, proof = many(size)
        core = read_core(core_bytes(artifact.core))
        return lambda: check_proof(proof, core)

    doubles(work, 400)


def test_the_search_takes_time_linear_in_the_statements() -> None:
    def work(size: int) -> Callable[[], object]:
        artifact, _ = many(size)
        return lambda: tcc.prove(artifact, implies=artifact, timeout=100)

    doubles(work, 400)
