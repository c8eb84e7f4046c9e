"""Parts of forms: walks, keys of filters, and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Condition, Source, Term

_LEAVES = frozenset({"State", "Tools", "str", "bool", "int", "int | None"})
_MEMBERS: Mapping[type, tuple[str, ...]] = {
    kind: tuple([member.name for member in fields(kind) if member.type not in _LEAVES])
    for kind in vars(forms).values()
    if isinstance(kind, type) and is_dataclass(kind)
}


def walk(form: Any) -> Iterable[Any]:
    """Yield a form and all forms inside it."""
    stack = [form]
    while stack:
        form = stack.pop()
        if isinstance(form, tuple):
            stack += form
        elif type(form) in _MEMBERS:
            yield form
            stack += [getattr(form, name) for name in _MEMBERS[type(form)]]


def conjuncts(conditions: Iterable[Condition]) -> Iterable[Condition]:
    """Yield the conditions. A conjunction is replaced by its parts."""
    for condition in conditions:
        if isinstance(condition, forms.All):
            yield from conjuncts(condition.parts)
        else:
            yield condition


def sources_in(form: Any) -> Iterable[Source]:
    """Yield the outermost sources inside a form."""
    stack = [form]
    while stack:
        form = stack.pop()
        if isinstance(form, Source):
            yield form
        elif isinstance(form, tuple):
            stack += form
        elif type(form) in _MEMBERS:
            stack += [getattr(form, name) for name in _MEMBERS[type(form)]]


def height_of(term: Term) -> int:
    """Return the greatest height of a source in a term; 0 without sources."""
    return max([source.height for source in sources_in(term)], default=0)


def keys_in(condition: Condition, level: int) -> Iterable[forms.Key]:
    """Yield the keys that a condition on the element of a level gives."""
    match condition:
        case forms.Same(left, right) | forms.Compare("=", left, (right,)):
            same = isinstance(condition, forms.Same)
            for one, other in ((left, right), (right, left)):
                is_own = isinstance(one, forms.Get) and one.of == forms.Element(level)
                if is_own and isinstance(one, forms.Get) and _is_of_the_decided(other):
                    yield forms.Key(one.name, other, same)


def _is_of_the_decided(term: Term) -> bool:
    """Return True if a term uses only the call being decided, attributes and constants.

    A computed term is no key.  It has no digest, and validators look calls up by digests.
    """
    if forms.is_computed(term):
        return False
    for form in walk(term):
        if isinstance(form, Source) or (isinstance(form, forms.Element) and form.level != 0):
            return False
    return True


def keys_of(conditions: Iterable[Condition], level: int) -> tuple[str, ...]:
    """Return the fields of the call being decided that conditions compare with element fields."""
    element, call = forms.Element(level), forms.Element(0)
    keys: dict[str, None] = {}
    for condition in conditions:
        match condition:
            case forms.All(parts):
                keys |= dict.fromkeys(keys_of(parts, level))
            case forms.Same(left, right) | forms.Compare("=", left, (right,)):
                for one, other in ((left, right), (right, left)):
                    match one, other:
                        case forms.Get(of, _), forms.Get(this, name):
                            if of == element and this == call:
                                keys[name] = None
    return tuple(keys)


def windowed(base: forms.Base, span: int) -> forms.Base:
    """Restrict the calls of a base of rows to a window."""
    match base:
        case forms.Rows(of=of):
            return replace(base, of=windowed_source(of, span))
        case forms.Merged(parts):
            return forms.Merged(tuple([windowed_source(part, span) for part in parts]))
    return base


def windowed_source(source: Source, span: int) -> Source:
    """Restrict the calls of a source to a window."""
    if isinstance(source.base, forms.Calls):
        within = span if source.within is None else min(span, source.within)
        return replace(source, within=within)
    return replace(source, base=windowed(source.base, span))
