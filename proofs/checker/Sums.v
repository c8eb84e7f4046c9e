(* Lists, sums and rounding of the loop over the states: what Sound says of it rests on these. *)

From Coq Require Import List Arith ZArith Lia Bool Sorted Permutation.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States.
Import ListNotations.
Local Open Scope Z_scope.

Lemma sorted_nth {A} (R : A -> A -> Prop) l d i j : StronglySorted R l ->
  (i < j < length l)%nat -> R (nth i l d) (nth j l d).
Proof.
  revert i j. induction l as [|x l IH]; intros i j Hs L; simpl in L; [lia|].
  inversion Hs as [|? ? Hs' Hx]; subst. destruct i as [|i], j as [|j]; try lia; simpl.
  - rewrite Forall_forall in Hx. apply Hx, nth_In. lia.
  - apply IH; [exact Hs' | lia].
Qed.

Lemma table_is {A} (l : list A) (d : A) z x : table l z = Some x -> 0 <= z < Z.of_nat (length l) /\ nth (Z.to_nat z) l d = x.
Proof.
  unfold table. destruct (Z.ltb_spec z 0) as [|L]; [discriminate|]. intros E.
  assert (N := proj1 (nth_error_Some l (Z.to_nat z)) ltac:(congruence)). split; [lia | apply nth_error_nth, E].
Qed.

Lemma merged_all {X} (first : X -> X -> bool) n : forall l m done, Permutation (merged first n l m done) (done ++ l ++ m).
Proof.
  assert (B : forall l m done : list X, Permutation (rev_append done (l ++ m)) (done ++ l ++ m)).
  { intros l m done. rewrite rev_append_rev. apply Permutation_app_tail, Permutation_sym, Permutation_rev. }
  induction n as [|n IH]; intros l m done; cbn [merged]; [apply B|]. destruct l as [|x l]; [apply B|]. destruct m as [|y m]; [apply B|].
  destruct (first y x); rewrite IH; cbn [app].
  - rewrite (Permutation_middle done). apply Permutation_app_head. apply perm_trans with (y :: m ++ x :: l).
    + constructor. apply Permutation_app_comm with (l := x :: l).
    + apply Permutation_app_comm with (l := y :: m) (l' := x :: l).
  - apply Permutation_middle.
Qed.
Lemma by_two_all {X} (first : X -> X -> bool) l : forall done, Permutation (concat (by_two first l done)) (concat done ++ concat l).
Proof.
  assert (B : forall l done : list (list X), Permutation (concat (rev_append done l)) (concat done ++ concat l)).
  { intros m done. rewrite rev_append_rev, concat_app. apply Permutation_app_tail.
    induction done as [|x done IH]; [constructor|]. cbn [rev concat]. rewrite concat_app. cbn [concat]. rewrite app_nil_r, IH. apply Permutation_app_comm. }
  induction l as [l IH] using (induction_ltof1 _ (@length _)). unfold ltof in IH. intros done.
  destruct l as [|x [|y l]]; [apply (B []) | apply (B [x])|]. cbn [by_two]. rewrite IH by (simpl; lia). cbn [concat].
  rewrite merged_all. cbn [app]. rewrite (app_assoc x y), (app_assoc (concat done)). apply Permutation_app_tail, Permutation_app_comm.
Qed.
Lemma arranged_all {X} (first : X -> X -> bool) l : Permutation (arranged first l) l.
Proof.
  unfold arranged. rewrite mapped_is. cbn [rev app]. assert (E : forall l : list X, concat (map (fun x => [x]) l) = l) by (intros m; induction m as [|x m IH]; simpl; congruence).
  assert (K : forall n l, Permutation (in_rounds first n l) (concat l)).
  { induction n as [|n IH]; intros m; cbn [in_rounds]; [reflexivity|]. destruct m as [|x [|y m]]; try reflexivity. rewrite IH. apply (by_two_all first (x :: y :: m) []). }
  rewrite K, E. reflexivity.
Qed.

Lemma fold_first (op : Z -> Z -> Z) : (forall x y z, op x (op y z) = op (op x y) z) -> (forall x y, op x y = op y x) ->
  forall l z x, op x (fold_right op z l) = fold_right op (op z x) l.
Proof. intros A C l z x. induction l as [|y l IH]; simpl; [apply C|]. rewrite <- IH, !A, (C x y). reflexivity. Qed.

Lemma sorted_once {X Y} (R : X -> X -> Prop) (f : X -> Y) l : StronglySorted R l ->
  (forall x y, In x l -> In y l -> R x y -> f x <> f y) -> NoDup (map f l).
Proof.
  induction 1 as [|x l _ IH F']; intros D; simpl; constructor.
  - intros I. apply in_map_iff in I. destruct I as [y [E I]]. rewrite Forall_forall in F'. apply (D x y); simpl; auto.
  - apply IH. intros a b Ha Hb. apply D; simpl; auto.
Qed.

Definition rounded_up (b x m e : Z) : Prop := 0 <= e /\ m < 2 ^ b /\ (e = 0 \/ 2 ^ (b - 1) <= m) /\ x <= m * 2 ^ e /\
  forall m' e', m' < 2 ^ b -> 0 <= e' -> x <= m' * 2 ^ e' -> m * 2 ^ e <= m' * 2 ^ e'.

Lemma short_spec v u level : 0 <= u -> 0 <= level ->
  Z.shiftl v (u - level) * 2 ^ level <= v * 2 ^ u <= (Z.shiftl v (u - level) + short v (u - level)) * 2 ^ level /\
  0 <= short v (u - level) /\ (0 < short v (u - level) -> Z.shiftl v (u - level) * 2 ^ level < v * 2 ^ u).
Proof.
  intros U L. assert (P : 0 < 2 ^ level) by (apply Z.pow_pos_nonneg; lia). unfold short. cbv zeta.
  destruct (Z.leb_spec 0 (u - level)) as [S | S].
  - assert (E : Z.shiftl v (u - level) * 2 ^ level = v * 2 ^ u).
    { rewrite Z.shiftl_mul_pow2, <- Z.mul_assoc, <- Z.pow_add_r by lia. do 2 f_equal. lia. }
    rewrite Z.add_0_r, E. lia.
  - set (t := Z.shiftl v (u - level)). set (n := - (u - level)). assert (N : 0 < n) by (unfold n; lia).
    assert (T : t = v / 2 ^ n) by (unfold t; rewrite Z.shiftl_div_pow2 by lia; reflexivity).
    assert (P' : 0 < 2 ^ n) by (apply Z.pow_pos_nonneg; lia). assert (Pu : 0 < 2 ^ u) by (apply Z.pow_pos_nonneg; lia).
    assert (D := Z.div_mod v (2 ^ n) ltac:(lia)). assert (M := Z.mod_pos_bound v (2 ^ n) P'). rewrite <- T in D.
    assert (E : 2 ^ level = 2 ^ n * 2 ^ u) by (rewrite <- Z.pow_add_r by lia; f_equal; unfold n; lia).
    rewrite E, (Z.shiftl_mul_pow2 t n) by lia. revert D M. generalize (v mod 2 ^ n). intros r D M. fold n.
    destruct (Z.eqb_spec t 0) as [T0 | T0]; [destruct (Z.eqb_spec v 0) | destruct (Z.eqb_spec (t * 2 ^ n) v)]; repeat split; intros; nia.
Qed.

Lemma due_best_is op z l : fold_right op z l = best op (l ++ [z]).
Proof.
  induction l as [|x [|y l] IH]; [reflexivity | reflexivity|].
  change (best op ((x :: y :: l) ++ [z])) with (op x (best op ((y :: l) ++ [z]))). rewrite <- IH. reflexivity.
Qed.
Lemma best_last op z l : (forall x y z, op x (op y z) = op (op x y) z) -> l <> [] -> best op (l ++ [z]) = op (best op l) z.
Proof.
  intros A. induction l as [|x [|y l] IH]; intros N; [congruence | reflexivity|].
  change (best op ((x :: y :: l) ++ [z])) with (op x (best op ((y :: l) ++ [z]))). rewrite IH by discriminate. apply A.
Qed.

Lemma marked_spec {A} mark (l : list A) : forall q, marked mark q l = true -> forall i, (i < length l)%nat -> mark (q + Z.of_nat i) = true.
Proof.
  induction l as [|x l IH]; intros q E i L; simpl in L; [lia|]. cbn [marked] in E. apply andb_prop in E. destruct E as [E E'].
  destruct i as [|i]; [rewrite Z.add_0_r; exact E|].
  replace (q + Z.of_nat (S i)) with (q + 1 + Z.of_nat i) by lia. apply IH; [exact E' | lia].
Qed.
Lemma tl_length {A} (l : list A) : length (tl l) = (length l - 1)%nat.
Proof. destruct l; simpl; lia. Qed.

(* The count that `count_ok` takes, in units of 2^level. *)
Lemma least_of_its_bits {str} b level low off x (r : row str) : 1 <= b -> 0 <= level -> level = 0 \/ level < rexponent r ->
  low * 2 ^ level <= x <= (low + off) * 2 ^ level -> 0 <= off -> (0 < off -> low * 2 ^ level < x) ->
  let m := rmass r in let e := rexponent r in let half := 2 ^ (b - 1) in
  let below := if e =? 0 then m - 1 else Z.shiftl (if m =? half then m + m - 1 else m + m - 2) (e - 1 - level) in
  0 <= e -> m < half + half -> (e =? 0) || (half <=? m) = true -> below <= low -> below < low + off -> low + off <= Z.shiftl m (e - level) ->
  rounded_up b x m e.
Proof.
  cbv zeta. intros B1 L0. generalize (rmass r) (rexponent r). intros m e L1 W1 W2 W3 C1 C2 C3 C4 C5 C6.
  assert (U : 0 < 2 ^ level) by (apply Z.pow_pos_nonneg; lia). assert (Hb : 2 ^ b = 2 ^ (b - 1) + 2 ^ (b - 1)).
  { replace b with (1 + (b - 1)) at 1 by lia. rewrite Z.pow_add_r by lia. lia. }
  assert (Hp : 0 < 2 ^ (b - 1)) by (apply Z.pow_pos_nonneg; lia). unfold rounded_up. revert C2 C3 C4 C5 Hb Hp. generalize (2 ^ (b - 1)). intros half C2 C3 C4 C5 Hb Hp.
  assert (V : Z.shiftl m (e - level) * 2 ^ level = m * 2 ^ e).
  { rewrite Z.shiftl_mul_pow2, <- Z.mul_assoc, <- Z.pow_add_r by lia. do 2 f_equal. lia. }
  set (below := if e =? 0 then m - 1 else _) in *.
  assert (Lo : below * 2 ^ level < x). { destruct (Z.eq_dec off 0) as [-> | N]; [nia|]. specialize (W3 ltac:(lia)). nia. }
  split; [exact C1|]. split; [lia|]. split; [destruct (Z.eqb_spec e 0); [left; assumption | right; cbn [orb] in C3; apply Z.leb_le, C3]|].
  split; [nia|]. intros m' e' Hm He Hx. destruct (Z.le_gt_cases (m * 2 ^ e) (m' * 2 ^ e')) as [|G]; [assumption|]. exfalso.
  assert (P' : 0 < 2 ^ e') by (apply Z.pow_pos_nonneg; lia).
  destruct (Z.eqb_spec e 0) as [-> | N]; cbn [orb] in C3.
  - unfold below in *. assert (level = 0) by lia. subst level. change (2 ^ 0) with 1 in *. lia.
  - apply Z.leb_le in C3. assert (S : below * 2 ^ level = (if m =? half then m + m - 1 else m + m - 2) * 2 ^ (e - 1)).
    { unfold below. rewrite Z.shiftl_mul_pow2, <- Z.mul_assoc, <- Z.pow_add_r by lia. do 2 f_equal. lia. }
    assert (E2 : 2 ^ e = 2 * 2 ^ (e - 1)). { replace e with (1 + (e - 1)) at 1 by lia. rewrite Z.pow_add_r by lia. reflexivity. }
    assert (P1 : 0 < 2 ^ (e - 1)) by (apply Z.pow_pos_nonneg; lia).
    destruct (Z.le_gt_cases e e') as [K | K].
    + assert (E3 : 2 ^ e' = 2 ^ (e' - e) * 2 ^ e) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
      assert (P2 : 0 < 2 ^ (e' - e)) by (apply Z.pow_pos_nonneg; lia).
      assert (P3 : 0 < 2 ^ e) by lia.
      assert (M1 : m' * 2 ^ (e' - e) <= m - 1) by nia.
      assert (x <= (m - 1) * 2 ^ e) by nia. destruct (Z.eqb_spec m half); nia.
    + assert (P2 : 2 ^ e' <= 2 ^ (e - 1)) by (apply Z.pow_le_mono_r; lia).
      assert (M1 : m' * 2 ^ e' <= (half + half - 1) * 2 ^ (e - 1)).
      { apply Z.le_trans with ((half + half - 1) * 2 ^ e'); [apply Z.mul_le_mono_nonneg_r | apply Z.mul_le_mono_nonneg_l]; lia. }
      destruct (Z.eqb_spec m half); nia.
Qed.

(* Lists that are made of equal parts. *)
Lemma pairs_one {A B C} (f : A -> B) (g : A -> C) (l m : list A) :
  map f l = map f m -> map g l = map g m -> map (fun x => (f x, g x)) l = map (fun x => (f x, g x)) m.
Proof.
  revert m. induction l as [|x l IH]; intros [|y m] E F; try discriminate; [reflexivity|].
  injection E as E0 E. injection F as F0 F. simpl. rewrite E0, F0, (IH m E F). reflexivity.
Qed.
Lemma both_one {A B} (l m : list (A * B)) : map fst l = map fst m -> map snd l = map snd m -> l = m.
Proof.
  intros E F. assert (K := pairs_one _ _ _ _ E F).
  rewrite (map_ext (fun x => (fst x, snd x)) (fun x => x)), map_id in K by (intros []; reflexivity).
  rewrite (map_ext (fun x => (fst x, snd x)) (fun x => x)), map_id in K by (intros []; reflexivity). exact K.
Qed.
Lemma map_one {A B} (f : A -> B) (l m : list A) :
  (forall x y, In x l -> In y m -> f x = f y -> x = y) -> map f l = map f m -> l = m.
Proof.
  revert m. induction l as [|x l IH]; intros [|y m] I E; try discriminate; [reflexivity|].
  injection E as E F. f_equal; [apply I; simpl; auto | apply IH; [|exact F]]. intros; apply I; simpl; auto.
Qed.
Lemma concat_one {A} (k : nat) (l m : list (list A)) : k <> O ->
  Forall (fun x => length x = k) l -> Forall (fun x => length x = k) m -> concat l = concat m -> l = m.
Proof.
  intros K Hl. revert m. induction Hl as [|x l Hx _ IH]; intros [|y m] Hm E; [reflexivity| | |]; inversion Hm; subst.
  - simpl in E. symmetry in E. apply app_eq_nil in E. destruct E as [-> _]. simpl in K. congruence.
  - simpl in E. apply app_eq_nil in E. destruct E as [-> _]. simpl in K. congruence.
  - simpl in E. apply app_injective in E; [|congruence]. destruct E as [-> E]. f_equal. apply IH; assumption.
Qed.
Lemma lengths_one {A B} (f : A -> list B) (l m : list A) :
  map (fun x => length (f x)) l = map (fun x => length (f x)) m -> flat_map f l = flat_map f m -> map f l = map f m.
Proof.
  revert m. induction l as [|x l IH]; intros [|y m] L E; try discriminate; [reflexivity|].
  injection L as L0 L. simpl in *. apply app_injective in E; [|exact L0]. destruct E as [-> E]. f_equal. apply IH; assumption.
Qed.

(* States whose graphs agree have paths of the same lengths. *)
Lemma agreeing_paths (M : automaton) info p q : agree M M info info p q -> forall P, In P (paths M p) -> exists Q, In Q (paths M q) /\ length Q = length P.
Proof.
  intros A P. revert p q A. induction P as [|[a r] P IH]; intros p q A HP.
  - exists []. apply in_paths_nil in HP. inversion A as [? ? E _ _]; subst. split; [apply in_paths_nil; congruence | reflexivity].
  - apply in_paths_cons in HP. destruct HP as [He HP]. inversion A as [? ? _ K _]; subst.
    destruct (K _ He) as [[b s] [Hf [_ A']]]. destruct (IH _ _ A' HP) as [Q [HQ L]]. exists ((b, s) :: Q).
    split; [apply in_paths_cons; auto | exact (f_equal S L)].
Qed.
Lemma agree_sym (M : automaton) info p q : agree M M info info p q -> agree M M info info q p.
Proof.
  revert q. induction p as [p IH] using (below_ind M). intros q A. inversion A as [? ? E K L]; subst. constructor.
  - congruence.
  - intros f Hf. destruct (L f Hf) as [[b s] [He [Ei A']]]. exists (b, s). split; [exact He|]. split; [congruence|]. apply (IH b s He), A'.
  - intros e He. destruct (K e He) as [f [Hf [Ei A']]]. exists f. split; [exact Hf|]. split; [congruence|]. destruct e as [b s]. apply (IH b s He), A'.
Qed.
