//! Random regions.
//!
//! A [`RegionCase`] is drawn from bytes, and is a valid region whatever the bytes are. Without bytes it is the simplest
//! region.

use crate::bytes::Bytes;
use crate::data::Random;
use crate::specs::{AxisPlace, Form, layout};
use cranefold::{Layout, Spec, SpecError};
use std::fmt;

/// Extents: one, small ones, primes, and both sides of the widths of vectors, of 64 lanes and of blocks.
const EXTENTS: &[u64] =
    &[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 257, 511, 1025, 2049, 4097, 4161, 8193];

/// A region as text, and its data.
#[derive(Clone)]
pub struct RegionCase {
    /// The text.
    pub text: String,
    /// The seed of the data.
    pub seed: u64,
    /// The kind of the data, see `data.rs`.
    pub kind: u8,
    /// Bytes by which inputs and outputs are off alignment.
    pub offsets: (usize, usize),
}

impl fmt::Debug for RegionCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RegionCase { text, seed, kind, offsets } = self;
        write!(f, "{text} (data {kind} of seed {seed:#x}, off by {offsets:?} bytes)")
    }
}

impl RegionCase {
    /// A number of bytes that is enough for any case.
    pub const BYTES: usize = 384;

    /// The case of these bytes, with at most `most_elements` elements.
    pub fn of(bytes: &[u8], most_elements: u64) -> RegionCase {
        let made = |blocks: bool| {
            let bytes = &mut Bytes::new(bytes);
            let (seed, kind) = (bytes.bits(), bytes.below(8) as u8);
            let offsets = (bytes.below(16) as usize, bytes.below(16) as usize);
            RegionCase { text: Maker::of(bytes, most_elements, blocks).text(), seed, kind, offsets }
        };
        let case = made(true);
        // Blocks of many axes cut a region into too many boxes.
        let cut = |error: SpecError| error.to_string().contains(" boxes, above the limit");
        if case.text.parse::<Spec>().is_err_and(cut) { made(false) } else { case }
    }

    /// The spec.
    ///
    /// # Panics
    /// If the text is refused: a bug of the generator, or of the reader of regions.
    pub fn spec(&self) -> Spec {
        self.text.parse().unwrap_or_else(|error| panic!("{error}\n{}", self.text))
    }
}

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A float of the accumulator's type.
    Float,
    Bool,
    /// An `i64`.
    Integer,
}

/// A named value.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    kind: Kind,
    /// True if it depends on a reduced axis.
    is_element: bool,
    /// True if it is known to depend on kept axes at most, and on one of them if there are any.
    is_slice: bool,
    /// The visits before it is known.
    after: u64,
}

/// An operand or a scalar: its name, and its text as a float.
struct Leaf {
    name: String,
    float: String,
    is_bool: bool,
    /// True if it surely depends on a reduced axis.
    is_element: bool,
}

/// Reductions of floats to one float.
const FLOATS: &[&str] = &[
    "sum(@)",
    "max(@)",
    "mean(@)",
    "min(@)",
    "prod(@)",
    "l1(@)",
    "l2(@)",
    "sum_squares(@)",
    "log_sum(@)",
    "log_sum_exp(@)",
    "lp(@, p=3)",
    "lp_sum(@, p=2, eps=0.5)",
    "linf(@)",
    "ptp(@)",
    "var(@)",
    "var(@, ddof=1)",
    "std(@)",
    "median(@)",
    "median_low(@)",
    "quantile(@, q=0.3)",
];

/// Reductions of floats to an integer.
const PLACES: &[&str] = &["argmax(@)", "argmin(@)", "argmax(@, last=1)", "count_nonzero(@)"];

/// Reductions that give two values.
const PAIRS: &[&str] = &["sum_exp(@)", "mean_pair(@)"];

/// Functions of a float.
const FUNCTIONS: &[&str] = &[
    "-@",
    "abs(@)",
    "exp(@)",
    "sqrt(abs(@))",
    "tanh(@)",
    "log(abs(@) + 1)",
    "sigmoid(@)",
    "erf(@)",
    "silu(@)",
    "gelu(@)",
    "round(@)",
    "rsqrt(abs(@) + 0.5)",
    "floor(@)",
    "sign(@)",
    "expm1(@)",
    "log1p(abs(@))",
    "softplus(@)",
    "gelu_tanh(@)",
];

/// The most visits of the slice before a value that another reduction reads.
const MOST_AFTER: u64 = 6;

/// The region while it is made.
struct Maker<'a, 'b> {
    bytes: &'a mut Bytes<'b>,
    shape: Vec<u64>,
    reduced: Vec<bool>,
    operands: Vec<String>,
    words: String,
    leaves: Vec<Leaf>,
    values: Vec<Named>,
    definitions: Vec<String>,
    outputs: Vec<String>,
    accumulator: &'static str,
    /// True if operands may be blocked.
    blocks: bool,
}

