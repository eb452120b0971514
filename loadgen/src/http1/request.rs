//! Requests as bytes, rendered once before a slot begins.

use crate::order::Request;
use crate::target::Target;

/// A request ready to be sent: the same one for a connection that stays open, and for its last.
#[derive(Debug, Clone)]
pub struct Rendered {
    pub keep: Box<[u8]>,
    pub close: Box<[u8]>,
}

pub const DEFAULT_USER_AGENT: &str = concat!("loadgen/", env!("CARGO_PKG_VERSION"));

impl Rendered {
    pub fn bytes(&self, close: bool) -> &[u8] {
        if close { &self.close } else { &self.keep }
    }

    pub fn new(request: &Request, target: &Target) -> Self {
        let (keep, close) = (render(request, target, false), render(request, target, true));
        Rendered { keep, close }
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

/// The header fields that the request says, after those that are sent unless it says others.
pub fn fields<'a>(
    request: &'a Request,
    target: &'a Target,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let usual = [("Host", target.host.as_str()), ("User-Agent", DEFAULT_USER_AGENT)];
    let usual = usual.into_iter().filter(|(name, _)| request.header(name).is_none());
    let given = request.given_headers().map(|(name, value)| (name.as_str(), value.as_str()));
    usual.chain(given)
}

fn render(request: &Request, target: &Target, close: bool) -> Box<[u8]> {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, target.path);
    let mut add = |name: &str, value: &str| text.extend([name, ": ", value, "\r\n"]);
    fields(request, target).for_each(|(name, value)| add(name, value));
    if let Some(length) = content_length(request) {
        add("Content-Length", &length.to_string());
    }
    if close && request.header("connection").is_none() {
        add("Connection", "close");
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(request.body.as_deref().unwrap_or_default());
    bytes.into_boxed_slice()
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
