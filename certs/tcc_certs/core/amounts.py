"""What calls add to a limit on the sum of a parameter.

Normative text: docs/spec/core.md, section 4.  Cost: linear in the values and the calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Call, Tool
from tcc_certs.formats.decimals import nano_of


def summed_parameter(
    tools: Sequence[Tool], calls: Sequence[Call], of: tuple[int, int]
) -> list[int]:
    """For each call the value of a parameter, nano-units; 0 where it has none.

    Args:
        of: the tool and the place of its parameter, as :class:`Limit` has them.
    """
    number, place = of
    # Of a limit that was read every value is a number or absent.
    values = [nano_of(text) or 0 for text in tools[number].parameters[place].values]
    return [values[call.values[place]] if call.tool == number else 0 for call in calls]
