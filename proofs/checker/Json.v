(* Canonical JSON: what stands in a file, and that it is of one value alone.
   docs/spec/artifact.md, section 6; of its values objects, lists, texts, whole numbers, and true and false. *)

From Coq Require Import List ZArith Lia Bool.
From Tcc Require Import Digest.
From Tcc.Checker Require Import Strings.
Import ListNotations.
Local Open Scope Z_scope.

Inductive json := Num (z : Z) | Str (s : bytes) | Flag (b : bool) | Arr (l : list json) | Obj (l : list (bytes * json)).

Fixpoint digits (n : nat) (z : Z) (done : bytes) : bytes :=
  match n with
  | O => done
  | S n => let done := (48 + z mod 10) :: done in if z / 10 =? 0 then done else digits n (z / 10) done
  end.
Definition whole (z : Z) : bytes := digits (S (Z.to_nat (Z.log2 z))) z [].
Definition decimal (z : Z) : bytes := if z <? 0 then 45 :: whole (- z) else whole z.
Definition hex_digit (z : Z) : Z := if z <? 10 then 48 + z else 87 + z.
Definition escaped (b : Z) : bytes :=
  if b =? 34 then [92; 34] else if b =? 92 then [92; 92] else if 32 <=? b then [b] else
  if b =? 8 then [92; 98] else if b =? 9 then [92; 116] else if b =? 10 then [92; 110] else
  if b =? 12 then [92; 102] else if b =? 13 then [92; 114] else
  [92; 117; 48; 48; hex_digit (b / 16); hex_digit (b mod 16)].
Definition quoted (s : bytes) : bytes := 34 :: flat_map escaped s ++ [34].
Definition flag (b : bool) : bytes := if b then [116; 114; 117; 101] else [102; 97; 108; 115; 101].
Definition comma (first : bool) : bytes := if first then [] else [44].

(* The text of a value. *)
Fixpoint text_of (j : json) : bytes :=
  match j with
  | Num z => decimal z
  | Str s => quoted s
  | Flag b => flag b
  | Arr l => 91 :: (fix go first l := match l with [] => [93]
               | j :: l => comma first ++ text_of j ++ go false l end) true l
  | Obj l => 123 :: (fix go first l := match l with [] => [125]
               | (k, j) :: l => comma first ++ quoted k ++ 58 :: text_of j ++ go false l end) true l
  end.
Fixpoint items_of (first : bool) (l : list json) : bytes :=
  match l with [] => [93] | j :: l => comma first ++ text_of j ++ items_of false l end.
Fixpoint members_of (first : bool) (l : list (bytes * json)) : bytes :=
  match l with [] => [125] | (k, j) :: l => comma first ++ quoted k ++ 58 :: text_of j ++ members_of false l end.
Lemma text_of_arr l : text_of (Arr l) = 91 :: items_of true l.
Proof. reflexivity. Qed.
Lemma text_of_obj l : text_of (Obj l) = 123 :: members_of true l.
Proof. reflexivity. Qed.

Section Induction.
Variable P : json -> Prop.
Hypothesis num : forall z, P (Num z).
Hypothesis str : forall s, P (Str s).
Hypothesis flg : forall b, P (Flag b).
Hypothesis arr : forall l, Forall P l -> P (Arr l).
Hypothesis obj : forall l, Forall (fun m => P (snd m)) l -> P (Obj l).
Fixpoint json_all (j : json) : P j :=
  match j with
  | Num z => num z
  | Str s => str s
  | Flag b => flg b
  | Arr l => arr l ((fix go l : Forall P l := match l with [] => Forall_nil _ | j :: l => Forall_cons _ (json_all j) (go l) end) l)
  | Obj l => obj l ((fix go l : Forall (fun m => P (snd m)) l :=
               match l with [] => Forall_nil _ | m :: l => Forall_cons _ (json_all (snd m)) (go l) end) l)
  end.
End Induction.

