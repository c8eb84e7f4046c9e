(* Values that a ledger shows: whether one is of its parameter's type, and whether digests are the same exactly where values are.
   docs/spec/core.md, section 2; docs/spec/session.md, section 2.

   These are definitions, run as they stand: of a form that is not looked at here nothing is said. *)

From Coq Require Import List Arith ZArith Lia Bool String.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Json File Core.
Import ListNotations.
Local Open Scope Z_scope.
Local Notation length := List.length.

(* An answer; why there is none; that it is not for this program to say. *)
Inductive out {A : Type} := Got (x : A) | Refused (why : Z) | Declined (why : Z).
Arguments out : clear implicits.
Definition bind {A B} (x : out A) (f : A -> out B) : out B := match x with Got x => f x | Refused w => Refused w | Declined w => Declined w end.
Notation "'let?' x := a 'in' b" := (bind a (fun x => b)) (at level 200, x pattern, a at level 100, b at level 200).
Definition need (b : bool) (why : Z) : out Datatypes.unit := if b then Got tt else Refused why.
Definition only (b : bool) (why : Z) : out Datatypes.unit := if b then Got tt else Declined why.
Definition due {A} (x : option A) (why : Z) : out A := match x with Some x => Got x | None => Refused why end.

(* The places of a text in a list.  Extracted, `places_of o l` is a table of hashes. *)
Fixpoint places_from {str} (o : strings str) (n : Z) (l : list str) (s : str) : list Z :=
  match l with [] => [] | x :: l => if same o x s then n :: places_from o (n + 1) l s else places_from o (n + 1) l s end.
Definition places_of {str} (o : strings str) (l : list str) (s : str) : list Z := places_from o 0 l s.

(* Numbers: canonical decimals. *)
Fixpoint digits_in (l : bytes) (n : Z) : option Z :=
  match l with [] => Some n | c :: l => if (48 <=? c) && (c <=? 57) then digits_in l (10 * n + (c - 48)) else None end.
Fixpoint at_point (l done : bytes) : bytes * option bytes :=
  match l with [] => (rev_append done [], None) | c :: l => if c =? 46 then (rev_append done [], Some l) else at_point l (c :: done) end.
Definition no_sign (text : bytes) : bool * bytes := match text with c :: l => if c =? 45 then (true, l) else (false, text) | [] => (false, []) end.
Definition last_byte (l : bytes) : Z := fold_left (fun _ c => c) l 0.
(* As so many units, and how many decimal places there are. *)
Definition decimal_in (text : bytes) : option (Z * Z) :=
  let (minus, rest) := no_sign text in
  let (whole, part) := at_point rest [] in
  let places := match part with Some p => p | None => [] end in
  let leads := match whole with [] => false | c :: more => negb (c =? 48) || match more with [] => true | _ => false end end in
  let ends := match part with Some p => (49 <=? last_byte p) | None => true end in
  match digits_in (whole ++ places) 0 with
  | Some z => if leads && ends && negb (minus && (z =? 0)) && (len whole 0 <=? 400) && (len places 0 <=? 400)
      then Some (if minus then - z else z, len places 0) else None
  | None => None
  end.
(* In units of 10^-400. *)
Definition in_units (d : Z * Z) : Z := fst d * 10 ^ (400 - snd d).
(* The nano-units of one of at least 0. *)
Definition nano_in (text : bytes) : option Z :=
  match decimal_in text with Some (z, p) => if (0 <=? z) && (p <=? 9) then Some (z * 10 ^ (9 - p)) else None | None => None end.
(* A value: a whole number of 64 bits, or a number that every double keeps: so few digits, and not too large or too small. *)
Definition short (text : bytes) : bool :=
  let digits := filter (fun c => negb (c =? 45) && negb (c =? 46)) text in
  let from := no_zeros digits in
  match decimal_in text with Some (z, p) => (p =? 0) && (- 2 ^ 63 <=? z) && (z <? 2 ^ 64) | None => false end
  || ((len (no_zeros (rev_append from [])) 0 <=? 15) && (len text 0 <=? 200)).

