"""Validation of a ledger against its artifact, a registry of adapters, and an account.

The validator checks a ledger against its artifact only.  A reader who trusts a registry
(docs/adapters.md) can then compare each adapter that the ledger lists with its entry.  A reader who
has the account of a run (docs/budgets.md) can compare the reservations.  Each settled reservation
must be in the account with the same amounts, and the account must have no other reservation of this
run.  Both comparisons read the ledger again and require the same final hash as the validator.  If
the file was rewritten in between, they report only that.
Cost: the validator's; the comparisons are linear in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tcc.library import artifact_bytes
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, parse_decimal
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader
from tcc_certs.formats.ledger_schema import size
from tcc_certs.replay.findings import INVALID, VALID, Findings
from tcc_certs.replay.header import taken_of
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import AccountAmounts
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact as RuntimeArtifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.process import collection_put_off

if TYPE_CHECKING:
    from tcc_certs.formats.ledger import Record
    from tcc_certs.replay import Validation
    from tcc_certs.session import SessionValidation
    from tcc_certs.session.across import AcrossDraw
    from tcc_certs.session.replay import ReplayedSession

Found = TypeVar("Found", "Validation", "SessionValidation")
Files: TypeAlias = "Sequence[bytes | Iterable[bytes]]"  # the files of a ledger, in order


def passed(found: Validation | SessionValidation) -> bool:
    """Return whether a validated ledger can be compared: it is valid, or an unfinished session."""
    return found.verdict == VALID or (
        found.word == "INCOMPLETE" and found.claim_type == "ConformantPrefix"
    )


def unheld(found: Found, findings: Findings, summary: str) -> Found:
    """Add findings to a validation, and withdraw its claim if there are any."""
    if not findings.items:
        return found
    items = (*found.findings, *findings.items)
    # If a comparison only exceeded a limit, the result is declined instead of invalid.
    word = "invalid" if findings.verdict == INVALID else "declined"
    fields: dict[str, object] = {"verdict": findings.verdict, "findings": items}
    fields["summary"] = f"{word}: {summary}"
    # The claim of a session itself says whether it is upheld.
    fields |= {"claim_upheld": False} if hasattr(found, "kappa") else {"claim_type": "NoClaim"}
    return replace(found, **fields)  # type: ignore[arg-type]  # fields of either


def held_to_registry(found: Found, files: Files, registry: Iterable[Adapter]) -> Found:
    """Return the validation, with a finding for each adapter that differs from the registry.

    Args:
        found: the result of the validator.
        files: the files of the ledger.
        registry: the adapters that the reader trusts.
    """
    if not passed(found):
        return found
    known = {adapter.name: adapter.listed for adapter in registry}
    findings = Findings()
    try:
        for line, item in _listed(validated_records(found, files)):
            expected = known.get(str(item["name"]), "an adapter of the registry")
            if item != expected:
                findings.add(Code.ADAPTER_LEDGER, line, "adapters", expected, item)
    except Rejected as refusal:
        findings.refuse(refusal, 1)
    return unheld(found, findings, "it replays, but an adapter of it is not the registry's")


def validated_records(found: Validation | SessionValidation, files: Files) -> Iterator[Record]:
    """Read a validated ledger again, and yield its records.

    Raises:
        Rejected: L101, L102 or D201, the files no longer have the validated ledger.
    """
    for _, _, record in _validated_lines(found, files):
        yield record


def _validated_lines(
    found: Validation | SessionValidation, files: Files
) -> Iterator[tuple[int, bytes, Record]]:
    """Yield the index of the file, the hash before a record in that file, and the record."""
    head, lines = bytes.fromhex(found.head), 0
    for number, file in enumerate(files):
        reader = LedgerReader((file,) if isinstance(file, bytes) else iter(file))
        previous = reader.head
        for record in reader:
            yield number, previous, record
            previous = reader.head
            if number == len(files) - 1 and reader.head == head:
                return
        lines += reader.records
    path = f"line {lines}: the ledger as it is read again"
    raise Rejected(Code.LEDGER_CHAIN, path, found.head, previous.hex())


def _listed(records: Iterable[Record]) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Yield each adapter in the first record of a run or the budget of a session, with its line."""
    lists = True
    for line, record in enumerate(records, 1):
        kind, listed = record.get("kind"), record.get("adapters", [])
        for item in listed if lists and isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield line, item
        lists = lists and kind not in ("open", "budget")


