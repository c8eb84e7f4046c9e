(* The coupled race: every child of an expanded node has an arrival; keys finalized or anchored.
   docs/spec/race.md, sections 5, 6, 8 and 9.

   n may be any positive number of a node, and any child, or none, may have won it: soundness of one
   run needs neither counts nor the rule that picks the winner.  Forbidden children are not among
   those of the automaton; where one is picked no child has won. *)

From Coq Require Import List Reals ZArith Lia Lra Permutation.
From Tcc Require Import Automaton Rounding Search.
Import ListNotations.
Local Open Scope R_scope.

Section Coupled.
Variable M : automaton.
Variable root : state M.
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

(* The uniforms: x(1, D(root)); x(3, id) of each child; and who has won each node. *)
Variable x_first : Z.
Variable x_residual : node -> child -> Z.
Variable won : node -> child -> bool.
Variable n : node -> R.
Hypothesis x_first_word : word x_first.
Hypothesis x_residual_word : forall v c, word (x_residual v c).
Hypothesis n_pos : forall v, 0 < n v.

(* The recursion of section 5. *)
Definition residual (v : node) (c : child) : R :=
  if won v c then 0
  else exponential (x_residual v c) / match c with Some e => n (e :: v) | None => 1 end.
Fixpoint t (v : node) : R :=
  match v with
  | [] => exponential x_first / n []
  | e :: u => w (fst e) * t u + residual u (Some e)
  end.
Definition E_P (v : node) : R := t v + residual v None.

Lemma residual_nonneg v c : 0 <= residual v c.
Proof.
  unfold residual. destruct (won v c); [lra|]. assert (H := exponential_pos _ (x_residual_word v c)).
  apply Rlt_le. destruct c as [e|]; apply Rdiv_lt_0_compat; auto; lra.
Qed.

Lemma t_pos v : 0 < t v.
Proof.
  induction v as [|e u IH]; simpl.
  - apply Rdiv_lt_0_compat; [apply exponential_pos, x_first_word | apply n_pos].
  - assert (H := residual_nonneg u (Some e)). assert (0 < w (fst e) * t u) by (apply Rmult_lt_0_compat; auto).
    lra.
Qed.

Notation weight := (weight M w).
Notation arrival := (arrival M t E_P).

Lemma coupled_hands_down v c : weight c * t v <= arrival v c.
Proof.
  assert (H := residual_nonneg v c). destruct c as [e|]; simpl; unfold E_P; lra.
Qed.

Notation node_item := (node_item M root G).
Notation leaf_item := (leaf_item M).

(* Finalized: a child is pushed with its own arrival.  Anchored: with the least that its parent's
   leaves it; its own is realised when it is popped. *)
Definition pushed (anchored : bool) (v : node) (c : child) : item M :=
  let tau := if anchored then weight c * t v else arrival v c in
  match c with Some e => node_item (e :: v) tau | None => leaf_item v tau end.
Definition pops (anchored : bool) (i : item M) (J : list (item M)) :=
  exists v tau, i = node_item v tau /\ J = map (pushed anchored v) (children v).

Lemma pops_covers anchored i J : pops anchored i J -> Permutation (covers M i) (flat_map (covers M) J).
Proof.
  intros [v [tau [-> ->]]]. cbn [node_item covers]. rewrite below_children.
  rewrite (flat_map_concat_map (covers M)), map_map, <- flat_map_concat_map.
  erewrite flat_map_ext; [reflexivity|]. intros [e|]; reflexivity.
Qed.

Lemma pops_bounds anchored i J : pops anchored i J -> forall j, In j J ->
  bounds M beta cost_low E_P j.
Proof.
  intros [v [tau [-> ->]]] j Hj. apply in_map_iff in Hj. destruct Hj as [c [<- Hc]].
  assert (Hh := coupled_hands_down v c). assert (Ht := t_pos v).
  assert (Hw : 0 < weight c * t v) by (destruct c; simpl; [apply Rmult_lt_0_compat; auto | lra]).
  unfold pushed. destruct c as [e|]; cbn [Search.arrival] in Hh.
  - apply node_bounds with (w := w) (r := r) (t := t); auto using coupled_hands_down.
    destruct anchored; simpl in *; lra.
  - apply leaf_bounds. destruct anchored; simpl in *; lra.
Qed.

Notation value := (value M beta E_P).
Notation steps anchored := (steps M beta E_P (pops anchored)).
Notation starts := (starts M root beta cost_low G t).
Notation every_plan := (every_plan M root).

(* T1 and T3: k plans are given, B* is the k-th value, no key left exceeds it: no other plan scores
   above B*, whatever it costs within the ranges that are known when the run stops. *)
Theorem coupled_run_wise anchored s s' k top B :
  (forall q, NoDup (map fst (edges M q))) -> starts s -> steps anchored s s' ->
  best M k (found M s') top -> length top = k ->
  In B (map snd top) -> (forall x, In x top -> B <= snd x)%Z ->
  (forall x, In x (frontier M s') -> snd x <= B)%Z ->
  NoDup (map (fun x => plan_of M (fst x)) top) /\
  forall c, within M s' c ->
    (forall P b, In (P, b) top -> In P every_plan /\ value c P = b) /\
    (forall P, In P every_plan -> ~ In P (map fst top) -> (value c P <= B)%Z).
Proof.
  intros C1 Hs Hrun Hbest Hk HB Hleast Hkeys.
  destruct (run_wise M root beta cost_low w r G beta_nonneg w_pos r_up G_stop G_step t E_P
    (fun v c _ _ => coupled_hands_down v c) (pops anchored) (pops_covers anchored) (pops_bounds anchored)
    (t_pos []) s s' k top B B C1 Hs Hrun Hbest Hk HB Hleast Hkeys) as [H1 H3].
  split; [exact H1|]. intros c Hc. destruct (H3 c Hc) as [H4 H5]. split; [exact H4|].
  intros P HP Hnot. specialize (H5 P HP Hnot). lia.
Qed.

End Coupled.
