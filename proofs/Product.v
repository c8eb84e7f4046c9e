(* The product of two automata: how many plans only one of them allows, and how many both do.
   docs/spec/artifact.md, section 5 (C1, C3).

   The second automaton is followed as far as it goes; where it has no edge it has no plan. *)

From Coq Require Import List Arith Bool ZArith Lia.
From Tcc Require Import Automaton Certificates Prefix.
Import ListNotations.

Section Product.
Variables A B : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges B q)).
Variable keep : bool -> bool.                (* of a plan of A: whether it is counted if B has it *)

Definition ends_there (r : option (state B)) : bool := match r with Some r => accept B r | None => false end.
Definition goes (r : option (state B)) (a : call) : option (state B) :=
  match r with Some r => follow B r a | None => None end.

Lemma product_falls (s : state A * option (state B)) a p :
  In (a, p) (map (fun e : edge A => (fst e, (snd e, goes (snd s) (fst e)))) (edges A (fst s))) ->
  number A (fst p) < number A (fst s).
Proof.
  intros H. apply in_map_iff in H. destruct H as [[b q] [E H]]. injection E as <- <-. exact (falls A _ _ _ H).
Qed.

Definition product : automaton := {|
  state := state A * option (state B);
  accept := fun s => accept A (fst s) && keep (ends_there (snd s));
  edges := fun s => map (fun e : edge A => (fst e, (snd e, goes (snd s) (fst e)))) (edges A (fst s));
  number := fun s => number A (fst s);
  falls := product_falls |}.

Fixpoint has (r : option (state B)) (plan : list call) : bool :=
  match plan with [] => ends_there r | a :: plan => has (goes r a) plan end.

Lemma has_accepted plan : forall r, has (Some r) plan = true <-> accepted B r plan.
Proof.
  induction plan as [|a plan IH]; intros r; cbn [has accepted goes]; [reflexivity|].
  destruct (follow B r a) as [p|] eqn:E.
  - rewrite IH. split.
    + intros H. exists p. split; [apply (follow_edge B C1), E | exact H].
    + intros [p' [Hp H]]. apply (follow_edge B C1) in Hp. congruence.
  - split.
    + intros H. exfalso. clear -H. induction plan as [|b plan IH]; [discriminate | exact (IH H)].
    + intros [p [Hp _]]. apply (follow_edge B C1) in Hp. congruence.
Qed.

Theorem product_plans q : forall r,
  plans product (q, r) = filter (fun plan => keep (has r plan)) (plans A q).
Proof.
  induction q as [q IH] using (below_ind A). intros r. unfold plans. rewrite !paths_eq, !map_app, filter_app. f_equal.
  - cbn [edges product fst snd]. induction (edges A q) as [|[a p] l IHl]; [reflexivity|].
    cbn [map flat_map fst snd]. rewrite !map_app, filter_app, IHl by (intros b s Hs; apply (IH b s); right; exact Hs).
    f_equal. rewrite !map_map. specialize (IH a p (or_introl eq_refl) (goes r a)). unfold plans in IH.
    transitivity (map (cons a) (map (calls_of product) (paths product (p, goes r a)))); [rewrite map_map; reflexivity|].
    rewrite IH. clear. induction (paths A p) as [|P L IHL]; [reflexivity|]. cbn [map filter].
    change (calls_of A ((a, p) :: P)) with (a :: calls_of A P). cbn [has].
    destruct (keep (has (goes r a) (calls_of A P))); cbn [map]; rewrite IHL; reflexivity.
  - cbn [accept product fst snd]. destruct (accept A q); [|reflexivity]. cbn [andb map filter calls_of has].
    destruct (keep (ends_there r)); reflexivity.
Qed.

(* What stands at a pair by the equation of C3 is the number of these plans, each counted once. *)
Theorem product_counts N : (forall q, NoDup (map fst (edges A q))) -> holds product (plan_count product) N ->
  forall q r, NoDup (plans product (q, Some r)) /\
  N (q, Some r) = Z.of_nat (length (filter (fun plan => keep (has (Some r) plan)) (plans A q))) /\
  forall plan, In plan (plans product (q, Some r)) <->
    accepted A q plan /\ keep (has (Some r) plan) = true.
Proof.
  intros C1A HN q r. rewrite <- product_plans. split; [|split].
  - rewrite product_plans. apply NoDup_filter, plans_distinct, C1A.
  - apply C3_counts_the_plans, HN.
  - intros plan. rewrite product_plans, filter_In, plans_are_the_accepted. reflexivity.
Qed.

End Product.

(* Only in the first; in both. *)
Theorem difference_counts A B N : (forall q, NoDup (map fst (edges A q))) -> (forall q, NoDup (map fst (edges B q))) ->
  holds (product A B negb) (plan_count _) N -> forall q r,
  (forall plan, In plan (plans (product A B negb) (q, Some r)) <-> accepted A q plan /\ ~ accepted B r plan) /\
  NoDup (plans (product A B negb) (q, Some r)) /\
  N (q, Some r) = Z.of_nat (length (plans (product A B negb) (q, Some r))).
Proof.
  intros CA CB HN q r. destruct (product_counts A B negb N CA HN q r) as [H1 [H2 H3]]. split; [|split; [exact H1|]].
  - intros plan. rewrite H3, <- (has_accepted B CB). destruct (has B (Some r) plan); simpl; intuition congruence.
  - rewrite product_plans. exact H2.
Qed.

Theorem intersection_counts A B N : (forall q, NoDup (map fst (edges A q))) -> (forall q, NoDup (map fst (edges B q))) ->
  holds (product A B (fun b => b)) (plan_count _) N -> forall q r,
  (forall plan, In plan (plans (product A B (fun b => b)) (q, Some r)) <-> accepted A q plan /\ accepted B r plan) /\
  NoDup (plans (product A B (fun b => b)) (q, Some r)) /\
  N (q, Some r) = Z.of_nat (length (plans (product A B (fun b => b)) (q, Some r))).
Proof.
  intros CA CB HN q r. destruct (product_counts A B _ N CA HN q r) as [H1 [H2 H3]]. split; [|split; [exact H1|]].
  - intros plan. rewrite H3, <- (has_accepted B CB). reflexivity.
  - rewrite product_plans. exact H2.
Qed.
