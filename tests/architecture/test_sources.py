"""Rules that every source file keeps: dependencies, no assertions, one exit for text, docstrings.

.importlinter says which package may import which.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tests.campaigns import reach

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "tcc_certs": ROOT / "certs" / "tcc_certs",
    "tcc_compiler": ROOT / "compiler" / "tcc_compiler",
    "tcc_runtime": ROOT / "runtime" / "tcc_runtime",
    "tcc_experiments": ROOT / "experiments" / "tcc_experiments",
    "tcc": ROOT / "cli" / "tcc",
}
OUTSIDE = {
    "tcc_certs": {"blake3"},
    "tcc_compiler": {"blake3", "lark", "networkx", "numpy", "tcc_certs"},
    "tcc_runtime": {"blake3", "gmpy2", "numpy", "tcc_certs"},
    "tcc_experiments": {
        "blake3",
        "matplotlib",
        "numpy",
        "tcc_certs",
        "tcc_compiler",
        "tcc_runtime",
    },
    "tcc": {
        "blake3",
        "click",
        "gmpy2",
        "networkx",
        "rich",
        "tcc_certs",
        "tcc_compiler",
        "tcc_experiments",
        "tcc_runtime",
    },
}
# Optional dependencies: imported inside of functions only, so that the package loads without them.
EXTRAS = {
    "tcc_runtime": {"mcp", "safetensors"},
    "tcc_experiments": {"safetensors"},
    "tcc": {"cryptography", "distributed", "pyarrow", "pydantic"},
}
# Dependencies that one subpackage may import anywhere, because nothing else loads it unasked.
SUBPACKAGES = {
    "tcc_runtime": {
        # Values of pydantic: `gate/arguments/pydantic_values.py`, which only its doors import.
        "gate": {"msgspec", "pydantic", "pydantic_core"},
        "langchain": {"langchain", "langchain_core", "langgraph", "pydantic", "pydantic_core"},
        "mcp": {"cryptography", "h11", "httpx2", "jwt", "starlette", "uvicorn"},
    },
    "tcc": {"editor": {"lsprotocol", "pygls"}, "outputs": {"msgspec"}},
}


@lru_cache(maxsize=1)  # tests of one package follow each other
def modules(package: str) -> list[tuple[Path, ast.Module]]:
    paths = sorted(PACKAGES[package].rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", PACKAGES, scope="module")
def test_a_package_imports_the_standard_library_and_what_it_is_allowed(package: str) -> None:
    allowed = OUTSIDE[package] | {package} | set(sys.stdlib_module_names)
    extras = EXTRAS.get(package, set())
    subpackages = SUBPACKAGES.get(package, {})
    for path, tree in modules(package):
        subpackage = path.relative_to(PACKAGES[package]).parts[0]
        found = set(imported(tree)) - allowed - subpackages.get(subpackage, set())
        eager = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not found & set(imported(ast.Module(body=eager, type_ignores=[]))), path
        assert found <= extras, path


@pytest.mark.parametrize("package", PACKAGES, scope="module")
def test_no_module_asserts(package: str) -> None:
    for path, tree in modules(package):
        assert not [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Assert)], path


@pytest.mark.parametrize(
    "package", ["tcc_certs", "tcc_compiler", "tcc_runtime", "tcc_experiments"], scope="module"
)
def test_only_the_command_line_prints_and_exits(package: str) -> None:
    for path, tree in modules(package):
        called = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"print", "exit", "quit"}, path


# The one file of a package that text leaves, so that what comes out of files is escaped there.
SPEAKERS = {"tcc_certs": "verbs/answer.py", "tcc": "screen.py"}
SPEAKS = {"echo", "secho", "print", "print_exception", "print_exc", "stdout", "stderr", "show"}


@pytest.mark.parametrize("package", SPEAKERS, scope="module")
def test_text_leaves_a_package_at_one_place(package: str) -> None:
    for path, tree in modules(package):
        name = path.relative_to(PACKAGES[package]).as_posix()
        if name == SPEAKERS[package]:
            continue
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & SPEAKS
        called = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        # What is drawn on a terminal asks whether there is one.
        drawn = name == "commands/experiments_command.py"
        assert used <= ({"stderr"} if drawn else set()), name
        assert not called & {"print", "echo", "secho"}, name


def test_the_kernel_has_no_floats() -> None:
    for path, tree in modules("tcc_certs"):
        # With pathlib a slash joins paths.
        joins_paths = "pathlib" in set(imported(tree))
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), path
            divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            assert not divides or joins_paths, path


@pytest.mark.parametrize("package", PACKAGES, scope="module")
def test_every_public_definition_is_documented(package: str) -> None:
    for path, tree in modules(package):
        assert ast.get_docstring(tree), path
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            assert not public or ast.get_docstring(node), f"{path}: {node.name}"


def test_the_kernel_runs_with_nothing_but_blake3(tmp_path: Path) -> None:
    code = (
        "import sys, runpy\n"
        "sys.argv = ['tcc_certs', 'check', sys.argv[1]]\n"
        "try: runpy.run_module('tcc_certs', run_name='__main__')\n"
        "except SystemExit as ended: print('ended', ended.code)\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    broken = tmp_path / "a.tcca"
    broken.write_bytes(b"\0" * 64)
    done = subprocess.run(
        [sys.executable, "-c", code, str(broken)],
        env={"PYTHONPATH": str(ROOT / "certs")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ended 1" in done.stdout
    loaded = set(ast.literal_eval(done.stdout.splitlines()[-1]))
    assert not loaded & {"lark", "networkx", "gmpy2", "click", "rich", "tcc_compiler", "numpy"}


def test_no_text_names_a_path_of_one_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    words = ("/" + "work/", "/" + "root/", "far" + "m-")
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.suffix in {".py", ".md", ".toml", ".tcg", ".json", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not [word for word in words if word in text], name


@pytest.mark.parametrize(
    ("target", "name"), [(target, name) for target, names in reach.FILES.items() for name in names]
)
def test_the_files_that_a_campaign_is_to_reach_are_there(target: str, name: str) -> None:
    assert list(reach.folder_of(target).glob(f"{name}.py"))
