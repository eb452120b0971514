//! The flags of `loadgen run`.

mod checks;
mod clients;
mod goodput;
mod load;
mod open;
mod output;
mod requests;
mod tls;

use clap::ArgGroup;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use checks::CheckFlags;
use clients::ClientFlags;
pub use goodput::GoodputLimit;
use load::LoadFlags;
use open::OpenFlags;
use output::OutputFlags;
use requests::RequestFlags;
use tls::TlsFlags;

use crate::order::Request;

const EXAMPLES: &str = "\
Examples:
  loadgen run http://127.0.0.1:8080/                           50 connections for 10 s
  loadgen run -c 64 -d 30s -t 2 http://127.0.0.1:8080/         closed loop, two threads
  loadgen run -c 1000 --conn-ramp 20s --ramp-up 20s -d 60s http://127.0.0.1/
  loadgen run -n 100000 --keepalive never http://127.0.0.1/    a new connection per request
  loadgen run -r 2000 --poisson -c 200 http://127.0.0.1/       open loop, 2000 requests/s
  loadgen run -r 100 --burst 50 http://127.0.0.1/              50 requests at once, twice a second
  loadgen run -c 500 --rate-per-conn 2 http://127.0.0.1/       each connection twice a second
  loadgen run --stage 10s:100-1000 --stage 60s:1000 http://127.0.0.1/
  loadgen run --conn-rate 500 --requests-per-conn 10 http://127.0.0.1/
  loadgen run --replay access.log http://127.0.0.1:8080
  loadgen run --fail-if 'p99>50ms' --fail-if 'failures>0.1%' http://127.0.0.1/
  loadgen run --stage 10m:0-20000 --stop-if 'failures>5%' --stop-if 'p99>1s' http://127.0.0.1/
  loadgen run -d 10m --prometheus /var/lib/node_exporter/loadgen.prom http://127.0.0.1/
  loadgen run --log-requests some.jsonl --log-every 100 http://127.0.0.1/
  loadgen run http+unix://%2Frun%2Fapp.sock/status             over a Unix socket
  loadgen run --http2 --streams 10 --cacert ca.pem https://127.0.0.1:8443/
  loadgen run --connect-to ::127.0.0.1:8443 https://example.org/   that name, served here
  loadgen run --resolve shop.example:80:127.0.0.1,127.0.0.2 http://shop.example/   both in turn
  loadgen run --cert me.pem --key me.key --tls-verify off https://127.0.0.1:8443/
  SSLKEYLOGFILE=keys.log loadgen run --tls-version 1.2 --tls-verify off https://127.0.0.1:8443/
  loadgen run -4 --bearer a-token --compressed http://localhost:8080/
  loadgen run --events sse --goodput 'ttft<500ms' -d 60s -X POST -D @prompt.json http://127.0.0.1:8000/chat
  loadgen run -c 100 -r 5000 --message hello ws://127.0.0.1:8080/   WebSocket: echoes
  loadgen run --streams 8 --protoset greeter.protoset --message '{\"name\": \"x\"}' grpc://127.0.0.1:50051/helloworld.Greeter/SayHello
  loadgen run --once -u me:secret http://127.0.0.1:8080/       one request and its response, whole

Exit codes:
  0  all responses were valid and no threshold was crossed
  1  some requests failed (without a --fail-if that says how many may), or no response came
  2  wrong usage, or the run could not start
  3  the client was saturated in some windows, so the numbers are about it, not the server
  4  what was measured could not be written: standard output or a file is full or closed
  5  a --fail-if threshold was crossed, or a --stop-if limit";

/// Why a flag can't go with another one: the first that is in the refusal decides.
const CONTRADICTIONS: [(&str, &str); 13] = [
    ("--cpus", "there is one thread on each of the CPUs; leave out --threads"),
    ("--bearer", "a request has one Authorization header; leave one out"),
    ("--ipv6", "addresses are of one kind or the other; leave both out for any"),
    ("--once", "there is one request and no load; leave the others out"),
    (
        "--conn-ramp",
        "connections begin slowly in a closed loop that a duration ends; an open \
                            loop has --stage",
    ),
    ("--rate-per-conn", "each connection has a timetable of its own, for as long as --time says"),
    ("--keepalive", "of --conn-rate, --requests-per-conn tells the requests of a connection"),
    ("--replay-speed", "--rate tells how fast the log is replayed; leave one out"),
    ("--zipf", "the log or file tells how often each request is asked for; leave out --zipf"),
    ("--traffic", "the file has each request whole, with what to expect; write it there"),
    ("--replay", "the log tells what is asked for and when; leave out what tells it again"),
    ("--message", "a message has no method and no other body; leave one out"),
    ("", "a run has one timetable; leave the others out"),
];

