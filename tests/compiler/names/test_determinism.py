"""Hash seeds do not leak: diagnostics and cores are the same bytes under each."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys
from tcc_compiler.language.diagnostics import render
from tcc_compiler.frontend import read_grammar_text
from tests.property.grammars import random_grammar
from tcc_certs.formats.codec import encode
from tcc_certs.policy.reader import core_json
for seed in range(3):
    sys.stdout.buffer.write(encode(core_json(read_grammar_text(random_grammar(seed)).core)))
text = 'tool a(k: 1)\\nstart x\\nplan = a(k=2) zz\\nrule r = s\\nrule s = r\\nbefore a require q'
wrong = read_grammar_text(text)
for item in wrong.diagnostics:
    print(render(item, wrong.sources))
"""


def test_hash_seeds_give_the_same_bytes() -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    outputs = []
    for batch in range(0, 8, 4):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
                stdout=subprocess.PIPE,
            )
            for seed in range(batch, batch + 4)
        ]
        outputs += [process.communicate(timeout=60)[0] for process in running]
        assert [process.returncode for process in running] == [0, 0, 0, 0]
    assert len(outputs) == 8
    assert len(set(outputs)) == 1
    assert b"TCC202" in outputs[0]
