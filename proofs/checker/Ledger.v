(* The ledger of a session: its bytes as a function of its records, what the records say, and the verdict.
   docs/spec/session.md, sections 1 to 4, 7 and 9; docs/spec/ledger.md, section 1.

   As with artifacts no parser is trusted: a reader says which JSON values the records are, the checker writes them down again,
   each chained to the one before, and the file has to be these bytes.  A form of ledgers that is not looked at is declined. *)

From Coq Require Import List Arith ZArith Lia Bool String.
From Tcc Require Import Automaton Certificates Digest Prefix Session.
From Tcc.Checker Require Import Strings States Sound Json File OneArtifact Weights Core Sessions.
Import ListNotations.
Local Open Scope Z_scope.
Local Notation length := List.length.
Local Notation concat := List.concat.

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

Section Ledger.
Context {str : Type} (o : strings str).
Notation value := (value str).
Notation record := (list (str * value)).
Notation artifact := (artifact str).

(* The bytes. *)
Definition link (h : str) : str * value := (made o $"~", VStr (made o (hex (view o h)))).
Definition zeros : bytes := repeat 0 32.
Fixpoint chained (head : str) (records : list record) (tail : str) (done : list str) : list str :=
  match records with
  | [] => rev_append done [tail]
  | r :: records =>
      let next := hash o (joined o [head; print o (meant o (VObj r))]) in
      chained next records tail (made o [10] :: print o (meant o (VObj (r ++ [link next]))) :: done)
  end.
(* What follows the last line feed is no record. *)
Definition is_ledger (file : str) (records : list record) (tail : str) : bool :=
  forallb (fun r => ordered o (VObj (r ++ [link tail]))) records &&
  forallb (fun c => negb (c =? 10)) (view o tail) &&
  same o file (joined o (chained (made o zeros) records tail [])).

(* Forms of fields. *)
Definition form := value -> bool.
Definition digit16 (c : Z) : bool := ((48 <=? c) && (c <=? 57)) || ((97 <=? c) && (c <=? 102)).
Definition is_hex (n : Z) : form := fun v => match v with VStr s => (size_of o s =? n) && forallb digit16 (view o s) | _ => false end.
Definition is_text : form := fun v => match v with VStr _ => true | _ => false end.
Definition is_number (low high : Z) : form := fun v => match v with VNum z => (low <=? z) && (z <=? high) | _ => false end.
Definition is_yes : form := fun v => match v with VFlag b => b | _ => false end.
Definition is_flag : form := fun v => match v with VFlag _ => true | _ => false end.
Definition is_list (f : form) : form := fun v => match v with VArr l => forallb f l | _ => false end.
Definition is_texts : form := fun v => match v with VObj (m :: l) => forallb (fun m => is_text (snd m)) (m :: l) | _ => false end.
Definition is_who : form := fun v => match v with
  | VStr s => let n := fold_left (fun n c => if (128 <=? c) && (c <? 192) then n else n + 1) (view o s) 0 in (1 <=? n) && (n <=? 255)
  | _ => false end.
Definition any : form := fun _ => true.
Definition most := 2 ^ 53 - 1.
Definition said (k : bytes) (r : record) : bool := match get o k (VObj r) with Some _ => true | None => false end.
Definition text_at (k : bytes) (r : record) : option str := get_text o k (VObj r).
Definition number_at (k : bytes) (r : record) : option Z := match get o k (VObj r) with Some (VNum z) => Some z | _ => None end.
Definition text_is (k t : bytes) (r : record) : bool := match text_at k r with Some s => same o s (made o t) | None => false end.
(* Every member is a field in its form; those that are required are there. *)
Definition fits_fields (required optional : list (bytes * form)) (r : record) : bool :=
  forallb (fun f => said (fst f) r) required &&
  forallb (fun m => existsb (fun f => same o (fst m) (made o (fst f)) && snd f (snd m)) (required ++ optional)) r.