/// Load a server and print what was measured.
///
/// The loop is closed (each connection sends again when it has its response) unless a rate is given:
/// then a timetable sets the pace, whatever the server does, and latency counts from when a request
/// was due, so that a server that stalls hides nothing (no coordinated omission).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("timetable").args(["rate", "rate_per_conn", "stages", "times", "conn_rate"]))]
#[command(group = ArgGroup::new("rates").args(["rate", "rate_per_conn", "stages", "conn_rate"]).multiple(true))]
#[command(group = ArgGroup::new("open").args(["rate", "rate_per_conn", "stages", "times", "conn_rate", "replay"])
          .multiple(true))]
pub struct Args {
    /// What to ask for: http://127.0.0.1:8080/path, https://127.0.0.1:8443/path,
    /// ws://127.0.0.1:8080/path, wss://127.0.0.1:8443/path, grpc://127.0.0.1:50051/package.Service/Method,
    /// grpcs://… or http+unix://%2Ftmp%2Fx.sock/path
    #[arg(required_unless_present = "traffic", conflicts_with = "traffic")]
    pub urls: Vec<String>,

    #[command(flatten, next_help_heading = "Load")]
    pub load: LoadFlags,
    #[command(flatten, next_help_heading = "Open loop")]
    pub open: OpenFlags,
    #[command(flatten, next_help_heading = "Requests")]
    pub requests: RequestFlags,
    #[command(flatten, next_help_heading = "Checks")]
    pub checks: CheckFlags,
    #[command(flatten, next_help_heading = "Clients")]
    pub clients: ClientFlags,
    #[command(flatten, next_help_heading = "TLS and HTTP/2")]
    pub tls: TlsFlags,
    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputFlags,
}

impl Args {
    /// Contradictions that lie in what flags say, not in which of them are given.
    pub fn check(&self) -> Result<(), String> {
        let threads = self.load.cpus.as_ref().map_or(self.load.threads.into(), |cpus| cpus.0.len());
        if threads > self.load.connections as usize {
            return Err(
                "each thread needs at least one connection of its own; give fewer threads \
                        or more --connections"
                    .into(),
            );
        }
        if self.requests.replay.is_some() && self.urls.len() > 1 {
            return Err("--replay takes one URL: where the log's paths are asked for".into());
        }
        let is_message = |url: &String| Request::get(url.clone()).is_message();
        let is_call = |url: &String| Request::get(url.clone()).is_call();
        if self.requests.message.is_some()
            && !self.urls.iter().all(|url| is_message(url) || is_call(url))
        {
            return Err(
                "--message goes over WebSocket, to ws:// or wss://, or is that of a call of gRPC, \
                        to grpc:// or grpcs://; --data is the body of a request"
                    .into(),
            );
        }
        let shares = self.tls.http2 || self.tls.http3 || self.urls.iter().any(is_call);
        if self.tls.streams.is_some() && !shares {
            return Err(
                "--streams are those of a connection of HTTP/2 or 3: give --http2 or --http3"
                    .into(),
            );
        }
        if self.requests.protoset.is_some()
            && !self.urls.is_empty()
            && !self.urls.iter().any(is_call)
        {
            return Err(
                "--proto and --protoset are about calls of gRPC, to grpc:// or grpcs://".into()
            );
        }
        if self.requests.data.is_some() && self.urls.iter().any(is_message) {
            return Err("--data is the body of a request; over WebSocket give --message".into());
        }
        self.output.check()
    }
}

/// Adds to a refusal of flags that contradict each other why they do.
pub fn explain(mut refusal: clap::Error) -> clap::Error {
    let twice = refusal.get(ContextKind::InvalidArg) == refusal.get(ContextKind::PriorArg);
    if refusal.kind() == ErrorKind::ArgumentConflict && !twice {
        let text = refusal.to_string();
        let flags = text.split("Usage").next().unwrap_or_default();
        let named = CONTRADICTIONS.iter().filter(|(flag, _)| flags.contains(flag));
        let why = named.take(1).map(|(_, why)| (*why).into()).collect();
        refusal.insert(ContextKind::Suggested, ContextValue::StyledStrs(why));
    }
    refusal
}

#[cfg(test)]
mod tests;
