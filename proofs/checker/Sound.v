(* Where the loop of States says true, the columns are an automaton, and every certificate of it holds. *)

From Coq Require Import List Arith ZArith Lia Bool Sorted.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States.
Import ListNotations.
Local Open Scope Z_scope.

Section Sound.
Context {str : Type} (o : strings str).
Notation line := (line str).
Notation row := (row str).
Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.
Variables F room : Z.
Variable lines : list line.
Variable rows : list row.
Hypothesis ok : states_ok o F room lines rows = true.

Lemma parts_ok : 0 <= F /\ lines_ok o None lines = true /\
  rows_ok o F room (table lines) (table rows) 0 None rows = true /\
  marked (hit (len rows 0) (fun r => map snd (redges r)) rows) 0 (tl rows) = true /\ rows <> [] /\
  marked (hit (len lines 0) (fun r => map fst (redges r)) rows) 0 lines = true.
Proof.
  unfold states_ok in ok. rewrite !andb_true_iff in ok. destruct ok as [[[[[K1 K2] K3] K4] K5] K6].
  repeat split; auto.
  - apply Z.leb_le, K1.
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
Lemma sorted_nth {A} (R : A -> A -> Prop) l d i j : StronglySorted R l ->
  (i < j < length l)%nat -> R (nth i l d) (nth j l d).
