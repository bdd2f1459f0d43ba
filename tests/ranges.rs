//! Shards of any range: random specs, cuts and brackets give the bytes of the whole, from any code; what is no range is
//! refused.

#![allow(clippy::single_range_in_vec_init, reason = "boxes are lists of ranges, of one axis too")]

use cranefold::ops::Combiner;
use cranefold::{Compiler, DType, Error, Input, Output, Partial, PartialError, Problem, Spec, Target, lower};
use cranefold_fuzz::data::{Buffer, Random};
use cranefold_fuzz::execute::Memory;
use std::ops::Range;

/// Every kind of reduction, with ranges that end inside blocks, at their ends, and in walks of whole blocks.
const SPECS: &[&str] = &[
    "sum f32[1] order=logical",
    "sum f32[60] order=logical",
    "sum f32[40000] order=logical",
    "sum f64[5,2000] axes=[1] order=logical",
    "sum f32[700,9] axes=[0] order=logical",
    "sum bf16[6,300,5] axes=[1] order=logical",
    "sum f32[90,7,11] order=logical",
    "sum f32[3,50,2,40] axes=[1,3] order=logical",
    "sum f32[1,5,3000] axes=[0,2] order=logical",
    "sum f32[7,1,900] axes=[0,2] order=logical",
    "sum f32[40,3,5000] axes=[0,2] order=logical",
    "max i32[9000] order=logical",
    "max i32[30,1,700] axes=[0,2] order=logical",
    "sum u8[9000] order=logical",
    "any bool[9000,2] axes=[0] order=logical",
    "mean,var f32[20000] order=logical",
    "var f32[700,30] axes=[0] order=logical",
    "log_sum_exp f32[300,8] axes=[0] order=logical",
    "argmax f32[9000] order=logical",
    "argmin f32[4,9000] axes=[1] order=logical",
    "argmax f32[90,3,50] axes=[0,2] order=logical",
    "sum,max f32[64,512] axes=[1] then=\"r0 - r1, r1 + d\" order=logical",
    "sum f32[640,51], f32[51] axes=[0] map=\"x0*x1\" order=logical",
    "sum f32[640,51], f32[640,1] axes=[0] map=\"x0*x1\" order=logical",
    "sum f32[9000,3], f32[3]:then axes=[0] scalar eps:f32 then=\"r0 / (y0 + eps)\" order=logical",
    "sum f32[9000] scalar shift:f32 map=\"x0 - shift\" then=\"r0 + shift\" order=logical",
    "sum,argmax f32[20000] order=logical",
    "argmax,var,max f32[700,6] axes=[0] order=logical",
    "mean,argmin,log_sum_exp bf16[40,3,5000] axes=[0,2] order=logical",
    "prod,argmax i16[6,3000] axes=[1] order=logical",
    "sum,argmax f32[9000,3], f32[3]:then axes=[0] scalar eps:f32 then=\"r0 / (y0 + eps), r1\" order=logical",
    "region x:f32[700,6], w:f32[700,1] axes=[0] order=logical { sum(x) / sum(w), argmax(x * w) }",
    "region x:f32[5,9000], y:f32[5,9000], z:f32[9000] axes=[1] order=logical { sum(x) * sum(y), max(z) }",
    "region x:f64[30,4,50], w:f64[30,1,1] axes=[0,2] order=logical { sum(x * w) / sum(w), argmin(x) }",
    "region x:f32[300,6], y:f32[6] axes=[0] order=logical { sum(x * f32(position(0))) + y, argmax(x) }",
    "region x:f32[20000,3] axes=[0] order=logical { v = var(x); sum(x) + v }",
    "region x:f32[700,6] axes=[0] order=logical { sum(x * f32(position(0))) + f32(position(1)) }",
];

