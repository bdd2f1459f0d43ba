//! The charts of a page: a roofline, bars, and rates over sizes.

use super::html::Svg;
use crate::figures;

/// The colours of lines, in order.
const COLOURS: [&str; 5] = super::html::LINES;

/// An axis of powers: values from the least to the greatest, at pixels from one end to the other.
struct Axis {
    values: (f64, f64),
    pixels: (f64, f64),
}

impl Axis {
    /// An axis on which all of the values lie, from a power of `base` to another.
    fn over(values: impl Iterator<Item = f64>, base: f64, pixels: (f64, f64)) -> Axis {
        let positive = values.filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if high > 0.0 { (low, high) } else { (1.0, base) };
        let (low, high) = (base.powf(low.log(base).floor()), base.powf(high.log(base).ceil()));
        Axis { values: (low, if high > low { high } else { low * base }), pixels }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value / self.values.0).ln() / (self.values.1 / self.values.0).ln();
        self.pixels.0 + share.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    fn ticks(&self, base: f64) -> Vec<f64> {
        let count = ((self.values.1 / self.values.0).log(base)).round() as i32;
        (0..=count).map(|n| self.values.0 * base.powi(n)).collect()
    }
}

/// A number of an axis: `0.01`, `1`, `100`.
fn tick(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

/// A kernel on the roofline of a machine.
pub struct Roofline {
    /// Operations for each byte that is moved.
    pub operations_per_byte: f64,
    /// Bytes moved by a call.
    pub bytes: f64,
    /// The expected time, if there is a model, and the measured one, in ns.
    pub times_ns: (Option<f64>, f64),
    /// Levels of memory, with bytes per ns.
    pub levels: Vec<(String, f64)>,
    /// The number of the level that holds the data.
    pub level: usize,
    /// Operations per ns that the vector units begin.
    pub peak: f64,
}

/// The roofline: operations per second over operations per byte, on axes of powers.
pub fn roofline(of: &Roofline) -> Svg {
    let (width, height) = (1080.0, 380.0);
    let rate = |ns: f64| of.operations_per_byte * of.bytes / ns;
    let points = [of.times_ns.0.map(rate), Some(rate(of.times_ns.1))];
    let slowest = of.levels.iter().map(|l| l.1).fold(f64::INFINITY, f64::min);
    let fastest = of.levels.iter().map(|l| l.1).fold(0.0, f64::max);
    let ridge = of.peak / slowest;
    let x = Axis::over(
        [of.operations_per_byte / 4.0, of.operations_per_byte * 4.0, ridge * 2.0].into_iter(),
        10.0,
        (64.0, 700.0),
    );
    let rates = points.into_iter().flatten().flat_map(|p| [p / 2.0, p]).chain([of.peak, of.peak * 1.5]);
    let y = Axis::over(rates.chain([x.values.0 * fastest]), 10.0, (320.0, 24.0));
    let mut svg = Svg::new(width, height);
    for value in x.ticks(10.0) {
        svg.grid([(x.at(value), 320.0), (x.at(value), 24.0)]);
        svg.words((x.at(value), 338.0), "middle", "small mute", &tick(value));
    }
    for value in y.ticks(10.0) {
        svg.grid([(64.0, y.at(value)), (700.0, y.at(value))]);
        svg.words((58.0, y.at(value) + 4.0), "end", "small mute", &tick(value));
    }
    svg.words((382.0, 360.0), "middle", "mute", "operations for each byte moved");
    svg.words((8.0, 14.0), "start", "mute", "billions of operations a second");
    svg.line(&[(x.at(of.peak / fastest), y.at(of.peak)), (700.0, y.at(of.peak))], "mute", false);
    svg.words((696.0, y.at(of.peak) - 6.0), "end", "small", &format!("vector units: {:.0}", of.peak));
    for (number, (name, bytes_per_ns)) in of.levels.iter().enumerate() {
        let start = (y.values.0 / bytes_per_ns).max(x.values.0);
        let end = (of.peak / bytes_per_ns).min(x.values.1);
        if start >= end {
            continue;
        }
        let ends = [(x.at(start), y.at(start * bytes_per_ns)), (x.at(end), y.at(end * bytes_per_ns))];
        svg.line(&ends, COLOURS[number % COLOURS.len()], number != of.level);
        // The names stand below one another beside the chart, each after a stroke of its line.
        let at = (716.0, 98.0 + 20.0 * number as f64);
        svg.line(&[(at.0, at.1 - 4.0), (at.0 + 26.0, at.1 - 4.0)], COLOURS[number % COLOURS.len()], number != of.level);
        let here = if number == of.level { ", where the data lie" } else { "" };
        svg.words((at.0 + 32.0, at.1), "start", "small", &format!("{name}: {bytes_per_ns:.0} GB/s{here}"));
    }
    let at = x.at(of.operations_per_byte);
    for (rate, name, full) in [(points[0], "predicted", false), (points[1], "measured", true)] {
        let Some(rate) = rate else { continue };
        svg.dot((at, y.at(rate)), "red", full, &format!("{name}: {rate:.1} billion operations a second"));
    }
    let legend = [(points[0], "predicted", false), (points[1], "measured", true)];
    for (number, (rate, name, full)) in legend.into_iter().enumerate() {
        let row = 44.0 + 20.0 * number as f64;
        svg.dot((729.0, row - 4.0), "red", full, name);
        let words = rate.map_or(format!("{name}: no model"), |rate| format!("{name}: {rate:.1}"));
        svg.words((748.0, row), "start", "small", &words);
    }
    svg
}

/// Bars of times, the first one marked.
pub fn bars(rows: &[(String, f64)]) -> Svg {
    let most = rows.iter().map(|(_, ns)| *ns).fold(1e-9, f64::max);
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) as f64;
    let left = (longest * 7.3 + 20.0).clamp(120.0, 520.0);
    let mut svg = Svg::new(left + 500.0, 26.0 * rows.len() as f64 + 12.0);
    for (number, (name, ns)) in rows.iter().enumerate() {
        let y = 8.0 + 26.0 * number as f64;
        let length = (300.0 * ns / most).max(2.0);
        svg.words((left - 10.0, y + 14.0), "end", "", name);
        svg.rect((left, y), (length, 18.0), if number == 0 { "orange" } else { "sky" });
        let times = if number == 0 { " (chosen)".into() } else { format!(" ({:.2} times)", ns / rows[0].1) };
        svg.words((left + length + 8.0, y + 14.0), "start", "small", &(figures::time(*ns) + &times));
    }
    svg
}

