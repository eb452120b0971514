//! An order made ready to run: addresses resolved, requests rendered.

use std::net::IpAddr;

use crate::check::Expectation;
use crate::engine::clock::seconds_to_ns;
use crate::engine::layered::Layers;
use crate::engine::sources;
use crate::http1::request::{Parts, Rendered};
use crate::order::{Loop, Order, Request};
use crate::schedule::length_s;
use crate::target::{Address, Target};

/// One request as the hot path needs it.
#[derive(Debug)]
pub struct Ready {
    pub rendered: Rendered,
    pub expectation: Expectation,
    /// Index into [`Plan::targets`].
    pub target: usize,
    /// HEAD: the answer has no body.
    pub is_head: bool,
    pub url: String,
}

#[derive(Debug)]
pub struct Plan {
    pub order: Order,
    pub requests: Vec<Ready>,
    pub targets: Vec<Address>,
    pub origins: Vec<String>,
    /// Addresses to connect from, in turn; none: the kernel's choice.
    pub sources: Vec<IpAddr>,
    pub timeout_ns: u64,
    /// `u32::MAX` where there is no limit.
    pub requests_per_connection: u32,
    /// Length of the window; `u64::MAX` when only the count ends it.
    pub duration_ns: u64,
    pub window_ns: u64,
    /// Present when TLS or HTTP/2 is asked for.
    pub layers: Option<Layers>,
    /// Requests may need several segments. Only then can Nagle's algorithm delay one: there is
    /// never another request in flight on the same connection.
    pub no_delay: bool,
    /// A connection's next request follows its answer at once.
    pub asks_at_once: bool,
}

/// A request up to this long fits into one segment everywhere (RFC 9293: 536 bytes).
const ONE_SEGMENT_BYTES: usize = 536;

impl Plan {
    /// Plans a checked order.
    pub fn new(order: Order) -> Result<Plan, String> {
        let mut plan = Plan {
            requests: Vec::with_capacity(order.requests.len()),
            targets: Vec::new(),
            origins: Vec::new(),
            sources: Vec::new(),
            timeout_ns: seconds_to_ns(order.load.timeout_s),
            requests_per_connection: order.load.keepalive.limit().unwrap_or(u32::MAX),
            duration_ns: duration_s(&order).map_or(u64::MAX, seconds_to_ns),
            window_ns: seconds_to_ns(order.window_s),
            layers: Layers::of(&order)?,
            no_delay: order.load.cookies,
            asks_at_once: order.load.kind == Loop::Closed && order.load.think.is_none(),
            order,
        };
        for index in 0..plan.order.requests.len() {
            let ready = plan.ready(index).map_err(|e| format!("requests[{index}].url: {e}"))?;
            plan.no_delay |= ready.rendered.bytes(true).len() > ONE_SEGMENT_BYTES;
            plan.requests.push(ready);
        }
        plan.sources = sources::of(&plan.order.load, &plan.targets);
        Ok(plan)
    }

    pub fn is_open(&self) -> bool {
        self.order.load.kind == Loop::Open
    }

    pub fn uses_tls(&self) -> bool {
        self.layers.as_ref().is_some_and(|layers| layers.tls.is_some())
    }

    fn ready(&mut self, index: usize) -> Result<Ready, String> {
        let target = Target::parse(&self.order.requests[index].url)?;
        let request = &self.order.requests[index];
        let ready = Ready {
            rendered: render(request, &target),
            expectation: Expectation::new(&request.expect),
            target: self
                .targets
                .iter()
                .position(|a| *a == target.address)
                .unwrap_or(self.targets.len()),
            is_head: request.method == "HEAD",
            url: request.url.clone(),
        };
        if ready.target == self.targets.len() {
            self.targets.push(target.address);
            self.origins.push(target.origin);
        }
        Ok(ready)
    }
}

/// The order's duration, or the length of its timetable.
fn duration_s(order: &Order) -> Option<f64> {
    let stages = order.load.arrivals.as_ref().map_or(&[][..], |arrivals| &arrivals.stages);
    let stages_s = if stages.is_empty() { None } else { length_s(stages) };
    order.duration_s.or(stages_s.filter(|_| order.count.is_none()))
}

fn render(request: &Request, target: &Target) -> Rendered {
    Rendered::new(&Parts {
        method: &request.method,
        path: &target.path,
        host: &target.host,
        headers: &request.headers,
        body: request.body.as_deref().map(str::as_bytes),
    })
}
