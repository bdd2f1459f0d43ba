//! The law of states of partial results: whatever their bytes say, an error and nothing written, or a state that combines
//! from either side; to the same bytes, if it is still of the range that it was made of.

use crate::bytes::Bytes;
use crate::data::{Random, elements};
use cranefold::{Compiler, Input, Output, Partial, Spec};
use std::ops::Range;
use std::sync::LazyLock;

/// The most bytes of an input.
pub const BYTES: usize = 48;

/// Bytes of the header's numbers: the first unit and the number of units.
const NUMBERS: Range<usize> = 32..48;

/// Ranges that end inside blocks and at their ends, in one block and in walks of whole blocks, with several inputs, phases,
/// trees and types, and slices apart from one another.
const SPECS: [&str; 11] = [
    "sum f32[900,3] axes=[0] order=logical",
    "argmax f32[9000] order=logical",
    "var f32[500,5] axes=[0] order=logical",
    "log_sum_exp f64[2,1500] axes=[1] order=logical",
    "sum f32[40,2,900] axes=[0,2] order=logical",
    "sum i16[700,3], i16[3] axes=[0] map=\"x0*x1\" order=logical",
    "max u8[60] order=logical",
    "sum,argmax f32[700,3] axes=[0] order=logical",
    "region x:f32[700,3], w:f32[700,1] axes=[0] order=logical { sum(x) / sum(w) }",
    "region x:f32[500,4], w:f32[500,1] axes=[0] order=logical { sum(x * w) / sum(w), argmax(x), sum(w) }",
    "region x:f32[300,4] axes=[0] order=logical { sum(x * f32(position(0))) + f32(position(1)) }",
];

/// The partial results of a spec, and its inputs as bytes.
struct Known {
    partial: Partial,
    inputs: Vec<Vec<u8>>,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let compiler = Compiler::host().expect("this machine");
    let known = |text: &&str| {
        let spec: Spec = text.parse().expect("a spec");
        let inputs = spec.inputs().iter().map(|o| elements(o.dtype(), o.elems() as usize, 5, 1)).collect();
        Known { partial: compiler.partial(&spec).expect("partial results"), inputs }
    };
    SPECS.iter().map(known).collect()
});

impl Known {
    /// The elements of an input in a range of the axis that is cut.
    fn part(&self, input: usize, range: &Range<u64>) -> Vec<u8> {
        let (spec, bytes) = (self.partial.spec(), &self.inputs[input]);
        let axis = self.partial.axis().expect("an axis");
        let operand = &spec.inputs()[input];
        let Some(own) = spec.input_axis(input, axis) else { return bytes.clone() };
        let inner = operand.shape()[own + 1..].iter().product::<u64>() * operand.dtype().bytes();
        let rows = bytes.chunks_exact((inner * operand.shape()[own]) as usize);
        rows.flat_map(|row| row[(inner * range.start) as usize..(inner * range.end) as usize].to_vec()).collect()
    }

    /// The state of a range of the axis that is cut.
    fn state(&self, range: Range<u64>) -> Vec<u8> {
        let spec = self.partial.spec();
        let mut chunk: Vec<Range<u64>> = spec.shape().iter().map(|&extent| 0..extent).collect();
        chunk[self.partial.axis().expect("an axis")] = range.clone();
        let shard = self.partial.shard_of(&chunk).expect("a range");
        let numbers = || shard.inputs().iter().map(|span| span.input);
        let parts: Vec<Vec<u8>> = numbers().map(|input| self.part(input, &range)).collect();
        let inputs = numbers().zip(&parts);
        let inputs: Vec<Input<'_>> =
            inputs.map(|(input, part)| Input::from_bytes(spec.inputs()[input].dtype(), part)).collect();
        let mut state = vec![0; self.partial.state_bytes()];
        shard.partial(&inputs, &mut state).expect("the parts of the inputs");
        state
    }
}