Proof.
  revert i j. induction l as [|x l IH]; intros i j Hs L; simpl in L; [lia|].
  inversion Hs as [|? ? Hs' Hx]; subst. destruct i as [|i], j as [|j]; try lia; simpl.
  - rewrite Forall_forall in Hx. apply Hx, nth_In. lia.
  - apply IH; [exact Hs' | lia].
Qed.
Lemma texts_increase a b : (a < b < length lines)%nat -> text_before (info a) (info b).
Proof.
  intros L. unfold text_before, info, told_of, line_of. cbn [text]. rewrite <- (less_is o H) by exact strings_mean.
  apply (sorted_nth (fun c d => less o (ltext c) (ltext d) = true)); [|exact L].
  apply (lines_increase_from None), parts_ok.
Qed.

(* The rows. *)
Lemma rows_each calls states l : forall q before, rows_ok o F room calls states q before l = true ->
  forall i r, nth_error l i = Some r -> exists b, row_ok o F room calls states (q + Z.of_nat i) b r = true /\
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
                        rdigest := hash o (due_string o true []); redges := [] |}.
Definition row_of (q : nat) := nth q rows no_row.
Definition both (e : Z * Z) : line * row := (line_of (Z.to_nat (fst e)), row_of (Z.to_nat (snd e))).

Lemma table_is {A} (l : list A) (d : A) z x : table l z = Some x -> 0 <= z < Z.of_nat (length l) /\ nth (Z.to_nat z) l d = x.
Proof.
  unfold table. destruct (Z.ltb_spec z 0) as [|L]; [discriminate|]. intros E.
  assert (N := proj1 (nth_error_Some l (Z.to_nat z)) ltac:(congruence)). split; [lia | apply nth_error_nth, E].
Qed.
Lemma ends_spec q before l es : ends (table lines) (table rows) q before l = Some es -> es = map both l /\
  StronglySorted (fun e f : Z * Z => fst e < fst f) l /\ Forall (fun e => before < fst e) l /\
  Forall (fun e => 0 <= fst e < Z.of_nat (length lines) /\ 0 <= snd e < q /\ snd e < Z.of_nat (length rows)) l.
Proof.
  revert before es. induction l as [|[a p] l IH]; intros before es E; cbn [ends] in E.
  { injection E as <-. repeat split; constructor. }
  destruct ((a <=? before) || (q <=? p)) eqn:B; [discriminate|]. apply orb_false_elim in B. destruct B as [B B'].
  apply Z.leb_gt in B, B'. destruct (table lines a) as [c|] eqn:C; [|discriminate].
  destruct (table rows p) as [r|] eqn:R; [|discriminate].
  destruct (ends (table lines) (table rows) q a l) as [es'|] eqn:E'; [|discriminate]. injection E as <-.
  destruct (IH a es' E') as [-> [I1 [I2 I3]]].
  apply (table_is _ no_line) in C. apply (table_is _ no_row) in R. destruct C as [C C'], R as [R R'].
  split; [|split; [|split]].
  - cbn [map]. f_equal. unfold both, line_of, row_of. cbn [fst snd]. rewrite C', R'. reflexivity.
  - constructor; assumption.
  - constructor; [exact B|]. rewrite Forall_forall in *. intros e He. specialize (I2 e He). lia.
  - constructor; [cbn [fst snd]; lia | exact I3].
Qed.

(* What the loop has seen of state q. *)
Definition es_of q := map both (redges (row_of q)).
Record seen (q : nat) : Prop := {
  s_sorted : StronglySorted (fun e f : Z * Z => fst e < fst f) (redges (row_of q));
  s_bounds : Forall (fun e => 0 <= fst e < Z.of_nat (length lines) /\ 0 <= snd e < Z.of_nat q /\ snd e < Z.of_nat (length rows))
                    (redges (row_of q));
  s_rank : rrank (row_of q) = due_rank (es_of q);
  s_plans : rplans (row_of q) = due_plans (raccept (row_of q)) (es_of q);
  s_mass : rmass (row_of q) = due_mass F (raccept (row_of q)) (rrank (row_of q)) (es_of q);
  s_cost : rcost (row_of q) = best_of Z.min (raccept (row_of q)) (map (fun e => llow (fst e) + rcost (snd e)) (es_of q));
  s_score : rscore (row_of q) = best_of Z.max (raccept (row_of q)) (map (fun e => lresidual (fst e) + rscore (snd e)) (es_of q));
  s_digest : view o (rdigest (row_of q)) = view o (hash o (due_string o (raccept (row_of q)) (es_of q)));
  s_alive : raccept (row_of q) = true \/ redges (row_of q) <> [];
}.

Lemma outside q : (length rows <= q)%nat -> row_of q = no_row.
Proof. intros L. apply nth_overflow, L. Qed.

Lemma row_inside q : (q < length rows)%nat -> nth_error rows q = Some (row_of q).
Proof.
  intros L. destruct (nth_error rows q) as [r|] eqn:E.
  - f_equal. symmetry. apply (nth_error_nth _ _ _ E).
  - apply nth_error_None in E. lia.
Qed.

Lemma inside q : (q < length rows)%nat -> seen q /\
  (forall p, S p = q -> rrank (row_of p) < rrank (row_of q) \/
     (rrank (row_of p) = rrank (row_of q) /\ less o (rdigest (row_of p)) (rdigest (row_of q)) = true)).
Proof.
  intros L. assert (K := proj1 (proj2 (proj2 parts_ok))).
  destruct (rows_each _ _ rows _ _ K q (row_of q) (row_inside q L)) as [before [E Hb]]. cbn [Z.add] in E.
  unfold row_ok in E. destruct (ends (table lines) (table rows) (Z.of_nat q) (-1) (redges (row_of q))) as [es|] eqn:Ee; [|discriminate].
  destruct (ends_spec _ _ _ _ Ee) as [-> [S1 [_ S2]]]. fold (es_of q) in *.
  rewrite !andb_true_iff in E. destruct E as [[[[[[[E1 E2] [_ E3]] E4] E5] E6] E7] E8].
  apply Z.eqb_eq in E1, E2, E3, E4, E5. apply (same_is o H) in E6; [|exact strings_mean]. split.
  - constructor; auto. apply orb_prop in E8. destruct E8 as [E8 | E8]; [left; exact E8|].
    right. intros N. unfold es_of in E8. rewrite N in E8. discriminate.
  - intros p <-. destruct Hb as [x [Hx ->]]. unfold later in E7.
    assert (x = row_of p) by (assert (Hp := row_inside p ltac:(lia)); congruence). subst x.
    apply orb_prop in E7. destruct E7 as [E7 | E7].
    + left. apply Z.ltb_lt, E7.
    + right. apply andb_prop in E7. destruct E7 as [E7 E7']. apply Z.eqb_eq in E7. auto.
Qed.

Lemma all_seen q : seen q.
Proof.
  destruct (Nat.lt_ge_cases q (length rows)) as [L | L]; [apply inside, L|].
  assert (E := outside q L). constructor; unfold es_of; rewrite E; cbn [no_row redges raccept rrank rplans rmass rcost rscore rdigest map];
    try constructor; try reflexivity.
  unfold due_mass. cbn [fold_right]. rewrite Z.mul_0_r. reflexivity.
Qed.

(* The automaton of the columns.  Numbers past the last are states that accept and lead nowhere. *)
Definition edge_of (e : Z * Z) : call * nat := (Z.to_nat (fst e), Z.to_nat (snd e)).
Lemma rows_fall q a p : In (a, p) (map edge_of (redges (row_of q))) -> (p < q)%nat.
Proof.
  intros Hin. apply in_map_iff in Hin. destruct Hin as [e [E He]]. injection E as _ <-.
  assert (B := s_bounds q (all_seen q)). rewrite Forall_forall in B. specialize (B e He). lia.
Qed.
Definition columns : automaton := {|
  state := nat; accept := fun q => raccept (row_of q); edges := fun q => map edge_of (redges (row_of q));
  number := fun q => q; falls := rows_fall |}.

Lemma row_columns {X} (x : nat -> X) q :
  Certificates.row columns x q = map (fun e => (edge_of e, x (Z.to_nat (snd e)))) (redges (row_of q)).
Proof. unfold Certificates.row. simpl. rewrite map_map. reflexivity. Qed.

(* C1 *)
Lemma C1_holds q : NoDup (map fst (edges columns q)).
Proof.
  simpl. rewrite map_map. cbn [edge_of fst].
  assert (S := s_sorted q (all_seen q)). assert (B := s_bounds q (all_seen q)). revert S B.
  induction (redges (row_of q)) as [|e l IH]; intros S B; simpl; constructor.
  - inversion S as [|? ? _ HF]; subst. inversion B as [|? ? Be Bl]; subst. rewrite Forall_forall in *.
    intros Hin. apply in_map_iff in Hin. destruct Hin as [f [E Hf]]. unfold edge_of in E. cbn [fst] in E.
    specialize (HF f Hf). specialize (Bl f Hf). lia.
  - inversion S; inversion B; subst. apply IH; assumption.
Qed.

(* C2 *)
Definition d_of q := Z.to_nat (rrank (row_of q)).
Lemma ranks_not_negative q : 0 <= rrank (row_of q).
Proof.
  rewrite (s_rank q (all_seen q)). unfold due_rank. induction (es_of q); cbn [fold_right]; lia.
Qed.
Lemma C2_holds : holds columns (rank columns) d_of.
Proof.
  intros q. unfold rank. rewrite row_columns, map_map. cbn [snd]. unfold d_of at 1.
  rewrite (s_rank q (all_seen q)). unfold es_of, due_rank.
  induction (redges (row_of q)) as [|e l IH]; cbn [map fold_right]; [reflexivity|].
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
Lemma C3_holds : holds columns (plan_count columns) N_of.
Proof.
  intros q. unfold plan_count. rewrite row_columns, map_map. cbn [snd]. unfold N_of at 1.
  rewrite (s_plans q (all_seen q)). unfold due_plans, es_of. simpl accept. f_equal.
  unfold sum. induction (redges (row_of q)) as [|e l IH]; cbn [map fold_right]; [reflexivity|]. rewrite IH. reflexivity.
Qed.

(* C4 *)
Definition W_of a := lweight (line_of a).
Definition m_of q := rmass (row_of q).
Lemma C4_holds : holds columns (race_count columns (Z.to_nat F) W_of d_of) m_of.
Proof.
  intros q. unfold race_count, masses. rewrite row_columns, map_map. cbn [fst snd]. unfold m_of at 1.
  rewrite (s_mass q (all_seen q)). unfold due_mass, es_of. simpl accept.
  assert (F0 := proj1 parts_ok).
  assert (U : forall z n, z = Z.of_nat n -> 2 ^ (F * z) = unit (Z.to_nat F) n).
  { intros z n ->. unfold unit. f_equal. rewrite Nat2Z.inj_mul, Z2Nat.id by exact F0. reflexivity. }
  assert (R := ranks_not_negative q). f_equal.
  - assert (B := s_rank q (all_seen q)). unfold due_rank, es_of in B.
    assert (D : forall e, In e (redges (row_of q)) -> 1 + rrank (row_of (Z.to_nat (snd e))) <= rrank (row_of q)).
    { rewrite B. generalize (redges (row_of q)). induction l as [|e l IH]; intros f Hf; [destruct Hf|].
      cbn [map fold_right]. unfold both at 1. cbn [snd]. destruct Hf as [<- | Hf]; [lia|]. specialize (IH f Hf). lia. }
    clear B. unfold sum. revert D. generalize (redges (row_of q)). induction l as [|e l IH]; intros D; cbn [map fold_right]; [reflexivity|].
    rewrite IH by (intros f Hf; apply D; right; exact Hf). f_equal.
    unfold both, mass, W_of, edge_of. cbn [fst snd]. specialize (D e (or_introl eq_refl)).
    assert (R' := ranks_not_negative (Z.to_nat (snd e))).
    rewrite Z.shiftl_mul_pow2 by (apply Z.mul_nonneg_nonneg; lia).
    rewrite (U _ (d_of q - 1 - d_of (Z.to_nat (snd e)))%nat) by (unfold d_of; lia).
    unfold m_of. ring.
  - destruct (raccept (row_of q)); [|reflexivity]. rewrite Z.shiftl_mul_pow2 by (apply Z.mul_nonneg_nonneg; lia).
    rewrite (U _ (d_of q)) by (unfold d_of; lia). ring.
Qed.

(* C5 *)
Definition c_of a := llow (line_of a).
Definition h_of q := rcost (row_of q).
Definition r_of a := lresidual (line_of a).
Definition g_of q := rscore (row_of q).
Lemma best_of_best op ok' l : best_of op ok' l = best op (l ++ (if ok' then [0] else [])).
Proof.
  induction l as [|x [|y l] IH]; [destruct ok'; reflexivity | destruct ok'; reflexivity|].
  change (best_of op ok' (x :: y :: l)) with (op x (best_of op ok' (y :: l))). rewrite IH. reflexivity.
Qed.
Lemma C5_cost_holds : holds columns (to_go columns Z.min c_of) h_of.
Proof.
  intros q. unfold to_go. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold h_of at 1.
  rewrite (s_cost q (all_seen q)), best_of_best. unfold es_of. rewrite map_map. reflexivity.
Qed.
Lemma C5_score_holds : holds columns (to_go columns Z.max r_of) g_of.
Proof.
  intros q. unfold to_go. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold g_of at 1.
  rewrite (s_score q (all_seen q)), best_of_best. unfold es_of. rewrite map_map. reflexivity.
Qed.

(* C6 *)
Definition S_of q := view o (rdigest (row_of q)).
Lemma due_string_is ok' es : view o (due_string o ok' es) =
  state_bytes ok' (map (fun e => (view o (lkey (fst e)), view o (rdigest (snd e)))) es).
Proof.
  unfold due_string, state_bytes. rewrite (joined_is o H) by exact strings_mean. cbn [map concat].
  rewrite (made_is o H) by exact strings_mean. replace (low8 [16; if ok' then 1 else 0]) with [16; if ok' then 1 else 0] by (destruct ok'; reflexivity).
  cbn [app]. do 2 f_equal. induction es as [|e es IH]; cbn [fold_right map concat flat_map]; [reflexivity|].
  rewrite IH, <- app_assoc. reflexivity.
Qed.
Lemma C6_holds : holds columns (digest H columns info) S_of.
Proof.
  intros q. unfold digest. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold S_of at 1.
  rewrite (s_digest q (all_seen q)), (hash_is o H), due_string_is by exact strings_mean. f_equal. unfold es_of. rewrite map_map. f_equal.
  apply map_ext. intros e. unfold both. cbn [fst snd]. rewrite keys_right. reflexivity.
Qed.
Lemma order_holds : in_order text_before columns info.
Proof.
  intros q. unfold letters. simpl. rewrite map_map. cbn [edge_of fst].
  assert (S := s_sorted q (all_seen q)). assert (B := s_bounds q (all_seen q)). revert S B.
  induction (redges (row_of q)) as [|e l IH]; intros S B; simpl; constructor.
  - inversion S; inversion B; subst. apply IH; assumption.
  - inversion S as [|? ? _ HF]; subst. inversion B as [|? ? Be Bl]; subst. rewrite Forall_forall in *.
    intros t Ht. apply in_map_iff in Ht. destruct Ht as [f [<- Hf]]. specialize (HF f Hf). specialize (Bl f Hf).
    apply texts_increase. lia.
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

Theorem counts_right q : N_of q = Z.of_nat (length (plans columns q)).
Proof. apply C3_counts_the_plans, C3_holds. Qed.

Theorem plans_once q : NoDup (plans columns q).
Proof. apply plans_distinct, C1_holds. Qed.

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

Theorem masses_right q : m_of q = weighed columns (Z.to_nat F) W_of d_of q /\ 0 < m_of q.
Proof.
  split; [apply C4_weighs_the_plans; [exact C2_holds | exact C4_holds]|].
  apply (counts_are_positive columns (Z.to_nat F) W_of weights_positive d_of m_of alive_holds).
  intros p. assert (K := C4_holds p). unfold race_count in K. rewrite <- K. apply Z.le_refl.
Qed.

(* No two states have the same plans: nothing is assumed of H. *)
Theorem smallest p q : (p < length rows)%nat -> (q < length rows)%nat ->
  (forall P, In P (told_plans columns info p) <-> In P (told_plans columns info q)) -> p = q.
Proof.
  intros Lp Lq E.
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

(* Every state is led to from the last, the root. *)
Inductive reached : nat -> Prop :=
| from_root : reached root
| from_edge q a p : reached q -> In (a, p) (edges columns q) -> reached p.

Lemma marked_spec {A} mark (l : list A) : forall q, marked mark q l = true -> forall i, (i < length l)%nat -> mark (q + Z.of_nat i) = true.
Proof.
  induction l as [|x l IH]; intros q E i L; simpl in L; [lia|]. cbn [marked] in E. apply andb_prop in E. destruct E as [E E'].
  destruct i as [|i]; [rewrite Z.add_0_r; exact E|].
  replace (q + Z.of_nat (S i)) with (q + 1 + Z.of_nat i) by lia. apply IH; [exact E' | lia].
Qed.
Lemma tl_length {A} (l : list A) : length (tl l) = (length l - 1)%nat.
Proof. destruct l; simpl; lia. Qed.
Lemma hit_edge n (f : Z * Z -> Z) z : hit n (fun r : row => map f (redges r)) rows z = true ->
  exists q e, (q < length rows)%nat /\ In e (redges (row_of q)) /\ f e = z.
Proof.
  unfold hit. rewrite !andb_true_iff. intros [_ E]. apply existsb_exists in E. destruct E as [r [Hr E]].
  apply existsb_exists in E. destruct E as [y [Hy E]]. apply Z.eqb_eq in E. subst y.
  apply in_map_iff in Hy. destruct Hy as [e [Ee He]]. apply (In_nth _ _ no_row) in Hr. destruct Hr as [q [Lq <-]].
  exists q, e. auto.
Qed.

Theorem all_reached q : (q < length rows)%nat -> reached q.
Proof.
  intros L. remember (root - q)%nat as k eqn:Hk. revert q L Hk.
  induction k as [k IH] using lt_wf_ind. intros q L Hk. unfold root in *.
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
