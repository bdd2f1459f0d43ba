//! The scan for slow spots: ops and dtypes over shapes that people have, each held against the op's cost on wide rows.

use crate::arrays::Arrays;
use crate::execute::native;
use crate::failure::Failure;
use crate::figures;
use crate::output_files::OutputFiles;
use crate::page::Map;
use crate::progress::Progress;
use crate::timing::Samples;
use cranefold::{Compiler, Serial, Spec};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// The ops; those that a dtype does not have are left out.
const OPS: [&str; 17] = [
    "sum",
    "prod",
    "max",
    "mean",
    "l1",
    "l2",
    "argmax",
    "argmin",
    "var",
    "std",
    "mean,var",
    "log_sum_exp",
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "l2_normalize_max",
];

/// The dtypes, each with what its limit is multiplied by: conversions of narrow elements are paid for each element.
const DTYPES: [(&str, f64); 5] = [("f32", 1.0), ("bf16", 1.0), ("f64", 1.0), ("f16", 1.2), ("i8", 1.2)];

/// Elements of a shape: the least and the most, as powers of two.
const ELEMENTS: (f64, f64) = (11.0, 22.5);

/// Elements of a wide row.
const WIDE: u64 = 4096;

/// Samples of a call, and the times that a case over the limit is measured again, on fresh buffers.
const SAMPLES: usize = 9;
const AGAIN: usize = 3;

/// The time in ns of the call itself, which no shape can save.
const CALL_NS: f64 = 25.0;

/// Small extents: channels, windows, heads, ragged rows.
const SMALL: [u64; 16] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 28, 32, 49];

/// Extents of images, features and vocabularies.
const LARGE: [u64; 16] = [56, 64, 80, 96, 100, 112, 128, 196, 224, 256, 300, 384, 512, 768, 1000, 1024];

/// A shape with the axes that are reduced.
struct Shape {
    extents: Vec<u64>,
    axes: Vec<usize>,
}

impl Shape {
    /// A shape that people have, of one of twelve kinds; the first extent grows until there are enough elements.
    fn draw(random: &mut fastrand::Rng) -> Shape {
        let mut one = |of: &[u64]| of[random.usize(..of.len())];
        let (small, other, large) = (one(&SMALL), one(&SMALL), one(&LARGE));
        let (inner, axes): (Vec<u64>, Vec<usize>) = match random.usize(..12) {
            0 => (vec![small], vec![1]),
            1 => (vec![large], vec![1]),
            2 => (vec![large * small], vec![1]),
            3 => (vec![small], vec![0]),
            4 => (vec![large], vec![0]),
            // Images, channels last: pixels, channels, all but the channels.
            5 => (vec![small * small.min(9), small], vec![1]),
            6 => (vec![large, other, small], vec![1, 2]),
            7 => (vec![large, small], vec![0, 1]),
            // Images, channels first: pixels, channels, all but the channels.
            8 => (vec![large, small * other], vec![2]),
            9 => (vec![small, large], vec![1]),
            10 => (vec![large, small * small], vec![0, 2]),
            // Pooling.
            _ => (vec![small * 2, 2, other * 2, 2], vec![2, 4]),
        };
        let inside: u64 = inner.iter().product();
        let elements = 2f64.powf(ELEMENTS.0 + random.f64() * (ELEMENTS.1 - ELEMENTS.0)) as u64;
        let first = (elements / inside).max(2);
        Shape { extents: std::iter::once(first).chain(inner).collect(), axes }
    }

    fn elements(&self) -> u64 {
        self.extents.iter().product()
    }

    fn spec(&self, op: &str, dtype: &str) -> Option<Spec> {
        let list = |of: &[String]| of.join(",");
        let extents: Vec<String> = self.extents.iter().map(u64::to_string).collect();
        let axes: Vec<String> = self.axes.iter().map(usize::to_string).collect();
        format!("{op} {dtype}[{}] axes=[{}]", list(&extents), list(&axes)).parse().ok()
    }

    /// Rows of about as many elements.
    fn wide(&self) -> Shape {
        let elements = self.elements();
        let rows = (elements / WIDE).max(1);
        Shape { extents: vec![rows, elements / rows], axes: vec![1] }
    }
}

/// The shapes of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The seed that they are drawn from.
    pub seed: u64,
    /// Their number.
    pub shapes: usize,
}

