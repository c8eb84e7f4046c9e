(* Where calls lead that were made already, and what may follow them: the residual language.
   docs/spec/race.md, section 23; docs/spec/session.md, section 5.

   The automaton is deterministic (C1), or one of sets of states; what statements left to the run have
   seen may be a part of its states, as in Enforced.v. *)

From Coq Require Import List Arith Lia.
From Tcc Require Import Automaton Certificates.
Import ListNotations.

Section Prefix.
Variable D : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges D q)).

Definition follow (q : state D) (a : call) : option (state D) :=
  option_map snd (find (fun e : edge D => fst e =? a) (edges D q)).

Lemma follow_edge q a p : follow q a = Some p <-> In (a, p) (edges D q).
Proof.
  unfold follow. specialize (C1 q). induction (edges D q) as [|[b r] l IH]; cbn [find map fst] in *.
  - split; [discriminate | intros []].
  - inversion C1 as [|? ? Hb Hl]; subst. destruct (Nat.eqb_spec b a) as [-> | N]; cbn [option_map snd].
    + split; [intros E; injection E as ->; left; reflexivity|].
      intros [E | Hin]; [injection E as ->; reflexivity|]. exfalso. apply Hb.
      change a with (fst (a, p)). apply in_map. exact Hin.
    + rewrite IH by exact Hl. split; [right; assumption|].
      intros [E | Hin]; [injection E as -> _; congruence | exact Hin].
Qed.

(* The state that calls lead to; None where some call has no edge. *)
Fixpoint led (q : state D) (calls : list call) : option (state D) :=
  match calls with
  | [] => Some q
  | a :: calls => match follow q a with Some p => led p calls | None => None end
  end.

(* What may follow the calls are the plans of the state that they lead to. *)
Theorem residual_language calls : forall q p P, led q calls = Some p ->
  (accepted D p P <-> accepted D q (calls ++ P)).
Proof.
  induction calls as [|a calls IH]; intros q p P E; cbn [led app accepted] in *.
  - injection E as <-. reflexivity.
  - destruct (follow q a) as [r|] eqn:Ef; [|discriminate]. rewrite (IH r p P E). split.
    + intros H. exists r. split; [apply follow_edge, Ef | exact H].
    + intros [r' [Hr H]]. apply follow_edge in Hr. congruence.
Qed.

Lemma led_of_a_plan calls : forall q P, accepted D q (calls ++ P) -> exists p, led q calls = Some p.
Proof.
  induction calls as [|a calls IH]; intros q P H; cbn [led app accepted] in *; [eauto|].
  destruct H as [r [Hr H]]. apply follow_edge in Hr. rewrite Hr. exact (IH r P H).
Qed.

Lemma alive_goes_on : alive D -> forall q, exists P, accepted D q P.
Proof.
  intros Halive q. induction q as [q IH] using (below_ind D). destruct (Halive q) as [H | H].
  - exists []. exact H.
  - destruct (edges D q) as [|[a p] l] eqn:E; [congruence|].
    destruct (IH a p (or_introl eq_refl)) as [P HP]. exists (a :: P), p.
    split; [rewrite E; left; reflexivity | exact HP].
Qed.

(* Where every state is alive, calls that lead somewhere begin a plan, and others do not. *)
Theorem led_is_a_prefix : alive D -> forall q calls,
  led q calls <> None <-> exists P, accepted D q (calls ++ P).
Proof.
  intros Halive q calls. split.
  - destruct (led q calls) as [p|] eqn:E; [|congruence]. intros _.
    destruct (alive_goes_on Halive p) as [P HP]. exists P. apply (residual_language calls q p P E), HP.
  - intros [P HP]. destruct (led_of_a_plan calls q P HP) as [p ->]. discriminate.
Qed.

Lemma led_app calls more : forall q,
  led q (calls ++ more) = match led q calls with Some p => led p more | None => None end.
Proof.
  induction calls as [|a calls IH]; intros q; cbn [led app]; [reflexivity|].
  destruct (follow q a) as [p|]; [apply IH | reflexivity].
Qed.

End Prefix.

(* No automaton is smaller: where no two states have the same plans and every state is reached, any other
   deterministic automaton of these plans has as many states. *)
Section Smallest.
Variables D E : automaton.
Hypothesis D_once : forall q, NoDup (map fst (edges D q)).
Hypothesis E_once : forall q, NoDup (map fst (edges E q)).
Variable root : state D.
Variable other : state E.
Hypothesis same_plans : forall P, accepted D root P <-> accepted E other P.
Hypothesis D_alive : alive D.
Hypothesis reached : forall q, exists calls, led D root calls = Some q.
Hypothesis distinct : forall p q, (forall P, accepted D p P <-> accepted D q P) -> p = q.

Lemma counterpart q : exists q', forall P, accepted D q P <-> accepted E q' P.
Proof.
  destruct (reached q) as [calls Hq]. destruct (alive_goes_on D D_alive q) as [P HP].
  assert (R := residual_language D D_once calls root q). assert (HE := proj1 (same_plans _) (proj1 (R P Hq) HP)).
  destruct (led_of_a_plan E E_once calls other P HE) as [q' Hq']. exists q'. intros Q.
  rewrite (R Q Hq), same_plans. symmetry. apply (residual_language E E_once calls other q' Q Hq').
Qed.

Theorem no_automaton_is_smaller (l : list (state D)) : NoDup l ->
  exists l' : list (state E), NoDup l' /\ length l' = length l.
Proof.
  intros N. enough (H : exists l' : list (state E), NoDup l' /\ length l' = length l /\
    forall q', In q' l' -> exists q, In q l /\ forall P, accepted D q P <-> accepted E q' P) by (destruct H as [l' [H1 [H2 _]]]; eauto).
  induction N as [|q l Nq N [l' [N' [L H]]]].
  - exists []. split; [constructor|]. split; [reflexivity | intros q' []].
  - destruct (counterpart q) as [q' Hq]. exists (q' :: l'). split; [|split; [simpl; congruence|]].
    + constructor; [|exact N']. intros Hin. destruct (H q' Hin) as [p [Hp Ep]]. apply Nq.
      replace q with p; [exact Hp|]. apply distinct. intros P. rewrite Ep, Hq. reflexivity.
    + intros p' [<- | Hp']; [exists q; split; [left; reflexivity | exact Hq]|].
      destruct (H p' Hp') as [p [Hp Ep]]. exists p. split; [right; exact Hp | exact Ep].
Qed.
End Smallest.
