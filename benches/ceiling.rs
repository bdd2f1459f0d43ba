//! How fast hand-written loops reduce memory on this machine: what kernels are held against.
//!
//!     cargo bench --bench ceiling                      each loop at 16 KB, 512 KB, 8 MB and 256 MB
//!     cargo bench --bench ceiling -- "f32 max"         loops with this in their name
//!     cargo bench --bench ceiling -- --curve           f32 sums over sizes from 32 B to 256 MB
//!     cargo bench --bench ceiling -- --json            a line of JSON for each figure
//!
//! Rates are bytes of input over the median time of a pass on one thread, in GB/s (10^9 bytes a second); pin it to a
//! core (`taskset -c 1`). Memory is on huge pages where the system gives them, outer sums are of matrix rows
//! of 4 KB. The loops are those of `cranefold-ceiling`, which its tests check.

use cranefold_ceiling::{HandLoop, loops};
use memmap2::MmapMut;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes read: in the first-, second- and third-level cache of most machines, and in none.
const SIZES: [usize; 4] = [16 << 10, 512 << 10, 8 << 20, 256 << 20];

/// Bytes of a row of outer sums, and where they are written.
const ROW: usize = 4096;
const LINE: usize = 64;

/// Samples of a figure, the time after which there are no more, and the least that a sample lasts.
const SAMPLES: std::ops::Range<usize> = 9..4096;
const BUDGET: Duration = Duration::from_millis(60);
const SAMPLE_NS: f64 = 2e5;

/// What the command line asks for.
#[derive(Default)]
struct Args {
    json: bool,
    curve: bool,
    filter: String,
}

fn main() {
    let mut args = Args::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // Cargo's own.
            "--bench" => {}
            "--json" => args.json = true,
            "--curve" => args.curve = true,
            filter => args.filter = filter.into(),
        }
    }
    let loops: Vec<HandLoop> = loops().into_iter().filter(|hand| hand.name().contains(&args.filter)).collect();
    if loops.is_empty() {
        println!("no loop of `{}` that this machine can run", args.filter);
    } else if args.curve {
        curve(&loops, args.json);
    } else {
        ladder(&loops, args.json);
    }
}

/// Each loop over each size.
fn ladder(loops: &[HandLoop], json: bool) {
    let mut memory = Memory::of(SIZES[SIZES.len() - 1]);
    if !json {
        let sizes = SIZES.map(|size| format!("{:>8}", size_text(size))).concat();
        println!("{:<38}{sizes}  GB/s", "loop");
    }
    for hand in loops {
        memory.fill(hand);
        let mut line = format!("{:<38}", hand.name());
        for size in SIZES {
            let figure = Figure::of(hand, memory.first(size));
            line += &format!("{:>8.1}", figure.rate(figure.median_ns));
            if json {
                figure.print("ladder");
            }
        }
        if !json {
            println!("{line}");
        }
    }
}

/// Sums of f32 over sizes that grow by the square root of 2.
fn curve(loops: &[HandLoop], json: bool) {
    let loops: Vec<&HandLoop> = loops.iter().filter(|hand| hand.what() == "f32 sum").collect();
    let Some(first) = loops.first() else { return println!("the curve is of loops of `f32 sum`") };
    let largest = SIZES[SIZES.len() - 1];
    let mut memory = Memory::of(largest);
    memory.fill(first);
    if !json {
        let bits: String = loops.iter().map(|hand| format!("{:>8}", hand.bits())).collect();
        println!("{:>10}{bits}  bits, GB/s", "bytes");
    }
    let mut half_steps = 0;
    loop {
        let size = (32.0 * 2f64.powf(f64::from(half_steps) / 2.0)).round() as usize / 4 * 4;
        if size > largest {
            return;
        }
        let figures: Vec<Figure> = loops.iter().map(|hand| Figure::of(hand, memory.first(size))).collect();
        if json {
            figures.iter().for_each(|figure| figure.print("curve"));
        } else {
            let rates: String = figures.iter().map(|f| format!("{:>8.1}", f.rate(f.median_ns))).collect();
            println!("{size:>10}{rates}");
        }
        half_steps += 1;
    }
}

