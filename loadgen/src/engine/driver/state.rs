//! What a thread holds in a slot: its lanes, its connections, its records.

use std::ops::Range;
use std::sync::Arc;

use rustix::event::epoll::Event;
use rustls::ClientConfig;

use crate::engine::flight::{Flight, Traced};
use crate::engine::http3::dialer::Dialer;
use crate::engine::log::RequestLog;
use crate::engine::plan::Plan;
use crate::engine::pool::{ConnId, Pool, Role, State};
use crate::engine::schedule::LaneScheduler;
use crate::engine::schedule::PlannedRequest;
use crate::engine::schedule::ThreadShare;
use crate::engine::users::Place;
use crate::events::EventStream;
use crate::order::Protocol;
use crate::record::{OtherConnections, Recorder};

/// What lanes do next, and what of theirs has no answer yet.
pub struct LaneState {
    pub scheduler: LaneScheduler,
    /// Those of slow readers, of which there may be some, are numbered from here on.
    pub count: usize,
    /// Open loop: requests on their way that were due in the window.
    pub due_unanswered: usize,
    /// Nothing more is asked.
    pub draining: bool,
    /// While draining: requests that have no answer yet.
    pub left_to_drain: usize,
    /// Streams are left, as the duration is over.
    pub leaves_streams: bool,
}

impl LaneState {
    pub fn new(scheduler: LaneScheduler, count: usize) -> LaneState {
        LaneState {
            scheduler,
            count,
            due_unanswered: 0,
            draining: false,
            left_to_drain: 0,
            leaves_streams: false,
        }
    }

    /// Everything due before `end_ns` has been answered, or has failed.
    pub fn have_resolved_all(&self, end_ns: u64) -> bool {
        self.due_unanswered == 0 && self.scheduler.is_taken_until(end_ns)
    }

    /// More than this share of what was due in the window has no answer yet, as far as this thread
    /// knows: it doesn't know what others have on their way.
    pub fn lack_more_than(&self, share: f64, now_ns: u64) -> bool {
        self.scheduler.in_window(now_ns).is_some_and(|window| {
            let lacking = self.due_unanswered as u64 + window.waiting;
            lacking as f64 > share * window.due as f64
        })
    }

    /// While draining: a request is over.
    pub fn drain_one(&mut self) {
        self.left_to_drain = self.left_to_drain.saturating_sub(1);
    }
}

/// Whose the connections of a thread are, which of them have something to do, and whether servers
/// can be reached.
pub struct ConnectionState<'a> {
    pub pool: &'a mut Pool,
    /// By origin and number; those of slow readers follow those of the load.
    pub by_origin: Vec<Vec<ConnId>>,
    pub idle: Vec<ConnId>,
    /// Of a broadcast.
    pub sender: Option<ConnId>,
    /// How many are the load's, to each origin.
    pub of_load: usize,
    /// Number of this thread's first connection, and user, among all.
    pub first: usize,
    /// By origin.
    pub tls: Vec<Option<Arc<ClientConfig>>>,
    /// How HTTP/3 is begun, by origin.
    pub dialers: Vec<Option<Dialer>>,
    /// What has not been handled to its end: other connections had to have their turn.
    pub again: Vec<Event>,
    /// The next step on these is ours, and the server may wait for it.
    pub needs_polling: Vec<ConnId>,
    /// Shared connections that have something to send.
    pub unsent: Vec<ConnId>,
    /// Connects so far, to take source addresses in turn.
    pub connects: usize,
    /// A connection was made.
    pub reached: bool,
    /// Since when no connection could be made for the load.
    pub unreachable_since_ns: Option<u64>,
    /// The server can't be reached as asked, and trying again would change nothing.
    pub hopeless: bool,
}

