"""`tcc import mcp` from the command line: from servers and from files, good and bad."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.mcp.speaking import SERVERS, tcc

GITHUB = Path(__file__).parents[1] / "data" / "mcp" / "github_tools.json"
SERVER = ["--", sys.executable, str(SERVERS / "hostile.py")]
TOOL = '{"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}'


def test_a_server_is_imported(tmp_path: Path) -> None:
    grammar, lock = tmp_path / "g.tcg", tmp_path / "tools.lock"
    done = tcc("import", "mcp", "-o", str(grammar), "--lock", str(lock), *SERVER)
    assert (done.returncode, done.stderr) == (0, "")
    text = grammar.read_text("ascii")
    assert 'grammar hostile version "1"\n' in text
    assert 'tool act(kind: safe | risky, how: text, id: text ~ "c-[0-9]{1,4}")' in text
    assert tcc("compile", str(grammar)).returncode == 0
    again = tcc("import", "mcp", "-o", str(grammar), *SERVER)
    assert again.returncode == 2
    assert "give --overwrite" in again.stderr
    over = tcc("import", "mcp", "-o", str(grammar), "--overwrite", *SERVER)
    assert over.returncode == 0
    assert grammar.read_text("ascii") == text


def test_a_file_is_imported_with_the_same_bytes(tmp_path: Path) -> None:
    texts = set()
    tools = json.loads(GITHUB.read_text("ascii"))["tools"]
    for shape in (tools, {"tools": tools}, {"id": 1, "result": {"tools": list(reversed(tools))}}):
        path = tmp_path / "github.json"
        path.write_text(json.dumps(shape), "ascii")
        done = tcc("import", "mcp", str(path))
        assert done.returncode == 0
        texts.add(done.stdout)
        assert (
            'TCC613 warning: "actions_list": members of objects that its schema leaves open'
            in done.stderr
        )
    assert len(texts) == 1


def test_functions_of_model_apis_are_imported_as_tools(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "kind": {"oneOf": [{"const": "x", "title": "X"}, {"const": "y"}]},
            "size": {"$ref": "#/$defs/size"},
            "last": {"anyOf": [{"$ref": "#/$defs/size"}, {"type": "null"}]},
            "loop": {"$ref": "#/$defs/loop"},
        },
        "required": ["kind"],
        "$defs": {"size": {"enum": ["s", "m"]}, "loop": {"$ref": "#/$defs/loop"}},
    }
    head = {"name": "order", "description": "Orders."}
    shapes = (
        [{**head, "inputSchema": schema}],
        [{"type": "function", "function": {**head, "parameters": schema}}],
        [{"type": "function", **head, "parameters": schema, "strict": True}],
        [{**head, "input_schema": schema}],
        {"tools": [{**head, "input_schema": schema}]},
    )
    texts = set()
    for shape in shapes:
        path = tmp_path / "tools.json"
        path.write_text(json.dumps(shape), "ascii")
        done = tcc("import", "mcp", str(path))
        assert done.returncode == 0
        texts.add(done.stdout)
    (text,) = texts
    line = next(line for line in text.splitlines() if line.startswith("tool "))
    assert line == (
        'tool order(kind: x | y, size?: s | m, last?: s | m | null, loop?: json) { doc "Orders." }'
    )


def test_as_json(tmp_path: Path) -> None:
    path = tmp_path / "9 lives.json"
    path.write_text(f"[{TOOL}]", "ascii")
    found = json.loads(tcc("import", "mcp", str(path), "--json").stdout)
    assert found["format"] == "tcc.import"
    assert (found["tools"], found["diagnostics"]) == (1, [])
    assert found["grammar"].startswith('grammar tools_9_lives version "1"\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        (f"[{TOOL}] 5", "is no JSON"),
        (f"[{TOOL}, {TOOL}]", "lists the tool 'a' twice"),
        ('{"tools": 5}', "has no list of tools"),
        ('[{"name": 5}]', "has no list of tools"),
        ('[{"name": "a", "name": "b"}]', "a member stands twice"),
        ('[{"name": NaN}]', "is no JSON"),
        ("[" * 100000, "nested too deeply"),
        (f'[{{"name": "a", "x": {"[" * 400}{"]" * 400}}}]', "nested too deeply"),
    ],
)
@pytest.mark.sampled(4)
def test_what_is_no_list_of_tools_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(text, "ascii")
    done = tcc("import", "mcp", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("TCC611: ")
    assert said in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["--"], [str(GITHUB), *SERVER], ["no_such_file.json"], ["--no-such-option", *SERVER]],
)
@pytest.mark.sampled(3)
def test_bad_usage(arguments: list[str]) -> None:
    done = tcc("import", "mcp", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: tcc import mcp")


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ('[{"name":"a"},{"name":"a"}]', "lists a tool twice"),
        ('[{"name":5}]', "lists something that is no tool"),
        ('"x"', "has no list of tools"),
    ],
)
def test_a_server_that_lists_no_tools_is_refused(tmp_path: Path, tools: str, said: str) -> None:
    done = tcc("import", "mcp", *SERVER, env={"TOOLS": tools})
    assert done.returncode == 2
    assert done.stderr.startswith("TCC611: ")
    assert said in done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "import time; time.sleep(60)",
        "pass",
        "import sys; sys.stdin.readline(); print('{\"id\":NaN}', flush=True); sys.stdin.read()",
        "while True: print('noise', flush=True)",
        "import sys; sys.stdout.write('x' * 40000000); sys.stdout.flush(); sys.stdin.read()",
    ],
)
@pytest.mark.sampled(2)
def test_a_server_that_gives_no_answer_is_left_alone(program: str) -> None:
    done = tcc("import", "mcp", "--deadline", "1", "--", sys.executable, "-c", program)
    assert done.returncode == 2
    assert "TCC611: the server " in done.stderr


def test_a_list_with_pages_that_do_not_end_is_refused() -> None:
    program = (
        "import json, sys\n"
        "for at, line in enumerate(sys.stdin):\n"
        "    m = json.loads(line)\n"
        "    r = {'protocolVersion': '2025-06-18'}\n"
        "    if m['method'] == 'tools/list':\n"
        "        r = {'tools': [], 'nextCursor': CURSOR}\n"
        "    if 'id' in m:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
    )
    for cursor in ("'same'", "str(at)"):
        done = tcc("import", "mcp", "--", sys.executable, "-c", program.replace("CURSOR", cursor))
        assert done.stderr == "TCC611: the server's list of tools does not end\n"


def test_a_program_that_is_not_there() -> None:
    done = tcc("import", "mcp", "--", "/no/such/program")
    assert done.returncode == 2
    assert done.stderr.startswith("TCC611: cannot start /no/such/program: No such file")


def test_what_is_written_has_files_of_its_own(tmp_path: Path) -> None:
    config, out = tmp_path / "mcp.json", tmp_path / "g.tcg"
    config.write_text('{"mcpServers": {"a": {"command": "false"}}}')
    out.write_text("kept")
    link = tmp_path / "link"
    link.hardlink_to(out)
    for rewrite in (out, tmp_path / "." / "g.tcg", link):
        told = ("--config", str(config), "-o", str(out), "--overwrite", "--rewrite", str(rewrite))
        ended = tcc("import", "mcp", *told)
        assert ended.returncode == 2 and "are one file" in ended.stderr, ended.stderr
    ended = tcc("import", "mcp", "-o", str(out), "--lock", str(out), "--overwrite", *SERVER)
    assert ended.returncode == 2 and "-o and --lock are one file" in ended.stderr
    assert out.read_text() == "kept"
