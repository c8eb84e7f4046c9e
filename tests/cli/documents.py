"""Every JSON document that a test sees is held to the schema that is published of it."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tcc.outputs.schemas import DOCUMENTS, schema_of
from tcc_certs.policy.reader import read_core


@cache
def validator_of(name: str) -> Draft202012Validator:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def check_document(document: dict[str, Any]) -> None:
    """Hold a document to its schema.

    Raises:
        AssertionError: it has none, or is not what that says.
    """
    name = str(document.get("format", "")).removeprefix("tcc.")
    assert name in DOCUMENTS, f"no schema for {document.get('format')!r}"
    error = best_match(validator_of(name).iter_errors(document))
    assert error is None, f"{name}: {error.json_path if error else ''}: {error}"


def asks_for_json(arguments: list[str]) -> bool:
    """Whether a command line asks for one JSON document, and for nothing that has no such."""
    if "--" in arguments:
        arguments = arguments[: arguments.index("--")]
    if "--help" in arguments:
        return False
    if arguments[:1] in (["graph"], ["unroll"]) and "-o" in arguments:
        return False  # the document goes to a file
    pairs = pairwise(arguments)
    formatted = any(pair in (("--format", "json"), ("--output-format", "json")) for pair in pairs)
    return "--json" in arguments or formatted


def check_printed(arguments: list[str], out: str) -> None:
    """Hold what a command line has printed to the schema of its document.

    Raises:
        AssertionError: JSON was asked for, and not exactly one document was printed.
    """
    if not asks_for_json(arguments):
        return
    if arguments[0] == "inspect" and "--core" in arguments and '"format": "tcc.' not in out:
        read_core(out.strip().encode())  # a core has a format of its own
        return
    check_document(json.loads(out))