fn specs() -> Vec<Spec> {
    let composition = |shape: &[u64], axes: &[i64]| {
        let maps = Combiner::new("1, 0", "x0, x1", "a0*b0, a1*b0 + b1").expect("a combiner");
        let own = Spec::own(maps).input(DType::F32, shape).input(DType::F32, shape);
        own.axes(axes.to_vec()).order(cranefold::spec::Order::Logical).build().expect("a spec")
    };
    let own = [composition(&[9000], &[0]), composition(&[300, 9], &[0]), composition(&[9, 300], &[1])];
    SPECS.iter().map(|text| spec(text)).chain(own).collect()
}

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Compilers of all widths that the machine has.
fn compilers() -> Vec<Compiler> {
    let mut all = vec![Compiler::host().expect("this machine")];
    #[cfg(target_arch = "x86_64")]
    for features in ["", "x86-64-v3"] {
        let target = Target::new("x86_64-unknown-linux-gnu", features).ok().filter(Target::is_host);
        all.extend(target.map(|target| Compiler::builder().target(target).build().expect("a compiler")));
    }
    all
}

/// The elements of a row-major array in a box, one range for each of its own axes.
fn part(bytes: &[u8], shape: &[u64], within: &[Range<u64>], size: usize) -> Vec<u8> {
    let Some((&extent, inner)) = shape.split_first() else { return bytes[..size].to_vec() };
    let each = bytes.len() / extent.max(1) as usize;
    let rows = within[0].clone().map(|row| &bytes[row as usize * each..(row as usize + 1) * each]);
    rows.flat_map(|row| part(row, inner, &within[1..], size)).collect()
}

/// The part of an input in a chunk of the whole's axes.
fn input_in(spec: &Spec, memory: &Memory, input: usize, chunk: &[Range<u64>]) -> Vec<u8> {
    let operand = &spec.inputs()[input];
    let mut within: Vec<Range<u64>> = operand.shape().iter().map(|&extent| 0..extent).collect();
    for (axis, range) in chunk.iter().enumerate() {
        if let Some(own) = spec.input_axis(input, axis) {
            within[own] = range.clone();
        }
    }
    part(memory.inputs[input].bytes(), operand.shape(), &within, operand.dtype().bytes() as usize)
}

fn state(partial: &Partial, whole: &Spec, memory: &Memory, chunk: &[Range<u64>]) -> Vec<u8> {
    let shard = partial.shard_of(chunk).unwrap_or_else(|e| panic!("{chunk:?} of {whole}: {e}"));
    let buffers: Vec<Buffer> = shard
        .inputs()
        .iter()
        .map(|span| Buffer::holding(&input_in(whole, memory, span.input, chunk), (chunk[0].start % 16) as usize))
        .collect();
    let inputs = shard.inputs().iter().zip(&buffers);
    let inputs: Vec<Input> =
        inputs.map(|(s, b)| Input::from_bytes(whole.inputs()[s.input].dtype(), b.bytes())).collect();
    let mut state = Buffer::holding(&vec![0xa5; partial.state_bytes()], (chunk[0].end % 16) as usize);
    shard.partial(&inputs, state.bytes_mut()).unwrap_or_else(|e| panic!("{chunk:?} of {whole}: {e}"));
    assert!(state.guards_hold(), "beside a state something is written");
    let axis = partial.axis().expect("an axis");
    let range = if chunk[axis].is_empty() { 0..0 } else { chunk[axis].clone() };
    assert_eq!(partial.range_of(state.bytes()).expect("a state"), range, "{whole}");
    state.bytes().to_vec()
}

fn used<'s>(partial: &Partial, state: &'s [u8]) -> &'s [u8] {
    &state[..partial.used_bytes(state).expect("a state")]
}

/// The shapes of a spec in a box of kept axes: the whole, or a random one.
fn chunk_of(spec: &Spec, random: &mut Random, whole: bool) -> Vec<Range<u64>> {
    let range = |axis: usize, random: &mut Random| {
        let extent = spec.shape()[axis];
        if whole || spec.reduced()[axis] {
            return 0..extent;
        }
        let start = random.below(extent);
        start..start + 1 + random.below(extent - start)
    };
    (0..spec.rank()).map(|axis| range(axis, random)).collect()
}

