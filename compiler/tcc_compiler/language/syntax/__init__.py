"""From characters to statements: tokens, the LALR grammar, the tree that it builds."""
