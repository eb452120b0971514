//! Requests as HTTP/3 has them (RFC 9114 section 4.1), made ready before a slot begins.

use std::sync::Arc;

use super::frame;
use super::qpack::{self, Decoder};
use super::reader::{Kind, Piece, Reader};
use crate::http2::request::each_field;
use crate::order::Request;
use crate::target::Target;

/// All that is sent of a request on a stream, on any of any connection. Errors name the part of the
/// request that is wrong.
pub fn frames(request: &Request, target: &Target) -> Result<Arc<[u8]>, String> {
    let mut section = qpack::PREFIX.to_vec();
    each_field(request, target, |name, value| qpack::encode(name, value, &mut section))?;
    let mut frames = Vec::new();
    frame::write(&mut frames, frame::HEADERS, &section);
    if let Some(body) = request.body.as_deref().filter(|body| !body.is_empty()) {
        frame::write(&mut frames, frame::DATA, body);
    }
    Ok(frames.into())
}

/// Our frames as people want to see them: a field a line, and the body.
pub fn shown(frames: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    // They are ours, so that there is nothing wrong with them.
    let _ = Reader::new(Kind::Request).read(frames, |piece| {
        match piece {
            Piece::Data(body) => lines.extend_from_slice(&[b"\n", body].concat()),
            Piece::Whole(_, section) => Decoder::default().decode(section, |name, value| {
                lines.extend_from_slice(&[name, b": ", value, b"\n"].concat());
            })?,
        }
        Ok(())
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_as_it_is_sent() {
        let request: Request = serde_json::from_str(
            r#"{"url": "https://127.0.0.1:8443/a?b", "headers": {"Host": "x", "User-Agent": ""},
                "method": "POST", "body": "four"}"#,
        )
        .expect("a request");
        let target = Target::parse(&request.url).expect("a URL");
        let frames = frames(&request, &target).expect("well formed");
        let wanted = ":method: POST\n:scheme: https\n:authority: x\n:path: /a?b\n\
                      content-length: 4\n\nfour";
        assert_eq!(String::from_utf8_lossy(&shown(&frames)), wanted);
    }

    #[test]
    fn a_usual_request_is_short() {
        let json = r#"{"url": "https://127.0.0.1:8443/", "headers": {"User-Agent": ""}}"#;
        let request: Request = serde_json::from_str(json).expect("a request");
        let target = Target::parse(&request.url).expect("a URL");
        let frames = frames(&request, &target).expect("well formed");
        assert_eq!(*frames, *b"\x01\x15\0\0\xd1\xd7\x50\x0e127.0.0.1:8443\xc1");
    }
}
