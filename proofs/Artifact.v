(* From certificates to claims: over an artifact whose certificates hold, and with statements or a cut
   that the run enforces itself, both races are sound.
   docs/spec/artifact.md, sections 5 and 7; docs/spec/race.md, sections 3, 4, 8, 12 and 13. *)

From Coq Require Import List Arith Bool Reals ZArith Lia Lra Permutation.
From Tcc Require Import Automaton Certificates Enforced Rounding Search Coupled Rest.
Import ListNotations.
Local Open Scope R_scope.

Section Artifact.
Variable A : automaton.                                     (* C201 *)
Variable q0 : state A.
Variable state_eq : forall p q : state A, {p = q} + {p <> q}.
Hypothesis C1 : forall q, NoDup (map fst (edges A q)).

Variable beta : R.
Variable cost_low : call -> R.
Variables (F : nat) (W r : call -> Z).                    (* w = W / 2^F; r in Q31.32, rounded up *)
Definition w (a : call) : R := IZR (W a) / IZR (2 ^ Z.of_nat F).
Definition residual (a : call) : R := IZR (r a) / IZR (2 ^ 32).
Hypothesis beta_nonneg : 0 <= beta.
Hypothesis W_pos : forall a, (0 < W a)%Z.
Hypothesis r_up : forall a, - beta * cost_low a - ln (w a) <= residual a.

Variables (d : state A -> nat) (m ahead : state A -> Z).
Hypothesis C4 : forall q, (masses A F W d q (row A m q) <= m q)%Z.      (* exact: equal; upper: this *)
Hypothesis C6 : alive A.
(* What M(v) is above -beta*C(prefix), in Q31.32: `r2_ahead` and `r1_ahead` below. *)
Hypothesis ahead_stop : forall q, accept A q = true -> (0 <= ahead q)%Z.
Hypothesis ahead_step : forall q a p, In (a, p) (edges A q) -> (r a + ahead p <= ahead q)%Z.

(* The statements that the automaton leaves to the run (Enforced.v). *)
Variable held : Type.
Variable held_eq : forall h k : held, {h = k} + {h <> k}.
Variable start : held.
Variable see : held -> call -> option held.
Variable ends : held -> bool.
Notation entry := (entry A held see).
Notation enforced := (enforced A held see ends).
Notation enforced_distinct := (enforced_distinct A C1 held see ends).

Notation node := (node enforced).
Notation at_ := (at_ enforced (q0, start)).
Notation children := (children enforced (q0, start)).

Definition G (s : state enforced) : R := IZR (ahead (fst s)) / IZR (2 ^ 32).

Lemma G_stop s : accept enforced s = true -> 0 <= G s.
Proof.
  intros H. apply andb_true_iff in H. destruct H as [H _].
  apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, IZR_lt; lia].
  apply IZR_le, ahead_stop, H.
Qed.

Lemma G_step s a p : In (a, p) (edges enforced s) -> residual a + G p <= G s.
Proof.
  intros H. cbn [edges enforced] in H. apply in_some in H. destruct H as [[b q] [Hin E]].
  apply entry_call in E. destruct E as [E1 E2]. cbn [fst snd] in E1, E2. subst a q.
  unfold residual, G, Rdiv. rewrite <- Rmult_plus_distr_r, <- plus_IZR.
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, IZR_lt; lia|].
  apply IZR_le, ahead_step, Hin.
Qed.

Lemma w_pos a : 0 < w a.
Proof. apply Rdiv_lt_0_compat; apply IZR_lt; [apply W_pos | apply Z.pow_pos_nonneg; lia]. Qed.

(* Masses of the children, forbidden ones too, and the phantom mass, in units of m. *)
Definition pool (v : node) : pool_t enforced :=
  let (q, h) := at_ v in
  map (fun e => (mass A F W d q e (m (snd e)), option_map Some (entry h e))) (edges A q)
  ++ (if accept A q then [(unit F (d q), if ends h then Some None else None)] else []).
