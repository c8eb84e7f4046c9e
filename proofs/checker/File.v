(* The bytes of an artifact, as a function of what it holds, and the check of a file.
   docs/spec/artifact.md, sections 1 to 4, 6 and 7.

   No parser is trusted: whoever calls hands over a file and what they say it holds.  `encode` writes that down
   as the specification has it, and the file has to be these bytes.  So digests of columns, widths, offsets and
   the order of members are not rules here but parts of one definition.  Cost: linear in the file. *)

From Coq Require Import List ZArith Lia Bool String Ascii NArith.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Sums Sound Json.
Import ListNotations.
Local Open Scope Z_scope.

Definition ascii_bytes (s : string) : bytes := map (fun c => Z.of_N (N_of_ascii c)) (list_ascii_of_string s).
Notation "$ s" := (ltac:(let y := eval compute in (ascii_bytes s) in exact y)) (at level 0, s at level 0, only parsing).
Definition hex (b : bytes) : bytes := flat_map (fun z => [hex_digit (z / 16); hex_digit (z mod 16)]) b.
Definition large (z : Z) : json := if (z <? 2 ^ 53) && (- 2 ^ 53 <? z) then Num z else Json.Str (decimal z).

(* Counts: exact; rounded up to so many bits; of plans alone, for a gate. *)
Inductive style := Exactly | Rounded (b : Z) | Gated.
(* What an artifact holds. *)
Record artifact {str : Type} := {
  gname : str; gversion : str; beta : str; fraction_bits : Z; tilt : Z; counted : style; ambiguous : bool;
  limits : list str; relaxed : option (list Z);
  lines : list (line str); prices : list Z; latencies : list Z; epsilons : list Z;
  rows : list (row str); core : str; tools : str
}.
Arguments artifact : clear implicits.

(* A column: its name, bytes of an item, dtype, shape, data. *)
Record column {str : Type} := { cname : bytes; citem : Z; cdtype : bytes; cshape : list Z; cdata : str }.
Arguments column : clear implicits.

Section File.
Context {str : Type} (o : strings str).
Notation line := (line str).
Notation row := (row str).
Notation artifact := (artifact str).
Notation column := (column str).

Fixpoint starts (at_ : Z) (l : list row) (done : list Z) : list Z :=
  match l with
  | [] => rev_append (at_ :: done) []
  | r :: l => starts (len (redges r) at_) l (at_ :: done)
  end.
Definition edge_number (l : list row) : Z := fold_left (fun n r => len (redges r) n) l 0.
Fixpoint top (f : row -> Z) (l : list row) (m : Z) : Z :=
  match l with [] => m | r :: l => top f l (Z.max m (f r)) end.
(* The least number of limbs, at least one. *)
Definition bit_length (z : Z) : Z := if z =? 0 then 0 else Z.log2 z + 1.
Definition width (f : row -> Z) (l : list row) : Z := Z.max 1 ((bit_length (top f l 0) + 63) / 64).
Definition own_masses (a : artifact) : bool := negb (forallb (fun r => rmass r =? rplans r) (rows a)).
Definition gated (a : artifact) : bool := match counted a with Gated => true | _ => false end.
(* For a gate all weights are 1, and there are no fractions. *)
Definition units (a : artifact) : Z := if gated a then 0 else fraction_bits a.
Definition counting_of (a : artifact) : counting := {|
  many := ambiguous a; gate := gated a;
  bits := match counted a with Exactly => None | Rounded b => Some b | Gated => Some 63 end;
  room := 64 * width (if own_masses a then rmass else rplans) (rows a) |}.
Definition sound_states (a : artifact) : bool := states_ok o (units a) (counting_of a) (lines a) (rows a).
Definition cost_max (a : artifact) : Z := fold_left (fun m c => Z.max m (lhigh c)) (tl (lines a)) (match lines a with [] => 0 | c :: _ => lhigh c end).
Fixpoint last_row (l : list row) (d : bytes) : bytes := match l with [] => d | [r] => view o (rdigest r) | _ :: l => last_row l d end.

(* What is written of rows, a few hundred of them at a time: no list of all of it. *)
Section Blocks.
Context {X A : Type} (write : list A -> str) (of_item : X -> list A).
Definition block := Z.to_nat 256.
Fixpoint blocks (free : nat) (l : list X) (now : list A) (done : list str) : list str :=
  match l with
  | [] => rev_append (write (rev_append now []) :: done) []
  | x :: l =>
      match free with
      | O => blocks block l (rev_append (of_item x) []) (write (rev_append now []) :: done)
      | S free => blocks free l (rev_append (of_item x) now) done
      end
  end.
