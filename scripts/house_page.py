"""Writes docs/house.md and a picture of each package from its folders, imports and docstrings.

    python scripts/house_page.py docs

A room is a folder or a file right below a package.  It stands one floor above the highest room that
it imports from, so every import leads down; rooms that import each other are an error.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

if __package__:
    from scripts import house_numbers
else:
    import house_numbers

ROOT = Path(__file__).parents[1]
PACKAGES: Mapping[str, str] = {
    "certs": "certs/tcc_certs",
    "compiler": "compiler/tcc_compiler",
    "runtime": "runtime/tcc_runtime",
    "experiments": "experiments/tcc_experiments",
    "cli": "cli/tcc",
}
HEAD = """# The house

Made from the code itself; do not edit by hand. `python scripts/house_page.py docs` writes it again.

Five packages, each in a folder of its own. `certs` is what an auditor trusts, and imports nothing
of the others. `compiler` and `runtime` stand on it side by side, and never meet: what they have to
say to each other is an artifact. `experiments` uses all three, and `cli`, the command line and the
library `tcc`, stands on top.

In each picture a room, which is a folder (drawn with what it is for) or a single file (its name
alone), imports from rooms below it and from no other. Below a picture is what each room is for,
from the top floor to the ground, and of a room of many files what each of these is for.
"""
NUMBERS = """
## Numbers

How gathered the four packages of the product are (`experiments` is not counted). `python
scripts/house_numbers.py` prints what each number is today, with `-v` what was counted;
`tests/architecture/test_numbers.py` holds the last column, and a limit that had to be raised is a
finding.

"""
ABOUT: Mapping[str, str] = {
    "certs": "Start at `kernel.py` for artifacts, at `replay/validation.py` for ledgers of runs, "
    "at `session/validation.py` for those of sessions. [What is trusted, and why](trust.md) tells "
    "what each part is held to.",
    "compiler": "Start at `pipeline.py`, the whole compiler on one page.",
    "runtime": "Start at `run.py`, then `search.py`: one loop, to which race, numbers, checks and "
    "sink are handed.",
    "experiments": "Start at `runner.py`; [RESULTS](../experiments/RESULTS.md) is what they write.",
    "cli": "Start at `main.py` for the commands, at `__init__.py` for the library.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder or a file right below a package.

    Attributes:
        purpose: the first sentence of its docstring.
        floor: 0 on the ground.
    """

    name: str
    folder: bool
    purpose: str
    floor: int


def rooms(package: Path) -> list[Room]:
    """The rooms of a package, top floor first, in order of their names.

    Raises:
        ValueError: two of them import each other.
    """
    paths = {path.stem: path for path in sorted(package.iterdir()) if _is_room(path)}
    below = {name: _imported(package.name, name, path) & set(paths) for name, path in paths.items()}
    floors: dict[str, int] = {}

    def floor(name: str, above: Sequence[str]) -> int:
        if name in above:
            raise ValueError(f"{package.name}: rooms import each other: {[*above, name]}")
        if name not in floors:
            floors[name] = max(
                (floor(other, [*above, name]) + 1 for other in below[name]), default=0
            )
        return floors[name]

    made = [
        Room(name=name, folder=path.is_dir(), purpose=_purpose(path), floor=floor(name, ()))
        for name, path in paths.items()
    ]
    return sorted(made, key=lambda room: (-room.floor, not room.folder, room.name))


def _is_room(path: Path) -> bool:
    file = path.suffix == ".py" and path.stem != "__init__"
    return file or (path / "__init__.py").is_file()


def _imported(package: str, name: str, path: Path) -> set[str]:
    """The rooms of its package that a room imports from, itself left out."""
    found: set[str] = set()
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        for module in _modules(ast.parse(file.read_text("utf-8"))):
            parts = module.split(".")
            if parts[0] == package and len(parts) > 1:
                found.add(parts[1])
    return found - {name}


def _modules(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports, those for types alone left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from _modules(node)


def _purpose(path: Path) -> str:
    file = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    first = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", first).replace("``", "`")
    return re.split(r"(?<=[a-z)`])\. ", first)[0].rstrip(".")


_MANY = 8  # files of a room that are listed one by one


