//! Building and validating a request. Text and oneDNN's dims come through here too.

use super::{MAX_RANK, Operand, Reducer, Reduction, Rounding, SpecError, shape_without};
use crate::layout::{Layout, list};
use cranefold_ir::DType::{self, *};
use cranefold_ir::ops;

/// A request in the making. Nothing is checked before [`build`](Builder::build).
///
/// ```
/// use cranefold::{DType, Layout, Reduction};
///
/// let spec = Reduction::builder("lp_max")
///     .param("p", 3.0)
///     .param("eps", 1e-6)
///     .input_at(DType::F16, &[8, 32, 7, 7], Layout::tag("acdb").expect("a tag"))
///     .axes([2, 3])
///     .output(DType::F32)
///     .build()?;
/// assert_eq!(spec.to_string(), "lp_max(p=3,eps=1e-6) f16[8,32,7,7]@acdb axes=[2,3] -> f32");
/// # Ok::<(), cranefold::SpecError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    reducers: Vec<Named>,
    inputs: Vec<(DType, Vec<u64>, Layout)>,
    outputs: Vec<(Option<DType>, Option<Layout>)>,
    axes: Option<Vec<i64>>,
    keep_dims: bool,
    lift: Option<bool>,
    accumulator: Option<DType>,
    saturate: bool,
    trunc: bool,
    half_even: bool,
}

/// An op by name, with parameters by name.
#[derive(Clone, Debug)]
struct Named {
    op: String,
    params: Vec<(String, f64)>,
}

impl Builder {
    pub(super) fn new(op: &str) -> Builder {
        let builder = Builder {
            reducers: vec![],
            inputs: vec![],
            outputs: vec![],
            axes: None,
            keep_dims: false,
            lift: None,
            accumulator: None,
            saturate: false,
            trunc: false,
            half_even: false,
        };
        builder.reducer(op)
    }

    /// Adds a further reducer.
    pub fn reducer(mut self, op: &str) -> Builder {
        self.reducers.push(Named { op: op.into(), params: vec![] });
        self
    }

    /// Sets a parameter of the reducer named last.
    pub fn param(mut self, name: &str, value: f64) -> Builder {
        self.reducers.last_mut().expect("new() names one").params.push((name.into(), value));
        self
    }

    /// Adds an input in row-major layout.
    pub fn input(self, dtype: DType, shape: &[u64]) -> Builder {
        self.input_at(dtype, shape, Layout::RowMajor)
    }

    /// Adds an input in a layout.
    pub fn input_at(mut self, dtype: DType, shape: &[u64], layout: Layout) -> Builder {
        self.inputs.push((dtype, shape.into(), layout));
        self
    }

    /// The axes to reduce, negative ones counted from the end; all, if this is not called.
    pub fn axes(mut self, axes: impl IntoIterator<Item = i64>) -> Builder {
        self.axes = Some(axes.into_iter().collect());
        self
    }

    /// Keeps the reduced axes in the output's shape, with extent 1.
    pub fn keep_dims(mut self) -> Builder {
        self.keep_dims = true;
        self
    }

    /// Over no axes, copies; the default of most ops.
    pub fn empty_axes_identity(mut self) -> Builder {
        self.lift = Some(false);
        self
    }

    /// Over no axes, reduces groups of one: `l1` gives |x|, as in ONNX and NumPy.
    pub fn empty_axes_lift(mut self) -> Builder {
        self.lift = Some(true);
        self
    }

    /// The accumulator type of float inputs, `F32` or `F64`, at least as wide as the input.
    pub fn accumulator(mut self, dtype: DType) -> Builder {
        self.accumulator = Some(dtype);
        self
    }

    /// Clamps integer results to the output's range, rather than taking them modulo 2^bits.
    pub fn saturate(mut self) -> Builder {
        self.saturate = true;
        self
    }

    /// How results become integers.
    pub fn round(mut self, rounding: Rounding) -> Builder {
        match rounding {
            Rounding::Trunc => self.trunc = true,
            Rounding::HalfEven => self.half_even = true,
        }
        self
    }

