//! Works on requests, each for as long as the options say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::desk::Desk;
use super::{Options, Service};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
const NS_PER_S: f64 = 1e9;
/// Over which a worker sees how many requests come in.
const SEEN_NS: f64 = 1e8;

pub struct Worker {
    options: Options,
    desk: Arc<Desk>,
    /// Requests in the order in which they came, and when they may be worked on.
    resting: VecDeque<(f64, u64)>,
    /// What the thread's CPU clock shows when the current request is paid for.
    paid_ns: f64,
    began_ns: f64,
    /// When the last of the requests that came will have been served.
    served_ns: f64,
    /// When the requests of the last tenth of a second came, if that matters.
    arrivals: VecDeque<f64>,
    /// When the last request came that was too much, while the worker is collapsed.
    collapsed_ns: Option<f64>,
    /// When the requests of the last tenth of a second came that it took.
    taken: VecDeque<f64>,
    leaked: Vec<Vec<u8>>,
}

impl Worker {
    pub fn new(options: Options, desk: Arc<Desk>) -> Self {
        Self {
            options,
            desk,
            resting: VecDeque::new(),
            paid_ns: clock_ns(ClockId::ThreadCPUTime),
            began_ns: clock_ns(ClockId::Monotonic),
            served_ns: 0.0,
            arrivals: VecDeque::new(),
            collapsed_ns: None,
            taken: VecDeque::new(),
            leaked: Vec::new(),
        }
    }

    pub fn serve(&mut self) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(1024);
        loop {
            let rest = self.rest_of_next();
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.desk.epoll, room, rest.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            self.stall();
            let now_ns = clock_ns(ClockId::Monotonic);
            self.recover(now_ns);
            for event in events.drain(..) {
                let name = event.data.u64();
                if self.desk.read(name) {
                    if self.sheds(now_ns) {
                        self.desk.answer(name, REFUSAL);
                    } else {
                        let ready_ns = self.ready_ns(now_ns);
                        self.resting.push_back((ready_ns, name));
                    }
                }
            }
            // One at a time, so that others begin to rest while it is worked on.
            if let Some(name) = self.next_ready() {
                self.pay();
                if self.options.leak_bytes > 0 {
                    self.leaked.push(vec![1; self.options.leak_bytes]);
                }
                self.desk.answer(name, ANSWER);
            }
        }
    }

    /// Stands still for what is left of a stall, if it is time for one.
    fn stall(&self) {
        let Options { stall_ms, stall_every_s, .. } = self.options;
        if stall_every_s == 0.0 {
            return;
        }
        let age_s = (clock_ns(ClockId::Monotonic) - self.began_ns) / NS_PER_S;
        let left_s = stall_every_s - age_s % stall_every_s;
        if left_s < stall_ms / 1e3 {
            thread::sleep(Duration::from_secs_f64(left_s));
        }
    }

    /// When a request that has just come may be worked on.
    fn ready_ns(&mut self, now_ns: f64) -> f64 {
        let Options { service_us, sleep_ms, service, .. } = self.options;
        if service_us == 0.0 {
            return now_ns + sleep_ms * 1e6;
        }
        self.see_collapse(now_ns);
        let times = match service {
            Service::Fixed => 1.0,
            Service::Exponential => -(1.0 - fastrand::f64()).ln(),
        };
        let slower = if self.collapsed_ns.is_some() { 10.0 } else { 1.0 };
        self.served_ns = self.served_ns.max(now_ns) + service_us * 1e3 * times * slower;
        self.served_ns
    }

    fn see_collapse(&mut self, now_ns: f64) {
        if self.options.collapse_rps == 0.0 {
            return;
        }
        self.arrivals.push_back(now_ns);
        if recent_rps(&mut self.arrivals, now_ns) > self.options.collapse_rps {
            self.collapsed_ns = Some(now_ns);
        }
    }

    /// Is as before once the last request that was too much came long enough ago.
    fn recover(&mut self, now_ns: f64) {
        let after_ns = self.options.recover_s * NS_PER_S;
        if after_ns == 0.0 || self.collapsed_ns.is_none_or(|came_ns| now_ns < came_ns + after_ns) {
            return;
        }
        self.collapsed_ns = None;
        self.served_ns = now_ns;
        for (ready_ns, _) in &mut self.resting {
            *ready_ns = now_ns;
        }
    }

    /// Whether it refuses a request that has just come: it took enough in the last tenth of a second.
    fn sheds(&mut self, now_ns: f64) -> bool {
        if self.options.shed_rps == 0.0 {
            return false;
        }
        let with_it_rps = recent_rps(&mut self.taken, now_ns) + NS_PER_S / SEEN_NS;
        let is_full = with_it_rps > self.options.shed_rps;
        if !is_full {
            self.taken.push_back(now_ns);
        }
        is_full
    }

    /// Gives how long there is nothing to do; for ever when nothing rests.
    fn rest_of_next(&self) -> Option<Timespec> {
        let (ready_ns, _) = self.resting.front()?;
        let rest_ns = (ready_ns - clock_ns(ClockId::Monotonic)).max(0.0);
        Some(Timespec { tv_sec: (rest_ns / NS_PER_S) as i64, tv_nsec: (rest_ns % NS_PER_S) as i64 })
    }

    fn next_ready(&mut self) -> Option<u64> {
        let (ready_ns, name) = *self.resting.front()?;
        if ready_ns > clock_ns(ClockId::Monotonic) {
            return None;
        }
        self.resting.pop_front();
        Some(name)
    }

    /// Spins until the request is paid for, what it has cost already included.
    fn pay(&mut self) {
        self.paid_ns += self.cost_ns();
        while clock_ns(ClockId::ThreadCPUTime) < self.paid_ns {}
    }

    fn cost_ns(&self) -> f64 {
        let Options { cost_us, slow_start, slow_start_s, .. } = self.options;
        let age_s = (clock_ns(ClockId::Monotonic) - self.began_ns) / NS_PER_S;
        let extra = if slow_start > 0.0 { slow_start * (-age_s / slow_start_s).exp() } else { 0.0 };
        cost_us * 1e3 * (1.0 + extra)
    }
}

fn clock_ns(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * NS_PER_S + now.tv_nsec as f64
}

/// How many requests came per second in the last tenth of one; forgets those before.
fn recent_rps(came_ns: &mut VecDeque<f64>, now_ns: f64) -> f64 {
    came_ns.drain(..came_ns.partition_point(|each_ns| *each_ns < now_ns - SEEN_NS));
    came_ns.len() as f64 * NS_PER_S / SEEN_NS
}
