"""The declarations of a grammar as trees of its files, to which lints refer.

Cost: parsing the files once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import Source, Span
from tcc_compiler.lint.finding import Edit, removal
from tcc_compiler.resources import Place
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tokens import name_value
from tcc_compiler.syntax.tree import Part, Token, Tree, region_of


@frozen(eq=False)
class DeclaredTool:
    """The statement of a tool.

    Attributes:
        source: the number of its file; 0 is the grammar itself.
        tree: the statement.
    """

    source: int
    tree: Tree

    @property
    def name(self) -> Tree:
        """The tree of its name."""
        return self.tree.trees()[0]


class Declared:
    """The statements of the files of a grammar without errors."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        """Parse the files.

        Args:
            sources: the files in the order of reading; the grammar is the first.
        """
        self.sources: Sequence[Source] = tuple(sources.values())
        report = Report(list(self.sources))
        files = [parse(source, at, report) for at, source in enumerate(self.sources)]
        self.statements: Sequence[Tree] = files[0].statements if files else ()
        self.tools: dict[str, DeclaredTool] = {}
        for at, file in enumerate(files):
            for tree in file.statements:
                if tree.kind == "tool":
                    self.tools[name_of(tree.trees()[0])] = DeclaredTool(source=at, tree=tree)

    def of_kind(self, kind: str) -> list[Tree]:
        """Return the statements of a kind in the grammar itself."""
        return [tree for tree in self.statements if tree.kind == kind]

    def span(self, part: Part, source: int = 0) -> Span:
        """Return the span of a part of a file."""
        return self.sources[source].span(region_of(part, source))


def statement_edits(
    sources: Mapping[str, Source], places: Mapping[Place, Span]
) -> Mapping[int, tuple[Edit, ...]]:
    """Return the edits that remove each statement of a grammar, or clause, by its number."""
    declared = Declared(sources)
    trees: dict[Span, Tree] = {}
    todo = list(declared.statements)
    while todo:
        tree = todo.pop()
        trees.setdefault(declared.span(tree), tree)
        todo += tree.trees()
    return {
        number: removal(trees[span])
        for number, span in places.items()
        if isinstance(number, int) and span in trees
    }


def name_of(tree: Tree) -> str:
    """Return the name that a tree of one token stands for."""
    token = tree.parts[0]
    return name_value(token) if isinstance(token, Token) else ""


def fields_of(tool: Tree) -> list[Tree]:
    """Return the fields that a tool's statement declares: arguments, then answers."""
    return [field for part in tool.trees("fields", "gives") for field in part.trees("field")]
