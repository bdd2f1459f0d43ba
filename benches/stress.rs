//! A compiler under load: memory after many kernels, many kernels at once, and threads that evict one another's.
//!
//!     cargo bench --bench stress
//!     cargo bench --bench stress -- 1000      a thousandth of it
//!
//! It takes some four minutes on two cores, and panics where an answer has other bits than the interpreter's.

#[path = "stress/work.rs"]
mod work;

use cranefold::Error;
use std::time::Duration;
use work::{Memory, alive, cycles, hammer};

fn main() -> Result<(), Error> {
    let share = std::env::args().find_map(|argument| argument.parse::<usize>().ok()).unwrap_or(1).max(1);
    tell("compiled and dropped", &cycles((200_000 / share).max(1))?);
    tell("alive at once", &alive((100_000 / share).max(1))?);
    let time = Duration::from_secs(60) / share as u32;
    let hammered = hammer(8, time)?;
    println!(
        "8 threads for {time:?}: {} answers, all of the interpreter's bits; {:?}",
        hammered.answers, hammered.told
    );
    Ok(())
}

fn tell(what: &str, memory: &Memory) {
    let Memory { kernels, grown_bytes, mappings, each } = memory;
    println!(
        "{kernels} kernels {what}: {:.1} MB more memory, {mappings} mappings, {each:?} each",
        *grown_bytes as f64 / 1e6
    );
}
