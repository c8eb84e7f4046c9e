(* Certificates C2 to C5: one equation a state, exactly one solution, and what it is.
   docs/spec/artifact.md, sections 5 and 7; docs/spec/race.md, section 4. *)

From Coq Require Import List Arith ZArith Lia.
From Tcc Require Import Automaton.
Import ListNotations.
Local Open Scope Z_scope.

Section Certificates.
Variable M : automaton.
Notation state := (state M).
Notation edge := (edge M).
Notation paths := (paths M).
Notation edges := (edges M).
Notation accept := (accept M).

(* A certificate: what is due at a state, from its own edges and what stands at their targets. *)
Definition rule (X : Type) := state -> list (edge * X) -> X.
Definition row {X} (x : state -> X) q := map (fun e : edge => (e, x (snd e))) (edges q).
Definition holds {X} (f : rule X) (x : state -> X) := forall q, x q = f q (row x q).

Lemma row_ext {X} (x y : state -> X) q :
  (forall a p, In (a, p) (edges q) -> x p = y p) -> row x q = row y q.
Proof. intros H. apply map_ext_in. intros [a p] Hp. simpl. rewrite (H a p Hp). reflexivity. Qed.

(* Every certificate has exactly one solution, whatever its equation is. *)
Theorem one_solution {X} (f : rule X) (x0 : X) :
  exists x, holds f x /\ forall y, holds f y -> forall q, y q = x q.
Proof.
  set (sol := fix sol (n : nat) (q : state) : X :=
    match n with O => x0 | S n => f q (map (fun e : edge => (e, sol n (snd e))) (edges q)) end).
  assert (enough : forall n m q, (number M q < n)%nat -> (number M q < m)%nat -> sol n q = sol m q).
  { induction n as [|n IH]; intros [|m] q Hn Hm; try lia. simpl. f_equal.
    apply map_ext_in. intros [a p] Hp. simpl. f_equal.
    apply (falls M) in Hp. apply IH; lia. }
  assert (due : forall q, sol (S (number M q)) q
    = f q (map (fun e : edge => (e, sol (S (number M (snd e))) (snd e))) (edges q))).
  { intros q. transitivity (f q (map (fun e : edge => (e, sol (number M q) (snd e))) (edges q)));
      [reflexivity|].
    f_equal. apply map_ext_in. intros [a p] Hp. apply (falls M) in Hp.
    f_equal. apply enough; cbn [snd]; lia. }
  exists (fun q => sol (S (number M q)) q). split; [exact due|].
  intros y Hy q. induction q as [q IH] using (below_ind M). rewrite (Hy q), due. f_equal.
  apply map_ext_in. intros [a p] Hp. f_equal. exact (IH a p Hp).
Qed.

Definition sum (l : list Z) := fold_right Z.add 0 l.

Lemma sum_app l m : sum (l ++ m) = sum l + sum m.
Proof. induction l as [|x l IH]; simpl; [reflexivity|]. rewrite IH. ring. Qed.

Lemma sum_scale {A} (f : A -> Z) k l : sum (map (fun x => k * f x) l) = k * sum (map f l).
Proof. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma sum_flat_map {A B} (f : B -> Z) (g : A -> list B) l :
  sum (map f (flat_map g l)) = sum (map (fun x => sum (map f (g x))) l).
Proof.
  induction l as [|x l IH]; simpl; [reflexivity|]. rewrite map_app, sum_app, IH. reflexivity.
Qed.

(* C3 *)
Definition plan_count : rule Z := fun q l => sum (map snd l) + (if accept q then 1 else 0).

Theorem C3_counts_the_plans N : holds plan_count N ->
  forall q, N q = Z.of_nat (length (plans M q)).
