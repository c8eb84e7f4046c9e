(* Monitors of version 1.1 over the calls of a session: require and forbid, before, each and with, sums, and uses per value.
   docs/spec/core.md, section 5; docs/spec/session.md, section 5.  Keys are numbers, the same exactly where values are.

   One memory is gone through by calls and outcomes as the places are (Sessions.v); what it allows is allowed in every world
   (Monitors.v).  Of a value that is not shown nothing is added up: it is asserted. *)

From Coq Require Import List Arith ZArith Lia Bool FMapPositive.
From Tcc Require Import Monitors.
From Tcc.Checker Require Import Sessions.
Import ListNotations.
Local Open Scope Z_scope.

(* A call as one monitor sees it: its keys as one of P and of Q, whatever is observed; which observed values P binds, by place;
   what it adds, nothing where that is less than nothing. *)
Record glance := { as_first : option positive; as_second : option positive; binds : list (Z * list Z); weighs : Z }.
Definition adds (g : glance) : Z := Z.max 0 (weighs g).
(* Whether an answer, as far as it is told, has these values. *)
Inductive came := Came | Came_not | Came_perhaps.
Definition told_at (told : list (option Z)) (n : Z) : option Z := if n <? 0 then None else nth (Z.to_nat n) told None.
Fixpoint comes (told : list (option Z)) (l : list (Z * list Z)) : came :=
  match l with
  | [] => Came
  | (n, values) :: l =>
      match told_at told n, comes told l with
      | Some z, c => if existsb (Z.eqb z) values then c else Came_not
      | None, Came_not => Came_not
      | None, _ => Came_perhaps
      end
  end.

Arguments keys {key}. Arguments certain {key}. Arguments key_of_second {key}.

Section Order.
Variable m : kind.
Notation made := (made positive).
Definition forbids : bool := match m with forbid_before | forbid_with => true | _ => false end.
Definition perhaps (g : glance) : made :=
  {| certain := false; keys := match binds g with [] => [as_first g] | _ => [as_first g; None] end; key_of_second := as_second g |}.
Definition nothing : made := {| certain := false; keys := []; key_of_second := None |}.
Definition seen_as (g : glance) (k : known) : made :=
  match k with
  | Failed => nothing
  | Read => if forbids then perhaps g else nothing
  | Unknown => perhaps g
  | Partly _ _ told =>
      match comes told (binds g) with
      | Came => {| certain := true; keys := [as_first g]; key_of_second := as_second g |}
      | Came_not => {| certain := true; keys := [None]; key_of_second := as_second g |}
      | Came_perhaps => perhaps g
      end
  end.

(* The memory: a mark for each key of the first, and of the second. *)
Definition marks := (PositiveMap.t bool * PositiveMap.t bool)%type.
Definition marked (p : PositiveMap.t bool) (k : positive) : bool := match PositiveMap.find k p with Some b => b | None => false end.
Definition put (k : option positive) (b : bool) (p : PositiveMap.t bool) : PositiveMap.t bool :=
  match k with Some k => PositiveMap.add k b p | None => p end.
Definition first_key (s : made) : option positive := match keys s with k :: _ => k | [] => None end.
Definition remember (g : glance) (k : known) (s : marks) : marks :=
  let c := seen_as g k in
  (match m with
   | require_before => if certain c then put (first_key c) true (fst s) else fst s
   | require_each => put (key_of_second c) false (if certain c then put (first_key c) true (fst s) else fst s)
   | forbid_before | forbid_with => put (first_key c) true (fst s)
   end, put (key_of_second c) true (snd s)).
Definition order_of := orders positive Pos.eq_dec m.
Definition lets_order (g : glance) (s : marks) : bool :=
  forallb (fun a => order_of (marked (fst s)) (marked (snd s)) (a, as_second g)) (keys (perhaps g)).
