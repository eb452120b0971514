//! The contract: what an order says, as JSON. `schema/order.v1.schema.json` describes it for others.

mod arrivals;
mod check;
mod headers;
mod keepalive;
mod layers;
mod parse;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use arrivals::{Arrivals, Process, Stage, Think, ThinkDistribution, Unit};
pub use check::check;
pub use keepalive::KeepAlive;
pub use layers::{Protocol, Tls};
pub use parse::{OrderError, parse};

/// One slot of load, asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    #[serde(default)]
    pub id: String,
    pub requests: Vec<Request>,
    pub load: Load,
    /// Length of the window in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Number of requests to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Allows targets that are not on this machine.
    #[serde(default)]
    pub allow_remote: bool,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Ask for the requests by Zipf's law with this exponent, the first one most often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<f64>,
    /// Ask in this order: indices into `requests`, again from the start after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Vec<u32>>,
    /// Length of the windows in which the client watches itself, in seconds.
    #[serde(default = "one")]
    pub window_s: f64,
    /// Leave windows in which the client was the limit out of times and rate.
    #[serde(default)]
    pub leave_out_client_bound: bool,
}

/// One thing to ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `http://HOST:PORT/PATH`, or `http+unix://SOCKET/PATH` with the socket's path percent-encoded.
    pub url: String,
    #[serde(default = "get")]
    pub method: String,
    #[serde(default, with = "headers")]
    pub headers: Vec<(String, String)>,
    #[serde(default)]
    pub body: Option<String>,
    /// How often it is asked for, relative to the others.
    #[serde(default = "one")]
    pub weight: f64,
    #[serde(default)]
    pub expect: Expect,
}

/// What makes an answer valid.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Statuses that are right; any 2xx when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<u16>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// SHA-256 of the body in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
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
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    #[serde(rename = "loop")]
    pub kind: Loop,
    pub connections: u32,
    #[serde(default)]
    pub keepalive: KeepAlive,
    #[serde(default = "five")]
    pub timeout_s: f64,
    /// Closed loop: pause of a connection between an answer and its next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
    /// Open loop: the timetable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Local addresses to connect from, in turn.
    #[serde(default)]
    pub source_addresses: Vec<IpAddr>,
    /// Each connection keeps the cookies it is given.
    #[serde(default)]
    pub cookies: bool,
    /// Connections beside the load that ask once, for the first request, and are then held open.
    #[serde(default)]
    pub idle_connections: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_readers: Option<SlowReaders>,
    #[serde(default)]
    pub protocol: Protocol,
    /// HTTP/2: requests in flight at a time on each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// Connections beside the load that read their answers slowly; counted apart.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowReaders {
    pub connections: u32,
    pub bytes_per_s: u32,
}

fn get() -> String {
    "GET".into()
}

fn one() -> f64 {
    1.0
}

fn five() -> f64 {
    5.0
}
