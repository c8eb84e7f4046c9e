"""How gathered the house is: the numbers of `scripts/house_numbers.py`, held to their limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import house_numbers

ROOT = Path(__file__).parents[2]


def held(what: str) -> float:
    return house_numbers.LIMITS[what][1]


def test_files_are_as_many_as_the_lines_allow() -> None:
    assert len(house_numbers.sources(*house_numbers.FOLDERS)) <= house_numbers.files_allowed()


def test_one_file_in_five_has_one_importer() -> None:
    single = house_numbers.single_importers()
    assert len(single) <= len(house_numbers.sources(*house_numbers.FOLDERS)) // 5, sorted(single)


def test_lines_of_imports() -> None:
    assert house_numbers.import_share() <= held("lines of imports, %")


def test_names_of_public_classes() -> None:
    repeated = house_numbers.repeated_classes()
    assert len(repeated) <= held("public classes of one name"), sorted(repeated)


def test_modules_in_a_folder() -> None:
    folder, most = house_numbers.folders().most_common(1)[0]
    assert most <= held("modules in a folder"), folder


@pytest.mark.parametrize("name", house_numbers.OPERATIONS)
def test_files_that_an_operation_passes(name: str) -> None:
    found = house_numbers.operation(name)
    assert 5 < len(found) <= held(house_numbers.OPERATIONS[name][0]), found


def test_every_operation_has_a_limit_and_no_limit_is_below_what_is_wanted() -> None:
    assert {what for what, _ in house_numbers.OPERATIONS.values()} <= house_numbers.LIMITS.keys()
    assert all(wanted <= kept for wanted, kept in house_numbers.LIMITS.values())


def test_a_file_is_counted_where_its_functions_are_entered() -> None:
    code = (
        "import json; from scripts.house_numbers import Entered\n"
        "entered = Entered()\n"
        "with entered.counting():\n"
        "    import tcc_certs.race.digest as digest\n"
        "    digest.leaf_digest(bytes(32))\n"
        "print(json.dumps(entered.named()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'certs'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    # Importing passes many modules of tcc_certs; the digest's is entered, and the one that hashes.
    assert json.loads(done.stdout) == ["tcc_certs.formats.codec", "tcc_certs.race.digest"]
