//! A combiner that is not commutative combines the elements of a slice in row-major order of the reduced
//! axes, wherever they lie: on integers the result is that of one loop.

use cranefold::{Compiler, DType, Options, Scalar, Spec};
use cranefold_fuzz::execute::{Memory, places};

/// The composition of affine maps, older first: x -> b0 (a0 x + a1) + b1.
const AFFINE: &str =
    r#"combiner(identity="i64(1), i64(0)", lift="i64(x0)*2 + 1, i64(x0)", combine="a0*b0, a1*b0 + b1")"#;

/// The product of 2 by 2 matrices made of an element and its position.
const MATRIX: &str = r#"combiner(identity="i64(1), i64(0), i64(0), i64(1)",
    lift="i64(x0), i64(1), i, i64(x0)*3 + 1",
    combine="a0*b0 + a1*b2, a0*b1 + a1*b3, a2*b0 + a3*b2, a2*b1 + a3*b3")"#;

/// The last element that is no zero: two phases, the second of which reads what the first found.
const LAST: &str = r#"combiner(identity="i64(0)", lift="i64(x0)", combine="select(b0 != 0, b0, a0)",
    identity="i64(0)", lift="i64(x0) - r0", combine="a0*31 + b0",
    merge="select(b0 != 0, b0, a0), a1*7 + b1", finish="a0")"#;

/// The last element that is no zero, and in a second phase that reads it, to no effect, the composition of affine
/// maps made of elements and their positions.
const LAST_AND_AFFINE: &str = r#"combiner(identity="i64(0)", lift="i64(x0)", combine="select(b0 != 0, b0, a0)",
    identity="i64(1), i64(0)", lift="i64(x0)*2 + r0 + 1 - r0, i64(x0)*5 - i", combine="a0*b0, a1*b0 + b1",
    merge="select(b0 != 0, b0, a0), a1*b1, a2*b1 + b2")"#;

/// Shapes, axes and the layout of outputs.
const SHAPES: &[&str] = &[
    "[7] axes=[0]",
    "[200] axes=[0]",
    "[200]@(-3) axes=[0]",
    "[5,131] axes=[1]",
    "[131,5] axes=[0]",
    "[131,5]@ba axes=[0]",
    "[5,131]@(-1,-5) axes=[1]",
    "[6,3,35] axes=[0,2]",
    "[6,3,35]@cba axes=[0,2]",
    "[6,3,35]@bca axes=[0,2] keep_dims",
    "[6,3,35]@(3,-18,-54) axes=[0,2]",
    "[9,4,40]@(-160,40,-1) axes=[0,2]",
    "[4,9,11]@(1,-4,0) axes=[1,2]",
    "[4,9,11]@(99,11,1)",
    "[4,9,11]@(-1,-44,-4)",
    "[3,1,0] axes=[2]",
    // Blocks that cut no reduced axis: whole ones, in turns with those of another axis, and beside it.
    "[16,24]@AB8a8b axes=[0,1]",
    "[16,5,24]@CBA4a4c2a2b axes=[0,2] -> @A4a",
    "[70,11]@aB4b axes=[0] -> @any",
    "[7,130]@bA4a axes=[1] -> @A2a",
    // The outermost reduced axis is cut, the innermost, both; in blocks in blocks.
    "[200]@A16a",
    "[19,3,6]@Abc8a axes=[0,2]",
    "[3,4,19]@bCa8c axes=[0,2]",
    "[11,3,21]@CAb4a8c axes=[0,2] -> @A2a",
    "[5,131]@aB16b axes=[1] -> @(-2)+1",
    "[45,21]@BA4b2a4b2a axes=[0,1]",
    "[45,21]@AB4b2a4b2a axes=[0] keep_dims -> @any",
    "[3,300]@BA16b2a4b axes=[1] -> @any",
    // Blocks that run backwards, with gaps between.
    "[37,3]@(-8,60)8a+3 axes=[0]",
    "[9,4,20]@(-8,-250,64)4c2a axes=[0,2]",
    // Only outputs are blocked.
    "[131,5]@ba axes=[0] -> @A2a",
];

