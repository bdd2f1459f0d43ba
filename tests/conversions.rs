//! Conversions between all types of elements: through outputs of regions, at lengths around those of vectors, and as
//! operations of nests. The bits are those of the interpreter at every width, and vectors of all widths have a form.

use cranefold::ir::{Nest, Op, Scalar, eval};
use cranefold::lower::lower;
use cranefold::{Compiler, DType, Input, Kernel, Options, Output, Problem, Spec};

const WIDTHS: [u32; 4] = [512, 256, 128, 0];

/// Numbers at which a conversion may err: the limits of all integers, halves between floats, and what an f64 does not
/// hold that an f32 is rounded from.
fn numbers() -> Vec<f64> {
    let mut all =
        vec![0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 1e-310, 1e-40, 6e-8, 1e-5, 65504.0, 65519.0, 65520.0, 3.4e38];
    all.extend([0.1, 100.7, 1e300, f64::INFINITY, f64::NAN]);
    for power in [7, 8, 11, 15, 16, 23, 24, 25, 31, 32, 33, 52, 53, 54, 62, 63, 64, 65, 127, 128] {
        let limit = 2f64.powi(power);
        all.extend([limit, limit + 1.0, limit - 1.0, limit - 0.5, limit + 0.5, limit.next_up(), limit.next_down()]);
        all.extend([f64::from((limit as f32).next_up()), f64::from((limit as f32).next_down())]);
    }
    all.iter().flat_map(|&x| [x, -x]).collect()
}

fn integers() -> Vec<i128> {
    let mut all = vec![0, 1, 2, 127, 100];
    for power in [7, 8, 11, 12, 15, 16, 23, 24, 25, 31, 32, 33, 52, 53, 54, 62, 63, 64] {
        let limit = 1i128 << power;
        all.extend([limit, limit - 1, limit + 1, limit + (limit >> 25), limit + (limit >> 25) + 1]);
        all.extend([limit + (limit >> 24) + (limit >> 25), limit + (limit >> 25) - 1, limit + (limit >> 53)]);
    }
    all.iter().flat_map(|&x| [x, -x]).collect()
}

/// Elements of a type: the numbers above, and any bits.
fn elements(dtype: DType) -> Vec<Scalar> {
    let mut all: Vec<Scalar> = match dtype {
        DType::Bool => vec![],
        d if d.is_float() => numbers().into_iter().map(|x| Scalar::float(d, x)).collect(),
        d => integers().into_iter().map(|x| Scalar::int(d, x)).collect(),
    };
    if dtype == DType::F32 {
        // Ties between two bf16, and their neighbours: around 0, the least normal number, 1, the greatest, and infinity.
        let upper = [0, 1, 0x7f, 0x80, 0x3f80, 0x3f81, 0x7f7e, 0x7f7f, 0x7f80, 0x7fbf, 0x8001, 0xbf81, 0xff7f];
        let lower = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
        all.extend(upper.iter().flat_map(|u| lower.map(|l| Scalar::from_bits(dtype, u << 16 | l))));
    }
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    all.extend((0..129).map(|_| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        Scalar::from_bits(dtype, random >> 17 ^ random << 20)
    }));
    all
}

/// The bytes of `count` elements from a place on, around the end.
fn bytes(elements: &[Scalar], from: usize, count: usize) -> Vec<u8> {
    let size = elements[0].dtype().bytes() as usize;
    let mut bytes = vec![0; count * size];
    (0..count).for_each(|n| elements[(from + n) % elements.len()].write(&mut bytes, n));
    bytes
}

/// The outputs of a kernel or, without one, of the interpreter.
fn outputs(nest: &Nest, kernel: Option<&Kernel>, input: (DType, &[u8]), count: usize) -> Vec<Vec<u8>> {
    let types: Vec<DType> = nest.buffers[1..].iter().map(|b| b.dtype).collect();
    let mut outputs: Vec<Vec<u8>> = types.iter().map(|d| vec![0xaa; count * d.bytes() as usize]).collect();
    match kernel {
        None => {
            let outputs = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            eval::run(nest, &mut eval::Bits { inputs: vec![input.1], outputs });
        }
        Some(kernel) => {
            let places = kernel.outputs().zip(&mut outputs);
            let mut places: Vec<Output> = places.map(|((d, _), bytes)| Output::from_bytes(d, bytes)).collect();
            kernel.run(&[Input::from_bytes(input.0, input.1)], &mut places).expect("the right buffers");
        }
    }
    outputs
}

