//! Partial results: the bits of the whole from any shards, the same state bytes from any code, and what is refused.

#[path = "properties/shards.rs"]
mod shards;
#[path = "shared/specs.rs"]
mod specs;

use cranefold::ir::{Nest, verify};
use cranefold::ops::Combiner;
use cranefold::partial::subtrees;
use cranefold::{
    CallError, Compiler, DType, Error, Input, Output, Partial, PartialError, Problem, Spec, Target, lower,
};
use cranefold_fuzz::data::Random;
use cranefold_fuzz::execute::Memory;
use shards::{combined, fault, finished, state, used};
use specs::SHARED;

/// Beside [`SHARED`].
const SPECS: &[&str] = &[
    // Full, inner, outer, middle; one block, and none.
    "sum f32[100,7]",
    "sum f32[0,5000] axes=[1]",
    "count_nonzero f32[]",
    // Several phases, positions.
    "ptp f32[9000]",
    // Several inputs and outputs, expressions, scalars, old elements.
    "sum f32[640,51], f32[51] axes=[0] map=\"x0*x1\"",
    "sum f32[9000,3], f32[3]:then axes=[0] scalar eps:f32 then=\"r0 / (y0 + eps) + d\"",
    "sum f32[9000] scalar shift:f32 map=\"x0 - shift\" then=\"r0 + shift\"",
    "sum,max f32[64,512] axes=[1] then=\"r0 - r1, r1 + d\"",
    // Old elements in a value of the slice, which no block reads.
    "sum f32[700,9] axes=[0] then=\"r0 * (d + 1) + (d + 1)\"",
    // States side by side: in lanes and of one value, and in one reduction where lanes fold at once.
    "mean,var f32[20000]",
    "mean,sum,var f32[9,20001] axes=[1] then=\"r0, r1, r2 + r0\"",
    "mean,var f32[700,30] axes=[0]",
    "region x:f32[3,20000] axes=[1] { v = var(x); sum(x) + v, max(x) }",
];

#[test]
fn nests_are_text_that_reads_back() {
    let compiler = Compiler::host().expect("this machine");
    for text in SHARED.iter().chain(SPECS) {
        let partial = compiler.partial(&spec(text)).expect("partial results");
        let shards = partial.shards(3).into_iter().map(|blocks| partial.shard(blocks).expect("a shard"));
        let dumps = shards.map(|shard| shard.dump()).chain([partial.dump()]);
        for dump in dumps.map(|dump| dump.expect("nests")) {
            let mut nests = 0;
            for piece in dump.split("== ").skip(1) {
                let (heading, nest) = piece.split_once(" ==\n").expect("a heading");
                let read: Nest = nest.parse().unwrap_or_else(|e| panic!("{text}: {heading}: {e}"));
                assert_eq!(read.to_string(), nest.trim_end(), "{text}: {heading}");
                verify(&read).unwrap_or_else(|e| panic!("{text}: {heading}: {e}"));
                nests += 1;
            }
            assert_eq!(nests % 2, 0, "{text}: each naive and legal");
        }
        assert_eq!(partial.dump().expect("nests").matches("== ").count(), 6, "{text}");
    }
}

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A combiner whose order shows: the composition of affine maps.
fn composition(shape: &[u64], axes: &[i64]) -> Spec {
    let maps = Combiner::new("1, 0", "x0, x1", "a0*b0, a1*b0 + b1").expect("a combiner");
    let own = Spec::own(maps).input(DType::F32, shape).input(DType::F32, shape);
    own.axes(axes.to_vec()).build().expect("a spec")
}

fn specs() -> Vec<Spec> {
    let own = [composition(&[9000], &[0]), composition(&[700, 9], &[0]), composition(&[9, 700], &[1])];
    SHARED.iter().chain(SPECS).map(|text| spec(text)).chain(own).collect()
}

fn compiler() -> Compiler {
    Compiler::host().expect("this machine")
}

