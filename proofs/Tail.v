(* The tail of a cut: the sum over plans of more than K calls, level by level.
   docs/spec/race.md, section 13; docs/spec/ledger.md, section 8 (L611).

   What is shown is that the levels add up to that sum, each step either open, dropped or multiplied by the
   sum over all that may follow; rounding is not a part of this. *)

From Coq Require Import List Arith Reals Lra Lia Permutation.
From Tcc Require Import Automaton Certificates.
Import ListNotations.
Local Open Scope R_scope.

Section Tail.
Variable A : automaton.
Variable w : call -> R.                                  (* e^(-beta cost_low) *)
Variables rank fewest : state A -> nat.
Hypothesis rank_most : forall q P, In P (paths A q) -> (length P <= rank q)%nat.
Hypothesis fewest_least : forall q P, In P (paths A q) -> (fewest q <= length P)%nat.
Variable K : nat.

Definition sum (l : list R) := fold_right Rplus 0 l.
Definition weight (P : list (edge A)) : R := fold_right (fun e z => w (fst e) * z) 1 P.
Definition total (l : list (list (edge A))) := sum (map weight l).

(* Of the plans below q those of more than K calls, where `made` were made before q. *)
Definition longer (made : nat) q := total (filter (fun P => K <? made + length P) (paths A q)).
Definition below q := total (paths A q).

Lemma sum_app l m : sum (l ++ m) = sum l + sum m.
Proof.
  induction l as [|x l IH]; [unfold sum; simpl; lra|].
  change (x + sum (l ++ m) = x + sum l + sum m). rewrite IH. lra.
Qed.

Lemma total_app l m : total (l ++ m) = total l + total m.
Proof. unfold total. rewrite map_app. apply sum_app. Qed.

Lemma total_cons e l : total (map (cons e) l) = w (fst e) * total l.
Proof.
  unfold total. rewrite map_map. induction l as [|P l IH]; [unfold sum; simpl; lra|].
  cbn [map]. change (sum (?a :: ?b)) with (a + sum b). rewrite IH.
  change (weight (e :: P)) with (w (fst e) * weight P). lra.
Qed.

Lemma filter_map {X Y} (f : Y -> bool) (g : X -> Y) l : filter f (map g l) = map g (filter (fun x => f (g x)) l).
Proof. induction l as [|x l IH]; simpl; [reflexivity|]. rewrite IH. destruct (f (g x)); reflexivity. Qed.

Lemma filter_none {X} (f : X -> bool) l : (forall x, In x l -> f x = false) -> filter f l = [].
Proof.
  induction l as [|x l IH]; intros H; simpl; [reflexivity|]. rewrite (H x (or_introl eq_refl)).
  apply IH. intros y Hy. apply H. right. exact Hy.
Qed.

Lemma filter_all {X} (f : X -> bool) l : (forall x, In x l -> f x = true) -> filter f l = l.
Proof.
  induction l as [|x l IH]; intros H; simpl; [reflexivity|]. rewrite (H x (or_introl eq_refl)). f_equal.
  apply IH. intros y Hy. apply H. right. exact Hy.
Qed.

(* tail.py, `_total`: a step that no longer plan takes, one after which all plans are longer, an open one. *)
Theorem dropped_step made q : (made + rank q <= K)%nat -> longer made q = 0.
Proof.
  intros H. unfold longer. rewrite filter_none; [reflexivity|]. intros P HP. apply Nat.ltb_ge.
  apply rank_most in HP. lia.
Qed.

Theorem whole_step made q : (K < made + fewest q)%nat -> longer made q = below q.
Proof.
  intros H. unfold longer. rewrite filter_all; [reflexivity|]. intros P HP. apply Nat.ltb_lt.
  apply fewest_least in HP. lia.
Qed.

Theorem open_step made q : (made <= K)%nat ->
  longer made q = sum (map (fun e => w (fst e) * longer (S made) (snd e)) (edges A q)).
Proof.
  intros Hm. unfold longer at 1. rewrite paths_eq, filter_app, total_app.
  assert (E : filter (fun P : list (edge A) => K <? made + length P)%nat (if accept A q then [[]] else []) = []).
  { destruct (accept A q); [|reflexivity]. simpl. destruct (Nat.ltb_spec K (made + 0)); [lia | reflexivity]. }
  rewrite E. unfold total at 2. cbn [map sum fold_right]. rewrite Rplus_0_r.
  induction (edges A q) as [|e l IH]; [reflexivity|]. cbn [flat_map map]. rewrite filter_app, total_app, IH.
  cbn [sum fold_right]. f_equal. rewrite filter_map, total_cons. f_equal. unfold longer. apply (f_equal total).
  apply filter_ext. intros P. cbn [length]. rewrite Nat.add_succ_r. reflexivity.
Qed.

(* A level: states with the sums over the prefixes of so many calls that lead to them. *)
Definition level := list (state A * R).
Definition steps_of (s : state A * R) : level := map (fun e => (snd e, snd s * w (fst e))) (edges A (fst s)).
Definition step (made : nat) (L : level) : level * R :=
  let next := flat_map steps_of L in
  let open := filter (fun s => K <? S made + rank (fst s))%nat next in
  (filter (fun s => S made + fewest (fst s) <=? K)%nat open,
   sum (map (fun s => snd s * below (fst s)) (filter (fun s => K <? S made + fewest (fst s))%nat open))).