Definition written_down (l : list X) : str := joined o (blocks block l [] []).
End Blocks.

Definition col n i t sh d : column := {| cname := n; citem := i; cdtype := t; cshape := sh; cdata := d |}.
Definition i64 := $"I64".  Definition u64 := $"U64".  Definition u32 := $"U32".  Definition u8 := $"U8".
Definition call_column (c : Z) n t (f : line -> Z) (l : list line) := col n 8 t [c] (numbers o 8 (mapped f l [])).
Definition amounts (c : Z) n (l : list Z) := col n 8 u64 [c] (numbers o 8 l).
Definition state_column n i t sh (w : Z) (f : row -> Z) (l : list row) := col n i t sh (written_down (numbers o (Z.to_nat w)) (fun r => [f r]) l).
Definition edge_column n (e : Z) (f : Z * Z -> Z) (l : list row) :=
  col n 4 u32 [e] (written_down (numbers o 4) (fun r => map f (redges r)) l).
Definition raw_column n (d : str) := col n 1 u8 [size_of o d] d.

(* Every column but the manifest: those of 8 bytes, of 4, of 1; by name. *)
Definition eights (a : artifact) : list column :=
  let c := len (lines a) 0 in let n := len (rows a) 0 in let w := width rplans (rows a) in let w' := width rmass (rows a) in
  [call_column c $"call_cost_high" i64 lhigh (lines a); call_column c $"call_cost_low" i64 llow (lines a);
   amounts c $"call_epsilon" (epsilons a); amounts c $"call_latency_ms" (latencies a); amounts c $"call_price" (prices a);
   call_column c $"call_weight" u64 lweight (lines a);
   state_column $"cost_to_go" 8 i64 [n] 8 rcost (rows a);
   col $"edge_start" 8 u64 [n + 1] (numbers o 8 (starts 0 (rows a) []));
   if gated a then state_column $"plans_mantissa" 8 u64 [n] 8 rmass (rows a)
   else state_column $"plans" 8 u64 [n; w] (8 * w) rplans (rows a)] ++
  match counted a with
  | Exactly => if own_masses a then [state_column $"race_count" 8 u64 [n; w'] (8 * w') rmass (rows a)] else []
  | Rounded _ => [state_column $"race_mantissa" 8 u64 [n] 8 rmass (rows a)]
  | Gated => []
  end ++
  [state_column $"residual_to_go" 8 i64 [n] 8 rscore (rows a)].
Definition fours (a : artifact) : list column :=
  let n := len (rows a) 0 in let e := edge_number (rows a) in
  [edge_column $"edge_call" e fst (rows a); edge_column $"edge_target" e snd (rows a)] ++
  match counted a with
  | Exactly => []
  | Rounded _ => [state_column $"race_exponent" 4 u32 [n] 4 rexponent (rows a)]
  | Gated => [state_column $"plans_exponent" 4 u32 [n] 4 rexponent (rows a)]
  end ++
  [state_column $"rank" 4 u32 [n] 4 rrank (rows a)].
Definition call_texts (a : artifact) : json := Arr (map (fun c => Json.Str (view o (ltext c))) (lines a)).
Definition ones_before (a : artifact) : list column :=
  let n := len (rows a) 0 in
  [state_column $"accept" 1 u8 [n] 1 (fun r => if raccept r then 1 else 0) (rows a);
   raw_column $"call_text" (print o (call_texts a)); raw_column $"core" (core a)].
Definition ones_after (a : artifact) : list column :=
  [col $"state_digest" 1 u8 [len (rows a) 0; 32] (written_down (joined o) (fun r => [rdigest r]) (rows a)); raw_column $"tools" (tools a)].

Definition member (j : bytes * json) (l : list (bytes * json)) : list (bytes * json) :=
  (fix go l := match l with [] => [j] | x :: m => if precedes (fst j) (fst x) then j :: l else x :: go m end) l.
Definition by_name (l : list (bytes * json)) : list (bytes * json) := fold_right member [] l.
Definition text (s : str) : json := Json.Str (view o s).

Definition features (a : artifact) : list bytes :=
  (if gated a then [$"gate"] else []) ++ (if ambiguous a then [$"nondeterministic"] else []) ++
  (match relaxed a with Some _ => [$"relaxed"] | None => [] end) ++ match counted a with Rounded _ => [$"rounded"] | _ => [] end.
