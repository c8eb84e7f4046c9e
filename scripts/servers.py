"""Public MCP servers through the gate: the real package of each, in a separate environment.

    python scripts/servers.py                  # all of them; needs node and npm for `filesystem`
    python scripts/servers.py git time         # some
    python scripts/servers.py --envs DIR       # keep the environments there

Run it with an environment that has tcc and its extra `mcp`: the client is the official SDK's. Each
server is imported with a lock, and statements are added to its grammar.  The client then calls it
through `tcc gate`: a forbidden call, the call that the statement requires, and the first call
again.  The answers, the effects (commits, files) and the ledger are compared with the expected
ones, and the ledger is validated.  Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = {
    "git": "mcp-server-git",
    "time": "mcp-server-time",
    "filesystem": "@modelcontextprotocol/server-filesystem",
}
REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The test of a server.

    Attributes:
        statements: statements to add to the imported grammar.
        calls: tool, arguments, and the expected result: `refused`, or a text in the answer.
        world: checks the effects afterwards; returns each check with its result.
    """

    statements: Sequence[str]
    calls: Sequence[tuple[str, dict[str, Any], str]]
    world: Callable[[], dict[str, bool]]


def git(home: Path) -> Case:
    """Test: a commit needs a look at the staged changes first, and only one commit is allowed."""
    repo = home / "repo"
    repo.mkdir()
    base = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*base, *command], check=True)
    for name, value in (("user.name", "t"), ("user.email", "t@example.org")):
        subprocess.run([*base, "config", name, value], check=True)
    (repo / "a.txt").write_text("one\n")
    here = {"repo_path": str(repo)}
    commit = {**here, "message": "second"}

    def world() -> dict[str, bool]:
        told = subprocess.run([*base, "log", "--format=%s"], capture_output=True, text=True)
        subjects = told.stdout.split()
        return {f"commits {subjects}": subjects == ["second", "first"]}

    return Case(
        statements=(
            "before git_commit require git_diff_staged(same repo_path)",
            "limit count(git_commit) <= 1",
        ),
        calls=(
            ("git_commit", commit, REFUSED),
            ("git_status", here, "a.txt"),
            ("git_add", {**here, "files": ["a.txt"]}, "staged"),
            ("git_diff_staged", here, "+one"),
            ("git_commit", commit, "committed"),
            ("git_commit", commit, REFUSED),
        ),
        world=world,
    )


def time(_home: Path) -> Case:
    """Test: a conversion needs a look at the clock first."""
    asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return Case(
        statements=("before convert_time require get_current_time",),
        calls=(
            ("convert_time", asked, REFUSED),
            ("get_current_time", {"timezone": "UTC"}, "UTC"),
            ("convert_time", asked, "21:00"),
            ("get_current_time", {"timezone": 5}, REFUSED),
        ),
        world=dict,
    )


def filesystem(home: Path) -> Case:
    """Test: a file may be written only after it was read, and no file may be moved."""
    folder = home / "files"
    folder.mkdir()
    one, other = folder / "one.txt", folder / "other.txt"
    one.write_text("before")
    other.write_text("kept")
    new = {"path": str(one), "content": "after"}

    def world() -> dict[str, bool]:
        found = {path.name: path.read_text() for path in sorted(folder.iterdir())}
        return {f"files {found}": found == {"one.txt": "after", "other.txt": "kept"}}

    return Case(
        statements=(
            "before write_file require read_text_file(same path)",
            "limit count(move_file) <= 0",
        ),
        calls=(
            ("write_file", new, REFUSED),
            ("read_text_file", {"path": str(one)}, "before"),
            ("write_file", {**new, "path": str(other)}, REFUSED),
            ("write_file", new, "Success"),
            ("move_file", {"source": str(one), "destination": str(other)}, REFUSED),
            ("list_directory", {"path": str(folder)}, "other.txt"),
        ),
        world=world,
    )


CASES = {"git": git, "time": time, "filesystem": filesystem}


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def environment(name: str, folder: Path) -> Path:
    """Create the environment of a server with its package, and return its folder."""
    home = folder / name
    if name == "filesystem":
        if not (home / "node_modules").exists():
            home.mkdir(parents=True, exist_ok=True)
            npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", PACKAGES[name]]
            subprocess.run(npm, cwd=home, check=True)
    elif not (home / "bin").exists():
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, PACKAGES[name]], check=True, stderr=subprocess.DEVNULL)
    return home


