(* hostile FILE RUNS: a reader that lies.  Of an honest file it claims what is a little else, of its core too; VALID is said
   only where the claim is what the file holds (OneArtifact.v: one_verdict; Json.v: one_value).  Exit 1 where another claim passes. *)
module Whole_numbers = Z
open Checker
module Z = Whole_numbers
let read path = let c = open_in_bin path in let s = really_input_string c (in_channel_length c) in close_in c; s
let any = Random.int
let some l = List.nth l (any (List.length l))
let at i f l = List.mapi (fun j x -> if i = j then f x else x) l
let one f l = if l = [] then l else at (any (List.length l)) f l
let dropped l = if l = [] then l else let i = any (List.length l) in List.filteri (fun j _ -> i <> j) l
let twice l = if l = [] then l else let i = any (List.length l) in List.concat (List.mapi (fun j x -> if i = j then [x; x] else [x]) l)
let swapped l = let a = Array.of_list l in let n = Array.length a in
  if n > 1 then begin let i = any n and j = any n in let x = a.(i) in a.(i) <- a.(j); a.(j) <- x end; Array.to_list a
let number z = match any 7 with
  | 0 -> Z.succ z | 1 -> Z.pred z | 2 -> Z.neg z | 3 -> Z.add z (Z.shift_left Z.one 64) | 4 -> Z.add z (Z.shift_left Z.one 32)
  | 5 -> Z.of_int (any 1000) | _ -> Z.zero
let text s = let n = String.length s in match any 4 with
  | 0 -> s ^ "\000" | 1 -> String.sub s 0 (max 0 (n - 1)) | 2 -> String.map (fun c -> if any 8 = 0 then Char.chr (any 256) else c) s
  | _ -> if n = 0 then "x" else String.mapi (fun i c -> if i = any n then Char.chr (Char.code c lxor 1) else c) s
let edge (a, p) = match any 3 with 0 -> (number a, p) | 1 -> (a, number p) | _ -> (p, a)
let listed f l = match any 4 with 0 -> one f l | 1 -> dropped l | 2 -> twice l | _ -> swapped l
let row r = match any 9 with
  | 8 -> { r with rexponent = number r.rexponent }
  | 0 -> { r with raccept = not r.raccept } | 1 -> { r with rrank = number r.rrank } | 2 -> { r with rplans = number r.rplans }
  | 3 -> { r with rmass = number r.rmass } | 4 -> { r with rcost = number r.rcost } | 5 -> { r with rscore = number r.rscore }
  | 6 -> { r with rdigest = text r.rdigest } | _ -> { r with redges = listed edge r.redges }
let line c = match any 6 with
  | 0 -> { c with ltext = text c.ltext } | 1 -> { c with llow = number c.llow } | 2 -> { c with lhigh = number c.lhigh }
  | 3 -> { c with lweight = number c.lweight } | 4 -> { c with lresidual = number c.lresidual } | _ -> { c with lkey = text c.lkey }
let claim a = match any 16 with
  | 14 -> { a with counted = some [Exactly; Gated; Rounded (Z.of_int 63); match a.counted with Rounded b -> Rounded (number b) | s -> s] }
  | 15 -> { a with ambiguous = not a.ambiguous }
  | 0 -> { a with gname = text a.gname } | 1 -> { a with gversion = text a.gversion } | 2 -> { a with beta = text a.beta }
  | 3 -> { a with fraction_bits = number a.fraction_bits } | 4 -> { a with tilt = number a.tilt } | 5 -> { a with limits = listed text a.limits }
  | 6 -> { a with relaxed = (match a.relaxed with None -> Some [Z.of_int (any 3)] | Some l -> some [None; Some (listed number l)]) }
  | 7 -> { a with prices = listed number a.prices } | 8 -> { a with latencies = listed number a.latencies }
  | 9 -> { a with epsilons = listed number a.epsilons } | 10 -> { a with core = text a.core } | 11 -> { a with tools = text a.tools }
  | 12 -> { a with lines = listed line a.lines } | _ -> { a with rows = listed row a.rows }
let rec other v = match v with
  | VNum z -> VNum (number z) | VStr s -> VStr (text s) | VFlag b -> VFlag (not b) | VArr l -> VArr (listed other l)
  | VObj l -> VObj (listed (fun (k, v) -> if any 4 = 0 then (text k, v) else (k, other v)) l)
let core c = match any 3 with
  | 0 -> { c with cvalue = other c.cvalue } | 1 -> { c with places = listed number c.places } | _ -> { c with firsts = listed number c.firsts }
(* What the bytes hold: all but the residuals and keys of calls. *)
let held a = { a with lines = List.map (fun c -> { c with lresidual = Z.zero; lkey = "" }) a.lines }
let () =
  Random.init 20261124;
  let file = read Sys.argv.(1) and runs = int_of_string Sys.argv.(2) in
  let honest, said = Reader.artifact file in
  let valid (a, c) = match core_verdict Strings.ours file a c with v, _ -> Z.sign v = 0 | exception _ -> false in
  if not (valid (honest, said)) then (print_endline "the honest claim is not VALID"; exit 1);
  let passed = ref 0 in
  for _ = 1 to runs do
    let rec lies n a = if n = 0 then a else lies (n - 1) (claim a) in
    let a = lies (some [0; 1; 1; 1; 2]) honest and c = some [said; said; core said] in
    if valid (a, c) then begin
      incr passed;
      if held a <> held honest || c.cvalue <> said.cvalue then (print_endline "VALID for another artifact"; exit 1)
    end
  done;
  Printf.printf "%d claims about %s: %d were what it holds and VALID, none of the others was\n" runs (Filename.basename Sys.argv.(1)) !passed