def held_to_account(found: Found, files: Files, account: Account) -> Found:
    """Return the validation, with a finding for each reservation that differs from the account.

    Args:
        found: the result of the validator.
        files: the files of the ledger.
        account: the account of the run or the session.

    Raises:
        Rejected: K101 to K104, the account is refused.
    """
    if not passed(found):
        return found
    findings = Findings()
    try:
        if _counts_across(validated_records(found, files)):
            return found
        records = validated_records(found, files)
        _compare(next(records), records, account, findings)
    except Rejected as limit:
        if limit.code.value[0] == "K":
            raise
        findings.refuse(limit, 1)
    return unheld(found, findings, "it replays, but what it drew is not as the account has it")


def _counts_across(records: Iterator[Record]) -> bool:
    """Return whether a session has no budget, and uses an account for limits across sessions."""
    across = False
    for record in records:
        if record.get("kind") == "budget":
            return False
        statements: Any = record.get("statements", ())
        across = across or any(text.endswith(" across sessions") for text in statements)
    return across


# Limits across sessions: compares the draws of calls with the uses in the account.


def _held_across(
    found: SessionValidation,
    files: Files,
    artifacts: Sequence[bytes],
    key: bytes | None,
    account: Account | None,
) -> SessionValidation:
    """Return a session's validation, with a finding for each draw that differs from the account.

    Raises:
        Rejected: K101 to K104, the account is refused.
    """
    shown = [one for one in found.asserted if one.endswith("(--account)")]
    if account is None or not shown or not passed(found):
        return found
    findings = Findings()
    try:
        loose = _compare_across(found, files, artifacts, key, account, findings)
    except Rejected as limit:
        if limit.code.value[0] == "K":
            raise
        findings.refuse(limit, 1)
        loose = 0
    rest = tuple([one for one in found.asserted if one not in shown])
    if loose:
        said = f"that {loose} calls that the account counts were broken off, and not cut off here"
        rest = (*rest, said)
    held = replace(found, asserted=rest)
    return unheld(held, findings, "it replays, but what it drew is not as the account has it")


