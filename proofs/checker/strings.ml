(* The checker's byte strings are OCaml's.  Trusted: each line means what Strings.v says of that name. *)
let bytes = Array.init 256 Z.of_int
let view s = List.init (String.length s) (fun i -> bytes.(Char.code s.[i]))
let made l =
  let b = Buffer.create 64 in
  List.iter (fun z -> Buffer.add_char b (Char.unsafe_chr (Whole.low_byte z))) l; Buffer.contents b
(* Two's complement, `width` bytes each; small numbers by the machine's words. *)
let numbers width l =
  let b = Buffer.create 4096 in
  let number z =
    if Z.fits_int z then begin
      let n = Z.to_int z in
      if width = 8 then Buffer.add_int64_le b (Int64.of_int n) else
      if width = 4 then Buffer.add_int32_le b (Int32.of_int n) else
      for k = 0 to width - 1 do
        let shift = 8 * k in
        Buffer.add_char b (Char.unsafe_chr ((n asr (if shift < Sys.int_size then shift else Sys.int_size - 1)) land 255))
      done
    end else Buffer.add_string b (Whole.low_bytes width z) in
  List.iter number l; Buffer.contents b
let stands file at part =
  let n = String.length part in
  let rec from at i = i = n || (String.unsafe_get file (at + i) = String.unsafe_get part i && from at (i + 1)) in
  Z.sign at >= 0 && Z.leq at (Z.of_int (String.length file - n)) && from (Z.to_int at) 0
let ours : string Checker.strings = {
  Checker.view; made; size_of = (fun s -> Z.of_int (String.length s)); same = String.equal;
  less = (fun a b -> String.compare a b < 0); joined = String.concat ""; numbers; stands; hash = Blake3.hash }
