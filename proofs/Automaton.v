(* Acyclic automata, their paths and their plans.
   docs/spec/artifact.md, sections 2 and 5 (C1, C2).

   An automaton here need not be the automaton of an artifact: its states may be sets of states
   (race.md, section 4), or pairs of one and of what the statements that a run enforces itself have
   seen (race.md, section 12).  All that counts is that edges lead to lesser numbers. *)

From Coq Require Import List Arith Lia Permutation.
Import ListNotations.

Definition call := nat.

Record automaton := {
  state : Type;
  accept : state -> bool;                    (* a plan may stop here *)
  edges : state -> list (call * state);     (* the calls that lead on, in call order *)
  number : state -> nat;
  falls : forall q a p, In (a, p) (edges q) -> number p < number q         (* C201 *)
}.

Notation edge M := (call * state M)%type.

Section Automaton.
Variable M : automaton.
Notation state := (state M).
Notation accept := (accept M).
Notation edges := (edges M).
Notation number := (number M).

Lemma below_ind (P : state -> Prop) :
  (forall q, (forall a p, In (a, p) (edges q) -> P p) -> P q) -> forall q, P q.
Proof.
  intros step q.
  enough (H : forall n q, number q < n -> P q) by exact (H (S (number q)) q (Nat.lt_succ_diag_r _)).
  clear q. induction n as [|n IH]; intros q Hq; [lia|].
  apply step. intros a p Hp. apply IH. apply (falls M) in Hp. lia.
Qed.

(* The paths from a state to an end: lists of edges, the first call first. *)
Fixpoint paths_within (n : nat) (q : state) : list (list (edge M)) :=
  match n with
  | 0 => []
  | S n => flat_map (fun e => map (cons e) (paths_within n (snd e))) (edges q)
           ++ (if accept q then [[]] else [])
  end.

Definition paths (q : state) : list (list (edge M)) := paths_within (S (number q)) q.

Lemma flat_map_ext_in {A B} (f g : A -> list B) l :
  (forall x, In x l -> f x = g x) -> flat_map f l = flat_map g l.
Proof.
  induction l as [|x l IH]; intros H; simpl; [reflexivity|].
  rewrite H by (left; reflexivity). f_equal. apply IH. intros y Hy. apply H. right. exact Hy.
Qed.

Lemma paths_within_enough n : forall m q, number q < n -> number q < m ->
  paths_within n q = paths_within m q.
Proof.
  induction n as [|n IH]; intros [|m] q Hn Hm; try lia. simpl. f_equal.
  apply flat_map_ext_in. intros [a p] Hp. simpl. f_equal.
  apply (falls M) in Hp. apply IH; lia.
Qed.

Lemma paths_eq q :
  paths q = flat_map (fun e => map (cons e) (paths (snd e))) (edges q)
            ++ (if accept q then [[]] else []).
Proof.
  unfold paths at 1. simpl. f_equal. apply flat_map_ext_in. intros [a p] Hp. simpl. f_equal.
  apply (falls M) in Hp. unfold paths. apply paths_within_enough; lia.
Qed.

Lemma in_paths_nil q : In [] (paths q) <-> accept q = true.
Proof.
  rewrite paths_eq, in_app_iff, in_flat_map. split.
  - intros [[e [_ H]] | H].
    + apply in_map_iff in H. destruct H as [p [H _]]. discriminate.
    + destruct (accept q); [reflexivity | destruct H].
  - intros ->. right. left. reflexivity.
Qed.

