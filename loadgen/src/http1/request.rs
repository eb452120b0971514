//! Requests as bytes, rendered once before a slot begins.

use memchr::memmem;

use super::cookies::CookieJar;

/// A request ready to be sent: the same one for a connection that stays open, and for its last.
#[derive(Debug, Clone)]
pub struct Rendered {
    pub keep: Box<[u8]>,
    pub close: Box<[u8]>,
}

/// What a request is made of.
#[derive(Debug)]
pub struct Parts<'a> {
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Host as the URL names it, with its port if it isn't 80.
    pub host: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Option<&'a [u8]>,
}

pub const DEFAULT_USER_AGENT: &str = concat!("loadgen/", env!("CARGO_PKG_VERSION"));

impl Rendered {
    pub fn bytes(&self, close: bool) -> &[u8] {
        if close { &self.close } else { &self.keep }
    }

    /// The request with a `Cookie` field; empty when there is no cookie to send.
    pub fn with_cookies(&self, close: bool, jar: &CookieJar) -> Vec<u8> {
        if jar.is_empty() {
            return Vec::new();
        }
        let bytes = self.bytes(close);
        let end = memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 2);
        let mut with = bytes[..end].to_vec();
        with.extend_from_slice(b"Cookie: ");
        jar.write(&mut with);
        with.extend_from_slice(b"\r\n");
        with.extend_from_slice(&bytes[end..]);
        with
    }

    pub fn new(parts: &Parts<'_>) -> Self {
        Rendered { keep: render(parts, false), close: render(parts, true) }
    }
}

/// The length to announce, unless the user has said how long the body is. Methods that have a use
/// for a body announce that there is none (RFC 9110 section 8.6).
pub fn content_length(
    method: &str,
    body: Option<&[u8]>,
    given: impl Fn(&str) -> bool,
) -> Option<usize> {
    let wanted = body.is_some() || matches!(method, "POST" | "PUT" | "PATCH");
    let said = given("content-length") || given("transfer-encoding");
    (wanted && !said).then(|| body.map_or(0, <[u8]>::len))
}

fn render(parts: &Parts<'_>, close: bool) -> Box<[u8]> {
    let given = |name: &str| parts.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let mut text = format!("{} {} HTTP/1.1\r\n", parts.method, parts.path);
    let mut add = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    };
    if !given("host") {
        add("Host", parts.host);
    }
    if !given("user-agent") {
        add("User-Agent", DEFAULT_USER_AGENT);
    }
    for (name, value) in parts.headers {
        add(name, value);
    }
    if let Some(length) = content_length(parts.method, parts.body, given) {
        add("Content-Length", &length.to_string());
    }
    if close && !given("connection") {
        add("Connection", "close");
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(parts.body.unwrap_or_default());
    bytes.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_both_forms() {
        let headers = [("X-A".to_string(), "b".to_string())];
        let parts = Parts {
            method: "POST",
            path: "/x?y=1",
            host: "127.0.0.1:80",
            headers: &headers,
            body: Some(b"hello"),
        };
        let rendered = Rendered::new(&parts);
        let keep = String::from_utf8(rendered.keep.into_vec()).expect("text");
        let close = String::from_utf8(rendered.close.into_vec()).expect("text");
        assert_eq!(
            keep,
            format!(
                "POST /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nUser-Agent: {DEFAULT_USER_AGENT}\r\n\
                 X-A: b\r\nContent-Length: 5\r\n\r\nhello"
            )
        );
        assert_eq!(close, keep.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    }

    #[test]
    fn what_the_user_gives_replaces_the_default() {
        let headers = [("host".to_string(), "example".to_string())];
        let parts = Parts { method: "GET", path: "/", host: "h", headers: &headers, body: None };
        let keep = String::from_utf8(Rendered::new(&parts).keep.into_vec()).expect("text");
        assert!(keep.contains("host: example\r\n") && !keep.contains("Host: h"));
    }

    #[test]
    fn a_length_is_announced_where_a_body_may_come() {
        let none = |_: &str| false;
        assert_eq!(content_length("POST", None, none), Some(0));
        assert_eq!(content_length("GET", None, none), None);
        assert_eq!(content_length("GET", Some(b"four"), none), Some(4));
        for said in ["content-length", "transfer-encoding"] {
            assert_eq!(content_length("POST", Some(b"four"), |name| name == said), None);
        }
    }
}
