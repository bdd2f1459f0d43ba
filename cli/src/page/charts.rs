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
    let (left, right, bottom) = (44.0, 392.0, 250.0);
    let rate = |ns: f64| of.operations_per_byte * of.bytes / ns;
    let points = [("predicted", of.times_ns.0.map(rate), false), ("measured", Some(rate(of.times_ns.1)), true)];
    let slowest = of.levels.iter().map(|l| l.1).fold(f64::INFINITY, f64::min);
    let fastest = of.levels.iter().map(|l| l.1).fold(0.0, f64::max);
    let ridge = of.peak / slowest;
    let x = Axis::over(
        [of.operations_per_byte / 4.0, of.operations_per_byte * 4.0, ridge * 2.0].into_iter(),
        10.0,
        (left, right),
    );
    let rates =
        points.iter().filter_map(|(_, rate, _)| *rate).flat_map(|p| [p / 2.0, p]).chain([of.peak, of.peak * 1.5]);
    let y = Axis::over(rates.chain([x.values.0 * fastest]), 10.0, (bottom, 24.0));
    let mut svg = Svg::fitting(400.0, bottom + 64.0 + ROW * (points.len() + of.levels.len() + 1) as f64);
    for value in x.ticks(10.0) {
        svg.grid([(x.at(value), bottom), (x.at(value), 24.0)]);
        svg.words((x.at(value).min(right - 10.0), bottom + 16.0), "middle", "small mute", &tick(value));
    }
    for value in y.ticks(10.0) {
        svg.grid([(left, y.at(value)), (right, y.at(value))]);
        svg.words((left - 5.0, y.at(value) + 4.0), "end", "small mute", &tick(value));
    }
    svg.words(((left + right) / 2.0, bottom + 34.0), "middle", "mute", "operations for each byte moved");
    svg.words((4.0, 14.0), "start", "mute", "billions of operations a second");
    svg.line(&[(x.at(of.peak / fastest), y.at(of.peak)), (right, y.at(of.peak))], "mute", false);
    let mut row = bottom + 64.0;
    for (name, rate, full) in points {
        let words = rate.map_or("no model".into(), |rate| format!("{rate:.1} billion operations a second"));
        let words = format!("{name}: {words}");
        if let Some(rate) = rate {
            svg.dot((x.at(of.operations_per_byte), y.at(rate)), "red", full, &words);
        }
        svg.dot((22.0, row - 4.0), "red", full, name);
        svg.words((44.0, row), "start", "", &words);
        row += ROW;
    }
    // The names of lines stand below one another, each after a stroke of its line.
    let stroke = |svg: &mut Svg, row: f64, colour: &str, dashed: bool, words: &str| {
        svg.line(&[(8.0, row - 4.0), (36.0, row - 4.0)], colour, dashed);
        svg.words((44.0, row), "start", "", words);
    };
    stroke(&mut svg, row, "mute", false, &format!("vector units: {:.0} billion operations a second", of.peak));
    for (number, (name, bytes_per_ns)) in of.levels.iter().enumerate() {
        let start = (y.values.0 / bytes_per_ns).max(x.values.0);
        let end = (of.peak / bytes_per_ns).min(x.values.1);
        let (colour, dashed) = (COLOURS[number % COLOURS.len()], number != of.level);
        if start < end {
            let ends = [(x.at(start), y.at(start * bytes_per_ns)), (x.at(end), y.at(end * bytes_per_ns))];
            svg.line(&ends, colour, dashed);
        }
        let here = if number == of.level { ", where the data lie" } else { "" };
        row += ROW;
        stroke(&mut svg, row, colour, dashed, &format!("{name}: {bytes_per_ns:.0} GB/s{here}"));
    }
    svg
}

/// The height of a line of a legend.
const ROW: f64 = 19.0;

/// The words of a text in lines of at most so many characters; a longer word is a line.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => *line += &format!(" {word}"),
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// Bars of times, each below its name, the first one marked.
pub fn bars(rows: &[(String, f64)]) -> Svg {
    let most = rows.iter().map(|(_, ns)| *ns).fold(1e-9, f64::max);
    let named: Vec<(Vec<String>, f64)> = rows.iter().map(|(name, ns)| (lines(name, 54), *ns)).collect();
    let lines: usize = named.iter().map(|(lines, _)| lines.len()).sum();
    let mut svg = Svg::fitting(400.0, 15.0 * lines as f64 + 32.0 * rows.len() as f64 + 4.0);
    let mut y = 0.0;
    for (number, (lines, ns)) in named.iter().enumerate() {
        for line in lines {
            y += 15.0;
            svg.words((4.0, y), "start", "", line);
        }
        let length = (220.0 * ns / most).max(2.0);
        svg.rect((4.0, y + 5.0), (length, 17.0), if number == 0 { "orange" } else { "sky" });
        let times = if number == 0 { " (chosen)".into() } else { format!(" ({:.2} times)", ns / rows[0].1) };
        svg.words((length + 12.0, y + 18.0), "start", "", &(figures::time(*ns) + &times));
        y += 32.0;
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
    let (left, right, bottom) = (40.0, 492.0, 300.0);
    let named: Vec<(Vec<String>, &Series)> = series.iter().map(|s| (lines(&s.name, 60), s)).collect();
    let count: usize = named.iter().map(|(lines, _)| lines.len()).sum();
    let mut svg = Svg::fitting(520.0, bottom + 56.0 + ROW * count as f64);
    let points = || series.iter().flat_map(|s| s.points.iter().copied());
    let x = Axis::over(points().map(|p| p.0), 4.0, (left, right));
    let most = points().map(|p| p.1).fold(1.0, f64::max);
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0].into_iter().find(|s| most / s <= 8.0).unwrap_or(500.0);
    let top = (most / step).ceil() * step;
    let y = |rate: f64| bottom - (bottom - 30.0) * rate / top;
    for size in x.ticks(4.0) {
        svg.grid([(x.at(size), bottom), (x.at(size), 30.0)]);
        svg.words((x.at(size), bottom + 16.0), "middle", "small mute", &figures::size(size as u64));
    }
    for n in 0..=(top / step) as u32 {
        let rate = f64::from(n) * step;
        svg.grid([(left, y(rate)), (right, y(rate))]);
        svg.words((left - 5.0, y(rate) + 4.0), "end", "small mute", &format!("{rate:.0}"));
    }
    svg.words((4.0, 18.0), "start", "mute", "GB/s read and written");
    svg.words(
        ((left + right) / 2.0, bottom + 34.0),
        "middle",
        "mute",
        "bytes read and written, as the first extent grows",
    );
    let mut row = bottom + 58.0;
    for (number, (names, Series { name, points, is_ceiling })) in named.iter().enumerate() {
        let colour = if *is_ceiling { "mute" } else { COLOURS[number % COLOURS.len()] };
        let line: Vec<(f64, f64)> = points.iter().map(|&(bytes, rate)| (x.at(bytes), y(rate))).collect();
        svg.line(&line, colour, *is_ceiling);
        for (&at, (bytes, rate)) in line.iter().zip(points).filter(|_| !is_ceiling) {
            let text = format!("{name}: {rate:.1} GB/s at {}", figures::size(*bytes as u64));
            svg.dot(at, colour, true, &text);
        }
        svg.line(&[(left, row - 4.0), (left + 28.0, row - 4.0)], colour, *is_ceiling);
        for line in names {
            svg.words((left + 36.0, row), "start", "", line);
            row += ROW;
        }
    }
    svg
}