(* Patterns of a part of the dialect: characters, \d, \w and classes of ASCII, each repeated; others are not read. *)
Definition letter_or_digit (c : Z) : bool := letter c || ((48 <=? c) && (c <=? 57)).
Definition ranges := list (Z * Z).
Definition word_ranges : ranges := [(48, 57); (65, 90); (95, 95); (97, 122)].
Definition in_one (l : ranges) (c : Z) : bool := existsb (fun r => (fst r <=? c) && (c <=? snd r)) l.
(* Inside of [ ]: letters, digits, spaces, and ranges of letters or of digits. *)
Fixpoint class_in (l : bytes) (done : ranges) : option (ranges * bytes) :=
  match l with
  | [] => None
  | c :: l =>
      if c =? 93 then match done with [] => None | _ => Some (done, l) end
      else if letter_or_digit c then
        match l with
        | x :: d :: more =>
            if (x =? 45) && negb (d =? 93) then (if letter_or_digit d && (c <=? d) then class_in more ((c, d) :: done) else None)
            else class_in l ((c, c) :: done)
        | _ => class_in l ((c, c) :: done)
        end
      else if c =? 32 then class_in l ((32, 32) :: done) else None
  end.
Definition plain_character (c : Z) : bool := letter_or_digit c || existsb (Z.eqb c) $" -:/,@#".
Fixpoint number_at (l : bytes) (n : option Z) : option (Z * bytes) :=
  match l with
  | c :: more => if (48 <=? c) && (c <=? 57) then number_at more (Some (10 * match n with Some n => n | None => 0 end + (c - 48)))
      else match n with Some n => Some (n, l) | None => None end
  | [] => None
  end.
Definition times_in (l : bytes) : option (Z * option Z * bytes) :=
  match l with
  | c :: more =>
      if c =? 42 then Some (0, None, more) else if c =? 43 then Some (1, None, more) else if c =? 63 then Some (0, Some 1, more)
      else if c =? 123 then
        match number_at more None with
        | Some (low, x :: rest) =>
            if x =? 125 then Some (low, Some low, rest)
            else if x =? 44 then
              match rest with
              | y :: rest' => if y =? 125 then Some (low, None, rest')
                  else match number_at rest None with Some (high, z :: end_) => if (z =? 125) && (low <=? high) then Some (low, Some high, end_) else None | _ => None end
              | [] => None
              end
            else None
        | _ => None
        end
      else Some (1, Some 1, l)
  | [] => Some (1, Some 1, l)
  end.
Record item := { chars : ranges; least : Z; greatest : option Z }.
Definition positions (i : item) : Z := match greatest i with Some n => Z.max 1 n | None => Z.max 1 (least i) end.
Fixpoint items_in (fuel : nat) (l : bytes) (done : list item) : option (list item) :=
  match fuel, l with
  | _, [] => Some (rev_append done [])
  | O, _ => None
  | S fuel, c :: more =>
      let atom :=
        if c =? 91 then class_in more []
        else if c =? 92 then match more with
          | d :: rest => if d =? 100 then Some ([(48, 57)], rest) else if d =? 119 then Some (word_ranges, rest)
              else if existsb (Z.eqb d) $".-+*?()[]{}|/^$" then Some ([(d, d)], rest) else None
          | [] => None end
        else if plain_character c then Some ([(c, c)], more) else None in
      match atom with
      | None => None
      | Some (set, rest) =>
          match times_in rest with
          | Some (low, high, rest) =>
              if match rest with c :: _ => existsb (Z.eqb c) $"*+?{" | [] => false end then None
              else items_in fuel rest ({| chars := set; least := low; greatest := high |} :: done)
          | None => None
          end
      end
  end.
(* Which places of a text, from 0 to its length, are reached. *)
Fixpoint onward (set : ranges) (now : list bool) (text : bytes) : list bool :=
  match now, text with b :: now, c :: text => (b && in_one set c) :: onward set now text | _, _ => [] end.
