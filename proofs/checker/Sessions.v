(* Sessions over a file that passes: calls, each with what is known of it, gone through place by place.
   docs/spec/session.md, section 4, of grammars without statements left to the run; outcomes that stay as they were
   recorded (no `resolve`).  No more than 64 places are held.  Monitors, values and the chain are not looked at. *)

From Coq Require Import List Arith ZArith Lia Bool.
From Tcc Require Import Automaton Certificates Digest Prefix Session.
From Tcc.Checker Require Import Strings States Sound.
Import ListNotations.
Local Open Scope Z_scope.

(* A call as its caller chooses it: the calls of the artifact that it may turn out to be, and whether there are no others. *)
Definition offer_z := (list Z * bool)%type.
Inductive known := Failed | Done (a : Z) | Lost | Unknown.     (* Lost: done, with an answer that is no call *)
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
Definition everywhere {str} (t : Z -> option (row str)) (o : offer_z) (p : place_z) : list place_z :=
  map (fun a => leads_z t a p) (fst o) ++ (if snd o then [] else [None]).
Definition step_z {str} (t : Z -> option (row str)) (o : offer_z) (k : known) (held : list place_z) : list place_z :=
  match k with
  | Failed => held
  | Done a => with_new [] (map (leads_z t a) held)
  | Lost => with_new [] (map (fun _ => None) held)
  | Unknown => with_new held (flat_map (everywhere t o) held)
  end.
Definition may_be (o : offer_z) (k : known) : bool :=
  match k with Done a => existsb (Z.eqb a) (fst o) | Lost => negb (snd o) | _ => true end.
Definition somewhere (p : place_z) : bool := match p with Some _ => true | None => false end.
(* Places that there may be once a call is made: 64 at most, or it is not made. *)
Definition few (held : list place_z) : bool := len held 0 <=? 64.
Fixpoint goes {str} (t : Z -> option (row str)) (held : list place_z) (calls : list (offer_z * known)) : option (list place_z) :=
  match calls with
  | [] => Some held
  | (o, k) :: calls =>
      if forallb (Z.leb 0) (fst o) && forallb (fun p => existsb (fun a => somewhere (leads_z t a p)) (fst o)) held &&
         few (step_z t o Unknown held) && may_be o k
      then goes t (step_z t o k held) calls else None
  end.
(* The calls of a session conform; and, where it says that it ended, it may finish. *)
Definition conforms {str} (rows : list (row str)) (calls : list (offer_z * known)) (ended : bool) : bool :=
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
Variables (F : Z) (how : counting).
Variable lines : list (line str).
Variable rows : list (row str).
Hypothesis ok : states_ok o F how lines rows = true.
Hypothesis deterministic : many how = false.
Let D := columns o H strings_mean F how lines rows ok.
Let t := table rows.
Definition answers (o : offer_z) : list call := map Z.to_nat (fst o).
Definition closed (o : offer_z) := snd o.

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
  assert (B := s_bounds o F how lines rows _ (all_seen o H strings_mean F how lines rows ok (Z.to_nat q))).
  unfold follow. cbn [D edges columns]. rewrite laid_same in * by exact deterministic. revert B.
  induction (redges (row_of o rows (Z.to_nat q))) as [|e l IH]; intros B; cbn [find map]; [split; [reflexivity | exact I]|].
  inversion B as [|? ? Be Bl]; subst. unfold edge_of at 1. cbn [fst snd].
  replace (Nat.eqb (Z.to_nat (fst e)) (Z.to_nat a)) with (fst e =? a).
  2:{ destruct (Z.eqb_spec (fst e) a) as [-> | N]; symmetry; [apply Nat.eqb_refl | apply Nat.eqb_neq; lia]. }
  destruct (fst e =? a); [|exact (IH Bl)]. split; [reflexivity | cbn [sound_place]; lia].
Qed.

Definition outcome_of (k : known) : outcome :=
  match k with Failed => failed | Done a => done (Z.to_nat a) | Lost => lost | Unknown => unknown end.
