//! Figures as people read them.

/// What is less by no more than this share has as many digits as the next power of ten.
const ROUNDED_UP: f64 = 5e-4;

/// Microseconds in a fitting unit, with three digits.
pub fn time(us: f64) -> String {
    in_units(us, [(1e6, "s"), (1e3, "ms"), (0.0, "µs")])
}

/// Bytes in a fitting unit, with three digits.
pub fn bytes(count: u64) -> String {
    match count as f64 {
        count if count < 1e3 => format!("{count} B"),
        count => in_units(count, [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")]),
    }
}

fn in_units(value: f64, units: [(f64, &str); 3]) -> String {
    let is_fitting = |(size, _): &(f64, &str)| value >= *size * (1.0 - ROUNDED_UP);
    let (size, unit) = units.into_iter().find(is_fitting).unwrap_or(units[2]);
    format!("{} {unit}", digits(value / size.max(1.0)))
}

fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 * (1.0 - ROUNDED_UP) => format!("{value:.0}"),
        value if value >= 10.0 * (1.0 - ROUNDED_UP) => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// How many of a noun.
pub fn several(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count as f64), if count == 1 { "" } else { "s" })
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

/// A text that others may have sent, as it may be shown: characters that control a terminal become
/// pictures, `␛` for escape, or `�`. Lines and tabs stay.
pub fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter,
        '\0'..='\x1f' => char::from_u32(0x2400 + letter as u32).unwrap_or('\u{fffd}'),
        '\x7f' => '␡',
        // Further controls, and those that turn the direction of what follows.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        _ => letter,
    };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit() {
        assert_eq!(time(4.5678), "4.57 µs");
        assert_eq!(time(123_456.0), "123 ms");
        assert_eq!([9.996, 99.96, 999.96].map(time), ["10.0 µs", "100 µs", "1.00 ms"]);
        assert_eq!([9.99, 99.94, 999.4].map(time), ["9.99 µs", "99.9 µs", "999 µs"]);
        assert_eq!(time(2_500_000.0), "2.50 s");
        assert_eq!((bytes(12), bytes(12_345_678)), ("12 B".into(), "12.3 MB".into()));
    }

    #[test]
    fn what_others_sent_controls_no_terminal() {
        let shown = printable("a\r\n\tb\x1b]52;c;eA==\x07\u{9b}2J\u{202e}c");
        assert_eq!(shown, "a\n\tb␛]52;c;eA==␇�2J�c");
    }

    #[test]
    fn large_numbers_have_commas() {
        assert_eq!([several(1, "window"), several(1234, "window")], ["1 window", "1,234 windows"]);
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0.0, 999.0, 1000.4, 12_345_678.0].map(thousands)
        );
    }
}
