//! One thread's connections, open between slots. Each belongs to one origin as long as it exists, and
//! has the epoch of the slot that uses it. Events of a connection with another epoch aren't counted.

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::net::RecvFlags;
use rustls::ClientConfig;

use super::exchange::Exchange;
use super::flight::Flight;
use super::http3::connection::Http3Connection;
use super::plan::Origin;
use super::shared::{Shared, SharedConnection};
use super::socket::Got;
use super::upgrade::Upgrade;
use super::wire::Wire;
use crate::tls;

/// Index of a connection in its [`Pool`].
pub type ConnId = usize;

/// What a connection is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Load,
    /// Reads slowly, next to the load.
    Slow,
    /// Asks once and is then held open, next to the load.
    Idle,
    /// Sends what those of the load receive.
    Sender,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Closed,
    /// Waiting before the next try to connect.
    Resting,
    Connecting,
    /// Connected, but not ready: TLS, HTTP/2 or QUIC begin.
    Opening,
    /// Nothing is in flight; on a shared connection requests may be.
    Idle,
    /// A request is in flight.
    Busy,
}

#[derive(Default)]
pub struct Conn {
    pub state: State,
    pub role: Role,
    /// Which user of the slot this connection serves; where it is shared, the first of them.
    pub number: usize,
    /// Index into the plan's origins.
    pub origin: usize,
    epoch: u32,
    /// Distinguishes events of this socket from those of the one it replaced.
    generation: u32,
    pub wire: Option<Wire>,
    /// HTTP/1.1: what to send, or what is in flight.
    pub flight: Option<Flight>,
    pub exchange: Exchange,
    /// HTTP/2 and 3.
    pub shared: Option<Box<Shared>>,
    /// How its WebSocket is opened.
    pub upgrade: Option<Box<Upgrade>>,
    /// When connecting began, and when the socket was connected.
    pub began_ns: u64,
    pub connected_ns: u64,
    /// How long a TLS handshake took, and whether it resumed a session.
    pub handshake: Option<(u64, bool)>,
    /// A Unix socket's queue was full: connecting goes on since `began_ns`.
    pub queues: bool,
    /// Which of the origin's addresses is tried, once one was, and how many others failed before.
    pub address: Option<usize>,
    pub failed_addresses: usize,
    /// Requests sent over this socket.
    pub requests: u32,
    /// Something was answered over this socket, in this slot or before.
    pub has_answered: bool,
    /// Failures since the last answer; of an idle connection: how often it was lost.
    pub failures_in_a_row: u32,
    pub rests_until_ns: u64,
    /// The socket reports room to write.
    pub watches_room: bool,
    /// A slow reader that waits until it may read on.
    pub paused: bool,
    /// The connection is in its thread's list of those whose next step is ours.
    pub needs_polling: bool,
}

impl Conn {
    /// Gives a connection its place in a slot.
    fn assign(&mut self, role: Role, number: usize, origin: usize, epoch: u32) {
        (self.role, self.number, self.origin, self.epoch) = (role, number, origin, epoch);
        self.failures_in_a_row = 0;
        self.rests_until_ns = 0;
        self.requests = 0;
        self.queues = false;
        self.paused = false;
        self.needs_polling = false;
    }

    /// Closes the socket; what was in flight must have been accounted for.
    pub fn close(&mut self) {
        if let Some(wire) = &mut self.wire {
            self.exchange.say_farewell(wire);
        }
        self.wire = None;
        self.upgrade = None;
        if let Some(shared) = &mut self.shared {
            shared.connection = None;
        }
        self.exchange.renew();
        self.state = State::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.watches_room = false;
        self.requests = 0;
        self.has_answered = false;
        self.paused = false;
    }

    pub fn shared_connection(&mut self) -> Option<&mut SharedConnection> {
        self.shared.as_mut()?.connection.as_mut()
    }

    pub fn http3_connection(&mut self) -> Option<&mut Http3Connection> {
        self.shared_connection()?.http3()
    }

