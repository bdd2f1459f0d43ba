//! The cases to time: specs, and the lines that `peers/cases.py` writes.

use crate::arrays::Arrays;
use crate::failure::Failure;
use crate::npy::Form;
use crate::scalars;
use cranefold::{DType, Layout, Scalar, Spec, SpecError};
use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of a file of cases.
const MAX_FILE: u64 = 64 << 20;

/// The layout by which `peers/bench_dnnl.cpp` names its twins of NCHW cases: channels in blocks of 16, and a
/// destination of the same rank for which it asks oneDNN for `any`.
const BLOCKED: &str = "b16";

/// A line.
#[derive(Debug)]
pub enum Entry {
    /// A reduction to be timed.
    Case(Box<Case>),
    /// A case whose op is missing.
    Skipped {
        /// The name of the case.
        name: String,
        /// The missing op or type.
        reason: String,
    },
}

/// A reduction to be timed.
#[derive(Debug)]
pub struct Case {
    /// The peers' name of the case, or the spec as text.
    pub name: String,
    /// The reduction.
    pub spec: Spec,
    /// Files of the inputs; none for random data.
    pub input: Vec<PathBuf>,
}

impl Case {
    /// The case of a spec on random data, named by itself.
    pub fn of(spec: Spec) -> Case {
        Case { name: spec.to_string(), spec, input: vec![] }
    }

    /// The data: of the files with scalars that are 1, or random.
    ///
    /// # Errors
    /// If a file cannot be read or is not the operand; [`Failure::Memory`].
    pub fn arrays(&self) -> Result<Arrays, Failure> {
        if self.input.is_empty() {
            return Arrays::random(&self.spec, 1);
        }
        let mut arrays = Arrays::read(&self.spec, Form::Logical, &self.input)?;
        let scalars = self.spec.inputs().iter().filter(|operand| scalars::name(operand).is_some());
        let ones: Vec<_> = scalars.map(|operand| Some(one(operand.dtype()))).collect();
        arrays.set_scalars(&self.spec, &ones);
        Ok(arrays)
    }
}

/// The number 1 of a type, or true.
fn one(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::bool(true),
        dtype if dtype.is_int() => Scalar::int(dtype, 1),
        dtype => Scalar::float(dtype, 1.0),
    }
}

/// The cases of specs as text, on these files if there are any.
///
/// # Errors
/// If one spec is wrong; [`Failure::InputsOfOne`] if there are files and several specs.
pub fn specs(texts: &[String], input: &[PathBuf]) -> Result<Vec<Entry>, Failure> {
    if !input.is_empty() && texts.len() > 1 {
        return Err(Failure::InputsOfOne { given: texts.len() });
    }
    let case = |text: &String| Ok(Case { input: input.into(), ..Case::of(text.parse()?) });
    texts.iter().map(|text| case(text).map(|case| Entry::Case(Box::new(case)))).collect()
}

/// The cases of a file, one a line: a spec, or `id op dtype shape axes layout tag`. A `#` begins a comment.
///
/// # Errors
/// If the file cannot be read, or a line is wrong; an op that only the peers have is skipped.
pub fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE {
        let message = format!("it has {size} bytes, the limit is {MAX_FILE}");
        return Err(unreadable(std::io::Error::other(message)));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let lines = (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or("").trim()));
    let entry = |(line, text)| match entry(text) {
        Ok(Entry::Skipped { name, reason }) => Ok(Entry::Skipped { name, reason: format!("line {line}: {reason}") }),
        Ok(case) => Ok(case),
        Err(error) => Err(Failure::Line { path: path.into(), line, error: Box::new(error) }),
    };
    lines.filter(|(_, line)| !line.is_empty()).map(entry).collect()
}

