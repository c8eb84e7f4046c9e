(* Sessions over a file that passes: calls, each with what is known of it, gone through place by place.
   docs/spec/session.md, section 4, of grammars without observed parameters and without statements left to the run;
   outcomes that stay as they were recorded (no `resolve`).  Monitors, values and the chain are not looked at. *)

From Coq Require Import List Arith ZArith Lia Bool.
From Tcc Require Import Automaton Certificates Digest Prefix Session.
From Tcc.Checker Require Import Strings States Sound.
Import ListNotations.
Local Open Scope Z_scope.

Inductive known := Failed | Done | Unknown.
Definition place_z := option Z.                                (* None: nowhere *)

Definition leads_z {str} (t : Z -> option (row str)) (a : Z) (p : place_z) : place_z :=
  match p with
  | None => None
  | Some q => match t q with
              | None => None
              | Some r => match find (fun e => fst e =? a) (redges r) with Some e => Some (snd e) | None => None end
              end
  end.
Definition is_place (p q : place_z) : bool :=
  match p, q with Some p, Some q => p =? q | None, None => true | _, _ => false end.
Fixpoint with_new (held more : list place_z) : list place_z :=
  match more with [] => held | p :: more => with_new (if existsb (is_place p) held then held else p :: held) more end.
Definition step_z {str} (t : Z -> option (row str)) (a : Z) (k : known) (held : list place_z) : list place_z :=
  match k with
  | Failed => held
  | Done => with_new [] (map (leads_z t a) held)
  | Unknown => with_new held (map (leads_z t a) held)
  end.
Definition somewhere (p : place_z) : bool := match p with Some _ => true | None => false end.
Fixpoint goes {str} (t : Z -> option (row str)) (held : list place_z) (calls : list (Z * known)) : option (list place_z) :=
  match calls with
  | [] => Some held
  | (a, k) :: calls =>
      if (0 <=? a) && forallb (fun p => somewhere (leads_z t a p)) held then goes t (step_z t a k held) calls else None
  end.
(* The calls of a session conform; and, where it says that it ended, it may finish. *)
Definition conforms {str} (rows : list (row str)) (calls : list (Z * known)) (ended : bool) : bool :=
  let t := table rows in
  match goes t [Some (len rows 0 - 1)] calls with
  | None => false
  | Some held => negb ended || forallb (fun p => match p with Some q => match t q with Some r => raccept r | None => false end | None => false end) held
  end.

Lemma with_new_in more held p : In p (with_new held more) <-> In p held \/ In p more.
Proof.
  revert held. induction more as [|q more IH]; intros held; cbn [with_new]; [simpl; tauto|].
  rewrite IH. destruct (existsb (is_place q) held) eqn:E; simpl; [|tauto].
  apply existsb_exists in E. destruct E as [x [Hx E]].
  assert (q = x) as -> by (destruct q, x; simpl in E; try discriminate; [apply Z.eqb_eq in E; congruence | reflexivity]).
  split; [tauto | intros [K | [<- | K]]; auto].
Qed.

Section Sound.
Context {str : Type} (o : strings str) (H : bytes -> bytes).
Hypothesis strings_mean : mean o H.
Variables F room : Z.
Variable lines : list (line str).
Variable rows : list (row str).
Hypothesis ok : states_ok o F room lines rows = true.
Let D := columns o H strings_mean F room lines rows ok.
Let t := table rows.
Definition answers (o : call) : list call := [o].
Definition closed (o : call) := true.

Definition nat_place (p : place_z) : place D := match p with Some q => Some (Z.to_nat q) | None => None end.
Definition sound_place (p : place_z) := match p with Some q => 0 <= q < Z.of_nat (length rows) | None => True end.

Lemma rows_table z : t z = if z <? 0 then None else nth_error rows (Z.to_nat z).
Proof. reflexivity. Qed.

Lemma leads_z_spec a p : 0 <= a -> sound_place p ->
  nat_place (leads_z t a p) = leads D (nat_place p) (Z.to_nat a) /\ sound_place (leads_z t a p).
