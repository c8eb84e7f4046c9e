(* The fallback with realised LSE: which leaves it pops, which nodes it expands, how many leaves it
   makes in vain.  docs/errata.md, point 5.

   A leaf has a value V; a node is bounded by ub = ln of the sum of e^V over the leaves below it.
   Here both are compared by their exponentials, which are in the same order.  Nothing is assumed
   of values, of shapes, or of what comes first among equals. *)

From Coq Require Import List Reals Lia Lra Permutation Sorted.
Import ListNotations.
Local Open Scope R_scope.

Inductive tree := leaf (v : R) | node (children : list tree).

Fixpoint mass (t : tree) : R :=
  match t with
  | leaf v => exp v
  | node cs => fold_right (fun c sum => mass c + sum) 0 cs
  end.

Fixpoint leaves (t : tree) : list R :=
  match t with leaf v => [v] | node cs => flat_map leaves cs end.

Fixpoint parts (t : tree) : list tree :=
  t :: match t with leaf _ => [] | node cs => flat_map parts cs end.

Definition degree (t : tree) : nat := match t with leaf _ => 0 | node cs => length cs end.
Definition is_leaf (t : tree) : bool := match t with leaf _ => true | node _ => false end.
Definition sum_of (f : tree -> nat) (l : list tree) : nat := list_sum (map f l).

(* Induction over the children too. *)
Lemma tree_rose (P : tree -> Prop) :
  (forall v, P (leaf v)) -> (forall cs, (forall c, In c cs -> P c) -> P (node cs)) ->
  forall t, P t.
Proof.
  intros Hleaf Hnode. fix self 1. intros [v | cs]; [apply Hleaf|]. apply Hnode.
  induction cs as [|c cs IH]; intros d H; [destruct H|].
  destruct H as [<- | H]; [apply self | exact (IH d H)].
Qed.

Lemma mass_nonneg t : 0 <= mass t.
Proof.
  induction t as [v | cs IH] using tree_rose; simpl; [left; apply exp_pos|].
  induction cs as [|c cs IHcs]; simpl; [lra|].
  assert (0 <= mass c) by (apply IH; left; reflexivity).
  assert (0 <= fold_right (fun c sum => mass c + sum) 0 cs) by
    (apply IHcs; intros d H'; apply IH; right; exact H').
  lra.
Qed.

Lemma child_below cs c : In c cs -> mass c <= mass (node cs).
Proof.
  induction cs as [|d cs IH]; intros H; [destruct H|].
  change (mass (node (d :: cs))) with (mass d + mass (node cs)).
  pose proof (mass_nonneg d). pose proof (mass_nonneg (node cs)).
  destruct H as [-> | H]; [lra | specialize (IH H); lra].
Qed.

(* ub does not rise along a path. *)
Lemma part_below t p : In p (parts t) -> mass p <= mass t.
Proof.
  revert p. induction t as [v | cs IH] using tree_rose; intros p H.
  - destruct H as [<- | []]. lra.
  - destruct H as [<- | H]; [lra|]. apply in_flat_map in H as [c [Hc Hp]].
    pose proof (IH c Hc p Hp). pose proof (child_below cs c Hc). lra.
Qed.

Lemma leaf_below t v : In v (leaves t) -> exp v <= mass t.
Proof.
  revert v. induction t as [w | cs IH] using tree_rose; intros v H.
  - destruct H as [<- | []]. simpl. lra.
  - apply in_flat_map in H as [c [Hc Hv]].
    pose proof (IH c Hc v Hv). pose proof (child_below cs c Hc). lra.
Qed.

(* What has been popped, best first: the queue, the values of the leaves in their order, the nodes. *)
Inductive search (t : tree) : list tree -> list R -> list tree -> Prop :=
| begins : search t [t] [] []
| pops q v r P X : search t (q ++ leaf v :: r) P X ->
    (forall u, In u (q ++ r) -> mass u <= exp v) -> search t (q ++ r) (P ++ [v]) X
| expands q cs r P X : search t (q ++ node cs :: r) P X ->
    (forall u, In u (q ++ r) -> mass u <= mass (node cs)) ->
    search t (q ++ cs ++ r) P (X ++ [node cs]).

Lemma in_middle {A} (x a : A) q r : In x (q ++ a :: r) <-> x = a \/ In x (q ++ r).
Proof. rewrite !in_app_iff. simpl. intuition. Qed.

(* Every leaf is popped, or below something that is left. *)
Theorem leaves_are_kept t q P X :
  search t q P X -> Permutation (leaves t) (P ++ flat_map leaves q).
Proof.
  induction 1 as [| q v r P X _ IH _ | q cs r P X _ IH _].
  - simpl. rewrite app_nil_r. reflexivity.
  - rewrite IH, !flat_map_app. simpl. rewrite <- app_assoc. apply Permutation_app_head.
    simpl. symmetry. apply Permutation_middle.
  - rewrite IH, !flat_map_app. simpl. reflexivity.
Qed.

Lemma queue_is_below t q P X : search t q P X ->
  (forall u v, In u q -> In v P -> mass u <= exp v) /\
  (forall u x, In u q -> In x X -> mass u <= mass x).
