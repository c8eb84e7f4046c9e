(* Residuals: r(a) is no less than -beta cost_low(a) - ln (W(a) / 2^F), docs/spec/race.md, section 3, by whole
   numbers; and so, of a file that passes, every hypothesis on artifacts that the claims of both races have
   (proofs/Artifact.v) holds.  Not shown: that W is the nearest to 2^F e^(-beta cost), and r the
   least (M302); no claim and no law rests on these, for both are of any weights. *)

From Coq Require Import List ZArith Lia Bool Reals Lra.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Sound File.
Import ListNotations.
Local Open Scope Z_scope.

(* The text of beta as a fraction. *)
Fixpoint decimal_of (s : bytes) (n d : Z) (point : bool) : option (Z * Z) :=
  match s with
  | [] => Some (n, d)
  | c :: s => if c =? 46 then (if point then None else decimal_of s n d true) else
              if (48 <=? c) && (c <? 58) then decimal_of s (10 * n + (c - 48)) (if point then 10 * d else d) point else None
  end.

(* Below e^x in units of 2^-P, x = p / q: (1 + x / 2^m)^(2^m), rounded down. *)
Definition P := 256.
Definition unit_ := 2 ^ P.
Definition halvings := 120%nat.
Fixpoint squared (n : nat) (y : Z) : Z := match n with O => y | S n => squared n (Z.shiftr (y * y) P) end.
Lemma shifted y : Z.shiftr y P = y / unit_.
Proof. apply Z.shiftr_div_pow2. discriminate. Qed.
Definition first (p q : Z) : Z := unit_ + p * unit_ / (q * 2 ^ Z.of_nat halvings).
Definition billion := 1000000000.

Definition bounds (n d F low weight r : Z) : bool :=
  let q := 2 ^ 32 * (d * billion) in
  let y := first (r * (d * billion) + 2 ^ 32 * (n * low)) q in
  (0 <=? y) && (0 <? q) && (2 ^ F * unit_ <=? weight * squared halvings y).
(* The residual of a call is the least number that is shown to bound. *)
Definition residual_ok {str} (n d F : Z) (c : line str) : bool :=
  bounds n d F (llow c) (lweight c) (lresidual c) && negb (bounds n d F (llow c) (lweight c) (lresidual c - 1)).
Definition weights_ok {str} (o : strings str) (a : artifact str) : bool :=
  match decimal_of (view o (beta a)) 0 1 false with
  | None => false
  | Some (n, d) => (0 <=? n) && (0 <? d) && forallb (residual_ok n d (fraction_bits a)) (lines a)
  end.

Local Open Scope R_scope.

Lemma unit_pos : 0 < IZR unit_.
Proof. apply IZR_lt. reflexivity. Qed.
Lemma below z d : (0 < d)%Z -> IZR (z / d) <= IZR z / IZR d.
Proof.
  intros Hd. assert (0 < IZR d) by (apply IZR_lt, Hd).
  apply (Rmult_le_reg_r (IZR d)); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite <- mult_IZR. apply IZR_le. rewrite Z.mul_comm. apply Z.mul_div_le, Hd.
Qed.
Lemma squared_below n y x : (0 <= y)%Z -> IZR y / IZR unit_ <= exp x ->
  IZR (squared n y) / IZR unit_ <= exp (x * 2 ^ n).
Proof.
  assert (U := unit_pos). revert y x. induction n as [|n IH]; intros y x Hy H; cbn [squared].
  - rewrite pow_O, Rmult_1_r. exact H.
  - rewrite shifted. replace (x * 2 ^ S n) with ((x + x) * 2 ^ n) by (simpl; ring). apply IH.
    + apply Z.div_pos; [nia | reflexivity].
    + apply Rle_trans with ((IZR y / IZR unit_) * (IZR y / IZR unit_)).
      * apply (Rmult_le_reg_r (IZR unit_)); [exact U|].
        replace (IZR (y * y / unit_) / IZR unit_ * IZR unit_) with (IZR (y * y / unit_)) by (field; lra).
        replace (IZR y / IZR unit_ * (IZR y / IZR unit_) * IZR unit_) with (IZR (y * y) / IZR unit_)
          by (rewrite mult_IZR; field; lra).
        apply below. reflexivity.
      * rewrite exp_plus. assert (0 <= IZR y / IZR unit_).
        { apply Rmult_le_pos; [apply IZR_le, Hy | apply Rlt_le, Rinv_0_lt_compat, U]. }
        apply Rmult_le_compat; assumption.
Qed.

