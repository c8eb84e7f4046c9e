"""The time of a decision in Dogwood's Python package after many events.

It needs its own environment, because the project does not depend on it:

    python3 -m venv /tmp/dogwood && /tmp/dogwood/bin/pip install dogwood-py
    /tmp/dogwood/bin/python benchmarks/beside_dogwood.py

The policy is the package's own example of an approval before a checkout: somebody must have
approved the cart within the last hour, as in `require approve same user, cart within 1 h before
checkout`.  Its native authorizer records every event that it decides.  Processor time of this
process; the least of 7 rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = (10, 1_000, 10_000)
APPROVING = 'permit (principal, action == Agent::Action::"ApproveCheckout", resource);'
WHO, WHERE = 'Agent::OAuthUser::"ann"', 'Agent::Gateway::"shop"'


def request(cart: str, status: str = "") -> dict[str, Any]:
    """Return the input of an event; the example's schema requires all members."""
    given = {"user": "ann", "session_id": "s", "cart_id": cart, "item_id": "", "category": ""}
    return {
        "tool": "shop", "toolUseId": "1",
        "input": {**given, "amount": 1, "quantity": 1, "risk": 0, "status": status},
    }  # fmt: skip


def _asking(authorizer: Any) -> Callable[..., str]:
    def asked(action: str, cart: str, status: str = "") -> str:
        told = request(cart, status)
        return str(authorizer.authorize_request(f"Agent::Action::{action}", WHO, WHERE, told))

    return asked


def main() -> None:
    """Print a line for each size: microseconds to record an approval, and to decide a checkout."""
    import examples  # type: ignore[import-not-found]
    from dogwood import native  # type: ignore[import-not-found]

    folder = Path(examples.__file__).parent / "shopping_agent_policies"
    policy = (folder / "approval_gate.dw").read_text("utf-8") + f'\n@id("approving")\n{APPROVING}\n'
    names = "schema.cedarschema", "event.dwschema"
    schemas = [(folder / name).read_text("utf-8") for name in names]
    for size in SIZES:
        asked = _asking(native.NativeAuthorizer(policy, *schemas))
        begun = time.process_time()
        for at in range(size):
            asked("ApproveCheckout", f"c{at}", "approved")
        filled = (time.process_time() - begun) / size
        told = asked("CheckoutCart", "c5"), asked("CheckoutCart", "none")
        if told != ("Allow", "Deny"):
            raise SystemExit(f"the policy is not the one that this compares: {told}")
        best = float("inf")
        for _ in range(7):
            begun = time.process_time()
            for _ in range(20):
                asked("CheckoutCart", "c5")
            best = min(best, (time.process_time() - begun) / 20)
        print(f"{size}: {filled * 1e6:.0f} us an approval, {best * 1e6:.0f} us a checkout")


if __name__ == "__main__":
    main()
