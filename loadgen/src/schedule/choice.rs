//! Which request comes next when there are several.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;

/// How one thread chooses.
#[derive(Debug, Clone)]
pub enum Choice {
    Weighted(Alias),
    /// In a given order, which all threads share.
    InOrder {
        sequence: Arc<[u32]>,
        asked: Arc<AtomicU64>,
    },
}

impl Choice {
    /// The next request; `number` is its place in the timetable, if there is one.
    pub fn pick(&mut self, number: Option<u64>) -> usize {
        match self {
            Choice::Weighted(alias) => alias.pick(),
            Choice::InOrder { sequence, asked } => {
                let number = number.unwrap_or_else(|| asked.fetch_add(1, Ordering::Relaxed));
                sequence[(number % sequence.len() as u64) as usize] as usize
            }
        }
    }
}

/// Zipf's law: the request of rank k is asked for in proportion to k to the power of -alpha.
pub fn zipf_weights(count: usize, alpha: f64) -> Vec<f64> {
    (1..=count).map(|rank| (rank as f64).powf(-alpha)).collect()
}

/// Chooses among weighted requests with one table look-up (Vose's alias method).
#[derive(Debug, Clone)]
pub struct Alias {
    rng: Rng,
    /// Per request: how much of its slot is its own, and whose the rest is.
    slots: Vec<(f64, usize)>,
}

impl Alias {
    /// `weights` has at least one element above 0.
    pub fn new(weights: &[f64], seed: u64) -> Self {
        let count = weights.len();
        let total: f64 = weights.iter().sum();
        let mut share: Vec<f64> = weights.iter().map(|w| w * count as f64 / total).collect();
        let mut slots: Vec<(f64, usize)> = (0..count).map(|i| (1.0, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|i| share[*i] < 1.0);
        while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
            small.pop();
            slots[less] = (share[less], more);
            share[more] -= 1.0 - share[less];
            if share[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        // What rounding left over is whole, unless it must never be chosen.
        let heaviest = (0..count).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap_or(0);
        for index in small.into_iter().filter(|index| weights[*index] == 0.0) {
            slots[index] = (0.0, heaviest);
        }
        Alias { rng: Rng::with_seed(seed), slots }
    }

    pub fn pick(&mut self) -> usize {
        if self.slots.len() == 1 {
            return 0;
        }
        let index = self.rng.usize(..self.slots.len());
        let (own, other) = self.slots[index];
        if self.rng.f64() < own { index } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies(weights: &[f64]) -> Vec<f64> {
        let mut choice = Choice::Weighted(Alias::new(weights, 7));
        let mut seen = vec![0.0; weights.len()];
        for _ in 0..100_000 {
            seen[choice.pick(None)] += 1e-5;
        }
        seen
    }

    #[test]
    fn follows_the_weights() {
        let weights = [1.0, 0.0, 3.0, 6.0];
        let seen = frequencies(&weights);
        assert_eq!(seen[1], 0.0);
        for (share, weight) in seen.iter().zip(weights) {
            assert!((share - weight / 10.0).abs() < 0.01, "{seen:?}");
        }
    }

    #[test]
    fn follows_zipf() {
        let seen = frequencies(&zipf_weights(1000, 1.0));
        assert!((seen[0] / seen[9] - 10.0).abs() < 1.0, "{} {}", seen[0], seen[9]);
    }

    #[test]
    fn follows_a_sequence_and_begins_anew() {
        let mut choice =
            Choice::InOrder { sequence: [2, 0, 1].into(), asked: Arc::new(AtomicU64::new(0)) };
        let picked: Vec<usize> = (0..5).map(|_| choice.pick(None)).collect();
        assert_eq!(picked, [2, 0, 1, 2, 0]);
        assert_eq!(choice.pick(Some(4)), 0);
    }
}
