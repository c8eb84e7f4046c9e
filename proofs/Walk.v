(* The check of an automaton against its core: a walk in which all pairs agree shows that their plans are
   the same; and what strict tools leave of the plans of a core.
   docs/spec/core.md, section 5; docs/trust.md, "What VALID means".

   A residual is what the core still asks for after a prefix; how it is derived is not a part of this. *)

From Coq Require Import List Arith Lia.
From Tcc Require Import Automaton Certificates Prefix Session.
Import ListNotations.

Section Walk.
Variable D : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges D q)).
Variable residual : Type.
Variable nullable : residual -> bool.
Variable derived : residual -> call -> residual.
Fixpoint means (r : residual) (plan : list call) : Prop :=
  match plan with [] => nullable r = true | a :: plan => means (derived r a) plan end.

(* Less is left: of the same control, and of no limit more. *)
Variable less : residual -> residual -> Prop.
Hypothesis less_allows_less : forall r s, less r s -> forall plan, means r plan -> means s plan.

(* The pairs that were walked, and those that lie between two of them. *)
Variable walked : state D -> residual -> Prop.
Definition settled q r := walked q r \/ exists lo hi, walked q lo /\ walked q hi /\ less lo r /\ less r hi.
Hypothesis agree_on_stopping : forall q r, walked q r -> (accept D q = true <-> nullable r = true).
Hypothesis edges_lead_to_pairs : forall q r a p, walked q r -> In (a, p) (edges D q) -> settled p (derived r a).
Hypothesis others_have_no_plan : forall q r a, walked q r -> follow D q a = None ->
  forall plan, ~ means (derived r a) plan.

Theorem agreeing_walks_show_equality : forall q r, settled q r ->
  forall plan, accepted D q plan <-> means r plan.
Proof.
  assert (between : forall plan, (forall q r, walked q r -> (accepted D q plan <-> means r plan)) ->
    forall q r, settled q r -> (accepted D q plan <-> means r plan)).
  { intros plan H q r [Hw | [lo [hi [Hlo [Hhi [L1 L2]]]]]]; [exact (H q r Hw)|]. split; intros K.
    - apply (less_allows_less lo r L1), (H q lo Hlo), K.
    - apply (H q hi Hhi), (less_allows_less r hi L2), K. }
  intros q r H plan. revert q r H. induction plan as [|a plan IH]; apply between; intros q r Hw; cbn [accepted means].
  - apply agree_on_stopping, Hw.
  - split.
    + intros [p [Hp K]]. apply (IH p); [exact (edges_lead_to_pairs q r a p Hw Hp) | exact K].
    + intros K. destruct (follow D q a) as [p|] eqn:E.
      * apply (follow_edge D C1) in E. exists p. split; [exact E|].
        apply (IH p (derived r a)); [exact (edges_lead_to_pairs q r a p Hw E) | exact K].
      * destruct (others_have_no_plan q r a Hw E plan K).
Qed.
End Walk.

(* Strict: a part of the plans in which after every strict call each sister may stand in its place. *)
Section Strict.
Variable plan_of_core : list call -> Prop.
Variable sister : call -> call -> Prop.                    (* of calls of strict tools; others have none *)
Definition begins (part : list call -> Prop) (u : list call) := exists v, part (u ++ v).
Definition is_part (part : list call -> Prop) :=
  (forall plan, part plan -> plan_of_core plan) /\
  forall u a b, begins part (u ++ [a]) -> sister a b -> begins part (u ++ [b]).

Definition largest (plan : list call) := exists part, is_part part /\ part plan.

(* There is one largest part: what some part has. *)
Theorem largest_part_is_a_part : is_part largest /\ forall part, is_part part -> forall plan, part plan -> largest plan.
Proof.
  split; [split|].
  - intros plan [part [[H _] Hp]]. exact (H plan Hp).
  - intros u a b [v [part [Hpart Hv]]] Hs. destruct (proj2 Hpart u a b (ex_intro _ v Hv) Hs) as [v' Hv'].
    exists v', part. auto.
  - intros part Hpart plan Hp. exists part. auto.
Qed.

(* With C9 the plans of an automaton are a part, so no more than the largest. *)
Theorem C9_makes_a_part D : (forall q, NoDup (map fst (edges D q))) -> alive D -> forall root,
  (forall plan, accepted D root plan -> plan_of_core plan) ->
  (forall q a b p, sister a b -> follow D q a = Some p -> follow D q b <> None) ->
  is_part (accepted D root) /\ forall plan, accepted D root plan -> largest plan.
Proof.
  intros C1 Halive root Hcore C9. assert (P : is_part (accepted D root)).
  { split; [exact Hcore|]. intros u a b Hb Hs. apply (led_is_a_prefix D C1 Halive) in Hb.
    apply (led_is_a_prefix D C1 Halive). rewrite led_app in *. destruct (led D root u) as [q|]; [|exact Hb].
    cbn [led] in *. destruct (follow D q a) as [p|] eqn:E; [|congruence].
    specialize (C9 q a b p Hs E). destruct (follow D q b); congruence. }
  split; [exact P|]. intros plan Hp. exact (proj2 largest_part_is_a_part _ P plan Hp).
Qed.
End Strict.
