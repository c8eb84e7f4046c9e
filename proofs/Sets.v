(* Sets of states: a nondeterministic artifact as a deterministic automaton, made as a run goes.
   docs/spec/race.md, section 4; docs/spec/artifact.md, section 7 (nondeterministic). *)

From Coq Require Import List Arith Bool ZArith Lia.
From Tcc Require Import Automaton Certificates.
Import ListNotations.

Section Sets.
Variable A : automaton.
Variable state_eq : forall p q : state A, {p = q} + {p <> q}.
Notation edge := (edge A).

Definition edge_eq : forall e f : edge, {e = f} + {e <> f}.
Proof. repeat decide equality. Defined.

(* A set that is not empty. *)
Definition set := (state A * list (state A))%type.
Definition members (Q : set) := fst Q :: snd Q.
Definition pairs (Q : set) : list edge := nodup edge_eq (flat_map (edges A) (members Q)).
Definition calls (Q : set) : list call := nodup Nat.eq_dec (map fst (pairs Q)).
Definition targets (Q : set) (a : call) : list (state A) :=
  map snd (filter (fun e => fst e =? a) (pairs Q)).
Definition set_edges (Q : set) : list (call * set) :=
  flat_map (fun a => match targets Q a with [] => [] | p :: l => [(a, (p, l))] end) (calls Q).
Definition set_number (Q : set) := list_max (map (number A) (members Q)).

Lemma in_pairs Q e : In e (pairs Q) <-> exists q, In q (members Q) /\ In e (edges A q).
Proof. unfold pairs. rewrite nodup_In, in_flat_map. reflexivity. Qed.

Lemma in_targets Q a p : In p (targets Q a) <-> In (a, p) (pairs Q).
Proof.
  unfold targets. rewrite in_map_iff. split.
  - intros [[b q] [<- H]]. apply filter_In in H. destruct H as [H E]. apply Nat.eqb_eq in E.
    cbn [fst] in E. subst. exact H.
  - intros H. exists (a, p). split; [reflexivity|]. apply filter_In. split; [exact H | apply Nat.eqb_refl].
Qed.

Lemma in_set_edges Q a T : In (a, T) (set_edges Q) <-> In a (calls Q) /\ members T = targets Q a.
Proof.
  unfold set_edges. rewrite in_flat_map. split.
  - intros [b [Hb H]]. destruct (targets Q b) as [|p l] eqn:E; [destruct H|].
    destruct H as [H | []]. injection H as <- <-. rewrite E. auto.
  - intros [Ha E]. exists a. split; [exact Ha|]. rewrite <- E. destruct T. left. reflexivity.
Qed.

Lemma list_max_in l n : In n l -> n <= list_max l.
Proof. intros H. assert (F := proj1 (list_max_le l (list_max l)) (le_n _)). rewrite Forall_forall in F. auto. Qed.

Lemma max_falls (f : state A -> nat) : (forall q a p, In (a, p) (edges A q) -> f p < f q) ->
  forall Q a T, In (a, T) (set_edges Q) -> list_max (map f (members T)) < list_max (map f (members Q)).
Proof.
  intros Hf Q a T H. apply in_set_edges in H. destruct H as [_ E].
  assert (Hall : forall p, In p (members T) -> f p < list_max (map f (members Q))).
  { intros p Hp. rewrite E in Hp. apply in_targets, in_pairs in Hp. destruct Hp as [q [Hq He]]. apply Hf in He.
    assert (f q <= list_max (map f (members Q))) by (apply list_max_in, in_map, Hq). lia. }
  revert Hall. generalize (list_max (map f (members Q))). intros M Hall. clear E.
  assert (list_max (map f (members T)) <= M - 1).
  { apply list_max_le. rewrite Forall_forall. intros x Hx. apply in_map_iff in Hx.
    destruct Hx as [y [<- Hy]]. specialize (Hall y Hy). lia. }
  specialize (Hall (fst T) (or_introl eq_refl)). lia.
Qed.

Lemma set_falls Q a T : In (a, T) (set_edges Q) -> set_number T < set_number Q.
Proof. exact (max_falls (number A) (falls A) Q a T). Qed.

Definition sets : automaton := {|
  state := set; accept := fun Q => existsb (accept A) (members Q);
  edges := set_edges; number := set_number; falls := set_falls |}.

