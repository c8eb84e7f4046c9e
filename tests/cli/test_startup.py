"""What a command imports: by modules, since those are the same on every machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"gmpy2", "lark", "networkx", "numpy", "rich"}
OURS = {"tcc_certs", "tcc_compiler", "tcc_experiments", "tcc_runtime"}
# What nobody needs who compiles a small grammar that holds.
NOT_FOR_COMPILING = {
    "difflib", "email", "importlib.metadata", "tcc.findings", "tcc.run_options",
    "tcc_certs.replay", "tcc_certs.session", "tcc_compiler.imports.read",
    "tcc_compiler.language.syntax.tables",
    "tcc_compiler.relax.alternatives", "tcc_compiler.relax.contradiction", "tcc_experiments",
    "tcc_runtime.asking", "tcc_runtime.gate", "tcc_runtime.loop", "tcc_runtime.numbers",
    "tcc_runtime.questions", "tcc_runtime.terms.settings",
}  # fmt: skip
GRAMMAR = 'grammar g version "1"\ntool a { cost 1 }\ntool b\nplan = a b?\naccept a\n'


def imported(*arguments: str) -> set[str]:
    """The modules of a process that ran `tcc` with these arguments."""
    code = (
        "import json, sys\nfrom tcc.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit as end: code = end.code\n"
        "print(json.dumps([code, sorted(sys.modules)]))"
    )
    command = [sys.executable, "-c", code, *arguments]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(out.stdout.splitlines()[-1])
    assert code == 0, out.stderr
    return set(modules)


def top(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_help_imports_click_and_next_to_nothing_of_ours() -> None:
    modules = imported("--help")
    assert not top(modules) & (HEAVY | OURS | {"blake3", "difflib", "email"})
    ours = {name for name in modules if name.partition(".")[0] == "tcc"}
    assert ours == {"tcc", "tcc.exits", "tcc.main", "tcc.screen"}


def test_the_version_imports_no_more_of_ours_than_help() -> None:
    assert not top(imported("--version")) & (HEAVY | OURS | {"blake3"})


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_compiling_a_small_grammar_imports_what_it_uses(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    modules = imported("compile", str(grammar), *more)
    assert top(modules) & HEAVY == {"numpy"}
    assert not modules & NOT_FOR_COMPILING


def test_start_up_takes_far_less_than_a_second_of_processor_time(tmp_path: Path) -> None:
    # Generous, as others use the machine too: five times what was measured on a quiet one.
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    for arguments, limit in ((("--help",), 0.3), (("compile", str(grammar)), 1.3)):
        seconds = []
        for _ in range(3):
            before = os.times()
            command = [sys.executable, "-m", "tcc", *arguments]
            subprocess.run(command, capture_output=True, check=True)
            after = os.times()
            user = after.children_user - before.children_user
            seconds.append(user + after.children_system - before.children_system)
        assert min(seconds) < limit, arguments
