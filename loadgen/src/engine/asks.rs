//! What a thread is to ask next, and the lanes that wait to ask it: the users of a slot.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};

use super::plan::Plan;
use super::users::flows;
use crate::order::{Request, Think, ThinkDistribution};
use crate::record::Recorder;
use crate::schedule::{
    Ask, Choice, InWindow, OwnTimetables, Places, Quota, Timetable, zipf_weights,
};

/// Where a thread's requests come from.
#[derive(Debug, Clone)]
pub enum Supply {
    /// Closed loop: as fast as answers come, from a common stock.
    Stock(Quota),
    /// Open loop: from the common timetable.
    Timetable(Arc<Timetable>),
    /// Open loop: from the timetable of each connection.
    Own(OwnTimetables),
}

/// What a lane with a timetable of its own is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextOwn {
    Ask(Ask),
    /// Nothing is due before.
    Wait(u64),
    /// Nothing more is due.
    End,
}

/// What a thread is given for a slot.
#[derive(Debug)]
pub struct Part {
    pub supply: Supply,
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

/// What the threads of a slot share: the stock or timetable requests come from.
#[derive(Debug)]
pub struct Supplies {
    supply: Supply,
    choice: Choice,
    threads: usize,
}

impl Supplies {
    pub fn new(plan: &Plan, threads: usize) -> Result<Self, String> {
        let order = &plan.order;
        let supply = match &order.load.arrivals {
            None => Supply::Stock(Quota::new(order.count, threads)),
            // Each thread makes those of its connections.
            Some(arrivals) if arrivals.each_connection => Supply::Own(OwnTimetables::default()),
            Some(arrivals) => {
                let places = Places::new(arrivals, order.count, order.seed);
                let table = Timetable::new(places, arrivals.max_backlog, plan.window_ns());
                Supply::Timetable(Arc::new(table))
            }
        };
        let weights = match order.zipf {
            Some(alpha) => zipf_weights(order.requests.len(), alpha),
            None => weights(&order.requests),
        };
        let traces = plan.sessions.as_ref().is_some_and(|sessions| sessions.trace);
        let once = traces.then(|| firsts(&order.requests));
        let choice = Choice::new(&weights, once.as_deref().or(order.sequence.as_deref()))?;
        Ok(Supplies { supply, choice, threads })
    }

