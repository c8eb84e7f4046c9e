(* Exact questions: one key at a time.
   docs/spec/proof.md, section 1.

   A list for one key holds tokens for the values of that key, or of the call that breaks a monitor at it, and
   never renames them; any other value is told apart by its atom alone, and of a key with such a value nothing
   is remembered.  Such lists, one for plans, types and sums and one for each key of each monitor of the right
   side, show together what one list of all values would. *)

From Coq Require Import List Bool ZArith Lia.
From Tcc Require Import Monitors Intervals Renaming Relaxed Closed.
Import ListNotations.
Local Open Scope Z_scope.

(* A token that is tracked, or some other value of an atom. *)
Inductive token (A T : Type) := Known (t : T) | Other (a : A).
Arguments Known {A T}. Arguments Other {A T}.

Section Keys.
Variables A T V : Type.
Variable A_dec : forall x y : A, {x = y} + {x <> y}.
Variable T_dec : forall x y : T, {x = y} + {x <> y}.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Variable token_atom : T -> A.
Variable atom : V -> A.
Variable most : A -> option nat.
Hypothesis most_right : forall a n vs, most a = Some n -> NoDup vs -> Forall (fun v => atom v = a) vs ->
  (length vs <= n)%nat.
Notation token := (token A T).

Definition token_dec : forall x y : token, {x = y} + {x <> y}.
Proof. decide equality. Defined.
Definition known (x : token) : bool := match x with Known _ => true | Other _ => false end.
Definition its_atom (x : token) : A := match x with Known t => token_atom t | Other a => a end.
Notation kept := (kept token known).

(* moves.py, `_choices`, where keys are tracked. *)
Definition offered (tracked : list T) (o : option token) : Prop :=
  match o with
  | None => True
  | Some (Known t) => In t tracked
  | Some (Other a) => room A T A_dec token_atom most a tracked
  end.

(* What every value is seen as. *)
Definition sees_values (tracked : list T) (R : T -> V -> Prop) (seen : V -> token) : Prop :=
  forall v, match seen v with Known t => R t v | Other a => a = atom v /\ forall t, ~ R t v end.

