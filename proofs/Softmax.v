(* Independent exponentials draw by the softmax, without replacement; docs/spec/race.md, sections 1 and 6.

   V(P) = s(P) - ln E_P is greatest where E_P / e^s(P) is least, and that is exponential of rate e^s(P).
   Taken for granted: as in Law.v `mean n f` is the mean of f(X), X exponential of rate n, known on multiples
   of e^(-mu x) alone; and that X is above y with chance e^(-n y), and then by an exponential of its rate. *)

From Coq Require Import List Reals Lra.
Import ListNotations.
Local Open Scope R_scope.

Theorem greater_values_arrive_earlier s s' x x' : 0 < x -> 0 < x' ->
  (s' - ln x' < s - ln x <-> x / exp s < x' / exp s').
Proof.
  intros Hx Hx'. assert (P := exp_pos s). assert (P' := exp_pos s').
  assert (L : forall y z, 0 < y -> ln (y / exp z) = ln y - z).
  { intros y z Hy. unfold Rdiv. rewrite ln_mult; [|exact Hy | apply Rinv_0_lt_compat, exp_pos].
    rewrite <- exp_Ropp, ln_exp. lra. }
  assert (Q : forall y z, 0 < y -> 0 < y / exp z).
  { intros y z Hy. apply Rdiv_lt_0_compat; [exact Hy | apply exp_pos]. }
  split; intros H.
  - apply ln_lt_inv; [apply Q, Hx | apply Q, Hx' |]. rewrite !L by assumption. lra.
  - apply ln_increasing in H; [|apply Q, Hx]. rewrite !L in H by assumption. lra.
Qed.

Definition sum (l : list R) := fold_right Rplus 0 l.
Definition prod (l : list R) := fold_right Rmult 1 l.

Section Softmax.
Variable mean : R -> (R -> R) -> R.
Hypothesis mean_ext : forall n f g, (forall x, f x = g x) -> mean n f = mean n g.
Hypothesis mean_exp : forall n c mu, 0 < n -> 0 <= mu ->
  mean n (fun x => c * exp (- mu * x)) = c * (n / (n + mu)).

(* An exponential of rate 1, divided by n, has the means of one of rate n. *)
Theorem rates_are_scales n c mu : 0 < n -> 0 <= mu ->
  mean 1 (fun x => c * exp (- mu * (x / n))) = mean n (fun x => c * exp (- mu * x)).
Proof.
  intros Hn Hmu. assert (0 <= mu / n) by (apply Rmult_le_pos; [exact Hmu | apply Rlt_le, Rinv_0_lt_compat, Hn]).
  rewrite (mean_ext 1 _ (fun x => c * exp (- (mu / n) * x))).
  - rewrite !mean_exp by lra. field. lra.
  - intros x. do 2 f_equal. field. lra.
Qed.

(* The chance that of arrivals that are all later than y those of the rates in `ls` come first, in this order,
   and those in `others` after them; times the chance that they are later than y. *)
Fixpoint in_order (ls others : list R) (y : R) : R :=
  match ls with
  | [] => prod (map (fun n => exp (- n * y)) others)
  | n :: ls => exp (- n * y) * mean n (fun x => in_order ls others (y + x))
  end.

(* Drawn by the softmax, without replacement. *)
Fixpoint drawn (ls : list R) (others : R) : R :=
  match ls with [] => 1 | n :: ls => n / (n + sum ls + others) * drawn ls others end.

Lemma later others y : prod (map (fun n => exp (- n * y)) others) = exp (- sum others * y).
Proof.
  induction others as [|n l IH].
  - cbn. replace (- 0 * y) with 0 by ring. symmetry. apply exp_0.
  - cbn [map]. change (prod (?a :: ?b)) with (a * prod b). change (sum (n :: l)) with (n + sum l).
    rewrite IH, <- exp_plus. f_equal. ring.
Qed.

Lemma sum_nonneg l : (forall n, In n l -> 0 < n) -> 0 <= sum l.
Proof.
  induction l as [|n l IH]; intros H; [apply Rle_refl|]. change (sum (n :: l)) with (n + sum l).
  assert (0 < n) by (apply H; left; reflexivity). assert (0 <= sum l); [|lra]. apply IH. intros m Hm. apply H. right. exact Hm.
Qed.

Lemma in_order_drawn ls others : (forall n, In n ls -> 0 < n) -> (forall n, In n others -> 0 < n) -> forall y,
  in_order ls others y = drawn ls (sum others) * exp (- (sum ls + sum others) * y).
Proof.
  intros Hl Ho. assert (H0 := sum_nonneg others Ho).
  induction ls as [|n ls IH]; intros y; cbn [in_order drawn].
  - rewrite later. change (sum []) with 0. rewrite Rplus_0_l. ring.
  - assert (Hls : forall m, In m ls -> 0 < m) by (intros m Hm; apply Hl; right; exact Hm).
    assert (Hn : 0 < n) by (apply Hl; left; reflexivity). assert (H1 := sum_nonneg ls Hls).
    rewrite (mean_ext n _ (fun x => (drawn ls (sum others) * exp (- (sum ls + sum others) * y))
      * exp (- (sum ls + sum others) * x))).
    + rewrite mean_exp by lra. change (sum (n :: ls)) with (n + sum ls).
      replace (- (n + sum ls + sum others) * y) with (- n * y + - (sum ls + sum others) * y) by ring.
      rewrite exp_plus. field. lra.
    + intros x. rewrite (IH Hls).
      replace (- (sum ls + sum others) * (y + x)) with (- (sum ls + sum others) * y + - (sum ls + sum others) * x) by ring.
      rewrite exp_plus. ring.
Qed.

Theorem exponentials_draw_by_rate ls others : (forall n, In n ls -> 0 < n) -> (forall n, In n others -> 0 < n) ->
  in_order ls others 0 = drawn ls (sum others).
Proof. intros Hl Ho. rewrite (in_order_drawn ls others Hl Ho), Rmult_0_r, exp_0. ring. Qed.

(* The plan of greatest value, by scores s = -beta*C. *)
Theorem the_best_is_a_softmax_draw s others :
  in_order [exp s] (map exp others) 0 = exp s / sum (map exp (s :: others)).
Proof.
  rewrite exponentials_draw_by_rate.
  - cbn [drawn map]. change (sum (exp s :: ?l)) with (exp s + sum l). change (sum []) with 0.
    rewrite Rplus_0_r, Rmult_1_r. reflexivity.
  - intros n [<- | []]. apply exp_pos.
  - intros n H. apply in_map_iff in H. destruct H as [x [<- _]]. apply exp_pos.
Qed.

End Softmax.
