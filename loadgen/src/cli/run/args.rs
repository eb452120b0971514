//! The flags of `loadgen run`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::ArgGroup;
use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::events::EventFormat;
use crate::order::check::{
    HIGHEST_RATE, LONGEST_SLOT_S, LONGEST_TIMEOUT_S, LONGEST_WAIT_S, LONGEST_WINDOW_S, MOST_LAG_MS,
    SHORTEST_WINDOW_S, STEEPEST_ZIPF,
};
use crate::order::{ConnectTo, KeepAlive, Sha256Hex, Stage, ThinkDistribution, Tls, TlsVersion};
use crate::output::threshold::Threshold;
use crate::units::{self, CpuList, Sources};

const EXAMPLES: &str = "\
Examples:
  loadgen run http://127.0.0.1:8080/                           50 connections for 10 s
  loadgen run -c 64 -d 30s -t 2 http://127.0.0.1:8080/         closed loop, two threads
  loadgen run -n 100000 --keepalive never http://127.0.0.1/    a new connection per request
  loadgen run -r 2000 --poisson -c 200 http://127.0.0.1/       open loop, 2000 requests/s
  loadgen run --stage 10s:100-1000 --stage 60s:1000 http://127.0.0.1/
  loadgen run --conn-rate 500 --requests-per-conn 10 http://127.0.0.1/
  loadgen run --replay access.log http://127.0.0.1:8080
  loadgen run --fail-on 'p99>50ms' --fail-on 'failures>0' http://127.0.0.1/
  loadgen run http+unix://%2Frun%2Fapp.sock/status             over a Unix socket
  loadgen run --http2 --streams 10 --cacert ca.pem https://127.0.0.1:8443/
  loadgen run --connect-to ::127.0.0.1:8443 https://example.org/   that name, served here
  loadgen run --cert me.pem --key me.key -k https://127.0.0.1:8443/
  loadgen run --events sse -d 60s --timeout 60s -X POST -D @prompt.json http://127.0.0.1:8000/chat
  loadgen run --once -u me:secret http://127.0.0.1:8080/       one request and its response, whole

Exit codes:
  0  all answers were valid and no threshold was crossed
  1  some requests failed (more than --fail-on 'failures>N' allows), none was answered, or
     another --fail-on threshold was crossed
  2  wrong usage, or the run could not start
  3  the client was the limit in some windows, so the numbers are about it, not the server
  4  what was measured could not be written: standard output or a file is full or closed";

/// Why a flag can't be beside another one: the first that is in the refusal tells.
const CONTRADICTIONS: [(&str, &str); 12] = [
    ("--cpus", "there is one thread on each of the CPUs; leave out --threads"),
    ("--cacert", "whoever takes any certificate needs none to trust; leave one out"),
    ("--bearer", "a request has one Authorization header; leave one out"),
    ("--ipv6", "addresses are of one kind or the other; leave both out for any"),
    ("--events", "events are timed over HTTP/1.1 only; leave out --http2"),
    ("--once", "there is one request and no load; leave the others out"),
    ("--keepalive", "of --conn-rate, --requests-per-conn tells the requests of a connection"),
    ("--replay-speed", "--rate tells how fast the log is replayed; leave one out"),
    ("--zipf", "the log or file tells how often each request is asked for; leave out --zipf"),
    ("--request-file", "the file has each request whole, with what to expect; write it there"),
    ("--replay", "the log tells what is asked for and when; leave out what tells it again"),
    ("", "a run has one timetable; leave the others out"),
];

/// Load a server and print what was measured.
///
/// The loop is closed (each connection asks again when it has its answer) unless a rate is given:
/// then requests are due by a timetable, whatever the server does, and times count from there.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("timetable").args(["rate", "stages", "times", "conn_rate"]))]
#[command(group = ArgGroup::new("rates").args(["rate", "stages", "conn_rate"]).multiple(true))]
#[command(group = ArgGroup::new("open").args(["rate", "stages", "times", "conn_rate", "replay"])
          .multiple(true))]
pub struct Args {
    /// What to ask for: http://127.0.0.1:8080/path, https://127.0.0.1:8443/path or
    /// http+unix://%2Ftmp%2Fx.sock/path
    #[arg(required_unless_present = "request_file", conflicts_with = "request_file")]
    pub urls: Vec<String>,

