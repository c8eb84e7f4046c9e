"""What a command imports: by modules, since those are the same on every machine."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tcc.main import load_module as load

HEAVY = {"gmpy2", "lark", "networkx", "numpy", "rich"}
OURS = {"tcc_certs", "tcc_compiler", "tcc_experiments", "tcc_runtime"}
# What nobody needs who compiles a small grammar that holds (Lark loads hashlib).
NOT_FOR_COMPILING = {
    "difflib", "email", "importlib.metadata", "tcc.configuration", "tcc.findings",
    "tcc_certs.core.atoms", "tcc_certs.replay", "tcc_certs.session",
    "tcc_compiler.imports.graph_grammar", "tcc_compiler.language.catalogue",
    "tomllib",
    "tcc_compiler.relax.contradiction", "tcc_compiler.relax.estimates", "tcc_experiments",
    "tcc_runtime.pricing", "tcc_runtime.gate", "tcc_runtime.search", "tcc_runtime.numbers",
    "tcc_runtime.analysis", "tcc_runtime.settings.settings",
}  # fmt: skip
GRAMMAR = 'grammar g version "1"\ntool a { cost 1 }\ntool b\nplan = a b?\naccept a\n'
# What compiling it may load: modules of ours, and in them dataclasses whose methods the standard
# decorator compiles from source (some 0.3 ms each; the compiler's are made without).
MOST_MODULES = 205
MOST_COMPILED = 52
RUN = """
import dataclasses, gc, json, os, sys
from pathlib import Path
from tcc.main import main
before = dict(os.environ)
try: main(sys.argv[1:])
except SystemExit as end: code = end.code
tasks = Path("/proc/self/task")
print(json.dumps({
    "code": code,
    "modules": sorted(sys.modules),
    "compiled": sorted(
        f"{name}.{kind.__name__}" for name, module in sys.modules.items()
        for kind in vars(module).values()
        if name.startswith("tcc") and isinstance(kind, type) and kind.__module__ == name
        and dataclasses.is_dataclass(kind) and kind.__dataclass_params__.init),
    "threads": len(list(tasks.iterdir())) if tasks.exists() else 1,
    "collecting": gc.isenabled(),
    "environment": before == dict(os.environ),
}))
"""


def state(*arguments: str, **environment: str) -> dict[str, Any]:
    """What a process is like that ran `tcc` with these arguments."""
    command = [sys.executable, "-c", RUN, *arguments]
    inherited = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    out = subprocess.run(
        command, capture_output=True, text=True, check=True, env=inherited | environment
    )
    told: dict[str, Any] = json.loads(out.stdout.splitlines()[-1])
    assert told["code"] == 0, out.stderr
    return told


def imported(*arguments: str) -> set[str]:
    """The modules of a process that ran `tcc` with these arguments."""
    return set(state(*arguments)["modules"])


def top(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_help_imports_click_and_next_to_nothing_of_ours() -> None:
    modules = imported("--help")
    assert not top(modules) & (HEAVY | OURS | {"blake3", "difflib", "email"})
    ours = {name for name in modules if name.partition(".")[0] == "tcc"}
    assert ours == {"tcc", "tcc.main", "tcc.screen"}


def test_the_version_imports_no_more_of_ours_than_help() -> None:
    assert not top(imported("--version")) & (HEAVY | OURS | {"blake3"})


def test_a_document_is_declared_with_msgspec_which_only_a_document_imports(tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    for command in (("compile", str(grammar)), ("count", str(grammar)), ("test", str(grammar))):
        assert not {"msgspec", "tcc.outputs"} & imported(*command)
        assert {"msgspec", "tcc.outputs"} <= imported(*command, "--json")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_compiling_a_small_grammar_imports_what_it_uses(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    modules = imported("compile", str(grammar), *more)
    assert top(modules) & HEAVY == {"lark", "numpy"}
    assert not modules & NOT_FOR_COMPILING


def test_what_reads_no_grammar_loads_neither_lark_nor_networkx(tmp_path: Path) -> None:
    grammar, artifact, ledger = tmp_path / "g.tcg", tmp_path / "g.tca", tmp_path / "ledger"
    grammar.write_text(GRAMMAR)
    imported("compile", str(grammar), "-o", str(artifact))
    commands = (
        ("check", str(artifact)),
        ("count", str(artifact)),
        ("run", str(artifact), "--seed", "44" * 32, "--ledger", str(ledger)),
        ("validate", str(ledger), "--artifact", str(artifact)),
        ("gate", "--help"),
    )
    for command in commands:
        assert not top(imported(*command)) & {"lark", "networkx"}, command


def test_compiling_a_small_grammar_loads_few_modules_and_compiles_few_classes(
    tmp_path: Path,
) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    told = state("compile", str(grammar))
    ours = [name for name in told["modules"] if name.partition(".")[0] in OURS | {"tcc"}]
    assert 100 < len(ours) <= MOST_MODULES
    assert 30 < len(told["compiled"]) <= MOST_COMPILED, told["compiled"]


def test_compiling_starts_no_threads_and_leaves_collector_and_environment_as_they_were(
    tmp_path: Path,
) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    told = state("compile", str(grammar))
    assert (told["threads"], told["collecting"], told["environment"]) == (1, True, True)


def test_who_sets_the_number_of_threads_keeps_it(tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    told = state("compile", str(grammar), OPENBLAS_NUM_THREADS="2")
    assert told["environment"]
    if (os.cpu_count() or 1) > 1 and Path("/proc/self/task").exists():
        assert told["threads"] == 2


def test_a_config_is_read_where_there_is_one(tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    (tmp_path / "tcc.toml").write_text("[compile]\ntilt = 3\n")
    told = state("compile", str(grammar))
    assert {"tcc.configuration", "tomllib"} <= set(told["modules"])


def test_start_up_takes_far_less_than_a_second_of_processor_time(tmp_path: Path) -> None:
    # Generous, as others use the machine too: five times what was measured on a quiet one.
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    for arguments, limit in ((("--help",), 0.3), (("compile", str(grammar)), 1.0)):
        seconds = []
        for _ in range(3):
            before = os.times()
            command = [sys.executable, "-m", "tcc", *arguments]
            subprocess.run(command, capture_output=True, check=True)
            after = os.times()
            user = after.children_user - before.children_user
            seconds.append(user + after.children_system - before.children_system)
        assert min(seconds) < limit, arguments


def test_a_module_is_loaded_while_no_garbage_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tells.py").write_text("import gc\ncollecting = gc.isenabled()\n")
    (tmp_path / "fails.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load("tells").collecting is False and gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        load("fails")
    assert gc.isenabled()


# What a call of the library loads of ours: `check` loaded 57 modules and `load` 53 when this was
# written, and neither batches, lint nor diff, which `import tcc` names too.
LIBRARY = """
import json, sys
import tcc
getattr(tcc, sys.argv[1])(sys.argv[2])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(("call", "most"), [("check", 80), ("load", 80)])
def test_a_call_of_the_library_loads_what_it_needs(call: str, most: int, tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(GRAMMAR)
    state("compile", str(grammar))
    command = [sys.executable, "-c", LIBRARY, call, str(grammar.with_suffix(".tcca"))]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    modules = set(json.loads(out))
    assert not top(modules) & (HEAVY | {"click", "msgspec", "tcc_compiler", "tcc_experiments"})
    assert not modules & {"tcc.batches", "tcc.library.plan_questions", "tcc.library.linting"}
    ours = [name for name in modules if name.partition(".")[0] in OURS | {"tcc"}]
    assert 20 < len(ours) <= most, f"{call}: {len(ours)} modules"
