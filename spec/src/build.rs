//! The builder of specs, which text and oneDNN's dims use too.

use super::extent::{self, Integer, IntoAxes, extents};
use super::region::RegionTexts;
use super::{NamedOp, Operand, Order, Role, Rounding, Spec, SpecError};
use crate::layout::Layout;
use cranefold_ir::DType;
use cranefold_ir::expression::{Expression, ExpressionError};
use cranefold_ir::ops::{self, Combiner, OpCall};

/// A builder of a spec. Only [`build`](Builder::build) checks the arguments.
///
/// ```
/// use cranefold_spec::{DType, Layout, Spec};
///
/// let spec = Spec::builder("lp_max")
///     .param("p", 3.0)
///     .param("eps", 1e-6)
///     .input_at(DType::F16, &[8, 32, 7, 7], Layout::tag("acdb").expect("a tag"))
///     .axes([2, 3])
///     .output(DType::F32)
///     .build()?;
/// assert_eq!(spec.to_string(), "lp_max(p=3,eps=1e-6) f16[8,32,7,7]@acdb axes=[2,3] -> f32");
/// # Ok::<(), cranefold_spec::SpecError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(super) reducers: Vec<Named>,
    pub(super) inputs: Vec<Given>,
    pub(super) thens: Vec<Given>,
    pub(super) scalars: Vec<(String, DType)>,
    pub(super) outputs: Vec<(Option<DType>, Option<Layout>)>,
    pub(super) map: Option<Expressions>,
    pub(super) then: Option<Expressions>,
    pub(super) apply: Option<Expressions>,
    pub(super) axes: Option<Vec<i64>>,
    pub(super) keep_dims: bool,
    pub(super) lift: Option<bool>,
    pub(super) accumulator: Option<DType>,
    pub(super) order: Order,
    /// The texts of a region; then there are no reducers.
    pub(super) region: Option<RegionTexts>,
    pub(super) saturate: bool,
    pub(super) trunc: bool,
    pub(super) half_even: bool,
    /// The first argument that no spec can hold.
    pub(super) fault: Option<SpecError>,
}

/// An input as given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub layout: Layout,
}

/// An op by name, with parameters by name, or a combiner.
#[derive(Clone, Debug)]
pub(super) enum Named {
    Op(NamedOp),
    Own(Combiner),
}

/// One or more expressions, or their text.
///
/// ```
/// use cranefold_spec::Spec;
/// use cranefold_ir::expression::name;
///
/// let builder = Spec::builder("sum").input(cranefold_spec::DType::F32, &[64, 512]).axes([1]);
/// let text = builder.clone().map("x0*x0").then("sqrt(r0)").build()?;
/// assert_eq!(text, builder.map(name("x0") * name("x0")).then(name("r0").sqrt()).build()?);
/// # Ok::<(), cranefold_spec::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expressions(pub(super) Result<Vec<Expression>, ExpressionError>);

impl From<&str> for Expressions {
    fn from(text: &str) -> Expressions {
        Expressions(Expression::list(text))
    }
}

impl From<Expression> for Expressions {
    fn from(expression: Expression) -> Expressions {
        Expressions(Ok(vec![expression]))
    }
}

impl From<Vec<Expression>> for Expressions {
    fn from(expressions: Vec<Expression>) -> Expressions {
        Expressions(Ok(expressions))
    }
}

impl Builder {
    pub(super) fn of(reducer: Named) -> Builder {
        Builder {
            reducers: vec![reducer],
            inputs: vec![],
            thens: vec![],
            scalars: vec![],
            outputs: vec![],
            map: None,
            then: None,
            apply: None,
            axes: None,
            keep_dims: false,
            lift: None,
            accumulator: None,
            order: Order::Memory,
            region: None,
            saturate: false,
            trunc: false,
            half_even: false,
            fault: None,
        }
    }

    /// Adds a further reducer, as given.
    pub(super) fn with(mut self, reducer: Named) -> Builder {
        self.reducers.push(reducer);
        self
    }

    /// Adds a further reducer of the same elements, by its name or an alias, or by a function of [`op`](crate::op).
    pub fn reducer(self, op: impl Into<NamedOp>) -> Builder {
        self.with(Named::Op(op.into()))
    }

    /// Adds a user's combiner over the same elements.
    pub fn own(self, combiner: Combiner) -> Builder {
        self.with(Named::Own(combiner))
    }