    /// HTTP/3: closes a connection that ended while nobody looked after it.
    pub fn close_if_over(&mut self) {
        let Some(connection) = self.http3_connection() else { return };
        connection.arrived();
        connection.move_frames();
        connection.move_frames();
        if !connection.is_usable() {
            self.close();
        }
    }

    /// Another request could be sent at once, or as soon as it is open.
    pub fn has_room(&self) -> bool {
        match self.shared.as_deref() {
            Some(Shared { connection: Some(connection), waiting }) => {
                connection.has_room()
                    && connection.in_flight() + waiting.len() < connection.allowed()
            }
            _ => true,
        }
    }

    /// Requests that count as sent and whose fate isn't known, those included that wait to be asked
    /// again.
    pub fn unresolved(&self) -> impl Iterator<Item = &Flight> {
        let waiting = self.shared.iter().flat_map(|shared| &shared.waiting);
        self.flight.iter().chain(waiting).filter(|flight| flight.is_counted()).chain(self.streams())
    }

    /// Requests on their way on a shared connection.
    fn streams(&self) -> impl Iterator<Item = &Flight> {
        let connection = self.shared.as_ref().and_then(|shared| shared.connection.as_ref());
        connection.into_iter().flat_map(SharedConnection::flights)
    }

    /// Since when the oldest request waits for its answer or, on an open connection, for a stream.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let sent = self.flight.iter().filter(|flight| flight.sent_ns > 0);
        let on_their_way = sent.chain(self.streams());
        let ready = self.shared.as_deref().filter(|_| self.state == State::Idle);
        let waiting = ready.and_then(|shared| shared.waiting.front());
        let waiting_since = waiting.map(|flight| flight.waits_since_ns);
        on_their_way.map(|flight| flight.sent_ns).chain(waiting_since).min()
    }

    /// Takes what has no connection yet: HTTP/1.1's request, and those that wait for a stream.
    pub fn take_waiting(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        let unsent = self.flight.take_if(|flight| flight.sent_ns == 0 && which(flight));
        let mut taken = Vec::from_iter(unsent);
        if let Some(shared) = &mut self.shared {
            let waiting = std::mem::take(&mut shared.waiting);
            let (gone, kept) = waiting.into_iter().partition::<VecDeque<Flight>, _>(which);
            shared.waiting = kept;
            taken.extend(gone);
        }
        taken
    }

    /// Looks at an open connection on which nothing is in flight: false when the server closed
    /// it, or sent what nobody asked for.
    pub fn is_quiet(&mut self, flags: EventFlags) -> bool {
        let hangup = is_hangup(flags);
        if let Some(connection) = self.shared_connection() {
            connection.arrived(hangup);
            // Once more where one read didn't bring all, or is to be acknowledged.
            if connection.move_frames() || connection.is_dirty() {
                connection.move_frames();
            }
            return connection.is_usable();
        }
        match &mut self.wire {
            Some(wire) if self.exchange.response.messages.is_some() => self.exchange.listen(wire),
            Some(wire) if wire.agreed().is_some() => {
                matches!(wire.read(&mut [0], RecvFlags::empty()), Ok(Got::Nothing))
            }
            // What the event was about may have been read since.
            Some(wire) if !hangup && flags.contains(EventFlags::IN) => {
                matches!(wire.read(&mut [0], RecvFlags::PEEK), Ok(Got::Nothing))
            }
            _ => !hangup && !flags.contains(EventFlags::IN),
        }
    }
}

/// The socket will say no more: it was closed by the other side or is broken.
pub fn is_hangup(flags: EventFlags) -> bool {
    flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
}

/// What is remembered of more origins than this is forgotten some slots after their last use.
const MOST_ORIGINS: usize = 256;
const REMEMBERED_SLOTS: u32 = 16;

/// The connections of an origin, and the epoch of the slot that used them last.
#[derive(Default)]
struct Owned {
    ids: Vec<ConnId>,
    epoch: u32,
}

#[derive(Default)]
pub struct Pool {
    conns: Vec<Conn>,
    owned: HashMap<Origin, Owned>,
    /// Connections that belong to no origin any more.
    unowned: Vec<ConnId>,
    /// TLS sessions of one server are worth nothing at another.
    tls: HashMap<Origin, Arc<ClientConfig>>,
    epoch: u32,
}