(* The same, written by pieces; `done` is what stands before, last piece first. *)
Section Print.
Context {string : Type} (o : strings string) (H : bytes -> bytes).
Hypothesis strings_mean : mean o H.
Fixpoint put (j : json) (done : list string) : list string :=
  match j with
  | Num z => made o (decimal z) :: done
  | Str s => made o (quoted s) :: done
  | Flag b => made o (flag b) :: done
  | Arr l => made o [93] :: (fix go first l done := match l with [] => done
               | j :: l => go false l (put j (if first : bool then done else made o [44] :: done)) end) true l (made o [91] :: done)
  | Obj l => made o [125] :: (fix go first l done := match l with [] => done
               | (k, j) :: l => go false l (put j (made o (quoted k ++ [58]) :: if first : bool then done else made o [44] :: done)) end)
               true l (made o [123] :: done)
  end.
Definition print (j : json) : string := joined o (rev_append (put j []) []).

Let pieces (l : list string) : bytes := concat (map (view o) (rev l)).
Lemma pieces_cons s l : pieces (s :: l) = pieces l ++ view o s.
Proof. unfold pieces. simpl. rewrite map_app, concat_app. simpl. rewrite app_nil_r. reflexivity. Qed.
Lemma low8_app a b : low8 (a ++ b) = low8 a ++ low8 b.
Proof. apply map_app. Qed.
Lemma put_is j : forall done, pieces (put j done) = pieces done ++ low8 (text_of j).
Proof.
  induction j as [z | s | b | l IH | l IH] using json_all; intros done.
  - simpl put. rewrite pieces_cons, (made_is o H) by exact strings_mean. reflexivity.
  - simpl put. rewrite pieces_cons, (made_is o H) by exact strings_mean. reflexivity.
  - simpl put. rewrite pieces_cons, (made_is o H) by exact strings_mean. reflexivity.
  - rewrite text_of_arr. cbn [put]. rewrite pieces_cons, (made_is o H) by exact strings_mean.
    assert (K : forall first done, pieces ((fix go first l done := match l with [] => done
               | j :: l => go false l (put j (if first : bool then done else made o [44] :: done)) end) first l done) ++ low8 [93]
               = pieces done ++ low8 (items_of first l)).
    { induction IH as [|j l Hj _ IHl]; intros first d; [reflexivity|]. rewrite IHl, Hj. cbn [items_of].
      rewrite !low8_app, !app_assoc. do 2 f_equal.
      destruct first; [simpl; rewrite app_nil_r; reflexivity|].
      rewrite pieces_cons, (made_is o H) by exact strings_mean. reflexivity. }
    rewrite K, pieces_cons, (made_is o H), <- app_assoc by exact strings_mean. reflexivity.
  - rewrite text_of_obj. cbn [put]. rewrite pieces_cons, (made_is o H) by exact strings_mean.
    assert (K : forall first done, pieces ((fix go first l done := match l with [] => done
               | (k, j) :: l => go false l (put j (made o (quoted k ++ [58]) :: if first : bool then done else made o [44] :: done)) end) first l done) ++ low8 [125]
               = pieces done ++ low8 (members_of first l)).
    { induction IH as [|[k j] l Hj _ IHl]; intros first d; [reflexivity|]. rewrite IHl, Hj. cbn [members_of snd].
      rewrite pieces_cons, (made_is o H) by exact strings_mean.
      replace (quoted k ++ 58 :: text_of j ++ members_of false l) with ((quoted k ++ [58]) ++ text_of j ++ members_of false l)
        by (rewrite <- !app_assoc; reflexivity).
      rewrite !low8_app, !app_assoc. do 5 f_equal.
      destruct first; [simpl; rewrite app_nil_r; reflexivity|].
      rewrite pieces_cons, (made_is o H) by exact strings_mean. reflexivity. }
    rewrite K, pieces_cons, (made_is o H), <- app_assoc by exact strings_mean. reflexivity.
Qed.
End Print.

(* Values of bytes alone. *)
Inductive plain : json -> Prop :=
| plain_num z : plain (Num z)
| plain_str s : Forall byte s -> plain (Str s)
| plain_flag b : plain (Flag b)
| plain_arr l : Forall plain l -> plain (Arr l)
| plain_obj l : Forall (fun m => Forall byte (fst m) /\ plain (snd m)) l -> plain (Obj l).

