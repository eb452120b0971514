//! A distribution of times as results have it: figures, and the histogram behind them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram as HdrHistogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::record::{Histogram, rounded};

/// Histograms of results go so far, in microseconds; all have the same steps.
const LONGEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Microseconds; all 0 when there is no sample.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TimeSummary {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
    /// HDR V2, compressed, base64; values are whole microseconds.
    pub histogram: String,
}

impl TimeSummary {
    pub fn of(recorded: &Histogram) -> Self {
        let mut histogram = empty();
        recorded.values_us().for_each(|(value, count)| histogram.saturating_record_n(value, count));
        TimeSummary {
            count: recorded.count(),
            min: recorded.min_us(),
            mean: recorded.mean_us(),
            p50: recorded.quantile_us(0.5),
            p90: recorded.quantile_us(0.9),
            p99: recorded.quantile_us(0.99),
            p99_9: recorded.quantile_us(0.999),
            max: recorded.max_us(),
            histogram: encode(&histogram),
        }
    }

    /// All times together. Histograms of equal steps add up without a loss; percentiles are then
    /// whole microseconds, as those are.
    pub fn merged<'a>(parts: impl Iterator<Item = &'a TimeSummary>) -> Result<TimeSummary, String> {
        let parts = Vec::from_iter(parts.filter(|part| part.count > 0));
        let [first, others @ ..] = &parts[..] else { return Ok(TimeSummary::default().encoded()) };
        if others.is_empty() {
            return Ok((*first).clone());
        }
        let mut all = empty();
        for part in &parts {
            all.add(part.distribution()?)
                .map_err(|_| "a histogram goes further than those of this program".to_owned())?;
        }
        let count = parts.iter().map(|part| part.count).sum();
        let max = parts.iter().map(|part| part.max).fold(0.0, f64::max);
        let total_us: f64 = parts.iter().map(|part| part.mean * part.count as f64).sum();
        let quantile = |quantile: f64| (all.value_at_quantile(quantile) as f64).min(max);
        Ok(TimeSummary {
            count,
            min: parts.iter().map(|part| part.min).fold(f64::INFINITY, f64::min),
            mean: rounded(total_us / count as f64, 2),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max,
            histogram: encode(&all),
        })
    }

    /// The histogram, taken out of its encoding.
    pub fn distribution(&self) -> Result<HdrHistogram<u64>, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("a histogram is damaged: {error}");
        let bytes = BASE64_STANDARD.decode(&self.histogram).map_err(|error| wrong(&error))?;
        let decoded = Deserializer::new().deserialize(&mut bytes.as_slice());
        decoded.map_err(|error| wrong(&error))
    }

    fn encoded(self) -> TimeSummary {
        TimeSummary { histogram: encode(&empty()), ..self }
    }
}

fn empty() -> HdrHistogram<u64> {
    HdrHistogram::new_with_bounds(1, LONGEST_US, DIGITS)
        .unwrap_or_else(|error| unreachable!("the bounds are constants: {error}"))
}

/// Encodes so that every HDR library can read it (Python: `HdrHistogram.decode`).
fn encode(histogram: &HdrHistogram<u64>) -> String {
    let mut bytes = Vec::new();
    let encoded = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    debug_assert!(encoded.is_ok(), "writing to memory does not fail");
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recorded(values_ns: &[u64]) -> Histogram {
        let mut recorded = Histogram::default();
        values_ns.iter().for_each(|ns| recorded.record(*ns));
        recorded
    }

    proptest! {
        #[test]
        fn merged_times_are_those_of_all_together(
            values_ns in proptest::collection::vec(1_000u64..10_000_000_000, 0..300),
            cuts in proptest::collection::vec(0usize..300, 2),
        ) {
            let (low, high) = (cuts[0].min(cuts[1]), cuts[0].max(cuts[1]));
            let (low, high) = (low.min(values_ns.len()), high.min(values_ns.len()));
            let ranges = [&values_ns[..low], &values_ns[low..high], &values_ns[high..]];
            let parts = ranges.map(|part| TimeSummary::of(&recorded(part)));
            let merged = TimeSummary::merged(parts.iter()).expect("sound histograms");
            let whole = TimeSummary::of(&recorded(&values_ns));
            prop_assert_eq!(&merged.histogram, &whole.histogram);
            prop_assert_eq!((merged.count, merged.min, merged.max),
                            (whole.count, whole.min, whole.max));
            prop_assert!((merged.mean - whole.mean).abs() <= 0.02 + whole.mean / 500.0);
            for (one, other) in [(merged.p50, whole.p50), (merged.p99, whole.p99)] {
                prop_assert!((one - other).abs() <= 1.0 + other / 400.0, "{one} {other}");
            }
        }
    }

    #[test]
    fn damaged_histograms_are_named() {
        for histogram in ["?", "", "AAAA"] {
            let part =
                TimeSummary { count: 2, histogram: histogram.into(), ..TimeSummary::default() };
            assert!(part.distribution().is_err_and(|why| why.contains("damaged")), "{histogram}");
        }
    }
}
