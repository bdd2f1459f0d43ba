//! The loop-nest language of Cranefold: data, text, verifier and interpreter.
//!
//! A [`Nest`] is a program of loops over buffers and accumulators. It prints, reads back, verifies, and runs in
//! any domain of values ([`eval`]). An [`expression`] is an expression of a user's spec, which becomes nest expressions
//! of a nest. This crate knows neither specs nor code generators.
//!
//! ```
//! use cranefold_ir::{Nest, eval, verify};
//!
//! let nest: Nest = r#"
//! nest "sums of pairs" {
//!   in x0: i32[6]
//!   out x1: i32[3]
//!   for i0 in 0..3 parallel {
//!     acc a0: i32[1] = 0
//!     for k1 in 0..2 seq { a0[0] = add(a0[0], x0[2*i0 + k1]) }
//!     x1[i0] = a0[0]
//!   }
//! }
//! "#.parse()?;
//! verify(&nest)?;
//! let input: Vec<u8> = [1i32, 2, 3, 4, 5, 6].iter().flat_map(|x| x.to_ne_bytes()).collect();
//! let mut output = [0; 12];
//! eval::run(&nest, &mut eval::Bits { inputs: vec![&input], outputs: vec![&mut output] });
//! assert_eq!(output[..4], 3i32.to_ne_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The text of a nest
//!
//! `list(x)` is one or more `x` with commas between them, `x?` an optional and `x*` a repeated x. White space only
//! separates, newlines included; `#` begins a comment to the end of the line.
//!
//! ```text
//! nest      = "nest" quoted "{" buffer* def* stmt* "}"
//! quoted    = '"' characters and the escapes \" \\ \n \u{hex}, on one line '"'
//! buffer    = ("in" | "out" | "inout" | "nontemporal") x ":" dtype "[" count "]"   x0, x1 ... in order
//! def       = "def" name "(" list(v ":" dtype)? ")" "->" list(dtype)
//!             "{" ("let" v "=" expr)* list(expr) "}"                          v0, v1 ... in order
//! body      = "{" stmt* "}"
//! stmt      = "for" loopvar "in" range kind body
//!           | "acc" a ":" dtype "[" count "]" "=" value
//!           | "let" v "=" expr
//!           | "call" list(v) "=" name "(" list(expr)? ")"                     all results of a definition
//!           | a "[" index "]" "=" expr
//!           | x "[" index "]" "=" expr
//!           | "carry" loopvar "=" index                                       trailing ones of the index
//!           | "pick" loopvar "=" expr "to" count                              an integer, at most the count
//!           | "misalign" loopvar "=" x "[" index "]" "in" count               elements after the start of a line
//!           | "rotate" a "[" count ".." count "]" "by" loopvar                elements move down, the first to the end
//!           | "prefetch" "far"? x "[" index "]"                                a line of memory, soon to be loaded
//!           | "merge" list(a) "by" name "over" count "of" count               blocks, elements of each
//!           | "fold" list(a) "by" name "over" count "of" count "by" count     lanes present, lanes, elements of each
//!           | "select" list(v) "=" ("nth" list(count) | "mode") "of" a "over" count
//!           | "transpose" (a "=" x "[" index "]" | x "[" index "]" "=" a) "over" (strided ",")? strided
//!             "at" list(count) ("within" count)?                              lanes, distance, columns; length to read
//!           | "wide" body
//! strided   = count "by" "-"? count                                          so many elements, so far apart
//! range     = "0" ".." (count | loopvar ("of" count)?) | loopvar ".." count  without lanes at an end, of so many
//! kind      = "parallel" | "seq" | "lanes"
//! expr      = value ":" dtype
//!           | v
//!           | x "[" index "]"
//!           | a "[" index "]"
//!           | dtype "[" index "]"                                             the value of the index
//!           | operation "(" list(expr) ")"
//!           | name "(" list(expr)? ")"                                        a definition with one result
//! operation = "neg" | "abs" | "sqrt" | "nearest" | "not" | "clz" | "add" | "sub" | "mul" | "mul_high" | "div"
//!           | "scale" | "scale_down" | "min" | "max" | "and" | "or" | "xor" | "shl" | "shr" | "eq" | "ne" | "lt" | "le"
//!           | "fma" | "div_by" | "select"
//!           | dtype                                                           a conversion
//!           | "bits_" dtype                                                   the same bits as another type
//! index     = "-"? term (("+" | "-") term)*
//! term      = count ("*" loopvar)? | loopvar
//! value     = "-"? (number | "inf" | "nan") | "true" | "false" | "bits" "(0x" hex ")"
//! dtype     = "bool" | "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "f16" | "bf16" | "f32" | "f64"
//! name      = a letter or "_", then letters, digits, "_", and dots inside
//! x a v     = that letter and a number: a buffer, an accumulator, a value
//! loopvar   = a letter and a number; the letter is one of "i" "b" "k" "j" "l" "e" "q" "p" "s" (see `Over`)
//! ```
//!
//! A name before `(` is a call, whatever the name is. Reads, loads, values and results have no written type: it follows
//! from the declarations, which stand before. Loops and wide functions nest at most [`MAX_DEPTH`] deep, and so do
//! expressions.
//!
//! # What a nest means
//!
//! - Iterations of a `parallel` loop write different elements and read none that another iteration writes: they may run
//!   in any order, any number at a time. Iterations of a `seq` loop run in order. A `lanes` loop is parallel and
//!   runs all iterations together: each value in it is a vector. Two `lanes` loops, one in the other, make a vector of
//!   the lanes of both.
//! - **A pass may exchange two iterations if and only if they do not write the same accumulator
//!   element.** So each element keeps its combinations and their order; [`eval::Terms`] proves it.
//!   Sums of integers are the exception: addition modulo 2^bits is exact, so their elements may be added in any
//!   order, and the term of such a sum is the sum of the terms of its elements. They may be added in a narrower type, a part
//!   at a time, which holds the sum of each part whatever the elements are.
//! - Operations mean what [`Op`] says: IEEE 754 rounded once, to nearest even, subnormals
//!   kept, nothing contracted; integers modulo 2^bits. The payload of a NaN is not specified; a definition
//!   makes NaN canonical before the nest stores it.
//! - Where in a line of memory an input begins is known when a nest runs, and shows in no result: `misalign` may bind any
//!   place, and [`eval::Terms`] proves that the terms are those of every other place. In a nest that a caller gives it
//!   binds 0, as in the interpreter.
//! - Block states merge and lanes fold in the order of [`tree`].
//! - `select` finds elements of a slice by their order, whatever their places ([`Selection`] defines the order). It
//!   leaves the slice in any order: afterwards only another `select` may take it.
//!
//! # What a reduction means
//!
//! The rows of [`ops`] keep these rules, whatever the target:
//!
//! | question | answer |
//! | --- | --- |
//! | float sums | start from -0: the sum of [-0, -0] is -0, of nothing +0 |
//! | float minimum, maximum | IEEE 754-2019: any NaN gives NaN; -0 is below +0; the maximum of all -inf is -inf |
//! | nothing to reduce | sum 0, product 1, minimum +inf, maximum -inf (integers: the limits), any false, all true, log_sum_exp -inf, sum_exp -inf and 0, mean, mean_pair, var and median NaN; positions and integer means are refused |
//! | mean, var | one division by n, by n - ddof, in the accumulator's type; where n <= ddof a division by 0 |
//! | var | the sum of squared deviations from the mean, which is a pair of floats; never below 0 |
//! | argmax, argmin | row-major position in the reduced axes in ascending order; of equal elements (-0 equals +0) the first, or the last; NaN is the extreme, the first one, or the last |
//! | median, quantile | NaN if there is one; the mean of the middle two elements; linear between the two nearest, infinite beside an infinite one, NaN between -inf and +inf |
//! | mode | the least of the most frequent elements: -0 equals +0 and is given as +0, NaN equals NaN and is greatest |
//! | log_sum_exp | any NaN: NaN; else any +inf: +inf; all -inf: -inf |
//! | sum_exp | any NaN: NaN and NaN; else any +inf: +inf and NaN; all -inf: -inf and 0 |
//! | mean_pair | two floats, the mean and its rounding error, as var has it; with NaN or an infinity the second is NaN |
//! | float accumulators | f16 and bf16 in f32; f32 in f32, f64 in f64, or f64 for all where asked; one rounding to the output |
//! | integers, modular | sum, prod, l1, sum_squares without `saturate`: exact modulo 2^bits of the output |
//! | integers, true value | mean, l2, minimum, maximum, linf, ptp, median, mode, anything with `saturate` or a float output: the exact total is finished, then rounded or clamped once |
//! | integer mean and l2 | towards zero; `round_half_even` where asked |
//! | integer products, true value | a sign and a magnitude that stays at 2^64 - 1 once it exceeds it; zero wins |
//! | integer to float | the exact total to f64, finished in f64, converted once |
//! | float to integer | asked for with `trunc` or `round_half_even`; clamped; NaN gives 0 |
//! | NaN results | the canonical quiet NaN |
//! | norms | not scaled: the l2 of 1e30 in f32 is inf |
//! | expressions | floats in the accumulator's type; see [`expression`] and [`ops::Recipe`] |
//! | truth | one byte, any but 0 is true; 0 or 1 is written |

pub mod analysis;
mod dtype;
pub mod eval;

mod expr;
pub mod expression;
mod index;
pub mod math;
pub mod nearest;
mod nest;
mod op;
pub mod ops;
mod parse;
mod print;
pub mod region;
mod scalar;
mod selection;
pub mod tree;
mod verify;
pub mod work;

pub use dtype::{DType, UnknownDType};
pub use expr::{Def, Expr, Lets};
pub use index::Index;
pub use nest::{
    AccId, BufId, Buffer, BufferRole, DefId, Extent, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt, Transpose, Var,
};
pub use op::Op;
pub use parse::{MAX_DEPTH, MAX_NUMBER, ParseError};
pub use scalar::Scalar;
pub use selection::Selection;
pub use verify::{Violation, Violations, verify};
