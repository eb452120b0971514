//! What an order must keep beyond its types; every message names the field and the remedy.

use std::num::NonZeroU32;

use super::check_session;
use super::{
    Arrivals, EnoughLate, KeepAlive, Load, Loop, Order, Protocol, Request, Share, Stage, Think,
    Unit,
};
use crate::http1::head::{SWITCHING, is_token};

/// Bounds in seconds, far beyond what makes sense.
pub const LONGEST_SLOT_S: u32 = 1_000_000;
pub const LONGEST_WAIT_S: u32 = 86_400;
pub const SHORTEST_WINDOW_S: f64 = 0.01;
pub const LONGEST_WINDOW_S: u32 = 3600;
/// Each is kept in the result.
pub const MOST_WINDOWS: u32 = 1_000_000;
/// Of answers: histograms go no further.
pub const LONGEST_TIMEOUT_S: u32 = 3600;
/// Per second.
pub const HIGHEST_RATE: u32 = 100_000_000;
pub const STEEPEST_ZIPF: u32 = 10;
/// A longer one would be felt as part of the response time.
pub const MOST_LAG_MS: u32 = 10;
const STATUSES: std::ops::RangeInclusive<u16> = 200..=999;
const MOST_STREAMS: u32 = 100_000;
/// Each goes through the places of all.
const MOST_CLIENTS: u32 = 10_000;
/// Due at once.
pub const MOST_AT_ONCE: u32 = 1_000_000;
/// Requests in flight at a time, each of which takes memory.
const MOST_AT_A_TIME: u64 = 10_000_000;

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($message)+));
        }
    };
}

pub fn check(order: &Order) -> Result<(), String> {
    ensure!(!order.requests.is_empty(), "requests: is empty; give at least one request");
    for (index, request) in order.requests.iter().enumerate() {
        check_request(request).map_err(|message| format!("requests[{index}].{message}"))?;
    }
    let login = order.session.iter().flat_map(|session| &session.login);
    for (index, request) in login.enumerate() {
        check_request(request).map_err(|message| format!("session.login[{index}].{message}"))?;
    }
    check_load(&order.load).map_err(|message| format!("load.{message}"))?;
    check_layers(order).map_err(|message| format!("load.{message}"))?;
    let ends = order.duration_s.is_some() || order.count.is_some() || timetable_ends(order);
    ensure!(ends, "duration_s: give duration_s, count, or both");
    if let Some(seconds) = order.duration_s {
        between("duration_s", seconds, f64::MIN_POSITIVE, LONGEST_SLOT_S)?;
    }
    ensure!(order.count != Some(0), "count: 0 requests measure nothing; give at least 1");
    ensure!(
        order.load.protocol == Protocol::Http1
            || order.requests.iter().all(|request| request.events.is_none()),
        "requests: events are timed over HTTP/1.1 only; leave out \"protocol\": \"http2\" (--http2)"
    );
    ensure!(
        order.load.ramp_s == 0.0 || order.count.is_none(),
        "load.ramp_s: a count may be reached before all connections have begun; give duration_s"
    );
    let loaded_s = order.lead_in_s + order.duration_s.unwrap_or(f64::INFINITY);
    ensure!(
        order.load.ramp_s <= loaded_s,
        "load.ramp_s: {} s are longer than the load, so that some connections would never begin; \
         give a longer duration_s",
        order.load.ramp_s
    );
    let own = order.load.arrivals.as_ref().is_some_and(|arrivals| arrivals.each_connection);
    ensure!(
        !own || order.count.is_none(),
        "load.arrivals.each_connection: timetables of connections have no common count; give \
         duration_s"
    );
    check_windows(order)?;
    check_choice(order)?;
    check_session::check(order)
}

/// The bounds are told in whole numbers, or as short as they are.
fn between(field: &str, value: f64, least: f64, most: u32) -> Result<(), String> {
    let told = if least == f64::MIN_POSITIVE { 0.0 } else { least };
    ensure!(
        value >= least && value <= most.into(),
        "{field}: {value} is not between {told} and {most}"
    );
    Ok(())
}

