(* Sessions over a file that passes: calls in the order of their decisions, outcomes in any order, later ones too,
   gone through place by place.  docs/spec/session.md, section 4.  No more than 64 places are held.

   A machine that is gone through by calls and outcomes comes first, whatever it remembers; Monitored.v has others. *)

From Coq Require Import List Arith ZArith Lia Bool.
From Tcc Require Import Automaton Certificates Digest Prefix Session Enforced.
From Tcc.Checker Require Import Strings States Sound Left.
Import ListNotations.
Local Open Scope Z_scope.

(* What is known of a call: it had no effect (Read: and its caller has read the error); it was done, with an answer that is
   one of these calls of the artifact, or of no call if not `all`, as far as it was told; nothing. *)
Inductive known := Failed | Read | Partly (l : list Z) (all : bool) (told : list (option Z)) | Unknown.
Inductive event {C} := Called (c : C) | Told (back : Z) (k : known).      (* of the call that so many calls follow *)
Arguments event : clear implicits.

Section Machine.
Context {C S : Type} (after : C -> known -> S -> S) (lets : C -> S -> bool) (may_be : C -> known -> bool).
Definition stack := list (C * known * S).                                (* the last call first, each with what was before it *)

(* An outcome becomes known: all that follows is gone through again. *)
Fixpoint retell (back : Z) (k : known) (s : stack) : option (stack * S) :=
  match s with
  | [] => None
  | (c, k0, before) :: s =>
      if back =? 0 then
        match k0 with Unknown => if may_be c k then Some ((c, k, before) :: s, after c k before) else None | _ => None end
      else match retell (back - 1) k s with
           | Some (s, now) => Some ((c, k0, now) :: s, after c k0 now)
           | None => None
           end
  end.
Fixpoint goes (now : S) (s : stack) (events : list (event C)) : option (S * stack) :=
  match events with
  | [] => Some (now, s)
  | Called c :: events => if lets c now then goes (after c Unknown now) ((c, Unknown, now) :: s) events else None
  | Told back k :: events => match retell back k s with Some (s, now) => goes now s events | None => None end
  end.

(* What this comes to: every call was let through by what was known then. *)
Definition calls_of (s : stack) : list (C * known) := map fst s.
Variable start : S.
Definition comes_to (h : list (C * known)) : S := fold_right (fun c s => after (fst c) (snd c) s) start h.
Inductive learned : list (C * known) -> list (C * known) -> Prop :=
| learned_now c k h : may_be c k = true -> learned ((c, Unknown) :: h) ((c, k) :: h)
| learned_before c h h' : learned h h' -> learned (c :: h) (c :: h').
Inductive decided : list (C * known) -> Prop :=
| decided_nothing : decided []
| decided_call c h : decided h -> lets c (comes_to h) = true -> decided ((c, Unknown) :: h)
| decided_later h h' : decided h -> learned h h' -> decided h'.

Fixpoint built (s : stack) : Prop :=
  match s with [] => True | (_, _, before) :: s => before = comes_to (calls_of s) /\ built s end.
Lemma retell_learns k : forall s back s' now, built s -> retell back k s = Some (s', now) ->
  built s' /\ now = comes_to (calls_of s') /\ learned (calls_of s) (calls_of s').
Proof.
  induction s as [|[[c k0] before] s IH]; intros back s' now B E; cbn [retell] in E; [discriminate|]. destruct B as [B1 B2].
  destruct (back =? 0).
  - destruct k0; try discriminate. destruct (may_be c k) eqn:M; [|discriminate]. injection E as <- <-.
    cbn [built calls_of map fst]. repeat split; auto; [cbn [comes_to fold_right fst snd]; rewrite B1; reflexivity | constructor; exact M].
  - destruct (retell (back - 1) k s) as [[s1 now1]|] eqn:E1; [|discriminate]. injection E as <- <-.
    destruct (IH _ _ _ B2 E1) as [I1 [I2 I3]]. cbn [built calls_of map fst]. repeat split; auto;
      [cbn [comes_to fold_right fst snd]; rewrite I2; reflexivity | constructor; exact I3].
Qed.
Lemma goes_decided events : forall now s now' s', built s -> now = comes_to (calls_of s) -> decided (calls_of s) ->
  goes now s events = Some (now', s') -> now' = comes_to (calls_of s') /\ decided (calls_of s').
Proof.
  induction events as [|[c | back k] events IH]; intros now s now' s' B N Dc E; cbn [goes] in E.
  - injection E as <- <-. auto.
  - destruct (lets c now) eqn:L; [|discriminate]. eapply IH; [| | |exact E]; cbn [built calls_of map fst].
    + auto.
    + cbn [comes_to fold_right fst snd]. rewrite N. reflexivity.
    + constructor; [exact Dc | fold (calls_of s); rewrite <- N; exact L].
  - destruct (retell back k s) as [[s1 now1]|] eqn:E1; [|discriminate].
    destruct (retell_learns _ _ _ _ _ B E1) as [I1 [I2 I3]]. eapply IH; [exact I1 | exact I2 | | exact E].
    exact (decided_later _ _ Dc I3).
Qed.

(* The calls and what is known of them in the end, without any check. *)
Fixpoint retold (back : Z) (k : known) (h : list (C * known)) : list (C * known) :=
  match h with [] => [] | (c, k0) :: h => if back =? 0 then (c, k) :: h else (c, k0) :: retold (back - 1) k h end.
Fixpoint history (h : list (C * known)) (events : list (event C)) : list (C * known) :=
  match events with
  | [] => h
  | Called c :: events => history ((c, Unknown) :: h) events
  | Told back k :: events => history (retold back k h) events
  end.
Lemma retell_retold k : forall s back s' now, retell back k s = Some (s', now) -> calls_of s' = retold back k (calls_of s).
Proof.
  induction s as [|[[c k0] before] s IH]; intros back s' now E; cbn [retell] in E; [discriminate|]. cbn [calls_of map fst retold].
  destruct (back =? 0).
  - destruct k0; try discriminate. destruct (may_be c k); [|discriminate]. injection E as <- _. reflexivity.
  - destruct (retell (back - 1) k s) as [[s1 now1]|] eqn:E1; [|discriminate]. injection E as <- _.
    cbn [calls_of map fst]. f_equal. exact (IH _ _ _ E1).
