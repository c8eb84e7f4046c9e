"""Turn the trees of models into the models of the core: the amounts of asking and of executing.

Normative text: docs/spec/language.md, section 5. Cost: linear in the trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.policy.atoms import Atom, Codes, read_atom
from tcc_certs.policy.nodes import UNITS
from tcc_certs.policy.plans import HALF, Model
from tcc_compiler.language.diagnostics import quote, suggest
from tcc_compiler.language.values import decimal_text, parse_decimal
from tcc_compiler.names.amounts import in_unit
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.types import signed
from tcc_compiler.syntax.tokens import string_value
from tcc_compiler.syntax.tree import Token, Tree

# The parameters of each mechanism, in this order; `rdp` has pairs instead.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "randomized_response": ("probability", "choices"),
    "gaussian": ("sigma", "sensitivity"),
    "laplace": ("scale", "sensitivity"),
    "discrete_gaussian": ("sigma", "sensitivity"),
    "subsampled_gaussian": ("rate", "sigma", "sensitivity"),
}


def models_of(b: Builder, trees: Sequence[Tree]) -> tuple[Model, ...]:
    """Return the models of a tool, and report mistakes."""
    first: dict[str, Token] = {}
    models = []
    for tree in trees:
        name = tree.tokens("NAME")[0]
        known = first.setdefault(name.text, name)
        if known is not name:
            message = f"model {quote(name.text)} is defined twice"
            hint = "take one of them away, or give it another name"
            b.error("TCC201", name, message, hint, [("first defined here", b.region(known))])
        models.append(_model(b, tree, name.text))
    return tuple(models)


def _model(b: Builder, tree: Tree, name: str) -> Model:
    """Return the model; `execute` has the same amounts as asking, except those that it gives."""
    parts = tree.trees()
    _check_single(b, parts)
    bare = Model(name=name, price=0, latency=0, epsilon=0)
    model = replace(bare, **_taken(b, [one for one in parts if one.kind not in _OTHERS]))
    for part in parts:
        match part.kind:
            case "adapter":
                model = replace(model, adapter=string_value(part.tokens("STRING")[0].text))
            case "quality":
                model = replace(model, quality=_quality(b, part))
    for part in parts:
        if part.kind == "execute":
            _check_single(b, part.trees())
            asked = replace(model, execute=None)
            model = replace(model, execute=replace(asked, **_taken(b, part.trees())))
    return model


_OTHERS = ("adapter", "quality", "execute")


def _check_single(b: Builder, parts: Sequence[Tree]) -> None:
    seen: set[str] = set()
    for part in parts:
        word = {"taken": amount_word(part), "privacy": "atom"}.get(part.kind, part.kind)
        if word in seen:
            message = f"a second '{word}' in this model"
            b.error("TCC310", part, message, "take one of them away")
        seen.add(word)


def amount_word(tree: Tree) -> str:
    """Return ``cost``, ``price``, ``latency`` or ``epsilon`` of an amount; '' for other trees."""
    found = tree.trees("amount_of")
    return first_word(found[0]) if found else ""


def first_word(tree: Tree) -> str:
    """Return the token that a tree begins with; '' if it begins with a tree."""
    first = tree.parts[0]
    return first.text if isinstance(first, Token) else ""


def _taken(b: Builder, parts: Sequence[Tree]) -> dict[str, Any]:
    """Return the members of a model that some parts give."""
    members: dict[str, Any] = {}
    for part in parts:
        if part.kind == "privacy":
            members["atom"] = _atom(b, part)
            continue
        kind, unit = amount_word(part), part.tree("unit")
        value = parse_decimal(part.tokens("NUMBER")[0].text)
        if kind == "cost":
            message = "a model has no cost: the cost of a call does not depend on it"
            b.error("TCC225", part, message, "write `price`")
        elif (unit is not None) != (kind == "latency"):
            message = "a latency is a duration" if kind == "latency" else f"a {kind} has no unit"
            hint = "write the unit: latency 80 ms" if kind == "latency" else "take the unit away"
            b.error("TCC225", part, message, hint)
        else:
            value *= UNITS[first_word(unit)] if unit is not None else 1
            number = in_unit(kind, value, b.region(part), b.report)
            b.failed += number is None
            members[kind] = number or 0
    return members


def _quality(b: Builder, tree: Tree) -> tuple[int, int]:
    """Return the quality of a model, above 0 and at most 1, as (digits, number of places)."""
    value = parse_decimal(tree.tokens("NUMBER")[0].text)
    if 0 < value <= 1 and (value * 10**9).denominator == 1:
        whole, _, places = decimal_text(value).partition(".")
        return int(whole + places), len(places)
    message = "this quality is not above 0 and at most 1, with at most 9 fractional digits"
    b.error("TCC324", tree, message, "write `quality 0.8`, say")
    return HALF


def _atom(b: Builder, tree: Tree) -> Atom | None:
    """Return the atom; None after a mistake."""
    token = tree.tokens("NAME")[0]
    mechanism, names = token.text, _NUMBERS.get(token.text)
    texts = [decimal_text(signed(one)) for one in tree.trees("signed")]
    members: dict[str, Json] = {"mechanism": mechanism}
    if mechanism == "rdp":
        if len(texts) % 2:
            message = "points are pairs of an order and an epsilon"
            b.error("TCC322", tree, message, "write `rdp(2, 0.1, 4, 0.25)`")
            return None
        members["points"] = [[texts[i], texts[i + 1]] for i in range(0, len(texts), 2)]
    elif names is None:
        known = [*_NUMBERS, "rdp"]
        message = f"{quote(mechanism)} is no mechanism that is known"
        hint = suggest(mechanism, known) or f"known are {', '.join(known)}"
        b.error("TCC322", token, message, hint)
        return None
    elif len(names) != len(texts):
        message = f"'{mechanism}' takes {len(names)} numbers: {' and '.join(names)}"
        hint = f"write `{mechanism}({', '.join(names)})`, with their numbers"
        b.error("TCC322", tree, message, hint)
        return None
    else:
        members.update(zip(names, texts, strict=True))
    if tree.tokens("NUMBER"):
        members["times"] = decimal_text(parse_decimal(tree.tokens("NUMBER")[0].text))
    try:
        return read_atom(members, "atom", Codes(Code.ATOMS, Code.ATOM_VALUE))
    except Rejected as refusal:
        message = f"{refusal.path.removeprefix('atom.')} has to be {refusal.expected}"
        hint = "docs/privacy.md says what each number may be"
        b.error("TCC322", tree, f"{message}, and is {refusal.found}", hint)
        return None
