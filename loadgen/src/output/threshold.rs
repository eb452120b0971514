//! Limits on figures of the result, for CI: `p99>50ms`.

use std::fmt;
use std::str::FromStr;

use super::result::SlotResult;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    P50,
    P90,
    P99,
    P999,
    Max,
    Mean,
    Rate,
    Failures,
    Unanswered,
}

const FIGURES: [(&str, Figure); 9] = [
    ("p50", Figure::P50),
    ("p90", Figure::P90),
    ("p99", Figure::P99),
    ("p99.9", Figure::P999),
    ("max", Figure::Max),
    ("mean", Figure::Mean),
    ("rate", Figure::Rate),
    ("failures", Figure::Failures),
    ("unanswered", Figure::Unanswered),
];

impl Figure {
    fn is_time(self) -> bool {
        !matches!(self, Figure::Rate | Figure::Failures | Figure::Unanswered)
    }

    /// Times in microseconds.
    fn of(self, result: &SlotResult) -> f64 {
        let times = &result.response_time_us;
        match self {
            Figure::P50 => times.p50,
            Figure::P90 => times.p90,
            Figure::P99 => times.p99,
            Figure::P999 => times.p99_9,
            Figure::Max => times.max,
            Figure::Mean => times.mean,
            Figure::Rate => result.rate_rps,
            Figure::Failures => result.failures.values().sum::<u64>() as f64,
            Figure::Unanswered => result.requests.unanswered as f64,
        }
    }
}

/// A figure and a bound that it must not cross.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    figure: Figure,
    above: bool,
    bound: f64,
}

impl Threshold {
    /// A time without any sample crosses every limit from above: nothing was answered.
    pub fn is_crossed(&self, result: &SlotResult) -> bool {
        let missing = self.figure.is_time() && result.response_time_us.count == 0;
        let value = if missing { f64::INFINITY } else { self.figure.of(result) };
        if self.above { value > self.bound } else { value < self.bound }
    }

    /// The figure in words.
    pub fn actual(&self, result: &SlotResult) -> String {
        let value = self.figure.of(result);
        if self.figure.is_time() { format!("{} ms", value / 1000.0) } else { value.to_string() }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let at = text.find(['<', '>']).ok_or("has neither < nor >; write 'p99>50ms'")?;
        let (name, bound) = (text[..at].trim(), text[at + 1..].trim());
        let known = FIGURES.iter().find(|(known, _)| *known == name);
        let Some((_, figure)) = known else {
            let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
            return Err(format!("{name:?} is not one of {}", names.join(", ")));
        };
        let bound = if figure.is_time() {
            let unit_given = bound.ends_with(|c: char| c.is_ascii_alphabetic());
            let seconds = crate::units::seconds::<{ crate::units::DAY_S }>(bound)?;
            if !unit_given {
                return Err(format!("{bound:?} has no unit; write {bound}ms or {bound}us"));
            }
            seconds * 1e6
        } else {
            bound.parse().map_err(|_| format!("{bound:?} is not a number"))?
        };
        let above = text.as_bytes()[at] == b'>';
        Ok(Threshold { text: text.to_owned(), figure: *figure, above, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_limits() {
        let limit: Threshold = "p99.9 > 50ms".parse().expect("good");
        assert_eq!((limit.figure, limit.above, limit.bound), (Figure::P999, true, 50_000.0));
        let limit: Threshold = "rate<1000".parse().expect("good");
        assert_eq!((limit.figure, limit.above, limit.bound), (Figure::Rate, false, 1000.0));
        for bad in ["p99", "p98>1ms", "p99>50", "rate>x", "p99>1d"] {
            assert!(bad.parse::<Threshold>().is_err(), "{bad}");
        }
    }
}
