//! Requests as bytes, rendered once before a slot begins.

use memchr::memmem;

use super::cookies::CookieJar;
use crate::order::Request;
use crate::target::Target;

/// A request ready to be sent: the same one for a connection that stays open, and for its last.
#[derive(Debug, Clone)]
pub struct Rendered {
    pub keep: Box<[u8]>,
    pub close: Box<[u8]>,
    /// Where the value of a `Cookie` field ends that the user gave; both are alike until there.
    cookie_end: Option<usize>,
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
        let head_end = || memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 2);
        // A request has one such field at most (RFC 6265 section 5.4).
        let (end, before, after) = match self.cookie_end {
            Some(end) => (end, &b"; "[..], &b""[..]),
            None => (head_end(), &b"Cookie: "[..], &b"\r\n"[..]),
        };
        let mut with = bytes[..end].to_vec();
        with.extend_from_slice(before);
        jar.write(&mut with);
        with.extend_from_slice(after);
        with.extend_from_slice(&bytes[end..]);
        with
    }

    pub fn new(request: &Request, target: &Target) -> Self {
        let (keep, cookie_end) = render(request, target, false);
        let (close, _) = render(request, target, true);
        Rendered { keep, close, cookie_end }
    }
}

/// The length to announce, unless the user has said how long the body is. Methods that have a use
/// for a body announce that there is none (RFC 9110 section 8.6).
pub fn content_length(request: &Request) -> Option<usize> {
    let wanted =
        request.body.is_some() || matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    let said =
        ["content-length", "transfer-encoding"].iter().any(|name| request.header(name).is_some());
    (wanted && !said).then(|| request.body.as_ref().map_or(0, Vec::len))
}

/// The request, and where its `Cookie` field ends if it has one.
fn render(request: &Request, target: &Target, close: bool) -> (Box<[u8]>, Option<usize>) {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, target.path);
    let mut cookie_end = None;
    let mut add = |name: &str, value: &str| {
        text.extend([name, ": ", value]);
        if name.eq_ignore_ascii_case("cookie") {
            cookie_end = Some(text.len());
        }
        text.push_str("\r\n");
    };
    for (name, value) in [("Host", target.host.as_str()), ("User-Agent", DEFAULT_USER_AGENT)] {
        if request.header(name).is_none() {
            add(name, value);
        }
    }
    for (name, value) in request.given_headers() {
        add(name, value);
    }
    if let Some(length) = content_length(request) {
        add("Content-Length", &length.to_string());
    }
    if close && request.header("connection").is_none() {
        add("Connection", "close");
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(request.body.as_deref().unwrap_or_default());
    (bytes.into_boxed_slice(), cookie_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)], body: Option<&str>) -> Request {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        Request {
            method: method.into(),
            headers: headers.iter().map(owned).collect(),
            body: body.map(Into::into),
            ..Request::get("http://127.0.0.1:80/x?y=1".into())
        }
    }

    fn rendered(request: &Request) -> [String; 2] {
        let rendered = Rendered::new(request, &Target::parse(&request.url).expect("a URL"));
        [rendered.keep, rendered.close].map(|b| String::from_utf8(b.into_vec()).expect("text"))
    }

    #[test]
    fn renders_both_forms() {
        let [keep, close] = rendered(&request("POST", &[("X-A", "b")], Some("hello")));
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
        let [keep, _] = rendered(&request("GET", &[("host", "example")], None));
        assert!(keep.contains("host: example\r\n") && !keep.contains("Host: 1"));
    }

    #[test]
    fn a_field_without_a_value_takes_the_default_away() {
        let [keep, _] = rendered(&request("GET", &[("User-Agent", ""), ("X", "")], None));
        assert_eq!(keep, "GET /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
    }

    #[test]
    fn a_length_is_announced_where_a_body_may_come() {
        assert_eq!(content_length(&request("POST", &[], None)), Some(0));
        assert_eq!(content_length(&request("GET", &[], None)), None);
        assert_eq!(content_length(&request("GET", &[], Some("four"))), Some(4));
        for said in ["Content-Length", "transfer-encoding"] {
            assert_eq!(content_length(&request("POST", &[(said, "x")], Some("four"))), None);
        }
    }
}
