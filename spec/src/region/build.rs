//! The builder of regions, and their text.

use super::Order;
use super::check::default_accumulator;
use crate::build::{Builder, Given, Named};
use crate::extent::{self, Integer, IntoAxes};
use crate::layout::list;
use crate::{Layout, MAX_TEXT, NamedOp, Operand, Spec, SpecError};
use cranefold_ir::DType;
use cranefold_ir::expression::{Expression, name};
use cranefold_ir::ops::OpCall;
use cranefold_ir::region::{Body, RegionError, refused_name};

/// The texts of a region: names of operands, definitions and outputs, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionTexts {
    names: Vec<String>,
    definitions: Vec<String>,
    outputs: Vec<String>,
}

impl RegionTexts {
    pub(crate) fn of(body: &Body) -> RegionTexts {
        let (definitions, outputs) = body.texts();
        RegionTexts { names: body.inputs.iter().map(|input| input.name.clone()).collect(), definitions, outputs }
    }
}

/// The spec of a builder that has a region.
pub(crate) fn built(builder: Builder) -> Result<Spec, SpecError> {
    check_alone(&builder)?;
    let text = text_of(&builder);
    match text.len() > MAX_TEXT {
        true => Err(SpecError::TextTooLong { given: text.len(), limit: MAX_TEXT }),
        false => super::read(&text),
    }
}

/// Refuses what belongs to specs of ops beside a region.
fn check_alone(builder: &Builder) -> Result<(), SpecError> {
    let words = [
        (builder.map.is_some(), "map"),
        (builder.then.is_some() || !builder.thens.is_empty(), "then"),
        (builder.apply.is_some(), "apply"),
        (builder.lift.is_some(), "empty_axes"),
        (builder.saturate, "saturate"),
        (builder.trunc, "trunc"),
        (builder.half_even, "round_half_even"),
    ];
    match words.into_iter().find(|(given, _)| *given) {
        Some((_, with)) => Err(SpecError::StandsAlone { op: "region", with }),
        None => Ok(()),
    }
}

/// The canonical text of a region.
pub(crate) fn text(spec: &Spec) -> String {
    let mut builder = spec.to_builder();
    if !spec.reduced.contains(&false) {
        builder.axes = None;
    }
    let default = default_accumulator(spec.inputs.iter().map(Operand::dtype));
    builder.accumulator = builder.accumulator.filter(|&given| given != default);
    text_of(&builder)
}

/// The text of a builder that has a region: the same words in the same order, whatever made it.
fn text_of(builder: &Builder) -> String {
    let RegionTexts { names, definitions, outputs } = builder.region.clone().unwrap_or_default();
    let at = |layout: &Layout| match layout.is_row_major() {
        true => String::new(),
        false => format!("@{layout}"),
    };
    let operand = |(name, Given { dtype, shape, layout }): (&String, &Given)| {
        format!("{name}:{dtype}{}{}", list(shape, '[', ']'), at(layout))
    };
    let operands: Vec<String> = names.iter().zip(&builder.inputs).map(operand).collect();
    let mut text = format!("region {}", operands.join(", "));
    let mut add = |part: String| {
        text.push(' ');
        text.push_str(&part);
    };
    if let Some(axes) = &builder.axes {
        add(format!("axes={}", list(axes, '[', ']')));
    }
    if builder.keep_dims {
        add("keep_dims".to_string());
    }
    builder.scalars.iter().for_each(|(name, dtype)| add(format!("scalar {name}:{dtype}")));
    if let Some(accumulator) = builder.accumulator {
        add(format!("acc={accumulator}"));
    }
    if builder.order != Order::Memory {
        add(format!("order={}", builder.order.word()));
    }
    text.push_str(" { ");
    definitions.iter().for_each(|definition| text.extend([definition, "; "]));
    for (o, output) in outputs.iter().enumerate() {
        let layout = builder.outputs.get(o).and_then(|(_, layout)| layout.as_ref()).map_or(String::new(), at);
        text.extend([if o > 0 { ", " } else { "" }, output, &layout]);
    }
    text.push_str(" }");
    text
}