/// Compares random cuts of a box of a spec, made by any of the compilers, with the kernel.
fn check(spec: &Spec, compilers: &[Compiler], seed: u64, whole: bool) {
    let mut random = Random::new(seed);
    let memory = Memory::of(spec, [5, 0, 1][(seed % 3) as usize], seed, (4, 8));
    let expected = memory.interpreted(&lower::lower(&Problem::of(spec), "naive"));
    let terms = chunk_of(spec, &mut random, whole);
    let kept: Vec<Range<u64>> = spec.axes_kept().into_iter().map(|axis| terms[axis].clone()).collect();
    let partials: Vec<Partial> = compilers
        .iter()
        .map(|c| c.partial_of(spec, &kept).unwrap_or_else(|e| panic!("{kept:?} of {spec}: {e}")))
        .collect();
    let axis = partials[0].axis().expect("an axis");
    let extent = spec.shape()[axis];
    let at = |range: Range<u64>| {
        let mut chunk = terms.clone();
        chunk[axis] = range;
        chunk
    };
    let all = state(&partials[0], spec, &memory, &at(0..extent));
    for _ in 0..3 {
        let some = random.below(6);
        // Neighbouring and equal bounds make shards of one element and of none.
        let mut bounds: Vec<u64> = (0..some).map(|_| random.below(extent + 1)).chain([0, extent]).collect();
        let near: Vec<u64> = bounds.iter().filter(|_| random.below(3) == 0).map(|b| (b + 1).min(extent)).collect();
        bounds.extend(near);
        bounds.sort_unstable();
        let mut row: Vec<Vec<u8>> = vec![];
        for pair in bounds.windows(2) {
            let of = random.below(partials.len() as u64) as usize;
            row.push(state(&partials[of], spec, &memory, &at(pair[0]..pair[1])));
        }
        while row.len() > 1 {
            let n = random.below(row.len() as u64 - 1) as usize;
            let partial = &partials[random.below(partials.len() as u64) as usize];
            let (mut older, mut newer) = (row.remove(n), row.remove(n));
            let into = match random.below(2) {
                0 => partial.combine(&newer, &mut older, 1).map(|()| older),
                _ => partial.combine(&older, &mut newer, 1).map(|()| newer),
            };
            let into = into.unwrap_or_else(|e| panic!("{spec} at {bounds:?}: {e}"));
            let range = partial.range_of(&into).expect("a state");
            let alone = state(partial, spec, &memory, &at(range.clone()));
            assert!(used(partial, &into) == used(partial, &alone), "{spec} at {bounds:?}: the state of {range:?}");
            row.insert(n, into);
        }
        assert!(used(&partials[0], &row[0]) == used(&partials[0], &all), "{spec} at {bounds:?}");
    }
    let partial = &partials[0];
    let inputs: Vec<Vec<u8>> = partial.finish_inputs().iter().map(|&i| input_in(spec, &memory, i, &terms)).collect();
    let given = partial.finish_inputs().iter().zip(&inputs);
    let given: Vec<Input> = given.map(|(&i, bytes)| Input::from_bytes(spec.inputs()[i].dtype(), bytes)).collect();
    let place = |output: usize, bytes: &[u8]| {
        let operand = &spec.outputs()[output];
        let mut within: Vec<Range<u64>> = operand.shape().iter().map(|&extent| 0..extent).collect();
        for (axis, range) in terms.iter().enumerate() {
            if let Some(own) = spec.output_axis(output, axis) {
                within[own] = range.clone();
            }
        }
        part(bytes, operand.shape(), &within, operand.dtype().bytes() as usize)
    };
    let mut outputs: Vec<Vec<u8>> = memory.outputs.iter().enumerate().map(|(o, b)| place(o, b.bytes())).collect();
    let places = spec.outputs().iter().zip(&mut outputs);
    let mut places: Vec<Output> = places.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    partial.finish(&all, &given, &mut places, 1).unwrap_or_else(|e| panic!("{spec}: {e}"));
    for (o, bytes) in outputs.iter().enumerate() {
        assert!(*bytes == place(o, expected[o].bytes()), "{spec}: output {o} of {terms:?}");
    }
}

#[test]
fn any_cuts_give_the_bits_of_the_whole() {
    let compilers = compilers();
    for (seed, spec) in specs().iter().enumerate() {
        check(spec, &compilers, seed as u64, true);
        check(spec, &compilers, seed as u64 + 100, false);
    }
}

