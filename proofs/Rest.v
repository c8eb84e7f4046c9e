(* The rest race: the children of a node drawn one at a time, in the order in which they arrive.
   docs/spec/race.md, section 18.

   Here masses matter: a draw takes one child, or the phantom mass, off what is left, and a phantom
   can be drawn once at most.  So every child has its turn, and exactly one. *)

From Coq Require Import List Arith Bool Reals ZArith Lia Lra Permutation.
From Tcc Require Import Automaton Rounding Search.
Import ListNotations.
Local Open Scope R_scope.

Section Rest.
Variable M : automaton.
Variable root : state M.
Variable state_eq : forall p q : state M, {p = q} + {p <> q}.
Notation node := (node M).
Notation child := (child M).
Notation children := (children M root).

Variable beta : R.
Variables cost_low w r : call -> R.
Variable G : state M -> R.
Hypothesis beta_nonneg : 0 <= beta.
Hypothesis w_pos : forall a, 0 < w a.
Hypothesis r_up : forall a, - beta * cost_low a - ln (w a) <= r a.
Hypothesis G_stop : forall q, accept M q = true -> 0 <= G q.
Hypothesis G_step : forall q a p, In (a, p) (edges M q) -> r a + G p <= G q.

(* All children of the automaton with their masses, in canonical order; None: a forbidden one. *)
Definition pool_t := list (Z * option child).
Definition free (R : pool_t) : list child :=
  flat_map (fun x => match snd x with Some c => [c] | None => [] end) R.
Definition total (R : pool_t) : Z := fold_right (fun x s => fst x + s)%Z 0%Z R.

Variable pool : node -> pool_t.
Variable phantom : node -> Z.                       (* m less the sum of the masses *)
Variable unit : node -> R.                          (* 2^(F d): a rate is a mass over it *)
Hypothesis pool_free : forall v, free (pool v) = children v.
Hypothesis mass_pos : forall v x, In x (pool v) -> (0 < fst x)%Z.
Hypothesis phantom_nonneg : forall v, (0 <= phantom v)%Z.
Hypothesis root_count : (0 < total (pool []) + phantom [])%Z.
Hypothesis unit_pos : forall v, 0 < unit v.

(* The uniforms: x(1, D(root)); of draw i, x(2, D(v)) or x(5, D(v) | i); x(6, D(v) | i). *)
Variable x_first : Z.
Variables x_draw x_wait : node -> nat -> Z.
Hypothesis x_first_word : word x_first.
Hypothesis x_draw_word : forall v i, word (x_draw v i).
Hypothesis x_wait_word : forall v i, word (x_wait v i).

(* The first j in R with (2x + 1) * mass(R) < 2^65 * (the sum over R up to and with j), and the others. *)
Fixpoint pick (line before : Z) (R : pool_t) : option (option child * pool_t) :=
  match R with
  | [] => None
  | (m, c) :: R =>
      if (line <? 2 ^ 65 * (before + m))%Z then Some (c, R)
      else match pick line (before + m) R with
           | Some (c', R') => Some (c', (m, c) :: R')
           | None => None
           end
  end.

(* One draw: what wins, and what is left of children and phantom mass. *)
Definition draw (x : Z) (s : pool_t * Z) : option child * (pool_t * Z) :=
  match pick ((2 * x + 1) * (total (fst s) + snd s)) 0 (fst s) with
  | Some (c, R) => (c, (R, snd s))
  | None => (None, (fst s, 0%Z))
  end.

Fixpoint left (v : node) (i : nat) : pool_t * Z :=
  match i with
  | O => (pool v, phantom v)
  | S i => snd (draw (x_draw v i) (left v i))
  end.
Definition in_left v i := free (fst (left v i)).
Definition winner v i : option child := fst (draw (x_draw v i) (left v i)).

(* T_i is t(v) + wait v i. *)
Fixpoint wait (v : node) (i : nat) : R :=
  match i with
  | O => 0
  | S i => wait v i + exponential (x_wait v (S i))
                      / (IZR (total (fst (left v (S i))) + snd (left v (S i))) / unit v)
  end.

