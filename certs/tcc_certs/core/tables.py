"""The objects of a core that stand for tools and limits: a table each, beside docs/spec/core.md.

Normative text: docs/spec/core.md, sections 2 and 4.  What the checks between rows and the forms of
this file decide is told at each of them; the interpreter is :mod:`tcc_certs.formats.schema`.
Cost: linear in the texts; for each ``uses`` limit linear in its tool's calls, for each ``sum``
limit linear in its parameter's values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from tcc_certs.core.derived import Owned, read_selection, selection_text
from tcc_certs.core.model import HALF, Limit, Model, Parameter, Tool
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, format_decimal, nano_of, parse_decimal, read_name, written
from tcc_certs.formats.schema import Check, Known, Table, dropped, maybe, read, row, tagged
from tcc_certs.limits import MAX_CALLS
from tcc_certs.values.declared import json_of

_ABSENT = ""
_REST = "*"  # no canonical text of a value
_PLACES = 9


def _values(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    """Distinct canonical texts; the first of several may be empty, the last observed one ``*``."""
    items = schema.as_list(value, path, code, 1)
    absent = int(items[0] == _ABSENT and len(items) > 1)
    rest = int(items[-1] == _REST and known["observed"] and len(items) > absent + 1)
    end = len(items) - rest
    named = [_value_text(items[i], f"{path}[{i}]", code) for i in range(absent, end)]
    texts = (_ABSENT,) * absent + tuple(named) + (_REST,) * rest
    ensure(len(set(texts)) == len(texts), code, path, "distinct values", "a repeat")
    return texts


def _value_text(value: Json, path: str, code: Code) -> str:
    """The canonical text of a value; one JSON value has one."""
    text = schema.as_text(value, path, code)
    try:
        json_of(text)
    except Rejected as refusal:
        raise Rejected(code, path, refusal.expected, refusal.found) from None
    return text


def _place(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.opened import read_place

    return read_place(value, path, code, known)


PARAMETER: Table = (
    maybe("observed", schema.as_true, absent=False),
    row("values", _values),
    row("name", read_name),
    maybe("at", _place),
)
_LISTED = schema.listed(schema.object_of(PARAMETER, Parameter))


def _parameters(value: Json, path: str, code: Code, known: Known) -> tuple[Parameter, ...]:
    """The parameters that are part of a call, the observed ones after all others."""
    found: tuple[Parameter, ...] = _LISTED(value, path, code, known)
    for i in range(1, len(found)):
        late = found[i - 1].observed and not found[i].observed
        ensure(not late, code, f"{path}[{i}]", "observed parameters last", found[i].name)
    return found


def _atom(value: Json, path: str, code: Code, _: Known) -> Any:
    """An atom; who reads none has none of its reader to trust, nor to load."""
    from tcc_certs.core.atoms import canonical_atom

    return canonical_atom(value, path, code)


def _quality(value: Json, path: str, code: Code, _: Known) -> tuple[int, int]:
    """A quality; the one that holds without the member is never written."""
    number, places = parse_decimal(schema.as_text(value, path, code), path, code)
    holds = 0 < number <= 10**places and places <= _PLACES and (number, places) != HALF
    ensure(holds, code, path, "above 0, at most 1, nine places at most, and not 0.5", value)
    return number, places


def _execute(value: Json, path: str, code: Code, known: Known) -> dict[str, Any]:
    """What making a call takes; executing tells of what the model looks at as asking does."""
    made = read(AMOUNTS, value, path, code, known)
    lost = known["atom"] is not None and made["atom"] is None
    ensure(not lost, code, f"{path}.atom", "an atom, as the model has one", "none")
    return made


AMOUNTS: Table = (
    row("price", schema.as_unsigned),
    row("latency_ms", schema.as_unsigned, "latency"),
    row("epsilon", schema.as_unsigned),
    maybe("atom", _atom),
)
MODEL: Table = (
    row("name", schema.as_name),
    maybe("adapter", schema.as_text, absent=""),
    maybe("quality", _quality, absent=HALF),
    *AMOUNTS,
    maybe("execute", _execute),
)


def _model(execute: dict[str, Any] | None, **made: Any) -> Model:
    """A model, with the one that makes calls in it."""
    model = Model(**made)
    return model if execute is None else replace(model, execute=replace(model, **execute))


BINDINGS: Mapping[str, Table] = {
    "mcp": (row("server", schema.as_text), row("tool", schema.as_text)),
    "python": (row("target", schema.as_text),),
}


def _bind(value: Json, path: str, code: Code, known: Known) -> None:
    tagged(value, "kind", BINDINGS, "mcp or python", path, code, known, BINDINGS["mcp"])


def _opened(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.opened import read_opened

    return read_opened(value, path, code, known)


def _names_differ(known: Known, path: str, code: Code) -> None:
    fields = (*known["params"], *known["open"], *known["answers"])
    names = [field.name for field in fields]
    ensure(len(set(names)) == len(names), code, f"{path}.params", "distinct names", names)
    if any(field.at is not None for field in fields):
        from tcc_certs.core.opened import ensure_heads

        ensure_heads(known, f"{path}.open", code)


def _error_text(value: Json, path: str, code: Code, known: Known) -> str:
    """The pattern of texts that say an error."""
    from tcc_certs.values.text_syntax import ensure_quick

    ensure(known["errors"], code, path, "a tool whose errors mean failed", "another")
    pattern = schema.as_text(value, path, code)
    ensure_quick(pattern, 1, path)
    return pattern


def _strict_is_answered(known: Known, path: str, code: Code) -> None:
    answers = any(parameter.observed for parameter in known["params"])
    ensure(answers or not known["strict"], code, f"{path}.strict", "an observed parameter", "none")


def _both_ends(known: Known, path: str, code: Code) -> None:
    require(known["in"] is not None, known["out"] is not None, code, f"{path}.out")


TOOL: Table = (
    row("params", _parameters, "parameters"),
    maybe("open", _opened, "opened", ()),
    maybe("answers", _opened, absent=()),
    Check(_names_differ),
    dropped(maybe("doc", schema.as_text)),
    maybe("quotes", schema.word("same"), "quotes_same", absent=False),
    maybe("errors", schema.word("failed"), "errors_failed", absent=False),
    maybe("error_text", _error_text),
    maybe("parallel", schema.as_true, absent=False),
    dropped(maybe("bind", _bind)),
    maybe("strict", schema.as_true, absent=False),
    Check(_strict_is_answered),
    row("name", read_name),
    maybe("in", schema.as_name, "takes"),
    maybe("out", schema.as_name, "gives"),
    Check(_both_ends),
    maybe("models", schema.listed(schema.object_of(MODEL, _model), 1), absent=()),
)
TOOLS = schema.listed(schema.object_of(TOOL, Tool), rises=attrgetter("name"))


def _parameter(value: Json, path: str, code: Code, known: Known) -> int:
    """The place of a parameter whose values are numbers; what is absent adds nothing."""
    parameters = known["tools"][known["tool"]].parameters
    place = schema.as_whole(value, path, code, len(parameters))
    for text in parameters[place].values:
        if text and nano_of(text) is None:
            raise Rejected(code, path, "numbers of at least 0, whole in nano-units", text)
    return place


SUMMED: Table = (
    row("tool", schema.here(schema.index_in("tools"))),
    row("param", schema.here(_parameter)),
)

_AT_MOST = row("op", schema.word("<="))
_COUNTED: Table = (row("value", schema.as_unsigned), _AT_MOST)
LIMITS: Mapping[str, Table] = {
    "depth": _COUNTED,
    "price": _COUNTED,
    "latency": _COUNTED,
    "cost": (row("value", schema.as_large), _AT_MOST),
    "epsilon": _COUNTED,
    "uses": (
        row("value", schema.as_unsigned),
        row("op", schema.one_of("<=", ">=")),
        row("of", read_selection),
    ),
    "sum": (*_COUNTED, row("of", schema.object_of(SUMMED, lambda tool, param: (tool, param)))),
}


def read_limits(value: Json, path: str, code: Code, known: Known) -> tuple[Limit, ...]:
    """The limits, strictly increasing by their canonical texts; call sets of ``uses`` derived.

    Raises:
        Rejected: C801; D201 where the call sets and values take too much work.
    """
    owned = Owned(known["tools"], known["calls"])
    limits = []
    work = 0
    for i, item in enumerate(schema.as_list(value, path, code)):
        place = f"{path}[{i}]"
        found = tagged(item, "kind", LIMITS, "a kind of limit", place, code, known, _COUNTED)
        limit, looked_at = _limit(*found, known, owned)
        work += looked_at
        ensure(work <= 4 * MAX_CALLS, Code.LIMIT, path, "fewer uses limits", "more")
        limits.append(limit)
    schema.ensure_increasing([limit.text for limit in limits], path, code)
    return tuple(limits)


def _limit(kind: Any, made: Mapping[str, Any], known: Known, owned: Owned) -> tuple[Limit, int]:
    """A limit with its canonical text, and how many calls or values were looked at."""
    tools, value = known["tools"], made["value"]
    match kind:
        case "uses":
            of, op = made["of"], made["op"]
            text = f"uses({selection_text(of, tools)}){op}{value}"
            found = owned.selected(of)
            limit = Limit(kind=kind, value=value, text=text, least=op == ">=", calls=found)
            return limit, owned.size(of.tool)
        case "sum":
            number, place = made["of"]
            parameter = tools[number].parameters[place]
            name = f"{written(tools[number].name)}.{written(parameter.name)}"
            text = f"sum({name})<={format_decimal(value, 9)}"
            limit = Limit(kind=kind, value=value, text=text, parameter=made["of"])
            return limit, len(parameter.values)
        case "cost" | "epsilon":
            return Limit(kind=kind, value=value, text=f"{kind}<={format_decimal(value, 9)}"), 0
        case _:
            return Limit(kind=kind, value=value, text=f"{kind}<={value}"), 0
