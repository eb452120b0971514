//! Times in a histogram of bounded memory: nanoseconds, three significant digits, up to an hour.

use hdrhistogram::Histogram;

/// Longer times are counted as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

#[derive(Debug, Clone)]
pub struct Timing {
    histogram: Histogram<u64>,
}

impl Timing {
    pub fn empty() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .unwrap_or_else(|error| unreachable!("the bounds are constants: {error}"));
        Timing { histogram }
    }

    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
    }

    pub fn add(&mut self, other: &Timing) {
        if other.histogram.is_empty() {
            return;
        }
        // Equal bounds, so this can't fail.
        let _ = self.histogram.add(&other.histogram);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Microseconds; 0 when nothing was recorded.
    pub fn mean_us(&self) -> f64 {
        round_us(self.histogram.mean())
    }

    pub fn min_us(&self) -> f64 {
        if self.histogram.is_empty() { 0.0 } else { round_us(self.histogram.min() as f64) }
    }

    pub fn max_us(&self) -> f64 {
        round_us(self.histogram.max() as f64)
    }

    /// The value that the share `quantile` of all times does not exceed.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        let ns = self.histogram.value_at_quantile(quantile).min(self.histogram.max());
        round_us(ns as f64)
    }

    /// The distribution in steps that get finer towards its tail.
    pub fn percentiles(&self) -> impl Iterator<Item = Step> {
        let mut count = 0;
        self.histogram.iter_quantiles(5).map(move |step| {
            count += step.count_since_last_iteration();
            let us = round_us(step.value_iterated_to().min(self.histogram.max()) as f64);
            Step { us, quantile: step.quantile_iterated_to(), count }
        })
    }

    /// Recorded values in whole microseconds with how often each was seen.
    pub fn values_us(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram.iter_recorded().map(|step| {
            let middle = self.histogram.median_equivalent(step.value_iterated_to());
            ((middle + 500) / 1000, step.count_at_value())
        })
    }
}

/// A step of a percentile distribution.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub us: f64,
    pub quantile: f64,
    /// Samples up to here.
    pub count: u64,
}

fn round_us(ns: f64) -> f64 {
    (ns / 10.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_three_digits_and_bounds() {
        let mut timing = Timing::empty();
        assert_eq!((timing.min_us(), timing.max_us(), timing.quantile_us(0.5)), (0.0, 0.0, 0.0));
        for ns in [1_000, 45_670, u64::MAX] {
            timing.record(ns);
        }
        assert!((timing.quantile_us(0.5) - 45.67).abs() < 0.05);
        assert!((timing.max_us() / 3.6e9 - 1.0).abs() < 0.001);
        assert_eq!(timing.count(), 3);
    }

    #[test]
    fn adding_is_recording_both() {
        let (mut a, mut b, mut both) = (Timing::empty(), Timing::empty(), Timing::empty());
        for ns in 1..5_000u64 {
            let into = if ns % 3 == 0 { &mut a } else { &mut b };
            into.record(ns * ns);
            both.record(ns * ns);
        }
        a.add(&b);
        assert_eq!(a.values_us().collect::<Vec<_>>(), both.values_us().collect::<Vec<_>>());
        assert_eq!(a.quantile_us(0.99), both.quantile_us(0.99));
    }
}