/// A builder of a region, whose values are expressions.
///
/// The text of a region is
///
/// ```text
/// region  = "region" operand { "," operand } { word } "{" body "}"
/// operand = [ NAME ":" ] DTYPE "[" [ INT { "," INT } ] "]" [ "@" layout ]
/// word    = "axes" "=" AXES | "scalar" NAME ":" DTYPE | "keep_dims" | "acc" "=" DTYPE
///         | "order" "=" ( "memory" | "logical" )
/// ```
///
/// [`cranefold_ir::region`] has the grammar of the body and its meaning, [`text`](crate::text) that of the other words.
/// Operands without a name are `x0`, `x1` and so on by their place. Their shapes broadcast, as in NumPy, to the shape
/// of the region, which axes refer to; an operand is of elements if it has the region's extent along a reduced axis.
/// Outputs of elements have the whole shape, those of slices the kept axes, totals those without the axes that they
/// reduce; `keep_dims` leaves ones.
///
/// Only [`build`](RegionBuilder::build) checks: it makes the region's text and reads it, so that errors point into it.
/// A reduction that is used once stands where it is used; one that is used several times gets a name.
///
/// ```
/// use cranefold_spec::{DType, Spec};
///
/// let mut r = Spec::region();
/// let x = r.input("x", DType::F32, &[8, 768]);
/// let w = r.input("w", DType::Bf16, &[768]);
/// let squares = r.reduce("mean", x.clone() * x.clone());
/// let scale = r.define("r", 1 / (squares + 1e-5).sqrt());
/// r.axes([1]);
/// r.output((x * scale.clone() * w).cast(DType::Bf16));
/// r.output(scale);
/// let text = "region x:f32[8,768], w:bf16[768] axes=1 { r = 1 / sqrt(mean(x * x) + 1e-5); bf16(x * r * w), r }";
/// assert_eq!(r.build()?, text.parse::<Spec>()?);
/// # Ok::<(), cranefold_spec::SpecError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RegionBuilder {
    builder: Builder,
    names: Vec<String>,
    definitions: Vec<Definition>,
    outputs: Vec<String>,
    /// The names and messages of wrong calls.
    faults: Vec<(String, String)>,
}

/// A definition as text.
#[derive(Clone, Debug)]
struct Definition {
    names: Vec<String>,
    value: String,
}

impl Default for RegionBuilder {
    fn default() -> RegionBuilder {
        let builder = Builder::of(Named::Op("".into()));
        RegionBuilder { builder, names: vec![], definitions: vec![], outputs: vec![], faults: vec![] }
    }
}

/// The beginning of the names that the builder makes; [`RegionBuilder::build`] gives them shorter ones.
const MADE: &str = "__made_";

impl RegionBuilder {
    /// Adds an operand in row-major layout.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[impl Integer]) -> Expression {
        self.input_at(name, dtype, shape, Layout::row_major())
    }

    /// Adds an operand in a layout.
    pub fn input_at(&mut self, name: &str, dtype: DType, shape: &[impl Integer], layout: Layout) -> Expression {
        let given = self.builder.given(dtype, shape, layout);
        self.builder.inputs.push(given);
        self.names.push(name.into());
        self.named(name)
    }

    /// Adds a value that is given at each call.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Expression {
        self.builder.scalars.push((name.into(), dtype));
        self.named(name)
    }

    /// Sets the axes to reduce, negative ones counted from the end. The default is all axes.
    pub fn axes(&mut self, axes: impl IntoAxes) {
        self.builder.axes = Some(extent::axes(axes));
    }

    /// Sets whether the reduced axes stay in the outputs' shapes, with extent 1.
    pub fn keep_dims(&mut self, keep: bool) {
        self.builder.keep_dims = keep;
    }

    /// Sets the accumulator type of floats, `F32` or `F64`.
    pub fn accumulator(&mut self, dtype: DType) {
        self.builder.accumulator = Some(dtype);
    }

    /// Sets the order of accumulation.
    pub fn order(&mut self, order: Order) {
        self.builder.order = order;
    }

    /// Gives a value a name, which the text shows.
    pub fn define(&mut self, name: &str, value: impl Into<Expression>) -> Expression {
        let value = self.text(&value.into());
        self.definitions.push(Definition { names: vec![name.into()], value });
        self.named(name)
    }

    /// The reduction of a value by an op with one result.
    pub fn reduce(&mut self, op: impl Into<NamedOp>, value: impl Into<Expression>) -> Expression {
        let text = self.reduction(&op.into(), value);
        self.call(text)
    }

    /// The results of an op; an op has as many as it has.
    pub fn results(&mut self, op: impl Into<NamedOp>, value: impl Into<Expression>) -> Vec<Expression> {
        let op = op.into();
        let text = self.reduction(&op, value);
        let results = cranefold_ir::ops::find(&op.name).map_or(1, |row| OpCall::row(row, &[]).results().len());
        let names: Vec<String> = (0..results).map(|i| format!("{MADE}{}_{i}", self.definitions.len())).collect();
        self.definitions.push(Definition { names: names.clone(), value: text });
        names.iter().map(name).collect()
    }

    /// The text of a reduction of a value.
    fn reduction(&mut self, op: &NamedOp, value: impl Into<Expression>) -> String {
        let params: String = op.params.iter().map(|(name, value)| format!(", {name}={value:?}")).collect();
        format!("{}({}{params})", op.name, self.text(&value.into()))
    }

    /// The reduction of a value of slices over kept axes.
    pub fn total(&mut self, op: impl Into<NamedOp>, value: impl Into<Expression>, axes: impl IntoAxes) -> Expression {
        let mut text = self.reduction(&op.into(), value);
        text.pop();
        self.call(format!("{text}, axes={})", list(&extent::axes(axes), '[', ']')))
    }

    /// A value less its mean over the slice, which is subtracted as a pair of floats.
    pub fn centered(&mut self, value: impl Into<Expression>) -> Expression {
        let value = self.text(&value.into());
        self.call(format!("centered({value})"))
    }

    /// The index along an axis of the region.
    pub fn position(&mut self, axis: i64) -> Expression {
        self.call(format!("position({axis})"))
    }

    /// The extent of an axis of the region, a number without a type.
    pub fn extent(&mut self, axis: i64) -> Expression {
        self.call(format!("extent({axis})"))
    }

    /// The element that an output held before.
    pub fn old(&mut self, output: usize) -> Expression {
        self.call(format!("old({output})"))
    }

    /// Adds an output in row-major layout.
    pub fn output(&mut self, value: impl Into<Expression>) {
        self.output_at(value, Layout::row_major());
    }

    /// Adds an output in a layout.
    pub fn output_at(&mut self, value: impl Into<Expression>, layout: Layout) {
        let text = self.text(&value.into());
        self.outputs.push(text);
        self.builder.outputs.push((None, Some(layout)));
    }

    /// Validates the region.
    ///
    /// # Errors
    /// As for its text, into which the error points.
    pub fn build(mut self) -> Result<Spec, SpecError> {
        let (mut definitions, mut outputs) = (std::mem::take(&mut self.definitions), std::mem::take(&mut self.outputs));
        inline(&mut definitions, &mut outputs);
        let definitions = definitions.into_iter().map(|d| format!("{} = {}", d.names.join(", "), d.value)).collect();
        let names = std::mem::take(&mut self.names);
        self.builder.region = Some(RegionTexts { names, definitions, outputs });
        if let Some((shown, message)) = self.faults.first() {
            let text = text_of(&self.builder);
            let at = text.find(shown).unwrap_or(0);
            return Err(SpecError::Region(RegionError::at(&text, at, message)));
        }
        self.builder.build()
    }

    /// The expression of a user's name.
    fn named(&mut self, given: &str) -> Expression {
        if let Some(refused) = refused_name(given) {
            self.faults.push((given.to_string(), refused));
        }
        name(given)
    }

    /// The name of a call, which is made into a definition.
    fn call(&mut self, value: String) -> Expression {
        let made = format!("{MADE}{}", self.definitions.len());
        self.definitions.push(Definition { names: vec![made.clone()], value });
        name(made)
    }

    fn text(&mut self, value: &Expression) -> String {
        if let Some(message) = value.invalid() {
            self.faults.push((format!("<{message}>"), message.to_string()));
        }
        value.to_string()
    }
}