Qed.
Lemma goes_history events : forall now s now' s', goes now s events = Some (now', s') -> calls_of s' = history (calls_of s) events.
Proof.
  induction events as [|[c | back k] events IH]; intros now s now' s' E; cbn [goes history] in *.
  - injection E as _ <-. reflexivity.
  - destruct (lets c now); [|discriminate]. exact (IH _ _ _ _ E).
  - destruct (retell back k s) as [[s1 now1]|] eqn:E1; [|discriminate]. rewrite <- (retell_retold _ _ _ _ _ E1). exact (IH _ _ _ _ E).
Qed.
Lemma machine_decided events now s : goes start [] events = Some (now, s) ->
  now = comes_to (history [] events) /\ decided (history [] events).
Proof.
  intros E. assert (K := goes_history events start [] now s E). change (calls_of []) with (@nil (C * known)) in K. rewrite <- K. exact (goes_decided _ _ [] _ _ I eq_refl decided_nothing E).
Qed.
End Machine.
Arguments Called {C}. Arguments Told {C}.

(* Places.  A call as its caller chooses it: the calls of the artifact that it may turn out to be, and whether there are no
   others; and what its record says of the places before it. *)
Definition offer_z := (list Z * bool)%type.
Section Places.
Context {P : Type} (same_place : P -> P -> bool) (go : Z -> P -> option P) (ends : P -> bool).
Definition place_z := option P.                                          (* None: nowhere *)
Record chosen := { offer : offer_z; agrees : list place_z -> bool }.

Definition leads_z (a : Z) (p : place_z) : place_z := match p with None => None | Some q => go a q end.
Definition is_place (p q : place_z) : bool :=
  match p, q with Some p, Some q => same_place p q | None, None => true | _, _ => false end.
Fixpoint with_new (held more : list place_z) : list place_z :=
  match more with [] => held | p :: more => with_new (if existsb (is_place p) held then held else p :: held) more end.
Definition everywhere (o : offer_z) (p : place_z) : list place_z :=
  map (fun a => leads_z a p) (fst o) ++ (if snd o then [] else [None]).
Definition step_z (c : chosen) (k : known) (held : list place_z) : list place_z :=
  match k with
  | Failed | Read => held
  | Partly l all _ => with_new [] (flat_map (everywhere (l, all)) held)
  | Unknown => with_new held (flat_map (everywhere (offer c)) held)
  end.
Definition may_turn_out (c : chosen) (k : known) : bool :=
  match k with Partly l all _ => forallb (fun a => existsb (Z.eqb a) (fst (offer c))) l && (all || negb (snd (offer c))) | _ => true end.
Definition somewhere (p : place_z) : bool := match p with Some _ => true | None => false end.
(* From every place some answer leads on, and there would be 64 places at most were its outcome not known. *)
Definition lets_z (c : chosen) (held : list place_z) : bool :=
  forallb (Z.leb 0) (fst (offer c)) && agrees c held &&
  forallb (fun p => existsb (fun a => somewhere (leads_z a p)) (fst (offer c))) held &&
  (len (step_z c Unknown held) 0 <=? 64).
(* The places after a session, where its calls conform. *)
Definition places_after (start : P) (events : list (event chosen)) : option (list place_z) :=
  match goes step_z lets_z may_turn_out [Some start] [] events with Some (held, _) => Some held | None => None end.
Definition may_end (held : list place_z) : bool := forallb (fun p => match p with Some q => ends q | None => false end) held.

(* What these places are of: an automaton whose states they show. *)
Variable D : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges D q)).
Variables (fine : P -> Prop) (shows : P -> state D) (start : P).
Hypothesis same_is : forall p q, fine p -> fine q -> same_place p q = true -> shows p = shows q.
Hypothesis go_is : forall a p, 0 <= a -> fine p ->
  follow D (shows p) (Z.to_nat a) = match go a p with Some q => Some (shows q) | None => None end /\
  match go a p with Some q => fine q | None => True end.
Hypothesis ends_is : forall p, fine p -> ends p = true -> accept D (shows p) = true.
Hypothesis start_fine : fine start.

Definition answers (c : chosen) : list call := map Z.to_nat (fst (offer c)).
Definition closed (c : chosen) := snd (offer c).
Definition place_of (p : place_z) : place D := match p with Some q => Some (shows q) | None => None end.
Definition sound_place (p : place_z) := match p with Some q => fine q | None => True end.
Definition outcome_of (k : known) : outcome :=
  match k with Failed | Read => failed | Partly l all _ => partly (map Z.to_nat l) all | Unknown => unknown end.
Definition told_of (h : list (chosen * known)) : Session.history chosen := map (fun c => (fst c, outcome_of (snd c))) h.
Notation held := (Session.held D (shows start) chosen answers closed).
Notation passed := (Session.passed D (shows start) chosen answers closed).
Notation resolves := (Session.resolves chosen answers closed).

Lemma leads_z_spec a p : 0 <= a -> sound_place p -> place_of (leads_z a p) = leads D (place_of p) (Z.to_nat a) /\ sound_place (leads_z a p).
Proof.
  intros Ha Hp. destruct p as [q|]; [|split; [reflexivity | exact I]]. destruct (go_is a q Ha Hp) as [E F].
  cbn [leads_z place_of leads]. rewrite E. destruct (go a q); split; auto.
Qed.

