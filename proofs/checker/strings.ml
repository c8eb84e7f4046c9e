(* The checker's byte strings are OCaml's.  Trusted: each line means what Strings.v says of that name. *)
let bytes = Array.init 256 Z.of_int
let view s = List.init (String.length s) (fun i -> bytes.(Char.code s.[i]))
let made l =
  let b = Buffer.create 64 in
  List.iter (fun z -> Buffer.add_char b (Char.unsafe_chr (Z.to_int (Z.logand z (Z.of_int 255))))) l; Buffer.contents b
(* Two's complement, `width` bytes each; small numbers by the machine's words. *)
let numbers width l =
  let b = Buffer.create 4096 in
  let number z =
    if Z.fits_int z then begin
      let n = Z.to_int z in
      for k = 0 to width - 1 do Buffer.add_char b (Char.unsafe_chr ((if k < 8 then n asr (8 * k) else n asr 62) land 255)) done
    end else begin
      let s = Z.to_bits (Z.extract z 0 (8 * width)) in
      let n = String.length s in
      for k = 0 to width - 1 do Buffer.add_char b (if k < n then s.[k] else '\000') done
    end in
  List.iter number l; Buffer.contents b
let stands file at part =
  let n = String.length part in
  let rec from at i = i = n || (String.unsafe_get file (at + i) = String.unsafe_get part i && from at (i + 1)) in
  Z.sign at >= 0 && Z.leq at (Z.of_int (String.length file - n)) && from (Z.to_int at) 0
let ours : string Checker.strings = {
  Checker.view; made; size_of = (fun s -> Z.of_int (String.length s)); same = String.equal;
  less = (fun a b -> String.compare a b < 0); joined = String.concat ""; numbers; stands; hash = Blake3.hash }