Definition numeral (c : Z) : Prop := 48 <= c <= 57.
Definition step (n c : Z) : Z := 10 * n + (c - 48).
Lemma digits_value n : forall z done, 0 <= z < 10 ^ Z.of_nat n -> fold_left step (digits n z done) 0 = fold_left step done z.
Proof.
  induction n as [|n IH]; intros z done Hz.
  - change (10 ^ Z.of_nat 0) with 1 in Hz. replace z with 0 by lia. reflexivity.
  - cbn [digits]. rewrite Nat2Z.inj_succ, Z.pow_succ_r in Hz by lia.
    assert (D := Z.div_mod z 10 ltac:(lia)). destruct (Z.eqb_spec (z / 10) 0) as [E | E].
    + cbn [fold_left]. f_equal. unfold step. lia.
    + rewrite IH; [cbn [fold_left]; f_equal; unfold step; lia|].
      split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia].
Qed.
Lemma digits_numerals n : forall z done, 0 <= z -> Forall numeral done -> Forall numeral (digits n z done).
Proof.
  induction n as [|n IH]; intros z done Hz Hd; [exact Hd|]. cbn [digits].
  assert (Forall numeral (48 + z mod 10 :: done)) by (constructor; [unfold numeral; assert (M := Z.mod_pos_bound z 10 ltac:(lia)); lia | exact Hd]).
  destruct (z / 10 =? 0); [assumption | apply IH; [apply Z.div_pos; lia | assumption]].
Qed.
Lemma digits_some n : forall z done, done <> [] \/ n <> O -> digits n z done <> [].
Proof.
  induction n as [|n IH]; intros z done Hd; cbn [digits]; [destruct Hd; congruence|].
  destruct (z / 10 =? 0); [discriminate | apply IH; left; discriminate].
Qed.
Lemma whole_value z : 0 <= z -> fold_left step (whole z) 0 = z.
Proof.
  intros Hz. unfold whole. rewrite digits_value; [reflexivity|]. split; [exact Hz|].
  rewrite Nat2Z.inj_succ, Z2Nat.id by apply Z.log2_nonneg.
  destruct (Z.eq_dec z 0) as [-> | N]; [reflexivity|].
  apply Z.lt_le_trans with (2 ^ Z.succ (Z.log2 z)); [apply Z.log2_spec; lia|].
  apply Z.pow_le_mono_l. lia.
Qed.
Lemma whole_first z : 0 <= z -> exists c l, whole z = c :: l /\ numeral c.
Proof.
  intros Hz. unfold whole. assert (N0 := digits_some (S (Z.to_nat (Z.log2 z))) z [] ltac:(right; discriminate)).
  assert (A := digits_numerals (S (Z.to_nat (Z.log2 z))) z [] Hz ltac:(constructor)).
  destruct (digits (S (Z.to_nat (Z.log2 z))) z []) as [|c l]; [congruence|]. inversion A. eauto.
Qed.

(* What follows a number begins with no digit. *)
Definition stop (r : bytes) : Prop := match r with [] => True | c :: _ => ~ numeral c end.
Lemma numerals_prefix a : forall b r s, Forall numeral a -> Forall numeral b -> stop r -> stop s -> a ++ r = b ++ s -> a = b /\ r = s.
Proof.
  induction a as [|x a IH]; intros [|y b] r s Ha Hb Hr Hs E; simpl in E.
  - auto.
  - subst r. inversion Hb. simpl in Hr. tauto.
  - subst s. inversion Ha. simpl in Hs. tauto.
  - injection E as -> E. inversion Ha; inversion Hb; subst. destruct (IH b r s) as [-> ->]; auto.
Qed.
Lemma whole_prefix z y r s : 0 <= z -> 0 <= y -> stop r -> stop s -> whole z ++ r = whole y ++ s -> z = y /\ r = s.
Proof.
  intros Hz Hy Hr Hs E. apply numerals_prefix in E; auto; try (apply digits_numerals; [assumption | constructor]).
  destruct E as [E ->]. split; [|reflexivity]. rewrite <- (whole_value z Hz), <- (whole_value y Hy), E. reflexivity.