/// What was measured of a loop over some bytes.
struct Figure {
    hand: HandLoop,
    bytes: usize,
    median_ns: f64,
    min_ns: f64,
}

impl Figure {
    fn of(hand: &HandLoop, bytes: &[u8]) -> Figure {
        let mut sums = vec![0; ROW + LINE];
        let start = sums.as_ptr().align_offset(LINE);
        let sums = &mut sums[start..start + ROW];
        let mut time = |passes: usize| {
            let start = Instant::now();
            for _ in 0..passes {
                black_box(hand.run(black_box(bytes), black_box(&mut *sums)));
            }
            start.elapsed().as_nanos() as f64 / passes as f64
        };
        // The first pass warms up.
        time(1);
        let passes = (SAMPLE_NS / time(2).max(1.0)).max(1.0) as usize;
        let mut samples = vec![];
        let start = Instant::now();
        while samples.len() < SAMPLES.start || samples.len() < SAMPLES.end && start.elapsed() < BUDGET {
            samples.push(time(passes));
        }
        samples.sort_by(f64::total_cmp);
        Figure { hand: *hand, bytes: bytes.len(), median_ns: samples[samples.len() / 2], min_ns: samples[0] }
    }

    /// GB/s.
    fn rate(&self, ns: f64) -> f64 {
        self.bytes as f64 / ns
    }

    /// A line of JSON.
    fn print(&self, mode: &str) {
        let Figure { hand, bytes, median_ns, min_ns } = self;
        let (bits, form) = (hand.bits(), hand.form());
        let op = if form.is_empty() { hand.what().to_string() } else { format!("{}, {form}", hand.what()) };
        let kernel: String = hand.name().chars().filter(char::is_ascii_alphanumeric).collect();
        println!(
            r#"{{"mode":"{mode}","kernel":"{kernel}","op":"{op}","width":{bits},"bytes":{bytes},"thp":1,"median_ns":{median_ns:.2},"min_ns":{min_ns:.2},"gbs_median":{:.2},"gbs_max":{:.2}}}"#,
            self.rate(*median_ns),
            self.rate(*min_ns),
        );
    }
}

fn size_text(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KB", bytes >> 10) } else { format!("{} MB", bytes >> 20) }
}

/// What loops read.
struct Memory {
    map: MmapMut,
    /// What it is filled with.
    elements: (&'static str, bool),
}

impl Memory {
    fn of(bytes: usize) -> Memory {
        let map = MmapMut::map_anon(bytes).expect("memory");
        // It is only advice: without it, figures of large sizes are lower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Memory { map, elements: ("", false) }
    }

    fn first(&self, bytes: usize) -> &[u8] {
        &self.map[..bytes]
    }

    /// Fills all of it with random elements for a loop: floats in [-0.5, 0.5), or 1 and -1 where products would become
    /// subnormal; integers over their range; 16-bit floats of small exponents.
    fn fill(&mut self, hand: &HandLoop) {
        let elements = (hand.input(), hand.what().ends_with("prod"));
        if self.elements == elements {
            return;
        }
        self.elements = elements;
        let mut state = 12345u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        };
        let mut float = || match elements.1 {
            true => [1.0, -1.0][(random() >> 31) as usize],
            false => f64::from(random() >> 8) * 2f64.powi(-24) - 0.5,
        };
        match elements.0 {
            "f32" => self.each(|| (float() as f32).to_le_bytes()),
            "f64" => self.each(|| float().to_le_bytes()),
            "bf16" => self.each(|| (0x3f00 | (random() >> 16) as u16 & 0x80ff).to_le_bytes()),
            "f16" => self.each(|| (0x3000 | (random() >> 16) as u16 & 0x83ff).to_le_bytes()),
            _ => self.each(|| random().to_be_bytes()),
        }
    }

    fn each<const E: usize>(&mut self, mut element: impl FnMut() -> [u8; E]) {
        self.map.as_chunks_mut().0.iter_mut().for_each(|bytes| *bytes = element());
    }
}
