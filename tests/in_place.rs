//! Outputs in the place of input 0: the same bits as elsewhere, and what is refused.

use cranefold::spec::Operand;
use cranefold::{CallError, Compiler, DType, Input, Kernel, Options, Output, Scalar, Spec, ops};
use std::collections::HashSet;

/// Elements of all kinds, the same each time.
fn elements(dtype: DType, count: u64) -> Vec<u8> {
    let mut bytes = vec![0; (count * dtype.bytes()) as usize];
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for i in 0..count as usize {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = match state >> 56 {
            0 => 0.0,
            1 => -0.0,
            _ => (state >> 40) as f64 / 4e6 - 2.0,
        };
        Scalar::float(dtype, value).write(&mut bytes, i);
    }
    bytes
}

/// The places in a buffer of the indices below these extents.
fn places(operand: &Operand, extents: &[u64]) -> Vec<usize> {
    let mut all = vec![vec![]];
    for &extent in extents {
        all = all.into_iter().flat_map(|at: Vec<u64>| (0..extent).map(move |i| [&at[..], &[i]].concat())).collect();
    }
    all.into_iter().map(|at| operand.placement().index(&at) as usize).collect()
}

/// Elements in their places, and all bits set, which is a NaN, in all others.
fn buffer(operand: &Operand) -> Vec<u8> {
    let (given, mut bytes) =
        (elements(operand.dtype(), operand.span_elems()), vec![0xff; operand.span_bytes() as usize]);
    for place in places(operand, operand.shape()) {
        Scalar::read(operand.dtype(), &given, place).write(&mut bytes, place);
    }
    bytes
}

/// What padding must hold after a call.
fn padding_is_zero(operand: &Operand, bytes: &[u8]) -> bool {
    let elements: HashSet<usize> = places(operand, operand.shape()).into_iter().collect();
    let padding = places(operand, &operand.placement().padded).into_iter().filter(|place| !elements.contains(place));
    padding.into_iter().all(|place| Scalar::read(operand.dtype(), bytes, place).bits() == 0)
}

fn both_ways(kernel: &Kernel) {
    let spec = kernel.spec().expect("a kernel of a spec");
    let buffers: Vec<Vec<u8>> = spec.inputs().iter().map(buffer).collect();
    let inputs: Vec<Input> =
        spec.inputs().iter().zip(&buffers).map(|(o, bytes)| Input::from_bytes(o.dtype(), bytes)).collect();
    // Between elements both hold what the input holds.
    let mut elsewhere = buffers[0].clone();
    kernel
        .run(&inputs, &mut [Output::from_bytes(spec.outputs()[0].dtype(), &mut elsewhere)])
        .unwrap_or_else(|e| panic!("{spec}: {e}"));
    let mut data = buffers[0].clone();
    let output = &mut Output::from_bytes(spec.inputs()[0].dtype(), &mut data);
    kernel.run_in_place(output, &inputs[1..]).unwrap_or_else(|e| panic!("{spec}: {e}"));
    assert!(data == elsewhere, "{spec} with {}", kernel.schedule());
    assert!(padding_is_zero(&spec.outputs()[0], &data), "{spec} with {}", kernel.schedule());
}

