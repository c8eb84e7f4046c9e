(* The bytes of an artifact, as a function of what it holds, and the check of a file.
   docs/spec/artifact.md, sections 1 to 4 and 6; deterministic artifacts, counts not rounded.

   No parser is trusted: whoever calls hands over a file and what they say it holds.  `encode` writes that down
   as the specification has it, and the file has to be these bytes.  So digests of columns, widths, offsets and
   the order of members are not rules here but parts of one definition. *)

From Coq Require Import List ZArith Lia Bool String Ascii NArith.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import States Sound.
Import ListNotations.
Local Open Scope Z_scope.

Definition ascii_bytes (s : string) : bytes := map (fun c => Z.of_N (N_of_ascii c)) (list_ascii_of_string s).
Notation "$ s" := (ltac:(let y := eval compute in (ascii_bytes s) in exact y)) (at level 0, s at level 0, only parsing).

(* Lists of many items, without a stack. *)
Fixpoint collect {X} (emit : X -> bytes) (l : list X) (done : bytes) : bytes :=
  match l with [] => rev_append done [] | x :: l => collect emit l (rev_append (emit x) done) end.
Fixpoint len {X} (l : list X) (n : Z) : Z := match l with [] => n | _ :: l => len l (n + 1) end.

Lemma collect_flat {X} (emit : X -> bytes) l done : collect emit l done = rev done ++ flat_map emit l.
Proof.
  revert done. induction l as [|x l IH]; intros done; simpl.
  - rewrite rev_append_rev. reflexivity.
  - rewrite IH, rev_append_rev, rev_app_distr, rev_involutive, app_assoc. reflexivity.
Qed.
Lemma len_length {X} (l : list X) n : len l n = n + Z.of_nat (List.length l).
Proof. revert n. induction l as [|x l IH]; intros n; simpl List.length; cbn [len]; [lia|]. rewrite IH. lia. Qed.

(* Canonical JSON; `done` is what stands before, last byte first. *)
Inductive json := Num (z : Z) | Str (s : bytes) | Arr (l : list json) | Obj (l : list (bytes * json)).
Fixpoint digits (n : nat) (z : Z) (done : bytes) : bytes :=
  match n with
  | O => done
  | S n => let done := (48 + z mod 10) :: done in if z / 10 =? 0 then done else digits n (z / 10) done
  end.
Definition decimal (z : Z) : bytes := if z <? 0 then 45 :: digits 20 (- z) [] else digits 20 z [].
Definition hex_digit (z : Z) : Z := if z <? 10 then 48 + z else 87 + z.
Definition escaped (b : Z) : bytes :=
  if b =? 34 then [92; 34] else if b =? 92 then [92; 92] else if 32 <=? b then [b] else
  if b =? 8 then [92; 98] else if b =? 9 then [92; 116] else if b =? 10 then [92; 110] else
  if b =? 12 then [92; 102] else if b =? 13 then [92; 114] else
  [92; 117; 48; 48; hex_digit (b / 16); hex_digit (b mod 16)].
Definition put_text (s : bytes) (done : bytes) : bytes :=
  34 :: fold_left (fun d b => rev_append (escaped b) d) s (34 :: done).
Fixpoint put (j : json) (done : bytes) : bytes :=
  match j with
  | Num z => rev_append (decimal z) done
  | Str s => put_text s done
  | Arr l => 93 :: (fix go first l done := match l with [] => done
               | j :: l => go false l (put j (if first then done else 44 :: done)) end) true l (91 :: done)
  | Obj l => 125 :: (fix go first l done := match l with [] => done
               | (k, j) :: l => go false l (put j (58 :: put_text k (if first then done else 44 :: done))) end)
               true l (123 :: done)
  end.
Definition print (j : json) : bytes := rev_append (put j []) [].
Definition hex (b : bytes) : bytes := flat_map (fun z => [hex_digit (z / 16); hex_digit (z mod 16)]) b.
Definition large (z : Z) : json := if (z <? 2 ^ 53) && (- 2 ^ 53 <? z) then Num z else Str (decimal z).

