#!/bin/sh
# Checks every theorem from nothing, and that none rests on more than assumptions.txt says.
# usage: proofs/build.sh [--update] [--coqchk]
#   --update   writes assumptions.txt anew      --coqchk   has Coq's own checker go through the compiled proofs, too
# Needs coqc 8.16 (Debian: scripts/proofs installs it). One process; nothing is written beside the sources.
set -eu
cd "$(dirname "$0")"
proofs=$PWD
update= recheck=
for option; do
  case $option in --update) update=1 ;; --coqchk) recheck=1 ;; *) sed -n 3,4p build.sh >&2; exit 2 ;; esac
done
command -v coqc >/dev/null || { echo "no coqc: see scripts/proofs" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files=$(grep '\.v$' _CoqProject)
[ "$(echo $files | tr ' ' '\n' | sort)" = "$(ls *.v | sort)" ] || { echo "_CoqProject does not list the files" >&2; exit 1; }
if grep -nE '\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|give_up|bypass_check)\b' *.v ||
   grep -nE 'Unset (Guard Checking|Positivity Checking|Universe Checking)|type_in_type' *.v; then
  echo "taken for granted instead of proved" >&2; exit 1
fi
cp *.v "$work"
cd "$work"
begin=$(date +%s)
for file in $files; do
  from=$(date +%s)
  timeout "${LIMIT:-300}" coqc -q -Q . Tcc "$file"
  printf '%-16s %4d lines %4d s\n' "$file" "$(wc -l <"$file")" "$(($(date +%s) - from))"
done

# What each theorem assumes: one line a theorem.
theorems=$(sed -nE 's/^Theorem ([A-Za-z0-9_]+).*/\1/p' /dev/null; for file in $files; do
  sed -nE "s/^Theorem ([A-Za-z0-9_]+).*/${file%.v}.\\1/p" "$file"; done)
{ for file in $files; do echo "Require Tcc.${file%.v}."; done
  for name in $theorems; do echo "Print Assumptions Tcc.$name."; done; } >Assumed.v
timeout "${LIMIT:-300}" coqc -q -Q . Tcc Assumed.v >printed.txt
echo "$theorems" | awk '
  function flush() { if (started) { getline name < "-"; print name ": " (found == "" ? "nothing" : found) } }
  /^Closed under the global context/ { flush(); started = 1; found = ""; next }
  /^Axioms:/ { flush(); started = 1; found = ""; next }
  /^[A-Za-z]/ { split($0, part, " "); found = found (found == "" ? "" : ", ") part[1] }
  END { flush() }' printed.txt >assumed.txt
count=$(echo "$theorems" | wc -l)
[ "$(wc -l <assumed.txt)" -eq "$count" ] || { echo "some theorem was not looked at" >&2; exit 1; }
if [ -n "$update" ]; then cp assumed.txt "$proofs/assumptions.txt"; fi
diff "$proofs/assumptions.txt" assumed.txt || { echo "assumptions differ from assumptions.txt" >&2; exit 1; }
if [ -n "$recheck" ]; then coqchk -silent -Q . Tcc $(for file in $files; do echo "Tcc.${file%.v}"; done); fi
echo "$(echo "$files" | wc -l) files, $(cat $files | wc -l) lines, $count theorems: all checked in $(($(date +%s) - begin)) s"
echo "assumed beyond the definitions, as assumptions.txt says:"
sed 's/^[^:]*: //; s/, /\n/g' assumed.txt | grep -v '^nothing$' | sort | uniq -c
