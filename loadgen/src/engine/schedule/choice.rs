//! Which request comes next when there are several.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand_distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;

/// How the threads of a slot choose; clones share what is shared.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Those with a weight: rounding may leave a little to one of weight 0, which is never chosen.
    weighted: Arc<[usize]>,
    by_weight: Arc<WeightedAliasIndex<f64>>,
    /// Requests in a given order, which all threads share, and how many were asked for.
    in_order: Option<(Arc<[u32]>, Arc<AtomicU64>)>,
}

impl Choice {
    /// `weights` has at least one element above 0; `sequence` goes before them.
    pub fn new(weights: &[f64], sequence: Option<&[u32]>) -> Result<Choice, String> {
        let weighted: Arc<[usize]> = (0..weights.len()).filter(|i| weights[*i] > 0.0).collect();
        let by_weight = WeightedAliasIndex::new(weighted.iter().map(|i| weights[*i]).collect())
            .map_err(|_| "requests: the weights are too large to add up; give smaller ones")?;
        let in_order = sequence.map(|sequence| (sequence.into(), Arc::default()));
        Ok(Choice { weighted, by_weight: Arc::new(by_weight), in_order })
    }

    /// The next request; `number` is its place in the timetable, if there is one.
    pub fn pick(&self, number: Option<u64>, rng: &mut SmallRng) -> usize {
        let Some((sequence, asked)) = &self.in_order else { return self.pick_by_weight(rng) };
        let number = number.unwrap_or_else(|| asked.fetch_add(1, Ordering::Relaxed));
        sequence[(number % sequence.len() as u64) as usize] as usize
    }

    pub fn pick_by_weight(&self, rng: &mut SmallRng) -> usize {
        self.weighted[self.by_weight.sample(rng)]
    }
}

/// Zipf's law: the request of rank k is asked for in proportion to k to the power of -alpha.
pub fn zipf_weights(count: usize, alpha: f64) -> Vec<f64> {
    (1..=count).map(|rank| (rank as f64).powf(-alpha)).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn rng() -> SmallRng {
        SmallRng::seed_from_u64(7)
    }

    fn frequencies(weights: &[f64]) -> Vec<f64> {
        let (choice, rng) = (Choice::new(weights, None).expect("weights"), &mut rng());
        let mut seen = vec![0.0; weights.len()];
        for _ in 0..100_000 {
            seen[choice.pick(None, rng)] += 1e-5;
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
        let (choice, rng) = (Choice::new(&[1.0; 3], Some(&[2, 0, 1])).expect("good"), &mut rng());
        let picked: Vec<usize> = (0..5).map(|_| choice.pick(None, rng)).collect();
        assert_eq!(picked, [2, 0, 1, 2, 0]);
        assert_eq!(choice.pick(Some(4), rng), 0);
    }

    #[test]
    fn weights_that_do_not_add_up_are_refused() {
        assert!(Choice::new(&[f64::MAX, f64::MAX], None).is_err_and(|why| why.contains("smaller")));
    }
}
