#!/bin/sh
# Builds the second checker from its proofs: Coq checks them, extracts OCaml, and OCaml compiles that.
# usage: proofs/checker/build.sh [--update] [--coqchk]
#   --update   writes assumptions.txt and the page's JavaScript anew      --coqchk   has Coq's own checker go through the compiled proofs, too
# Needs coqc 8.16, OCaml, findlib, zarith and js_of_ocaml 4.0 (Debian: scripts/proofs installs them).  Writes build/ alone.
set -eu
cd "$(dirname "$0")"
here=$PWD
update= recheck=
for option; do
  case $option in --update) update=1 ;; --coqchk) recheck=1 ;; *) sed -n 3,4p "$0" >&2; exit 2 ;; esac
done
for tool in coqc ocamlfind js_of_ocaml; do
  command -v $tool >/dev/null || { echo "no $tool: see scripts/proofs" >&2; exit 2; }
done
argument="Automaton Certificates Digest"   # of the files beside this folder, those that are used
files="Strings States Sums Sound Json File OneArtifact Weights Core"
program="whole.ml checker.mli checker.ml blake3.ml strings.ml reader.ml judge.ml"
if grep -nE '\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|give_up|bypass_check)\b' *.v ||
   grep -nE 'Unset (Guard Checking|Positivity Checking|Universe Checking)|type_in_type' *.v; then
  echo "taken for granted instead of proved" >&2; exit 1
fi
begin=$(date +%s)
rm -rf build
mkdir -p build/argument build/checker
for name in $argument; do cp "../$name.v" build/argument; done
cp ./*.v build/checker
cp ./*.ml vectors.txt build

cd build
compile() { timeout "${LIMIT:-300}" coqc -q -Q argument Tcc -Q checker Tcc.Checker "$1.v"; }
for name in $argument; do compile "argument/$name"; done
for name in $files; do compile "checker/$name"; done

# What each theorem assumes: one line a theorem.
theorems=$(for name in $files; do sed -nE "s/^Theorem ([A-Za-z0-9_]+).*/$name.\\1/p" "checker/$name.v"; done)
{ for name in $files; do echo "Require Tcc.Checker.$name."; done
  for name in $theorems; do echo "Print Assumptions Tcc.Checker.$name."; done; } >checker/Assumed.v
compile checker/Assumed >printed.txt
echo "$theorems" | awk '
  function flush() { if (started) { getline name < "-"; print name ": " (found == "" ? "nothing" : found) } }
  /^Closed under the global context/ { flush(); started = 1; found = ""; next }
  /^Axioms:/ { flush(); started = 1; found = ""; next }
  /^[A-Za-z]/ { split($0, part, " "); found = found (found == "" ? "" : ", ") part[1] }
  END { flush() }' printed.txt >assumed.txt
[ "$(wc -l <assumed.txt)" -eq "$(echo "$theorems" | wc -l)" ] || { echo "some theorem was not looked at" >&2; exit 1; }
if [ -n "$update" ]; then cp assumed.txt "$here/assumptions.txt"; fi
diff "$here/assumptions.txt" assumed.txt || { echo "assumptions differ from assumptions.txt" >&2; exit 1; }
if [ -n "$recheck" ]; then
  coqchk -silent -Q argument Tcc -Q checker Tcc.Checker $(for name in $files; do echo "Tcc.Checker.$name"; done)
fi

compile checker/Extract 2>extraction.txt || { cat extraction.txt >&2; exit 1; }
link() { ocamlfind ocamlopt -inline 100 -package zarith -linkpkg -w -a $program "$1.ml" -o "$1"; }
for name in check vectors hostile; do link "$name"; done
./vectors

# The same program as JavaScript, for pages and for node: the committed file has these bytes.
page=$here/../../cli/tcc/pages/proved.js
mkdir -p js
cp checker.mli checker.ml whole.ml blake3.ml strings.ml reader.ml judge.ml "$here"/js/* js
(cd js && ocamlc -custom -w -a stubs.c z.ml $program page.ml -o page.byte &&
  js_of_ocaml --opt 3 z.js page.byte -o proved.js 2>warnings.txt) || { cat js/warnings.txt >&2; exit 1; }
if [ -n "$update" ]; then cp js/proved.js "$page"; fi
cmp js/proved.js "$page" || { echo "cli/tcc/pages/proved.js is not what the proofs extract to: --update writes it" >&2; exit 1; }
cp check tcc-proved
echo "$(cat ../*.v | wc -l) lines proved, $(cat ../*.ml | wc -l) of OCaml beside them: build/check in $(($(date +%s) - begin)) s"