(* What an artifact holds. *)
Record artifact := {
  gname : bytes; gversion : bytes; beta : bytes; fraction_bits : Z; tilt : Z;
  limits : list bytes; relaxed : option (list Z * list Z * list Z);
  lines : list line; prices : list Z; latencies : list Z; epsilons : list Z;
  rows : list States.row; core : bytes; tools : bytes
}.

Fixpoint starts (at_ : Z) (l : list States.row) (done : list Z) : list Z :=
  match l with
  | [] => rev_append (at_ :: done) []
  | r :: l => starts (len (redges r) at_) l (at_ :: done)
  end.
Definition edge_number (l : list States.row) : Z := fold_left (fun n r => len (redges r) n) l 0.
Fixpoint top (f : States.row -> Z) (l : list States.row) (m : Z) : Z :=
  match l with [] => m | r :: l => top f l (Z.max m (f r)) end.
(* The least number of limbs, at least one. *)
Definition bit_length (z : Z) : Z := if z =? 0 then 0 else Z.log2 z + 1.
Definition width (f : States.row -> Z) (l : list States.row) : Z := Z.max 1 ((bit_length (top f l 0) + 63) / 64).
Definition own_masses (a : artifact) : bool := negb (forallb (fun r => rmass r =? rplans r) (rows a)).
Definition room_of (a : artifact) : Z := 64 * width (if own_masses a then rmass else rplans) (rows a).
Definition cost_max (a : artifact) : Z := fold_left (fun m c => Z.max m (lhigh c)) (tl (lines a)) (match lines a with [] => 0 | c :: _ => lhigh c end).
Fixpoint last_row (l : list States.row) (d : bytes) : bytes := match l with [] => d | r :: l => last_row l (rdigest r) end.

(* A column: its name, bytes of an item, dtype, shape, data. *)
Record column := { cname : bytes; citem : Z; cdtype : bytes; cshape : list Z; cdata : bytes }.
Definition col n i t sh d := {| cname := n; citem := i; cdtype := t; cshape := sh; cdata := d |}.

Section File.
Variable H : bytes -> bytes.

Definition i64 := $"I64".  Definition u64 := $"U64".  Definition u32 := $"U32".  Definition u8 := $"U8".
Definition calls_col (c : Z) n t (f : line -> Z) (l : list line) := col n 8 t [c] (collect (fun x => le 8 (f x)) l []).
Definition nums_col (c : Z) n (l : list Z) := col n 8 u64 [c] (collect (le 8) l []).
Definition raw_col n (d : bytes) := col n 1 u8 [len d 0] d.

(* Every column but the manifest: those of 8 bytes, of 4, of 1; by name. *)
Definition eights (a : artifact) : list column :=
  let c := len (lines a) 0 in let n := len (rows a) 0 in let w := width rplans (rows a) in let w' := width rmass (rows a) in
  [calls_col c $"call_cost_high" i64 lhigh (lines a); calls_col c $"call_cost_low" i64 llow (lines a);
   nums_col c $"call_epsilon" (epsilons a); nums_col c $"call_latency_ms" (latencies a); nums_col c $"call_price" (prices a);
   calls_col c $"call_weight" u64 lweight (lines a);
   col $"cost_to_go" 8 i64 [n] (collect (fun r => le 8 (rcost r)) (rows a) []);
   col $"edge_start" 8 u64 [n + 1] (collect (le 8) (starts 0 (rows a) []) []);
   col $"plans" 8 u64 [n; w] (collect (fun r => le (Z.to_nat (8 * w)) (rplans r)) (rows a) [])] ++
  (if own_masses a then [col $"race_count" 8 u64 [n; w'] (collect (fun r => le (Z.to_nat (8 * w')) (rmass r)) (rows a) [])] else []) ++
  [col $"residual_to_go" 8 i64 [n] (collect (fun r => le 8 (rscore r)) (rows a) [])].
