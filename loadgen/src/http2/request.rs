//! Requests as HTTP/2 has them (RFC 9113 section 8.3.1), made ready before a slot begins.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Uri, Version};

use crate::http1::request::{DEFAULT_USER_AGENT, content_length};
use crate::order::Request;
use crate::target::Target;

/// Fields that are about a connection of HTTP/1.1 (RFC 9113 section 8.2.2).
const NOT_IN_HTTP2: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

#[derive(Debug, Clone)]
pub struct Message {
    pub head: http::Request<()>,
    pub body: Option<Bytes>,
}

impl Message {
    /// Errors name the part of the request that is wrong.
    pub fn new(request: &Request, target: &Target) -> Result<Message, String> {
        let host = request.header("host").filter(|host| !host.is_empty());
        let authority = host.unwrap_or(&target.host);
        let uri = Uri::builder()
            .scheme(if target.secure { "https" } else { "http" })
            .authority(authority)
            .path_and_query(target.path.as_str())
            .build()
            .map_err(|error| format!("url: {error}"))?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|error| format!("method: {error}"))?;
        let mut head = http::Request::builder().version(Version::HTTP_2).method(method).uri(uri);
        for (name, value) in
            request.given_headers().filter(|(n, _)| !n.eq_ignore_ascii_case("host"))
        {
            let (name, value) = field(name, value)?;
            head = head.header(name, value);
        }
        if request.header("user-agent").is_none() {
            head = head.header(USER_AGENT, DEFAULT_USER_AGENT);
        }
        if let Some(length) = content_length(request) {
            head = head.header(CONTENT_LENGTH, length);
        }
        let body = request.body.clone().map(Bytes::from);
        Ok(Message { head: head.body(()).map_err(|error| error.to_string())?, body })
    }
}

fn field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    if NOT_IN_HTTP2.iter().any(|not| name.eq_ignore_ascii_case(not)) {
        return Err(format!("headers: {name} has no place in HTTP/2; leave it out"));
    }
    // RFC 9113 section 8.2.2.
    if name.eq_ignore_ascii_case("te") && value != "trailers" {
        return Err(format!(
            "headers: {name}: {value:?} has no place in HTTP/2; give \"trailers\", or leave it out"
        ));
    }
    let wrong = || format!("headers: {name:?}: {value:?} is not a header field");
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    Ok((name, HeaderValue::from_str(value).map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(json: &str) -> Result<Message, String> {
        let request: Request = serde_json::from_str(json).expect("a request");
        Message::new(&request, &Target::parse(&request.url).expect("a URL"))
    }

    #[test]
    fn names_scheme_authority_and_path() {
        let message = message(
            r#"{"url": "https://127.0.0.1:8443/a?b", "headers": {"Host": "x", "A": "b"},
                "method": "POST", "body": "four"}"#,
        );
        let head = message.expect("well formed").head;
        assert_eq!(head.uri().to_string(), "https://x/a?b");
        assert_eq!(head.headers()["content-length"], "4");
        assert_eq!(head.headers()["a"], "b");
        assert!(!head.headers().contains_key("host"));
        assert_eq!(head.headers()["user-agent"], DEFAULT_USER_AGENT);
    }

    #[test]
    fn refuses_what_has_no_place() {
        for name in ["Connection", "Transfer-Encoding", "TE", "a b"] {
            let json = format!(r#"{{"url": "http://127.0.0.1:1/", "headers": {{"{name}": "x"}}}}"#);
            assert!(message(&json).expect_err(name).contains(name));
        }
    }
}
