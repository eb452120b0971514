//! From flags to an order.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::args::{Args, GoodputLimit};
use super::replay::{self, Replay};
use crate::engine::http3::socket::RECEIVE_BUFFER_BYTES;
use crate::engine::limits;
use crate::given;
use crate::order::{
    Arrivals, Goodput, IpVersion, KeepAlive, Load, Loop, Order, Process, Protocol, Request, SCHEMA,
    SlowReaders, Stage, Think, Unit,
};
use crate::target::Target;

const DEFAULT_DURATION_S: f64 = 10.0;
const DEFAULT_TIMEOUT_S: f64 = 5.0;
/// A language model takes a minute for some hundred tokens.
const DEFAULT_STREAM_TIMEOUT_S: f64 = 60.0;
const DEFAULT_SLOW_BYTES_PER_S: u32 = 1000;
const BROWSERS_ENCODINGS: &str = "gzip, deflate, br, zstd";

/// What the flags ask for, and what of a replayed log could not be used.
pub fn build(args: &Args) -> Result<(Order, Vec<String>), String> {
    let requests = &args.requests;
    let data = requests.data.as_deref().map(|text| body("--data", text)).transpose()?;
    let message = requests.message.as_deref().map(|text| body("--message", text)).transpose()?;
    let json = call_json(args, message.as_deref())?;
    let mut replayed = None;
    let requests = if let Some(file) = &args.requests.traffic {
        traffic(file)?
    } else if let Some(log) = &args.requests.replay {
        let replay = replay::read(log, &args.urls[0], args.requests.replay_speed.unwrap_or(1.0))?;
        let requests = std::mem::take(&mut replayed.insert(replay).requests);
        requests.into_iter().map(|request| with_flags(request, args)).collect()
    } else {
        let request = |url: &String| {
            let mut request = Request {
                method: args.requests.method.clone(),
                binary: args.requests.binary,
                ..Request::get(url.clone())
            };
            match request.is_call() {
                true => (request.body, request.json) = (data.clone(), json.clone()),
                false => request.body = data.clone().or(message.clone()),
            }
            with_flags(request, args)
        };
        args.urls.iter().map(request).collect()
    };
    let arrivals = arrivals(args, replayed.as_ref())?;
    let streams = requests.iter().any(|request| request.events.is_some());
    let usual_s = if streams { DEFAULT_STREAM_TIMEOUT_S } else { DEFAULT_TIMEOUT_S };
    let timeout_s = args.load.timeout.unwrap_or(usual_s);
    let (duration_s, count) = end(args, arrivals.as_ref(), replayed.as_ref());
    let (sequence, notes) = replayed.map_or((None, Vec::new()), |r| (Some(r.sequence), r.notes));
    let protocol = protocol(args, &requests);
    let notes = notes.into_iter().chain(small_buffers(protocol)).collect();
    let order = Order {
        schema: SCHEMA,
        id: String::new(),
        load: load(args, arrivals, protocol, timeout_s),
        requests,
        ramp_up_s: args.load.ramp_up.unwrap_or(0.0),
        duration_s,
        count,
        allow_remote: args.clients.allow_remote,
        seed: args.load.seed,
        zipf: args.requests.zipf,
        sequence,
        window_s: args.checks.window,
        exclude_client_limited: args.checks.exclude_client_limited,
        abort_rule: None,
        goodput: goodput(&args.checks.goodput)?,
        trace: None,
        session: None,
        descriptors: descriptors(args)?,
    };
    Ok((order, notes))
}

/// HTTP/3: what doesn't fit into a socket is lost, which is no fault of the server's.
fn small_buffers(protocol: Protocol) -> Option<String> {
    let bytes = limits::udp_bytes().filter(|bytes| *bytes < RECEIVE_BUFFER_BYTES)?;
    let text = format!(
        "a UDP socket holds {bytes} bytes here, so that of large responses some may be lost and sent \
         again: sudo sysctl -w net.core.rmem_max={RECEIVE_BUFFER_BYTES}"
    );
    (protocol == Protocol::Http3).then_some(text)
}

fn protocol(args: &Args, requests: &[Request]) -> Protocol {
    let http2 = args.tls.http2 || requests.iter().any(Request::is_call);
    match (args.tls.http3, http2) {
        (true, _) => Protocol::Http3,
        (_, true) => Protocol::Http2,
        _ if requests.iter().any(Request::is_message) => Protocol::WebSocket,
        _ => Protocol::Http1,
    }
}

fn load(args: &Args, arrivals: Option<Arrivals>, protocol: Protocol, timeout_s: f64) -> Load {
    let keepalive = match args.open.conn_rate {
        Some(_) => args.open.requests_per_conn.map_or(KeepAlive::Never, KeepAlive::Requests),
        None => args.load.keepalive.unwrap_or_default(),
    };
    Load {
        kind: if arrivals.is_some() { Loop::Open } else { Loop::Closed },
        connections: args.load.connections,
        keepalive,
        timeout_s,
        send_delay_budget_s: args.open.send_delay_budget.unwrap_or(0.0),
        kernel_times: args.load.kernel_times,
        connection_ramp_s: args.load.conn_ramp.unwrap_or(0.0),
        think: args.load.think.map(|mean_s| Think {
            mean_s,
            distribution: args.load.think_distribution.unwrap_or_default(),
        }),
        arrivals,
        source_addresses: args
            .clients
            .sources
            .iter()
            .flat_map(|sources| sources.0.iter().copied())
            .collect(),
        cookies: args.requests.cookies,
        idle_connections: args.clients.idle_connections,
        slow_readers: (args.clients.slow_readers > 0).then(|| SlowReaders {
            connections: args.clients.slow_readers,
            bytes_per_s: args.clients.slow_rate.unwrap_or(DEFAULT_SLOW_BYTES_PER_S),
        }),
        protocol,
        broadcast: args.requests.broadcast,
        streams: args.tls.streams,
        tls: args.tls.order(),
        connect_to: [&args.clients.resolve[..], &args.clients.connect_to].concat(),
        ip_version: match (args.clients.ipv4, args.clients.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        },
    }
}

