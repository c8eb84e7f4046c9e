(* Where the loop of States says true, the columns are an automaton, and every certificate of it holds. *)

From Coq Require Import List Arith ZArith Lia Bool Sorted Permutation.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Sums.
Import ListNotations.
Local Open Scope Z_scope.

Section Sound.
Context {str : Type} (o : strings str).
Notation line := (line str).
Notation row := (row str).
Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.
Variables (F : Z) (k : counting).
Variable lines : list line.
Variable rows : list row.
Hypothesis ok : states_ok o F k lines rows = true.
Lemma parts_ok : (0 <= F /\ match bits k with None => True | Some b => 1 <= b end) /\ lines_ok o None lines = true /\
  rows_ok o F k (table lines) (table rows) 0 None rows = true /\
  marked (hit (len rows 0) (fun r => map snd (redges r)) rows) 0 (tl rows) = true /\ rows <> [] /\
  marked (hit (len lines 0) (fun r => map fst (redges r)) rows) 0 lines = true.
Proof.
  unfold states_ok in ok. rewrite !andb_true_iff in ok. destruct ok as [[[[[[K1 K0] K2] K3] K4] K5] K6].
  repeat split; auto.
  - apply Z.leb_le, K1.
  - destruct (bits k); [apply Z.leb_le, K0 | exact I].
  - intros E. rewrite E in K5. discriminate.
Qed.

(* The calls. *)
Definition told_of (c : line) : told := {| text := view o (ltext c); low := llow c; high := lhigh c |}.
Lemma call_string_is c : view o (call_string o c) = call_bytes (told_of c).
Proof.
  unfold call_string, call_bytes, told_of. rewrite (joined_is o H) by exact strings_mean. cbn [map concat text low high].
  rewrite (made_is o H), !(numbers_is o H), (size_is o H) by exact strings_mean. cbn [flat_map]. rewrite !app_nil_r. reflexivity.
Qed.
Definition no_line : line := let c k := {| ltext := made o []; llow := 0; lhigh := 0; lweight := 1; lresidual := 0; lkey := k |} in
  c (hash o (call_string o (c (made o [])))).
