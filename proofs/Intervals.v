(* Sums of exact questions: an interval is what the sums of a state may be, no more and no less.
   docs/spec/proof.md, section 1.

   A number is counted in a unit that is fine enough for all that occur (10^-400).  The grid is what all
   values of a parameter are multiples of: the whole numbers, or that unit. *)

From Coq Require Import ZArith Lia Bool.
Local Open Scope Z_scope.

Definition fits (x : Z) (cap : option Z) : Prop := match cap with Some c => x <= c | None => True end.
Definition fitsb (x : Z) (cap : option Z) : bool := match cap with Some c => x <=? c | None => true end.

Lemma fitsb_spec x cap : fitsb x cap = true <-> fits x cap.
Proof. destruct cap as [c|]; simpl; [apply Z.leb_le | split; auto]. Qed.

Lemma fits_less x y cap : x <= y -> fits y cap -> fits x cap.
Proof. destruct cap; simpl; lia. Qed.

Section Grid.
Variable g : Z.
Hypothesis g_pos : 0 < g.

Definition on (x : Z) : Prop := exists n, x = n * g.
Definition inside (low high x : Z) : Prop := low <= x <= high /\ on x.

(* moves.py, `_cut`. *)
Definition cut (most : Z) (cap : option Z) : Z :=
  match cap with Some c => Z.min most c | None => most end / g * g.

Lemma on_plus x y : on x -> on y -> on (x + y).
Proof. intros [n ->] [m ->]. exists (n + m). lia. Qed.

Lemma on_minus x y : on x -> on y -> on (x - y).
Proof. intros [n ->] [m ->]. exists (n - m). lia. Qed.

Lemma below_cut most cap x : on x -> (x <= cut most cap <-> x <= most /\ fits x cap).
Proof.
  intros [n ->].
  assert (F : forall e, n * g <= e / g * g <-> n * g <= e).
  { intros e. assert (D := Z.div_mod e g ltac:(lia)). assert (M := Z.mod_pos_bound e g g_pos). split; [lia|].
    intros H. apply Z.mul_le_mono_nonneg_r; [lia|]. apply Z.div_le_lower_bound; lia. }
  unfold cut. destruct cap as [c|]; simpl; rewrite F; lia.
Qed.

(* What a sum may be after a call: all of the grid between two ends, whatever a cap cuts off. *)
Theorem sums_and_cuts_are_consecutive low high least most cap y :
  on low -> on high -> on least -> on most -> low <= high -> least <= most ->
  (inside (low + least) (cut (high + most) cap) y <->
   exists x v, inside low high x /\ inside least most v /\ y = x + v /\ fits y cap).
Proof.
  intros Ol Oh Os Ot Hlh Hst. split.
  - intros [[H1 H2] Oy]. apply below_cut in H2; [|exact Oy]. destruct H2 as [H2 H3].
    destruct (Z_le_gt_dec (y - least) high) as [Hx | Hx].
    + exists (y - least), least. split; [split; [lia | apply on_minus; assumption]|].
      split; [split; [lia | assumption]|]. split; [lia | exact H3].
    + exists high, (y - high). split; [split; [lia | assumption]|].
      split; [split; [lia | apply on_minus; assumption]|]. split; [lia | exact H3].
  - intros [x [v [[Hx Ox] [[Hv Ov] [-> H]]]]]. assert (O := on_plus x v Ox Ov).
    split; [|exact O]. split; [lia|]. apply below_cut; [exact O|]. split; [lia | exact H].
Qed.

(* A parameter that both sides add up: the caps of the left and of the right, the values that both have,
   the least of the left, the least of the left alone and whether all of these are above it. *)
Record sum := {
  mine : option Z; theirs : option Z; both : option (Z * Z); least_of : Z; odd : option (Z * bool) }.
(* The values of the parameter's types, of the left and of the right. *)
Definition describes (u : sum) (left right : Z -> Prop) : Prop := forall v, left v ->
  least_of u <= v /\
  ((right v /\ exists s t, both u = Some (s, t) /\ inside s t v) \/
   exists o above, odd u = Some (o, above) /\ (if above : bool then o < v else o <= v)).

Inductive summed := no_call | refused | leads (low high : Z).
(* moves.py, `_summed` and `_odd_fits`; a value above another by less than a unit of the file counts as one
   above it by a unit, since caps, sums and that other are in these units. *)
Definition odd_fits (u : sum) (low : Z) : bool :=
  match odd u, mine u with
  | Some (o, above), Some c => if above : bool then low + o <? c else low + o <=? c
  | Some _, None => true
  | None, _ => false
  end.
Definition add (u : sum) (low high : Z) : summed :=
  if negb (fitsb (low + least_of u) (mine u)) then no_call else
  match both u with
  | Some (s, t) =>
      if fitsb (low + s) (mine u) then
        if odd_fits u low || negb (fitsb (cut (high + t) (mine u)) (theirs u)) then refused
        else leads (low + s) (cut (high + t) (mine u))
      else if odd_fits u low then refused else no_call
  | None => if odd_fits u low then refused else no_call
  end.

(* Where the kernel goes on, each value that the left lets through is one of the right, which lets it
   through, too, and the sum is in the next interval; where it sees no call there is none. *)
Theorem sums_stay_inside u left right low high x v : describes u left right ->
  inside low high x -> left v -> fits (x + v) (mine u) ->
  match add u low high with
  | no_call => False
  | refused => True
  | leads low' high' => right v /\ inside low' high' (x + v) /\ fits (x + v) (theirs u)
  end.
Proof.
  intros D [Hx Ox] Hv F. destruct (D v Hv) as [Hl C]. unfold add.
  assert (Fl : fitsb (low + least_of u) (mine u) = true).
  { apply fitsb_spec. apply (fits_less _ (x + v)); [lia | exact F]. }
  rewrite Fl. cbn [negb].
  destruct C as [[Hr [s [t [-> [Hst Ov]]]]] | [o [above [Eo Ho]]]].
  - assert (Fs : fitsb (low + s) (mine u) = true).
    { apply fitsb_spec. apply (fits_less _ (x + v)); [lia | exact F]. }
    rewrite Fs. destruct (odd_fits u low || negb (fitsb (cut (high + t) (mine u)) (theirs u))) eqn:E; [exact I|].
    apply orb_false_iff in E. destruct E as [_ E]. apply negb_false_iff, fitsb_spec in E.
    assert (O := on_plus x v Ox Ov).
    assert (B : x + v <= cut (high + t) (mine u)) by (apply below_cut; [exact O | split; [lia | exact F]]).
    split; [exact Hr|]. split; [split; [lia | exact O] | apply (fits_less _ _ _ B E)].
  - assert (T : odd_fits u low = true).
    { unfold odd_fits. rewrite Eo. destruct (mine u) as [c|]; [|reflexivity]. cbn [fits] in F.
      destruct above; [apply Z.ltb_lt | apply Z.leb_le]; lia. }
    rewrite T. destruct (both u) as [[s t]|]; [destruct (fitsb (low + s) (mine u))|]; exact I.
Qed.

(* Whoever has less can add the least: what ends stand for (section 1, Finishable). *)
Theorem less_fits_where_more_does u high x v : x <= high -> fits (high + v) (mine u) ->
  fits (x + v) (mine u) /\ x + v <= high + v.
Proof. intros H F. split; [apply (fits_less _ (high + v)); [lia | exact F] | lia]. Qed.
End Grid.