Lemma first_below p q : (0 < q)%Z -> IZR (first p q) / IZR unit_ <= exp (IZR p / IZR q / 2 ^ halvings).
Proof.
  intros Hq. assert (U := unit_pos). assert (0 < IZR q) by (apply IZR_lt, Hq).
  assert (T : IZR (2 ^ Z.of_nat halvings) = 2 ^ halvings) by (rewrite <- pow_IZR; reflexivity).
  assert (0 < 2 ^ halvings) by (apply pow_lt; lra).
  apply Rle_trans with (1 + IZR p / IZR q / 2 ^ halvings); [|apply exp_ineq1_le].
  apply (Rmult_le_reg_r (IZR unit_)); [exact U|].
  replace (IZR (first p q) / IZR unit_ * IZR unit_) with (IZR (first p q)) by (field; lra).
  unfold first. rewrite plus_IZR.
  assert (B := below (p * unit_) (q * 2 ^ Z.of_nat halvings) ltac:(apply Z.mul_pos_pos; [exact Hq | reflexivity])).
  rewrite !mult_IZR, T in B. rewrite Rmult_plus_distr_r, Rmult_1_l. apply Rplus_le_compat_l.
  refine (Rle_trans _ _ _ B _). apply Req_le. field. lra.
Qed.

Theorem residual_bounds {str} n d F (c : line str) : (0 < d)%Z -> (0 <= F)%Z -> (0 < lweight c)%Z -> residual_ok n d F c = true ->
  - (IZR n / IZR d) * (IZR (llow c) / IZR billion) - ln (IZR (lweight c) / IZR (2 ^ F)) <= IZR (lresidual c) / IZR (2 ^ 32).
