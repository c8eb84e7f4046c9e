"""A core with `ask` statements."""

from __future__ import annotations

from functools import cache

from tcc_certs.kernel import CheckedArtifact
from tests.oracle_session.writer import SessionWriter, artifact_of

ONE = "1" * 32


@cache
def asking() -> CheckedArtifact:
    """Payments above 10 need the lead, within an hour; above 99 the boss, too."""
    return artifact_of(
        'grammar g version "1"\ntool find(id: text)\n'
        "tool pay(id: text, amount: number) { errors mean failed }\n"
        "limit depth <= 12\nbefore pay require find(same id)\n"
        'before pay(amount > 10) ask "lead" within 1 h\nbefore pay(amount > 99) ask "boss"\n'
    )


def asked(amount: int = 50) -> SessionWriter:
    """A session in which the lead is asked about a payment."""
    writer = SessionWriter(asking())
    writer.made("find", id="a")
    writer.ask("pay", ONE, 2, id="a", amount=amount)
    return writer
