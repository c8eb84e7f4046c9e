(* Where the loop of States says true, the columns are an automaton, and every certificate of it holds. *)

From Coq Require Import List Arith ZArith Lia Bool Sorted FMapPositive.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import States.
Import ListNotations.
Local Open Scope Z_scope.

(* Tables. *)
Definition holds_table {A} (m : Map.t A) (l : list A) :=
  forall z, get m z = if z <? 0 then None else nth_error l (Z.to_nat z).

Definition pos_of (n : nat) : positive := Pos.of_succ_nat n.
Lemma key_of_nat n : key (Z.of_nat n) = pos_of n.
Proof. unfold key, pos_of. lia. Qed.
Lemma key_spec z : 0 <= z -> key z = pos_of (Z.to_nat z).
Proof. intros Hz. rewrite <- key_of_nat, Z2Nat.id by exact Hz. reflexivity. Qed.
Lemma pos_of_injective n m : pos_of n = pos_of m -> n = m.
Proof. unfold pos_of. apply SuccNat2Pos.inj. Qed.

Lemma empty_table {A} : holds_table (Map.empty A) [].
Proof.
  intros z. unfold get. destruct (z <? 0); [reflexivity|]. rewrite Map.gempty.
  destruct (Z.to_nat z); reflexivity.
Qed.

Lemma add_table {A} m (l : list A) x :
  holds_table m l -> holds_table (Map.add (pos_of (length l)) x m) (l ++ [x]).
Proof.
  intros Hm z. specialize (Hm z). unfold get in *. destruct (z <? 0) eqn:E; [reflexivity|].
  apply Z.ltb_ge in E. rewrite key_spec in * by exact E.
  destruct (Nat.eq_dec (Z.to_nat z) (length l)) as [-> | N].
  - rewrite Map.gss, nth_error_app2, Nat.sub_diag by lia. reflexivity.
  - rewrite Map.gso by (intros K; apply N, pos_of_injective, K). rewrite Hm.
    destruct (Nat.lt_ge_cases (Z.to_nat z) (length l)) as [L | L].
    + rewrite nth_error_app1 by exact L. reflexivity.
    + rewrite (proj2 (nth_error_None l _)) by lia.
      symmetry. apply nth_error_None. rewrite app_length. simpl. lia.
Qed.

Lemma succ_pos_of {A} (l : list A) x : Pos.succ (pos_of (length l)) = pos_of (length (l ++ [x])).
Proof. unfold pos_of. rewrite app_length, Nat.add_1_r. reflexivity. Qed.

Lemma tabled_table {A} (l pre : list A) m :
  holds_table m pre -> holds_table (tabled l (pos_of (length pre)) m) (pre ++ l).
Proof.
  revert pre m. induction l as [|x l IH]; intros pre m Hm; simpl.
  - rewrite app_nil_r. exact Hm.
  - rewrite (succ_pos_of pre x). replace (pre ++ x :: l) with ((pre ++ [x]) ++ l) by (rewrite <- app_assoc; reflexivity).
    apply IH, add_table, Hm.
Qed.

(* Byte strings. *)
Lemma same_equal a b : same a b = true -> a = b.
Proof.
  revert b. induction a as [|x a IH]; intros [|y b] E; simpl in E; try discriminate; [reflexivity|].
  apply andb_prop in E. destruct E as [E1 E2]. apply Z.eqb_eq in E1. rewrite E1, (IH b E2). reflexivity.
Qed.
Lemma same_refl a : same a a = true.
Proof. induction a as [|x a IH]; simpl; [reflexivity|]. rewrite Z.eqb_refl. exact IH. Qed.
Lemma less_irreflexive a : less a a = false.
Proof. induction a as [|x a IH]; simpl; [reflexivity|]. rewrite Z.ltb_irrefl, Z.eqb_refl. exact IH. Qed.
Lemma less_transitive a b c : less a b = true -> less b c = true -> less a c = true.
Proof.
  revert b c. induction a as [|x a IH]; intros [|y b] [|z c]; simpl; try discriminate; auto.
  destruct (x <? y) eqn:XY; destruct (y <? z) eqn:YZ; intros E1 E2.
  - apply Z.ltb_lt in XY, YZ. replace (x <? z) with true by (symmetry; apply Z.ltb_lt; lia). reflexivity.
  - destruct (y =? z) eqn:E; [|discriminate]. apply Z.eqb_eq in E. subst z. rewrite XY. reflexivity.
  - destruct (x =? y) eqn:E; [|discriminate]. apply Z.eqb_eq in E. subst y. rewrite YZ. reflexivity.
  - destruct (x =? y) eqn:E; [|discriminate]. destruct (y =? z) eqn:E'; [|discriminate].
    apply Z.eqb_eq in E, E'. subst. rewrite XY, Z.eqb_refl. eapply IH; eassumption.
