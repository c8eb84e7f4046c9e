(* The ledger of a session: its bytes as a function of its records, what the records say, and the verdict.
   docs/spec/session.md, sections 1 to 4, 7 and 9; docs/spec/ledger.md, section 1.

   As with artifacts no parser is trusted: a reader says which JSON values the records are, the checker writes them down again,
   each chained to the one before, and the file has to be these bytes.  A form of ledgers that is not looked at is declined. *)

From Coq Require Import List Arith ZArith Lia Bool String.
From Tcc Require Import Automaton Certificates Digest Prefix Session Monitors.
From Tcc.Checker Require Import Strings States Sound Json File OneArtifact Weights Core Left Sessions Monitored Shown.
Import ListNotations.
Local Open Scope Z_scope.
Local Notation length := List.length.
Local Notation concat := List.concat.

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

(* Monitors of version 1.1, as the core has them. *)
Record selection := { sel_tool : Z; sel_where : list (Z * list Z) }.
Inductive rule :=
| ROrder (m : kind) (first second : selection) (same_names : list (str * str))
| RUses (of_calls : selection) (per : str) (at_most : Z)
| RSum (tool : Z) (param : str) (at_most : Z).   (* in units of 10^-400; what is not shown is asserted *)
Definition numbers_of (l : list value) : option (list Z) := each (fun v => match v with VNum z => Some z | _ => None end) l [].
Definition selection_of (v : value) : option selection :=
  match get o $"tool" v, get_list o $"where" v with
  | Some (VNum t), Some w =>
      match each (fun v => match v with
        | VArr [VNum i; VArr l] => match numbers_of l with Some l => Some (i, l) | None => None end | _ => None end) w [] with
      | Some l => Some {| sel_tool := t; sel_where := l |}
      | None => None
      end
  | _, _ => None
  end.
Definition kind_of (v : value) : option kind :=
  let is k t := match get_text o k v with Some s => same o s (made o t) | None => false end in
  if is $"kind" $"require" then (if is $"order" $"before" then Some require_before else if is $"order" $"each" then Some require_each else None)
  else if is $"kind" $"forbid" then (if is $"order" $"before" then Some forbid_before else if is $"order" $"with" then Some forbid_with else None)
  else None.
Definition name_text (s : str) : str := made o (written (view o s)).
Definition rule_of (tools : Z -> option (tool str)) (v : value) : out (rule * str) :=
  let kind_is t := match get_text o $"kind" v with Some s => same o s (made o t) | None => false end in
  let part k := match get o k v with Some x => match selection_of x, selection_text o tools x with Some s, Some t => Some (s, t) | _, _ => None end | None => None end in
  let words l := joined o l in
  match kind_of v with
  | Some m =>
      let? one := due (part $"first") 20 in
      let? other := due (part $"second") 20 in
      let? l := due (get_list o $"same" v) 20 in
      let? names := due (each (fun v => match v with VArr [VStr a; VStr b] => Some (a, b) | _ => None end) l []) 20 in
      let pair (n : str * str) := if same o (fst n) (snd n) then name_text (fst n) else words [name_text (fst n); made o $" = "; name_text (snd n)] in
      let how := match m with require_before => $"require " | require_each => $"require " | _ => $"forbid " end in
      let middle := match m with require_each => $" before each " | forbid_with => $" with " | _ => $" before " end in
      Got (ROrder m (fst one) (fst other) names,
        words (made o how :: snd one :: made o middle :: snd other :: made o $" same " :: between (made o $", ") (map pair names)))
  | None =>
      if kind_is $"uses" then
        let? one := due (part $"of") 20 in
        let? per := due (get_text o $"per" v) 20 in
        let? x := due (get o $"value" v) 20 in
        match x with
        | VNum n => let? _ := only (0 <=? n) 13 in
            Got (RUses (fst one) per n, words [made o $"limit uses("; snd one; made o $") per "; name_text per; made o $" <= "; made o (decimal n)])
        | _ => Declined 13
        end
      else if kind_is $"sum" then
        let? n := due (match get o $"tool" v with Some (VNum t) => Some t | _ => None end) 20 in
        let? t := due (tools n) 20 in
        let? p := due (get_text o $"param" v) 20 in
        let? x := due (get_text o $"value" v) 20 in
        let? d := due (decimal_in (view o x)) 20 in
        Got (RSum n p (in_units d), words [made o $"limit sum("; tname t; made o $"."; name_text p; made o $") <= "; x])
      else Declined 8
  end.
Fixpoint rules_of (tools : Z -> option (tool str)) (l : list value) : out (list (rule * str)) :=
  match l with
  | [] => Got []
  | v :: l => let? r := rule_of tools v in let? more := rules_of tools l in Got (r :: more)
  end.
(* Forbids of the core: patterns, as ranges of its calls; `with` is in any order; of neighbours. *)
Inductive ban := Ban (both : bool) (first second : list (Z * Z)) | Neighbours (l : list (list (Z * Z))).
Definition range_of (v : value) : option (Z * Z) := match v with VArr [VNum lo; VNum hi] => Some (lo, hi) | _ => None end.
Definition pattern_of (patterns : Z -> option value) (v : value) : option (list (Z * Z)) :=
  match v with VNum n => match patterns n with Some (VArr l) => each range_of l [] | _ => None end | _ => None end.
Definition ban_of (patterns : Z -> option value) (v : value) : option ban :=
  let pattern := pattern_of patterns in
  match v with
  | VArr [VStr k; a; b] =>
      match pattern a, pattern b with
      | Some x, Some y => if same o k (made o $"before") then Some (Ban false x y) else if same o k (made o $"with") then Some (Ban true x y) else None
      | _, _ => None
      end
  | VArr [VStr k; VArr l] => if same o k (made o $"next") then match each pattern l [] with Some l => Some (Neighbours l) | None => None end else None
  | _ => None
  end.
Definition in_ranges (l : list (Z * Z)) (n : Z) : bool := existsb (fun r => (fst r <=? n) && (n <? snd r)) l.
(* Of a text without answers the calls of the core. *)
Definition core_text (tools : Z -> option (tool str)) (v : value) : option str :=
  match v with
  | VArr (VNum t :: VArr values :: _) => match tools t with Some tl => call_text o false tl values | None => None end
  | _ => None
  end.

(* Statements that the automaton leaves to the run, over the calls of the artifact; and which tools one orders one against the other. *)
Record left_one := { says_so : statement; orders : Z -> Z -> bool }.
Definition large_in (v : value) : option Z :=
  let z := match v with
    | VNum z => Some z
    | VStr s => match view o s with 45 :: l => match digits_in l 0 with Some z => Some (- z) | None => None end | l => digits_in l 0 end
    | _ => None end in
  match z with Some z => if is_large o v z then Some z else None | None => None end.
Definition tool_in (v : value) : option Z := match v with VArr (VNum t :: _) => Some t | _ => None end.
Definition values_in (v : value) : option (list value) := match v with VArr (_ :: VArr values :: _) => Some values | _ => None end.
Section Left.
Variables (a : artifact) (tools : Z -> option (tool str)) (core patterns : Z -> option value).
Variables (at_ : Z -> option Z) (owners : list Z).        (* of a call of the artifact its place in the core; of a call of the core its tool *)
Definition set_of (l : list (Z * Z)) (c : Z) : bool := match at_ c with Some k => in_ranges l k | None => false end.
Fixpoint touches (n : Z) (owners : list Z) (l : list (Z * Z)) (t : Z) : bool :=
  match owners with [] => false | x :: more => ((x =? t) && in_ranges l n) || touches (n + 1) more l t end.
