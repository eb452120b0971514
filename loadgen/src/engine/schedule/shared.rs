//! What the threads of a slot share, and what each is given of it.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::budget::RequestBudget;
use super::choice::{Choice, zipf_weights};
use super::due_times::DueTimes;
use super::own::OwnTimetables;
use super::timetable::Timetable;
use crate::engine::plan::Plan;
use crate::engine::users::flows;
use crate::order::Request;
use crate::record::Recorder;

/// Where a thread's requests come from.
#[derive(Debug, Clone)]
pub enum RequestSource {
    /// Closed loop: as fast as answers come, as long as the common budget lasts.
    Budget(RequestBudget),
    /// Open loop: from the common timetable.
    Timetable(Arc<Timetable>),
    /// Open loop: from the timetable of each connection.
    Own(OwnTimetables),
}

/// What a thread is given for a slot.
#[derive(Debug)]
pub struct ThreadShare {
    pub source: RequestSource,
    pub choice: Choice,
    /// Connections of this thread, by what they are for.
    pub connections: usize,
    pub slow: usize,
    pub idle: usize,
    /// The number of the first of the load's among those of all threads.
    pub first_connection: usize,
    pub thread: usize,
    pub rng: SmallRng,
}

/// What the threads of a slot share: the budget or the timetable of requests.
#[derive(Debug)]
pub struct SharedSchedule {
    source: RequestSource,
    choice: Choice,
    threads: usize,
}

impl SharedSchedule {
    pub fn new(plan: &Plan, threads: usize) -> Result<Self, String> {
        let order = &plan.order;
        let source = match &order.load.arrivals {
            None => RequestSource::Budget(RequestBudget::new(order.count, threads)),
            // Each thread makes those of its connections.
            Some(arrivals) if arrivals.each_connection || order.load.broadcast => {
                RequestSource::Own(OwnTimetables::default())
            }
            Some(arrivals) => {
                let due_times = DueTimes::new(arrivals, order.count, order.seed);
                let table = Timetable::new(due_times, arrivals.max_backlog, plan.window_ns());
                RequestSource::Timetable(Arc::new(table))
            }
        };
        let weights = match order.zipf {
            Some(alpha) => zipf_weights(order.requests.len(), alpha),
            None => weights(&order.requests),
        };
        let traces = plan.sessions.as_ref().is_some_and(|sessions| sessions.trace);
        let once = traces.then(|| firsts(&order.requests));
        let choice = Choice::new(&weights, once.as_deref().or(order.sequence.as_deref()))?;
        Ok(SharedSchedule { source, choice, threads })
    }

    pub fn share_of(&self, plan: &Plan, thread: usize) -> ThreadShare {
        let load = &plan.order.load;
        let spread = |all: u32| {
            let all = all as usize;
            all / self.threads + usize::from(thread < all % self.threads)
        };
        let all = load.connections as usize;
        // Spread, so that seeds of threads and of slots don't meet.
        let seed = plan.order.seed.wrapping_add((thread as u64 + 1) << 32);
        let first_connection = all / self.threads * thread + thread.min(all % self.threads);
        let lanes = spread(load.connections);
        let source = match (&self.source, &load.arrivals) {
            (RequestSource::Own(_), Some(arrivals)) => {
                let seed = plan.order.seed;
                RequestSource::Own(match load.broadcast {
                    true => OwnTimetables::together(arrivals, seed, lanes),
                    false => OwnTimetables::new(arrivals, seed, first_connection, lanes, all),
                })
            }
            (shared, _) => shared.clone(),
        };
        ThreadShare {
            source,
            choice: self.choice.clone(),
            connections: lanes,
            slow: spread(load.slow_readers.map_or(0, |slow| slow.connections)),
            idle: spread(load.idle_connections),
            first_connection,
            thread,
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    /// The record of requests in the timetable that no thread took by `end_ns` after the start.
    pub fn leftover(&self, end_ns: u64) -> Recorder {
        match &self.source {
            RequestSource::Budget(_) | RequestSource::Own(_) => Recorder::default(),
            RequestSource::Timetable(table) => table.close(end_ns),
        }
    }
}

/// What is chosen among: flows, each by its first request.
fn weights(requests: &[Request]) -> Vec<f64> {
    let weight = |(flow, request): (Option<_>, &Request)| flow.map_or(0.0, |_| request.weight);
    flows(requests).into_iter().zip(requests).map(weight).collect()
}

/// Each flow by its first request.
fn firsts(requests: &[Request]) -> Vec<u32> {
    (0..).zip(flows(requests)).filter_map(|(first, flow)| flow.map(|_| first)).collect()
}
