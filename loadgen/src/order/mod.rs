//! The contract: what an order says, as JSON. `schema/order.v2.schema.json` describes it for others.

mod arrivals;
pub mod bounds;
mod goodput;
pub mod parse;
mod request;
mod session;
pub mod validate;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use arrivals::{Arrivals, Process, Share, Stage, Think, ThinkDistribution, Unit};
pub use goodput::{Goodput, Took};
pub use request::{Capture, Expect, Request, Sha256Hex};
pub use session::{Each, Session, Values};

/// Version of the contract: of orders and results.
pub const SCHEMA: u32 = 2;

/// One slot of load, asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Version of the contract.
    #[serde(default = "schema")]
    pub schema: u32,
    #[serde(default)]
    pub id: String,
    pub requests: Vec<Request>,
    pub load: Load,
    /// Seconds of load before the window.
    #[serde(default)]
    pub ramp_up_s: f64,
    /// Length of the window in seconds.
    pub duration_s: Option<f64>,
    /// Number of requests to send.
    pub count: Option<u64>,
    /// Allows targets that are not on this machine.
    #[serde(default)]
    pub allow_remote: bool,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Ask for the requests by Zipf's law with this exponent, the first one most often.
    pub zipf: Option<f64>,
    /// Ask in this order: indices into `requests`, again from the start after the last.
    pub sequence: Option<Vec<u32>>,
    /// Length of the windows in which the client watches itself, in seconds.
    #[serde(default = "one")]
    pub window_s: f64,
    /// Leave windows in which the client was saturated out of times and rate.
    #[serde(default)]
    pub exclude_client_limited: bool,
    /// Open loop after a ramp-up: when what was due in the window is awaited no longer.
    pub abort_rule: Option<AbortRule>,
    /// Streamed answers that keep these limits are counted apart.
    pub goodput: Option<Goodput>,
    /// Connections are users that log in and keep what they are given.
    pub session: Option<Session>,
    /// Ask for all once, over one connection, and report each response whole.
    pub trace: Option<Trace>,
    /// What the messages of calls are: one `FileDescriptorSet` or several behind each other, as
    /// base64. Servers are asked for it when absent.
    pub descriptors: Option<String>,
}

/// How a server is asked whose responses are reported.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trace {
    /// So long it is tried again where nobody accepts a connection: a server may be starting.
    pub accepts_within_s: f64,
}

/// More than this share of the requests that were due in the window have waited so long without an
/// answer.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AbortRule {
    pub share: f64,
    pub after_s: f64,
}

/// How many requests one connection carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[serde(expecting = "is not \"always\", \"never\" or a number of requests from 1")]
pub enum KeepAlive {
    #[default]
    Always,
    Never,
    /// This many requests per connection.
    #[serde(untagged)]
    Requests(NonZeroU32),
}

impl KeepAlive {
    /// Requests after which a connection is closed by us, if ever.
    pub fn limit(self) -> Option<u32> {
        match self {
            KeepAlive::Always => None,
            KeepAlive::Never => Some(1),
            KeepAlive::Requests(count) => Some(count.get()),
        }
    }
}

impl FromStr for KeepAlive {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "always" => Ok(KeepAlive::Always),
            "never" => Ok(KeepAlive::Never),
            _ => text
                .parse()
                .map(KeepAlive::Requests)
                .map_err(|_| "is not always, never or a number of requests from 1"),
        }
    }
}

/// Who decides when the next request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loop {
    /// The answer to the one before.
    Closed,
    /// A timetable.
    Open,
}

