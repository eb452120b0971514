//! Lanes: the users of a slot, each with one request at a time. On an HTTP/2 connection there are
//! as many as it has streams.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::books::{Answer, Outcome};
use super::door::Door;
use super::slot::Slot;
use super::{http1, http2};
use crate::engine::ahead::pace_ns;
use crate::engine::clock::{now_ns, seconds_to_ns};
use crate::engine::slot::Supply;
use crate::http2::Permit;
use crate::order::{Protocol, ThinkDistribution, Unit};
use crate::record::Failure;
use crate::schedule::{Ask, exponential};

/// Asks until there is nothing more to ask.
pub async fn run(slot: Rc<Slot>, number: usize) {
    sleep(Duration::from_nanos(pace_ns(slot.connection(number)))).await;
    let deadline = Box::pin(sleep(Duration::ZERO));
    let mut lane = Lane { slot, number, deadline, in_session: false };
    while let (Some(ask), ahead) = lane.next().await {
        lane.carry_out(ask, ahead).await;
        if !lane.slot.counts() {
            return;
        }
        lane.think().await;
    }
}

struct Lane {
    slot: Rc<Slot>,
    number: usize,
    /// Of the request in flight; kept, because a new timer for each would cost more.
    deadline: Pin<Box<Sleep>>,
    /// Connections are due, and this lane's has requests left.
    in_session: bool,
}

impl Lane {
    /// The next request, when it is to be sent; with leave to use a stream, if that was needed
    /// to take it on.
    async fn next(&mut self) -> (Option<Ask>, Option<Permit>) {
        let slot = &self.slot;
        let free_ns = now_ns();
        if free_ns >= slot.end_ns.get() {
            return (None, None);
        }
        let timetable = match &mut *slot.supply.borrow_mut() {
            Supply::Timetable(timetable) => Arc::clone(timetable),
            Supply::Stock(share) => {
                if !share.take_one() {
                    return (None, None);
                }
                return (Some(self.ask(None, None, free_ns)), None);
            }
        };
        if self.in_session {
            return (Some(self.ask(None, None, free_ns)), None);
        }
        let ahead = self.get_ready().await;
        let free_ns = now_ns();
        let turn = slot.turn.lock().await;
        let Some(due) = timetable.take(now_ns().saturating_sub(slot.start_ns.get())) else {
            return (None, None);
        };
        let due_ns = slot.start_ns.get() + due.at_ns;
        let ask = self.ask(Some(due.number), Some(due_ns), due_ns.max(free_ns));
        turn.until(due_ns).await;
        drop(turn);
        // A busy thread may come here before the slot has ended for it.
        if due_ns >= slot.end_ns.get() {
            return (None, None);
        }
        let lag_ns = now_ns().saturating_sub(ask.ready_ns);
        slot.recorder.borrow_mut().lag.record(lag_ns);
        (Some(ask), ahead)
    }

    fn ask(&self, number: Option<u64>, due_ns: Option<u64>, ready_ns: u64) -> Ask {
        let request = self.slot.choice.borrow_mut().pick(number);
        let ask = Ask { request, due_ns, ready_ns };
        self.slot.take_on(self.number, ask);
        ask
    }

    /// In an open loop a lane takes a request only when it could send it: its connection is open
    /// and has room for a stream. Where connections are not to last, they are opened for a request.
    async fn get_ready(&self) -> Option<Permit> {
        let slot = &self.slot;
        if slot.plan.requests_per_connection != u32::MAX {
            return None;
        }
        let door = slot.door(self.number, 0);
        match slot.gate(0).origin.protocol {
            Protocol::Http1 => {
                slot.ready_line(&door, 0).await;
                None
            }
            Protocol::Http2 if slot.gates.len() == 1 => Some(slot.permit(&door, 0).await),
            Protocol::Http2 => None,
        }
    }

