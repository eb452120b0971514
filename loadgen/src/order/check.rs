//! What an order must keep beyond its types; every message names the field and the remedy.

use super::{
    Arrivals, Expect, KeepAlive, Load, Loop, Order, Protocol, Request, Stage, Think, Unit,
};

/// Bounds in seconds, far beyond what makes sense.
pub const LONGEST_SLOT_S: u32 = 1_000_000;
pub const LONGEST_WAIT_S: u32 = 86_400;
pub const SHORTEST_WINDOW_S: f64 = 0.01;
pub const LONGEST_WINDOW_S: u32 = 3600;
/// Each is kept in the result.
const MOST_WINDOWS: f64 = 1e6;
/// Per second.
pub const HIGHEST_RATE: u32 = 100_000_000;
pub const STEEPEST_ZIPF: u32 = 10;
pub const STATUSES: std::ops::RangeInclusive<u16> = 200..=999;
const MOST_STREAMS: u32 = 100_000;
/// Requests in flight at a time, each of which takes memory.
const MOST_AT_A_TIME: u64 = 10_000_000;

pub fn check(order: &Order) -> Result<(), String> {
    if order.requests.is_empty() {
        return Err("requests: is empty; give at least one request".into());
    }
    for (index, request) in order.requests.iter().enumerate() {
        check_request(request).map_err(|message| format!("requests[{index}].{message}"))?;
    }
    check_load(&order.load).map_err(|message| format!("load.{message}"))?;
    check_layers(order).map_err(|message| format!("load.{message}"))?;
    match (order.duration_s, order.count) {
        (None, None) if !timetable_ends(order) => {
            Err("duration_s: give duration_s, count, or both".into())
        }
        (Some(seconds), _) if !(seconds > 0.0 && seconds <= LONGEST_SLOT_S.into()) => {
            Err(format!("duration_s: {seconds} is not between 0 and {LONGEST_SLOT_S}"))
        }
        (_, Some(0)) => Err("count: 0 requests measure nothing; give at least 1".into()),
        _ => check_windows(order).and_then(|()| check_choice(order)),
    }
}

