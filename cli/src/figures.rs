//! Figures as a person reads them.

/// A time: `812 ns`, `12.3 us`, `4.56 ms`, `1.23 s`.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 999.5 => format!("{} ns", digits(ns)),
        _ if ns < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// A rate in GB/s (10^9 bytes a second): `39.4`.
pub fn rate(bytes: u64, ns: f64) -> String {
    digits(bytes as f64 / ns)
}

/// A number of bytes: `800 B`, `16 KB`, `256 MB`, in powers of 1024.
pub fn size(bytes: u64) -> String {
    let size = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KB", digits(size / 1024.0)),
        0x10_0000..0x4000_0000 => format!("{} MB", digits(size / 1048576.0)),
        _ => format!("{} GB", digits(size / 1073741824.0)),
    }
}

/// Three significant digits, more where they stand before the point; integers without a point.
fn digits(value: f64) -> String {
    let decimals = match value {
        _ if value.fract() == 0.0 || value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(["812 ns", "1.00 us", "12.3 us", "100 us"], [812.0, 999.9, 12_345.0, 99_990.0].map(time).each_ref());
        assert_eq!(["4.56 ms", "1.23 s"], [4.56e6, 1.234e9].map(time).each_ref());
        assert_eq!(["800 B", "16 KB", "256 MB", "1.50 GB"], [800, 16 << 10, 256 << 20, 3 << 29].map(size).each_ref());
        assert_eq!(rate(100, 2.5), "40");
    }
}
