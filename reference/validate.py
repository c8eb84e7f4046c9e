"""A validator for reading: python validate.py LEDGER ARTIFACT.

Exit code 0: VALID. 1: INVALID, a rule of docs/spec is broken. 2: OUT OF SCOPE, nothing is shown.
Written only from docs/spec. In scope: ledgers with their seed, the modes exact and surrogate, the
races rest and coupled, exact, inflated and rounded counts, finalized keys, recipe r2, fixed costs.
Out of scope: cuts, potentials, beacons, atoms, relaxed and nondeterministic artifacts, and limits
with windows or computed terms.
The program also checks the certificates of the artifact, but does not read the plans of its core.
It trusts no printed real number. It computes each one with 200 digits and a bound of the error,
and requires that both ends of this interval round to the printed digits. Decimal rounds
+, *, /, ln and exp correctly, so the error of a step is at most TINY times its result.
"""

# fmt: off
import hmac
import json
import re
import sys
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from types import SimpleNamespace as Space
from typing import Any

from blake3 import blake3

CTX, TINY, BIG = Context(200, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX), Fraction(1, 10**199), 2**53 - 1
COLUMNS = {"edge_start": "Qn+1", "edge_call": "Ie", "edge_target": "Ie", "rank": "In",
    "accept": "Bn", "plans": "Qn*", "race_count": "Qn*", "cost_to_go": "qn", "core": "B*",
    "residual_to_go": "qn", "state_digest": "Bn32", "call_cost_low": "qc", "call_cost_high": "qc",
    "call_weight": "Qc", "call_price": "Qc", "call_latency_ms": "Qc", "call_epsilon": "Qc",
    "call_text": "B*", "tools": "B*", "manifest": "B*", "race_mantissa": "Qn",
    "race_exponent": "In"}
TAKEN = re.compile("this|it|session|now|any|null|true|false|match|not|no|every|unused|same")
OPTIONAL = {"race_count", "race_mantissa", "race_exponent"}
TYPES = {"q": ("I64", 8), "Q": ("U64", 8), "I": ("U32", 4), "B": ("U8", 1)}
OWN = {"run_id", "started_ms", "seed_commitment", "claim_type", "tau", "eta", "top", "count_bits",
       "run_limits", "privacy_scope", "mode", "race", "inflate", "truncate"}  # set by the run
ALIEN = {"beacon", "client_nonce", "delta", "accounting", "atoms", "controller", "adapters",
         "account"}
KINDS = {"open", "downgrade", "node", "expand", "rest", "draw", "leaf", "recovered", "close"}
class Wrong(Exception): ...  # a rule does not hold
class OutOfScope(Exception): ...  # this program lacks the rule
def need(holds: object, what: str, error: type[Exception] = Wrong) -> None:
    if not holds:
        raise error(what)
def blake(*parts: bytes) -> bytes:  # BLAKE3
    return blake3(b"".join(parts)).digest()
def written(value: Any) -> bytes:  # canonical JSON (artifact.md, section 6)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
def read(raw: bytes, what: str) -> Any:  # the value of canonical bytes
    try:
        value = json.loads(raw)
        need(written(value) == raw, f"{what} is not canonical")
    except (ValueError, RecursionError) as error:
        raise Wrong(f"{what} is not JSON") from error
    return value
def exact(text: str) -> Fraction:  # an exact decimal, in canonical form
    form = r"0|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]|-?[1-9][0-9]*"
    need(type(text) is str and re.fullmatch(form, text), f"decimal {text}")
    return Fraction(text)
def nano(value: int) -> str:  # the same for nano-units
    text = f"{abs(value) // 10**9}.{abs(value) % 10**9:09}".rstrip("0").rstrip(".")
    return "-" * (value < 0) + text
def shown(value: int) -> str:  # Q64.64
    need(-(2**127) <= value < 2**127, "a number is clamped", OutOfScope)
    number = round(Fraction(abs(value) * 10**20, 2**64))
    return f"{'-' * (value < 0)}{number // 10**20}.{number % 10**20:020}"
