//! Outputs in the place of inputs: the same bits as elsewhere, and what is refused.

use cranefold::schedule::{Bounds, Decided, choose};
use cranefold::spec::Operand;
use cranefold::{
    CallError, Compiler, DType, Input, Kernel, Options, Output, Problem, Scalar, Schedule, Spec, Vectors, ops, pipeline,
};
use cranefold_fuzz::bits::are_equal;
use cranefold_fuzz::execute::Memory;
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
    assert_eq!(refused.to_string(), "input 0 has 19 elements, the kernel `softmax f32[4,5] axes=[1]` takes 20");
}

/// Regions with outputs that may take the place of inputs.
const REGIONS: &[&str] = &[
    "region x:f32[40,50] axes=[1] { x / sum(x) }",
    "region x:f32[40,50], h:f32[40,50], w:f32[50] axes=[1] { y = x + h; c = centered(y); y, c * rsqrt(mean(c * c) + 1e-5) * w, mean(y) }",
    // What is written first needs none of the input that it replaces.
    "region x:f32[40,50], h:f32[40,50] axes=[0] { h * 2, x - max(x), x * h }",
    "region x:f32[40,50], h:f32[40,50] axes=[1] { h * 2, x * 3, argmax(x + h) }",
    "region x:f32[2,1003], h:f32[2,1003] axes=[1] { exp(h), x / sum(x), h - x }",
    "region x:f64[130,11], h:f64[130,11] axes=[0] order=logical { h, x, x + h - mean(x * h) }",
    "region x:bf16[5,67], h:bf16[5,67] axes=[1] { bf16(h), bf16(x - max(x)), bf16(x * h) }",
    "region x:i32[5,67], h:i32[5,67] axes=[1] { h - max(x), x - min(h), i32(sum(x)) }",
    // Slices of one element, and none that is reduced.
    "region x:f32[70,1], h:f32[70,1] axes=[1] { h * 2, x * 3, x * h }",
    "region x:f32[1,1], h:f32[1,1] axes=[0,1] { h * 2, x * 3, x * h }",
    "region x:f32[7,70], h:f32[7,70] axes=[] { h * 2, x * 3, x * h }",
    "region x:i64[7,70], h:i64[7,70] axes=[] { h, x }",
    "region x:f32[0,5], h:f32[0,5] axes=[1] { h * 2, x - sum(x) }",
    // What the outputs held is what the inputs hold.
    "region x:f32[8,100], h:f32[8,100] axes=[1] { h + old(0), x * 2 + old(1) - max(x), old(1) + sum(h) }",
    "region x:f32[8,100], h:f32[8,100] axes=[1] { s = sum(x); h - s, x * h, sum(s, axes=[0]), s }",
    "region x:f32[4,5,6], h:f32[4,5,6] axes=[0,2] { h * 2, x - max(x), median(h) }",
    // Layouts: backwards, with gaps, in blocks with tails.
    "region x:f32[9,35]@(-40,1)+320, h:f32[9,35]@(-40,1)+320 axes=[1] { h * 2@(-40,1)+320, x - max(x)@(-40,1)+320 }",
    "region x:f32[21,45]@BA2a4b4a4b, h:f32[21,45]@BA2a4b4a4b axes=[1] { h * 2@BA2a4b4a4b, x - max(x)@BA2a4b4a4b }",
    "region x:f32[21,45]@aB16b, h:f32[21,45]@aB16b axes=[0] { h * 2@aB16b, x - mean(h)@aB16b, x }",
];