Definition event (c : offer_z * known) : offer_z * outcome := (fst c, outcome_of (snd c)).
Notation held := (Session.held D (root rows) offer_z answers closed).
Notation passed := (Session.passed D (root rows) offer_z answers closed).

Definition same_places (l : list place_z) (h : history offer_z) :=
  (forall p, In p (held h) <-> exists z, In z l /\ nat_place z = p) /\ Forall sound_place l.

Lemma images f g l h : same_places l h ->
  (forall z, sound_place z -> map nat_place (f z) = g (nat_place z) /\ Forall sound_place (f z)) ->
  (forall p, In p (flat_map g (held h)) <-> exists z, In z (flat_map f l) /\ nat_place z = p) /\
  Forall sound_place (flat_map f l).
Proof.
  intros [S B] E. rewrite Forall_forall in B. split.
  - intros p. rewrite in_flat_map. split.
    + intros [x [Hx Hp]]. apply S in Hx. destruct Hx as [z [Hz <-]]. rewrite <- (proj1 (E z (B z Hz))) in Hp.
      apply in_map_iff in Hp. destruct Hp as [y [<- Hy]]. exists y. split; [|reflexivity]. apply in_flat_map. eauto.
    + intros [y [Hy <-]]. apply in_flat_map in Hy. destruct Hy as [z [Hz Hy]]. exists (nat_place z).
      split; [apply S; eauto|]. rewrite <- (proj1 (E z (B z Hz))). apply in_map, Hy.
  - apply Forall_forall. intros y Hy. apply in_flat_map in Hy. destruct Hy as [z [Hz Hy]].
    assert (Q := proj2 (E z (B z Hz))). rewrite Forall_forall in Q. auto.
Qed.
Lemma one_each {A B} (f : A -> B) l : map f l = flat_map (fun x => [f x]) l.
Proof. induction l as [|x l IH]; simpl; [reflexivity | rewrite IH; reflexivity]. Qed.
Lemma held_everywhere w m p :
  In p (flat_map (fun p => map (leads D p) (answers w)) m ++ (if closed w then [] else map (fun _ => None) m)) <->
  In p (flat_map (fun p => map (leads D p) (answers w) ++ (if closed w then [] else [None])) m).
Proof.
  rewrite in_app_iff, !in_flat_map. split.
  - intros [[x [Hx Hp]] | Hp].
    + exists x. split; [exact Hx | apply in_app_iff; auto].
    + destruct (closed w); [destruct Hp|]. apply in_map_iff in Hp. destruct Hp as [x [<- Hx]].
      exists x. split; [exact Hx | apply in_app_iff; right; left; reflexivity].
  - intros [x [Hx Hp]]. apply in_app_iff in Hp. destruct Hp as [Hp | Hp]; [left; eauto | right].
    destruct (closed w); [destruct Hp|]. destruct Hp as [<- | []]. apply in_map_iff. eauto.
Qed.

Lemma step_same w k l h : Forall (fun a => 0 <= a) (fst w) -> may_be w k = true -> same_places l h ->
  same_places (step_z t w k l) (event (w, k) :: h).