Definition crossing (f s : list (Z * Z)) (t u : Z) : bool :=
  let has := touches 0 owners in (has f t && has s u) || (has f u && has s t).
Definition left_require (v : value) : out left_one :=
  match v with
  | VArr [VStr k; x; y] =>
      let? f := due (pattern_of patterns x) 20 in
      let? s := due (pattern_of patterns y) 20 in
      let one how := Got {| says_so := how (set_of f) (set_of s); orders := crossing f s |} in
      if same o k (made o $"before") then one Before else if same o k (made o $"after") then one After
      else if same o k (made o $"each") then one Each else Refused 20
  | _ => Refused 20
  end.
Definition left_forbid (v : value) : out left_one :=
  match ban_of patterns v with
  | Some (Ban both f s) => Got {| says_so := (if both then NeverWith else NeverBefore) (set_of f) (set_of s); orders := crossing f s |}
  | Some (Neighbours (x :: l)) => Got {| says_so := NeverNext (map set_of (x :: l));
      orders := fun t u => existsb (fun r => touches 0 owners r t || touches 0 owners r u) (x :: l) |}
  | _ => Refused 20
  end.
(* What each call adds to a limit. *)
Definition selected (s : selection) (k : Z) : option Z :=
  match core k with
  | Some v => match tool_in v, values_in v with
      | Some t, Some l => Some (one_of (fun t => (t =? sel_tool s) && forallb (fun w =>
          match table l (fst w) with Some (VNum z) => existsb (Z.eqb z) (snd w) | _ => false end) (sel_where s)) t)
      | _, _ => None end
  | None => None
  end.
Definition summed (of : value) (k : Z) : option Z :=
  match get o $"tool" of, get o $"param" of, core k with
  | Some (VNum t), Some (VNum i), Some v =>
      match tool_in v, values_in v, tools t with
      | Some u, Some l, Some tl =>
          if negb (u =? t) then Some 0 else
          match table (tparams tl) i, table l i with
          | Some p, Some (VNum z) => match pvalues p z with Some s => if size_of o s =? 0 then Some 0 else nano_in (view o s) | None => None end
          | _, _ => None
          end
      | _, _, _ => None
      end
  | _, _, _ => None
  end.
Definition amounts_of (places : list Z) (kind : bytes) (of : option value) : option (list Z) :=
  if equal_bytes kind $"depth" then Some (map (fun _ => 1) places)
  else if equal_bytes kind $"price" then Some (prices a)
  else if equal_bytes kind $"latency" then Some (latencies a)
  else if equal_bytes kind $"epsilon" then Some (epsilons a)
  else if equal_bytes kind $"cost" then Some (map lhigh (lines a))
  else match of with
  | Some v =>
      if equal_bytes kind $"uses" then match selection_of v with Some s => each (selected s) places [] | None => None end
      else if equal_bytes kind $"sum" then each (summed v) places [] else None
  | None => None
  end.
Definition left_limit (places : list Z) (v : value) : out left_one :=
  let? kind := due (get_text o $"kind" v) 20 in
  let? op := due (get_text o $"op" v) 20 in
  let? n := due (match get o $"value" v with Some x => large_in x | None => None end) 20 in
  let? amounts := due (amounts_of places (view o kind) (get o $"of" v)) 20 in
  let? _ := only (forallb (Z.leb 0) amounts && (0 <=? n)) 7 in
  let listed := table amounts in
  let amount c := match listed c with Some x => x | None => 0 end in
  let free _ _ := false in
  if same o op (made o $"<=") then Got {| says_so := AtMost amount n; orders := free |}
  else if same o op (made o $">=") && equal_bytes (view o kind) $"uses" then Got {| says_so := AtLeast (fun c => 0 <? amount c) n; orders := free |}
  else Refused 20.
Fixpoint each_left (f : value -> out left_one) (of : Z -> option value) (l : list Z) : out (list left_one) :=
  match l with
  | [] => Got []
  | i :: l => let? v := due (of i) 20 in let? x := f v in let? more := each_left f of l in Got (x :: more)
  end.
Definition left_statements (places : list Z) (forbids limits requires : list value) : out (list left_one) :=
  match relaxed a with
  | None => Got []
  | Some (f, l, r) =>
      let? l := each_left (left_limit places) (table limits) l in
      let? r := each_left left_require (table requires) r in
      let? f := each_left left_forbid (table forbids) f in
      Got (l ++ r ++ f)
  end.
End Left.

(* A call as a monitor sees it: the texts of its keys, and what it adds. *)
Record look := { lfirst : option str; lsecond : option str; lbinds : list (Z * list Z); ladds : Z }.