#[test]
fn random_specs_give_the_bits_of_the_whole() {
    let compilers = compilers();
    let mut random = Random::new(11);
    let mut pick = |from: &[u64]| from[random.below(from.len() as u64) as usize];
    let ops = ["sum", "mean", "max", "var", "argmax", "log_sum_exp", "mean,max", "norm_l2"];
    for seed in 0..60 {
        let rank = pick(&[1, 2, 3, 4]);
        let mut budget = 40_000;
        let mut shape: Vec<u64> = vec![];
        for _ in 0..rank {
            let extent = pick(&[1, 2, 3, 7, 40, 64, 65, 300, 5000]).min(budget).max(1);
            budget /= extent;
            shape.push(extent);
        }
        let axes: Vec<u64> = (0..rank).filter(|_| pick(&[0, 1]) == 1).collect();
        if axes.is_empty() {
            continue;
        }
        let op = ops[pick(&[0, 1, 2, 3, 4, 5, 6, 7]) as usize];
        let dtype = ["f32", "f64", "bf16"][pick(&[0, 1, 2]) as usize];
        let text = format!("{op} {dtype}{shape:?} axes={axes:?} order=logical").replace(", ", ",");
        let Ok(spec) = text.parse::<Spec>() else { continue };
        check(&spec, &compilers, seed, seed % 2 == 0);
    }
}

#[test]
fn the_bytes_of_a_state_follow_from_its_range() {
    let compiler = Compiler::host().expect("this machine");
    let partial = compiler.partial(&spec("sum f32[1000000] order=logical")).expect("partial results");
    let x = vec![1.0f32; 1_000_000];
    let bytes = |range: Range<u64>| {
        let mut state = vec![0; partial.state_bytes()];
        let input = Input::from(&x[range.start as usize..range.end as usize]);
        partial.shard_of(&[range]).expect("a range").partial(&[input], &mut state).expect("elements");
        partial.used_bytes(&state).expect("a state")
    };
    // A block is 4096 elements; a subtree has 64 lanes.
    assert_eq!(bytes(0..4096), 64 + 256);
    assert_eq!(bytes(8192..16384), 64 + 256);
    assert_eq!(bytes(5..105), 64 + 448, "400 bytes, to a multiple of 64");
    assert_eq!(bytes(4095..8193), 64 + 256 + 64 + 64);
    assert_eq!(bytes(7..7), 64);
    let most = partial.layout().most_entries * 256 + 2 * (4095 * 4 + 4) + 64;
    assert_eq!(partial.state_bytes(), most);
}

/// A shard of blocks reads the whole array's memory, and one of elements an array of its own: they have states of one kind.
#[test]
fn shards_of_blocks_and_of_elements_combine() {
    let compiler = Compiler::host().expect("this machine");
    let whole = spec("var f32[700,6] axes=[0] order=logical");
    let partial = compiler.partial(&whole).expect("partial results");
    let x: Vec<f32> = (0..4200).map(|i| (i % 1009) as f32 * 0.25).collect();
    let blocks = partial.shard(0..1).expect("a block");
    let rows = partial.layout().block_units as usize;
    assert_eq!(blocks.inputs()[0].elems, 0..6 * rows as u64);
    let (mut older, mut newer) = (vec![0; partial.state_bytes()], vec![0; partial.state_bytes()]);
    blocks.partial(&[Input::from(&x[..6 * rows])], &mut older).expect("a state");
    let rest = partial.shard_of(&[rows as u64..700, 0..6]).expect("a range");
    rest.partial(&[Input::from(&x[6 * rows..])], &mut newer).expect("a state");
    partial.combine(&older, &mut newer, 1).expect("neighbours");
    let (mut shared, mut alone) = ([0.0f32; 6], [0.0f32; 6]);
    partial.finish(&newer, &[], &mut [Output::from(&mut shared)], 1).expect("all");
    compiler.compile(&whole).expect("a kernel").run_one(&x, &mut alone).expect("its inputs");
    assert_eq!(shared.map(f32::to_bits), alone.map(f32::to_bits));
}