(* Every place of the definition is shown by one that is held, and no others. *)
Definition same_places (l : list place_z) (m : list (place D)) :=
  (forall p, In p m <-> exists z, In z l /\ place_of z = p) /\ Forall sound_place l.
Lemma with_new_same held more m : Forall sound_place held -> Forall sound_place more ->
  (forall p, In p m <-> exists z, (In z held \/ In z more) /\ place_of z = p) -> same_places (with_new held more) m.
Proof.
  revert held. induction more as [|q more IH]; intros held Fh Fm E; cbn [with_new].
  - split; [|exact Fh]. intros p. rewrite E. split; intros [z [Hz K]]; exists z; simpl in *; tauto.
  - inversion Fm as [|? ? Fq Fm']; subst. destruct (existsb (is_place q) held) eqn:X.
    + apply IH; auto. intros p. rewrite E. split; intros [z [Hz K]].
      * destruct Hz as [Hz | [<- | Hz]]; [exists z; auto | | exists z; auto].
        apply existsb_exists in X. destruct X as [x [Hx X]]. exists x. split; [auto|]. rewrite <- K. rewrite Forall_forall in Fh.
        specialize (Fh x Hx). destruct q as [q|], x as [x|]; simpl in X; try discriminate; [|reflexivity].
        cbn [place_of]. f_equal. symmetry. apply same_is; assumption.
      * exists z. simpl. tauto.
    + apply IH; auto. intros p. rewrite E. split; intros [z [Hz K]]; exists z; simpl in *; tauto.
Qed.
Lemma spread_same l all held m : Forall (fun a => 0 <= a) l -> same_places held m ->
  Forall sound_place (flat_map (everywhere (l, all)) held) /\
  forall p, In p (spread D (map Z.to_nat l) all m) <-> exists z, In z (flat_map (everywhere (l, all)) held) /\ place_of z = p.
Proof.
  intros Ha [S B]. rewrite Forall_forall in Ha, B.
  assert (E : forall y, In y (flat_map (everywhere (l, all)) held) <->
    exists z, In z held /\ ((exists a, In a l /\ y = leads_z a z) \/ (all = false /\ y = None))).
  { intros y. rewrite in_flat_map. split; intros [z [Hz K]]; exists z; (split; [exact Hz|]); unfold everywhere in *; cbn [fst snd] in *.
    - apply in_app_iff in K. destruct K as [K | K].
      + apply in_map_iff in K. destruct K as [a [<- Hin]]. eauto.
      + destruct all; [destruct K|]. destruct K as [<- | []]. auto.
    - apply in_app_iff. destruct K as [[a [Hin ->]] | [-> ->]]; [left; apply (in_map (fun a => leads_z a z)), Hin | right; left; reflexivity]. }
  split.
  - apply Forall_forall. intros y Hy. apply E in Hy. destruct Hy as [z [Hz [[a [Hin ->]] | [_ ->]]]]; [apply leads_z_spec; auto | exact I].
  - intros p. rewrite spread_in. split.
    + intros [q [Hq K]]. apply S in Hq. destruct Hq as [z [Hz <-]]. destruct K as [[a [Hin ->]] | [-> ->]].
      * apply in_map_iff in Hin. destruct Hin as [b [<- Hin]]. exists (leads_z b z). split; [apply E; eauto 6 | apply leads_z_spec; auto].
      * exists None. split; [apply E; eauto 6 | reflexivity].
    + intros [y [Hy <-]]. apply E in Hy. destruct Hy as [z [Hz K]]. exists (place_of z). split; [apply S; eauto|].
      destruct K as [[a [Hin ->]] | [-> ->]]; [left; exists (Z.to_nat a); split; [apply in_map, Hin | apply leads_z_spec; auto] | auto].
Qed.

Notation comes_to := (comes_to step_z [Some start]).
Notation decided := (decided step_z lets_z may_turn_out [Some start]).
(* Calls that were let through have numbers, and outcomes are of their calls. *)
Definition in_order (c : chosen * known) : Prop := Forall (fun a => 0 <= a) (fst (offer (fst c))) /\ may_turn_out (fst c) (snd c) = true.
Lemma turns_out c l all told : may_turn_out c (Partly l all told) = true -> incl l (fst (offer c)) /\ (all = false -> snd (offer c) = false).
Proof.
  cbn [may_turn_out]. rewrite andb_true_iff, forallb_forall. intros [E1 E2]. split.
  - intros a Hin. specialize (E1 a Hin). apply existsb_exists in E1. destruct E1 as [b [Hb E]]. apply Z.eqb_eq in E. congruence.
  - intros ->. cbn [orb] in E2. apply negb_true_iff in E2. exact E2.
Qed.
Lemma step_same c k l h : in_order (c, k) -> same_places l (held h) -> same_places (step_z c k l) (held ((c, outcome_of k) :: h)).
Proof.
  intros [Ha Hk] S. cbn [fst snd] in *. unfold Session.held. cbn [fold_right]. fold (held h). unfold step. cbn [fst snd].
  destruct k as [| |l0 all told|]; cbn [step_z outcome_of]; [exact S | exact S | |].
  - destruct (turns_out c l0 all told Hk) as [T _]. destruct (spread_same l0 all l (held h)) as [F E]; [|exact S|].
    + rewrite Forall_forall in *. auto.
    + apply with_new_same; [constructor | exact F|]. intros p. rewrite E. split; intros [z [Hz K]]; exists z; simpl in *; tauto.
  - destruct (spread_same (fst (offer c)) (snd (offer c)) l (held h) Ha S) as [F E].
    replace (fst (offer c), snd (offer c)) with (offer c) in F, E by (destruct (offer c); reflexivity).
    apply with_new_same; [apply S | exact F|]. intros p. rewrite in_app_iff. unfold answers, closed. rewrite E, (proj1 S p).
    split; [intros [[z [Hz K]] | [z [Hz K]]]; exists z; auto | intros [z [[Hz | Hz] K]]; [left | right]; eauto].
Qed.
Lemma same_known h : known_then chosen answers closed h h.
Proof. unfold known_then. induction h as [|c h IH]; constructor; [split; auto | exact IH]. Qed.
Lemma turned_out c k : may_turn_out c k = true -> forall x, may chosen answers closed c (outcome_of k) x -> may chosen answers closed c unknown x.
Proof.
  intros M x. destruct k as [| |l all told|], x as [|a|]; cbn [outcome_of may]; auto; try tauto.
  - intros Hin. destruct (turns_out c l all told M) as [T _]. apply in_map_iff in Hin. destruct Hin as [b [<- Hb]]. apply in_map, T, Hb.
  - destruct (turns_out c l all told M) as [_ T]. exact T.
Qed.
Lemma learned_orders h h' : learned may_turn_out h h' -> Forall in_order h ->
  Forall in_order h' /\ known_then chosen answers closed (told_of h') (told_of h).
