(* What the code computes in place of what the texts say: equal, each of them.
   docs/spec/race.md, sections 5 and 7; docs/spec/artifact.md, section 5 (C4). *)

From Coq Require Import List Bool Reals ZArith Lia Lra.
From Tcc Require Import Automaton Certificates Rounding.
Import ListNotations.
Local Open Scope Z_scope.

(* race.py, rest.py: bisect for the first running sum above ((2x + 1) m) >> 65. *)
Theorem winner_by_shift x m s : (2 * x + 1) * m < 2 ^ 65 * s <-> Z.shiftr ((2 * x + 1) * m) 65 < s.
Proof.
  rewrite Z.shiftr_div_pow2 by lia. assert (H := Z.mul_succ_div_gt ((2 * x + 1) * m) (2 ^ 65) ltac:(lia)).
  assert (H' := Z.mul_div_le ((2 * x + 1) * m) (2 ^ 65) ltac:(lia)). nia.
Qed.

(* pages.py: 2x + 1 below bounds[j] = -((-s << 65) // m). *)
Theorem winner_by_bounds x m s : 0 < m ->
  ((2 * x + 1) * m < 2 ^ 65 * s <-> 2 * x + 1 < - (- (s * 2 ^ 65) / m)).
Proof.
  intros Hm. assert (H := Z.mul_succ_div_gt (- (s * 2 ^ 65)) m Hm).
  assert (H' := Z.mul_div_le (- (s * 2 ^ 65)) m Hm). nia.
Qed.

(* fixed.py: divide_nearest. *)
Definition divide_nearest (n d : Z) : Z :=
  let q := (2 * n + d) / (2 * d) in
  if ((2 * n + d) mod (2 * d) =? 0) && Z.odd q then q - 1 else q.

Theorem divide_nearest_is_nearest n d : 0 < d -> divide_nearest n d = nearest (IZR n / IZR d).
Proof.
  intros Hd. set (f := n / d). set (s := n mod d).
  assert (Hn : n = d * f + s) by (apply Z.div_mod; lia). assert (Hs := Z.mod_pos_bound n d Hd). fold s in Hs.
  assert (HdR : (0 < IZR d)%R) by (apply IZR_lt; exact Hd).
  assert (E : (IZR n / IZR d = IZR f + IZR s / IZR d)%R).
  { rewrite Hn at 1. rewrite plus_IZR, mult_IZR. field. lra. }
  assert (S0 : (0 <= IZR s / IZR d)%R).
  { apply Rmult_le_pos; [apply IZR_le; lia | apply Rlt_le, Rinv_0_lt_compat, HdR]. }
  assert (S1 : (IZR s / IZR d < 1)%R).
  { apply (Rmult_lt_reg_r (IZR d)); [exact HdR|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra.
    apply IZR_lt. lia. }
  assert (Ff : floor (IZR n / IZR d) = f).
  { destruct (floor_spec (IZR n / IZR d)) as [A B]. rewrite E in A, B.
    assert (floor (IZR n / IZR d) < f + 1) by (apply lt_IZR; rewrite plus_IZR, E; lra).
    assert (f < floor (IZR n / IZR d) + 1) by (apply lt_IZR; rewrite plus_IZR, E; lra). lia. }
  unfold nearest. rewrite Ff.
  assert (Half : (IZR n / IZR d - IZR f = IZR s / IZR d)%R) by (rewrite E; ring).
  assert (Cmp : forall k, (IZR s / IZR d - 1 / 2 = IZR k / (2 * IZR d))%R <-> 2 * s - d = k).
  { intros k. replace (IZR s / IZR d - 1 / 2)%R with (IZR (2 * s - d) / (2 * IZR d))%R
      by (rewrite minus_IZR, mult_IZR; field; lra).
    split; [intros H; apply eq_IZR | intros ->; reflexivity].
    apply (f_equal (fun z => z * (2 * IZR d)))%R in H. unfold Rdiv in H.
    rewrite !Rmult_assoc, Rinv_l, !Rmult_1_r in H by lra. exact H. }
  unfold divide_nearest.
  assert (Sum : 2 * n + d = (2 * d) * f + (2 * s + d)) by lia.
  destruct (Z.lt_trichotomy (2 * s) d) as [L | [L | L]].
  - rewrite <- (Z.div_unique (2 * n + d) (2 * d) f (2 * s + d)), <- (Z.mod_unique (2 * n + d) (2 * d) f (2 * s + d)) by lia.
    destruct (Z.eqb_spec (2 * s + d) 0); [lia|]. cbn [andb].
    destruct (total_order_T _ _) as [[A|A]|A]; [reflexivity | |]; exfalso; rewrite Half in A;
      assert (2 * IZR s < IZR d)%R by (rewrite <- mult_IZR; apply IZR_lt; lia);
      assert (IZR s / IZR d < 1 / 2)%R; try lra;
      apply (Rmult_lt_reg_r (IZR d)); try exact HdR; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
  - rewrite <- (Z.div_unique (2 * n + d) (2 * d) (f + 1) 0), <- (Z.mod_unique (2 * n + d) (2 * d) (f + 1) 0) by lia.
    cbn [Z.eqb andb]. assert (Z0 := proj2 (Cmp 0) ltac:(lia)). unfold Rdiv at 3 in Z0. rewrite Rmult_0_l in Z0.
    destruct (total_order_T _ _) as [[A|A]|A]; try (exfalso; rewrite Half in A; lra).
    rewrite Z.add_1_r, Z.odd_succ. destruct (Z.even f); lia.
  - rewrite <- (Z.div_unique (2 * n + d) (2 * d) (f + 1) (2 * s - d)), <- (Z.mod_unique (2 * n + d) (2 * d) (f + 1) (2 * s - d)) by lia.
    destruct (Z.eqb_spec (2 * s - d) 0); [lia|]. cbn [andb].
    destruct (total_order_T _ _) as [[A|A]|A]; [| |reflexivity]; exfalso; rewrite Half in A;
      assert (IZR d < 2 * IZR s)%R by (rewrite <- mult_IZR; apply IZR_lt; lia);
      assert (1 / 2 < IZR s / IZR d)%R; try lra;
      apply (Rmult_lt_reg_r (IZR d)); try exact HdR; unfold Rdiv; rewrite (Rmult_assoc (IZR s)), Rinv_l by lra; lra.
Qed.

(* rules/race_counts.py, OneScale: with m(q) 2^(F (D - d(q))) for every state, C4 needs no shifts. *)
Theorem one_scale M F W d m D : holds M (rank M) d -> (forall q, d q <= D)%nat -> forall q,
  let m' := fun p => m p * unit F (D - d p) in
  m q = masses M F W d q (row M m q) <->
  unit F 1 * m' q = (if accept M q then unit F (D + 1) else 0)
                    + sum (map (fun e => W (fst e) * m' (snd e)) (edges M q)).
Proof.
  intros Hd HD q m'.
  assert (E : unit F (D - d q + 1) * masses M F W d q (row M m q)
    = (if accept M q then unit F (D + 1) else 0) + sum (map (fun e => W (fst e) * m' (snd e)) (edges M q))).
  { unfold masses, row. rewrite map_map, Z.mul_add_distr_l, <- sum_scale, Z.add_comm. cbn [fst snd]. f_equal.
    - destruct (accept M q); [|ring]. rewrite <- unit_split. f_equal. specialize (HD q). lia.
    - f_equal. apply map_ext_in. intros [a p] Hp. apply (rank_falls M d Hd) in Hp.
      unfold mass, m'. cbn [fst snd]. specialize (HD q).
      replace (D - d p)%nat with ((D - d q + 1) + (d q - 1 - d p))%nat by lia.
      rewrite (unit_split F (D - d q + 1) (d q - 1 - d p)). ring. }
  assert (U : 0 < unit F (D - d q + 1)) by apply unit_pos.
  assert (S : unit F 1 * m' q = unit F (D - d q + 1) * m q).
  { unfold m'. rewrite unit_split. ring. }
  rewrite S, <- E. split; [intros <-; reflexivity | intros H; nia].
Qed.