def _compare_across(
    found: SessionValidation,
    files: Files,
    artifacts: Sequence[bytes],
    key: bytes | None,
    account: Account,
    findings: Findings,
) -> int:
    """Compare the draws of a session; return how many calls only the account has."""
    from tcc_certs.kernel import check
    from tcc_certs.session.validation import ledger_replay, replay_of
    from tcc_runtime.account.windows import ANY, HELD, Used, Windows

    checked = [check(one) for one in artifacts]
    replay = ledger_replay(files, checked, key)
    windows, failed = Windows(account), set[int]()
    made: list[tuple[int, int, Any, Sequence[AcrossDraw]]] = []
    name = ""
    for line, (number, previous, record) in enumerate(_validated_lines(found, files), 1):
        if previous == FIRST_HEAD and number:
            replay.roll(bytes.fromhex(str(record["continues"])))
            replay = replay_of(replay, files, number + 1, checked, key)
        replay.step(record, previous)
        session = replay.session
        if session is None:
            continue
        name = session.header.name
        across = record.get("across")
        if isinstance(across, dict):
            made.append((line, size(record, "seq"), across, session.across.last))
        elif record.get("outcome") == "failed" and "answered" not in record:
            failed.add(size(record, "seq"))
    totals: dict[tuple[str, str, int | None], Mapping[int, Fraction]] = {}
    there: dict[tuple[int, int], dict[tuple[str, str], Used]] = {}
    for used in windows.of(name):
        there.setdefault((used.seq, used.attempt), {})[used.name, used.key] = used
    for line, seq, across, draws in made:
        if across["account"] != account.id:
            findings.add(Code.ACCOUNT_LEDGER, line, "across.account", account.id, across["account"])
            return 0
        uses = there.pop((seq, across["attempt"]), {})
        for draw, said in zip(draws, across["draws"], strict=True):
            place, of = windows.key(draw), "across.draws"
            mine = uses.get((draw.limit.name, place))
            recorded = (said.get("key", ANY), across["at_ms"], said["amount"])
            counted = None if mine is None else (mine.key, mine.at_ms, mine.amount)
            if mine is None or counted != recorded:
                known = "no such use" if counted is None else counted
                findings.add(Code.ACCOUNT_LEDGER, line, of, known, recorded)
                continue
            if mine.state != HELD and seq not in failed:
                findings.add(
                    Code.ACCOUNT_LEDGER, line, of, "counted, as it may be done", mine.state
                )
            window = draw.limit.name, place, draw.limit.within
            if window not in totals:
                totals[window] = windows.totals(*window)
            total = totals[window].get(mine.number, 0)
            if total > draw.bound:
                findings.add(Code.ACCOUNT_LEDGER, line, of, f"at most {draw.bound}", total)
    return len(there)


def _compare(
    header: Mapping[str, Any],
    records: Iterable[Mapping[str, Json]],
    account: Account,
    findings: Findings,
) -> None:
    run, at = str(header.get("run_id", header.get("session_id"))), 1
    if "session_id" in header:
        at, header, records = _budget(records)
    named = header.get("account", {}).get("id", "no account")
    if named != account.id:
        findings.add(Code.ACCOUNT_LEDGER, at, "account", account.id, named)
        return
    there = {}
    for row in account.reservations(run):
        if row.took is not None and row.took != AccountAmounts():
            there[row.id] = (row.amounts, row.took)
    begun = _begun(header)
    for line, name, amounts in _settled(records, at, begun):
        if amounts[1] == AccountAmounts():
            continue
        expected = there.pop(name, "a reservation of this run, settled")
        if expected != amounts:
            findings.add(Code.ACCOUNT_LEDGER, line, "reservation", expected, (name, *amounts))
    for name in sorted(there):
        findings.add(Code.ACCOUNT_LEDGER, at, "reservation", "in the ledger too", name)


def _budget(
    records: Iterable[Mapping[str, Json]],
) -> tuple[int, Mapping[str, Any], Iterable[Mapping[str, Json]]]:
    """Return a session's budget: its line, the record and the records after it.

    Without a budget the result is (1, {}, ()).
    """
    rest = iter(records)
    for line, record in enumerate(rest, 2):
        if record.get("kind") == "budget":
            return line, record, rest
    return 1, {}, ()


def _begun(record: Mapping[str, Any]) -> AccountAmounts:
    """Return the initial sums: zero, except for the epsilon of the atoms of the input.

    Args:
        record: the `open` record of a run, or the `budget` record of a session.
    """
    taken = taken_of(record, says=True)
    return AccountAmounts() if taken is None else AccountAmounts(epsilon=taken.nano)