def named(name: str) -> str:  # core.md, section 5
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else written(name).decode()
def text_of(node: Any) -> str:  # core.md, section 6: the text of some forms
    match node:
        case ["name", str(name)] if named(name) == name and not TAKEN.fullmatch(name):
            return name
        case ["n", number]:
            return str(number)
        case ["s", str(text)] if re.fullmatch(r"[ !#-\[\]-~]*", text):
            return f'"{text}"'
        case ["|", *parts]:
            return " | ".join(map(text_of, parts))
        case ["compare", "=" | "!=" as sign, left, right]:
            return f"{text_of(left)} {sign} {text_of(right)}"
    raise OutOfScope("a limit of another form")
def limit_text(limit: dict[str, Any]) -> bytes:  # core.md, section 6
    if limit["kind"] == "total":
        unit = " ms" if limit["what"] == "latency" else ""
        return f"limit {limit['what']} <= {limit['most']}{unit}".encode()
    need("within" not in limit, "a limit of another form", OutOfScope)
    of, tests, field = text_of(limit["of"]), limit.get("if"), limit.get("field")
    of = f"({of})" if "|" in of and (tests or field) else of
    of += f"({', '.join(map(text_of, tests))})" if tests else ""
    of = f"sum({of}.{text_of(['name', field])})" if field else f"count({of})"
    keys = f" per {', '.join(map(text_of, limit['per']))}" if limit["per"] else ""
    scope = {"session": " in session", "across": " across sessions"}.get(limit.get("scope", ""), "")
    return f"limit {of}{keys} <= {text_of(limit['most'])}{scope}".encode()
def decided(rule: Any, middle: Fraction, off: Fraction) -> int:
    # A rule applied to a real number; both ends of its enclosure must give the same result.
    need(rule(middle - off) == rule(middle + off), "200 digits do not decide", OutOfScope)
    return int(rule(middle))
def log(number: Fraction) -> tuple[Fraction, Fraction]:  # ln, and its largest error
    found = Fraction(CTX.ln(CTX.divide(number.numerator, number.denominator)))
    return found, (2 + abs(found)) * TINY * (number != 1)
