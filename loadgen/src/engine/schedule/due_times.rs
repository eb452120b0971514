//! The due times of a timetable, all of them or one client's own.
//!
//! Several clients share a timetable without a word between them: each draws all of it from the same
//! seed and keeps what is its own. Of even arrivals and given times the clients take turns. Of a
//! Poisson process each entry goes to a client drawn at random, as then the clients' parts are
//! Poisson processes, independent of each other (the colouring theorem: Kingman, Poisson Processes,
//! 1993, section 5.1), and their sum is one even if the clients begin some hundred microseconds
//! apart. Clients that took turns would have gaps that are more even, and their sum would be no
//! Poisson process unless all began at the same instant.

use std::iter::{Enumerate, Take};
use std::num::NonZeroU32;
use std::sync::Arc;

use either::Either;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::profile::Profile;
use crate::order::{Arrivals, Process, Share};

/// An entry of the timetable. Times count from the slot's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub at_ns: u64,
    /// 0 for the first, whosever it is.
    pub number: u64,
}

/// Due times in seconds after the start.
type Arriving = Either<Profile, Given>;

/// Times that were given.
#[derive(Debug, Clone)]
struct Given {
    times_s: Arc<[f64]>,
    next: usize,
}

impl Iterator for Given {
    type Item = f64;

    #[inline]
    fn next(&mut self) -> Option<f64> {
        let time_s = self.times_s.get(self.next).copied();
        self.next += 1;
        time_s
    }
}

/// DueTimes in the order of their times.
#[derive(Debug, Clone)]
pub struct DueTimes {
    times: Take<Enumerate<Arriving>>,
    owner: Owner,
}

/// Whose the due times are.
#[derive(Debug, Clone)]
enum Owner {
    /// All are ours.
    Alone,
    InTurns {
        of: u64,
        index: u64,
    },
    Drawn {
        of: u32,
        index: u32,
        rng: SmallRng,
    },
}

impl DueTimes {
    /// The timetable has `count` entries where that is given; `seed` is the order's.
    pub fn new(arrivals: &Arrivals, count: Option<u64>, seed: u64) -> Self {
        let seed = arrivals.share.map_or(seed, |share| share.seed);
        let arriving = if arrivals.times_s.is_empty() {
            let burst = arrivals.burst.map_or(1, NonZeroU32::get);
            Either::Left(Profile::new(arrivals.stages.clone(), arrivals.process, burst, seed))
        } else {
            Either::Right(Given { times_s: Arc::clone(&arrivals.times_s), next: 0 })
        };
        DueTimes::of(arrivals, arriving, count)
    }

    /// A timetable of which there are many; an even one begins at this share of its first gap.
    pub fn own(arrivals: &Arrivals, seed: u64, phase: f64) -> Self {
        let burst = arrivals.burst.map_or(1, NonZeroU32::get);
        let profile = Profile::new(arrivals.stages.clone(), arrivals.process, burst, seed);
        DueTimes::of(arrivals, Either::Left(profile.after(phase)), None)
    }

    fn of(arrivals: &Arrivals, arriving: Arriving, count: Option<u64>) -> Self {
        let count = count.map_or(usize::MAX, |count| count as usize);
        DueTimes { times: arriving.enumerate().take(count), owner: Owner::of(arrivals) }
    }
}

impl Iterator for DueTimes {
    type Item = Due;

    #[inline]
    fn next(&mut self) -> Option<Due> {
        let DueTimes { times, owner } = self;
        let (number, due_s) = times.find(|(number, _)| owner.is_ours(*number as u64))?;
        Some(Due { at_ns: (due_s * 1e9) as u64, number: number as u64 })
    }
}

impl Owner {
    fn of(arrivals: &Arrivals) -> Self {
        let Some(Share { of, index, seed }) = arrivals.share else { return Owner::Alone };
        if arrivals.process == Process::Poisson && arrivals.times_s.is_empty() {
            // Another stream than the gaps have: those are the same however many clients there are.
            Owner::Drawn { of, index, rng: SmallRng::seed_from_u64(!seed) }
        } else {
            Owner::InTurns { of: of.into(), index: index.into() }
        }
    }

    /// To be asked of every entry, once and in order.
    #[inline]
    fn is_ours(&mut self, number: u64) -> bool {
        match self {
            Owner::Alone => true,
            Owner::InTurns { of, index } => number % *of == *index,
            Owner::Drawn { of, index, rng } => rng.random_range(0..*of) == *index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Stage;

    fn arrivals(process: Process, share: Option<(u32, u32)>) -> Arrivals {
        let stage = Stage { rate_per_s: 1000.0, to_rate_per_s: None, for_s: Some(50.0) };
        let share = share.map(|(of, index)| Share { of, index, seed: 9 });
        Arrivals { process, stages: vec![stage], share, ..Arrivals::default() }
    }

    fn due_times(arrivals: &Arrivals, count: Option<u64>) -> Vec<Due> {
        DueTimes::new(arrivals, count, 9).collect()
    }

    #[test]
    fn every_place_is_exactly_one_clients() {
        for process in [Process::Constant, Process::Poisson] {
            for count in [None, Some(1000)] {
                let whole = due_times(&arrivals(process, None), count);
                let mut all: Vec<Due> = (0..3)
                    .flat_map(|index| due_times(&arrivals(process, Some((3, index))), count))
                    .collect();
                all.sort_by_key(|due| due.number);
                assert_eq!(all, whole);
                assert_eq!(all.len() as u64, count.unwrap_or(all.len() as u64));
            }
        }
    }

    #[test]
    fn the_only_client_has_it_all() {
        for process in [Process::Constant, Process::Poisson] {
            let only = due_times(&arrivals(process, Some((1, 0))), None);
            assert_eq!(only, due_times(&arrivals(process, None), None));
        }
    }

    #[test]
    fn the_seed_of_the_share_goes_before_that_of_the_order() {
        let shared = arrivals(Process::Poisson, Some((1, 0)));
        let [first, second] = [7, 8].map(|seed| DueTimes::new(&shared, None, seed).next());
        assert_eq!(first, second);
    }

    #[test]
    fn given_times_keep_their_numbers_and_are_taken_in_turns() {
        let times_s = [0.0, 1e-9, 1e-9, 4e-9, 5e-9].into();
        let share = Some(Share { of: 2, index: 1, seed: 0 });
        let process = Process::Poisson;
        let mine = due_times(&Arrivals { process, times_s, share, ..Arrivals::default() }, None);
        assert_eq!(mine, [(1, 1), (4, 3)].map(|(at_ns, number)| Due { at_ns, number }));
    }

    #[test]
    fn each_part_of_a_poisson_process_is_one() {
        for index in 0..2 {
            let part = due_times(&arrivals(Process::Poisson, Some((2, index))), None);
            let gaps: Vec<f64> =
                part.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean / 2e6 - 1.0).abs() < 0.03, "{mean}");
            // Exponential gaps; those of clients in turns would have 1 / √2.
            assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
        }
    }
}
