"""The models of a tool: ways of asking what a call of it costs, and of making it; what each takes.

Normative text: docs/spec/language.md, section 6.  Cost: linear in their parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, large
from tcc_compiler.language.ast.leaves import Number
from tcc_compiler.language.ast.tools import Model, ModelAtom, ModelExecute, ModelPart
from tcc_compiler.language.decimals import decimal_text
from tcc_compiler.language.diagnostics import Report, quote, suggest
from tcc_compiler.resolve.amounts import MILLISECONDS, in_unit

Members: TypeAlias = "dict[str, Json]"
# The numbers of each mechanism, in the order of their names here; `rdp` has pairs.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "randomized_response": ("probability", "choices"),
    "gaussian": ("sigma", "sensitivity"),
    "laplace": ("scale", "sensitivity"),
    "discrete_gaussian": ("sigma", "sensitivity"),
    "subsampled_gaussian": ("rate", "sigma", "sensitivity"),
}
_MEMBER = {"price": "price", "latency": "latency_ms", "epsilon": "epsilon"}


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
        members = _members(model, report)
        sound &= members is not None
        objects.append({"name": model.name.text, **(members or {})})
    return objects if sound else None


def _members(model: Model, report: Report) -> Members | None:
    """What asking takes, the adapter and what executing takes; None after an error.

    What `execute` does not name is as the model has it, wherever in the model that stands.
    """
    quality = [part for part in model.parts if part.kind == "quality"]
    asking = [
        part
        for part in model.parts
        if not isinstance(part, ModelExecute) and part.kind != "quality"
    ]
    executing = [part for part in model.parts if isinstance(part, ModelExecute)]
    once = _are_single(model.parts, report)
    taken = _taken(asking, dict.fromkeys(_MEMBER.values(), 0), report)
    adapter = [part.text.value for part in asking if isinstance(part, ModelPart) and part.text]
    if not once or taken is None:
        return None
    named: Members = {"adapter": adapter[0]} if adapter else {}
    for part in quality:
        text = _quality(part, report)
        if text is None:
            return None
        # One that is what holds without it is left out, so that one grammar has one core.
        named |= {} if text == "0.5" else {"quality": text}
    if not executing:
        return {**taken, **named}
    parts = executing[0].parts
    execute = _taken(parts, taken, report) if _are_single(parts, report) else None
    return None if execute is None else {**taken, **named, "execute": execute}


def _are_single(parts: Sequence[ModelPart | ModelAtom | ModelExecute], report: Report) -> bool:
    seen: set[str] = set()
    sound = True
    for part in parts:
        if part.kind in seen:
            message = f"a second '{part.kind}' in this model"
            report.error("TCC310", part.region, message, "take one of them away")
            sound = False
        seen.add(part.kind)
    return sound


def _taken(
    parts: Sequence[ModelPart | ModelAtom], less: Mapping[str, Json], report: Report
) -> Members | None:
    """What the parts say that a model takes, over what holds without them; None after an error."""
    members: Members = dict(less)
    sound = True
    for part in parts:
        if isinstance(part, ModelAtom):
            atom = _atom(part, report)
            sound &= atom is not None
            members["atom"] = atom or {}
        elif part.number is not None:
            number = _amount(part, part.number, report)
            sound &= number is not None
            members[_MEMBER[part.kind]] = large(number or 0)
    return members if sound else None


def _quality(part: ModelPart | ModelAtom | ModelExecute, report: Report) -> str | None:
    """The share of a width that a model is taken to gain; None after an error."""
    number = part.number if isinstance(part, ModelPart) else None
    value = Fraction(0) if number is None else number.value
    if 0 < value <= 1 and (value * 10**9).denominator == 1:
        return decimal_text(value)
    message = "this quality is not above 0 and at most 1, with at most 9 fractional digits"
    report.error("TCC324", part.region, message, "write `quality 0.8`, say")
    return None


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
