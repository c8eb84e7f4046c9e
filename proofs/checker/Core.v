(* The core inside a file: its calls and tools are those of the grammar.
   docs/spec/artifact.md, section 5, C8 and C9, and the column `tools`; docs/spec/core.md, sections 1, 2 and 5.

   No parser is trusted here either: a reader says what JSON value the core is, and the core has to be the text of
   that value.  Statements are not covered: nothing is said of what a statement means, of the texts of limits (C7), and of
   which statements may be left to the run (C803 but for their numbers).  Neither is it looked at that the plans are the
   core's (`check --core`; of C9 so this direction alone: what goes on after one answer goes on after every other), and
   the schema of what is not named here. *)

From Coq Require Import List ZArith Lia Bool Reals String FMapPositive.
From Tcc Require Import Automaton Certificates Digest.
From Tcc.Checker Require Import Strings States Sound Json File Weights.
Import ListNotations.
Local Open Scope Z_scope.
Local Notation length := List.length.

(* JSON with its texts as they stand in memory. *)
Inductive value {str : Type} :=
| VNum (z : Z) | VStr (s : str) | VFlag (b : bool) | VArr (l : list value) | VObj (l : list (str * value)).
Arguments value : clear implicits.

(* What each item gives, where each gives something. *)
Fixpoint each {A B} (f : A -> option B) (l : list A) (done : list B) : option (list B) :=
  match l with
  | [] => Some (rev_append done [])
  | x :: l => match f x with Some y => each f l (y :: done) | None => None end
  end.
Lemma each_is {A B} (f : A -> option B) l : forall done m, each f l done = Some m ->
  exists n, m = rev done ++ n /\ Forall2 (fun x y => f x = Some y) l n.
