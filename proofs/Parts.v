(* Exact questions: the lists that a question is split into.
   docs/spec/proof.md, section 1: one key at a time.

   There has to be a list for each key that a monitor of the right side can be broken at.  The kernel makes the
   list of these keys from tokens, chosen one after another as those of a call are; so no key of values is
   without one.  A list for a key looks at neither plans nor sums of the right side, nor at sums of the left; and
   it may leave the left's plans aside: then calls that no monitor of the list names need not be tried. *)

From Coq Require Import List Bool ZArith Lia.
From Tcc Require Import Monitors Intervals Renaming Relaxed Closed Keys.
Import ListNotations.
Local Open Scope Z_scope.

Section Parts.
Variables A T V : Type.
Variable A_dec : forall x y : A, {x = y} + {x <> y}.
Variable T_dec : forall x y : T, {x = y} + {x <> y}.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Variable token_atom : T -> A.
Variable atom : V -> A.
Variable most : A -> option nat.
Hypothesis most_right : forall a n vs, most a = Some n -> NoDup vs -> Forall (fun v => atom v = a) vs ->
  (length vs <= n)%nat.
Variable fresh : A -> list T -> T.
Hypothesis fresh_new : forall a u, ~ In (fresh a u) u.
Hypothesis fresh_atom : forall a u, token_atom (fresh a u) = a.
Notation token := (token A T).
Notation token_dec := (token_dec A T A_dec T_dec).
Notation tried := (tried A T A_dec token_atom most fresh).
Notation stand := (stand A T V token_atom atom).
Notation view_key := (view_key A T V).

Definition values_in {X} (k : key X) : list X := flat_map (fun p => match p with Value x => [x] | _ => [] end) k.
Definition tokens_in (l : list token) : list T := flat_map (fun x => match x with Known t => [t] | Other _ => [] end) l.

(* parts.py, `_keys`: a key of tokens, each chosen where those before it are held; they are tracked. *)
Definition asked_about (k : key token) (tracked : list T) : Prop :=
  kept token (known A T) k = true /\ tried [] (map Some (tokens_in (values_in k))) tracked.

Lemma values_viewed view (k : key V) : values_in (view_key view k) = map view (values_in k).
Proof.
  unfold values_in in *. induction k as [|p k IH]; [reflexivity|]. cbn [Keys.view_key map flat_map].
  change (map (view_part A T V view) k) with (view_key view k). rewrite IH, map_app. destruct p; reflexivity.
Qed.

Section View.
Variable tracked : list T.
Variable R : T -> V -> Prop.
Hypothesis R_stand : stand tracked R.
Variable view : V -> token.
Hypothesis view_is : sees_values A T V atom tracked R view.

Lemma view_of t v : R t v -> view v = Known t.
Proof.
  intros Hr. assert (H := view_is v). destruct (view v) as [t'|a]; [|destruct H as [_ N]; destruct (N t Hr)].
  f_equal. apply (proj1 (proj2 R_stand) t' v t v H Hr eq_refl). reflexivity.
Qed.

Lemma chosen_are_seen vs : forall l, Forall2 (option_is R) l (map Some vs) ->
  l = map Some (tokens_in (map view vs)) /\ forall v, In v vs -> known A T (view v) = true.
Proof.
  induction vs as [|v vs IH]; intros l H; inversion H as [|x y l' r' Hx Hl]; subst; [split; [reflexivity | intros v []]|].
  destruct (IH l' Hl) as [-> K]. inversion Hx as [|t w Ht]; subst. cbn [map tokens_in flat_map].
  rewrite (view_of t v Ht). split; [reflexivity|]. intros w [<- | Hw]; [rewrite (view_of t v Ht); reflexivity | apply K, Hw].
Qed.

Lemma key_is_kept (k : key V) : (forall v, In v (values_in k) -> known A T (view v) = true) ->
  kept token (known A T) (view_key view k) = true.
Proof.
  induction k as [|p k IH]; intros H; [reflexivity|]. cbn [Keys.view_key map kept forallb]. apply andb_true_iff. split.
  - destruct p as [| n | v]; try reflexivity. cbn. apply H. left. reflexivity.
  - apply IH. intros v Hv. apply H. unfold values_in. cbn [flat_map]. apply in_or_app. right. exact Hv.
Qed.
End View.

(* Whatever values a key has: there is a key of tokens for it that the kernel asks about. *)
Theorem every_key_is_asked_about (k : key V) : exists tracked R view,
  stand tracked R /\ sees_values A T V atom tracked R view /\ asked_about (view_key view k) tracked.
Proof.
  assert (S0 : stand [] (fun _ _ => False)).
  { split; [constructor|]. split; [intros t v t' v' []|]. split; [intros t v []|]. intros t. split; [intros [] | intros [v []]]. }
  destruct (every_choice_is_tried A T V A_dec V_dec token_atom atom most most_right fresh fresh_new fresh_atom
    (map Some (values_in k)) [] _ S0) as [l [u [R [Ht [Hs [_ Hf]]]]]].
  destruct (some_view A T V V_dec token_atom atom u R Hs) as [view Hv]. exists u, R, view.
  destruct (chosen_are_seen u R Hs view Hv (values_in k) l Hf) as [-> K].
  split; [exact Hs|]. split; [exact Hv|]. split; [apply key_is_kept, K|]. rewrite values_viewed. exact Ht.
Qed.

(* Sides as lists for a key see them: without sums; without plans as well. *)
Definition zeroed (c : call V) : call V := {| base := base c; given := given c; adds := fun _ => 0 |}.
Definition unsummed (S : side A) : side A :=
  {| place := place S; start := start S; step := step S; ends := ends S; fine := fun _ _ ad => forall j, ad j = 0;
     rules := rules S; cap := fun _ => None |}.
Definition unplanned (S : side A) : side A :=
  {| place := unit; start := tt; step := fun _ _ _ => Some tt; ends := fun _ => true;
     fine := fun _ _ ad => forall j, ad j = 0; rules := rules S; cap := fun _ => None |}.

(* A side of which every session of another is one, whatever it adds up. *)
Definition admits (L S : side A) : Prop :=
  (forall b sh ad, fine L b sh ad -> forall j, ad j = 0) /\
  forall l g, session A V V_dec atom S every all_keys l g ->
  exists h, session A V V_dec atom L every all_keys (map zeroed l) h.

Theorem sums_left_aside_admit_more S : admits (unsummed S) S.
Proof.
  split; [auto|]. intros l g Hs.
  assert (H : exists h, session A V V_dec atom (unsummed S) every all_keys (map zeroed l) h /\ at_ h = at_ g /\
    forall i, mem h i = mem g i); [|destruct H as [h [Hh _]]; eauto].
  induction Hs as [|l g c p Hs [h [Hh [E M]]] [H1 [H2 [H3 H4]]]].
  - exists (begin A V (unsummed S)). split; [constructor | auto].
  - exists (next A V V_dec (unsummed S) all_keys h (zeroed c) p). split.
    + cbn [map]. constructor; [exact Hh|]. split; [cbn [step unsummed]; rewrite E; exact H1|]. split; [intros j; reflexivity|].
      split; [intros i U; rewrite M; exact (H3 i U) | intros j; exact I].
    + split; [reflexivity|]. intros i. cbn [mem next]. rewrite M. reflexivity.
Qed.

Theorem plans_left_aside_admit_more S : admits (unplanned S) S.
Proof.
  split; [auto|]. intros l g Hs.
  assert (H : exists h, session A V V_dec atom (unplanned S) every all_keys (map zeroed l) h /\
    forall i, mem h i = mem g i); [|destruct H as [h [Hh _]]; eauto].
  induction Hs as [|l g c p Hs [h [Hh M]] [H1 [H2 [H3 H4]]]].
  - exists (begin A V (unplanned S)). split; [constructor | auto].
  - exists (next A V V_dec (unplanned S) all_keys h (zeroed c) tt). split.
    + cbn [map]. constructor; [exact Hh|]. split; [reflexivity|]. split; [intros j; reflexivity|].
      split; [intros i U; rewrite M; exact (H3 i U) | intros j; exact I].
    + intros i. cbn [mem next]. rewrite M. reflexivity.
Qed.

(* moves.py, `_naming`: calls that a monitor of the list reads; no other changes what is kept. *)
Definition reads (r : rule) (b : nat) : Prop :=
  match r with
  | Order _ x y => x b <> None \/ y b <> None
  | AtMost _ y => y b <> None
  end.

Lemma unread {X} keep r (c : call X) : ~ reads r (base c) -> sees keep r c = (None, None).
Proof.
  assert (N : forall a : reader, ~ a (base c) <> None -> read keep a c = None).
  { intros a H. unfold read. destruct (a (base c)) as [parts|]; [exfalso; apply H; discriminate | reflexivity]. }
  destruct r as [m x y | most' y]; cbn [reads sees]; intros H; rewrite !N by tauto; reflexivity.
Qed.

Definition same_key (k : key token) : key token -> bool := fun j => if key_dec token token_dec j k then true else false.
Definition only_rule (i : nat) : nat -> bool := fun j => Nat.eqb j i.
Notation closed_at L SR used i k := (key_closed A T A_dec T_dec token_atom most L (unplanned SR) used (only_rule i) (same_key k)
  (fun _ _ => true) (fun _ => 1) (fun _ _ _ => None)).
Notation kept_t := (kept token (known A T)).
Notation lets_t := (lets token token_dec). Notation after_t := (after token token_dec).

(* A list without plans: what the kernel tries, at each state all calls that are named. *)
Definition named_closed (SL SR : side A) (used : nat -> bool) i k (named : nat -> bool) (tracked : list T)
    (listed : state A token (unplanned SL) (unplanned SR) -> Prop) : Prop :=
  forall s, listed s -> forall b l, named b = true -> Forall (offered A T A_dec token_atom most tracked) l ->
  let c := {| base := b; given := l; adds := fun _ => 0 |} in
  (forall j, used j = true -> lets_t (rules SL j) (left_mem _ _ _ _ s j) (sees kept_t (rules SL j) c) = true) ->
  lets_t (rules SR i) (right_mem _ _ _ _ s i) (sees (same_key k) (rules SR i) c) = true /\
  exists to, listed to /\
    (forall j, used j = true -> equal_on A T kept_t (after_t (rules SL j) (left_mem _ _ _ _ s j) (sees kept_t (rules SL j) c))
      (left_mem _ _ _ _ to j)) /\
    equal_on A T (same_key k) (after_t (rules SR i) (right_mem _ _ _ _ s i) (sees (same_key k) (rules SR i) c))
      (right_mem _ _ _ _ to i) /\
    (forall j, span _ _ _ _ to j = span _ _ _ _ s j).

Theorem calls_that_none_names_need_no_step SL SR used i k named tracked listed :
  (forall j b, used j = true -> reads (rules SL j) b -> named b = true) ->
  (forall b, reads (rules SR i) b -> named b = true) ->
  named_closed SL SR used i k named tracked listed -> closed_at (unplanned SL) SR used i k tracked listed.
Proof.
  intros NL NR C s Ls. split; [reflexivity|]. intros b l p Ho c _ Hl _. exists tt. split; [reflexivity|].
  assert (Sp : forall j low high, Closed.added A token (unplanned SL) (unplanned SR) (fun _ => 1) (fun _ _ _ => None) s (base c)
    (shape A token (its_atom A T token_atom) c) j = leads low high -> fst (span _ _ _ _ s j) = low /\ snd (span _ _ _ _ s j) = high).
  { intros j low high E. cbn in E. injection E as -> ->. auto. }
  destruct (named b) eqn:Nb.
  - destruct (C s Ls b l Nb Ho Hl) as [Ok [to [Lt [El [Er Es]]]]]. split.
    { intros _ j Hj. apply Nat.eqb_eq in Hj. subst j. exact Ok. }
    split; [intros j E; discriminate E|]. exists to. split; [exact Lt|]. split; [destruct (left_at _ _ _ _ to), p; reflexivity|].
    split; [destruct (right_at _ _ _ _ to); reflexivity|]. split; [exact El|]. split.
    { intros j Hj. apply Nat.eqb_eq in Hj. subst j. exact Er. }
    intros j low high E. apply Sp in E. rewrite Es. lia.
  - assert (UL : forall j, used j = true -> sees kept_t (rules SL j) c = (None, None)).
    { intros j U. apply unread. intros Hr. rewrite (NL j b U Hr) in Nb. discriminate. }
    assert (UR : sees (same_key k) (rules SR i) c = (None, None)).
    { apply unread. intros Hr. rewrite (NR b Hr) in Nb. discriminate. }
    assert (Le : forall r x, lets_t r x (None, None) = true) by (intros [[] ? ? | ? ?] x; reflexivity).
    assert (Af : forall keep r x, equal_on A T keep (after_t r x (None, None)) x) by (intros keep [[] ? ? | ? ?] x j _; auto).
    split; [intros _ j Hj; apply Nat.eqb_eq in Hj; subst j; cbn [rules unplanned]; rewrite UR; apply Le|].
    split; [intros j E; discriminate E|]. exists s. split; [exact Ls|]. split; [destruct (left_at _ _ _ _ s), p; reflexivity|].
    split; [destruct (right_at _ _ _ _ s); reflexivity|]. split; [intros j U; cbn [rules unplanned]; rewrite (UL j U); apply Af|].
    split; [intros j Hj; apply Nat.eqb_eq in Hj; subst j; cbn [rules unplanned]; rewrite UR; apply Af|].
    intros j low high E. apply Sp in E. lia.
Qed.

(* All lists together: where plans, types and sums of the right refuse nothing, and there is a closed list for
   each key that is asked about, with or without plans, every session of the left is one of the right. *)
Variables SL SR : side A.

Lemma zeroed_remembers keep r l : remembers V V_dec keep r (map zeroed l) = remembers V V_dec keep r l.
Proof. induction l as [|c l IH]; [reflexivity|]. cbn [map]. unfold remembers in *. cbn [fold_right]. rewrite IH. reflexivity. Qed.

Theorem lists_for_every_key_prove_inclusion :
  (forall l g, session A V V_dec atom SL every all_keys l g ->
    exists h, session A V V_dec atom SR (fun _ => false) all_keys l h /\ (ends SL (at_ g) = true -> ends SR (at_ h) = true)) ->
  (forall i k tracked, asked_about k tracked -> exists L used listed, admits L SL /\
    closed_at L SR used i k tracked listed /\ key_start A T L (unplanned SR) listed) ->
  forall l g, session A V V_dec atom SL every all_keys l g ->
  exists h, session A V V_dec atom SR every all_keys l h /\ (ends SL (at_ g) = true -> ends SR (at_ h) = true).
Proof.
  intros Plans Lists. apply keys_one_at_a_time_prove_inclusion; [exact Plans|]. intros l g c p Hs Hm i k.
  destruct (every_key_is_asked_about k) as [u [R [view [St [Vi Ab]]]]].
  destruct (Lists i _ u Ab) as [L [used [listed [[Fz Ad] [C Begin]]]]].
  destruct (Ad _ _ (one_more A V V_dec atom SL every all_keys l g c p Hs Hm)) as [h' Hh]. cbn [map] in Hh.
  inversion Hh as [|? h0 ? q Hh0 Hq]; subst.
  assert (Kn : forall j, same_key (view_key view k) j = true -> kept_t j = true).
  { unfold same_key. intros j H. destruct (key_dec token token_dec j (view_key view k)) as [-> | _]; [apply Ab | discriminate]. }
  destruct (a_key_list_holds_every_session A T V A_dec T_dec V_dec token_atom atom most most_right L (unplanned SR) used
    (only_rule i) _ Kn (fun _ _ => true) (fun _ => 1) ltac:(intros; lia) (fun _ _ _ => None) (fun _ _ _ _ => True) (fun _ _ _ _ => True)
    Fz (fun b sh ad F _ => Fz b sh ad F) (fun _ => I) u R St view Vi listed C Begin _ _ Hh0) as [hr [Hr [_ K]]].
  specialize (K (zeroed c) q Hq eq_refl i (Nat.eqb_refl i)).
  exists (of_values A T V view (same_key (view_key view k))). split.
  - unfold of_values, same_key. destruct (key_dec token token_dec (view_key view k) (view_key view k)); congruence.
  - rewrite (remembered A V V_dec atom (unplanned SR) _ _ _ _ Hr), zeroed_remembers in K. exact K.
Qed.
End Parts.
