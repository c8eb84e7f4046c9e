(* A run over one realised race: what its items cover, what their keys bound, what its stop shows.
   docs/spec/race.md, sections 6, 8, 9, 11 and 19.

   Here a race is known by what it hands down alone (`handed`); Coupled.v and Rest.v show it of the
   two races, for whatever uniforms.  Nothing is assumed of counts, of probabilities or of the
   order in which items are popped. *)

From Coq Require Import List Reals ZArith Lia Lra Permutation.
From Tcc Require Import Automaton Rounding.
Import ListNotations.
Local Open Scope R_scope.

Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros Hx [H | ->]; [left; apply ln_increasing; assumption | right; reflexivity]. Qed.

Lemma nodup_app_left {A} (l m : list A) : NoDup (l ++ m) -> NoDup l.
Proof.
  induction l as [|x l IH]; intros H; [constructor|]. inversion H as [|? ? Hx Hl]; subst.
  constructor; [|exact (IH Hl)]. intros Hin. apply Hx, in_app_iff. left. exact Hin.
Qed.

Section Search.
Variable M : automaton.
Variable root : state M.
Notation edge := (edge M).

(* A node is a prefix of calls, the last one first; with each call the state it leads to.  A plan is
   known by the node it stops at. *)
Definition node := list edge.
Definition at_ (v : node) : state M := match v with [] => root | e :: _ => snd e end.
Definition below (v : node) : list node := map (fun p => rev_append p v) (paths M (at_ v)).

Definition child := option edge.                                         (* None is `stop` *)
Definition children (v : node) : list child :=
  map Some (edges M (at_ v)) ++ (if accept M (at_ v) then [None] else []).
Definition under (v : node) (c : child) : list node :=
  match c with Some e => below (e :: v) | None => [v] end.

Lemma below_children v : below v = flat_map (under v) (children v).
Proof.
  unfold below at 1, children. rewrite paths_eq, map_app, flat_map_app. f_equal.
  - induction (edges M (at_ v)) as [|e l IH]; simpl; [reflexivity|].
    rewrite map_app, IH, map_map. reflexivity.
  - destruct (accept M (at_ v)); reflexivity.
Qed.

