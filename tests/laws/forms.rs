//! Ops of two forms: in either, each result is what a walk over the slice says, to the bit. Extremes of few floats and their
//! positions, where elements are NaNs of any sign and payload, zeros of both signs, infinities, limits and subnormals; and
//! means of few bytes.

use cranefold::ops::{Form, ROWS};
use cranefold::{Compiler, DType, Input, Options, Output, Problem, Scalar, Schedule, Spec, schedule};
use cranefold_fuzz::data::Random;

const FLOATS: [DType; 4] = [DType::F16, DType::Bf16, DType::F32, DType::F64];

/// Lengths of slices: all that are short, and around the lanes of vectors and their neighbours.
const LENGTHS: [usize; 19] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 31, 33, 63, 65, 127, 257];

const WIDTHS: [Option<u32>; 4] = [None, Some(256), Some(128), Some(0)];

/// Elements that an extreme may get wrong.
fn values(dtype: DType) -> Vec<Scalar> {
    let sign = 1u64 << (dtype.bits() - 1);
    let infinity = Scalar::highest(dtype).bits();
    let quiet = Scalar::nan(dtype).bits();
    let magnitudes = [0, 1, Scalar::float(dtype, 1.0).bits(), infinity - 1, infinity, infinity + 1, quiet, sign - 1];
    magnitudes.iter().flat_map(|&bits| [bits, bits | sign]).map(|bits| Scalar::from_bits(dtype, bits)).collect()
}

/// Slices of so many: each pair of values first, then such in which few are NaN.
fn slices(dtype: DType, len: usize, random: &mut Random) -> Vec<Vec<Scalar>> {
    let values = values(dtype);
    let numbers: Vec<Scalar> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    let pairs = values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b)));
    let mut slices: Vec<Vec<Scalar>> = pairs
        .map(|(a, b)| {
            let mut slice: Vec<Scalar> = (0..len).map(|_| random.pick(&numbers)).collect();
            // In any two places; the rest is of one kind, so that either may be the extreme.
            let rest = random.pick(&numbers);
            slice.iter_mut().filter(|_| random.below(2) == 0).for_each(|x| *x = rest);
            let at = random.below(len as u64) as usize;
            slice[at] = a;
            slice[(at + 1 + random.below(len as u64) as usize) % len] = b;
            slice
        })
        .collect();
    slices.extend((0..37).map(|_| vec![random.pick(&numbers); len]));
    slices
}

/// The extreme by a walk, as a float of this type.
fn extreme(slice: &[Scalar], is_max: bool, magnitude: bool) -> Scalar {
    let dtype = slice[0].dtype();
    let sign = 1u64 << (dtype.bits() - 1);
    if slice.iter().any(|x| x.is_nan()) {
        return Scalar::nan(dtype);
    }
    let keys = slice.iter().map(|x| {
        let bits = if magnitude { x.bits() & !sign } else { x.bits() };
        let magnitude = (bits & !sign) as i128;
        // -0 is below +0.
        (if bits & sign == 0 { magnitude } else { -1 - magnitude }, bits)
    });
    let found = if is_max { keys.max() } else { keys.min() };
    Scalar::from_bits(dtype, found.expect("an element").1)
}

/// The position of the extreme by a walk.
fn position(slice: &[Scalar], is_max: bool, last: bool) -> Scalar {
    let best = extreme(slice, is_max, false);
    // -0 and +0 are as good.
    let is_best = |x: &Scalar| if best.is_nan() { x.is_nan() } else { x.as_f64() == best.as_f64() };
    let found = if last { slice.iter().rposition(is_best) } else { slice.iter().position(is_best) };
    Scalar::int(DType::I64, found.expect("an element") as i128)
}

/// A function of a slice.
type Walked = fn(&[Scalar]) -> Scalar;

/// The ops, each with its outputs by a walk.
const OPS: [(&str, &[Walked]); 8] = [
    ("max", &[|s| extreme(s, true, false)]),
    ("min", &[|s| extreme(s, false, false)]),
    ("linf", &[|s| extreme(s, true, true)]),
    ("min, max", &[|s| extreme(s, false, false), |s| extreme(s, true, false)]),
    ("argmax", &[|s| position(s, true, false)]),
    ("argmin", &[|s| position(s, false, false)]),
    ("argmax(last)", &[|s| position(s, true, true)]),
    ("argmin(last)", &[|s| position(s, false, true)]),
];

/// The form that is chosen, and each that there is.
fn forms(has_direct: bool) -> impl Iterator<Item = Option<Form>> {
    [None, Some(Form::Plain), Some(Form::Direct)].into_iter().take(2 + usize::from(has_direct))
}