    /// Has a request answered, or fail.
    async fn carry_out(&mut self, ask: Ask, mut ahead: Option<Permit>) {
        let slot = Rc::clone(&self.slot);
        let door = slot.door(self.number, ask.request);
        loop {
            let outcome = match slot.gate(ask.request).origin.protocol {
                Protocol::Http1 => self.over_line(&door, ask).await,
                Protocol::Http2 => self.over_link(&door, ask, ahead.take()).await,
            };
            match outcome {
                Outcome::Answered(answer) => {
                    door.strikes.set(0);
                    self.in_session = self.session_goes_on(&answer);
                    return slot.answered(self.number, answer);
                }
                Outcome::Failed(failure, why) => {
                    self.in_session = false;
                    return slot.failed(self.number, failure, &why, now_ns());
                }
                Outcome::Unsent => {
                    slot.unsent(self.number);
                    door.strikes.set(door.strikes.get() + 1);
                }
                Outcome::Unprocessed(_) => {
                    slot.unsent(self.number);
                    if slot.counts() {
                        slot.recorder.borrow_mut().layers().asked_again += 1;
                    }
                }
            }
            if !slot.counts() {
                return;
            }
        }
    }

    async fn over_line(&mut self, door: &Door, ask: Ask) -> Outcome {
        let slot = Rc::clone(&self.slot);
        slot.ready_line(door, ask.request).await;
        let Some(mut line) = door.line.take() else {
            return Outcome::Unsent;
        };
        let last = line.requests + 1 >= slot.plan.requests_per_connection;
        let outcome = self.in_time(http1::exchange(&slot, self.number, &mut line, ask, last)).await;
        match &outcome {
            Outcome::Answered(answer) if answer.stays => *door.line.borrow_mut() = Some(line),
            Outcome::Answered(_) if last => {}
            Outcome::Failed(failure, _) => {
                door.strikes.set(door.strikes.get() + 1);
                if matches!(failure, Failure::Reset | Failure::Truncated) {
                    slot.count_server_closed(last);
                }
            }
            Outcome::Answered(_) | Outcome::Unsent | Outcome::Unprocessed(_) => {
                slot.count_server_closed(last);
            }
        }
        outcome
    }

    async fn over_link(&mut self, door: &Door, ask: Ask, ahead: Option<Permit>) -> Outcome {
        let slot = Rc::clone(&self.slot);
        let permit = match ahead.filter(|permit| permit.link().is_usable()) {
            Some(permit) => permit,
            None => slot.permit(door, ask.request).await,
        };
        let layer = slot.plan.layers.as_ref().and_then(|layers| layers.message(ask.request));
        let Some(message) = layer else { return Outcome::Unsent };
        let began_ns = now_ns();
        let exchange = http2::exchange(&slot, self.number, &permit, message, ask);
        let outcome = self.in_time(exchange).await;
        let link = permit.link();
        match outcome {
            // A connection on which nobody was answered meanwhile may be dead.
            Outcome::Failed(Failure::Timeout, _) if link.answered_ns.get() < began_ns => {
                link.retire();
                outcome
            }
            // Without progress this could go on for ever.
            Outcome::Unprocessed(why) if link.answered_ns.get() == 0 => {
                Outcome::Failed(Failure::Reset, why)
            }
            other => other,
        }
    }

    /// An exchange, or its failure to end before the timeout.
    async fn in_time(&mut self, exchange: impl Future<Output = Outcome>) -> Outcome {
        let timeout = Duration::from_nanos(self.slot.plan.timeout_ns);
        self.deadline.as_mut().reset(Instant::now() + timeout);
        tokio::select! {
            biased;
            outcome = exchange => outcome,
            () = &mut self.deadline => {
                let why = format!("no full answer within {} s", timeout.as_secs_f64());
                Outcome::Failed(Failure::Timeout, why)
            }
        }
    }

    /// Where whole connections are due, the requests of one follow each other.
    fn session_goes_on(&self, answer: &Answer) -> bool {
        let arrivals = self.slot.plan.order.load.arrivals.as_ref();
        answer.stays && arrivals.is_some_and(|arrivals| arrivals.unit == Unit::Connection)
    }

    async fn think(&self) {
        let Some(think) = self.slot.plan.order.load.think else { return };
        let factor = match think.distribution {
            ThinkDistribution::Constant => 1.0,
            ThinkDistribution::Exponential => exponential(&mut self.slot.rng.borrow_mut()),
        };
        let pause = Duration::from_nanos(seconds_to_ns(think.mean_s * factor));
        sleep_until(Instant::now() + pause).await;
    }
}
