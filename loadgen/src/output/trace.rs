//! Responses reported whole, for who wants to look into them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::ask::{Kind, Seen};
use crate::engine::{Plan, Traced};

const HTTP2: &str = "HTTP/2";

/// A response, or what came of it. Its body follows the line that reports it, as it came.
#[derive(Debug, Serialize)]
pub struct TracedAnswer {
    /// It is of the login; else of the order's requests.
    login: bool,
    /// Which one, from 0.
    request: usize,
    /// 0 where there was no response.
    status: u16,
    /// `HTTP/1.1`, `HTTP/2`, `HTTP/3`.
    version: String,
    headers: Vec<(String, String)>,
    /// Length of its head; of HTTP/2 and 3 as if it were not compressed.
    head_bytes: usize,
    body_bytes: usize,
    /// Of gRPC: the message, or a list of a stream's, where it is known what they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    /// By name: what the user took from it.
    captured: BTreeMap<String, String>,
    /// Version and cipher of TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<String>,
    /// How long it took, and how many bytes had come, also where it isn't whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    came_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl TracedAnswer {
    /// Of a user's.
    pub fn new(plan: &Plan, traced: &Traced) -> TracedAnswer {
        let asked = plan.order.requests.len();
        let login = traced.request >= asked;
        TracedAnswer {
            login,
            request: if login { traced.request - asked } else { traced.request },
            captured: traced
                .captured
                .iter()
                .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned()))
                .collect(),
            failure: traced.failure.clone(),
            ..TracedAnswer::of(traced.status, &traced.head, &traced.body)
        }
    }

    /// Of the request of a number, which nobody's values are in.
    pub fn seen(request: usize, seen: &Seen, json: Option<Value>) -> TracedAnswer {
        let fault = seen.fault.as_ref();
        let answer = TracedAnswer::of(seen.status, &seen.response.fields, &seen.response.body);
        let version = match answer.version.as_str() {
            HTTP2 if seen.is_http3 => "HTTP/3".into(),
            _ => answer.version,
        };
        TracedAnswer {
            request,
            version,
            tls: seen.tls.clone(),
            took_s: Some(seen.done.as_secs_f64()),
            came_bytes: Some(seen.came_bytes),
            trouble: seen.trouble.as_ref().map(|trouble| trouble.kind),
            failure: seen.trouble.as_ref().map(|trouble| &trouble.why).or(fault).cloned(),
            json,
            ..answer
        }
    }

    fn of(status: u16, head: &[u8], body: &[u8]) -> TracedAnswer {
        let text = latin1(head);
        let is_http1 = text.starts_with("HTTP/");
        let version = match is_http1 {
            true => text.split(' ').next().unwrap_or_default(),
            false if text.is_empty() => "",
            false => HTTP2,
        };
        // HTTP/1.1 ends lines with a byte more, and the head with an empty line.
        let more = if is_http1 || text.is_empty() { 0 } else { text.lines().count() + 2 };
        TracedAnswer {
            login: false,
            request: 0,
            status,
            version: version.into(),
            headers: fields(text.lines().skip(usize::from(is_http1))),
            head_bytes: head.len() + more,
            body_bytes: body.len(),
            json: None,
            captured: BTreeMap::new(),
            tls: None,
            took_s: None,
            came_bytes: None,
            trouble: None,
            failure: None,
        }
    }
}

/// Names and values. A line that begins with a space goes on with the field before it (RFC 9112
/// section 5.2); pseudo-fields are left out.
fn fields<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let is_space = [' ', '\t'];
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        if line.starts_with(is_space) {
            let Some((_, value)) = fields.last_mut() else { continue };
            value.extend([" ", line.trim_matches(is_space)]);
        } else if let Some((name, value)) = line.split_once(':').filter(|(name, _)| name != &"") {
            fields.push((name.into(), value.trim_matches(is_space).into()));
        }
    }
    fields
}

/// Header fields are bytes (RFC 9110 section 5.5): each is a letter here.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_separated() {
        let head = b"HTTP/1.1 200 OK\r\nServer: a\r\n\tb\r\nX:\xe9\r\nA: b: c \r\n\r\n";
        let traced = TracedAnswer::of(200, head, b"hello");
        let fields: Vec<_> = traced.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(fields, [("Server", "a b"), ("X", "\u{e9}"), ("A", "b: c")]);
        assert_eq!((traced.version.as_str(), traced.head_bytes), ("HTTP/1.1", head.len()));
        let traced = TracedAnswer::of(200, b":status: 200\nserver: a\n", b"");
        assert_eq!(traced.headers, [("server".to_owned(), "a".to_owned())]);
        assert_eq!(traced.head_bytes, b":status: 200\r\nserver: a\r\n\r\n".len());
    }
}
