"""What a rule says of a forged artifact."""

from __future__ import annotations

from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tests.forgery.artifacts import Forge


def refusal(forge: Forge | bytes) -> tuple[str, str]:
    """The code and the place of the refusal; fails where there is none."""
    data = forge if isinstance(forge, bytes) else forge.seal()
    try:
        check(data)
    except Rejected as refused:
        return refused.code.value, refused.path
    raise AssertionError("the forgery is valid")
