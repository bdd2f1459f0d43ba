//! `doctor`: what this machine gives to kernels, and what is missing.

use crate::bench::memory;
use crate::failure::Failure;
use crate::figures;
use crate::style::Style;
use cranefold::{Compiler, Input, Output, Spec};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Prints a line for each finding.
///
/// # Errors
/// [`Failure::Compile`] where this machine is no target; [`Failure::WrongAnswer`] if a kernel is wrong.
pub fn doctor(out: &mut dyn Write) -> Result<(), Failure> {
    let style = Style::of_stdout();
    let mut line = |name: &str, text: &str| writeln!(out, "{} {text}", style.name(name, 9)).map_err(Failure::Stdout);
    line(
        "version",
        &format!("{}, results of version {}", env!("CARGO_PKG_VERSION"), cranefold::results::RESULTS_VERSION),
    )?;
    let compiler = Compiler::host()?;
    line("target", &format!("{} {}", std::env::consts::ARCH, std::env::consts::OS))?;
    let vectors = compiler.vectors();
    let widest = match (vectors.bits, cfg!(target_arch = "x86_64")) {
        (0, _) => "none: all code is scalar".to_string(),
        (128, true) => "128 bits: AVX2 with FMA, or AVX-512, is missing, which gives 256 or 512".into(),
        (256, true) => "256 bits: AVX-512 (F, BW, DQ, VL) is missing, which gives 512".into(),
        (bits, _) => format!("{bits} bits"),
    };
    line("vectors", &widest)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    line("threads", &format!("{cores} at most run at once; kernels take one if `--threads` is not given"))?;
    line("caches", &caches())?;
    let rates = memory::SIZES.iter().zip(memory::ladder()?);
    let rates =
        rates.map(|(&size, ns)| format!("{} GB/s from {}", figures::rate(size as u64, ns), figures::size(size as u64)));
    line("memory", &format!("one core reads {}", rates.collect::<Vec<_>>().join(", ")))?;
    line("pages", &huge_pages())?;
    line("perf", &perf_map())?;
    line("kernel", &check(&compiler)?)
}

/// The caches of the first core, as Linux tells them.
fn caches() -> String {
    let read = |index: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
        fs::read_to_string(path).ok().map(|text| text.trim().to_string())
    };
    let of = |index| {
        let (level, kind, size) = (read(index, "level")?, read(index, "type")?, read(index, "size")?);
        (kind != "Instruction").then(|| format!("{size} of level {level}"))
    };
    let all: Vec<String> = (0..8).filter_map(of).collect();
    if all.is_empty() { "not told by this system".into() } else { all.join(", ") }
}

fn huge_pages() -> String {
    match fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled") {
        Ok(text) if text.contains("[never]") => {
            "4 KB alone: huge pages are off, so large arrays miss the table of pages".into()
        }
        Ok(text) => {
            let chosen = text.split(['[', ']']).nth(1).unwrap_or("on");
            format!("huge pages are given ({chosen})")
        }
        Err(_) => "not told by this system".into(),
    }
}

/// The place of names for `perf`, and whether they can be written.
fn perf_map() -> String {
    if !cfg!(target_os = "linux") {
        return "there are names for `perf` on Linux alone".into();
    }
    let folder = Path::new("/tmp");
    let is_writable = fs::metadata(folder).is_ok_and(|m| m.is_dir() && !m.permissions().readonly());
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let level = match paranoid.trim().parse::<i32>() {
        Ok(level) if level > 2 => format!("; perf_event_paranoid is {level}: only root may count events"),
        Ok(level) => format!("; perf_event_paranoid is {level}"),
        Err(_) => String::new(),
    };
    if is_writable {
        format!("names for `perf` go to /tmp/perf-PID.map{level}")
    } else {
        "/tmp cannot be written".into()
    }
}

/// Compiles and runs a small kernel.
fn check(compiler: &Compiler) -> Result<String, Failure> {
    let spec: Spec = "sum i32[1000]".parse()?;
    let kernel = compiler.compile(&spec)?;
    let (x, mut total) = ((1..=1000).collect::<Vec<i32>>(), [0i32]);
    kernel.run(&[Input::from(&x[..])], &mut [Output::from(&mut total[..])])?;
    if total != [500_500] {
        return Err(Failure::WrongAnswer { wrong: format!("`{spec}` of 1 to 1000 is {}", total[0]) });
    }
    Ok(format!("compiled in {} and right", figures::time(kernel.facts().compile_ns as f64)))
}