/// Compares all elements, in pieces of `count`.
fn agree(what: &str, nest: &Nest, kernels: &[(u32, Kernel)], dtype: DType, count: usize) {
    let input = elements(dtype);
    for from in (0..input.len()).step_by(count) {
        let given = bytes(&input, from, count);
        let expected = outputs(nest, None, (dtype, &given), count);
        for (width, kernel) in kernels {
            let found = outputs(nest, Some(kernel), (dtype, &given), count);
            for (buffer, (found, expected)) in nest.buffers[1..].iter().zip(found.iter().zip(&expected)) {
                let to = buffer.dtype;
                for n in 0..count {
                    let [found, expected] = [found, expected].map(|bytes| Scalar::read(to, bytes, n));
                    let x = Scalar::read(dtype, &given, n);
                    // The payload of a NaN is not specified in nests.
                    let is_same = found == expected || found.is_nan() && expected.is_nan();
                    assert!(is_same, "{what}: {to} of {x}: {found} at {width} bits, {expected} by the interpreter");
                }
            }
        }
    }
}

fn widths<T>(make: impl Fn(&Options) -> T) -> Vec<(u32, T)> {
    let one = |width| (width, make(&Options { width: Some(width), ..Options::default() }));
    WIDTHS.into_iter().map(one).collect()
}

#[test]
fn outputs_of_regions_have_the_bits_of_the_interpreter() {
    let compiler = Compiler::host().expect("a compiler");
    for from in DType::ALL {
        for count in [1, 3, 7, 13, 31, 64, 65, 129] {
            let mut all: Vec<String> = DType::ALL.iter().map(|to| format!("{to}(x)")).collect();
            if from.is_float() {
                all.push("f32(bf16(x)) * 3, f32(f16(x)) * 3".into());
            }
            let text = format!("region x:{from}[{count}] axes=[] {{ {} }}", all.join(", "));
            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            let naive = lower(&Problem::of(&spec), "region");
            let kernels = widths(|options| compiler.compile_with(&spec, options).unwrap_or_else(|e| panic!("{e}")));
            agree(&text, &naive, &kernels, from, count);
        }
    }
}

/// A nest of one conversion, of elements or of their values rounded to nearest.
fn nest_of(from: DType, to: DType, count: usize, is_rounded: bool) -> Nest {
    let x = if is_rounded { "nearest(x0[l0])" } else { "x0[l0]" };
    let text = format!(
        "nest \"\" {{ in x0: {from}[{count}] out x1: {to}[{count}] \
         for l0 in 0..{count} parallel {{ x1[l0] = {to}({x}) }} }}"
    );
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn operations_of_nests_have_the_bits_of_the_interpreter() {
    let compiler = Compiler::host().expect("a compiler");
    let pairs = DType::ALL.into_iter().flat_map(|from| DType::ALL.into_iter().map(move |to| (from, to)));
    for (from, to) in pairs.filter(|&(from, to)| from != DType::Bool && Op::Cast.accepts(to, &[from])) {
        let halves = |d| matches!(d, DType::F16 | DType::Bf16);
        if halves(from) && to.is_int() || from.is_int() && halves(to) || halves(from) && halves(to) {
            continue;
        }
        let is_float = matches!(from, DType::F32 | DType::F64);
        for nest in [false, true].into_iter().filter(|rounded| is_float || !rounded).map(|r| nest_of(from, to, 65, r)) {
            let kernels =
                widths(|options| compiler.compile_nest(&nest, options).unwrap_or_else(|e| panic!("{nest}: {e}")));
            agree("a nest", &nest, &kernels, from, 65);
            for (width, kernel) in kernels.iter().filter(|(width, _)| is_wide(&compiler, *width)) {
                assert_eq!(kernel.facts().wide_functions.count, 1, "{width} bits have no form\n{nest}");
            }
        }
    }
}

/// Returns true if the machine has wide vectors of so many bits.
fn is_wide(compiler: &Compiler, width: u32) -> bool {
    width >= 256 && compiler.target().vector_bits() >= width
}
