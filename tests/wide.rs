//! Wide vectors: every op on every type it takes has main loops of full vectors in wide functions, but for what
//! docs/wide-vectors.md lists; and vectors of all widths give the same bits.

use cranefold::ir::{Def, DefId, Expr, Extent, Loop, LoopKind, Nest, Over, Stmt, eval};
use cranefold::lower::lower;
use cranefold::ops::{ROWS, Row};
use cranefold::schedule::{Bounds, Decided};
use cranefold::{Compiler, DType, Input, Kernel, Options, Output, Problem, Spec, Vectors, pipeline};
use cranefold_fuzz::data;

/// A row with parameters, a type, what stands after the axes, and the bits of vectors.
struct Case {
    row: &'static Row,
    params: &'static str,
    dtype: DType,
    form: &'static str,
    bits: u32,
}

impl Case {
    fn is_of(&self, ops: &[&str], dtypes: &[DType]) -> bool {
        ops.contains(&self.row.name) && dtypes.contains(&self.dtype)
    }

    /// Whether an exact total of integers is finished, rather than one modulo 2^bits.
    fn is_exact(&self) -> bool {
        self.dtype.is_int() && ["saturate", "-> f32", "-> bf16"].contains(&self.form)
    }

    /// Nothing where the op has no such form.
    fn spec(&self, shape: &str) -> Option<Spec> {
        let Case { row, params, dtype, form, .. } = self;
        format!("{}{params} {dtype}{shape} {form}", row.name).parse().ok()
    }
}

/// A line of the table in `docs/wide-vectors.md`, and the cases it is about.
type Exception = (&'static str, fn(&Case) -> bool);

const EXCEPTIONS: &[Exception] = &[
    (
        "| `median`, `median_low`, `quantile`, `mode` | all | a function of the host selects elements one by one |",
        |case| case.row.selects,
    ),
    ("| `l2` | i32 i64 u32 u64 | squares are summed exactly, in 128 bits and more |", |case| {
        case.is_of(&["l2"], INTS_32_64)
    }),
    ("| `sum_squares` | i32 i64 u32 u64 with `saturate` or a float output | the same |", |case| {
        case.is_of(&["sum_squares"], INTS_32_64) && case.is_exact()
    }),
    ("| `prod` | integers with `saturate` or a float output | the product is exact in the same way |", |case| {
        case.row.name == "prod" && case.is_exact()
    }),
];

const INTS_32_64: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

/// What stands after the axes: nothing, or what changes the operations.
fn forms(row: &Row, dtype: DType) -> &'static [&'static str] {
    match dtype {
        _ if row.selects => &[""],
        DType::Bool => &["", "-> i32"],
        _ if dtype.is_float() => &["", "acc=f64", "trunc -> i32", "-> f16", "-> bf16", "-> f64"],
        _ => &["", "saturate", "-> f32", "-> bf16", "-> u64"],
    }
}

/// Inputs whose reduced axes are the innermost, the outermost, all; with the outputs side by side where they do not
/// fill vectors.
const SHAPES: [(&str, u64); 4] =
    [("[8,3000] axes=[1]", 0), ("[3000,64] axes=[0]", 0), ("[3000,40] axes=[0]", 40), ("[24000]", 0)];

/// The parameters a row is tried with.
fn parameters(row: &Row) -> &'static [&'static str] {
    match row.params.iter().map(|p| p.name).collect::<Vec<_>>().as_slice() {
        [] => &[""],
        ["last"] => &["", "(last)"],
        ["ddof"] => &["(ddof=1)"],
        ["q"] => &["(q=0.3)"],
        ["p"] => &["(p=3)", "(p=2.5)"],
        ["p", "eps"] => &["(p=3,eps=0.5)", "(p=2.5)"],
        ["eps"] => &["(eps=0.5)"],
        others => panic!("no values for {others:?}"),
    }
}

/// Each row with parameters, on each type that it takes.
fn ops() -> impl Iterator<Item = (&'static Row, &'static str, DType)> {
    let of = |row: &'static Row| parameters(row).iter().map(move |params| (row, *params));
    ROWS.iter().flat_map(of).flat_map(|(row, params)| {
        DType::ALL.into_iter().filter(|&d| row.takes(d)).map(move |dtype| (row, params, dtype))
    })
}

/// The nest that a target with these vectors is given.
fn legal(spec: &Spec, vectors: Vectors) -> Nest {
    let problem = Problem::of(spec);
    let decided = Decided::of(problem, None, Bounds::new(vectors)).expect("a choice");
    pipeline::legal(&decided).expect("a legal nest").nests.remove(0)
}

/// What of the main loops is not wide; nothing where all are.
struct Narrow<'a> {
    nest: &'a Nest,
    bits: u32,
    /// Outputs side by side, the last of which may leave lanes empty.
    outputs: u64,
    /// Main loops seen.
    main: usize,
    found: Vec<String>,
}