    /// Connections of the load
    #[arg(short, long, value_name = "COUNT", default_value_t = 50, help_heading = "Load",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Length of the run: 500ms, 10s, 2m; a bare number is seconds [default: 10s, unless
    /// something else ends the run]
    #[arg(short, long, value_name = "TIME", value_parser = units::length::<LONGEST_SLOT_S>,
          help_heading = "Load")]
    pub duration: Option<f64>,
    /// Warm-up: load before the run, which enters neither throughput nor latency: 500ms, 2s
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::seconds::<LONGEST_SLOT_S>,
          help_heading = "Load")]
    pub warm_up: Option<f64>,
    /// Number of requests to send; with --conn-rate, of connections [default: no limit]
    #[arg(short = 'n', long, value_name = "COUNT", help_heading = "Load",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Threads, not pinned
    #[arg(short, long, value_name = "COUNT", default_value_t = 1, help_heading = "Load",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// CPUs to run on, one pinned thread on each: 0,2-3 [default: not pinned]
    #[arg(long, value_name = "LIST", value_parser = units::cpus, help_heading = "Load",
          conflicts_with = "threads")]
    pub cpus: Option<CpuList>,
    /// Requests per connection: always (no limit), never (one), or a number [default: always]
    #[arg(long, value_name = "HOW", help_heading = "Load", conflicts_with = "conn_rate")]
    pub keepalive: Option<KeepAlive>,
    /// Longest wait for a connection, and for an answer: 500ms, 5s; at most 1h
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = units::length::<LONGEST_TIMEOUT_S>, help_heading = "Load")]
    pub timeout: f64,
    /// Closed loop: pause between an answer and the next request: 10ms, 1s [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::seconds::<LONGEST_WAIT_S>, help_heading = "Load")]
    pub think: Option<f64>,
    /// How pauses spread around --think: constant or exponential [default: constant]
    #[arg(long, value_name = "HOW", value_enum, requires = "think", help_heading = "Load")]
    pub think_distribution: Option<ThinkDistribution>,
    /// Time answers by when the kernel got them, not by when they were read, which is later by a
    /// wake-up; each costs a little more [default: only with --send-lag-budget]
    #[arg(long, help_heading = "Load")]
    pub kernel_times: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 0, help_heading = "Load")]
    pub seed: u64,

    /// Requests due per second [default: a closed loop]
    #[arg(short, long, value_name = "PER_SECOND", value_parser = units::above_0::<HIGHEST_RATE>,
          allow_negative_numbers = true, help_heading = "Open loop")]
    pub rate: Option<f64>,
    /// A stage: LENGTH:RATE or LENGTH:FROM-TO in requests per second (10s:500, 1m:0-1000);
    /// may be repeated [default: none]
    #[arg(long = "stage", value_name = "STAGE", value_parser = units::stage,
          help_heading = "Open loop")]
    pub stages: Vec<Stage>,
    /// A file of times in seconds after the start, one a line [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Open loop")]
    pub times: Option<PathBuf>,
    /// New connections due per second, each with --requests-per-conn requests [default: none]
    #[arg(long, value_name = "PER_SECOND", value_parser = units::above_0::<HIGHEST_RATE>,
          allow_negative_numbers = true, help_heading = "Open loop")]
    pub conn_rate: Option<f64>,
    /// Requests on each connection of --conn-rate, one after the other [default: 1]
    #[arg(long, value_name = "COUNT", help_heading = "Open loop", requires = "conn_rate")]
    pub requests_per_conn: Option<NonZeroU32>,
    /// Exponential gaps between due times instead of even ones [default: even]
    #[arg(long, help_heading = "Open loop", requires = "rates")]
    pub poisson: bool,
    /// Send requests up to so much later, and several at a wake-up, which costs less: 50us, 200us,
    /// 1ms, at most 10ms; answers are then timed by when the kernel got them [default: 0, exact]
    #[arg(long, value_name = "TIME", help_heading = "Open loop", requires = "open",
          value_parser = lag)]
    pub send_lag_budget: Option<f64>,
    /// Due requests that may wait for a free connection; more are dropped and counted
    /// [default: 100000 requests]
    #[arg(long, value_name = "COUNT", help_heading = "Open loop", requires = "open",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_backlog: Option<u32>,

    /// Method
    #[arg(
        short,
        long,
        value_name = "NAME",
        default_value = "GET",
        help_heading = "Requests",
        visible_short_alias = 'X'
    )]
    pub method: String,
    /// A header field, `Name: value`; may be repeated [default: Host and User-Agent]
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = units::header,
          help_heading = "Requests")]
    pub headers: Vec<(String, String)>,
    /// Name and password, sent with each request (basic authentication) [default: none]
    #[arg(short, long, value_name = "NAME:PASSWORD", help_heading = "Requests")]
    pub user: Option<String>,
    /// Token, sent with each request: `Authorization: Bearer TOKEN` [default: none]
    #[arg(long, value_name = "TOKEN", help_heading = "Requests", conflicts_with = "user")]
    pub bearer: Option<String>,
    /// Ask for compressed bodies, as browsers do; they are counted as they come, compressed
    /// [default: not asked for]
    #[arg(long, help_heading = "Requests")]
    pub compressed: bool,
    /// Body of each request, or @FILE to read it [default: none]
    #[arg(short = 'D', long, value_name = "TEXT", help_heading = "Requests")]
    pub data: Option<String>,
    /// A file of requests, one JSON object a line: {"url": …, "method": …, "headers": {…},
    /// "body": …, "weight": …, "expect": {…}} [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Requests",
          conflicts_with_all = ["data", "method", "headers", "user", "bearer", "compressed",
                                "events", "expect_status", "expect_bytes", "expect_sha256"])]
    pub request_file: Option<PathBuf>,
    /// Ask by Zipf's law with this exponent: the first request most often [default: all alike]
    #[arg(long, value_name = "EXPONENT", value_parser = units::above_0::<STEEPEST_ZIPF>,
          help_heading = "Requests", conflicts_with_all = ["replay", "request_file"])]
    pub zipf: Option<f64>,
    /// An access log in combined format to replay against the URL, with its own times, or at
    /// --rate [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Requests",
          conflicts_with_all = ["times", "stages", "conn_rate", "request_file", "data", "method"])]
    pub replay: Option<PathBuf>,
    /// How much faster than it was the log is replayed [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = units::above_0::<1_000_000>,
          help_heading = "Requests", requires = "replay", conflicts_with = "rate")]
    pub replay_speed: Option<f64>,
    /// Send one request, and show it and its response whole [default: load]
    #[arg(long, help_heading = "Requests", conflicts_with_all = ["replay", "http2", "json", "hdr",
          "csv", "fail_on", "timetable"])]
    pub once: bool,
    /// Responses are streams: time each server-sent event (sse), or each line (lines)
    /// [default: only whole responses]
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        help_heading = "Requests",
        conflicts_with = "http2"
    )]
    pub events: Option<EventFormat>,
    /// Each connection sends back the cookies it is given [default: they are ignored]
    #[arg(long, help_heading = "Requests")]
    pub cookies: bool,

    /// A status that is right: 200; may be repeated [default: any 2xx]
    #[arg(long, value_name = "STATUS", help_heading = "Checks",
          value_parser = clap::value_parser!(u16).range(101..=999))]
    pub expect_status: Vec<u16>,
    /// Length of the right body in bytes [default: any]
    #[arg(long, value_name = "BYTES", help_heading = "Checks")]
    pub expect_bytes: Option<u64>,
    /// SHA-256 of the right body in hexadecimal; checked on the first answer and one in 256
    /// [default: any]
    #[arg(long, value_name = "HEX", help_heading = "Checks")]
    pub expect_sha256: Option<Sha256Hex>,
    /// Exit with 1 when a figure crosses a limit: 'p99>50ms', 'rate<1000', 'failures>0'; of
    /// p50 p90 p99 p99.9 max mean (latency), rate (throughput per second), failures,
    /// unanswered; of the last two also a share: 'failures>0.1%'; may be repeated [default:
    /// 'failures>0']
    #[arg(long, value_name = "LIMIT", help_heading = "Checks")]
    pub fail_on: Vec<Threshold>,
    /// Leave windows in which the client was the limit out of times and rate [default: keep]
    #[arg(long, help_heading = "Checks")]
    pub leave_out_client_bound: bool,
    /// Length of the windows in which the client watches itself, and of the rows of --csv
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Checks",
          value_parser = window)]
    pub window: f64,

    /// Local addresses to connect from, in turn: 127.0.0.2 or 127.0.0.2-127.0.0.9; may be
    /// repeated [default: the kernel's choice; for each 8000 connections to 127.0.0.0/8 one of its
    /// addresses]
    #[arg(long = "source", value_name = "ADDRESS", value_parser = units::sources,
          help_heading = "Clients")]
    pub sources: Vec<Sources>,
    /// Connections held open beside the load: each asks once when it opens, for the first request,
    /// and then rests; they are counted apart
    #[arg(long, value_name = "COUNT", default_value_t = 0, help_heading = "Clients")]
    pub idle: u32,
    /// Connections beside the load that read slowly; they are counted apart
    #[arg(long, value_name = "COUNT", default_value_t = 0, help_heading = "Clients")]
    pub slow_readers: u32,
    /// What each slow reader reads, in bytes per second [default: 1000]
    #[arg(long, value_name = "BYTES_PER_SECOND", help_heading = "Clients",
          requires = "slow_readers", value_parser = clap::value_parser!(u32).range(1..))]
    pub slow_rate: Option<u32>,
    /// Connect elsewhere than where the URL says, as curl does: HOST:PORT:TO_HOST:TO_PORT; an empty
    /// part is any, or the same; Host and TLS keep the URL's name; may be repeated [default: none]
    #[arg(long, value_name = "RULE", value_parser = units::connect_to, help_heading = "Clients")]
    pub connect_to: Vec<ConnectTo>,
    /// An address for a host and port: HOST:PORT:ADDRESS; may be repeated [default: the system's]
    #[arg(long, value_name = "RULE", value_parser = units::resolve, help_heading = "Clients")]
    pub resolve: Vec<ConnectTo>,
    /// Connect to IPv4 addresses only [default: to any]
    #[arg(short = '4', long, help_heading = "Clients", conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Connect to IPv6 addresses only [default: to any]
    #[arg(short = '6', long, help_heading = "Clients")]
    pub ipv6: bool,
    /// Allow targets that are not on this machine [default: refuse them]
    #[arg(long, help_heading = "Clients")]
    pub allow_remote: bool,

    /// Speak HTTP/2: over TLS agreed upon by ALPN, else with prior knowledge [default: HTTP/1.1]
    #[arg(long, help_heading = "TLS and HTTP/2")]
    pub http2: bool,
    /// Requests at a time on each HTTP/2 connection [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..),
          requires = "http2", help_heading = "TLS and HTTP/2")]
    pub streams: Option<u32>,
    /// Certificates to trust for https:// URLs, as PEM [default: those of the system]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "TLS and HTTP/2")]
    pub cacert: Option<PathBuf>,
    /// Take any certificate [default: refuse what is not to be trusted]
    #[arg(short = 'k', long, help_heading = "TLS and HTTP/2")]
    pub insecure: bool,
    /// Certificate to show a server that wants one, as PEM [default: none]
    #[arg(
        short = 'E',
        long,
        value_name = "FILE",
        requires = "key",
        help_heading = "TLS and HTTP/2"
    )]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, as PEM [default: none]
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS and HTTP/2")]
    pub key: Option<PathBuf>,
    /// The only version of TLS to speak [default: the highest that both sides know]
    #[arg(long, value_name = "VERSION", value_enum, help_heading = "TLS and HTTP/2")]
    pub tls_version: Option<TlsVersion>,
    /// New connections resume TLS sessions of earlier ones: on or off [default: on]
    #[arg(long, value_name = "HOW", value_parser = BoolishValueParser::new(), help_heading = "TLS and HTTP/2")]
    pub tls_resumption: Option<bool>,

    /// Print the result as JSON [default: a table]
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write the distribution of response times, in microseconds, as HdrHistogram's percentile
    /// text [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hdr: Option<PathBuf>,
    /// Write one row per window as CSV [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// No live line on the terminal [default: shown when standard error is a terminal]
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

