(* Values that a ledger shows: whether one is of its parameter's type, and whether digests are the same exactly where values are.
   docs/spec/core.md, section 2; docs/spec/session.md, section 2.

   These are definitions, run as they stand: of a form that is not looked at here nothing is said. *)

From Coq Require Import List Arith ZArith Lia Bool String.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Json File Core.
Import ListNotations.
Local Open Scope Z_scope.
Local Notation length := List.length.

(* An answer; why there is none; that it is not for this program to say. *)
Inductive out {A : Type} := Got (x : A) | Refused (why : Z) | Declined (why : Z).
Arguments out : clear implicits.
Definition bind {A B} (x : out A) (f : A -> out B) : out B := match x with Got x => f x | Refused w => Refused w | Declined w => Declined w end.
Notation "'let?' x := a 'in' b" := (bind a (fun x => b)) (at level 200, x pattern, a at level 100, b at level 200).
Definition need (b : bool) (why : Z) : out Datatypes.unit := if b then Got tt else Refused why.
Definition only (b : bool) (why : Z) : out Datatypes.unit := if b then Got tt else Declined why.
Definition due {A} (x : option A) (why : Z) : out A := match x with Some x => Got x | None => Refused why end.

(* The places of a text in a list.  Extracted, `places_of o l` is a table of hashes. *)
Fixpoint places_from {str} (o : strings str) (n : Z) (l : list str) (s : str) : list Z :=
  match l with [] => [] | x :: l => if same o x s then n :: places_from o (n + 1) l s else places_from o (n + 1) l s end.
Definition places_of {str} (o : strings str) (l : list str) (s : str) : list Z := places_from o 0 l s.

(* Numbers: canonical decimals. *)
Fixpoint digits_in (l : bytes) (n : Z) : option Z :=
  match l with [] => Some n | c :: l => if (48 <=? c) && (c <=? 57) then digits_in l (10 * n + (c - 48)) else None end.
Fixpoint at_point (l done : bytes) : bytes * option bytes :=
  match l with [] => (rev_append done [], None) | c :: l => if c =? 46 then (rev_append done [], Some l) else at_point l (c :: done) end.
Definition no_sign (text : bytes) : bool * bytes := match text with c :: l => if c =? 45 then (true, l) else (false, text) | [] => (false, []) end.
Definition last_byte (l : bytes) : Z := fold_left (fun _ c => c) l 0.
(* As so many units, and how many decimal places there are. *)
Definition decimal_in (text : bytes) : option (Z * Z) :=
  let (minus, rest) := no_sign text in
  let (whole, part) := at_point rest [] in
  let places := match part with Some p => p | None => [] end in
  let leads := match whole with [] => false | c :: more => negb (c =? 48) || match more with [] => true | _ => false end end in
  let ends := match part with Some p => (49 <=? last_byte p) | None => true end in
  match digits_in (whole ++ places) 0 with
  | Some z => if leads && ends && negb (minus && (z =? 0)) && (len whole 0 <=? 400) && (len places 0 <=? 400)
      then Some (if minus then - z else z, len places 0) else None
  | None => None
  end.
(* In units of 10^-400. *)
Definition in_units (d : Z * Z) : Z := fst d * 10 ^ (400 - snd d).
(* The nano-units of one of at least 0. *)
Definition nano_in (text : bytes) : option Z :=
  match decimal_in text with Some (z, p) => if (0 <=? z) && (p <=? 9) then Some (z * 10 ^ (9 - p)) else None | None => None end.
(* A number that every double keeps: so few digits, and not too large or too small. *)
Definition short (text : bytes) : bool :=
  let digits := filter (fun c => negb (c =? 45) && negb (c =? 46)) text in
  let from := no_zeros digits in
  (len (no_zeros (rev_append from [])) 0 <=? 15) && (len text 0 <=? 200).

Section Shown.
Context {str : Type} (o : strings str).
Notation value := (value str).

