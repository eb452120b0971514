//! When requests are due.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

/// A timetable for the open loop: either `stages` or `times_s`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    #[serde(default)]
    pub process: Process,
    /// Rates one after the other.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Times in seconds after the start, ascending.
    #[serde(default, deserialize_with = "shared")]
    pub times_s: Arc<[f64]>,
    /// Each connection has a timetable of its own, and sends only what is due on it.
    #[serde(default)]
    pub each_connection: bool,
    /// So many are due at once, as seldom as the rate says.
    pub burst: Option<NonZeroU32>,
    #[serde(default)]
    pub unit: Unit,
    /// How many due requests may wait for a free connection; more are dropped and counted.
    #[serde(default = "hundred_thousand")]
    pub max_backlog: u32,
    /// One client's part of it all, where several clients share one timetable.
    pub share: Option<Share>,
}

impl Arrivals {
    pub const MAX_BACKLOG: u32 = 100_000;

    /// The timetable has a last entry.
    pub fn ends(&self) -> bool {
        !self.times_s.is_empty() || self.stages.iter().all(|stage| stage.for_s.is_some())
    }

    /// Length of all stages together, where there are some and they end.
    pub fn stages_s(&self) -> Option<f64> {
        self.stages.first()?;
        self.stages.iter().map(|stage| stage.for_s).sum()
    }
}

/// A log may have millions of times: the order and the timetable share them.
fn shared<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[f64]>, D::Error> {
    Vec::deserialize(from).map(Into::into)
}

/// How arrivals spread around the rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// Evenly.
    #[default]
    Constant,
    /// With exponential gaps, as from many independent users.
    Poisson,
}

/// Which part of a timetable is one client's own. All clients with the same seed draw the same
/// timetable, and each place in it is exactly one client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Number of clients.
    pub of: u32,
    /// Which of them this one is, from 0.
    pub index: u32,
    /// Of the timetable, and of whose each place in it is, in place of the order's seed.
    pub seed: u64,
}

/// What is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    #[default]
    Request,
    /// A new connection with as many requests as `keepalive` says, one after the other.
    Connection,
}

/// A stretch of time with one rate, or with a rate that changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Per second, at the stage's start.
    pub rate_per_s: f64,
    /// At its end, if it changes.
    pub to_rate_per_s: Option<f64>,
    /// Without it the stage lasts until the end; only the last one may do so.
    pub for_s: Option<f64>,
}

/// Pauses between an answer and the next request of the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Think {
    pub mean_s: f64,
    #[serde(default)]
    pub distribution: ThinkDistribution,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ThinkDistribution {
    #[default]
    Constant,
    Exponential,
}

fn hundred_thousand() -> u32 {
    Arrivals::MAX_BACKLOG
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages_s(lengths_s: &[Option<f64>]) -> Option<f64> {
        let stage =
            |for_s: &Option<f64>| Stage { rate_per_s: 1.0, to_rate_per_s: None, for_s: *for_s };
        Arrivals { stages: lengths_s.iter().map(stage).collect(), ..Arrivals::default() }.stages_s()
    }

    #[test]
    fn stages_are_as_long_as_all_of_them() {
        assert_eq!(stages_s(&[Some(1.0), Some(5.0), Some(1.0)]), Some(7.0));
        assert_eq!(stages_s(&[Some(1.0), None]), None);
        assert_eq!(stages_s(&[]), None);
    }
}
