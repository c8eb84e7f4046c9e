(* State digests: equal digests are equal plans with equal costs, and equal plans equal digests.
   docs/spec/artifact.md, sections 4 and 5 (C1, C6); docs/trust.md, "equal languages have equal roots".

   Of BLAKE3 this takes that its digests have 32 bytes, and that no two of the inputs that occur in
   the two artifacts collide. *)

From Coq Require Import List Arith ZArith Lia Sorted.
From Tcc Require Import Automaton Certificates.
Import ListNotations.

Notation bytes := (list Z).

(* Little-endian, two's complement. *)
Fixpoint le (n : nat) (z : Z) : bytes :=
  match n with O => [] | S n => (z mod 256)%Z :: le n (z / 256) end.

Lemma le_length n z : length (le n z) = n.
Proof. revert z. induction n as [|n IH]; intros z; simpl; [reflexivity | rewrite IH; reflexivity]. Qed.

Lemma le_equal n x y : le n x = le n y -> exists k, (x - y = k * 256 ^ Z.of_nat n)%Z.
Proof.
  revert x y. induction n as [|n IH]; intros x y H.
  - exists (x - y)%Z. simpl. ring.
  - cbn [le] in H. injection H as H1 H2. destruct (IH _ _ H2) as [k Hk]. exists k.
    rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia.
    rewrite (Z.div_mod x 256), (Z.div_mod y 256), H1 by lia. nia.
Qed.

Definition I64 z := (- 2 ^ 63 <= z < 2 ^ 63)%Z.

Lemma le8_injective x y : I64 x -> I64 y -> le 8 x = le 8 y -> x = y.
Proof.
  unfold I64. intros Hx Hy H. destruct (le_equal 8 x y H) as [k Hk].
  change (256 ^ Z.of_nat 8)%Z with (2 ^ 64)%Z in Hk. nia.
Qed.

Lemma app_injective {A} (a b c d : list A) : length a = length b -> a ++ c = b ++ d -> a = b /\ c = d.
Proof.
  revert b. induction a as [|x a IH]; intros [|y b] L H; simpl in *; try discriminate; [auto|].
  injection H as -> H. injection L as L. destruct (IH b L H) as [-> ->]. auto.
Qed.

(* What a call is for a digest: its canonical text, cost_low and cost_high. *)
Record told := { text : bytes; low : Z; high : Z }.
Definition call_bytes (a : told) : bytes :=
  17%Z :: le 4 (Z.of_nat (length (text a))) ++ text a ++ le 8 (low a) ++ le 8 (high a).
Definition in_range a := I64 (low a) /\ I64 (high a).

Lemma call_bytes_injective a b : in_range a -> in_range b -> call_bytes a = call_bytes b -> a = b.
Proof.
  intros [Ha Ha'] [Hb Hb'] H. apply (f_equal (@tl Z)) in H. cbn [tl call_bytes] in H.
  assert (L := f_equal (@length Z) H). rewrite !app_length, !le_length in L.
  apply app_injective in H; [destruct H as [_ H] | rewrite !le_length; reflexivity].
  apply app_injective in H; [destruct H as [Ht H] | lia].
  apply app_injective in H; [destruct H as [Hl Hh] | rewrite !le_length; reflexivity].
  apply le8_injective in Hl, Hh; auto. destruct a, b; simpl in *; subst; reflexivity.
Qed.

Lemma sorted_unique {X} (before : X -> X -> Prop) l m :
  (forall a, ~ before a a) -> (forall a b c, before a b -> before b c -> before a c) ->
  StronglySorted before l -> StronglySorted before m ->
  (forall x, In x l <-> In x m) -> l = m.
Proof.
  intros before_irreflexive before_transitive. revert m. induction l as [|x l IH]; intros [|y m] Hl Hm E.
  - reflexivity.
  - destruct (proj2 (E y) (or_introl eq_refl)).
  - destruct (proj1 (E x) (or_introl eq_refl)).
  - inversion Hl as [|? ? Hl' Fl]; inversion Hm as [|? ? Hm' Fm]; subst.
    rewrite Forall_forall in Fl, Fm.
    assert (x = y) as <-.
    { destruct (proj1 (E x) (or_introl eq_refl)) as [-> | Hx]; [reflexivity|].
      destruct (proj2 (E y) (or_introl eq_refl)) as [-> | Hy]; [reflexivity|].
      exfalso. apply (before_irreflexive x). apply before_transitive with y; auto. }
    f_equal. apply IH; auto. intros z. split; intros Hz.
    + destruct (proj1 (E z) (or_intror Hz)) as [<- | H']; [|exact H'].
      exfalso. exact (before_irreflexive x (Fl x Hz)).
    + destruct (proj2 (E z) (or_intror Hz)) as [<- | H']; [|exact H'].
      exfalso. exact (before_irreflexive x (Fm x Hz)).
Qed.

Section Digest.
Variable H : bytes -> bytes.
Hypothesis H_length : forall x, length (H x) = 32%nat.

(* S(q), as a rule of C6. *)
Definition state_bytes (accepting : bool) (l : list (bytes * bytes)) : bytes :=
  16%Z :: (if accepting then 1%Z else 0%Z) :: flat_map (fun p => fst p ++ snd p) l.
Definition digest (M : automaton) (info : call -> told) : rule M bytes :=
  fun q l => H (state_bytes (accept M q) (map (fun x => (H (call_bytes (info (fst (fst x)))), snd x)) l)).

(* The plans below a state, as texts and costs. *)
Definition told_plans M (info : call -> told) q := map (map info) (plans M q).

Variables M N : automaton.
Variables (infoM infoN : call -> told).
Variables (SM : state M -> bytes) (SN : state N -> bytes).
Hypothesis digests_M : holds M (digest M infoM) SM.
Hypothesis digests_N : holds N (digest N infoN) SN.
Hypothesis range_M : forall a, in_range (infoM a).
Hypothesis range_N : forall a, in_range (infoN a).

Definition pairs M (info : call -> told) (S : state M -> bytes) q :=
  map (fun e : edge M => (H (call_bytes (info (fst e))), S (snd e))) (edges M q).

Lemma digest_eq (K : automaton) info S q : holds K (digest K info) S ->
  S q = H (state_bytes (accept K q) (pairs K info S q)).
Proof. intros HS. rewrite (HS q). unfold digest, row, pairs. rewrite map_map. reflexivity. Qed.

Inductive hashed : bytes -> Prop :=
| of_M q : hashed (state_bytes (accept M q) (pairs M infoM SM q))
| of_N q : hashed (state_bytes (accept N q) (pairs N infoN SN q))
| of_call_M a : hashed (call_bytes (infoM a))
| of_call_N a : hashed (call_bytes (infoN a)).
Definition no_collision := forall x y, hashed x -> hashed y -> H x = H y -> x = y.

Lemma blocks {A B} (f : A -> bytes * bytes) (g : B -> bytes * bytes) l m :
  (forall x, length (fst (f x)) = 32%nat /\ length (snd (f x)) = 32%nat) ->
  (forall x, length (fst (g x)) = 32%nat /\ length (snd (g x)) = 32%nat) ->
  flat_map (fun p => fst p ++ snd p) (map f l) = flat_map (fun p => fst p ++ snd p) (map g m) ->
  Forall2 (fun x y => f x = g y) l m.
Proof.
  intros Hf Hg. revert m. induction l as [|x l IH]; intros [|y m] E; simpl in E.
  - constructor.
  - exfalso. apply (f_equal (@length Z)) in E. rewrite !app_length in E. destruct (Hg y) as [G1 G2].
    rewrite G1 in E. discriminate.
  - exfalso. apply (f_equal (@length Z)) in E. rewrite !app_length in E. destruct (Hf x) as [F1 F2].
    rewrite F1 in E. discriminate.
  - destruct (Hf x) as [F1 F2], (Hg y) as [G1 G2]. rewrite <- !app_assoc in E.
    apply app_injective in E; [|lia]. destruct E as [E1 E]. apply app_injective in E; [|lia].
    destruct E as [E2 E]. constructor; [|exact (IH m E)].
    destruct (f x), (g y). simpl in *. subst. reflexivity.
Qed.

Lemma told_plans_eq (K : automaton) info q : told_plans K info q =
  flat_map (fun e => map (cons (info (fst e))) (told_plans K info (snd e))) (edges K q)
  ++ (if accept K q then [[]] else []).
Proof.
  unfold told_plans, plans. rewrite paths_eq, !map_app. f_equal.
  - rewrite !flat_map_concat_map, !concat_map, !map_map. f_equal. apply map_ext. intros e.
    rewrite !map_map. reflexivity.
  - destruct (accept K q); reflexivity.
Qed.

(* C6, one way: with equal digests the same plans, in the same order. *)
Theorem equal_digests_equal_plans : no_collision -> forall q p,
  SM q = SN p -> told_plans M infoM q = told_plans N infoN p.
Proof.
  intros Hinj q. induction q as [q IH] using (below_ind M). intros p E.
  rewrite (digest_eq M infoM SM q digests_M), (digest_eq N infoN SN p digests_N) in E.
  apply Hinj in E; [|constructor|constructor].
  assert (Eacc := f_equal (fun l => nth 1 l 0%Z) E). cbn [state_bytes nth] in Eacc.
  apply (f_equal (fun l => tl (tl l))) in E. cbn [state_bytes tl] in E.
  rewrite !told_plans_eq. f_equal.
  - unfold pairs in E. apply blocks in E.
    + revert IH E. generalize (edges M q). generalize (edges N p). intros m l IH E.
      induction E as [|[a r] [b s] l m Hxy _ IHl]; simpl; [reflexivity|].
      assert (HA := f_equal fst Hxy). assert (HS := f_equal snd Hxy). cbn [fst snd] in HA, HS.
      apply Hinj in HA; [|constructor|constructor]. apply call_bytes_injective in HA; auto.
      rewrite HA. f_equal; [|apply IHl; intros c u Hc; apply (IH c u); right; exact Hc].
      rewrite (IH a r (or_introl eq_refl) s HS). reflexivity.
    + intros [a r]. cbn [fst snd]. split; [apply H_length | rewrite (digests_M r); apply H_length].
    + intros [a r]. cbn [fst snd]. split; [apply H_length | rewrite (digests_N r); apply H_length].
  - destruct (accept M q), (accept N p); reflexivity || discriminate.
Qed.

(* The other way: where states are alive and calls in order, the same set of plans has the same digest. *)
Variable before : told -> told -> Prop.
Hypothesis before_irreflexive : forall a, ~ before a a.
Hypothesis before_transitive : forall a b c, before a b -> before b c -> before a c.
Definition letters (K : automaton) (info : call -> told) q :=
  map (fun e : edge K => info (fst e)) (edges K q).
Definition in_order (K : automaton) info := forall q, StronglySorted before (letters K info q).

Lemma has_plan (K : automaton) info : alive K -> forall q, exists P, In P (told_plans K info q).
Proof.
  intros Halive q. induction q as [q IH] using (below_ind K). rewrite told_plans_eq.
  destruct (Halive q) as [E | E].
  - exists []. rewrite E. apply in_app_iff. right. left. reflexivity.
  - destruct (edges K q) as [|[a p] l] eqn:El; [congruence|].
    destruct (IH a p) as [P HP]; [left; reflexivity|].
    exists (info a :: P). apply in_app_iff. left. apply in_flat_map. exists (a, p).
    split; [left; reflexivity|]. apply in_map. exact HP.
Qed.

Lemma told_nil (K : automaton) info q : In [] (told_plans K info q) <-> accept K q = true.
Proof.
  rewrite told_plans_eq, in_app_iff. split.
  - intros [E | E]; [|destruct (accept K q); [reflexivity | destruct E]].
    apply in_flat_map in E. destruct E as [e [_ E]]. apply in_map_iff in E. destruct E as [P [E _]]. discriminate.
  - intros ->. right. left. reflexivity.
Qed.

Lemma told_cons (K : automaton) info q x P : In (x :: P) (told_plans K info q) <->
  exists e, In e (edges K q) /\ info (fst e) = x /\ In P (told_plans K info (snd e)).
Proof.
  rewrite told_plans_eq, in_app_iff, in_flat_map. split.
  - intros [[e [He E]] | E]; [|destruct (accept K q); [destruct E as [E|[]]; discriminate | destruct E]].
    apply in_map_iff in E. destruct E as [P' [E HP]]. injection E as <- <-. eauto.
  - intros [e [He [<- HP]]]. left. exists e. split; [exact He|]. apply in_map. exact HP.
Qed.

Theorem equal_plans_equal_digests : alive M -> alive N -> in_order M infoM -> in_order N infoN ->
  forall q p, (forall P, In P (told_plans M infoM q) <-> In P (told_plans N infoN p)) -> SM q = SN p.
Proof.
  intros aM aN oM oN q. induction q as [q IH] using (below_ind M). intros p E.
  rewrite (digest_eq M infoM SM q digests_M), (digest_eq N infoN SN p digests_N). f_equal. unfold state_bytes.
  assert (letter : forall K info u x, alive K -> (In x (letters K info u) <->
                     exists P, In (x :: P) (told_plans K info u))).
  { intros K info u x aK. unfold letters. rewrite in_map_iff. split.
    - intros [e [<- He]]. destruct (has_plan K info aK (snd e)) as [P HP]. exists P. apply told_cons. eauto.
    - intros [P HP]. apply told_cons in HP. destruct HP as [e [He [<- _]]]. eauto. }
  assert (L : letters M infoM q = letters N infoN p).
  { apply (sorted_unique before); auto. intros x. rewrite !letter by assumption.
    split; intros [P HP]; exists P; apply E; exact HP. }
  assert (S : accept M q = accept N p).
  { assert (E0 := E []). rewrite !told_nil in E0. destruct (accept M q), (accept N p); tauto || (symmetry; tauto). }
  rewrite S. do 2 f_equal. f_equal. unfold pairs.
  assert (uniqM : NoDup (letters M infoM q)).
  { generalize (oM q). generalize (letters M infoM q). clear -before_irreflexive. induction l as [|x l IHl]; intros Hl; constructor.
    - inversion Hl as [|? ? _ F]; subst. rewrite Forall_forall in F. intros Hx. exact (before_irreflexive x (F x Hx)).
    - apply IHl. inversion Hl. assumption. }
  assert (uniqN := uniqM). rewrite L in uniqN. unfold letters in L, uniqM, uniqN.
  assert (T : forall e f, In e (edges M q) -> In f (edges N p) -> infoM (fst e) = infoN (fst f) -> SM (snd e) = SN (snd f)).
  { assert (only : forall K (info : call -> told) (l : list (edge K)), NoDup (map (fun e => info (fst e)) l) ->
              forall e f, In e l -> In f l -> info (fst e) = info (fst f) -> e = f).
    { clear. intros K info l. induction l as [|g l IHl]; intros Hn e f He Hf Ei; [destruct He|].
      inversion Hn as [|? ? Hg Hn']; subst. destruct He as [<- | He], Hf as [<- | Hf]; auto.
      - exfalso. apply Hg. rewrite Ei. apply (in_map (fun e => info (fst e))). exact Hf.
      - exfalso. apply Hg. rewrite <- Ei. apply (in_map (fun e => info (fst e))). exact He. }
    intros [a r] [b s] He Hf Ei. apply (IH a r He). intros P. cbn [fst snd] in *. split; intros HP.
    - assert (HQ : In (infoM a :: P) (told_plans M infoM q)) by (apply told_cons; exists (a, r); auto).
      apply E, told_cons in HQ. destruct HQ as [f [Hf' [Ef HQ]]].
      rewrite (only N infoN _ uniqN f (b, s) Hf' Hf) in HQ; [exact HQ|]. cbn [fst]. congruence.
    - assert (HQ : In (infoN b :: P) (told_plans N infoN p)) by (apply told_cons; exists (b, s); auto).
      apply E, told_cons in HQ. destruct HQ as [f [Hf' [Ef HQ]]].
      rewrite (only M infoM _ uniqM f (a, r) Hf' He) in HQ; [exact HQ|]. cbn [fst]. congruence. }
  clear -L T. revert L T. generalize (edges M q). generalize (edges N p). intros m l.
  revert m. induction l as [|e l IHl]; intros [|f m] L T; try discriminate; [reflexivity|].
  cbn [map] in *. injection L as L0 L.
  rewrite L0, (T e f (or_introl eq_refl) (or_introl eq_refl) L0). f_equal.
  apply IHl; [exact L|]. intros x y Hx Hy. apply T; right; assumption.
Qed.

(* A nondeterministic artifact has several edges of one call, and its digest is that of its graph: two states
   have one digest exactly where their graphs agree, step by step. *)
Inductive agree : state M -> state N -> Prop :=
| agree_ q p : accept M q = accept N p ->
    (forall e, In e (edges M q) -> exists f, In f (edges N p) /\ infoM (fst e) = infoN (fst f) /\ agree (snd e) (snd f)) ->
    (forall f, In f (edges N p) -> exists e, In e (edges M q) /\ infoM (fst e) = infoN (fst f) /\ agree (snd e) (snd f)) ->
    agree q p.

Theorem equal_digests_agree : no_collision -> forall q p, SM q = SN p -> agree q p.
Proof.
  intros Hinj q. induction q as [q IH] using (below_ind M). intros p E.
  rewrite (digest_eq M infoM SM q digests_M), (digest_eq N infoN SN p digests_N) in E.
  apply Hinj in E; [|constructor|constructor].
  assert (Eacc := f_equal (fun l => nth 1 l 0%Z) E). cbn [state_bytes nth] in Eacc.
  apply (f_equal (fun l => tl (tl l))) in E. cbn [state_bytes tl] in E. unfold pairs in E. apply blocks in E.
  - assert (two : forall e f, (H (call_bytes (infoM (fst e))), SM (snd e)) = (H (call_bytes (infoN (fst f))), SN (snd f)) ->
      In e (edges M q) -> infoM (fst e) = infoN (fst f) /\ agree (snd e) (snd f)).
    { intros [a r] [b s] Ef He. injection Ef as HA HS. cbn [fst snd] in *.
      apply Hinj in HA; [|constructor|constructor]. apply call_bytes_injective in HA; auto.
      split; [exact HA | exact (IH a r He s HS)]. }
    constructor.
    + destruct (accept M q), (accept N p); reflexivity || discriminate.
    + clear IH. revert two E. generalize (edges M q). generalize (edges N p). intros m l two E.
      induction E as [|e f l m Hef _ IHl]; intros x Hx; [destruct Hx|]. destruct Hx as [<- | Hx].
      * exists f. split; [left; reflexivity | apply two; [exact Hef | left; reflexivity]].
      * destruct (IHl (fun e f Ef He => two e f Ef (or_intror He)) x Hx) as [g [Hg K]]. exists g. split; [right; exact Hg | exact K].
    + clear IH. revert two E. generalize (edges M q). generalize (edges N p). intros m l two E.
      induction E as [|e f l m Hef _ IHl]; intros x Hx; [destruct Hx|]. destruct Hx as [<- | Hx].
      * exists e. split; [left; reflexivity | apply two; [exact Hef | left; reflexivity]].
      * destruct (IHl (fun e f Ef He => two e f Ef (or_intror He)) x Hx) as [g [Hg K]]. exists g. split; [right; exact Hg | exact K].
  - intros [a r]. cbn [fst snd]. split; [apply H_length | rewrite (digests_M r); apply H_length].
  - intros [a r]. cbn [fst snd]. split; [apply H_length | rewrite (digests_N r); apply H_length].
Qed.

(* Edges stand in call order, those of one call by the bytes of their targets' digests; none is there twice. *)
Variable prior : told * bytes -> told * bytes -> Prop.
Hypothesis prior_irreflexive : forall a, ~ prior a a.
Hypothesis prior_transitive : forall a b c, prior a b -> prior b c -> prior a c.
Definition branches (K : automaton) info (S : state K -> bytes) q :=
  map (fun e : edge K => (info (fst e) : told, S (snd e))) (edges K q).

Theorem agreeing_graphs_have_equal_digests :
  (forall q, StronglySorted prior (branches M infoM SM q)) -> (forall p, StronglySorted prior (branches N infoN SN p)) ->
  forall q p, agree q p -> SM q = SN p.
Proof.
  intros oM oN q. induction q as [q IH] using (below_ind M). intros p Ha.
  destruct Ha as [q p Eacc HM HN].
  assert (B : branches M infoM SM q = branches N infoN SN p).
  { apply (sorted_unique prior); auto. intros x. unfold branches. rewrite !in_map_iff. split.
    - intros [[a r] [<- He]]. destruct (HM _ He) as [f [Hf [Ei Hag]]]. exists f. split; [|exact Hf].
      cbn [fst snd] in *. rewrite Ei, (IH a r He (snd f) Hag). reflexivity.
    - intros [f [<- Hf]]. destruct (HN _ Hf) as [[a r] [He [Ei Hag]]]. exists (a, r). split; [|exact He].
      cbn [fst snd] in *. rewrite Ei, (IH a r He (snd f) Hag). reflexivity. }
  rewrite (digest_eq M infoM SM q digests_M), (digest_eq N infoN SN p digests_N). f_equal. unfold state_bytes.
  rewrite Eacc. do 2 f_equal. f_equal.
  assert (P : forall K info S u, pairs K info S u = map (fun x => (H (call_bytes (fst x)), snd x)) (branches K info S u)).
  { intros K info S u. unfold pairs, branches. rewrite map_map. reflexivity. }
  rewrite !P, B. reflexivity.
Qed.

End Digest.
