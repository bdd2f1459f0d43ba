//! `bench --svg`: reductions at many sizes, as a chart of GB/s beside the rate at which memory is read.

use super::cases::{Case, Entry};
use super::measure::{Order, measure};
use crate::args::Bench;
use crate::arrays::moved_bytes;
use crate::failure::Failure;
use crate::figures;
use crate::output_files::OutputFiles;
use crate::page::{Series, rates};
use crate::progress::Progress;
use crate::threads::{compiler, pool};
use cranefold::Spec;
use std::io::Write;
use std::path::Path;

/// Bytes of the first input: 16 KB to 64 MB, four times as many from one size to the next.
const LEAST: u64 = 16 << 10;
const COUNT: u32 = 7;

/// Times each spec at each size, and draws the chart.
///
/// # Errors
/// As [`bench`](super::bench); [`Failure::NotScaled`] where a first extent cannot be scaled.
pub fn draw(entries: &[Entry], path: &Path, args: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    let places = OutputFiles::of(&[(path.to_path_buf(), "the chart".into())], &[])?;
    let options = args.forced.options()?;
    let (compiler, executor) = (compiler(args.threads)?, pool(args.threads)?);
    let cases = entries.iter().filter_map(|entry| if let Entry::Case(case) = entry { Some(case) } else { None });
    let sized = cases.map(|case| Ok((case.name.clone(), sizes(&case.spec)?))).collect::<Result<Vec<_>, Failure>>()?;
    let progress = Progress::start("timing", true);
    let mut series: Vec<Series> = vec![];
    let mut ceiling: Vec<(f64, f64)> = vec![];
    for (name, specs) in sized {
        let mut points = vec![];
        for spec in specs {
            let bytes = moved_bytes(&spec) as f64;
            let case = Case::of(spec);
            let budget_ns = 1e6 * f64::from(args.budget_ms);
            let measured = measure(&case, compiler.target(), &options, &executor, budget_ns, Order::Alone, 0)?;
            points.push((bytes, bytes / measured.median_ns));
            if series.is_empty() {
                ceiling.push((bytes, bytes / measured.read_ns));
            }
        }
        series.push(Series { name, points, is_ceiling: false });
    }
    drop(progress);
    series.push(Series {
        name: "a plain loop that reads as many bytes on one core".into(),
        points: ceiling,
        is_ceiling: true,
    });
    let text = rates(&series).file("GB/s over size");
    let unwritten = |error| Failure::Write { path: path.into(), error };
    places.write(|_, _, file| file.write_all(text.as_bytes()).map_err(unwritten))?;
    for Series { name, points, .. } in series {
        let points: Vec<String> =
            points.iter().map(|(bytes, rate)| format!("{rate:.1} at {}", figures::size(*bytes as u64))).collect();
        writeln!(out, "{name}: {} GB/s", points.join(", ")).map_err(Failure::Stdout)?;
    }
    Ok(())
}

/// The spec at each size, by its first extent. Another input grows with the first where it has that extent; an extent of 1
/// is broadcast, and stays.
fn sizes(spec: &Spec) -> Result<Vec<Spec>, Failure> {
    let refused = || Failure::NotScaled { option: "--svg", spec: spec.to_string() };
    let operands = || spec.inputs().iter().chain(spec.outputs());
    let [first, rest @ ..] = spec.shape() else { return Err(refused()) };
    let row = rest.iter().product::<u64>() * spec.inputs()[0].dtype().bytes();
    if spec.body().is_some() || row == 0 || !operands().all(|operand| operand.layout().is_row_major()) {
        return Err(refused());
    }
    let mut specs: Vec<Spec> = vec![];
    for power in 0..COUNT {
        let extent = ((LEAST << (2 * power)) / row).max(1);
        let shape = |input: usize| {
            let mut shape = spec.inputs()[input].shape().to_vec();
            if input == 0 || shape.len() == spec.rank() && shape[0] == *first && *first > 1 {
                shape[0] = extent;
            }
            shape
        };
        let sized = spec.to_builder().reshape(shape).build().map_err(|_| refused())?;
        if !specs.contains(&sized) {
            specs.push(sized);
        }
    }
    Ok(specs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_extent_grows() {
        let sized =
            sizes(&"sum f32[8,1024], f32[1024] axes=[1] map=\"x0*x1\"".parse().expect("a spec")).expect("sizes");
        let texts: Vec<String> = sized.iter().map(Spec::to_string).collect();
        assert_eq!(texts.len(), 7);
        assert_eq!(texts[0], "sum f32[4,1024], f32[1024] axes=[1] map=\"x0 * x1\"");
        assert_eq!(texts[6], "sum f32[16384,1024], f32[1024] axes=[1] map=\"x0 * x1\"");
        // The first extent may be 1 as well.
        let texts = |spec: &str| {
            let sized = sizes(&spec.parse().expect("a spec")).expect("sizes");
            sized.iter().map(Spec::to_string).collect::<Vec<_>>()
        };
        let one = texts("sum f32[1,1024] axes=[1]");
        assert_eq!((one.len(), one[6].as_str()), (7, "sum f32[16384,1024] axes=[1]"));
        let broadcast = texts("sum f32[1,1024], f32[1,1024] axes=[1] map=\"x0*x1\"");
        assert_eq!(broadcast[6], "sum f32[16384,1024], f32[1,1024] axes=[1] map=\"x0 * x1\"");
        for spec in ["sum f32[]", "sum f32[8,8]@ba", "region x:f32[8] { sum(x) }", "sum f32[4,0]"] {
            assert!(sizes(&spec.parse().expect("a spec")).is_err(), "{spec}");
        }
    }
}