/// Reductions of several trees have shards of elements and none of blocks; the state has the bytes that each tree uses.
#[test]
fn several_trees_have_one_state() {
    let compiler = Compiler::host().expect("this machine");
    let of = |text: &str| compiler.partial(&spec(text)).expect("partial results");
    let all = of("sum,argmax f32[20000] order=logical");
    let alone = ["sum", "argmax"].map(|op| of(&format!("{op} f32[20000] order=logical")));
    assert_eq!(all.layout().trees.len(), 2);
    for range in [0..0, 0..20_000, 5..700, 4096..8192, 19_999..20_000] {
        let bytes = |partial: &Partial| partial.range_bytes(&range).expect("a range");
        assert_eq!(bytes(&all), 64 + alone.iter().map(bytes).sum::<usize>(), "{range:?}");
    }
    assert_eq!(all.state_bytes(), 64 + alone.iter().map(Partial::state_bytes).sum::<usize>());
    assert_eq!((all.blocks(), all.axis()), (0, Ok(0)));
    let refused = all.shard(0..1).expect_err("a refusal").to_string();
    let why = "reduces slices by several trees, whose blocks differ: ask for shards of elements, by `shard_of`";
    assert_eq!(refused, format!("there are no partial results of a reduction that {why}"));
    assert_eq!(all.dump().expect("nests").matches(": nest ==").count(), 5, "two merges for each tree, and a finish");
}

#[test]
fn what_is_no_range_is_refused_with_the_remedy() {
    let compiler = Compiler::host().expect("this machine");
    let of = |text: &str| compiler.partial(&spec(text)).expect("partial results");
    #[allow(clippy::reversed_empty_ranges, reason = "it is refused")]
    let backwards = 5..4;
    let refused = |text: &str, chunk: &[Range<u64>]| of(text).shard_of(chunk).expect_err("a refusal").to_string();
    assert_eq!(
        refused("sum f32[9000]", &[0..5]),
        "there are no shards of elements of this reduction: its order is that of memory: ask for `order=logical`"
    );
    assert_eq!(
        refused("sum f32[90,10]@ba axes=[0] order=logical", &[0..5, 0..10]),
        "there are no shards of elements of this reduction: an operand has a layout: write shapes alone, and give each \
         shard as a row-major array"
    );
    let two = "sum f32[90,3,10] axes=[0,2] order=logical";
    let remedy = "of reduced axes only the first of extent above 1, axis 0, is cut: bring the chunks of the others \
                  together, or reduce axis by axis";
    assert_eq!(refused(two, &[0..5, 0..3, 0..5]), format!("axis 2 of a shard is 0..5 of 10: {remedy}"));
    assert_eq!(
        refused(two, &[0..5, 0..2, 0..10]),
        "axis 1 of a shard is 0..2 of 3: these partial results are of 0..3, and others of other ranges"
    );
    assert_eq!(
        refused(two, &[0..91, 0..3, 0..10]),
        "axis 0 of a shard is 0..91 of 90: the range is not within the axis"
    );
    refused(two, &[backwards, 0..3, 0..10]);
    assert_eq!(
        refused(two, &[0..5]),
        "there are no shards of elements of this reduction: 1 ranges are given for 3 axes"
    );
    let boxes = |text: &str, kept: &[Range<u64>]| compiler.partial_of(&spec(text), kept).expect_err("a refusal");
    for (kept, given) in [(vec![0..4], 0..4), (vec![2..2], 2..2)] {
        let error = boxes(two, &kept);
        assert!(matches!(&error, Error::NoShard { axis: 1, given: of, extent: 3, .. } if *of == given), "{error}");
    }
    assert!(matches!(boxes(two, &[]), Error::NotInShards { .. }));
    assert!(matches!(boxes("sum f32[9,9] axes=[0]", &[0..3]), Error::NotInShards { .. }));
}