    /// Adds an output of this type; the input's type, if this is not called.
    pub fn output(mut self, dtype: DType) -> Builder {
        self.outputs.push((Some(dtype), None));
        self
    }

    /// Sets the layout of the output added last, or of the first where none was.
    pub fn output_layout(mut self, layout: Layout) -> Builder {
        if self.outputs.is_empty() {
            self.outputs.push((None, None));
        }
        self.outputs.last_mut().expect("there is one").1 = Some(layout);
        self
    }

    /// Adds an output of which either part may be left open.
    pub(super) fn output_parts(mut self, dtype: Option<DType>, layout: Option<Layout>) -> Builder {
        self.outputs.push((dtype, layout));
        self
    }

    /// Validates the request.
    ///
    /// # Errors
    /// Everything a [`SpecError`] says that is not about text.
    pub fn build(self) -> Result<Reduction, SpecError> {
        let reducers = self.reducers.iter().map(Named::resolve).collect::<Result<Vec<_>, _>>()?;
        let op = reducers[0].row.name;
        if reducers.len() != 1 {
            return Err(SpecError::ReducerCount { given: reducers.len() });
        }
        let [(dtype, shape, layout)] = &self.inputs[..] else {
            return Err(SpecError::InputCount { op, expected: 1, given: self.inputs.len() });
        };
        if self.outputs.len() > 1 {
            return Err(SpecError::OutputCount { op, expected: 1, given: self.outputs.len() });
        }
        let (out_dtype, out_layout) = self.outputs.first().cloned().unwrap_or((None, None));
        let output = (out_dtype.unwrap_or(*dtype), out_layout.unwrap_or_default());

        let accumulator = self.check_types(&reducers[0], *dtype, output.0)?;
        if accumulator == Some(F32)
            && let Some((param, given)) = reducers[0].overflowing_param()
        {
            return Err(SpecError::ParamOverflow { op, param, given, accumulator: F32 });
        }
        let input = operand("input 0", *dtype, shape.clone(), layout.clone())?;
        let reduced = mask(self.axes.as_deref(), shape.len())?;
        let none_reduced = !reduced.contains(&true);
        let keep_dims = self.keep_dims && !none_reduced;
        let out_shape = shape_without(shape, &reduced, keep_dims);
        let output = operand("output 0", output.0, out_shape, output.1)?;
        let disjoint = output.placement.check_disjoint(&output.shape);
        disjoint.map_err(|error| SpecError::Layout { operand: "output 0".into(), error })?;

        let copies = reducers[0].row.identity_over_no_axes;
        if none_reduced && self.lift == Some(false) && !copies {
            return Err(SpecError::NoIdentity { op });
        }
        let nothing = (0..shape.len()).find(|&axis| reduced[axis] && shape[axis] == 0);
        if let Some(axis) = nothing
            && !reducers[0].row.integer_of_nothing
            && dtype.is_int()
            && output.dtype.is_int()
            && !output.shape.contains(&0)
        {
            return Err(SpecError::IntegerOverNothing { op, axis });
        }
        let rounding = match (self.trunc, self.half_even) {
            (true, _) if dtype.is_float() => Some(Rounding::Trunc),
            (_, true) => Some(Rounding::HalfEven),
            _ => None,
        };
        Ok(Reduction {
            lift: none_reduced && copies && self.lift == Some(true),
            inputs: vec![input],
            outputs: vec![output],
            saturate: self.saturate,
            reducers,
            reduced,
            keep_dims,
            accumulator,
            rounding,
        })
    }

