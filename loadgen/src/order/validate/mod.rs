//! What an order must keep beyond its types; every message names the field and the remedy.

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($message)+));
        }
    };
}

mod arrivals;
mod grpc;
mod layers;
mod session;
mod websocket;

use super::bounds::{
    LONGEST_SLOT_S, LONGEST_TIMEOUT_S, LONGEST_WAIT_S, LONGEST_WINDOW_S, MOST_SEND_DELAY_MS,
    MOST_WINDOWS, SHORTEST_WINDOW_S, STATUSES, STEEPEST_ZIPF, between,
};
use super::{AbortRule, Arrivals, Load, Loop, Order, Request, SCHEMA, Think};
use crate::http1::head::{SWITCHING, is_token};

pub fn of_other_version(schema: u64) -> String {
    format!(
        "schema: the order is of version {schema} of the contract, and this program reads version \
         {SCHEMA}; use webdyno and loadgen of the same version"
    )
}

pub fn validate(order: &Order) -> Result<(), String> {
    ensure!(order.schema == SCHEMA, "{}", of_other_version(order.schema.into()));
    ensure!(!order.requests.is_empty(), "requests: is empty; give at least one request");
    for (index, request) in order.requests.iter().enumerate() {
        check_request(request).map_err(|message| format!("requests[{index}].{message}"))?;
    }
    let login = order.session.iter().flat_map(|session| &session.login);
    for (index, request) in login.enumerate() {
        check_request(request).map_err(|message| format!("session.login[{index}].{message}"))?;
    }
    check_load(&order.load).map_err(|message| format!("load.{message}"))?;
    layers::check(order).map_err(|message| format!("load.{message}"))?;
    let ends = order.duration_s.is_some() || order.count.is_some() || timetable_ends(order);
    ensure!(ends, "duration_s: give duration_s, count, or both");
    if let Some(seconds) = order.duration_s {
        between("duration_s", seconds, f64::MIN_POSITIVE, LONGEST_SLOT_S)?;
    }
    ensure!(order.count != Some(0), "count: 0 requests measure nothing; give at least 1");
    if let Some(goodput) = order.goodput {
        ensure!(
            order.requests.iter().any(|request| request.events.is_some()),
            "goodput: counts streamed responses, and no request has any; give it \"events\""
        );
        goodput.check()?;
    }
    ensure!(
        order.load.connection_ramp_s == 0.0 || order.count.is_none(),
        "load.connection_ramp_s: a count may be reached before all connections have begun; give duration_s"
    );
    let loaded_s = order.ramp_up_s + order.duration_s.unwrap_or(f64::INFINITY);
    ensure!(
        order.load.connection_ramp_s <= loaded_s,
        "load.connection_ramp_s: {} s are longer than the load, so that some connections would never begin; \
         give a longer duration_s",
        order.load.connection_ramp_s
    );
    let own = order.load.arrivals.as_ref().is_some_and(|arrivals| arrivals.each_connection);
    ensure!(
        !own || order.count.is_none(),
        "load.arrivals.each_connection: timetables of connections have no common count; give \
         duration_s"
    );
    if let Some(trace) = order.trace {
        ensure!(
            order.load.connections == 1,
            "trace: is for one connection; set \"connections\": 1"
        );
        between("trace.accepts_within_s", trace.accepts_within_s, 0.0, LONGEST_WAIT_S)?;
    }
    check_windows(order)?;
    check_choice(order)?;
    grpc::check(order)?;
    websocket::check(order)?;
    session::check(order)
}

fn check_windows(order: &Order) -> Result<(), String> {
    let (ramp_up_s, window_s) = (order.ramp_up_s, order.window_s);
    between("ramp_up_s", ramp_up_s, 0.0, LONGEST_SLOT_S)?;
    between("window_s", window_s, SHORTEST_WINDOW_S, LONGEST_WINDOW_S)?;
    let windows = (ramp_up_s + order.duration_s.unwrap_or(0.0)) / window_s;
    ensure!(
        windows <= MOST_WINDOWS.into(),
        "window_s: {window_s} makes more than {MOST_WINDOWS} windows; give a longer one"
    );
    let Some(AbortRule { share, after_s }) = order.abort_rule else { return Ok(()) };
    ensure!(
        order.load.kind == Loop::Open && ramp_up_s > 0.0,
        "abort_rule: only an open loop after a ramp-up goes on after its window; leave it out"
    );
    between("abort_rule.share", share, 0.0, 1)?;
    between("abort_rule.after_s", after_s, 0.0, LONGEST_WAIT_S)
}