/// Each limit may be given once.
fn goodput(limits: &[GoodputLimit]) -> Result<Option<Goodput>, String> {
    let mut all = Goodput::default();
    for limit in limits {
        let (name, known, s) = match limit {
            GoodputLimit::FirstEvent(s) => ("ttft", &mut all.first_event_s, s),
            GoodputLimit::PerEvent(s) => ("tpot", &mut all.per_event_s, s),
            GoodputLimit::Latency(s) => ("latency", &mut all.latency_s, s),
        };
        if known.replace(*s).is_some() {
            return Err(format!("--goodput: {name} is given twice; give it once"));
        }
    }
    Ok((!limits.is_empty()).then_some(all))
}

fn arrivals(args: &Args, replayed: Option<&Replay>) -> Result<Option<Arrivals>, String> {
    let mut arrivals = Arrivals {
        process: if args.open.poisson { Process::Poisson } else { Process::Constant },
        max_backlog: args.open.max_backlog.unwrap_or(Arrivals::MAX_BACKLOG),
        stages: args.open.stages.clone(),
        burst: args.open.burst,
        each_connection: args.open.rate_per_conn.is_some(),
        ..Arrivals::default()
    };
    let open = &args.open;
    if let Some(rate_per_s) = open.rate.or(open.conn_rate).or(open.rate_per_conn) {
        arrivals.stages = vec![Stage { rate_per_s, to_rate_per_s: None, for_s: None }];
        arrivals.unit = if open.conn_rate.is_some() { Unit::Connection } else { Unit::Request };
    } else if let Some(file) = &args.open.times {
        arrivals.times_s = times(file)?.into();
    } else if let Some(replay) = replayed {
        arrivals.times_s = Arc::clone(&replay.times_s);
    } else if args.open.stages.is_empty() {
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
    if args.load.time.is_some() || args.load.count.is_some() {
        return (args.load.time, args.load.count);
    }
    match (arrivals, replayed) {
        (_, Some(replay)) => (None, Some(replay.sequence.len() as u64)),
        (Some(arrivals), None) if arrivals.ends() => (None, None),
        _ => (Some(DEFAULT_DURATION_S), None),
    }
}

fn with_flags(mut request: Request, args: &Args) -> Request {
    let is_call = request.is_call();
    let mut add = |name: &str, value: String| request.headers.push((name.to_owned(), value));
    if let Some(user) = &args.requests.user {
        add("Authorization", format!("Basic {}", BASE64_STANDARD.encode(user)));
    }
    if let Some(token) = &args.requests.bearer {
        add("Authorization", format!("Bearer {token}"));
    }
    if args.requests.compressed {
        match is_call {
            true => add("grpc-accept-encoding", "gzip".into()),
            false => add("Accept-Encoding", BROWSERS_ENCODINGS.into()),
        }
    }
    request.headers.extend(args.requests.headers.iter().cloned());
    if !args.checks.expect_status.is_empty() {
        request.expect.status = Some(args.checks.expect_status.clone());
    }
    request.expect.body_bytes = args.checks.expect_bytes;
    request.events = args.requests.events;
    request.expect.body_sha256 = args.checks.expect_sha256;
    request
}

/// What calls send, unless that is --data; the empty message where nothing is given.
fn call_json(args: &Args, message: Option<&[u8]>) -> Result<Option<Value>, String> {
    let is_call = args.urls.iter().any(|url| Request::get(url.clone()).is_call());
    match message {
        _ if !is_call || args.requests.data.is_some() => Ok(None),
        None => Ok(Some(json!({}))),
        Some(text) => serde_json::from_slice(text).map(Some).map_err(|error| {
            format!("--message: is no JSON, as the message of a call is: {error}")
        }),
    }
}

fn descriptors(args: &Args) -> Result<Option<String>, String> {
    let Some(file) = &args.requests.protoset else { return Ok(None) };
    let set = given::read(file).map_err(|error| format!("--protoset {}: {error}", file.display()));
    Ok(Some(BASE64_STANDARD.encode(set?)))
}

fn body(flag: &str, text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        Some(file) => {
            given::read(Path::new(file)).map_err(|error| format!("{flag} {text}: {error}"))
        }
        None => Ok(text.into()),
    }
}

fn times(file: &Path) -> Result<Vec<f64>, String> {
    each_line("--times", file, |line| {
        line.trim().parse().map_err(|_| format!("{line:?} is not a number of seconds"))
    })
}

/// A file of requests, one JSON object a line.
fn traffic(file: &Path) -> Result<Vec<Request>, String> {
    let requests = each_line("--traffic", file, |line| {
        let deserializer = &mut serde_json::Deserializer::from_str(line);
        let request: Request =
            serde_path_to_error::deserialize(deserializer).map_err(|error| error.to_string())?;
        // Who wrote the file could have requests sent to Docker's.
        match Target::parse(&request.url) {
            Ok(target) if target.is_socket() => {
                Err("names a Unix socket; name that on the command line".into())
            }
            _ => Ok(request),
        }
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
    let text = given::read_to_string(file).map_err(|error| format!("{flag} {shown}: {error}"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let named =
        |(index, line)| read(line).map_err(|error| format!("{shown}:{}: {error}", index + 1));
    lines.map(named).collect()
}
