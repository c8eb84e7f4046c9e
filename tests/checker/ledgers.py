"""Every ledger of a session that tests validate, held against the extracted checker.

    python -m tests.checker.ledgers TESTS..     runs these tests, prints how often which lines met

What the tests hand to ``tcc_certs.session.validate`` is kept, with its artifact, and judged by the
extracted checker afterwards.  Where the two differ the ledger is printed, and the exit code is 1.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

from tcc.library.second_checker import NoChecker, session_verdicts
from tcc_certs import kernel, session
from tcc_certs.errors import Rejected
from tcc_certs.session import SessionValidation, validation
from tests.checker.verdicts import agree, program


class Kept:
    """Artifacts by their digests, and of each the ledgers with what ``tcc_certs`` says of them."""

    def __init__(self) -> None:
        self.artifacts: dict[str, bytes] = {}
        self.ledgers: dict[str, dict[bytes, tuple[str, str]]] = defaultdict(dict)

    def install(self) -> None:
        """Keep what is validated from here on; before any test is imported."""
        check, validate = kernel.check, validation.validate

        @wraps(check)
        def checked(data: Any, *args: Any, **more: Any) -> Any:
            found = check(data, *args, **more)
            if isinstance(data, bytes):
                self.artifacts[found.file.digest.hex()] = data
            return found

        @wraps(validate)
        def validated(ledger: bytes | Iterable[bytes], artifact: Any, **more: Any) -> Any:
            whole = ledger if isinstance(ledger, bytes) else b"".join(ledger)
            self._keep(whole, artifact, more, validate, checked)
            return validate(whole, artifact, **more)

        kernel.check = validation.check = checked  # type: ignore[attr-defined]
        session.validate = validation.validate = validated

    def _keep(
        self,
        ledger: bytes,
        artifact: Any,
        more: Any,
        validate: Callable[..., SessionValidation],
        checked: Callable[..., Any],
    ) -> None:
        if isinstance(artifact, bytes):
            try:
                artifact = checked(artifact)
            except Rejected:
                return
        kept = self.ledgers[artifact.file.digest.hex()]
        if ledger not in kept:
            found = validate(ledger, artifact)
            kept[ledger] = found.word, found.claim_type

    def compared(self) -> tuple[Counter[str], list[Any]]:
        """How often which lines were said, and the ledgers about which the two differ."""
        seen: Counter[str] = Counter()
        found = []
        for digest, kept in self.ledgers.items():
            ledgers = list(kept)
            artifact = self.artifacts.get(digest)
            if artifact is None:
                seen["no artifact"] += len(ledgers)
                continue
            try:
                lines = session_verdicts(artifact, ledgers, program())
            except NoChecker as error:
                seen[f"{error}"] += len(ledgers)
                continue
            seen.update(lines)
            for ledger, line in zip(ledgers, lines, strict=True):
                if agree(*kept[ledger], line):
                    continue
                again = validation.validate(ledger, artifact)  # a test may have set a limit
                if not agree(again.word, again.claim_type, line):
                    found.append((line, kept[ledger], ledger))
        return seen, found


def main() -> int:
    kept = Kept()
    kept.install()
    code = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *sys.argv[1:]])
    seen, found = kept.compared()
    for line, many in sorted(seen.items(), key=lambda item: -item[1]):
        print(f"{many:7} {line}")
    for line, certs, ledger in found[:20]:
        print(f"DIFFER: {line} / {certs}: {ledger!r}")
    print(f"{sum(seen.values())} ledgers, {len(found)} differ")
    return 1 if found or code else 0


if __name__ == "__main__":
    sys.exit(main())