fn check_windows(order: &Order) -> Result<(), String> {
    let (lead_in_s, window_s) = (order.lead_in_s, order.window_s);
    between("lead_in_s", lead_in_s, 0.0, LONGEST_SLOT_S)?;
    between("window_s", window_s, SHORTEST_WINDOW_S, LONGEST_WINDOW_S)?;
    let windows = (lead_in_s + order.duration_s.unwrap_or(0.0)) / window_s;
    ensure!(
        windows <= MOST_WINDOWS.into(),
        "window_s: {window_s} makes more than {MOST_WINDOWS} windows; give a longer one"
    );
    let Some(EnoughLate { share, after_s }) = order.enough_late else { return Ok(()) };
    ensure!(
        order.load.kind == Loop::Open && lead_in_s > 0.0,
        "enough_late: only an open loop after a lead-in goes on after its window; leave it out"
    );
    between("enough_late.share", share, 0.0, 1)?;
    between("enough_late.after_s", after_s, 0.0, LONGEST_WAIT_S)
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
    let budget_ms = load.send_lag_budget_s * 1e3;
    between("send_lag_budget_s: in milliseconds", budget_ms, 0.0, MOST_LAG_MS)?;
    ensure!(
        load.kind == Loop::Open || budget_ms == 0.0,
        "send_lag_budget_s: a closed loop has no timetable to lag behind; leave it out"
    );
    between("ramp_s", load.ramp_s, 0.0, LONGEST_SLOT_S)?;
    ensure!(
        load.kind == Loop::Closed || load.ramp_s == 0.0,
        "ramp_s: connections of an open loop are open when it begins; give stages that grow"
    );
    ensure!(
        load.slow_readers.is_none_or(|slow| slow.connections > 0 && slow.bytes_per_s > 0),
        "slow_readers: connections and bytes_per_s must be at least 1"
    );
    if let Some(Think { mean_s, .. }) = load.think {
        ensure!(
            load.kind == Loop::Closed,
            "think: an open loop doesn't wait for answers; leave it out"
        );
        between("think.mean_s", mean_s, 0.0, LONGEST_WAIT_S)?;
    }
    match (load.kind, &load.arrivals) {
        (Loop::Closed, Some(_)) => {
            Err("arrivals: only an open loop has a timetable; set \"loop\": \"open\"".into())
        }
        (Loop::Open, None) => Err("arrivals: an open loop needs them; give stages".into()),
        (Loop::Open, Some(arrivals)) => {
            check_arrivals(arrivals, load).map_err(|message| format!("arrivals.{message}"))
        }
        (Loop::Closed, None) => Ok(()),
    }
}

fn check_arrivals(arrivals: &Arrivals, load: &Load) -> Result<(), String> {
    ensure!(
        arrivals.stages.is_empty() != arrivals.times_s.is_empty(),
        "stages: give either stages or times_s"
    );
    let burst = arrivals.burst.map_or(1, NonZeroU32::get);
    ensure!(burst <= MOST_AT_ONCE, "burst: {burst} is not a number from 1 to {MOST_AT_ONCE}");
    ensure!(
        burst == 1 || !arrivals.stages.is_empty(),
        "burst: times_s say what is due at once; leave it out"
    );
    let sensible = |at: &f64| (0.0..=LONGEST_SLOT_S.into()).contains(at);
    ensure!(
        arrivals.times_s.is_sorted() && arrivals.times_s.iter().all(sensible),
        "times_s: must ascend from 0 and stay below {LONGEST_SLOT_S}"
    );
    for (index, stage) in arrivals.stages.iter().enumerate() {
        let last = index + 1 == arrivals.stages.len();
        check_stage(stage, last).map_err(|message| format!("stages[{index}].{message}"))?;
    }
    ensure!(
        arrivals.unit == Unit::Request || load.keepalive != KeepAlive::Always,
        "unit: connections that never end can't be due again and again; set keepalive to \"never\" \
         or a number of requests"
    );
    ensure!(
        !arrivals.each_connection || !arrivals.stages.is_empty() && arrivals.share.is_none(),
        "each_connection: it has stages, whose rates are those of one connection, and no share"
    );
    ensure!(
        !arrivals.each_connection || arrivals.unit == Unit::Request && load.streams.is_none(),
        "each_connection: a connection sends one request at a time; leave out unit and streams"
    );
    ensure!(
        !arrivals.each_connection || load.send_lag_budget_s == 0.0,
        "each_connection: what is due on one connection can't wait for others; leave out \
         send_lag_budget_s"
    );
    ensure!(arrivals.max_backlog > 0, "max_backlog: must be at least 1");
    arrivals.share.map_or(Ok(()), check_share)
}

fn check_share(Share { of, index, .. }: Share) -> Result<(), String> {
    ensure!(
        (1..=MOST_CLIENTS).contains(&of),
        "share.of: {of} is not a number of clients between 1 and {MOST_CLIENTS}"
    );
    ensure!(
        index < of,
        "share.index: there is no client {index} among {of}; they count from 0 to {}",
        of - 1
    );
    Ok(())
}

fn check_stage(stage: &Stage, last: bool) -> Result<(), String> {
    for rate in [Some(stage.rate_per_s), stage.to_rate_per_s].into_iter().flatten() {
        between("rate_per_s", rate, 0.0, HIGHEST_RATE)?;
    }
    match stage.for_s {
        None if !last => Err("for_s: only the last stage may go on without an end".into()),
        None if stage.to_rate_per_s.is_some() => {
            Err("for_s: a rate that changes needs a length; give for_s".into())
        }
        None => Ok(()),
        Some(seconds) => between("for_s", seconds, f64::MIN_POSITIVE, LONGEST_SLOT_S),
    }
}

