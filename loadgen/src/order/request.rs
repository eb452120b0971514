//! One thing to ask for, and what makes its answer valid.

use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hex::FromHex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::arrivals::Think;
use crate::events::EventFormat;
use crate::grpc::reply::Reply;

/// One thing to ask for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `http://HOST:PORT/PATH`, or `http+unix://SOCKET/PATH` with the socket's path percent-encoded.
    /// `UID@` before it says whose process has to listen there. Of WebSockets `ws` in the place of `http`,
    /// of calls of gRPC `grpc`.
    pub url: String,
    #[serde(default = "get")]
    pub method: String,
    #[serde(default, with = "tuple_vec_map")]
    pub headers: Vec<(String, String)>,
    /// A text, or `{"base64": …}`.
    #[serde(default, deserialize_with = "bytes")]
    pub body: Option<Vec<u8>>,
    /// Of a call in its place: the message, or a list of them where it takes a stream.
    pub json: Option<Value>,
    /// Over WebSocket the body is a binary message, and else one of text.
    #[serde(default)]
    pub binary: bool,
    /// How often it is asked for, relative to the others.
    #[serde(default = "one")]
    pub weight: f64,
    #[serde(default)]
    pub expect: Expect,
    /// Requests of one name are reported together, apart from the others.
    pub endpoint: Option<String>,
    /// Requests of the same flow that stand together are asked one after the other by one user;
    /// the first one's weight is the flow's. The flow as a whole is an endpoint of its own.
    pub flow: Option<String>,
    /// By name: what of its answer later requests of the user get for `{{NAME}}`.
    #[serde(default, with = "tuple_vec_map")]
    pub capture: Vec<(String, Capture)>,
    /// The user's pause before the next request of the flow; that of the load unless given.
    pub think: Option<Think>,
    /// Its answer is a stream of events, which are timed each.
    pub events: Option<EventFormat>,
    /// How a call is answered, once its method is known.
    #[serde(skip)]
    pub reply: Option<Reply>,
}

impl Request {
    pub fn get(url: String) -> Self {
        let (method, headers, expect) = (get(), Vec::new(), Expect::default());
        Request {
            url,
            method,
            headers,
            body: None,
            json: None,
            binary: false,
            weight: one(),
            expect,
            endpoint: None,
            flow: None,
            capture: Vec::new(),
            think: None,
            events: None,
            reply: None,
        }
    }

    /// The header fields to send: one without a value takes away what would be sent by itself.
    pub fn given_headers(&self) -> impl Iterator<Item = &(String, String)> {
        self.headers.iter().filter(|(_, value)| !value.is_empty())
    }

    /// It is a message of a WebSocket.
    pub fn is_message(&self) -> bool {
        self.has_scheme(&["ws", "wss", "ws+unix"])
    }

    /// It is a call of gRPC.
    pub fn is_call(&self) -> bool {
        self.has_scheme(&["grpc", "grpcs", "grpc+unix"])
    }

    /// Its URL begins with one of these, whose case says nothing (RFC 3986 section 3.1).
    pub fn has_scheme(&self, any: &[&str]) -> bool {
        let scheme = self.url.split("://").next().unwrap_or_default();
        any.iter().any(|known| scheme.eq_ignore_ascii_case(known))
    }

    /// The value of a header field that was given.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }
}

/// What makes an answer valid.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Statuses that are right; any 2xx when absent.
    pub status: Option<Vec<u16>>,
    pub body_bytes: Option<u64>,
    pub body_sha256: Option<Sha256Hex>,
    /// Texts that the body contains, out of its encoding.
    #[serde(default)]
    pub contains: Vec<String>,
}

/// A SHA-256; 64 hexadecimal digits in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha256Hex(pub [u8; 32]);

impl TryFrom<String> for Sha256Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Sha256Hex {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = <[u8; 32]>::from_hex(text);
        bytes.map(Sha256Hex).map_err(|_| format!("{text:?} is not 64 hexadecimal digits"))
    }
}

/// What of an answer becomes a value: one of these.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capture {
    /// The first element that it selects.
    pub css: Option<String>,
    /// Which attribute of it; `value` of an input, `content` of a meta element and else its text
    /// when absent.
    pub attribute: Option<String>,
    /// The first group, or all that it matches.
    pub regex: Option<String>,
    /// `$.items[0].id`.
    pub json: Option<String>,
    pub header: Option<String>,
    pub cookie: Option<String>,
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    Ok(match Option::<Body>::deserialize(from)? {
        None => None,
        Some(Body::Text(text)) => Some(text.into_bytes()),
        Some(Body::Binary { base64 }) => Some(
            BASE64_STANDARD
                .decode(base64)
                .map_err(|error| D::Error::custom(format!("body is not base64: {error}")))?,
        ),
    })
}

/// How a body stands in an order: JSON has no bytes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "should be text, or {\"base64\": …}")]
enum Body {
    Text(String),
    Binary { base64: String },
}

fn get() -> String {
    "GET".into()
}

fn one() -> f64 {
    1.0
}