Definition options (a : artifact) : json :=
  Obj ([($"beta", text (beta a)); ($"fraction_bits", Num (fraction_bits a))] ++
       match counted a with Rounded b => [($"round_counts", Num b)] | _ => [] end ++ [($"tilt", Num (tilt a))]).
Definition manifest (a : artifact) (columns : list column) : json :=
  let upper := match features a with [] => false | _ => true end in
  Obj ([($"calls", Num (len (lines a) 0));
    ($"columns", Obj (by_name (map (fun c => (cname c, Json.Str (hex (view o (hash o (cdata c)))))) columns)));
    ($"cost_max", large (cost_max a));
    ($"counts", Json.Str (if upper then $"upper" else $"exact"));
    ($"critical", Arr (map Json.Str (features a)));
    ($"edges", Num (edge_number (rows a)));
    ($"grammar", Obj [($"name", text (gname a)); ($"version", text (gversion a))]);
    ($"leaf_policy", Obj [($"name", Json.Str $"tcc.leaf");
      ($"root", Obj [($"grammar", text (gname a)); ($"limits", Arr (map text (limits a))); ($"version", text (gversion a))]);
      ($"version", Num 1)]);
    ($"options", options a)] ++
    match relaxed a with None => [] | Some l => [($"relaxed", Arr (map Num l))] end ++
   [($"root", Json.Str (hex (last_row (rows a) [])));
    ($"schema", Json.Str $"tcc.artifact/2");
    ($"states", Num (len (rows a) 0))]).

Definition before (a : artifact) : list column := eights a ++ fours a ++ ones_before a.
Definition manifest_bytes (a : artifact) (before after : list column) : str := print o (manifest a (before ++ after)).
Definition assembled (before after : list column) (m : str) : list column := before ++ [raw_column $"manifest" m] ++ after.

Definition extent (c : column) : Z := fold_left Z.mul (cshape c) (citem c).
Fixpoint entries (at_ : Z) (l : list column) : list (bytes * json) :=
  match l with
  | [] => []
  | c :: l => (cname c, Obj [($"data_offsets", Arr [Num at_; Num (at_ + extent c)]); ($"dtype", Json.Str (cdtype c));
                             ($"shape", Arr (map Num (cshape c)))])
              :: entries (at_ + extent c) l
  end.
Definition header_value (l : list column) : json := Obj (by_name (entries 0 l)).
Definition header (l : list column) : str :=
  let body := print o (header_value l) in
  joined o [body; made o (repeat 32 (Z.to_nat ((- (8 + size_of o body)) mod 64)))].
Definition parts (columns : list column) : list str :=
  let h := header columns in numbers o 8 [size_of o h] :: h :: map cdata columns.

(* The manifest, and the bytes, of an artifact. *)
Definition manifest_of (a : artifact) : str := manifest_bytes a (before a) (ones_after a).
Definition columns_of (a : artifact) : list column := assembled (before a) (ones_after a) (manifest_of a).
Definition encode (a : artifact) : str := joined o (parts (columns_of a)).

(* Numbers are within their columns: else other numbers would have the same bytes. *)
Definition two32 := 2 ^ 32.
Definition two64 := 2 ^ 64.
Definition within (low high z : Z) : bool := (low <=? z) && (z <? high).
Definition counts_fit (s : style) (r : row) : bool :=
  match s with
  | Exactly => rexponent r =? 0
  | Rounded _ => (rmass r <? two63) && within 0 two32 (rexponent r)
  | Gated => (rmass r <? two63) && within 0 two32 (rexponent r) && (rplans r =? 0)
  end.
Definition row_fits (s : style) (r : row) : bool :=
  within 0 two32 (rrank r) && (0 <=? rplans r) && (0 <=? rmass r) && counts_fit s r && fits (rcost r) && fits (rscore r) &&
  (size_of o (rdigest r) =? 32) && forallb (fun e => within 0 two32 (fst e) && within 0 two32 (snd e)) (redges r).
