(* Statements that an automaton leaves to those who go through it: what each says of a whole plan, and what is remembered
   of the calls so far to keep it call by call.
   docs/spec/core.md, section 5; docs/spec/artifact.md, section 7 (relaxed). *)

From Coq Require Import List ZArith Lia Bool.
From Tcc Require Import Automaton Certificates Prefix Enforced.
Import ListNotations.
Local Open Scope Z_scope.

(* Over calls by their numbers: what each adds to a sum, and sets of them. *)
Inductive statement :=
| AtMost (amount : Z -> Z) (most : Z)
| AtLeast (of : Z -> bool) (least : Z)
| Before (first second : Z -> bool) | After (first second : Z -> bool) | Each (first second : Z -> bool)
| NeverBefore (first second : Z -> bool) | NeverWith (first second : Z -> bool)
| NeverNext (chain : list (Z -> bool)).

(* What it says. *)
Fixpoint total (amount : Z -> Z) (w : list Z) : Z := match w with [] => 0 | c :: w => amount c + total amount w end.
Definition one_of (of : Z -> bool) (c : Z) : Z := if of c then 1 else 0.
Definition free_of (set : Z -> bool) (w : list Z) : Prop := forall x, In x w -> set x = false.
Definition meets (s : statement) (w : list Z) : Prop :=
  match s with
  | AtMost amount most => total amount w <= most
  | AtLeast of least => least <= total (one_of of) w
  | Before f s => forall l c r, w = l ++ c :: r -> s c = true -> exists x, In x l /\ f x = true
  | After f s => forall l c r, w = l ++ c :: r -> s c = true -> exists x, In x r /\ f x = true
  | Each f s => forall l c r, w = l ++ c :: r -> s c = true -> exists k x m, l = k ++ x :: m /\ f x = true /\ free_of s (x :: m)
  | NeverBefore f s => forall l c r, w = l ++ c :: r -> s c = true -> free_of f l
  | NeverWith f s => forall x y, In x w -> In y w -> ~ (f x = true /\ s y = true)
  | NeverNext chain => forall l m r, w = l ++ m ++ r -> ~ Forall2 (fun set c => set c = true) chain m
  end.
