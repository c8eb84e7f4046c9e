"""C7: C701, C702."""

import pytest

from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


@pytest.mark.parametrize(("member", "value"), [("name", "tcc.leaf2"), ("version", 2)])
def test_rejects_another_policy(member: str, value: str | int) -> None:
    forge = Forge(example()).member("leaf_policy", member, value=value)
    assert refusal(forge) == ("C701", f"manifest.leaf_policy.{member}")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("grammar", "vex"),
        ("version", "1"),
        ("limits", ["limit depth <= 3"]),
        ("limits", ["limit price <= 5", "limit depth <= 3"]),
        ("limits", ["limit depth <= 3", "limit price <= 5", "limit price <= 6"]),
    ],
)
def test_rejects_a_root_document_that_is_not_the_cores(member: str, value: object) -> None:
    forge = Forge(example()).member("leaf_policy", "root", member, value=value)
    assert refusal(forge) == ("C702", "manifest.leaf_policy.root")


def test_rejects_a_core_with_another_limit() -> None:
    forge = Forge(example())
    core = forge.text("core")
    core["statements"][1]["most"] = 6
    assert refusal(forge.put_text("core", core)) == ("C702", "manifest.leaf_policy.root")