def _settled(
    records: Iterable[Mapping[str, Any]], before: int, begun: AccountAmounts
) -> Iterator[tuple[int, str, tuple[AccountAmounts, AccountAmounts]]]:
    """Yield line, reservation id, and amounts reserved and taken, of each settled reservation.

    A call of a session without a recorded outcome took all that was reserved for it.

    Args:
        before: the line before the first record.
        begun: the initial sums.
    """
    last, reserved, name = begun, AccountAmounts(), ""
    under_way: tuple[object, AccountAmounts] | None = (
        None  # a call's number, and the sums if it takes all that is reserved
    )
    for line, record in enumerate(records, before + 1):
        kind = record.get("kind")
        if under_way is not None and kind == "resolve" and record["seq"] == under_way[0]:
            last, under_way = under_way[1], None
        elif kind == "call":
            made = record.get("execute")
            under_way = None if made is None else (record["seq"], _sums(made))
        elif kind == "outcome":
            under_way = None
        wish: Mapping[str, Any] = record.get("execute", {}) if kind == "call" else record
        took: Mapping[str, Any] = record.get("took", {}) if kind == "outcome" else record
        if "reservation" in wish and record.get("budget_event") != "refused":
            reserved, name = _drawn(_sums(wish), last), str(wish["reservation"])
        elif kind in ("refine", "outcome", "asked") and "price_spent" in took:
            now = _sums(took)
            if "account_left" in took:
                yield line, name, (reserved, _drawn(now, last))
            last = now


def _drawn(now: AccountAmounts, last: AccountAmounts) -> AccountAmounts:
    """Return the difference of two sums; epsilon is 0 if more atoms have a lower bound."""
    more = now.less(last)
    return AccountAmounts(more.price, more.latency_ms, max(0, more.epsilon))


def _sums(record: Mapping[str, Json]) -> AccountAmounts:
    number, places = parse_decimal(str(record["epsilon_used"]), "epsilon_used", Code.LEDGER_SCHEMA)
    scale: int = 10 ** (9 - places)
    return AccountAmounts(
        price=int(str(record["price_spent"])),
        latency_ms=int(str(record["latency_ms"])),
        epsilon=number * scale,
    )


