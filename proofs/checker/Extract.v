(* The checker as OCaml.  Trusted here: whole numbers are those of zarith, bool, list, option and pairs
   OCaml's, `table` an array, `hit` marks in one. *)
From Coq Require Import ZArith NArith List Extraction ExtrOcamlBasic.
From Tcc.Checker Require Import Strings States File Weights Core.
Extraction Language OCaml.

Extract Inductive positive => "Whole.t" [ "Whole.xI" "Whole.xO" "Whole.one" ] "Whole.on_positive".
Extract Inductive Z => "Whole.t" [ "Whole.zero" "" "Whole.neg" ] "Whole.on_z".
Extract Inductive N => "Whole.t" [ "Whole.zero" "" ] "Whole.on_n".
Extract Inductive nat => int [ "0" "Stdlib.succ" ] "(fun zero succ n -> if n = 0 then zero () else succ (n - 1))".
Extract Constant Pos.succ => "Whole.succ".
Extract Constant Z.add => "Whole.add".
Extract Constant Z.sub => "Whole.sub".
Extract Constant Z.mul => "Whole.mul".
Extract Constant Z.opp => "Whole.neg".
Extract Constant Z.max => "Whole.max".
Extract Constant Z.min => "Whole.min".
Extract Constant Z.eqb => "Whole.equal".
Extract Constant Z.ltb => "Whole.lt".
Extract Constant Z.leb => "Whole.leq".
Extract Constant Z.compare => "(fun a b -> let c = Whole.compare a b in if c = 0 then Eq else if c < 0 then Lt else Gt)".
Extract Constant Z.div => "Whole.div".
Extract Constant Z.modulo => "Whole.modulo".
Extract Constant Z.pow => "Whole.pow".
Extract Constant Z.log2 => "Whole.log2".
Extract Constant Z.shiftl => "Whole.shiftl".
Extract Constant Z.shiftr => "Whole.shiftr".
Extract Constant Z.to_nat => "Whole.to_nat".
Extract Constant Z.of_nat => "Whole.of_int".
Extract Constant Z.to_pos => "Whole.to_pos".

Extract Constant table => "Whole.table".
Extract Constant hit => "Whole.hit".

Extraction "checker.ml" core_verdict call_text tool_of each get_list bounds call_string decimal_of.