impl<'a, 'b> Maker<'a, 'b> {
    fn of(bytes: &'a mut Bytes<'b>, most_elements: u64, blocks: bool) -> Maker<'a, 'b> {
        let mut left = most_elements;
        let mut axis = |bytes: &mut Bytes| {
            let few = if bytes.flag() { EXTENTS.len() } else { 12 };
            let extent = bytes.pick(&EXTENTS[..few]).min(left).max(1);
            left /= extent;
            extent
        };
        let shape: Vec<u64> = (0..1 + bytes.below(4)).map(|_| axis(bytes)).collect();
        let mut reduced: Vec<bool> = shape.iter().map(|_| bytes.flag()).collect();
        let last = reduced.len() - 1;
        reduced[last] |= !reduced.contains(&true);
        let mut maker = Maker {
            bytes,
            shape,
            reduced,
            operands: vec![],
            words: String::new(),
            leaves: vec![],
            values: vec![],
            definitions: vec![],
            outputs: vec![],
            accumulator: "f32",
            blocks,
        };
        maker.head();
        for _ in 0..1 + maker.bytes.below(6) {
            maker.definition();
        }
        maker.totals();
        maker.outputs();
        maker
    }

    /// Makes operands, scalars and words. The first operand has floats and the whole shape.
    fn head(&mut self) {
        let dtype = self.bytes.pick(&["f32", "f32", "f32", "bf16", "f16", "f64"]);
        let mut dtypes = vec![dtype];
        self.operand(dtype, self.shape.clone());
        for _ in 0..self.bytes.below(4) {
            let dtype = self.bytes.pick(&["f32", "bool", "bf16", "f16", "i8", "i32", "u8", "f32", "i64"]);
            let from = if self.bytes.flag() { self.bytes.below(self.shape.len() as u64) as usize } else { 0 };
            let whole = self.bytes.flag();
            let own = |&e: &u64| if whole || self.bytes.flag() { e } else { 1 };
            let shape: Vec<u64> = self.shape[from..].iter().map(own).collect();
            dtypes.push(dtype);
            self.operand(dtype, shape);
        }
        let axes: Vec<usize> = (0..self.shape.len()).filter(|&a| self.reduced[a]).collect();
        self.words = format!(" axes={axes:?}");
        if self.bytes.one_in(4) {
            self.words += " keep_dims";
        }
        for s in 0..self.bytes.below(3) {
            let name = format!("k{s}");
            self.words += &format!(" scalar {name}:f32");
            self.leaves.push(Leaf { float: name.clone(), name, is_bool: false, is_element: false });
        }
        let wide = self.bytes.one_in(8);
        if wide || dtypes.contains(&"f64") {
            self.accumulator = "f64";
            self.words += if wide { " acc=f64" } else { "" };
        }
        if self.bytes.flag() {
            self.words += " order=logical";
        }
        let accumulator = self.accumulator;
        for leaf in &mut self.leaves {
            leaf.float = leaf.float.replace('@', accumulator);
        }
    }

    fn operand(&mut self, dtype: &str, shape: Vec<u64>) {
        let name = format!("x{}", self.operands.len());
        let form = self.bytes.pick(&[
            Form::RowMajor,
            Form::RowMajor,
            Form::RowMajor,
            Form::Strides,
            Form::Tag,
            Form::Blocked,
            Form::BlockedStrides,
        ]);
        let mut random = Random::new(self.bytes.bits());
        let at = self.layout(form, &shape, &mut random, true);
        self.operands.push(format!("{name}:{dtype}{shape:?}{at}"));
        let float = match dtype {
            "bool" => format!("select({name}, 1, @(0))"),
            _ if dtype.contains('f') => name.clone(),
            _ => format!("@({name})"),
        };
        let is_element = self.operands.len() == 1;
        self.leaves.push(Leaf { name, float, is_bool: dtype == "bool", is_element });
    }

    fn layout(&self, form: Form, shape: &[u64], random: &mut Random, repeats: bool) -> String {
        let axes: Vec<(u64, AxisPlace)> = shape.iter().map(|&extent| (extent, AxisPlace::some(random))).collect();
        let form = match form {
            Form::Blocked if !self.blocks => Form::Tag,
            Form::BlockedStrides if !self.blocks => Form::Strides,
            form => form,
        };
        let layout = layout(form, &axes, repeats);
        if layout == Layout::row_major() { String::new() } else { format!("@{layout}") }
    }