Theorem sets_have_distinct_calls Q : NoDup (map fst (edges sets Q)).
Proof.
  cbn [edges sets]. unfold set_edges. assert (H := NoDup_nodup Nat.eq_dec (map fst (pairs Q))).
  fold (calls Q) in H. induction (calls Q) as [|a l IH]; [constructor|].
  inversion H as [|? ? Ha Hl]; subst. cbn [flat_map]. rewrite map_app.
  destruct (targets Q a) as [|p T]; [exact (IH Hl)|]. cbn [map app fst]. constructor; [|exact (IH Hl)].
  intros Hin. apply Ha. apply in_map_iff in Hin. destruct Hin as [[b S] [E Hin]]. cbn [fst] in E. subst b.
  apply in_flat_map in Hin. destruct Hin as [b [Hb Hin]]. destruct (targets Q b); [destruct Hin|].
  destruct Hin as [E | []]. injection E as <- _. exact Hb.
Qed.

(* The plans below a set are those below its members. *)
Theorem sets_plans plan : forall Q, accepted sets Q plan <-> exists q, In q (members Q) /\ accepted A q plan.
Proof.
  induction plan as [|a plan IH]; intros Q; cbn [accepted].
  - cbn [accept sets]. rewrite existsb_exists. reflexivity.
  - split.
    + intros [T [HT H]]. apply IH in H. destruct H as [p [Hp H]]. cbn [edges sets] in HT.
      apply in_set_edges in HT. destruct HT as [_ E]. rewrite E in Hp. apply in_targets, in_pairs in Hp.
      destruct Hp as [q [Hq He]]. exists q. split; [exact Hq|]. exists p. auto.
    + intros [q [Hq [p [He H]]]]. assert (Hp : In (a, p) (pairs Q)) by (apply in_pairs; exists q; auto).
      assert (HT := proj2 (in_targets Q a p) Hp). destruct (targets Q a) as [|p0 l] eqn:E; [destruct HT|].
      exists (p0, l). split.
      * cbn [edges sets]. apply in_set_edges. split; [|symmetry; exact E].
        unfold calls. rewrite nodup_In. change a with (fst (a, p)). apply in_map. exact Hp.
      * apply IH. exists p. auto.
Qed.

Local Open Scope Z_scope.

Variables (F : nat) (W : call -> Z).
Hypothesis W_pos : forall a, 0 < W a.
Variables (d : state A -> nat) (m g : state A -> Z).
Hypothesis d_falls : forall q a p, In (a, p) (edges A q) -> (d p < d q)%nat.
Hypothesis m_nonneg : forall q, 0 <= m q.
Hypothesis C4 : forall q, masses A F W d q (row A m q) <= m q.

Definition set_d (Q : set) := list_max (map d (members Q)).
Definition set_m (Q : set) := sum (map (fun q => unit F (set_d Q - d q) * m q) (members Q)).
Definition set_g (Q : set) := fold_right Z.max (g (fst Q)) (map g (snd Q)).

Lemma sum_le {X} (f h : X -> Z) l : (forall x, In x l -> f x <= h x) -> sum (map f l) <= sum (map h l).
Proof.
  induction l as [|x l IH]; intros H; simpl; [lia|]. apply Z.add_le_mono; [apply H; left; reflexivity|].
  apply IH. intros y Hy. apply H. right. exact Hy.
Qed.

Lemma sum_nodup (f : edge -> Z) l : (forall x, 0 <= f x) -> sum (map f (nodup edge_eq l)) <= sum (map f l).
Proof.
  intros H. induction l as [|x l IH]; simpl; [lia|]. specialize (H x).
  destruct (in_dec edge_eq x l); simpl; lia.
Qed.

Lemma sum_cons x l : sum (x :: l) = x + sum l.
Proof. reflexivity. Qed.

Lemma sum_by_call (f : edge -> Z) l : forall ks, NoDup ks -> (forall e, In e l -> In (fst e) ks) ->
  sum (map (fun a => sum (map f (filter (fun e => fst e =? a)%nat l))) ks) = sum (map f l).
