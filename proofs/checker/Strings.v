(* Byte strings as the checker uses them: what can be done with them, and what that means of lists of bytes.
   The program is about any such strings; extracted, they are OCaml's (strings.ml, trusted to mean this).

   Nothing about them is an axiom: `lists_mean` shows that there are strings of which all of it is true. *)

From Coq Require Import List ZArith Lia Bool.
From Tcc Require Import Digest.
Import ListNotations.
Local Open Scope Z_scope.

Record strings (str : Type) := {
  view : str -> bytes;                    (* its bytes *)
  made : bytes -> str;                    (* of numbers, each modulo 256 *)
  size_of : str -> Z;
  same : str -> str -> bool;
  less : str -> str -> bool;
  joined : list str -> str;
  numbers : nat -> list Z -> str;         (* little-endian, two's complement, of so many bytes each *)
  stands : str -> Z -> str -> bool;       (* in a file, at an offset, a part *)
  hash : str -> str
}.
Arguments view {str}. Arguments made {str}. Arguments size_of {str}. Arguments same {str}. Arguments less {str}.
Arguments joined {str}. Arguments numbers {str}. Arguments stands {str}. Arguments hash {str}.

Definition byte (z : Z) : Prop := 0 <= z < 256.
Definition low8 (l : bytes) : bytes := map (fun z => z mod 256) l.
Fixpoint precedes (a b : bytes) : bool :=
  match a, b with
  | _, [] => false
  | [], _ :: _ => true
  | x :: a, y :: b => if x <? y then true else if x =? y then precedes a b else false
  end.

Record mean {str} (o : strings str) (H : bytes -> bytes) : Prop := {
  view_bytes : forall s, Forall byte (view o s);
  made_is : forall l, view o (made o l) = low8 l;
  size_is : forall s, size_of o s = Z.of_nat (length (view o s));
  same_is : forall s t, same o s t = true <-> view o s = view o t;
  less_is : forall s t, less o s t = precedes (view o s) (view o t);
  joined_is : forall l, view o (joined o l) = concat (map (view o) l);
  numbers_is : forall n l, view o (numbers o n l) = flat_map (le n) l;
  stands_is : forall file at_ part, stands o file at_ part = true ->
    exists left right, view o file = left ++ view o part ++ right /\ Z.of_nat (length left) = at_;
  hash_is : forall s, view o (hash o s) = H (view o s)
}.

(* Precedence is an order. *)
Lemma precedes_irreflexive a : precedes a a = false.
Proof. induction a as [|x a IH]; simpl; [reflexivity|]. rewrite Z.ltb_irrefl, Z.eqb_refl. exact IH. Qed.
Lemma precedes_transitive a b c : precedes a b = true -> precedes b c = true -> precedes a c = true.
Proof.
  revert b c. induction a as [|x a IH]; intros [|y b] [|z c]; simpl; try discriminate; auto.
  destruct (x <? y) eqn:XY; destruct (y <? z) eqn:YZ; intros E1 E2.
  - apply Z.ltb_lt in XY, YZ. replace (x <? z) with true by (symmetry; apply Z.ltb_lt; lia). reflexivity.
  - destruct (y =? z) eqn:E; [|discriminate]. apply Z.eqb_eq in E. subst z. rewrite XY. reflexivity.
  - destruct (x =? y) eqn:E; [|discriminate]. apply Z.eqb_eq in E. subst y. rewrite YZ. reflexivity.
  - destruct (x =? y) eqn:E; [|discriminate]. destruct (y =? z) eqn:E'; [|discriminate].
    apply Z.eqb_eq in E, E'. subst. rewrite XY, Z.eqb_refl. eapply IH; eassumption.
Qed.

Lemma low8_bytes l : Forall byte (low8 l).
Proof. apply Forall_forall. intros z Hz. apply in_map_iff in Hz. destruct Hz as [y [<- _]]. apply Z.mod_pos_bound. lia. Qed.
Lemma low8_same l : Forall byte l -> low8 l = l.
Proof.
  intros Hl. unfold low8. rewrite <- (map_id l) at 2. apply map_ext_in. intros z Hz. rewrite Forall_forall in Hl.
  apply Z.mod_small, (Hl z Hz).
Qed.
Lemma le_bytes n z : Forall byte (le n z).
Proof. revert z. induction n as [|n IH]; intros z; constructor; [apply Z.mod_pos_bound; lia | apply IH]. Qed.
Lemma numbers_bytes n l : Forall byte (flat_map (le n) l).
Proof. induction l as [|z l IH]; simpl; [constructor|]. apply Forall_app. split; [apply le_bytes | exact IH]. Qed.

(* A model: lists, read modulo 256. *)
Section Lists.
Variable H : bytes -> bytes.
Fixpoint starts_with (file part : bytes) : bool :=
  match part, file with
  | [], _ => true
  | x :: part, y :: file => (x =? y) && starts_with file part
  | _ :: _, [] => false
  end.
Definition lists : strings bytes := {|
  view := low8; made := fun l => l; size_of := fun l => Z.of_nat (length l);
  same := fun a b => if list_eq_dec Z.eq_dec (low8 a) (low8 b) then true else false;
  less := fun a b => precedes (low8 a) (low8 b); joined := @concat Z; numbers := fun n => flat_map (le n);
  stands := fun file at_ part => (0 <=? at_) && (at_ <=? Z.of_nat (length file)) &&
                                 starts_with (skipn (Z.to_nat at_) (low8 file)) (low8 part);
  hash := fun l => H (low8 l) |}.

Lemma starts_with_is part : forall file, starts_with file part = true -> exists right, file = part ++ right.
Proof.
  induction part as [|x part IH]; intros file E; [exists file; reflexivity|].
  destruct file as [|y file]; [discriminate|]. simpl in E. apply andb_prop in E. destruct E as [E1 E2].
  apply Z.eqb_eq in E1. subst y. destruct (IH file E2) as [right ->]. exists right. reflexivity.
Qed.

Theorem lists_mean : (forall l, Forall byte (H l)) -> mean lists H.
Proof.
  intros HB. constructor; cbn [lists view made size_of same less joined numbers stands hash].
  - intros s. apply low8_bytes.
  - reflexivity.
  - intros s. unfold low8. rewrite map_length. reflexivity.
  - intros s t. destruct (list_eq_dec Z.eq_dec (low8 s) (low8 t)); split; congruence.
  - reflexivity.
  - intros l. unfold low8. rewrite concat_map. reflexivity.
  - intros n l. apply low8_same, numbers_bytes.
  - intros file at_ part E. rewrite !andb_true_iff, !Z.leb_le in E. destruct E as [[E1 E2] E3].
    apply starts_with_is in E3. destruct E3 as [right E3]. exists (firstn (Z.to_nat at_) (low8 file)), right.
    rewrite <- E3, firstn_skipn. split; [reflexivity|]. rewrite firstn_length. unfold low8. rewrite map_length. lia.
  - intros s. apply low8_same, HB.
Qed.
End Lists.

(* Lists of many items, without a stack. *)
Fixpoint mapped {X Y} (f : X -> Y) (l : list X) (done : list Y) : list Y :=
  match l with [] => rev_append done [] | x :: l => mapped f l (f x :: done) end.
Fixpoint len {X} (l : list X) (n : Z) : Z := match l with [] => n | _ :: l => len l (n + 1) end.

Lemma mapped_is {X Y} (f : X -> Y) l done : mapped f l done = rev done ++ map f l.
Proof.
  revert done. induction l as [|x l IH]; intros done; simpl.
  - apply rev_append_rev.
  - rewrite IH. simpl. rewrite <- app_assoc. reflexivity.
Qed.
Lemma len_is {X} (l : list X) n : len l n = n + Z.of_nat (length l).
Proof. revert n. induction l as [|x l IH]; intros n; cbn [len length]; [lia|]. rewrite IH. lia. Qed.
