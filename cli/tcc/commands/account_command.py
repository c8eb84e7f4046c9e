"""``tcc account``: creates and shows an account that several runs draw on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc import screen
from tcc.opening import account_in, refusing
from tcc.options import json_option
from tcc_certs.formats.codec import format_decimal

if TYPE_CHECKING:
    from tcc_runtime.account.account import AccountStatement

_PLACES = {"price": 0, "latency_ms": 0, "epsilon": 9}


@click.group("account")
def command() -> None:
    """Create and show an account that several runs draw on."""


@command.command("create")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--price", type=click.IntRange(0), help="cap in cents; by default none")
@click.option("--latency-ms", type=click.IntRange(0), help="cap in milliseconds; by default none")
@click.option("--epsilon", help="cap in epsilon, a decimal; by default none")
@click.option(
    "--lease-ms",
    type=click.IntRange(1),
    default=60_000,
    show_default=True,
    help="milliseconds after which a reservation lapses if its holder does not return",
)
@json_option
def create(file: Path, as_json: bool, **caps: Any) -> None:
    """Create an account in FILE."""
    from tcc_runtime.account.account import Account

    if file.exists() or file.is_symlink():
        raise click.ClickException(f"{file}: File exists; an account is never replaced")
    with refusing(file), Account(file, **caps) as account:
        _print(account.statement(), as_json)


@command.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def show(file: Path, as_json: bool) -> None:
    """Show the caps of an account, what was spent, what is reserved, and what remains.

    Every sum is computed again. Like any draw on the account, this ends reservations whose lease is
    over.
    """
    with account_in(file) as account, refusing(file):
        _print(account.statement(), as_json)


def _print(found: AccountStatement, as_json: bool) -> None:
    sums = found.sums
    left = {name: _text(name, number) for name, number in sums.left.capped()}
    amounts = {
        "spent": {name: _text(name, amount) for name, amount in sums.spent._asdict().items()},
        "held": {name: _text(name, amount) for name, amount in sums.held._asdict().items()},
    }
    if as_json:
        caps = {
            name: _text(name, cap) for name, cap in sums.caps._asdict().items() if cap is not None
        }
        from tcc.outputs.verdicts import AccountOutput

        output = AccountOutput(
            id=sums.id,
            lease_ms=sums.lease_ms,
            caps=caps,
            **amounts,
            left=left,
            reservations=dict(found.numbers),
        )
        screen.print_output(output)
        return
    rows = [("account", sums.id)]
    for name, cap in sums.caps._asdict().items():
        of = "no cap" if cap is None else f"of {_text(name, cap)}, {left[name]} left"
        spent, held = amounts["spent"][name], amounts["held"][name]
        rows.append((name.replace("_", " "), f"{spent} spent, {held} held; {of}"))
    rows.append(("asked", ", ".join(f"{n} {state}" for state, n in found.numbers.items())))
    screen.print_fields(rows)


def _text(name: str, number: int) -> str:
    return format_decimal(number, _PLACES[name])