Definition fields_of (macs : bool) (kind : bytes) : option (list (bytes * form) * list (bytes * form)) :=
  let seq := ($"seq", is_number 1 most) in
  let time := is_number 0 (2 ^ 48 - 1) in
  let more (l : list (bytes * form)) := if macs then l else [] in
  let found :=
    if equal_bytes kind $"session" then Some (
      [($"schema", is_text); ($"session_id", is_text); ($"started_ms", time); ($"nonce", is_hex 32); ($"artifact", is_hex 64);
       ($"grammar", is_text); ($"grammar_version", is_text); ($"root_state", is_hex 64); ($"monitors", is_list is_text);
       ($"arguments", any); ($"key_commitment", is_hex 64)], more [($"principal", is_hex 64)])
    else if equal_bytes kind $"call" then Some (
      [seq; ($"call", is_text); ($"open", any); ($"states", is_list (is_number (-1) most)); ($"key", is_hex 32)], [($"ref", is_hex 64)])
    else if equal_bytes kind $"outcome" then Some (
      [seq; ($"outcome", is_text); ($"ms", is_number 0 most)],
      ($"observed", is_texts) :: ($"unforeseen", is_yes) :: ($"result", is_hex 64) :: more [($"answered", is_yes)])
    else if equal_bytes kind $"resolve" then Some (
      [seq; ($"outcome", is_text)], ($"observed", is_texts) :: more [($"who", is_who); ($"at_ms", time)])
    else if equal_bytes kind $"refusal" then Some ([($"tool", is_text); ($"code", is_text)], [])
    else if equal_bytes kind $"end" then Some ([($"abandoned", is_flag)], [])
    else None in
  match found with
  | Some (required, optional) => Some (($"kind", is_text) :: more [($"mac", is_hex 32)] ++ required, optional)
  | None => None
  end.
(* Forms that no theorem is about yet, by the fields that have them. *)
Definition elsewhere : list (bytes * Z) :=
  [($"shadow", 1); ($"given", 2); ($"constants", 2); ($"parent", 3); ($"at_ms", 4); ($"across", 5); ($"execute", 6); ($"took", 6); ($"answers", 2);
   ($"made", 1)].
Definition foreign (kind : bytes) (r : record) : option Z :=
  if equal_bytes kind $"budget" || equal_bytes kind $"asked" then Some 6 else
  match find (fun f => said (fst f) r && negb (equal_bytes kind $"resolve" && equal_bytes (fst f) $"at_ms")) elsewhere with
  | Some f => Some (snd f) | None => None end.

