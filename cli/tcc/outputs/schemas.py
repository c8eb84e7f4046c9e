"""The table of all ``--json`` documents, and their JSON Schemas.

A command creates a declared :class:`~tcc.outputs.Output` and passes it to
:func:`tcc.screen.print_output`.  :func:`schema_of` returns a document's JSON Schema (draft
2020-12).  A document has the name of its command; ``error`` is the document of any command that
fails.  ``python -m tcc.outputs.schemas docs/schemas`` writes the published copies.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tcc import outputs
from tcc.outputs import grammars, questions, runs, verdicts
from tcc.screen import FORMAT_VERSION

# The forms of each document, in the published order.
DOCUMENTS: Final[Mapping[str, Sequence[type[outputs.Output]]]] = {
    "compile": (grammars.CompileOutput, outputs.RefusedOutput),
    "inspect": (grammars.InspectOutput, outputs.RefusedOutput),
    "test": (grammars.TestOutput, grammars.MutantsOutput, outputs.RefusedOutput),
    "count": (grammars.CountOutput, outputs.RefusedOutput),
    "enumerate": (grammars.EnumerateOutput, outputs.RefusedOutput),
    "lint": (grammars.LintOutput, outputs.RefusedOutput),
    "fmt": (grammars.FmtOutput,),
    "init": (grammars.InitOutput,),
    "import": (grammars.ImportOutput,),
    "run": (runs.RunOutput, runs.OpeningOutput, outputs.RefusedOutput),
    "epsilon": (runs.EpsilonOutput,),
    "exec": (runs.ExecOutput, outputs.RefusedOutput),
    "batch": (
        runs.BatchOutput,
        runs.ShardedBatchOutput,
        runs.BatchValidationOutput,
        outputs.RefusedOutput,
    ),
    "demo": (runs.DemoOutput,),
    "experiments": (runs.ExperimentsOutput, runs.ExperimentListOutput),
    "mine": (questions.MineOutput, outputs.RefusedOutput),
    "replay": (questions.ReplayOutput, outputs.RefusedOutput),
    "why": (
        questions.WhyOutput,
        questions.WhySessionsOutput,
        outputs.RefusedOutput,
    ),
    "diff": (questions.DiffOutput, outputs.RefusedOutput),
    "prove": (questions.ProveOutput, outputs.RefusedOutput),
    "cheapest": (questions.CheapestOutput, outputs.RefusedOutput),
    "sample": (questions.SampleOutput, outputs.RefusedOutput),
    "check": (
        verdicts.CheckOutput,
        verdicts.CheckedFolderOutput,
        outputs.RefusedOutput,
    ),
    "validate": (verdicts.RunValidationOutput, verdicts.SessionValidationOutput),
    "pin": (verdicts.PinOutput,),
    "adapters": (verdicts.AdapterIdOutput, verdicts.AdaptersOutput),
    "account": (verdicts.AccountOutput,),
    "session": (
        verdicts.SessionOutput,
        verdicts.SessionListOutput,
        verdicts.PendingListOutput,
        outputs.RefusedOutput,
    ),
    "report": (verdicts.ReportOutput, outputs.RefusedOutput),
    "explain": (verdicts.ExplainOutput, verdicts.CodeListOutput),
    "error": (verdicts.ErrorOutput,),
    "schema": (verdicts.SchemaOutput,),
    "sign": (verdicts.SignOutput, verdicts.NewKeyOutput),
    "verify": (verdicts.VerifyOutput,),
    "graph": (grammars.GraphOutput, outputs.RefusedOutput),
    "unroll": (grammars.UnrollOutput, outputs.RefusedOutput),
}


def schema_of(name: str) -> dict[str, Any]:
    """Return the complete JSON Schema of the document ``tcc.<name>``.

    Raises:
        KeyError: no document has this name.
    """
    using = _Schemas()
    forms = [using.form(name, form) for form in DOCUMENTS[name]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tcc:schema:{name}:{FORMAT_VERSION}",
        "title": f"tcc.{name}",
        **(forms[0] if len(forms) == 1 else {"oneOf": forms}),
        **({"$defs": dict(sorted(using.shared.items()))} if using.shared else {}),
    }


class _Schemas:
    """Simplifies schemas of msgspec: objects are inlined, except for shared ones.

    Attributes:
        shared: the shared objects that were used, by name.
    """

    def __init__(self) -> None:
        self.shared: dict[str, Any] = {}

    def form(self, name: str, form: type[outputs.Output]) -> dict[str, Any]:
        """Return a form of a document, beginning with ``format`` and ``format_version``."""
        shape = self._of(form)
        head = {"format": {"const": f"tcc.{name}"}, "format_version": {"const": FORMAT_VERSION}}
        return {
            **shape,
            "properties": {**head, **shape["properties"]},
            "required": [*head, *shape["required"]],
        }

    def _of(self, kind: Any) -> Any:
        """Return the schema of a type, or a reference if the type is shared."""
        (schema,), parts = msgspec.json.schema_components([kind])
        if not (isinstance(kind, type) and issubclass(kind, outputs.DocumentPart)):
            return self._plain(schema)
        own = parts[kind.__name__]
        if kind.shared is None:
            return self._plain(own)
        if kind.shared not in self.shared:
            self.shared[kind.shared] = self._plain(own)
        return {"$ref": f"#/$defs/{kind.shared}"}

    def _plain(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._plain(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        if "like" in schema:
            return self._of(outputs.LIKE[schema["like"]])
        if "$ref" in schema:
            return self._of(_PARTS[schema["$ref"].rpartition("/")[2]])
        if "opaque" in schema:
            return {"type": "object"}
        told = {key: value for key, value in schema.items() if key != "title"}
        if isinstance(about := told.get("description"), str):
            told["description"] = inspect.cleandoc(about)  # as Python 3.13 does itself
        if "properties" in told and told.get("additionalProperties") is False:
            names = {name: self._plain(value) for name, value in told["properties"].items()}
            return told | {"properties": names}
        plain = {key: self._plain(value) for key, value in told.items()}
        if "enum" in plain:
            plain.pop("type", None)
            if len(plain["enum"]) == 1:
                plain["const"] = plain.pop("enum")[0]
        return plain


def _parts(kind: type[outputs.DocumentPart]) -> Iterator[type[outputs.DocumentPart]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _parts(below)


_PARTS: Final = {kind.__name__: kind for kind in _parts(outputs.DocumentPart)}


def text_of(name: str) -> str:
    """Return the published text of a schema."""
    return json.dumps(schema_of(name), indent=1) + "\n"


if __name__ == "__main__":
    for name in DOCUMENTS:
        (Path(sys.argv[1]) / f"{name}.json").write_text(text_of(name), "utf-8")