def command_of(name: str, env: Path, home: Path) -> list[str]:
    """Return the command that starts a server."""
    if name == "filesystem":
        program = env / "node_modules" / "@modelcontextprotocol" / "server-filesystem"
        return ["node", str(program / "dist" / "index.js"), str(home / "files")]
    python = [str(env / "bin" / "python"), "-m", f"mcp_server_{name}"]
    return [*python, "--repository", str(home / "repo")] if name == "git" else python


def tcc(*arguments: str) -> str:
    """Run a tcc command and return its output; exit if it fails."""
    ended = subprocess.run(
        [sys.executable, "-m", "tcc", *arguments],
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if ended.returncode:
        raise SystemExit(f"tcc {' '.join(arguments)}: {ended.returncode}\n{ended.stderr}")
    return ended.stdout


async def talk(gate: list[str], case: Case) -> dict[str, bool]:
    """Make the calls of a case with the official client; return each check with its result."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    found: dict[str, bool] = {}
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "tcc", *gate], env=dict(os.environ)
    )
    async with Client(stdio_client(parameters), mode="auto") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        found[f"lists {len(listed)} tools"] = {name for name, _, _ in case.calls} <= {
            *listed, "move_file",  # no plan has it, so it may be missing from the list
        }  # fmt: skip
        for number, (name, arguments, due) in enumerate(case.calls, 1):
            answer = await client.call_tool(name, arguments)
            text = " ".join(getattr(block, "text", "") for block in answer.content)
            refused = "Not allowed, and nothing was called" in text
            came = refused if due == REFUSED else due in text and not answer.is_error
            found[f"{number}. {name}: {text[:60]!r}"] = came
    return found


def run(name: str, env: Path) -> bool:
    """Import, narrow and call one server, and validate the ledger; return whether all is well."""
    with tempfile.TemporaryDirectory(prefix=f"tcc-{name}-") as folder:
        home = Path(folder)
        case = CASES[name](home)
        command = command_of(name, env, home)
        grammar, lock = home / "g.tcg", home / "tools.lock"
        tcc("import", "mcp", "-o", str(grammar), "--lock", str(lock), "--", *command)
        with grammar.open("a") as file:
            file.write("\n".join(["", *case.statements, ""]))
        artifact, ledger = home / "g.tcca", home / "l"
        tcc("compile", str(grammar), "-o", str(artifact))
        gate = ["gate", str(artifact), "--ledger", str(ledger), "--lock", str(lock), "--finish"]
        checks = asyncio.run(asyncio.wait_for(talk([*gate, "--", *command], case), 300))
        checks |= case.world()
        records = [json.loads(line) for line in ledger.read_text().splitlines()]
        kinds = [one["kind"] for one in records]
        made = sum(due != REFUSED for _, _, due in case.calls)
        checks[f"ledger: {kinds.count('call')} calls, {kinds.count('refusal')} refusals"] = (
            kinds.count("call"), kinds.count("refusal"),
        ) == (made, len(case.calls) - made)  # fmt: skip
        told = json.loads(tcc("validate", str(ledger), "--artifact", str(artifact), "--json"))
        checks[f"validated: {told['claim_type']}"] = told["claim_type"] == "Conformant"
        for said, holds in checks.items():
            say(f"  {'ok  ' if holds else 'NOT '} {said}")
        return all(checks.values())


def main() -> int:
    """Create the environments, and test each server through the gate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    parser.add_argument("--envs", type=Path, help="folder of the environments, which is kept")
    given = parser.parse_args()
    folder = given.envs or Path(tempfile.mkdtemp(prefix="tcc-servers-"))
    failed = []
    try:
        for name in given.names or PACKAGES:
            say(f"{name}: {PACKAGES[name]}")
            if not run(name, environment(name, folder)):
                failed.append(name)
    finally:
        if given.envs is None:
            shutil.rmtree(folder, ignore_errors=True)
    say("failed: " + ", ".join(failed) if failed else "all as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
