//! Limits that a good response keeps: `ttft<500ms`.

use std::str::FromStr;

use crate::cli::units;
use crate::order::bounds::LONGEST_TIMEOUT_S;

/// One of them, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GoodputLimit {
    FirstEvent(f64),
    PerEvent(f64),
    Latency(f64),
}

impl FromStr for GoodputLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, bound) = text.split_once('<').ok_or("has no <; write 'ttft<500ms'")?;
        let limit = match name.trim() {
            "ttft" => GoodputLimit::FirstEvent,
            "tpot" => GoodputLimit::PerEvent,
            "latency" => GoodputLimit::Latency,
            name => return Err(format!("{name:?} is not one of ttft, tpot, latency")),
        };
        let bound = bound.trim();
        if !bound.ends_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("{bound:?} has no unit; write {bound}ms or {bound}s"));
        }
        units::length::<LONGEST_TIMEOUT_S>(bound).map(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_limits() {
        for (text, limit) in [
            ("ttft<500ms", GoodputLimit::FirstEvent(0.5)),
            ("tpot < 50ms", GoodputLimit::PerEvent(0.05)),
            ("latency<5s", GoodputLimit::Latency(5.0)),
        ] {
            assert_eq!(text.parse(), Ok(limit));
        }
        for bad in ["ttft", "ttft>5s", "itl<5ms", "ttft<5", "ttft<0s", "ttft<x"] {
            assert!(bad.parse::<GoodputLimit>().is_err(), "{bad}");
        }
    }
}
