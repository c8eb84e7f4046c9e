(* Monitors: one memory, the worst, is as good as all worlds.
   docs/spec/core.md, section 5; docs/spec/session.md, section 5.

   Where outcomes are unknown a session may be in several worlds: a call was done or not, and answered so
   or so.  A monitor has one memory all the same, of a number for each key.  It allows a call exactly
   where every world does. *)

From Coq Require Import List Arith Bool ZArith Lia.
Import ListNotations.

Section Keys.
(* Of keys nothing matters but whether two are equal. *)
Variable key : Type.
Variable key_eq_dec : forall j k : key, {j = k} + {j <> k}.

(* A call that was done, as a monitor sees it: its key as one of P, its key as one of Q. *)
Definition seen := (option key * option key)%type.

Inductive kind := require_before | require_each | forbid_before | forbid_with.

(* Core.md, section 5: whether a call may follow others, the last one first. *)
Definition allowed (m : kind) (t : list seen) (c : seen) : Prop :=
  match m with
  | require_before => forall k, snd c = Some k -> exists s, In s t /\ fst s = Some k
  | require_each => forall k, snd c = Some k -> exists t1 s t2, t = t1 ++ s :: t2 /\ fst s = Some k /\
      forall s', In s' (t1 ++ [s]) -> snd s' <> Some k
  | forbid_before => forall k, snd c = Some k -> forall s, In s t -> fst s <> Some k
  | forbid_with =>
      (forall k, fst c = Some k -> snd c <> Some k /\ forall s, In s t -> snd s <> Some k) /\
      (forall k, snd c = Some k -> forall s, In s t -> fst s <> Some k)
  end.
Fixpoint meets (m : kind) (t : list seen) : Prop :=
  match t with [] => True | c :: t => allowed m t c /\ meets m t end.

Definition is (k : key) (x : option key) : bool := match x with Some j => if key_eq_dec j k then true else false | None => false end.

Lemma is_true k x : is k x = true <-> x = Some k.
Proof.
  destruct x as [j|]; simpl; [|split; discriminate]. destruct (key_eq_dec j k) as [-> | E].
  - split; reflexivity.
  - split; [discriminate | intros F; injection F; congruence].
Qed.

Lemma is_false k x : is k x = false <-> x <> Some k.
Proof. rewrite <- is_true. destruct (is k x); split; congruence. Qed.

(* What one done call makes of the number of a key; `first` and `second` are numbers of their own. *)
Definition first (m : kind) (k : key) (s : seen) (x : bool) : bool :=
  match m with
  | require_each => if is k (snd s) then false else if is k (fst s) then true else x
  | _ => if is k (fst s) then true else x
  end.
Definition second (k : key) (s : seen) (x : bool) : bool := if is k (snd s) then true else x.

(* monitors.py, `_orders`. *)
Definition orders (m : kind) (one two : key -> bool) (c : seen) : bool :=
  match m with
  | require_before | require_each => match snd c with Some k => one k | None => true end
  | forbid_before => match snd c with Some k => negb (one k) | None => true end
  | forbid_with =>
      match fst c with Some k => negb (is k (snd c)) && negb (two k) | None => true end &&
      match snd c with Some k => negb (one k) | None => true end
  end.

Definition firsts m k (t : list seen) := fold_right (first m k) false t.
Definition seconds k (t : list seen) := fold_right (second k) false t.

