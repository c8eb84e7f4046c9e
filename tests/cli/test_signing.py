"""Signed statements: what was found is what is said, and no byte of an envelope can be another."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

import tcc as library
from tcc.signing import (
    MOST_BYTES,
    PREDICATE_TYPE,
    SigningError,
    check_signature,
    keyid_of,
    pae,
    private_key,
    public_key,
    read_envelope,
    read_statement,
    signed,
    write_envelope,
)
from tests.cli.conftest import Tcc

PEM = serialization.Encoding.PEM
TYPE = "application/vnd.in-toto+json"


@pytest.fixture
def keys(tcc: Tcc, tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public key."""
    made = tcc("sign", "--new-key", tmp_path / "k.pem", "--json").json
    return Path(made["private"]), Path(made["public"])


@pytest.fixture
def signed_artifact(tcc: Tcc, artifact: Path, keys: tuple[Path, Path]) -> Path:
    ended = tcc("sign", artifact, "--key", keys[0])
    assert ended.code == 0, ended.err
    return artifact.with_name(f"{artifact.name}.dsse.json")


def predicate_in(envelope: Path) -> dict[str, Any]:
    return dict(read_statement(read_envelope(envelope.read_bytes()).payload).predicate)


def codes(tcc: Tcc, *arguments: object) -> list[str]:
    ended = tcc("verify", *arguments, "--json")
    found = [one["code"] for one in ended.json["findings"]]
    assert (ended.code, ended.json["verdict"]) == ((1, "INVALID") if found else (0, "VALID"))
    return found


def test_a_new_key_is_for_its_owner_alone_and_replaces_none(
    tcc: Tcc, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert keyid_of(private_key(private).public_key()) == keyid_of(public_key(public))
    before = private.read_bytes(), public.read_bytes()
    assert tcc("sign", "--new-key", private).code == 2
    private.unlink()
    assert tcc("sign", "--new-key", private).code == 2  # the public one is there
    assert public.read_bytes() == before[1]


def test_an_artifact_is_signed_and_verified(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path]
) -> None:
    found = tcc("verify", signed_artifact, artifact, "--key", keys[1], "--json").json
    assert found["verdict"] == "VALID" and found["file"] == str(artifact)
    data, seen = artifact.read_bytes(), tcc("inspect", artifact, "--json").json
    statement = found["statement"]
    assert statement["subject"] == [
        {
            "name": artifact.name,
            "digest": {
                "blake3": blake3(data).hexdigest(),
                "sha256": hashlib.sha256(data).hexdigest(),
            },
        }
    ]
    predicate = statement["predicate"]
    assert predicate["kind"] == "artifact" and predicate["verdict"] == "VALID"
    for name in ("digest", "grammar", "version", "root_state"):
        assert predicate[name] == seen[name]
    assert predicate["core"] is False and "pairs" not in predicate["checked"]
    assert tcc("sign", artifact, "--key", keys[0], "--core").code == 0
    proved = predicate_in(signed_artifact)
    assert proved["core"] is True and proved["checked"]["pairs"] > 0


def test_signing_the_same_again_gives_the_same_bytes(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path]
) -> None:
    before = signed_artifact.read_bytes()
    assert tcc("sign", artifact, "--key", keys[0]).code == 0
    assert signed_artifact.read_bytes() == before


def test_a_ledger_s_claim_is_signed_where_it_was_validated_alone(
    tcc: Tcc, artifact: Path, ledger: Path, keys: tuple[Path, Path]
) -> None:
    out = ledger.with_name("l.json")
    assert tcc("sign", ledger, "--key", keys[0], "-o", out).code == 0
    bare = predicate_in(out)
    assert bare["verdict"] is None and not {"claim_type", "claim_upheld", "artifact"} & set(bare)
    assert "not validated" in tcc("verify", out, ledger, "--key", keys[1]).out
    asked = ("sign", ledger, "--key", keys[0], "-o", out, "--artifact", artifact)
    assert tcc(*asked).code == 0
    full = predicate_in(out)
    known = tcc("validate", ledger, "--artifact", artifact, "--json").json
    for name in ("verdict", "claim_type", "claim_upheld", "checked", "ledger_head"):
        assert full[name] == known[name]
    assert full["artifact"]["digest"] == tcc("inspect", artifact, "--json").json["digest"]
    assert bare["ledger_head"] == full["ledger_head"]
    assert codes(tcc, out, ledger, "--key", keys[1]) == []


