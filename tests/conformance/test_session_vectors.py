"""The digests, the commitment and the MAC that the text of sessions gives."""

from __future__ import annotations

import re
from pathlib import Path

from blake3 import blake3

from tcc_certs.values.canonical import digest, key_commitment, record_key, record_mac

TEXT = Path(__file__).parents[2] / "docs" / "spec" / "session.md"
_LINE = re.compile(r"^(\S.*?) +([0-9a-f]{32,64}|\{.*\})$")


def lines() -> list[tuple[str, str]]:
    """The lines of the example, each with its name and its hex or JSON."""
    block = TEXT.read_text().split("An example:\n\n```text\n")[1].split("```")[0]
    found = [_LINE.match(line) for line in block.splitlines()]
    assert all(found)
    return [match.groups() for match in found if match]  # type: ignore[misc]


def test_the_digests_of_the_text() -> None:
    example = dict(lines())
    key = bytes.fromhex(example["key"])
    values = [name for name in example if name[0] in "snbtjz" and name != "mac"]
    assert len(values) == 6
    for name in values:
        assert digest(key, name[:1].encode(), name[1:].encode()).hex() == example[name]
        assert blake3(name.encode(), key=key).hexdigest() == example[name]


def test_the_commitment_and_the_mac_of_the_text() -> None:
    example = dict(lines())
    key, previous = bytes.fromhex(example["key"]), bytes.fromhex(example["previous"])
    assert key_commitment(key).hex() == example["commitment"]
    derived = blake3(key, derive_key_context="tcc.session/2 record key").digest()
    assert derived.hex() == example["MAC key"] and record_key(key) == derived
    body = example["record"].encode()
    mac = blake3(b"mac" + previous + body, key=derived).hexdigest()[:32]
    assert example["mac"] == mac == record_mac(derived, previous, body).hex()