Proof.
  intros Ha Hk S. destruct S as [S B]. assert (S0 : same_places l h) by (split; assumption).
  unfold same_places. cbn [Session.held fold_right]. fold (held h). unfold step, event. cbn [fst snd].
  rewrite Forall_forall in Ha. destruct k as [|a| |]; cbn [step_z outcome_of].
  - split; assumption.
  - assert (A : 0 <= a) by (cbn [may_be] in Hk; apply existsb_exists in Hk; destruct Hk as [b [Hb E]]; apply Z.eqb_eq in E; subst b; auto).
    rewrite !one_each. destruct (images (fun z => [leads_z t a z]) (fun p => [leads D p (Z.to_nat a)]) l h S0) as [I1 I2].
    { intros z Hz. destruct (leads_z_spec a z A Hz) as [E1 E2]. split; [simpl; rewrite E1; reflexivity | repeat constructor; exact E2]. }
    split.
    + intros p. rewrite I1. split.
      * intros [z [Hz E]]. exists z. split; [apply with_new_in; right; exact Hz | exact E].
      * intros [z [Hz E]]. apply with_new_in in Hz. destruct Hz as [[] | Hz]. exists z. auto.
    + rewrite Forall_forall in *. intros z Hz. apply with_new_in in Hz. destruct Hz as [[] | Hz]. auto.
  - rewrite !one_each. destruct (images (fun z => [None]) (fun p => [None]) l h S0) as [I1 I2].
    { intros z Hz. split; [reflexivity | repeat constructor]. }
    split.
    + intros p. rewrite I1. split.
      * intros [z [Hz E]]. exists z. split; [apply with_new_in; right; exact Hz | exact E].
      * intros [z [Hz E]]. apply with_new_in in Hz. destruct Hz as [[] | Hz]. exists z. auto.
    + rewrite Forall_forall in *. intros z Hz. apply with_new_in in Hz. destruct Hz as [[] | Hz]. auto.
  - destruct (images (everywhere t w) (fun p => map (leads D p) (answers w) ++ (if closed w then [] else [None])) l h S0) as [I1 I2].
    { intros z Hz. unfold everywhere, answers, closed. rewrite map_app, !map_map. split.
      - f_equal; [|destruct (snd w); reflexivity]. apply map_ext_in. intros a Hin. apply leads_z_spec; auto.
      - apply Forall_app. split; [|destruct (snd w); repeat constructor].
        apply Forall_forall. intros y Hy. apply in_map_iff in Hy. destruct Hy as [a [<- Hin]]. apply leads_z_spec; auto. }
    split.
    + intros p. rewrite in_app_iff, held_everywhere, I1, S. split.
      * intros [[z [Hz E]] | [z [Hz E]]]; exists z; (split; [|exact E]); apply with_new_in; auto.
      * intros [z [Hz E]]. apply with_new_in in Hz. destruct Hz as [Hz | Hz]; [left | right]; eauto.
    + rewrite Forall_forall in *. intros z Hz. apply with_new_in in Hz. destruct Hz; auto.
Qed.

Lemma same_known h : known_then offer_z answers closed h h.
Proof. unfold known_then. induction h as [|c h IH]; constructor; [split; auto | exact IH]. Qed.

Lemma goes_passed calls : forall l h l', same_places l h -> passed h -> goes t l calls = Some l' ->
  passed (rev (map event calls) ++ h) /\ same_places l' (rev (map event calls) ++ h).
