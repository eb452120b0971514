//! Figures as people read them.

/// Microseconds in a fitting unit, with three digits.
pub fn time(us: f64) -> String {
    in_units(us, [(1e6, "s"), (1e3, "ms"), (0.0, "us")])
}

/// Bytes in a fitting unit, with three digits.
pub fn bytes(count: u64) -> String {
    match count as f64 {
        count if count < 1e3 => format!("{count} B"),
        count => in_units(count, [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")]),
    }
}

fn in_units(value: f64, units: [(f64, &str); 3]) -> String {
    let fitting = units.into_iter().find(|(size, _)| value >= *size).unwrap_or(units[2]);
    format!("{} {}", digits(value / fitting.0.max(1.0)), fitting.1)
}

fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A whole number with commas.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|digits| str::from_utf8(digits).ok())
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit() {
        assert_eq!(time(4.5678), "4.57 us");
        assert_eq!(time(123_456.0), "123 ms");
        assert_eq!(time(2_500_000.0), "2.50 s");
        assert_eq!((bytes(12), bytes(12_345_678)), ("12 B".into(), "12.3 MB".into()));
    }

    #[test]
    fn large_numbers_have_commas() {
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0.0, 999.0, 1000.4, 12_345_678.0].map(thousands)
        );
    }
}