#[test]
fn states_of_other_boxes_or_ranges_do_not_combine() {
    let compiler = Compiler::host().expect("this machine");
    let whole = spec("sum f32[9000,8] axes=[0] order=logical");
    let [one, other] = [0..4, 4..8].map(|kept| compiler.partial_of(&whole, &[kept]).expect("a box"));
    assert_eq!(one.state_bytes(), other.state_bytes());
    let (mut a, mut b) = (vec![0; one.state_bytes()], vec![0; one.state_bytes()]);
    let x = vec![1.0f32; 100 * 4];
    one.shard_of(&[0..100, 0..4]).expect("a range").partial(&[Input::from(&x)], &mut a).expect("a state");
    other.shard_of(&[100..200, 4..8]).expect("a range").partial(&[Input::from(&x)], &mut b).expect("a state");
    assert!(matches!(one.combine(&b, &mut a, 1), Err(PartialError::Problem { .. })));
    one.shard_of(&[101..201, 0..4]).expect("a range").partial(&[Input::from(&x)], &mut b).expect("a state");
    let before = a.clone();
    let error = one.combine(&b, &mut a, 1).expect_err("a gap");
    assert_eq!(error.to_string(), "of state 0, positions 101..201 and 0..100 do not follow one another");
    assert!(a == before);
    let error = one.finish(&a, &[], &mut [Output::from(&mut [0.0f32; 4])], 1).expect_err("a part");
    assert_eq!(error.to_string(), "state 0 has positions 0..100, and to finish takes all, 0..9000");
}

/// Whatever the bytes say: an error, or a state that combines.
#[test]
fn hostile_bytes_do_no_harm() {
    let compiler = Compiler::host().expect("this machine");
    let several = "sum,argmax f32[9000] order=logical";
    for text in ["sum f32[9000,3] axes=[0] order=logical", "argmax f32[9000] order=logical", several] {
        let whole = spec(text);
        let partial = compiler.partial(&whole).expect("partial results");
        let memory = Memory::of(&whole, 0, 1, (0, 0));
        let at = |range: Range<u64>| {
            let mut chunk: Vec<Range<u64>> = whole.shape().iter().map(|&extent| 0..extent).collect();
            chunk[0] = range;
            chunk
        };
        let good = state(&partial, &whole, &memory, &at(100..5000));
        let other = state(&partial, &whole, &memory, &at(5000..9000));
        let mut random = Random::new(3);
        for _ in 0..2000 {
            let mut bad = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = if random.below(2) == 0 { 32 + random.below(16) } else { random.below(bad.len() as u64) };
                bad[at as usize] = random.below(256) as u8;
            }
            let mut into = other.clone();
            if partial.combine(&bad, &mut into, 1).is_err() {
                assert!(into == other, "nothing is written");
            }
            let mut outputs: Vec<Vec<u8>> = memory.outputs.iter().map(|o| o.bytes().to_vec()).collect();
            let places = whole.outputs().iter().zip(&mut outputs);
            let mut places: Vec<Output> = places.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
            let _any = partial.finish(&into, &[], &mut places, 1);
        }
    }
}

/// A block that two shards share is reduced by one code wherever it lies, also where code reads positions.
#[test]
fn equal_blocks_share_their_code() {
    let region = "region x:f32[9000,6] axes=[0] order=logical { sum(x * f32(position(0))) }";
    for text in ["sum f32[90000] order=logical", "argmax f32[90000] order=logical", region] {
        let (compiler, whole) = (Compiler::host().expect("this machine"), spec(text));
        let partial = compiler.partial(&whole).expect("partial results");
        let memory = Memory::of(&whole, 0, 1, (0, 0));
        let block = partial.layout().block_units;
        let mut compiles = vec![];
        for number in [1, 2, 7] {
            let part = |range: Range<u64>| {
                let mut chunk: Vec<Range<u64>> = whole.shape().iter().map(|&extent| 0..extent).collect();
                chunk[0] = range;
                state(&partial, &whole, &memory, &chunk)
            };
            let (start, middle, end) = (number * block, number * block + 10, (number + 1) * block);
            let (older, mut newer) = (part(start..middle), part(middle..end));
            partial.combine(&older, &mut newer, 1).expect("neighbours");
            assert!(used(&partial, &newer) == used(&partial, &part(start..end)), "{text}");
            compiles.push(compiler.statistics().compiles);
        }
        assert!(compiles.iter().all(|&count| count == compiles[0]), "{text}: {compiles:?}");
    }
}