impl Narrow<'_> {
    fn of(nest: &Nest, bits: u32, outputs: u64) -> Vec<String> {
        let mut narrow = Narrow { nest, bits, outputs, main: 0, found: vec![] };
        narrow.body(&nest.body, false);
        if narrow.main == 0 {
            narrow.found.push("there is no loop over steps".into());
        }
        narrow.found
    }

    fn body(&mut self, body: &[Stmt], in_wide: bool) {
        for stmt in body {
            match stmt {
                Stmt::Wide { body } => self.body(body, true),
                Stmt::Select { .. } => self.found.push("elements are selected".into()),
                // A loop that loads lines, of which one iteration at least is written out, and of two both.
                Stmt::Rotate { .. } => self.main += 1,
                Stmt::For(l) => {
                    let is_main = matches!(l.extent, Extent::Const(n) if n > 1);
                    if l.kind != LoopKind::Lanes && matches!(l.var.over, Over::Step | Over::Position) && is_main {
                        self.main += 1;
                        if !in_wide {
                            self.found.push(format!("{} is not in a wide function", l.head()));
                        }
                        self.main_loop(l, &l.body);
                    }
                    self.body(&l.body, in_wide);
                }
                _ => {}
            }
        }
    }

    /// All that a main loop computes is in full vectors.
    fn main_loop(&mut self, main: &Loop, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::For(l) if l.kind == LoopKind::Lanes => {
                    let Extent::Const(lanes) = l.extent else { continue };
                    let full = u64::from(self.bits / 8) / self.widest_bytes(&l.body);
                    // Several steps' outputs may be taken together.
                    let is_rest = [1, 2, 4, 8].iter().any(|steps| lanes <= self.outputs * steps % full);
                    if lanes != full && !is_rest {
                        self.found.push(format!("in {}, {} has less than {full} lanes", main.head(), l.head()));
                    }
                }
                Stmt::For(l) => self.main_loop(main, &l.body),
                Stmt::Set { .. } | Stmt::Store { .. } => {
                    self.found.push(format!("in {} is what is in no vector", main.head()));
                }
                _ => {}
            }
        }
    }

    /// Bytes of the widest type that statements compute.
    fn widest_bytes(&self, body: &[Stmt]) -> u64 {
        let mut called: Vec<DefId> = vec![];
        let mut widest = 1;
        let mut see = |e: &Expr, called: &mut Vec<DefId>| {
            e.visit(&mut |e| {
                widest = widest.max(e.dtype().bytes());
                if let Expr::Call(def, ..) = e {
                    called.push(*def);
                }
            })
        };
        for stmt in body {
            // No lane computes what a definition does not use.
            let unused = |n, e: &Expr| {
                let is_number = matches!(e, Expr::Var(..) | Expr::At(..) | Expr::Const(_));
                is_number && matches!(stmt, Stmt::Call { def, .. } if self.nest.def(*def).is_hint(n))
            };
            stmt.exprs().iter().enumerate().filter(|&(n, e)| !unused(n, e)).for_each(|(_, e)| see(e, &mut called));
            if let Stmt::Call { def, .. } = stmt {
                called.push(*def);
            }
        }
        for def in called.clone() {
            let Def { lets, results, .. } = self.nest.def(def);
            lets.iter().chain(results).for_each(|e| see(e, &mut called));
        }
        widest
    }
}

/// What of a case's loops is narrow, in any shape and with each form of vectors of its bits.
fn narrow(case: &Case) -> Vec<String> {
    let mut found = vec![];
    for (shape, outputs) in SHAPES {
        let Some(spec) = case.spec(shape) else { continue };
        // Sums of products are the op's own, whatever its form.
        for dot in if case.form.is_empty() { &[false, true][..] } else { &[false] } {
            let nest = legal(&spec, Vectors { bits: case.bits, dot: *dot, ..Vectors::BASE });
            let narrow = Narrow::of(&nest, case.bits, outputs);
            found.extend(narrow.into_iter().map(|why| format!("{spec} at {} bits: {why}", case.bits)));
        }
    }
    found
}

