"""Grammars that several tests of the gate use."""

from __future__ import annotations

from functools import cache
from typing import Any

import tcc
from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact

ORDERED = """grammar g version "1"

tool a
tool b
tool c

plan = a b c | a c
"""
LONG = """grammar g version "1"

tool a(x: 1 | 2)
tool b

plan = (a | b){0,400}
"""
SHOP = """grammar shop version "1"

tool find(by: mail | phone, who: text max 40)
tool approve(order: text ~ "ord-[0-9]{1,8}")
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500, why?: text)
tool run_tests(suite: unit | all) gives (result: pass | fail)
tool merge
tool `odd-name`(limit: 1..3, data?: json)
tool listed(on: true | false | null | "true" | 1 | 0.5 | "1" | word, more?: x | y)
tool take(n: integer 0 .. 10, flag?: flag, at: number)

plan = any{0,12}

before refund require approve(same order)
before merge require run_tests(result = pass)
limit sum(refund.amount) <= 700
limit count(refund) per order <= 2 in session
limit price <= 100
"""
_made: list[Artifact] = []


@cache
def artifact(text: str) -> Artifact:
    """The artifact of a grammar."""
    found = tcc.compile_text(text)
    _made.append(found)
    return found


def gate(text: str = SHOP, **options: Any) -> tcc.Gate:
    """A new session."""
    return tcc.Gate(artifact(text), **options)


def do(session: tcc.Gate, tool: str, arguments: Any = None, **told: Any) -> None:
    """A call that is made."""
    with session.call(tool, arguments) as permit:
        permit.done(**told)


def known() -> dict[str, Artifact]:
    """The artifacts of this file that were used, by their digests."""
    return {found.digest.hex(): found for found in _made}


def bytes_of(found: Artifact) -> bytes:
    """The file of an artifact."""
    return write_container(found.file.columns)
