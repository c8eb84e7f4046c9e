"""Tools: parameters, signature, amounts of every call, models, and the attributes that a run uses.

A model is a way of asking what a call costs, or of making it.  Normative text:
docs/spec/language.md, sections 5 and 6.  Cost: linear in the calls and their terms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, large
from tcc_certs.values.declared import OpenParameter
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import decimal_text
from tcc_compiler.resolve.amounts import MILLISECONDS, Amounts, Steps, amounts_of, in_unit
from tcc_compiler.resolve.fields import (
    OpenField,
    fields_of,
    is_new_field,
    opened_of,
    pattern_is_sound,
)
from tcc_compiler.resolve.parameters import ResolvedParameter, parameters_of, plain_name, pointer_of

# Models: what each takes.

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


def models_of(models: Sequence[ast.Model], report: Report) -> list[Json] | None:
    """The model objects; None after an error."""
    first: dict[str, ast.Model] = {}
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


def _members(model: ast.Model, report: Report) -> Members | None:
    """What asking takes, the adapter and what executing takes; None after an error.

    What `execute` does not name is as the model has it, wherever in the model that stands.
    """
    quality = [part for part in model.parts if part.kind == "quality"]
    asking = [
        part
        for part in model.parts
        if not isinstance(part, ast.ModelExecute) and part.kind != "quality"
    ]
    executing = [part for part in model.parts if isinstance(part, ast.ModelExecute)]
    once = _are_single(model.parts, report)
    taken = _taken(asking, dict.fromkeys(_MEMBER.values(), 0), report)
    adapter = [part.text.value for part in asking if isinstance(part, ast.ModelPart) and part.text]
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


def _are_single(
    parts: Sequence[ast.ModelPart | ast.ModelAtom | ast.ModelExecute], report: Report
) -> bool:
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
    parts: Sequence[ast.ModelPart | ast.ModelAtom], less: Mapping[str, Json], report: Report
) -> Members | None:
    """What the parts say that a model takes, over what holds without them; None after an error."""
    members: Members = dict(less)
    sound = True
    for part in parts:
        if isinstance(part, ast.ModelAtom):
            atom = _atom(part, report)
            sound &= atom is not None
            members["atom"] = atom or {}
        elif part.number is not None:
            number = _amount(part, part.number, report)
            sound &= number is not None
            members[_MEMBER[part.kind]] = large(number or 0)
    return members if sound else None


def _quality(part: ast.ModelPart | ast.ModelAtom | ast.ModelExecute, report: Report) -> str | None:
    """The share of a width that a model is taken to gain; None after an error."""
    number = part.number if isinstance(part, ast.ModelPart) else None
    value = Fraction(0) if number is None else number.value
    if 0 < value <= 1 and (value * 10**9).denominator == 1:
        return decimal_text(value)
    message = "this quality is not above 0 and at most 1, with at most 9 fractional digits"
    report.error("TCC324", part.region, message, "write `quality 0.8`, say")
    return None


def _amount(part: ast.ModelPart, number: ast.Number, report: Report) -> int | None:
    value = number.value * MILLISECONDS[part.unit]
    return in_unit(part.kind, value, number.region, report)


def _atom(part: ast.ModelAtom, report: Report) -> Mapping[str, Json] | None:
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
    from tcc_certs.policy.atoms import (  # here: few models have atoms
        Codes,
        atom_document,
        read_atom,
    )

    try:
        codes = Codes(Code.ATOMS, Code.ATOM_VALUE)
        return atom_document(read_atom(members, "atom", codes))
    except Rejected as refusal:
        message = f"{refusal.path.removeprefix('atom.')} has to be {refusal.expected}"
        hint = "docs/privacy.md says what each number may be"
        report.error("TCC322", part.region, f"{message}, and is {refusal.found}", hint)
        return None


_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@frozen
class ResolvedTool:
    """A tool, resolved.

    Attributes:
        takes, gives: the signature, both or neither.
        extras: members of the core's tool object that no plan depends on.
        amounts: of every call, the last parameter fastest.
        places: of the name of each parameter that is not open, its number.
        opened: the open parameters that 1.1 knows, by name in declared order.
        arguments: all open parameters, in declared order.
        answers: open answers.
    """

    name: str
    parameters: tuple[ResolvedParameter, ...]
    takes: str | None
    gives: str | None
    extras: Mapping[str, Json]
    amounts: Sequence[Amounts]
    places: Mapping[str, int]
    opened: Mapping[str, OpenParameter] = field(default_factory=dict)
    arguments: Sequence[OpenField] = ()
    answers: Sequence[OpenField] = ()


def tool_of(statement: ast.ToolStatement, steps: Steps, report: Report) -> ResolvedTool | None:
    """The resolved tool, None after an error in it; its amounts take some of `steps`."""
    extras = _extras(statement, report)
    named = plain_name(statement.name, report)
    parameters = parameters_of(statement, report)
    listed = (*statement.parameters, *statement.observed)
    taken = {declared.name.text: declared.name.region for declared in listed}
    opened = opened_of(statement, taken, report)
    if parameters is None or opened is None or not named:
        return None
    fields = _fields(statement, taken, report)
    if fields is None:
        return None
    clauses = [a for a in statement.attributes if isinstance(a, ast.Amount)]
    amounts = amounts_of(
        statement.name, parameters, [item.name for item in opened], clauses, steps, report
    )
    if amounts is None or extras is None:
        return None
    takes, gives = statement.signature or (None, None)
    return ResolvedTool(
        name=statement.name.text,
        parameters=parameters,
        takes=takes.text if takes else None,
        gives=gives.text if gives else None,
        extras=extras,
        amounts=amounts,
        places={parameter.name: place for place, parameter in enumerate(parameters)},
        opened={parameter.name: parameter for parameter in opened},
        arguments=fields[0],
        answers=fields[1],
    )


def _fields(
    statement: ast.ToolStatement, taken: Mapping[str, Region], report: Report
) -> tuple[tuple[OpenField, ...], tuple[OpenField, ...]] | None:
    """The open arguments and the open answers; None after an error."""
    new = any(
        isinstance(one, ast.OpenDeclaration) and is_new_field(one) for one in statement.opened
    )
    if not new and not statement.answers:
        return (), ()
    arguments = fields_of(statement.opened, taken, report)
    if arguments is None:
        return None
    others = {one.name.text: one.name.region for one in statement.opened}
    answers = fields_of(statement.answers, {**taken, **others}, report)
    declared = (*statement.parameters, *statement.opened)
    if answers is None or not heads_are_there(declared, "argument", report):
        return None
    return arguments, answers


def heads_are_there(
    declared: Sequence[ast.ParameterDeclaration | ast.OpenDeclaration], what: str, report: Report
) -> bool:
    """Whether the member at the head of each argument's place is declared beside it."""
    places = {one.name.text: pointer_of(one.at, one.name.text, report) for one in declared}
    members = {name for name, place in places.items() if place is None}
    sound = True
    for one in declared:
        if one.at is None or not places[one.name.text]:
            continue
        head = one.at.value.split("/")[1].replace("~1", "/").replace("~0", "~")
        if head not in members:
            message = f"no {what} is called {quote(head)}, in which {quote(one.name.text)} lies"
            beside = f"(; {head}: json, ..)" if what == "argument" else f"{head}: json"
            hint = f"declare it beside it: {beside}"
            report.error("TCC204", one.at.region, message, hint)
            sound = False
    return sound


