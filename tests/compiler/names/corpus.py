"""Texts of the one language: the shipped grammars, and forms that they do not use."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "grammars").rglob("*.tcg"))
DESK = """\
grammar desk version "1.0"

given customer: text

tool find_order(order: text ~ "ord-[0-9]+")
  gives (owner: text, total: number 0 .. 10000, status: open | delivered | cancelled)
tool approve(order: text, amount: number 0 .. 10000) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500)
tool reply(message: text max 2000)
tool hand_over

before refund {
  let o = last(find_order(same order))
  require o.owner = session.customer because "Only the customer's own orders are refunded."
  require amount <= 100 or unused approve(same (order, amount), answer = yes)
    because "Larger refunds need an approval of exactly this amount."
}
limit sum(refund.amount) per order <= last(find_order(same order)).total across sessions
limit count(refund within 30 d) per session.customer <= 3 across sessions
before any require no hand_over
forbid reply(message ~ "(?i).*(password|secret).*")
limit depth <= 400
"""
# Every production of the grammar, the wrong forms included.
FORMS = """\
grammar forms version "1.0"
use "other.tcg"
currency "EUR/100"
shape point (x: integer, `y-z`?: number -1.5 .. 2 at "/y" )
given role: text "a" | b, n?: 1..3 or null at "/n"
given who from a.f | b.g
tool a(k: 1 | -2 | "x" | true, l: text min 1 max 3 ~ "a+", m: list min 1 distinct of (
    x: text, # a comment
    y?: flag), n: list of (text or null or integer), o: object (x: json max 3), p: object point)
  gives point (r: yes | no | *, s: path under "/etc", t: url, u: time utc, v: date "+02:00")
  : here -> there {
  cost 1 + 2 * (k - -1) .. 5 when k = 1 | 2
  price 3 latency 2 s epsilon 0.1
  doc "x" bind mcp "a" "b" quotes same strict parallel errors mean failed ~ "x"
  model m { price 2 latency 1 ms adapter "z" quality 0.5 execute { epsilon 1 }
    atom laplace(8, -1) times 2 }
  model q { execute }
}
tool b { bind python "m:f" }
tool c()
start here
goal there | `x`
rule r = a b? c* (d | e)+ - f & g{2} h{1,3} i{1,} () a(k=1|2, l=*)
plan = any*
pass resources, prompts
let x = a
let f(p, `q r`) = p + 1
before a require b
before a | b - c ask "me" within 2.5 h because "why"
before a(same k) {
  let y = 3
  require not no a or every b(it.x > 1)
  ask "boss"
  let z = 4
  require unused c
}
finally require count(a) = 1
finally { require x because "y" }
forbid a(x = 1, same (y, z))
after a owe b(k in 1 .. 2) within 2 d because "x"
limit depth <= 3
limit count(a within 1 h) per k, l <= 3 in session because "x"
limit sum(a.k) <= b.c across sessions
forbid a(x = 1 and y != 2 and z < 3 and a <= 4 and b > 5 and c >= 6 and d ~ "7" and e !~ "8")
forbid a(x in L or y not in L or z not in 1 .. 2 or p under "/a" or q not under r)
forbid a(1 <= x <= 5, every x in L, -x * 2 - (3 + y) = now, m since n since o within 3 m)
forbid a(match k { 1 | -2 | x: 3 d, "y": 4, else: last(b).c } = 30 s)
accept a b(k=1)
reject ()
expect plans = 3
expect min_cost <= -0.5
expect max_depth >= 2
expect always forbid a
expect reachable a(x = 1)
expect implies "x.tcg"
""".replace("goal there | `x`", "goal there | x")