fn partial(text: &str) -> Partial {
    compiler().partial(&spec(text)).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn shards_combine_to_the_bits_of_the_whole() {
    let compiler = compiler();
    for spec in specs() {
        let partial = compiler.partial(&spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
        let kernel = compiler.compile(&spec).expect("a kernel");
        let naive = lower::lower(&Problem::of(&spec), "naive");
        for kind in [5, 0, 1] {
            let memories = [1, 2].map(|seed| Memory::of(&spec, kind, seed, (4, 8)));
            let expected = memories.each_ref().map(|memory| memory.interpreted(&naive));
            for (memory, expected) in memories.iter().zip(&expected) {
                let same = memory.run(&kernel).iter().zip(expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}, data {kind}: the kernel");
            }
            let mut random = Random::new(7);
            let fault = fault(&partial, memories.each_ref(), expected.each_ref().map(Vec::as_slice), &mut random);
            assert_eq!(fault, None, "{spec}, data {kind}");
        }
    }
}

/// What makes the code shows in no byte of a state: one machine may make it, and another merge it.
#[test]
#[cfg(target_arch = "x86_64")]
fn states_are_the_same_for_all_targets() {
    let wide = compiler();
    let triple = "x86_64-unknown-linux-gnu";
    let targets: Vec<Compiler> = ["", "x86-64-v3"]
        .into_iter()
        .filter_map(|features| {
            Target::new(triple, features)
                .ok()
                .filter(Target::is_host)
                .map(|target| Compiler::builder().target(target).build().expect("a compiler"))
        })
        .collect();
    for spec in specs() {
        let one = wide.partial(&spec).expect("partial results");
        for compiler in &targets {
            let other = compiler.partial(&spec).expect("partial results");
            assert_eq!(one.layout(), other.layout());
            for kind in [0, 1, 5] {
                let memory = Memory::of(&spec, kind, 3, (0, 0));
                let middle = one.blocks() / 3;
                let ranges = [0..middle, middle..one.blocks()];
                let [old, new] = ranges.map(|range| [&one, &other].map(|p| state(p, &memory, range.clone())));
                for [a, b] in [&old, &new] {
                    assert!(used(&one, a) == used(&other, b), "{spec}, data {kind}");
                }
                let [mut a, mut b] = new;
                one.combine(&old[1], &mut a, 1).expect("neighbours");
                other.combine(&old[0], &mut b, 1).expect("neighbours");
                assert!(used(&one, &a) == used(&other, &b), "{spec}, data {kind}, combined");
                assert_eq!(finished(&one, &b, &[&memory]), finished(&other, &a, &[&memory]), "{spec}, data {kind}");
            }
        }
    }
}

/// All ranges of few blocks, in both directions.
#[test]
fn any_two_neighbours_combine() {
    let partial = partial("sum f32[40000]");
    let memory = Memory::of(partial.spec(), 3, 1, (0, 0));
    let blocks = partial.blocks();
    assert_eq!(blocks, 10);
    let row: Vec<Vec<Vec<u8>>> =
        (0..blocks).map(|a| (a..=blocks).map(|b| state(&partial, &memory, a..b)).collect()).collect();
    let of = |a: u64, b: u64| &row[a as usize][(b - a) as usize];
    for (a, m, b) in (0..blocks).flat_map(|a| (a..blocks).flat_map(move |m| (m..=blocks).map(move |b| (a, m, b)))) {
        let whole = used(&partial, of(a, b));
        for (from, into) in [(of(a, m), of(m, b)), (of(m, b), of(a, m))] {
            let mut into = into.clone();
            partial.combine(from, &mut into, 1).expect("neighbours");
            assert!(used(&partial, &into) == whole, "{a}..{m} and {m}..{b}");
        }
    }
}

#[test]
fn a_shard_reads_its_part_alone() {
    let spans = |text: &str, blocks| {
        let read = partial(text).inputs_of(blocks).expect("blocks");
        read.into_iter().map(|s| (s.input, s.elems)).collect::<Vec<_>>()
    };
    assert_eq!(spans("sum f32[40000]", 2..4), [(0, 2 * 4096..4 * 4096)]);
    assert_eq!(spans("sum f32[40000]", 9..10), [(0, 9 * 4096..40000)]);
    assert_eq!(spans("sum f32[40000]", 3..3), [(0, 0..0)]);
    assert_eq!(spans("sum f32[1024,65536] axes=[0]", 1..3), [(0, 64 * 65536..192 * 65536)]);
    assert_eq!(spans("sum f32[640,51], f32[51] axes=[0] map=\"x0*x1\"", 0..1), [(0, 0..51 * 64), (1, 0..51)]);
    // The blocks of one slice lie between those of others.
    assert_eq!(spans("sum f32[2,40000] axes=[1]", 0..1), [(0, 0..40000 + 4096)]);
    // What only the finish reads.
    let partial = partial("sum f32[9000,3], f32[3]:then axes=[0] scalar eps:f32 then=\"r0 / (y0 + eps)\"");
    assert_eq!(partial.inputs_of(0..1).expect("blocks").len(), 1);
    assert_eq!(partial.finish_inputs(), [1, 2]);
}

#[test]
fn pieces_fit_and_are_aligned() {
    let partial = partial("sum f32[4000000]");
    for range in [0..partial.blocks(), 3..700, 5..6, 9..9] {
        let pieces = partial.pieces(range.clone(), 100_000).expect("blocks");
        assert!(pieces.iter().all(|piece| subtrees(piece.clone()).count() == 1));
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(pieces.iter().map(|p| p.end - p.start).sum::<u64>(), range.end - range.start);
        let bytes = |piece: &std::ops::Range<u64>| {
            let span = &partial.inputs_of(piece.clone()).expect("blocks")[0].elems;
            (span.end - span.start) * 4
        };
        assert!(pieces.iter().all(|piece| bytes(piece) <= 100_000));
        // 16128 bytes each: four fit, and eight do not.
        let most = pieces.iter().map(|p| p.end - p.start).max();
        assert!(range.end - range.start < 10 || most == Some(4));
    }
    // No piece is less than a block.
    assert_eq!(partial.pieces(4..7, 1).expect("blocks"), [4..5, 5..6, 6..7]);
}

#[test]
fn the_layout_says_where_things_are() {
    let layout = partial("var f32[700,30] axes=[0]").layout().to_string();
    let shown = layout.split_once(',').expect("a fingerprint before").1;
    let rest = " 6 blocks: 1600 bytes
  0: u64 mark 0x6372616e70617274
  8: u32 version 2 of this layout
  12: u32 version 4 of the results
  16: u128 the problem
  32: u64 first of 6 blocks
  40: u64 blocks
  64: at most 3 entries of 512 bytes, in each
    0: f32[30 slices, 1 lanes]
    128: f32[30 slices, 1 lanes]
    256: f32[30 slices, 1 lanes]
    384: f32[30 slices, 1 lanes]
";
    assert_eq!(shown, rest);
    let partial = partial("sum f32[40000]");
    let layout = partial.layout();
    assert_eq!((layout.slices, layout.values[0].lanes, layout.blocks, layout.values.len()), (1, 64, 10, 1));
    let memory = Memory::of(partial.spec(), 4, 1, (0, 0));
    let state = state(&partial, &memory, 0..1);
    assert_eq!(partial.used_bytes(&state), Ok(64 + 256));
    // Lane 5 has every 64th element from 5 on.
    let element = |bytes: &[u8], at: usize| f32::from_ne_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four"));
    let sum: f32 = (0..63).map(|k| element(memory.inputs[0].bytes(), 64 * k + 5)).sum();
    assert_eq!(element(&state[layout.entry(0)], 5), sum);
}

#[test]
fn what_has_no_partial_results() {
    let refused = |text: &str| compiler().partial(&spec(text)).expect_err("a refusal").to_string();
    let of = "there are no partial results of a reduction that";
    assert_eq!(refused("softmax f32[9,129] axes=[1]"), format!("{of} writes an output at each position of a slice"));
    assert_eq!(refused("median f32[9,129] axes=[1]"), format!("{of} selects from all elements of a slice in order"));
    assert_eq!(refused("sum f32[9,129] axes=[]"), format!("{of} copies elements"));
    let several = "reduces slices by several trees: ask for each op alone, or for `order=logical` of arrays in order";
    assert_eq!(refused("log_sum_exp,var f32[20000]"), format!("{of} {several}"));
    let stages =
        "reduces slices in several stages: reduce in one, finish, and give the results to the next as an input";
    assert_eq!(refused("region x:f32[9,129] axes=[1] { m = max(x); sum(x / m) }"), format!("{of} {stages}"));
    let totals = "reduces the values of all slices to totals";
    assert_eq!(refused("region x:f32[9,129] axes=[1] { sum(max(x), axes=[0]) }"), format!("{of} {totals}"));
    let maps = Combiner::new("1", "x0", "a0*b0").expect("a combiner");
    let blocked = cranefold::Layout::tag("Ba16b").expect("a tag");
    let spec = Spec::own(maps).input_at(DType::F32, &[40, 20], blocked).build().expect("a spec");
    let error = compiler().partial(&spec).expect_err("a refusal").to_string();
    assert_eq!(error, format!("{of} combines elements in another order than that of memory"));
    let partial = partial("sum f32[40000]");
    let error = partial.shard(5..11).expect_err("a refusal");
    assert_eq!(error, Error::NoBlocks { given: 5..11, blocks: 10 });
    assert_eq!(error.to_string(), "5..11 is no range of 10 blocks");
    #[allow(clippy::reversed_empty_ranges, reason = "it is refused")]
    let backwards = partial.inputs_of(5..4).expect_err("a refusal");
    assert_eq!(backwards.to_string(), "5..4 is no range of 10 blocks");
}

#[test]
fn bad_states_are_refused_and_nothing_is_written() {
    let partial = partial("sum f32[40000]");
    let bytes = partial.state_bytes();
    let memory = Memory::of(partial.spec(), 3, 1, (0, 0));
    let of = |range| state(&partial, &memory, range);
    let (good, all) = (of(3..5), of(0..10));
    let into = of(0..3);
    let refused = |from: &[u8], text: &str| {
        let mut kept = [into.clone(), into.clone()].concat();
        let two = [&good, from].concat();
        let before = kept.clone();
        let error = partial.combine(&two, &mut kept, 2).expect_err("a refusal");
        assert_eq!(error.to_string(), text);
        assert!(kept == before, "{text}");
        // The same where it is the other one.
        let (mut kept, before) = (two.clone(), two);
        partial.combine(&[into.clone(), into.clone()].concat(), &mut kept, 2).expect_err("a refusal");
        assert!(kept == before, "{text}");
        let mut sum = [7.0f32; 2];
        partial.finish(&[&all, from].concat(), &[], &mut [Output::from(&mut sum[..])], 2).expect_err("a refusal");
        assert_eq!(sum, [7.0; 2], "{text}");
    };
    let changed = |at: usize, with: &[u8]| {
        let mut state = good.clone();
        state[at..at + with.len()].copy_from_slice(with);
        state
    };
    refused(&vec![0; bytes], "state 1 does not begin as one does");
    refused(&changed(3, b"x"), "state 1 does not begin as one does");
    refused(&changed(8, &9u32.to_le_bytes()), "state 1 is laid out as version 9 has it, and not as version 2");
    refused(&changed(12, &2u32.to_le_bytes()), "state 1 is of version 2 of the results, and not of 4");
    let own = partial.layout().fingerprint;
    let text = format!("state 1 is of problem {:032x}, and not of {own:032x}", 5);
    refused(&changed(16, &5u128.to_le_bytes()), &text);
    refused(&changed(40, &8u64.to_le_bytes()), "state 1 says it has 8 blocks from 3 on, of 10 blocks");
    let most = u64::MAX.to_le_bytes();
    refused(&changed(40, &most), "state 1 says it has 18446744073709551615 blocks from 3 on, of 10 blocks");
    refused(&changed(32, &most), "state 1 says it has 2 blocks from 18446744073709551615 on, of 10 blocks");
    refused(&changed(40, &[0; 8]), "state 1 says it has 0 blocks from 3 on, of 10 blocks");
    refused(&of(4..5), "of state 1, blocks 4..5 and 0..3 do not follow one another");
    refused(&of(2..5), "of state 1, blocks 2..5 and 0..3 do not follow one another");
    // Only finishing takes all.
    let mut sum = [7.0f32];
    let finish = |state: &[u8], sum: &mut [f32]| partial.finish(state, &[], &mut [Output::from(sum)], 1);
    let error = finish(&of(0..9), &mut sum).expect_err("a refusal");
    assert_eq!(error, PartialError::Unfinished { state: 0, given: 0..9, blocks: 10, unit: "blocks" });
    assert_eq!(error.to_string(), "state 0 has blocks 0..9, and to finish takes all, 0..10");
    assert_eq!(sum, [7.0]);
    // Entries are numbers, whatever they are.
    let mut noise = all.clone();
    noise[64..].fill(0xff);
    finish(&noise, &mut sum).expect("a header that fits");
    assert!(sum[0].is_nan());
}

#[test]
fn wrong_lengths_are_refused() {
    let partial = partial("mean f32[40000], f32[]:then then=\"r0 + y0\"");
    let bytes = partial.state_bytes();
    let given = |given, states| PartialError::Length { given, states, expected: bytes };
    let mut state = vec![0; bytes];
    assert_eq!(partial.identity(&mut state, 2), Err(given(bytes, 2)));
    assert_eq!(partial.identity(&mut state[1..], 1), Err(given(bytes - 1, 1)));
    assert_eq!(partial.identity(&mut [], usize::MAX), Err(given(0, usize::MAX)));
    partial.identity(&mut [], 0).expect("no states");
    partial.combine(&[], &mut [], 0).expect("no states");
    assert_eq!(given(5, 2).to_string(), format!("5 bytes are given for 2 states, which have {bytes} each"));
    assert_eq!(partial.combine(&state[1..], &mut state.clone(), 1), Err(given(bytes - 1, 1)));
    assert_eq!(partial.combine(&state.clone(), &mut state[1..], 1), Err(given(bytes - 1, 1)));
    assert_eq!(
        partial.blocks_of(&[0; 63]),
        Err(PartialError::Length { given: 63, states: 1, expected: 64 }),
        "a header has 64 bytes"
    );
    let shard = partial.shard(1..3).expect("a shard");
    let x = vec![1.0f32; 2 * 4096];
    let before = state.clone();
    let call = |inputs: &[Input], state: &mut [u8]| shard.partial(inputs, state).expect_err("a refusal").to_string();
    assert_eq!(call(&[], &mut state), format!("0 inputs were given, the kernel `{}` takes 1", partial.spec()));
    assert_eq!(
        call(&[Input::from(&x[1..])], &mut state),
        format!("input 0 has 8191 elements, the kernel `{}` takes 8192", partial.spec())
    );
    assert_eq!(
        call(&[Input::from(&[1u8][..])], &mut state),
        format!("input 0 is u8, the kernel `{}` takes f32", partial.spec())
    );
    let odd = Input::from_bytes(DType::F32, &[0; 7]);
    assert_eq!(call(&[odd], &mut state), "input 0 has 7 bytes, no whole number of f32 elements of 4");
    assert_eq!(call(&[Input::from(&x[..])], &mut state[1..]), given(bytes - 1, 1).to_string());
    assert!(state == before);
    let all = combined(
        &partial,
        partial
            .shards(3)
            .into_iter()
            .map(|range| {
                let memory = Memory::of(partial.spec(), 3, 1, (0, 0));
                shards::state(&partial, &memory, range)
            })
            .collect(),
        1,
        &mut Random::new(1),
    );
    let (y, mut mean) = ([1.0f32], [7.0f32; 2]);
    let error = partial.finish(&all, &[], &mut [Output::from(&mut mean[..1])], 1);
    let kernel = format!("`{}`", partial.spec());
    assert_eq!(error, Err(PartialError::Call(CallError::Count { role: "input", given: 0, expected: 1, kernel })));
    let error = partial.finish(&all, &[Input::from(&y[..])], &mut [Output::from(&mut mean[..])], 1);
    let length = format!("output 0 has 2 elements, the kernel `{}` takes 1", partial.spec());
    assert_eq!(error.expect_err("a refusal").to_string(), length);
    assert_eq!(mean, [7.0; 2]);
}

/// Threads share what is compiled.
#[test]
fn threads_share_a_partial() {
    let partial = partial("sum f32[4000000]");
    let memory = Memory::of(partial.spec(), 3, 1, (0, 0));
    let whole = finished(&partial, &state(&partial, &memory, 0..partial.blocks()), &[&memory]);
    let states: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let shard = |blocks| {
            scope.spawn({
                let (partial, memory) = (partial.clone(), &memory);
                move || state(&partial, memory, blocks)
            })
        };
        let threads: Vec<_> = partial.shards(8).into_iter().map(shard).collect();
        threads.into_iter().map(|t| t.join().expect("a state")).collect()
    });
    let all = combined(&partial, states, 1, &mut Random::new(1));
    assert_eq!(finished(&partial, &all, &[&memory]), whole);
}

#[test]
fn the_compilers_cache_keeps_the_code_of_partial_results() {
    let spec: Spec = "sum f32[1000003]".parse().expect("a spec");
    let compiler = Compiler::host().expect("this machine");
    let partial = compiler.partial(&spec).expect("blocks");
    let after_partial = compiler.statistics();
    assert!(
        after_partial.compiles > 0 && after_partial.kernels > 0,
        "what merges and finishes is kept: {after_partial:?}"
    );
    partial.shard(0..64).expect("a range");
    let after_shard = compiler.statistics();
    assert_eq!(after_shard.compiles, after_partial.compiles + 1);
    // An equal subtree elsewhere, and the same nests asked for again, from another `Partial` of the same compiler.
    partial.shard(64..128).expect("a range");
    compiler.clone().partial(&spec).expect("blocks").shard(0..64).expect("a range");
    let again = compiler.statistics();
    assert_eq!(again.compiles, after_shard.compiles);
    assert!(again.hits > after_shard.hits);
    compiler.clear();
    assert_eq!(compiler.statistics().kernels, 0);
    partial.shard(0..64).expect("a range");
    assert_eq!(compiler.statistics().compiles, again.compiles + 1, "what was let go of is made again");
}
