//! Limits on figures of the result, for CI: `p99>50ms`.

use std::fmt;
use std::str::FromStr;

use super::units;
use crate::engine::Progress;
use crate::output::result::SlotResult;
use crate::output::times::TimeSummary;

/// A figure of a distribution of times: its name, and where it is.
type Stat = (&'static str, fn(&TimeSummary) -> f64);
/// A distribution of times: its name before the figure, and where it is.
type Times = (&'static str, fn(&SlotResult) -> Option<&TimeSummary>);
/// Any other figure.
type Number = (&'static str, fn(&SlotResult) -> f64);

const STATS: [Stat; 6] = [
    ("p50", |times| times.p50),
    ("p90", |times| times.p90),
    ("p99", |times| times.p99),
    ("p99.9", |times| times.p99_9),
    ("max", |times| times.max),
    ("mean", |times| times.mean),
];

const LATENCY: Times = ("", |result| Some(&result.latency_us));
const OF_EVENTS: [Times; 3] = [
    ("ttft", |result| Some(&result.events.as_ref()?.time_to_first_us)),
    ("itl", |result| Some(&result.events.as_ref()?.gap_us)),
    ("tpot", |result| Some(&result.events.as_ref()?.per_event_us)),
];

const NUMBERS: [Number; 6] = [
    ("throughput", |result| result.throughput_rps),
    ("failures", |result| result.whole.seen.failures.total() as f64),
    ("unanswered", |result| result.whole.unanswered as f64),
    ("retried", |result| result.whole.retried as f64),
    ("tokens", |result| result.events.as_ref().map_or(0.0, |events| events.per_s)),
    ("goodput", |result| {
        result.events.as_ref().and_then(|events| events.goodput_rps).unwrap_or(0.0)
    }),
];

/// Which figure is limited.
#[derive(Debug, Clone, Copy)]
enum Figure {
    /// In microseconds.
    Time(Times, Stat),
    Number(Number),
}

impl Figure {
    fn named(name: &str) -> Option<Figure> {
        if let Some(number) = NUMBERS.iter().find(|(known, _)| *known == name) {
            return Some(Figure::Number(*number));
        }
        let (of, stat) = name.split_once(' ').unwrap_or(("", name));
        let times = [LATENCY].into_iter().chain(OF_EVENTS).find(|(known, _)| *known == of)?;
        let stat = STATS.iter().find(|(known, _)| *known == stat.trim_start())?;
        Some(Figure::Time(times, *stat))
    }

    fn names() -> String {
        let names =
            STATS.iter().map(|(name, _)| *name).chain(NUMBERS.iter().map(|(name, _)| *name));
        format!("{}, or ttft, itl, tpot before a time", names.collect::<Vec<_>>().join(", "))
    }

    /// Its name, where it is one of the load as a whole and no time.
    fn number(&self) -> Option<&'static str> {
        match self {
            Figure::Number((name, _)) => Some(name),
            Figure::Time(..) => None,
        }
    }

    /// None of a time without any sample.
    fn value(&self, result: &SlotResult) -> Option<f64> {
        match self {
            Figure::Number((_, of)) => Some(of(result)),
            Figure::Time((_, times), (_, of)) => {
                times(result).filter(|times| times.count > 0).map(of)
            }
        }
    }
}

/// Figures whose bound may be a share of the requests that ended: `failures>0.1%`.
const SHARES: [&str; 3] = ["failures", "unanswered", "retried"];

/// A figure and a bound that it must not cross.
#[derive(Debug, Clone)]
pub struct Threshold {
    text: String,
    figure: Figure,
    above: bool,
    bound: f64,
    /// The bound is a share of the requests that ended.
    is_share: bool,
}

impl Threshold {
    /// A time without any sample crosses every limit from above: nothing was answered.
    pub fn is_crossed(&self, result: &SlotResult) -> bool {
        let value = self.figure.value(result);
        let value = value.map_or(f64::INFINITY, |value| self.scaled(value, result));
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
        self.figure.number() == Some("failures")
    }

    /// The figure in words.
    pub fn actual(&self, result: &SlotResult) -> String {
        match self.figure.value(result) {
            Some(value) => self.words(self.scaled(value, result)),
            None => "without a sample".into(),
        }
    }

    fn words(&self, value: f64) -> String {
        match (self.figure, self.is_share) {
            (Figure::Time(..), _) => format!("{} ms", value / 1000.0),
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
        let name = match self.0.figure {
            Figure::Number((name, _)) => name,
            _ if window.ramp_up || latency.count() == 0 => return None,
            Figure::Time(_, ("mean", _)) => return Some(latency.mean_us()),
            Figure::Time(_, ("max", _)) => return Some(latency.max_us()),
            Figure::Time(_, (quantile, _)) => {
                let percent: f64 = quantile.trim_start_matches('p').parse().ok()?;
                return Some(latency.quantile_us(percent / 100.0));
            }
        };
        match name {
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
            _ if window.ramp_up => None,
            _ => Some(window.completed as f64 / window.length_s.max(1e-9)),
        }
    }
}

impl FromStr for StopLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let limit: Threshold = text.parse()?;
        match limit.figure {
            Figure::Number(("unanswered", _)) => {
                Err("unanswered is known at the end only; use failures".into())
            }
            Figure::Number((name @ ("tokens" | "goodput"), _))
            | Figure::Time((name @ ("ttft" | "itl" | "tpot"), _), _) => {
                Err(format!("{name} is known at the end only; use it with --fail-if"))
            }
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
        let Some(figure) = Figure::named(name) else {
            return Err(format!("{name:?} is not one of {}", Figure::names()));
        };
        let share = bound.strip_suffix('%');
        if share.is_some() && !SHARES.contains(&name) {
            return Err(format!("{name} has no share; leave out the %"));
        }
        let bound = if matches!(figure, Figure::Time(..)) {
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
        assert!(matches!(limit.figure, Figure::Time(("", _), ("p99.9", _))));
        assert_eq!((limit.above, limit.bound), (true, 50_000.0));
        let limit: Threshold = "ttft p99>0.5s".parse().expect("good");
        assert!(matches!(limit.figure, Figure::Time(("ttft", _), ("p99", _))));
        let limit: Threshold = "throughput<1000".parse().expect("good");
        assert_eq!(limit.figure.number(), Some("throughput"));
        assert_eq!((limit.above, limit.bound), (false, 1000.0));
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
            "ttft>5ms",
            "ttft p99>5",
            "of p99>5ms",
            "tokens>5%",
        ] {
            assert!(bad.parse::<Threshold>().is_err(), "{bad}");
        }
        for limit in ["failures>5%", "retried>0", "retried>1%"] {
            assert!(limit.parse::<StopLimit>().is_ok(), "{limit}");
        }
        for late in ["unanswered>5", "tokens<5", "goodput<5", "itl p50>5ms"] {
            let refused = late.parse::<StopLimit>();
            assert!(refused.is_err_and(|why| why.contains("at the end")), "{late}");
        }
    }
}
