//! Requests as HTTP/2 has them (RFC 9113 section 8.3.1), made ready before a slot begins.

use std::sync::Arc;

use super::hpack;
use crate::http1::head::is_token;
use crate::http1::request::{DEFAULT_USER_AGENT, content_length};
use crate::order::Request;
use crate::target::Target;

/// Fields that are about a connection of HTTP/1.1 (RFC 9113 section 8.2.2).
const NOT_IN_HTTP2: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// A request ready to be sent on any stream of any connection.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its header list, compressed.
    pub block: Box<[u8]>,
    /// Nothing where it has none.
    pub body: Arc<[u8]>,
}

impl Message {
    /// Errors name the part of the request that is wrong.
    pub fn new(request: &Request, target: &Target) -> Result<Message, String> {
        let mut block = Vec::new();
        each_field(request, target, |name, value| hpack::encode(name, value, &mut block))?;
        let body = request.body.as_deref().unwrap_or_default().into();
        Ok(Message { block: block.into(), body })
    }
}

/// Hands over the fields of a request, as HTTP/2 and 3 have them.
pub fn each_field(
    request: &Request,
    target: &Target,
    mut add: impl FnMut(&str, &str),
) -> Result<(), String> {
    add(":method", &request.method);
    add(":scheme", if target.secure { "https" } else { "http" });
    let host = request.header("host").filter(|host| !host.is_empty());
    add(":authority", authority(host.unwrap_or(&target.host))?);
    add(":path", &target.path);
    for (name, value) in
        request.given_headers().filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
    {
        let (name, value) = field(name, value)?;
        add(&name, value);
    }
    if request.header("user-agent").is_none() {
        add("user-agent", DEFAULT_USER_AGENT);
    }
    if let Some(length) = content_length(request) {
        add("content-length", &length.to_string());
    }
    Ok(())
}

fn authority(host: &str) -> Result<&str, String> {
    match host.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(host),
        false => Err(format!("headers: Host: {host:?} is not a host")),
    }
}

/// A field as HTTP/2 has it (RFC 9113 section 8.2.1).
fn field<'a>(name: &str, value: &'a str) -> Result<(String, &'a str), String> {
    if NOT_IN_HTTP2.iter().any(|not| name.eq_ignore_ascii_case(not)) {
        return Err(format!("headers: {name} has no place in HTTP/2 and 3; leave it out"));
    }
    // RFC 9113 section 8.2.2.
    if name.eq_ignore_ascii_case("te") && value != "trailers" {
        return Err(format!(
            "headers: {name}: {value:?} has no place in HTTP/2 and 3; give \"trailers\", or leave it out"
        ));
    }
    let is_clean = !value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
    match name.bytes().all(is_token) && is_clean {
        true => Ok((name.to_ascii_lowercase(), value.trim_ascii())),
        false => Err(format!("headers: {name:?}: {value:?} is not a header field")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::hpack::Decoder;

    fn message(json: &str) -> Result<Message, String> {
        let request: Request = serde_json::from_str(json).expect("a request");
        Message::new(&request, &Target::parse(&request.url).expect("a URL"))
    }

    fn fields(message: &Message) -> String {
        let mut lines = String::new();
        let mut take = |name: &[u8], value: &[u8]| {
            lines += &format!("{}: {}\n", name.escape_ascii(), value.escape_ascii());
        };
        Decoder::default().decode(&message.block, &mut take).expect("well formed");
        lines
    }

    #[test]
    fn names_scheme_authority_and_path() {
        let message = message(
            r#"{"url": "https://127.0.0.1:8443/a?b", "headers": {"Host": "x", "A": " b"},
                "method": "POST", "body": "four"}"#,
        );
        let message = message.expect("well formed");
        let wanted = ":method: POST\n:scheme: https\n:authority: x\n:path: /a?b\na: b\n";
        let usual = format!("user-agent: {DEFAULT_USER_AGENT}\ncontent-length: 4\n");
        assert_eq!(fields(&message), format!("{wanted}{usual}"));
        assert_eq!(&*message.body, b"four");
    }

    #[test]
    fn a_usual_request_is_short() {
        let json = r#"{"url": "http://127.0.0.1:8080/", "headers": {"User-Agent": ""}}"#;
        let message = message(json).expect("well formed");
        assert_eq!(*message.block, *b"\x82\x86\x01\x0e127.0.0.1:8080\x84");
    }

    #[test]
    fn refuses_what_has_no_place() {
        for name in ["Connection", "Transfer-Encoding", "TE", "a b"] {
            let json = format!(r#"{{"url": "http://127.0.0.1:1/", "headers": {{"{name}": "x"}}}}"#);
            assert!(message(&json).expect_err(name).contains(name));
        }
        let json = r#"{"url": "http://127.0.0.1:1/", "headers": {"Host": "a b"}}"#;
        assert!(message(json).expect_err("no host").contains("a b"));
    }
}