/// Changes the bytes of a valid state, and combines it with the state of a neighbour, and finishes it.
pub fn state(bytes: &[u8]) -> bool {
    let mut bytes = Bytes::new(bytes);
    let known = &KNOWN[bytes.below(KNOWN.len() as u64) as usize];
    let Known { partial, .. } = known;
    let extent = partial.spec().shape()[partial.axis().expect("an axis")];
    let mut ends = [(); 3].map(|()| bytes.bits() % (extent + 1));
    ends.sort_unstable();
    let [start, middle, end] = ends;
    let (mut bad, good) = (known.state(start..middle), known.state(middle..end));
    let (mut random, mut in_header) = (Random::new(bytes.bits()), true);
    // The state of each tree begins with a header, too.
    let header_bytes = partial.layout().header_bytes;
    let headers: Vec<usize> =
        (0..bad.len()).step_by(header_bytes).filter(|&at| bad[at..].starts_with(&bad[..8])).collect();
    for _ in 0..bytes.below(5) {
        let header = headers[bytes.below(headers.len() as u64) as usize];
        let among = match bytes.below(4) {
            0 | 1 => header + NUMBERS.start..header + NUMBERS.end,
            2 => header..header + header_bytes,
            _ => 0..bad.len(),
        };
        let at = among.start + random.below(among.len() as u64) as usize;
        in_header &= headers.iter().any(|&header| (header..header + header_bytes).contains(&at));
        bad[at] = if bytes.flag() { bad[at] ^ (1 << random.below(8)) } else { random.below(256) as u8 };
    }
    let range = partial.range_of(&bad);
    let used = partial.used_bytes(&bad);
    if let (Ok(range), Ok(used)) = (&range, &used) {
        assert!(range.start <= range.end && range.end <= extent, "{range:?} of {extent}");
        assert!(*used <= partial.state_bytes(), "{used} bytes of a state");
    }
    let (mut into, mut other) = (good.clone(), bad.clone());
    let done = partial.combine(&bad, &mut into, 1);
    let also = partial.combine(&good, &mut other, 1);
    assert_eq!(done.is_ok(), also.is_ok(), "from either side");
    if done.is_err() {
        assert!(into == good && other == bad, "nothing is written");
    } else {
        let used = partial.used_bytes(&into).expect("a state");
        // Bytes between the values of an entry are kept from one side, and in a state of another range any byte may lie
        // between values.
        let is_same = in_header && range.as_ref() == Ok(&(start..middle));
        assert!(!is_same || into[..used] == other[..used], "the same bytes from either side");
    }
    // A state that was sent without its unused end combines alike, and one that was cut off is refused.
    if let Ok(used) = used {
        let (mut from_sent, mut from_less) = (good.clone(), good.clone());
        assert_eq!(partial.combine_used(&bad[..used], &mut from_sent), done);
        assert!(from_sent == into, "the state that was sent");
        let less = random.below(used as u64) as usize;
        assert!(
            partial.combine_used(&bad[..less], &mut from_less).is_err() && from_less == good,
            "{less} bytes of {used}"
        );
    }
    // What is not sent is not read.
    if let Ok(used) = used {
        let (mut sent, mut again) = (bad.clone(), good.clone());
        sent[used..].fill(0x5a);
        assert_eq!(partial.combine(&sent, &mut again, 1), done);
        assert!(done.is_err() || again == into, "the bytes that are used");
    }
    finish(known, &into);
    finish(known, &bad);
    range.is_ok()
}

/// Finishes a state, or writes nothing.
fn finish(known: &Known, state: &[u8]) {
    let (partial, spec) = (&known.partial, known.partial.spec());
    let mut outputs: Vec<Vec<u8>> = spec.outputs().iter().map(|o| vec![0xa5; o.span_bytes() as usize]).collect();
    let places = spec.outputs().iter().zip(&mut outputs);
    let mut places: Vec<Output<'_>> = places.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    if partial.finish(state, &[], &mut places, 1).is_err() {
        assert!(outputs.iter().flatten().all(|&byte| byte == 0xa5), "nothing is written");
    }
}
