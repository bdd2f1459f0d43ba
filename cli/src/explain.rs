//! `explain`: the page of a kernel, its measured speed, and its pictures.

use crate::args::Explain;
use crate::arrays::moved_bytes;
use crate::bench::{Case, Measured, Order, measure};
use crate::check::broken_law;
use crate::failure::Failure;
use crate::figures;
use crate::given::Given;
use crate::output_files::{OutputFiles, STDOUT};
use crate::progress::Progress;
use crate::threads::{pool, tuned_compiler};
use crate::{notes, page};
use cranefold::Spec;
use std::io::Write;
use std::path::Path;

/// The time in which samples are taken.
const BUDGET_NS: f64 = 4e8;

/// Prints the page of a kernel, and with `--measure` the time of a call.
///
/// # Errors
/// If the spec or a forced choice is wrong; [`Failure::WrongAnswer`] if the result is.
pub fn explain(args: &Explain, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(from) = args.from {
        let kernel = Given::read(from, Path::new(&args.spec))?;
        let kernel =
            kernel.compile(&tuned_compiler(args.threads, args.schedules.as_deref())?, &args.forced.options()?)?;
        return write!(out, "{}", kernel.explain()?).map_err(Failure::Stdout);
    }
    let spec: Spec = args.spec.parse()?;
    let options = args.forced.options()?;
    let compiler = tuned_compiler(args.threads, args.schedules.as_deref())?;
    if !args.input.is_empty() && !args.measure && args.html.is_none() {
        return Err(Failure::Usage("--input is for what is timed: --measure or --html".into()));
    }
    let places = args.html.iter().map(|path| (path.clone(), "the page".to_string())).collect::<Vec<_>>();
    let read: Vec<_> = args.input.iter().enumerate().map(|(n, path)| (path.clone(), format!("input {n}"))).collect();
    let places = OutputFiles::of(&places, &read)?;
    let kernel = compiler.compile_with(&spec, &options)?;
    notes::print(&spec);
    if args.html.is_none() {
        write!(out, "{}", kernel.explain()?).map_err(Failure::Stdout)?;
    }
    if let Some(law) = broken_law(&spec) {
        writeln!(out, "{:<10} broken, as `Combiner::check` finds: {law}", "contract").map_err(Failure::Stdout)?;
    }
    if !args.measure && args.html.is_none() {
        return Ok(());
    }
    // The measurement takes a while, so the page is shown before.
    out.flush().map_err(Failure::Stdout)?;
    let case = Case { input: args.input.clone(), ..Case::of(spec) };
    let pool = pool(args.threads)?;
    let progress = Progress::start("measuring", true);
    let measured = measure(&case, compiler.target(), &options, &pool, BUDGET_NS, Order::Alone, 0)?;
    if let Some(path) = &args.html {
        progress.stage("drawing");
        let page = page::of_kernel(&case.spec, &kernel, &measured)?;
        drop(progress);
        let written = |error| Failure::Write { path: path.clone(), error };
        places.write(|_, _, file| file.write_all(page.as_bytes()).map_err(written))?;
        return match path.as_os_str() == STDOUT {
            true => Ok(()),
            false => writeln!(out, "{} has the pictures of {}", path.display(), case.spec).map_err(Failure::Stdout),
        };
    }
    drop(progress);
    writeln!(out, "{:<10} {}", "measured", speed(&case.spec, &measured, args.threads)).map_err(Failure::Stdout)
}

/// The measured time of a call, and its share of this machine's speed on the same data.
fn speed(spec: &Spec, measured: &Measured, threads: usize) -> String {
    let Measured { median_ns, samples, compile_ns, .. } = measured;
    let rate = figures::rate(moved_bytes(spec), *median_ns);
    let (name, ns) = match &measured.loop_ns {
        Some((row, ns)) => (format!("the loop `{row}`"), ns),
        None => ("a plain loop that reads as many bytes".into(), &measured.read_ns),
    };
    let alone = if threads > 1 { " on one thread" } else { "" };
    format!(
        "{} (median of {samples}), {rate} GB/s, {:.0} % of {name} here{alone}; compiled in {}",
        figures::time(*median_ns),
        100.0 * ns / median_ns,
        figures::time(*compile_ns)
    )
}
