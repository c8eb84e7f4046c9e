#!/bin/sh
# Each line of the checking loop and of the questions about the core matters: changed, the proofs no longer check.
# usage: proofs/checker/mutants.sh        Needs coqc, and build/ by build.sh.
set -eu
cd "$(dirname "$0")"
[ -e build/checker/Core.vo ] || { echo "build.sh first" >&2; exit 2; }
here=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r build/argument build/checker "$work"
cd "$work"
compile() { timeout "${LIMIT:-600}" coqc -q -Q argument Tcc -Q checker Tcc.Checker "checker/$1.v" >"$1.log" 2>&1; }
# Of a file what has to check again with it.
checks() { for name in $1; do compile "$name" || return 1; done; }
tried=0 kept=0
mutants() {                               # usage: mutants FILE "FILES THAT HAVE TO CHECK" <lines: old TAB new
  cp "$here/$1.v" "checker/$1.v"
  checks "$2" || { echo "the unchanged $1 does not check" >&2; exit 1; }
  while IFS='	' read -r old new; do
    awk -v old="$old" -v new="$new" '
      !done && (at = index($0, old)) { $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); done = 1 } { print }
      END { exit !done }' "$here/$1.v" >"checker/$1.v" || { echo "not in $1.v: $old" >&2; exit 1; }
    tried=$((tried + 1))
    if checks "$2"; then echo "still checks: $old -> $new" >&2; kept=$((kept + 1)); fi
  done
  cp "$here/$1.v" "checker/$1.v"
}
mutants Core Core <<'LINES'
same o s (ltext c) && is_large low (llow c)	is_large low (llow c)
is_large high (lhigh c) && is_large p price	is_large p price
is_large e epsilon then Some (t, asked)	true then Some (t, asked)
same o name (gname a) && same o version (gversion a)	same o version (gversion a)
if negb (left_ok (relaxed a) ss) then 8	if false then 8
number m g =? n	n <=? number m g
(fst y =? fst x) && same o (snd y) (snd x)	(fst y =? fst x)
| None, false, Some l =>	| None, _, Some l =>
(kept (hit (len ts 0)	(kept (fun t => true || hit (len ts 0)
LINES
mutants States "States Sums Sound" <<'LINES'
(rrank r =? deepest)	(deepest <=? rrank r)
(rplans r =? plans)	(plans <=? rplans r)
(m =? low)	(low <=? m)
(rcost r =? least)	(rcost r <=? least)
(rscore r =? most)	(most <=? rscore r)
same o (rdigest r) (hash o (joined	same o (hash o (joined o [])) (hash o (joined
(a0 <? a) || (many k	(a0 <=? a) || (many k
less o s0 (rdigest x))) then	true)) then
if q <=? p then	if q <? p then
Z.max deepest (1 + rrank x)	Z.max deepest (rrank x)
Z.min least (llow c	Z.max least (llow c
later before r &&	true &&
match redges r with [] => false | _ => true end	match redges r with [] => true | _ => true end
(rcost r <? far)	true
(below <? low + off)	(below <=? low + off)
(low + off <=? Z.shiftl m (e - level))	(low <=? Z.shiftl m (e - level))
((e =? 0) || (half <=? m))	true
Z.shiftl (if m =? half	Z.shiftl (if false
if v =? 0 then 0 else 1	0
let v := weigh c * rmass x	let v := rmass x
(0 <? lweight c)	(0 <=? lweight c)
mark q && marked	true && marked
existsb (fun x => existsb (Z.eqb z) (f x)) l	existsb (fun x => existsb (Z.eqb z) (z :: f x)) l
LINES
echo "$tried lines changed, $kept still check"
[ "$kept" -eq 0 ]
