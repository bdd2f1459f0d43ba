//! Truth values of comparisons of types of other sizes, of lanes and of one value for all lanes, in one expression: at
//! every width as the interpreter gives them.

use cranefold::{Compiler, Options, Problem, Spec, pipeline};
use cranefold_fuzz::execute::Memory;

/// Asserts that the kernels of all widths give the bits of the interpreter.
fn check(compiler: &Compiler, text: &str, kind: u8, seed: u64) {
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let memory = Memory::of(&spec, kind, seed, (0, 0));
    let nest = pipeline::checked("nest", cranefold::lower::lower(&Problem::of(&spec), "naive"));
    let expected = memory.interpreted(&nest.expect("a nest"));
    for width in [512, 256, 128, 64, 0] {
        let kernel = compiler.compile_with(&spec, &Options { width: Some(width), ..Options::default() });
        let found = memory.run(&kernel.unwrap_or_else(|e| panic!("{text}: {e}")));
        let same = found.iter().zip(&expected).all(|(found, expected)| found.bytes() == expected.bytes());
        assert!(same, "{width} bits: {text}");
    }
}

#[test]
fn truths_of_all_sizes_combine() {
    let compiler = Compiler::host().expect("a compiler");
    let dtypes = ["i8", "i16", "i32", "i64", "f32", "f64"];
    for a in dtypes {
        for b in dtypes {
            for (shape_a, shape_b) in
                [("3,20", "3,20"), ("3,1", "3,20"), ("3,20", "3,1"), ("3,1", "3,2"), ("3,2", "3,1")]
            {
                let text = format!(
                    "region x:{a}[{shape_a}], y:{b}[{shape_b}] axes=[1] {{ p = x <= 1; q = y > 0; \
                     p or q, p and q, p == q, select(q or p, f32(x), 0), sum(f32(p and not q)) }}"
                );
                check(&compiler, &text, 4, 11);
            }
        }
    }
}

/// A truth value of all lanes comes first, and one of lanes of four bytes second.
#[test]
fn a_truth_of_all_lanes_is_as_wide_as_one_of_lanes() {
    let compiler = Compiler::host().expect("a compiler");
    for or in ["or", "and"] {
        let text = format!(
            "mean u8[2,4,2,2,2]@(1,0,2,4,8), bf16[2,2,1], i8[2,1,2,2,2] axes=[0] scalar eps:f32 \
             apply=\"x1 <= f32(eps) {or} bool(x2)\" -> @cadbe+1"
        );
        (0..20).for_each(|seed| check(&compiler, &text, 2, seed));
        check(&compiler, &text, 2, 0x2a77_e130_5eea_d332);
    }
}