Proof.
  induction l as [|x l IH]; intros done m E; cbn [each] in E.
  - injection E as <-. exists []. rewrite rev_append_rev. split; [reflexivity | constructor].
  - destruct (f x) as [y|] eqn:Fx; [|discriminate]. apply IH in E. destruct E as [n [-> A']].
    exists (y :: n). split; [simpl; rewrite <- app_assoc; reflexivity | constructor; assumption].
Qed.

(* Names: bare where they may be, else in quotes. *)
Definition letter (c : Z) : bool := ((65 <=? c) && (c <=? 90)) || ((97 <=? c) && (c <=? 122)) || (c =? 95).
Fixpoint equal_bytes (a b : bytes) : bool :=
  match a, b with [], [] => true | x :: a, y :: b => (x =? y) && equal_bytes a b | _, _ => false end.
Definition bare (s : bytes) : bool :=
  match s with [] => false | c :: r => letter c && forallb (fun c => letter c || ((48 <=? c) && (c <=? 57))) r end.
Definition written (s : bytes) : bytes := if bare s then s else quoted s.

Record param {str : Type} := { pname : str; pvalues : Z -> option str; pcount : Z; pobserved : bool }.
Record tool {str : Type} := { tname : str; tparams : list (@param str); tstrict : bool }.
Arguments param : clear implicits.
Arguments tool : clear implicits.
(* What a reader says of the core: its value, and of each call of the artifact its place among the
   core's, and the first of its sisters in the artifact. *)
Record claim {str : Type} := { cvalue : value str; places : list Z; firsts : list Z }.
Arguments claim : clear implicits.

Section Core.
Context {str : Type} (o : strings str).
Notation line := (line str).
Notation artifact := (artifact str).
Notation value := (value str).
Notation param := (param str).
Notation tool := (tool str).

Fixpoint meant (v : value) : json :=
  match v with
  | VNum z => Num z | VStr s => Json.Str (view o s) | VFlag b => Flag b
  | VArr l => Arr (map meant l)
  | VObj l => Obj (map (fun m => (view o (fst m), meant (snd m))) l)
  end.
(* The members of every object increase: one value has one form, no member is there twice. *)
Fixpoint rising (before : option str) (l : list (str * value)) : bool :=
  match l with
  | [] => true
  | (k, _) :: l => match before with None => true | Some b => less o b k end && rising (Some k) l
  end.
Fixpoint ordered (v : value) : bool :=
  match v with
  | VArr l => forallb ordered l
  | VObj l => rising None l && forallb (fun m => ordered (snd m)) l
  | _ => true
  end.
Definition get (k : bytes) (v : value) : option value :=
  match v with
  | VObj l => let k := made o k in match find (fun m => same o (fst m) k) l with Some m => Some (snd m) | None => None end
  | _ => None
  end.
Definition get_text k v : option str := match get k v with Some (VStr s) => Some s | _ => None end.
Definition get_list k v : option (list value) := match get k v with Some (VArr l) => Some l | _ => None end.
Definition is_true (v : option value) : bool := match v with Some (VFlag b) => b | _ => false end.
Definition text_in (v : value) : option str := match v with VStr s => Some s | _ => None end.

(* A listed field has a text for each value; an optional one has the empty text first, for a call without it.  An open
   field is no part of a call's text. *)
Definition field_of (observed : bool) (v : value) : option (list param) :=
  match get_text $"name" v, get $"values" v with
  | Some n, Some (VArr l) =>
      match each text_in l [] with
      | Some texts =>
          let texts := if is_true (get $"optional" v) then made o [] :: texts else texts in
          Some [{| pname := made o (written (view o n)); pvalues := table texts; pcount := len texts 0; pobserved := observed |}]
      | None => None
      end
  | Some _, None => Some []
  | _, _ => None
  end.
Definition fields_of (observed : bool) (v : option value) : option (list param) :=
  match v with
  | None => Some []
  | Some (VArr l) => match each (field_of observed) l [] with Some ls => Some (List.concat ls) | None => None end
  | _ => None
  end.
Definition tool_of (v : value) : option tool :=
  match get_text $"name" v, fields_of false (get $"fields" v), fields_of true (get $"gives" v) with
  | Some n, Some asked, Some told =>
      Some {| tname := made o (written (view o n)); tparams := asked ++ told; tstrict := is_true (get $"strict" v) |}
  | _, _, _ => None
  end.

Fixpoint between (sep : str) (l : list str) : list str :=
  match l with [] => [] | [x] => [x] | x :: l => x :: sep :: between sep l end.
(* p=v of each parameter that is there; without the observed ones where `all` is false. *)
Fixpoint bound (all : bool) (ps : list param) (vals : list value) : option (list str) :=
  match ps, vals with
  | [], [] => Some []
  | p :: ps, VNum z :: vals =>
      match pvalues p z, bound all ps vals with
      | Some s, Some l => Some (if (size_of o s =? 0) || (negb all && pobserved p) then l else joined o [pname p; made o [61]; s] :: l)
      | _, _ => None
      end
  | _, _ => None
  end.
Definition with_list (name : str) (l : list str) : str :=
  match l with [] => name | _ => joined o (name :: made o [40] :: between (made o [44]) l ++ [made o [41]]) end.
Definition call_text (all : bool) (t : tool) (vals : list value) : option str :=
  match bound all (tparams t) vals with Some l => Some (with_list (tname t) l) | None => None end.

(* A number as canonical JSON has it. *)
Definition is_large (v : value) (z : Z) : bool :=
  let small := (z <? 2 ^ 53) && (- 2 ^ 53 <? z) in
  match v with VNum y => small && (y =? z) | VStr s => negb small && same o s (made o (decimal z)) | _ => false end.

(* A call of the artifact is that of the core at a place: the index of its tool, and its text without answers. *)
Definition core_call (tools : Z -> option tool) (v : value) (c : line) (price latency epsilon : Z) : option (Z * str) :=
  match v with
  | VArr [VNum t; VArr vals; low; high; p; l; e] =>
      match tools t with
      | None => None
      | Some tl =>
          match call_text true tl vals, call_text false tl vals with
          | Some s, Some asked =>
              if same o s (ltext c) && is_large low (llow c) && is_large high (lhigh c) && is_large p price &&
                 is_large l latency && is_large e epsilon then Some (t, asked) else None
          | _, _ => None
          end
      end
  | _ => None
  end.
Fixpoint core_calls tools (calls : Z -> option value) (lines : list line) (prices latencies epsilons places : list Z)
    (done : list (Z * str)) : option (list (Z * str)) :=
  match lines, prices, latencies, epsilons, places with
  | [], [], [], [], [] => Some (rev_append done [])
  | c :: lines, p :: prices, l :: latencies, e :: epsilons, k :: places =>
      match calls k with
      | None => None
      | Some v => match core_call tools v c p l e with
                  | Some t => core_calls tools calls lines prices latencies epsilons places (t :: done)
                  | None => None
                  end
      end
  | _, _, _, _, _ => None
  end.

(* Items whose number has a mark. *)
Fixpoint kept {A} (mark : Z -> bool) (q : Z) (l : list A) : list A :=
  match l with [] => [] | x :: l => if mark q then x :: kept mark (q + 1) l else kept mark (q + 1) l end.

(* The statements that are left to the run are numbers of statements of the core, and increase.  What a statement says
   is not looked at. *)
Fixpoint increase (before : Z) (l : list Z) : bool :=
  match l with [] => true | i :: l => (before <? i) && increase i l end.
Definition left_ok (left_ : option (list Z)) (statements : list value) : bool :=
  match left_ with
  | None => true
  | Some l => increase (-1) l && forallb (fun i => i <? len statements 0) l
  end.

(* C9: in a state that a call of a strict tool leaves, as many edges have its sisters as there are answers. *)
Definition answers (t : tool) : Z := fold_left (fun n p => if pobserved p then n * pcount p else n) (tparams t) 1.
(* Of a strict call the number of its group, and how many answers there are; a group is of one tool and question. *)
Definition group (tools : Z -> option tool) (owner : Z -> option (Z * str)) (x : Z * str) (first : Z) : option (option (positive * Z)) :=
  match tools (fst x) with
  | None => None
  | Some t =>
      if tstrict t then
        match owner first with
        | Some y => if (fst y =? fst x) && same o (snd y) (snd x) then Some (Some (Z.to_pos (first + 1), answers t)) else None
        | None => None
        end
      else Some None
  end.
Fixpoint groups tools owner (l : list (Z * str)) (firsts : list Z) (done : list (option (positive * Z))) : option (list (option (positive * Z))) :=
  match l, firsts with
  | [], [] => Some (rev_append done [])
  | x :: l, f :: firsts => match group tools owner x f with Some g => groups tools owner l firsts (g :: done) | None => None end
  | _, _ => None
  end.
Definition in_group (t : Z -> option (option (positive * Z))) (call : Z) : option (positive * Z) :=
  match t call with Some (Some g) => Some g | _ => None end.
Definition number (m : PositiveMap.t Z) (g : positive) : Z := match PositiveMap.find g m with Some n => n | None => 0 end.
Fixpoint tally (t : Z -> option (option (positive * Z))) (l : list (Z * Z)) (m : PositiveMap.t Z) : PositiveMap.t Z :=
  match l with
  | [] => m
  | e :: l => tally t l (match in_group t (fst e) with Some (g, _) => PositiveMap.add g (number m g + 1) m | None => m end)
  end.
Definition all_answered t (r : row str) : bool :=
  let m := tally t (redges r) (PositiveMap.empty Z) in
  forallb (fun e => match in_group t (fst e) with Some (g, n) => number m g =? n | None => true end) (redges r).
Definition strict_ok (a : artifact) (read : list tool) (owners : list (Z * str)) (firsts : list Z) : bool :=
  if existsb tstrict read then
    match relaxed a, ambiguous a, groups (table read) (table owners) owners firsts [] with
    | None, false, Some l => let t := table l in forallb (all_answered t) (rows a)
    | _, _, _ => false
    end
  else true.

(* What kind of document it is. *)
Definition head_ok (v : value) : bool :=
  match get_text $"schema" v with Some s => equal_bytes (view o s) $"tcc.core/2" | None => false end.

(* Which question about the core failed; 0 where none did. *)
Definition core_question (a : artifact) (c : claim str) : Z :=
  let v := cvalue c in
  if negb (head_ok v && ordered v && same o (core a) (print o (meant v))) then 5 else
  match get $"grammar" v, get_list $"tools" v, get_list $"calls" v, get_list $"statements" v with
  | Some g, Some ts, Some cs, Some ss =>
      match get_text $"name" g, get_text $"version" g, each tool_of ts [] with
      | Some name, Some version, Some read =>
          if negb (same o name (gname a) && same o version (gversion a)) then 6 else
          match core_calls (table read) (table cs) (lines a) (prices a) (latencies a) (epsilons a) (places c) [] with
          | None => 6
          | Some owners =>
              if negb (same o (tools a) (print o (Arr (map meant (kept (hit (len ts 0) (fun x => [fst x]) owners) 0 ts))))) then 7 else
              if negb (left_ok (relaxed a) ss) then 8 else
              if negb (strict_ok a read owners (firsts c)) then 9 else 0
          end
      | _, _, _ => 5
      end
  | _, _, _, _ => 5
  end.
Definition core_verdict (file : str) (a : artifact) (c : claim str) : Z * str :=
  let v := full_verdict o file a in
  if fst v =? 0 then (let k := core_question a c in if k =? 0 then v else (k, made o [])) else v.

Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.

Section Values.
Variable P : value -> Prop.
Hypothesis num : forall z, P (VNum z).
Hypothesis text_ : forall s, P (VStr s).
Hypothesis flg : forall b, P (VFlag b).
Hypothesis arr : forall l, Forall P l -> P (VArr l).
Hypothesis obj : forall l, Forall (fun m => P (snd m)) l -> P (VObj l).
Fixpoint value_all (v : value) : P v :=
  match v with
  | VNum z => num z | VStr s => text_ s | VFlag b => flg b
  | VArr l => arr l ((fix go l : Forall P l := match l with [] => Forall_nil _ | v :: l => Forall_cons _ (value_all v) (go l) end) l)
  | VObj l => obj l ((fix go l : Forall (fun m => P (snd m)) l :=
               match l with [] => Forall_nil _ | m :: l => Forall_cons _ (value_all (snd m)) (go l) end) l)
  end.
End Values.
Lemma meant_plain v : plain (meant v).
Proof.
  induction v as [z | s | b | l IH | l IH] using value_all; simpl; constructor.
  - apply (view_bytes o H strings_mean).
  - induction IH; simpl; constructor; assumption.
  - induction IH as [|m l Hm _ IHl]; simpl; constructor; [|exact IHl]. split; [apply (view_bytes o H strings_mean) | exact Hm].
Qed.
Lemma printed v s : same o s (print o (meant v)) = true -> view o s = text_of (meant v).
Proof. intros E. apply (same_is o H strings_mean) in E. rewrite E. apply (print_is o H); [exact strings_mean | apply meant_plain]. Qed.
Lemma large_is v z : is_large v z = true -> meant v = large z.
Proof.
  unfold is_large, large. cbv zeta. destruct v as [y | s | b | l | l]; try discriminate; rewrite andb_true_iff; intros [S E].
  - rewrite S. apply Z.eqb_eq in E. subst y. reflexivity.
  - apply negb_true_iff in S. rewrite S. apply (same_is o H strings_mean) in E. simpl. rewrite E, (made_is o H strings_mean).
    rewrite low8_same by apply decimal_bytes. reflexivity.
Qed.

(* What the answer says.  A call of the artifact stands in the core with its tool, values, costs and amounts. *)
Inductive stands (read : list tool) (v : value) (c : line) (price latency epsilon : Z) : Z * str -> Prop :=
| it_stands t tl vals low high p l e s asked :
    v = VArr [VNum t; VArr vals; low; high; p; l; e] -> table read t = Some tl ->
    call_text true tl vals = Some s -> view o s = view o (ltext c) -> call_text false tl vals = Some asked ->
    meant low = large (llow c) -> meant high = large (lhigh c) ->
    meant p = large price -> meant l = large latency -> meant e = large epsilon ->
    stands read v c price latency epsilon (t, asked).
Inductive all_stand (read : list tool) (calls : list value) : list line -> list Z -> list Z -> list Z -> list (Z * str) -> Prop :=
| none_stands : all_stand read calls [] [] [] [] []
| more_stand c p l e k v t lines prices latencies epsilons owners :
    table calls k = Some v -> stands read v c p l e t -> all_stand read calls lines prices latencies epsilons owners ->
    all_stand read calls (c :: lines) (p :: prices) (l :: latencies) (e :: epsilons) (t :: owners).

Lemma core_call_stands read v c p l e t : core_call (table read) v c p l e = Some t -> stands read v c p l e t.
Proof.
  unfold core_call. intros E.
  repeat match type of E with
  | match ?x with _ => _ end = Some _ => destruct x eqn:?; try discriminate
  end.
  injection E as <-. rewrite !andb_true_iff in *.
  repeat match goal with K : _ /\ _ |- _ => destruct K end. subst.
  econstructor; [reflexivity | eassumption | eassumption | apply (same_is o H strings_mean); assumption | eassumption | ..];
    apply large_is; assumption.
Qed.
Lemma core_calls_stand read cs lines : forall ps ls es ks done owners,
  core_calls (table read) (table cs) lines ps ls es ks done = Some owners ->
  exists m, owners = rev done ++ m /\ all_stand read cs lines ps ls es m.
Proof.
  induction lines as [|c lines IH]; intros [|p ps] [|l ls] [|e es] [|k ks] done owners E; try discriminate; cbn [core_calls] in E.
  - injection E as <-. exists []. rewrite rev_append_rev. split; [reflexivity | constructor].
  - destruct (table cs k) as [v|] eqn:T; [|discriminate]. destruct (core_call (table read) v c p l e) as [t|] eqn:C; [|discriminate].
    apply IH in E. destruct E as [m [-> A]]. exists (t :: m).
    split; [simpl; rewrite <- app_assoc; reflexivity|]. econstructor; [exact T | apply core_call_stands, C | exact A].
Qed.

(* Each edge of a strict call has beside it edges of its sisters, itself among them, one for each answer. *)
Definition answered (a : artifact) (read : list tool) (owners : list (Z * str)) : Prop :=
  forall r e t asked tl, In r (rows a) -> In e (redges r) -> table owners (fst e) = Some (t, asked) ->
    table read t = Some tl -> tstrict tl = true ->
    exists sister : Z * Z -> bool, Z.of_nat (length (filter sister (redges r))) = answers tl /\ sister e = true /\
      forall f, sister f = true -> exists asked', table owners (fst f) = Some (t, asked') /\ view o asked' = view o asked.

Lemma table_same {A} (l : list A) z x : table l z = Some x <-> 0 <= z /\ nth_error l (Z.to_nat z) = Some x.
Proof. unfold table. destruct (Z.ltb_spec z 0); [split; [discriminate | lia]|]. split; [auto | tauto]. Qed.
Lemma tally_counts t g : forall l m, number (tally t l m) g =
  number m g + Z.of_nat (length (filter (fun e => match in_group t (fst e) with Some (h, _) => Pos.eqb h g | None => false end) l)).
Proof.
  induction l as [|e l IH]; intros m; cbn [tally filter]; [simpl; lia|]. rewrite IH.
  destruct (in_group t (fst e)) as [[h n]|]; [|reflexivity]. unfold number at 1 3.
  destruct (Pos.eqb_spec h g) as [-> | N].
  - rewrite PositiveMap.gss. fold (number m g). cbn [length]. lia.
  - rewrite PositiveMap.gso by congruence. fold (number m g). reflexivity.
Qed.
Lemma groups_are tools owner l : forall firsts done gs, groups tools owner l firsts done = Some gs ->
  exists n, gs = rev done ++ n /\ Forall2 (fun x g => exists f, group tools owner x f = Some g) l n.
Proof.
  induction l as [|x l IH]; intros [|f firsts] done gs E; try discriminate; cbn [groups] in E.
  - injection E as <-. exists []. rewrite rev_append_rev. split; [reflexivity | constructor].
  - destruct (group tools owner x f) as [g|] eqn:G; [|discriminate]. apply IH in E. destruct E as [n [-> A]].
    exists (g :: n). split; [simpl; rewrite <- app_assoc; reflexivity | constructor; [exists f; exact G | exact A]].
Qed.
Lemma pairwise {A B} (R : A -> B -> Prop) l m : Forall2 R l m -> forall z,
  (forall x, table l z = Some x -> exists y, table m z = Some y /\ R x y) /\
  (forall y, table m z = Some y -> exists x, table l z = Some x /\ R x y).
Proof.
  intros A2 z. unfold table. destruct (z <? 0); [split; discriminate|]. generalize (Z.to_nat z). clear z.
  induction A2 as [|x y l m Rxy _ IH]; intros [|i]; simpl; [split; discriminate | split; discriminate | |apply IH].
  split; intros u [= <-]; eauto.
Qed.
Lemma strict_answered a read owners firsts : strict_ok a read owners firsts = true -> existsb tstrict read = true ->
  relaxed a = None /\ ambiguous a = false /\ answered a read owners.
Proof.
  unfold strict_ok. intros E S. rewrite S in E. destruct (relaxed a); [discriminate|]. destruct (ambiguous a); [discriminate|]. do 2 (split; [reflexivity|]).
  destruct (groups (table read) (table owners) owners firsts []) as [gs|] eqn:G; [|discriminate].
  apply groups_are in G. destruct G as [gs' [-> G]]. cbn [rev app] in E. assert (G' := pairwise _ _ _ G).
  intros r e t asked tl Hr He Ho Ht Hs. rewrite forallb_forall in E. specialize (E r Hr).
  unfold all_answered in E. cbv zeta in E. rewrite forallb_forall in E. specialize (E e He).
  destruct (proj1 (G' (fst e)) _ Ho) as [y [Gy [f Gf]]]. unfold group in Gf. cbn [fst snd] in Gf. rewrite Ht, Hs in Gf.
  destruct (table owners f) as [[t' asked']|] eqn:Of; [|discriminate]. cbn [fst snd] in Gf.
  destruct ((t' =? t) && same o asked' asked) eqn:Q; [|discriminate]. injection Gf as <-.
  apply andb_prop in Q. destruct Q as [Q1 Q2]. apply Z.eqb_eq in Q1. apply (same_is o H strings_mean) in Q2. subst t'.
  unfold in_group at 1 in E. rewrite Gy in E. apply Z.eqb_eq in E. rewrite tally_counts in E.
  unfold number in E. rewrite PositiveMap.gempty in E.
  exists (fun e0 => match in_group (table gs') (fst e0) with Some (h, _) => Pos.eqb h (Z.to_pos (f + 1)) | None => false end).
  split; [lia|]. split; [unfold in_group; rewrite Gy; apply Pos.eqb_refl|].
  intros x Hx. unfold in_group in Hx. destruct (table gs' (fst x)) as [[[h n]|]|] eqn:Gx; try discriminate.
  apply Pos.eqb_eq in Hx. subst h. destruct (proj2 (G' (fst x)) _ Gx) as [[u v] [Ox [k Gk]]].
  unfold group in Gk. cbn [fst snd] in Gk. destruct (table read u) as [ul|]; [|discriminate]. destruct (tstrict ul); [|discriminate].
  destruct (table owners k) as [[u' v']|] eqn:Ok; [|discriminate]. cbn [fst snd] in Gk.
  destruct ((u' =? u) && same o v' v) eqn:Q; [|discriminate]. injection Gk as Gk _.
  apply andb_prop in Q. destruct Q as [Q3 Q4]. apply Z.eqb_eq in Q3. apply (same_is o H strings_mean) in Q4. subst u'.
  assert (0 <= f) by (apply table_same in Of; tauto). assert (0 <= k) by (apply table_same in Ok; tauto).
  apply Z2Pos.inj in Gk; [|lia|lia]. replace k with f in Ok by lia. rewrite Of in Ok. injection Ok as <- <-.
  exists v. split; [exact Ox | congruence].
Qed.

Record sourced (a : artifact) (c : claim str) : Prop := {
  core_text : view o (core a) = text_of (meant (cvalue c)) /\ head_ok (cvalue c) = true /\ ordered (cvalue c) = true;
  said_there : exists grammar tools_ calls_ statements_ read name version owners,
    get $"grammar" (cvalue c) = Some grammar /\ get_list $"tools" (cvalue c) = Some tools_ /\
    get_list $"calls" (cvalue c) = Some calls_ /\ get_list $"statements" (cvalue c) = Some statements_ /\
    Forall2 (fun v t => tool_of v = Some t) tools_ read /\
    get_text $"name" grammar = Some name /\ view o name = view o (gname a) /\                               (* C802 *)
    get_text $"version" grammar = Some version /\ view o version = view o (gversion a) /\
    all_stand read calls_ (lines a) (prices a) (latencies a) (epsilons a) owners /\
    (exists mark, (forall t, mark t = true <-> 0 <= t < Z.of_nat (length tools_) /\ In t (map fst owners)) /\ (* M303 *)
       view o (tools a) = text_of (Arr (map meant (kept mark 0 tools_)))) /\
    left_ok (relaxed a) statements_ = true /\                                                             (* C803, in part *)
    (existsb tstrict read = true -> relaxed a = None /\ ambiguous a = false /\ answered a read owners)                            (* C902, C901 *)
}.

Lemma hit_owner n (l : list (Z * str)) t : hit n (fun x => [fst x]) l t = true <-> 0 <= t < n /\ In t (map fst l).
Proof.
  unfold hit. rewrite !andb_true_iff, Z.leb_le, Z.ltb_lt, existsb_exists, in_map_iff. split.
  - intros [B [x [I E]]]. split; [exact B|]. exists x. simpl in E. rewrite orb_false_r in E. apply Z.eqb_eq in E. auto.
  - intros [B [x [E I]]]. split; [exact B|]. exists x. split; [exact I|]. simpl. rewrite orb_false_r. apply Z.eqb_eq. auto.
Qed.

Theorem core_sound a c : core_question a c = 0 -> sourced a c.
Proof.
  unfold core_question. cbv zeta. intros E.
  destruct (head_ok (cvalue c) && ordered (cvalue c) && same o (core a) (print o (meant (cvalue c)))) eqn:E0; [|discriminate]. cbn [negb] in E.
  rewrite !andb_true_iff in E0. destruct E0 as [[Eh E0] E1]. constructor; [split; [apply printed, E1 | split; assumption]|].
  destruct (get $"grammar" (cvalue c)) as [g|]; [|discriminate].
  destruct (get_list $"tools" (cvalue c)) as [ts|]; [|discriminate].
  destruct (get_list $"calls" (cvalue c)) as [cs|]; [|discriminate].
  destruct (get_list $"statements" (cvalue c)) as [ss|]; [|discriminate].
  destruct (get_text $"name" g) as [name|] eqn:N; [|discriminate].
  destruct (get_text $"version" g) as [version|] eqn:V; [|discriminate].
  destruct (each tool_of ts []) as [read|] eqn:T; [|discriminate].
  destruct (same o name (gname a) && same o version (gversion a)) eqn:S; [|discriminate]. cbn [negb] in E.
  destruct (core_calls (table read) (table cs) (lines a) (prices a) (latencies a) (epsilons a) (places c) []) as [owners|] eqn:C; [|discriminate].
  destruct (same o (tools a) _) eqn:M in E; [|discriminate]. cbn [negb] in E.
  destruct (left_ok (relaxed a) ss) eqn:K; [|discriminate]. cbn [negb] in E.
  destruct (strict_ok a read owners (firsts c)) eqn:St; [|discriminate].
  apply andb_prop in S. destruct S as [S1 S2].
  apply each_is in T. destruct T as [read' [-> T]].
  apply core_calls_stand in C. destruct C as [owners' [-> C]]. cbn [rev app] in *.
  exists g, ts, cs, ss, read', name, version, owners'.
  repeat (split; [first [reflexivity | assumption | apply (same_is o H strings_mean); assumption] |]).
  split.
  { exists (hit (len ts 0) (fun x => [fst x]) owners'). split.
    - intros t. rewrite len_is. apply hit_owner.
    - apply (printed (VArr (kept (hit (len ts 0) (fun x => [fst x]) owners') 0 ts))), M. }
  split; [exact K | intros S; eapply strict_answered; eassumption].
Qed.

(* A file that passes, its core looked at: all that `premises` says, and where it is from. *)
Theorem core_verdict_sound file a c d : core_verdict file a c = (0, d) ->
  full_verdict o file a = (0, d) /\ sourced a c.
Proof.
  unfold core_verdict. cbv zeta. destruct (full_verdict o file a) as [k e]. cbn [fst].
  destruct (Z.eqb_spec k 0) as [-> | N]; [|intros E; injection E; congruence].
  destruct (Z.eqb_spec (core_question a c) 0) as [Q | N]; [|intros E; injection E; congruence].
  intros E. split; [exact E | apply core_sound, Q].
Qed.

End Core.
