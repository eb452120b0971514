//! What the lanes of a thread do next: which of them are free, and which request is theirs. Lanes are
//! the users of a slot.

use std::collections::VecDeque;

use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};

use super::shared::{RequestSource, ThreadShare};
use super::timetable::InWindow;
use crate::order::{Think, ThinkDistribution};

/// A request somebody is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRequest {
    /// Index into the plan's requests.
    pub request: usize,
    /// When the timetable of an open loop had it.
    pub due_ns: Option<u64>,
    /// When it could have been sent, since it was due and its lane free; 0 once its send delay is
    /// recorded, and where nothing is ever due.
    pub ready_ns: u64,
}

impl PlannedRequest {
    /// No timetable has it.
    pub fn undue(request: usize) -> PlannedRequest {
        PlannedRequest { request, due_ns: None, ready_ns: 0 }
    }
}

/// What a lane with a timetable of its own is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnNext {
    Send(PlannedRequest),
    /// Nothing is due before.
    Wait(u64),
    /// Nothing more is due.
    End,
}

#[derive(Debug)]
pub struct LaneScheduler {
    share: ThreadShare,
    /// Lanes that still have something to do.
    active: usize,
    /// Open loop: lanes with nothing to do, those that failed last in front; and the request
    /// taken for the last of them.
    free: VecDeque<usize>,
    held: Option<PlannedRequest>,
    /// HTTP/2: when it was looked last, none of the free lanes could send what was due.
    is_blocked: bool,
    start_ns: u64,
    /// What is due from here on is not asked.
    end_ns: u64,
}

