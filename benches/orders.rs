//! The rate of `order=logical` beside that of `order=memory`, on operands that do not lie in memory as they are indexed.
//!
//!     cargo bench --bench orders
//!
//! Prints, for data in the second-level cache, in the last one and in memory, the times as fast that a kernel with
//! `order=logical` is as the one without; `=` where both are one problem. Least times of calls in turn, on one thread.

#[path = "shared/turns.rs"]
mod turns;

use cranefold::{Compiler, Error, Problem, Spec};
use cranefold_fuzz::execute::Memory;
use turns::{call, in_turn};

/// Operands of N rows, or of P images, and the axes that are reduced.
const OPERANDS: [(&str, &str); 13] = [
    ("as indexed", "f32[N,512] axes=[1]"),
    ("as indexed, columns", "f32[N,512] axes=[0]"),
    ("transposed, rows", "f32[N,512]@(1,N) axes=[1]"),
    ("transposed, columns", "f32[N,512]@(1,N) axes=[0]"),
    ("transposed, all", "f32[N,512]@(1,N) axes=[0,1]"),
    ("Fortran order, two axes", "f32[N,16,32]@cba axes=[1,2]"),
    ("Fortran order, all", "f32[N,16,32]@cba axes=[0,1,2]"),
    ("NHWC, pixels", "f32[P,64,16,16]@acdb axes=[2,3]"),
    ("NHWC, channels", "f32[P,64,16,16]@acdb axes=[1]"),
    ("NHWC, channels and pixels", "f32[P,64,16,16]@acdb axes=[1,2,3]"),
    ("every second element", "f32[N,256]@(512,2) axes=[1]"),
    ("every second column", "f32[N,256]@(512,2) axes=[0]"),
    ("one row for all", "f32[N,512]@(0,1) axes=[0,1]"),
];

const OPS: [&str; 4] = ["sum", "max", "var", "log_sum_exp"];

/// Rows of 512: 0.5 MB, 8 MB and 64 MB.
const ROWS: [usize; 3] = [256, 4096, 32768];

fn main() -> Result<(), Error> {
    let compiler = Compiler::host()?;
    println!("{:<28}{:<14}{:>8}{:>8}{:>8}", "operand", "op", "0.5 MB", "8 MB", "64 MB");
    for (name, operand) in OPERANDS {
        for op in OPS {
            let mut line = format!("{name:<28}{op:<14}");
            for rows in ROWS {
                let operand = operand.replace('N', &rows.to_string()).replace('P', &(rows / 32).to_string());
                let specs = ["", " order=logical"].map(|order| format!("{op} {operand}{order}"));
                let [memory, logical] = specs.map(|text| text.parse::<Spec>());
                line += &format!("{:>8}", ratio(&compiler, &memory?, &logical?)?);
            }
            println!("{line}");
        }
    }
    Ok(())
}

/// The time of the first spec's kernel over that of the second's.
fn ratio(compiler: &Compiler, memory: &Spec, logical: &Spec) -> Result<String, Error> {
    if Problem::of(memory) == Problem::of(logical) {
        return Ok("=".into());
    }
    let kernels = [compiler.compile(memory)?, compiler.compile(logical)?];
    let mut first = Memory::of(memory, 3, 1, (0, 0));
    let mut second = Memory::of(memory, 3, 1, (0, 0));
    let [memory_ns, logical_ns] = in_turn([&mut call(&kernels[0], &mut first), &mut call(&kernels[1], &mut second)]);
    Ok(format!("{:.2}", memory_ns / logical_ns))
}
