//! Which request comes next when there are several.

use fastrand::Rng;

/// Chooses among weighted requests with one table look-up (Vose's alias method).
#[derive(Debug, Clone)]
pub struct Choice {
    rng: Rng,
    /// Per request: how much of its slot is its own, and whose the rest is.
    slots: Vec<(f64, usize)>,
}

impl Choice {
    /// `weights` has at least one element above 0.
    pub fn weighted(weights: &[f64], seed: u64) -> Self {
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
        Choice { rng: Rng::with_seed(seed), slots }
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

    #[test]
    fn follows_the_weights() {
        let weights = [1.0, 0.0, 3.0, 6.0];
        let mut choice = Choice::weighted(&weights, 7);
        let mut seen = [0.0; 4];
        for _ in 0..100_000 {
            seen[choice.pick()] += 1.0;
        }
        assert_eq!(seen[1], 0.0);
        for (count, weight) in seen.iter().zip(weights) {
            assert!((count / 10_000.0 - weight).abs() < 0.1, "{seen:?}");
        }
    }
}
