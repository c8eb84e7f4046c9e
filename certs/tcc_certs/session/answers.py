"""The observed values of a call, as the record of its outcome has them.

Normative text: docs/spec/session.md, section 3.  Cost: linear in the observed parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.session.states import Answer, Offer


def answer_of(core: Core, offer: Offer, outcome: str, record: Record) -> Answer | None:
    """The observed values of a call that was done, else None.

    Raises:
        Rejected: S210 they are not those of the tool, or there are some of a call that was not.
    """
    if outcome != "done" or not offer.observed:
        ensure("observed" not in record, Code.SESSION_OBSERVED, "observed", "no field", "one")
        return () if outcome == "done" else None
    found = record.get("observed")
    given: Mapping[str, Json] = found if isinstance(found, dict) else {}
    params = [core.tools[offer.tool].parameters[at] for at in offer.observed]
    names = sorted(param.name for param in params)
    ensure(sorted(given) == names, Code.SESSION_OBSERVED, "observed", names, sorted(given))
    answer = []
    for param in params:
        value, values = given[param.name], param.values
        ensure(value in values, Code.SESSION_OBSERVED, "observed", " or ".join(values), value)
        answer.append(values.index(str(value)))
    return tuple(answer)