Definition phantom (v : node) : Z := (m (fst (at_ v)) - masses A F W d (fst (at_ v)) (row A m (fst (at_ v))))%Z.
Definition scale (v : node) : R := IZR (unit F (d (fst (at_ v)))).

Lemma pool_free v : free enforced (pool v) = children v.
Proof.
  unfold free, pool, Search.children. destruct (at_ v) as [q h]. rewrite flat_map_app. f_equal.
  - cbn [edges enforced fst snd]. unfold some. induction (edges A q) as [|e l IH]; [reflexivity|].
    cbn [map flat_map snd]. rewrite IH, map_app. destruct (entry h e); reflexivity.
  - cbn [accept enforced fst snd]. destruct (accept A q), (ends h); reflexivity.
Qed.

Lemma count_pos q : (0 < m q)%Z.
Proof. exact (counts_are_positive A F W W_pos d m C6 C4 q). Qed.

Lemma mass_pos v x : In x (pool v) -> (0 < fst x)%Z.
Proof.
  unfold pool. destruct (at_ v) as [q h]. rewrite in_app_iff, in_map_iff. intros [[e [<- _]] | H].
  - cbn [fst]. unfold mass. assert (H1 := W_pos (fst e)). assert (H2 := count_pos (snd e)).
    assert (H3 := unit_pos F (d q - 1 - d (snd e))). repeat apply Z.mul_pos_pos; assumption.
  - destruct (accept A q); [destruct H as [<- | []] | destruct H]. apply unit_pos.
Qed.

Lemma phantom_nonneg v : (0 <= phantom v)%Z.
Proof. unfold phantom. specialize (C4 (fst (at_ v))). lia. Qed.

(* What is left at first is the race count. *)
Lemma pool_total v : (Rest.total enforced (pool v) + phantom v)%Z = m (fst (at_ v)).
Proof.
  unfold phantom, pool, masses, row. destruct (at_ v) as [q h]. cbn [fst]. rewrite map_map. cbn [fst snd].
  enough (E : Rest.total enforced (map (fun e => (mass A F W d q e (m (snd e)), option_map Some (entry h e))) (edges A q)
       ++ (if accept A q then [(unit F (d q), if ends h then Some None else None)] else []))
    = (sum (map (fun e => mass A F W d q e (m (snd e))) (edges A q)) + (if accept A q then unit F (d q) else 0))%Z) by lia.
  induction (edges A q) as [|e l IH]; cbn [map app].
  - destruct (accept A q); cbn; lia.
  - change (Rest.total enforced (?x :: ?l)) with (fst x + Rest.total enforced l)%Z. cbn [Rest.total fold_right fst sum] in *.
    unfold Rest.total, sum in *. lia.
Qed.

Lemma scale_pos v : 0 < scale v.
Proof. apply IZR_lt, unit_pos. Qed.

Lemma root_count : (0 < Rest.total enforced (pool []) + phantom [])%Z.
Proof. rewrite pool_total. apply count_pos. Qed.

Definition both_eq : forall s u : state enforced, {s = u} + {s <> u}.
Proof. cbn. decide equality. Defined.

Variables (x_first : Z) (x_draw x_wait : node -> nat -> Z).
Hypothesis words : word x_first /\ (forall v i, word (x_draw v i)) /\ (forall v i, word (x_wait v i)).

(* Section 5: the winner is the first child with (2x + 1) m < 2^65 (running sum); a phantom or a
   forbidden child is None. *)
Variable x_residual : node -> child enforced -> Z.
Hypothesis residual_words : forall v c, word (x_residual v c).
Definition won (v : node) (c : child enforced) : bool :=
  match pick enforced ((2 * x_draw v 0 + 1) * m (fst (at_ v))) 0 (pool v) with
  | Some (Some c', _) => if same enforced both_eq (Some c') (Some c) then true else false
  | _ => false
  end.
Definition n (v : node) : R := IZR (m (fst (at_ v))) / scale v.