    /// A float over inputs and names: its text, true if it is of an element, and the visits before it is known.
    fn float(&mut self, depth: u64) -> (String, bool, u64) {
        let choice = if depth == 0 { self.bytes.below(3) } else { self.bytes.below(9) };
        match choice {
            0 => (self.leaves[0].float.clone(), true, 0),
            1 => {
                let n = self.bytes.below(self.leaves.len() as u64) as usize;
                (self.leaves[n].float.clone(), self.leaves[n].is_element, 0)
            }
            2 => {
                let floats: Vec<usize> =
                    (0..self.values.len()).filter(|&v| self.values[v].kind != Kind::Bool).collect();
                let Some(last) = floats.len().checked_sub(1) else { return (self.leaves[0].float.clone(), true, 0) };
                let value = &self.values[floats[last - self.bytes.below(floats.len() as u64) as usize]];
                let text = match value.kind {
                    Kind::Integer => format!("{}({})", self.accumulator, value.name),
                    _ => value.name.clone(),
                };
                (text, value.is_element, value.after)
            }
            3 | 4 => {
                let function = self.bytes.pick(FUNCTIONS);
                let (of, is_element, after) = self.float(depth - 1);
                let of = if function.starts_with('-') { format!("({of})") } else { of };
                (function.replace('@', &of), is_element, after)
            }
            5 => {
                let (mask, mask_is_element, mask_after) = self.mask(depth - 1);
                let (one, is_element, after) = self.float(depth - 1);
                let other = self.bytes.pick(&["0", "-inf", "-0.0", "1.5"]);
                (format!("select({mask}, {one}, {other})"), is_element || mask_is_element, after.max(mask_after))
            }
            _ => {
                let operation = self.bytes.pick(&["(@ + %)", "(@ - %)", "@ * %", "@ / %", "max(@, %)", "min(@, %)"]);
                let (a, a_is_element, a_after) = self.float(depth - 1);
                let (b, b_is_element, b_after) = match self.bytes.one_in(4) {
                    true => (self.bytes.pick(&["2", "0.5", "-1.25", "1e-5"]).to_string(), false, 0),
                    false => self.float(depth - 1),
                };
                let text = operation.replace('@', &format!("({a})")).replace('%', &format!("({b})"));
                (format!("({text})"), a_is_element || b_is_element, a_after.max(b_after))
            }
        }
    }

    /// A truth value, like [`Maker::float`].
    fn mask(&mut self, depth: u64) -> (String, bool, u64) {
        let masks = self.leaves.iter().filter(|leaf| leaf.is_bool).count() as u64;
        let axis = |bytes: &mut Bytes, rank: usize| bytes.below(rank as u64) as usize;
        match self.bytes.below(4) {
            0 if masks > 0 => {
                let n = self.bytes.below(masks) as usize;
                let leaf = self.leaves.iter().filter(|leaf| leaf.is_bool).nth(n).expect("as many");
                (leaf.name.clone(), leaf.is_element, 0)
            }
            0 | 1 => {
                let a = axis(self.bytes, self.shape.len());
                let least = self.bytes.below(1 + self.shape[a].min(255));
                (format!("position({a}) < extent({a}) - {least}"), self.reduced[a], 0)
            }
            2 => {
                let (a, b) = (axis(self.bytes, self.shape.len()), axis(self.bytes, self.shape.len()));
                (format!("position({a}) <= position({b})"), self.reduced[a] || self.reduced[b], 0)
            }
            _ => {
                let (a, is_element, after) = self.float(depth.min(1));
                let comparison = self.bytes.pick(&["> 0", "<= 0.5", "!= 1", "== 0"]);
                (format!("({a}) {comparison}"), is_element, after)
            }
        }
    }

    /// A float of an element that another reduction may read.
    fn element(&mut self, depth: u64) -> (String, u64) {
        let (mut text, is_element, mut after) = self.float(depth);
        let first = self.leaves[0].float.clone();
        // Less the last value, so that stages follow one another.
        let last = self.values.iter().rfind(|v| v.kind == Kind::Float && v.after <= MOST_AFTER);
        if let Some(last) = last.filter(|_| self.bytes.one_in(4)) {
            text = format!("({text}) - {}", last.name);
            after = after.max(last.after);
        }
        if after > MOST_AFTER {
            return (first, 0);
        }
        // Masks over extents of one, and operands of few axes, may be of an element or not.
        let is_sure = is_element && text.contains(first.as_str()) && self.leaves.len() == 1;
        (if is_sure { text } else { format!("({text}) * {first}") }, after)
    }

    fn define(&mut self, names: &[String], value: &str, kind: Kind, is_element: bool, after: u64) {
        self.definitions.push(format!("{} = {value}", names.join(", ")));
        let is_slice = !is_element;
        let named = names.iter().map(|name| Named { name: name.clone(), kind, is_element, is_slice, after });
        self.values.extend(named);
    }