#[test]
fn every_row_that_writes_the_slice() {
    let compiler = Compiler::host().expect("this machine");
    let shapes = [
        ("[3,70]", "[1]"),
        ("[70,3]", "[0]"),
        ("[5,9000]", "[1]"),
        ("[300,70]", "[0]"),
        ("[4,130,6]", "[1]"),
        ("[4,5,6]", "[0,2]"),
        ("[4,5,6]@cba", "[0,2]"),
        ("[4,5]@(-10,2)", "[1]"),
        ("[7,8]", "[]"),
        // In blocks: the slice is cut, what is kept, both; blocks in blocks, backwards, with gaps.
        ("[3,20]@aB8b", "[1]"),
        ("[300,21]@aB16b", "[0]"),
        ("[19,5,21]@AbC4a8c", "[0,2]"),
        ("[21,45]@BA2a4b4a4b", "[1]"),
        ("[37,3]@(-8,50)8a+3", "[0]"),
        ("[3,5003]@aB32b", "[1]"),
        ("[5,6]@Ab4a", "[]"),
    ];
    let mut rows = 0;
    for row in ops::ROWS.iter().filter(|row| row.applies) {
        rows += 1;
        for dtype in ["f32", "f64", "f16", "bf16"] {
            for (shape, axes) in shapes {
                let layout = shape.split_once('@').map_or(String::new(), |(_, tag)| format!(" -> @{tag}"));
                // Further inputs are scalars to the shape.
                let more = format!(", {dtype}[1]").repeat(row.inputs - 1);
                let spec: Spec =
                    format!("{} {dtype}{shape}{more} axes={axes}{layout}", row.name).parse().expect("a spec");
                both_ways(&compiler.compile(&spec).expect("a kernel"));
            }
        }
    }
    assert!(rows >= 12, "{rows} rows write the slice");
}

#[test]
fn expressions_and_forced_schedules() {
    let compiler = Compiler::host().expect("this machine");
    let specs = [
        "sum f32[40,50] axes=[1] apply=\"x0 / r0\"",
        "sum f32[40,50] axes=[0] apply=\"x0 / r0\"",
        "mean,var f32[40,50], f32[50] axes=[0] apply=\"(x0 - r0) / sqrt(r1 + 1) * x1\"",
        "sum f32[40,50]@AB16a16b axes=[1] apply=\"x0 / r0\" -> @any",
        "sum f32[40,50]@AB16a16b axes=[0] apply=\"x0 / r0\" -> @any",
        "mean,var f32[40,50]@aB16b, f32[50]@A4a axes=[0] apply=\"(x0 - r0) / sqrt(r1 + 1) * x1\" -> @any",
        "max f32[200,50] axes=[0] map=\"abs(x0)\" apply=\"select(abs(x0) == r0, 0, x0)\"",
    ];
    for text in specs {
        let spec: Spec = text.parse().expect("a spec");
        for schedule in ["", "width=0", "width=128 tile=i0:16 jam=8", "width=256 tile=i0:7", "in_flight=3"] {
            let schedule = (!schedule.is_empty()).then(|| schedule.parse().expect("a schedule"));
            both_ways(&compiler.compile_with(&spec, &Options { schedule, width: None }).expect("a kernel"));
        }
    }
}

#[test]
fn other_reductions_are_refused() {
    let compiler = Compiler::host().expect("this machine");
    for text in [
        "sum f32[4,5] axes=[1]",
        "softmax f32[4,5] axes=[1] -> f16",
        "softmax f32[4,5] axes=[1] -> @ba",
        "softmax f32[4,5]@(10,2) axes=[1]",
        "softmax f32[4,5]@aB4b axes=[1]",
        "softmax f32[4,5]@aB4b axes=[1] -> @(12,4)2b",
    ] {
        let spec: Spec = text.parse().expect("a spec");
        let mut data = elements(DType::F32, spec.inputs()[0].span_elems());
        let before = data.clone();
        let output = &mut Output::from_bytes(DType::F32, &mut data);
        let refused = compiler.compile(&spec).expect("a kernel").run_in_place(output, &[]);
        assert_eq!(refused, Err(CallError::InPlace), "{text}");
        assert_eq!(data, before);
    }
    let softmax = compiler.compile(&"softmax f32[4,5] axes=[1]".parse().expect("a spec")).expect("a kernel");
    let mut short = [0.0f32; 19];
    let refused = softmax.run_in_place(&mut Output::from(&mut short[..]), &[]).expect_err("too short");
    assert_eq!(refused.to_string(), "input 0 has 19 elements, the kernel takes 20");
}