/// A timetable that ends needs neither a duration nor a count.
fn timetable_ends(order: &Order) -> bool {
    order.load.arrivals.as_ref().is_some_and(Arrivals::ends)
}

/// The ways to choose among requests exclude each other.
fn check_choice(order: &Order) -> Result<(), String> {
    let count = order.requests.len();
    let weighted = order.requests.iter().any(|request| request.weight != 1.0);
    ensure!(
        order.requests.iter().any(|request| request.weight != 0.0),
        "requests: all weights are 0; give one of them a weight"
    );
    if let Some(alpha) = order.zipf {
        between("zipf", alpha, 0.0, STEEPEST_ZIPF)?;
        ensure!(
            !weighted && order.sequence.is_none(),
            "zipf: weights or a sequence choose already; leave one of them out"
        );
    }
    if let Some(sequence) = &order.sequence {
        ensure!(!weighted, "sequence: weights choose already; leave one of them out");
        ensure!(
            !sequence.is_empty() && sequence.iter().all(|index| (*index as usize) < count),
            "sequence: is empty, or names a request from {count} on"
        );
    }
    Ok(())
}

fn check_request(request: &Request) -> Result<(), String> {
    let Request { method, weight, .. } = request;
    ensure!(
        !method.is_empty() && method.bytes().all(is_token),
        "method: {method:?} is not a method like GET or POST"
    );
    for (name, value) in &request.headers {
        let clean = |text: &str| !text.bytes().any(|b| b == b'\r' || b == b'\n' || b == 0);
        ensure!(
            !name.is_empty() && !name.contains(':') && clean(name) && clean(value),
            "headers: {name:?}: {value:?} is not a header field"
        );
    }
    ensure!(*weight >= 0.0 && weight.is_finite(), "weight: {weight} is not a number from 0");
    if let Some(statuses) = &request.expect.status {
        ensure!(
            !statuses.is_empty()
                && statuses.iter().all(|s| *s == SWITCHING || STATUSES.contains(s)),
            "expect.status: {statuses:?} is not a list of statuses, 101 or from 200 to 999"
        );
    }
    Ok(())
}

fn check_load(load: &Load) -> Result<(), String> {
    ensure!(load.connections > 0, "connections: 0 connections send nothing; give at least 1");
    between("timeout_s", load.timeout_s, f64::MIN_POSITIVE, LONGEST_TIMEOUT_S)?;
    let budget_ms = load.send_delay_budget_s * 1e3;
    between("send_delay_budget_s: in milliseconds", budget_ms, 0.0, MOST_SEND_DELAY_MS)?;
    ensure!(
        load.kind == Loop::Open || budget_ms == 0.0,
        "send_delay_budget_s: a closed loop has no timetable to be late by; leave it out"
    );
    between("connection_ramp_s", load.connection_ramp_s, 0.0, LONGEST_SLOT_S)?;
    ensure!(
        load.kind == Loop::Closed || load.connection_ramp_s == 0.0,
        "connection_ramp_s: connections of an open loop are open when it begins; give stages that grow"
    );
    ensure!(
        load.slow_readers.is_none_or(|slow| slow.connections > 0 && slow.bytes_per_s > 0),
        "slow_readers: connections and bytes_per_s must be at least 1"
    );
    if let Some(Think { mean_s, .. }) = load.think {
        ensure!(
            load.kind == Loop::Closed,
            "think: an open loop doesn't wait for responses; leave it out"
        );
        between("think.mean_s", mean_s, 0.0, LONGEST_WAIT_S)?;
    }
    match (load.kind, &load.arrivals) {
        (Loop::Closed, Some(_)) => {
            Err("arrivals: only an open loop has a timetable; set \"loop\": \"open\"".into())
        }
        (Loop::Open, None) => Err("arrivals: an open loop needs them; give stages".into()),
        (Loop::Open, Some(arrivals)) => {
            arrivals::check(arrivals, load).map_err(|message| format!("arrivals.{message}"))
        }
        (Loop::Closed, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
