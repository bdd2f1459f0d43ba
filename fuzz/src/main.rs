//! `cranefold-fuzz TARGET`: tries inputs and keeps those that break a law.

use clap::Parser;
use cranefold_fuzz::inputs::Inputs;
use cranefold_fuzz::minimise::minimised;
use cranefold_fuzz::{TARGETS, Target};
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Tries inputs of a target. Each that panics in a new way is minimised and kept in fuzz/corpus/TARGET/.
#[derive(Debug, Parser)]
#[command(name = "cranefold-fuzz")]
struct Args {
    /// The target: spec, region, problem, schedule, nest, program, expression, combiner, layout, value, isa, onednn,
    /// stages, compile, given, run, run_region, state, onnx, openvino, graph or plan
    target: String,
    /// The number of inputs, after the corpus
    #[arg(long, default_value_t = u64::MAX)]
    inputs: u64,
    /// The seed of the inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most seconds that the search takes
    #[arg(long)]
    seconds: Option<u64>,
    /// A file to which each input is written before it is tried, so that an input that ends the process is kept
    #[arg(long, value_name = "FILE")]
    last: Option<PathBuf>,
}

/// The time after which an input fails.
const SLOW: Duration = Duration::from_secs(2);

/// The number of ways of failing that ends the search.
const MOST_FAILURES: usize = 20;

/// The most tries while a failing input is made smaller.
const TRIES: usize = 4000;

/// The place of the last panic, and its message.
static PANIC: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

fn main() -> ExitCode {
    let args = Args::parse();
    match search(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cranefold-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

/// The outcome of an input.
enum Outcome {
    Accepted,
    Refused,
    /// The failure, named by the place of the panic and the beginning of its message.
    Failed(String),
}

fn tried(target: &Target, bytes: &[u8]) -> Outcome {
    let start = Instant::now();
    let result = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    match result {
        Err(_) => {
            let panic = PANIC.lock().expect("the hook does not panic");
            let plain = panic.1.chars().filter(|c| !c.is_ascii_digit());
            Outcome::Failed(format!("{}: {}", panic.0, plain.take(40).collect::<String>()))
        }
        Ok(_) if start.elapsed() > SLOW => Outcome::Failed("too slow".into()),
        Ok(true) => Outcome::Accepted,
        Ok(false) => Outcome::Refused,
    }
}

/// Tries the inputs; returns true if all of them kept the law.
fn search(args: &Args) -> Result<bool, Box<dyn Error>> {
    let target = cranefold_fuzz::target(&args.target).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        format!("`{}` is no target; they are {}", args.target, names.join(" "))
    })?;
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |l| format!("{}:{}", l.file(), l.line()));
        let message = info.payload_as_str().unwrap_or("").to_string();
        *PANIC.lock().expect("the hook does not panic") = (place, message);
    }));
    let corpus = target.corpus()?.into_iter().map(|(_, bytes)| bytes);
    let made = Inputs::new(target, args.seed).take(usize::try_from(args.inputs).unwrap_or(usize::MAX));
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    let (mut count, mut accepted, mut bytes) = (0u64, 0u64, 0u64);
    let mut failures: HashMap<String, u64> = HashMap::new();
    for input in corpus.chain(made) {
        if args.seconds.is_some_and(|most| start.elapsed().as_secs() >= most) || failures.len() >= MOST_FAILURES {
            break;
        }
        if let Some(last) = &args.last {
            fs::write(last, &input)?;
        }
        let before = Instant::now();
        let outcome = tried(target, &input);
        slowest = slowest.max(before.elapsed());
        (count, bytes) = (count + 1, bytes + input.len() as u64);
        match outcome {
            Outcome::Accepted => accepted += 1,
            Outcome::Refused => {}
            Outcome::Failed(how) => {
                let known = failures.entry(how.clone()).or_default();
                *known += 1;
                if *known == 1 {
                    keep(target, &input, &how)?;
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}: {count} inputs of seed {} in {seconds:.1} s, {:.0} a second, {:.0} bytes each; {:.1} % accepted; slowest {:.1} ms; \
         {} failures in {} ways",
        target.name,
        args.seed,
        count as f64 / seconds,
        bytes as f64 / count.max(1) as f64,
        100.0 * accepted as f64 / count.max(1) as f64,
        slowest.as_secs_f64() * 1e3,
        failures.values().sum::<u64>(),
        failures.len(),
    );
    Ok(failures.is_empty())
}

/// Minimises the input and writes it to the corpus.
fn keep(target: &Target, input: &[u8], how: &str) -> Result<(), Box<dyn Error>> {
    let message = PANIC.lock().expect("the hook does not panic").1.clone();
    let least = minimised(input, TRIES, |bytes| matches!(tried(target, bytes), Outcome::Failed(other) if other == how));
    let hash = least.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let path = target.corpus_dir().join(format!("{hash:016x}"));
    fs::create_dir_all(target.corpus_dir())?;
    fs::write(&path, &least)?;
    let cut = |text: &str| text.chars().take(1000).collect::<String>();
    println!("{}: {how}\n{}\n{}\n", path.display(), cut(&message), cut(&String::from_utf8_lossy(&least)));
    Ok(())
}
