//! Kernels that write rows beside the hand-written loops of `cranefold-ceiling`, in turn, on one thread.
//!
//!     cargo bench --bench rows
//!
//! Prints the least time of a call of each, and the share of the loop's speed that the kernel reaches: rows of 768 and of
//! 4,096 elements, with inputs of 0.2 MB and of 8 MB. A loop need not be as exact as the kernel: `centered` is a mean of
//! twice the precision, and each quotient is that of IEEE 754.

#[path = "shared/turns.rs"]
mod turns;

use cranefold::{Compiler, Error, Spec};
use cranefold_ceiling::{RowLoop, row_loops};
use cranefold_fuzz::execute::Memory;
use turns::{call, in_turn};

/// The rows, each with a region of as many elements.
const ROWS: [(&str, &str); 5] = [
    ("softmax", "region x:f32[N,C] axes=[1] { m = max(x); e = exp(x - m); e / sum(e) }"),
    (
        "layer_norm",
        "region x:f32[N,C], w:f32[C], b:f32[C] axes=[1] { c = centered(x); c / sqrt(mean(c * c) + 1e-5) * w + b }",
    ),
    (
        "layer_norm",
        "region x:f32[N,C], w:f32[C], b:f32[C] axes=[1] { m = mean(x); v = mean((x - m) * (x - m)); (x - m) * rsqrt(v + 1e-5) * w + b }",
    ),
    ("rms_norm", "region x:f32[N,C], w:f32[C] axes=[1] { x * rsqrt(mean(x * x) + 1e-6) * w }"),
    ("int8", "region x:f32[N,C] axes=[1] { i8(round(x * (127 / linf(x)))) }"),
];

/// Rows and columns.
const SHAPES: [(usize, usize); 4] = [(64, 768), (12, 4096), (2736, 768), (512, 4096)];

fn main() -> Result<(), Error> {
    let compiler = Compiler::host()?;
    let loops = row_loops();
    let bits = loops.iter().map(RowLoop::bits).max().unwrap_or_default();
    println!("{:>9} {:>9} {:>6}  region", "loop", "kernel", "share");
    for (what, text) in ROWS {
        let hand = loops.iter().find(|rows| rows.what() == what && rows.bits() == bits);
        let Some(hand) = hand else { continue };
        for (rows, columns) in SHAPES {
            let text = text.replace('N', &rows.to_string()).replace('C', &columns.to_string());
            let spec: Spec = text.parse()?;
            let kernel = compiler.compile(&spec)?;
            let mut memory = Memory::of(&spec, 3, 1, (0, 0));
            let mut other = Memory::of(&spec, 3, 1, (0, 0));
            let ones = 1f32.to_le_bytes().repeat(columns);
            let x = other.inputs[0].bytes();
            let written = other.outputs[0].bytes_mut();
            let [loop_ns, kernel_ns] =
                in_turn([&mut || hand.run(x, [&ones, &ones], written), &mut call(&kernel, &mut memory)]);
            let share = 100.0 * loop_ns / kernel_ns;
            println!("{:>6.1} us {:>6.1} us {share:>4.0} %  {text}", loop_ns / 1e3, kernel_ns / 1e3);
        }
    }
    Ok(())
}
