"""``tcc-certs VERB ..`` or ``python -m tcc_certs``: the kernel, which needs only BLAKE3.

Exit codes: 0 VALID, 1 INVALID, 2 declined, incomplete or bad usage, 3 internal error.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from tcc_certs.errors import escaped, trace_lines

try:
    from tcc_certs.verbs.answer import complain, drop_unwritten, show
except ModuleNotFoundError as error:
    if error.name != "blake3":
        raise
    ArgumentParser().exit(2, "tcc-certs: DECLINED: blake3 is not installed: pip install blake3\n")

# The verbs and their help texts.  Only the module of the verb on the command line is loaded.
VERBS = {
    "check": "verify the certificates of an artifact",
    "validate": "replay a ledger against its artifact",
}
DECLINED, INTERNAL = 2, 3


class _Parser(ArgumentParser):
    """A parser that escapes its error messages, since these may quote any argument."""

    def error(self, message: str) -> NoReturn:
        super().error(escaped(message))


class _InternalErrors:
    """Turns an unexpected exception of a verb into a traceback and exit code 3, never 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            for line in trace_lines(error):
                complain(line)
            raise SystemExit(INTERNAL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb that the arguments name, print its result, and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = _Parser(prog="tcc-certs", description="Verify what tcc compiled and ran.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, what in VERBS.items():
        sub = verbs.add_parser(name, help=what)
        if name in given:
            verb = import_module(f"tcc_certs.verbs.{name}")
            verb.add(sub)
            sub.add_argument("--json", action="store_true", help="one JSON document")
            sub.set_defaults(run=verb.run)
    options = parser.parse_args(given)
    with _InternalErrors():
        try:
            answer = options.run(options)
            show(answer, as_json=options.json)
        except (OSError, MemoryError) as error:
            complain(f"tcc-certs: DECLINED: {error or 'not enough memory'}")
            drop_unwritten()
            return DECLINED
        return int(answer.exit_code)
    return INTERNAL


if __name__ == "__main__":
    sys.exit(main())