Lemma some_view tracked R : stand A T V token_atom atom tracked R -> exists seen, sees_values tracked R seen.
Proof.
  intros S. destruct S as [N [O [At D]]].
  assert (F : forall u, incl u tracked -> exists seen : V -> token, forall v,
    match seen v with Known t => R t v | Other a => a = atom v /\ forall t, In t u -> ~ R t v end).
  { induction u as [|t u IH]; intros I; [exists (fun v => Other (atom v)); intros v; split; [reflexivity | intros t []]|].
    destruct (IH (fun x Hx => I x (or_intror Hx))) as [seen H].
    destruct (proj1 (D t) (I t (or_introl eq_refl))) as [w Hw].
    exists (fun v => if V_dec v w then Known t else seen v). intros v. destruct (V_dec v w) as [-> | Ne]; [exact Hw|].
    specialize (H v). destruct (seen v) as [t'|a]; [exact H|]. destruct H as [Ha Hn]. split; [exact Ha|].
    intros t' [<- | Ht']; [|apply Hn, Ht']. intros Hv. apply Ne. apply (O t v t w Hv Hw eq_refl). reflexivity. }
  destruct (F tracked (incl_refl _)) as [seen H]. exists seen. intros v. specialize (H v).
  destruct (seen v) as [t|a]; [exact H|]. destruct H as [Ha Hn]. split; [exact Ha|].
  intros t Ht. apply (Hn t); [apply D; eauto | exact Ht].
Qed.

Section List.
Variable tracked : list T.
Variable R : T -> V -> Prop.
Hypothesis R_stand : stand A T V token_atom atom tracked R.
Variable view : V -> token.
Hypothesis view_is : sees_values tracked R view.

Lemma view_atom v : its_atom (view v) = atom v.
Proof.
  assert (H := view_is v). destruct (view v) as [t|a]; [apply R_stand, H | apply H].
Qed.

Lemma view_once v w : known (view v) = true -> view v = view w -> v = w.
Proof.
  intros K E. assert (H := view_is v). assert (H' := view_is w). rewrite <- E in H'.
  destruct (view v) as [t|a]; [|discriminate]. apply (proj1 (proj2 R_stand) t v t w H H' eq_refl). reflexivity.
Qed.

Lemma view_offered v : offered tracked (Some (view v)).
Proof.
  assert (H := view_is v). destruct (view v) as [t|a]; cbn.
  - apply R_stand. exists v. exact H.
  - destruct H as [-> H]. apply (room_for A T V A_dec token_atom atom most most_right tracked R v R_stand H).
Qed.

Definition view_part (p : part V) : part token :=
  match p with Absent => Absent | Listed n => Listed n | Value v => Value (view v) end.
Definition view_key : key V -> key token := map view_part.
Definition view_call (c : call V) : call token :=
  {| base := base c; given := map (option_map view) (given c); adds := fun _ => 0 |}.
Definition view_seen (s : seen (key V)) : seen (key token) := (option_map view_key (fst s), option_map view_key (snd s)).

Lemma view_key_once k : forall j, kept (view_key k) = true -> view_key k = view_key j -> k = j.
Proof.
  induction k as [|p k IH]; intros [|q j] K E; try discriminate; [reflexivity|].
  cbn [view_key map] in *. cbn [Renaming.kept forallb] in K. apply andb_true_iff in K. destruct K as [Kp K].
  injection E as Ep E. f_equal; [|apply IH; assumption].
  destruct p as [| n | v], q as [| m | w]; try discriminate Ep; try reflexivity.
  - injection Ep as ->. reflexivity.
  - injection Ep as Ep. f_equal. apply view_once; assumption.
Qed.

Lemma view_choices c : Forall (offered tracked) (given (view_call c)).
Proof.
  cbn [view_call given]. induction (given c) as [|[v|] l IH]; constructor; try exact IH; [apply view_offered | exact I].
Qed.

Lemma view_shape c : shape A token its_atom (view_call c) = shape A V atom c.
Proof.
  unfold shape, view_call. cbn [given]. rewrite map_map. apply map_ext. intros [v|]; cbn; [rewrite view_atom|]; reflexivity.
Qed.

Lemma view_part_of c s : part_of (view_call c) s = view_part (part_of c s).
Proof.
  destruct s as [n|f]; [reflexivity|]. unfold part_of, view_call. cbn [given].
  change (@None token) with (option_map view None). rewrite map_nth. destruct (nth f (given c) None); reflexivity.
Qed.

(* Which keys are kept is said of tokens, and so it is of values. *)
Definition of_values (keep : key token -> bool) (k : key V) : bool := keep (view_key k).

Lemma view_read keep a c : read keep a (view_call c) = option_map view_key (read (of_values keep) a c).
Proof.
  unfold read. cbn [view_call base]. destruct (a (base c)) as [parts|]; [|reflexivity]. cbn zeta.
  assert (E : map (part_of (view_call c)) parts = view_key (map (part_of c) parts)).
  { unfold view_key. rewrite map_map. apply map_ext, view_part_of. }
  rewrite E. unfold of_values. destruct (keep (view_key (map (part_of c) parts))); reflexivity.
Qed.

Lemma view_sees keep r c : sees keep r (view_call c) = view_seen (sees (of_values keep) r c).
Proof. destruct r as [m a b | most' b]; unfold view_seen; cbn [sees fst snd]; rewrite ?view_read; reflexivity. Qed.

(* Memories of tokens and of values that say the same of each key that is kept. *)
Definition same_on (keep : key token -> bool) (x : memory token) (y : memory V) : Prop :=
  forall k, keep (view_key k) = true ->
  one x (view_key k) = one y k /\ two x (view_key k) = two y k /\ uses x (view_key k) = uses y k.

Notation lets_t := (lets token token_dec). Notation after_t := (after token token_dec).
Notation lets_v := (lets V V_dec). Notation after_v := (after V V_dec).

Lemma is_view k o : kept (view_key k) = true ->
  is (key token) (key_dec token token_dec) (view_key k) (option_map view_key o) = is (key V) (key_dec V V_dec) k o.
Proof.
  intros K. destruct o as [j|]; [|reflexivity]. cbn [option_map is].
  destruct (key_dec V V_dec j k) as [-> | N]; [destruct (key_dec token token_dec (view_key k) (view_key k)); congruence|].
  destruct (key_dec token token_dec (view_key j) (view_key k)) as [E | _]; [|reflexivity].
  exfalso. apply N. symmetry. apply view_key_once; [exact K | symmetry; exact E].
Qed.

Variable keep : key token -> bool.
Hypothesis keep_known : forall k, keep k = true -> kept k = true.

Lemma same_lets r x y c : same_on keep x y ->
  lets_t r x (sees keep r (view_call c)) = lets_v r y (sees (of_values keep) r c).
Proof.
  intros H. rewrite view_sees.
  assert (P : forall o, o = fst (sees (of_values keep) r c) \/ o = snd (sees (of_values keep) r c) ->
    match o with Some k => keep (view_key k) = true | None => True end).
  { assert (Rd : forall a, match read (of_values keep) a c with Some k => keep (view_key k) = true | None => True end).
    { intros a. unfold read, of_values. destruct (a (base c)) as [parts|]; [|exact I]. cbn zeta.
      destruct (keep (view_key (map (part_of c) parts))) eqn:E; [exact E | exact I]. }
    destruct r as [m a b | most' b]; cbn [sees fst snd]; intros o [-> | ->]; try apply Rd; exact I. }
  assert (P1 := P _ (or_introl eq_refl)). assert (P2 := P _ (or_intror eq_refl)). clear P.
  set (s := sees (of_values keep) r c) in *. clearbody s. unfold view_seen.
  assert (O2 : forall (f : key token -> bool) (g : key V -> bool), (forall k, keep (view_key k) = true -> f (view_key k) = g k) ->
    match option_map view_key (snd s) with Some k => f k | None => true end = match snd s with Some k => g k | None => true end).
  { intros f g F. destruct (snd s) as [k|]; [apply F, P2 | reflexivity]. }
  destruct r as [m a b | most' b]; cbn [lets snd fst].
  - destruct m; cbn [orders fst snd].
    + apply O2. intros k K. apply (H k K).
    + apply O2. intros k K. apply (H k K).
    + apply (O2 (fun k => negb (one x k)) (fun k => negb (one y k))). intros k K. f_equal. apply (H k K).
    + f_equal; [|apply (O2 (fun k => negb (one x k)) (fun k => negb (one y k))); intros k K; f_equal; apply (H k K)].
      destruct (fst s) as [k|]; [|reflexivity]. cbn [option_map]. rewrite is_view by (apply keep_known, P1).
      destruct (H k P1) as [_ [-> _]]. reflexivity.
  - apply (O2 (fun k => uses x k + 1 <=? most') (fun k => uses y k + 1 <=? most')). intros k K.
    destruct (H k K) as [_ [_ ->]]. reflexivity.
Qed.

Lemma same_after r x y c : same_on keep x y ->
  same_on keep (after_t r x (sees keep r (view_call c))) (after_v r y (sees all_keys r c)).
Proof.
  intros H k K.
  assert (Ag := agree_after V V_dec (of_values keep) r c y y ltac:(intros j _; auto) k K).
  destruct Ag as [-> [-> ->]]. rewrite view_sees. destruct (H k K) as [H1 [H2 H3]].
  destruct r as [m a b | most' b]; cbn [after one two uses]; unfold first, second, view_seen; cbn [fst snd];
    rewrite !is_view by (apply keep_known, K); rewrite ?H1, ?H2, ?H3; auto.
Qed.
End List.

(* A list for one key.  The left forgets all keys but those of tracked values; `asked` says of which calls it
   is asked whether the right lets them through, `asks` by which monitors, `of_key` at which keys. *)
Variables SL SR : side A.
Variable used : nat -> bool.
Variable asks : nat -> bool.
Variable of_key : key token -> bool.
Hypothesis of_key_known : forall k, of_key k = true -> kept k = true.
Variable asked : nat -> list (option token) -> bool.
Variable grid : nat -> Z.
Hypothesis grid_pos : forall j, 0 < grid j.
Variable entry : nat -> list (option A) -> nat -> option sum.
Variables left_has right_has : nat -> list (option A) -> nat -> Z -> Prop.
Hypothesis left_adds : forall b sh ad, fine SL b sh ad -> forall j,
  match entry b sh j with
  | None => ad j = 0
  | Some u => left_has b sh j (ad j) /\ describes (grid j) u (left_has b sh j) (right_has b sh j) /\
              mine u = cap SL j /\ theirs u = cap SR j
  end.
Hypothesis right_fine : forall b sh ad, fine SL b sh ad ->
  (forall j u, entry b sh j = Some u -> right_has b sh j (ad j)) -> fine SR b sh ad.
Hypothesis caps_from_0 : forall j, fits 0 (cap SR j).
Notation state := (state A token SL SR).
Notation added := (added A token SL SR grid entry).
Notation left_at := (left_at A token SL SR). Notation right_at := (right_at A token SL SR).
Notation left_mem := (left_mem A token SL SR). Notation right_mem := (right_mem A token SL SR).
Notation span := (span A token SL SR).
Notation shape_t := (shape A token its_atom).
Notation lets_t := (lets token token_dec). Notation after_t := (after token token_dec).

Definition equal_on (keep : key token -> bool) (x y : memory token) : Prop := forall k, keep k = true ->
  one x k = one y k /\ two x k = two y k /\ uses x k = uses y k.
Definition key_closed (tracked : list T) (listed : state -> Prop) : Prop := forall s, listed s ->
  (ends SL (left_at s) = true -> ends SR (right_at s) = true) /\
  forall b l p, Forall (offered tracked) l -> let c := {| base := b; given := l; adds := fun _ => 0 |} in
    step SL (left_at s) b (shape_t c) = Some p ->
    (forall i, used i = true -> lets_t (rules SL i) (left_mem s i) (sees kept (rules SL i) c) = true) ->
    (forall j, added s b (shape_t c) j <> no_call) ->
    exists q, step SR (right_at s) b (shape_t c) = Some q /\
      (asked b l = true -> forall i, asks i = true ->
        lets_t (rules SR i) (right_mem s i) (sees of_key (rules SR i) c) = true) /\
      (forall j, added s b (shape_t c) j <> refused) /\
      exists to, listed to /\ left_at to = p /\ right_at to = q /\
        (forall i, used i = true -> equal_on kept (after_t (rules SL i) (left_mem s i) (sees kept (rules SL i) c)) (left_mem to i)) /\
        (forall i, asks i = true -> equal_on of_key (after_t (rules SR i) (right_mem s i) (sees of_key (rules SR i) c)) (right_mem to i)) /\
        (forall j low high, added s b (shape_t c) j = leads low high -> fst (span to j) <= low /\ high <= snd (span to j)).
Definition key_start (listed : state -> Prop) : Prop := exists s, listed s /\
  left_at s = start SL /\ right_at s = start SR /\
  (forall i k, ~ marked (left_mem s i) k /\ ~ marked (right_mem s i) k) /\
  (forall j, fst (span s j) <= 0 <= snd (span s j)).

Section Held.
Variable tracked : list T.
Variable R : T -> V -> Prop.
Hypothesis R_stand : stand A T V token_atom atom tracked R.
Variable view : V -> token.
Hypothesis view_is : sees_values tracked R view.
Definition at_key_state (s : state) (g : config A V SL) (h : config A V SR) : Prop :=
  at_ g = left_at s /\ at_ h = right_at s /\
  (forall i, used i = true -> same_on view kept (left_mem s i) (mem g i)) /\
  (forall i, asks i = true -> same_on view of_key (right_mem s i) (mem h i)) /\
  (forall j, inside (grid j) (fst (span s j)) (snd (span s j)) (total g j)) /\
  (forall j, total h j = total g j /\ fits (total h j) (cap SR j)).
Notation none := (fun _ : nat => false).

Lemma key_step listed s g h c p : key_closed tracked listed -> listed s -> at_key_state s g h ->
  moves A V V_dec atom SL every all_keys g c p ->
  exists q to, moves A V V_dec atom SR none all_keys h c q /\ listed to /\
    at_key_state to (next A V V_dec SL all_keys g c p) (next A V V_dec SR all_keys h c q) /\
    (asked (base c) (map (option_map view) (given c)) = true -> forall i, asks i = true ->
      lets V V_dec (rules SR i) (mem h i) (sees (of_values view of_key) (rules SR i) c) = true).
Proof.
  intros C L [Eg [Eh [Ml [Mr [Sp Tot]]]]] [Hstep [Hfine [Hlets Hfits]]].
  set (d := view_call view c). assert (Sh : shape_t d = shape A V atom c) by apply (view_shape tracked R R_stand view view_is).
  assert (Kk : forall k, kept k = true -> kept k = true) by auto.
  assert (Ad : forall j, match added s (base c) (shape_t d) j with
    | no_call => False
    | refused => True
    | leads low high => (forall w, entry (base c) (shape_t d) j = Some w -> right_has (base c) (shape_t d) j (adds c j)) /\
        inside (grid j) low high (total g j + adds c j) /\ fits (total g j + adds c j) (cap SR j)
    end).
  { intros j. unfold Closed.added. rewrite Sh. assert (La := left_adds _ _ _ Hfine j).
    destruct (entry (base c) (shape A V atom c) j) as [w|] eqn:E.
    - destruct La as [Lh [De [Em Et]]].
      assert (F : fits (total g j + adds c j) (mine w)) by (rewrite Em; apply Hfits).
      assert (In := sums_stay_inside (grid j) (grid_pos j) w _ _ _ _ _ _ De (Sp j) Lh F).
      destruct (add (grid j) w (fst (span s j)) (snd (span s j))) as [| | low high]; auto.
      rewrite <- Et. split; [intros w' _; apply In | apply In].
    - rewrite La, Z.add_0_r. split; [intros w Ew; discriminate|]. split; [apply Sp|].
      destruct (Tot j) as [<- F]. exact F. }
  destruct (proj2 (C s L) (base c) (given d) p (view_choices tracked R R_stand view view_is c)) as
    [q [Sq [Rl [Nr [to [Lt [El [Er [Nl [Nr' Ns]]]]]]]]]]; fold d.
  - change ({| base := base c; given := given d; adds := fun _ => 0 |}) with d. rewrite Sh, <- Eg. exact Hstep.
  - intros i U. change ({| base := base c; given := given d; adds := fun _ => 0 |}) with d. unfold d.
    rewrite (same_lets tracked R R_stand view view_is kept Kk _ _ (mem g i) c (Ml i U)).
    apply (agree_lets V V_dec _ _ _ (mem g i)); [intros k _; auto | apply Hlets; reflexivity].
  - intros j E. specialize (Ad j). change ({| base := base c; given := given d; adds := fun _ => 0 |}) with d in E.
    rewrite E in Ad. exact Ad.
  - change ({| base := base c; given := given d; adds := fun _ => 0 |}) with d in *.
    assert (Go : forall j, exists low high, added s (base c) (shape_t d) j = leads low high).
    { intros j. specialize (Ad j). specialize (Nr j). destruct (added s (base c) (shape_t d) j) as [| | low high]; [tauto | tauto | eauto]. }
    exists q, to. split; [|split; [exact Lt | split]].
    + split; [rewrite Eh, <- Sh; exact Sq|]. split; [|split; [discriminate|]].
      * apply right_fine; [exact Hfine|]. intros j w Ew. specialize (Ad j). destruct (Go j) as [low [high E]].
        rewrite E in Ad. destruct Ad as [Ad _]. rewrite <- Sh in *. apply (Ad w Ew).
      * intros j. specialize (Ad j). destruct (Go j) as [low [high E]]. rewrite E in Ad. destruct (Tot j) as [-> _]. apply Ad.
    + split; [exact (eq_sym El)|]. split; [exact (eq_sym Er)|]. split; [|split; [|split]].
      * intros i U k K. destruct (Nl i U (view_key view k) K) as [<- [<- <-]].
        apply (same_after tracked R R_stand view view_is kept Kk _ _ (mem g i) c (Ml i U) k K).
      * intros i U k K. destruct (Nr' i U (view_key view k) K) as [<- [<- <-]].
        apply (same_after tracked R R_stand view view_is of_key of_key_known _ _ (mem h i) c (Mr i U) k K).
      * intros j. cbn [total next]. specialize (Ad j). destruct (Go j) as [low [high E]]. rewrite E in Ad.
        destruct Ad as [_ [[Hi Ho] _]]. destruct (Ns j low high E). split; [lia | exact Ho].
      * intros j. cbn [total next]. specialize (Ad j). destruct (Go j) as [low [high E]]. rewrite E in Ad.
        destruct (Tot j) as [-> _]. split; [reflexivity | apply Ad].
    + intros As i Ai. rewrite <- (same_lets tracked R R_stand view view_is of_key of_key_known _ _ (mem h i) c (Mr i Ai)).
      apply Rl; [exact As | exact Ai].
Qed.

Lemma key_begin listed : key_start listed -> exists s, listed s /\ at_key_state s (begin A V SL) (begin A V SR).
Proof.
  intros [s [L [El [Er [Nm Sp]]]]]. exists s. split; [exact L|].
  assert (M : forall keep (x : memory token), (forall k, ~ marked x k) -> same_on view keep x (nothing : memory V)).
  { intros keep x H k _. destruct (not_marked token x _ (H (view_key view k))) as [-> [-> ->]]. auto. }
  split; [exact (eq_sym El)|]. split; [exact (eq_sym Er)|].
  split; [intros i _; apply M; intros k; apply Nm|]. split; [intros i _; apply M; intros k; apply Nm|].
  split; intros j; cbn [begin total]; [split; [apply Sp | exists 0; lia] | split; [reflexivity | apply caps_from_0]].
Qed.

(* Plans, types and sums of the right refuse no call of a session of the left, and no call that is asked about
   breaks a monitor at the key. *)
Theorem a_key_list_holds_every_session listed : key_closed tracked listed -> key_start listed ->
  forall l g, session A V V_dec atom SL every all_keys l g ->
  exists h, session A V V_dec atom SR none all_keys l h /\ (ends SL (at_ g) = true -> ends SR (at_ h) = true) /\
    forall c p, moves A V V_dec atom SL every all_keys g c p ->
    asked (base c) (map (option_map view) (given c)) = true -> forall i, asks i = true ->
    lets V V_dec (rules SR i) (mem h i) (sees (of_values view of_key) (rules SR i) c) = true.
Proof.
  intros C St l g Hs. assert (H : exists s h, listed s /\ session A V V_dec atom SR none all_keys l h /\ at_key_state s g h).
  { induction Hs as [|l g c p Hs [s [h [L [Hh Sh]]]] Hm].
    - destruct (key_begin listed St) as [s [L Sh]]. exists s, (begin A V SR). split; [exact L|]. split; [constructor | exact Sh].
    - destruct (key_step listed s g h c p C L Sh Hm) as [q [to [Mq [Lt [Stt _]]]]].
      exists to, (next A V V_dec SR all_keys h c q). split; [exact Lt|]. split; [constructor; assumption | exact Stt]. }
  destruct H as [s [h [L [Hh Sh]]]]. exists h. split; [exact Hh|]. split.
  - destruct Sh as [-> [-> _]]. apply (C s L).
  - intros c p Hm. destruct (key_step listed s g h c p C L Sh Hm) as [q [to [_ [_ [_ H]]]]]. exact H.
Qed.
End Held.
End Keys.

(* All lists together: where plans, types and sums of the right refuse nothing, and for each monitor and each
   key some list asks about the call, with that key kept, every session of the left is one of the right. *)
Section Together.
Variables A V : Type.
Variable V_dec : forall x y : V, {x = y} + {x <> y}.
Variable atom : V -> A.
Variables SL SR : side A.
Notation none := (fun _ : nat => false).

Lemma remembered used keep l h : session A V V_dec atom SR used keep l h ->
  forall i, mem h i = remembers V V_dec keep (rules SR i) l.
Proof.
  induction 1 as [|l h c p _ IH _]; intros i; [reflexivity|]. cbn [mem next remembers fold_right]. rewrite IH. reflexivity.
Qed.

Theorem keys_one_at_a_time_prove_inclusion :
  (forall l g, session A V V_dec atom SL every all_keys l g ->
    exists h, session A V V_dec atom SR none all_keys l h /\ (ends SL (at_ g) = true -> ends SR (at_ h) = true)) ->
  (forall l g c p, session A V V_dec atom SL every all_keys l g -> moves A V V_dec atom SL every all_keys g c p ->
    forall i k, exists keep, keep k = true /\
      lets V V_dec (rules SR i) (remembers V V_dec all_keys (rules SR i) l) (sees keep (rules SR i) c) = true) ->
  forall l g, session A V V_dec atom SL every all_keys l g ->
  exists h, session A V V_dec atom SR every all_keys l h /\ (ends SL (at_ g) = true -> ends SR (at_ h) = true).
Proof.
  intros Plans Keys l g Hs. destruct (Plans l g Hs) as [h [Hh E]]. exists h. split; [|exact E].
  clear E. revert h Hh. induction Hs as [|l g c p Hs IH Hm]; intros h Hh.
  - inversion Hh; subst. constructor.
  - inversion Hh as [|? h0 ? q Hh0 Hq]; subst. constructor; [apply IH, Hh0|].
    destruct Hq as [H1 [H2 [_ H4]]]. split; [exact H1|]. split; [exact H2|]. split; [|exact H4]. intros i _.
    rewrite (remembered _ _ _ _ Hh0). apply a_rule_is_broken_at_one_key. intros k.
    destruct (Keys l g c p Hs Hm i k) as [keep [K Le]]. exists keep. split; [exact K|].
    rewrite <- Le. apply lets_agree. intros j K'. destruct (remembers_agree V V_dec keep (rules SR i) l j K') as [-> [-> ->]]. auto.
Qed.
End Together.