Lemma n_pos v : 0 < n v.
Proof. apply Rdiv_lt_0_compat; [apply IZR_lt, count_pos | apply scale_pos]. Qed.

Notation E_P' := (Coupled.E_P enforced w x_first x_residual won n).

Theorem artifact_coupled_run_wise anchored s s' k top B :
  starts enforced (q0, start) beta cost_low G (Coupled.t enforced w x_first x_residual won n) s ->
  steps enforced beta E_P' (Coupled.pops enforced (q0, start) w G x_first x_residual won n anchored) s s' ->
  best enforced k (found enforced s') top -> length top = k ->
  In B (map snd top) -> (forall x, In x top -> B <= snd x)%Z ->
  (forall x, In x (frontier enforced s') -> snd x <= B)%Z ->
  NoDup (map (fun x => plan_of enforced (fst x)) top) /\
  forall c, within enforced s' c ->
    (forall P b, In (P, b) top -> In P (every_plan enforced (q0, start)) /\ value enforced beta E_P' c P = b) /\
    (forall P, In P (every_plan enforced (q0, start)) -> ~ In P (map fst top) ->
      (value enforced beta E_P' c P <= B)%Z).
Proof.
  destruct words as [H1 _]. intros Hs.
  apply (coupled_run_wise enforced (q0, start) beta cost_low w residual G beta_nonneg w_pos r_up
    G_stop G_step x_first x_residual won n H1 residual_words n_pos anchored s s' k top B enforced_distinct Hs).
Qed.

Notation t := (Rest.t enforced both_eq w pool phantom scale x_first x_draw x_wait).
Notation E_P := (Rest.E_P enforced both_eq w pool phantom scale x_first x_draw x_wait).
Notation pops := (Rest.pops enforced (q0, start) both_eq w G pool phantom scale x_first x_draw x_wait).

Theorem artifact_rest_run_wise s s' k top B :
  starts enforced (q0, start) beta cost_low G t s -> steps enforced beta E_P pops s s' ->
  best enforced k (found enforced s') top -> length top = k ->
  In B (map snd top) -> (forall x, In x top -> B <= snd x)%Z ->
  (forall x, In x (frontier enforced s') -> snd x <= B)%Z ->
  NoDup (map (fun x => plan_of enforced (fst x)) top) /\
  forall c, within enforced s' c ->
    (forall P b, In (P, b) top -> In P (every_plan enforced (q0, start)) /\ value enforced beta E_P c P = b) /\
    (forall P, In P (every_plan enforced (q0, start)) -> ~ In P (map fst top) ->
      (value enforced beta E_P c P <= B)%Z).
Proof.
  destruct words as [H1 [H2 H3]].
  apply (rest_run_wise enforced (q0, start) both_eq beta cost_low w residual G beta_nonneg w_pos r_up
    G_stop G_step pool phantom scale pool_free mass_pos phantom_nonneg root_count scale_pos
    x_first x_draw x_wait H1 H2 H3 enforced_distinct).
Qed.

End Artifact.

(* Recipes r2 and r1 (race.md, section 8). *)
Theorem r2_ahead A r g : holds A (to_go A Z.max r) g -> forall q,
  (accept A q = true -> 0 <= g q)%Z /\ (forall a p, In (a, p) (edges A q) -> r a + g p <= g q)%Z.
Proof. apply C5_bounds_steps. Qed.

Theorem r1_ahead A (r : call -> Z) d envelope :
  (forall q a p, In (a, p) (edges A q) -> (d p < d q)%nat) -> (0 <= envelope)%Z ->
  (forall a, r a <= envelope)%Z -> forall q,
  (accept A q = true -> 0 <= Z.of_nat (d q) * envelope)%Z /\
  (forall a p, In (a, p) (edges A q) -> r a + Z.of_nat (d p) * envelope <= Z.of_nat (d q) * envelope)%Z.
Proof.
  intros Hd He Hr q. split; [nia|]. intros a p Hp. assert (H := Hd q a p Hp).
  specialize (Hr a). nia.
Qed.