(* What holds of a plan's beginning, too, where it holds of the plan. *)
Definition lasting (s : statement) : bool := match s with AtLeast _ _ | After _ _ => false | _ => true end.
Definition unbroken (s : statement) (w : list Z) : Prop := lasting s = true -> meets s w.

(* What is remembered. *)
Inductive memory := Count (n : Z) | Flags (l : list bool).
Definition at_first (s : statement) : memory :=
  match s with
  | AtMost _ _ | AtLeast _ _ => Count 0
  | NeverWith _ _ => Flags [false; false]
  | NeverNext chain => Flags (map (fun _ => false) chain)
  | _ => Flags [false]
  end.
(* Of the first calls of a chain so many have just matched. *)
Fixpoint matched (chain : list (Z -> bool)) (ready : list bool) (c : Z) : list bool :=
  match chain, ready with set :: chain, r :: ready => (r && set c) :: matched chain ready c | _, _ => [] end.
Definition keep (s : statement) (m : memory) (c : Z) : option memory :=
  match s, m with
  | AtMost amount most, Count n => let n := n + amount c in if n <=? most then Some (Count n) else None
  | AtLeast of least, Count n => Some (Count (Z.min least (n + one_of of c)))
  | Before f s, Flags [seen] => if negb seen && s c then None else Some (Flags [seen || f c])
  | After f s, Flags [owed] => Some (Flags [s c || (owed && negb (f c))])
  | Each f s, Flags [since] => if s c then (if since then Some (Flags [false]) else None) else Some (Flags [since || f c])
  | NeverBefore f s, Flags [seen] => if seen && s c then None else Some (Flags [seen || f c])
  | NeverWith f s, Flags [x; y] => let x := x || f c in let y := y || s c in if x && y then None else Some (Flags [x; y])
  | NeverNext chain, Flags ready => let found := matched chain (true :: ready) c in if last found false then None else Some (Flags found)
  | _, _ => None
  end.
Definition may_stop (s : statement) (m : memory) : bool :=
  match s, m with
  | AtMost _ most, Count n => n <=? most
  | AtLeast _ least, Count n => least <=? n
  | After _ _, Flags [owed] => negb owed
  | (AtMost _ _ | AtLeast _ _ | After _ _), _ => false
  | _, _ => true
  end.
Definition shaped (s : statement) (m : memory) : Prop :=
  match s, m with NeverNext chain, Flags ready => length ready = length chain | _, _ => True end.
Fixpoint same_flags (l m : list bool) : bool :=
  match l, m with [], [] => true | x :: l, y :: m => Bool.eqb x y && same_flags l m | _, _ => false end.
Definition same_memory (m n : memory) : bool :=
  match m, n with Count x, Count y => x =? y | Flags l, Flags k => same_flags l k | _, _ => false end.

(* Of all of them. *)
Fixpoint keep_all (l : list statement) (ms : list memory) (c : Z) : option (list memory) :=
  match l, ms with
  | [], [] => Some []
  | s :: l, m :: ms =>
      match keep s m c with Some m => match keep_all l ms c with Some ms => Some (m :: ms) | None => None end | None => None end
  | _, _ => None
  end.
Fixpoint all_stop (l : list statement) (ms : list memory) : bool :=
  match l, ms with [], [] => true | s :: l, m :: ms => may_stop s m && all_stop l ms | _, _ => false end.
Fixpoint same_memories (l m : list memory) : bool :=
  match l, m with [], [] => true | x :: l, y :: m => same_memory x y && same_memories l m | _, _ => false end.

Lemma same_memories_are l : forall m, same_memories l m = true -> l = m.
Proof.
  assert (F : forall l m, same_flags l m = true -> l = m).
  { clear. induction l as [|x l IH]; intros [|y m] E; cbn [same_flags] in E; try discriminate; [reflexivity|].
    apply andb_prop in E. destruct E as [E1 E2]. apply Bool.eqb_prop in E1. rewrite (IH _ E2). congruence. }
  induction l as [|x l IH]; intros [|y m] E; cbn [same_memories] in E; try discriminate; [reflexivity|].
  apply andb_prop in E. destruct E as [E1 E2]. rewrite (IH _ E2). f_equal. destruct x, y; cbn [same_memory] in E1; try discriminate.
  - apply Z.eqb_eq in E1. congruence.
  - f_equal. exact (F _ _ E1).
Qed.

(* What is remembered is what it should be. *)
Definition knows (s : statement) (w : list Z) (m : memory) : Prop :=
  match s, m with
  | AtMost amount _, Count n => n = total amount w
  | AtLeast of least, Count n => n = total (one_of of) w \/ (least <= n /\ least <= total (one_of of) w)
  | Before f _, Flags [seen] | NeverBefore f _, Flags [seen] => seen = existsb f w
  | After f s, Flags [owed] => owed = true <-> exists l c r, w = l ++ c :: r /\ s c = true /\ free_of f r
  | Each f s, Flags [since] => since = true <-> exists k x m, w = k ++ x :: m /\ f x = true /\ free_of s (x :: m)
  | NeverWith f s, Flags [x; y] => x = existsb f w /\ y = existsb s w
  | NeverNext chain, Flags ready => length ready = length chain /\ forall i, (i < length chain)%nat ->
      (nth i ready false = true <-> exists l m, w = l ++ m /\ Forall2 (fun set c => set c = true) (firstn (S i) chain) m)
  | _, _ => False
  end.
(* Sums that never fall, and that no empty plan is too much for; chains that are not empty. *)
Definition fair (s : statement) : Prop :=
  match s with AtMost amount most => 0 <= most /\ forall c, 0 <= amount c | NeverNext chain => chain <> [] | _ => True end.

Lemma total_app amount w : forall v, total amount (w ++ v) = total amount w + total amount v.
Proof. induction w as [|c w IH]; intros v; cbn [app total]; [lia|]. rewrite IH. lia. Qed.
Lemma split_last (w l r : list Z) c x : w ++ [c] = l ++ x :: r -> (r = [] /\ l = w /\ x = c) \/ exists r', r = r' ++ [c] /\ w = l ++ x :: r'.
Proof.
  intros E. destruct r as [|y r] using rev_ind.
  - apply app_inj_tail in E. destruct E as [-> ->]. left. auto.
  - clear IHr. right. rewrite app_comm_cons, app_assoc in E. apply app_inj_tail in E. destruct E as [E ->]. eauto.
Qed.
Lemma split_first (w : list Z) c x r l : l ++ x :: r = w -> l ++ x :: (r ++ [c]) = w ++ [c].
Proof. intros <-. rewrite <- app_assoc. reflexivity. Qed.
Lemma existsb_free (f : Z -> bool) w : existsb f w = false <-> free_of f w.
Proof.
  unfold free_of. split.
  - intros E x Hx. destruct (f x) eqn:Fx; [|reflexivity]. exfalso. assert (existsb f w = true) by (apply existsb_exists; eauto). congruence.
  - intros H. destruct (existsb f w) eqn:E; [|reflexivity]. apply existsb_exists in E. destruct E as [x [Hx Fx]]. rewrite (H x Hx) in Fx. discriminate.
Qed.
Lemma existsb_last (f : Z -> bool) w c : existsb f (w ++ [c]) = existsb f w || f c.
Proof. rewrite existsb_app. cbn [existsb]. rewrite orb_false_r. reflexivity. Qed.
Lemma free_last f w c : free_of f (w ++ [c]) <-> free_of f w /\ f c = false.
Proof. rewrite <- !existsb_free, existsb_last, orb_false_iff. tauto. Qed.
Lemma nil_no_split (l r : list Z) x : [] <> l ++ x :: r.
Proof. destruct l; discriminate. Qed.

Lemma first_knows s : fair s -> knows s [] (at_first s) /\ unbroken s [].
Proof.
  destruct s as [amount most | of least | f s | f s | f s | f s | f s | chain]; intros Fs; cbn [at_first knows]; split; unfold unbroken; cbn [lasting meets].
  - reflexivity.
  - intros _. apply Fs.
  - left. reflexivity.
  - discriminate.
  - reflexivity.
  - intros _ l c r E. destruct (nil_no_split _ _ _ E).
  - split; [discriminate | intros [l [c [r [E _]]]]; destruct (nil_no_split _ _ _ E)].
  - discriminate.
  - split; [discriminate | intros [l [c [r [E _]]]]; destruct (nil_no_split _ _ _ E)].
  - intros _ l c r E. destruct (nil_no_split _ _ _ E).
  - reflexivity.
  - intros _ l c r E. destruct (nil_no_split _ _ _ E).
  - split; reflexivity.
  - intros _ x y [].
  - split; [apply map_length|]. intros i Hi. split.
    + intros E. exfalso. clear Fs. revert i Hi E. induction chain as [|set chain IH]; intros i Hi E; [destruct i; discriminate|].
      destruct i as [|i]; cbn [map nth] in E; [discriminate | apply (IH i); [simpl in Hi; lia | exact E]].
    + intros [l [m [E A]]]. destruct l, m; try discriminate. destruct chain; [simpl in Hi; lia | inversion A].
  - intros _ l m r E A. destruct l, m, r; try discriminate. inversion A. apply Fs. auto.
Qed.

Lemma matched_nth chain c : forall ready i, nth i (matched chain ready c) false = nth i ready false && match nth_error chain i with Some set => set c | None => false end.
Proof.
  induction chain as [|set chain IH]; intros ready i; cbn [matched].
  - destruct i; cbn [nth nth_error]; rewrite andb_false_r; reflexivity.
  - destruct ready as [|r ready]; [destruct i; reflexivity|]. destruct i as [|i]; cbn [nth nth_error]; [reflexivity | apply IH].
Qed.
Lemma matched_length chain c : forall ready, (length chain <= length ready)%nat -> length (matched chain ready c) = length chain.
Proof.
  induction chain as [|set chain IH]; intros [|r ready] Hl; cbn [matched length] in *; try reflexivity; [lia|]. f_equal. apply IH. lia.
Qed.
Lemma firstn_more {X} (l : list X) : forall i x, nth_error l i = Some x -> firstn (S i) l = firstn i l ++ [x].
Proof.
  induction l as [|y l IH]; intros [|i] x E; cbn [nth_error] in E; try discriminate.
  - injection E as ->. reflexivity.
  - change (firstn (S (S i)) (y :: l)) with (y :: firstn (S i) l). rewrite (IH _ _ E). reflexivity.
Qed.
Lemma last_nth (l : list bool) : last l false = nth (length l - 1) l false.
Proof.
  induction l as [|x l IH]; [reflexivity|]. destruct l as [|y l]; [reflexivity|]. cbn [last length] in *. rewrite IH.
  replace (S (S (length l)) - 1)%nat with (S (S (length l) - 1)) by lia. reflexivity.
Qed.
Lemma matched_knows chain w ready c : knows (NeverNext chain) w (Flags ready) -> knows (NeverNext chain) (w ++ [c]) (Flags (matched chain (true :: ready) c)).
Proof.
  cbn [knows]. intros [L K]. split; [apply matched_length; simpl; lia|]. intros i Hi. rewrite matched_nth.
  destruct (nth_error chain i) as [set|] eqn:E; [|apply nth_error_None in E; lia]. rewrite andb_true_iff.
  rewrite (firstn_more _ _ _ E). destruct i as [|i]; cbn [nth].
  - cbn [firstn app]. split.
    + intros [_ Hs]. exists w, [c]. split; [reflexivity | constructor; [exact Hs | constructor]].
    + intros [l [m [Ew A]]]. split; [reflexivity|]. inversion A as [|? x ? m' Hx A']; subst. inversion A'; subst.
      apply app_inj_tail in Ew. destruct Ew as [_ ->]. exact Hx.
  - rewrite K by lia. split.
    + intros [[l [m [-> A]]] Hs]. exists l, (m ++ [c]). split; [rewrite app_assoc; reflexivity | apply Forall2_app; [exact A | constructor; [exact Hs | constructor]]].
    + intros [l [m [Ew A]]]. apply Forall2_app_inv_l in A. destruct A as [m1 [m2 [A1 [A2 ->]]]]. inversion A2 as [|? x ? m' Hx A']; subst.
      inversion A'; subst. rewrite app_assoc in Ew. apply app_inj_tail in Ew. destruct Ew as [-> ->]. split; [exists l, m1; auto | exact Hx].
Qed.

(* One call more. *)
Lemma keep_knows s w m c m' : fair s -> knows s w m -> unbroken s w -> keep s m c = Some m' -> knows s (w ++ [c]) m' /\ unbroken s (w ++ [c]).
Proof.
  unfold unbroken. destruct s as [amount most | of least | f s | f s | f s | f s | f s | chain]; intros Fs K U E.
  - destruct m as [n|]; [|destruct K]. cbn [keep knows lasting meets] in *. cbv zeta in E. destruct (Z.leb_spec (n + amount c) most) as [B|]; [|discriminate].
    injection E as <-. rewrite total_app. cbn [total]. subst n. split; [lia | intros _; lia].
  - destruct m as [n|]; [|destruct K]. cbn [keep knows lasting] in *. injection E as <-. rewrite total_app. cbn [total].
    assert (0 <= one_of of c <= 1) by (unfold one_of; destruct (of c); lia). split; [lia | discriminate].
  - destruct m as [|[|seen [|? ?]]]; try contradiction. cbn [keep knows lasting meets] in *. destruct (negb seen && s c) eqn:B; [discriminate|].
    injection E as <-. rewrite existsb_last, K. split; [reflexivity|]. intros _ l x r Ew Sx. apply split_last in Ew.
    destruct Ew as [[-> [-> ->]] | [r' [-> ->]]]; [|exact (U eq_refl l x r' eq_refl Sx)].
    rewrite Sx, andb_true_r in B. apply negb_false_iff in B. rewrite B in K. symmetry in K. apply existsb_exists in K. exact K.
  - destruct m as [|[|owed [|? ?]]]; try contradiction; destruct K as [K1 K2]. cbn [keep knows lasting] in *. injection E as <-. split; [|discriminate].
    split.
    + rewrite orb_true_iff, andb_true_iff, negb_true_iff. intros [Sc | [Ow Fc]].
      * exists w, c, []. split; [reflexivity | split; [exact Sc | intros ? []]].
      * destruct (K1 Ow) as [l [x [r [-> [Sx Fr]]]]]. exists l, x, (r ++ [c]).
        split; [rewrite <- app_assoc; reflexivity | split; [exact Sx | apply free_last; auto]].
    + intros [l [x [r [Ew [Sx Fr]]]]]. apply split_last in Ew. destruct Ew as [[-> [-> ->]] | [r' [-> ->]]]; [rewrite Sx; reflexivity|].
      apply free_last in Fr. destruct Fr as [Fr Fc]. rewrite Fc, (K2 ltac:(eauto 6)). apply orb_true_r.
  - destruct m as [|[|since [|? ?]]]; try contradiction; destruct K as [K1 K2]. cbn [keep knows lasting meets] in *.
    assert (Old : s c = false -> forall l x r, w ++ [c] = l ++ x :: r -> s x = true -> exists k y m, l = k ++ y :: m /\ f y = true /\ free_of s (y :: m)).
    { intros Sc l x r Ew Sx. apply split_last in Ew. destruct Ew as [[-> [-> ->]] | [r' [-> ->]]]; [congruence | exact (U eq_refl l x r' eq_refl Sx)]. }
    destruct (s c) eqn:Sc.
    + destruct since; [|discriminate]. injection E as <-. split.
      * split; [discriminate|]. intros [k [x [m [Ew [_ Fm]]]]]. exfalso. apply split_last in Ew. destruct Ew as [[-> [-> ->]] | [r' [-> ->]]].
        -- assert (s c = false) by (apply Fm; left; reflexivity). congruence.
        -- assert (s c = false) by (apply Fm; right; apply in_or_app; right; left; reflexivity). congruence.
      * intros _ l x r Ew Sx. apply split_last in Ew. destruct Ew as [[-> [-> ->]] | [r' [-> ->]]]; [exact (K1 eq_refl) | exact (U eq_refl l x r' eq_refl Sx)].
    + injection E as <-. split; [|intros _; exact (Old eq_refl)]. rewrite orb_true_iff. split.
      * intros [Si | Fc].
        -- destruct (K1 Si) as [k [x [m [-> [Fx Fm]]]]]. exists k, x, (m ++ [c]). split; [rewrite <- app_assoc; reflexivity | split; [exact Fx|]].
           rewrite app_comm_cons. apply free_last. auto.
        -- exists w, c, []. split; [reflexivity | split; [exact Fc | intros y [<- | []]; exact Sc]].
      * intros [k [x [m [Ew [Fx Fm]]]]]. apply split_last in Ew. destruct Ew as [[-> [-> ->]] | [r' [-> ->]]]; [right; exact Fx | left]. apply K2.
        exists k, x, r'. split; [reflexivity | split; [exact Fx|]]. rewrite app_comm_cons in Fm. apply free_last in Fm. apply Fm.
  - destruct m as [|[|seen [|? ?]]]; try contradiction. cbn [keep knows lasting meets] in *. destruct (seen && s c) eqn:B; [discriminate|].
    injection E as <-. rewrite existsb_last, K. split; [reflexivity|]. intros _ l x r Ew Sx. apply split_last in Ew.
    destruct Ew as [[-> [-> ->]] | [r' [-> ->]]]; [|exact (U eq_refl l x r' eq_refl Sx)].
    rewrite Sx, andb_true_r in B. apply existsb_free. congruence.
  - destruct m as [|[|x [|y [|? ?]]]]; try contradiction; destruct K as [K1 K2]. cbn [keep knows lasting meets] in *. cbv zeta in E.
    destruct ((x || f c) && (y || s c)) eqn:B; [discriminate|]. injection E as <-. rewrite !existsb_last, <- K1, <- K2. split; [auto|].
    intros _ a b Ha Hb [Fa Sb]. assert (X : x || f c = true).
    { rewrite K1, <- existsb_last. apply existsb_exists. eauto. }
    assert (Y : y || s c = true) by (rewrite K2, <- existsb_last; apply existsb_exists; eauto). rewrite X, Y in B. discriminate.
  - destruct m as [|ready]; [destruct K|]. assert (K' := matched_knows chain w ready c K). cbn [keep lasting meets] in *. cbv zeta in E.
    destruct (last (matched chain (true :: ready) c) false) eqn:B; [discriminate|]. injection E as <-. split; [exact K'|].
    intros _ l m r Ew A. destruct r as [|y r] using rev_ind.
    + rewrite app_nil_r in Ew. cbn [knows fair] in *. destruct K' as [L' K']. rewrite last_nth, L' in B.
      assert (P : (length chain - 1 < length chain)%nat) by (destruct chain; [congruence | simpl; lia]).
      assert (T : nth (length chain - 1) (matched chain (true :: ready) c) false = true); [|congruence].
      apply K'; [exact P|]. exists l, m. split; [exact Ew|]. rewrite firstn_all2 by lia. exact A.
    + clear IHr. rewrite !app_assoc in Ew. apply app_inj_tail in Ew. destruct Ew as [-> _]. rewrite <- app_assoc in U. exact (U eq_refl l m r eq_refl A).
Qed.
Lemma stopped_meets s w m : knows s w m -> unbroken s w -> may_stop s m = true -> meets s w.
Proof.
  unfold unbroken. destruct s as [amount most | of least | f s | f s | f s | f s | f s | chain]; intros K U E; try exact (U eq_refl).
  - destruct m as [n|]; [|destruct K]. cbn [knows may_stop meets] in *. apply Z.leb_le in E. lia.
  - destruct m as [|[|owed [|? ?]]]; try contradiction; destruct K as [_ K]. cbn [may_stop meets] in *. apply negb_true_iff in E. subst owed.
    intros l c r -> Sc. destruct (existsb f r) eqn:X; [apply existsb_exists, X|]. exfalso. apply existsb_free in X.
    discriminate (K ltac:(eauto 6)).
Qed.
(* And nothing else is refused. *)
Lemma refused_breaks s w m c : fair s -> knows s w m -> keep s m c = None -> forall r, ~ meets s (w ++ c :: r).
Proof.
  destruct s as [amount most | of least | f s | f s | f s | f s | f s | chain]; intros Fs K E r M.
  - destruct m as [n|]; [|destruct K]. cbn [keep knows fair meets] in *. cbv zeta in E. destruct (Z.leb_spec (n + amount c) most); [discriminate|].
    rewrite total_app in M. cbn [total] in M. assert (0 <= total amount r) by (clear - Fs; induction r as [|x r IH]; cbn [total]; [lia | specialize (proj2 Fs x); lia]).
    lia.
  - destruct m as [n|]; [|destruct K]. discriminate.
  - destruct m as [|[|seen [|? ?]]]; try contradiction. cbn [keep knows meets] in *. destruct (negb seen && s c) eqn:B; [|discriminate].
    apply andb_prop in B. destruct B as [B Sc]. apply negb_true_iff in B. rewrite B in K. destruct (M w c r eq_refl Sc) as [x Hx].
    symmetry in K. apply existsb_free in K. destruct Hx as [Hx Fx]. rewrite (K x Hx) in Fx. discriminate.
  - destruct m as [|[|owed [|? ?]]]; try contradiction. discriminate.
  - destruct m as [|[|since [|? ?]]]; try contradiction. cbn [keep knows meets] in *. destruct (s c) eqn:Sc; [|discriminate].
    destruct since; [discriminate|]. assert (X := proj2 K (M w c r eq_refl Sc)). discriminate.
  - destruct m as [|[|seen [|? ?]]]; try contradiction. cbn [keep knows meets] in *. destruct (seen && s c) eqn:B; [|discriminate].
    apply andb_prop in B. destruct B as [B Sc]. rewrite B in K. symmetry in K. apply existsb_exists in K. destruct K as [x [Hx Fx]].
    rewrite (M w c r eq_refl Sc x Hx) in Fx. discriminate.
  - destruct m as [|[|x [|y [|? ?]]]]; try contradiction. cbn [keep knows meets] in *. destruct K as [-> ->]. cbv zeta in E. rewrite <- !existsb_last in E.
    destruct (existsb f (w ++ [c]) && existsb s (w ++ [c])) eqn:B; [|discriminate]. apply andb_prop in B. destruct B as [B1 B2].
    apply existsb_exists in B1. apply existsb_exists in B2. destruct B1 as [x [Hx Fx]], B2 as [y [Hy Sy]].
    change (c :: r) with ([c] ++ r) in M. rewrite app_assoc in M.
    exact (M x y (in_or_app _ _ _ (or_introl Hx)) (in_or_app _ _ _ (or_introl Hy)) (conj Fx Sy)).
  - destruct m as [|ready]; [destruct K|]. assert (K' := matched_knows chain w ready c K). cbn [keep meets knows fair] in *. cbv zeta in E.
    destruct (last (matched chain (true :: ready) c) false) eqn:B; [|discriminate]. destruct K' as [L' K']. rewrite last_nth, L' in B.
    assert (P : (length chain - 1 < length chain)%nat) by (destruct chain; [congruence | simpl; lia]).
    apply (K' _ P) in B. destruct B as [l [m [Ew A]]]. rewrite firstn_all2 in A by lia. apply (M l m r); [|exact A].
    change (c :: r) with ([c] ++ r). rewrite app_assoc, Ew, <- app_assoc. reflexivity.
Qed.
Lemma meets_stops s w m : knows s w m -> meets s w -> may_stop s m = true.
Proof.
  destruct s as [amount most | of least | f s | f s | f s | f s | f s | chain]; intros K M; destruct m as [n|ready]; try contradiction; try reflexivity.
  - cbn [knows may_stop meets] in *. apply Z.leb_le. lia.
  - cbn [knows may_stop meets] in *. apply Z.leb_le. lia.
  - destruct ready as [|owed [|? ?]]; try contradiction. cbn [knows may_stop meets] in *. destruct owed; [|reflexivity]. exfalso.
    destruct (proj1 K eq_refl) as [l [c [r [-> [Sc Fr]]]]]. destruct (M l c r eq_refl Sc) as [x [Hx Fx]]. rewrite (Fr x Hx) in Fx. discriminate.
Qed.

(* All of them. *)
Definition remembers (l : list statement) (w : list Z) (ms : list memory) : Prop := Forall2 (fun s m => knows s w m /\ unbroken s w) l ms.
Lemma first_remembers l : Forall fair l -> remembers l [] (map at_first l).
Proof. unfold remembers. induction 1 as [|s l Fs _ IH]; constructor; [apply first_knows, Fs | exact IH]. Qed.
Lemma keep_all_remembers l w ms c : Forall fair l -> remembers l w ms ->
  match keep_all l ms c with
  | Some ms' => remembers l (w ++ [c]) ms'
  | None => exists s, In s l /\ forall r, ~ meets s (w ++ c :: r)
  end.
Proof.
  intros Fl R. induction R as [|s m l ms [K U] _ IH]; inversion Fl as [|? ? Fs Fl']; subst; cbn [keep_all]; [constructor|].
  destruct (keep s m c) as [m'|] eqn:E.
  - specialize (IH Fl'). destruct (keep_all l ms c) as [ms'|].
    + constructor; [exact (keep_knows s w m c m' Fs K U E) | exact IH].
    + destruct IH as [x [Hx B]]. exists x. split; [right; exact Hx | exact B].
  - exists s. split; [left; reflexivity | exact (refused_breaks s w m c Fs K E)].
Qed.
Lemma all_stop_meets l w ms : remembers l w ms -> (all_stop l ms = true <-> Forall (fun s => meets s w) l).
Proof.
  induction 1 as [|s m l ms [K U] _ IH]; cbn [all_stop]; [split; [constructor | reflexivity]|].
  rewrite andb_true_iff, IH, Forall_cons_iff. split; intros [E1 E2]; (split; [|exact E2]).
  - exact (stopped_meets s w m K U E1).
  - exact (meets_stops s w m K E1).
Qed.

(* The automaton with what is remembered: its plans are those that meet every statement. *)
Section Automaton.
Variable D : automaton.
Hypothesis C1 : forall q, NoDup (map fst (edges D q)).
Variable l : list statement.
Hypothesis all_fair : Forall fair l.
Definition see (ms : list memory) (a : call) : option (list memory) := keep_all l ms (Z.of_nat a).
Definition beside : automaton := enforced D (list memory) see (all_stop l).
Notation numbers := (map Z.of_nat).

Lemma led_remembers calls : forall q w ms p ks, remembers l w ms -> led beside (q, ms) calls = Some (p, ks) -> remembers l (w ++ numbers calls) ks.
Proof.
  induction calls as [|a calls IH]; intros q w ms p ks R E; cbn [led map] in *.
  - injection E as <- <-. rewrite app_nil_r. exact R.
  - destruct (follow beside (q, ms) a) as [[r j]|] eqn:Ef; [|discriminate].
    apply (follow_edge _ (enforced_distinct D C1 _ see (all_stop l))) in Ef. cbn [edges beside enforced fst snd] in Ef.
    apply in_some in Ef. destruct Ef as [[b r'] [_ Ee]]. unfold entry in Ee. cbn [fst snd] in Ee.
    assert (S := keep_all_remembers l w ms (Z.of_nat b) all_fair R). unfold see in Ee.
    destruct (keep_all l ms (Z.of_nat b)) as [j'|]; [|discriminate]. injection Ee as -> -> ->.
    change (Z.of_nat a :: numbers calls) with ([Z.of_nat a] ++ numbers calls). rewrite app_assoc. exact (IH _ _ _ _ _ S E).
Qed.
Lemma allowed_meets calls : forall w ms, remembers l w ms -> (allowed _ see (all_stop l) ms calls <-> Forall (fun s => meets s (w ++ numbers calls)) l).
Proof.
  induction calls as [|a calls IH]; intros w ms R; cbn [allowed map].
  - rewrite app_nil_r. exact (all_stop_meets l w ms R).
  - assert (S := keep_all_remembers l w ms (Z.of_nat a) all_fair R). unfold see at 1.
    change (Z.of_nat a :: numbers calls) with ([Z.of_nat a] ++ numbers calls). rewrite app_assoc.
    destruct (keep_all l ms (Z.of_nat a)) as [k|].
    + rewrite <- (IH _ _ S). split; [intros [k' [E H]]; injection E as <-; exact H | eauto].
    + split; [intros [k [E _]]; discriminate|]. intros M. exfalso. destruct S as [s [Hs B]]. rewrite Forall_forall in M.
      apply (B (numbers calls)). specialize (M s Hs). rewrite <- app_assoc in M. exact M.
Qed.
Theorem plans_that_meet_all q calls :
  accepted beside (q, map at_first l) calls <-> accepted D q calls /\ Forall (fun s => meets s (numbers calls)) l.
Proof.
  unfold beside. rewrite enforced_plans, (allowed_meets calls [] _ (first_remembers l all_fair)). reflexivity.
Qed.
Theorem calls_that_break_none q calls : led beside (q, map at_first l) calls <> None ->
  led D q calls <> None /\ Forall (fun s => unbroken s (numbers calls)) l.
Proof.
  destruct (led beside (q, map at_first l) calls) as [[p k]|] eqn:E; [intros _ | congruence]. split.
  - destruct (prefix_of_enforced D C1 _ see (all_stop l) calls _ _ _ _ E) as [E' _]. congruence.
  - assert (R := led_remembers calls _ [] _ _ _ (first_remembers l all_fair) E). cbn [app] in R. clear E.
    clear - R. induction R as [|s m l' ms [_ U] _ IH]; constructor; [exact U | exact IH].
Qed.

(* Calls that no statement orders one against the other. *)
Definition unordered (a b : Z) (s : statement) : bool :=
  match s with
  | AtMost _ _ | AtLeast _ _ => true
  | NeverNext chain => forallb (fun set => negb (set a) && negb (set b)) chain
  | Before f s | After f s | Each f s | NeverBefore f s | NeverWith f s => negb (f a && s b) && negb (f b && s a)
  end.
Lemma matched_none chain c : forall ready, forallb (fun set => negb (set c)) chain = true -> (length chain <= length ready)%nat ->
  matched chain ready c = map (fun _ => false) chain.
Proof.
  induction chain as [|set chain IH]; intros [|r ready] E Hl; cbn [matched map forallb length] in *; try reflexivity; [lia|].
  apply andb_prop in E. destruct E as [E1 E2]. apply negb_true_iff in E1. rewrite E1, andb_false_r, IH by (auto; lia). reflexivity.
Qed.
Definition both (s : statement) (m : memory) (a b : Z) : option memory := match keep s m a with Some m => keep s m b | None => None end.
Lemma either_order s m a b : fair s -> shaped s m -> unordered a b s = true -> both s m a b = both s m b a.
Proof.
  unfold both. destruct s as [amount most | of least | f s | f s | f s | f s | f s | chain]; intros Fs Sh U; cbn [unordered] in U.
  - destruct m as [n|]; [|reflexivity]. cbn [keep fair] in *. cbv zeta. assert (A := proj2 Fs a). assert (B := proj2 Fs b).
    destruct (Z.leb_spec (n + amount a) most), (Z.leb_spec (n + amount b) most); try reflexivity.
    + replace (n + amount b + amount a) with (n + amount a + amount b) by lia. reflexivity.
    + destruct (Z.leb_spec (n + amount a + amount b) most); [lia | reflexivity].
    + destruct (Z.leb_spec (n + amount b + amount a) most); [lia | reflexivity].
  - destruct m as [n|]; [|reflexivity]. cbn [keep]. do 2 f_equal. unfold one_of. destruct (of a), (of b); lia.
  - destruct m as [|[|x [|? ?]]]; try reflexivity. cbn [keep].
    destruct (f a), (s a), (f b), (s b), x; try discriminate U; reflexivity.
  - destruct m as [|[|x [|? ?]]]; try reflexivity. cbn [keep].
    destruct (f a), (s a), (f b), (s b), x; try discriminate U; reflexivity.
  - destruct m as [|[|x [|? ?]]]; try reflexivity. cbn [keep].
    destruct (s a) eqn:Sa, (s b) eqn:Sb, x; destruct (f a), (f b); try discriminate U; cbn [keep]; rewrite ?Sa, ?Sb; reflexivity.
  - destruct m as [|[|x [|? ?]]]; try reflexivity. cbn [keep].
    destruct (f a), (s a), (f b), (s b), x; try discriminate U; reflexivity.
  - destruct m as [|[|x [|y [|? ?]]]]; try reflexivity. cbn [keep].
    destruct (f a), (s a), (f b), (s b), x, y; try discriminate U; reflexivity.
  - destruct m as [|ready]; [reflexivity|]. cbn [keep shaped] in *. cbv zeta.
    assert (Na : forallb (fun set : Z -> bool => negb (set a)) chain = true).
    { apply forallb_forall. intros x Hx. rewrite forallb_forall in U. specialize (U x Hx). apply andb_prop in U. apply U. }
    assert (Nb : forallb (fun set : Z -> bool => negb (set b)) chain = true).
    { apply forallb_forall. intros x Hx. rewrite forallb_forall in U. specialize (U x Hx). apply andb_prop in U. apply U. }
    assert (Le : forall k, length k = length chain -> (length chain <= length (true :: k))%nat) by (intros k; simpl; lia).
    rewrite (matched_none chain a (true :: ready) Na (Le _ Sh)), (matched_none chain b (true :: ready) Nb (Le _ Sh)).
    destruct (last _ false); [reflexivity|]. assert (Lm := map_length (fun _ : Z -> bool => false) chain).
    rewrite (matched_none chain a _ Na (Le _ Lm)), (matched_none chain b _ Nb (Le _ Lm)). reflexivity.
Qed.
Definition both_all (s : list statement) (ms : list memory) (a b : Z) : option (list memory) :=
  match keep_all s ms a with Some ms => keep_all s ms b | None => None end.
Lemma both_all_more s m k ms a b : both_all (s :: k) (m :: ms) a b =
  match both s m a b, both_all k ms a b with Some x, Some xs => Some (x :: xs) | _, _ => None end.
Proof.
  unfold both_all, both. cbn [keep_all]. destruct (keep s m a) as [m1|]; [|reflexivity].
  destruct (keep_all k ms a) as [ms1|]; cbn [keep_all]; [|destruct (keep s m1 b); reflexivity].
  destruct (keep s m1 b); reflexivity.
Qed.
Lemma all_either_order k w ms a b : Forall fair k -> remembers k w ms -> forallb (unordered a b) k = true -> both_all k ms a b = both_all k ms b a.
Proof.
  intros Fk R. revert Fk. induction R as [|s m k ms [K _] _ IH]; intros Fk U; [reflexivity|]. inversion Fk as [|? ? Fs Fk']; subst.
  cbn [forallb] in U. apply andb_prop in U. destruct U as [U1 U2]. rewrite !both_all_more, (IH Fk' U2), (either_order s m a b Fs); auto.
  destruct s, m; cbn [shaped knows] in *; try exact I. apply K.
Qed.
Theorem met_in_either_order a b : forallb (unordered (Z.of_nat a) (Z.of_nat b)) l = true -> forall before after,
  Forall (fun s => meets s (numbers (before ++ a :: b :: after))) l <-> Forall (fun s => meets s (numbers (before ++ b :: a :: after))) l.
Proof.
  intros U before after.
  assert (K : forall w ms, remembers l w ms -> allowed _ see (all_stop l) ms (before ++ a :: b :: after) <-> allowed _ see (all_stop l) ms (before ++ b :: a :: after)).
  { induction before as [|c before IH]; intros w ms R; cbn [app allowed].
    - assert (E := all_either_order l w ms _ _ all_fair R U). unfold both_all in E. assert (Sees : forall k c, see k c = keep_all l k (Z.of_nat c)) by reflexivity.
      split; intros [k [E1 [k' [E2 P]]]]; rewrite Sees in E1, E2; rewrite E1 in E; rewrite E2 in E; setoid_rewrite Sees.
      + destruct (keep_all l ms (Z.of_nat b)) as [j|]; [|discriminate]. exists j. split; [reflexivity|]. exists k'. auto.
      + destruct (keep_all l ms (Z.of_nat a)) as [j|]; [|discriminate]. exists j. split; [reflexivity|]. exists k'. auto.
    - assert (S := keep_all_remembers l w ms (Z.of_nat c) all_fair R). unfold see at 1 3.
      destruct (keep_all l ms (Z.of_nat c)) as [k|]; [|split; intros [k [E _]]; discriminate].
      split; intros [j [E P]]; injection E as <-; exists k; (split; [reflexivity|]); apply (IH _ _ S), P. }
  assert (R := first_remembers l all_fair). assert (M := fun calls => allowed_meets calls [] _ R). cbn [app] in M.
  rewrite <- !M. exact (K _ _ R).
Qed.
End Automaton.