impl<'a> ConnectionState<'a> {
    pub fn new(plan: &Plan, pool: &'a mut Pool, share: &ThreadShare) -> ConnectionState<'a> {
        let load = [(Role::Load, share.connections), (Role::Slow, share.slow)];
        // Idle connections are held to the first origin, and a broadcast has no other.
        let senders = usize::from(plan.order.load.broadcast);
        let all = [load[0], load[1], (Role::Idle, share.idle), (Role::Sender, senders)];
        pool.begin_slot();
        let claim =
            |(index, origin)| pool.claim(origin, index, if index == 0 { &all } else { &load });
        let mut by_origin: Vec<_> = plan.origins.iter().enumerate().map(claim).collect();
        let mut idle = by_origin[0].split_off(share.connections + share.slow);
        let sender = if senders > 0 { idle.pop() } else { None };
        if plan.requests_per_connection != u32::MAX {
            by_origin.iter().flatten().for_each(|id| pool[*id].close());
        }
        let tls: Vec<_> =
            plan.origins.iter().map(|origin| pool.tls(origin, plan.tls.as_ref())).collect();
        let is_http3 = plan.order.load.protocol == Protocol::Http3;
        let dialer = |tls: &Option<Arc<ClientConfig>>| {
            let tls = tls.as_ref().filter(|_| is_http3)?;
            // Every provider has the suite that is needed at first.
            Dialer::new(Arc::clone(tls)).ok()
        };
        let dialers = tls.iter().map(dialer).collect();
        for id in by_origin.iter().flatten() {
            pool[*id].close_if_over();
            // What the last slot left in the middle.
            if let Some(user) = &mut pool[*id].exchange.user {
                user.place = Place::Free;
            }
        }
        ConnectionState {
            pool,
            by_origin,
            idle,
            sender,
            of_load: share.connections,
            first: share.first_connection,
            tls,
            dialers,
            again: Vec::new(),
            needs_polling: Vec::new(),
            unsent: Vec::new(),
            connects: 0,
            reached: false,
            unreachable_since_ns: None,
            hopeless: false,
        }
    }

    /// Those of the load.
    pub fn ids_of_load(&self) -> impl Iterator<Item = ConnId> {
        self.by_origin.iter().flat_map(move |ids| ids[..self.of_load].iter().copied())
    }

    /// Requests of the load that are on their way, or wait to be asked again.
    pub fn unresolved(&self) -> impl Iterator<Item = &Flight> {
        self.ids_of_load().flat_map(move |id| self.pool[id].unresolved())
    }

    /// The server can't be reached: as asked, or for the whole timeout where only a count could
    /// end the slot.
    pub fn gave_up(&mut self, plan: &Plan, now_ns: u64) -> bool {
        let since_ns = self.unreachable_since_ns.filter(|_| plan.duration_ns == u64::MAX);
        if since_ns.is_some_and(|since_ns| now_ns - since_ns >= plan.timeout_ns) {
            // Other connections, or other targets, may be fine.
            let is_open = |id: &ConnId| matches!(self.pool[*id].state, State::Idle | State::Busy);
            if !self.by_origin.iter().flatten().any(is_open) {
                return true;
            }
            self.unreachable_since_ns = None;
        }
        self.hopeless
    }
}

/// The next message that one connection sends and all others receive.
pub struct Broadcast {
    pub sender: ConnId,
    /// So many connections of the load are open and wait for it.
    pub ready: usize,
    /// Some of the last one is still to be sent.
    pub is_sending: bool,
}

impl Broadcast {
    pub fn by(sender: ConnId) -> Broadcast {
        Broadcast { sender, ready: 0, is_sending: false }
    }
}

/// What a thread records of a slot.
pub struct Records {
    /// Of the load, in the present window.
    pub load: Recorder,
    pub others: OtherConnections,
    /// Times are recorded of requests whose times begin in here: in an open loop, the window.
    pub window_ns: Range<u64>,
    /// Answers to what was sent before this are late: the window is over.
    pub over_since_ns: Option<u64>,
    /// All answers, where they are reported whole.
    pub traced: Vec<Traced>,
    /// Where requests are logged.
    pub log: Option<RequestLog>,
}

impl Records {
    pub fn new() -> Records {
        Records {
            load: Recorder::default(),
            others: OtherConnections::default(),
            window_ns: 0..u64::MAX,
            over_since_ns: None,
            traced: Vec::new(),
            log: None,
        }
    }

    /// Where requests over connections of a role are recorded.
    pub fn of(&mut self, role: Role) -> &mut Recorder {
        match role {
            Role::Load | Role::Sender => &mut self.load,
            Role::Slow => &mut self.others.slow,
            Role::Idle => &mut self.others.idle,
        }
    }

    /// A request was due in the window.
    pub fn is_in_window(&self, planned: &PlannedRequest) -> bool {
        planned.due_ns.is_some_and(|due_ns| self.window_ns.contains(&due_ns))
    }

    /// When the times of a request begin, if they are recorded.
    #[inline]
    pub fn times_from_ns(&self, flight: &Flight) -> Option<u64> {
        let from_ns = flight.times_from_ns();
        self.window_ns.contains(&from_ns).then_some(from_ns)
    }

    /// Times the events of an answer that are there by now, where it is a stream of them;
    /// `is_whole`: the answer has ended, and an event may with it.
    #[inline]
    pub fn time_events(
        &mut self,
        events: &mut Option<Box<EventStream>>,
        flight: &Flight,
        role: Role,
        done_ns: u64,
        is_whole: bool,
    ) {
        let Some(events) = events else { return };
        if is_whole {
            events.finish();
        }
        if let Some(from_ns) = self.times_from_ns(flight) {
            self.of(role).times.events.take(events, from_ns, done_ns);
        }
    }

    /// The client has got round to a request: until here it is its send delay.
    pub fn record_send_delay(&mut self, flight: &mut Flight, now_ns: u64) {
        let ready_ns = std::mem::take(&mut flight.planned.ready_ns);
        if ready_ns > 0 && self.is_in_window(&flight.planned) {
            self.load.times.send_delay.record(now_ns.saturating_sub(ready_ns));
        }
    }

    /// Open loop: a request that was due then has no answer by `end_ns`. Where it was due in the
    /// window, which is given, it enters the times with how long it has waited.
    pub fn record_unanswered(&mut self, due_ns: u64, end_ns: u64) -> bool {
        let is_in_window = self.window_ns.contains(&due_ns);
        if is_in_window {
            self.load.times.waited.record(end_ns.saturating_sub(due_ns));
        }
        is_in_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_begin_when_a_request_was_due_or_sent() {
        let mut records = Records::new();
        let undue = Flight { first_sent_ns: 12, ..Flight::new(0, PlannedRequest::undue(0), 11) };
        let due = |due_ns| {
            let planned = PlannedRequest { due_ns: Some(due_ns), ..undue.planned };
            Flight { planned, ..undue }
        };
        // Closed loop.
        assert_eq!(records.times_from_ns(&undue), Some(12));
        records.window_ns = 10..20;
        let flights = [undue, due(9), due(10), due(20)];
        let from_ns = flights.map(|flight| records.times_from_ns(&flight));
        assert_eq!(from_ns, [Some(12), None, Some(10), None]);
        let in_window = flights.map(|flight| records.is_in_window(&flight.planned));
        assert_eq!(in_window, [false, false, true, false]);
    }
}