(* What the core and the artifact say of calls. *)
Record book := {
  tools_of : list value;                         (* the core's *)
  btools : Z -> option value; bread : Z -> option (tool str);
  bowners : Z -> option (Z * str);               (* of a call of the artifact its tool, and its text without answers *)
  bvalues : Z -> option (list value);            (* its values *)
  basked : str -> list Z;                        (* of a text the calls of the artifact *)
  bbans : list ban;                              (* what the core forbids *)
  bfails : Z -> bool;                            (* whether a call of the core is of a tool of which errors mean failed *)
  bcore : list str;                              (* of its calls the texts without answers *)
  brules : list (rule * str);                    (* its monitors, with their texts *)
  bleft : list left_one                          (* statements that the automaton leaves to the run *)
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
(* No member of the core is left aside that may say more; of `pass`, by which nothing is decided, the form alone is looked at. *)
Definition members : list bytes :=
  [$"calls"; $"forbids"; $"format"; $"goals"; $"grammar"; $"limits"; $"monitors"; $"pass"; $"patterns"; $"plan"; $"requires"; $"rules"; $"start";
   $"tools"; $"version"].
Fixpoint rising_words (least : Z) (l : list value) : bool :=
  match l with
  | [] => true
  | VStr s :: l =>
      let at_ := if same o s (made o $"input") then 1 else if same o s (made o $"prompts") then 2 else if same o s (made o $"resources") then 3 else 0 in
      (least <? at_) && rising_words at_ l
  | _ => false
  end.
Definition members_known (v : value) : out Datatypes.unit :=
  let? _ := only (match v with VObj l => forallb (fun m => existsb (fun k => same o (fst m) (made o k)) members) l | _ => false end) 15 in
  need (match get o $"pass" v with None => true | Some (VArr (x :: l)) => rising_words 0 (x :: l) | Some _ => false end) 20.
Definition open_book (a : artifact) (c : claim str) : out book :=
  let v := cvalue c in
  let? ts := due (get_list o $"tools" v) 20 in
  let? cs := due (get_list o $"calls" v) 20 in
  let? fs := due (get_list o $"forbids" v) 20 in
  let? patterns := due (get_list o $"patterns" v) 20 in
  let? read := due (each (tool_of o) ts []) 20 in
  let? owners := due (core_calls o (table read) (table cs) (lines a) (prices a) (latencies a) (epsilons a) (places c) []) 20 in
  let? rules := match get o $"monitors" v with None => Got [] | Some (VArr l) => rules_of (table read) l | Some _ => Refused 20 end in
  let? _ := only (negb (ambiguous a)) 14 in
  let? _ := only (match get o $"given" v with None => true | Some _ => false end) 2 in
  let? _ := members_known v in
  let core := table cs in
  let at_ := table (places c) in
  let found := places_of o (map snd owners) in
  let pattern := table patterns in
  let? bans := due (each (ban_of pattern) fs []) 20 in
  let? texts := due (each (core_text (table read)) cs []) 20 in
  let? ls := due (get_list o $"limits" v) 20 in
  let? rs := due (get_list o $"requires" v) 20 in
  let? of_tools := due (each tool_in cs []) 20 in
  let? left_ := left_statements a (table read) core pattern at_ of_tools (places c) fs ls rs in
  let raw := table ts in
  let fails i := match core i with
    | Some (VArr (VNum t :: _)) => match raw t with Some x => match get o $"errors" x with Some _ => true | None => false end | None => false end
    | _ => false end in
  Got {| tools_of := ts; btools := table ts; bread := table read; bowners := table owners;
         bvalues := fun i => match at_ i with
           | Some k => match core k with Some (VArr (_ :: VArr values :: _)) => Some values | _ => None end | None => None end;
         basked := found; bbans := bans; bfails := fails; bcore := texts; brules := rules; bleft := left_ |}.

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
      let? _ := only (negb (has $"answers")) 2 in
      let fields k := match get_list o k raw with Some l => l | None => [] end in
      let? _ := only (forallb (fun p => match get o $"at" p with None => true | Some _ => false end) (fields $"params" ++ fields $"open")) 2 in
      let? l := due (each (fun i => match bvalues b i with
        | Some values => match answered_values (tparams tl) values with Some l => Some (i, l) | None => None end
        | None => None end) (a :: more) []) 20 in
      Got {| mtool := t; manswers := l; mopen := (a :: more, len (a :: more) 0 =? Core.answers tl) |}
  end.

(* Open arguments: of each a digest, with type byte and text where it is shown. *)
Definition named (p : value) (s : str) : bool := match get_text o $"name" p with Some n => same o n s | None => false end.
Definition open_params (raw : value) : list value := match get_list o $"open" raw with Some l => l | None => [] end.
Definition open_name (t : tool str) (p : value) : str :=
  match get_text o $"name" p with Some n => joined o [tname t; made o [46]; name_text n] | None => made o [] end.
(* One that is shown, as its type byte and text, and its digest. *)
Definition open_entry (t : tool str) (raw : value) (show : list str) (m : str * value) : out (list (str * str)) :=
  let? p := due (find (fun p => named p (fst m)) (open_params raw)) 29 in
  let? d := due (get_text o $"digest" (snd m)) 29 in
  let? _ := need (is_hex 64 (VStr d)) 29 in
  let name := open_name t p in
  match snd m with
  | VObj [_] => let? _ := need (negb (existsb (fun s => same o s name) show)) 29 in Got []
  | VObj [_; _; _] =>
      let? _ := need (existsb (fun s => same o s name) show) 29 in
      let? kind := due (get_text o $"type" (snd m)) 29 in
      let? text := due (get_text o $"value" (snd m)) 29 in
      let? _ := fits_value o p kind text in Got [(joined o [kind; text], d)]
  | _ => Refused 29
  end.
Fixpoint open_entries (t : tool str) (raw : value) (show : list str) (given : list (str * value)) : out (list (str * str)) :=
  match given with
  | [] => Got []
  | m :: given => let? l := open_entry t raw show m in let? more := open_entries t raw show given in Got (l ++ more)
  end.
Definition open_fits (raw : value) (given : list (str * value)) : bool :=
  forallb (fun p => is_true (get o $"optional" p) || existsb (fun m => named p (fst m)) given) (open_params raw).
(* The text of a parameter's value: of a listed one as it is listed, else the digest. *)
Fixpoint listed_text (ps : list value) (values : list value) (name : str) : option str :=
  match ps, values with
  | p :: ps, VNum z :: values =>
      if match get_text o $"name" p with Some n => same o n name | None => false end
      then match get_list o $"values" p with Some l => match table l z with Some (VStr s) => Some s | _ => None end | None => None end
      else listed_text ps values name
  | _, _ => None
  end.
Definition key_text (ps : list value) (values : list value) (given : list (str * value)) (names : list str) : str :=
  print o (meant o (VArr (map (fun n => VStr match listed_text ps values n with
    | Some s => s
    | None => match get o (view o n) (VObj given) with Some x => match get_text o $"digest" x with Some d => d | None => made o [] end | None => made o [] end
    end) names))).
Definition param_observed (ps : list value) (i : Z) : bool := match table ps i with Some p => is_true (get o $"observed" p) | None => false end.
Definition selects (ps : list value) (values : list value) (tool : Z) (s : selection) : bool :=
  (sel_tool s =? tool) && forallb (fun w => param_observed ps (fst w) ||
    match table values (fst w) with Some (VNum z) => existsb (Z.eqb z) (snd w) | _ => false end) (sel_where s).
(* What a selection binds of observed parameters, by their place among these. *)
Definition bound_observed (ps : list value) (s : selection) : list (Z * list Z) :=
  flat_map (fun w => if param_observed ps (fst w)
    then [(len (filter (fun p => is_true (get o $"observed" p)) (firstn (Z.to_nat (fst w)) ps)) 0, snd w)] else []) (sel_where s).
Definition look_of (ps values : list value) (tool : Z) (given : list (str * value)) (r : rule) : look :=
  match r with
  | ROrder _ one other names =>
      let mine := selects ps values tool one in
      {| lfirst := if mine then Some (key_text ps values given (map fst names)) else None;
         lsecond := if selects ps values tool other then Some (key_text ps values given (map snd names)) else None;
         lbinds := if mine then bound_observed ps one else []; ladds := 0 |}
  | RUses calls per _ =>
      {| lfirst := None; lsecond := if selects ps values tool calls then Some (key_text ps values given [per]) else None; lbinds := []; ladds := 1 |}
  | RSum t name _ =>
      let shown := match get o (view o name) (VObj given) with Some x => get_text o $"value" x | None => None end in
      {| lfirst := None; lsecond := if t =? tool then Some (made o []) else None; lbinds := [];
         ladds := match shown with Some s => match decimal_in (view o s) with Some d => in_units d | None => 0 end | None => 0 end |}
  end.
Definition looks_of (b : book) (m : made_call) (given : list (str * value)) (show : list str) : out (list look * list (str * str)) :=
  let? raw := due (btools b (mtool m)) 20 in
  let? t := due (bread b (mtool m)) 20 in
  let? _ := need (open_fits raw given) 29 in
  let? shown := open_entries t raw show given in
  let ps := match get_list o $"params" raw with Some l => l | None => [] end in
  let? values := due (match fst (mopen m) with a :: _ => bvalues b a | [] => None end) 20 in
  Got (map (fun r => look_of ps values (mtool m) given (fst r)) (brules b), shown).

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
  Got (Partly (map fst l) (many <=? len l 0) (map fst told)).
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
        Got (Some Read)
      else Got (Some Failed)
    else
      let? _ := need (negb resolved && text_is $"outcome" $"unknown" r && negb (said $"answered" r)) 23 in Got None.

(* The walk over the records. *)
Record walk := {
  macs : bool;
  many : Z; made_ : list made_call;              (* how many calls, and which, the last one first *)
  under_way : list (Z * (Z * Z));                (* numbers, each with its tool and the line of its call, the first one first *)
  beside : list (Z * Z);                         (* tools whose calls were under way together *)
  keys : list str; refs : list str;
  show : list str; values : list (str * str);    (* names of what is shown; values that are, with their digests *)
  course : list (event (chosen spot * (list look * str)));  (* the last one first *)
  again : Z;                                     (* calls that are gone through again *)
  over : option bool
}.
Definition with_course (w : walk) (open_ : list (Z * (Z * Z))) (e : list (event (chosen spot * (list look * str)))) (more : Z) : walk :=
  {| macs := macs w; many := many w; made_ := made_ w; under_way := open_; beside := beside w; keys := keys w; refs := refs w; show := show w; values := values w;
     course := e ++ course w; again := again w + more; over := over w |}.
Definition without (seq : Z) (l : list (Z * (Z * Z))) : list (Z * (Z * Z)) := filter (fun x => negb (fst x =? seq)) l.
(* The call of that number, and how many follow it. *)
Definition of_number (w : walk) (seq : Z) : out (made_call * Z) :=
  let back := many w - seq in
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
(* What may be shown: open parameters and answers. *)
Definition shown_names (b : book) : list str :=
  flat_map (fun v => match tool_of o v with
    | Some t => map (open_name t) (open_params v ++ match get_list o $"answers" v with Some l => l | None => [] end)
    | None => [] end) (tools_of b).
Fixpoint rises (l : list str) : bool := match l with s :: (x :: _) as l => less o s x && rises l | _ => true end.
Definition first_record (b : book) (a : artifact) (digest : str) (r : record) : out walk :=
  let known := places_of o (shown_names b) in
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
  let? texts := due (match get o $"monitors" (VObj r) with Some (VArr l) => each text_in l [] | _ => None end) 26 in
  let? _ := need (same_texts o texts (map snd (brules b))) 28 in
  let? show_ := due (match get o $"arguments" (VObj r) with
    | Some (VObj [(k, VArr l)]) => if same o k (made o $"show") then each text_in l [] else None | _ => None end) 26 in
  let? _ := need (rises show_ && forallb (fun s => match known s with [] => false | _ => true end) show_) 28 in
  Got {| macs := with_macs; many := 0; made_ := []; under_way := []; beside := []; keys := []; refs := []; show := show_; values := [];
       course := []; again := 0; over := None |}.

(* Calls that may begin beside those under way: 64 of them, 256 records behind the oldest; which tools is asked at the end. *)
Definition begins (w : walk) (line : Z) : bool :=
  match under_way w with
  | [] => true
  | (_, (_, oldest)) :: _ => macs w && (len (under_way w) 0 <? 64) && (line - 1 - oldest <? 256)
  end.
Definition a_call (b : book) (w : walk) (line : Z) (r : record) : out walk :=
  let? text := due (text_at $"call" r) 26 in
  let? key := due (text_at $"key" r) 26 in
  let number := many w + 1 in
  let? _ := need (match number_at $"seq" r with Some z => z =? number | None => false end) 24 in
  let? m := called b text in
  let? _ := need (begins w line) 25 in
  let? given := due (match get o $"open" (VObj r) with Some (VObj l) => Some l | _ => None end) 29 in
  let? seen := looks_of b m given (show w) in
  let looks := fst seen in
  let c := {| offer := mopen m; agrees := says fst (numbers_in (get o $"states" (VObj r))) |} in
  Got {| macs := macs w; many := number; made_ := m :: made_ w; under_way := under_way w ++ [(number, (mtool m, line))];
         beside := map (fun x => (fst (snd x), mtool m)) (under_way w) ++ beside w;
         keys := key :: keys w; refs := match text_at $"ref" r with Some s => s :: refs w | None => refs w end;
         show := show w; values := rev_append (snd seen) (values w);
         course := Called (c, (looks, text)) :: course w; again := again w; over := over w |}.
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
  Got {| macs := macs w; many := many w; made_ := made_ w; under_way := []; beside := beside w; keys := keys w; refs := refs w; show := show w; values := values w;
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
(* A statement beside the automaton orders one of two tools against the other. *)
Definition ordered_by (r : rule) (s u : Z) : bool :=
  match r with
  | ROrder _ one other _ => ((sel_tool one =? s) && (sel_tool other =? u)) || ((sel_tool one =? u) && (sel_tool other =? s))
  | _ => false
  end.
Definition may_fail (v : value) : bool := match get o $"errors" v with Some _ => true | None => false end.
Definition together (b : book) (rows : list (row str)) (pairs : list (Z * Z)) : out Datatypes.unit :=
  match pairs with
  | [] => Got tt
  | _ =>
      let? _ := only (negb (match bbans b with [] => false | _ => true end && existsb may_fail (tools_of b))) 9 in
      let? _ := only (paths rows (fun c => match bowners b c with Some x => parallel b (fst x) | None => false end) <=? 2 ^ 21) 11 in
      need (forallb (fun p => parallel b (fst p) && parallel b (snd p) && negb (existsb (fun r => ordered_by (fst r) (fst p) (snd p)) (brules b)) &&
        negb (existsb (fun x => orders x (fst p) (snd p)) (bleft b)) && commute rows (of_tool b (fst p)) (of_tool b (snd p))) pairs) 25
  end.

(* The keys of calls get numbers, and each monitor goes through them. *)
Definition mapped_event {A B} (f : A -> B) (e : event A) : event B := match e with Called c => Called (f c) | Told n k => Told n k end.
Definition place_events (w : walk) : list (event (chosen spot)) := map (mapped_event fst) (rev_append (course w) []).
Definition texts_in (l : look) : list str :=
  match lfirst l with Some s => [s] | None => [] end ++ match lsecond l with Some s => [s] | None => [] end.
Definition all_keys (w : walk) : list str :=
  flat_map (fun e => match e with Called c => flat_map texts_in (fst (snd c)) | Told _ _ => [] end) (course w).
Definition number_of_key (f : str -> list Z) (s : option str) : option positive :=
  match s with Some s => Some (match f s with n :: _ => Z.to_pos (n + 1) | [] => 1%positive end) | None => None end.
Definition glance_of (f : str -> list Z) (l : look) : glance :=
  {| as_first := number_of_key f (lfirst l); as_second := number_of_key f (lsecond l); binds := lbinds l; weighs := ladds l |}.
Definition nowhere : look := {| lfirst := None; lsecond := None; lbinds := []; ladds := 0 |}.
Definition rule_events (f : str -> list Z) (n : nat) (w : walk) : list (event glance) :=
  map (mapped_event (fun c : chosen spot * (list look * str) => glance_of f (nth n (fst (snd c)) nowhere))) (rev_append (course w) []).
Definition keeps (f : str -> list Z) (n : nat) (r : rule) (w : walk) : bool :=
  match r with
  | ROrder m _ _ _ => keeps_order m (rule_events f n w)
  | RUses _ _ most | RSum _ _ most => (0 <=? most) && keeps_uses most (rule_events f n w)
  end.
Fixpoint keeps_all (f : str -> list Z) (n : nat) (l : list (rule * str)) (w : walk) : bool :=
  match l with [] => true | r :: l => keeps f n (fst r) w && keeps_all f (S n) l w end.

(* Errors that were read, and each forbid of two patterns; of neighbours there is no theorem. *)
Definition sides_of (f : str -> list Z) (first second : list (Z * Z)) (text : str) : sides :=
  let l := f text in (existsb (in_ranges first) l, existsb (in_ranges second) l).
Definition ban_events (f : str -> list Z) (first second : list (Z * Z)) (w : walk) : list (event sides) :=
  map (mapped_event (fun c : chosen spot * (list look * str) => sides_of f first second (snd (snd c)))) (rev_append (course w) []).
Definition any_read (w : walk) : bool := existsb (fun e => match e with Told _ Read => true | _ => false end) (course w).
Fixpoint holds_error (fails : Z -> bool) (n : Z) (l : list str) (pattern : list (Z * Z)) : bool :=
  match l with [] => false | _ :: l => (fails n && in_ranges pattern n) || holds_error fails (n + 1) l pattern end.
Definition bans_kept (b : book) (w : walk) : out Datatypes.unit :=
  if any_read w then
    let? _ := only (forallb (fun x => match x with Neighbours l => negb (existsb (holds_error (bfails b) 0 (bcore b)) l) | _ => true end) (bbans b)) 9 in
    let f := places_of o (bcore b) in
    need (forallb (fun x => match x with Ban both first second => minds_errors both (ban_events f first second w) | _ => true end) (bbans b)) 36
  else Got tt.

(* Conformant, ConformantPrefix and NoClaim of a session that ended; the last two of one that did not. *)
Definition conformant := 0. Definition prefix := 1. Definition no_claim := 2. Definition prefix_so_far := 3. Definition none_so_far := 4.
Definition claimed (rows : list (row str)) (l : list statement) (held : list (option spot)) (over : option bool) : out Z :=
  let lost := match held with [None] => true | _ => false end in
  match over with
  | None => Got (if lost then none_so_far else prefix_so_far)
  | Some true => Got (if lost then no_claim else prefix)
  | Some false => if session_may_end rows l held then Got conformant else Refused 32
  end.
Definition course_of (a : artifact) (c : claim str) (digest : str) (records : list record) : out walk :=
  match records with
  | [] => Refused 25
  | r :: records => let? b := open_book a c in let? w := first_record b a digest r in records_read b w 2 records
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
      let? _ := need (told_apart o (values w)) 38 in
      let? _ := only (again w <=? 2 ^ 20) 12 in
      let? _ := together b (rows a) (few_pairs (beside w) []) in
      let left_ := map says_so (bleft b) in
      let? held := due (session_places (rows a) left_ (place_events w)) 31 in
      let? _ := need (keeps_all (places_of o (all_keys w)) 0 (brules b) w) 35 in
      let? _ := bans_kept b w in
      claimed (rows a) left_ held (over w)
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

(* In every world of what is not known, the calls done meet a monitor, or stay within a number of uses; keys are numbers, the
   same exactly where their texts are. *)
Definition kept_by (w : walk) (n : nat) (r : rule) : Prop :=
  let events := rule_events (places_of o (all_keys w)) n w in
  match r with
  | ROrder m _ _ _ => forall x, world positive (seen_all m (history [] events)) x -> Monitors.meets positive m (Monitors.trace positive x)
  | RUses _ _ most | RSum _ _ most => forall x, Forall2 use_may (history [] events) x -> forall k, uses_of k x <= most
  end.
Lemma all_kept f w l : forall n, keeps_all f n l w = true -> forall i r, nth_error l i = Some r -> keeps f (n + i) (fst r) w = true.
Proof.
  induction l as [|x l IH]; intros n E i r Hr; [destruct i; discriminate|]. cbn [keeps_all] in E. apply andb_prop in E. destruct E as [E1 E2].
  destruct i as [|i]; cbn [nth_error] in Hr; [injection Hr as <-; rewrite Nat.add_0_r; exact E1|].
  rewrite <- Nat.add_succ_comm. exact (IH _ E2 i r Hr).
Qed.
Theorem keys_are_told_apart l s t : (exists x, In x l /\ view o x = view o s) -> (exists x, In x l /\ view o x = view o t) ->
  (number_of_key (places_of o l) (Some s) = number_of_key (places_of o l) (Some t) <-> view o s = view o t).
Proof.
  assert (K : forall s, (exists x, In x l /\ view o x = view o s) -> exists z more, places_of o l s = z :: more /\ 0 <= z /\
    exists x, nth_error l (Z.to_nat z) = Some x /\ view o x = view o s).
  { clear s t. intros s [x [Hx Ev]]. apply In_nth_error in Hx. destruct Hx as [i Hi].
    assert (Hin : In (Z.of_nat i) (places_of o l s)) by (apply (places_from_in o H strings_mean); exists i, x; split; [lia | auto]).
    destruct (places_of o l s) as [|z more] eqn:E; [destruct Hin|]. exists z, more. split; [reflexivity|].
    assert (Hz : In z (places_of o l s)) by (rewrite E; left; reflexivity). apply (places_from_in o H strings_mean) in Hz.
    destruct Hz as [j [y [-> [Hy Evy]]]]. split; [lia|]. exists y. replace (Z.to_nat (0 + Z.of_nat j)) with j by lia. auto. }
  intros Hs Ht. destruct (K s Hs) as [z [ms [Es [Z0 [x [Ex Ev]]]]]]. destruct (K t Ht) as [y [mt [Et [Y0 [x' [Ex' Ev']]]]]].
  unfold number_of_key. rewrite Es, Et. split.
  - intros E. injection E as E. apply Z2Pos.inj in E; [|lia|lia]. replace z with y in Ex by lia. rewrite Ex' in Ex. injection Ex as ->. congruence.
  - intros E. assert (H0 := places_alike o H strings_mean l s t E).
    rewrite Es, Et in H0. injection H0 as -> _. reflexivity.
Qed.

(* The statements that are left to the run are fair, and unordered are the calls of tools that they do not order. *)
Definition owned (at_ : Z -> option Z) (owners : list Z) (c t : Z) : Prop := exists k, at_ c = Some k /\ table owners k = Some t.
Definition good (at_ : Z -> option Z) (owners : list Z) (x : left_one) : Prop :=
  fair (says_so x) /\
  forall t u c d, owned at_ owners c t -> owned at_ owners d u -> orders x t u = false -> unordered c d (says_so x) = true.
Lemma touched l t : forall owners n i, nth_error owners i = Some t -> in_ranges l (n + Z.of_nat i) = true -> touches n owners l t = true.
Proof.
  induction owners as [|x owners IH]; intros n [|i] E R; cbn [nth_error touches] in *; try discriminate.
  - injection E as ->. rewrite Z.eqb_refl. replace (n + Z.of_nat 0) with n in R by lia. rewrite R. reflexivity.
  - rewrite (IH (n + 1) i E); [apply orb_true_r|]. replace (n + 1 + Z.of_nat i) with (n + Z.of_nat (S i)) by lia. exact R.
Qed.
Lemma set_touches at_ owners l c t : owned at_ owners c t -> set_of at_ l c = true -> touches 0 owners l t = true.
Proof.
  intros [k [E T]] S. unfold set_of in S. rewrite E in S. apply table_same in T. destruct T as [T0 T].
  apply (touched l t owners 0 (Z.to_nat k) T). rewrite Z2Nat.id by exact T0. exact S.
Qed.
Lemma crossing_apart at_ owners f s c d t u : owned at_ owners c t -> owned at_ owners d u -> crossing owners f s t u = false ->
  negb (set_of at_ f c && set_of at_ s d) && negb (set_of at_ f d && set_of at_ s c) = true.
Proof.
  intros Hc Hd E. unfold crossing in E. apply orb_false_iff in E. destruct E as [E1 E2].
  assert (K : forall l m c d t u, owned at_ owners c t -> owned at_ owners d u -> touches 0 owners l t && touches 0 owners m u = false ->
    set_of at_ l c && set_of at_ m d = false).
  { clear. intros l m c d t u Hc Hd E. destruct (set_of at_ l c) eqn:X; [|reflexivity]. destruct (set_of at_ m d) eqn:Y; [|reflexivity].
    rewrite (set_touches _ _ _ _ _ Hc X), (set_touches _ _ _ _ _ Hd Y) in E. discriminate. }
  rewrite (K f s c d t u Hc Hd E1), (K f s d c u t Hd Hc E2). reflexivity.
Qed.
Lemma require_good patterns at_ owners v x : left_require patterns at_ owners v = Got x -> good at_ owners x.
Proof.
  unfold left_require. intros E. destruct v as [| | |[|[|k| | |] [|p [|q [|? ?]]]]|]; try discriminate.
  destruct (pattern_of patterns p) as [f|]; [|discriminate]. destruct (pattern_of patterns q) as [s|]; [|discriminate]. cbn [due bind] in E. cbv zeta in E.
  destruct (same o k (made o $"before")); [|destruct (same o k (made o $"after")); [|destruct (same o k (made o $"each")); [|discriminate]]];
    injection E as <-; split; try exact I; intros t u c d Hc Hd N; exact (crossing_apart _ _ _ _ _ _ _ _ Hc Hd N).
Qed.
Lemma forbid_good patterns at_ owners v x : left_forbid patterns at_ owners v = Got x -> good at_ owners x.
Proof.
  unfold left_forbid. intros E. destruct (ban_of patterns v) as [[both f s | [|r l]]|]; try discriminate; injection E as <-.
  - split; [destruct both; exact I|]. intros t u c d Hc Hd N. destruct both; exact (crossing_apart _ _ _ _ _ _ _ _ Hc Hd N).
  - split; [discriminate|]. intros t u c d Hc Hd N. cbn [orders says_so unordered] in *. apply forallb_forall. intros set Hs.
    change (set_of at_ r :: map (set_of at_) l) with (map (set_of at_) (r :: l)) in Hs. apply in_map_iff in Hs. destruct Hs as [m [<- Hm]].
    assert (X : touches 0 owners m t || touches 0 owners m u = false).
    { destruct (touches 0 owners m t || touches 0 owners m u) eqn:X; [|reflexivity].
      assert (Y : existsb (fun r => touches 0 owners r t || touches 0 owners r u) (r :: l) = true) by (apply existsb_exists; eauto). rewrite <- Y. exact N. }
    apply orb_false_iff in X. destruct X as [X1 X2].
    destruct (set_of at_ m c) eqn:Sc; [rewrite (set_touches _ _ _ _ _ Hc Sc) in X1; discriminate|].
    destruct (set_of at_ m d) eqn:Sd; [rewrite (set_touches _ _ _ _ _ Hd Sd) in X2; discriminate | reflexivity].
Qed.
Lemma limit_good a tools core at_ owners ks v x : left_limit a tools core ks v = Got x -> good at_ owners x.
Proof.
  unfold left_limit. intros E. destruct (get_text o $"kind" v) as [kind|]; [|discriminate]. destruct (get_text o $"op" v) as [op|]; [|discriminate]. cbn [due bind] in E.
  destruct (match get o $"value" v with Some x => large_in x | None => None end) as [n|]; [|discriminate]. cbn [due bind] in E.
  destruct (amounts_of a tools core ks (view o kind) (get o $"of" v)) as [l|]; [|discriminate]. cbn [due bind] in E. unfold only in E.
  destruct (forallb (Z.leb 0) l && (0 <=? n)) eqn:B; [|discriminate]. cbn [bind] in E. cbv zeta in E. apply andb_prop in B. destruct B as [B1 B2].
  destruct (same o op (made o $"<=")).
  - injection E as <-. split; [|reflexivity]. cbn [says_so fair]. split; [apply Z.leb_le, B2|]. intros c.
    destruct (table l c) as [y|] eqn:T; [|lia]. apply table_same in T. destruct T as [_ T]. apply nth_error_In in T.
    rewrite forallb_forall in B1. apply Z.leb_le, B1, T.
  - destruct (same o op (made o $">=") && equal_bytes (view o kind) $"uses"); [|discriminate]. injection E as <-. split; [exact I | reflexivity].
Qed.
Lemma each_left_all (P : left_one -> Prop) f of : (forall v x, f v = Got x -> P x) -> forall l m, each_left f of l = Got m -> Forall P m.
Proof.
  intros Hf. induction l as [|i l IH]; intros m E; cbn [each_left] in E; [injection E as <-; constructor|].
  destruct (of i) as [v|]; [|discriminate]. cbn [due bind] in E. destruct (f v) as [x| |] eqn:Fv; try discriminate. cbn [bind] in E.
  destruct (each_left f of l) as [more| |]; try discriminate. injection E as <-. constructor; [exact (Hf v x Fv) | exact (IH _ eq_refl)].
Qed.
Lemma left_good a tools core patterns at_ owners ks fs ls rs m :
  left_statements a tools core patterns at_ owners ks fs ls rs = Got m -> Forall (good at_ owners) m.
Proof.
  unfold left_statements. intros E. destruct (relaxed a) as [[[f l] r]|]; [|injection E as <-; constructor].
  destruct (each_left _ _ l) as [l'| |] eqn:El; try discriminate. cbn [bind] in E. destruct (each_left _ _ r) as [r'| |] eqn:Er; try discriminate. cbn [bind] in E.
  destruct (each_left _ _ f) as [f'| |] eqn:Ef; try discriminate. injection E as <-.
  apply Forall_app. split; [|apply Forall_app; split].
  - exact (each_left_all _ _ _ (fun v x => limit_good _ _ _ at_ owners _ v x) _ _ El).
  - exact (each_left_all _ _ _ (fun v x => require_good _ _ _ v x) _ _ Er).
  - exact (each_left_all _ _ _ (fun v x => forbid_good _ _ _ v x) _ _ Ef).
Qed.
(* A call's tool is that of the core's call at its place. *)
Lemma owners_places read calls lines : forall ps ls es ks done owners,
  core_calls o (table read) calls lines ps ls es ks done = Some owners ->
  exists m, owners = rev done ++ m /\ Forall2 (fun k x => exists v, calls k = Some v /\ tool_in v = Some (fst x)) ks m.
Proof.
  induction lines as [|c lines IH]; intros [|p ps] [|l ls] [|e es] [|k ks] done owners E; try discriminate; cbn [core_calls] in E.
  - injection E as <-. exists []. rewrite rev_append_rev. split; [reflexivity | constructor].
  - destruct (calls k) as [v|] eqn:T; [|discriminate]. destruct (core_call o (table read) v c p l e) as [t|] eqn:C; [|discriminate].
    apply IH in E. destruct E as [m [-> A]]. exists (t :: m). split; [simpl; rewrite <- app_assoc; reflexivity|].
    constructor; [|exact A]. exists v. split; [exact T|]. apply (core_call_stands o H strings_mean) in C. inversion C. subst. reflexivity.
Qed.
Lemma opened a c b : open_book a c = Got b -> ambiguous a = false /\
  Forall (fun x => fair (says_so x) /\ forall t u y z, of_tool b t y = true -> of_tool b u z = true -> orders x t u = false -> unordered y z (says_so x) = true) (bleft b).
Proof.
  unfold open_book. cbv zeta. intros E.
  destruct (get_list o $"tools" (cvalue c)) as [ts|]; [|discriminate]. destruct (get_list o $"calls" (cvalue c)) as [cs|]; [|discriminate].
  destruct (get_list o $"forbids" (cvalue c)) as [fs|]; [|discriminate]. destruct (get_list o $"patterns" (cvalue c)) as [pats|]; [|discriminate]. cbn [due bind] in E.
  destruct (each (tool_of o) ts []) as [read|]; [|discriminate]. cbn [due bind] in E.
  destruct (core_calls _ _ _ _ _ _ _ _ _) as [owners|] eqn:Ow in E; [|discriminate]. cbn [due bind] in E.
  match type of E with bind ?x _ = _ => destruct x as [rules| |]; try discriminate end. cbn [bind] in E.
  destruct (ambiguous a); [discriminate|]. split; [reflexivity|]. cbn [negb only bind] in E.
  destruct (match get o $"given" (cvalue c) with None => true | Some _ => false end); [|discriminate]. cbn [only bind] in E.
  destruct (members_known (cvalue c)) as [[]| |]; try discriminate. cbn [bind] in E.
  destruct (each (ban_of (table pats)) fs []) as [bans|]; [|discriminate]. cbn [due bind] in E.
  destruct (each (core_text (table read)) cs []) as [texts|]; [|discriminate]. cbn [due bind] in E.
  destruct (get_list o $"limits" (cvalue c)) as [ls|]; [|discriminate]. destruct (get_list o $"requires" (cvalue c)) as [rs|]; [|discriminate]. cbn [due bind] in E.
  destruct (each tool_in cs []) as [of_tools|] eqn:Ot; [|discriminate]. cbn [due bind] in E.
  destruct (left_statements _ _ _ _ _ _ _ _ _ _) as [m| |] eqn:L in E; try discriminate. cbn [bind] in E. injection E as <-. cbn [bleft].
  apply left_good in L. apply owners_places in Ow. destruct Ow as [own' [-> Ow]]. cbn [rev app] in *.
  apply each_is in Ot. destruct Ot as [n [-> Ot]]. cbn [rev app] in *.
  assert (K : forall t y, match table own' y with Some x => fst x =? t | None => false end = true -> owned (table (places c)) n y t).
  { intros t y Hy. destruct (table own' y) as [x|] eqn:Ty; [|discriminate]. apply Z.eqb_eq in Hy.
    destruct (proj2 (pairwise _ _ _ Ow y) x Ty) as [k [Tk [v [Tv Vt]]]]. destruct (proj1 (pairwise _ _ _ Ot k) v Tv) as [t' [Tt Et]].
    exists k. split; [exact Tk | congruence]. }
  eapply Forall_impl; [|exact L]. intros x [Fx Ux]. split; [exact Fx|]. intros t u y z Hy Hz. unfold of_tool in *. cbn [bowners] in *.
  exact (Ux t u y z (K _ _ Hy) (K _ _ Hz)).
Qed.
Definition told_of_events {C} (es : list (event C)) : list known := flat_map (fun e => match e with Told _ k => [k] | _ => [] end) es.
(* A verdict that is given, about an artifact that passes: the file is the chain of these records; what they say of calls and
   outcomes conforms (Sessions.v); it ends where a plan ends, where that is claimed; of calls that were under way together
   the effects come to the same in either order; every monitor is met; and no call is behind an error that was read and that a
   forbid of two patterns has against it. *)
Theorem ledger_sound afile a c digest file records tail claim :
  core_verdict o afile a c = (0, digest) -> ledger_verdict a c digest file records tail = Got claim ->
  view o file = ledger_bytes zeros records (view o tail) /\
  exists ok : sound_states o a = true,
  let D := columns o H strings_mean (units a) (counting_of a) (lines a) (rows a) ok in
  (records = [] /\ claim = none_so_far) \/
  exists b w, open_book a c = Got b /\ course_of a c digest records = Got w /\
    let left_ := map says_so (bleft b) in
    let goes_on calls := (exists P, accepted D (root (rows a)) (calls ++ P)) /\ Forall (fun s => unbroken s (map Z.of_nat calls)) left_ in
    let whole calls := accepted D (root (rows a)) calls /\ Forall (fun s => meets s (map Z.of_nat calls)) left_ in
    (forall xs, resolves (chosen spot) Sessions.answers closed (told_of (history [] (place_events w))) xs ->
      (goes_on (Session.trace xs) \/ exists x xs', xs = x :: xs' /\ goes_on (Session.trace xs')) /\
      ((forall x, In (Called x) (place_events w) -> exists y, offer x = ([y], true)) -> goes_on (Session.trace xs)) /\
      (claim = conformant -> over w = Some false /\ whole (Session.trace xs))) /\
    (forall s u x y, In (s, u) (beside w) -> of_tool b s x = true -> of_tool b u y = true -> 0 <= x -> 0 <= y ->
      forall calls P, whole (calls ++ Z.to_nat x :: Z.to_nat y :: P) <-> whole (calls ++ Z.to_nat y :: Z.to_nat x :: P)) /\
    (forall n r, nth_error (brules b) n = Some r -> kept_by w n (fst r)) /\
    (forall x y, In x (values w) -> In y (values w) ->
      (view o (fst x) = view o (fst y) <-> view o (snd x) = view o (snd y)) /\
      (view o (fst x) = view o (fst y) <-> view o (half o (snd x)) = view o (half o (snd y)))) /\
    (forall both first second, In (Ban both first second) (bbans b) ->
      forall e1 c e2, ban_events (places_of o (bcore b)) first second w = e1 ++ Called c :: e2 -> forall d, In (d, Read) (history [] e1) ->
      ~ (fst d = true /\ snd c = true) /\ (both = true -> ~ (snd d = true /\ fst c = true))).
Proof.
  intros V L. apply (core_verdict_sound o H strings_mean) in V. destruct V as [V _].
  assert (V' : verdict o afile a = (0, digest)).
  { unfold full_verdict in V. cbv zeta in V. destruct ((fst (verdict o afile a) =? 0) && negb (weights_ok o a)); [discriminate | exact V]. }
  destruct (check_sound o H strings_mean afile a digest V') as [_ [_ [_ [ok _]]]]. clear V'.
  unfold ledger_verdict in L. unfold need at 1 in L. destruct (is_ledger file records tail) eqn:F; [|discriminate]. cbn [bind] in L.
  split; [apply is_ledger_bytes, F|]. exists ok. cbv zeta.
  destruct records as [|r records]; [left; split; [reflexivity | congruence] | right].
  destruct (open_book a c) as [b| |] eqn:B; try discriminate. cbn [bind] in L.
  destruct (opened a c b B) as [Amb Left_]. assert (Det : States.many (counting_of a) = false) by exact Amb.
  assert (Fair : Forall fair (map says_so (bleft b))).
  { apply Forall_forall. intros s Hs. apply in_map_iff in Hs. destruct Hs as [x [<- Hx]]. rewrite Forall_forall in Left_. apply Left_, Hx. }
  destruct (course_of a c digest (r :: records)) as [w| |] eqn:W; try discriminate. cbn [bind] in L.
  destruct (need _ 25) as [[]| |] in L; try discriminate. cbn [bind] in L.
  destruct (need _ 34) as [[]| |] in L; try discriminate. cbn [bind] in L.
  unfold need at 1 in L. destruct (told_apart o (values w)) eqn:Told; [|discriminate]. cbn [bind] in L.
  destruct (only _ 12) as [[]| |] in L; try discriminate. cbn [bind] in L.
  destruct (together b (rows a) (few_pairs (beside w) [])) as [[]| |] eqn:T; try discriminate. cbn [bind] in L.
  destruct (session_places (rows a) (map says_so (bleft b)) (place_events w)) as [held|] eqn:S; [|discriminate]. cbn [due bind] in L.
  destruct (need _ 35) as [[]| |] eqn:K35 in L; try discriminate. cbn [bind] in L. unfold need in K35.
  destruct (keeps_all (places_of o (all_keys w)) 0 (brules b) w) eqn:Ka; [|discriminate].
  destruct (bans_kept b w) as [[]| |] eqn:Bk; try discriminate. cbn [bind] in L.
  exists b, w. split; [reflexivity|]. split; [reflexivity|]. split; [|split; [|split; [|split]]].
  - intros xs Hx. destruct (conforms_sound o H strings_mean _ _ _ _ ok Det _ Fair _ _ S xs Hx) as [C1 [C2 C3]].
    split; [exact C1|]. split; [exact C2|]. intros ->. unfold claimed in L.
    destruct (over w) as [[|]|]; [destruct (match held with [None] => true | _ => false end); discriminate | |
      destruct (match held with [None] => true | _ => false end); discriminate].
    split; [reflexivity|]. apply C3. destruct (session_may_end (rows a) (map says_so (bleft b)) held); [reflexivity | discriminate].
  - intros s u x y Hb Ox Oy Hx Hy calls P. assert (K : forall s u, In (s, u) (few_pairs (beside w) []) ->
      commute (rows a) (of_tool b s) (of_tool b u) = true /\ forall x, In x (bleft b) -> orders x s u = false).
    { intros s0 u0 Hin. unfold together in T. destruct (few_pairs (beside w) []) as [|p ps]; [destruct Hin|].
      destruct (only _ 9) as [[]| |] in T; try discriminate. cbn [bind] in T.
      destruct (only _ 11) as [[]| |] in T; try discriminate. cbn [bind] in T. unfold need in T.
      destruct (forallb _ _) eqn:A in T; [|discriminate]. rewrite forallb_forall in A. specialize (A _ Hin). cbn [fst snd] in A.
      rewrite !andb_true_iff in A. destruct A as [[_ A1] A2]. split; [exact A2|]. intros z Hz. apply negb_true_iff in A1.
      destruct (orders z s0 u0) eqn:Oz; [|reflexivity].
      assert (X : existsb (fun x => orders x s0 u0) (bleft b) = true) by (apply existsb_exists; eauto). congruence. }
    assert (N : forall s u x y, of_tool b s x = true -> of_tool b u y = true -> (forall z, In z (bleft b) -> orders z s u = false) ->
      forallb (unordered x y) (map says_so (bleft b)) = true).
    { clear - Left_. intros s u x y Ox Oy K. apply forallb_forall. intros z Hz. apply in_map_iff in Hz. destruct Hz as [v [<- Hv]].
      rewrite Forall_forall in Left_. exact (proj2 (Left_ v Hv) s u x y Ox Oy (K v Hv)). }
    destruct (few_pairs_all (beside w) [] s u Hb) as [Hin | Hin]; apply K in Hin; destruct Hin as [Hc Ho].
    + exact (plans_in_either_order o H strings_mean _ _ _ _ ok Det _ Fair _ _ _ _ Hc Ox Oy Hx Hy (N _ _ _ _ Ox Oy Ho) calls P).
    + symmetry. exact (plans_in_either_order o H strings_mean _ _ _ _ ok Det _ Fair _ _ _ _ Hc Oy Ox Hy Hx (N _ _ _ _ Oy Ox Ho) calls P).
  - intros n x Hr. assert (Kn := all_kept _ _ _ _ Ka n x Hr). rewrite Nat.add_0_l in Kn. unfold kept_by. cbv zeta.
    destruct (fst x) as [m one other names | calls per most0 | t param most0]; cbn [keeps] in Kn; [exact (order_is_kept m _ Kn) | |];
      apply andb_prop in Kn; destruct Kn as [K1 K2]; apply Z.leb_le in K1; exact (uses_are_kept most0 _ K1 K2).
  - exact (digests_stand_for_values o H strings_mean (values w) Told).
  - intros both first second Hb e1 x e2 E d Hd. unfold bans_kept in Bk. destruct (any_read w) eqn:Ar.
    + destruct (only _ 9) as [[]| |] in Bk; try discriminate. cbn [bind] in Bk. unfold need in Bk.
      destruct (forallb _ _) eqn:A in Bk; [|discriminate]. rewrite forallb_forall in A. specialize (A _ Hb). cbn in A.
      exact (errors_are_minded both _ A e1 x e2 E d Hd).
    + exfalso. assert (N : forall (es : list (event sides)) h c0, In (c0, Read) (history h es) -> In (c0, Read) h \/ In Read (told_of_events es)).
      { induction es as [|[c1 | back k] es IH]; intros h c0 Hin; cbn [history told_of_events flat_map app] in *; [auto| |].
        - destruct (IH _ _ Hin) as [[Ex | Hh] | Hr]; [discriminate | auto | auto].
        - destruct (IH _ _ Hin) as [Hh | Hr]; [|right; right; exact Hr]. clear - Hh. revert back Hh.
          induction h as [|[c2 k2] h IHh]; intros back Hh; cbn [retold] in Hh; [destruct Hh|].
          destruct (back =? 0); destruct Hh as [Ex | Hh].
          + right. left. congruence.
          + left. right. exact Hh.
          + left. left. exact Ex.
          + destruct (IHh _ Hh) as [K1 | K1]; [left; right; exact K1 | right; exact K1]. }
      destruct (N _ _ _ Hd) as [[] | Hr].
      assert (Hr' : In Read (told_of_events (ban_events (places_of o (bcore b)) first second w))).
      { rewrite E. unfold told_of_events in *. rewrite flat_map_app. apply in_app_iff. left. exact Hr. }
      clear - Hr' Ar. unfold ban_events, told_of_events in Hr'. rewrite rev_append_rev, app_nil_r in Hr'.
      apply in_flat_map in Hr'. destruct Hr' as [e [He Hk]]. apply in_map_iff in He. destruct He as [e0 [<- He0]]. apply in_rev in He0.
      destruct e0 as [c0 | n k]; cbn in Hk; [destruct Hk|]. destruct Hk as [-> | []].
      unfold any_read in Ar. assert (X : existsb (fun e => match e with Told _ Read => true | _ => false end) (course w) = true)
        by (apply existsb_exists; exists (Told n Read); split; [exact He0 | reflexivity]). congruence.
Qed.
End Ledger.
