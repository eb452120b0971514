//! Times in a histogram of bounded memory: nanoseconds, three significant digits, up to an hour.

use std::ops::AddAssign;

use hdrhistogram::Histogram as HdrHistogram;

/// Longer times are counted as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// What a histogram holds before it has to grow.
const SHORTEST_RANGE_NS: u64 = 1_000_000;
const DIGITS: u8 = 3;

/// Its memory is taken when it is first needed, and grows with the longest time seen: most
/// recorders never meet some kinds of time, and slots are short.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    histogram: Option<HdrHistogram<u64>>,
}

impl AddAssign for Histogram {
    fn add_assign(&mut self, other: Self) {
        match &self.histogram {
            None => *self = other,
            Some(_) => self.add(&other),
        }
    }
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        // It grows up to the longest time, so this can't fail.
        let _ = self.get_or_create().record(ns.min(LONGEST_NS));
    }

    pub fn add(&mut self, other: &Histogram) {
        match (&mut self.histogram, &other.histogram) {
            (_, None) => {}
            (None, some) => self.histogram.clone_from(some),
            // It grows up to the longest time, so this can't fail.
            (Some(all), Some(histogram)) => drop(all.add(histogram)),
        }
    }

    #[inline]
    fn get_or_create(&mut self) -> &mut HdrHistogram<u64> {
        self.histogram.get_or_insert_with(|| {
            let mut histogram = HdrHistogram::new_with_max(SHORTEST_RANGE_NS, DIGITS)
                .unwrap_or_else(|error| unreachable!("the bounds are constants: {error}"));
            histogram.auto(true);
            histogram
        })
    }

    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, HdrHistogram::len)
    }

    /// Microseconds; 0 when nothing was recorded.
    pub fn mean_us(&self) -> f64 {
        self.figure_us(HdrHistogram::mean)
    }

    pub fn min_us(&self) -> f64 {
        self.figure_us(|histogram| histogram.min() as f64)
    }

    pub fn max_us(&self) -> f64 {
        self.figure_us(|histogram| histogram.max() as f64)
    }

    /// The value that the share `quantile` of all times does not exceed.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.figure_us(|histogram| {
            histogram.value_at_quantile(quantile).min(histogram.max()) as f64
        })
    }

    fn figure_us(&self, of: impl FnOnce(&HdrHistogram<u64>) -> f64) -> f64 {
        self.histogram.as_ref().map_or(0.0, |histogram| round_us(of(histogram)))
    }

    /// The distribution in steps that get finer towards its tail.
    pub fn percentiles(&self) -> impl Iterator<Item = PercentileStep> {
        self.histogram.iter().flat_map(|histogram| {
            let mut count = 0;
            histogram.iter_quantiles(5).map(move |step| {
                count += step.count_since_last_iteration();
                let us = round_us(step.value_iterated_to().min(histogram.max()) as f64);
                PercentileStep { us, quantile: step.quantile_iterated_to(), count }
            })
        })
    }

    /// Recorded values in whole microseconds with how often each was seen.
    pub fn values_us(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram.iter().flat_map(|histogram| {
            histogram.iter_recorded().map(|step| {
                let middle = histogram.median_equivalent(step.value_iterated_to());
                ((middle + 500) / 1000, step.count_at_value())
            })
        })
    }
}

/// A step of a percentile distribution.
#[derive(Debug, Clone, Copy)]
pub struct PercentileStep {
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
        let mut histogram = Histogram::default();
        assert_eq!(
            (histogram.min_us(), histogram.max_us(), histogram.quantile_us(0.5)),
            (0.0, 0.0, 0.0)
        );
        for ns in [1_000, 45_670, u64::MAX] {
            histogram.record(ns);
        }
        assert!((histogram.quantile_us(0.5) - 45.67).abs() < 0.05);
        assert!((histogram.max_us() / 3.6e9 - 1.0).abs() < 0.001);
        assert_eq!(histogram.count(), 3);
    }

    #[test]
    fn adding_is_recording_both() {
        let (mut a, mut b, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
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
