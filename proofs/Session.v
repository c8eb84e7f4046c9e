(* Sessions: calls that a gate lets through one by one, whose outcomes may be unknown or be said later.
   docs/spec/session.md, section 5; docs/spec/artifact.md, section 5 (C9).

   A resolution of a history says of every call whether it was done and what was answered, as far as
   that is open.  What a session holds is where its resolutions lead; a call that may follow from every
   place is let through. *)

From Coq Require Import List Arith Lia.
From Tcc Require Import Automaton Certificates Prefix.
Import ListNotations.

Section Session.
Variable D : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges D q)).
Variable root : state D.

(* A call as its caller chooses it; its answers that are calls of the artifact, and whether the world
   has no others. *)
Variable offer : Type.
Variable answers : offer -> list call.
Variable closed : offer -> bool.

(* What was in truth; what is known. *)
Inductive deed := undone | answer (a : call) | unforeseen.
Inductive outcome := failed | partly (l : list call) (all : bool) | unknown.  (* done: one of l, or none of them if not all *)
Definition may (o : offer) (k : outcome) (x : deed) : Prop :=
  match k, x with
  | failed, undone => True
  | partly l _, answer a => In a l
  | partly _ all, unforeseen => all = false
  | unknown, undone => True
  | unknown, answer a => In a (answers o)
  | unknown, unforeseen => closed o = false
  | _, _ => False
  end.

(* A place is a state, or None: nowhere. *)
Definition place := option (state D).
Definition leads (p : place) (a : call) : place := match p with Some q => follow D q a | None => None end.
Definition after (p : place) (x : deed) : place :=
  match x with undone => p | answer a => leads p a | unforeseen => None end.

(* The calls of a session with what is known of each, the last one first. *)
Definition history := list (offer * outcome).
Definition resolves (h : history) (xs : list deed) := Forall2 (fun c x => may (fst c) (snd c) x) h xs.
Definition arrives (xs : list deed) : place := fold_right (fun x p => after p x) (Some root) xs.
Definition trace (xs : list deed) : list call :=
  rev (flat_map (fun x => match x with answer a => [a] | _ => [] end) xs).

(* What is held: session/machine.py, `done` and `unknown`. *)
Definition spread (l : list call) (all : bool) (held : list place) : list place :=
  flat_map (fun p => map (leads p) l) held ++ (if all then [] else map (fun _ => None) held).
Definition step (c : offer * outcome) (held : list place) : list place :=
  match snd c with
  | failed => held
  | partly l all => spread l all held
  | unknown => held ++ spread (answers (fst c)) (closed (fst c)) held
  end.
Definition held (h : history) : list place := fold_right step [Some root] h.

Lemma spread_in l all m p : In p (spread l all m) <->
  exists q, In q m /\ ((exists a, In a l /\ p = leads q a) \/ (all = false /\ p = None)).
Proof.
  unfold spread. rewrite in_app_iff, in_flat_map. split.
  - intros [[q [Hq H]] | H].
    + apply in_map_iff in H. destruct H as [a [<- Ha]]. eauto 6.
    + destruct all; [destruct H|]. apply in_map_iff in H. destruct H as [q [<- Hq]]. eauto 6.
  - intros [q [Hq [[a [Ha ->]] | [-> ->]]]].
    + left. exists q. split; [exact Hq | apply in_map, Ha].
    + right. apply in_map_iff. eauto.
Qed.

