//! Broadcasts over WebSocket: one connection sends a message once all of the load are ready for it,
//! and what each of these receives is the answer to a request of its own. Its times begin when the
//! message is sent or, in an open loop, was due.

use rustix::event::epoll::EventFlags;
use rustix::net::RecvFlags;

use super::SlotDriver;
use super::answering::READS_AT_ONCE;
use super::state::Broadcast;
use crate::engine::exchange::Sending;
use crate::engine::pool::{ConnId, State};
use crate::engine::socket::Got;
use crate::websocket::farewell::Farewell;
use crate::websocket::frame::Fault;

/// Which of the plan's requests is sent.
const MESSAGE: usize = 0;

impl SlotDriver<'_> {
    /// A WebSocket is open, but its server may still be about to take it in: it has, once it answers.
    pub(super) fn ping(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        if let Some(messages) = &mut conn.exchange.response.messages {
            messages.ping();
        }
        if let Some(wire) = &mut conn.wire {
            conn.exchange.send_pongs(wire);
        }
        self.await_pong(id);
    }

    pub(super) fn await_pong(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let Some(wire) = &mut conn.wire else { return };
        let is_open = conn.exchange.listen(wire);
        let response = &conn.exchange.response;
        if !is_open {
            let why = match response.farewell().map(Farewell::to_string) {
                Some(farewell) => farewell,
                None if response.was_unasked() => Fault::Unasked.to_string(),
                None => "closed before it answered a ping".into(),
            };
            self.refused(id, (why, false));
        } else if response.messages.as_ref().is_some_and(|messages| messages.heard_pong) {
            self.opened(id);
        }
    }

    /// A connection is open: one of the load may have a request that waits for the message.
    pub(super) fn await_broadcast(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        conn.state = State::Idle;
        let is_ready = conn.flight.is_some();
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.ready += usize::from(is_ready);
        }
        self.broadcast_if_ready();
    }

    /// A connection was lost on which nothing was under way; true where the next message is not sent
    /// without it.
    pub(super) fn misses_broadcast(&mut self, id: ConnId) -> bool {
        let Some(broadcast) = &mut self.broadcast else { return false };
        let is_sender = id == broadcast.sender;
        let was_ready = self.conns.pool[id].flight.is_some();
        broadcast.ready -= usize::from(was_ready);
        broadcast.is_sending &= !is_sender;
        is_sender || was_ready
    }

    fn broadcast_if_ready(&mut self) {
        let (plan, lanes) = (self.plan, self.lanes.count);
        let Some(broadcast) = &mut self.broadcast else { return };
        if broadcast.ready < lanes || self.lanes.draining {
            return;
        }
        let sender = broadcast.sender;
        if std::mem::take(&mut broadcast.is_sending) {
            // Everybody has it or gave it up, and the server doesn't take the rest.
            self.conns.pool[sender].close();
            self.back_off(sender);
        }
        match self.conns.pool[sender].state {
            State::Idle => {}
            State::Closed => return self.reopen(sender),
            // It is tried again when it is open.
            _ => return,
        }
        let mut ready_ns = 0;
        for number in 0..lanes {
            let id = self.conns.by_origin[0][number];
            self.prepare(id);
            let conn = &mut self.conns.pool[id];
            conn.exchange.sends_nothing(&plan.requests[MESSAGE]);
            let planned = conn.flight.as_ref().map(|flight| flight.planned);
            ready_ns = ready_ns.max(planned.map_or(0, |planned| planned.ready_ns));
        }
        let sent_ns = self.clock.read();
        let conn = &mut self.conns.pool[sender];
        let Some(wire) = &mut conn.wire else { return };
        conn.exchange.begin_sending();
        let outcome = conn.exchange.send(wire, &plan.requests[MESSAGE]);
        if matches!(outcome, Sending::Broken(_)) {
            return self.lost_idle(sender);
        }
        let is_sending = !matches!(outcome, Sending::All);
        if is_sending {
            self.watch_room(sender);
        }
        self.broadcast = Some(Broadcast { sender, ready: 0, is_sending });
        for number in 0..lanes {
            let id = self.conns.by_origin[0][number];
            if let Some(flight) = &mut self.conns.pool[id].flight {
                // It wasn't the client that the others waited for.
                flight.planned.ready_ns = ready_ns;
            }
            self.sent(id, sent_ns);
        }
    }

    /// What comes to the sender, its own messages among it, says nothing.
    pub(super) fn hear_sender(&mut self, id: ConnId, flags: EventFlags) {
        let message = &self.plan.requests[MESSAGE];
        let Some(broadcast) = &mut self.broadcast else { return };
        for _ in 0..READS_AT_ONCE {
            let conn = &mut self.conns.pool[id];
            let Some(wire) = &mut conn.wire else { return };
            if broadcast.is_sending {
                conn.exchange.go_on_sending(wire, message);
                broadcast.is_sending = !conn.exchange.is_sent(wire, message);
            }
            match wire.read(self.scratch.room(), RecvFlags::empty()) {
                Ok(Got::Nothing) => return,
                Ok(Got::Bytes { count, .. })
                    if conn.exchange.pass_over(self.scratch.filled(count)) => {}
                _ => return self.lost_idle(id),
            }
            if !broadcast.is_sending {
                conn.exchange.send_pongs(wire);
            }
        }
        self.handle_again(id, flags);
    }

    /// The slot is over: what was begun can't be gone on with in the next one.
    pub(super) fn end_broadcast(&mut self) {
        let Some(broadcast) = &self.broadcast else { return };
        let conn = &mut self.conns.pool[broadcast.sender];
        if conn.state != State::Idle || broadcast.is_sending {
            conn.close();
        }
    }
}