Proof.
  intros Hd HF HW K. apply andb_prop in K. destruct K as [K _]. unfold bounds in K. cbv zeta in K. rewrite !andb_true_iff in K. destruct K as [[K1 K2] K3].
  apply Z.leb_le in K1, K3. apply Z.ltb_lt in K2.
  set (q := (2 ^ 32 * (d * billion))%Z) in *. set (p := (lresidual c * (d * billion) + 2 ^ 32 * (n * llow c))%Z) in *.
  assert (B := squared_below halvings _ _ K1 (first_below p q K2)).
  assert (0 < 2 ^ halvings) by (apply pow_lt; lra).
  assert (Q0 : IZR q <> 0) by (apply not_0_IZR; lia).
  assert (T0 : 2 ^ halvings <> 0) by lra. revert B T0. generalize (2 ^ halvings). intros T B T0.
  replace (IZR p / IZR q / T * T) with (IZR p / IZR q) in B by (field; split; assumption).
  revert B K3. generalize (squared halvings (first p q)). intros y B K3.
  assert (U := unit_pos). assert (0 < IZR (lweight c)) by (apply IZR_lt, HW).
  assert (0 < IZR (2 ^ F)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  assert (C : IZR (2 ^ F) / IZR (lweight c) <= IZR y / IZR unit_).
  { apply IZR_le in K3. rewrite !mult_IZR in K3. clear - K3 U H0 H1. revert K3 U. generalize (IZR unit_). intros v K3 U. apply (Rmult_le_reg_r (IZR (lweight c) * v)); [apply Rmult_lt_0_compat; assumption|].
    replace (IZR (2 ^ F) / IZR (lweight c) * (IZR (lweight c) * v)) with (IZR (2 ^ F) * v) by (field; lra).
    replace (IZR y / v * (IZR (lweight c) * v)) with (IZR (lweight c) * IZR y) by (field; lra). exact K3. }
  assert (X : - ln (IZR (lweight c) / IZR (2 ^ F)) <= IZR p / IZR q).
  { replace (- ln (IZR (lweight c) / IZR (2 ^ F))) with (ln (IZR (2 ^ F) / IZR (lweight c))).
    - rewrite <- (ln_exp (IZR p / IZR q)).
      destruct (Rle_lt_or_eq_dec _ _ (Rle_trans _ _ _ C B)) as [L | ->]; [|apply Rle_refl].
      apply Rlt_le, ln_increasing; [|exact L]. apply Rdiv_lt_0_compat; assumption.
    - replace (IZR (2 ^ F) / IZR (lweight c)) with (/ (IZR (lweight c) / IZR (2 ^ F))) by (field; lra).
      apply ln_Rinv, Rdiv_lt_0_compat; assumption. }
  assert (E : IZR p / IZR q = IZR (lresidual c) / IZR (2 ^ 32) + (IZR n / IZR d) * (IZR (llow c) / IZR billion)).
  { unfold p, q. rewrite plus_IZR, !mult_IZR. field. repeat split; apply not_0_IZR; try lia; discriminate. }
  lra.
Qed.

(* Everything that a run-wise claim takes of an artifact (proofs/Artifact.v, recipe r2), of a file that passes. *)
Section Premises.
Context {str : Type} (o : strings str) (H : bytes -> bytes).
Hypothesis strings_mean : mean o H.
Definition full_verdict (file : str) (a : artifact str) : Z * str :=
  let v := verdict o file a in            (* first: of numbers that fit their columns no power is large *)
  if (fst v =? 0)%Z && negb (weights_ok o a) then (4%Z, made o []) else v.

(* Of an artifact with race counts.  Where a call repeats these are premises of sets of its states (Claims.v: sets_of_states_qualify). *)
Theorem premises file a digest : full_verdict file a = (0%Z, digest) ->
  view o file = view o (encode o a) /\ view o digest = H (view o (manifest_of o a)) /\ numbers_fit o a = true /\
  exists ok : sound_states o a = true, certified o H strings_mean a ok /\
  let A := columns o H strings_mean (units a) (counting_of a) (lines a) (rows a) ok in
  let F := Z.to_nat (units a) in let W := W_of o (counting_of a) (lines a) in
  let r := fun x => lresidual (line_of o (lines a) x) in let g := fun q => rscore (row_of o (rows a) q) in
  let d := fun q => Z.to_nat (rrank (row_of o (rows a) q)) in let m := fun q => value (row_of o (rows a) q) in
  exists n e, decimal_of (view o (beta a)) 0 1 false = Some (n, e) /\
  let beta := IZR n / IZR e in
  0 <= beta /\                                                                            (* beta_nonneg *)
  (ambiguous a = false -> forall q, NoDup (map fst (edges A q))) /\                       (* C1 *)
  (forall x, (0 < W x)%Z) /\                                                              (* W_pos *)
  (counted a <> Gated -> forall x, W x = lweight (line_of o (lines a) x)) /\
  (forall x, (x < length (lines a))%nat ->
     - beta * (IZR (llow (line_of o (lines a) x)) / IZR billion) - ln (IZR (lweight (line_of o (lines a) x)) / IZR (2 ^ fraction_bits a))
       <= IZR (r x) / IZR (2 ^ 32)) /\                                                    (* r_up *)
  holds A (rank A) d /\                                                                   (* C2 *)
  (forall q, (Certificates.masses A F W d q (Certificates.row A m q) <= m q)%Z) /\         (* C4 *)
  holds A (to_go A Z.max r) g /\                                                          (* C5 *)
  alive A /\                                                                              (* C6 *)
  (forall q, accept A q = true -> (0 <= g q)%Z) /\                                        (* ahead_stop *)
  (forall q x p, In (x, p) (edges A q) -> (r x + g p <= g q)%Z).                          (* ahead_step *)
Proof.
  unfold full_verdict. cbv zeta. intros V.
  assert (Ew : weights_ok o a = true).
  { destruct (weights_ok o a); [reflexivity|]. destruct (verdict o file a) as [z d]. cbn [fst negb] in V.
    destruct (Z.eqb_spec z 0) as [-> | N]; [discriminate|]. cbn [andb] in V. congruence. }
  rewrite Ew, andb_false_r in V.
  destruct (check_sound o H strings_mean file a digest V) as [E [D [N [ok C]]]].
  split; [exact E|]. split; [exact D|]. split; [exact N|]. exists ok. split; [exact C|]. cbv zeta.
  unfold weights_ok in Ew. destruct (decimal_of (view o (beta a)) 0 1 false) as [[n e]|]; [|discriminate].
  rewrite !andb_true_iff in Ew. destruct Ew as [[W1 W2] W3]. apply Z.leb_le in W1. apply Z.ltb_lt in W2.
  assert (0 <= IZR n) by (apply IZR_le, W1). assert (0 < IZR e) by (apply IZR_lt, W2).
  assert (F0 : (0 <= fraction_bits a)%Z).
  { unfold numbers_fit in N. cbv zeta in N. rewrite !andb_true_iff in N. unfold within in N. rewrite !andb_true_iff, !Z.leb_le in N. tauto. }
  exists n, e. split; [reflexivity|].
  split; [apply Rmult_le_pos; [assumption | apply Rlt_le, Rinv_0_lt_compat; assumption]|].
  split; [apply (C1_holds o H strings_mean _ _ _ _ ok)|]. split; [apply (weighs_positive o H strings_mean _ _ _ _ ok)|].
  split; [apply weighs_lines|].
  split.
  { intros x Lx. apply residual_bounds; auto.
    - apply (weights_positive o H strings_mean _ _ _ _ ok).
    - rewrite forallb_forall in W3. apply W3. apply nth_In, Lx. }
  split; [apply C2_holds|].
  split; [apply (C4_at_least o H strings_mean _ _ _ _ ok)|].
  assert (S := C5_score_holds o H strings_mean _ _ _ _ ok).
  split; [exact S|].
  split; [apply alive_holds|].
  assert (G := C5_bounds_steps _ _ _ S).
  split; intros q; apply G.
Qed.
End Premises.
