//! `order=logical`: the shape and the axes alone decide the order of accumulation, whatever the strides.

use cranefold::spec::Operand;
use cranefold::{Compiler, DType, Layout, Scalar, Spec};
use cranefold_fuzz::data::{Buffer, Random, elements};
use cranefold_fuzz::execute::{Memory, places_in};

/// What stands before the operand and after it; regions read `x`.
const SPECS: &[(&str, &str)] = &[
    ("sum ", ""),
    ("mean ", ""),
    ("var ", ""),
    ("softmax ", ""),
    ("max, argmax ", ""),
    ("log_sum_exp ", ""),
    ("sum, var(ddof=1), argmin(last) ", ""),
    ("region x:", " { m, s = sum_exp(x); exp(x - m) / s, m + log(s) }"),
    ("region x:", " { c = centered(x); sum(x), c / sqrt(mean(c * c) + 1e-5), prod(x), argmax(c) }"),
];

const SHAPES: &[&[u64]] =
    &[&[3, 1000], &[65, 37], &[130, 3], &[7, 33, 65], &[2, 130, 17], &[3, 1, 300], &[3, 5, 2, 67], &[2, 17, 3, 40]];

/// Every layout of an operand of this shape: permuted, blocked with tails, sliced, and walked backwards.
fn layouts(shape: &[u64]) -> Vec<String> {
    let tags: &[&str] = match shape.len() {
        2 => &["ba", "aB16b", "AB8a4b", "Ba4b", "AB4b2a4b"],
        3 => &["acb", "bac", "bca", "cab", "cba", "aBc16b", "aBC4b8c", "CBa2b16c"],
        _ => &["dcba", "acdb", "abdc", "bacd", "dacb", "aBcd16b", "aBcD16b4d", "DbCA2a3c8d"],
    };
    let mut layouts: Vec<String> = tags.iter().map(|tag| tag.to_string()).collect();
    let strides = |gap: i64, backwards: &dyn Fn(usize) -> bool| {
        let (mut strides, mut span, mut offset) = (vec![0; shape.len()], 1 + gap, 0);
        for (axis, &extent) in shape.iter().enumerate().rev() {
            strides[axis] = if backwards(axis) { -span } else { span };
            offset += if backwards(axis) { span * (extent as i64 - 1) } else { 0 };
            span = span * extent as i64 + gap;
        }
        let strides: Vec<String> = strides.iter().map(i64::to_string).collect();
        format!("({})+{offset}", strides.join(","))
    };
    layouts.push(strides(1, &|_| false));
    layouts.push(strides(0, &|_| true));
    layouts.push(strides(3, &|axis| axis % 2 == 1));
    layouts.push(strides(2, &|axis| axis % 2 == 0));
    layouts
}

/// Every choice of axes of a rank, but none.
fn choices(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (1..1 << rank).map(move |choice| (0..rank).filter(|axis| choice >> axis & 1 == 1).collect())
}