Lemma in_children_call v e : In (Some e) (children v) <-> In e (edges M (at_ v)).
Proof.
  unfold children. rewrite in_app_iff, in_map_iff. split.
  - intros [[e' [E H]] | H]; [injection E as <-; exact H|].
    destruct (accept M (at_ v)); [destruct H as [H | []]; discriminate | destruct H].
  - intros H. left. exists e. auto.
Qed.

Lemma in_children_stop v : In None (children v) <-> accept M (at_ v) = true.
Proof.
  unfold children. rewrite in_app_iff, in_map_iff. split.
  - intros [[e [E _]] | H]; [discriminate|]. destruct (accept M (at_ v)); [reflexivity | destruct H].
  - intros ->. right. left. reflexivity.
Qed.

(* Calls: section 3.  r is what a residual is rounded up to; G(q), what M(v) is above
   -beta*C(prefix), by either recipe. *)
Variable beta : R.
Variables cost_low w r : call -> R.
Variable G : state M -> R.
Hypothesis beta_nonneg : 0 <= beta.
Hypothesis w_pos : forall a, 0 < w a.
Hypothesis r_up : forall a, - beta * cost_low a - ln (w a) <= r a.
Hypothesis G_stop : forall q, accept M q = true -> 0 <= G q.
Hypothesis G_step : forall q a p, In (a, p) (edges M q) -> r a + G p <= G q.

(* The race: an arrival for every node and for every leaf. *)
Variable t : node -> R.
Variable E_P : node -> R.
Definition weight (c : child) := match c with Some e => w (fst e) | None => 1 end.
Definition arrival (v : node) (c : child) := match c with Some e => t (e :: v) | None => E_P v end.
Hypothesis handed : forall v c, In c (children v) -> 0 < t v -> weight c * t v <= arrival v c.

(* Costs: a table has one for each edge, named by the node that it leads to (section 19). *)
Definition table := node -> R.
Fixpoint cost (c : table) (v : node) : R := match v with [] => 0 | e :: u => c v + cost c u end.
Definition value (c : table) (P : node) : Z := publish (- beta * cost c P - ln (E_P P)).

Definition declared (c : table) := forall e u, cost_low (fst e) <= c (e :: u).

(* Section 6: what a prefix can still come to. *)
Lemma score_below c p : declared c -> forall v tau,
  In p (paths M (at_ v)) -> 0 < tau <= t v ->
  - beta * cost c (rev_append p v) - ln (E_P (rev_append p v)) <= - beta * cost c v + G (at_ v) - ln tau.
Proof.
  intros Hc. induction p as [|[a q] p IH]; intros v tau Hp [Htau Ht]; cbn [rev_append].
  - apply in_paths_nil in Hp. assert (HG := G_stop _ Hp).
    assert (He : 1 * t v <= E_P v).
    { apply (handed v None); [apply in_children_stop, Hp | lra]. }
    assert (ln tau <= ln (E_P v)) by (apply ln_le; lra). lra.
  - apply in_paths_cons in Hp. destruct Hp as [He Hp]. cbn [snd] in Hp.
    assert (Hw := w_pos a). assert (Hh : w a * t v <= t ((a, q) :: v)).
    { apply (handed v (Some (a, q))); [apply in_children_call, He | lra]. }
    assert (Htau' : 0 < w a * tau) by (apply Rmult_lt_0_compat; assumption).
    assert (w a * tau <= w a * t v) by (apply Rmult_le_compat_l; lra).
    specialize (IH ((a, q) :: v) (w a * tau) Hp ltac:(lra)). cbn [cost at_ snd] in IH.
    assert (HG := G_step _ _ _ He). assert (Hr := r_up a). assert (Hl := Hc (a, q) v). cbn [fst] in Hl.
    rewrite ln_mult in IH by assumption.
    assert (beta * cost_low a <= beta * c ((a, q) :: v)) by (apply Rmult_le_compat_l; assumption).
    lra.
Qed.

(* An item of the frontier: its prefix, the plans that it stands for, and how late they arrive. *)
Record item := { prefix : node; covers : list node; ahead : R; time : R }.
Definition key (known : table) (i : item) : Z :=
  publish (- beta * cost known (prefix i) + ahead i - ln (time i)).
Definition bounds (i : item) := forall c, declared c -> forall P, In P (covers i) ->
  - beta * cost c P - ln (E_P P) <= - beta * cost c (prefix i) + ahead i - ln (time i).

Definition node_item v tau := {| prefix := v; covers := below v; ahead := G (at_ v); time := tau |}.
Definition leaf_item v tau := {| prefix := v; covers := [v]; ahead := 0; time := tau |}.
Definition rest_item v (left : list child) tau :=
  {| prefix := v; covers := flat_map (under v) left; ahead := G (at_ v); time := tau |}.

Lemma node_bounds v tau : 0 < tau <= t v -> bounds (node_item v tau).
Proof.
  intros Ht c Hc P HP. cbn in *. unfold below in HP. apply in_map_iff in HP.
  destruct HP as [p [<- Hp]]. apply score_below; assumption.
Qed.

Lemma leaf_bounds v tau : 0 < tau <= E_P v -> bounds (leaf_item v tau).
Proof.
  intros Ht c Hc P [<- | []]. cbn. assert (ln tau <= ln (E_P v)) by (apply ln_le; lra). lra.
Qed.

Lemma rest_bounds v left tau : 0 < tau ->
  (forall c, In c left -> In c (children v) /\ weight c * tau <= arrival v c) ->
  bounds (rest_item v left tau).
Proof.
  intros Htau Hleft c Hc P HP. cbn in *. apply in_flat_map in HP.
  destruct HP as [[[a q]|] [Hin HP]]; destruct (Hleft _ Hin) as [Hch Ha]; cbn [weight arrival fst] in Ha.
  - cbn [under] in HP. unfold below in HP. apply in_map_iff in HP. destruct HP as [p [<- Hp]].
    cbn [at_ snd] in Hp. assert (He := proj1 (in_children_call _ _) Hch).
    assert (Hw := w_pos a). assert (0 < w a * tau) by (apply Rmult_lt_0_compat; assumption).
    assert (Hs := score_below c p Hc ((a, q) :: v) (w a * tau) Hp ltac:(lra)).
    cbn [cost at_ snd] in Hs. rewrite ln_mult in Hs by assumption.
    assert (HG := G_step _ _ _ He). assert (Hr := r_up a). assert (Hl := Hc (a, q) v). cbn [fst] in Hl.
    assert (beta * cost_low a <= beta * c ((a, q) :: v)) by (apply Rmult_le_compat_l; assumption).
    lra.
  - destruct HP as [<- | []]. assert (HG := G_stop _ (proj1 (in_children_stop v) Hch)). assert (ln tau <= ln (E_P v)) by (apply ln_le; lra). lra.
Qed.

(* What popping an item that is no leaf puts in its place; each race has its own. *)
Variable pops : item -> list item -> Prop.
Hypothesis pops_covers : forall i J, pops i J -> Permutation (covers i) (flat_map covers J).
Hypothesis pops_bounds : forall i J, pops i J -> forall j, In j J -> bounds j.

(* A run: the costs that are known of the edges, the frontier with the keys under which items were
   pushed, and the plans found with their values. *)
Record run := { low : table; high : table; frontier : list (item * Z); found : list (node * Z) }.

Definition within (s : run) (c : table) := forall v, low s v <= c v <= high s v.

Inductive step : run -> run -> Prop :=
| answer lo hi lo' hi' F D :                              (* section 19: an interval narrows *)
    (forall v, lo v <= lo' v <= hi' v) -> (forall v, hi' v <= hi v) ->
    step {| low := lo; high := hi; frontier := F; found := D |}
         {| low := lo'; high := hi'; frontier := F; found := D |}
| requeue lo hi F F' D i k :                              (* pushed again with its present key *)
    Permutation F ((i, k) :: F') ->
    step {| low := lo; high := hi; frontier := F; found := D |}
         {| low := lo; high := hi; frontier := (i, key lo i) :: F'; found := D |}
| pop_leaf lo hi F F' D P tau k :                         (* its costs are points by now *)
    Permutation F ((leaf_item P tau, k) :: F') ->
    (forall u e l, P = l ++ e :: u -> lo (e :: u) = hi (e :: u)) ->
    step {| low := lo; high := hi; frontier := F; found := D |}
         {| low := lo; high := hi; frontier := F'; found := (P, value lo P) :: D |}
| pop lo hi F F' D i k J :
    Permutation F ((i, k) :: F') -> pops i J ->
    step {| low := lo; high := hi; frontier := F; found := D |}
         {| low := lo; high := hi; frontier := map (fun j => (j, key lo j)) J ++ F'; found := D |}.

Inductive steps : run -> run -> Prop :=
| none s : steps s s
| more s s' s'' : steps s s' -> step s' s'' -> steps s s''.

(* The start: nothing found, the root in the frontier, costs as declared. *)
Definition starts (s : run) :=
  (forall e u, cost_low (fst e) <= low s (e :: u)) /\ (forall v, low s v <= high s v) /\
  frontier s = [(node_item [] (t []), key (low s) (node_item [] (t [])))] /\ found s = [].
Hypothesis t_root : 0 < t [].

(* The plans of the run, as nodes, and what is said of one: its calls, first to last. *)
Definition every_plan := below [].
Definition plan_of (P : node) : list call := calls_of M (rev P).

Lemma every_plan_is_a_plan : map plan_of every_plan = plans M root.
Proof.
  unfold every_plan, below, plans. rewrite map_map. apply map_ext. intros p.
  unfold plan_of. rewrite rev_append_rev, app_nil_r, rev_involutive. reflexivity.
Qed.

Record sound (s : run) : Prop := {
  rising : forall e u, cost_low (fst e) <= low s (e :: u);
  nothing_lost : Permutation every_plan (map fst (found s) ++ flat_map (fun x => covers (fst x)) (frontier s));
  all_bound : forall i k, In (i, k) (frontier s) -> bounds i;
  keys_hold : forall i k, In (i, k) (frontier s) ->
    forall c, within s c -> forall P, In P (covers i) -> (value c P <= k)%Z;
  values_hold : forall P b, In (P, b) (found s) -> forall c, within s c -> value c P = b
}.

Lemma cost_mono c c' v : (forall u, c u <= c' u) -> cost c v <= cost c' v.
Proof. intros H. induction v as [|e u IH]; simpl; [lra|]. specialize (H (e :: u)). lra. Qed.

Lemma present_key_bounds s i : (forall e u, cost_low (fst e) <= low s (e :: u)) -> bounds i ->
  forall c, within s c -> forall P, In P (covers i) -> (value c P <= key (low s) i)%Z.
Proof.
  intros Hlow Hi c Hc P HP. apply publish_mono.
  assert (Hd : declared c). { intros e u. specialize (Hlow e u). specialize (Hc (e :: u)). lra. }
  specialize (Hi c Hd P HP).
  assert (cost (low s) (prefix i) <= cost c (prefix i)) by (apply cost_mono; intros u; apply Hc).
  assert (beta * cost (low s) (prefix i) <= beta * cost c (prefix i)) by (apply Rmult_le_compat_l; assumption).
  lra.
Qed.

Lemma cost_of_points s c P : within s c ->
  (forall u e l, P = l ++ e :: u -> low s (e :: u) = high s (e :: u)) -> cost c P = cost (low s) P.
Proof.
  intros Hc. induction P as [|e u IH]; intros H; simpl; [reflexivity|].
  rewrite IH.
  - assert (E := H u e [] eq_refl). specialize (Hc (e :: u)). f_equal. lra.
  - intros u' e' l ->. apply (H u' e' (e :: l)). reflexivity.
Qed.

Lemma start_sound s : starts s -> sound s.
Proof.
  intros [H1 [H2 [H3 H4]]].
  assert (B : bounds (node_item [] (t []))) by (apply node_bounds; lra).
  split.
  - exact H1.
  - rewrite H3, H4. simpl. rewrite app_nil_r. reflexivity.
  - rewrite H3. intros i k [E | []]. injection E as <- _. exact B.
  - rewrite H3. intros i k [E | []] c Hc P HP. injection E as <- <-.
    apply (present_key_bounds s _ H1 B c Hc P HP).
  - rewrite H4. intros P b [].
Qed.

Lemma step_sound s s' : sound s -> step s s' -> sound s'.
Proof.
  intros [H1 H2 H3 H4 H5] Hs. destruct Hs as
    [lo hi lo' hi' F D Hlo Hhi | lo hi F F' D i k HF | lo hi F F' D P tau k HF Hpts | lo hi F F' D i k J HF HJ];
    cbn [low high frontier found] in *.
  - assert (W : forall c, (forall v, lo' v <= c v <= hi' v) -> forall v, lo v <= c v <= hi v).
    { intros c Hc v. specialize (Hc v). specialize (Hlo v). specialize (Hhi v). lra. }
    split; cbn [low high frontier found]; auto.
    + intros e u. specialize (H1 e u). specialize (Hlo (e :: u)). lra.
    + intros i k Hi c Hc. apply (H4 i k Hi). exact (W c Hc).
    + intros P b Hb c Hc. apply (H5 P b Hb). exact (W c Hc).
  - assert (Hi : In (i, k) F) by (apply (Permutation_in _ (Permutation_sym HF)); left; reflexivity).
    assert (HF' : forall x, In x F' -> In x F)
      by (intros x Hx; apply (Permutation_in _ (Permutation_sym HF)); right; exact Hx).
    split; cbn [low high frontier found]; auto.
    + rewrite H2. apply Permutation_app_head. rewrite HF. reflexivity.
    + intros j m [E | Hj]; [injection E as <- <- | apply HF' in Hj]; eauto.
    + intros j m [E | Hj]; [injection E as <- <- | apply HF' in Hj].
      * intros c Hc P HP. refine (present_key_bounds {| low := lo |} i H1 (H3 i k Hi) c _ P HP). exact Hc.
      * exact (H4 j m Hj).
  - assert (HF' : forall x, In x F' -> In x F)
      by (intros x Hx; apply (Permutation_in _ (Permutation_sym HF)); right; exact Hx).
    split; cbn [low high frontier found]; auto.
    + rewrite H2, HF. simpl. symmetry. apply Permutation_middle.
    + intros j m Hj. apply HF' in Hj. eauto.
    + intros j m Hj. apply HF' in Hj. exact (H4 j m Hj).
    + intros Q b [E | Hb]; [injection E as <- <- | exact (H5 Q b Hb)].
      intros c Hc. unfold value. do 3 f_equal.
      refine (cost_of_points {| low := lo; high := hi; frontier := F; found := D |} c P Hc _).
      intros u e l E. exact (Hpts u e l E).
  - assert (HF' : forall x, In x F' -> In x F)
      by (intros x Hx; apply (Permutation_in _ (Permutation_sym HF)); right; exact Hx).
    split; cbn [low high frontier found]; auto.
    + rewrite H2. apply Permutation_app_head. rewrite HF. simpl. rewrite flat_map_app.
      apply Permutation_app_tail. rewrite (pops_covers i J HJ).
      rewrite !flat_map_concat_map, map_map. reflexivity.
    + intros j m Hj. apply in_app_iff in Hj. destruct Hj as [Hj | Hj]; [|apply HF' in Hj; eauto].
      apply in_map_iff in Hj. destruct Hj as [j' [E Hj]]. injection E as <- <-. exact (pops_bounds i J HJ _ Hj).
    + intros j m Hj. apply in_app_iff in Hj. destruct Hj as [Hj | Hj]; [|apply HF' in Hj; exact (H4 j m Hj)].
      apply in_map_iff in Hj. destruct Hj as [j' [E Hj]]. injection E as <- <-. intros c Hc P HP.
      refine (present_key_bounds {| low := lo |} j' H1 (pops_bounds i J HJ _ Hj) c _ P HP). exact Hc.
Qed.

Theorem runs_are_sound s s' : starts s -> steps s s' -> sound s'.
Proof.
  intros Hs H. induction H as [s|s s' s'' H IH Hstep]; [apply start_sound, Hs|].
  exact (step_sound _ _ (IH Hs) Hstep).
Qed.

(* Sections 9 and 11.  The best k of the plans found, of equal values any; B* is the least value among
   them.  `most` is at least every key left: B* itself at a certified stop, B* + gap at any other. *)
Definition best (k : nat) (D top : list (node * Z)) := exists others,
  Permutation D (top ++ others) /\ length top = Nat.min k (length D) /\
  forall x y, In x top -> In y others -> (snd y <= snd x)%Z.

Theorem run_wise s s' k top B most :
  (forall q, NoDup (map fst (edges M q))) -> starts s -> steps s s' ->
  best k (found s') top -> length top = k ->
  In B (map snd top) -> (forall x, In x top -> B <= snd x)%Z ->
  (forall x, In x (frontier s') -> snd x <= most)%Z ->
  NoDup (map (fun x => plan_of (fst x)) top) /\
  forall c, within s' c ->
    (forall P b, In (P, b) top -> In P every_plan /\ value c P = b) /\
    (forall P, In P every_plan -> ~ In P (map fst top) -> (value c P <= Z.max B most)%Z).
Proof.
  intros C1 Hs Hrun [others [HD [_ Htop]]] _ HB Hleast Hkeys.
  destruct (runs_are_sound s s' Hs Hrun) as [_ H2 _ H4 H5].
  assert (Hin : forall x, In x (top ++ others) -> In x (found s'))
    by (intros x; apply Permutation_in, Permutation_sym, HD).
  split.
  { assert (Hall := plans_distinct M C1 root). rewrite <- every_plan_is_a_plan in Hall.
    apply (Permutation_NoDup (Permutation_map plan_of H2)) in Hall. rewrite map_app in Hall.
    apply nodup_app_left in Hall. rewrite map_map in Hall.
    apply (Permutation_NoDup (Permutation_map _ HD)) in Hall. rewrite map_app in Hall.
    exact (nodup_app_left _ _ Hall). }
  intros c Hc. split.
  { intros P b HP. assert (Hb : In (P, b) (found s')) by (apply Hin, in_app_iff; auto). split; [|exact (H5 P b Hb c Hc)].
    apply (Permutation_in _ (Permutation_sym H2)), in_app_iff. left. exact (in_map fst _ _ Hb). }
  intros P HP Hnot. apply (Permutation_in _ H2), in_app_iff in HP. destruct HP as [HP | HP].
  - apply (Permutation_in _ (Permutation_map fst HD)) in HP. rewrite map_app in HP.
    apply in_app_iff in HP. destruct HP as [HP | HP]; [destruct (Hnot HP)|].
    apply in_map_iff in HP. destruct HP as [[Q b] [E HP]]. cbn [fst] in E. subst Q.
    assert (Hb : value c P = b) by (apply (H5 P b); [apply Hin, in_app_iff; auto | exact Hc]).
    apply in_map_iff in HB. destruct HB as [x [Ex Hx]].
    specialize (Htop x (P, b) Hx HP). cbn [snd] in Htop. lia.
  - apply in_flat_map in HP. destruct HP as [[i m] [Hi HP]]. cbn [fst] in HP.
    assert (V := H4 i m Hi c Hc P HP). specialize (Hkeys (i, m) Hi). cbn [snd] in Hkeys. lia.
Qed.

(* With an empty frontier the plans found are all there are. *)
Theorem exhausted s s' : starts s -> steps s s' -> frontier s' = [] ->
  Permutation (plans M root) (map (fun x => plan_of (fst x)) (found s')).
Proof.
  intros Hs Hrun HF. destruct (runs_are_sound s s' Hs Hrun) as [_ H2 _ _ _].
  rewrite HF in H2. simpl in H2. rewrite app_nil_r in H2.
  rewrite <- every_plan_is_a_plan, H2, map_map. reflexivity.
Qed.

End Search.