def test_a_session_is_signed_with_what_is_asserted(
    tcc: Tcc, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    artifact, session, out = (tmp_path / name for name in ("a.tcca", "s.ledger", "s.json"))
    made = library.compile_text("""grammar g version "1"

tool a

plan = a{1,2}
""")
    library.save(made, artifact)
    asked = ("sign", session, "--key", keys[0], "-o", out, "--artifact", artifact)
    gate = library.Gate(made, ledger=session)
    with gate.call("a") as permit:
        permit.done()
    assert tcc(*asked).code == 2  # it has not ended
    gate.finish()
    gate.close()
    assert tcc(*asked).code == 0
    found = predicate_in(out)
    known = tcc("validate", session, "--artifact", artifact, "--json").json
    assert (found["kind"], found["claim_type"]) == ("session", "Conformant")
    assert found["asserted"] == known["asserted"] != []
    assert codes(tcc, out, session, "--key", keys[1]) == []
    assert tcc(*asked, "--session-key", "00" * 32).code in (1, 2)


def test_a_session_that_went_on_is_another_file_and_its_key_leaves_less_asserted(
    tcc: Tcc, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    artifact, session, out = (tmp_path / name for name in ("a.tcca", "s.ledger", "s.json"))
    made = library.compile_text(
        """grammar g version "1"

tool a(n: number 0 .. 9)

plan = a{1,3}

limit sum(a.n) <= 9
"""
    )
    library.save(made, artifact)
    gate = library.Gate(made, ledger=session, key=bytes(range(32)))
    with gate.call("a", {"n": 4}) as permit:
        permit.done()
    # Not validated, so that one which has not ended can be signed as a file.
    assert tcc("sign", session, "--key", keys[0], "-o", out).code == 0
    assert codes(tcc, out, session, "--key", keys[1]) == []
    with gate.call("a", {"n": 5}) as permit:
        permit.done()
    assert codes(tcc, out, session, "--key", keys[1]) == ["TCC856"]
    gate.finish()
    gate.close()
    asked = ("sign", session, "--key", keys[0], "-o", out, "--artifact", artifact)
    assert tcc(*asked).code == 0
    without = predicate_in(out)
    assert tcc(*asked, "--session-key", bytes(range(32)).hex()).code == 0
    assert set(predicate_in(out)["asserted"]) < set(without["asserted"])
    # A session whose MACs are another key's claims nothing that can be signed.
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"mac":"', b'"mac":"0', 1))
    assert tcc(*asked, "--session-key", bytes(range(32)).hex()).code == 1


def test_of_several_signatures_each_key_s_own_is_held_to(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tcc("sign", "--new-key", tmp_path / "other.pem", "--json").json
    assert (
        tcc("sign", artifact, "--key", tmp_path / "other.pem", "-o", tmp_path / "o.json").code == 0
    )
    ours, theirs = (
        json.loads(path.read_bytes()) for path in (signed_artifact, tmp_path / "o.json")
    )
    assert ours["payload"] == theirs["payload"]
    both = tmp_path / "both.json"
    both.write_text(json.dumps({**ours, "signatures": ours["signatures"] + theirs["signatures"]}))
    assert codes(tcc, both, artifact, "--key", keys[1]) == []
    assert codes(tcc, both, artifact, "--key", other["public"]) == []
    # Theirs in our name: ours still verifies; theirs is no signature of ours.
    forged = {**theirs["signatures"][0], "keyid": ours["signatures"][0]["keyid"]}
    both.write_text(json.dumps({**ours, "signatures": [forged]}))
    assert codes(tcc, both, artifact, "--key", keys[1]) == ["TCC854"]


def test_nothing_is_signed_that_is_not_valid(
    tcc: Tcc, artifact: Path, ledger: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "never.json"
    data, lines = artifact.read_bytes(), ledger.read_bytes().splitlines(keepends=True)
    bad, cut, forged, text = (tmp_path / name for name in ("bad", "cut", "forged", "text"))
    bad.write_bytes(data[:-1])
    cut.write_bytes(b"".join(lines[:-1]))
    forged.write_bytes(b"".join([lines[0], *lines[2:]]))
    text.write_text("hello")
    for file, more, code in (
        (bad, (), 1),
        (text, (), 1),
        (cut, ("--artifact", artifact), 2),
        (forged, ("--artifact", artifact), 1),
        (forged, (), 1),
        (ledger, ("--artifact", bad), 1),
    ):
        ended = tcc("sign", file, *more, "--key", keys[0], "-o", out, "--json")
        assert ended.code == code and ended.json["error"].startswith("TCC858"), (file, ended)
        assert not out.exists()
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert tcc("sign", empty, "--key", keys[0]).code == 1


def test_a_ledger_that_changes_after_it_was_validated_is_not_signed(
    tcc: Tcc,
    artifact: Path,
    ledger: Path,
    keys: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = ledger.with_name("other")
    assert tcc("run", artifact, "--seed", "22" * 32, "--ledger", other).code == 0

    def validate_then_replace(path: Path, data: bytes, **more: Any) -> object:
        found = library.validate(path, data, **more)
        path.write_bytes(other.read_bytes())
        return found

    monkeypatch.setattr("tcc.commands.sign_command.validate", validate_then_replace)
    ended = tcc("sign", ledger, "--artifact", artifact, "--key", keys[0], "--json")
    assert ended.code == 2 and "was changed while it was validated" in ended.json["error"]


def test_another_file_or_another_key_is_told(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    changed = tmp_path / "changed.tcca"
    data = bytearray(artifact.read_bytes())
    data[-1] ^= 1
    changed.write_bytes(data)
    assert codes(tcc, signed_artifact, changed, "--key", keys[1]) == ["TCC856"]
    made = tcc("sign", "--new-key", tmp_path / "other.pem", "--json").json
    assert codes(tcc, signed_artifact, artifact, "--key", made["public"]) == ["TCC853"]
    assert codes(tcc, signed_artifact, "--key", keys[1]) == []
    assert "no file was compared" in tcc("verify", signed_artifact, "--key", keys[1]).out


def test_both_digests_of_a_file_have_to_agree(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    statement = json.loads(read_envelope(signed_artifact.read_bytes()).payload)
    for name in ("sha256", "blake3"):
        forged = json.loads(json.dumps(statement))
        forged["subject"][0]["digest"][name] = "0" * 64
        envelope = signed(json.dumps(forged).encode(), TYPE, private_key(keys[0]))
        path = tmp_path / name
        path.write_bytes(write_envelope(envelope))
        assert codes(tcc, path, artifact, "--key", keys[1]) == ["TCC856"]


# Each bit flipped, and what JSON and Base64 might take for the same: spaces, the other alphabet.
NEAR = (*(1 << bit for bit in range(8)), *(ord(char) for char in "\t\n\r +/-_="))


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.campaign)], ids=["near", "every"]
)
def test_no_byte_of_an_envelope_can_be_another(keys: tuple[Path, Path], every: bool) -> None:
    private, public = private_key(keys[0]), public_key(keys[1])
    whole = write_envelope(signed(b'{"a":1,"b":"\xc3\xbf?>"}', TYPE, private))
    check_signature(read_envelope(whole), public)
    assert b"+" in whole or b"/" in whole  # there is what URL-safe Base64 writes otherwise
    passed = []
    for at in range(len(whole)):
        near = {*(whole[at] ^ bit for bit in NEAR[:8]), *NEAR[8:]}
        for value in range(256) if every else near:
            if value == whole[at]:
                continue
            data = whole[:at] + bytes([value]) + whole[at + 1 :]
            try:
                envelope = read_envelope(data)
                if envelope.payload_type == TYPE:
                    check_signature(envelope, public)
                    passed.append((at, value))
            except SigningError:
                pass
    assert passed == []
    for data in (whole[:-1], whole + b"x", whole + whole, whole[1:]):
        with pytest.raises(SigningError):
            read_envelope(data)


def test_every_flipped_bit_and_cut_of_a_file_is_refused_by_the_command(
    tcc: Tcc, signed_artifact: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    whole, forged = signed_artifact.read_bytes(), tmp_path / "forged.json"
    for at in range(0, len(whole), 41):
        forged.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert codes(tcc, forged, "--key", keys[1]) != []
        forged.write_bytes(whole[:at])
        assert codes(tcc, forged, "--key", keys[1]) == ["TCC851"]


def hostile(whole: bytes) -> dict[str, tuple[bytes, str]]:
    document = json.loads(whole)
    [one] = document["signatures"]

    def told(**more: Any) -> bytes:
        return json.dumps({**document, **more}).encode()

    payload = document["payload"]
    return {
        "empty": (b"", "TCC851"),
        "no object": (b"[]", "TCC851"),
        "no JSON": (b"{", "TCC851"),
        "deep": (b'{"a":' * 100000, "TCC851"),
        "NaN": (b'{"payload":NaN}', "TCC851"),
        "no UTF-8": (b'{"\xff":1}', "TCC851"),
        "huge": (whole + b" " * MOST_BYTES, "TCC851"),
        "a member twice": (whole.replace(b'{"payload"', b'{"payload":"","payload"', 1), "TCC851"),
        "a keyid twice": (whole.replace(b'"keyid"', b'"keyid":"","keyid"', 1), "TCC851"),
        "a member more": (told(more=1), "TCC851"),
        "no signature": (told(signatures=[]), "TCC851"),
        "many signatures": (told(signatures=[one] * 65), "TCC851"),
        "signatures that are none": (told(signatures={}), "TCC851"),
        "a signature that is none": (told(signatures=["x"]), "TCC851"),
        "a signature with more": (told(signatures=[{**one, "more": 1}]), "TCC851"),
        "a keyid that is none": (told(signatures=[{**one, "keyid": None}]), "TCC851"),
        "a type that is none": (told(payloadType=1), "TCC851"),
        "a type with half a character": (
            whole.replace(b'"application/', b'"\\ud800application/'), "TCC852"),
        "another type": (told(payloadType="application/json"), "TCC852"),
        "another key": (told(signatures=[{**one, "keyid": "x"}]), "TCC853"),
        "white space in Base64": (told(payload=payload[:8] + "\n" + payload[8:]), "TCC851"),
        "no padding": (told(signatures=[{**one, "sig": one["sig"].rstrip("=")}]), "TCC851"),
        "no Base64": (told(payload="ä"), "TCC851"),
        "another payload": (told(payload=base64.b64encode(b"{}").decode()), "TCC854"),
        "an empty signature": (told(signatures=[{**one, "sig": ""}]), "TCC854"),
        "a long signature": (told(signatures=[{**one, "sig": "A" * 4000}]), "TCC854"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", hostile(b'{"payload":"","signatures":[{"sig":""}]}'))
def test_a_hostile_envelope_has_its_code(
    tcc: Tcc, signed_artifact: Path, keys: tuple[Path, Path], kind: str
) -> None:
    data, due = hostile(signed_artifact.read_bytes())[kind]
    signed_artifact.write_bytes(data)
    ended = tcc("verify", signed_artifact, "--key", keys[1], "--json")
    assert (ended.code, [one["code"] for one in ended.json["findings"]]) == (1, [due])
    assert ended.json["statement"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"subject": []},
        {"subject": [{"name": "x", "digest": {"sha256": "0"}}]},
        {"subject": [{"name": 1, "digest": {"sha256": "0", "blake3": "0"}}]},
        {"predicate": {"kind": "all"}},
        {"predicate": None},
        {"predicate": {"kind": "artifact", "more": 1.5}},
        {"predicate": {"kind": "artifact", "more": json.loads("[" * 900 + "]" * 900)}},
        {"more": 1},
    ],
)
def test_what_else_a_key_has_signed_is_no_statement(
    tcc: Tcc, signed_artifact: Path, keys: tuple[Path, Path], change: dict[str, Any]
) -> None:
    statement = json.loads(read_envelope(signed_artifact.read_bytes()).payload)
    payload = json.dumps({**statement, **change}).encode()
    signed_artifact.write_bytes(write_envelope(signed(payload, TYPE, private_key(keys[0]))))
    assert codes(tcc, signed_artifact, "--key", keys[1]) == ["TCC855"]


def test_whatever_a_key_has_signed_is_shown_without_steering_a_terminal(
    tcc: Tcc, signed_artifact: Path, keys: tuple[Path, Path]
) -> None:
    statement = json.loads(read_envelope(signed_artifact.read_bytes()).payload)
    told = {"kind": "ledger", "verdict": "\x1b[2JVALID\n", "version": 7, "artifact": {"digest": []},
            "grammar": "\ud800\u202e", "checked": 10**300}  # fmt: skip
    payload = json.dumps({**statement, "predicate": told}).encode()
    signed_artifact.write_bytes(write_envelope(signed(payload, TYPE, private_key(keys[0]))))
    for more in ((), ("--json",)):
        ended = tcc("verify", signed_artifact, "--key", keys[1], *more)
        assert ended.code == 0 and ended.err == ""
        assert "\x1b" not in ended.out and "\u202e" not in ended.out


def test_the_encoding_before_signing_is_that_of_the_protocol() -> None:
    # The example of DSSE's protocol.md.
    told = pae("http://example.com/HelloWorld", b"hello world")
    assert told == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def their_key(public: Path) -> SSlibKey:
    return SSlibKey.from_crypto(public_key(public))


def test_securesystemslib_verifies_what_we_sign(
    signed_artifact: Path, keys: tuple[Path, Path], tcc: Tcc, tmp_path: Path
) -> None:
    key = their_key(keys[1])
    theirs = TheirEnvelope.from_dict(json.loads(signed_artifact.read_bytes()))
    assert theirs.verify([key], 1) == {key.keyid: key}
    assert key.keyid == keyid_of(public_key(keys[1]))
    assert json.loads(theirs.payload)["predicateType"] == PREDICATE_TYPE
    theirs.payload += b" "
    with pytest.raises(VerificationError):
        theirs.verify([key], 1)
    made = tcc("sign", "--new-key", tmp_path / "other.pem", "--json").json
    fresh = TheirEnvelope.from_dict(json.loads(signed_artifact.read_bytes()))
    with pytest.raises(VerificationError):
        fresh.verify([their_key(Path(made["public"]))], 1)


@pytest.mark.parametrize("indent", [None, 2])
def test_we_verify_what_securesystemslib_signs(
    tcc: Tcc,
    artifact: Path,
    signed_artifact: Path,
    keys: tuple[Path, Path],
    tmp_path: Path,
    indent: int | None,
) -> None:
    payload = read_envelope(signed_artifact.read_bytes()).payload
    theirs = TheirEnvelope(payload, TYPE, {})
    theirs.sign(CryptoSigner(private_key(keys[0])))
    second = CryptoSigner.generate_ed25519()
    theirs.sign(second)  # a second signer is no harm
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(theirs.to_dict(), indent=indent))
    assert codes(tcc, path, artifact, "--key", keys[1]) == []
    other = TheirEnvelope(payload, TYPE, {})
    other.sign(second)
    path.write_text(json.dumps(other.to_dict()))
    assert codes(tcc, path, artifact, "--key", keys[1]) == ["TCC853"]


def test_a_signature_that_names_no_key_is_tried(
    tcc: Tcc, signed_artifact: Path, keys: tuple[Path, Path]
) -> None:
    document = json.loads(signed_artifact.read_bytes())
    del document["signatures"][0]["keyid"]
    signed_artifact.write_text(json.dumps(document))
    assert codes(tcc, signed_artifact, "--key", keys[1]) == []


def test_keys_that_are_none_of_ed25519_are_told(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    none, pkcs8 = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    curve = ec.generate_private_key(ec.SECP256R1())
    locked = serialization.BestAvailableEncryption(b"word")
    files = {
        "text": b"hello",
        "curve": curve.private_bytes(PEM, pkcs8, none),
        "curve.pub": curve.public_key().public_bytes(PEM, info),
        "locked": ed25519.Ed25519PrivateKey.generate().private_bytes(PEM, pkcs8, locked),
        "long": b"-" * 100000,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name in ("text", "curve", "locked", "long", "curve.pub"):
        ended = tcc("sign", artifact, "--key", tmp_path / name, "--json")
        assert ended.code == 1 and ended.json["error"].startswith("TCC857"), name
        assert codes(tcc, signed_artifact, "--key", tmp_path / name) == ["TCC857"]
    assert codes(tcc, signed_artifact, "--key", keys[0]) == ["TCC857"]
    assert tcc("sign", artifact, "--key", keys[1]).code == 1


def test_openssl_s_keys_and_signatures_are_ours(
    tcc: Tcc, artifact: Path, signed_artifact: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    envelope = read_envelope(signed_artifact.read_bytes())
    told, sig = tmp_path / "told", tmp_path / "sig"
    told.write_bytes(pae(envelope.payload_type, envelope.payload))
    sig.write_bytes(envelope.signatures[0].sig)
    done = subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(keys[1]), "-rawin",
         "-in", str(told), "-sigfile", str(sig)],
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and b"Verified Successfully" in done.stdout
    private, public = tmp_path / "o.pem", tmp_path / "o.pub"
    for command in (
        ("genpkey", "-algorithm", "ed25519", "-out", str(private)),
        ("pkey", "-in", str(private), "-pubout", "-out", str(public)),
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=60)
    assert tcc("sign", artifact, "--key", private).code == 0
    assert codes(tcc, signed_artifact, artifact, "--key", public) == []


def test_bad_usage_of_sign_is_told(tcc: Tcc, artifact: Path, keys: tuple[Path, Path]) -> None:
    assert tcc("sign", artifact).code == 2
    assert tcc("sign", artifact, "--key", keys[0], "--new-key", "x").code == 2
    assert tcc("sign", artifact, "--key", keys[0], "-o", artifact).code == 2
    assert tcc("sign", artifact, "--key", keys[0], "-o", keys[0]).code == 2
    assert tcc("verify", artifact).code == 2


def test_without_the_extra_it_is_named(artifact: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['cryptography.hazmat.primitives'] = None\n"
        "from tcc.main import main\n"
        f"main(['sign', {str(artifact)!r}, '--key', {str(artifact)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "pip install 'tcc[sign]'" in done.stderr