fn check_windows(order: &Order) -> Result<(), String> {
    let (lead_in_s, window_s) = (order.lead_in_s, order.window_s);
    if !(lead_in_s >= 0.0 && lead_in_s <= LONGEST_SLOT_S.into()) {
        return Err(format!("lead_in_s: {lead_in_s} is not between 0 and {LONGEST_SLOT_S}"));
    }
    if !(window_s >= SHORTEST_WINDOW_S && window_s <= LONGEST_WINDOW_S.into()) {
        return Err(format!(
            "window_s: {window_s} is not between {SHORTEST_WINDOW_S} and {LONGEST_WINDOW_S}"
        ));
    }
    if (lead_in_s + order.duration_s.unwrap_or(0.0)) / window_s > MOST_WINDOWS {
        return Err(format!(
            "window_s: {window_s} makes more than {MOST_WINDOWS} windows; give a longer one"
        ));
    }
    Ok(())
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
        if !(0.0..=STEEPEST_ZIPF.into()).contains(&alpha) {
            return Err(format!("zipf: {alpha} is not between 0 and {STEEPEST_ZIPF}"));
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
    Ok(())
}

fn check_request(request: &Request) -> Result<(), String> {
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
        && (statuses.is_empty() || statuses.iter().any(|s| !STATUSES.contains(s)))
    {
        return Err(format!("status: {statuses:?} is not a list of statuses from 200 to 999"));
    }
    Ok(())
}

fn check_load(load: &Load) -> Result<(), String> {
    if load.connections == 0 {
        return Err("connections: 0 connections send nothing; give at least 1".into());
    }
    if !(load.timeout_s > 0.0 && load.timeout_s <= LONGEST_WAIT_S.into()) {
        return Err(format!("timeout_s: {} is not between 0 and {LONGEST_WAIT_S}", load.timeout_s));
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
        (Loop::Closed, None, Some(Think { mean_s, .. }))
            if !(0.0..=LONGEST_WAIT_S.into()).contains(mean_s) =>
        {
            Err(format!("think.mean_s: {mean_s} is not between 0 and {LONGEST_WAIT_S}"))
        }
        (Loop::Closed, None, _) => Ok(()),
    }
}

fn check_arrivals(arrivals: &Arrivals, load: &Load) -> Result<(), String> {
    if arrivals.stages.is_empty() == arrivals.times_s.is_empty() {
        return Err("stages: give either stages or times_s".into());
    }
    let ascending = arrivals.times_s.is_sorted();
    let sensible = |at: &f64| (0.0..=LONGEST_SLOT_S.into()).contains(at);
    if !ascending || !arrivals.times_s.iter().all(sensible) {
        return Err(format!("times_s: must ascend from 0 and stay below {LONGEST_SLOT_S}"));
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
    let sensible = |rate: f64| (0.0..=HIGHEST_RATE.into()).contains(&rate);
    if !sensible(stage.rate_per_s) || !stage.to_rate_per_s.is_none_or(sensible) {
        return Err(format!("rate_per_s: is not between 0 and {HIGHEST_RATE}"));
    }
    match stage.for_s {
        None if !last => Err("for_s: only the last stage may go on without an end".into()),
        None if stage.to_rate_per_s.is_some() => {
            Err("for_s: a rate that changes needs a length; give for_s".into())
        }
        Some(seconds) if !(seconds > 0.0 && seconds <= LONGEST_SLOT_S.into()) => {
            Err(format!("for_s: {seconds} is not between 0 and {LONGEST_SLOT_S}"))
        }
        _ => Ok(()),
    }
}

/// What lies between HTTP and the socket: TLS, HTTP/2.
fn check_layers(order: &Order) -> Result<(), String> {
    let load = &order.load;
    let secure = order.requests.iter().any(|request| request.url.starts_with("https://"));
    let http2 = load.protocol == Protocol::Http2;
    let streams = load.streams.unwrap_or(1);
    if load.streams.is_some() && !http2 {
        return Err("streams: only HTTP/2 has them; set \"protocol\": \"http2\" (--http2)".into());
    }
    if !(1..=MOST_STREAMS).contains(&streams) {
        return Err(format!("streams: {streams} is not between 1 and {MOST_STREAMS}"));
    }
    if streams > 1 && u64::from(load.connections) * u64::from(streams) > MOST_AT_A_TIME {
        return Err(format!(
            "streams: {streams} on each of {} connections are more than {MOST_AT_A_TIME} requests \
             at a time; give fewer",
            load.connections
        ));
    }
    let by_connection = load.arrivals.as_ref().is_some_and(|a| a.unit == Unit::Connection);
    if by_connection && streams > 1 {
        return Err("streams: where whole connections are due, their requests follow each other; \
                    leave streams out"
            .into());
    }
    if load.tls.is_some() && !secure {
        return Err("tls: no URL begins with https://, so there is no TLS (--cacert, --insecure, \
                    --tls-resumption); leave it out"
            .into());
    }
    if load.tls.as_ref().is_some_and(|tls| tls.insecure && tls.ca_file.is_some()) {
        return Err("tls: whoever takes any certificate needs no ca_file; leave one out".into());
    }
    if load.cookies && http2 {
        return Err("cookies: they are kept over HTTP/1.1 only; leave out cookies (--cookies) or \
                    HTTP/2"
            .into());
    }
    let beside = load.slow_readers.is_some() || load.idle_connections > 0;
    if beside && (secure || http2) {
        return Err("slow_readers: they and idle_connections are there for plain HTTP/1.1 only; \
                    leave them out, or TLS and HTTP/2"
            .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::order::parse::parse;

    fn message(url: &str, load: &str) -> String {
        let order = format!(
            r#"{{"requests": [{{"url": "{url}"}}], "count": 1,
                "load": {{"connections": 1, {load}}}}}"#
        );
        parse(&order).map_or_else(|error| error.message, |_| String::new())
    }

    #[test]
    fn refuses_what_cannot_go_together() {
        let (plain, secure) = ("http://127.0.0.1:1/", "https://127.0.0.1:1/");
        let connections = r#""loop": "open", "arrivals": {"unit": "connection", "stages":
            [{"rate_per_s": 1}]}, "keepalive": 2, "protocol": "http2", "streams": 2"#;
        for (url, load, wanted) in [
            (plain, r#""loop": "closed", "streams": 2"#, "load.streams: only HTTP/2"),
            (plain, r#""loop": "closed", "protocol": "http2", "streams": 0"#, "load.streams: 0"),
            (plain, connections, "load.streams: where whole connections"),
            (plain, r#""loop": "closed", "tls": {}"#, "load.tls: no URL"),
            (secure, r#""loop": "closed", "tls": {"insecure": true, "ca_file": "x"}"#, "load.tls"),
            (secure, r#""loop": "closed", "idle_connections": 1"#, "load.slow_readers"),
            (plain, r#""loop": "closed", "protocol": "http2", "cookies": true"#, "load.cookies"),
            (plain, r#""loop": "closed", "protocol": "http3""#, "load.protocol"),
        ] {
            let message = message(url, load);
            assert!(message.contains(wanted), "{load}: {message}");
        }
        assert_eq!(message(plain, r#""loop": "closed", "protocol": "http2", "streams": 9"#), "");
        assert_eq!(message(secure, r#""loop": "closed", "tls": {"resumption": false}"#), "");
    }
}