    /// Sets a parameter of the reducer added last; after a combiner, which has no parameters, it does nothing.
    pub fn param(mut self, name: &str, value: f64) -> Builder {
        if let Some(Named::Op(op)) = self.reducers.last_mut() {
            op.params.push((name.into(), value));
        }
        self
    }

    /// Adds an input in row-major layout.
    pub fn input(self, dtype: DType, shape: &[impl Integer]) -> Builder {
        self.input_at(dtype, shape, Layout::row_major())
    }

    /// Adds an input in a layout. The first has the shape that is reduced, others broadcast to it.
    pub fn input_at(mut self, dtype: DType, shape: &[impl Integer], layout: Layout) -> Builder {
        let given = self.given(dtype, shape, layout);
        self.inputs.push(given);
        self
    }

    /// Adds an input that [`then`](Builder::then) reads as `y0`, `y1` and so on, in row-major layout; it
    /// broadcasts to the output's shape.
    pub fn then_input(self, dtype: DType, shape: &[impl Integer]) -> Builder {
        self.then_input_at(dtype, shape, Layout::row_major())
    }

    /// Adds an input that [`then`](Builder::then) reads, in a layout.
    pub fn then_input_at(mut self, dtype: DType, shape: &[impl Integer], layout: Layout) -> Builder {
        let given = self.given(dtype, shape, layout);
        self.thens.push(given);
        self
    }

    /// An input; of a shape that none can have, an error is kept.
    pub(super) fn given(&mut self, dtype: DType, shape: &[impl Integer], layout: Layout) -> Given {
        let shape = extents(shape).unwrap_or_else(|error| {
            self.fault.get_or_insert(error);
            vec![]
        });
        Given { dtype, shape, layout }
    }

    /// Adds a value that expressions read by its name, given at each call.
    pub fn scalar(mut self, name: &str, dtype: DType) -> Builder {
        self.scalars.push((name.into(), dtype));
        self
    }

    /// Sets the element that is reduced, as an expression of inputs and scalars.
    pub fn map(mut self, expression: impl Into<Expressions>) -> Builder {
        self.map = Some(expression.into());
        self
    }

    /// Sets the outputs, one for each expression of the results `r0`, `r1` and so on, of inputs added by
    /// [`then_input`](Builder::then_input), of scalars, and of the output's old element `d`.
    pub fn then(mut self, expressions: impl Into<Expressions>) -> Builder {
        self.then = Some(expressions.into());
        self
    }

    /// Sets the output at each position of the slice, as an expression of inputs, scalars and the results.
    pub fn apply(mut self, expression: impl Into<Expressions>) -> Builder {
        self.apply = Some(expression.into());
        self
    }

    /// Sets the axes to reduce, negative ones counted from the end: one, or several. The default is all axes.
    pub fn axes(mut self, axes: impl IntoAxes) -> Builder {
        self.axes = Some(extent::axes(axes));
        self
    }

    /// Sets that no axis is reduced.
    pub fn no_axes(self) -> Builder {
        self.axes([0i64; 0])
    }

    /// Sets whether the reduced axes stay in the output's shape, with extent 1.
    pub fn keep_dims(mut self, keep: bool) -> Builder {
        self.keep_dims = keep;
        self
    }

    /// Makes a reduction over no axes copy, which is the default of most ops.
    pub fn empty_axes_identity(mut self) -> Builder {
        self.lift = Some(false);
        self
    }

    /// Makes a reduction over no axes reduce groups of one: `l1` gives |x|, as in ONNX and NumPy.
    pub fn empty_axes_lift(mut self) -> Builder {
        self.lift = Some(true);
        self
    }

    /// Sets the accumulator type of float inputs, `F32` or `F64`, at least as wide as the input.
    pub fn accumulator(mut self, dtype: DType) -> Builder {
        self.accumulator = Some(dtype);
        self
    }

    /// Sets the order of accumulation.
    pub fn order(mut self, order: Order) -> Builder {
        self.order = order;
        self
    }

    /// Clamps integer results to the output's range, rather than taking them modulo 2^bits.
    pub fn saturate(mut self) -> Builder {
        self.saturate = true;
        self
    }

    /// Sets the rounding of results to integers.
    pub fn round(mut self, rounding: Rounding) -> Builder {
        match rounding {
            Rounding::Trunc => self.trunc = true,
            Rounding::HalfEven => self.half_even = true,
        }
        self
    }

    /// Adds an output of this type. Without one, positions and counts are `i64`, floats have the type of input 0 if
    /// that is a float, and integers the type of the reduced elements. A position or count may have any integer type
    /// that holds the greatest one.
    pub fn output(mut self, dtype: DType) -> Builder {
        self.outputs.push((Some(dtype), None));
        self
    }