fn parsed(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The memory of a spec whose first input has these values in the row-major order of its shape.
fn memory_of(spec: &Spec, values: &[Scalar]) -> Memory {
    let mut memory = Memory::of(spec, 3, 9, (0, 0));
    let operand = &spec.inputs()[0];
    let places = places_in(operand, operand.shape());
    assert_eq!(places.len(), values.len());
    places.into_iter().zip(values).for_each(|(place, value)| value.write(memory.inputs[0].bytes_mut(), place));
    memory
}

fn run(compiler: &Compiler, spec: &Spec, values: &[Scalar]) -> Vec<Buffer> {
    let kernel = compiler.compile(spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
    memory_of(spec, values).run(&kernel)
}

/// Random values of like magnitude.
fn values_of(dtype: DType, count: u64, seed: u64) -> Vec<Scalar> {
    let bytes = elements(dtype, count as usize, 3, seed);
    (0..count as usize).map(|i| Scalar::read(dtype, &bytes, i)).collect()
}

fn same(a: &[Buffer], b: &[Buffer]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes())
}

/// The indices of an element.
fn indices(shape: &[u64], mut at: u64) -> Vec<u64> {
    let mut indices = vec![0; shape.len()];
    for (axis, &extent) in shape.iter().enumerate().rev() {
        indices[axis] = at % extent;
        at /= extent;
    }
    indices
}

/// Checks that the same values have the same bits in every layout; shows the specs that have others. A shape takes half
/// of the layouts of each spec and choice of axes, and the next shape the other half.
fn check_layouts(dtype: DType, shapes: &[&[u64]]) {
    let compiler = Compiler::builder().most_kernels(16).build().expect("a compiler");
    let mut wrong = vec![];
    for (n, shape) in shapes.iter().enumerate() {
        let values = values_of(dtype, shape.iter().product(), n as u64);
        for (c, axes) in choices(shape.len()).enumerate() {
            for (s, (head, rest)) in SPECS.iter().enumerate() {
                let is_taken = |layout: usize| (layout + s + c + n).is_multiple_of(2);
                let text = |at: &str| format!("{head}{dtype}{shape:?}{at} axes={axes:?} order=logical{rest}");
                let plain = parsed(&text(""));
                let kernel = compiler.compile(&plain).unwrap_or_else(|e| panic!("{plain}: {e}"));
                let run_plain = |values: &[Scalar]| memory_of(&plain, values).run(&kernel);
                let expected = run_plain(&values);
                for (_, layout) in layouts(shape).into_iter().enumerate().filter(|&(l, _)| is_taken(l)) {
                    let spec = parsed(&text(&format!("@{layout}")));
                    if !same(&run(&compiler, &spec, &values), &expected) {
                        wrong.push(spec.to_string());
                    }
                }
                for axis in (0..shape.len()).filter(|&axis| is_taken(axis)) {
                    // Elements that repeat along an axis, stored once.
                    let strides: Vec<i64> = (0..shape.len())
                        .map(|a| shape[a + 1..].iter().product::<u64>() as i64 * i64::from(a != axis))
                        .collect();
                    let place = |at: u64| {
                        let along = indices(shape, at)[axis];
                        at - along * shape[axis + 1..].iter().product::<u64>()
                    };
                    let repeated: Vec<Scalar> = (0..values.len() as u64).map(|at| values[place(at) as usize]).collect();
                    let strides = Layout::strides(strides).to_string();
                    let spec = parsed(&text(&format!("@{strides}")));
                    if !same(&run(&compiler, &spec, &repeated), &run_plain(&repeated)) {
                        wrong.push(spec.to_string());
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} have other bits, the first {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn layouts_change_no_bit_of_two_axes() {
    check_layouts(DType::F32, &SHAPES[..3]);
    check_layouts(DType::F64, &SHAPES[1..2]);
}

#[test]
fn layouts_change_no_bit_of_three_axes() {
    check_layouts(DType::F32, &SHAPES[3..6]);
}

#[test]
fn layouts_change_no_bit_of_four_axes() {
    check_layouts(DType::F32, &SHAPES[6..]);
}

#[test]
fn narrow_elements_have_the_same_bits_in_every_layout() {
    check_layouts(DType::Bf16, &[&[65, 37], &[7, 33, 65]]);
}

/// Checks that each slice of a spec has the same bits for all these extents of its kept axes: `shape` has 0 in their
/// places.
fn check_kept(dtype: DType, (head, rest): (&str, &str), order: &str, shape: &[u64], extents: &[&[u64]]) {
    let compiler = Compiler::host().expect("a compiler");
    let axes: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] > 0).collect();
    let count: u64 = shape.iter().filter(|&&extent| extent > 0).product();
    let slice = values_of(dtype, count, 17);
    let mut expected: Option<Vec<u64>> = None;
    for &kept in extents {
        let mut kept = kept.iter().copied().cycle();
        let whole: Vec<u64> = shape.iter().map(|&e| if e == 0 { kept.next().expect("an extent") } else { e }).collect();
        let spec = parsed(&format!("{head}{dtype}{whole:?} axes={axes:?} order={order}{rest}"));
        // The same elements in each slice.
        let value = |at: u64| {
            let indices = indices(&whole, at);
            slice[axes.iter().fold(0, |place, &axis| place * whole[axis] + indices[axis]) as usize]
        };
        let values: Vec<Scalar> = (0..whole.iter().product()).map(value).collect();
        let outputs = run(&compiler, &spec, &values);
        let bits_of = |(operand, output): (&Operand, &Buffer)| {
            let bits = |i: usize| Scalar::read(operand.dtype(), output.bytes(), i).bits();
            let is_same = (0..operand.elems() as usize).all(|i| bits(i) == bits(0));
            assert!(is_same, "{spec}: slices of the same elements differ");
            bits(0)
        };
        let bits: Vec<u64> = spec.outputs().iter().zip(&outputs).map(bits_of).collect();
        let expected = expected.get_or_insert_with(|| bits.clone());
        assert_eq!(bits, *expected, "{spec}: other bits than with other kept axes");
    }
}

/// Reductions of slices alone.
const REDUCTIONS: &[(&str, &str)] = &[
    ("sum ", ""),
    ("mean, var ", ""),
    ("log_sum_exp, max, argmax ", ""),
    ("region x:", " { m, s = sum_exp(x); c = centered(x); m, s, mean(c * c), sum(x), argmax(x) }"),
];

#[test]
fn kept_axes_change_no_bit_of_a_slice() {
    // Few elements where two axes are kept.
    let check = |reduction: (&str, &str), order: &str, shape: &[u64], least: usize| {
        let most = if shape.iter().filter(|&&extent| extent == 0).count() > 1 { 4 } else { 5 };
        let extents: Vec<&[u64]> = [1, 2, 3, 17, 65][least..most].chunks(1).collect();
        check_kept(DType::F32, reduction, order, shape, &extents);
    };
    for &reduction in REDUCTIONS {
        for shape in [&[0, 1000][..], &[0, 5, 833], &[0, 33, 0, 131], &[70, 0, 67], &[5, 0, 7, 0, 65], &[67, 0, 1]] {
            check(reduction, "logical", shape, 0);
        }
        // An axis of one between reduced axes counts as absent by memory.
        for shape in [&[0, 1000][..], &[0, 5, 833], &[0, 0, 700]] {
            check(reduction, "memory", shape, 0);
        }
        for shape in [&[0, 33, 0, 131][..], &[70, 0, 67], &[5, 0, 7, 0, 65]] {
            check(reduction, "memory", shape, 1);
        }
    }
}

/// Extents of two kept axes.
const KEPT: &[&[u64]] =
    &[&[1, 1], &[1, 2], &[2, 1], &[7, 1], &[1, 7], &[2, 7], &[7, 2], &[65, 1], &[1, 65], &[65, 2], &[7, 65]];

#[test]
fn two_kept_axes_of_four_change_no_bit_of_any_type() {
    // Of integers whose sums are no integers.
    let of_integers = [
        ("sum, argmax ", ""),
        (
            "region x:",
            " { m, s = sum_exp(f32(x) * 0.01); c = centered(f32(x) / 3); m, s, mean(c * c), sum(x), max(x) }",
        ),
    ];
    for shape in [&[0, 9, 0, 131][..], &[9, 0, 0, 131], &[0, 0, 9, 131], &[0, 131, 0, 9], &[0, 9, 0, 131, 1]] {
        for &reduction in &[REDUCTIONS[1], REDUCTIONS[3]] {
            for dtype in [DType::F32, DType::Bf16] {
                check_kept(dtype, reduction, "logical", shape, KEPT);
            }
        }
        of_integers.iter().for_each(|&of| check_kept(DType::I8, of, "logical", shape, KEPT));
    }
}

#[test]
fn an_axis_of_one_between_reduced_axes_counts_as_absent_by_memory() {
    let compiler = Compiler::host().expect("a compiler");
    for (head, rest) in REDUCTIONS {
        let of = |shape: &str| parsed(&format!("{head}f32{shape}{rest}"));
        let (with, without) = (of("[33,1,131] axes=[0,2]"), of("[33,131] axes=[0,1]"));
        let values = values_of(DType::F32, 33 * 131, 3);
        assert!(same(&run(&compiler, &with, &values), &run(&compiler, &without, &values)), "{with} and {without}");
    }
}

#[test]
fn a_mask_of_all_elements_changes_no_bit() {
    let compiler = Compiler::host().expect("a compiler");
    let (m, n) = (7, 4163);
    let all = [vec![m, n], vec![n], vec![m, 1], vec![1, 1]];
    for reduction in ["sum", "mean", "l2"] {
        for axes in ["[0]", "[1]", "[0,1]"] {
            for x in ["", "@ba", "@aB16b", "@(-4163,1)+24978"] {
                let plain = parsed(&format!("region x:f32[{m},{n}]{x} axes={axes} order=logical {{ {reduction}(x) }}"));
                let values = values_of(DType::F32, m * n, 5);
                let expected = run(&compiler, &plain, &values);
                for mask in &all {
                    let text = format!(
                        "region x:f32[{m},{n}]{x}, mask:bool{mask:?} axes={axes} order=logical \
                         {{ {reduction}(select(mask, x, -0.0)) }}"
                    );
                    let masked = parsed(&text);
                    let mut memory = memory_of(&masked, &values);
                    memory.inputs[1].bytes_mut().fill(1);
                    let kernel = compiler.compile(&masked).unwrap_or_else(|e| panic!("{masked}: {e}"));
                    assert!(same(&memory.run(&kernel), &expected), "{masked}");
                }
            }
        }
    }
}

#[test]
fn a_mask_of_all_elements_of_four_axes_changes_no_bit_of_any_type() {
    let compiler = Compiler::builder().most_kernels(16).build().expect("a compiler");
    let shape = [3, 5, 2, 67];
    let body = |of: &str| {
        let (none, zero) = (of.replace('#', "-inf"), of.replace('#', "-0.0"));
        format!("{{ m, s = sum_exp({none}); y = {zero}; sum(y), mean(y), exp({none} - m) / s, argmax({none}) }}")
    };
    for dtype in [DType::F32, DType::Bf16, DType::I8] {
        let values = values_of(dtype, shape.iter().product(), 5);
        // Elements of bf16 alone are searched for the greatest in 16 bits, and those of an expression in 32.
        let scaled = match dtype {
            DType::I8 => "f32(x) * 0.37",
            DType::Bf16 => "x * 0.75",
            _ => "x",
        };
        for axes in ["[3]", "[1,3]", "[0,2]", "[0,1,2]", "[0,1,2,3]"] {
            for layout in ["", "@dcba", "@acdb", "@aBcD16b4d"] {
                let head = format!("region x:{dtype}{shape:?}{layout}");
                let plain = parsed(&format!("{head} axes={axes} order=logical {}", body(scaled)));
                let expected = run(&compiler, &plain, &values);
                for mask in ["[3,5,2,67]", "[3,5,2,67]@dbca", "[67]", "[5,1,1]", "[3,1,2,1]", "[]"] {
                    let of = body(&format!("select(mask, {scaled}, #)"));
                    let masked = parsed(&format!("{head}, mask:bool{mask} axes={axes} order=logical {of}"));
                    let mut memory = memory_of(&masked, &values);
                    memory.inputs[1].bytes_mut().fill(1);
                    let kernel = compiler.compile(&masked).unwrap_or_else(|e| panic!("{masked}: {e}"));
                    let found = memory.run(&kernel);
                    let other = (0..found.len()).find(|&o| found[o].bytes() != expected[o].bytes());
                    assert_eq!(other, None, "the output of other bits, {masked}");
                }
            }
        }
    }
}

#[test]
fn operands_of_any_shape_count_as_expanded() {
    let compiler = Compiler::host().expect("a compiler");
    let (m, n) = (33u64, 131u64);
    let mut random = Random::new(3);
    let row = values_of(DType::F32, n, random.bits());
    let column = values_of(DType::F32, m, random.bits());
    for axes in ["[0]", "[1]", "[0,1]"] {
        for reduction in ["sum(r * c)", "var(r + c)", "log_sum_exp(r - c)"] {
            let text =
                |r: &str, c: &str| format!("region r:f32{r}, c:f32{c} axes={axes} order=logical {{ {reduction} }}");
            let small = parsed(&text(&format!("[{n}]"), &format!("[{m},1]")));
            let large = parsed(&text(&format!("[{m},{n}]"), &format!("[{m},{n}]@ba")));
            let mut memory = memory_of(&small, &row);
            column.iter().enumerate().for_each(|(i, v)| v.write(memory.inputs[1].bytes_mut(), i));
            let expected = memory.run(&compiler.compile(&small).expect("a kernel"));
            let expanded: Vec<Scalar> = (0..m * n).map(|at| row[(at % n) as usize]).collect();
            let mut memory = memory_of(&large, &expanded);
            (0..m * n).for_each(|at| column[(at % m) as usize].write(memory.inputs[1].bytes_mut(), at as usize));
            let found = memory.run(&compiler.compile(&large).expect("a kernel"));
            assert!(same(&found, &expected), "{small} and {large}");
        }
    }
}

#[test]
fn orders_that_give_the_same_tree_are_one_computation() {
    let compiler = Compiler::host().expect("a compiler");
    let heads = SPECS.iter().chain(REDUCTIONS);
    for (head, rest) in heads {
        for shape in ["f32[3,1000] axes=[1]", "bf16[7,33,65] axes=[1,2]", "f32[8449] axes=[0]", "f64[2,3,5,7] axes=[3]"]
        {
            let [memory, logical] =
                ["memory", "logical"].map(|order| parsed(&format!("{head}{shape} order={order}{rest}")));
            let signatures = [&memory, &logical].map(|spec| compiler.keyed(spec).signature().clone());
            assert_eq!(signatures[0], signatures[1], "{memory} and {logical}");
        }
    }
}