fn is_secure(url: &str) -> bool {
    url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// What lies between HTTP and the socket: TLS, HTTP/2.
fn check_layers(order: &Order) -> Result<(), String> {
    let load = &order.load;
    let secure = order.requests.iter().any(|request| is_secure(&request.url));
    let http2 = load.protocol == Protocol::Http2;
    let streams = load.streams.unwrap_or(1);
    ensure!(
        load.streams.is_none() || http2,
        "streams: only HTTP/2 has them; set \"protocol\": \"http2\" (--http2)"
    );
    ensure!(
        (1..=MOST_STREAMS).contains(&streams),
        "streams: {streams} is not between 1 and {MOST_STREAMS}"
    );
    ensure!(
        streams == 1 || u64::from(load.connections) * u64::from(streams) <= MOST_AT_A_TIME,
        "streams: {streams} on each of {} connections are more than {MOST_AT_A_TIME} requests at a \
         time; give fewer",
        load.connections
    );
    let by_connection = load.arrivals.as_ref().is_some_and(|a| a.unit == Unit::Connection);
    ensure!(
        !by_connection || streams == 1,
        "streams: where whole connections are due, their requests follow each other; leave streams \
         out"
    );
    if let Some(tls) = &load.tls {
        ensure!(
            secure,
            "tls: no URL begins with https://, so there is no TLS (--cacert, --insecure, \
             --cert, --key, --tls-version, --tls-resumption); leave it out"
        );
        ensure!(
            !tls.insecure || tls.ca_file.is_none(),
            "tls: whoever takes any certificate needs no ca_file; leave one out"
        );
        ensure!(
            tls.certificate_file.is_some() == tls.key_file.is_some(),
            "tls: a client's certificate and its key belong together; give certificate_file and \
             key_file (--cert, --key)"
        );
    }
    ensure!(
        !load.cookies || !http2,
        "cookies: they are kept over HTTP/1.1 only; leave out cookies (--cookies) or HTTP/2"
    );
    let beside = load.slow_readers.is_some() || load.idle_connections > 0;
    ensure!(
        !beside || !(secure || http2),
        "slow_readers: they and idle_connections are there for plain HTTP/1.1 only; leave them out, \
         or TLS and HTTP/2"
    );
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
    fn a_share_is_one_client_of_those_there_are() {
        let load = |kind: &str, share: &str| {
            let load = format!(
                r#""loop": "{kind}", "arrivals": {{"stages": [{{"rate_per_s": 1}}], "share": {share}}}"#
            );
            message("http://127.0.0.1:1/", &load)
        };
        for (share, wanted) in [
            (r#"{"of": 0, "index": 0, "seed": 1}"#, "load.arrivals.share.of: 0 is not a number"),
            (r#"{"of": 2, "index": 2, "seed": 1}"#, "share.index: there is no client 2 among 2"),
            (r#"{"of": 2, "index": 0}"#, "missing field `seed`"),
            (r#"{"of": 2, "index": 0, "seed": -1}"#, "load.arrivals.share.seed"),
        ] {
            let message = load("open", share);
            assert!(message.contains(wanted), "{share}: {message}");
        }
        let whole = r#"{"of": 1, "index": 0, "seed": 1}"#;
        assert_eq!(load("open", whole), "");
        assert!(load("closed", whole).contains("only an open loop has a timetable"));
    }

    #[test]
    fn methods_are_tokens_and_statuses_end_an_exchange() {
        let message = |method: &str, status: u16| {
            let order = format!(
                r#"{{"requests": [{{"url": "http://127.0.0.1:1/", "method": "{method}",
                     "expect": {{"status": [{status}]}}}}], "count": 1,
                    "load": {{"connections": 1, "loop": "closed"}}}}"#
            );
            parse(&order).map_or_else(|error| error.message, |_| String::new())
        };
        for (method, status) in [("M-SEARCH", 200), ("VERSION-CONTROL", 101), ("GET", 999)] {
            assert_eq!(message(method, status), "");
        }
        for (method, status) in [("GE T", 200), ("", 200), ("GET", 100), ("GET", 102)] {
            assert_ne!(message(method, status), "", "{method:?} {status}");
        }
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
            (plain, r#""loop": "closed", "ramp_s": 1.0"#, "load.ramp_s: a count may be"),
            (
                plain,
                r#""loop": "open", "arrivals": {"stages": [{"rate_per_s": 1}]}, "ramp_s": 1.0"#,
                "load.ramp_s: connections of an open loop",
            ),
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