/// What the clients do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    #[serde(rename = "loop")]
    pub kind: Loop,
    pub connections: u32,
    #[serde(default)]
    pub keepalive: KeepAlive,
    #[serde(default = "five")]
    pub timeout_s: f64,
    /// Open loop: requests may be sent so late, together with others; 0 is exact.
    #[serde(default)]
    pub send_delay_budget_s: f64,
    /// Answers are timed by when the kernel got them, whenever they are read.
    #[serde(default)]
    pub kernel_times: bool,
    /// Closed loop: over this time the connections begin, one after the other.
    #[serde(default)]
    pub connection_ramp_s: f64,
    /// Closed loop: pause of a connection between an answer and its next request.
    pub think: Option<Think>,
    /// Open loop: the timetable.
    pub arrivals: Option<Arrivals>,
    /// Local addresses to connect from, in turn.
    #[serde(default)]
    pub source_addresses: Vec<IpAddr>,
    /// Each connection keeps the cookies it is given.
    #[serde(default)]
    pub cookies: bool,
    /// Connections next to the load that ask once, for the first request, and are then held open.
    #[serde(default)]
    pub idle_connections: u32,
    pub slow_readers: Option<SlowReaders>,
    #[serde(default)]
    pub protocol: Protocol,
    /// WebSocket: one more connection sends each message, and all others have to receive it. What one
    /// of them receives is the answer to a request of its own.
    #[serde(default)]
    pub broadcast: bool,
    /// HTTP/2 and 3: requests in flight at a time on each connection.
    pub streams: Option<u32>,
    pub tls: Option<Tls>,
    /// Where requests for some hosts go instead; the first that fits counts.
    #[serde(default)]
    pub connect_to: Vec<ConnectTo>,
    /// Which addresses of hosts are connected to; all when absent.
    pub ip_version: Option<IpVersion>,
}

/// Connections for a host and port go elsewhere, as with curl's `--connect-to`: the `Host` field
/// and the name that TLS asks for stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectTo {
    /// Any host when absent.
    pub host: Option<String>,
    /// Any port when absent.
    pub port: Option<u16>,
    /// A name or address; the same host when absent.
    pub to_host: Option<String>,
    /// The same port when absent.
    pub to_port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum IpVersion {
    #[serde(rename = "4")]
    V4,
    #[serde(rename = "6")]
    V6,
}

/// Connections next to the load that read their answers slowly; counted apart.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowReaders {
    pub connections: u32,
    pub bytes_per_s: u32,
}

/// What is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Http1,
    /// Over TLS agreed upon by ALPN, over cleartext with prior knowledge (RFC 9113 section 3.3).
    Http2,
    /// Over QUIC, for URLs that begin with `https://`; nothing is sent before the handshake is done
    /// (0-RTT), and nobody is asked over TCP where HTTP/3 is spoken (Alt-Svc).
    Http3,
    /// URLs begin with `ws://` or `wss://`. Each request is a message, which is answered by one.
    WebSocket,
}

impl Protocol {
    /// Several requests can be on their way on a connection.
    pub fn shares_connections(self) -> bool {
        matches!(self, Protocol::Http2 | Protocol::Http3)
    }
}

/// How TLS is done for URLs that begin with `https://` or `wss://`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Certificates to trust, as PEM; those of the system when absent.
    pub ca_file: Option<PathBuf>,
    /// The server's certificate has to be valid.
    pub verify: bool,
    /// Certificates to show a server that wants one, as PEM, the client's own first.
    pub certificate_file: Option<PathBuf>,
    /// The private key of the client's certificate, as PEM.
    pub key_file: Option<PathBuf>,
    /// The only version to speak; what both sides know best when absent.
    pub version: Option<TlsVersion>,
    /// New connections resume the sessions of earlier ones.
    pub resumption: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Tls {
            ca_file: None,
            verify: true,
            certificate_file: None,
            key_file: None,
            version: None,
            resumption: true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, ValueEnum)]
pub enum TlsVersion {
    #[serde(rename = "1.2")]
    #[value(name = "1.2")]
    V12,
    #[serde(rename = "1.3")]
    #[value(name = "1.3")]
    V13,
}

fn schema() -> u32 {
    SCHEMA
}

fn one() -> f64 {
    1.0
}

fn five() -> f64 {
    5.0
}
