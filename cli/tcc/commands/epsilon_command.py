"""``tcc epsilon``: what some mechanisms come to together, as an epsilon at a delta."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.atoms import DEFAULT_DELTA, delta_of
from tcc.files import is_regular
from tcc.opening import json_option, refuse
from tcc_certs.core.atoms import Atom, Exact, atom_document
from tcc_certs.errors import Rejected
from tcc_certs.privacy.accountant import (
    PURE,
    Statement,
    Total,
    epsilon_text,
    points_of,
    stated,
    total_of,
)
from tcc_certs.privacy.atoms_file import MAX_BYTES, read_atoms


@click.command("epsilon")
@click.argument("atoms", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option(
    "--delta",
    default=DEFAULT_DELTA,
    show_default=True,
    metavar="DECIMAL",
    callback=delta_of,
    help="above 0 and below 1",
)
@json_option
def command(atoms: Path, delta: str, as_json: bool) -> None:
    """Compose the mechanisms listed in ATOMS (- is standard input): a JSON list of atoms.

    The epsilon is rounded up, at every step: it is never below the true one.
    """
    try:
        listed = read_atoms(_data(atoms))
    except Rejected as refusal:
        refuse(atoms, refusal)
    total = total_of(listed)
    found = stated(total, exact_of(delta))
    if as_json:
        screen.print_json("epsilon", _fields(total, found, delta))
    else:
        _print(listed, found, delta)


def exact_of(text: str) -> Exact:
    """A canonical decimal of at least 0 as the accountant takes it."""
    whole, _, part = text.partition(".")
    return Exact(int(whole + part), len(part))


def _data(path: Path) -> bytes:
    """The whole file; what is too long is refused by its reader."""
    if str(path) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    if not path.exists():
        raise click.ClickException(f"{path}: No such file or directory")
    if not is_regular(path):
        raise click.ClickException(f"{path} is not a regular file")
    with path.open("rb") as handle:
        return handle.read(MAX_BYTES + 1)


def _fields(total: Total, found: Statement, delta: str) -> dict[str, Any]:
    return {
        "epsilon": epsilon_text(found.epsilon),
        "delta": delta,
        "alpha": found.alpha,
        "rdp": epsilon_text(found.rdp),
        "atoms": total.atoms,
        "orders": [list(point) for point in points_of(total)],
    }


def _print(listed: tuple[Atom, ...], found: Statement, delta: str) -> None:
    for atom in listed[:20]:
        named = {name: value for name, value in atom_document(atom).items() if name != "mechanism"}
        if "points" in named:
            named["points"] = len(atom_document(atom)["points"])  # type: ignore[arg-type]
        members = ", ".join(f"{name} {value}" for name, value in named.items())
        screen.say(f"  {atom_document(atom)['mechanism']}: {members}")
    if len(listed) > 20:
        screen.say(f"  and {len(listed) - 20} more")
    if found.alpha == PURE:
        how = "the sum of the pure epsilons"
    else:
        how = f"from {epsilon_text(found.rdp)} at order {found.alpha}"
    screen.print_fields([("epsilon", f"{epsilon_text(found.epsilon)}, {how}"), ("delta", delta)])