Definition may_be_told (g : glance) (k : known) : bool := true.
Definition keeps_order (events : list (event glance)) : bool :=
  match goes remember lets_order may_be_told (PositiveMap.empty bool, PositiveMap.empty bool) [] events with Some _ => true | None => false end.

Notation worst_first := (worst_first positive Pos.eq_dec m).
Notation worst_second := (worst_second positive Pos.eq_dec).
Definition seen_all (h : list (glance * known)) : list made := map (fun c => seen_as (fst c) (snd c)) h.
Notation start := (PositiveMap.empty bool, PositiveMap.empty bool).
Notation comes_to := (comes_to remember start).
Notation decided := (decided remember lets_order may_be_told start).

Lemma marked_put k j b p : marked (put j b p) k = if is positive Pos.eq_dec k j then b else marked p k.
Proof.
  destruct j as [j|]; cbn [put is]; [|reflexivity]. unfold marked. destruct (Pos.eq_dec j k) as [-> | N].
  - rewrite PositiveMap.gss. reflexivity.
  - rewrite PositiveMap.gso by congruence. reflexivity.
Qed.
Lemma shape g k : let s := seen_as g k in
  (s = nothing) \/ (s = perhaps g) \/ (certain s = true /\ exists a, keys s = [a]).
Proof.
  cbv zeta. destruct k as [| |l all told|]; cbn [seen_as]; auto.
  - destruct forbids; auto.
  - destruct (comes told (binds g)); cbn [certain keys]; eauto 6.
Qed.
Lemma marks_are_worst h : forall k, marked (fst (comes_to h)) k = worst_first k (seen_all h) /\
  marked (snd (comes_to h)) k = worst_second k (seen_all h).
Proof.
  induction h as [|[g x] h IH]; intros k.
  - unfold marked. cbn. rewrite PositiveMap.gempty. auto.
  - destruct (IH k) as [I1 I2]. unfold Monitors.worst_first, Monitors.worst_second in *. cbn [seen_all map fold_right fst snd Sessions.comes_to].
    fold (comes_to h). fold (seen_all h). set (b := comes_to h) in *. clearbody b. unfold remember. cbn [fst snd]. rewrite <- I1, <- I2. set (s := seen_as g x).
    split; [|rewrite marked_put; reflexivity].
    assert (Sh := shape g x). cbv zeta in Sh. fold s in Sh.
    destruct m eqn:Em; cbn [mark_first].
    + destruct (certain s) eqn:C; [|reflexivity]. rewrite marked_put. destruct Sh as [E | [E | [_ [a Ea]]]]; [rewrite E in C; discriminate | rewrite E in C; discriminate|].
      unfold first_key, only. rewrite Ea. reflexivity.
    + rewrite marked_put. destruct (is positive Pos.eq_dec k (key_of_second s)); [reflexivity|].
      destruct (certain s) eqn:C; [|reflexivity]. rewrite marked_put. destruct Sh as [E | [E | [_ [a Ea]]]]; [rewrite E in C; discriminate | rewrite E in C; discriminate|].
      unfold first_key, only. rewrite Ea. reflexivity.
    + rewrite marked_put. destruct Sh as [E | [E | [_ [a Ea]]]].
      * rewrite E. reflexivity.
      * rewrite E. unfold first_key, perhaps. cbn [keys]. destruct (binds g); cbn [existsb is]; rewrite ?orb_false_r; reflexivity.
      * unfold first_key. rewrite Ea. cbn [existsb]. rewrite orb_false_r. reflexivity.
    + rewrite marked_put. destruct Sh as [E | [E | [_ [a Ea]]]].
      * rewrite E. reflexivity.
      * rewrite E. unfold first_key, perhaps. cbn [keys]. destruct (binds g); cbn [existsb is]; rewrite ?orb_false_r; reflexivity.
      * unfold first_key. rewrite Ea. cbn [existsb]. rewrite orb_false_r. reflexivity.
Qed.