Definition same (c d : option child) : {c = d} + {c <> d}.
Proof. repeat decide equality. Defined.
Definition turn (v : node) (c : child) : nat :=
  match find (fun i => if same (winner v i) (Some c) then true else false) (seq 0 (S (length (pool v)))) with
  | Some i => i
  | None => O
  end.

Fixpoint t (v : node) : R :=
  match v with
  | [] => exponential x_first / (IZR (total (pool []) + phantom []) / unit [])
  | e :: u => w (fst e) * (t u + wait u (turn u (Some e)))
  end.
Definition E_P (v : node) : R := t v + wait v (turn v None).

Lemma pick_some line before R c R' : pick line before R = Some (c, R') ->
  exists m, Permutation R ((m, c) :: R').
Proof.
  revert before R'. induction R as [|[m d] R IH]; intros before R' H; simpl in H; [discriminate|].
  destruct (line <? _)%Z.
  - injection H as <- <-. exists m. reflexivity.
  - destruct (pick line (before + m) R) as [[c' R'']|] eqn:E; [|discriminate].
    injection H as <- <-. destruct (IH _ _ E) as [m' P]. exists m'. rewrite P. apply perm_swap.
Qed.

Lemma pick_none line before R : pick line before R = None -> R <> [] ->
  (2 ^ 65 * (before + total R) <= line)%Z.
Proof.
  revert before. induction R as [|[m d] R IH]; intros before H Hne; [congruence|].
  cbn [pick] in H. destruct (line <? 2 ^ 65 * (before + m))%Z eqn:L; [discriminate|].
  apply Z.ltb_ge in L. destruct R as [|x R].
  - cbn [total fold_right fst]. rewrite Z.add_0_r. exact L.
  - destruct (pick line (before + m) (x :: R)) as [[]|] eqn:E; [discriminate|].
    assert (H' := IH (before + m)%Z E ltac:(discriminate)).
    change (total ((m, d) :: x :: R)) with (m + total (x :: R))%Z. rewrite Z.add_assoc. exact H'.
Qed.

Lemma free_perm R R' : Permutation R R' -> Permutation (free R) (free R').
Proof. intros H. unfold free. rewrite H. reflexivity. Qed.

Definition list_of {A} (o : option A) : list A := match o with Some x => [x] | None => [] end.

(* A draw takes what it draws off what is left, and nothing else. *)
Lemma one_less v i : Permutation (in_left v i) (list_of (winner v i) ++ in_left v (S i)).
Proof.
  unfold in_left, winner. cbn [left]. unfold draw.
  destruct (pick _ 0 (fst (left v i))) as [[c R]|] eqn:E; cbn [fst snd]; [|reflexivity].
  destruct (pick_some _ _ _ _ _ E) as [m P]. apply free_perm in P. rewrite P.
  unfold free. simpl. destruct c; reflexivity.
Qed.

Lemma left_spec v i : (forall x, In x (fst (left v i)) -> In x (pool v)) /\ (0 <= snd (left v i))%Z.
Proof.
  induction i as [|i [IH1 IH2]]; [simpl; auto|]. cbn [left]. unfold draw.
  destruct (pick _ 0 (fst (left v i))) as [[c R]|] eqn:E; cbn [fst snd]; [|split; [exact IH1 | lia]].
  split; [|exact IH2]. intros x Hx. apply IH1. destruct (pick_some _ _ _ _ _ E) as [m P].
  apply (Permutation_in _ (Permutation_sym P)). right. exact Hx.
Qed.

Lemma total_pos R : (forall x, In x R -> (0 < fst x)%Z) -> (0 <= total R)%Z /\ (R <> [] -> (0 < total R)%Z).
Proof.
  induction R as [|x R IH]; intros H; [split; [reflexivity | congruence]|].
  destruct IH as [IH _]; [intros y Hy; apply H; right; exact Hy|].
  assert (Hx := H x (or_introl eq_refl)). change (total (x :: R)) with (fst x + total R)%Z. split; intros; lia.
Qed.

Lemma total_left v i : (0 <= total (fst (left v i)))%Z /\
  (fst (left v i) <> [] -> (0 < total (fst (left v i)))%Z).
Proof. apply total_pos. intros x Hx. apply (mass_pos v), left_spec with (i := i), Hx. Qed.

(* Each draw takes a child or the phantom mass, so in the end nothing is left. *)
Lemma all_drawn v : fst (left v (S (length (pool v)))) = [].
Proof.
  set (size := fun s : pool_t * Z => (length (fst s) + (if (snd s =? 0)%Z then 0 else 1))%nat).
  assert (H : forall i, fst (left v i) = [] \/ (size (left v i) + i <= S (length (pool v)))%nat).
  { induction i as [|i IH]; [right; unfold size; cbn [left fst snd]; destruct (_ =? _)%Z; lia|].
    destruct (left_spec v i) as [_ Hph]. destruct (total_left v i) as [H0 H1].
    cbn [left]. unfold draw.
    destruct (pick _ 0 (fst (left v i))) as [[c R]|] eqn:E; cbn [fst snd].
    - destruct (pick_some _ _ _ _ _ E) as [m P]. apply Permutation_length in P. cbn [length] in P.
      destruct IH as [IH | IH]; [rewrite IH in P; discriminate|].
      right. unfold size in *. cbn [fst snd] in *. lia.
    - destruct IH as [IH | IH]; [left; exact IH|].
      destruct (fst (left v i)) as [|x R] eqn:ER; [left; reflexivity|].
      right. assert (Hne : x :: R <> []) by discriminate.
      apply pick_none in E; [|exact Hne]. specialize (H1 Hne).
      unfold size in *. rewrite ER in IH. cbn [fst snd] in *.
      destruct (x_draw_word v i) as [Hx0 Hx1].
      destruct (Z.eqb_spec (snd (left v i)) 0) as [Z0 | Z0].
      + exfalso. rewrite Z0, Z.add_0_r, Z.add_0_l in E. nia.
      + cbn [length fst snd Z.eqb] in *. lia. }
  destruct (H (S (length (pool v)))) as [H' | H']; [exact H'|].
  unfold size in H'. destruct (fst (left v _)); [reflexivity | cbn [length] in H'; lia].
Qed.

Lemma children_distinct v : NoDup (edges M (at_ M root v)) -> NoDup (children v).
Proof.
  intros H. unfold Search.children. apply nodup_app.
  - apply FinFun.Injective_map_NoDup; [|exact H]. intros a b E. injection E. auto.
  - destruct (accept M _); [|constructor]. constructor; [intros [] | constructor].
  - intros c Hc. apply in_map_iff in Hc. destruct Hc as [e [<- _]].
    destruct (accept M _); [intros [E | []]; discriminate | auto].
Qed.

Hypothesis C1 : forall q, NoDup (map fst (edges M q)).

Lemma left_distinct v i : NoDup (in_left v i).
Proof.
  induction i as [|i IH].
  - unfold in_left. cbn [left fst]. rewrite pool_free. apply children_distinct, NoDup_map_inv with (f := fst), C1.
  - apply (Permutation_NoDup (one_less v i)) in IH. destruct (winner v i); simpl in IH; [|exact IH].
    inversion IH. assumption.
Qed.

Lemma left_falls v c i j : (i <= j)%nat -> In c (in_left v j) -> In c (in_left v i).
Proof.
  induction 1 as [|j _ IH]; [auto|]. intros H. apply IH.
  apply (Permutation_in _ (Permutation_sym (one_less v j))), in_app_iff. right. exact H.
Qed.

Lemma winner_was_left v c i : winner v i = Some c -> In c (in_left v i).
Proof.
  intros H. apply (Permutation_in _ (Permutation_sym (one_less v i))). rewrite H. left. reflexivity.
Qed.

Lemma winner_is_gone v c i j : winner v i = Some c -> (i < j)%nat -> ~ In c (in_left v j).
Proof.
  intros H Hij Hin. apply (left_falls v c (S i)) in Hin; [|exact Hij].
  assert (D := Permutation_NoDup (one_less v i) (left_distinct v i)). rewrite H in D.
  inversion D as [|? ? Hc _]; subst. exact (Hc Hin).
Qed.

(* Every child has one turn, and no other. *)
Theorem turn_of v c : In c (children v) ->
  winner v (turn v c) = Some c /\ forall i, winner v i = Some c -> i = turn v c.
Proof.
  intros Hc. assert (H : exists i, (i < S (length (pool v)))%nat /\ winner v i = Some c).
  { assert (H : forall k, (exists i, (i < k)%nat /\ winner v i = Some c) \/ In c (in_left v k)).
    { induction k as [|k [[i [Hi H]] | IH]].
      - right. unfold in_left. cbn [left fst]. rewrite pool_free. exact Hc.
      - left. exists i. split; [lia | exact H].
      - apply (Permutation_in _ (one_less v k)), in_app_iff in IH. destruct IH as [IH | IH]; [|auto].
        left. exists k. split; [lia|]. destruct (winner v k); [destruct IH as [-> | []] | destruct IH].
        reflexivity. }
    destruct (H (S (length (pool v)))) as [H' | H']; [exact H'|].
    unfold in_left in H'. rewrite all_drawn in H'. destruct H'. }
  assert (Ht : winner v (turn v c) = Some c).
  { unfold turn. destruct (find _ _) as [i|] eqn:E.
    - apply find_some in E. destruct E as [_ E]. destruct (same _ _); [assumption | discriminate].
    - destruct H as [i [Hi H]]. apply find_none with (x := i) in E; [|apply in_seq; lia].
      destruct (same _ _); [discriminate | contradiction]. }
  split; [exact Ht|]. intros i Hi. destruct (Nat.lt_trichotomy i (turn v c)) as [L | [E | L]]; [|exact E|].
  - exfalso. exact (winner_is_gone v c _ _ Hi L (winner_was_left v c _ Ht)).
  - exfalso. exact (winner_is_gone v c _ _ Ht L (winner_was_left v c _ Hi)).
Qed.

Lemma in_left_child v c i : In c (in_left v i) -> In c (children v).
Proof.
  intros H. apply (left_falls v c 0) in H; [|lia]. unfold in_left in H. cbn [left fst] in H.
  rewrite pool_free in H. exact H.
Qed.

Lemma left_before_turn v c i : In c (in_left v i) -> (i <= turn v c)%nat.
Proof.
  intros H. destruct (turn_of v c (in_left_child v c i H)) as [Ht _].
  destruct (Nat.le_gt_cases i (turn v c)) as [L | L]; [exact L|].
  exfalso. exact (winner_is_gone v c _ _ Ht L H).
Qed.

Lemma wait_step v i : fst (left v (S i)) <> [] -> wait v i < wait v (S i).
Proof.
  intros H. cbn [wait]. destruct (left_spec v (S i)) as [_ Hph]. destruct (total_left v (S i)) as [_ Ht].
  specialize (Ht H). assert (He := exponential_pos _ (x_wait_word v (S i))).
  assert (0 < IZR (total (fst (left v (S i))) + snd (left v (S i)))) by (apply IZR_lt; lia).
  assert (0 < exponential (x_wait v (S i)) / (IZR (total (fst (left v (S i))) + snd (left v (S i))) / unit v));
    [|lra].
  apply Rdiv_lt_0_compat; [exact He|]. apply Rdiv_lt_0_compat; auto.
Qed.

Lemma left_nonempty v i j : (i <= j)%nat -> fst (left v j) <> [] -> fst (left v i) <> [].
Proof.
  induction 1 as [|j _ IH]; [auto|]. intros H. apply IH. intros E. apply H.
  cbn [left]. unfold draw. rewrite E. reflexivity.
Qed.

Lemma wait_mono v i j : (i <= j)%nat -> fst (left v j) <> [] -> wait v i <= wait v j.
Proof.
  induction 1 as [|j Hij IH]; intros H; [lra|]. assert (H1 := wait_step v j H).
  specialize (IH (left_nonempty v j (S j) ltac:(lia) H)). lra.
Qed.

Lemma free_nonempty v c i : In c (in_left v i) -> fst (left v i) <> [].
Proof. intros H E. unfold in_left in H. rewrite E in H. destruct H. Qed.

Notation weight := (weight M w).
Notation arrival := (arrival M t E_P).

Lemma arrival_eq v c : arrival v c = weight c * (t v + wait v (turn v c)).
Proof. destruct c as [e|]; simpl; unfold E_P; lra. Qed.

(* Section 18: the winner has t(u) = w(a) * T_i; a child that is left, t(u) >= w(a) * T_i. *)
Theorem winner_arrives v c i : In c (children v) -> winner v i = Some c ->
  arrival v c = weight c * (t v + wait v i).
Proof. intros Hc H. rewrite arrival_eq, <- (proj2 (turn_of v c Hc) i H). reflexivity. Qed.

Lemma weight_pos c : 0 < weight c.
Proof. destruct c; simpl; [apply w_pos | lra]. Qed.

Theorem left_arrives_later v c i : In c (in_left v i) -> weight c * (t v + wait v i) <= arrival v c.
Proof.
  intros H. rewrite arrival_eq. apply Rmult_le_compat_l; [apply Rlt_le, weight_pos|].
  apply Rplus_le_compat_l, wait_mono; [apply left_before_turn, H|].
  destruct (turn_of v c (in_left_child v c i H)) as [Ht _].
  exact (free_nonempty v c _ (winner_was_left v c _ Ht)).
Qed.

Lemma rest_hands_down v c : In c (children v) -> 0 < t v -> weight c * t v <= arrival v c.
Proof.
  intros Hc _. assert (H : In c (in_left v 0)) by (unfold in_left; cbn [left fst]; rewrite pool_free; exact Hc).
  apply left_arrives_later in H. cbn [wait] in H. rewrite Rplus_0_r in H. exact H.
Qed.

Lemma wait_turn v c : 0 <= wait v (turn v c).
Proof.
  unfold turn. destruct (find _ _) as [i|] eqn:E; [|simpl; lra].
  apply find_some in E. destruct E as [_ E]. destruct (same _ _) as [H|]; [|discriminate].
  apply (wait_mono v 0 i); [lia|]. exact (free_nonempty v c i (winner_was_left v c i H)).
Qed.

Lemma t_pos v : 0 < t v.
Proof.
  induction v as [|e u IH]; cbn [t].
  - apply Rdiv_lt_0_compat; [apply exponential_pos, x_first_word|].
    apply Rdiv_lt_0_compat; [apply IZR_lt, root_count | apply unit_pos].
  - assert (H := wait_turn u (Some e)). apply Rmult_lt_0_compat; [apply w_pos | lra].
Qed.

Notation node_item := (node_item M root G).
Notation leaf_item := (leaf_item M).
Notation rest_item := (rest_item M root G).

(* What draw i from v puts in place of v (i = 0), or of the item `rest` of step i. *)
Definition after (v : node) (i : nat) : list (item M) :=
  match winner v i with
  | Some (Some e) => [node_item (e :: v) (t (e :: v))]
  | Some None => [leaf_item v (E_P v)]
  | None => []
  end ++
  match fst (left v (S i)) with
  | [] => []
  | _ => [rest_item v (in_left v (S i)) (t v + wait v (S i))]
  end.

Definition pops (i : item M) (J : list (item M)) := exists v tau,
  (i = node_item v tau /\ J = after v 0) \/
  (exists k, i = rest_item v (in_left v k) tau /\ J = after v k).

Lemma after_covers v i : Permutation (flat_map (under M root v) (in_left v i)) (flat_map (covers M) (after v i)).
Proof.
  rewrite (one_less v i), flat_map_app. unfold after. rewrite flat_map_app. apply Permutation_app.
  - destruct (winner v i) as [[e|]|]; reflexivity.
  - unfold in_left. destruct (fst (left v (S i))) eqn:E; [reflexivity|].
    simpl. rewrite app_nil_r. reflexivity.
Qed.

Lemma pops_covers i J : pops i J -> Permutation (covers M i) (flat_map (covers M) J).
Proof.
  intros [v [tau [[-> ->] | [k [-> ->]]]]]; rewrite <- after_covers; [|reflexivity].
  cbn [node_item covers]. rewrite below_children. unfold in_left. cbn [left fst]. rewrite pool_free.
  reflexivity.
Qed.

Lemma after_bounds v i : forall j, In j (after v i) -> bounds M beta cost_low E_P j.
Proof.
  intros j Hj. assert (Ht := t_pos v). unfold after in Hj. apply in_app_iff in Hj. destruct Hj as [Hj | Hj].
  - destruct (winner v i) as [c|] eqn:E; [|destruct Hj].
    assert (Hc := in_left_child v c i (winner_was_left v c i E)).
    assert (Hh := rest_hands_down v c Hc Ht).
    destruct c as [e|]; destruct Hj as [<- | []]; cbn [Search.weight Search.arrival] in Hh.
    + apply node_bounds with (w := w) (r := r) (t := t); auto using rest_hands_down.
      assert (0 < w (fst e) * t v) by (apply Rmult_lt_0_compat; auto). lra.
    + apply leaf_bounds. lra.
  - destruct (fst (left v (S i))) eqn:E; [destruct Hj|]. destruct Hj as [<- | []].
    assert (Hne : fst (left v (S i)) <> []) by (rewrite E; discriminate).
    apply rest_bounds with (w := w) (r := r) (t := t); auto using rest_hands_down.
    + assert (H := wait_mono v 0 (S i) ltac:(lia) Hne). cbn [wait] in H. cbn [wait]. lra.
    + intros c Hc. split; [exact (in_left_child v c _ Hc) | exact (left_arrives_later v c _ Hc)].
Qed.

Lemma pops_bounds i J : pops i J -> forall j, In j J -> bounds M beta cost_low E_P j.
Proof. intros [v [tau [[_ ->] | [k [_ ->]]]]]; apply after_bounds. Qed.

Notation value := (value M beta E_P).
Notation steps := (steps M beta E_P pops).
Notation starts := (starts M root beta cost_low G t).
Notation every_plan := (every_plan M root).

(* T2 and T3, as of the coupled race. *)
Theorem rest_run_wise s s' k top B :
  starts s -> steps s s' ->
  best M k (found M s') top -> length top = k ->
  In B (map snd top) -> (forall x, In x top -> B <= snd x)%Z ->
  (forall x, In x (frontier M s') -> snd x <= B)%Z ->
  NoDup (map (fun x => plan_of M (fst x)) top) /\
  forall c, within M s' c ->
    (forall P b, In (P, b) top -> In P every_plan /\ value c P = b) /\
    (forall P, In P every_plan -> ~ In P (map fst top) -> (value c P <= B)%Z).
Proof.
  intros Hs Hrun Hbest Hk HB Hleast Hkeys.
  destruct (run_wise M root beta cost_low w r G beta_nonneg w_pos r_up G_stop G_step t E_P
    rest_hands_down pops pops_covers pops_bounds (t_pos [])
    s s' k top B B C1 Hs Hrun Hbest Hk HB Hleast Hkeys) as [H1 H3].
  split; [exact H1|]. intros c Hc. destruct (H3 c Hc) as [H4 H5]. split; [exact H4|].
  intros P HP Hnot. specialize (H5 P HP Hnot). lia.
Qed.

End Rest.