impl Pool {
    /// A new slot begins: no connection belongs to it yet.
    pub fn begin_slot(&mut self) {
        self.epoch += 1;
        if self.owned.len() > MOST_ORIGINS {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let is_old = |owned: &Owned| owned.epoch + REMEMBERED_SLOTS < self.epoch;
        for (origin, owned) in self.owned.extract_if(|_, owned| is_old(owned)) {
            self.tls.remove(&origin);
            for id in &owned.ids {
                self.conns[*id].close();
                // Events of its last socket stay those of another connection.
                let generation = self.conns[*id].generation;
                self.conns[*id] = Conn { generation, ..Conn::default() };
            }
            self.unowned.extend(owned.ids);
        }
    }

    /// The slot's connections to an origin, so many for each role, numbered throughout; open ones
    /// come from earlier slots, and what is open beyond these is closed.
    pub fn claim(&mut self, origin: &Origin, index: usize, roles: &[(Role, usize)]) -> Vec<ConnId> {
        let count = roles.iter().map(|(_, count)| count).sum();
        let owned = self.owned.entry(origin.clone()).or_default();
        owned.epoch = self.epoch;
        let ids = &mut owned.ids;
        while ids.len() < count {
            let id = self.unowned.pop().unwrap_or(self.conns.len());
            if id == self.conns.len() {
                self.conns.push(Conn::default());
            }
            self.conns[id].shared = origin.protocol.shares_connections().then(Box::default);
            ids.push(id);
        }
        let roles = roles.iter().flat_map(|(role, count)| std::iter::repeat_n(*role, *count));
        for (number, (id, role)) in ids.iter().zip(roles).enumerate() {
            self.conns[*id].assign(role, number, index, self.epoch);
        }
        ids[count..].iter().for_each(|id| self.conns[*id].close());
        ids[..count].to_vec()
    }

    /// How TLS is done with an origin, if it is.
    pub fn tls(
        &mut self,
        origin: &Origin,
        any: Option<&ClientConfig>,
    ) -> Option<Arc<ClientConfig>> {
        let ((_, options), any) = origin.tls.as_ref().zip(any)?;
        let own = || Arc::new(tls::with_own_sessions(any, options.resumption));
        Some(Arc::clone(self.tls.entry(origin.clone()).or_insert_with(own)))
    }

    /// Closes the connections to origins that are not among these.
    pub fn close_others(&mut self, kept: &[Origin]) {
        for (origin, owned) in &self.owned {
            if !kept.contains(origin) {
                owned.ids.iter().for_each(|id| self.conns[*id].close());
            }
        }
    }

    /// The connection of this slot that an event is about. One of another slot is looked after
    /// here, and closed where its server closed it.
    pub fn connection_of(&mut self, event: &Event) -> Option<ConnId> {
        let data = event.data.u64();
        let (id, generation) = ((data & 0xffff_ffff) as usize, (data >> 32) as u32);
        let conn = self.conns.get_mut(id)?;
        if conn.generation != generation {
            return None;
        }
        if conn.epoch != self.epoch {
            if conn.state == State::Idle && !conn.is_quiet(event.flags) {
                conn.close();
            }
            return None;
        }
        Some(id)
    }

    /// What events of a connection's socket carry.
    pub fn key(&self, id: ConnId) -> EventData {
        EventData::new_u64(u64::from(self.conns[id].generation) << 32 | id as u64)
    }
}

impl Drop for Pool {
    /// Servers of WebSockets hear that nothing more comes.
    fn drop(&mut self) {
        self.conns.iter_mut().for_each(Conn::close);
    }
}

impl Index<ConnId> for Pool {
    type Output = Conn;

    #[inline]
    fn index(&self, id: ConnId) -> &Conn {
        &self.conns[id]
    }
}

impl IndexMut<ConnId> for Pool {
    #[inline]
    fn index_mut(&mut self, id: ConnId) -> &mut Conn {
        &mut self.conns[id]
    }
}

#[cfg(test)]
mod tests;
