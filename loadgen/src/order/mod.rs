//! The contract: what an order says, as JSON. `schema/order.v1.schema.json` describes it for others.

mod check;
mod keepalive;
mod parse;

use serde::{Deserialize, Serialize};

pub use check::check;
pub use keepalive::KeepAlive;
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
}

/// One thing to ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `http://HOST:PORT/PATH`, or `http+unix://SOCKET/PATH` with the socket's path percent-encoded.
    pub url: String,
    #[serde(default = "get")]
    pub method: String,
    #[serde(default, with = "header_map")]
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

/// Header fields as a JSON object whose order is kept.
mod header_map {
    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::{SerializeMap, Serializer};

    type Headers = Vec<(String, String)>;

    pub fn serialize<S: Serializer>(headers: &Headers, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(headers.len()))?;
        for (name, value) in headers {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Headers, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Headers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of header names and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    headers.push(entry);
                }
                Ok(headers)
            }
        }
        from.deserialize_map(InOrder)
    }
}