Proof.
  induction l as [|e l IH]; intros ks Hks Hin.
  - cbn [filter map]. clear. induction ks as [|k ks IH]; [reflexivity|]. cbn [map]. rewrite sum_cons, IH. reflexivity.
  - assert (Hl : forall e', In e' l -> In (fst e') ks) by (intros; apply Hin; right; assumption).
    cbn [map]. rewrite sum_cons, <- (IH ks Hks Hl). specialize (Hin e (or_introl eq_refl)). clear -Hks Hin.
    cbn [filter]. induction ks as [|a ks IHk]; [destruct Hin|]. inversion Hks as [|? ? Ha Hks']; subst.
    cbn [map]. rewrite !sum_cons. destruct (Nat.eqb_spec (fst e) a) as [E | E].
    + cbn [map]. rewrite sum_cons. rewrite <- Z.add_assoc. do 2 f_equal. f_equal. apply map_ext_in. intros b Hb.
      destruct (Nat.eqb_spec (fst e) b) as [E'|]; [|reflexivity]. exfalso. apply Ha. congruence.
    + destruct Hin as [E' | Hin]; [congruence|]. rewrite (IHk Hks' Hin). ring.
Qed.

Lemma unit_nonneg k : 0 <= unit F k.
Proof. apply Z.lt_le_incl, unit_pos. Qed.

(* The phantom mass of a set is never negative. *)
Theorem sets_are_superadditive Q : masses sets F W set_d Q (row sets set_m Q) <= set_m Q.
Proof.
  set (f := fun e : edge => W (fst e) * unit F (set_d Q - 1 - d (snd e)) * m (snd e)).
  assert (f_nonneg : forall e, 0 <= f e).
  { intros e. unfold f. assert (H1 := W_pos (fst e)). assert (H2 := unit_nonneg (set_d Q - 1 - d (snd e))).
    assert (H3 := m_nonneg (snd e)). apply Z.mul_nonneg_nonneg; [apply Z.mul_nonneg_nonneg; lia | exact H3]. }
  assert (member_d : forall q, In q (members Q) -> (d q <= set_d Q)%nat)
    by (intros q Hq; apply list_max_in, in_map, Hq).
  (* the children by calls *)
  assert (Hcalls : sum (map (fun x => mass sets F W set_d Q (fst x) (snd x)) (row sets set_m Q)) <= sum (map f (pairs Q))).
  { unfold row. rewrite map_map. cbn [fst snd edges sets].
    rewrite <- (sum_by_call f (pairs Q) (calls Q)).
    - unfold set_edges. rewrite sum_flat_map. apply sum_le. intros a Ha.
      destruct (targets Q a) as [|p l] eqn:E.
      + cbn. clear -f_nonneg. induction (filter _ _) as [|x t IH]; simpl; [lia | specialize (f_nonneg x); lia].
      + cbn [map sum fold_right]. rewrite Z.add_0_r. apply Z.eq_le_incl.
        unfold mass, set_m. cbn [fst snd]. rewrite <- sum_scale.
        change (members (p, l)) with (p :: l).
        assert (Ed : set_d (p, l) = list_max (map d (targets Q a))) by (rewrite E; reflexivity).
        rewrite <- E. unfold targets at 1. rewrite map_map. f_equal. apply map_ext_in. intros [b q] Hq.
        apply filter_In in Hq. destruct Hq as [Hq Eb]. apply Nat.eqb_eq in Eb. cbn [fst snd] in *. subst b.
        assert (HqT : (d q <= set_d (p, l))%nat) by (rewrite Ed; apply list_max_in, in_map, in_targets, Hq).
        assert (HTQ : (set_d (p, l) < set_d Q)%nat).
        { apply (max_falls d d_falls Q a (p, l)), in_set_edges. split; [exact Ha | symmetry; exact E]. }
        unfold f. cbn [fst snd].
        replace (set_d Q - 1 - d q)%nat with ((set_d Q - 1 - set_d (p, l)) + (set_d (p, l) - d q))%nat by lia.
        rewrite unit_split. ring.
    - apply NoDup_nodup.
    - intros e He. unfold calls. rewrite nodup_In. apply in_map. exact He. }
  assert (Hpairs : sum (map f (pairs Q)) <= sum (map (fun q => sum (map f (edges A q))) (members Q))).
  { rewrite <- sum_flat_map. apply sum_nodup, f_nonneg. }
  (* each member *)
  assert (Hmember : forall q, In q (members Q) ->
    sum (map f (edges A q)) + (if accept A q then unit F (set_d Q) else 0) <= unit F (set_d Q - d q) * m q).
  { intros q Hq. specialize (member_d q Hq).
    transitivity (unit F (set_d Q - d q) * masses A F W d q (row A m q)).
    - unfold masses, row. rewrite map_map, Z.mul_add_distr_l, <- sum_scale. cbn [fst snd].
      apply Z.add_le_mono.
      + apply sum_le. intros [a p] He. apply d_falls in He. unfold f, mass. cbn [fst snd].
        replace (set_d Q - 1 - d p)%nat with ((set_d Q - d q) + (d q - 1 - d p))%nat by lia.
        rewrite unit_split. apply Z.eq_le_incl. ring.
      + destruct (accept A q); [|lia]. rewrite <- unit_split. apply Z.eq_le_incl. f_equal. lia.
    - apply Z.mul_le_mono_nonneg_l; [apply unit_nonneg | apply C4]. }
  assert (Hstop : forall l, (forall q, In q l -> In q (members Q)) ->
    sum (map (fun q => sum (map f (edges A q))) l) + (if existsb (accept A) l then unit F (set_d Q) else 0)
    <= sum (map (fun q => unit F (set_d Q - d q) * m q) l)).
  { induction l as [|q l IH]; intros Hl; simpl; [lia|].
    specialize (Hmember q (Hl q (or_introl eq_refl))).
    assert (IH' := IH (fun x Hx => Hl x (or_intror Hx))). assert (Hu := unit_nonneg (set_d Q)).
    destruct (accept A q), (existsb (accept A) l); simpl in *; lia. }
  specialize (Hstop (members Q) (fun q Hq => Hq)). unfold masses. cbn [accept sets]. unfold set_m at 2. lia.
Qed.

Lemma set_g_member Q q : In q (members Q) -> g q <= set_g Q.
Proof.
  unfold set_g. destruct Q as [p l]. cbn [members fst snd]. induction l as [|x l IH]; intros [<- | H]; simpl in *.
  - lia.
  - destruct H.
  - specialize (IH (or_introl eq_refl)). lia.
  - destruct H as [<- | H]; [lia|]. specialize (IH (or_intror H)). lia.
Qed.

Lemma set_g_attained Q : exists q, In q (members Q) /\ set_g Q = g q.
Proof.
  unfold set_g. destruct Q as [p l]. cbn [members fst snd]. induction l as [|x l [q [Hq E]]]; simpl.
  - exists p. auto.
  - destruct (Z.max_spec (g x) (fold_right Z.max (g p) (map g l))) as [[_ M] | [_ M]]; rewrite M.
    + exists q. split; [destruct Hq as [<- | Hq]; auto | exact E].
    + exists x. auto.
Qed.

(* What keys need of g carries over to sets. *)
Theorem sets_bound_steps r :
  (forall q, accept A q = true -> 0 <= g q) ->
  (forall q a p, In (a, p) (edges A q) -> r a + g p <= g q) -> forall Q,
  (accept sets Q = true -> 0 <= set_g Q) /\
  (forall a T, In (a, T) (edges sets Q) -> r a + set_g T <= set_g Q).
Proof.
  intros Hstop Hstep Q. split.
  - cbn [accept sets]. intros H. apply existsb_exists in H. destruct H as [q [Hq H]].
    specialize (Hstop q H). assert (H' := set_g_member Q q Hq). lia.
  - intros a T H. cbn [edges sets] in H. apply in_set_edges in H. destruct H as [_ E].
    destruct (set_g_attained T) as [p [Hp ->]]. rewrite E in Hp. apply in_targets, in_pairs in Hp.
    destruct Hp as [q [Hq He]]. specialize (Hstep q a p He). assert (H' := set_g_member Q q Hq). lia.
Qed.

(* Sets of states that are alive are alive. *)
Theorem sets_are_alive : alive A -> alive sets.
Proof.
  intros Halive Q. destruct (Halive (fst Q)) as [H | H].
  - left. cbn [accept sets]. apply existsb_exists. exists (fst Q). split; [left; reflexivity | exact H].
  - right. destruct (edges A (fst Q)) as [|[a p] l] eqn:E; [congruence|].
    assert (Hp : In (a, p) (pairs Q)).
    { apply in_pairs. exists (fst Q). split; [left; reflexivity | rewrite E; left; reflexivity]. }
    assert (HT := proj2 (in_targets Q a p) Hp). destruct (targets Q a) as [|p0 l0] eqn:ET; [destruct HT|].
    cbn [edges sets]. intros En. assert (Hin : In (a, (p0, l0)) (set_edges Q)).
    { apply in_set_edges. split; [|symmetry; exact ET]. unfold calls. rewrite nodup_In.
      change a with (fst (a, p)). apply in_map. exact Hp. }
    rewrite En in Hin. destruct Hin.
Qed.

End Sets.
