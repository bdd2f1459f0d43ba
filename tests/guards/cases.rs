//! What is tried: a list that is the same each time, in which any two factors meet.

use cranefold::ops::{ROWS, Row};
use cranefold::{DType, Problem, Schedule, Spec};

/// The lengths of what is beside a vector: of a reduced axis, or of a row of outputs.
pub const TAILS: u64 = 131;

/// Where the tail lies, how operands are laid out, and what else is read. `{n}` is the tail and `{n+3}` more than it,
/// `{d}` the element type, `{acc}` that of the accumulator; `{map}` a map of x0 and x1.
///
/// Shape of input 0 and what follows it, then layouts of outputs: of what is left, and of those with an element at each
/// position.
pub const FORMS: &[(&str, &str, &str)] = &[
    // The reduction is inner, outer, beside n outputs, in the middle, and all there is.
    ("[3,{n}] axes=[1]", "", ""),
    ("[{n},5] axes=[0]", "", ""),
    ("[4,{n}] axes=[0]", "", ""),
    ("[2,{n},3] axes=[1]", "", ""),
    ("[{n}]", "", ""),
    ("[3,5,{n}] axes=[0,2]", "", ""),
    // Gaps between elements and between rows, before the first and backwards.
    ("[3,{n}]@({2n+3},2) axes=[1]", "@(-3)+2", "@({2n+1},2)+1"),
    ("[{n},5]@(7,1) axes=[0]", "@(2)", "@(6,1)"),
    ("[4,{n}]@({n+5},1)+3 axes=[0]", "@(-1)", "@(-{n+1},1)"),
    ("[3,{n}]@({3n},3) axes=[1]", "", ""),
    ("[3,{n}]@(-{n+2},-1) axes=[1]", "@(2)+1", "@(1,-3)"),
    ("[{n},5]@(-5,-1) axes=[0]", "@(-2)", ""),
    // Transposed.
    ("[{n},3]@ba axes=[0]", "", "@ba"),
    ("[4,{n}]@ba axes=[0]", "", ""),
    // Blocks, the last of which is padded: of the reduced axis, of the kept one, of outputs alone, and as oneDNN has them.
    ("[3,{n}]@aB8b axes=[1]", "@A2a", "@aB16b"),
    ("[{n},5]@Ab16a axes=[0]", "@A4a", "@AB2a4b"),
    ("[5,{n}]@aB16b axes=[0]", "@A16a", "@any"),
    ("[5,{n}] axes=[0]", "@A8a", "@aB16b"),
    ("[2,{n},2,3]@nChw16c axes=[2,3] keep_dims", "@any", "@any"),
    ("[2,{n},2,3]@nChw8c axes=[1] keep_dims", "@any", "@any"),
    // Repeated by strides of zero.
    ("[{n},3]@(0,1) axes=[0]", "", ""),
    ("[5,{n}]@(1,0) axes=[0]", "", ""),
    // Further inputs: broadcast along each axis, read after the reduction beside old elements, and one value.
    ("[3,{n}], {d}[{n}] axes=[1]{map}", "", ""),
    ("[{n},5], {d}[5] axes=[0]{map}", "", ""),
    ("[{n},5], {d}[{n}]:then axes=[1] then=\"r0 + y0 + d\"", "", ""),
    ("[3,{n}] axes=[1] scalar k:{acc} map=\"x0*k\"", "", ""),
    // Many rows, full blocks before the tail.
    ("[37,{n}] axes=[1]", "", ""),
    ("[37,{n}] axes=[0]", "", ""),
    ("[2,{n+4096}] axes=[1]", "", ""),
    ("[{n+640},3] axes=[0]", "", ""),
    ("[{n+64},70] axes=[0]", "", ""),
    // Two inputs that lie across one another, and elements far apart.
    ("[20,{n+16}], {d}[20,{n+16}]@ba axes=[1]{map}", "", ""),
    ("[{n+16},20], {d}[{n+16},20]@ba axes=[0]{map}", "", ""),
    ("[3,{n}]@({17n+5},17) axes=[1]", "", ""),
];

/// Slices that are selected from and do not fit a frame, so that they are gathered in scratch memory: `long` elements
/// have as many bytes as a frame holds.
const GATHERED: (&str, &str, &str) = ("[{n+long}]", "", "");

/// Tails of those: one in so many, another for each op.
const GATHERED_STEP: u64 = 10;

/// Bits of vectors.
pub const WIDTHS: [u32; 5] = [0, 64, 128, 256, 512];

/// What is forced beside the width; of two with an `or` between them, by turns for the tails of an op. Where a problem
/// refuses it the next one is taken.
pub const FORCED: &[&str] = &[
    "jam=1 align=64",
    "jam=3 in_flight=2",
    "jam=2 in_flight=4 interleave=2",
    "tile=i0:4@lanes interleave=4",
    "tile=i0:3 jam=2",
    "tile=i0:16@blocks",
    "tile=i0:16@folds",
    "tile=i0:2@runs",
    "tile=i0:8@across jam=4 or tile=i0:3@rows",
    "tile=i1:5 jam=7 transpose=off",
    "parts=2@blocks",
    "prefetch=256 jam=2 nontemporal=on",
    "parts=3",
];

