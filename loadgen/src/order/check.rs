//! What an order must keep beyond its types; every message names the field and the remedy.

use super::layers;
use super::{Arrivals, Expect, KeepAlive, Load, Loop, Order, Request, Stage, Unit};
use crate::check::Sha256Hex;
use crate::target::Target;

pub fn check(order: &Order) -> Result<(), String> {
    if order.requests.is_empty() {
        return Err("requests: is empty; give at least one request".into());
    }
    for (index, request) in order.requests.iter().enumerate() {
        check_request(request, order.allow_remote)
            .map_err(|message| format!("requests[{index}].{message}"))?;
    }
    check_load(&order.load).map_err(|message| format!("load.{message}"))?;
    layers::check(order).map_err(|message| format!("load.{message}"))?;
    match (order.duration_s, order.count) {
        (None, None) if !timetable_ends(order) => {
            Err("duration_s: give duration_s, count, or both".into())
        }
        (Some(seconds), _) if !(seconds > 0.0 && seconds <= 1e6) => {
            Err(format!("duration_s: {seconds} is not between 0 and 1000000"))
        }
        (_, Some(0)) => Err("count: 0 requests measure nothing; give at least 1".into()),
        _ => check_choice(order),
    }
}

/// A timetable that ends needs neither a duration nor a count.
fn timetable_ends(order: &Order) -> bool {
    order.load.arrivals.as_ref().is_some_and(Arrivals::ends)
}

/// The ways to choose among requests exclude each other.
fn check_choice(order: &Order) -> Result<(), String> {
    let count = order.requests.len();
    let weighted = order.requests.iter().any(|request| request.weight != 1.0);
    if order.requests.iter().all(|request| request.weight == 0.0) {
        return Err("requests: all weights are 0; give one of them a weight".into());
    }
    if let Some(alpha) = order.zipf {
        if !(0.0..=10.0).contains(&alpha) {
            return Err(format!("zipf: {alpha} is not between 0 and 10"));
        }
        if weighted || order.sequence.is_some() {
            return Err("zipf: weights or a sequence choose already; leave one of them out".into());
        }
    }
    if let Some(sequence) = &order.sequence {
        if weighted {
            return Err("sequence: weights choose already; leave one of them out".into());
        }
        if sequence.is_empty() || sequence.iter().any(|index| *index as usize >= count) {
            return Err(format!("sequence: is empty, or names a request from {count} on"));
        }
    }
    if !(order.window_s >= 0.1 && order.window_s <= 3600.0) {
        return Err(format!("window_s: {} is not between 0.1 and 3600", order.window_s));
    }
    Ok(())
}

fn check_request(request: &Request, allow_remote: bool) -> Result<(), String> {
    let target = Target::parse(&request.url).map_err(|error| format!("url: {error}"))?;
    if !allow_remote && !target.is_local() {
        return Err(format!(
            "url: {} is not on this machine; if you may load it, set \"allow_remote\": true \
             (--allow-remote)",
            target.address
        ));
    }
    if request.method.is_empty() || !request.method.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(format!("method: {:?} is not a method like GET or POST", request.method));
    }
    for (name, value) in &request.headers {
        let clean = |text: &str| !text.bytes().any(|b| b == b'\r' || b == b'\n' || b == 0);
        if name.is_empty() || name.contains(':') || !clean(name) || !clean(value) {
            return Err(format!("headers: {name:?}: {value:?} is not a header field"));
        }
    }
    if !(request.weight >= 0.0 && request.weight.is_finite()) {
        return Err(format!("weight: {} is not a number from 0", request.weight));
    }
    check_expect(&request.expect).map_err(|message| format!("expect.{message}"))
}

fn check_expect(expect: &Expect) -> Result<(), String> {
    if let Some(statuses) = &expect.status
        && (statuses.is_empty() || statuses.iter().any(|s| !(200..=999).contains(s)))
    {
        return Err(format!("status: {statuses:?} is not a list of statuses from 200 to 999"));
    }
    if let Some(sha256) = &expect.body_sha256 {
        sha256.parse::<Sha256Hex>().map_err(|error| format!("body_sha256: {error}"))?;
    }
    Ok(())
}

fn check_load(load: &Load) -> Result<(), String> {
    if load.connections == 0 {
        return Err("connections: 0 connections send nothing; give at least 1".into());
    }
    if !(load.timeout_s > 0.0 && load.timeout_s <= 86_400.0) {
        return Err(format!("timeout_s: {} is not between 0 and 86400", load.timeout_s));
    }
    if load.slow_readers.is_some_and(|slow| slow.connections == 0 || slow.bytes_per_s == 0) {
        return Err("slow_readers: connections and bytes_per_s must be at least 1".into());
    }
    match (load.kind, &load.arrivals, &load.think) {
        (Loop::Closed, Some(_), _) => {
            Err("arrivals: only an open loop has a timetable; set \"loop\": \"open\"".into())
        }
        (Loop::Open, None, _) => Err("arrivals: an open loop needs them; give stages".into()),
        (Loop::Open, _, Some(_)) => {
            Err("think: an open loop doesn't wait for answers; leave it out".into())
        }
        (Loop::Open, Some(arrivals), None) => {
            check_arrivals(arrivals, load).map_err(|message| format!("arrivals.{message}"))
        }
        (Loop::Closed, None, Some(think)) if !(0.0..=86_400.0).contains(&think.mean_s) => {
            Err(format!("think.mean_s: {} is not between 0 and 86400", think.mean_s))
        }
        (Loop::Closed, None, _) => Ok(()),
    }
}

fn check_arrivals(arrivals: &Arrivals, load: &Load) -> Result<(), String> {
    if arrivals.stages.is_empty() == arrivals.times_s.is_empty() {
        return Err("stages: give either stages or times_s".into());
    }
    let ascending = arrivals.times_s.is_sorted();
    if !ascending || arrivals.times_s.iter().any(|at| !(0.0..=1e6).contains(at)) {
        return Err("times_s: must ascend from 0 and stay below 1000000".into());
    }
    for (index, stage) in arrivals.stages.iter().enumerate() {
        let last = index + 1 == arrivals.stages.len();
        check_stage(stage, last).map_err(|message| format!("stages[{index}].{message}"))?;
    }
    if arrivals.unit == Unit::Connection && load.keepalive == KeepAlive::Always {
        return Err("unit: connections that never end can't be due again and again; set \
                    keepalive to \"never\" or a number of requests"
            .into());
    }
    if arrivals.max_backlog == 0 {
        return Err("max_backlog: must be at least 1".into());
    }
    Ok(())
}

fn check_stage(stage: &Stage, last: bool) -> Result<(), String> {
    let sensible = |rate: f64| (0.0..=1e8).contains(&rate);
    if !sensible(stage.rate_per_s) || !stage.to_rate_per_s.is_none_or(sensible) {
        return Err("rate_per_s: is not between 0 and 100000000".into());
    }
    match stage.for_s {
        None if !last => Err("for_s: only the last stage may go on without an end".into()),
        None if stage.to_rate_per_s.is_some() => {
            Err("for_s: a rate that changes needs a length; give for_s".into())
        }
        Some(seconds) if !(seconds > 0.0 && seconds <= 1e6) => {
            Err(format!("for_s: {seconds} is not between 0 and 1000000"))
        }
        _ => Ok(()),
    }
}