Definition fours (a : artifact) : list column :=
  let n := len (rows a) 0 in let e := edge_number (rows a) in
  [col $"edge_call" 4 u32 [e] (collect (fun r => flat_map (fun e => le 4 (fst e)) (redges r)) (rows a) []);
   col $"edge_target" 4 u32 [e] (collect (fun r => flat_map (fun e => le 4 (snd e)) (redges r)) (rows a) []);
   col $"rank" 4 u32 [n] (collect (fun r => le 4 (rrank r)) (rows a) [])].
Definition ones_before (a : artifact) : list column :=
  let n := len (rows a) 0 in
  [col $"accept" 1 u8 [n] (collect (fun r => [if raccept r then 1 else 0]) (rows a) []);
   raw_col $"call_text" (print (Arr (map (fun c => Str (ltext c)) (lines a)))); raw_col $"core" (core a)].
Definition ones_after (a : artifact) : list column :=
  [col $"state_digest" 1 u8 [len (rows a) 0; 32] (collect rdigest (rows a) []); raw_col $"tools" (tools a)].

Fixpoint insert (c : column) (l : list column) : list column :=
  match l with [] => [c] | d :: m => if less (cname c) (cname d) then c :: l else d :: insert c m end.
Definition by_name (l : list column) : list column := fold_right insert [] l.

Definition manifest (a : artifact) (columns : list column) : json :=
  let upper := match relaxed a with Some _ => true | None => false end in
  Obj ([($"calls", Num (len (lines a) 0));
    ($"columns", Obj (map (fun c => (cname c, Str (hex (H (cdata c))))) (by_name columns)));
    ($"cost_max", large (cost_max a));
    ($"counts", Str (if upper then $"upper" else $"exact"));
    ($"critical", Arr (if upper then [Str $"relaxed"] else []));
    ($"edges", Num (edge_number (rows a)));
    ($"format", Str $"tcca");
    ($"grammar", Obj [($"name", Str (gname a)); ($"version", Str (gversion a))]);
    ($"leaf_policy", Obj [($"name", Str $"tcc.leaf");
      ($"root", Obj [($"grammar", Str (gname a)); ($"limits", Arr (map Str (limits a))); ($"version", Str (gversion a))]);
      ($"version", Num 1)]);
    ($"options", Obj [($"beta", Str (beta a)); ($"fraction_bits", Num (fraction_bits a)); ($"tilt", Num (tilt a))])] ++
    match relaxed a with None => [] | Some (f, l, r) =>
      [($"relaxed", Obj [($"forbids", Arr (map Num f)); ($"limits", Arr (map Num l)); ($"requires", Arr (map Num r))])] end ++
   [($"root", Str (hex (last_row (rows a) [])));
    ($"states", Num (len (rows a) 0));
    ($"version", Arr [Num 1; Num 0])]).

Definition before (a : artifact) : list column := eights a ++ fours a ++ ones_before a.
Definition manifest_bytes (a : artifact) (before after : list column) : bytes := print (manifest a (before ++ after)).
Definition assembled (before after : list column) (m : bytes) : list column := before ++ [raw_col $"manifest" m] ++ after.

Fixpoint offsets (at_ : Z) (l : list column) : list (bytes * json * Z) :=
  match l with
  | [] => []
  | c :: l => let stop := at_ + fold_left Z.mul (cshape c) (citem c) in
      (cname c, Obj [($"data_offsets", Arr [Num at_; Num stop]); ($"dtype", Str (cdtype c)); ($"shape", Arr (map Num (cshape c)))], stop)
      :: offsets stop l
  end.
Fixpoint put_in (x : bytes * json) (l : list (bytes * json)) : list (bytes * json) :=
  match l with [] => [x] | y :: m => if less (fst x) (fst y) then x :: l else y :: put_in x m end.
