"""``tcc explain``: what a diagnostic code means, with an example and its mend."""

from __future__ import annotations

import difflib
import re

import click

from tcc import screen
from tcc.opening import json_option
from tcc_certs.errors import Code
from tcc_compiler.language.catalogue import CATALOGUE, explain

_KERNEL = {
    "A": "artifact.md",
    "C": "artifact.md, section 5",
    "G": "core.md",
    "L": "ledger.md",
}


@click.command("explain")
@click.argument("code")
@json_option
@click.pass_context
def command(ctx: click.Context, /, code: str, as_json: bool) -> None:
    """Explain CODE: a diagnostic such as TCC201, or a code of the kernel such as C401."""
    wanted = code.upper()
    text = explain(wanted) or _kernel(wanted)
    if text is None:
        known = [*CATALOGUE, *(known.value for known in Code)]
        alike = [name for name in known if re.sub("[0-9]", "", name) == re.sub("[0-9]", "", wanted)]
        near = difflib.get_close_matches(wanted, alike, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise click.BadParameter(f"there is no code {code!r}.{hint}", ctx, param_hint="CODE")
    if as_json:
        screen.print_json("explain", {"code": wanted, "text": text})
    else:
        screen.say_lines(text)


def _kernel(code: str) -> str | None:
    found = next((known for known in Code if known.value == code), None)
    if found is None:
        return None
    words = found.name.lower().replace("_", " ")
    page = _KERNEL.get(code[0], "artifact.md")
    verdict = "declined" if found.declines else "invalid"
    return f"{code}: {words}\n\nThe kernel's word for an input that is {verdict}; docs/spec/{page}."