def weigh(beta: Fraction, tilt: int, costs: list[int], heavy: list[int]) -> tuple[int, list[int]]:
    # F, and r of each cost (race.md, section 3); W is the nearest to 2^F e^score.
    scores, rest, (two, off) = [-beta * cost / 10**9 for cost in costs], [], log(Fraction(2))
    least = min(scores, default=Fraction(0))  # F is the least with 2^(F - B) >= e^-least
    less = [decided(lambda x: x < 0, up * two + least, up * off) for up in range(64 - tilt)]
    bits = tilt + sum(less) if tilt else 0
    for score, w in zip(scores, heavy, strict=True):
        held = max(Fraction(-90), min(score, Fraction(90)))  # beyond, W is clamped
        e = Fraction(CTX.exp(CTX.divide(held.numerator, held.denominator))) * 2**bits
        due = min(2**63 - 1, decided(round, e, e * 100 * TINY * (score != 0))) if tilt else 1
        need(w == max(1, due), "call_weight")
        ln, off = log(Fraction(w, 2**bits))
        rest.append(decided(lambda x: -(-x * 2**32 // 1), score - ln, off))
    return bits, rest
def container(raw: bytes) -> dict[str, Any]:  # the columns: artifact.md, sections 1 and 2
    base, found = 8 + int.from_bytes(raw[:8], "little"), dict[str, Any]()
    need(base <= min(65544, len(raw)), "the length of the header")
    at, header, sizes, due = base, read(raw[8:base].rstrip(b" "), "header"), {"32": 32}, {}
    need("plans_mantissa" not in header, "an artifact for a gate", OutOfScope)
    need(header.keys() <= COLUMNS.keys(), "other columns than those of a run", OutOfScope)
    need(COLUMNS.keys() - OPTIONAL <= header.keys(), "columns")
    for name in sorted(header, key=lambda one: (-TYPES[COLUMNS[one][0]][1], one)):
        form, shape = COLUMNS[name], header[name]["shape"]
        (dtype, width), dims = TYPES[form[0]], re.findall(r"[nec*]|32", form)
        for dim, its in zip(shape, dims, strict=True):
            size = dim - form.endswith("+1")
            fits = its == "*" or sizes.setdefault(its, size) == size
            need(type(dim) is int and size >= 0 and fits, f"{name}: shape")
        step, start, at = width * prod(shape[1:]), at, at + width * prod(shape)
        need(at <= len(raw) and step, f"{name}: bytes")
        rows = [raw[i : i + step] for i in range(start, at, step)] if form != "B*" else []
        wide = [int.from_bytes(x, "little", signed=form[0] == "q") for x in rows]
        found[name] = raw[start:at] if form == "B*" else rows if form == "Bn32" else wide
        found[name + " digest"], found[name + " room"] = blake(raw[start:at]).hex(), 8 * step
        due[name] = {"data_offsets": [start - base, at - base], "dtype": dtype, "shape": shape}
    text = written(due)
    need(raw[8:base] == text + b" " * (-(8 + len(text)) % 64) and at == len(raw), "header")
    return found
def up(number: int, bits: int) -> int:  # the least m' 2^e >= number, m' < 2^bits
    e = max(0, number.bit_length() - bits)
    return -(-number >> e) << e
def masses(a: Space, q: int, m: list[int]) -> list[int]:  # of the children: race.md, section 4
    lifts = [a.bits * (a.rank[q] - 1 - a.rank[p]) for _, p in a.edges[q]]
    edges = zip(a.edges[q], lifts, strict=True)
    return [a.call_weight[c] * m[p] << lift for (c, p), lift in edges] + (
        [1 << a.bits * a.rank[q]] * a.accept[q])
def recounted(a: Space, m: list[int], rule: Any) -> list[int]:  # the counts of a run
    made = list[int]()
    for q in range(len(a.edges)):
        made.append(rule(m[q], sum(masses(a, q, made))))
    return [*made, 1]
def check_artifact(raw: bytes) -> Space:  # its certificates: artifact.md, sections 3 to 5
    found = container(raw)
    a = Space(**found, digest=found["manifest digest"])
    a.said, texts, core = (read(found[x], x) for x in ("manifest", "call_text", "core"))
    members = "schema critical grammar options counts states edges calls root cost_max"
    need({*members.split(), "leaf_policy", "columns"} <= a.said.keys(), "manifest")
    need({"beta", "fraction_bits", "tilt"} <= set(a.said["options"]), "options")
    need(type(a.said["options"]) is dict, "options")
    rounds, plain = a.said["critical"] == ["rounded"], a.said["critical"] == []
    need(a.said["schema"] == "tcc.artifact/2" and (rounds or plain), "its features", OutOfScope)
    need(core["schema"] == "tcc.core/2", "its core", OutOfScope)
    need(a.call_cost_low == a.call_cost_high, "costs that are ranges", OutOfScope)
    tools, grammar, options, known = core["tools"], core["grammar"], a.said["options"], {}
    for tool, values, *amounts in core["calls"]:
        asked, told = ([x for x in tools[tool].get(member, []) if "values" in x]
                       for member in ("fields", "gives"))
        sets = [[""] * x.get("optional", False) + x["values"] for x in asked + told]
        chosen = [texts_of[i] for texts_of, i in zip(sets, values, strict=True)]
        said = [f"{named(x['name'])}={y}" for x, y in zip(asked + told, chosen, strict=True) if y]
        text = named(tools[tool]["name"]) + (f"({','.join(said)})" if said else "")
        cut = len(asked) if tools[tool].get("strict") else len(sets)
        same = (tool, *values[:cut]), prod(len(x) for x in sets[cut:])
        known[text] = [int(x) for x in amounts], tool, same
    need(all(x in known for x in texts), "C8: calls")
    calls, a.raw, n = [known[x] for x in texts], [x.encode() for x in texts], len(a.rank)
    rows = (a.call_cost_low, a.call_cost_high, a.call_price, a.call_latency_ms, a.call_epsilon)
    need([x[0] for x in calls] == [list(x) for x in zip(*rows, strict=True)], "C8: amounts")
    need(a.tools == written([tools[i] for i in sorted({x[1] for x in calls})]), "C8: tools")
    need(all(x < y for x, y in pairwise(a.raw)), "call_text")
    a.beta, tilt, a.texts = exact(options["beta"]), options["tilt"], texts
    need(a.beta >= 0 and type(tilt) is int and 0 <= tilt <= 64, "options")
    heavy, top = a.call_weight, max(a.call_cost_high, default=0)
    a.bits, rest = weigh(a.beta, tilt, a.call_cost_low, heavy)
    stated = [x for x in core["statements"] if x["kind"] in ("total", "limit")]
    limits = [x.decode() for x in sorted({limit_text(x) for x in stated})]
    root = {"grammar": grammar["name"], "limits": limits, "version": grammar["version"]}
    a.context = blake(b"tcc.ctx.root.v1\0", written(root))
    wide = {"round_counts": options["round_counts"]} if rounds else {}
    due = {"schema": "tcc.artifact/2", "critical": ["rounded"] * rounds, "states": n,
           "counts": "upper" if rounds else "exact",
           "edges": len(a.edge_call), "calls": len(calls), "grammar": grammar,
           "root": a.state_digest[-1].hex(), "cost_max": top if abs(top) <= BIG else str(top),
           "leaf_policy": {"name": "tcc.leaf", "root": root, "version": 1},
           "options": {"beta": options["beta"], "fraction_bits": a.bits, "tilt": tilt, **wide},
           "columns": {x: found[x + " digest"] for x in COLUMNS if x in found and x != "manifest"}}
    need(written(a.said) == written(due), "manifest")
    for x in (limbs := [x for x in ("plans", "race_count") if x in found]):
        need(found[x + " room"] == 64 * max(1, -(-max(found[x]).bit_length() // 64)), f"{x}: width")
    before, a.edges, a.rounds = (-1, b""), [], options["round_counts"] if rounds else 0
    a.m, room = found[limbs[-1]], 2**26 if rounds else found[limbs[-1] + " room"]
    need(len(limbs) == 1 or (a.m != a.plans and not rounds), "race_count repeats plans")
    need(rounds == ("race_mantissa" in found) == ("race_exponent" in found), "its rounded counts")
    if rounds:
        pairs = list(zip(a.race_mantissa, a.race_exponent, strict=True))
        need(sum(a.race_exponent) < 2**33, "counts that take a gigabyte", OutOfScope)
        need(type(a.rounds) is int and 1 <= a.rounds <= 63, "round_counts")
        need(all(x < 2**a.rounds and (not e or x >> a.rounds - 1) for x, e in pairs), "C4: a pair")
        a.m = [x << e for x, e in pairs]
    ids = [blake(b"\x11", len(x).to_bytes(4, "little"), x, 2 * y.to_bytes(8, "little", signed=True))
           for x, y in zip(a.raw, a.call_cost_low, strict=True)]
    need(a.edge_start[0] == 0 and a.edge_start[-1] == len(a.edge_call), "edge_start")
    for q, (low, high) in enumerate(pairwise(a.edge_start)):
        of, to, stop, d = a.edge_call[low:high], a.edge_target[low:high], a.accept[q], a.rank[q]
        edges, zero = list(zip(of, to, strict=True)), [0] * min(stop, 1)
        need(low <= high and stop <= 1 and (of or stop) and max(to, default=-1) < q, f"C1, C2: {q}")
        need(all(x < y for x, y in pairwise(of)) and max(of, default=-1) < len(calls), f"C1: {q}")
        need(d == 1 + max([a.rank[p] for p in to], default=-1), f"C2: {q}, the rank")
        a.edges.append(edges)
        longest = max([a.bits * (d - 1 - a.rank[p]) for p in to] + [a.bits * d * stop])
        need(longest < room, f"C4: {q}, a number that is too long")
        total = sum(masses(a, q, a.m))
        need(a.plans[q] == stop + sum(a.plans[p] for p in to), f"C3: {q}")
        need(a.m[q] == (up(total, a.rounds) if rounds else total), f"C4: {q}")
        least = min(zero + [a.call_cost_low[c] + a.cost_to_go[p] for c, p in edges])
        most = max(zero + [rest[c] + a.residual_to_go[p] for c, p in edges])
        need((a.cost_to_go[q], a.residual_to_go[q]) == (least, most), f"C5: {q}")
        parts = [ids[c] + a.state_digest[p] for c, p in edges]
        need(a.state_digest[q] == blake(b"\x10", bytes([stop]), *parts), f"C6: {q}")
        need(before < (before := (d, a.state_digest[q])), f"C6: {q}, the order")
        sisters = [calls[c][2] for c in of if calls[c][2][1] > 1]
        need(all(sisters.count(group) == group[1] for group in sisters), f"C9: {q}")
    need({*a.edge_target} == {*range(n - 1)} and {*a.edge_call} == {*range(len(calls))}, "C6")
    for column, last in ((a.call_weight, 2**a.bits), (a.call_cost_low, 0), (a.texts, "stop"),
                         (a.rank, 0), (a.m, 1), (a.plans, 1), (a.residual_to_go, 0)):
        column.append(last)  # of `stop`, the call and the state -1
    return a

def hashed(text: Any) -> bytes:  # of 32 bytes in hex
    need(type(text) is str and re.fullmatch("[0-9a-f]{64}", text), "32 bytes in hex")
    return bytes.fromhex(text)
def chain(raw: bytes) -> list[dict[str, Any]]:  # the records: ledger.md, section 1
    head, records = bytes(32), list[dict[str, Any]]()
    for line in (cut := raw.split(b"\n"))[:-1]:
        record = read(line, f"line {len(records) + 1}")
        need(type(record) is dict and "kind" in record, f"line {len(records) + 1} is no record")
        session = str(record.get("schema")).startswith("tcc.session/") and not records
        need(not session, "the ledger of a session: `tcc-certs validate` reads it", OutOfScope)
        link, head = record.pop("~", None), blake(head, written(record))
        records.append(record)
        need(link == head.hex(), f"line {len(records)}: the chain")
        need(record["kind"] in KINDS, f"records of another kind, {record['kind']}", OutOfScope)
        need((record["kind"] == "open") == (len(records) == 1), f"line {len(records)}: open")
    need(records and records[-1]["kind"] == "close", "a ledger without its end", OutOfScope)
    need(not cut[-1] and records[0] != records[-1], "the end")
    return records
def check_open(opened: dict[str, Any], a: Space) -> str:  # the header; the claim of a full run
    modes, options = {"exact": "RunWiseExact", "surrogate": "RunWiseSurrogate"}, a.said["options"]
    need(opened.keys() >= OWN, "line 1: open")
    started, mode, limits = opened["started_ms"], opened["mode"], opened["run_limits"]
    due = {"keys": "finalized", "recipe": "r2", "alpha": "0", "schema": "tcc.ledger/2"}
    known = not ALIEN & opened.keys() and all(opened.get(x) == y for x, y in due.items())
    known = known and mode in modes and opened["race"] in ("coupled", "rest")
    known = known and opened["privacy_scope"] in ("post_processing_only", "raw_input_dependent")
    need(known, "another mode, race, keys or recipe, a potential, a beacon, atoms", OutOfScope)
    due |= {"kind": "open", "artifact": a.digest, "grammar": a.said["grammar"]["name"],
            "grammar_version": a.said["grammar"]["version"], "root_state": a.said["root"],
            "prf_domain": "tcc.race.v1", "beta": options["beta"], "tilt": options["tilt"]}
    own = {x: opened[x] for x in {*OWN, "after"} & opened.keys()}
    need(written(opened) == written(due | own), "line 1: open")
    need(type(started) is int and 0 <= started < 2**48, "line 1: started_ms")
    need(type(limits) is dict and limits.keys() <= {"max_expansions", "max_ms"}, "run_limits")
    sizes = (opened["top"], opened["count_bits"], opened["truncate"], *limits.values())
    need(all(type(x) is int and 0 <= x <= BIG for x in sizes) and opened["top"], "line 1: sizes")
    need(exact(opened["tau"]) > 0 and 0 < exact(opened["eta"]) <= 1, "line 1: tau, eta")
    need((f := exact(opened["inflate"])) == 1 or (f > 1 and mode == "surrogate"), "inflate")
    need(mode == "surrogate" or not a.rounds, "line 1: mode")
    return modes[mode] if opened["privacy_scope"] == "post_processing_only" else "NoCert"
def check_run(records: list[dict[str, Any]], a: Space) -> str:  # replays each record
    q, root, m = len(a.edges) - 1, a.context, a.m
    opened, close = records[0], records[-1]
    most, started, limits = check_open(opened, a), opened["started_ms"], opened["run_limits"]
    def uuid(name: bytes) -> str:  # version 7, of the time and the first 16 bytes of a digest
        t, x = f"{started:012x}", name.hex()
        return f"{t[:8]}-{t[8:]}-7{x[13:16]}-{'89ab'[int(x[16], 16) % 4]}{x[17:20]}-{x[20:32]}"
    body = written({x: y for x, y in opened.items() if x != "run_id"})
    need(opened["run_id"] == uuid(blake(body)), "run_id")
    need(opened.get("after") != [] and type(opened.get("after", [])) is list, "after")
    for text in opened.get("after", []):  # the run begins after these calls
        to = [p for c, p in a.edges[q] if a.texts[c] == text]
        need(to, "after: no prefix of a plan")
        q, root = to[0], blake(b"\1", root, text.encode())
    need(opened["truncate"] <= a.rank[q], "truncate")
    need(opened["truncate"] == a.rank[q], "a cut", OutOfScope)
    need((claim := opened["claim_type"]) in ("NoCert", most), "line 1: claim_type")
    need({"seed", "opening_salt"} <= close.keys(), "a seed that is withheld", OutOfScope)
    seed, salt = hashed(close["seed"]), hashed(close["opening_salt"])
    need(opened["seed_commitment"] == blake(b"tcc.seed.v1\0", seed, salt).hex(), "seed")
    key = hmac.digest(hmac.digest(root, seed, "sha256"), b"tcc.race.v1\1", "sha256")  # HKDF

    # The counts of the run: inflated, and rounded if they are too wide (race.md, section 4).
    bits, inflate, top = opened["count_bits"], exact(opened["inflate"]), opened["top"]
    if inflate > 1:
        m = recounted(a, m, lambda count, total: max(-(-count * inflate // 1), total))
    width = (a.race_mantissa[q] if a.rounds and inflate == 1 else m[q]).bit_length()
    expected, frontier, best, expanded = list[Any](), list[Any](), list[Any](), list[Any]()
    if 0 < bits < width:
        m = recounted(a, m, lambda count, total: up(max(count, total), min(bits, 63)))
        claim = claim.replace("RunWiseExact", "RunWiseSurrogate")
        expected.append({"kind": "downgrade", "mode": "surrogate", "claim_type": claim,
                         "guards": ["CountFail"]})

    # Numbers. An arrival is a decimal t and `off`: its error is at most off * TINY * t.
    def word(purpose: bytes, name: bytes) -> int:
        return int.from_bytes(blake3(purpose + name, key=key).digest(8), "little")
    def later(t: Decimal, x: int, mass: int, rank: int) -> Decimal:  # t + E(x) / n
        e = CTX.ln(CTX.divide(2**65 - 2 * x - 1, 2**65)).copy_negate()  # 1 - U has 65 digits
        return CTX.add(t, CTX.divide(CTX.multiply(e, 2 ** (a.bits * rank)), mass))
    def less_log(t: Decimal, bound: Fraction, off: int) -> int:  # bound - ln t, in Q64.64
        found = Fraction(CTX.ln(t))
        return decided(lambda x: round(x * 2**64), bound - found, (off + 20 + abs(found)) * TINY)
    def entered(name: bytes, bound: Fraction, item: Space) -> dict[str, str]:  # the frontier
        number, late = (less_log(item.t, x, item.off) for x in (bound, Fraction(0)))
        heappush(frontier, (-number, name, item))
        return {"key_raw": shown(number), "neg_log_t": shown(late)}

    # Nodes, leaves and remainders enter the frontier (race.md, sections 5 and 18).
    def push(v: Any, at: int, t: Decimal, off: int, won: bool) -> None:  # no v: the root
        (c, to), calls, x = (-1, q), [], None
        if v:
            c, to = [*a.edges[v.q], (-1, -1)][at]
            calls = v.calls + [a.texts[c]] * (c >= 0)
            t = CTX.multiply(t, CTX.divide(a.call_weight[c], 2**a.bits))
        name = (blake(b"\1", v.name, a.raw[c]) if c >= 0 else blake(b"\2", v.name)) if v else root
        if not won:
            x = word(b"\3" if v else b"\1", name)
            t = later(t, x, m[to], a.rank[to])
        cost = v.cost + a.call_cost_low[c] if v else 0
        bound = Fraction(a.residual_to_go[to], 2**32) - a.beta * cost / 10**9
        node = Space(name=name, q=to, t=t, off=off + 8, cost=cost, calls=calls, bound=bound)
        due = {"kind": "node", "node_id": uuid(name), "ctx_digest": name.hex(),
               "ctx_repr": " ".join(calls[-3:]).encode()[-48:].decode(errors="ignore"),
               "state": to if to >= 0 else None, "U": None if x is None else str(x),
               "parent_id": v and uuid(v.name), "call": v and a.texts[c], "tie_token": v and at,
               "Nub" if a.rounds else "N": str(a.plans[to]) if a.plans[to] < 2**64 else None}
        due |= entered(name, bound, node)
        expected.append({x: y for x, y in due.items() if y is not None})
    def draw(v: Space, left: list[Any], step: int, t: Decimal, off: int) -> None:
        place, total = step.to_bytes(4, "little"), sum(mass for _, mass in left)
        x = word(b"\5", v.name + place) if step else word(b"\2", v.name)
        sums = accumulate(mass for _, mass in left)  # phantom mass is the last of them
        won = left[[(2 * x + 1) * total < 2**65 * one for one in sums].index(True)][0]
        expected.append({"node_id": uuid(v.name), "W": str(x), "winner": str(won)})
        expected[-1] |= {"kind": "draw", "step": step} if step else {"kind": "expand"}
        if opened["race"] == "coupled":
            for at, _ in left:
                if at != "phantom":
                    push(v, at, t, off, at == won)
            return
        if won != "phantom":
            push(v, won, t, off, True)
        left = [child for child in left if child[0] != won]
        if any(at != "phantom" for at, _ in left):
            place = (step + 1).to_bytes(4, "little")
            x, mass = word(b"\6", v.name + place), sum(mass for _, mass in left)
            rest = Space(q=None, v=v, left=left, step=step + 1, off=off + 8)
            rest.t = later(t, x, mass, a.rank[v.q])
            due = {"kind": "rest", "node_id": uuid(v.name), "step": step + 1, "U": str(x)}
            expected.append(due | entered(blake(b"\3", v.name, place), v.bound, rest))
    def pop() -> None:
        key, name, v = heappop(frontier)
        if v.q is None:
            draw(v.v, v.left, v.step, v.t, v.off)
        elif v.q >= 0:
            expanded.append(v)
            left = list[Any](enumerate(masses(a, v.q, m)))
            phantom = m[v.q] - sum(mass for _, mass in left)
            draw(v, left + [("phantom", phantom)] * (phantom > 0), 0, v.t, v.off)
        else:
            early = 1 - Fraction(CTX.exp(v.t.copy_negate()))
            u = decided(lambda x: x * 2**64 // 1, early, (v.off + 20) * TINY)
            best[:] = sorted([*best, (key, name, v)], key=lambda leaf: leaf[:2])
            due = {"kind": "leaf", "node_id": uuid(name), "V": shown(-key), "U_P": str(u)}
            due |= {"incumbent": shown(-best[top - 1][0])} if len(best) >= top else {}
            expected.append(due)

    # The replay (race.md, section 9), and at each record whether the run may continue.
    if begun := any(record["kind"] == "node" for record in records):
        push(None, 0, Decimal(0), 0, False)
    for at, record in enumerate(records[1:], 1):
        over = begun and (not frontier or (len(best) >= top and frontier[0][0] >= best[top - 1][0]))
        next_q = frontier[0][2].q if begun and not over else -1  # None: a rest; -1: a leaf
        capped = next_q not in (None, -1) and len(expanded) == limits.get("max_expansions")
        if record["kind"] == "recovered":
            n = record.get("dropped_bytes")
            due = {"kind": "recovered", "records": at, "dropped_bytes": n}
            need(written(record) == written(due) and type(n) is int and n >= 0, f"line {at + 1}")
        elif record is not close:
            if not expected:
                need(begun and not over and not capped, f"line {at + 1}: the run had to end")
                pop()
            need(written(record) == written(expected.pop(0)), f"line {at + 1}: not what is due")
    stops = {"precision": "", "interrupted": "", "bound" if frontier else "exhausted": "",
             "max_expansions": "CapExceeded", "max_seconds": "Timeout"}
    ways = [not over, begun and not over, over, capped, next_q != -1 and "max_ms" in limits]
    stop, may = str(close.get("stop")), {x for x, way in zip(stops, ways, strict=True) if way}
    need(stop in may, "close: stop")
    plans = [{"calls": [*v.calls], "cost": nano(v.cost), "leaf_id": name.hex(),
              "value": shown(-key)} for key, name, v in best[:top]]
    due = {"kind": "close", "stop": stop, "claim_type": claim if over else "NoCert",
           "law": "softmax", "expansions": len(expanded), "leaves": len(best), "plans": plans,
           "seed": seed.hex(), "opening_salt": salt.hex()}
    due |= {"guards": [stops[stop]]} if stops[stop] else {}
    if frontier:
        due |= {"frontier_key": shown(-frontier[0][0])}
        due |= {"gap": shown(best[top - 1][0] - frontier[0][0])} if len(best) >= top else {}
    need(not expected and written(close) == written(due), "close")
    return str(due["claim_type"])
def main(arguments: list[str]) -> int:  # prints one line; returns the exit code
    try:
        ledger, artifact = (Path(x).read_bytes() for x in arguments)
        said, code = f"VALID {check_run(chain(ledger), check_artifact(artifact))}", 0
    except Wrong as error:
        said, code = f"INVALID {error}", 1
    except OutOfScope as error:
        said, code = f"OUT OF SCOPE {error}", 2
    except (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RecursionError,
            TypeError, ValueError) as error:  # a form that this program does not read
        said, code = f"OUT OF SCOPE {type(error).__name__}: {error}", 2
    sys.stdout.write(ascii(said)[1:-1] + "\n")
    return code
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
