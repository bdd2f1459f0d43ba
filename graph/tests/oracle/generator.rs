//! A generator of graphs and their inputs.

use cranefold_graph::{Builder, DType, Data, Graph, Op, Range, Value, ValueId};

/// A small generator of numbers.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// Elements of a value: small multiples of 1/8, and small integers.
pub fn random_data(rng: &mut Rng, value: &Value) -> Data {
    let count: u64 = value.shape.iter().product();
    let mut element = |dtype: DType| {
        let int = rng.below(33) as i64 - 16;
        match dtype {
            DType::Bool => cranefold::Scalar::bool(int > 0),
            _ if dtype.is_float() => cranefold::Scalar::float(dtype, int as f64 / 8.0),
            _ => cranefold::Scalar::int(dtype, int.into()),
        }
    };
    let values: Vec<_> = (0..count).map(|_| element(value.dtype)).collect();
    Data::of(value.dtype, &value.shape, &values).unwrap()
}

pub fn random_graph(seed: u64) -> Graph {
    let mut rng = Rng(seed);
    let mut b = Builder::new();
    let dtypes = [
        DType::F32,
        DType::F32,
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::F64,
        DType::I32,
        DType::I8,
        DType::U8,
        DType::Bool,
        DType::I64,
    ];
    let rank = 1 + rng.below(4);
    let shape: Vec<u64> = (0..rank).map(|_| rng.pick(&[1, 2, 3, 4, 6, 7, 16])).collect();
    let mut values: Vec<ValueId> = vec![];
    for i in 0..1 + rng.below(3) {
        let own =
            if i == 0 { shape.clone() } else { shape.iter().map(|&e| if rng.below(3) == 0 { 1 } else { e }).collect() };
        let dtype = if i == 0 { DType::F32 } else { rng.pick(&dtypes) };
        values.push(b.input("", dtype, &own).unwrap());
    }
    for _ in 0..2 + rng.below(14) {
        let x = rng.pick(&values);
        if let Some(value) = random_node(&mut rng, &mut b, x, &values) {
            values.push(value);
        }
    }
    let count = 1 + rng.below(3);
    for i in 0..count {
        let value = if i == 0 { *values.last().unwrap() } else { rng.pick(&values) };
        b.output(&format!("out{i}"), value).unwrap();
    }
    b.finish().unwrap()
}

fn random_node(rng: &mut Rng, b: &mut Builder, x: ValueId, values: &[ValueId]) -> Option<ValueId> {
    let (dtype, shape) = (b.dtype(x), b.shape(x).to_vec());
    let rank = shape.len();
    let axes = |rng: &mut Rng| -> Vec<i64> {
        let axes: Vec<i64> = (0..rank as i64).filter(|_| rng.below(2) == 0).collect();
        if axes.is_empty() && rank > 0 { vec![rng.below(rank) as i64] } else { axes }
    };
    match rng.below(13) {
        0 | 1 => {
            let formulas: &[&str] = match dtype {
                DType::Bool => &["not x0", "select(x0, 1.5, 0.25)"],
                _ if dtype.is_float() => &[
                    "tanh(x0)",
                    "max(x0, 0)",
                    "x0 * 0.5 + 1",
                    "abs(x0)",
                    "exp(min(x0, 1))",
                    "x0 > 0.5",
                    "-x0",
                    "x0 * x0",
                ],
                _ => &["x0 + 3", "x0 * 2", "max(x0, 1)", "x0 > 0", "x0 & 7"],
            };
            let formula = rng.pick(formulas);
            b.map("", formula, &[x]).ok()
        }
        2 | 3 => {
            let same: Vec<ValueId> = values.iter().copied().filter(|&y| b.dtype(y) == dtype).collect();
            let y = rng.pick(&same);
            let formula = match dtype {
                DType::Bool => rng.pick(&["x0 and x1", "x0 or x1"]),
                _ => rng.pick(&["x0 + x1", "x0 * x1", "x0 - x1", "max(x0, x1)"]),
            };
            let fits = b.shape(y).iter().product::<u64>() * shape.iter().product::<u64>() < 100_000;
            if x == y || !fits { None } else { b.map("", formula, &[x, y]).ok() }
        }
        4 | 5 => {
            let ops: &[&str] = match dtype {
                DType::Bool => &["any", "all"],
                _ if dtype.is_float() => {
                    &["sum", "mean", "max", "min", "var", "log_sum_exp", "l2", "argmax", "sum_squares"]
                }
                _ => &["sum", "max", "min", "argmin", "mean"],
            };
            let (op, keep) = (rng.pick(ops), rng.below(2) == 0);
            let axes = axes(rng);
            b.reduce("", op, &[], &axes, keep, x).ok()
        }
        6 if dtype.is_float() => {
            let axes = axes(rng);
            let op = rng.pick(&["softmax", "log_softmax", "layer_norm", "rms_norm"]);
            let params: &[(&str, f64)] = if op.ends_with("norm") { &[("eps", 0.5)] } else { &[] };
            b.normalize("", op, params, &axes, &[x]).ok()
        }
        7 => {
            let mut perm: Vec<usize> = (0..rank).collect();
            for i in (1..rank).rev() {
                perm.swap(i, rng.below(i + 1));
            }
            b.transpose("", &perm, x).ok()
        }
        8 => {
            let all: u64 = shape.iter().product();
            let split = [2, 3, 4].into_iter().find(|d| all.is_multiple_of(*d) && all > 0)?;
            let to = rng.pick(&[vec![all], vec![split, all / split], vec![all / split, 1, split]]);
            b.reshape("", &to, x).ok()
        }
        9 if rank > 0 => {
            let ranges: Vec<Range> = shape
                .iter()
                .map(|&e| match rng.below(3) {
                    0 if e > 1 => Range { start: 1, step: 1, extent: e - 1 },
                    1 if e > 1 => Range { start: e - 1, step: -1, extent: e },
                    _ => Range::all(e),
                })
                .collect();
            b.slice("", &ranges, x).ok()
        }
        10 if dtype != DType::Bool => {
            let to = rng.pick(&[DType::F32, DType::F64, DType::F16, DType::I32, DType::I8]);
            b.add("", Op::Cast { to, saturate: rng.below(2) == 0 }, &[x]).ok()
        }
        11 if rank > 0 => {
            let small = shape.iter().product::<u64>() < 10_000;
            if small { b.concat("", rng.below(rank) as i64, &[x, x]).ok() } else { None }
        }
        12 if dtype.is_float() && rank > 1 => {
            let (axes, along) = (axes(rng), rng.below(rank) as i64);
            let outside = f64::from(u8::from(rng.below(2) == 0));
            let results = match rng.below(5) {
                0 => b.composite(&[""], "hardmax", &[], &[along], &[x]),
                1 => b.composite(&[""], "mvn", &[("eps", 0.5), ("outside", outside)], &axes, &[x]),
                2 => b.composite(&[""], "instance_norm", &[("eps", 0.5)], &[], &[x]),
                3 => {
                    let groups = if shape[1] % 2 == 0 { 2.0 } else { 1.0 };
                    b.composite(&[""], "group_norm", &[("eps", 0.5), ("groups", groups)], &[], &[x])
                }
                _ => b.composite(&["", "", ""], "layer_norm_stats", &[("eps", 0.5)], &axes, &[x]),
            };
            results.ok().and_then(|results| rng.pick(&[results.first().copied(), results.last().copied()]))
        }
        _ => None,
    }
}