(* Worlds: without the calls that are known to have had no effect they are those of Monitors.v. *)
Notation world := (world positive).
Definition living (h : list made) : list made := filter (fun s => match keys s with [] => false | _ => true end) h.
Lemma living_told h : Forall (told positive) (living (seen_all h)).
Proof.
  induction h as [|[g k] h IH]; cbn [seen_all map living filter fst snd]; [constructor|]. fold (seen_all h). fold (living (seen_all h)).
  assert (Sh := shape g k). cbv zeta in Sh. destruct (keys (seen_as g k)) as [|a l] eqn:E; [exact IH|]. constructor; [|exact IH].
  destruct Sh as [S | [S | [_ [b Eb]]]]; [rewrite S in E; discriminate | |].
  - rewrite S. split; [unfold perhaps; cbn [keys]; destruct (binds g); discriminate | discriminate].
  - split; rewrite E, Eb; [discriminate | eauto].
Qed.
Lemma living_same h : forall k, worst_first k (living (seen_all h)) = worst_first k (seen_all h) /\
  worst_second k (living (seen_all h)) = worst_second k (seen_all h).
Proof.
  induction h as [|[g x] h IH]; intros k; cbn [seen_all map living filter fst snd]; [auto|]. fold (seen_all h). fold (living (seen_all h)).
  destruct (IH k) as [I1 I2]. assert (Sh := shape g x). cbv zeta in Sh. set (s := seen_as g x) in *.
  unfold Monitors.worst_first, Monitors.worst_second in *. cbn [fold_right].
  destruct (keys s) as [|a l] eqn:E.
  - destruct Sh as [S | [S | [_ [b Eb]]]]; [|rewrite S in E; unfold perhaps in E; cbn [keys] in E; destruct (binds g); discriminate | congruence].
    rewrite I1, I2, S. split; [destruct m; reflexivity | reflexivity].
  - cbn [fold_right]. rewrite I1, I2. auto.
Qed.
Lemma living_world h : forall w, world (seen_all h) w -> exists w', world (living (seen_all h)) w' /\ Monitors.trace positive w' = Monitors.trace positive w.
Proof.
  induction h as [|[g k] h IH]; intros w Hw; cbn [seen_all map living filter fst snd] in *; inversion Hw as [|? x ? w' Hx Hw']; subst.
  - exists []. split; [constructor | reflexivity].
  - fold (seen_all h) in *. fold (living (seen_all h)). destruct (IH w' Hw') as [v [Hv Ev]].
    destruct (keys (seen_as g k)) as [|a l] eqn:E.
    + exists v. split; [exact Hv|]. rewrite Ev. destruct x as [c|]; [|reflexivity]. cbn [Monitors.may] in Hx. rewrite E in Hx. destruct Hx as [[] _].
    + exists (x :: v). split; [constructor; assumption|]. unfold Monitors.trace in *. cbn [flat_map]. rewrite Ev. reflexivity.
Qed.
Lemma knowing_is_a_world g k x : Monitors.may positive (seen_as g k) x -> Monitors.may positive (seen_as g Unknown) x.
Proof.
  assert (C : forall told l, comes told l <> Came -> l <> []) by (intros told [|? ?] Hc; [cbn in Hc; congruence | discriminate]).
  destruct k as [| |l all told|]; cbn [seen_as]; auto.
  - destruct x; cbn [Monitors.may keys nothing certain]; [intros [[] _] | reflexivity].
  - destruct forbids; [auto|]. destruct x; cbn [Monitors.may keys nothing certain]; [intros [[] _] | reflexivity].
  - destruct (comes told (binds g)) eqn:E; [| |auto]; (destruct x as [c|]; cbn [Monitors.may perhaps keys certain key_of_second]; [|discriminate]);
      intros [[<- | []] Hs]; (split; [|exact Hs]).
    + destruct (binds g); left; reflexivity.
    + assert (N : binds g <> []) by (apply (C told); congruence). destruct (binds g); [congruence | right; left; reflexivity].
