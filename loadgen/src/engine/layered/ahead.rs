//! Before the window: connections that are to be there when it begins.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::slot::{Interrupted, Slot, all_ended};
use crate::engine::ahead::pace_ns;
use crate::order::Protocol;

impl Slot {
    /// In an open loop opens the connections that serve many requests. The first failure ends
    /// this: what is missing is then opened within the window.
    pub async fn open_ahead(self: &Rc<Self>, interrupted: &Interrupted<'_>) {
        if !self.plan.is_open() || self.plan.requests_per_connection != u32::MAX {
            return;
        }
        let mut connections = JoinSet::new();
        for number in 0..self.connections {
            connections.spawn_local(open(Rc::clone(self), number));
        }
        tokio::select! {
            () = all_ended(&mut connections) => {}
            () = self.connect_failed.notified() => {}
            () = interrupted.wait() => {}
            () = sleep(Duration::from_nanos(self.plan.timeout_ns)) => {}
        }
        connections.shutdown().await;
    }
}

async fn open(slot: Rc<Slot>, number: usize) {
    sleep(Duration::from_nanos(pace_ns(number))).await;
    let door = slot.door(number, 0);
    match slot.gate(0).origin.protocol {
        Protocol::Http1 => slot.ready_line(&door, 0).await,
        Protocol::Http2 => drop(slot.permit(&door, 0).await),
    }
}
