(* A file is of one artifact: what `encode` writes says everything that it was given.
   docs/spec/artifact.md, sections 1 to 4.

   So whatever a reader claims of a file, two claims that pass are the same.  The bytes do not hold the keys and
   the residuals of calls: both follow from what they hold (artifact.md, section 5, C6 and C5). *)

From Coq Require Import List ZArith Lia Bool Permutation String.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Sums Sound Json File.
Import ListNotations.
Local Open Scope Z_scope.
Local Notation length := List.length.
Local Notation concat := List.concat.

(* Numbers of so many bytes. *)
Lemma numbers_length k l : length (flat_map (le k) l) = (k * length l)%nat.
Proof. induction l as [|z l IH]; simpl; [lia|]. rewrite app_length, le_length, IH. lia. Qed.
Lemma numbers_one k (l m : list Z) : k <> O -> (forall x y, In x l -> In y m -> le k x = le k y -> x = y) ->
  flat_map (le k) l = flat_map (le k) m -> l = m.
Proof.
  intros K I E. apply (map_one (le k)); [exact I|].
  apply (concat_one k); [exact K| | |rewrite <- !flat_map_concat_map; exact E];
    apply Forall_forall; intros x Hx; apply in_map_iff in Hx; destruct Hx as [z [<- _]]; apply le_length.
Qed.
Lemma unsigned_one k x y : 0 <= x < 256 ^ Z.of_nat k -> 0 <= y < 256 ^ Z.of_nat k -> le k x = le k y -> x = y.
Proof.
  intros Hx Hy E. apply le_equal in E. destruct E as [q E]. set (p := 256 ^ Z.of_nat k) in *.
  assert (q = 0) by nia. nia.
Qed.
Lemma signed_one x y : fits x = true -> fits y = true -> le 8 x = le 8 y -> x = y.
Proof.
  unfold fits. rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt. intros Hx Hy. apply le8_injective; unfold I64, two63 in *; lia.
Qed.

(* Bytes of names, as they are written. *)
Fixpoint apart (l : list bytes) : bool :=
  match l with [] => true | x :: l => negb (existsb (fun y => if list_eq_dec Z.eq_dec x y then true else false) l) && apart l end.
Lemma apart_once l : apart l = true -> NoDup l.
Proof.
  induction l as [|x l IH]; simpl; [constructor|]. rewrite andb_true_iff, negb_true_iff. intros [E K]. constructor; [|apply IH, K].
  intros I. assert (existsb (fun y => if list_eq_dec Z.eq_dec x y then true else false) l = true); [|congruence].
  apply existsb_exists. exists x. split; [exact I|]. destruct (list_eq_dec Z.eq_dec x x); congruence.
