"""The actions of the LALR parser: at each reduction, tokens and parts become a tree node.

The tree is built from its leaves while the parser runs, so nothing here walks a tree, and nesting
that is too deep is refused at the first node past the limit.  Each method has the name of its rule
in grammar.lark.  Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

from tcc_compiler.language.syntax.expression_actions import ExpressionActions
from tcc_compiler.language.syntax.leaf_actions import LeafActions
from tcc_compiler.language.syntax.statement_actions import StatementActions
from tcc_compiler.language.syntax.tool_actions import ToolActions


class Builder(LeafActions, ExpressionActions, ToolActions, StatementActions):
    """Rules of grammar.lark to nodes of :mod:`tcc_compiler.language.ast`."""