def _extras(statement: ast.ToolStatement, report: Report) -> Mapping[str, Json] | None:
    attributes: Sequence[ast.Attribute] = statement.attributes
    extras: dict[str, Json] = {}
    sound = _single([a for a in attributes if isinstance(a, ast.Doc)], "doc", report)
    sound &= _single([a for a in attributes if isinstance(a, ast.Quotes)], "quotes", report)
    sound &= _single([a for a in attributes if isinstance(a, ast.Strict)], "strict", report)
    sound &= _single([a for a in attributes if isinstance(a, ast.Errors)], "errors", report)
    sound &= _single(
        [a for a in attributes if isinstance(a, ast.BindMcp | ast.BindPython)], "bind", report
    )
    for attribute in attributes:
        match attribute:
            case ast.Doc():
                extras["doc"] = attribute.text.value
            case ast.Quotes():
                extras["quotes"] = "same"
            case ast.Strict():
                extras["strict"] = True
                sound &= _observes(statement, attribute, report)
            case ast.Errors():
                extras["errors"] = "failed"
                if attribute.text is not None:
                    sound &= pattern_is_sound(attribute.text, report)
                    extras["error_text"] = attribute.text.value
            case ast.Parallel():
                extras["parallel"] = True
            case ast.BindMcp() | ast.BindPython():
                binding = _binding(attribute, report)
                sound &= binding is not None
                extras["bind"] = binding or {}
    models = models_of([a for a in attributes if isinstance(a, ast.Model)], report)
    if models:
        extras["models"] = models
    return extras if sound and models is not None else None


def _observes(statement: ast.ToolStatement, strict: ast.Strict, report: Report) -> bool:
    """Whether a strict tool has something that can be answered in more than one way."""
    if statement.observed:
        return True
    message = f"{quote(statement.name.text)} is strict, and nothing of it is observed"
    hint = "say what it may answer, as in `gives (result: pass | fail)`; or take `strict` away"
    report.error("TCC217", strict.region, message, hint)
    return False


_BIND = 'write bind mcp "server" "tool"'


def _single(
    attributes: Sequence[
        ast.Doc | ast.Quotes | ast.Strict | ast.Errors | ast.BindMcp | ast.BindPython
    ],
    what: str,
    report: Report,
) -> bool:
    for other in attributes[1:]:
        report.error(
            "TCC310", other.region, f"a second '{what}'", "take one of them away",
            notes=[("the first is here", attributes[0].region)],
        )  # fmt: skip
    return len(attributes) < 2


def _binding(bind: ast.BindMcp | ast.BindPython, report: Report) -> Mapping[str, Json] | None:
    if isinstance(bind, ast.BindPython):
        if _TARGET.fullmatch(bind.target.value):
            return {"kind": "python", "target": bind.target.value}
        message = f"{quote(bind.target.value)} names no Python function"
        report.error("TCC313", bind.target.region, message, 'write "module:function"')
        return None
    empty = [text for text in (bind.server, bind.tool) if not text.value]
    for text in empty:
        report.error(
            "TCC313", text.region, "a binding names a server and a tool, neither empty", _BIND
        )
    return None if empty else {"kind": "mcp", "server": bind.server.value, "tool": bind.tool.value}