Qed.
Lemma decimal_prefix z y r s : stop r -> stop s -> decimal z ++ r = decimal y ++ s -> z = y /\ r = s.
Proof.
  intros Hr Hs E. unfold decimal in E. destruct (Z.ltb_spec z 0) as [Lz | Lz], (Z.ltb_spec y 0) as [Ly | Ly]; simpl in E.
  - injection E as E. apply whole_prefix in E; [|lia|lia|exact Hr|exact Hs]. destruct E as [E ->]. split; [lia | reflexivity].
  - destruct (whole_first y Ly) as [c [l [W N]]]. rewrite W in E. injection E as E _. unfold numeral in N. lia.
  - destruct (whole_first z Lz) as [c [l [W N]]]. rewrite W in E. injection E as E _. unfold numeral in N. lia.
  - apply whole_prefix in E; auto.
Qed.

(* One character read back. *)
Definition from_hex (c : Z) : Z := if c <? 58 then c - 48 else c - 87.
Definition read (l : bytes) : option (Z * bytes) :=
  match l with
  | 92 :: c :: r =>
      if c =? 117 then match r with _ :: _ :: a :: b :: r => Some (16 * from_hex a + from_hex b, r) | _ => None end else
      Some (if c =? 98 then 8 else if c =? 116 then 9 else if c =? 110 then 10 else if c =? 102 then 12 else if c =? 114 then 13 else c, r)
  | c :: r => Some (c, r)
  | [] => None
  end.
