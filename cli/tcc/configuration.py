"""Reads a ``tcc.toml``: levels of lints, allowed lints, defaults of options.

Specification: docs/lint.md.  Every mistake becomes a diagnostic with its line, and a file with
mistakes is not used at all.  Cost: linear in the file, at most 64 KiB.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tcc.options import COMPILING, LONG_SEARCH, Config, ConfigError, find_config, running
from tcc_compiler.language.catalogue.lints import LINTS as CODES
from tcc_compiler.language.diagnostics import Diagnostic, quote, suggest
from tcc_compiler.language.source import Region, Unreadable, decode, read_bytes, source_of
from tcc_runtime.settings.table import Option
from tcc_runtime.toml_text import read_toml

MAX_BYTES: Final = 1 << 16
# Codes that a configuration may name.  Not TCC714 (an allowing comment without effect), which no
# comment could allow, and not TCC715 (undecided), which is no finding.
LINTS: Final = frozenset(CODES) - {"TCC714", "TCC715"}
_FORM: Final = f"a regular file of at most {MAX_BYTES} bytes, text in UTF-8, is needed"
_LEVELS: Final = ("error", "warning", "off")
_TABLES: Final = ("lint", "compile", "run")
_LINT: Final = ("allow", "levels", "per-file", "long-search")
_HEAD = re.compile(r"\s*\[([^\[\]]*)\]")
_KEY = re.compile(r"\s*(\"[^\"\n]*\"|'[^'\n]*'|[A-Za-z0-9_-]+)\s*[=.]")


def read_config(path: Path) -> Config:
    """Read a configuration file.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or has an unknown key or a wrong value.
    """
    data = read_bytes(path, MAX_BYTES)
    text = data if isinstance(data, Unreadable) else decode(data)
    if isinstance(text, Unreadable):
        source = source_of(text.text, str(path))
        found = Diagnostic(
            code="TCC721", message=_unreadable(text), hint=_FORM,
            span=source.span(Region(0, text.offset, text.offset)),
        )  # fmt: skip
        raise ConfigError([found], source)
    return _Reader(path, text).read()


def _unreadable(found: Unreadable) -> str:
    """Message for an unreadable file; states the size limit of a configuration, not a grammar's."""
    too_large = f"larger than the limit of {MAX_BYTES} bytes"
    return f"this file is {too_large}" if too_large in found.message else found.message


def config_for(file: Path, chosen: Path | None = None) -> Config:
    """Return the configuration of a grammar: `chosen`, else the nearest file, else the defaults.

    Raises:
        ConfigError: the file cannot be read, or a value in it is refused.
    """
    path = chosen or find_config(file)
    return Config() if path is None else read_config(path)