Proof.
  induction calls as [|[o' k] calls IH]; intros l h l' S Hp E; cbn [goes map rev] in *.
  - injection E as <-. auto.
  - match type of E with (if ?b then _ else _) = _ => destruct b eqn:G; [|discriminate] end.
    rewrite !andb_true_iff in G. destruct G as [[[Ha G] _] Hk].
    assert (Ha' : Forall (fun a => 0 <= a) (fst o')).
    { apply Forall_forall. intros a Hin. rewrite forallb_forall in Ha. apply Z.leb_le, Ha, Hin. }
    rewrite forallb_forall in G. rewrite <- app_assoc. cbn [app].
    apply (IH _ _ _ (step_same o' k l h Ha' Hk S)); [|exact E].
    unfold event. cbn [fst snd]. apply passed_call with h; [exact Hp | apply same_known | |].
    + intros p Hpl. apply S in Hpl. destruct Hpl as [z [Hz <-]]. destruct S as [_ B]. rewrite Forall_forall in B, Ha'.
      specialize (G z Hz). apply existsb_exists in G. destruct G as [a [Hin G]].
      exists (Z.to_nat a). split; [apply in_map, Hin|]. rewrite <- (proj1 (leads_z_spec a z (Ha' a Hin) (B z Hz))).
      destruct (leads_z t a z); [discriminate | discriminate G].
    + intros x. destruct k as [|a| |], x as [|b|]; cbn; auto; try tauto.
      * intros <-. cbn [may_be] in Hk. apply existsb_exists in Hk. destruct Hk as [c [Hin Ec]]. apply Z.eqb_eq in Ec. subst c.
        apply in_map, Hin.
      * intros _. cbn [may_be] in Hk. apply negb_true_iff in Hk. exact Hk.
Qed.

(* Whatever happened to the calls of unknown outcome: what was done is a prefix of a plan until an answer leads nowhere, which
   is the last thing that happens; it never does where each call has one answer; it is a plan, where the session ended. *)
Theorem conforms_sound calls ended : conforms rows calls ended = true ->
  forall xs, resolves offer_z answers closed (rev (map event calls)) xs ->
  ((exists P, accepted D (root rows) (trace xs ++ P)) \/
   exists x xs', xs = x :: xs' /\ exists P, accepted D (root rows) (trace xs' ++ P)) /\
  ((forall c, In c calls -> exists a, fst c = ([a], true)) -> exists P, accepted D (root rows) (trace xs ++ P)) /\
  (ended = true -> accepted D (root rows) (trace xs)).
Proof.
  unfold conforms. cbv zeta. fold t. intros E xs Hx.
  destruct (goes t [Some (len rows 0 - 1)] calls) as [l|] eqn:G; [|discriminate].
  assert (R := proj1 (proj2 (proj2 (proj2 (proj2 (parts_ok o F how lines rows ok)))))).
  assert (0 < length rows)%nat by (destruct rows; [congruence | simpl; lia]).
  assert (S0 : same_places [Some (len rows 0 - 1)] []).
  { rewrite len_is. split; [|constructor; [cbn [sound_place]; lia | constructor]].
    intros p. cbn. unfold root. replace (Z.to_nat (Z.of_nat (length rows) - 1)) with (length rows - 1)%nat by lia.
    split; [intros [<- | []]; eexists; split; [left; reflexivity|] | intros [z [[<- | []] <-]]; left]; cbn [nat_place];
      repeat f_equal; lia. }
  destruct (goes_passed calls _ _ _ S0 (passed_nothing _ _ _ _ _) G) as [Hp S1]. rewrite app_nil_r in *.
  assert (C1 := C1_holds o H strings_mean F how lines rows ok deterministic). assert (A := alive_holds o H strings_mean F how lines rows ok).
  split; [|split].
  - destruct (passed_traces_are_prefixes D C1 (root rows) offer_z answers closed A _ Hp xs Hx) as [[_ K] | [_ [x [xs' [-> [_ K]]]]]].
    + left. exact K.
    + right. exists x, xs'. split; [reflexivity | exact K].
  - intros One. apply (strict_sessions_stay_on_plans D C1 (root rows) offer_z answers closed A _ Hp) in Hx; [exact Hx|].
    intros c Hc. apply in_rev, in_map_iff in Hc. destruct Hc as [d [<- Hd]]. destruct (One d Hd) as [a Ea].
    apply (one_answer_is_strict D offer_z answers closed) with (Z.to_nat a); unfold event; cbn [fst];
      [unfold closed | unfold answers]; rewrite Ea; reflexivity.
  - intros ->. cbn [negb orb] in E. rewrite forallb_forall in E.
    apply (finished_is_a_plan D C1 (root rows) offer_z answers closed (rev (map event calls))); [|exact Hx].
    intros p Hpl. apply S1 in Hpl. destruct Hpl as [z [Hz <-]]. specialize (E z Hz). destruct z as [q|]; [|discriminate].
    destruct S1 as [_ B]. rewrite Forall_forall in B. specialize (B _ Hz). cbn [sound_place] in B.
    exists (Z.to_nat q). split; [reflexivity|]. rewrite rows_table in E.
    replace (q <? 0) with false in E by (symmetry; apply Z.ltb_ge; lia).
    rewrite (row_inside o rows (Z.to_nat q)) in E by lia. exact E.
Qed.
End Sound.
