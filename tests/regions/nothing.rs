//! Regions of nothing: slices without elements, and totals without slices.

use super::bits::check;
use cranefold::{Compiler, Spec};
use cranefold_fuzz::bits::is_allowed;
use cranefold_fuzz::execute::Memory;

const BODIES: &[&str] = &[
    "{ s = sum(x); s, sum(s, axes=#), max(s, axes=#) }",
    "{ mean(max(x), axes=#) }",
    "{ m, s = sum_exp(x); exp(x - m) / s, m, log_sum_exp(s, axes=#) }",
    "{ x - mean(x), var(x), median(x), prod(prod(x), axes=#) / 3 }",
];

/// Shapes, the reduced axes and those of totals.
const SHAPES: &[(&str, &str, &str)] = &[
    ("[4,0,8]", "[2]", "[0,1]"),
    ("[0,4,8]", "[2]", "[0,1]"),
    ("[4,0,8]", "[2]", "[0]"),
    ("[4,0,8]", "[2]", "[1]"),
    ("[4,3,0]", "[2]", "[0,1]"),
    ("[0,3,0]", "[2]", "[1]"),
    ("[1,1,8]", "[2]", "[0,1]"),
    ("[3,8,1]", "[1]", "[0,2]"),
];

#[test]
fn slices_and_totals_of_nothing() {
    let compiler = Compiler::host().expect("a compiler");
    for order in ["memory", "logical"] {
        for (shape, axes, over) in SHAPES {
            for body in BODIES {
                let text = format!("region x:f32{shape} axes={axes} order={order} {}", body.replace('#', over));
                let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                check(&compiler, &text, &spec);
                let memory = Memory::of(&spec, 3, 5, (0, 0));
                let outputs = memory.run(&compiler.compile(&spec).expect("a kernel"));
                is_allowed(&spec, &memory, &outputs).unwrap_or_else(|e| panic!("{text}: {e}"));
            }
        }
    }
}
