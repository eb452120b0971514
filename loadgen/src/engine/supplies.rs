//! What the threads of a slot share: the stock or timetable requests come from.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use either::Either;

use super::asks::{Part, Supply};
use super::plan::Plan;
use crate::order::Arrivals;
use crate::schedule::{Alias, Arriving, Choice, Leftover, Profile, Quota, Timetable, zipf_weights};

#[derive(Debug)]
pub struct Supplies {
    supply: Supply,
    weights: Vec<f64>,
    sequence: Option<Arc<[u32]>>,
    asked: Arc<AtomicU64>,
    threads: usize,
}

impl Supplies {
    pub fn new(plan: &Plan, threads: usize) -> Self {
        let order = &plan.order;
        let supply = match &order.load.arrivals {
            None => Supply::Stock(Quota::new(order.count, threads)),
            Some(arrivals) => {
                let (arriving, told_ns) = (arriving(arrivals, order.seed), plan.told_ns());
                let table = Timetable::new(arriving, order.count, arrivals.max_backlog, told_ns);
                Supply::Timetable(Arc::new(table))
            }
        };
        let weights = match order.zipf {
            Some(alpha) => zipf_weights(order.requests.len(), alpha),
            None => order.requests.iter().map(|request| request.weight).collect(),
        };
        Supplies {
            supply,
            weights,
            sequence: order.sequence.clone().map(Arc::from),
            asked: Arc::default(),
            threads,
        }
    }

    /// What one thread gets.
    pub fn part(&self, plan: &Plan, thread: usize) -> Part {
        let load = &plan.order.load;
        let share_of = |all: u32| {
            let all = all as usize;
            all / self.threads + usize::from(thread < all % self.threads)
        };
        // Spread, so that seeds of threads and of slots don't meet.
        let seed = plan.order.seed.wrapping_add((thread as u64 + 1) << 32);
        let weighted = Alias::new(&self.weights, seed);
        let choice = match &self.sequence {
            None => Choice::Weighted(weighted.clone()),
            Some(sequence) => {
                Choice::InOrder { sequence: Arc::clone(sequence), asked: Arc::clone(&self.asked) }
            }
        };
        Part {
            supply: self.supply.clone(),
            choice,
            slow_choice: weighted,
            connections: share_of(load.connections),
            slow: share_of(load.slow_readers.map_or(0, |slow| slow.connections)),
            idle: share_of(load.idle_connections),
            thread,
            seed,
        }
    }

    /// What of the timetable nobody took until `end_ns` after the start.
    pub fn leftover(&self, end_ns: u64) -> Leftover {
        match &self.supply {
            Supply::Stock(_) => Leftover::default(),
            Supply::Timetable(table) => table.close(end_ns),
        }
    }
}

fn arriving(arrivals: &Arrivals, seed: u64) -> Arriving {
    if arrivals.times_s.is_empty() {
        Either::Left(Profile::new(arrivals.stages.clone(), arrivals.process, seed))
    } else {
        Either::Right(arrivals.times_s.clone().into_iter())
    }
}