#[test]
fn main_loops_are_wide_but_for_the_exceptions() {
    let mut wrong = vec![];
    let mut met = [0; EXCEPTIONS.len()];
    for (row, params, dtype) in ops() {
        for form in forms(row, dtype) {
            for bits in [256, 512] {
                let case = Case { row, params, dtype, form, bits };
                if case.spec(SHAPES[0].0).is_none() {
                    continue;
                }
                let listed: Vec<usize> = (0..EXCEPTIONS.len()).filter(|&n| EXCEPTIONS[n].1(&case)).collect();
                listed.iter().for_each(|&n| met[n] += 1);
                let narrow = narrow(&case);
                match (listed.as_slice(), narrow.first()) {
                    ([], Some(why)) => wrong.push(why.clone()),
                    ([n, ..], None) => {
                        let op = format!("{}{params} {dtype} {form} at {bits} bits", row.name);
                        wrong.push(format!("{op} is wide, and no longer an exception: {}", EXCEPTIONS[*n].0));
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(met.iter().all(|&cases| cases > 0), "an exception is of no case: {met:?}");
}

#[test]
fn the_page_lists_the_exceptions() {
    let page = include_str!("../docs/wide-vectors.md");
    let (_, table) = page.split_once("| op | types | reason |\n| --- | --- | --- |\n").expect("a table");
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with("| ")).collect();
    let listed: Vec<&str> = EXCEPTIONS.iter().map(|(line, _)| *line).collect();
    assert_eq!(rows, listed);
}

/// Small inputs that are not too small to be wide, and which kind of data they hold: numbers of every magnitude, and
/// the corners of the type.
const SMALL: [(&str, u8); 3] = [("[2,650] axes=[1]", 2), ("[70,21] axes=[0]", 2), ("[70,21] axes=[0]", 1)];

/// Code of every width that this machine has gives the bits of the naive nest.
#[test]
fn every_width_has_the_interpreters_bits() {
    let compiler = Compiler::host().expect("this machine");
    for (row, params, dtype) in ops() {
        // Outputs of other types are for `calls.rs`.
        let cases = forms(row, dtype).iter().take(2).flat_map(|form| SMALL.map(|(shape, kind)| (*form, shape, kind)));
        for (form, shape, kind) in cases {
            let Some(spec) = (Case { row, params, dtype, form, bits: 512 }).spec(shape) else { continue };
            let naive = lower(&Problem::of(&spec), "naive");
            let kernels: Vec<Kernel> = [128, 256, 512]
                .map(|width| compiler.compile_with(&spec, &Options { schedule: None, width: Some(width) }))
                .into_iter()
                .collect::<Result<_, _>>()
                .expect("kernels");
            let operand = &spec.inputs()[0];
            let input = data::elements(operand.dtype(), operand.span_elems() as usize, kind, 5);
            let expected = interpreted(&spec, &naive, &input);
            for kernel in &kernels {
                assert!(run(kernel, &input) == expected, "{spec}, {}, data {kind}", kernel.schedule());
            }
        }
    }
}

/// Whether lanes of two loops stand in the nest.
fn shares_vectors(nest: &Nest) -> bool {
    let mut found = false;
    let is_lanes = |s: &Stmt| matches!(s, Stmt::For(l) if l.kind == LoopKind::Lanes);
    nest.visit(&mut |s| found |= is_lanes(s) && s.body().iter().any(is_lanes));
    found
}

/// Rows that share the folds of their lanes, and how many of them a vector has; a few are left over.
const SHARED: [(&str, u64); 3] = [("[37,16] axes=[1]", 16), ("[35,41] axes=[1]", 8), ("[22,130] axes=[1]", 4)];

/// Rows whose folds share vectors have the bits of the naive nest, and those of ops that combine one value do share.
#[test]
fn rows_that_share_folds_have_the_interpreters_bits() {
    let compiler = Compiler::host().expect("this machine");
    let mut shared = 0;
    for (row, params, dtype) in ops() {
        for (shape, outputs) in SHARED {
            let Some(spec) = (Case { row, params, dtype, form: "", bits: 512 }).spec(shape) else { continue };
            let problem = Problem::of(&spec);
            let naive = lower(&problem, "naive");
            let operand = &spec.inputs()[0];
            let input = data::elements(operand.dtype(), operand.span_elems() as usize, 1, 5);
            let expected = interpreted(&spec, &naive, &input);
            for bits in [256, 512] {
                let schedule = format!("width={bits} tile=i0:{outputs}@folds").parse().expect("a schedule");
                let bounds = Bounds::new(Vectors { bits, ..Vectors::BASE });
                let decided = Decided::of(problem.clone(), Some(&schedule), bounds).expect("a schedule that fits");
                let nest = pipeline::legal(&decided).expect("a nest").nests.remove(0);
                let fills = u64::from(bits / 8) / dtype.bytes() == outputs;
                let is_plain = ["sum", "prod", "mean"].contains(&row.name) && [DType::F32, DType::F64].contains(&dtype);
                assert!(shares_vectors(&nest) || !(fills && is_plain), "{spec}, {schedule}: {nest}");
                shared += usize::from(shares_vectors(&nest));
                let options = Options { schedule: Some(schedule), width: None };
                let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
                assert!(run(&kernel, &input) == expected, "{spec}, {}", kernel.schedule());
            }
        }
    }
    assert!(shared > 100, "{shared} kernels");
}

/// Outputs of zeros.
fn outputs(spec: &Spec) -> Vec<Vec<u8>> {
    spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect()
}

fn interpreted(spec: &Spec, nest: &Nest, input: &[u8]) -> Vec<Vec<u8>> {
    let mut outputs = outputs(spec);
    let outs = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    eval::run(nest, &mut eval::Bits { inputs: vec![input], outputs: outs });
    outputs
}

fn run(kernel: &Kernel, input: &[u8]) -> Vec<Vec<u8>> {
    let spec = kernel.spec().expect("a kernel of a spec");
    let mut outputs = outputs(spec);
    let operands = spec.outputs().iter().zip(&mut outputs);
    let mut outs: Vec<Output> = operands.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    kernel.run(&[Input::from_bytes(spec.inputs()[0].dtype(), input)], &mut outs).expect("the right buffers");
    outputs
}
