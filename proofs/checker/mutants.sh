#!/bin/sh
# Each line of the checking loop matters: changed, the proofs no longer check.  Needs coqc, and build/ by build.sh.
# usage: proofs/checker/mutants.sh
set -eu
cd "$(dirname "$0")"
[ -e build/checker/Strings.vo ] || { echo "build.sh first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r build/argument build/checker "$work"
cd "$work"
compile() { timeout 120 coqc -q -Q argument Tcc -Q checker Tcc.Checker "checker/$1.v" >"$1.log" 2>&1; }
cp "$OLDPWD/States.v" checker/States.v
compile States && compile Sound || { echo "the unchanged loop does not check" >&2; exit 1; }
tried=0 kept=0
while IFS='	' read -r old new; do
  awk -v old="$old" -v new="$new" '
    !done && (at = index($0, old)) { $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); done = 1 } { print }
    END { exit !done }' "$OLDPWD/States.v" >checker/States.v || { echo "not in States.v: $old" >&2; exit 1; }
  tried=$((tried + 1))
  if compile States && compile Sound; then echo "still checks: $old -> $new" >&2; kept=$((kept + 1)); fi
done <<'LINES'
(rrank r =? due_rank es)	(due_rank es <=? rrank r)
(rplans r =? due_plans (raccept r) es)	(due_plans (raccept r) es <=? rplans r)
(rmass r =? due_mass (raccept r) (rrank r) es)	(due_mass (raccept r) (rrank r) es <=? rmass r)
(rcost r =? best_of Z.min	(rcost r =? best_of Z.max
(rscore r =? best_of Z.max	(rscore r =? best_of Z.min
same o (rdigest r) (hash o (due_string (raccept r) es))	same o (rdigest r) (rdigest r)
(a <=? before) || (q <=? p)	(a <? before) || (q <=? p)
(q <=? p) then	(q <? p) then
later before r &&	true &&
(raccept r || match es with [] => false	(raccept r || match es with [] => true
(0 <? lweight c)	(0 <=? lweight c)
mark q && marked	true && marked
existsb (fun x => existsb (Z.eqb z) (f x)) l	existsb (fun x => existsb (Z.eqb z) (z :: f x)) l
LINES
echo "$tried lines changed, $kept still check"
[ "$kept" -eq 0 ]