Qed.
Lemma learned_worlds h h' : learned may_be_told h h' -> forall w, world (seen_all h') w -> world (seen_all h) w.
Proof.
  induction 1 as [g k h _ | c h h' _ IH]; intros w Hw; cbn [seen_all map] in *; inversion Hw as [|? x ? w' Hx Hw']; subst.
  - constructor; [exact (knowing_is_a_world g k x Hx) | exact Hw'].
  - constructor; [exact Hx | exact (IH w' Hw')].
Qed.

Lemma orders_alike f f' g g' c : (forall k, f k = f' k) -> (forall k, g k = g' k) ->
  orders positive Pos.eq_dec m f g c = orders positive Pos.eq_dec m f' g' c.
Proof. intros Ef Eg. unfold orders. destruct m, (fst c), (snd c); rewrite ?Ef, ?Eg; reflexivity. Qed.

(* Whatever was done of what is not known, and whenever the rest became known: the calls done meet the monitor. *)
Theorem order_is_kept events : keeps_order events = true ->
  forall w, world (seen_all (history [] events)) w -> meets positive m (Monitors.trace positive w).
Proof.
  unfold keeps_order. destruct (goes remember lets_order may_be_told start [] events) as [[s st]|] eqn:E; [|discriminate]. intros _.
  destruct (machine_decided _ _ _ _ _ _ _ E) as [_ Dh]. clear E. induction Dh as [|g h Dh IH L | h h' Dh IH L]; intros w Hw.
  - inversion Hw; subst. exact I.
  - cbn [seen_all map fst snd] in Hw. inversion Hw as [|? x ? w' Hx Hw']; subst. destruct x as [[a b]|]; [|exact (IH w' Hw')].
    change (Monitors.trace positive (Some (a, b) :: w')) with ((a, b) :: Monitors.trace positive w'). cbn [meets]. split; [|exact (IH w' Hw')]. destruct Hx as [Ha Hb]. cbn [fst snd seen_as] in Ha, Hb. subst b.
    destruct (living_world h w' Hw') as [v [Hv <-]].
    apply (one_memory_is_as_good_as_all_worlds positive Pos.eq_dec m (living (seen_all h)) _ (living_told h)); [|exact Hv].
    unfold lets_order in L. rewrite forallb_forall in L. specialize (L a Ha). cbn [key_of_second seen_as perhaps].
    rewrite <- L. apply orders_alike; intros k; [rewrite (proj1 (marks_are_worst h k)); apply living_same | rewrite (proj2 (marks_are_worst h k)); apply living_same].
  - exact (IH w (learned_worlds _ _ L w Hw)).
Qed.
End Order.

(* At most so many uses of each key, or so much of a sum, of the calls that were done. *)
Section Uses.
Variable most : Z.
Definition counts (g : glance) (k : known) : option positive := match k with Failed | Read => None | _ => as_second g end.
Definition number (p : PositiveMap.t Z) (k : positive) : Z := match PositiveMap.find k p with Some z => z | None => 0 end.
Definition count_up (g : glance) (k : known) (s : PositiveMap.t Z) : PositiveMap.t Z :=
  match counts g k with Some j => PositiveMap.add j (number s j + adds g) s | None => s end.
Definition lets_use (g : glance) (s : PositiveMap.t Z) : bool := match as_second g with Some k => number s k + adds g <=? most | None => true end.
Definition keeps_uses (events : list (event glance)) : bool :=
  match goes count_up lets_use may_be_told (PositiveMap.empty Z) [] events with Some _ => true | None => false end.

(* A call was done, or not: which is known of some. *)
Definition use_may (c : glance * known) (x : option (option positive * Z)) : Prop :=
  match snd c, x with
  | Failed, None | Read, None => True
  | Partly _ _ _, Some k => k = (as_second (fst c), adds (fst c))
  | Unknown, None => True
  | Unknown, Some k => k = (as_second (fst c), adds (fst c))
  | _, _ => False
  end.
Definition uses_of (k : positive) (w : list (option (option positive * Z))) : Z :=
  fold_right (fun x n => match x with Some (j, z) => if is positive Pos.eq_dec k j then z + n else n | None => n end) 0 w.
Notation comes_to := (comes_to count_up (PositiveMap.empty Z)).

Lemma never_more h w : Forall2 use_may h w -> forall k, uses_of k w <= number (comes_to h) k.
Proof.
  induction 1 as [|[g x] y h w Hxy _ IH]; intros k; cbn [Sessions.comes_to fold_right uses_of fst snd].
  - unfold number. rewrite PositiveMap.gempty. lia.
  - specialize (IH k). fold (uses_of k w). fold (comes_to h). set (b := comes_to h) in *. clearbody b.
    assert (U : number b k <= number (count_up g x b) k).
    { assert (A := Z.le_max_l 0 (weighs g)). fold (adds g) in A. unfold count_up. destruct (counts g x) as [j|]; [|lia]. unfold number at 2. destruct (Pos.eq_dec j k) as [-> | N].
      - rewrite PositiveMap.gss. lia.
      - rewrite PositiveMap.gso by congruence. fold (number b k). lia. }
    destruct y as [[j z]|]; [|lia]. destruct (is positive Pos.eq_dec k j) eqn:E; [|lia]. apply is_true in E. subst j.
    assert (N : counts g x = Some k /\ z = adds g) by (destruct x; cbn [use_may fst snd counts] in *; try contradiction; split; congruence).
    destruct N as [N ->]. unfold count_up. rewrite N. unfold number at 1. rewrite PositiveMap.gss. lia.
Qed.
Lemma learned_uses h h' : learned may_be_told h h' -> forall w, Forall2 use_may h' w -> Forall2 use_may h w.
Proof.
  induction 1 as [g k h _ | c h h' _ IH]; intros w Hw; inversion Hw as [|? x ? w' Hx Hw']; subst.
  - constructor; [|exact Hw']. destruct k, x; cbn [use_may fst snd] in *; auto; contradiction.
  - constructor; [exact Hx | exact (IH w' Hw')].
Qed.
Theorem uses_are_kept events : 0 <= most -> keeps_uses events = true ->
  forall w, Forall2 use_may (history [] events) w -> forall k, uses_of k w <= most.
Proof.
  intros M. unfold keeps_uses. destruct (goes count_up lets_use may_be_told _ [] events) as [[s st]|] eqn:E; [|discriminate]. intros _.
  destruct (machine_decided _ _ _ _ _ _ _ E) as [_ Dh]. clear E. induction Dh as [|g h Dh IH L | h h' Dh IH L]; intros w Hw k.
  - inversion Hw; subst. exact M.
  - inversion Hw as [|? x ? w' Hx Hw']; subst. cbn [uses_of fold_right]. fold (uses_of k w'). specialize (IH w' Hw' k).
    destruct x as [[j z]|]; [|exact IH]. destruct (is positive Pos.eq_dec k j) eqn:E; [|exact IH]. apply is_true in E. subst j.
    cbn [use_may fst snd] in Hx. injection Hx as Hx ->. unfold lets_use in L. rewrite <- Hx in L. apply Z.leb_le in L.
    assert (B := never_more h w' Hw' k). lia.
  - exact (IH w (learned_uses _ _ L w Hw) k).
Qed.
End Uses.

(* Errors that were read, of a forbid `before` or `with` of two patterns: they count as done, whatever would have been observed. *)
Section Errors.
Variable both : bool.                     (* with: in any order *)
Definition sides := (bool * bool)%type.   (* whether a call may be in the first pattern, and in the second *)
Definition read_so_far (c : sides) (k : known) (s : sides) : sides := match k with Read => (fst s || fst c, snd s || snd c) | _ => s end.
Definition lets_error (c : sides) (s : sides) : bool := negb (fst s && snd c) && negb (both && snd s && fst c).
Definition told_any (c : sides) (k : known) : bool := true.
Definition minds_errors (events : list (event sides)) : bool :=
  match goes read_so_far lets_error told_any (false, false) [] events with Some _ => true | None => false end.

Lemma read_flags h : let s := comes_to read_so_far (false, false) h in
  (fst s = true <-> exists c, In (c, Read) h /\ fst c = true) /\ (snd s = true <-> exists c, In (c, Read) h /\ snd c = true).
Proof.
  cbv zeta. induction h as [|[c k] h [I1 I2]].
  - cbn. split; (split; [discriminate | intros [c [[] _]]]).
  - cbn [Sessions.comes_to fold_right fst snd]. fold (comes_to read_so_far (false, false) h). set (s := comes_to read_so_far (false, false) h) in *.
    clearbody s. assert (K : forall f : sides -> bool, (exists d, In (d, Read) ((c, k) :: h) /\ f d = true) <->
      (exists d, In (d, Read) h /\ f d = true) \/ (k = Read /\ f c = true)).
    { intros f. split.
      - intros [d [[E | Hin] Hd]]; [right; injection E as -> ->; auto | left; eauto].
      - intros [[d [Hin Hd]] | [-> Hc]]; [exists d; split; [right; exact Hin | exact Hd] | exists c; split; [left; reflexivity | exact Hc]]. }
    rewrite (K fst), (K snd), <- I1, <- I2. destruct k; cbn [read_so_far fst snd]; rewrite ?orb_true_iff; split; (split; [tauto | intros [? | [? ?]]; auto; discriminate]).
Qed.
Lemma goes_through events : forall now s e1 c e2, events = e1 ++ Called c :: e2 -> goes read_so_far lets_error told_any now s events <> None ->
  exists now' s', goes read_so_far lets_error told_any now s e1 = Some (now', s') /\ lets_error c now' = true.
Proof.
  induction events as [|e events IH]; intros now s e1 c e2 E G; [destruct e1; discriminate|].
  destruct e1 as [|e0 e1]; cbn [app] in E; injection E as -> E.
  - cbn [goes] in *. exists now, s. split; [reflexivity|]. destruct (lets_error c now); [reflexivity | congruence].
  - cbn [goes] in *. destruct e0 as [c0 | back k].
    + destruct (lets_error c0 now); [|congruence]. exact (IH _ _ e1 c e2 E G).
    + destruct (retell read_so_far told_any back k s) as [[s1 now1]|]; [|congruence]. exact (IH _ _ e1 c e2 E G).
Qed.
(* No call that may be in the second pattern is let through behind one that may be in the first, and whose error was read by then. *)
Theorem errors_are_minded events : minds_errors events = true -> forall e1 c e2, events = e1 ++ Called c :: e2 ->
  forall d, In (d, Read) (history [] e1) -> ~ (fst d = true /\ snd c = true) /\ (both = true -> ~ (snd d = true /\ fst c = true)).
Proof.
  unfold minds_errors. destruct (goes read_so_far lets_error told_any (false, false) [] events) as [x|] eqn:G; [|discriminate]. intros _ e1 c e2 E d Hd.
  assert (N : goes read_so_far lets_error told_any (false, false) [] events <> None) by (rewrite G; discriminate).
  destruct (goes_through events _ _ e1 c e2 E N) as [now [s [G1 L]]].
  destruct (machine_decided _ _ _ _ _ _ _ G1) as [-> _]. unfold lets_error in L. rewrite andb_true_iff, !negb_true_iff in L. destruct L as [L1 L2].
  destruct (read_flags (history [] e1)) as [F1 F2]. split.
  - intros [D1 D2]. assert (X : fst (comes_to read_so_far (false, false) (history [] e1)) = true) by (apply F1; eauto). rewrite X, D2 in L1. discriminate.
  - intros -> [D1 D2]. assert (X : snd (comes_to read_so_far (false, false) (history [] e1)) = true) by (apply F2; eauto). rewrite X, D2 in L2. discriminate.
Qed.
End Errors.
