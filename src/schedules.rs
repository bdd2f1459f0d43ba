//! A file of measured schedules, one a line:
//!
//! ```text
//! signature | features | version of the results | threads | schedule | ns
//! ```
//!
//! `cranefold tune` adds lines, and [`Builder::schedules`](crate::compiler::Builder::schedules) has a compiler take the
//! schedule of a line where it would choose one. A schedule decides no bit of a result, so that no line can change one.
//!
//! A compiler reads the file once, when it is built, and takes a schedule only if it fits the problem and its nests
//! verify. It ignores every line that is none: torn or of random bytes, of another target, of another version of the
//! results, or for another number of threads. The last line of a signature that fits counts.
//!
//! A line is added by one write at the end of the file, so that lines of several processes never mix.

use crate::keyed::KeyedSpec;
use crate::results::RESULTS_VERSION;
use crate::schedule::Schedule;
use rustc_hash::FxHashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::str::FromStr;

/// The most bytes of a file, and of a line.
const MOST_BYTES: u64 = 64 << 20;
const MOST_LINE_BYTES: usize = 4096;

/// A line: a schedule for a problem, with the time that a call took by it.
///
/// ```
/// use cranefold::schedules::{Measurement, append};
/// use cranefold::{Compiler, Spec};
///
/// let spec: Spec = "sum f32[1024,1024] axes=[0]".parse()?;
/// let path = std::env::temp_dir().join(format!("cranefold-{}.schedules", std::process::id()));
/// let keyed = Compiler::host()?.keyed(&spec);
/// append(&path, &Measurement::new(&keyed, "width=128 jam=2".parse()?, 52_000))?;
///
/// let compiler = Compiler::builder().schedules(&path).build()?;
/// assert_eq!(compiler.compile(&spec)?.schedule().to_string(), "width=128 jam=2 in_flight=1");
/// std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The hash of the signature of the code that a compiler chooses the schedule of.
    pub signature: u128,
    /// The target with its features, in canonical text: [`Target::canonical`](crate::Target::canonical).
    pub features: String,
    /// The version of the bits of results.
    pub results_version: u32,
    /// The number of threads that the compiler compiles for.
    pub threads: usize,
    /// The schedule.
    pub schedule: Schedule,
    /// The time of a call, in nanoseconds; it decides nothing.
    pub ns: u64,
}

impl Measurement {
    /// The line of a keyed spec without forced choices.
    pub fn new(keyed: &KeyedSpec, schedule: Schedule, ns: u64) -> Measurement {
        let signature = keyed.signature();
        Measurement {
            signature: signature.hash(),
            features: signature.target.to_string(),
            results_version: signature.results_version,
            threads: signature.bounds.threads,
            schedule,
            ns,
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measurement { signature, features, results_version, threads, schedule, ns } = self;
        write!(f, "{signature:032x} | {features} | {results_version} | {threads} | {schedule} | {ns}")
    }
}

/// A text that is no line of a file of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the line is not `signature | features | version of the results | threads | schedule | ns`")]
pub struct NotMeasured;

/// Reads a line without its end.
impl FromStr for Measurement {
    type Err = NotMeasured;

    fn from_str(line: &str) -> Result<Measurement, NotMeasured> {
        let fields: Vec<&str> = line.split(" | ").collect();
        let &[signature, features, version, threads, schedule, ns] = fields.as_slice() else { return Err(NotMeasured) };
        let signature = u128::from_str_radix(signature, 16).ok().filter(|_| signature.len() == 32);
        Ok(Measurement {
            signature: signature.ok_or(NotMeasured)?,
            features: features.to_string(),
            results_version: version.parse().map_err(|_| NotMeasured)?,
            threads: threads.parse().map_err(|_| NotMeasured)?,
            schedule: schedule.parse().map_err(|_| NotMeasured)?,
            ns: ns.parse().map_err(|_| NotMeasured)?,
        })
    }
}

/// Adds a line to a file, which is made if there is none, by one write at its end. Processes may do so at once. Where the
/// file ends inside of a line, as a machine that stopped may leave it, the new line begins after that end.
///
/// # Errors
/// The operating system's error; also if it took part of the line, which every reader then ignores.
pub fn append(path: &Path, measurement: &Measurement) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).read(true).open(path)?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let start = if last == [b'\n'] { "" } else { "\n" };
    let line = format!("{start}{measurement}\n");
    match file.write(line.as_bytes())? {
        written if written == line.len() => Ok(()),
        written => Err(io::Error::other(format!("{written} of {} bytes were written", line.len()))),
    }
}

/// The schedules of a file for one target and number of threads.
#[derive(Debug, Default)]
pub(crate) struct Schedules(FxHashMap<u128, Vec<Schedule>>);

impl Schedules {
    /// The schedules of a file; none if there is no such file.
    ///
    /// # Errors
    /// The operating system's error; also if the file is too large.
    pub fn read(path: &Path, features: &str, threads: usize) -> io::Result<Schedules> {
        let mut bytes = vec![];
        match File::open(path) {
            Ok(file) => file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Schedules::default()),
            Err(error) => return Err(error),
        };
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other(format!("it has more than {MOST_BYTES} bytes")));
        }
        let mut schedules = Schedules::default();
        // What follows the last end of a line is torn.
        let ended = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in bytes[..ended].split(|byte| *byte == b'\n').filter(|line| line.len() <= MOST_LINE_BYTES) {
            let measured = std::str::from_utf8(line).ok().and_then(|line| line.parse::<Measurement>().ok());
            let is_ours = |m: &Measurement| {
                m.features == features && m.results_version == RESULTS_VERSION && m.threads == threads
            };
            if let Some(measured) = measured.filter(is_ours) {
                schedules.0.entry(measured.signature).or_default().push(measured.schedule);
            }
        }
        Ok(schedules)
    }

    /// The schedules of a signature, the last line's first.
    pub fn of(&self, signature: u128) -> impl Iterator<Item = &Schedule> {
        self.0.get(&signature).into_iter().flatten().rev()
    }
}