/// Every choice of an output, or none, for each input, each output at most once; but that of none.
fn choices(spec: &Spec) -> Vec<Vec<Option<usize>>> {
    let mut all = vec![vec![]];
    for input in 0..spec.inputs().len() {
        let outputs = (0..spec.outputs().len()).filter(|&output| spec.may_replace(output, input)).map(Some);
        let outputs: Vec<Option<usize>> = [None].into_iter().chain(outputs).collect();
        let with = |before: Vec<Option<usize>>| {
            let free = outputs.iter().filter(|output| output.is_none() || !before.contains(output)).copied();
            free.map(|output| [&before[..], &[output]].concat()).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(with).collect();
    }
    all.into_iter().filter(|over| over.iter().any(Option::is_some)).collect()
}

/// Schedules of a region that divide it, or take several steps or slices at once.
const SCHEDULES: &[&str] = &[
    "width=512 jam=4 in_flight=2",
    "width=256 interleave=2",
    "width=128 parts=3 transpose=off",
    "width=512 tile=i0:16 align=64",
];

/// Checks that the interpreter gives the bits of elsewhere after each pass where as many outputs as may be take the place
/// of inputs.
fn check_stages(spec: &Spec, given: &Memory, forced: &[Schedule]) {
    let problem = Problem::of(spec);
    let over = choices(spec).into_iter().max_by_key(|over| over.iter().flatten().count()).expect("a choice");
    let memory = given.over(&over);
    let expected = memory.interpreted(&cranefold::lower::lower(&problem, "naive"));
    let mut seen = vec![];
    for schedule in forced.iter().cloned().chain([choose(&problem, 512)]) {
        let decided = Decided::of(problem.clone(), Some(&schedule), Bounds::new(Vectors::WIDEST));
        for (stage, program) in pipeline::stages(&decided.expect("a schedule that fits")).expect("stages") {
            if !seen.contains(&program) {
                let same = are_equal(&memory.interpreted_over(&program, &over), &expected);
                assert!(same, "{spec}, {over:?} after {stage}, {schedule}\n{program}");
                seen.push(program);
            }
        }
    }
}

#[test]
fn outputs_of_regions_in_the_place_of_inputs() {
    let (one, two) = (Compiler::host(), Compiler::builder().threads(2).build());
    let (one, two) = (one.expect("this machine"), two.expect("this machine"));
    let mut checked = 0;
    for text in REGIONS {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let problem = Problem::of(&spec);
        let given = Memory::of(&spec, 3, 5, (4, 8));
        let forced = SCHEDULES.iter().map(|s| s.parse::<Schedule>().expect("a schedule"));
        let forced: Vec<Schedule> = forced.filter(|schedule| schedule.check(&problem).is_ok()).collect();
        let widths = [0, 128, 256, 512].map(|width| Options { schedule: None, width: Some(width) });
        let options =
            widths.into_iter().chain(forced.iter().map(|s| Options { schedule: Some(s.clone()), width: None }));
        let kernels: Vec<Kernel> =
            options.flat_map(|o| [&one, &two].map(|c| c.compile_with(&spec, &o).expect("a kernel"))).collect();
        for over in choices(&spec) {
            let memory = given.over(&over);
            let expected = memory.run(&kernels[0]);
            for kernel in &kernels {
                assert!(are_equal(&memory.run(kernel), &expected), "{text} with {}", kernel.schedule());
                assert!(
                    are_equal(&memory.run_over(kernel, &over), &expected),
                    "{text}, {over:?}: {}",
                    kernel.schedule()
                );
            }
            checked += 1;
        }
        check_stages(&spec, &given, &forced);
    }
    assert!(checked > 60, "{checked} choices");
}

#[test]
fn outputs_that_are_no_inputs_place_are_refused() {
    let compiler = Compiler::host().expect("this machine");
    let text = "region x:f32[4,6], w:f32[6], h:f32[4,6]@ba axes=[1] { max(x), f16(x), x * w, x - h @ba }";
    let spec: Spec = text.parse().expect("a region");
    let memory = Memory::of(&spec, 3, 5, (0, 0));
    let kernel = compiler.compile(&spec).expect("a kernel");
    let may = [(0, 2), (2, 3)];
    for input in 0..3 {
        for output in 0..5 {
            let mut buffers = memory.outputs.clone();
            let own = |i: usize| Input::from_bytes(DType::F32, memory.inputs[i].bytes());
            let inputs = [0, 1, 2].map(|i| if i == input { Input::of_output(output) } else { own(i) });
            let outputs = spec.outputs().iter().zip(&mut buffers);
            let mut outputs: Vec<Output> =
                outputs.map(|(o, buffer)| Output::from_bytes(o.dtype(), buffer.bytes_mut())).collect();
            let done = kernel.run(&inputs, &mut outputs);
            drop(outputs);
            if may.contains(&(input, output)) {
                assert_eq!(done, Ok(()), "output {output} over input {input}");
                continue;
            }
            assert_eq!(done, Err(CallError::Replaces { output, input }));
            assert!(are_equal(&buffers, &memory.outputs), "something is written");
        }
    }
    let message = CallError::Replaces { output: 1, input: 0 }.to_string();
    assert_eq!(message, "output 1 does not have an element for each of input 0, of its type and in its place");
    let short = kernel.run(&[Input::of_output(2)], &mut []);
    assert_eq!(short, Err(CallError::Replaces { output: 2, input: 0 }));
}

/// In place on threads, part by part in any order, in the caller's scratch memory, and raw: the bits of a call elsewhere.
#[test]
#[allow(unsafe_code, reason = "one way to call is by raw pointers")]
fn in_place_in_every_way_to_call() {
    let compiler = Compiler::builder().threads(3).build().expect("this machine");
    let text = "region x:f32[700,1000], h:f32[700,1000] axes=[1] { y = x + h; y, exp(y - max(y)) / sum(y), max(y) }";
    let kernel = compiler.compile(&text.parse().expect("a region")).expect("a kernel");
    assert!(kernel.parts() > 1);
    let x: Vec<f32> = (0..700_000).map(|n| (n as f32 * 0.37).sin()).collect();
    let h: Vec<f32> = (0..700_000).map(|n| (n as f32 * 0.11).cos()).collect();
    let (mut y, mut z, mut m) = (vec![0.0f32; 700_000], vec![0.0f32; 700_000], vec![0.0f32; 700]);
    let mut elsewhere = [Output::from(&mut y), Output::from(&mut z), Output::from(&mut m)];
    kernel.run(&[Input::from(&x), Input::from(&h)], &mut elsewhere).expect("a call");
    let mut memory = vec![std::mem::MaybeUninit::uninit(); kernel.scratch_bytes() as usize + 64];
    let aligned = memory.as_ptr().align_offset(64);
    let scratch = &mut memory[aligned..];
    for way in 0..5 {
        // Output 0 is x, output 1 is h.
        let (mut over_x, mut over_h, mut max) = (x.clone(), h.clone(), vec![0.0f32; 700]);
        let pointers = [&mut over_x, &mut over_h].map(|list| list.as_mut_ptr().cast::<u8>());
        let [at_x, at_h] = pointers;
        let raw = [at_x, at_h, at_x, at_h, max.as_mut_ptr().cast(), scratch.as_mut_ptr().cast()];
        let inputs = [Input::of_output(0), Input::of_output(1)];
        let mut outputs = [Output::from(&mut over_x), Output::from(&mut over_h), Output::from(&mut max)];
        match way {
            0 => kernel.run(&inputs, &mut outputs).expect("a call"),
            1 => kernel.run_on(&cranefold::Rayon, &inputs, &mut outputs).expect("a call"),
            2 => kernel.run_in(&inputs, &mut outputs, scratch).expect("a call"),
            3 => {
                let call = kernel.call_in(&inputs, &mut outputs, scratch).expect("a call");
                std::thread::scope(|scope| {
                    (0..call.parts()).for_each(|part| {
                        drop(scope.spawn({
                            let call = &call;
                            move || call.run_part(part).expect("a part")
                        }))
                    });
                });
                call.finish().expect("all parts");
            }
            // SAFETY: a pointer to each buffer of the region, outputs 0 and 1 in the place of inputs, and scratch memory.
            _ => unsafe { kernel.run_raw_on(&cranefold::Rayon, raw.as_ptr()).expect("a call") },
        }
        let bits = |list: &[f32]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for (found, expected) in [(&over_x, &y), (&over_h, &z), (&max, &m)] {
            assert!(bits(found) == bits(expected), "way {way}");
        }
    }
    // What is wrong is refused in every way, and nothing is written.
    let (mut over, mut max) = (x.clone(), vec![7.0f32; 700]);
    let inputs = [Input::from(&h), Input::of_output(2)];
    let mut outputs = [Output::from(&mut over), Output::from(&mut z), Output::from(&mut max)];
    let replaces = Err(CallError::Replaces { output: 2, input: 1 });
    assert_eq!(kernel.run_on(&cranefold::Rayon, &inputs, &mut outputs), replaces);
    assert_eq!(kernel.call(&inputs, &mut outputs).map(drop), replaces);
    assert_eq!(kernel.run_in(&inputs, &mut outputs, scratch), replaces);
    assert!(over == x && max == vec![7.0; 700]);
}