/// The case of one line.
fn entry(line: &str) -> Result<Entry, Failure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, spec) = match words[..] {
        [id, op, dtype, shape, axes, layout, _tag] if !line.contains('[') => {
            (Some(id), peers_spec(line, op, dtype, shape, axes, layout)?)
        }
        _ => (None, line.parse()),
    };
    match (spec, name) {
        (Ok(spec), Some(id)) => Ok(Entry::Case(Box::new(Case { name: id.into(), ..Case::of(spec) }))),
        (Ok(spec), None) => Ok(Entry::Case(Box::new(Case::of(spec)))),
        (Err(SpecError::UnknownOp { name: op }), Some(id)) => {
            Ok(Entry::Skipped { name: id.into(), reason: format!("there is no op `{op}` yet") })
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The spec of a line that `peers/cases.py` writes; its errors are those of a spec.
fn peers_spec(
    line: &str,
    op: &str,
    dtype: &str,
    shape: &str,
    axes: &str,
    layout: &str,
) -> Result<Result<Spec, SpecError>, Failure> {
    let refused = |reason: String| Failure::Case { text: shown(line), reason };
    let dtype: DType = dtype.parse().map_err(|error: cranefold::ir::UnknownDType| refused(error.to_string()))?;
    let shape =
        numbers::<u64>(shape, 'x').ok_or_else(|| refused(format!("`{}` is no shape such as 6x12x10", shown(shape))))?;
    let axes =
        numbers::<i64>(axes, ',').ok_or_else(|| refused(format!("`{}` are no axes such as 0,2", shown(axes))))?;
    let (blocked, name) = (layout == BLOCKED, layout);
    let layout = peers_layout(layout, &shape)
        .ok_or_else(|| refused(format!("`{}` is no layout for rank {}", shown(name), shape.len())))?;
    let builder = Spec::builder(op).input_at(dtype, &shape, layout).axes(axes);
    let widened = op == "sum" && matches!(dtype, DType::I8 | DType::U8);
    let builder = if widened { builder.output(DType::I32) } else { builder };
    Ok(if blocked { builder.keep_dims(true).output_layout(Layout::any()) } else { builder }.build())
}

/// The first 80 characters of a word or line.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

fn numbers<T: std::str::FromStr>(text: &str, separator: char) -> Option<Vec<T>> {
    text.split(separator).map(|number| number.parse().ok()).collect()
}

/// A layout by the peers' name: `c` row-major; `t` the transpose, by its last two axes, of row-major; `s2`
/// every second element of the last axis; `pad` rows that lie 24 elements further apart; `b16` channels in blocks;
/// or a tag such as `nhwc`.
fn peers_layout(name: &str, shape: &[u64]) -> Option<Layout> {
    let rank = shape.len();
    match name {
        "c" => Some(Layout::row_major()),
        "t" if rank >= 2 => {
            let mut swapped = shape.to_vec();
            swapped.swap(rank - 2, rank - 1);
            let mut strides = within(&swapped)?;
            strides.swap(rank - 2, rank - 1);
            Some(Layout::strides(strides))
        }
        "s2" | "pad" if rank >= 1 => {
            let (last, step) =
                if name == "s2" { (shape[rank - 1].checked_mul(2)?, 2) } else { (shape[rank - 1].checked_add(24)?, 1) };
            let mut strides = within(&[&shape[..rank - 1], &[last]].concat())?;
            strides[rank - 1] = step;
            Some(Layout::strides(strides))
        }
        BLOCKED => peers_layout("nChw16c", shape),
        tag => Layout::tag(tag).ok().filter(|tag| tag.resolve(shape, 1).is_ok()),
    }
}

/// The row-major strides of a buffer of this shape; `None` if they overflow.
fn within(shape: &[u64]) -> Option<Vec<i64>> {
    let placement = Layout::row_major().resolve(shape, 1).ok()?;
    Some(placement.strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(line: &str) -> String {
        match entry(line) {
            Ok(Entry::Case(case)) => case.spec.to_string(),
            Ok(Entry::Skipped { name, reason }) => format!("{name} skipped: {reason}"),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn lines_of_the_peers_become_specs() {
        assert_eq!(spec("a sum f32 64x128 1 c grid"), "sum f32[64,128] axes=[1]");
        assert_eq!(spec("a logsumexp f32 8 0 c grid"), "log_sum_exp f32[8]");
        assert_eq!(spec("a sum i8 64x128 0,1 c dtype"), "sum i8[64,128] -> i32");
        assert_eq!(spec("a max i8 64x128 0,1 c dtype"), "max i8[64,128]");
        assert_eq!(spec("a sum f32 3x4 1 t view"), "sum f32[3,4]@(1,3) axes=[1]");
        assert_eq!(spec("a sum f32 2x3x4 1 t view"), "sum f32[2,3,4]@(12,1,3) axes=[1]");
        assert_eq!(spec("a sum f32 3x4 1 s2 view"), "sum f32[3,4]@(8,2) axes=[1]");
        assert_eq!(spec("a sum f32 3x4 1 pad view"), "sum f32[3,4]@(28,1) axes=[1]");
        assert_eq!(spec("a sum f32 2x3x4x5 1 nhwc view"), "sum f32[2,3,4,5]@acdb axes=[1]");
        assert_eq!(spec("a sum f32 2x20x4x5 1 nChw8c view"), "sum f32[2,20,4,5]@aBcd8b axes=[1]");
        assert_eq!(
            spec("a sum i8 2x20x4x5 2,3 b16 grid"),
            "sum i8[2,20,4,5]@aBcd16b axes=[2,3] keep_dims -> i32@aBcd16b"
        );
        assert_eq!(spec("a wish f32 8 0 c grid"), "a skipped: there is no op `wish` yet");
        assert_eq!(spec("mean f32[2,3] axes=[1]"), "mean f32[2,3] axes=[1]");
        assert_eq!(spec("max,argmax f32[2,3] axes=[1]"), "max, argmax f32[2,3] axes=[1]");
    }

    /// The ops of the grid that peers/cases.py writes, each with the op that the peers compute.
    #[test]
    fn ops_of_the_peers_are_ours() {
        for (op, ours) in [
            ("sum", "sum"),
            ("max", "max"),
            ("min", "min"),
            ("mean", "mean"),
            ("prod", "prod"),
            ("l1", "l1"),
            ("l2", "l2"),
            ("logsumexp", "log_sum_exp"),
            // The variance is of the population: numpy's default, torch's correction=0.
            ("var", "var"),
            ("argmax", "argmax"),
            ("argmin", "argmin"),
            ("softmax", "softmax"),
        ] {
            assert_eq!(spec(&format!("a {op} f32 64x128 1 c grid")), format!("{ours} f32[64,128] axes=[1]"));
        }
        for op in ["all", "any"] {
            assert_eq!(spec(&format!("a {op} bool 64x128 1 c grid")), format!("{op} bool[64,128] axes=[1]"));
        }
        for dtype in ["f16", "bf16", "i8", "i32", "f64"] {
            assert_eq!(spec(&format!("a argmax {dtype} 64 0 c arg")), format!("argmax {dtype}[64]"));
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        assert!(spec("a sum f33 8 0 c grid").starts_with("`a sum f33 8 0 c grid` is no case: "));
        assert_eq!(
            spec("a sum f32 8x 0 c grid"),
            "`a sum f32 8x 0 c grid` is no case: `8x` is no shape such as 6x12x10"
        );
        assert_eq!(spec("a sum f32 8 z c grid"), "`a sum f32 8 z c grid` is no case: `z` are no axes such as 0,2");
        assert_eq!(spec("a sum f32 8 0 t grid"), "`a sum f32 8 0 t grid` is no case: `t` is no layout for rank 1");
        for layout in ["nhwc", "b16", "nChw16", "any", "+3"] {
            let line = format!("a sum f32 2x3 1 {layout} grid");
            assert_eq!(spec(&line), format!("`{line}` is no case: `{layout}` is no layout for rank 2"));
        }
        assert_eq!(spec("a sum f32 8 1 c grid"), "axis 1 is out of range for rank 1: its axes are -1 to 0");
        assert!(spec("wish f32[8]").starts_with("unknown op `wish`; the ops are "));
    }
}
