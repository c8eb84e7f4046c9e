"""The models of a tool: ways of asking what a call of it costs, and what each takes.

Normative text: docs/spec/language.md, section 6.  Cost: linear in their parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, large
from tcc_compiler.language.ast.leaves import Number
from tcc_compiler.language.ast.tools import Model, ModelAtom, ModelPart
from tcc_compiler.language.decimals import decimal_text
from tcc_compiler.language.diagnostics import Report, quote, suggest
from tcc_compiler.resolve.amounts import MILLISECONDS, in_unit

# The numbers of each mechanism, in the order of their names here; `rdp` has pairs.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "randomized_response": ("probability", "choices"),
    "gaussian": ("sigma", "sensitivity"),
    "laplace": ("scale", "sensitivity"),
}


def models_of(models: Sequence[Model], report: Report) -> list[Json] | None:
    """The model objects; None after an error."""
    first: dict[str, Model] = {}
    objects: list[Json] = []
    sound = True
    for model in models:
        known = first.setdefault(model.name.text, model)
        if known is not model:
            report.error(
                "TCC201", model.name.region, f"model {quote(model.name.text)} is defined twice",
                "take one of them away, or give it another name",
                notes=[("first defined here", known.name.region)],
            )  # fmt: skip
            sound = False
        parts = _parts(model, report)
        sound &= parts is not None
        objects.append({"name": model.name.text, **(parts or {})})
    return objects if sound else None


def _parts(model: Model, report: Report) -> Mapping[str, Json] | None:
    numbers = {"price": 0, "latency": 0, "epsilon": 0}
    members: dict[str, Json] = {}
    seen: set[str] = set()
    sound = True
    for part in model.parts:
        if part.kind in seen:
            message = f"a second '{part.kind}' in this model"
            report.error("TCC310", part.region, message, "take one of them away")
            sound = False
        seen.add(part.kind)
        if isinstance(part, ModelAtom):
            atom = _atom(part, report)
            sound &= atom is not None
            members["atom"] = atom or {}
        elif part.number is None:
            members["adapter"] = "" if part.text is None else part.text.value
        else:
            number = _amount(part, part.number, report)
            sound &= number is not None
            numbers[part.kind] = number or 0
    if not sound:
        return None
    return {
        "price": large(numbers["price"]),
        "latency_ms": large(numbers["latency"]),
        "epsilon": large(numbers["epsilon"]),
        **members,
    }


def _amount(part: ModelPart, number: Number, report: Report) -> int | None:
    value = number.value * MILLISECONDS[part.unit]
    return in_unit(part.kind, value, number.region, report)


def _atom(part: ModelAtom, report: Report) -> Mapping[str, Json] | None:
    """The atom in canonical form; None after an error."""
    mechanism, texts = part.mechanism.text, [decimal_text(n.value) for n in part.numbers]
    members: dict[str, Json] = {"mechanism": mechanism}
    names = _NUMBERS.get(mechanism)
    if mechanism == "rdp":
        if len(texts) % 2:
            message = "points are pairs of an order and an epsilon"
            report.error("TCC322", part.region, message, "write `rdp(2, 0.1, 4, 0.25)`")
            return None
        members["points"] = [[texts[i], texts[i + 1]] for i in range(0, len(texts), 2)]
    elif names is None:
        known = [*_NUMBERS, "rdp"]
        message = f"{quote(mechanism)} is no mechanism that is known"
        hint = suggest(mechanism, known) or f"known are {', '.join(known)}"
        report.error("TCC322", part.mechanism.region, message, hint)
        return None
    elif len(names) != len(texts):
        message = f"'{mechanism}' takes {len(names)} numbers: {' and '.join(names)}"
        hint = f"write `{mechanism}({', '.join(names)})`, with their numbers"
        report.error("TCC322", part.region, message, hint)
        return None
    else:
        members.update(zip(names, texts, strict=True))
    if part.times is not None:
        members["times"] = decimal_text(part.times.value)
    from tcc_certs.core.atoms import Codes, atom_document, read_atom  # here: few models have atoms

    try:
        codes = Codes(Code.ATOMS, Code.ATOM_VALUE)
        return atom_document(read_atom(members, "atom", codes))
    except Rejected as refusal:
        message = f"{refusal.path.removeprefix('atom.')} has to be {refusal.expected}"
        hint = "docs/privacy.md says what each number may be"
        report.error("TCC322", part.region, f"{message}, and is {refusal.found}", hint)
        return None
