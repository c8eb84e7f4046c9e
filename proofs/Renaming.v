(* Exact questions: what a monitor compares may be renamed.
   docs/spec/proof.md, section 1; docs/spec/core.md, section 5.

   Monitors compare values with values, and types tell values apart only by their atoms.  So a session whose
   values are renamed, one to one and within atoms, is let through where it was.  Here are the rules as a gate
   and the kernel of proofs have them, over values of any kind: those of a session, or the tokens of a proof. *)

From Coq Require Import List Bool ZArith Lia.
From Tcc Require Import Monitors Intervals.
Import ListNotations.
Local Open Scope Z_scope.

(* A part of a key: nothing where the parameter was left out, a listed value, an open one. *)
Inductive part (X : Type) := Absent | Listed (n : nat) | Value (x : X).
Arguments Absent {X}. Arguments Listed {X}. Arguments Value {X}.
Definition key (X : Type) := list (part X).

(* A call: its listed values and answers as one number, its open values by their fields, what it adds to
   each sum. *)
Record call (X : Type) := { base : nat; given : list (option X); adds : nat -> Z }.
Arguments base {X}. Arguments given {X}. Arguments adds {X}.

(* monitors.py, `_reader`: of each call that is one of a selection, where the parts of its key are.  All
   outcomes are known, so an answer that a selection binds is one more listed value. *)
Inductive source := Constant (n : nat) | Field (f : nat).
Definition reader := nat -> option (list source).
Inductive rule := Order (m : kind) (a b : reader) | AtMost (most : Z) (b : reader).

Section Rules.
Variable X : Type.
Variable X_dec : forall x y : X, {x = y} + {x <> y}.

Definition part_dec : forall x y : part X, {x = y} + {x <> y}.
Proof. decide equality. apply PeanoNat.Nat.eq_dec. Defined.
Definition key_dec : forall j k : key X, {j = k} + {j <> k} := list_eq_dec part_dec.

Definition part_of (c : call X) (s : source) : part X :=
  match s with
  | Constant n => Listed n
  | Field f => match nth f (given c) None with Some x => Value x | None => Absent end
  end.
(* Of a key that is not kept nothing is asked or remembered: moves.py, `_known_keys` and `_of_key`. *)
Definition read (keep : key X -> bool) (r : reader) (c : call X) : option (key X) :=
  match r (base c) with
  | Some parts => let k := map (part_of c) parts in if keep k then Some k else None
  | None => None
  end.
Definition sees (keep : key X -> bool) (r : rule) (c : call X) : seen (key X) :=
  match r with
  | Order _ a b => (read keep a c, read keep b c)
  | AtMost _ b => (None, read keep b c)
  end.

(* What a rule remembers: of each key whether it is marked as one of the first selection, as one of the
   second, and its uses. *)
Record memory := { one : key X -> bool; two : key X -> bool; uses : key X -> Z }.
Definition nothing : memory := {| one := fun _ => false; two := fun _ => false; uses := fun _ => 0 |}.

Definition lets (r : rule) (x : memory) (s : seen (key X)) : bool :=
  match r with
  | Order m _ _ => orders (key X) key_dec m (one x) (two x) s
  | AtMost most _ => match snd s with Some k => uses x k + 1 <=? most | None => true end
  end.
Definition after (r : rule) (x : memory) (s : seen (key X)) : memory :=
  match r with
  | Order m _ _ => {| one := fun k => first (key X) key_dec m k s (one x k);
                      two := fun k => second (key X) key_dec k s (two x k); uses := uses x |}
  | AtMost _ _ => {| one := one x; two := two x;
                     uses := fun k => if is (key X) key_dec k (snd s) then uses x k + 1 else uses x k |}
  end.

(* Of a key only what calls with that key are, matters. *)
Definition marked (x : memory) (k : key X) : Prop := one x k = true \/ two x k = true \/ uses x k <> 0.

Lemma not_marked x k : ~ marked x k -> one x k = false /\ two x k = false /\ uses x k = 0.
Proof.
  unfold marked. intros H. destruct (one x k), (two x k), (Z.eq_dec (uses x k) 0); tauto.
Qed.