Lemma read_escaped b r : byte b -> read (escaped b ++ r) = Some (b, r).
Proof.
  intros Hb. destruct (Z_le_gt_dec 32 b) as [L | L].
  - unfold escaped. destruct (Z.eqb_spec b 34) as [-> | N]; [reflexivity|]. destruct (Z.eqb_spec b 92) as [-> | N']; [reflexivity|].
    replace (32 <=? b) with true by (symmetry; apply Z.leb_le, L). simpl.
    destruct b as [|p|p]; try reflexivity. do 7 (destruct p as [p|p|]; try reflexivity); congruence.
  - assert (C : b = 0 \/ b = 1 \/ b = 2 \/ b = 3 \/ b = 4 \/ b = 5 \/ b = 6 \/ b = 7 \/ b = 8 \/ b = 9 \/ b = 10 \/ b = 11 \/
      b = 12 \/ b = 13 \/ b = 14 \/ b = 15 \/ b = 16 \/ b = 17 \/ b = 18 \/ b = 19 \/ b = 20 \/ b = 21 \/ b = 22 \/ b = 23 \/
      b = 24 \/ b = 25 \/ b = 26 \/ b = 27 \/ b = 28 \/ b = 29 \/ b = 30 \/ b = 31) by (unfold byte in Hb; lia).
    repeat destruct C as [-> | C]; try reflexivity. subst b. reflexivity.
Qed.
Lemma escaped_first b : byte b -> exists c l, escaped b = c :: l /\ c <> 34.
Proof.
  intros Hb. unfold escaped. destruct (Z.eqb_spec b 34); [eexists _, _; split; [reflexivity | lia]|].
  destruct (b =? 92); [eexists _, _; split; [reflexivity | lia]|].
  destruct (32 <=? b); [eexists _, _; split; [reflexivity | assumption]|].
  destruct (b =? 8), (b =? 9), (b =? 10), (b =? 12), (b =? 13); eexists _, _; (split; [reflexivity | lia]).
Qed.
Lemma quoted_prefix s : forall t r u, Forall byte s -> Forall byte t -> quoted s ++ r = quoted t ++ u -> s = t /\ r = u.
Proof.
  intros t r u Hs Ht E. unfold quoted in E. simpl in E. injection E as E. rewrite <- !app_assoc in E. simpl in E.
  revert t Ht E. induction Hs as [|b s Hb Hs IH]; intros [|c t] Ht E; simpl in E.
  - injection E as ->. auto.
  - inversion Ht as [|? ? Hc _]; subst. destruct (escaped_first c Hc) as [x [l [W N]]]. rewrite W in E. injection E as <- _. congruence.
  - destruct (escaped_first b Hb) as [x [l [W N]]]. rewrite W in E. injection E as -> _. congruence.
  - inversion Ht as [|? ? Hc Ht']; subst. rewrite <- !app_assoc in E.
    assert (R := f_equal read E). rewrite !read_escaped in R by assumption. injection R as -> E'.
    destruct (IH t Ht' E') as [-> ->]. auto.
Qed.

(* The first byte says what a value is. *)
Definition head (j : json) (c : Z) : Prop :=
  match j with Num _ => c = 45 \/ numeral c | Str _ => c = 34 | Flag b => c = (if b then 116 else 102) | Arr _ => c = 91 | Obj _ => c = 123 end.
Lemma text_head j : exists c l, text_of j = c :: l /\ head j c.
Proof.
  destruct j as [z | s | [] | l | l]; simpl; try (eexists _, _; split; [reflexivity | reflexivity]).
  unfold decimal. destruct (Z.ltb_spec z 0); [eexists _, _; split; [reflexivity | auto]|].
  destruct (whole_first z H) as [c [l [-> N]]]. eauto.
Qed.
Lemma items_stop l r : stop (items_of false l ++ r).
Proof. destruct l; simpl; unfold numeral; lia. Qed.
Lemma members_stop l r : stop (members_of false l ++ r).
Proof. destruct l as [|[k j] l]; simpl; unfold numeral; lia. Qed.

Lemma text_prefix j : plain j -> forall k r s, plain k -> stop r -> stop s -> text_of j ++ r = text_of k ++ s -> j = k /\ r = s.
Proof.
  induction j as [z | t | b | l IH | l IH] using json_all; intros Pj k r s Pk Hr Hs E;
    inversion Pj as [? E0 | ? Hj E0 | ? E0 | ? Hj E0 | ? Hj E0]; subst; inversion Pk as [y E0 | u Hk E0 | b' E0 | m Hk E0 | m Hk E0]; subst k;
    try (match type of E with text_of ?a ++ _ = text_of ?b ++ _ =>
           destruct (text_head a) as [c [x [Wa Na]]], (text_head b) as [d [x' [Wb Nb]]] end;
         rewrite Wa, Wb in E; injection E as -> _; simpl in Na, Nb; unfold numeral in *; exfalso;
         repeat match goal with b : bool |- _ => destruct b end; lia).
  - apply decimal_prefix in E; auto. destruct E as [-> ->]. auto.
  - apply quoted_prefix in E; auto. destruct E as [-> ->]. auto.
  - destruct b, b'; simpl in E; try discriminate; injection E as ->; auto.
  - rewrite !text_of_arr in E. injection E as E.
    assert (K : forall m first, Forall plain m -> items_of first l ++ r = items_of first m ++ s -> l = m /\ r = s).
    { clear E Pk m Hk Pj. induction IH as [|j l Hj' _ IHl]; intros [|k m] first Hm E; simpl in E.
      - injection E as ->. auto.
      - destruct first; simpl in E; [|discriminate]. destruct (text_head k) as [c [x [W N]]]. rewrite W in E. injection E as <- _.
        destruct k as [| | [] | |]; simpl in N; unfold numeral in N; exfalso; lia.
      - destruct first; simpl in E; [|discriminate]. destruct (text_head j) as [c [x [W N]]]. rewrite W in E. injection E as -> _.
        destruct j as [| | [] | |]; simpl in N; unfold numeral in N; exfalso; lia.
      - inversion Hj; inversion Hm; subst. rewrite <- !app_assoc in E. apply app_inv_head in E.
        apply Hj' in E; auto using items_stop. destruct E as [-> E]. destruct (IHl ltac:(assumption) m false) as [-> ->]; auto. }
    destruct (K m true Hk E) as [-> ->]. auto.
  - rewrite !text_of_obj in E. injection E as E.
    assert (K : forall m first, Forall (fun m => Forall byte (fst m) /\ plain (snd m)) m ->
                members_of first l ++ r = members_of first m ++ s -> l = m /\ r = s).
    { clear E Pk m Hk Pj. induction IH as [|[a j] l Hj' _ IHl]; intros [|[b k] m] first Hm E; cbn [members_of] in E.
      - injection E as ->. auto.
      - destruct first; simpl in E; discriminate.
      - destruct first; simpl in E; discriminate.
      - inversion Hj as [|? ? [Ha Pa] Hj2]; inversion Hm as [|? ? [Hb Pb] Hm2]; subst. cbn [fst snd] in *.
        rewrite <- !app_assoc in E. apply app_inv_head in E. apply quoted_prefix in E; auto. destruct E as [-> E].
        cbn [app] in E. injection E as E. rewrite <- !app_assoc in E.
        apply Hj' in E; auto using members_stop. destruct E as [-> E]. destruct (IHl Hj2 m false Hm2 E) as [-> ->]. auto. }
    destruct (K m true Hk E) as [-> ->]. auto.
Qed.

(* Equal texts are of one value. *)
Theorem one_value j k : plain j -> plain k -> text_of j = text_of k -> j = k.
Proof.
  intros Pj Pk E. apply (text_prefix j Pj k [] [] Pk I I). rewrite E. reflexivity.
Qed.

Lemma hex_digit_byte z : 0 <= z < 16 -> byte (hex_digit z).
Proof. intros Hz. unfold hex_digit, byte. destruct (Z.ltb_spec z 10); lia. Qed.
Lemma quoted_bytes s : Forall byte s -> Forall byte (quoted s).
Proof.
  intros Hs. constructor; [unfold byte; lia|]. apply Forall_app. split; [|repeat constructor; unfold byte; lia].
  induction Hs as [|b s Hb _ IH]; [constructor|]. simpl. apply Forall_app. split; [|exact IH]. unfold escaped.
  assert (D1 := Z.div_pos b 16). assert (D2 := Z.div_lt_upper_bound b 16 16). assert (D3 := Z.mod_pos_bound b 16). unfold byte in Hb.
  destruct (b =? 34), (b =? 92), (32 <=? b), (b =? 8), (b =? 9), (b =? 10), (b =? 12), (b =? 13);
    repeat constructor; try apply hex_digit_byte; unfold byte; lia.
Qed.
Lemma decimal_bytes z : Forall byte (decimal z).
Proof.
  assert (W : forall y, 0 <= y -> Forall byte (whole y)).
  { intros y Hy. unfold whole. eapply Forall_impl; [|apply (digits_numerals _ _ [] Hy); constructor]. unfold numeral, byte. lia. }
  unfold decimal. destruct (Z.ltb_spec z 0); [constructor; [unfold byte; lia|] |]; apply W; lia.
Qed.
Lemma text_bytes j : plain j -> Forall byte (text_of j).
Proof.
  assert (C : forall first, Forall byte (comma first)) by (intros []; repeat constructor; unfold byte; lia).
  induction j as [z | s | b | l IH | l IH] using json_all; intros Pj; inversion Pj as [? E0 | ? Hj E0 | ? E0 | ? Hj E0 | ? Hj E0]; subst.
  - apply decimal_bytes.
  - apply quoted_bytes; assumption.
  - destruct b; repeat constructor; unfold byte; lia.
  - rewrite text_of_arr. constructor; [unfold byte; lia|]. generalize true. clear Pj.
    induction IH as [|j l Hj' _ IHl]; intros first; [repeat constructor; unfold byte; lia|]. inversion Hj; subst.
    cbn [items_of]. repeat (apply Forall_app; split); auto.
  - rewrite text_of_obj. constructor; [unfold byte; lia|]. generalize true. clear Pj.
    induction IH as [|[k j] l Hj' _ IHl]; intros first; [repeat constructor; unfold byte; lia|]. inversion Hj as [|? ? [Hk Hs] Hl]; subst.
    cbn [members_of fst snd] in *. repeat (apply Forall_app; split); auto using quoted_bytes.
    constructor; [unfold byte; lia|]. apply Forall_app. split; auto.
Qed.

Lemma print_is {string} (o : strings string) H j : mean o H -> plain j -> view o (print o j) = text_of j.
Proof.
  intros M Pj. unfold print. rewrite (joined_is o H), rev_append_rev, app_nil_r by exact M.
  rewrite (put_is o H M). simpl. apply low8_same, text_bytes, Pj.
Qed.