Definition line_of (a : call) := nth a lines no_line.
Definition info (a : call) : told := told_of (line_of a).
Lemma lines_ok_all before l : lines_ok o before l = true -> forall c, In c l -> line_ok o c = true.
Proof.
  revert before. induction l as [|x l IH]; intros before E c Hc; simpl in *; [destruct Hc|].
  rewrite !andb_true_iff in E. destruct E as [[_ E] E']. destruct Hc as [<- | Hc]; [exact E | eapply IH; eauto].
Qed.
Lemma line_of_ok a : line_ok o (line_of a) = true.
Proof.
  unfold line_of. destruct (nth_in_or_default a lines no_line) as [Hin | ->].
  - eapply lines_ok_all; [apply parts_ok | exact Hin].
  - unfold line_ok, no_line. cbn [ltext llow lhigh lweight lkey].
    rewrite !andb_true_iff. repeat split; try reflexivity.
    apply (same_is o H); [exact strings_mean | reflexivity].
Qed.
Lemma weights_positive a : 0 < lweight (line_of a).
Proof. assert (K := line_of_ok a). unfold line_ok in K. rewrite !andb_true_iff in K. apply Z.ltb_lt, K. Qed.
Lemma keys_right a : view o (lkey (line_of a)) = H (call_bytes (info a)).
Proof.
  assert (K := line_of_ok a). unfold line_ok in K. rewrite !andb_true_iff in K. destruct K as [_ K].
  apply (same_is o H) in K; [|exact strings_mean].
  rewrite K, (hash_is o H), call_string_is by exact strings_mean. reflexivity.
Qed.
Lemma costs_in_range a : in_range (info a).
Proof.
  assert (K := line_of_ok a). unfold line_ok, fits in K. rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt in K.
  unfold in_range, I64, info, told_of. simpl. tauto.
Qed.
Definition text_before (x y : told) := precedes (text x) (text y) = true.
Lemma less_transitive s t u : less o s t = true -> less o t u = true -> less o s u = true.
Proof. rewrite !(less_is o H) by exact strings_mean. apply precedes_transitive. Qed.
Lemma lines_increase_from before l : lines_ok o before l = true ->
  StronglySorted (fun c d => less o (ltext c) (ltext d) = true) l /\
  forall t, before = Some t -> Forall (fun c => less o t (ltext c) = true) l.
Proof.
  revert before. induction l as [|c l IH]; intros before E; simpl in E; [split; constructor|].
  rewrite !andb_true_iff in E. destruct E as [[E1 _] E3]. destruct (IH _ E3) as [I1 I2].
  specialize (I2 _ eq_refl). split; [constructor; assumption|].
  intros t ->. constructor; [exact E1|]. rewrite Forall_forall in *. intros d Hd.
  apply less_transitive with (ltext c); auto.
Qed.
Lemma texts_increase a b : (a < b < length lines)%nat -> text_before (info a) (info b).
Proof.
  intros L. unfold text_before, info, told_of, line_of. cbn [text]. rewrite <- (less_is o H) by exact strings_mean.
  apply (sorted_nth (fun c d => less o (ltext c) (ltext d) = true)); [|exact L].
  apply (lines_increase_from None), parts_ok.
Qed.

(* The rows. *)
Lemma rows_each calls states l : forall q before, rows_ok o F k calls states q before l = true ->
  forall i r, nth_error l i = Some r -> exists b, row_ok o F k calls states (q + Z.of_nat i) b r = true /\
    match i with O => True | S j => exists x, nth_error l j = Some x /\ b = Some (rrank x, rdigest x) end.
Proof.
  induction l as [|x l IH]; intros q before E i r Hi; [destruct i; discriminate|].
  cbn [rows_ok] in E. apply andb_prop in E. destruct E as [E E']. destruct i as [|i].
  - injection Hi as <-. exists before. rewrite Z.add_0_r. auto.
  - simpl in Hi. destruct i as [|i].
    + destruct l as [|y l]; [discriminate|]. injection Hi as <-. cbn [rows_ok] in E'. apply andb_prop in E'.
      exists (Some (rrank x, rdigest x)). split; [apply E' | exists x; auto].
    + destruct (IH _ _ E' (S i) r Hi) as [b [K1 K2]]. exists b.
      split; [replace (q + Z.of_nat (S (S i))) with (q + 1 + Z.of_nat (S i)) by lia; exact K1 | exact K2].
Qed.
Definition no_row : row := {| raccept := true; rrank := 0; rplans := 1; rmass := 1; rcost := 0; rscore := 0;
                        rdigest := hash o (joined o [opening o true]); redges := []; rexponent := 0 |}.
Definition row_of (q : nat) := nth q rows no_row.
Definition both (e : Z * Z) : line * row := (line_of (Z.to_nat (fst e)), row_of (Z.to_nat (snd e))).

(* The edges as the digest has them. *)
Notation states := (table rows).
Definition laid_of (q : nat) := laid o k states (row_of q).
Lemma laid_all q : Permutation (laid_of q) (redges (row_of q)).
Proof. unfold laid_of, laid. destruct (many k); [apply arranged_all | reflexivity]. Qed.
Lemma laid_same q : many k = false -> laid_of q = redges (row_of q).
Proof. unfold laid_of, laid. intros ->. reflexivity. Qed.

(* What a row is due, by its edges and the rows they lead to. *)
Definition W_of a := weigh k (line_of a).
Definition value (r : row) : Z := rmass r * 2 ^ rexponent r.
Definition due_rank (es : list (line * row)) : Z := fold_right (fun e z => Z.max (1 + rrank (snd e)) z) 0 es.
Definition due_plans (ok : bool) (es : list (line * row)) : Z :=
  fold_right (fun e z => rplans (snd e) + z) 0 es + (if ok then 1 else 0).
Definition lifted (rank : Z) (x : row) := F * (rank - 1 - rrank x) + rexponent x.
Definition due_low (level rank : Z) (es : list (line * row)) : Z :=
  fold_right (fun e z => Z.shiftl (weigh k (fst e) * rmass (snd e)) (lifted rank (snd e) - level) + z) 0 es.
Definition due_off (level rank : Z) (es : list (line * row)) : Z :=
  fold_right (fun e z => short (weigh k (fst e) * rmass (snd e)) (lifted rank (snd e) - level) + z) 0 es.
Definition due_best (op : Z -> Z -> Z) (from : Z) (l : list Z) : Z := fold_right op from l.
Definition due_string (ok : bool) (es : list (line * row)) : str :=
  joined o (opening o ok :: flat_map (fun e => [lkey (fst e); rdigest (snd e)]) es).
(* Order in the digest: calls increase; those of one call by the digests of their targets, where a call may repeat. *)
Definition next (a : Z) (s : str) (e : Z * Z) : Prop :=
  a < fst e \/ (many k = true /\ a = fst e /\ less o s (rdigest (row_of (Z.to_nat (snd e)))) = true).
Definition follows (e f : Z * Z) : Prop := next (fst e) (rdigest (row_of (Z.to_nat (snd e)))) f.
Lemma ends_spec q l : forall a0 s0 es, ends o k (table lines) states q a0 s0 l = Some es ->
  es = map both l /\ Forall (next a0 s0) l /\ StronglySorted follows l /\
  Forall (fun e => 0 <= fst e < Z.of_nat (length lines) /\ 0 <= snd e < q /\ snd e < Z.of_nat (length rows)) l.
Proof.
  induction l as [|[a p] l IH]; intros a0 s0 es E; cbn [ends] in E.
  - injection E as <-. repeat split; constructor.
  - destruct (Z.leb_spec q p) as [|Q]; [discriminate|]. destruct (table lines a) as [c|] eqn:C; [|discriminate].
    destruct (table rows p) as [x|] eqn:R; [|discriminate].
    destruct ((0 <? rmass x) && _) eqn:O; [|discriminate]. apply andb_prop in O. destruct O as [_ O].
    destruct (ends o k (table lines) states q a (rdigest x) l) as [es'|] eqn:E'; [|discriminate]. injection E as <-.
    apply (table_is _ no_line) in C. apply (table_is _ no_row) in R. destruct C as [C C'], R as [R R'].
    fold (row_of (Z.to_nat p)) in R'. assert (X : rdigest x = rdigest (row_of (Z.to_nat p))) by (rewrite R'; reflexivity).
    assert (N0 : next a0 s0 (a, p)).
    { unfold next. cbn [fst snd]. rewrite R'. rewrite orb_true_iff, !andb_true_iff, Z.ltb_lt, Z.eqb_eq in O. tauto. }
    apply IH in E'. destruct E' as (-> & E1 & E2 & E3).
    assert (T : forall f, next a (rdigest x) f -> next a0 s0 f).
    { intros f Hf. unfold next in *. cbn [fst snd] in *. rewrite <- X in N0. destruct N0 as [N0 | (N1 & N2 & N3)], Hf as [Hf | (H1 & H2 & H3)]; try (left; lia).
      right. repeat split; [exact N1 | lia | eapply less_transitive; eassumption]. }
    split; [cbn [map]; f_equal; unfold both, line_of; cbn [fst snd]; rewrite C', R'; reflexivity|].
    split; [constructor; [exact N0 | eapply Forall_impl; [exact T | exact E1]]|].
    split; [constructor; [exact E2 | unfold follows; cbn [fst snd]; rewrite <- X; exact E1]|].
    constructor; [cbn [fst snd]; lia | exact E3].
Qed.
Lemma pass_spec r level most_ es : forall deepest plans low off least most inputs,
  pass o F k r level most_ deepest plans low off least most inputs es = true ->
  (0 <= deepest -> rrank r = Z.max (due_rank es) deepest) /\ (gate k = false -> rplans r = plans + due_plans false es) /\
  count_ok k r level (low + due_low level (rrank r) es) (off + due_off level (rrank r) es) = true /\
  rcost r = due_best Z.min least (map (fun e => llow (fst e) + rcost (snd e)) es) /\
  rscore r = due_best Z.max most (map (fun e => lresidual (fst e) + rscore (snd e)) es) /\
  view o (rdigest r) = view o (hash o (joined o (opening o (raccept r) :: rev inputs ++ flat_map (fun e => [lkey (fst e); rdigest (snd e)]) es))).
Proof.
  induction es as [|[c x] es IH]; intros deepest plans low off least most inputs E; cbn [pass] in E.
  - rewrite !andb_true_iff in E. destruct E as [[[[[E1 E2] E3] E4] E5] E6]. cbn [map due_rank due_low due_off due_best fold_right flat_map].
    apply Z.eqb_eq in E1, E4, E5. rewrite !Z.add_0_r.
    repeat split; auto.
    + unfold due_rank. cbn [fold_right]. lia.
    + unfold due_plans. cbn [fold_right]. intros G. rewrite G in E2. apply Z.eqb_eq in E2. lia.
    + apply (same_is o H strings_mean) in E6. rewrite app_nil_r, E6, rev_append_rev, app_nil_r. reflexivity.
  - cbv zeta in E. destruct (most_ <=? _); [discriminate|]. apply IH in E. destruct E as (E4 & E5 & E6 & E7 & E8 & E9).
    unfold due_rank, due_plans, due_low, due_off, due_best in *. cbn [map fold_right flat_map fst snd].
    split; [intros P; specialize (E4 ltac:(lia)); lia|]. split; [intros G; specialize (E5 G); lia|].
    split; [rewrite <- E6; f_equal; unfold lifted; lia|].
    split; [rewrite E7; symmetry; apply fold_first; lia|]. split; [rewrite E8; symmetry; apply fold_first; lia|].
    rewrite E9. cbn [rev]. rewrite <- !app_assoc. reflexivity.
Qed.

(* What the loop has seen of state q. *)
Definition es_of q := map both (laid_of q).
Definition from_ (ok : bool) (far_ : Z) := if ok then 0 else far_.
Record seen (q : nat) : Prop := {
  s_sorted : StronglySorted follows (laid_of q);
  s_bounds : Forall (fun e => 0 <= fst e < Z.of_nat (length lines) /\ 0 <= snd e < Z.of_nat q /\ snd e < Z.of_nat (length rows)) (laid_of q);
  s_rank : rrank (row_of q) = due_rank (es_of q);
  s_plans : gate k = false -> rplans (row_of q) = due_plans (raccept (row_of q)) (es_of q);
  s_count : exists level, 0 <= level /\ (0 <= rexponent (row_of q) -> level = 0 \/ level < rexponent (row_of q)) /\
    let s := F * rrank (row_of q) - level in let ok := raccept (row_of q) in
    count_ok k (row_of q) level ((if ok then Z.shiftl 1 s else 0) + due_low level (rrank (row_of q)) (es_of q))
      ((if ok then short 1 s else 0) + due_off level (rrank (row_of q)) (es_of q)) = true;
  s_cost : rcost (row_of q) = due_best Z.min (from_ (raccept (row_of q)) far) (map (fun e => llow (fst e) + rcost (snd e)) (es_of q)) /\ rcost (row_of q) < far;
  s_score : rscore (row_of q) = due_best Z.max (from_ (raccept (row_of q)) (- far)) (map (fun e => lresidual (fst e) + rscore (snd e)) (es_of q)) /\ - far < rscore (row_of q);
  s_digest : view o (rdigest (row_of q)) = view o (hash o (due_string (raccept (row_of q)) (es_of q)));
  s_alive : raccept (row_of q) = true \/ laid_of q <> [];
}.
Lemma outside q : (length rows <= q)%nat -> row_of q = no_row.
Proof. intros L. apply nth_overflow, L. Qed.
Lemma row_inside q : (q < length rows)%nat -> nth_error rows q = Some (row_of q).
Proof.
  intros L. destruct (nth_error rows q) as [r|] eqn:E.
  - f_equal. symmetry. apply (nth_error_nth _ _ _ E).
  - apply nth_error_None in E. lia.
Qed.
Lemma due_rank_positive es : 0 <= due_rank es.
Proof. induction es as [|e es IH]; unfold due_rank in *; cbn [fold_right]; lia. Qed.
Lemma inside q : (q < length rows)%nat -> seen q /\
  (forall p, S p = q -> rrank (row_of p) < rrank (row_of q) \/
     (rrank (row_of p) = rrank (row_of q) /\ less o (rdigest (row_of p)) (rdigest (row_of q)) = true)).
Proof.
  intros L. assert (K := proj1 (proj2 (proj2 parts_ok))).
  destruct (rows_each _ _ rows _ _ K q (row_of q) (row_inside q L)) as [before [E Hb]]. cbn [Z.add] in E.
  unfold row_ok in E. cbv zeta in E. rewrite !andb_true_iff in E. destruct E as [[[[[_ E2] E4] E5] E7] E8].
  apply Z.ltb_lt in E4, E5.
  assert (P : exists level, 0 <= level /\ (0 <= rexponent (row_of q) -> level = 0 \/ level < rexponent (row_of q)) /\
                edges_ok o F k (table lines) states (Z.of_nat q) (row_of q) (laid_of q) level = true).
  { apply orb_prop in E2. destruct E2 as [E2 | E2].
    - exists (level_of (row_of q)). unfold level_of in *. repeat split; [lia | lia | exact E2].
    - apply andb_prop in E2. exists 0. repeat split; [lia | auto | apply E2]. }
  destruct P as (level & L0 & L1 & P). unfold edges_ok in P. cbv zeta in P. apply andb_prop in P. destruct P as [_ P].
  destruct (ends _ _ _ _ _ _ _ _) as [es|] eqn:Ee; [|discriminate].
  apply ends_spec in Ee. fold (es_of q) in Ee. destruct Ee as (-> & _ & P2 & P3). apply pass_spec in P. destruct P as (P4 & P5 & P6 & P7 & P8 & P9).
  assert (R := due_rank_positive (es_of q)). split.
  - constructor; auto.
    + specialize (P4 ltac:(lia)). lia.
    + intros G. specialize (P5 G). unfold due_plans in *. lia.
    + exists level. auto.
    + apply orb_prop in E8. destruct E8 as [E8 | E8]; [left; exact E8|]. right. intros N. assert (A := laid_all q). rewrite N in A.
      apply Permutation_nil in A. rewrite A in E8. discriminate.
  - intros p <-. destruct Hb as [x [Hx ->]]. unfold later in E7.
    assert (x = row_of p) by (assert (Hp := row_inside p ltac:(lia)); congruence). subst x.
    apply orb_prop in E7. destruct E7 as [E7 | E7].
    + left. apply Z.ltb_lt, E7.
    + right. apply andb_prop in E7. destruct E7 as [E7 E7']. apply Z.eqb_eq in E7. auto.
Qed.
Lemma all_seen q : seen q.
Proof.
  destruct (Nat.lt_ge_cases q (length rows)) as [L | L]; [apply inside, L|].
  assert (E := outside q L).
  assert (N : laid_of q = []) by (assert (A := laid_all q); rewrite E in A; symmetry in A; apply Permutation_nil in A; exact A).
  constructor; unfold es_of; rewrite ?N, ?E; cbn [no_row raccept rrank rplans rmass rcost rscore rdigest rexponent map]; try constructor; try reflexivity.
  exists 0. split; [lia|]. split; [auto|]. cbv zeta. rewrite Z.mul_0_r. cbn. unfold count_ok. cbn.
  destruct parts_ok as [[_ B] _]. destruct (bits k) as [b|]; [|reflexivity].
  assert (0 < 2 ^ (b - 1)) by (apply Z.pow_pos_nonneg; lia). replace (1 <? 2 ^ (b - 1) + 2 ^ (b - 1)) with true by (symmetry; apply Z.ltb_lt; lia). reflexivity.
Qed.

(* The automaton of the columns.  Numbers past the last are states that accept and lead nowhere. *)
Definition edge_of (e : Z * Z) : call * nat := (Z.to_nat (fst e), Z.to_nat (snd e)).
Lemma rows_fall q a p : In (a, p) (map edge_of (laid_of q)) -> (p < q)%nat.
Proof.
  intros Hin. apply in_map_iff in Hin. destruct Hin as [e [E He]]. injection E as _ <-.
  assert (B := s_bounds q (all_seen q)). rewrite Forall_forall in B. specialize (B e He). lia.
Qed.
Definition columns : automaton := {|
  state := nat; accept := fun q => raccept (row_of q); edges := fun q => map edge_of (laid_of q);
  number := fun q => q; falls := rows_fall |}.
Lemma row_columns {X} (x : nat -> X) q :
  Certificates.row columns x q = map (fun e => (edge_of e, x (Z.to_nat (snd e)))) (laid_of q).
Proof. unfold Certificates.row. simpl. rewrite map_map. reflexivity. Qed.

(* C1 *)
Lemma C1_holds : many k = false -> forall q, NoDup (map fst (edges columns q)).
Proof.
  intros D q. simpl. rewrite map_map. cbn [edge_of fst]. apply (sorted_once _ _ _ (s_sorted q (all_seen q))).
  assert (B := s_bounds q (all_seen q)). rewrite Forall_forall in B. intros x y Hx Hy [L | [E _]]; [|congruence].
  assert (Bx := B x Hx). assert (By := B y Hy). unfold edge_of. cbn [fst]. lia.
Qed.
Lemma C1_pairs q : NoDup (edges columns q).
Proof.
  simpl. apply (sorted_once _ _ _ (s_sorted q (all_seen q))).
  assert (B := s_bounds q (all_seen q)). rewrite Forall_forall in B. intros x y Hx Hy R.
  assert (Bx := B x Hx). assert (By := B y Hy). unfold edge_of. intros E. injection E as E1 E2.
  destruct R as [L | [_ [_ L]]]; [lia|]. rewrite E2 in L. rewrite (less_is o H strings_mean), precedes_irreflexive in L. discriminate.
Qed.

(* C2 *)
Definition d_of q := Z.to_nat (rrank (row_of q)).
Lemma ranks_not_negative q : 0 <= rrank (row_of q).
Proof. rewrite (s_rank q (all_seen q)). apply due_rank_positive. Qed.
Lemma C2_holds : holds columns (rank columns) d_of.
Proof.
  intros q. unfold rank. rewrite row_columns, map_map. cbn [snd]. unfold d_of at 1.
  rewrite (s_rank q (all_seen q)). unfold es_of, due_rank.
  induction (laid_of q) as [|e l IH]; cbn [map fold_right]; [reflexivity|].
  rewrite <- IH. unfold both. cbn [snd]. unfold d_of. assert (0 <= rrank (row_of (Z.to_nat (snd e)))) by apply ranks_not_negative.
  rewrite Z2Nat.inj_max. f_equal. lia.
Qed.

(* C604 *)
Lemma alive_holds : alive columns.
Proof.
  intros q. destruct (s_alive q (all_seen q)) as [A | A]; [left; exact A | right]. simpl. intros N. apply map_eq_nil in N. auto.
Qed.

(* C3 *)
Definition N_of q := rplans (row_of q).
Lemma C3_holds : gate k = false -> holds columns (plan_count columns) N_of.
Proof.
  intros G q. unfold plan_count. rewrite row_columns, map_map. cbn [snd]. unfold N_of at 1.
  rewrite (s_plans q (all_seen q) G). unfold due_plans, es_of. simpl accept. f_equal.
  unfold sum. induction (laid_of q) as [|e l IH]; cbn [map fold_right]; [reflexivity|]. rewrite IH. reflexivity.
Qed.

(* C4: a count is exact, or the least of its bits that is no less than what its row is due. *)
Definition m_of q := value (row_of q).
Definition due_count q := masses columns (Z.to_nat F) W_of d_of q (Certificates.row columns m_of q).
Lemma pass_exponents q : 0 <= rexponent (row_of q).
Proof.
  destruct (s_count q (all_seen q)) as (level & _ & _ & C). unfold count_ok in C. cbv zeta in C.
  destruct (bits k); rewrite !andb_true_iff in C.
  - destruct C as [[[[[C _] _] _] _] _]. apply Z.leb_le, C.
  - destruct C as [C _]. apply Z.eqb_eq in C. lia.
Qed.
Lemma unit_is z n : z = Z.of_nat n -> 2 ^ (F * z) = unit (Z.to_nat F) n.
Proof. intros ->. unfold unit. f_equal. rewrite Nat2Z.inj_mul, Z2Nat.id by apply parts_ok. reflexivity. Qed.
Lemma ranks_fall q e : In e (laid_of q) -> 1 + rrank (row_of (Z.to_nat (snd e))) <= rrank (row_of q).
Proof.
  rewrite (s_rank q (all_seen q)). unfold due_rank, es_of. generalize (laid_of q). induction l as [|f l IH]; intros He; [destruct He|].
  cbn [map fold_right]. unfold both at 1. cbn [snd]. destruct He as [<- | He]; [lia|]. specialize (IH He). lia.
Qed.
Lemma window q level : 0 <= level ->
  let s := F * rrank (row_of q) - level in let ok := raccept (row_of q) in
  let low := (if ok then Z.shiftl 1 s else 0) + due_low level (rrank (row_of q)) (es_of q) in
  let off := (if ok then short 1 s else 0) + due_off level (rrank (row_of q)) (es_of q) in
  low * 2 ^ level <= due_count q <= (low + off) * 2 ^ level /\ 0 <= off /\ (0 < off -> low * 2 ^ level < due_count q) /\ (level = 0 -> off = 0).
Proof.
  intros L. cbv zeta. assert (F0 := proj1 (proj1 parts_ok)). assert (R := ranks_not_negative q).
  unfold due_count, masses. rewrite row_columns, map_map. cbn [fst snd]. simpl accept.
  assert (A : let s := F * rrank (row_of q) - level in let ok := raccept (row_of q) in
    let low := if ok then Z.shiftl 1 s else 0 in let off := if ok then short 1 s else 0 in
    let due := if ok then unit (Z.to_nat F) (d_of q) else 0 in
    low * 2 ^ level <= due <= (low + off) * 2 ^ level /\ 0 <= off /\ (0 < off -> low * 2 ^ level < due) /\ (level = 0 -> off = 0)).
  { cbv zeta. destruct (raccept (row_of q)); [|lia]. rewrite <- (unit_is (rrank (row_of q)) (d_of q)) by (unfold d_of; lia).
    destruct (short_spec 1 (F * rrank (row_of q)) level ltac:(lia) L) as (S1 & S2 & S3). rewrite Z.mul_1_l in *.
    repeat split; try tauto. intros ->. unfold short. rewrite Z.sub_0_r. replace (0 <=? _) with true by (symmetry; apply Z.leb_le; lia). reflexivity. }
  assert (T : let low := due_low level (rrank (row_of q)) (es_of q) in let off := due_off level (rrank (row_of q)) (es_of q) in
    let due := sum (map (fun e => mass columns (Z.to_nat F) W_of d_of q (edge_of e) (m_of (Z.to_nat (snd e)))) (laid_of q)) in
    low * 2 ^ level <= due <= (low + off) * 2 ^ level /\ 0 <= off /\ (0 < off -> low * 2 ^ level < due) /\ (level = 0 -> off = 0)).
  { cbv zeta. unfold es_of. assert (D := ranks_fall q). revert D. generalize (laid_of q).
    induction l as [|e l IH]; intros D; [unfold due_low, due_off; cbn [map fold_right sum]; lia|]. cbn [map].
    specialize (IH (fun f Hf => D f (or_intror Hf))). specialize (D e (or_introl eq_refl)).
    set (p := Z.to_nat (snd e)) in *. assert (R' := ranks_not_negative p). assert (E' := pass_exponents p).
    set (v := weigh k (line_of (Z.to_nat (fst e))) * rmass (row_of p)).
    change (due_low level (rrank (row_of q)) (both e :: map both l)) with
      (Z.shiftl v (lifted (rrank (row_of q)) (row_of p) - level) + due_low level (rrank (row_of q)) (map both l)).
    change (due_off level (rrank (row_of q)) (both e :: map both l)) with
      (short v (lifted (rrank (row_of q)) (row_of p) - level) + due_off level (rrank (row_of q)) (map both l)).
    unfold sum. cbn [fold_right]. fold (sum (map (fun e => mass columns (Z.to_nat F) W_of d_of q (edge_of e) (m_of (Z.to_nat (snd e)))) l)). revert IH. generalize (due_low level (rrank (row_of q)) (map both l)) (due_off level (rrank (row_of q)) (map both l)).
    generalize (sum (map (fun e => mass columns (Z.to_nat F) W_of d_of q (edge_of e) (m_of (Z.to_nat (snd e)))) l)). intros dues lows offs IH.
    assert (U : 0 <= F * (rrank (row_of q) - 1 - rrank (row_of p))) by (apply Z.mul_nonneg_nonneg; lia).
    assert (X : mass columns (Z.to_nat F) W_of d_of q (edge_of e) (m_of p) = v * 2 ^ lifted (rrank (row_of q)) (row_of p)).
    { unfold mass, W_of, m_of, value, edge_of, lifted. cbn [fst snd]. fold p.
      rewrite Z.pow_add_r, (unit_is _ (d_of q - 1 - d_of p)%nat) by (lia || (unfold d_of; lia)). unfold v. ring. }
    rewrite X. destruct (short_spec v (lifted (rrank (row_of q)) (row_of p)) level ltac:(unfold lifted; lia) L) as (S1 & S2 & S3).
    destruct IH as (I1 & I2 & I3 & I4). revert S1 S2 S3. generalize (v * 2 ^ lifted (rrank (row_of q)) (row_of p)).
    generalize (Z.shiftl v (lifted (rrank (row_of q)) (row_of p) - level)). intros t x S1 S2 S3.
    assert (S4 : level = 0 -> short v (lifted (rrank (row_of q)) (row_of p) - level) = 0).
    { intros ->. unfold short. rewrite Z.sub_0_r. replace (0 <=? _) with true by (symmetry; apply Z.leb_le; unfold lifted; lia). reflexivity. }
    revert S1 S2 S3 S4. generalize (short v (lifted (rrank (row_of q)) (row_of p) - level)). intros c S1 S2 S3 S4.
    clear - S1 S2 S3 S4 I1 I2 I3 I4. revert S1 S3 I1 I3. generalize (2 ^ level). intros u S1 S3 I1 I3.
    rewrite !Z.mul_add_distr_r in *. lia. }
  cbv zeta in A, T. destruct A as (A1 & A2 & A3 & A4), T as (T1 & T2 & T3 & T4).
  revert A1 A2 A3 A4 T1 T2 T3 T4. generalize (sum (map (fun e => mass columns (Z.to_nat F) W_of d_of q (edge_of e) (m_of (Z.to_nat (snd e)))) (laid_of q))).
  generalize (if raccept (row_of q) then Z.shiftl 1 (F * rrank (row_of q) - level) else 0) (due_low level (rrank (row_of q)) (es_of q))
    (if raccept (row_of q) then short 1 (F * rrank (row_of q) - level) else 0) (due_off level (rrank (row_of q)) (es_of q))
    (if raccept (row_of q) then unit (Z.to_nat F) (d_of q) else 0) (2 ^ level). clear. intros. rewrite !Z.mul_add_distr_r in *. lia.
Qed.
Lemma C4_exact q : bits k = None -> m_of q = due_count q /\ rexponent (row_of q) = 0.
Proof.
  intros B. destruct (s_count q (all_seen q)) as (level & L0 & L1 & C). assert (E := pass_exponents q).
  cbv zeta in C. assert (Wq := window q level L0). cbv zeta in Wq. revert C Wq.
  generalize ((if raccept (row_of q) then Z.shiftl 1 (F * rrank (row_of q) - level) else 0) + due_low level (rrank (row_of q)) (es_of q))
    ((if raccept (row_of q) then short 1 (F * rrank (row_of q) - level) else 0) + due_off level (rrank (row_of q)) (es_of q)).
  intros low off C (W1 & W2 & W3 & W4). unfold count_ok in C. cbv zeta in C. rewrite B in C. apply andb_prop in C. destruct C as [C1 C2].
  apply Z.eqb_eq in C1, C2. assert (level = 0) by (destruct (L1 E); lia). subst level. rewrite (W4 eq_refl) in W1.
  unfold m_of, value. rewrite C1, C2. change (2 ^ 0) with 1 in *. lia.
Qed.
Lemma C4_rounded q b : bits k = Some b -> rounded_up b (due_count q) (rmass (row_of q)) (rexponent (row_of q)).
Proof.
  intros B. destruct (s_count q (all_seen q)) as (level & L0 & L1 & C). assert (E := pass_exponents q).
  assert (B1 := proj2 (proj1 parts_ok)). rewrite B in B1.
  cbv zeta in C. assert (Wq := window q level L0). cbv zeta in Wq. revert C Wq.
  generalize ((if raccept (row_of q) then Z.shiftl 1 (F * rrank (row_of q) - level) else 0) + due_low level (rrank (row_of q)) (es_of q))
    ((if raccept (row_of q) then short 1 (F * rrank (row_of q) - level) else 0) + due_off level (rrank (row_of q)) (es_of q)).
  intros low off C (W1 & W2 & W3 & W4). unfold count_ok in C. cbv zeta in C. rewrite B in C. rewrite !andb_true_iff in C.
  destruct C as [[[[[C1 C2] C3] C4] C5] C6]. apply Z.leb_le in C1, C4, C6. apply Z.ltb_lt in C2, C5.
  exact (least_of_its_bits b level low off _ (row_of q) B1 L0 (L1 E) W1 W2 W3 C1 C2 C3 C4 C5 C6).
Qed.
Lemma C4_holds : bits k = None -> holds columns (race_count columns (Z.to_nat F) W_of d_of) m_of.
Proof. intros B q. apply (C4_exact q B). Qed.
Lemma C4_at_least q : due_count q <= m_of q.
Proof.
  destruct (bits k) as [b|] eqn:B; [apply (C4_rounded q b B)|]. rewrite (proj1 (C4_exact q B)). lia.
Qed.

(* C5 *)
Definition c_of a := llow (line_of a).
Definition h_of q := rcost (row_of q).
Definition r_of a := lresidual (line_of a).
Definition g_of q := rscore (row_of q).
Lemma laid_alive q : raccept (row_of q) = false -> forall X (f : Z * Z -> X), map f (laid_of q) <> [].
Proof. intros N X f E. apply map_eq_nil in E. destruct (s_alive q (all_seen q)); congruence. Qed.
Lemma C5_cost_holds : holds columns (to_go columns Z.min c_of) h_of.
Proof.
  intros q. unfold to_go. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold h_of at 1.
  destruct (s_cost q (all_seen q)) as [E L]. revert L. rewrite E. unfold due_best. rewrite due_best_is. unfold es_of. rewrite map_map. simpl accept.
  assert (N := laid_alive q). destruct (raccept (row_of q)); intros L; [reflexivity|]. cbn [from_] in *.
  rewrite best_last, app_nil_r in * by (intros; lia || apply N; reflexivity). cbn [both fst snd] in *. unfold c_of, h_of. lia.
Qed.
Lemma C5_score_holds : holds columns (to_go columns Z.max r_of) g_of.
Proof.
  intros q. unfold to_go. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold g_of at 1.
  destruct (s_score q (all_seen q)) as [E L]. revert L. rewrite E. unfold due_best. rewrite due_best_is. unfold es_of. rewrite map_map. simpl accept.
  assert (N := laid_alive q). destruct (raccept (row_of q)); intros L; [reflexivity|]. cbn [from_] in *.
  rewrite best_last, app_nil_r in * by (intros; lia || apply N; reflexivity). cbn [both fst snd] in *. unfold r_of, g_of. lia.
Qed.

(* C6 *)
Definition S_of q := view o (rdigest (row_of q)).
Lemma due_string_is ok' es : view o (due_string ok' es) =
  state_bytes ok' (map (fun e => (view o (lkey (fst e)), view o (rdigest (snd e)))) es).
Proof.
  unfold due_string, state_bytes, opening. rewrite (joined_is o H) by exact strings_mean. cbn [map concat].
  rewrite (made_is o H) by exact strings_mean. replace (low8 [16; if ok' then 1 else 0]) with [16; if ok' then 1 else 0] by (destruct ok'; reflexivity).
  cbn [app]. do 2 f_equal. induction es as [|e es IH]; cbn [map concat flat_map app]; [reflexivity|].
  rewrite IH, <- app_assoc. reflexivity.
Qed.
Lemma C6_holds : holds columns (digest H columns info) S_of.
Proof.
  intros q. unfold digest. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold S_of at 1.
  rewrite (s_digest q (all_seen q)), (hash_is o H), due_string_is by exact strings_mean. f_equal. unfold es_of. rewrite map_map. f_equal.
  apply map_ext. intros e. unfold both. cbn [fst snd]. rewrite keys_right. reflexivity.
Qed.
Lemma order_holds : many k = false -> in_order text_before columns info.
Proof.
  intros D q. unfold letters. simpl. rewrite map_map. cbn [edge_of fst].
  assert (S := s_sorted q (all_seen q)). assert (B := s_bounds q (all_seen q)). revert S B.
  induction (laid_of q) as [|e l IH]; intros S B; simpl; constructor.
  - inversion S; inversion B; subst. apply IH; assumption.
  - inversion S as [|? ? _ HF]; subst. inversion B as [|? ? Be Bl]; subst. rewrite Forall_forall in *.
    intros t Ht. apply in_map_iff in Ht. destruct Ht as [f [<- Hf]]. specialize (HF f Hf). specialize (Bl f Hf).
    destruct HF as [HF | [HF _]]; [|congruence]. apply texts_increase. lia.
Qed.
(* Branches stand by their texts, those of one by the digests of their targets. *)
Definition branch_before (x y : told * bytes) := text_before (fst x) (fst y) \/ (text (fst x) = text (fst y) /\ precedes (snd x) (snd y) = true).
Lemma branches_in_order q : StronglySorted branch_before (branches columns info S_of q).
Proof.
  unfold branches. simpl. rewrite map_map. cbn [edge_of fst snd].
  assert (S := s_sorted q (all_seen q)). assert (B := s_bounds q (all_seen q)). revert S B.
  induction (laid_of q) as [|e l IH]; intros S B; simpl; constructor.
  - inversion S; inversion B; subst. apply IH; assumption.
  - inversion S as [|? ? _ HF]; subst. inversion B as [|? ? Be Bl]; subst. rewrite Forall_forall in *.
    intros t Ht. apply in_map_iff in Ht. destruct Ht as [f [<- Hf]]. specialize (HF f Hf). specialize (Bl f Hf).
    unfold branch_before. cbn [fst snd]. destruct HF as [HF | (_ & HE & HF)]; [left; apply texts_increase; lia|].
    right. rewrite HE. split; [reflexivity|]. rewrite (less_is o H strings_mean) in HF. exact HF.
Qed.

(* (rank, S) increases, so no two states are one. *)
Definition prior p q := rrank (row_of p) < rrank (row_of q) \/
  (rrank (row_of p) = rrank (row_of q) /\ precedes (S_of p) (S_of q) = true).
Lemma prior_all p q : (p < q < length rows)%nat -> prior p q.
Proof.
  intros [L L']. induction q as [|q IH]; [lia|].
  assert (K := proj2 (inside (S q) L') q eq_refl). rewrite (less_is o H) in K by exact strings_mean. fold (S_of q) in K. fold (S_of (S q)) in K. fold (prior q (S q)) in K.
  destruct (Nat.eq_dec p q) as [-> | N]; [exact K|].
  specialize (IH ltac:(lia) ltac:(lia)). unfold prior in *. destruct IH as [I | [I I']], K as [J | [J J']]; try (left; lia).
  right. split; [lia|]. eapply precedes_transitive; eassumption.
Qed.

(* The claims. *)
Definition root := (length rows - 1)%nat.

(* Of paths, where a call may repeat: a plan has one path or more there. *)
Theorem counts_right : gate k = false -> forall q, N_of q = Z.of_nat (length (plans columns q)).
Proof. intros G q. apply (C3_counts_the_plans columns), C3_holds, G. Qed.
Theorem plans_once : many k = false -> forall q, NoDup (plans columns q).
Proof. intros D q. apply (plans_distinct columns), C1_holds, D. Qed.
Theorem paths_once q : NoDup (paths columns q).
Proof. apply (paths_distinct columns), C1_pairs. Qed.
Theorem ranks_right q : (forall P, In P (plans columns q) -> (length P <= d_of q)%nat) /\
  exists P, In P (plans columns q) /\ length P = d_of q.
Proof.
  destruct (C2_is_the_longest_plan columns d_of C2_holds alive_holds q) as [K1 [P [K2 K3]]]. unfold plans. split.
  - intros P' HP. apply in_map_iff in HP. destruct HP as [P'' [<- HP]]. unfold calls_of. rewrite map_length. auto.
  - exists (calls_of columns P). split; [apply in_map, K2|]. unfold calls_of. rewrite map_length. exact K3.
Qed.
Definition cost_of (P : list call) := fold_right (fun a z => c_of a + z) 0 P.
Definition score_of (P : list call) := fold_right (fun a z => r_of a + z) 0 P.
Lemma total_of (c : call -> Z) P : total columns c P = fold_right (fun a z => c a + z) 0 (calls_of columns P).
Proof. induction P as [|e P IH]; simpl; [reflexivity|]. rewrite <- IH. reflexivity. Qed.
Theorem costs_right q : (forall P, In P (plans columns q) -> h_of q <= cost_of P) /\
  exists P, In P (plans columns q) /\ cost_of P = h_of q.
Proof.
  destruct (C5_cost_to_go columns c_of h_of C5_cost_holds alive_holds q) as [K1 [P [K2 K3]]]. unfold plans. split.
  - intros P' HP. apply in_map_iff in HP. destruct HP as [P'' [<- HP]]. specialize (K1 _ HP). rewrite total_of in K1. exact K1.
  - exists (calls_of columns P). split; [apply in_map, K2|]. rewrite total_of in K3. exact K3.
Qed.
Theorem scores_right q : (forall P, In P (plans columns q) -> score_of P <= g_of q) /\
  exists P, In P (plans columns q) /\ score_of P = g_of q.
Proof.
  destruct (C5_residual_to_go columns r_of g_of C5_score_holds alive_holds q) as [K1 [P [K2 K3]]]. unfold plans. split.
  - intros P' HP. apply in_map_iff in HP. destruct HP as [P'' [<- HP]]. specialize (K1 _ HP). rewrite total_of in K1. exact K1.
  - exists (calls_of columns P). split; [apply in_map, K2|]. rewrite total_of in K3. exact K3.
Qed.
Lemma weighs_positive a : 0 < W_of a.
Proof. unfold W_of, weigh. destruct (gate k); [lia | apply weights_positive]. Qed.
Theorem masses_right : bits k = None -> forall q, m_of q = weighed columns (Z.to_nat F) W_of d_of q.
Proof. intros B q. apply (C4_weighs_the_plans columns); [exact C2_holds | apply C4_holds, B]. Qed.
(* Rounded or not, no count is less than what it counts, or than its children's sum; and it is positive. *)
Theorem masses_bound q : weighed columns (Z.to_nat F) W_of d_of q <= m_of q /\ 0 < m_of q.
Proof.
  split; [apply superadditive_counts_are_bounds; [apply weighs_positive | exact C2_holds | apply C4_at_least]|].
  apply (counts_are_positive columns (Z.to_nat F) W_of weighs_positive d_of m_of alive_holds), C4_at_least.
Qed.
(* What a gate's counts count. *)
Theorem gate_counts_bound : gate k = true -> F = 0 -> forall q, Z.of_nat (length (plans columns q)) <= m_of q.
Proof.
  intros G F0 q. refine (Z.le_trans _ _ _ _ (proj1 (masses_bound q))). apply Z.eq_le_incl. unfold weighed, plans. rewrite map_length.
  induction (paths columns q) as [|P l IH]; [reflexivity|]. cbn [map sum fold_right length]. fold (sum (map (fun P => weight columns W_of P * unit (Z.to_nat F) (d_of q - length P)) l)).
  rewrite Nat2Z.inj_succ, IH. replace (weight columns W_of P * _) with 1; [unfold sum; lia|].
  replace (weight columns W_of P) with 1.
  - unfold unit. rewrite F0. reflexivity.
  - induction P as [|e P IHP]; [reflexivity|]. change (1 = W_of (fst e) * weight columns W_of P). rewrite <- IHP. unfold W_of, weigh. rewrite G. reflexivity.
Qed.

(* No two states have the same plans: nothing is assumed of H. *)
Theorem smallest : many k = false -> forall p q, (p < length rows)%nat -> (q < length rows)%nat ->
  (forall P, In P (told_plans columns info p) <-> In P (told_plans columns info q)) -> p = q.
Proof.
  intros Det p q Lp Lq E.
  assert (D : S_of p = S_of q).
  { apply (equal_plans_equal_digests H columns columns info info S_of S_of C6_holds C6_holds text_before); auto using alive_holds, order_holds.
    - intros a. unfold text_before. rewrite precedes_irreflexive. discriminate.
    - intros a b c. apply precedes_transitive. }
  assert (R : forall u v, (forall P, In P (told_plans columns info u) <-> In P (told_plans columns info v)) -> rrank (row_of u) <= rrank (row_of v)).
  { intros u v Euv. destruct (ranks_right u) as [_ [P [HP LP]]].
    assert (HI : In (map info P) (told_plans columns info u)) by (apply in_map, HP).
    apply Euv in HI. apply in_map_iff in HI. destruct HI as [Q [EQ HQ]].
    apply (f_equal (@length _)) in EQ. rewrite !map_length in EQ.
    apply (proj1 (ranks_right v)) in HQ. unfold d_of in *. assert (A := ranks_not_negative u). assert (B := ranks_not_negative v). lia. }
  assert (R1 := R p q E). assert (R2 := R q p (fun P => iff_sym (E P))).
  destruct (Nat.lt_trichotomy p q) as [L | [L | L]]; [|exact L|]; exfalso.
  - destruct (prior_all p q ltac:(lia)) as [K | [_ K]]; [lia|]. rewrite D, precedes_irreflexive in K. discriminate.
  - destruct (prior_all q p ltac:(lia)) as [K | [_ K]]; [lia|]. rewrite D, precedes_irreflexive in K. discriminate.
Qed.

(* And no two have the same graph below, whether a call repeats or not. *)
Theorem smallest_graph p q : (p < length rows)%nat -> (q < length rows)%nat -> agree columns columns info info p q -> p = q.
Proof.
  intros Lp Lq A.
  assert (D : S_of p = S_of q).
  { apply (agreeing_graphs_have_equal_digests H columns columns info info S_of S_of C6_holds C6_holds branch_before); auto using branches_in_order.
    - intros [x b] [K | [_ K]]; cbn in K; [unfold text_before in K|]; rewrite precedes_irreflexive in K; discriminate.
    - intros [x b] [y c] [z d]. unfold branch_before, text_before. cbn [fst snd]. intros [K | [K K']] [L | [L L']].
      + left. eapply precedes_transitive; eassumption.
      + left. rewrite <- L. exact K.
      + left. rewrite K. exact L.
      + right. split; [congruence | eapply precedes_transitive; eassumption]. }
  assert (R : forall u v, agree columns columns info info u v -> rrank (row_of u) <= rrank (row_of v)).
  { intros u v Auv. destruct (C2_is_the_longest_plan columns d_of C2_holds alive_holds u) as [_ [P [HP LP]]].
    destruct (agreeing_paths _ _ _ _ Auv P HP) as [Q [HQ LQ]].
    apply (proj1 (C2_is_the_longest_plan columns d_of C2_holds alive_holds v)) in HQ.
    unfold d_of in *. assert (B := ranks_not_negative u). assert (B' := ranks_not_negative v). lia. }
  assert (R1 := R p q A). assert (R2 := R q p (agree_sym _ _ _ _ A)).
  destruct (Nat.lt_trichotomy p q) as [L | [L | L]]; [|exact L|]; exfalso.
  - destruct (prior_all p q ltac:(lia)) as [K | [_ K]]; [lia|]. rewrite D, precedes_irreflexive in K. discriminate.
  - destruct (prior_all q p ltac:(lia)) as [K | [_ K]]; [lia|]. rewrite D, precedes_irreflexive in K. discriminate.
Qed.

(* Every state is led to from the last, the root. *)
Inductive reached : nat -> Prop :=
| from_root : reached root
| from_edge q a p : reached q -> In (a, p) (edges columns q) -> reached p.
Lemma hit_edge n (f : Z * Z -> Z) z : hit n (fun r : row => map f (redges r)) rows z = true ->
  exists q e, (q < length rows)%nat /\ In e (laid_of q) /\ f e = z.
Proof.
  unfold hit. rewrite !andb_true_iff. intros [_ E]. apply existsb_exists in E. destruct E as [r [Hr E]].
  apply existsb_exists in E. destruct E as [y [Hy E]]. apply Z.eqb_eq in E. subst y.
  apply in_map_iff in Hy. destruct Hy as [e [Ee He]]. apply (In_nth _ _ no_row) in Hr. destruct Hr as [q [Lq <-]].
  exists q, e. split; [exact Lq|]. split; [|exact Ee]. eapply Permutation_in; [symmetry; apply laid_all | exact He].
Qed.
Theorem all_reached q : (q < length rows)%nat -> reached q.
Proof.
  intros L. remember (root - q)%nat as n eqn:Hk. revert q L Hk.
  induction n as [n IH] using lt_wf_ind. intros q L Hk. unfold root in *.
  destruct (Nat.eq_dec q (length rows - 1)) as [-> | N]; [apply from_root|].
  destruct parts_ok as [_ [_ [_ [K [R _]]]]]. assert (T := tl_length rows).
  assert (E := marked_spec _ _ _ K q ltac:(lia)). apply hit_edge in E. destruct E as [p [e [Lp [He Ee]]]].
  assert (B := s_bounds _ (all_seen p)). rewrite Forall_forall in B. specialize (B e He).
  apply from_edge with p (Z.to_nat (fst e)).
  - apply (IH (length rows - 1 - p)%nat); lia.
  - simpl. apply in_map_iff. exists e. split; [|exact He]. unfold edge_of. f_equal. lia.
Qed.

(* Every call is on an edge. *)
Theorem all_used x : (x < length lines)%nat -> exists q p, In (x, p) (edges columns q).
Proof.
  intros L. destruct parts_ok as [_ [_ [_ [_ [_ K]]]]].
  assert (E := marked_spec _ _ _ K x L). apply hit_edge in E. destruct E as [q [e [_ [He Ee]]]].
  exists q, (Z.to_nat (snd e)). simpl. apply in_map_iff. exists e. split; [|exact He]. unfold edge_of. f_equal. lia.
Qed.

End Sound.