Lemma firsts_spec m k t : m <> require_each -> (firsts m k t = true <-> exists s, In s t /\ fst s = Some k).
Proof.
  intros Hm. induction t as [|s t IH]; simpl.
  - split; [discriminate | intros [s [[] _]]].
  - assert (E : first m k s (firsts m k t) = if is k (fst s) then true else firsts m k t)
      by (destruct m; congruence || reflexivity). fold (firsts m k t). rewrite E.
    destruct (is k (fst s)) eqn:Ek.
    + apply is_true in Ek. split; [exists s; auto | reflexivity].
    + rewrite IH. apply is_false in Ek. split.
      * intros [s' [H H']]. exists s'. auto.
      * intros [s' [[<- | H] H']]; [congruence | exists s'; auto].
Qed.

Lemma seconds_spec k t : seconds k t = true <-> exists s, In s t /\ snd s = Some k.
Proof.
  induction t as [|s t IH]; simpl.
  - split; [discriminate | intros [s [[] _]]].
  - fold (seconds k t). unfold second. destruct (is k (snd s)) eqn:Ek.
    + apply is_true in Ek. split; [exists s; auto | reflexivity].
    + rewrite IH. apply is_false in Ek. split.
      * intros [s' [H H']]. exists s'. auto.
      * intros [s' [[<- | H] H']]; [congruence | exists s'; auto].
Qed.

Lemma each_spec k t : firsts require_each k t = true <->
  exists t1 s t2, t = t1 ++ s :: t2 /\ fst s = Some k /\ forall s', In s' (t1 ++ [s]) -> snd s' <> Some k.
Proof.
  induction t as [|s t IH]; simpl.
  - split; [discriminate|]. intros [t1 [s [t2 [E _]]]]. destruct t1; discriminate.
  - fold (firsts require_each k t). destruct (is k (snd s)) eqn:E2; [|destruct (is k (fst s)) eqn:E1].
    + apply is_true in E2. split; [discriminate|]. intros [t1 [s' [t2 [E [_ H]]]]].
      exfalso. apply (H s); [|exact E2]. destruct t1; injection E as <- _; simpl; auto.
    + apply is_true in E1. apply is_false in E2. split; [|reflexivity]. intros _. exists [], s, t.
      split; [reflexivity|]. split; [exact E1|]. intros s' [<- | []]. exact E2.
    + apply is_false in E1, E2. rewrite IH. split.
      * intros [t1 [s' [t2 [-> [H1 H2]]]]]. exists (s :: t1), s', t2. split; [reflexivity|]. split; [exact H1|].
        intros x [<- | Hx]; auto.
      * intros [t1 [s' [t2 [E [H1 H2]]]]]. destruct t1 as [|x t1]; injection E as -> ->; [congruence|].
        exists t1, s', t2. split; [reflexivity|]. split; [exact H1|]. intros y Hy. apply H2. right. exact Hy.
Qed.

(* Where all outcomes are known, the memory says what the definition says. *)
Theorem memory_is_the_definition m t c :
  orders m (fun k => firsts m k t) (fun k => seconds k t) c = true <-> allowed m t c.
Proof.
  assert (no : forall k, m <> require_each -> (negb (firsts m k t) = true <-> forall s, In s t -> fst s <> Some k)).
  { intros k Hm. assert (E := firsts_spec m k t Hm). destruct (firsts m k t); simpl.
    - split; [discriminate|]. intros H. destruct (proj1 E eq_refl) as [s [H1 H2]]. destruct (H s H1 H2).
    - split; [|reflexivity]. intros _ s H1 H2. enough (false = true) by discriminate. apply E. eauto. }
  assert (no2 : forall k, negb (seconds k t) = true <-> forall s, In s t -> snd s <> Some k).
  { intros k. assert (E := seconds_spec k t). destruct (seconds k t); simpl.
    - split; [discriminate|]. intros H. destruct (proj1 E eq_refl) as [s [H1 H2]]. destruct (H s H1 H2).
    - split; [|reflexivity]. intros _ s H1 H2. enough (false = true) by discriminate. apply E. eauto. }
  assert (opt : forall (f : key -> bool) (P : key -> Prop) (x : option key),
    (forall k, f k = true <-> P k) ->
    (match x with Some k => f k | None => true end = true <-> forall k, x = Some k -> P k)).
  { intros f P [k|] H; [|split; [intros _ k E; discriminate | reflexivity]].
    rewrite H. split; [intros Hk j E; injection E as <-; exact Hk | auto]. }
  destruct m; cbn [orders allowed].
  - apply opt. intros k. apply firsts_spec. discriminate.
  - apply opt. intros k. apply each_spec.
  - apply opt. intros k. apply no. discriminate.
  - rewrite andb_true_iff. apply Morphisms_Prop.and_iff_morphism.
    + apply (opt (fun k => negb (is k (snd c)) && negb (seconds k t))). intros k.
      rewrite andb_true_iff, no2, negb_true_iff, is_false. reflexivity.
    + apply opt. intros k. apply no. discriminate.
Qed.

(* Worlds.  Of a call the session knows whether it was done for certain, its keys as one of P, one for each
   answer that it may have got, and its key as one of Q. *)
Record made := { certain : bool; keys : list (option key); key_of_second : option key }.
Definition may (s : made) (x : option seen) : Prop :=
  match x with
  | None => certain s = false
  | Some c => In (fst c) (keys s) /\ snd c = key_of_second s
  end.
Definition world (h : list made) (w : list (option seen)) := Forall2 may h w.
Definition trace (w : list (option seen)) : list seen :=
  flat_map (fun x => match x with Some c => [c] | None => [] end) w.

(* A number whose worst of all worlds can be kept step by step. *)
Section Worst.
Variable f : seen -> bool -> bool.
Variable g : made -> bool -> bool.
Variable fits : made -> Prop.
Definition f' (x : option seen) (b : bool) := match x with Some c => f c b | None => b end.
Hypothesis f_mono : forall c, f c false = true -> f c true = true.
Hypothesis g_all : forall s b, fits s -> g s b = true -> forall x, may s x -> f' x b = true.
Hypothesis g_some : forall s b, fits s -> g s b = false -> exists x, may s x /\ f' x b = false.
Hypothesis some_world : forall s, fits s -> exists x, may s x.

Lemma worst h b : Forall fits h ->
  (exists w, world h w) /\
  (fold_right g b h = true -> forall w, world h w -> fold_right f' b w = true) /\
  (fold_right g b h = false -> exists w, world h w /\ fold_right f' b w = false).
Proof.
  induction 1 as [|s h Hs Hh [[w0 IH0] [IH1 IH2]]]; simpl.
  - split; [exists []; constructor|]. split.
    + intros -> w Hw. inversion Hw. reflexivity.
    + intros ->. exists []. split; [constructor | reflexivity].
  - split; [destruct (some_world s Hs) as [x Hx]; exists (x :: w0); constructor; assumption|].
    set (X := fold_right g b h) in *. split.
    + intros Hg w Hw. inversion Hw as [|? x ? w' Hx Hw']; subst. simpl.
      assert (HX := g_all s X Hs Hg x Hx). destruct X.
      * rewrite (IH1 eq_refl w' Hw'). exact HX.
      * destruct (fold_right f' b w'); [|exact HX]. destruct x as [c|]; simpl in *; [apply f_mono, HX | reflexivity].
    + intros Hg. destruct (g_some s X Hs Hg) as [x [Hx Hf]]. destruct X.
      * exists (x :: w0). split; [constructor; assumption|]. simpl. rewrite (IH1 eq_refl w0 IH0). exact Hf.
      * destruct (IH2 eq_refl) as [w [Hw E]]. exists (x :: w). split; [constructor; assumption|].
        simpl. rewrite E. exact Hf.
Qed.
End Worst.

Lemma fold_trace f w b : fold_right (f' f) b w = fold_right f b (trace w).
Proof. induction w as [|[c|] w IH]; simpl; rewrite ?IH; reflexivity. Qed.

(* monitors.py, `_order_marks`: an A that is required counts when it is known to be done, all else as soon
   as it may have been done. *)
Definition only (s : made) : option key := match keys s with [a] => a | _ => None end.
Definition mark_first (m : kind) (k : key) (s : made) (x : bool) : bool :=
  match m with
  | require_before => if certain s && is k (only s) then true else x
  | require_each => if is k (key_of_second s) then false else if certain s && is k (only s) then true else x
  | forbid_before | forbid_with => if existsb (is k) (keys s) then true else x
  end.
Definition mark_second (k : key) (s : made) (x : bool) : bool := if is k (key_of_second s) then true else x.
Definition worst_first m k h := fold_right (mark_first m k) false h.
Definition worst_second k h := fold_right (mark_second k) false h.

(* A call that was done for certain has one answer. *)
Definition told (s : made) : Prop := keys s <> [] /\ (certain s = true -> exists a, keys s = [a]).

Lemma some_key s : told s -> exists x, may s x.
Proof.
  intros [H _]. destruct (keys s) as [|a l] eqn:E; [congruence|]. exists (Some (a, key_of_second s)).
  simpl. rewrite E. split; [left; reflexivity | reflexivity].
Qed.

Lemma first_mono m k c : first m k c false = true -> first m k c true = true.
Proof. destruct m; simpl; destruct (is k (fst c)), (is k (snd c)); auto. Qed.

Lemma require_worst m k h : m = require_before \/ m = require_each -> Forall told h ->
  (worst_first m k h = true <-> forall w, world h w -> firsts m k (trace w) = true).
Proof.
  intros Hm Hh. destruct (worst (first m k) (mark_first m k) (told) (first_mono m k)) with (h := h) (b := false)
    as [_ [W1 W2]]; [| |exact (some_key)|exact Hh|].
  - intros s b [Hne Ht] Hg [[a b']|] Hx; cbn [f' may fst snd] in *.
    + destruct Hx as [Ha ->]. destruct (certain s) eqn:Ec.
      * destruct (Ht eq_refl) as [a' E]. unfold mark_first, only in Hg. rewrite E, Ec in Hg. rewrite E in Ha.
        destruct Ha as [<- | []]. destruct Hm as [-> | ->]; exact Hg.
      * unfold mark_first in Hg. rewrite Ec in Hg. unfold first. cbn [fst snd andb] in *.
        destruct Hm as [-> | ->]; destruct (is k a); auto; destruct (is k (key_of_second s)); auto.
    + unfold mark_first in Hg. rewrite Hx in Hg. cbn [andb] in Hg.
      destruct Hm as [-> | ->]; [exact Hg|]. destruct (is k (key_of_second s)); [discriminate | exact Hg].
  - intros s b [Hne Ht] Hg. destruct (certain s) eqn:Ec.
    + destruct (Ht eq_refl) as [a E]. exists (Some (a, key_of_second s)). cbn [may f' fst snd].
      split; [rewrite E; split; [left; reflexivity | reflexivity]|].
      unfold mark_first, only in Hg. rewrite E, Ec in Hg. destruct Hm as [-> | ->]; exact Hg.
    + unfold mark_first in Hg. rewrite Ec in Hg. cbn [andb] in Hg. destruct Hm as [-> | ->].
      * exists None. split; [exact Ec | exact Hg].
      * destruct (is k (key_of_second s)) eqn:E2.
        -- destruct (keys s) as [|a l] eqn:Ek; [congruence|]. exists (Some (a, key_of_second s)).
           cbn [may f' fst snd]. split; [rewrite Ek; split; [left; reflexivity | reflexivity]|].
           cbn [first snd]. rewrite E2. reflexivity.
        -- exists None. split; [exact Ec | exact Hg].
  - unfold worst_first. split.
    + intros E w Hw. unfold firsts. rewrite <- fold_trace. exact (W1 E w Hw).
    + intros H. destruct (fold_right (mark_first m k) false h) eqn:E; [reflexivity|].
      destruct (W2 eq_refl) as [w [Hw Ew]]. rewrite fold_trace in Ew. specialize (H w Hw). unfold firsts in H. congruence.
Qed.

(* The same for numbers that count against a call: the worst is that all that may be done was done, and got
   the answer that counts, where there is one. *)
Definition worst_key (k : key) (s : made) : option key :=
  if existsb (is k) (keys s) then Some k else hd None (keys s).
Definition everything (k : key) (h : list made) : list (option seen) :=
  map (fun s => Some (worst_key k s, key_of_second s)) h.

Lemma worst_key_may k s : keys s <> [] -> In (worst_key k s) (keys s).
Proof.
  intros H. unfold worst_key. destruct (existsb (is k) (keys s)) eqn:E.
  - apply existsb_exists in E. destruct E as [a [Ha E]]. apply is_true in E. subst a. exact Ha.
  - destruct (keys s) as [|a l]; [congruence | left; reflexivity].
Qed.

Lemma worst_key_is k s : keys s <> [] -> is k (worst_key k s) = existsb (is k) (keys s).
Proof.
  intros H. unfold worst_key. destruct (existsb (is k) (keys s)) eqn:E; [apply is_true; reflexivity|].
  destruct (is k (hd None (keys s))) eqn:E2; [|reflexivity]. rewrite <- E. symmetry. apply existsb_exists.
  destruct (keys s) as [|a l]; [congruence|]. exists a. split; [left; reflexivity | exact E2].
Qed.

Lemma everything_world k h : Forall told h -> world h (everything k h).
Proof.
  induction 1 as [|s h [Hs _] _ IH]; constructor; [|exact IH].
  split; [apply worst_key_may, Hs | reflexivity].
Qed.

Lemma forbid_worst m k h : m = forbid_before \/ m = forbid_with -> Forall told h ->
  firsts m k (trace (everything k h)) = worst_first m k h /\
  seconds k (trace (everything k h)) = worst_second k h /\
  forall w, world h w ->
    (firsts m k (trace w) = true -> worst_first m k h = true) /\
    (seconds k (trace w) = true -> worst_second k h = true).
Proof.
  intros Hm H. induction H as [|s h [Hs _] Hh [IH1 [IH2 IH3]]].
  { split; [reflexivity|]. split; [reflexivity|]. intros w Hw. inversion Hw; subst. auto. }
  assert (M : forall b, mark_first m k s b = if existsb (is k) (keys s) then true else b).
  { intros b. unfold mark_first. destruct Hm as [-> | ->]; reflexivity. }
  assert (F : forall c b, first m k c b = if is k (fst c) then true else b).
  { intros c b. destruct Hm as [-> | ->]; reflexivity. }
  split; [|split].
  - unfold worst_first, firsts in *. cbn [everything map trace flat_map app fold_right].
    rewrite M, F. cbn [fst]. rewrite (worst_key_is k s Hs).
    destruct (existsb (is k) (keys s)); [reflexivity | exact IH1].
  - unfold worst_second, seconds in *. cbn [everything map trace flat_map app fold_right].
    unfold second at 1, mark_second at 1. cbn [snd]. destruct (is k (key_of_second s)); [reflexivity | exact IH2].
  - intros w Hw. inversion Hw as [|? x ? w' Hx Hw']; subst. destruct (IH3 w' Hw') as [I1 I2].
    unfold worst_first, worst_second, firsts, seconds in *. cbn [fold_right trace flat_map].
    rewrite M. unfold mark_second at 1. destruct x as [[a' b']|]; cbn [may fst snd] in Hx.
    + destruct Hx as [Ha ->]. cbn [app fold_right]. rewrite F. cbn [fst].
      unfold second at 1. cbn [snd]. split; [|destruct (is k (key_of_second s)); auto].
      destruct (is k a') eqn:Ek; [|destruct (existsb (is k) (keys s)); auto]. intros _.
      assert (E : existsb (is k) (keys s) = true) by (apply existsb_exists; eauto). rewrite E. reflexivity.
    + cbn [app]. split; [destruct (existsb (is k) (keys s)); auto | destruct (is k (key_of_second s)); auto].
Qed.

Lemma forbid_none m k h : m = forbid_before \/ m = forbid_with -> Forall told h ->
  (negb (worst_first m k h) = true <-> forall w, world h w -> negb (firsts m k (trace w)) = true) /\
  (negb (worst_second k h) = true <-> forall w, world h w -> negb (seconds k (trace w)) = true).
Proof.
  intros Hm Hh. destruct (forbid_worst m k h Hm Hh) as [E1 [E2 H]].
  assert (W := everything_world k h Hh).
  split; (split; [intros E w Hw; destruct (H w Hw) as [H1 H2] | intros E; specialize (E _ W)]).
  - destruct (firsts m k (trace w)); [rewrite (H1 eq_refl) in E; exact E | reflexivity].
  - rewrite <- E1. exact E.
  - destruct (seconds k (trace w)); [rewrite (H2 eq_refl) in E; exact E | reflexivity].
  - rewrite <- E2. exact E.
Qed.

(* A call is allowed by the one memory exactly where it is in every world. *)
Theorem one_memory_is_as_good_as_all_worlds m h c : Forall told h ->
  (orders m (fun k => worst_first m k h) (fun k => worst_second k h) c = true <->
   forall w, world h w -> allowed m (trace w) c).
Proof.
  intros Hh. transitivity (forall w, world h w ->
    orders m (fun k => firsts m k (trace w)) (fun k => seconds k (trace w)) c = true).
  2:{ split; intros H w Hw; apply memory_is_the_definition, H, Hw. }
  destruct m; cbn [orders].
  - destruct (snd c) as [k|]; [apply require_worst; auto | split; auto].
  - destruct (snd c) as [k|]; [apply require_worst; auto | split; auto].
  - destruct (snd c) as [k|]; [apply forbid_none; auto | split; auto].
  - assert (N := fun k => forbid_none forbid_with k h ltac:(auto) Hh). rewrite andb_true_iff.
    assert (One : match fst c with
        | Some k => negb (is k (snd c)) && negb (worst_second k h) | None => true end = true <->
      forall w, world h w -> match fst c with
        | Some k => negb (is k (snd c)) && negb (seconds k (trace w)) | None => true end = true).
    { destruct (fst c) as [k|]; [|split; auto]. rewrite andb_true_iff, (proj2 (N k)). split.
      - intros [H1 H2] w Hw. apply andb_true_iff. auto.
      - intros H. split; [|intros w Hw; apply (andb_true_iff (negb (is k (snd c)))), H, Hw].
        assert (H' := H _ (everything_world k h Hh)). apply andb_true_iff in H'. apply H'. }
    assert (Two : match snd c with Some k => negb (worst_first forbid_with k h) | None => true end = true <->
      forall w, world h w -> match snd c with Some k => negb (firsts forbid_with k (trace w)) | None => true end = true).
    { destruct (snd c) as [k|]; [apply N | split; auto]. }
    rewrite One, Two. split.
    + intros [H1 H2] w Hw. apply andb_true_iff. auto.
    + intros H. split; intros w Hw; specialize (H w Hw); apply andb_true_iff in H; apply H.
Qed.

(* Sums and uses: what all calls that may have been done add up to. *)
Section Totals.
Local Open Scope Z_scope.
Definition amounts (h : list (bool * Z)) := fold_right (fun s z => snd s + z) 0 h.
Inductive adds : list (bool * Z) -> Z -> Prop :=
| adds_nothing : adds [] 0
| adds_done c x h z : adds h z -> adds ((c, x) :: h) (x + z)
| adds_undone x h z : adds h z -> adds ((false, x) :: h) z.

Theorem one_total_is_as_good_as_all_worlds h x most : (forall s, In s h -> 0 <= snd s) ->
  (amounts h + x <= most <-> forall z, adds h z -> z + x <= most).
Proof.
  intros Hpos. assert (T : adds h (amounts h)).
  { clear Hpos. induction h as [|[c y] h IH]; [constructor|]. apply adds_done, IH. }
  assert (B : forall z, adds h z -> z <= amounts h).
  { intros z H. induction H as [|c y h z H IH | y h z H IH]; cbn [amounts fold_right snd]; [lia| |].
    - fold (amounts h). assert (z <= amounts h); [|lia].
      apply IH; [intros s Hs; apply Hpos; right; exact Hs|]. clear -h. induction h as [|[c y] h IH]; [constructor|].
      apply adds_done, IH.
    - fold (amounts h). assert (H0 := Hpos (false, y) (or_introl eq_refl)). cbn [snd] in H0.
      assert (z <= amounts h); [|lia]. apply IH; [intros s Hs; apply Hpos; right; exact Hs|].
      clear -h. induction h as [|[c y'] h IH]; [constructor|]. apply adds_done, IH. }
  split; [intros H z Hz; specialize (B z Hz); lia | intros H; apply H, T].
Qed.
End Totals.

(* The same of each key by itself: of `sum`, whose one key every call of its tool has, and of `uses .. per`,
   where every call adds 1.  Neither binds an answer, so key and amount are known. *)
Section Totals_of_keys.
Local Open Scope Z_scope.
Record counted := { done : bool; counts_at : option key; amount : Z }.
Definition may_add (s : counted) (x : option (option key * Z)) : Prop :=
  match x with None => done s = false | Some c => c = (counts_at s, amount s) end.
Definition adding (h : list counted) (w : list (option (option key * Z))) := Forall2 may_add h w.
Definition made_of (w : list (option (option key * Z))) : list (option key * Z) :=
  flat_map (fun x => match x with Some c => [c] | None => [] end) w.
Definition total (k : key) (t : list (option key * Z)) : Z :=
  fold_right (fun c z => if is k (fst c) then snd c + z else z) 0 t.
(* monitors.py, `_AtMost`. *)
Definition worst_total (k : key) (h : list counted) : Z :=
  fold_right (fun s z => if is k (counts_at s) then amount s + z else z) 0 h.
Definition lets_add (most : Z) (h : list counted) (c : option key * Z) : Prop :=
  match fst c with Some k => worst_total k h + snd c <= most | None => True end.
(* Core.md, section 5. *)
Definition keeps_total (most : Z) (t : list (option key * Z)) : Prop := forall k, total k t <= most.

Definition adds_no_less (h : list counted) : Prop := Forall (fun s => 0 <= amount s) h.

Lemma all_added h : adding h (map (fun s => Some (counts_at s, amount s)) h) /\
  forall k, total k (made_of (map (fun s => Some (counts_at s, amount s)) h)) = worst_total k h.
Proof.
  induction h as [|s h [IH1 IH2]]; [split; [constructor | reflexivity]|]. split; [constructor; [reflexivity | exact IH1]|].
  intros k. cbn [map made_of flat_map app total fold_right fst snd worst_total].
  fold (made_of (map (fun s => Some (counts_at s, amount s)) h)). fold (total k (made_of (map (fun s => Some (counts_at s, amount s)) h))).
  rewrite IH2. reflexivity.
Qed.

Lemma no_world_adds_more h w k : adds_no_less h -> adding h w -> total k (made_of w) <= worst_total k h.
Proof.
  intros P H. revert P. induction H as [|s x h w Hx H IH]; intros P; [simpl; lia|].
  inversion P as [|? ? P1 P2]; subst. specialize (IH P2). cbn [worst_total fold_right]. fold (worst_total k h).
  destruct x as [c|]; cbn [may_add] in Hx; cbn [made_of flat_map app]; fold (made_of w).
  - subst c. cbn [total fold_right fst snd]. fold (total k (made_of w)). destruct (is k (counts_at s)); lia.
  - destruct (is k (counts_at s)); lia.
Qed.

Theorem one_total_of_a_key_is_as_good_as_all_worlds most h c : adds_no_less h ->
  (lets_add most h c <-> forall w, adding h w -> forall k, fst c = Some k -> total k (made_of w) + snd c <= most).
Proof.
  intros P. unfold lets_add. split.
  - intros H w Hw k E. rewrite E in H. assert (B := no_world_adds_more h w k P Hw). lia.
  - intros H. destruct (fst c) as [k|]; [|exact I]. destruct (all_added h) as [Ha Ht].
    rewrite <- Ht. apply (H _ Ha k eq_refl).
Qed.

Inductive passed_adding (most : Z) : list counted -> Prop :=
| added_nothing : passed_adding most []
| added_call s h h' : passed_adding most h -> adds_no_less h' -> (forall w, adding h w -> adding h' w) ->
    lets_add most h' (counts_at s, amount s) -> passed_adding most (s :: h).

Theorem passed_sessions_keep_totals most h : 0 <= most -> passed_adding most h ->
  forall w, adding h w -> keeps_total most (made_of w).
Proof.
  intros M. induction 1 as [|s h h' Hp IH P Hw L]; intros w H k; inversion H as [|? x ? w' Hx Hw']; subst; [exact M|].
  destruct x as [c|]; cbn [may_add] in Hx; cbn [made_of flat_map app]; fold (made_of w'); [|apply IH, Hw'].
  subst c. cbn [total fold_right fst snd]. fold (total k (made_of w')).
  destruct (is k (counts_at s)) eqn:E; [|apply IH, Hw']. apply is_true in E. unfold lets_add in L. cbn [fst snd] in L.
  rewrite E in L. assert (B := no_world_adds_more h' w' k P (Hw w' Hw')). lia.
Qed.
End Totals_of_keys.

(* A session whose calls were each let through by what was known then, in whichever world it was: what was
   done meets the monitor.  Outcomes may be known later: that only takes worlds away. *)
Inductive passed (m : kind) : list made -> Prop :=
| passed_nothing : passed m []
| passed_call s h h' : passed m h -> Forall told h' -> (forall w, world h w -> world h' w) ->
    (forall a, In a (keys s) -> orders m (fun k => worst_first m k h') (fun k => worst_second k h')
                                  (a, key_of_second s) = true) ->
    passed m (s :: h).

Theorem passed_sessions_meet_monitors m h : passed m h -> forall w, world h w -> meets m (trace w).
Proof.
  induction 1 as [|s h h' Hp IH Ht Hw Ho]; intros w H; inversion H as [|? x ? w' Hx Hw']; subst; [exact I|].
  destruct x as [[a b]|]; cbn [trace flat_map app]; [|exact (IH w' Hw')].
  destruct Hx as [Ha Hb]. cbn [fst snd] in Ha, Hb. subst b. cbn [meets]. split; [|exact (IH w' Hw')].
  apply (one_memory_is_as_good_as_all_worlds m h' _ Ht); [exact (Ho a Ha) | exact (Hw w' Hw')].
Qed.
End Keys.