Theorem held_are_the_resolutions h p : In p (held h) <-> exists xs, resolves h xs /\ arrives xs = p.
Proof.
  revert p. induction h as [|[o k] h IH]; intros p; cbn [held fold_right].
  - split.
    + intros [<- | []]. exists []. split; [constructor | reflexivity].
    + intros [xs [H E]]. inversion H; subst. left. reflexivity.
  - fold (held h). unfold step. cbn [fst snd].
    assert (R : forall x q, may o k x -> In q (held h) ->
              exists xs, resolves ((o, k) :: h) xs /\ arrives xs = after q x).
    { intros x q Hx Hq. apply IH in Hq. destruct Hq as [xs [H <-]]. exists (x :: xs).
      split; [constructor; [exact Hx | exact H] | reflexivity]. }
    split.
    + destruct k as [|l all|]; rewrite ?in_app_iff, ?spread_in.
      * intros H. exact (R undone p I H).
      * intros [q [Hq [[a [Ha ->]] | [-> ->]]]]; [exact (R (answer a) q Ha Hq) | exact (R unforeseen q eq_refl Hq)].
      * intros [H | [q [Hq [[a [Ha ->]] | [E ->]]]]]; [exact (R undone p I H) | exact (R (answer a) q Ha Hq) | exact (R unforeseen q E Hq)].
    + intros [xs [H <-]]. inversion H as [|? x ? xs' Hx Hxs]; subst. cbn [fst snd] in Hx.
      assert (Hq : In (arrives xs') (held h)) by (apply IH; eauto).
      cbn [arrives fold_right]. fold (arrives xs').
      destruct k as [|l all|], x as [|b|]; cbn [may] in Hx; try contradiction; cbn [after];
        rewrite ?in_app_iff, ?spread_in; eauto 8.
Qed.

(* The gate: from every place some answer leads on.  It may refuse for other reasons, too. *)
Definition lets (held : list place) (o : offer) :=
  forall p, In p held -> exists a, In a (answers o) /\ leads p a <> None.

(* What is said later: an outcome that was unknown.  Each call was let through by what was known then. *)
Definition sharper (c c' : offer * outcome) :=
  fst c = fst c' /\ (snd c = snd c' \/ (snd c' = unknown /\ forall x, may (fst c) (snd c) x -> may (fst c) unknown x)).
Definition known_then (h h' : history) := Forall2 sharper h h'.
Inductive passed : history -> Prop :=
| passed_nothing : passed []
| passed_call o k h h' : passed h -> known_then h h' -> lets (held h') o ->
    (forall x, may o k x -> may o unknown x) -> passed ((o, k) :: h).

Lemma resolves_then h h' xs : known_then h h' -> resolves h xs -> resolves h' xs.
Proof.
  intros H. revert xs. induction H as [|[o k] [o' k'] h h' [Ho Hk] _ IH]; intros xs Hx;
    inversion Hx as [|? x ? xs' H1 H2]; subst; constructor; [|exact (IH xs' H2)].
  cbn [fst snd] in *. subst o'. destruct Hk as [-> | [-> Hk]]; auto.
Qed.

(* Nothing that was held before is let go by knowing less: knowing more only takes places away. *)
Theorem knowing_more_keeps_calls h h' : known_then h h' ->
  incl (held h) (held h') /\ forall o, lets (held h') o -> lets (held h) o.
Proof.
  intros H. assert (I : incl (held h) (held h')).
  { intros p Hp. apply held_are_the_resolutions in Hp. destruct Hp as [xs [Hx E]].
    apply held_are_the_resolutions. exists xs. split; [exact (resolves_then h h' xs H Hx) | exact E]. }
  split; [exact I|]. intros o Ho p Hp. apply Ho, I, Hp.
Qed.

Lemma arrives_led xs : forall q, arrives xs = Some q -> led D root (trace xs) = Some q.
Proof.
  induction xs as [|x xs IH]; intros q E; [exact E|].
  unfold trace in *. cbn [arrives fold_right flat_map] in *. fold (arrives xs) in E.
  rewrite rev_app_distr. destruct x as [|a|]; cbn [after] in E.
  - cbn [rev]. rewrite app_nil_r. exact (IH q E).
  - destruct (arrives xs) as [r|]; [|discriminate]. cbn [leads] in E. rewrite led_app, (IH r eq_refl).
    cbn [rev app led]. rewrite E. reflexivity.
  - discriminate.
Qed.

(* Every call was made where, whatever the outcomes were that nobody knew, the calls done so far lead to a
   state of the automaton, and some answer leads on. *)
Theorem calls_are_made_on_plans o k h : passed ((o, k) :: h) -> forall xs, resolves h xs ->
  exists q a p, led D root (trace xs) = Some q /\ In a (answers o) /\ follow D q a = Some p.
Proof.
  intros H xs Hx. inversion H as [|? ? ? h' _ Hkn Hlets _]; subst.
  assert (Hp : In (arrives xs) (held h')).
  { apply held_are_the_resolutions. exists xs. split; [exact (resolves_then _ _ _ Hkn Hx) | reflexivity]. }
  destruct (Hlets _ Hp) as [a [Ha Hl]]. destruct (arrives xs) as [q|] eqn:E; [|cbn in Hl; congruence].
  cbn [leads] in Hl. destruct (follow D q a) as [p|] eqn:Ef; [|congruence].
  exists q, a, p. split; [apply arrives_led, E | auto].
Qed.

(* To know more of what was unknown, and be it later, takes no call back. *)
Lemma sharper_then h h' h'' : known_then h h' -> known_then h' h'' -> known_then h h''.
Proof.
  intros H. revert h''. induction H as [|c c' h h' [E K] _ IH]; intros h'' H2; inversion H2 as [|? c'' ? t [E' K'] H3]; subst;
    constructor; [|apply IH, H3]. split; [congruence|].
  destruct K' as [K' | [K' K1']]; [destruct K as [K | [K K1]]; [left; congruence | right; split; [congruence | exact K1]]|].
  right. split; [exact K'|]. destruct K as [K | [_ K1]]; [rewrite K, E; exact K1' | exact K1].
Qed.
Theorem known_later_passes h h' : passed h' -> known_then h h' -> passed h.
Proof.
  intros H. revert h. induction H as [|o k h' h'' H IH K L M]; intros h Hk; inversion Hk as [|[o1 k1] ? t ? [E K1] Ht]; subst; [constructor|].
  cbn [fst snd] in *. subst o1. apply passed_call with h''; [apply IH, Ht | exact (sharper_then _ _ _ Ht K) | exact L|].
  destruct K1 as [-> | [_ K1]]; auto.
Qed.

(* So under every resolution the calls done lead somewhere, but for the last answer, after which nothing follows. *)
Theorem passed_traces_lead h : passed h -> forall xs, resolves h xs ->
  led D root (trace xs) <> None /\ arrives xs <> None \/
  (arrives xs = None /\ exists x xs', xs = x :: xs' /\ arrives xs' <> None /\ led D root (trace xs') <> None).
Proof.
  intros H xs Hx. destruct (arrives xs) as [q|] eqn:E.
  - left. rewrite (arrives_led xs q E). split; discriminate.
  - right. split; [reflexivity|]. destruct h as [|[o k] h]; inversion Hx as [|? x ? xs' H1 H2]; subst; [discriminate|].
    exists x, xs'. split; [reflexivity|].
    destruct (calls_are_made_on_plans o k h H xs' H2) as [q [a [p [El _]]]]. rewrite El. split; [|discriminate].
    inversion H as [|? ? ? h' _ Hkn Hlets _]; subst. intros En.
    assert (Hp : In (arrives xs') (held h')).
    { apply held_are_the_resolutions. exists xs'. split; [exact (resolves_then _ _ _ Hkn H2) | reflexivity]. }
    destruct (Hlets _ Hp) as [b [_ Hl]]. rewrite En in Hl. cbn in Hl. congruence.
Qed.

(* Where the automaton has no dead ends, somewhere is on a plan. *)
Theorem passed_traces_are_prefixes : alive D -> forall h, passed h -> forall xs, resolves h xs ->
  (arrives xs <> None /\ exists P, accepted D root (trace xs ++ P)) \/
  (arrives xs = None /\ exists x xs', xs = x :: xs' /\ arrives xs' <> None /\
    exists P, accepted D root (trace xs' ++ P)).
Proof.
  intros Halive h H xs Hx. destruct (passed_traces_lead h H xs Hx) as [[L E] | [E [x [xs' [-> [L1 L2]]]]]].
  - left. split; [exact E | apply (led_is_a_prefix D C1 Halive), L].
  - right. split; [exact E|]. exists x, xs'. split; [reflexivity|]. split; [exact L1 | apply (led_is_a_prefix D C1 Halive), L2].
Qed.

Theorem nowhere_lets_nothing held o : In None held -> ~ lets held o.
Proof. intros H Hl. destruct (Hl None H) as [a [_ E]]. apply E. reflexivity. Qed.

(* The end: where every place accepts, the calls done are a plan, whatever the outcomes were. *)
Theorem finished_is_a_plan h : (forall p, In p (held h) -> exists q, p = Some q /\ accept D q = true) ->
  forall xs, resolves h xs -> accepted D root (trace xs).
Proof.
  intros H xs Hx. destruct (H (arrives xs)) as [q [E Hq]].
  { apply held_are_the_resolutions. eauto. }
  rewrite <- (app_nil_r (trace xs)). apply (residual_language D C1 (trace xs) root q []).
  - apply arrives_led, E.
  - exact Hq.
Qed.

(* C9: of a strict call every answer has an edge where one has; a call without observed values has one
   answer.  Then no answer is unforeseen. *)
Definition strict (o : offer) := closed o = true /\ forall q a p, In a (answers o) -> follow D q a = Some p ->
  forall b, In b (answers o) -> follow D q b <> None.

Theorem one_answer_is_strict o a : closed o = true -> answers o = [a] -> strict o.
Proof.
  intros Hc E. split; [exact Hc|]. rewrite E. intros q a' p [<- | []] Hf b [<- | []]. congruence.
Qed.

Theorem strict_sessions_stay_on_plans : alive D -> forall h, passed h -> (forall c, In c h -> strict (fst c)) ->
  forall xs, resolves h xs -> exists P, accepted D root (trace xs ++ P).
Proof.
  intros Halive h H Hs xs Hx. apply (led_is_a_prefix D C1 Halive).
  destruct h as [|[o k] h].
  - inversion Hx; subst. cbn. discriminate.
  - inversion Hx as [|? x ? xs' H1 H2]; subst.
    destruct (calls_are_made_on_plans o k h H xs' H2) as [q [a [p [E [Ha Hf]]]]].
    destruct (Hs (o, k) (or_introl eq_refl)) as [Hc Hsis]. cbn [fst snd] in *.
    inversion H as [|? ? ? ? _ _ _ Hk]; subst. apply Hk in H1.
    unfold trace. cbn [flat_map]. rewrite rev_app_distr. fold (trace xs').
    destruct x as [|b|]; cbn [may] in H1.
    + cbn [rev]. rewrite app_nil_r, E. discriminate.
    + rewrite led_app, E. cbn [rev app led]. specialize (Hsis q a p Ha Hf b H1).
      destruct (follow D q b); congruence.
    + congruence.
Qed.

(* S304: what would be held were the outcome unknown has at most 64 places. *)
Definition room (held : list place) (o : offer) :=
  exists l, length l <= 64 /\ incl (step (o, unknown) held) l.

(* And with outcomes known it can be brought to an end, whatever is answered: there is always a call that
   is allowed, and after each of its answers another one, until a plan ends.  Of statements, and of outcomes
   that stay unknown, nothing is said.  A call of 64 answers and more may be refused for want of room. *)
Inductive finishable : state D -> Prop :=
| may_end q : accept D q = true -> finishable q
| may_call q o : lets [Some q] o -> room [Some q] o ->
    (forall b, In b (answers o) -> exists p, follow D q b = Some p /\ finishable p) -> finishable q.

Theorem strict_finishes : alive D ->
  (forall a, exists o, In a (answers o) /\ strict o /\ length (answers o) < 64) -> forall q, finishable q.
Proof.
  intros Halive Hs q. induction q as [q IH] using (below_ind D). destruct (Halive q) as [H | H].
  - apply may_end, H.
  - destruct (edges D q) as [|[a p] l] eqn:E; [congruence|].
    assert (Hf : follow D q a = Some p) by (apply (follow_edge D C1); rewrite E; left; reflexivity).
    destruct (Hs a) as [o [Ha [[Hc Hsis] Hl]]]. apply may_call with o.
    + intros x [<- | []]. exists a. split; [exact Ha|]. cbn [leads]. congruence.
    + exists (step (o, unknown) [Some q]). split; [|intros x Hx; exact Hx]. unfold step, spread. cbn [fst snd].
      rewrite Hc. cbn [flat_map]. rewrite !app_nil_r, app_length, map_length. cbn [length]. lia.
    + intros b Hb. specialize (Hsis q a p Ha Hf b Hb). destruct (follow D q b) as [r|] eqn:Er; [|congruence].
      exists r. split; [reflexivity|]. apply (IH b). rewrite <- E. apply (follow_edge D C1), Er.
Qed.

End Session.
