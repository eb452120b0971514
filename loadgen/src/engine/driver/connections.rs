//! The connections of a thread in a slot: whose they are, which of them have something to do, and
//! whether servers can be reached.

use std::sync::Arc;

use rustix::event::epoll::Event;
use rustls::ClientConfig;

use crate::engine::flight::Flight;
use crate::engine::plan::Plan;
use crate::engine::pool::{ConnId, Pool, Role, State};
use crate::engine::schedule::ThreadShare;
use crate::engine::users::Place;

pub struct ConnectionState<'a> {
    pub pool: &'a mut Pool,
    /// By origin and number; those of slow readers follow those of the load.
    pub by_origin: Vec<Vec<ConnId>>,
    pub idle: Vec<ConnId>,
    /// How many are the load's, to each origin.
    pub of_load: usize,
    /// Number of this thread's first connection, and user, among all.
    pub first: usize,
    /// By origin.
    pub tls: Vec<Option<Arc<ClientConfig>>>,
    /// What has not been handled to its end: other connections had to have their turn.
    pub again: Vec<Event>,
    /// The next step on these is ours, and the server may wait for it.
    pub needs_polling: Vec<ConnId>,
    /// HTTP/2: they have something to send.
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
        // Idle connections are held to the first origin.
        let all = [load[0], load[1], (Role::Idle, share.idle)];
        pool.begin_slot();
        let claim =
            |(index, origin)| pool.claim(origin, index, if index == 0 { &all } else { &load });
        let mut by_origin: Vec<_> = plan.origins.iter().enumerate().map(claim).collect();
        let idle = by_origin[0].split_off(share.connections + share.slow);
        if plan.requests_per_connection != u32::MAX {
            by_origin.iter().flatten().for_each(|id| pool[*id].close());
        }
        let tls = plan.origins.iter().map(|origin| pool.tls(origin, plan.tls.as_ref())).collect();
        for id in by_origin.iter().flatten() {
            // What the last slot left in the middle.
            if let Some(user) = &mut pool[*id].exchange.user {
                user.place = Place::Free;
            }
        }
        ConnectionState {
            pool,
            by_origin,
            idle,
            of_load: share.connections,
            first: share.first_connection,
            tls,
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
