(* What a run covers: shares of the root, and that pops come to an end.
   docs/spec/ledger.md, section 9 (L608); docs/spec/race.md, sections 4, 9, 18 and 19.

   A piece of the frontier is a node, a leaf, or what is left of a node.  How words choose is left open:
   any child may be drawn, or the phantom mass where there is some; a node may also be expanded at once. *)

From Coq Require Import List Arith Bool Reals ZArith Lia Lra Permutation.
From Tcc Require Import Automaton Certificates Enforced Search Rest Artifact.
Import ListNotations.
Local Open Scope R_scope.

Section Coverage.
Variable M : automaton.
Variable root : state M.
Notation node := (node M).
Notation children := (children M root).
Variable w : call -> R.
Variable pool : node -> pool_t M.
Variable phantom : node -> Z.
Variable unit : node -> R.
Notation total := (total M).
Notation free := (free M).
Definition rate (v : node) : R := IZR (total (pool v) + phantom v) / unit v.
Hypothesis pool_free : forall v, free (pool v) = children v.
Hypothesis unit_pos : forall v, 0 < unit v.
Hypothesis call_mass : forall v m e, In (m, Some (Some e)) (pool v) -> IZR m / unit v = w (fst e) * rate (e :: v).
Hypothesis stop_mass : forall v m, In (m, Some None) (pool v) -> IZR m = unit v.

Fixpoint omega (v : node) : R := match v with [] => 1 | e :: u => w (fst e) * omega u end.

Inductive piece := Node (v : node) | Leaf (v : node) | Left (v : node) (R : pool_t M) (ph : Z).
Definition share (i : piece) : R :=
  match i with
  | Node v => omega v * rate v
  | Leaf v => omega v
  | Left v R ph => omega v * (IZR (total R + ph) / unit v)
  end.
Definition fits (i : piece) := match i with Left v R _ => incl R (pool v) | _ => True end.

Definition child_piece (v : node) (c : option (child M)) : list piece :=
  match c with Some (Some e) => [Node (e :: v)] | Some None => [Leaf v] | None => [] end.
Definition left_piece v R ph := match R with [] => [] | _ => [Left v R ph] end.
Definition forbidden (R : pool_t M) : Z := total (filter (fun x => match snd x with None => true | _ => false end) R).
Definition mass_lost v (z : Z) : R := omega v * (IZR z / unit v).

