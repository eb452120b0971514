//! How much an order may ask for.

use std::ops::RangeInclusive;

/// Bounds in seconds, far beyond what makes sense.
pub const LONGEST_SLOT_S: u32 = 1_000_000;
pub const LONGEST_WAIT_S: u32 = 86_400;
pub const SHORTEST_WINDOW_S: f64 = 0.01;
pub const LONGEST_WINDOW_S: u32 = 3600;
/// Each is kept in the result.
pub const MOST_WINDOWS: u32 = 1_000_000;
/// Of answers: histograms go no further.
pub const LONGEST_TIMEOUT_S: u32 = 3600;
/// Per second.
pub const HIGHEST_RATE: u32 = 100_000_000;
pub const STEEPEST_ZIPF: u32 = 10;
/// A longer one would be felt as part of the latency.
pub const MOST_SEND_DELAY_MS: u32 = 10;
pub const STATUSES: RangeInclusive<u16> = 200..=999;
pub const MOST_STREAMS: u32 = 100_000;
/// Each goes through the entries of all.
pub const MOST_CLIENTS: u32 = 10_000;
/// Due at once.
pub const MOST_AT_ONCE: u32 = 1_000_000;
/// Requests in flight at a time, each of which takes memory.
pub const MOST_AT_A_TIME: u64 = 10_000_000;

/// Refuses what is not within bounds, which are said in whole numbers, or as short as they are.
pub fn between(field: &str, value: f64, least: f64, most: u32) -> Result<(), String> {
    let shown = if least == f64::MIN_POSITIVE { 0.0 } else { least };
    match value >= least && value <= most.into() {
        true => Ok(()),
        false => Err(format!("{field}: {value} is not between {shown} and {most}")),
    }
}