Lemma in_paths_cons q e p : In (e :: p) (paths q) <-> In e (edges q) /\ In p (paths (snd e)).
Proof.
  rewrite paths_eq, in_app_iff, in_flat_map. split.
  - intros [[e' [He H]] | H].
    + apply in_map_iff in H. destruct H as [p' [H Hp]]. injection H as -> ->. auto.
    + destruct (accept q); simpl in H; [destruct H as [H | []]; discriminate | destruct H].
  - intros [He Hp]. left. exists e. split; [exact He|]. apply in_map. exact Hp.
Qed.

(* What a plan is: a sequence of calls that the automaton accepts. *)
Fixpoint accepted (q : state) (plan : list call) : Prop :=
  match plan with
  | [] => accept q = true
  | a :: plan => exists p, In (a, p) (edges q) /\ accepted p plan
  end.

Definition calls_of (path : list (edge M)) : list call := map fst path.
Definition plans (q : state) : list (list call) := map calls_of (paths q).

Theorem plans_are_the_accepted q plan : In plan (plans q) <-> accepted q plan.
Proof.
  unfold plans, calls_of. rewrite in_map_iff. revert q. induction plan as [|a plan IH]; intros q; simpl.
  - rewrite <- in_paths_nil. split.
    + intros [path [H Hin]]. destruct path; [exact Hin | discriminate].
    + intros H. exists []. auto.
  - split.
    + intros [path [H Hin]]. destruct path as [|[b p] path]; [discriminate|].
      simpl in H. injection H as -> H. apply in_paths_cons in Hin. destruct Hin as [He Hp].
      exists p. split; [exact He|]. apply IH. exists path. auto.
    + intros [p [He Hp]]. apply IH in Hp. destruct Hp as [path [H Hin]].
      exists ((a, p) :: path). simpl. rewrite H. split; [reflexivity|].
      apply in_paths_cons. auto.
Qed.

Lemma nodup_app {A} (l m : list A) :
  NoDup l -> NoDup m -> (forall x, In x l -> ~ In x m) -> NoDup (l ++ m).
Proof.
  induction l as [|x l IH]; intros Hl Hm H; simpl; [exact Hm|].
  inversion Hl as [|? ? Hx Hl']; subst. constructor.
  - rewrite in_app_iff. intros [Hin | Hin]; [exact (Hx Hin)|].
    apply (H x); [left; reflexivity | exact Hin].
  - apply IH; auto. intros y Hy. apply H. right. exact Hy.
Qed.

Lemma nodup_flat_map {A B} (f : A -> list B) l :
  NoDup l -> (forall x, In x l -> NoDup (f x)) ->
  (forall x y z, In x l -> In y l -> In z (f x) -> In z (f y) -> x = y) -> NoDup (flat_map f l).
Proof.
  induction l as [|x l IH]; intros Hl Hf Hd; simpl; [constructor|].
  inversion Hl as [|? ? Hx Hl']; subst. apply nodup_app.
  - apply Hf. left. reflexivity.
  - apply IH; auto. + intros y Hy. apply Hf. right. exact Hy.
    + intros y z b Hy Hz. apply Hd; right; assumption.
  - intros b Hb Hin. apply in_flat_map in Hin. destruct Hin as [y [Hy Hby]].
    apply Hx. rewrite (Hd x y b); auto; [left; reflexivity | right; exact Hy].
Qed.

(* Distinct pairs of call and target (artifact.md, section 7): no path is listed twice. *)
Theorem paths_distinct : (forall q, NoDup (edges q)) -> forall q, NoDup (paths q).
Proof.
  intros C1 q. induction q as [q IH] using below_ind. rewrite paths_eq. apply nodup_app.
  - apply nodup_flat_map; [apply C1| |].
    + intros [a p] He. apply FinFun.Injective_map_NoDup.
      * intros x y H. injection H. auto.
      * apply (IH a p He).
    + intros x y z _ _ Hx Hy. apply in_map_iff in Hx, Hy.
      destruct Hx as [u [<- _]], Hy as [u' [H _]]. injection H. auto.
  - destruct (accept q); [|constructor]. constructor; [intros []|constructor].
  - intros z Hz. apply in_flat_map in Hz. destruct Hz as [e [_ Hz]].
    apply in_map_iff in Hz. destruct Hz as [u [<- _]].
    destruct (accept q); simpl; [intros [H | []]; discriminate | auto].
Qed.

(* C1: the calls of a state are distinct, so no plan is listed twice. *)
Theorem plans_distinct : (forall q, NoDup (map fst (edges q))) -> forall q, NoDup (plans q).
Proof.
  intros C1 q. induction q as [q IH] using below_ind. unfold plans. rewrite paths_eq, map_app.
  apply nodup_app.
  - rewrite flat_map_concat_map, concat_map, map_map, <- flat_map_concat_map.
    apply nodup_flat_map.
    + apply NoDup_map_inv with (f := fst). apply C1.
    + intros [a p] He. specialize (IH a p He). unfold plans in IH. rewrite map_map. simpl.
      rewrite <- (map_map calls_of (cons a)). apply FinFun.Injective_map_NoDup; [|exact IH].
      intros x y H. injection H. auto.
    + intros [a p] [b p'] z Hx Hy H H'. apply in_map_iff in H, H'.
      destruct H as [u [<- Hu]], H' as [u' [H Hu']].
      apply in_map_iff in Hu, Hu'. destruct Hu as [v [<- _]], Hu' as [v' [<- _]].
      simpl in H. injection H as H _. subst b. f_equal.
      specialize (C1 q). revert C1 Hx Hy. clear. induction (edges q) as [|[c r] l IH]; simpl.
      * intros _ [].
      * intros C1 Hx Hy. inversion C1 as [|? ? Hc C1']; subst.
        destruct Hx as [Hx | Hx], Hy as [Hy | Hy].
        -- congruence.
        -- injection Hx as -> ->. exfalso. apply Hc. change a with (fst (a, p')).
           apply in_map. exact Hy.
        -- injection Hy as -> ->. exfalso. apply Hc. change a with (fst (a, p)).
           apply in_map. exact Hx.
        -- apply IH; assumption.
  - destruct (accept q); simpl; [|constructor]. constructor; [intros []|constructor].
  - intros z Hz. apply in_map_iff in Hz. destruct Hz as [w [<- Hw]].
    apply in_flat_map in Hw. destruct Hw as [e [_ Hw]].
    apply in_map_iff in Hw. destruct Hw as [u [<- _]].
    destruct (accept q); simpl; [intros [H | []]; discriminate | auto].
Qed.

End Automaton.