Fixpoint more_of (set : ranges) (before : bool) (now : list bool) (text : bytes) : list bool :=
  match now with
  | [] => []
  | b :: now => let here := b || before in here :: match text with c :: text => more_of set (here && in_one set c) now text | [] => [] end
  end.
Fixpoint either (l m : list bool) : list bool := match l, m with x :: l, y :: m => (x || y) :: either l m | l, [] => l | [], m => m end.
Fixpoint some_times (fuel : nat) (set : ranges) (low : Z) (now found : list bool) (text : bytes) : list bool :=
  let found := if low <=? 0 then either found now else found in
  match fuel with O => found | S fuel => some_times fuel set (low - 1) (false :: onward set now text) found text end.
Definition through (i : item) (now : list bool) (text : bytes) : list bool :=
  match greatest i with
  | Some high => some_times (Z.to_nat high) (chars i) (least i) now [] text
  | None => more_of (chars i) false (some_times (Z.to_nat (least i)) (chars i) (least i) now [] text) text
  end.
Definition matches (l : list item) (text : bytes) : bool :=
  last (fold_left (fun now i => through i now text) l (true :: map (fun _ => false) text)) false.

(* Canonical JSON: the text behind a value, where one begins. *)
Fixpoint behind (prefix l : bytes) : option bytes :=
  match prefix, l with [], l => Some l | x :: prefix, y :: l => if x =? y then behind prefix l else None | _, [] => None end.
Fixpoint unquoted (fuel : nat) (l done : bytes) : option bytes :=
  match fuel, l with
  | S fuel, c :: _ => if c =? 34 then Some (rev_append done []) else match read l with Some (b, l) => if (0 <=? b) && (b <? 256) then unquoted fuel l (b :: done) else None | None => None end
  | _, _ => None
  end.
Definition string_in (l : bytes) : option (bytes * bytes) :=
  match l with
  | c :: more => if c =? 34 then match unquoted (length more) more [] with
      | Some s => match behind (quoted s) l with Some rest => Some (s, rest) | None => None end | None => None end else None
  | [] => None
  end.
Fixpoint above (a b : bytes) : bool :=       (* a is before b *)
  match a, b with [], _ :: _ => true | x :: a, y :: b => (x <? y) || ((x =? y) && above a b) | _, [] => false end.
Fixpoint number_end (l done : bytes) : bytes * bytes :=
  match l with
  | c :: more => if ((48 <=? c) && (c <=? 57)) || (c =? 45) || (c =? 46) then number_end more (c :: done) else (rev_append done [], l)
  | [] => (rev_append done [], [])
  end.
Definition scalar_in (l : bytes) : out bytes :=
  match string_in l with
  | Some (_, rest) => Got rest
  | None =>
      match behind $"true" l, behind $"false" l, behind $"null" l with
      | Some rest, _, _ | _, Some rest, _ | _, _, Some rest => Got rest
      | _, _, _ =>
          let (n, rest) := number_end l [] in
          match decimal_in n with Some _ => if short n then Got rest else Declined 17 | None => Refused 37 end
      end
  end.
(* `last`: of an object the name before, of a list nothing; a list or an object has begun, and `first` says that it is empty so far. *)
Fixpoint json_in (fuel : nat) (depth : Z) (l : bytes) : out bytes :=
  match fuel, l with
  | S fuel, c :: more =>
      if (c =? 91) || (c =? 123) then (if 0 <? depth then inside fuel (depth - 1) (c =? 123) None true more else Refused 37) else scalar_in l
  | _, _ => Refused 37
  end
with inside (fuel : nat) (depth : Z) (object : bool) (last_name : option bytes) (first : bool) (l : bytes) : out bytes :=
  match fuel, l with
  | S fuel, c :: more =>
      if c =? (if object then 125 else 93) then Got more
      else match (if first then Some l else if c =? 44 then Some more else None) with
      | None => Refused 37
      | Some l =>
          if object then
            match string_in l with
            | Some (name, x :: rest) =>
                if (x =? 58) && match last_name with Some k => above k name | None => true end
                then bind (json_in fuel depth rest) (inside fuel depth object (Some name) false) else Refused 37
            | _ => Refused 37
            end
          else bind (json_in fuel depth l) (inside fuel depth object None false)
      end
  | _, _ => Refused 37
  end.