(* What a pop pushes, and what of the piece's share is lost by it. *)
Inductive pop : piece -> list piece -> R -> Prop :=
| expand v : pop (Node v) (flat_map (fun x => child_piece v (snd x)) (pool v))
                 (mass_lost v (phantom v + forbidden (pool v)))
| draw i v R ph m c R' : i = Node v /\ R = pool v /\ ph = phantom v \/ i = Left v R ph ->
    Permutation R ((m, c) :: R') ->
    pop i (child_piece v c ++ left_piece v R' ph)
          (mass_lost v ((match c with None => m | _ => 0 end) + match R' with [] => ph | _ => 0 end))
| phantom_drawn i v R ph : i = Node v /\ R = pool v /\ ph = phantom v \/ i = Left v R ph -> ph <> 0%Z ->
    pop i (left_piece v R 0) (mass_lost v (ph + match R with [] => 0 | _ => 0 end)).

Definition sum_of {A} (f : A -> R) (l : list A) := fold_right (fun x s => f x + s) 0 l.

Lemma sum_of_app {A} (f : A -> R) l m : sum_of f (l ++ m) = sum_of f l + sum_of f m.
Proof.
  induction l as [|x l IH]; [unfold sum_of; simpl; lra|].
  change (f x + sum_of f (l ++ m) = f x + sum_of f l + sum_of f m). rewrite IH. lra.
Qed.

Lemma sum_of_cons {A} (f : A -> R) x l : sum_of f (x :: l) = f x + sum_of f l.
Proof. reflexivity. Qed.

Lemma sum_of_perm {A} (f : A -> R) l m : Permutation l m -> sum_of f l = sum_of f m.
Proof. induction 1; unfold sum_of in *; cbn [fold_right]; lra. Qed.

Lemma total_perm R R' : Permutation R R' -> total R = total R'.
Proof. induction 1; unfold Rest.total in *; cbn [fold_right]; lia. Qed.

Lemma total_cons x R : total (x :: R) = (fst x + total R)%Z.
Proof. reflexivity. Qed.

Lemma child_share v m c : In (m, c) (pool v) ->
  sum_of share (child_piece v c) + mass_lost v (match c with None => m | _ => 0 end) = mass_lost v m.
Proof.
  intros H. assert (U := unit_pos v). unfold mass_lost. destruct c as [[e|]|]; cbn [child_piece sum_of fold_right share omega].
  - rewrite (call_mass v m e H). unfold Rdiv. rewrite Rmult_0_l. ring.
  - rewrite (stop_mass v m H). unfold Rdiv. rewrite Rinv_r by lra. lra.
  - lra.
Qed.

Lemma left_share v R ph : sum_of share (left_piece v R ph) + mass_lost v (match R with [] => ph | _ => 0 end)
  = mass_lost v (total R + ph).
Proof.
  unfold mass_lost. destruct R as [|x R]; cbn [left_piece sum_of fold_right share].
  - rewrite Z.add_0_l. lra.
  - unfold Rdiv. rewrite Rmult_0_l. lra.
Qed.

Lemma mass_lost_add v x y : mass_lost v (x + y) = mass_lost v x + mass_lost v y.
Proof. unfold mass_lost, Rdiv. rewrite plus_IZR. ring. Qed.

Lemma expand_share v R : incl R (pool v) ->
  sum_of share (flat_map (fun x => child_piece v (snd x)) R) + mass_lost v (forbidden R) = mass_lost v (total R).
Proof.
  induction R as [|[m c] R IH]; intros H.
  - cbn. unfold mass_lost, forbidden. cbn. lra.
  - specialize (IH (fun x Hx => H x (or_intror Hx))). assert (Hc := child_share v m c (H _ (or_introl eq_refl))).
    cbn [flat_map snd]. rewrite sum_of_app, total_cons, mass_lost_add. cbn [fst].
    assert (E : forbidden ((m, c) :: R) = ((match c with None => m | _ => 0 end) + forbidden R)%Z).
    { unfold forbidden. cbn [filter snd]. destruct c; reflexivity. }
    rewrite E, mass_lost_add. lra.
Qed.

(* The mass of a piece is that of what it pushes and of what is lost. *)
Theorem pops_keep_shares i J l : fits i -> pop i J l ->
  sum_of share J + l = share i /\ forall j, In j J -> fits j.
Proof.
  assert (start : forall j v R ph, fits j -> j = Node v /\ R = pool v /\ ph = phantom v \/ j = Left v R ph ->
            share j = mass_lost v (total R + ph) /\ incl R (pool v)).
  { intros j v R ph Hf [[-> [-> ->]] | ->]; split; try reflexivity; [intros x Hx; exact Hx | exact Hf]. }
  assert (plain : forall v c j, In j (child_piece v c) -> fits j).
  { intros v [[e|]|] j; [intros [<- | []] | intros [<- | []] | intros []]; exact I. }
  intros Hi H. destruct H as [v | i v R ph m c R' Hj HR | i v R ph Hj Hph].
  - split.
    + rewrite mass_lost_add, Rplus_comm, Rplus_assoc, (Rplus_comm (mass_lost v (forbidden _))), expand_share by (intros x Hx; exact Hx).
      cbn [share]. unfold rate. fold (mass_lost v (total (pool v) + phantom v)). rewrite mass_lost_add. lra.
    + intros j Hj. apply in_flat_map in Hj. destruct Hj as [x [_ Hj]]. exact (plain _ _ _ Hj).
  - destruct (start i v R ph Hi Hj) as [-> HRp].
    assert (HR' : incl ((m, c) :: R') (pool v)) by (intros x Hx; apply HRp, (Permutation_in _ (Permutation_sym HR)), Hx).
    split.
    + rewrite (total_perm _ _ HR), total_cons, sum_of_app, mass_lost_add. cbn [fst].
      assert (Hc := child_share v m c (HR' _ (or_introl eq_refl))). assert (Hl := left_share v R' ph).
      rewrite <- Z.add_assoc, mass_lost_add. lra.
    + intros j Hin. apply in_app_iff in Hin. destruct Hin as [Hin | Hin]; [exact (plain _ _ _ Hin)|].
      destruct R' as [|x R']; [destruct Hin | destruct Hin as [<- | []]]. cbn [fits]. intros y Hy. apply HR'. right. exact Hy.
  - destruct (start i v R ph Hi Hj) as [-> HRp]. split.
    + assert (Hl := left_share v R 0). rewrite Z.add_0_r in Hl.
      replace (match R with [] => 0 | _ :: _ => 0 end)%Z with 0%Z in * by (destruct R; reflexivity).
      rewrite Z.add_0_r, (mass_lost_add v (total R) ph). unfold mass_lost at 1 in Hl. unfold Rdiv at 1 in Hl.
      rewrite Rmult_0_l, Rmult_0_r in Hl. lra.
    + intros j Hin. destruct R as [|x R]; [destruct Hin | destruct Hin as [<- | []]]. exact HRp.
Qed.

Record covered := { frontier : list piece; leaves : list node; lost : R }.
Inductive step : covered -> covered -> Prop :=
| leaf F F' v L x : Permutation F (Leaf v :: F') ->
    step {| frontier := F; leaves := L; lost := x |} {| frontier := F'; leaves := v :: L; lost := x |}
| popped F F' i J l L x : Permutation F (i :: F') -> pop i J l ->
    step {| frontier := F; leaves := L; lost := x |} {| frontier := J ++ F'; leaves := L; lost := x + l |}.
Inductive steps : covered -> covered -> Prop :=
| none s : steps s s
| more s s' s'' : steps s s' -> step s' s'' -> steps s s''.
Definition begins : covered := {| frontier := [Node []]; leaves := []; lost := 0 |}.

Definition all s := sum_of share (frontier s) + sum_of omega (leaves s) + lost s.

(* Coverage: frontier, popped leaves and what was lost make up the root, exactly, at any time. *)
Theorem frontier_covers_the_root s : steps begins s ->
  rate [] = sum_of share (frontier s) + sum_of omega (leaves s) + lost s.
Proof.
  intros H. enough (K : all s = rate [] /\ forall i, In i (frontier s) -> fits i) by (symmetry; apply K).
  remember begins as b eqn:Eb. induction H as [s | s s' s'' H IH Hs].
  - subst s. split; [change (1 * rate [] + 0 + 0 + 0 = rate []); lra|]. intros i [<- | []]. exact I.
  - specialize (IH Eb). destruct IH as [E Hf]. unfold all in *.
    destruct Hs as [F F' v L x HF | F F' i J l L x HF Hp]; cbn [frontier leaves lost] in *;
      rewrite (sum_of_perm share _ _ HF) in E.
    + rewrite sum_of_cons in E. rewrite sum_of_cons. cbn [share] in E. split; [lra|].
      intros i Hi. apply Hf, (Permutation_in _ (Permutation_sym HF)). right. exact Hi.
    + assert (Hi : fits i) by (apply Hf, (Permutation_in _ (Permutation_sym HF)); left; reflexivity).
      destruct (pops_keep_shares i J l Hi Hp) as [E' HJ]. rewrite sum_of_app. split.
      * rewrite sum_of_cons in E. lra.
      * intros j Hj. apply in_app_iff in Hj. destruct Hj as [Hj | Hj]; [exact (HJ j Hj)|].
        apply Hf, (Permutation_in _ (Permutation_sym HF)). right. exact Hj.
Qed.

(* Pops come to an end: the size of a piece is more than that of all it pushes. *)
Definition entry_size (of : node -> nat) (v : node) (x : Z * option (child M)) : nat :=
  (2 + match snd x with Some (Some e) => of (e :: v) | Some None => 1 | None => 0 end)%nat.
Definition sizes (of : node -> nat) v R := list_sum (map (entry_size of v) R).
Fixpoint size_within (n : nat) (v : node) : nat :=
  match n with O => O | S n => (3 + sizes (size_within n) v (pool v))%nat end.
Definition depth v := number M (at_ M root v).
Definition node_size v := size_within (S (depth v)) v.

Lemma pool_falls v m e : In (m, Some (Some e)) (pool v) -> (depth (e :: v) < depth v)%nat.
Proof.
  intros H. assert (Hc : In (Some e) (children v)).
  { rewrite <- pool_free. unfold Rest.free. apply in_flat_map. exists (m, Some (Some e)). split; [exact H | left; reflexivity]. }
  apply in_children_call in Hc. destruct e as [a p]. exact (falls M _ a p Hc).
Qed.

Lemma size_enough n : forall m v, (depth v < n)%nat -> (depth v < m)%nat -> size_within n v = size_within m v.
Proof.
  induction n as [|n IH]; intros [|m] v Hn Hm; try lia. cbn [size_within].
  enough (E : sizes (size_within n) v (pool v) = sizes (size_within m) v (pool v)) by (rewrite E; reflexivity).
  unfold sizes. f_equal.
  apply map_ext_in. intros [z c] Hx. unfold entry_size. cbn [snd]. destruct c as [[e|]|]; auto.
  f_equal. apply pool_falls in Hx. apply IH; lia.
Qed.

Lemma node_size_eq v : node_size v = (3 + sizes node_size v (pool v))%nat.
Proof.
  unfold node_size at 1. cbn [size_within].
  enough (E : sizes (size_within (depth v)) v (pool v) = sizes node_size v (pool v)) by (rewrite E; reflexivity).
  unfold sizes. f_equal. apply map_ext_in.
  intros [z c] Hx. unfold entry_size. cbn [snd]. destruct c as [[e|]|]; auto. f_equal.
  apply pool_falls in Hx. unfold node_size. apply size_enough; lia.
Qed.

Definition size (i : piece) : nat :=
  match i with
  | Node v => node_size v
  | Leaf _ => 1
  | Left v R ph => (1 + (if (ph =? 0)%Z then 0 else 1) + sizes node_size v R)%nat
  end.
Definition size_all (l : list piece) := list_sum (map size l).

Lemma size_all_app l m : size_all (l ++ m) = (size_all l + size_all m)%nat.
Proof. unfold size_all. rewrite map_app. apply list_sum_app. Qed.

Lemma size_all_cons i l : size_all (i :: l) = (size i + size_all l)%nat.
Proof. reflexivity. Qed.

Lemma sizes_cons v x R : sizes node_size v (x :: R) = (entry_size node_size v x + sizes node_size v R)%nat.
Proof. reflexivity. Qed.

Lemma sizes_perm v R R' : Permutation R R' -> sizes node_size v R = sizes node_size v R'.
Proof. induction 1; rewrite ?sizes_cons in *; lia. Qed.

Lemma child_size v x : (size_all (child_piece v (snd x)) + 2 = entry_size node_size v x)%nat.
Proof.
  unfold entry_size. destruct (snd x) as [[e|]|]; cbn [child_piece]; rewrite ?size_all_cons; cbn [size];
    change (size_all []) with O; lia.
Qed.

Theorem pops_get_smaller i J l : pop i J l -> (size_all J < size i)%nat.
Proof.
  assert (L : forall v R ph, (size_all (left_piece v R ph) <= 2 + sizes node_size v R)%nat).
  { intros v [|x R] ph; cbn [left_piece]; rewrite ?size_all_cons; change (size_all []) with O; [lia|].
    cbn [size]. destruct (ph =? 0)%Z; lia. }
  assert (L0 : forall v R, (size_all (left_piece v R 0) <= 1 + sizes node_size v R)%nat).
  { intros v [|x R]; cbn [left_piece]; rewrite ?size_all_cons; change (size_all []) with O; cbn [size Z.eqb]; lia. }
  intros H. destruct H as [v | i v R ph m c R' Hj HR | i v R ph Hj Hph].
  - cbn [size]. rewrite node_size_eq.
    enough (size_all (flat_map (fun x => child_piece v (snd x)) (pool v)) <= sizes node_size v (pool v))%nat by lia.
    induction (pool v) as [|x R IH]; [reflexivity|]. cbn [flat_map]. rewrite size_all_app, sizes_cons.
    assert (Hc := child_size v x). lia.
  - rewrite size_all_app. assert (Hc := child_size v (m, c)). cbn [snd] in Hc.
    assert (E : sizes node_size v R = (entry_size node_size v (m, c) + sizes node_size v R')%nat) by exact (sizes_perm v _ _ HR).
    assert (K : (size_all (left_piece v R' ph) <= 1 + (if (ph =? 0)%Z then 0 else 1) + sizes node_size v R')%nat).
    { destruct R' as [|x R']; cbn [left_piece]; rewrite ?size_all_cons; change (size_all []) with O; [lia|].
      cbn [size]. lia. }
    destruct Hj as [[-> [-> ->]] | ->]; cbn [size]; [rewrite node_size_eq; destruct (_ =? 0)%Z|]; lia.
  - specialize (L0 v R). destruct Hj as [[-> [-> ->]] | ->]; cbn [size]; [rewrite node_size_eq; lia|].
    destruct (Z.eqb_spec ph 0); [contradiction|]. lia.
Qed.

(* A run with costs that are ranges: questions that are left, and pieces whose keys may have fallen since
   they were pushed.  An answer takes a question, and may lower any keys; a requeue brings one up to date. *)
Record running := { asks : nat; queue : list (piece * bool) }.
Inductive move : running -> running -> Prop :=
| asked n Q Q' : map fst Q = map fst Q' -> move {| asks := S n; queue := Q |} {| asks := n; queue := Q' |}
| requeued n Q Q' i : Permutation Q ((i, true) :: Q') ->
    move {| asks := n; queue := Q |} {| asks := n; queue := (i, false) :: Q' |}
| leaf_popped n Q Q' v b : Permutation Q ((Leaf v, b) :: Q') ->
    move {| asks := n; queue := Q |} {| asks := n; queue := Q' |}
| piece_popped n Q Q' i b J l : Permutation Q ((i, b) :: Q') -> pop i J l ->
    move {| asks := n; queue := Q |} {| asks := n; queue := map (fun j => (j, false)) J ++ Q' |}.

Definition queue_size (Q : list (piece * bool)) := size_all (map fst Q).
Definition stale (Q : list (piece * bool)) := length (filter snd Q).

Lemma queue_size_perm Q Q' : Permutation Q Q' -> queue_size Q = queue_size Q'.
Proof.
  intros H. unfold queue_size. induction H; cbn [map]; rewrite ?size_all_cons; lia.
Qed.

Lemma stale_perm Q Q' : Permutation Q Q' -> stale Q = stale Q'.
Proof. unfold stale. induction 1; cbn [filter] in *; repeat match goal with |- context [snd ?x] => destruct (snd x) end; cbn [length] in *; lia. Qed.

(* Every run ends: there is no endless sequence of answers, requeues and pops. *)
Theorem runs_end : well_founded (fun s' s => move s s').
Proof.
  enough (H : forall a n k s, (asks s <= a)%nat -> (queue_size (queue s) <= n)%nat -> (stale (queue s) <= k)%nat ->
            Acc (fun s' s => move s s') s) by (intros s; exact (H _ _ _ s (le_n _) (le_n _) (le_n _))).
  assert (smaller : forall Q Q' i b J, Permutation Q ((i, b) :: Q') -> (size_all J < size i)%nat ->
            (queue_size (map (fun j => (j, false)) J ++ Q') < queue_size Q)%nat).
  { intros Q Q' i b J HQ HJ. rewrite (queue_size_perm _ _ HQ). unfold queue_size. rewrite map_app, map_map, size_all_app.
    cbn [map fst]. rewrite map_id, size_all_cons. lia. }
  induction a as [a IHa] using lt_wf_ind. induction n as [n IHn] using lt_wf_ind. induction k as [k IHk] using lt_wf_ind.
  intros s Ha Hn Hk. constructor. intros s' Hm.
  destruct Hm as [b Q Q' HQ | b Q Q' i HQ | b Q Q' v f HQ | b Q Q' i f J l HQ Hp]; cbn [asks queue] in *.
  - apply (IHa b ltac:(lia) (queue_size Q') (stale Q')); cbn [asks queue]; lia.
  - apply (IHk (stale Q')); cbn [asks queue].
    + rewrite (stale_perm _ _ HQ) in Hk. unfold stale in *. cbn [filter snd length] in Hk. lia.
    + exact Ha.
    + rewrite (queue_size_perm _ _ HQ) in Hn. exact Hn.
    + unfold stale. cbn [filter snd]. lia.
  - assert (L := smaller Q Q' (Leaf v) f [] HQ ltac:(cbn; lia)). cbn [map app] in L.
    apply (IHn (queue_size Q') ltac:(lia) (stale Q')); cbn [asks queue]; lia.
  - assert (L := smaller Q Q' i f J HQ (pops_get_smaller i J l Hp)).
    apply (IHn _ (Nat.lt_le_trans _ _ _ L Hn) (stale (map (fun j => (j, false)) J ++ Q'))); cbn [asks queue]; lia.
Qed.

End Coverage.

(* The draws of the rest race are such pops; an expansion of the coupled race is `expand`. *)
Theorem rest_draws_are_pops M (w : call -> R) (pool : node M -> pool_t M) (phantom : node M -> Z) (unit : node M -> R)
  (x_draw : node M -> nat -> Z) :
  (forall v x, In x (pool v) -> (0 < fst x)%Z) -> (forall v, (0 <= phantom v)%Z) ->
  (forall v i, Rounding.word (x_draw v i)) ->
  forall v i, let s := Rest.left M pool phantom x_draw v in
  fst (s i) <> [] -> exists lost,
  pop M w pool phantom unit (match i with O => Node M v | _ => Left M v (fst (s i)) (snd (s i)) end)
    (child_piece M v (winner M pool phantom x_draw v i) ++ left_piece M v (fst (s (S i))) (snd (s (S i)))) lost.
Proof.
  intros mass_pos phantom_nonneg words v i s Hne.
  assert (Hat : forall R ph, s i = (R, ph) ->
    match i with O => Node M v | _ => Left M v (fst (s i)) (snd (s i)) end = Node M v /\ R = pool v /\ ph = phantom v \/
    match i with O => Node M v | _ => Left M v (fst (s i)) (snd (s i)) end = Left M v R ph).
  { intros R ph E. destruct i as [|i]; [left | right; rewrite E; reflexivity].
    unfold s in E. cbn [Rest.left] in E. injection E as <- <-. auto. }
  destruct (left_spec M pool phantom phantom_nonneg x_draw v i) as [Hin Hph]. fold s in Hin, Hph.
  assert (Es : s (S i) = snd (Rest.draw M (x_draw v i) (s i))) by reflexivity.
  unfold winner. fold s. rewrite Es. unfold Rest.draw.
  destruct (s i) as [R ph] eqn:E. cbn [fst snd] in *. specialize (Hat R ph eq_refl).
  destruct (pick M _ 0 R) as [[c R']|] eqn:Ep; cbn [fst snd].
  - destruct (pick_some M _ _ _ _ _ Ep) as [m HP]. eexists. exact (draw M w pool phantom unit _ v R ph m c R' Hat HP).
  - eexists. apply phantom_drawn with (1 := Hat). intros ->. destruct (words v i) as [H0 H1].
    apply pick_none in Ep; [|exact Hne]. rewrite Z.add_0_l, Z.add_0_r in Ep.
    destruct (total_pos M R) as [_ T]; [intros x Hx; exact (mass_pos v x (Hin x Hx))|]. specialize (T Hne). nia.
Qed.

(* Over an artifact whose certificates hold, with statements or a cut that the run enforces itself. *)
Section Artifact.
Variable A : automaton.
Variable q0 : state A.
Variables (F : nat) (W : call -> Z) (d : state A -> nat) (m : state A -> Z).
Hypothesis C2 : forall q a p, In (a, p) (edges A q) -> (d p < d q)%nat.
Variable held : Type.
Variables (start : held) (see : held -> call -> option held) (ends : held -> bool).
Notation Q := (enforced A held see ends).
Notation pool := (Artifact.pool A q0 F W d m held start see ends).
Notation phantom := (Artifact.phantom A q0 F W d m held start see ends).
Notation scale := (Artifact.scale A q0 F d held start see ends).

Lemma artifact_call_mass v z e : In (z, Some (Some e)) (pool v) ->
  IZR z / scale v = w F W (fst e) * rate Q pool phantom scale (e :: v).
Proof.
  intros H. unfold rate. rewrite pool_total. unfold Artifact.pool, Artifact.scale in *.
  destruct (at_ Q (q0, start) v) as [q h]. cbn [fst].
  apply in_app_iff in H. destruct H as [H | H].
  2:{ destruct (accept A q); [destruct H as [H | []] | destruct H]. destruct (ends h); discriminate. }
  apply in_map_iff in H. destruct H as [[a p] [E Hin]]. cbn [snd] in E. injection E as <- E.
  unfold entry in E. cbn [fst snd] in E. destruct (see h a) as [k|]; [|discriminate].
  injection E as <-. cbn [Search.at_ fst snd]. unfold w, mass. cbn [fst snd]. apply C2 in Hin.
  assert (U : unit F (d q) = (unit F (d q - 1 - d p) * unit F 1 * unit F (d p))%Z).
  { rewrite <- !unit_split. f_equal. lia. }
  assert (P : forall n, 0 < IZR (unit F n)) by (intros n; apply IZR_lt, unit_pos).
  rewrite U, !mult_IZR. assert (H1 := P (d q - 1 - d p)%nat). assert (H2 := P 1%nat). assert (H3 := P (d p)).
  replace (IZR (2 ^ Z.of_nat F)) with (IZR (unit F 1)) by (unfold unit; rewrite Nat.mul_1_r; reflexivity).
  field. lra.
Qed.

Lemma artifact_stop_mass v z : In (z, Some None) (pool v) -> IZR z = scale v.
Proof.
  unfold Artifact.pool, Artifact.scale. destruct (at_ Q (q0, start) v) as [q h]. cbn [fst].
  rewrite in_app_iff, in_map_iff. intros [[e [E _]] | H].
  - destruct (entry A held see h e); cbn [option_map] in E; injection E as _ E; discriminate.
  - destruct (accept A q); [destruct H as [H | []] | destruct H]. injection H as <- _. reflexivity.
Qed.

(* L608, in either race and whatever is drawn; and every run ends. *)
Theorem artifact_coverage s : steps Q (w F W) pool phantom scale (begins Q) s ->
  IZR (m q0) / IZR (unit F (d q0)) =
  sum_of (share Q (w F W) pool phantom scale) (frontier Q s) + sum_of (omega Q (w F W)) (leaves Q s) + lost Q s.
Proof.
  intros H. rewrite <- (frontier_covers_the_root Q (w F W) pool phantom scale
    (Artifact.scale_pos A q0 F d held start see ends) artifact_call_mass artifact_stop_mass s H).
  unfold rate. rewrite pool_total. reflexivity.
Qed.

Theorem artifact_runs_end : well_founded (fun s' s => move Q (w F W) pool phantom scale s s').
Proof. exact (runs_end Q (q0, start) (w F W) pool phantom scale (pool_free A q0 F W d m held start see ends)). Qed.
End Artifact.