Definition header (l : list column) : bytes :=
  let body := print (Obj (fold_right put_in [] (map fst (offsets 0 l)))) in
  body ++ repeat 32 (Z.to_nat ((- (8 + len body 0)) mod 64)).

Definition parts (columns : list column) : list bytes :=
  let h := header columns in le 8 (len h 0) :: h :: map cdata columns.
(* The manifest, and the bytes, of an artifact. *)
Definition manifest_of (a : artifact) : bytes := manifest_bytes a (before a) (ones_after a).
Definition encode (a : artifact) : bytes := List.concat (parts (assembled (before a) (ones_after a) (manifest_of a))).

(* Numbers are within their columns: else other numbers would have the same bytes. *)
Definition within (low high z : Z) : bool := (low <=? z) && (z <? high).
Definition u bits z := within 0 (2 ^ bits) z.
Definition i bits z := within (- 2 ^ (bits - 1)) (2 ^ (bits - 1)) z.
Definition texts_ok (s : bytes) := forallb (u 8) s.
Definition row_fits (r : States.row) : bool :=
  u 32 (rrank r) && (0 <=? rplans r) && (0 <=? rmass r) && i 64 (rcost r) && i 64 (rscore r) &&
  (len (rdigest r) 0 =? 32) && texts_ok (rdigest r) && forallb (fun e => u 32 (fst e) && u 32 (snd e)) (redges r).
Definition line_fits (c : line) : bool :=
  texts_ok (ltext c) && i 64 (llow c) && i 64 (lhigh c) && within 1 (2 ^ 63) (lweight c) && i 64 (lresidual c).
Definition numbers_fit (a : artifact) : bool :=
  let c := len (lines a) 0 in
  forallb row_fits (rows a) && forallb line_fits (lines a) &&
  forallb (u 64) (prices a) && forallb (u 64) (latencies a) && forallb (u 64) (epsilons a) &&
  (len (prices a) 0 =? c) && (len (latencies a) 0 =? c) && (len (epsilons a) 0 =? c) &&
  within 0 65 (fraction_bits a) && within 0 65 (tilt a) && texts_ok (gname a) && texts_ok (gversion a) && texts_ok (beta a) &&
  forallb texts_ok (limits a) && texts_ok (core a) && texts_ok (tools a) &&
  match relaxed a with None => true | Some (f, l, r) => forallb (u 32) (f ++ l ++ r) && negb (len (f ++ l ++ r) 0 =? 0) end.

Fixpoint eat (part file : bytes) : option bytes :=
  match part, file with
  | [], _ => Some file
  | x :: part, y :: file => if x =? y then eat part file else None
  | _ :: _, [] => None
  end.
Fixpoint eat_all (l : list bytes) (file : bytes) : bool :=
  match l with
  | [] => match file with [] => true | _ => false end
  | part :: l => match eat part file with Some rest => eat_all l rest | None => false end
  end.

(* Which question failed, for the report; 0 where none did, and the artifact digest. *)
Definition verdict (file : bytes) (a : artifact) : Z * bytes :=
  if negb (numbers_fit a) then (1, []) else
  if negb (states_ok H (fraction_bits a) (room_of a) (lines a) (rows a)) then (2, []) else
  let b := before a in let e := ones_after a in let m := manifest_bytes a b e in
  if negb (eat_all (parts (assembled b e m)) file) then (3, []) else (0, H m).

Lemma eat_spec part file rest : eat part file = Some rest -> file = part ++ rest.
Proof.
  revert file. induction part as [|x part IH]; intros file E; simpl in E; [injection E as <-; reflexivity|].
  destruct file as [|y file]; [discriminate|]. destruct (x =? y) eqn:X; [|discriminate].
  apply Z.eqb_eq in X. subst y. rewrite (IH file E). reflexivity.