    /// Sets the layout of the output added last, or of the first output if none is added.
    pub fn output_layout(mut self, layout: Layout) -> Builder {
        if self.outputs.is_empty() {
            self.outputs.push((None, None));
        }
        self.outputs.last_mut().expect("there is one").1 = Some(layout);
        self
    }

    /// Adds an output; a type or layout that is none is chosen by default.
    pub(super) fn output_parts(mut self, dtype: Option<DType>, layout: Option<Layout>) -> Builder {
        self.outputs.push((dtype, layout));
        self
    }

    /// Sets the shape of each input that is no scalar to `shape` of its number in the order of a call, and the layout
    /// of every operand to row-major.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "mean f16[64,512]@ba, f32[64,1]:then axes=[1] keep_dims then=\"r0 * y0\"".parse()?;
    /// let row = spec.to_builder().reshape(|input| [[1, 512], [1, 1]][input].into()).build()?;
    /// assert_eq!(row.to_string(), "mean f16[1,512], f32[1,1]:then axes=[1] keep_dims then=\"r0 * y0\"");
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn reshape(mut self, mut shape: impl FnMut(usize) -> Vec<u64>) -> Builder {
        for (number, given) in self.inputs.iter_mut().chain(&mut self.thens).enumerate() {
            *given = Given { dtype: given.dtype, shape: shape(number), layout: Layout::row_major() };
        }
        self.outputs.iter_mut().for_each(|(_, layout)| *layout = None);
        self
    }

    /// Validates the spec.
    ///
    /// # Errors
    /// Any [`SpecError`] but the errors of text.
    pub fn build(mut self) -> Result<Spec, SpecError> {
        self.fault.take().map_or(Ok(()), Err)?;
        super::check::checked(self)
    }
}

impl Spec {
    /// Returns the builder of an equal spec: to be changed and built again.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "sum f32[64,512] axes=[1] keep_dims".parse()?;
    /// assert_eq!(spec.to_builder().build()?, spec);
    /// assert_eq!(spec.to_builder().axes([0]).build()?.to_string(), "sum f32[64,512] axes=[0] keep_dims");
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn to_builder(&self) -> Builder {
        // Each field by its name, so that a new one does not compile until it is copied.
        let Spec {
            hash: _,
            reducers,
            inputs,
            outputs,
            map,
            then,
            apply,
            body,
            shape: _,
            order,
            lost: _,
            reduced: _,
            keep_dims,
            lift,
            accumulator,
            saturate,
            rounding,
        } = self;
        let given = |o: &Operand| Given { dtype: o.dtype, shape: o.shape.clone(), layout: o.layout.clone() };
        let of_role = |role: Role| inputs.iter().filter(move |o| o.role == role).map(given).collect();
        let scalar = |o: &Operand| match &o.role {
            Role::Scalar(name) => Some((name.clone(), o.dtype)),
            _ => None,
        };
        Builder {
            reducers: reducers.iter().map(Named::of).collect(),
            inputs: of_role(Role::Element),
            thens: of_role(Role::Then),
            scalars: inputs.iter().filter_map(scalar).collect(),
            outputs: outputs.iter().map(|o| (Some(o.dtype), Some(o.layout.clone()))).collect(),
            map: map.clone().map(Expressions::from),
            then: (!then.is_empty()).then(|| Expressions::from(then.clone())),
            apply: apply.clone().map(Expressions::from),
            axes: Some(self.axes().into_iter().map(|axis| axis as i64).collect()),
            keep_dims: *keep_dims,
            lift: lift.then_some(true),
            accumulator: *accumulator,
            order: *order,
            region: body.as_deref().map(RegionTexts::of),
            saturate: *saturate,
            trunc: *rounding == Some(Rounding::Trunc),
            half_even: *rounding == Some(Rounding::HalfEven),
            fault: None,
        }
    }
}

impl Named {
    /// A reducer by the name of its row and its parameters' names, or its combiner.
    fn of(call: &OpCall) -> Named {
        match call {
            OpCall::Own(combiner) => Named::Own(combiner.clone()),
            OpCall::Row { name, .. } => {
                let params = call.as_row().into_iter().flat_map(|row| row.params).zip(call.params());
                let params = params.map(|(p, value)| (p.name.into(), value)).collect();
                Named::Op(NamedOp { name: name.to_string(), params })
            }
        }
    }

