(* The checker's byte strings are OCaml's.  Trusted: each line means what Strings.v says of that name. *)
let bytes = Array.init 256 Z.of_int
let view s = List.init (String.length s) (fun i -> bytes.(Char.code s.[i]))
let made l =
  let b = Buffer.create 64 in
  List.iter (fun z -> Buffer.add_char b (Char.unsafe_chr (Whole.low_byte z))) l; Buffer.contents b
(* Two's complement, `width` bytes each; small numbers by the machine's words. *)
let numbers width l =
  let b = Bytes.create (width * List.length l) in
  let number at z =
    if Whole.small z then begin
      let n = Whole.int z in
      if width = 8 then Bytes.set_int64_le b at (Int64.of_int n) else
      if width = 4 then Bytes.set_int32_le b at (Int32.of_int n) else
      for k = 0 to width - 1 do
        let shift = 8 * k in
        Bytes.set b (at + k) (Char.unsafe_chr ((n asr (if shift < Sys.int_size then shift else Sys.int_size - 1)) land 255))
      done
    end else Bytes.blit_string (Whole.low_bytes width z) 0 b at width;
    at + width in
  ignore (List.fold_left number 0 l); Bytes.unsafe_to_string b
let stands file at part =
  let n = String.length part in
  let rec from at i =
    if i + 4 <= n then (String.get_int32_ne file (at + i) : int32) = String.get_int32_ne part i && from at (i + 4)
    else i = n || (file.[at + i] = part.[i] && from at (i + 1)) in
  Z.sign at >= 0 && Z.leq at (Z.of_int (String.length file - n)) && from (Z.to_int at) 0
let ours : string Checker.strings = {
  Checker.view; made; size_of = (fun s -> Z.of_int (String.length s)); same = String.equal;
  less = (fun a b -> String.compare a b < 0); joined = String.concat ""; numbers; stands; hash = Blake3.hash }