(* Those of one state are one: their sums are added. *)
Inductive merges : level -> level -> Prop :=
| same L L' : Permutation L L' -> merges L L'
| two q x y L L' : merges ((q, x + y) :: L) L' -> merges ((q, x) :: (q, y) :: L) L'
| then_ L L' L'' : merges L L' -> merges L' L'' -> merges L L''.

Inductive levels : nat -> level -> R -> Prop :=
| end_ made : levels made [] 0
| level_ made L L' x : merges (fst (step made L)) L' -> levels (S made) L' x ->
    levels made L (snd (step made L) + x).

Definition due (made : nat) (L : level) := sum (map (fun s => snd s * longer made (fst s)) L).

Lemma sum_perm l m : Permutation l m -> sum l = sum m.
Proof. unfold sum. induction 1; simpl; lra. Qed.

Lemma due_merged made L L' : merges L L' -> due made L = due made L'.
Proof.
  induction 1 as [L L' H | q x y L L' _ IH | L L' L'' _ IH1 _ IH2]; unfold due in *.
  - apply sum_perm, Permutation_map, H.
  - rewrite <- IH. cbn [map sum fold_right fst snd]. lra.
  - rewrite IH1. exact IH2.
Qed.

Lemma due_step made L : (made <= K)%nat -> due made L = snd (step made L) + due (S made) (fst (step made L)).
Proof.
  intros Hm. transitivity (due (S made) (flat_map steps_of L)).
  - unfold due. induction L as [|[q x] L IH]; [reflexivity|].
    cbn [flat_map map fst snd]. change (sum (?a :: ?b)) with (a + sum b). rewrite IH, map_app, sum_app. f_equal.
    rewrite (open_step made q Hm). unfold steps_of. cbn [fst snd]. rewrite map_map. cbn [fst snd].
    induction (edges A q) as [|e l IHl]; cbn [map]; [unfold sum; simpl; lra|].
    change (sum (?a :: ?b)) with (a + sum b). rewrite <- IHl. lra.
  - unfold step. cbn [fst snd]. unfold due. induction (flat_map steps_of L) as [|[q x] N IH]; [unfold sum; simpl; lra|].
    cbn [map filter fst snd]. change (sum (?a :: ?b)) with (a + sum b). rewrite IH.
    destruct (Nat.ltb_spec K (S made + rank q)) as [H | H]; cbn [filter fst].
    + destruct (Nat.ltb_spec K (S made + fewest q)) as [H' | H']; destruct (Nat.leb_spec (S made + fewest q) K);
        try lia; cbn [map fst snd]; change (sum (?a :: ?b)) with (a + sum b).
      * rewrite (whole_step (S made) q H'). lra.
      * lra.
    + rewrite (dropped_step (S made) q H). lra.
Qed.

Lemma merges_nothing L L' : merges L L' -> L = [] -> L' = [].
Proof.
  induction 1 as [L L' H | q x y L L' _ _ | L L' L'' _ IH1 _ IH2]; intros E.
  - subst L. apply Permutation_nil, H.
  - discriminate.
  - auto.
Qed.

(* A state that is still open has fewer than K calls behind it or K. *)
Lemma levels_due made L x : levels made L x -> (L <> [] -> (made <= K)%nat) -> x = due made L.
Proof.
  induction 1 as [made | made L L' x Hmerge Hlev IH]; intros Hm; [reflexivity|].
  destruct L as [|s L].
  - cbn in Hmerge. rewrite (merges_nothing _ _ Hmerge eq_refl) in *. rewrite IH by congruence. unfold due. cbn. lra.
  - specialize (Hm ltac:(discriminate)). rewrite (due_step made (s :: L) Hm), (due_merged _ _ _ Hmerge). f_equal.
    apply IH. intros Hne.
    destruct (fst (step made (s :: L))) as [|[q y] N] eqn:E.
    + exfalso. exact (Hne (merges_nothing _ _ Hmerge eq_refl)).
    + assert (Hin : In (q, y) (fst (step made (s :: L)))) by (rewrite E; left; reflexivity).
      unfold step in Hin. cbn [fst] in Hin. apply filter_In in Hin. destruct Hin as [_ Hin].
      apply Nat.leb_le in Hin. cbn [fst] in Hin. lia.
Qed.

(* From the root of a run, or the states that it begins at, the levels add up to the plans of more than K
   calls: derivations, where the automaton is nondeterministic. *)
Theorem levels_are_the_tail roots x : levels 0 (map (fun q => (q, 1)) roots) x ->
  x = total (filter (fun P => K <? length P)%nat (flat_map (paths A) roots)).
Proof.
  intros H. rewrite (levels_due 0 _ x H) by lia. unfold due. rewrite map_map. cbn [fst snd].
  induction roots as [|q roots IH]; [reflexivity|].
  assert (L : forall qs, sum (map (fun q => 1 * longer 0 q) qs) =
    total (filter (fun P => K <? length P)%nat (flat_map (paths A) qs))).
  { clear. induction qs as [|q qs IH]; [reflexivity|]. cbn [map flat_map]. rewrite filter_app, total_app, <- IH.
    change (sum (?a :: ?b)) with (a + sum b). unfold longer at 1. cbn [Nat.add]. lra. }
  apply L.
Qed.

End Tail.