Proof.
  induction 1 as [c k h M | c h h' _ IH]; intros Fh; inversion Fh as [|? ? F1 F2]; subst.
  - split; [constructor; [split; [apply F1 | exact M] | exact F2]|]. constructor; [|apply same_known].
    split; [reflexivity|]. right. split; [reflexivity | apply (turned_out c k M)].
  - destruct (IH F2) as [I1 I2]. split; [constructor; assumption | constructor; [split; auto | exact I2]].
Qed.
Lemma decided_passed h : decided h -> Forall in_order h /\ passed (told_of h) /\ same_places (comes_to h) (held (told_of h)).
Proof.
  assert (J : forall h, Forall in_order h -> same_places (comes_to h) (held (told_of h))).
  { clear h. induction 1 as [|[c k] h F1 _ IH].
    - split; [|constructor; [exact start_fine | constructor]]. intros p. cbn. split.
      + intros [<- | []]. exists (Some start). split; [left; reflexivity | reflexivity].
      + intros [z [[<- | []] <-]]. left. reflexivity.
    - exact (step_same c k _ _ F1 IH). }
  induction 1 as [|c h Dh [F1 [F2 F3]] L | h h' Dh [F1 [F2 F3]] L].
  - split; [constructor|]. split; [constructor | exact (J [] (Forall_nil _))].
  - unfold lets_z in L. rewrite !andb_true_iff in L. destruct L as [[[L1 _] L2] _].
    assert (F0 : Forall (fun a => 0 <= a) (fst (offer c))).
    { apply Forall_forall. intros a Hin. rewrite forallb_forall in L1. apply Z.leb_le, L1, Hin. }
    assert (F : Forall in_order ((c, Unknown) :: h)) by (constructor; [split; [exact F0 | reflexivity] | exact F1]).
    split; [exact F|]. split; [|exact (J _ F)]. cbn [told_of map fst snd outcome_of].
    apply passed_call with (told_of h); [exact F2 | apply same_known | | auto].
    intros p Hp. apply F3 in Hp. destruct Hp as [z [Hz <-]]. rewrite forallb_forall in L2. specialize (L2 z Hz).
    apply existsb_exists in L2. destruct L2 as [a [Hin G]]. exists (Z.to_nat a). split; [apply in_map, Hin|].
    destruct F3 as [_ B]. rewrite Forall_forall in B, F0. rewrite <- (proj1 (leads_z_spec a z (F0 a Hin) (B z Hz))).
    destruct (leads_z a z); [discriminate | discriminate G].
  - destruct (learned_orders h h' L F1) as [I1 I2]. split; [exact I1|]. split; [exact (known_later_passes _ _ _ _ _ _ _ F2 I2) | exact (J _ I1)].
Qed.

(* Whatever happened to the calls of unknown outcome, and whenever the others' became known: what was done leads somewhere until
   an answer leads nowhere, which is the last thing that happens; it never does where each call has one answer; a session that
   may end has led to where the automaton accepts. *)
Theorem sessions_lead events l : places_after start events = Some l -> forall xs, resolves (told_of (history [] events)) xs ->
  (led D (shows start) (trace xs) <> None \/
   exists x xs', xs = x :: xs' /\ led D (shows start) (trace xs') <> None) /\
  ((forall c, In (Called c) events -> exists a, offer c = ([a], true)) -> led D (shows start) (trace xs) <> None) /\
  (may_end l = true -> accepted D (shows start) (trace xs)).
Proof.
  unfold places_after. destruct (goes step_z lets_z may_turn_out [Some start] [] events) as [[l' s]|] eqn:E; [|discriminate].
  intros El xs Hx. injection El as ->. destruct (machine_decided _ _ _ _ _ _ _ E) as [-> Dh].
  destruct (decided_passed _ Dh) as [_ [Hp S]].
  split; [|split].
  - destruct (passed_traces_lead D (shows start) chosen answers closed _ Hp xs Hx) as [[K _] | [_ [x [xs' [-> [_ K]]]]]]; eauto.
  - intros One.
    assert (Hc : forall h c k, In (c, k) (history h events) -> In (Called c) events \/ exists k', In (c, k') h).
    { clear. induction events as [|[c0 | back k0] events IH]; intros h c k Hin; cbn [history] in Hin; [eauto| |].
      - destruct (IH _ _ _ Hin) as [K | [k' [K | K]]]; [left; right; exact K | left; left; congruence | right; eauto].
      - destruct (IH _ _ _ Hin) as [K | [k' K]]; [left; right; exact K|]. right. clear -K. revert back K.
        induction h as [|[c1 k1] h IH]; intros back K; cbn [retold] in K; [destruct K|].
        destruct (back =? 0); destruct K as [K | K]; try (injection K as -> ->; eexists; left; reflexivity).
        + eexists. right. exact K.
        + destruct (IH _ K) as [k2 K2]. eexists. right. exact K2. }
    destruct (passed_traces_lead D (shows start) chosen answers closed _ Hp xs Hx) as [[K _] | [N [x [xs' [Ex [N' _]]]]]]; [exact K|].
    exfalso. destruct (history [] events) as [|[c k] h] eqn:Eh; inversion Hx as [|? ? ? ? H1 H2 E1 E2]; subst; [discriminate|].
    destruct (Hc [] c k) as [Hin | [k' []]]; [rewrite Eh; left; reflexivity|]. destruct (One c Hin) as [a Ea].
    injection E2 as -> ->. inversion Hp as [|? ? ? h' _ Hkn Hl Hm]; subst. cbn [fst snd] in H1. apply Hm in H1.
    assert (Hh : In (arrives D (shows start) xs') (Session.held D (shows start) chosen answers closed h')).
    { apply held_are_the_resolutions. exists xs'. split; [exact (resolves_then _ _ _ _ _ _ Hkn H2) | reflexivity]. }
    destruct (Hl _ Hh) as [b [Hb Lb]]. unfold answers in Hb. rewrite Ea in Hb. destruct Hb as [<- | []].
    cbn [arrives fold_right] in N. fold (arrives D (shows start) xs') in N. destruct x as [|b|]; cbn [may Session.after] in *.
    + congruence.
    + unfold answers in H1. rewrite Ea in H1. destruct H1 as [<- | []]. congruence.
    + unfold closed in H1. rewrite Ea in H1. discriminate.
  - intros M. apply (finished_is_a_plan D C1 (shows start) chosen answers closed (told_of (history [] events))); [|exact Hx].
    intros p Hpl. apply S in Hpl. destruct Hpl as [z [Hz <-]]. unfold may_end in M. rewrite forallb_forall in M. specialize (M z Hz).
    destruct z as [q|]; [|discriminate]. destruct S as [_ B]. rewrite Forall_forall in B. exists (shows q). split; [reflexivity|].
    apply ends_is; [exact (B _ Hz) | exact M].
Qed.
End Places.
Arguments offer {P}. Arguments agrees {P}. Arguments chosen : clear implicits.

(* What a record says of the states: all of those of the places, each once, -1 for nowhere. *)
Definition says {P} (number : P -> Z) (states : list Z) (held : list (option P)) : bool :=
  let of p := match p with Some q => number q | None => -1 end in
  (fix rising before l := match l with [] => true | z :: l => (before <? z) && rising z l end) (-2) states &&
  forallb (fun z => existsb (fun p => of p =? z) held) states &&
  forallb (fun p => existsb (Z.eqb (of p)) states) held.

(* The artifact's own places: a state, and what the statements that it leaves to the run remember (Left.v). *)
Definition spot := (Z * list memory)%type.
Section Rows.
Context {str : Type}.
Definition go_row (t : Z -> option (row str)) (a q : Z) : option Z :=
  match t q with
  | None => None
  | Some r => match find (fun e => fst e =? a) (redges r) with Some e => Some (snd e) | None => None end
  end.
Definition ends_row (t : Z -> option (row str)) (q : Z) : bool := match t q with Some r => raccept r | None => false end.
Definition same_spot (p q : spot) : bool := (fst p =? fst q) && same_memories (snd p) (snd q).
Definition go_spot (t : Z -> option (row str)) (l : list statement) (a : Z) (p : spot) : option spot :=
  match go_row t a (fst p) with
  | Some q => match keep_all l (snd p) a with Some m => Some (q, m) | None => None end
  | None => None
  end.
Definition ends_spot (t : Z -> option (row str)) (l : list statement) (p : spot) : bool := ends_row t (fst p) && all_stop l (snd p).
Definition session_places (rows : list (row str)) (l : list statement) (events : list (event (chosen spot))) : option (list (option spot)) :=
  places_after same_spot (go_spot (table rows) l) (len rows 0 - 1, map at_first l) events.
Definition session_may_end (rows : list (row str)) (l : list statement) (held : list (option spot)) : bool :=
  may_end (ends_spot (table rows) l) held.

(* Two tools, by their calls: from every state a call of the one and then one of the other leads where they lead the other way
   round.  There are paths of them, and not too many to look at (overlap.py). *)
Definition leads_to (t : Z -> option (row str)) (q a b to : Z) : bool :=
  match go_row t a q with Some m => match go_row t b m with Some r => r =? to | None => false end | None => false end.
Fixpoint turned (t : Z -> option (row str)) (one other : Z -> bool) (q : Z) (l : list (row str)) : bool :=
  match l with
  | [] => true
  | r :: l =>
      forallb (fun e => negb (one (fst e)) || match t (snd e) with
        | None => false
        | Some m => forallb (fun f => negb (other (fst f)) || leads_to t q (fst f) (fst e) (snd f)) (redges m)
        end) (redges r) && turned t one other (q + 1) l
  end.
Definition follows (t : Z -> option (row str)) (one other : Z -> bool) (l : list (row str)) : bool :=
  existsb (fun r => existsb (fun e => one (fst e) && match t (snd e) with
    | Some m => existsb (fun f => other (fst f)) (redges m) | None => false end) (redges r)) l.
Definition commute (rows : list (row str)) (one other : Z -> bool) : bool :=
  let t := table rows in
  turned t one other 0 rows && turned t other one 0 rows && (follows t one other rows || follows t other one rows).
(* Edges, and paths of two of which the first is of a parallel tool. *)
Definition paths (rows : list (row str)) (parallel : Z -> bool) : Z :=
  let t := table rows in
  fold_left (fun n r => fold_left (fun n e => if parallel (fst e)
    then n + 1 + match t (snd e) with Some m => len (redges m) 0 | None => 0 end else n) (redges r) (n + len (redges r) 0)) rows 0.
End Rows.

Section Sound.
Context {str : Type} (o : strings str) (H : bytes -> bytes).
Hypothesis strings_mean : mean o H.
Variables (F : Z) (how : counting).
Variable lines : list (line str).
Variable rows : list (row str).
Hypothesis ok : states_ok o F how lines rows = true.
Hypothesis deterministic : many how = false.
Let D := columns o H strings_mean F how lines rows ok.
Let t := table rows.
Let within (q : Z) := 0 <= q < Z.of_nat (length rows).

Lemma rows_table z : t z = if z <? 0 then None else nth_error rows (Z.to_nat z).
Proof. reflexivity. Qed.
Lemma go_row_is a p : 0 <= a -> within p ->
  follow D (Z.to_nat p) (Z.to_nat a) = match go_row t a p with Some q => Some (Z.to_nat q) | None => None end /\
  match go_row t a p with Some q => within q | None => True end.
Proof.
  intros Ha Hp. unfold within in *. unfold go_row. rewrite rows_table.
  replace (p <? 0) with false by (symmetry; apply Z.ltb_ge; lia).
  rewrite (row_inside o rows (Z.to_nat p)) by lia.
  assert (B := s_bounds o F how lines rows _ (all_seen o H strings_mean F how lines rows ok (Z.to_nat p))).
  unfold follow. cbn [D edges columns]. rewrite laid_same in * by exact deterministic. revert B.
  induction (redges (row_of o rows (Z.to_nat p))) as [|e l IH]; intros B; cbn [find map]; [split; [reflexivity | exact I]|].
  inversion B as [|? ? Be Bl]; subst. unfold edge_of at 1. cbn [fst snd].
  replace (Nat.eqb (Z.to_nat (fst e)) (Z.to_nat a)) with (fst e =? a).
  2:{ destruct (Z.eqb_spec (fst e) a) as [-> | N]; symmetry; [apply Nat.eqb_refl | apply Nat.eqb_neq; lia]. }
  destruct (fst e =? a); [|exact (IH Bl)]. split; [reflexivity | lia].
Qed.
Lemma edge_go p r e : t p = Some r -> In e (redges r) -> go_row t (fst e) p = Some (snd e).
Proof.
  intros T Hin. unfold go_row. rewrite T. assert (B := C1_holds o H strings_mean F how lines rows ok deterministic (Z.to_nat p)).
  rewrite rows_table in T. destruct (Z.ltb_spec p 0) as [N | N]; [discriminate|].
  assert (R : row_of o rows (Z.to_nat p) = r).
  { assert (L : (Z.to_nat p < length rows)%nat) by (apply nth_error_Some; congruence). rewrite (row_inside o rows _ L) in T. congruence. }
  cbn [edges columns] in B. rewrite laid_same in B by exact deterministic. rewrite R in B. assert (S := s_bounds o F how lines rows _ (all_seen o H strings_mean F how lines rows ok (Z.to_nat p))).
  rewrite laid_same in S by exact deterministic. rewrite R in S. clear T R. induction (redges r) as [|x l IH]; [destruct Hin|]. cbn [find map] in *. inversion B as [|? ? B1 B2]; subst.
  inversion S as [|? ? S1 S2]; subst. destruct (Z.eqb_spec (fst x) (fst e)) as [E | E].
  - destruct Hin as [<- | Hin]; [reflexivity|]. exfalso. apply B1. apply in_map_iff. exists (edge_of e).
    split; [unfold edge_of; cbn [fst]; rewrite E; reflexivity | apply in_map, Hin].
  - destruct Hin as [-> | Hin]; [congruence | exact (IH Hin B2 S2)].
Qed.
Lemma start_within : within (len rows 0 - 1).
Proof.
  assert (R := proj1 (proj2 (proj2 (proj2 (proj2 (parts_ok o F how lines rows ok)))))). unfold within. rewrite len_is.
  assert (0 < length rows)%nat by (destruct rows; [congruence | simpl; lia]). lia.
Qed.
Lemma ends_row_is p : within p -> ends_row t p = true -> accept D (Z.to_nat p) = true.
Proof.
  intros Hp E. unfold within in Hp. unfold ends_row in E. rewrite rows_table in E.
  replace (p <? 0) with false in E by (symmetry; apply Z.ltb_ge; lia).
  rewrite (row_inside o rows (Z.to_nat p)) in E by lia. exact E.
Qed.
Lemma start_shows : Z.to_nat (len rows 0 - 1) = root rows.
Proof. unfold root. rewrite len_is. lia. Qed.

(* Calls that may be under way together: their effects come to the same in either order. *)
Lemma turned_leads one other q a b m r : turned t one other 0 rows = true -> one a = true -> other b = true ->
  0 <= a -> 0 <= b -> within q -> go_row t a q = Some m -> go_row t b m = Some r -> leads_to t q b a r = true.
Proof.
  intros T Oa Ob Ha Hb Hq G1 G2.
  assert (K : forall l k, turned t one other k l = true -> forall i x, nth_error l i = Some x ->
    forall e, In e (redges x) -> one (fst e) = true -> exists y, t (snd e) = Some y /\
    forall f, In f (redges y) -> other (fst f) = true -> leads_to t (k + Z.of_nat i) (fst f) (fst e) (snd f) = true).
  { clear. induction l as [|x l IH]; intros k T [|i] y Hy e He Oe; simpl in Hy; try discriminate; cbn [turned] in T; apply andb_prop in T;
      destruct T as [T1 T2].
    - injection Hy as ->. rewrite forallb_forall in T1. specialize (T1 e He). rewrite Oe in T1. cbn [negb orb] in T1.
      destruct (t (snd e)) as [z|]; [|discriminate]. exists z. split; [reflexivity|]. intros f Hf Of. rewrite forallb_forall in T1.
      specialize (T1 f Hf). rewrite Of in T1. cbn [negb orb] in T1. replace (k + Z.of_nat 0) with k by lia. exact T1.
    - destruct (IH _ T2 i y Hy e He Oe) as [z [Ez Hz]]. exists z. split; [exact Ez|]. intros f Hf Of.
      replace (k + Z.of_nat (S i)) with (k + 1 + Z.of_nat i) by lia. exact (Hz f Hf Of). }
  unfold within in Hq. unfold go_row in G1, G2. rewrite rows_table in G1. replace (q <? 0) with false in G1 by (symmetry; apply Z.ltb_ge; lia).
  destruct (nth_error rows (Z.to_nat q)) as [x|] eqn:Ex; [|discriminate].
  destruct (find (fun e => fst e =? a) (redges x)) as [e|] eqn:Fe; [|discriminate]. injection G1 as <-.
  apply find_some in Fe. destruct Fe as [He Ea]. apply Z.eqb_eq in Ea.
  destruct (K rows 0 T _ _ Ex e He) as [y [Ey Hy]]; [congruence|]. rewrite Ey in G2.
  destruct (find (fun e => fst e =? b) (redges y)) as [f|] eqn:Ff; [|discriminate]. injection G2 as <-.
  apply find_some in Ff. destruct Ff as [Hf Eb]. apply Z.eqb_eq in Eb. specialize (Hy f Hf).
  replace (0 + Z.of_nat (Z.to_nat q)) with q in Hy by lia. rewrite <- Ea, <- Eb. apply Hy. congruence.
Qed.
Theorem effects_in_either_order one other a b : commute rows one other = true -> one a = true -> other b = true -> 0 <= a -> 0 <= b ->
  forall q, within q -> forall P, accepted D (Z.to_nat q) (Z.to_nat a :: Z.to_nat b :: P) <-> accepted D (Z.to_nat q) (Z.to_nat b :: Z.to_nat a :: P).
Proof.
  unfold commute. cbv zeta. fold t. rewrite !andb_true_iff. intros [[T1 T2] _] Oa Ob Ha Hb q Hq P.
  assert (K : forall one other a b, turned t one other 0 rows = true -> one a = true -> other b = true -> 0 <= a -> 0 <= b ->
    accepted D (Z.to_nat q) (Z.to_nat a :: Z.to_nat b :: P) -> accepted D (Z.to_nat q) (Z.to_nat b :: Z.to_nat a :: P)).
  { clear - Hq deterministic. intros one other a b T Oa Ob Ha Hb. cbn [accepted].
    assert (C1 := C1_holds o H strings_mean F how lines rows ok deterministic).
    intros [m [Em [r [Er Hr]]]]. apply (follow_edge D C1) in Em. apply (follow_edge D C1) in Er.
    destruct (go_row_is a q Ha Hq) as [E1 W1]. rewrite Em in E1. destruct (go_row t a q) as [m'|] eqn:G1; [|discriminate].
    injection E1 as ->. destruct (go_row_is b m' Hb W1) as [E2 W2]. rewrite Er in E2. destruct (go_row t b m') as [r'|] eqn:G2; [|discriminate].
    injection E2 as ->. assert (L := turned_leads _ _ _ _ _ _ _ T Oa Ob Ha Hb Hq G1 G2). unfold leads_to in L.
    destruct (go_row_is b q Hb Hq) as [E3 W3]. destruct (go_row t b q) as [n|]; [|discriminate].
    destruct (go_row_is a n Ha W3) as [E4 W4]. destruct (go_row t a n) as [r2|]; [|discriminate]. apply Z.eqb_eq in L. subst r2.
    exists (Z.to_nat n). split; [apply (follow_edge D C1), E3|]. exists (Z.to_nat r'). split; [apply (follow_edge D C1), E4 | exact Hr]. }
  split; [exact (K _ _ _ _ T1 Oa Ob Ha Hb) | exact (K _ _ _ _ T2 Ob Oa Hb Ha)].
Qed.

(* Statements that are left to the run. *)
Variable l : list statement.
Hypothesis all_fair : Forall fair l.
Let D' := beside D l.
Let shows (p : spot) : state D' := (Z.to_nat (fst p), snd p).
Let fine (p : spot) := within (fst p).
Notation numbers := (map Z.of_nat).

Lemma follow_beside q m a : follow D' (q, m) a = match follow D q a with Some r => match see l m a with Some k => Some (r, k) | None => None end | None => None end.
Proof.
  assert (C1 := C1_holds o H strings_mean F how lines rows ok deterministic).
  assert (C1' := enforced_distinct D C1 (list memory) (see l) (all_stop l)).
  destruct (follow D q a) as [r|] eqn:E.
  - apply (follow_edge D C1) in E. destruct (see l m a) as [k|] eqn:Es.
    + apply (follow_edge D' C1'). cbn [D' edges beside enforced fst snd]. apply in_some. exists (a, r). split; [exact E|].
      unfold entry. cbn [fst snd]. rewrite Es. reflexivity.
    + destruct (follow D' (q, m) a) as [[r' k]|] eqn:X; [|reflexivity]. exfalso. apply (follow_edge D' C1') in X.
      cbn [D' edges beside enforced fst snd] in X. apply in_some in X. destruct X as [[b r0] [_ Ee]]. unfold entry in Ee. cbn [fst snd] in Ee.
      destruct (see l m b) eqn:Eb; [|discriminate]. injection Ee as -> _ _. congruence.
  - destruct (follow D' (q, m) a) as [[r' k]|] eqn:X; [|reflexivity]. exfalso. apply (follow_edge D' C1') in X.
    cbn [D' edges beside enforced fst snd] in X. apply in_some in X. destruct X as [[b r0] [Hin Ee]]. unfold entry in Ee. cbn [fst snd] in Ee.
    destruct (see l m b); [|discriminate]. injection Ee as -> _ _. apply (follow_edge D C1) in Hin. congruence.
Qed.

(* Whatever happened to the calls of unknown outcome: what was done is a prefix of a plan, and breaks none of the statements, until an
   answer leads nowhere, which is the last thing that happens; it never does where each call has one answer; it is a plan that
   meets every statement, where the session may end. *)
Definition goes_on (w : list call) : Prop := (exists P, accepted D (root rows) (w ++ P)) /\ Forall (fun s => unbroken s (numbers w)) l.
Theorem conforms_sound events held_ : session_places rows l events = Some held_ ->
  forall xs, resolves (chosen spot) answers closed (told_of (history [] events)) xs ->
  (goes_on (trace xs) \/ exists x xs', xs = x :: xs' /\ goes_on (trace xs')) /\
  ((forall c, In (Called c) events -> exists a, offer c = ([a], true)) -> goes_on (trace xs)) /\
  (session_may_end rows l held_ = true -> accepted D (root rows) (trace xs) /\ Forall (fun s => meets s (numbers (trace xs))) l).
Proof.
  intros E xs Hx.
  assert (C1 := C1_holds o H strings_mean F how lines rows ok deterministic). assert (A := alive_holds o H strings_mean F how lines rows ok).
  assert (C1' := enforced_distinct D C1 (list memory) (see l) (all_stop l)).
  assert (On : forall w, led D' (root rows, map at_first l) w <> None -> goes_on w).
  { intros w K. destruct (calls_that_break_none D C1 l all_fair (root rows) w K) as [K1 K2]. split; [apply (led_is_a_prefix D C1 A), K1 | exact K2]. }
  assert (Sh : shows (len rows 0 - 1, map at_first l) = (root rows, map at_first l)) by (unfold shows; cbn [fst snd]; rewrite start_shows; reflexivity).
  destruct (sessions_lead same_spot (go_spot t l) (ends_spot t l) D' C1' fine shows (len rows 0 - 1, map at_first l)) with (events := events) (l := held_) (xs := xs)
    as [S1 [S2 S3]]; auto.
  - intros p q _ _ Epq. unfold same_spot in Epq. apply andb_prop in Epq. destruct Epq as [E1 E2]. apply Z.eqb_eq in E1.
    apply same_memories_are in E2. unfold shows. congruence.
  - intros a p Ha Hp. destruct (go_row_is a (fst p) Ha Hp) as [E1 E2]. unfold shows at 1. rewrite follow_beside, E1.
    unfold go_spot, see. rewrite Z2Nat.id by exact Ha. destruct (go_row t a (fst p)) as [q|]; [|split; [reflexivity | exact I]].
    destruct (keep_all l (snd p) a) as [m|]; (split; [reflexivity|]); [exact E2 | exact I].
  - intros p Hp Ep. unfold ends_spot in Ep. apply andb_prop in Ep. destruct Ep as [E1 E2]. cbn [D' accept beside enforced shows fst snd].
    rewrite E2, andb_true_r. exact (ends_row_is (fst p) Hp E1).
  - exact start_within.
  - rewrite Sh in S1, S2, S3. split; [|split].
    + destruct S1 as [S1 | [x [xs' [-> S1]]]]; [left; apply On, S1 | right]. exists x, xs'. split; [reflexivity | apply On, S1].
    + intros One. apply On, S2, One.
    + intros M. apply (plans_that_meet_all D l all_fair), S3, M.
Qed.

(* And beside the statements: calls that commute, and that no statement orders, come to the same wherever they stand in a plan. *)
Theorem plans_in_either_order one other a b : commute rows one other = true -> one a = true -> other b = true -> 0 <= a -> 0 <= b ->
  forallb (unordered a b) l = true -> forall w P, let plan x y := w ++ Z.to_nat x :: Z.to_nat y :: P in
  accepted D (root rows) (plan a b) /\ Forall (fun s => meets s (numbers (plan a b))) l <->
  accepted D (root rows) (plan b a) /\ Forall (fun s => meets s (numbers (plan b a))) l.
Proof.
  intros C Oa Ob Ha Hb U w P plan. unfold plan. rewrite (met_in_either_order l all_fair (Z.to_nat a) (Z.to_nat b)).
  2:{ rewrite !Z2Nat.id by assumption. exact U. }
  enough (K : accepted D (root rows) (w ++ Z.to_nat a :: Z.to_nat b :: P) <-> accepted D (root rows) (w ++ Z.to_nat b :: Z.to_nat a :: P)) by tauto.
  assert (C1 := C1_holds o H strings_mean F how lines rows ok deterministic).
  assert (W : forall w q p, within (Z.of_nat q) -> led D q w = Some p -> within (Z.of_nat p)).
  { clear w P plan. induction w as [|x w IH]; intros q p Hq E; cbn [led] in E; [congruence|].
    destruct (follow D q x) as [r|] eqn:Ef; [|discriminate]. apply (IH r p); [|exact E].
    destruct (go_row_is (Z.of_nat x) (Z.of_nat q) ltac:(lia) Hq) as [E1 E2]. rewrite !Nat2Z.id, Ef in E1.
    destruct (go_row t (Z.of_nat x) (Z.of_nat q)) as [r'|]; [|discriminate]. injection E1 as ->. rewrite Z2Nat.id by (unfold within in E2; lia). exact E2. }
  assert (R0 : within (Z.of_nat (root rows))) by (rewrite <- start_shows, Z2Nat.id; [exact start_within | assert (S := start_within); unfold within in S; lia]).
  destruct (led D (root rows) w) as [p|] eqn:E.
  - rewrite <- !(residual_language D C1 w (root rows) p _ E). rewrite <- (Nat2Z.id p).
    exact (effects_in_either_order one other a b C Oa Ob Ha Hb (Z.of_nat p) (W _ _ _ R0 E) P).
  - split; intros X; destruct (led_of_a_plan D C1 _ _ _ X) as [p Ep]; congruence.
Qed.
End Sound.