Definition line_fits (c : line) : bool := fits (llow c) && fits (lhigh c) && within 1 two63 (lweight c) && fits (lresidual c).
Definition numbers_fit (a : artifact) : bool :=
  let c := len (lines a) 0 in
  forallb (row_fits (counted a)) (rows a) && forallb line_fits (lines a) && (edge_number (rows a) <? two64) &&
  forallb (within 0 two64) (prices a) && forallb (within 0 two64) (latencies a) && forallb (within 0 two64) (epsilons a) &&
  (len (prices a) 0 =? c) && (len (latencies a) 0 =? c) && (len (epsilons a) 0 =? c) &&
  within 0 65 (fraction_bits a) && within 0 65 (tilt a) && match counted a with Rounded b => within 1 64 b | _ => true end &&
  match relaxed a with None => true | Some l => forallb (within 0 two32) l && negb (len l 0 =? 0) end.

Fixpoint stand_all (l : list str) (file : str) (at_ : Z) : bool :=
  match l with
  | [] => size_of o file =? at_
  | part :: l => stands o file at_ part && stand_all l file (at_ + size_of o part)
  end.

(* Which question failed, for the report, 0 where none did, and the artifact digest. *)
Definition verdict (file : str) (a : artifact) : Z * str :=
  let nothing := made o [] in
  if negb (numbers_fit a) then (1, nothing) else
  if negb (sound_states a) then (2, nothing) else
  let b := before a in let e := ones_after a in let m := manifest_bytes a b e in
  if negb (stand_all (parts (assembled b e m)) file 0) then (3, nothing) else (0, hash o m).

Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.

Lemma stand_all_is l file : forall at_ left rest, stand_all l file at_ = true ->
  view o file = left ++ rest -> Z.of_nat (List.length left) = at_ -> rest = List.concat (map (view o) l).
