"""The conformance suite of MCP against a gate over HTTP.

The suite is an npm package.  It calls a server made with the official SDK, which has the tools,
resources and prompts that it asks for, through a gate whose grammar allows them all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.speaking import SERVERS, environment, tcc
from tests.mcp.test_http import web

# The suite needs Node 22, which npm has as a package, too.
PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "node@22")
# The gate refuses these parts of the protocol, or does not have them (docs/mcp.md, docs/http.md).
REFUSED = {
    "logging-set-level",
    "completion-complete",
    "tools-call-with-logging",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-subscribe",
    "resources-unsubscribe",
}


@pytest.mark.campaign
def test_the_gate_conforms_but_for_what_it_refuses(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    assert npm is not None, "the conformance suite needs npm"
    suite = tmp_path / "suite"
    suite.mkdir()
    install = [npm, "install", "--no-audit", "--no-fund", *PACKAGES]
    subprocess.run(install, cwd=suite, check=True, timeout=600)
    grammar = tmp_path / "everything.tcg"
    everything = (sys.executable, str(SERVERS / "everything.py"))
    imported = tcc("import", "mcp", "-o", str(grammar), "--", *everything, env=environment())
    assert imported.returncode == 0, imported.stderr
    grammar.write_text(grammar.read_text() + "\npass resources, prompts\n")
    assert tcc("compile", str(grammar)).returncode == 0
    with web(tmp_path, grammar.with_suffix(".tcca"), server="everything.py") as found:
        ran = subprocess.run(
            [
                str(suite / "node_modules/node/bin/node"),
                str(suite / "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
                *("server", "--url", found.url, "--suite", "all"),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
        )
    results = dict(re.findall(r"^[✓✗] ([a-z0-9-]+): (\d+ passed, \d+ failed)", ran.stdout, re.M))
    print(ran.stdout[-4000:])
    failed = {name for name, told in results.items() if not told.endswith(", 0 failed")}
    assert len(results) == 32 and failed == REFUSED, (results, ran.stderr[-2000:])
