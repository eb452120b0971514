//! What makes a streamed answer a good one.

use serde::Deserialize;

use super::bounds::{LONGEST_TIMEOUT_S, between};

/// Limits that a good answer keeps, all that are given: goodput counts such answers alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Goodput {
    /// From when the request was due, or sent in a closed loop, to the first event.
    pub first_event_s: Option<f64>,
    /// Mean time from an event to the next; an answer of one event has none, and keeps it.
    pub per_event_s: Option<f64>,
    /// To the answer's end.
    pub latency_s: Option<f64>,
}

/// What one answer took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    pub first_event_ns: Option<u64>,
    pub per_event_ns: Option<u64>,
    pub latency_ns: u64,
}

impl Goodput {
    pub fn is_kept_by(&self, took: Took) -> bool {
        let within = |limit_s: f64, ns: u64| ns as f64 <= limit_s * 1e9;
        self.first_event_s.is_none_or(|s| took.first_event_ns.is_some_and(|ns| within(s, ns)))
            && self.per_event_s.is_none_or(|s| took.per_event_ns.is_none_or(|ns| within(s, ns)))
            && self.latency_s.is_none_or(|s| within(s, took.latency_ns))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let limits = [
            ("first_event_s", self.first_event_s),
            ("per_event_s", self.per_event_s),
            ("latency_s", self.latency_s),
        ];
        if limits.iter().all(|(_, limit_s)| limit_s.is_none()) {
            return Err(
                "goodput: has no limit; give first_event_s, per_event_s or latency_s".into()
            );
        }
        limits.iter().filter_map(|(name, limit_s)| Some((name, (*limit_s)?))).try_for_each(
            |(name, limit_s)| {
                between(&format!("goodput.{name}"), limit_s, f64::MIN_POSITIVE, LONGEST_TIMEOUT_S)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_answers_keep_all_limits() {
        let goodput =
            Goodput { first_event_s: Some(0.5), per_event_s: Some(0.05), latency_s: Some(2.0) };
        let good = Took {
            first_event_ns: Some(500_000_000),
            per_event_ns: Some(50_000_000),
            latency_ns: 2_000_000_000,
        };
        assert!(goodput.is_kept_by(good));
        assert!(goodput.is_kept_by(Took { per_event_ns: None, ..good }));
        for bad in [
            Took { first_event_ns: Some(500_000_001), ..good },
            Took { first_event_ns: None, ..good },
            Took { per_event_ns: Some(50_000_001), ..good },
            Took { latency_ns: 2_000_000_001, ..good },
        ] {
            assert!(!goodput.is_kept_by(bad), "{bad:?}");
        }
        assert!(Goodput::default().check().is_err());
        assert!(Goodput { latency_s: Some(0.0), ..Goodput::default() }.check().is_err());
    }
}
