(* The claims over a verified artifact, read here; and that they are not about nothing.
   docs/spec/race.md, sections 11 and 23. *)

From Coq Require Import List Arith Bool Reals ZArith Lia Lra Permutation.
From Tcc Require Import Automaton Certificates Prefix Enforced Rounding Search Coupled Rest Artifact Sets.
Import ListNotations.
Local Open Scope R_scope.

(* A nondeterministic artifact, by sets of states: what `Artifact` asks of an automaton holds of them. *)
Section Nondeterministic.
Variable A : automaton.
Variable state_eq : forall p q : state A, {p = q} + {p <> q}.
Variables (F : nat) (W r : call -> Z) (d : state A -> nat) (m g : state A -> Z).
Hypothesis W_pos : forall a, (0 < W a)%Z.
Hypothesis C2 : holds A (rank A) d.
Hypothesis C4 : forall q, (masses A F W d q (row A m q) <= m q)%Z.
Hypothesis C5 : holds A (to_go A Z.max r) g.
Hypothesis C6 : alive A.
Notation Q := (sets A state_eq).

Theorem sets_of_states_qualify :
  (forall q, NoDup (map fst (edges Q q))) /\
  (forall q, masses Q F W (set_d A d) q (row Q (set_m A F d m) q) <= set_m A F d m q)%Z /\
  alive Q /\
  (forall q, accept Q q = true -> 0 <= set_g A g q)%Z /\
  (forall q a p, In (a, p) (edges Q q) -> r a + set_g A g p <= set_g A g q)%Z /\
  (forall q a p, In (a, p) (edges Q q) -> (set_d A d p < set_d A d q)%nat).
Proof.
  assert (pos := counts_are_positive A F W W_pos d m C6 C4).
  assert (B := C5_bounds_steps A r g C5).
  assert (S := sets_bound_steps A state_eq g r (fun q => proj1 (B q)) (fun q => proj2 (B q))).
  split; [apply sets_have_distinct_calls|].
  split; [apply sets_are_superadditive; auto; [apply rank_falls, C2 | intros q; specialize (pos q); lia]|].
  split; [apply sets_are_alive, C6|]. split; [intros q; apply S|]. split; [intros q; apply S|].
  intros q a p. exact (max_falls A state_eq d (rank_falls A d C2) q a p).
Qed.
End Nondeterministic.

(* A run after calls that were made: its claims are those of `Artifact`, begun at the state that the calls
   lead to, with what the statements have seen; and its plans are the ways on, each once.  The automaton is
   any deterministic one: of an artifact (C1), of sets of states, or `enforced` of either. *)
Theorem ways_on D : (forall q, NoDup (map fst (edges D q))) -> forall root calls p, led D root calls = Some p ->
  NoDup (map (plan_of D) (every_plan D p)) /\
  forall P, accepted D root (calls ++ P) <-> exists leaf, In leaf (every_plan D p) /\ plan_of D leaf = P.
Proof.
  intros C1 root calls p E. rewrite every_plan_is_a_plan. split; [apply plans_distinct, C1|].
  intros P. rewrite <- (residual_language D C1 calls root p P E), <- plans_are_the_accepted,
    <- every_plan_is_a_plan, in_map_iff. split; intros [x [H1 H2]]; exists x; auto.
Qed.

(* The places of a session over any artifact: sets of states, with what the statements have seen. *)
Theorem plans_of_places A state_eq held see ends : let D := enforced (sets A state_eq) held see ends in
  (forall s, NoDup (map fst (edges D s))) /\
  forall q h plan, accepted D ((q, []), h) plan <-> accepted A q plan /\ allowed held see ends h plan.
Proof.
  intros D. split.
  - apply enforced_distinct, sets_have_distinct_calls.
  - intros q h plan. unfold D. rewrite (enforced_plans (sets A state_eq)), sets_plans. cbn [members fst snd].
    split; intros [H K]; (split; [|exact K]).
    + destruct H as [p [[<- | []] H]]. exact H.
    + exists q. split; [left; reflexivity | exact H].
Qed.

(* An artifact of two plans, `stop` and `a` `stop`, and a run of the coupled race to its end. *)
Definition two_plans : automaton.
Proof.
  refine {| state := bool; accept := fun _ => true;
            edges := fun q => if q then [(O, false)] else []; number := fun q => if q then 1 else 0 |}%nat.
  intros [] a p H; [destruct H as [E | []]; injection E as _ <-; lia | destruct H].
Defined.

Section Example.
Notation M := two_plans.
Notation t := (Coupled.t M (fun _ => 1) 0 (fun _ _ => 0%Z) (fun _ c => match c with Some _ => true | None => false end) (fun _ => 1)).
Notation E_P := (Coupled.E_P M (fun _ => 1) 0 (fun _ _ => 0%Z) (fun _ c => match c with Some _ => true | None => false end) (fun _ => 1)).
Notation pops := (Coupled.pops M true (fun _ => 1) (fun _ => 0) 0 (fun _ _ => 0%Z) (fun _ c => match c with Some _ => true | None => false end) (fun _ => 1) false).

Theorem a_run_exists : exists s s',
  starts M true 1 (fun _ => 0) (fun _ => 0) t s /\ steps M 1 E_P pops s s' /\
  frontier M s' = [] /\ length (found M s') = 2%nat.
Proof.
  set (zero := fun _ : node M => 0).
  set (root := node_item M true (fun _ => 0) [] (t [])).
  set (s0 := {| low := zero; high := zero; frontier := [(root, key M 1 zero root)]; found := [] |}).
  exists s0. eexists. split; [|split].
  - repeat split; cbn; intros; unfold zero; lra.
  - eapply more; [eapply more; [eapply more; [eapply more; [apply none|]|]|]|].
    + apply pop with (i := root) (k := key M 1 zero root) (F' := []); [reflexivity|].
      exists [], (t []). split; reflexivity.
    + cbn. eapply pop; [reflexivity|]. exists [(O, false)], (t [(O, false)]). split; reflexivity.
    + cbn. eapply pop_leaf with (P := [(O, false)]); [reflexivity | reflexivity].
    + cbn. eapply pop_leaf with (P := []); [reflexivity | reflexivity].
  - split; reflexivity.
Qed.
End Example.
