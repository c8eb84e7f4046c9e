(* Exact questions: what the asking side forgets lets more sessions through.
   docs/spec/proof.md, section 1: one key at a time.

   A proof may leave out monitors, sums and keys of the left side: what is let through then is all that was,
   and more.  Of the right side nothing may be left out: a call breaks a monitor at some key, so each key is
   asked about, and of that key everything is remembered. *)

From Coq Require Import List Bool ZArith Lia.
From Tcc Require Import Monitors Renaming.
Import ListNotations.
Local Open Scope Z_scope.

Section Relaxed.
Variables A V : Type.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Variable atom : V -> A.
Notation key := (key V).
Notation lets := (lets V V_dec).
Notation after := (after V V_dec).
Notation is_key := (is key (key_dec V V_dec)).

Definition only (keep : key -> bool) (o : option key) : option key :=
  match o with Some k => if keep k then Some k else None | None => None end.

Lemma read_only keep a c : read keep a c = only keep (read all_keys a c).
Proof. unfold read, only, all_keys. destruct (a (base c)) as [parts|]; reflexivity. Qed.

Lemma sees_only keep r c : fst (sees keep r c) = only keep (fst (sees all_keys r c)) /\
  snd (sees keep r c) = only keep (snd (sees all_keys r c)).
Proof. destruct r as [m a b | most b]; cbn [sees fst snd]; rewrite ?(read_only keep); auto. Qed.

Lemma is_only keep k o : keep k = true -> is_key k (only keep o) = is_key k o.
Proof.
  intros K. destruct o as [j|]; [|reflexivity]. unfold only. destruct (keep j) eqn:E; [reflexivity|].
  symmetry. apply is_false. intros F. injection F as ->. congruence.
Qed.

(* Memories that say the same of the keys that are kept. *)
Definition agree (keep : key -> bool) (x y : memory V) : Prop := forall k, keep k = true ->
  one x k = one y k /\ two x k = two y k /\ uses x k = uses y k.

Lemma agree_after keep r c x y : agree keep x y ->
  agree keep (after r x (sees all_keys r c)) (after r y (sees keep r c)).
Proof.
  intros H k K. destruct (H k K) as [H1 [H2 H3]]. destruct (sees_only keep r c) as [E1 E2].
  destruct r as [m a b | most b]; cbn [Renaming.after one two uses];
    unfold first, second; rewrite E1 || idtac; rewrite E2, !is_only by exact K; rewrite ?H1, ?H2, ?H3; auto.
Qed.

Lemma agree_lets keep r c x y : agree keep x y ->
  lets r x (sees all_keys r c) = true -> lets r y (sees keep r c) = true.