/// The parameters that a row is tried with: those it needs.
fn parameters(row: &Row) -> String {
    let value = |name: &str| match name {
        "p" => 2.5,
        "q" => 0.3,
        _ => 0.5,
    };
    let needed = row.params.iter().filter(|param| param.default.is_none());
    let all: Vec<String> = needed.map(|param| format!("{}={}", param.name, value(param.name))).collect();
    if all.is_empty() { String::new() } else { format!("({})", all.join(",")) }
}

/// Each row on each type that it takes.
pub fn ops() -> Vec<(&'static Row, DType)> {
    ROWS.iter().flat_map(|row| DType::ALL.into_iter().filter(|&d| row.takes(d)).map(move |d| (row, d))).collect()
}

/// One spec, by the numbers of its factors, and how it is compiled: once as the compiler chooses for a width, once by a
/// schedule that is forced.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its place in the list.
    pub number: usize,
    pub op: usize,
    pub tail: u64,
    pub form: usize,
    pub width: usize,
    pub forced: usize,
    pub spec: Spec,
    pub schedule: Schedule,
}

impl Case {
    /// The case of an op and a tail. Its form and width follow from them, so that with each op any form and width meet,
    /// and with each tail; the next form is taken where the op does not allow it.
    ///
    /// # Panics
    /// If the op allows no form.
    pub fn of(ops: &[(&Row, DType)], number: usize) -> Case {
        let plain = ops.len() * TAILS as usize;
        let (op, tail) = match number.checked_sub(plain) {
            None => (number / TAILS as usize, number as u64 % TAILS),
            Some(n) => {
                let (op, step) = gathered(ops).nth(n).expect("a case");
                (op, step * GATHERED_STEP + op as u64 % GATHERED_STEP)
            }
        };
        let first = op + tail as usize;
        let (row, dtype) = ops[op];
        // The last one stands for those that are gathered.
        let form = |n: usize| if number < plain { (first + n) % FORMS.len() } else { FORMS.len() };
        let texts = |form: usize| FORMS.get(form).copied().unwrap_or(GATHERED);
        let spec = |form: usize| spec(row, dtype, texts(form), tail).map(|spec| (form, spec));
        let (form, spec) = (0..FORMS.len())
            .find_map(|n| spec(form(n)))
            .unwrap_or_else(|| panic!("`{}` of {dtype} allows no form with {tail} elements", row.name));
        let width = (op + tail as usize / (TAILS as usize / WIDTHS.len())) % WIDTHS.len();
        let problem = Problem::of(&spec);
        let (forced, schedule) = (0..FORCED.len())
            .map(|n| (op * 5 + tail as usize * 7 + n) % FORCED.len())
            .map(|n| {
                let each: Vec<&str> = FORCED[n].split(" or ").collect();
                let text = format!("width={} {}", WIDTHS[width], each[tail as usize % each.len()]);
                (n, text.parse::<Schedule>().expect("a schedule"))
            })
            .find(|(_, schedule)| schedule.check(&problem).is_ok())
            .expect("a schedule that any problem takes");
        Case { number, op, tail, form, width, forced, spec, schedule }
    }
}

/// How many cases there are.
pub fn count(ops: &[(&Row, DType)]) -> usize {
    ops.len() * TAILS as usize + gathered(ops).count()
}

/// The ops that select elements, each with the numbers of its tails.
fn gathered(ops: &[(&Row, DType)]) -> impl Iterator<Item = (usize, u64)> {
    let selecting = ops.iter().enumerate().filter(|(_, (row, _))| row.selects).map(|(op, _)| op);
    selecting.flat_map(|op| (0..TAILS / GATHERED_STEP).map(move |step| (op, step)))
}

/// Nothing where the op does not allow the form.
fn spec(row: &Row, dtype: DType, (rest, left, each): (&str, &str, &str), n: u64) -> Option<Spec> {
    let map = match dtype {
        // A row that reads further inputs itself is given one.
        _ if row.inputs > 1 => "",
        DType::Bool => " map=\"x0 and x1\"",
        _ => " map=\"x0*x1\"",
    };
    let layout = if row.applies { each } else { left };
    let outputs =
        if layout.is_empty() { String::new() } else { format!(" -> {}", vec![layout; row.results.len()].join(", ")) };
    let text = format!("{}{} {{d}}{rest}{outputs}", row.name, parameters(row))
        .replace("{map}", map)
        .replace("{d}", dtype.name())
        .replace("long", &((64 << 10) / dtype.bytes()).to_string())
        .replace("{acc}", if dtype == DType::F64 { "f64" } else { "f32" });
    with_extents(&text, n).parse().ok()
}

/// A text with its terms of `n` in braces worked out: `{n}`, `{2n}`, `{n+3}`, `{2n+3}`.
fn with_extents(text: &str, n: u64) -> String {
    let mut pieces = text.split(['{', '}']);
    let mut whole = pieces.next().unwrap_or_default().to_string();
    while let (Some(term), Some(between)) = (pieces.next(), pieces.next()) {
        let (times, plus) = term.split_once('n').unwrap_or_else(|| panic!("{term} of {text}"));
        let number =
            |digits: &str, default: u64| if digits.is_empty() { default } else { digits.parse().expect("a number") };
        whole += &(n * number(times, 1) + number(plus.trim_start_matches('+'), 0)).to_string();
        whole += between;
    }
    whole
}
