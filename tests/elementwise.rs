//! Regions that reduce nothing: pixels, planes, layouts and transposes have the interpreter's bits by the schedule that is
//! chosen, at all widths, in parts, and where an output takes the place of an input.

use cranefold::{Compiler, Options, Problem, Schedule, Spec, lower};
use cranefold_fuzz::execute::Memory;

/// Operands and bodies; extents leave rests of 16, of 64 and of a line.
const REGIONS: [(&str, &str); 25] = [
    ("x:u8[5,7,3], m:f32[3], s:f32[3]", "(f32(x) - m) / s"),
    ("x:bf16[2,37,3], m:bf16[2,1,3]", "bf16(x * m), f32(x)"),
    ("x:f32[50,20], m:f32[20]", "x * m"),
    ("x:f32[41,7], m:f32[41,1], w:f32[7]", "x * m + w"),
    ("x:f32[35,33]@ba", "x * 2"),
    ("x:f32[35,33]@ba, y:f32[35,33]", "x + y, x * y"),
    ("x:f64[35,18]@ba", "exp(x)"),
    ("x:i8[70,67]@ba", "x"),
    ("x:f16[35,33]@ba", "f16(x * 2)"),
    ("x:i64[20,33]@ba", "i32(x)"),
    ("x:bool[33,20]@ba, y:f32[33,20]", "select(x, y, -inf)"),
    ("x:u8[2,3,5,29]@acdb, m:f32[3,1,1], s:f32[3,1,1]", "(f32(x) - m) / s"),
    ("x:f32[2,3,5,29], m:f32[3,1,1]", "u8(x * m) @acdb, bf16(x)"),
    ("x:f32[2,2,40]@acb", "x - 1"),
    ("x:f32[2,19,6,7]", "x + 1 @aBcd8b"),
    ("x:f32[2,19,6,7]@aBcd8b, m:f32[19,1,1]", "sqrt(abs(x)) * m @acdb"),
    ("x:f32[3,17,4,18]@dcba", "f32(position(1)) * x"),
    ("x:f32[18,35]@ba", "old(0) + x"),
    ("x:f32[37,3], m:f32[37,1], w:f32[3]", "x * m + w"),
    ("x:bf16[53,7], m:bf16[53,1]", "bf16(x * m)"),
    ("x:u8[67,3], m:f32[67,1]", "u8(round(f32(x) * m))"),
    ("x:f64[35,2], m:f64[35,1]", "x / m"),
    ("x:f32[3,21,5], m:f32[3,21,1], w:f32[5]", "exp(x - m) * rsqrt(w)"),
    ("x:bool[49,4], m:f32[49,1]", "select(x, m, 0), m"),
    ("x:f16[40,12], m:f32[40,1]", "f16(tanh(x) + m)"),
];

fn spec((operands, body): (&str, &str)) -> Spec {
    let text = format!("region {operands} axes=[] {{ {body} }}");
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn loops_without_reductions_have_the_interpreters_bits() {
    let compiler = Compiler::host().expect("this machine");
    let mut replaced = 0;
    for spec in REGIONS.map(spec) {
        let naive = lower::lower(&Problem::of(&spec), "naive");
        for kind in [1, 2] {
            let expected = Memory::of(&spec, kind, 9, (0, 0)).interpreted(&naive);
            for schedule in ["", "width=512", "width=512 parts=3", "width=256", "width=128 parts=2"] {
                let forced = (!schedule.is_empty()).then(|| schedule.parse::<Schedule>().expect("a schedule"));
                let options = Options { schedule: forced, ..Options::default() };
                let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
                let memory = Memory::of(&spec, kind, 9, (0, 0));
                let same = memory.run(&kernel).iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}, schedule `{schedule}`, data {kind}");
                for input in (0..spec.inputs().len()).filter(|&input| spec.may_replace(0, input)) {
                    let over: Vec<_> = (0..spec.inputs().len()).map(|i| (i == input).then_some(0)).collect();
                    let outputs = memory.over(&over).run_over(&kernel, &over);
                    // What `old` reads is the input then.
                    let expected = match spec.reads_old(0) {
                        true => memory.over(&over).interpreted(&naive),
                        false => expected.clone(),
                    };
                    let same = outputs.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                    assert!(same, "{spec}, schedule `{schedule}`, data {kind}, over input {input}");
                    replaced += 1;
                }
            }
        }
    }
    assert!(replaced >= 40, "an output took the place of an input {replaced} times");
}