/// Writes each made definition that is used once where it is used, and gives the others names that are free.
fn inline(definitions: &mut Vec<Definition>, outputs: &mut [String]) {
    let texts = || definitions.iter().map(|d| &d.value).chain(outputs.iter());
    let mut uses = std::collections::HashMap::new();
    let mut taken = std::collections::HashSet::new();
    for text in texts() {
        words(text, &mut |word| *uses.entry(word.to_string()).or_insert(0) += 1);
    }
    definitions.iter().for_each(|d| taken.extend(d.names.iter().cloned()));
    taken.extend(uses.keys().cloned());
    let mut meanings: std::collections::HashMap<String, (String, usize)> = std::collections::HashMap::new();
    let mut numbers = 0..;
    let mut kept = vec![];
    for Definition { names, value } in std::mem::take(definitions) {
        let (value, depth) = replaced(&value, &meanings);
        if let [one] = names.as_slice()
            && one.starts_with(MADE)
            && uses.get(one) == Some(&1)
            && depth < MOST_INLINE
        {
            meanings.insert(one.clone(), (value, depth + 1));
            continue;
        }
        let mut own = vec![];
        for name in names {
            if !name.starts_with(MADE) {
                own.push(name);
                continue;
            }
            let free = numbers.by_ref().map(|n: usize| format!("t{n}")).find(|name| !taken.contains(name));
            let free = free.unwrap_or_default();
            meanings.insert(name, (free.clone(), 0));
            own.push(free);
        }
        kept.push(Definition { names: own, value });
    }
    outputs.iter_mut().for_each(|output| *output = replaced(output, &meanings).0);
    *definitions = kept;
}

/// The most calls that are written one inside the other.
const MOST_INLINE: usize = 8;

/// Calls `f` on each word of a text.
fn words(text: &str, f: &mut impl FnMut(&str)) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| !word.is_empty()).for_each(f);
}

/// The text with other texts in place of words, and the greatest depth of these.
fn replaced(text: &str, meanings: &std::collections::HashMap<String, (String, usize)>) -> (String, usize) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut new, mut depth, mut rest) = (String::new(), 0, text);
    while let Some(c) = rest.chars().next() {
        let end = match is_part(c) {
            true => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            false => c.len_utf8(),
        };
        match meanings.get(&rest[..end]) {
            Some((meaning, deep)) => {
                new.push_str(meaning);
                depth = depth.max(*deep);
            }
            None => new.push_str(&rest[..end]),
        }
        rest = &rest[end..];
    }
    (new, depth)
}