Definition characters (s : str) : Z := fold_left (fun n c => if (128 <=? c) && (c <? 192) then n else n + 1) (view o s) 0.
Definition whole_at (k : bytes) (p : value) : option Z := match get o k p with Some (VNum z) => Some z | _ => None end.
Definition has (k : bytes) (p : value) : bool := match get o k p with Some _ => true | None => false end.
(* Whether a text is that of a value of a parameter's type. *)
Definition fits_value (p : value) (kind text : str) : out Datatypes.unit :=
  let? t := due (get_text o $"type" p) 20 in
  let is s := same o t (made o s) in
  let of s := need (same o kind (made o s)) 37 in
  if is $"text" then
    let? _ := of $"s" in
    let? low := due (whole_at $"min" p) 20 in
    let? high := due (whole_at $"max" p) 20 in
    let n := characters text in
    let? _ := need ((low <=? n) && (n <=? high)) 37 in
    only (negb (has $"pattern" p)) 16
  else if is $"flag" then
    let? _ := of $"b" in need (same o text (made o $"true") || same o text (made o $"false")) 37
  else if is $"number" || is $"integer" then
    let? _ := of $"n" in
    let x := view o text in
    let? d := due (decimal_in x) 37 in
    let? _ := need (is $"number" || (snd d =? 0)) 37 in
    let? _ := match get_text o $"low" p, get_text o $"high" p with
      | None, None => Got tt
      | Some low, Some high =>
          let? l := due (decimal_in (view o low)) 20 in
          let? h := due (decimal_in (view o high)) 20 in
          need ((in_units l <=? in_units d) && (in_units d <=? in_units h)) 37
      | _, _ => Refused 20 end in
    only (short x) 17
  else Declined 2.

(* Of values, each its type byte and text, and of their digests: both are the same together, and so are the digests' first halves. *)
Definition half (d : str) : str := made o (firstn 32 (view o d)).
Definition told_apart (l : list (str * str)) : bool :=
  let values := places_of o (map fst l) in
  let halves := places_of o (map (fun x => half (snd x)) l) in
  let at_ := table l in
  let first f := match f with i :: _ => at_ i | [] => None end in
  forallb (fun x =>
    match first (values (fst x)), first (halves (half (snd x))) with
    | Some y, Some z => same o (snd y) (snd x) && same o (fst z) (fst x)
    | _, _ => false end) l.

Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.
Lemma places_from_in l s : forall n z, In z (places_from o n l s) <-> exists i x, z = n + Z.of_nat i /\ nth_error l i = Some x /\ view o x = view o s.
Proof.
  induction l as [|y l IH]; intros n z; cbn [places_from].
  - split; [intros [] | intros [i [x [_ [E _]]]]; destruct i; discriminate].
  - assert (Later : In z (places_from o (n + 1) l s) <-> exists i x, z = n + Z.of_nat (S i) /\ nth_error l i = Some x /\ view o x = view o s).
    { rewrite IH. split; intros [i [x [E K]]]; exists i, x; (split; [lia | exact K]). }
    destruct (same o y s) eqn:E.
    + apply (same_is o H strings_mean) in E. cbn [In]. rewrite Later. split.
      * intros [<- | [i [x K]]]; [exists 0%nat, y; split; [lia | auto] | exists (S i), x; exact K].
      * intros [[|i] [x [Ez [Ex Ev]]]]; [left; lia | right; exists i, x; auto].
    + rewrite Later. split; [intros [i [x K]]; exists (S i), x; exact K|]. intros [[|i] [x [Ez [Ex Ev]]]]; [|exists i, x; auto].
      injection Ex as ->. exfalso. apply (same_is o H strings_mean) in Ev. congruence.
Qed.
Lemma places_alike l s t : view o s = view o t -> places_of o l s = places_of o l t.
Proof.
  intros E. unfold places_of. generalize 0. induction l as [|x l IH]; intros n; cbn [places_from]; [reflexivity|].
  rewrite IH. replace (same o x s) with (same o x t); [reflexivity|]. apply Bool.eq_iff_eq_true. rewrite !(same_is o H strings_mean), E. tauto.
Qed.
(* Digests stand for values: the same, and the same first half, exactly where type and text are. *)
Theorem digests_stand_for_values l : told_apart l = true -> forall x y, In x l -> In y l ->
  (view o (fst x) = view o (fst y) <-> view o (snd x) = view o (snd y)) /\
  (view o (fst x) = view o (fst y) <-> view o (half (snd x)) = view o (half (snd y))).
Proof.
  unfold told_apart. cbv zeta. rewrite forallb_forall. intros T x y Hx Hy.
  assert (Forth : forall x y, In x l -> In y l -> view o (fst x) = view o (fst y) -> view o (snd x) = view o (snd y)).
  { clear x y Hx Hy. intros x y Hx Hy E. assert (Tx := T x Hx). assert (Ty := T y Hy). cbv beta in Tx, Ty. rewrite (places_alike _ _ _ E) in Tx.
    destruct (match places_of o (map fst l) (fst y) with i :: _ => table l i | [] => None end) as [u|]; [|discriminate].
    destruct (match places_of o (map _ l) (half (snd x)) with i :: _ => table l i | [] => None end) in Tx; [|discriminate].
    destruct (match places_of o (map _ l) (half (snd y)) with i :: _ => table l i | [] => None end) in Ty; [|discriminate].
    apply andb_prop in Tx. apply andb_prop in Ty. destruct Tx as [Tx _], Ty as [Ty _].
    apply (same_is o H strings_mean) in Tx. apply (same_is o H strings_mean) in Ty. congruence. }
  assert (Back : view o (half (snd x)) = view o (half (snd y)) -> view o (fst x) = view o (fst y)).
  { intros E. assert (Tx := T x Hx). assert (Ty := T y Hy). cbv beta in Tx, Ty. rewrite (places_alike _ _ _ E) in Tx.
    destruct (match places_of o (map _ l) (half (snd y)) with i :: _ => table l i | [] => None end) as [u|]; [|destruct (match places_of o (map fst l) (fst x) with i :: _ => table l i | [] => None end); discriminate].
    destruct (match places_of o (map fst l) (fst x) with i :: _ => table l i | [] => None end); [|discriminate].
    destruct (match places_of o (map fst l) (fst y) with i :: _ => table l i | [] => None end); [|discriminate].
    apply andb_prop in Tx. apply andb_prop in Ty. destruct Tx as [_ Tx], Ty as [_ Ty].
    apply (same_is o H strings_mean) in Tx. apply (same_is o H strings_mean) in Ty. congruence. }
  assert (Half : view o (snd x) = view o (snd y) -> view o (half (snd x)) = view o (half (snd y))).
  { intros E. unfold half. rewrite E. reflexivity. }
  split; split; auto.
Qed.
End Shown.