impl Args {
    pub fn tls(&self) -> Option<Tls> {
        let tls = Tls {
            ca_file: self.cacert.clone(),
            insecure: self.insecure,
            certificate_file: self.cert.clone(),
            key_file: self.key.clone(),
            version: self.tls_version,
            resumption: self.tls_resumption.unwrap_or(true),
        };
        let given = self.tls_resumption.is_some() || tls != Tls::default();
        given.then_some(tls)
    }

    /// Contradictions that lie in what flags say, not in which of them are given.
    pub fn check(&self) -> Result<(), &'static str> {
        let threads = self.cpus.as_ref().map_or(self.threads.into(), |cpus| cpus.0.len());
        if threads > self.connections as usize {
            return Err(
                "each thread needs at least one connection of its own; give fewer threads \
                        or more --connections",
            );
        }
        if self.hdr.is_some() && self.hdr == self.csv {
            return Err("--hdr and --csv with the same file would overwrite each other");
        }
        if self.replay.is_some() && self.urls.len() > 1 {
            return Err("--replay takes one URL: where the log's paths are asked for");
        }
        Ok(())
    }
}

/// Adds to a refusal of flags that contradict each other why they do.
pub fn explain(mut refusal: clap::Error) -> clap::Error {
    let twice = refusal.get(ContextKind::InvalidArg) == refusal.get(ContextKind::PriorArg);
    if refusal.kind() == ErrorKind::ArgumentConflict && !twice {
        let told = refusal.to_string();
        let flags = told.split("Usage").next().unwrap_or_default();
        let named = CONTRADICTIONS.iter().filter(|(flag, _)| flags.contains(flag));
        let why = named.take(1).map(|(_, why)| (*why).into()).collect();
        refusal.insert(ContextKind::Suggested, ContextValue::StyledStrs(why));
    }
    refusal
}