Proof.
  induction l as [|part l IH]; intros at_ left rest E V L; cbn [stand_all] in E.
  - apply Z.eqb_eq in E. rewrite (size_is o H) in E by exact strings_mean.
    rewrite V, app_length in E. destruct rest; [reflexivity | simpl in E; lia].
  - apply andb_prop in E. destruct E as [E E']. apply (stands_is o H) in E; [|exact strings_mean].
    destruct E as [left' [right [V' L']]]. rewrite V in V'. apply app_injective in V'; [|lia]. destruct V' as [<- ->].
    cbn [map List.concat]. f_equal. apply (IH (at_ + size_of o part) (left ++ view o part)); [exact E'| |].
    + rewrite V, <- app_assoc. reflexivity.
    + rewrite app_length, (size_is o H) by exact strings_mean. lia.
Qed.

(* What a file that passes is. *)
Section Certified.
Variable a : artifact.
Variable ok : sound_states a = true.
Let M := columns o H strings_mean (units a) (counting_of a) (lines a) (rows a) ok.
Let n := List.length (rows a).
Let r := row_of o (rows a).
Let line := line_of o (lines a).
Let told := info o (lines a).

Let due q := due_count o H strings_mean (units a) (counting_of a) (lines a) (rows a) ok q.     (* C4's sum over the targets *)
Let count q := value (r q).
Let of_weights q := weighed M (Z.to_nat (units a)) (fun x => lweight (line x)) (fun p => Z.to_nat (rrank (r p))) q.

Record certified : Prop := {
  counts : counted a <> Gated -> forall q, rplans (r q) = Z.of_nat (List.length (plans M q));  (* C3 *)
  gate_counts : counted a = Gated -> forall q, Z.of_nat (List.length (plans M q)) <= count q /\
    rounded_up 63 (due q) (rmass (r q)) (rexponent (r q));
  partition : ambiguous a = false -> forall q, NoDup (plans M q);                             (* C1 *)
  derivations : forall q, NoDup (paths M q);
  finite : forall q, (forall P, In P (plans M q) -> (List.length P <= Z.to_nat (rrank (r q)))%nat) /\
                     exists P, In P (plans M q) /\ List.length P = Z.to_nat (rrank (r q));    (* C2 *)
  masses : counted a = Exactly -> forall q, rmass (r q) = of_weights q;                       (* C4 *)
  rounded_masses : forall b, counted a = Rounded b -> forall q, of_weights q <= count q /\
    rounded_up b (due q) (rmass (r q)) (rexponent (r q));
  counts_positive : forall q, 0 < count q;
  costs : forall q, (forall P, In P (plans M q) -> rcost (r q) <= fold_right (fun x z => llow (line x) + z) 0 P) /\
                    exists P, In P (plans M q) /\ fold_right (fun x z => llow (line x) + z) 0 P = rcost (r q);   (* C5 *)
  scores : forall q, (forall P, In P (plans M q) -> fold_right (fun x z => lresidual (line x) + z) 0 P <= rscore (r q)) /\
                    exists P, In P (plans M q) /\ fold_right (fun x z => lresidual (line x) + z) 0 P = rscore (r q);
  digests : holds M (digest H M told) (fun q => view o (rdigest (r q)));                      (* C6 *)
  minimal : ambiguous a = false -> forall p q, (p < n)%nat -> (q < n)%nat ->
    (forall P, In P (told_plans M told p) <-> In P (told_plans M told q)) -> p = q;
  minimal_graph : forall p q, (p < n)%nat -> (q < n)%nat -> agree M M told told p q -> p = q;
  used : forall x, (x < List.length (lines a))%nat -> exists q p, In (x, p) (edges M q);     (* C6 *)
  connected : forall q, (q < n)%nat -> reached o H strings_mean (units a) (counting_of a) (lines a) (rows a) ok q
}.

Lemma weighs_lines : counted a <> Gated -> forall x, W_of o (counting_of a) (lines a) x = lweight (line x).
Proof. intros G x. unfold W_of, weigh. cbn [counting_of States.gate]. unfold gated. destruct (counted a); [reflexivity | reflexivity | congruence]. Qed.
Lemma weighed_lines : counted a <> Gated -> forall q,
  weighed M (Z.to_nat (units a)) (W_of o (counting_of a) (lines a)) (d_of o (rows a)) q = of_weights q.
Proof.
  intros G q. unfold of_weights, weighed. f_equal. apply map_ext. intros P. f_equal.
  induction P as [|e P IH]; [reflexivity|]. unfold weight in *. cbn [fold_right]. rewrite IH, weighs_lines by exact G. reflexivity.
Qed.
Lemma states_certified : certified.
Proof.
  constructor.
  - intros G. apply counts_right. cbn [counting_of States.gate]. unfold gated. destruct (counted a); congruence.
  - intros G q. split.
    + apply gate_counts_bound; cbn [counting_of States.gate]; unfold units, gated; rewrite G; reflexivity.
    + apply C4_rounded. cbn [counting_of bits]. rewrite G. reflexivity.
  - apply (plans_once o H strings_mean _ _ _ _ ok).
  - apply paths_once.
  - apply ranks_right.
  - intros E q. assert (B : bits (counting_of a) = None) by (cbn [counting_of bits]; rewrite E; reflexivity).
    refine (eq_trans _ (weighed_lines ltac:(congruence) q)). refine (eq_trans _ (masses_right o H strings_mean _ _ _ _ ok B q)).
    unfold m_of, value. rewrite (proj2 (C4_exact o H strings_mean _ _ _ _ ok q B)). fold r. change (2 ^ 0) with 1. lia.
  - intros b E q. split.
    + rewrite <- weighed_lines by congruence. apply masses_bound.
    + apply C4_rounded. cbn [counting_of bits]. rewrite E. reflexivity.
  - intros q. apply (masses_bound o H strings_mean _ _ _ _ ok q).
  - apply costs_right.
  - apply scores_right.
  - apply C6_holds.
  - apply (smallest o H strings_mean _ _ _ _ ok).
  - apply smallest_graph.
  - apply all_used.
  - apply all_reached.
Qed.
End Certified.

Theorem check_sound file a d : verdict file a = (0, d) ->
  view o file = view o (encode a) /\ view o d = H (view o (manifest_of a)) /\ numbers_fit a = true /\
  exists ok : sound_states a = true, certified a ok.
Proof.
  unfold verdict. cbv zeta. fold (manifest_of a). fold (columns_of a). intros V.
  assert (E1 : numbers_fit a = true) by (destruct (numbers_fit a); [reflexivity | discriminate]).
  rewrite E1 in V. cbn [negb] in V.
  assert (E2 : sound_states a = true) by (destruct (sound_states a); [reflexivity | discriminate]).
  rewrite E2 in V. cbn [negb] in V.
  destruct (stand_all (parts (columns_of a)) file 0) eqn:E3; [|discriminate].
  cbn [negb] in V. injection V as <-.
  split; [|split; [|split]].
  - unfold encode. rewrite (joined_is o H) by exact strings_mean. apply (stand_all_is _ _ 0 [] _ E3); reflexivity.
  - apply (hash_is o H), strings_mean.
  - exact E1.
  - exists E2. apply states_certified.
Qed.

End File.