Proof.
  intros Ha Hp. destruct p as [q|]; [|split; [reflexivity | exact I]]. cbn [sound_place] in Hp.
  cbn [leads_z nat_place leads]. rewrite rows_table.
  replace (q <? 0) with false by (symmetry; apply Z.ltb_ge; lia).
  rewrite (row_inside o rows (Z.to_nat q)) by lia.
  assert (B := s_bounds o F lines rows _ (all_seen o H strings_mean F room lines rows ok (Z.to_nat q))).
  unfold follow. cbn [D edges columns]. revert B.
  induction (redges (row_of o rows (Z.to_nat q))) as [|e l IH]; intros B; cbn [find map]; [split; [reflexivity | exact I]|].
  inversion B as [|? ? Be Bl]; subst. unfold edge_of at 1. cbn [fst snd].
  replace (Nat.eqb (Z.to_nat (fst e)) (Z.to_nat a)) with (fst e =? a).
  2:{ destruct (Z.eqb_spec (fst e) a) as [-> | N]; symmetry; [apply Nat.eqb_refl | apply Nat.eqb_neq; lia]. }
  destruct (fst e =? a); [|exact (IH Bl)]. split; [reflexivity | cbn [sound_place]; lia].
Qed.

Definition outcome_of (a : Z) (k : known) : outcome :=
  match k with Failed => failed | Done => done (Z.to_nat a) | Unknown => unknown end.
Definition event (c : Z * known) : call * outcome := (Z.to_nat (fst c), outcome_of (fst c) (snd c)).
Notation held := (Session.held D (root rows) call answers closed).
Notation passed := (Session.passed D (root rows) call answers closed).

Definition same_places (l : list place_z) (h : history call) :=
  (forall p, In p (held h) <-> exists z, In z l /\ nat_place z = p) /\ Forall sound_place l.