fn lag(text: &str) -> Result<f64, String> {
    match units::seconds::<1>(text)? {
        long if long * 1e3 > MOST_LAG_MS.into() => Err(format!("is longer than {MOST_LAG_MS} ms")),
        lag => Ok(lag),
    }
}

fn window(text: &str) -> Result<f64, String> {
    match units::seconds::<LONGEST_WINDOW_S>(text)? {
        short if short < SHORTEST_WINDOW_S => Err(format!("is shorter than {SHORTEST_WINDOW_S} s")),
        window => Ok(window),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn refusal(flags: &str) -> String {
        let words = std::iter::once("loadgen").chain(flags.split_whitespace());
        match Cli::try_parse_from(words) {
            Ok(cli) => cli.args.check().err().unwrap_or_default().to_owned(),
            Err(error) => explain(error).to_string(),
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for (flags, told) in [
            ("u --rate 5 --stage 1s:5", "--stage"),
            ("u --replay f --times f", "--times"),
            ("u --conn-rate 5 --keepalive never", "--conn-rate"),
            ("u --times f --poisson", "--rate"),
            ("u --replay f --poisson", "--rate"),
            ("u --replay f --rate 5 --replay-speed 2", "--rate"),
            ("u --replay f --method HEAD", "--method"),
            ("u v --replay f", "takes one URL"),
            ("--request-file f --zipf 1", "--zipf"),
            ("--request-file f --header A:b", "--header"),
            ("--request-file f --expect-bytes 5", "--expect-bytes"),
            ("u --request-file f", "--request-file"),
            ("u --cpus 0,1 -t 2", "--threads"),
            ("u --threads 3 --connections 2", "at least one"),
            ("u --cpus 0-4 --connections 2", "at least one"),
            ("u --hdr f --csv f", "overwrite"),
            ("u --insecure --cacert f", "--cacert"),
            ("u --streams 2", "--http2"),
            ("u --cert f", "--key"),
            ("u -4 -6", "--ipv6"),
            ("u -u a:b --bearer c", "--bearer"),
            ("u --once --rate 5", "--once"),
            ("u --events sse --http2", "--events"),
            ("--request-file f --compressed", "--compressed"),
            ("u --slow-rate 2", "--slow-readers"),
            ("u --replay-speed 2", "--replay"),
            ("u --requests-per-conn 2", "--conn-rate"),
            ("u --think-distribution constant", "--think"),
            ("u --poisson", "--rate"),
            ("u --max-backlog 5", "--rate"),
            ("u --send-lag-budget 50us", "--rate"),
            ("u --rate 5 --send-lag-budget 11ms", "longer than 10 ms"),
            ("", "<URLS>"),
        ] {
            let said = refusal(flags);
            assert!(said.contains(told), "{flags}: {said}");
            assert_eq!(said.contains("cannot be used with"), said.contains("tip: "), "{said}");
        }
        for (flags, why) in [
            ("u --rate 5 --times f", "one timetable"),
            ("u --conn-rate 5 --keepalive never", "--requests-per-conn"),
            ("u --replay f --method HEAD --data x", "the log tells what"),
            ("u --replay f --zipf 1", "how often"),
            ("--request-file f --method HEAD --data x", "each request whole"),
        ] {
            let said = refusal(flags);
            assert!(said.split("tip: ").nth(1).is_some_and(|tip| tip.contains(why)), "{said}");
        }
        assert!(!refusal("u --rate 5 --rate 6").contains("tip: "));
        for good in [
            "u v --rate 5 --poisson -t 2 -c 2 --hdr f --csv g",
            "u --replay f --rate 5 --poisson",
            "u --times f --max-backlog 5 --send-lag-budget 50us",
            "u --rate 5 --send-lag-budget 0",
            "u --replay f --replay-speed 2 --max-backlog 5",
            "--request-file f",
            "-X POST -k -u me:x --compressed -4 --warm-up 1s --once u",
            "u --connect-to ::127.0.0.1:80 --resolve a:80:::1 --tls-version 1.2",
        ] {
            assert_eq!(refusal(good), "", "{good}");
        }
    }
}
