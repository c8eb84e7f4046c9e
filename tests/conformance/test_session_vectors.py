"""A ledger of 1.0 that a gate of then wrote, and the MAC that the text works out."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from blake3 import blake3

from tcc_certs.kernel import check
from tcc_certs.session import validate
from tcc_certs.values.canonical import record_key, record_mac

VECTORS = Path(__file__).parent / "vectors"
TEXT = Path(__file__).parents[2] / "docs" / "spec" / "session.md"
FROZEN: dict[str, Any] = json.loads((VECTORS / "session_1_0.json").read_text())


def test_a_ledger_of_1_0_keeps_its_meaning() -> None:
    data = "".join(f"{line}\n" for line in FROZEN["ledger"]).encode()
    artifact = check(base64.b64decode(FROZEN["artifact"]))
    for key in (None, bytes.fromhex(FROZEN["key"])):
        found = validate(data, artifact, key=key)
        assert (found.word, found.claim_type, found.findings) == ("VALID", "Conformant", ())
        assert found.checked == {"calls": 4, "outcomes": 4, "refusals": 1, "unknown": 0}
        assert "that every record is its writer's: a ledger of 1.0 has no MACs" in found.asserted


def test_a_record_of_1_0_has_no_mac() -> None:
    artifact = check(base64.b64decode(FROZEN["artifact"]))
    first = json.loads(FROZEN["ledger"][0])
    del first["~"]
    from tests.oracle_session.writer import sealed

    found = validate(sealed([{**first, "mac": "0" * 32}]), artifact)
    assert [(item.code, item.field) for item in found.findings] == [("L103", "mac")]


def test_the_mac_that_the_text_works_out() -> None:
    text = TEXT.read_text()
    told = dict(re.findall(r"^    (key|derived|before|record|mac) +(\S.*)$", text, re.MULTILINE))
    key, previous = bytes.fromhex(told["key"]), bytes.fromhex(told["before"])
    body = told["record"].encode()
    derived = blake3(key, derive_key_context="tcc.session/1.1 record key").digest()
    assert derived.hex() == told["derived"] and record_key(key) == derived
    mac = blake3(b"mac" + previous + body, key=derived).hexdigest()[:32]
    assert told["mac"] == mac == record_mac(derived, previous, body).hex()
