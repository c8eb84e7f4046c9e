"""From characters to statements: tokens, the LALR grammar, the syntax tree."""