Qed.
Lemma keys_one {A} (l m : list (bytes * A)) : map fst l = map fst m -> NoDup (map fst l) -> Permutation l m -> l = m.
Proof.
  revert m. induction l as [|[k x] l IH]; intros [|[j y] m] E D P; try discriminate; [reflexivity|].
  simpl in *. injection E as <- E. inversion D as [|? ? N D']; subst.
  assert (I := Permutation_in _ P (or_introl eq_refl)). simpl in I. destruct I as [I | I].
  - injection I as ->. f_equal. apply IH; auto. eapply Permutation_cons_inv, P.
  - apply (in_map fst) in I. rewrite <- E in I. contradiction.
Qed.
Lemma member_once (j : bytes * json) l : Permutation (member j l) (j :: l).
Proof.
  unfold member. induction l as [|x l IH]; [reflexivity|]. destruct (precedes (fst j) (fst x)); [reflexivity|].
  rewrite IH. apply perm_swap.
Qed.
Lemma by_name_once l : Permutation (by_name l) l.
Proof. induction l as [|j l IH]; simpl; [constructor|]. rewrite member_once, IH. reflexivity. Qed.

Lemma bit_length_bounds z : 0 <= z -> z < 2 ^ bit_length z /\ 0 <= bit_length z.
Proof.
  intros Hz. unfold bit_length. destruct (Z.eqb_spec z 0) as [-> | N]; [split; reflexivity || lia|].
  assert (K := Z.log2_spec z ltac:(lia)). assert (P := Z.log2_nonneg z). split; [apply K | lia].
Qed.

Section One.
Context {str : Type} (o : strings str).
Variable H : bytes -> bytes.
Hypothesis M : mean o H.
Notation line := (line str).
Notation row := (row str).
Notation artifact := (artifact str).
Notation column := (column str).

Lemma top_most (f : row -> Z) l : forall m, m <= top f l m /\ forall r, In r l -> f r <= top f l m.
Proof.
  induction l as [|x l IH]; intros m; simpl; [split; [lia | tauto]|].
  destruct (IH (Z.max m (f x))) as [A B]. split; [lia|]. intros r [-> | I]; [lia | auto].
Qed.
Lemma width_enough (f : row -> Z) l r : In r l -> f r < 256 ^ Z.of_nat (Z.to_nat (8 * width f l)).
Proof.
  intros I. destruct (top_most f l 0) as [A B]. assert (K := bit_length_bounds (top f l 0) A).
  assert (W : 1 <= width f l) by (unfold width; lia).
  assert (L : bit_length (top f l 0) <= 64 * width f l).
  { unfold width. assert (D := Z.div_mod (bit_length (top f l 0) + 63) 64 ltac:(lia)).
    assert (D' := Z.mod_pos_bound (bit_length (top f l 0) + 63) 64 ltac:(lia)). lia. }
  rewrite Z2Nat.id by lia. change 256 with (2 ^ 8). rewrite <- Z.pow_mul_r by lia.
  apply Z.le_lt_trans with (top f l 0); [apply B, I|]. apply Z.lt_le_trans with (2 ^ bit_length (top f l 0)); [apply K|].
  apply Z.pow_le_mono_r; lia.
Qed.

(* Columns as they stand: data, bytes of an item, shape. *)
Definition seen (c : column) := (view o (cdata c), citem c, cshape c).
Definition whole_column (c : bytes * Z * list Z) : Prop := let '(d, i, s) := c in Z.of_nat (length d) = fold_left Z.mul s i.

Fixpoint scan (at_ : Z) (l : list row) : list Z :=
  match l with [] => [at_] | r :: l => at_ :: scan (at_ + Z.of_nat (length (redges r))) l end.
Lemma starts_are l : forall at_ done, starts at_ l done = rev done ++ scan at_ l.
Proof.
  induction l as [|r l IH]; intros at_ done; cbn [starts scan].
  - rewrite rev_append_rev. simpl. rewrite <- app_assoc. reflexivity.
  - rewrite IH, len_is. simpl. rewrite <- app_assoc. reflexivity.
Qed.
Lemma scan_length l : forall at_, length (scan at_ l) = S (length l).
Proof. induction l as [|r l IH]; intros at_; simpl; [reflexivity|]. rewrite IH. reflexivity. Qed.
Lemma scan_bounds l : forall at_ z, In z (scan at_ l) -> at_ <= z <= at_ + Z.of_nat (length (flat_map (@redges str) l)).
Proof.
  induction l as [|r l IH]; intros at_ z; simpl; [lia|]. rewrite app_length. intros [<- | I]; [lia|]. apply IH in I. lia.
Qed.
Lemma scan_one l : forall m at_, scan at_ l = scan at_ m ->
  map (fun r => length (redges r)) l = map (fun r => length (redges r)) m.
Proof.
  induction l as [|r l IH]; intros [|q m] at_ E; cbn [scan] in E; [reflexivity| | |].
  - injection E as E. destruct m; discriminate.
  - injection E as E. destruct l; discriminate.
  - injection E as E. simpl.
    assert (K : length (redges r) = length (redges q)).
    { destruct l, m; cbn [scan] in E; injection E as E; lia. }
    rewrite K in E. f_equal; [exact K | eapply IH, E].
Qed.
Lemma edge_number_is (l : list row) : edge_number l = Z.of_nat (length (flat_map (@redges str) l)).
Proof.
  unfold edge_number. assert (K : forall n, fold_left (fun n r => len (redges r) n) l n = n + Z.of_nat (length (flat_map (@redges str) l))); [|apply K].
  induction l as [|r l IH]; intros n; simpl; [lia|]. rewrite IH, len_is, app_length. lia.
Qed.

Definition accepts (r : row) : Z := if raccept r then 1 else 0.
Definition data (a : artifact) : list (bytes * Z * list Z) :=
  let C := Z.of_nat (length (lines a)) in let N := Z.of_nat (length (rows a)) in
  let E := Z.of_nat (length (flat_map (@redges str) (rows a))) in
  let w := width rplans (rows a) in let w' := width rmass (rows a) in
  let text d : bytes * Z * list Z := (view o d, 1, [Z.of_nat (length (view o d))]) in
  [(flat_map (le 8) (map lhigh (lines a)), 8, [C]); (flat_map (le 8) (map llow (lines a)), 8, [C]);
   (flat_map (le 8) (epsilons a), 8, [C]); (flat_map (le 8) (latencies a), 8, [C]); (flat_map (le 8) (prices a), 8, [C]);
   (flat_map (le 8) (map lweight (lines a)), 8, [C]); (flat_map (le 8) (map rcost (rows a)), 8, [N]);
   (flat_map (le 8) (scan 0 (rows a)), 8, [N + 1])] ++
  (let plans := (flat_map (le (Z.to_nat (8 * w))) (map rplans (rows a)), 8, [N; w]) in
   let masses := (flat_map (le 8) (map rmass (rows a)), 8, [N]) in
   match counted a with
   | Exactly => plans :: if own_masses a then [(flat_map (le (Z.to_nat (8 * w'))) (map rmass (rows a)), 8, [N; w'])] else []
   | Rounded _ => [plans; masses]
   | Gated => [masses]
   end) ++
  [(flat_map (le 8) (map rscore (rows a)), 8, [N]);
   (flat_map (le 4) (map fst (flat_map (@redges str) (rows a))), 4, [E]);
   (flat_map (le 4) (map snd (flat_map (@redges str) (rows a))), 4, [E])] ++
  match counted a with Exactly => [] | _ => [(flat_map (le 4) (map rexponent (rows a)), 4, [N])] end ++
  [(flat_map (le 4) (map rrank (rows a)), 4, [N]); (flat_map (le 1) (map accepts (rows a)), 1, [N]);
   text (print o (call_texts o a)); text (core a); text (manifest_of o a);
   (concat (map (view o) (map rdigest (rows a))), 1, [N; 32]); text (tools a)].

Lemma blocks_are {X A} (write : list A -> str) (of_item : X -> list A) each : (forall l, view o (write l) = flat_map each l) ->
  forall l free now done, view o (joined o (blocks write of_item free l now done)) =
    concat (map (view o) (rev done)) ++ flat_map each (rev now ++ flat_map of_item l).
Proof.
  intros W. assert (S : forall now done, concat (map (view o) (rev (write (rev now) :: done))) =
    concat (map (view o) (rev done)) ++ flat_map each (rev now)).
  { intros now done. cbn [rev]. rewrite map_app, concat_app. cbn [map concat]. rewrite W, app_nil_r. reflexivity. }
  induction l as [|x l IH]; intros free now done; cbn [blocks flat_map].
  - rewrite (joined_is o H M), !rev_append_rev, !app_nil_r. apply S.
  - destruct free as [|free]; rewrite IH, !rev_append_rev, ?app_nil_r, ?S, ?rev_app_distr, !rev_involutive, ?flat_map_app, <- ?app_assoc; reflexivity.
Qed.
Lemma column_data w (f : row -> Z) l : view o (written_down o (numbers o w) (fun r => [f r]) l) = flat_map (le w) (map f l).
Proof.
  unfold written_down. rewrite (blocks_are _ _ _ (numbers_is o H M w)). reflexivity.
Qed.
Lemma edges_data (f : Z * Z -> Z) l : view o (written_down o (numbers o 4) (fun r : row => map f (redges r)) l) =
  flat_map (le 4) (map f (flat_map (@redges str) l)).
Proof.
  unfold written_down. rewrite (blocks_are _ _ _ (numbers_is o H M 4)). cbn [rev map concat app]. f_equal.
  induction l as [|r l IH]; [reflexivity|]. cbn [flat_map]. rewrite IH, map_app. reflexivity.
Qed.
Lemma digests_data l : view o (written_down o (joined o) (fun r : row => [rdigest r]) l) = concat (map (view o) (map (@rdigest str) l)).
Proof.
  unfold written_down. rewrite (blocks_are _ _ (view o)); [|intros m; rewrite (joined_is o H M), flat_map_concat_map; reflexivity].
  cbn [rev app]. rewrite <- (flat_map_concat_map _ (map _ l)). reflexivity.
Qed.
Lemma data_is a : map seen (columns_of o a) = data a.
Proof.
  unfold columns_of, assembled, before, ones_after, eights, fours, ones_before, data, seen.
  unfold call_column, amounts, state_column, edge_column, raw_column, col. cbv zeta.
  unfold gated. destruct (counted a); [destruct (own_masses a)| |]; cbn [map app cdata citem cshape];
    rewrite !edges_data, !column_data, !digests_data, !(numbers_is o H M), !(size_is o H M), !mapped_is, !starts_are,
      !len_is, !edge_number_is; reflexivity.
Qed.

Record range (a : artifact) : Prop := {
  r_rank : forall r, In r (rows a) -> 0 <= rrank r < two32;
  r_plans : forall r, In r (rows a) -> 0 <= rplans r;
  r_mass : forall r, In r (rows a) -> 0 <= rmass r;
  r_counts : forall r, In r (rows a) -> counts_fit (counted a) r = true;
  r_cost : forall r, In r (rows a) -> fits (rcost r) = true;
  r_score : forall r, In r (rows a) -> fits (rscore r) = true;
  r_digest : forall r, In r (rows a) -> length (view o (rdigest r)) = 32%nat;
  r_edges : forall e, In e (flat_map (@redges str) (rows a)) -> 0 <= fst e < two32 /\ 0 <= snd e < two32;
  r_low : forall c, In c (lines a) -> fits (llow c) = true;
  r_high : forall c, In c (lines a) -> fits (lhigh c) = true;
  r_weight : forall c, In c (lines a) -> 0 <= lweight c < two64;
  r_number : Z.of_nat (length (flat_map (@redges str) (rows a))) < two64;
  r_prices : forall z, In z (prices a) -> 0 <= z < two64;
  r_latencies : forall z, In z (latencies a) -> 0 <= z < two64;
  r_epsilons : forall z, In z (epsilons a) -> 0 <= z < two64;
  n_prices : length (prices a) = length (lines a);
  n_latencies : length (latencies a) = length (lines a);
  n_epsilons : length (epsilons a) = length (lines a)
}.
Lemma within_is low high z : within low high z = true <-> low <= z < high.
Proof. unfold within. rewrite andb_true_iff, Z.leb_le, Z.ltb_lt. tauto. Qed.
Lemma ranges a : numbers_fit o a = true -> range a.
Proof.
  unfold numbers_fit. cbv zeta. rewrite !andb_true_iff, !forallb_forall, !Z.eqb_eq, !len_is, Z.ltb_lt, edge_number_is.
  intros [[[[[[[[[[[[R L] E] P] T] Q] NP] NT] NQ] _] _] _] _].
  assert (R' : forall r, In r (rows a) -> 0 <= rrank r < two32 /\ 0 <= rplans r /\ 0 <= rmass r /\ counts_fit (counted a) r = true /\ fits (rcost r) = true /\
    fits (rscore r) = true /\ size_of o (rdigest r) = 32 /\ forall e, In e (redges r) -> 0 <= fst e < two32 /\ 0 <= snd e < two32).
  { intros r I. specialize (R r I). unfold row_fits in R. rewrite !andb_true_iff, forallb_forall, within_is, !Z.leb_le, Z.eqb_eq in R.
    repeat split; try tauto; try lia; destruct R as [_ R]; specialize (R e H0); rewrite andb_true_iff, !within_is in R; lia. }
  assert (L' : forall c, In c (lines a) -> fits (llow c) = true /\ fits (lhigh c) = true /\ 1 <= lweight c < two63).
  { intros c I. specialize (L c I). unfold line_fits in L. rewrite !andb_true_iff, within_is in L. tauto. }
  constructor; intros; try (apply R'; assumption); try (apply L'; assumption); try (apply within_is; auto; fail); try lia.
  - destruct (R' r H0) as (_ & _ & _ & _ & _ & _ & D & _). rewrite (size_is o H M) in D. lia.
  - apply in_flat_map in H0. destruct H0 as [r [I J]]. apply (R' r I), J.
  - destruct (L' c H0) as (_ & _ & W). unfold two63, two64 in *. lia.
Qed.

Lemma data_whole a : range a -> Forall whole_column (data a).
Proof.
  intros R. destruct R. unfold data, whole_column. cbv zeta.
  assert (W : forall f, 1 <= width f (rows a)) by (intros f; unfold width; lia).
  assert (D : length (concat (map (view o) (map rdigest (rows a)))) = (32 * length (rows a))%nat).
  { clear - r_digest0. induction (rows a) as [|r l IH]; [reflexivity|]. simpl. rewrite app_length, IH, r_digest0; simpl; auto.
    - lia.
    - intros; apply r_digest0; simpl; auto. }
  assert (Wp := W rplans). assert (Wm := W rmass).
  destruct (counted a); [destruct (own_masses a)| |]; cbn [app]; repeat apply Forall_cons; try apply Forall_nil;
    cbn [fold_left]; rewrite ?D, ?numbers_length, ?map_length, ?scan_length; try lia; nia.
Qed.

(* The header. *)
Lemma bytes_now l : forallb (within 0 256) l = true -> Forall byte l.
Proof. rewrite forallb_forall, Forall_forall. intros K z I. apply within_is, K, I. Qed.
Definition named (c : column) : Prop := Forall byte (cname c) /\ Forall byte (cdtype c).
Lemma columns_named a : Forall named (columns_of o a).
Proof.
  unfold columns_of, assembled, before, ones_after, eights, fours, ones_before, gated. destruct (counted a); [destruct (own_masses a)| |]; cbv zeta; cbn [app];
    repeat apply Forall_cons; try apply Forall_nil; split; apply bytes_now; reflexivity.
Qed.
Lemma by_name_all Q l : Forall Q l -> Forall Q (by_name l).
Proof. intros K. eapply Permutation_Forall; [symmetry; apply by_name_once | exact K]. Qed.
Lemma nums_plain l : Forall plain (map Num l).
Proof. induction l; constructor; [constructor | assumption]. Qed.
Lemma entries_plain l : forall at_, Forall named l -> Forall (fun m => Forall byte (fst m) /\ plain (snd m)) (entries at_ l).
Proof.
  induction l as [|c l IH]; intros at_ K; [constructor|]. inversion K as [|? ? [N D] K']; subst. cbn [entries].
  constructor; [|apply IH, K']. split; [exact N|]. cbn [snd]. apply plain_obj.
  repeat (apply Forall_cons || apply Forall_nil); (split; [apply bytes_now; reflexivity|]); cbn [snd].
  - apply plain_arr. repeat constructor.
  - apply plain_str, D.
  - apply plain_arr, nums_plain.
Qed.
Lemma header_plain l : Forall named l -> plain (header_value l).
Proof. intros K. apply plain_obj, by_name_all, entries_plain, K. Qed.
Lemma header_is l : Forall named l -> exists k, view o (header o l) = text_of (header_value l) ++ repeat 32 k.
Proof.
  intros K. unfold header. eexists. rewrite (joined_is o H M). cbn [map concat]. rewrite (print_is o H) by (exact M || apply header_plain, K).
  rewrite (made_is o H M), app_nil_r, low8_same; [reflexivity|]. apply Forall_forall. intros z I. apply repeat_spec in I. subst. unfold byte. lia.
Qed.
Lemma spaces_stop k r : stop r -> stop (repeat 32 k ++ r).
Proof. destruct k; simpl; [auto|]. unfold numeral. lia. Qed.

Lemma encoded a : view o (encode o a) =
  le 8 (Z.of_nat (length (view o (header o (columns_of o a))))) ++ view o (header o (columns_of o a)) ++
  concat (map (fun x => fst (fst x)) (data a)).
Proof.
  unfold encode, parts. rewrite (joined_is o H M). cbv zeta. cbn [map concat]. rewrite (numbers_is o H M). cbn [flat_map].
  rewrite app_nil_r, (size_is o H M), <- data_is, !map_map. reflexivity.
Qed.

(* Which columns there are. *)
Inductive shape := Plain | Own | Two | One_.
Definition shape_of (a : artifact) : shape :=
  match counted a with Exactly => if own_masses a then Own else Plain | Rounded _ => Two | Gated => One_ end.
Definition names (s : shape) : list bytes :=
  [$"call_cost_high"; $"call_cost_low"; $"call_epsilon"; $"call_latency_ms"; $"call_price"; $"call_weight"; $"cost_to_go"; $"edge_start"] ++
  match s with Plain => [$"plans"] | Own => [$"plans"; $"race_count"] | Two => [$"plans"; $"race_mantissa"] | One_ => [$"plans_mantissa"] end ++
  [$"residual_to_go"; $"edge_call"; $"edge_target"] ++ match s with Two => [$"race_exponent"] | One_ => [$"plans_exponent"] | _ => [] end ++
  [$"rank"; $"accept"; $"call_text"; $"core"; $"manifest"; $"state_digest"; $"tools"].
Lemma names_are a : map (@cname str) (columns_of o a) = names (shape_of a).
Proof.
  unfold columns_of, assembled, before, ones_after, eights, fours, ones_before, names, shape_of, gated.
  destruct (counted a); [destruct (own_masses a)| |]; reflexivity.
Qed.
Lemma names_once s : NoDup (names s).
Proof. apply apart_once. destruct s; vm_compute; reflexivity. Qed.
(* Each has a name that no other has. *)
Lemma names_one s t : Permutation (names s) (names t) -> s = t.
Proof.
  intros P. assert (L := Permutation_length P).
  assert (I : forall x, existsb (fun y => if list_eq_dec Z.eq_dec x y then true else false) (names s) = true ->
                        existsb (fun y => if list_eq_dec Z.eq_dec x y then true else false) (names t) = true).
  { intros x. rewrite !existsb_exists. intros [y [Hy E]]. exists y. split; [eapply Permutation_in; eassumption | exact E]. }
  assert (I1 := I $"race_count"). assert (I2 := I $"race_exponent"). assert (I3 := I $"plans_exponent").
  destruct s, t; try reflexivity; try discriminate L;
    (exfalso; first [specialize (I1 eq_refl) | specialize (I2 eq_refl) | specialize (I3 eq_refl)]; vm_compute in *; discriminate).
Qed.
Lemma entries_names l : forall at_, map fst (entries at_ l) = map (@cname str) l.
Proof. induction l as [|c l IH]; intros at_; [reflexivity|]. cbn [entries map fst]. rewrite IH. reflexivity. Qed.
Lemma entries_once (l m : list column) : header_value l = header_value m -> Permutation (entries 0 l) (entries 0 m).
Proof. intros E. injection E as E. rewrite <- by_name_once, E. apply by_name_once. Qed.
Lemma entries_one a b : header_value (columns_of o a) = header_value (columns_of o b) ->
  shape_of a = shape_of b /\ entries 0 (columns_of o a) = entries 0 (columns_of o b).
Proof.
  intros E. assert (P := entries_once _ _ E). clear E.
  assert (L := Permutation_map fst P). rewrite !entries_names, !names_are in L.
  assert (B := names_one _ _ L).
  split; [exact B|]. apply keys_one; [rewrite !entries_names, !names_are, B; reflexivity | | exact P].
  rewrite entries_names, names_are. apply names_once.
Qed.
Definition shaped (x : bytes * Z * list Z) : Z * list Z := (fold_left Z.mul (snd x) (snd (fst x)), snd x).
Lemma shapes_one l : forall m at_, entries at_ l = entries at_ m -> map shaped (map seen l) = map shaped (map seen m).
Proof.
  induction l as [|c l IH]; intros [|d m] at_ E; try discriminate; [reflexivity|].
  cbn [entries] in E. injection E as _ X _ S E. unfold extent in *. cbn [map].
  assert (X' : fold_left Z.mul (cshape c) (citem c) = fold_left Z.mul (cshape d) (citem d)) by lia.
  rewrite X' in E. unfold shaped at 1 3. unfold seen at 1 2 4 5. cbn [fst snd]. rewrite X'. f_equal; [|eapply IH, E]. f_equal.
  eapply map_one; [|exact S]. intros ? ? _ _ K. injection K as K. exact K.
Qed.
Lemma cut l : forall m, Forall whole_column l -> Forall whole_column m -> map shaped l = map shaped m ->
  concat (map (fun x => fst (fst x)) l) = concat (map (fun x => fst (fst x)) m) ->
  map (fun x => (fst (fst x), snd x)) l = map (fun x => (fst (fst x), snd x)) m.
Proof.
  induction l as [|[[d i] s] l IH]; intros [|[[d' i'] s'] m] Wl Wm S E; try discriminate; [reflexivity|].
  inversion Wl as [|? ? W Wl']; inversion Wm as [|? ? W' Wm']; subst. unfold whole_column in W, W'.
  cbn [map concat fst snd] in *. unfold shaped in S at 1 3. cbn [fst snd] in S. injection S as S0 S1 S.
  apply app_injective in E; [|lia]. destruct E as [-> E]. subst s'. f_equal. apply IH; assumption.
Qed.

(* The manifest. *)
Lemma hex_bytes l : Forall byte l -> Forall byte (hex l).
Proof.
  induction 1 as [|z l Hz _ IH]; [constructor|]. unfold byte in Hz. unfold hex in *. simpl.
  assert (D1 := Z.div_pos z 16). assert (D2 := Z.div_lt_upper_bound z 16 16). assert (D3 := Z.mod_pos_bound z 16).
  repeat constructor; try (apply hex_digit_byte; lia). exact IH.
Qed.
Lemma large_plain z : plain (large z).
Proof. unfold large. destruct (_ && _); constructor. apply decimal_bytes. Qed.
Lemma texts_plain l : Forall plain (map (text o) l).
Proof. induction l; constructor; [constructor; apply (view_bytes o H M) | assumption]. Qed.
Lemma last_bytes l d : Forall byte d -> Forall byte (last_row o l d).
Proof.
  intros K. induction l as [|r l IH]; [exact K|]. destruct l as [|q l]; [|exact IH]. simpl. apply (view_bytes o H M).
Qed.
Lemma features_bytes (a : artifact) : Forall (Forall byte) (features a).
Proof.
  unfold features. destruct (gated a), (ambiguous a), (relaxed a), (counted a); cbn [app];
    repeat (apply (@Forall_cons _ (Forall byte)); [apply bytes_now; reflexivity|]); apply Forall_nil.
Qed.
Lemma features_plain (a : artifact) : plain (Arr (map Json.Str (features a))).
Proof. apply plain_arr. induction (features_bytes a); constructor; [apply plain_str|]; assumption. Qed.
Lemma options_plain a : plain (options o a).
Proof.
  apply plain_obj. destruct (counted a); cbn [app]; repeat (apply Forall_cons || apply Forall_nil);
    (split; [apply bytes_now; reflexivity|]); cbn [snd]; first [apply plain_num | apply plain_str, (view_bytes o H M)].
Qed.
Lemma manifest_plain a cs : Forall named cs -> plain (manifest o a cs).
Proof.
  intros K. unfold manifest. cbv zeta. apply plain_obj, Forall_app. split; [|apply Forall_app; split].
  - repeat (apply Forall_cons || apply Forall_nil); (split; [apply bytes_now; reflexivity|]); cbn [snd];
      repeat first [apply options_plain | apply features_plain | apply plain_num | apply large_plain | apply plain_obj | apply plain_arr | apply Forall_nil |
                    apply plain_str; apply (view_bytes o H M) | apply plain_str; apply bytes_now; reflexivity | apply texts_plain |
                    apply Forall_cons | split; [apply bytes_now; reflexivity|]; cbn [snd] |
                    apply plain_str; destruct (features a); apply bytes_now; reflexivity].
    apply by_name_all. clear - M K. induction K as [|c cs [N _] _ IH]; [constructor|]. constructor; [|exact IH]. split; [exact N|].
      apply plain_str, hex_bytes, (view_bytes o H M).
  - destruct (relaxed a) as [l|]; [|constructor]. constructor; [|constructor]. split; [apply bytes_now; reflexivity|]. cbn [snd].
    apply plain_arr, nums_plain.
  - repeat (apply Forall_cons || apply Forall_nil); (split; [apply bytes_now; reflexivity|]); cbn [snd].
    + apply plain_str, hex_bytes, last_bytes. constructor.
    + apply plain_str; apply bytes_now; reflexivity.
    + apply plain_num.
Qed.
Lemma manifest_named a : Forall named (before o a ++ ones_after o a).
Proof.
  assert (K := columns_named a). unfold columns_of, assembled in K. apply Forall_app in K. destruct K as [K1 K2].
  inversion K2. apply Forall_app. split; assumption.
Qed.

(* What a file says of an artifact. *)
Record alike (a b : artifact) : Prop := {
  l_name : view o (gname a) = view o (gname b);
  l_version : view o (gversion a) = view o (gversion b);
  l_beta : view o (beta a) = view o (beta b);
  l_counted : counted a = counted b;
  l_ambiguous : ambiguous a = ambiguous b;
  l_bits : fraction_bits a = fraction_bits b;
  l_tilt : tilt a = tilt b;
  l_limits : map (view o) (limits a) = map (view o) (limits b);
  l_relaxed : relaxed a = relaxed b;
  l_lines : map (fun c => (view o (ltext c), llow c, lhigh c, lweight c)) (lines a) =
            map (fun c => (view o (ltext c), llow c, lhigh c, lweight c)) (lines b);
  l_prices : prices a = prices b;
  l_latencies : latencies a = latencies b;
  l_epsilons : epsilons a = epsilons b;
  l_rows : map (fun r => (raccept r, rrank r, rplans r, rmass r, rcost r, rscore r, view o (rdigest r), redges r, rexponent r)) (rows a) =
           map (fun r => (raccept r, rrank r, rplans r, rmass r, rcost r, rscore r, view o (rdigest r), redges r, rexponent r)) (rows b);
  l_core : view o (core a) = view o (core b);
  l_tools : view o (tools a) = view o (tools b);
  l_manifest : view o (manifest_of o a) = view o (manifest_of o b)
}.

Lemma nums_one (l m : list Z) : map Num l = map Num m -> l = m.
Proof. apply map_one. intros ? ? _ _ K. injection K as K. exact K. Qed.
Lemma texts_one (l m : list str) : map (text o) l = map (text o) m -> map (view o) l = map (view o) m.
Proof.
  revert m. induction l as [|x l IH]; intros [|y m] E; try discriminate; [reflexivity|]. cbn [map] in *. unfold text in E at 1 3.
  injection E as E0 E. rewrite E0, (IH m E). reflexivity.
Qed.
Lemma fields_one {X} (f : X -> Z) k (l m : list X) : k <> O -> (forall x y, In x l -> In y m -> le k (f x) = le k (f y) -> f x = f y) ->
  flat_map (le k) (map f l) = flat_map (le k) (map f m) -> map f l = map f m.
Proof.
  intros K I E. apply (numbers_one k); [exact K | | exact E]. intros x y Hx Hy. apply in_map_iff in Hx, Hy.
  destruct Hx as [x' [<- Hx]], Hy as [y' [<- Hy]]. apply I; assumption.
Qed.

Lemma manifest_one a b : manifest o a (before o a ++ ones_after o a) = manifest o b (before o b ++ ones_after o b) ->
  view o (gname a) = view o (gname b) /\ view o (gversion a) = view o (gversion b) /\ view o (beta a) = view o (beta b) /\
  fraction_bits a = fraction_bits b /\ tilt a = tilt b /\ map (view o) (limits a) = map (view o) (limits b) /\ relaxed a = relaxed b /\
  counted a = counted b /\ ambiguous a = ambiguous b.
Proof.
  generalize (before o a ++ ones_after o a), (before o b ++ ones_after o b). intros ca cb E.
  unfold manifest in E. cbv zeta in E. revert E.
  generalize (by_name (map (fun c => (cname c, Json.Str (hex (view o (hash o (cdata c)))))) ca)),
    (by_name (map (fun c => (cname c, Json.Str (hex (view o (hash o (cdata c)))))) cb)),
    (large (cost_max a)), (large (cost_max b)), (last_row o (rows a) []), (last_row o (rows b) []).
  intros h h' m m' d d' E.
  assert (L : map (text o) (limits a) = map (text o) (limits b) /\ features a = features b /\ options o a = options o b).
  { revert E. generalize (features_bytes a) (features_bytes b). generalize (features a) (features b) (options o a) (options o b). intros f g x y _ _ E.
    assert (K : map (text o) (limits a) = map (text o) (limits b) /\ map Json.Str f = map Json.Str g /\ x = y)
      by (destruct (relaxed a) as [?|], (relaxed b) as [?|]; cbn [app] in E; injection E; intros; (repeat split; assumption) || discriminate).
    destruct K as (K1 & K2 & K3). split; [exact K1|]. split; [|exact K3]. clear - K2. revert g K2. induction f as [|u f IH]; intros [|v g] K2; try discriminate; [reflexivity|].
    injection K2 as -> K2. f_equal. apply IH, K2. }
  destruct L as (L & Lf & Lo). apply texts_one in L.
  assert (R : relaxed a = relaxed b).
  { destruct (relaxed a) as [l|], (relaxed b) as [l'|]; cbn [app] in E; try (injection E; intros; discriminate); [|reflexivity].
    injection E; intros. repeat match goal with K : map Num _ = map Num _ |- _ => apply nums_one in K end. congruence. }
  assert (G : view o (gname a) = view o (gname b) /\ view o (gversion a) = view o (gversion b)).
  { destruct (relaxed a) as [l|], (relaxed b) as [l'|]; cbn [app] in E; try (injection E; intros; discriminate); unfold text in E; injection E; intros; split; assumption. }
  assert (O : view o (beta a) = view o (beta b) /\ fraction_bits a = fraction_bits b /\ tilt a = tilt b /\ (forall x, counted a = Rounded x -> counted b = Rounded x)).
  { unfold options, text in Lo. destruct (counted a), (counted b); cbn [app] in Lo; first [discriminate Lo | injection Lo; intros; repeat split; intros; congruence]. }
  assert (S : gated a = gated b /\ ambiguous a = ambiguous b).
  { unfold features in Lf. rewrite R in Lf. clear - Lf. destruct (gated a), (gated b), (ambiguous a), (ambiguous b), (relaxed b), (counted a), (counted b); cbn [app] in Lf; try (split; reflexivity); discriminate Lf. }
  destruct G as [G1 G2], O as (O1 & O2 & O3 & O4), S as [S1 S2].
  repeat (split; [assumption|]). split; [|exact S2]. unfold gated in S1.
  destruct (counted a) eqn:Ca, (counted b) eqn:Cb; try discriminate; try reflexivity; try (rewrite (O4 _ eq_refl) in *; congruence).
  all: unfold features, gated in Lf; rewrite R, Ca, Cb in Lf; destruct (ambiguous a), (ambiguous b), (relaxed b); discriminate Lf.
Qed.

Lemma call_texts_plain a : plain (call_texts o a).
Proof.
  apply plain_arr. induction (lines a); constructor; [constructor; apply (view_bytes o H M) | assumption].
Qed.
Lemma call_texts_one a b : call_texts o a = call_texts o b ->
  map (fun c => view o (ltext c)) (lines a) = map (fun c => view o (ltext c)) (lines b).
Proof.
  unfold call_texts. generalize (lines a), (lines b). intros l. induction l as [|c l IH]; intros [|d m] E; try discriminate; [reflexivity|].
  cbn [map] in *. injection E as E0 E. rewrite E0, (IH m) by (rewrite E; reflexivity). reflexivity.
Qed.

Ltac take i D K := assert (K := f_equal (fun l => fst (nth i l ([], []))) D); cbn [nth fst] in K.

(* Counts, by the columns that there are. *)
Lemma none_differ {X} (f : X -> Z) (l m : list X) : length l = length m -> (forall x, In x l -> f x = 0) -> (forall x, In x m -> f x = 0) -> map f l = map f m.
Proof.
  revert m. induction l as [|x l IH]; intros [|y m] L A B; try discriminate; [reflexivity|]. simpl. rewrite (A x), (B y) by (simpl; auto).
  f_equal. apply IH; simpl in *; auto.
Qed.
Lemma wide_one (f : row -> Z) l m : (forall r, In r l -> 0 <= f r) -> (forall r, In r m -> 0 <= f r) -> width f l = width f m ->
  flat_map (le (Z.to_nat (8 * width f l))) (map f l) = flat_map (le (Z.to_nat (8 * width f m))) (map f m) -> map f l = map f m.
Proof.
  intros A B W E. rewrite W in E. apply fields_one in E; [exact E| |].
  - assert (W1 : 1 <= width f m) by (unfold width; lia). lia.
  - intros x y Hx Hy. apply unsigned_one; [|split; [auto | apply width_enough, Hy]]. rewrite <- W. split; [auto | apply width_enough, Hx].
Qed.
Definition count_columns (a : artifact) : list (bytes * Z * list Z) :=
  let N := Z.of_nat (length (rows a)) in let w := width rplans (rows a) in let w' := width rmass (rows a) in
  let plans := (flat_map (le (Z.to_nat (8 * w))) (map rplans (rows a)), 8, [N; w]) in
  let masses := (flat_map (le 8) (map rmass (rows a)), 8, [N]) in
  match counted a with
  | Exactly => plans :: if own_masses a then [(flat_map (le (Z.to_nat (8 * w'))) (map rmass (rows a)), 8, [N; w'])] else []
  | Rounded _ => [plans; masses]
  | Gated => [masses]
  end.
Definition exponent_columns (a : artifact) : list (bytes * Z * list Z) :=
  match counted a with Exactly => [] | _ => [(flat_map (le 4) (map rexponent (rows a)), 4, [Z.of_nat (length (rows a))])] end.
Lemma counts_one a b : (forall r, In r (rows a) -> 0 <= rplans r) -> (forall r, In r (rows b) -> 0 <= rplans r) ->
  (forall r, In r (rows a) -> 0 <= rmass r) -> (forall r, In r (rows b) -> 0 <= rmass r) ->
  (forall r, In r (rows a) -> counts_fit (counted a) r = true) -> (forall r, In r (rows b) -> counts_fit (counted b) r = true) ->
  shape_of a = shape_of b ->
  map (fun x => (fst (fst x), snd x)) (count_columns a) = map (fun x => (fst (fst x), snd x)) (count_columns b) ->
  map (fun x => (fst (fst x), snd x)) (exponent_columns a) = map (fun x => (fst (fst x), snd x)) (exponent_columns b) ->
  map rplans (rows a) = map rplans (rows b) /\ map rmass (rows a) = map rmass (rows b) /\ map rexponent (rows a) = map rexponent (rows b).
Proof.
  intros ap bp am bm ak bk Em Dm De. unfold count_columns, exponent_columns, shape_of in *.
  assert (Small : forall (s : style) l, s <> Exactly -> (forall r, In r l -> counts_fit s r = true) -> (forall r, In r l -> 0 <= rmass r) ->
            (forall r : row, In r l -> 0 <= rmass r < 256 ^ Z.of_nat 8) /\ (forall r, In r l -> 0 <= rexponent r < 256 ^ Z.of_nat 4)).
  { intros s l Hs Hl Hm. change (256 ^ Z.of_nat 8) with two64. change (256 ^ Z.of_nat 4) with two32. split; intros r Hr; specialize (Hl r Hr); specialize (Hm r Hr);
      unfold counts_fit in Hl; destruct s; try congruence; rewrite !andb_true_iff, Z.ltb_lt, within_is in Hl; unfold two63, two64 in *; lia. }
  destruct (counted a) as [|x|] eqn:Ca, (counted b) as [|y|] eqn:Cb; try (destruct (own_masses a); discriminate Em); try (destruct (own_masses b); discriminate Em); try discriminate Em.
  - cbn [map fst snd] in Dm. assert (Kw := f_equal (fun l => nth 1 (snd (nth 0 l ([], []))) 0) Dm). take 0%nat Dm K. cbn [nth snd] in Kw.
    apply wide_one in K; auto. split; [exact K|].
    assert (L := f_equal (@length Z) K). rewrite !map_length in L. split.
    + destruct (own_masses a) eqn:Oa, (own_masses b) eqn:Ob; try discriminate Em.
      * cbn [map fst snd] in Dm. clear Kw K. assert (Kw := f_equal (fun l => nth 1 (snd (nth 1 l ([], []))) 0) Dm). take 1%nat Dm K. cbn [nth snd] in Kw.
        apply wide_one in K; auto.
      * unfold own_masses in Oa, Ob. apply negb_false_iff in Oa, Ob. rewrite forallb_forall in Oa, Ob.
        rewrite (map_ext_in rmass rplans (rows a)), (map_ext_in rmass rplans (rows b)); [exact K| |]; intros r I; apply Z.eqb_eq; auto.
    + apply none_differ; [exact L | |]; intros r I; [specialize (ak r I) | specialize (bk r I)]; apply Z.eqb_eq; assumption.
  - destruct (Small (Rounded x) _ ltac:(discriminate) ak am) as [Sa Ea], (Small (Rounded y) _ ltac:(discriminate) bk bm) as [Sb Eb].
    cbn [map fst snd] in Dm, De. assert (Kw := f_equal (fun l => nth 1 (snd (nth 0 l ([], []))) 0) Dm). take 0%nat Dm K. cbn [nth snd] in Kw.
    apply wide_one in K; auto. split; [exact K|]. clear K Kw. split.
    + take 1%nat Dm K. apply fields_one in K; [exact K | discriminate | intros; apply (unsigned_one 8); auto].
    + take 0%nat De K. apply fields_one in K; [exact K | discriminate | intros; apply (unsigned_one 4); auto].
  - destruct (Small Gated _ ltac:(discriminate) ak am) as [Sa Ea], (Small Gated _ ltac:(discriminate) bk bm) as [Sb Eb].
    cbn [map fst snd] in Dm, De. take 0%nat Dm K. apply fields_one in K; [ | discriminate | intros; apply (unsigned_one 8); auto].
    assert (L := f_equal (@length Z) K). rewrite !map_length in L. split; [|split; [exact K|]].
    + apply none_differ; [exact L | |]; intros r I; [specialize (ak r I) | specialize (bk r I)]; unfold counts_fit in *; rewrite !andb_true_iff in *; apply Z.eqb_eq; tauto.
    + clear K. take 0%nat De K. apply fields_one in K; [exact K | discriminate | intros; apply (unsigned_one 4); auto].
Qed.

(* Two artifacts of the same bytes are alike; their sizes are what eight bytes can say. *)
Theorem one_artifact a b : numbers_fit o a = true -> numbers_fit o b = true ->
  Z.of_nat (length (view o (encode o a))) < two64 -> view o (encode o a) = view o (encode o b) -> alike a b.
Proof.
  intros Fa Fb S E. apply ranges in Fa, Fb.
  (* The header is the same, and so is the data behind it. *)
  assert (Sb : Z.of_nat (length (view o (encode o b))) < two64) by (rewrite <- E; exact S).
  rewrite encoded in S, Sb. rewrite !encoded in E. rewrite !app_length, le_length in S, Sb.
  apply app_injective in E; [|rewrite !le_length; reflexivity]. destruct E as [Eh E].
  apply unsigned_one in Eh; [|change (256 ^ Z.of_nat 8) with two64; lia|change (256 ^ Z.of_nat 8) with two64; lia].
  apply app_injective in E; [|lia]. destruct E as [Eh' E]. clear Eh S Sb.
  destruct (header_is _ (columns_named a)) as [k Ka], (header_is _ (columns_named b)) as [k' Kb].
  rewrite Ka, Kb in Eh'. apply text_prefix in Eh'; try (apply header_plain, columns_named);
    try (rewrite <- (app_nil_r (repeat _ _)); apply spaces_stop; exact I). destruct Eh' as [Eh _]. clear Ka Kb k k'.
  (* So each column is. *)
  apply entries_one in Eh. destruct Eh as [Em Ee]. apply shapes_one in Ee. rewrite !data_is in Ee.
  assert (D := cut _ _ (data_whole a Fa) (data_whole b Fb) Ee E). clear E Ee.
  (* And what it holds. *)
  unfold data in D. cbv zeta in D.
  rewrite !map_app in D. apply app_injective in D; [|reflexivity]. destruct D as [D1 D].
  apply app_injective in D; [|clear - Em; unfold shape_of in Em; destruct (counted a), (counted b), (own_masses a), (own_masses b); discriminate Em || reflexivity].
  destruct D as [Dm D]. apply app_injective in D; [|reflexivity]. destruct D as [D2 D].
  apply app_injective in D; [|clear - Em; unfold shape_of in Em; destruct (counted a), (counted b), (own_masses a), (own_masses b); discriminate Em || reflexivity].
  destruct D as [De D3]. cbn [map fst snd] in D1, D2, D3.
  destruct Fa as [ar ap am ak ac as_ ad ae al ah aw an apr ala aep _ _ _], Fb as [br bp bm bk bc bs bd be bl bh bw bn bpr bla bep _ _ _].
  take 0%nat D1 K. apply fields_one in K; [|discriminate|intros; apply signed_one; auto]. rename K into Khigh.
  take 1%nat D1 K. apply fields_one in K; [|discriminate|intros; apply signed_one; auto]. rename K into Klow.
  take 2%nat D1 K. apply numbers_one in K; [|discriminate|intros; apply (unsigned_one 8); auto]. rename K into Kepsilons.
  take 3%nat D1 K. apply numbers_one in K; [|discriminate|intros; apply (unsigned_one 8); auto]. rename K into Klatencies.
  take 4%nat D1 K. apply numbers_one in K; [|discriminate|intros; apply (unsigned_one 8); auto]. rename K into Kprices.
  take 5%nat D1 K. apply fields_one in K; [|discriminate|intros; apply (unsigned_one 8); auto]. rename K into Kweight.
  take 6%nat D1 K. apply fields_one in K; [|discriminate|intros; apply signed_one; auto]. rename K into Kcost.
  take 7%nat D1 K. apply numbers_one in K; [|discriminate|].
  2: { intros x y Hx Hy. apply scan_bounds in Hx, Hy. apply (unsigned_one 8); change (256 ^ Z.of_nat 8) with two64; lia. }
  apply scan_one in K. rename K into Kstart.
  destruct (counts_one a b ap bp am bm ak bk Em Dm De) as (Kplans & Kmass & Kexponent).
  take 0%nat D2 K. apply fields_one in K; [|discriminate|intros; apply signed_one; auto]. rename K into Kscore.
  take 1%nat D2 K. apply fields_one in K; [|discriminate|intros; apply (unsigned_one 4); [apply ae | apply be | ]; assumption]. rename K into Kcall.
  take 2%nat D2 K. apply fields_one in K; [|discriminate|intros; apply (unsigned_one 4); [apply ae | apply be | ]; assumption].
  assert (Kedges := both_one _ _ Kcall K). clear K Kcall.
  take 0%nat D3 K. apply fields_one in K; [|discriminate|intros; apply (unsigned_one 4); auto]. rename K into Krank.
  take 1%nat D3 K. apply fields_one in K; [|discriminate|intros x y _ _; apply (unsigned_one 1); unfold accepts; destruct (raccept _); lia].
  rename K into Kaccept.
  take 2%nat D3 K. rewrite !(print_is o H) in K by (exact M || apply call_texts_plain). apply one_value in K; try apply call_texts_plain.
  apply call_texts_one in K. rename K into Ktext.
  take 3%nat D3 Kcore. take 6%nat D3 Ktools.
  take 4%nat D3 Kmanifest. assert (K := Kmanifest). unfold manifest_of, manifest_bytes in K. rewrite !(print_is o H) in K by (exact M || apply manifest_plain, manifest_named).
  apply one_value in K; try apply manifest_plain, manifest_named. apply manifest_one in K.
  destruct K as (Kn & Kv & Kb & Kf & Kt & Kl & Kr & Kc & Kam).
  take 5%nat D3 K. apply (concat_one 32) in K; [|discriminate| |].
  2,3: apply Forall_forall; intros x I; apply in_map_iff in I; destruct I as [y [<- I]]; apply in_map_iff in I; destruct I as [r [<- I]]; auto.
  rewrite !map_map in K. rename K into Kdigest.
  apply (lengths_one (@redges str)) in Kedges; [|exact Kstart].
  constructor; try assumption.
  - repeat apply pairs_one; assumption.
  - repeat apply pairs_one; try assumption. apply (map_one (fun x : bool => if x then 1 else 0)); [intros [] [] _ _; congruence|].
    rewrite !map_map. exact Kaccept.
Qed.

(* Whatever two readers say of a file: if both pass they say the same, of calls' keys too, and report the same digest. *)
Theorem one_verdict file a b d e : size_of o file < two64 ->
  verdict o file a = (0, d) -> verdict o file b = (0, e) ->
  alike a b /\ view o d = view o e /\ map (fun c => view o (lkey c)) (lines a) = map (fun c => view o (lkey c)) (lines b).
Proof.
  intros S Va Vb.
  destruct (check_sound o H M _ _ _ Va) as [Ea [Da [Fa [oka _]]]], (check_sound o H M _ _ _ Vb) as [Eb [Db [Fb [okb _]]]].
  rewrite (size_is o H M), Ea in S. assert (A := one_artifact a b Fa Fb S ltac:(congruence)).
  split; [exact A|]. split; [rewrite Da, Db; f_equal; apply (l_manifest _ _ A)|].
  assert (La := proj1 (proj2 (parts_ok _ _ _ _ _ oka))). assert (Lb := proj1 (proj2 (parts_ok _ _ _ _ _ okb))).
  assert (K := l_lines _ _ A). clear - M La Lb K. revert La Lb K. generalize (@None str) at 1. generalize (@None str).
  generalize (lines a), (lines b). intros l. induction l as [|c l IH]; intros [|c' m] p q La Lb K; try discriminate; [reflexivity|].
  cbn [map lines_ok] in *. rewrite !andb_true_iff in La, Lb. injection K as T W X _ K.
  destruct La as [[_ La] La'], Lb as [[_ Lb] Lb']. rewrite (IH m (Some (ltext c')) (Some (ltext c)) La' Lb' K). f_equal.
  unfold line_ok in La, Lb. rewrite !andb_true_iff in La, Lb. destruct La as [_ La], Lb as [_ Lb].
  apply (same_is o H M) in La, Lb. rewrite La, Lb, !(hash_is o H M). unfold call_string.
  rewrite !(joined_is o H M). cbn [map concat]. rewrite !(numbers_is o H M), !(size_is o H M), T, W, X. reflexivity.
Qed.

End One.