Proof.
  induction 1 as [| q v r P X _ [IHP IHX] Hmost | q cs r P X _ [IHP IHX] Hmost].
  - split; intros u x _ [].
  - split; intros u x Hu Hx.
    + apply in_app_iff in Hx as [Hx | [<- | []]]; [apply IHP; auto | apply Hmost; exact Hu].
      apply in_middle. right. exact Hu.
    + apply IHX; [apply in_middle; right|]; assumption.
  - assert (Hq : forall u, In u (q ++ cs ++ r) -> mass u <= mass (node cs)).
    { intros u Hu. rewrite !in_app_iff in Hu. destruct Hu as [Hu | [Hu | Hu]];
        [apply Hmost; apply in_app_iff; auto | apply child_below; exact Hu |
         apply Hmost; apply in_app_iff; auto]. }
    assert (Hnode : In (node cs) (q ++ node cs :: r)) by (apply in_middle; left; reflexivity).
    split; intros u x Hu Hx; specialize (Hq u Hu).
    + specialize (IHP _ _ Hnode Hx). lra.
    + apply in_app_iff in Hx as [Hx | [<- | []]]; [|exact Hq]. specialize (IHX _ _ Hnode Hx). lra.
Qed.

Lemma exp_le_back x y : exp x <= exp y -> x <= y.
Proof. intros [H | H]; [left; apply exp_lt_inv; exact H | right; apply exp_inv; exact H]. Qed.

(* (i): the leaves popped come in order, and none that is left has a greater value. *)
Theorem popped_are_the_best t q P X : search t q P X ->
  StronglySorted (fun v w => w <= v) P /\
  (forall v w, In v P -> In w (flat_map leaves q) -> w <= v).
Proof.
  intros H. split.
  - induction H as [| q v r P X H IH _ | q cs r P X _ IH _]; [constructor | | exact IH].
    pose proof (proj1 (queue_is_below _ _ _ _ H)) as Hbelow.
    assert (Hv : forall w, In w P -> v <= w).
    { intros w Hw. apply exp_le_back. apply (Hbelow (leaf v) w); [|exact Hw].
      apply in_middle. left. reflexivity. }
    clear H Hbelow. induction P as [|a P IHP]; simpl; [repeat constructor|].
    inversion IH as [|? ? Hs Ha]; subst. constructor.
    + apply IHP; [exact Hs | intros w Hw; apply Hv; right; exact Hw].
    + apply Forall_app. split; [exact Ha|].
      constructor; [apply Hv; left; reflexivity | constructor].
  - intros v w Hv Hw. apply in_flat_map in Hw as [u [Hu Hw]]. apply exp_le_back.
    pose proof (leaf_below u w Hw). pose proof (proj1 (queue_is_below _ _ _ _ H) u v Hu Hv). lra.
Qed.

(* (ii): when a leaf is popped, every node expanded has at least its value for a bound, and
   everything that is left, to the last part of it, at most. *)
Theorem expanded_are_those_above t q v r P X : search t (q ++ leaf v :: r) P X ->
  (forall u, In u (q ++ r) -> mass u <= exp v) ->
  (forall x, In x X -> exp v <= mass x) /\
  (forall u p, In u (q ++ r) -> In p (parts u) -> mass p <= exp v).
Proof.
  intros H Hmost. split.
  - intros x Hx. apply (proj2 (queue_is_below _ _ _ _ H) (leaf v) x); [|exact Hx].
    apply in_middle. left. reflexivity.
  - intros u p Hu Hp. pose proof (part_below u p Hp). specialize (Hmost u Hu). lra.
Qed.

(* (iii): the edges out of the nodes expanded, each counted once at its lower end. *)
Definition made_in_vain (q : list tree) : nat := length (filter is_leaf q).
Definition inner_left (q : list tree) : nat := length (filter (fun t => negb (is_leaf t)) q).

Lemma queue_counts q : length q = (made_in_vain q + inner_left q)%nat.
Proof.
  unfold made_in_vain, inner_left. induction q as [|[v | cs] q IH]; simpl; lia.
Qed.

Theorem edges_are_counted t q P X : search t q P X ->
  (length X + inner_left q + made_in_vain q + length P = 1 + sum_of degree X)%nat.
Proof.
  assert (Hadd : forall l x, sum_of degree (l ++ [x]) = (sum_of degree l + degree x)%nat).
  { intros l x. unfold sum_of. rewrite map_app, list_sum_app. simpl. lia. }
  intros H. rewrite <- (Nat.add_assoc (length X)), (Nat.add_comm (inner_left q)), <- queue_counts.
  induction H as [| q v r P X _ IH _ | q cs r P X _ IH _].
  - reflexivity.
  - rewrite !app_length in *. simpl in *. lia.
  - rewrite Hadd, !app_length in *. simpl in *. lia.
Qed.

Theorem work_bound t q P X b : search t q P X -> (forall x, In x X -> degree x <= b)%nat ->
  (made_in_vain q + length P + length X <= 1 + b * length X)%nat.
Proof.
  intros H Hb. pose proof (edges_are_counted _ _ _ _ H) as Hsum.
  assert (sum_of degree X <= b * length X)%nat.
  { clear H Hsum. unfold sum_of. induction X as [|x X IH]; simpl; [lia|].
    assert (degree x <= b)%nat by (apply Hb; left; reflexivity).
    assert (list_sum (map degree X) <= b * length X)%nat by
      (apply IH; intros y Hy; apply Hb; right; exact Hy).
    lia. }
  lia.
Qed.
