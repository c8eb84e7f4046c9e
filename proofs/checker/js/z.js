// Whole numbers: a number where it is within 30 bits, else a BigInt.  Trusted.
//Provides: z_norm
function z_norm(b) { return (b >= BigInt(-0x40000000) && b < BigInt(0x40000000)) ? Number(b) : b }
//Provides: z_num
function z_num(x) { return (x >= -0x40000000 && x < 0x40000000) ? x : BigInt(x) }
//Provides: z_of_int
//Requires: z_num
function z_of_int(x) { return z_num(x) }
//Provides: z_to_int
function z_to_int(z) { return Number(z) }
//Provides: z_fits
function z_fits(z) { return (z >= -0x7fffffff && z <= 0x7fffffff) ? 1 : 0 }
//Provides: z_succ
//Requires: z_num, z_norm
function z_succ(a) { return typeof a == "number" ? z_num(a + 1) : z_norm(a + BigInt(1)) }
//Provides: z_neg
//Requires: z_num, z_norm
function z_neg(a) { return typeof a == "number" ? z_num(0 - a) : z_norm(-a) }
//Provides: z_add
//Requires: z_num, z_norm
function z_add(a, b) { return (typeof a == "number" && typeof b == "number") ? z_num(a + b) : z_norm(BigInt(a) + BigInt(b)) }
//Provides: z_sub
//Requires: z_num, z_norm
function z_sub(a, b) { return (typeof a == "number" && typeof b == "number") ? z_num(a - b) : z_norm(BigInt(a) - BigInt(b)) }
//Provides: z_mul
//Requires: z_norm
function z_mul(a, b) {
  if (typeof a == "number" && typeof b == "number") { var p = a * b; if (p > -0x40000000 && p < 0x40000000) return p + 0 }
  return z_norm(BigInt(a) * BigInt(b)) }
//Provides: z_fdiv
//Requires: z_norm
function z_fdiv(a, b) {
  if (typeof a == "number" && typeof b == "number") return Math.floor(a / b);
  var x = BigInt(a), y = BigInt(b), q = x / y;
  if (q * y != x && (x < BigInt(0)) != (y < BigInt(0))) q = q - BigInt(1);
  return z_norm(q) }
//Provides: z_power
function z_power(b, n) { var r = BigInt(1); while (n > 0) { if (n & 1) r = r * b; b = b * b; n = n >> 1 } return r }
//Provides: z_pow
//Requires: z_norm, z_power
function z_pow(a, n) { return z_norm(z_power(BigInt(a), n)) }
//Provides: z_shift_left
//Requires: z_norm
function z_shift_left(a, n) { if (typeof a == "number" && n == 1 && a < 0x20000000 && a >= 0) return a + a; return z_norm(BigInt(a) << BigInt(n)) }
//Provides: z_shift_right
//Requires: z_norm
function z_shift_right(a, n) { return (typeof a == "number" && n < 31) ? a >> n : z_norm(BigInt(a) >> BigInt(n)) }
//Provides: z_compare
function z_compare(a, b) { return a < b ? -1 : a > b ? 1 : 0 }
//Provides: z_numbits
function z_numbits(a) { var b = BigInt(a); return (b < BigInt(0) ? -b : b) == BigInt(0) ? 0 : (b < BigInt(0) ? -b : b).toString(2).length }
//Provides: z_of_string
//Requires: z_norm, caml_jsbytes_of_string
function z_of_string(s) { return z_norm(BigInt(caml_jsbytes_of_string(s))) }
//Provides: z_to_string
//Requires: caml_string_of_jsbytes
function z_to_string(z) { return caml_string_of_jsbytes(z.toString()) }
//Provides: z_to_bits
//Requires: caml_string_of_array
function z_to_bits(z) {
  var h = BigInt(z).toString(16), l = [];
  if (h.length & 1) h = "0" + h;
  for (var i = h.length; i > 0; i -= 2) l.push(parseInt(h.substr(i - 2, 2), 16));
  return caml_string_of_array(l) }
//Provides: z_to_float
function z_to_float(z) { return Number(z) }
//Provides: z_of_float
//Requires: z_norm
function z_of_float(f) { return z_norm(BigInt(f)) }
//Provides: tcc_export
//Requires: caml_string_of_array, caml_jsbytes_of_string
function tcc_export(f) {
  globalThis.tccCheck = function (bytes) { return caml_jsbytes_of_string(f(caml_string_of_array(bytes))) };
  return 0 }