Proof.
  intros H. destruct (sees_only keep r c) as [E1 E2].
  set (s := sees all_keys r c) in *. set (s' := sees keep r c) in *. clearbody s s'.
  assert (P2 : forall f g : key -> bool, (forall k, keep k = true -> f k = g k) ->
    match snd s with Some k => f k | None => true end = true ->
    match snd s' with Some k => g k | None => true end = true).
  { intros f g F. rewrite E2. destruct (snd s) as [k|]; [|auto]. cbn [only].
    destruct (keep k) eqn:K; [rewrite F by exact K; auto | auto]. }
  destruct r as [m a b | most b]; cbn [Renaming.lets]; [|apply P2; intros k K; destruct (H k K) as [_ [_ ->]]; reflexivity].
  destruct m; cbn [orders].
  - apply P2. intros k K. apply H, K.
  - apply P2. intros k K. apply H, K.
  - apply P2. intros k K. f_equal. apply H, K.
  - rewrite !andb_true_iff. intros [H1 H2]. split; [|revert H2; apply P2; intros k K; f_equal; apply H, K].
    rewrite E1. destruct (fst s) as [k|]; [|reflexivity]. cbn [only]. destruct (keep k) eqn:K; [|reflexivity].
    rewrite E2, is_only by exact K. destruct (H k K) as [_ [<- _]]. exact H1.
Qed.

(* Of keys that are not kept nothing is asked. *)
Lemma lets_agree keep r c x y : agree keep x y -> lets r x (sees keep r c) = lets r y (sees keep r c).
Proof.
  intros H. assert (Rd : forall a, match read keep a c with Some k => keep k = true | None => True end).
  { intros a. unfold read. destruct (a (base c)) as [parts|]; [|exact I]. cbn zeta.
    destruct (keep (map (part_of c) parts)) eqn:E; [exact E | exact I]. }
  destruct r as [m a b | most b]; cbn [sees Renaming.lets fst snd].
  - assert (Ra := Rd a). assert (Rb := Rd b). destruct m; cbn [orders fst snd].
    + destruct (read keep b c) as [k|]; [apply (H k Rb) | reflexivity].
    + destruct (read keep b c) as [k|]; [apply (H k Rb) | reflexivity].
    + destruct (read keep b c) as [k|]; [f_equal; apply (H k Rb) | reflexivity].
    + f_equal; [destruct (read keep a c) as [k|]; [do 2 f_equal; apply (H k Ra) | reflexivity]|].
      destruct (read keep b c) as [k|]; [f_equal; apply (H k Rb) | reflexivity].
  - assert (Rb := Rd b). destruct (read keep b c) as [k|]; [|reflexivity]. destruct (H k Rb) as [_ [_ ->]]. reflexivity.
Qed.

(* A side without its sums. *)
Definition without_sums (S : side A) : side A :=
  {| place := place S; start := start S; step := step S; ends := ends S; fine := fun _ _ _ => True;
     rules := rules S; cap := fun _ => None |}.

(* Every session of a side is one of that side without its sums, without some of its monitors, and without
   what the others remember of some keys; what it remembers of those that are kept is the same. *)
Theorem forgetting_admits_more S used keep l g : session A V V_dec atom S every all_keys l g ->
  exists h, session A V V_dec atom (without_sums S) used keep l h /\ at_ h = at_ g /\
    forall i, agree keep (mem g i) (mem h i).
Proof.
  induction 1 as [|l g c p Hs [h [Hh [E M]]] [H1 [H2 [H3 H4]]]].
  - exists (begin A V (without_sums S)). split; [constructor|]. split; [reflexivity|]. intros i k _. auto.
  - exists (next A V V_dec (without_sums S) keep h c p). split.
    + constructor; [exact Hh|]. split; [cbn [step without_sums]; rewrite E; exact H1|]. split; [exact I|]. split.
      * intros i _. apply (agree_lets keep _ c _ _ (M i)), H3. reflexivity.
      * intros j. exact I.
    + split; [reflexivity|]. intros i. cbn [mem next]. apply agree_after, M.
Qed.

(* The other way round it is enough that sums and monitors are kept: nothing is refused without a reason. *)
Theorem what_none_breaks_is_proved S used keep (bad : list (call V) -> Prop) :
  (forall l h, session A V V_dec atom (without_sums S) used keep l h -> ~ bad l) ->
  forall l g, session A V V_dec atom S every all_keys l g -> ~ bad l.
Proof.
  intros H l g Hs. destruct (forgetting_admits_more S used keep l g Hs) as [h [Hh _]]. exact (H l h Hh).
Qed.

(* What a rule remembers of a session, of the keys that are kept. *)
Definition remembers keep r (l : list (call V)) : memory V :=
  fold_right (fun c x => after r x (sees keep r c)) nothing l.

Lemma remembers_agree keep r l : agree keep (remembers all_keys r l) (remembers keep r l).
Proof.
  induction l as [|c l IH]; [intros k _; auto|]. cbn [remembers fold_right]. apply agree_after, IH.
Qed.

(* A call that breaks a rule breaks it at one of its keys, so a rule holds where it does for each key, with
   what is remembered of that key at least. *)
Theorem a_rule_is_broken_at_one_key r l c :
  lets r (remembers all_keys r l) (sees all_keys r c) = true <->
  forall k, exists keep, keep k = true /\ lets r (remembers keep r l) (sees keep r c) = true.
Proof.
  split.
  - intros H k. exists all_keys. auto.
  - intros H.
    assert (P : forall k, exists keep x, keep k = true /\ agree keep (remembers all_keys r l) x /\
      lets r x (sees keep r c) = true).
    { intros k. destruct (H k) as [keep [K L]]. exists keep, (remembers keep r l).
      split; [exact K|]. split; [apply remembers_agree | exact L]. }
    clear H. set (x := remembers all_keys r l) in *. clearbody x.
    assert (P2 : forall (f : memory V -> key -> bool),
      (forall k y keep, keep k = true -> agree keep x y -> f x k = f y k) ->
      (forall y keep, lets r y (sees keep r c) = true ->
        match snd (sees keep r c) with Some k => f y k | None => true end = true) ->
      match snd (sees all_keys r c) with Some k => f x k | None => true end = true).
    { intros f F L. destruct (snd (sees all_keys r c)) as [k|] eqn:E; [|reflexivity].
      destruct (P k) as [keep [y [K [Ag Le]]]]. rewrite (F k y keep K Ag). specialize (L y keep Le).
      destruct (sees_only keep r c) as [_ E2]. rewrite E in E2. cbn [only] in E2. rewrite K in E2.
      rewrite E2 in L. exact L. }
    destruct r as [m a b | most b]; cbn [Renaming.lets] in *.
    2:{ apply (P2 (fun y k => uses y k + 1 <=? most)); [|auto].
        intros k y keep K Ag. destruct (Ag k K) as [_ [_ ->]]. reflexivity. }
    destruct m; cbn [orders] in *.
    + apply (P2 (fun y k => one y k)); [intros k y keep K Ag; apply Ag, K | auto].
    + apply (P2 (fun y k => one y k)); [intros k y keep K Ag; apply Ag, K | auto].
    + apply (P2 (fun y k => negb (one y k))); [intros k y keep K Ag; f_equal; apply Ag, K | auto].
    + apply andb_true_iff. split.
      2:{ apply (P2 (fun y k => negb (one y k))); [intros k y keep K Ag; f_equal; apply Ag, K|].
          intros y keep L. apply andb_true_iff in L. apply L. }
      destruct (fst (sees all_keys (Order forbid_with a b) c)) as [k|] eqn:E; [|reflexivity].
      destruct (P k) as [keep [y [K [Ag L]]]]. apply andb_true_iff in L. destruct L as [L _].
      destruct (sees_only keep (Order forbid_with a b) c) as [E1 E2]. rewrite E in E1. cbn [only] in E1. rewrite K in E1.
      rewrite E1, E2, is_only in L by exact K. destruct (Ag k K) as [_ [-> _]]. exact L.
Qed.

(* And the right side may not forget: here a session breaks a rule, and nothing is refused without its key. *)
Theorem the_asked_key_may_not_be_forgotten : V ->
  exists r l c, lets r (remembers all_keys r l) (sees all_keys r c) = false /\
    lets r (remembers (fun _ => false) r l) (sees (fun _ => false) r c) = true.
Proof.
  intros v. set (c := {| base := 0; given := [Some v]; adds := fun _ => 0 |}).
  set (a := fun _ : nat => Some [Field 0]).
  exists (Order forbid_before a a), [c], c. split; [|reflexivity].
  assert (E : sees all_keys (Order forbid_before a a) c = (Some [Value v], Some [Value v])) by reflexivity.
  cbn [remembers fold_right Renaming.lets orders]. rewrite E. cbn [snd Renaming.after one first fst].
  unfold is. destruct (key_dec V V_dec [Value v] [Value v]); [reflexivity | congruence].
Qed.
End Relaxed.
