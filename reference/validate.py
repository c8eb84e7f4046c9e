"""A validator to be read: python validate.py LEDGER ARTIFACT.  0 VALID, 1 INVALID, 2 out of scope.

Written from docs/spec alone.  In scope: exact counts, the coupled race, finalized keys, r2, costs
that are points, no cut, potential, beacon or atoms, the seed in the ledger; the certificates of the
artifact too (of the core's expressions, which no run reads, nothing).  No real number is taken as
printed: each is computed with 200 digits and a bound of what it is off by, and due where both ends
round to it.  Decimal rounds +, *, /, ln and exp correctly: a step is off by TINY of its result.
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
    "call_text": "B*", "tools": "B*", "manifest": "B*"}
TYPES = {"q": ("I64", 8), "Q": ("U64", 8), "I": ("U32", 4), "B": ("U8", 1)}
RESERVED = re.compile("grammar|use|tool|rule|plan|start|goal|limit|require|forbid|accept|reject|"
                      "expect|version|any|when|before|after|with")
OWN = {"run_id", "started_ms", "seed_commitment", "claim_type", "tau", "eta", "top", "count_bits",
       "run_limits", "privacy_scope"}  # what nothing but the run says
ALIEN = {"beacon", "client_nonce", "delta", "atoms", "controller", "adapters", "account"}
class OutOfScope(Exception): ...  # a rule that this program does not have
def need(holds: object, what: str, error: type[Exception] = ValueError) -> None:
    if not holds:
        raise error(what)
def blake(*parts: bytes) -> bytes:  # BLAKE3
    return blake3(b"".join(parts)).digest()
def written(value: Any) -> bytes:  # Canonical JSON (artifact.md, section 6)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
def read(raw: bytes, what: str) -> Any:  # the value of canonical bytes
    value = json.loads(raw)
    need(written(value) == raw, f"{what} is not canonical")
    return value
def exact(text: str) -> Fraction:  # An exact decimal in its one form
    need(re.fullmatch(r"0|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]|-?[1-9][0-9]*", text), f"decimal {text}")
    return Fraction(text)
def nano(value: int) -> str:  # The same of nano-units
    text = f"{abs(value) // 10**9}.{abs(value) % 10**9:09}".rstrip("0").rstrip(".")
    return "-" * (value < 0) + text
def shown(value: int) -> str:  # Q64.64
    need(-(2**127) <= value < 2**127, "a number is clamped", OutOfScope)
    number = round(Fraction(abs(value) * 10**20, 2**64))
    return f"{'-' * (value < 0)}{number // 10**20}.{number % 10**20:020}"
def named(name: str) -> str:  # core.md, section 2
    bare = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not RESERVED.fullmatch(name)
    return name if bare else written(name).decode()
def limit_text(limit: dict[str, Any], tools: list[Any]) -> bytes:  # core.md, section 4
    kind, value, of = limit["kind"], int(limit["value"]), limit.get("of", {"tool": 0})
    if kind in ("uses", "sum"):
        tool, params = named(tools[of["tool"]]["name"]), tools[of["tool"]]["params"]
        where = [f"{named(params[p]['name'])}={'|'.join(params[p]['values'][i] for i in chosen)}"
                 for p, chosen in of.get("where", [])]
        inside = f"({','.join(where)})" if where else ""
        kind += f"({tool}{inside if kind == 'uses' else '.' + named(params[of['param']]['name'])})"
    plain = limit["kind"] in ("depth", "uses", "price", "latency")
    return f"{kind}{limit['op']}{value if plain else nano(value)}".encode()
def decided(rule: Any, middle: Fraction, off: Fraction) -> int:
    # What a rule makes of a real number: both ends of its enclosure have to say the same.
    need(rule(middle - off) == rule(middle + off), "200 digits do not decide", OutOfScope)
    return int(rule(middle))
def log(number: Fraction) -> tuple[Fraction, Fraction]:  # ln, and what it is off by
    found = Fraction(CTX.ln(CTX.divide(number.numerator, number.denominator)))
    return found, (2 + abs(found)) * TINY * (number != 1)
def weigh(beta: Fraction, tilt: int, costs: list[int], heavy: list[int]) -> tuple[int, list[int]]:
    # F, and r of each cost (race.md, section 3); W is the nearest to 2^F e^score.
    scores, rest, (two, off) = [-beta * cost / 10**9 for cost in costs], [], log(Fraction(2))
    least = min(scores, default=Fraction(0))  # F is the least with 2^(F - B) >= e^-least
    less = [decided(lambda x: x < 0, up * two + least, up * off) for up in range(64 - tilt)]
    bits = tilt + sum(less) if tilt else 0
    for score, w in zip(scores, heavy, strict=True):
        held = max(Fraction(-90), min(score, Fraction(90)))  # beyond, W is its least or its most
        e = Fraction(CTX.exp(CTX.divide(held.numerator, held.denominator))) * 2**bits
        due = min(2**63 - 1, decided(round, e, e * 100 * TINY * (score != 0))) if tilt else 1
        need(w == max(1, due), "call_weight")
        ln, off = log(Fraction(w, 2**bits))
        rest.append(decided(lambda x: -(-x * 2**32 // 1), score - ln, off))
    return bits, rest
def container(raw: bytes) -> dict[str, Any]:  # the columns: artifact.md, sections 1 and 2
    base, found = 8 + int.from_bytes(raw[:8], "little"), dict[str, Any]()
    at, header, sizes, due = base, read(raw[8:base].rstrip(b" "), "header"), {"32": 32}, {}
    need("plans_mantissa" not in header, "an artifact for a gate", OutOfScope)
    need(base <= 65544 and COLUMNS.keys() - {"race_count"} <= header.keys(), "columns")
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
def check_artifact(raw: bytes) -> Space:  # its certificates: artifact.md, sections 3 to 5
    found = container(raw)
    a = Space(**found, digest=found["manifest digest"])
    a.said, texts, core = (read(found[x], x) for x in ("manifest", "call_text", "core"))
    need(a.said["version"] == [1, 0] and not a.said["critical"], "its features", OutOfScope)
    need(a.call_cost_low == a.call_cost_high, "costs that are ranges", OutOfScope)
    tools, grammar, options, known = core["tools"], core["grammar"], a.said["options"], {}
    for tool, values, *amounts in core["calls"]:
        params = list(zip(tools[tool]["params"], values, strict=True))
        said = [f"{named(p['name'])}={p['values'][i]}" for p, i in params if p["values"][i]]
        text = named(tools[tool]["name"]) + (f"({','.join(said)})" if said else "")
        seen = [p for p, _ in params if p.get("observed")] if tools[tool].get("strict") else []
        same = tool, *[i for p, i in params if p not in seen]
        known[text] = [int(x) for x in amounts], tool, (same, prod(len(p["values"]) for p in seen))
    calls, a.raw, n = [known[x] for x in texts], [x.encode() for x in texts], len(a.rank)
    rows = (a.call_cost_low, a.call_cost_high, a.call_price, a.call_latency_ms, a.call_epsilon)
    need([x[0] for x in calls] == [list(x) for x in zip(*rows, strict=True)], "C8: amounts")
    need(a.tools == written([tools[i] for i in sorted({x[1] for x in calls})]), "C8: tools")
    need(all(x < y for x, y in pairwise(a.raw)), "call_text")
    a.beta, tilt, a.texts = exact(options["beta"]), options["tilt"], texts
    need(a.beta >= 0 and type(tilt) is int and 0 <= tilt <= 64, "options")
    heavy, top = a.call_weight, max(a.call_cost_high, default=0)
    a.bits, rest = weigh(a.beta, tilt, a.call_cost_low, heavy)
    limits = [x.decode() for x in sorted({limit_text(x, tools) for x in core["limits"]})]
    root = {"grammar": grammar["name"], "limits": limits, "version": grammar["version"]}
    a.context = blake(b"tcc.ctx.root.v1\0", written(root))
    due = {"format": "tcca", "version": [1, 0], "critical": [], "counts": "exact", "states": n,
           "edges": len(a.edge_call), "calls": len(calls), "grammar": grammar,
           "root": a.state_digest[-1].hex(), "cost_max": top if abs(top) <= BIG else str(top),
           "leaf_policy": {"name": "tcc.leaf", "root": root, "version": 1},
           "options": {"beta": options["beta"], "fraction_bits": a.bits, "tilt": tilt},
           "columns": {x: found[x + " digest"] for x in COLUMNS if x in found and x != "manifest"}}
    need(written(a.said) == written(due), "manifest")
    wide, before, a.edges = [x for x in ("plans", "race_count") if x in found], (-1, b""), []
    for x in wide:
        need(found[x + " room"] == 64 * max(1, -(-max(found[x]).bit_length() // 64)), f"{x}: width")
    a.m, room = found[wide[-1]], found[wide[-1] + " room"]
    need(len(wide) == 1 or a.m != a.plans, "race_count repeats plans")
    ids = [blake(b"\x11", len(x).to_bytes(4, "little"), x, 2 * y.to_bytes(8, "little", signed=True))
           for x, y in zip(a.raw, a.call_cost_low, strict=True)]
    need(a.edge_start[0] == 0 and a.edge_start[-1] == len(a.edge_call), "edge_start")
    for q, (low, high) in enumerate(pairwise(a.edge_start)):
        of, to, stop, d = a.edge_call[low:high], a.edge_target[low:high], a.accept[q], a.rank[q]
        edges, zero = list(zip(of, to, strict=True)), [0] * min(stop, 1)
        need(low <= high and stop <= 1 and (of or stop) and max(to, default=-1) < q, f"C1, C2: {q}")
        need(all(x < y for x, y in pairwise(of)) and max(of, default=-1) < len(calls), f"C1: {q}")
        need(d == 1 + max([a.rank[p] for p in to], default=-1), f"C2: {q}, the rank")
        lifts = [a.bits * (d - 1 - a.rank[p]) for p in to]
        need(max([*lifts, a.bits * d * stop]) < room, f"C4: {q}, a number that is too long")
        masses = [heavy[c] * a.m[p] << up for (c, p), up in zip(edges, lifts, strict=True)]
        masses += [1 << a.bits * d for _ in zero]
        need((a.plans[q], a.m[q]) == (stop + sum(a.plans[p] for p in to), sum(masses)), f"C3: {q}")
        least = min(zero + [a.call_cost_low[c] + a.cost_to_go[p] for c, p in edges])
        most = max(zero + [rest[c] + a.residual_to_go[p] for c, p in edges])
        need((a.cost_to_go[q], a.residual_to_go[q]) == (least, most), f"C5: {q}")
        parts = [ids[c] + a.state_digest[p] for c, p in edges]
        need(a.state_digest[q] == blake(b"\x10", bytes([stop]), *parts), f"C6: {q}")
        need(before < (before := (d, a.state_digest[q])), f"C6: {q}, the order")
        sisters = [calls[c][2] for c in of if calls[c][2][1] > 1]
        need(all(sisters.count(group) == group[1] for group in sisters), f"C9: {q}")
        a.edges.append((edges, masses))
    need({*a.edge_target} == {*range(n - 1)} and {*a.edge_call} == {*range(len(calls))}, "C6")
    for column, last in ((a.call_weight, 2**a.bits), (a.call_cost_low, 0), (a.texts, "stop"),
                         (a.rank, 0), (a.m, 1), (a.plans, 1), (a.residual_to_go, 0)):
        column.append(last)  # of `stop`, the call and the state -1
    return a

def check_run(raw: bytes, a: Space) -> str:  # a replay: each record is the one that is due
    head, records = bytes(32), list[dict[str, Any]]()
    for line in (cut := raw.split(b"\n"))[:-1]:
        records.append(record := read(line, f"line {len(records) + 1}"))
        link, head = record.pop("~"), blake(head, written(record))
        need(link == head.hex(), f"line {len(records)}: the chain")
    need(records and records[-1]["kind"] == "close", "a ledger without its end", OutOfScope)
    opened, close, q, root = records[0], records[-1], len(a.edges) - 1, a.context
    started, after, limits = opened["started_ms"], opened.get("after", []), opened["run_limits"]
    need(not cut[-1] and type(started) is int and 0 <= started < 2**48, "the end, or started_ms")
    def uuid(name: bytes) -> str:  # version 7, of the time and the first 16 bytes of a digest
        t, x = f"{started:012x}", name.hex()
        return f"{t[:8]}-{t[8:]}-7{x[13:16]}-{'89ab'[int(x[16], 16) % 4]}{x[17:20]}-{x[20:32]}"
    body = written({x: y for x, y in opened.items() if x != "run_id"})
    need(opened["run_id"] == uuid(blake(body)), "run_id")
    for text in after:
        q, root = dict(a.edges[q][0])[a.raw.index(text.encode())], blake(b"\1", root, text.encode())
    due = {"mode": "exact", "race": "coupled", "keys": "finalized", "recipe": "r2", "alpha": "0",
           "inflate": "1", "truncate": a.rank[q], "schema": "tcc.ledger/1.0"}
    same = not ALIEN & opened.keys() and all(opened[x] == y for x, y in due.items())
    need(same, "another mode, race, keys or recipe, a cut, a beacon, atoms", OutOfScope)
    due |= {"kind": "open", "artifact": a.digest, "grammar": a.said["grammar"]["name"],
            "grammar_version": a.said["grammar"]["version"], "root_state": a.said["root"],
            "prf_domain": "tcc.race.v1", "beta": a.said["options"]["beta"],
            "tilt": a.said["options"]["tilt"], **({"after": after} if after else {})}
    need(written(opened) == written(due | {x: opened[x] for x in OWN}), "line 1: open")
    top, bits, claim = opened["top"], opened["count_bits"], opened["claim_type"]
    most = {"post_processing_only": "RunWiseExact", "raw_input_dependent": "NoCert"}
    need(claim in ("NoCert", most[opened["privacy_scope"]]), "line 1: claim_type")
    need(all(type(x) is int and 0 <= x <= BIG for x in (top, bits, *limits.values())), "line 1")
    need(top and exact(opened["tau"]) > 0 and 0 < exact(opened["eta"]) <= 1, "line 1: open")
    need(limits.keys() <= {"max_expansions", "max_ms"}, "line 1: run_limits")
    need(not 0 < bits < a.m[q].bit_length(), "counts wider than count_bits", OutOfScope)
    need({"seed", "opening_salt"} <= close.keys(), "a seed that is withheld", OutOfScope)
    seed, salt = bytes.fromhex(close["seed"]), bytes.fromhex(close["opening_salt"])
    committed = blake(b"tcc.seed.v1\0", seed, salt).hex()
    need(len(seed) == len(salt) == 32 and opened["seed_commitment"] == committed, "seed")
    key = hmac.digest(hmac.digest(root, seed, "sha256"), b"tcc.race.v1\1", "sha256")  # HKDF
    def word(purpose: bytes, name: bytes) -> int:
        return int.from_bytes(blake3(purpose + name, key=key).digest(8), "little")
    def less_log(t: Decimal, bound: Fraction, d: int) -> int:  # bound - ln t, in Q64.64
        found = Fraction(CTX.ln(t))  # t is off by 8 (d + 1) TINY of itself at most
        return decided(lambda x: round(x * 2**64), bound - found, (8 * d + 20 + abs(found)) * TINY)
    def push(name: bytes, q: int, up: Any, c: int, at: int, x: int | None) -> None:
        d, cost = (up.d + 1, up.cost + a.call_cost_low[c]) if up else (0, 0)
        t = CTX.multiply(up.t, CTX.divide(a.call_weight[c], 2**a.bits)) if up else Decimal(0)
        if x is not None:  # E(x) / n; of its 1 - U nothing is lost in 65 digits
            e = CTX.ln(CTX.divide(2**65 - 2 * x - 1, 2**65)).copy_negate()
            t = CTX.add(t, CTX.divide(CTX.multiply(e, 2 ** (a.bits * a.rank[q])), a.m[q]))
        calls = up.calls + [a.texts[c]] * (c >= 0) if up else []
        key = less_log(t, Fraction(a.residual_to_go[q], 2**32) - a.beta * cost / 10**9, d)
        due = {"kind": "node", "node_id": uuid(name), "ctx_digest": name.hex(),
               "ctx_repr": " ".join(calls[-3:]).encode()[-48:].decode(errors="ignore"),
               "key_raw": shown(key), "neg_log_t": shown(less_log(t, Fraction(0), d)),
               "state": q if q >= 0 else None, "U": None if x is None else str(x),
               "parent_id": up and uuid(up.name), "call": up and a.texts[c], "tie_token":
               at if up else None, "N": str(a.plans[q]) if a.plans[q] < 2**64 else None}
        expected.append({x: y for x, y in due.items() if y is not None})
        heappush(frontier, (-key, name, Space(name=name, q=q, t=t, d=d, cost=cost, calls=calls)))
    def pop() -> None:
        key, name, v = heappop(frontier)
        if v.q < 0:
            early = 1 - Fraction(CTX.exp(v.t.copy_negate()))
            u = decided(lambda x: x * 2**64 // 1, early, (8 * v.d + 20) * TINY)
            best[:] = sorted([*best, (key, name, v)], key=lambda one: one[:2])
            y = {"kind": "leaf", "node_id": uuid(name), "V": shown(-key), "U_P": str(u)}
            expected.append(y | ({"incumbent": shown(-best[top - 1][0])} if best[top - 1:] else {}))
            return
        (edges, masses), x = a.edges[v.q], word(b"\2", name)
        won = [(2 * x + 1) * a.m[v.q] < 2**65 * edge for edge in accumulate(masses)].index(True)
        expanded.append(v)
        expected.append({"kind": "expand", "node_id": uuid(name), "W": str(x), "winner": f"{won}"})
        for at, (c, to) in enumerate([*edges, (-1, -1)][: len(masses)]):
            child = blake(b"\2", name) if c < 0 else blake(b"\1", name, a.raw[c])
            push(child, to, v, c, at, None if at == won else word(b"\3", child))
    expected, frontier, best, expanded = list[Any](), list[Any](), list[Any](), list[Any]()
    if begun := len(records) > 2:
        push(root, q, None, -1, 0, word(b"\1", root))
    for at, record in enumerate(records[1:], 1):
        over = begun and (not frontier or (len(best) >= top and frontier[0][0] >= best[top - 1][0]))
        node = begun and not over and frontier[0][2].q >= 0
        capped = node and len(expanded) == limits.get("max_expansions")
        if record["kind"] == "recovered":
            n = record["dropped_bytes"]
            due = {"kind": "recovered", "records": at, "dropped_bytes": n}
            need(written(record) == written(due) and type(n) is int and n >= 0, f"line {at + 1}")
        elif record is not close:
            if not expected:
                need(not over and not capped, f"line {at + 1}: the run had to end")
                pop()
            need(written(record) == written(expected.pop(0)), f"line {at + 1}: not what is due")
    stops = {"precision": "", "interrupted": "", "bound" if frontier else "exhausted": "",
             "max_expansions": "CapExceeded", "max_seconds": "Timeout"}
    ways = [not over, begun and not over, over, capped, node and "max_ms" in limits]
    guard = dict(x for x, y in zip(stops.items(), ways, strict=True) if y)[close["stop"]]
    plans = [{"calls": [*v.calls], "cost": nano(v.cost), "leaf_id": name.hex(),
              "value": shown(-key)} for key, name, v in best[:top]]
    due = {"kind": "close", "stop": close["stop"], "claim_type": claim if over else "NoCert",
           "law": "softmax", "expansions": len(expanded), "leaves": len(best), "plans": plans,
           "seed": seed.hex(), "opening_salt": salt.hex(), **({"guards": [guard]} if guard else {})}
    if frontier:
        due |= {"frontier_key": shown(-frontier[0][0])}
        due |= {"gap": shown(best[top - 1][0] - frontier[0][0])} if len(best) >= top else {}
    need(not expected and written(close) == written(due), "close")
    return str(due["claim_type"])
def main(arguments: list[str]) -> int:  # says what it finds; the exit code
    try:
        ledger, artifact = (Path(x).read_bytes() for x in arguments)
        said, code = f"VALID {check_run(ledger, check_artifact(artifact))}", 0
    except OutOfScope as error:
        said, code = f"OUT OF SCOPE {error}", 2
    except (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RecursionError,
            TypeError, ValueError) as error:  # whatever a hostile file leads to
        said, code = f"INVALID {type(error).__name__}: {error}", 1
    sys.stdout.write(ascii(said)[1:-1] + "\n")
    return code
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
