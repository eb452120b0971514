//! One thread's epoll instance and all connections it ever opened, pooled by address.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::clock::timespec;
use super::conn::{Conn, Role, State};
use super::receiving::Scratch;
use crate::target::Address;

/// Index of a connection in [`Reactor::conns`].
pub type ConnId = usize;

/// Event data of the thread's waker.
pub const WAKER: u64 = u64::MAX;

const EVENTS: usize = 256;

#[derive(Debug)]
pub struct Reactor {
    epoll: OwnedFd,
    pub conns: Vec<Conn>,
    pool: HashMap<Address, Vec<ConnId>>,
    pub scratch: Scratch,
}

/// What happened to one connection.
#[derive(Debug, Clone, Copy)]
pub struct Happened {
    pub id: ConnId,
    pub flags: EventFlags,
}

/// The socket will say no more: it was closed by the other side or is broken.
pub fn is_hangup(flags: EventFlags) -> bool {
    flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
}

impl Reactor {
    pub fn new(waker: BorrowedFd<'_>) -> io::Result<Reactor> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, waker, EventData::new_u64(WAKER), EventFlags::IN | EventFlags::ET)?;
        Ok(Reactor { epoll, conns: Vec::new(), pool: HashMap::new(), scratch: Scratch::new() })
    }

    /// An empty buffer for [`Self::wait`].
    pub fn events() -> Vec<Event> {
        Vec::with_capacity(EVENTS)
    }

    /// Waits at most `timeout_ns` and fills `events`.
    pub fn wait(&self, events: &mut Vec<Event>, timeout_ns: u64) {
        events.clear();
        let timeout = timespec(timeout_ns);
        // Only EINTR is possible, and it means: nothing happened.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout));
    }

    /// The connection an event is about, unless that socket is gone or it is the waker.
    pub fn happened(&self, event: &Event) -> Option<Happened> {
        let data = event.data.u64();
        let (id, generation) = ((data & 0xffff_ffff) as usize, (data >> 32) as u32);
        let conn = self.conns.get(id)?;
        (conn.generation == generation && conn.fd.is_some())
            .then_some(Happened { id, flags: event.flags })
    }

    /// Asks for events of a socket, once for its life: arriving bytes and the end of them,
    /// and room for writing only where that is awaited.
    pub fn watch(&mut self, id: ConnId, room: bool) -> Result<(), Errno> {
        let conn = &mut self.conns[id];
        let Some(fd) = &conn.fd else { return Ok(()) };
        let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        flags.set(EventFlags::OUT, room);
        conn.watches_room = room;
        epoll::add(&self.epoll, fd, event_data(id, conn.generation), flags)
    }

    /// Also asks for room to write.
    pub fn watch_room(&mut self, id: ConnId) -> Result<(), Errno> {
        let conn = &mut self.conns[id];
        let Some(fd) = &conn.fd else { return Ok(()) };
        if conn.watches_room {
            return Ok(());
        }
        conn.watches_room = true;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::modify(&self.epoll, fd, event_data(id, conn.generation), flags)
    }

    /// The connections of a slot to one address, so many for each role, numbered throughout;
    /// open ones come from earlier slots.
    pub fn claim(
        &mut self,
        address: &Address,
        target: usize,
        roles: &[(Role, usize)],
    ) -> Vec<ConnId> {
        let lanes = roles.iter().map(|(_, count)| count).sum();
        let ids = self.pool.entry(address.clone()).or_default();
        let can_drop = matches!(address, Address::Tcp(_));
        while ids.len() < lanes {
            ids.push(self.conns.len());
            self.conns.push(Conn::new(can_drop));
        }
        let roles = roles.iter().flat_map(|(role, count)| std::iter::repeat_n(*role, *count));
        for (lane, (id, role)) in ids.iter().zip(roles).enumerate() {
            self.conns[*id].assign(role, lane, target);
        }
        ids[..lanes].to_vec()
    }

    /// Closes the connections to all other addresses.
    pub fn close_others(&mut self, kept: &[Address]) {
        for (address, ids) in &self.pool {
            if !kept.contains(address) {
                ids.iter().for_each(|id| self.conns[*id].close());
            }
        }
    }

    /// Closes what the servers closed while nothing was asked of them.
    pub fn close_dead(&mut self, events: &mut Vec<Event>) {
        loop {
            self.wait(events, 0);
            if events.is_empty() {
                return;
            }
            for event in events.iter() {
                if let Some(happened) = self.happened(event)
                    && self.conns[happened.id].state == State::Idle
                    && (is_hangup(happened.flags) || happened.flags.contains(EventFlags::IN))
                {
                    self.conns[happened.id].close();
                }
            }
        }
    }
}

fn event_data(id: ConnId, generation: u32) -> EventData {
    EventData::new_u64(u64::from(generation) << 32 | id as u64)
}
