//! A distribution of times as results have it: figures, and the histogram behind them.

use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as HdrHistogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::record::{Histogram, rounded};

/// Histograms of results go so far, in microseconds; all have the same steps.
const LONGEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;
/// Of one that is unpacked: 23,552 counts of 9 bytes at most.
const MOST_BYTES: u64 = 250_000;
/// Before what is compressed, and where in that its length and its digits stand.
const HEADER_BYTES: usize = 8;
const LENGTH_AT: usize = 4;
const DIGITS_AT: usize = 12;

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
        let packed = bytes.get(HEADER_BYTES..).ok_or_else(|| wrong(&"it has no head"))?;
        let mut plain = Vec::new();
        let unpacked = ZlibDecoder::new(packed).take(MOST_BYTES).read_to_end(&mut plain);
        unpacked.map_err(|error| wrong(&error))?;
        // Room is made for what its head says, whatever there is.
        let field = |at: usize| Some(u32::from_be_bytes(plain.get(at..at + 4)?.try_into().ok()?));
        let fits = field(LENGTH_AT).is_some_and(|length| length as usize <= plain.len())
            && field(DIGITS_AT).is_some_and(|digits| digits <= DIGITS.into());
        if !fits {
            return Err(wrong(&"its head says more than it has"));
        }
        Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|error| wrong(&error))
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
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
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
    fn none_takes_more_memory_than_it_has_counts() {
        for (length, digits) in [(1u32 << 30, 3u32), (1, 5)] {
            let mut plain = 0x1C84_9313u32.to_be_bytes().to_vec();
            plain.extend([length, 0, digits].iter().flat_map(|field| field.to_be_bytes()));
            plain.extend([1, 60_000_000, 1f64.to_bits()].iter().flat_map(|f| f.to_be_bytes()));
            plain.push(2);
            let mut packed = Vec::from(0x1C84_9314u32.to_be_bytes());
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
            zlib.write_all(&plain).expect("memory takes it");
            let content = zlib.finish().expect("memory takes it");
            packed.extend((content.len() as u32).to_be_bytes());
            packed.extend(content);
            let histogram = BASE64_STANDARD.encode(packed);
            let part = TimeSummary { count: 2, histogram, ..TimeSummary::default() };
            assert!(part.distribution().is_err_and(|why| why.contains("more than it has")));
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
