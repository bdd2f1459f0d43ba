//! What a compiler goes through under load. Each function checks as it goes, and gives what is to be told of it.

use cranefold::ir::eval::Bits;
use cranefold::lower::program::Program;
use cranefold::{Compiler, Error, Input, Kernel, Output, Spec, pipeline};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The spec with a number: all differ, and no two mean the same problem.
pub fn spec(number: usize) -> Spec {
    let (op, rest) = (["sum", "max", "mean", "argmax", "prod"][number % 5], number / 5);
    let (dtype, rest) = (["f32", "i32", "f16", "f64"][rest % 4], rest / 4);
    // Extents whose order tells the problems apart.
    let (inner, rest) = (2 + rest % 97, rest / 97);
    let (outer, axis) = (2 + rest / 2, rest % 2);
    let text = format!("{op} {dtype}[{outer},{inner}] axes=[{axis}]");
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// What became of memory.
#[derive(Debug)]
#[allow(dead_code, reason = "the test tells all of it by Debug")]
pub struct Memory {
    /// Kernels that were made.
    pub kernels: usize,
    /// Bytes of resident memory more than before; of this process, as Linux tells it.
    pub grown_bytes: i64,
    /// Mappings of the process at the end.
    pub mappings: usize,
    /// Time for each.
    pub each: Duration,
}

/// Compiles so many specs, each of which is dropped before the next, after as many hundredths to warm up.
pub fn cycles(count: usize) -> Result<Memory, Error> {
    let compiler = Compiler::builder().most_kernels(1).build()?;
    (0..count / 100).try_for_each(|n| compiler.compile(&spec(n)).map(drop))?;
    let (before, start) = (resident_bytes(), Instant::now());
    (0..count).try_for_each(|n| compiler.compile(&spec(n)).map(drop))?;
    let each = start.elapsed() / count as u32;
    let told = compiler.statistics();
    assert!(told.kernels <= 1 && told.evictions as usize + 1 >= count, "{told:?}");
    Ok(Memory { kernels: count, grown_bytes: resident_bytes() - before, mappings: mappings(), each })
}

/// Holds so many kernels at once, runs the first and the last of them, and drops every second one before the others.
pub fn alive(count: usize) -> Result<Memory, Error> {
    let compiler = Compiler::builder().most_kernels(1000).build()?;
    let (before, start) = (resident_bytes(), Instant::now());
    let mut kernels: Vec<Option<Kernel>> = vec![];
    for n in 0..count {
        kernels.push(Some(compiler.compile(&spec(n))?));
    }
    let each = start.elapsed() / count as u32;
    let (grown_bytes, mappings) = (resident_bytes() - before, mappings());
    for n in [0, count / 2, count - 1] {
        let case = Case::of(n);
        case.check(kernels[n].as_ref().expect("it is held"));
    }
    let told = compiler.statistics();
    assert!(told.kernels <= 1000, "{told:?}");
    kernels.iter_mut().step_by(2).for_each(|kernel| *kernel = None);
    let case = Case::of(1);
    case.check(kernels[1].as_ref().expect("it is held"));
    drop(kernels);
    case.check(&compiler.compile(&spec(1))?);
    Ok(Memory { kernels: count, grown_bytes, mappings, each })
}

/// What threads did.
#[derive(Debug)]
pub struct Hammered {
    /// Answers that were held against the interpreter's, all with equal bits.
    pub answers: u64,
    /// What the compiler says.
    pub told: cranefold::compiler::Statistics,
}

/// Lets so many threads compile, run, look up and clear at random, in a cache that holds a tenth of what they ask for.
pub fn hammer(threads: u64, time: Duration) -> Result<Hammered, Error> {
    let cases: Vec<Case> = (0..362).map(|n| Case::of(37 * n)).collect();
    let compiler = Compiler::builder().most_kernels(40).build()?;
    let (answers, end) = (AtomicU64::new(0), Instant::now() + time);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (cases, compiler, answers) = (&cases, &compiler, &answers);
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                // What this thread holds on to, whatever becomes of the cache.
                let mut held: Option<(usize, Kernel)> = None;
                while Instant::now() < end {
                    // A few are asked for much more often than others.
                    let number = random.below(20) * random.below(20);
                    let case = &cases[number];
                    match random.below(1000) {
                        0 => compiler.clear(),
                        1..100 => {
                            let Some(kernel) = compiler.get(&compiler.keyed(&case.spec)) else { continue };
                            case.check(&kernel);
                            answers.fetch_add(1, Ordering::Relaxed);
                        }
                        100..200 => {
                            if let Some((number, kernel)) = &held {
                                cases[*number].check(kernel);
                                answers.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        pick => {
                            let kernel = compiler.compile(&case.spec).expect("a kernel");
                            case.check(&kernel);
                            answers.fetch_add(1, Ordering::Relaxed);
                            if pick < 300 {
                                held = Some((number, kernel));
                            }
                        }
                    }
                }
            });
        }
    });
    let told = compiler.statistics();
    assert!(told.kernels <= 40 && told.failures == 0, "{told:?}");
    Ok(Hammered { answers: answers.into_inner(), told })
}

/// A spec with an input and the interpreter's answer.
struct Case {
    spec: Spec,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Case {
    fn of(number: usize) -> Case {
        let spec = spec(number);
        let mut random = Random(number as u64 + 1);
        let mut input = vec![0; spec.inputs()[0].span_bytes() as usize];
        input.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_ne_bytes()[..chunk.len()]));
        let mut output = vec![0xa5; spec.outputs()[0].span_bytes() as usize];
        let problem = cranefold::Problem::of(&spec);
        let program = Program::of(cranefold::lower::lower(&problem, "the interpreter's"));
        pipeline::checked("nest", program.nests[0].clone()).expect("a nest that verifies");
        program.interpret(&mut Bits { inputs: vec![&input], outputs: vec![&mut output] });
        Case { spec, input, output }
    }

    /// Runs a kernel, and holds its answer against the interpreter's.
    fn check(&self, kernel: &Kernel) {
        let [from, to] = [self.spec.inputs()[0].dtype(), self.spec.outputs()[0].dtype()];
        let mut output = vec![0x5a; self.output.len()];
        let inputs = [Input::from_bytes(from, &self.input)];
        kernel.run(&inputs, &mut [Output::from_bytes(to, &mut output)]).expect("the right buffers");
        assert_eq!(output, self.output, "{}", self.spec);
    }
}

/// Random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, count: u64) -> usize {
        (self.next() % count) as usize
    }
}

/// Bytes of resident memory.
fn resident_bytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kibibytes: i64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes << 10
}

/// Mappings of memory.
fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("Linux tells").lines().count()
}