Definition is_json (l : bytes) : out Datatypes.unit :=
  let? rest := json_in (2 * length l + 2) 64 l in need (match rest with [] => true | _ => false end) 37.

Section Shown.
Context {str : Type} (o : strings str).
Notation value := (value str).

Definition characters (s : str) : Z := fold_left (fun n c => if (128 <=? c) && (c <? 192) then n else n + 1) (view o s) 0.
Definition whole_at (k : bytes) (p : value) : option Z := match get o k p with Some (VNum z) => Some z | _ => None end.
Definition has (k : bytes) (p : value) : bool := match get o k p with Some _ => true | None => false end.
(* Whether a text is that of a value of a parameter's type. *)
Definition fits_value (p : value) (kind text : str) : out Datatypes.unit :=
  let? t := due (get_text o $"type" p) 20 in
  let is s := same o t (made o s) in
  let of s := need (same o kind (made o s)) 37 in
  if is $"text" then
    let? _ := of $"s" in
    let? low := due (whole_at $"min" p) 20 in
    let? high := due (whole_at $"max" p) 20 in
    let n := characters text in
    let? _ := need ((low <=? n) && (n <=? high)) 37 in
    match get o $"pattern" p with
    | None => Got tt
    | Some (VStr s) =>
        let x := view o text in
        match items_in (S (length (view o s))) (view o s) [] with
        | Some l => let? _ := only ((len x 0 <=? 4096) && (fold_left (fun n i => n + positions i) l 0 <=? 1000)) 16 in need (matches l x) 37
        | None => Declined 16
        end
    | Some _ => Refused 20
    end
  else if is $"flag" then
    let? _ := of $"b" in need (same o text (made o $"true") || same o text (made o $"false")) 37
  else if is $"number" || is $"integer" then
    let? _ := of $"n" in
    let x := view o text in
    let? d := due (decimal_in x) 37 in
    let? _ := need (is $"number" || (snd d =? 0)) 37 in
    let? _ := match get_text o $"low" p, get_text o $"high" p with
      | None, None => Got tt
      | Some low, Some high =>
          let? l := due (decimal_in (view o low)) 20 in
          let? h := due (decimal_in (view o high)) 20 in
          need ((in_units l <=? in_units d) && (in_units d <=? in_units h)) 37
      | _, _ => Refused 20 end in
    only (short x) 17
  else if is $"json" then
    let? _ := of $"j" in
    let? most := due (whole_at $"max" p) 20 in
    let? _ := need (size_of o text <=? most) 37 in is_json (view o text)
  else Declined 2.

(* Of values, each its type byte and text, and of their digests: both are the same together, and so are the digests' first halves. *)
Definition half (d : str) : str := made o (firstn 32 (view o d)).
Definition told_apart (l : list (str * str)) : bool :=
  let values := places_of o (map fst l) in
  let halves := places_of o (map (fun x => half (snd x)) l) in
  let at_ := table l in
  let first f := match f with i :: _ => at_ i | [] => None end in
  forallb (fun x =>
    match first (values (fst x)), first (halves (half (snd x))) with
    | Some y, Some z => same o (snd y) (snd x) && same o (fst z) (fst x)
    | _, _ => false end) l.

Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.
Lemma places_from_in l s : forall n z, In z (places_from o n l s) <-> exists i x, z = n + Z.of_nat i /\ nth_error l i = Some x /\ view o x = view o s.
Proof.
  induction l as [|y l IH]; intros n z; cbn [places_from].
  - split; [intros [] | intros [i [x [_ [E _]]]]; destruct i; discriminate].
  - assert (Later : In z (places_from o (n + 1) l s) <-> exists i x, z = n + Z.of_nat (S i) /\ nth_error l i = Some x /\ view o x = view o s).
    { rewrite IH. split; intros [i [x [E K]]]; exists i, x; (split; [lia | exact K]). }
    destruct (same o y s) eqn:E.
    + apply (same_is o H strings_mean) in E. cbn [In]. rewrite Later. split.
      * intros [<- | [i [x K]]]; [exists 0%nat, y; split; [lia | auto] | exists (S i), x; exact K].
      * intros [[|i] [x [Ez [Ex Ev]]]]; [left; lia | right; exists i, x; auto].
    + rewrite Later. split; [intros [i [x K]]; exists (S i), x; exact K|]. intros [[|i] [x [Ez [Ex Ev]]]]; [|exists i, x; auto].
      injection Ex as ->. exfalso. apply (same_is o H strings_mean) in Ev. congruence.
Qed.
Lemma places_alike l s t : view o s = view o t -> places_of o l s = places_of o l t.
Proof.
  intros E. unfold places_of. generalize 0. induction l as [|x l IH]; intros n; cbn [places_from]; [reflexivity|].
  rewrite IH. replace (same o x s) with (same o x t); [reflexivity|]. apply Bool.eq_iff_eq_true. rewrite !(same_is o H strings_mean), E. tauto.
Qed.
(* Digests stand for values: the same, and the same first half, exactly where type and text are. *)
Theorem digests_stand_for_values l : told_apart l = true -> forall x y, In x l -> In y l ->
  (view o (fst x) = view o (fst y) <-> view o (snd x) = view o (snd y)) /\
  (view o (fst x) = view o (fst y) <-> view o (half (snd x)) = view o (half (snd y))).
Proof.
  unfold told_apart. cbv zeta. rewrite forallb_forall. intros T x y Hx Hy.
  assert (Forth : forall x y, In x l -> In y l -> view o (fst x) = view o (fst y) -> view o (snd x) = view o (snd y)).
  { clear x y Hx Hy. intros x y Hx Hy E. assert (Tx := T x Hx). assert (Ty := T y Hy). cbv beta in Tx, Ty. rewrite (places_alike _ _ _ E) in Tx.
    destruct (match places_of o (map fst l) (fst y) with i :: _ => table l i | [] => None end) as [u|]; [|discriminate].
    destruct (match places_of o (map _ l) (half (snd x)) with i :: _ => table l i | [] => None end) in Tx; [|discriminate].
    destruct (match places_of o (map _ l) (half (snd y)) with i :: _ => table l i | [] => None end) in Ty; [|discriminate].
    apply andb_prop in Tx. apply andb_prop in Ty. destruct Tx as [Tx _], Ty as [Ty _].
    apply (same_is o H strings_mean) in Tx. apply (same_is o H strings_mean) in Ty. congruence. }
  assert (Back : view o (half (snd x)) = view o (half (snd y)) -> view o (fst x) = view o (fst y)).
  { intros E. assert (Tx := T x Hx). assert (Ty := T y Hy). cbv beta in Tx, Ty. rewrite (places_alike _ _ _ E) in Tx.
    destruct (match places_of o (map _ l) (half (snd y)) with i :: _ => table l i | [] => None end) as [u|]; [|destruct (match places_of o (map fst l) (fst x) with i :: _ => table l i | [] => None end); discriminate].
    destruct (match places_of o (map fst l) (fst x) with i :: _ => table l i | [] => None end); [|discriminate].
    destruct (match places_of o (map fst l) (fst y) with i :: _ => table l i | [] => None end); [|discriminate].
    apply andb_prop in Tx. apply andb_prop in Ty. destruct Tx as [_ Tx], Ty as [_ Ty].
    apply (same_is o H strings_mean) in Tx. apply (same_is o H strings_mean) in Ty. congruence. }
  assert (Half : view o (snd x) = view o (snd y) -> view o (half (snd x)) = view o (half (snd y))).
  { intros E. unfold half. rewrite E. reflexivity. }
  split; split; auto.
Qed.
End Shown.
