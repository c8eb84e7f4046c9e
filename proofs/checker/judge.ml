(* Bytes in, a line out. *)
let hex s =  (* Printf would be a quarter of the page's program *)
  let digit n = String.make 1 "0123456789abcdef".[n] in
  String.concat "" (List.init (String.length s) (fun i -> let c = Char.code s.[i] in digit (c / 16) ^ digit (c mod 16)))
let said = [| ""; "a number beyond its column"; "a certificate (C1..C6)"; "the bytes are not those of what they say"; "a residual below what its weight asks";
  "no core, or not in its one form"; "a call that is not the core's so (C8)"; "tools that are not the core's (M303)"; "what is left to the run (C803)";
  "an answer after which no plan goes on (C9)" |]
let judge data =
  if data <> "" && data.[0] = '{' then false, "DECLINED: ledgers: not covered by this checker" else
  match Reader.artifact data with
  | exception Reader.Unread why -> false, (if String.length why > 8 && String.sub why 0 8 = "DECLINED" then why else "REJECTED: " ^ why)
  | exception (Stack_overflow | Out_of_memory) -> false, "DECLINED: too large"
  | exception (Invalid_argument _ | Failure _ | Z.Overflow | Division_by_zero | Not_found) -> false, "REJECTED: no artifact"
  | a, claim ->
    match Checker.core_verdict Strings.ours data a claim with
    | exception (Z.Overflow | Stack_overflow | Out_of_memory) -> false, "DECLINED: too large"
    | v, digest when Z.sign v = 0 ->
      let root = List.fold_left (fun _ r -> r) (List.hd a.Checker.rows) a.Checker.rows in
      let plans = match a.Checker.counted with
        | Checker.Gated when Z.sign root.Checker.rexponent > 0 ->
          "at most " ^ Z.to_string root.Checker.rmass ^ " 2^" ^ Z.to_string root.Checker.rexponent ^ " plans"
        | Checker.Gated -> Z.to_string root.Checker.rmass ^ " plans"
        | _ -> Z.to_string root.Checker.rplans ^ (if a.Checker.ambiguous then " derivations" else " plans") in
      true, "VALID: C1 to C6, C8 and C9 of " ^ string_of_int (List.length a.Checker.rows) ^ " states, " ^ plans ^ "; statements: not covered by this checker; digest " ^ hex digest
    | v, _ -> false, "REJECTED: " ^ said.(Z.to_int v)
