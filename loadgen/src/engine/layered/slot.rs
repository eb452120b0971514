//! The life of a slot on one thread.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex, Notify};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::alarm::Alarm;
use super::books::Flight;
use super::door::{Door, Gate};
use super::lane;
use crate::check::CHECKSUM_EVERY;
use crate::engine::clock::now_ns;
use crate::engine::plan::Plan;
use crate::engine::slot::{EndedBy, Memory, Part, Supply};
use crate::engine::usage::Usage;
use crate::engine::windows::{Current, Done, Report};
use crate::record::{Beside, Recorder};
use crate::schedule::Choice;

const READ_BYTES: usize = 64 * 1024;

/// The buffer all lines read into.
#[derive(Debug)]
pub struct Scratch {
    pub bytes: Vec<u8>,
    /// How much of it the last read filled.
    pub filled: usize,
}

impl Scratch {
    pub fn last_read(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

/// What the lanes of a slot share. Nothing borrowed is kept while a lane waits.
#[derive(Debug)]
pub struct Slot {
    pub plan: Arc<Plan>,
    pub gates: Vec<Rc<Gate>>,
    pub recorder: RefCell<Recorder>,
    pub supply: RefCell<Supply>,
    pub choice: RefCell<Choice>,
    pub rng: RefCell<fastrand::Rng>,
    pub memory: RefCell<Vec<Memory>>,
    pub scratch: RefCell<Scratch>,
    /// By lane.
    pub flights: RefCell<Vec<Option<Flight>>>,
    /// Whose turn it is at the timetable, and the alarm that goes when a request is due.
    pub turn: Mutex<Alarm>,
    pub start_ns: Cell<u64>,
    pub end_ns: Cell<u64>,
    /// After the window.
    pub draining: Cell<bool>,
    /// Since when no connection could be made.
    pub unreachable_since_ns: Cell<Option<u64>>,
    /// A connection was made.
    pub reached: Cell<bool>,
    pub give_up: Notify,
    /// Whenever a connection could not be made.
    pub connect_failed: Notify,
    /// Connects so far, to take source addresses in turn.
    pub connects: Cell<usize>,
    pub connections: usize,
    thread: usize,
}

impl Slot {
    pub fn new(plan: Arc<Plan>, part: Part, gates: Vec<Rc<Gate>>, turn: Alarm) -> Slot {
        let streams = plan.layers.as_ref().map_or(1, |layers| layers.streams);
        Slot {
            gates,
            recorder: RefCell::new(Recorder::empty()),
            supply: RefCell::new(part.supply),
            choice: RefCell::new(part.choice),
            rng: RefCell::new(fastrand::Rng::with_seed(part.seed)),
            memory: RefCell::new(plan.requests.iter().map(|_| Memory::default()).collect()),
            scratch: RefCell::new(Scratch { bytes: vec![0; READ_BYTES], filled: 0 }),
            flights: RefCell::new(vec![None; part.lanes * streams]),
            turn: Mutex::new(turn),
            start_ns: Cell::new(0),
            end_ns: Cell::new(u64::MAX),
            draining: Cell::new(false),
            unreachable_since_ns: Cell::new(None),
            reached: Cell::new(false),
            give_up: Notify::new(),
            connect_failed: Notify::new(),
            connects: Cell::new(0),
            connections: part.lanes,
            thread: part.thread,
            plan,
        }
    }

    /// Runs the window and the drain after it.
    pub async fn run(
        self: Rc<Self>,
        start_ns: u64,
        alarm: &Alarm,
        interrupted: &Interrupted<'_>,
        reports: &Sender<Report>,
    ) {
        let slot_end_ns = start_ns.saturating_add(self.plan.duration_ns);
        self.start_ns.set(start_ns);
        self.end_ns.set(slot_end_ns);
        let mut window = Current::first(self.thread, start_ns, self.plan.window_ns);
        let mut lanes = JoinSet::new();
        let numbers = 0..self.flights.borrow().len();
        let handles: Vec<AbortHandle> =
            numbers.map(|lane| lanes.spawn_local(lane::run(Rc::clone(&self), lane))).collect();
        let ended_by = loop {
            tokio::select! {
                biased;
                () = alarm.until(slot_end_ns.min(window.end_ns)) => {}
                () = interrupted.wait() => break EndedBy::Interrupt,
                () = self.give_up.notified() => break EndedBy::Unreachable,
                () = all_ended(&mut lanes) => break EndedBy::Count,
            }
            if now_ns() >= slot_end_ns {
                break EndedBy::Duration;
            }
            let part = window.hand_over(&mut self.recorder.borrow_mut(), now_ns());
            // The engine listens until it has heard of the end.
            let _ = reports.send(Report::Window(part));
        };
        let seen_ns = now_ns();
        let (ended_by, end_ns) = match seen_ns >= slot_end_ns {
            true => (EndedBy::Duration, slot_end_ns),
            false => (ended_by, seen_ns),
        };
        let usage = Usage::of_this_thread();
        self.drain(end_ns, lanes, &handles).await;
        let drained_ns = now_ns();
        let last = window.last(&mut self.recorder.borrow_mut(), end_ns, usage);
        let _ = reports.send(Report::Window(last));
        let beside = Beside::empty();
        let done = Done { ended_by, start_ns, end_ns, drained_ns, beside };
        let _ = reports.send(Report::Done(Box::new(done)));
    }

    /// Answers in flight are awaited for as long as the timeout; then their connections end.
    async fn drain(&self, end_ns: u64, mut lanes: JoinSet<()>, handles: &[AbortHandle]) {
        let in_flight = self.settle(end_ns);
        for (handle, _) in handles.iter().zip(&in_flight).filter(|(_, in_flight)| !**in_flight) {
            handle.abort();
        }
        let patience = Duration::from_nanos(self.plan.timeout_ns);
        if timeout(patience, all_ended(&mut lanes)).await.is_err() {
            lanes.shutdown().await;
        }
        for (lane, flight) in self.flights.borrow().iter().enumerate() {
            if let Some(flight) = flight.filter(|_| in_flight[lane]) {
                self.door(lane, flight.ask.request).close();
            }
        }
    }

    /// The number of a lane's connection; the streams of one connection are lanes far apart, so
    /// that the first ones spread.
    pub fn connection(&self, lane: usize) -> usize {
        lane % self.connections
    }

    pub fn gate(&self, request: usize) -> &Rc<Gate> {
        let origin = self.plan.layers.as_ref().map_or(0, |layers| layers.requests[request].origin);
        &self.gates[origin]
    }

    /// The door of the connection on which a lane asks for a request.
    pub fn door(&self, lane: usize, request: usize) -> Rc<Door> {
        self.gate(request).door(self.connection(lane))
    }

    /// A checksum to compute, when the body of the next answer is to be read in full.
    pub fn hash_for(&self, request: usize) -> Option<Sha256> {
        if !self.plan.requests[request].expectation.wants_checksum() {
            return None;
        }
        let asked = &mut self.memory.borrow_mut()[request].asked;
        let wanted = asked.is_multiple_of(CHECKSUM_EVERY);
        *asked = asked.wrapping_add(1);
        wanted.then(Sha256::new)
    }
}

pub async fn all_ended(lanes: &mut JoinSet<()>) {
    while lanes.join_next().await.is_some() {}
}

/// Tells when somebody wants the slot to end early.
#[derive(Debug)]
pub struct Interrupted<'a> {
    pub waker: &'a AsyncFd<Arc<OwnedFd>>,
    pub flag: &'a AtomicBool,
}

impl Interrupted<'_> {
    pub async fn wait(&self) {
        while !self.flag.load(Ordering::Relaxed) {
            match self.waker.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => std::future::pending().await,
            }
        }
    }
}