    /// What one thread gets.
    pub fn part(&self, plan: &Plan, thread: usize) -> Part {
        let load = &plan.order.load;
        let share_of = |all: u32| {
            let all = all as usize;
            all / self.threads + usize::from(thread < all % self.threads)
        };
        let all = load.connections as usize;
        // Spread, so that seeds of threads and of slots don't meet.
        let seed = plan.order.seed.wrapping_add((thread as u64 + 1) << 32);
        let first_connection = all / self.threads * thread + thread.min(all % self.threads);
        let lanes = share_of(load.connections);
        let supply = match (&self.supply, &load.arrivals) {
            (Supply::Own(_), Some(arrivals)) => {
                let seed = plan.order.seed;
                Supply::Own(OwnTimetables::new(arrivals, seed, first_connection, lanes, all))
            }
            (supply, _) => supply.clone(),
        };
        Part {
            supply,
            choice: self.choice.clone(),
            connections: lanes,
            slow: share_of(load.slow_readers.map_or(0, |slow| slow.connections)),
            idle: share_of(load.idle_connections),
            first_connection,
            thread,
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    /// What of the timetable nobody took until `end_ns` after the start.
    pub fn leftover(&self, end_ns: u64) -> Recorder {
        match &self.supply {
            Supply::Stock(_) | Supply::Own(_) => Recorder::default(),
            Supply::Timetable(table) => table.close(end_ns),
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

#[derive(Debug)]
pub struct Asks {
    part: Part,
    /// Lanes that still have something to do.
    active: usize,
    /// Open loop: lanes with nothing to do, those that failed last in front; and the request
    /// taken for the last of them.
    free: VecDeque<usize>,
    held: Option<Ask>,
    /// HTTP/2: when it was looked last, none of the free lanes could send what was due.
    is_blocked: bool,
    start_ns: u64,
    /// What is due from here on is not asked.
    end_ns: u64,
}

impl Asks {
    pub fn new(part: Part, lanes: usize) -> Asks {
        Asks {
            part,
            active: lanes,
            free: VecDeque::new(),
            held: None,
            is_blocked: false,
            start_ns: 0,
            end_ns: u64::MAX,
        }
    }

    /// The load begins, and ends at the latest then.
    pub fn begin(&mut self, start_ns: u64, end_ns: u64) {
        (self.start_ns, self.end_ns) = (start_ns, end_ns);
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.part.supply, Supply::Stock(_))
    }

    /// What a lane is to do that is free since `free_since_ns`; None where lanes have no timetables
    /// of their own.
    pub fn next_own(&mut self, lane: usize, now_ns: u64, free_since_ns: u64) -> Option<NextOwn> {
        let Supply::Own(own) = &mut self.part.supply else { return None };
        let Some(due) = own.next(lane) else {
            self.active -= 1;
            return Some(NextOwn::End);
        };
        let due_ns = self.start_ns + due.at_ns;
        if due_ns > now_ns || due_ns >= self.end_ns {
            return Some(NextOwn::Wait(due_ns));
        }
        own.take(lane);
        let request = self.part.choice.pick(Some(due.number), &mut self.part.rng);
        let ready_ns = due_ns.max(free_since_ns);
        Some(NextOwn::Ask(Ask { request, due_ns: Some(due_ns), ready_ns }))
    }

    /// When each request was due before `end_ns` that no lane with a timetable of its own took.
    pub fn overdue(&mut self, end_ns: u64) -> impl Iterator<Item = u64> {
        let start_ns = self.start_ns;
        let own = match &mut self.part.supply {
            // Before the load began nothing was due.
            Supply::Own(own) if start_ns > 0 => Some(own),
            _ => None,
        };
        let overdue = own.into_iter().flat_map(move |own| own.close(end_ns - start_ns));
        overdue.map(move |at_ns| start_ns + at_ns)
    }

    /// No lane has anything to do any more.
    pub fn is_over(&self) -> bool {
        self.active == 0
    }

    /// Nothing that was due before `end_ns` waits to be taken on.
    pub fn is_taken_until(&self, end_ns: u64) -> bool {
        match &self.part.supply {
            Supply::Stock(_) => true,
            Supply::Own(own) => own.are_taken_until(end_ns - self.start_ns),
            Supply::Timetable(table) => {
                self.held_due_ns().is_none_or(|due_ns| due_ns >= end_ns)
                    && table.is_taken_until(end_ns - self.start_ns)
            }
        }
    }

    /// Open loop: of the requests of the window, how many were due so far, of all threads, and how
    /// many of these wait to be taken on.
    pub fn in_window(&self, now_ns: u64) -> Option<InWindow> {
        let Supply::Timetable(table) = &self.part.supply else { return None };
        Some(table.in_window(now_ns - self.start_ns))
    }

    /// Closed loop: the next request, unless there is none for this lane any more.
    pub fn next_of_stock(&mut self) -> Option<Ask> {
        let Supply::Stock(quota) = &mut self.part.supply else { return None };
        if !quota.take_one() {
            self.active -= 1;
            return None;
        }
        Some(self.next_undue())
    }

    /// The next request that no timetable has.
    pub fn next_undue(&mut self) -> Ask {
        Ask { request: self.part.choice.pick(None, &mut self.part.rng), due_ns: None, ready_ns: 0 }
    }

    /// The next request of a slow reader.
    pub fn next_slow(&mut self) -> Ask {
        Ask {
            request: self.part.choice.pick_by_weight(&mut self.part.rng),
            due_ns: None,
            ready_ns: 0,
        }
    }

    pub fn rng(&mut self) -> &mut SmallRng {
        &mut self.part.rng
    }

    pub fn pause_ns(&mut self, think: &Think) -> u64 {
        let factor = match think.distribution {
            ThinkDistribution::Constant => 1.0,
            ThinkDistribution::Exponential => Exp1.sample(&mut self.part.rng),
        };
        (think.mean_s * factor * 1e9) as u64
    }

    /// Open loop: a lane waits for something to be due. One whose connection was lost is asked
    /// last, so that no request has to wait while others could send it.
    pub fn wait(&mut self, lane: usize, was_lost: bool) {
        match was_lost {
            true => self.free.push_front(lane),
            false => self.free.push_back(lane),
        }
    }

    /// Takes a place in the timetable for a free lane.
    pub fn take(&mut self, now_ns: u64, free_since_ns: u64) {
        let Supply::Timetable(table) = &self.part.supply else { return };
        if self.held.is_some() || self.free.is_empty() {
            return;
        }
        match table.take(now_ns - self.start_ns) {
            Some(due) => {
                let due_ns = self.start_ns + due.at_ns;
                let request = self.part.choice.pick(Some(due.number), &mut self.part.rng);
                let ready_ns = due_ns.max(free_since_ns);
                self.held = Some(Ask { request, due_ns: Some(due_ns), ready_ns });
            }
            // After the last request every lane ends when it gets free.
            None => {
                self.active -= self.free.len();
                self.free.clear();
            }
        }
    }

    /// When the request that was taken is due.
    pub fn held_due_ns(&self) -> Option<u64> {
        self.held?.due_ns
    }

    /// The request that was taken, an index into the plan's, and whether no lane could send it when
    /// it was looked last.
    pub fn held(&self) -> Option<(usize, bool)> {
        self.held.map(|ask| (ask.request, self.is_blocked))
    }

    /// The request that is due now, and the lane for it; `can` tells which lanes could send one.
    /// Where none could before, one could at the earliest at `room_ns`.
    pub fn next_due(
        &mut self,
        now_ns: u64,
        room_ns: u64,
        can: impl FnMut(&usize) -> bool,
    ) -> Option<(usize, Ask)> {
        let is_due = |due_ns: u64| due_ns <= now_ns && due_ns < self.end_ns;
        let mut ask = self.held.filter(|ask| ask.due_ns.is_none_or(is_due))?;
        let Some(place) = self.free.iter().rposition(can) else {
            self.is_blocked = true;
            return None;
        };
        let lane = self.free.remove(place)?;
        self.held = None;
        if std::mem::take(&mut self.is_blocked) {
            ask.ready_ns = ask.ready_ns.max(room_ns);
        }
        Some((lane, ask))
    }

    /// Nothing more is asked; gives what was taken.
    pub fn end(&mut self) -> Option<Ask> {
        self.free.clear();
        self.held.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Arrivals;

    fn asks(times_s: &[f64], lanes: usize) -> Asks {
        let arrivals = Arrivals { times_s: times_s.into(), ..Arrivals::default() };
        let table = Timetable::new(Places::new(&arrivals, None, 0), 9, 0..u64::MAX);
        let part = Part {
            supply: Supply::Timetable(Arc::new(table)),
            choice: Choice::new(&[1.0], None).expect("a weight"),
            connections: lanes,
            slow: 0,
            idle: 0,
            first_connection: 0,
            thread: 0,
            rng: SmallRng::seed_from_u64(0),
        };
        Asks::new(part, lanes)
    }

    fn next_lane(asks: &mut Asks, now_ns: u64, can: impl FnMut(&usize) -> bool) -> Option<usize> {
        asks.take(now_ns, 0);
        asks.next_due(now_ns, 0, can).map(|(lane, _)| lane)
    }

    #[test]
    fn lanes_that_lost_their_connection_are_asked_last() {
        let mut asks = asks(&[0.0; 4], 4);
        for (lane, was_lost) in [(0, false), (1, true), (2, false), (3, true)] {
            asks.wait(lane, was_lost);
        }
        let lanes: Vec<_> = (0..4).map_while(|_| next_lane(&mut asks, 1, |_| true)).collect();
        assert_eq!(lanes, [2, 0, 1, 3]);
    }

    #[test]
    fn lanes_without_room_are_passed_over() {
        let mut asks = asks(&[0.0, 0.0], 2);
        asks.wait(0, false);
        asks.wait(1, false);
        assert_eq!(next_lane(&mut asks, 1, |lane| *lane == 0), Some(0));
        assert_eq!(next_lane(&mut asks, 1, |_| false), None);
        // It isn't the client's lag that there was no room.
        let (_, ask) = asks.next_due(9, 7, |_| true).expect("room");
        assert_eq!((ask.due_ns, ask.ready_ns), (Some(0), 7));
    }

    #[test]
    fn nothing_is_asked_early_or_after_the_end() {
        let mut asks = asks(&[10e-9, 20e-9], 2);
        asks.begin(100, 120);
        asks.wait(0, false);
        asks.wait(1, false);
        assert_eq!(next_lane(&mut asks, 109, |_| true), None);
        assert_eq!(next_lane(&mut asks, 110, |_| true), Some(1));
        assert_eq!(next_lane(&mut asks, 130, |_| true), None);
    }
}