    /// Checks all that depends on element types; gives the accumulator's.
    fn check_types(&self, reducer: &Reducer, input: DType, output: DType) -> Result<Option<DType>, SpecError> {
        let row = reducer.row;
        if !row.takes(input) {
            return Err(SpecError::TypeRefused { op: row.name, given: input, accepted: row.takes_words() });
        }
        if (input == Bool) != (output == Bool) {
            return Err(SpecError::BoolMismatch { input, output });
        }
        if self.saturate && !(input.is_int() && output.is_int()) {
            return Err(SpecError::SaturateRefused { input, output });
        }
        if self.trunc && self.half_even {
            return Err(SpecError::TwoRoundings);
        }
        if (self.trunc || self.half_even) && !output.is_int() {
            let rounding = if self.trunc { Rounding::Trunc } else { Rounding::HalfEven };
            return Err(SpecError::RoundingWithoutInteger { word: rounding.word(), output });
        }
        if input.is_float() && output.is_int() && !self.trunc && !self.half_even {
            return Err(SpecError::RoundingNeeded { input, output });
        }
        match self.accumulator {
            Some(_) if !input.is_float() => Err(SpecError::AccumulatorWithoutFloat { input }),
            Some(given) if given != F64 && (given != F32 || input == F64) => {
                let accepted = if input == F64 { "f64" } else { "f32 or f64" };
                Err(SpecError::AccumulatorRefused { input, given, accepted })
            }
            Some(given) => Ok(Some(given)),
            None => Ok(input.is_float().then(|| default_accumulator(input))),
        }
    }
}

/// The accumulator type of a float input when nothing is said.
pub(super) fn default_accumulator(input: DType) -> DType {
    if input == F64 { F64 } else { F32 }
}

fn operand(name: &str, dtype: DType, shape: Vec<u64>, layout: Layout) -> Result<Operand, SpecError> {
    if shape.len() > MAX_RANK {
        return Err(SpecError::RankTooLarge { given: shape.len(), limit: MAX_RANK });
    }
    match layout.resolve(&shape, dtype.bytes()) {
        Ok(placement) => Ok(Operand { dtype, shape, layout, placement }),
        Err(error) => Err(SpecError::Layout { operand: name.into(), error }),
    }
}

/// For each axis of this rank, whether it is reduced.
fn mask(axes: Option<&[i64]>, rank: usize) -> Result<Vec<bool>, SpecError> {
    let Some(axes) = axes else { return Ok(vec![true; rank]) };
    let mut reduced = vec![false; rank];
    for &axis in axes {
        let index = if axis < 0 { axis + rank as i64 } else { axis };
        if rank == 0 {
            return Err(SpecError::AxisOfRankZero { axis });
        }
        if index < 0 || index >= rank as i64 {
            return Err(SpecError::AxisOutOfRange { axis, rank });
        }
        if std::mem::replace(&mut reduced[index as usize], true) {
            return Err(SpecError::RepeatedAxis { axis: index as usize, rank });
        }
    }
    Ok(reduced)
}

impl Named {
    /// Finds the row and its parameters' values, and the simpler row that means the same.
    fn resolve(&self) -> Result<Reducer, SpecError> {
        let shown = || self.op.chars().take(40).collect();
        let row = ops::find(&self.op).ok_or_else(|| SpecError::UnknownOp { name: shown() })?;
        let mut values = vec![None; row.params.len()];
        for (name, value) in &self.params {
            let param = || name.chars().take(40).collect();
            let index = row.params.iter().position(|p| p.name == name);
            let index = index.ok_or_else(|| SpecError::UnknownParam { op: row.name, param: param() })?;
            if values[index].replace(*value).is_some() {
                return Err(SpecError::RepeatedParam { op: row.name, param: param() });
            }
        }
        let mut params = vec![];
        for (param, value) in row.params.iter().zip(values) {
            let (op, name, at_least) = (row.name, param.name, param.at_least);
            let given = value.or(param.default).ok_or(SpecError::MissingParam { op, param: name })?;
            if !given.is_finite() && at_least == f64::MIN {
                return Err(SpecError::ParamNotFinite { op, param: name, given });
            }
            if !given.is_finite() || given < at_least {
                return Err(SpecError::ParamOutOfRange { op, param: name, given, at_least });
            }
            params.push(given);
        }
        Ok(match (row.canonical)(&params) {
            Some((name, params)) => Reducer::new(ops::find(name).expect("a canonical row"), &params),
            None => Reducer::new(row, &params),
        })
    }
}

impl Reduction {
    /// Text of the shape and layout of an operand, without its type: `[2,3]@ab`.
    pub(super) fn place_text(shape: &[u64], layout: &Layout) -> String {
        let at = if *layout == Layout::RowMajor { "" } else { "@" };
        format!("{}{at}{layout}", list(shape, '[', ']'))
    }
}