Lemma marked_dec x k : marked x k \/ ~ marked x k.
Proof.
  unfold marked. destruct (one x k), (two x k), (Z.eq_dec (uses x k) 0); intuition congruence.
Qed.

Lemma marked_after r x s k : marked (after r x s) k -> marked x k \/ fst s = Some k \/ snd s = Some k.
Proof.
  unfold marked. destruct r as [m a b | most b]; cbn [after one two uses].
  - unfold second. destruct (is (key X) key_dec k (snd s)) eqn:E2; [apply is_true in E2; auto|].
    unfold first. rewrite E2. destruct (is (key X) key_dec k (fst s)) eqn:E1; [apply is_true in E1; auto|].
    destruct m; auto.
  - destruct (is (key X) key_dec k (snd s)) eqn:E2; [apply is_true in E2; auto | auto].
Qed.
End Rules.
Arguments one {X}. Arguments two {X}. Arguments uses {X}. Arguments marked {X}. Arguments nothing {X}.
Arguments read {X}. Arguments sees {X}. Arguments part_of {X}.

(* Two kinds of values, beside each other. *)
Section Two.
Variables T V : Type.
Variable T_dec : forall x y : T, {x = y} + {x <> y}.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Notation lets_t := (lets T T_dec). Notation lets_v := (lets V V_dec).
Notation after_t := (after T T_dec). Notation after_v := (after V V_dec).

Inductive part_is (R : T -> V -> Prop) : part T -> part V -> Prop :=
| absent_is : part_is R Absent Absent
| listed_is n : part_is R (Listed n) (Listed n)
| value_is t v : R t v -> part_is R (Value t) (Value v).
Definition key_is R : key T -> key V -> Prop := Forall2 (part_is R).
Inductive option_is {A B} (R : A -> B -> Prop) : option A -> option B -> Prop :=
| none_is : option_is R None None
| some_is a b : R a b -> option_is R (Some a) (Some b).
Definition call_is R (c : call T) (d : call V) : Prop :=
  base c = base d /\ Forall2 (option_is R) (given c) (given d).

(* Which tokens stand for one value each, and which for any of the others of an atom. *)
Variable known : T -> bool.
Definition part_known (p : part T) : bool := match p with Value t => known t | _ => true end.
Definition kept : key T -> bool := forallb part_known.
Definition one_to_one (R : T -> V -> Prop) : Prop :=
  forall t v t' v', R t v -> R t' v' -> known t = true -> (t = t' <-> v = v').

Variable R : T -> V -> Prop.
Hypothesis R_one : one_to_one R.

