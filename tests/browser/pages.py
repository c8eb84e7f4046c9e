"""The pages that are opened: made once, by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import tcc as library
from tcc.main import main

ROOT = Path(__file__).parents[2]
EVIL = (
    "</script></title></style><script>window.evil=1</script><img src=//evil.example/x "
    "onerror=window.evil=1><svg onload=window.evil=1>\"'><iframe srcdoc='<script>parent.evil=1'>"
    "<meta http-equiv=refresh content='0;url=//evil.example'><base href=//evil.example>"
    "<link rel=stylesheet href=//evil.example/s><a href='javascript:window.evil=1'>"
)
SEED = "11" * 32


def run(*arguments: object, code: int = 0) -> None:
    """A command of `tcc`, in this process."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        assert ended.code == code, (arguments, ended.code)


def make(folder: Path) -> dict[str, Path]:
    """All pages by name."""
    grammars = ROOT / "grammars"
    made, ledger = folder / "a.tcca", folder / "run.ledger"
    run("compile", grammars / "coding_agent.tcg", "--beta", "8", "-o", made)
    run("run", made, "--seed", SEED, "--top", 6, "--race", "coupled", "--ledger", ledger)
    pages = {"artifact": folder / "artifact.html", "run": folder / "run.html"}
    run("report", made, "--since", made, "-o", pages["artifact"])
    run("report", ledger, "--artifact", made, "-o", pages["run"])
    pages["forged"] = _forged(folder, made, ledger)
    pages["session"] = _session(folder, grammars / "purchasing.tcg")
    pages |= _proved(folder)
    pages |= _hostile(folder)
    return pages


def _forged(folder: Path, made: Path, ledger: Path) -> Path:
    bad, page = folder / "bad.ledger", folder / "forged.html"
    bad.write_bytes(ledger.read_bytes().replace(b'"kind":"leaf"', b'"kind":"loaf"', 1))
    run("report", bad, "--artifact", made, "-o", page, code=1)
    return page


def _session(folder: Path, grammar: Path) -> Path:
    artifact, ledger = library.compile_file(grammar), folder / "s.ledger"
    made, page = folder / "p.tcca", folder / "session.html"
    library.save(artifact, made)
    gate = library.Gate(
        artifact, ledger=ledger, show=["search_catalogue.query"],
        account=library.Account(folder / "a.account"),
    )  # fmt: skip
    order = {"order_no": "PO-123456", "supplier": "ACME", "amount": 120}
    with gate.call("search_catalogue", {"query": EVIL[:200]}) as permit:
        permit.done()
    for tool, arguments in (("pay", order), ("order", {**order, "amount": 501}), ("drop", {})):
        try:
            with gate.call(tool, arguments):
                raise AssertionError(tool)
        except library.Refused:
            continue
    with gate.call("order", order) as permit:
        permit.done()
    gate.finish()
    run("report", ledger, "--artifact", made, "-o", page)
    return page


DESK = """grammar desk version "1.1"

tool find(kind: order | person, id: text) gives (result: ok | bad)
tool pay(part: half | full, id: text)
tool close(id: text)

plan = any{0,4}

before pay require find(same id, result = ok)
before pay require no close(same id)
limit count(pay) per id <= 1 in session
"""


def _proved(folder: Path) -> dict[str, Path]:
    """Of sessions whose values are not shown: one that has ended, one that goes on, and one under a
    statement of version 1.2, which the proved program declines."""
    pages = {}
    for name, ends in (("ended", True), ("going-on", False), ("declined", True)):
        timed = "before close require find within 5 m\n" if name == "declined" else ""
        artifact, made = library.compile_text(DESK + timed), folder / f"{name}.tcca"
        library.save(artifact, made)
        ledger = folder / f"{name}.ledger"
        gate = library.Gate(artifact, ledger=ledger)
        with gate.call("find", {"kind": "order", "id": "7"}) as permit:
            permit.done(observed={"result": "ok"})
        for _ in range(2):
            try:
                with gate.call("pay", {"part": "half", "id": "7"}) as permit:
                    permit.done()
            except library.Refused:
                continue
        if ends:
            gate.finish()
        else:
            gate.close()
        pages[name] = folder / f"{name}.html"
        run("report", ledger, "--artifact", made, "-o", pages[name], code=0 if ends else 2)
    return pages


def _hostile(folder: Path) -> dict[str, Path]:
    """Of texts that would be markup: an artifact, a run, and a ledger that does not hold."""
    evil = json.dumps(EVIL)
    source, made, ledger = (folder / f"evil.{ending}" for ending in ("tcg", "tcca", "ledger"))
    source.write_text(
        f'grammar g version "1 </title><script>window.evil=1</script>"\n'
        f"tool `{EVIL[:120]}`(k: {evil} | plain, `{EVIL[:99]}`: text) {{ cost 1 }}\n"
        f"plan = any{{1,3}}\nforbid `{EVIL[:120]}`(k = {evil})\n",
        encoding="utf-8",
    )
    run("compile", source, "-o", made)
    run("run", made, "--seed", SEED, "--top", 3, "--ledger", ledger)
    pages = {name: folder / f"{name}.html" for name in ("evil-artifact", "evil-run", "evil-forged")}
    run("report", made, "-o", pages["evil-artifact"])
    run("report", ledger, "--artifact", made, "-o", pages["evil-run"])
    bad = folder / "evil.bad"
    bad.write_bytes(ledger.read_bytes().replace(b'"plain"', b'"</script><script>evil=1"') + b"<")
    first, _, rest = bad.read_bytes().partition(b"\n")
    bad.write_bytes(first.replace(b'"mode":"exact"', f'"mode":{evil}'.encode()) + b"\n" + rest)
    run("report", bad, "--artifact", made, "-o", pages["evil-forged"], code=1)
    return pages