    /// Returns the row and its parameters' values, or the simpler row of the same meaning.
    pub(super) fn resolve(&self) -> Result<OpCall, SpecError> {
        let (op, given) = match self {
            Named::Own(combiner) => return combiner.clone().whole().map(OpCall::Own).map_err(SpecError::Recipe),
            Named::Op(op) => (&op.name, &op.params),
        };
        let shown = || op.chars().take(40).collect();
        let row = ops::find(op).ok_or_else(|| SpecError::UnknownOp { name: shown() })?;
        OpCall::of(row, given).map_err(SpecError::Param)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a spec by their names; a new one does not compile until it is added here.
    fn fields(spec: &Spec) -> [(&'static str, String); 16] {
        let Spec {
            hash: _,
            reducers,
            inputs,
            outputs,
            map,
            then,
            apply,
            body,
            shape,
            order,
            lost,
            reduced,
            keep_dims,
            lift,
            accumulator,
            saturate,
            rounding,
        } = spec;
        [
            ("reducers", format!("{reducers:?}")),
            ("inputs", format!("{inputs:?}")),
            ("outputs", format!("{outputs:?}")),
            ("map", format!("{map:?}")),
            ("then", format!("{then:?}")),
            ("apply", format!("{apply:?}")),
            ("body", format!("{:?}", body.as_ref().map(|body| body.to_string()))),
            ("shape", format!("{shape:?}")),
            ("order", format!("{order:?}")),
            ("lost", format!("{lost:?}")),
            ("reduced", format!("{reduced:?}")),
            ("keep_dims", format!("{keep_dims:?}")),
            ("lift", format!("{lift:?}")),
            ("accumulator", format!("{accumulator:?}")),
            ("saturate", format!("{saturate:?}")),
            ("rounding", format!("{rounding:?}")),
        ]
    }

    #[test]
    fn a_builder_of_a_spec_carries_every_field() {
        let plain: Spec = "sum f32[4,5]".parse().expect("a spec");
        let others = [
            ("reducers", "max,argmax(last),lp_max(p=2.5,eps=1e-6) f32[4,5]"),
            ("reducers", r#"combiner(identity="0",lift="x0",combine="a0+b0",commutative), min f32[4,5]"#),
            (
                "inputs",
                r#"sum f16[4,5]@ba, i8[5]@(-1)+3, f32[]:then scalar k:i32 map="x0*f32(x1)" then="r0*y0+f32(k)""#,
            ),
            ("outputs", "max,argmax f32[4,5,6]@aBc8b axes=[0] -> f64@Ab4a+2, i32@any"),
            ("map", r#"sum f32[4,5] map="x0*x0""#),
            ("then", r#"sum,max f32[4,5] axes=[1] then="r0 + d, r1" -> f16, f32@(3)"#),
            ("apply", r#"sum f32[4,5] axes=[1] apply="x0 / r0" -> @ba"#),
            (
                "body",
                "region x:f32[4,5], w:f32[5]@(2)+1 scalar k:f32 axes=[-1] acc=f64 { x * w - max(x) @ba, k + mean(x) }",
            ),
            ("shape", "sum f32[5,4]"),
            ("lost", "softmax f32[4,5]"),
            ("order", "sum f32[4,5] order=logical"),
            ("reduced", "sum f32[4,5] axes=[0]"),
            ("keep_dims", "sum f32[4,5] axes=[0] keep_dims"),
            ("lift", "l1 f32[4,5] axes=[] empty_axes=lift"),
            ("accumulator", "sum f32[4,5] acc=f64"),
            ("saturate", "sum i8[4,5] saturate"),
            ("rounding", "mean i8[4,5] round_half_even"),
            ("rounding", "mean f32[4,5] trunc -> i8"),
        ];
        for (name, plain) in fields(&plain) {
            let differs = |text: &str| {
                let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                let again = spec.to_builder().build().unwrap_or_else(|e| panic!("{text} again: {e}"));
                assert_eq!(fields(&again), fields(&spec), "{text}");
                assert_eq!((again.to_string(), again.hash), (spec.to_string(), spec.hash), "{text}");
                fields(&spec).into_iter().any(|(other, value)| other == name && value != plain)
            };
            let mut texts = others.iter().filter(|(other, _)| *other == name).peekable();
            assert!(texts.peek().is_some(), "no spec sets {name}");
            texts.for_each(|(_, text)| assert!(differs(text), "{text} has the plain {name}"));
        }
    }
}
