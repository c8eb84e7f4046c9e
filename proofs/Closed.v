(* Exact questions: a closed list of states holds every session.
   docs/spec/proof.md, section 1.

   A state has tokens in the place of values, each of an atom, and an interval for each sum.  It stands for
   every configuration that one gets by giving its tokens different values out of their atoms, and its sums
   numbers out of their intervals.  At each state every call is tried, with each choice of tokens: one that is
   held or was chosen before, or one that is not, while the atom may have so many values.  Where all of them
   lead into the list, under a renaming, no session leaves it. *)

From Coq Require Import List Bool ZArith Lia.
From Tcc Require Import Monitors Intervals Renaming.
Import ListNotations.
Local Open Scope Z_scope.

(* Memories that say the same of what stands for the same, and hold nothing else. *)
Section Matched.
Variables T V : Type.
Variable T_dec : forall x y : T, {x = y} + {x <> y}.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Definition once (R : T -> V -> Prop) : Prop := one_to_one T V (fun _ => true) R.
Definition matched (R : T -> V -> Prop) (x : memory T) (y : memory V) : Prop :=
  alike T V (fun _ => true) R x y /\
  (forall k, marked x k -> exists k', key_is T V R k k') /\
  (forall k', marked y k' -> exists k, key_is T V R k k').

Lemma key_more (R R' : T -> V -> Prop) k k' : (forall t v, R t v -> R' t v) ->
  key_is T V R k k' -> key_is T V R' k k'.
Proof.
  intros H. induction 1 as [|p p' k k' Hp Hk IH]; constructor; [|exact IH].
  destruct Hp; constructor. apply H. assumption.
Qed.

Lemma matched_more (R R' : T -> V -> Prop) x y : (forall t v, R t v -> R' t v) -> once R' ->
  matched R x y -> matched R' x y.
Proof.
  intros H O [M1 [M2 M3]]. split; [|split].
  - intros k k' Hk _. destruct (marked_dec T x k) as [Mk | Mk]; [|destruct (marked_dec V y k') as [Mk' | Mk']].
    + destruct (M2 k Mk) as [j Hj]. assert (E := key_once T V _ R' O k k' Hk (kept_all k) k j (key_more R R' k j H Hj)).
      assert (k' = j) by (apply E; reflexivity). subst j. apply M1; [exact Hj | apply kept_all].
    + destruct (M3 k' Mk') as [j Hj]. assert (E := key_once T V _ R' O k k' Hk (kept_all k) j k' (key_more R R' j k' H Hj)).
      assert (k = j) by (apply E; reflexivity). subst j. apply M1; [exact Hj | apply kept_all].
    + destruct (not_marked T x k Mk) as [-> [-> ->]]. destruct (not_marked V y k' Mk') as [-> [-> ->]]. auto.
  - intros k Mk. destruct (M2 k Mk) as [j Hj]. exists j. apply (key_more R R' k j H Hj).
  - intros k' Mk. destruct (M3 k' Mk) as [j Hj]. exists j. apply (key_more R R' j k' H Hj).
Qed.

Lemma matched_after R r x y s s' : once R -> matched R x y -> seen_is T V (fun _ => true) R s s' ->
  matched R (after T T_dec r x s) (after V V_dec r y s').
Proof.
  intros O [M1 [M2 M3]] S. split; [apply (alike_after T V T_dec V_dec _ R O); assumption|]. destruct S as [S1 S2].
  split; intros k Mk; apply marked_after in Mk; destruct Mk as [Mk | [E | E]]; auto.
  - rewrite E in S1. inversion S1 as [|j j' [Hj _]]; subst. exists j'. exact Hj.
  - rewrite E in S2. inversion S2 as [|j j' [Hj _]]; subst. exists j'. exact Hj.
  - rewrite E in S1. inversion S1 as [|j j' [Hj _]]; subst. exists j. exact Hj.
  - rewrite E in S2. inversion S2 as [|j j' [Hj _]]; subst. exists j. exact Hj.
Qed.
End Matched.
Arguments once {T V}. Arguments matched {T V}.

(* What has been renamed stands for what it stood for. *)
Section Renamed.
Variables T V : Type.
Variable names : T -> T -> Prop.
Variable R : T -> V -> Prop.
Definition through (t2 : T) (v : V) : Prop := exists t, names t t2 /\ R t v.

Lemma through_once : once names -> once R -> once through.
Proof.
  intros N O t2 v t2' v' [t [Hn Hr]] [t' [Hn' Hr']] _.
  assert (E1 := N _ _ _ _ Hn Hn' eq_refl). assert (E2 := O _ _ _ _ Hr Hr' eq_refl). tauto.
Qed.

Lemma key_through k2 k' : key_is T V through k2 k' <-> exists k, key_is T T names k k2 /\ key_is T V R k k'.
Proof.
  split.
  - induction 1 as [|p p' k2 k' Hp Hk [k [IH1 IH2]]]; [exists []; split; constructor|].
    destruct Hp as [| n | t2 v [t [Hn Hr]]].
    + exists (Absent :: k). split; constructor; try assumption; constructor.
    + exists (Listed n :: k). split; constructor; try assumption; constructor.
    + exists (Value t :: k). split; constructor; try assumption; constructor; assumption.
  - intros [k [H1 H2]]. revert k2 H1. induction H2 as [|p p' k k' Hp Hk IH]; intros k2 H1;
      inversion H1 as [|q q2 l l2 Hq Hl]; subst; constructor; [|apply IH, Hl].
    destruct Hp as [| n | t v Hr]; inversion Hq; subst; constructor. exists t. auto.
Qed.

Lemma matched_through x2 x y : matched names x x2 -> matched R x y -> matched through x2 y.
Proof.
  intros [N1 [N2 N3]] [M1 [M2 M3]].
  assert (Mark : forall k k2, key_is T T names k k2 -> (marked x k <-> marked x2 k2)).
  { intros k k2 Hk. destruct (N1 k k2 Hk (kept_all k)) as [E1 [E2 E3]]. unfold marked. rewrite E1, E2, E3. reflexivity. }
  split; [|split].
  - intros k2 k' Hk _. apply key_through in Hk. destruct Hk as [k [H1 H2]].
    destruct (N1 k k2 H1 (kept_all k)) as [<- [<- <-]]. apply M1; [exact H2 | apply kept_all].
  - intros k2 Mk. destruct (N3 k2 Mk) as [k Hk]. apply (Mark k k2 Hk) in Mk. destruct (M2 k Mk) as [k' Hk'].
    exists k'. apply key_through. exists k. auto.
  - intros k' Mk. destruct (M3 k' Mk) as [k Hk]. assert (Mx : marked x k).
    { destruct (M1 k k' Hk (kept_all k)) as [E1 [E2 E3]]. unfold marked in *. rewrite E1, E2, E3. exact Mk. }
    destruct (N2 k Mx) as [k2 Hk2]. exists k2. apply key_through. exists k. auto.
Qed.
End Renamed.

Section Tried.
Variables A T V : Type.
Variable A_dec : forall x y : A, {x = y} + {x <> y}.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Variable token_atom : T -> A.
Variable atom : V -> A.
(* At most so many values has an atom; None: no end is known. *)
Variable most : A -> option nat.
Hypothesis most_right : forall a n vs, most a = Some n -> NoDup vs -> Forall (fun v => atom v = a) vs ->
  (length vs <= n)%nat.
(* Of an atom a token that is not among some. *)
Variable fresh : A -> list T -> T.
Hypothesis fresh_new : forall a u, ~ In (fresh a u) u.
Hypothesis fresh_atom : forall a u, token_atom (fresh a u) = a.

Definition of_atom (a : A) (u : list T) : list T := filter (fun t => if A_dec (token_atom t) a then true else false) u.
Definition room (a : A) (u : list T) : Prop := match most a with Some n => (length (of_atom a u) < n)%nat | None => True end.

(* moves.py, `_choices`: what is tried where tokens are held, and which are held or chosen then. *)
Inductive tried : list T -> list (option T) -> list T -> Prop :=
| tried_all u : tried u [] u
| left_out u l u' : tried u l u' -> tried u (None :: l) u'
| again u t l u' : In t u -> tried u l u' -> tried u (Some t :: l) u'
| anew u a l u' : room a u -> tried (fresh a u :: u) l u' -> tried u (Some (fresh a u) :: l) u'.

(* Tokens that stand for different values out of their atoms. *)
Definition stand (u : list T) (R : T -> V -> Prop) : Prop :=
  NoDup u /\ once R /\ (forall t v, R t v -> token_atom t = atom v) /\ (forall t, In t u <-> exists v, R t v).

Lemma stands_for u R v : stand u R -> (exists t, R t v) \/ (forall t, ~ R t v).
Proof.
  intros [_ [O [_ D]]]. assert (F : forall w, incl w u -> (exists t, R t v) \/ (forall t, In t w -> ~ R t v)).
  { induction w as [|t w IH]; intros I; [right; intros t []|].
    destruct (IH (fun x Hx => I x (or_intror Hx))) as [H | H]; [left; exact H|].
    destruct (proj1 (D t) (I t (or_introl eq_refl))) as [v' Hv'].
    destruct (V_dec v' v) as [-> | N]; [left; exists t; exact Hv'|]. right. intros t' [<- | Ht']; [|apply H, Ht'].
    intros Hv. apply N. apply (O t v' t v Hv' Hv eq_refl). reflexivity. }
  destruct (F u (incl_refl u)) as [H | H]; [left; exact H|]. right. intros t Ht. apply (H t); [|exact Ht].
  apply D. exists v. exact Ht.
Qed.

Lemma values_of u R a : stand u R -> forall w, NoDup w -> incl w u -> Forall (fun t => token_atom t = a) w ->
  exists vs, length vs = length w /\ NoDup vs /\ Forall (fun v => atom v = a) vs /\
    forall v, In v vs -> exists t, In t w /\ R t v.
Proof.
  intros [_ [O [At D]]]. induction w as [|t w IH]; intros N I F.
  - exists []. split; [reflexivity|]. split; [constructor|]. split; [constructor | intros v []].
  - inversion N as [|? ? Nt Nw]; subst. inversion F as [|? ? Ft Fw]; subst.
    destruct (IH Nw (fun x Hx => I x (or_intror Hx)) Fw) as [vs [L [Nv [Av Hv]]]].
    destruct (proj1 (D t) (I t (or_introl eq_refl))) as [v Rv]. exists (v :: vs).
    split; [simpl; congruence|]. split.
    + constructor; [|exact Nv]. intros Hin. destruct (Hv v Hin) as [t' [Ht' Rt']].
      apply Nt. replace t with t'; [exact Ht'|]. apply (O t' v t v Rt' Rv eq_refl). reflexivity.
    + split; [constructor; [symmetry; apply At, Rv | exact Av]|].
      intros v' [<- | Hv']; [exists t; split; [left; reflexivity | exact Rv]|].
      destruct (Hv v' Hv') as [t' [Ht' Rt']]. exists t'. split; [right; exact Ht' | exact Rt'].
Qed.

Lemma of_atom_in a u t : In t (of_atom a u) <-> In t u /\ token_atom t = a.
Proof.
  unfold of_atom. rewrite filter_In. destruct (A_dec (token_atom t) a); intuition congruence.
Qed.

Lemma room_for u R v : stand u R -> (forall t, ~ R t v) -> room (atom v) u.
Proof.
  intros S N. unfold room. destruct (most (atom v)) as [n|] eqn:E; [|exact I].
  assert (Nu := proj1 S). destruct (values_of u R (atom v) S (of_atom (atom v) u)) as [vs [L [Nv [Av Hv]]]].
  - apply NoDup_filter, Nu.
  - intros t Ht. apply of_atom_in in Ht. apply Ht.
  - apply Forall_forall. intros t Ht. apply of_atom_in in Ht. apply Ht.
  - rewrite <- L. apply (most_right (atom v) n (v :: vs) E); [|constructor; [reflexivity | exact Av]].
    constructor; [|exact Nv]. intros Hin. destruct (Hv v Hin) as [t [_ Ht]]. exact (N t Ht).
Qed.

Definition put (R : T -> V -> Prop) (t : T) (v : V) : T -> V -> Prop := fun t' v' => (t' = t /\ v' = v) \/ R t' v'.

Lemma stand_put u R t v : stand u R -> ~ In t u -> (forall t', ~ R t' v) -> token_atom t = atom v ->
  stand (t :: u) (put R t v).
Proof.
  intros [N [O [At D]]] Nt Nv Ea. split; [constructor; assumption|]. split; [|split].
  - intros t1 v1 t2 v2 [[-> ->] | H1] [[-> ->] | H2] _.
    + split; reflexivity.
    + split; intros E; [subst t2; exfalso; apply Nt, D; eauto | subst v2; exfalso; eapply Nv; exact H2].
    + split; intros E; [subst t1; exfalso; apply Nt, D; eauto | subst v1; exfalso; eapply Nv; exact H1].
    + apply (O t1 v1 t2 v2 H1 H2 eq_refl).
  - intros t1 v1 [[-> ->] | H1]; [exact Ea | apply At, H1].
  - intros t1. split.
    + intros [<- | H]; [exists v; left; auto|]. apply D in H. destruct H as [w H]. exists w. right. exact H.
    + intros [w [[-> _] | H]]; [left; reflexivity | right; apply D; exists w; exact H].
Qed.

(* No choice of values is left out: each is that of one choice of tokens that is tried. *)
Theorem every_choice_is_tried given : forall u R, stand u R ->
  exists l u' R', tried u l u' /\ stand u' R' /\ (forall t v, R t v -> R' t v) /\ Forall2 (option_is R') l given.
Proof.
  induction given as [|[v|] given IH]; intros u R S.
  - exists [], u, R. split; [constructor|]. auto.
  - destruct (stands_for u R v S) as [[t Ht] | N].
    + destruct (IH u R S) as [l [u' [R' [H1 [H2 [H3 H4]]]]]]. exists (Some t :: l), u', R'.
      split; [apply again; [apply S; exists v; exact Ht | exact H1]|].
      split; [exact H2|]. split; [exact H3|]. constructor; [constructor; apply H3, Ht | exact H4].
    + set (t := fresh (atom v) u). assert (S' := stand_put u R t v S (fresh_new _ _) N (fresh_atom _ _)).
      destruct (IH _ _ S') as [l [u' [R' [H1 [H2 [H3 H4]]]]]]. exists (Some t :: l), u', R'.
      split; [apply anew; [apply (room_for u R v S N) | exact H1]|]. split; [exact H2|].
      split; [intros t' v' H; apply H3; right; exact H|].
      constructor; [constructor; apply H3; left; auto | exact H4].
  - destruct (IH u R S) as [l [u' [R' [H1 [H2 [H3 H4]]]]]]. exists (None :: l), u', R'.
    split; [constructor; exact H1|]. split; [exact H2|]. split; [exact H3|]. constructor; [constructor | exact H4].
Qed.

Lemma shape_is (R : T -> V -> Prop) l given : (forall t v, R t v -> token_atom t = atom v) -> Forall2 (option_is R) l given ->
  map (option_map token_atom) l = map (option_map atom) given.
Proof.
  intros At. induction 1 as [|x y l g Hx Hl IH]; [reflexivity|]. cbn [map]. f_equal; [|exact IH].
  destruct Hx as [|t v H]; [reflexivity|]. cbn. f_equal. apply At, H.
Qed.

(* Both sides, and their sums. *)
Variable T_dec : forall x y : T, {x = y} + {x <> y}.
Variables SL SR : side A.
Variable used : nat -> bool.   (* the monitors of the left that a list uses *)
Variable grid : nat -> Z.
Hypothesis grid_pos : forall j, 0 < grid j.
(* Of a call the parameter that is added to a sum, and its values on either side. *)
Variable entry : nat -> list (option A) -> nat -> option sum.
Variables left_has right_has : nat -> list (option A) -> nat -> Z -> Prop.
Hypothesis left_adds : forall b sh ad, fine SL b sh ad -> forall j,
  match entry b sh j with
  | None => ad j = 0
  | Some u => left_has b sh j (ad j) /\ describes (grid j) u (left_has b sh j) (right_has b sh j) /\
              mine u = cap SL j /\ theirs u = cap SR j
  end.
Hypothesis right_fine : forall b sh ad, fine SL b sh ad ->
  (forall j u, entry b sh j = Some u -> right_has b sh j (ad j)) -> fine SR b sh ad.
Hypothesis caps_from_0 : forall j, fits 0 (cap SR j).

Record state := {
  left_at : place SL; right_at : place SR; left_mem : nat -> memory T; right_mem : nat -> memory T;
  held : list T; span : nat -> Z * Z }.
Notation lets := (lets T T_dec).
Notation after := (after T T_dec).
Notation shape_t := (shape A T token_atom).

Definition added (s : state) (b : nat) (sh : list (option A)) (j : nat) : summed :=
  match entry b sh j with
  | Some u => add (grid j) u (fst (span s j)) (snd (span s j))
  | None => leads (fst (span s j)) (snd (span s j))
  end.

(* check.py, `_leads`: the state after a call is a listed one, its tokens renamed one to one and within atoms,
   each of its sums in the interval there. *)
Definition leads_into (s : state) (c : call T) (u : list T) (p : place SL) (q : place SR) (to : state) : Prop :=
  left_at to = p /\ right_at to = q /\
  exists names : T -> T -> Prop,
    once names /\ (forall t t2, names t t2 -> token_atom t = token_atom t2 /\ In t u) /\
    (forall t2, In t2 (held to) <-> exists t, names t t2) /\
    (forall i, used i = true -> matched names (after (rules SL i) (left_mem s i) (sees all_keys (rules SL i) c)) (left_mem to i)) /\
    (forall i, matched names (after (rules SR i) (right_mem s i) (sees all_keys (rules SR i) c)) (right_mem to i)) /\
    (forall j low high, added s (base c) (shape_t c) j = leads low high ->
      fst (span to j) <= low /\ high <= snd (span to j)).

(* Rules 2 and 3 of a closed list; with rule 4. *)
Definition tries_all (listed : state -> Prop) (s : state) : Prop :=
  forall b l u p, tried (held s) l u -> let c := {| base := b; given := l; adds := fun _ => 0 |} in
    step SL (left_at s) b (shape_t c) = Some p ->
    (forall i, used i = true -> lets (rules SL i) (left_mem s i) (sees all_keys (rules SL i) c) = true) ->
    (forall j, added s b (shape_t c) j <> no_call) ->
    exists q, step SR (right_at s) b (shape_t c) = Some q /\
      (forall i, lets (rules SR i) (right_mem s i) (sees all_keys (rules SR i) c) = true) /\
      (forall j, added s b (shape_t c) j <> refused) /\
      exists to, listed to /\ leads_into s c u p q to.
Definition goes_on (listed : state -> Prop) : Prop := forall s, listed s -> NoDup (held s) /\ tries_all listed s.
Definition closed (listed : state -> Prop) : Prop := goes_on listed /\
  forall s, listed s -> ends SL (left_at s) = true -> ends SR (right_at s) = true.
Definition holds_the_start (listed : state -> Prop) : Prop := exists s, listed s /\
  left_at s = start SL /\ right_at s = start SR /\ held s = [] /\
  (forall i k, ~ marked (left_mem s i) k /\ ~ marked (right_mem s i) k) /\
  (forall j, fst (span s j) <= 0 <= snd (span s j)).

(* The configurations that a state stands for. *)
Definition stands_for_both (s : state) (g : config A V SL) (h : config A V SR) : Prop :=
  exists R, stand (held s) R /\ at_ g = left_at s /\ at_ h = right_at s /\
    (forall i, used i = true -> matched R (left_mem s i) (mem g i)) /\
    (forall i, matched R (right_mem s i) (mem h i)) /\
    (forall j, inside (grid j) (fst (span s j)) (snd (span s j)) (total g j)) /\
    (forall j, total h j = total g j /\ fits (total h j) (cap SR j)).

Lemma seen_is_of (R : T -> V -> Prop) r (c : call T) (d : call V) : call_is T V R c d ->
  seen_is T V (fun _ => true) R (sees all_keys r c) (sees all_keys r d).
Proof.
  intros H. rewrite (sees_all r c). apply sees_is; [|exact H]. intros k k' _. apply kept_all.
Qed.

Lemma matched_through' (names : T -> T -> Prop) R x2 x (y : memory V) :
  matched names x x2 -> matched R x y -> matched (through T V names R) x2 y.
Proof. apply matched_through. Qed.

Lemma one_step listed s g h c p : goes_on listed -> listed s -> stands_for_both s g h ->
  moves A V V_dec atom SL every all_keys g c p ->
  exists q to, moves A V V_dec atom SR every all_keys h c q /\ listed to /\
    stands_for_both to (next A V V_dec SL all_keys g c p) (next A V V_dec SR all_keys h c q).
Proof.
  intros C L [R [St [Eg [Eh [Ml [Mr [Sp Tot]]]]]]] [Hstep [Hfine [Hlets Hfits]]].
  destruct (C s L) as [_ Tr].
  destruct (every_choice_is_tried (given c) (held s) R St) as [l [u [R' [Ht [St' [Inc Hl]]]]]].
  assert (St'' := St'). destruct St'' as [_ [O' [At' D']]].
  set (d := {| base := base c; given := l; adds := fun _ => 0 |}).
  assert (Cis : call_is T V R' d c) by (split; [reflexivity | exact Hl]).
  assert (Sh : shape_t d = shape A V atom c) by (apply (shape_is R'); assumption).
  assert (Ml' : forall i, used i = true -> matched R' (left_mem s i) (mem g i)).
  { intros i U. apply (matched_more T V R R'); auto. }
  assert (Mr' : forall i, matched R' (right_mem s i) (mem h i)).
  { intros i. apply (matched_more T V R R'); auto. }
  assert (Ad : forall j, match added s (base c) (shape_t d) j with
    | no_call => False
    | refused => True
    | leads low high => (forall w, entry (base c) (shape_t d) j = Some w -> right_has (base c) (shape_t d) j (adds c j)) /\
        inside (grid j) low high (total g j + adds c j) /\ fits (total g j + adds c j) (cap SR j)
    end).
  { intros j. unfold added. rewrite Sh. assert (La := left_adds _ _ _ Hfine j).
    destruct (entry (base c) (shape A V atom c) j) as [w|] eqn:E.
    - destruct La as [Lh [De [Em Et]]].
      assert (F : fits (total g j + adds c j) (mine w)) by (rewrite Em; apply Hfits).
      assert (In := sums_stay_inside (grid j) (grid_pos j) w _ _ _ _ _ _ De (Sp j) Lh F).
      destruct (add (grid j) w (fst (span s j)) (snd (span s j))) as [| | low high]; auto.
      rewrite <- Et. split; [intros w' _; apply In | apply In].
    - rewrite La, Z.add_0_r. split; [intros w Ew; discriminate|]. split; [apply Sp|].
      destruct (Tot j) as [<- F]. exact F. }
  destruct (Tr (base c) l u p Ht) as [q [Sq [Rl [Nr [to [Lt Le]]]]]]; fold d.
  - rewrite Sh, <- Eg. exact Hstep.
  - intros i U. rewrite (alike_lets T V T_dec V_dec _ R' O' (rules SL i) _ (mem g i) _ (sees all_keys (rules SL i) c));
      [apply Hlets; reflexivity | apply Ml', U | apply seen_is_of, Cis].
  - intros j E. specialize (Ad j). rewrite E in Ad. exact Ad.
  - fold d in Sq, Rl, Nr, Le. assert (Go : forall j, exists low high, added s (base c) (shape_t d) j = leads low high).
    { intros j. specialize (Ad j). specialize (Nr j). destruct (added s (base c) (shape_t d) j) as [| | low high]; [tauto | tauto | eauto]. }
    exists q, to. split; [|split; [exact Lt|]].
    + split; [rewrite Eh, <- Sh; exact Sq|]. split; [|split].
      * apply right_fine; [exact Hfine|]. intros j w Ew. specialize (Ad j). destruct (Go j) as [low [high E]].
        rewrite E in Ad. destruct Ad as [Ad _]. rewrite <- Sh in *. apply (Ad w Ew).
      * intros i _. rewrite <- (alike_lets T V T_dec V_dec _ R' O' (rules SR i) (right_mem s i) (mem h i) (sees all_keys (rules SR i) d)
          (sees all_keys (rules SR i) c)); [apply Rl | apply Mr' | apply seen_is_of, Cis].
      * intros j. specialize (Ad j). destruct (Go j) as [low [high E]]. rewrite E in Ad. destruct (Tot j) as [-> _]. apply Ad.
    + destruct Le as [El [Er [names [No [Nat [Nd [Nl [Nr' Ns]]]]]]]].
      exists (through T V names R'). split; [|split; [exact (eq_sym El) | split; [exact (eq_sym Er)|]]].
      * split; [apply (C to Lt)|]. split; [apply through_once; assumption|]. split.
        -- intros t2 v [t [Hn Hr]]. rewrite <- (At' t v Hr). symmetry. apply (Nat t t2 Hn).
        -- intros t2. rewrite Nd. split.
           ++ intros [t Hn]. destruct (proj1 (D' t) (proj2 (Nat t t2 Hn))) as [v Hv]. exists v, t. auto.
           ++ intros [v [t [Hn _]]]. exists t. exact Hn.
      * split; [intros i U|split; [intros i | split; intros j]].
        -- apply (matched_through' names R' _ _ _ (Nl i U)). apply matched_after; [exact O' | apply Ml', U | apply seen_is_of, Cis].
        -- apply (matched_through' names R' _ _ _ (Nr' i)). apply matched_after; [exact O' | apply Mr' | apply seen_is_of, Cis].
        -- cbn [total next]. specialize (Ad j). destruct (Go j) as [low [high E]]. rewrite E in Ad.
           destruct Ad as [_ [[Hi Ho] _]]. destruct (Ns j low high E). split; [lia | exact Ho].
        -- cbn [total next]. specialize (Ad j). destruct (Go j) as [low [high E]]. rewrite E in Ad.
           destruct (Tot j) as [-> _]. split; [reflexivity | apply Ad].
Qed.

Lemma start_stands listed : holds_the_start listed -> exists s, listed s /\
  stands_for_both s (begin A V SL) (begin A V SR).
Proof.
  intros [s [L [El [Er [Eh [Nm Sp]]]]]]. exists s. split; [exact L|]. exists (fun _ _ => False).
  assert (M : forall x : memory T, (forall k, ~ marked x k) -> matched (fun _ _ => False) x (nothing : memory V)).
  { intros x H. split; [|split].
    - intros k k' _ _. destruct (not_marked T x k (H k)) as [-> [-> ->]]. auto.
    - intros k Mk. destruct (H k Mk).
    - intros k' [Mk | [Mk | Mk]]; cbn in Mk; congruence. }
  split; [|split; [exact (eq_sym El) | split; [exact (eq_sym Er)|]]].
  - rewrite Eh. split; [constructor|]. split; [intros t v t' v' []|]. split; [intros t v []|].
    intros t. split; [intros [] | intros [v []]].
  - split; [intros i _; apply M; intros k; apply Nm|]. split; [intros i; apply M; intros k; apply Nm|].
    split; intros j; cbn [begin total]; [split; [apply Sp | exists 0; lia] | split; [reflexivity | apply caps_from_0]].
Qed.

(* Every session of the left is at a listed state, is one of the right, and may finish there where it may. *)
Theorem a_closed_list_holds_every_session listed : goes_on listed -> holds_the_start listed ->
  forall l g, session A V V_dec atom SL every all_keys l g ->
  exists s h, listed s /\ session A V V_dec atom SR every all_keys l h /\ stands_for_both s g h.
Proof.
  intros C St l g. induction 1 as [|l g c p Hs [s [h [L [Hh Sh]]]] Hm].
  - destruct (start_stands listed St) as [s [L Sh]]. exists s, (begin A V SR). split; [exact L|]. split; [constructor | exact Sh].
  - destruct (one_step listed s g h c p C L Sh Hm) as [q [to [Mq [Lt Stt]]]].
    exists to, (next A V V_dec SR all_keys h c q). split; [exact Lt|]. split; [constructor; assumption | exact Stt].
Qed.

Theorem a_closed_list_proves_inclusion listed : closed listed -> holds_the_start listed ->
  forall l g, session A V V_dec atom SL every all_keys l g ->
  exists h, session A V V_dec atom SR every all_keys l h /\ (ends SL (at_ g) = true -> ends SR (at_ h) = true).
Proof.
  intros C St l g Hs. destruct (a_closed_list_holds_every_session listed (proj1 C) St l g Hs) as [s [h [L [Hh [R [_ [Eg [Eh _]]]]]]]].
  exists h. split; [exact Hh|]. rewrite Eg, Eh. apply C, L.
Qed.

(* Of `--finishable` refuted: where a list that goes on has no end, no session ends that comes there. *)
Inductive onwards : config A V SL -> config A V SL -> Prop :=
| stays g : onwards g g
| goes g g' c p : onwards g g' -> moves A V V_dec atom SL every all_keys g' c p ->
    onwards g (next A V V_dec SL all_keys g' c p).

Theorem without_an_end_nothing_ends listed s g h : goes_on listed -> listed s -> stands_for_both s g h ->
  (forall s', listed s' -> ends SL (left_at s') = false) ->
  forall g', onwards g g' -> ends SL (at_ g') = false.
Proof.
  intros C L Sh N g' On. assert (H : exists s' h', listed s' /\ stands_for_both s' g' h').
  { induction On as [g | g g' c p On IH Hm]; [eauto|]. destruct (IH Sh) as [s' [h' [L' Sh']]].
    destruct (one_step listed s' g' h' c p C L' Sh' Hm) as [q [to [_ [Lt Stt]]]]. eauto. }
  destruct H as [s' [h' [L' [R [_ [E _]]]]]]. rewrite E. apply N, L'.
Qed.

(* Of `--finishable` proved.  At least so many values has an atom. *)
Variable least : A -> nat.
Hypothesis least_right : forall a, exists vs, NoDup vs /\ Forall (fun v => atom v = a) vs /\ length vs = least a.
(* A call adds the least: a value that is there, where every other parameter has one. *)
Definition least_adds (b : nat) (sh : list (option A)) (j : nat) : Z :=
  match entry b sh j with Some u => match both u with Some (s, _) => s | None => 0 end | None => 0 end.
Variable possible : nat -> list (option A) -> Prop.
Hypothesis least_fine : forall b sh, possible b sh -> fine SL b sh (least_adds b sh).

Lemma tried_more u l u' : tried u l u' -> exists w, u' = w ++ u.
Proof.
  induction 1 as [u | u l u' _ IH | u t l u' _ _ IH | u a l u' _ _ [w ->]]; auto; [exists []; reflexivity|].
  exists (w ++ [fresh a u]). rewrite <- app_assoc. reflexivity.
Qed.

Lemma of_atom_app a w u : of_atom a (w ++ u) = of_atom a w ++ of_atom a u.
Proof. apply filter_app. Qed.

Lemma one_value_more u R a : stand u R -> (length (of_atom a u) < least a)%nat ->
  exists v, atom v = a /\ forall t, ~ R t v.
Proof.
  intros S L. destruct (least_right a) as [vs [N [F E]]].
  assert (D : (exists v, In v vs /\ forall t, ~ R t v) \/ (forall v, In v vs -> exists t, R t v)).
  { clear N E. induction vs as [|v vs IH]; [right; intros v []|]. inversion F as [|? ? _ F']; subst.
    destruct (stands_for u R v S) as [H | H]; [|left; exists v; split; [left; reflexivity | exact H]].
    destruct (IH F') as [[w [Hw Nw]] | H']; [left; exists w; split; [right; exact Hw | exact Nw]|].
    right. intros w [<- | Hw]; auto. }
  destruct D as [[v [Hv Nv]] | D]; [exists v; split; [|exact Nv]; rewrite Forall_forall in F; apply F, Hv|].
  exfalso. assert (T' : exists ts, length ts = length vs /\ NoDup ts /\ incl ts (of_atom a u) /\
    forall t, In t ts -> exists v, In v vs /\ R t v).
  { destruct S as [_ [O [At Dom]]]. clear L E. induction vs as [|v vs IH].
    - exists []. split; [reflexivity|]. split; [constructor|]. split; [intros t [] | intros t []].
    - inversion N as [|? ? Nv N']; subst. inversion F as [|? ? Fv F']; subst.
      destruct (IH N' F' (fun w Hw => D w (or_intror Hw))) as [ts [Lt [Nt [It Rt]]]].
      destruct (D v (or_introl eq_refl)) as [t Ht]. exists (t :: ts). split; [simpl; congruence|]. split.
      + constructor; [|exact Nt]. intros Hin. destruct (Rt t Hin) as [w [Hw Hr]]. apply Nv.
        replace v with w; [exact Hw|]. apply (O t w t v Hr Ht eq_refl). reflexivity.
      + split.
        * intros t' [<- | Ht']; [|apply It, Ht']. apply of_atom_in. split; [apply Dom; exists v; exact Ht | apply At, Ht].
        * intros t' [<- | Ht']; [exists v; split; [left; reflexivity | exact Ht]|].
          destruct (Rt t' Ht') as [w [Hw Hr]]. exists w. split; [right; exact Hw | exact Hr]. }
  destruct T' as [ts [Lt [Nt [It _]]]]. assert (B := NoDup_incl_length Nt It). lia.
Qed.

(* compared.py, `surely`: each atom of a chosen token is known to have as many values as there are tokens. *)
Definition surely (l : list (option T)) (u : list T) : Prop :=
  forall t, In (Some t) l -> (length (of_atom (token_atom t) u) <= least (token_atom t))%nat.

Lemma values_for u l u' : tried u l u' -> forall R, stand u R -> surely l u' ->
  exists given R', stand u' R' /\ (forall t v, R t v -> R' t v) /\ Forall2 (option_is R') l given.
Proof.
  induction 1 as [u | u l u' Ht IH | u t l u' Hin Ht IH | u a l u' Hr Ht IH]; intros R S Su.
  - exists [], R. auto.
  - destruct (IH R S (fun t H => Su t (or_intror H))) as [given [R' [S' [I F]]]].
    exists (None :: given), R'. split; [exact S'|]. split; [exact I|]. constructor; [constructor | exact F].
  - destruct (IH R S (fun t H => Su t (or_intror H))) as [given [R' [S' [I F]]]].
    destruct (proj1 (proj2 (proj2 (proj2 S)) t) Hin) as [v Hv].
    exists (Some v :: given), R'. split; [exact S'|]. split; [exact I|]. constructor; [constructor; apply I, Hv | exact F].
  - destruct (tried_more _ _ _ Ht) as [w E].
    assert (L : (length (of_atom a u) < least a)%nat).
    { assert (B := Su (fresh a u) (or_introl eq_refl)). rewrite fresh_atom, E, of_atom_app in B.
      rewrite app_length in B. unfold of_atom at 2 in B. cbn [filter] in B. rewrite fresh_atom in B.
      destruct (A_dec a a) as [_ | X]; [|congruence]. cbn [length] in B. fold (of_atom a u) in B. lia. }
    destruct (one_value_more u R a S L) as [v [Av Nv]].
    assert (S' := stand_put u R (fresh a u) v S (fresh_new _ _) Nv (eq_trans (fresh_atom a u) (eq_sym Av))).
    destruct (IH _ S' (fun t H => Su t (or_intror H))) as [given [R' [S'' [I F]]]].
    exists (Some v :: given), R'. split; [exact S''|]. split; [intros t' v' H; apply I; right; exact H|].
    constructor; [constructor; apply I; left; auto | exact F].
Qed.

(* A state with the greatest of its sums; what stands for all that has no more. *)
Definition most_of (s : state) : state :=
  {| left_at := left_at s; right_at := right_at s; left_mem := left_mem s; right_mem := right_mem s;
     held := held s; span := fun j => (snd (span s j), snd (span s j)) |}.
Definition below (s : state) (g : config A V SL) : Prop :=
  exists R, stand (held s) R /\ at_ g = left_at s /\ (forall i, matched R (left_mem s i) (mem g i)) /\
    forall j, total g j <= snd (span s j) /\ fits (total g j) (cap SL j).

(* check.py, `_leads_down`: what a state becomes, renamed, is another with sums that are no greater. *)
Definition leads_down (x : nat -> memory T) (p : place SL) (u : list T) (high : nat -> Z) (to : state) : Prop :=
  left_at to = p /\ NoDup (held to) /\ exists names : T -> T -> Prop,
    once names /\ (forall t t2, names t t2 -> token_atom t = token_atom t2 /\ In t u) /\
    (forall t2, In t2 (held to) <-> exists t, names t t2) /\
    (forall i, matched names (x i) (left_mem to i)) /\
    (forall j, high j <= snd (span to j)).

(* check.py, `_nearer`: an end, or one call that leads to a state that stands before. *)
Inductive finishes : state -> Prop :=
| at_an_end s : ends SL (left_at s) = true -> finishes s
| nearer s b l u p high to : tried (held s) l u -> surely l u ->
    let c := {| base := b; given := l; adds := fun _ => 0 |} in
    possible b (shape_t c) ->
    step SL (left_at s) b (shape_t c) = Some p ->
    (forall i, lets (rules SL i) (left_mem s i) (sees all_keys (rules SL i) c) = true) ->
    (forall j, exists beyond, added (most_of s) b (shape_t c) j = leads (high j) beyond) ->
    leads_down (fun i => after (rules SL i) (left_mem s i) (sees all_keys (rules SL i) c)) p u high to ->
    finishes to -> finishes s.

Lemma add_leads g u low high low' high' : add g u low high = leads low' high' ->
  exists s t, both u = Some (s, t) /\ low' = low + s /\ fits (low + s) (mine u).
Proof.
  unfold add. destruct (fitsb (low + least_of u) (mine u)); cbn [negb]; [|discriminate].
  destruct (both u) as [[s t]|]; [|destruct (odd_fits u low); discriminate].
  destruct (fitsb (low + s) (mine u)) eqn:F; [|destruct (odd_fits u low); discriminate].
  destruct (odd_fits u low || negb (fitsb (cut g (high + t) (mine u)) (theirs u))); [discriminate|].
  intros E. injection E as <- _. exists s, t. split; [reflexivity|]. split; [reflexivity | apply fitsb_spec, F].
Qed.

Lemma below_through R u x p high to (y : nat -> memory V) g : leads_down x p u high to -> stand u R ->
  at_ g = p -> (forall i, matched R (x i) (y i)) -> (forall i, mem g i = y i) ->
  (forall j, total g j <= high j /\ fits (total g j) (cap SL j)) -> below to g.
Proof.
  intros [El [Nt [names [No [Nat [Nd [Nm Ns]]]]]]] [_ [O [At D]]] Eg M Ey Tot.
  exists (through T V names R). split; [|split; [congruence | split]].
  - split; [exact Nt|]. split; [apply through_once; assumption|]. split.
    + intros t2 v [t [Hn Hr]]. rewrite <- (At t v Hr). symmetry. apply (Nat t t2 Hn).
    + intros t2. rewrite Nd. split.
      * intros [t Hn]. destruct (proj1 (D t) (proj2 (Nat t t2 Hn))) as [v Hv]. exists v, t. auto.
      * intros [v [t [Hn _]]]. exists t. exact Hn.
  - intros i. rewrite Ey. exact (matched_through T V names R _ _ _ (Nm i) (M i)).
  - intros j. destruct (Tot j) as [H F]. specialize (Ns j). split; [lia | exact F].
Qed.

Lemma finishes_finish s : finishes s -> forall g, below s g ->
  exists g', onwards g g' /\ ends SL (at_ g') = true.
Proof.
  induction 1 as [s E | s b l u p high to Ht Su c Po St Le Ad Down _ IH]; intros g [R [S [Eg [M Tot]]]].
  { exists g. split; [constructor | rewrite Eg; exact E]. }
  destruct (values_for _ _ _ Ht R S Su) as [given [R' [S' [Inc F]]]]. assert (S'' := S').
  destruct S'' as [_ [O' [At' _]]].
  set (d := {| base := b; given := given; adds := least_adds b (shape_t c) |} : call V).
  assert (Cis : call_is T V R' c d) by (split; [reflexivity | exact F]).
  assert (Sh : shape_t c = shape A V atom d) by (apply (shape_is R'); assumption).
  assert (M' : forall i, matched R' (left_mem s i) (mem g i)).
  { intros i. apply (matched_more T V R R'); auto. }
  assert (Fine := least_fine b (shape_t c) Po).
  assert (More : forall j, total g j + least_adds b (shape_t c) j <= high j /\
    fits (total g j + least_adds b (shape_t c) j) (cap SL j)).
  { intros j. destruct (Ad j) as [beyond E]. destruct (Tot j) as [B Fi]. assert (La := left_adds _ _ _ Fine j).
    unfold added in E. unfold least_adds in *. cbn [most_of span fst snd] in E.
    destruct (entry b (shape_t c) j) as [w|].
    - destruct (add_leads _ _ _ _ _ _ E) as [s0 [t0 [E0 [-> Fs]]]]. rewrite E0.
      destruct La as [_ [_ [Em _]]]. rewrite Em in Fs. split; [lia|]. apply (fits_less _ (snd (span s j) + s0)); [lia | exact Fs].
    - injection E as <- _. rewrite Z.add_0_r. auto. }
  assert (Mv : moves A V V_dec atom SL every all_keys g d p).
  { split; [rewrite Eg, <- Sh; exact St|]. split; [rewrite <- Sh; exact Fine|]. split; [|intros j; apply More].
    intros i _. rewrite <- (alike_lets T V T_dec V_dec _ R' O' (rules SL i) (left_mem s i) (mem g i) (sees all_keys (rules SL i) c)
      (sees all_keys (rules SL i) d)); [apply Le | apply M' | apply seen_is_of, Cis]. }
  destruct (IH (next A V V_dec SL all_keys g d p)) as [g' [On E]].
  { apply (below_through R' u _ p high to (fun i => Renaming.after V V_dec (rules SL i) (mem g i) (sees all_keys (rules SL i) d)) _ Down S');
      [reflexivity | | reflexivity | intros j; apply More].
    intros i. apply matched_after; [exact O' | apply M' | apply seen_is_of, Cis]. }
  exists g'. split; [|exact E]. clear -On Mv. remember (next A V V_dec SL all_keys g d p) as g1 eqn:E1.
  induction On as [g1 | g1 g2 c2 p2 On IH Hm]; subst; [exact (goes g g d p (stays g) Mv) | apply goes; auto].
Qed.

(* Where each listed state leads down to one that finishes, every session of the left can be finished. *)
Theorem every_session_can_be_finished listed : goes_on listed -> holds_the_start listed ->
  (forall i, used i = true) -> (forall j, cap SL j = cap SR j) ->
  (forall s, listed s -> exists to, finishes to /\
    leads_down (left_mem s) (left_at s) (held s) (fun j => snd (span s j)) to) ->
  forall l g, session A V V_dec atom SL every all_keys l g ->
  exists g', onwards g g' /\ ends SL (at_ g') = true.
Proof.
  intros C St U Ec Fi l g Hs. destruct (a_closed_list_holds_every_session listed C St l g Hs) as
    [s [h [L [_ [R [Sd [Eg [_ [Ml [_ [Sp Tot]]]]]]]]]]].
  destruct (Fi s L) as [to [Ft Down]]. apply (finishes_finish to Ft).
  apply (below_through R (held s) _ _ _ to (mem g) g Down Sd Eg); [intros i; apply Ml, U | reflexivity|].
  intros j. destruct (Tot j) as [E F]. rewrite Ec, <- E. split; [rewrite E; apply Sp | exact F].
Qed.
End Tried.