Lemma step_same a k l h : 0 <= a -> same_places l h -> same_places (step_z t a k l) (event (a, k) :: h).
Proof.
  intros Ha [S B]. assert (L : forall z, In z l -> nat_place (leads_z t a z) = leads D (nat_place z) (Z.to_nat a) /\ sound_place (leads_z t a z)).
  { intros z Hz. rewrite Forall_forall in B. apply leads_z_spec; auto. }
  assert (M : forall p, In p (map (fun p => leads D p (Z.to_nat a)) (held h)) <-> exists z, In z (map (leads_z t a) l) /\ nat_place z = p).
  { intros p. rewrite in_map_iff. split.
    - intros [x [<- Hx]]. apply S in Hx. destruct Hx as [z [Hz <-]]. exists (leads_z t a z). split; [apply in_map, Hz | apply L, Hz].
    - intros [y [Hy <-]]. apply in_map_iff in Hy. destruct Hy as [z [<- Hz]]. exists (nat_place z).
      split; [symmetry; apply L, Hz | apply S; eauto]. }
  assert (B' : Forall sound_place (map (leads_z t a) l)).
  { rewrite Forall_forall. intros y Hy. apply in_map_iff in Hy. destruct Hy as [z [<- Hz]]. apply L, Hz. }
  unfold same_places. cbn [Session.held fold_right]. fold (held h). unfold step, event. cbn [fst snd]. destruct k; cbn [step_z outcome_of].
  - split; assumption.
  - split.
    + intros p. rewrite M. split; intros [z [Hz E]]; exists z; (split; [|exact E]).
      * apply with_new_in. right. exact Hz.
      * apply with_new_in in Hz. destruct Hz as [[] | Hz]. exact Hz.
    + rewrite Forall_forall in *. intros z Hz. apply with_new_in in Hz. destruct Hz as [[] | Hz]. auto.
  - unfold answers, closed. cbv beta iota. rewrite app_nil_r. split.
    + intros p. rewrite in_app_iff, S. rewrite flat_map_concat_map. cbn [map].
      assert (E : forall m, List.concat (map (fun p0 : place D => [leads D p0 (Z.to_nat a)]) m) = map (fun p0 => leads D p0 (Z.to_nat a)) m).
      { induction m as [|x m IH]; simpl; [reflexivity | rewrite IH; reflexivity]. }
      rewrite E, M. split.
      * intros [[z [Hz Ez]] | [z [Hz Ez]]]; exists z; (split; [|exact Ez]); apply with_new_in; auto.
      * intros [z [Hz Ez]]. apply with_new_in in Hz. destruct Hz as [Hz | Hz]; [left | right]; eauto.
    + rewrite Forall_forall in *. intros z Hz. apply with_new_in in Hz. destruct Hz; auto.
Qed.

Lemma same_known h : known_then call answers closed h h.
Proof. unfold known_then. induction h as [|c h IH]; constructor; [split; auto | exact IH]. Qed.

Lemma goes_passed calls : forall l h l', same_places l h -> passed h -> goes t l calls = Some l' ->
  passed (rev (map event calls) ++ h) /\ same_places l' (rev (map event calls) ++ h).
Proof.
  induction calls as [|[a k] calls IH]; intros l h l' S Hp E; cbn [goes map rev] in *.
  - injection E as <-. auto.
  - destruct ((0 <=? a) && forallb (fun p => somewhere (leads_z t a p)) l) eqn:G; [|discriminate].
    apply andb_prop in G. destruct G as [Ha G]. apply Z.leb_le in Ha. rewrite forallb_forall in G.
    rewrite <- app_assoc. cbn [app]. apply (IH _ _ _ (step_same a k l h Ha S)); [|exact E].
    unfold event. cbn [fst snd]. apply passed_call with h; [exact Hp | apply same_known | |].
    + intros p Hpl. apply S in Hpl. destruct Hpl as [z [Hz <-]]. exists (Z.to_nat a). split; [left; reflexivity|].
      destruct S as [_ B]. rewrite Forall_forall in B. rewrite <- (proj1 (leads_z_spec a z Ha (B z Hz))).
      specialize (G z Hz). destruct (leads_z t a z); [discriminate | discriminate G].
    + intros x. destruct k, x; cbn; auto; try tauto.
Qed.

(* Whatever happened to the calls of unknown outcome: what was done is a prefix of a plan; a plan, where it ended. *)
Theorem conforms_sound calls ended : conforms rows calls ended = true ->
  forall xs, resolves call answers closed (rev (map event calls)) xs ->
  (exists P, accepted D (root rows) (trace xs ++ P)) /\
  (ended = true -> accepted D (root rows) (trace xs)).
Proof.
  unfold conforms. cbv zeta. fold t. intros E xs Hx.
  destruct (goes t [Some (len rows 0 - 1)] calls) as [l|] eqn:G; [|discriminate].
  assert (R := proj1 (proj2 (proj2 (proj2 (proj2 (parts_ok o F room lines rows ok)))))).
  assert (0 < length rows)%nat by (destruct rows; [congruence | simpl; lia]).
  assert (S0 : same_places [Some (len rows 0 - 1)] []).
  { rewrite len_is. split; [|constructor; [cbn [sound_place]; lia | constructor]].
    intros p. cbn. unfold root. replace (Z.to_nat (Z.of_nat (length rows) - 1)) with (length rows - 1)%nat by lia.
    split; [intros [<- | []]; eexists; split; [left; reflexivity|] | intros [z [[<- | []] <-]]; left]; cbn [nat_place];
      repeat f_equal; lia. }
  destruct (goes_passed calls _ _ _ S0 (passed_nothing _ _ _ _ _) G) as [Hp S1]. rewrite app_nil_r in *.
  assert (C1 := C1_holds o H strings_mean F room lines rows ok). assert (A := alive_holds o H strings_mean F room lines rows ok).
  split.
  - apply (strict_sessions_stay_on_plans D C1 (root rows) call answers closed A _ Hp) in Hx; [exact Hx|].
    intros c _. apply (one_answer_is_strict D call answers closed) with (fst c); reflexivity.
  - intros ->. cbn [negb orb] in E. rewrite forallb_forall in E.
    apply (finished_is_a_plan D C1 (root rows) call answers closed (rev (map event calls))); [|exact Hx].
    intros p Hpl. apply S1 in Hpl. destruct Hpl as [z [Hz <-]]. specialize (E z Hz). destruct z as [q|]; [|discriminate].
    destruct S1 as [_ B]. rewrite Forall_forall in B. specialize (B _ Hz). cbn [sound_place] in B.
    exists (Z.to_nat q). split; [reflexivity|]. rewrite rows_table in E.
    replace (q <? 0) with false in E by (symmetry; apply Z.ltb_ge; lia).
    rewrite (row_inside o rows (Z.to_nat q)) in E by lia. exact E.
Qed.
End Sound.