/// A line of rates over sizes.
pub struct Series {
    pub name: String,
    /// Bytes and GB/s.
    pub points: Vec<(f64, f64)>,
    /// True of a ceiling, which is dashed.
    pub is_ceiling: bool,
}

/// Rates over sizes.
pub fn rates(series: &[Series]) -> Svg {
    let below = 396.0;
    let mut svg = Svg::new(760.0, below + 20.0 * series.len() as f64 + 8.0);
    let points = || series.iter().flat_map(|s| s.points.iter().copied());
    let x = Axis::over(points().map(|p| p.0), 4.0, (64.0, 740.0));
    let most = points().map(|p| p.1).fold(1.0, f64::max);
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0].into_iter().find(|s| most / s <= 8.0).unwrap_or(500.0);
    let top = (most / step).ceil() * step;
    let y = |rate: f64| 336.0 - 306.0 * rate / top;
    for size in x.ticks(4.0) {
        svg.grid([(x.at(size), 336.0), (x.at(size), 30.0)]);
        svg.words((x.at(size), 354.0), "middle", "small mute", &figures::size(size as u64));
    }
    for n in 0..=(top / step) as u32 {
        let rate = f64::from(n) * step;
        svg.grid([(64.0, y(rate)), (740.0, y(rate))]);
        svg.words((58.0, y(rate) + 4.0), "end", "small mute", &format!("{rate:.0}"));
    }
    svg.words((8.0, 18.0), "start", "mute", "GB/s read and written");
    svg.words((400.0, 376.0), "middle", "mute", "bytes read and written");
    for (number, Series { name, points, is_ceiling }) in series.iter().enumerate() {
        let colour = if *is_ceiling { "mute" } else { COLOURS[number % COLOURS.len()] };
        let line: Vec<(f64, f64)> = points.iter().map(|&(bytes, rate)| (x.at(bytes), y(rate))).collect();
        svg.line(&line, colour, *is_ceiling);
        for (&at, (bytes, rate)) in line.iter().zip(points).filter(|_| !is_ceiling) {
            let text = format!("{name}: {rate:.1} GB/s at {}", figures::size(*bytes as u64));
            svg.dot(at, colour, true, &text);
        }
        let row = below + 20.0 * number as f64;
        svg.line(&[(64.0, row - 4.0), (92.0, row - 4.0)], colour, *is_ceiling);
        svg.words((100.0, row), "start", "small", name);
    }
    svg
}
