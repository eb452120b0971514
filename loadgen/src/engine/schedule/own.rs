//! A timetable for each lane: what is due on one waits for that one, as with users who each keep a
//! pace of their own.

use super::due_times::{Due, DueTimes};
use crate::order::Arrivals;

/// The timetables of one thread's lanes. Times count from the slot's start.
#[derive(Debug, Clone, Default)]
pub struct OwnTimetables(Vec<Own>);

#[derive(Debug, Clone)]
struct Own {
    due_times: DueTimes,
    next: Option<Due>,
}

impl OwnTimetables {
    /// For so many lanes, the first of which has this number among `all`. Even ones begin one after
    /// the other within the first gap, so that all together are even.
    pub fn new(arrivals: &Arrivals, seed: u64, first: usize, lanes: usize, all: usize) -> Self {
        let own = |number: usize| {
            let phase = number as f64 / all as f64;
            let mut due_times = DueTimes::own(arrivals, seed.wrapping_add(number as u64), phase);
            Own { next: due_times.next(), due_times }
        };
        OwnTimetables((first..first + lanes).map(own).collect())
    }

    /// The same for so many lanes, so that what is due is due on all of them at once. The rate is that
    /// of all together, where it isn't that of each.
    pub fn together(arrivals: &Arrivals, seed: u64, lanes: usize) -> Self {
        let mut arrivals = arrivals.clone();
        if !arrivals.each_connection {
            for stage in &mut arrivals.stages {
                stage.rate_per_s /= lanes as f64;
                stage.to_rate_per_s = stage.to_rate_per_s.map(|rate| rate / lanes as f64);
            }
        }
        let mut due_times = DueTimes::own(&arrivals, seed, 0.0);
        OwnTimetables(vec![Own { next: due_times.next(), due_times }; lanes])
    }

    /// What is due next on a lane.
    pub fn next(&self, lane: usize) -> Option<Due> {
        self.0[lane].next
    }

    /// Takes that; the one after it is next.
    pub fn take(&mut self, lane: usize) -> Option<Due> {
        let own = &mut self.0[lane];
        let due = own.next.take();
        own.next = own.due_times.next();
        due
    }

    /// Nothing that was due before `end_ns` waits to be taken.
    pub fn are_taken_until(&self, end_ns: u64) -> bool {
        self.0.iter().all(|own| own.next.is_none_or(|due| due.at_ns >= end_ns))
    }

    /// Gives up what was due before `end_ns`, and says when each was.
    pub fn close(&mut self, end_ns: u64) -> impl Iterator<Item = u64> {
        let overdue = move |own: &mut Own| {
            let due = own.next.filter(|due| due.at_ns < end_ns)?;
            own.next = own.due_times.next();
            Some(due.at_ns)
        };
        self.0.iter_mut().flat_map(move |own| std::iter::from_fn(move || overdue(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Process, Stage};

    fn timetables(process: Process, lanes: usize) -> OwnTimetables {
        let stage = Stage { rate_per_s: 10.0, to_rate_per_s: None, for_s: Some(1.0) };
        let arrivals = Arrivals { process, stages: vec![stage], ..Arrivals::default() };
        OwnTimetables::new(&arrivals, 7, 0, lanes, lanes)
    }

    fn all(own: &mut OwnTimetables, lane: usize) -> Vec<u64> {
        std::iter::from_fn(|| own.take(lane)).map(|due| due.at_ns).collect()
    }

    #[test]
    fn each_lane_keeps_the_rate_and_together_they_are_even() {
        let mut own = timetables(Process::Constant, 4);
        let mut together: Vec<u64> = (0..4).flat_map(|lane| all(&mut own, lane)).collect();
        assert_eq!(together.len(), 40);
        together.sort_unstable();
        assert!(together.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(25_000_000) < 10));
        let mut own = timetables(Process::Poisson, 2);
        assert_ne!(all(&mut own, 0), all(&mut own, 1));
    }

    #[test]
    fn lanes_together_share_a_rate() {
        let stage = Stage { rate_per_s: 40.0, to_rate_per_s: None, for_s: Some(1.0) };
        let arrivals = Arrivals { stages: vec![stage], ..Arrivals::default() };
        let mut own = OwnTimetables::together(&arrivals, 7, 4);
        let first = all(&mut own, 0);
        assert_eq!(first.len(), 10);
        assert_eq!(all(&mut own, 3), first);
        let of_each = Arrivals { each_connection: true, ..arrivals };
        assert_eq!(all(&mut OwnTimetables::together(&of_each, 7, 4), 0).len(), 40);
    }

    #[test]
    fn what_nobody_took_is_given_up_once() {
        let mut own = timetables(Process::Constant, 2);
        own.take(0);
        assert!(own.are_taken_until(50_000_000) && !own.are_taken_until(50_000_001));
        let mut overdue: Vec<u64> = own.close(200_000_000).collect();
        overdue.sort_unstable();
        assert_eq!(overdue, [50_000_000, 100_000_000, 150_000_000]);
        assert_eq!(own.close(200_000_000).count(), 0);
    }
}
