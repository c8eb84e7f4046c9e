"""Atoms are read strictly: what is no mechanism is refused with its code and its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.policy.atoms import atom_document, canonical_atom
from tcc_certs.privacy.atoms_file import MAX_ATOMS, MAX_BYTES, atoms_of, read_atoms

RESPONSE = {"mechanism": "randomized_response", "probability": "0.75", "choices": 2}
LAPLACE = {"mechanism": "laplace", "scale": "2", "sensitivity": "1"}
GAUSSIAN = {"mechanism": "gaussian", "sigma": "2", "sensitivity": "1"}
POINTS = {"mechanism": "rdp", "points": [["2", "0.1"], ["4", "0.3"]]}


@pytest.mark.parametrize(
    ("value", "code", "place"),
    [
        (RESPONSE | {"probability": "1.5"}, "E102", "atoms[0].probability"),
        (RESPONSE | {"probability": "1"}, "E102", "atoms[0].probability"),
        (RESPONSE | {"probability": "0"}, "E102", "atoms[0].probability"),
        (RESPONSE | {"probability": "-0.5"}, "E102", "atoms[0].probability"),
        (RESPONSE | {"probability": 0}, "E101", "atoms[0].probability"),
        (RESPONSE | {"probability": "NaN"}, "E101", "atoms[0].probability"),
        (RESPONSE | {"probability": "5e-1"}, "E101", "atoms[0].probability"),
        (RESPONSE | {"probability": ".5"}, "E101", "atoms[0].probability"),
        (RESPONSE | {"probability": "0." + "1" * 19}, "E102", "atoms[0].probability"),
        (RESPONSE | {"choices": 1}, "E102", "atoms[0].choices"),
        (RESPONSE | {"choices": True}, "E101", "atoms[0].choices"),
        (RESPONSE | {"choices": 10**18 + 1}, "E102", "atoms[0].choices"),
        (RESPONSE | {"times": 0}, "E102", "atoms[0].times"),
        (RESPONSE | {"times": -1}, "E102", "atoms[0].times"),
        (RESPONSE | {"times": 10**9 + 1}, "E102", "atoms[0].times"),
        (RESPONSE | {"times": "1.5"}, "E101", "atoms[0].times"),
        (RESPONSE | {"epsilon": "1"}, "E101", "atoms[0]"),
        ({"mechanism": "randomized_response", "choices": 2}, "E101", "atoms[0]"),
        ({"mechanism": "exponential"}, "E101", "atoms[0].mechanism"),
        ({"mechanism": ["laplace"]}, "E101", "atoms[0].mechanism"),
        ([], "E101", "atoms[0].mechanism"),
        (GAUSSIAN | {"sigma": "0"}, "E102", "atoms[0].sigma"),
        (GAUSSIAN | {"sigma": "0.0"}, "E102", "atoms[0].sigma"),
        (GAUSSIAN | {"sensitivity": "-1"}, "E102", "atoms[0].sensitivity"),
        (GAUSSIAN | {"sigma": "9" * 19}, "E102", "atoms[0].sigma"),
        (GAUSSIAN | {"sigma": "9" * 10**5}, "E101", "atoms[0].sigma"),
        (LAPLACE | {"scale": "0"}, "E102", "atoms[0].scale"),
        (LAPLACE | {"scale": None}, "E101", "atoms[0].scale"),
        (POINTS | {"points": []}, "E101", "atoms[0].points"),
        (POINTS | {"points": [["2"]]}, "E101", "atoms[0].points[0]"),
        (POINTS | {"points": [["1", "0.1"]]}, "E102", "atoms[0].points[0]"),
        (POINTS | {"points": [["2", "-0.1"]]}, "E102", "atoms[0].points[0]"),
        (POINTS | {"points": [["2", "0.1"], ["2.0", "0.2"]]}, "E102", "atoms[0].points[1]"),
        (POINTS | {"points": [["1.001", "0.1"]]}, "E102", "atoms[0].points"),
        (POINTS | {"points": [["2", "0.1"]] * 1001}, "E102", "atoms[0].points"),
    ],
)
def test_what_is_no_atom_is_refused_at_its_place(value: Any, code: str, place: str) -> None:
    with pytest.raises(Rejected) as refused:
        atoms_of([value])
    assert (refused.value.code.value, refused.value.path) == (code, place)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "E101"),
        (b"\xff", "E101"),
        (b"{}", "E101"),
        (b"[" * 100_000, "E101"),
        (b'[{"mechanism":"laplace","mechanism":"gaussian"}]', "E101"),
        (b'[{"mechanism":"laplace","scale":0.5,"sensitivity":"1"}]', "E101"),
        (b'[{"mechanism":"laplace","scale":NaN,"sensitivity":"1"}]', "E101"),
        (b'[{"mechanism":"laplace","scale":Infinity,"sensitivity":"1"}]', "E101"),
        (b"[" + b"9" * 10**6 + b"]", "E101"),
        (b" " * (MAX_BYTES + 1), "E103"),
        (json.dumps([LAPLACE] * (MAX_ATOMS + 1)).encode(), "E103"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value[:20]),
)
def test_what_is_no_list_of_atoms_is_refused(text: bytes, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        read_atoms(text)
    assert refused.value.code.value == code


@pytest.mark.parametrize("value", [RESPONSE, LAPLACE, GAUSSIAN, POINTS, LAPLACE | {"times": 3}])
def test_an_atom_is_its_document(value: dict[str, Any]) -> None:
    assert atom_document(canonical_atom(value, "atom", Code.LEDGER_SCHEMA)) == value


@pytest.mark.parametrize(
    "value",
    [
        LAPLACE | {"scale": "2.0"},
        LAPLACE | {"scale": "02"},
        LAPLACE | {"times": 1},
        RESPONSE | {"choices": "2"},
    ],
)
def test_a_second_form_is_read_from_files_alone(value: dict[str, Any]) -> None:
    (found,) = atoms_of([value])
    with pytest.raises(Rejected) as refused:
        canonical_atom(value, "atom", Code.LEDGER_SCHEMA)
    assert refused.value.code is Code.LEDGER_SCHEMA
    assert atoms_of([atom_document(found)]) == (found,)


DISCRETE = {"mechanism": "discrete_gaussian", "sigma": "2.5", "sensitivity": 3}
SAMPLED = {"mechanism": "subsampled_gaussian", "rate": "0.01", "sigma": "1", "sensitivity": "1"}


@pytest.mark.parametrize(
    ("value", "code", "place"),
    [
        (DISCRETE | {"sensitivity": "1.5"}, "E101", "atoms[0].sensitivity"),
        (DISCRETE | {"sensitivity": 0}, "E102", "atoms[0].sensitivity"),
        (DISCRETE | {"sensitivity": True}, "E101", "atoms[0].sensitivity"),
        (DISCRETE | {"sensitivity": 10**18 + 1}, "E102", "atoms[0].sensitivity"),
        (DISCRETE | {"sigma": "0"}, "E102", "atoms[0].sigma"),
        (DISCRETE | {"rate": "1"}, "E101", "atoms[0]"),
        (SAMPLED | {"rate": "0"}, "E102", "atoms[0].rate"),
        (SAMPLED | {"rate": "1.000000000000000001"}, "E102", "atoms[0].rate"),
        (SAMPLED | {"rate": 1}, "E101", "atoms[0].rate"),
        (SAMPLED | {"rate": "-0.5"}, "E102", "atoms[0].rate"),
        (SAMPLED | {"sigma": "0"}, "E102", "atoms[0].sigma"),
        (SAMPLED | {"sensitivity": "0"}, "E102", "atoms[0].sensitivity"),
        (SAMPLED | {"times": 0}, "E102", "atoms[0].times"),
    ],
)
def test_discrete_and_subsampled_noise_is_held_to_its_range(
    value: Any, code: str, place: str
) -> None:
    with pytest.raises(Rejected) as refused:
        atoms_of([value])
    assert (refused.value.code.value, refused.value.path) == (code, place)


@pytest.mark.parametrize("value", [DISCRETE, SAMPLED, SAMPLED | {"rate": "1", "times": 10**9}])
def test_discrete_and_subsampled_noise_is_its_document(value: dict[str, Any]) -> None:
    assert atom_document(canonical_atom(value, "atom", Code.LEDGER_SCHEMA)) == value
    with pytest.raises(Rejected):
        canonical_atom(value | {"sensitivity": "01"}, "atom", Code.LEDGER_SCHEMA)
