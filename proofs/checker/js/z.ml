(* The part of zarith's Z that the checker uses, on JavaScript's BigInt (z.js).  Small numbers are plain ints. *)
type t
exception Overflow
external of_int : int -> t = "z_of_int"
external raw_to_int : t -> int = "z_to_int"
external succ : t -> t = "z_succ"
external neg : t -> t = "z_neg"
external add : t -> t -> t = "z_add"
external sub : t -> t -> t = "z_sub"
external mul : t -> t -> t = "z_mul"
external fdiv : t -> t -> t = "z_fdiv"
external pow : t -> int -> t = "z_pow"
external shift_left : t -> int -> t = "z_shift_left"
external shift_right : t -> int -> t = "z_shift_right"
external compare : t -> t -> int = "z_compare"
external numbits : t -> int = "z_numbits"
external of_string : string -> t = "z_of_string"
external to_string : t -> string = "z_to_string"
external to_float : t -> float = "z_to_float"
external of_float : float -> t = "z_of_float"
external fits : t -> bool = "z_fits"
external to_bits : t -> string = "z_to_bits"
let zero = of_int 0
let one = of_int 1
let to_int z = if fits z then raw_to_int z else raise Overflow
let fits_int = fits
let pred z = sub z one
let sign z = compare z zero
let equal a b = compare a b = 0
let lt a b = compare a b < 0
let gt a b = compare a b > 0
let leq a b = compare a b <= 0
let max a b = if lt a b then b else a
let min a b = if lt a b then a else b
let is_odd z = not (equal z (shift_left (shift_right z 1) 1))
let erem a b = sub a (mul b (fdiv a b))
let cdiv a b = neg (fdiv (neg a) b)
let of_int64 x = of_string (Int64.to_string x)
let of_bits s =
  let z = ref zero in
  for i = String.length s - 1 downto 0 do z := add (shift_left !z 8) (of_int (Char.code s.[i])) done; !z