class _Reader:
    """Reads one file once and collects its mistakes."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._source = source_of(text, str(path))
        self._problems: list[Diagnostic] = []
        self._places = _places(text)

    def read(self) -> Config:
        tables = self._parsed()
        self._only(tables, _TABLES, ())
        lint = self._table(tables, ("lint",))
        self._only(lint, _LINT, ("lint",))
        levels = self._table(lint, ("lint", "levels"))
        per_file = self._table(lint, ("lint", "per-file"))
        found = Config(
            path=self._path,
            allow=self._codes(lint.get("allow", []), ("lint", "allow")),
            levels={
                code: level
                for code, level in levels.items()
                if self._known(code, ("lint", "levels", code))
                and self._level(level, ("lint", "levels", code))
            },
            per_file={
                pattern: self._codes(codes, ("lint", "per-file", pattern))
                for pattern, codes in per_file.items()
            },
            long_search=self._long_search(lint.get("long-search", LONG_SEARCH)),
            compile=self._options(tables, "compile", COMPILING),
            run=self._options(tables, "run", _running()),
        )
        if self._problems:
            raise ConfigError(self._problems, self._source)
        return found

    def _parsed(self) -> dict[str, Any]:
        try:
            return read_toml(self._source.text)
        except tomllib.TOMLDecodeError as error:
            message, line, column = _syntax(str(error))
            at = self._source.starts[min(line, len(self._source.starts)) - 1] + column - 1
            at = min(at, len(self._source.text))
            self._tell("TCC722", f"this is no TOML: {message}", Region(0, at, at))
        except (RecursionError, ValueError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self._tell("TCC722", f"this is no TOML that can be read: {what}", Region(0, 0, 0))
        raise ConfigError(self._problems, self._source) from None

    def _table(self, tables: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        table = tables.get(path[-1], {})
        if isinstance(table, dict):
            return table
        self._wrong(path, "a table", table)
        return {}

    def _only(self, table: Mapping[str, Any], known: Sequence[str], path: tuple[str, ...]) -> None:
        where = f"[{'.'.join(path)}]" if path else "this file"
        for key in table:
            if key not in known:
                hint = suggest(key, known) or f"it takes {', '.join(known)}"
                message = f"{where} takes no {quote(key)}"
                self._tell("TCC723", message, self._place((*path, key)), hint)

    def _known(self, code: str, path: tuple[str, ...]) -> bool:
        if code in LINTS:
            return True
        hint = suggest(code, sorted(LINTS)) or "docs/lint.md lists them"
        self._tell("TCC723", f"there is no lint {quote(code)}", self._place(path), hint)
        return False

    def _level(self, level: object, path: tuple[str, ...]) -> bool:
        if level in _LEVELS:
            return True
        self._wrong(path, "error, warning or off", level)
        return False

    def _codes(self, codes: object, path: tuple[str, ...]) -> frozenset[str]:
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            self._wrong(path, "a list of codes", codes)
            return frozenset()
        return frozenset([code for code in codes if self._known(code, path)])

    def _long_search(self, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        self._wrong(("lint", "long-search"), "a whole number of expansions above 0", value)
        return LONG_SEARCH

    def _options(
        self, tables: Mapping[str, Any], name: str, known: Iterable[Option]
    ) -> dict[str, Any]:
        options = {option.short.replace("_", "-"): option for option in known}
        given = self._table(tables, (name,))
        spelled = {key.replace("_", "-"): key for key in given}
        self._only({key: given[old] for key, old in spelled.items()}, tuple(options), (name,))
        for key in given:
            # Without this error, one of the two values would win silently.
            if spelled[key.replace("_", "-")] != key:
                message = f"{quote(key)} is given twice, with - and with _"
                self._tell("TCC723", message, self._place((name, key)))
        found = {}
        for key, old in spelled.items():
            option = options.get(key)
            if option is None:
                continue
            value = _value(option, given[old])
            if value is None:
                self._wrong((name, old), _expected(option), given[old])
            else:
                found[option.name] = value
        return found

    def _wrong(self, path: tuple[str, ...], expected: str, found: object) -> None:
        message = f"{quote(path[-1])} has to be {expected}, not {quote(str(found))}"
        self._tell("TCC724", message, self._place(path))

    def _tell(self, code: str, message: str, region: Region, hint: str | None = None) -> None:
        span = self._source.span(region)
        self._problems.append(Diagnostic(code=code, message=message, span=span, hint=hint))

    def _place(self, path: tuple[str, ...]) -> Region:
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, Region(0, 0, 0))


def _running() -> tuple[Option, ...]:
    """Options of runs that a file may set: all except secrets and the start of a run."""
    return tuple(o for o in running() if o.kind is not bytes and not o.calls)


def _value(option: Option, value: object) -> Any:
    """Return a TOML value as the command line would give it, or None if it does not fit."""
    if isinstance(value, bool) or option.kind is bool:
        return value if isinstance(value, bool) and option.kind is bool else None
    if option.kind is tuple:
        values = [value] if isinstance(value, str) else value
        texts = isinstance(values, list) and all(isinstance(text, str) for text in values)
        return tuple(values) if isinstance(values, list) and texts else None
    if option.kind is str:
        text = str(value) if isinstance(value, (str, int)) else None
        return text if text is not None and text in (option.choices or (text,)) else None
    if option.kind is float and isinstance(value, (int, float)):
        number = float(value) if abs(value) < 1e300 else math.inf
        return number if math.isfinite(number) and number >= 0 and option.holds(number) else None
    fits = option.kind is int and isinstance(value, int) and abs(value) < 1 << 63
    return value if fits and isinstance(value, int) and option.holds(value) else None


def _expected(option: Option) -> str:
    if option.choices:
        return "one of " + ", ".join(option.choices)
    if option.kind is bool:
        return "true or false"
    names = {int: "a whole number", float: "a number of seconds", str: "a text", tuple: "texts"}
    what = names.get(option.kind, "a value")
    ends = [
        f"{word} {end:g}"
        for word, end in (
            ("at least", option.least),
            ("above", option.above),
            ("at most", option.most),
            ("below", option.below),
        )
        if end is not None
    ]
    if option.kind is str:
        what += ' such as "0.25"'
    return " ".join([what, *ends])


def _syntax(message: str) -> tuple[str, int, int]:
    """Split a TOML error into its message, line and column; a large line means the last one."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if found is not None:
        return found[1], int(found[2]), int(found[3])
    return message.removesuffix(" (at end of document)"), 1 << 30, 1


def _places(text: str) -> dict[tuple[str, ...], Region]:
    """Return the region of each table head and key by its path; skip other TOML notations."""
    places: dict[tuple[str, ...], Region] = {}
    table: tuple[str, ...] = ()
    at = 0
    for line in text.splitlines(keepends=True):
        head, key = _HEAD.match(line), _KEY.match(line)
        found = head or key
        if head is not None:
            table = tuple(part.strip().strip("\"'") for part in head[1].split("."))
        name = table if key is None or head is not None else (*table, key[1].strip("\"'"))
        if found is not None:
            places.setdefault(name, Region(0, at + found.start(1), at + found.end(1)))
        at += len(line)
    return places
