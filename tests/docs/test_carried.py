"""What stands beside the sources for others' tools: the citation, and the container's recipe."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_citation_is_of_this_version() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"title", "abstract", "message", "preferred-citation"} <= set(found)
    assert (found["cff-version"], found["type"]) == ("1.2.0", "software")
    assert (found["version"], found["license"]) == (PROJECT["version"], PROJECT["license"])
    assert found["authors"] == [{"name": "The tcc authors"}]
    assert found["preferred-citation"]["authors"] and found["preferred-citation"]["title"]


def test_the_container_copies_what_is_there_and_installs_an_extra_that_is() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    needed = {package.split("/")[0] for package in wheel["targets"]["wheel"]["packages"]}
    assert needed | {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]} <= set(copied)
    [extra] = [name for line in lines for name in re.findall(r'pip install.* "\.\[(\w+)\]"', line)]
    assert extra in PROJECT["optional-dependencies"]
    [entry] = [line.split(" ", 1)[1] for line in lines if line.startswith("ENTRYPOINT ")]
    assert [name for name in json.loads(entry) if name in PROJECT["scripts"]] == ["tcc"]