# The picture: floors as rows, folders with their purpose, files as names.
_WIDTH, _PAD, _GAP = 960, 14, 10
_FOLDER_WIDTH, _TEXT_COLUMNS, _LINE = 300, 42, 15
_CHARACTER = 7.3
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1c2733; }
.name { font-weight: 600; font-size: 13px; }
.house { fill: #f6f8fa; } .floor { fill: #e9eef4; }
.folder { fill: #ffffff; stroke: #3d6fa8; } .file { fill: #ffffff; stroke: #b4c0cd; }
@media (prefers-color-scheme: dark) {
  text { fill: #dce5ee; } .house { fill: #10171f; } .floor { fill: #1a2530; }
  .folder { fill: #0d1a2b; stroke: #6f9fd8; } .file { fill: #131c26; stroke: #44535f; }
}
"""


def picture(name: str, found: Sequence[Room]) -> str:
    """The floors of a package as SVG."""
    parts: list[str] = []
    top = _PAD
    for floor in range(max(room.floor for room in found), -1, -1):
        drawn, height = _floor([room for room in found if room.floor == floor], top)
        parts.append(f'<rect class="floor" x="{_PAD}" y="{top}" width="{_WIDTH - 2 * _PAD}" '
                     f'height="{height}" rx="6"/>')  # fmt: skip
        parts += drawn
        top += height + _GAP
    height = top - _GAP + _PAD
    title = f"The rooms of {name}: each imports from those below it alone"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img">\n<title>{title}</title>\n<style>{_STYLE}</style>\n'
        f'<rect class="house" width="{_WIDTH}" height="{height}" rx="8"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _floor(found: Sequence[Room], top: int) -> tuple[list[str], int]:
    """The rooms of one floor, from its top down, and how high it is."""
    parts: list[str] = []
    x, y, tall = 2 * _PAD - 4, top + _GAP, 0
    for room in found:
        lines = textwrap.wrap(room.purpose.replace("`", ""), _TEXT_COLUMNS) if room.folder else []
        width = _FOLDER_WIDTH if room.folder else round(len(room.name) * _CHARACTER) + 20
        if x + width > _WIDTH - 2 * _PAD + 4:
            x, y, tall = 2 * _PAD - 4, y + tall + 8, 0
        height = 24 + _LINE * len(lines) + (4 if lines else 0)
        box = "folder" if room.folder else "file"
        parts.append(f'<rect class="{box}" x="{x}" y="{y}" width="{width}" '
                     f'height="{height}" rx="4"/>')  # fmt: skip
        shown = f"{room.name}/" if room.folder else room.name
        kind = ' class="name"' if room.folder else ""
        parts.append(f'<text{kind} x="{x + 10}" y="{y + 17}">{escape(shown)}</text>')
        parts += [f'<text x="{x + 10}" y="{y + 34 + _LINE * i}">{escape(line)}</text>'
                  for i, line in enumerate(lines)]  # fmt: skip
        x, tall = x + width + 8, max(tall, height)
    return parts, y + tall + _GAP - top


def limits() -> str:
    """The table of limits, the rules of files before the numbers."""
    rows = ["| number | wanted at most | held to |", "| --- | --- | --- |"]
    files = f"{house_numbers.FILES}, and one for each {house_numbers.LINES_A_FILE} lines"
    files += f" beyond {house_numbers.LINES:,}"
    rows += [f"| files | {files} | the same |"]
    rows += ["| modules with one importer | one file in five | the same |"]
    for what, (wanted, held) in house_numbers.LIMITS.items():
        rows.append(f"| {what} | {wanted:g} | {'the same' if held == wanted else f'{held:g}'} |")
    return "\n".join(rows) + "\n"


def _inside(room: Path) -> str:
    """The files of a room that has many, each with what it is for; nothing where it has few."""
    files = [file for file in sorted(room.rglob("*.py")) if file.stem != "__init__"]
    folders = [file.parent for file in room.rglob("*/__init__.py")]
    if len(files) < _MANY:
        return ""
    rows = [f"\n\n### {room.name}\n", "| file | what it is for |", "| --- | --- |"]
    for path in sorted([*files, *folders]):
        name = path.relative_to(room).as_posix() + "/" * (path in folders)
        rows.append(f"| `{name}` | {_purpose(path)} |")
    return "\n".join(rows)


def pages() -> dict[str, str]:
    """What is written, by its path below docs: the page, and the pictures."""
    parts, made = [HEAD], {}
    for name, path in PACKAGES.items():
        found = rooms(ROOT / path)
        made[f"house/{name}.svg"] = picture(name, found)
        rows = [
            f"| `{room.name}{'/' if room.folder else '.py'}` | {room.purpose} |" for room in found
        ]
        table = "\n".join(["| room | what it is for |", "| --- | --- |", *rows])
        table += "".join(_inside(ROOT / path / room.name) for room in found if room.folder)
        shown = f"![The rooms of {name}, floor by floor](house/{name}.svg)"
        parts.append(f"\n## {name}\n\n{ABOUT[name]}\n\n{shown}\n\n{table}\n")
    parts += [NUMBERS, limits()]
    return {"house.md": "".join(parts), **made}


if __name__ == "__main__":
    for place, text in pages().items():
        target = Path(sys.argv[1]) / place
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, "utf-8")