Lemma key_once k k' : key_is R k k' -> kept k = true -> forall j j', key_is R j j' -> (k = j <-> k' = j').
Proof.
  induction 1 as [|p p' k k' Hp Hk IH]; intros K j j' Hj.
  - inversion Hj; subst; [split; reflexivity | split; intros; discriminate].
  - inversion Hj as [|q q' l l' Hq Hl]; subst; [split; intros; discriminate|].
    cbn [kept forallb] in K. apply andb_true_iff in K. destruct K as [Kp K].
    specialize (IH K l l' Hl). assert (E : p = q <-> p' = q').
    { destruct Hp as [| n | t v Ht], Hq as [| n' | t' v' Ht']; try (split; intros; congruence).
      assert (E := R_one t v t' v' Ht Ht' Kp). split; intros F; injection F as F; f_equal; apply E, F. }
    split; intros F; injection F as F1 F2; f_equal; tauto.
Qed.

(* Memories that say the same of keys that stand for each other. *)
Definition alike (x : memory T) (y : memory V) : Prop := forall k k', key_is R k k' -> kept k = true ->
  one x k = one y k' /\ two x k = two y k' /\ uses x k = uses y k'.
Definition seen_is (s : seen (key T)) (s' : seen (key V)) : Prop :=
  option_is (fun k k' => key_is R k k' /\ kept k = true) (fst s) (fst s') /\
  option_is (fun k k' => key_is R k k' /\ kept k = true) (snd s) (snd s').

Lemma is_is k k' o o' : key_is R k k' -> kept k = true ->
  option_is (fun k k' => key_is R k k' /\ kept k = true) o o' ->
  is (key T) (key_dec T T_dec) k o = is (key V) (key_dec V V_dec) k' o'.
Proof.
  intros Hk K [|j j' [Hj _]]; [reflexivity|]. assert (E := key_once k k' Hk K j j' Hj).
  cbn [is]. destruct (key_dec T T_dec j k) as [a|a], (key_dec V V_dec j' k') as [b|b]; try reflexivity; exfalso.
  - apply b. symmetry. apply E. symmetry. exact a.
  - apply a. symmetry. apply E. symmetry. exact b.
Qed.

Lemma alike_lets r x y s s' : alike x y -> seen_is s s' -> lets_t r x s = lets_v r y s'.
Proof.
  intros A [H1 H2]. destruct r as [m a b | most b]; cbn [lets].
  - assert (O2 : match snd s with Some k => one x k | None => true end =
                 match snd s' with Some k => one y k | None => true end).
    { destruct H2 as [|k k' [Hk K]]; [reflexivity | apply A; assumption]. }
    assert (N2 : match snd s with Some k => negb (one x k) | None => true end =
                 match snd s' with Some k => negb (one y k) | None => true end).
    { destruct H2 as [|k k' [Hk K]]; [reflexivity | f_equal; apply A; assumption]. }
    destruct m; cbn [orders]; [exact O2 | exact O2 | exact N2|]. rewrite N2. f_equal.
    destruct H1 as [|k k' [Hk K]]; [reflexivity|].
    rewrite (is_is k k' _ _ Hk K H2). destruct (A k k' Hk K) as [_ [-> _]]. reflexivity.
  - destruct H2 as [|k k' [Hk K]]; [reflexivity|]. destruct (A k k' Hk K) as [_ [_ ->]]. reflexivity.
Qed.

Lemma alike_after r x y s s' : alike x y -> seen_is s s' -> alike (after_t r x s) (after_v r y s').
Proof.
  intros A [H1 H2] k k' Hk K. destruct (A k k' Hk K) as [A1 [A2 A3]].
  assert (E1 := is_is k k' _ _ Hk K H1). assert (E2 := is_is k k' _ _ Hk K H2).
  destruct r as [m a b | most b]; cbn [after one two uses]; [|rewrite E2, A3; auto].
  unfold first, second. rewrite E1, E2, A1, A2. destruct m; auto.
Qed.

(* The same reader reads keys of calls that stand for each other. *)
Definition keeps (keep' : key V -> bool) : Prop := forall k k', key_is R k k' -> kept k = keep' k'.

Lemma part_of_is c d s : call_is R c d -> part_is R (part_of c s) (part_of d s).
Proof.
  intros [_ H]. destruct s as [n|f]; cbn [part_of]; [constructor|].
  revert f. induction H as [|x y l l' Hx Hl IH]; intros f; [destruct f; constructor|].
  destruct f as [|f]; cbn [nth]; [destruct Hx; constructor; assumption | apply IH].
Qed.

Lemma sees_is keep' r c d : keeps keep' -> call_is R c d -> seen_is (sees kept r c) (sees keep' r d).
Proof.
  intros Hkeep Hc. assert (Rd : forall a, option_is (fun k k' => key_is R k k' /\ kept k = true)
    (read kept a c) (read keep' a d)).
  { intros a. unfold read. rewrite (proj1 Hc). destruct (a (base d)) as [parts|]; [|constructor].
    assert (K : key_is R (map (part_of c) parts) (map (part_of d) parts)).
    { induction parts as [|s parts IH]; constructor; [apply part_of_is, Hc | exact IH]. }
    cbn zeta. rewrite <- (Hkeep _ _ K). destruct (kept (map (part_of c) parts)) eqn:Ek; constructor. auto. }
  destruct r as [m a b | most b]; split; cbn [sees fst snd]; [apply Rd | apply Rd | constructor | apply Rd].
Qed.
End Two.

(* A side of a question, over the atoms A of its values: places of its plans, with the statements left to the
   run; `step` is None where plans, types or listed values have no such call; `fine` says which amounts its
   types allow; a cap for each sum; a rule for each monitor (one that reads nothing where there is none). *)
Record side (A : Type) := {
  place : Type; start : place; step : place -> nat -> list (option A) -> option place;
  ends : place -> bool; fine : nat -> list (option A) -> (nat -> Z) -> Prop;
  rules : nat -> rule; cap : nat -> option Z }.
Arguments place {A}. Arguments start {A}. Arguments step {A}. Arguments ends {A}. Arguments fine {A}.
Arguments rules {A}. Arguments cap {A}.

Section Sessions.
Variables A X : Type.
Variable X_dec : forall x y : X, {x = y} + {x <> y}.
Variable atom : X -> A.
Variable S : side A.
Definition shape (c : call X) : list (option A) := map (option_map atom) (given c).

Record config := { at_ : place S; mem : nat -> memory X; total : nat -> Z }.
(* Which monitors are used, and which keys are kept: all of them, but where a proof forgets some. *)
Variable used : nat -> bool.
Variable keep : key X -> bool.
Definition begin : config := {| at_ := start S; mem := fun _ => nothing; total := fun _ => 0 |}.
Definition moves (g : config) (c : call X) (p : place S) : Prop :=
  step S (at_ g) (base c) (shape c) = Some p /\ fine S (base c) (shape c) (adds c) /\
  (forall i, used i = true -> lets X X_dec (rules S i) (mem g i) (sees keep (rules S i) c) = true) /\
  (forall j, fits (total g j + adds c j) (cap S j)).
Definition next (g : config) (c : call X) (p : place S) : config :=
  {| at_ := p; mem := fun i => after X X_dec (rules S i) (mem g i) (sees keep (rules S i) c);
     total := fun j => total g j + adds c j |}.
(* Calls that a gate lets through one by one, the last one first: P(G); L(G) are those at an end. *)
Inductive session : list (call X) -> config -> Prop :=
| no_calls : session [] begin
| one_more l g c p : session l g -> moves g c p -> session (c :: l) (next g c p).
End Sessions.
Arguments at_ {A X S}. Arguments mem {A X S}. Arguments total {A X S}. Arguments Build_config {A X S}.
Definition every (n : nat) : bool := true.
Definition all_keys {X} (k : key X) : bool := true.

Lemma kept_all {X} (k : key X) : kept X (fun _ => true) k = true.
Proof. induction k as [|[| n | v] k IH]; cbn [kept forallb part_known]; auto. Qed.

Lemma sees_all {X} r (c : call X) : sees all_keys r c = sees (kept X (fun _ => true)) r c.
Proof.
  assert (E : forall a, read all_keys a c = read (kept X (fun _ => true)) a c).
  { intros a. unfold read. destruct (a (base c)); [|reflexivity]. rewrite kept_all. reflexivity. }
  destruct r; cbn [sees]; rewrite !E; reflexivity.
Qed.

(* A renaming: a permutation of the values, sort by sort and within atoms; constants are atoms of their own,
   and so are values that are added up, so these keep their names. *)
Section Renaming.
Variables A V : Type.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Variable atom : V -> A.
Variable S : side A.
Variables to back : V -> V.
Hypothesis there : forall v, back (to v) = v.
Hypothesis here : forall v, to (back v) = v.
Hypothesis to_atom : forall v, atom (to v) = atom v.

Definition renamed (c : call V) : call V :=
  {| base := base c; given := map (option_map to) (given c); adds := adds c |}.
Definition original (c : call V) : call V :=
  {| base := base c; given := map (option_map back) (given c); adds := adds c |}.
Definition names (v w : V) : Prop := w = to v.
Definition isomorphic (g h : config A V S) : Prop :=
  at_ g = at_ h /\ (forall i, alike V V (fun _ => true) names (mem g i) (mem h i)) /\
  (forall j, total g j = total h j).

Lemma names_once : one_to_one V V (fun _ => true) names.
Proof.
  intros v w v' w' -> -> _. split; [intros ->; reflexivity|]. intros E. rewrite <- (there v), <- (there v'), E.
  reflexivity.
Qed.

Lemma renamed_is c : call_is V V names c (renamed c).
Proof.
  split; [reflexivity|]. unfold renamed. cbn [given].
  induction (given c) as [|[v|] l IH]; constructor; try exact IH; constructor. reflexivity.
Qed.

Lemma renamed_shape c : shape A V atom (renamed c) = shape A V atom c.
Proof.
  unfold shape, renamed. cbn [given]. rewrite map_map. apply map_ext. intros [v|]; cbn; [rewrite to_atom|]; reflexivity.
Qed.

Lemma seen_renamed r c : seen_is V V (fun _ => true) names (sees all_keys r c) (sees all_keys r (renamed c)).
Proof.
  rewrite (sees_all r c). apply sees_is; [|apply renamed_is]. intros k k' _. apply kept_all.
Qed.

(* A renaming changes no decision of a monitor, and what is remembered is renamed. *)
Theorem renaming_changes_no_decision r x y c : alike V V (fun _ => true) names x y ->
  lets V V_dec r x (sees all_keys r c) = lets V V_dec r y (sees all_keys r (renamed c)) /\
  alike V V (fun _ => true) names (after V V_dec r x (sees all_keys r c))
    (after V V_dec r y (sees all_keys r (renamed c))).
Proof.
  intros H. split; [apply (alike_lets V V V_dec V_dec (fun _ => true) names names_once); [exact H | apply seen_renamed]|].
  apply (alike_after V V V_dec V_dec (fun _ => true) names names_once); [exact H | apply seen_renamed].
Qed.

Lemma original_renamed c : renamed (original c) = c.
Proof.
  destruct c as [b l f]. unfold renamed, original. cbn [base given adds]. f_equal. rewrite map_map.
  rewrite <- (map_id l) at 2. apply map_ext. intros [v|]; cbn; [rewrite here|]; reflexivity.
Qed.

(* Whatever may follow in one of two isomorphic configurations may follow, renamed, in the other. *)
Theorem isomorphic_memories_are_bisimilar used g h : isomorphic g h ->
  (at_ g = at_ h) /\
  (forall c p, moves A V V_dec atom S used all_keys g c p <-> moves A V V_dec atom S used all_keys h (renamed c) p) /\
  (forall c p, isomorphic (next A V V_dec S all_keys g c p) (next A V V_dec S all_keys h (renamed c) p)) /\
  (forall c', exists c, renamed c = c').
Proof.
  intros [E [M T]]. split; [exact E|]. split; [|split].
  - intros c p. unfold moves. rewrite renamed_shape. cbn [base renamed adds]. rewrite E.
    assert (L : forall i, lets V V_dec (rules S i) (mem g i) (sees all_keys (rules S i) c) =
      lets V V_dec (rules S i) (mem h i) (sees all_keys (rules S i) (renamed c))).
    { intros i. apply renaming_changes_no_decision, M. }
    split; intros [H1 [H2 [H3 H4]]]; (split; [exact H1|]; split; [exact H2|]; split).
    + intros i U. rewrite <- L. apply H3, U.
    + intros j. rewrite <- T. apply H4.
    + intros i U. rewrite L. apply H3, U.
    + intros j. rewrite T. apply H4.
  - intros c p. split; [reflexivity|]. split; [|intros j; cbn; rewrite T; reflexivity].
    intros i. cbn [mem next]. apply renaming_changes_no_decision, M.
  - intros c'. exists (original c'). apply original_renamed.
Qed.

(* So a session is let through exactly where a renamed one is. *)
Theorem renamed_sessions_are_sessions used l g : session A V V_dec atom S used all_keys l g ->
  exists h, session A V V_dec atom S used all_keys (map renamed l) h /\ isomorphic g h.
Proof.
  induction 1 as [|l g c p Hs [h [Hh I]] Hm].
  - exists (begin A V S). split; [constructor|]. split; [reflexivity|]. split; [|reflexivity].
    intros i k k' _ _. auto.
  - destruct (isomorphic_memories_are_bisimilar used g h I) as [_ [B [N _]]].
    exists (next A V V_dec S all_keys h (renamed c) p). split; [|apply N].
    cbn [map]. constructor; [exact Hh | apply B, Hm].
Qed.
End Renaming.