/// The outputs of a kernel of vectors of at most `width` bits, in its own form or a forced one.
fn run(compiler: &Compiler, spec: &Spec, (width, form): (Option<u32>, Option<Form>), input: &[u8]) -> Vec<Vec<u8>> {
    let schedule = form.map(|form| Schedule { form, width: width.unwrap_or(512), ..Schedule::default() });
    let kernel = compiler.compile_with(spec, &Options { schedule, width }).expect("a kernel");
    let mut outputs: Vec<Vec<u8>> = spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
    let dtype = spec.inputs()[0].dtype();
    let mut given: Vec<Output> =
        outputs.iter_mut().zip(spec.outputs()).map(|(o, of)| Output::from_bytes(of.dtype(), o)).collect();
    kernel.run(&[Input::from_bytes(dtype, input)], &mut given).expect("a run");
    drop(given);
    outputs
}

/// The form depends on the width of vectors, and so does the order in which a form combines elements: no result may depend on
/// that order, which of these rows the test below shows.
#[test]
fn only_exact_rows_have_two_forms() {
    let rows: Vec<&str> = ROWS.iter().filter(|row| row.forms.direct.is_some()).map(|row| row.name).collect();
    assert_eq!(rows, ["min", "max", "mean", "argmax", "argmin"]);
}

#[test]
fn extremes_of_few_floats_are_exact_in_either_form() {
    let compiler = Compiler::host().expect("this machine");
    let mut random = Random::new(23);
    let mut direct = 0;
    for dtype in FLOATS {
        for len in LENGTHS {
            let slices = slices(dtype, len, &mut random);
            let count = slices.len();
            for by_columns in [false, true] {
                let mut input = vec![0; count * len * dtype.bytes() as usize];
                for (s, slice) in slices.iter().enumerate() {
                    for (e, x) in slice.iter().enumerate() {
                        x.write(&mut input, if by_columns { e * count + s } else { s * len + e });
                    }
                }
                let shape =
                    if by_columns { format!("[{len},{count}] axes=[0]") } else { format!("[{count},{len}] axes=[1]") };
                for (op, of) in OPS {
                    let spec: Spec = format!("{op} {dtype}{shape}").parse().expect("a spec");
                    let expected: Vec<Vec<Scalar>> =
                        of.iter().map(|walked| slices.iter().map(|s| walked(s)).collect()).collect();
                    let problem = Problem::of(&spec);
                    let has_direct = schedule::slice_work(&problem, Form::Direct, 512).is_some();
                    for width in WIDTHS {
                        direct += usize::from(schedule::choose(&problem, width.unwrap_or(512)).form == Form::Direct);
                        for form in forms(has_direct) {
                            let outputs = run(&compiler, &spec, (width, form), &input);
                            for ((output, of), expected) in outputs.iter().zip(spec.outputs()).zip(&expected) {
                                let found: Vec<Scalar> =
                                    (0..count).map(|i| Scalar::read(of.dtype(), output, i)).collect();
                                if let Some(i) = (0..count).find(|&i| found[i].bits() != expected[i].bits()) {
                                    let slice = &slices[i];
                                    panic!("{spec} at {width:?} in {form:?}: {} of {slice:?}", found[i]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(direct > 100, "{direct} in the direct form");
}

/// Means of bytes by totals in 16 and in 32 bits, up to the greatest totals that 16 bits hold.
#[test]
fn means_of_bytes_are_exact_in_either_form() {
    let compiler = Compiler::host().expect("this machine");
    let mut random = Random::new(29);
    let mut direct = 0;
    for (dtype, least, greatest) in [(DType::I8, -128, 127), (DType::U8, 0, 255)] {
        for len in LENGTHS.into_iter().chain([64, 128, 129, 200, 255, 256]) {
            let any = |random: &mut Random| least + random.below((greatest - least + 1) as u64) as i128;
            let mut slices: Vec<Vec<i128>> = (0..41).map(|_| (0..len).map(|_| any(&mut random)).collect()).collect();
            slices.extend([vec![least; len], vec![greatest; len]]);
            for by_columns in [false, true] {
                let count = slices.len();
                let mut input = vec![0; count * len];
                for (s, slice) in slices.iter().enumerate() {
                    for (e, &x) in slice.iter().enumerate() {
                        let at = if by_columns { e * count + s } else { s * len + e };
                        Scalar::int(dtype, x).write(&mut input, at);
                    }
                }
                let shape =
                    if by_columns { format!("[{len},{count}] axes=[0]") } else { format!("[{count},{len}] axes=[1]") };
                let spec: Spec = format!("mean {dtype}{shape}").parse().expect("a spec");
                let has_direct = schedule::slice_work(&Problem::of(&spec), Form::Direct, 512).is_some();
                direct += usize::from(has_direct);
                for width in WIDTHS {
                    for form in forms(has_direct) {
                        let outputs = run(&compiler, &spec, (width, form), &input);
                        for (i, slice) in slices.iter().enumerate() {
                            let mean = slice.iter().sum::<i128>() / len as i128;
                            let found = Scalar::read(dtype, &outputs[0], i).as_int();
                            assert_eq!(found, Some(mean), "{spec} at {width:?} in {form:?}, slice {i}");
                        }
                    }
                }
            }
        }
    }
    assert!(direct > 50, "{direct} in the direct form");
}
