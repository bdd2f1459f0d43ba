//! The machine passes, in order: from instructions over virtual registers to bytes. All that they know of an
//! instruction is its row in the [`table`].
//!
//! | pass | effect |
//! | --- | --- |
//! | [`divisions`] | divides some of the quotients by one number, beside products; not on Intel's cores |
//! | [`quotients`] | divides by one number through its reciprocal |
//! | [`maxima`] | joins the checks for NaN of successive maxima (AVX-512) |
//! | [`balance`] | adds in the [`units`] that multiply, where a loop has more for those that add |
//! | [`permutations`] | permutes once what is permuted twice (AVX-512) |
//! | [`dead`] | removes instructions whose results nothing reads |
//! | [`coalesce`] | removes copies |
//! | [`order`] | list scheduling: independent chains run side by side |
//! | [`nontemporal`] | tests the addresses of stores past the caches |
//! | [`constants`] | gives each constant a register around a loop, or a place in memory |
//! | [`registers`] | linear-scan register allocation over the intervals of [`live`]; the frame holds the rest |
//! | [`encode`] | writes the [`bytes`] of each instruction by its [`encoding`]; operands in the frame are those of [`spills`] |
//!
//! In tests, in the fuzzer and with debug assertions, [`check`] executes the program on symbols before and after each pass from
//! [`dead`] on; those before it change what instructions compute.

mod balance;
mod bytes;
mod check;
mod coalesce;
pub mod code;
mod constants;
mod dead;
mod divisions;
pub mod encode;
mod encoding;
mod live;
mod maxima;
pub mod nontemporal;
mod order;
mod permutations;
mod quotients;
mod registers;
mod row;
mod spills;
pub mod table;
pub mod tier;
mod units;

use crate::codegen::x86::Refused;
use crate::vectors::Vectors;
use check::Watch;
use code::{MachineProgram, Reg};
use constants::Pool;
use encode::Encoded;
use tier::Tier;

/// The bytes of a program, and the facts that its caller needs.
#[derive(Debug)]
pub struct Assembled {
    /// The bytes.
    pub code: Encoded,
    /// Bytes of the frame that spilled registers take.
    pub frame_bytes: u64,
    /// The name of each loop.
    pub loops: Vec<String>,
}

/// The frame of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFrom {
    /// The caller's, its second argument.
    Caller,
    /// The program's own, on the stack, if it names it at all.
    Stack,
}

/// The bytes of a program whose arguments are `buffers` and, where the caller has it, the frame; spilled registers lie
/// `spills_at` bytes into the frame.
///
/// # Errors
/// An error if the instruction set lacks an instruction: a bug of ours.
pub fn assemble(
    mut program: MachineProgram,
    vectors: Vectors,
    buffers: Reg,
    (frame, spills_at): (FrameFrom, u64),
) -> Result<Assembled, Refused> {
    let tier = Tier::of(vectors);
    if !vectors.intel {
        divisions::divide(&mut program, tier);
    }
    quotients::expand(&mut program, tier);
    if tier.is_512() {
        maxima::join_maxima(&mut program);
    }
    balance::balance(&mut program, tier);
    if tier.is_512() {
        permutations::compose(&mut program);
    }
    let mut watch = Watch::new(&program, tier);
    dead::remove_dead(&mut program);
    watch.passed("dead", &program, &Pool::default());
    coalesce::coalesce(&mut program);
    watch.passed("coalesce", &program, &Pool::default());
    order::order(&mut program, tier);
    watch.passed("order", &program, &Pool::default());
    nontemporal::expand(&mut program);
    let mut watch = Watch::new(&program, tier);
    let pool = constants::place(&mut program, tier, &[buffers]);
    watch.passed("constants", &program, &pool);
    let homes = registers::allocate(&program, tier, buffers);
    let code = encode::encode(&program, &homes, &pool, tier, (frame, spills_at))?;
    watch.encoded(&program, &homes, &code, buffers, spills_at);
    Ok(Assembled { code, frame_bytes: homes.frame_bytes.into(), loops: program.loops })
}
