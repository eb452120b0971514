//! What a thread is to ask next, and the lanes that wait to ask it: the users of a slot.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::order::{Think, ThinkDistribution};
use crate::schedule::{Alias, Ask, Choice, Share, Timetable, exponential};

/// Where a thread's requests come from.
#[derive(Debug)]
pub enum Supply {
    /// Closed loop: as fast as answers come, from a common stock.
    Stock(Share),
    /// Open loop: from the common timetable.
    Timetable(Arc<Timetable>),
}

/// What a thread is given for a slot.
#[derive(Debug)]
pub struct Part {
    pub supply: Supply,
    pub choice: Choice,
    pub slow_choice: Alias,
    /// Connections of this thread, by what they are for.
    pub connections: usize,
    pub slow: usize,
    pub idle: usize,
    pub thread: usize,
    pub seed: u64,
}

#[derive(Debug)]
pub struct Asks {
    supply: Supply,
    choice: Choice,
    slow_choice: Alias,
    rng: fastrand::Rng,
    /// Lanes that still have something to do.
    active: usize,
    /// Open loop: lanes with nothing to do, those that failed last in front; and the request
    /// taken for the last of them.
    free: VecDeque<usize>,
    held: Option<Ask>,
    pub start_ns: u64,
}

impl Asks {
    pub fn new(part: Part, lanes: usize) -> Asks {
        Asks {
            supply: part.supply,
            choice: part.choice,
            slow_choice: part.slow_choice,
            rng: fastrand::Rng::with_seed(part.seed),
            active: lanes,
            free: VecDeque::new(),
            held: None,
            start_ns: 0,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.supply, Supply::Timetable(_))
    }

    /// No lane has anything to do any more.
    pub fn is_over(&self) -> bool {
        self.active == 0
    }

    /// Nothing that was due before `end_ns` waits to be taken on.
    pub fn is_taken_until(&self, end_ns: u64) -> bool {
        match &self.supply {
            Supply::Stock(_) => true,
            Supply::Timetable(table) => {
                self.held_due_ns().is_none_or(|due_ns| due_ns >= end_ns)
                    && table.is_taken_until(end_ns - self.start_ns)
            }
        }
    }

    /// Closed loop: the next request, unless there is none for this lane any more.
    pub fn next_of_stock(&mut self) -> Option<Ask> {
        let Supply::Stock(share) = &mut self.supply else { return None };
        if !share.take_one() {
            self.active -= 1;
            return None;
        }
        Some(self.next_undue())
    }

    /// The next request that no timetable has.
    pub fn next_undue(&mut self) -> Ask {
        Ask { request: self.choice.pick(None), due_ns: None, ready_ns: 0 }
    }

    /// The next request of a slow reader.
    pub fn next_slow(&mut self) -> Ask {
        Ask { request: self.slow_choice.pick(), due_ns: None, ready_ns: 0 }
    }

    pub fn pause_ns(&mut self, think: &Think) -> u64 {
        let factor = match think.distribution {
            ThinkDistribution::Constant => 1.0,
            ThinkDistribution::Exponential => exponential(&mut self.rng),
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
        let Supply::Timetable(table) = &self.supply else { return };
        if self.held.is_some() || self.free.is_empty() {
            return;
        }
        match table.take(now_ns - self.start_ns) {
            Some(due) => {
                let due_ns = self.start_ns + due.at_ns;
                let request = self.choice.pick(Some(due.number));
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

    /// The request that is due now, and the lane for it; `can` tells which lanes could send one.
    pub fn next_due(
        &mut self,
        now_ns: u64,
        can: impl FnMut(&usize) -> bool,
    ) -> Option<(usize, Ask)> {
        let ask = self.held.filter(|ask| ask.due_ns.is_none_or(|due_ns| due_ns <= now_ns))?;
        let place = self.free.iter().rposition(can)?;
        let lane = self.free.remove(place)?;
        self.held = None;
        Some((lane, ask))
    }

    /// Nothing more is asked; gives what was taken.
    pub fn end(&mut self) -> Option<Ask> {
        self.free.clear();
        self.held.take()
    }
}
