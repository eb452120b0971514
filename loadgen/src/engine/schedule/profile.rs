//! Due times from a rate that may change.
//!
//! The n-th arrival of a constant process is due when the integral of the rate reaches n; of a
//! Poisson process, when it reaches the sum of n exponential gaps with mean 1 (time rescaling).
//! With bursts of k the gaps are k times as long, and after each come k arrivals at once.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};

use crate::order::{Process, Stage};

/// Due times in seconds after the start, ascending.
#[derive(Debug, Clone)]
pub struct Profile {
    stages: Vec<Stage>,
    process: Process,
    burst: u32,
    rng: SmallRng,
    /// Index of the stage we are in, when it began, and the integral until then.
    stage: usize,
    began_s: f64,
    before: f64,
    /// The integral at the next burst.
    reach: f64,
    /// When the last burst was, and how many of it are still to come.
    burst_s: f64,
    left: u32,
}

impl Profile {
    /// Arrivals come `burst` at a time, which is 1 for each by itself.
    pub fn new(stages: Vec<Stage>, process: Process, burst: u32, seed: u64) -> Self {
        let mut profile = Profile {
            stages,
            process,
            burst,
            rng: SmallRng::seed_from_u64(seed),
            stage: 0,
            began_s: 0.0,
            before: 0.0,
            reach: 0.0,
            burst_s: 0.0,
            left: 0,
        };
        if process == Process::Poisson {
            profile.reach = profile.step();
        }
        profile
    }

    /// An even one begins later, by this share of its gaps.
    pub fn after(self, phase: f64) -> Self {
        let later = match self.process {
            Process::Constant => phase * f64::from(self.burst),
            Process::Poisson => 0.0,
        };
        Profile { reach: self.reach + later, ..self }
    }

    fn step(&mut self) -> f64 {
        let gap: f64 = match self.process {
            Process::Constant => 1.0,
            Process::Poisson => Exp1.sample(&mut self.rng),
        };
        gap * f64::from(self.burst)
    }
}

impl Iterator for Profile {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        if self.left > 0 {
            self.left -= 1;
            return Some(self.burst_s);
        }
        loop {
            let stage = self.stages.get(self.stage)?;
            let area = area(stage);
            let wanted = self.reach - self.before;
            if wanted < area {
                self.burst_s = self.began_s + time_to(stage, wanted);
                self.left = self.burst - 1;
                self.reach += self.step();
                return Some(self.burst_s);
            }
            self.began_s += stage.for_s?;
            self.before += area;
            self.stage += 1;
        }
    }
}

/// Arrivals in the whole stage.
fn area(stage: &Stage) -> f64 {
    let end_rate = stage.to_rate_per_s.unwrap_or(stage.rate_per_s);
    match stage.for_s {
        Some(seconds) => (stage.rate_per_s + end_rate) / 2.0 * seconds,
        None if stage.rate_per_s > 0.0 => f64::INFINITY,
        None => 0.0,
    }
}

/// Seconds into the stage at which `arrivals` have come: the root of r·t + slope·t²/2 = arrivals,
/// in the form that is stable for a slope of 0.
fn time_to(stage: &Stage, arrivals: f64) -> f64 {
    if arrivals <= 0.0 {
        return 0.0;
    }
    let slope = match (stage.to_rate_per_s, stage.for_s) {
        (Some(to), Some(seconds)) => (to - stage.rate_per_s) / seconds,
        _ => 0.0,
    };
    let rate = stage.rate_per_s;
    2.0 * arrivals / (rate + (rate * rate + 2.0 * slope * arrivals).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(rate: f64, to: Option<f64>, for_s: Option<f64>) -> Stage {
        Stage { rate_per_s: rate, to_rate_per_s: to, for_s }
    }

    fn constant(stages: &[Stage]) -> Vec<f64> {
        Profile::new(stages.to_vec(), Process::Constant, 1, 0).take(100_000).collect()
    }

    #[test]
    fn a_constant_rate_is_even_and_endless() {
        let due = constant(&[stage(1000.0, None, None)]);
        assert_eq!(due.len(), 100_000);
        assert!(due.iter().enumerate().all(|(n, at)| (at - n as f64 / 1000.0).abs() < 1e-9));
    }

    #[test]
    fn steps_follow_each_other() {
        let steps = [
            stage(10.0, None, Some(1.0)),
            stage(0.0, None, Some(5.0)),
            stage(20.0, None, Some(1.0)),
        ];
        let due = constant(&steps);
        assert_eq!(due.len(), 30);
        assert!(due[9] < 1.0 && (due[10] - 6.0).abs() < 1e-9 && (due[29] - 6.95).abs() < 1e-9);
    }

    #[test]
    fn a_ramp_has_the_area_under_it() {
        for (from, to) in [(0.0, 1000.0), (1000.0, 0.0), (200.0, 800.0)] {
            let due = constant(&[stage(from, Some(to), Some(10.0))]);
            assert!((due.len() as f64 - (from + to) * 5.0).abs() <= 1.0, "{}", due.len());
            assert!(due.is_sorted() && due.iter().all(|at| (0.0..=10.0).contains(at)));
            // Half of the time has three quarters or one quarter of a full triangle's arrivals.
            let early = due.iter().filter(|at| **at < 5.0).count() as f64;
            let wanted = (from + (from + to) / 2.0) / 2.0 * 5.0;
            assert!((early - wanted).abs() <= 2.0, "{early} {wanted}");
        }
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let stages = vec![stage(1000.0, None, None)];
        let due: Vec<f64> = Profile::new(stages, Process::Poisson, 1, 3).take(100_000).collect();
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 1000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((spread.sqrt() / mean - 1.0).abs() < 0.02, "{spread}");
    }

    #[test]
    fn bursts_come_at_once_and_keep_the_rate() {
        for process in [Process::Constant, Process::Poisson] {
            let stages = vec![stage(1000.0, None, Some(50.0))];
            let due: Vec<f64> = Profile::new(stages, process, 20, 3).collect();
            let bursts: Vec<&[f64]> = due.chunk_by(|a, b| a == b).collect();
            assert!(bursts.iter().all(|burst| burst.len() == 20), "{process:?}");
            assert!((due.len() as f64 / 50_000.0 - 1.0).abs() < 0.1, "{}", due.len());
            if process == Process::Constant {
                assert_eq!((due.len(), bursts[0][0]), (50_000, 0.0));
                assert!((bursts[1][0] - 0.02).abs() < 1e-9);
            }
        }
    }
}