(* What the core and the artifact say of calls. *)
Record book := {
  tools_of : list value;                         (* the core's *)
  btools : Z -> option value; bread : Z -> option (tool str);
  bowners : Z -> option (Z * str);               (* of a call of the artifact its tool, and its text without answers *)
  bvalues : Z -> option (list value);            (* its values *)
  basked : str -> list Z;                        (* of a text the calls of the artifact *)
  bforbids : bool                                (* whether the core forbids anything *)
}.
Definition observed_param (v : value) : option (option (str * list str)) :=
  if is_true (get o $"observed" v) then
    match get_text o $"name" v, get_list o $"values" v with
    | Some n, Some l => match each text_in l [] with Some texts => Some (Some (n, texts)) | None => None end
    | _, _ => None
    end
  else Some None.
(* The observed parameters of a tool: names and values. *)
Definition observed_of (tool : value) : option (list (str * list str)) :=
  match get_list o $"params" tool with
  | Some l => match each observed_param l [] with
              | Some ps => Some (flat_map (fun p => match p with Some p => [p] | None => [] end) ps)
              | None => None
              end
  | None => None
  end.
Fixpoint answered_values (ps : list (param str)) (values : list value) : option (list Z) :=
  match ps, values with
  | [], [] => Some []
  | p :: ps, VNum z :: values => match answered_values ps values with Some l => Some (if pobserved p then z :: l else l) | None => None end
  | _, _ => None
  end.
Definition open_book (a : artifact) (c : claim str) : out book :=
  let v := cvalue c in
  let? ts := due (get_list o $"tools" v) 20 in
  let? cs := due (get_list o $"calls" v) 20 in
  let? fs := due (get_list o $"forbids" v) 20 in
  let? read := due (each (tool_of o) ts []) 20 in
  let? owners := due (core_calls o (table read) (table cs) (lines a) (prices a) (latencies a) (epsilons a) (places c) []) 20 in
  let? _ := only (match relaxed a with None => true | Some _ => false end) 7 in
  let? _ := only (match get o $"monitors" v with None => true | Some _ => false end) 8 in
  let? _ := only (match get o $"given" v with None => true | Some _ => false end) 2 in
  let core := table cs in
  let at_ := table (places c) in
  let found := places_of o (map snd owners) in
  Got {| tools_of := ts; btools := table ts; bread := table read; bowners := table owners;
         bvalues := fun i => match at_ i with
           | Some k => match core k with Some (VArr (_ :: VArr values :: _)) => Some values | _ => None end | None => None end;
         basked := found; bforbids := match fs with [] => false | _ => true end |}.

(* A call that was made. *)
Record made_call := { mtool : Z; manswers : list (Z * list Z); mopen : offer_z }.
Definition called (b : book) (text : str) : out made_call :=
  match basked b text with
  | [] => Refused 21
  | a :: more =>
      let? x := due (bowners b a) 20 in
      let t := fst x in
      let? raw := due (btools b t) 20 in
      let? tl := due (bread b t) 20 in
      let has k := match get o k raw with Some _ => true | None => false end in
      let? _ := only (negb (has $"open" || has $"answers")) 2 in
      let? _ := only (forallb (fun p => match get o $"at" p with None => true | Some _ => false end)
        match get_list o $"params" raw with Some l => l | None => [] end) 2 in
      let? l := due (each (fun i => match bvalues b i with
        | Some values => match answered_values (tparams tl) values with Some l => Some (i, l) | None => None end
        | None => None end) (a :: more) []) 20 in
      Got {| mtool := t; manswers := l; mopen := (a :: more, len (a :: more) 0 =? Core.answers tl) |}
  end.

(* What is told of a call. *)
Fixpoint index_of (n : Z) (l : list str) (s : str) : option Z :=
  match l with [] => None | x :: l => if same o x s then Some n else index_of (n + 1) l s end.
Fixpoint agree (told : list (option Z)) (values : list Z) : bool :=
  match told, values with
  | [], [] => true
  | t :: told, z :: values => match t with Some y => y =? z | None => true end && agree told values
  | _, _ => false
  end.
Definition done_with (b : book) (m : made_call) (r : record) (may_lack : bool) : out known :=
  let? raw := due (btools b (mtool m)) 20 in
  let? ps := due (observed_of raw) 20 in
  let lacks := may_lack && said $"unforeseen" r in
  let given := match get o $"observed" (VObj r) with Some (VObj l) => l | _ => [] end in
  let? _ := need (match ps with [] => negb lacks && negb (said $"observed" r) | _ => true end) 22 in
  let names := len ps 0 in
  let? _ := need (if lacks then len given 0 <? names else len given 0 =? names) 22 in
  let? _ := need (forallb (fun m => existsb (fun p => same o (fst m) (fst p)) ps) given) 22 in
  let? told := due (each (fun p : str * list str => match find (fun m : str * value => same o (fst m) (fst p)) given with
    | None => if lacks then Some (None, len (snd p) 0) else None
    | Some (_, VStr s) => match index_of 0 (snd p) s with Some i => Some (Some i, 1) | None => None end
    | Some _ => None end) ps []) 22 in
  let l := filter (fun x => agree (map fst told) (snd x)) (manswers m) in
  let many := fold_left (fun n (t : option Z * Z) => n * snd t) told 1 in
  Got (Partly (map fst l) (many <=? len l 0)).
Definition told_in (b : book) (m : made_call) (r : record) (resolved : bool) : out (option known) :=
  let nothing := negb (said $"observed" r) && negb (said $"unforeseen" r) in
  if text_is $"outcome" $"done" r then
    let? _ := need (negb (said $"answered" r)) 23 in
    let? k := done_with b m r (negb resolved) in Got (Some k)
  else
    let? _ := need (nothing && negb (said $"result" r)) 23 in
    if text_is $"outcome" $"failed" r then
      if said $"answered" r then
        let? raw := due (btools b (mtool m)) 20 in
        let? _ := need (match get_text o $"errors" raw with Some _ => true | None => false end) 23 in
        let? _ := only (negb (bforbids b)) 9 in
        Got (Some Read)
      else Got (Some Failed)
    else
      let? _ := need (negb resolved && text_is $"outcome" $"unknown" r && negb (said $"answered" r)) 23 in Got None.

(* The walk over the records. *)
Record walk := {
  macs : bool;
  made_ : list made_call;                        (* the last one first *)
  under_way : list (Z * (Z * Z));                (* numbers, each with its tool and the line of its call, the first one first *)
  beside : list (Z * Z);                         (* tools whose calls were under way together *)
  keys : list str; refs : list str;
  course : list (event (chosen Z));              (* the last one first *)
  again : Z;                                     (* calls that are gone through again *)
  over : option bool
}.
Definition with_course (w : walk) (open_ : list (Z * (Z * Z))) (e : list (event (chosen Z))) (more : Z) : walk :=
  {| macs := macs w; made_ := made_ w; under_way := open_; beside := beside w; keys := keys w; refs := refs w;
     course := e ++ course w; again := again w + more; over := over w |}.
Definition without (seq : Z) (l : list (Z * (Z * Z))) : list (Z * (Z * Z)) := filter (fun x => negb (fst x =? seq)) l.
(* The call of that number, and how many follow it. *)
Definition of_number (w : walk) (seq : Z) : out (made_call * Z) :=
  let back := len (made_ w) 0 - seq in
  if (seq <? 1) || (back <? 0) then Refused 24 else
  match nth_error (made_ w) (Z.to_nat back) with Some m => Got (m, back) | None => Refused 24 end.
Definition numbers_in (v : option value) : list Z :=
  match v with Some (VArr l) => flat_map (fun v => match v with VNum z => [z] | _ => [] end) l | _ => [] end.
Definition session_id (ms : Z) (h : bytes) : bytes :=
  let hex12 := fold_left (fun l n => hex_digit (Z.shiftr ms (4 * Z.of_nat n) mod 16) :: l) (seq 0 12) [] in
  let x := hex h in
  let cut a n := firstn n (skipn a x) in
  let variant := match nth 8 h 0 / 16 mod 4 with 0 => 56 | 1 => 57 | 2 => 97 | _ => 98 end in
  firstn 8 hex12 ++ [45] ++ skipn 8 hex12 ++ [45; 55] ++ cut 13%nat 3%nat ++ [45; variant] ++ cut 17%nat 3%nat ++ [45] ++ cut 20%nat 12%nat.
Definition first_record (a : artifact) (digest : str) (r : record) : out walk :=
  let? _ := need (text_is $"kind" $"session" r) 25 in
  let with_macs := text_is $"schema" $"tcc.session/1.1" r in
  let? _ := only (with_macs || text_is $"schema" $"tcc.session/1.0" r) 10 in
  let? _ := match foreign $"session" r with Some w => Declined w | None => Got tt end in
  let? fields := due (fields_of with_macs $"session") 26 in
  let? _ := need (fits_fields (fst fields) (snd fields) r) 26 in
  let? ms := due (number_at $"started_ms" r) 26 in
  let body := filter (fun m => negb (same o (fst m) (made o $"session_id") || same o (fst m) (made o $"mac"))) r in
  let? _ := need (text_is $"session_id" (session_id ms (view o (hash o (print o (meant o (VObj body)))))) r) 27 in
  let? _ := need (text_is $"artifact" (hex (view o digest)) r && text_is $"grammar" (view o (gname a)) r &&
    text_is $"grammar_version" (view o (gversion a)) r &&
    match rev_append (rows a) [] with [] => false | q :: _ => text_is $"root_state" (hex (view o (rdigest q))) r end) 28 in
  let? _ := need (match get o $"monitors" (VObj r) with Some (VArr []) => true | _ => false end) 28 in
  let? _ := only (match get o $"arguments" (VObj r) with
    | Some (VObj [(k, VArr [])]) => same o k (made o $"show") | _ => false end) 2 in
  Got {| macs := with_macs; made_ := []; under_way := []; beside := []; keys := []; refs := []; course := []; again := 0; over := None |}.

(* Calls that may begin beside those under way: 64 of them, 256 records behind the oldest; which tools is asked at the end. *)
Definition begins (w : walk) (line : Z) : bool :=
  match under_way w with
  | [] => true
  | (_, (_, oldest)) :: _ => macs w && (len (under_way w) 0 <? 64) && (line - 1 - oldest <? 256)
  end.
Definition a_call (b : book) (w : walk) (line : Z) (r : record) : out walk :=
  let? text := due (text_at $"call" r) 26 in
  let? key := due (text_at $"key" r) 26 in
  let number := len (made_ w) 0 + 1 in
  let? _ := need (match number_at $"seq" r with Some z => z =? number | None => false end) 24 in
  let? m := called b text in
  let? _ := need (begins w line) 25 in
  let? _ := need (match get o $"open" (VObj r) with Some (VObj []) => true | _ => false end) 29 in
  let c := {| offer := mopen m; agrees := says (fun q => q) (numbers_in (get o $"states" (VObj r))) |} in
  Got {| macs := macs w; made_ := m :: made_ w; under_way := under_way w ++ [(number, (mtool m, line))];
         beside := map (fun x => (fst (snd x), mtool m)) (under_way w) ++ beside w;
         keys := key :: keys w; refs := match text_at $"ref" r with Some s => s :: refs w | None => refs w end;
         course := Called c :: course w; again := again w; over := over w |}.
Definition an_outcome (b : book) (w : walk) (r : record) : out walk :=
  let? number := due (number_at $"seq" r) 26 in
  let? _ := need (existsb (fun x => fst x =? number) (under_way w)) 25 in
  let? m := of_number w number in
  let? k := told_in b (fst m) r false in
  let open_ := without number (under_way w) in
  Got (match k with None => with_course w open_ [] 0 | Some k => with_course w open_ [Told (snd m) k] (snd m) end).
Definition a_resolve (b : book) (w : walk) (r : record) : out walk :=
  let? number := due (number_at $"seq" r) 26 in
  let? _ := need (Bool.eqb (said $"who" r) (said $"at_ms" r)) 26 in
  let? m := of_number w number in
  let? k := told_in b (fst m) r true in
  let open_ := without number (under_way w) in
  match k with Some k => Got (with_course w open_ [Told (snd m) k] (snd m)) | None => Refused 23 end.
Definition codes : list bytes :=
  [$"R101"; $"R102"; $"R103"; $"R104"; $"R105"; $"R106"; $"R201"; $"R202"; $"R203"; $"R207"; $"R301"; $"R302"; $"R304"; $"R305"; $"R307"; $"R308"].
Definition a_refusal (b : book) (w : walk) (r : record) : out walk :=
  let no_tool := text_is $"tool" $"unknown tool" r in
  let a_tool := match text_at $"tool" r with
    | Some s => existsb (fun t => match get_text o $"name" t with Some n => same o n s | None => false end) (tools_of b) | None => false end in
  let? _ := need (existsb (fun c => text_is $"code" c r) codes && (no_tool || (a_tool && negb (text_is $"code" $"R101" r)))) 30 in
  Got w.
Definition an_end (w : walk) (r : record) : out walk :=
  let? _ := need (len (under_way w) 0 <=? (if macs w then 0 else 1)) 25 in
  Got {| macs := macs w; made_ := made_ w; under_way := []; beside := beside w; keys := keys w; refs := refs w;
         course := course w; again := again w; over := Some (is_true (get o $"abandoned" (VObj r))) |}.
Definition a_record (b : book) (w : walk) (line : Z) (r : record) : out walk :=
  let? _ := need (match over w with None => true | Some _ => false end) 25 in
  let? kind := due (text_at $"kind" r) 26 in
  let k := view o kind in
  let? _ := match foreign k r with Some x => Declined x | None => Got tt end in
  let? fields := due (fields_of (macs w) k) 26 in
  let? _ := need (fits_fields (fst fields) (snd fields) r) 26 in
  if equal_bytes k $"call" then a_call b w line r
  else if equal_bytes k $"outcome" then an_outcome b w r
  else if equal_bytes k $"resolve" then a_resolve b w r
  else if equal_bytes k $"refusal" then a_refusal b w r
  else if equal_bytes k $"end" then an_end w r
  else Refused 25.
Fixpoint records_read (b : book) (w : walk) (line : Z) (l : list record) : out walk :=
  match l with [] => Got w | r :: l => let? w := a_record b w line r in records_read b w (line + 1) l end.

(* No key and no reference is of two calls. *)
Definition distinct (l : list str) : bool :=
  let f := places_of o l in forallb (fun s => match f s with [_] => true | _ => false end) l.
(* Tools whose calls were under way together are parallel, and their calls commute. *)
Fixpoint few_pairs (l done : list (Z * Z)) : list (Z * Z) :=
  match l with
  | [] => done
  | (s, u) :: l => few_pairs l (if existsb (fun x => ((fst x =? s) && (snd x =? u)) || ((fst x =? u) && (snd x =? s))) done then done else (s, u) :: done)
  end.
Definition parallel (b : book) (t : Z) : bool := match btools b t with Some v => is_true (get o $"parallel" v) | None => false end.
Definition of_tool (b : book) (t : Z) (call : Z) : bool := match bowners b call with Some x => fst x =? t | None => false end.
Definition may_fail (v : value) : bool := match get o $"errors" v with Some _ => true | None => false end.
Definition together (b : book) (rows : list (row str)) (pairs : list (Z * Z)) : out Datatypes.unit :=
  match pairs with
  | [] => Got tt
  | _ =>
      let? _ := only (negb (bforbids b && existsb may_fail (tools_of b))) 9 in
      let? _ := only (paths rows (fun c => match bowners b c with Some x => parallel b (fst x) | None => false end) <=? 2 ^ 21) 11 in
      need (forallb (fun p => parallel b (fst p) && parallel b (snd p) && commute rows (of_tool b (fst p)) (of_tool b (snd p))) pairs) 25
  end.

(* Conformant, ConformantPrefix and NoClaim of a session that ended; the last two of one that did not. *)
Definition conformant := 0. Definition prefix := 1. Definition no_claim := 2. Definition prefix_so_far := 3. Definition none_so_far := 4.
Definition claimed (rows : list (row str)) (held : list (option Z)) (over : option bool) : out Z :=
  let lost := match held with [None] => true | _ => false end in
  match over with
  | None => Got (if lost then none_so_far else prefix_so_far)
  | Some true => Got (if lost then no_claim else prefix)
  | Some false => if session_may_end rows held then Got conformant else Refused 32
  end.
Definition course_of (a : artifact) (c : claim str) (digest : str) (records : list record) : out walk :=
  match records with
  | [] => Refused 25
  | r :: records => let? b := open_book a c in let? w := first_record a digest r in records_read b w 2 records
  end.
Definition ledger_verdict (a : artifact) (c : claim str) (digest file : str) (records : list record) (tail : str) : out Z :=
  let? _ := need (is_ledger file records tail) 33 in
  match records with
  | [] => Got none_so_far
  | _ =>
      let? b := open_book a c in
      let? w := course_of a c digest records in
      let? _ := need (match over w with Some _ => size_of o tail =? 0 | None => true end) 25 in
      let? _ := need (distinct (keys w) && distinct (refs w)) 34 in
      let? _ := only (again w <=? 2 ^ 20) 12 in
      let? _ := together b (rows a) (few_pairs (beside w) []) in
      let? held := due (session_places (rows a) (rev_append (course w) [])) 31 in
      claimed (rows a) held (over w)
  end.

(* What that says. *)
Variable H : bytes -> bytes.
Hypothesis strings_mean : mean o H.
Definition linked (r : record) (h : bytes) : json := Obj (map (fun m => (view o (fst m), meant o (snd m))) r ++ [($"~", Json.Str (hex h))]).
Fixpoint ledger_bytes (head : bytes) (records : list record) (tail : bytes) : bytes :=
  match records with
  | [] => tail
  | r :: records => let next := H (head ++ text_of (meant o (VObj r))) in text_of (linked r next) ++ [10] ++ ledger_bytes next records tail
  end.

Lemma chained_is records tail : forall head done, concat (map (view o) (chained head records tail done)) =
  concat (map (view o) (rev done)) ++ ledger_bytes (view o head) records (view o tail).
Proof.
  induction records as [|r records IH]; intros head done; cbn [chained ledger_bytes].
  - rewrite rev_append_rev, map_app, concat_app. cbn [map concat]. rewrite app_nil_r. reflexivity.
  - cbv zeta. rewrite IH. cbn [rev]. rewrite !map_app, !concat_app. cbn [map concat]. rewrite !app_nil_r, <- !app_assoc. f_equal.
    set (next := hash o (joined o [head; print o (meant o (VObj r))])).
    assert (N : view o next = H (view o head ++ text_of (meant o (VObj r)))).
    { unfold next. rewrite (hash_is o H) by exact strings_mean. rewrite (joined_is o H) by exact strings_mean. cbn [map concat].
      rewrite app_nil_r, (print_is o H); [reflexivity | exact strings_mean | apply (meant_plain o H strings_mean)]. }
    rewrite (print_is o H); [|exact strings_mean | apply (meant_plain o H strings_mean)]. rewrite (made_is o H) by exact strings_mean.
    rewrite <- N. f_equal. unfold linked. cbn [meant]. rewrite map_app. cbn [map link fst snd meant].
    rewrite !(made_is o H) by exact strings_mean. rewrite (low8_same (hex (view o next))) by (apply hex_bytes, (view_bytes o H strings_mean)).
    reflexivity.
Qed.
Lemma is_ledger_bytes file records tail : is_ledger file records tail = true -> view o file = ledger_bytes zeros records (view o tail).
Proof.
  unfold is_ledger. rewrite !andb_true_iff. intros [_ E]. apply (same_is o H strings_mean) in E. rewrite E.
  rewrite (joined_is o H) by exact strings_mean. rewrite chained_is. cbn [rev map concat app]. rewrite (made_is o H) by exact strings_mean.
  reflexivity.
Qed.

Lemma few_pairs_keeps l : forall done x, In x done -> In x (few_pairs l done).
Proof.
  induction l as [|[s u] l IH]; intros done x Hx; cbn [few_pairs]; [exact Hx|]. apply IH.
  destruct (existsb _ done); [exact Hx | right; exact Hx].
Qed.
Lemma few_pairs_all l : forall done s u, In (s, u) l -> In (s, u) (few_pairs l done) \/ In (u, s) (few_pairs l done).
Proof.
  induction l as [|[s u] l IH]; intros done s' u' Hi; [destruct Hi|]. destruct Hi as [E | Hin]; cbn [few_pairs]; [|exact (IH _ _ _ Hin)].
  injection E as <- <-. destruct (existsb _ done) eqn:X.
  - apply existsb_exists in X. destruct X as [[y z] [Hy X]]. cbn [fst snd] in X. rewrite orb_true_iff, !andb_true_iff, !Z.eqb_eq in X.
    destruct X as [[-> ->] | [-> ->]]; [left | right]; apply few_pairs_keeps, Hy.
  - left. apply few_pairs_keeps. left. reflexivity.
Qed.

(* A verdict that is given, about an artifact that passes: the file is the chain of these records; what they say of calls and
   outcomes conforms (Sessions.v); it ends where a plan ends, where that is claimed; and of calls that were under way together
   the effects come to the same in either order. *)
Theorem ledger_sound afile a c digest file records tail claim :
  core_verdict o afile a c = (0, digest) -> ledger_verdict a c digest file records tail = Got claim ->
  view o file = ledger_bytes zeros records (view o tail) /\
  exists ok : states_ok o (fraction_bits a) (room_of a) (lines a) (rows a) = true,
  let D := columns o H strings_mean (fraction_bits a) (room_of a) (lines a) (rows a) ok in
  (records = [] /\ claim = none_so_far) \/
  exists b w, open_book a c = Got b /\ course_of a c digest records = Got w /\
    (forall xs, resolves (chosen Z) Sessions.answers closed (told_of (history [] (rev (course w)))) xs ->
      ((exists P, accepted D (root (rows a)) (trace xs ++ P)) \/
       exists x xs', xs = x :: xs' /\ exists P, accepted D (root (rows a)) (trace xs' ++ P)) /\
      ((forall x, In (Called x) (rev (course w)) -> exists y, offer x = ([y], true)) -> exists P, accepted D (root (rows a)) (trace xs ++ P)) /\
      (claim = conformant -> over w = Some false /\ accepted D (root (rows a)) (trace xs))) /\
    (forall s u x y, In (s, u) (beside w) -> of_tool b s x = true -> of_tool b u y = true -> 0 <= x -> 0 <= y ->
      forall q, 0 <= q < Z.of_nat (length (rows a)) -> forall P,
      accepted D (Z.to_nat q) (Z.to_nat x :: Z.to_nat y :: P) <-> accepted D (Z.to_nat q) (Z.to_nat y :: Z.to_nat x :: P)).
Proof.
  intros V L. apply (core_verdict_sound o H strings_mean) in V. destruct V as [V _].
  destruct (premises o H strings_mean afile a digest V) as [_ [_ [_ [ok _]]]].
  unfold ledger_verdict in L. unfold need at 1 in L. destruct (is_ledger file records tail) eqn:F; [|discriminate]. cbn [bind] in L.
  split; [apply is_ledger_bytes, F|]. exists ok. cbv zeta.
  destruct records as [|r records]; [left; split; [reflexivity | congruence] | right].
  destruct (open_book a c) as [b| |] eqn:B; try discriminate. cbn [bind] in L.
  destruct (course_of a c digest (r :: records)) as [w| |] eqn:W; try discriminate. cbn [bind] in L.
  destruct (need _ 25) as [[]| |] in L; try discriminate. cbn [bind] in L.
  destruct (need _ 34) as [[]| |] in L; try discriminate. cbn [bind] in L.
  destruct (only _ 12) as [[]| |] in L; try discriminate. cbn [bind] in L.
  destruct (together b (rows a) (few_pairs (beside w) [])) as [[]| |] eqn:T; try discriminate. cbn [bind] in L.
  destruct (session_places (rows a) (rev_append (course w) [])) as [held|] eqn:S; [|discriminate]. cbn [due bind] in L.
  rewrite rev_append_rev, app_nil_r in S.
  exists b, w. split; [reflexivity|]. split; [reflexivity|]. split.
  - intros xs Hx. destruct (conforms_sound o H strings_mean _ _ _ _ ok _ _ S xs Hx) as [C1 [C2 C3]].
    split; [exact C1|]. split; [exact C2|]. intros ->. unfold claimed in L.
    destruct (over w) as [[|]|]; [destruct (match held with [None] => true | _ => false end); discriminate | |
      destruct (match held with [None] => true | _ => false end); discriminate].
    split; [reflexivity|]. apply C3. destruct (session_may_end (rows a) held); [reflexivity | discriminate].
  - intros s u x y Hb Ox Oy Hx Hy q Hq P. assert (K : forall s u, In (s, u) (few_pairs (beside w) []) ->
      commute (rows a) (of_tool b s) (of_tool b u) = true).
    { intros s0 u0 Hin. unfold together in T. destruct (few_pairs (beside w) []) as [|p ps]; [destruct Hin|].
      destruct (only _ 9) as [[]| |] in T; try discriminate. cbn [bind] in T.
      destruct (only _ 11) as [[]| |] in T; try discriminate. cbn [bind] in T. unfold need in T.
      destruct (forallb _ _) eqn:A in T; [|discriminate]. rewrite forallb_forall in A. specialize (A _ Hin). cbn [fst snd] in A.
      rewrite !andb_true_iff in A. apply A. }
    destruct (few_pairs_all (beside w) [] s u Hb) as [Hin | Hin]; apply K in Hin.
    + exact (effects_in_either_order o H strings_mean _ _ _ _ ok _ _ _ _ Hin Ox Oy Hx Hy q Hq P).
    + symmetry. exact (effects_in_either_order o H strings_mean _ _ _ _ ok _ _ _ _ Hin Oy Ox Hy Hx q Hq P).
Qed.
End Ledger.
