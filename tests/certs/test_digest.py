"""The digests that are written out here, beside those of the standard library."""

import hmac

import pytest

from tcc_certs.race.digest import hkdf


@pytest.mark.parametrize("length", [0, 1, 32, 64, 65, 200])
def test_a_key_is_derived_as_rfc_5869_says(length):
    salt, ikm, info = bytes(range(length)), bytes(range(7, 39)), b"some info"
    extracted = hmac.digest(salt or bytes(32), ikm, "sha256")
    assert hkdf(ikm, salt, info) == hmac.digest(extracted, info + b"\x01", "sha256")
