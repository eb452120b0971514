//! Getting connections, and losing them.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;

use super::dial::{Dialled, NoConnection, Opened, dial};
use super::door::{Door, Gate};
use super::slot::Slot;
use super::wire::is_quiet;
use crate::engine::clock::now_ns;
use crate::engine::connect::rest_ns;
use crate::http2::{Limits, LinkEnd, Permit};
use crate::record::Failure;

impl Slot {
    /// Sees to it that a door has an open line.
    pub async fn ready_line(&self, door: &Door, request: usize) {
        let line = door.line.take();
        if let Some(mut line) = line {
            if is_quiet(&mut line.wire).await {
                *door.line.borrow_mut() = Some(line);
                return;
            }
            self.count_server_closed(false);
        }
        self.open(door, request).await;
    }

    /// Leave to use a stream of a door's link, which is opened if need be.
    pub async fn permit(&self, door: &Door, request: usize) -> Permit {
        loop {
            self.count_ended_link(door);
            if let Some(link) = door.usable_link() {
                if let Some(permit) = link.permit().await {
                    return permit;
                }
                continue;
            }
            let _opening = door.opening.lock().await;
            if door.usable_link().is_none() {
                self.open(door, request).await;
            }
        }
    }

    /// Opens a door's connection, however often that takes; rests between failures, so that a
    /// server that closes at once isn't hammered.
    async fn open(&self, door: &Door, request: usize) {
        let gate = Rc::clone(self.gate(request));
        loop {
            if door.strikes.get() > 0 {
                sleep(Duration::from_nanos(rest_ns(door.strikes.get()))).await;
            }
            match self.dial(&gate).await {
                Ok(dialled) => return self.opened(door, dialled),
                Err(failed) => self.no_connection(&gate, door, &failed),
            }
        }
    }

    async fn dial(&self, gate: &Gate) -> Result<Dialled, NoConnection> {
        let sources = &self.plan.sources;
        let nth = self.connects.replace(self.connects.get() + 1);
        let source = (!sources.is_empty()).then(|| sources[nth % sources.len()]);
        let limits = Limits {
            streams: self.plan.layers.as_ref().map_or(1, |layers| layers.streams),
            requests: self.plan.requests_per_connection,
        };
        dial(gate, source, limits, Duration::from_nanos(self.plan.timeout_ns)).await
    }

    fn opened(&self, door: &Door, dialled: Dialled) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.opened += 1;
        recorder.connect.record(dialled.connect_ns);
        if let Some(handshake) = dialled.handshake {
            let layers = recorder.layers();
            layers.handshake.record(handshake.took_ns);
            layers.resumed_handshakes += u64::from(handshake.resumed);
            layers.full_handshakes += u64::from(!handshake.resumed);
        }
        match dialled.opened {
            Opened::Line(line) => *door.line.borrow_mut() = Some(line),
            Opened::Link(link) => {
                recorder.layers().allow(link.allowed() as u64);
                *door.link.borrow_mut() = Some(link);
            }
        }
        self.unreachable_since_ns.set(None);
        self.reached.set(true);
    }

    fn no_connection(&self, gate: &Gate, door: &Door, failed: &NoConnection) {
        door.strikes.set(door.strikes.get() + 1);
        if !self.counts() {
            return;
        }
        self.connect_failed.notify_one();
        let mut recorder = self.recorder.borrow_mut();
        recorder.fail(Failure::Connect);
        recorder.samples.keep(format!("connect to {}: {}", gate.origin, failed.why));
        let now_ns = now_ns();
        let since_ns = self.unreachable_since_ns.get().unwrap_or(now_ns);
        self.unreachable_since_ns.set(Some(since_ns));
        let endless = self.plan.duration_ns == u64::MAX;
        let out_of_patience = endless && now_ns - since_ns >= self.plan.timeout_ns;
        if out_of_patience || failed.for_good && !self.reached.get() {
            self.give_up.notify_one();
        }
    }

    /// Counts a link that ended since it was used last.
    fn count_ended_link(&self, door: &Door) {
        let Some((link, end)) = door.take_ended_link() else { return };
        match end {
            LinkEnd::Retired => return,
            LinkEnd::GoAway if self.counts() => self.recorder.borrow_mut().layers().go_aways += 1,
            LinkEnd::GoAway | LinkEnd::Lost(_) => {}
        }
        self.count_server_closed(false);
        if link.answered_ns.get() == 0 || matches!(end, LinkEnd::Lost(Some(_))) {
            door.strikes.set(door.strikes.get() + 1);
        }
    }

    /// Counts a connection that the server closed though we wanted to use it again.
    pub fn count_server_closed(&self, last: bool) {
        if !last && self.counts() {
            self.recorder.borrow_mut().server_closed += 1;
        }
    }
}