    fn definition(&mut self) {
        let name = format!("v{}", self.values.len());
        match self.bytes.below(8) {
            0 => {
                let (text, after) = self.element(3);
                self.define(&[name], &text, Kind::Float, true, after);
            }
            1 => {
                let (of, after) = self.element(2);
                self.define(&[name], &format!("centered({of})"), Kind::Float, true, after + 1);
            }
            2 => {
                let (of, after) = self.element(2);
                let call = self.bytes.pick(PLACES).replace('@', &of);
                self.define(&[name], &call, Kind::Integer, false, after + 1);
            }
            3 => {
                let (of, after) = self.element(2);
                let names = [name, format!("v{}", self.values.len() + 1)];
                let call = self.bytes.pick(PAIRS).replace('@', &of);
                self.define(&names, &call, Kind::Float, false, after + 1);
            }
            4 => {
                let axis = (0..self.shape.len()).find(|&a| self.reduced[a]).expect("a reduced axis");
                let call = self.bytes.pick(&["sum(@)", "max(@)", "min(@)"]);
                let of = format!("select({} > 0, position({axis}), 7)", self.leaves[0].float);
                self.define(&[name], &call.replace('@', &of), Kind::Integer, false, 1);
            }
            _ => {
                let (of, after) = self.element(2);
                let call = self.bytes.pick(FLOATS).replace('@', &of);
                self.define(&[name], &call, Kind::Float, false, after + 1);
            }
        }
    }

    /// Makes outputs of totals over one choice of kept axes.
    fn totals(&mut self) {
        let kept: Vec<usize> = (0..self.shape.len()).filter(|&a| !self.reduced[a]).collect();
        let of: Vec<String> =
            self.values.iter().filter(|v| v.is_slice && v.kind == Kind::Float).map(|v| v.name.clone()).collect();
        if kept.is_empty() || of.is_empty() || !self.bytes.one_in(3) {
            return;
        }
        let mut over: Vec<usize> = kept.iter().copied().filter(|_| self.bytes.flag()).collect();
        if over.is_empty() {
            over.push(kept[0]);
        }
        for _ in 0..1 + self.bytes.below(2) {
            let value = &of[self.bytes.below(of.len() as u64) as usize];
            let call = self.bytes.pick(&["sum(@, #)", "max(@, #)", "mean(@, #)", "var(@, #)", "log_sum_exp(@ * @, #)"]);
            let total = call.replace('@', value).replace('#', &format!("axes={over:?}"));
            let end = self.bytes.pick(&["", " / 3", " + 1.5"]);
            self.outputs.push(format!("{total}{end}"));
        }
    }

    /// Makes the other outputs: of all definitions and operands that nothing uses, and some more.
    fn outputs(&mut self) {
        for _ in 0..1 + self.bytes.below(3) {
            let (text, _) = if self.bytes.flag() { self.element(2) } else { (self.slice(), 0) };
            let output = match self.bytes.below(6) {
                0 => format!("bf16({text})"),
                1 => format!("i8(round({text}))"),
                2 => format!("f16({text})"),
                3 if self.outputs.len() < 4 => format!("{text} + old({})", self.outputs.len()),
                _ => text,
            };
            self.outputs.push(output);
        }
        let text = |maker: &Self| format!("{}; {}", maker.definitions.join("; "), maker.outputs.join(", "));
        let mut d = 0;
        while d < self.definitions.len() {
            let (names, _) = self.definitions[d].split_once(" = ").expect("names and a value");
            let names: Vec<String> = names.split(", ").map(str::to_string).collect();
            let uses = |name: &String| words(&text(self)).filter(|word| word == name).count() > 1;
            if !names.iter().any(uses) {
                self.outputs.push(names[0].clone());
            }
            d += 1;
        }
        let unused = |leaf: &&Leaf| words(&text(self)).all(|word| word != leaf.name);
        let unused: Vec<String> = self.leaves.iter().filter(unused).map(|leaf| leaf.float.clone()).collect();
        if !unused.is_empty() {
            let sum = unused.join(" + ");
            let first = &self.leaves[0].float;
            self.outputs.push(format!("sum({first} * ({sum}))"));
        }
    }

    /// A value of the slice.
    fn slice(&mut self) -> String {
        let of: Vec<&Named> = self.values.iter().filter(|v| v.is_slice && v.kind == Kind::Float).collect();
        match of.len() as u64 {
            0 => format!("max({})", self.leaves[0].float),
            n => format!("{} * 0.5", of[self.bytes.below(n) as usize].name),
        }
    }

    fn text(self) -> String {
        let definitions: String = self.definitions.iter().map(|d| format!("{d}; ")).collect();
        let outputs = self.outputs.join(", ");
        format!("region {}{} {{ {definitions}{outputs} }}", self.operands.join(", "), self.words)
    }
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}
