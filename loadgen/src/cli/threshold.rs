//! Limits on figures of the result, for CI: `p99>50ms`.

use std::fmt;
use std::str::FromStr;

use super::units;
use crate::engine::Progress;
use crate::output::result::SlotResult;

/// Its name, whether it is a time in microseconds, and where it is.
type Figure = (&'static str, bool, fn(&SlotResult) -> f64);

const FIGURES: [Figure; 10] = [
    ("p50", true, |result| result.latency_us.p50),
    ("p90", true, |result| result.latency_us.p90),
    ("p99", true, |result| result.latency_us.p99),
    ("p99.9", true, |result| result.latency_us.p99_9),
    ("max", true, |result| result.latency_us.max),
    ("mean", true, |result| result.latency_us.mean),
    ("throughput", false, |result| result.throughput_rps),
    ("failures", false, |result| result.whole.seen.failures.total() as f64),
    ("unanswered", false, |result| result.whole.unanswered as f64),
    ("retried", false, |result| result.whole.retried as f64),
];

/// Figures whose bound may be a share of the requests that ended: `failures>0.1%`.
const SHARES: [&str; 3] = ["failures", "unanswered", "retried"];

/// A figure and a bound that it must not cross.
#[derive(Debug, Clone)]
pub struct Threshold {
    text: String,
    figure: &'static Figure,
    above: bool,
    bound: f64,
    /// The bound is a share of the requests that ended.
    is_share: bool,
}

impl Threshold {
    /// A time without any sample crosses every limit from above: nothing was answered.
    pub fn is_crossed(&self, result: &SlotResult) -> bool {
        let (_, is_time, of) = self.figure;
        let missing = *is_time && result.latency_us.count == 0;
        let value = if missing { f64::INFINITY } else { self.scaled(of(result), result) };
        if self.above { value > self.bound } else { value < self.bound }
    }

    fn scaled(&self, value: f64, result: &SlotResult) -> f64 {
        if !self.is_share {
            return value;
        }
        let failures = result.whole.seen.failures.total() as f64;
        let ended = result.whole.completed as f64 + failures;
        value / ended.max(1.0)
    }

    /// It says how many requests may fail.
    pub fn is_about_failures(&self) -> bool {
        self.figure.0 == "failures"
    }

    /// The figure in words.
    pub fn actual(&self, result: &SlotResult) -> String {
        let (_, _, of) = self.figure;
        self.words(self.scaled(of(result), result))
    }

    fn words(&self, value: f64) -> String {
        let (_, is_time, _) = self.figure;
        match (is_time, self.is_share) {
            (true, _) => format!("{} ms", value / 1000.0),
            (_, true) => format!("{:.3}%", value * 100.0),
            _ => value.to_string(),
        }
    }
}

/// A limit that ends the load when it is crossed.
#[derive(Debug, Clone)]
pub struct StopLimit(Threshold);

impl StopLimit {
    /// What a figure is that crosses its limit: a share or number of failures of the load so far,
    /// anything else of the window that is over, after the ramp-up.
    pub fn crossed_by(&self, progress: &Progress) -> Option<String> {
        let Threshold { text, above, bound, .. } = &self.0;
        let value = self.value(progress)?;
        let is_crossed = if *above { value > *bound } else { value < *bound };
        is_crossed.then(|| format!("{text} is true: it is {}", self.0.words(value)))
    }

    fn value(&self, progress: &Progress) -> Option<f64> {
        let Progress { window, latency, so_far } = progress;
        let failures = so_far.seen.failures.total() as f64;
        let (name, is_time, _) = self.0.figure;
        match *name {
            "failures" if self.0.is_share => {
                let ended = so_far.requests.completed as f64 + failures;
                Some(failures / ended.max(1.0))
            }
            "failures" => Some(failures),
            "retried" if self.0.is_share => {
                let ended = so_far.requests.completed as f64 + failures;
                Some(so_far.requests.retried as f64 / ended.max(1.0))
            }
            "retried" => Some(so_far.requests.retried as f64),
            _ if window.ramp_up || *is_time && latency.count() == 0 => None,
            "mean" => Some(latency.mean_us()),
            "max" => Some(latency.max_us()),
            "throughput" => Some(window.completed as f64 / window.length_s.max(1e-9)),
            quantile => {
                let percent: f64 = quantile.trim_start_matches('p').parse().ok()?;
                Some(latency.quantile_us(percent / 100.0))
            }
        }
    }
}

impl FromStr for StopLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let limit: Threshold = text.parse()?;
        match limit.figure.0 {
            "unanswered" => Err("unanswered is known at the end only; use failures".into()),
            _ => Ok(StopLimit(limit)),
        }
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
        let sign = text.find(['<', '>']).ok_or("has neither < nor >; write 'p99>50ms'")?;
        let (name, bound) = (text[..sign].trim(), text[sign + 1..].trim());
        let Some(figure) = FIGURES.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = FIGURES.iter().map(|(name, ..)| *name).collect();
            return Err(format!("{name:?} is not one of {}", names.join(", ")));
        };
        let share = bound.strip_suffix('%');
        if share.is_some() && !SHARES.contains(&name) {
            return Err(format!("{name} has no share; leave out the %"));
        }
        let bound = if figure.1 {
            let unit_given = bound.ends_with(|c: char| c.is_ascii_alphabetic());
            let seconds = units::seconds::<{ units::DAY_S }>(bound)?;
            if !unit_given {
                return Err(format!("{bound:?} has no unit; write {bound}ms or {bound}us"));
            }
            seconds * 1e6
        } else {
            let number = share.unwrap_or(bound).trim_end();
            let value: f64 = number.parse().map_err(|_| format!("{bound:?} is not a number"))?;
            if share.is_some() { value / 100.0 } else { value }
        };
        let above = text.as_bytes()[sign] == b'>';
        Ok(Threshold { text: text.to_owned(), figure, above, bound, is_share: share.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_limits() {
        let limit: Threshold = "p99.9 > 50ms".parse().expect("good");
        assert_eq!((limit.figure.0, limit.above, limit.bound), ("p99.9", true, 50_000.0));
        let limit: Threshold = "throughput<1000".parse().expect("good");
        assert_eq!((limit.figure.0, limit.above, limit.bound), ("throughput", false, 1000.0));
        let limit: Threshold = "failures > 0.5%".parse().expect("good");
        assert_eq!((limit.is_share, limit.bound), (true, 0.005));
        for bad in [
            "p99",
            "p98>1ms",
            "p99>50",
            "throughput>x",
            "p99>1d",
            "throughput<5%",
            "p99>5%",
            "failures>%",
        ] {
            assert!(bad.parse::<Threshold>().is_err(), "{bad}");
        }
        for limit in ["failures>5%", "retried>0", "retried>1%"] {
            assert!(limit.parse::<StopLimit>().is_ok(), "{limit}");
        }
        assert!("unanswered>5".parse::<StopLimit>().is_err_and(|why| why.contains("at the end")));
    }
}