Qed.
Lemma eat_all_spec l file : eat_all l file = true -> file = List.concat l.
Proof.
  revert file. induction l as [|part l IH]; intros file E; simpl in E; [destruct file; [reflexivity | discriminate]|].
  destruct (eat part file) as [rest|] eqn:P; [|discriminate]. apply eat_spec in P. rewrite P. simpl. f_equal. auto.
Qed.

(* What a file that passes is. *)
Section Certified.
Variable a : artifact.
Variable ok : states_ok H (fraction_bits a) (room_of a) (lines a) (rows a) = true.
Let M := columns H (fraction_bits a) (room_of a) (lines a) (rows a) ok.
Let n := List.length (rows a).
Let r := row_of H (rows a).
Let line := line_of H (lines a).
Let told := info H (lines a).

Record certified : Prop := {
  counts : forall q, rplans (r q) = Z.of_nat (List.length (plans M q));                      (* C3 *)
  partition : forall q, NoDup (plans M q);                                                    (* C1 *)
  finite : forall q, (forall P, In P (plans M q) -> (List.length P <= Z.to_nat (rrank (r q)))%nat) /\
                     exists P, In P (plans M q) /\ List.length P = Z.to_nat (rrank (r q));    (* C2 *)
  masses : forall q, rmass (r q) = weighed M (Z.to_nat (fraction_bits a)) (fun x => lweight (line x))
                                     (fun p => Z.to_nat (rrank (r p))) q /\ 0 < rmass (r q);  (* C4 *)
  costs : forall q, (forall P, In P (plans M q) -> rcost (r q) <= fold_right (fun x z => llow (line x) + z) 0 P) /\
                    exists P, In P (plans M q) /\ fold_right (fun x z => llow (line x) + z) 0 P = rcost (r q);   (* C5 *)
  scores : forall q, (forall P, In P (plans M q) -> fold_right (fun x z => lresidual (line x) + z) 0 P <= rscore (r q)) /\
                    exists P, In P (plans M q) /\ fold_right (fun x z => lresidual (line x) + z) 0 P = rscore (r q);
  digests : holds M (digest H M told) (fun q => rdigest (r q));                               (* C6 *)
  minimal : forall p q, (p < n)%nat -> (q < n)%nat ->
    (forall P, In P (told_plans M told p) <-> In P (told_plans M told q)) -> p = q;
  whole : forall q, (q < n)%nat -> reached H (fraction_bits a) (room_of a) (lines a) (rows a) ok q
}.

Lemma states_certified : certified.
Proof.
  constructor.
  - apply counts_right.
  - apply plans_once.
  - apply ranks_right.
  - apply masses_right.
  - apply costs_right.
  - apply scores_right.
  - apply C6_holds.
  - apply smallest.
  - apply all_reached.
Qed.
End Certified.

Theorem check_sound file a d : verdict file a = (0, d) ->
  file = encode a /\ d = H (manifest_of a) /\ numbers_fit a = true /\
  exists ok : states_ok H (fraction_bits a) (room_of a) (lines a) (rows a) = true, certified a ok.
Proof.
  unfold verdict. cbv zeta. fold (manifest_of a). intros V.
  assert (E1 : numbers_fit a = true) by (destruct (numbers_fit a); [reflexivity | discriminate]).
  rewrite E1 in V. cbn [negb] in V.
  assert (E2 : states_ok H (fraction_bits a) (room_of a) (lines a) (rows a) = true)
    by (destruct (states_ok H (fraction_bits a) (room_of a) (lines a) (rows a)); [reflexivity | discriminate]).
  rewrite E2 in V. cbn [negb] in V.
  destruct (eat_all (parts (assembled (before a) (ones_after a) (manifest_of a))) file) eqn:E3; [|discriminate].
  cbn [negb] in V. injection V as <-.
  split; [apply eat_all_spec, E3|]. split; [reflexivity|]. split; [exact E1|]. exists E2. apply states_certified.
Qed.

End File.