Proof.
  intros HN q. induction q as [q IH] using (below_ind M).
  rewrite (HN q). unfold plan_count, row, plans. rewrite map_map, map_length, (paths_eq M q),
    app_length, Nat2Z.inj_add. cbn [snd]. f_equal; [|destruct (accept q); reflexivity].
  assert (IH' : forall e, In e (edges q) -> N (snd e) = Z.of_nat (length (paths (snd e)))).
  { intros [a p] Hp. cbn [snd]. rewrite (IH a p Hp). unfold plans. rewrite map_length.
    reflexivity. }
  clear IH. induction (edges q) as [|e l IHl]; simpl; [reflexivity|].
  rewrite app_length, map_length, Nat2Z.inj_add, <- (IH' e) by (left; reflexivity).
  rewrite <- IHl by (intros; apply IH'; right; assumption). reflexivity.
Qed.

(* C202 *)
Definition rank : rule nat := fun _ l => fold_right Nat.max O (map (fun x => S (snd x)) l).

Lemma rank_falls d : holds rank d -> forall q a p, In (a, p) (edges q) -> (d p < d q)%nat.
Proof.
  intros Hd q a p Hp. rewrite (Hd q). unfold rank, row. rewrite map_map. cbn [snd].
  induction (edges q) as [|e l IH]; cbn [map fold_right] in *; [destruct Hp|].
  destruct Hp as [-> | Hp]; [cbn [snd]; lia|]. specialize (IH Hp). lia.
Qed.

Lemma paths_fit d : (forall q a p, In (a, p) (edges q) -> (d p < d q)%nat) ->
  forall q P, In P (paths q) -> (length P <= d q)%nat.
Proof.
  intros Hd q P. revert q. induction P as [|[a p] P IH]; intros q HP; simpl; [lia|].
  apply in_paths_cons in HP. destruct HP as [He HP]. apply Hd in He. apply IH in HP.
  cbn [snd] in HP. lia.
Qed.

Definition alive := forall q, accept q = true \/ edges q <> [].               (* C604 *)

Theorem C2_is_the_longest_plan d : holds rank d -> alive -> forall q,
  (forall P, In P (paths q) -> (length P <= d q)%nat) /\ exists P, In P (paths q) /\ length P = d q.
Proof.
  intros Hd Halive q. split; [apply paths_fit, rank_falls, Hd|].
  induction q as [q IH] using (below_ind M).
  destruct (edges q) as [|e0 l0] eqn:E.
  - exists []. split.
    + apply in_paths_nil. destruct (Halive q) as [H | H]; [exact H | congruence].
    + rewrite (Hd q). unfold rank, row. rewrite E. reflexivity.
  - assert (exists a p, In (a, p) (edges q) /\ d q = S (d p)) as [a [p [Hp Hq]]].
    { rewrite (Hd q). unfold rank, row. rewrite map_map. cbn [snd]. rewrite E. clear.
      revert e0. induction l0 as [|e l IH]; intros [a p]; cbn [map fold_right snd].
      - exists a, p. split; [left; reflexivity | lia].
      - destruct (IH e) as [b [r [Hr Hm]]]. cbn [map fold_right] in Hm.
        destruct (Nat.le_ge_cases (S (d p)) (S (d r))) as [H | H].
        + exists b, r. split; [right; exact Hr | lia].
        + exists a, p. split; [left; reflexivity | lia]. }
    rewrite <- E in IH. destruct (IH a p Hp) as [P [HP HL]].
    exists ((a, p) :: P). split; [apply in_paths_cons; auto | simpl; lia].
Qed.

(* C4 *)
Variable F : nat.                   (* fraction bits *)
Variable W : call -> Z.             (* the weight of a call is W / 2^F *)
Hypothesis W_pos : forall a, 0 < W a.

Definition unit (d : nat) := 2 ^ Z.of_nat (F * d).
Definition mass (d : state -> nat) (q : state) (e : edge) (below : Z) :=
  W (fst e) * unit (d q - 1 - d (snd e)) * below.
Definition masses (d : state -> nat) (q : state) (l : list (edge * Z)) :=
  sum (map (fun x => mass d q (fst x) (snd x)) l) + (if accept q then unit (d q) else 0).
Definition race_count d : rule Z := fun q l => masses d q l.

Definition weight (P : list edge) := fold_right (fun e z => W (fst e) * z) 1 P.
(* The plans below q, each with the product of its weights, in units of 2^-(F d(q)). *)
Definition weighed (d : state -> nat) q := sum (map (fun P => weight P * unit (d q - length P)) (paths q)).

Lemma unit_split a b : unit (a + b) = unit a * unit b.
Proof. unfold unit. rewrite <- Z.pow_add_r by lia. f_equal. lia. Qed.

Lemma unit_pos n : 0 < unit n.
Proof. unfold unit. apply Z.pow_pos_nonneg; lia. Qed.

Lemma weighed_eq d : (forall q a p, In (a, p) (edges q) -> (d p < d q)%nat) ->
  forall q, weighed d q = masses d q (row (weighed d) q).
Proof.
  intros Hd q. unfold masses, row. rewrite map_map. cbn [fst snd].
  unfold weighed at 1. rewrite paths_eq, map_app, sum_app. f_equal.
  - rewrite sum_flat_map. f_equal. apply map_ext_in. intros [a p] Hp. rewrite map_map.
    unfold mass, weighed. cbn [fst snd]. rewrite <- sum_scale. f_equal.
    apply map_ext_in. intros P HP. apply (paths_fit d Hd) in HP. apply Hd in Hp.
    change (weight ((a, p) :: P)) with (W a * weight P).
    replace (d q - length ((a, p) :: P))%nat with ((d q - 1 - d p) + (d p - length P))%nat
      by (simpl; lia).
    rewrite unit_split. ring.
  - destruct (accept q); [|reflexivity]. cbn. rewrite Nat.sub_0_r. destruct (unit (d q)); ring.
Qed.

Theorem C4_weighs_the_plans d m : holds rank d -> holds (race_count d) m ->
  forall q, m q = weighed d q.
Proof.
  intros Hd Hm q. destruct (one_solution (race_count d) 0) as [x [_ Hx]].
  rewrite (Hx m Hm). symmetry. apply Hx. intros p. apply weighed_eq, rank_falls, Hd.
Qed.

(* Counts that are bounds: superadditive ones are upper bounds (rounded, inflated, of derivations). *)
Theorem superadditive_counts_are_bounds d m : holds rank d ->
  (forall q, masses d q (row m q) <= m q) -> forall q, weighed d q <= m q.
Proof.
  intros Hd Hm q. induction q as [q IH] using (below_ind M).
  rewrite weighed_eq by (apply rank_falls, Hd). refine (Z.le_trans _ _ _ _ (Hm q)).
  unfold masses, row. rewrite !map_map. cbn [fst snd]. apply Z.add_le_mono_r.
  induction (edges q) as [|[a p] l IHl]; simpl; [lia|].
  apply Z.add_le_mono.
  - unfold mass. cbn [fst snd]. apply Z.mul_le_mono_nonneg_l; [|apply (IH a p); left; reflexivity].
    apply Z.mul_nonneg_nonneg; [apply Z.lt_le_incl, W_pos | apply Z.lt_le_incl, unit_pos].
  - apply IHl. intros b r Hr. apply (IH b r). right. exact Hr.
Qed.

Theorem counts_are_positive d m : alive -> (forall q, masses d q (row m q) <= m q) ->
  forall q, 0 < m q.
Proof.
  intros Halive Hm q. induction q as [q IH] using (below_ind M).
  refine (Z.lt_le_trans _ _ _ _ (Hm q)). unfold masses, row. rewrite map_map. cbn [fst snd].
  assert (pos : forall l, (forall a p, In (a, p) l -> 0 < m p) ->
    (l <> [] -> 0 < sum (map (fun e => mass d q e (m (snd e))) l)) /\
    0 <= sum (map (fun e => mass d q e (m (snd e))) l)).
  { induction l as [|[a p] l IHl]; intros H; simpl; [split; [congruence | lia]|].
    destruct IHl as [_ IHl]; [intros b r Hr; apply (H b r); right; exact Hr|].
    assert (0 < mass d q (a, p) (m p)).
    { unfold mass. cbn [fst snd]. assert (H1 := W_pos a). assert (H2 := unit_pos (d q - 1 - d p)).
      assert (H3 := H a p (or_introl eq_refl)). repeat apply Z.mul_pos_pos; assumption. }
    split; intros; lia. }
  destruct (pos (edges q) IH) as [strict weak]. assert (H2 := unit_pos (d q)).
  destruct (Halive q) as [-> | H]; [lia | specialize (strict H); destruct (accept q); lia].
Qed.

(* Counts rounded up, by whatever `up`: bounds of the exact ones, and superadditive. *)
Theorem rounded_counts_are_bounds d m up : holds rank d -> (forall x, x <= up x) ->
  holds (fun q l => up (masses d q l)) m ->
  (forall q, masses d q (row m q) <= m q) /\ (forall q, weighed d q <= m q).
Proof.
  intros Hd Hup Hm. assert (H : forall q, masses d q (row m q) <= m q).
  { intros q. rewrite (Hm q). apply Hup. }
  split; [exact H | exact (superadditive_counts_are_bounds d m Hd H)].
Qed.

Lemma sum_nonneg l : (forall x, In x l -> 0 <= x) -> 0 <= sum l.
Proof.
  induction l as [|x l IH]; simpl; intros H; [lia|].
  assert (H1 := H x (or_introl eq_refl)). assert (0 <= sum l); [|lia].
  apply IH. intros y Hy. apply H. right. exact Hy.
Qed.

Lemma sum_has l x : (forall y, In y l -> 0 <= y) -> In x l -> x <= sum l.
Proof.
  induction l as [|y l IH]; intros H Hin; [destruct Hin|].
  simpl. destruct Hin as [<-|Hx].
  - assert (0 <= sum l); [|lia]. apply sum_nonneg. intros z Hz. apply H. right. exact Hz.
  - assert (H1 := H y (or_introl eq_refl)). assert (x <= sum l); [|lia].
    apply IH; [|exact Hx]. intros z Hz. apply H. right. exact Hz.
Qed.

(* So where a count is too wide on any path, that of the root is. *)
Theorem counts_fall_along_edges d m : alive -> (forall q, masses d q (row m q) <= m q) ->
  forall q a p, In (a, p) (edges q) -> m p <= m q.
Proof.
  intros Halive Hm q a p He. assert (Hpos := counts_are_positive d m Halive Hm).
  refine (Z.le_trans _ _ _ _ (Hm q)). unfold masses, row. rewrite map_map. cbn [fst snd].
  assert (Hmass : forall e, In e (edges q) -> 0 <= mass d q e (m (snd e))).
  { intros e _. unfold mass. assert (H1 := W_pos (fst e)).
    assert (H2 := unit_pos (d q - 1 - d (snd e))). assert (H3 := Hpos (snd e)).
    repeat apply Z.mul_nonneg_nonneg; lia. }
  assert (Hone : m p <= mass d q (a, p) (m p)).
  { unfold mass. cbn [fst snd]. assert (H1 := W_pos a). assert (H2 := unit_pos (d q - 1 - d p)).
    assert (H3 := Hpos p). rewrite <- (Z.mul_1_l (m p)) at 1. apply Z.mul_le_mono_nonneg_r; [lia|].
    change 1 with (1 * 1). apply Z.mul_le_mono_nonneg; lia. }
  assert (Hsum : mass d q (a, p) (m p) <= sum (map (fun e => mass d q e (m (snd e))) (edges q))).
  { apply sum_has.
    - intros y Hy. apply in_map_iff in Hy as [e [<- Hin]]. apply Hmass, Hin.
    - apply in_map_iff. exists (a, p). split; [reflexivity | exact He]. }
  assert (0 <= (if accept q then unit (d q) else 0)).
  { destruct (accept q); [apply Z.lt_le_incl, unit_pos | lia]. }
  lia.
Qed.

(* With up x <= (1 + 1/D) x the rounded count is at most (1 + 1/D)^(d+1) times the exact one;
   D = 2^(b-1) where b bits are kept. *)
Theorem rounding_adds_little d m n up D : holds rank d -> alive -> 0 < D ->
  (forall x, 0 <= x -> D * up x <= (D + 1) * x) ->
  holds (race_count d) m -> holds (fun q l => up (masses d q l)) n ->
  (forall q, masses d q (row n q) <= n q) ->
  forall q, D ^ Z.of_nat (S (d q)) * n q <= (D + 1) ^ Z.of_nat (S (d q)) * m q.
Proof.
  intros Hd Halive HD Hup Hm Hn Hsup q. induction q as [q IH] using (below_ind M).
  assert (Hmpos : forall p, 0 < m p).
  { apply (counts_are_positive d m Halive). intros p. rewrite (Hm p). unfold race_count. lia. }
  assert (Hnpos := counts_are_positive d n Halive Hsup).
  set (k := Z.of_nat (d q)).
  assert (Hk : 0 <= k) by (unfold k; lia).
  assert (HP : 0 < D ^ k) by (apply Z.pow_pos_nonneg; lia).
  assert (HQ : 0 < (D + 1) ^ k) by (apply Z.pow_pos_nonneg; lia).
  assert (HPQ : D ^ k <= (D + 1) ^ k) by (apply Z.pow_le_mono_l; lia).
  (* each target is off by so much at most, as its rank is below q's *)
  assert (Hto : forall a p, In (a, p) (edges q) -> D ^ k * n p <= (D + 1) ^ k * m p).
  { intros a p He. assert (Hlt := rank_falls d Hd q a p He).
    assert (Hpow : forall b, 0 < b -> b ^ k = b ^ (k - Z.of_nat (S (d p))) * b ^ Z.of_nat (S (d p))).
    { intros b Hb. rewrite <- Z.pow_add_r by (unfold k; lia). f_equal. lia. }
    rewrite (Hpow D) by lia. rewrite (Hpow (D + 1)) by lia.
    assert (H1 := IH a p He). set (u := k - Z.of_nat (S (d p))).
    assert (Hu : 0 <= u) by (unfold u, k; lia).
    assert (Hl : D ^ u <= (D + 1) ^ u) by (apply Z.pow_le_mono_l; lia).
    assert (0 < D ^ u) by (apply Z.pow_pos_nonneg; lia).
    assert (0 <= D ^ Z.of_nat (S (d p)) * n p).
    { apply Z.mul_nonneg_nonneg; [apply Z.pow_nonneg; lia | apply Z.lt_le_incl, Hnpos]. }
    rewrite <- !Z.mul_assoc. apply Z.mul_le_mono_nonneg; lia. }
  assert (Hmasses : D ^ k * masses d q (row n q) <= (D + 1) ^ k * masses d q (row m q)).
  { unfold masses, row. rewrite !map_map. cbn [fst snd]. rewrite !Z.mul_add_distr_l.
    apply Z.add_le_mono.
    - clear IH. revert Hto. induction (edges q) as [|[a p] l IHl]; simpl; intros Hto; [lia|].
      rewrite !Z.mul_add_distr_l. apply Z.add_le_mono.
      + unfold mass. cbn [fst snd]. assert (H1 := Hto a p (or_introl eq_refl)).
        assert (H2 := W_pos a). assert (H3 := unit_pos (d q - 1 - d p)).
        set (w := W a * unit (d q - 1 - d p)).
        assert (0 <= w) by (unfold w; apply Z.mul_nonneg_nonneg; lia).
        replace (D ^ k * (w * n p)) with (w * (D ^ k * n p)) by ring.
        replace ((D + 1) ^ k * (w * m p)) with (w * ((D + 1) ^ k * m p)) by ring.
        apply Z.mul_le_mono_nonneg_l; assumption.
      + apply IHl. intros b r Hr. apply (Hto b r). right. exact Hr.
    - destruct (accept q); [|lia]. apply Z.mul_le_mono_nonneg_r; [|exact HPQ].
      apply Z.lt_le_incl, unit_pos. }
  assert (Hx : 0 <= masses d q (row n q)).
  { unfold masses, row. rewrite map_map. cbn [fst snd].
    assert (0 <= sum (map (fun e => mass d q e (n (snd e))) (edges q))).
    { apply sum_nonneg. intros y Hy. apply in_map_iff in Hy as [e [<- _]]. unfold mass.
      assert (H1 := W_pos (fst e)). assert (H2 := unit_pos (d q - 1 - d (snd e))).
      assert (H3 := Hnpos (snd e)). repeat apply Z.mul_nonneg_nonneg; lia. }
    assert (0 <= (if accept q then unit (d q) else 0)).
    { destruct (accept q); [apply Z.lt_le_incl, unit_pos | lia]. }
    lia. }
  assert (Hr := Hup _ Hx). rewrite <- (Hn q) in Hr.
  rewrite Nat2Z.inj_succ, !Z.pow_succ_r by lia. fold k.
  rewrite (Hm q). fold (row m q). unfold race_count.
  replace (D * D ^ k * n q) with (D ^ k * (D * n q)) by ring.
  replace ((D + 1) * (D + 1) ^ k * masses d q (row m q))
    with ((D + 1) * ((D + 1) ^ k * masses d q (row m q))) by ring.
  refine (Z.le_trans _ (D ^ k * ((D + 1) * masses d q (row n q))) _ _ _).
  - apply Z.mul_le_mono_nonneg_l; lia.
  - replace (D ^ k * ((D + 1) * masses d q (row n q)))
      with ((D + 1) * (D ^ k * masses d q (row n q))) by ring.
    apply Z.mul_le_mono_nonneg_l; lia.
Qed.

(* C5: best (least or greatest) sum over the plans; `le x y` is "x is as good as y". *)
Section Best.
Variables (op : Z -> Z -> Z) (le : Z -> Z -> Prop).
Hypothesis le_refl : forall x, le x x.
Hypothesis le_trans : forall x y z, le x y -> le y z -> le x z.
Hypothesis le_add : forall k x y, le x y -> le (k + x) (k + y).
Hypothesis op_le : forall x y, le (op x y) x /\ le (op x y) y /\ (op x y = x \/ op x y = y).
Variable c : call -> Z.

Fixpoint best (l : list Z) := match l with [] => 0 | [x] => x | x :: l => op x (best l) end.
Definition to_go : rule Z :=
  fun q l => best (map (fun x => c (fst (fst x)) + snd x) l ++ (if accept q then [0] else [])).
Definition total (P : list edge) := fold_right (fun e z => c (fst e) + z) 0 P.

Lemma best_spec l : l <> [] -> In (best l) l /\ forall x, In x l -> le (best l) x.
Proof.
  induction l as [|x [|y l] IH]; intros H; [congruence| |].
  - simpl. split; [auto|]. intros z [<- | []]. apply le_refl.
  - destruct IH as [IH1 IH2]; [discriminate|]. change (best (x :: y :: l)) with (op x (best (y :: l))).
    destruct (op_le x (best (y :: l))) as [H1 [H2 H3]]. split.
    + destruct H3 as [-> | ->]; [left; reflexivity | right; exact IH1].
    + intros z [<- | Hz]; [exact H1|]. apply (le_trans _ _ _ H2), IH2, Hz.
Qed.

Lemma to_go_step h : holds to_go h ->
  forall q a p, In (a, p) (edges q) -> le (h q) (c a + h p).
Proof.
  intros Hh q a p Hp. rewrite (Hh q). unfold to_go. apply best_spec.
  - unfold row. rewrite map_map. destruct (edges q); [destruct Hp | discriminate].
  - apply in_app_iff. left. unfold row. rewrite map_map. apply in_map_iff. exists (a, p). auto.
Qed.

Lemma to_go_stop h : holds to_go h -> forall q, accept q = true -> le (h q) 0.
Proof.
  intros Hh q Hq. rewrite (Hh q). unfold to_go. rewrite Hq. apply best_spec.
  - apply not_eq_sym, app_cons_not_nil.
  - apply in_app_iff. right. left. reflexivity.
Qed.

Theorem C5_is_the_best_plan h : holds to_go h -> alive -> forall q,
  (forall P, In P (paths q) -> le (h q) (total P)) /\ exists P, In P (paths q) /\ total P = h q.
Proof.
  intros Hh Halive q. split.
  - intros P. revert q. induction P as [|[a p] P IH]; intros q HP; simpl.
    + apply to_go_stop; [exact Hh|]. apply in_paths_nil, HP.
    + apply in_paths_cons in HP. destruct HP as [He HP].
      apply (le_trans _ _ _ (to_go_step h Hh q a p He)), le_add, IH, HP.
  - induction q as [q IH] using (below_ind M).
    assert (Hin : In (h q) (map (fun e => c (fst e) + h (snd e)) (edges q)
                            ++ (if accept q then [0] else []))).
    { pattern (h q) at 1. rewrite (Hh q). unfold to_go, row. rewrite map_map. cbn [fst snd].
      apply best_spec. destruct (Halive q) as [-> | H].
      - apply not_eq_sym, app_cons_not_nil.
      - destruct (edges q); [congruence | discriminate]. }
    apply in_app_iff in Hin. destruct Hin as [Hin | Hin].
    + apply in_map_iff in Hin. destruct Hin as [[a p] [Hq He]]. cbn [fst snd] in Hq.
      destruct (IH a p He) as [P [HP HT]]. exists ((a, p) :: P).
      split; [apply in_paths_cons; auto|]. simpl. fold (total P). lia.
    + exists []. destruct (accept q) eqn:E; [|destruct Hin]. destruct Hin as [H | []].
      split; [apply in_paths_nil, E | exact H].
Qed.
End Best.

Theorem C5_cost_to_go cost_low h : holds (to_go Z.min cost_low) h -> alive -> forall q,
  (forall P, In P (paths q) -> h q <= total cost_low P) /\
  exists P, In P (paths q) /\ total cost_low P = h q.
Proof. apply (C5_is_the_best_plan Z.min Z.le); intros; lia. Qed.

Theorem C5_residual_to_go r g : holds (to_go Z.max r) g -> alive -> forall q,
  (forall P, In P (paths q) -> total r P <= g q) /\
  exists P, In P (paths q) /\ total r P = g q.
Proof.
  intros Hg Halive q.
  destruct (C5_is_the_best_plan Z.max Z.ge ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) r g Hg Halive q)
    as [H1 H2].
  split; [|exact H2]. intros P HP. apply Z.ge_le, H1, HP.
Qed.

(* What the keys of recipe r2 need of g (race.md, section 8). *)
Theorem C5_bounds_steps r g : holds (to_go Z.max r) g -> forall q,
  (accept q = true -> 0 <= g q) /\ (forall a p, In (a, p) (edges q) -> r a + g p <= g q).
Proof.
  intros Hg q. split.
  - intros H. apply Z.ge_le, (to_go_stop Z.max Z.ge ltac:(lia) ltac:(lia) ltac:(lia) r g Hg q H).
  - intros a p H. apply Z.ge_le, (to_go_step Z.max Z.ge ltac:(lia) ltac:(lia) ltac:(lia) r g Hg q a p H).
Qed.

End Certificates.
