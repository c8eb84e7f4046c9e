"""The actions that make leaves: names, texts, numbers, values and patterns."""

from __future__ import annotations

from typing import Any

from tcc_compiler.language.ast.leaves import Argument, Number, Pattern, Text, Value, Word
from tcc_compiler.language.decimals import decimal_text, parse_decimal
from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.values import string_value


class LeafActions:
    """Tokens to the leaves of the tree; each method has the name of its rule in grammar.lark."""

    def word(self, name: Lexeme) -> Word:
        return Word(str(name), name.region)

    def name(self, name: Lexeme) -> Word:
        return Word(str(name), name.region, name.type == "STRING")

    def text(self, string: Lexeme) -> Text:
        return Text(str(string), string.region)

    def signed(self, *tokens: Lexeme | None) -> Number:
        number = tokens[-1]
        sign = tokens[0] if len(tokens) > 1 else None
        if number is None:  # the grammar ends this rule with a number
            raise TypeError("a number without its digits")
        region = number.region
        if sign is None:
            return Number(parse_decimal(number), region)
        value = -parse_decimal(number) if sign.type == "MINUS" else parse_decimal(number)
        return Number(value, sign.region.to(region))

    def name_value(self, name: Lexeme) -> Value:
        return Value(str(name), None, name.region)

    def string_value(self, string: Lexeme) -> Value:
        return Value(string_value(str(string)), None, string.region, True)

    def number_value(self, number: Number) -> Value:
        return Value(decimal_text(number.value), number.value, number.region)

    def argument(self, name: Word, *values: Value) -> Argument:
        return Argument(name, values)

    def bare_pattern(self, name: Word) -> Pattern:
        return Pattern(name, (), name.region)

    def pattern(self, name: Word, *rest: Any) -> Pattern:
        return Pattern(name, tuple(rest[:-1]), name.region.to(rest[-1].region))
