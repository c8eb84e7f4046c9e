(* The statements that an automaton leaves to those who go through it: what is held after a call, None where a
   statement forbids it, and whether a plan may stop.
   docs/spec/artifact.md, section 7; docs/spec/race.md, sections 12 and 23; docs/spec/session.md, section 5. *)

From Coq Require Import List Arith Bool Lia.
From Tcc Require Import Automaton Certificates Prefix.
Import ListNotations.

Section Enforced.
Variable A : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges A q)).
Variable held : Type.
Variable see : held -> call -> option held.
Variable ends : held -> bool.

Definition entry (h : held) (e : edge A) : option (call * (state A * held)) :=
  match see h (fst e) with Some k => Some (fst e, (snd e, k)) | None => None end.
Definition some {X Y} (f : X -> option Y) (l : list X) : list Y :=
  flat_map (fun x => match f x with Some y => [y] | None => [] end) l.

Lemma in_some {X Y} (f : X -> option Y) l y : In y (some f l) <-> exists x, In x l /\ f x = Some y.
Proof.
  unfold some. rewrite in_flat_map. split; intros [x [Hx H]]; exists x; (split; [exact Hx|]).
  - destruct (f x); [destruct H as [-> | []]; reflexivity | destruct H].
  - rewrite H. left. reflexivity.
Qed.

Lemma entry_call h e x : entry h e = Some x -> fst x = fst e /\ fst (snd x) = snd e.
Proof. unfold entry. destruct (see h (fst e)); [|discriminate]. intros E. injection E as <-. auto. Qed.

Lemma enforced_falls (s : state A * held) a p :
  In (a, p) (some (entry (snd s)) (edges A (fst s))) -> (number A (fst p) < number A (fst s))%nat.
Proof.
  rewrite in_some. intros [[b q] [Hin E]]. apply entry_call in E. destruct E as [_ E]. cbn [snd] in E.
  rewrite E. exact (falls A _ _ _ Hin).
Qed.

(* The run's own automaton. *)
Definition enforced : automaton := {|
  state := state A * held;
  accept := fun s => accept A (fst s) && ends (snd s);
  edges := fun s => some (entry (snd s)) (edges A (fst s));
  number := fun s => number A (fst s);
  falls := enforced_falls |}.

(* Its plans are those of the automaton that break no statement. *)
Fixpoint allowed (h : held) (plan : list call) : Prop :=
  match plan with
  | [] => ends h = true
  | a :: plan => exists k, see h a = Some k /\ allowed k plan
  end.

Theorem enforced_plans plan : forall q h,
  accepted enforced (q, h) plan <-> accepted A q plan /\ allowed h plan.
Proof.
  induction plan as [|a plan IH]; intros q h; cbn [accepted allowed].
  - cbn. apply andb_true_iff.
  - split.
    + intros [[p k] [Hin H]]. cbn [edges enforced fst snd] in Hin. apply in_some in Hin.
      destruct Hin as [[b p'] [Hin E]]. unfold entry in E. cbn [fst snd] in E.
      destruct (see h b) as [k'|] eqn:Es; [|discriminate]. injection E as -> -> ->.
      apply IH in H. destruct H as [H1 H2]. split; [exists p; auto | exists k; auto].
    + intros [[p [Hin H1]] [k [Es H2]]]. exists (p, k). split; [|apply IH; auto].
      cbn [edges enforced fst snd]. apply in_some. exists (a, p). split; [exact Hin|].
      unfold entry. cbn [fst snd]. rewrite Es. reflexivity.
Qed.

Lemma enforced_distinct s : NoDup (map fst (edges enforced s)).
Proof.
  destruct s as [q h]. cbn [edges enforced fst snd]. assert (H := C1 q). revert H.
  induction (edges A q) as [|e l IH]; intros H; [constructor|]. inversion H as [|? ? He Hl]; subst.
  unfold some. cbn [flat_map]. fold (some (entry h) l). destruct (entry h e) as [x|] eqn:E; [|exact (IH Hl)].
  cbn [map app]. constructor; [|exact (IH Hl)]. intros Hin. apply in_map_iff in Hin.
  destruct Hin as [y [Ey Hy]]. apply in_some in Hy. destruct Hy as [e' [He' E']].
  apply He. apply entry_call in E, E'. destruct E as [E _], E' as [E' _].
  rewrite <- (eq_trans (eq_sym E') (eq_trans Ey E)). apply in_map. exact He'.
Qed.

(* The statements that are left to the run have seen the calls before it. *)
Theorem prefix_of_enforced calls : forall q h p k, led enforced (q, h) calls = Some (p, k) ->
  led A q calls = Some p /\ forall P, allowed h (calls ++ P) <-> allowed k P.
Proof.
  induction calls as [|a calls IH]; intros q h p k E; cbn [led app allowed] in *.
  - injection E as <- <-. split; [reflexivity | intros P; reflexivity].
  - destruct (follow enforced (q, h) a) as [[r j]|] eqn:Ef; [|discriminate].
    apply (follow_edge _ enforced_distinct) in Ef. cbn [edges enforced fst snd] in Ef.
    apply in_some in Ef. destruct Ef as [[b r'] [Hin Ee]]. unfold entry in Ee. cbn [fst snd] in Ee.
    destruct (see h b) as [j'|] eqn:Es; [|discriminate]. injection Ee as -> -> ->.
    destruct (IH r j p k E) as [I1 I2]. apply (follow_edge A C1) in Hin. rewrite Hin. split; [exact I1|].
    intros P. rewrite <- I2. rewrite Es. split; [intros [x [Ex Hx]]; injection Ex as <-; exact Hx | eauto].
Qed.
End Enforced.
