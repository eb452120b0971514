//! From flags to an order.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::args::Args;
use super::replay::{self, Replay};
use crate::order::{
    Arrivals, IpVersion, KeepAlive, Load, Loop, Order, Process, Protocol, Request, SlowReaders,
    Stage, Think, Unit,
};

const DEFAULT_DURATION_S: f64 = 10.0;
const DEFAULT_SLOW_BYTES_PER_S: u32 = 1000;
const BROWSERS_ENCODINGS: &str = "gzip, deflate, br, zstd";

/// What the flags ask for, and what of a replayed log could not be used.
pub fn build(args: &Args) -> Result<(Order, Vec<String>), String> {
    let body = args.data.as_deref().map(body).transpose()?;
    let mut replayed = None;
    let requests = if let Some(file) = &args.request_file {
        request_file(file)?
    } else if let Some(log) = &args.replay {
        let replay = replay::read(log, &args.urls[0], args.replay_speed.unwrap_or(1.0))?;
        let requests = std::mem::take(&mut replayed.insert(replay).requests);
        requests.into_iter().map(|request| with_flags(request, args)).collect()
    } else {
        let request = |url: &String| {
            let (method, body) = (args.method.clone(), body.clone());
            with_flags(Request { method, body, ..Request::get(url.clone()) }, args)
        };
        args.urls.iter().map(request).collect()
    };
    let arrivals = arrivals(args, replayed.as_ref())?;
    let (duration_s, count) = end(args, arrivals.as_ref(), replayed.as_ref());
    let (sequence, notes) = replayed.map_or((None, Vec::new()), |r| (Some(r.sequence), r.notes));
    let order = Order {
        id: String::new(),
        requests,
        load: load(args, arrivals),
        lead_in_s: args.warm_up.unwrap_or(0.0),
        duration_s,
        count,
        allow_remote: args.allow_remote,
        seed: args.seed,
        zipf: args.zipf,
        sequence,
        window_s: args.window,
        leave_out_client_bound: args.leave_out_client_bound,
        enough_late: None,
        session: None,
    };
    Ok((order, notes))
}

fn load(args: &Args, arrivals: Option<Arrivals>) -> Load {
    let keepalive = match args.conn_rate {
        Some(_) => args.requests_per_conn.map_or(KeepAlive::Never, KeepAlive::Requests),
        None => args.keepalive.unwrap_or_default(),
    };
    Load {
        kind: if arrivals.is_some() { Loop::Open } else { Loop::Closed },
        connections: args.connections,
        keepalive,
        timeout_s: args.timeout,
        send_lag_budget_s: args.send_lag_budget.unwrap_or(0.0),
        kernel_times: args.kernel_times,
        think: args.think.map(|mean_s| Think {
            mean_s,
            distribution: args.think_distribution.unwrap_or_default(),
        }),
        arrivals,
        source_addresses: args
            .sources
            .iter()
            .flat_map(|sources| sources.0.iter().copied())
            .collect(),
        cookies: args.cookies,
        idle_connections: args.idle,
        slow_readers: (args.slow_readers > 0).then(|| SlowReaders {
            connections: args.slow_readers,
            bytes_per_s: args.slow_rate.unwrap_or(DEFAULT_SLOW_BYTES_PER_S),
        }),
        protocol: if args.http2 { Protocol::Http2 } else { Protocol::Http1 },
        streams: args.streams,
        tls: args.tls(),
        connect_to: [&args.resolve[..], &args.connect_to].concat(),
        ip_version: match (args.ipv4, args.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        },
    }
}

fn arrivals(args: &Args, replayed: Option<&Replay>) -> Result<Option<Arrivals>, String> {
    let mut arrivals = Arrivals {
        process: if args.poisson { Process::Poisson } else { Process::Constant },
        max_backlog: args.max_backlog.unwrap_or(Arrivals::MAX_BACKLOG),
        stages: args.stages.clone(),
        ..Arrivals::default()
    };
    if let Some(rate_per_s) = args.rate.or(args.conn_rate) {
        arrivals.stages = vec![Stage { rate_per_s, to_rate_per_s: None, for_s: None }];
        arrivals.unit = if args.rate.is_some() { Unit::Request } else { Unit::Connection };
    } else if let Some(file) = &args.times {
        arrivals.times_s = times(file)?.into();
    } else if let Some(replay) = replayed {
        arrivals.times_s = Arc::clone(&replay.times_s);
    } else if args.stages.is_empty() {
        return Ok(None);
    }
    Ok(Some(arrivals))
}

/// What ends the run: what was asked for, or else the timetable or log, or else ten seconds.
fn end(
    args: &Args,
    arrivals: Option<&Arrivals>,
    replayed: Option<&Replay>,
) -> (Option<f64>, Option<u64>) {
    if args.duration.is_some() || args.requests.is_some() {
        return (args.duration, args.requests);
    }
    match (arrivals, replayed) {
        (_, Some(replay)) => (None, Some(replay.sequence.len() as u64)),
        (Some(arrivals), None) if arrivals.ends() => (None, None),
        _ => (Some(DEFAULT_DURATION_S), None),
    }
}

fn with_flags(mut request: Request, args: &Args) -> Request {
    let mut add = |name: &str, value: String| request.headers.push((name.to_owned(), value));
    if let Some(user) = &args.user {
        add("Authorization", format!("Basic {}", BASE64_STANDARD.encode(user)));
    }
    if let Some(token) = &args.bearer {
        add("Authorization", format!("Bearer {token}"));
    }
    if args.compressed {
        add("Accept-Encoding", BROWSERS_ENCODINGS.into());
    }
    request.headers.extend(args.headers.iter().cloned());
    if !args.expect_status.is_empty() {
        request.expect.status = Some(args.expect_status.clone());
    }
    request.expect.body_bytes = args.expect_bytes;
    request.events = args.events;
    request.expect.body_sha256 = args.expect_sha256;
    request
}

fn body(text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        Some(file) => fs::read(file).map_err(|error| format!("--data {text}: {error}")),
        None => Ok(text.into()),
    }
}

fn times(file: &Path) -> Result<Vec<f64>, String> {
    each_line("--times", file, |line| {
        line.trim().parse().map_err(|_| format!("{line:?} is not a number of seconds"))
    })
}

/// A file of requests, one JSON object a line.
fn request_file(file: &Path) -> Result<Vec<Request>, String> {
    let requests = each_line("--request-file", file, |line| {
        let deserializer = &mut serde_json::Deserializer::from_str(line);
        serde_path_to_error::deserialize(deserializer).map_err(|error| error.to_string())
    })?;
    match requests.is_empty() {
        true => Err(format!("{}: has no request", file.display())),
        false => Ok(requests),
    }
}

/// Reads a file line by line, empty ones aside; a mistake is named with its line.
fn each_line<T>(
    flag: &str,
    file: &Path,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("{flag} {shown}: {error}"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let named =
        |(index, line)| read(line).map_err(|error| format!("{shown}:{}: {error}", index + 1));
    lines.map(named).collect()
}