Qed.

Section Sound.
Variable H : bytes -> bytes.
Variables F room : Z.
Variable lines : list line.
Variable rows : list row.
Hypothesis ok : states_ok H F room lines rows = true.

Let lines_table := tabled lines 1 (Map.empty line).
Lemma parts_ok : 0 <= F /\ lines_ok H None lines = true /\
  rows_ok H F room lines_table 1 (Map.empty row) None rows = true /\
  all_entered (entered rows) 1 rows = true /\ rows <> [].
Proof.
  unfold states_ok in ok. rewrite !andb_true_iff in ok. destruct ok as [[[[K1 K2] K3] K4] K5].
  repeat split; auto.
  - apply Z.leb_le, K1.
  - intros E. rewrite E in K5. discriminate.
Qed.

(* The calls. *)
Definition no_line := {| ltext := []; llow := 0; lhigh := 0; lweight := 1; lresidual := 0; lkey := H (call_bytes {| text := []; low := 0; high := 0 |}) |}.
Definition line_of (a : call) := nth a lines no_line.
Definition info (a : call) : told := told_of (line_of a).

Lemma lines_ok_all before l : lines_ok H before l = true -> forall c, In c l -> line_ok H c = true.
Proof.
  revert before. induction l as [|x l IH]; intros before E c Hc; simpl in *; [destruct Hc|].
  rewrite !andb_true_iff in E. destruct E as [[_ E] E']. destruct Hc as [<- | Hc]; [exact E | eapply IH; eauto].
Qed.
Lemma line_of_ok a : line_ok H (line_of a) = true.
Proof.
  unfold line_of. destruct (nth_in_or_default a lines no_line) as [Hin | ->].
  - eapply lines_ok_all; [apply parts_ok | exact Hin].
  - unfold line_ok, no_line, told_of. cbn [ltext llow lhigh lweight lkey].
    rewrite !andb_true_iff. repeat split; try reflexivity.
    apply same_refl.
Qed.
Lemma weights_positive a : 0 < lweight (line_of a).
Proof. assert (K := line_of_ok a). unfold line_ok in K. rewrite !andb_true_iff in K. apply Z.ltb_lt, K. Qed.
Lemma keys_right a : lkey (line_of a) = H (call_bytes (info a)).
Proof. assert (K := line_of_ok a). unfold line_ok in K. rewrite !andb_true_iff in K. apply same_equal, K. Qed.
Lemma costs_in_range a : in_range (info a).
Proof.
  assert (K := line_of_ok a). unfold line_ok, fits in K. rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt in K.
  unfold in_range, I64, info, told_of. simpl. tauto.
Qed.

Definition text_before (x y : told) := less (text x) (text y) = true.
Lemma lines_increase_from before l : lines_ok H before l = true ->
  StronglySorted (fun c d => less (ltext c) (ltext d) = true) l /\
  forall t, before = Some t -> Forall (fun c => less t (ltext c) = true) l.
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
  intros L. unfold text_before, info, told_of, line_of. cbn [text].
  apply (sorted_nth (fun c d => less (ltext c) (ltext d) = true)); [|exact L].
  apply (lines_increase_from None), parts_ok.
Qed.

(* The rows. *)
Lemma rows_each l pre held before :
  holds_table held pre -> rows_ok H F room lines_table (pos_of (length pre)) held before l = true ->
  (forall r, before = Some r -> exists x, nth_error pre (length pre - 1) = Some x /\ (rrank x, rdigest x) = r) ->
  (before = None -> pre = []) ->
  forall i r, nth_error l i = Some r -> exists held before,
    holds_table held (pre ++ firstn i l) /\ row_ok H F room lines_table held before r = true /\
    (forall b, before = Some b -> exists x, nth_error (pre ++ firstn i l) (length pre + i - 1) = Some x /\ (rrank x, rdigest x) = b) /\
    (before = None -> pre ++ firstn i l = []).
Proof.
  revert pre held before. induction l as [|x l IH]; intros pre held before Hh E Hb Hn i r Hi.
  { destruct i; discriminate. }
  cbn [rows_ok] in E. apply andb_prop in E. destruct E as [E E']. destruct i as [|i].
  - injection Hi as <-. exists held, before. cbn [firstn]. rewrite app_nil_r, Nat.add_0_r. auto.
  - simpl in Hi. rewrite (succ_pos_of pre x) in E'.
    destruct (IH (pre ++ [x]) (Map.add (pos_of (length pre)) x held) (Some (rrank x, rdigest x))
                (add_table _ _ x Hh) E') with (i := i) (r := r) as [h [b [K1 [K2 [K3 K4]]]]]; auto.
    + intros b [= <-]. exists x. rewrite app_length. simpl. rewrite Nat.add_sub.
      rewrite nth_error_app2, Nat.sub_diag by lia. auto.
    + discriminate.
    + exists h, b. cbn [firstn]. rewrite <- app_assoc in K1, K3, K4. cbn [app] in K1, K3, K4.
      rewrite app_length in K3. cbn [length] in K3.
      replace (length pre + S i - 1)%nat with (length pre + 1 + i - 1)%nat by lia. auto.
Qed.

Definition no_row := {| raccept := true; rrank := 0; rplans := 1; rmass := 1; rcost := 0; rscore := 0;
                        rdigest := H (state_bytes true []); redges := [] |}.
Definition row_of (q : nat) := nth q rows no_row.
Definition both (e : Z * Z) : line * row := (line_of (Z.to_nat (fst e)), row_of (Z.to_nat (snd e))).

Lemma ends_spec held q before l es : holds_table held (firstn q rows) ->
  ends lines_table held before l = Some es -> es = map both l /\
  StronglySorted (fun e f : Z * Z => fst e < fst f) l /\ Forall (fun e => before < fst e) l /\
  Forall (fun e => 0 <= fst e < Z.of_nat (length lines) /\ 0 <= snd e < Z.of_nat q /\ snd e < Z.of_nat (length rows)) l.
Proof.
  intros Hh. revert before es. induction l as [|[a p] l IH]; intros before es E; simpl in E.
  { injection E as <-. repeat split; constructor. }
  destruct (a <=? before) eqn:B; [discriminate|]. apply Z.leb_gt in B.
  assert (Hl := tabled_table lines [] _ empty_table a). cbn [length app] in Hl. change (pos_of 0) with 1%positive in Hl.
  fold lines_table in Hl. rewrite Hl, (Hh p) in E.
  destruct (a <? 0) eqn:A0; [discriminate|]. destruct (nth_error lines (Z.to_nat a)) as [c|] eqn:C; [|discriminate].
  destruct (p <? 0) eqn:P0; [discriminate|]. destruct (nth_error (firstn q rows) (Z.to_nat p)) as [r|] eqn:R; [|discriminate].
  destruct (ends lines_table held a l) as [es'|] eqn:E'; [|discriminate]. injection E as <-.
  apply Z.ltb_ge in A0, P0. destruct (IH a es' E') as [-> [I1 [I2 I3]]].
  assert (Lp := proj1 (nth_error_Some (firstn q rows) (Z.to_nat p)) ltac:(congruence)).
  assert (La := proj1 (nth_error_Some lines (Z.to_nat a)) ltac:(congruence)). rewrite firstn_length in Lp.
  split; [|split; [|split]].
  - cbn [map]. f_equal. unfold both, line_of, row_of. cbn [fst snd].
    rewrite (nth_error_nth _ _ _ C). rewrite <- (firstn_skipn q rows). rewrite app_nth1 by (rewrite firstn_length; lia).
    rewrite (nth_error_nth _ _ _ R). reflexivity.
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
  s_digest : rdigest (row_of q) = H (due_bytes (raccept (row_of q)) (es_of q));
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
     (rrank (row_of p) = rrank (row_of q) /\ less (rdigest (row_of p)) (rdigest (row_of q)) = true)).
Proof.
  intros L. assert (K := proj1 (proj2 (proj2 parts_ok))).
  destruct (rows_each rows [] (Map.empty row) None empty_table K ltac:(discriminate) ltac:(auto) q (row_of q) (row_inside q L))
    as [held [before [Hh [E [Hb Hn]]]]]. cbn [app length] in *.
  unfold row_ok in E. destruct (ends lines_table held (-1) (redges (row_of q))) as [es|] eqn:Ee; [|discriminate].
  destruct (ends_spec held q _ _ _ Hh Ee) as [-> [S1 [_ S2]]]. fold (es_of q) in *.
  rewrite !andb_true_iff in E. destruct E as [[[[[[[E1 E2] [_ E3]] E4] E5] E6] E7] E8].
  apply Z.eqb_eq in E1, E2, E3, E4, E5. apply same_equal in E6. split.
  - constructor; auto. apply orb_prop in E8. destruct E8 as [E8 | E8]; [left; exact E8|].
    right. intros N. unfold es_of in E8. rewrite N in E8. discriminate.
  - intros p <-. unfold later in E7. destruct before as [[rank digest]|].
    + destruct (Hb _ eq_refl) as [x [Hx Ex]]. replace (0 + S p - 1)%nat with p in Hx by lia.
      assert (x = row_of p).
      { assert (Hp := row_inside p ltac:(lia)). rewrite <- (firstn_skipn (S p) rows), nth_error_app1 in Hp by (rewrite firstn_length; lia).
        congruence. }
      subst x. injection Ex as <- <-. apply orb_prop in E7. destruct E7 as [E7 | E7].
      * left. apply Z.ltb_lt, E7.
      * right. apply andb_prop in E7. destruct E7 as [E7 E7']. apply Z.eqb_eq in E7. auto.
    + specialize (Hn eq_refl). apply (f_equal (@length _)) in Hn. rewrite firstn_length in Hn. cbn [length] in Hn. lia.
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
Definition S_of q := rdigest (row_of q).
Lemma C6_holds : holds columns (digest H columns info) S_of.
Proof.
  intros q. unfold digest. rewrite row_columns, map_map. cbn [fst snd edge_of]. unfold S_of at 1.
  rewrite (s_digest q (all_seen q)). f_equal. unfold due_bytes, state_bytes, es_of. do 2 f_equal.
  induction (redges (row_of q)) as [|e l IH]; cbn [map fold_right flat_map]; [reflexivity|].
  rewrite IH. unfold both. cbn [fst snd]. rewrite keys_right, <- app_assoc. reflexivity.
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
  (rrank (row_of p) = rrank (row_of q) /\ less (S_of p) (S_of q) = true).
Lemma prior_all p q : (p < q < length rows)%nat -> prior p q.
Proof.
  intros [L L']. induction q as [|q IH]; [lia|].
  assert (K := proj2 (inside (S q) L') q eq_refl). fold (S_of q) in K. fold (S_of (S q)) in K. fold (prior q (S q)) in K.
  destruct (Nat.eq_dec p q) as [-> | N]; [exact K|].
  specialize (IH ltac:(lia) ltac:(lia)). unfold prior in *. destruct IH as [I | [I I']], K as [J | [J J']]; try (left; lia).
  right. split; [lia|]. eapply less_transitive; eassumption.
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
    - intros a. unfold text_before. rewrite less_irreflexive. discriminate.
    - intros a b c. apply less_transitive. }
  assert (R : forall u v, (forall P, In P (told_plans columns info u) <-> In P (told_plans columns info v)) -> rrank (row_of u) <= rrank (row_of v)).
  { intros u v Euv. destruct (ranks_right u) as [_ [P [HP LP]]].
    assert (HI : In (map info P) (told_plans columns info u)) by (apply in_map, HP).
    apply Euv in HI. apply in_map_iff in HI. destruct HI as [Q [EQ HQ]].
    apply (f_equal (@length _)) in EQ. rewrite !map_length in EQ.
    apply (proj1 (ranks_right v)) in HQ. unfold d_of in *. assert (A := ranks_not_negative u). assert (B := ranks_not_negative v). lia. }
  assert (R1 := R p q E). assert (R2 := R q p (fun P => iff_sym (E P))).
  destruct (Nat.lt_trichotomy p q) as [L | [L | L]]; [|exact L|]; exfalso.
  - destruct (prior_all p q ltac:(lia)) as [K | [_ K]]; [lia|]. rewrite D, less_irreflexive in K. discriminate.
  - destruct (prior_all q p ltac:(lia)) as [K | [_ K]]; [lia|]. rewrite D, less_irreflexive in K. discriminate.
Qed.

(* Every state is led to from the last, the root. *)
Inductive reached : nat -> Prop :=
| from_root : reached root
| from_edge q a p : reached q -> In (a, p) (edges columns q) -> reached p.

Lemma entered_row es m z : 0 <= z -> Forall (fun e : Z * Z => 0 <= snd e) es ->
  Map.mem (key z) (fold_left (fun m e => Map.add (key (snd e)) true m) es m) = true ->
  Map.mem (key z) m = true \/ exists e, In e es /\ snd e = z.
Proof.
  intros Hz. revert m. induction es as [|e es IH]; intros m B K; simpl in K; [left; exact K|].
  inversion B as [|? ? Be Bs]; subst. destruct (IH _ Bs K) as [K' | [f [Hf Ef]]].
  - destruct (Z.eq_dec (snd e) z) as [E | E]; [right; exists e; simpl; auto|]. left.
    rewrite Map.mem_find in K' |- *. rewrite Map.gso in K'; [exact K'|].
    intros C. apply E. unfold key in C. lia.
  - right. exists f. simpl. auto.
Qed.
Lemma entered_some l m z : 0 <= z -> Forall (fun r => Forall (fun e : Z * Z => 0 <= snd e) (redges r)) l ->
  Map.mem (key z) (fold_left (fun m r => fold_left (fun m e => Map.add (key (snd e)) true m) (redges r) m) l m) = true ->
  Map.mem (key z) m = true \/ exists r e, In r l /\ In e (redges r) /\ snd e = z.
Proof.
  intros Hz. revert m. induction l as [|r l IH]; intros m B K; simpl in K; [left; exact K|].
  inversion B as [|? ? Br Bl]; subst. destruct (IH _ Bl K) as [K' | [s [e [Hs He]]]].
  - destruct (entered_row _ _ z Hz Br K') as [K'' | [e [He Ee]]]; [left; exact K''|].
    right. exists r, e. simpl. auto.
  - right. exists s, e. simpl. tauto.
Qed.
Lemma all_entered_spec m l at_ : all_entered m (pos_of at_) l = true ->
  forall i, (S i < length l)%nat -> Map.mem (pos_of (at_ + i)) m = true.
Proof.
  revert at_. induction l as [|r l IH]; intros at_ E i L; simpl in L; [lia|].
  destruct l as [|r' l]; [simpl in L; lia|]. cbn [all_entered] in E. apply andb_prop in E. destruct E as [E1 E2].
  destruct i as [|i]; [rewrite Nat.add_0_r; exact E1|].
  replace (at_ + S i)%nat with (S at_ + i)%nat by lia. apply (IH (S at_)); [exact E2 | simpl in *; lia].
Qed.

Theorem all_reached q : (q < length rows)%nat -> reached q.
Proof.
  intros L. remember (root - q)%nat as k eqn:Hk. revert q L Hk.
  induction k as [k IH] using lt_wf_ind. intros q L Hk. unfold root in *.
  destruct (Nat.eq_dec q (length rows - 1)) as [-> | N]; [apply from_root|].
  assert (K := all_entered_spec (entered rows) rows 0 (proj1 (proj2 (proj2 (proj2 parts_ok)))) q ltac:(lia)).
  simpl in K. rewrite <- key_of_nat in K. unfold entered in K.
  destruct (entered_some rows (Map.empty bool) (Z.of_nat q)) as [K' | [r [e [Hr [He Ee]]]]]; auto; try lia.
  - apply Forall_forall. intros r Hr. apply In_nth with (d := no_row) in Hr. destruct Hr as [i [Li <-]].
    change (nth i rows no_row) with (row_of i). assert (B := s_bounds i (all_seen i)).
    rewrite Forall_forall in *. intros e He. specialize (B e He). lia.
  - rewrite Map.mem_find, Map.gempty in K'. discriminate.
  - apply In_nth with (d := no_row) in Hr. destruct Hr as [i [Li <-]]. change (nth i rows no_row) with (row_of i) in He.
    assert (B := s_bounds i (all_seen i)). rewrite Forall_forall in B. specialize (B e He).
    apply from_edge with i (Z.to_nat (fst e)).
    + apply (IH (length rows - 1 - i)%nat); lia.
    + simpl. apply in_map_iff. exists e. split; [|exact He]. unfold edge_of. f_equal. lia.
Qed.

End Sound.