/// One loop over each slice in row-major order; `each` takes the state, an element and its position.
fn sequential<const N: usize>(
    spec: &Spec,
    input: &[u8],
    identity: [i64; N],
    each: impl Fn([i64; N], i64, i64) -> [i64; N],
) -> Vec<[i64; N]> {
    let operand = &spec.inputs()[0];
    let mut states = vec![];
    let outer: Vec<usize> = (0..spec.rank()).filter(|&a| !spec.reduced()[a]).collect();
    for base in offsets(spec, &outer) {
        let mut state = identity;
        for (position, offset) in offsets(spec, &spec.axes()).into_iter().enumerate() {
            let place = operand.origin() as i64 + base + offset;
            let x = Scalar::read(DType::I32, input, place as usize).as_int().expect("an integer") as i64;
            state = each(state, x, position as i64);
        }
        states.push(state);
    }
    states
}

/// Offsets of all positions along some axes, in row-major order.
fn offsets(spec: &Spec, axes: &[usize]) -> Vec<i64> {
    let operand = &spec.inputs()[0];
    let mut all = vec![0];
    for &axis in axes {
        let along = |o: i64| (0..operand.shape()[axis]).map(move |i| o + operand.placement().along(axis, i));
        all = all.into_iter().flat_map(along).collect();
    }
    all
}

fn check<const N: usize>(combiner: &str, identity: [i64; N], each: impl Fn([i64; N], i64, i64) -> [i64; N] + Copy) {
    let compiler = Compiler::host().expect("this machine");
    for (n, shape) in SHAPES.iter().enumerate() {
        let (shape, layout) = shape.split_once(" -> ").unwrap_or((shape, ""));
        let outputs = vec![format!("i64{layout}"); N].join(", ");
        let text = format!("{combiner} i32{shape} -> {outputs}");
        let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let memory = Memory::of(&spec, 3, n as u64, (0, 0));
        let expected = sequential(&spec, memory.inputs[0].bytes(), identity, each);
        for width in [None, Some(0), Some(64)] {
            let kernel = compiler.compile_with(&spec, &Options { schedule: None, width }).expect("a kernel");
            let outputs = memory.run(&kernel);
            for (o, output) in outputs.iter().enumerate() {
                for (place, state) in places(&spec, o).into_iter().zip(&expected) {
                    let got = Scalar::read(DType::I64, output.bytes(), place).as_int();
                    assert_eq!(got, Some(state[o].into()), "{spec}, output {o} at {place}, {width:?}");
                }
            }
        }
    }
}

#[test]
fn affine_maps_compose_in_order() {
    check(AFFINE, [1, 0], |[a, b], x, _| {
        let (m, c) = (x.wrapping_mul(2).wrapping_add(1), x);
        [a.wrapping_mul(m), b.wrapping_mul(m).wrapping_add(c)]
    });
}

#[test]
fn matrices_multiply_in_order_of_positions() {
    check(MATRIX, [1, 0, 0, 1], |a, x, i| {
        let b = [x, 1, i, x.wrapping_mul(3).wrapping_add(1)];
        let dot = |r: usize, c: usize| a[r].wrapping_mul(b[c]).wrapping_add(a[r + 1].wrapping_mul(b[c + 2]));
        [dot(0, 0), dot(0, 1), dot(2, 0), dot(2, 1)]
    });
}

#[test]
fn blocks_merge_in_order() {
    check(LAST, [0], |[a], x, _| [if x != 0 { x } else { a }]);
}

#[test]
fn phases_see_the_same_order() {
    check(LAST_AND_AFFINE, [0, 1, 0], |[last, a, b], x, i| {
        let (m, c) = (x.wrapping_mul(2).wrapping_add(1), x.wrapping_mul(5).wrapping_sub(i));
        [if x != 0 { x } else { last }, a.wrapping_mul(m), b.wrapping_mul(m).wrapping_add(c)]
    });
}