/// Prints the cases that take more than `limit` times the op's cost on wide rows of as many bytes, in a first measurement
/// and in each of three more; draws the map of all to a page if there is a path.
///
/// # Errors
/// If a kernel cannot be made, or memory is short.
pub fn scan(limit: f64, drawn: Drawn, html: Option<&Path>, out: &mut dyn Write) -> Result<(), Failure> {
    let Drawn { seed, shapes } = drawn;
    let places: Vec<_> = html.iter().map(|path| (path.to_path_buf(), "the page".to_string())).collect();
    let places = OutputFiles::of(&places, &[])?;
    let mut map = Map::default();
    let progress = Progress::start("scanning", html.is_some());
    let compiler = Compiler::host()?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut wide: HashMap<String, f64> = HashMap::new();
    let (mut cases, mut over) = (0, 0);
    for number in 0..shapes {
        let shape = Shape::draw(&mut random);
        for (dtype, factor) in DTYPES {
            for op in OPS {
                let (Some(spec), Some(on_wide)) = (shape.spec(op, dtype), shape.wide().spec(op, dtype)) else {
                    continue;
                };
                cases += 1;
                let mut ratios = vec![];
                for again in 0..=AGAIN {
                    let known = wide.get(&on_wide.to_string()).copied().filter(|_| again == 0);
                    let wide_ns = match known {
                        Some(ns) => ns,
                        None => call_ns(&compiler, &on_wide)?,
                    };
                    wide.insert(on_wide.to_string(), wide_ns);
                    let due = CALL_NS + wide_ns * (bytes(&spec) as f64 / bytes(&on_wide) as f64).max(1.0);
                    let ns = call_ns(&compiler, &spec)?;
                    ratios.push((ns / due, ns));
                    if ns <= due * limit * factor {
                        break;
                    }
                }
                if html.is_some() {
                    let least = ratios.iter().map(|r| r.0).fold(f64::INFINITY, f64::min);
                    map.add(number, &format!("{op} {dtype}"), &spec, 1.0 / least);
                }
                if ratios.len() > AGAIN {
                    let &(ratio, ns) = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("measured");
                    over += 1;
                    writeln!(out, "{:<56} {:>9} {ratio:>6.2}", spec.to_string(), figures::time(ns))
                        .and_then(|()| out.flush())
                        .map_err(Failure::Stdout)?;
                }
            }
        }
    }
    drop(progress);
    if let Some(path) = html {
        let page = map.page(seed);
        let unwritten = |error| Failure::Write { path: path.into(), error };
        places.write(|_, _, file| file.write_all(page.as_bytes()).map_err(unwritten))?;
    }
    eprintln!("{over} of {cases} cases over {limit} times the cost of wide rows, seed {seed}");
    Ok(())
}

/// Bytes that a call must read and write.
fn bytes(spec: &Spec) -> u64 {
    spec.inputs().iter().chain(spec.outputs()).map(|operand| operand.span_bytes()).sum()
}

/// The least time of a call, on fresh buffers.
fn call_ns(compiler: &Compiler, spec: &Spec) -> Result<f64, Failure> {
    let kernel = compiler.compile(spec)?;
    let mut arrays = Arrays::random(spec, 1)?;
    let Arrays { inputs, outputs } = &mut arrays;
    let mut call = native(&kernel, &Serial, inputs, outputs);
    let mut samples = Samples::warm_up(&mut call)?;
    for _ in 0..SAMPLES {
        samples.take(&mut call)?;
    }
    Ok(samples.min_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_shapes_which_specs_take() {
        let draw = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            (0..40).map(|_| Shape::draw(&mut random)).collect::<Vec<_>>()
        };
        let texts = |seed| draw(seed).iter().map(|s| s.spec("sum", "f32").map(|s| s.to_string())).collect::<Vec<_>>();
        assert_eq!(texts(3), texts(3));
        assert_ne!(texts(3), texts(4));
        for shape in (0..50).flat_map(draw) {
            let spec = shape.spec("sum", "f32").expect("a spec");
            let wide = shape.wide();
            assert_eq!((wide.extents.len(), &wide.axes[..]), (2, &[1][..]));
            // The rest that fills no row is left out.
            assert!(shape.elements() - wide.elements() < wide.extents[0], "{spec}");
            assert!(bytes(&spec) > 4 * shape.elements());
            assert!(shape.spec("sum", "f33").is_none());
        }
    }
}