impl LaneScheduler {
    pub fn new(share: ThreadShare, lanes: usize) -> LaneScheduler {
        LaneScheduler {
            share,
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
        !matches!(self.share.source, RequestSource::Budget(_))
    }

    /// What a lane is to do that is free since `free_since_ns`; None where lanes have no timetables
    /// of their own.
    pub fn next_own(&mut self, lane: usize, now_ns: u64, free_since_ns: u64) -> Option<OwnNext> {
        let RequestSource::Own(own) = &mut self.share.source else { return None };
        let Some(due) = own.next(lane) else {
            self.active -= 1;
            return Some(OwnNext::End);
        };
        let due_ns = self.start_ns + due.at_ns;
        if due_ns > now_ns || due_ns >= self.end_ns {
            return Some(OwnNext::Wait(due_ns));
        }
        own.take(lane);
        let request = self.share.choice.pick(Some(due.number), &mut self.share.rng);
        let ready_ns = due_ns.max(free_since_ns);
        Some(OwnNext::Send(PlannedRequest { request, due_ns: Some(due_ns), ready_ns }))
    }

    /// When each request was due before `end_ns` that no lane with a timetable of its own took.
    pub fn overdue(&mut self, end_ns: u64) -> impl Iterator<Item = u64> {
        let start_ns = self.start_ns;
        let own = match &mut self.share.source {
            // Before the load began nothing was due.
            RequestSource::Own(own) if start_ns > 0 => Some(own),
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
        match &self.share.source {
            RequestSource::Budget(_) => true,
            RequestSource::Own(own) => own.are_taken_until(end_ns - self.start_ns),
            RequestSource::Timetable(table) => {
                self.held_due_ns().is_none_or(|due_ns| due_ns >= end_ns)
                    && table.is_taken_until(end_ns - self.start_ns)
            }
        }
    }

    /// Open loop: of the requests of the window, how many were due so far, of all threads, and how
    /// many of these wait to be taken on.
    pub fn in_window(&self, now_ns: u64) -> Option<InWindow> {
        let RequestSource::Timetable(table) = &self.share.source else { return None };
        Some(table.in_window(now_ns - self.start_ns))
    }

    /// Closed loop: the next request, unless there is none for this lane any more.
    pub fn next_in_budget(&mut self) -> Option<PlannedRequest> {
        let RequestSource::Budget(budget) = &mut self.share.source else { return None };
        if !budget.take_one() {
            self.active -= 1;
            return None;
        }
        Some(self.next_undue())
    }

    /// The next request that no timetable has.
    pub fn next_undue(&mut self) -> PlannedRequest {
        PlannedRequest::undue(self.share.choice.pick(None, &mut self.share.rng))
    }

    /// The next request of a slow reader.
    pub fn next_slow(&mut self) -> PlannedRequest {
        PlannedRequest::undue(self.share.choice.pick_by_weight(&mut self.share.rng))
    }

    pub fn rng(&mut self) -> &mut SmallRng {
        &mut self.share.rng
    }

    pub fn pause_ns(&mut self, think: &Think) -> u64 {
        let factor = match think.distribution {
            ThinkDistribution::Constant => 1.0,
            ThinkDistribution::Exponential => Exp1.sample(&mut self.share.rng),
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

    /// Takes a request off the timetable for a free lane.
    pub fn take(&mut self, now_ns: u64, free_since_ns: u64) {
        let RequestSource::Timetable(table) = &self.share.source else { return };
        if self.held.is_some() || self.free.is_empty() {
            return;
        }
        match table.take(now_ns - self.start_ns) {
            Some(due) => {
                let due_ns = self.start_ns + due.at_ns;
                let request = self.share.choice.pick(Some(due.number), &mut self.share.rng);
                let ready_ns = due_ns.max(free_since_ns);
                self.held = Some(PlannedRequest { request, due_ns: Some(due_ns), ready_ns });
            }
            // After the last request every lane ends when it gets free.
            None => {
                self.active -= self.free.len();
                self.free.clear();
            }
        }
    }

    /// A lane that gets free now has something to send: what is due or, where no other lane was
    /// free, what most likely is.
    pub fn asks_at_once(&self, now_ns: u64) -> bool {
        match (&self.share.source, self.held_due_ns()) {
            (RequestSource::Budget(_), _) => true,
            (RequestSource::Timetable(_), Some(due_ns)) => due_ns <= now_ns,
            (RequestSource::Timetable(_), None) => self.free.is_empty(),
            (RequestSource::Own(_), _) => false,
        }
    }

    /// When the request that was taken is due.
    pub fn held_due_ns(&self) -> Option<u64> {
        self.held?.due_ns
    }

    /// The request that was taken, an index into the plan's, and whether no lane could send it when
    /// it was looked last.
    pub fn held(&self) -> Option<(usize, bool)> {
        self.held.map(|planned| (planned.request, self.is_blocked))
    }

    /// The request that is due now, and the lane for it; `can` says which lanes could send one.
    /// Where none could before, one could at the earliest at `room_ns`.
    pub fn next_due(
        &mut self,
        now_ns: u64,
        room_ns: u64,
        can: impl FnMut(&usize) -> bool,
    ) -> Option<(usize, PlannedRequest)> {
        let is_due = |due_ns: u64| due_ns <= now_ns && due_ns < self.end_ns;
        let mut planned = self.held.filter(|planned| planned.due_ns.is_none_or(is_due))?;
        let Some(position) = self.free.iter().rposition(can) else {
            self.is_blocked = true;
            return None;
        };
        let lane = self.free.remove(position)?;
        self.held = None;
        if std::mem::take(&mut self.is_blocked) {
            planned.ready_ns = planned.ready_ns.max(room_ns);
        }
        Some((lane, planned))
    }

    /// Nothing more is asked; gives what was taken.
    pub fn end(&mut self) -> Option<PlannedRequest> {
        self.free.clear();
        self.held.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::SeedableRng;

    use super::*;
    use crate::engine::schedule::choice::Choice;
    use crate::engine::schedule::due_times::DueTimes;
    use crate::engine::schedule::timetable::Timetable;
    use crate::order::Arrivals;

    fn scheduler(times_s: &[f64], lanes: usize) -> LaneScheduler {
        let arrivals = Arrivals { times_s: times_s.into(), ..Arrivals::default() };
        let table = Timetable::new(DueTimes::new(&arrivals, None, 0), 9, 0..u64::MAX);
        let share = ThreadShare {
            source: RequestSource::Timetable(Arc::new(table)),
            choice: Choice::new(&[1.0], None).expect("a weight"),
            connections: lanes,
            slow: 0,
            idle: 0,
            first_connection: 0,
            thread: 0,
            rng: SmallRng::seed_from_u64(0),
        };
        LaneScheduler::new(share, lanes)
    }

    fn next_lane(
        scheduler: &mut LaneScheduler,
        now_ns: u64,
        can: impl FnMut(&usize) -> bool,
    ) -> Option<usize> {
        scheduler.take(now_ns, 0);
        scheduler.next_due(now_ns, 0, can).map(|(lane, _)| lane)
    }

    #[test]
    fn lanes_that_lost_their_connection_are_asked_last() {
        let mut scheduler = scheduler(&[0.0; 4], 4);
        for (lane, was_lost) in [(0, false), (1, true), (2, false), (3, true)] {
            scheduler.wait(lane, was_lost);
        }
        let lanes: Vec<_> = (0..4).map_while(|_| next_lane(&mut scheduler, 1, |_| true)).collect();
        assert_eq!(lanes, [2, 0, 1, 3]);
    }

    #[test]
    fn lanes_without_room_are_passed_over() {
        let mut scheduler = scheduler(&[0.0, 0.0], 2);
        scheduler.wait(0, false);
        scheduler.wait(1, false);
        assert_eq!(next_lane(&mut scheduler, 1, |lane| *lane == 0), Some(0));
        assert_eq!(next_lane(&mut scheduler, 1, |_| false), None);
        // It isn't the client's delay that there was no room.
        let (_, planned) = scheduler.next_due(9, 7, |_| true).expect("room");
        assert_eq!((planned.due_ns, planned.ready_ns), (Some(0), 7));
    }

    #[test]
    fn nothing_is_asked_early_or_after_the_end() {
        let mut scheduler = scheduler(&[10e-9, 20e-9], 2);
        scheduler.begin(100, 120);
        scheduler.wait(0, false);
        scheduler.wait(1, false);
        assert_eq!(next_lane(&mut scheduler, 109, |_| true), None);
        assert_eq!(next_lane(&mut scheduler, 110, |_| true), Some(1));
        assert_eq!(next_lane(&mut scheduler, 130, |_| true), None);
    }
}
