//! A reduction in shards: states of ranges of blocks, combined in any brackets.

use cranefold::{Input, Output, Partial};
use cranefold_fuzz::data::{Buffer, Random};
use cranefold_fuzz::execute::Memory;
use std::ops::Range;

/// What a state holds before it is written.
const BEFORE: u8 = 0xa5;

/// The state of a range of blocks, made of the part of the inputs that it reads alone.
pub fn state(partial: &Partial, memory: &Memory, blocks: Range<u64>) -> Vec<u8> {
    let shard = partial.shard(blocks.clone()).unwrap_or_else(|e| panic!("{blocks:?} of {}: {e}", partial.spec()));
    let operands = partial.spec().inputs();
    let parts: Vec<Buffer> = shard
        .inputs()
        .iter()
        .map(|span| {
            let size = operands[span.input].dtype().bytes();
            let bytes = (span.elems.start * size) as usize..(span.elems.end * size) as usize;
            Buffer::holding(&memory.inputs[span.input].bytes()[bytes], (blocks.start % 16) as usize)
        })
        .collect();
    let inputs = shard.inputs().iter().zip(&parts);
    let inputs: Vec<Input> = inputs.map(|(s, b)| Input::from_bytes(operands[s.input].dtype(), b.bytes())).collect();
    let mut state = Buffer::holding(&vec![BEFORE; partial.state_bytes()], (blocks.end % 16) as usize);
    shard.partial(&inputs, state.bytes_mut()).expect("the parts of the inputs");
    assert!(state.guards_hold(), "beside a state something is written");
    state.bytes().to_vec()
}

/// The bytes of a state that count.
pub fn used<'s>(partial: &Partial, state: &'s [u8]) -> &'s [u8] {
    &state[..partial.used_bytes(state).expect("a state")]
}

/// All blocks in some ranges, some of them empty.
pub fn cut(blocks: u64, random: &mut Random) -> Vec<Range<u64>> {
    let mut bounds: Vec<u64> = (0..random.below(5)).map(|_| random.below(blocks + 1)).chain([0, blocks]).collect();
    bounds.sort_unstable();
    bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Combines rows of states, which follow one another, in any brackets and either direction: `states` of them are side by
/// side in each.
pub fn combined(partial: &Partial, mut row: Vec<Vec<u8>>, states: usize, random: &mut Random) -> Vec<u8> {
    while row.len() > 1 {
        let at = random.below(row.len() as u64 - 1) as usize;
        let (mut older, mut newer) = (row.remove(at), row.remove(at));
        let into = match random.below(2) {
            0 => {
                partial.combine(&newer, &mut older, states).expect("neighbours");
                older
            }
            _ => {
                partial.combine(&older, &mut newer, states).expect("neighbours");
                newer
            }
        };
        row.insert(at, into);
    }
    row.remove(0)
}

/// The outputs after states of all blocks are finished, for the memory of each.
pub fn finished(partial: &Partial, states: &[u8], memories: &[&Memory]) -> Vec<Vec<u8>> {
    let spec = partial.spec();
    let joined = |buffers: &dyn Fn(&Memory) -> &Buffer| -> Vec<u8> {
        memories.iter().flat_map(|memory| buffers(memory).bytes().to_vec()).collect()
    };
    let inputs: Vec<Vec<u8>> = partial.finish_inputs().iter().map(|&i| joined(&|m| &m.inputs[i])).collect();
    let given = partial.finish_inputs().iter().zip(&inputs);
    let given: Vec<Input> = given.map(|(&i, bytes)| Input::from_bytes(spec.inputs()[i].dtype(), bytes)).collect();
    let mut outputs: Vec<Vec<u8>> = (0..spec.outputs().len()).map(|o| joined(&|m| &m.outputs[o])).collect();
    let places = spec.outputs().iter().zip(&mut outputs);
    let mut places: Vec<Output> = places.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    partial.finish(states, &given, &mut places, memories.len()).expect("states of all blocks");
    outputs
}

/// What is wrong with a reduction of two memories in shards, if anything: the bytes of states depend on their blocks alone,
/// and what they are finished to is the expected.
pub fn fault(
    partial: &Partial,
    memories: [&Memory; 2],
    expected: [&[Buffer]; 2],
    random: &mut Random,
) -> Option<String> {
    let blocks = partial.blocks();
    let whole = memories.map(|memory| state(partial, memory, 0..blocks));
    for _ in 0..2 {
        let ranges = cut(blocks, random);
        let both = |range: &Range<u64>| memories.map(|memory| state(partial, memory, range.clone())).concat();
        let mut row: Vec<Vec<u8>> = ranges.iter().map(both).collect();
        let mut nothing = vec![BEFORE; 2 * partial.state_bytes()];
        partial.identity(&mut nothing, 2).expect("two states");
        row.insert(random.below(row.len() as u64 + 1) as usize, nothing);
        let states = combined(partial, row, 2, random);
        for (state, whole) in states.chunks_exact(partial.state_bytes()).zip(&whole) {
            if used(partial, state) != used(partial, whole) {
                return Some(format!("{ranges:?} of {blocks} blocks make another state"));
            }
        }
        for (o, bytes) in finished(partial, &states, &memories).iter().enumerate() {
            if *bytes != expected.map(|outputs| outputs[o].bytes()).concat() {
                return Some(format!("{ranges:?} of {blocks} blocks make another output {o}"));
            }
        }
    }
    None
}