def validate(
    ledger: str | Path | bytes,
    artifact: RuntimeArtifact | str | Path | bytes,
    *,
    pin: str | None = None,
    seed: bytes | None = None,
    opening_salt: bytes | None = None,
    opening: bytes | None = None,
    beacon: bytes | None = None,
    nonce: bytes | None = None,
    counts: RuntimeArtifact | str | Path | bytes | None = None,
    key: bytes | None = None,
    adapters: str | Path | None = None,
    account: Account | None = None,
    parent: str | Path | bytes | None = None,
    parent_artifact: RuntimeArtifact | str | Path | bytes | None = None,
    nodes: Callable[[Mapping[str, Any]], None] | None = None,
    tell: Callable[[Record, ReplayedSession], None] | None = None,
    more: Sequence[str | Path | bytes] | None = None,
    others: Sequence[RuntimeArtifact | str | Path | bytes] = (),
    parent_others: Sequence[RuntimeArtifact | str | Path | bytes] = (),
) -> Validation | SessionValidation:
    """Validate the ledger of a run or a session, by deriving every number again.

    Args:
        ledger: a file (read as a stream) or bytes, of a run or of a session.
        artifact: a file, its bytes, or an open artifact; it is checked first.
        pin: the required artifact digest, hex.
        seed: 32 bytes, if the ledger withholds the seed.
        opening_salt: 32 bytes, if the salt is not derived from the seed.
        opening: 32 bytes, the opening that was handed out before beacon and nonce were known.
        beacon: the public randomness.
        nonce: the client's randomness.
        counts: an artifact with exact counts of the same core, for kappa.
        key: 32 bytes, the key of a session's digests.  With it, digests of shown values are derived
            again.
        adapters: a registry that must list the adapters of a run, or of a session's models.  Each
            is checked against its folder.
        account: the account that the ledger drew on; it must have the same reservations.
        parent, parent_artifact: for a delegated session, the ledger and the artifact of its parent.
            Each call must be in the parent's ledger (S501 to S503).  They need `key`, which both
            sessions share.
        nodes: called with kappa and the tightened key of each pushed node.  These are diagnostics,
            on which no verdict depends.
        tell: for a session without `parent`, called with each valid record and the session after
            it.
        more: for a session, the files that continue the ledger, in order.  None reads LEDGER.1,
            LEDGER.2 and so on next to it.
        others: for a session whose policy changed, the other artifacts that the ledger names, in
            any order.  `pin` is then the digest of the last file's artifact.

    Returns:
        the verdict, the claim and the findings.

    Raises:
        OSError: a file cannot be read.
        Rejected: A101 to A107, the registry or an adapter is refused; K101 to K104, the account is
            refused.
        SettingsError: an argument is for runs and the ledger is of a session, or the reverse.
    """
    from tcc_certs.replay import validate as replay
    from tcc_certs.session import validate as go_through
    from tcc_certs.verbs.validate import LedgerInput, is_session

    chunks = ledger if isinstance(ledger, bytes) else LedgerInput(Path(ledger))
    if is_session(chunks):
        for_runs = (seed, opening_salt, opening, beacon, nonce, counts, nodes)
        if any(given is not None for given in for_runs):
            expected = "a run, for seed, opening, beacon, nonce, counts and nodes"
            raise SettingsError("ledger", expected, "a session")
        data = artifact_bytes(artifact)
        rest = [artifact_bytes(one) for one in others]
        files = [chunks, *_continuing(ledger, more)]
        if parent is None and parent_artifact is None:
            with collection_put_off(True):
                gone = go_through(
                    chunks, data, more=files[1:], others=rest, pin=pin, key=key, tell=tell
                )
            held = _held_across(gone, files, [data, *rest], key, account)
            return _held(held, files, adapters, account)
        if parent is None or parent_artifact is None or key is None or rest:
            expected = "parent, parent_artifact and key together, and one artifact"
            raise SettingsError("parent", expected, "others" if rest else "some of them")
        from tcc_certs.session.delegation import validate_delegated

        gone = validate_delegated(
            chunks,
            data,
            parent if isinstance(parent, bytes) else LedgerInput(Path(parent)),
            artifact_bytes(parent_artifact),
            key=key,
            more=files[1:],
            parent_more=_continuing(parent, None),
            parent_others=[artifact_bytes(one) for one in parent_others],
            pin=pin,
        )
        return _held(_held_across(gone, files, [data], key, account), files, adapters, account)
    if more or others:
        expected = "one file and one artifact, for the ledger of a run"
        raise SettingsError("more" if more else "others", expected, "more")
    if key is not None or parent is not None or parent_artifact is not None:
        raise SettingsError("ledger", "a session, for its key and its parent", "a run")

    with collection_put_off(nodes is None):
        found = replay(
            chunks,
            artifact_bytes(artifact),
            pin=pin,
            seed=seed,
            opening_salt=opening_salt,
            opening=opening,
            beacon=beacon,
            nonce=nonce,
            counts=None if counts is None else artifact_bytes(counts),
            tell=nodes,
        )
    return _held(found, [chunks], adapters, account)


def _continuing(
    ledger: str | Path | bytes, more: Sequence[str | Path | bytes] | None
) -> Sequence[bytes | Iterable[bytes]]:
    """Return the files that continue a ledger: `more`, or LEDGER.1, LEDGER.2 and so on."""
    from tcc_certs.session.files import files_of
    from tcc_certs.verbs.validate import LedgerInput

    if more is None:
        more = [] if isinstance(ledger, bytes) else files_of(Path(ledger))[1:]
    return [one if isinstance(one, bytes) else LedgerInput(Path(one)) for one in more]


def _held(
    found: Found,
    files: Files,
    adapters: str | Path | None,
    account: Account | None,
) -> Found:
    """Compare a validated ledger with the account and the registry that are given."""
    if account is not None:
        found = held_to_account(found, files, account)
    if adapters is None:
        return found
    from tcc_runtime.adapters.registry import read_registry

    return held_to_registry(found, files, read_registry(Path(adapters)))
